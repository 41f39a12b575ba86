//! Makes the HTML report's data about the critical path: its pieces, and its time by program, by step and by kind of
//! wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use tr_analyze::critical_path::{CriticalPath, Then};
use tr_analyze::kinds::{ByKind, TimeKind};
use tr_analyze::model::Analysis;

use tr_insight::path::kinds;
use tr_insight::path::path_steps::{PathBySteps, StepShare};
use tr_insight::path::{self, PathUse};
use tr_insight::steps::Steps;
use tr_text::object;

/// The largest number of pieces into which the HTML report divides the critical path.
const PIECES: usize = 20_000;

/// The time in ns that a step or a program has on the critical path, by the state of its thread: on a CPU, in the run
/// queue, blocked, asleep, unknown.
pub type StateTimes = [u64; 5];

object! {
    // The time on the critical path that belongs to all steps with one name. For time outside of steps: the time of one
    // program, or of another group such as unknown time.
    Owner(share: &StepShare) {
        name: String = share.name.short().to_owned(),
        // The brief name of the step, for places where its name has no room.
        brief: Option<String> = share.brief.clone(),
        step: bool = share.is_step,
        // The number of steps with this name. For a program, the number of separate parts of the path that belong to
        // it.
        count: u64 = share.count,
        times: StateTimes = states(&share.spent),
        // The kind of wait that has most of this step's time on the critical path, in words; `None` if it is short, or
        // for time outside of steps.
        waited: Option<String> = share.waited(),
    }

    // One kind of wait on the critical path, its time, and the step or program that has most of this time.
    Wait(kind: TimeKind, time: u64, owner: u32) {
        name: &'static str = kinds::title(kind),
        state: usize = kinds::state(kind),
        time: u64 = time,
        owner: u32 = owner,
    }
}

columns!(Pieces(step: &PathPiece) {
    thread: u32 = step.thread,
    length: u64 = step.length,
    // The index in `shares` of the program (or other group, such as unknown time) to which this segment of the critical
    // path belongs.
    share: u32 = step.share,
    // The index in `owners` of the step to which this segment of the critical path belongs. For a segment outside of
    // all steps, it is the index of the program.
    owner: u32 = step.owner,
    // How the critical path goes on to its next segment: 0 same thread, 1 fork, 2 exit, 3 end of a vfork, 4 wake-up, 5
    // a sleep that the next segment's thread ends, 6 the recording's end, 7 a job slot.
    then: u8 = step.then,
    // 1 if no event shows this segment of the critical path, or how the path goes on to the next segment; otherwise 0.
    inferred: u8 = step.inferred.into(),
});

/// The critical path in the document of the HTML report. It consists of consecutive pieces. Each has its thread, and
/// the step or program that its time belongs to.
#[derive(Serialize)]
pub struct Path {
    from: u64,
    #[serde(flatten)]
    pieces: Pieces,
    /// How the path's time divides between programs. For each program: its name, its time in nanoseconds, the number of
    /// separate parts of the path that belong to it, and its index in `states`.
    shares: Vec<(String, u64, u64, usize)>,
    owners: Vec<Owner>,
    /// Whether the page shows the path's time by step, because a division by step says more than a division by program.
    by_step: bool,
    /// The kinds of waits on the critical path, the longest first.
    waits: Vec<Wait>,
}

impl Path {
    pub fn new(analysis: &Analysis, steps: &Steps, path: &CriticalPath) -> Path {
        let groups = path::groups(analysis);
        let (shares, parts) = path::with_parts(analysis, &groups, path);
        let places: BTreeMap<PathUse, u32> =
            shares.iter().map(|share| share.part).zip(0..).collect();
        let share = |part: &PathUse| places.get(part).copied().unwrap_or(0);
        let by_steps = PathBySteps::new(analysis, &groups, steps, path);
        let segments = by_steps.segments.iter().zip(&by_steps.part_of);
        let all = segments.zip(&by_steps.share_of);
        let all = all.map(|((segment, part), owner)| PathPiece {
            thread: segment.thread.0,
            length: segment.length(),
            share: parts.get(*part).map_or(0, share),
            owner: u32::try_from(*owner).unwrap_or(0),
            then: path_then(segment.then),
            inferred: segment.inferred || segment.then_inferred,
        });
        let mut pieces = Pieces::default();
        let all = merged(all, by_steps.segments.len(), path.length());
        all.iter().for_each(|piece| pieces.push(piece));
        let shares = shares.into_iter();
        let shares = shares.map(|share| {
            (
                share.name,
                share.time,
                share.count,
                kinds::state(share.part.kind),
            )
        });
        Path {
            from: path.from.since(analysis.meta.start),
            pieces,
            shares: shares.collect(),
            owners: by_steps.shares.iter().map(Owner::new).collect(),
            by_step: by_steps.says_more(),
            waits: waits(&by_steps.shares),
        }
    }
}

