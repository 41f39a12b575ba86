//! Joins the book of one leg of a trace to the book of all that was before.
//!
//! A leg's book opens with what a checkpoint tells ([`Book::restore`]), before it is known
//! how the leg before it ends. The checkpoint has no times, so what goes on across the
//! seam is left open there ([`First`]): the book before knows when it began. Both are
//! joined only when the book before ends with exactly what the leg's has begun with, and
//! nothing has come up in the leg that an older past might have changed. So what a
//! checkpoint says can make the reading slower, but not different.

use tr_format::checkpoint::Checkpoint;
use tr_format::event::{Ktime, Tid};

use super::cpus::CpuEntry;
use super::{push_first, Book, MaybeTask, ProcessEntry, Task, TaskIx};
use crate::model::OffCpu;
use crate::places::ByCpu;
use crate::tasks::{Bucket, State, Wait};
use crate::timeline::By;

/// What goes on when a leg begins, and what has become of it.
#[derive(Clone, Debug, Default)]
pub struct First {
    /// Where the time of its state belongs, now that this is over.
    bucket: Option<Bucket>,
    /// The stretch off CPU that it was in, now that this is over.
    off_cpu: Option<Back>,
    /// Something depends on what was before.
    unsure: bool,
}

/// How a stretch off CPU has ended.
#[derive(Clone, Copy, Debug)]
struct Back {
    until: Ktime,
    /// `None`: nobody has woken it.
    by: Option<By>,
    /// As [`OffCpu::censored`], but for its beginning.
    cut: bool,
    /// An event of the task had been seen by then.
    seen: bool,
}

/// With what a leg's book has begun.
#[derive(Debug)]
pub struct Began {
    /// Those who lived; and behind them those who stand for the dead of a process, whose
    /// leader's tid they have if that is one of them.
    tasks: Vec<Task>,
    /// How many of these lived.
    living: usize,
    processes: Vec<ProcessEntry>,
    cpus: ByCpu<CpuEntry>,
    crowd: [usize; 3],
}

impl Began {
    /// The process was there.
    pub(super) fn has_process(&self, at: usize) -> bool {
        at < self.processes.len()
    }

    /// That is none who lived.
    pub(super) fn stands_for_the_dead(&self, ix: TaskIx) -> bool {
        (self.living..self.tasks.len()).contains(&ix.0)
    }

    /// The process has executed nothing since.
    pub(super) fn is_program_of(&self, at: usize, process: &ProcessEntry) -> bool {
        let seed = self.processes.get(at);
        seed.is_some_and(|seed| seed.execs.len() == process.execs.len())
    }
}

/// Which of the leg's tasks and processes are which of the book's before it.
struct Seam {
    /// Of those who lived.
    tasks: Vec<TaskIx>,
    /// How many there are of these and of those that stand for the dead.
    seeds: usize,
    processes: Vec<usize>,
    /// How many there were before.
    before: (usize, usize),
}

impl Seam {
    /// The place of a leg's task in the book before; `None` when it stands for the dead.
    fn task(&self, ix: TaskIx) -> Option<TaskIx> {
        match ix.0.checked_sub(self.seeds) {
            Some(new) => Some(TaskIx(self.before.0 + new)),
            None => self.tasks.get(ix.0).copied(),
        }
    }

    fn process(&self, at: usize) -> Option<usize> {
        match at.checked_sub(self.processes.len()) {
            Some(new) => Some(self.before.1 + new),
            None => self.processes.get(at).copied(),
        }
    }

    fn maybe(&self, task: MaybeTask) -> MaybeTask {
        let task = task.get().and_then(|ix| self.task(ix));
        task.map_or(MaybeTask::NONE, MaybeTask::some)
    }

    fn by(&self, by: By) -> By {
        match by.place() {
            Some(ix) => self
                .task(TaskIx(ix))
                .map_or(By::UNKNOWN, |ix| By::task(ix.0)),
            None => by,
        }
    }

    /// A task is what a leg's task was when the leg began.
    fn is(&self, task: &Task, seed: &Task) -> bool {
        let one = |task: &Task| {
            let life = (task.tid, task.ns_tid, task.comm, task.exit, task.exited);
            let last = (task.last_cpu, task.woken, task.seen, task.doubt, task.epoch);
            (
                task.state,
                task.off_since.is_some(),
                task.kernel,
                life,
                last,
            )
        };
        one(task) == one(seed)
            && self.process(seed.process) == Some(task.process)
            && self.maybe(seed.vfork_child) == task.vfork_child
            // Where such a one is, its CPU's last switch tells.
            && task.state != State::On(None)
    }
}

