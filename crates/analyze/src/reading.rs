//! One reading of a trace: its events in order, and the book that is kept of them.

use std::collections::BTreeSet;

use tr_format::checkpoint::Checkpoint;
use tr_format::event::{Ktime, LifeEvent, LifeKind, Stream};
use tr_format::reader::{End, Trace};
use tr_format::tally::Events;

use crate::book::Book;
use crate::clocks::Clocks;
use crate::gaps::Gaps;
use crate::model::{Analysis, LostSpan, Quality};
use crate::order::blocks::{Counts, Part};
use crate::order::waves::{self, Rings, Slice};
use crate::order::{self, Event, Order, TraceWaves};
use crate::{build, legs, Options};

/// What is read.
pub struct Input<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// What its losses are.
    pub known: &'a Known,
    /// What was before; without it there is nothing before.
    pub checkpoint: Option<&'a Checkpoint>,
}

impl Input<'_> {
    /// Where the recording ends. A file with no proper end is whole up to the last mark
    /// of progress; without one, nothing in it is known to be whole.
    pub fn whole(&self) -> Ktime {
        let summary = self.trace.summary().map(|summary| summary.end);
        summary
            .or(self.known.progress)
            .unwrap_or(self.trace.meta().start)
    }

    /// The trace was finished, and nothing of it is known to be missing.
    pub fn is_whole(&self) -> bool {
        let whole = *self.trace.end() == End::Complete && self.trace.damage().is_empty();
        whole && self.trace.summary().is_some() && self.known.lost.is_empty()
    }

    /// The span that is asked for.
    pub fn span(&self, options: &Options) -> (Ktime, Ktime) {
        let (begin, whole) = (self.trace.meta().start, self.whole());
        let at = |offset: u64| Ktime(begin.0.saturating_add(offset));
        let start = options.from.map_or(begin, at).min(whole).max(begin);
        let end = options.to.map_or(whole, at).min(whole).max(start);
        (start, end)
    }

    /// The analysis of a reading; of `quality`, what it lacked is filled in.
    pub fn analysis(&self, options: &Options, reading: Reading, quality: Quality) -> Analysis {
        let (start, end) = self.span(options);
        let lost: Vec<LostSpan> = reading.lost.into_iter().collect();
        let mut analysis = Analysis {
            meta: self.trace.meta().clone(),
            summary: self.trace.summary().cloned(),
            start,
            end,
            whole: self.whole().since(self.trace.meta().start),
            quality: Quality {
                lost_events: lost
                    .iter()
                    .filter_map(|span| span.count)
                    .fold(0, u64::saturating_add),
                lost_unknown: lost.iter().any(|span| span.count.is_none()),
                lost,
                ..quality
            },
            events: reading.events,
            ..Analysis::default()
        };
        build::build(reading.book, &mut analysis);
        analysis
    }
}

/// Is told how much has been read, of how much.
pub type Watch<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// What one reading of a trace has brought.
pub struct Reading {
    book: Book,
    /// The losses that it knew of or has found.
    pub lost: BTreeSet<LostSpan>,
    events: Events,
    /// The largest step back in time inside one ring, in ns.
    pub largest_inversion: u64,
}

impl Reading {
    pub fn violations(&self) -> u64 {
        self.book.violations.values().sum()
    }
}

/// Keeps the books of the span over a whole trace.
pub fn read(
    input: &Input,
    options: &Options,
    span: (Ktime, Ktime),
    clocks: Option<&Clocks>,
    watch: Watch<'_>,
) -> Reading {
    if clocks.is_none() {
        if let Some(reading) = legs::read(input, options, span, watch) {
            return reading;
        }
    }
    let mut kept = Kept::new(input, options, span, clocks);
    if let Some(checkpoint) = input.checkpoint {
        kept.keeper.book.restore(checkpoint);
    }
    let at_once = match options.careful {
        true => 1,
        false => waves::EVENTS,
    };
    let since = input.checkpoint.map(|checkpoint| checkpoint.at);
    let part = Part {
        since: since.unwrap_or(Ktime(0)),
        until: None,
    };
    let frames = input.trace.frames();
    kept.go(
        order::waves(input.trace, frames, part, clocks, at_once),
        watch,
    );
    kept.finish(0)
}

