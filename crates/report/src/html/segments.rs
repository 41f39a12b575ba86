//! Reduces the threads' timelines to as much detail as a page has room for.
//!
//! A page shows up to [`ROOM`] stretches unchanged. If there are more, stretches shorter than a *grain* are merged to
//! pieces of about that length; such a piece stores the share of each state. Longer stretches keep their exact ends:
//! details that are visible without zooming in are exact. Samples of a recording without scheduling events are always
//! stored as such merged pieces.

use std::sync::LazyLock;

use tr_analyze::awaited::WaitReason;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::share as share_of;
use tr_analyze::timeline::{Actor, Bucket, Sample, Stretch, Wait};
use tr_format::event::Reason;

use tr_text::object;
use tr_text::words::{ON_CPU, UNKNOWN};

/// The largest number of pieces of all threads' timelines together in an HTML report. A piece has 2 to 6 bytes in the
/// file.
pub const ROOM: u64 = 500_000;

/// The timelines of all threads for the HTML report, in columns. A piece is a time in which a thread stays in one state
/// (a stretch), or several short ones that were merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// The length in nanoseconds below which stretches of a thread's timeline are merged into one piece; 0 if none are
    /// merged.
    pub grain: u64,
    /// The unit in nanoseconds in which the lengths of the timelines' pieces are stored.
    pub unit: u64,
    /// For each thread, the number of pieces in its timeline.
    pub counts: Vec<u64>,
    /// For each piece of a timeline, the number of its [`kind`], such as a wait for the disk; [`MIXED_KIND`] for merged
    /// stretches.
    pub kinds: Vec<u8>,
    /// The length of each piece of a thread's timeline, in multiples of `unit` nanoseconds. The ends of the pieces, and
    /// not their lengths, are rounded, so that errors do not add up.
    pub lengths: Vec<u64>,
    /// For each piece of merged stretches, how much of its time the thread was on a CPU, waiting for a CPU, blocked and
    /// asleep, in 255ths. The rest is unknown.
    pub shares: Vec<[u8; 4]>,
    /// For each piece of one stretch, its cause as a number. For a time on a CPU: the CPU's number plus 1, or 0 if
    /// unknown. For any other time, what ended a wait, or woke or preempted a thread that waits for a CPU: 0 if
    /// unknown, 1 for an interrupt, 2 for a task that is not recorded, otherwise a thread's index plus 3.
    pub by: Vec<u64>,
}

impl Segments {
    /// The lengths of the timelines' pieces without the last piece of each thread, which the page computes from the
    /// thread's end.
    pub fn inner_lengths(&self) -> impl Iterator<Item = u64> + '_ {
        let mut left = self.lengths.iter().copied();
        self.counts.iter().flat_map(move |count| {
            let mut of: Vec<u64> = left.by_ref().take(*count as usize).collect();
            of.pop();
            of
        })
    }
}

object! {
    Sizes(segments: &Segments) {
        grain: u64 = segments.grain,
        unit: u64 = segments.unit,
        pieces: usize = segments.kinds.len(),
        mixed: usize = segments.shares.len(),
        mixed_kind: u8 = MIXED_KIND,
    }
}

/// The approximate number of stretches in a sample of threads. With this sample, the length below which stretches are
/// merged is chosen.
const SAMPLE: u64 = 1_000_000;

/// A kind of pieces of a thread's timeline for the HTML report: its name; the thread's state as an index into
/// [`tr_text::words::STATES`]; and for waits for storage a number: 0 for fsync, 1 for page faults, 2 for all others.
pub type KindRow = (&'static str, usize, Option<u8>);

/// The kind of a piece of a thread's timeline, which the HTML report shows by name and colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Unknown,
    OnCpu,
    /// The piece consists of several stretches of the thread's timeline that were merged.
    Mixed,
    /// The piece is a time in which the thread was off CPU. The fields are the reason of the wait, the index of the
    /// thread's state, and, for a wait for storage, the kind of this wait.
    Off(WaitReason, usize, Option<Storage>),
}

/// The kinds of a thread's waits for storage that the HTML report distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    Sync,
    PageFault,
    Other,
}

