//! Checks that the clocks of the CPUs agree.
//!
//! Linux stamps the events of all CPUs from one timekeeper, so times are checked but never corrected. Two rules are
//! true whatever the clocks show:
//! - A task runs on one CPU at a time. If two of its runs overlap, the clocks differ by at least the length of the
//!   overlap, whichever run came first.
//! - A task is forked before it is switched in for the first time. If a task seems to run before its fork, the tid does
//!   not prove that it is the same task, because an unrecorded task may have had the tid before. There are two proofs.
//!   The first: all tasks are recorded, or the recording has the names of unrecorded tasks, but none with this tid. The
//!   second: the run began before the fork and ended after it, and its CPU did not switch in between.
//!
//! A waking of a task that is already switched in proves nothing. A signal can keep a task runnable that was switched
//! out as asleep, and a running task can be woken while it is about to sleep.
//!
//! One impossible order of two events proves nothing, because the kernel of a virtual machine may not report every
//! switch. Two impossible orders on the same pair of CPUs are a proof.

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{CpuId, Ktime, Tid};

use crate::model::ClockDisagreement;

/// The least number of impossible orders of events that proves that the clocks of a pair of CPUs disagree. The number
/// is a guess: a single impossible order may come from an event that the kernel hid, and with a higher number, pairs of
/// CPUs that rarely exchange tasks would never be reported.
const PROVING_ORDERS: u64 = 2;
/// The largest number of pairs of CPUs whose impossible orders of events are counted.
const MOST_PAIRS: usize = 1 << 12;
/// The number of slots in which first switch-ins of unknown tasks are remembered. A task's tid determines its slot, and
/// a later task replaces an earlier one.
const UNBORN_SLOTS: usize = 1 << 10;

/// A suspected contradiction of two CPUs' clocks: a task is switched in on one CPU while it still runs on another CPU.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    tid: Tid,
    /// The time at which the task came to the CPU that ran the task before `cpu` did.
    first: Ktime,
    cpu: CpuId,
    since: Ktime,
    /// The time at which the CPU `cpu` switched the task out again; `None` if `cpu` has not done so yet. The next
    /// switch of the CPU that ran the task first decides whether the overlap is a contradiction.
    until: Option<Ktime>,
}

/// A suspected contradiction of two CPUs' clocks: a task is forked on one CPU while a task with the same tid already
/// runs on another CPU.
#[derive(Clone, Copy, Debug)]
struct Birth {
    tid: Tid,
    /// The time at which a CPU switched to the task with the new tid, although the task is forked only later.
    since: Ktime,
    cpu: CpuId,
    forked: Ktime,
}

#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    count: u64,
    /// The two CPUs' clocks differ by at least this many ns: the largest lower bound that an impossible order proves.
    by: u64,
}

/// Counts the impossible orders of events for each pair of CPUs.
#[derive(Debug, Default)]
pub struct ClockCheck {
    /// The impossible orders of events that were found for each pair of CPUs. The pair has the lower CPU first.
    orders: BTreeMap<(CpuId, CpuId), Orders>,
    /// The suspected overlaps that are not proven yet. The key is the CPU that ran the task first; the next switch of
    /// this CPU proves or refutes the overlap.
    overlaps: HashMap<CpuId, Overlap>,
    /// The suspected early runs that are not proven yet: tasks that ran before their forks. The key is the CPU that
    /// ran the task; the next switch of this CPU proves or refutes the early run.
    births: HashMap<CpuId, Birth>,
    /// The most recent switches to tasks that no earlier event has shown: the tid, the CPU and the time of each.
    unborn: Vec<(Tid, CpuId, Ktime)>,
}

impl ClockCheck {
    /// Records that two events prove a difference of at least `by` ns between the clocks of two CPUs.
    fn differ(&mut self, one: CpuId, other: CpuId, by: u64) {
        let pair = (one.min(other), one.max(other));
        let room = self.orders.len() < MOST_PAIRS || self.orders.contains_key(&pair);
        if one != other && by > 0 && room {
            let orders = self.orders.entry(pair).or_default();
            orders.count += 1;
            orders.by = orders.by.max(by);
        }
    }

