//! Gives advice on programs that other programs end: by SIGKILL some time after a first signal, by a time-out of their
//! parent, or by `timeout`.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::TimeKind;
use tr_analyze::ending::WaitEnd;
use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::programs::Group;
use tr_analyze::stopped;
use tr_analyze::timeline::{Actor, Bucket, Stretch};
use tr_analyze::what_if::Without;
use tr_format::event::{Ktime, Reason};

use crate::candidate::{largest, AdviceKind, Candidate, Certainty};
use crate::facts::{BuildFacts, Execution};
use crate::sleeps::nap::LOOP_SLEEPS;
use tr_insight::processes::timeout::{ran, timed_out};
use tr_insight::processes::{exit, label};
use tr_programs::program_name::ProgramName;
use tr_text::phrase::Phrase;
use tr_text::units;

/// The change that is advised if a program waits for a child until a time-out and then kills it. Tests of time-outs do
/// so on purpose.
pub(crate) const AFTER_TIME_OUT: &str =
    "find out why it does not end, or use a shorter time-out, unless the time is meant";

/// A bound of the work: at most `THREADS` threads of a process are searched, and at most `MOST_ENTRIES` entries in the
/// timeline of each thread.
const THREADS: usize = 200;
const MOST_ENTRIES: usize = 10_000;
/// The largest number of killed processes that are examined. A bound of the work.
const KILLS: usize = 1000;

/// Whether a part of the critical path is neither work nor a wait for a CPU.
fn is_wait(kind: TimeKind, _: Reason) -> bool {
    !matches!(kind, TimeKind::OnCpu | TimeKind::RunQueue)
}

/// The number of SIGKILL by signal(7), which no process can handle.
const SIGKILL: u32 = 9;

/// The longest time in nanoseconds between the end of a parent's time-out and the end of the child that the parent
/// kills because of this time-out. A guess: in this time the parent has to get a CPU, and the child has to exit.
const LATEST_KILL: u64 = 100_000_000;

/// Processes that were killed some time after a first signal.
pub(super) struct Graces {
    /// The processes that sent the signals, and that waited between the first signal and the kill.
    pub waiting: BTreeSet<ProcessIx>,
    pub candidates: Vec<Candidate>,
}

/// A process that another one killed some time after a first signal.
struct Grace {
    by: ProcessIx,
    /// The execution of the process that waited, at the time of the kill.
    owner: Group,
    killed: ProcessIx,
    /// The time in nanoseconds from the first signal to the end of the killed process.
    length: u64,
    /// The part of `length` in nanoseconds in which the critical path waited in the killed process, in its killer, or
    /// in a sleep(1) of its killer. This is the most that the advice can save.
    cap: u64,
    groups: Vec<Group>,
}

/// Advice on processes that send a signal to another process, wait in vain for that process to end, and finally kill
/// that process. The first signal counts as proven if the waiting process woke the other process, and then slept again
/// and again until the kill.
pub(super) fn killed_after_grace(facts: &BuildFacts<'_>) -> Graces {
    let all = facts.all().map(|(_, execution)| execution.process);
    let all: BTreeSet<ProcessIx> = all.collect();
    let killed = all.into_iter().filter(|ix| {
        let status = facts.analysis.process(*ix).status;
        exit::killed_by(status) == Some(SIGKILL)
    });
    let mut waiting = BTreeSet::new();
    let mut by_program: BTreeMap<&ProgramName, Vec<Grace>> = BTreeMap::new();
    for grace in killed.take(KILLS).filter_map(|ix| grace(facts, ix)) {
        waiting.insert(grace.by);
        let end = facts.analysis.process(grace.killed).end;
        let killed = facts
            .groups
            .at(grace.killed, Ktime(end.0.saturating_sub(1)));
        let killed = killed.and_then(|group| facts.execution(group));
        if let Some(killed) = killed {
            by_program.entry(&killed.program).or_default().push(grace);
        }
    }
    let candidates = by_program.into_iter();
    Graces {
        waiting,
        candidates: candidates
            .filter_map(|(_, graces)| of_graces(facts, graces))
            .collect(),
    }
}

fn of_graces(facts: &BuildFacts<'_>, graces: Vec<Grace>) -> Option<Candidate> {
    let first = graces.first()?;
    let sum = |of: fn(&Grace) -> u64| graces.iter().map(of).fold(0, u64::saturating_add);
    let time = units::time(sum(|grace| grace.length));
    let cap = sum(|grace| grace.cap);
    let (owner, s) = facts.names(first.owner, graces.iter().map(|grace| grace.owner));
    let killed = label::phrase(facts.analysis.process(first.killed));
    let finding = Phrase::with([&owner, &killed], |[owner, killed]| {
        format!("{owner} wait{s} {time} for the end of {killed}, and kill{s} it")
    });
    let groups: BTreeSet<Group> = graces.into_iter().flat_map(|grace| grace.groups).collect();
    Some(Candidate {
        finding,
        action: "find out why the first signal does not end it".into(),
        without: Without::own(is_wait, Some(facts.set(groups.iter().copied()))),
        cap,
        certainty: Certainty::Unsure,
        evidence: groups.into_iter().collect(),
        ..Candidate::of(AdviceKind::Sleep)
    })
}