impl Book {
    /// Opens an empty book at a checkpoint, to be joined to the book of what is before it.
    /// Its span begins before the checkpoint's moment, where nothing is.
    pub fn open_leg(&mut self, checkpoint: &Checkpoint) {
        self.restore(checkpoint);
        // The book before has these.
        self.cgroups.clear();
        // Nothing of it was restored as having begun in the span.
        for task in &mut self.tasks {
            task.off_since = task.off_since.map(|_| task.since);
        }
        self.leg = Some(Box::new(Began {
            tasks: self.tasks.clone(),
            living: checkpoint.tasks.len(),
            processes: self.processes.clone(),
            cpus: self.cpus.clone(),
            crowd: self.concurrency.crowd(),
        }));
        for task in self.tasks.iter_mut().take(checkpoint.tasks.len()) {
            (task.first, task.by) = (Some(Box::default()), By::BEFORE);
        }
    }

    /// Takes the book of the leg that follows. `false`: it does not fit, and nothing has
    /// been done.
    pub fn join(&mut self, mut leg: Book) -> bool {
        let Some(began) = leg.leg.take() else {
            return false;
        };
        // A living task's other tid is not known to the leg.
        let mut loose = std::mem::take(&mut self.loose);
        loose.retain(|tid| {
            let task = self.by_tid.get(*tid).and_then(|ix| self.tasks.get(ix.0));
            task.is_some_and(|task| task.tid != *tid && task.state != State::Dead)
        });
        self.loose = loose;
        let Some(seam) = self.seam(&began) else {
            return false;
        };
        if !leg.is_certain(&began) {
            return false;
        }
        self.close_first(&seam, &leg);
        seam.processes.iter().for_each(|at| self.flush(*at));
        (0..leg.processes.len()).for_each(|at| leg.flush(at));
        self.join_cpus(&seam, &leg);
        self.join_names(&seam, &mut leg, &began);
        let processes = std::mem::take(&mut leg.processes);
        for (at, process) in processes.into_iter().enumerate() {
            match began.processes.get(at) {
                Some(seed) => self.join_process(&seam, at, process, seed),
                None => self.processes.push(moved_process(&seam, process)),
            }
        }
        let mut begun = began.tasks.iter();
        for (at, task) in std::mem::take(&mut leg.tasks).into_iter().enumerate() {
            match (begun.next(), seam.tasks.get(at)) {
                (Some(seed), Some(ix)) => {
                    if let Some(mine) = self.tasks.get_mut(ix.0) {
                        mine.join(&seam, task, seed);
                    }
                }
                (Some(_), None) => {}
                (None, _) => self.tasks.push(moved_task(&seam, task)),
            }
        }
        self.end_processes(&seam);
        self.concurrency.join(leg.concurrency);
        for (count, more) in self.counts.iter_mut().zip(leg.counts) {
            *count += more;
        }
        true
    }

    /// Where a leg's book that has begun so is joined to this one; `None` when that is not
    /// how this one ends.
    fn seam(&self, began: &Began) -> Option<Seam> {
        let alive = began.tasks.get(..began.living)?;
        let tasks = alive.iter().map(|seed| self.by_tid.get(seed.tid));
        let processes = began.processes.iter();
        let processes = processes.map(|seed| self.by_tgid.get(seed.pid));
        let seam = Seam {
            tasks: tasks.collect::<Option<_>>()?,
            seeds: began.tasks.len(),
            processes: processes.collect::<Option<_>>()?,
            before: (self.tasks.len(), self.processes.len()),
        };
        let lives = |ix: &TaskIx| self.state(*ix) != State::Dead;
        let same_task = |(ix, seed): (&TaskIx, &Task)| {
            let Some(task) = self.tasks.get(ix.0) else {
                return false;
            };
            // One that is gone does not matter any more.
            let same_parent = match seed.parent {
                Some(parent) => seam.task(parent) == task.parent,
                None => task.parent.filter(lives).is_none(),
            };
            same_parent && seam.is(task, seed)
        };
        let same_process = |(at, seed): (&usize, &ProcessEntry)| {
            let process = self.processes.get(*at);
            process.is_some_and(|process| self.is_process(process, &seam, seed))
        };
        // Who stands for the dead of a process has its leader's tid, unless that lives.
        let stands = |seed: &Task| {
            let leader = self.by_tid.get(seed.tid);
            leader
                .and_then(|ix| self.tasks.get(ix.0))
                .is_some_and(|leader| match leader.state {
                    State::Dead => seam.process(seed.process) == Some(leader.process),
                    _ => leader.tid == seed.tid,
                })
        };
        // All who live are among them when they are as many; who takes over a process is
        // the first of its threads.
        let fits = self.begun
            && self.loose.is_empty()
            && self.concurrency.crowd() == began.crowd
            && began.tasks.iter().skip(began.living).all(stands)
            && seam.tasks.is_sorted_by(|one, next| one < next)
            && seam.tasks.iter().zip(alive).all(same_task)
            && seam
                .processes
                .iter()
                .zip(&began.processes)
                .all(same_process)
            && self.are_cpus(&seam, &began.cpus);
        fits.then_some(seam)
    }

