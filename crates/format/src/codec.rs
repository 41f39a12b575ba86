//! One description of a kind's stored fields serves both directions. [`Codec`] has the steps of
//! such descriptions; `block/life/` has what carries values into columns and out of them, and what
//! passes the texts to a mask.
//!
//! A step takes the value to write, and leaves the value that was read. Most steps compute the
//! stored form of the value, pass it on, and compute the value of the stored form: in the
//! direction that reads, the first part goes for nothing; in the other one, the second.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::within;
use crate::ids::{Address, Argv, CgroupId, Comm, Ktime, Tgid, Tid};
use crate::limits;
use crate::varint::{fold, unfold};
use crate::Fault;

/// A step of a description. Only reading fails.
pub type Step = Result<(), Fault>;

/// A kind of lifecycle event, as stored.
pub trait Stored {
    /// Its fields. The event's time is `time`.
    ///
    /// Kinds since version 3.2 have columns of their own, and no wide numbers: an older reader
    /// skips their events.
    fn fields<C: Codec>(&mut self, codec: &mut C, time: Ktime) -> Step;

    /// The approximate memory of its parts in bytes.
    fn weight(&self) -> usize {
        0
    }
}

/// Defines [`Col`].
macro_rules! columns {
    ($($name:ident)*) => {
        /// The columns, in the order in which they stand in the body.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Col {
            $(#[allow(missing_docs)] $name,)*
        }

        /// The columns' names.
        pub const COLUMN_NAMES: [&str; [$(Col::$name),*].len()] = [$(stringify!($name)),*];
    };
}

columns! {
    Kind Time Cpu Task NewTask ForkStart NsTid Cgroup Comm NewComm Path NewPath
    ArgvLen ArgvFull Argv OldTid Status GroupStatus Utime Stime TimeRest Runtime
    Nvcsw Nivcsw MinFlt MajFlt Rss RssRest Read Write IoRest FinalRuntime
    FinalNvcsw FinalNivcsw Start State SnapFlags SnapRuntime Parent LostStream
    LostCount LostSpan Boot Real Delays RunDelay BlockDelay SwapDelay
    FinalRunDelay FinalBlockDelay FinalSwapDelay ExecRss ProgramRss AccountKnown
    AccountRuntime AccountRunDelay AccountSlices EndRss MarkPoint MarkAgo MarkTask
    EndStatus EndDead ConnectionId ConnectionTask Address NewAddress Port Ending Sent
    Received Counter CounterValue CallProcess CallSince CallNumber CallCount
    CallErrors CallTime CallLongest
    BlockDevice Requests Buckets OomResident Reclaim Dns DnsBytes BlockName
    DiskWait Module ModuleBytes Frames FrameOffset SampleTask SampleFlags SampleTime
    SampleBase SampleStacks SampleFrames Symbol SymbolText SymbolBytes SyncFile Pinned
    Outsider Container Server
}

pub const COLUMNS: usize = COLUMN_NAMES.len();

/// Texts that are stored once a frame.
#[derive(Clone, Copy, Debug)]
pub enum Text {
    /// Names of tasks.
    Comm,
    /// Paths, and names in marks.
    Path,
    /// Names of disks with requests. Like the next ones they are no paths, because an older
    /// reader knows the columns of those.
    Disk,
    /// Names of files of fsync.
    File,
    /// Names of functions and of their source files.
    Symbol,
    /// Names of tasks that are not recorded.
    Outsider,
    /// Ids, names and images of containers.
    Container,
}

/// The number of kinds of texts.
pub const TEXTS: usize = Text::Container as usize + 1;

impl Text {
    /// The columns of a text's distance among the new ones, or 0; of the length of a new one;
    /// of its bytes.
    pub fn columns(self) -> [Col; 3] {
        match self {
            Text::Comm => [Col::Comm, Col::NewComm, Col::NewComm],
            Text::Path => [Col::Path, Col::NewPath, Col::NewPath],
            Text::Disk => [Col::BlockName; 3],
            Text::File => [Col::SyncFile; 3],
            Text::Symbol => [Col::SymbolText, Col::SymbolText, Col::SymbolBytes],
            Text::Outsider => [Col::Outsider; 3],
            Text::Container => [Col::Container; 3],
        }
    }

