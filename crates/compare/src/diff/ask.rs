//! The settings of a comparison of builds that a user can choose by options of `tr diff`.

use super::run::Figure;

/// The settings of a comparison of builds that the user chooses by options of `tr diff`.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The largest number of rows in each table of the comparison as text.
    pub top: usize,
    /// The least difference of a process's time that the comparison shows, in ns.
    pub least: u64,
    /// The figure that the gate judges (`--fail-on`), and the percentage by which it may grow at
    /// most (`--fail-over`); `None` without a gate.
    pub gate: Option<(Figure, f64)>,
    /// Whether the gate (`--fail-over`) fails a build even if its growth is due to other tasks on
    /// the runner's CPUs.
    pub strict: bool,
}
