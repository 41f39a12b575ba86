//! Unit tests of the rules that find the causes of failures, on recordings that the tests construct.

use tr_analyze::model::{Analysis, ExecSpan, Process, ProcessIx};
use tr_format::event::{Argv, Ktime, Tgid};
use tr_format::meta::Summary;
use tr_format::scripts::RecordedScript;

use super::*;
use tr_insight::processes::label;
use tr_insight::steps::result::StepResult;
use tr_insight::steps::{Step, Steps};
use tr_programs::steps::StepKind;
use tr_text::phrase::Phrase;

/// A process in a recording that a test constructs: the index of its parent, its command line, and its raw exit status.
/// A process without a command line executes nothing.
type Row = (u32, &'static str, u32);

/// Makes a recording of the script `sh x.sh` in the directory `/w`. `text` is the script's text, and `rows` are the
/// shell's descendants in the order of their starts.
fn recording(text: &str, status: u32, rows: &[Row]) -> Analysis {
    let mut analysis = Analysis::default();
    let script = RecordedScript {
        path: b"/w/x.sh".to_vec(),
        text: Some(text.as_bytes().to_vec()),
    };
    analysis.summary = Some(Summary {
        scripts: vec![script],
        ..Summary::default()
    });
    let all = [(0, "sh x.sh", status)];
    for (at, (parent, line, status)) in all.iter().chain(rows).enumerate() {
        let ms = 1_000_000;
        let start = Ktime(1 + at as u64 * 10 * ms);
        let argv = Argv::from_args(line.split(' '));
        let exec = ExecSpan {
            start,
            argv: argv.clone(),
            directory: b"/w".to_vec().into(),
            ..ExecSpan::default()
        };
        let parent = (at > 0).then_some(ProcessIx(*parent));
        let process = Process {
            pid: Tgid(100 + at as u32),
            parent,
            argv,
            start,
            end: if at == 0 {
                Ktime(1 << 40)
            } else {
                Ktime(start.0 + 9 * ms)
            },
            status: Some(status << 8),
            execs: if line.is_empty() {
                Vec::new()
            } else {
                vec![exec]
            },
            ..Process::default()
        };
        analysis.processes.push(process);
        if let Some(parent) = parent {
            let above = &mut analysis.processes[parent.0 as usize];
            above.children.push(ProcessIx(at as u32));
        }
    }
    if let Some(last) = analysis.processes.last().map(|last| last.end) {
        analysis.processes[0].end = last;
    }
    analysis
}

/// Finds the cause of the failure of a script in a constructed recording. Returns the label of the process that caused
/// the failure, whether the cause is certain, and its place in the script.
fn cause(text: &str, status: u32, rows: &[Row]) -> (String, bool, String) {
    let analysis = recording(text, status, rows);
    let steps = Steps::new(&analysis, &[]);
    let tests = Tests::new(&analysis, &steps);
    let finder = Finder::new(&analysis, ProcessEnds::new(&analysis), tests, None);
    let mut processes = finder.chain(Some(ProcessIx(0)));
    processes.reverse();
    let cause = finder.cause(&Chain::new(processes)).unwrap();
    let (FailedTask::Process(name) | FailedTask::ProcessOfOthers(name)) = &cause.task else {
        panic!("{cause:?}");
    };
    let is_certain = !cause.above.iter().any(|above| above.perhaps);
    let at = cause.at().unwrap_or_default();
    (name.short().to_owned(), is_certain, at.short().to_owned())
}

#[test]
fn the_text_of_a_script_decides() {
    let tried: &[Row] = &[(0, "lint a", 1), (0, "cmp a b", 1)];
    for (text, status, rows, name, is_certain, at) in [
        (
            "set -e\nlint a || true\ncmp a b\n",
            1,
            tried,
            "cmp a b",
            true,
            "x.sh:3",
        ),
        (
            "lint a || true\nif ! cmp a b; then\nexit 4; fi\n",
            4,
            tried,
            "cmp a b",
            true,
            "x.sh:2",
        ),
        (
            "lint a\ncmp a b\n[ -s x ]\n",
            1,
            tried,
            "x.sh",
            true,
            "x.sh:3: [ -s x ]",
        ),
        (
            "lint a\ncmp a b\nexit 7\n",
            7,
            tried,
            "x.sh",
            true,
            "x.sh:3: exit 7",
        ),
        (
            "lint a | cat\ncmp a b > out\n[ -s out ]",
            1,
            &[(0, "lint a", 0), (0, "cat", 0), (0, "cmp a b", 1)],
            "cmp a b",
            false,
            "x.sh:2",
        ),
        // If the script's text does not fit the processes, the last step is only perhaps the cause.
        ("other\n", 1, tried, "cmp a b", false, ""),
    ] {
        let want = (name.to_owned(), is_certain, at.to_owned());
        assert_eq!(cause(text, status, rows), want, "{text}");
    }
}

#[test]
fn a_subshell_has_the_commands_of_its_part_of_the_script() {
    let text = "set -e\n(\n  cd sub\n  gen x || true\n  make\n)\n";
    let rows: &[Row] = &[(0, "", 2), (1, "gen x", 3), (1, "make", 2)];
    let want = ("make".to_owned(), true, "x.sh:5".to_owned());
    assert_eq!(cause(text, 2, rows), want);
}

#[test]
fn a_program_that_is_not_there_has_the_name_in_the_script() {
    let analysis = recording("set -e\nnothing y\n", 127, &[(0, "", 127)]);
    let steps = Steps::new(&analysis, &[]);
    let tests = Tests::new(&analysis, &steps);
    let finder = Finder::new(&analysis, ProcessEnds::new(&analysis), tests, None);
    let end = finder.failure_of_process(ProcessIx(1)).ended();
    assert_eq!(end.short(), "exit 127 (no such program: nothing)");
}

/// With `--workspaces`, npm runs the script of each package and goes on with the next package after a failure, so the
/// first failure counts.
#[test]
fn the_first_failed_package_of_a_workspace_counts() {
    for (line, is_certain) in [
        ("npm run check --workspaces", true),
        ("npm run check", false),
    ] {
        let rows: &[Row] = &[
            (0, line, 1),
            (1, "sh -c lint", 1),
            (1, "sh -c types", 0),
            (1, "sh -c test", 1),
        ];
        let analysis = recording("other\n", 1, rows);
        let steps = Steps::new(&analysis, &[]);
        let tests = Tests::new(&analysis, &steps);
        let finder = Finder::new(&analysis, ProcessEnds::new(&analysis), tests, None);
        assert_eq!(!finder.is_maybe(ProcessIx(2)), is_certain, "{line}");
    }
}

/// If two jobs of a make failed at once, neither is the certain reason, because make may have ignored the failure of
/// one of them.
#[test]
fn of_two_jobs_that_ran_at_once_make_may_have_ignored_one() {
    for (second, is_certain) in [(0, true), (3, false)] {
        let rows: &[Row] = &[
            (0, "make -j2", 2),
            (1, "python3 a.py", 2),
            (1, "python3 b.py", second),
        ];
        let mut analysis = recording("other\n", 2, rows);
        analysis.processes[2].end = analysis.processes[3].end;
        let steps = Steps::new(&analysis, &[]);
        let tests = Tests::new(&analysis, &steps);
        let finder = Finder::new(&analysis, ProcessEnds::new(&analysis), tests, None);
        assert_eq!(!finder.is_maybe(ProcessIx(2)), is_certain, "{second}");
    }
}

/// If two workers of a pool were killed, the owner closed the pool. If only one worker was killed, that kill may be the
/// reason for the failure.
#[test]
fn a_pool_that_was_closed_is_no_reason() {
    for (count, is_reason) in [(1, true), (2, false)] {
        let rows: Vec<Row> = [(0, "python3 pool.py", 1), (1, "", 0), (1, "", 0)].to_vec();
        let mut analysis = recording("other\n", 1, &rows);
        for worker in analysis.processes.iter_mut().rev().take(count) {
            worker.status = Some(15);
        }
        analysis.processes[1].end = analysis.processes[3].end;
        let steps = Steps::new(&analysis, &[]);
        let tests = Tests::new(&analysis, &steps);
        let finder = Finder::new(&analysis, ProcessEnds::new(&analysis), tests, None);
        let mut workers = [ProcessIx(2), ProcessIx(3)].into_iter();
        let explains = workers.any(|ix| finder.explains(ix, ProcessIx(1)).is_some());
        assert_eq!(explains, is_reason, "{count}");
    }
}

/// A test may expect a program to end with status 2. If another run of the program ended with a common error status,
/// that run is the reason for the failure.
#[test]
fn a_status_that_a_test_wants_is_no_reason() {
    for (status, name) in [(1, "./cli b"), (3, "./cli x")] {
        let rows: &[Row] = &[
            (0, "python3 -m unittest -q test_cli", 1),
            (1, "./cli a", 0),
            (1, "./cli b", status),
            (1, "./cli x", 2),
        ];
        let analysis = recording("other\n", 1, rows);
        let steps = Steps::new(&analysis, &[]);
        let tests = Tests::new(&analysis, &steps);
        let finder = Finder::new(&analysis, ProcessEnds::new(&analysis), tests, None);
        let all = analysis.process_ids();
        let mut found = all.filter(|ix| finder.stands_out(*ix, ProcessIx(1)));
        let found = found.next().map(|ix| label::label(analysis.process(ix)));
        assert_eq!(found.as_deref(), name.strip_prefix("./"));
    }
}

/// Checks a step that failed after an earlier command on the same file had failed. If the earlier command was only a
/// condition (`if`) of the script, it is not the reason for the failure of the step. If the script ignores the status
/// of the earlier command, this command is the reason.
#[test]
fn a_question_about_a_file_is_no_reason() {
    let rows = [
        (0, "schema -q waivers api.json", 1),
        (0, "schema -s all api.json", 3),
    ];
    let first = |text: &str| {
        let analysis = recording(text, 3, &rows);
        let steps = Steps::new(&analysis, &[]);
        let tests = Tests::new(&analysis, &steps);
        let finder = Finder::new(&analysis, ProcessEnds::new(&analysis), tests, None);
        let failed = [ProcessIx(0), ProcessIx(1), ProcessIx(2)];
        let chain = vec![ProcessIx(2), ProcessIx(0)];
        finder
            .linked(chain, &failed.into_iter().collect())
            .processes[0]
    };
    let asked = "set -e\nif schema -q waivers api.json; then exit 0; fi\nschema -s all api.json\n";
    assert_eq!(first(asked), ProcessIx(2));
    let ignored = "schema -q waivers api.json\nschema -s all api.json\n";
    assert_eq!(first(ignored), ProcessIx(1));
}

#[test]
fn many_scripts_take_little_time() {
    let text = format!(
        "while read x; do\n{}done\n",
        "a \"$x\" || b c\n".repeat(4_000)
    );
    let shells = (0..500).map(|_| (0, "sh x.sh", 1));
    let mut rows: Vec<Row> = shells.collect();
    rows.extend((0..20_000).map(|at| (1 + at % 500, "a 1", 1)));
    let before = tr_sim::cpu_time::of_thread();
    cause(&text, 1, &rows);
    let took = tr_sim::cpu_time::of_thread() - before;
    assert!(took.as_secs() < 30, "{took:?}");
}

/// Checks two things about a worker that its test runner stopped. The worker itself does not count as failed. A test of
/// the worker counts as failed if the runner's report says so.
#[test]
fn a_test_fails_by_its_own_result() {
    let worker = ProcessIx(7);
    let of_worker = |status: Option<u32>, result: Option<&str>| Step {
        name: "test".into(),
        brief: None,
        stable_name: None,
        file: None,
        kind: StepKind::Test,
        parent: None,
        depth: 0,
        from: Ktime(1_000),
        to: Ktime(2_000),
        started_before: false,
        ended: true,
        process: Some(worker),
        thread: None,
        has_work: true,
        place_error: None,
        doubt: None,
        is_worker: false,
        integration: None,
        status,
        result: result.and_then(|result| StepResult::of_mark(result.as_bytes())),
    };
    let calm = Failures {
        calm: BTreeSet::from([worker]),
        ..Failures::default()
    };
    assert!(calm.counts(&of_worker(None, Some("failed"))));
    assert!(!calm.counts(&of_worker(None, Some("passed"))));
    assert!(!calm.counts(&of_worker(Some(15), None)));
    assert!(Failures::default().counts(&of_worker(Some(15), None)));
}

/// A failed test runner is reported as a consequence of its failed tests, unless its exit status has another reason.
#[test]
fn a_runner_fails_because_of_its_tests() {
    for (status, is_above) in [(1, true), (2, true), (3, false)] {
        let analysis = recording("pytest\n", status, &[(0, "pytest -q", status)]);
        let steps = Steps::new(&analysis, &[]);
        let tests = Tests::new(&analysis, &steps);
        let finder = Finder::new(&analysis, ProcessEnds::new(&analysis), tests, None);
        let runner = ProcessIx(1);
        let test = |name: &str| {
            let failed = Failure {
                task: FailedTask::Step(name.into()),
                end: FailureEnd::Reported("failed".to_owned()),
                process: Some(runner),
                ..Failure::default()
            };
            RankedFailure::new(FailureRank::Failed, failed)
        };
        let own = RankedFailure {
            is_command: true,
            ..RankedFailure::new(FailureRank::Failed, finder.failure_of_process(runner))
        };
        let found = finder.with_runners_above(vec![test("first"), own, test("second")]);
        let shown = found.iter().map(|found| {
            let above = found.failed.above.iter().map(Failure::name);
            (found.failed.name(), above.collect(), found.is_command)
        });
        let shown: Vec<(Phrase, Vec<Phrase>, bool)> = shown.collect();
        let row = |name: &str, above: &[&str], is_command| {
            let above = above.iter().map(|name| Phrase::from(*name)).collect();
            (Phrase::from(name), above, is_command)
        };
        let expected = if is_above {
            let above = ["pytest -q"];
            vec![row("first", &above, true), row("second", &above, false)]
        } else {
            vec![
                row("first", &[], false),
                row("pytest -q", &[], true),
                row("second", &[], false),
            ]
        };
        assert_eq!(shown, expected, "{status}");
    }
}

#[test]
fn failures_beyond_the_reported_ones_are_led_to_alike() {
    // `make -k` runs a compiler driver for each target, and each driver fails because of its `cc1`. There are more
    // targets than the report shows.
    let jobs = BRANCHES as u32 + 20;
    let rows: Vec<Row> = (0..jobs)
        .flat_map(|job| [(0, "cc -c a.c", 1), (1 + 2 * job, "cc1 a.c", 1)])
        .collect();
    let mut analysis = recording("", 2, &rows);
    analysis.processes[0].argv = Argv::from_args("make -k".split(' '));
    // Each driver ends after its `cc1`, which is the next process in the list.
    for driver in (1..rows.len()).step_by(2) {
        analysis.processes[driver].end = Ktime(analysis.processes[driver + 1].end.0 + 1_000_000);
    }
    let recording = Recording {
        analysis,
        ..Recording::default()
    };
    let all: Vec<ProcessIx> = recording.analysis.process_ids().collect();
    let failures = Failures::new(&recording, &all, None);
    let is_driver = |ix: &ProcessIx| ix.0 % 2 == 1;
    let is_led = |ix: &ProcessIx| failures.led.contains(ix);
    let led = all.iter().filter(|ix| is_driver(ix) && is_led(ix)).count();
    let first = all
        .iter()
        .filter(|ix| !is_driver(ix) && ix.0 > 0 && is_led(ix))
        .count();
    assert_eq!((led, first), (jobs as usize, 0));
}

/// Facts hold whole names. Only the texts for people are shortened.
#[test]
fn a_failure_has_whole_names() {
    let long = "very-long-name-of-a-generator ".repeat(5);
    let awaited = Some(Phrase::name(&long, 40));
    let failure = Failure {
        task: FailedTask::ProcessOfOthers(Phrase::name(&long, 30)),
        end: FailureEnd::TimedOut { status: 9, awaited },
        after: 1_000_000_000,
        statement: Some(Statement {
            place: ScriptLine {
                script: Some("build.sh".into()),
                line: 7,
            },
            text: long.clone(),
        }),
        ..Failure::default()
    };
    let texts = [failure.name(), failure.fact(), failure.at().unwrap()];
    for text in &texts {
        assert!(text.whole().contains(&long), "{text:?}");
        assert!(
            text.short().contains('…') && text.short().len() < 120,
            "{text:?}"
        );
    }
    let [name, fact, at] = texts;
    assert!(name.short().ends_with(" (not COMMAND's)"));
    assert!(fact.short().ends_with(" after 1.00 s"), "{fact:?}");
    assert!(at.short().starts_with("build.sh:7: very-long"), "{at:?}");
}
