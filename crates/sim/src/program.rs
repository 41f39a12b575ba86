//! The programs of simulated tasks, and the world that they run in.

/// A length of time, which is drawn evenly from `lo..=hi` ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The shortest length in ns.
    pub lo: u64,
    /// The longest length in ns.
    pub hi: u64,
}

/// A length of time that is drawn from `lo` to `hi` ns.
pub const fn ns(lo: u64, hi: u64) -> Span {
    Span { lo, hi }
}

/// A length of time that is drawn from `lo` to `hi` µs.
pub const fn us(lo: u64, hi: u64) -> Span {
    Span {
        lo: lo * 1_000,
        hi: hi * 1_000,
    }
}

/// A length of time that is drawn from `lo` to `hi` ms.
pub const fn ms(lo: u64, hi: u64) -> Span {
    Span {
        lo: lo * 1_000_000,
        hi: hi * 1_000_000,
    }
}

/// A channel between tasks, such as a pipe, a futex or a job server. It has a number of posts that were not
/// taken yet. The number of the channel can depend on the task's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chan {
    /// The number of the channel for a task with argument 0.
    pub base: u16,
    /// The number that is added for each unit of the task's argument.
    pub stride: u16,
}

/// The channel `n`, which is the same for all tasks.
pub const fn chan(n: u16) -> Chan {
    Chan { base: n, stride: 0 }
}

/// The channel whose number is `n` plus the task's argument.
pub const fn own_chan(n: u16) -> Chan {
    Chan { base: n, stride: 1 }
}

/// The argument that a new task gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The new task gets the argument of its parent.
    Same,
    /// The new task gets the present value of its parent's counter of this loop.
    Loop(u8),
}

/// One operation of a simulated task. An operation on another task draws that task; if no task fits, nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The task runs for this time.
    Run(Span),
    /// The task sleeps (state S) until the interrupt of a timer.
    Sleep(Span),
    /// The task waits for the disk (state D, in_iowait) until its interrupt.
    Io(Span),
    /// The task waits for a kernel lock (state D, not in_iowait), until an interrupt frees it.
    Lock(Span),
    /// The task yields the CPU (`sched_yield`).
    Yield,
    /// The task forks a child that runs this program.
    Fork(u16, Arg),
    /// The task makes a child that runs this program by `vfork`, and waits (state D) for the child's exec or exit.
    Vfork(u16, Arg),
    /// The task makes a thread of its process that runs this program (`clone`).
    Thread(u16, Arg),
    /// The task executes this image, which kills the process's other threads, and goes on with its next operation.
    Exec(u16),
    /// The task waits for one child. Nothing happens if it has no children.
    Wait,
    /// The task waits for all of its children.
    WaitAll,
    /// The task posts to a channel, and wakes a task that waits for it.
    Post(Chan),
    /// The task takes one post from a channel. It sleeps (state S) until there is one.
    Take(Chan),
    /// The task takes one post from a channel. It sleeps (state S) until there is one, but gives up after this time.
    TakeFor(Chan, Span),
    /// The task takes one post from a channel. If there is none, it goes to the operation with this number.
    Poll(Chan, u16),
    /// The task wakes a sleeping task in vain.
    Poke,
    /// The task changes its name (`prctl(PR_SET_NAME)`).
    Rename,
    /// The task moves its process to another cgroup.
    MoveCgroup,
    /// The task kills another process (SIGKILL).
    Kill,
    /// The task stops another process (SIGSTOP).
    Stop,
    /// The task continues a stopped process (SIGCONT).
    Continue,
    /// The task goes back to operation `to` until the block was done `times` times. `slot` (0 to 3) is the
    /// number of the counter.
    Repeat {
        /// The number of the counter of the loop, of which a task has four.
        slot: u8,
        /// How often the block is done in all.
        times: u32,
        /// The number of the block's first operation.
        to: u16,
    },
    /// The task goes to the operation with this number.
    Goto(u16),
    /// The task does one operation of this mix, which is drawn.
    Pick(u16),
    /// The thread ends (`exit`) with this code.
    Exit(u8),
    /// The process ends (`exit_group`) with this code.
    ExitGroup(u8),
}

/// Operations of which one is drawn, each with its weight.
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
    /// The path of the program's file. Its last part becomes the name (comm) of the task.
    pub path: String,
    /// The arguments of the program. `{}` in them becomes a number that counts the execs.
    pub args: Vec<String>,
}

/// A process that exists from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The number of the program that the process runs.
    pub program: u16,
    /// The argument of the process's task.
    pub arg: u32,
    /// Whether the process is a kernel thread.
    pub kthread: bool,
    /// The only CPU on which the process and its children run; `None` if they run on all.
    pub pin: Option<u16>,
}

/// The programs and tasks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// The name of the world for the user.
    pub name: String,
    /// The programs of the world. A program that ends without exit does `ExitGroup(0)`.
    pub programs: Vec<Vec<Op>>,
    /// The mixes from which [`Op::Pick`] draws operations.
    pub mixes: Vec<Mix>,
    /// The images that [`Op::Exec`] can execute.
    pub images: Vec<Image>,
    /// The number of posts that each channel has at the beginning.
    pub channels: Vec<u32>,
    /// The processes that exist from the beginning of the run.
    pub residents: Vec<Resident>,
    /// The number of COMMAND's program, which begins with its exec.
    pub command: u16,
    /// The only CPU on which COMMAND and its descendants run; `None` if they run on all.
    pub command_pin: Option<u16>,
    /// The number of cgroups in the world.
    pub cgroups: u32,
}
