//! The critical path: the chain of work and waits that determined how long a process took from its exec to its end.
//!
//! The path is followed backwards from the end. A thread's time on a CPU and its waits for a CPU are part of the path.
//! Where the thread waited for something else, the path continues with the thread that ended the wait, at that moment.
//! At the beginning of a thread, the path continues with the thread that forked it. This is the backward traversal of
//! the graph of executions and wake-ups by F. Giraldeau and M. Dagenais, "Wait analysis of distributed systems using
//! kernel tracing" (IEEE TPDS 27(8), 2016), except for one rule.
//!
//! In the paper, the path returns to the waiting thread at the moment at which its wait began. So if a build begins to
//! wait for a job only after some time, the job's work before that moment is not part of the path. Here a job is
//! followed back to its own beginning. The path returns as in the paper only between threads of one process, and only
//! if a timer woke the thread that ended the wait, before the wait began (`entries`).
//!
//! Without scheduling events, the path consists of forks and ends only. It goes from a parent to the child that ended
//! last, and from the child's beginning back to the parent. Its time is divided by the totals of the threads' times
//! (`totals`).
//!
//! The segments follow each other without a hole, so their lengths add up to the time from the exec to the exit, to the
//! nanosecond.

use tr_format::event::{Ktime, Outsider};
use tr_format::meta::Scope;

mod enders;
mod entries;
mod evidence;
mod sampled;
mod totals;
mod walk;

use self::enders::Ender;
use self::evidence::Evidence;
pub use self::sampled::OnPath;
use crate::arena::Arena;
use crate::gaps::Spans;
use crate::kinds::ByKind;
pub use crate::kinds::TimeKind;
use crate::model::{Analysis, Basis, Process, ProcessIx, ThreadIx};
use crate::questions::graph::Graph;
use crate::questions::programs::{Program, Programs};
use crate::timeline::Actor;

/// How the critical path leads from the thread of one segment to the thread of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// The critical path does not leave the thread: the next segment has the same thread, or the path ends here.
    Same,
    /// The thread of the segment forked the thread of the next segment of the path.
    Forked,
    /// The thread of the segment exited, and the thread of the next segment of the path had waited for this exit.
    Exited,
    /// The thread of the segment is the vfork child of the thread of the next segment of the path. The parent had to
    /// wait until an exec or the exit of the child released the parent's memory.
    Returned,
    /// The thread of the segment woke the thread of the next segment of the path: it wrote to a pipe, released a lock
    /// or sent a signal.
    Woke,
    /// The thread of the segment gave a job slot back, and the thread of the next segment of the path had waited for a
    /// job slot.
    Slot,
    /// The thread of the segment began to wait at the end of the segment. At that moment, the thread of the next
    /// segment of the path was already waiting. Later that second thread ended the wait of the first thread, itself or
    /// through other threads.
    Waited,
    /// The thread of the next segment waited for the end of the segment's thread, which was still at work when the path
    /// ended, or when a signal cut the wait short.
    Awaited,
}

/// A segment of the critical path: time of one kind, in which the path is in one thread that executes one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub from: Ktime,
    /// The end of the segment, which is the beginning of the next segment of the critical path.
    pub to: Ktime,
    pub thread: ThreadIx,
    /// The program that the process of the segment's thread executed during the segment.
    pub program: Option<Program>,
    /// The kind of time that the segment consists of, such as time on a CPU.
    pub kind: TimeKind,
    /// How the critical path leads from this segment to the thread of the next segment.
    pub then: Then,
    /// Whether no event shows how the critical path leads to the next segment, so that `then` is only the most likely
    /// way.
    pub then_inferred: bool,
    /// Whether no event shows what the thread did in the segment, so that `kind` is only the most likely kind of time.
    pub inferred: bool,
}

impl Segment {
    /// The length of the path's segment in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }

    /// The unrecorded task that ended the wait of which the segment consists; `None` if the segment is no such wait, or
    /// if the name of that task is not recorded.
    pub fn ended_by<'a>(&self, analysis: &'a Analysis) -> Option<&'a Outsider> {
        let timeline = analysis.timeline.as_ref()?;
        let stretch = timeline.around(self.thread, self.from)?;
        match stretch.waker() {
            // A wait is split in two where a container or a server begins, and this segment may be the first part of
            // such a wait. The name of the waker may be recorded only at the end of the second part. So if this tid has
            // a single name in the whole recording, that name is taken.
            Actor::Outside(tid) => {
                let outside = &analysis.others.outside;
                outside.at(tid, stretch.to).or_else(|| outside.only(tid))
            }
            _ => None,
        }
    }
}

