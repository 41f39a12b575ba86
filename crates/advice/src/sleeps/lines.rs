//! Groups the sleeps of a build into lines of advice.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::TimeKind;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;

use crate::candidate::{largest, AdviceKind, Candidate, Certainty};
use crate::facts::BuildFacts;
use crate::sleeps::awaited::{asked_work, starting};
use crate::sleeps::beside::with_sleeps_beside;
use crate::sleeps::classify::{Naps, Sleeper};
use crate::sleeps::nap::{is_equal, long_naps, sum, Nap, Superfluous, RUNTIME_SLEEP};
use crate::sleeps::pauses::{ends_by_signal, Pauses};
use crate::sleeps::polls;
use crate::sleeps::timers::Queue;
use tr_insight::processes::label;
use tr_text::phrase::Phrase;
use tr_text::units;

/// The least number of unequal sleeps that count as tries to get what another process has, such as a database's lock.
/// A guess: sqlite's busy handler sleeps seven times within the first 80 ms.
const LEAST_TRIES: usize = 8;

/// The sleeps of another process are reported in the same line of advice as those of the process that slept longest, if
/// the sum of the other process's sleeps is at least the sum of the longest sleeper's divided by this number. A guess:
/// with smaller sums, the line would name a process whose sleeps do not matter.
const SMALL_PART: u64 = 20;