/// The grace of a process that SIGKILL ended, if the process that killed it had sent it a signal before.
fn grace(facts: &BuildFacts<'_>, ix: ProcessIx) -> Option<Grace> {
    let analysis = facts.analysis;
    let killed = analysis.process(ix);
    let sender = stopped::sender(analysis, ix).filter(|sender| sender.is_proven)?;
    let by = analysis.process(sender.process);
    if timed_out(by) {
        return None;
    }
    let sleeps = by.children.iter().copied();
    let sleeps = sleeps.filter(|child| label::program(analysis.process(*child)).is("sleep"));
    let sleeps: BTreeSet<ProcessIx> = sleeps.collect();
    let of_children = sleeps.iter().map(|child| {
        let sleep = analysis.process(*child);
        (sleep.start, sleep.end)
    });
    let naps = of_children.chain(own_naps(facts, by));
    let mut naps: Vec<(Ktime, Ktime)> = naps.filter(|(_, to)| *to <= killed.end).collect();
    naps.sort_unstable();
    // For each nap, the time of this nap and all later ones.
    let mut rest: Vec<u64> = naps.iter().map(|(from, to)| to.since(*from)).collect();
    let mut sum = 0u64;
    for nap in rest.iter_mut().rev() {
        sum = sum.saturating_add(*nap);
        *nap = sum;
    }
    // A shell that starts sleep(1) wakes another process by nothing but a signal.
    let by_shell = !sleeps.is_empty();
    let from = signals(facts, killed, sender.process, by_shell).find(|signal| {
        let first = naps.partition_point(|(from, _)| from < signal);
        let slept = rest.get(first).copied().unwrap_or(0);
        naps.len() >= first + LOOP_SLEEPS && slept.saturating_mul(2) > killed.end.since(*signal)
    })?;
    let own = [ix, sender.process].into_iter().chain(sleeps);
    let own: BTreeSet<ProcessIx> = own.collect();
    let segments = facts.path.segments.iter().filter(|segment| {
        let is_own = own.contains(&analysis.thread(segment.thread).process);
        is_wait(segment.kind, Reason::Unknown)
            && is_own
            && segment.to > from
            && segment.from < killed.end
    });
    let lengths = segments.map(|segment| segment.to.min(killed.end).since(segment.from.max(from)));
    Some(Grace {
        by: sender.process,
        owner: facts.groups.at(sender.process, killed.end)?,
        killed: ix,
        length: killed.end.since(from),
        cap: lengths.fold(0, u64::saturating_add),
        groups: facts.groups_of(&own),
    })
}

/// The times in which the first thread of a process slept until a timer expired.
fn own_naps<'f>(
    facts: &'f BuildFacts<'_>,
    process: &Process,
) -> impl Iterator<Item = (Ktime, Ktime)> + 'f {
    let thread = process.threads.first().copied();
    let timeline = facts.analysis.timeline.as_ref();
    let parts = thread.zip(timeline).into_iter();
    let parts = parts.flat_map(move |(thread, timeline)| {
        let parts = timeline.of(thread).take(MOST_ENTRIES);
        parts.filter(move |part| {
            matches!(part.doing, Bucket::Wait(_))
                && facts.analysis.wait_end(thread, part).is_timer()
        })
    });
    parts.map(|part| (part.from, part.to))
}

/// The times at which one process ended waits of another one by a signal. The waits are in the order of the threads of
/// `to`, and of their beginnings. `is_surely` says that `by` can end waits only by signals. Otherwise only waits count
/// that nothing but a signal can end, and waits for a child that another task than a child ended.
fn signals<'f>(
    facts: &'f BuildFacts<'_>,
    to: &'f Process,
    by: ProcessIx,
    is_surely: bool,
) -> impl Iterator<Item = Ktime> + 'f {
    let analysis = facts.analysis;
    let threads = to.threads.iter().take(THREADS);
    let parts = threads.flat_map(move |thread| {
        let timeline = analysis.timeline.iter();
        let parts = timeline.flat_map(|timeline| timeline.of(*thread).take(MOST_ENTRIES));
        let parts = parts.take_while(|part| part.to < to.end);
        parts.filter(move |part| {
            let is_by = match part.waker() {
                Actor::Thread(waker) => analysis.thread(waker).process == by,
                _ => false,
            };
            let is_signal = || match analysis.wait_end(*thread, part) {
                WaitEnd::Signal(_) => true,
                WaitEnd::Task(_) => part.reason == Reason::Child,
                _ => false,
            };
            matches!(part.doing, Bucket::Wait(_)) && is_by && (is_surely || is_signal())
        })
    });
    parts.map(|part| part.to)
}

