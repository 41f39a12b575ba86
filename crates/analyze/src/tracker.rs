//! Follows every task through the events. The tracker keeps the state of each task, and its time in each state.
//!
//! | event | function |
//! | --- | --- |
//! | switch | [`Tracker::switch`], with a fast path in `fast_path` |
//! | waking | [`Tracker::waking`], with a fast path in `fast_path` |
//! | fork, exec, exit | [`Tracker::fork`], [`Tracker::exec`], [`Tracker::exit`] |
//! | a task's totals, its end, by a recorder without switches | `accounts` |
//! | lost events | [`Tracker::lost`], and [`Tracker::enter`] makes the time unknown |
//!
//! `unseen` handles events which show that other events are missing.

mod accounts;
mod closing;
mod cpu_table;
mod cpus;
mod fast_path;
mod finish;
mod fit;
mod lifecycle;
mod narrow;
mod process;
mod readings;
mod sched;
mod tables;
mod task;
mod unseen;

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{Comm, CpuId, Ktime, Stream, Tgid, Tid};
use tr_format::meta::{Metadata, Scope};

use crate::arena::Arena;
use crate::clock_check::ClockCheck;
use crate::collect::Collectors;
use crate::concurrency::Concurrency;
use crate::gaps::{Gaps, Spans};
use crate::model::Basis;
use crate::state::{Bucket, Ended, State, States, Wait};
use crate::tid_map::IdMap;
use crate::timeline::{ActorRef, Draft, Sample};

pub use crate::ids::{ProcIx, TaskIx};
pub use process::ProcessEntry;
use readings::LastAccount;
pub use task::{Exited, Task};

#[derive(Default)]
pub struct Tracker {
    /// All tasks that events have shown so far, in the order in which they appeared.
    pub tasks: Arena<TaskIx, Task>,
    pub processes: Arena<ProcIx, ProcessEntry>,
    pub(crate) collectors: Collectors,
    /// For each kind of event that contradicts earlier events, the number of such events so far.
    pub anomalies: BTreeMap<&'static str, u64>,
    /// For each n, counts the time in which exactly n recorded tasks were running.
    pub concurrency: Concurrency,
    /// The names of tasks by tid, from snapshots, and from renames of tasks that the tracker does not have.
    pub names: HashMap<Tid, Comm>,
    /// The numbers of forks, execs and exits in the analyzed span so far.
    pub counts: [u64; 3],
    /// The changes of state of each task, if a timeline is requested.
    pub timeline: Option<Draft>,
    pub clock_check: ClockCheck,
    /// Whether the general code, which is slower than the fast path, has to process every event. The result is the
    /// same; the option is for tests.
    pub slow: bool,
    fast_path: bool,
    cpus: cpu_table::Cpus,
    gaps: Gaps,
    states: States,
    start: Ktime,
    end: Ktime,
    /// The only CPU on which time counts as on-CPU, if the options name one. Time on other CPUs counts as unknown.
    only: Option<CpuId>,
    /// The source of the times of all tasks in the recording: scheduling events, or the kernel's totals of each
    /// task.
    pub basis: Basis,
    /// The last totals of each living task that the kernel reported, in a recording without scheduling events.
    accounts: HashMap<TaskIx, LastAccount>,
    last_closed: closing::LastClosed,
    /// The samples of each task's total times, from which times are added to the timeline.
    pub samples: HashMap<TaskIx, Vec<Sample>>,
    /// Whether an event at or after the beginning of the recording has been seen. From then on, every task that existed
    /// before has had a snapshot.
    begun: bool,
    /// The time at which the recording began. The analyzed span may begin later.
    recorded_from: Ktime,
    system_wide: bool,
    root: Option<Tgid>,
    by_tid: IdMap<TaskIx>,
    by_tgid: IdMap<ProcIx>,
    /// The task that has just left a tid by an exec, with this tid and the time of the exec. Events with this time
    /// may still name the task by the old tid.
    renamed: Option<(Ktime, Tid, TaskIx)>,
    /// Tasks that the recorder's snapshots show on a CPU, without showing on which one.
    unplaced: Vec<TaskIx>,
    /// The gaps in the events of a CPU that begin later than the events so far: the time and the CPU of each. The
    /// one that begins first is the last in the list.
    coming: Vec<(Ktime, CpuId)>,
    /// The time of the first loss of lifecycle events, if this time is later than all events that have been processed
    /// so far.
    lives_lost: Option<Ktime>,
}

