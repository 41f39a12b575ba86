//! The programs of simulated tasks, and the world of processes in which they run.

/// A range of lengths of time. The simulation draws a length evenly from `lo..=hi` ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The shortest length of time in ns that the simulation draws from this range.
    pub lo: u64,
    /// The longest length of time in ns that the simulation draws from this range.
    pub hi: u64,
}

/// The range of lengths of time from `lo` to `hi` ns, from which the simulation draws.
pub const fn ns(lo: u64, hi: u64) -> Span {
    Span { lo, hi }
}

/// The range of lengths of time from `lo` to `hi` µs, from which the simulation draws.
pub const fn us(lo: u64, hi: u64) -> Span {
    Span {
        lo: lo * 1_000,
        hi: hi * 1_000,
    }
}

/// The range of lengths of time from `lo` to `hi` ms, from which the simulation draws.
pub const fn ms(lo: u64, hi: u64) -> Span {
    Span {
        lo: lo * 1_000_000,
        hi: hi * 1_000_000,
    }
}

/// A channel between simulated tasks, which stands for a pipe, a futex or a job server. Like a semaphore, it counts
/// posts: a task adds a post or takes one. The number of the channel can depend on the task's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chan {
    /// The number of the channel for a simulated task whose argument is 0.
    pub base: u16,
    /// The number of the channel is the argument of the simulated task, multiplied by this number, plus a constant.
    pub stride: u16,
}

/// The simulated channel number `n`, which is the same for all tasks.
pub const fn chan(n: u16) -> Chan {
    Chan { base: n, stride: 0 }
}

/// The simulated channel whose number is `n` plus the task's argument.
pub const fn own_chan(n: u16) -> Chan {
    Chan { base: n, stride: 1 }
}

/// The argument that a new simulated task gets from its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The new simulated task gets the same argument as its parent.
    Same,
    /// The new simulated task gets as its argument the present value of its parent's loop counter
    /// with this number.
    Loop(u8),
}

/// One operation in the program of a simulated task. An operation on another task draws that task
/// at random; if no task fits, nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The simulated task runs on a CPU for this time.
    Run(Span),
    /// The simulated task sleeps (state S) until the interrupt of a timer after this time.
    Sleep(Span),
    /// The simulated task waits for the disk (state D, in_iowait), until the interrupt of the disk after this time.
    Io(Span),
    /// The simulated task waits for a kernel lock (state D, not in_iowait), until an interrupt
    /// frees the lock after this time.
    Lock(Span),
    /// The simulated task yields the CPU (`sched_yield`).
    Yield,
    /// The simulated task forks a child. The child runs the program with this number and gets this argument.
    Fork(u16, Arg),
    /// The simulated task makes a child by `vfork`, and waits (state D) for the child's exec or exit. The child runs
    /// the program with this number and gets this argument.
    Vfork(u16, Arg),
    /// The simulated task makes a new thread of its process (`clone`). The new thread runs the program with this number
    /// and gets this argument.
    Thread(u16, Arg),
    /// The simulated task executes the program file with this number. The exec kills the other threads of the process,
    /// and the task goes on with its next operation.
    Exec(u16),
    /// The simulated task waits for one of its child processes. Nothing happens if the task has no child process.
    Wait,
    /// The simulated task waits for all of its child processes.
    WaitAll,
    /// The simulated task posts to a channel: a task that waits for the channel is woken and gets the post; if none
    /// waits, the channel's count increases by 1, as with a semaphore.
    Post(Chan),
    /// The simulated task takes one post (a unit of the channel's count, as of a semaphore). The task sleeps (state S)
    /// until there is one.
    Take(Chan),
    /// The simulated task takes one post (a unit of the channel's count, as of a semaphore). The task sleeps (state S)
    /// until there is one, but gives up after this time.
    TakeFor(Chan, Span),
    /// The simulated task takes one post (a unit of the channel's count, as of a semaphore). If the channel has no
    /// post, the task jumps to the operation with this number.
    Poll(Chan, u16),
    /// The simulated task wakes a sleeping task that still has nothing to do, as spurious wake-ups
    /// do.
    Poke,
    /// The simulated task changes its name (`prctl(PR_SET_NAME)`).
    Rename,
    /// The simulated task moves its process to another cgroup.
    MoveCgroup,
    /// The simulated task kills another process (SIGKILL).
    Kill,
    /// The simulated task stops another process (SIGSTOP).
    Stop,
    /// The simulated task continues a stopped process (SIGCONT).
    Continue,
    /// The simulated task jumps back to operation `to` until the operations from there to here were
    /// done `times` times. `slot` (0 to 3) is the number of the loop counter.
    Repeat {
        /// The number of the loop counter that the operation uses. A simulated task has four of
        /// them.
        slot: u8,
        /// How often the simulated task does the operations of the loop in all.
        times: u32,
        /// The number of the first operation of the simulated task's loop.
        to: u16,
    },
    /// The simulated task jumps to the operation with this number.
    Goto(u16),
    /// The simulated task does one random operation from a list of weighted operations ([`Mix`]). The number selects
    /// the list.
    Pick(u16),
    /// The simulated thread ends (`exit`) with this code.
    Exit(u8),
    /// The simulated process ends (`exit_group`) with this code.
    ExitGroup(u8),
}

/// A mix of operations with weights, from which a simulated task draws one at random.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix(pub Vec<(u16, Op)>);

impl Mix {
    /// The operations of this list of weighted operations, with the running sums of their weights. Operations with the
    /// weight 0 are left out.
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

/// A program file that simulated tasks can execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The path of the simulated program's file. Its last part becomes the name (comm) of the task.
    pub path: String,
    /// The arguments of the simulated program. `{}` in them is replaced by a number that counts the
    /// execs.
    pub args: Vec<String>,
}

/// A simulated process that exists from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The number of the program that the simulated process runs.
    pub program: u16,
    /// The argument of the simulated process's task, from which its channels are derived.
    pub arg: u32,
    /// Whether the simulated process is a kernel thread.
    pub kthread: bool,
    /// The only CPU on which the simulated process and its children may run; `None` if they may run
    /// on all.
    pub pin: Option<u16>,
}

/// The programs and the initial processes of a simulated run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// The name of the simulated world, for the user.
    pub name: String,
    /// The programs of the simulated world as lists of operations. A program that ends without an
    /// exit operation does `ExitGroup(0)`.
    pub programs: Vec<Vec<Op>>,
    /// The lists of weighted operations from which [`Op::Pick`] draws.
    pub mixes: Vec<Mix>,
    /// The program files that [`Op::Exec`] can execute.
    pub images: Vec<Image>,
    /// The number of posts (units that tasks add and take, as with a semaphore) that each channel of the simulated
    /// world has at the beginning.
    pub channels: Vec<u32>,
    /// The processes that exist from the beginning of the simulated run.
    pub residents: Vec<Resident>,
    /// The number of the program that the simulated COMMAND runs. The program begins with COMMAND's exec.
    pub command: u16,
    /// The only CPU on which the simulated COMMAND and its descendants may run; `None` if they may
    /// run on all.
    pub command_pin: Option<u16>,
    /// The number of cgroups in the simulated world.
    pub cgroups: u32,
}
