//! The timeline: the states of each thread in the order of time, for reports that need more than sums (wait
//! chains, serial phases).
//!
//! Takes 16 bytes for each change of a thread's state, so its size grows with the
//! events. It is kept only when [`Options::timeline`](crate::Options) asks for it.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;

use tr_format::event::{CpuId, Ktime, Reason, Tid, Timeout};

use crate::arena::Arena;
use crate::ids::ThreadIx;
pub use crate::state::{Bucket, Wait};

/// A task or an interrupt that woke or preempted a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// There is no actor, or it is not known.
    Unknown,
    /// The time-out of the system call that waited: the call had one, the wait lasted that long, and an
    /// interrupt ended it.
    Timeout {
        /// Whether a TCP connection of the process had sent bytes that were not answered when the wait began.
        asked: bool,
    },
    /// A hardware interrupt that was not the time-out of the waiting call: a device, a signal from a timer.
    Device,
    /// A hardware interrupt, a timer or a device: the recording does not show whether the time-out of the call had
    /// passed.
    Interrupt,
    /// A softirq: the network, completed block I/O.
    SoftIrq,
    /// A thread of the recording.
    Thread(ThreadIx),
    /// A task that is not recorded, or that lived outside the span.
    Outside(Tid),
}

impl Actor {
    /// Whether the end of a wait is a time-out, or an interrupt that can be one.
    pub fn is_timer(self) -> bool {
        matches!(self, Actor::Interrupt | Actor::Timeout { .. })
    }

    /// Whether no task has ended the wait.
    pub fn is_interrupt(self) -> bool {
        self.is_timer() || matches!(self, Actor::Device | Actor::SoftIrq)
    }
}

/// A part of a thread's time in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from: Ktime,
    /// The end of the stretch, which is the beginning of the next one.
    pub to: Ktime,
    pub doing: Bucket,
    /// The class of the system call in which the thread went to sleep, if the stretch is a wait.
    pub reason: Reason,
    /// The time-out of that system call, without [`Timeout::is_asked`].
    pub timeout: Timeout,
    /// The [`Stretch::waker`] or, of a preempted thread, [`Stretch::preempted_by`].
    pub actor: Actor,
    /// The CPU that the thread was on, if it is known. With [`Options::cpu`](crate::Options::cpu), time on
    /// another CPU also has its CPU here, though it counts as unknown.
    pub cpu: Option<CpuId>,
}

impl Stretch {
    /// The length of the stretch in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }

    /// The actor that ended a wait or a time of unknown state; for a wait for a CPU, the actor that woke or
    /// forked the thread. For all other stretches it is unknown.
    pub fn waker(&self) -> Actor {
        match self.doing {
            Bucket::RunQueue { preempted: true } => Actor::Unknown,
            _ => self.actor,
        }
    }

    /// The task that took the CPU from a preempted thread. For all other stretches it is unknown.
    pub fn preempted_by(&self) -> Actor {
        match self.doing {
            Bucket::RunQueue { preempted: true } => self.actor,
            _ => Actor::Unknown,
        }
    }
}

/// The part of a thread's time between two of its totals, in a recording without scheduling events. The
/// order of the states in it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The time of the earlier totals.
    pub from: Ktime,
    /// The time of the later totals.
    pub to: Ktime,
    /// The time on a CPU in ns.
    pub on_cpu: u64,
    /// The time in a run queue in ns.
    pub run_queue: u64,
    /// The time asleep or blocked in ns. The rest of the time is unknown.
    pub off_cpu: u64,
}

impl Sample {
    /// The length of the sample in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }

    /// Appends a sample. Time beyond its length belongs to the samples before it, because the totals of a
    /// running task lag by up to a tick. Time off CPU extends the sample before it.
    pub(crate) fn push(samples: &mut Vec<Sample>, mut next: Sample) {
        let (mut on_cpu, mut run_queue) = next.fit();
        let mut end = next.from;
        for sample in samples.iter_mut().rev() {
            if (on_cpu, run_queue) == (0, 0) || sample.to != end {
                break;
            }
            sample.on_cpu = sample.on_cpu.saturating_add(on_cpu);
            sample.run_queue = sample.run_queue.saturating_add(run_queue);
            (on_cpu, run_queue) = sample.fit();
            end = sample.from;
        }
        let idle = |sample: &Sample| sample.off_cpu == sample.length();
        match samples.last_mut() {
            Some(last) if last.to == next.from && idle(last) && idle(&next) => {
                last.to = next.to;
                last.off_cpu = last.off_cpu.saturating_add(next.off_cpu);
            }
            _ => samples.push(next),
        }
    }

