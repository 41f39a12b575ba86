//! Handles lifecycle events: forks, execs, exits, names, cgroups, and the snapshots of the tasks that existed
//! before the recording.

use tr_format::container::{Container, Evidence};
use tr_format::counters::SystemCalls;
use tr_format::event::{
    Argv, CgroupMove, CpuId, Exec, Exit, Final, Fork, Ktime, LifeEvent, LifeKind, Pinned, Rename,
    Snapshot, Tgid, Tid,
};
use tr_format::stack::Doing;

use super::cpu_table::goes_on;
use super::tables::{push_first, task_of};
use super::{ProcIx, ProcessEntry, Task, TaskIx, Tracker};
use crate::collect::stacks::part;
use crate::model::{Basis, ExecSpan};
use crate::state::{Bucket, Ended, State};
use crate::timeline::ActorRef;

impl Tracker {
    /// Processes a lifecycle event, such as a fork, or an event of the recorder. The caller has to pass the events in
    /// the order of time.
    pub fn life(&mut self, time: Ktime, event: &LifeEvent) {
        self.pass_gaps(time);
        self.begin(time);
        let counted = u64::from(self.inside(time));
        if let LifeKind::Closed(closed) = &event.kind {
            // The collectors forget the connection at this event, so its remote end is looked up before.
            let remote = self.collectors.connections.remote(closed.id);
            let is_local = remote.is_some_and(|remote| remote.address.is_loopback() == Some(true));
            if let (true, Some((tid, _))) = (is_local, closed.by) {
                self.last_closed.closes(tid, time);
            }
        }
        let (by_tid, renamed) = (&self.by_tid, self.renamed);
        self.collectors
            .take(time, &event.kind, |tid| task_of(by_tid, renamed, tid));
        match &event.kind {
            LifeKind::Fork(fork) => {
                self.counts[0] += counted;
                let (cpus, gaps) = (&self.cpus, &self.gaps);
                let goes_on = |cpu, since| goes_on(cpus, gaps, cpu, since, time);
                let is_first = self.is_first_holder(fork.tid, time);
                self.clock_check
                    .fork(fork.tid, is_first, event.cpu, time, goes_on);
                self.proves_running(fork.parent_tid, event.cpu, time);
                self.fork(time, fork);
            }
            LifeKind::Exec(exec) => {
                self.counts[1] += counted;
                self.proves_running(exec.old_tid, event.cpu, time);
                self.exec(time, event.cpu, exec);
            }
            LifeKind::Exit(exit) => {
                self.counts[2] += counted;
                self.proves_running(exit.tid, event.cpu, time);
                self.exit(time, exit);
            }
            LifeKind::Final(last) => self.last(time, last),
            LifeKind::Rename(_) | LifeKind::CgroupMove(_) if time >= self.end => {}
            LifeKind::Rename(rename) => self.rename(rename),
            LifeKind::CgroupMove(moved) => self.move_cgroup(moved),
            LifeKind::Snapshot(snapshot) => self.snapshot(time, snapshot),
            LifeKind::Account(account) => self.account_totals(time, account),
            LifeKind::Detached(detached) => self.detach(time, detached.tid),
            LifeKind::End(end) => {
                self.counts[2] += counted;
                self.end(time, end);
            }
            LifeKind::Pinned(pinned) => self.pin(pinned, event.cpu),
            LifeKind::Container(container) => self.container(container),
            LifeKind::Server(server) => self.collectors.servers.take(server),
            LifeKind::Others(others) => {
                if let Some(cpu) = event
                    .cpu
                    .filter(|_| self.timeline.is_some() && time > self.start)
                {
                    self.collectors.outside.sum(cpu, time, others);
                }
            }
            // Nothing happens here for these events: the collectors, or functions of the tracker that are called
            // separately, handle them.
            LifeKind::CgroupPath(_)
            | LifeKind::Degraded(_)
            | LifeKind::Mark(_)
            | LifeKind::Connect(_)
            | LifeKind::Connected(_)
            | LifeKind::Accepted(_)
            | LifeKind::Closed(_)
            | LifeKind::DnsQuery(_)
            | LifeKind::DnsAnswer(_)
            | LifeKind::Block(_)
            | LifeKind::OomKill(_)
            | LifeKind::Reclaim(_)
            | LifeKind::DiskWait(_)
            | LifeKind::SyncFile(_)
            | LifeKind::Outsider(_)
            | LifeKind::Threads(_)
            | LifeKind::Lost(_)
            | LifeKind::Clock(_)
            | LifeKind::Watermark
            | LifeKind::Counters(_)
            | LifeKind::SystemCalls(_)
            | LifeKind::Module(_)
            | LifeKind::Sample(_)
            | LifeKind::Symbol(_) => {}
        }
    }