/// The critical path of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    pub process: ProcessIx,
    /// The thread that ended the process, or the last thread of the process. The critical path ends in this thread,
    /// unless the thread still waited for another thread at the end of the recording.
    pub thread: ThreadIx,
    /// The beginning of the critical path: the first exec of the process, or the fork of the process if the fork was
    /// noticeably earlier. If the recording shows neither, the path begins at the beginning of the analyzed span.
    pub from: Ktime,
    /// The end of the critical path: the moment of the last switch-out of `thread`, or the end of the span. If `thread`
    /// killed other threads of the process, these may leave their CPUs a bit later.
    pub to: Ktime,
    /// The segments of the critical path in the order of time. The first one begins at `from`, and the last one ends at
    /// `to`.
    pub segments: Vec<Segment>,
}

impl CriticalPath {
    /// The thread in which the critical path ends: `self.thread` or, if that thread still waited for another thread at
    /// the end of the recording, the other thread.
    pub(crate) fn last_thread(&self, analysis: &Analysis) -> ThreadIx {
        let last = self.segments.last().map(|segment| segment.thread);
        let last = last.filter(|_| analysis.thread(self.thread).alive);
        last.unwrap_or(self.thread)
    }

    /// The length of the critical path in ns, which is the sum of all segments.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// A leg of the critical path: successive segments that have the same thread and the same program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    pub from: Ktime,
    /// The end of the leg (a part of the critical path in one thread), which is the beginning of the next leg.
    pub to: Ktime,
    pub thread: ThreadIx,
    /// The program that the thread's process executed during the leg (a part of the critical path in one thread).
    pub program: Option<Program>,
    /// The time of the leg (a part of the critical path in one thread) by kind, such as time on a CPU, in ns.
    pub spent: ByKind,
    /// How the critical path leads from this leg (its part in one thread) to the thread of the next leg.
    pub then: Then,
    /// Whether no event shows how the critical path leads from this leg (its part in one thread) to the next leg.
    pub then_inferred: bool,
    /// The part, in ns, of the leg (a part of the critical path in one thread) that no event shows, so that it is only
    /// the most likely course of the path. If `then_inferred` is set, it is the whole leg. Unknown time is not counted.
    pub inferred: u64,
}

impl Leg {
    /// Joins successive segments of a critical path to one leg, which has the thread and the program of the first
    /// segment. Returns `None` if there are no segments.
    pub fn of(segments: &[Segment]) -> Option<Leg> {
        let (first, last) = (segments.first()?, segments.last()?);
        Some(Leg {
            from: first.from,
            to: last.to,
            thread: first.thread,
            program: first.program,
            spent: by_kind(segments),
            then: last.then,
            then_inferred: last.then_inferred,
            inferred: inferred(segments),
        })
    }

    /// The length in ns of the leg, which is a part of the critical path in one thread.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

impl CriticalPath {
    /// The segments of the critical path in the order of time, grouped by legs. A leg is a series of segments of one
    /// thread and one program.
    fn by_leg(&self) -> impl Iterator<Item = &[Segment]> {
        let same = |a: &Segment, b: &Segment| (a.thread, a.program) == (b.thread, b.program);
        self.segments.chunk_by(same)
    }

    /// The known time of each process on the critical path, in ns. Unknown time is attributed to no process.
    pub fn by_process(&self, analysis: &Analysis) -> Arena<ProcessIx, u64> {
        let mut sums: Arena<_, u64> = analysis.process_ids().map(|_| 0).collect();
        for segment in self
            .segments
            .iter()
            .filter(|segment| segment.kind != TimeKind::Unknown)
        {
            let sum = &mut sums[analysis.thread(segment.thread).process];
            *sum = sum.saturating_add(segment.length());
        }
        sums
    }

    /// The legs of the critical path (its parts in one thread and one program), in the order of time.
    pub fn legs(&self) -> impl Iterator<Item = Leg> + '_ {
        self.by_leg().filter_map(Leg::of)
    }
}

/// The time of the given segments by kind, such as time on a CPU, in ns.
pub fn by_kind(segments: &[Segment]) -> ByKind {
    let mut times = ByKind::default();
    for segment in segments {
        times.add(segment.kind, segment.length());
    }
    times
}

/// The time in ns of the inferred segments, which no event shows, in a leg (a part of the critical path in one thread).
/// If no event shows the way from the leg to the next one, all segments count. Unknown time is not counted.
fn inferred(leg: &[Segment]) -> u64 {
    let link = leg.last().is_some_and(|last| last.then_inferred);
    let counts = leg.iter().filter(|segment| link || segment.inferred);
    let counts = counts.filter(|segment| segment.kind != TimeKind::Unknown);
    counts.map(Segment::length).sum()
}

/// The reason why a recording or a process has no critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPath {
    /// No critical path exists, because the recording was made neither of a COMMAND nor of exactly one pid.
    #[error("the recording has no command: choose a process with --pid")]
    NoCommand,
    /// No critical path exists, because the process that it would be of does not live in the analyzed span.
    #[error("the command's process is not in this part of the recording")]
    NotThere,
    /// No critical path exists, because the analysis kept no timeline: [`Options::timeline`](crate::Options::timeline)
    /// was not set.
    #[error("no timeline was kept")]
    NoTimeline,
}