const STORAGE: [Storage; 3] = [Storage::Other, Storage::Sync, Storage::PageFault];

/// All kinds of pieces of threads' timelines. The HTML report stores a kind as its index in this list.
static KINDS: LazyLock<Vec<PieceKind>> = LazyLock::new(|| {
    let off = |reason, state| PieceKind::Off(reason, state, None);
    let mut kinds = vec![
        PieceKind::Unknown,
        PieceKind::OnCpu,
        off(WaitReason::Woken, 1),
        off(WaitReason::Preempted, 1),
        off(WaitReason::Sleep, ASLEEP_STATE),
        off(WaitReason::Continue, ASLEEP_STATE),
        PieceKind::Mixed,
        off(WaitReason::Vfork, BLOCKED_STATE),
        off(WaitReason::Kernel, BLOCKED_STATE),
        off(WaitReason::Unknown, 4),
    ];
    let asleep = [
        WaitReason::Child,
        WaitReason::Slot,
        WaitReason::Pipe,
        WaitReason::Lock,
        WaitReason::Thread,
        WaitReason::Idle,
        WaitReason::Socket,
        WaitReason::Timer,
        WaitReason::Events,
        WaitReason::Terminal,
    ];
    kinds.extend(asleep.map(|reason| off(reason, ASLEEP_STATE)));
    // A wait for a file may be blocked or asleep, so it has a kind for each of the two states.
    let files = [
        (WaitReason::Disk, BLOCKED_STATE),
        (WaitReason::File, BLOCKED_STATE),
        (WaitReason::File, ASLEEP_STATE),
    ];
    for (reason, state) in files {
        kinds.extend(STORAGE.map(|part| PieceKind::Off(reason, state, Some(part))));
    }
    kinds
});

/// The index of the state "blocked" in [`tr_text::words::STATES`].
const BLOCKED_STATE: usize = Bucket::Wait(Wait::Blocked).state();
/// The index of the state "asleep" in [`tr_text::words::STATES`].
const ASLEEP_STATE: usize = Bucket::Wait(Wait::Sleep).state();

impl PieceKind {
    fn row(&self) -> KindRow {
        match *self {
            PieceKind::Unknown => (UNKNOWN, 4, None),
            PieceKind::OnCpu => (ON_CPU, 0, None),
            PieceKind::Mixed => ("several", 4, None),
            PieceKind::Off(_, state, Some(Storage::Sync)) => ("fsync", state, Some(0)),
            PieceKind::Off(_, state, Some(Storage::PageFault)) => ("page fault", state, Some(1)),
            // The page calls the sums of all waits for a CPU and of all sleep "run queue" and "sleep". A kind with the
            // same name would look like a second, smaller sum.
            PieceKind::Off(WaitReason::Woken, state, _) => ("run queue, woken", state, None),
            PieceKind::Off(WaitReason::Sleep, state, _) => ("other sleep", state, None),
            PieceKind::Off(reason, state, part) => (reason.noun(), state, part.map(|_| 2)),
        }
    }
}

/// The names and states of all kinds of pieces of threads' timelines, for the HTML report. Their order is that of the
/// kinds' numbers.
pub fn kinds() -> Vec<KindRow> {
    KINDS.iter().map(PieceKind::row).collect()
}

/// The number of the kind of timeline pieces that consist of merged stretches.
pub const MIXED_KIND: u8 = 6;

/// The number of the kind of timeline pieces in which the thread is on a CPU.
pub(super) const RUNNING_KIND: u8 = 1;
/// The number of the kind of timeline pieces that are waits without a known reason.
pub(super) const UNKNOWN_WAIT: u8 = 9;

