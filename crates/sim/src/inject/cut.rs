//! Makes simulated recordings whose trace files end early.

use tr_format::event::{LifeEvent, LifeKind};

use super::injected::Injected;
use crate::draw::Draw;
use crate::recording::{Recording, Written};

/// Cuts off the trace file of a simulated recording at a point in time, as when the recorder is killed or the disk is
/// full. After the last watermark (an event that says that all earlier events are in the file), only the blocks of some
/// rings are in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// The point at which the trace file ends, in 1/1000 of the simulated recording's span.
    pub at: u16,
}

impl CutOff {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Option<Injected> {
        let start = recording.meta.start.0;
        let span = recording.end().0 - start;
        let point = start + span / 1000 * u64::from(self.at.min(1000));
        let before = recording.len();
        // When the recorder writes a watermark, it has written every block, so all events before the last watermark are
        // in the file.
        recording.recorder.retain(|written| written.at <= point);
        let flushed = recording.last_progress().map_or(0, |time| time.0);
        for ring in &mut recording.cpus {
            keep(ring, flushed, point, draw);
        }
        keep(&mut recording.life, flushed, point, draw);
        // The recorder's own events after the last watermark (written when all earlier events are in the file) were
        // still in memory and are not in the file.
        let progress = |written: &Written<LifeEvent>| written.event.kind == LifeKind::Watermark;
        let last = recording.recorder.iter().rposition(progress);
        recording.recorder.truncate(last.map_or(0, |last| last + 1));
        recording.summary = None;
        let events = (before - recording.len()) as u64;
        Some(Injected::CutOff {
            end: recording.end(),
            events,
        })
    }
}

/// Keeps the events of a ring that were written before the time `flushed`, and of those that were written between the
/// times `flushed` and `point` a random number of the first ones.
fn keep<E>(ring: &mut Vec<Written<E>>, flushed: u64, point: u64, draw: &mut Draw) {
    let sure = ring.partition_point(|written| written.at < flushed);
    let most = ring.partition_point(|written| written.at < point);
    let more = draw.below((most.saturating_sub(sure) + 1) as u32) as usize;
    ring.truncate(sure + more);
}
