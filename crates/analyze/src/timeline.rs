//! The timeline: the states of each thread in the order of time, for reports that need more than sums (wait
//! chains, serial phases).
//!
//! It takes four to eight bytes for each change of a thread's state, beyond some MiB in a temporary file
//! ([`Scratch`]). It is kept only when [`Options::timeline`](crate::Options) asks for it.

mod packed;

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;
use std::sync::Mutex;

use tr_format::event::{CpuId, Ktime, Reason, Tid, Timeout};

use crate::arena::Arena;
use crate::ids::ThreadIx;
use crate::scratch::Scratch;
pub use crate::state::{Bucket, Wait};
use packed::{Packed, Reader, LENGTH};

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

    /// The tid of a task that is not part of the recording.
    fn outside_tid(self) -> Option<Tid> {
        let is_tid = (ActorRef::OUTSIDE..ActorRef::ASKED_TIMEOUT.0).contains(&self.0);
        is_tid.then(|| Tid(self.0 - ActorRef::OUTSIDE))
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

/// The place of [`Bucket::OnCpu`] in [`DOING`], and the place of the last state that has no [`Reason`].
const STATE_ON_CPU: u8 = 1;
const LAST_WITHOUT_REASON: u8 = 3;

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

    /// The stretch that this change begins and that lasts until a time.
    #[inline]
    fn stretch(&self, to: Ktime) -> Stretch {
        Stretch {
            from: self.from,
            to,
            doing: self.doing(),
            reason: Reason::of(self.reason & REASON),
            timeout: self.timeout(),
            actor: self.actor.actor(),
            cpu: self.cpu(),
        }
    }

    /// Whether this change and the next one are one stretch.
    fn is_continued_by(&self, next: &Change) -> bool {
        let of = |change: &Change| (change.doing, change.cpu, change.actor, change.reason);
        of(self) == of(next)
    }
}

/// The timelines of the tracker's tasks, by their indices.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    tasks: Vec<Packed>,
    /// The file for what is beyond [`KEPT`].
    scratch: Option<&'static Scratch>,
    /// The number of packed bytes in memory, and the number at which the next of them move to the file.
    held: usize,
    moves_at: usize,
    /// The number of packed bytes that stay in memory between two moves.
    kept: usize,
}

/// The number of packed bytes that stay in memory, if there is a file for the others.
const KEPT: usize = 32 << 20;
/// The number of bytes that are written at once.
const WRITTEN: usize = 1 << 20;
/// The number of bytes that a walk reads at once.
const AHEAD: u64 = 16 << 10;

impl Draft {
    pub(crate) fn new(scratch: Option<&'static Scratch>) -> Draft {
        Draft {
            scratch,
            moves_at: KEPT,
            kept: KEPT,
            ..Draft::default()
        }
    }

    /// Appends a stretch to the timeline of a task. Stretches have to be added in the order of time, without gaps.
    pub(crate) fn add(
        &mut self,
        task: usize,
        from: Ktime,
        doing: Bucket,
        cpu: Option<CpuId>,
        why: Why,
    ) {
        if self.tasks.len() <= task {
            self.tasks.resize_with(task + 1, Packed::default);
        }
        let change = Change::new(from, doing, cpu, why);
        if let Some(packed) = self.tasks.get_mut(task) {
            let continues = packed
                .last()
                .is_some_and(|last| last.is_continued_by(&change));
            if !continues {
                self.held += packed.push(task, change);
            }
        }
        if self.held >= self.moves_at && self.scratch.is_some() {
            self.move_out();
        }
    }

    /// Moves all whole segments to the scratch file. If it takes no more, everything stays in memory from then on.
    #[cold]
    fn move_out(&mut self) {
        let Some(scratch) = self.scratch else {
            return;
        };
        let mut piece: Vec<u8> = Vec::with_capacity(WRITTEN);
        let mut moving: Vec<(usize, usize)> = Vec::new();
        let tasks = self.tasks.len();
        for task in 0..tasks {
            if let Some(packed) = self.tasks.get(task) {
                let movable = packed.movable();
                if movable > 0 {
                    piece.extend_from_slice(packed.to_move(movable));
                    moving.push((task, movable));
                }
            }
            if piece.len() < WRITTEN && task + 1 < tasks {
                continue;
            }
            let Ok(mut place) = scratch.write(&piece) else {
                self.moves_at = usize::MAX;
                return;
            };
            for (task, movable) in moving.drain(..) {
                if let Some(packed) = self.tasks.get_mut(task) {
                    packed.moved(movable, place);
                }
                self.held = self.held.saturating_sub(movable);
                place += movable as u64;
            }
            piece.clear();
        }
        // Tasks with less than a segment stay, however many there are.
        self.moves_at = self.held + self.kept;
    }

