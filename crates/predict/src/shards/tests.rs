//! Unit tests of plans that divide tests among machines.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use tr_placing::junit::{Attributes, Case, TestResult};

use super::*;

const MS: u64 = 1_000_000;

fn test(id: &str, class: &str, file: Option<&str>, ms: u64) -> Test {
    Test {
        id: id.to_owned(),
        class: class.to_owned(),
        file: file.map(str::to_owned),
        cost: Cost {
            ns: ms * MS,
            on_cpu: None,
            wall: ms * MS,
            source: Source::Report,
        },
    }
}

fn plan(list: Vec<Test>, format: Format) -> Result<String, Unlisted> {
    let files = BTreeMap::new();
    let tests = Tests {
        list,
        files,
        start: None,
    };
    Plan::new(tests, 2, format)?.text()
}

fn suite(name: &str, cases: &[(&str, &str)]) -> Suite {
    let case = |(class, name): &(&str, &str)| Case {
        attributes: Attributes {
            class: (*class).to_owned(),
            name: (*name).to_owned(),
            length: Some(1_000_000),
            ..Attributes::default()
        },
        result: TestResult::Passed,
        number: 0,
    };
    Suite {
        attributes: Attributes {
            name: name.to_owned(),
            ..Attributes::default()
        },
        cases: cases.iter().map(case).collect(),
        has_order: true,
        outermost: 0,
    }
}

#[test]
fn lines_are_words_of_a_shell() {
    let tests = vec![
        test("a.py::t[a b]", "", None, 5),
        test("a.py::t[it's]", "", None, 4),
        test("a.py::plain[1-2]", "", None, 3),
    ];
    let text = plan(tests, Format::Pytest).unwrap();
    assert_eq!(
        text,
        "1 'a.py::t[a b]'\n2 \"a.py::t[it's]\"\n2 'a.py::plain[1-2]'\n"
    );
    let nameless = vec![test("t", "", None, 1), test("a.py::u", "", None, 1)];
    assert!(matches!(
        plan(nameless, Format::Pytest),
        Err(Unlisted::Name(..))
    ));
    let newline = vec![
        test("a.py::\n1 x", "", None, 1),
        test("a.py::u", "", None, 1),
    ];
    assert!(matches!(
        plan(newline, Format::Pytest),
        Err(Unlisted::Control(_))
    ));
}

#[test]
fn a_test_that_no_plan_can_balance_is_named() {
    let page = |costs: [u64; 4]| {
        let tests = ["a.py::a", "a.py::b", "a.py::c", "a.py::d"]
            .iter()
            .zip(costs);
        let list = tests.map(|(id, ms)| test(id, "", None, ms)).collect();
        let tests = Tests {
            list,
            files: BTreeMap::new(),
            start: None,
        };
        let plan = Plan::new(tests, 3, Format::Pytest).unwrap();
        let text = plan.page().text(&tr_text::style::Style::PLAIN);
        text.split_whitespace().collect::<Vec<&str>>().join(" ")
    };
    let said = page([9, 2, 1, 1]);
    assert!(
        said.contains("a.py::a alone takes 9.0 ms: no plan has shards less than 7.0 ms apart"),
        "{said}"
    );
    assert!(!page([3, 3, 2, 1]).contains("alone"));
}

#[test]
fn a_file_is_never_divided() {
    let tests = vec![
        test("a", "", Some("a.test.js"), 2),
        test("b", "", Some("b.test.js"), 3),
        test("c", "", Some("a.test.js"), 2),
    ];
    let text = plan(tests.clone(), Format::Files).unwrap();
    assert_eq!(text, "1 a.test.js\n2 b.test.js\n");
    // Loading a file of tests can take longer than the tests in it.
    let whole = test("", "", None, 9).cost;
    let files = BTreeMap::from([("b.test.js".to_owned(), whole)]);
    let tests = Tests {
        list: tests,
        files,
        start: None,
    };
    let plan = Plan::new(tests.clone(), 2, Format::Files).unwrap();
    assert_eq!(plan.text().unwrap(), "1 b.test.js\n2 a.test.js\n");
    let mut nameless = tests;
    nameless.list.push(test("d", "", None, 1));
    assert_eq!(
        Plan::new(nameless, 2, Format::Files).unwrap_err(),
        Unlisted::NoFile(1)
    );
}

