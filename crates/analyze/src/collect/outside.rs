//! Tasks that are not recorded, beside those that are: their names, and the time that they had a CPU.
//!
//! The programs tell such a task by name when it meets a recorded one, and they record the switches
//! between such tasks of a CPU in whose run queue a recorded task waits. So while one waits there,
//! every task that has that CPU is known.

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{CpuId, Ktime, Outsider, Tgid, Tid};

/// The most names that an analysis keeps, with some 80 bytes for each.
const MOST: usize = 1 << 20;

/// A time in which a CPU was that of a task that is not recorded. The end is certain. Before it,
/// further such tasks may have had the CPU, unless a recorded one waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The CPU's switch before, as far as it is recorded.
    pub from: Ktime,
    pub to: Ktime,
    pub tid: Tid,
}

/// Tasks that are not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// The names of each tid, in the order of time.
    names: HashMap<Tid, Vec<(Ktime, Outsider)>>,
    kept: usize,
    /// With a timeline: of each CPU, in the order of time.
    pub slices: BTreeMap<CpuId, Vec<Slice>>,
}

impl Outside {
    /// A task is told by name.
    pub(crate) fn name(&mut self, time: Ktime, task: &Outsider) {
        if self.kept < MOST {
            self.kept += 1;
            self.names.entry(task.tid).or_default().push((time, *task));
        }
    }

    /// A CPU switches away from such a task; `since`: its switch before.
    pub(crate) fn leaves(&mut self, cpu: CpuId, since: Ktime, to: Ktime, tid: Tid) {
        if self.is_told() && tid != Tid::IDLE {
            let slice = Slice {
                from: since,
                to,
                tid,
            };
            self.slices.entry(cpu).or_default().push(slice);
        }
    }

    /// The task that had the tid at that time, if it is told.
    pub fn at(&self, tid: Tid, time: Ktime) -> Option<&Outsider> {
        let names = self.names.get(&tid)?;
        let after = names.partition_point(|(told, _)| *told <= time);
        names.get(after.checked_sub(1)?).map(|(_, task)| task)
    }

    /// The task of that tid, if it is one and the same, of one name, in the whole recording.
    pub fn only(&self, tid: Tid) -> Option<&Outsider> {
        let (first, others) = self.names.get(&tid)?.split_first()?;
        let same = |(_, it): &(Ktime, Outsider)| it == &first.1;
        others.iter().all(same).then_some(&first.1)
    }

    /// The first told task of a process.
    pub fn of_process(&self, tgid: Tgid) -> Option<&Outsider> {
        let all = self.names.values().flatten();
        let of = all.filter(|(_, task)| task.tgid == tgid);
        of.min_by_key(|(time, task)| (*time, task.tid))
            .map(|(_, task)| task)
    }

    /// A task of that tid has been told.
    pub(crate) fn knows(&self, tid: Tid) -> bool {
        self.names.contains_key(&tid)
    }

    /// The recording has such names, and all of them are kept.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_told() && self.kept < MOST
    }

    /// The recording has such names: a CPU for which a recorded task waits has an event for each
    /// switch.
    pub fn is_told(&self) -> bool {
        !self.names.is_empty()
    }
}
