//! Collects the names of unrecorded tasks that met recorded tasks, and the times in which these unrecorded tasks had a
//! CPU.
//!
//! An unrecorded task meets a recorded task if it wakes the recorded task, or has a CPU for which the recorded task
//! waits. The BPF programs then record the name of the unrecorded task. While a recorded task waits in the run queue of
//! a CPU, the BPF programs also sum up how long unrecorded tasks have this CPU, by process and name. (Before format
//! 3.10 they recorded each switch instead.) So every task that has a CPU while a recorded task waits for it is known.

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{CpuId, Ktime, Others, Outsider, Tgid, Threads, Tid};

/// The largest number of names of unrecorded tasks that an analysis keeps. Each takes about 80 bytes.
const MOST_NAMES: usize = 1 << 20;

/// A time in which a CPU ran unrecorded tasks. Not every switch between unrecorded tasks is recorded, so several of
/// them may have had the CPU in this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The time of the last recorded switch of the CPU before the unrecorded task left the CPU.
    pub from: Ktime,
    pub to: Ktime,
    pub tid: Tid,
    /// Whether the recording ends in this slice. If it does, `tid` is the first unrecorded task that had the CPU in the
    /// slice; otherwise `tid` is the last one.
    pub is_open: bool,
}

/// A sum of times in ns: how long unrecorded tasks had a CPU during one or more waits of recorded tasks for that
/// CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    pub from: Ktime,
    pub to: Ktime,
    pub others: Box<Others>,
}

/// The tasks that are not recorded but met recorded tasks: such a task woke a recorded task, or had a CPU for which a
/// recorded task waited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// The names of the unrecorded tasks that had each tid, in the order of time.
    names: HashMap<Tid, Vec<(Ktime, Outsider)>>,
    kept: usize,
    /// For each CPU, the times in which unrecorded tasks had the CPU, in order. The table is empty if no timeline is
    /// kept.
    pub slices: BTreeMap<CpuId, Vec<Slice>>,
    /// For each CPU, the sums of the times for which unrecorded tasks had the CPU, in the order of time. The sums of a
    /// CPU do not overlap. The table is empty if no timeline is kept.
    pub sums: BTreeMap<CpuId, Vec<Sum>>,
}

impl Outside {
    /// Notes the name that an unrecorded task has from a time on.
    pub(crate) fn name(&mut self, time: Ktime, task: &Outsider) {
        if self.kept < MOST_NAMES {
            self.kept += 1;
            self.names.entry(task.tid).or_default().push((time, *task));
        }
    }

    /// Notes the name that several unrecorded threads of a process have from a time on.
    pub(crate) fn threads(&mut self, time: Ktime, threads: &Threads) {
        for tid in &threads.tids {
            let task = Outsider {
                tid: *tid,
                tgid: threads.tgid,
                comm: threads.comm,
                ..Outsider::default()
            };
            self.name(time, &task);
        }
    }

    /// Notes how long unrecorded tasks had a CPU, up to the time `to`, while recorded tasks waited for it.
    pub(crate) fn sum(&mut self, cpu: CpuId, to: Ktime, others: &Others) {
        let sums = self.sums.entry(cpu).or_default();
        let before = sums.last().map_or(Ktime(0), |last| last.to);
        let from = Ktime(to.0.saturating_sub(others.span())).max(before);
        if from < to {
            sums.push(Sum {
                from,
                to,
                others: Box::new(others.clone()),
            });
        }
    }

    /// Notes that a CPU switches away from the unrecorded task `tid`. `since` is the time of the CPU's previous
    /// recorded switch.
    pub(crate) fn leaves(&mut self, cpu: CpuId, since: Ktime, to: Ktime, tid: Tid) {
        self.put(
            cpu,
            Slice {
                from: since,
                to,
                tid,
                is_open: false,
            },
        );
    }

    /// Notes that unrecorded tasks have a CPU at the end of the recording. `since` is the time of the CPU's last
    /// recorded switch, and `tid` is the task to which it switched.
    pub(crate) fn goes_on(&mut self, cpu: CpuId, since: Ktime, end: Ktime, tid: Tid) {
        self.put(
            cpu,
            Slice {
                from: since,
                to: end,
                tid,
                is_open: true,
            },
        );
    }

    fn put(&mut self, cpu: CpuId, slice: Slice) {
        if self.has_names() && slice.tid != Tid::IDLE {
            self.slices.entry(cpu).or_default().push(slice);
        }
    }

    /// The unrecorded task that had a tid at a time, if its name is recorded.
    pub fn at(&self, tid: Tid, time: Ktime) -> Option<&Outsider> {
        let names = self.names.get(&tid)?;
        let after = names.partition_point(|(since, _)| *since <= time);
        names.get(after.checked_sub(1)?).map(|(_, task)| task)
    }

    /// The unrecorded task with this tid. `None` if the recording names no such task, if several tasks had the tid, or
    /// if the task had several names.
    pub fn only(&self, tid: Tid) -> Option<&Outsider> {
        let (first, others) = self.names.get(&tid)?.split_first()?;
        let same = |(_, other): &(Ktime, Outsider)| other == &first.1;
        others.iter().all(same).then_some(&first.1)
    }

    /// The first unrecorded task of a process whose name is recorded.
    pub fn of_process(&self, tgid: Tgid) -> Option<&Outsider> {
        let all = self.names.values().flatten();
        let of = all.filter(|(_, task)| task.tgid == tgid);
        of.min_by_key(|(time, task)| (*time, task.tid))
            .map(|(_, task)| task)
    }

    /// Whether the name of an unrecorded task with this tid is in the recording.
    pub(crate) fn knows(&self, tid: Tid) -> bool {
        self.names.contains_key(&tid)
    }

    /// Whether the recording has names of unrecorded tasks, and all of them are kept.
    pub(crate) fn is_complete(&self) -> bool {
        self.has_names() && self.kept < MOST_NAMES
    }

    /// Whether an unrecorded task is one of the tasks whose CPU times a sum contains. The task is the one that had
    /// `tid` at `time`. If its name is unknown, the answer is yes.
    pub(crate) fn has_share(&self, sum: &Sum, tid: Tid, time: Ktime) -> bool {
        self.at(tid, time).is_none_or(|task| {
            let mut shares = sum.others.shares.iter();
            shares.any(|share| share.comm == task.comm && [0, task.tgid.0].contains(&share.tgid.0))
        })
    }

    /// Whether the recording has names of unrecorded tasks. Such a recording also shows which tasks had a CPU while a
    /// recorded task waited for it: by each switch of the CPU, or by sums of the times that unrecorded tasks had it.
    pub fn has_names(&self) -> bool {
        !self.names.is_empty()
    }
}
