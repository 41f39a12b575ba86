//! Injects into a simulated recording events that are written late, and swapped events: the time stamps of events stay,
//! and their order in the ring changes.

use tr_format::event::Ktime;

use super::injected::Injected;
use crate::draw::Draw;
use crate::program::Span;
use crate::recording::{Recording, Stamped, Written};

/// Writes events of a simulated recording into their ring some time after their stamp was taken. This happens when a
/// virtual CPU is descheduled after taking the stamp and before writing the event. Events that other CPUs write in the
/// meantime come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// The share of the simulated recording's events that are written into their ring only some time after their time
    /// stamp, in 1/1000.
    pub per_mille: u16,
    /// The longest time in ns from an event's time stamp to its write into the ring. The delays are evenly distributed
    /// on a logarithmic scale.
    pub longest: u64,
    /// Whether events are written late only into the lifecycle ring (fork, exec, exit). All CPUs write into that ring;
    /// in a ring of one CPU, an event is hardly ever written late on a real machine.
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
                self.delay(ring, draw, &mut count);
            }
        }
        self.delay(&mut recording.life, draw, &mut count);
        (events > 0).then_some(Injected::Late { events, longest })
    }

    fn delay(
        &self,
        ring: &mut [Written<impl Stamped>],
        draw: &mut Draw,
        count: &mut impl FnMut(u64),
    ) {
        let mut last = (Ktime(0), 0);
        for written in ring.iter_mut() {
            let stamp = written.event.stamp();
            if draw.chance(self.per_mille) {
                let bits = u64::BITS - self.longest.max(1).leading_zeros();
                let top = self.longest.max(1) >> draw.below(bits);
                let delay = draw.length(Span { lo: 1, hi: top });
                written.at += delay;
                count(delay);
            }
            if last.0 == stamp {
                // Events with equal time stamps must keep their order, because a reader has nothing else to order them
                // by.
                written.at = written.at.max(last.1);
            }
            last = (stamp, written.at);
        }
        // The sort is stable, so events that are written at the same time keep their order.
        ring.sort_by_key(|written| written.at);
    }
}

/// Swaps neighbouring events in a ring of a simulated recording. This happens when the event of an interrupt comes
/// between the time stamp of another event and its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inversions {
    /// The chance in 1/1000 that an event of the simulated recording is swapped with the event before it in the ring.
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
            self.invert(ring, draw, &mut count);
        }
        self.invert(&mut recording.life, draw, &mut count);
        (pairs > 0).then_some(Injected::Inverted { pairs, largest })
    }

    fn invert(
        &self,
        ring: &mut [Written<impl Stamped>],
        draw: &mut Draw,
        count: &mut impl FnMut(u64),
    ) {
        let mut i = 1;
        while i < ring.len() {
            let (before, after) = (ring[i - 1].event.stamp().0, ring[i].event.stamp().0);
            // Events with equal time stamps are not swapped, because a reader has only their order in the ring to order
            // them by.
            if before < after && draw.chance(self.per_mille) {
                ring.swap(i - 1, i);
                // Both events are now written at the time at which the later one was written.
                let at = ring[i - 1].at;
                ring[i].at = at;
                count(after - before);
                i += 1;
            }
            i += 1;
        }
    }
}