    /// A process is what a leg's process was when the leg began.
    fn is_process(&self, process: &ProcessEntry, seam: &Seam, seed: &ProcessEntry) -> bool {
        let one = |process: &ProcessEntry| {
            let told = (process.ppid, process.cgroup, process.max_rss);
            (
                process.pid,
                process.live,
                process.forked,
                process.kthread,
                told,
            )
        };
        let same_program = match (process.execs.last(), seed.execs.last()) {
            (Some(one), Some(other)) => {
                (&one.filename, &one.argv, one.comm, one.ended)
                    == (&other.filename, &other.argv, other.comm, other.ended)
            }
            (one, other) => one.is_none() && other.is_none(),
        };
        // Of a leader that is gone the checkpoint has the status at once, the book when
        // its process ends.
        let status = process.status.or_else(|| self.leaders_status(process));
        one(process) == one(seed)
            && same_program
            && process.argv == seed.argv
            && process.moved.is_none()
            && process
                .threads
                .iter()
                .filter(|ix| self.state(**ix) != State::Dead)
                .is_sorted()
            && (process.status == seed.status || status == seed.status)
            && seed
                .parent
                .is_none_or(|parent| seam.process(parent) == process.parent)
    }

    /// The CPUs are what they were when the leg began.
    fn are_cpus(&self, seam: &Seam, seeds: &ByCpu<CpuEntry>) -> bool {
        let one = |entry: &CpuEntry| (entry.idle_since.is_some(), entry.switched);
        let same = |(cpu, entry): (_, CpuEntry)| match seeds.get(cpu) {
            Some(seed) => {
                one(&entry) == one(&seed)
                    && seed.current.and_then(|ix| seam.task(ix)) == entry.current
            }
            None => one(&entry) == (false, false) && entry.current.is_none(),
        };
        self.cpus.iter().all(same) && seeds.iter().all(|(cpu, _)| self.cpus.get(cpu).is_some())
    }

    /// Nothing has come up in this leg that an older past might have changed.
    fn is_certain(&self, began: &Began) -> bool {
        let mut tasks = self.tasks.iter().zip(&began.tasks);
        let living = tasks.by_ref().take(began.living);
        let stays = |(task, seed): (&Task, &Task)| {
            let family = |task: &Task| (task.process, task.parent);
            family(task) == family(seed) && task.first.as_ref().is_some_and(|first| !first.unsure)
        };
        let rests = |(task, seed): (&Task, &Task)| {
            (task.tid, task.comm, task.exit, task.kernel)
                == (seed.tid, seed.comm, seed.exit, seed.kernel)
        };
        let dead = began.living..began.tasks.len();
        let names = |ix: Option<usize>| ix.is_some_and(|ix| dead.contains(&ix));
        let about_dead = |task: &Task| {
            let back = task.first.as_ref().and_then(|first| first.off_cpu);
            names(task.parent.map(|ix| ix.0))
                || names(task.vfork_child.get().map(|ix| ix.0))
                || names(task.by.place())
                || names(
                    task.max_off_cpu
                        .as_ref()
                        .and_then(|(_, ix)| *ix)
                        .map(|ix| ix.0),
                )
                || names(back.and_then(|back| back.by).and_then(By::place))
        };
        !self.unsure
            && !self.tasks.iter().any(about_dead)
            && self.violations.is_empty()
            && self.unplaced.is_empty()
            && self.timeline.is_none()
            && { living }.all(stays)
            && tasks.all(rests)
            && self.processes.iter().all(|process| process.moved.is_none())
    }