/// Makes a line of advice for each subject, and one for the longest sleeps together with sleeps at the same time.
pub(super) fn lines(
    facts: &BuildFacts<'_>,
    by_sleeper: BTreeMap<(Sleeper<'_>, bool), Vec<Naps>>,
) -> Vec<Candidate> {
    let all = largest(by_sleeper.into_values(), |naps: &Vec<Naps>| {
        sum(naps.iter().flat_map(|naps| &naps.slept))
    });
    let queue = Queue::of(&facts.path.segments);
    let groups = |naps: &[Naps]| -> BTreeSet<Group> {
        let slept = naps.iter().flat_map(|naps| &naps.slept);
        slept.map(|nap| nap.group).collect()
    };
    let on_path: Vec<BTreeSet<Group>> = all.iter().map(|naps| groups(naps)).collect();
    let of_others = |own: usize, group: Group| {
        let mut others = on_path.iter().enumerate().filter(|(at, _)| *at != own);
        others.any(|(_, groups)| groups.contains(&group))
    };
    let mut candidates = Vec::new();
    for (own, naps) in all.into_iter().enumerate() {
        let Some(mut candidate) = of_naps(facts, &queue, &naps, |group| of_others(own, group))
        else {
            continue;
        };
        // Only the proposed change with the longest sleeps is combined with sleeps of other processes, for example of a
        // server.
        let with_others = (own == 0).then(|| with_sleeps_beside(facts, &naps, &mut candidate));
        let with_others = with_others.flatten();
        // A loop of short sleeps waits for another process that sleeps longer, so removing only the loop's sleeps saves
        // nothing.
        if with_others.as_ref().is_none_or(|change| change.extends) {
            candidates.push(candidate);
        }
        candidates.extend(with_others);
    }
    candidates
}

/// The advice on the sleeps of some processes, if these sleeps are long enough for a line. Either all of the sleeps are
/// in loops that sleep and check, or none of them is. `of_others` returns whether another line of advice already
/// reports the sleeps of an execution.
fn of_naps(
    facts: &BuildFacts<'_>,
    queue: &Queue<'_>,
    naps: &[Naps],
    of_others: impl Fn(Group) -> bool,
) -> Option<Candidate> {
    let longest = naps.iter().map(|naps| sum(&naps.slept)).max().unwrap_or(0);
    let counts = |naps: &&Naps| sum(&naps.slept).saturating_mul(SMALL_PART) >= longest;
    let naps: Vec<&Naps> = naps.iter().filter(counts).collect();
    let mut slept: Vec<Nap> = naps.iter().flat_map(|naps| &naps.slept).copied().collect();
    slept.sort_by_key(|nap| nap.from);
    let sum = sum(&slept);
    let longest = slept.iter().map(Nap::length).max()?;
    let sleepers: BTreeSet<Group> = slept.iter().map(|nap| nap.by).collect();
    // Sleeps as short as those of a language's runtime matter only if, together, they take a tenth of the build's time.
    // A server that a signal ends may have a runtime that sleeps until its threads have stopped, as the Java VM does.
    let is_ended = |group: &Group| {
        let execution = facts.execution(*group);
        execution.is_some_and(|execution| ends_by_signal(facts, execution.process))
    };
    let are_few = sum.saturating_mul(10) < facts.wall;
    if longest <= RUNTIME_SLEEP && (are_few || sleepers.iter().all(is_ended)) {
        return None;
    }
    let (name, s) = facts.names(*sleepers.first()?, sleepers.iter().copied());
    let intervals = || naps.iter().filter_map(|naps| Some(naps.checks?.0));
    let caps = naps.iter().filter_map(|naps| {
        let (interval, loops) = naps.checks?;
        Some(interval.saturating_mul(loops))
    });
    let mut certainty = Certainty::Sure;
    let mut longer = 0;
    let (kind, finding, action, cap) = match (intervals().min(), intervals().max()) {
        (Some(least), Some(most)) => (
            AdviceKind::Poll,
            {
                let interval = if is_equal(least, most) {
                    units::time(most)
                } else {
                    units::range(least, most)
                };
                // Sleeps that are much shorter than the longest one do not belong to the loop, so `count` leaves such
                // sleeps out.
                let count = naps.iter().map(|naps| naps.count).sum();
                let times = times(count, None);
                Phrase::with([&name], |[name]| {
                    format!("{name} check{s} every {interval}{times}")
                })
            },
            "check more often, or wait for the event",
            caps.fold(0, u64::saturating_add).min(sum),
        ),
        _ => {
            let tries = slept.len() >= LEAST_TRIES && sleepers.len() == 1;
            let awaited = tries.then(|| polls::awaited_work(facts, &slept, longest));
            let awaited = awaited.flatten().map(|ix| facts.analysis.process(ix));
            // An early wake-up may cut a sleep into several parts, so `count` leaves out the short parts.
            let count = naps.iter().map(|naps| naps.count).sum();
            let (time, times) = (units::time(sum), times(count, each(&slept)));
            let needed = asked_work(facts, &slept).saturating_add(starting(facts, &slept));
            let cap = sum.saturating_sub(needed);
            let cap = cap.saturating_add(queue.before(facts, &slept));
            match awaited.filter(|process| process.status == Some(0)) {
                Some(process) => (
                    AdviceKind::Sleep,
                    Phrase::with([&name, &label::phrase(process)], |[name, awaited]| {
                        format!("{name} sleep{s} {time}{times}, until {awaited} ends")
                    }),
                    "let it end earlier, or hold its lock or file for less time",
                    cap,
                ),
                None => {
                    let pauses = Pauses::of(facts, &slept);
                    certainty = Certainty::unless_meant_if(pauses.may_be_meant());
                    longer = queue.longer_on_free_cpus(facts, &slept, pauses == Pauses::Longer);
                    let finding =
                        Phrase::with([&name], |[name]| pauses.finding(name, s, &time, &times));
                    (AdviceKind::Sleep, finding, pauses.action(), cap)
                }
            }
        }
    };
    let of = sleeping(facts, &slept, of_others);
    Some(Candidate {
        finding,
        action: action.into(),
        without: Without::own(|kind, _| kind == TimeKind::Sleep, Some(of)),
        cap,
        superfluous: naps
            .iter()
            .map(|naps| naps.superfluous)
            .fold(Superfluous::default(), Superfluous::plus),
        longer,
        certainty,
        evidence: slept.iter().map(|nap| nap.group).collect(),
        ..Candidate::of(kind)
    })
}

/// The words for how often a program slept, which follow the sum of its sleeps. `each` is the length of each sleep in
/// nanoseconds, if the sleeps are equally long.
fn times(count: usize, each: Option<u64>) -> String {
    let times = units::count(count as u64);
    match (count, each) {
        (1, _) => String::new(),
        (_, Some(each)) => format!(", {times} × {}", units::time(each)),
        (_, None) => format!(", {times} times"),
    }
}

/// The median length in nanoseconds of the given sleeps without the short ones, if these are about equally long. It
/// helps to find the sleep in the program's code.
fn each(slept: &[Nap]) -> Option<u64> {
    let mut lengths: Vec<u64> = long_naps(slept).iter().map(Nap::length).collect();
    lengths.sort_unstable();
    let is_same = is_equal(*lengths.first()?, *lengths.last()?);
    lengths.get(lengths.len() / 2).copied().filter(|_| is_same)
}

/// For each execution of a program, whether the proposed change removes the sleeps of this execution. The change
/// removes the sleeps of each execution that slept on the critical path. The change also removes the sleeps of other
/// executions of the same program, if the program that decided on the sleeps is also the same as on the critical path.
/// Executions that `of_others` selects are left out, unless they slept on the path, because another line of advice
/// reports them.
fn sleeping(
    facts: &BuildFacts<'_>,
    slept: &[Nap],
    of_others: impl Fn(Group) -> bool,
) -> Box<[bool]> {
    let program = |group: Group| facts.execution(group).map(|execution| &execution.program);
    let on_path = || slept.iter().map(|nap| nap.group);
    let programs: BTreeSet<_> = on_path().map(program).collect();
    let by: BTreeSet<_> = slept.iter().map(|nap| program(nap.by)).collect();
    let all = facts.all().filter(|(group, execution)| {
        let owner = execution.owner.and_then(program);
        programs.contains(&program(*group))
            && (by.contains(&program(*group)) || by.contains(&owner))
            && !of_others(*group)
    });
    let all = all.map(|(group, _)| group);
    facts.set(all.chain(on_path()))
}
