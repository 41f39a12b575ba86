//! Gives advice on tests that a process runs one after the other, and on the slowest of many tests.

use std::collections::{BTreeMap, BTreeSet};
use tr_programs::changes;

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::{Imported, ImportedKind, ProcessIx, Thread};
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_programs::rules;
use tr_programs::steps::Tests;
use tr_programs::tools::{Family, Role};

use crate::candidate::{AdviceKind, Candidate, Certainty, CpuDemand};
use crate::facts::BuildFacts;
use tr_text::phrase::Phrase;
use tr_text::{escape, units};

/// The time in ns that pytest-xdist's controller works for each test that it hands out to a worker. Measured by
/// `validate.py`: 51,524 tests of 0.4 ms took 29.5 s with the controller and 20.7 s without it.
const XDIST: u64 = 600_000;

pub(crate) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut all = in_one_process(facts);
    all.extend(in_threads(facts));
    all.extend(slowest_test(facts));
    all
}

/// The number of the tests that a test runner's result file lists for one process, the length of the longest test, and
/// the sum of all lengths, both in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct TestTimes {
    count: u64,
    longest: u64,
    sum: u64,
}

/// The single tests in a test runner's result file. A suite of tests has no result.
fn tests<'f>(facts: &'f BuildFacts<'_>) -> impl Iterator<Item = &'f Imported> {
    let imported = facts.recording.imports.spans.iter();
    imported.filter(|span| span.kind == ImportedKind::Test && span.result.is_some())
}

fn test_times(facts: &BuildFacts<'_>) -> BTreeMap<ProcessIx, TestTimes> {
    let mut times: BTreeMap<ProcessIx, TestTimes> = BTreeMap::new();
    for test in tests(facts) {
        let of = times.entry(test.process).or_default();
        of.count += 1;
        let length = test.to.since(test.from);
        of.longest = of.longest.max(length);
        of.sum = of.sum.saturating_add(length);
    }
    times
}

/// The least number of tests of which the slowest one can get advice, and of tests in threads that can get advice to
/// run at once. A guess: among two tests, the slower one is no exception.
const LEAST_TESTS: usize = 3;
/// How many times longer the slowest test must be than the median of all tests. A guess: below this factor, the slowest
/// test is no exception among the others.
const SLOW_FACTOR: u64 = 5;
/// The divisor of the critical path's time without waits for a CPU: the slowest test gets advice if it takes a tenth of
/// that time or more. A guess: advice on a shorter test gains less than other lines.
const DOMINANT_PART: u64 = 10;
/// The largest width of a test's name in the text of a line of advice, in columns of the terminal.
const TEST: usize = 48;

/// Advice on the slowest test in a test runner's result file, if this test is much longer than the others and long
/// enough to decide the build's time. If it is not proven at which time the test ran, only the length of the test is
/// used.
fn slowest_test(facts: &BuildFacts<'_>) -> Option<Candidate> {
    let tests: Vec<&Imported> = tests(facts).collect();
    let length = |test: &Imported| test.to.since(test.from);
    let mut lengths: Vec<u64> = tests.iter().map(|test| length(test)).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied()?;
    let slowest = tests.iter().max_by_key(|test| length(test))?;
    let is_slow = length(slowest) >= median.saturating_mul(SLOW_FACTOR);
    if tests.len() < LEAST_TESTS || !is_slow {
        return None;
    }
    let proven = slowest.doubt.is_none();
    let processes = BTreeSet::from([slowest.process]);
    let groups = facts.groups_of(&processes);
    let below = facts.below(&groups);
    // A wait for a CPU is left out, because the test does not cause it.
    let inside = facts.segments().filter(|(segment, group, _)| {
        let is_below = group.is_some_and(|group| below.get(group as usize) == Some(&true));
        is_below && segment.kind != TimeKind::RunQueue
    });
    let on_path = inside.map(|(segment, ..)| {
        if proven {
            let (from, to) = (segment.from.max(slowest.from), segment.to.min(slowest.to));
            to.since(from)
        } else {
            segment.length()
        }
    });
    let own = on_path.fold(0, u64::saturating_add).min(length(slowest));
    if own.saturating_mul(DOMINANT_PART) < facts.worked {
        return None;
    }
    let name = Phrase::name(&escape::raw(&slowest.name), TEST);
    let (count, time) = (units::count(tests.len() as u64), units::time(own));
    Some(Candidate {
        finding: Phrase::with([&name], |[name]| {
            let source = if proven { "" } else { " by its runner's file" };
            format!("test {name}, the slowest of {count}, takes {time}{source}")
        }),
        action: "make it faster, or divide it".into(),
        without: Without::own(|_, _| true, Some(below)),
        cap: own,
        certainty: Certainty::Unsure,
        evidence: groups,
        ..Candidate::of(AdviceKind::SlowTest)
    })
}

/// The shortest time in nanoseconds in which tests can run on `cpus` CPUs, if the tests take `time` one after the
/// other. `tests` has the number of the tests and the length of the longest one. `each` is the time in nanoseconds that
/// the process which distributes the tests needs for one test.
fn at_once_least(time: u64, cpus: u64, tests: TestTimes, each: u64) -> u64 {
    let handed = tests.count.saturating_mul(each);
    (time / cpus.max(1))
        .max(tests.longest)
        .max(handed)
        .min(time)
}

