//! Reads a trace once. The tracker takes the events in the order of time, and the model is built from the tracker.

use std::collections::BTreeSet;

use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, Stream};
use tr_format::meta::Metadata;
use tr_format::reader::{End, Trace};
use tr_format::tally::{CommitDelay, Events};

use crate::collect::totals::Parts;
use crate::gaps::Gaps;
use crate::model::{Analysis, LostSpan, Quality};
use crate::order::batches::SortedRun;
use crate::order::{self, Event, Order};
use crate::timeline::Draft;
use crate::tracker::Tracker;
use crate::{build, Options};

/// A function that is called with the number of events read so far and the number of all events. It can
/// return a reason to stop; the rest of the trace is unknown then.
pub type Watch<'a> = &'a mut (dyn FnMut(u64, u64) -> Option<String> + Send);

/// Like [`analyze`](crate::analyze), but reports progress and can be stopped.
pub fn analyze_watched(trace: &Trace, options: &Options, watch: Watch<'_>) -> Analysis {
    let known = RecorderFacts::new(trace);
    let begin = trace.meta().start;
    let whole = known.end(trace);
    let at = |offset: u64| Ktime(begin.0.saturating_add(offset));
    let start = options.from.map_or(begin, at).min(whole).max(begin);
    let end = options.to.map_or(whole, at).min(whole).max(start);

    let span = (start, end);
    let mut tracker = Tracker::new(trace.meta(), known.gaps(trace.meta()), span, options.cpu);
    tracker.timeline = options.timeline.then(|| Draft::new(options.scratch));
    tracker.collectors.stacks.timed = options.samples.then(Default::default);
    tracker.collectors.parts = Parts::new(trace.later_parts());
    tracker.slow = options.without_fast_path;
    if start == begin {
        tracker.expect(tasks(trace));
    }
    let mut keeper = Keeper {
        tracker,
        order: Order::new(),
        last: known.last(trace, end),
        reached: 0,
        lost: known.lost,
        lives: Events::default(),
    };
    let mut batches = order::batches(trace);
    let mut stopped = feed(&mut keeper, &mut batches, watch);
    if let Some(why) = &mut stopped {
        let reached = Ktime(keeper.reached).max(start).min(end);
        keeper.unknown_from(trace, reached, end);
        let seconds = reached.since(begin) / 1_000_000_000;
        *why = format!("reading stopped after {seconds} s: {why}");
    }
    keeper.tracker.finish();

    let lost: Vec<LostSpan> = keeper.lost.into_iter().collect();
    let counts = lost.iter().filter_map(|span| span.count);
    let mut analysis = Analysis {
        meta: trace.meta().clone(),
        summary: trace.summary().cloned(),
        start,
        end,
        whole: whole.since(begin),
        quality: Quality {
            lost_events: counts.fold(0, u64::saturating_add),
            lost_unknown: lost.iter().any(|span| span.count.is_none()),
            lost,
            truncated: stopped.clone().or_else(|| truncation(trace)),
            under_way: trace.under_way(),
            stopped,
            largest_inversion: batches.largest_inversion,
            commit_delay: known.late.longest().max(batches.largest_inversion),
            clocks: keeper.tracker.clock_check.finish(),
            ..Quality::default()
        },
        events: Events {
            switches: batches.counts.switches,
            wakings: batches.counts.wakings,
            new_tasks: batches.counts.new,
            ..keeper.lives
        },
        ..Analysis::default()
    };
    build::build(keeper.tracker, &mut analysis);
    analysis
}

/// Gives all events of a trace to the tracker. Returns the reason why `watch` has stopped the reading, if it has.
fn feed(
    keeper: &mut Keeper,
    batches: &mut order::TraceBatches<'_>,
    watch: Watch<'_>,
) -> Option<String> {
    let mut stopped = None;
    // One thread reads the next batch while another one feeds the tracker.
    rayon::scope(|_| {
        let mut batch = batches.next_batch();
        while let Some(runs) = batch {
            let (next, used) = rayon::join(
                || batches.next_batch(),
                || {
                    let runs = runs.into_iter();
                    runs.map(|run| keeper.take(run)).collect::<Vec<_>>()
                },
            );
            used.into_iter().for_each(|run| batches.spare(run));
            let (done, all) = batches.progress();
            stopped = watch(done, all).filter(|_| next.is_some());
            batch = next.filter(|_| stopped.is_none());
        }
    });
    stopped
}

