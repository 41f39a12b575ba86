//! The tables of tasks and processes: the holder of a tid or a pid, and how tasks appear
//! and end.

use tr_format::event::{Argv, CgroupId, Ktime, Tgid, Tid};

use super::{Task, Tracker};
use crate::ids::{ProcIx, TaskIx};
use crate::model::ExecSpan;
use crate::state::{Ended, State};
use crate::tid_map::IdMap;

/// See [`Tracker::task`].
pub(super) fn task_of(
    by_tid: &IdMap<TaskIx>,
    renamed: Option<(Ktime, Tid, TaskIx)>,
    tid: Tid,
) -> Option<TaskIx> {
    let renamed = || renamed.filter(|(_, old, _)| *old == tid);
    let renamed = || renamed().map(|(.., ix)| ix);
    by_tid.get(tid.0).or_else(renamed)
}

#[derive(Clone, Debug, Default)]
pub struct ProcessEntry {
    pub pid: Tgid,
    pub ppid: Option<Tgid>,
    pub parent: Option<ProcIx>,
    pub argv: Argv,
    pub cgroup: CgroupId,
    pub kthread: bool,
    pub threads: Vec<TaskIx>,
    pub live: usize,
    pub execs: Vec<ExecSpan>,
    /// The first of its threads whose times its last program lacks; each names the next.
    pub(super) owing: Option<TaskIx>,
    /// Its exit: the raw status.
    pub status: Option<u32>,
    /// The largest resident set of its programs.
    pub max_rss: Option<u64>,
    /// The kernel's `maxrss` when its last program began.
    pub rss_before: Option<u64>,
    /// Its fork was seen.
    pub forked: bool,
    /// Its only thread turned out to belong to this other process.
    pub moved: Option<ProcIx>,
}

/// Appends to a list that mostly stays at one item: others are grown by four.
pub(super) fn push_first<T>(list: &mut Vec<T>, value: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(value);
}

impl Tracker {
    /// The task that has a tid, or has just left it by an exec.
    pub(super) fn task(&self, tid: Tid) -> Option<TaskIx> {
        task_of(&self.by_tid, self.renamed, tid)
    }

    /// The task that goes by a tid at that time: an ended one has left it to strangers, but
    /// a leader to the thread that may take over the process.
    pub(super) fn holder(&self, tid: Tid, time: Ktime) -> Option<TaskIx> {
        let ix = self.task(tid)?;
        (self.keeps(ix, tid) || self.tasks[ix].end == Some(time)).then_some(ix)
    }

    /// A task lives, or its tid is that of its process, which does.
    pub(super) fn keeps(&self, ix: TaskIx, tid: Tid) -> bool {
        let task = &self.tasks[ix];
        let process = &self.processes[task.process];
        !task.is_dead() || process.live > 0 && process.pid.0 == tid.0
    }

    /// A task by its tid at a switch-in or waking. An ended leader's tid that runs again is
    /// the thread that takes over the process by an exec (`de_thread` gives it the leader's
    /// tid before the exec is reported).
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

    /// A task that no event has announced: its fork came before the recording, or is lost.
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

    /// A task whose fork is missing, but not its first waking, by its parent.
    pub(super) fn appear_child(&mut self, tid: Tid, parent: TaskIx, time: Ktime) -> TaskIx {
        let ix = self.appear(tid, Tgid(tid.0), time);
        let parents = self.tasks[parent].process;
        // It was forked while events were being lost.
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

    /// The process of a pid; it is the new one when all threads of the one before have ended.
    pub(super) fn process_of(&mut self, new: ProcessEntry) -> ProcIx {
        if let Some(ix) = self.by_tgid.get(new.pid.0) {
            let process = &mut self.processes[ix];
            if process.live > 0 {
                return ix;
            }
            // The snapshots of its other threads have not come yet: the exit that was the
            // last to begin need not be the last to be over.
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

    /// The process of this pid, as the parent of one that was there before the recording: a
    /// process that was forked since has a used pid.
    pub(super) fn listed(&self, pid: Tgid) -> Option<ProcIx> {
        let ix = self.by_tgid.get(pid.0)?;
        (!self.processes[ix].forked).then_some(ix)
    }

    /// A pid has a new holder; the process that had it is gone.
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

    /// The status of the process's first thread, if that has exited.
    pub(super) fn leaders_status(&self, process: &ProcessEntry) -> Option<u32> {
        let leader = &self.tasks[*process.threads.first()?];
        leader.exit.as_ref().and_then(|exit| exit.status)
    }

    /// The child has left its parent's memory.
    pub(super) fn end_vfork(&mut self, parent: TaskIx, child: TaskIx) {
        let parent = &mut self.tasks[parent];
        if parent.vfork_child == Some(child) {
            parent.vfork_child = None;
        }
    }
}
