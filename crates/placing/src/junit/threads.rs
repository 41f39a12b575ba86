//! Finds threads that ran a single test each and have its name: some runners, such as Rust's libtest, name a thread
//! after its test.
//!
//! The kernel keeps only 15 bytes of a thread's name, so the threads of several tests can have the same name. Such
//! threads are distinguished by the lengths of the tests.

use std::collections::{BTreeMap, HashSet};

use tr_analyze::model::{Analysis, Doubt, Imported, ImportedKind, TestResult, ThreadIx};

use super::placer::{Placer, LONGER_LIFE};
use super::report::{Case, Suite, LEAST_ERROR};
use crate::lookup::{imported, signed, CLOCKS};
use tr_insight::recordings::imports::TOLERATED_PART;

/// The number of bytes of a thread's name that the kernel keeps (`TASK_COMM_LEN` without the zero at the end).
const NAME: usize = 15;

/// The largest number of threads with the same name that are compared with their tests. A bound of the work.
const SAME_NAMES: usize = 200;

/// Identifies a test of a report: the index of its suite, and the index of the test in the suite.
type CaseIx = (usize, usize);

/// The tests and the threads that share one name.
#[derive(Default)]
struct Named<'a> {
    tests: Vec<(CaseIx, &'a Case)>,
    threads: Vec<ThreadIx>,
}

/// The name of each thread of the recording that may have been named after a test: it is no main thread, it began and
/// ended in the analyzed time, and its name differs from that of the thread that started it.
fn named_threads(analysis: &Analysis) -> impl Iterator<Item = (&[u8], ThreadIx)> {
    let others = analysis
        .process_ids()
        .flat_map(|ix| analysis.process(ix).threads.iter().skip(1));
    others.filter_map(|ix| {
        let thread = analysis.thread(*ix);
        let starter = thread.parent.map(|parent| analysis.thread(parent));
        let is_named = starter.is_some_and(|starter| starter.comm != thread.comm);
        let is_whole = !thread.started_before && !thread.alive;
        (is_named && is_whole).then_some((thread.comm.bytes(), *ix))
    })
}

impl Case {
    /// The names that a runner can give to the thread of a test, cut as the kernel cuts them.
    fn thread_names(&self) -> impl Iterator<Item = Vec<u8>> {
        let (name, class) = (&self.attributes.name, &self.attributes.class);
        let inner = class.split_once("::").map(|(_, inner)| inner);
        let in_class = [Some(class.as_str()), inner].into_iter().flatten();
        let in_class = in_class.map(|class| format!("{class}::{name}"));
        let names: Vec<String> = std::iter::once(name.clone()).chain(in_class).collect();
        let cut = |name: String| name.into_bytes().into_iter().take(NAME).collect();
        names.into_iter().map(cut)
    }

    /// Whether a process or thread that lived from `start` to `end` can be the test and nothing else.
    fn is_life(&self, start: i64, end: i64) -> bool {
        self.attributes.length.is_some_and(|length| {
            let longer = end.saturating_sub(start).saturating_sub(length);
            let error = self.attributes.digit.max(LEAST_ERROR);
            -error <= longer && longer <= LONGER_LIFE.max(length / 5).saturating_add(error)
        })
    }
}

