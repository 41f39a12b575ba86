//! Which single execution of a program runs on the critical path while no other task of the build can run? Advises how
//! to start such a program earlier, or to divide its work.

use std::collections::BTreeMap;

use tr_analyze::model::ThreadIx;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_format::event::Ktime;
use tr_programs::tools::Role;
use tr_text::phrase::Phrase;
use tr_text::units;

use crate::candidate::{largest, AdviceKind, AffectedWork, Candidate};
use crate::facts::{on_cpu, BuildFacts, Execution};
use crate::work::last::{starts_last, starts_last_of_pool, LateStart};

/// The divisor of the critical path's time without waits for a CPU: a single task gets advice if it runs alone for a
/// tenth of this time or more. In every build, some tasks run alone for a shorter time, for example while a program
/// starts. Measured by `validate.py`: with an eighth, the serial link of the demo (1.4 s of 12 s) got no advice; with a
/// tenth, 40 of 41 lines of advice were right.
const ALONE_PART: u64 = 10;
/// The shortest time in nanoseconds for which a task must run alone to get advice. A guess: a shorter time is the start
/// of a program or the end of a build, which nobody changes.
const SHORTEST_ALONE: u64 = 300_000_000;

/// The fraction of a program's CPU time on the critical path from which on one thread does the program's work: three
/// quarters. A guess: beside the thread that works, a runtime's compiler and its garbage collector need up to a
/// quarter.
const BUSIEST_PART: (u64, u64) = (3, 4);
/// The divisor of a program's CPU time on the critical path: a thread works if it has a tenth of this time or more. A
/// guess, for the same reason.
const WORKER: u64 = 10;

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let all = largest(facts.all(), |(_, execution)| execution.on_cpu);
    let all = all.into_iter();
    all.filter_map(|(group, execution)| candidate(facts, group, execution))
        .collect()
}

/// The change that is advised for a program that runs alone.
struct Remedy {
    kind: AdviceKind,
    finding: Phrase,
    action: &'static str,
    /// The most time in nanoseconds that the remedy saves.
    cap: u64,
    work: AffectedWork,
}

/// Advice on one execution of a program, if it runs alone for long enough.
fn candidate(facts: &BuildFacts<'_>, group: Group, execution: &Execution) -> Option<Candidate> {
    let alone = facts.alone(group);
    if alone < SHORTEST_ALONE
        || alone.saturating_mul(ALONE_PART) < facts.worked
        || is_runner(facts, group) && !beside_workers(facts, group, execution)
        || has_peers(facts, group)
        || facts.measures_by_clock(group)
    {
        return None;
    }
    let set = facts.set([group]);
    let most = facts.on_path(&set, on_cpu).min(alone);
    let remedy = if let Some(late) = late_start(facts, group, execution) {
        start_first(facts, group, &late, most)
    } else if is_runner(facts, group) {
        start_longest_test_first(facts, group, alone, most)
    } else {
        divide(facts, group, execution, alone, most)
    };
    Some(Candidate {
        finding: remedy.finding,
        action: remedy.action.into(),
        without: Without::work(set),
        cap: remedy.cap,
        work: remedy.work,
        evidence: vec![group],
        ..Candidate::of(remedy.kind)
    })
}

fn is_runner(facts: &BuildFacts<'_>, group: Group) -> bool {
    facts.role(group) == Some(Role::Tests)
}

/// The late start of an execution, if this execution is the longest of all compilations by one compiler, or the longest
/// of several jobs that a program runs at once. A build tool that has a free CPU starts a compilation as soon as its
/// inputs are there, so a compilation that did not start then needed a result of the work before it.
fn late_start(facts: &BuildFacts<'_>, group: Group, execution: &Execution) -> Option<LateStart> {
    match facts.role(group) {
        Some(Role::Compiler) => {
            let late = starts_last(facts, group, |other| other.program == execution.program);
            late.filter(|late| {
                let first = Ktime(execution.start.0.saturating_sub(late.after));
                facts
                    .demands_all_cpus(first, execution.start)
                    .saturating_mul(2)
                    > late.after
            })
        }
        Some(Role::Tests) => None,
        _ => starts_last_of_pool(facts, group, execution),
    }
}

/// The remedy for a job that starts late. `most` is the time in nanoseconds for which the job runs alone on the
/// critical path.
fn start_first(facts: &BuildFacts<'_>, group: Group, late: &LateStart, most: u64) -> Remedy {
    Remedy {
        kind: AdviceKind::Last,
        finding: Phrase::with([&facts.name(group)], |[name]| {
            format!(
                "{name}, the longest, starts {} late",
                units::time(late.after)
            )
        }),
        action: "start it first, or split it",
        cap: late.gain.min(most),
        work: AffectedWork::Remains,
    }
}

