//! The threads' timelines, in as much detail as a page has room for.
//!
//! A page has up to [`ROOM`] stretches as they are. Of more, stretches shorter
//! than a *grain* are merged until they are as long as one; such a piece has the
//! share of each state. Longer stretches keep their exact ends: details visible
//! without zooming in stay sharp. Samples of a recording without scheduling events are such
//! pieces from the start.

use tr_analyze::awaited::Awaited;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::share as share_of;
use tr_analyze::timeline::{Actor, Bucket, Sample, Stretch, Wait};
use tr_format::event::Reason;

use tr_text::words::{ON_CPU, RUN_QUEUE, SLEEP, UNKNOWN};

/// The most pieces of a page: 2 to 6 bytes each in the file.
pub const ROOM: u64 = 500_000;

/// The pieces of all threads, by column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Shorter stretches are merged, ns; 0: none are.
    pub grain: u64,
    /// The unit of the lengths, ns.
    pub unit: u64,
    /// The number of pieces of each thread.
    pub counts: Vec<u64>,
    /// Each piece's [`kind`]; [`MIXED`] for a merged one.
    pub kinds: Vec<u8>,
    /// Each piece's length in units. Its ends are the true ends, rounded to units
    /// since the thread's start.
    pub lengths: Vec<u64>,
    /// The shares of each merged piece on CPU, waiting for a CPU, blocked and asleep, in 255ths. The rest is
    /// unknown.
    pub shares: Vec<[u8; 4]>,
    /// The cause of each other piece. On a CPU: the CPU's number plus 1, or 0 if unknown. For a wait, the
    /// waker: 0 unknown, 1 an interrupt, 2 a task that is not recorded, otherwise a thread's index plus 3.
    pub by: Vec<u64>,
}

impl Segments {
    /// The lengths, without that of each thread's last piece, which ends with its thread.
    pub fn inner_lengths(&self) -> impl Iterator<Item = u64> + '_ {
        let mut left = self.lengths.iter().copied();
        self.counts.iter().flat_map(move |count| {
            let mut of: Vec<u64> = left.by_ref().take(*count as usize).collect();
            of.pop();
            of
        })
    }
}

/// The number of stretches in the sample that decides the grain.
const SAMPLE: u64 = 1_000_000;

/// A kind of pieces in words; what the thread does, as its place in [`tr_text::words::STATES`]; of waits
/// for storage the part of them: 0 fsync, 1 page faults, 2 all else.
pub type KindRow = (&'static str, usize, Option<u8>);

/// The kinds by their numbers.
pub const KINDS: [KindRow; 27] = [
    (UNKNOWN, 4, None),
    (ON_CPU, 0, None),
    (RUN_QUEUE, 1, None),
    ("run queue, preempted", 1, None),
    (SLEEP, 3, None),
    ("stopped", 3, None),
    ("several", 4, None),
    ("vfork child", 2, None),
    ("blocked in the kernel", 2, None),
    // A wait.
    (UNKNOWN, 4, None),
    ("child", 3, None),
    ("job slot", 3, None),
    ("pipe", 3, None),
    ("lock", 3, None),
    ("socket", 3, None),
    ("timer", 3, None),
    ("events (poll)", 3, None),
    ("terminal", 3, None),
    ("disk", 2, Some(2)),
    ("fsync", 2, Some(0)),
    ("page fault", 2, Some(1)),
    ("file", 2, Some(2)),
    ("fsync", 2, Some(0)),
    ("page fault", 2, Some(1)),
    // Asleep, not blocked: the states count apart.
    ("file", 3, Some(2)),
    ("fsync", 3, Some(0)),
    ("page fault", 3, Some(1)),
];

/// The kind of a merged piece.
pub const MIXED: u8 = 6;

/// The kind of a time on a CPU, and of a wait of which no reason is known.
pub(super) const RUNNING: u8 = 1;
pub(super) const UNKNOWN_WAIT: u8 = 9;

/// The kind of a stretch.
pub(super) fn kind(analysis: &Analysis, thread: ThreadIx, stretch: &Stretch) -> u8 {
    let wait = match stretch.doing {
        Bucket::Unknown => return 0,
        Bucket::OnCpu(_) => return RUNNING,
        Bucket::RunQueue { preempted: false } => return 2,
        Bucket::RunQueue { preempted: true } => return 3,
        Bucket::Wait(wait) => wait,
    };
    match analysis.awaited(thread, stretch) {
        Some(Awaited::Sleep) => 4,
        Some(Awaited::Continue) => 5,
        Some(Awaited::Disk) => 18 + on_storage(stretch.reason),
        Some(Awaited::Vfork) => 7,
        Some(Awaited::Kernel) => 8,
        None | Some(Awaited::Unknown) => UNKNOWN_WAIT,
        Some(Awaited::Child) => 10,
        Some(Awaited::Slot) => 11,
        Some(Awaited::Pipe) => 12,
        Some(Awaited::Lock) => 13,
        Some(Awaited::Socket) => 14,
        Some(Awaited::Timer) => 15,
        Some(Awaited::Events) => 16,
        Some(Awaited::Terminal) => 17,
        Some(Awaited::File) if wait == Wait::Blocked => 21 + on_storage(stretch.reason),
        Some(Awaited::File) => 24 + on_storage(stretch.reason),
    }
}

/// The distance of a wait for storage from its first kind.
fn on_storage(reason: Reason) -> u8 {
    match reason {
        Reason::Sync => 1,
        Reason::PageFault => 2,
        _ => 0,
    }
}

/// The index of a state's share in a merged piece; 4 is the unknown rest.
fn share(doing: Bucket) -> usize {
    match doing {
        Bucket::OnCpu(_) => 0,
        Bucket::RunQueue { .. } => 1,
        Bucket::Wait(Wait::Io | Wait::Vfork | Wait::Blocked) => 2,
        Bucket::Wait(Wait::Sleep | Wait::Stopped) => 3,
        Bucket::Wait(Wait::Unknown) | Bucket::Unknown => 4,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    One(Stretch),
    /// Several: the time of each share.
    Mixed([u64; 5]),
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Piece::One(stretch) => stretch.length(),
            Piece::Mixed(times) => times.iter().sum(),
        }
    }

    /// The time of each share.
    fn times(&self) -> [u64; 5] {
        match self {
            Piece::One(stretch) => {
                let at = share(stretch.doing);
                std::array::from_fn(|index| if index == at { stretch.length() } else { 0 })
            }
            Piece::Mixed(times) => *times,
        }
    }
}

