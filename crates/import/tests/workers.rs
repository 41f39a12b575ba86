//! Tests the places of tests that a recorded runner gave to several workers (`fixtures/junit/workers.py`).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

use tr_analyze::model::{Analysis, Doubt, Imported};
use tr_analyze::{analyze, Options};
use tr_format::event::Argv;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_import::read;
use tr_placing::ToolFile;

const MS: i64 = 1_000_000;

/// A recording, and the report of its runner, which has the true times.
struct Case {
    analysis: Analysis,
    report: &'static str,
}

/// A test of a report with its place in the recording, compared with the truth.
struct Test {
    span: Imported,
    /// The difference between the placed beginning and the true beginning, in nanoseconds.
    off: i64,
    /// Whether the test is placed on the process that ran it.
    is_own: bool,
}

impl Case {
    fn new(bytes: &[u8], report: &'static str) -> Case {
        let trace = Trace::open(Source::bytes(bytes.to_vec())).unwrap();
        let options = Options {
            timeline: true,
            ..Options::default()
        };
        let analysis = analyze(&trace, &options);
        Case { analysis, report }
    }

    /// The value of an attribute of the report's element with this name.
    fn truth(&self, name: &str, attribute: &str) -> &'static str {
        let line = self.report.lines();
        let mut line = line.filter(|line| line.contains(&format!(" name=\"{name}\"")));
        let (_, after) = line
            .next()
            .unwrap()
            .split_once(&format!(" {attribute}=\""))
            .unwrap();
        after.split('"').next().unwrap()
    }

    /// A time in an attribute of the report, in nanoseconds since 1970.
    fn time(&self, name: &str, attribute: &str) -> i64 {
        (self.truth(name, attribute).parse::<f64>().unwrap() * 1e9) as i64
    }

    /// Places the tests of a report in the recording, and returns them ordered by name.
    fn place(&self, report: &str) -> Vec<Test> {
        let kind = self.report.split('"').nth(1).unwrap();
        let file = ToolFile {
            path: b"other.xml".to_vec(),
            written: Some(self.time(kind, "written")),
            file: read(report.as_bytes()).unwrap().unwrap(),
        };
        let meta = &self.analysis.meta;
        let tests = tr_placing::place(&[file], &self.analysis).spans.into_iter();
        let tests = tests.filter(|span| span.result.is_some()).map(|span| {
            let name = String::from_utf8_lossy(&span.name).into_owned();
            let began = self.time(&name, "began") - meta.start_clock.real as i64;
            let process = self.analysis.process(span.process);
            let words: Vec<_> = process.argv.args().map(String::from_utf8_lossy).collect();
            Test {
                off: span.from.since(meta.start) as i64 - began,
                is_own: words
                    .join(" ")
                    .contains(&format!(" work {kind} {}", self.truth(&name, "worker"))),
                span,
            }
        });
        let mut tests: Vec<Test> = tests.collect();
        tests.sort_by_key(|test| test.span.name.to_vec());
        tests
    }

    /// The report, divided into a suite for each worker.
    fn by_worker(&self) -> String {
        let lines = |worker: usize| {
            let of_worker = format!("worker=\"{worker}\"");
            let lines = self
                .report
                .lines()
                .filter(move |line| line.contains(&of_worker));
            lines.collect::<String>()
        };
        let suite = |worker: usize| {
            format!(
                "<testsuite name=\"s{worker}\">{}</testsuite>",
                lines(worker)
            )
        };
        format!("<testsuites>{}{}</testsuites>", suite(0), suite(1))
    }
}

impl Test {
    /// Whether the place of the test is proven. Also verifies that the true time is within the error of a proven place.
    fn is_proven(&self) -> bool {
        let length = self.span.to.since(self.span.from);
        let is_proven = self.span.doubt.is_none() && self.span.error <= length / 10;
        let error = i64::try_from(self.span.error).unwrap() + MS;
        assert!(
            !is_proven || self.is_own && self.off.abs() <= error,
            "{:?} is off by {} ns",
            self.span,
            self.off
        );
        is_proven
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.span.name).into_owned()
    }
}

fn proven(tests: &[Test]) -> Vec<String> {
    let proven = tests.iter().filter(|test| test.is_proven());
    proven.map(Test::name).collect()
}

macro_rules! case {
    ($name:literal) => {
        Case::new(
            include_bytes!(concat!("../../../fixtures/junit/", $name, ".bin")),
            include_str!(concat!("../../../fixtures/junit/", $name, ".xml")),
        )
    };
}

/// The report has the tests of both workers, but does not say which worker ran which test.
#[test]
fn tests_are_in_the_worker_that_can_have_run_them() {
    let case = case!("workers");
    let found = proven(&case.place(case.report));
    assert!(found.len() >= 4, "{found:?}");
    // The report lists failed tests first, so its order does not show when they ran, nor in which worker.
    let failed = case.report.replacen("/>", "><failure/></testcase>", 1);
    assert_eq!(proven(&case.place(&failed)), Vec::<String>::new());
}

/// pytest does not count the time between the parts of a test, so its lengths do not show which worker ran a test.
#[test]
fn the_lengths_of_pytest_tell_nothing_of_its_workers() {
    let case = case!("workers");
    let report = case
        .report
        .replacen("name=\"workers\"", "name=\"pytest\"", 1);
    let found = proven(&case.place(&report));
    assert_eq!(found, Vec::<String>::new());
}

