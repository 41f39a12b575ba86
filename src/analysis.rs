//! Analyzes the traces that a command reads, within its limits of memory and time, and shows the progress.

use tr_analyze::Options;
use tr_format::reader::Trace;
use tr_insight::recordings::recording::{BudgetEffect, Recording};
use tr_report::reports::TimelineUse;
use tr_text::units;

use crate::budget::{self, Budget};
use crate::progress::Bar;
use crate::{limits, scratch};

/// The memory that a timeline takes if it is not in a temporary file: at most 16 bytes for each event of the trace. The
/// number is doubled, because a command may use only half of its memory limit for reading.
const IN_MEMORY: u64 = 2 * 16;
/// The number of bytes of memory for each event of the trace that an analysis with a timeline takes for tasks, for
/// the index of the timeline and for reports.
const EVENT_BYTES: u64 = 10;

/// The memory in bytes that the analysis takes for each wait that another task ended (measured: benches/memory.sh).
/// A recording with few such waits needs most of its memory for tasks.
fn dependency(wanted: TimelineUse) -> u64 {
    match wanted {
        TimelineUse::Path => 20,
        TimelineUse::StepTimes => 70,
        TimelineUse::Simulation => 170,
    }
}

/// The limits of memory and time for an analysis, and what its timeline will be used for.
#[derive(Clone, Copy)]
pub struct Allowance {
    pub budget: Budget,
    pub wanted: TimelineUse,
    /// The number of recordings that the command analyzes, which share its time limit.
    pub files: usize,
}

impl Allowance {
    /// The limits for the analysis of a single recording.
    pub fn new(budget: Budget, wanted: TimelineUse) -> Allowance {
        Allowance {
            budget,
            wanted,
            files: 1,
        }
    }
}

/// The number of events in those frames (blocks of events) of the trace that overlap the span from `from` to `to`, both
/// in ns since the start of the recording.
pub fn events_in(trace: &Trace, (from, to): (Option<u64>, Option<u64>)) -> u64 {
    let at = |offset: u64| trace.meta().start.0.saturating_add(offset);
    let (start, end) = (at(from.unwrap_or(0)), to.map_or(u64::MAX, at));
    let frames = trace.frames().iter();
    let inside = frames.filter(|frame| frame.max.0 >= start && frame.min.0 <= end);
    inside.fold(0, |sum, frame| sum.saturating_add(frame.events))
}

/// The message that a recording with `events` events gets no timeline, because that would need `needed` bytes of
/// memory; `None` if the limits allow it.
fn too_many(budget: Budget, events: u64, needed: u64) -> Option<String> {
    let most = budget.memory()?;
    (needed > most).then(|| {
        // The message suggests a memory limit in whole GiB, which is easier to type and exact enough.
        let give = needed.div_ceil(1 << 30);
        let at = if budget::half().is_none_or(|half| fits(give, 2 * half)) {
            ""
        } else {
            " on a larger machine"
        };
        format!(
            "{} events: their order (critical path, advice, times of steps, waits) is left out, because it \
             takes more memory; --max-memory {give}G shows it{at}, and --from and --to that of a part",
            units::count(events)
        )
    })
}

/// Whether a timeline of `gib` GiB fits into a machine or container with `available` bytes of memory. A timeline that
/// takes all of the memory does not fit, because the kernel would kill the process without any message.
fn fits(gib: u64, available: u64) -> bool {
    gib < available >> 30
}

/// The settings for an analysis of the whole recording that keeps the timeline of the threads' states.
pub fn with_timeline() -> Options {
    Options {
        timeline: true,
        ..Options::default()
    }
}

/// Like [`analyze`], but analyzes the whole recording and keeps the timeline of the threads' states.
pub fn analyze_whole(trace: &Trace, allowance: Allowance) -> Recording {
    analyze(trace, &with_timeline(), allowance)
}

/// The number of steps of the progress bar for each of several recordings.
#[cfg(feature = "compare")]
const FILE_STEPS: u64 = 1000;
/// The number of steps of the progress bar for reading one of several recordings. The rest of the recording's
/// `FILE_STEPS` steps are for analyzing it.
#[cfg(feature = "compare")]
const READING_STEPS: u64 = 400;

