//! The stored fields of each kind of event are described once, for writing and for reading. [`Codec`] has the steps of
//! which such a description consists; `block/life/` has the implementations that write values into columns, read them
//! from columns, and pass the texts to a mask, which replaces secrets.
//!
//! A step is given the value to write, or the place for the value that is read. Most steps compute the stored form of
//! the value, pass it on, and compute the value from the stored form again. The first computation is superfluous when
//! reading, the second when writing.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::within;
use crate::ids::{Address, Argv, CgroupId, Comm, Ktime, Tgid, Tid};
use crate::limits;
use crate::varint::{fold, unfold};
use crate::Fault;

/// The result of writing or reading one field of a stored event. Only reading can fail.
pub type Step = Result<(), Fault>;

/// A kind of lifecycle event that can be stored in a trace. It describes its fields once, for writing and for reading.
pub trait Stored {
    /// Passes the fields of the event, whose time is `time`, to the codec, which writes or reads them.
    ///
    /// A kind of event that was added since version 3.2 of the format uses only columns of its own, and never
    /// `Codec::wide`, so that an older reader can skip its events.
    fn fields<C: Codec>(&mut self, codec: &mut C, time: Ktime) -> Step;

    /// The approximate number of bytes that the event has on the heap.
    fn weight(&self) -> usize {
        0
    }
}

