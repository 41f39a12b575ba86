//! The settings of the BPF programs.

use crate::wire;

/// The settings of the BPF programs: the tasks and CPUs that they trace, and their memory.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Whether every task is recorded, and not only the followed ones.
    pub all: bool,
    /// The CPUs whose scheduling events are recorded.
    pub cpus: Vec<u16>,
    /// The number of other CPUs that get slots when their first event comes. `None` if the events of other
    /// CPUs are not recorded.
    pub later_cpus: Option<u32>,
    /// The number of CPU numbers that the kernel may use on this machine.
    pub possible_cpus: usize,
    /// The size in bytes of each CPU's slots of scheduling events: a power of two, at least a page.
    pub sched_ring: u32,
    /// The size in bytes of the ring of lifecycle events: a power of two, at least a page.
    pub life_ring: u32,
    /// The longest argument vector that is copied, in bytes.
    pub argv_limit: u32,
    /// The kernel's largest task id, plus one.
    pub pid_max: u32,
    /// The processes to follow from the start, by their ids in this process's pid namespace.
    pub targets: Vec<u32>,
    /// The cgroup (v2) to follow from the start.
    pub target_cgroup: Option<u64>,
    /// The containers to follow in addition to the followed tasks' descendants.
    pub containers: Containers,
    /// Whether to follow the servers that answer followed tasks: the servers of this process's user, or of
    /// any user if root records.
    pub servers: bool,
    /// Whether to sum up the system calls of the followed tasks.
    pub syscalls: bool,
    /// The settings for recording the stacks of the followed tasks; `None` if they are not recorded.
    pub stacks: Option<Sampling>,
    /// Whether to record only forks, execs and ends, without any program on switches and wakings.
    pub light: bool,
    /// Whether to count each attempt to emit an event.
    pub count_emitted: bool,
    /// The id of a task whose switches are ignored, for tests of what some guests' kernels do; 0 for none.
    pub hidden_tid: u32,
    /// Whether to record the switches among tasks that are not followed also where there are sums of them,
    /// for a test of the sums.
    pub keep_others: bool,
}

/// The containers to follow in addition to the descendants of the followed tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Containers {
    /// No container is followed.
    None = 0,
    /// The containers that a daemon starts on the request of a followed task are followed.
    #[default]
    Mine = 1,
    /// All containers that begin are followed.
    All = 2,
}

impl Containers {
    /// The setting that this number stands for.
    pub fn of(number: u32) -> Option<Containers> {
        let all = [Containers::None, Containers::Mine, Containers::All];
        all.into_iter().find(|setting| *setting as u32 == number)
    }
}

/// Which stacks of the followed tasks are recorded: samples on the CPUs that are online at the start and on
/// those that [`crate::Tracer::sample_on`] adds, and stacks of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The number of samples a second on each CPU; 0 for no samples.
    pub hz: u32,
    /// The shortest wait whose stack is recorded, in ns; 0: no stacks of waits.
    pub wait_least: u64,
    /// The size in bytes of the ring of samples: a power of two, at least a page.
    pub ring: u32,
}

impl Settings {
    /// The number of slots for scheduling events that each CPU has.
    pub(crate) fn slots(&self) -> u32 {
        self.sched_ring / size_of::<wire::Slot>() as u32
    }

    /// The size in bytes of the set of followed tasks: one byte for each tid, in whole words of four bytes. A
    /// tid has at most 22 bits (PID_MAX_LIMIT), and a value of a map at most 4 MiB.
    pub(crate) fn followed(&self) -> u32 {
        self.pid_max.clamp(1, 1 << 22).next_multiple_of(4)
    }

    /// The number of CPUs that can have slots.
    pub fn regions(&self) -> u32 {
        let cpus = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        cpus.saturating_add(self.later_cpus.unwrap_or(0))
    }
}
