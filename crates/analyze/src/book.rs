//! Keeps the books while the events go by: which task is what, in which state,
//! and how much time it has spent in each.

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{
    Argv, CgroupId, Comm, CpuId, Exec, Exit, Final, Fork, Ktime, LifeEvent, LifeKind, Rename,
    SchedEvent, SchedKind, Snapshot, Tgid, Tid,
};
use tr_format::meta::{Metadata, Scope};

use crate::gaps::Gaps;
use crate::model::{Causes, ExecSpan, KernelFigures, OffCpu, Switches, Times};
use crate::tasks::{Bucket, Ended, State, States, Wait};

/// A task, by its place in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskIx(pub usize);

/// What the book knows of a task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its tid, the last one.
    pub tid: Tid,
    /// Its tid in its own namespace.
    pub ns_tid: Tid,
    /// Its process, by place.
    pub process: usize,
    /// Its last name.
    pub comm: Comm,
    /// When it began; the span's start when it was there before.
    pub start: Ktime,
    /// It was there before the span.
    pub started_before: bool,
    /// Its last switch-out.
    pub end: Option<Ktime>,
    /// Where its time went.
    pub times: Times,
    /// Parts of it.
    pub causes: Causes,
    /// Its context switches.
    pub switches: Switches,
    /// Its longest off-CPU stretch; the waker is a task's place.
    pub max_off_cpu: Option<(OffCpu, Option<TaskIx>)>,
    /// Moves between CPUs.
    pub migrations: u64,
    /// Its exit.
    pub exit: Option<Exit>,
    /// The kernel's figures.
    pub kernel: Option<KernelFigures>,
    state: State,
    since: Ktime,
    /// It was woken since its last switch-in.
    woken: bool,
    /// The stretch off CPU that it is in: since when, and who ended its wait.
    off_since: Option<Ktime>,
    waker: Option<TaskIx>,
    last_cpu: Option<CpuId>,
    /// The child that runs in its memory.
    vfork_child: Option<TaskIx>,
    parent: Option<TaskIx>,
    /// An event of it has been seen.
    seen: bool,
}

/// What the book knows of a process.
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
    /// It has exited: the raw status.
    pub status: Option<u32>,
    /// Largest resident set.
    pub max_rss: Option<u64>,
}

/// The book.
pub struct Book {
    /// Every task met, in the order in which they were met.
    pub tasks: Vec<Task>,
    /// Every process met; a parent always before its children.
    pub processes: Vec<ProcessEntry>,
    /// Paths of cgroups.
    pub cgroups: BTreeMap<CgroupId, Box<[u8]>>,
    /// Contradictions, by kind.
    pub violations: BTreeMap<&'static str, u64>,
    /// How long n recorded tasks were running.
    pub concurrency: Vec<u64>,
    /// Names of tasks that are not recorded.
    pub names: HashMap<Tid, Comm>,
    /// Forks, execs and exits counted.
    pub counts: [u64; 3],
    gaps: Gaps,
    states: States,
    start: Ktime,
    end: Ktime,
    only: Option<CpuId>,
    /// New tasks may appear without a fork: the whole machine is recorded.
    open: bool,
    /// Wakings on other CPUs are not recorded.
    partial: bool,
    /// COMMAND's process.
    root: Option<Tgid>,
    by_tid: HashMap<Tid, TaskIx>,
    by_tgid: HashMap<Tgid, usize>,
    current: BTreeMap<CpuId, TaskIx>,
    /// When each CPU last switched.
    last_switch: BTreeMap<CpuId, Ktime>,
    running: usize,
    running_since: Ktime,
}

impl Book {
    /// An empty book for the span `start..end`.
    pub fn new(meta: &Metadata, gaps: Gaps, start: Ktime, end: Ktime, only: Option<CpuId>) -> Book {
        Book {
            tasks: Vec::new(),
            processes: Vec::new(),
            cgroups: BTreeMap::new(),
            violations: BTreeMap::new(),
            concurrency: Vec::new(),
            names: HashMap::new(),
            counts: [0; 3],
            gaps,
            states: States::new(&meta.states),
            start,
            end: end.max(start),
            only,
            open: meta.scope == Scope::All,
            partial: !meta.options.cpus.is_empty(),
            root: meta.root,
            by_tid: HashMap::new(),
            by_tgid: HashMap::new(),
            current: BTreeMap::new(),
            last_switch: BTreeMap::new(),
            running: 0,
            running_since: start,
        }
    }

