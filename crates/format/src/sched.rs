//! The block of scheduling events: columns in memory, columns in the file.

use crate::error::Corrupt;
use crate::event::{Ktime, SchedEvent, SchedKind, Tid};
use crate::varint::{put, unzigzag, zigzag, Input};

/// Bits of [`SchedBlock::flags`].
pub mod flag {
    /// A waking; otherwise a switch.
    pub const WAKING: u8 = 1;
    /// Waking: of a new task.
    pub const NEW: u8 = 2;
    /// Waking: the parent waits for the new task.
    pub const VFORK: u8 = 4;
    /// Waking: from an interrupt.
    pub const IRQ: u8 = 8;
    /// Switch: prev was preempted.
    pub const PREEMPT: u8 = 16;
    /// Switch: prev waits for block I/O.
    pub const IOWAIT: u8 = 32;
    /// In the file only: the running task is not the one that the events
    /// before lead to expect, and is given.
    pub(super) const SURPRISE: u8 = 64;
}

/// Scheduling events of one CPU, a column for each field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedBlock {
    /// Times in ns.
    pub time: Vec<u64>,
    /// prev or waker.
    pub from: Vec<u32>,
    /// next or wakee.
    pub to: Vec<u32>,
    /// prev_state; 0 for a waking.
    pub state: Vec<u16>,
    /// Kind and flags; see [`flag`].
    pub flags: Vec<u8>,
}

impl SchedBlock {
    /// How many events.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// No events.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Removes all events, keeps the memory.
    pub fn clear(&mut self) {
        self.time.clear();
        self.from.clear();
        self.to.clear();
        self.state.clear();
        self.flags.clear();
    }

    /// Appends an event.
    pub fn push(&mut self, event: SchedEvent) {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let (from, to, state, flags) = match event.kind {
            SchedKind::Switch {
                prev,
                next,
                prev_state,
                preempt,
                iowait,
            } => (
                prev,
                next,
                prev_state,
                bit(preempt, flag::PREEMPT) | bit(iowait, flag::IOWAIT),
            ),
            SchedKind::Waking {
                waker,
                wakee,
                irq,
                new,
                vfork,
            } => {
                let flags = bit(irq, flag::IRQ) | bit(new, flag::NEW) | bit(vfork, flag::VFORK);
                (waker, wakee, 0, flag::WAKING | flags)
            }
        };
        self.time.push(event.time.0);
        self.from.push(from.0);
        self.to.push(to.0);
        self.state.push(state);
        self.flags.push(flags);
    }

    /// The event at a place.
    pub fn get(&self, at: usize) -> Option<SchedEvent> {
        let flags = *self.flags.get(at)?;
        let (from, to) = (Tid(*self.from.get(at)?), Tid(*self.to.get(at)?));
        let is = |bit: u8| flags & bit != 0;
        let kind = if is(flag::WAKING) {
            SchedKind::Waking {
                waker: from,
                wakee: to,
                irq: is(flag::IRQ),
                new: is(flag::NEW),
                vfork: is(flag::VFORK),
            }
        } else {
            SchedKind::Switch {
                prev: from,
                next: to,
                prev_state: *self.state.get(at)?,
                preempt: is(flag::PREEMPT),
                iowait: is(flag::IOWAIT),
            }
        };
        Some(SchedEvent {
            time: Ktime(*self.time.get(at)?),
            kind,
        })
    }

    /// The events in their order.
    pub fn iter(&self) -> impl Iterator<Item = SchedEvent> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Smallest and largest time.
    pub fn span(&self) -> Option<(Ktime, Ktime)> {
        let first = *self.time.first()?;
        let (min, max) = self
            .time
            .iter()
            .fold((first, first), |(min, max), t| (min.min(*t), max.max(*t)));
        Some((Ktime(min), Ktime(max)))
    }

