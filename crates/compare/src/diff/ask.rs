//! The settings of a comparison that a user can choose.

use super::run::Figure;

/// The settings of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The number of rows that each table shows as text.
    pub top: usize,
    /// The least difference of a process's time that is shown, in ns.
    pub least: u64,
    /// The figure of `--fail-on`, and the percentage of `--fail-over` by which it may grow at most.
    pub gate: Option<(Figure, f64)>,
    /// Whether the gate judges the figure even where other tasks had the CPUs.
    pub strict: bool,
}
