//! What every thread did when: kept while the tracker is, for the reports that a
//! sum cannot answer (who waited for whom, what was serial).
//!
//! Takes 16 bytes for each change of a thread's state, so its size grows with
//! the events; it is only kept when [`Options::timeline`](crate::Options) asks.

use tr_format::event::{CpuId, Ktime, Tid};

use crate::model::ThreadIx;
pub use crate::state::{Bucket, Wait};

/// Actor ended a wait, or took a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// Not known, or nobody.
    Unknown,
    /// An interrupt: a timer, a disk, the network.
    Interrupt,
    /// A thread of the recording.
    Thread(ThreadIx),
    /// A task that is not recorded, or lived outside the span.
    Outside(Tid),
}

/// A piece of a thread's time in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// From here on.
    pub from: Ktime,
    /// Up to here, where the next one begins.
    pub to: Ktime,
    /// What the thread did.
    pub doing: Bucket,
    /// Of a wait: who ended it. Of a wait for a CPU: who woke the thread, or
    /// started it; after being preempted, who took the CPU.
    pub who: Actor,
    /// The CPU that the thread was on, if that is known. With
    /// [`Options::cpu`](crate::Options::cpu) time on another CPU has it too,
    /// though it counts as unknown.
    pub cpu: Option<CpuId>,
}

impl Stretch {
    /// Its length in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// Actor, while the tracker is being kept: a task's place in it, or a tid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActorRef(u32);

impl ActorRef {
    pub(crate) const UNKNOWN: ActorRef = ActorRef(u32::MAX);
    pub(crate) const INTERRUPT: ActorRef = ActorRef(u32::MAX - 1);
    /// Above it are tids: Linux has at most 2^22 (`PID_MAX_LIMIT`).
    const OUTSIDE: u32 = 1 << 31;

    /// A task by its place in the tracker.
    pub(crate) fn task(ix: usize) -> ActorRef {
        let ix = u32::try_from(ix).ok().filter(|ix| *ix < ActorRef::OUTSIDE);
        ix.map_or(ActorRef::UNKNOWN, ActorRef)
    }

    /// A task that is not in the tracker.
    pub(crate) fn outside(tid: Tid) -> ActorRef {
        let tid = tid.0.checked_add(ActorRef::OUTSIDE);
        tid.filter(|tid| *tid < ActorRef::INTERRUPT.0)
            .map_or(ActorRef::UNKNOWN, ActorRef)
    }

    /// The place in the tracker (in a finished timeline: in the model), when it
    /// is one.
    pub(crate) fn place(self) -> Option<usize> {
        (self.0 < ActorRef::OUTSIDE).then_some(self.0 as usize)
    }

    fn actor(self) -> Actor {
        match self {
            ActorRef::UNKNOWN => Actor::Unknown,
            ActorRef::INTERRUPT => Actor::Interrupt,
            ActorRef(by) if by < ActorRef::OUTSIDE => Actor::Thread(ThreadIx(by)),
            ActorRef(by) => Actor::Outside(Tid(by - ActorRef::OUTSIDE)),
        }
    }
}

/// A stretch as it is kept: up to the next one's start.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: Ktime,
    by: ActorRef,
    /// [`Stretch::cpu`]; `u16::MAX` when not known.
    cpu: u16,
    doing: u8,
}

/// What a piece's number stands for; the CPU is kept apart.
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

impl Piece {
    fn new(from: Ktime, doing: Bucket, cpu: Option<CpuId>, by: ActorRef) -> Piece {
        let plain = match doing {
            Bucket::OnCpu(_) => Bucket::OnCpu(None),
            other => other,
        };
        let by = match plain {
            Bucket::OnCpu(_) | Bucket::Unknown => ActorRef::UNKNOWN,
            _ => by,
        };
        let doing = DOING.iter().position(|known| *known == plain);
        Piece {
            from,
            by,
            cpu: cpu.map_or(u16::MAX, |cpu| cpu.0),
            doing: doing.and_then(|at| u8::try_from(at).ok()).unwrap_or(0),
        }
    }

    fn doing(&self) -> Bucket {
        match DOING.get(usize::from(self.doing)) {
            Some(Bucket::OnCpu(_)) => Bucket::OnCpu(self.cpu()),
            Some(other) => *other,
            None => Bucket::Unknown,
        }
    }

    fn cpu(&self) -> Option<CpuId> {
        (self.cpu != u16::MAX).then_some(CpuId(self.cpu))
    }

    fn goes_on(&self, next: &Piece) -> bool {
        (self.doing, self.cpu, self.by) == (next.doing, next.cpu, next.by)
    }
}

/// The timelines of the tracker's tasks.
#[derive(Debug, Default)]
pub(crate) struct Draft(Vec<Vec<Piece>>);

impl Draft {
    /// A task's next stretch; its stretches come in order, without holes.
    pub(crate) fn add(
        &mut self,
        task: usize,
        from: Ktime,
        doing: Bucket,
        cpu: Option<CpuId>,
        by: ActorRef,
    ) {
        if self.0.len() <= task {
            self.0.resize_with(task + 1, Vec::new);
        }
        let piece = Piece::new(from, doing, cpu, by);
        if let Some(pieces) = self.0.get_mut(task) {
            if !pieces.last().is_some_and(|last| last.goes_on(&piece)) {
                pieces.push(piece);
            }
        }
    }

