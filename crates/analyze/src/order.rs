//! Sorts the events of all streams by time. The order is exact for any commit delay, and the memory depends on the
//! disorder of the streams, not on their length.
//!
//! Each stream is a chain of blocks in the order of writing. A block's header has the smallest time of its events. The
//! smallest time of all unread blocks is a limit: no unread event is before it, so all events before it are safe to
//! hand out. [`batches`](mod@batches) reads the blocks by that limit, many at once, and sorts the safe events into
//! runs. [`Order`] hands them out one by one.
//!
//! Events of one stream with equal times keep the order of writing. If events of several streams have equal times,
//! causes come before effects: the kind of event decides (see `rank`), or the tracker chooses the event that fits the
//! states of its tasks (see [`Order::next_fitting`]).

pub mod batches;
pub mod blocks;
mod sort;

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, SchedEvent, SchedKind, Stream, Tid};
use tr_format::reader::{FrameInfo, Trace};
use tr_format::sched::{flag, Packed};

use batches::{Batches, SortedRun};
use blocks::{Block, Blocks, Content, Read, Spare};

/// An event of any stream of the trace, in the form in which the tracker takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A scheduling event of the CPU with this number: a switch or a waking.
    Sched(CpuId, SchedEvent),
    /// A lifecycle event of a task, such as a fork or an exec, or an event that the recorder wrote.
    Life(&'a LifeEvent),
}

impl Event<'_> {
    pub fn time(&self) -> Ktime {
        match self {
            Event::Sched(_, event) => event.time,
            Event::Life(event) => event.time,
        }
    }
}

/// The rank of an event among events with equal times: events with lower ranks come first. A loss of events comes
/// before all others. A task is forked first, then woken, then switched in, and the final figures of a task come
/// after its last switch.
fn rank(event: &Event) -> u8 {
    match event {
        Event::Life(event) => match event.kind {
            LifeKind::Lost(_) => 0,
            LifeKind::Snapshot(_) => 1,
            LifeKind::Fork(_) => 2,
            LifeKind::Final(_) => 6,
            LifeKind::Clock(_)
            | LifeKind::Watermark
            | LifeKind::Mark(_)
            | LifeKind::Degraded(_)
            | LifeKind::Counters(_)
            | LifeKind::SystemCalls(_)
            | LifeKind::Block(_) => 7,
            _ => 3,
        },
        Event::Sched(_, event) => match event.kind {
            SchedKind::Waking(_) => 4,
            SchedKind::Switch(_) => SWITCH,
        },
    }
}

/// The largest number that the function passed to [`Order::next_fitting`] returns. The event contradicts the states of
/// its tasks, so it is possible only if other events are missing. Of several events with equal times, such an event
/// comes last. The number is part of the layout of a sort key.
pub(crate) const MISSING_EVENTS: u8 = 2;

/// The rank of a context switch among events with equal times; see [`rank`]. Only the final figures of tasks and some
/// events of the recorder come after switches. The number is part of the layout of a key for sorting.
const SWITCH: u8 = 5;

/// An event in a compact form that is sorted by time. It takes 24 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    pub(crate) time: u64,
    /// For a scheduling event, the task as in [`tr_format::sched::SchedBlock::from`]; for a [`LIFE`] event, the
    /// event's index in the list of lifecycle events of its batch, and later of its sorted run.
    pub(crate) from: u32,
    /// For a scheduling event, the task as in [`tr_format::sched::SchedBlock::to`]; for a [`LIFE`] event, the
    /// place of its stream among all streams.
    pub(crate) to: u32,
    pub(crate) state: u16,
    pub(crate) cpu: u16,
    /// The flags of a scheduling event as in [`tr_format::sched::SchedBlock::flags`]; [`LIFE`] for an event of
    /// another stream.
    pub(crate) flags: u8,
    /// If the event is a switch into a sleep: the code of the reason for the sleep, as in
    /// [`tr_format::sched::SchedBlock::reason`].
    pub(crate) reason: u8,
    /// If the event is a switch into a sleep: the code of the system call's time-out, as in
    /// [`tr_format::sched::SchedBlock::timeout`].
    pub(crate) timeout: u8,
}

/// The value of [`Record::flags`] for a lifecycle event or an event of the recorder. Scheduling events never have
/// this bit.
pub(crate) const LIFE: u8 = 0x80;

impl Record {
    /// The number of the stream that the event came from. Each CPU's stream has the number of the CPU; other
    /// streams have higher numbers.
    fn stream(&self) -> u32 {
        match self.flags {
            LIFE => self.to,
            _ => u32::from(self.cpu),
        }
    }

