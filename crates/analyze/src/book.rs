//! Keeps the books while the events go by: which task is what, in which state,
//! and how much time it has spent in each.

mod cpus;
mod lives;
mod plain;
mod running;

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{
    Argv, CgroupId, Comm, CpuId, Exec, Exit, Ktime, LifeKind, SchedKind, Stream, Tgid, Tid,
};
use tr_format::meta::{Metadata, Scope};

use crate::concurrency::{Concurrency, Epoch};
use crate::gaps::{Gaps, Spans};
use crate::model::{Causes, ExecSpan, KernelFigures, OffCpu, Switches, Times};
use crate::order::Event;
use crate::places::{ByCpu, ByTid};
use crate::tasks::{Bucket, Ended, State, States, Wait};
use crate::timeline::{By, Draft};

/// A task, by its place in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskIx(pub usize);

/// What the book knows of a task. First what most events change, so that it lies
/// in few cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Task {
    state: State,
    /// It was woken since its last switch-in; of one that is runnable: it may have
    /// been on a CPU when it was woken.
    woken: bool,
    /// An event of it has been seen.
    seen: bool,
    /// Its process's program lacks a part of its times: see [`Book::flush`].
    owes: bool,
    /// The wait that its last waking has ended, when the clocks leave open whether
    /// that came before the wait began: in vain.
    doubt: Option<Wait>,
    last_cpu: Option<CpuId>,
    /// Who woke it last, or started it; once preempted, who took the CPU.
    by: By,
    /// Of its state, for the concurrency.
    epoch: Epoch,
    since: Ktime,
    /// The stamp of its last event, which may lie before the span.
    told: Ktime,
    /// The stretch off CPU that it is in: since when.
    off_since: Option<Ktime>,
    /// The child that runs in its memory.
    vfork_child: Option<TaskIx>,
    /// Where its time went.
    pub times: Times,
    /// Parts of it.
    pub causes: Causes,
    /// Its context switches.
    pub switches: Switches,
    /// Moves between CPUs.
    pub migrations: u64,
    /// Its longest off-CPU stretch; the waker is a task's place.
    pub max_off_cpu: Option<(OffCpu, Option<TaskIx>)>,
    /// Its times up to which they stand in its process's programs.
    paid: Times,
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
    /// Its exit.
    pub exit: Option<Box<Exit>>,
    /// When it called exit; its last switch-out comes after.
    pub exited: Option<Ktime>,
    /// The kernel's figures.
    pub kernel: Option<KernelFigures>,
    /// Who forked it.
    pub parent: Option<TaskIx>,
}

impl Task {
    /// Was in a bucket for so long, ns.
    #[inline]
    fn spend(&mut self, bucket: Bucket, ns: u64) {
        let (times, causes) = (&mut self.times, &mut self.causes);
        match bucket {
            Bucket::OnCpu(_) => times.on_cpu += ns,
            Bucket::Unknown | Bucket::Wait(Wait::Unknown) => times.unknown += ns,
            Bucket::RunQueue { preempted } => {
                times.run_queue += ns;
                causes.preempted += if preempted { ns } else { 0 };
            }
            Bucket::Wait(Wait::Sleep) => times.sleep += ns,
            Bucket::Wait(Wait::Stopped) => {
                times.sleep += ns;
                causes.stopped += ns;
            }
            Bucket::Wait(Wait::Io) => {
                times.blocked += ns;
                causes.io += ns;
            }
            Bucket::Wait(Wait::Vfork) => {
                times.blocked += ns;
                causes.vfork += ns;
            }
            Bucket::Wait(Wait::Blocked) => times.blocked += ns,
        }
    }

    /// Leaves its CPU, which `taker` has then; the state in which it is then.
    #[inline]
    fn leave(
        &mut self,
        cpu: CpuId,
        time: Ktime,
        wait: Option<Wait>,
        preempt: bool,
        taker: By,
    ) -> State {
        let new = match wait {
            Some(wait) => State::Waiting(wait),
            // Woken before its switch-out was complete: a sleep of no length.
            None => State::Runnable {
                preempted: preempt || !self.woken,
            },
        };
        self.off_since = Some(time);
        self.by = match new {
            State::Runnable { preempted: true } => taker,
            State::Runnable { .. } => self.by,
            _ => By::UNKNOWN,
        };
        self.last_cpu = Some(cpu);
        self.woken &= wait.is_some();
        new
    }

