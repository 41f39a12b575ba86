//! Removes events from a ring of a simulated recording, with a loss record.

use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, LossCause, Lost, Stream};

use super::injected::Injected;
use crate::draw::Draw;
use crate::recording::{Recording, Stamped, Written};

/// Removes a stretch of consecutive events from one ring of a simulated recording, and adds a loss
/// record for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The stream whose ring loses events. The recorder's own stream is never lost.
    pub stream: Stream,
    /// The place in the simulated ring at which the lost events begin, in 1/1000 of the ring's
    /// events.
    pub from: u16,
    /// The largest number of lost events. The actual number is random, and the loss ends at the
    /// latest with the ring.
    pub most: u32,
    /// The cause of the loss of events that the injected loss record gives.
    pub cause: LossCause,
    /// Whether the injected loss record contains the number of lost events.
    pub counted: bool,
}

impl Loss {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Option<Injected> {
        let lost = match self.stream {
            Stream::Cpu(CpuId(cpu)) => {
                let ring = recording.cpus.get_mut(usize::from(cpu))?;
                self.take(ring, draw)?
            }
            Stream::Lifecycle => self.take(&mut recording.life, draw)?,
            Stream::Recorder => return None,
        };
        let (first, last, count, at) = lost;
        let kind = LifeKind::Lost(Lost {
            stream: self.stream,
            count: self.counted.then_some(count),
            until: last,
            cause: self.cause,
        });
        let event = LifeEvent {
            time: first,
            cpu: None,
            kind,
        };
        recording.insert(at, event);
        Some(Injected::Lost {
            stream: self.stream,
            span: (first, last),
            count,
            cause: self.cause,
        })
    }

    /// Removes the events from the ring. Returns the time stamps of the first and the last of them,
    /// their number, and the true time at which the loss record is written, just before the next
    /// event for which the ring has room.
    fn take<E: Stamped>(
        &self,
        ring: &mut Vec<Written<E>>,
        draw: &mut Draw,
    ) -> Option<(Ktime, Ktime, u64, u64)> {
        // The lost events are consecutive by time stamp, so that no other event of the ring lies in the time span of
        // the loss record.
        ring.sort_by_key(|written| written.event.stamp());
        let from = ring.len() * usize::from(self.from.min(999)) / 1000;
        let count = 1 + draw.below(self.most.max(1)) as usize;
        let until = from.saturating_add(count).min(ring.len());
        let gone = ring.get(from..until)?;
        let (first, last) = (gone.first()?.event.stamp(), gone.last()?.event.stamp());
        let at = gone.iter().map(|written| written.at).max()?;
        let at = ring.get(until).map_or(at, |next| next.at.max(at));
        ring.drain(from..until);
        ring.sort_by_key(|written| written.at);
        Some((first, last, (until - from) as u64, at))
    }
}