/// Defines the enum [`Col`] of the columns of a frame with lifecycle events, and the list of their names.
macro_rules! columns {
    ($($name:ident)*) => {
        /// The columns of a frame of lifecycle events, in the order in which the frame stores them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Col {
            $(#[allow(missing_docs)] $name,)*
        }

        /// The names of the columns of a frame of lifecycle events.
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
    Outsider Container Server OthersSwitches OthersBetween OthersShares OthersNames
    OthersTime Threads Directory
}

pub const COLUMNS: usize = COLUMN_NAMES.len();

/// The kinds of texts in lifecycle events. Each different text of a kind is stored once in a frame.
#[derive(Clone, Copy, Debug)]
pub enum Text {
    /// The kind of texts that are names of tasks.
    Comm,
    /// The kind of texts that are paths, texts of marks (named moments and spans), or descriptions of missing facts.
    Path,
    /// The kind of texts that are names of disks, in events about requests to disks. This kind and all kinds after it
    /// have columns of their own, because an older reader skips the events with such texts. If the texts were among the
    /// paths, this reader would read the remaining paths wrong.
    Disk,
    /// The kind of texts that are names of files on which a task called fsync.
    File,
    /// The kind of texts that are names of functions and of their source files.
    Symbol,
    /// The kind of texts that are names of tasks that are not recorded.
    Outsider,
    /// The kind of texts that are ids, names and images of containers.
    Container,
    /// The kind of texts that are names of unrecorded tasks that had a CPU while recorded tasks waited for it.
    Others,
    /// The kind of texts that are names of threads of processes that are not recorded.
    Threads,
    /// The kind of texts that are working directories.
    Directory,
}

/// The number of kinds of texts in lifecycle events.
pub const TEXTS: usize = Text::Directory as usize + 1;

impl Text {
    /// The three columns in which the texts of this kind are stored. The first has, for each text, 0 if it is new,
    /// otherwise the distance to the equal text in the list of new texts (1 for the last one). The other two columns
    /// have the length and the bytes of each new text.
    pub fn columns(self) -> [Col; 3] {
        match self {
            Text::Comm => [Col::Comm, Col::NewComm, Col::NewComm],
            Text::Path => [Col::Path, Col::NewPath, Col::NewPath],
            Text::Disk => [Col::BlockName; 3],
            Text::File => [Col::SyncFile; 3],
            Text::Symbol => [Col::SymbolText, Col::SymbolText, Col::SymbolBytes],
            Text::Outsider => [Col::Outsider; 3],
            Text::Container => [Col::Container; 3],
            Text::Others => [Col::OthersNames; 3],
            Text::Threads => [Col::Threads; 3],
            Text::Directory => [Col::Directory; 3],
        }
    }

    /// The largest length of a text of this kind, in bytes.
    pub fn limit(self) -> usize {
        match self {
            Text::Comm | Text::Others | Text::Threads => 16,
            _ => limits::NAME,
        }
    }
}

/// The two columns in which the byte strings of one kind of field are stored.
#[derive(Clone, Copy, Debug)]
pub struct TextColumns {
    /// The column with the lengths of the byte strings of the field.
    pub lengths: Col,
    /// The column with the bytes of all byte strings of the field, one after the other.
    pub bytes: Col,
}

impl TextColumns {
    pub const fn new(lengths: Col, bytes: Col) -> TextColumns {
        TextColumns { lengths, bytes }
    }
}

/// The columns of a quantity that is stored as a number of whole units and a rest.
#[derive(Clone, Copy, Debug)]
pub struct QuantityColumns {
    /// The unit in which the column `whole` counts the quantity.
    pub unit: u64,
    /// The column with the number of whole units of each quantity.
    pub whole: Col,
    /// The column with the rest of each quantity beyond the whole units, as a number below `unit`.
    pub rest: Col,
}

impl QuantityColumns {
    /// The columns of those CPU times in ns that are stored in whole units and a rest.
    pub const fn times(whole: Col, rest: Col) -> QuantityColumns {
        QuantityColumns {
            unit: TICK,
            whole,
            rest,
        }
    }

    /// The columns of quantities of memory in bytes that are stored in whole units and a rest.
    pub const fn memory(whole: Col, rest: Col) -> QuantityColumns {
        QuantityColumns {
            unit: UNIT,
            whole,
            rest,
        }
    }
}

/// The unit in bytes of which nearly all quantities of memory and of I/O are multiples.
const UNIT: u64 = 512;
/// The unit in ns of CPU times, which are stored as whole units and a rest. Some kernels count CPU time in ticks of
/// whole milliseconds, so that the rest is 0.
const TICK: u64 = 1_000_000;
/// The largest number of recent tasks, of recent cgroups and of recent unrecorded tasks to which the events of a
/// frame can refer by their place in a list.
const MOST_RECENT: usize = 254;

/// A disk that tasks have waited for: its numbers (major and minor), and its name.
pub type Disk = ((u32, u32), Arc<[u8]>);

/// The state of a frame: facts about the earlier events of the frame. The next event is stored as its differences from
/// these facts. An encoder and a decoder keep the same state.
#[derive(Debug, Default)]
pub struct FrameState {
    pub time: u64,
    /// The number of the kind of the event that is being written or read.
    pub kind: u8,
    /// For each column: the last id that was stored as a difference. The next id is stored as the difference to this
    /// one.
    last: Vec<u32>,
    tasks: Vec<(Tid, Tgid)>,
    cgroups: Vec<CgroupId>,
    /// The processes and names of the unrecorded tasks that recent events of kind [`Others`](crate::event::Others)
    /// named, the most recent first.
    pub others: Vec<(Tgid, Comm)>,
    /// The start time in ns of the task in the previous snapshot event, which shows the state of a living task.
    pub start: u64,
    /// The figures in the exit events of tasks, by the task's id: run time, voluntary and involuntary switches,
    /// delays. The tasks' final events are stored as increases of these figures.
    pub exits: HashMap<u32, [Option<u64>; 6]>,
    /// The totals in the previous account event of each task, by the task's id: run time, run delay, slices. The next
    /// account event is stored as the increases of these totals.
    pub accounts: HashMap<u32, [u64; 3]>,
    /// The number of the previous new TCP connection.
    pub connection: u64,
    /// The internet addresses that have occurred in the frame so far.
    pub addresses: Vec<Address>,
    /// The position of each internet address in `addresses`. Only a writer needs it.
    pub address_at: HashMap<Address, usize>,
    /// The values of the machine's counters at the previous sample, by the number of the counter.
    pub counters: Vec<Option<u64>>,
    /// The disks that the frame's events of kind `DiskWait` have named so far.
    pub disks: Vec<Disk>,
    /// The number that is expected for the next new frame of a sampled stack. The difference to it is stored.
    pub frame: u32,
    /// The number that is expected for the next new sampled stack. The difference to it is stored.
    pub stack: u32,
    /// For each mapped file, each process, and the kernel (the key): the offset or address of the previous new stack
    /// frame in it. The next new frame in it is stored as the difference to this value.
    pub offsets: HashMap<u64, u64>,
    /// For samples of stacks on a CPU and for samples off CPU: the length of time in ns that the previous such sample
    /// stands for. The length of the next sample of the same kind is stored as the difference from this one.
    pub ns: [u64; 2],
    /// The number of bytes of strings that were read from the frame so far. This number has a limit, because short
    /// references can repeat a long string.
    pub strings: u64,
    /// The number of [`CallSum`](crate::counters::CallSum) values that were read from the frame so far, for comparison
    /// with a limit.
    pub calls: u64,
    /// The number of new stacks and functions that were read from the frame so far, for comparison with a limit.
    pub stacks: u64,
}

impl FrameState {
    /// The state of an encoder or decoder before the first event of a frame, whose smallest time is `time` in ns.
    pub fn new(time: u64) -> FrameState {
        FrameState {
            time,
            ..FrameState::default()
        }
    }

    /// The last id that was stored as a difference for the column `col`; the caller may change it.
    #[allow(clippy::indexing_slicing)] // the array has a place for every `Col`
    pub fn last(&mut self, col: Col) -> &mut u32 {
        if self.last.is_empty() {
            self.last = vec![0; COLUMNS];
        }
        &mut self.last[col as usize]
    }

    /// Counts bytes of strings that were read from a frame. Returns an error if their sum exceeds the limit.
    pub fn spend(&mut self, bytes: usize) -> Step {
        self.strings += bytes as u64;
        within("the strings' length", self.strings, limits::STRINGS)
    }

    /// The process of the task with this tid, if the task is among the recent tasks of the frame.
    pub fn process_of(&self, tid: Tid) -> Option<Tgid> {
        let known = self.tasks.iter().find(|task| task.0 == tid);
        known.map(|task| task.1)
    }
}

/// A type for the bytes of an event's field. The event can own the bytes or share them with other events.
pub trait Bytes: Sized {
    fn bytes(&self) -> &[u8];
    /// Creates the value of an event's field with a copy of these bytes.
    fn copy(bytes: &[u8]) -> Self;
    /// Creates a value with a copy of a text of any length. The text is cut where the type has a limit.
    fn fitted(text: &[u8]) -> Self {
        Self::copy(text)
    }
    /// Creates a value with the bytes of a text that other events may share.
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

/// One way to process the described fields of an event: to write them into columns, to read them from columns, or to
/// pass their texts to a mask, which replaces secrets.
pub trait Codec: Sized {
    /// Whether this codec takes the values from an event, to write or to mask them; otherwise it reads them from
    /// columns.
    const WRITES: bool;

    fn known(&mut self) -> &mut FrameState;
    fn byte(&mut self, col: Col, value: &mut u8) -> Step;
    /// Writes or reads a number, which is stored as a varint in the column `col`.
    fn int(&mut self, col: Col, value: &mut u64) -> Step;
    /// Writes or reads a number with random low bits. The column `col` has a byte with its sign and magnitude, and the
    /// low bits are stored separately.
    fn wide(&mut self, col: Col, value: &mut u64) -> Step;
    /// Writes or reads a byte string, which is stored as a length and that many bytes. At most `most` bytes are
    /// written or read. The value has to be empty before it is read.
    fn bytes<T: Bytes>(&mut self, cols: TextColumns, most: usize, value: &mut T) -> Step;
    /// Writes or reads bytes that are not text and so have no secrets: unlike texts, they are not passed to a mask.
    fn opaque<T: Bytes>(&mut self, cols: TextColumns, most: usize, value: &mut T) -> Step {
        self.bytes(cols, most, value)
    }
    /// Writes or reads a text of an event. Equal texts are stored once in a frame.
    fn text<T: Bytes>(&mut self, of: Text, value: &mut T) -> Step;

    /// Whether the column that is being read has no more values. A reader asks this for a column that a later version
    /// added to a kind of events, because traces of earlier versions do not have the column.
    fn is_over(&mut self, _: Col) -> bool {
        false
    }

    fn comm(&mut self, value: &mut Comm) -> Step {
        self.text(Text::Comm, value)
    }

    fn path<T: Bytes>(&mut self, value: &mut T) -> Step {
        self.text(Text::Path, value)
    }

    /// Writes or reads a number of a type narrower than 64 bits, which is stored as a varint.
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

    /// Writes or reads an optional number, which is stored as 0 for `None`, else as the value plus 1. The largest
    /// 64-bit number is read as `None`.
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

    /// Writes or reads a boolean, which is stored as a varint: 0 or 1.
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

    /// Writes or reads several booleans, which are stored as one byte of flags with the first flag in the lowest bit.
    /// If a byte that is read has other bits, the error has the text `unknown`.
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

    /// Writes or reads an id, which is stored as the difference to the number `from`.
    #[inline(always)]
    fn diff(&mut self, col: Col, value: &mut u32, from: u32) -> Step {
        let mut stored = fold(i64::from(*value) - i64::from(from));
        self.int(col, &mut stored)?;
        *value = unfolded(stored, from)?;
        Ok(())
    }

    /// Writes or reads an id, which is stored as the difference to the previous id that was stored for the column
    /// `last`.
    fn step(&mut self, col: Col, last: Col, value: &mut u32) -> Step {
        let from = *self.known().last(last);
        self.diff(col, value, from)?;
        *self.known().last(last) = *value;
        Ok(())
    }

    /// Writes or reads a task and its process in columns that only the event's own kind uses. An older reader skips
    /// such an event, so the list of recent tasks must not change.
    fn own_task(&mut self, col: Col, last: Col, tid: &mut Tid, tgid: &mut Tgid) -> Step {
        self.step(col, last, &mut tid.0)?;
        self.diff(col, &mut tgid.0, tid.0)
    }

    /// Writes or reads a number, which is stored as a varint of the difference to the number `from`.
    #[inline(always)]
    fn change(&mut self, col: Col, value: &mut u64, from: u64) -> Step {
        let mut stored = fold(value.wrapping_sub(from) as i64);
        self.int(col, &mut stored)?;
        *value = from.wrapping_add(unfold(stored) as u64);
        Ok(())
    }

    /// Writes or reads a number, which is stored as the difference to the number `from`. The difference is stored like
    /// a number with random low bits ([`Codec::wide`]).
    #[inline(always)]
    fn increase(&mut self, col: Col, value: &mut u64, from: u64) -> Step {
        let mut stored = value.wrapping_sub(from);
        self.wide(col, &mut stored)?;
        *value = from.wrapping_add(stored);
        Ok(())
    }

    /// Writes or reads a quantity, which is stored as a number of whole units and a rest.
    fn quantity(&mut self, cols: QuantityColumns, value: &mut u64) -> Step {
        let unit = cols.unit;
        let (mut whole, mut part) = (*value / unit, *value % unit);
        self.int(cols.whole, &mut whole)?;
        self.int(cols.rest, &mut part)?;
        *value = whole_and_rest(unit, whole, part)?;
        Ok(())
    }

    /// Writes or reads a number of bytes of memory or of I/O; `None` if the number is not known. The number of whole
    /// units (of `UNIT` bytes) and the remaining bytes are stored separately.
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

    /// Writes or reads a value that often repeats. It is stored as its place in a list of recent values, counted from
    /// 1, or as 0 if it is new. A recent value moves to the front of the list. Returns whether the value is new.
    fn recent<T: Copy + PartialEq>(
        &mut self,
        col: Col,
        list: impl Fn(&mut FrameState) -> &mut Vec<T>,
        value: &mut T,
    ) -> Result<bool, Fault> {
        let mut rank = 0;
        if Self::WRITES {
            let found = list(self.known()).iter().position(|recent| recent == value);
            rank = found.map_or(0, |at| at as u64 + 1);
        }
        self.int(col, &mut rank)?;
        let Some(at) = rank.checked_sub(1) else {
            return Ok(true);
        };
        let found = usize::try_from(at)
            .ok()
            .and_then(|at| to_front(list(self.known()), at));
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

    /// Writes or reads a task, with its process, that is not among the recent tasks of the frame, and adds it to
    /// them.
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
        let cols = TextColumns::new(Col::ArgvLen, Col::Argv);
        self.bytes(cols, limits::ARGV, &mut argv.bytes)?;
        let len = argv.bytes.len().min(limits::ARGV) as i64;
        let more = |full| fold(i64::from(full) - len).saturating_add(1);
        let mut stored = argv.full_len.map_or(0, more);
        self.int(Col::ArgvFull, &mut stored)?;
        let full = stored.checked_sub(1).map(|more| {
            let full = len
                .checked_add(unfold(more))
                .and_then(|full| u32::try_from(full).ok());
            full.ok_or(Fault::Content("an argv's length does not fit in 32 bits"))
        });
        argv.full_len = full.transpose()?;
        Ok(())
    }

    /// Writes or reads an internet address, which is stored in a column of lengths and a column of bytes. A masked
    /// address has no bytes.
    fn address(&mut self, cols: TextColumns, address: &mut Address) -> Step {
        let (mut ip, mut number): (Box<[u8]>, u64) = match *address {
            Address::V4(ip) => (ip.octets().into(), 0),
            Address::V6(ip) => (ip.octets().into(), 0),
            Address::Masked(number) => (Box::default(), number),
        };
        self.opaque(cols, limits::NAME, &mut ip)?;
        if ip.is_empty() {
            self.int(cols.lengths, &mut number)?;
        }
        *address = match (<[u8; 4]>::try_from(&*ip), <[u8; 16]>::try_from(&*ip)) {
            (Ok(ip), _) => Address::V4(ip.into()),
            (_, Ok(ip)) => Address::V6(ip.into()),
            _ if ip.is_empty() => Address::Masked(number),
            _ => return Err(Fault::Content("unknown length of an address")),
        };
        Ok(())
    }

    /// Writes or reads the number of elements of a list. At most `most` elements are written; a larger number is
    /// refused when reading. Returns the number.
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

    /// Writes or reads the first `count` elements of a list by calling `each` for every one. When reading, no memory
    /// is reserved for `count` elements, because a damaged file can have any number there.
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
                .try_for_each(|element| each(self, element));
        }
        for _ in 0..count {
            let mut element = T::default();
            each(self, &mut element)?;
            list.push(element);
        }
        Ok(())
    }
}

