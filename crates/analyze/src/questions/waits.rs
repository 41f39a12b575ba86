//! Splits the timeline of a thread into pieces: slices on a CPU, times off CPU, or waits for a CPU. Each piece has
//! the states before and after it.
//!
//! *On-CPU*: switch-in → switch-out. *Off-CPU*: switch-out → switch-in. *Run-queue latency*: waking, or switch-out
//! by preemption → switch-in.

use tr_format::event::{CpuId, Ktime};

use crate::model::{Analysis, ThreadIx};
use crate::timeline::{Bucket, Stretch};

/// The state of a thread right before or right after a piece of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The life of the thread began or ended at this side of the piece, so it has no state there.
    Edge,
    /// The thread was on a CPU. The value is the CPU, if it is known.
    On(Option<CpuId>),
    /// The thread was off CPU.
    Off,
    /// The state of the thread is not known, because events are missing or the analyzed span begins or ends
    /// there.
    Unknown,
}

impl Side {
    /// The CPU that the thread was on; `None` if it was on none or if the CPU is not known.
    pub fn cpu(self) -> Option<CpuId> {
        match self {
            Side::On(cpu) => cpu,
            _ => None,
        }
    }
}

/// A part of the time of a thread: on a CPU, off CPU, or waiting for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub from: Ktime,
    pub to: Ktime,
    /// The state of the thread right before this piece of its time.
    pub before: Side,
    /// The state of the thread right after this piece of its time.
    pub after: Side,
}

impl Piece {
    /// The length of this piece of a thread's time in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }

    /// Whether a slice of a thread on a CPU is complete: both its beginning and its end are known.
    pub fn whole_slice(&self) -> bool {
        self.before != Side::Unknown && self.after != Side::Unknown
    }

    /// Whether a thread's time off CPU, or wait for a CPU, is complete: its beginning is known, and it ended
    /// with a switch-in.
    pub fn whole_wait(&self) -> bool {
        self.before != Side::Unknown && matches!(self.after, Side::On(_))
    }
}

/// The slices of a thread on a CPU. With [`Options::cpu`](crate::Options::cpu), slices on other CPUs are
/// unknown time and are left out.
pub fn slices(analysis: &Analysis, thread: ThreadIx) -> impl Iterator<Item = Piece> + '_ {
    pieces(analysis, thread, |stretch| {
        matches!(stretch.doing, Bucket::OnCpu(_))
    })
}

/// The times of a thread off CPU. Each of these times includes the wait for a CPU at the end. The first such time of a
/// new thread begins with the thread's fork.
pub fn off_cpu(analysis: &Analysis, thread: ThreadIx) -> impl Iterator<Item = Piece> + '_ {
    pieces(analysis, thread, |stretch| side(stretch) == Side::Off)
}

/// The waits of a thread in run queues for a CPU, each as a piece of its time.
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

/// The parts of a thread's time in the states that `keep` accepts, in the order of time. Successive stretches off
/// CPU are joined to one piece.
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
        // Slices on a CPU are not joined: if one directly follows another, the thread has changed its CPU.
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
