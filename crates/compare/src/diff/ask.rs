//! The choices of the user, by options of `tr diff`, for a comparison of builds.

use super::run::Figure;

/// The choices of the user, by options of `tr diff`, for a comparison of builds.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The largest number of rows in each table with a column of names, such as processes, in all formats but JSON.
    pub top: usize,
    /// The least difference in ns between the times of the two sides at which the comparison shows a process, a
    /// program, a step, a function, a system call, or a demand that is a time.
    pub least: u64,
    /// The two settings of the gate, which makes `tr diff` fail: the figure that the gate judges (`--fail-on`), and the
    /// largest growth of this figure, in percent, that the gate allows (`--fail-over`). `None` without a gate.
    pub gate: Option<(Figure, f64)>,
    /// Whether the gate (`--fail-over`) fails a build even if other tasks on the runner's CPUs caused the growth of the
    /// figure.
    pub strict: bool,
}
