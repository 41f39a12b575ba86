//! Joins events about unrecorded tasks, so that the trace needs fewer of them: their CPU times, and the names of their
//! threads.
//!
//! While a recorded task waits for a CPU, unrecorded tasks may have it. For each such wait, the BPF programs send the
//! CPU times of the unrecorded tasks, summed by name. Successive records of a CPU are joined into one event if each
//! name has nearly the same share of the CPU in all of them. If the load of the other tasks is steady, this leaves a
//! tenth of the events.

use std::collections::{BTreeMap, HashMap};

use tr_bpf::wire;
use tr_format::event::{
    Comm, CpuId, Ktime, LifeEvent, LifeKind, Others, Outsider, Share, Tgid, Threads,
};

/// Two shares of a CPU count as nearly the same if they differ by at most the whole time divided by this number.
const NEARLY_EQUAL: u128 = 32;
/// The smallest shares of a CPU are stored without their names. Together these shares are at most the whole time
/// divided by this number.
const SMALL_SHARES: u64 = 128;

/// How long unrecorded tasks had a CPU in one or more waits of recorded tasks, in ns.
#[derive(Clone, Debug)]
struct Sums {
    since: u64,
    until: u64,
    rest: u64,
    switches: u64,
    shares: Vec<wire::Share>,
}

impl Sums {
    fn of(record: &wire::Others) -> Sums {
        let shares = record.shares.iter().filter(|share| share.ns > 0);
        Sums {
            since: record.since,
            until: record.head.time,
            rest: record.rest,
            switches: record.switches,
            shares: shares.copied().collect(),
        }
    }

    fn whole(&self) -> u64 {
        let all = self.shares.iter().map(|share| share.ns);
        all.fold(self.rest, u64::saturating_add)
    }

    /// The time in ns for which the unrecorded tasks with the name of `task` had the CPU, according to these sums.
    fn ns_of(&self, task: &wire::Share) -> u64 {
        let named = self.shares.iter().filter(|share| share.comm == task.comm);
        named.fold(0, |sum, share| sum.saturating_add(share.ns))
    }

    /// Whether the unrecorded tasks of each name have nearly the same share of the CPU in these sums as in `other`.
    fn is_like(&self, other: &Sums) -> bool {
        let wholes = [self, other].map(|sums| u128::from(sums.whole()));
        let near = |ns: u64, of_other: u64| {
            let [mine, theirs] = [u128::from(ns) * wholes[1], u128::from(of_other) * wholes[0]];
            mine.abs_diff(theirs) * NEARLY_EQUAL <= wholes[0] * wholes[1]
        };
        let mut tasks = self.shares.iter().chain(&other.shares);
        near(self.rest, other.rest) && tasks.all(|task| near(self.ns_of(task), other.ns_of(task)))
    }

    /// Adds the CPU times of unrecorded tasks in a later wait of a recorded task to these sums.
    fn add(&mut self, later: &Sums) {
        self.until = later.until;
        self.rest = self.rest.saturating_add(later.rest);
        self.switches = self.switches.saturating_add(later.switches);
        for share in &later.shares {
            let mut known = self.shares.iter_mut();
            if let Some(known) = known.find(|known| is_same(known, share)) {
                known.ns = known.ns.saturating_add(share.ns);
            } else if self.shares.len() < wire::OTHERS_SHARES {
                self.shares.push(*share);
            } else {
                self.rest = self.rest.saturating_add(share.ns);
            }
        }
    }

