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
pub fn slices(analysis: &Analysis, thread: ThreadIx) -> impl Iterator<Item = Piece> + '_ {
    pieces(analysis, thread, |stretch| {
        matches!(stretch.doing, Bucket::OnCpu(_))
    })
}

/// A thread's times off CPU, each with the wait for a CPU at its end. A new thread's
/// first one begins with its fork.
pub fn off_cpu(analysis: &Analysis, thread: ThreadIx) -> impl Iterator<Item = Piece> + '_ {
    pieces(analysis, thread, |stretch| side(stretch) == Side::Off)
}

/// A thread's waits for a CPU.
pub fn for_cpu(analysis: &Analysis, thread: ThreadIx) -> impl Iterator<Item = Piece> + '_ {
    pieces(analysis, thread, |stretch| {
        matches!(stretch.doing, Bucket::RunQueue { .. })
    })
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
fn pieces(
    analysis: &Analysis,
    ix: ThreadIx,
    keep: fn(&Stretch) -> bool,
) -> impl Iterator<Item = Piece> + '_ {
    let thread = analysis.thread(ix);
    let mut next = 0;
    std::iter::from_fn(move || {
        let timeline = analysis.timeline.as_ref()?;
        let get = |at: usize| timeline.get(ix, at);
        let kept = |at: usize| get(at).filter(keep);
        let (at, first) = (next..timeline.count(ix)).find_map(|at| Some((at, kept(at)?)))?;
        let before = match at.checked_sub(1).and_then(get) {
            Some(stretch) => side(&stretch),
            None if thread.started_before => Side::Unknown,
            None => Side::Edge,
        };
        let mut last = first;
        next = at + 1;
        // Two successive slices are two: the thread has changed its CPU.
        if !matches!(first.doing, Bucket::OnCpu(_)) {
            while let Some(more) = kept(next) {
                last = more;
                next += 1;
            }
        }
        let after = match get(next) {
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
    })
}
