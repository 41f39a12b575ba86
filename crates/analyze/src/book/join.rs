//! Joins the book of one leg of a trace to the book of all that was before.
//!
//! A leg's book opens with what a checkpoint tells ([`Book::restore`]), before it is known
//! how the leg before it ends. The checkpoint has no times, so what goes on across the
//! seam is left open there ([`First`](super::first::First)): the book before knows when it
//! began. Both are joined only when the book before ends with exactly what the leg's has
//! begun with, and nothing has come up in the leg that an older past might have changed
//! ([`super::seam`]). So what a checkpoint says can make the reading slower, but not
//! different.

use tr_format::checkpoint::Checkpoint;
use tr_format::event::Tid;

use super::seam::{Began, Seam};
use super::{push_first, Book, ProcessEntry, Task};
use crate::tasks::State;
use crate::timeline::By;

impl Book {
    /// Opens an empty book at a checkpoint, to be joined to the book of what is before it.
    /// Its span begins before the checkpoint's moment, where nothing is.
    pub fn open_leg(&mut self, checkpoint: &Checkpoint) {
        self.restore(checkpoint);
        // The book before has these.
        self.cgroups.clear();
        // Nothing of it was restored as having begun in the span.
        for task in &mut self.tasks {
            task.off_since = task.off_since.map(|_| task.since);
        }
        self.leg = Some(Box::new(Began {
            tasks: self.tasks.clone(),
            living: checkpoint.tasks.len(),
            processes: self.processes.clone(),
            cpus: self.cpus.clone(),
            crowd: self.concurrency.crowd(),
        }));
        for task in self.tasks.iter_mut().take(checkpoint.tasks.len()) {
            (task.first, task.by) = (Some(Box::default()), By::BEFORE);
        }
    }

    /// Takes the book of the leg that follows. `false`: it does not fit, and nothing has
    /// been done.
    pub fn join(&mut self, mut leg: Book) -> bool {
        let Some(began) = leg.leg.take() else {
            return false;
        };
        // A living task's other tid is not known to the leg.
        let mut loose = std::mem::take(&mut self.loose);
        loose.retain(|tid| {
            let task = self.by_tid.get(*tid).and_then(|ix| self.tasks.get(ix.0));
            task.is_some_and(|task| task.tid != *tid && task.state != State::Dead)
        });
        self.loose = loose;
        let Some(seam) = self.seam(&began) else {
            return false;
        };
        if !leg.is_certain(&began) {
            return false;
        }
        self.close_first(&seam, &leg);
        seam.processes.iter().for_each(|at| self.flush(*at));
        (0..leg.processes.len()).for_each(|at| leg.flush(at));
        self.join_cpus(&seam, &leg);
        self.join_names(&seam, &mut leg, &began);
        let processes = std::mem::take(&mut leg.processes);
        let mut processes = processes.into_iter();
        let known = seam.processes.iter().zip(&began.processes);
        for ((at, seed), process) in known.zip(processes.by_ref()) {
            self.join_process(&seam, *at, process, seed);
        }
        self.processes.extend(processes.map(|mut process| {
            seam.carry_process(&mut process);
            process
        }));
        let living = seam.tasks.iter().zip(leg.tasks.iter().zip(&began.tasks));
        for (ix, (task, seed)) in living {
            if let Some(mine) = self.tasks.get_mut(ix.0) {
                mine.join(&seam, task, seed);
            }
        }
        let new = leg.tasks.drain(..).skip(seam.seeds);
        self.tasks.extend(new.map(|mut task| {
            seam.carry_task(&mut task);
            task
        }));
        self.end_processes(&seam);
        self.concurrency.join(leg.concurrency);
        for (count, more) in self.counts.iter_mut().zip(leg.counts) {
            *count += more;
        }
        true
    }

    /// What went on across the seam has its whole time now.
    fn close_first(&mut self, seam: &Seam, leg: &Book) {
        let (start, end) = (self.start, leg.start);
        for (ix, later) in seam.tasks.iter().zip(&leg.tasks) {
            let Some(first) = &later.first else { continue };
            let since = self.tasks.get(ix.0).map(|task| task.since);
            if let (Some(since), Some(bucket)) = (since, first.bucket) {
                self.account(*ix, since, end, bucket);
            }
            let task = self.tasks.get_mut(ix.0);
            if let (Some(task), Some(back)) = (task, first.off_cpu) {
                task.come_back(start, back, |by| seam.by(by));
            }
        }
    }

    fn join_cpus(&mut self, seam: &Seam, leg: &Book) {
        for (cpu, later) in leg.cpus.iter() {
            let (start, end) = (self.start, leg.start);
            self.cpu_entry(cpu, |entry| {
                let (figures, more) = (&mut entry.figures, &later.figures);
                // It was idle across the seam.
                let idle = entry
                    .idle_since
                    .map_or(0, |since| end.since(since.max(start)));
                let over = later.idle_since.is_none_or(|since| since >= end);
                figures.idle += more.idle + if over { idle } else { 0 };
                figures.switches.add(&more.switches);
                figures.migrations += more.migrations;
                entry.counted |= later.counted;
                entry.switched |= later.switched;
                entry.current = later.current.and_then(|ix| seam.task(ix));
                entry.last_switch = entry.last_switch.max(later.last_switch);
                if over {
                    entry.idle_since = later.idle_since;
                }
            });
        }
    }