/// The number of the kind that a stretch of a thread's timeline has in the HTML report, such as "on a CPU" or a reason
/// of a wait.
pub(super) fn kind(analysis: &Analysis, thread: ThreadIx, stretch: &Stretch) -> u8 {
    let kind = match (stretch.doing, WaitReason::of(analysis, thread, stretch)) {
        (Bucket::Unknown, _) => PieceKind::Unknown,
        (_, None) => PieceKind::OnCpu,
        (_, Some(WaitReason::Unknown)) => return UNKNOWN_WAIT,
        (doing, Some(reason)) => {
            let is_storage = matches!(reason, WaitReason::Disk | WaitReason::File);
            let part = is_storage.then_some(match stretch.reason {
                Reason::Sync => Storage::Sync,
                Reason::PageFault => Storage::PageFault,
                _ => Storage::Other,
            });
            PieceKind::Off(reason, doing.state(), part)
        }
    };
    let at = KINDS.iter().position(|known| *known == kind);
    at.and_then(|at| u8::try_from(at).ok())
        .unwrap_or(UNKNOWN_WAIT)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    One(Stretch),
    /// Several merged stretches of a thread's timeline: the time in ns in each state ([`Bucket::state`]).
    Mixed([u64; 5]),
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Piece::One(stretch) => stretch.length(),
            Piece::Mixed(times) => times.iter().sum(),
        }
    }

    /// The time in ns that the thread spends in each state ([`Bucket::state`]) during this piece of its timeline.
    fn times(&self) -> [u64; 5] {
        match self {
            Piece::One(stretch) => {
                let at = stretch.doing.state();
                std::array::from_fn(|index| if index == at { stretch.length() } else { 0 })
            }
            Piece::Mixed(times) => *times,
        }
    }
}

/// The largest number of parts that a thread's timeline has before merging: stretches between scheduling events or, in
/// a recording without such events, samples and the times between them.
fn count(analysis: &Analysis, thread: ThreadIx) -> usize {
    match analysis.samples_of(thread) {
        [] => {
            let timeline = analysis.timeline.as_ref();
            timeline.map_or(0, |timeline| timeline.count(thread))
        }
        samples => samples.len() * 2 + 1,
    }
}

/// Calls `take` with each part of a thread's timeline in order and without gaps. A part is a stretch or, in a
/// recording without scheduling events, a sample or the unknown time between two samples.
fn parts(analysis: &Analysis, thread: ThreadIx, mut take: impl FnMut(Piece)) {
    let samples = analysis.samples_of(thread);
    if samples.is_empty() {
        let timeline = analysis.timeline.iter();
        let stretches = timeline.flat_map(|timeline| timeline.of(thread));
        return stretches.for_each(|stretch| take(Piece::One(stretch)));
    }
    let whole = analysis.thread(thread);
    let mut at = whole.start;
    for sample in samples {
        take(Piece::Mixed([0, 0, 0, 0, sample.from.since(at)]));
        take(sampled(sample));
        at = sample.to;
    }
    take(Piece::Mixed([0, 0, 0, 0, whole.end.since(at)]));
}

fn sampled(sample: &Sample) -> Piece {
    let known = [sample.on_cpu, sample.run_queue, 0, sample.off_cpu];
    let [on_cpu, run_queue, blocked, off_cpu] = known;
    let unknown = sample.length().saturating_sub(known.iter().sum());
    Piece::Mixed([on_cpu, run_queue, blocked, off_cpu, unknown])
}

/// Calls `take` with the pieces of a thread's timeline for the HTML report, in order and without gaps. Parts shorter
/// than `grain` ns are merged.
fn pieces(analysis: &Analysis, thread: ThreadIx, grain: u64, mut take: impl FnMut(Piece)) {
    let mut held: Option<Piece> = None;
    parts(analysis, thread, |part| {
        let length = part.length();
        if length == 0 {
            return;
        }
        if length >= grain {
            held.take().into_iter().for_each(&mut take);
            return take(part);
        }
        let together = match held {
            None => part,
            Some(before) => {
                let (times, more) = (before.times(), part.times());
                let mut sums = times.iter().zip(more);
                Piece::Mixed(std::array::from_fn(|_| {
                    let sum = sums.next();
                    sum.map_or(0, |(time, more)| time.saturating_add(more))
                }))
            }
        };
        held = if together.length() >= grain {
            take(together);
            None
        } else {
            Some(together)
        };
    });
    held.into_iter().for_each(take);
}