/// Adds up the critical path's times in ns, which are given by kind (such as network or page fault), to times by the
/// state of the thread.
fn states(spent: &ByKind) -> StateTimes {
    let mut times = [0u64; 5];
    for kind in TimeKind::ALL {
        if let Some(time) = times.get_mut(kinds::state(kind)) {
            *time = time.saturating_add(spent.of(kind));
        }
    }
    times
}

/// All kinds of waits on the critical path, the kind with the longest time first, each with the step or program that
/// has most of this time.
fn waits(owners: &[StepShare]) -> Vec<Wait> {
    let wait = |kind: TimeKind| {
        let times = owners.iter().map(|owner| owner.spent.of(kind));
        let sum = times.clone().fold(0u64, u64::saturating_add);
        let (owner, _) = (0..)
            .zip(times)
            .max_by_key(|(at, ns)| (*ns, Reverse(*at)))?;
        (sum > 0).then(|| Wait::new(kind, sum, owner))
    };
    let off_cpu = TimeKind::ALL
        .into_iter()
        .filter(|kind| *kind != TimeKind::OnCpu);
    let mut waits: Vec<Wait> = off_cpu.filter_map(wait).collect();
    waits.sort_by_key(|wait| Reverse(wait.time));
    waits
}

/// A segment of the critical path, or several merged segments, as the HTML report stores it.
#[derive(Clone, Copy, Debug, Default)]
struct PathPiece {
    thread: u32,
    length: u64,
    share: u32,
    owner: u32,
    then: u8,
    inferred: bool,
}

/// The segments of the critical path for the HTML report. If there are too many, consecutive short ones are merged. A
/// merged piece has the thread, the step and the program of its longest segment. The sums by step and by program stay
/// exact.
fn merged(all: impl Iterator<Item = PathPiece>, count: usize, whole: u64) -> Vec<PathPiece> {
    if count <= PIECES {
        return all.collect();
    }
    let grain = whole / (PIECES as u64 / 2);
    let mut pieces: Vec<PathPiece> = Vec::with_capacity(PIECES);
    // The segments that are being merged into one piece, and the length in ns of the longest of them.
    let mut held = PathPiece::default();
    let mut longest = 0;
    let flush = |held: &mut PathPiece, longest: &mut u64, pieces: &mut Vec<PathPiece>| {
        pieces.extend((held.length > 0).then_some(*held));
        (*held, *longest) = (PathPiece::default(), 0);
    };
    for piece in all {
        if piece.length >= grain {
            flush(&mut held, &mut longest, &mut pieces);
            pieces.push(piece);
            continue;
        }
        if piece.length > longest {
            longest = piece.length;
            (held.thread, held.share, held.owner) = (piece.thread, piece.share, piece.owner);
        }
        held.then = piece.then;
        held.inferred |= piece.inferred;
        held.length += piece.length;
        if held.length >= grain {
            flush(&mut held, &mut longest, &mut pieces);
        }
    }
    flush(&mut held, &mut longest, &mut pieces);
    pieces
}

fn path_then(then: Then) -> u8 {
    match then {
        Then::Same => 0,
        Then::Forked => 1,
        Then::Exited => 2,
        Then::Returned => 3,
        Then::Woke => 4,
        Then::Waited => 5,
        Then::Awaited => 6,
        Then::Slot => 7,
    }
}