    /// Processes an event with the sums of a process's system calls.
    pub fn system_calls(&mut self, time: Ktime, calls: &SystemCalls) {
        let leader = self.task(Tid(calls.tgid.0));
        let leader = leader.map(|ix| &self.tasks[ix]);
        let life = leader.map_or((Ktime(0), Ktime(u64::MAX)), |task| {
            // For a task that existed before the analyzed span, `task.start` is only the start of the span, so its true
            // start is unknown.
            let start = if task.started_before {
                Ktime(0)
            } else {
                task.start
            };
            (start, task.end.unwrap_or(Ktime(u64::MAX)))
        });
        let process = leader.map(|task| task.process);
        let span = (self.start, self.end);
        self.collectors
            .calls
            .take(time, calls, process, (life, span));
    }

    /// Processes an event about stack samples. Returns `false` if it is another event. Events outside the analyzed
    /// span are processed as well, because they define numbers of stacks that are used inside the span.
    pub fn stacks(&mut self, event: &LifeEvent) -> bool {
        let time = event.time;
        match &event.kind {
            LifeKind::Sample(sample) => {
                self.collectors.stacks.stacks(sample);
                let task = self.task(sample.tid);
                // A sample of a wait has no CPU, so `--cpu` does not exclude it.
                let asked = sample.doing == Doing::OffCpu
                    || self.only.is_none_or(|only| event.cpu == Some(only));
                let part = part(time, sample, (self.start, self.end));
                if let (Some(ix), Some((time, ns))) = (task, part.filter(|_| asked)) {
                    self.collectors.stacks.count(ix, time, sample, ns);
                }
            }
            kind @ (LifeKind::Module(_) | LifeKind::Symbol(_)) => {
                self.collectors.stacks.define(kind);
            }
            _ => return false,
        }
        true
    }

    /// Notes that a task is running at `time`, because it forks, executes a program or exits. Its switch-in may have
    /// been missed, and its switch-out may have the same time. In a recording without switches the function does
    /// nothing, because nothing shows how long the task runs.
    fn proves_running(&mut self, tid: Tid, cpu: Option<CpuId>, time: Ktime) {
        if self.basis != Basis::Events {
            return;
        }
        let before = self.task(tid).filter(|ix| self.tasks[*ix].since < time);
        if let (Some(_), Some(cpu)) = (before, cpu) {
            self.runs(tid, cpu, time);
        }
    }

    // ---- Fork ----

    /// Processes the fork of a task: a new thread of its parent's process, or a new process.
    ///
    /// ```text
    /// cpu0  ==parent==!=======     parent: it runs
    ///                 |-------     child: runnable, as it cannot run before its first waking
    /// ```
    fn fork(&mut self, time: Ktime, fork: &Fork) {
        self.retire_tid(fork.tid, time);
        let known_parent = self.task(fork.parent_tid);
        let appears = known_parent.is_none() && self.open() && fork.parent_tid != Tid::IDLE;
        let parent = if appears {
            Some(self.appear(fork.parent_tid, fork.parent_tgid, time))
        } else {
            known_parent
        };
        if let Some(parent) = parent {
            self.settle(parent, fork.parent_tgid, None, Argv::default());
        }
        let of = parent.map(|parent| self.tasks[parent].process);
        let process = self.process_of_fork(fork, of);
        let entry = &mut self.processes[process];
        entry.cgroup = fork.cgroup;
        if fork.tid.0 == fork.tgid.0 {
            (entry.forked, entry.rss_before) = (true, Some(0));
        }
        let unknown = self.basis != Basis::Events || self.gaps.any().covers(time);
        let state = if unknown {
            State::Unknown
        } else {
            State::Runnable { preempted: false }
        };
        let ix = self.add_task(Task {
            ns_tid: fork.ns_tid,
            comm: fork.comm,
            started_before: time < self.start,
            parent,
            actor: parent.map_or(ActorRef::UNKNOWN, TaskIx::actor),
            seen: true,
            // The true time of the fork is kept even if the fork is before the analyzed span, because events may be
            // missing between the fork and the start of the span.
            since: time,
            last_event_ts: time,
            ..Task::new(fork.tid, process, time.max(self.start), state)
        });
        self.open_account(ix, time);
    }