impl Tracker {
    /// Makes a tracker for the analyzed span `start..end` that has seen no events yet.
    pub fn new(
        meta: &Metadata,
        gaps: Gaps,
        (start, end): (Ktime, Ktime),
        only: Option<CpuId>,
    ) -> Tracker {
        let lives_lost = gaps.first_of_lives();
        let mut coming = gaps.starts();
        coming.sort_unstable_by(|a, b| b.cmp(a));
        let end = end.max(start);
        Tracker {
            concurrency: Concurrency::new(
                start,
                end,
                meta.sees_all_cpus().then_some(meta.cpus.len()),
            ),
            gaps,
            states: States::new(&meta.states),
            start,
            end,
            only,
            basis: Basis::of(&meta.facts()),
            recorded_from: meta.start,
            system_wide: meta.scope == Scope::All,
            root: meta.root,
            coming,
            lives_lost,
            ..Tracker::default()
        }
    }

    /// Reserves memory for about `tasks` tasks. Tasks are aligned to cache lines, so their table cannot grow in
    /// place: growing would copy up to a million tasks.
    pub fn expect(&mut self, tasks: usize) {
        // A few more tasks may appear than the summary of the trace counts.
        self.tasks.reserve(tasks.saturating_add(tasks / 64 + 16));
    }

    /// Whether new tasks may appear without a fork, because the whole machine is recorded, or because the
    /// snapshots of tasks that existed before the recording are still coming.
    fn open(&self) -> bool {
        self.system_wide || !self.begun
    }

    /// Whether a time is inside the analyzed span. The first nanosecond is part of the span, and the end is not.
    fn inside(&self, time: Ktime) -> bool {
        (self.start..self.end).contains(&time)
    }

    fn anomaly(&mut self, what: &'static str) {
        // Before the recording begins, the events are incomplete for tasks that will not be followed, so a
        // contradiction proves nothing.
        if self.begun || self.system_wide {
            *self.anomalies.entry(what).or_default() += 1;
        }
    }

    // ---- Time ----

    /// Ends the state of a task at `now`, adds the time in that state to the task's sums, and begins another
    /// state.
    fn enter(&mut self, ix: TaskIx, now: Ktime, state: State, ended: Ended) {
        let task = &self.tasks[ix];
        let (from, old) = (task.since, task.state);
        if old == State::Dead {
            return;
        }
        // Events come in the order of time. Only in a damaged trace, or with wrong clocks, can `now` be before `from`.
        let (stamp, now) = (now, now.max(from));
        // If events of the task may be missing, its time is unknown from the first lost event to the task's present
        // event.
        let spans = self.spans_of(ix, old, now);
        let lost = spans.and_then(|spans| spans.first_in(from, now));
        let known = lost.unwrap_or(now);
        let bucket = self.bucket(ix, now, ended);
        if matches!((old, bucket), (State::Waiting(_), Bucket::RunQueue { .. })) {
            let task = &mut self.tasks[ix];
            task.unwoken = task.unwoken.saturating_add(known.since(from));
        }
        if bucket == Bucket::Unknown && matches!(old, State::Runnable { .. }) {
            self.concurrency.take_back(from, now);
        }
        // If a time is unknown, only a waking shows which task or interrupt ended it.
        let forget_actor = |task: &mut Task| {
            if ended != Ended::Woken {
                task.actor = ActorRef::UNKNOWN;
            }
        };
        if bucket == Bucket::Unknown {
            forget_actor(&mut self.tasks[ix]);
        }
        self.account(ix, from, known, bucket);
        if known < now {
            forget_actor(&mut self.tasks[ix]);
        }
        self.account(ix, known, now, Bucket::Unknown);
        // Within a gap, the new state is known only if the task is on a CPU that has lost no events.
        let state = match state {
            State::On(None) | State::Dead => state,
            _ if self
                .spans_of(ix, state, now)
                .is_some_and(|spans| spans.covers(now)) =>
            {
                State::Unknown
            }
            _ => state,
        };
        let task = &mut self.tasks[ix];
        task.epoch = self.concurrency.change(now, task.epoch, old, state);
        task.state = state;
        task.since = now;
        task.last_event_ts = stamp;
        task.seen = true;
        if state == State::Dead {
            // For a task that existed before the analyzed span, `end` is the true time of its end. A task that ended
            // before the span must not count as one that lived in the span.
            task.end = Some(if task.started_before { stamp } else { now });
        }
    }

