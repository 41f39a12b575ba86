//! Finds processes that ran a single test or a single suite: their command lines contain its name, in the spelling of
//! the test runner.

use std::collections::{HashMap, HashSet};

use tr_analyze::model::{Doubt, ProcessIx};

use super::placer::{Placer, Times, LONGER_LIFE};
use super::report::{Case, Report, Suite, LEAST_ERROR};
use super::runner::MOST_TRIED;
use super::serial::{self, Place, Test};
use crate::lookup::{base, signed, Lookup, CLOCKS};
use tr_insight::recordings::imports::TOLERATED_PART;

/// The number of words at the start of a command line that can name the program. A decision: they are an interpreter
/// and its script.
const SCRIPT: usize = 2;

/// The largest number of components at the end of a path that are compared with the name of a suite.
const MOST_COMPONENTS: usize = 8;

/// The processes whose command lines contain names of tests or suites. Each list is in the order of the processes'
/// starts.
#[derive(Debug, Default)]
pub struct OwnProcesses {
    of_tests: HashMap<Vec<u8>, Vec<ProcessIx>>,
    /// The processes that bats began for one test each: their command lines contain the name of the test's shell
    /// function.
    of_bats: HashSet<ProcessIx>,
    /// For each test, the processes whose program, or whose interpreter's script, has the name of the test.
    of_programs: HashMap<Vec<u8>, Vec<ProcessIx>>,
    /// Processes that are test runners, because at least two of their children each ran a program with the name of a
    /// test. For each of these tests, no other process ran a program with that name.
    began_tests: HashSet<ProcessIx>,
    /// For each suite of a report without times, the processes whose command lines name this suite only.
    of_suites: HashMap<Vec<u8>, Vec<ProcessIx>>,
}

impl OwnProcesses {
    /// Searches command lines of processes for the names of a report's tests and for the names of suites without times.
    pub fn new(report: &Report, lookup: &Lookup<'_>) -> OwnProcesses {
        let cases = report.suites.iter().flat_map(|suite| &suite.cases);
        let names = cases.map(|case| (case.plain_name().as_bytes().to_vec(), Vec::new()));
        let suites = report.suites.iter().filter(|suite| suite.is_timeless());
        let suites = suites.map(|suite| (suite.attributes.name.as_bytes().to_vec(), Vec::new()));
        let mut own = OwnProcesses {
            of_tests: names.collect(),
            of_bats: HashSet::new(),
            of_programs: HashMap::new(),
            began_tests: HashSet::new(),
            of_suites: suites.collect(),
        };
        own.of_suites.remove(&b""[..]);
        for ix in lookup.analysis.process_ids() {
            // A test script may end with an exec of another program, so all programs of a process are examined.
            let process = lookup.analysis.process(ix);
            let execs = process.execs.iter().map(|exec| &exec.argv);
            let lines = execs.chain(process.execs.is_empty().then_some(&process.argv));
            let programs = lines.clone().flat_map(|line| line.args().take(SCRIPT));
            for program in programs.flat_map(|word| [base(word), stem(base(word))]) {
                own.add_program(program, ix);
            }
            // A name can also be the value of an option, as in `--gtest_filter=NAME`.
            let words = lines.flat_map(|line| line.args()).flat_map(|arg| {
                let equals = arg.iter().position(|byte| *byte == b'=');
                let value = equals.and_then(|at| arg.get(at + 1..));
                std::iter::once(arg).chain(value)
            });
            let mut suites: Vec<Vec<u8>> = Vec::new();
            for word in words {
                own.add_test(word, ix);
                own.add_test(base(word), ix);
                own.add_test(stem(base(word)), ix);
                if let Some(name) = function_of_bats(word) {
                    if own.add_test(&name, ix) {
                        own.of_bats.insert(ix);
                    }
                }
                if !own.of_suites.is_empty() {
                    suites
                        .extend(suite_names(word).filter(|name| own.of_suites.contains_key(name)));
                }
            }
            suites.sort_unstable();
            suites.dedup();
            // A program whose command line names several suites runs these suites one after the other, so it is not the
            // process of a single suite.
            if let [only] = &suites[..] {
                own.of_suites.entry(only.clone()).or_default().push(ix);
            }
        }
        own.find_runners(lookup);
        own
    }

