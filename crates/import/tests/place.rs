//! Tests how spans of other tools' files are placed on recorded processes, in cases where processes are easily mistaken
//! for each other.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)] // in a test

mod common;

use tr_analyze::model::{Analysis, Doubt};
use tr_format::event::{Clock, Ktime};
use tr_format::meta::Summary;
use tr_import::read;
use tr_insight::recordings::imports::Import;

use common::{recording, tool_file, Line, MS, REAL};

/// The spans of a file, one in each line (process, beginning and end in ms, name, result), and the facts about the
/// import.
fn placed(name: &str, file: &str, analysis: Analysis) -> (String, Import) {
    let file = read(file.as_bytes())
        .expect("a file")
        .expect("of a known tool");
    let imports = tr_placing::place(&[tool_file(name.as_bytes(), file)], &analysis);
    let since = |time: Ktime| time.since(analysis.start) as f64 / MS as f64;
    let lines = imports.spans.iter().map(|span| {
        let name = String::from_utf8_lossy(&span.name);
        let result = span.result.map_or("-", |result| result.word());
        let (from, to) = (since(span.from), since(span.to));
        format!("{} {from}-{to} {name} {result}\n", span.process.0)
    });
    (lines.collect(), imports.files[0].clone())
}

fn counts(import: &Import) -> (u64, u64, u64) {
    (import.spans, import.placed, import.outside)
}

/// The log of ninja still has a command of an earlier run. The output of that command is a word in a command line of
/// this run. One command of this run, a generator, does not name its outputs in its command line.
#[test]
fn ninja_runs() {
    let analysis = recording(&[
        (1, None, 0, 90_000, "ninja -j4"),
        (2, Some(0), 1010, 1110, "sh -c cc~-c~b.c~-o~b.o"),
        (3, Some(0), 1112, 1320, "sh -c cc~-o~app~a.o~b.o"),
        (4, Some(0), 1115, 1515, "sh -c ./generate"),
        (5, Some(0), 1600, 1700, "sh -c cc~-c~c.c~-o~c.o"),
        (6, None, 0, 90_000, "make"),
        (7, Some(5), 1010, 1110, "sh -c cc~-c~b.c~-o~b.o"),
    ]);
    let log =
        "# ninja log v6\n0\t205\t1\ta.o\taa\n1005\t1104\t1\tb.o\tbb\n1107\t1314\t1\tapp\tcc\n\
               1110\t1510\t0\tx.h\tdd\n1110\t1510\t0\ty.h\tdd\n7000\t7100\t1\tc.o\tee\n";
    let (spans, import) = placed(".ninja_log", log, analysis);
    let want = "1 1010-1110 b.o -\n2 1112-1320 app -\n3 1115-1515 x.h and 1 more -\n";
    assert_eq!(spans, want);
    assert_eq!(counts(&import), (5, 3, 0));
}

/// A command of this run names no output, so only its times connect the command with a line of ninja's log. Lines of an
/// earlier run that have the same times are not used. If two lines of this run fit the command, the command gets no
/// name.
#[test]
fn ninja_lines_of_the_run_before() {
    let lines: &[Line] = &[
        (1, None, 0, 90_000, "ninja"),
        (2, Some(0), 1_000, 1_300, "sh -c ./generate~b"),
        (3, Some(0), 1_310, 1_400, "sh -c cc~-o~app~x.o"),
    ];
    let log = |of_this_run: &str| {
        format!(
            "# ninja log v7\n1000\t1301\t0\ta.h\taa\n1000\t1500\t0\told\tbb\n{of_this_run}1309\t1400\t0\tapp\tcc\n"
        )
    };
    let (spans, _) = placed(
        ".ninja_log",
        &log("999\t1300\t0\tb.h\tdd\n"),
        recording(lines),
    );
    assert_eq!(spans, "1 1000-1300 b.h -\n2 1310-1400 app -\n");
    let two = "999\t1300\t0\tb.h\tdd\n1001\t1301\t0\tc.h\tee\n";
    let (spans, _) = placed(".ninja_log", &log(two), recording(lines));
    assert_eq!(spans, "2 1310-1400 app -\n");
}

