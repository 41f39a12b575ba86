//! The changes of one task's state, packed: four to eight bytes for each change instead of 16.
//!
//! Changes are packed in segments of [`SEGMENT_LENGTH`]. A segment can be unpacked alone, and an index has the place
//! and the time of each segment. Complete segments can move to a [`Scratch`] file.
//!
//! A packed change begins with one byte. The byte is followed by the time since the change before (0 in the first
//! change of a segment, whose time is in the index) and, as the byte indicates, by an actor and other facts:
//!
//! | bits of the byte | contents |
//! | --- | --- |
//! | 0 to 3 | the state, a place in `DOING_STATES` |
//! | 4 and 5 | the length of the time: 2, 3, 4 or 8 bytes |
//! | 6 | whether there is an actor |
//! | 7 | whether other facts differ from those of the last change of the same kind in the segment |
//!
//! Numbers of a variable length have seven bits in each byte, the lowest first.

use crate::scratch::Scratch;
use crate::timeline::change::{
    ActorRef, Change, DOING_BITS, LAST_WITHOUT_REASON, REASON, STATE_ON_CPU,
};
use tr_format::event::Ktime;

/// The number of packed changes of state in a segment. The number is a guess: with more, a look-up unpacks more
/// changes; with fewer, the beginnings of segments take more memory. No result depends on it.
pub(super) const SEGMENT_LENGTH: usize = 64;

/// The largest number of bytes of a packed change: one byte, up to 8 for the time, 10 for an actor, and 5 for the
/// reason, the time-out and the CPU.
const LONGEST_CHANGE: usize = 24;

/// The possible numbers of bytes of a packed time. The index is in two bits of the change's first byte.
const TIME_LENGTHS: [usize; 4] = [2, 3, 4, 8];
const HAS_ACTOR: u8 = 1 << 6;
const HAS_FACTS: u8 = 1 << 7;
const STATE: u8 = (1 << DOING_BITS) - 1;

/// The beginning of a segment of a task's packed changes, as an entry of the index.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The time of the first change of state in the segment.
    from: Ktime,
    /// Two values in one number: the offset of the segment among all packed bytes of the task, and the bit
    /// [`Segment::BY_TASK`].
    place: u64,
}

impl Segment {
    /// The bit of [`Segment::place`] that is set if the segment has a wait that a task ended.
    const BY_TASK: u64 = 1 << 63;

    fn at(&self) -> u64 {
        self.place & !Segment::BY_TASK
    }
}

/// A range of a task's packed bytes that were moved to a [`Scratch`] file.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// The offset of the range's first byte among all packed bytes of the task.
    at: u64,
    /// The offset of the range's first byte in the scratch file.
    place: u64,
}

/// The values in earlier changes of a segment while it is packed or unpacked. A later change does not repeat a
/// value that stays the same.
#[derive(Clone, Copy, Debug)]
struct LastChanges {
    from: u64,
    /// The CPU of the last packed change that moved the task to a CPU.
    cpu: u16,
    /// Two facts about the last packed change to a wait: the upper bits of its `doing`, and its `reason`.
    wait: (u8, u8),
}

impl LastChanges {
    fn new(from: Ktime) -> LastChanges {
        LastChanges {
            from: from.0,
            cpu: u16::MAX,
            wait: (0, 0),
        }
    }
}

/// The packed changes of the state of one task.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    /// The task's packed bytes that are in memory. The first of these bytes has the offset `begin` among all packed
    /// bytes of the task.
    bytes: Vec<u8>,
    begin: u64,
    index: Vec<Segment>,
    extents: Vec<Extent>,
    count: u32,
    /// The reasons of all waits of the task: bit n stands for the reason with the number n.
    reasons: u32,
    /// The number of waits of the task that tasks ended, and not interrupts.
    by_task: u32,
    last: Option<Change>,
    known: LastChanges,
}

impl Default for Packed {
    fn default() -> Packed {
        Packed {
            bytes: Vec::new(),
            begin: 0,
            index: Vec::new(),
            extents: Vec::new(),
            count: 0,
            reasons: 0,
            by_task: 0,
            last: None,
            known: LastChanges::new(Ktime(0)),
        }
    }
}

impl Packed {
    pub fn count(&self) -> usize {
        self.count as usize
    }

