//! Counts how many tasks of the build run at once, and how many could run at once.

use std::collections::BTreeMap;

use tr_format::event::Ktime;

/// The load of a build from a moment on: how many tasks run, and how many run or wait for a CPU (the demand). Waiting
/// tasks count only as far as the demand does not exceed the build's CPUs, because more could not run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub from: Ktime,
    pub running: usize,
    pub demand: usize,
}

/// The number of entries at which the list of a build's loads becomes coarser. The limit bounds the memory: without a
/// bound, the list took 1.2 GB for a simulated build of 10^8 events.
const MOST_ENTRIES: usize = 1_000_000;
/// If a list of loads is too long, equal loads within short periods are grouped, and their order is lost.
/// `SHORTEST_PERIOD` and
/// `LONGEST_PERIOD` are the shortest and the longest such period in ns. The values are guesses; all sums are the same
/// with any values.
const SHORTEST_PERIOD: u64 = 1_000_000;
const LONGEST_PERIOD: u64 = SHORTEST_PERIOD << 20;

/// Collects how many tasks run and wait for a CPU, in the order of time. While the CPUs are busy, most switches do
/// not change these numbers, so the list is much shorter than the timeline. If the list becomes too long, equal
/// loads within short times are grouped. All sums stay the same then.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    list: Vec<Load>,
    /// The last moment at which the number of running or waiting tasks changed.
    from: Ktime,
    /// The number of CPUs of the build, which limits the demand.
    cpus: usize,
    /// The number of entries at which the list of loads becomes coarser.
    most: usize,
    /// The time in ns within which equal loads are grouped to make the list shorter; 0 as long as none are grouped.
    length: u64,
}

impl Loads {
    pub fn new(cpus: u64) -> Loads {
        Loads {
            list: Vec::new(),
            from: Ktime(0),
            cpus: usize::try_from(cpus).unwrap_or(usize::MAX),
            most: MOST_ENTRIES,
            length: 0,
        }
    }

    /// Ends the load that has lasted up to the moment `at`, at which tasks change their states. Until then,
    /// `running` tasks ran, and `demand` tasks ran or waited for a CPU.
    pub fn begin(&mut self, at: Ktime, running: usize, demand: usize) {
        if at > self.from {
            self.keep(running, demand);
            self.from = at;
        }
    }

    /// Appends a load, which is a number of running and waiting tasks, to the list if this load differs from the last
    /// one in the list.
    fn keep(&mut self, running: usize, demand: usize) {
        let demand = demand.min(self.cpus).max(running);
        let before = self.list.last();
        if before.map_or((0, 0), |last| (last.running, last.demand)) != (running, demand) {
            let from = self.from;
            self.list.push(Load {
                from,
                running,
                demand,
            });
            if self.list.len() > self.most {
                self.coarsen();
            }
        }
    }

    /// Makes the list of loads at most half as long as its limit by grouping equal loads within longer and longer
    /// times, but not within more than about [`LONGEST_PERIOD`] ns.
    fn coarsen(&mut self) {
        while self.list.len() > self.most / 2 && self.length < LONGEST_PERIOD {
            self.length = (self.length * 2).max(SHORTEST_PERIOD);
            self.list = coarser(&self.list, self.length);
        }
        self.most = self.most.max(self.list.len().saturating_mul(2));
    }

    /// Completes the list of loads. At its end, `running` tasks run, and `demand` tasks run or wait for a
    /// CPU.
    pub fn end(mut self, running: usize, demand: usize) -> Vec<Load> {
        self.keep(running, demand);
        self.list
    }
}

/// Returns a shorter list of loads: within each `length` ns, equal loads are grouped into one. The last load of a
/// list has no end and stays as it is.
fn coarser(list: &[Load], length: u64) -> Vec<Load> {
    let mut all: Vec<Load> = Vec::new();
    // How many ns each load has lasted since the moment `from`. A load is two numbers: the tasks that ran, and the
    // tasks that ran or waited for a CPU (the demand).
    let mut times: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let mut from = list.first().map_or(Ktime(0), |first| first.from);
    let mut flush = |times: &mut BTreeMap<(usize, usize), u64>, from: &mut Ktime| {
        for ((running, demand), ns) in std::mem::take(times) {
            let load = Load {
                from: *from,
                running,
                demand,
            };
            let same = |last: &Load| (last.running, last.demand) == (running, demand);
            if !all.last().is_some_and(same) {
                all.push(load);
            }
            *from = Ktime(from.0.saturating_add(ns));
        }
    };
    for (load, next) in list.iter().zip(list.iter().skip(1)) {
        if load.from.since(from) >= length {
            flush(&mut times, &mut from);
        }
        *times.entry((load.running, load.demand)).or_default() += next.from.since(load.from);
    }
    flush(&mut times, &mut from);
    all.extend(list.last());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time in ns for which each load of a list lasts in total, if the list ends at the moment `end`.
    fn sums(list: &[Load], end: u64) -> BTreeMap<(usize, usize), u64> {
        let mut sums = BTreeMap::new();
        let ends = list.iter().skip(1).map(|next| next.from.0).chain([end]);
        for (load, end) in list.iter().zip(ends) {
            *sums.entry((load.running, load.demand)).or_default() += end - load.from.0;
        }
        sums
    }

    fn loads(most: usize) -> Vec<Load> {
        let mut loads = Loads {
            most,
            ..Loads::new(4)
        };
        for at in 0..10_000 {
            let (running, demand) = (at % 5 % 3, at % 7);
            loads.begin(Ktime(1 + at as u64 * 1000), running, demand);
        }
        loads.end(0, 0)
    }

    #[test]
    fn a_coarse_list_has_the_sums_of_a_fine_one() {
        let (fine, coarse) = (loads(usize::MAX), loads(1000));
        assert!(
            fine.len() > 5000 && coarse.len() <= 1000,
            "{} {}",
            fine.len(),
            coarse.len()
        );
        let end = 20_000_000;
        assert_eq!(sums(&fine, end), sums(&coarse, end));
        assert!(coarse.iter().is_sorted_by_key(|load| load.from));
        assert!(fine.iter().all(|load| load.demand <= 4));
    }
}
