//! The set of changes of a simulation, and the assumptions about their effects.

/// A set of changes: bit n stands for the change with the number n.
pub type Changes = u32;

/// The assumption about the effect of changes, and about the number of other jobs that a job needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// [`Change::remains`](super::Change::remains) at best. A job needs only the jobs that it certainly needs.
    Best,
    /// [`Change::remains`](super::Change::remains) at best. A job needs the jobs that it probably needs.
    Likely,
    /// [`Change::remains`](super::Change::remains) at worst. A job needs all jobs that it may need.
    Worst,
}