    /// Limits the times to the length. Returns the excess on a CPU and in a run queue.
    fn fit(&mut self) -> (u64, u64) {
        let length = self.length();
        let (on_cpu, run_queue) = (self.on_cpu, self.run_queue);
        self.on_cpu = on_cpu.min(length);
        self.run_queue = run_queue.min(length - self.on_cpu);
        self.off_cpu = self.off_cpu.min(length - self.on_cpu - self.run_queue);
        (on_cpu - self.on_cpu, run_queue - self.run_queue)
    }
}

/// An [`Actor`] in four bytes: the index of a task of the tracker (in a finished timeline, of a thread), or
/// a tid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActorRef(u32);

impl ActorRef {
    pub(crate) const UNKNOWN: ActorRef = ActorRef(u32::MAX);
    pub(crate) const INTERRUPT: ActorRef = ActorRef(u32::MAX - 1);
    pub(crate) const SOFTIRQ: ActorRef = ActorRef(u32::MAX - 2);
    pub(crate) const DEVICE: ActorRef = ActorRef(u32::MAX - 3);
    pub(crate) const TIMEOUT: ActorRef = ActorRef(u32::MAX - 4);
    pub(crate) const ASKED_TIMEOUT: ActorRef = ActorRef(u32::MAX - 5);
    /// The first value that stands for a tid. Linux has at most 2^22 tids (`PID_MAX_LIMIT`).
    const OUTSIDE: u32 = 1 << 31;

    /// A task of the tracker, by its index.
    pub(crate) fn task(ix: usize) -> ActorRef {
        let ix = u32::try_from(ix).ok().filter(|ix| *ix < ActorRef::OUTSIDE);
        ix.map_or(ActorRef::UNKNOWN, ActorRef)
    }

    /// A task that the tracker does not have.
    pub(crate) fn outside(tid: Tid) -> ActorRef {
        let tid = tid.0.checked_add(ActorRef::OUTSIDE);
        tid.filter(|tid| *tid < ActorRef::ASKED_TIMEOUT.0)
            .map_or(ActorRef::UNKNOWN, ActorRef)
    }

    fn of(actor: Actor) -> ActorRef {
        match actor {
            Actor::Unknown => ActorRef::UNKNOWN,
            Actor::Interrupt => ActorRef::INTERRUPT,
            Actor::SoftIrq => ActorRef::SOFTIRQ,
            Actor::Device => ActorRef::DEVICE,
            Actor::Timeout { asked: false } => ActorRef::TIMEOUT,
            Actor::Timeout { asked: true } => ActorRef::ASKED_TIMEOUT,
            Actor::Thread(thread) => ActorRef::task(thread.0 as usize),
            Actor::Outside(tid) => ActorRef::outside(tid),
        }
    }

    /// The index, if the actor has one.
    pub(crate) fn place(self) -> Option<usize> {
        (self.0 < ActorRef::OUTSIDE).then_some(self.0 as usize)
    }

    fn actor(self) -> Actor {
        match self {
            ActorRef::UNKNOWN => Actor::Unknown,
            ActorRef::INTERRUPT => Actor::Interrupt,
            ActorRef::SOFTIRQ => Actor::SoftIrq,
            ActorRef::DEVICE => Actor::Device,
            ActorRef::TIMEOUT => Actor::Timeout { asked: false },
            ActorRef::ASKED_TIMEOUT => Actor::Timeout { asked: true },
            ActorRef(ix) if ix < ActorRef::OUTSIDE => Actor::Thread(ThreadIx(ix)),
            ActorRef(tid) => Actor::Outside(Tid(tid - ActorRef::OUTSIDE)),
        }
    }
}

