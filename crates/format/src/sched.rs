//! The scheduling events of one CPU, stored in columns.

use crate::event::{
    Context, CpuId, Ktime, Reason, SchedEvent, SchedKind, Switch, Tid, Timeout, Waking,
};

/// The bits that describe a scheduling event in [`SchedBlock::flags`].
pub mod flag {
    /// The scheduling event is a waking; without this bit it is a switch.
    pub const WAKING: u8 = 0x01;
    /// The task that a switch switches out was preempted. Only a switch has this bit.
    pub const PREEMPT: u8 = 0x10;
    /// The task that a switch switches out waits for block I/O. Only a switch has this bit.
    pub const IOWAIT: u8 = 0x20;
    /// An interrupt is the cause of the waking, not the running task. Only a waking has this bit.
    pub const IRQ: u8 = 0x08;
    /// The waking happened in a softirq, a deferred part of an interrupt. Without [`IRQ`], the running task itself
    /// raised the softirq by sending data. Only a waking has this bit.
    pub const SOFTIRQ: u8 = 0x10;
    /// The waking is the first wake-up of a new task. Only a waking has this bit.
    pub const NEW: u8 = 0x02;
    /// The parent of the woken task waits in vfork. Only the first waking of a new task has this bit.
    pub const VFORK: u8 = 0x04;
    /// All bits of a scheduling event's flags that have a meaning.
    pub const ALL: u8 = 0x3f;
}

/// The scheduling events of one frame of a trace, in columns. All columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedBlock {
    /// The CPU on which all of the block's events happened.
    pub cpu: CpuId,
    /// The times of the block's events in ns of `CLOCK_MONOTONIC` ([`Ktime`]). They are in the order of the
    /// CPU's slots, so nearly ascending.
    pub time: Vec<u64>,
    /// The id of the running task of each event: `prev` of a switch, `waker` of a waking.
    pub from: Vec<u32>,
    /// The id of the second task of each event: `next` of a switch, `wakee` of a waking.
    pub to: Vec<u32>,
    /// The kernel's raw state bits of the task that a switch switches out; 0 for a waking.
    pub state: Vec<u16>,
    /// The flags of each scheduling event: bits of the module [`flag`].
    pub flags: Vec<u8>,
    /// The number of the [`Reason`] for each event that is a switch-out into a sleep ([`sleeps`]); 0 for
    /// other events.
    pub reason: Vec<u8>,
    /// The number of the [`Timeout`] of each event that is a switch-out into a sleep; 0 for other events.
    pub timeout: Vec<u8>,
}

/// Whether a scheduling event is a task's switch-out into a sleep, or the last switch-out of a dead task. Only such
/// events have a reason.
#[inline(always)]
pub fn sleeps(flags: u8, state: u16) -> bool {
    flags & (flag::WAKING | flag::PREEMPT) == 0 && state != 0
}

impl SchedBlock {
    /// The number of scheduling events in the block.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether the block has no scheduling events.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Removes all scheduling events from the block, but keeps the memory for new ones.
    pub fn clear(&mut self) {
        self.time.clear();
        self.from.clear();
        self.to.clear();
        self.state.clear();
        self.flags.clear();
        self.reason.clear();
        self.timeout.clear();
    }

    pub(crate) fn resize(&mut self, len: usize) {
        self.time.resize(len, 0);
        self.from.resize(len, 0);
        self.to.resize(len, 0);
        self.state.resize(len, 0);
        self.flags.resize(len, 0);
        self.reason.resize(len, 0);
        self.timeout.resize(len, 0);
    }

    /// Appends a scheduling event to the block.
    #[inline]
    pub fn push(&mut self, event: SchedEvent) {
        let rest = Packed::from(event.kind);
        self.time.push(event.time.0);
        self.from.push(rest.from);
        self.to.push(rest.to);
        self.state.push(rest.state);
        self.flags.push(rest.flags);
        self.reason.push(rest.reason);
        self.timeout.push(rest.timeout);
    }

    /// The scheduling events of the block, in the order of the slots they came from.
    pub fn iter(&self) -> impl Iterator<Item = SchedEvent> + '_ {
        let ids = self.from.iter().zip(&self.to);
        let sleeps = self.reason.iter().zip(&self.timeout);
        let attributes = self.state.iter().zip(&self.flags).zip(sleeps);
        let events =
            ids.zip(attributes)
                .map(|((from, to), ((state, flags), (reason, timeout)))| Packed {
                    from: *from,
                    to: *to,
                    state: *state,
                    flags: *flags,
                    reason: *reason,
                    timeout: *timeout,
                });
        self.time
            .iter()
            .zip(events)
            .map(|(time, event)| event.event(*time))
    }

    /// Sorts the scheduling events of the block by time. Events with equal times keep the order of the slots.
    pub fn sort(&mut self) {
        if self.time.is_sorted() {
            return;
        }
        // Nearly all events are at least as late as every event before them. These events form one sorted run, so they
        // are put first in the list, where the sort recognizes the run. The few events that are earlier than an event
        // before them follow. Events with equal times keep their order, because an event that does not belong to the
        // run comes after the others of the same time in the slots, too.
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

    fn pick(&mut self, order: &[(u64, u32)]) {
        pick(&mut self.time, order);
        pick(&mut self.from, order);
        pick(&mut self.to, order);
        pick(&mut self.state, order);
        pick(&mut self.flags, order);
        pick(&mut self.reason, order);
        pick(&mut self.timeout, order);
    }

    /// The smallest and the largest time of the block's events; `None` if the block has no events.
    pub fn span(&self) -> Option<(Ktime, Ktime)> {
        let min = self.time.iter().copied().min()?;
        let max = self.time.iter().copied().max()?;
        Some((Ktime(min), Ktime(max)))
    }
}

