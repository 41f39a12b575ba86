//! The settings of the BPF programs that record a build.

use crate::wire;

/// The settings of the BPF programs: the tasks and CPUs that they record, and their memory.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Whether the BPF programs record every task of the machine, and not only those that the other settings choose,
    /// with their descendants.
    pub all: bool,
    /// The numbers of the CPUs whose scheduling events are recorded from the start.
    pub cpus: Vec<u16>,
    /// The number of CPUs that can be added during the recording. Such a CPU gets memory for scheduling events soon
    /// after its first event, which is lost. `None` if only the CPUs in `cpus` are recorded.
    pub later_cpus: Option<u32>,
    /// The number of CPUs that the kernel is prepared for on this machine (possible CPUs).
    pub possible_cpus: usize,
    /// The size in bytes of the slots for scheduling events of each CPU: a power of two, at least a page.
    pub sched_slots: u32,
    /// The size in bytes of the ring buffer for lifecycle events: a power of two, at least a page.
    pub life_ring: u32,
    /// The largest length of an argument vector that the BPF programs copy, in bytes.
    pub argv_limit: u32,
    /// The kernel's largest task id, plus one.
    pub pid_max: u32,
    /// The processes whose recording begins at the start, by their ids in the recorder's pid namespace. Their
    /// descendants are recorded, too.
    pub targets: Vec<u32>,
    /// The id of the cgroup (v2) whose tasks are recorded: those in it at the start, and those that come into it later.
    pub target_cgroup: Option<u64>,
    /// The containers that are recorded in addition to the descendants of recorded tasks.
    pub containers: Containers,
    /// Whether to record the servers that answer recorded tasks: the servers of this process's user, or of
    /// any user if root records.
    pub servers: bool,
    /// Whether to sum up the system calls of the recorded tasks.
    pub syscalls: bool,
    /// The settings for recording the stacks of the recorded tasks; `None` if stacks are not recorded.
    pub stacks: Option<Sampling>,
    /// Whether to record only the lifecycle events of tasks (forks, execs and ends), without any BPF program
    /// on switches and wakings.
    pub light: bool,
    /// Whether the BPF programs count each attempt to emit an event, also those in which the event was lost.
    pub count_emitted: bool,
    /// The id of a task whose switches the BPF programs ignore; 0 for none. Tests use it to imitate the
    /// kernels of some virtual machines, which do not report all switches.
    pub hidden_tid: u32,
    /// Whether to record each switch among tasks that are not part of the recording, in addition to the sums of these
    /// tasks' CPU times. Only a test sets this, to compare the switches with the sums.
    pub keep_others: bool,
}

/// The containers that are recorded in addition to the descendants of recorded tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Containers {
    /// No container is recorded.
    None = 0,
    /// The containers that a daemon starts on the request of a recorded task are recorded.
    #[default]
    Mine = 1,
    /// All containers that begin during the recording are recorded.
    All = 2,
}

impl Containers {
    /// The setting for containers that has this number, which another process has sent; `None` if no setting has it.
    pub fn of(number: u32) -> Option<Containers> {
        let all = [Containers::None, Containers::Mine, Containers::All];
        all.into_iter().find(|setting| *setting as u32 == number)
    }
}

/// Settings for recording stacks of the recorded tasks: samples of running tasks, and stacks of waits. Samples are
/// taken on the CPUs that are online at the start, and on those that [`crate::Tracer::sample_on`] adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The number of stack samples a second on each CPU; 0 for no samples.
    pub hz: u32,
    /// The stack of a task is recorded when the task has waited for at least this time, in ns; with 0, no
    /// stacks of waits are recorded.
    pub wait_least: u64,
    /// The size in bytes of the ring buffer for stack samples: a power of two, at least a page.
    pub ring: u32,
}

impl Settings {
    /// The number of slots for scheduling events that each CPU has in mapped memory.
    pub(crate) fn slots(&self) -> u32 {
        self.sched_slots / size_of::<wire::Slot>() as u32
    }

    /// The size in bytes of the set of tasks that the BPF programs follow (record): one byte for each tid, in whole
    /// words of four bytes. A tid has at most 22 bits (PID_MAX_LIMIT), and a value of a map at most 4 MiB.
    pub(crate) fn followed(&self) -> u32 {
        self.pid_max.clamp(1, 1 << 22).next_multiple_of(4)
    }

    /// The largest number of CPUs that can have memory for scheduling events.
    pub fn regions(&self) -> u32 {
        let cpus = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        cpus.saturating_add(self.later_cpus.unwrap_or(0))
    }
}
