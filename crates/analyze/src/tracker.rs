//! Keeps the books while the events go by: which task is what, in which state,
//! and how much time it has spent in each.

mod cpus;
mod fast_path;
mod lifecycle;
mod sched;
mod tables;
mod task;

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{
    CgroupId, Comm, CpuId, Exec, Exit, Ktime, LifeKind, SchedKind, Stream, Tgid, Tid,
};
use tr_format::meta::{Metadata, Scope};

use crate::clock_check::ClockCheck;
use crate::concurrency::Concurrency;
use crate::gaps::{Gaps, Spans};
use crate::order::Event;
use crate::state::{Bucket, Ended, State, States};
use crate::tid_map::{CpuMap, TgidMap, TidMap};
use crate::timeline::Draft;

use tables::push_first;
pub use tables::ProcessEntry;
pub use task::{Exited, MaybeTask, Task, TaskIx};

/// The kernel did not report a switch-in.
const UNSEEN: &str = "ran without having been switched in";
/// The kernel did not report a switch-out, or who came.
const UNSEEN_OUT: &str = "another task left the CPU than had come to it";

/// The tracker.
pub struct Tracker {
    /// Every task met, in the order in which they were met.
    pub tasks: Vec<Task>,
    /// Every process met.
    pub processes: Vec<ProcessEntry>,
    /// Paths of cgroups.
    pub cgroups: BTreeMap<CgroupId, Box<[u8]>>,
    /// Contradictions, by kind.
    pub anomalies: BTreeMap<&'static str, u64>,
    /// How long n recorded tasks were running.
    pub concurrency: Concurrency,
    /// Names of tasks that are not recorded.
    pub names: HashMap<Tid, Comm>,
    /// Forks, execs and exits counted.
    pub counts: [u64; 3],
    /// What every task did when, if that is asked for.
    pub timeline: Option<Draft>,
    /// Event orders that disagreeing clocks show.
    pub clock_check: ClockCheck,
    /// No event may take the fast path; the result is the same. For a test.
    pub slow: bool,
    /// Simple events may take the fast path, [`Tracker::take_fast`].
    fast_path: bool,
    /// What each CPU did.
    cpus: CpuMap<cpus::CpuEntry>,
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
    system_wide: bool,
    /// Wakings on other CPUs are not recorded.
    partial: bool,
    /// COMMAND's process.
    root: Option<Tgid>,
    by_tid: TidMap,
    /// Actor has just left a tid by an exec, and when: events with the stamp of that
    /// may still name it.
    renamed: Option<(Ktime, Tid, TaskIx)>,
    by_tgid: TgidMap,
    /// Those that were listed as being on a CPU, which is not known while they are.
    unplaced: Vec<TaskIx>,
    /// The gaps that have not begun yet, the next one last.
    coming: Vec<(Ktime, CpuId)>,
    /// The first loss of lifecycle events, if it has not come yet.
    lives_lost: Option<Ktime>,
}

impl Tracker {
    /// An empty tracker for the span `start..end`.
    pub fn new(
        meta: &Metadata,
        gaps: Gaps,
        start: Ktime,
        end: Ktime,
        only: Option<CpuId>,
    ) -> Tracker {
        let lives_lost = gaps.first_of_lives();
        let mut coming = gaps.starts();
        coming.sort_unstable_by(|a, b| b.cmp(a));
        let end = end.max(start);
        Tracker {
            tasks: Vec::new(),
            processes: Vec::new(),
            cgroups: BTreeMap::new(),
            anomalies: BTreeMap::new(),
            concurrency: Concurrency::new(start, end),
            names: HashMap::new(),
            counts: [0; 3],
            timeline: None,
            clock_check: ClockCheck::default(),
            slow: false,
            fast_path: false,
            cpus: CpuMap::default(),
            gaps,
            states: States::new(&meta.states),
            start,
            end,
            only,
            begun: false,
            recorded_from: meta.start,
            system_wide: meta.scope == Scope::All,
            partial: !meta.options.cpus.is_empty(),
            root: meta.root,
            by_tid: TidMap::default(),
            renamed: None,
            by_tgid: TgidMap::default(),
            unplaced: Vec::new(),
            coming,
            lives_lost,
        }
    }