    /// Longest text in bytes.
    pub fn limit(self) -> usize {
        match self {
            Text::Comm => 16,
            _ => limits::NAME,
        }
    }
}

/// The unit in bytes of nearly all quantities of memory and of I/O.
pub const UNIT: u64 = 512;
/// The unit in ns of CPU times, on kernels that count them in ticks.
pub const TICK: u64 = 1_000_000;
/// The length of the lists of recent tasks and of recent cgroups.
const RECENT: usize = 254;

/// The numbers of a disk, and its name.
pub type Disk = ((u32, u32), Arc<[u8]>);

/// The state after the earlier events of the frame; the same in both directions.
#[derive(Debug, Default)]
pub struct Known {
    pub time: u64,
    /// The number of the event's kind.
    pub kind: u8,
    /// By column, the last number that the next one is counted from.
    last: Vec<u32>,
    tasks: Vec<(Tid, Tgid)>,
    cgroups: Vec<CgroupId>,
    /// The start of the last snapshot's task.
    pub start: u64,
    /// The figures of tasks' exits, which their final events increase: run time, voluntary and
    /// involuntary switches, delays.
    pub exits: HashMap<u32, [Option<u64>; 6]>,
    /// The totals of tasks' last accounts, which the next ones increase: run time, run delay,
    /// slices.
    pub accounts: HashMap<u32, [u64; 3]>,
    /// The last new connection.
    pub connection: u64,
    /// The addresses so far; the numbers of those that were written.
    pub addresses: Vec<Address>,
    pub address_at: HashMap<Address, usize>,
    /// The counters' values by number.
    pub counters: Vec<Option<u64>>,
    /// The disks of waits, and their names.
    pub disks: Vec<Disk>,
    /// Of samples: the next new frame and stack; the last offset or address in each file,
    /// process or the kernel; the lengths of the last samples, by what the task did.
    pub frame: u32,
    pub stack: u32,
    pub offsets: HashMap<u64, u64>,
    pub ns: [u64; 2],
    /// What was read so far, and has a limit: bytes of strings (short references can repeat a
    /// long one), sums of system calls, new stacks and functions.
    pub strings: u64,
    pub calls: u64,
    pub stacks: u64,
}

impl Known {
    /// Before the first event of a frame, whose smallest time is `time`.
    pub fn new(time: u64) -> Known {
        Known {
            time,
            ..Known::default()
        }
    }

    /// The last number of a column.
    #[allow(clippy::indexing_slicing)] // It has a place for every `Col`.
    pub fn last(&mut self, col: Col) -> &mut u32 {
        if self.last.is_empty() {
            self.last = vec![0; COLUMNS];
        }
        &mut self.last[col as usize]
    }

    /// Counts bytes of strings that were read.
    pub fn spend(&mut self, bytes: usize) -> Step {
        self.strings += bytes as u64;
        within("the strings' length", self.strings, limits::STRINGS)
    }

    /// A task that has the tid, of those in the list of recent ones.
    pub fn process_of(&self, tid: Tid) -> Option<Tgid> {
        let known = self.tasks.iter().find(|task| task.0 == tid);
        known.map(|task| task.1)
    }
}

/// Bytes that an event owns or shares with others.
pub trait Bytes: Sized {
    fn bytes(&self) -> &[u8];
    /// From others.
    fn copy(bytes: &[u8]) -> Self;
    /// From those of a text of any length.
    fn fitted(text: &[u8]) -> Self {
        Self::copy(text)
    }
    /// From shared ones.
    fn of(shared: &Arc<[u8]>) -> Self {
        Self::copy(shared)
    }
}

impl Bytes for Arc<[u8]> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn of(shared: &Arc<[u8]>) -> Arc<[u8]> {
        Arc::clone(shared)
    }

    fn copy(bytes: &[u8]) -> Arc<[u8]> {
        bytes.into()
    }
}

impl Bytes for Box<[u8]> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn copy(bytes: &[u8]) -> Box<[u8]> {
        bytes.into()
    }
}

