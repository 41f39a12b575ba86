//! The choices of the user, by options of `tr diff`, for a comparison of builds.

use super::run::Figure;

/// The choices of the user, by options of `tr diff`, for a comparison of builds.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The largest number of rows in each table of the comparison as text.
    pub top: usize,
    /// The least difference in ns, between the times in two builds, at which the comparison shows a process, a program
    /// or a function.
    pub least: u64,
    /// The two settings of the gate, which makes `tr diff` fail: the figure that the gate judges (`--fail-on`), and the
    /// largest growth of this figure, in percent, that the gate allows (`--fail-over`). `None` without a gate.
    pub gate: Option<(Figure, f64)>,
    /// Whether the gate (`--fail-over`) fails a build even if other tasks on the runner's CPUs caused the growth of the
    /// figure.
    pub strict: bool,
}
