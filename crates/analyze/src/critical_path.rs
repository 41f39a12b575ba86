//! The critical path: from the end of a process back to its exec, what its time
//! depended on.
//!
//! Goes backwards through the recording: what a thread did on a CPU, or what it
//! waited for a CPU, is part of the path; where it waited for something else the
//! path goes on with the thread that ended the wait, at that moment; a new
//! thread's beginning leads to the one that forked it. This is the backward
//! traversal of the graph of executions and wake-ups by F. Giraldeau and
//! M. Dagenais, "Wait analysis of distributed systems using kernel tracing"
//! (IEEE TPDS 27(8), 2016), without its bound: there a resolved wait leads back
//! to the waiting thread where the wait began. For the first of two jobs to
//! count, a build must have had to wait for it, and not for the second: so here
//! a job is followed back to its own beginning.
//!
//! The segments follow each other without a hole, so their lengths add up to
//! the time from the exec to the exit, to the nanosecond.

use tr_format::event::Ktime;
use tr_format::meta::Scope;

pub use crate::graph::Kind;
use crate::graph::{Cause, Graph};
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::programs::{Program, Programs};
use crate::timeline::Bucket;

/// How the path goes on from a segment's thread to the next segment's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// It is the same thread; or the path ends here.
    Same,
    /// It forked the next one.
    Forked,
    /// It ended, and the next one had waited for that.
    Exited,
    /// It was done with the memory that its vfork parent had lent it: by its
    /// exec, or its exit.
    Returned,
    /// It woke the next one: wrote to a pipe, let go of a lock, sent a signal.
    Woke,
}

/// A piece of the path: one thread, as one program, doing one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From here on.
    pub from: Ktime,
    /// Up to here, where the next one begins.
    pub to: Ktime,
    /// Whose time it is.
    pub thread: ThreadIx,
    /// The program that its process was.
    pub program: Option<Program>,
    /// What was done.
    pub kind: Kind,
    /// How the next segment came to be.
    pub then: Then,
}

impl Segment {
    /// Its length in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// The path of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// Whose.
    pub process: ProcessIx,
    /// The thread of it that ended last: where the path ends.
    pub thread: ThreadIx,
    /// Its first exec; its beginning, or the span's, when that was not seen.
    pub from: Ktime,
    /// Its end: the last switch-out of its last thread, or the span's end.
    pub to: Ktime,
    /// In order of time; the first begins at `from`, the last ends at `to`.
    pub segments: Vec<Segment>,
}

impl CriticalPath {
    /// The time from exec to exit in ns: the sum of all segments.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// What the time of a part of the path was, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// On a CPU.
    pub on_cpu: u64,
    /// Waiting for a CPU.
    pub run_queue: u64,
    /// Waiting for a disk.
    pub disk: u64,
    /// Asleep until an interrupt.
    pub sleep: u64,
    /// Stopped, in another uninterruptible wait, or waiting for a task that is
    /// no part of the recording.
    pub other: u64,
    /// Not known.
    pub unknown: u64,
}

impl Spent {
    /// Adds a segment's time.
    pub fn add(&mut self, kind: Kind, ns: u64) {
        let sum = match kind {
            Kind::OnCpu => &mut self.on_cpu,
            Kind::RunQueue(_) => &mut self.run_queue,
            Kind::Disk => &mut self.disk,
            Kind::Sleep => &mut self.sleep,
            Kind::Stopped | Kind::Blocked | Kind::Outside(_) => &mut self.other,
            Kind::Unknown => &mut self.unknown,
        };
        *sum += ns;
    }

    /// Adds another part's.
    pub fn add_all(&mut self, other: &Spent) {
        self.on_cpu += other.on_cpu;
        self.run_queue += other.run_queue;
        self.disk += other.disk;
        self.sleep += other.sleep;
        self.other += other.other;
        self.unknown += other.unknown;
    }
}

/// A part of the path in which it stays with one thread, as one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// From here on.
    pub from: Ktime,
    /// Up to here, where the next one begins.
    pub to: Ktime,
    /// Whose time it is.
    pub thread: ThreadIx,
    /// The program that its process was.
    pub program: Option<Program>,
    /// What its time was.
    pub spent: Spent,
    /// How the next leg came to be.
    pub then: Then,
}

impl Leg {
    /// Its length in ns.
    pub fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

impl CriticalPath {
    /// The path in larger pieces, in order of time.
    pub fn legs(&self) -> impl Iterator<Item = Leg> + '_ {
        let same = |a: &Segment, b: &Segment| (a.thread, a.program) == (b.thread, b.program);
        self.segments.chunk_by(same).filter_map(|segments| {
            let (first, last) = (segments.first()?, segments.last()?);
            let mut spent = Spent::default();
            for segment in segments {
                spent.add(segment.kind, segment.length());
            }
            Some(Leg {
                from: first.from,
                to: last.to,
                thread: first.thread,
                program: first.program,
                spent,
                then: last.then,
            })
        })
    }
}

/// Why there is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPath {
    /// There is no COMMAND.
    #[error(
        "the recording has no command whose end everything led to; choose a process with --pid"
    )]
    NoCommand,
    /// COMMAND's process is not in the span.
    #[error("the command's process is not in this part of the recording")]
    NotThere,
    /// [`Options::timeline`](crate::Options::timeline) was not set.
    #[error("no timeline was kept")]
    NoTimeline,
}