    /// Finds the processes that started one program for each of several tests.
    fn find_runners(&mut self, lookup: &Lookup<'_>) {
        let mut counts: HashMap<ProcessIx, usize> = HashMap::new();
        for programs in self.of_programs.values() {
            if let [only] = programs[..] {
                if let Some(parent) = lookup.analysis.process(only).parent {
                    *counts.entry(parent).or_default() += 1;
                }
            }
        }
        let several = counts.into_iter().filter(|(_, count)| *count > 1);
        self.began_tests = several.map(|(parent, _)| parent).collect();
    }

    /// Notes that a process ran a program or a script of this name, if the name is that of a test.
    fn add_program(&mut self, name: &[u8], ix: ProcessIx) {
        if self.of_tests.contains_key(name) {
            let programs = self.of_programs.entry(name.to_vec()).or_default();
            if programs.last() != Some(&ix) {
                programs.push(ix);
            }
        }
    }

    /// The only process that ran a program with the name of a test, if the parent of this process also started programs
    /// for other tests. The life of the process is not compared with the test's length, because on a busy machine the
    /// process can live much longer than the test.
    fn program_of(&self, name: &[u8], lookup: &Lookup<'_>) -> Option<ProcessIx> {
        let [only] = self.of_programs.get(name)?[..] else {
            return None;
        };
        let parent = lookup.analysis.process(only).parent?;
        self.began_tests.contains(&parent).then_some(only)
    }

    /// Notes that the command line of a process contains this word, if the word is the name of a test. Returns whether
    /// the word is the name of a test.
    fn add_test(&mut self, name: &[u8], ix: ProcessIx) -> bool {
        let own = self.of_tests.get_mut(name);
        let is_test = own.is_some();
        if let Some(own) = own.filter(|own| own.last() != Some(&ix)) {
            own.push(ix);
        }
        is_test
    }
}

/// The name of a file without its last extension.
fn stem(name: &[u8]) -> &[u8] {
    let stem = name.rsplitn(2, |byte| *byte == b'.').last();
    stem.unwrap_or(name)
}

/// The name of the test for which the test runner bats defines a shell function with the given name. bats writes
/// `test_` before the name, `_` for a blank, and a code such as `-2e` for any other character.
fn function_of_bats(word: &[u8]) -> Option<Vec<u8>> {
    let mut rest = word.strip_prefix(b"test_")?;
    let mut name = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let byte = match *first {
            b'_' => b' ',
            b'-' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            byte => byte,
        };
        name.push(byte);
    }
    Some(name)
}

/// The names under which a report can have the suite of a test file: the file's path, or the last parts of the path,
/// with `_` for each special character.
fn suite_names(word: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let slashes = word.iter().enumerate().rev();
    let slashes = slashes.filter(|(_, byte)| **byte == b'/');
    let starts = slashes
        .map(|(at, _)| at + 1)
        .chain([0])
        .take(MOST_COMPONENTS);
    starts.filter_map(|at| {
        let path = word.get(at..)?.iter();
        let spelled = path.map(|byte| {
            if byte.is_ascii_alphanumeric() {
                *byte
            } else {
                b'_'
            }
        });
        Some(spelled.collect())
    })
}

impl Case {
    /// The name of a test without the class name before the colon, which Meson writes.
    fn plain_name(&self) -> &str {
        let (name, class) = (&self.attributes.name, &self.attributes.class);
        let rest = name.strip_prefix(class.as_str());
        let rest = rest.and_then(|rest| rest.strip_prefix(':'));
        rest.filter(|_| !class.is_empty()).unwrap_or(name)
    }
}

impl Suite {
    /// Whether a suite of a report has neither a length nor a time, and all of its tests have neither a length nor a
    /// time.
    fn is_timeless(&self) -> bool {
        let cases = self.cases.iter().map(|case| &case.attributes);
        let mut all = cases.chain([&self.attributes]);
        all.all(|attributes| attributes.length.is_none() && attributes.at.is_none())
    }
}