    /// About so many tasks will come. Tasks are aligned to cache lines, so what holds
    /// them does not grow in place: when it does, a million of them are copied.
    pub fn expect(&mut self, tasks: usize) {
        // Some may come that nothing has announced.
        let some = tasks / 64 + 16;
        // Memory that is not there may not be needed.
        let _ = self.tasks.try_reserve_exact(tasks.saturating_add(some));
    }

    /// New tasks may appear without a fork: the whole machine is recorded, or
    /// the tasks that were there before the recording are still being listed.
    fn open(&self) -> bool {
        self.system_wide || !self.begun
    }

    /// The span has its first nanosecond and not its last.
    fn inside(&self, time: Ktime) -> bool {
        (self.start..self.end).contains(&time)
    }

    /// What was at `since` may just as well have come after what is at `time`.
    fn just_now(&self, since: Option<Ktime>, time: Ktime) -> bool {
        since == Some(time)
    }

    fn anomaly(&mut self, what: &'static str) {
        // Actor is not followed, and not yet known as such, comes and goes unseen.
        if !self.begun && !self.system_wide {
            return;
        }
        *self.anomalies.entry(what).or_default() += 1;
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
            State::Waiting(_) if self.partial && ended == Ended::SwitchedIn => Bucket::Unknown,
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
                self.take_back(from, now);
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

    /// A task may have been running without having been counted, or the other way round.
    fn take_back(&mut self, from: Ktime, now: Ktime) {
        self.concurrency.take_back(from, now);
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
    /// recorded ones may be running from then on, unless system_wide is recorded
    /// and shows itself at once.
    fn lose_lives(&mut self, since: Ktime) {
        if !self.system_wide || !self.gaps.any().is_empty() {
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
        let from = from.max(self.start);
        if task.had(ix, (from, ns), (bucket, on), self.timeline.as_mut()) {
            self.owe(ix);
        }
    }

    /// The task has had times that its process's program does not have yet.
    #[cold]
    fn owe(&mut self, ix: TaskIx) {
        let Some(task) = self.tasks.get_mut(ix.0) else {
            return;
        };
        task.owes = true;
        let of = task.process;
        if let Some(process) = self.processes.get_mut(of) {
            task.owes_next = std::mem::replace(&mut process.owing, MaybeTask::some(ix));
        }
    }

    /// Gives what the process's threads have had to its present program, if it
    /// has one: before that changes, not for every event.
    fn flush(&mut self, process: usize) {
        let Some(process) = self.processes.get_mut(process) else {
            return;
        };
        let mut owing = std::mem::replace(&mut process.owing, MaybeTask::NONE);
        while let Some(task) = owing.get().and_then(|ix| self.tasks.get_mut(ix.0)) {
            owing = std::mem::replace(&mut task.owes_next, MaybeTask::NONE);
            task.owes = false;
            let mut times = task.times;
            times.take(&std::mem::replace(&mut task.paid, times));
            if let Some(exec) = process.execs.last_mut() {
                exec.times.add(&times);
            }
        }
    }

    // ---- Events ----

    /// How badly an event fits what the tasks are doing: 0 well, 1 possible, 2
    /// only when something is missing. Decides between events of several
    /// streams with equal times.
    pub fn misfit(&self, event: &Event) -> u8 {
        // A tid that was left before this time may be anybody's.
        let left = |tid: Tid| {
            let left = self.renamed.is_some_and(|(since, old, _)| {
                old == tid && !self.just_now(Some(since), event.time())
            });
            left && self.by_tid.get(tid).is_none()
        };
        let state = |tid: Tid| {
            let ix = self.holder(tid, event.time()).filter(|_| !left(tid));
            ix.map(|ix| self.state(ix))
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
                        None if next != Tid::IDLE => unborn(self.system_wide, event.time),
                        None | Some(State::Runnable { .. } | State::Unknown) => 0,
                    };
                    leaves.max(enters)
                }
                SchedKind::Waking { wakee, new, .. } => match state(wakee) {
                    Some(State::Dead) => 2,
                    None => unborn(self.system_wide || new, event.time),
                    _ => 0,
                },
            },
            Event::Life(event) => match &event.kind {
                LifeKind::Fork(fork) => match state(fork.tid) {
                    // Actor forks is running.
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
        if self.system_wide {
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
            let state = self.state(ix);
            self.enter(ix, self.end, state, Ended::Otherwise);
        }
        (0..self.processes.len()).for_each(|process| self.flush(process));
    }
}