/// By its lengths, a suite of two tests could have run in either worker. But in one of them another suite ran at that
/// time.
#[test]
fn a_process_runs_one_suite_at_a_time() {
    let case = case!("workers");
    let all = case.by_worker();
    let (first, second) = all.split_once("<testsuite name=\"s1\">").unwrap();
    let is_meant = |test: &&str| test.contains("computes_1_1") || test.contains("naps_1_2");
    let tests: String = second.split_inclusive("/>").filter(is_meant).collect();
    // The reported length of the test is set to the longer of two naps, one in each worker. So either worker can have
    // run the test.
    let lengths = ["naps_0_1", "naps_1_2"].map(|name| case.truth(name, "time"));
    let tests = tests.replace(lengths[1], lengths.iter().max().unwrap());
    let alone =
        format!("<testsuites><testsuite/><testsuite name=\"s\">{tests}</testsuite></testsuites>");
    let name = "naps_1_2".to_owned();
    assert!(!proven(&case.place(&alone)).contains(&name));
    let both = format!("{first}<testsuite name=\"s1\">{tests}</testsuite></testsuites>");
    assert!(proven(&case.place(&both)).contains(&name), "{both}");
}

/// The recording, with both workers turned into test programs.
fn with_test_programs() -> Case {
    let mut case = case!("workers");
    for process in &mut case.analysis.processes {
        let words: Vec<String> = process
            .argv
            .args()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        if words.iter().any(|word| word == "work") {
            let words = std::iter::once("pytest".to_owned()).chain(words);
            process.argv = Argv::from_args(words);
            process
                .execs
                .iter_mut()
                .for_each(|exec| exec.argv = process.argv.clone());
        }
    }
    case
}

/// By chance, the sleep of one test fits into only one of the two worker processes.
#[test]
fn one_sleep_does_not_tell_which_of_two_test_programs_ran_a_suite() {
    let case = with_test_programs();
    let all = case.by_worker();
    let of = |names: &[&str]| {
        let tests = all.split_inclusive("/>");
        let tests = tests.filter(|test| names.iter().any(|name| test.contains(name)));
        let tests = tests.map(|test| test.split_at(test.find("<testcase").unwrap()).1);
        let tests: String = tests.collect();
        format!("<testsuites><testsuite/><testsuite name=\"s\">{tests}</testsuite></testsuites>")
    };
    let found = case.place(&of(&["naps_0_1"]));
    assert_eq!(proven(&found), Vec::<String>::new());
    let found = proven(&case.place(&of(&["naps_0_1", "helps_0_2", "naps_0_3"])));
    assert!(found.contains(&"naps_0_1".to_owned()), "{found:?}");
}

/// Both workers are test programs that lived while each suite ran.
#[test]
fn one_of_several_test_programs_is_not_known_as_the_runner() {
    let case = with_test_programs();
    // Each suite has the time of its first test, in milliseconds since 1970.
    let stamped = |worker: usize, report: String| {
        let first = if worker == 0 {
            "computes_0_0"
        } else {
            "naps_1_0"
        };
        let began = case.time(first, "began") / MS;
        report.replace(
            &format!("name=\"s{worker}\""),
            &format!("name=\"s{worker}\" timestamp=\"{began}\""),
        )
    };
    let report = stamped(1, stamped(0, case.by_worker()));
    let found = proven(&case.place(&report));
    for name in ["naps_0_1", "naps_0_3", "naps_1_0", "naps_1_2", "naps_1_3"] {
        assert!(found.contains(&name.to_owned()), "{name}: {found:?}");
    }
}

/// Two workers did the same work. So it is not known which of them ran a suite, but the suite has the same figures in
/// either one.
#[test]
fn suites_that_fit_several_processes_have_figures_that_are_equal_in_all() {
    let case = case!("equal");
    let tests = case.place(&case.by_worker());
    let naps = tests.iter().filter(|test| test.name().starts_with("naps"));
    let naps: Vec<_> = naps
        .map(|test| (test.span.doubt, test.is_proven()))
        .collect();
    assert_eq!(naps, [(None, false); 2]);
}

#[test]
fn a_process_that_hears_of_the_tests_did_not_run_them() {
    let case = case!("listener");
    let found = proven(&case.place(case.report));
    assert_eq!(found, ["helps_0_2", "naps_0_1", "naps_0_3"]);
}

/// If the workers began late, the lengths of some tests of both workers can add up to little more than the length of
/// the suite. Such a sum does not prove that one process ran all these tests.
#[test]
fn the_sum_of_the_lengths_does_not_prove_one_process() {
    let case = case!("workers");
    let lines: Vec<&str> = case
        .report
        .lines()
        .filter(|line| line.contains("<testcase"))
        .collect();
    let mut compared = 0;
    for mask in 1_u32..1 << lines.len() {
        let some = lines
            .iter()
            .enumerate()
            .filter(|(at, _)| mask >> at & 1 == 1);
        let some: Vec<&str> = some.map(|(_, line)| *line).collect();
        let value = |line: &str, attribute: &str| {
            let (_, after) = line.split_once(&format!(" {attribute}=\"")).unwrap();
            let text = after.split('"').next().unwrap();
            (text.parse::<f64>().unwrap() * 1e9) as i64
        };
        let began = some.iter().map(|line| value(line, "began")).min().unwrap();
        let ended = some
            .iter()
            .map(|line| value(line, "began") + value(line, "time"));
        let ended = ended.max().unwrap();
        for before in [1, 120] {
            let at = began / MS - before;
            let length = (ended / MS - at + 1) as f64 / 1e3;
            let report = format!(
                "<testsuite name=\"pytest\" timestamp=\"{at}\" time=\"{length}\">{}</testsuite>",
                some.concat()
            );
            for test in case.place(&report) {
                let error = i64::try_from(test.span.error).unwrap() + MS;
                if test.span.doubt.is_none_or(Doubt::has_place) {
                    compared += 1;
                    assert!(
                        test.off.abs() <= error,
                        "{:?} off by {}: {report}",
                        test.span,
                        test.off
                    );
                }
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}