    /// Turns the block into its columns: those to be compressed, and the low
    /// bits of the time differences, which no compression makes smaller.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, bits: &mut Vec<u8>) {
        let mut columns: [Vec<u8>; 6] = Default::default();
        let [flags, lengths, tasks, literals, states, surprises] = &mut columns;
        let mut low = BitWriter::new(bits);
        let mut recent = Recent::default();
        let (mut time, mut running) = (0u64, None);
        for event in self.iter() {
            let difference = zigzag(event.time.0.wrapping_sub(time).cast_signed());
            time = event.time.0;
            let length = 64 - difference.leading_zeros();
            lengths.push(length as u8);
            // The highest bit is implied by the length.
            low.put(difference, length.saturating_sub(1));

            let (mut byte, from, to) = match event.kind {
                SchedKind::Switch {
                    prev,
                    next,
                    prev_state,
                    preempt,
                    iowait,
                } => {
                    put(states, u64::from(prev_state));
                    (
                        if preempt { flag::PREEMPT } else { 0 }
                            | if iowait { flag::IOWAIT } else { 0 },
                        prev,
                        next,
                    )
                }
                SchedKind::Waking {
                    waker,
                    wakee,
                    irq,
                    new,
                    vfork,
                } => {
                    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
                    let flags = bit(irq, flag::IRQ) | bit(new, flag::NEW) | bit(vfork, flag::VFORK);
                    (flag::WAKING | flags, waker, wakee)
                }
            };
            if running != Some(from.0) {
                byte |= flag::SURPRISE;
                put(surprises, u64::from(from.0));
            }
            running = Some(if byte & flag::WAKING == 0 {
                to.0
            } else {
                from.0
            });
            flags.push(byte);
            match recent.place(to.0) {
                Some(place) => tasks.push(place),
                None => {
                    tasks.push(NOT_RECENT);
                    put(literals, u64::from(to.0));
                }
            }
        }
        low.finish();
        for column in &columns {
            put(out, column.len() as u64);
            out.extend_from_slice(column);
        }
    }

    /// The reverse of [`SchedBlock::encode`], for `events` events.
    pub(crate) fn decode(
        &mut self,
        packed: &[u8],
        bits: &[u8],
        events: usize,
    ) -> Result<(), Corrupt> {
        self.clear();
        let mut input = Input(packed);
        let mut column = || input.counted();
        let flags = column()?;
        let lengths = column()?;
        let tasks = column()?;
        let (mut literals, mut states, mut surprises) =
            (Input(column()?), Input(column()?), Input(column()?));
        if flags.len() != events || lengths.len() != events || tasks.len() != events {
            return Err(Corrupt(
                "a column has not as many values as there are events",
            ));
        }
        let mut low = BitReader::new(bits);
        let mut recent = Recent::default();
        let (mut time, mut running) = (0u64, None);
        for ((byte, length), place) in flags.iter().zip(lengths).zip(tasks) {
            let difference = match *length {
                0 => 0,
                length @ 1..=64 => low.take(u32::from(length) - 1)? | 1 << (length - 1),
                _ => return Err(Corrupt("a time difference has more than 64 bits")),
            };
            time = time.wrapping_add(unzigzag(difference).cast_unsigned());
            let from = match running {
                Some(from) if byte & flag::SURPRISE == 0 => from,
                _ => surprises.u32()?,
            };
            let to = if *place == NOT_RECENT {
                recent.add(literals.u32()?)
            } else {
                recent.take(*place)?
            };
            let waking = byte & flag::WAKING != 0;
            running = Some(if waking { from } else { to });
            self.time.push(time);
            self.from.push(from);
            self.to.push(to);
            self.state.push(if waking { 0 } else { states.u16()? });
            self.flags.push(byte & !flag::SURPRISE);
        }
        Ok(())
    }
}

/// Stands for a task that is not among the recent ones.
const NOT_RECENT: u8 = 255;

/// The tasks met last, the latest first.
#[derive(Default)]
struct Recent(Vec<u32>);

impl Recent {
    /// The place of a task, which becomes the first.
    fn place(&mut self, task: u32) -> Option<u8> {
        match self.0.iter().position(|t| *t == task) {
            Some(place) => {
                self.move_up(place);
                u8::try_from(place).ok()
            }
            None => {
                self.add(task);
                None
            }
        }
    }

