//! Lifecycle events: what tasks and processes there are, and what they execute.

use std::sync::Arc;

use tr_format::event::{
    Argv, Comm, CpuId, Exec, Exit, Final, Fork, Ktime, LifeEvent, LifeKind, Rename, Snapshot, Tgid,
    Tid,
};

use super::{push_first, ProcessEntry, TaskIx, Tracker};
use crate::model::{ExecSpan, Times};
use crate::state::{Bucket, Ended, State};

impl Tracker {
    /// Takes a lifecycle event, or one of the recorder's, at its place in time.
    pub fn life(&mut self, time: Ktime, event: &LifeEvent) {
        self.pass_gaps(time);
        self.begin(time);
        let counted = self.inside(time);
        match &event.kind {
            LifeKind::Fork(fork) => {
                self.counts[0] += u64::from(counted);
                self.clock_check.fork(fork.tid, event.cpu, time);
                self.fork(time, fork);
            }
            LifeKind::Exec(exec) => {
                self.counts[1] += u64::from(counted);
                self.exec(time, event.cpu, exec);
            }
            LifeKind::Exit(exit) => {
                self.counts[2] += u64::from(counted);
                self.exit(time, exit);
            }
            LifeKind::Final(last) => self.last(time, last),
            LifeKind::Rename(_) | LifeKind::CgroupMove(_) if time >= self.end => {}
            LifeKind::Rename(rename) => self.rename(rename),
            LifeKind::CgroupPath(path) => {
                self.cgroups.insert(path.id, path.path.clone());
            }
            LifeKind::CgroupMove(moved) => {
                let process = self
                    .task(moved.tid)
                    .and_then(|ix| self.tasks.get(ix.0))
                    .map(|task| task.process);
                // A leader that was dead before the recording leaves its name
                // to the process.
                let process = process.or(self.by_tgid.get(Tgid(moved.tid.0)));
                if let Some(process) = process.and_then(|p| self.processes.get_mut(p)) {
                    process.cgroup = moved.cgroup;
                }
            }
            LifeKind::Snapshot(snapshot) => self.snapshot(time, snapshot),
            LifeKind::Lost(_) | LifeKind::Clock(_) | LifeKind::Progress | LifeKind::Mark(_) => {}
        }
    }

    fn fork(&mut self, time: Ktime, fork: &Fork) {
        // A new holder of a tid: the old one is gone, seen or not.
        if let Some(old) = self.by_tid.get(fork.tid) {
            let lives = self.begun && self.state(old) != State::Dead;
            let unseen = self.in_gap(old, time);
            let lost = self.gaps.lives_before(time).is_some();
            if lives && !unseen && !lost {
                self.anomaly("forked before the task of that id had ended");
            }
            // Its end would have been seen: it goes by another tid since an exec
            // that is lost.
            if !lives || unseen || !self.has_passed_on(old, fork.tid, time) {
                self.end_task(old, time);
            }
        }
        let parent = match self.task(fork.parent_tid) {
            None if self.open() && fork.parent_tid != Tid::IDLE => {
                Some(self.appear(fork.parent_tid, fork.parent_tgid, time))
            }
            known => known,
        };
        if let Some(parent) = parent {
            self.settle(parent, fork.parent_tgid, None, Argv::default());
        }
        let parent_process = parent
            .and_then(|p| self.tasks.get(p.0))
            .map(|task| task.process);
        let is_thread = fork.tid.0 != fork.tgid.0;
        let process = match self.by_tgid.get(fork.tgid) {
            Some(process) if is_thread => process,
            _ => {
                let argv = parent_process
                    .and_then(|p| self.processes.get(p))
                    .map(|p| p.argv.clone());
                let argv = argv.unwrap_or_default();
                let parent = parent_process.or(self.by_tgid.get(fork.parent_tgid));
                // A new thread of a process that is not listed yet: whose
                // child that is, its listing tells.
                let (ppid, parent) = match is_thread {
                    true => (None, None),
                    false => {
                        self.retire(fork.tgid);
                        (Some(fork.parent_tgid), parent)
                    }
                };
                self.process_of(fork.tgid, ppid, parent, argv)
            }
        };
        if let Some(process) = self.processes.get_mut(process) {
            process.cgroup = fork.cgroup;
            process.forked |= !is_thread;
        }
        // It cannot run before its first waking: it waits for a CPU from here.
        let state = match self.gaps.any().covers(time) {
            true => State::Unknown,
            false => State::Runnable { preempted: false },
        };
        let start = time.max(self.start);
        let ix = self.add_task(
            fork.tid,
            fork.ns_tid,
            process,
            fork.comm,
            start,
            time < self.start,
            state,
            parent,
        );
        if let Some(task) = self.tasks.get_mut(ix.0) {
            // Before the span too: a gap may lie between.
            (task.seen, task.since, task.told) = (true, time, time);
        }
    }