    /// Removes the old task with a tid that a fork gives to a new task, whether or not the old task's end was seen. The
    /// switch-out of a task that has exited may come only after this fork, because the parent of the task need not wait
    /// for the switch-out.
    fn retire_tid(&mut self, tid: Tid, time: Ktime) {
        let Some(old) = self.by_tid.get(tid.0) else {
            return;
        };
        let lives = self.begun && !self.tasks[old].is_dead();
        let unseen = self.in_gap(old, time);
        let exited = self.tasks[old].exit.is_some();
        if lives && !exited && !unseen && self.gaps.lives_before(time).is_none() {
            self.anomaly("forked while another task had its id");
        }
        // The old task has ended, unless an exec gave it another tid under which it lives on. An exec without an event
        // is assumed only if the exec can be lost and the end of the old task would have been seen.
        if !lives || unseen || !self.has_passed_on(old, tid, time) {
            self.end_task(old, time);
        }
    }

    /// The process of a new task according to its fork: the process that the new thread belongs to, or a new
    /// process. `parent` is the process of the task that forked it.
    fn process_of_fork(&mut self, fork: &Fork, parent: Option<ProcIx>) -> ProcIx {
        let is_thread = fork.tid.0 != fork.tgid.0;
        let known = self.by_tgid.get(fork.tgid.0).filter(|_| is_thread);
        if let Some(process) = known {
            return process;
        }
        let argv = parent.map(|parent| self.processes[parent].argv.clone());
        let parent = parent.or(self.by_tgid.get(fork.parent_tgid.0));
        // If the first event of a process is the fork of one of its threads, the parent of the process is not known
        // yet. The snapshot of the process will name the parent.
        let (ppid, parent) = if is_thread {
            (None, None)
        } else {
            self.retire(fork.tgid);
            (Some(fork.parent_tgid), parent)
        };
        self.process_of(ProcessEntry {
            pid: fork.tgid,
            ppid,
            parent,
            argv: argv.unwrap_or_default(),
            ..ProcessEntry::default()
        })
    }

    // ---- Exec ----

    /// Processes an exec. The sibling threads of the task have ended, and the task takes over the tid of its leader
    /// (`de_thread`, fs/exec.c).
    ///
    /// ```text
    /// leader  ======|             ended by the exec, its last steps may follow
    /// thread  --====!======       tid: old_tid → tid; program: old → new
    /// ```
    fn exec(&mut self, time: Ktime, cpu: Option<CpuId>, exec: &Exec) {
        let caller = self.task(exec.old_tid);
        let caller = caller.filter(|ix| !self.tasks[*ix].is_dead());
        let ix = match caller.or_else(|| self.task(exec.tid)) {
            Some(ix) => ix,
            None if self.open() => self.appear(exec.tid, exec.tgid, time),
            None => return,
        };
        self.settle(ix, exec.tgid, None, Argv::default());
        if exec.old_tid != exec.tid {
            self.take_over(ix, time, exec);
            // The task has a new tid, and it is not known whether its affinity was recorded for that tid.
            self.tasks[ix].pinned = None;
        }
        // The task's time until now belongs to the program that it executed before.
        let task = &self.tasks[ix];
        let (seen, parent) = (task.seen, task.parent);
        let state = match task.state {
            // If the exec names another CPU than the task's, then the task came to that CPU in a gap.
            State::On(Some(on)) if cpu.is_some_and(|cpu| cpu != on) => State::Unknown,
            on @ State::On(_) => on,
            // A switch-out with the same time as the exec came after the exec, so the task has already left its CPU.
            left if task.since == time => left,
            _ => State::Unknown, // it runs, though its switch-in was not seen
        };
        self.enter(ix, time, state, Ended::Otherwise);
        let task = &mut self.tasks[ix];
        task.seen = seen;
        if time < self.end {
            task.comm = exec.comm;
        }
        let process = task.process;
        if let Some(parent) = parent {
            self.end_vfork(parent, ix);
        }
        if time < self.end {
            self.begin_program(process, time, exec);
        }
    }