    fn add(&mut self, task: u32) -> u32 {
        self.0.truncate(usize::from(NOT_RECENT) - 1);
        self.0.insert(0, task);
        task
    }

    fn take(&mut self, place: u8) -> Result<u32, Corrupt> {
        let task = *self
            .0
            .get(usize::from(place))
            .ok_or(Corrupt("a task's place is beyond the list"))?;
        self.move_up(usize::from(place));
        Ok(task)
    }

    fn move_up(&mut self, place: usize) {
        if let Some(front) = self.0.get_mut(..=place) {
            front.rotate_right(1);
        }
    }
}

/// Bits, low bits first.
struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    held: u128,
    count: u32,
}

impl BitWriter<'_> {
    fn new(out: &mut Vec<u8>) -> BitWriter<'_> {
        BitWriter {
            out,
            held: 0,
            count: 0,
        }
    }

    fn put(&mut self, value: u64, bits: u32) {
        let mask = (1u128 << bits) - 1;
        self.held |= (u128::from(value) & mask) << self.count;
        self.count += bits;
        while self.count >= 8 {
            self.out.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    fn finish(self) {
        if self.count > 0 {
            self.out.push(self.held as u8);
        }
    }
}

struct BitReader<'a> {
    rest: &'a [u8],
    held: u128,
    count: u32,
}

impl BitReader<'_> {
    fn new(bytes: &[u8]) -> BitReader<'_> {
        BitReader {
            rest: bytes,
            held: 0,
            count: 0,
        }
    }

    fn take(&mut self, bits: u32) -> Result<u64, Corrupt> {
        while self.count < bits {
            let (bytes, rest) = match self.rest.split_first_chunk::<8>() {
                Some((eight, rest)) => ((u64::from_le_bytes(*eight), 64), rest),
                None => {
                    let (one, rest) = self
                        .rest
                        .split_first()
                        .ok_or(Corrupt("the time differences are cut off"))?;
                    ((u64::from(*one), 8), rest)
                }
            };
            self.held |= u128::from(bytes.0) << self.count;
            self.count += bytes.1;
            self.rest = rest;
        }
        let value = (self.held & ((1u128 << bits) - 1)) as u64;
        self.held >>= bits;
        self.count -= bits;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event() -> impl Strategy<Value = SchedEvent> {
        let tid = prop_oneof![0u32..6, any::<u32>()];
        let time = prop_oneof![1_000u64..1_000_000, any::<u64>()];
        (time, tid.clone(), tid, any::<u16>(), any::<[bool; 4]>()).prop_map(
            |(time, a, b, state, [w, x, y, z])| {
                let (a, b) = (Tid(a), Tid(b));
                let kind = if w {
                    SchedKind::Waking {
                        waker: a,
                        wakee: b,
                        irq: x,
                        new: y,
                        vfork: z,
                    }
                } else {
                    SchedKind::Switch {
                        prev: a,
                        next: b,
                        prev_state: state,
                        preempt: x,
                        iowait: y,
                    }
                };
                SchedEvent {
                    time: Ktime(time),
                    kind,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn any_events_come_back(events in prop::collection::vec(event(), 0..600)) {
            let mut block = SchedBlock::default();
            events.iter().for_each(|e| block.push(*e));
            prop_assert_eq!(block.iter().collect::<Vec<_>>(), events.clone());
            let (mut packed, mut bits) = (Vec::new(), Vec::new());
            block.encode(&mut packed, &mut bits);
            let mut back = SchedBlock::default();
            prop_assert_eq!(back.decode(&packed, &bits, events.len()), Ok(()));
            prop_assert_eq!(back, block);
        }

        #[test]
        fn any_bytes_are_refused_or_read_but_never_panic(
            packed in prop::collection::vec(any::<u8>(), 0..300),
            bits in prop::collection::vec(any::<u8>(), 0..50),
            events in 0usize..40,
        ) {
            let _ = SchedBlock::default().decode(&packed, &bits, events);
        }
    }
}
