//! Decides whether a report and its recording prove when a test ran. A test whose place is in doubt gets no figures
//! (such as CPU time), because they could belong to a neighbouring test.

use std::collections::{HashMap, HashSet};

use tr_analyze::model::{Analysis, Doubt, Imported, ProcessIx};
use tr_analyze::timeline::Bucket;
use tr_format::event::Ktime;
use tr_programs::rules;
use tr_programs::steps::Tests;

use super::anywhere::Anywhere;
use crate::lookup::{ktime, program, signed, CLOCKS};
use tr_insight::recordings::imports::TOLERATED_PART;

/// The largest error in nanoseconds of the place of a test that gets figures. With a larger error, the CPU time could
/// belong to a neighbouring test, however long the test is. A guess; the script `reporters.py` tests the places of 35
/// runners' tests.
const MOST_ERROR: u64 = 100_000_000;

/// A short test keeps its figures (such as its CPU time) even if the recording does not show what the test's threads
/// did for this long, in nanoseconds. A decision: the script `reporters.py` accepts figures with this error.
const LEAST_UNSEEN: u64 = 20_000_000;

/// The largest tolerated error in nanoseconds of a figure of a test, such as its CPU time, if the figure is small. A
/// decision: half of the error that the script `reporters.py` accepts, because a clock of CPU time can have ticks of 10
/// ms.
const LEAST_ERROR: u64 = 10_000_000;

/// The largest tolerated error, in nanoseconds, of the place or of a figure of a test. `length` is the test's length in
/// nanoseconds.
pub fn tolerated(length: u64) -> u64 {
    MOST_ERROR.min(length / TOLERATED_PART)
}

/// The largest tolerated error in nanoseconds of a figure of a test, such as its CPU time. `figure` is the figure's
/// value, and `length` the test's length.
pub fn tolerated_figure(figure: u64, length: u64) -> u64 {
    tolerated(length).min(LEAST_ERROR.max(figure / TOLERATED_PART))
}

/// Whether the figures of a test (such as its CPU time) could be wrong by more than is tolerated, because the test's
/// place in time may be wrong by `error` nanoseconds. `length` is the length of the test in nanoseconds.
pub fn is_far(error: u64, length: u64) -> bool {
    error > tolerated_figure(0, length)
}

/// The meaning of the time that a report gives for a suite or test: its beginning or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    Begin,
    End,
}

/// A test or suite of a report with its time of the day, converted to the recording's time in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Stamped {
    pub at: i64,
    pub length: i64,
    /// The sum of the largest errors of the time of the day (`at`) and of the length of a test or suite, in
    /// nanoseconds.
    pub error: i64,
    /// The beginning and the end of the process that ran the test or suite, if `at` is taken for the beginning of the
    /// test or suite. `None` if no process fits.
    pub runner: Option<(i64, i64)>,
}

/// The facts that contradict one of the two possible meanings of a report's times, which are beginnings or ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contradictions {
    begin: bool,
    end: bool,
}

impl Contradictions {
    /// Notes that the report's times are not beginnings, or not ends, if a test or suite would otherwise lie outside of
    /// the life of the process that ran it.
    pub fn by_lives(&mut self, stamped: &[Stamped]) {
        for element in stamped {
            match element.runner {
                None => self.begin = true,
                Some((start, _)) => {
                    let from = element.at.saturating_sub(element.length);
                    let tolerated = element.error.saturating_add(CLOCKS);
                    self.end |= from < start.saturating_sub(tolerated);
                }
            }
        }
    }

    /// Notes that the report's times are not beginnings of tests and suites, if one of them would then end after the
    /// report was written (`written`, in ns).
    pub fn by_file(&mut self, stamped: &[Stamped], written: Option<i64>) {
        let Some(written) = written else {
            return;
        };
        self.begin |= stamped.iter().any(|element| {
            let end = element.at.saturating_add(element.length);
            end > written.saturating_add(element.error)
        });
    }

