//! Counts the events of a trace. The writer of the trace counts them and stores the numbers in the summary, so
//! that `tr info` need not read the events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{
    Clock, Ktime, LifeEvent, LifeKind, SchedEvent, SchedKind, Stream, Waking, KINDS,
};
use crate::frame::FrameInfo;

/// The numbers of a trace's events, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Events {
    /// The number of switches from one task to another in the trace.
    pub switches: u64,
    /// The number of wakings of tasks that were not new.
    pub wakings: u64,
    /// The number of first wakings of new tasks in the trace.
    pub new_tasks: u64,
    /// The numbers of lifecycle events of each kind, in the order of the kinds' numbers.
    pub lives: [u64; KINDS.len()],
}

impl Default for Events {
    fn default() -> Events {
        Events::of(&[])
    }
}

impl Events {
    /// The number of events of each kind, with the kind's name in `tr dump`, in the order in which the summary
    /// stores them.
    pub fn by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let sched = [
            ("switch", self.switches),
            ("waking", self.wakings),
            ("wakeup_new", self.new_tasks),
        ];
        let lives = KINDS.iter().map(|(_, name)| *name).zip(self.lives);
        sched.into_iter().chain(lives)
    }

    /// The number of events of the kind with this name in `tr dump`; 0 if there is no such kind.
    pub fn of_kind(&self, name: &str) -> u64 {
        let found = self.by_kind().find(|(kind, _)| *kind == name);
        found.map_or(0, |(_, count)| count)
    }

    /// Reads the numbers of events from a list in the order of [`Events::by_kind`]. Missing numbers are 0.
    pub(crate) fn of(list: &[u64]) -> Events {
        let mut numbers = list.iter().copied().chain(std::iter::repeat(0));
        let mut next = || numbers.next().unwrap_or(0);
        Events {
            switches: next(),
            wakings: next(),
            new_tasks: next(),
            lives: std::array::from_fn(|_| next()),
        }
    }

    /// The number of a trace's events of all kinds together.
    pub fn total(&self) -> u64 {
        let counts = self.by_kind().map(|(_, count)| count);
        counts.fold(0, u64::saturating_add)
    }

    /// Counts one scheduling event, by its kind.
    pub fn sched(&mut self, event: &SchedEvent) {
        match event.kind {
            SchedKind::Switch(_) => self.switches += 1,
            SchedKind::Waking(Waking { new: false, .. }) => self.wakings += 1,
            SchedKind::Waking(Waking { new: true, .. }) => self.new_tasks += 1,
        }
    }

    /// Adds the numbers of events of `other`, kind by kind.
    pub fn add(&mut self, other: &Events) {
        self.switches += other.switches;
        self.wakings += other.wakings;
        self.new_tasks += other.new_tasks;
        for (to, more) in self.lives.iter_mut().zip(other.lives) {
            *to += more;
        }
    }

    /// Counts one lifecycle event, by its kind.
    pub fn life(&mut self, event: &LifeEvent) {
        if let Some(count) = self.lives.get_mut(event.kind.place()) {
            *count += 1;
        }
    }
}

/// The numbers and times that the summary of a complete trace gives about the events of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The numbers of the trace's events, by kind.
    pub events: Events,
    /// The number of the trace's frames that hold events.
    pub frames: u64,
    /// The largest step back in time inside one stream, in ns: how far an event's time is before the largest earlier
    /// time in the stream. For example, the times 100, 130, 110 have a step back of 20 ns. The recorder's own events
    /// are not counted, because some of them are about the past.
    pub largest_inversion: u64,
    /// The longest commit delay in ns: from the time stamp of an event until the event was committed to the slots or
    /// the ring, as [`CommitDelay`] finds it.
    pub commit_delay: u64,
    /// The number of lost events in each stream (of each CPU, for example), as far as it is known.
    pub lost: BTreeMap<Stream, u64>,
    /// The times for which the machine was suspended, as the readings of its clocks show.
    pub suspends: Vec<Suspend>,
}

impl Tally {
    /// Adds the tally (numbers and times of events) of the next part of the same recording to this tally.
    pub fn add(&mut self, other: &Tally) {
        self.events.add(&other.events);
        self.frames = self.frames.saturating_add(other.frames);
        self.largest_inversion = self.largest_inversion.max(other.largest_inversion);
        self.commit_delay = self.commit_delay.max(other.commit_delay);
        for (stream, count) in &other.lost {
            let lost = self.lost.entry(*stream).or_default();
            *lost = lost.saturating_add(*count);
        }
        self.suspends.extend(&other.suspends);
    }
}

/// One or more suspends of the machine between two readings of the clocks. `CLOCK_MONOTONIC`, which stamps all events,
/// stops in a suspend; `CLOCK_BOOTTIME` does not. The recorder reads both clocks every ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspend {
    /// The time of the last reading of the clocks before the machine was suspended.
    pub since: Ktime,
    /// The time of the first reading of the clocks after the machine was suspended.
    pub until: Ktime,
    /// The length of all suspends between these two readings of the clocks together, in ns.
    pub asleep: u64,
}

impl Suspend {
    /// The length of the shortest suspend of the machine that is recognized, in ns. A shorter difference of the two
    /// clocks can have another cause: the recorder reads one after the other, and may be preempted in between.
    pub const LEAST: u64 = 100_000_000;