    /// Gives a thread that executes a program the tid of its leader. The sibling threads have ended, whether or not
    /// their exits were seen. The old leader may still do its last steps, under the tid that the executing thread
    /// had.
    fn take_over(&mut self, ix: TaskIx, time: Ktime, exec: &Exec) {
        self.by_tid.remove(exec.old_tid.0);
        self.renamed = Some((time, exec.old_tid, ix));
        let siblings = self.processes[self.tasks[ix].process].threads.clone();
        for sibling in siblings.into_iter().filter(|sibling| *sibling != ix) {
            let task = &self.tasks[sibling];
            if task.exit.is_some() && task.end.is_none() {
                self.by_tid.insert(exec.old_tid.0, sibling);
            } else {
                self.end_task(sibling, time);
            }
        }
        self.tasks[ix].tid = exec.tid;
        self.by_tid.insert(exec.tid.0, ix);
    }

    fn begin_program(&mut self, process: ProcIx, time: Ktime, exec: &Exec) {
        let at = time.max(self.start);
        self.flush(process);
        self.keep_accounts_of(process, time);
        let process = &mut self.processes[process];
        if time < self.start {
            process.execs.clear(); // they ended before the span
        }
        let before = std::mem::replace(&mut process.rss_before, exec.max_rss);
        if let Some(last) = process.execs.last_mut() {
            (last.end, last.ended) = (at, true);
            last.max_rss = grown(before, exec.max_rss);
        }
        let span = ExecSpan {
            start: at,
            started_before: time < self.start,
            end: self.end,
            filename: exec.filename.clone(),
            argv: exec.argv.clone(),
            directory: exec.directory.clone(),
            comm: exec.comm,
            ..ExecSpan::default()
        };
        push_first(&mut process.execs, span);
        process.argv = exec.argv.clone();
        process.cgroup = exec.cgroup;
    }

    // ---- Exit ----

    /// Processes the event that a task begins to exit. The task still runs, up to its last switch-out, which has the
    /// state `TASK_DEAD`.
    ///
    /// ```text
    /// cpu0  ==task==!====|__       exit, teardown, last switch-out
    /// ```
    fn exit(&mut self, time: Ktime, exit: &Exit) {
        let ix = match self.task(exit.tid) {
            _ if time >= self.end => return,
            Some(ix) if !self.tasks[ix].is_dead() => ix,
            // The exit has the same time as the task's last switch-out, which was processed first.
            Some(ix) if self.tasks[ix].end == Some(time) => ix,
            None if self.open() => self.appear(exit.tid, exit.tgid, time),
            _ => return,
        };
        self.settle(ix, exit.tgid, None, Argv::default());
        self.tasks[ix].exit(time, exit);
        if exit.group_dead {
            let memory = (Some(exit.max_rss), exit.program_rss);
            self.end_process(ix, Some(exit.group_status), memory);
        }
    }

    /// Notes that the last thread of a process has exited. The last argument has two resident set sizes: the largest of
    /// all programs of the process, and the largest of its last program.
    pub(super) fn end_process(
        &mut self,
        ix: TaskIx,
        status: Option<u32>,
        (all, last): (Option<u64>, Option<u64>),
    ) {
        let process = &mut self.processes[self.tasks[ix].process];
        process.status = status;
        process.rss_bound = all;
        let max_rss = last.or(grown(process.rss_before, all));
        if let Some(program) = process.execs.last_mut() {
            program.max_rss = max_rss;
        }
        let programs = process.execs.iter().map(|exec| exec.max_rss);
        process.max_rss = programs.max().flatten().max(max_rss);
    }

    /// Processes the kernel's final figures of a task, which come right after the task's last switch-out. An exec may
    /// have swapped the tids of the task and its thread group's leader. So the run time decides whether the figures
    /// belong to this task: the final run time of a task is never shorter than its run time at its exit.
    fn last(&mut self, time: Ktime, last: &Final) {
        let Some(ix) = self.task(last.tid) else {
            return; // its exit was before the recording
        };
        let unseen = self.in_gap(ix, time) && self.gaps.lives_before(time).is_none();
        let kernel = self.tasks[ix].kernel.as_mut();
        let later = |sum: u64| last.sum_exec_runtime >= sum;
        let kernel = kernel.filter(|kernel| later(kernel.sum_exec_runtime));
        if let Some(kernel) = kernel {
            kernel.sum_exec_runtime = last.sum_exec_runtime;
            kernel.nvcsw = last.nvcsw;
            kernel.nivcsw = last.nivcsw;
            kernel.run_delay = last.delays.run;
            kernel.is_final = true;
            // If the last switch-out was not seen, it is lost, so the task ends here.
            if unseen {
                self.end_task(ix, time);
            }
            self.doubt_unwoken(ix);
        }
    }