/// The beginning of a stretch, which lasts until the next change.
#[derive(Clone, Copy, Debug)]
struct Change {
    from: Ktime,
    actor: ActorRef,
    /// The number of [`Stretch::cpu`]; `u16::MAX` if it is not known.
    cpu: u16,
    /// A place in [`DOING`], and above it the low four bits of the number of a [`Timeout`].
    doing: u8,
    /// The number of a [`Reason`], and above it the high three bits of the number of a [`Timeout`].
    reason: u8,
}

/// The states by number. A change stores the CPU separately.
const DOING: [Bucket; 10] = [
    Bucket::Unknown,
    Bucket::OnCpu(None),
    Bucket::RunQueue { preempted: false },
    Bucket::RunQueue { preempted: true },
    Bucket::Wait(Wait::Sleep),
    Bucket::Wait(Wait::Stopped),
    Bucket::Wait(Wait::Io),
    Bucket::Wait(Wait::Vfork),
    Bucket::Wait(Wait::Blocked),
    Bucket::Wait(Wait::Unknown),
];

/// The number of bits of [`Change::doing`] and of [`Change::reason`] that have no part of a [`Timeout`].
const DOING_BITS: u32 = 4;
const REASON_BITS: u32 = 5;
const REASON: u8 = (1 << REASON_BITS) - 1;

/// The cause of a stretch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Why {
    pub actor: ActorRef,
    /// The number of a [`Reason`].
    pub reason: u8,
    /// The number of a [`Timeout`], without [`Timeout::is_asked`].
    pub timeout: u8,
}

impl Change {
    fn new(
        from: Ktime,
        doing: Bucket,
        cpu: Option<CpuId>,
        Why {
            actor,
            reason,
            timeout,
        }: Why,
    ) -> Change {
        let (doing, actor) = match doing {
            Bucket::OnCpu(_) => (Bucket::OnCpu(None), ActorRef::UNKNOWN),
            // With `Options::cpu`: on another CPU.
            Bucket::Unknown if cpu.is_some() => (doing, ActorRef::UNKNOWN),
            Bucket::Unknown | Bucket::RunQueue { .. } | Bucket::Wait(_) => (doing, actor),
        };
        let waits = matches!(doing, Bucket::Wait(_));
        let doing = DOING.iter().position(|known| *known == doing);
        Change {
            from,
            actor,
            cpu: cpu.map_or(u16::MAX, |cpu| cpu.0),
            reason: if waits {
                Reason::of(reason) as u8 | timeout >> 4 << REASON_BITS
            } else {
                0
            },
            doing: doing.and_then(|at| u8::try_from(at).ok()).unwrap_or(0)
                | if waits { timeout << DOING_BITS } else { 0 },
        }
    }

    /// The state, without the CPU.
    fn state(&self) -> Option<&'static Bucket> {
        DOING.get(usize::from(self.doing & ((1 << DOING_BITS) - 1)))
    }

    fn doing(&self) -> Bucket {
        match self.state() {
            Some(Bucket::OnCpu(_)) => Bucket::OnCpu(self.cpu()),
            Some(other) => *other,
            None => Bucket::Unknown,
        }
    }

    fn timeout(&self) -> Timeout {
        Timeout::of(self.doing >> DOING_BITS | self.reason >> REASON_BITS << 4)
    }

    fn cpu(&self) -> Option<CpuId> {
        (self.cpu != u16::MAX).then_some(CpuId(self.cpu))
    }

    /// Whether this change and the next one are one stretch.
    fn is_continued_by(&self, next: &Change) -> bool {
        let of = |change: &Change| (change.doing, change.cpu, change.actor, change.reason);
        of(self) == of(next)
    }
}

/// The timelines of the tracker's tasks, by their indices.
#[derive(Debug, Default)]
pub(crate) struct Draft(Vec<Vec<Change>>);

impl Draft {
    /// Appends a stretch to the timeline of a task. Stretches have to be added in the order of time, without gaps.
    pub(crate) fn add(
        &mut self,
        task: usize,
        from: Ktime,
        doing: Bucket,
        cpu: Option<CpuId>,
        why: Why,
    ) {
        if self.0.len() <= task {
            self.0.resize_with(task + 1, Vec::new);
        }
        let change = Change::new(from, doing, cpu, why);
        if let Some(changes) = self.0.get_mut(task) {
            if !changes
                .last()
                .is_some_and(|last| last.is_continued_by(&change))
            {
                changes.push(change);
            }
        }
    }