    /// Notes what the search for a schedule of one suite shows about the report's times, which are beginnings or ends.
    /// `as_begin` says whether a schedule exists if the times are beginnings, and `as_end` whether a schedule exists if
    /// the times are ends. If only one of the two is true, the other meaning is wrong. If both are true, both meanings
    /// are possible. If both are false, another process ran the suite. Nothing is proven in these two cases.
    pub fn by_fit(&mut self, [as_begin, as_end]: [bool; 2]) {
        self.begin |= as_end && !as_begin;
        self.end |= as_begin && !as_end;
    }

    /// Notes that the times of tests cannot be beginnings, or cannot be ends, if tests of one suite would then overlap.
    pub fn by_order(&mut self, mut stamped: Vec<Stamped>) {
        stamped.sort_by_key(|element| element.at);
        for (before, after) in stamped.iter().zip(stamped.iter().skip(1)) {
            let between = after.at.saturating_sub(before.at);
            let between = between
                .saturating_add(before.error)
                .saturating_add(after.error);
            self.begin |= before.length > between;
            self.end |= after.length > between;
        }
    }

    /// Whether the report's times are beginnings or ends, if the noted facts exclude exactly one of the two meanings;
    /// otherwise `None`.
    pub fn stamp(self) -> Option<Stamp> {
        match (self.begin, self.end) {
            (false, true) => Some(Stamp::Begin),
            (true, false) => Some(Stamp::End),
            _ => None,
        }
    }
}

/// The beginnings and the ends of some processes or threads, in the order of their beginnings.
#[derive(Debug, Default)]
struct Lives {
    starts: Vec<i64>,
    /// For each process or thread, in the order of their beginnings, the latest end of all processes or threads that
    /// began no later than this one.
    last_ends: Vec<i64>,
}

impl Lives {
    fn new(mut lives: Vec<(i64, i64)>) -> Lives {
        lives.sort_unstable();
        let mut last_end = i64::MIN;
        let ends = lives.iter().map(|(_, end)| {
            last_end = last_end.max(*end);
            last_end
        });
        Lives {
            last_ends: ends.collect(),
            starts: lives.into_iter().map(|(start, _)| start).collect(),
        }
    }

    /// Whether one of the processes or threads was alive at a time, and began and ended more than `error` nanoseconds
    /// away from that time.
    fn are_across(&self, time: i64, error: i64) -> bool {
        let earliest = time.saturating_sub(error);
        let before = self.starts.partition_point(|start| *start < earliest);
        let last_end = before.checked_sub(1).and_then(|at| self.last_ends.get(at));
        last_end.is_some_and(|end| *end > time.saturating_add(error))
    }

    /// Whether one of the processes or threads began at a time, give or take `error` nanoseconds.
    fn begin_near(&self, time: i64, error: i64) -> bool {
        let earliest = time.saturating_sub(error);
        let before = self.starts.partition_point(|start| *start < earliest);
        let next = self.starts.get(before);
        next.is_some_and(|start| *start <= time.saturating_add(error))
    }
}

/// The stretches of time in which the recording does not show what a thread of a test runner did. Stretches of several
/// threads can overlap.
#[derive(Debug, Default)]
struct Unseen {
    /// The times in nanoseconds at which the unseen stretches begin, in ascending order, each with the sum of all
    /// earlier begin times.
    begins: Vec<(i64, i128)>,
    /// The times in nanoseconds at which the unseen stretches end, in ascending order, each with the sum of all earlier
    /// end times.
    ends: Vec<(i64, i128)>,
}

impl Unseen {
    fn new(stretches: Vec<(i64, i64)>) -> Unseen {
        let summed = |mut times: Vec<i64>| {
            times.sort_unstable();
            let mut sum = 0_i128;
            let with_sum = times.into_iter().map(|time| {
                let before = sum;
                sum += i128::from(time);
                (time, before)
            });
            with_sum.collect::<Vec<_>>()
        };
        let (begins, ends) = stretches.into_iter().unzip();
        Unseen {
            begins: summed(begins),
            ends: summed(ends),
        }
    }

