//! The set of changes of a simulation, and the assumptions about their effects.

/// A set of the assumed changes of a simulation: bit n stands for the change with the number n.
pub type Changes = u32;

/// The assumption of a simulation about the effect of changes, and about the number of other jobs that a job
/// needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Assumed changes have their best effect ([`Change::remains`](super::Change::remains)), and a job needs
    /// only the jobs that it certainly needs.
    Best,
    /// Assumed changes have their best effect ([`Change::remains`](super::Change::remains)), and a job needs
    /// the jobs that it probably needs.
    Likely,
    /// Assumed changes have their worst effect ([`Change::remains`](super::Change::remains)), and a job needs
    /// all jobs that it may need.
    Worst,
}