    /// The unpacked changes of a task.
    fn changes(&self, task: usize) -> Vec<Change> {
        let Some(packed) = self.tasks.get(task) else {
            return Vec::new();
        };
        let mut reader = Reader::new(self.scratch, AHEAD);
        let (mut all, mut segment) = (Vec::new(), Vec::new());
        for number in 0..packed.segments() {
            packed.unpack(task, number, &mut reader, &mut segment);
            all.append(&mut segment);
        }
        all
    }

    /// Makes `most` nanoseconds of a task's waits for a CPU unknown, the longest waits first, if the task went from
    /// a CPU into them and nobody woke it. The end of such a wait may have been one for a CPU. Returns the time that
    /// is unknown now.
    pub(crate) fn doubt_unwoken(&mut self, task: usize, most: u64) -> u64 {
        let mut changes = self.changes(task);
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
        if left < most {
            self.replace(task, &changes);
        }
        most - left
    }

    /// Replaces the changes of a task.
    fn replace(&mut self, task: usize, changes: &[Change]) {
        if let Some(packed) = self.tasks.get_mut(task) {
            self.held = self.held.saturating_sub(packed.in_memory());
            *packed = Packed::default();
            for change in changes {
                self.held += packed.push(task, *change);
            }
        }
    }

    /// The timeline of the model's threads. `threads` has the index of each thread's task and the end of the
    /// thread. `thread_of` finds the thread of a task, or the tid of a task that is not part of the model.
    pub(crate) fn finish(
        mut self,
        threads: impl Iterator<Item = (usize, Ktime)>,
        thread_of: impl Fn(usize) -> Result<ThreadIx, Tid>,
        tasks: usize,
    ) -> Timeline {
        let actor_of = |task: usize| match thread_of(task) {
            Ok(thread) => ActorRef::task(thread.0 as usize),
            Err(tid) => ActorRef::outside(tid),
        };
        let lines = threads.map(|(task, end)| {
            // A task without any time has no changes.
            let mut packed = self
                .tasks
                .get_mut(task)
                .map(std::mem::take)
                .unwrap_or_default();
            packed.shrink();
            Line {
                packed,
                task,
                end,
                plain: None,
            }
        });
        Timeline {
            lines: lines.collect(),
            actors: (0..tasks).map(actor_of).collect(),
            scratch: self.scratch,
            recent: Recent::default(),
        }
    }
}

/// The changes of one thread, and the end of its last stretch.
#[derive(Clone, Debug)]
struct Line {
    packed: Packed,
    /// The index of the thread's task in the tracker.
    task: usize,
    end: Ktime,
    /// The changes, if they were changed after the reading.
    plain: Option<Vec<Change>>,
}

impl Line {
    fn count(&self) -> usize {
        self.plain.as_ref().map_or(self.packed.count(), Vec::len)
    }

    /// The time of the first change of a segment.
    fn begin_of(&self, segment: usize) -> Option<Ktime> {
        match &self.plain {
            Some(plain) => plain.get(segment * LENGTH).map(|change| change.from),
            None => self.packed.begin_of(segment),
        }
    }

    /// The last segment that begins at or before a time.
    fn segment_at(&self, time: Ktime) -> Option<usize> {
        match &self.plain {
            Some(plain) => {
                let after = plain.partition_point(|change| change.from <= time);
                Some(after.checked_sub(1)? / LENGTH)
            }
            None => self.packed.segment_at(time),
        }
    }
}

/// Segments that were unpacked for single questions. A question rarely comes alone.
#[derive(Debug, Default)]
struct Recent(Mutex<Vec<Option<RecentSegment>>>);

#[derive(Debug)]
struct RecentSegment {
    key: (ThreadIx, usize),
    changes: Vec<Change>,
}

/// The number of [`Recent`] segments; a power of two.
const RECENT: usize = 1024;

impl Clone for Recent {
    fn clone(&self) -> Recent {
        Recent::default()
    }
}

/// The stretches of every thread. All functions panic for a thread of another analysis.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    lines: Arena<ThreadIx, Line>,
    /// The threads of the tracker's tasks, which are the actors of the packed changes.
    actors: Vec<ActorRef>,
    scratch: Option<&'static Scratch>,
    recent: Recent,
}

impl Timeline {
    /// The number of stretches of a thread.
    pub fn count(&self, thread: ThreadIx) -> usize {
        self.lines[thread].count()
    }

    /// The number of waits that tasks ended, apart from threads whose changes were changed after the reading.
    pub fn dependencies(&self) -> u64 {
        let each = self
            .lines
            .iter()
            .map(|line| u64::from(line.packed.by_task()));
        each.fold(0, u64::saturating_add)
    }