    /// What went on across the seam has its whole time now.
    fn close_first(&mut self, seam: &Seam, leg: &Book) {
        let (start, end) = (self.start, leg.start);
        for (ix, later) in seam.tasks.iter().zip(&leg.tasks) {
            let Some(first) = &later.first else { continue };
            let since = self.tasks.get(ix.0).map(|task| task.since);
            if let (Some(since), Some(bucket)) = (since, first.bucket) {
                self.account(*ix, since, end, bucket);
            }
            let task = self.tasks.get_mut(ix.0);
            if let (Some(task), Some(back)) = (task, first.off_cpu) {
                task.come_back(start, back, |by| seam.by(by));
            }
        }
    }

    fn join_cpus(&mut self, seam: &Seam, leg: &Book) {
        for (cpu, later) in leg.cpus.iter() {
            let (start, end) = (self.start, leg.start);
            self.cpu_entry(cpu, |entry| {
                let (figures, more) = (&mut entry.figures, &later.figures);
                // It was idle across the seam.
                let idle = entry
                    .idle_since
                    .map_or(0, |since| end.since(since.max(start)));
                let over = later.idle_since.is_none_or(|since| since >= end);
                figures.idle += more.idle + if over { idle } else { 0 };
                figures.switches.add(&more.switches);
                figures.migrations += more.migrations;
                entry.counted |= later.counted;
                entry.switched |= later.switched;
                entry.current = later.current.and_then(|ix| seam.task(ix));
                entry.last_switch = entry.last_switch.max(later.last_switch);
                if over {
                    entry.idle_since = later.idle_since;
                }
            });
        }
    }

    /// Who has which id, and what else is known by one.
    fn join_names(&mut self, seam: &Seam, leg: &mut Book, began: &Began) {
        self.names.extend(leg.names.drain());
        self.cgroups.append(&mut leg.cgroups);
        self.loose.append(&mut leg.loose.clone());
        let renamed = leg.renamed.take();
        self.renamed = renamed.and_then(|(time, tid, ix)| Some((time, tid, seam.task(ix)?)));
        let of_tasks = leg.tasks.iter().chain(&began.tasks).map(|task| task.tid);
        let tids: Vec<Tid> = of_tasks.chain(leg.loose.iter().copied()).collect();
        for tid in tids {
            match leg.by_tid.get(tid) {
                Some(ix) => {
                    // Else it stands for the dead, whom this book knows.
                    if let Some(ix) = seam.task(ix) {
                        self.by_tid.insert(tid, ix);
                    }
                }
                None => self.by_tid.remove(tid),
            }
        }
        for process in &leg.processes {
            let at = leg.by_tgid.get(process.pid);
            if let Some(at) = at.and_then(|at| seam.process(at)) {
                self.by_tgid.insert(process.pid, at);
            }
        }
    }

    fn join_process(&mut self, seam: &Seam, at: usize, later: ProcessEntry, seed: &ProcessEntry) {
        let mine = seam.processes.get(at);
        let Some(mine) = mine.and_then(|at| self.processes.get_mut(*at)) else {
            return;
        };
        let new = later.threads.iter().filter(|ix| ix.0 >= seam.seeds);
        mine.threads.extend(new.filter_map(|ix| seam.task(*ix)));
        (mine.live, mine.argv, mine.cgroup) = (later.live, later.argv, later.cgroup);
        mine.max_rss = later.max_rss;
        mine.forked = later.forked;
        if later.status != seed.status {
            mine.status = later.status;
        }
        let mut execs = later.execs.into_iter();
        if !seed.execs.is_empty() {
            if let (Some(last), Some(first)) = (mine.execs.last_mut(), execs.next()) {
                last.times.add(&first.times);
                (last.end, last.ended) = (first.end, first.ended);
            }
        }
        execs.for_each(|exec| push_first(&mut mine.execs, exec));
    }

    /// Processes that have ended since have the status of their leader, if nothing else
    /// has told one.
    fn end_processes(&mut self, seam: &Seam) {
        for at in &seam.processes {
            let process = self.processes.get(*at);
            let ended = process.filter(|process| process.live == 0 && process.status.is_none());
            let status = ended.and_then(|process| self.leaders_status(process));
            if let (Some(status), Some(process)) = (status, self.processes.get_mut(*at)) {
                process.status = Some(status);
            }
        }
    }
}

/// A new process of the leg.
fn moved_process(seam: &Seam, mut process: ProcessEntry) -> ProcessEntry {
    process.parent = process.parent.and_then(|at| seam.process(at));
    let threads = process.threads.iter_mut();
    threads.for_each(|ix| *ix = seam.task(*ix).unwrap_or(*ix));
    process
}