/// Returns where and why a truncated trace ends, as text; `None` for a complete trace.
fn truncation(trace: &Trace) -> Option<String> {
    match trace.end() {
        End::Complete => None,
        End::Truncated { frame, offset, why } => {
            Some(format!("ends at frame {frame}, byte {offset}: {why}"))
        }
    }
}

/// The approximate number of tasks of a trace if its summary has that number, otherwise 0. The number is limited
/// by the length of the file, because each task takes a few bytes there: so a small file cannot make the analysis
/// reserve much memory.
fn tasks(trace: &Trace) -> usize {
    let tally = trace.summary().and_then(|summary| summary.tally.as_ref());
    let tasks = tally.map_or(0, |tally| {
        let of_kind = |name| tally.events.of_kind(name);
        of_kind("fork").saturating_add(of_kind("snapshot"))
    });
    let frames = trace.frames().iter();
    let lives = frames.filter(|frame| !matches!(frame.stream, Stream::Cpu(_)));
    let bytes = lives.map(|frame| frame.bytes).fold(0, u64::saturating_add);
    usize::try_from(tasks.min(bytes)).unwrap_or(0)
}

struct Keeper {
    tracker: Tracker,
    order: Order,
    lost: BTreeSet<LostSpan>,
    /// The numbers of lifecycle events and of the recorder's events that have been read so far.
    lives: Events,
    /// The time of the last events that are analyzed. Of later events, only names, samples of counters and stacks, and
    /// sums of system calls are used.
    last: Ktime,
    /// All events before this time, in ns, have been read. No later sorted list of events has an earlier event.
    reached: u64,
}

impl Keeper {
    /// Notes that the rest of the trace is not read, so that every stream lacks events.
    fn unknown_from(&mut self, trace: &Trace, since: Ktime, until: Ktime) {
        let streams: BTreeSet<Stream> = trace.frames().iter().map(|frame| frame.stream).collect();
        for stream in streams {
            self.tracker.lost(stream, since, until);
        }
    }

    /// Takes a sorted run of events, and gives them to the tracker. Returns the memory of the previous run for
    /// reuse.
    fn take(&mut self, run: SortedRun) -> SortedRun {
        self.reached = self.reached.max(run.limit.unwrap_or(0));
        let tracker = &mut self.tracker;
        let used = self.order.push(run);
        loop {
            self.order.offer(|records| tracker.take_simple(records));
            let next = self.order.next_fitting(|event| tracker.misfit(event));
            let Some((time, event)) = next else {
                return used;
            };
            let inside = time <= self.last;
            match event {
                Event::Sched(cpu, event) if inside => tracker.sched(cpu, &event),
                Event::Sched(..) => {}
                Event::Life(event) => {
                    self.lives.life(event);
                    // Most losses are known from `RecorderFacts`, which was read before all other events. The only
                    // losses that are not known yet are those of frames that turned out to be damaged when they were
                    // read.
                    if let Some(span) = loss(event).filter(|span| self.lost.insert(*span)) {
                        tracker.lost(span.stream, span.since, span.until);
                    }
                    // After the end of the analyzed span, only events that contain names are used.
                    let names =
                        matches!(event.kind, LifeKind::Snapshot(_) | LifeKind::CgroupPath(_));
                    if let LifeKind::Counters(counters) = &event.kind {
                        // Counter samples are used even after the end of the analyzed span, because they show what
                        // happened before that end.
                        tracker.collectors.sample(time, counters);
                    } else if let LifeKind::SystemCalls(calls) = &event.kind {
                        tracker.system_calls(time, calls);
                    } else if !tracker.stacks(event) && (inside || names) {
                        tracker.life(time, event);
                    }
                }
            }
        }
    }
}