impl Placer<'_> {
    /// For each suite of a report and each of its tests, the thread that ran only this test, if there is one.
    pub fn threads_of(&self, suites: &[Suite]) -> Vec<Vec<Option<ThreadIx>>> {
        let none = |suite: &Suite| vec![None; suite.cases.len()];
        let mut found: Vec<Vec<Option<ThreadIx>>> = suites.iter().map(none).collect();
        for named in self.by_thread_name(suites).into_values() {
            for ((suite, case), thread) in self.pairs(named) {
                let slot = found.get_mut(suite).and_then(|cases| cases.get_mut(case));
                slot.into_iter().for_each(|slot| *slot = Some(thread));
            }
        }
        found
    }

    /// The tests of a report and the threads of the recording, by their common name. A test that was skipped has no
    /// thread.
    fn by_thread_name<'s>(&self, suites: &'s [Suite]) -> BTreeMap<Vec<u8>, Named<'s>> {
        let analysis = self.lookup.analysis;
        let known: HashSet<&[u8]> = named_threads(analysis).map(|(name, _)| name).collect();
        let mut all: BTreeMap<Vec<u8>, Named<'s>> = BTreeMap::new();
        for (at, suite) in suites.iter().enumerate() {
            for (of_suite, case) in suite.cases.iter().enumerate() {
                let mut names = case.thread_names();
                let name = names.find(|name| known.contains(name.as_slice()));
                if let Some(name) = name.filter(|_| case.result != TestResult::Skipped) {
                    let tests = &mut all.entry(name).or_default().tests;
                    tests.push(((at, of_suite), case));
                }
            }
        }
        let is_after = |time: i64| self.written.is_some_and(|written| written < time);
        for (name, thread) in named_threads(analysis) {
            let named = all.get_mut(name);
            if let Some(named) = named.filter(|_| !is_after(signed(analysis.thread(thread).end))) {
                named.threads.push(thread);
            }
        }
        // The report may belong to another run with the same tests. In that case, equal names of tests and threads
        // prove nothing.
        all.retain(|_, named| {
            named.tests.iter().all(|((suite, _), _)| {
                let suite = suites.get(*suite);
                suite.is_some_and(|suite| self.is_proven_of_recording(suite))
            })
        });
        all
    }

    /// Whether a suite certainly ran in this recording: its report was written during the recording, or the report has
    /// times of the day that lie in the recording.
    fn is_proven_of_recording(&self, suite: &Suite) -> bool {
        let mut cases = suite.cases.iter().map(|case| case.attributes.at);
        let has_date = suite.attributes.at.is_some() || cases.any(|date| date.is_some());
        (has_date || self.written.is_some()) && self.is_of_recording(suite)
    }

    /// The pairs of a test and a thread with a common name, as far as no other pairing of these tests and threads is
    /// possible. If the numbers of tests and threads with this name differ, the name proves nothing.
    fn pairs(&self, named: Named<'_>) -> Vec<(CaseIx, ThreadIx)> {
        let Named {
            mut tests,
            mut threads,
        } = named;
        let mut pairs = Vec::new();
        let count = tests.len();
        let room = self.spend(count.saturating_mul(count));
        if count != threads.len() || count > SAME_NAMES || room.is_none() {
            return pairs;
        }
        let analysis = self.lookup.analysis;
        let fits = |case: &Case, thread: ThreadIx| {
            let life = analysis.thread(thread);
            case.is_life(signed(life.start), signed(life.end))
        };
        // If only one thread fits a test, the thread and the test belong together, so this thread is no longer possible
        // for other tests.
        loop {
            let only = tests.iter().enumerate().find_map(|(at, (_, case))| {
                let possible = threads.iter().enumerate();
                let mut possible = possible.filter(|(_, thread)| fits(case, **thread));
                let (thread, _) = possible.next()?;
                possible.next().is_none().then_some((at, thread))
            });
            let Some((test, thread)) = only else {
                return pairs;
            };
            let (test, _) = tests.swap_remove(test);
            pairs.push((test, threads.swap_remove(thread)));
        }
    }

    /// Places a test that has a thread of its own. The place of the test is the whole life of the thread. The test has
    /// no figures (such as its CPU time) if the thread lived much longer than the test.
    pub fn own_thread_test(&mut self, case: &Case, name: &str, thread: ThreadIx) {
        let life = self.lookup.analysis.thread(thread);
        let length = case.attributes.length.unwrap_or(0);
        let lived = signed(life.end).saturating_sub(signed(life.start));
        let longer = lived.saturating_sub(length).max(0);
        let is_off = longer > CLOCKS.max(length / TOLERATED_PART.cast_signed());
        let off = longer.unsigned_abs();
        let at = (life.process, (life.start, life.end));
        let span = Imported {
            thread: Some(thread),
            brief: case.attributes.brief(name),
            file: case.attributes.test_file(),
            result: Some(case.result),
            error: if is_off { off } else { 0 },
            doubt: is_off.then_some(Doubt::Off(off)),
            ..imported(ImportedKind::Test, name.as_bytes(), at)
        };
        self.placed.add_test(case.number, span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::junit::report::Attributes;

    fn case(class: &str, name: &str, length: i64) -> Case {
        Case {
            attributes: Attributes {
                name: name.to_owned(),
                class: class.to_owned(),
                length: Some(length),
                digit: 1_000_000,
                ..Attributes::default()
            },
            number: 0,
            result: TestResult::Passed,
        }
    }

    #[test]
    fn the_kernel_cuts_the_name_of_a_thread() {
        let names = |class: &str, name: &str| {
            let names = case(class, name, 1).thread_names();
            names
                .map(|name| String::from_utf8_lossy(&name).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("", "tests::t03_shell_breaks"),
            ["tests::t03_shel", "::tests::t03_sh"]
        );
        assert_eq!(
            names("crate::io", "reads"),
            ["reads", "crate::io::read", "io::reads"]
        );
    }

    #[test]
    fn the_life_of_a_thread_is_that_of_its_test_or_a_little_longer() {
        let case = case("", "a", 1_000_000_000);
        let is_life = |ms: i64| case.is_life(5, 5 + ms * 1_000_000);
        assert_eq!(
            [998, 999, 1_000, 1_201, 1_202].map(is_life),
            [false, true, true, true, false]
        );
    }
}
