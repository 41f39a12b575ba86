//! A sleep on the critical path of a build, and sums of sleeps.

use tr_analyze::model::ThreadIx;
use tr_analyze::programs::Group;
use tr_format::event::Ktime;

/// The least number of equal sleeps that count as a loop which sleeps and checks for an event. A guess: two equal
/// sleeps may be chance.
pub(crate) const LOOP_SLEEPS: usize = 3;

/// The longest sleep in ns that may belong to a language's runtime, which sleeps between checks of its own threads.
/// Nobody can change such sleeps (Go's `sysmon` doubles its sleeps up to 10 ms, runtime/proc.go).
pub(crate) const RUNTIME_SLEEP: u64 = 12_000_000;

/// The largest number of processes that are searched for sleeps that are not on the critical path, and the largest
/// number of stretches of each thread's time that are searched. A bound of the work.
pub(crate) const BESIDE_LIMITS: (usize, usize) = (200, 10_000);

/// A sleep on the critical path of a build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nap {
    pub thread: ThreadIx,
    pub group: Group,
    /// The execution of the program that decided on this sleep. If a program starts sleep(1), this field names the
    /// program's execution, and `group` names the execution of sleep(1).
    pub by: Group,
    pub from: Ktime,
    pub to: Ktime,
    /// The time at which the sleeping task ran again. On a busy machine this is long after the end of the sleep (`to`),
    /// because the task waits for a CPU.
    pub ran: Ktime,
}

impl Nap {
    pub(crate) fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// The sum of the lengths of the given sleeps, in nanoseconds.
pub(crate) fn sum<'s>(slept: impl IntoIterator<Item = &'s Nap>) -> u64 {
    let lengths = slept.into_iter().map(Nap::length);
    lengths.fold(0, u64::saturating_add)
}

/// Whether a nap has at least a tenth of the length of the longest one. A shorter nap has another purpose than the
/// longest one.
pub(crate) fn is_long(nap: &Nap, longest: u64) -> bool {
    nap.length().saturating_mul(10) >= longest
}

/// The given naps without those that are much shorter than the longest one ([`is_long`]).
pub(crate) fn long_naps(slept: &[Nap]) -> Vec<Nap> {
    let longest = slept.iter().map(Nap::length).max().unwrap_or(0);
    let long = slept.iter().filter(|nap| is_long(nap, longest));
    long.copied().collect()
}

/// Whether two times count as equal: the longer one is at most a quarter longer, because a timer may end late.
pub(crate) fn is_equal(shorter: u64, longer: u64) -> bool {
    longer.saturating_mul(4) <= shorter.saturating_mul(5)
}

/// The time in nanoseconds (`ns`) by which the naps of a program are longer than on free CPUs, because the work that
/// the program waited for had no CPU for a part of its time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Superfluous {
    pub ns: u64,
    /// The part of `ns` (the excess length of the naps) in nanoseconds for which it is not proven that the naps are
    /// shorter on free CPUs. For example, a server that starts up may work for a time that it measures by a clock, and
    /// then starts no sooner on free CPUs.
    pub guessed: u64,
}

impl Superfluous {
    pub fn plus(self, other: Superfluous) -> Superfluous {
        Superfluous {
            ns: self.ns.saturating_add(other.ns),
            guessed: self.guessed.saturating_add(other.guessed),
        }
    }

    /// The part of the naps' excess length (`ns`) for which it is proven that the naps are shorter on free CPUs, in
    /// nanoseconds.
    pub fn proven(self) -> u64 {
        self.ns.saturating_sub(self.guessed)
    }
}