/// The books of a part of a trace, and what else its events have told.
pub struct Kept {
    keeper: Keeper,
    counts: Counts,
    largest_inversion: u64,
    rings: Rings,
}

impl Kept {
    /// Empty books of a span.
    pub fn new(
        input: &Input,
        options: &Options,
        (start, end): (Ktime, Ktime),
        clocks: Option<&Clocks>,
    ) -> Kept {
        let Input { trace, known, .. } = *input;
        let mut book = Book::new(trace.meta(), known.gaps(clocks), start, end, options.cpu);
        book.timeline = options.timeline.then(Default::default);
        book.careful = options.careful;
        book.uncertainty = clocks.map_or(0, Clocks::uncertainty);
        if start == trace.meta().start {
            book.expect(tasks(trace));
        }
        Kept {
            keeper: Keeper {
                book,
                order: Order::new(order::tolerance(clocks)),
                lost: known.lost(clocks),
                lives: Events::default(),
                last: known.last(trace, end),
            },
            counts: Counts::default(),
            largest_inversion: 0,
            rings: Rings::default(),
        }
    }

    /// Goes through the events that follow: while one wave of them is gone through, the
    /// next one is read.
    pub fn go(&mut self, mut waves: TraceWaves, watch: Watch<'_>) {
        // On one of the threads that share the work, which need not be woken for each wave.
        rayon::scope(|_| {
            let mut wave = waves.next_wave();
            while let Some(slices) = wave {
                let keeper = &mut self.keeper;
                let (next, used) = rayon::join(
                    || waves.next_wave(),
                    || {
                        let slices = slices.into_iter();
                        slices.map(|slice| keeper.take(slice)).collect::<Vec<_>>()
                    },
                );
                used.into_iter().for_each(|slice| waves.spare(slice));
                let (done, all) = waves.progress();
                watch(done, all);
                wave = next;
            }
        });
        self.counts.add(&waves.counts());
        self.largest_inversion = self.largest_inversion.max(waves.largest_inversion());
        self.rings.extend(waves.into_rings());
    }

    /// Begins with what a checkpoint tells, to be joined to what is before it.
    pub fn open_leg(&mut self, checkpoint: &Checkpoint) {
        self.keeper.book.open_leg(checkpoint);
    }

    /// Takes what was kept of the leg that follows. `false`: it does not fit, and nothing
    /// has been done.
    pub fn join(&mut self, leg: Kept) -> bool {
        let fits = self.keeper.book.join(leg.keeper.book);
        if fits {
            self.keeper.lives.add(&leg.keeper.lives);
            self.counts.add(&leg.counts);
            self.largest_inversion = self.largest_inversion.max(leg.largest_inversion);
            self.rings.extend(leg.rings);
        }
        fits
    }

    /// Events are known to be missing.
    pub fn has_losses(&self) -> bool {
        !self.keeper.lost.is_empty()
    }

    /// What the frames of other streams than a CPU's have of a ring.
    pub fn rings(&self) -> &Rings {
        &self.rings
    }

    /// The reading is over; it has found an inversion of `inversion` ns elsewhere.
    pub fn finish(mut self, inversion: u64) -> Reading {
        self.keeper.book.finish();
        Reading {
            book: self.keeper.book,
            lost: self.keeper.lost,
            events: Events {
                switches: self.counts.switches,
                wakings: self.counts.wakings,
                new_tasks: self.counts.new,
                ..self.keeper.lives
            },
            largest_inversion: self.largest_inversion.max(inversion),
        }
    }
}

