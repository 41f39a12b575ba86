//! Lifecycle events to columns and back.
//!
//! Every field of every kind has its own column. A value that another field of the event, or
//! an earlier event of the frame, predicts is stored as the difference. This file has the
//! state that both directions share; `life/` has the directions, kind by kind.

#[cfg(test)]
mod columns;
mod decode;
mod encode;
mod machine;
mod network;
mod stacks;
mod wide;

use std::collections::HashMap;
use std::sync::Arc;

use crate::counters::Counters;
use crate::device::Device;
use crate::event::{Account, Delays, Exit, LossCause, Tgid, Tid};
use crate::Fault;

pub use decode::{decode, Skipped};
pub(crate) use encode::{encode, weight};

/// The columns, in the order in which they stand in the body.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Col {
    Kind,
    Time,
    Cpu,
    Task,
    NewTask,
    ForkStart,
    NsTid,
    Cgroup,
    Comm,
    NewComm,
    Path,
    NewPath,
    ArgvLen,
    ArgvFull,
    Argv,
    OldTid,
    Status,
    GroupStatus,
    Utime,
    Stime,
    TimeRest,
    Runtime,
    Nvcsw,
    Nivcsw,
    MinFlt,
    MajFlt,
    Rss,
    RssRest,
    Read,
    Write,
    IoRest,
    FinalRuntime,
    FinalNvcsw,
    FinalNivcsw,
    Start,
    State,
    SnapFlags,
    SnapRuntime,
    Parent,
    LostStream,
    LostCount,
    LostSpan,
    Boot,
    Real,
    Delays,
    RunDelay,
    BlockDelay,
    SwapDelay,
    FinalRunDelay,
    FinalBlockDelay,
    FinalSwapDelay,
    ExecRss,
    ProgramRss,
    AccountKnown,
    AccountRuntime,
    AccountRunDelay,
    AccountSlices,
    EndRss,
    MarkPoint,
    MarkAgo,
    MarkTask,
    EndStatus,
    EndDead,
    ConnectionId,
    ConnectionTask,
    Address,
    NewAddress,
    Port,
    Ending,
    Sent,
    Received,
    Counter,
    CounterValue,
    CallProcess,
    CallSince,
    CallNumber,
    CallCount,
    CallErrors,
    CallTime,
    CallLongest,
    BlockDevice,
    Requests,
    Buckets,
    OomResident,
    Reclaim,
    Dns,
    DnsBytes,
    BlockName,
    DiskWait,
    Module,
    ModuleBytes,
    Frames,
    FrameOffset,
    SampleTask,
    SampleFlags,
    SampleTime,
    SampleBase,
    SampleStacks,
    SampleFrames,
    Symbol,
    SymbolText,
    SymbolBytes,
    SyncFile,
    Pinned,
}

/// The number of columns.
const COLUMNS: usize = Col::Pinned as usize + 1;

/// Kinds, as stored. Never renumbered.
mod tag {
    pub const FORK: u8 = 1;
    pub const EXEC: u8 = 2;
    pub const EXIT: u8 = 3;
    pub const FINAL: u8 = 4;
    pub const RENAME: u8 = 5;
    pub const CGROUP_PATH: u8 = 6;
    pub const CGROUP_MOVE: u8 = 7;
    pub const SNAPSHOT: u8 = 8;
    pub const LOST: u8 = 9;
    pub const CLOCK: u8 = 10;
    pub const WATERMARK: u8 = 11;
    pub const MARK: u8 = 12;
    pub const ACCOUNT: u8 = 13;
    pub const DETACHED: u8 = 14;
    pub const DEGRADED: u8 = 15;
    pub const END: u8 = 16;
    pub const MARK_MORE: u8 = 17;
    pub const CONNECT: u8 = 18;
    pub const CONNECTED: u8 = 19;
    pub const ACCEPTED: u8 = 20;
    pub const CLOSED: u8 = 21;
    pub const COUNTERS: u8 = 22;
    pub const SYSTEM_CALLS: u8 = 23;
    pub const BLOCK: u8 = 24;
    pub const OOM_KILL: u8 = 25;
    pub const RECLAIM: u8 = 26;
    pub const DNS_QUERY: u8 = 27;
    pub const DNS_ANSWER: u8 = 28;
    pub const DISK_WAIT: u8 = 29;
    pub const MODULE: u8 = 30;
    pub const SAMPLE: u8 = 32;
    pub const SYMBOL: u8 = 33;
    pub const SYNC_FILE: u8 = 34;
    pub const PINNED: u8 = 35;
}