impl Bytes for Comm {
    fn bytes(&self) -> &[u8] {
        Comm::bytes(self)
    }

    fn copy(bytes: &[u8]) -> Comm {
        let mut comm = Comm::default();
        let both = comm.0.iter_mut().zip(bytes);
        both.for_each(|(to, from)| *to = *from);
        comm
    }

    fn fitted(text: &[u8]) -> Comm {
        Comm::new(text)
    }
}

/// One direction.
pub trait Codec: Sized {
    /// Values go into columns; else they come from them.
    const WRITES: bool;

    fn known(&mut self) -> &mut Known;
    fn byte(&mut self, col: Col, value: &mut u8) -> Step;
    /// A varint.
    fn int(&mut self, col: Col, value: &mut u64) -> Step;
    /// A wide number: a byte with its class, and low bits.
    fn wide(&mut self, col: Col, value: &mut u64) -> Step;
    /// A length, and so many bytes; `most` are written and read. The value is empty before it is
    /// read.
    fn bytes<T: Bytes>(&mut self, cols: (Col, Col), most: usize, value: &mut T) -> Step;
    /// Bytes that are no text: no mask sees them.
    fn opaque<T: Bytes>(&mut self, cols: (Col, Col), most: usize, value: &mut T) -> Step {
        self.bytes(cols, most, value)
    }
    /// A text that is stored once.
    fn text<T: Bytes>(&mut self, of: Text, value: &mut T) -> Step;

    fn comm(&mut self, value: &mut Comm) -> Step {
        self.text(Text::Comm, value)
    }

    fn path<T: Bytes>(&mut self, value: &mut T) -> Step {
        self.text(Text::Path, value)
    }

    /// A varint of a narrower type.
    #[inline(always)]
    fn narrow<T>(&mut self, col: Col, value: &mut T) -> Step
    where
        T: Copy + Into<u64> + TryFrom<u64>,
    {
        let mut wide = (*value).into();
        self.int(col, &mut wide)?;
        *value = fitting(wide)?;
        Ok(())
    }

    /// 0 for none, else the value plus 1. The largest number of 64 bits is read as none.
    #[inline(always)]
    fn optional<T>(&mut self, col: Col, value: &mut Option<T>) -> Step
    where
        T: Copy + Into<u64> + TryFrom<u64>,
    {
        let mut stored = value.map_or(0, |value| value.into().wrapping_add(1));
        self.int(col, &mut stored)?;
        *value = stored.checked_sub(1).map(fitting).transpose()?;
        Ok(())
    }

    /// 0 or 1, as a varint.
    fn bool(&mut self, col: Col, value: &mut bool) -> Step {
        let mut stored = u64::from(*value);
        self.int(col, &mut stored)?;
        *value = match stored {
            0 => false,
            1 => true,
            _ => return Err(Fault::Content("a bool is neither 0 nor 1")),
        };
        Ok(())
    }

    /// A byte of flags, the first one in the lowest bit; `unknown` refuses others.
    #[inline(always)]
    fn flags<const N: usize>(
        &mut self,
        col: Col,
        flags: [&mut bool; N],
        unknown: &'static str,
    ) -> Step {
        let set = flags.iter().rev();
        let mut bits = set.fold(0, |bits, set| bits << 1 | u8::from(**set));
        self.byte(col, &mut bits)?;
        for flag in flags {
            *flag = bits & 1 != 0;
            bits >>= 1;
        }
        refuse_if(bits != 0, unknown)
    }

    /// The difference of an id to another number.
    #[inline(always)]
    fn diff(&mut self, col: Col, value: &mut u32, from: u32) -> Step {
        let mut stored = fold(i64::from(*value) - i64::from(from));
        self.int(col, &mut stored)?;
        *value = unfolded(stored, from)?;
        Ok(())
    }

    /// The difference of an id to the last one of column `last`.
    fn step(&mut self, col: Col, last: Col, value: &mut u32) -> Step {
        let from = *self.known().last(last);
        self.diff(col, value, from)?;
        *self.known().last(last) = *value;
        Ok(())
    }