    /// The kind of the time that a task has spent in its present state, now that the state ends. The time is
    /// unknown if an event of the task may be lost.
    fn bucket(&self, ix: TaskIx, now: Ktime, ended: Ended) -> Bucket {
        let task = &self.tasks[ix];
        let lost = |spans: &Spans| {
            let until = Ktime(now.0.saturating_add(1));
            spans.first_in(task.since, until).is_some()
        };
        // If events have been lost since the state began, a switch-in does not show what the task did before.
        let broken = self.spans_of(ix, task.state, now).is_some_and(lost);
        match task.state {
            // The task is bound to a single CPU, and slept. A task on another CPU may have woken the sleeping task, and
            // this waking may be lost. Then a part of the time was not sleep but a wait for the CPU.
            State::Waiting(_)
                if ended == Ended::SwitchedIn
                    && self.only_cpu(ix, now).is_some()
                    && lost(self.gaps.any()) =>
            {
                Bucket::Wait(Wait::Unknown)
            }
            // A waking came before the task's switch-out was complete, so perhaps the task never waited. Normally the
            // next switch-in or waking of the task shows whether the task waited. But here events are lost, or an event
            // of another kind came first.
            State::Waiting(_) if task.woken && (broken || ended == Ended::Otherwise) => {
                Bucket::Unknown
            }
            State::Waiting(wait) if broken => Bucket::Wait(wait),
            // The task may have come to a CPU in a gap, and may have been on that CPU when it was woken. Then the task
            // was not runnable but running.
            State::Runnable { .. }
                if task.woken
                    && ended == Ended::Otherwise
                    && self.only_cpu(ix, now).is_none()
                    && self.is_dark(now) =>
            {
                Bucket::Unknown
            }
            state => state.bucket(ended),
        }
    }

    /// The gaps of recorded events in which a change of a task's state may have been lost. For a task that is on a
    /// known CPU, or that may run on only one CPU, the gaps of this CPU are returned. For a task that may have been
    /// woken or may have run anywhere, the gaps of all CPUs are returned.
    fn spans_of(&self, ix: TaskIx, state: State, now: Ktime) -> Option<&Spans> {
        let only = || self.only_cpu(ix, now);
        let cpu = match state {
            State::On(cpu) => cpu,
            State::Waiting(_) | State::Runnable { .. } => only(),
            _ => None,
        };
        match cpu {
            Some(cpu) => self.gaps.of(cpu),
            None => Some(self.gaps.any()),
        }
    }

    /// The only CPU that the task may run on, if there is one. After a loss of lifecycle events this CPU is not known,
    /// because the lost events may have changed the task's affinity.
    fn only_cpu(&self, ix: TaskIx, now: Ktime) -> Option<CpuId> {
        let pinned = self.tasks[ix].pinned;
        pinned.filter(|_| self.gaps.lives_before(now).is_none())
    }

    /// Whether some CPU has not switched since its last gap (a time in which its events are lost), so that a task may
    /// have been running on this CPU without a recorded switch-in.
    fn is_dark(&self, now: Ktime) -> bool {
        let mut gaps = self.gaps.last_of_each(now);
        gaps.any(|(cpu, until)| self.cpus.last_switch(cpu).is_none_or(|last| last <= until))
    }

    /// Adds the part of the time `from..to` that is inside the analyzed span to the task's sum for this kind of
    /// time, and to the sum of its process's program.
    #[inline]
    fn account(&mut self, ix: TaskIx, from: Ktime, to: Ktime, bucket: Bucket) {
        let from = from.max(self.start);
        let ns = to.min(self.end).since(from);
        if ns == 0 {
            return;
        }
        let on = match bucket {
            Bucket::OnCpu(cpu) => cpu,
            _ => None,
        };
        let bucket = match bucket {
            // With --cpu, the events of the chosen CPU do not show what tasks do on other CPUs, so that time is
            // unknown.
            Bucket::OnCpu(cpu) if self.only.is_some_and(|only| cpu != Some(only)) => {
                Bucket::Unknown
            }
            bucket => bucket,
        };
        let timeline = self.timeline.as_mut();
        if self.tasks[ix].spend(ix, (from, ns), (bucket, on), timeline) {
            self.owe(ix);
        }
    }

    /// Puts a task on the list of tasks whose times still have to be added to the times of the program that their
    /// process executes.
    #[cold]
    fn owe(&mut self, ix: TaskIx) {
        let task = &mut self.tasks[ix];
        task.owes = true;
        let process = &mut self.processes[task.process];
        task.owes_next = process.owing.replace(ix);
    }