/// Analyzes several recordings, one after the other, with a single progress bar. `take` is called with the index
/// of each recording and its analysis.
#[cfg(feature = "compare")]
pub fn analyze_several<T>(
    traces: &[Trace],
    options: &Options,
    allowance: Allowance,
    mut take: impl FnMut(usize, Recording) -> T,
) -> Vec<T> {
    let bar = Bar::of_several();
    let files = traces.len();
    let whole = (files as u64).saturating_mul(FILE_STEPS);
    let allowance = Allowance { files, ..allowance };
    let each = traces.iter().enumerate().map(|(at, trace)| {
        let before = (at as u64).saturating_mul(FILE_STEPS);
        bar.name_recording(at + 1, files);
        let recording = analyze_with(trace, options, allowance, &bar, |done, all| {
            (before + tr_analyze::share(READING_STEPS, done, all), whole)
        });
        bar.show(before + READING_STEPS, whole);
        let result = take(at, recording);
        bar.show(before + FILE_STEPS, whole);
        result
    });
    let results = each.collect();
    bar.finish();
    results
}

/// Analyzes a trace within limits of memory and time. If standard error is a terminal, a bar there shows the progress
/// after half a second. A timeline that would take too much memory is left out. If a limit stops the reading or
/// removes the timeline, a line on standard error says so.
pub fn analyze(trace: &Trace, options: &Options, allowance: Allowance) -> Recording {
    let bar = Bar::of_one(options.from.is_some() || options.to.is_some());
    let recording = analyze_with(trace, options, allowance, &bar, |done, all| (done, all));
    bar.finish();
    recording
}

/// Like [`analyze`], but draws on the caller's progress bar. `place` converts the number of events read and the
/// number of all events into a position on the bar and the bar's length.
fn analyze_with(
    trace: &Trace,
    options: &Options,
    allowance: Allowance,
    bar: &Bar,
    place: impl Fn(u64, u64) -> (u64, u64) + Sync,
) -> Recording {
    let Allowance {
        budget,
        wanted,
        files,
    } = allowance;
    let events = events_in(trace, (options.from, options.to));
    let has_timeline = options.timeline || options.samples;
    let scratch = scratch::of(events).filter(|_| has_timeline);
    let in_memory = if scratch.is_some() { 0 } else { IN_MEMORY };
    let each = events.saturating_mul(EVENT_BYTES + in_memory);
    let mut left_out = too_many(budget, events, each).filter(|_| has_timeline);
    let kept = left_out.is_none();
    let options = Options {
        timeline: options.timeline && kept,
        samples: options.samples && kept,
        scratch,
        ..*options
    };
    let watch = budget.begin(files);
    let mut analysis = tr_analyze::analyze_watched(trace, &options, &mut |done, all| {
        let (done, all) = place(done, all);
        bar.show(done, all);
        watch.exceeded()
    });
    if scratch.is_some() {
        limits::give_back();
    }
    if let Some(why) = &analysis.quality.stopped {
        bar.say(&format!("{why}; the rest of the recording is unknown"));
    }
    if let Some(timeline) = &analysis.timeline {
        // Each wait that another task ended takes memory. The number of such waits is known only after the trace was
        // read, so the limit is checked a second time here.
        let of_dependencies = timeline.dependencies().saturating_mul(dependency(wanted));
        left_out = too_many(budget, events, each.saturating_add(of_dependencies));
        if left_out.is_some() {
            analysis.timeline = None;
        }
    }
    if let Some(why) = &left_out {
        bar.say(why);
    }
    Recording {
        analysis,
        budget: BudgetEffect { left_out },
        ..Recording::default()
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    /// Tests that a memory limit of 1 GiB does not fit into a container with 1 GiB: the container's own limit would
    /// be reached first.
    #[test]
    fn all_of_the_memory_does_not_fit() {
        let gib = 1 << 30;
        assert!(!fits(1, gib) && !fits(2, 2 * gib - 1) && !fits(3, 2 * gib));
        assert!(fits(1, 2 * gib) && fits(7, 8 * gib));
    }
}
