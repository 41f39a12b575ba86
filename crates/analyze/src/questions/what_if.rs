//! Computes lower limits for the time that the recorded work would have taken under one of two assumptions: the work of
//! one group of programs costs nothing, or there are more CPUs.
//!
//! The recording is replayed forwards with a virtual clock for every thread. Work on a CPU advances its thread's clock,
//! unless the work counts as free. When another thread ends a wait, the waiting thread's clock is set to the other
//! thread's clock, if that is later. A new thread starts with the clock of the thread that forked it. Waits for disks
//! last as long as they did. A wait that a timer, the network or a task outside the recording ended may belong to a
//! loop that checks again and again whether other work is done, so no lower limit counts such waits.
//!
//! If the clocks count each wait with its recorded length, they show the recorded time, to the nanosecond. If they
//! leave out the waits for a CPU and those that no lower limit counts, they show the least time on any number of CPUs
//! (the span law). Another limit is the CPU time that the end depended on, divided by the CPUs (the work law). Both are
//! e.g. in R. Blumofe, C. Leiserson, "Scheduling multithreaded computations by work stealing", JACM 46(5), 1999.
//!
//! All limits assume the wake-ups of the recording, but another run may hand a job server's token to another job. And a
//! limit may be lower than necessary: if a child had ended before its parent waited for it, no event shows that the
//! parent needed the child.

mod replay;

use rayon::slice::ParallelSliceMut;
use tr_format::event::{Ktime, Reason};

use crate::arena::Arena;
use crate::kinds::TimeKind;
use crate::model::{Analysis, ThreadIx};
use crate::questions::awaited::WaitReason;
use crate::questions::critical_path::{CriticalPath, NoPath};
use crate::questions::graph::{Graph, StretchCause};
use crate::questions::programs::{Group, Groups};
use crate::timeline::Bucket;
use replay::{Clock, Cursor, Replay, Scenario};

/// The time in ns in which the recorded work could be done if the work of one group of programs cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub group: Group,
    /// The least time in ns without the work of the group. Two times are computed: the longest chain of the remaining
    /// work and of uninterruptible waits, on any number of CPUs, and the time that the recorded CPUs need for the
    /// remaining work. The value is the longer one.
    pub at_least: u64,
    /// The time in ns without the work of the group if every wait for a CPU, a timer, the network or a task outside the
    /// recording kept its length. The value is at least `at_least`. A real run may be faster, because some of these
    /// waits would become shorter: a loop that polls for other work would poll less often.
    pub same_waits: u64,
    /// The longest time that the chain of work and waits that determines `same_waits` stays in a single thread.
    pub decides: Option<Stay>,
}

/// A time in which a chain of work and waits stays in a single thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    pub thread: ThreadIx,
    /// The moment in the recording at which the chain of work and waits leaves the thread.
    pub at: Ktime,
    /// How many ns the chain of work and waits stays in the thread.
    pub ns: u64,
}

/// Lower limits for the time in which the recorded work can be done, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The recorded time in ns, which is the virtual clock (replayed time) at the end of the process if the replay
    /// leaves no time out.
    pub recorded: u64,
    /// The least time in ns on any number of CPUs: the longest chain of work and uninterruptible waits, such as those
    /// for disks, without unknown time and other waits.
    pub span: u64,
    /// The CPU time in ns that the end of the process depended on.
    pub work: u64,
    pub cpus: u64,
    /// The time in ns if no task had waited for a job slot and all other waits had their recorded lengths; `None` if no
    /// task waited for a slot. A real run could take less time than this; see [`Free::same_waits`].
    pub more_slots: Option<u64>,
    /// The lower limits without the work of each requested group of programs, in the order of the request.
    pub free: Vec<Free>,
}

impl Limits {
    /// The least time in ns in which the recorded work can be done on `cpus` CPUs without other load.
    pub fn on(&self, cpus: u64) -> u64 {
        self.span.max(self.work.div_ceil(cpus.max(1)))
    }
}

/// The parts of the recorded time that a scenario leaves out: the time of the groups in `of` for which `own` or `waits`
/// returns true.
#[derive(Clone, Debug)]
pub struct Without {
    /// Returns whether the time of a thread in one state (such as running, or waiting in a system call) is left out of
    /// the simulated run. The arguments are the kind of this time and, for a wait, the class of the system call.
    pub own: fn(TimeKind, Reason) -> bool,
    /// Whether a wait that another thread ended is left out. The arguments are the reason for waiting and the
    /// class of the system call.
    pub waits: fn(WaitReason, Reason) -> bool,
    /// For each group of programs, by its number, whether the time of this group is left out; `None` if the time of all
    /// groups is left out.
    pub of: Option<Box<[bool]>>,
}

impl Without {
    /// A scenario that leaves out the CPU time of those groups of programs for which `of` is true.
    pub fn work(of: Box<[bool]>) -> Without {
        Without::own(|kind, _| kind == TimeKind::OnCpu, Some(of))
    }

    /// A scenario that leaves out some of the threads' own time. `own` selects the kinds of time, and `of` selects the
    /// groups of programs (see [`Without::of`]).
    pub fn own(own: fn(TimeKind, Reason) -> bool, of: Option<Box<[bool]>>) -> Without {
        Without {
            own,
            waits: |_, _| false,
            of,
        }
    }

    pub(crate) fn counts(&self, group: Option<Group>) -> bool {
        let Some(of) = &self.of else {
            return true;
        };
        let counts = group.and_then(|group| of.get(group as usize));
        counts.copied().unwrap_or(false)
    }

