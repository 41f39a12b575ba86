//! Tests the places of tests that each have a thread, which the runner named after the test.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)] // in a test

mod common;

use tr_analyze::model::{Analysis, ProcessIx, Thread, ThreadIx};
use tr_format::event::{Comm, Ktime, Tid};
use tr_import::read;
use tr_insight::recordings::imports::Imports;
use tr_insight::steps::Steps;
use tr_placing::ToolFile;

use common::{recording, MS, REAL};

/// A test program of cargo with these threads: the name, the number of the thread that started it, and the beginning
/// and end in ms. The main thread has number 0.
fn program(threads: &[(&str, u32, u64, u64)]) -> Analysis {
    let line = "/t/debug/deps/x-0123456789abcdef --test-threads=2";
    let mut analysis = recording(&[(1, None, 0, 9_000, line)]);
    for (name, starter, from, to) in threads {
        let number = analysis.threads.len() as u32;
        let at = |ms: &u64| Ktime((1000 + ms) * MS);
        let life = (at(from), at(to));
        let mut thread = Thread::new(Tid(number + 1), ProcessIx(0), life);
        thread.comm = Comm::new(name.as_bytes());
        thread.parent = Some(ThreadIx(*starter));
        analysis.threads.push(thread);
        analysis.processes[0].threads.push(ThreadIx(number));
    }
    analysis
}

/// Places tests with these names and lengths. Their report was written 8 s after the beginning of the recording.
fn place(tests: &[(&str, &str)], analysis: &Analysis) -> Imports {
    let cases = tests
        .iter()
        .map(|(name, time)| format!("<testcase classname='unknown' name='{name}' time='{time}'/>"));
    let report = format!("<testsuite>{}</testsuite>", cases.collect::<String>());
    let file = ToolFile {
        path: b"out.xml".to_vec(),
        written: Some((REAL + 8_000 * MS) as i64),
        file: read(report.as_bytes()).unwrap().unwrap(),
    };
    tr_placing::place(&[file], analysis)
}

/// For each test that has a thread, the number of the thread, and its beginning and end in ms.
fn lives(tests: &[(&str, &str)], analysis: &Analysis) -> Vec<(u32, u64, u64)> {
    let spans = place(tests, analysis).spans.into_iter();
    let since = |time: Ktime| time.since(analysis.start) / MS;
    let lives = spans
        .filter(|span| span.doubt.is_none())
        .filter_map(|span| {
            let thread = span.thread?;
            Some((thread.0, since(span.from), since(span.to)))
        });
    lives.collect()
}

const TWO: [(&str, &str); 2] = [("io::reads_a_file", "0.300"), ("io::writes", "0.410")];

/// Both tests ran at the same time, and one of them started a thread that inherited its name.
#[test]
fn a_thread_with_the_name_of_a_test_is_the_test() {
    let analysis = program(&[
        ("io::reads_a_fil", 0, 1_000, 1_301),
        ("io::writes", 0, 1_002, 1_413),
        ("io::writes", 2, 1_005, 1_400),
    ]);
    let want = [(1, 1_000, 1_301), (2, 1_002, 1_413)];
    assert_eq!(lives(&TWO, &analysis), want);
    // Each test has only one step, with the name that the report has.
    let imports = place(&TWO, &analysis);
    let steps = Steps::new(&analysis, &imports.spans);
    let tests = steps.list().iter();
    let tests = tests.filter(|step| step.thread != Some(ThreadIx(0)));
    let names: Vec<&str> = tests.map(|step| step.name.whole()).collect();
    assert_eq!(names, ["unknown io::reads_a_file", "unknown io::writes"]);
}

/// The kernel keeps only the first 15 bytes of a name, which are the same for both tests.
#[test]
fn the_lengths_tell_threads_of_one_name_apart() {
    let tests = [("a_long_module::a", "0.900"), ("a_long_module::b", "0.100")];
    let name = "a_long_module::";
    let analysis = program(&[(name, 0, 1_000, 1_110), (name, 0, 1_110, 2_012)]);
    assert_eq!(
        lives(&tests, &analysis),
        [(2, 1_110, 2_012), (1, 1_000, 1_110)]
    );
    // By its length, each thread can be either test.
    let equal = program(&[(name, 0, 1_000, 1_105), (name, 0, 1_110, 1_212)]);
    let tests = [("a_long_module::a", "0.100"), ("a_long_module::b", "0.101")];
    assert_eq!(lives(&tests, &equal), []);
}

/// In turn: the tests ran twice before the report was written; the thread had not ended when the report was written.
#[test]
fn threads_of_another_run_are_not_the_tests() {
    let once = ("io::writes", 0, 1_002, 1_413);
    let tests = &TWO[1..];
    let lives = |threads: &[_]| lives(tests, &program(threads));
    assert_eq!(lives(&[once, ("io::writes", 0, 2_000, 2_412)]), []);
    assert_eq!(lives(&[("io::writes", 0, 7_800, 8_212)]), []);
    // One of the threads began only after the report was written.
    let after = ("io::writes", 0, 8_200, 8_612);
    assert_eq!(lives(&[once, after]), [(1, 1_002, 1_413)]);
    // The length of the thread is not that of the test.
    assert_eq!(lives(&[("io::writes", 0, 1_000, 1_400)]), []);
    assert_eq!(lives(&[("io::writes", 0, 1_000, 1_600)]), []);
}