/// Advice on a process that waits for a child with a time-out, and kills the child when the time-out ends the wait. The
/// critical path goes through the child, because nothing ended the child's own wait before the kill.
pub(super) fn given_up_at_once(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut waited: BTreeMap<ProcessIx, (Vec<Group>, u64)> = BTreeMap::new();
    for (segment, group, reason) in facts.segments() {
        if let Some(group) = group.filter(|_| is_wait(segment.kind, reason)) {
            let process = facts.analysis.thread(segment.thread).process;
            let (groups, ns) = waited.entry(process).or_default();
            groups.push(group);
            *ns = ns.saturating_add(segment.length());
        }
    }
    let candidate = |(child, (mut groups, ns)): (ProcessIx, (Vec<Group>, u64))| {
        let process = facts.analysis.process(child);
        exit::killed_by(process.status)?;
        let parent = facts.analysis.process(process.parent?);
        if exit::failed(parent.status) || timed_out(parent) {
            return None;
        }
        let timeout = timed_wait(facts, parent, process.end)?;
        let by = facts.groups.at(process.parent?, timeout.from)?;
        groups.push(by);
        let (name, time) = (facts.name(by), units::time(timeout.length()));
        Some(Candidate {
            finding: Phrase::with([&name, &label::phrase(process)], |[name, child]| {
                format!("{name} waits {time} for {child}, until its time-out, and kills it")
            }),
            action: AFTER_TIME_OUT.into(),
            without: Without::own(is_wait, Some(facts.set(groups.iter().copied()))),
            cap: ns.min(timeout.length()),
            certainty: Certainty::UnlessMeant,
            evidence: groups,
            ..Candidate::of(AdviceKind::Sleep)
        })
    };
    let all = largest(waited, |(_, (_, ns))| *ns);
    all.into_iter().filter_map(candidate).collect()
}

/// Advice on programs that `timeout` ended in a build that succeeded. The build succeeded without the rest of their
/// work, so a shorter limit may be enough.
pub(super) fn ended_by_limit(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let analysis = facts.analysis;
    let ended = facts.all().filter(|(_, execution)| {
        let process = analysis.process(execution.process);
        timed_out(process) && execution.program.is("timeout")
    });
    let candidate = |(group, execution): (Group, &Execution)| {
        let below = facts.below(&[group]);
        let cap = facts.on_path(&below, is_wait);
        let process = analysis.process(execution.process);
        let child = process.children.first()?;
        Some(Candidate {
            finding: Phrase::with([&label::phrase(analysis.process(*child))], |[child]| {
                format!("timeout ends {child} after {}", units::time(ran(process)))
            }),
            action:
                "find out why it does not end, or use a shorter limit, unless the time is meant"
                    .into(),
            without: Without::own(is_wait, Some(below)),
            cap,
            certainty: Certainty::UnlessMeant,
            evidence: vec![group],
            ..Candidate::of(AdviceKind::Sleep)
        })
    };
    if exit::command_failed(facts.analysis) {
        return Vec::new();
    }
    let length = |execution: &Execution| ran(analysis.process(execution.process));
    let all = largest(ended, |(_, execution)| length(execution));
    all.into_iter().filter_map(candidate).collect()
}

/// The longest of those waits of a process that ended by their own time-outs, at the time `end` or shortly before
/// ([`LATEST_KILL`]). Sleeps do not count.
fn timed_wait(facts: &BuildFacts<'_>, process: &Process, end: Ktime) -> Option<Stretch> {
    let timeline = facts.analysis.timeline.as_ref()?;
    let from = Ktime(end.0.saturating_sub(LATEST_KILL));
    let threads = process.threads.iter().take(THREADS);
    let waits = threads.flat_map(|thread| {
        let since = timeline.since(*thread, from).take(MOST_ENTRIES);
        since.take_while(|stretch| stretch.from < end)
    });
    let timed = waits.filter(|stretch| {
        let is_timed = matches!(stretch.waker(), Actor::Timeout { .. });
        let is_wait = matches!(stretch.doing, Bucket::Wait(_)) && stretch.reason != Reason::Timer;
        is_wait && is_timed && stretch.to >= from && stretch.to <= end
    });
    timed.max_by_key(Stretch::length)
}
