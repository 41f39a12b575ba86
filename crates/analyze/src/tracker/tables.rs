//! Keeps the tables of tasks and processes: which of them hold which tids and pids, and how they appear and end.

use tr_format::event::{Ktime, Tgid, Tid};

use super::process::ProcessEntry;
use super::{Task, Tracker};
use crate::ids::{ProcIx, TaskIx};
use crate::state::{Ended, State};
use crate::tid_map::IdMap;

/// Finds the task that has a tid in the tables, without a tracker; see [`Tracker::task`].
pub(super) fn task_of(
    by_tid: &IdMap<TaskIx>,
    renamed: Option<(Ktime, Tid, TaskIx)>,
    tid: Tid,
) -> Option<TaskIx> {
    let renamed = || renamed.filter(|(_, old, _)| *old == tid);
    let renamed = || renamed().map(|(.., ix)| ix);
    by_tid.get(tid.0).or_else(renamed)
}

/// Appends to a list that mostly gets only one item: memory is reserved for one item first, and more as usual later.
pub(super) fn push_first<T>(list: &mut Vec<T>, value: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(value);
}

impl Tracker {
    /// The task that has a tid now, or that has just left it by an exec.
    pub(super) fn task(&self, tid: Tid) -> Option<TaskIx> {
        task_of(&self.by_tid, self.renamed, tid)
    }

    /// The task that has a tid at the time `time`. After the end of a task, another task may get its tid. But the tid
    /// of an ended leader still belongs to the leader's process, until a thread takes it over.
    pub(super) fn holder(&self, tid: Tid, time: Ktime) -> Option<TaskIx> {
        let ix = self.task(tid)?;
        (self.keeps(ix, tid) || self.tasks[ix].end == Some(time)).then_some(ix)
    }

    /// Whether a task still holds its tid: it lives, or its tid is the pid of its process and the process lives.
    pub(super) fn keeps(&self, ix: TaskIx, tid: Tid) -> bool {
        let task = &self.tasks[ix];
        let process = &self.processes[task.process];
        !task.is_dead() || process.live > 0 && process.pid.0 == tid.0
    }

    /// Finds the task with the given tid at a switch-in or a waking. If this is the tid of a leader that has ended, the
    /// task is the thread that takes over the process by an exec. `de_thread` gives the thread the tid of the leader
    /// before the exec is reported.
    pub(super) fn task_to_run(&mut self, tid: Tid, time: Ktime) -> Option<TaskIx> {
        let ix = match self.task(tid) {
            Some(ix) => ix,
            None if self.open() => self.appear(tid, Tgid(tid.0), time),
            None => return None,
        };
        if !self.tasks[ix].is_dead() {
            return Some(ix);
        }
        let process = &self.processes[self.tasks[ix].process];
        if process.live > 0 && process.pid.0 == tid.0 {
            let mut threads = process.threads.iter().copied();
            let heir = threads.find(|thread| !self.tasks[*thread].is_dead())?;
            self.by_tid.insert(tid.0, heir);
            return Some(heir);
        }
        let new = self.open() && self.tasks[ix].end != Some(time);
        new.then(|| self.appear(tid, Tgid(tid.0), time))
    }

    /// Adds a task that no event has shown before to the tables, because its fork came before the recording or is
    /// lost. Returns the task's index.
    pub(super) fn appear(&mut self, tid: Tid, tgid: Tgid, time: Ktime) -> TaskIx {
        let process = self.process_of(ProcessEntry {
            pid: tgid,
            ..ProcessEntry::default()
        });
        let lost = time > self.start && self.by_tid.get(tid.0).is_some();
        let start = if lost { time } else { self.start };
        self.add_task(Task {
            comm: self.names.get(&tid).copied().unwrap_or_default(),
            started_before: !lost,
            since: start.min(time),
            ..Task::new(tid, process, start, State::Unknown)
        })
    }