/// A command of this build does not name its outputs, so only its times connect the command with a line of ninja's log.
/// A line of an earlier build has nearly the same times as the command's own line. The earlier line is never used, even
/// if the command's own line is missing.
#[test]
fn ninja_lines_of_earlier_builds() {
    let lines: &[Line] = &[
        (1, None, 0, 90_000, "ninja"),
        (2, Some(0), 1000, 1300, "sh -c ./generate~9"),
        (3, Some(0), 1400, 1600, "sh -c cc~-o~b.o"),
    ];
    let old = (REAL - 60_000 * MS).to_string();
    let new = (REAL + 1300 * MS).to_string();
    let stale = format!("# ninja log v7\n999\t1301\t{old}\tout_1.h\taa\n");
    let stale = format!("{stale}1400\t1605\t{new}\tb.o\tcc\n");
    let log = format!("{stale}1000\t1308\t{new}\tout_9.h\tbb\n");
    let (spans, _) = placed(".ninja_log", &log, recording(lines));
    assert_eq!(spans, "2 1400-1600 b.o -\n1 1000-1300 out_9.h -\n");
    let (spans, _) = placed(".ninja_log", &stale, recording(lines));
    assert_eq!(spans, "2 1400-1600 b.o -\n");
}

/// Two processes had the same pid one after the other, and a third process has the same pid in another container.
#[test]
fn clang_pids() {
    let analysis = recording(&[
        (7, None, 0, 400, "clang -c a.c -o out/a.o"),
        (7, None, 500, 900, "clang -c b.c -o out/b.o"),
        (7, None, 450, 950, "sleep 1"),
    ]);
    let event = |tid: u32, from: u64, length: u64, name: &str| {
        format!(r#"{{"ph":"X","pid":7,"tid":{tid},"ts":{from},"dur":{length},"name":"{name}"}}"#)
    };
    let file = format!(
        r#"{{"traceEvents":[{},{},{},{}],"beginningOfTime":{}}}"#,
        // Rounding has made the inner span longer than the outer one.
        event(7, 1000, 2000, "Inner"),
        event(7, 0, 2999, "Outer"),
        event(9, 0, 5, "Total Outer"),
        r#"{"ph":"b","pid":7,"tid":7,"id":0,"ts":5000,"name":"Source","args":{"detail":"/a/../b.h"}},
           {"ph":"e","pid":7,"tid":7,"id":0,"ts":6000,"name":"Source"}"#,
        REAL / 1000 + 510_000
    );
    let (spans, import) = placed("out/b.json", &file, analysis);
    let want = "1 510-512.999 Outer -\n1 511-512.999 Inner -\n1 515-516 Source /b.h -\n";
    assert_eq!(spans, want);
    assert_eq!(counts(&import), (3, 3, 0));
    // The pid in the file is that of a process in a container, and the recording has no process with this pid. So the
    // name of the output decides.
    let file = file.replace("\"pid\":7", "\"pid\":8");
    let analysis = recording(&[
        (1, None, 0, 990, "clang -c b.c -o out/b.o"),
        (2, Some(0), 500, 980, "clang-14 -cc1 -o out/b.o b.c"),
        (3, None, 505, 980, "clang-14 -cc1 -o out/a.o a.c"),
    ]);
    let (spans, _) = placed("out/b.json", &file, analysis);
    assert!(spans.starts_with("1 510-"), "{spans}");
    // The compilation was before the recording.
    let file = file.replace("\"beginningOfTime\":1", "\"beginningOfTime\":");
    let (spans, import) = placed("x.json", &file, recording(&[(8, None, 0, 9, "clang")]));
    assert_eq!((spans.as_str(), counts(&import)), ("", (3, 0, 3)));
}

const TESTS: &str = "<testcase classname='c' name='first' time='0.300'/>\
     <testcase classname='c' name='second' time='0.100'><failure/></testcase>";

fn suite(attributes: &str, cases: &str) -> String {
    format!(
        "<?xml version='1.0'?><testsuites><testsuite {attributes}>{cases}</testsuite></testsuites>"
    )
}

/// Tests without times of their own are placed so that they end together with their suite. The suite belongs to the
/// runner whose command line names the file of the report.
#[test]
fn junit_suites() {
    let lines: &[Line] = &[
        (1, None, 0, 9000, "sh -c runner~--xml=out.xml"),
        (2, Some(0), 400, 3000, "runner --xml=out.xml"),
        (3, Some(0), 300, 8000, "pytest"),
    ];
    let of = |attributes: &str| placed("dir/out.xml", &suite(attributes, TESTS), recording(lines));
    // The time of the suite in the report may be the suite's beginning or its end.
    let want = "0 4350-4650 c first passed\n0 4450-4550 c second failed\n";
    let (spans, import) = of("name='s' timestamp='2026-11-23T05:54:07Z' time='1.0'");
    assert_eq!(spans, want);
    assert_eq!(
        (counts(&import), import.note.as_deref()),
        (
            (2, 2, 0),
            Some(
                "its times are whole seconds: tests are up to 1 s later; \
                 2 tests have no figures, because their place in time is not proven"
            )
        )
    );
    // The time has no zone. So the zone is used that is nearest to UTC among those in which the time is inside the
    // recording.
    let (spans, import) = of("timestamp='2026-11-23T07:54:07.000' time='1.0'");
    assert_eq!(
        spans,
        "0 4839.5-5139.5 c first passed\n0 4939.5-5039.5 c second failed\n"
    );
    assert_eq!(
        import.note.as_deref(),
        Some(
            "its times have no zone: UTC+02:00 assumed; \
             2 tests have no figures, because their place in time is not proven"
        )
    );
    // The suite is only a little longer than its tests: by a tenth of the shortest test.
    let (spans, import) = of("timestamp='2026-11-23T05:54:07.600Z' time='0.410'");
    assert_eq!(
        spans,
        "0 4350-4650 c first passed\n0 4450-4550 c second failed\n"
    );
    let note = "2 tests have no figures, because their place in time is not proven";
    assert_eq!(import.note.as_deref(), Some(note));
    // The reported time has whole seconds, so the suite began at that time or up to one second later. Because the
    // runner was started within that second, the suite can only have begun in the rest of the second.
    let (spans, _) = of("timestamp='2026-11-23T05:54:06+00:00' time='1.0'");
    assert_eq!(
        spans,
        "0 4350-4650 c first passed\n0 4450-4550 c second failed\n"
    );
    // Several tests ran at once, so each was anywhere between 1.0 s and the end of the command.
    let (spans, import) = of("timestamp='2026-11-23T05:54:07.0Z' time='0.2'");
    assert_eq!(
        spans,
        "0 4350-4650 c first passed\n0 4450-4550 c second failed\n"
    );
    assert_eq!(counts(&import), (2, 2, 0));
    // The report has lengths but no times.
    let (spans, import) = of("time='1.0'");
    let note = "tests without a time of the day";
    assert_eq!((spans.as_str(), import.note.as_deref()), ("", Some(note)));
    assert_eq!(counts(&import), (2, 0, 0));
    // The time of the report is on another day.
    let (spans, import) = of("timestamp='2026-11-21T05:54:07.0Z' time='1.0'");
    assert_eq!((spans.as_str(), counts(&import)), ("", (2, 0, 2)));
}

/// A test is placed on the process that ran the test, if one is found by the test's name and length. Otherwise, the
/// test's own time is used.
#[test]
fn junit_processes_and_times() {
    let analysis = recording(&[
        (1, None, 0, 9000, "cargo nextest run"),
        (
            2,
            Some(0),
            1000,
            1310,
            "/w/deps/x-0123456789abcdef --exact first",
        ),
        (
            3,
            Some(0),
            1000,
            5000,
            "/w/deps/x-0123456789abcdef --exact second",
        ),
    ]);
    let cases = "<testcase name='first' time='0.300' timestamp='2026-11-23T05:54:07.005Z'/>\
                 <testcase name='second' time='0.100' timestamp='2026-11-23T05:54:08.005Z'/>\
                 <testcase name='third' time='0.1' timestamp='2026-11-23T05:54:26.000Z'><skipped/></testcase>";
    let (spans, import) = placed("j.xml", &suite("name='s'", cases), analysis);
    let want = "1 1000-1310 first passed\n2 2005-2105 second passed\n";
    assert_eq!(spans, want);
    assert_eq!(counts(&import), (3, 2, 0));
}

/// Two versions of a crate are compiled at the same time. The first rustc process only queries the compiler's version.
#[test]
fn cargo_versions() {
    let analysis = recording(&[
        (1, None, 0, 9000, "cargo build"),
        (2, Some(0), 20, 60, "rustc -vV"),
        (
            3,
            Some(0),
            200,
            500,
            "rustc --crate-name syn /r/syn-2.0.1/src/lib.rs",
        ),
        (
            4,
            Some(0),
            200,
            500,
            "sccache rustc --crate-name syn /r/syn-1.0.9/src/lib.rs",
        ),
        (
            5,
            Some(0),
            510,
            700,
            "/t/build/syn-0123456789abcdef/build-script-build",
        ),
    ]);
    let unit = |version: &str, target: &str, from: f64, length: f64| {
        format!(
            r#"{{"name":"syn","version":"{version}","target":"{target}","start":{from},"duration":{length},"rmeta_time":null,"sections":null}}"#
        )
    };
    let page = format!(
        "<html><script>\nconst UNIT_DATA = [{},{},{},{}];\nconst X = 1;",
        unit("1.0.9", "", 0.2, 0.3),
        unit("2.0.1", "", 0.2, 0.3),
        unit("2.0.1", " build-script (run)", 0.5, 0.2),
        unit("9.9.9", "", 5.0, 0.2),
    );
    let (spans, import) = placed("cargo-timing.html", &page, analysis);
    let want = "3 200-500 syn v1.0.9 -\n2 200-500 syn v2.0.1 -\n\
                4 510-700 syn v2.0.1 build-script (run) -\n";
    assert_eq!(spans, want);
    assert_eq!(counts(&import), (4, 3, 0));
}

/// A recording whose clocks were also read at its end.
fn with_clocks(lines: &[Line]) -> Analysis {
    let mut analysis = recording(lines);
    let seconds = 100_000 * MS;
    analysis.summary = Some(Summary {
        end: analysis.end,
        end_clock: Clock {
            boot: 0,
            real: REAL + seconds,
        },
        ..Summary::default()
    });
    analysis
}

/// The names of the tests, each with the reason why it has no figures, if there is one.
fn doubts(file: &str, analysis: Analysis) -> Vec<(String, Option<Doubt>)> {
    let file = read(file.as_bytes()).expect("a file").expect("a report");
    let imports = tr_placing::place(&[tool_file(b"out.xml", file)], &analysis);
    let spans = imports.spans.iter();
    let named = spans.map(|span| (String::from_utf8_lossy(&span.name).into_owned(), span.doubt));
    named.collect()
}

/// A suite that begins at 1.0 s and lasts for the given time, with two tests of 3 s and 2 s at its end.
fn long_suite(time: &str) -> String {
    let tests = "<testcase name='one' time='3.000'/><testcase name='two' time='2.000'/>";
    suite(
        &format!("timestamp='2026-11-23T05:54:07.000Z' time='{time}'"),
        tests,
    )
}

/// Tests the reasons why tests have no figures.
#[test]
fn junit_places_are_proven() {
    let runner: Line = (1, None, 700, 9_000, "pytest --junitxml=out.xml");
    let prove = |file: &str, others: &[Line]| {
        let lines: Vec<Line> = std::iter::once(runner)
            .chain(others.iter().copied())
            .collect();
        let doubts = doubts(file, with_clocks(&lines)).into_iter();
        doubts.map(|(_, doubt)| doubt).collect::<Vec<_>>()
    };
    let file = long_suite("5.020");
    // The suite is 20 ms longer than its tests, and the lengths have an error of 1 ms.
    let inside: Line = (2, Some(0), 3_000, 3_500, "true");
    assert_eq!(prove(&file, &[inside]), [None, None]);
    for near in [4_000, 4_040] {
        let child: Line = (2, Some(0), near, 4_500, "true");
        let doubt = Some(Doubt::Boundary(21 * MS));
        assert_eq!(prove(&file, &[child]), [doubt, doubt], "{near}");
    }
    // The suite is 300 ms longer than its tests.
    let off = Some(Doubt::Off(301 * MS));
    assert_eq!(prove(&long_suite("5.300"), &[]), [off, off]);
    // The lengths do not show when the tests ran: the tests were anywhere between the suite's beginning at 1.0 s and
    // the runner's end at 9.0 s.
    let anywhere = [5_003, 6_003].map(|error| Some(Doubt::Off(error * MS / 2)));
    assert_eq!(prove(&long_suite("5.000"), &[]), anywhere);
    // A worker process or a server lives during all tests. Only a worker may have run tests itself.
    let worker: Line = (2, Some(0), 800, 8_000, "pytest worker");
    let anywhere = [5_003, 6_003].map(|error| Some(Doubt::Process(error * MS / 2)));
    assert_eq!(prove(&file, &[worker]), anywhere);
    let server: Line = (2, Some(0), 800, 8_000, "redis-server");
    assert_eq!(prove(&file, &[server]), [None, None]);
    // A runner of unknown kind may have left its tests to another program.
    let lines: &[Line] = &[
        (1, None, 700, 9_000, "run out.xml"),
        (2, Some(0), 800, 8_000, "redis-server"),
    ];
    let all = doubts(&file, with_clocks(lines)).into_iter();
    let all: Vec<Option<Doubt>> = all.map(|(_, doubt)| doubt).collect();
    assert_eq!(all, anywhere);
    // The process began long before the tests. So the reported times may be those at which the tests ended.
    let lines: &[Line] = &[(1, None, 0, 90_000, "pytest --junitxml=out.xml")];
    let later = file.replace("05:54:07", "05:54:17");
    let all = doubts(&later, with_clocks(lines));
    let is_off =
        |doubt: &Option<Doubt>| matches!(doubt, Some(Doubt::Off(error)) if *error > 40_000 * MS);
    assert!(all.iter().all(|(_, doubt)| is_off(doubt)), "{all:?}");
}

/// If a process begins near the boundary between two tests, within the error of this boundary, it may belong to either
/// test. Then neither of these two tests has figures; other tests are not affected. The tests begin 1.02, 4.02 and 6.02
/// s after the recording's start, each with an error of 21 ms.
#[test]
fn a_process_near_a_boundary_belongs_to_no_test() {
    let cases = "<testcase name='one' time='3.000'/><testcase name='two' time='2.000'/>\
                 <testcase name='three' time='4.000'/>";
    let file = suite("timestamp='2026-11-23T05:54:07.000Z' time='9.020'", cases);
    let error = 21;
    for (starts, marked) in [
        (&[4_020 - error - 1][..], [false, false, false]),
        (&[4_020 - error], [true, true, false]),
        (&[4_020], [true, true, false]),
        (&[4_020 + error], [true, true, false]),
        (&[4_020 + error + 1], [false, false, false]),
        (&[6_020], [false, true, true]),
        (&[1_020], [true, false, false]),
        (&[3_500, 4_020, 6_020, 7_000], [true, true, true]),
        (&[3_500, 5_000, 7_000], [false, false, false]),
    ] {
        let children = starts.iter().zip(2..);
        let children = children.map(|(start, pid)| (pid, Some(0), *start, start + 100, "true"));
        let runner: Line = (1, None, 700, 10_900, "pytest --junitxml=out.xml");
        let lines: Vec<Line> = std::iter::once(runner).chain(children).collect();
        let doubts = doubts(&file, with_clocks(&lines)).into_iter();
        let doubts: Vec<Option<Doubt>> = doubts.map(|(_, doubt)| doubt).collect();
        let expected = marked.map(|is| is.then_some(Doubt::Boundary(error * MS)));
        assert_eq!(doubts, expected, "{starts:?}");
    }
}

/// Three reports whose tests have no proven place: two suites of one run have the same time; a test contains another
/// test; and the recording is so long that two time zones are possible.
#[test]
fn junit_places_that_no_length_proves() {
    let lines: &[Line] = &[(1, None, 900, 9_000, "run out.xml")];
    let one = "<testsuite name='s' timestamp='2026-11-23T05:54:07.000Z' time='2.010'>\
               <testcase name='t' time='2.000'/></testsuite>";
    let both = format!("<testsuites>{one}{one}</testsuites>");
    let all = doubts(&both, with_clocks(lines));
    let all: Vec<Option<Doubt>> = all.into_iter().map(|(_, doubt)| doubt).collect();
    let suite_and_test = [Some(Doubt::Runner), Some(Doubt::Process(6_003 * MS / 2))];
    assert_eq!(all, [suite_and_test, suite_and_test].concat());
    let nested = "<testcase name='A' time='3'/><testcase name='A/x' time='1'/>";
    let nested = suite("timestamp='2026-11-23T05:54:07.000Z' time='4.1'", nested);
    let all = doubts(&nested, with_clocks(lines)).into_iter();
    let all: Vec<Option<Doubt>> = all.map(|(_, doubt)| doubt).collect();
    // Both tests were anywhere between 1.0 s and 9.0 s, and the report has their lengths in whole seconds.
    let anywhere = [7_001, 9_001].map(|error| Some(Doubt::Process(error * MS / 2)));
    assert_eq!(all, anywhere);
    let mut long = with_clocks(&[(1, None, 900, 2_000_000, "run out.xml")]);
    long.end = Ktime(2_000_000 * MS);
    let all = doubts(&long_suite("5.020").replace("000Z", "000"), long);
    assert!(
        all.iter().all(|(_, doubt)| *doubt == Some(Doubt::Zone)),
        "{all:?}"
    );
}

/// The reported times of these tests are the ends of the tests. If they were the beginnings, the last test would end
/// after its process.
#[test]
fn junit_times_of_ends() {
    let lines: &[Line] = &[(1, None, 900, 4_450, "run out.xml")];
    let test = |name: &str, at: &str, time: &str| {
        format!("<testcase name='{name}' timestamp='2026-11-23T05:54:{at}Z' time='{time}'/>")
    };
    let tests = [
        test("a", "08.200", "1.200"),
        test("b", "09.000", "0.800"),
        test("c", "10.400", "1.400"),
    ];
    let file = suite("name='s'", &tests.concat());
    let (spans, import) = placed("out.xml", &file, with_clocks(lines));
    assert_eq!(
        spans,
        "0 1000-2200 a passed\n0 2200-3000 b passed\n0 3000-4400 c passed\n"
    );
    assert_eq!(import.note, None);
}

/// Two suites run one after the other, and their tests have times of their own. Each test is a part of its suite and of
/// no other test.
#[test]
fn junit_suites_hold_tests() {
    let lines: &[Line] = &[(1, None, 995, 5_000, "run out.xml")];
    let suite = |name: &str, at: &str, tests: &str| {
        let begin =
            format!("<testsuite name='{name}' timestamp='2026-11-23T05:54:{at}Z' time='1.000'>");
        format!("{begin}{tests}</testsuite>")
    };
    let test = |name: &str, at: &str| {
        format!("<testcase name='{name}' timestamp='2026-11-23T05:54:{at}Z' time='0.500'/>")
    };
    let first = [test("a", "07.000"), test("b", "07.500")].concat();
    let second = [test("c", "08.000"), test("d", "08.500")].concat();
    let both = [suite("s", "07.000", &first), suite("t", "08.000", &second)].concat();
    let all = doubts(
        &format!("<testsuites>{both}</testsuites>"),
        with_clocks(lines),
    );
    let doubts: Vec<_> = all.iter().filter(|(_, doubt)| doubt.is_some()).collect();
    assert_eq!((all.len(), doubts), (6, vec![]));
}

/// Node's test runner writes tests without a suite directly below the root, before and after suites.
#[test]
fn junit_tests_without_a_suite() {
    let lines: &[Line] = &[(1, None, 900, 9_000, "node --test")];
    let test = |name: &str, at: &str, inside: &str| {
        format!("<testcase name='{name}' timestamp='2026-11-23T05:54:{at}Z' time='0.500'>{inside}</testcase>")
    };
    let file = [
        "<testsuites>",
        &test("a", "07.000", "<failure/>"),
        "<testsuite name='s'>",
        &test("b", "08.000", "<skipped/>"),
        "</testsuite>",
        &test("c", "09.000", "<error/>"),
        "</testsuites>",
    ]
    .concat();
    let (spans, import) = placed("out.xml", &file, with_clocks(lines));
    assert_eq!(counts(&import).0, 3, "{spans}");
    for test in ["a failed", "b skipped", "c error"] {
        assert!(spans.contains(test), "{spans}");
    }
    // A test below another element, or after the root, is not read.
    for file in [
        "<testsuites><properties><testcase name='a'/></properties></testsuites>",
        "<testsuites></testsuites><testcase name='a'/>",
    ] {
        let why = tr_import::read(file.as_bytes())
            .map(|_| ())
            .map_err(|error| error.to_string());
        assert!(
            why.is_err_and(|why| why.contains("outside of any testsuite")),
            "{file}"
        );
    }
}

/// In turn: lengths with a decimal comma; lengths in whole seconds of tests that do not overlap.
#[test]
fn junit_numbers() {
    let lines: &[Line] = &[(1, None, 900, 9_000, "run out.xml")];
    let tests = "<testcase name='a' time='0,300'/><testcase name='b' time='1,200'/>";
    let file = suite("timestamp='2026-11-23T05:54:07.000Z' time='1,510'", tests);
    let (spans, _) = placed("out.xml", &file, with_clocks(lines));
    assert_eq!(spans, "0 1010-1310 a passed\n0 1310-2510 b passed\n");
    let tests = "<testcase name='a' time='0.310'/><testcase name='b' time='1,234.500'/>";
    let file = suite("timestamp='2026-11-23T05:54:07.000Z' time='1234'", tests);
    let (_, import) = placed("out.xml", &file, with_clocks(lines));
    let note = import.note.unwrap_or_default();
    assert!(!note.contains("overlap"), "{note}");
}

/// On a busy machine, the process of a bats test may need longer to start than the test itself takes. Another program
/// that is named like a test counts as the test only if the program took as long as the reported test.
#[test]
fn a_process_of_bats_is_its_test_however_late_the_test_begins() {
    let analysis = recording(&[
        (1, None, 0, 9_000, "bash bats t.bats"),
        (
            2,
            Some(0),
            1_000,
            2_200,
            "bash bats-exec-test t.bats test_a_sleeps 1",
        ),
        (3, Some(0), 3_000, 5_000, "cat short"),
    ]);
    let report = "<testsuite name='t.bats' tests='2'><testcase classname='t.bats' name='a sleeps' time='0.300'/>\
                  <testcase classname='t.bats' name='short' time='0.300'/></testsuite>";
    let file = read(report.as_bytes()).unwrap().unwrap();
    let imports = tr_placing::place(&[tool_file(b"out.xml", file)], &analysis);
    let found = imports.spans.iter().filter(|span| span.process.0 > 0);
    let found: Vec<_> = found.map(|span| (span.process.0, span.doubt)).collect();
    // The test may have run at any time within its process.
    assert_eq!(found, [(1, Some(Doubt::Off(900 * MS)))]);
}

/// A runner starts a program for each test, with the test's name. On a busy machine, the runner notices the end of the
/// program late, so the reported length is too long. A program that another process started, or that ran twice, is not
/// taken for a test.
#[test]
fn programs_of_one_runner_are_its_tests_however_long_it_took_them_for() {
    let analysis = recording(&[
        (1, None, 0, 9_000, "python3 runner"),
        (2, Some(0), 1_000, 1_200, "/x/t_a.sh"),
        (3, Some(0), 1_300, 1_500, "sh /x/t_b.sh"),
        (4, Some(0), 2_000, 2_100, "/x/t_twice.sh"),
        (5, Some(0), 2_200, 2_300, "/x/t_twice.sh"),
        (6, Some(1), 1_050, 1_060, "/x/t_inner"),
        (7, Some(0), 2_400, 2_500, "cat /x/a t_word"),
    ]);
    let names = ["t_a", "t_b", "t_twice", "t_inner", "t_word"];
    let cases = names.map(|name| format!("<testcase name='{name}' time='0.900'/>"));
    let report = format!(
        "<testsuite name='s' tests='5'>{}</testsuite>",
        cases.concat()
    );
    let file = read(report.as_bytes()).unwrap().unwrap();
    let imports = tr_placing::place(&[tool_file(b"out.xml", file)], &analysis);
    let found = imports.spans.iter().filter(|span| span.doubt.is_none());
    let found: Vec<_> = found.map(|span| (span.process.0, span.error)).collect();
    assert_eq!(found, [(1, 0), (2, 0)]);
}