/// Returns the process whose critical path counts as the path of the whole recording: COMMAND, or the only process that
/// was recorded by its pid.
///
/// # Errors
/// An error if no process or several processes come into question.
pub fn root(analysis: &Analysis) -> Result<ProcessIx, NoPath> {
    let pid = match (analysis.meta.root, &analysis.meta.scope) {
        (Some(pid), _) => pid,
        (None, Scope::Pids(pids)) => match pids.as_slice() {
            [pid] => *pid,
            _ => return Err(NoPath::NoCommand),
        },
        (None, _) => return Err(NoPath::NoCommand),
    };
    // Later processes may have the same pid as COMMAND. COMMAND is the first process with this pid.
    let mut all = analysis.process_ids();
    let found = all.find(|ix| analysis.process(*ix).pid == pid);
    found.ok_or(NoPath::NotThere)
}

/// The critical path of COMMAND.
///
/// # Errors
/// The errors of [`root`] and [`critical_path`].
pub fn of(analysis: &Analysis) -> Result<CriticalPath, NoPath> {
    critical_path(analysis, root(analysis)?)
}

/// The critical path of one process.
///
/// # Errors
/// [`NoPath::NoTimeline`] if the analysis kept no timeline; [`NoPath::NotThere`] if the process has no threads.
pub fn critical_path(analysis: &Analysis, process: ProcessIx) -> Result<CriticalPath, NoPath> {
    let paths = Paths::new(analysis)?;
    let root = analysis.process(process);
    let thread = enders::last(analysis, root).ok_or(NoPath::NotThere)?;
    let to = analysis.thread(thread).end;
    let from = beginning(root, to).min(to);
    Ok(CriticalPath {
        process,
        thread,
        from,
        to,
        segments: paths.between(from, thread, to, &|_, _| true),
    })
}

/// The time between the fork and the exec of a process is part of its critical path only if this time is at least 10 ms
/// and at least one hundredth of the path. The recorder's own work before COMMAND is shorter. A guess: with longer
/// limits, some paths would lack waits for a CPU before the exec, and one such wait lasted half a second.
const BEFORE_EXEC: (u64, u64) = (10_000_000, 100);

/// The beginning of the critical path of a process, if the path ends at `to`: the first exec, or the beginning of the
/// process if the exec came noticeably later ([`BEFORE_EXEC`]), for example because the process waited for a CPU.
fn beginning(root: &Process, to: Ktime) -> Ktime {
    // A program that was already running when the analyzed span began has no exec in the span. Then the path begins
    // where the process begins in the span.
    let Some(exec) = root.execs.first().filter(|exec| !exec.started_before) else {
        return root.start;
    };
    let before = exec.start.since(root.start);
    let (least, part) = BEFORE_EXEC;
    if before >= least && before.saturating_mul(part) >= to.since(root.start) {
        root.start
    } else {
        exec.start
    }
}

/// Computes the critical paths of parts of a recording.
pub struct Paths<'a> {
    graph: Graph<'a>,
    programs: Programs,
    lost: Spans,
    enders: Arena<ProcessIx, Option<Ender>>,
}

impl<'a> Paths<'a> {
    /// Prepares the computation of critical paths in an analysis.
    ///
    /// # Errors
    /// [`NoPath::NoTimeline`] if the analysis kept no timeline.
    pub fn new(analysis: &'a Analysis) -> Result<Paths<'a>, NoPath> {
        let graph = Graph::new(analysis).ok_or(NoPath::NoTimeline)?;
        Ok(Paths {
            graph,
            enders: enders::of_all(analysis, graph.timeline),
            programs: Programs::new(analysis),
            lost: evidence::lost_spans(analysis),
        })
    }

    /// Returns the segments of work and waits that `thread` depended on from `from` to `to`, in the order of time. The
    /// lengths of the segments add up to `to - from`. `inside` returns whether a thread is in the group whose path is
    /// computed, for example the threads of a build step. The work of threads outside of the group is followed back
    /// only to the moment at which a thread on the path began to wait for it.
    pub fn between(
        &self,
        from: Ktime,
        thread: ThreadIx,
        to: Ktime,
        inside: &dyn Fn(ThreadIx, Ktime) -> bool,
    ) -> Vec<Segment> {
        let evidence = Evidence::new(self.graph, &self.lost, to);
        let span = (from, thread, to);
        let segments = walk::segments(
            self.graph,
            &self.programs,
            evidence,
            (inside, &self.enders),
            span,
        );
        match self.graph.analysis.basis() {
            Basis::Events => segments,
            _ => totals::divided(self.graph.analysis, segments),
        }
    }
}