/// Puts a column of the block into a new order: the element `i` of the result is the old element at the index
/// `order[i].1`.
fn pick<T: Copy>(column: &mut Vec<T>, order: &[(u64, u32)]) {
    let picked = order.iter().filter_map(|(_, at)| column.get(*at as usize));
    *column = picked.copied().collect();
}

/// A scheduling event without its time, with its fields encoded as in the columns of [`SchedBlock`].
#[derive(Clone, Copy, Debug)]
pub struct Packed {
    /// The id of the task that was running at the event, as in [`SchedBlock::from`].
    pub from: u32,
    /// The id of the second task of the event, as in [`SchedBlock::to`].
    pub to: u32,
    /// The kernel's state bits of the task that is switched out, as in [`SchedBlock::state`].
    pub state: u16,
    /// The flags of the scheduling event, as in [`SchedBlock::flags`].
    pub flags: u8,
    /// The number of the reason why the task goes to sleep, as in [`SchedBlock::reason`].
    pub reason: u8,
    /// The number of the time-out of the task's sleep, as in [`SchedBlock::timeout`].
    pub timeout: u8,
}

impl From<SchedKind> for Packed {
    #[inline(always)]
    fn from(kind: SchedKind) -> Packed {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        match kind {
            SchedKind::Switch(switch) => {
                let (preempt, iowait) = (switch.preempt, switch.iowait);
                let flags = bit(preempt, flag::PREEMPT) | bit(iowait, flag::IOWAIT);
                let (reason, timeout) = if sleeps(flags, switch.prev_state) {
                    (switch.reason as u8, switch.timeout.number())
                } else {
                    (0, 0)
                };
                Packed {
                    from: switch.prev.0,
                    to: switch.next.0,
                    state: switch.prev_state,
                    flags,
                    reason,
                    timeout,
                }
            }
            SchedKind::Waking(waking) => {
                let (new, vfork) = (waking.new, waking.vfork);
                let context = match waking.context {
                    Context::Task => 0,
                    Context::HardIrq => flag::IRQ,
                    Context::SoftIrq => flag::IRQ | flag::SOFTIRQ,
                    Context::SendSoftIrq => flag::SOFTIRQ,
                };
                Packed {
                    from: waking.waker.0,
                    to: waking.wakee.0,
                    state: 0,
                    flags: flag::WAKING | context | bit(new, flag::NEW) | bit(vfork, flag::VFORK),
                    reason: 0,
                    timeout: 0,
                }
            }
        }
    }
}

/// The scheduling events of a block that is still being filled. Appending to two vectors is faster than
/// appending to the seven of a [`SchedBlock`].
#[derive(Debug, Default)]
pub(crate) struct Open {
    pub time: Vec<u64>,
    pub rest: Vec<Packed>,
}

impl Open {
    /// Appends a scheduling event to the block. Returns the number of events that the block then has.
    #[inline(always)]
    pub fn push(&mut self, event: SchedEvent) -> usize {
        self.time.push(event.time.0);
        self.rest.push(event.kind.into());
        self.time.len()
    }

    pub fn len(&self) -> usize {
        self.time.len()
    }

    pub fn clear(&mut self) {
        self.time.clear();
        self.rest.clear();
    }
}

impl Packed {
    /// Decodes the packed scheduling event, which happened at `time` (in ns).
    #[inline]
    pub fn event(self, time: u64) -> SchedEvent {
        let has = |bit: u8| self.flags & bit != 0;
        let kind = if has(flag::WAKING) {
            SchedKind::Waking(Waking {
                waker: Tid(self.from),
                wakee: Tid(self.to),
                context: match (has(flag::IRQ), has(flag::SOFTIRQ)) {
                    (false, false) => Context::Task,
                    (true, false) => Context::HardIrq,
                    (true, true) => Context::SoftIrq,
                    (false, true) => Context::SendSoftIrq,
                },
                new: has(flag::NEW),
                vfork: has(flag::VFORK),
            })
        } else {
            SchedKind::Switch(Switch {
                prev: Tid(self.from),
                next: Tid(self.to),
                prev_state: self.state,
                preempt: has(flag::PREEMPT),
                iowait: has(flag::IOWAIT),
                reason: Reason::of(self.reason),
                timeout: Timeout::of(self.timeout),
            })
        };
        SchedEvent {
            time: Ktime(time),
            kind,
        }
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
                let (from, to, state) = (at, at + 1, at as u16);
                let (reason, timeout) = (state as u8 % 25, state as u8 % 255);
                let rest = Packed { from, to, state, flags: 0, reason, timeout };
                block.push(rest.event(now - late.unwrap_or(0)));
            }
            let mut expected: Vec<SchedEvent> = block.iter().collect();
            expected.sort_by_key(|event| event.time);
            block.sort();
            prop_assert_eq!(block.iter().collect::<Vec<_>>(), expected);
        }
    }
}