    pub fn last(&self) -> Option<&Change> {
        self.last.as_ref()
    }

    pub fn segments(&self) -> usize {
        self.index.len()
    }

    /// The time of the first change in the segment with the number `segment`; `None` if there is no such segment.
    pub fn begin_of(&self, segment: usize) -> Option<Ktime> {
        self.index.get(segment).map(|segment| segment.from)
    }

    /// The number of waits of the task that tasks ended, and not interrupts.
    pub fn by_task(&self) -> u32 {
        self.by_task
    }

    /// Whether the segment with the number `segment` contains a wait that a task ended, and not an interrupt.
    pub fn has_by_task(&self, segment: usize) -> bool {
        let segment = self.index.get(segment);
        segment.is_some_and(|segment| segment.place & Segment::BY_TASK != 0)
    }

    /// Whether the task has a wait for the reason with this number.
    pub fn has_reason(&self, number: u8) -> bool {
        self.reasons & 1 << (number & REASON) != 0
    }

    /// The number of the last segment of the task's packed changes that begins at or before a time.
    pub fn segment_at(&self, time: Ktime) -> Option<usize> {
        let after = self.index.partition_point(|segment| segment.from <= time);
        after.checked_sub(1)
    }

    /// Packs a change of the state of the task with the number `task`, and appends it. The change is not earlier
    /// than the last one. Returns the number of bytes by which the packed bytes in memory grew.
    pub fn push(&mut self, task: usize, change: Change) -> usize {
        let before = self.bytes.len();
        if (self.count as usize).is_multiple_of(SEGMENT_LENGTH) {
            self.index.push(Segment {
                from: change.from,
                place: self.begin + before as u64,
            });
            self.known = LastChanges::new(change.from);
        }
        self.count += 1;
        self.last = Some(change);
        if is_wait(change.doing & STATE) {
            self.reasons |= 1 << (change.reason & REASON);
            let by_task = change.actor.place().is_some() || change.actor.outside_tid().is_some();
            if let Some(segment) = self.index.last_mut().filter(|_| by_task) {
                segment.place |= Segment::BY_TASK;
                self.by_task += 1;
            }
        }
        let mut packed = [0; LONGEST_CHANGE];
        let length = pack(&mut packed, task, &mut self.known, &change);
        self.bytes
            .extend_from_slice(packed.get(..length).unwrap_or_default());
        self.bytes.len() - before
    }

    /// The number of the task's packed bytes in memory that belong to complete segments and can be moved to a file.
    /// The last segment may get more changes.
    pub fn movable(&self) -> usize {
        let open = self.index.last().map_or(self.begin, Segment::at);
        usize::try_from(open.saturating_sub(self.begin)).unwrap_or(0)
    }

    /// The number of the task's packed bytes that are in memory.
    pub fn in_memory(&self) -> usize {
        self.bytes.len()
    }

    /// The first `movable` of the task's packed bytes in memory, which are to be moved to a file.
    pub fn to_move(&self, movable: usize) -> &[u8] {
        self.bytes.get(..movable).unwrap_or_default()
    }

    /// Notes that the first `movable` of the task's packed bytes in memory have been written to the offset `place`
    /// of a scratch file, and removes them from memory.
    pub fn moved(&mut self, movable: usize, place: u64) {
        let extent = Extent {
            at: self.begin,
            place,
        };
        self.extents.push(extent);
        self.bytes = self.bytes.get(movable..).unwrap_or_default().to_vec();
        self.begin += movable as u64;
    }

