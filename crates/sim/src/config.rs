//! The settings of a simulated run: the machine, the recording and the seed of random numbers.

use crate::program::World;

/// The selection of the simulated tasks that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Every task of the simulated machine is recorded.
    All,
    /// The switches, forks, execs and exits of COMMAND and its descendants are recorded, and the wakings of and by
    /// these tasks.
    Command,
}

/// The properties of the simulated kernel in which real kernels differ, and the chances of rare
/// races in 1/1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Whether the simulated kernel emits `sched_process_exit` before it releases the memory and
    /// wakes a vfork parent, as Linux 6.16 and later do.
    pub exit_first: bool,
    /// The chance in 1/1000 that a simulated task calls `schedule()` only some time after it has set its sleep state.
    /// In between, the task can be woken (then its switch-out has the state R and is no preemption), or preempted (then
    /// its switch-out has the state S and the preempt flag).
    pub window: u16,
    /// The chance in 1/1000, for a sleep to which `window` applies, that the switch-out gets its time stamp only some
    /// time after the task's state was read. If the task is woken in the meantime, the waking has the earlier time
    /// stamp, although the switch-out still has the state S (`try_to_wake_up` traces before it waits for `on_cpu`).
    pub late_stamp: u16,
    /// The chance in 1/1000 that a woken task preempts the task that runs on its simulated CPU.
    pub preempt: u16,
    /// The length of a time slice of the simulated scheduler in ns.
    pub slice: u64,
    /// The upper limit of task ids on the simulated machine. All ids are below it.
    pub pid_max: u32,
    /// The largest number of recorded tasks that live at once on the simulated machine. At most a quarter of this
    /// number of unrecorded tasks can live at once. Forks beyond these limits fail.
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

/// The settings of a simulated run. They determine all of its events and the truth about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The seed of all random numbers of the simulated run. Runs with equal settings have equal
    /// bytes.
    pub seed: u64,
    /// The number of CPUs of the simulated machine, 1 to 256.
    pub cpus: u16,
    /// The selection of the simulated tasks that are recorded.
    pub follow: Follow,
    /// The simulated time before tracing is attached, in ns. Nothing is recorded during this time.
    pub warm_up: u64,
    /// The simulated time from attaching to the start of the recording's span in ns, at least 50
    /// µs. The events in this time and the snapshot of tasks are recorded, but the truth does not
    /// count this time.
    pub attach: u64,
    /// The length of the simulated recording's span in ns.
    pub duration: u64,
    /// The time in ns after the end of the recorded span for which the simulation still records events.
    pub tail: u64,
    /// The number of recorded events, those before the span included, with which the simulated recording's span ends,
    /// unless it has ended before.
    pub max_events: u64,
    /// The time in ns from COMMAND's end to the end of the simulated recording's span. The span ends earlier if
    /// `duration` is over earlier. `None`: COMMAND's end does not end the span.
    pub linger: Option<u64>,
    /// The resolution of the simulated clock in ns: all times are rounded down to a multiple of the resolution. With a
    /// resolution above 1, a cause and its effect can have the same time. The resolution is at most 1000, so that no
    /// effect gets an earlier time than its cause.
    pub grain: u64,
    /// The simulated time in ns from one [`tr_format::event::LifeKind::Watermark`] to the next. A watermark says that
    /// all earlier events are in the trace.
    pub progress: u64,
    /// The properties of the simulated kernel.
    pub kernel: Kernel,
    /// The programs of the simulated run, and the processes that exist from its beginning.
    pub world: World,
}

impl Config {
    /// The settings for a simulated recording of this world on this many CPUs. Its span is
    /// `duration` ns long.
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

    /// Replaces the seed of random numbers in these settings of a simulated run.
    pub fn seed(mut self, seed: u64) -> Config {
        self.seed = seed;
        self
    }

    /// Changes these settings of a simulated run so that every task is recorded.
    pub fn all(mut self) -> Config {
        self.follow = Follow::All;
        self
    }
}