/// The losses and other facts that the recorder's own events report. These events are read before all other events,
/// because a loss has to be known before the events around it are processed.
#[derive(Default)]
struct RecorderFacts {
    lost: BTreeSet<LostSpan>,
    /// The time of the last watermark. The recorder writes a watermark when all events before its time are in the
    /// file.
    progress: Option<Ktime>,
    late: CommitDelay,
}

impl RecorderFacts {
    fn new(trace: &Trace) -> RecorderFacts {
        let mut known = RecorderFacts::default();
        trace.gaps().iter().for_each(|event| known.add(event));
        let mut events = Vec::new();
        for frame in trace.frames() {
            known.late.frame(frame);
            if frame.stream != Stream::Recorder {
                continue;
            }
            // An error is ignored here, because the merge reads the frame again and reports it.
            let _ = trace.read_life(frame, &mut events);
            for event in events.drain(..) {
                known.late.event(&event);
                known.add(&event);
            }
        }
        known
    }

    fn add(&mut self, event: &LifeEvent) {
        if let Some(span) = loss(event) {
            self.lost.insert(span);
        }
        if matches!(event.kind, LifeKind::Watermark) {
            self.progress = self.progress.max(Some(event.time));
        }
    }

    /// The end of the recording. A truncated file is complete up to its last watermark, which says that all events
    /// before a time are in the file. Without a watermark, no part of the file is known to be complete.
    fn end(&self, trace: &Trace) -> Ktime {
        let summary = trace.summary().map(|summary| summary.end);
        summary.or(self.progress).unwrap_or(trace.meta().start)
    }

    /// The last time, not after `end`, such that all events up to and at this time are known to be in the file.
    fn last(&self, trace: &Trace, end: Ktime) -> Ktime {
        match trace.summary() {
            None if self.progress.is_none_or(|progress| progress <= end) => {
                Ktime(end.0.saturating_sub(1))
            }
            _ => end,
        }
    }

    fn gaps(&self, meta: &Metadata) -> Gaps {
        let mut gaps = Gaps::default();
        // With --cpu, the events of the other CPUs are not recorded, and a task may run there unseen. So each of these
        // CPUs has a gap for the whole time.
        let recorded = &meta.options.cpus;
        let left_out = |cpu: &&CpuId| !recorded.is_empty() && !recorded.contains(cpu);
        for cpu in meta.cpus.iter().filter(left_out) {
            gaps.insert(Stream::Cpu(*cpu), Ktime(0), Ktime(u64::MAX));
        }
        for span in &self.lost {
            gaps.insert(span.stream, span.since, span.until);
        }
        gaps
    }
}

/// If the event reports a loss: the span of time in which events are missing. `None` for other events.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tr_format::source::Source;
    use tr_sim::recording::Recording;
    use tr_sim::strategy;

    use super::*;

    proptest! {
        #![proptest_config(strategy::cases(200))]

        /// The tracker's fast path does not change the result of an analysis, whatever faults a recording has.
        #[test]
        fn the_fast_path_gives_the_same_analysis(case in strategy::anything(20_000_000)) {
            let (mut recording, _) = Recording::record(&case.config);
            case.plan.apply(&mut recording);
            let file = recording.to_file(&case.cut).unwrap();
            let trace = Trace::open(Source::bytes(file)).unwrap();
            let by = |without_fast_path| {
                let options = Options { timeline: true, without_fast_path, ..Options::default() };
                format!("{:#?}", crate::analyze(&trace, &options))
            };
            let (fast, slow) = (by(false), by(true));
            let differ = |(a, b): &(&str, &str)| a != b;
            let first = fast.lines().zip(slow.lines()).find(differ);
            // Unlike prop_assert_eq, this does not print both analyses in full.
            prop_assert!(fast == slow, "the fast path differs: {first:?}");
        }
    }
}
