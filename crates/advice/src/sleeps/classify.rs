//! Classifies the sleeps of each process: a loop that checks for something, a rhythm that is meant, stops of a child, a
//! time-out until a kill, or sleeps without such a reason.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::{Process, ProcessIx, ThreadIx};
use tr_analyze::programs::Group;
use tr_analyze::share;
use tr_analyze::timeline::{Actor, Bucket, Wait};
use tr_analyze::what_if::Without;
use tr_format::event::Ktime;
use tr_programs::program_name::ProgramName;
use tr_programs::rules;
use tr_programs::steps::{StepKind, Tests};
use tr_programs::time_names::tests_time;
use tr_programs::tools::Role;

use crate::candidate::{AdviceKind, Candidate, Certainty};
use crate::facts::BuildFacts;
use crate::limits::AFTER_TIME_OUT;
use crate::sleeps::awaited::superfluous;
use crate::sleeps::nap::{is_equal, long_naps, sum, Nap, Superfluous, BESIDE_LIMITS, LOOP_SLEEPS};
use crate::sleeps::pauses::Pauses;
use crate::sleeps::polls;
use crate::sleeps::rhythm::is_paced;
use tr_insight::processes::timeout::timed_out;
use tr_insight::processes::{exit, label};
use tr_text::phrase::Phrase;
use tr_text::units;

/// The largest number of threads that are climbed from a thread to the one that started it, and so on. A bound of the
/// work.
const MOST_SPAWNERS: usize = 100;

/// The sleeps that one process decided on while it ran one program.
pub(super) struct Naps {
    pub slept: Vec<Nap>,
    /// The number of the sleeps that are at least a tenth as long as the longest one. A line of advice counts only
    /// these.
    pub count: usize,
    /// For loops that sleep and check for something: the length of one sleep in nanoseconds, and the number of loops.
    /// `None` for other sleeps.
    pub checks: Option<(u64, u64)>,
    pub superfluous: Superfluous,
}

impl Naps {
    fn of(facts: &BuildFacts<'_>, slept: Vec<Nap>) -> Naps {
        let long = long_naps(&slept);
        let checks = interval(facts, &long);
        Naps {
            count: long.len(),
            // For loops that check for the end of some work, the time for which that work waited for a CPU is added
            // later (`WithheldTime::add_polled`).
            superfluous: if checks.is_some() {
                Superfluous::default()
            } else {
                superfluous(facts, &long)
            },
            checks,
            slept,
        }
    }
}

/// The subject of a line of advice on sleeps: a program, or a test runner with its tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sleeper<'f> {
    Program(&'f ProgramName),
    /// A test runner. The line of advice is about the tests of all processes that run it.
    TestsOf(&'f ProgramName),
}

/// The sleeps of all processes by what the processes did with them.
#[derive(Default)]
pub(super) struct SleepsByKind<'f> {
    /// The sleeps that a line of advice may be about, by their subject, and by whether they are in loops that check for
    /// something.
    pub by_sleeper: BTreeMap<(Sleeper<'f>, bool), Vec<Naps>>,
    /// Advice on sleeps during which a process stops its child.
    pub stopping: Vec<Candidate>,
    /// Advice on sleeps of processes that waited for a child and finally killed the child.
    pub abandoned: Vec<Candidate>,
    /// Whether a process gave up waiting for a child and killed the child.
    pub gives_up: bool,
    /// Whether a process sleeps in a rhythm, which is probably meant, or sleeps for times that its tests may need.
    pub is_meant: bool,
}

/// Classifies the sleeps of each process. A process that runs `timeout`, whose limit has passed, is left out, and so
/// are the processes in `waiting`: they waited for the end of a grace period before a kill, which is reported apart.
pub(super) fn classify<'f>(
    facts: &'f BuildFacts<'_>,
    by_process: BTreeMap<ProcessIx, Vec<Nap>>,
    waiting: &BTreeSet<ProcessIx>,
) -> SleepsByKind<'f> {
    let mut kinds = SleepsByKind::default();
    for (process, slept) in by_process {
        let waits_for_end = waiting.contains(&process);
        if timed_out(facts.analysis.process(process)) || waits_for_end {
            continue;
        }
        if let Some(candidate) = stops(facts, process, &slept) {
            kinds.stopping.push(candidate);
            continue;
        }
        if let Some(child) = given_up(facts, process, &slept) {
            kinds.gives_up = true;
            // A process that failed gets no advice on its sleeps, because the sleeps are not the cause of the failure.
            if !exit::failed(facts.analysis.process(process).status) {
                kinds.abandoned.extend(until_kill(facts, &slept, child));
            }
            continue;
        }
        let mut own: BTreeMap<Sleeper<'_>, Vec<Nap>> = BTreeMap::new();
        let is_paced = is_paced(&slept);
        for nap in slept {
            if let Some(sleeper) = sleeper(facts, nap.by) {
                own.entry(sleeper).or_default().push(nap);
            }
        }
        for (sleeper, slept) in own {
            let naps = Naps::of(facts, slept);
            let polls = naps.checks.is_some();
            // A program that sleeps in a rhythm is probably meant to keep that rate, so it gets no advice. A loop that
            // provably checks for something gets advice even if its sleeps have a rhythm.
            let is_meant = is_paced || may_be_tested(facts, sleeper, &naps.slept);
            if is_meant && !polls {
                kinds.is_meant = true;
                continue;
            }
            kinds
                .by_sleeper
                .entry((sleeper, polls))
                .or_default()
                .push(naps);
        }
    }
    kinds
}

