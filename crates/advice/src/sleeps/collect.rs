//! Collects the sleeps on the critical path of a build by the process that decided on them.

use std::collections::BTreeMap;

use tr_analyze::critical_path::{Segment, TimeKind};
use tr_analyze::killed;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::{sleeper, Group};
use tr_analyze::status::{is_for, Purpose};
use tr_analyze::timeline::{Actor, Bucket};
use tr_format::event::{Ktime, Reason};
use tr_programs::tools::Role;

use crate::facts::BuildFacts;
use crate::sleeps::awaited::{is_beside_running, is_beside_work};
use crate::sleeps::nap::{Nap, BESIDE_LIMITS};
use tr_insight::processes::exit;

/// The longest time in nanoseconds from the last segment of a process on the critical path to the end of the process,
/// or between this end and the moment when its parent is woken. A guess: the kernel ends a small process within two
/// milliseconds.
const LONGEST_EXIT: u64 = 2_000_000;

/// The sleeps on the critical path that may get advice.
pub(super) struct PathSleeps {
    /// The sleeps by the process that decided on them, in the order of time.
    pub by_process: BTreeMap<ProcessIx, Vec<Nap>>,
    /// Whether the path has sleeps that get no advice, because something needs them: they pass beside work, until a
    /// kill, or in a measurement.
    pub has_needed: bool,
}

/// Collects the sleeps on the critical path. Sleeps of build tools are left out.
pub(super) fn collect(facts: &BuildFacts<'_>) -> PathSleeps {
    let mut by_process: BTreeMap<ProcessIx, Vec<Nap>> = BTreeMap::new();
    let mut has_needed = false;
    let failed = exit::command_failed(facts.analysis);
    let until_kill_from = idle_until_kill(facts);
    let mut segments = facts.segments().peekable();
    while let Some((segment, group, reason)) = segments.next() {
        let (TimeKind::Sleep, Some(group)) = (segment.kind, group) else {
            continue;
        };
        let queued = segments
            .peek()
            .map(|(next, ..)| next)
            .filter(|next| next.kind == TimeKind::RunQueue && next.thread == segment.thread);
        let process = facts.analysis.thread(segment.thread).process;
        let (process, at) = sleeper(facts.analysis, process, segment.from);
        // If a program fails right after a sleep, the program gave up, so the sleep was really a wait for something
        // else. This is not so if the program slept before: then the sleep is one of several pauses between tries. If
        // the build did not fail, the wait cost time all the same, so the wait counts as a sleep, too.
        let is_pause = by_process.contains_key(&process) || !failed;
        let gave_up = || killed::gave_up(facts.analysis, segment.thread, segment.from);
        // A thread in a call without a time-out waits for something else than a timer. An alarm signal then only ends
        // that wait, so the wait is no sleep.
        if killed::has_no_timeout(reason) || !is_pause && gave_up() {
            continue;
        }
        let by = facts.groups.at(process, at).unwrap_or(group);
        let slept = Nap {
            thread: segment.thread,
            group,
            by,
            from: segment.from,
            to: segment.to,
            ran: queued.map_or(segment.to, |queued| queued.to),
        };
        let is_idle = until_kill_from
            .get(&process)
            .is_some_and(|from| slept.from >= *from);
        let beside = is_beside_work(facts, slept.thread, slept.from, slept.to);
        if is_idle || beside || facts.measures_by_clock(by) {
            has_needed = true;
        } else if !is_tools(facts, &slept) {
            by_process.entry(process).or_default().push(slept);
        }
    }
    PathSleeps {
        by_process,
        has_needed,
    }
}

/// The processes that another process ended by a signal. Each has the time from which the critical path stays in this
/// process until the process's end, if the process wakes no other process from that time on. In this time, an idle
/// server only looks at its timers. The sender of the signal, and not these sleeps, decided when the server ended.
fn idle_until_kill(facts: &BuildFacts<'_>) -> BTreeMap<ProcessIx, Ktime> {
    let process = |segment: &Segment| facts.analysis.thread(segment.thread).process;
    let stays = facts
        .path
        .segments
        .chunk_by(|one, next| process(one) == process(next));
    let stays = stays.filter_map(|stay| Some((stay.first()?, stay.last()?)));
    let until_end = stays.filter_map(|(first, last)| {
        let ix = process(first);
        let process = facts.analysis.process(ix);
        let signal = exit::killed_by(process.status);
        let is_killed = signal.is_some_and(|signal| is_for(signal, Purpose::Outside));
        let is_end = Ktime(last.to.0.saturating_add(LONGEST_EXIT)) >= process.end;
        (is_killed && is_end).then_some((ix, first.from))
    });
    let until_end = until_end.take(BESIDE_LIMITS.0);
    let until_end = until_end.filter(|(ix, from)| {
        let end = facts.analysis.process(*ix).end;
        !wakes_others(facts, *ix, *from, end)
    });
    until_end.collect()
}