    /// The time in nanoseconds between `from` and `to` that the recording does not show, summed up over the threads.
    fn between(&self, from: Ktime, to: Ktime) -> u64 {
        // Returns the sum of the differences between `time` and each earlier time in `times`. No loop is needed,
        // because each entry of `times` also has the sum of all times before the entry.
        let since = |times: &[(i64, i128)], time: i64| {
            let before = times.partition_point(|(at, _)| *at < time);
            let last = before.checked_sub(1).and_then(|last| times.get(last));
            let sum = last.map_or(0, |(at, sum)| sum + i128::from(*at));
            i128::from(time) * before as i128 - sum
        };
        let until = |time: Ktime| {
            let time = signed(time);
            since(&self.begins, time) - since(&self.ends, time)
        };
        u64::try_from(until(to) - until(from)).unwrap_or(0)
    }
}

/// The processes and threads that lived at the same time as a test runner. If such a process or thread worked during a
/// test, it is not clear whether this work belongs to the test.
#[derive(Debug, Default)]
struct Company {
    unseen: Unseen,
    children: Lives,
    /// The children of the test runner that may run tests at the same time as the runner.
    workers: Lives,
    threads: Lives,
    /// The test threads of a runner that names each thread after its test. All work of such a thread belongs to the
    /// test during which the thread began.
    test_threads: Lives,
}

impl Company {
    /// Finds the processes and threads that lived at the same time as a test runner. If the runner is known as a test
    /// program (`is_test`), its children that execute other programs are assumed not to run its tests. If the runner's
    /// kind is not known, all of its children may run its tests. The children in `decided` are left out of the field
    /// `children`, because it is known which test each of them belongs to.
    fn new(
        analysis: &Analysis,
        runner: ProcessIx,
        is_test: bool,
        tests: &[ProcessIx],
        decided: &HashSet<ProcessIx>,
    ) -> Company {
        let process = analysis.process(runner);
        let life = |ix: &ProcessIx| {
            let child = analysis.process(*ix);
            (signed(child.start), signed(child.end))
        };
        let may_work = |ix: &&ProcessIx| {
            let child = analysis.process(**ix);
            !is_test
                || child.execs.is_empty()
                || program(child) == program(process)
                || tests.binary_search(*ix).is_ok()
        };
        let children = process.children.iter().filter(|ix| !decided.contains(ix));
        let threads = process.threads.iter().skip(1).map(|ix| {
            let thread = analysis.thread(*ix);
            (signed(thread.start), signed(thread.end))
        });
        let args: Vec<&[u8]> = process.argv.args().collect();
        let found = rules::step(&args);
        let names_threads = found.is_some_and(|found| found.tests == Tests::Threads);
        let test_threads = threads.clone().filter(|_| names_threads);
        let stretches = analysis.timeline.iter().flat_map(|timeline| {
            let threads = process.threads.iter();
            threads.flat_map(|thread| timeline.of(*thread))
        });
        let unseen = stretches.filter(|stretch| matches!(stretch.doing, Bucket::Unknown));
        let unseen = unseen.map(|stretch| (signed(stretch.from), signed(stretch.to)));
        Company {
            unseen: Unseen::new(unseen.collect()),
            children: Lives::new(children.map(life).collect()),
            workers: Lives::new(process.children.iter().filter(may_work).map(life).collect()),
            test_threads: Lives::new(test_threads.collect()),
            threads: Lives::new(threads.collect()),
        }
    }
}

