//! From the machine's accounts to the truth.

use std::collections::HashMap;

use tr_format::event::{Ktime, Tgid, Tid};

use crate::machine::Machine;
use crate::task::{Place, IDLE};
use crate::truth::{Causes, ExecTruth, ProcessTruth, TaskTruth, Times, Truth};

impl Machine {
    /// Keeps what is to be known of a task that ended at `stamp`, or was alive
    /// at the span's end.
    pub(crate) fn record_task(&mut self, slot: u32, stamp: u64) {
        let (start, end) = (self.start, self.end);
        let task = &mut self.tasks[slot as usize];
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
        let undecided = if doubt {
            end - task.switched.max(start)
        } else {
            task.undecided
        };
        let truth = TaskTruth {
            undecided,
            tid: Tid(task.told_tid().unwrap_or(task.tid)),
            first_tid: Tid(task.first_tid),
            ns_tid: Tid(task.ns_tid),
            process: 0,
            comm: task.comm,
            start: Ktime(task.born.max(start)),
            started_before: task.born < start,
            end: Ktime(if alive { end } else { stamp }),
            alive,
            times: Times::from_array(task.times),
            causes: Causes::from_array(task.causes),
            voluntary: task.voluntary,
            involuntary: task.involuntary,
            migrations: task.migrations,
            max_off_cpu: task.max_off_cpu,
            status: task.exit_seen.then_some(task.exit_code),
            kernel: (task.run_time, task.nvcsw, task.nivcsw),
        };
        let serial = self.processes[task.process as usize].serial;
        self.dead_tasks.push((serial, truth));
    }

    /// The same for a process.
    pub(crate) fn record_process(&mut self, slot: usize, stamp: u64) {
        let (start, end) = (self.start, self.end);
        let dead = self.processes[slot].threads.is_empty();
        let at = &self.processes[slot];
        if !at.followed || at.born >= end || (dead && stamp < start) {
            return;
        }
        let alive = !dead || stamp > end;
        let upto = if alive { end } else { stamp };
        let times = self.process_times(slot, upto);
        let at = &mut self.processes[slot];
        if let Some(last) = at.execs.last_mut() {
            last.end = Ktime(upto);
            last.times = times.since(&at.span_base);
        }
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
            causes: at.causes,
            voluntary: at.voluntary,
            involuntary: at.involuntary,
            faults: at.faults,
            max_rss: at.max_rss,
            execs,
        };
        self.dead_processes
            .push((at.serial, at.forked_by.map(|(serial, _)| serial), truth));
    }

    /// The truth about the run so far; the span ends at the latest now when its
    /// end has not been reached.
    pub fn into_truth(mut self) -> Truth {
        let end = self.end;
        self.count_running(end);
        for c in 0..self.cpus.len() {
            let length = self.clip(self.cpus[c].since, end);
            match self.cpus[c].cur {
                IDLE => self.idle_time += length,
                slot if !self.tasks[slot as usize].followed => self.others_time += length,
                _ => {}
            }
        }
        for slot in 0..self.tasks.len() as u32 {
            let task = &mut self.tasks[slot as usize];
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
            if self.processes[slot].threads.is_empty() {
                continue;
            }
            for i in 0..self.processes[slot].threads.len() {
                let task = &self.tasks[self.processes[slot].threads[i] as usize];
                let causes = Causes::from_array(task.causes);
                let (voluntary, involuntary) = (task.voluntary, task.involuntary);
                let at = &mut self.processes[slot];
                at.causes.add(&causes);
                at.voluntary += voluntary;
                at.involuntary += involuntary;
            }
            self.record_process(slot, end);
        }
        self.join()
    }

    /// Processes and threads, in order and linked.
    fn join(self) -> Truth {
        let mut processes = self.dead_processes;
        processes.sort_by_key(|(serial, _, process)| (process.start, process.pid, *serial));
        let index: HashMap<u64, usize> = processes
            .iter()
            .enumerate()
            .map(|(i, (serial, _, _))| (*serial, i))
            .collect();
        let mut tasks: Vec<TaskTruth> = self
            .dead_tasks
            .into_iter()
            .filter_map(|(serial, mut task)| {
                task.process = *index.get(&serial)?;
                Some(task)
            })
            .collect();
        tasks.sort_by_key(|task| (task.process, task.start, task.tid));
        let mut list: Vec<ProcessTruth> = processes
            .into_iter()
            .map(|(_, parent, mut process)| {
                process.parent = parent.and_then(|parent| index.get(&parent).copied());
                process
            })
            .collect();
        for (i, task) in tasks.iter().enumerate() {
            list[task.process].threads.push(i);
        }
        Truth {
            start: Ktime(self.start),
            end: Ktime(self.end),
            cpus: self.cfg.cpus,
            processes: list,
            tasks,
            concurrency: self.concurrency,
            idle: self.idle_time,
            others: self.others_time,
            status: self.root_status,
            execs: self.execs,
            forks: self.forks,
            exits: self.exits,
        }
    }
}

/// Only what reaches into the span, from its start on.
fn clip_execs(execs: &mut Vec<ExecTruth>, start: u64) {
    execs.retain(|exec| exec.end.0 >= start);
    for exec in execs {
        if exec.start.0 < start {
            exec.start = Ktime(start);
            exec.started_before = true;
        }
    }
}