    /// Makes `most` nanoseconds of a task's waits for a CPU unknown, the longest waits first, if the task went from
    /// a CPU into them and nobody woke it. The end of such a wait may have been one for a CPU. Returns the time that
    /// is unknown now.
    pub(crate) fn doubt_unwoken(&mut self, task: usize, most: u64) -> u64 {
        let Some(changes) = self.0.get_mut(task) else {
            return 0;
        };
        let is = |change: &Change, doing: Bucket| change.state() == Some(&doing);
        let waits = Bucket::RunQueue { preempted: false };
        let unwoken = changes.windows(3).enumerate().filter_map(|(at, changes)| {
            let [before, wait, after] = changes else {
                return None;
            };
            let nobody = wait.actor == ActorRef::UNKNOWN && is(wait, waits);
            let length = after.from.since(wait.from);
            (nobody && is(before, Bucket::OnCpu(None))).then_some((length, at + 1))
        });
        let mut unwoken: Vec<(u64, usize)> = unwoken.collect();
        unwoken.sort_unstable_by_key(|(length, at)| (Reverse(*length), *at));
        let off_cpu = Why {
            actor: ActorRef::UNKNOWN,
            reason: 0,
            timeout: 0,
        };
        let mut left = most;
        let mut divided = Vec::new();
        for (length, at) in unwoken {
            let Some(wait) = changes.get_mut(at).filter(|_| left > 0) else {
                break;
            };
            let rest = *wait;
            *wait = Change::new(rest.from, Bucket::Wait(Wait::Unknown), None, off_cpu);
            if length > left {
                let from = Ktime(wait.from.0.saturating_add(left));
                divided.push((at + 1, Change { from, ..rest }));
            }
            left -= left.min(length);
        }
        // At most the last one is longer than what was left.
        for (at, rest) in divided {
            changes.insert(at, rest);
        }
        most - left
    }

    /// The timeline of the model's threads. `threads` has the index of each thread's task and the end of the
    /// thread. `thread_of` finds the thread of a task, or the tid of a task that is not part of the model.
    pub(crate) fn finish(
        mut self,
        threads: impl Iterator<Item = (usize, Ktime)>,
        thread_of: impl Fn(usize) -> Result<ThreadIx, Tid>,
    ) -> Timeline {
        let renumbered = |actor: ActorRef| match actor.place().map(&thread_of) {
            Some(Ok(thread)) => ActorRef::task(thread.0 as usize),
            Some(Err(tid)) => ActorRef::outside(tid),
            None => actor,
        };
        let lines = threads.map(|(task, end)| {
            // A task without any time has no changes.
            let mut changes = self.0.get_mut(task).map(std::mem::take).unwrap_or_default();
            for change in &mut changes {
                change.actor = renumbered(change.actor);
            }
            Line { changes, end }
        });
        Timeline(lines.collect())
    }
}

/// The changes of one thread, and the end of its last stretch.
#[derive(Clone, Debug)]
struct Line {
    changes: Vec<Change>,
    end: Ktime,
}

/// The stretches of every thread. All functions panic for a thread of another analysis.
#[derive(Clone, Debug, Default)]
pub struct Timeline(Arena<ThreadIx, Line>);

impl Timeline {
    /// The number of stretches of a thread.
    pub fn count(&self, thread: ThreadIx) -> usize {
        self.0[thread].changes.len()
    }

    /// A stretch of a thread by its number.
    pub fn get(&self, thread: ThreadIx, number: usize) -> Option<Stretch> {
        let line = &self.0[thread];
        let change = line.changes.get(number)?;
        let next = line.changes.get(number + 1);
        Some(Stretch {
            from: change.from,
            to: next.map_or(line.end, |next| next.from),
            doing: change.doing(),
            reason: Reason::of(change.reason & REASON),
            timeout: change.timeout(),
            actor: change.actor.actor(),
            cpu: change.cpu(),
        })
    }

