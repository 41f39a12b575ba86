//! Finds sleeps that are not on the critical path of a build, and gives advice on them.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::{sleeper, Group};
use tr_analyze::timeline::{Bucket, Stretch, Wait};
use tr_analyze::what_if::Without;
use tr_format::event::Ktime;

use crate::candidate::{AdviceKind, Candidate, Certainty};
use crate::facts::BuildFacts;
use crate::sleeps::awaited::is_beside_work;
use crate::sleeps::classify::Naps;
use crate::sleeps::nap::{sum, Nap, BESIDE_LIMITS, LOOP_SLEEPS, RUNTIME_SLEEP};
use crate::sleeps::pauses::Pauses;
use tr_text::phrase::Phrase;
use tr_text::units;

/// Sleeps that are not on the critical path, of the program that the process with the largest sum of such sleeps runs.
/// Processes that run the same program sleep at the same time, so the sleeps of all of them are taken together.
pub(crate) struct SleepsBeside {
    /// The name of the process that slept longest, with the number of other processes that run the program, and the
    /// ending of the verb that follows (`s` or nothing).
    pub names: (Phrase, &'static str),
    /// The sum in nanoseconds of the sleeps of the process that slept longest, and the length of the longest of these
    /// sleeps.
    ns: u64,
    longest: u64,
    groups: BTreeSet<Group>,
}

pub(crate) fn sleeps_beside(facts: &BuildFacts<'_>) -> Option<SleepsBeside> {
    let mut found = FoundSleeps::default();
    let (from, to) = (facts.path.from, facts.path.to);
    let groups: Vec<Group> = facts
        .all()
        .take(BESIDE_LIMITS.0)
        .map(|(group, _)| group)
        .collect();
    for group in groups {
        let process = facts.execution(group).map(|execution| execution.process);
        // Servers, watchdogs and abandoned processes are ended by other processes, so the end of the build does not
        // wait for their sleeps.
        let ends_itself = |ix: ProcessIx| {
            let process = facts.analysis.process(ix);
            !process.alive && process.status == Some(0) && !facts.analysis.ends_after_signal(ix)
        };
        let is_tools = facts.role(group).is_some() || facts.runs_containers(group);
        if process.is_some_and(ends_itself) && !is_tools {
            found.add(facts, group, from, to);
        }
    }
    let all = || found.by_sleeper.values();
    let longest = all().max_by_key(|beside| (beside.ns, std::cmp::Reverse(beside.by)))?;
    let program = |beside: &Beside| facts.execution(beside.by).map(|own| &own.program);
    let same: Vec<&Beside> = all()
        .filter(|beside| program(beside) == program(longest))
        .collect();
    let groups = same.iter().flat_map(|beside| &beside.groups);
    Some(SleepsBeside {
        names: facts.names(longest.by, same.iter().map(|beside| beside.by)),
        ns: longest.ns,
        longest: longest.longest,
        groups: groups.copied().collect(),
    })
}

/// Advice on sleeps that are not on the critical path, for a build without advice on sleeps on the path. With other
/// tasks on the machine, the work on the path may take longer than these sleeps; on CPUs that the build has for itself
/// the work takes less time, and then the sleeps decide how long the build takes.
pub(super) fn off_path(facts: &BuildFacts<'_>) -> Option<Candidate> {
    let beside = sleeps_beside(facts)?;
    // A loop of sleeps may check for the end of work that takes less time on free CPUs. Such loops are not judged here,
    // so they get no advice.
    let is_loop = beside.longest.saturating_mul(LOOP_FACTOR) <= beside.ns;
    if beside.longest <= RUNTIME_SLEEP || is_loop {
        return None;
    }
    let (name, s) = &beside.names;
    let time = units::time(beside.ns);
    Some(Candidate {
        finding: Phrase::with([name], |[name]| Pauses::Plain.finding(name, s, &time, "")),
        action: Pauses::Plain.action().into(),
        without: Without::own(
            |kind, _| kind == TimeKind::Sleep,
            Some(facts.set(beside.groups.iter().copied())),
        ),
        cap: beside.ns,
        certainty: Certainty::unless_meant_if(Pauses::Plain.may_be_meant()),
        evidence: beside.groups.into_iter().collect(),
        ..Candidate::of(AdviceKind::Sleep)
    })
}

/// The sleeps of a process count as a loop if their sum is at least this many times as long as the longest of them. A
/// guess: fewer sleeps are steps of a script.
const LOOP_FACTOR: u64 = 10;

/// Sleeps of one process that are not on the build's critical path, and the executions that slept.
struct Beside {
    /// The execution of a program that decided on the first of the process's sleeps that was found.
    by: Group,
    /// The executions that slept: those of the process itself, and those of sleep(1) that it started.
    groups: BTreeSet<Group>,
    ns: u64,
    /// The length in nanoseconds of the longest of the process's sleeps.
    longest: u64,
}

/// How many times longer the sleeps of a process must be than the sleeps of a loop that waits for this process. A
/// guess: if the sleeps are about equally long, they do not show which process waits for the other.
const LONGER_FACTOR: u64 = 4;

/// Advice on the sleeps of one process together with the sleeps of another process at the same time. For example,
/// removing only the sleeps of a client that tries again and again saves nothing while its server still sleeps. `alone`
/// is the advice on the sleeps of the first process only. This function extends the change that `alone` proposes: the
/// change then also removes the sleeps of threads that, during the same time, only look from time to time after the
/// working threads of their processes.
pub(super) fn with_sleeps_beside(
    facts: &BuildFacts<'_>,
    naps: &[Naps],
    alone: &mut Candidate,
) -> Option<Candidate> {
    if alone.kind != AdviceKind::Sleep {
        return None;
    }
    let slept: Vec<&Nap> = naps.iter().flat_map(|naps| &naps.slept).collect();
    let (from, to) = (
        slept.iter().map(|nap| nap.from).min()?,
        slept.iter().map(|nap| nap.to).max()?,
    );
    // If the program ended right after its last sleep, it only waited for its last timer and for no other process.
    let own_naps: Vec<Nap> = slept.iter().map(|nap| **nap).collect();
    if Pauses::of(facts, &own_naps).is_last() {
        return None;
    }
    let own: BTreeSet<Group> = slept.iter().flat_map(|nap| [nap.group, nap.by]).collect();
    // The sleeps of the ancestors are not considered: the ancestors of a process wait for the process, but the process
    // does not wait for its ancestors.
    let processes = own.iter().filter_map(|group| facts.execution(*group));
    let above: BTreeSet<ProcessIx> = processes
        .flat_map(|execution| facts.analysis.lineage(execution.process))
        .collect();
    let all = facts.all().filter(|(group, execution)| {
        execution.start < to
            && execution.end > from
            && !own.contains(group)
            && !above.contains(&execution.process)
    });
    let mut found = FoundSleeps::default();
    let groups: Vec<Group> = all.take(BESIDE_LIMITS.0).map(|(group, _)| group).collect();
    for group in groups {
        found.add(facts, group, from, to);
    }
    // In some processes, a thread only sleeps and looks from time to time after the working threads (`ticks`). The
    // sleeper goes on earlier only if such threads do not hold back the work of their processes, so their sleeps are
    // removed, too.
    let removed = alone.without.of.as_deref().unwrap_or_default();
    let removed = (0..).zip(removed).filter(|(_, is_in)| **is_in);
    let removed: BTreeSet<Group> = removed.map(|(group, _)| group).collect();
    let ticks = found.ticks.iter().copied();
    let without_ticks = facts.set(removed.iter().copied().chain(ticks));
    alone.without.of = Some(without_ticks);
    let longest = found
        .by_sleeper
        .into_values()
        .filter(|beside| !own.contains(&beside.by))
        .max_by_key(|beside| (beside.ns, std::cmp::Reverse(beside.by)))?;
    // Between naps that are far apart, other processes sleep for reasons of their own.
    if sum(slept.iter().copied()).saturating_mul(2) < to.since(from) {
        return None;
    }
    // Sleeps of another process count only if they take at least half of the time from the first to the last nap,
    // because shorter sleeps do not decide how long the napping process sleeps.
    if longest.ns.saturating_mul(2) < to.since(from) {
        return None;
    }
    let is_loop = || {
        let mut lengths: Vec<u64> = slept.iter().map(|nap| nap.length()).collect();
        lengths.sort_unstable();
        let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        lengths.len() >= LOOP_SLEEPS && median.saturating_mul(LONGER_FACTOR) <= longest.longest
    };
    let is_loop = is_loop();
    let (name, time) = (facts.name(longest.by), units::time(longest.ns));
    let of = facts.set(removed.into_iter().chain(longest.groups.iter().copied()));
    Some(Candidate {
        finding: Phrase::with([&alone.finding, &name], |[alone, name]| {
            format!("{alone}, while {name} sleeps {time}")
        }),
        action: "wait for events, unless the times are meant".into(),
        without: Without::own(|kind, _| kind == TimeKind::Sleep, Some(of)),
        cap: alone.cap,
        superfluous: alone.superfluous,
        longer: alone.longer,
        evidence: alone
            .evidence
            .iter()
            .copied()
            .chain(longest.groups)
            .collect(),
        certainty: Certainty::UnlessMeant,
        extends: !is_loop,
        ..Candidate::of(AdviceKind::Sleep)
    })
}

/// Sleeps that were ended by a timer, for each process that decided to sleep.
#[derive(Default)]
struct FoundSleeps {
    by_sleeper: BTreeMap<ProcessIx, Beside>,
    /// The executions in which a thread slept while other threads of its process worked, as threads of a runtime do.
    ticks: BTreeSet<Group>,
}

impl FoundSleeps {
    /// Adds the sleeps of an execution between the times `from` and `to` to the sums of the process that decided to
    /// sleep.
    fn add(&mut self, facts: &BuildFacts<'_>, group: Group, from: Ktime, to: Ktime) {
        let (Some(execution), Some(timeline)) = (facts.execution(group), &facts.analysis.timeline)
        else {
            return;
        };
        let begin = from.max(execution.start);
        let end = to.min(execution.end);
        for thread in &facts.analysis.process(execution.process).threads {
            let sleeps = timeline.since(*thread, begin).take(BESIDE_LIMITS.1);
            let sleeps = sleeps.take_while(|stretch| stretch.from < end);
            let sleeps = sleeps.filter(|stretch| {
                stretch.doing == Bucket::Wait(Wait::Sleep)
                    && facts.analysis.wait_end(*thread, stretch).is_timer()
            });
            let is_tick = |stretch: &Stretch| {
                let nap = Nap {
                    thread: *thread,
                    group,
                    by: group,
                    from: stretch.from,
                    to: stretch.to,
                    ran: stretch.to,
                };
                is_beside_work(facts, nap.thread, nap.from, nap.to)
            };
            let (ticks, sleeps): (Vec<Stretch>, Vec<Stretch>) = sleeps.partition(is_tick);
            if !ticks.is_empty() {
                self.ticks.insert(group);
            }
            let lengths = sleeps
                .iter()
                .map(|stretch| stretch.to.min(end).since(stretch.from.max(begin)));
            let ns = lengths.clone().fold(0, u64::saturating_add);
            let longest = lengths.max().unwrap_or(0);
            let (process, at) = sleeper(facts.analysis, execution.process, begin);
            let by = facts.groups.at(process, at).unwrap_or(group);
            if ns == 0 {
                continue;
            }
            let beside = self.by_sleeper.entry(process).or_insert_with(|| Beside {
                by,
                groups: BTreeSet::new(),
                ns: 0,
                longest: 0,
            });
            beside.longest = beside.longest.max(longest);
            beside.groups.insert(group);
            beside.ns = beside.ns.saturating_add(ns);
        }
    }
}
