//! The settings of a run: the machine, the recording and the seed.

use crate::program::World;

/// The tasks that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Every task of the machine is recorded.
    All,
    /// COMMAND and its descendants are recorded: their switches, their wakings, the wakings by them, and
    /// their lifecycle.
    Command,
}

/// The properties in which kernels differ, for the simulated kernel, and the chances of rare races in 1/1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Whether `sched_process_exit` precedes the release of the memory and the wake-up of a vfork parent, as
    /// in 6.16 and later.
    pub exit_first: bool,
    /// The chance in 1/1000 that a sleeper calls `schedule()` some time after it sets its state. In between
    /// it can be woken (logged R, not preempted) or preempted (logged S with the preempt flag).
    pub window: u16,
    /// The chance in 1/1000 that a sleeper's switch-out is stamped some time after its state was read. A
    /// waking in between has the earlier stamp, and the switch-out is logged S (`try_to_wake_up` traces
    /// before it waits for `on_cpu`).
    pub late_stamp: u16,
    /// The chance in 1/1000 that a woken task preempts the task that runs on its CPU.
    pub preempt: u16,
    /// The length of a time slice in ns.
    pub slice: u64,
    /// The limit of task ids, which are all below it.
    pub pid_max: u32,
    /// The largest number of recorded tasks. Of other tasks, a quarter as many may live. Forks beyond these
    /// limits fail.
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
    /// The seed of all random draws of the run. Runs with equal settings have equal bytes.
    pub seed: u64,
    /// The number of CPUs, 1 to 256.
    pub cpus: u16,
    /// The tasks that are recorded.
    pub follow: Follow,
    /// The unrecorded time before tracing is attached, in ns.
    pub warm_up: u64,
    /// The time from attaching to the start of the recording's span in ns, at least 50 µs. The events in this
    /// time and the snapshot are recorded, but the truth does not count this time.
    pub attach: u64,
    /// The length of the span of the recording in ns.
    pub duration: u64,
    /// The recorded time after the span in ns.
    pub tail: u64,
    /// The number of recorded events with which the span ends, if that is earlier than `duration`.
    pub max_events: u64,
    /// The time in ns after COMMAND's end at which the span ends, if that is earlier than `duration`.
    pub linger: Option<u64>,
    /// All times are rounded down to a multiple of this many ns. Above 1 there are equal
    /// times, also of a cause and its effect. At most 1000: no effect gets an earlier time
    /// than its cause.
    pub grain: u64,
    /// The time from one [`tr_format::event::LifeKind::Watermark`] to the next in ns.
    pub progress: u64,
    /// The properties of the simulated kernel.
    pub kernel: Kernel,
    /// The programs, and the processes that exist from the beginning.
    pub world: World,
}

impl Config {
    /// The settings for a recording of this world, on this many CPUs, that is `duration` ns long.
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

    /// Replaces the seed of these settings.
    pub fn seed(mut self, seed: u64) -> Config {
        self.seed = seed;
        self
    }

    /// Changes these settings so that every task is recorded.
    pub fn all(mut self) -> Config {
        self.follow = Follow::All;
        self
    }
}
