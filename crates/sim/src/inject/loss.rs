//! Lost spans: events that are not in their ring, and a record that says so.

use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, LossCause, Lost, Stream};

use crate::draw::Draw;
use crate::inject::Injected;
use crate::recording::{Recording, Written};

/// Some stretch of consecutive events of one ring is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Which ring; the recorder's own stream is never lost.
    pub stream: Stream,
    /// Where the stretch begins, in 1/1000 of the ring.
    pub from: u16,
    /// The most events; it is drawn from 1 up, or ends with the ring.
    pub most: u32,
    /// Why.
    pub cause: LossCause,
    /// Whether the record says how many.
    pub counted: bool,
}

impl Loss {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Option<Injected> {
        let lost = match self.stream {
            Stream::Cpu(CpuId(cpu)) => {
                let ring = recording.cpus.get_mut(usize::from(cpu))?;
                self.take(ring, |event| event.time, draw)?
            }
            Stream::Lifecycle => self.take(&mut recording.life, |event| event.time, draw)?,
            Stream::Recorder => return None,
        };
        let (first, last, count, at) = lost;
        let kind = LifeKind::Lost(Lost {
            stream: self.stream,
            count: self.counted.then_some(count),
            until: last,
            cause: self.cause,
        });
        recording.say(
            at,
            LifeEvent {
                time: first,
                cpu: None,
                kind,
            },
        );
        Some(Injected::Lost {
            stream: self.stream,
            span: (first, last),
            count,
            cause: self.cause,
        })
    }

    /// Takes the stretch out: its first and last stamp, its length, and when
    /// that can be written down: with the next event that has room again.
    fn take<E>(
        &self,
        ring: &mut Vec<Written<E>>,
        time: impl Fn(&E) -> Ktime,
        draw: &mut Draw,
    ) -> Option<(Ktime, Ktime, u64, u64)> {
        // By stamp, as the record's span is meant: no other event of the ring
        // lies in it.
        ring.sort_by_key(|written| time(&written.event));
        let from = ring.len() * usize::from(self.from.min(999)) / 1000;
        let count = 1 + draw.below(self.most.max(1)) as usize;
        let until = from.saturating_add(count).min(ring.len());
        let gone = ring.get(from..until)?;
        let (first, last) = (time(&gone.first()?.event), time(&gone.last()?.event));
        let at = gone.iter().map(|written| written.at).max()?;
        let at = ring.get(until).map_or(at, |next| next.at.max(at));
        ring.drain(from..until);
        ring.sort_by_key(|written| written.at);
        Some((first, last, (until - from) as u64, at))
    }
}