/// A test or suite that is placed, by its times, under the process that ran it.
#[derive(Debug)]
pub struct Guess {
    pub span: Imported,
    /// The largest error of the beginning or the end of the test, in nanoseconds.
    pub error: i64,
    /// Whether the test itself has a time of the day in the report.
    pub own_stamp: bool,
    /// Whether this is the span of a suite, which contains tests, and not of a test.
    pub is_suite: bool,
    /// The reason, if any, for which the place of the test is in doubt before [`find_doubts`] examines it.
    pub doubt: Option<Doubt>,
    /// Whether no process other than the one under which the test is placed, and its ancestors, can have run the test.
    pub sure_runner: bool,
    /// Whether one thread of the process under which the test is placed ran the test, and no other thread of this
    /// process can have run the test.
    pub one_thread: bool,
    /// Whether the process under which the test is placed is known to be a test program.
    pub is_test: bool,
    /// Whether the figures of the test (such as its CPU time) are equal for every place in time at which the test can
    /// have run ([`super::even`]).
    pub is_even: bool,
    /// Whether the error of the test's place in time is so large that the figures (such as the CPU time) could be those
    /// of a neighbouring test.
    pub is_far: bool,
    /// The place of the test if it can have run anywhere within its suite.
    pub anywhere: Option<Anywhere>,
    /// Whether only the order of the report and the lengths of the tests support the test's place, or the report has no
    /// length for the test.
    pub is_loose: bool,
}

impl Guess {
    /// If the place of a test is not proven, gives the test a wider place that is proven: all of the time in which the
    /// test can have run within its suite. The process to which the test was assigned may not have lived for all of
    /// that time. In this case, the test is assigned to the recorded command instead.
    pub fn bound(&mut self, analysis: &Analysis, command: Option<ProcessIx>) {
        let is_bound = |doubt: &Doubt| self.is_loose || !doubt.has_place();
        let Some(doubt) = self.span.doubt.filter(is_bound) else {
            return;
        };
        if let Some(place) = self.anywhere {
            self.span.from = ktime(place.from);
            self.span.to = ktime(place.to);
            self.error = place.error;
            self.span.error = place.error.unsigned_abs();
            self.span.doubt = Some(match doubt {
                Doubt::Runner => Doubt::Process(self.span.error),
                _ => Doubt::Off(self.span.error),
            });
            let process = analysis.process(self.span.process);
            if self.span.from < process.start || process.end < self.span.to {
                self.span.process = command.unwrap_or(self.span.process);
            }
        } else if doubt.has_place() {
            self.span.doubt = Some(Doubt::Suite);
        }
    }
}

/// For each test whose place in time is not proven, notes the reason.
pub fn find_doubts(
    analysis: &Analysis,
    tests: &[ProcessIx],
    decided: &HashSet<ProcessIx>,
    guesses: &mut [Guess],
) {
    let mut company: HashMap<ProcessIx, Company> = HashMap::new();
    let overlapping = overlapping(guesses);
    for (guess, overlaps) in guesses.iter_mut().zip(overlapping) {
        let runner = guess.span.process;
        let company = company
            .entry(runner)
            .or_insert_with(|| Company::new(analysis, runner, guess.is_test, tests, decided));
        let boundaries = [signed(guess.span.from), signed(guess.span.to)];
        let at_boundary = |is: &dyn Fn(i64) -> bool| boundaries.into_iter().any(is);
        let error = guess.error;
        let length = guess.span.to.since(guess.span.from);
        // Another process or thread counts if it began more than `near` nanoseconds before the beginning or the end of
        // the test, and ended more than `near` nanoseconds after the same moment. `near` is limited, because with a
        // large error no short-lived thread would count.
        let near = error.min(MOST_ERROR.cast_signed());
        let in_company = at_boundary(&|time| company.workers.are_across(time, near))
            || !(guess.own_stamp || guess.one_thread)
                && at_boundary(&|time| company.threads.are_across(time, near));
        guess.span.error = error.unsigned_abs();
        guess.span.doubt = if guess.doubt.is_some() {
            guess.doubt
        } else if overlaps || in_company || !guess.sure_runner {
            Some(Doubt::Runner)
        } else if guess.is_far && !guess.is_even {
            Some(Doubt::Off(error.unsigned_abs()))
        } else if at_boundary(&|time| {
            company.children.begin_near(time, error) || company.test_threads.begin_near(time, error)
        }) {
            Some(Doubt::Boundary(error.unsigned_abs()))
        } else {
            let unseen = company.unseen.between(guess.span.from, guess.span.to);
            (unseen > tolerated(length).max(LEAST_UNSEEN)).then_some(Doubt::Unseen(unseen))
        };
    }
}

