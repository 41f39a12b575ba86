//! Keeps accounts of what really happens on the simulated machine. From these, the truth about a run is made, with
//! which an analysis of the run's recording is compared.

use std::collections::HashMap;

use tr_format::event::{Ktime, Tgid, Tid};

use crate::machine::Machine;
use crate::sums::Sums;
use crate::task::{Place, IDLE_TASK};
use crate::truth::{Causes, ExecTruth, ProcessTruth, TaskTruth, Times, Truth};

/// The accounts of the simulated machine: of tasks, processes and CPUs. Times are in ns, and only
/// times inside the recorded span count.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// The truth about each simulated task that ended or lives at the end of the run, with its process's serial number.
    tasks: Vec<(u64, TaskTruth)>,
    /// The truth about each simulated process that ended or lives at the end of the run, with its own and its
    /// parent's serial number.
    processes: Vec<(u64, Option<u64>, ProcessTruth)>,
    /// The number of recorded tasks that are on simulated CPUs now. The number has been the same since
    /// `running_since`.
    running: usize,
    running_since: u64,
    concurrency: Vec<u64>,
    pub(crate) idle: u64,
    pub(crate) others: u64,
    pub(crate) execs: u64,
    pub(crate) forks: u64,
    pub(crate) exits: u64,
}

impl Accounts {
    pub(crate) fn new(now: u64) -> Accounts {
        Accounts {
            tasks: Vec::new(),
            processes: Vec::new(),
            running: 0,
            running_since: now,
            concurrency: Vec::new(),
            idle: 0,
            others: 0,
            execs: 0,
            forks: 0,
            exits: 0,
        }
    }
}

impl Machine {
    /// The sums of the times of all threads that the simulated process has had, up to `stamp`.
    pub(crate) fn process_times(&mut self, process: u32, stamp: u64) -> Times {
        let at = &self.processes[process];
        let mut times = Times::from_array(at.sums.times);
        for thread in &at.threads {
            let task = &mut self.tasks[*thread];
            task.settle(stamp, self.start, self.end);
            times.add(&Times::from_array(task.sums.times));
        }
        times
    }

    /// Adds the time that the simulated CPU `c` has spent since its last switch, until `stamp`, to one of two sums over
    /// all CPUs: the idle time if `prev` is [`IDLE_TASK`], or the time of others if `prev` is a task that is not
    /// recorded. The time of a recorded task is counted where its state changes.
    #[inline]
    pub(crate) fn count_cpu(&mut self, c: usize, prev: u32, stamp: u64) {
        let length = self.clip(self.cpus[c].since, stamp);
        if prev == IDLE_TASK {
            self.accounts.idle += length;
        } else if !self.tasks[prev].followed {
            self.accounts.others += length;
        }
        self.cpus[c].since = stamp;
    }

    /// Notes that from the time `stamp` on, `more` recorded tasks are on simulated CPUs than
    /// before.
    #[inline]
    pub(crate) fn count_running(&mut self, stamp: u64, more: isize) {
        let length = self.clip(self.accounts.running_since, stamp);
        let at = &mut self.accounts;
        at.running_since = stamp;
        if length > 0 {
            if at.concurrency.len() <= at.running {
                at.concurrency.resize(at.running + 1, 0);
            }
            at.concurrency[at.running] += length;
        }
        at.running = at.running.wrapping_add_signed(more);
    }

    /// Stores the truth about a simulated task that ended at `stamp`, or still lives at the end of
    /// the recorded span.
    pub(crate) fn record_task(&mut self, slot: u32, stamp: u64) {
        let (start, end) = (self.start, self.end);
        let task = &mut self.tasks[slot];
        let dead = task.place == Place::Dead;
        if !task.followed || task.born >= end || (dead && stamp < start) {
            return;
        }
        if !dead && !matches!(task.place, Place::OnCpu(_)) {
            let off = end.saturating_sub(task.switched.max(start));
            task.max_off_cpu = task.max_off_cpu.max(off);
        }
        let alive = !dead || stamp > end;
        let doubt = !dead && task.doubt && task.switched < end;
        let truth = TaskTruth {
            undecided: if doubt {
                end - task.switched.max(start)
            } else {
                task.undecided
            },
            tid: Tid(task.recorded_tid().unwrap_or(task.tid)),
            first_tid: Tid(task.first_tid),
            ns_tid: Tid(task.ns_tid),
            process: 0,
            comm: task.comm,
            start: Ktime(task.born.max(start)),
            started_before: task.born < start,
            end: Ktime(if alive { end } else { stamp }),
            alive,
            times: Times::from_array(task.sums.times),
            causes: Causes::from_array(task.sums.causes),
            voluntary: task.sums.voluntary,
            involuntary: task.sums.involuntary,
            migrations: task.migrations,
            max_off_cpu: task.max_off_cpu,
            status: task.exit_seen.then_some(task.exit_code),
            kernel: (task.run_time, task.nvcsw, task.nivcsw),
        };
        let serial = self.processes[task.process].serial;
        self.accounts.tasks.push((serial, truth));
    }