    /// Unpacks a segment of a thread.
    fn unpack(&self, thread: ThreadIx, segment: usize, reader: &mut Reader, to: &mut Vec<Change>) {
        let line = &self.lines[thread];
        if let Some(plain) = &line.plain {
            to.clear();
            let changes = plain.chunks(LENGTH).nth(segment);
            to.extend_from_slice(changes.unwrap_or_default());
            return;
        }
        line.packed.unpack(line.task, segment, reader, to);
        for change in to {
            if let Some(actor) = change.actor.place().and_then(|task| self.actors.get(task)) {
                change.actor = *actor;
            }
        }
    }

    /// Calls `with` with the changes of a segment.
    fn with_segment<T>(
        &self,
        thread: ThreadIx,
        segment: usize,
        with: impl FnOnce(&[Change]) -> T,
    ) -> T {
        let key = (thread, segment);
        let unpack = |changes: &mut Vec<Change>| {
            let mut reader = Reader::new(self.scratch, 0);
            self.unpack(thread, segment, &mut reader, changes);
        };
        let Ok(mut recent) = self.recent.0.try_lock() else {
            let mut changes = Vec::new();
            unpack(&mut changes);
            return with(&changes);
        };
        if recent.is_empty() {
            recent.resize_with(RECENT, || None);
        }
        let place = (thread.0 as usize).wrapping_mul(31).wrapping_add(segment) % RECENT;
        let Some(entry) = recent.get_mut(place) else {
            return with(&[]);
        };
        let entry = entry.get_or_insert_with(|| RecentSegment {
            key: (thread, usize::MAX),
            changes: Vec::new(),
        });
        if entry.key != key {
            unpack(&mut entry.changes);
            entry.key = key;
        }
        with(&entry.changes)
    }

    /// A stretch of a thread by its number.
    pub fn get(&self, thread: ThreadIx, number: usize) -> Option<Stretch> {
        let line = &self.lines[thread];
        if number >= line.count() {
            return None;
        }
        let (segment, at) = (number / LENGTH, number % LENGTH);
        self.with_segment(thread, segment, |changes| {
            let change = changes.get(at)?;
            let next = changes.get(at + 1).map(|next| next.from);
            Some(
                change.stretch(
                    next.or_else(|| line.begin_of(segment + 1))
                        .unwrap_or(line.end),
                ),
            )
        })
    }

    /// The stretches of a thread from one on, by its number.
    pub fn from_number(&self, thread: ThreadIx, number: usize) -> Stretches<'_> {
        Stretches {
            timeline: self,
            thread,
            number,
            by_task: false,
            reader: Reader::new(self.scratch, AHEAD),
            changes: Vec::new(),
        }
    }

    /// The stretches of a thread, except for some of those that are not waits which a task ended.
    pub(crate) fn around_tasks(&self, thread: ThreadIx) -> Stretches<'_> {
        Stretches {
            by_task: true,
            ..self.of(thread)
        }
    }

    /// Whether a thread may have waited for this reason. `false` is certain.
    pub fn may_wait(&self, thread: ThreadIx, reason: Reason) -> bool {
        let line = &self.lines[thread];
        line.plain.is_some() || line.packed.has_reason(reason as u8)
    }

    /// The stretches of a thread. They follow each other without gaps from the thread's start to its end, inside
    /// the analyzed span.
    pub fn of(&self, thread: ThreadIx) -> Stretches<'_> {
        self.from_number(thread, 0)
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
    pub fn since(&self, thread: ThreadIx, time: Ktime) -> Stretches<'_> {
        self.from_number(thread, self.at(thread, time).unwrap_or(0))
    }

    /// The changes of all of these threads in the order of time.
    pub fn changes(&self, threads: impl Iterator<Item = ThreadIx>) -> Changes<'_> {
        let first = |thread| Some((self.lines[thread].begin_of(0)?, thread));
        let mut unborn: Vec<(Ktime, ThreadIx)> = threads.filter_map(first).collect();
        unborn.sort_unstable_by_key(|first| Reverse(*first));
        Changes {
            timeline: self,
            unborn,
            next: BinaryHeap::new(),
            living: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The changes of a thread, to change them.
    fn plain(&mut self, thread: ThreadIx) -> &mut Vec<Change> {
        let segments = self.lines[thread].count().div_ceil(LENGTH);
        if self.lines[thread].plain.is_none() {
            let mut reader = Reader::new(self.scratch, AHEAD);
            let (mut all, mut changes) = (Vec::new(), Vec::new());
            for segment in 0..segments {
                self.unpack(thread, segment, &mut reader, &mut changes);
                all.append(&mut changes);
            }
            self.lines[thread].packed = Packed::default();
            self.lines[thread].plain = Some(all);
        }
        self.recent = Recent::default();
        self.lines[thread].plain.get_or_insert_default()
    }

    /// Divides the stretch around a time into two. `actor` ended the first part; the actor of the whole stretch
    /// ended the second part.
    pub(crate) fn divide(&mut self, thread: ThreadIx, at: Ktime, actor: Actor) {
        let Some(number) = self.at(thread, at) else {
            return;
        };
        let changes = self.plain(thread);
        let Some(first) = changes.get_mut(number).filter(|first| first.from < at) else {
            return;
        };
        let rest = Change { from: at, ..*first };
        first.actor = ActorRef::of(actor);
        changes.insert(number + 1, rest);
    }

    /// Sets the actor that ended a stretch.
    pub(crate) fn end_by(&mut self, thread: ThreadIx, number: usize, actor: Actor) {
        if let Some(change) = self.plain(thread).get_mut(number) {
            change.actor = ActorRef::of(actor);
        }
    }

    /// The number of the stretch [`Self::around`] a time.
    pub fn at(&self, thread: ThreadIx, time: Ktime) -> Option<usize> {
        let segment = self.lines[thread].segment_at(time)?;
        self.with_segment(thread, segment, |changes| {
            let after = changes.partition_point(|change| change.from <= time);
            Some(segment * LENGTH + after.checked_sub(1)?)
        })
    }
}