/// Returns an error for invalid content of a frame if `wrong` is true. `why` is the text of the error.
pub fn refuse_if(wrong: bool, why: &'static str) -> Step {
    if wrong {
        return Err(Fault::Content(why));
    }
    Ok(())
}

/// Converts a number that was read from a trace into the type of its field, or returns an error if the number does not
/// fit.
pub fn fitting<T: TryFrom<u64>>(number: u64) -> Result<T, Fault> {
    T::try_from(number).map_err(|_| Fault::Content("a number does not fit in its field"))
}

/// Computes an id from its stored form. The stored number is the difference to the id `from`, with the sign of the
/// difference in its lowest bit.
pub fn unfolded(difference: u64, from: u32) -> Result<u32, Fault> {
    i64::from(from)
        .checked_add(unfold(difference))
        .and_then(|id| u32::try_from(id).ok())
        .ok_or(Fault::Content("an id does not fit in 32 bits"))
}

fn whole_and_rest(unit: u64, units: u64, rest: u64) -> Result<u64, Fault> {
    units
        .checked_mul(unit)
        .filter(|_| rest < unit)
        .and_then(|whole| whole.checked_add(rest))
        .ok_or(Fault::Content("a quantity does not fit in 64 bits"))
}

/// The element at distance `back` from the end of a list. The last element has distance 1.
pub fn ago<T>(list: &[T], back: u64) -> Result<&T, Fault> {
    usize::try_from(back)
        .ok()
        .and_then(|back| list.len().checked_sub(back))
        .and_then(|at| list.get(at))
        .ok_or(Fault::Content("string index out of range"))
}

/// Moves the element at the index `at` to the front of a list and returns it.
fn to_front<T: Copy>(list: &mut [T], at: usize) -> Option<T> {
    let part = list.get_mut(..=at)?;
    part.rotate_right(1);
    part.first().copied()
}

pub fn to_new_front<T>(list: &mut Vec<T>, value: T) {
    list.truncate(MOST_RECENT - 1);
    list.insert(0, value);
}
