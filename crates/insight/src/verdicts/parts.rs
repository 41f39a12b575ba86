//! Divides the wall time of a run or a step into parts: work, and waits by their cause.

use std::collections::BTreeMap;

use tr_analyze::contention::Division;
use tr_analyze::kinds::TimeKind;
use tr_analyze::model::Analysis;
use tr_analyze::share;
use tr_format::event::Ktime;

use crate::resources::loads::run_within;
use tr_text::named;
use tr_text::words::{OTHER_WAITS, SLEEP, UNKNOWN};

named! {
    /// A part of the wall time of a run or a step, by the use of the time (such as work or a wait for a disk). Waits
    /// for a CPU are divided by their cause.
    pub enum WallPart {
        /// The part of a wall time on a CPU, without the time that the hypervisor took from that CPU.
        Work = "work", "on a CPU";
        /// The part of a wall time in run queues while other tasks of the build had the CPU.
        Own = "own-tasks", "run-queue wait: its own tasks";
        /// The part of a wall time in run queues while tasks outside of the build had the CPU.
        Others = "others", "run-queue wait: other tasks";
        Quota = "quota", "run-queue wait: the quota";
        Hypervisor = "hypervisor", "the hypervisor";
        /// The part of a wall time in run queues while no task that the recording knows had the CPU.
        Nobody = "run-queue", "run-queue wait: unknown";
        Disk = "disk", "waits for disks and files";
        /// The part of a wall time in waits for memory: direct reclaim, and pages from swap.
        Memory = "memory", "waits for memory";
        Network = "network", "waits for the network";
        /// The part of a wall time in waits for timers, and in sleeps for which no other reason is known.
        Sleep = "sleep", SLEEP;
        Outside = "outside", "waits for tasks not recorded";
        /// The part of a wall time in waits for a terminal, stops, and other waits in the kernel.
        Other = "other", OTHER_WAITS;
        Unknown = "unknown", UNKNOWN;
        /// The part of a wall time before COMMAND's exec and after COMMAND's end.
        Around = "around", "before and after the command";
        /// Waits of a step for a lock that a task outside of the step held.
        Lock = "lock", "waits for a lock";
        /// Waits of a step for a program of this machine at the other end of a socket.
        Server = "server", "waits for a server";
        /// Waits of a step for other work of tasks outside of the step.
        Steps = "steps", "waits for work of other steps";
    }
}

impl WallPart {
    /// The parts that the wall time of a whole run can have, in the order of their definition.
    pub fn of_runs() -> impl Iterator<Item = WallPart> {
        let of_steps = [WallPart::Lock, WallPart::Server, WallPart::Steps];
        let all = WallPart::ALL.into_iter();
        all.filter(move |part| !of_steps.contains(part))
    }

    /// The part of a wall time to which a kind of time belongs. A wait for a CPU belongs to `Nobody` at first, because
    /// the kind of time does not show which tasks had the CPU. Such a wait is later divided among these tasks.
    pub fn of(kind: TimeKind) -> WallPart {
        match kind {
            TimeKind::OnCpu => WallPart::Work,
            TimeKind::RunQueue => WallPart::Nobody,
            TimeKind::Disk => WallPart::Disk,
            TimeKind::Memory => WallPart::Memory,
            TimeKind::Network => WallPart::Network,
            TimeKind::Sleep => WallPart::Sleep,
            TimeKind::Outside => WallPart::Outside,
            TimeKind::Terminal | TimeKind::Stopped | TimeKind::Blocked | TimeKind::Others => {
                WallPart::Other
            }
            TimeKind::SleepOrBlocked | TimeKind::Lived | TimeKind::Unknown => WallPart::Unknown,
        }
    }

    /// Whether the build's own tasks had a CPU in this part of a wall time. This is so in two parts: the build ran, or
    /// the build waited for a CPU on which another task of the build ran. The sum of these two parts depends only on
    /// the number of CPUs that the build has.
    pub fn is_run(self) -> bool {
        matches!(self, WallPart::Work | WallPart::Own)
    }

    /// Whether a task was able to run in this part of a wall time, but had no CPU.
    pub fn is_starved(self) -> bool {
        use WallPart::{Hypervisor, Nobody, Others, Own, Quota};
        matches!(self, Own | Others | Quota | Hypervisor | Nobody)
    }
}

/// A wall time divided into parts, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartTimes(BTreeMap<WallPart, u64>);

impl PartTimes {
    pub fn get(&self, part: WallPart) -> u64 {
        self.0.get(&part).copied().unwrap_or(0)
    }

    pub fn sum(&self, of: impl Fn(WallPart) -> bool) -> u64 {
        let parts = self.0.iter().filter(|(part, _)| of(**part));
        parts.fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    }

    pub fn add(&mut self, part: WallPart, ns: u64) {
        let sum = self.0.entry(part).or_default();
        *sum = sum.saturating_add(ns);
    }

    pub fn add_all(&mut self, other: &PartTimes) {
        other.0.iter().for_each(|(part, ns)| self.add(*part, *ns));
    }

    /// The time in nanoseconds in which a task was able to run, whether it had a CPU or not.
    pub fn wanted(&self) -> u64 {
        self.sum(|part| part == WallPart::Work || part.is_starved())
    }

    /// The time on a CPU as a percentage of the time in which a task was able to run; `None` if no task was able to
    /// run.
    pub fn share(&self) -> Option<u64> {
        let wanted = self.wanted();
        (wanted > 0).then(|| share(100, self.get(WallPart::Work), wanted))
    }

    /// Adds a wait for a CPU, divided among the tasks that had that CPU during the wait.
    pub fn add_run_queue(&mut self, ns: u64, had: Division) {
        self.add(WallPart::Own, had.own);
        self.add(WallPart::Others, had.others);
        let known = had.own.saturating_add(had.others);
        self.add(WallPart::Nobody, ns.saturating_sub(known));
    }

    /// Moves the time that the hypervisor and a CPU quota took during `span` from other parts to the parts `Hypervisor`
    /// and `Quota`. `throttled` has two times in nanoseconds for which the quota throttled tasks. The first time is
    /// counted from the last counter sample before the span to the first sample after the span, and the second time
    /// within the span itself.
    pub fn withhold(&mut self, analysis: &Analysis, span: (Ktime, Ktime), throttled: (u64, u64)) {
        let work = self.get(WallPart::Work);
        let run = run_within(analysis, span, work).unwrap_or(work);
        self.take(
            WallPart::Work,
            work.saturating_sub(run),
            WallPart::Hypervisor,
        );
        // Throttled tasks wait although their CPU is idle or runs other tasks. So the quota, and not the other tasks,
        // is the cause of these waits.
        let (around, inside) = throttled;
        let idle = around.min(self.get(WallPart::Nobody));
        self.take(WallPart::Nobody, idle, WallPart::Quota);
        self.take(
            WallPart::Others,
            inside.saturating_sub(idle),
            WallPart::Quota,
        );
    }

    /// Moves `ns` nanoseconds from the part `from` of a wall time to the part `to`. If `from` is shorter than that,
    /// `from` becomes 0, and the function returns the nanoseconds that could not be moved.
    pub fn take(&mut self, from: WallPart, ns: u64, to: WallPart) -> u64 {
        let had = self.get(from);
        let taken = ns.min(had);
        self.0.insert(from, had - taken);
        self.add(to, taken);
        ns - taken
    }
}

impl FromIterator<(WallPart, u64)> for PartTimes {
    fn from_iter<I: IntoIterator<Item = (WallPart, u64)>>(parts: I) -> PartTimes {
        PartTimes(parts.into_iter().collect())
    }
}
