//! Finds the suspends of the machine during a recording from its events, when `tr info` reads these and not only the
//! summary, which lists the suspends.

use tr_format::event::{LifeKind, Stream};
use tr_format::reader::Trace;
use tr_format::tally::Suspend;

/// All suspends of the machine during a recording, from the trace's events. Frames (blocks of events in the file) that
/// cannot be read are skipped; they are reported elsewhere.
pub fn suspends(trace: &Trace) -> Vec<Suspend> {
    let meta = trace.meta();
    let mut readings = vec![(meta.start, meta.start_clock.boot)];
    let mut events = Vec::new();
    for frame in trace.frames() {
        if frame.stream != Stream::Recorder || trace.read_life(frame, &mut events).is_err() {
            continue;
        }
        readings.extend(events.iter().filter_map(|event| match &event.kind {
            LifeKind::Clock(clock) => Some((event.time, clock.boot)),
            _ => None,
        }));
    }
    if let Some(summary) = trace.summary() {
        readings.push((summary.end, summary.end_clock.boot));
    }
    readings.sort_unstable();
    let pairs = readings.iter().zip(readings.iter().skip(1));
    pairs
        .filter_map(|(before, after)| Suspend::between(*before, *after))
        .collect()
}

#[cfg(test)]
#[path = "tests/suspend.rs"]
mod tests;
