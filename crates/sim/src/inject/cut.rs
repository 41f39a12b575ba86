//! Files that end early.

use crate::draw::Draw;
use crate::inject::Injected;
use crate::recording::{Recording, Written};

/// The recorder was killed, or the disk was full: nothing that was written
/// after a point is in the file. After the last progress before it some rings'
/// blocks had been written and others not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// The point, in 1/1000 of the span.
    pub at: u16,
}

impl CutOff {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Option<Injected> {
        let start = recording.meta.start.0;
        let span = recording.end().0 - start;
        let point = start + span / 1000 * u64::from(self.at.min(1000));
        let before = recording.len();
        // At and after a progress the writer has closed every block.
        recording.recorder.retain(|written| written.at <= point);
        let flushed = recording.last_progress().map_or(0, |time| time.0);
        for ring in &mut recording.cpus {
            keep(ring, flushed, point, draw);
        }
        keep(&mut recording.life, flushed, point, draw);
        // What the recorder said after the last progress was still in memory.
        let last = recording
            .recorder
            .iter()
            .rposition(|written| written.event.kind == tr_format::event::LifeKind::Progress);
        recording.recorder.truncate(last.map_or(0, |last| last + 1));
        recording.summary = None;
        let events = (before - recording.len()) as u64;
        Some(Injected::CutOff {
            end: recording.end(),
            events,
        })
    }
}

/// Keeps all that was written before `flushed` and some of what was written
/// between that and `point`.
fn keep<E>(ring: &mut Vec<Written<E>>, flushed: u64, point: u64, draw: &mut Draw) {
    let sure = ring.partition_point(|written| written.at < flushed);
    let most = ring.partition_point(|written| written.at < point);
    let more = draw.below((most.saturating_sub(sure) + 1) as u32) as usize;
    ring.truncate(sure + more);
}
