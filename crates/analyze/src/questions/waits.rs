//! A thread's timeline as slices on a CPU, times off CPU or waits for a CPU, each with
//! the states before and after it.
//!
//! *On-CPU*: switch-in → switch-out. *Off-CPU*: switch-out → switch-in.
//! *Run-queue latency*: waking, or switch-out by preemption → switch-in.

use tr_format::event::{CpuId, Ktime};

use crate::model::{Analysis, ThreadIx};
use crate::timeline::{Bucket, Stretch};

/// A thread's state right before or right after a piece of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// None: it began, or ended.
    Edge,
    /// It was on a CPU; which one, if that is known.
    On(Option<CpuId>),
    /// It was off CPU.
    Off,
    /// Not known: events are missing, or the span begins or ends there.
    Unknown,
}

impl Side {
    /// The CPU that the thread was on.
    pub fn cpu(self) -> Option<CpuId> {
        match self {
            Side::On(cpu) => cpu,
            _ => None,
        }
    }
}

/// A piece of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub from: Ktime,
    pub to: Ktime,
    /// The state before it.
    pub before: Side,
    /// The state after it.
    pub after: Side,
}

impl Piece {
    /// Its length in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }

    /// Of a slice on a CPU: its beginning and its end are known.
    pub fn whole_slice(&self) -> bool {
        self.before != Side::Unknown && self.after != Side::Unknown
    }

    /// Of time off CPU, or a wait for a CPU: its beginning is known, and it
    /// ended by a switch-in.
    pub fn whole_wait(&self) -> bool {
        self.before != Side::Unknown && matches!(self.after, Side::On(_))
    }
}

/// A thread's slices on a CPU. With [`Options::cpu`](crate::Options::cpu) those
/// on other CPUs are unknown time, and left out.
pub fn slices(analysis: &Analysis, thread: ThreadIx) -> Pieces<'_> {
    pieces(analysis, thread, |stretch| {
        matches!(stretch.doing, Bucket::OnCpu(_))
    })
}

/// A thread's times off CPU, each with the wait for a CPU at its end. A new thread's
/// first one begins with its fork.
pub fn off_cpu(analysis: &Analysis, thread: ThreadIx) -> Pieces<'_> {
    pieces(analysis, thread, |stretch| side(stretch) == Side::Off)
}

/// A thread's waits for a CPU.
pub fn for_cpu(analysis: &Analysis, thread: ThreadIx) -> Pieces<'_> {
    pieces(analysis, thread, |stretch| {
        matches!(stretch.doing, Bucket::RunQueue { .. })
    })
}

fn pieces(analysis: &Analysis, thread: ThreadIx, keep: fn(&Stretch) -> bool) -> Pieces<'_> {
    Pieces {
        analysis,
        thread,
        next: 0,
        keep,
    }
}

fn side(stretch: &Stretch) -> Side {
    match stretch.doing {
        Bucket::OnCpu(cpu) => Side::On(cpu),
        Bucket::Unknown => match stretch.cpu {
            None => Side::Unknown,
            cpu => Side::On(cpu),
        },
        Bucket::RunQueue { .. } | Bucket::Wait(_) => Side::Off,
    }
}

/// Pieces of a thread's time, in order. Successive stretches off CPU are one piece.
pub struct Pieces<'a> {
    analysis: &'a Analysis,
    thread: ThreadIx,
    next: usize,
    keep: fn(&Stretch) -> bool,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let timeline = self.analysis.timeline.as_ref()?;
        let thread = self.analysis.thread(self.thread);
        let get = |at: usize| timeline.get(self.thread, at);
        let kept = |at: usize| get(at).filter(self.keep);
        let count = timeline.count(self.thread);
        let (at, first) = (self.next..count).find_map(|at| Some((at, kept(at)?)))?;
        let before = match at.checked_sub(1).and_then(get) {
            Some(stretch) => side(&stretch),
            None if thread.started_before => Side::Unknown,
            None => Side::Edge,
        };
        // Two successive slices are two: the thread has changed its CPU.
        let one = |stretch: &Stretch| !matches!(stretch.doing, Bucket::OnCpu(_));
        let mut last = first;
        self.next = at + 1;
        while let Some(more) = kept(self.next).filter(|_| one(&first)) {
            last = more;
            self.next += 1;
        }
        let after = match get(self.next) {
            Some(stretch) => side(&stretch),
            None if thread.alive => Side::Unknown,
            None => Side::Edge,
        };
        Some(Piece {
            from: first.from,
            to: last.to,
            before,
            after,
        })
    }
}