    /// Makes the event with these sums over unrecorded tasks. The smallest shares of the CPU are added to the field
    /// `rest`, which has the CPU time of tasks without names.
    fn event(mut self, cpu: u32) -> LifeEvent {
        let whole = self.whole();
        let mut small = whole / SMALL_SHARES;
        let mut sizes: Vec<u64> = self.shares.iter().map(|share| share.ns).collect();
        sizes.sort_unstable();
        let fits = |ns: &&u64| {
            small
                .checked_sub(**ns)
                .inspect(|left| small = *left)
                .is_some()
        };
        let least = sizes.iter().take_while(fits).last().copied().unwrap_or(0);
        let rest = &mut self.rest;
        self.shares.retain(|share| {
            let stays = share.ns > least;
            if !stays {
                *rest = rest.saturating_add(share.ns);
            }
            stays
        });
        let us = |ns: u64| ns.saturating_add(500) / 1000;
        let share = |share: &wire::Share| Share {
            tgid: Tgid(share.tgid),
            comm: Comm::new(&share.comm),
            us: us(share.ns),
        };
        let span = self.until.saturating_sub(self.since);
        let others = Others {
            between_us: us(span.saturating_sub(whole)),
            switches: self.switches,
            rest_us: us(self.rest),
            shares: self.shares.iter().map(share).collect(),
        };
        LifeEvent {
            time: Ktime(self.until),
            cpu: u16::try_from(cpu).ok().map(CpuId),
            kind: LifeKind::Others(Box::new(others)),
        }
    }
}

/// Whether two shares of a CPU belong to the same process and name.
fn is_same(one: &wire::Share, other: &wire::Share) -> bool {
    (one.tgid, one.comm) == (other.tgid, other.comm)
}

/// For each CPU, the CPU times of unrecorded tasks that no event contains yet. The next events that the recorder writes
/// contain them.
#[derive(Debug, Default)]
pub struct Joined(BTreeMap<u32, Sums>);

impl Joined {
    /// Takes the CPU times of unrecorded tasks in one wait of a recorded task. They are added to the sums of the same
    /// CPU if the shares of the CPU are nearly the same. Otherwise they begin new sums, and the event with the former
    /// sums is returned.
    pub fn take(&mut self, record: &wire::Others) -> Option<LifeEvent> {
        let (cpu, sums) = (record.head.cpu, Sums::of(record));
        match self.0.get_mut(&cpu) {
            Some(last) if last.is_like(&sums) => {
                last.add(&sums);
                None
            }
            _ => self.0.insert(cpu, sums).map(|last| last.event(cpu)),
        }
    }

    /// The events with the last sums of the CPU times of unrecorded tasks, one event for each CPU.
    pub fn finish(self) -> impl Iterator<Item = LifeEvent> {
        self.0.into_iter().map(|(cpu, sums)| sums.event(cpu))
    }
}

/// The names of unrecorded threads, for processes in which several threads have the same name. One event names all
/// threads of a process that share a name.
#[derive(Debug, Default)]
pub struct NamedThreads(HashMap<(Tgid, Comm), (Ktime, Threads)>);

impl NamedThreads {
    /// Adds an unrecorded thread to the list of threads with the same process and name, which one later event names
    /// together. Returns false if the thread needs an event of its own. This is so for the first thread with a name,
    /// for a thread that was started after that first one was named, and if the list is full.
    pub fn take(&mut self, time: Ktime, task: &Outsider) -> bool {
        let key = (task.tgid, task.comm);
        let Some((first, threads)) = self.0.get_mut(&key) else {
            let threads = Threads {
                tgid: task.tgid,
                comm: task.comm,
                tids: Vec::new(),
            };
            self.0.insert(key, (time, threads));
            return false;
        };
        if task.start_time > *first || threads.tids.len() >= Threads::MOST {
            return false;
        }
        threads.tids.push(task.tid);
        true
    }

    /// The events that name the unrecorded threads for which [`NamedThreads::take`] has returned true.
    pub fn finish(self) -> impl Iterator<Item = LifeEvent> {
        let mut all: Vec<_> = self.0.into_values().collect();
        all.retain(|(_, threads)| !threads.tids.is_empty());
        all.sort_unstable_by_key(|(time, threads)| (*time, threads.tgid));
        all.into_iter().map(|(time, threads)| LifeEvent {
            time,
            cpu: None,
            kind: LifeKind::Threads(Box::new(threads)),
        })
    }
}

#[cfg(test)]
#[path = "tests/others.rs"]
mod tests;