    /// The gaps, for one more that was found on the way.
    pub fn gaps(&mut self) -> &mut Gaps {
        &mut self.gaps
    }

    fn violation(&mut self, what: &'static str) {
        *self.violations.entry(what).or_default() += 1;
    }

    // ---- Time ----

    /// Closes a task's state at `now`, and enters a new one.
    fn enter(&mut self, ix: TaskIx, now: Ktime, state: State, ended: Ended) {
        let Some(task) = self.tasks.get(ix.0) else {
            return;
        };
        let (from, old) = (task.since, task.state);
        if old == State::Dead {
            return;
        }
        // Events are in order; only a damaged or skewed trace steps back.
        let now = now.max(from);
        let spans = match old {
            State::On(cpu) => self.gaps.of(cpu),
            _ => Some(self.gaps.any()),
        };
        // A gap makes everything unknown from its first lost event on, until
        // the next event that says something: this one.
        let known = spans
            .and_then(|spans| spans.first_in(from, now))
            .unwrap_or(now);
        // Without an unbroken record a switch-in proves nothing about before.
        let broken = known < now || (self.partial && ended == Ended::SwitchedIn);
        let bucket = match old {
            State::Waiting(wait) if broken && ended == Ended::SwitchedIn => match self.partial {
                true => Bucket::Unknown,
                false => Bucket::Wait(wait),
            },
            old => old.bucket(ended),
        };
        self.account(ix, from, known, bucket);
        self.account(ix, known, now, Bucket::Unknown);
        // Inside a gap only a task on an intact CPU is known.
        let state = match state {
            State::On(_) | State::Dead => state,
            _ if self.gaps.any().end_at(now).is_some_and(|end| end > now) => State::Unknown,
            _ => state,
        };
        let was_on = matches!(old, State::On(_));
        let is_on = matches!(state, State::On(_));
        if was_on != is_on {
            self.count_running(now, is_on);
        }
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.state = state;
            task.since = now;
            task.seen = true;
            if state == State::Dead {
                task.end = Some(now);
            }
        }
    }

    fn count_running(&mut self, now: Ktime, more: bool) {
        let to = now.clamp(self.start, self.end);
        if self.concurrency.len() <= self.running {
            self.concurrency.resize(self.running + 1, 0);
        }
        let missing = self.gaps.any().covered(self.running_since, to);
        if let Some(slot) = self.concurrency.get_mut(self.running) {
            *slot += to.since(self.running_since).saturating_sub(missing);
        }
        self.running_since = to;
        self.running = if more {
            self.running + 1
        } else {
            self.running.saturating_sub(1)
        };
    }

    /// Adds the part of `from..to` inside the span to a bucket of the task, of
    /// its process's program.
    fn account(&mut self, ix: TaskIx, from: Ktime, to: Ktime, bucket: Bucket) {
        let ns = to.min(self.end).since(from.max(self.start));
        let Some(task) = self.tasks.get_mut(ix.0).filter(|_| ns > 0) else {
            return;
        };
        let (mut times, mut causes) = (Times::default(), Causes::default());
        match bucket {
            Bucket::OnCpu(cpu) if self.only.is_none_or(|only| only == cpu) => times.on_cpu = ns,
            // With --cpu: what happens elsewhere is not known from that CPU.
            Bucket::OnCpu(_) | Bucket::Unknown | Bucket::Wait(Wait::Unknown) => times.unknown = ns,
            Bucket::RunQueue { preempted } => {
                times.run_queue = ns;
                causes.preempted = if preempted { ns } else { 0 };
            }
            Bucket::Wait(Wait::Sleep) => times.sleep = ns,
            Bucket::Wait(Wait::Stopped) => (times.sleep, causes.stopped) = (ns, ns),
            Bucket::Wait(Wait::Io) => (times.blocked, causes.io) = (ns, ns),
            Bucket::Wait(Wait::Vfork) => (times.blocked, causes.vfork) = (ns, ns),
            Bucket::Wait(Wait::Blocked) => times.blocked = ns,
        }
        task.times.add(&times);
        task.causes.add(&causes);
        if let Some(exec) = self
            .processes
            .get_mut(task.process)
            .and_then(|p| p.execs.last_mut())
        {
            exec.times.add(&times);
        }
    }

    // ---- Tasks ----

    fn task(&self, tid: Tid) -> Option<TaskIx> {
        self.by_tid.get(&tid).copied()
    }

    fn state(&self, ix: TaskIx) -> State {
        self.tasks.get(ix.0).map_or(State::Dead, |task| task.state)
    }

    /// A task by its tid at a switch-in or waking. A dead leader's tid that
    /// runs again is the thread that is taking over the process by an exec
    /// (`de_thread` gives it the leader's tid before the exec is reported).
    fn task_to_run(&mut self, tid: Tid, time: Ktime) -> Option<TaskIx> {
        let ix = match self.task(tid) {
            Some(ix) => ix,
            None if self.open => self.appear(tid, time),
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
        self.open.then(|| self.appear(tid, time))
    }

    /// A task that nothing has announced: its fork came before the recording,
    /// or was lost.
    fn appear(&mut self, tid: Tid, time: Ktime) -> TaskIx {
        let comm = self.names.get(&tid).copied().unwrap_or_default();
        let process = self.process_of(
            Tgid(tid.0),
            None,
            None,
            Argv {
                full_len: None,
                ..Argv::default()
            },
        );
        let lost = time > self.start && self.by_tid.contains_key(&tid);
        let start = if lost { time } else { self.start };
        self.add_task(tid, tid, process, comm, start, !lost, State::Unknown, None)
    }

    fn process_of(
        &mut self,
        pid: Tgid,
        ppid: Option<Tgid>,
        parent: Option<usize>,
        argv: Argv,
    ) -> usize {
        if let Some(process) = self.by_tgid.get(&pid) {
            if self.processes.get(*process).is_some_and(|p| p.live > 0) {
                return *process;
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
            status: None,
            max_rss: None,
        });
        self.by_tgid.insert(pid, self.processes.len() - 1);
        self.processes.len() - 1
    }

    #[allow(clippy::too_many_arguments)] // one call for each way in which tasks come to be
    fn add_task(
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
            kernel: None,
            state,
            since: start,
            woken: false,
            off_since: Some(start),
            waker: None,
            last_cpu: None,
            vfork_child: None,
            parent,
            seen: false,
        });
        if let Some(process) = self.processes.get_mut(process) {
            process.threads.push(ix);
            process.live += 1;
        }
        self.by_tid.insert(tid, ix);
        ix
    }

    /// A task is gone.
    fn end_task(&mut self, ix: TaskIx, time: Ktime) {
        if self.state(ix) == State::Dead {
            return;
        }
        self.enter(ix, time, State::Dead, Ended::Otherwise);
        let Some(task) = self.tasks.get(ix.0) else {
            return;
        };
        let process = task.process;
        if let Some(parent) = task.parent {
            self.end_vfork(parent, ix);
        }
        let Some(process) = self.processes.get_mut(process) else {
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
                let leader = process.threads.first();
                let status = leader
                    .and_then(|l| self.tasks.get(l.0))
                    .and_then(|l| l.exit.as_ref());
                process.status = status.map(|exit| exit.status);
            }
        }
    }

    /// The child has left its parent's memory.
    fn end_vfork(&mut self, parent: TaskIx, child: TaskIx) {
        if let Some(parent) = self.tasks.get_mut(parent.0) {
            if parent.vfork_child == Some(child) {
                parent.vfork_child = None;
            }
        }
    }

    // ---- Events ----

    /// Takes a scheduling event.
    pub fn sched(&mut self, cpu: CpuId, event: &SchedEvent) {
        match event.kind {
            SchedKind::Switch {
                prev,
                next,
                prev_state,
                preempt,
                iowait,
            } => {
                self.switch_out(cpu, event.time, prev, prev_state, preempt, iowait);
                self.switch_in(cpu, event.time, next);
                self.last_switch.insert(cpu, event.time);
            }
            SchedKind::Waking {
                waker,
                wakee,
                irq,
                new,
                vfork,
            } => {
                self.waking(event.time, waker, wakee, irq, new && vfork);
            }
        }
    }

    fn switch_out(
        &mut self,
        cpu: CpuId,
        time: Ktime,
        prev: Tid,
        state: u16,
        preempt: bool,
        iowait: bool,
    ) {
        let running = self.current.remove(&cpu);
        if prev == Tid::IDLE {
            return;
        }
        let named = match self.task(prev) {
            None if self.open => Some(self.appear(prev, time)),
            named => named,
        };
        let here = |book: &Book, ix: TaskIx| book.state(ix) == State::On(cpu);
        // de_thread may have swapped tids while the task was running: who runs
        // here is certain, its name is not.
        let ix = match (named, running) {
            (Some(named), Some(running))
                if named != running && !here(self, named) && here(self, running) =>
            {
                let process = |book: &Book, ix: TaskIx| book.tasks.get(ix.0).map(|t| t.process);
                if process(self, named) == process(self, running) {
                    if !self.states.is_dead(state) {
                        self.by_tid.insert(prev, running);
                    }
                    running
                } else {
                    named
                }
            }
            (Some(named), _) => named,
            (None, _) => return,
        };
        match self.state(ix) {
            State::On(on) if on == cpu => {}
            State::On(_) => self.violation("switched out on another CPU than it ran on"),
            State::Dead => {
                self.violation("ran after its end");
                return;
            }
            State::Unknown => {}
            _ if self.in_gap(ix, time) || !self.seen(ix) => {}
            _ => self.violation("switched out, but its switch-in is missing"),
        }
        // What it was before is not known when it was not seen coming.
        if !matches!(self.state(ix), State::On(_)) {
            self.forget(ix, cpu, time);
        }
        let counted = u64::from(time >= self.start && time <= self.end);
        if self.states.is_dead(state) {
            if let Some(task) = self.tasks.get_mut(ix.0) {
                task.switches.voluntary += counted;
            }
            self.end_task(ix, time);
            return;
        }
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        // As the kernel counts: __schedule's switch_count.
        if preempt || state == 0 && !task.woken {
            task.switches.involuntary += counted;
        } else {
            task.switches.voluntary += counted;
        }
        let new = match state {
            _ if preempt => State::Runnable { preempted: true },
            // Woken before its switch-out was complete: a sleep of no length.
            0 => State::Runnable {
                preempted: !task.woken,
            },
            state => State::Waiting(self.states.wait(state, iowait, task.vfork_child.is_some())),
        };
        task.off_since = Some(time);
        task.waker = None;
        self.enter(ix, time, new, Ended::Otherwise);
    }

    /// The task was on `cpu` without having been seen to get there, since at
    /// the earliest that CPU's last switch: what it did from then on is not
    /// known. Before, a runnable task was still waiting.
    fn forget(&mut self, ix: TaskIx, cpu: CpuId, time: Ktime) {
        let Some(task) = self.tasks.get(ix.0) else {
            return;
        };
        let since = task.since;
        let known = match task.state {
            State::Runnable { .. } => self
                .last_switch
                .get(&cpu)
                .copied()
                .unwrap_or(since)
                .clamp(since, time.max(since)),
            _ => since,
        };
        let state = task.state;
        self.enter(ix, known, state, Ended::Otherwise);
        self.account(ix, known, time, Bucket::Unknown);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.state = State::Unknown;
            task.since = task.since.max(time);
            task.off_since = None;
        }
    }

    fn seen(&self, ix: TaskIx) -> bool {
        self.tasks.get(ix.0).is_some_and(|task| task.seen)
    }

    /// A gap lies between the task's last event and now.
    fn in_gap(&self, ix: TaskIx, time: Ktime) -> bool {
        self.tasks
            .get(ix.0)
            .is_some_and(|task| self.gaps.any().first_in(task.since, time).is_some())
    }

    fn switch_in(&mut self, cpu: CpuId, time: Ktime, next: Tid) {
        if next == Tid::IDLE {
            return;
        }
        let Some(ix) = self.task_to_run(next, time) else {
            return;
        };
        if let State::On(other) = self.state(ix) {
            let lost = self.gaps.of(other).is_some_and(|spans| {
                self.tasks
                    .get(ix.0)
                    .is_some_and(|task| spans.first_in(task.since, time).is_some())
            });
            if !lost {
                self.violation("on two CPUs at once");
            }
        }
        let counted = u64::from(time >= self.start && time <= self.end);
        self.close_off_cpu(ix, time, false);
        self.enter(ix, time, State::On(cpu), Ended::SwitchedIn);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.woken = false;
            if task.last_cpu.is_some_and(|last| last != cpu) {
                task.migrations += counted;
            }
            task.last_cpu = Some(cpu);
        }
        self.current.insert(cpu, ix);
    }

    /// Ends an off-CPU stretch and keeps it when it is the longest.
    fn close_off_cpu(&mut self, ix: TaskIx, time: Ktime, at_end: bool) {
        let (start, end) = (self.start, self.end);
        let Some(task) = self.tasks.get(ix.0) else {
            return;
        };
        let Some(since) = task.off_since else { return };
        let from = since.max(start);
        let length = time.min(end).since(from);
        let censored = at_end
            || since < start
            || time > end
            || task.started_before && !task.seen
            || self.gaps.any().first_in(from, time).is_some();
        let waker = task.waker;
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.off_since = None;
            if length
                > task
                    .max_off_cpu
                    .as_ref()
                    .map_or(0, |(longest, _)| longest.length)
            {
                task.max_off_cpu = Some((
                    OffCpu {
                        length,
                        since: from,
                        waker: None,
                        censored,
                    },
                    waker,
                ));
            }
        }
    }

    fn waking(&mut self, time: Ktime, waker: Tid, wakee: Tid, irq: bool, vfork: bool) {
        let Some(ix) = self.task_to_run(wakee, time) else {
            return;
        };
        let waker = if irq { None } else { self.task(waker) };
        if vfork {
            let parent = self.tasks.get(ix.0).and_then(|task| task.parent);
            if let Some(parent) = parent.and_then(|parent| self.tasks.get_mut(parent.0)) {
                parent.vfork_child = Some(ix);
            }
        }
        match self.state(ix) {
            // It had set its state but not yet left the CPU, or was woken for
            // nothing; which, its switch-out tells.
            State::On(_) => {
                if let Some(task) = self.tasks.get_mut(ix.0) {
                    task.woken = true;
                }
            }
            State::Runnable { .. } | State::Dead => {}
            State::Waiting(_) | State::Unknown => {
                if let Some(task) = self.tasks.get_mut(ix.0) {
                    task.waker = waker;
                }
                self.enter(ix, time, State::Runnable { preempted: false }, Ended::Woken);
            }
        }
    }

    /// Takes a lifecycle event, or one of the recorder's.
    pub fn life(&mut self, event: &LifeEvent) {
        let time = event.time;
        let counted = time >= self.start && time <= self.end;
        match &event.kind {
            LifeKind::Fork(fork) => {
                self.counts[0] += u64::from(counted);
                self.fork(time, fork);
            }
            LifeKind::Exec(exec) => {
                self.counts[1] += u64::from(counted);
                self.exec(time, exec);
            }
            LifeKind::Exit(exit) => {
                self.counts[2] += u64::from(counted);
                self.exit(time, exit);
            }
            LifeKind::Final(last) => self.last(last),
            LifeKind::Rename(rename) => self.rename(rename),
            LifeKind::CgroupPath(path) => {
                self.cgroups.insert(path.id, path.path.clone());
            }
            LifeKind::CgroupMove(moved) => {
                let process = self
                    .task(moved.tid)
                    .and_then(|ix| self.tasks.get(ix.0))
                    .map(|task| task.process);
                if let Some(process) = process.and_then(|p| self.processes.get_mut(p)) {
                    process.cgroup = moved.cgroup;
                }
            }
            LifeKind::Snapshot(snapshot) => self.snapshot(snapshot),
            LifeKind::Lost(_) | LifeKind::Clock(_) | LifeKind::Progress | LifeKind::Mark(_) => {}
        }
    }

    fn fork(&mut self, time: Ktime, fork: &Fork) {
        // A new holder of a tid: the old one is gone, seen or not.
        if let Some(old) = self.task(fork.tid) {
            self.end_task(old, time);
        }
        let parent = self.task(fork.parent_tid);
        let parent_process = parent
            .and_then(|p| self.tasks.get(p.0))
            .map(|task| task.process);
        let is_thread = fork.tid.0 != fork.tgid.0;
        let process = match self.by_tgid.get(&fork.tgid).copied() {
            Some(process) if is_thread => process,
            _ => {
                let argv = parent_process
                    .and_then(|p| self.processes.get(p))
                    .map(|p| p.argv.clone());
                let argv = argv.unwrap_or(Argv {
                    full_len: None,
                    ..Argv::default()
                });
                self.process_of(fork.tgid, Some(fork.parent_tgid), parent_process, argv)
            }
        };
        if let Some(process) = self.processes.get_mut(process) {
            process.cgroup = fork.cgroup;
        }
        let parent = if is_thread { None } else { parent };
        // It cannot run before its first waking: it waits for a CPU from here.
        let state = State::Runnable { preempted: false };
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
            task.seen = true;
        }
    }

    fn exec(&mut self, time: Ktime, exec: &Exec) {
        let caller = self
            .task(exec.old_tid)
            .filter(|ix| self.state(*ix) != State::Dead);
        let Some(ix) = caller.or_else(|| self.task(exec.tid)) else {
            return;
        };
        let Some(process) = self.tasks.get(ix.0).map(|task| task.process) else {
            return;
        };
        if exec.old_tid != exec.tid {
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
        let state = self.state(ix);
        let seen = self.seen(ix);
        self.enter(ix, time, state, Ended::Otherwise);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.comm = exec.comm;
            task.seen = seen;
            if let Some(parent) = task.parent {
                self.end_vfork(parent, ix);
            }
        }
        let at = time.clamp(self.start, self.end);
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
        let (after, inside) = (time > self.end, time <= self.end);
        let Some(process) = self.processes.get_mut(process) else {
            return;
        };
        if after {
            return;
        }
        if let Some(last) = process.execs.last_mut() {
            (last.end, last.ended) = (at, inside);
        }
        process.execs.push(span);
        process.argv = exec.argv.clone();
        process.cgroup = exec.cgroup;
    }

    fn exit(&mut self, time: Ktime, exit: &Exit) {
        let Some(ix) = self
            .task(exit.tid)
            .filter(|ix| self.state(*ix) != State::Dead)
        else {
            return;
        };
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        task.exit = Some(exit.clone());
        task.kernel = Some(KernelFigures {
            sum_exec_runtime: exit.sum_exec_runtime,
            is_final: false,
            utime: exit.utime,
            stime: exit.stime,
            nvcsw: exit.nvcsw,
            nivcsw: exit.nivcsw,
        });
        let process = task.process;
        if time > self.end {
            return;
        }
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
    fn last(&mut self, last: &Final) {
        let Some(task) = self.task(last.tid).and_then(|ix| self.tasks.get_mut(ix.0)) else {
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

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.names.insert(snapshot.tid, snapshot.comm);
        if !snapshot.followed || snapshot.tid == Tid::IDLE {
            return;
        }
        let known = self
            .task(snapshot.tid)
            .filter(|ix| self.state(*ix) != State::Dead);
        let ix = match known {
            Some(ix) => ix,
            None => {
                let parent = self.by_tgid.get(&snapshot.parent_tgid).copied();
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
        let (start, end) = (self.start, self.end);
        if let Some(entry) = self.processes.get_mut(process) {
            entry.ppid = Some(snapshot.parent_tgid);
            entry.kthread = snapshot.kthread;
            entry.cgroup = snapshot.cgroup;
            let is_leader = snapshot.tid.0 == snapshot.tgid.0;
            // COMMAND is still a copy of the recorder here; its program comes.
            let own = self.root == Some(snapshot.tgid);
            if is_leader && !snapshot.kthread && !own && entry.execs.is_empty() {
                entry.argv = snapshot.argv.clone();
                entry.execs.push(ExecSpan {
                    start,
                    started_before: true,
                    end,
                    ended: false,
                    filename: Box::default(),
                    argv: snapshot.argv.clone(),
                    comm: snapshot.comm,
                    times: Times::default(),
                });
            }
        }
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        task.comm = snapshot.comm;
        task.ns_tid = snapshot.ns_tid;
        if task.seen {
            return; // its own events are the better witness
        }
        let state = match snapshot.state {
            0 if snapshot.on_cpu => return, // which CPU it is on, its switch-out tells
            0 => State::Runnable { preempted: true },
            _ if snapshot.on_cpu => return,
            state => State::Waiting(self.states.wait(state, false, false)),
        };
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.state = state;
        }
    }

    /// The span is over: closes every task's last state.
    pub fn finish(&mut self) {
        for at in 0..self.tasks.len() {
            let ix = TaskIx(at);
            if self.state(ix) == State::Dead {
                continue;
            }
            self.close_off_cpu(ix, self.end, true);
            let state = self.state(ix);
            self.enter(ix, self.end, state, Ended::Otherwise);
        }
        let end = self.end;
        self.count_running(end, false);
        self.concurrency.resize(self.concurrency.len().max(1), 0);
    }

    /// Time of the span in which the number of running tasks was not known.
    pub fn concurrency_unknown(&self) -> u64 {
        self.end
            .since(self.start)
            .saturating_sub(self.concurrency.iter().sum())
    }
}
