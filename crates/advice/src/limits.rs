//! Gives advice on programs that other programs end: by SIGKILL some time after a first signal, by a time-out of their
//! parent, or by `timeout`.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::programs::Group;
use tr_analyze::stopped;
use tr_analyze::timeline::{Actor, Bucket, Stretch};
use tr_analyze::what_if::Without;
use tr_format::event::{Ktime, Reason};

use super::candidate::{AdviceKind, Candidate, Certainty};
use super::facts::BuildFacts;
use super::nap::LOOP;
use tr_insight::timeout::{ran, timed_out};
use tr_insight::{exit, label};
use tr_text::phrase::Phrase;
use tr_text::units;

/// A bound of the work: at most `THREADS` threads of a process are searched, and at most `PARTS` entries in the
/// timeline of each thread.
const THREADS: usize = 200;
const PARTS: usize = 10_000;

/// Whether a part of the critical path is neither work nor a wait for a CPU.
fn is_wait(kind: TimeKind, _: Reason) -> bool {
    !matches!(kind, TimeKind::OnCpu | TimeKind::RunQueue)
}

/// The number of SIGKILL by signal(7), which no process can handle.
const SIGKILL: u32 = 9;

/// The longest time in nanoseconds between the end of a parent's time-out and the end of the child that the parent
/// kills because of this time-out. A guess: in this time the parent has to get a CPU, and the child has to exit.
const KILLED: u64 = 100_000_000;

/// Advice on a process that sends a signal to another process, waits in vain for that process to end, and finally kills
/// that process. Each proposed change is returned with the waiting process. The first signal counts as proven if the
/// waiting process woke the other process, and then slept again and again until the kill.
pub(super) fn killed_after_grace(facts: &BuildFacts<'_>) -> Vec<(ProcessIx, Candidate)> {
    let analysis = facts.analysis;
    let all = facts.all().map(|(_, execution)| execution.process);
    let all: BTreeSet<ProcessIx> = all.collect();
    let killed = all.into_iter().filter(|ix| {
        let status = analysis.process(*ix).status;
        exit::killed_by(status) == Some(SIGKILL)
    });
    let candidate = |ix: ProcessIx| {
        let timeline = analysis.timeline.as_ref()?;
        let killed = analysis.process(ix);
        let sender = stopped::sender(analysis, ix).filter(|sender| sender.is_proven)?;
        let by = analysis.process(sender.process);
        if timed_out(by) {
            return None;
        }
        let sleeps = by.children.iter().copied();
        let sleeps = sleeps.filter(|child| label::program(analysis.process(*child)).is("sleep"));
        let sleeps: BTreeSet<ProcessIx> = sleeps.collect();
        let first = sleeps.iter().map(|child| analysis.process(*child).start);
        let first = first.min()?;
        let is_signal = |part: &Stretch| {
            let Actor::Thread(waker) = part.waker() else {
                return false;
            };
            analysis.thread(waker).process == sender.process
        };
        let parts = killed.threads.iter().take(THREADS).flat_map(|thread| {
            let parts = timeline.since(*thread, by.start).take(PARTS);
            parts.take_while(|part| part.from < first)
        });
        let signals = parts.filter(is_signal).map(|part| part.to);
        let from = signals.filter(|at| *at >= by.start && *at <= first).min()?;
        if sleeps.len() < LOOP {
            return None;
        }
        let own = [ix, sender.process].into_iter().chain(sleeps);
        let own: BTreeSet<ProcessIx> = own.collect();
        let segments = facts.path.segments.iter().filter(|segment| {
            let is_own = own.contains(&analysis.thread(segment.thread).process);
            is_wait(segment.kind, Reason::Unknown)
                && is_own
                && segment.to > from
                && segment.from < killed.end
        });
        let lengths =
            segments.map(|segment| segment.to.min(killed.end).since(segment.from.max(from)));
        let cap = lengths.fold(0, u64::saturating_add);
        let owner = facts.groups.at(sender.process, killed.end)?;
        let groups = facts.groups_of(&own);
        let candidate = Candidate {
            finding: Phrase::with(
                [&facts.name(owner), &label::phrase(killed)],
                |[owner, killed_name]| {
                    let time = units::time(killed.end.since(from));
                    format!("{owner} waits {time} for the end of {killed_name}, and kills it")
                },
            ),
            action: "find out why the first signal does not end it".into(),
            without: Without::own(is_wait, Some(facts.set(groups.iter().copied()))),
            cap,
            certainty: Certainty::Unsure,
            evidence: groups,
            ..Candidate::of(AdviceKind::Sleep)
        };
        Some((sender.process, candidate))
    };
    killed.filter_map(candidate).collect()
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
            action: "use a shorter time-out, or find out why it does not end".into(),
            without: Without::own(is_wait, Some(facts.set(groups.iter().copied()))),
            cap: ns.min(timeout.length()),
            certainty: Certainty::Unsure,
            evidence: groups,
            ..Candidate::of(AdviceKind::Sleep)
        })
    };
    waited.into_iter().filter_map(candidate).collect()
}

/// Advice on programs that `timeout` ended in a build that succeeded. The build succeeded without the rest of their
/// work, so a shorter limit may be enough.
pub(super) fn ended_by_limit(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let analysis = facts.analysis;
    let ended = facts.all().filter(|(_, execution)| {
        let process = analysis.process(execution.process);
        timed_out(process) && execution.program.is("timeout")
    });
    let candidate = |(group, execution): (Group, &super::facts::Execution)| {
        let below = facts.below(&[group]);
        let cap = facts.on_path(&below, is_wait);
        let process = analysis.process(execution.process);
        let child = process.children.first()?;
        Some(Candidate {
            finding: Phrase::with([&label::phrase(analysis.process(*child))], |[child]| {
                format!("timeout ends {child} after {}", units::time(ran(process)))
            }),
            action: "find out why it does not end, or use a shorter limit".into(),
            without: Without::own(is_wait, Some(below)),
            cap,
            certainty: Certainty::Unsure,
            evidence: vec![group],
            ..Candidate::of(AdviceKind::Sleep)
        })
    };
    if exit::command_failed(facts.analysis) {
        return Vec::new();
    }
    ended.filter_map(candidate).collect()
}

/// The longest of those waits of a process that ended by their own time-outs, at the time `end` or shortly before.
fn timed_wait(facts: &BuildFacts<'_>, process: &Process, end: Ktime) -> Option<Stretch> {
    let timeline = facts.analysis.timeline.as_ref()?;
    let from = Ktime(end.0.saturating_sub(KILLED));
    let threads = process.threads.iter().take(THREADS);
    let waits = threads.flat_map(|thread| {
        let since = timeline.since(*thread, from).take(PARTS);
        since.take_while(|stretch| stretch.from < end)
    });
    let timed = waits.filter(|stretch| {
        let is_timed = matches!(stretch.waker(), Actor::Timeout { .. });
        let is_wait = matches!(stretch.doing, Bucket::Wait(_)) && stretch.reason != Reason::Timer;
        is_wait && is_timed && stretch.to >= from && stretch.to <= end
    });
    timed.max_by_key(Stretch::length)
}
