//! Keeps the books while the events go by: which task is what, in which state,
//! and how much time it has spent in each.

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{
    Argv, CgroupId, Comm, CpuId, Exec, Exit, Final, Fork, Ktime, LifeEvent, LifeKind, Rename,
    SchedEvent, SchedKind, Snapshot, Stream, Tgid, Tid,
};
use tr_format::meta::{Metadata, Scope};

use crate::concurrency::{Concurrency, Epoch};
use crate::gaps::{Gaps, Spans};
use crate::model::{Causes, ExecSpan, KernelFigures, OffCpu, Switches, Times};
use crate::order::Event;
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
    /// Of its state, for the concurrency.
    epoch: Epoch,
    since: Ktime,
    /// The stamp of its last event, which may lie before the span.
    told: Ktime,
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
    /// Its fork was seen.
    pub forked: bool,
    /// An exit told that no thread is left.
    pub group_dead: bool,
    /// Its only thread turned out to belong to this other process.
    pub moved: Option<usize>,
}

/// The kernel did not report a switch-in.
const UNSEEN: &str = "ran without having been switched in";

/// The book.
pub struct Book {
    /// Every task met, in the order in which they were met.
    pub tasks: Vec<Task>,
    /// Every process met.
    pub processes: Vec<ProcessEntry>,
    /// Paths of cgroups.
    pub cgroups: BTreeMap<CgroupId, Box<[u8]>>,
    /// Contradictions, by kind.
    pub violations: BTreeMap<&'static str, u64>,
    /// How long n recorded tasks were running.
    pub concurrency: Concurrency,
    /// Names of tasks that are not recorded.
    pub names: HashMap<Tid, Comm>,
    /// Forks, execs and exits counted.
    pub counts: [u64; 3],
    gaps: Gaps,
    states: States,
    start: Ktime,
    end: Ktime,
    only: Option<CpuId>,
    /// New tasks may appear without a fork: the whole machine is recorded, or
    /// the tasks that were there before the recording are still being listed.
    open: bool,
    /// The recording has begun: every task that was there before is listed.
    begun: bool,
    /// When it began, which the span need not.
    recorded_from: Ktime,
    /// The whole machine is recorded.
    everybody: bool,
    /// Wakings on other CPUs are not recorded.
    partial: bool,
    /// COMMAND's process.
    root: Option<Tgid>,
    by_tid: HashMap<Tid, TaskIx>,
    by_tgid: HashMap<Tgid, usize>,
    current: BTreeMap<CpuId, TaskIx>,
    /// When each CPU last switched.
    last_switch: BTreeMap<CpuId, Ktime>,
    /// The gaps that have not begun yet, the next one last.
    coming: Vec<(Ktime, CpuId)>,
    /// The first loss of lifecycle events, if it has not come yet.
    lives_lost: Option<Ktime>,
}

impl Book {
    /// An empty book for the span `start..end`.
    pub fn new(meta: &Metadata, gaps: Gaps, start: Ktime, end: Ktime, only: Option<CpuId>) -> Book {
        let lives_lost = gaps.first_of_lives();
        let mut coming = gaps.starts();
        coming.sort_unstable_by(|a, b| b.cmp(a));
        let end = end.max(start);
        Book {
            tasks: Vec::new(),
            processes: Vec::new(),
            cgroups: BTreeMap::new(),
            violations: BTreeMap::new(),
            concurrency: Concurrency::new(start, end),
            names: HashMap::new(),
            counts: [0; 3],
            gaps,
            states: States::new(&meta.states),
            start,
            end,
            only,
            open: true,
            begun: false,
            recorded_from: meta.start,
            everybody: meta.scope == Scope::All,
            partial: !meta.options.cpus.is_empty(),
            root: meta.root,
            by_tid: HashMap::new(),
            by_tgid: HashMap::new(),
            current: BTreeMap::new(),
            last_switch: BTreeMap::new(),
            coming,
            lives_lost,
        }
    }

    /// The span has its first nanosecond and not its last.
    fn inside(&self, time: Ktime) -> bool {
        (self.start..self.end).contains(&time)
    }

