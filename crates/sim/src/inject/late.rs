//! Late writes and inversions: the stamps stay, the order in the ring changes.

use crate::draw::Draw;
use crate::inject::Injected;
use crate::program::Span;
use crate::recording::{Recording, Written};

/// Events that are written into their ring some time after their stamp was
/// taken, as when a virtual CPU is put to sleep between the two. What others
/// write into the ring in the meantime comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// How many of 1000 events.
    pub per_mille: u16,
    /// The longest delay, ns. Shorter ones are as frequent as longer ones on a
    /// logarithmic scale.
    pub longest: u64,
    /// In the lifecycle ring only, which all CPUs write into. In a CPU's own
    /// ring a real CPU can hardly be overtaken, but a reader must not care.
    pub life_only: bool,
}

impl Late {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Option<Injected> {
        let (mut events, mut longest) = (0, 0);
        let mut count = |delay: u64| {
            events += 1;
            longest = delay.max(longest);
        };
        if !self.life_only {
            for ring in &mut recording.cpus {
                self.delay(ring, |event| event.time.0, draw, &mut count);
            }
        }
        self.delay(&mut recording.life, |event| event.time.0, draw, &mut count);
        (events > 0).then_some(Injected::Late { events, longest })
    }

    fn delay<E>(
        &self,
        ring: &mut [Written<E>],
        time: impl Fn(&E) -> u64,
        draw: &mut Draw,
        count: &mut impl FnMut(u64),
    ) {
        let mut last = (0, 0);
        for written in ring.iter_mut() {
            let stamp = time(&written.event);
            if draw.chance(self.per_mille) {
                let bits = u64::BITS - self.longest.max(1).leading_zeros();
                let top = self.longest.max(1) >> draw.below(bits);
                let delay = draw.length(Span { lo: 1, hi: top });
                written.at += delay;
                count(delay);
            }
            if last.0 == stamp {
                // Equal stamps are told apart by their order only: they stay
                // behind each other.
                written.at = written.at.max(last.1);
            }
            last = (stamp, written.at);
        }
        // Stable: what is written at the same time keeps its order.
        ring.sort_by_key(|written| written.at);
    }
}

/// Neighbours in a ring that change places: an interrupt whose event comes
/// between another's stamp and its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inversions {
    /// How many of 1000 events.
    pub per_mille: u16,
}

impl Inversions {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Option<Injected> {
        let (mut pairs, mut largest) = (0, 0);
        let mut count = |step: u64| {
            pairs += 1;
            largest = step.max(largest);
        };
        for ring in &mut recording.cpus {
            self.invert(ring, |event| event.time.0, draw, &mut count);
        }
        self.invert(&mut recording.life, |event| event.time.0, draw, &mut count);
        (pairs > 0).then_some(Injected::Inverted { pairs, largest })
    }

    fn invert<E>(
        &self,
        ring: &mut [Written<E>],
        time: impl Fn(&E) -> u64,
        draw: &mut Draw,
        count: &mut impl FnMut(u64),
    ) {
        let mut i = 1;
        while i < ring.len() {
            let (before, after) = (time(&ring[i - 1].event), time(&ring[i].event));
            // Equal stamps are told apart by their order only.
            if before < after && draw.chance(self.per_mille) {
                ring.swap(i - 1, i);
                // Both are written when the later one was.
                let at = ring[i - 1].at;
                ring[i].at = at;
                count(after - before);
                i += 1;
            }
            i += 1;
        }
    }
}