/// The process whose path is the recording's: COMMAND's, or the one process
/// that was asked for.
///
/// # Errors
/// There is none, or several, and why.
pub fn root(analysis: &Analysis) -> Result<ProcessIx, NoPath> {
    let pid = match (analysis.meta.root, &analysis.meta.scope) {
        (Some(pid), _) => pid,
        (None, Scope::Pids(pids)) => match pids.as_slice() {
            [pid] => *pid,
            _ => return Err(NoPath::NoCommand),
        },
        (None, _) => return Err(NoPath::NoCommand),
    };
    // Its pid may have been used again: it was there from the beginning.
    let at = analysis.processes.iter().position(|p| p.pid == pid);
    let at = at.and_then(|at| u32::try_from(at).ok());
    at.map(ProcessIx).ok_or(NoPath::NotThere)
}

/// How many threads the path may go through without time passing; a longer
/// chain at one instant, or a circle, is not followed.
const AT_ONCE: usize = 64;

/// The critical path of a process.
///
/// # Errors
/// There is no such process, or no timeline was kept.
pub fn critical_path(analysis: &Analysis, process: ProcessIx) -> Result<CriticalPath, NoPath> {
    let graph = Graph::new(analysis).ok_or(NoPath::NoTimeline)?;
    let root = analysis
        .processes
        .get(process.0 as usize)
        .ok_or(NoPath::NotThere)?;
    let end_of = |ix: &ThreadIx| graph.thread(*ix).map(|thread| thread.end);
    // Of several that end together the first one.
    let thread = root.threads.iter().rev().copied().max_by_key(end_of);
    let thread = thread.ok_or(NoPath::NotThere)?;
    let to = end_of(&thread).ok_or(NoPath::NotThere)?;
    // One that was running before the span has begun with the span.
    let exec = root.execs.first().filter(|exec| !exec.started_before);
    let from = exec.map_or(root.start, |exec| exec.start).min(to);
    let mut walk = Walk {
        graph,
        programs: Programs::new(analysis),
        from,
        segments: Vec::new(),
        then: Then::Same,
    };
    walk.back(thread, to);
    walk.segments.reverse();
    Ok(CriticalPath {
        process,
        thread,
        from,
        to,
        segments: walk.segments,
    })
}

struct Walk<'a> {
    graph: Graph<'a>,
    programs: Programs,
    from: Ktime,
    /// The last one first.
    segments: Vec<Segment>,
    /// How the segment that comes next, the earlier one, leads to the last.
    then: Then,
}

impl Walk<'_> {
    fn back(&mut self, mut thread: ThreadIx, mut now: Ktime) {
        // Whose turn it has been since the time last moved.
        let mut met = vec![thread];
        while now > self.from {
            let before = self.graph.before(thread, now);
            let (begin, cause) = match before {
                Some((_, stretch)) => {
                    // A wait that is cut off has not ended by anybody's doing.
                    let cause = match stretch.doing {
                        Bucket::Wait(_) if stretch.to > now => Cause::Own(Kind::Unknown),
                        _ => self.graph.cause(&stretch),
                    };
                    (stretch.from, cause)
                }
                None => match self.graph.forked_by(thread) {
                    Some(parent) => (now, Cause::Thread(parent)),
                    // Nothing is known of what came before.
                    None => (self.from, Cause::Own(Kind::Unknown)),
                },
            };
            let kind = match cause {
                Cause::Thread(next) if met.len() < AT_ONCE && !met.contains(&next) => {
                    self.then = match before {
                        Some((_, stretch)) => self.link(next, &stretch.doing, now),
                        None => Then::Forked,
                    };
                    met.push(next);
                    thread = next;
                    continue;
                }
                Cause::Thread(_) => Kind::Unknown,
                Cause::Own(kind) => kind,
            };
            // A fork whose parent has been met at this instant.
            let begin = if before.is_none() { self.from } else { begin };
            now = self.add(thread, begin.max(self.from), now, kind);
            met.clear();
            met.push(thread);
        }
    }

    /// ActorRef what `waker` ended a wait at `time`.
    fn link(&self, waker: ThreadIx, wait: &Bucket, time: Ktime) -> Then {
        use crate::timeline::Wait;
        let exited = self.graph.thread(waker).and_then(|thread| thread.exited);
        match wait {
            Bucket::Wait(Wait::Vfork) => Then::Returned,
            _ if exited.is_some_and(|exited| exited <= time) => Then::Exited,
            _ => Then::Woke,
        }
    }

    /// Adds `from..to` of a thread, cut where its process became another
    /// program. Returns where it begins.
    fn add(&mut self, thread: ThreadIx, from: Ktime, to: Ktime, kind: Kind) -> Ktime {
        let analysis = self.graph.analysis;
        let process = self.graph.thread(thread).map(|thread| thread.process);
        let mut to = to;
        while to > from {
            let last = Ktime(to.0 - 1);
            let program = process.and_then(|process| self.programs.at(analysis, process, last));
            let begin = program
                .filter(|(executed, _)| Some(*executed) == process)
                .and_then(|(ix, at)| {
                    let process = analysis.processes.get(ix.0 as usize)?;
                    process.execs.get(at as usize)
                })
                .map_or(from, |exec| exec.start.max(from));
            let then = std::mem::replace(&mut self.then, Then::Same);
            self.push(Segment {
                from: begin,
                to,
                thread,
                program,
                kind,
                then,
            });
            to = begin;
        }
        from
    }

    fn push(&mut self, new: Segment) {
        match self.segments.last_mut() {
            Some(last)
                if new.then == Then::Same
                    && (last.thread, last.program, last.kind)
                        == (new.thread, new.program, new.kind) =>
            {
                last.from = new.from;
            }
            _ => self.segments.push(new),
        }
    }
}
