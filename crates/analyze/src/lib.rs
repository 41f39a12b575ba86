//! From a trace to the times of every thread, process and program.
//!
//! [`order`] puts the events of all streams in order, `book` follows every task
//! through them with the states of `tasks` and the gaps of `gaps`, and `build`
//! makes the [`model`] of it. Knows nothing of BPF, of recording, of rendering.
#![forbid(unsafe_code)]

mod book;
mod build;
mod clocks;
mod concurrency;
pub mod critical_path;
mod gaps;
mod graph;
mod legs;
pub mod model;
pub mod order;
pub mod parallelism;
mod places;
pub mod programs;
mod reading;
mod tasks;
pub mod timeline;
pub mod waits;
pub mod what_if;

use tr_format::event::{CpuId, Stream};
use tr_format::reader::{End, Trace};
use tr_format::tally::Lateness;
use tr_format::window::Window;

use crate::clocks::{Clocks, Verdict};
pub use crate::model::Analysis;
use crate::model::Quality;
pub use crate::reading::Watch;
use crate::reading::{read, Input, Known, Reading};

/// What part of a trace to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// From here on, in ns since the trace's start.
    pub from: Option<u64>,
    /// Up to here, in ns since the trace's start.
    pub to: Option<u64>,
    /// Only time on this CPU counts as on-CPU; that on others as unknown.
    pub cpu: Option<CpuId>,
    /// Keep what every thread did when: 16 bytes for each change of state.
    pub timeline: bool,
    /// About how many events there are in each part of the trace that is read apart from
    /// the others; `None`: as many as are worth it, when several threads share the work.
    /// The same result for any number.
    pub leg_events: Option<u64>,
    /// Read no block before it is needed, and take no short ways: the same result,
    /// slower. For tests.
    pub careful: bool,
}

/// Analyzes a trace. What is damaged or missing is no error: it stands in
/// [`Analysis::quality`], and its time is unknown.
pub fn analyze(trace: &Trace, options: &Options) -> Analysis {
    analyze_watched(trace, options, &mut |_, _| {})
}

/// [`analyze`], which tells time and again how many events have been gone
/// through, of how many. When the trace is read once more because its clocks
/// disagree, that begins anew.
pub fn analyze_watched(trace: &Trace, options: &Options, watch: Watch<'_>) -> Analysis {
    // Losses first: a gap is known before the events around it are read.
    let mut known = Known::default();
    for event in trace.gaps() {
        known.add(event);
    }
    let mut events = Vec::new();
    let mut late = Lateness::default();
    for frame in trace.frames() {
        late.frame(frame);
        if frame.stream != Stream::Recorder {
            continue;
        }
        // What cannot be read is met again, and told, in the merge.
        let _ = trace.read_life(frame, &mut events);
        for event in events.drain(..) {
            late.word(&event);
            known.add(&event);
        }
    }
    let input = Input {
        trace,
        known: &known,
        checkpoint: None,
    };
    let whole = input.whole();
    let (start, end) = input.span(options);

    let first = read(&input, options, (start, end), None, watch);
    // What the clocks are is not a matter of the part that is looked at.
    let judged = Options {
        timeline: false,
        ..*options
    };
    let over_all = |clocks: Option<&Clocks>, part: &Reading, watch: Watch<'_>| match end < whole {
        true => read(&input, &judged, (start, whole), clocks, watch).violations(),
        false => part.violations(),
    };
    let before = over_all(None, &first, watch);
    let (mut reading, mut report, mut unclear) = (None, None, false);
    if before > 0 {
        match clocks::estimate(trace, &known) {
            Verdict::Equal => {}
            Verdict::Unclear => unclear = true,
            Verdict::Off(clocks, corrected) => {
                let again = read(&input, options, (start, end), Some(&clocks), watch);
                let after = over_all(Some(&clocks), &again, watch);
                // Else it was not the clocks, or not them alone.
                if after.saturating_mul(2) <= before {
                    reading = Some(again);
                    report = Some(model::Clocks {
                        violations_before: before,
                        ..corrected
                    });
                } else {
                    unclear = true;
                }
            }
        }
    }
    let largest_inversion = first.largest_inversion;
    let quality = Quality {
        truncated: match trace.end() {
            End::Complete => None,
            End::Truncated { frame, offset, why } => {
                Some(format!("ends at frame {frame}, byte {offset}: {why}"))
            }
        },
        largest_inversion,
        // A clock that is behind looks like an event that is late.
        latest_write: match report.is_some() {
            true => largest_inversion,
            false => late.latest().max(largest_inversion),
        },
        clocks: report,
        clocks_unclear: unclear,
        ..Quality::default()
    };
    input.analysis(options, reading.unwrap_or(first), quality)
}

/// [`analyze`] of a part of a trace, of which only that part is read: the same, in a
/// time that does not depend on how long the trace is. `None` when the part contradicts
/// itself, or is damaged: then the whole trace has to be looked at. Contradictions in
/// the rest of it are not noticed.
///
/// `options` ask for the part that `window` was opened for.
pub fn analyze_window(window: &Window, options: &Options, watch: Watch<'_>) -> Option<Analysis> {
    let input = Input {
        trace: &window.trace,
        known: &Known::default(),
        checkpoint: window.checkpoint.as_ref(),
    };
    let reading = read(&input, options, input.span(options), None, watch);
    if reading.violations() > 0 || !reading.lost.is_empty() {
        return None;
    }
    let tally = &window.tally;
    let quality = Quality {
        largest_inversion: tally.largest_inversion,
        latest_write: tally.latest_write.max(tally.largest_inversion),
        only_part: true,
        ..Quality::default()
    };
    let mut analysis = input.analysis(options, reading, quality);
    analysis.events = tally.events;
    Some(analysis)
}
