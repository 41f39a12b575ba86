//! A thread's timeline in the pieces that people ask for: slices on a CPU, times
//! off CPU, waits for a CPU; each with what stands before and behind it.
//!
//! *On-CPU*: switch-in → switch-out. *Off-CPU*: switch-out → switch-in.
//! *Run-queue latency*: waking, or switch-out by preemption → switch-in.

use tr_format::event::{CpuId, Ktime};

use crate::model::{Analysis, ThreadIx};
use crate::timeline::{Actor, Bucket, Stretch};

/// What a thread did right before or right after a piece of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Nothing: it began, or ended.
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
    /// From here on.
    pub from: Ktime,
    /// Up to here.
    pub to: Ktime,
    /// What it begins with.
    pub doing: Bucket,
    /// As in [`Stretch::who`], of its first stretch.
    pub who: Actor,
    /// As in [`Stretch::cpu`], of its first stretch.
    pub cpu: Option<CpuId>,
    /// What was before.
    pub before: Side,
    /// What came after.
    pub after: Side,
}

impl Piece {
    /// Its length in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }

    /// Of a slice on a CPU: both its ends are known.
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
/// on other CPUs are unknown time, and none of these.
pub fn slices(analysis: &Analysis, thread: ThreadIx) -> Pieces<'_> {
    pieces(analysis, thread, |stretch| {
        matches!(stretch.doing, Bucket::OnCpu(_))
    })
}

/// A thread's times off CPU, each with the wait for a CPU that ends it. A new
/// thread's first one begins with its fork.
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

/// Pieces of a thread's time, in order: stretches that are alike in what was
/// asked for and follow each other are one.
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
        let thread = self.analysis.threads.get(self.thread.0 as usize)?;
        let get = |at: usize| timeline.get(self.thread, at);
        let kept = |at: usize| get(at).filter(self.keep);
        let count = timeline.count(self.thread);
        let (at, first) = (self.next..count).find_map(|at| Some((at, kept(at)?)))?;
        let before = match at.checked_sub(1).and_then(get) {
            Some(stretch) => side(&stretch),
            None if thread.started_before => Side::Unknown,
            None => Side::Edge,
        };
        // Two slices in a row are two: the thread has changed its CPU.
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
            doing: first.doing,
            who: first.who,
            cpu: first.cpu,
            before,
            after,
        })
    }
}