/// The unit in bytes of nearly all quantities of memory and of I/O.
const UNIT: u64 = 512;
/// The unit in ns of CPU times, on kernels that count them in ticks.
const TICK: u64 = 1_000_000;

/// The state after the earlier events of the frame; the same in both directions.
#[derive(Debug, Default)]
struct Known {
    time: u64,
    tasks: Vec<(Tid, Tgid)>,
    tid: u32,
    cgroups: Vec<u64>,
    start: u64,
    exits: HashMap<u32, Figures>,
    accounts: HashMap<u32, Totals>,
    /// The last new connection, and the last task of one.
    connection: u64,
    connection_tid: u32,
    counters: Counters,
    /// The task of the last kill for lack of memory or reclaim.
    memory_tid: u32,
    /// The task of the last DNS query.
    dns_tid: u32,
    /// The task of the last wait for a disk, and the disks of such waits.
    disk_tid: u32,
    waited_disks: Vec<Waited>,
    /// The task of the last file of fsync.
    sync_tid: u32,
    pinned_tid: u32,
    /// The process of the last system calls.
    calls_of: u32,
    /// Of the samples and what they refer to.
    stacks: Stacks,
}

/// What earlier events of samples predict.
#[derive(Debug, Default)]
struct Stacks {
    module: u32,
    /// The number of the next new frame.
    frame: u32,
    /// The last offset or address in each file, process or the kernel.
    offsets: HashMap<u64, u64>,
    tid: u32,
    /// The lengths of the last samples, by what the task did.
    ns: [u64; 2],
    /// The number of the next new stack.
    next: u32,
    symbol: u32,
}

/// A disk and its name.
type Waited = (Device, Arc<[u8]>);

/// The figures of a task's exit, which its final event increases.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    runtime: u64,
    nvcsw: u64,
    nivcsw: u64,
    delays: Delays,
}

impl Figures {
    fn of(exit: &Exit) -> Figures {
        Figures {
            runtime: exit.sum_exec_runtime,
            nvcsw: exit.nvcsw,
            nivcsw: exit.nivcsw,
            delays: exit.delays,
        }
    }
}

/// The totals of a task's last account, which the next one increases.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    runtime: u64,
    run_delay: u64,
    slices: u64,
}

impl Totals {
    /// After an account; a total that is absent keeps its value.
    fn then(self, account: &Account) -> Totals {
        Totals {
            runtime: account.sum_exec_runtime,
            run_delay: account.run_delay.unwrap_or(self.run_delay),
            slices: account.slices.unwrap_or(self.slices),
        }
    }
}

/// The columns of an exit's delays.
const EXIT_DELAYS: [Col; 3] = [Col::RunDelay, Col::BlockDelay, Col::SwapDelay];
/// The columns of a final event's delays.
const FINAL_DELAYS: [Col; 3] = [
    Col::FinalRunDelay,
    Col::FinalBlockDelay,
    Col::FinalSwapDelay,
];

/// The length of the lists of recent tasks and of recent cgroups.
const TASKS: usize = 254;

/// Moves the element at `at` to the front. Returns it.
fn to_front<T: Copy>(list: &mut [T], at: usize) -> Option<T> {
    let part = list.get_mut(..=at)?;
    part.rotate_right(1);
    part.first().copied()
}

fn to_new_front<T>(list: &mut Vec<T>, value: T, most: usize) {
    list.truncate(most - 1);
    list.insert(0, value);
}

fn cause(cause: LossCause) -> u8 {
    match cause {
        LossCause::RingFull => 0,
        LossCause::Recursion => 1,
        LossCause::Output => 2,
        LossCause::FollowSet => 3,
        LossCause::Damage => 4,
    }
}

fn cause_of(code: u8) -> Result<LossCause, Fault> {
    Ok(match code {
        0 => LossCause::RingFull,
        1 => LossCause::Recursion,
        2 => LossCause::Output,
        3 => LossCause::FollowSet,
        4 => LossCause::Damage,
        _ => return Err(Fault::Content("unknown cause of a loss")),
    })
}

