//! The settings of the programs.

use crate::wire;

/// The settings of the programs: the tasks and CPUs that they trace, and their memory.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Record every task instead of only the followed ones.
    pub all: bool,
    /// The CPUs whose scheduling events are recorded.
    pub cpus: Vec<u16>,
    /// The number of other CPUs that get slots when their first event comes; `None`: the
    /// others are left out.
    pub later_cpus: Option<u32>,
    /// The number of CPU numbers that the kernel may use.
    pub possible_cpus: usize,
    /// The bytes of each CPU's slots: a power of two, at least a page.
    pub sched_ring: u32,
    /// The bytes of the lifecycle ring: a power of two, at least a page.
    pub life_ring: u32,
    /// The longest argv that is copied, in bytes.
    pub argv_limit: u32,
    /// The kernel's largest task id, plus one.
    pub pid_max: u32,
    /// Processes to follow from the start, by their ids in this process's pid namespace.
    pub targets: Vec<u32>,
    /// The cgroup (v2) to follow from the start.
    pub target_cgroup: Option<u64>,
    /// The containers to follow.
    pub containers: Containers,
    /// Follow the servers that answer followed tasks: those of this process's user, or of any user if root records.
    pub servers: bool,
    /// Sum up the system calls of the followed tasks.
    pub syscalls: bool,
    /// Record the stacks of the followed tasks.
    pub stacks: Option<Sampling>,
    /// Record only forks, execs and ends, without any program on switches and wakings.
    pub light: bool,
    /// Count each attempt to emit an event.
    pub count_emitted: bool,
    /// Ignore the switches of this task, for tests of what some guests' kernels do; 0: none.
    pub hidden_tid: u32,
    /// Record also the switches among other tasks of which there are sums, for a test of the sums.
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
    /// The setting with this number.
    pub fn of(number: u32) -> Option<Containers> {
        let all = [Containers::None, Containers::Mine, Containers::All];
        all.into_iter().find(|setting| *setting as u32 == number)
    }
}

/// The recorded stacks of the followed tasks: samples on the CPUs that are online at the start and on those that
/// [`crate::Tracer::sample_on`] adds, and stacks of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The samples a second on each CPU; 0: no samples.
    pub hz: u32,
    /// The shortest wait whose stack is recorded, in ns; 0: no stacks of waits.
    pub wait_least: u64,
    /// The bytes of the ring of samples: a power of two, at least a page.
    pub ring: u32,
}

impl Settings {
    /// The number of slots of each CPU.
    pub(crate) fn slots(&self) -> u32 {
        self.sched_ring / size_of::<wire::Slot>() as u32
    }

    /// The bytes of the set of followed tasks: one for each tid, in whole words of four. A tid has at most 22 bits
    /// (PID_MAX_LIMIT), and a value of a map at most 4 MiB.
    pub(crate) fn followed(&self) -> u32 {
        self.pid_max.clamp(1, 1 << 22).next_multiple_of(4)
    }

    /// The number of CPUs that can have slots.
    pub fn regions(&self) -> u32 {
        let cpus = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        cpus.saturating_add(self.later_cpus.unwrap_or(0))
    }
}