    // ---- Names, cgroups, snapshots ----

    fn rename(&mut self, rename: &Rename) {
        match self.task(rename.tid) {
            Some(ix) => self.tasks[ix].comm = rename.comm,
            None => {
                self.names.insert(rename.tid, rename.comm);
            }
        }
    }

    fn move_cgroup(&mut self, moved: &CgroupMove) {
        let process = self.task(moved.tid).map(|ix| self.tasks[ix].process);
        // A leader that ended before the recording is no known task, but its tid is still the pid of its process.
        if let Some(process) = process.or(self.by_tgid.get(moved.tid.0)) {
            self.processes[process].cgroup = moved.cgroup;
        }
    }

    /// Moves a task to its process. A task that ran before an event named its process had a process of its own
    /// until now.
    pub(super) fn settle(&mut self, ix: TaskIx, tgid: Tgid, ppid: Option<Tgid>, argv: Argv) {
        let old = self.tasks[ix].process;
        let process = &self.processes[old];
        if process.pid == tgid || process.ppid.is_some() {
            return;
        }
        let parent = ppid.and_then(|ppid| self.listed(ppid));
        let new = self.process_of(ProcessEntry {
            pid: tgid,
            ppid,
            parent,
            argv,
            ..ProcessEntry::default()
        });
        self.flush(old);
        let lives = usize::from(!self.tasks[ix].is_dead());
        let process = &mut self.processes[old];
        process.threads.retain(|thread| *thread != ix);
        process.live = process.live.saturating_sub(lives);
        if process.threads.is_empty() {
            process.moved = Some(new);
        }
        let process = &mut self.processes[new];
        process.threads.push(ix);
        process.live += lives;
        self.tasks[ix].process = new;
    }

    /// Whether it is certain that no other task had this tid before. Then no lifecycle events are lost, and one of two
    /// conditions holds. Either the recording has all tasks of the machine. Or the recording has the names of all
    /// unrecorded tasks in its events, and none of these tasks has this tid.
    fn is_first_holder(&self, tid: Tid, time: Ktime) -> bool {
        let outside = &self.collectors.outside;
        let is_complete = self.system_wide || outside.is_complete() && !outside.knows(tid);
        is_complete && self.gaps.lives_before(time).is_none()
    }

    /// Notes that a task may run only on `cpu` from now on or, if it may run on several CPUs, that there is no such
    /// limit.
    fn pin(&mut self, pinned: &Pinned, cpu: Option<CpuId>) {
        if let Some(ix) = self.task(pinned.tid) {
            self.tasks[ix].pinned = cpu.filter(|_| pinned.pinned);
        }
    }

    /// Processes an event about a process of a container's runtime.
    fn container(&mut self, container: &Container) {
        if let Some(ns) = container.throttled {
            self.collectors.containers.throttle(&container.id, ns);
        } else if container.evidence == Evidence::NotRecorded {
            self.collectors.containers.not_recorded += 1;
        } else if container.id.is_empty() && container.evidence != Evidence::Descendant {
            self.collectors.containers.adopt(container);
        } else if let Some(ix) = self.task(container.tid) {
            let process = self.tasks[ix].process;
            self.collectors.containers.take(process, container);
        }
    }

    /// Processes the snapshot of a task that existed when the recording began, or that is recorded from now on.
    fn snapshot(&mut self, time: Ktime, snapshot: &Snapshot) {
        self.names.insert(snapshot.tid, snapshot.comm);
        if !snapshot.followed || snapshot.tid == Tid::IDLE {
            return;
        }
        let known = self.task(snapshot.tid);
        let known = known.filter(|ix| !self.tasks[*ix].is_dead());
        let is_zombie = !snapshot.on_cpu && self.states.is_dead(snapshot.state);
        let (ppid, argv) = (Some(snapshot.parent_tgid), snapshot.argv.clone());
        let ix = match known {
            Some(ix) if self.only_names_the_parent(ix, snapshot) => {
                let process = self.tasks[ix].process;
                self.processes[process].ppid = ppid;
                return;
            }
            Some(ix) => {
                self.settle(ix, snapshot.tgid, ppid, argv);
                ix
            }
            None => {
                let parent = self.listed(snapshot.parent_tgid);
                let process = self.process_of(ProcessEntry {
                    pid: snapshot.tgid,
                    ppid,
                    parent,
                    argv,
                    ..ProcessEntry::default()
                });
                // A snapshot within the recording is of a task that has just come into the followed cgroup, so the task
                // starts at that time.
                let start = time.max(self.start);
                self.add_task(Task {
                    started_before: true,
                    ..Task::new(snapshot.tid, process, start, State::Unknown)
                })
            }
        };
        let process = self.tasks[ix].process;
        let adopted = self.collectors.containers.begin(snapshot.tgid, process);
        self.collectors.servers.begin(snapshot.tgid, process);
        self.snapshot_process(process, time, snapshot, adopted);
        if is_zombie {
            self.end_task(ix, time);
            // A zombie ended at an unknown time before the recording, and is no part of the span. Other threads of its
            // process may still live.
            if known.is_none() {
                self.tasks[ix].end = Some(Ktime(self.start.0.saturating_sub(1)));
            }
            return;
        }
        self.snapshot_state(ix, time, snapshot);
    }