    fn exec(&mut self, time: Ktime, cpu: Option<CpuId>, exec: &Exec) {
        let caller = self
            .task(exec.old_tid)
            .filter(|ix| self.state(*ix) != State::Dead);
        let ix = match caller.or_else(|| self.task(exec.tid)) {
            Some(ix) => ix,
            None if self.open() => self.appear(exec.tid, exec.tgid, time),
            None => return,
        };
        self.settle(ix, exec.tgid, None, Argv::default());
        let Some(process) = self.tasks.get(ix.0).map(|task| task.process) else {
            return;
        };
        if exec.old_tid != exec.tid {
            self.by_tid.remove(exec.old_tid);
            self.renamed = Some((time, exec.old_tid, ix));
            // The siblings are gone, whether or not their exits were seen. The
            // old leader may still have its last steps to do, under the tid
            // that the caller had.
            let siblings = self
                .processes
                .get(process)
                .map(|p| p.threads.clone())
                .unwrap_or_default();
            for sibling in siblings.into_iter().filter(|sibling| *sibling != ix) {
                let leaving = self
                    .tasks
                    .get(sibling.0)
                    .is_some_and(|t| t.exit.is_some() && t.end.is_none());
                if leaving {
                    self.by_tid.insert(exec.old_tid, sibling);
                } else {
                    self.end_task(sibling, time);
                }
            }
            if let Some(task) = self.tasks.get_mut(ix.0) {
                task.tid = exec.tid;
            }
            self.by_tid.insert(exec.tid, ix);
        }
        // What it did until now belongs to the program before.
        let state = match self.state(ix) {
            // In a gap it has come to another CPU.
            State::On(Some(on)) if cpu.is_some_and(|cpu| cpu != on) => State::Unknown,
            on @ State::On(_) => on,
            // Its switch-out after that has the same stamp.
            left if self.just_now(self.tasks.get(ix.0).map(|task| task.since), time) => left,
            _ => State::Unknown, // it runs, though it was not seen to begin
        };
        let seen = self.seen(ix);
        self.enter(ix, time, state, Ended::Otherwise);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            if time < self.end {
                task.comm = exec.comm;
            }
            task.seen = seen;
            if let Some(parent) = task.parent {
                self.end_vfork(parent, ix);
            }
        }
        if time >= self.end {
            return;
        }
        let at = time.max(self.start);
        let span = ExecSpan {
            start: at,
            started_before: time < self.start,
            end: self.end,
            ended: false,
            filename: exec.filename.clone(),
            argv: exec.argv.clone(),
            comm: exec.comm,
            times: Times::default(),
        };
        self.flush(process);
        let Some(process) = self.processes.get_mut(process) else {
            return;
        };
        if time < self.start {
            process.execs.clear(); // over before the span
        }
        if let Some(last) = process.execs.last_mut() {
            (last.end, last.ended) = (at, true);
        }
        push_first(&mut process.execs, span);
        process.argv = exec.argv.clone();
        process.cgroup = exec.cgroup;
    }

    fn exit(&mut self, time: Ktime, exit: &Exit) {
        let ix = match self.task(exit.tid) {
            _ if time >= self.end => return,
            Some(ix) if self.state(ix) != State::Dead => ix,
            // Its last switch-out has the same stamp.
            Some(ix) if self.just_now(self.tasks.get(ix.0).and_then(|task| task.end), time) => ix,
            None if self.open() => self.appear(exit.tid, exit.tgid, time),
            _ => return,
        };
        self.settle(ix, exit.tgid, None, Argv::default());
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        task.exits(time, exit);
        let process = task.process;
        let Some(process) = self.processes.get_mut(process).filter(|_| exit.group_dead) else {
            return;
        };
        process.status = Some(exit.group_status);
        process.max_rss = process
            .max_rss
            .max(Some(exit.max_rss).filter(|rss| *rss > 0));
    }

    /// The kernel's last figures come right after the last switch-out; the tid
    /// may have been swapped by an exec, so the exit decides whose they are.
    fn last(&mut self, time: Ktime, last: &Final) {
        let Some(ix) = self.task(last.tid) else {
            return;
        };
        let unseen = self.in_gap(ix, time) && self.gaps.lives_before(time).is_none();
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        if let Some(kernel) = task
            .kernel
            .as_mut()
            .filter(|kernel| last.sum_exec_runtime >= kernel.sum_exec_runtime)
        {
            kernel.sum_exec_runtime = last.sum_exec_runtime;
            kernel.nvcsw = last.nvcsw;
            kernel.nivcsw = last.nivcsw;
            kernel.is_final = true;
            // That switch-out is lost, if it was not seen.
            if unseen {
                self.end_task(ix, time);
            }
        }
    }

    fn rename(&mut self, rename: &Rename) {
        match self
            .task(rename.tid)
            .and_then(|ix| self.tasks.get_mut(ix.0))
        {
            Some(task) => task.comm = rename.comm,
            None => {
                self.names.insert(rename.tid, rename.comm);
            }
        }
    }

    /// A task that ran before its process was named had one of its own until now.
    pub(super) fn settle(&mut self, ix: TaskIx, tgid: Tgid, ppid: Option<Tgid>, argv: Argv) {
        let Some(old) = self.tasks.get(ix.0).map(|task| task.process) else {
            return;
        };
        let own = |p: &ProcessEntry| p.pid != tgid && p.ppid.is_none();
        if !self.processes.get(old).is_some_and(own) {
            return;
        }
        let parent = ppid.and_then(|ppid| self.listed(ppid));
        let new = self.process_of(tgid, ppid, parent, argv);
        self.flush(old);
        let lives = usize::from(self.state(ix) != State::Dead);
        if let Some(process) = self.processes.get_mut(old) {
            process.threads.retain(|thread| *thread != ix);
            process.live = process.live.saturating_sub(lives);
            if process.threads.is_empty() {
                process.moved = Some(new);
            }
        }
        if let Some(process) = self.processes.get_mut(new) {
            process.threads.push(ix);
            process.live += lives;
        }
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.process = new;
        }
    }

    fn snapshot(&mut self, time: Ktime, snapshot: &Snapshot) {
        self.names.insert(snapshot.tid, snapshot.comm);
        if !snapshot.followed || snapshot.tid == Tid::IDLE {
            return;
        }
        let known = self
            .task(snapshot.tid)
            .filter(|ix| self.state(*ix) != State::Dead);
        let ix = match known {
            Some(ix) => {
                let argv = snapshot.argv.clone();
                self.settle(ix, snapshot.tgid, Some(snapshot.parent_tgid), argv);
                ix
            }
            None => {
                let parent = self.listed(snapshot.parent_tgid);
                let process = self.process_of(
                    snapshot.tgid,
                    Some(snapshot.parent_tgid),
                    parent,
                    snapshot.argv.clone(),
                );
                let (tid, ns) = (snapshot.tid, snapshot.ns_tid);
                let start = self.start;
                self.add_task(
                    tid,
                    ns,
                    process,
                    snapshot.comm,
                    start,
                    true,
                    State::Unknown,
                    None,
                )
            }
        };
        let Some(process) = self.tasks.get(ix.0).map(|task| task.process) else {
            return;
        };
        let span = (self.start, self.end);
        let parent = self.listed(snapshot.parent_tgid);
        self.flush(process);
        if let Some(entry) = self.processes.get_mut(process) {
            if !entry.forked && entry.ppid != Some(snapshot.parent_tgid) {
                entry.parent = parent; // or looked up when all are listed
            }
            entry.ppid = Some(snapshot.parent_tgid);
            entry.kthread = snapshot.kthread;
            entry.cgroup = snapshot.cgroup;
            let is_leader = snapshot.tid.0 == snapshot.tgid.0;
            let executes = is_leader && !snapshot.kthread && entry.execs.is_empty();
            // A thread's do when its leader was gone before it could be listed.
            if executes || entry.argv == Argv::default() && entry.execs.is_empty() {
                entry.argv = snapshot.argv.clone();
            }
            // COMMAND is still a copy of the recorder here; its program comes.
            if executes && self.root != Some(snapshot.tgid) {
                let (argv, comm) = (snapshot.argv.clone(), snapshot.comm);
                let program = program_before(span, Arc::default(), argv, comm);
                push_first(&mut entry.execs, program);
            }
        }
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        task.comm = snapshot.comm;
        task.ns_tid = snapshot.ns_tid;
        let missing = self.gaps.any().first_in(task.told, time).is_some();
        if task.is_known_better(snapshot.on_cpu) && !missing {
            return;
        }
        task.woken = false;
        // While events are being lost, nobody knows what came right after; and an exec
        // that is missing may have given it this name on its way to a CPU.
        let unsure = self.gaps.any().covers(time)
            || snapshot.on_cpu && self.gaps.lives_before(time).is_some();
        let state = match unsure {
            true => State::Unknown,
            false => self.states.listed(snapshot.state, snapshot.on_cpu),
        };
        task.epoch = self.concurrency.change(time, task.epoch, task.state, state);
        task.state = state;
        let before = std::mem::replace(&mut task.since, time);
        task.told = time;
        if snapshot.on_cpu {
            task.off_since = None;
            self.unplaced.push(ix);
        }
        self.account(ix, before, time, Bucket::Unknown);
    }
}

/// What a process has been executing since before the span.
pub(super) fn program_before(
    (start, end): (Ktime, Ktime),
    filename: Arc<[u8]>,
    argv: Argv,
    comm: Comm,
) -> ExecSpan {
    ExecSpan {
        start,
        started_before: true,
        end,
        ended: false,
        filename,
        argv,
        comm,
        times: Times::default(),
    }
}