    /// The stretches of a thread. They follow each other without gaps from the thread's start to its end, inside
    /// the analyzed span.
    pub fn of(&self, thread: ThreadIx) -> impl Iterator<Item = Stretch> + '_ {
        (0..self.count(thread)).filter_map(move |number| self.get(thread, number))
    }

    /// The stretch of a thread around a time: the last stretch that begins at or before the time.
    pub fn around(&self, thread: ThreadIx, time: Ktime) -> Option<Stretch> {
        self.get(thread, self.at(thread, time)?)
    }

    /// The stretch of a thread right before a time.
    pub fn before(&self, thread: ThreadIx, time: Ktime) -> Option<Stretch> {
        self.get(thread, self.number_before(thread, time)?)
    }

    /// The number of the stretch that is right [`Self::before`] a time.
    pub fn number_before(&self, thread: ThreadIx, time: Ktime) -> Option<usize> {
        self.at(thread, Ktime(time.0.checked_sub(1)?))
    }

    /// The stretches of a thread from the one [`Self::around`] a time on, or from the first one.
    pub fn since(&self, thread: ThreadIx, time: Ktime) -> impl Iterator<Item = Stretch> + '_ {
        let first = self.at(thread, time).unwrap_or(0);
        (first..self.count(thread)).filter_map(move |number| self.get(thread, number))
    }

    /// The changes of all of these threads in the order of time.
    pub fn changes(&self, threads: impl Iterator<Item = ThreadIx>) -> Changes<'_> {
        let first = |thread| Some(Reverse((self.get(thread, 0)?.from, thread, 0)));
        Changes {
            timeline: self,
            next: threads.filter_map(first).collect(),
        }
    }

    /// Divides the stretch around a time into two. `actor` ended the first part; the actor of the whole stretch
    /// ended the second part.
    pub(crate) fn divide(&mut self, thread: ThreadIx, at: Ktime, actor: Actor) {
        let Some(number) = self.at(thread, at) else {
            return;
        };
        let changes = &mut self.0[thread].changes;
        let Some(first) = changes.get_mut(number).filter(|first| first.from < at) else {
            return;
        };
        let rest = Change { from: at, ..*first };
        first.actor = ActorRef::of(actor);
        changes.insert(number + 1, rest);
    }

    /// Sets the actor that ended a stretch.
    pub(crate) fn end_by(&mut self, thread: ThreadIx, number: usize, actor: Actor) {
        if let Some(change) = self.0[thread].changes.get_mut(number) {
            change.actor = ActorRef::of(actor);
        }
    }

    /// The number of the stretch [`Self::around`] a time.
    pub fn at(&self, thread: ThreadIx, time: Ktime) -> Option<usize> {
        let changes = &self.0[thread].changes;
        changes
            .partition_point(|change| change.from <= time)
            .checked_sub(1)
    }
}

/// A moment at which the state of a thread changes, or at which the thread begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    pub at: Ktime,
    pub thread: ThreadIx,
    /// The stretch that ends; `None` at the thread's beginning.
    pub before: Option<Stretch>,
    /// The stretch that begins; `None` at the thread's end.
    pub after: Option<Stretch>,
}

/// The changes of several threads in the order of time; see [`Timeline::changes`].
pub struct Changes<'a> {
    timeline: &'a Timeline,
    /// The next change of each thread: its time, and the number of the stretch that begins.
    next: BinaryHeap<Reverse<(Ktime, ThreadIx, u32)>>,
}

impl Iterator for Changes<'_> {
    type Item = StateChange;

    fn next(&mut self) -> Option<StateChange> {
        let mut next = self.next.peek_mut()?;
        let Reverse((at, thread, number)) = *next;
        let timeline = self.timeline;
        let stretch = |number: u32| timeline.get(thread, number as usize);
        let before = number.checked_sub(1).and_then(stretch);
        let after = stretch(number);
        match after {
            Some(after) => *next = Reverse((after.to, thread, number + 1)),
            None => {
                PeekMut::pop(next);
            }
        }
        Some(StateChange {
            at,
            thread,
            before,
            after,
        })
    }
}

#[cfg(test)]
#[path = "tests/timeline.rs"]
mod tests;