    /// A task in a column of its kind's own: an older reader skips the event, and has not moved
    /// the task in the list of recent ones.
    fn own_task(&mut self, col: Col, last: Col, tid: &mut Tid, tgid: &mut Tgid) -> Step {
        self.step(col, last, &mut tid.0)?;
        self.diff(col, &mut tgid.0, tid.0)
    }

    /// The difference to another number, as a varint.
    #[inline(always)]
    fn change(&mut self, col: Col, value: &mut u64, from: u64) -> Step {
        let mut stored = fold(value.wrapping_sub(from) as i64);
        self.int(col, &mut stored)?;
        *value = from.wrapping_add(unfold(stored) as u64);
        Ok(())
    }

    /// The difference to another number, as a wide one.
    #[inline(always)]
    fn increase(&mut self, col: Col, value: &mut u64, from: u64) -> Step {
        let mut stored = value.wrapping_sub(from);
        self.wide(col, &mut stored)?;
        *value = from.wrapping_add(stored);
        Ok(())
    }

    /// A quantity as whole units and a rest.
    fn quantity(&mut self, unit: u64, (units, rest): (Col, Col), value: &mut u64) -> Step {
        let (mut whole, mut part) = (*value / unit, *value % unit);
        self.int(units, &mut whole)?;
        self.int(rest, &mut part)?;
        *value = whole_and_rest(unit, whole, part)?;
        Ok(())
    }

    /// Bytes of memory or I/O, if they are known.
    fn memory(&mut self, col: Col, value: &mut Option<u64>) -> Step {
        let mut stored = value.map_or(0, |bytes| bytes / UNIT + 1);
        self.int(col, &mut stored)?;
        let Some(units) = stored.checked_sub(1) else {
            *value = None;
            return Ok(());
        };
        let mut rest = value.map_or(0, |bytes| bytes % UNIT);
        self.int(Col::IoRest, &mut rest)?;
        *value = Some(whole_and_rest(UNIT, units, rest)?);
        Ok(())
    }

    /// An element's place in a list of recent ones, from 1, or 0 for a new one. Says whether it
    /// is new. It moves to the front.
    fn recent<T: Copy + PartialEq>(
        &mut self,
        col: Col,
        list: impl Fn(&mut Known) -> &mut Vec<T>,
        value: &mut T,
    ) -> Result<bool, Fault> {
        let mut rank = 0;
        if Self::WRITES {
            let found = list(self.known()).iter().position(|it| it == value);
            rank = found.map_or(0, |at| at as u64 + 1);
        }
        self.int(col, &mut rank)?;
        let Some(at) = rank.checked_sub(1) else {
            return Ok(true);
        };
        let at = usize::try_from(at).ok();
        let found = at.and_then(|at| to_front(list(self.known()), at));
        *value = found.ok_or(Fault::Content("task or cgroup index out of range"))?;
        Ok(false)
    }

    fn task(&mut self, tid: &mut Tid, tgid: &mut Tgid) -> Step {
        let mut task = (*tid, *tgid);
        if self.recent(Col::Task, |known| &mut known.tasks, &mut task)? {
            return self.new_task(tid, tgid);
        }
        (*tid, *tgid) = task;
        Ok(())
    }

    /// A task that has not been in the frame before.
    fn new_task(&mut self, tid: &mut Tid, tgid: &mut Tgid) -> Step {
        self.own_task(Col::NewTask, Col::NewTask, tid, tgid)?;
        to_new_front(&mut self.known().tasks, (*tid, *tgid));
        Ok(())
    }

    fn cgroup(&mut self, id: &mut CgroupId) -> Step {
        if self.recent(Col::Cgroup, |known| &mut known.cgroups, id)? {
            self.int(Col::Cgroup, &mut id.0)?;
            to_new_front(&mut self.known().cgroups, *id);
        }
        Ok(())
    }