/// A thread's time as the recording has it: samples, or else stretches, and their number.
fn count(analysis: &Analysis, thread: ThreadIx) -> usize {
    match analysis.samples_of(thread) {
        [] => {
            let timeline = analysis.timeline.as_ref();
            timeline.map_or(0, |timeline| timeline.count(thread))
        }
        samples => samples.len() * 2 + 1,
    }
}

/// Calls `take` with these parts of a thread's time, in order and without gaps.
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

/// Calls `take` with the pieces of a thread, in order and without gaps.
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

/// Shares in 255ths that add up to 255 together with the rest.
fn shares(times: &[u64; 5]) -> [u8; 4] {
    let whole = u128::from(times.iter().sum::<u64>().max(1));
    // Rounded sums, so that the shares add up.
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

/// The pieces of all threads, at most about `room` of them.
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
        // The number of pieces falls as the grain grows; a thread keeps one.
        let room = room.max(analysis.threads.len() as u64 * 2);
        // A sample of threads with about a million stretches: counting all for each
        // grain would take longer than all the rest.
        let step = usize::try_from(all / SAMPLE + 1).unwrap_or(usize::MAX);
        let sample: Vec<ThreadIx> = threads().step_by(step).collect();
        let sampled: u64 = sample.iter().map(|ix| count(analysis, *ix) as u64).sum();
        let pieces_of = |grain: u64| {
            let mut count = 0_u64;
            for ix in &sample {
                pieces(analysis, *ix, grain, |_| count += 1);
            }
            share_of(count, all, sampled)
        };
        // The first guess is the span of all threads shared among the pieces.
        let lives = analysis.threads.iter().map(|t| t.wall());
        let guess = lives.fold(0, u64::saturating_add) / room;
        let mut shift = guess.max(1).ilog2().saturating_sub(4);
        while shift < 62 && pieces_of(1 << shift) > room {
            shift += 1;
        }
        out.grain = 1 << shift;
        // Far below a screen's resolution.
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
                    out.kinds.push(MIXED);
                    out.shares.push(shares(&times));
                }
                Piece::One(stretch) => {
                    out.kinds.push(kind(analysis, ix, &stretch));
                    out.by.push(match (stretch.doing, stretch.actor) {
                        (Bucket::OnCpu(cpu), _) => cpu.map_or(0, |cpu| u64::from(cpu.0) + 1),
                        (_, Actor::Unknown) => 0,
                        (_, Actor::Interrupt | Actor::SoftIrq) => 1,
                        (_, Actor::Outside(_)) => 2,
                        (_, Actor::Thread(ix)) => u64::from(ix.0) + 3,
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