    fn violation(&mut self, what: &'static str) {
        // Who is not followed, and not yet known as such, comes and goes unseen.
        if !self.begun && !self.everybody {
            return;
        }
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
        let (told, now) = (now, now.max(from));
        let spans = match old {
            State::On(Some(cpu)) => self.gaps.of(cpu),
            _ => Some(self.gaps.any()),
        };
        // A gap makes everything unknown from its first lost event on, until
        // the next event that says something: this one.
        let known = spans
            .and_then(|spans| spans.first_in(from, now))
            .unwrap_or(now);
        // Without an unbroken record a switch-in proves nothing about before.
        let lost = |spans: &Spans| {
            spans
                .first_in(from, Ktime(now.0.saturating_add(1)))
                .is_some()
        };
        let broken = self.partial || spans.is_some_and(lost);
        let bucket = match old {
            State::Waiting(_) if self.partial && ended == Ended::SwitchedIn => Bucket::Unknown,
            // A waking that was stamped before its switch-out may have ended
            // this wait as it began; only an unbroken record tells.
            State::Waiting(_) if task.woken && (broken || ended == Ended::Otherwise) => {
                Bucket::Unknown
            }
            State::Waiting(wait) if broken => Bucket::Wait(wait),
            old => old.bucket(ended),
        };
        self.account(ix, from, known, bucket);
        self.account(ix, known, now, Bucket::Unknown);
        // Inside a gap only a task on an intact CPU is known.
        let state = match state {
            State::On(Some(cpu)) => match self.gaps.of(cpu).and_then(|spans| spans.end_at(now)) {
                Some(end) if end > now => State::Unknown,
                _ => state,
            },
            State::On(_) | State::Dead => state,
            _ if self.gaps.any().end_at(now).is_some_and(|end| end > now) => State::Unknown,
            _ => state,
        };
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.epoch = self.concurrency.change(now, task.epoch, old, state);
            task.state = state;
            task.since = now;
            task.told = told;
            task.seen = true;
            if state == State::Dead {
                // One that died before the span is no part of it.
                task.end = Some(if task.started_before { told } else { now });
            }
        }
    }

    /// A CPU's events are missing from `since` on.
    fn lose(&mut self, cpu: CpuId, since: Ktime) {
        self.concurrency.lose(since);
        for (on, ix) in &self.current {
            let Some(task) = self.tasks.get_mut(ix.0).filter(|_| *on != cpu) else {
                continue;
            };
            if task.state == State::On(Some(*on)) {
                task.epoch = self.concurrency.vouch(task.epoch);
            }
        }
    }

    /// Forks may be missing from `since` on: tasks that are not known as
    /// recorded ones may be running from then on, unless everybody is recorded
    /// and shows itself at once.
    fn lose_lives(&mut self, since: Ktime) {
        if !self.everybody || !self.gaps.any().is_empty() {
            self.concurrency.meet(since, State::Unknown);
        }
    }

    /// Passes the gaps that have begun by `now`.
    fn pass_gaps(&mut self, now: Ktime) {
        if let Some(since) = self.lives_lost.take_if(|since| *since <= now) {
            self.lose_lives(since);
        }
        while let Some((since, cpu)) = self.coming.pop_if(|(since, _)| *since <= now) {
            self.lose(cpu, since);
        }
    }

    /// One more gap, found on the way; it has begun just now.
    pub fn lost(&mut self, stream: Stream, since: Ktime, until: Ktime) {
        self.gaps.insert(stream, since, until);
        match stream {
            Stream::Cpu(cpu) => self.lose(cpu, since),
            _ => self.lose_lives(since),
        }
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
            Bucket::OnCpu(cpu) if self.only.is_none_or(|only| cpu == Some(only)) => {
                times.on_cpu = ns;
            }
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
            None if self.open => self.appear(tid, Tgid(tid.0), time),
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
        self.open.then(|| self.appear(tid, Tgid(tid.0), time))
    }

    /// A task that nothing has announced: its fork came before the recording,
    /// or was lost.
    fn appear(&mut self, tid: Tid, tgid: Tgid, time: Ktime) -> TaskIx {
        let comm = self.names.get(&tid).copied().unwrap_or_default();
        let process = self.process_of(
            tgid,
            None,
            None,
            Argv {
                full_len: None,
                ..Argv::default()
            },
        );
        let lost = time > self.start && self.by_tid.contains_key(&tid);
        let start = if lost { time } else { self.start };
        let ix = self.add_task(tid, tid, process, comm, start, !lost, State::Unknown, None);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.since = start.min(time);
        }
        ix
    }

    /// A task whose fork is missing, but not its first waking, by its parent.
    fn appear_child(&mut self, tid: Tid, parent: TaskIx, time: Ktime) -> TaskIx {
        let ix = self.appear(tid, Tgid(tid.0), time);
        let parent_process = self.tasks.get(parent.0).map(|task| task.process);
        // It was forked while events were being lost.
        let born = self.gaps.lives_before(time).unwrap_or(time);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            (task.start, task.since) = (born.max(self.start), born.max(self.start));
            (task.started_before, task.parent) = (born < self.start, Some(parent));
            let process = self.processes.get_mut(task.process);
            if let Some(process) = process.filter(|p| p.parent.is_none()) {
                process.parent = parent_process.filter(|parent| *parent != task.process);
            }
        }
        ix
    }

    fn process_of(
        &mut self,
        pid: Tgid,
        ppid: Option<Tgid>,
        parent: Option<usize>,
        argv: Argv,
    ) -> usize {
        if let Some(at) = self.by_tgid.get(&pid).copied() {
            let (begun, end) = (self.begun, self.end);
            if let Some(process) = self.processes.get_mut(at) {
                if process.live > 0 {
                    return at;
                }
                // Its other threads are not listed yet.
                if !begun && !process.group_dead {
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
            status: None,
            max_rss: None,
            forked: false,
            group_dead: false,
            moved: None,
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
            kernel: None,
            state,
            epoch,
            since: start,
            told: start,
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

    /// The child has left its parent's memory, or is about to: who is not
    /// waiting by now will hardly wait for that.
    fn end_vfork(&mut self, parent: TaskIx, child: TaskIx) {
        if let Some(parent) = self.tasks.get_mut(parent.0) {
            if parent.vfork_child == Some(child) {
                parent.vfork_child = None;
            }
        }
    }

    // ---- Events ----

    /// How badly an event fits what the tasks are doing: 0 well, 1 possible, 2
    /// only when something is missing. Decides between events of several
    /// streams with equal times.
    pub fn misfit(&self, event: &Event) -> u8 {
        let state = |tid: Tid| self.task(tid).map(|ix| self.state(ix));
        match event {
            Event::Sched(cpu, event) => match event.kind {
                SchedKind::Switch { prev, next, .. } => {
                    let leaves = match state(prev).filter(|_| prev != Tid::IDLE) {
                        Some(State::On(on)) if on.is_some_and(|on| on != *cpu) => 2,
                        None | Some(State::On(_) | State::Unknown) => 0,
                        Some(_) => 2,
                    };
                    let enters = match state(next).filter(|_| next != Tid::IDLE) {
                        Some(State::On(_) | State::Dead) => 2,
                        Some(State::Waiting(_)) => 1,
                        None if next != Tid::IDLE => 1,
                        None | Some(State::Runnable { .. } | State::Unknown) => 0,
                    };
                    leaves.max(enters)
                }
                SchedKind::Waking { wakee, .. } => match state(wakee) {
                    Some(State::Dead) => 2,
                    None => 1,
                    _ => 0,
                },
            },
            Event::Life(event) => match &event.kind {
                LifeKind::Fork(fork) => match state(fork.tid) {
                    Some(State::Dead) | None => 0,
                    Some(_) => 2,
                },
                LifeKind::Exec(Exec { old_tid: tid, .. }) | LifeKind::Exit(Exit { tid, .. }) => {
                    match state(*tid) {
                        Some(State::On(_)) => 0,
                        Some(State::Dead) | None => 2,
                        Some(_) => 1,
                    }
                }
                LifeKind::Final(last) => match state(last.tid) {
                    Some(State::Dead) | None => 0,
                    Some(_) => 2,
                },
                _ => 0,
            },
        }
    }

    /// The recording begins. Events before it may name tasks whose listing
    /// comes after them; who is not listed now is not followed.
    fn begin(&mut self, time: Ktime) {
        if self.begun || time < self.recorded_from {
            return;
        }
        self.begun = true;
        self.open = self.everybody;
        // A parent may have been listed after its child.
        for at in 0..self.processes.len() {
            let ppid = self.processes.get(at).and_then(|p| p.ppid);
            let parent = ppid.and_then(|ppid| self.by_tgid.get(&ppid).copied());
            // One that was forked since has a used pid.
            let parent = parent.filter(|at| self.processes.get(*at).is_some_and(|p| !p.forked));
            if let Some(process) = self.processes.get_mut(at) {
                process.parent = process.parent.or(parent.filter(|parent| *parent != at));
            }
        }
        if self.open {
            return;
        }
        for at in 0..self.tasks.len() {
            let listed = |t: &Task| {
                self.processes
                    .get(t.process)
                    .is_some_and(|p| p.ppid.is_some())
            };
            if self.tasks.get(at).is_some_and(|task| !listed(task)) {
                let (start, end) = (self.start, self.end);
                self.enter(TaskIx(at), start, State::Dead, Ended::Otherwise);
                if let Some(task) = self.tasks.get_mut(at) {
                    task.start = end; // no part of the span
                }
            }
        }
        let tasks = &self.tasks;
        let alive = |ix: &TaskIx| tasks.get(ix.0).is_some_and(|t| t.state != State::Dead);
        self.by_tid.retain(|_, ix| alive(ix));
        self.current.retain(|_, ix| alive(ix));
    }

    /// Takes a scheduling event.
    pub fn sched(&mut self, cpu: CpuId, event: &SchedEvent) {
        self.pass_gaps(event.time);
        self.begin(event.time);
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
                self.runs(waker, cpu, event.time);
                self.waking(event.time, waker, wakee, irq, new, new && vfork);
            }
        }
    }

    /// The task that leaves the CPU, named `prev` by the event.
    fn leaving(&mut self, cpu: CpuId, time: Ktime, prev: Tid, state: u16) -> Option<TaskIx> {
        let here = |book: &Book, ix: TaskIx| matches!(book.state(ix), State::On(on) if on.is_none_or(|on| on == cpu));
        let running = self.current.remove(&cpu).filter(|ix| here(self, *ix));
        let named = match self.task(prev) {
            _ if prev == Tid::IDLE => None,
            None if self.open => Some(self.appear(prev, Tgid(prev.0), time)),
            named => named,
        };
        let Some(running) = running.filter(|running| named != Some(*running)) else {
            return named;
        };
        // Who runs here is certain, its name is not: de_thread may have given it
        // another tid, of its own process.
        let process = |ix: TaskIx| self.tasks.get(ix.0).map(|task| task.process);
        let renamed = match named {
            None => prev != Tid::IDLE && self.gaps.lives_before(time).is_some(),
            Some(named) => {
                !here(self, named)
                    && (process(named) == process(running) || self.state(named) == State::Dead)
            }
        };
        if renamed && !self.in_gap(running, time) {
            if !self.states.is_dead(state) {
                self.by_tid.insert(prev, running);
            }
            return Some(running);
        }
        // It has gone without a word.
        if !self.in_gap(running, time) {
            self.violation("another task left the CPU than had come to it");
        }
        if let Some(task) = self.tasks.get_mut(running.0) {
            self.concurrency.advance(time);
            self.concurrency.take_back(task.since);
            task.epoch = self
                .concurrency
                .change(time, task.epoch, task.state, State::Unknown);
            task.state = State::Unknown;
            task.off_since = None;
        }
        named
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
        let Some(ix) = self.leaving(cpu, time, prev, state) else {
            return;
        };
        match self.state(ix) {
            // Now it is known where it has been running since the start.
            State::On(None) => {
                if let Some(task) = self.tasks.get_mut(ix.0) {
                    task.state = State::On(Some(cpu));
                }
            }
            State::On(Some(on)) if on == cpu => {}
            State::On(_) => self.violation("switched out on another CPU than it ran on"),
            State::Dead => {
                self.violation("ran after its end");
                return;
            }
            State::Unknown => {}
            _ if self.in_gap(ix, time) || !self.seen(ix) => {}
            _ => self.violation(UNSEEN),
        }
        // What it was before is not known when it was not seen coming.
        if !matches!(self.state(ix), State::On(_)) {
            self.forget(ix, cpu, time);
        }
        let counted = u64::from(self.inside(time));
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
        if preempt || state == 0 {
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
        task.last_cpu = Some(cpu);
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
        let gap = self.gaps.any().first_in(since, time);
        let known = gap.map_or(known, |gap| known.min(gap));
        let bucket = task.state.bucket(Ended::Otherwise);
        self.account(ix, since, known, bucket);
        self.account(ix, known, time, Bucket::Unknown);
        self.concurrency.advance(time);
        self.concurrency.take_back(known);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.epoch = self
                .concurrency
                .change(time, task.epoch, task.state, State::Unknown);
            task.state = State::Unknown;
            task.since = task.since.max(time);
            task.off_since = None;
        }
    }

    /// An event that only a running task makes: it runs on this CPU, whether or
    /// not its switch-in was seen.
    fn runs(&mut self, tid: Tid, cpu: CpuId, time: Ktime) {
        let ix = match self.task(tid).filter(|_| tid != Tid::IDLE) {
            Some(ix) => ix,
            None if self.open && tid != Tid::IDLE => self.appear(tid, Tgid(tid.0), time),
            None => return,
        };
        match self.state(ix) {
            State::On(_) | State::Dead => return,
            State::Unknown => {}
            _ if self.in_gap(ix, time) || !self.seen(ix) => {}
            _ => self.violation(UNSEEN),
        }
        self.forget(ix, cpu, time);
        self.enter(ix, time, State::On(Some(cpu)), Ended::Otherwise);
        if let Some(task) = self.tasks.get_mut(ix.0) {
            (task.woken, task.last_cpu) = (false, Some(cpu));
        }
        self.current.insert(cpu, ix);
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
            let spans = match other {
                Some(cpu) => self.gaps.of(cpu),
                None => Some(self.gaps.any()),
            };
            let since = self.tasks.get(ix.0).map(|task| task.since);
            let lost = spans
                .zip(since)
                .is_some_and(|(spans, since)| spans.first_in(since, time).is_some());
            if !lost {
                self.violation("on two CPUs at once");
            }
        }
        let counted = u64::from(self.inside(time));
        self.close_off_cpu(ix, time, false);
        self.enter(ix, time, State::On(Some(cpu)), Ended::SwitchedIn);
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

    #[allow(clippy::too_many_arguments)] // the event's own fields
    fn waking(&mut self, time: Ktime, waker: Tid, wakee: Tid, irq: bool, new: bool, vfork: bool) {
        let parent = match self.task(wakee) {
            None if new && !irq && waker != Tid::IDLE => match self.task(waker) {
                None if self.open => Some(self.appear(waker, Tgid(waker.0), time)),
                waker => waker,
            },
            _ => None,
        };
        let ix = match parent {
            // A recorded task's child, whose fork is missing; whether it is a
            // process or a thread, its exit will tell.
            Some(parent) => self.appear_child(wakee, parent, time),
            None => match self.task_to_run(wakee, time) {
                Some(ix) => ix,
                None => return,
            },
        };
        let waker = if irq { None } else { self.task(waker) };
        // After a vfork the parent does nothing before its wait is over; when
        // the child was faster there was no wait.
        if let Some(waker) = waker.and_then(|waker| self.tasks.get_mut(waker.0)) {
            waker.vfork_child = None;
        }
        if vfork {
            let parent = self.tasks.get(ix.0).and_then(|task| task.parent);
            if let Some(parent) = parent.and_then(|parent| self.tasks.get_mut(parent.0)) {
                parent.vfork_child = Some(ix);
            }
        }
        // Its vfork child has let it go; the child's exec is reported later.
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.vfork_child = None;
        }
        match self.state(ix) {
            // It had set its state but not yet left the CPU, or was woken for
            // nothing; which, its switch-out tells.
            State::On(_) => {
                if let Some(task) = self.tasks.get_mut(ix.0) {
                    task.woken = true;
                }
            }
            State::Dead => {}
            // From here on it may run where events are being lost.
            state @ State::Runnable { .. } => {
                if self.gaps.any().end_at(time).is_some_and(|end| end > time) {
                    self.enter(ix, time, state, Ended::Otherwise);
                }
            }
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
        self.pass_gaps(time);
        self.begin(time);
        let counted = self.inside(time);
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
                let process = process.or(self.by_tgid.get(&Tgid(moved.tid.0)).copied());
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
        if let Some(old) = self.task(fork.tid) {
            self.end_task(old, time);
        }
        let parent = match self.task(fork.parent_tid) {
            None if self.open && fork.parent_tid != Tid::IDLE => {
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
                let parent = parent_process.or(self.by_tgid.get(&fork.parent_tgid).copied());
                // A new thread of a process that is not listed yet: whose
                // child that is, its listing tells.
                let (ppid, parent) = match is_thread {
                    true => (None, None),
                    false => (Some(fork.parent_tgid), parent),
                };
                self.process_of(fork.tgid, ppid, parent, argv)
            }
        };
        if let Some(process) = self.processes.get_mut(process) {
            process.cgroup = fork.cgroup;
            process.forked |= !is_thread;
        }
        let parent = if is_thread { None } else { parent };
        // It cannot run before its first waking: it waits for a CPU from here.
        let state = match self.gaps.any().end_at(time) {
            Some(end) if end > time => State::Unknown,
            _ => State::Runnable { preempted: false },
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
            task.seen = true;
        }
    }

    fn exec(&mut self, time: Ktime, exec: &Exec) {
        let caller = self
            .task(exec.old_tid)
            .filter(|ix| self.state(*ix) != State::Dead);
        let ix = match caller.or_else(|| self.task(exec.tid)) {
            Some(ix) => ix,
            None if self.open => self.appear(exec.tid, exec.tgid, time),
            None => return,
        };
        self.settle(ix, exec.tgid, None, Argv::default());
        let Some(process) = self.tasks.get(ix.0).map(|task| task.process) else {
            return;
        };
        if exec.old_tid != exec.tid {
            self.by_tid.remove(&exec.old_tid);
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
            on @ State::On(_) => on,
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
        let after = time >= self.end;
        let Some(process) = self.processes.get_mut(process) else {
            return;
        };
        if after {
            return;
        }
        if time < self.start {
            process.execs.clear(); // over before the span
        }
        if let Some(last) = process.execs.last_mut() {
            (last.end, last.ended) = (at, true);
        }
        process.execs.push(span);
        process.argv = exec.argv.clone();
        process.cgroup = exec.cgroup;
    }

    fn exit(&mut self, time: Ktime, exit: &Exit) {
        let ix = match self.task(exit.tid) {
            _ if time >= self.end => return,
            Some(ix) if self.state(ix) != State::Dead => ix,
            None if self.open => self.appear(exit.tid, exit.tgid, time),
            _ => return,
        };
        self.settle(ix, exit.tgid, None, Argv::default());
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
        let (process, parent) = (task.process, task.parent);
        if let Some(parent) = parent {
            self.end_vfork(parent, ix);
        }
        let Some(process) = self.processes.get_mut(process).filter(|_| exit.group_dead) else {
            return;
        };
        process.group_dead = true;
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

    /// A task that ran before its process was named had one of its own until now.
    fn settle(&mut self, ix: TaskIx, tgid: Tgid, ppid: Option<Tgid>, argv: Argv) {
        let Some(old) = self.tasks.get(ix.0).map(|task| task.process) else {
            return;
        };
        let own = |p: &ProcessEntry| p.pid != tgid && p.ppid.is_none();
        if !self.processes.get(old).is_some_and(own) {
            return;
        }
        let parent = ppid.and_then(|ppid| self.by_tgid.get(&ppid).copied());
        let new = self.process_of(tgid, ppid, parent, argv);
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
        let parent = self.by_tgid.get(&snapshot.parent_tgid).copied();
        if let Some(entry) = self.processes.get_mut(process) {
            if !entry.forked && entry.ppid != Some(snapshot.parent_tgid) {
                entry.parent = parent; // or looked up when all are listed
            }
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
        // Its own events are the better witness, unless some are missing.
        if task.seen && self.gaps.any().first_in(task.told, time).is_none() {
            return;
        }
        task.woken = false;
        let state = match snapshot.state {
            // An exec that is missing may have given it this name on its way.
            _ if snapshot.on_cpu && self.gaps.lives_before(time).is_some() => State::Unknown,
            _ if snapshot.on_cpu => State::On(None),
            // Preempted or woken: nobody knows.
            0 => State::Runnable { preempted: false },
            state => State::Waiting(self.states.wait(state, false, false)),
        };
        // While events are being lost, nobody knows what came right after.
        let state = match self.gaps.any().end_at(time) {
            Some(end) if end > time => State::Unknown,
            _ => state,
        };
        task.epoch = self.concurrency.change(time, task.epoch, task.state, state);
        task.state = state;
        let before = std::mem::replace(&mut task.since, time);
        task.told = time;
        if snapshot.on_cpu {
            task.off_since = None;
        }
        self.account(ix, before, time, Bucket::Unknown);
    }

    /// The span is over: closes every task's last state.
    pub fn finish(&mut self) {
        self.pass_gaps(self.end);
        for at in 0..self.tasks.len() {
            let ix = TaskIx(at);
            if self.state(ix) == State::Dead {
                continue;
            }
            self.close_off_cpu(ix, self.end, true);
            let state = self.state(ix);
            self.enter(ix, self.end, state, Ended::Otherwise);
        }
    }
}
