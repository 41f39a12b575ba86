//! Turns the stored columns of a block of scheduling events into events. It works column by column, because
//! short loops are faster than one loop over whole events.

use std::slice::Iter;

use super::bits::BitReader;
use super::quantum::{self, LONGEST_QUANTUM, NANOSECOND};
use super::tasks::{Recent, Sleep, Tasks, FIRST_AT, GIVEN_AT, IDLE_AT, IRQ_AT, RANKS};
use super::{
    part, step_of, to_idle, Class, COLUMN_PARTS, COMMON_CLASSES, EXPECTED_TASK, FAR_TASK,
    GIVEN_TASK, NEW_TASK, OTHER_CLASS, PREDICTED_REASON, RANK, SAME_TIMEOUT, TIMEOUTS,
};
use crate::error::within;
use crate::frame::Span;
use crate::limits;
use crate::sched::{flag, sleeps, SchedBlock};
use crate::varint::{unfold, Cursor};
use crate::zip::Unpacker;
use crate::Fault;

/// Decodes the payloads of a trace's frames with scheduling events, and reuses its buffers from frame to frame.
#[derive(Debug, Default)]
pub struct Decoder {
    tasks: Tasks,
}

impl Decoder {
    /// Decodes the payload of a scheduling frame with `events` events. If `times` is not the smallest and the largest
    /// time of these events, an error is returned. After an error the content of the block is meaningless.
    pub fn decode(
        &mut self,
        payload: &[u8],
        events: u64,
        times: Span,
        unpacker: &mut Unpacker,
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        within("the number of events", events, limits::SCHED_EVENTS)?;
        let mut cursor = Cursor::new(payload);
        let most = limits::SCHED_BODY + limits::SCHED_BODY_EVENT * events;
        let body = unpacker.unpack(&mut cursor, most)?;
        let mut low = BitReader::new(cursor.rest());
        let mut body = Cursor::new(body);
        let quantum = body.int()?.saturating_add(NANOSECOND);
        if quantum > LONGEST_QUANTUM {
            return Err(Fault::Content("the clock's quantum is too long"));
        }
        let phase = body.int16()?;
        let first = body.int32()?;
        let byte = body.byte()?;
        let far_bits = u32::from(byte & !TIMEOUTS);
        if far_bits > 16 {
            return Err(Fault::Content("task index out of range"));
        }
        block.resize(events as usize);
        let classes = classes(&mut body, block)?;
        let names = Names {
            first,
            far_bits,
            timeouts: byte & TIMEOUTS != 0,
        };
        self.tasks(&mut body, &mut low, names, &classes, block)?;
        let grid = Times {
            quantum,
            phase,
            begin: times.min,
        };
        grid.read(&mut body, &mut low, classes.all, block)?;
        low.finish()?;
        if body.left() > 0 {
            return Err(Fault::Content("trailing bytes after the events"));
        }
        if Span::of(block.time.iter().copied()) != times {
            return Err(Fault::Content("event times differ from the frame header's"));
        }
        Ok(())
    }

