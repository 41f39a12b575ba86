//! The machine, the recording and the seed of a run.

use crate::program::World;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Every task.
    All,
    /// COMMAND and its descendants: switches in which one of them takes part,
    /// wakings in which one is waker or wakee, their lifecycle.
    Command,
}

/// How the simulated kernel behaves, where kernels differ or races are rare.
/// Chances are in 1/1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// `sched_process_exit` comes before the memory is given back and a vfork
    /// parent is woken, as since 6.16; before that it comes after.
    pub exit_first: bool,
    /// A sleeper first sets its state and calls `schedule()` a little later: in
    /// between it can be woken (logged R, not preempted), or preempted (logged
    /// S with the preempt flag).
    pub window: u16,
    /// A sleeper's switch-out is stamped a little after its state was read: in
    /// between it can be woken, so that the waking is stamped before the
    /// switch-out, which is logged S (`try_to_wake_up` traces before it waits
    /// for `on_cpu`).
    pub late_stamp: u16,
    /// A woken task preempts the one that runs on its CPU.
    pub preempt: u16,
    /// Time slice in ns.
    pub slice: u64,
    /// Ids of tasks are below this.
    pub pid_max: u32,
    /// No fork succeeds while there are this many recorded tasks; a quarter of
    /// it is the limit for the others.
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

/// A run: everything that its events and its truth follow from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Two runs with the same configuration are equal to the byte.
    pub seed: u64,
    /// 1 to 256.
    pub cpus: u16,
    /// What is recorded.
    pub follow: Follow,
    /// How long the machine has been running when tracing is attached, ns.
    /// Nothing of it is recorded.
    pub warm_up: u64,
    /// From attaching to the start of the recording's span, ns. Events of this
    /// time are recorded, and the tasks alive are written down; the truth does
    /// not count it. At least 50 µs.
    pub attach: u64,
    /// The recording's span, ns.
    pub duration: u64,
    /// How long events are still recorded after the span, ns.
    pub tail: u64,
    /// The span ends when this many events have been recorded, if that is
    /// earlier.
    pub max_events: u64,
    /// The span ends this long after COMMAND has ended, if that is earlier.
    pub linger: Option<u64>,
    /// All times are rounded down to a multiple of this many ns; above 1 there
    /// are equal times, also of events that follow from each other. Causes and
    /// effects less than 2 µs apart are meant not to be turned round by it, so
    /// more than 1000 is not supported.
    pub grain: u64,
    /// From one [`tr_format::event::LifeKind::Progress`] to the next, ns.
    pub progress: u64,
    /// How the kernel behaves.
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

    /// The same with another seed.
    pub fn seed(mut self, seed: u64) -> Config {
        self.seed = seed;
        self
    }

    /// The same, recording everything.
    pub fn all(mut self) -> Config {
        self.follow = Follow::All;
        self
    }
}