    /// The time of a switch and the task that it switches in; `None` for other events and switches to the idle task.
    fn arrival(&self) -> Option<(u64, u32)> {
        let switch = self.flags & (LIFE | flag::WAKING) == 0;
        (switch && self.to != Tid::IDLE.0).then_some((self.time, self.to))
    }

    fn event<'a>(&self, lives: &'a [LifeEvent]) -> Option<Event<'a>> {
        Some(match self.flags {
            LIFE => Event::Life(lives.get(self.from as usize)?),
            flags => {
                let packed = Packed {
                    from: self.from,
                    to: self.to,
                    state: self.state,
                    flags,
                    reason: self.reason,
                    timeout: self.timeout,
                };
                Event::Sched(CpuId(self.cpu), packed.event(self.time))
            }
        })
    }
}

/// Returns the events of sorted runs one by one, in the order of time.
#[derive(Debug, Default)]
pub struct Order {
    /// The events of the sorted run that is being returned at present. The events before the index `at` have been
    /// returned already.
    records: Vec<Record>,
    at: usize,
    lives: Vec<LifeEvent>,
    /// The time before which all events of all streams have been read; `None` if all events have been read.
    limit: Option<u64>,
    ties: Ties,
    latest: u64,
}

impl Order {
    /// Makes an order of events that has no events yet.
    pub fn new() -> Order {
        Order {
            limit: Some(0),
            ..Order::default()
        }
    }

    /// Takes the next sorted run of events. Returns the memory of the previous run for reuse.
    pub fn push(&mut self, run: SortedRun) -> SortedRun {
        let SortedRun {
            mut records,
            mut lives,
            limit,
        } = run;
        self.limit = limit;
        let left = self.records.get_mut(self.at..).unwrap_or_default();
        if !left.is_empty() || !self.ties.is_empty() {
            let mut carry = |record: &mut Record| {
                if let Some(life) = self.lives.get_mut(record.from as usize) {
                    if record.flags == LIFE {
                        record.from = u32::try_from(lives.len()).unwrap_or(u32::MAX);
                        lives.push(std::mem::replace(life, nothing()));
                    }
                }
            };
            left.iter_mut().for_each(&mut carry);
            self.ties.queues.iter_mut().flatten().for_each(&mut carry);
            records.splice(..0, left.iter().copied());
        }
        let used = SortedRun {
            records: std::mem::replace(&mut self.records, records),
            lives: std::mem::replace(&mut self.lives, lives),
            limit: None,
        };
        self.at = 0;
        if !self.ties.is_empty() {
            self.gather();
        }
        used
    }

    /// Passes the next events, in their order, to the function `take`, which processes some of them and returns how
    /// many. These events count as handed out. The others are left for [`Order::next_fitting`].
    pub(crate) fn offer(&mut self, take: impl FnOnce(&[Record]) -> usize) {
        if !self.ties.is_empty() {
            return;
        }
        let left = self.records.get(self.at..).unwrap_or_default();
        let taken = take(left).min(left.len());
        if let Some(last) = taken.checked_sub(1).and_then(|last| left.get(last)) {
            self.latest = self.latest.max(last.time);
        }
        self.at += taken;
    }

    /// Returns the next event and its time. Of several events with equal times, the event for which `misfit` returns
    /// the smallest number comes next. Returns `None` if the next sorted list of events has to be added first, by
    /// [`Order::push`], or if all events have been returned.
    #[inline]
    pub fn next_fitting(&mut self, misfit: impl Fn(&Event) -> u8) -> Option<(Ktime, Event<'_>)> {
        let record = self.next_record(misfit)?;
        self.event(record)
    }

    /// The full event for which a compact record in a sorted run stands, and the time of the event.
    #[inline]
    fn event(&mut self, record: Record) -> Option<(Ktime, Event<'_>)> {
        self.latest = self.latest.max(record.time);
        let mut event = record.event(&self.lives)?;
        if let Event::Sched(_, event) = &mut event {
            event.time = Ktime(self.latest);
        }
        Some((Ktime(self.latest), event))
    }

    #[inline]
    fn next_record(&mut self, misfit: impl Fn(&Event) -> u8) -> Option<Record> {
        if self.ties.is_empty() {
            let first = *self.records.get(self.at)?;
            if !self.is_certain(first.time) {
                return None;
            }
            let next = self.records.get(self.at + 1);
            if next.is_none_or(|next| next.time > first.time) {
                self.at += 1;
                return Some(first);
            }
            self.gather();
        }
        let time = self.ties.heads.peek().map(|Reverse(head)| head.time)?;
        if !self.is_certain(time) {
            return None;
        }
        self.ties.pick(&self.lives, misfit)
    }

