//! The set of changes of a simulation, and the assumptions about their effects.

/// A set of assumed changes: bit n stands for the change with the number n.
pub type Changes = u32;

/// The assumption about the effect of changes, and about the number of other jobs that a job needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Changes have their best effect ([`Change::remains`](super::Change::remains)), and a job needs only the
    /// jobs that it certainly needs.
    Best,
    /// Changes have their best effect ([`Change::remains`](super::Change::remains)), and a job needs the jobs
    /// that it probably needs.
    Likely,
    /// Changes have their worst effect ([`Change::remains`](super::Change::remains)), and a job needs all
    /// jobs that it may need.
    Worst,
}