/// The remedy for a worker of a test runner that still tests when the other workers have ended. `alone` is the time for
/// which the worker runs alone, and `most` is the part of this time on the critical path. Both times are in
/// nanoseconds.
fn start_longest_test_first(facts: &BuildFacts<'_>, group: Group, alone: u64, most: u64) -> Remedy {
    Remedy {
        kind: AdviceKind::Last,
        finding: Phrase::with([&facts.name(group)], |[name]| {
            format!("{name} tests alone for {}", units::time(alone))
        }),
        action: "start its longest test first, or split it",
        cap: most - most / facts.cpus,
        work: AffectedWork::Remains,
    }
}

/// The remedy for a program of which it is not known how it could run beside others. `alone` is the time for which it
/// runs alone, and `most` the part of this time on the critical path, both in nanoseconds.
fn divide(
    facts: &BuildFacts<'_>,
    group: Group,
    execution: &Execution,
    alone: u64,
    most: u64,
) -> Remedy {
    // The parts of the work need as much CPU time together as the undivided work, so on `cpus` CPUs one part in `cpus`
    // of the time remains.
    let divided = most - most / facts.cpus;
    let threads = threads_in_turn(facts, group);
    let (action, cap, work) = match facts.role(group) {
        Some(Role::Compiler) => (
            "split it, or start it earlier, if it needs no result of the work before",
            most,
            AffectedWork::Remains,
        ),
        Some(Role::Shell) => ("do less in the shell", most, AffectedWork::LeftOut),
        None if threads > 1 => (
            "let them run at once, if neither a lock nor their order has to prevent it",
            divided,
            AffectedWork::Remains,
        ),
        // If a program does nearly the whole work of the build, the work can only be divided and not be left out.
        // Programs with a known role, such as build tools, are not treated in this way.
        None if is_whole(facts, execution) => (
            "divide its work among the CPUs, if its parts are independent",
            divided,
            AffectedWork::Remains,
        ),
        _ => (
            "split it, if its parts are independent",
            divided,
            AffectedWork::LeftOut,
        ),
    };
    Remedy {
        kind: AdviceKind::Alone,
        finding: Phrase::with([&facts.name(group)], |[name]| {
            let of_threads = match threads {
                0 | 1 => String::new(),
                threads => format!(", one of {threads} threads at a time"),
            };
            format!("{name} runs alone for {}{of_threads}", units::time(alone))
        }),
        action,
        cap,
        work,
    }
}

/// The number of threads that do the work of an execution on the critical path, if no thread does most of it; otherwise
/// 1 or 0. The threads of an execution that runs alone work one after the other: each waits until another thread
/// releases a lock or hands work over.
fn threads_in_turn(facts: &BuildFacts<'_>, group: Group) -> usize {
    let mut by_thread: BTreeMap<ThreadIx, u64> = BTreeMap::new();
    for (segment, of, reason) in facts.segments() {
        if of == Some(group) && on_cpu(segment.kind, reason) {
            let sum = by_thread.entry(segment.thread).or_default();
            *sum = sum.saturating_add(segment.length());
        }
    }
    let all = by_thread
        .values()
        .fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    let most = by_thread.values().copied().max().unwrap_or(0);
    if most.saturating_mul(BUSIEST_PART.1) >= all.saturating_mul(BUSIEST_PART.0) {
        return by_thread.len().min(1);
    }
    let works = |ns: &&u64| ns.saturating_mul(WORKER) >= all;
    by_thread.values().filter(works).count()
}

/// Whether an execution belongs to the process of the recorded command, or has at least nineteen twentieths of the CPU
/// time of the recorded command and all its descendants.
fn is_whole(facts: &BuildFacts<'_>, execution: &Execution) -> bool {
    let all = facts.analysis.process(facts.path.process).tree.times.on_cpu;
    let rest = all.saturating_sub(execution.on_cpu);
    execution.process == facts.path.process || rest.saturating_mul(20) <= all
}

/// Whether an execution of a program is one of several workers that a test runner has at the same time.
fn beside_workers(facts: &BuildFacts<'_>, group: Group, execution: &Execution) -> bool {
    facts.all().any(|(other, worker)| {
        other != group
            && (&worker.program, worker.owner) == (&execution.program, execution.owner)
            && worker.start < execution.end
            && execution.start < worker.end
    })
}

/// Whether at least two other executions of the same file each used at least two thirds as much CPU time. Jobs of about
/// equal size are no problem by themselves; only the number of jobs at once can be wrong.
fn has_peers(facts: &BuildFacts<'_>, group: Group) -> bool {
    let own = facts
        .execution(group)
        .map_or(0, |execution| execution.on_cpu);
    let file = facts.file(group);
    let peers = facts.all().filter(|(other, execution)| {
        *other != group
            && execution.on_cpu.saturating_mul(3) >= own.saturating_mul(2)
            && facts.file(*other) == file
    });
    !file.is_empty() && peers.count() >= 2
}