    /// Adds the times of the process's threads to its present program, if it has one. Doing this at every event would
    /// be slow, so it is done only before the program changes and at the end.
    fn flush(&mut self, process: ProcIx) {
        let process = &mut self.processes[process];
        let mut owing = process.owing.take();
        while let Some(ix) = owing {
            let task = &mut self.tasks[ix];
            owing = task.owes_next.take();
            task.owes = false;
            let before = std::mem::replace(&mut task.paid, task.times);
            if let Some(exec) = process.execs.last_mut() {
                exec.times.add(&task.times.since(&before).times(self.basis));
            }
        }
    }

    // ---- Lost events ----

    /// Notes that scheduling events of a CPU are missing from `since` on. For [`Concurrency`], the states of all tasks
    /// become unknown, except those of tasks that are on other CPUs.
    fn lose(&mut self, cpu: CpuId, since: Ktime) {
        self.concurrency.lose(since);
        for (on, entry) in self.cpus.all() {
            if let Some(ix) = entry.current.filter(|_| on != cpu) {
                let task = &mut self.tasks[ix];
                if task.state == State::On(Some(on)) {
                    task.epoch = self.concurrency.vouch(task.epoch);
                }
            }
        }
    }

    /// Notes that forks may be missing from `since` on. From then on, one more task of unknown state counts as alive,
    /// because a task whose fork is missing may be running. If all scheduling events of the machine are recorded, such
    /// a task shows up at once, so nothing has to be done.
    fn lose_lives(&mut self, since: Ktime) {
        if !self.system_wide || !self.gaps.any().is_empty() {
            self.concurrency.meet(since, State::Unknown);
        }
    }

    /// Handles the gaps in the recorded events that have begun by `now`.
    fn pass_gaps(&mut self, now: Ktime) {
        if self.renamed.is_some_and(|(time, ..)| time != now) {
            self.renamed = None;
        }
        if let Some(since) = self.lives_lost.take_if(|since| *since <= now) {
            self.lose_lives(since);
        }
        while let Some((since, cpu)) = self.coming.pop_if(|(since, _)| *since <= now) {
            self.lose(cpu, since);
        }
    }

    /// Adds a gap of a stream's events that begins at the present time. The gap was not known before, because it was
    /// found only while the events were read.
    pub fn lost(&mut self, stream: Stream, since: Ktime, until: Ktime) {
        self.gaps.insert(stream, since, until);
        self.allow_fast_path();
        match stream {
            Stream::Cpu(cpu) => self.lose(cpu, since),
            _ => self.lose_lives(since),
        }
    }

    /// Whether events that may concern a task are missing between the task's last change of state and `time`.
    fn in_gap(&self, ix: TaskIx, time: Ktime) -> bool {
        let task = &self.tasks[ix];
        let spans = match task.state {
            State::On(_) => Some(self.gaps.any()),
            state => self.spans_of(ix, state, time),
        };
        spans.is_some_and(|spans| spans.first_in(task.since, time).is_some())
    }

    // ---- Begin and end ----

    /// Notes that the recording begins. Earlier events may name tasks whose snapshots came later than these events. A
    /// task without a snapshot is not followed.
    fn begin(&mut self, time: Ktime) {
        if self.begun || time < self.recorded_from {
            return;
        }
        self.begun = true;
        self.allow_fast_path();
        // Parents are looked up again, because a parent's snapshot may have come after its child's.
        for ix in self.processes.ids() {
            let parent = self.processes[ix].ppid.and_then(|ppid| self.listed(ppid));
            let process = &mut self.processes[ix];
            process.parent = process.parent.or(parent.filter(|parent| *parent != ix));
        }
        if self.system_wide {
            return;
        }
        for ix in self.tasks.ids() {
            let of = self.tasks[ix].process;
            if self.processes[of].ppid.is_some() {
                continue;
            }
            // A task without a snapshot is not followed, so it is taken out of the tables: its tid may belong to a
            // recorded task later.
            let lived = usize::from(!self.tasks[ix].is_dead());
            self.enter(ix, self.start, State::Dead, Ended::Otherwise);
            let process = &mut self.processes[of];
            process.live = process.live.saturating_sub(lived);
            self.tasks[ix].start = self.end; // so the task is no part of the span
        }
        let tasks = &self.tasks;
        self.by_tid.retain(|ix| !tasks[ix].is_dead());
        self.cpus.retain(|ix| !tasks[ix].is_dead());
    }
}