    /// Frees the memory that was reserved for further packed changes of the task.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.index.shrink_to_fit();
        self.extents.shrink_to_fit();
    }

    /// Unpacks the changes in the segment `segment` of the task with the number `task` into `to`.
    pub fn unpack(&self, task: usize, segment: usize, read: &mut Reader, to: &mut Vec<Change>) {
        to.clear();
        let Some(first) = self.index.get(segment) else {
            return;
        };
        let end = match self.index.get(segment + 1) {
            Some(next) => next.at(),
            None => self.begin + self.bytes.len() as u64,
        };
        let count = (self.count as usize)
            .saturating_sub(segment * SEGMENT_LENGTH)
            .min(SEGMENT_LENGTH);
        let bytes = match first.at().checked_sub(self.begin) {
            Some(at) => {
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                self.bytes
                    .get(place(at)..place(end - self.begin))
                    .unwrap_or_default()
            }
            None => self.read(first.at(), end, read),
        };
        unpack(bytes, task, first.from, count, to);
    }

    /// Reads the task's packed bytes from the offset `from` to `end`, which are in the scratch file. Returns no
    /// bytes if they cannot be read.
    fn read<'r>(&self, from: u64, end: u64, reader: &'r mut Reader) -> &'r [u8] {
        let after = self.extents.partition_point(|extent| extent.at <= from);
        let extent = after.checked_sub(1).and_then(|at| self.extents.get(at));
        let Some(extent) = extent else {
            return &[];
        };
        let until = self.extents.get(after).map_or(self.begin, |next| next.at);
        let place = |at: u64| extent.place + at.saturating_sub(extent.at);
        reader.read(place(from)..place(end.min(until)), place(until))
    }
}

/// Reads pieces of a scratch file. One read from the file may return more than is requested, and the rest is kept for
/// the next request.
#[derive(Debug, Default)]
pub(super) struct Reader {
    scratch: Option<&'static Scratch>,
    /// The number of bytes of the scratch file that are read with one call in addition to the requested bytes.
    ahead: u64,
    at: u64,
    bytes: Vec<u8>,
}

impl Reader {
    pub fn new(scratch: Option<&'static Scratch>, ahead: u64) -> Reader {
        Reader {
            scratch,
            ahead,
            at: 0,
            bytes: Vec::new(),
        }
    }

    /// Reads a range of the scratch file. Bytes after the range, but not beyond `until`, may be read with the same
    /// call. Returns no bytes if the range cannot be read.
    fn read(&mut self, range: std::ops::Range<u64>, until: u64) -> &[u8] {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let has = self.at <= range.start && range.end <= self.at + self.bytes.len() as u64;
        if !has {
            let end = range
                .end
                .saturating_add(self.ahead)
                .min(until)
                .max(range.end);
            self.bytes.resize(place(end.saturating_sub(range.start)), 0);
            self.at = range.start;
            let read = self
                .scratch
                .is_some_and(|scratch| scratch.read(range.start, &mut self.bytes));
            if !read {
                self.bytes.clear();
            }
        }
        let from = place(range.start - self.at);
        let to = place(range.end - self.at);
        self.bytes.get(from..to).unwrap_or_default()
    }
}

/// Packs a change of a task's state into `to`. Returns the length of the packed change in bytes.
fn pack(
    to: &mut [u8; LONGEST_CHANGE],
    task: usize,
    known: &mut LastChanges,
    change: &Change,
) -> usize {
    let state = change.doing & STATE;
    let since = change.from.0.saturating_sub(known.from);
    known.from = change.from.0;
    let bits = match since {
        0..=0xffff => 0,
        0x1_0000..=0xff_ffff => 1,
        0x100_0000..=0xffff_ffff => 2,
        _ => 3,
    };
    let mut byte = state | bits << 4;
    let mut out = Out { to, length: 1 };
    let time = since.to_le_bytes();
    let length = TIME_LENGTHS.get(usize::from(bits)).copied().unwrap_or(8);
    out.put(time.get(..length).unwrap_or_default());
    if change.actor != ActorRef::UNKNOWN {
        byte |= HAS_ACTOR;
        out.number(packed_actor(task, change.actor));
    }
    if state == STATE_ON_CPU {
        if change.cpu != known.cpu {
            byte |= HAS_FACTS;
            out.number(u64::from(change.cpu));
            known.cpu = change.cpu;
        }
    } else {
        let wait = (change.doing & !STATE, change.reason);
        let plain = change.cpu == u16::MAX && wait == (0, 0);
        if change.cpu != u16::MAX
            || (is_wait(state) && wait != known.wait)
            || !(is_wait(state) || plain)
        {
            byte |= HAS_FACTS;
            out.put(&[wait.0, wait.1]);
            out.number(u64::from(change.cpu));
            if is_wait(state) {
                known.wait = wait;
            }
        }
    }
    let length = out.length;
    to[0] = byte;
    length
}

/// Whether a state of a task, by its number, is a wait, so that it has a reason and a time-out.
fn is_wait(state: u8) -> bool {
    state > LAST_WITHOUT_REASON
}

