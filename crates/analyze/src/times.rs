//! The time of a thread or process in each state, and the source of such times.

use tr_format::meta::{Known, RecordingFacts};

/// The source of the times of all tasks in a recording: scheduling events, or the kernel's totals of each task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    #[default]
    Events,
    /// The times come from the kernel's totals of each task, which have its run time and its time in run queues.
    Totals,
    /// The times come from the kernel's totals of each task, which have its run time but not its time in run queues.
    RunTime,
}

impl Basis {
    /// Determines the source of the times in a recording: events, totals or run times. `facts` says for each kind of
    /// fact, such as switches, whether and how it was recorded.
    pub fn of(facts: &RecordingFacts) -> Basis {
        match (facts.switches, facts.run_queue) {
            (Known::Kernel | Known::Recorder, _) => Basis::Events,
            (_, Known::Absent) => Basis::RunTime,
            _ => Basis::Totals,
        }
    }
}

/// The time of a thread or a process by state, in ns. The times of a thread add up to its lifetime inside the
/// analyzed span; the times of a process add up to the lifetimes of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The time on a CPU of the thread or of the process's threads, in nanoseconds.
    pub on_cpu: u64,
    /// The time of waiting for a CPU in run queues, in nanoseconds.
    pub run_queue: u64,
    /// The time asleep in nanoseconds: the thread waited for a timer, a pipe, a child or input. The time of stopped
    /// threads counts as sleep.
    pub sleep: u64,
    /// The time in nanoseconds in uninterruptible waits: storage, vfork, kernel locks.
    pub blocked: u64,
    /// The time asleep or blocked in nanoseconds, if the recording has only totals, which do not show which of the two
    /// it was.
    pub asleep_or_blocked: u64,
    /// The time in nanoseconds that is not known, because events are missing and the kernel's totals do not show it
    /// either.
    pub unknown: u64,
    /// The source of these times: scheduling events, or the kernel's totals of each task.
    pub basis: Basis,
}

impl Times {
    fn all(&self) -> [u64; 6] {
        [
            self.on_cpu,
            self.run_queue,
            self.sleep,
            self.blocked,
            self.asleep_or_blocked,
            self.unknown,
        ]
    }

    /// Returns the time `ns` if the source of these times is one of `by`; `None` for another source, or if the kernel's
    /// totals are the source and all of the time is unknown.
    fn known(&self, ns: u64, by: &[Basis]) -> Option<u64> {
        let nothing = self.basis != Basis::Events && self.unknown > 0 && self.unknown == self.sum();
        (by.contains(&self.basis) && !nothing).then_some(ns)
    }

    /// The time on a CPU in ns; `None` if the source of the times does not show it.
    pub fn on_cpu_known(&self) -> Option<u64> {
        self.known(self.on_cpu, &[Basis::Events, Basis::Totals, Basis::RunTime])
    }

    /// The time of waiting for a CPU in ns; `None` if the source of the times does not show it.
    pub fn run_queue_known(&self) -> Option<u64> {
        self.known(self.run_queue, &[Basis::Events, Basis::Totals])
    }

    /// The time asleep in ns; `None` if the source of the times does not show it.
    pub fn sleep_known(&self) -> Option<u64> {
        self.known(self.sleep, &[Basis::Events])
    }

    /// The time in uninterruptible waits in ns; `None` if the source of the times does not show it.
    pub fn blocked_known(&self) -> Option<u64> {
        self.known(self.blocked, &[Basis::Events])
    }

    /// The time asleep or blocked in ns, if only the sum is known. With scheduling events, the two parts are known
    /// instead.
    pub fn asleep_or_blocked_known(&self) -> Option<u64> {
        self.known(self.asleep_or_blocked, &[Basis::Totals])
    }

    /// The time in ns in which the thread, or the process's threads, were known to be off CPU.
    pub fn off_cpu(&self) -> u64 {
        let [_, waits @ .., _] = self.all();
        waits.into_iter().fold(0, u64::saturating_add)
    }

    /// The sum of the thread's or process's times in all states, in ns.
    pub fn sum(&self) -> u64 {
        self.all().into_iter().fold(0, u64::saturating_add)
    }

    /// Whether the sum of the times has reached the limit of 2^64 ns, about 584 years, so that the trace must be
    /// damaged.
    pub fn is_saturated(&self) -> bool {
        self.sum() == u64::MAX
    }

    /// Adds the times by state of another thread or process to these times.
    pub fn add(&mut self, other: &Times) {
        self.on_cpu = self.on_cpu.saturating_add(other.on_cpu);
        self.run_queue = self.run_queue.saturating_add(other.run_queue);
        self.sleep = self.sleep.saturating_add(other.sleep);
        self.blocked = self.blocked.saturating_add(other.blocked);
        self.asleep_or_blocked = self
            .asleep_or_blocked
            .saturating_add(other.asleep_or_blocked);
        self.basis = self.basis.max(other.basis);
        self.unknown = self.unknown.saturating_add(other.unknown);
    }
}

/// Parts of a thread's or process's [`Times`] by cause, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// The part of the time in run queues that followed a preemption of the thread or its yielding, in nanoseconds. The
    /// rest followed a wake-up or a fork.
    pub preempted: u64,
    /// The part of the blocked time in nanoseconds that the thread waited for block I/O (`in_iowait`).
    pub io: u64,
    /// The part of the blocked time in nanoseconds in which a vfork parent waited for the exec or the exit of its
    /// child.
    pub vfork: u64,
    /// The part of the time asleep in nanoseconds in which the thread was stopped or traced.
    pub stopped: u64,
}

impl Causes {
    /// Adds the times of another thread or process, split by cause, to these times.
    pub fn add(&mut self, other: &Causes) {
        self.preempted = self.preempted.saturating_add(other.preempted);
        self.io = self.io.saturating_add(other.io);
        self.vfork = self.vfork.saturating_add(other.vfork);
        self.stopped = self.stopped.saturating_add(other.stopped);
    }
}