/// Whether a process ends a wait of another process between `from` and its own end at `end`. The wait for its end does
/// not count.
fn wakes_others(facts: &BuildFacts<'_>, ix: ProcessIx, from: Ktime, end: Ktime) -> bool {
    let analysis = facts.analysis;
    let Some(timeline) = &analysis.timeline else {
        return false;
    };
    let is_beside = |other: &ProcessIx| {
        let process = analysis.process(*other);
        *other != ix && process.start < end && process.end > from
    };
    let others = analysis
        .process_ids()
        .filter(is_beside)
        .take(BESIDE_LIMITS.0);
    let mut threads = others.flat_map(|other| &analysis.process(other).threads);
    threads.any(|thread| {
        let waits = timeline.since(*thread, from).take(BESIDE_LIMITS.1);
        let mut waits = waits.take_while(|wait| wait.to.0.saturating_add(LONGEST_EXIT) < end.0);
        waits.any(|wait| match wait.waker() {
            Actor::Thread(by) => {
                matches!(wait.doing, Bucket::Wait(_)) && analysis.thread(by).process == ix
            }
            _ => false,
        })
    })
}

/// For each segment of the critical path, whether it is a sleep of a known tool itself ([`is_tools`]), for example of a
/// build tool between its checks for ended jobs.
pub(crate) fn of_tools(facts: &BuildFacts<'_>) -> Vec<bool> {
    let is_of_tool = |(segment, group, _): (&Segment, Option<Group>, Reason)| {
        let process = facts.analysis.thread(segment.thread).process;
        let (process, at) = sleeper(facts.analysis, process, segment.from);
        let by = facts.groups.at(process, at).or(group);
        segment.kind == TimeKind::Sleep
            && by.zip(group).is_some_and(|(by, group)| {
                is_tools(
                    facts,
                    &Nap {
                        thread: segment.thread,
                        group,
                        by,
                        from: segment.from,
                        to: segment.to,
                        ran: segment.to,
                    },
                )
            })
    };
    facts.segments().map(is_of_tool).collect()
}

/// For each segment of the critical path, whether it is a sleep of a thread beside work of other threads of its process
/// ([`is_beside_running`]).
pub(crate) fn beside_work(facts: &BuildFacts<'_>) -> Vec<bool> {
    let segments = facts.path.segments.iter();
    let is_beside = segments.map(|segment| {
        segment.kind == TimeKind::Sleep
            && is_beside_running(facts, segment.thread, segment.from, segment.to)
    });
    is_beside.collect()
}

/// For each segment of the critical path that is one of several sleeps of a process, the process that decided on them.
/// Such sleeps may be a loop that checks for the end of other work of the build. If that work got more CPU time, the
/// process would sleep less often.
pub(crate) fn in_loops(facts: &BuildFacts<'_>) -> Vec<Option<ProcessIx>> {
    let sleeper = |segment: &Segment| {
        let process = facts.analysis.thread(segment.thread).process;
        let (process, _) = sleeper(facts.analysis, process, segment.from);
        (segment.kind == TimeKind::Sleep).then_some(process)
    };
    let sleepers: Vec<Option<ProcessIx>> = facts.path.segments.iter().map(sleeper).collect();
    let mut counts: BTreeMap<ProcessIx, usize> = BTreeMap::new();
    for process in sleepers.iter().flatten() {
        *counts.entry(*process).or_default() += 1;
    }
    let is_loop = |process: &ProcessIx| counts.get(process).is_some_and(|count| *count > 1);
    sleepers
        .into_iter()
        .map(|process| process.filter(is_loop))
        .collect()
}

/// Whether a known tool itself slept, such as a build tool, a compiler or `docker`, which nobody can change. Shells,
/// tests and package managers are no such tools. A sleep(1) that make or xargs starts does not count, because it
/// belongs to whoever wrote the recipe.
fn is_tools(facts: &BuildFacts<'_>, slept: &Nap) -> bool {
    let role = facts.role(slept.by);
    let has_role = !matches!(
        role,
        None | Some(Role::Shell | Role::Tests | Role::Packages)
    );
    slept.group == slept.by && (has_role || facts.runs_containers(slept.by))
}