/// The subject of a line of advice on the sleeps that an execution decided on. All children of a test runner are tests,
/// whatever their files are called.
fn sleeper<'f>(facts: &'f BuildFacts<'_>, group: Group) -> Option<Sleeper<'f>> {
    let execution = facts.execution(group)?;
    let runner = facts
        .owner(group)
        .filter(|owner| facts.role(*owner) == Some(Role::Tests));
    let runner = runner.and_then(|owner| facts.execution(owner));
    Some(match runner {
        Some(runner) => Sleeper::TestsOf(&runner.program),
        None => Sleeper::Program(&execution.program),
    })
}

/// Whether the sleeps of one process may be what its tests test: a test of a time-out or of a rate has to take its
/// time. The answer is no if the recording shows something else about the sleeps. It is also no if nearly all sleeps
/// have one length, unless the test's name is about time: those are sleeps of a fixture, which runs for each test, while
/// tests of times have different times. If they are known to be of one test, they are of no fixture.
fn may_be_tested(facts: &BuildFacts<'_>, sleeper: Sleeper<'_>, slept: &[Nap]) -> bool {
    let is_test = |group: Group| {
        let step = rules::step(&facts.args(group));
        step.is_some_and(|step| step.kind == StepKind::Test || step.tests != Tests::None)
    };
    let in_tests =
        matches!(sleeper, Sleeper::TestsOf(_)) || slept.first().is_some_and(|nap| is_test(nap.by));
    let by = slept.first().and_then(|nap| facts.execution(nap.by));
    let tests_time = by.is_some_and(|by| tests_time(by.program.name(), in_tests));
    let pauses = || Pauses::of(facts, slept);
    if tests_time {
        !pauses().have_reason() || pauses().is_last()
    } else {
        let is_fixture = repeats_one_length(slept) && !are_of_one_test(facts, slept);
        in_tests && !is_fixture && !pauses().have_reason()
    }
}

/// Whether all long sleeps of a program that runs each of its tests in a thread of its own (Rust's libtest) belong to
/// one test. The main thread starts the threads of the tests, and a test may start further threads.
fn are_of_one_test(facts: &BuildFacts<'_>, slept: &[Nap]) -> bool {
    let parent = |thread: &ThreadIx| facts.analysis.thread(*thread).parent;
    let test = |nap: &Nap| {
        let process = facts
            .analysis
            .process(facts.analysis.thread(nap.thread).process);
        let main = process.threads.first().copied();
        let mut above = std::iter::successors(Some(nap.thread), parent).take(MOST_SPAWNERS);
        above.find(|thread| main.is_some() && parent(thread) == main)
    };
    let has_threads = |nap: &Nap| {
        let step = rules::step(&facts.args(nap.by));
        step.is_some_and(|step| step.tests == Tests::Threads)
    };
    let tests: BTreeSet<Option<ThreadIx>> = long_naps(slept).iter().map(test).collect();
    slept.first().is_some_and(has_threads) && tests.len() == 1 && !tests.contains(&None)
}