/// Turns the task or interrupt that woke or preempted a task into a number. The three lowest bits are the kind of this
/// actor. The other bits are the actor's tid, or the distance of the actor's index from the index of the task that was
/// woken or preempted.
fn packed_actor(task: usize, actor: ActorRef) -> u64 {
    match actor.place() {
        Some(place) => {
            let distance = (place as i64).wrapping_sub(task as i64);
            let distance = (distance << 1 ^ distance >> 63) as u64;
            distance << 3
        }
        None => match actor.outside_tid() {
            Some(tid) => u64::from(tid.0) << 3 | 1,
            // The actor is a constant, such as [`ActorRef::UNKNOWN`]. The constants are the numbers from `u32::MAX`
            // downwards. Each constant has a kind of its own in the packed number, from 2 upwards.
            None => u64::from(u32::MAX - actor.0) + 2,
        },
    }
}

/// The task or interrupt that a number made by [`packed_actor`] stands for.
fn unpacked_actor(task: usize, number: u64) -> ActorRef {
    let value = number >> 3;
    match number & 7 {
        0 => {
            let distance = (value >> 1) as i64 ^ -((value & 1) as i64);
            ActorRef::task((task as i64).wrapping_add(distance) as usize)
        }
        1 => ActorRef::outside(tr_format::event::Tid(value as u32)),
        kind => ActorRef(u32::MAX - (kind as u32 - 2)),
    }
}

struct Out<'a> {
    to: &'a mut [u8; LONGEST_CHANGE],
    length: usize,
}

impl Out<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(to) = self.to.get_mut(self.length..end) {
            to.copy_from_slice(bytes);
            self.length = end;
        }
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.put(&[number as u8 | 0x80]);
            number >>= 7;
        }
        self.put(&[number as u8]);
    }
}

struct In<'a>(&'a [u8]);

impl In<'_> {
    #[inline(always)]
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline(always)]
    fn time(&mut self, bits: u8) -> Option<u64> {
        let length = match bits & 3 {
            0 => 2,
            1 => 3,
            2 => 4,
            _ => 8,
        };
        let time = match self.0.first_chunk::<8>() {
            Some(all) => u64::from_le_bytes(*all) & (u64::MAX >> (64 - 8 * length)),
            None => {
                let mut all = [0; 8];
                all.get_mut(..length)?
                    .copy_from_slice(self.0.get(..length)?);
                u64::from_le_bytes(all)
            }
        };
        self.0 = self.0.get(length..)?;
        Some(time)
    }

    #[inline(always)]
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
            if shift > 63 {
                return None;
            }
        }
    }
}

/// Unpacks the changes of a task's state from the bytes of a segment into `to`. `count` is the number of the
/// changes.
fn unpack(bytes: &[u8], task: usize, from: Ktime, count: usize, to: &mut Vec<Change>) {
    let (mut bytes, mut known) = (In(bytes), LastChanges::new(from));
    for _ in 0..count {
        // If the scratch file could not be read, there are no bytes and changes are left out. The scratch file
        // remembers the failure.
        let Some(change) = next(&mut bytes, task, &mut known) else {
            return;
        };
        to.push(change);
    }
}

#[inline(always)]
fn next(bytes: &mut In<'_>, task: usize, known: &mut LastChanges) -> Option<Change> {
    let byte = bytes.byte()?;
    let state = byte & STATE;
    known.from = known.from.wrapping_add(bytes.time(byte >> 4)?);
    let actor = if byte & HAS_ACTOR != 0 {
        unpacked_actor(task, bytes.number()?)
    } else {
        ActorRef::UNKNOWN
    };
    let (mut doing, mut reason, mut cpu) = (state, 0, u16::MAX);
    if state == STATE_ON_CPU {
        if byte & HAS_FACTS != 0 {
            known.cpu = bytes.number()? as u16;
        }
        cpu = known.cpu;
    } else if byte & HAS_FACTS != 0 {
        let wait = (bytes.byte()?, bytes.byte()?);
        cpu = bytes.number()? as u16;
        (doing, reason) = (state | wait.0, wait.1);
        if is_wait(state) {
            known.wait = wait;
        }
    } else if is_wait(state) {
        (doing, reason) = (state | known.wait.0, known.wait.1);
    }
    Some(Change {
        from: Ktime(known.from),
        actor,
        cpu,
        doing,
        reason,
    })
}
