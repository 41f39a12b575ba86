//! The machine, the recording and the seed of a run.

use crate::program::World;

/// The recorded tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Every task.
    All,
    /// COMMAND and its descendants: their switches, their wakings, the wakings by them, and their lifecycle.
    Command,
}

/// The properties of the simulated kernel in which kernels differ, and the chances of rare races in 1/1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// `sched_process_exit` precedes the release of the memory and the wake-up of a vfork parent, as in 6.16 and later.
    pub exit_first: bool,
    /// A sleeper calls `schedule()` some time after it sets its state. In between it can be
    /// woken (logged R, not preempted) or preempted (logged S with the preempt flag).
    pub window: u16,
    /// A sleeper's switch-out is stamped some time after its state was read. A waking in
    /// between has the earlier stamp, and the switch-out is logged S (`try_to_wake_up`
    /// traces before it waits for `on_cpu`).
    pub late_stamp: u16,
    /// A woken task preempts the one that runs on its CPU.
    pub preempt: u16,
    /// Time slice in ns.
    pub slice: u64,
    /// The limit of task ids, which are all below it.
    pub pid_max: u32,
    /// The limit of recorded tasks; of others, a quarter of it. Forks beyond it fail.
    pub max_tasks: u32,
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel {
            exit_first: true,
            window: 30,
            late_stamp: 10,
            preempt: 300,
            slice: 3_000_000,
            pid_max: 32_768,
            max_tasks: 4_096,
        }
    }
}

/// The settings of a run, which determine its events and its truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The seed of all draws. Runs with equal settings have equal bytes.
    pub seed: u64,
    /// The number of CPUs, 1 to 256.
    pub cpus: u16,
    /// The recorded tasks.
    pub follow: Follow,
    /// The unrecorded time before tracing is attached, in ns.
    pub warm_up: u64,
    /// The time from attaching to the start of the recording's span in ns, at least 50 µs. Its events and the snapshot
    /// are recorded, but the truth does not count it.
    pub attach: u64,
    /// The span of the recording in ns.
    pub duration: u64,
    /// The recorded time after the span in ns.
    pub tail: u64,
    /// The span ends with this many recorded events, if that is earlier.
    pub max_events: u64,
    /// The span ends this long after COMMAND's end (ns), if that is earlier.
    pub linger: Option<u64>,
    /// All times are rounded down to a multiple of this many ns. Above 1 there are equal
    /// times, also of a cause and its effect. At most 1000: no effect gets an earlier time
    /// than its cause.
    pub grain: u64,
    /// The time from one [`tr_format::event::LifeKind::Watermark`] to the next in ns.
    pub progress: u64,
    /// The kernel.
    pub kernel: Kernel,
    /// Programs and residents.
    pub world: World,
}

impl Config {
    /// A recording of this world, on this many CPUs, of this length in ns.
    pub fn new(world: World, cpus: u16, duration: u64) -> Config {
        Config {
            seed: 1,
            cpus: cpus.clamp(1, 256),
            follow: Follow::Command,
            warm_up: 1_000_000,
            attach: 1_000_000,
            duration,
            tail: 0,
            max_events: u64::MAX,
            linger: None,
            grain: 1,
            progress: 250_000_000,
            kernel: Kernel::default(),
            world,
        }
    }

    /// These settings with another seed.
    pub fn seed(mut self, seed: u64) -> Config {
        self.seed = seed;
        self
    }

    /// These settings, but every task is recorded.
    pub fn all(mut self) -> Config {
        self.follow = Follow::All;
        self
    }
}