    /// Whether no further event with this time can come, because all events up to this time have been read.
    #[inline]
    fn is_certain(&self, time: u64) -> bool {
        self.limit.is_none_or(|limit| time < limit)
    }

    #[cold]
    fn gather(&mut self) {
        while let Some(record) = self.records.get(self.at) {
            let ties = &mut self.ties;
            if !ties.is_empty() && record.time > ties.last {
                break;
            }
            self.at += 1;
            ties.add(*record, &self.lives);
        }
    }
}

/// A placeholder that replaces a lifecycle event that was moved out of its list.
fn nothing() -> LifeEvent {
    LifeEvent {
        time: Ktime(0),
        cpu: None,
        kind: LifeKind::Watermark,
    }
}

/// Events of different streams that have the same time.
#[derive(Debug, Default)]
struct Ties {
    queues: Vec<VecDeque<Record>>,
    /// For each stream that has or had events with the same time as events of other streams, the number of its queue.
    places: BTreeMap<u32, usize>,
    /// For each stream with events at the present time, the first event of its queue.
    heads: BinaryHeap<Reverse<Head>>,
    /// How many switches to the same task are queued for the same time. The key is the time and the task.
    arrivals: HashMap<(u64, u32), u32>,
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    time: u64,
    rank: u8,
    stream: u32,
    queue: usize,
}

impl Ties {
    fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    fn add(&mut self, record: Record, lives: &[LifeEvent]) {
        let stream = record.stream();
        let place = *self.places.entry(stream).or_insert(self.queues.len());
        if place == self.queues.len() {
            self.queues.push(VecDeque::new());
        }
        let Some(queue) = self.queues.get_mut(place) else {
            return;
        };
        queue.push_back(record);
        if let Some(arrival) = record.arrival() {
            *self.arrivals.entry(arrival).or_default() += 1;
        }
        let alone = queue.len() == 1;
        self.last = record.time;
        if alone {
            self.enter(place, lives);
        }
    }

    /// Adds the first event of a stream's queue to the heads, among which the next event is chosen.
    fn enter(&mut self, queue: usize, lives: &[LifeEvent]) {
        let first = self.queues.get(queue).and_then(VecDeque::front);
        if let Some((record, event)) = first.and_then(|r| Some((r, r.event(lives)?))) {
            self.heads.push(Reverse(Head {
                time: record.time,
                rank: rank(&event),
                stream: record.stream(),
                queue,
            }));
        }
    }

    /// Whether a switch is the last one of its CPU at its time, so that the task to which it switches stays on this
    /// CPU. If other CPUs switch to that task at the same time, too, their switches must have come before this one.
    fn stays(&self, head: &Head) -> bool {
        let queue = self.queues.get(head.queue);
        let after = queue.and_then(|queue| queue.get(1));
        head.rank == SWITCH && after.is_none_or(|after| after.time > head.time)
    }

    /// Whether more than one queued switch, including this one, goes to the same task at the same time.
    fn comes_again(&self, record: &Record) -> bool {
        let arrivals = record.arrival().and_then(|key| self.arrivals.get(&key));
        arrivals.is_some_and(|count| *count > 1)
    }

    /// Notes that a switch has been returned, so that [`Ties::comes_again`] no longer counts it.
    fn forget(&mut self, record: Option<&Record>) {
        let Some(key) = record.and_then(Record::arrival) else {
            return;
        };
        if let Entry::Occupied(mut arrivals) = self.arrivals.entry(key) {
            *arrivals.get_mut() -= 1;
            if *arrivals.get() == 0 {
                arrivals.remove();
            }
        }
    }