/// A new task of the leg.
fn moved_task(seam: &Seam, mut task: Task) -> Task {
    task.process = seam.process(task.process).unwrap_or(task.process);
    task.parent = task.parent.and_then(|ix| seam.task(ix));
    task.vfork_child = seam.maybe(task.vfork_child);
    task.by = seam.by(task.by);
    if let Some((_, waker)) = &mut task.max_off_cpu {
        *waker = waker.and_then(|ix| seam.task(ix));
    }
    task
}

impl Task {
    /// It has had some time. Of the first in a leg that says where the time belongs that it
    /// spent before the leg in the state in which it was when that began. Whether it was
    /// the first.
    pub(super) fn note_first(&mut self) -> bool {
        let sole = self.sole_bucket();
        let first = self.first.as_mut().filter(|first| first.bucket.is_none());
        first.map(|first| first.bucket = Some(sole)).is_some()
    }

    /// The one bucket that it has had any time in.
    fn sole_bucket(&self) -> Bucket {
        let (times, causes) = (&self.times, &self.causes);
        match () {
            () if times.on_cpu > 0 => Bucket::OnCpu(None),
            () if times.run_queue > 0 => Bucket::RunQueue {
                preempted: causes.preempted > 0,
            },
            () if causes.stopped > 0 => Bucket::Wait(Wait::Stopped),
            () if times.sleep > 0 => Bucket::Wait(Wait::Sleep),
            () if causes.io > 0 => Bucket::Wait(Wait::Io),
            () if causes.vfork > 0 => Bucket::Wait(Wait::Vfork),
            () if times.blocked > 0 => Bucket::Wait(Wait::Blocked),
            () => Bucket::Unknown,
        }
    }

    /// A stretch off CPU is over that went on when the leg began.
    #[cold]
    pub(super) fn note_back(&mut self, until: Ktime, cut: bool) {
        let (by, seen) = (self.woken_by(), self.seen);
        if let Some(first) = &mut self.first {
            first.off_cpu = Some(Back {
                until,
                by,
                cut,
                seen,
            });
        }
    }

    /// Its longest stretch was ended by `by`.
    pub(super) fn note_waker(&mut self, by: Option<By>) {
        if let (Some(first), Some(By::BEFORE)) = (&mut self.first, by) {
            first.unsure = true;
        }
    }

    /// Ends the stretch off CPU in which the leg before has left it.
    fn come_back(&mut self, start: Ktime, back: Back, by: impl Fn(By) -> By) {
        let Some(since) = self.off_since.take() else {
            return;
        };
        let by = back.by.map(|late| match late {
            By::BEFORE => self.by,
            late => by(late),
        });
        let from = since.max(start);
        let stretch = OffCpu {
            length: back.until.since(from),
            since: from,
            waker: None,
            censored: since < start || self.started_before && !back.seen || back.cut,
        };
        let waker = by.and_then(By::place).map(TaskIx);
        self.keep_longest(stretch, waker);
    }

    fn keep_longest(&mut self, stretch: OffCpu, waker: Option<TaskIx>) {
        if self.is_longest(stretch.length) {
            self.max_off_cpu = Some((stretch, waker));
        }
    }

    /// Goes on as what it is at the end of the leg; `seed` is as what it began that.
    fn join(&mut self, seam: &Seam, later: Task, seed: &Task) {
        self.times.add(&later.times);
        self.paid = self.times;
        self.causes.add(&later.causes);
        self.switches.add(&later.switches);
        self.migrations += later.migrations;
        if let Some((stretch, waker)) = later.max_off_cpu {
            self.keep_longest(stretch, waker.and_then(|ix| seam.task(ix)));
        }
        if later.by != By::BEFORE {
            self.by = seam.by(later.by);
        }
        // What has the moment before the leg has not changed since.
        if later.since != seed.since {
            self.since = later.since;
        }
        if later.told != seed.told {
            self.told = later.told;
        }
        if later.off_since != seed.off_since {
            self.off_since = later.off_since;
        }
        self.vfork_child = seam.maybe(later.vfork_child);
        if later.end != seed.end {
            self.end = later.end;
        }
        (self.state, self.epoch) = (later.state, later.epoch);
        (self.woken, self.seen, self.doubt) = (later.woken, later.seen, later.doubt);
        (self.last_cpu, self.tid, self.comm) = (later.last_cpu, later.tid, later.comm);
        (self.exit, self.exited, self.kernel) = (later.exit, later.exited, later.kernel);
    }
}
