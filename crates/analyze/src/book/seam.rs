//! Where the book of a leg is joined to the book before it: whether the one begins as the
//! other ends.

use super::cpus::CpuEntry;
use super::{Book, MaybeTask, ProcessEntry, Task, TaskIx};
use crate::places::ByCpu;
use crate::tasks::State;
use crate::timeline::By;

/// With what a leg's book has begun.
#[derive(Debug)]
pub struct Began {
    /// Those who lived; and behind them those who stand for the dead of a process, whose
    /// leader's tid they have if that is one of them.
    pub(super) tasks: Vec<Task>,
    /// How many of these lived.
    pub(super) living: usize,
    pub(super) processes: Vec<ProcessEntry>,
    pub(super) cpus: ByCpu<CpuEntry>,
    pub(super) crowd: [usize; 3],
}

impl Began {
    /// The process was there.
    pub fn has_process(&self, at: usize) -> bool {
        at < self.processes.len()
    }

    /// That is none who lived.
    pub fn stands_for_the_dead(&self, ix: TaskIx) -> bool {
        (self.living..self.tasks.len()).contains(&ix.0)
    }

    /// The process has executed nothing since.
    pub fn is_program_of(&self, at: usize, process: &ProcessEntry) -> bool {
        let seed = self.processes.get(at);
        seed.is_some_and(|seed| seed.execs.len() == process.execs.len())
    }
}

/// Which of the leg's tasks and processes are which of the book's before it.
pub struct Seam {
    /// Of those who lived.
    pub(super) tasks: Vec<TaskIx>,
    /// How many there are of these and of those that stand for the dead.
    pub(super) seeds: usize,
    pub(super) processes: Vec<usize>,
    /// How many there were before.
    before: (usize, usize),
}

impl Seam {
    /// The place of a leg's task in the book before; `None` when it stands for the dead.
    pub(super) fn task(&self, ix: TaskIx) -> Option<TaskIx> {
        match ix.0.checked_sub(self.seeds) {
            Some(new) => Some(TaskIx(self.before.0 + new)),
            None => self.tasks.get(ix.0).copied(),
        }
    }

    pub(super) fn process(&self, at: usize) -> Option<usize> {
        match at.checked_sub(self.processes.len()) {
            Some(new) => Some(self.before.1 + new),
            None => self.processes.get(at).copied(),
        }
    }

    pub(super) fn maybe(&self, task: MaybeTask) -> MaybeTask {
        let task = task.get().and_then(|ix| self.task(ix));
        task.map_or(MaybeTask::NONE, MaybeTask::some)
    }

    pub(super) fn by(&self, by: By) -> By {
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
    /// Where a leg's book that has begun so is joined to this one; `None` when that is not
    /// how this one ends.
    pub(super) fn seam(&self, began: &Began) -> Option<Seam> {
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
    pub(super) fn is_certain(&self, began: &Began) -> bool {
        let tasks = || self.tasks.iter().zip(&began.tasks);
        let stays = |(task, seed): (&Task, &Task)| {
            let family = |task: &Task| (task.process, task.parent);
            family(task) == family(seed) && task.first.as_ref().is_some_and(|first| !first.unsure)
        };
        let rests = |(task, seed): (&Task, &Task)| {
            (task.tid, task.comm, task.exit, task.kernel)
                == (seed.tid, seed.comm, seed.exit, seed.kernel)
        };
        let dead = began.living..began.tasks.len();
        let about_dead = |task: &Task| {
            let back = task.first.as_ref().and_then(|first| first.off_cpu);
            let waker = task.max_off_cpu.and_then(|(_, waker)| waker);
            let named = [
                task.parent,
                task.vfork_child.get(),
                waker,
                task.by.place().map(TaskIx),
                back.and_then(|back| back.by?.place()).map(TaskIx),
            ];
            named.iter().flatten().any(|ix| dead.contains(&ix.0))
        };
        !self.unsure
            && !self.tasks.iter().any(about_dead)
            && self.violations.is_empty()
            && self.unplaced.is_empty()
            && self.timeline.is_none()
            && tasks().take(began.living).all(stays)
            && tasks().skip(began.living).all(rests)
            && self.processes.iter().all(|process| process.moved.is_none())
    }
}