impl Placer<'_> {
    /// The process whose command line contains the name of a test, and whose life agrees with the test's length and
    /// time; of several, the ancestor of all others. If there is none, the only process that ran a program with the
    /// test's name (`program_of`). A process is returned for one test only.
    pub fn own_process(&mut self, case: &Case, times: Option<Times>) -> Option<ProcessIx> {
        let analysis = self.lookup.analysis;
        let length = case.attributes.length?;
        let fits = |ix: &&ProcessIx| {
            let process = analysis.process(**ix);
            let (start, end) = (signed(process.start), signed(process.end));
            let longer = end.saturating_sub(start).saturating_sub(length);
            let at_its_time = case.attributes.at.is_none()
                || times.is_none_or(|times| {
                    let early = times.from.saturating_sub(LONGER_LIFE);
                    early <= start && start <= times.from.saturating_add(times.digit + LONGER_LIFE)
                });
            // A process of bats also prepares its test, and this can take long on a busy machine. So the process may
            // live longer than the test.
            let is_as_long = longer.unsigned_abs() <= LONGER_LIFE.max(length / 5).unsigned_abs()
                || longer > 0 && self.own.of_bats.contains(*ix);
            is_as_long && at_its_time && !self.used.contains(*ix)
        };
        let name = case.plain_name().as_bytes();
        let own = self.own.of_tests.get(name)?;
        let first = self.outermost(own.iter().filter(fits).copied());
        let program = || self.own.program_of(name, self.lookup);
        let first = first.or_else(|| program().filter(|ix| !self.used.contains(ix)))?;
        self.used.insert(first);
        Some(first)
    }

    /// The process whose command line names a suite that has no time. If there are several such processes, the result
    /// is the one that is an ancestor of all others; `None` if there is none.
    pub fn suite_process(&self, suite: &Suite) -> Option<ProcessIx> {
        let own = self.own.of_suites.get(suite.attributes.name.as_bytes())?;
        self.outermost(own.iter().copied())
    }

    /// The first of the given processes, if it is an ancestor of all others; otherwise `None`. Such an ancestor is a
    /// wrapper such as `timeout`, whose command line contains the words of the wrapped program.
    fn outermost(&self, mut own: impl Iterator<Item = ProcessIx>) -> Option<ProcessIx> {
        let first = own.next()?;
        let is_around = |other: ProcessIx| {
            let mut lineage = self.lookup.analysis.lineage(other).take(MOST_TRIED);
            lineage.any(|ix| ix == first)
        };
        own.take(MOST_TRIED).all(is_around).then_some(first)
    }

    /// The place of a test in a process that ran only this test. The process lived longer than the test, because the
    /// runner also prepared the test and cleaned up in this process. `None` if the process lived only a little longer
    /// than the test. In this case, the whole life of the process counts as the place of the test, unless the recording
    /// proves a better place.
    pub fn within_own(&mut self, process: ProcessIx, case: &Case) -> Option<Times> {
        let length = case.attributes.length?;
        let life = self.lookup.analysis.process(process);
        let around = signed(life.start)..=signed(life.end);
        let lived = around.end().saturating_sub(*around.start());
        let longer = lived.saturating_sub(length);
        if longer <= CLOCKS / 4 {
            return None;
        }
        let test = Test {
            begin: None,
            end: None,
            length,
            error: case.attributes.digit.max(LEAST_ERROR),
            between: case.attributes.between(),
        };
        let facts = self.facts(process);
        let places = facts.and_then(|facts| serial::places(&[test], &around, facts.active(1)));
        let place = places.and_then(|mut places| places.pop());
        let place = place.unwrap_or(Place {
            begin: *around.start()..=around.end().saturating_sub(length),
            end: around.start().saturating_add(length)..=*around.end(),
        });
        let error = place.error();
        let is_off = error > length / TOLERATED_PART.cast_signed();
        if is_off && longer <= CLOCKS.max(length / TOLERATED_PART.cast_signed()) {
            return None;
        }
        Some(Times {
            from: *place.begin.start(),
            to: *place.end.end(),
            digit: 0,
            early: error,
            error: Some(error),
            bounds: None,
            is_even: false,
            doubt: is_off.then_some(Doubt::Off(error.unsigned_abs())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bats_spells_the_name_of_a_test_as_a_function() {
        let name = |word: &str| function_of_bats(word.as_bytes());
        let want = |name: &str| Some(name.as_bytes().to_vec());
        assert_eq!(name("test_b_sleeps_0"), want("b sleeps 0"));
        assert_eq!(name("test_a-2eb-5fc-c3-a4"), want("a.b_c\u{e4}"));
        assert_eq!(name("test_a-2"), None);
        assert_eq!(name("test_a-zz"), None);
        assert_eq!(name("b_sleeps"), None);
    }

    #[test]
    fn a_suite_has_the_name_of_its_file() {
        let names = |word: &str| {
            let names = suite_names(word.as_bytes());
            names
                .map(|name| String::from_utf8_lossy(&name).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("t/a/b.t"), ["b_t", "a_b_t", "t_a_b_t"]);
        assert_eq!(names("b.t"), ["b_t"]);
        assert_eq!(names(""), [""]);
    }
}