    /// Adds a task whose fork is missing to the tables. The first waking of the task, by its parent, is recorded.
    pub(super) fn appear_child(&mut self, tid: Tid, parent: TaskIx, time: Ktime) -> TaskIx {
        let ix = self.appear(tid, Tgid(tid.0), time);
        let parents = self.tasks[parent].process;
        // The child was forked while events were being lost. So its life is taken to begin where the loss begins.
        let born = self.gaps.lives_before(time).unwrap_or(time);
        let task = &mut self.tasks[ix];
        (task.start, task.since) = (born.max(self.start), born);
        (task.started_before, task.parent) = (born < self.start, Some(parent));
        let of = task.process;
        let process = &mut self.processes[of];
        if process.parent.is_none() {
            process.parent = Some(parents).filter(|parents| *parents != of);
        }
        ix
    }

    /// Returns the process that has the pid of `new` now. If there is none, or if all threads of the process with
    /// this pid have ended, `new` is added to the table.
    pub(super) fn process_of(&mut self, new: ProcessEntry) -> ProcIx {
        if let Some(ix) = self.by_tgid.get(new.pid.0) {
            let process = &mut self.processes[ix];
            if process.live > 0 {
                return ix;
            }
            // One exit was reported as that of the process's last thread. But another thread may have begun to exit
            // earlier and may still be exiting, and until the recording begins, the snapshot of such a thread may still
            // come. So the process does not count as ended.
            if !self.begun {
                process.status = None;
                if let Some(exec) = process.execs.last_mut() {
                    (exec.end, exec.ended) = (self.end, false);
                }
                return ix;
            }
        }
        let pid = new.pid;
        let ix = self.processes.push(new);
        self.by_tgid.insert(pid.0, ix);
        ix
    }

    /// Finds the parent of a process that existed before the recording, by the parent's pid. If the process with
    /// this pid was forked during the recording, the pid was reused, and the result is `None`.
    pub(super) fn listed(&self, pid: Tgid) -> Option<ProcIx> {
        let ix = self.by_tgid.get(pid.0)?;
        (!self.processes[ix].forked).then_some(ix)
    }

    /// Notes that a pid belongs to a new process: takes it from the process that had it, if all threads of that process
    /// have ended.
    pub(super) fn retire(&mut self, pid: Tgid) {
        let old = self.by_tgid.get(pid.0);
        if old.is_some_and(|ix| self.processes[ix].live == 0) {
            self.by_tgid.remove(pid.0);
        }
    }

    pub(super) fn add_task(&mut self, mut task: Task) -> TaskIx {
        task.epoch = self.concurrency.meet(task.start, task.state);
        let (tid, process) = (task.tid, task.process);
        let ix = self.tasks.push(task);
        let process = &mut self.processes[process];
        push_first(&mut process.threads, ix);
        process.live += 1;
        self.by_tid.insert(tid.0, ix);
        ix
    }

    pub(super) fn end_task(&mut self, ix: TaskIx, time: Ktime) {
        if self.tasks[ix].is_dead() {
            return;
        }
        self.enter(ix, time, State::Dead, Ended::Otherwise);
        let (of, parent) = (self.tasks[ix].process, self.tasks[ix].parent);
        if let Some(parent) = parent {
            self.end_vfork(parent, ix);
        }
        let status = self.leaders_status(&self.processes[of]);
        let process = &mut self.processes[of];
        process.live = process.live.saturating_sub(1);
        if process.live == 0 {
            let end = time.clamp(self.start, self.end);
            let inside = time <= self.end;
            if let Some(exec) = process.execs.last_mut() {
                (exec.end, exec.ended) = (end, inside);
            }
            process.status = process.status.or(status);
        }
    }

    /// The raw `wait` status of the first thread of the process, if that thread has exited.
    pub(super) fn leaders_status(&self, process: &ProcessEntry) -> Option<u32> {
        let leader = &self.tasks[*process.threads.first()?];
        leader.exit.as_ref().and_then(|exit| exit.status)
    }

    /// Notes that a vfork child has left the memory of its parent.
    pub(super) fn end_vfork(&mut self, parent: TaskIx, child: TaskIx) {
        let parent = &mut self.tasks[parent];
        if parent.vfork_child == Some(child) {
            parent.vfork_child = None;
        }
    }
}