    /// Takes the next event. If several events have the next time, the one that fits the states of the tasks best is
    /// taken. Of those that fit equally well, the first one by rank is taken, and of switches one that does not stay.
    fn pick(&mut self, lives: &[LifeEvent], misfit: impl Fn(&Event) -> u8) -> Option<Record> {
        let worth = |ties: &Ties, head: &Head| {
            let record = ties.queues.get(head.queue).and_then(VecDeque::front);
            let event = record.and_then(|record| record.event(lives));
            let misfit = event.map_or(u8::MAX, |event| misfit(&event));
            if record.is_some_and(|record| ties.stays(head) && ties.comes_again(record)) {
                misfit.max(MISSING_EVENTS)
            } else {
                misfit
            }
        };
        let Reverse(mut first) = self.heads.pop()?;
        let time = first.time;
        let tied = |head: &&Reverse<Head>| head.0.time == time;
        if self.heads.peek().filter(tied).is_some() {
            let mut best = worth(self, &first);
            let mut stays = self.stays(&first);
            let mut others = Vec::new();
            let like = |one: &Head, other: &Head| (one.time, one.rank) == (other.time, other.rank);
            while let Some(Reverse(next)) = self.heads.peek().filter(tied) {
                if best == 0 && !(stays && like(&first, next)) {
                    break;
                }
                let Some(Reverse(head)) = self.heads.pop() else {
                    break;
                };
                let other = worth(self, &head);
                let goes = stays && like(&first, &head) && !self.stays(&head);
                if other < best || other == best && goes {
                    stays = self.stays(&head);
                    others.push(std::mem::replace(&mut first, head));
                    best = other;
                } else {
                    others.push(head);
                }
            }
            self.heads.extend(others.into_iter().map(Reverse));
        }
        let record = self.queues.get_mut(first.queue)?.pop_front();
        self.forget(record.as_ref());
        self.enter(first.queue, lives);
        record
    }
}

/// An iterator over all events of a source of blocks in the order of time. It combines [`Batches`] and [`Order`].
#[derive(Debug)]
pub struct Merge<B: Blocks> {
    batches: Batches<B>,
    ready: std::vec::IntoIter<SortedRun>,
    order: Order,
}

impl<B: Blocks> Merge<B> {
    /// Makes an iterator over the events of these batches in the order of time.
    pub fn new(batches: Batches<B>) -> Merge<B> {
        Merge {
            batches,
            ready: Vec::new().into_iter(),
            order: Order::new(),
        }
    }

    pub fn next_event(&mut self) -> Option<Event<'_>> {
        let record = loop {
            if let Some(record) = self.order.next_record(|_| 0) {
                break record;
            }
            match self.ready.next() {
                Some(run) => self.batches.spare(self.order.push(run)),
                None => self.ready = self.batches.next_batch()?.into_iter(),
            }
        };
        self.order.event(record).map(|(_, event)| event)
    }

    /// The batches that the events are read from. They know how many events have been read.
    pub fn batches(&self) -> &Batches<B> {
        &self.batches
    }
}

impl Blocks for &Trace {
    type Key = FrameInfo;

    fn read(&self, frame: &FrameInfo, spare: &Spare) -> Read {
        let read = match frame.stream {
            Stream::Cpu(_) => {
                let mut block = spare.sched.take();
                let read = self.read_sched(frame, &mut block);
                read.map(|()| Content::Sched(block))
            }
            Stream::Lifecycle | Stream::Recorder => {
                let mut events = spare.life.take();
                let read = self.read_life(frame, &mut events);
                read.map(|()| Content::Life(events))
            }
        };
        let (content, error) = match read {
            Ok(content) => (content, None),
            Err(error) => (
                Content::Life(vec![self.gap_of(frame)]),
                Some((frame.number, error)),
            ),
        };
        Read { content, error }
    }
}

/// Reads the events of a trace in batches. A frame of the file that cannot be read becomes a loss of events.
pub fn batches(trace: &Trace) -> TraceBatches<'_> {
    batches_of(trace, trace.frames())
}

/// Makes batches of the events in the given frames of a trace.
fn batches_of<'a>(trace: &'a Trace, frames: &[FrameInfo]) -> TraceBatches<'a> {
    let mut streams: BTreeMap<Stream, Vec<Block<FrameInfo>>> = BTreeMap::new();
    for frame in frames {
        streams.entry(frame.stream).or_default().push(Block {
            min: frame.min,
            events: frame.events,
            key: *frame,
        });
    }
    Batches::new(trace, streams, batches::EVENTS)
}

/// The batches of events that are read from the frames of a trace.
pub type TraceBatches<'a> = Batches<&'a Trace>;

/// Returns an iterator over all events of a trace in the order of time; see [`batches()`].
pub fn merge(trace: &Trace) -> Merge<&Trace> {
    Merge::new(batches(trace))
}

/// Returns an iterator over the events in the given frames of a trace, in the order of time.
pub fn merge_of<'a>(trace: &'a Trace, frames: &[FrameInfo]) -> Merge<&'a Trace> {
    Merge::new(batches_of(trace, frames))
}