/// The stretches of a thread in order.
pub struct Stretches<'a> {
    timeline: &'a Timeline,
    thread: ThreadIx,
    /// The number of the next stretch.
    number: usize,
    /// Whether segments without a wait that a task ended are left out.
    by_task: bool,
    reader: Reader,
    /// The changes of the next stretch's segment, if that is not the first one of the segment.
    changes: Vec<Change>,
}

impl Iterator for Stretches<'_> {
    type Item = Stretch;

    #[inline]
    fn next(&mut self) -> Option<Stretch> {
        if self.number.is_multiple_of(LENGTH) || self.changes.is_empty() {
            self.enter()?;
        }
        let at = self.number % LENGTH;
        let change = self.changes.get(at)?;
        let until = match self.changes.get(at + 1) {
            Some(next) => next.from,
            None => {
                let line = &self.timeline.lines[self.thread];
                let next = line.begin_of(self.number / LENGTH + 1);
                next.unwrap_or(line.end)
            }
        };
        self.number += 1;
        Some(change.stretch(until))
    }
}

impl Stretches<'_> {
    /// Unpacks the segment of the next stretch.
    fn enter(&mut self) -> Option<()> {
        let Stretches {
            timeline,
            thread,
            number,
            by_task,
            reader,
            changes,
        } = self;
        let line = &timeline.lines[*thread];
        if *by_task && line.plain.is_none() {
            while *number < line.count() && !line.packed.has_by_task(*number / LENGTH) {
                *number = (*number / LENGTH + 1) * LENGTH;
            }
        }
        if *number >= line.count() {
            return None;
        }
        timeline.unpack(*thread, *number / LENGTH, reader, changes);
        Some(())
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
    /// The threads that have not begun, the first one last.
    unborn: Vec<(Ktime, ThreadIx)>,
    /// The next change of each living thread: its time, and the place of the thread among the living ones.
    next: BinaryHeap<Reverse<(Ktime, ThreadIx, u32)>>,
    living: Vec<Living<'a>>,
    /// The places of threads that have ended.
    free: Vec<u32>,
}

/// A thread that has begun.
struct Living<'a> {
    stretches: Stretches<'a>,
    /// The present stretch.
    now: Stretch,
}

impl Changes<'_> {
    /// Begins a thread.
    fn begin(&mut self, thread: ThreadIx) -> Option<StateChange> {
        let mut stretches = self.timeline.of(thread);
        let now = stretches.next()?;
        let living = Living { stretches, now };
        let place = match self.free.pop() {
            Some(place) => {
                if let Some(entry) = self.living.get_mut(place as usize) {
                    *entry = living;
                }
                place
            }
            None => {
                self.living.push(living);
                u32::try_from(self.living.len() - 1).ok()?
            }
        };
        self.next.push(Reverse((now.to, thread, place)));
        Some(StateChange {
            at: now.from,
            thread,
            before: None,
            after: Some(now),
        })
    }
}

impl Iterator for Changes<'_> {
    type Item = StateChange;

    fn next(&mut self) -> Option<StateChange> {
        let next = self
            .next
            .peek()
            .map(|Reverse((at, thread, _))| (*at, *thread));
        while let Some(first) = self.unborn.last().copied() {
            if next.is_some_and(|next| next < first) {
                break;
            }
            self.unborn.pop();
            if let Some(change) = self.begin(first.1) {
                return Some(change);
            }
        }
        let mut next = self.next.peek_mut()?;
        let Reverse((at, thread, place)) = *next;
        let living = self.living.get_mut(place as usize)?;
        let before = Some(living.now);
        let after = living.stretches.next();
        match after {
            Some(after) => {
                living.now = after;
                *next = Reverse((after.to, thread, place));
            }
            None => {
                PeekMut::pop(next);
                self.free.push(place);
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