/// Whether at least [`LOOP_SLEEPS`] of the given sleeps, which take four fifths of their time, have about one length.
fn repeats_one_length(slept: &[Nap]) -> bool {
    let mut lengths: Vec<u64> = slept.iter().map(Nap::length).collect();
    lengths.sort_unstable();
    let sum = sum(slept);
    let mut first = 0;
    let mut within = 0u64;
    for (last, longest) in lengths.iter().enumerate() {
        within = within.saturating_add(*longest);
        while let Some(shortest) = lengths
            .get(first)
            .filter(|least| !is_equal(**least, *longest))
        {
            within = within.saturating_sub(*shortest);
            first += 1;
        }
        if last + 1 - first >= LOOP_SLEEPS && within.saturating_mul(5) >= sum.saturating_mul(4) {
            return true;
        }
    }
    false
}

/// Advice on the sleeps of a process during which it stops a child (SIGSTOP), for example to limit the child's CPU
/// time. The process itself continues the child after each sleep.
fn stops(facts: &BuildFacts<'_>, process: ProcessIx, slept: &[Nap]) -> Option<Candidate> {
    let timeline = facts.analysis.timeline.as_ref()?;
    let of = |actor: Actor| match actor {
        Actor::Thread(thread) => Some(facts.analysis.thread(thread).process),
        _ => None,
    };
    let stopped = |child: &ProcessIx| -> u64 {
        let thread = facts.analysis.process(*child).threads.first();
        let stretches = thread.into_iter().flat_map(|thread| timeline.of(*thread));
        let stops = stretches.filter(|stretch| {
            stretch.doing == Bucket::Wait(Wait::Stopped) && of(stretch.waker()) == Some(process)
        });
        stops.map(|stop| stop.length()).fold(0, u64::saturating_add)
    };
    let children = facts.analysis.process(process).children.iter();
    let children = children
        .take(BESIDE_LIMITS.0)
        .map(|child| (stopped(child), *child));
    let (ns, child) = children.max_by_key(|(ns, child)| (*ns, std::cmp::Reverse(*child)))?;
    // If the child was stopped for less than a tenth of the sleeps, the stops do not explain the sleeps.
    if ns == 0 || ns.saturating_mul(10) < sum(slept) {
        return None;
    }
    let first = slept.first()?;
    let of = facts.analysis.process(child);
    // If other tasks use the CPUs, too, the child needs longer for its work and is stopped for longer. So the stopped
    // time is scaled to the child's CPU time.
    let went = of.wall().saturating_sub(ns).max(1);
    let cap = share(of.times.on_cpu, ns, went).min(ns);
    let groups = facts.groups_of(&BTreeSet::from([child]));
    let (name, label) = (facts.name(first.by), label::phrase(of));
    let all = slept.iter().map(|nap| nap.group).chain(groups);
    let all: BTreeSet<Group> = all.collect();
    Some(Candidate {
        finding: Phrase::with([&name, &label], |[name, label]| {
            let time = units::time(ns);
            format!("{name} stops {label} for {time}, and sleeps meanwhile")
        }),
        action: "let it run, or raise its limit".into(),
        without: Without::own(
            |kind, _| matches!(kind, TimeKind::Sleep | TimeKind::Stopped),
            Some(facts.set(all.iter().copied())),
        ),
        cap,
        certainty: Certainty::Unsure,
        evidence: all.into_iter().collect(),
        ..Candidate::of(AdviceKind::Sleep)
    })
}

/// Advice on the sleeps of a process that checked, between its sleeps, whether a child had ended, and that finally
/// killed the child. Such sleeps are a time-out, unless the process also checked for something else.
fn until_kill(facts: &BuildFacts<'_>, slept: &[Nap], child: &Process) -> Option<Candidate> {
    let (first, sum) = (slept.first()?, sum(slept));
    let (name, child) = (facts.name(first.by), label::phrase(child));
    Some(Candidate {
        finding: Phrase::with([&name, &child], |[name, child]| {
            format!(
                "{name} sleeps {}, {} times, and then kills {child}",
                units::time(sum),
                units::count(slept.len() as u64),
            )
        }),
        action: AFTER_TIME_OUT.into(),
        without: Without::own(
            |kind, _| kind == TimeKind::Sleep,
            Some(facts.set(slept.iter().map(|nap| nap.group))),
        ),
        cap: sum,
        certainty: Certainty::UnlessMeant,
        evidence: slept.iter().map(|nap| nap.group).collect(),
        ..Candidate::of(AdviceKind::Sleep)
    })
}

