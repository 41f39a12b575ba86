//! Checks that the clocks of the CPUs agree.
//!
//! Linux stamps the events of all CPUs from one timekeeper, so times are checked and
//! never corrected. Two rules hold whatever the clocks show:
//! - a task runs on one CPU at a time: if two of its runs overlap, the clocks differ by the
//!   overlap at least, whichever run came first;
//! - a task is forked before it is switched in for the first time. The tid alone does not prove that
//!   it is the same task: a task that is not recorded may have had it before. Two facts do: such tasks
//!   are told by name, and this one is not; or its run on one CPU began before the fork and ended after
//!   it, without another switch of that CPU in between.
//!
//! A waking that follows the switch-in of its task proves nothing: a signal keeps a task
//! runnable that was switched out as asleep, and a running task is woken on its way to sleep.
//!
//! One impossible order proves nothing: a guest's kernel may not report every switch. Two
//! of one pair of CPUs do.

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{CpuId, Ktime, Tid};

use crate::model::ClockDisagreement;

/// A pair of CPUs with so many impossible orders has clocks that disagree.
const ENOUGH: u64 = 2;
/// Most pairs of CPUs that are looked after.
const MOST: usize = 1 << 12;
/// Places for first switch-ins; a later one takes the place of an earlier one.
const UNBORN: usize = 1 << 10;

/// A task's switch-in on one CPU while it runs on another one.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    tid: Tid,
    /// The start of its run on the other CPU.
    first: Ktime,
    cpu: CpuId,
    since: Ktime,
    /// The switch-out of that CPU, if it came first.
    until: Option<Ktime>,
}

/// A task that is forked on one CPU while one of its tid runs on another one.
#[derive(Clone, Copy, Debug)]
struct Birth {
    tid: Tid,
    /// The start of the run.
    since: Ktime,
    cpu: CpuId,
    forked: Ktime,
}

#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    count: u64,
    /// The largest difference that they prove, ns.
    by: u64,
}

/// Counts impossible orders of events by pair of CPUs.
#[derive(Debug, Default)]
pub struct ClockCheck {
    /// By pair of CPUs, the lower one first.
    orders: BTreeMap<(CpuId, CpuId), Orders>,
    /// By the CPU that ran the task before the switch-in.
    overlaps: HashMap<CpuId, Overlap>,
    /// By the CPU that runs the task.
    births: HashMap<CpuId, Birth>,
    /// The last switch-ins of tasks that nothing has announced, by tid.
    unborn: Vec<(Tid, CpuId, Ktime)>,
}

impl ClockCheck {
    /// Two events prove that the clocks of two CPUs differ by so much at least.
    fn differ(&mut self, one: CpuId, other: CpuId, by: u64) {
        let pair = (one.min(other), one.max(other));
        let room = self.orders.len() < MOST || self.orders.contains_key(&pair);
        if one != other && by > 0 && room {
            let orders = self.orders.entry(pair).or_default();
            orders.count += 1;
            orders.by = orders.by.max(by);
        }
    }

    /// `tid` is switched in on `cpu` while it is on another one since `first`, the last
    /// switch of that.
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

    /// Whether the next switch of a CPU may prove something.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        !self.overlaps.is_empty() || !self.births.is_empty()
    }

    /// `cpu` switches away from `prev`. `goes_on` tells whether a CPU has had no switch since the one at
    /// that time, as far as is known, and lost none.
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
        // The next switch of the other CPU ends the task's run there, or is not reported.
        self.overlaps.retain(|_, overlap| {
            if overlap.cpu != cpu || overlap.until.is_some() {
                return true;
            }
            overlap.until = Some(time);
            prev == overlap.tid && goes_on(cpu, overlap.since)
        });
    }

    /// A task that nothing has announced is switched in.
    #[inline]
    pub fn unborn(&mut self, tid: Tid, cpu: CpuId, time: Ktime) {
        if self.unborn.is_empty() {
            self.unborn = vec![(Tid::IDLE, cpu, time); UNBORN];
        }
        if let Some(place) = self.unborn.get_mut(tid.0 as usize % UNBORN) {
            *place = (tid, cpu, time);
        }
    }

    /// `tid` is forked on `cpu`. `told`: a task that had the tid before would be known. `goes_on` as above.
    pub fn fork(
        &mut self,
        tid: Tid,
        told: bool,
        cpu: Option<CpuId>,
        time: Ktime,
        goes_on: impl Fn(CpuId, Ktime) -> bool,
    ) {
        let place = self.unborn.get_mut(tid.0 as usize % UNBORN);
        let early = place.filter(|(early, ..)| *early == tid);
        let Some(((_, on, since), cpu)) = early.map(std::mem::take).zip(cpu) else {
            return;
        };
        if told {
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

    /// The pair of CPUs whose clocks disagree by most, if any do.
    pub fn finish(&self) -> Option<ClockDisagreement> {
        let all = self.orders.iter();
        let proved = all.filter(|(_, orders)| orders.count >= ENOUGH);
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
