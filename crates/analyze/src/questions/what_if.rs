//! Computes lower limits for the time that the recorded work would have taken if the work of one group cost
//! nothing, or if there had been more CPUs.
//!
//! The recording is replayed forwards with a virtual clock for every thread. Work on a CPU advances its
//! thread's clock, unless the work counts as free. The end of a wait sets the clock to that of the thread
//! that ended the wait, if that is later. A new thread starts with the clock of the thread that forked it.
//! Waits for disks last as long as they did. A wait that a timer, the network or a task outside the recording
//! ended may be one of a loop that asks again and again whether other work is done: no limit counts it.
//!
//! A clock that counts each wait for a CPU as it was shows the recorded time, to the nanosecond. A clock that
//! leaves them out shows the least time on any number of CPUs (the span law). The CPU time that the end
//! needed, divided among the CPUs, is another limit (the work law; both e.g. in R. Blumofe, C. Leiserson,
//! "Scheduling multithreaded computations by work stealing", JACM 46(5), 1999).
//!
//! All limits hold for the wake-ups as they were recorded: another run may hand a job server's token to
//! another job. And a limit may be lower than necessary: if a child had ended before its parent waited for
//! it, no event shows that the parent needed it.

mod replay;

use rayon::slice::ParallelSliceMut;
use tr_format::event::{Ktime, Reason};

use crate::arena::Arena;
use crate::kinds::Kind;
use crate::model::{Analysis, ThreadIx};
use crate::questions::awaited::WaitReason;
use crate::questions::critical_path::{CriticalPath, NoPath};
use crate::questions::graph::{Cause, Graph};
use crate::questions::programs::{Group, Groups};
use crate::timeline::Bucket;
use replay::{Clock, Cursor, Replay, Scenario};

/// How fast the recorded work could be done without the work of one group, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub group: Group,
    /// The least time, which is a limit for any number of CPUs and for the rest of the work on the recorded
    /// CPUs.
    pub at_least: u64,
    /// The time if every wait for a CPU, a timer, the network or a task outside had its recorded length, and at
    /// least `at_least`. It is not a limit: a loop that polls for other work would poll less often.
    pub same_waits: u64,
    /// The longest stay in one thread of the chain of work and waits that decides about `same_waits`.
    pub decides: Option<Stay>,
}

/// The time that a chain of work and waits stays in one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    pub thread: ThreadIx,
    /// The moment at which the stay ends.
    pub at: Ktime,
    /// The length of the stay in ns.
    pub ns: u64,
}

/// Limits for how fast the recorded work can be done, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The recorded time: the clock of the process's end with nothing left out.
    pub recorded: u64,
    /// The least time on any number of CPUs: without waits for a CPU, a timer, the network or
    /// a task outside, and without unknown time.
    pub span: u64,
    /// The CPU time in ns that the end of the process depended on.
    pub work: u64,
    pub cpus: u64,
    /// The time if no task had waited for a job slot and all other waits had their recorded lengths; `None` if no
    /// task waited for a slot. It is not a limit; see [`Free::same_waits`].
    pub more_slots: Option<u64>,
    /// The limits without the work of each requested group, in the order of the request.
    pub free: Vec<Free>,
}

impl Limits {
    /// The least time in ns in which the recorded work can be done on this many CPUs without other load.
    pub fn on(&self, cpus: u64) -> u64 {
        self.span.max(self.work.div_ceil(cpus.max(1)))
    }
}

/// The time that a scenario leaves out.
#[derive(Clone, Debug)]
pub struct Without {
    /// Whether time of the thread itself is left out. The arguments are its kind and, for a wait, the reason.
    pub own: fn(Kind, Reason) -> bool,
    /// Whether a wait that another thread ended is left out. The arguments are what the thread waited for,
    /// and the system call's class.
    pub waits: fn(WaitReason, Reason) -> bool,
    /// Whether the time of each group is left out, by the number of the group; `None` for all groups.
    pub of: Option<Box<[bool]>>,
}

impl Without {
    /// Leaves out the CPU time of some groups.
    pub fn work(of: Box<[bool]>) -> Without {
        Without::own(|kind, _| kind == Kind::OnCpu, Some(of))
    }

    /// Leaves out those kinds of the threads' own time for which `own` is true. `of` has the groups, as
    /// [`Without::of`].
    pub fn own(own: fn(Kind, Reason) -> bool, of: Option<Box<[bool]>>) -> Without {
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

    pub(crate) fn leaves_out(&self, (kind, reason): (Kind, Reason), group: Option<Group>) -> bool {
        (self.own)(kind, reason) && self.counts(group)
    }
}

/// The limits for the process of the critical path. `free` has the groups whose work costs nothing, one at a
/// time. The computation takes 16 bytes for each wait, and 80 bytes for each thread and group.
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
    // The clocks of the path's end.
    let ends = replay
        .scenarios
        .iter()
        .map(|scenario| scenario.clocks[last]);
    let free = ends.zip(free).map(|(clock, group)| {
        // The least time that the CPUs need for the rest of the work.
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

/// A moment at which the clock of a thread depends on the clock of another one: a waking or a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    time: Ktime,
    /// The thread that was woken or forked.
    thread: ThreadIx,
    /// The thread that woke or forked the other thread.
    by: ThreadIx,
}

/// All links that can influence the path, in the order of time.
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
            if let Cause::Thread(by) = graph.cause(thread, &stretch) {
                let time = stretch.to;
                links.push(Link { time, thread, by });
            }
        }
    }
    links.par_sort_unstable();
    links
}

/// The CPU time that the end of the path depended on: the sum, and the time of each group. The last moment at
/// which a thread mattered is found backwards. If there are several wake-ups at one moment, some may be
/// missed, which makes the time smaller, never larger.
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