    pub(crate) fn leaves_out(
        &self,
        (kind, reason): (TimeKind, Reason),
        group: Option<Group>,
    ) -> bool {
        (self.own)(kind, reason) && self.counts(group)
    }
}

/// Computes the lower limits for the process of the critical path. `free` has the groups of programs whose work
/// is assumed to cost nothing, one group at a time. The computation takes 16 bytes for each wait, and 80 bytes
/// for each thread and group.
///
/// # Errors
/// [`NoPath::NoTimeline`] if the analysis kept no timeline.
pub fn limits(
    analysis: &Analysis,
    path: &CriticalPath,
    groups: &Groups,
    free: &[Group],
) -> Result<Limits, NoPath> {
    let graph = Graph::new(analysis).ok_or(NoPath::NoTimeline)?;
    let work = free.iter().map(|group| {
        let all = 0..groups.count();
        Without::work(all.map(|number| number == *group as usize).collect())
    });
    let slots = Without {
        own: |_, _| false,
        waits: |awaited, _| awaited == WaitReason::Slot,
        of: None,
    };
    let left_out: Vec<Without> = work.chain([slots]).collect();
    let clocks = || analysis.thread_ids().map(|_| Clock::default()).collect();
    let scenario = |without| Scenario {
        without,
        clocks: clocks(),
    };
    let mut replay = Replay {
        graph,
        groups,
        from: path.from,
        to: path.to,
        cursors: analysis.thread_ids().map(|_| Cursor::default()).collect(),
        recorded: clocks(),
        waited_for_slot: false,
        scenarios: left_out.iter().map(scenario).collect(),
    };
    let links = links(&graph, path);
    for link in &links {
        replay.advance(link.thread, link.time, 0);
    }
    let last = path.last_thread(analysis);
    replay.advance(last, path.to, 0);
    let (work, needed) = needed(&graph, path, &links, groups);
    let cpus = analysis.cpus_of_build().max(1);
    // For each scenario, the virtual clocks (replayed times) of the thread in which the path ends.
    let ends = replay
        .scenarios
        .iter()
        .map(|scenario| scenario.clocks[last]);
    let free = ends.zip(free).map(|(clock, group)| {
        // `rest` is the time that the CPUs need for the remaining work, if they share it evenly.
        let own = needed.get(*group as usize).copied().unwrap_or(0);
        let rest = work.saturating_sub(own).div_ceil(cpus);
        let at_least = clock.no_waits.max(rest);
        Free {
            group: *group,
            at_least,
            same_waits: clock.same_waits.max(at_least),
            decides: clock.longest_stay(),
        }
    });
    let slots = replay.scenarios.last();
    let slots = slots.filter(|_| replay.waited_for_slot);
    let recorded = replay.recorded[last];
    Ok(Limits {
        recorded: recorded.same_waits,
        more_slots: slots.map(|scenario| scenario.clocks[last].same_waits),
        span: recorded.no_waits,
        work,
        cpus,
        free: free.collect(),
    })
}

/// A link between the virtual clocks (replayed times) of two threads at a moment: one thread woke or forked the other
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    time: Ktime,
    /// The thread that was woken or forked at this moment, so that its virtual clock (replayed time) depends on the
    /// clock of the thread `by`.
    thread: ThreadIx,
    /// The thread that woke or forked the thread `thread` at this moment.
    by: ThreadIx,
}

/// All wakings and forks that can influence the critical path, in the order of time.
fn links(graph: &Graph<'_>, path: &CriticalPath) -> Vec<Link> {
    let inside = |time: Ktime| time > path.from && time <= path.to;
    let mut links = Vec::new();
    for thread in graph.analysis.thread_ids() {
        let time = graph.analysis.thread(thread).start;
        if let Some(by) = graph.forked_by(thread).filter(|_| inside(time)) {
            links.push(Link { time, thread, by });
        }
        let stretches = graph.stretches_by_threads(thread);
        for stretch in stretches.filter(|stretch| inside(stretch.to)) {
            if let StretchCause::Thread(by) = graph.cause(thread, &stretch) {
                let time = stretch.to;
                links.push(Link { time, thread, by });
            }
        }
    }
    links.par_sort_unstable();
    links
}

/// The CPU time in ns on which the end of the critical path depended: the sum, and the time of each group of programs.
/// For each thread, the CPU time counts up to the last moment at which the path's end depended on the thread. The
/// wakings are followed backwards to find these moments. If there are several wakings at one moment, some may be
/// missed, so the result may be too small but never too large.
fn needed(
    graph: &Graph<'_>,
    path: &CriticalPath,
    links: &[Link],
    groups: &Groups,
) -> (u64, Vec<u64>) {
    let threads = || graph.analysis.thread_ids();
    let mut until: Arena<ThreadIx, Ktime> = threads().map(|_| Ktime(0)).collect();
    until[path.last_thread(graph.analysis)] = path.to;
    for link in links.iter().rev() {
        if until[link.thread] >= link.time {
            until[link.by] = until[link.by].max(link.time);
        }
    }
    let (mut all, mut of) = (0u64, vec![0u64; groups.count()]);
    for thread in threads() {
        let process = graph.analysis.thread(thread).process;
        let until = until[thread];
        let needed = graph.timeline.of(thread).take_while(|s| s.from < until);
        for stretch in needed.filter(|s| matches!(s.doing, Bucket::OnCpu(_))) {
            let (from, to) = (stretch.from.max(path.from), stretch.to.min(until));
            groups.split(process, from, to, |group, from, to| {
                all = all.saturating_add(to.since(from));
                if let Some(sum) = of.get_mut(group as usize) {
                    *sum = sum.saturating_add(to.since(from));
                }
            });
        }
    }
    (all, of)
}