    /// Fills four columns of a block of scheduling events: `from` and `to` (the two tasks of each event), `reason` (why
    /// a task goes to sleep) and `timeout` (the time-out of its sleep).
    fn tasks(
        &mut self,
        body: &mut Cursor,
        low: &mut BitReader,
        Names {
            first,
            far_bits,
            timeouts,
        }: Names,
        classes: &Classes,
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        let tasks = &mut self.tasks;
        tasks.reset();
        let mut reasons = body.take(classes.sleeps)?.iter();
        let timeouts = if timeouts { classes.sleeps } else { 0 };
        let mut timeouts = body.take(timeouts)?.iter();
        let mut symbols = parts(body, classes.named)?;
        let mut recent = Recent::new();
        let (mut current, mut new_id, mut before) = (first, first, 0);
        let mut current_at = if first == 0 { IDLE_AT } else { GIVEN_AT };
        let tasks_and_reasons = block
            .from
            .iter_mut()
            .zip(&mut block.to)
            .zip(block.reason.iter_mut().zip(&mut block.timeout));
        let classified = classes.numbers.iter().zip(&block.state).zip(&block.flags);
        for (((from, to), (reason, timeout)), ((number, state), flags)) in
            tasks_and_reasons.zip(classified)
        {
            if *flags & GIVEN_TASK != 0 {
                current = id(new_id, body)?;
                current_at = GIVEN_AT;
            }
            *from = current;
            let class = *flags;
            (*reason, *timeout) = (0, 0);
            if sleeps(class, *state) {
                let symbol = reasons.next().copied().unwrap_or(PREDICTED_REASON);
                *reason = match symbol.checked_sub(1) {
                    None => tasks.reason(current_at, *state, *number),
                    Some(given) => given,
                };
                let symbol = timeouts.next().copied().unwrap_or(SAME_TIMEOUT);
                *timeout = match symbol.checked_sub(1) {
                    None => tasks.timeout(current_at, *reason),
                    Some(given) => given,
                };
                let sleep = Sleep {
                    state: *state,
                    reason: *reason,
                    timeout: *timeout,
                };
                tasks.slept(current_at, *number, sleep);
            }
            let part = part(&mut before, class);
            if to_idle(class) {
                (*to, current, current_at) = (0, 0, IDLE_AT);
                continue;
            }
            let waking = class & flag::WAKING != 0;
            let waker = if class & flag::IRQ != 0 {
                IRQ_AT
            } else {
                current_at
            };
            let mut rank = RANKS - 1;
            let at = match next(&mut symbols, part) {
                NEW_TASK => {
                    new_id = id(new_id, body)?;
                    tasks.add(new_id)
                }
                EXPECTED_TASK if waking => {
                    let at = tasks.expected(waker);
                    rank = recent.rank(at).unwrap_or(rank);
                    at
                }
                EXPECTED_TASK => return Err(Fault::Content("no task is expected here")),
                symbol @ RANK..FAR_TASK => {
                    rank = usize::from(symbol - RANK);
                    recent.at(rank)
                }
                symbol => far(symbol, low, far_bits),
            };
            let named = tasks
                .id(at)
                .ok_or(Fault::Content("task index out of range"))?;
            recent.put(rank, at);
            *to = named;
            if waking {
                tasks.woken(waker, at);
            } else {
                (current, current_at) = (named, at);
            }
        }
        Ok(())
    }
}

/// Reads the index of a task that is not among the recent tasks of a scheduling block. The high bits are in `symbol`,
/// the byte that the block stores for the task. The `bits` low bits are read from `low`.
#[inline(always)]
fn far(symbol: u8, low: &mut BitReader, bits: u32) -> u16 {
    let high = u64::from(symbol - FAR_TASK) << bits;
    let at = high + low.get(bits) + u64::from(FIRST_AT);
    u16::try_from(at).unwrap_or(u16::MAX)
}

/// Reads the id of a task that is stored as the difference to the id `from`.
fn id(from: u32, given: &mut Cursor) -> Result<u32, Fault> {
    i64::from(from)
        .checked_add(unfold(given.int()?))
        .and_then(|id| u32::try_from(id).ok())
        .ok_or(Fault::Content("task id out of range"))
}

/// Values from the start of a stored scheduling block. The decoder needs them to find out which tasks the events name.
#[derive(Clone, Copy)]
struct Names {
    /// The id of the task that runs on the CPU before the first event of the block.
    first: u32,
    /// The number of low bits of a task's index. A block stores these bits separately: the high bits are in a byte of
    /// the column of tasks.
    far_bits: u32,
    /// Whether the block of scheduling events has a column for the time-outs of sleeps.
    timeouts: bool,
}

/// The number of symbols (bytes) in each of the four parts into which a column of a scheduling block is divided.
type Lengths = [u64; COLUMN_PARTS];

fn parts<'a>(
    body: &mut Cursor<'a>,
    lengths: Lengths,
) -> Result<[Iter<'a, u8>; COLUMN_PARTS], Fault> {
    let mut parts = [[].iter(), [].iter(), [].iter(), [].iter()];
    for (part, length) in parts.iter_mut().zip(lengths) {
        *part = body.take(length)?.iter();
    }
    Ok(parts)
}

