//! Scheduling events of one CPU, by column.

use crate::event::{CpuId, Ktime, SchedEvent, SchedKind, Tid};

/// Bits of [`SchedBlock::flags`].
pub mod flag {
    /// It is a waking; without it, a switch.
    pub const WAKING: u8 = 0x01;
    /// A switch: `prev` was preempted.
    pub const PREEMPT: u8 = 0x10;
    /// A switch: `prev` waits for block I/O.
    pub const IOWAIT: u8 = 0x20;
    /// A waking: it came from an interrupt.
    pub const IRQ: u8 = 0x08;
    /// A waking: the first one of a new task.
    pub const NEW: u8 = 0x02;
    /// A waking of a new task: its parent waits in vfork.
    pub const VFORK: u8 = 0x04;
    /// All bits that have a meaning.
    pub const ALL: u8 = 0x3f;
}

/// The scheduling events of one frame, by column: the form that analyses run
/// over. All columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedBlock {
    /// The CPU on which all of them happened.
    pub cpu: CpuId,
    /// When, in ns of `CLOCK_MONOTONIC` ([`Ktime`]). In the order of the ring:
    /// nearly, not always, ascending.
    pub time: Vec<u64>,
    /// The task that was running: `prev` of a switch, `waker` of a waking.
    pub from: Vec<u32>,
    /// The other task: `next` of a switch, `wakee` of a waking.
    pub to: Vec<u32>,
    /// Raw `prev_state` of a switch; 0 for a waking.
    pub state: Vec<u16>,
    /// What it is: [`flag`].
    pub flags: Vec<u8>,
}

impl SchedBlock {
    /// How many events.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Removes all events; keeps the memory.
    pub fn clear(&mut self) {
        self.time.clear();
        self.from.clear();
        self.to.clear();
        self.state.clear();
        self.flags.clear();
    }

    /// Gives all columns this length.
    pub(crate) fn resize(&mut self, len: usize) {
        self.time.resize(len, 0);
        self.from.resize(len, 0);
        self.to.resize(len, 0);
        self.state.resize(len, 0);
        self.flags.resize(len, 0);
    }

    /// Appends an event. Flags that an event's shape does not have are dropped.
    #[inline]
    pub fn push(&mut self, event: SchedEvent) {
        let rest = Rest::from(event.kind);
        self.time.push(event.time.0);
        self.from.push(rest.from);
        self.to.push(rest.to);
        self.state.push(rest.state);
        self.flags.push(rest.flags);
    }

    /// The event at `at`.
    pub fn get(&self, at: usize) -> Option<SchedEvent> {
        Some(event(
            *self.time.get(at)?,
            *self.from.get(at)?,
            *self.to.get(at)?,
            *self.state.get(at)?,
            *self.flags.get(at)?,
        ))
    }

    /// The events, in the order of the ring.
    pub fn iter(&self) -> impl Iterator<Item = SchedEvent> + '_ {
        let ids = self.from.iter().zip(&self.to);
        let rest = self.state.iter().zip(&self.flags);
        self.time
            .iter()
            .zip(ids)
            .zip(rest)
            .map(|((time, (from, to)), (state, flags))| event(*time, *from, *to, *state, *flags))
    }

    /// Puts the events in the order of their times; those with equal times stay
    /// in the order of the ring.
    pub fn sort(&mut self) {
        if self.time.is_sorted() {
            return;
        }
        // Those before which nothing has a larger time are in order, and are all but a few
        // as a rule: put together, they are a run that the sort finds and leaves alone.
        // Of equal times, one of them comes before those that are late.
        let mut most = 0;
        let places = self.time.iter().copied().zip(0..);
        let (mut order, late): (Vec<_>, Vec<_>) = places.partition(|(time, _)| {
            most = most.max(*time);
            *time == most
        });
        order.extend(late);
        order.sort_by_key(|(time, _)| *time);
        self.pick(&order);
    }

    /// Makes it of the events at these places, in this order.
    fn pick(&mut self, order: &[(u64, u32)]) {
        pick(&mut self.time, order);
        pick(&mut self.from, order);
        pick(&mut self.to, order);
        pick(&mut self.state, order);
        pick(&mut self.flags, order);
    }

    /// The smallest and the largest time.
    pub fn span(&self) -> Option<(Ktime, Ktime)> {
        let min = self.time.iter().copied().min()?;
        let max = self.time.iter().copied().max()?;
        Some((Ktime(min), Ktime(max)))
    }
}