/// The columns' names, for the specification's test.
#[cfg(test)]
pub fn columns() -> Vec<String> {
    let all: [Col; COLUMNS] = [
        Col::Kind,
        Col::Time,
        Col::Cpu,
        Col::Task,
        Col::NewTask,
        Col::ForkStart,
        Col::NsTid,
        Col::Cgroup,
        Col::Comm,
        Col::NewComm,
        Col::Path,
        Col::NewPath,
        Col::ArgvLen,
        Col::ArgvFull,
        Col::Argv,
        Col::OldTid,
        Col::Status,
        Col::GroupStatus,
        Col::Utime,
        Col::Stime,
        Col::TimeRest,
        Col::Runtime,
        Col::Nvcsw,
        Col::Nivcsw,
        Col::MinFlt,
        Col::MajFlt,
        Col::Rss,
        Col::RssRest,
        Col::Read,
        Col::Write,
        Col::IoRest,
        Col::FinalRuntime,
        Col::FinalNvcsw,
        Col::FinalNivcsw,
        Col::Start,
        Col::State,
        Col::SnapFlags,
        Col::SnapRuntime,
        Col::Parent,
        Col::LostStream,
        Col::LostCount,
        Col::LostSpan,
        Col::Boot,
        Col::Real,
        Col::Delays,
        Col::RunDelay,
        Col::BlockDelay,
        Col::SwapDelay,
        Col::FinalRunDelay,
        Col::FinalBlockDelay,
        Col::FinalSwapDelay,
        Col::ExecRss,
        Col::ProgramRss,
        Col::AccountKnown,
        Col::AccountRuntime,
        Col::AccountRunDelay,
        Col::AccountSlices,
        Col::EndRss,
        Col::MarkPoint,
        Col::MarkAgo,
        Col::MarkTask,
        Col::EndStatus,
        Col::EndDead,
        Col::ConnectionId,
        Col::ConnectionTask,
        Col::Address,
        Col::NewAddress,
        Col::Port,
        Col::Ending,
        Col::Sent,
        Col::Received,
        Col::Counter,
        Col::CounterValue,
        Col::CallProcess,
        Col::CallSince,
        Col::CallNumber,
        Col::CallCount,
        Col::CallErrors,
        Col::CallTime,
        Col::CallLongest,
        Col::BlockDevice,
        Col::Requests,
        Col::Buckets,
        Col::OomResident,
        Col::Reclaim,
        Col::Dns,
        Col::DnsBytes,
        Col::BlockName,
        Col::DiskWait,
        Col::Module,
        Col::ModuleBytes,
        Col::Frames,
        Col::FrameOffset,
        Col::SampleTask,
        Col::SampleFlags,
        Col::SampleTime,
        Col::SampleBase,
        Col::SampleStacks,
        Col::SampleFrames,
        Col::Symbol,
        Col::SymbolText,
        Col::SymbolBytes,
        Col::SyncFile,
        Col::Pinned,
    ];
    assert!(all.iter().enumerate().all(|(at, col)| *col as usize == at));
    all.map(|col| format!("{col:?}")).to_vec()
}

/// The kinds' numbers and names, for the specification's test.
#[cfg(test)]
pub fn kinds() -> [(u8, &'static str); 34] {
    [
        (tag::FORK, "fork"),
        (tag::EXEC, "exec"),
        (tag::EXIT, "exit"),
        (tag::FINAL, "final"),
        (tag::RENAME, "rename"),
        (tag::CGROUP_PATH, "cgroup path"),
        (tag::CGROUP_MOVE, "cgroup move"),
        (tag::SNAPSHOT, "snapshot"),
        (tag::LOST, "lost"),
        (tag::CLOCK, "clock"),
        (tag::WATERMARK, "watermark"),
        (tag::MARK, "mark"),
        (tag::ACCOUNT, "account"),
        (tag::DETACHED, "detached"),
        (tag::DEGRADED, "degraded"),
        (tag::END, "end"),
        (tag::MARK_MORE, "mark with more"),
        (tag::CONNECT, "connect"),
        (tag::CONNECTED, "connected"),
        (tag::ACCEPTED, "accepted"),
        (tag::CLOSED, "closed"),
        (tag::COUNTERS, "counters"),
        (tag::SYSTEM_CALLS, "system calls"),
        (tag::BLOCK, "block"),
        (tag::OOM_KILL, "oom kill"),
        (tag::RECLAIM, "reclaim"),
        (tag::DNS_QUERY, "dns query"),
        (tag::DNS_ANSWER, "dns answer"),
        (tag::DISK_WAIT, "disk wait"),
        (tag::MODULE, "module"),
        (tag::SAMPLE, "sample"),
        (tag::SYMBOL, "symbol"),
        (tag::SYNC_FILE, "sync file"),
        (tag::PINNED, "pinned"),
    ]
}
