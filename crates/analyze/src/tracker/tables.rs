//! Actor is there: which task has a tid, which process a pid; how tasks appear and
//! go.

use tr_format::event::{Argv, CgroupId, Comm, Ktime, Tgid, Tid};

use super::{MaybeTask, Task, TaskIx, Tracker};
use crate::model::{Causes, ExecSpan, Switches, Times};
use crate::state::{Ended, State};
use crate::timeline::ActorRef;

/// What the tracker knows of a process.
#[derive(Clone, Debug)]
pub struct ProcessEntry {
    /// Its pid.
    pub pid: Tgid,
    /// Its parent's pid.
    pub ppid: Option<Tgid>,
    /// Its parent's place.
    pub parent: Option<usize>,
    /// Arguments it shows.
    pub argv: Argv,
    /// Its last cgroup.
    pub cgroup: CgroupId,
    /// It is a kernel thread.
    pub kthread: bool,
    /// Its threads.
    pub threads: Vec<TaskIx>,
    /// Threads that live.
    pub live: usize,
    /// Its programs.
    pub execs: Vec<ExecSpan>,
    /// The first of its threads that have had times since its last program began;
    /// each tells the next.
    pub(super) owing: MaybeTask,
    /// It has exited: the raw status.
    pub status: Option<u32>,
    /// Largest resident set.
    pub max_rss: Option<u64>,
    /// Its fork was seen.
    pub forked: bool,
    /// Its only thread turned out to belong to this other process.
    pub moved: Option<usize>,
}

/// Appends to a list that mostly stays at one: others are grown by four.
pub(super) fn push_first<T>(list: &mut Vec<T>, value: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(value);
}

impl Tracker {
    pub(super) fn task(&self, tid: Tid) -> Option<TaskIx> {
        let renamed = || self.renamed.filter(|(_, old, _)| *old == tid);
        let renamed = || renamed().map(|(_, _, ix)| ix);
        self.by_tid.get(tid).or_else(renamed)
    }

    /// The task that goes by a tid at that time: who has gone before has left it to
    /// strangers, but a leader to the thread that may take over the process.
    pub(super) fn holder(&self, tid: Tid, time: Ktime) -> Option<TaskIx> {
        let holds = |ix: &TaskIx| {
            let task = self.tasks.get(ix.0);
            task.is_some_and(|task| self.keeps(task, tid) || self.just_now(task.end, time))
        };
        self.task(tid).filter(holds)
    }

    /// A task lives, or its tid is that of its process, which does.
    pub(super) fn keeps(&self, task: &Task, tid: Tid) -> bool {
        let process = self.processes.get(task.process);
        task.state != State::Dead
            || process.is_some_and(|process| process.live > 0 && process.pid.0 == tid.0)
    }

    pub(super) fn state(&self, ix: TaskIx) -> State {
        self.tasks.get(ix.0).map_or(State::Dead, |task| task.state)
    }

    /// A task by its tid at a switch-in or waking. A dead leader's tid that
    /// runs again is the thread that is taking over the process by an exec
    /// (`de_thread` gives it the leader's tid before the exec is reported).
    pub(super) fn task_to_run(&mut self, tid: Tid, time: Ktime) -> Option<TaskIx> {
        let ix = match self.task(tid) {
            Some(ix) => ix,
            None if self.open() => self.appear(tid, Tgid(tid.0), time),
            None => return None,
        };
        if self.state(ix) != State::Dead {
            return Some(ix);
        }
        let process = self.tasks.get(ix.0)?.process;
        let entry = self.processes.get(process)?;
        if entry.live > 0 && entry.pid.0 == tid.0 {
            let heir = entry
                .threads
                .iter()
                .copied()
                .find(|t| self.state(*t) != State::Dead)?;
            self.by_tid.insert(tid, heir);
            return Some(heir);
        }
        // As far as the stamps are right, it was before the end.
        let end = self.tasks.get(ix.0).and_then(|task| task.end);
        let new = self.open() && !self.just_now(end, time);
        new.then(|| self.appear(tid, Tgid(tid.0), time))
    }