#[test]
fn a_package_of_go_has_one_pattern_a_shard() {
    let tests = vec![
        test("TestA", "x/a", None, 4),
        test("TestB", "x/b", None, 3),
        test("TestC", "x/a", None, 1),
        test("TestD", "x/a", None, 1),
    ];
    let text = plan(tests, Format::Go).unwrap();
    assert_eq!(
        text,
        "1 -run '^(TestA|TestD)$' x/a\n2 -run '^(TestC)$' x/a\n2 -run '^(TestB)$' x/b\n"
    );
    let tests = vec![test("TestA", "x", None, 1), test("a|b", "x", None, 1)];
    assert!(matches!(plan(tests, Format::Go), Err(Unlisted::Name(..))));
}

#[test]
fn names_of_reports_are_those_of_runners() {
    let nodes = ids::Nodes::new(&Steps::default());
    let of = |class: &str, name: &str, file: Option<&str>| {
        let mut suite = suite("s", &[(class, name)]);
        suite.cases[0].attributes.file = file.map(str::to_owned);
        let case = &suite.cases[0];
        (nodes.id(&suite, case), ids::file(&suite, case))
    };
    let of_file = |id: &str, file: &str| (id.to_owned(), Some(file.to_owned()));
    for (class, name, file, expected) in [
        (
            "tests.test_a.TestB",
            "test_c[1.5]",
            None,
            of_file("tests/test_a.py::TestB::test_c[1.5]", "tests/test_a.py"),
        ),
        (
            "test_a",
            "test_c",
            None,
            of_file("test_a.py::test_c", "test_a.py"),
        ),
        (
            "a.odd.FooTests",
            "test_c",
            Some("a/odd.py"),
            of_file("a/odd.py::FooTests::test_c", "a/odd.py"),
        ),
        // pytest skipped this module as a whole.
        (
            "",
            "tests.test_a",
            None,
            of_file("tests/test_a.py", "tests/test_a.py"),
        ),
        (
            "",
            "pkg.tests.test_a",
            Some("pkg/tests/test_a.py"),
            of_file("pkg/tests/test_a.py", "pkg/tests/test_a.py"),
        ),
        // A class inherits this test from another file.
        (
            "pkg.tests.test_multi.TestB",
            "test_c",
            Some("pkg/tests/test_base.py"),
            of_file(
                "pkg/tests/test_multi.py::TestB::test_c",
                "pkg/tests/test_base.py",
            ),
        ),
        (
            "tests.test_a.TestB",
            "test_c",
            Some("pkg/tests/test_a.py"),
            of_file("pkg/tests/test_a.py::TestB::test_c", "pkg/tests/test_a.py"),
        ),
        // The module imports these tests from another file.
        (
            "pkg.__main__.TestB",
            "test_c",
            Some("pkg/test_a.py"),
            of_file("pkg/__main__.py::TestB::test_c", "pkg/test_a.py"),
        ),
        (
            "pkg.all",
            "test_c",
            Some("pkg/cases/basic.py"),
            of_file("pkg/all.py::test_c", "pkg/cases/basic.py"),
        ),
        (
            "x does",
            "x does",
            Some("t/x.test.js"),
            of_file("x does", "t/x.test.js"),
        ),
        ("src/x.spec.ts", "x", None, of_file("x", "src/x.spec.ts")),
        ("x/pkg", "TestA", None, ("TestA".to_owned(), None)),
    ] {
        assert_eq!(of(class, name, file), expected);
    }
}

/// A recording of a simulated build beside `spinners` tasks that use CPUs all the time.
fn beside(spinners: u16) -> Recording {
    let options = tr_analyze::Options {
        timeline: true,
        ..tr_analyze::Options::default()
    };
    let trace = tr_sim::examples::trace(&tr_sim::examples::build_beside(spinners));
    tr_analyze::analyze(&trace, &options).into()
}

