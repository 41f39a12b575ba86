//! The assumed changes of a simulation, sets of them, and the assumptions about their effects.

use tr_format::event::Ktime;

use crate::model::ProcessIx;
use crate::questions::what_if::Without;

/// An assumed change of a simulated run: a part of the recorded time becomes shorter, or jobs run at the same time.
#[derive(Clone, Debug)]
pub struct Change {
    pub time: Without,
    /// How much of the time that `time` selects remains after the assumed change, in thousandths: in the best case, and
    /// in the worst case. Selected waits that another thread ended are left out completely in both cases.
    pub remains: (u64, u64),
    /// The jobs that run at the same time after the assumed change.
    pub jobs: Vec<Jobs>,
}

/// Children of one process that an assumed change lets run at the same time, because they do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// The process that starts these jobs, which an assumed change lets run at the same time.
    pub owner: ProcessIx,
    /// The time in the recording at which the first of the jobs started.
    pub from: Ktime,
    /// The time in the recording at which the last of the jobs started.
    pub to: Ktime,
    /// The largest number of these jobs that may run at the same time.
    pub at_once: u64,
}

/// The largest number of assumed changes that a [`Schedule`](super::Schedule) can have.
pub const MOST_CHANGES: usize = 31;

/// A set of the assumed changes of a simulation: bit n stands for the change with the number n.
pub type Changes = u32;

/// The assumptions of a simulation: how much the changes save, and how many other jobs a job needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Assumed changes have their best effect ([`Change::remains`]), and a job needs only the jobs that it certainly
    /// needs.
    Best,
    /// Assumed changes have their best effect ([`Change::remains`]), and a job needs the jobs that it probably needs.
    Likely,
    /// Assumed changes have their worst effect ([`Change::remains`]), and a job needs all jobs that it may need.
    Worst,
}
