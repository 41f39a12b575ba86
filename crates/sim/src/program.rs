//! The simulated tasks' programs, and their world.

/// A length of time in ns, drawn evenly from `lo..=hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The shortest length in ns.
    pub lo: u64,
    /// The longest length in ns.
    pub hi: u64,
}

/// A length of `lo` to `hi` ns.
pub const fn ns(lo: u64, hi: u64) -> Span {
    Span { lo, hi }
}

/// A length of `lo` to `hi` µs.
pub const fn us(lo: u64, hi: u64) -> Span {
    Span {
        lo: lo * 1_000,
        hi: hi * 1_000,
    }
}

/// A length of `lo` to `hi` ms.
pub const fn ms(lo: u64, hi: u64) -> Span {
    Span {
        lo: lo * 1_000_000,
        hi: hi * 1_000_000,
    }
}

/// A channel of the world (a pipe, a futex, a job server): the number of posts not taken yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chan {
    /// The number of the channel for a task with argument 0.
    pub base: u16,
    /// The distance for each unit of the task's argument.
    pub stride: u16,
}

/// The channel `n`, the same for all tasks.
pub const fn chan(n: u16) -> Chan {
    Chan { base: n, stride: 0 }
}

/// The channel `n` plus the task's argument.
pub const fn own_chan(n: u16) -> Chan {
    Chan { base: n, stride: 1 }
}

/// The argument of a new task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The argument of the parent.
    Same,
    /// The parent's counter of this loop.
    Loop(u8),
}

/// One operation of a task. An operation on another task draws one; if none fits it does
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Runs for this time.
    Run(Span),
    /// Sleeps (S) until a timer's interrupt.
    Sleep(Span),
    /// Waits for the disk (D, in_iowait) until its interrupt.
    Io(Span),
    /// Waits for a kernel lock (D, not in_iowait), until an interrupt frees it.
    Lock(Span),
    /// Yields the CPU (`sched_yield`).
    Yield,
    /// Forks a child that runs this program.
    Fork(u16, Arg),
    /// Makes a child that runs this program by `vfork`, and waits (D) for the child's exec or exit.
    Vfork(u16, Arg),
    /// Makes a thread of this process that runs this program (`clone`).
    Thread(u16, Arg),
    /// Executes this image, which kills the process's other threads, and goes on with the next operation.
    Exec(u16),
    /// Waits for one child. Does nothing if there are no children.
    Wait,
    /// Waits for all children.
    WaitAll,
    /// Posts to a channel, and wakes a task that waits for it.
    Post(Chan),
    /// Takes one post from a channel; sleeps (S) until there is one.
    Take(Chan),
    /// Takes one post from a channel; sleeps (S) until there is one, but gives up after this time.
    TakeFor(Chan, Span),
    /// Takes one post from a channel; goes to this operation if there is none.
    Poll(Chan, u16),
    /// Wakes a sleeping task in vain.
    Poke,
    /// Changes the name of the task (`prctl(PR_SET_NAME)`).
    Rename,
    /// Moves its process to another cgroup.
    MoveCgroup,
    /// Kills another process (SIGKILL).
    Kill,
    /// Stops another process (SIGSTOP).
    Stop,
    /// Continues a stopped process (SIGCONT).
    Continue,
    /// Goes back to operation `to` until the block was done `times` times. `slot` (0 to 3) is the number of the
    /// counter.
    Repeat {
        /// The task's counter.
        slot: u8,
        /// The number of passes.
        times: u32,
        /// The block's first operation.
        to: u16,
    },
    /// Goes to this operation.
    Goto(u16),
    /// Does one operation of this mix.
    Pick(u16),
    /// The thread ends (`exit`), with this code.
    Exit(u8),
    /// The process ends (`exit_group`), with this code.
    ExitGroup(u8),
}

/// Operations with weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix(pub Vec<(u16, Op)>);

impl Mix {
    /// The operations with the running sums of their weights.
    pub(crate) fn running_sums(&self) -> Vec<(u32, Op)> {
        let mut sum = 0;
        let add = |&(weight, op): &(u16, Op)| {
            sum += u32::from(weight);
            (sum, op)
        };
        self.0
            .iter()
            .filter(|(weight, _)| *weight > 0)
            .map(add)
            .collect()
    }
}

/// A program that can be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The file's path; its last part is the comm.
    pub path: String,
    /// The arguments; `{}` becomes a number that counts the execs.
    pub args: Vec<String>,
}

/// A process from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The program of the resident.
    pub program: u16,
    /// The argument of the resident.
    pub arg: u32,
    /// The task is a kernel thread.
    pub kthread: bool,
    /// The resident and its children run only on this CPU.
    pub pin: Option<u16>,
}

/// The programs and tasks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// The name of the world for the user.
    pub name: String,
    /// The programs; a program that ends without exit does `ExitGroup(0)`.
    pub programs: Vec<Vec<Op>>,
    /// The mixes of [`Op::Pick`].
    pub mixes: Vec<Mix>,
    /// The images of [`Op::Exec`].
    pub images: Vec<Image>,
    /// The channels' posts at the beginning.
    pub channels: Vec<u32>,
    /// Processes from the beginning of the run.
    pub residents: Vec<Resident>,
    /// COMMAND's program, which begins with its exec.
    pub command: u16,
    /// COMMAND and its descendants run on this CPU only.
    pub command_pin: Option<u16>,
    /// The number of cgroups.
    pub cgroups: u32,
}