/// Advice on test runners that run all their tests in one process, one after the other: pytest and rspec, and others
/// whose arguments say so (`jest -i`).
fn in_one_process(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let times = test_times(facts);
    let candidate = |(group, execution): (Group, &crate::facts::Execution)| {
        let known = changes::known(&execution.program)
            .filter(|known_program| known_program.role == Role::Tests)?;
        let jobs = known.jobs(&facts.args(group));
        let runs_all = match known.family {
            Family::Pytest | Family::Rspec => jobs.is_none(),
            _ => jobs == Some(Some(1)) && known.takes_jobs() && !known.runs_one(),
        };
        if !runs_all || execution.program.is_test_worker() || facts.cpus < 2 {
            return None;
        }
        let is_told = jobs.is_some();
        let tests = times.get(&execution.process).copied();
        let (action, each) = match (known.family, tests) {
            (Family::Pytest, None) => (
                "run the tests in parallel with pytest-xdist, if each takes more than a few ms",
                0,
            ),
            (Family::Pytest, Some(_)) => (known.action, XDIST),
            _ => (known.action, 0),
        };
        let set = facts.set([group]);
        let time = facts.on_path(&set, |kind, _| {
            matches!(kind, TimeKind::OnCpu | TimeKind::Sleep)
        });
        // All sleeps may be in one test, and then running tests at once saves little. Without the tests' lengths this
        // is not known.
        let asleep = facts.on_path(&set, |kind, _| kind == TimeKind::Sleep);
        let sleeps = asleep.saturating_mul(2) > time;
        if tests.is_none() && sleeps && !is_told {
            return None;
        }
        let name = facts.name(group);
        // Each worker would repeat the start of the process, which only the lengths of the tests tell apart.
        let time = tests.map_or(time, |tests| time.min(tests.sum));
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                let start = if tests.is_none() {
                    " with its start"
                } else {
                    ""
                };
                let time = units::time(time);
                format!("{name} runs its tests one after the other, {time}{start}")
            }),
            action: action.into(),
            without: Without::own(
                |kind, _| matches!(kind, TimeKind::OnCpu | TimeKind::Sleep),
                Some(set),
            ),
            cap: time - at_once_least(time, facts.cpus, tests.unwrap_or_default(), each),
            demand: CpuDemand::of_jobs(sleeps, true),
            certainty: Certainty::unsure_if(is_told),
            evidence: vec![group],
            ..Candidate::of(AdviceKind::Tests)
        })
    };
    facts.all().filter_map(candidate).collect()
}

/// Advice on programs that run each of their tests in a thread of its own (Rust's libtest), one after the other.
fn in_threads(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let candidate = |(group, execution): (Group, &crate::facts::Execution)| {
        let step = rules::step(&facts.args(group))?;
        if step.tests != Tests::Threads || facts.cpus < 2 {
            return None;
        }
        let threads = &facts.analysis.process(execution.process).threads;
        let main = threads.first()?;
        let tests = threads.iter().map(|ix| facts.analysis.thread(*ix));
        // A test may start threads of its own, so only threads that the main thread started count as tests.
        let mut tests: Vec<_> = tests
            .filter(|test| test.parent == Some(*main) && test.start >= execution.start)
            .collect();
        tests.sort_by_key(|test| test.start);
        let one_by_one = tests.windows(2).all(|pair| match pair {
            [one, next] => next.start >= one.exited.unwrap_or(one.end),
            _ => true,
        });
        if tests.len() < LEAST_TESTS || !one_by_one {
            return None;
        }
        let sum = |of: fn(&Thread) -> u64| {
            let times = tests.iter().map(|test| of(test));
            times.fold(0, u64::saturating_add)
        };
        let (wall, worked) = (sum(Thread::wall), sum(|test| test.times.on_cpu));
        let longest = tests.iter().map(|test| test.wall()).max().unwrap_or(0);
        let set = facts.set([group]);
        let time = facts
            .on_path(&set, |kind, _| kind != TimeKind::RunQueue)
            .min(wall);
        let least = longest.max(worked.div_ceil(facts.cpus));
        let (name, count) = (facts.name(group), units::count(tests.len() as u64));
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                let time = units::time(time);
                format!("{name} runs its {count} tests one after the other, {time}")
            }),
            action: "run them at once, if independent (--test-threads, RUST_TEST_THREADS)".into(),
            without: Without::own(|kind, _| kind != TimeKind::RunQueue, Some(set)),
            cap: time.saturating_sub(least),
            demand: CpuDemand::of_jobs(worked.saturating_mul(2) < wall, true),
            certainty: Certainty::Unsure,
            evidence: vec![group],
            ..Candidate::of(AdviceKind::Tests)
        })
    };
    facts.all().filter_map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_test_and_their_number_bound_what_is_saved() {
        const MS: u64 = 1_000_000;
        for (time, cpus, count, longest, least) in [
            (1000, 4, 0, 0, 250),
            (1000, 4, 10, 700, 700),
            (1000, 4, 1000, 5, 600),
            (1000, 4, 10_000, 1, 1000),
        ] {
            let longest = longest * MS;
            let tests = TestTimes {
                count,
                longest,
                sum: 0,
            };
            let got = at_once_least(time * MS, cpus, tests, XDIST);
            assert_eq!(got, least * MS, "{count} tests");
        }
    }
}