    /// Who has which id, and what else is known by one.
    fn join_names(&mut self, seam: &Seam, leg: &mut Book, began: &Began) {
        self.names.extend(leg.names.drain());
        self.cgroups.append(&mut leg.cgroups);
        self.loose.extend_from_slice(&leg.loose);
        let renamed = leg.renamed.take();
        self.renamed = renamed.and_then(|(time, tid, ix)| Some((time, tid, seam.task(ix)?)));
        let of_tasks = leg.tasks.iter().chain(&began.tasks).map(|task| task.tid);
        let tids: Vec<Tid> = of_tasks.chain(leg.loose.iter().copied()).collect();
        for tid in tids {
            match leg.by_tid.get(tid) {
                Some(ix) => {
                    // Else it stands for the dead, whom this book knows.
                    if let Some(ix) = seam.task(ix) {
                        self.by_tid.insert(tid, ix);
                    }
                }
                None => self.by_tid.remove(tid),
            }
        }
        for process in &leg.processes {
            let at = leg.by_tgid.get(process.pid);
            if let Some(at) = at.and_then(|at| seam.process(at)) {
                self.by_tgid.insert(process.pid, at);
            }
        }
    }

    fn join_process(&mut self, seam: &Seam, at: usize, later: ProcessEntry, seed: &ProcessEntry) {
        let Some(mine) = self.processes.get_mut(at) else {
            return;
        };
        let new = later.threads.iter().filter(|ix| ix.0 >= seam.seeds);
        mine.threads.extend(new.filter_map(|ix| seam.task(*ix)));
        (mine.live, mine.argv, mine.cgroup) = (later.live, later.argv, later.cgroup);
        mine.max_rss = later.max_rss;
        mine.forked = later.forked;
        if later.status != seed.status {
            mine.status = later.status;
        }
        let mut execs = later.execs.into_iter();
        if !seed.execs.is_empty() {
            if let (Some(last), Some(first)) = (mine.execs.last_mut(), execs.next()) {
                last.times.add(&first.times);
                (last.end, last.ended) = (first.end, first.ended);
            }
        }
        execs.for_each(|exec| push_first(&mut mine.execs, exec));
    }

    /// Processes that have ended since have the status of their leader, if nothing else
    /// has told one.
    fn end_processes(&mut self, seam: &Seam) {
        for at in &seam.processes {
            let process = self.processes.get(*at);
            let ended = process.filter(|process| process.live == 0 && process.status.is_none());
            let status = ended.and_then(|process| self.leaders_status(process));
            if let (Some(status), Some(process)) = (status, self.processes.get_mut(*at)) {
                process.status = Some(status);
            }
        }
    }
}

impl Seam {
    /// A new process of the leg goes over to the book before.
    fn carry_process(&self, process: &mut ProcessEntry) {
        process.parent = process.parent.and_then(|at| self.process(at));
        let threads = process.threads.iter_mut();
        threads.for_each(|ix| *ix = self.task(*ix).unwrap_or(*ix));
    }

    /// A new task of the leg.
    fn carry_task(&self, task: &mut Task) {
        task.process = self.process(task.process).unwrap_or(task.process);
        task.parent = task.parent.and_then(|ix| self.task(ix));
        task.vfork_child = self.maybe(task.vfork_child);
        task.by = self.by(task.by);
        if let Some((_, waker)) = &mut task.max_off_cpu {
            *waker = waker.and_then(|ix| self.task(ix));
        }
    }
}

impl Task {
    /// Goes on as what it is at the end of the leg; `seed` is as what it began that.
    fn join(&mut self, seam: &Seam, later: &Task, seed: &Task) {
        self.times.add(&later.times);
        self.paid = self.times;
        self.causes.add(&later.causes);
        self.switches.add(&later.switches);
        self.migrations += later.migrations;
        if let Some((stretch, waker)) = later.max_off_cpu {
            self.keep_longest(stretch, waker.and_then(|ix| seam.task(ix)));
        }
        if later.by != By::BEFORE {
            self.by = seam.by(later.by);
        }
        // What has the moment before the leg has not changed since.
        if later.since != seed.since {
            self.since = later.since;
        }
        if later.told != seed.told {
            self.told = later.told;
        }
        if later.off_since != seed.off_since {
            self.off_since = later.off_since;
        }
        self.vfork_child = seam.maybe(later.vfork_child);
        if later.end != seed.end {
            self.end = later.end;
        }
        (self.state, self.epoch) = (later.state, later.epoch);
        (self.woken, self.seen, self.doubt) = (later.woken, later.seen, later.doubt);
        (self.last_cpu, self.tid, self.comm) = (later.last_cpu, later.tid, later.comm);
        (self.exit, self.exited, self.kernel) = (later.exit, later.exited, later.kernel);
    }
}