/// Returns the next symbol (byte) of one of the four parts of a block's column. A part never runs out, because the
/// function `classes` has counted the symbols of each part.
#[inline(always)]
fn next(parts: &mut [Iter<u8>; COLUMN_PARTS], part: usize) -> u8 {
    parts
        .get_mut(part)
        .and_then(Iter::next)
        .copied()
        .unwrap_or(0)
}

/// The column of a scheduling block that has each event's class (flags and task state). The lengths of the later
/// columns follow from the classes.
struct Classes<'a> {
    numbers: &'a [u8],
    /// The number of symbols (bytes that stand for reasons) in the block's column of reasons for sleeps.
    sleeps: u64,
    /// The number of symbols (bytes that stand for tasks) in each of the four parts of the block's column of tasks.
    named: Lengths,
    /// The number of symbols (bytes) in each part of the column that stores the distances between the times of
    /// consecutive events.
    all: Lengths,
}

/// Reads the event classes (flags and task state) of a scheduling block and fills its columns `flags` and `state`.
/// `Times::read` later removes the flags IDLE and GIVEN_TASK, which only the stored form has.
#[allow(clippy::indexing_slicing)] // `part()` is below COLUMN_PARTS.
fn classes<'a>(body: &mut Cursor<'a>, block: &mut SchedBlock) -> Result<Classes<'a>, Fault> {
    let mut known: [Option<Class>; 256] = [None; 256];
    for (known, common) in known.iter_mut().zip(COMMON_CLASSES) {
        *known = Some(common);
    }
    let mut next = usize::from(OTHER_CLASS) + 1;
    let numbers = body.take(block.len() as u64)?;
    let mut classes = Classes {
        numbers,
        sleeps: 0,
        named: [0; COLUMN_PARTS],
        all: [0; COLUMN_PARTS],
    };
    let mut before = 0;
    let out = block.flags.iter_mut().zip(&mut block.state);
    for (number, (flags, state)) in numbers.iter().zip(out) {
        if *number == OTHER_CLASS {
            let class = (body.byte()?, body.int16()?);
            (*flags, *state) = class;
            if let Some(known) = known.get_mut(next) {
                *known = Some(class);
                next += 1;
            }
        } else {
            let class = known.get(usize::from(*number)).copied().flatten();
            (*flags, *state) = class.ok_or(Fault::Content("unknown event class"))?;
        }
        let part = part(&mut before, *flags);
        classes.sleeps += u64::from(sleeps(*flags, *state));
        classes.named[part] += u64::from(!to_idle(*flags));
        classes.all[part] += 1;
    }
    Ok(classes)
}

/// The grid of equally spaced times on which the event that is being read lies; a block can have several grids. A
/// grid has the first time, the spacing (the clock quantum), and the fraction of a nanosecond by which the grid
/// begins after the first time.
struct Times {
    quantum: u64,
    phase: u16,
    begin: u64,
}

impl Times {
    /// Reads the times of a block's events and fills the column `time` of the block.
    fn read(
        mut self,
        body: &mut Cursor,
        low: &mut BitReader,
        all: Lengths,
        block: &mut SchedBlock,
    ) -> Result<(), Fault> {
        let mut classes = parts(body, all)?;
        let (mut last, mut k, mut before) = (self.begin, 0u64, 0);
        for (flags, time) in block.flags.iter_mut().zip(&mut block.time) {
            let class = next(&mut classes, part(&mut before, *flags));
            *flags &= flag::ALL;
            if class == 0 {
                self.begin = last.wrapping_add(unfold(body.int()?) as u64);
                self.phase = u16::from_le_bytes([body.byte()?, body.byte()?]);
                (last, k) = (self.begin, 0);
            } else {
                let (least, width) = step_of(class);
                k = k.wrapping_add(least + low.get(width));
                last = self
                    .begin
                    .wrapping_add(quantum::offset(k, self.quantum, self.phase));
            }
            *time = last;
        }
        Ok(())
    }
}