    fn argv(&mut self, argv: &mut Argv) -> Step {
        self.bytes((Col::ArgvLen, Col::Argv), limits::ARGV, &mut argv.bytes)?;
        let len = argv.bytes.len().min(limits::ARGV) as i64;
        let more = |full| fold(i64::from(full) - len).saturating_add(1);
        let mut stored = argv.full_len.map_or(0, more);
        self.int(Col::ArgvFull, &mut stored)?;
        let full = stored.checked_sub(1).map(|more| {
            let full = len.checked_add(unfold(more));
            let full = full.and_then(|full| u32::try_from(full).ok());
            full.ok_or(Fault::Content("an argv's length does not fit in 32 bits"))
        });
        argv.full_len = full.transpose()?;
        Ok(())
    }

    /// An address, in columns of lengths and of bytes. A masked one has no bytes.
    fn address(&mut self, cols: (Col, Col), address: &mut Address) -> Step {
        let (mut ip, mut number): (Box<[u8]>, u64) = match *address {
            Address::V4(ip) => (ip.octets().into(), 0),
            Address::V6(ip) => (ip.octets().into(), 0),
            Address::Masked(number) => (Box::default(), number),
        };
        self.opaque(cols, limits::NAME, &mut ip)?;
        if ip.is_empty() {
            self.int(cols.0, &mut number)?;
        }
        *address = match (<[u8; 4]>::try_from(&*ip), <[u8; 16]>::try_from(&*ip)) {
            (Ok(ip), _) => Address::V4(ip.into()),
            (_, Ok(ip)) => Address::V6(ip.into()),
            _ if ip.is_empty() => Address::Masked(number),
            _ => return Err(Fault::Content("unknown length of an address")),
        };
        Ok(())
    }

    /// A number of elements, of which `most` are written and read.
    fn count(
        &mut self,
        col: Col,
        len: usize,
        most: usize,
        what: &'static str,
    ) -> Result<usize, Fault> {
        let mut count = len.min(most) as u64;
        self.int(col, &mut count)?;
        within(what, count, most as u64)?;
        Ok(count as usize)
    }

    /// The first `count` elements. What is read is not trusted with memory for them.
    fn elements<T: Default>(
        &mut self,
        count: usize,
        list: &mut Vec<T>,
        mut each: impl FnMut(&mut Self, &mut T) -> Step,
    ) -> Step {
        if Self::WRITES {
            return list
                .iter_mut()
                .take(count)
                .try_for_each(|it| each(self, it));
        }
        for _ in 0..count {
            let mut it = T::default();
            each(self, &mut it)?;
            list.push(it);
        }
        Ok(())
    }
}

/// Refuses what was read.
pub fn refuse_if(wrong: bool, why: &'static str) -> Step {
    if wrong {
        return Err(Fault::Content(why));
    }
    Ok(())
}

/// A number in its type.
pub fn fitting<T: TryFrom<u64>>(number: u64) -> Result<T, Fault> {
    T::try_from(number).map_err(|_| Fault::Content("a number does not fit in its field"))
}

/// The id with this difference to another number.
pub fn unfolded(difference: u64, from: u32) -> Result<u32, Fault> {
    let value = i64::from(from).checked_add(unfold(difference));
    value
        .and_then(|value| u32::try_from(value).ok())
        .ok_or(Fault::Content("an id does not fit in 32 bits"))
}

fn whole_and_rest(unit: u64, units: u64, rest: u64) -> Result<u64, Fault> {
    let whole = units.checked_mul(unit).filter(|_| rest < unit);
    whole
        .and_then(|whole| whole.checked_add(rest))
        .ok_or(Fault::Content("a quantity does not fit in 64 bits"))
}

/// The element at distance `back` from the end; the last one has distance 1.
pub fn ago<T>(met: &[T], back: u64) -> Result<&T, Fault> {
    usize::try_from(back)
        .ok()
        .and_then(|back| met.len().checked_sub(back))
        .and_then(|at| met.get(at))
        .ok_or(Fault::Content("string index out of range"))
}

/// Moves the element at `at` to the front. Returns it.
fn to_front<T: Copy>(list: &mut [T], at: usize) -> Option<T> {
    let part = list.get_mut(..=at)?;
    part.rotate_right(1);
    part.first().copied()
}

fn to_new_front<T>(list: &mut Vec<T>, value: T) {
    list.truncate(RECENT - 1);
    list.insert(0, value);
}