    /// It was woken at that very time, when it was runnable already.
    fn woken_again(&self, time: Ktime) -> bool {
        self.told == time && self.since < time
    }
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
    /// Its threads that have had times since its last program began.
    owing: Vec<TaskIx>,
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
fn push_first<T>(list: &mut Vec<T>, value: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(value);
}

/// The kernel did not report a switch-in.
const UNSEEN: &str = "ran without having been switched in";
/// The kernel did not report a switch-out, or who came.
const UNSEEN_OUT: &str = "another task left the CPU than had come to it";

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
    /// What every task did when, if that is asked for.
    pub timeline: Option<Draft>,
    /// How far two events' times can be wrong against each other, ns.
    pub uncertainty: u64,
    /// Every event takes the long way.
    pub careful: bool,
    /// Simple events may take the short way, [`Book::take_plain`].
    plain: bool,
    /// What each CPU did.
    cpus: ByCpu<cpus::CpuEntry>,
    gaps: Gaps,
    states: States,
    start: Ktime,
    end: Ktime,
    only: Option<CpuId>,
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
    by_tid: ByTid,
    /// Who has just left a tid by an exec, and when: events with the stamp of that
    /// may still name it.
    renamed: Option<(Ktime, Tid, TaskIx)>,
    by_tgid: HashMap<Tgid, usize>,
    /// Those that were listed as being on a CPU, which is not known while they are.
    unplaced: Vec<TaskIx>,
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
            timeline: None,
            uncertainty: 0,
            careful: false,
            plain: false,
            cpus: ByCpu::default(),
            gaps,
            states: States::new(&meta.states),
            start,
            end,
            only,
            begun: false,
            recorded_from: meta.start,
            everybody: meta.scope == Scope::All,
            partial: !meta.options.cpus.is_empty(),
            root: meta.root,
            by_tid: ByTid::default(),
            renamed: None,
            by_tgid: HashMap::new(),
            unplaced: Vec::new(),
            coming,
            lives_lost,
        }
    }

    /// New tasks may appear without a fork: the whole machine is recorded, or
    /// the tasks that were there before the recording are still being listed.
    fn open(&self) -> bool {
        self.everybody || !self.begun
    }

    /// The span has its first nanosecond and not its last.
    fn inside(&self, time: Ktime) -> bool {
        (self.start..self.end).contains(&time)
    }

    /// What was at `since` may just as well have come after what is at `time`.
    fn just_now(&self, since: Option<Ktime>, time: Ktime) -> bool {
        since.is_some_and(|since| since <= time && time.since(since) <= self.uncertainty)
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
        let spans = self.spans_of(old);
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
            // Nor where the clocks are not exact: its waking may come yet.
            State::Waiting(_)
                if (self.partial || self.uncertainty > 0) && ended == Ended::SwitchedIn =>
            {
                Bucket::Unknown
            }
            // A waking that was stamped before its switch-out may have ended
            // this wait as it began; only an unbroken record tells.
            State::Waiting(_) if task.woken && (broken || ended == Ended::Otherwise) => {
                Bucket::Unknown
            }
            State::Waiting(wait) if broken => Bucket::Wait(wait),
            // It may have come to a CPU in a gap, and been there when it was woken.
            State::Runnable { .. }
                if task.woken && ended == Ended::Otherwise && self.is_dark(now) =>
            {
                self.concurrency.take_back(from, now);
                Bucket::Unknown
            }
            old => old.bucket(ended),
        };
        self.account(ix, from, known, bucket);
        self.account(ix, known, now, Bucket::Unknown);
        // Inside a gap only a task on an intact CPU is known.
        let state = match state {
            State::On(None) | State::Dead => state,
            _ if self.spans_of(state).is_some_and(|spans| spans.covers(now)) => State::Unknown,
            _ => state,
        };
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.epoch = self.concurrency.change(now, task.epoch, old, state);
            task.state = state;
            task.since = now;
            task.told = told;
            task.seen = true;
            task.doubt = None;
            if state == State::Dead {
                // One that died before the span is no part of it.
                task.end = Some(if task.started_before { told } else { now });
            }
        }
    }

    /// The gaps that make such a state doubtful: those of the CPU that a task is
    /// on; of any CPU for one that may have been woken, or have run, anywhere.
    fn spans_of(&self, state: State) -> Option<&Spans> {
        match state {
            State::On(Some(cpu)) => self.gaps.of(cpu),
            _ => Some(self.gaps.any()),
        }
    }

    /// On some CPU somebody may be running since a gap, unseen: it has not switched
    /// since then.
    fn is_dark(&self, now: Ktime) -> bool {
        let mut gaps = self.gaps.last_of_each(now);
        gaps.any(|(cpu, until)| self.last_switch(cpu).is_none_or(|last| last <= until))
    }

    /// A CPU's events are missing from `since` on.
    fn lose(&mut self, cpu: CpuId, since: Ktime) {
        self.concurrency.lose(since);
        for (on, entry) in self.cpus.iter() {
            let task = entry.current.filter(|_| on != cpu);
            let Some(task) = task.and_then(|ix| self.tasks.get_mut(ix.0)) else {
                continue;
            };
            if task.state == State::On(Some(on)) {
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
        if let Some((time, _, _)) = self.renamed {
            self.renamed = self.renamed.filter(|_| self.just_now(Some(time), now));
        }
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
        self.look_around();
        match stream {
            Stream::Cpu(cpu) => self.lose(cpu, since),
            _ => self.lose_lives(since),
        }
    }

    /// Adds the part of `from..to` inside the span to a bucket of the task, of
    /// its process's program.
    #[inline]
    fn account(&mut self, ix: TaskIx, from: Ktime, to: Ktime, bucket: Bucket) {
        let ns = to.min(self.end).since(from.max(self.start));
        let Some(task) = self.tasks.get_mut(ix.0).filter(|_| ns > 0) else {
            return;
        };
        let on = match bucket {
            Bucket::OnCpu(cpu) => cpu,
            _ => None,
        };
        let bucket = match bucket {
            // With --cpu: what happens elsewhere is not known from that CPU.
            Bucket::OnCpu(cpu) if self.only.is_some_and(|only| cpu != Some(only)) => {
                Bucket::Unknown
            }
            bucket => bucket,
        };
        if let Some(timeline) = &mut self.timeline {
            timeline.add(ix.0, from.max(self.start), bucket, on, task.by);
        }
        task.spend(bucket, ns);
        if !task.owes {
            self.owe(ix);
        }
    }

    /// The task has had times that its process's program does not have yet.
    #[cold]
    fn owe(&mut self, ix: TaskIx) {
        if let Some(task) = self.tasks.get_mut(ix.0) {
            task.owes = true;
            if let Some(process) = self.processes.get_mut(task.process) {
                push_first(&mut process.owing, ix);
            }
        }
    }

    /// Gives what the process's threads have had to its present program, if it
    /// has one: before that changes, not for every event.
    fn flush(&mut self, process: usize) {
        let Some(process) = self.processes.get_mut(process) else {
            return;
        };
        for ix in process.owing.drain(..) {
            let Some(task) = self.tasks.get_mut(ix.0) else {
                continue;
            };
            task.owes = false;
            let mut times = task.times;
            times.take(&std::mem::replace(&mut task.paid, times));
            if let Some(exec) = process.execs.last_mut() {
                exec.times.add(&times);
            }
        }
    }

    // ---- Tasks ----

    fn task(&self, tid: Tid) -> Option<TaskIx> {
        let renamed = || self.renamed.filter(|(_, old, _)| *old == tid);
        let renamed = || renamed().map(|(_, _, ix)| ix);
        self.by_tid.get(tid).or_else(renamed)
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
    fn appear(&mut self, tid: Tid, tgid: Tgid, time: Ktime) -> TaskIx {
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
    fn appear_child(&mut self, tid: Tid, parent: TaskIx, time: Ktime) -> TaskIx {
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
            owing: Vec::new(),
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
    fn listed(&self, pid: Tgid) -> Option<usize> {
        let at = self.by_tgid.get(&pid).copied()?;
        self.processes.get(at).filter(|p| !p.forked).map(|_| at)
    }

    /// A pid has a new holder; whoever had it is gone.
    fn retire(&mut self, pid: Tgid) {
        let at = self
            .by_tgid
            .get(&pid)
            .and_then(|at| self.processes.get(*at));
        if at.is_some_and(|process| process.live == 0) {
            self.by_tgid.remove(&pid);
        }
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
            exited: None,
            kernel: None,
            state,
            epoch,
            since: start,
            told: start,
            woken: false,
            doubt: None,
            off_since: Some(start),
            by: parent.map_or(By::UNKNOWN, |parent| By::task(parent.0)),
            last_cpu: None,
            vfork_child: None,
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

    /// How badly an event fits what the tasks are doing: 0 well, 1 possible, 2
    /// only when something is missing. Decides between events of several
    /// streams with equal times.
    pub fn misfit(&self, event: &Event) -> u8 {
        // A tid that was left before this time may be anybody's.
        let left = |renamed: &(Ktime, Tid, TaskIx)| self.just_now(Some(renamed.0), event.time());
        let left = self.renamed.as_ref().filter(|renamed| left(renamed));
        let state = |tid: Tid| {
            let left = || left.filter(|(_, old, _)| *old == tid);
            let ix = self.by_tid.get(tid);
            ix.or_else(|| left().map(|(_, _, ix)| *ix))
                .map(|ix| self.state(ix))
        };
        // Of a task that nobody knows: its fork is yet to come, unless that is lost
        // or its parent is not recorded.
        let unborn = |forked: bool, time: Ktime| match forked && self.begun {
            true if self.gaps.lives_before(time).is_none() => 2,
            _ => 1,
        };
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
                        None if next != Tid::IDLE => unborn(self.everybody, event.time),
                        None | Some(State::Runnable { .. } | State::Unknown) => 0,
                    };
                    leaves.max(enters)
                }
                SchedKind::Waking { wakee, new, .. } => match state(wakee) {
                    Some(State::Dead) => 2,
                    None => unborn(self.everybody || new, event.time),
                    _ => 0,
                },
            },
            Event::Life(event) => match &event.kind {
                LifeKind::Fork(fork) => match state(fork.tid) {
                    // Who forks is running.
                    Some(State::Dead) | None => match state(fork.parent_tid) {
                        Some(State::Runnable { .. } | State::Waiting(_)) => 1,
                        _ => 0,
                    },
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
        self.look_around();
        // A parent may have been listed after its child.
        for at in 0..self.processes.len() {
            let ppid = self.processes.get(at).and_then(|p| p.ppid);
            let parent = ppid.and_then(|ppid| self.listed(ppid));
            if let Some(process) = self.processes.get_mut(at) {
                process.parent = process.parent.or(parent.filter(|parent| *parent != at));
            }
        }
        if self.everybody {
            return;
        }
        for at in 0..self.tasks.len() {
            let listed = |t: &Task| {
                self.processes
                    .get(t.process)
                    .is_some_and(|p| p.ppid.is_some())
            };
            let unlisted = self.tasks.get(at).filter(|task| !listed(task));
            if let Some((process, state)) = unlisted.map(|task| (task.process, task.state)) {
                let (start, end) = (self.start, self.end);
                self.enter(TaskIx(at), start, State::Dead, Ended::Otherwise);
                // Its pid is free for one that is recorded.
                if let Some(process) = self.processes.get_mut(process) {
                    let lived = usize::from(state != State::Dead);
                    process.live = process.live.saturating_sub(lived);
                }
                if let Some(task) = self.tasks.get_mut(at) {
                    task.start = end; // no part of the span
                }
            }
        }
        let tasks = &self.tasks;
        let alive = |ix: TaskIx| tasks.get(ix.0).is_some_and(|t| t.state != State::Dead);
        self.by_tid.retain(alive);
        for entry in self.cpus.iter_mut() {
            entry.current = entry.current.filter(|ix| alive(*ix));
        }
    }

    /// The span is over: closes every task's last state.
    pub fn finish(&mut self) {
        self.pass_gaps(self.end);
        self.finish_cpus();
        for at in 0..self.tasks.len() {
            let ix = TaskIx(at);
            if self.state(ix) == State::Dead {
                continue;
            }
            self.close_off_cpu(ix, self.end, true);
            if let Some(task) = self.tasks.get_mut(at).filter(|t| t.doubt.is_some()) {
                task.state = State::Unknown;
            }
            let state = self.state(ix);
            self.enter(ix, self.end, state, Ended::Otherwise);
        }
        (0..self.processes.len()).for_each(|process| self.flush(process));
    }
}
