//! What a user asks of a comparison.

use super::run::Figure;

#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Rows of each table to show as text.
    pub top: usize,
    /// The least difference of a process's time, in ns.
    pub least: u64,
    /// A figure, and the most percent by which it may grow.
    pub gate: Option<(Figure, f64)>,
    /// The gate judges the figure, whoever had the CPUs.
    pub strict: bool,
}