/// About how many tasks a trace has, if its summary has counted them. A few bytes of
/// the file stand for each: a small file cannot ask for much memory.
fn tasks(trace: &Trace) -> usize {
    let tally = trace.summary().and_then(|summary| summary.tally.as_ref());
    let tasks = tally.map_or(0, |tally| {
        tally.events.forks.saturating_add(tally.events.snapshots)
    });
    let frames = trace.frames().iter();
    let lives = frames.filter(|frame| !matches!(frame.stream, Stream::Cpu(_)));
    let bytes = lives.map(|frame| frame.bytes).fold(0, u64::saturating_add);
    usize::try_from(tasks.min(bytes)).unwrap_or(0)
}

/// Keeps the books while events come.
struct Keeper {
    book: Book,
    order: Order,
    lost: BTreeSet<LostSpan>,
    /// Numbers of the events that are no scheduling events.
    lives: Events,
    /// The last time whose events count.
    last: Ktime,
}

impl Keeper {
    /// Takes a slice of events; gives back the memory of the one before.
    fn take(&mut self, slice: Slice) -> Slice {
        let Keeper {
            book,
            order,
            lost,
            lives,
            last,
        } = self;
        let used = order.push(slice);
        loop {
            order.offer(|records| book.run(records));
            let Some((time, event)) = order.next_fitting(|event| book.misfit(event)) else {
                return used;
            };
            let inside = time <= *last;
            match event {
                Event::Sched(cpu, event) if inside => book.sched(cpu, &event),
                Event::Sched(..) => {}
                Event::Life(event) => {
                    lives.life(event);
                    // Those of a frame that turned out to be damaged.
                    if let Some(span) = loss(event).filter(|span| lost.insert(*span)) {
                        book.lost(span.stream, span.since, span.until);
                    }
                    // Nothing after the end changes what was before it, but names.
                    let names =
                        matches!(event.kind, LifeKind::Snapshot(_) | LifeKind::CgroupPath(_));
                    if inside || names {
                        book.life(time, event);
                    }
                }
            }
        }
    }
}

/// What the recorder's own events say, read before all others.
#[derive(Default)]
pub struct Known {
    lost: BTreeSet<LostSpan>,
    progress: Option<Ktime>,
}

impl Known {
    pub fn add(&mut self, event: &LifeEvent) {
        if let Some(span) = loss(event) {
            self.lost.insert(span);
        }
        if matches!(event.kind, LifeKind::Progress) {
            self.progress = self.progress.max(Some(event.time));
        }
    }

    /// The last time of which every event is in the file, of those up to `end`: a
    /// mark of progress tells of what is before it.
    fn last(&self, trace: &Trace, end: Ktime) -> Ktime {
        match trace.summary() {
            None if self.progress.is_none_or(|progress| progress <= end) => {
                Ktime(end.0.saturating_sub(1))
            }
            _ => end,
        }
    }

    /// The losses, their times corrected.
    fn lost(&self, clocks: Option<&Clocks>) -> BTreeSet<LostSpan> {
        let correct = |span: &LostSpan| {
            let (since, until) = match clocks {
                Some(clocks) => clocks.correct_span(span.stream, span.since, span.until),
                None => (span.since, span.until),
            };
            LostSpan {
                since,
                until,
                ..*span
            }
        };
        self.lost.iter().map(correct).collect()
    }

    /// The gaps, their times corrected.
    pub fn gaps(&self, clocks: Option<&Clocks>) -> Gaps {
        let mut gaps = Gaps::default();
        for span in self.lost(clocks) {
            gaps.insert(span.stream, span.since, span.until);
        }
        gaps
    }
}

/// The loss that an event tells of.
fn loss(event: &LifeEvent) -> Option<LostSpan> {
    let LifeKind::Lost(lost) = &event.kind else {
        return None;
    };
    Some(LostSpan {
        stream: lost.stream,
        since: event.time,
        until: lost.until,
        count: lost.count,
        cause: lost.cause,
    })
}