    /// A task that nothing has announced: its fork came before the recording,
    /// or was lost.
    pub(super) fn appear(&mut self, tid: Tid, tgid: Tgid, time: Ktime) -> TaskIx {
        let comm = self.names.get(&tid).copied().unwrap_or_default();
        let process = self.process_of(tgid, None, None, Argv::default());
        let lost = time > self.start && self.by_tid.get(tid).is_some();
        let start = if lost { time } else { self.start };
        let ix = self.add_task(tid, tid, process, comm, start, !lost, State::Unknown, None);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.since = start.min(time);
        }
        ix
    }

    /// A task whose fork is missing, but not its first waking, by its parent.
    pub(super) fn appear_child(&mut self, tid: Tid, parent: TaskIx, time: Ktime) -> TaskIx {
        let ix = self.appear(tid, Tgid(tid.0), time);
        let parent_process = self.tasks.get(parent.0).map(|task| task.process);
        // It was forked while events were being lost.
        let born = self.gaps.lives_before(time).unwrap_or(time);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            (task.start, task.since) = (born.max(self.start), born);
            (task.started_before, task.parent) = (born < self.start, Some(parent));
            let process = self.processes.get_mut(task.process);
            if let Some(process) = process.filter(|p| p.parent.is_none()) {
                process.parent = parent_process.filter(|parent| *parent != task.process);
            }
        }
        ix
    }

    pub(super) fn process_of(
        &mut self,
        pid: Tgid,
        ppid: Option<Tgid>,
        parent: Option<usize>,
        argv: Argv,
    ) -> usize {
        if let Some(at) = self.by_tgid.get(pid) {
            let (begun, end) = (self.begun, self.end);
            if let Some(process) = self.processes.get_mut(at) {
                if process.live > 0 {
                    return at;
                }
                // Its other threads are not listed yet: the exit that was the last
                // to begin need not be the last to be over.
                if !begun {
                    process.status = None;
                    if let Some(exec) = process.execs.last_mut() {
                        (exec.end, exec.ended) = (end, false);
                    }
                    return at;
                }
            }
        }
        self.processes.push(ProcessEntry {
            pid,
            ppid,
            parent,
            argv,
            cgroup: CgroupId(0),
            kthread: false,
            threads: Vec::new(),
            live: 0,
            execs: Vec::new(),
            owing: MaybeTask::NONE,
            status: None,
            max_rss: None,
            forked: false,
            moved: None,
        });
        self.by_tgid.insert(pid, self.processes.len() - 1);
        self.processes.len() - 1
    }

    /// The process of this pid, as the parent of one that was there before the
    /// recording: one that was forked since has a used pid.
    pub(super) fn listed(&self, pid: Tgid) -> Option<usize> {
        let at = self.by_tgid.get(pid)?;
        self.processes.get(at).filter(|p| !p.forked).map(|_| at)
    }

    /// A pid has a new holder; whoever had it is gone.
    pub(super) fn retire(&mut self, pid: Tgid) {
        let at = self.by_tgid.get(pid);
        let process = at.and_then(|at| self.processes.get(at));
        if process.is_some_and(|process| process.live == 0) {
            self.by_tgid.remove(pid);
        }
    }

    #[allow(clippy::too_many_arguments)] // one call for each way in which tasks come to be
    pub(super) fn add_task(
        &mut self,
        tid: Tid,
        ns_tid: Tid,
        process: usize,
        comm: Comm,
        start: Ktime,
        started_before: bool,
        state: State,
        parent: Option<TaskIx>,
    ) -> TaskIx {
        let ix = TaskIx(self.tasks.len());
        let epoch = self.concurrency.meet(start, state);
        self.tasks.push(Task {
            tid,
            ns_tid,
            process,
            comm,
            start,
            started_before,
            end: None,
            times: Times::default(),
            causes: Causes::default(),
            switches: Switches::default(),
            max_off_cpu: None,
            migrations: 0,
            exit: None,
            exited: None,
            kernel: None,
            state,
            epoch,
            since: start,
            told: start,
            woken: false,
            off_since: Some(start),
            by: parent.map_or(ActorRef::UNKNOWN, |parent| ActorRef::task(parent.0)),
            last_cpu: None,
            vfork_child: MaybeTask::NONE,
            owes_next: MaybeTask::NONE,
            parent,
            seen: false,
            owes: false,
            paid: Times::default(),
        });
        if let Some(process) = self.processes.get_mut(process) {
            push_first(&mut process.threads, ix);
            process.live += 1;
        }
        self.by_tid.insert(tid, ix);
        ix
    }

    /// A task is gone.
    pub(super) fn end_task(&mut self, ix: TaskIx, time: Ktime) {
        if self.state(ix) == State::Dead {
            return;
        }
        self.enter(ix, time, State::Dead, Ended::Otherwise);
        let Some(task) = self.tasks.get(ix.0) else {
            return;
        };
        let at = task.process;
        if let Some(parent) = task.parent {
            self.end_vfork(parent, ix);
        }
        let last = |p: &&ProcessEntry| p.live <= 1 && p.status.is_none();
        let process = self.processes.get(at).filter(last);
        let status = process.and_then(|process| self.leaders_status(process));
        let Some(process) = self.processes.get_mut(at) else {
            return;
        };
        process.live = process.live.saturating_sub(1);
        if process.live == 0 {
            let end = time.clamp(self.start, self.end);
            let inside = time <= self.end;
            if let Some(exec) = process.execs.last_mut() {
                (exec.end, exec.ended) = (end, inside);
            }
            if process.status.is_none() {
                process.status = status;
            }
        }
    }

    /// The status of the process's first thread, if that has exited.
    pub(super) fn leaders_status(&self, process: &ProcessEntry) -> Option<u32> {
        let leader = self.tasks.get(process.threads.first()?.0)?;
        leader.exit.as_ref().map(|exit| exit.status)
    }

    /// The child has left its parent's memory.
    pub(super) fn end_vfork(&mut self, parent: TaskIx, child: TaskIx) {
        if let Some(parent) = self.tasks.get_mut(parent.0) {
            if parent.vfork_child == MaybeTask::some(child) {
                parent.vfork_child = MaybeTask::NONE;
            }
        }
    }
}