    /// Records that `cpu` switches to the task `tid` at `since`, although the CPU `on`, which switched to this task at
    /// `first`, still runs the task.
    pub fn overlap(&mut self, tid: Tid, (on, first): (CpuId, Ktime), cpu: CpuId, since: Ktime) {
        let overlap = Overlap {
            tid,
            first,
            cpu,
            since,
            until: None,
        };
        self.overlaps.insert(on, overlap);
    }

    /// Whether there are suspected contradictions of clocks that the next switch of a CPU may prove.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        !self.overlaps.is_empty() || !self.births.is_empty()
    }

    /// Records that `cpu` switches away from the task `prev`. `goes_on(cpu, time)` returns whether the CPU `cpu` still
    /// runs the task to which it switched at `time`. The CPU does so if no later switch of it is known and none of its
    /// events are lost.
    pub fn switch_out(
        &mut self,
        cpu: CpuId,
        prev: Tid,
        time: Ktime,
        goes_on: impl Fn(CpuId, Ktime) -> bool,
    ) {
        if !self.is_waiting() {
            return;
        }
        if let Some(birth) = self.births.remove(&cpu) {
            if prev == birth.tid && goes_on(cpu, birth.since) {
                self.differ(cpu, birth.cpu, birth.forked.since(birth.since));
            }
        }
        if let Some(overlap) = self.overlaps.remove(&cpu) {
            let runs_on = goes_on(overlap.cpu, overlap.since);
            let until = overlap.until.or(runs_on.then_some(time));
            let unbroken = prev == overlap.tid && goes_on(cpu, overlap.first);
            if let Some(until) = until.filter(|_| unbroken) {
                self.differ(cpu, overlap.cpu, until.since(overlap.since));
            }
        }
        // Each overlap that concerns this CPU is a suspected contradiction: a task came to this CPU while it seemed to
        // run on another CPU still. The present switch ends the task's run on this CPU. If this CPU switches away from
        // a different task, or may have switched in between, the overlap proves nothing and is dropped.
        self.overlaps.retain(|_, overlap| {
            if overlap.cpu != cpu || overlap.until.is_some() {
                return true;
            }
            overlap.until = Some(time);
            prev == overlap.tid && goes_on(cpu, overlap.since)
        });
    }

    /// Notes that a CPU switches to a task that no earlier event has shown.
    #[inline]
    pub fn unborn(&mut self, tid: Tid, cpu: CpuId, time: Ktime) {
        if self.unborn.is_empty() {
            self.unborn = vec![(Tid::IDLE, cpu, time); UNBORN_SLOTS];
        }
        if let Some(place) = self.unborn.get_mut(tid.0 as usize % UNBORN_SLOTS) {
            *place = (tid, cpu, time);
        }
    }

    /// Records that the task `tid` is forked on `cpu`. `is_complete` is whether the recording would show or name an
    /// earlier task with this tid, but does not. `goes_on(cpu, time)` returns whether
    /// the CPU `cpu` still runs the task to which it switched at `time`.
    pub fn fork(
        &mut self,
        tid: Tid,
        is_complete: bool,
        cpu: Option<CpuId>,
        time: Ktime,
        goes_on: impl Fn(CpuId, Ktime) -> bool,
    ) {
        let place = self.unborn.get_mut(tid.0 as usize % UNBORN_SLOTS);
        let early = place.filter(|(early, ..)| *early == tid);
        let Some(((_, on, since), cpu)) = early.map(std::mem::take).zip(cpu) else {
            return;
        };
        if is_complete {
            self.differ(cpu, on, time.since(since));
        } else if on != cpu && goes_on(on, since) {
            let birth = Birth {
                tid,
                since,
                cpu,
                forked: time,
            };
            self.births.insert(on, birth);
        }
    }

    /// The pair of CPUs whose clocks disagree most, among the pairs with at least `PROVING_ORDERS` impossible orders;
    /// `None` if there is no such pair.
    pub fn finish(&self) -> Option<ClockDisagreement> {
        let all = self.orders.iter();
        let proved = all.filter(|(_, orders)| orders.count >= PROVING_ORDERS);
        let impossible_orders = proved.clone().map(|(_, orders)| orders.count).sum();
        let (cpus, worst) = proved.max_by_key(|(_, orders)| orders.by)?;
        Some(ClockDisagreement {
            cpus: *cpus,
            by: worst.by,
            impossible_orders,
        })
    }
}

#[cfg(test)]
#[path = "tests/clock_check.rs"]
mod tests;
