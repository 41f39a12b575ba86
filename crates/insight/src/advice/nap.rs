//! A sleep on the critical path of a build, and sums of sleeps.

use tr_analyze::model::ThreadIx;
use tr_analyze::programs::Group;
use tr_format::event::Ktime;

/// The least number of equal sleeps that count as a loop which sleeps and checks for an event. A guess: two equal
/// sleeps may be chance.
pub(super) const LOOP: usize = 3;

/// A sleep on the critical path of a build.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nap {
    pub thread: ThreadIx,
    pub group: Group,
    /// The execution of a program that decided to sleep. If a program starts sleep(1), this is the program, and `group`
    /// is the execution of sleep(1).
    pub by: Group,
    pub from: Ktime,
    pub to: Ktime,
    /// The time at which the sleeping task ran again. On a busy machine this is long after the end of the sleep (`to`),
    /// because the task waits for a CPU.
    pub ran: Ktime,
}

impl Nap {
    pub(super) fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// The sum of the lengths of the given sleeps, in nanoseconds.
pub(super) fn sum<'s>(slept: impl IntoIterator<Item = &'s Nap>) -> u64 {
    let lengths = slept.into_iter().map(Nap::length);
    lengths.fold(0, u64::saturating_add)
}