/// Makes a column anew of its values at these places, in this order.
fn pick<T: Copy>(column: &mut Vec<T>, order: &[(u64, u32)]) {
    let picked = order.iter().filter_map(|(_, at)| column.get(*at as usize));
    *column = picked.copied().collect();
}

/// An event but its time, as in [`SchedBlock`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    pub from: u32,
    pub to: u32,
    pub state: u16,
    pub flags: u8,
}

impl From<SchedKind> for Rest {
    #[inline(always)]
    fn from(kind: SchedKind) -> Rest {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        match kind {
            SchedKind::Switch {
                prev,
                next,
                prev_state,
                preempt,
                iowait,
            } => Rest {
                from: prev.0,
                to: next.0,
                state: prev_state,
                flags: bit(preempt, flag::PREEMPT) | bit(iowait, flag::IOWAIT),
            },
            SchedKind::Waking {
                waker,
                wakee,
                irq,
                new,
                vfork,
            } => Rest {
                from: waker.0,
                to: wakee.0,
                state: 0,
                flags: flag::WAKING
                    | bit(irq, flag::IRQ)
                    | bit(new, flag::NEW)
                    | bit(vfork, flag::VFORK),
            },
        }
    }
}

/// The events of a frame to be. Two vectors, not the five of a [`SchedBlock`]:
/// each costs more than its bytes.
#[derive(Debug, Default)]
pub(crate) struct Open {
    pub time: Vec<u64>,
    pub rest: Vec<Rest>,
}

impl Open {
    /// Appends an event. How many there are then.
    #[inline(always)]
    pub fn push(&mut self, event: SchedEvent) -> usize {
        self.time.push(event.time.0);
        self.rest.push(event.kind.into());
        self.time.len()
    }

    /// How many events.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Removes all events; keeps the memory.
    pub fn clear(&mut self) {
        self.time.clear();
        self.rest.clear();
    }
}

/// An event from its values in the columns.
#[inline]
pub fn event(time: u64, from: u32, to: u32, state: u16, flags: u8) -> SchedEvent {
    let has = |bit: u8| flags & bit != 0;
    let kind = match has(flag::WAKING) {
        false => SchedKind::Switch {
            prev: Tid(from),
            next: Tid(to),
            prev_state: state,
            preempt: has(flag::PREEMPT),
            iowait: has(flag::IOWAIT),
        },
        true => SchedKind::Waking {
            waker: Tid(from),
            wakee: Tid(to),
            irq: has(flag::IRQ),
            new: has(flag::NEW),
            vfork: has(flag::VFORK),
        },
    };
    SchedEvent {
        time: Ktime(time),
        kind,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorting_is_by_time_and_leaves_equal_times_as_they_are(
            steps in prop::collection::vec((0..4u64, prop::option::weighted(0.2, 0..40u64)), 0..200),
        ) {
            let (mut block, mut now) = (SchedBlock::default(), 50);
            for (at, (step, late)) in (0..).zip(steps) {
                now += step;
                block.push(event(now - late.unwrap_or(0), at, at + 1, at as u16, 0));
            }
            let mut expected: Vec<SchedEvent> = block.iter().collect();
            expected.sort_by_key(|event| event.time);
            block.sort();
            prop_assert_eq!(block.iter().collect::<Vec<_>>(), expected);
        }
    }
}