    /// Whether only the parent's pid is taken from this snapshot, because the process was forked within the recording.
    /// Its recorded creator stays: with `CLONE_PARENT` of clone(2), a process has another parent than its creator, and
    /// the critical path has to lead to the creator.
    fn only_names_the_parent(&self, ix: TaskIx, snapshot: &Snapshot) -> bool {
        let process = &self.processes[self.tasks[ix].process];
        self.begun
            && process.pid == snapshot.tgid
            && snapshot.tid.0 == snapshot.tgid.0
            && process.forked
            && process.parent.is_some()
    }

    /// Processes the facts that a snapshot states about its process. `executes` is whether an event with the exec
    /// of the process comes next.
    fn snapshot_process(
        &mut self,
        process: ProcIx,
        time: Ktime,
        snapshot: &Snapshot,
        executes: bool,
    ) {
        let parent = self.listed(snapshot.parent_tgid);
        self.flush(process);
        let entry = &mut self.processes[process];
        if !entry.forked && entry.ppid != Some(snapshot.parent_tgid) {
            entry.parent = parent; // `begin` looks up a missing one again
        }
        entry.ppid = Some(snapshot.parent_tgid);
        entry.kthread = snapshot.kthread;
        entry.cgroup = snapshot.cgroup;
        let is_leader = snapshot.tid.0 == snapshot.tgid.0;
        let known = executes || self.root == Some(snapshot.tgid);
        let executes = is_leader && !snapshot.kthread && entry.execs.is_empty();
        // If the leader was gone before its snapshot, the arguments come from the snapshot of another thread.
        if executes || entry.argv == Argv::default() && entry.execs.is_empty() {
            entry.argv = snapshot.argv.clone();
        }
        // COMMAND is still a copy of the recorder at its snapshot. Its first program comes with its exec.
        if executes && !known {
            let program = ExecSpan {
                start: time.max(self.start),
                started_before: true,
                end: self.end,
                argv: snapshot.argv.clone(),
                comm: snapshot.comm,
                ..ExecSpan::default()
            };
            push_first(&mut entry.execs, program);
        }
    }

    fn snapshot_state(&mut self, ix: TaskIx, time: Ktime, snapshot: &Snapshot) {
        let task = &mut self.tasks[ix];
        task.comm = snapshot.comm;
        task.ns_tid = snapshot.ns_tid;
        let missing = self.gaps.any().first_in(task.last_event_ts, time).is_some();
        if task.is_known_better(snapshot.on_cpu) && !missing {
            return;
        }
        task.woken = false;
        // The state in the snapshot is not used in two cases: the next event of the task may be lost, or the task is on
        // a CPU and may have got its tid by an exec that is lost.
        let unsure = self.basis != Basis::Events
            || self.gaps.any().covers(time)
            || snapshot.on_cpu && self.gaps.lives_before(time).is_some();
        let state = if unsure {
            State::Unknown
        } else {
            self.states.listed(snapshot.state, snapshot.on_cpu)
        };
        task.epoch = self.concurrency.change(time, task.epoch, task.state, state);
        task.state = state;
        let before = std::mem::replace(&mut task.since, time);
        task.last_event_ts = time;
        if snapshot.on_cpu {
            task.off_since = None;
            self.unplaced.push(ix);
        }
        self.account(ix, before, time, Bucket::Unknown);
    }
}

/// The kernel's `maxrss` in bytes, if it has grown between two readings: then the last program of the process has
/// reached this size. `None` if it has not grown.
fn grown(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    now.filter(|now| before.is_some_and(|before| *now > before))
}