/// The child of `process` for which it is proven that `process` repeatedly checked whether the child had ended, and
/// finally killed the child; `None` if there is no such child. The proof fails if `process` started other children
/// between the sleeps. If `process` succeeded, the proof also fails in two other cases: all sleeps are equally long, or
/// another child started or ended between the last sleep and the kill. In the last case `process` waited for that other
/// child, and only stopped a server at the end. `slept` has the sleeps of the process in order.
fn given_up<'a>(facts: &BuildFacts<'a>, process: ProcessIx, slept: &[Nap]) -> Option<&'a Process> {
    let longest = slept.iter().map(Nap::length).max().unwrap_or(0);
    let shortest = slept.iter().map(Nap::length).min().unwrap_or(0);
    let last = slept.last().map_or(Ktime(0), |nap| nap.to);
    if slept.len() < LOOP_SLEEPS || polls::works_between(facts, process, slept) {
        return None;
    }
    let analysis = facts.analysis;
    let process = analysis.process(process);
    let children = || {
        let children = process.children.iter();
        let children = children.map(|ix| analysis.process(*ix));
        children.filter(|child| child.end >= last)
    };
    let by_signal = |child: &Process| exit::killed_by(child.status).is_some();
    // The first start or end of another child after the last sleep. Children that a signal ended do not count, because
    // the process may kill several children at once.
    let others = children().filter(|child| !by_signal(child) && !label::program(child).is("sleep"));
    let other = others.map(|child| {
        if child.start >= last {
            child.start
        } else {
            child.end
        }
    });
    let other = other.min();
    let failed = exit::failed(process.status);
    if !failed && is_equal(shortest, longest) {
        return None;
    }
    let mut killed =
        children().filter(|child| by_signal(child) && child.end.since(last) <= longest);
    killed.find(|child| {
        let alone = other.is_none_or(|other| other > child.end);
        (failed || alone) && lives(slept, child.start, child.end)
    })
}

/// Whether most of the given sleeps begin between the times `start` and `end`. The sleeps are sorted by time.
fn lives(slept: &[Nap], start: Ktime, end: Ktime) -> bool {
    let until = slept.partition_point(|nap| nap.from <= end);
    let inside = until.saturating_sub(slept.partition_point(|nap| nap.from < start));
    inside * 2 > slept.len()
}

/// The length in nanoseconds of one sleep, and the number of loops, if the given sleeps belong to loops that sleep and
/// check whether the work of a child or of another process is done. Such a loop notices the end of the work at most one
/// sleep late.
fn interval(facts: &BuildFacts<'_>, slept: &[Nap]) -> Option<(u64, u64)> {
    let mut lengths: Vec<u64> = slept.iter().map(Nap::length).collect();
    lengths.sort_unstable();
    // The shortest fifth and the longest tenth of the sleeps are ignored: some sleeps end late or are cut short, and
    // some loops begin with shorter sleeps.
    let odd = lengths.len() / 10;
    let shortest = *lengths.get(lengths.len() / 5)?;
    let longest = *lengths.get(lengths.len().checked_sub(odd + 1)?)?;
    if slept.len() < LOOP_SLEEPS || !is_equal(shortest, longest) {
        return None;
    }
    Some((longest, polls::loops(facts, slept, longest)?))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn sleeps_of_a_fixture_have_one_length() {
        let slept = |lengths: &[u64]| -> Vec<Nap> {
            let nap = |length: &u64| Nap {
                thread: ThreadIx(0),
                group: 0,
                by: 0,
                from: Ktime(0),
                to: Ktime(*length),
                ran: Ktime(*length),
            };
            lengths.iter().map(nap).collect()
        };
        for (lengths, one_length) in [
            (&[500, 510, 500][..], true),
            (&[500, 510, 500, 20, 30, 200], true),
            (&[500, 500, 500, 900], false),
            (&[500, 500], false),
            (&[3000], false),
            (&[100, 200, 400, 800], false),
            (&[50, 50, 50, 900], false),
            (&[], false),
        ] {
            assert_eq!(
                repeats_one_length(&slept(lengths)),
                one_length,
                "{lengths:?}"
            );
        }
    }

    #[test]
    fn a_life_has_most_of_the_sleeps() {
        let slept = [10, 20, 30, 40].map(|from| Nap {
            thread: ThreadIx(0),
            group: 0,
            by: 0,
            from: Ktime(from),
            to: Ktime(from + 5),
            ran: Ktime(from + 5),
        });
        for (start, end, most) in [
            (0, 100, true),
            (10, 30, true),
            (11, 40, true),
            (20, 39, false),
            (31, 100, false),
            (50, 100, false),
            (30, 20, false),
        ] {
            let lives = lives(&slept, Ktime(start), Ktime(end));
            assert_eq!(lives, most, "{start} to {end}");
        }
    }
}