    /// Stores the truth about a simulated process that ended at `stamp`, or still lives at the end
    /// of the recorded span.
    pub(crate) fn record_process(&mut self, slot: u32, stamp: u64) {
        let (start, end) = (self.start, self.end);
        let at = &self.processes[slot];
        let dead = at.threads.is_empty();
        if !at.followed || at.born >= end || (dead && stamp < start) {
            return;
        }
        let alive = !dead || stamp > end;
        let upto = if alive { end } else { stamp };
        let times = self.process_times(slot, upto);
        let at = &mut self.processes[slot];
        at.end_program(upto, times);
        let mut execs = std::mem::take(&mut at.execs);
        clip_execs(&mut execs, start);
        let truth = ProcessTruth {
            pid: Tgid(at.tgid),
            parent: None,
            ppid: at.forked_by.map(|(_, tgid)| Tgid(tgid)),
            cgroup: at.cgroup,
            kthread: at.kthread,
            start: Ktime(at.born.max(start)),
            started_before: at.born < start,
            end: Ktime(upto),
            alive,
            status: at.status,
            threads: Vec::new(),
            times,
            causes: Causes::from_array(at.sums.causes),
            voluntary: at.sums.voluntary,
            involuntary: at.sums.involuntary,
            faults: at.faults,
            max_rss: at.max_rss,
            execs,
        };
        let parent = at.forked_by.map(|(serial, _)| serial);
        self.accounts.processes.push((at.serial, parent, truth));
    }

    /// The truth about the simulated run so far, with which an analysis is compared. If the run has not reached the
    /// end of the recorded span, each task counts as if it stayed in its present state until that end.
    pub fn into_truth(mut self) -> Truth {
        let end = self.end;
        self.count_running(end, 0);
        for c in 0..self.cpus.len() {
            self.count_cpu(c, self.cpus[c].cur, end);
        }
        for slot in 0..self.tasks.len() {
            let task = &mut self.tasks[slot];
            if task.place == Place::Dead {
                continue;
            }
            task.settle(end.max(task.since), self.start, end);
            if matches!(task.place, Place::OnCpu(_)) {
                task.run_time += end.saturating_sub(task.switched);
            }
            self.record_task(slot, end);
        }
        for slot in 0..self.processes.len() {
            let at = &mut self.processes[slot];
            if at.threads.is_empty() {
                continue;
            }
            for thread in &at.threads {
                // The times of living threads stay 0 here, because `record_process` adds them. Only the other sums of
                // the threads are added.
                let times = [0; 4];
                let sums = self.tasks[*thread].sums;
                at.sums.add(&Sums { times, ..sums });
            }
            self.record_process(slot, end);
        }
        self.link()
    }

    /// Sorts the truth about simulated processes and threads, and links each thread with its
    /// process and each process with its parent.
    fn link(self) -> Truth {
        let accounts = self.accounts;
        let mut processes = accounts.processes;
        processes.sort_by_key(|(serial, _, process)| (process.start, process.pid, *serial));
        let serials = processes.iter().map(|(serial, _, _)| *serial);
        let index: HashMap<u64, usize> = serials.zip(0..).collect();
        let in_process = |(serial, mut task): (u64, TaskTruth)| {
            task.process = *index.get(&serial)?;
            Some(task)
        };
        let mut tasks: Vec<_> = accounts.tasks.into_iter().filter_map(in_process).collect();
        tasks.sort_by_key(|task| (task.process, task.start, task.tid));
        let with_parent = |(_, parent, mut process): (u64, Option<u64>, ProcessTruth)| {
            process.parent = parent.and_then(|parent| index.get(&parent).copied());
            process
        };
        let mut list: Vec<_> = processes.into_iter().map(with_parent).collect();
        for (i, task) in tasks.iter().enumerate() {
            list[task.process].threads.push(i);
        }
        Truth {
            start: Ktime(self.start),
            end: Ktime(self.end),
            cpus: self.cfg.cpus,
            processes: list,
            tasks,
            concurrency: accounts.concurrency,
            idle: accounts.idle,
            others: accounts.others,
            status: self.root_status,
            execs: accounts.execs,
            forks: accounts.forks,
            exits: accounts.exits,
        }
    }
}

/// Removes those programs of a simulated process that ended before the recorded span. A program that began before the
/// span and ended in it gets the start of the span as its own start.
fn clip_execs(execs: &mut Vec<ExecTruth>, start: u64) {
    execs.retain(|exec| exec.end.0 >= start);
    for exec in execs {
        if exec.start.0 < start {
            exec.start = Ktime(start);
            exec.started_before = true;
        }
    }
}