/// Converts the times in five states to shares in 255ths of their sum. The shares of four states are returned; the
/// share of the unknown state is the rest.
fn shares(times: &[u64; 5]) -> [u8; 4] {
    let whole = u128::from(times.iter().sum::<u64>().max(1));
    // Each running sum is rounded and not each time, because rounding errors of the times would add up.
    let (mut sum, mut before) = (0, 0);
    let mut out = [0; 4];
    for (out, time) in out.iter_mut().zip(times) {
        sum += u128::from(*time);
        let upto = u8::try_from((sum * 255 + whole / 2) / whole).unwrap_or(u8::MAX);
        *out = upto - before;
        before = upto;
    }
    out
}

/// The timelines of all threads for the HTML report, with at most about `room` pieces: as many short stretches are
/// merged as necessary.
pub fn segments(analysis: &Analysis, room: u64) -> Segments {
    if analysis.timeline.is_none() {
        return Segments::default();
    }
    let threads = || analysis.thread_ids();
    let all: u64 = threads().map(|ix| count(analysis, ix) as u64).sum();
    let mut out = Segments {
        unit: 1,
        ..Segments::default()
    };
    if all > room {
        // A larger grain (the length below which stretches are merged) leaves fewer pieces. But each thread keeps at
        // least one piece, and its row in the file takes as much space as another piece. So room for one piece per
        // thread is subtracted.
        let lanes = analysis.threads.len() as u64;
        let room = room.saturating_sub(lanes).max(lanes + lanes / 2);
        // For each possible grain (the length below which stretches are merged), the pieces are counted. Counting those
        // of all threads would take longer than everything else, so a sample of threads with about a million stretches
        // is counted. Threads follow a pattern (shell, driver, compiler, and again), so a hash chooses them and not
        // every n-th.
        let step = all / SAMPLE + 1;
        let is_taken = |ix: &ThreadIx| {
            let mixed = u64::from(ix.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            mixed.is_multiple_of(step)
        };
        let sample: Vec<ThreadIx> = threads().filter(is_taken).collect();
        let sampled: u64 = sample.iter().map(|ix| count(analysis, *ix) as u64).sum();
        let pieces_of = |grain: u64| {
            let mut count = 0_u64;
            for ix in &sample {
                pieces(analysis, *ix, grain, |_| count += 1);
            }
            share_of(count, all, sampled)
        };
        // `guess` is the length of a piece if the time of all threads were divided evenly into `room` pieces. The
        // search for the grain, the length below which stretches are merged, begins far below `guess`.
        let lives = analysis.threads.iter().map(|t| t.wall());
        let guess = lives.fold(0, u64::saturating_add) / room;
        let mut shift = guess.max(1).ilog2().saturating_sub(4);
        while shift < 62 && pieces_of(1 << shift) > room {
            shift += 1;
        }
        out.grain = 1 << shift;
        // The unit of lengths is far below the resolution of a screen.
        out.unit = (out.grain / 64).max(1);
    }
    for ix in threads() {
        let before = out.kinds.len();
        let (mut true_end, mut end) = (0_u64, 0_u64);
        pieces(analysis, ix, out.grain, |piece| {
            true_end = true_end.saturating_add(piece.length());
            let rounded = true_end.saturating_add(out.unit / 2) / out.unit;
            let length = rounded.saturating_sub(end);
            end = rounded;
            out.lengths.push(length);
            match piece {
                Piece::Mixed(times) => {
                    out.kinds.push(MIXED_KIND);
                    out.shares.push(shares(&times));
                }
                Piece::One(stretch) => {
                    out.kinds.push(kind(analysis, ix, &stretch));
                    out.by.push(match (stretch.doing, stretch.actor) {
                        (Bucket::OnCpu(cpu), _) => cpu.map_or(0, |cpu| u64::from(cpu.0) + 1),
                        (_, Actor::Unknown) => 0,
                        (_, Actor::Outside(_)) => 2,
                        (_, Actor::Thread(ix)) => u64::from(ix.0) + 3,
                        _ => 1,
                    });
                }
            }
        });
        out.counts.push((out.kinds.len() - before) as u64);
    }
    out
}

#[cfg(test)]
#[path = "tests/segments.rs"]
mod tests;