/// For each placed test, whether the test overlaps with another test of the same process by more than the sum of the
/// largest errors of the two tests. For each placed suite, the same comparison with the other suites of its process.
fn overlapping(guesses: &[Guess]) -> Vec<bool> {
    let mut order: Vec<(usize, &Guess)> = guesses.iter().enumerate().collect();
    let place = |guess: &Guess| (guess.span.process, guess.is_suite);
    order.sort_by_key(|(at, guess)| (place(guess), guess.span.from, *at));
    let mut overlapping = vec![false; guesses.len()];
    let mut last: Option<(usize, &Guess)> = None;
    for (at, guess) in order {
        let before = last.filter(|(_, before)| place(before) == place(guess));
        if let Some((of_before, before)) = before {
            let by = signed(before.span.to).min(signed(guess.span.to));
            let by = by.saturating_sub(signed(guess.span.from));
            if by > before.error.saturating_add(guess.error) {
                for at in [at, of_before] {
                    overlapping
                        .get_mut(at)
                        .into_iter()
                        .for_each(|is| *is = true);
                }
            }
        }
        if before.is_none_or(|(_, before)| before.span.to < guess.span.to) {
            last = Some((at, guess));
        }
    }
    overlapping
}

#[cfg(test)]
mod tests {
    use tr_analyze::model::{ImportedKind, Process, Thread, ThreadIx};
    use tr_format::event::{Argv, Tid};

    use super::*;
    use crate::lookup::imported;

    /// Checks a test program of cargo, which names its threads. A thread began 1 ms before the place of a test, so the
    /// thread may belong to this test or to the previous one. The test therefore gets no figures (such as its CPU
    /// time).
    #[test]
    fn the_thread_of_a_test_at_its_boundary_leaves_no_figures() {
        let doubt = |line: &str| {
            let mut analysis = Analysis {
                start: Ktime(1),
                end: Ktime(1_000_000_000),
                ..Analysis::default()
            };
            analysis.processes.push(Process {
                argv: Argv::from_args(line.split(' ').map(str::to_owned)),
                end: analysis.end,
                threads: vec![ThreadIx(0), ThreadIx(1)],
                ..Process::default()
            });
            for life in [(1, 1_000_000_000), (99_000_000, 301_000_000)] {
                let life = (Ktime(life.0), Ktime(life.1));
                let thread = Thread::new(Tid(1), ProcessIx(0), life);
                analysis.threads.push(thread);
            }
            let at = (ProcessIx(0), (Ktime(100_000_000), Ktime(300_000_000)));
            let mut guesses = [Guess {
                span: imported(ImportedKind::Test, b"x", at),
                error: 2_000_000,
                own_stamp: false,
                is_suite: false,
                doubt: None,
                sure_runner: true,
                one_thread: true,
                is_test: true,
                is_even: false,
                is_far: false,
                anywhere: None,
                is_loose: false,
            }];
            find_doubts(&analysis, &[], &HashSet::new(), &mut guesses);
            let [guess] = guesses;
            guess.span.doubt
        };
        let cargo = "/t/debug/deps/x-0123456789abcdef --test-threads=1";
        assert_eq!(doubt(cargo), Some(Doubt::Boundary(2_000_000)));
        assert_eq!(doubt("/usr/bin/other"), None);
    }

    /// Checks that the unseen time of a test is the sum, over all threads, of the parts of unseen stretches that lie
    /// inside the test.
    #[test]
    fn a_test_has_the_unseen_time_of_all_threads_inside_it() {
        let stretches = Unseen::new(vec![(90, 100), (0, 40), (10, 30), (35, 60)]);
        let unseen = |from: u64, to: u64| stretches.between(Ktime(from), Ktime(to));
        assert_eq!(unseen(20, 50), 20 + 10 + 15);
        assert_eq!(unseen(60, 90), 0);
        assert_eq!(unseen(0, 200), 40 + 20 + 25 + 10);
    }
}