    /// Of the model's threads: `threads` has each one's place in the tracker and
    /// its end, `tasks` tells each task's place in the model, or its tid.
    pub(crate) fn finish(
        mut self,
        threads: impl Iterator<Item = (usize, Ktime)>,
        tasks: impl Fn(usize) -> Result<ThreadIx, Tid>,
    ) -> Timeline {
        let renamed = |by: ActorRef| match by.place().map(&tasks) {
            Some(Ok(thread)) => ActorRef::task(thread.0 as usize),
            Some(Err(tid)) => ActorRef::outside(tid),
            None => by,
        };
        let lines = threads.map(|(task, end)| {
            let pieces = self.0.get_mut(task).map(std::mem::take);
            let mut pieces = pieces.unwrap_or_default();
            for piece in &mut pieces {
                piece.by = renamed(piece.by);
            }
            (pieces, end)
        });
        Timeline(lines.collect())
    }
}

/// What every thread did when.
#[derive(Clone, Debug, Default)]
pub struct Timeline(Vec<(Vec<Piece>, Ktime)>);

impl Timeline {
    /// How many stretches a thread has.
    pub fn count(&self, thread: ThreadIx) -> usize {
        self.0
            .get(thread.0 as usize)
            .map_or(0, |(pieces, _)| pieces.len())
    }

    /// A thread's stretch by its number.
    pub fn get(&self, thread: ThreadIx, number: usize) -> Option<Stretch> {
        let (pieces, end) = self.0.get(thread.0 as usize)?;
        let piece = pieces.get(number)?;
        Some(Stretch {
            from: piece.from,
            to: pieces.get(number + 1).map_or(*end, |next| next.from),
            doing: piece.doing(),
            who: piece.by.actor(),
            cpu: piece.cpu(),
        })
    }

    /// A thread's stretches: they follow each other from its start to its end
    /// inside the analyzed span.
    pub fn of(&self, thread: ThreadIx) -> impl Iterator<Item = Stretch> + '_ {
        (0..self.count(thread)).filter_map(move |number| self.get(thread, number))
    }

    /// The number of the stretch in which a time lies: the last one that begins
    /// at or before it.
    pub fn at(&self, thread: ThreadIx, time: Ktime) -> Option<usize> {
        let (pieces, _) = self.0.get(thread.0 as usize)?;
        pieces
            .partition_point(|piece| piece.from <= time)
            .checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_gives_back_what_was_put_in() {
        // 10 ==cpu3== 20 __sleep__ 30 ..ready.. 35 ??cpu3?? 40 __disk__ 50
        let mut draft = Draft::default();
        let ready = Bucket::RunQueue { preempted: false };
        let on = Bucket::OnCpu(Some(CpuId(3)));
        let task = 2; // the tracker's third task is the model's first thread
        let mut add = |from, doing, cpu, by| draft.add(task, Ktime(from), doing, cpu, by);
        let third = Some(CpuId(3));
        add(10, on, third, ActorRef::UNKNOWN);
        add(15, on, third, ActorRef::task(9)); // the same stretch
        add(20, Bucket::Wait(Wait::Sleep), None, ActorRef::task(task));
        add(30, ready, None, ActorRef::task(7));
        add(35, Bucket::Unknown, third, ActorRef::UNKNOWN); // with --cpu of another
        add(40, Bucket::Wait(Wait::Io), None, ActorRef::INTERRUPT);
        let place = |at| match at {
            2 => Ok(ThreadIx(0)),
            _ => Err(Tid(1007)),
        };
        let timeline = draft.finish([(task, Ktime(50))].into_iter(), place);
        let stretch = |from, to, doing, who| Stretch {
            from: Ktime(from),
            to: Ktime(to),
            doing,
            who,
            cpu: [10, 35].contains(&from).then_some(CpuId(3)),
        };
        let all: Vec<Stretch> = timeline.of(ThreadIx(0)).collect();
        assert_eq!(
            all,
            [
                stretch(10, 20, on, Actor::Unknown),
                stretch(
                    20,
                    30,
                    Bucket::Wait(Wait::Sleep),
                    Actor::Thread(ThreadIx(0))
                ),
                stretch(30, 35, ready, Actor::Outside(Tid(1007))),
                stretch(35, 40, Bucket::Unknown, Actor::Unknown),
                stretch(40, 50, Bucket::Wait(Wait::Io), Actor::Interrupt),
            ]
        );
        let at = |time| timeline.at(ThreadIx(0), Ktime(time));
        assert_eq!(
            [at(9), at(10), at(19), at(20), at(99)],
            [None, Some(0), Some(0), Some(1), Some(4)]
        );
        assert_eq!(timeline.count(ThreadIx(1)), 0, "no such thread");
        assert!(timeline.of(ThreadIx(1)).next().is_none());
    }

    #[test]
    fn every_kind_of_stretch_survives() {
        for doing in DOING {
            assert_eq!(
                Piece::new(Ktime(1), doing, None, ActorRef::UNKNOWN).doing(),
                doing
            );
        }
        assert_eq!(std::mem::size_of::<Piece>(), 16);
    }
}
