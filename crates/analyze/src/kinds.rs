//! The kinds of time, and times by kind. Reports filter and merge these kinds; no report has other kinds.

/// A kind of time in the life of a thread, on a critical path or in a step of a build. Examples are time on a CPU and a
/// wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimeKind {
    /// The thread was on a CPU.
    OnCpu,
    /// The thread waited for a CPU.
    RunQueue,
    /// The thread waited for a disk or a file.
    Disk,
    /// The thread waited for memory: for its reclaim, or for pages from swap.
    Memory,
    /// The thread waited for the network.
    Network,
    /// The thread waited for a terminal.
    Terminal,
    /// The thread slept until a timer, or another interrupt of an unknown kind, ended the sleep.
    Sleep,
    /// The thread was stopped or traced, and no recorded task let it continue.
    Stopped,
    /// The thread was in an uninterruptible wait that is of none of the other kinds. An interrupt ended the wait.
    Blocked,
    /// The thread waited for a task that is not part of the recording, or for a kernel thread.
    Outside,
    /// The time of a step of the build in which tasks that are not part of the step worked or waited for a CPU.
    Others,
    /// The thread was off CPU and not in a run queue. Only totals of the thread's times are known, and these totals do
    /// not show what the thread waited for.
    SleepOrBlocked,
    /// The thread lived, on a CPU or off CPU. Only totals of the thread's times are known, and these totals do not show
    /// what the thread did at which time.
    Lived,
    /// The time in which it is not known what the thread did or waited for, for example because events are missing or
    /// its wait has not ended yet.
    Unknown,
}

impl TimeKind {
    /// A list of all kinds of time, such as time on a CPU or waits for a disk, in the order of their definition.
    pub const ALL: [TimeKind; 14] = [
        TimeKind::OnCpu,
        TimeKind::RunQueue,
        TimeKind::Disk,
        TimeKind::Memory,
        TimeKind::Network,
        TimeKind::Terminal,
        TimeKind::Sleep,
        TimeKind::Stopped,
        TimeKind::Blocked,
        TimeKind::Outside,
        TimeKind::Others,
        TimeKind::SleepOrBlocked,
        TimeKind::Lived,
        TimeKind::Unknown,
    ];

    /// The name of the kind of time in JSON, CSV and datasets.
    pub fn name(self) -> &'static str {
        match self {
            TimeKind::OnCpu => "on_cpu",
            TimeKind::RunQueue => "run_queue",
            TimeKind::Disk => "disk",
            TimeKind::Memory => "memory",
            TimeKind::Network => "network",
            TimeKind::Terminal => "terminal",
            TimeKind::Sleep => "sleep",
            TimeKind::Stopped => "stopped",
            TimeKind::Blocked => "blocked",
            TimeKind::Outside => "outside",
            TimeKind::Others => "others",
            TimeKind::SleepOrBlocked => "asleep_or_blocked",
            TimeKind::Lived => "program",
            TimeKind::Unknown => "unknown",
        }
    }

    /// Whether a time of this kind is a wait of the thread itself for something other than a CPU, such as a disk or
    /// another task.
    pub fn is_wait(self) -> bool {
        match self {
            TimeKind::Disk
            | TimeKind::Memory
            | TimeKind::Network
            | TimeKind::Terminal
            | TimeKind::Sleep
            | TimeKind::Stopped
            | TimeKind::Blocked
            | TimeKind::Outside
            | TimeKind::SleepOrBlocked => true,
            TimeKind::OnCpu
            | TimeKind::RunQueue
            | TimeKind::Others
            | TimeKind::Lived
            | TimeKind::Unknown => false,
        }
    }
}

/// Sums of time in ns, one for each kind of time, such as time on a CPU or waits for a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByKind([u64; TimeKind::ALL.len()]);

impl ByKind {
    /// The sum of the time of one kind, in ns.
    pub fn of(&self, kind: TimeKind) -> u64 {
        self.0.get(kind as usize).copied().unwrap_or(0)
    }

    /// The sum of the times of several kinds together, in ns.
    pub fn of_all(&self, kinds: impl IntoIterator<Item = TimeKind>) -> u64 {
        let times = kinds.into_iter().map(|kind| self.of(kind));
        times.fold(0, u64::saturating_add)
    }

    /// The sum of the times of all kinds together, in ns.
    pub fn sum(&self) -> u64 {
        self.of_all(TimeKind::ALL)
    }

    /// Adds `ns` to the sum of the time of one kind.
    pub fn add(&mut self, kind: TimeKind, ns: u64) {
        if let Some(sum) = self.0.get_mut(kind as usize) {
            *sum = sum.saturating_add(ns);
        }
    }

    pub fn add_all(&mut self, other: &ByKind) {
        for kind in TimeKind::ALL {
            self.add(kind, other.of(kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_place() {
        for (at, kind) in TimeKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            let mut times = ByKind::default();
            times.add(kind, 3);
            times.add_all(&times.clone());
            assert_eq!((times.of(kind), times.sum()), (6, 6));
        }
    }
}