    /// The suspend of the machine between two consecutive readings of the clocks `CLOCK_MONOTONIC` and
    /// `CLOCK_BOOTTIME`; `None` if there was none.
    pub fn between(before: (Ktime, u64), after: (Ktime, u64)) -> Option<Suspend> {
        let span = after.0.since(before.0);
        let asleep = after.1.saturating_sub(before.1).saturating_sub(span);
        (asleep >= Suspend::LEAST).then_some(Suspend {
            since: before.0,
            until: after.0,
            asleep,
        })
    }
}

/// The longest commit delay that a trace proves. A commit delay is the time from the stamp of an event to
/// its commit in the slots or the ring. The frames have to be added in file order.
///
/// After a watermark at time T, every event committed before T is in an earlier frame. An
/// event in a later frame with a stamp before T was therefore committed after T. The frame
/// header has the smallest stamp, so no event is decoded for this.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommitDelay {
    watermark: Ktime,
    longest: u64,
}

impl CommitDelay {
    /// Examines the stream and the times of the trace's next frame, which may prove a longer commit delay (from an
    /// event's stamp to its commit).
    pub fn frame(&mut self, frame: &FrameInfo) {
        if frame.events > 0 {
            self.block(frame.stream, frame.min);
        }
    }

    /// Examines the stream and the smallest time in ns of the trace's next frame, which may prove a longer commit delay
    /// (from an event's stamp to its commit).
    pub(crate) fn block(&mut self, stream: Stream, min: Ktime) {
        // The recorder stamps some of its own events with times in the past, so they prove no commit delay.
        if stream != Stream::Recorder {
            self.longest = self.longest.max(self.watermark.since(min));
        }
    }

    /// Examines an event of the recorder. Only a watermark matters, because all events that were committed before the
    /// time of the watermark are in earlier frames.
    pub fn event(&mut self, event: &LifeEvent) {
        if event.kind == LifeKind::Watermark {
            self.watermark = self.watermark.max(event.time);
        }
    }

    /// The longest commit delay (from an event's stamp to its commit) that the frames and events so
    /// far prove, in ns.
    pub fn longest(&self) -> u64 {
        self.longest
    }
}

/// Computes the [`Tally`] of a trace from its blocks of events in file order, except for the numbers of events by
/// kind.
#[derive(Debug)]
pub struct Counting {
    tally: Tally,
    delay: CommitDelay,
    /// The largest time in ns that an event of each stream (of each CPU, for example) has had so far.
    largest: BTreeMap<Stream, u64>,
    /// The last reading of the machine's clocks: `CLOCK_MONOTONIC` in ns, and `CLOCK_BOOTTIME` in ns.
    clocks: (Ktime, u64),
}

impl Counting {
    /// Begins to compute the tally of a trace. `start` and `clock` are the readings of the clocks at the beginning of
    /// the trace.
    pub fn new(start: Ktime, clock: Clock) -> Counting {
        Counting {
            tally: Tally::default(),
            delay: CommitDelay::default(),
            largest: BTreeMap::new(),
            clocks: (start, clock.boot),
        }
    }

    /// Adds the facts about a block of scheduling events to the tally. `times` are the times of the events in ns.
    pub fn sched(&mut self, stream: Stream, times: &[u64]) {
        self.block(stream, times.iter().copied());
        let min = times.iter().copied().min().unwrap_or(0);
        self.delay.block(stream, Ktime(min));
    }

    /// Adds the facts about a block of lifecycle events, or of the recorder's own events, to the tally. `min` is the
    /// smallest time of an event of the block, in ns.
    pub fn life(&mut self, stream: Stream, events: &[LifeEvent], min: u64) {
        let of_ring = events.iter().filter(|event| event.kind.is_from_the_ring());
        self.block(stream, of_ring.map(|event| event.time.0));
        self.delay.block(stream, Ktime(min));
        for event in events {
            if stream == Stream::Recorder {
                self.delay.event(event);
            }
            match &event.kind {
                LifeKind::Lost(lost) => {
                    let sum = self.tally.lost.entry(lost.stream).or_default();
                    *sum = sum.saturating_add(lost.count.unwrap_or(0));
                }
                LifeKind::Clock(clock) if stream == Stream::Recorder => {
                    self.reading((event.time, clock.boot));
                }
                _ => {}
            }
        }
    }

    fn block(&mut self, stream: Stream, times: impl Iterator<Item = u64>) {
        self.tally.frames += 1;
        let largest = self.largest.entry(stream).or_default();
        let (mut most, mut back) = (*largest, 0);
        for time in times {
            back = back.max(most.saturating_sub(time));
            most = most.max(time);
        }
        *largest = most;
        self.tally.largest_inversion = self.tally.largest_inversion.max(back);
    }

    fn reading(&mut self, now: (Ktime, u64)) {
        let before = std::mem::replace(&mut self.clocks, now);
        self.tally.suspends.extend(Suspend::between(before, now));
    }

    /// Completes the [`Tally`] of a trace that ends with these readings of the clocks. `events` are the numbers
    /// of events by kind.
    pub fn finish(mut self, events: Events, end: Ktime, clock: Clock) -> Tally {
        self.reading((end, clock.boot));
        Tally {
            events,
            commit_delay: self.delay.longest(),
            ..self.tally
        }
    }
}