/// The cost of the whole simulated build, once from the recording and once as estimated from a test report. During the
/// build, `spinners` other tasks use CPUs all the time.
fn costs(spinners: u16) -> [Cost; 2] {
    let recording = beside(spinners);
    let path = critical_path::of(&recording.analysis).unwrap();
    let steps = Steps::new(&recording.analysis, &[]);
    let costs = Costs::new(&recording, &path, &steps);
    let wall = steps.list()[0].wall();
    [
        costs.recorded(0).unwrap(),
        costs.reported(wall, Some(0), 1000),
    ]
}

#[test]
fn neighbours_do_not_make_a_test_costlier() {
    let (idle, busy) = (costs(0), costs(8));
    assert!(busy[0].wall > 2 * idle[0].wall, "{busy:?} {idle:?}");
    for (busy, idle) in busy.iter().zip(&idle) {
        let off = busy.ns.abs_diff(idle.ns);
        assert!(off * 5 < idle.ns, "{busy:?} {idle:?}");
    }
}

/// The name of a test that is a process of its own contains only the last directory of the test's file. The plan
/// nevertheless has the whole path of this file.
#[test]
fn tests_of_the_recording_have_the_files_of_their_steps() {
    let mut recording = beside(0);
    let processes = recording.analysis.processes.iter_mut();
    let execs = processes.flat_map(|process| &mut process.execs);
    let compilers = execs.filter(|exec| exec.argv.args().next() == Some(b"gcc"));
    let lines = [
        ["python3", "pkg/tests/test_net.py"],
        ["sh", "pkg/tests/wait.sh"],
    ];
    for (exec, line) in compilers.zip(lines) {
        exec.argv = tr_format::event::Argv::from_args(line);
    }
    let tests = Tests::new(&recording, &[]);
    let files: Vec<_> = tests.list.iter().map(|test| test.file.as_deref()).collect();
    // A test runner cannot be asked to run the file of a shell script, so this test has no file.
    assert_eq!(files, [Some("pkg/tests/test_net.py"), None]);
}

#[test]
fn a_test_without_a_length_costs_the_median() {
    let recording = beside(0);
    let mut report = Report {
        suites: vec![suite(
            "p",
            &[
                ("p", "TestA"),
                ("p", "TestB"),
                ("p", "TestB/x"),
                ("p", "TestC"),
            ],
        )],
    };
    report.suites[0].cases[1].attributes.length = Some(3_000_000);
    report.suites[0].cases[3].attributes.length = None;
    let tests = Tests::new(&recording, &[&report]);
    // A test inside another one runs together with it and is not listed.
    let names: Vec<&str> = tests.list.iter().map(|test| test.id.as_str()).collect();
    assert_eq!(names, ["TestA", "TestB", "TestC"]);
    assert_eq!(tests.list[2].cost.ns, tests.list[1].cost.ns);
    assert_eq!(
        (tests.count(Source::Report), tests.count(Source::Median)),
        (2, 1)
    );
    assert!(matches!(
        Plan::new(Tests::default(), 2, Format::Json),
        Err(Unlisted::TooFew(false))
    ));
}

#[test]
fn the_runners_own_time_is_shared_by_tests_and_files() {
    let mut suites = ["a.test.js", "b.test.js", "c.test.js"]
        .map(|name| suite(name, &[(name, "x"), (name, "y")]));
    for (suite, second) in suites.iter_mut().zip(0..) {
        suite.attributes.length = Some(6_000_000);
        suite.attributes.at = Some(tr_placing::junit::Date {
            local: second * 1_000_000_000,
            ahead: None,
            digit: 1_000_000,
        });
    }
    assert_eq!(runner::between_tests(&suites[0]), 2 * MS);
    let mut report = Report {
        suites: suites.to_vec(),
    };
    assert_eq!(runner::between_suites(&report), 994 * MS);
    // Suites that ran at once have no time between them.
    for suite in &mut report.suites {
        suite.attributes.length = Some(2_000_000_000);
    }
    assert_eq!(runner::between_suites(&report), 0);
}
