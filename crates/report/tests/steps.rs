//! Tests of steps: their tree from executions, threads and marks, and that their times add up.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // of our own tables, in a test

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::kinds::{ByKind, TimeKind};
use tr_analyze::memory::{MemoryEvent, MemoryKind};
use tr_analyze::model::{
    Analysis, Doubt, ExecSpan, Imported, ImportedKind, Process, ProcessIx, Resources, TestResult,
    Thread, ThreadIx, Times,
};
use tr_analyze::{analyze, Options};
use tr_format::counters::{Counter, Counters};
use tr_format::event::{Argv, Comm, Ktime, Tgid, Tid};
use tr_format::meta::Scope;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_insight::path::groups;
use tr_insight::path::path_steps::PathBySteps;
use tr_insight::steps::times::{AllTimes, Fineness, StepTimes};
use tr_insight::steps::{StepTitle, Steps};
use tr_insight::verdicts::{JudgedTimes, Verdicts};
use tr_insight::views::query;
use tr_insight::views::query::{By, Filter, Sort};
use tr_insight::Recording;
use tr_programs::steps::StepKind;
use tr_report::reports::{Ask, ReportKind, View};
use tr_sim::config::Config;
use tr_sim::program::World;
use tr_sim::scenario;
use tr_text::phrase::Phrase;
use tr_text::style::Style;

/// A line that describes a process for a test: its parent's index, its beginning, its end, and the programs that it
/// executes with their beginnings.
type Line = (Option<u32>, u64, u64, &'static [(u64, &'static str)]);

fn built(lines: &[Line]) -> Analysis {
    let mut analysis = Analysis {
        end: Ktime(1000),
        ..Analysis::default()
    };
    for (at, (parent, start, end, execs)) in lines.iter().enumerate() {
        let ix = ProcessIx(at as u32);
        let argv = |line: &str| Argv::from_args(line.split(' ').map(|arg| arg.replace('~', " ")));
        let all = execs.iter().map(|(time, line)| ExecSpan {
            start: Ktime(*time),
            started_before: false,
            end: Ktime(*end),
            ended: true,
            filename: b"/x".as_slice().into(),
            argv: argv(line),
            comm: Comm::new(b"x"),
            times: Times::default(),
            ..ExecSpan::default()
        });
        if let Some(parent) = parent {
            analysis.processes[*parent as usize].children.push(ix);
        }
        analysis
            .processes
            .push(process(at as u32, *parent, (*start, *end), all.collect()));
        let parent = parent.map(|parent| analysis.processes[parent as usize].threads[0]);
        thread(&mut analysis, ix, parent, (*start, *end), "x");
    }
    analysis
}

fn process(
    pid: u32,
    parent: Option<u32>,
    (start, end): (u64, u64),
    execs: Vec<ExecSpan>,
) -> Process {
    Process {
        pid: Tgid(pid),
        ns_pid: Tid(pid),
        ppid: parent.map(Tgid),
        parent: parent.map(ProcessIx),
        comm: Comm::new(b"x"),
        argv: execs
            .last()
            .map_or_else(|| Argv::from_args(["x"]), |exec| exec.argv.clone()),
        start: Ktime(start),
        end: Ktime(end),
        status: Some(0),
        resources: Resources {
            faults: Some((0, 0)),
            ..Resources::default()
        },
        execs,
        ..Process::default()
    }
}

fn thread(
    analysis: &mut Analysis,
    process: ProcessIx,
    parent: Option<ThreadIx>,
    (start, end): (u64, u64),
    comm: &str,
) -> ThreadIx {
    let ix = ThreadIx(analysis.threads.len() as u32);
    analysis.processes[process.0 as usize].threads.push(ix);
    analysis.threads.push(Thread {
        comm: Comm::new(comm.as_bytes()),
        status: Some(0),
        parent,
        ..Thread::new(Tid(ix.0), process, (Ktime(start), Ktime(end)))
    });
    ix
}

/// The steps with their times as text, indented by their depth. A `?` stands after a step whose work is not known.
fn tree(analysis: &Analysis) -> String {
    let steps = Steps::new(analysis, &[]);
    let lines = steps.list().iter().map(|step| {
        let indent = "  ".repeat(step.depth);
        let unknown = if step.has_work { "" } else { " ?" };
        let (kind, name) = (step.kind.name(), step.name.whole());
        format!(
            "{indent}{kind} {name} {}-{}{unknown}\n",
            step.from.0, step.to.0
        )
    });
    lines.collect()
}

#[test]
fn executions_nest_as_they_were_started() {
    let analysis = built(&[
        (None, 0, 900, &[(0, "make all")]),
        (
            Some(0),
            10,
            300,
            &[(11, "sh -c x"), (12, "gcc -c -o a.o a.c")],
        ),
        (
            Some(1),
            20,
            200,
            &[(21, "cc1 -quiet a.c -o /tmp/ccAbCdEf.s")],
        ),
        (Some(1), 210, 290, &[(211, "as -o a.o /tmp/ccAbCdEf.s")]),
        (Some(0), 310, 800, &[(311, "make all")]),
        (Some(4), 320, 700, &[(321, "ctest")]),
        (Some(5), 330, 400, &[(331, "/w/x --fast")]),
        (Some(6), 340, 350, &[(341, "/w/y")]),
        (
            Some(5),
            410,
            500,
            &[(411, "tr mark slow -- /w/x"), (412, "/w/x")],
        ),
    ]);
    let want = "\
target make all 0-900
  target a.o 12-300
  target make all 311-800
    test ctest 321-700
      test x --fast 331-400
      mark slow 411-500
";
    assert_eq!(tree(&analysis), want);
    // The compiler's processes belong to the step of the object file that the compiler makes. The shell that starts the
    // compiler belongs to the step of make until it executes the compiler.
    let steps = Steps::new(&analysis, &[]);
    let name = |at: u32| {
        let step = steps.of_process(&analysis, ProcessIx(at)).unwrap();
        steps.list()[step].name.whole().to_owned()
    };
    assert_eq!([name(2), name(3), name(7)], ["a.o", "a.o", "x --fast"]);
    let shell = steps.at(ThreadIx(1), Ktime(11)).unwrap();
    assert_eq!(steps.list()[shell].name.whole(), "make all");

    // The filter and the rows of groups use the same steps as the tree of steps.
    let filter = Filter {
        step: Some("a.o".into()),
        ..Filter::default()
    };
    let recording = Recording::from(analysis);
    assert_eq!(filter.apply(&recording), [1, 2, 3].map(ProcessIx));
    let all: Vec<_> = (0..9).map(ProcessIx).collect();
    let mut rows = query::rows(&recording, &all, By::Step, Sort::Start, &[]);
    rows.sort_by_key(|row| row.start);
    let rows: Vec<(&str, u64)> = rows.iter().map(|row| (&*row.name, row.count)).collect();
    let want = [
        ("make all", 2),
        ("a.o", 3),
        ("ctest", 1),
        ("x --fast", 2),
        ("slow", 1),
    ];
    assert_eq!(rows, want);
}

/// The runner of GitHub gives each script a random name. So the step of such a script is named after the first program
/// in the script.
#[test]
fn a_script_is_named_after_its_first_program() {
    let analysis = built(&[
        (None, 0, 900, &[(0, "Runner.Worker")]),
        (
            Some(0),
            10,
            300,
            &[(
                11,
                "bash -e /w/_temp/1b2c3d4e-0000-4000-8000-000000000001.sh",
            )],
        ),
        // The subshell executes no program itself, so it does not name the step.
        (Some(1), 20, 30, &[]),
        (Some(1), 40, 200, &[(41, "/usr/bin/make -j2 test")]),
        (
            Some(0),
            310,
            400,
            &[(
                311,
                "bash -e /w/_temp/2b2c3d4e-0000-4000-8000-000000000002.sh",
            )],
        ),
    ]);
    let want = "\
job run make -j2 test 11-300
  target make test 41-200
job run 2b2c3d4e 311-400
";
    assert_eq!(tree(&analysis), want);
}

/// Tests spans whose marks are set in different ways: by children of a shell, by shells that execute `tr mark` in their
/// own process as the last command, and by two different shells of one parent process.
#[test]
fn marks_begin_and_end_spans() {
    let analysis = built(&[
        (None, 0, 900, &[(0, "sh run.sh")]),
        (Some(0), 10, 12, &[(11, "/opt/bin/tr mark --begin build")]),
        (Some(0), 20, 200, &[(21, "gcc -c -o a.o a.c")]),
        (Some(0), 210, 212, &[(211, "tr mark linked")]),
        (Some(0), 300, 302, &[(301, "tr mark --end build")]),
        (Some(0), 310, 400, &[(311, "sh -c ~begin;~work;~end~")]),
        (Some(5), 320, 322, &[(321, "tr mark --begin inner")]),
        (Some(5), 330, 340, &[(331, "gcc -c -o b.o b.c")]),
        (
            Some(0),
            410,
            420,
            &[(411, "sh -c x"), (412, "tr mark --begin across")],
        ),
        (Some(0), 430, 440, &[(431, "gcc -c -o c.o c.c")]),
        (
            Some(0),
            450,
            460,
            &[(451, "sh -c x"), (452, "tr mark --end across")],
        ),
        (Some(0), 470, 480, &[(471, "tr mark --end nothing")]),
        (Some(0), 500, 510, &[(501, "tr mark --begin open")]),
        (Some(0), 520, 530, &[(521, "tr mark --begin unused")]),
    ]);
    let mut analysis = analysis;
    // A shell executes its last command in its own process.
    let end = analysis.processes[5].execs[0].clone();
    analysis.processes[5].execs.push(ExecSpan {
        start: Ktime(390),
        argv: Argv::from_args(["tr", "mark", "--end", "inner"]),
        ..end
    });
    let want = "\
mark build 11-301
  mark linked 211-211
mark across 412-452
mark open 501-900
  mark unused 521-900
  target a.o 21-200
mark inner 321-390
  target b.o 331-340
  target c.o 431-440
";
    assert_eq!(tree(&analysis), want);
}

/// If two spans overlap and neither is inside the other, it is not known to which of them the work of their process
/// belongs.
#[test]
fn overlapping_spans_have_no_work_of_their_own() {
    let analysis = built(&[
        (None, 0, 900, &[(0, "sh run.sh")]),
        (Some(0), 10, 11, &[(10, "tr mark --begin a")]),
        (Some(0), 20, 21, &[(20, "tr mark --begin b")]),
        (Some(0), 25, 26, &[(25, "tr mark --begin in")]),
        (Some(0), 27, 28, &[(27, "tr mark --end in")]),
        (Some(0), 30, 31, &[(30, "tr mark --end a")]),
        (Some(0), 40, 41, &[(40, "tr mark --end b")]),
        (Some(0), 40, 41, &[(40, "tr mark --begin c")]),
        (Some(0), 50, 51, &[(50, "tr mark --end c")]),
    ]);
    let want = "mark a 10-30 ?\nmark b 20-40 ?\nmark in 25-27\nmark c 40-50\n";
    assert_eq!(tree(&analysis), want);
}

/// A filter by the name of a mark chooses the processes of all marks with this name, even of marks without work of
/// their own. A filter by the title of a step chooses the processes of that step alone.
#[test]
fn the_processes_of_a_mark_are_found_by_its_name() {
    let analysis = built(&[
        (None, 0, 900, &[(0, "sh run.sh")]),
        (Some(0), 10, 11, &[(10, "tr mark --begin a")]),
        (Some(0), 20, 21, &[(20, "tr mark --begin b")]),
        (Some(0), 30, 31, &[(30, "tr mark --end a")]),
        (Some(0), 40, 41, &[(40, "tr mark --end b")]),
        (Some(0), 60, 61, &[(60, "tr mark now")]),
        (
            Some(0),
            100,
            200,
            &[(100, "tr mark one -- sh"), (101, "sh")],
        ),
        (Some(6), 110, 120, &[(110, "tr mark in -- x"), (111, "x")]),
        (
            Some(0),
            300,
            400,
            &[(300, "tr mark two -- sh"), (301, "sh")],
        ),
        (Some(8), 310, 320, &[(310, "tr mark in -- x"), (311, "x")]),
    ]);
    let steps = Steps::new(&analysis, &[]);
    let found = |name: &str| {
        let name = steps.whole_name(name).expect(name);
        let inside = steps.processes_in(&analysis, name);
        let all = analysis.process_ids().filter(|ix| inside[*ix]);
        all.map(|ix| ix.0).collect::<Vec<_>>()
    };
    assert_eq!(found("a"), [0]);
    assert_eq!(found("b"), [0]);
    assert_eq!(found("now"), [0]);
    assert_eq!(found("in"), [7, 9]);
    assert_eq!(found("one › in"), [7]);
    assert!(steps.whole_name("three › in").is_none());
}

/// A step with a long name is found by the whole name, which machine formats print, and by the short name, which is
/// printed for people.
#[test]
fn a_step_is_found_by_its_whole_name_and_by_the_short_one() {
    let analysis = built(&[
        (None, 0, 900, &[(0, "ctest")]),
        (
            Some(0),
            10,
            500,
            &[(
                10,
                "sh -c ./check~--of~the~first~parser~--with~all~its~inputs~--and~--every~--option~--there~is",
            )],
        ),
        (Some(0), 510, 800, &[(510, "/w/x --fast")]),
    ]);
    let steps = Steps::new(&analysis, &[]);
    let mut names = steps.list().iter().map(|step| &step.name);
    let long = names.find(|name| name.short() != name.whole()).unwrap();
    assert!(long.short().contains('…') && !long.whole().contains('…'));
    for name in [long.whole(), long.short()] {
        let found = steps.whole_name(name).expect(name);
        let inside = steps.processes_in(&analysis, found);
        let found: Vec<_> = analysis.process_ids().filter(|ix| inside[*ix]).collect();
        assert_eq!(found, [ProcessIx(1)], "{name}");
    }
}

/// A test in a runner's report counts by its own result, however its worker process ended. Suites and workers do not
/// count as tests.
#[test]
fn tests_count_as_their_report_has_them() {
    const WORKER: &str = "node /w/node_modules/jest-worker/build/workers/processChild.js";
    let mut analysis = built(&[
        (None, 0, 900, &[(0, "node /w/node_modules/.bin/jest")]),
        (Some(0), 10, 800, &[(10, WORKER)]),
        (Some(0), 20, 700, &[(20, WORKER)]),
    ]);
    analysis.processes[0].status = Some(1 << 8);
    analysis.processes[1].status = Some(15);
    let span = |name: &str, result: Option<TestResult>, from: u64, to: u64| Imported {
        from: Ktime(from),
        to: Ktime(to),
        kind: ImportedKind::Test,
        name: name.as_bytes().into(),
        brief: None,
        file: None,
        result,
        process: ProcessIx(1),
        thread: None,
        whole: false,
        error: 5,
        doubt: Some(Doubt::Runner),
    };
    let spans = [
        span("suite", None, 100, 300),
        span("suite adds", Some(TestResult::Passed), 110, 150),
        span("suite fails", Some(TestResult::Failed), 160, 160),
        span("suite breaks", Some(TestResult::Error), 320, 400),
        // This test is inside the test `suite breaks` only because the times of both tests are not exact.
        span("suite subtracts", Some(TestResult::Passed), 330, 340),
    ];
    let steps = Steps::new(&analysis, &spans);
    let tests: Vec<_> = steps.tests().map(|(_, step)| step).collect();
    let failed = tests.iter().filter(|step| step.failed()).count();
    assert_eq!((tests.len(), failed), (4, 2), "{tests:?}");
}

/// If a step's name has a random number, the step is compared with other runs by the rest of the name. If a script
/// started a program, the script's step is compared by that program's name.
#[test]
fn random_numbers_belong_to_no_stable_name() {
    const GITHUB: &str = "bash -e /w/_temp/9f8e7d6c-aaaa-bbbb-cccc-0123456789ab.sh";
    let analysis = built(&[
        (None, 0, 900, &[(0, "agent")]),
        (Some(0), 10, 20, &[(10, GITHUB)]),
        (Some(0), 30, 80, &[(30, GITHUB)]),
        (Some(2), 40, 70, &[(40, "lint src")]),
        (
            Some(0),
            90,
            99,
            &[(90, "sh -xe /j/a@tmp/durable-9f8e7d6c/script.sh")],
        ),
    ]);
    let steps = Steps::new(&analysis, &[]);
    let names: Vec<_> = steps
        .list()
        .iter()
        .map(|step| (step.name.whole(), step.stable_name()))
        .collect();
    let names: Vec<_> = names
        .iter()
        .map(|(name, stable)| (*name, stable.whole()))
        .collect();
    let want = [
        ("run 9f8e7d6c", "run"),
        ("run lint src", "run lint src"),
        ("durable-9f8e7d6c", "durable-"),
    ];
    assert_eq!(names, want);
}

#[test]
fn threads_of_a_test_binary_are_tests() {
    let mut analysis = built(&[
        (None, 0, 900, &[(0, "cargo test")]),
        (
            Some(0),
            10,
            800,
            &[(11, "/w/target/debug/deps/laws-0123456789abcdef")],
        ),
        (Some(0), 10, 800, &[(11, "/w/server")]),
    ]);
    let laws = ProcessIx(1);
    let main = ThreadIx(1);
    let test = thread(&mut analysis, laws, Some(main), (20, 90), "steps::nest");
    thread(&mut analysis, laws, Some(test), (30, 80), "worker");
    thread(&mut analysis, laws, Some(main), (40, 70), "x");
    thread(&mut analysis, laws, Some(main), (50, 60), "steps::overlapp");
    thread(
        &mut analysis,
        ProcessIx(2),
        Some(ThreadIx(2)),
        (50, 60),
        "worker",
    );
    let want = "\
target cargo test 0-900
  test laws 11-800
    test steps::nest 20-90
    test steps::overlapp… 50-60
";
    assert_eq!(tree(&analysis), want);
    let steps = Steps::new(&analysis, &[]);
    let worker = steps.at(ThreadIx(4), Ktime(30));
    assert_eq!(
        worker,
        steps.at(test, Ktime(20)),
        "it belongs to the test that started it"
    );
}

/// The analysis of a simulated run on this number of CPUs.
fn simulated(world: World, cpus: u16) -> Analysis {
    let config = Config::new(world, cpus, 300_000_000).seed(7);
    let (file, ..) = tr_sim::file::record_to(&config, Vec::new()).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    analyze(&trace, &options)
}

/// The times of all steps and of the time outside of steps add up to the whole. The parts of a step's time add up to
/// its length.
#[test]
fn times_add_up() {
    for (name, world) in [
        ("make", scenario::make(4, 12)),
        ("threads", scenario::pool(5)),
        ("short", scenario::short_processes(2, 200)),
    ] {
        let mut analysis = simulated(world, 3);
        if name == "threads" {
            threads_are_tests(&mut analysis);
        }
        let steps = Steps::new(&analysis, &[]);
        let root = tr_analyze::critical_path::root(&analysis).unwrap();
        let path = tr_analyze::critical_path::critical_path(&analysis, root).unwrap();
        let fineness = Fineness {
            of_step: 16,
            of_all: u64::MAX,
        };
        let times = JudgedTimes::new(&analysis, &steps, &path.segments, Some(fineness)).times;
        courses_add_up(&steps, &times, fineness);
        assert_eq!(name == "short", steps.list().len() < 3, "{name}");
        let mut sum = times.outside.times.unwrap_or_default();
        let mut on_path = times.outside.on_path;
        let mut processes = times.outside.processes;
        let mut all_others = 0;
        for (step, times) in steps.list().iter().zip(&times.steps) {
            if step.depth == 0 {
                sum.add(&times.times.unwrap());
                on_path += times.on_path;
                processes += times.processes;
            }
            let spent = times.spent.unwrap();
            assert_eq!(spent.sum(), step.wall(), "{name}: {}", step.name.whole());
            // Other tasks can only have taken time in which the step's own threads waited.
            let times = times.times.unwrap();
            let waits = times.sleep + times.blocked + times.unknown;
            let others = spent.of(TimeKind::Others);
            assert!(
                others <= waits,
                "{name}: {}: {others} of {waits}",
                step.name.whole()
            );
            assert!(spent.of(TimeKind::OnCpu) <= times.on_cpu + times.unknown);
            all_others += others;
        }
        assert_eq!(sum, analysis.totals.times, "{name}");
        assert_eq!(on_path, path.length(), "{name}");
        path_by_step_adds_up(&analysis, &steps, &times, &path);
        assert_eq!(processes, analysis.totals.processes, "{name}");
        assert!(
            name != "threads" || all_others > 0,
            "they wait for each other"
        );
    }
}

/// Verifies the courses of steps. A step's course lists how its time was used, as parts in the order of time. The parts
/// of one kind add up to the step's time of that kind. Each time slice has at most one part of a kind, and two
/// consecutive parts have different kinds.
fn courses_add_up(steps: &Steps, times: &AllTimes, fineness: Fineness) {
    let holders = steps.holders();
    let mut several = 0;
    for (at, (course, own)) in times.courses.iter().zip(&times.steps).enumerate() {
        if course.is_empty() {
            continue;
        }
        several += 1;
        let mut sums = ByKind::default();
        for part in course {
            sums.add(part.kind, part.ns);
        }
        assert_eq!(Some(sums), own.spent);
        assert!(!holders[at]);
        let equal = course
            .windows(2)
            .filter(|pair| pair[0].kind == pair[1].kind);
        assert_eq!(equal.count(), 0);
        assert!(course.len() as u64 <= 2 * fineness.of_step * TimeKind::ALL.len() as u64);
    }
    assert!(several > 0 || steps.list().len() < 3);
}

#[test]
fn the_time_that_no_inner_step_explains() {
    // Two of the inner steps overlap, and a third one is apart from them.
    let analysis = built(&[
        (None, 0, 1000, &[(0, "make all")]),
        (Some(0), 100, 400, &[(100, "gcc -c a.c -o a.o")]),
        (Some(0), 300, 500, &[(300, "gcc -c b.c -o b.o")]),
        (Some(0), 700, 800, &[(700, "gcc -o prog a.o b.o")]),
    ]);
    let steps = Steps::new(&analysis, &[]);
    let rest = steps.unexplained();
    let of = |name: &str| {
        let at = steps
            .list()
            .iter()
            .position(|step| step.name.whole().contains(name));
        rest[at.unwrap()]
    };
    assert_eq!([of("make"), of("a.o"), of("b.o")], [500, 300, 200]);
}

/// Steps for which no critical path is requested keep the figures that need no critical path. Steps for which the
/// critical path is requested have all figures.
#[test]
fn only_the_steps_that_are_asked_for_have_a_path() {
    let analysis = simulated(scenario::make(4, 12), 3);
    let mut steps = Steps::new(&analysis, &[]);
    let all = JudgedTimes::new(&analysis, &steps, &[], None).times.steps;
    let verdicts = Verdicts::new(&analysis, &steps);
    let asked = 2;
    steps.walk_only([asked].into_iter());
    let some = JudgedTimes::new(&analysis, &steps, &[], None).times.steps;
    let some_verdicts = Verdicts::new(&analysis, &steps);
    assert!(all.len() > 5 && all.len() == some.len());
    for (at, (every, some)) in all.iter().zip(&some).enumerate() {
        assert!(every.spent.is_some() && verdicts.figures(at).is_some());
        if at == asked {
            assert_eq!(every, some);
            assert_eq!(verdicts.figures(at), some_verdicts.figures(at));
        } else {
            let without = StepTimes {
                spent: None,
                ..*every
            };
            assert_eq!(&without, some);
            assert_eq!(some_verdicts.figures(at), None);
        }
    }
}

/// Verifies that the critical path by step has the time of the whole path, and that each share has the time of the
/// innermost steps with its name.
fn path_by_step_adds_up(analysis: &Analysis, steps: &Steps, times: &AllTimes, path: &CriticalPath) {
    let found = PathBySteps::new(analysis, &groups(analysis), steps, path);
    let first = found.segments.iter().map(|segment| segment.from);
    let ends = found.segments.iter().map(|segment| segment.to);
    assert!(
        first.skip(1).eq(ends.take(found.segments.len() - 1)),
        "a hole"
    );
    let shares: u64 = found.shares.iter().map(|share| share.time()).sum();
    let legs: u64 = found.legs().map(|(leg, _)| leg.length()).sum();
    assert_eq!((shares, legs), (path.length(), path.length()));
    let titles: Vec<Phrase> = steps.titles().iter().map(StepTitle::phrase).collect();
    let holds = steps.holders();
    let is_holding_unit = |at: usize| holds[at] && steps.list()[at].kind == StepKind::Unit;
    for share in found.shares.iter().filter(|share| share.is_step) {
        // The time of a compilation unit that contains another step includes the time of that inner step, so this time
        // is not compared.
        if (0..titles.len()).any(|at| titles[at] == share.name && is_holding_unit(at)) {
            continue;
        }
        let of_name = (0..titles.len()).filter(|at| !holds[*at] && titles[*at] == share.name);
        let on_path: Vec<u64> = of_name.map(|at| times.steps[at].on_path).collect();
        assert_eq!(
            share.time(),
            on_path.iter().sum::<u64>(),
            "{}",
            share.name.whole()
        );
        let count = on_path.iter().filter(|ns| **ns > 0).count();
        assert_eq!(share.count, count as u64, "{}", share.name.whole());
    }
}

/// rustc works, and then starts a C compiler to link a procedural macro. The linking is a step of its own inside of
/// rustc's step.
#[test]
fn a_unit_that_holds_its_link_has_its_name_on_the_path() {
    let mut analysis = simulated(scenario::make(2, 4), 2);
    for exec in analysis
        .processes
        .iter_mut()
        .flat_map(|process| &mut process.execs)
    {
        let argv: &[&str] = match exec.argv.args().next() {
            Some(b"gcc") => &["rustc", "--crate-name", "derive", "src/lib.rs"],
            Some(b"as") => &["cc", "-o", "/t/libderive.so", "/t/derive.o"],
            _ => continue,
        };
        exec.argv = Argv::from_args(argv.iter().copied());
    }
    let (path, steps) = (
        tr_analyze::critical_path::of(&analysis).unwrap(),
        Steps::new(&analysis, &[]),
    );
    let holds = steps.holders();
    assert!(steps
        .list()
        .iter()
        .zip(&holds)
        .any(|(step, holds)| *holds && step.name.whole() == "derive"));
    let found = PathBySteps::new(&analysis, &groups(&analysis), &steps, &path);
    let time = |name: &str| -> u64 {
        let named = found
            .shares
            .iter()
            .filter(|share| share.name.whole() == name);
        named.map(|share| share.time()).sum()
    };
    assert!(time("derive") > 0);
    assert_eq!(time("rustc") + time("gcc"), 0);
}

/// Turns all programs of an analysis into test binaries, and each thread into a test.
fn threads_are_tests(analysis: &mut Analysis) {
    for process in &mut analysis.processes {
        for exec in &mut process.execs {
            exec.argv = Argv::from_args(["/w/deps/pool-0123456789abcdef"]);
        }
        for (nth, thread) in process.threads.iter().enumerate() {
            analysis.threads[thread.0 as usize].comm = Comm::new(format!("test{nth}").as_bytes());
        }
    }
}

#[test]
fn the_text_tells_what_a_slow_test_waited_for() {
    let mut analysis = simulated(scenario::make(4, 12), 2);
    for process in &mut analysis.processes {
        for exec in &mut process.execs {
            if exec.argv.args().next() == Some(b"gcc") {
                exec.argv = Argv::from_args(["/w/deps/slow-0123456789abcdef"]);
            }
        }
    }
    let chosen: Vec<_> = analysis.process_ids().collect();
    let ask = Ask {
        top: Some(4),
        ..Ask::default()
    };
    let recording = Recording::from(analysis);
    let view = View::new(&recording, &chosen, "x", &ask);
    let style = Style {
        width: 80,
        color: false,
        ascii: false,
        markdown: false,
    };
    let text = ReportKind::Steps.make(&view).text(&style);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(
        lines[1].contains("make -j") || lines[1].contains("make"),
        "{text}"
    );
    assert!(
        lines[5].trim_end().ends_with("└─ 9 more") || text.contains(" more"),
        "{text}"
    );
    let slowest = lines
        .iter()
        .position(|line| line.starts_with("Slowest tests (top 3 of 12)"));
    let slow = lines[slowest.expect(&text) + 1];
    assert!(
        slow.contains("slow: CPU ") && slow.contains("run queue "),
        "{slow}"
    );
}

/// The lines about failures on the first screen, if the processes have these raw statuses. The first process is
/// COMMAND.
fn screen(lines: &[Line], statuses: &[u32]) -> String {
    let mut analysis = built(lines);
    for (process, status) in analysis.processes.iter_mut().zip(statuses) {
        process.status = Some(*status);
    }
    analysis.meta.root = Some(Tgid(0));
    first_screen(&analysis)
}

/// The whole first screen.
fn top(analysis: &Analysis) -> String {
    let chosen: Vec<_> = analysis.process_ids().collect();
    let recording = Recording::from(analysis.clone());
    let ask = Ask {
        top: Some(6),
        ..Ask::default()
    };
    let view = View::new(&recording, &chosen, "x.bin", &ask);
    let style = Style {
        width: 120,
        ..Style::PLAIN
    };
    let report = ReportKind::Top.make(&view);
    report.text(&style)
}

/// The lines of the first screen about failures.
fn first_screen(analysis: &Analysis) -> String {
    let text = top(analysis);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Failed"));
    let mut failed = Vec::new();
    while let Some(line) = lines
        .next()
        .filter(|line| line.starts_with("Failed") || line.starts_with("    "))
    {
        failed.push(line.trim_end());
    }
    failed.join("\n")
}

/// The names of two processes with equal command lines are shown after the names of the processes' steps. The name of
/// any other process is shown alone.
#[test]
fn a_step_distinguishes_processes_with_one_name() {
    let mut analysis = built(&[
        (None, 0, 900, &[(0, "make -s")]),
        (Some(0), 10, 300, &[(11, "make -C lib")]),
        (Some(1), 20, 200, &[(21, "./work.sh --verbose")]),
        (Some(0), 310, 600, &[(311, "make -C app")]),
        (Some(3), 320, 500, &[(321, "./work.sh --verbose")]),
        (Some(3), 510, 590, &[(511, "./other.sh --verbose")]),
    ]);
    for process in &mut analysis.processes {
        process.times.on_cpu = 50;
    }
    analysis.meta.root = Some(Tgid(0));
    let text = top(&analysis);
    for name in [
        "make -C lib › work.sh --verbose",
        "make -C app › work.sh --verbose",
    ] {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(text.contains("  other.sh --verbose"), "{text}");
}

/// Two compilers are in steps with the same name, which does not distinguish them. So the names of the outer steps
/// around these steps are shown before that name.
#[test]
fn a_step_of_a_name_that_all_have_distinguishes_no_process() {
    let mut analysis = built(&[
        (None, 0, 900, &[(0, "make -s")]),
        (Some(0), 10, 300, &[(11, "make -C lib")]),
        (Some(1), 20, 200, &[(21, "gcc -c x.c -o x.o")]),
        (Some(2), 30, 190, &[(31, "cc1 x.c")]),
        (Some(0), 310, 600, &[(311, "make -C app")]),
        (Some(4), 320, 500, &[(321, "gcc -c x.c -o x.o")]),
        (Some(5), 330, 490, &[(331, "cc1 x.c")]),
    ]);
    for (at, process) in analysis.processes.iter_mut().enumerate() {
        // The compilers have more CPU time than the makes, so the compilers come first in the table, which has only a
        // few rows.
        process.times.on_cpu = if at % 3 == 1 { 10 } else { 50 };
    }
    analysis.processes[0].times.on_cpu = 10;
    analysis.meta.root = Some(Tgid(0));
    let text = top(&analysis);
    for name in ["cc1 x.c", "gcc x.c"] {
        for step in ["make -C lib", "make -C app"] {
            assert!(text.contains(&format!("  {step} › {name}")), "{text}");
        }
    }
}

/// A failed probe (a program that is run only to get an answer) is no failure if the parent process went on after it.
/// So a build that succeeded has no failures.
#[test]
fn questions_are_no_failures() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "sh ./build.sh")]),
        (Some(0), 10, 20, &[(11, "grep -q x y")]),
        (Some(0), 30, 300, &[(31, "/bin/sh ./configure")]),
        (Some(2), 40, 60, &[(41, "cc -o conftest conftest.c")]),
        (Some(2), 70, 80, &[(71, "./conftest")]),
        (Some(0), 400, 410, &[(401, "yes")]),
    ];
    // A test program of a configure script may crash, and a program may be killed by SIGPIPE when its reader has read
    // enough.
    assert_eq!(screen(lines, &[0, 1 << 8, 0, 1 << 8, 11, 13]), "");
    // If a program of the build itself crashes, the failure is reported.
    let text = screen(lines, &[0, 1 << 8, 0, 1 << 8, 11, 11]);
    assert_eq!(text, "Failed   yes   killed by SIGSEGV after 10 ns (pid 5)");
}

/// The cause of a failure comes first. A program such as `readlink`, which a shim or a shell ran earlier just to get an
/// answer, is no cause.
#[test]
fn the_cause_of_a_failure_comes_first() {
    let shim: &[Line] = &[
        (
            None,
            0,
            900,
            &[(0, "bash /shims/pytest"), (50, "python3 -m pytest")],
        ),
        (Some(0), 10, 20, &[(11, "readlink /a")]),
        (Some(0), 22, 30, &[(23, "readlink /b")]),
    ];
    let text = screen(shim, &[1 << 8, 1 << 8, 1 << 8]);
    assert_eq!(
        text,
        "Failed   pytest   exit 1 after 850 ns (pid 0)\n         \
         2 failed without consequence: tr analyze --report execs --failed"
    );
    let make: &[Line] = &[
        (None, 0, 900, &[(0, "make all")]),
        (Some(0), 10, 20, &[(11, "sh -c test~-f~x")]),
        (Some(0), 100, 800, &[(101, "cc -c -o a.o a.c")]),
        (
            Some(2),
            110,
            700,
            &[(111, "cc1 -quiet a.c -o /tmp/ccAbCdEf.s")],
        ),
        (Some(0), 120, 850, &[(121, "cc -c -o b.o b.c")]),
    ];
    let text = screen(make, &[2 << 8, 0, 1 << 8, 1 << 8, 0]);
    assert_eq!(
        text,
        "Failed   cc1 a.c   exit 1 after 590 ns (pid 3)\n         \
         → cc a.c exit 1 → the command exit 2"
    );
    // The shell has `set -e`. An earlier `grep -q` ended with the same status, but only answered a question.
    let shell: &[Line] = &[
        (None, 0, 900, &[(0, "/bin/sh ./run.sh")]),
        (Some(0), 10, 20, &[(11, "grep -q x y")]),
        (Some(0), 100, 890, &[(101, "./slow")]),
    ];
    let text = screen(shell, &[1 << 8, 1 << 8, 1 << 8]);
    assert!(
        text.starts_with("Failed   slow   exit 1 after 790 ns"),
        "{text}"
    );
    assert!(
        text.contains("  1 more failed (grep -q x y exit 1): tr analyze"),
        "{text}"
    );
}

/// If several jobs failed, each is reported with the failures that it led to, in the order of time.
#[test]
fn jobs_that_fail_at_once_are_reported_alike() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make -k -j2")]),
        (Some(0), 10, 800, &[(11, "gcc -c -o a.o a.c")]),
        (Some(1), 20, 790, &[(21, "cc1 -quiet a.c -o a.s")]),
        (Some(0), 30, 600, &[(31, "make -C sub")]),
        (Some(3), 40, 590, &[(41, "gcc -c -o b.o b.c")]),
        (Some(4), 50, 580, &[(51, "cc1 -quiet b.c -o b.s")]),
    ];
    let text = screen(lines, &[2 << 8, 1 << 8, 1 << 8, 2 << 8, 1 << 8, 1 << 8]);
    assert_eq!(
        text,
        "Failed   cc1 b.c   exit 1 after 530 ns (pid 5)\n         \
         → gcc b.c exit 1 → make -C sub exit 2 → the command exit 2\n\
         Failed   cc1 a.c   exit 1 after 770 ns (pid 2)\n         \
         → gcc a.c exit 1 → the command exit 2"
    );
}

/// If a check of a configuration failed and the configuration went on, the check is no cause, for cmake as for a
/// script.
#[test]
fn a_failed_check_is_no_cause_of_a_failed_configuration() {
    for configure in ["/bin/sh ./configure", "cmake -S . -B b"] {
        let configure: &'static str = configure;
        let mut analysis = built(&[
            (None, 0, 3_000_000_000, &[(0, "x")]),
            (Some(0), 10, 20, &[(11, "make -f Makefile cmTC")]),
            (Some(0), 30, 2_000_000_000, &[(31, "make -f Makefile cmTD")]),
        ]);
        let argv = Argv::from_args(configure.split(' '));
        analysis.processes[0].argv = argv.clone();
        analysis.processes[0].execs[0].argv = argv;
        analysis.processes[0].status = Some(1 << 8);
        analysis.processes[1].status = Some(2 << 8);
        analysis.meta.root = Some(Tgid(0));
        let text = first_screen(&analysis);
        assert!(text.starts_with("Failed   c"), "{configure}: {text}");
    }
}

/// A failed check may explain why a configuration failed, but only if the configuration started nothing else after the
/// check. A program at the end, such as one that cleans up, does not count as something else.
#[test]
fn a_probe_explains_only_what_started_nothing_after_it() {
    const END: u64 = 900_000_000;
    const MIDDLE: u64 = 450_000_000;
    for (configure, probe) in [
        ("cmake -S . -B b", "gmake -f Makefile cmTC_1/fast"),
        ("meson setup b", "pkg-config --exists foo"),
        ("/bin/sh ./configure", "gcc -o conftest conftest.c"),
        ("python3 ci.py", "pkg-config --exists foo"),
        ("make all", "pkg-config --exists foo"),
    ] {
        let of = |then: Option<&'static str>| {
            let mut analysis = built(&[
                (None, 0, END, &[(0, "x")]),
                (Some(0), 10, MIDDLE, &[(11, "x")]),
                (Some(0), MIDDLE + 10, MIDDLE + 20, &[(MIDDLE + 11, "x")]),
            ]);
            let lines = [configure, probe, then.unwrap_or("rm -f conftest.c")];
            for (process, line) in analysis.processes.iter_mut().zip(lines) {
                process.argv = Argv::from_args(line.split(' '));
                process.execs[0].argv = process.argv.clone();
            }
            if then.is_none() && !configure.contains("./configure") {
                analysis.processes.truncate(2);
                analysis.processes[0].children.truncate(1);
            }
            for (process, status) in analysis.processes.iter_mut().zip([2 << 8, 1 << 8, 0]) {
                process.status = Some(status);
            }
            analysis.meta.root = Some(Tgid(0));
            first_screen(&analysis)
        };
        let last = of(None);
        assert!(
            last.contains("(pid 1)\n         → perhaps the command exit 2"),
            "{last}"
        );
        let before = of(Some("uname -m -r"));
        let is_script = configure.contains("./configure");
        assert_eq!(
            before.contains("(pid 0)"),
            !is_script,
            "{configure}: {before}"
        );
        let before = of(Some("gcc --version"));
        assert!(before.contains("(pid 0)"), "{before}");
        assert!(!before.contains('→'), "{before}");
    }
}

/// A shell gets the status of a pipe's last command, and a builtin after the pipe has a status of its own.
#[test]
fn a_pipe_before_a_builtin_is_no_certain_cause() {
    let lines: &[Line] = &[
        (None, 0, 900_000_000, &[(0, "bash -e check.sh")]),
        (Some(0), 10, 880_000_000, &[(11, "./gen all")]),
        (Some(0), 20, 880_000_100, &[(21, "tail -n 1")]),
    ];
    let chain = |lines: &[Line], code: u32| {
        let text = screen(lines, &[code << 8, code << 8, 0]);
        text.lines().nth(1).unwrap_or_default().trim().to_owned()
    };
    assert_eq!(chain(lines, 1), "→ perhaps the command exit 1");
    // No builtin ends with this status, so the pipe is certainly the cause.
    assert_eq!(chain(lines, 5), "→ the command exit 5");
    let mut piped = lines.to_vec();
    piped[0].3 = &[(0, "bash -eo pipefail -c ./gen~all~|~tail~-n~1")];
    assert_eq!(chain(&piped, 1), "→ the command exit 1");
    assert_eq!(chain(&lines[..2], 1), "→ perhaps the command exit 1");
}

/// A script may tolerate a program's failure and later end with the same status for another reason: a failed builtin, a
/// failed expansion or a missing program. So the program is only "perhaps" the cause. If the script is known and only
/// runs programs, the program is certainly the cause.
#[test]
fn a_status_that_a_shell_has_by_itself_is_no_certain_cause() {
    for (shell, code, is_certain) in [
        ("dash -ec ls~/missing~||~true;~cd~/nowhere", 2, false),
        ("dash -e ci.sh", 2, false),
        ("bash -eu ci.sh", 1, false),
        ("bash -c ./gen;~exec~./none", 127, false),
        ("sh -e ci.sh", 126, false),
        ("sh -e ci.sh", 3, true),
        ("sh -e ci.sh", 139, true),
        ("sh -c make~all", 2, true),
        ("/bin/sh -c cd~sub~&&~make", 2, false),
        ("sh -ec ./gen~&&~make~-s~all", 2, true),
    ] {
        let shell: &'static str = shell;
        let programs: &'static [(u64, &'static str)] = vec![(0, shell)].leak();
        let lines: &[Line] = &[
            (None, 0, 900, programs),
            (Some(0), 100, 890, &[(101, "make all")]),
        ];
        let text = screen(lines, &[code << 8, code << 8]);
        let end = if is_certain {
            "→ the command"
        } else {
            "→ perhaps the command"
        };
        assert!(text.contains(end), "{shell}: {text}");
        // If the script's last step is a make that continues after failures, all failures of its jobs are reported.
        let mut jobs = lines.to_vec();
        jobs[1].3 = &[(101, "make -k all")];
        jobs.push((Some(1), 200, 300, &[(201, "./a")]));
        jobs.push((Some(1), 250, 400, &[(251, "./b")]));
        let text = screen(&jobs, &[code << 8, code << 8, 1 << 8, 1 << 8]);
        assert_eq!(text.matches("Failed ").count(), 2, "{shell}: {text}");
    }
}

/// Letters in the value of a make option, such as a `k`, are not options themselves. A make that ignores failures does
/// not fail because of a failed job.
#[test]
fn the_value_of_an_option_of_make_is_no_option() {
    for (make, going) in [
        ("make -k all", true),
        ("make -sk all", true),
        ("make -ks -C sub", true),
        ("make -Oline all", false),
        ("make -Ckit all", false),
        ("make -Otask -j2 all", false),
        ("make -j2 -- -k", false),
        ("ninja -vk 0", true),
        ("ninja -Cbuild-k", false),
    ] {
        let programs: &'static [(u64, &'static str)] = vec![(0, make)].leak();
        let lines: &[Line] = &[
            (None, 0, 900, programs),
            (Some(0), 10, 100, &[(11, "./clean")]),
            (Some(0), 200, 800, &[(201, "./gen")]),
        ];
        let text = screen(lines, &[2 << 8, 3 << 8, 4 << 8]);
        let count = text.matches("Failed ").count();
        assert_eq!(count, 1 + usize::from(going), "{make}: {text}");
    }
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make -i all")]),
        (Some(0), 200, 890, &[(201, "./gen")]),
    ];
    let text = screen(lines, &[2 << 8, 4 << 8]);
    assert!(text.contains("→ perhaps the command"), "{text}");
}

/// npm continues after a failed optional dependency. So a failed child of npm is certainly the reason only if npm ended
/// right after it.
#[test]
fn an_optional_child_of_npm_is_no_certain_cause() {
    let lines = |end| -> [Line; 2] {
        [
            (None, 0, 9_000_000_000, &[(0, "npm install")]),
            (Some(0), 100, end, &[(101, "sh -c node-gyp~rebuild")]),
        ]
    };
    for (end, ending) in [
        (8_990_000_000, "→ the command"),
        (2_000_000_000, "→ perhaps the command"),
    ] {
        let text = screen(&lines(end), &[1 << 8, 7 << 8]);
        assert!(text.contains(ending), "{text}");
    }
}

/// `make | tee log` hides six failures. In five of them, a signal of the kernel killed the compiler. All six are
/// counted.
#[test]
fn a_hidden_failure_is_not_displaced_by_others() {
    let mut lines: Vec<Line> = vec![(None, 0, 90_000_000_000, &[(0, "bash ci.sh")])];
    let mut statuses = vec![0];
    for number in 0..6u64 {
        let (start, make) = (number * 10_000_000_000 + 10, lines.len() as u32);
        let name: &'static str = format!("make part{number}").leak();
        let programs: &'static [(u64, &'static str)] = vec![(start, name)].leak();
        lines.push((Some(0), start, start + 2_000_000_000, programs));
        lines.push((
            Some(make),
            start + 10,
            start + 1_900_000_000,
            &[(0, "cc -c a.c")],
        ));
        lines.push((
            Some(0),
            start + 20,
            start + 2_000_000_100,
            &[(0, "tee log")],
        ));
        let status = if number < 5 { 11 } else { 1 << 8 };
        statuses.extend([2 << 8, status, 0]);
    }
    let text = screen(&lines, &statuses);
    // Four of the six failures have a line each.
    assert!(text.contains("2 more failed"), "{text}");
}

/// The time to find failures is proportional to their number: with 16 times as many failures, the search takes less
/// than 64 times as long.
#[test]
fn the_time_grows_with_the_number_of_failures_alone() {
    let cpu = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let taken = |count: u64| {
        let mut lines: Vec<Line> = vec![(None, 0, count * 10 + 10, &[(0, "ctest")])];
        let mut statuses = vec![8 << 8];
        for number in 0..count {
            lines.push((
                Some(0),
                number * 10 + 1,
                number * 10 + 9,
                &[(0, "sh tests/a.sh")],
            ));
            statuses.push(1 << 8);
        }
        let before = cpu();
        let text = screen(&lines, &statuses);
        assert!(text.starts_with("Failed   tests/a.sh"), "{text}");
        cpu() - before
    };
    taken(10);
    let (few, many) = (taken(2_000), taken(32_000));
    assert!(many < few * 64, "{few} ns, {many} ns");
}

/// make continues after a failure only with an option such as `-k`, or if make ignores the failure. An ignored failure
/// is no certain cause.
#[test]
fn what_make_ignored_is_no_certain_cause() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make all")]),
        (Some(0), 10, 100, &[(11, "./clean")]),
        (Some(0), 200, 800, &[(201, "./gen")]),
    ];
    let text = screen(lines, &[2 << 8, 3 << 8, 4 << 8]);
    assert!(text.starts_with("Failed   gen   exit 4"), "{text}");
    assert_eq!(text.matches("Failed ").count(), 1, "{text}");
    let text = screen(lines, &[2 << 8, 3 << 8, 0]);
    let clean =
        "Failed   clean   exit 3 after 90 ns (pid 1)\n         → perhaps the command exit 2";
    // make continued after the first failure, so make ignored that failure.
    assert!(text.starts_with("Failed   make all   exit 2"), "{text}");
    // With several job slots, make may have started the next job before the failure, or continued with the next line of
    // another job.
    let mut jobs = lines.to_vec();
    jobs[0].3 = &[(0, "make -j2 all")];
    assert_eq!(screen(&jobs, &[2 << 8, 3 << 8, 0]), clean);
    let mut beside = lines.to_vec();
    beside.insert(1, (Some(0), 5, 150, &[(6, "./long")]));
    let text = screen(&beside, &[2 << 8, 0, 3 << 8, 0]);
    assert!(text.starts_with("Failed   clean   exit 3"), "{text}");
    let mut going = lines.to_vec();
    going[0].3 = &[(0, "make -sk all")];
    let text = screen(&going, &[2 << 8, 3 << 8, 4 << 8]);
    assert!(text.starts_with("Failed   clean   exit 3"), "{text}");
    assert_eq!(text.matches("Failed ").count(), 2, "{text}");
}

/// If a program ends with 1 after a child's failure, the child is only "perhaps" the reason. The child is certainly the
/// reason if the program ends with the child's own unusual status, or if the child crashed.
#[test]
fn a_program_that_ends_with_its_own_status_fails_perhaps_for_its_child() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "python3 ci.py")]),
        (Some(0), 100, 890, &[(101, "./job")]),
    ];
    for (own, child, is_certain) in [
        (1 << 8, 1 << 8, false),
        (1 << 8, 7 << 8, false),
        (7 << 8, 7 << 8, true),
        (1 << 8, 11, true),
    ] {
        let text = screen(lines, &[own, child]);
        let end = if is_certain {
            "→ the command exit"
        } else {
            "→ perhaps the command exit"
        };
        assert!(text.contains(end), "{text}");
    }
    let mut wrapped = lines.to_vec();
    wrapped[0].3 = &[(0, "nice -n 5 ./job")];
    let text = screen(&wrapped, &[1 << 8, 1 << 8]);
    assert!(text.ends_with("→ the command exit 1"), "{text}");
}

/// A worker process of a pool reports a failure to the pool's owner through a pipe. The worker process itself ends with
/// 0.
#[test]
fn a_workers_child_may_be_the_reason() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "ansible-playbook site.yml")]),
        (Some(0), 10, 400, &[]),
        (Some(1), 20, 390, &[(21, "./old.sh")]),
        (Some(0), 410, 890, &[]),
        (Some(3), 420, 800, &[(421, "./new.sh")]),
        (Some(3), 810, 820, &[(811, "rm -r tmp")]),
    ];
    let text = screen(lines, &[2 << 8, 0, 7 << 8, 0, 9 << 8, 0]);
    let new =
        "Failed   new.sh   exit 9 after 380 ns (pid 4)\n         → perhaps the command exit 2";
    assert!(text.starts_with(new), "{text}");
    assert!(text.contains("1 failed without consequence"), "{text}");
    // The owner of the pool stops the worker when there is no more work.
    let text = screen(lines, &[2 << 8, 0, 7 << 8, 15, 9 << 8, 0]);
    assert!(text.starts_with(new), "{text}");
}

/// If a step failed and did not write the file that the next step needs, the step is perhaps the reason.
#[test]
fn a_file_that_was_not_written_links_two_failures() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "bash -e get.sh")]),
        (
            Some(0),
            10,
            100,
            &[(11, "curl -fsSLo dist/pkg.tgz http://h/pkg")],
        ),
        (
            Some(0),
            110,
            200,
            &[(111, "curl -fsSLo dist/pkg.tgz http://h/pkg")],
        ),
        (Some(0), 210, 300, &[(211, "uname -r")]),
        (Some(0), 810, 890, &[(811, "tar xzf dist/pkg.tgz")]),
    ];
    let text = screen(lines, &[2 << 8, 7 << 8, 22 << 8, 0, 2 << 8]);
    assert!(text.contains("  exit 22 after 90 ns (pid 2)"), "{text}");
    let chain = "→ perhaps tar xzf dist/pkg.tgz exit 2 → perhaps the command exit 2";
    assert!(text.lines().any(|line| line.trim() == chain), "{text}");
    // The second `curl` wrote the file that `tar` needs, so the failure of the first `curl` is not the reason why `tar`
    // failed.
    let text = screen(lines, &[2 << 8, 7 << 8, 0, 0, 2 << 8]);
    assert!(
        text.starts_with("Failed   tar xzf dist/pkg.tgz   exit 2"),
        "{text}"
    );
    // The next step is a program that does not exist, so its name is not known.
    let unstarted: &[Line] = &[
        (None, 0, 900, &[(0, "sh build.sh")]),
        (Some(0), 10, 800, &[(11, "gcc -o prog main.c")]),
        (Some(0), 810, 890, &[]),
    ];
    let text = screen(unstarted, &[127 << 8, 1 << 8, 127 << 8]);
    assert!(text.starts_with("Failed   gcc main.c"), "{text}");
    assert!(
        text.contains(
            "→ perhaps x (forked) exit 127 (no such program) → perhaps the command exit 127"
        ),
        "{text}"
    );
}

/// `timeout` ends the programs that it runs. The signal that kills them is no cause, and is not reported.
#[test]
fn a_time_out_is_known_by_its_program() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make -j2")]),
        (Some(0), 10, 800, &[(11, "timeout 2 make -C sub -j2")]),
        (Some(1), 20, 790, &[(21, "make -C sub -j2")]),
        (Some(2), 30, 780, &[(31, "sh -c sleep~9")]),
        (Some(2), 40, 785, &[(41, "xz -9 a")]),
    ];
    let text = screen(lines, &[2 << 8, 124 << 8, 2 << 8, 15, 15]);
    assert_eq!(
        text,
        "Failed   timeout 2 make -C sub -j2   timed out (exit 124) after 790 ns (pid 1)\n         \
         → the command exit 2"
    );
    // After the time limit, timeout sends SIGKILL to its own process group, too. If the SIGKILL comes before the time
    // limit, another process has sent it.
    let killed: &[Line] = &[
        (None, 0, 600_000_000, &[(0, "make")]),
        (
            Some(0),
            10,
            510_000_000,
            &[(11, "timeout -s KILL 0.5 sh -c sleep~9;~true")],
        ),
        (Some(1), 20, 510_000_000, &[(21, "sh -c sleep~9;~true")]),
        (Some(2), 30, 510_000_000, &[(31, "sleep 9")]),
    ];
    let text = screen(killed, &[2 << 8, 9, 9, 9]);
    assert_eq!(
        text,
        "Failed   timeout -s KILL 0.5 sh -c sleep 9; true   timed out (SIGKILL) while it waited for sleep 9 after 510 ms (pid 1)\n         \
         → the command exit 2"
    );
    let mut early = killed.to_vec();
    early[1].2 = 400_000_000;
    let text = screen(&early, &[2 << 8, 9, 9, 9]);
    assert!(!text.contains("timed out"), "{text}");
    // A program other than `timeout` may use the status 124 for anything.
    let text = screen(
        &[
            (None, 0, 900, &[(0, "make -j2")]),
            (Some(0), 10, 800, &[(11, "./gen")]),
        ],
        &[2 << 8, 124 << 8],
    );
    assert!(text.starts_with("Failed   gen   exit 124 after"), "{text}");
}

/// A shell may end with another status than its failed program, as after `make || exit 1`, or after `wait` returned
/// the status of a background job. The failed program is named nevertheless.
#[test]
fn a_script_that_gives_up_names_what_failed() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "/bin/sh ./ci.sh")]),
        (Some(0), 10, 20, &[(11, "grep -q x y")]),
        (Some(0), 100, 890, &[(101, "make -s")]),
    ];
    let text = screen(lines, &[1 << 8, 1 << 8, 2 << 8]);
    let made =
        "Failed   make -s   exit 2 after 790 ns (pid 2)\n         → perhaps the command exit 1";
    assert!(text.starts_with(made), "{text}");
    let text = screen(lines, &[77 << 8, 0, 2 << 8]);
    assert!(text.ends_with("→ perhaps the command exit 77"), "{text}");
    // If a tool continues after failures and ends with 1, all its failed children are named.
    let names: &[Line] = &[
        (None, 0, 2_000_000_000, &[(0, "python3 ci.py")]),
        (Some(0), 10, 20, &[(11, "./a.sh")]),
        (Some(0), 30, 50, &[(31, "./b.sh")]),
        (Some(0), 60, 90, &[(61, "sh -c ask;~true")]),
        (Some(3), 70, 80, &[(71, "ask")]),
    ];
    let text = screen(names, &[1 << 8, 3 << 8, 5 << 8, 0, 1 << 8]);
    let rest = "\n         2 more failed (a.sh exit 3, b.sh exit 5), 1 failed without consequence: tr analyze";
    assert!(text.contains(rest), "{text}");
    // Each name is printed only once.
    let mut again = names.to_vec();
    again.push((Some(0), 100, 125, &[(101, "./a.sh")]));
    let text = screen(&again, &[1 << 8, 3 << 8, 5 << 8, 0, 1 << 8, 3 << 8]);
    assert!(
        text.contains("3 more failed (b.sh exit 5, a.sh exit 3, …)"),
        "{text}"
    );
    let pool: &[Line] = &[
        (None, 0, 900, &[(0, "/bin/sh ./ci.sh")]),
        (Some(0), 10, 300, &[(11, "./job 1")]),
        (Some(0), 20, 400, &[(21, "./job 2")]),
        (Some(0), 410, 800, &[(411, "./job 3")]),
    ];
    let text = screen(pool, &[1 << 8, 0, 3 << 8, 0]);
    let job = "Failed   job 2   exit 3 after 380 ns (pid 2)\n         → perhaps the command exit 1";
    assert_eq!(text, job);
    // One of two failed jobs is named first: the one with the script's status, the one after which the script ended, or
    // the longer one.
    let text = screen(pool, &[1 << 8, 4 << 8, 3 << 8, 0]);
    let other = "\n         1 more failed (job 1 exit 4): tr analyze --report execs --failed";
    assert_eq!(text, format!("{job}{other}"));
    let text = screen(pool, &[4 << 8, 4 << 8, 3 << 8, 0]);
    assert!(text.starts_with("Failed   job 1   exit 4"), "{text}");
    let mut last = pool.to_vec();
    last[3].1 = 500;
    let text = screen(&last, &[1 << 8, 4 << 8, 3 << 8, 2 << 8]);
    assert!(text.starts_with("Failed   job 3   exit 2"), "{text}");
    // The script tried one command several times and then gave up.
    let tries: &[Line] = &[
        (None, 0, 900, &[(0, "/bin/sh ./ci.sh")]),
        (Some(0), 10, 300, &[(11, "curl -f x")]),
        (Some(0), 310, 400, &[(311, "curl -f x")]),
        (Some(0), 410, 800, &[(411, "sleep 1")]),
    ];
    let text = screen(tries, &[1 << 8, 7 << 8, 7 << 8, 0]);
    assert!(text.starts_with("Failed   curl -f x   exit 7"), "{text}");
}

/// A `grep -q` that failed long before a script's end is not the reason for this end, whatever exit status it had. A
/// make that failed long before the script's end is perhaps the reason.
#[test]
fn a_question_is_not_the_reason_because_of_its_status() {
    let lines: &[Line] = &[
        (None, 0, 2_000_000_000, &[(0, "/bin/sh ./ci.sh")]),
        (Some(0), 10, 3_000_000, &[(11, "grep -q x y")]),
        (Some(0), 4_000_000, 6_000_000, &[(4_000_001, "make -s")]),
        (Some(0), 7_000_000, 1_900_000_000, &[(7_000_001, "sleep 2")]),
    ];
    let text = screen(lines, &[1 << 8, 1 << 8, 2 << 8, 0]);
    let made =
        "Failed   make -s   exit 2 after 2.0 ms (pid 2)\n         → perhaps the command exit 1";
    assert!(text.starts_with(made), "{text}");
    let mut copy = lines.to_vec();
    copy[1].3 = &[(11, "cp a b")];
    for lines in [lines, &copy] {
        let text = screen(lines, &[1 << 8, 1 << 8, 0, 0]);
        assert!(text.starts_with("Failed   ci.sh   exit 1"), "{text}");
    }
    // A program that ran for long is no probe (a program that is run only to get an answer), unless its name shows that
    // it is one.
    copy[1].2 = 200_000_000;
    let text = screen(&copy, &[1 << 8, 2 << 8, 0, 0]);
    assert!(text.starts_with("Failed   cp a b   exit 2"), "{text}");
    copy[1].3 = &[(11, "pkg-config --exists x")];
    let text = screen(&copy, &[1 << 8, 1 << 8, 0, 0]);
    assert!(text.starts_with("Failed   ci.sh   exit 1"), "{text}");
}

/// If a script did some real work after a failure, it tolerated that failure. But a script may also clean up or wait
/// after a failure, or run the same program again and count its failures. Then the failure may be the reason.
#[test]
fn a_tolerated_failure_is_no_reason() {
    let lines: &[Line] = &[
        (None, 0, 2_000_000_000, &[(0, "bash release.sh")]),
        (
            Some(0),
            10,
            500_000_000,
            &[(11, "wget -q http://h/changes")],
        ),
        (
            Some(0),
            600_000_000,
            900_000_000,
            &[(600_000_001, "zip -q app.zip app")],
        ),
    ];
    let text = screen(lines, &[1 << 8, 8 << 8, 0]);
    assert!(text.starts_with("Failed   release.sh   exit 1"), "{text}");
    for next in [
        "rm -r tmp",
        "tail -n 5 log",
        "sleep 1",
        "grep -c x log",
        "wget -q http://h/notes",
    ] {
        let next: &'static str = next;
        let programs: &'static [(u64, &'static str)] = vec![(600_000_001, next)].leak();
        let mut other = lines.to_vec();
        other[2].3 = programs;
        let text = screen(&other, &[1 << 8, 8 << 8, 0]);
        assert!(
            text.starts_with("Failed   wget -q http://h/changes"),
            "{next}: {text}"
        );
    }
    // The script ended with the failed program's status 8, with which no shell builtin fails. The program that ran
    // after the failure may have cleaned up in a trap. So the failure is the certain cause if that program only cleans
    // up.
    for (next, first) in [
        ("rm -r tmp", "→ the command exit 8"),
        ("zip a b", "→ perhaps the command exit 8"),
    ] {
        let next: &'static str = next;
        let programs: &'static [(u64, &'static str)] = vec![(600_000_001, next)].leak();
        let mut other = lines.to_vec();
        other[2].3 = programs;
        let text = screen(&other, &[8 << 8, 8 << 8, 0]);
        assert!(text.contains(first), "{next}: {text}");
    }
}

/// A script runs a pipe, and then `grep -q` on the output of the pipe. The script may end with the status of a program
/// in the pipe.
#[test]
fn a_member_of_a_pipe_stands_before_a_question_after_it() {
    let lines: &[Line] = &[
        (None, 0, 2_000_000_000, &[(0, "bash nightly.sh")]),
        (Some(0), 10, 1_900_000_000, &[(11, "./suite --all")]),
        (Some(0), 20, 1_900_000_100, &[(21, "tee log")]),
        (
            Some(0),
            1_910_000_000,
            1_920_000_000,
            &[(1_910_000_001, "grep -q SKIPPED log")],
        ),
    ];
    let failed = [1 << 8, 1 << 8, 0, 1 << 8];
    let text = screen(lines, &failed);
    assert!(text.starts_with("Failed   suite --all   exit 1"), "{text}");
    // If the suite runs before tee and not in a pipe with tee, the failed suite is perhaps the reason why `grep -q`
    // fails. If the script ran another step after the suite, `grep -q` is named as the failure.
    let mut alone = lines.to_vec();
    (alone[2].1, alone[2].2) = (1_900_000_010, 1_900_000_100);
    let text = screen(&alone, &failed);
    assert!(text.starts_with("Failed   suite --all   exit 1"), "{text}");
    assert!(text.contains("→ perhaps grep -q SKIPPED log"), "{text}");
    let mut more = lines.to_vec();
    more.insert(
        3,
        (
            Some(0),
            1_901_000_000,
            1_909_000_000,
            &[(1_901_000_001, "./pack")],
        ),
    );
    let text = screen(&more, &[1 << 8, 1 << 8, 0, 0, 1 << 8]);
    assert!(text.starts_with("Failed   grep -q"), "{text}");
}

/// The failed status of a child does not explain why a signal killed its parent, unless the parent aborted itself.
#[test]
fn a_killed_program_has_no_reason_in_a_childs_status() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make")]),
        (Some(0), 10, 800, &[(11, "./server")]),
        (Some(1), 20, 700, &[(21, "./probe")]),
    ];
    for (status, first) in [
        (11, "Failed   server   killed by SIGSEGV"),
        (9, "Failed   server   killed by SIGKILL"),
        (6, "Failed   probe   exit 3"),
    ] {
        let text = screen(lines, &[2 << 8, status, 3 << 8]);
        assert!(text.starts_with(first), "{text}");
    }
}

/// A client fails if its server in the background has failed. A port in both command lines links them.
#[test]
fn a_port_links_a_client_to_its_server() {
    let lines: &[Line] = &[
        (None, 0, 2_000_000_000, &[(0, "bash -e e2e.sh")]),
        (Some(0), 10, 400_000_000, &[(11, "node app.js --port 8123")]),
        (Some(0), 20, 1_000_000_000, &[(21, "sleep 1")]),
        (
            Some(0),
            1_100_000_000,
            1_990_000_000,
            &[(1_100_000_001, "curl -sf http://h:8123/")],
        ),
    ];
    let failed = [7 << 8, 3 << 8, 0, 7 << 8];
    let text = screen(lines, &failed);
    assert!(
        text.starts_with("Failed   app.js --port 8123   exit 3"),
        "{text}"
    );
    let chain = "→ perhaps curl -sf http://h:8123/ exit 7 → the command exit 7";
    assert!(text.lines().any(|line| line.trim() == chain), "{text}");
    // A program that the script waited for is no server. A server with another port does not belong to this client.
    let mut before = lines.to_vec();
    before[2].1 = 400_000_010;
    let mut other = lines.to_vec();
    other[1].3 = &[(11, "node app.js --port 8124")];
    for lines in [before, other] {
        let text = screen(&lines, &failed);
        assert!(text.starts_with("Failed   curl -sf"), "{text}");
    }
}

/// npm continues with other packages after a failure, and exits with the status of the script that failed.
#[test]
fn npm_exits_with_the_status_of_its_script() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "npm test --workspaces")]),
        (Some(0), 10, 400, &[(11, "sh -c node~a.js")]),
        (Some(0), 500, 890, &[(501, "sh -c node~b.js")]),
    ];
    let text = screen(lines, &[4 << 8, 4 << 8, 0]);
    assert!(text.contains("→ the command exit 4"), "{text}");
    // With workspaces, npm exits with 1 after a script failed, whatever the status of that script is.
    let text = screen(lines, &[1 << 8, 1 << 8, 0]);
    assert!(text.contains("→ the command exit 1"), "{text}");
}

/// If a tool kills a job because another job failed, the killed job is no cause. Forks of the tool itself are no jobs.
#[test]
fn a_job_that_was_killed_for_another_is_no_cause() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "parallel --halt now,fail=1")]),
        (Some(0), 10, 20, &[]),
        (Some(0), 100, 600, &[(101, "./job 1")]),
        (Some(0), 200, 610, &[(201, "./job 2")]),
        (Some(3), 210, 605, &[(211, "xz -9 a")]),
    ];
    let text = screen(lines, &[1 << 8, 255 << 8, 1 << 8, 15, 15]);
    assert!(text.starts_with("Failed   job 1   exit 1"), "{text}");
    assert_eq!(text.matches("Failed ").count(), 1, "{text}");
    // If no other job failed, the killed program is all that is known.
    let text = screen(lines, &[1 << 8, 0, 0, 15, 15]);
    assert!(
        text.starts_with("Failed   xz -9 a   killed by SIGTERM"),
        "{text}"
    );
}

/// `make | tee log` ends with 0 even if make fails. The failure of make does not count as hidden if the script ran make
/// only to get an answer, ran it again, or used its status.
#[test]
fn a_pipeline_hides_no_failure() {
    let lines: &[Line] = &[
        (None, 0, 5_000_000_000, &[(0, "bash ci.sh")]),
        (Some(0), 10, 2_000_000_000, &[(11, "make -j2 all")]),
        (Some(1), 20, 1_900_000_000, &[(21, "cc -c a.c")]),
        (Some(0), 30, 2_000_000_100, &[(31, "tee log")]),
    ];
    let failed = [0, 2 << 8, 1 << 8, 0];
    assert_eq!(
        screen(lines, &failed),
        "Failed   cc a.c   exit 1 after 1.90 s (pid 2)\n         \
         → make -j2 all exit 2 → the command exit 0 all the same"
    );
    // The pipeline runs in a subshell.
    let mut sub = lines.to_vec();
    sub.push((Some(0), 5, 2_000_000_050, &[]));
    let mut analysis = built(&sub);
    analysis.meta.root = Some(Tgid(0));
    for (process, status) in analysis
        .processes
        .iter_mut()
        .zip([0, 2 << 8, 1 << 8, 0, 2 << 8])
    {
        process.status = Some(status);
    }
    analysis.processes[1].parent = Some(ProcessIx(4));
    analysis.processes[4].children.push(ProcessIx(1));
    analysis.processes[0].children = vec![ProcessIx(4), ProcessIx(3)];
    let text = first_screen(&analysis);
    assert!(
        text.ends_with("→ the command exit 0 all the same"),
        "{text}"
    );
    // Pipelines such as `make -q | cat` or `find | xargs grep | cat` are only run to get an answer. Their failures do
    // not count.
    for line in [
        "make -q all",
        "make -pqr all",
        "make --dry-run",
        "ninja -n",
        "xargs grep x",
        "sh a.sh",
        "./configure",
    ] {
        let mut analysis = built(lines);
        analysis.meta.root = Some(Tgid(0));
        let argv = Argv::from_args(line.split(' '));
        analysis.processes[1].argv = argv.clone();
        analysis.processes[1].execs[0].argv = argv;
        for (process, status) in analysis.processes.iter_mut().zip(failed) {
            process.status = Some(status);
        }
        assert_eq!(first_screen(&analysis), "", "{line}");
    }
    // The script expects that make may fail, so no failure is reported: `make || make -j1`; `make || true` while a
    // server runs; `make || true`, followed by another command.
    let mut again = lines.to_vec();
    again.push((
        Some(0),
        3_000_000_000,
        4_000_000_000,
        &[(3_000_000_001, "make -j2 all")],
    ));
    assert_eq!(screen(&again, &[0, 2 << 8, 1 << 8, 0, 0]), "");
    for (start, end) in [
        (5, 2_000_000_100),
        (30, 4_900_000_000),
        (2_000_000_010, 2_000_000_100),
    ] {
        let mut other = lines.to_vec();
        (other[3].1, other[3].2) = (start, end);
        assert_eq!(screen(&other, &failed), "", "{start} {end}");
    }
    let mut short = lines.to_vec();
    (short[1].2, short[2].2) = (100, 90);
    (short[3].1, short[3].2) = (110, 200);
    assert_eq!(screen(&short, &failed), "");
}

/// If a signal was sent to a whole process group, the signal killed all its processes. Then no shell and no make ended
/// because of a child's death.
#[test]
fn a_killed_group_has_no_cause_below_it() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "bash ci.sh")]),
        (Some(0), 10, 900, &[(11, "make -s")]),
        (Some(1), 20, 900, &[(21, "sh -c sleep~5;~true")]),
        (Some(2), 30, 900, &[(31, "sleep 5")]),
    ];
    for (signal, name) in [(9, "SIGKILL"), (15, "SIGTERM")] {
        let text = screen(lines, &[signal; 4]);
        let group =
            format!("Failed   ci.sh   killed by {name} with those below it after 900 ns (pid 0)");
        assert_eq!(text, group);
    }
    // Some processes of the killed process group end with an exit status, because the signal killed their children.
    let text = screen(lines, &[137 << 8, 2 << 8, 9, 9]);
    let below = "Failed   sh -c 'sleep 5; true'   killed by SIGKILL with those below it after 880 ns (pid 2)";
    assert!(text.starts_with(below), "{text}");
    let text = screen(lines, &[137 << 8, 2 << 8, 137 << 8, 9]);
    assert!(
        text.starts_with("Failed   sleep 5   killed by SIGKILL"),
        "{text}"
    );
}

/// A test may fork a process that is meant to crash. This crash is reported after the failure that ended the build.
#[test]
fn a_death_test_is_not_reported_first() {
    let lines: &[Line] = &[
        (None, 0, 3_000_000_000, &[(0, "make check")]),
        (Some(0), 10, 2_999_999_000, &[(11, "./tests/check_a")]),
        (Some(1), 20, 30, &[]),
    ];
    let text = screen(lines, &[2 << 8, 1 << 8, 11]);
    assert!(text.starts_with("Failed   check_a   exit 1"), "{text}");
    assert!(
        text.contains("\nFailed   x (forked)   killed by SIGSEGV"),
        "{text}"
    );
}

/// The names of the parents stay readable, however long their command lines are.
#[test]
fn the_chain_fits_the_line() {
    const LONG: &str = "timeout 100 sh -c while~:;~do~sleep~0.3;~test~-e~never~&&~break;~done";
    const SHELL: &str = "sh -c while~:;~do~./some-program-with-a-long-name~--and=options;~done";
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make -j2")]),
        (Some(0), 10, 800, &[(11, LONG)]),
        (Some(1), 20, 790, &[(21, SHELL)]),
        (Some(2), 30, 780, &[(31, SHELL)]),
        (Some(3), 40, 770, &[(41, "./gen")]),
    ];
    let text = screen(lines, &[2 << 8, 3 << 8, 3 << 8, 3 << 8, 3 << 8]);
    let chain = text.lines().nth(1).expect(&text);
    assert!(chain.chars().count() <= 120, "{text}");
    assert_eq!(chain.matches(" exit 3 →").count(), 3, "{text}");
    assert!(chain.ends_with("→ the command exit 2"), "{text}");
}

/// Failed tests are reported whatever status their runner ends with, but failures that a test provokes on purpose are
/// not.
#[test]
fn failed_tests_are_reported() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make test")]),
        (Some(0), 10, 300, &[(11, "sh tests/a.sh")]),
        (Some(1), 20, 30, &[(21, "/w/tests/helper 1")]),
        (Some(0), 310, 400, &[(311, "sh tests/b.sh")]),
        (Some(3), 320, 330, &[(321, "grep -q x y")]),
    ];
    let text = screen(lines, &[0, 0, 1 << 8, 1 << 8, 1 << 8]);
    assert_eq!(text, "Failed   tests/b.sh   exit 1 after 89 ns (pid 3)");
    // A test that cannot run on this machine exits with 77.
    let text = screen(lines, &[0, 77 << 8, 1 << 8, 1 << 8, 1 << 8]);
    assert_eq!(text, "Failed   tests/b.sh   exit 1 after 89 ns (pid 3)");
}

/// If a process was killed for lack of memory, its memory and the limit are reported, whichever process it was.
#[test]
fn a_kill_for_lack_of_memory_says_so() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make test")]),
        (Some(0), 10, 300, &[(11, "python3 tests/sort.py")]),
    ];
    let mut analysis = built(lines);
    analysis.meta.root = Some(Tgid(0));
    analysis.processes[0].status = Some(2 << 8);
    analysis.processes[1].status = Some(9);
    analysis.memory.events.push(MemoryEvent {
        time: Ktime(299),
        thread: ThreadIx(1),
        kind: MemoryKind::Killed(Some(100 << 20)),
    });
    let mut counters = Counters::default();
    counters.set(Counter::CgroupMemoryLimit, 100 << 20);
    analysis.machine.counters.push((Ktime(1), counters));
    let text = first_screen(&analysis);
    let killed = "Failed   sort.py   killed: out of memory at 100 MiB of 100 MiB after 290 ns (pid 1)\n         \
                  → the command exit 2";
    assert_eq!(text, killed);
}

/// In a recording of the whole machine, failures of other processes are no failures of the command.
#[test]
fn strangers_do_not_fail_the_command() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make all")]),
        (None, 10, 300, &[(11, "cron")]),
        (Some(1), 20, 30, &[(21, "sh tests/x.sh")]),
    ];
    let mut analysis = built(lines);
    analysis.meta.root = Some(Tgid(0));
    analysis.meta.scope = Scope::All;
    analysis.processes[1].status = Some(11);
    analysis.processes[2].status = Some(1 << 8);
    assert_eq!(first_screen(&analysis), "");
}

/// With `-k`, make continues after each failure, so the recording does not show which failures make ignored (`-mkdir
/// out`). A failed build is a certain cause. If another job used the file of a failed job afterwards, the failure was
/// ignored. All other failures are equally possible causes.
#[test]
fn a_make_that_goes_on_may_have_ignored_a_job() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make -k")]),
        (Some(0), 10, 100, &[(11, "mkdir out")]),
        (Some(0), 200, 300, &[(201, "clang -c -o a.o a.c")]),
        (Some(0), 400, 800, &[(401, "./pack")]),
    ];
    let text = screen(lines, &[2 << 8, 1 << 8, 1 << 8, 0]);
    assert!(text.starts_with("Failed   clang a.c   exit 1"), "{text}");
    assert!(text.contains("→ the command exit 2"), "{text}");
    assert_eq!(text.matches("Failed ").count(), 1, "{text}");
    // A failed `mkdir` may be the reason if nothing else failed.
    let text = screen(lines, &[2 << 8, 1 << 8, 0, 0]);
    assert!(text.starts_with("Failed   mkdir out   exit 1"), "{text}");
    assert!(text.contains("→ perhaps the command exit 2"), "{text}");
    let mut equal = lines.to_vec();
    equal[1].3 = &[(11, "./scan --output list.txt")];
    let text = screen(&equal, &[2 << 8, 3 << 8, 0, 4 << 8]);
    // The consequence of both failures is printed once.
    assert_eq!(text.matches("Failed ").count(), 2, "{text}");
    assert_eq!(text.matches("→ perhaps the command").count(), 1, "{text}");
    let text = screen(&equal, &[2 << 8, 3 << 8, 0, 0]);
    assert!(text.contains("→ the command exit 2"), "{text}");
    // Another job uses the list that the failed job wrote. So make has ignored the failure: otherwise make would not
    // have started the job that uses the list.
    equal[2].3 = &[(201, "sh -c sort~-u~list.txt~>~sorted.txt")];
    equal.push((Some(2), 210, 290, &[(211, "sort -u list.txt")]));
    let text = screen(&equal, &[2 << 8, 3 << 8, 0, 4 << 8, 0]);
    assert!(text.starts_with("Failed   pack   exit 4"), "{text}");
    assert!(text.contains("→ the command exit 2"), "{text}");
    assert_eq!(text.matches("Failed ").count(), 1, "{text}");
}

/// A test runs a tool, which fails, and the test continues. If the tool fails later with the same status, the test
/// expected that failure as well. So the later failure is not the reason why the test fails. But if the same command
/// line is repeated, the later run is a retry, and its failure counts.
#[test]
fn a_failure_that_was_tolerated_before_is_no_reason() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "ruby usage_test.rb")]),
        (Some(0), 10, 100, &[(11, "./tool --colour")]),
        (Some(0), 200, 300, &[(201, "./tool --help")]),
        (Some(0), 400, 890, &[(401, "./tool --no-such")]),
    ];
    let text = screen(lines, &[1 << 8, 64 << 8, 0, 64 << 8]);
    assert!(
        text.starts_with("Failed   usage_test.rb   exit 1"),
        "{text}"
    );
    let text = screen(lines, &[1 << 8, 65 << 8, 0, 64 << 8]);
    assert!(text.starts_with("Failed   tool --no-such"), "{text}");
    let text = screen(lines, &[64 << 8, 64 << 8, 0, 64 << 8]);
    assert!(text.contains("→ the command exit 64"), "{text}");
    let mut retried = lines.to_vec();
    retried[1].3 = &[(11, "./tool --no-such")];
    let text = screen(&retried, &[1 << 8, 64 << 8, 0, 64 << 8]);
    assert!(text.starts_with("Failed   tool --no-such"), "{text}");
    // A program runs two other programs to get answers. Both fail, and the first program continued after the first
    // failure.
    let asked: &[Line] = &[
        (None, 0, 900, &[(0, "node size.js")]),
        (Some(0), 10, 100, &[(11, "./older --version")]),
        (Some(0), 400, 890, &[(401, "grep -q big notes.txt")]),
    ];
    let text = screen(asked, &[1 << 8, 5 << 8, 1 << 8]);
    assert!(text.starts_with("Failed   size.js   exit 1"), "{text}");
    // A program that runs `grep -q` once can continue with either answer, so the answer "not found" is no failure. A
    // program that runs the same `grep -q` again waits for another answer.
    let text = screen(asked, &[1 << 8, 0, 1 << 8]);
    assert!(text.starts_with("Failed   size.js   exit 1"), "{text}");
    let mut configured = asked.to_vec();
    configured[0].3 = &[(0, "cmake -S . -B b")];
    configured[2].3 = &[(401, "git describe --tags")];
    let text = screen(&configured, &[1 << 8, 0, 128 << 8]);
    assert!(text.starts_with("Failed   cmake -S . -B b"), "{text}");
    let mut again = asked.to_vec();
    again[1].3 = &[(11, "grep -q big notes.txt")];
    let text = screen(&again, &[1 << 8, 1 << 8, 1 << 8]);
    assert!(text.starts_with("Failed   grep -q big"), "{text}");
}

/// A runner continues after a script failed, and ends with 1 when all scripts have run.
#[test]
fn a_script_among_others_may_be_the_reason_of_a_runner() {
    const SECOND: u64 = 1_000_000_000;
    let lines: &[Line] = &[
        (None, 0, 4 * SECOND, &[(0, "ruby all.rb")]),
        (Some(0), 10, SECOND, &[(11, "ruby spec/a.rb")]),
        (
            Some(0),
            SECOND + 10,
            2 * SECOND,
            &[(SECOND + 11, "ruby spec/b.rb")],
        ),
        (
            Some(0),
            2 * SECOND + 10,
            4 * SECOND - 10,
            &[(2 * SECOND + 11, "ruby spec/c.rb")],
        ),
    ];
    let text = screen(lines, &[1 << 8, 1 << 8, 0, 0]);
    assert!(text.starts_with("Failed   a.rb   exit 1"), "{text}");
    assert!(text.contains("→ perhaps the command exit 1"), "{text}");
    // Only one of three scripts failed, so the script's status may differ from the runner's.
    let text = screen(lines, &[1 << 8, 3 << 8, 0, 0]);
    assert!(text.starts_with("Failed   a.rb   exit 3"), "{text}");
    // In two cases the failure does not count: a second run of the script succeeds, or the failed program only gives an
    // answer, as `test -e` does.
    let mut again = lines.to_vec();
    again[2].3 = &[(SECOND + 11, "ruby spec/a.rb")];
    let mut asked = lines.to_vec();
    asked[1].3 = &[(11, "test -e spec/a.rb")];
    let mut other = lines.to_vec();
    other[1].3 = &[(11, "perl setup.pl")];
    for lines in [again, asked] {
        let text = screen(&lines, &[1 << 8, 1 << 8, 0, 0]);
        assert!(text.starts_with("Failed   all.rb   exit 1"), "{text}");
    }
    // A failed step that ran for long may be the reason why the script failed, but a short one is not.
    let text = screen(&other, &[1 << 8, 1 << 8, 0, 0]);
    assert!(text.starts_with("Failed   setup.pl   exit 1"), "{text}");
    assert!(text.contains("→ perhaps the command exit 1"), "{text}");
    other[1].2 = 40_000_000;
    let text = screen(&other, &[1 << 8, 1 << 8, 0, 0]);
    assert!(text.starts_with("Failed   all.rb   exit 1"), "{text}");
    let text = screen(lines, &[1 << 8, 3 << 8, 3 << 8, 0]);
    assert!(text.starts_with("Failed   b.rb   exit 3"), "{text}");
    assert!(text.contains("→ perhaps the command exit 1"), "{text}");
}

/// A program of unknown kind may clean up after a failed build, or pause after each try of a program.
#[test]
fn a_program_that_went_on_may_have_kept_a_failure() {
    const SECOND: u64 = 1_000_000_000;
    let lines: &[Line] = &[
        (None, 0, 90 * SECOND, &[(0, "ruby release.rb")]),
        (Some(0), 10, 20, &[(11, "gcc -c a.c")]),
        (
            Some(0),
            2 * SECOND,
            3 * SECOND,
            &[(2 * SECOND + 1, "./notify all")],
        ),
    ];
    let text = screen(lines, &[1 << 8, 1 << 8, 0]);
    assert!(text.starts_with("Failed   gcc a.c   exit 1"), "{text}");
    assert!(text.contains("→ perhaps the command"), "{text}");
    // A program that ran only for a short time was perhaps a check, so its failure does not count. The failure counts
    // if the program is run again and fails again.
    let mut short = lines.to_vec();
    short[1].3 = &[(11, "./upload a")];
    let text = screen(&short, &[1 << 8, 3 << 8, 0]);
    assert!(text.starts_with("Failed   release.rb"), "{text}");
    short[2].3 = &[(2 * SECOND + 1, "./upload a")];
    let text = screen(&short, &[1 << 8, 3 << 8, 3 << 8]);
    assert!(text.starts_with("Failed   upload a   exit 3"), "{text}");
    let text = screen(&short, &[1 << 8, 3 << 8, 0]);
    assert!(text.starts_with("Failed   release.rb"), "{text}");
    // git fails because there is no tag. The script ran git only to find out whether there is one.
    short[1].3 = &[(11, "git describe --tags")];
    let text = screen(&short, &[1 << 8, 128 << 8, 0]);
    assert!(text.starts_with("Failed   release.rb"), "{text}");
}

/// Rake, scons, Gradle and others run steps in their own process. So the failure of the last child of such a tool is no
/// certain reason, unless the child is a build.
#[test]
fn a_builder_with_steps_of_its_own_has_no_certain_reason() {
    for (builder, job, chain) in [
        ("rake", "./pack dist", "→ perhaps the command"),
        ("scons", "gcc -c a.c", "→ the command"),
        ("tox", "./pack dist", "→ the command"),
    ] {
        let mut analysis = built(&[
            (None, 0, 900, &[(0, "x")]),
            (Some(0), 10, 890, &[(11, "x")]),
        ]);
        for (process, line) in analysis.processes.iter_mut().zip([builder, job]) {
            process.argv = Argv::from_args(line.split(' '));
            process.execs[0].argv = process.argv.clone();
            process.status = Some(1 << 8);
        }
        analysis.meta.root = Some(Tgid(0));
        let text = first_screen(&analysis);
        assert!(text.contains(chain), "{builder}: {text}");
    }
}

/// A script continued after a step failed. The script's last program failed because that program reads the file that
/// the step should have written.
#[test]
fn a_reader_may_miss_what_the_step_before_should_have_written() {
    const SECOND: u64 = 1_000_000_000;
    let lines: &[Line] = &[
        (None, 0, 3 * SECOND, &[(0, "bash table.sh")]),
        (Some(0), 10, SECOND, &[(11, "./extract sales.csv")]),
        (
            Some(0),
            2 * SECOND,
            3 * SECOND - 10,
            &[(2 * SECOND + 1, "sort -n rows.txt")],
        ),
    ];
    let text = screen(lines, &[2 << 8, 1 << 8, 2 << 8]);
    assert!(text.starts_with("Failed   extract sales.csv"), "{text}");
    assert!(text.contains("→ perhaps sort -n rows.txt"), "{text}");
    // If the failed step was short, its failure may not count.
    let mut short = lines.to_vec();
    short[1].2 = 20;
    let text = screen(&short, &[2 << 8, 1 << 8, 2 << 8]);
    assert!(text.starts_with("Failed   sort -n rows.txt"), "{text}");
}

/// A script polled until its time was over, because the background job that it waited for had failed.
#[test]
fn a_time_out_may_come_from_a_job_that_failed() {
    const SECOND: u64 = 1_000_000_000;
    let lines: &[Line] = &[
        (None, 0, 5 * SECOND, &[(0, "timeout 5 sh check.sh")]),
        (Some(0), 10, 5 * SECOND - 10, &[(11, "sh check.sh")]),
        (Some(1), 20, SECOND, &[(21, "./seed users")]),
        (Some(1), 30, 2 * SECOND, &[(31, "sleep 2")]),
    ];
    let text = screen(lines, &[124 << 8, 15, 1 << 8, 0]);
    assert!(text.starts_with("Failed   seed users   exit 1"), "{text}");
    assert!(text.contains("→ perhaps the command timed out"), "{text}");
    let text = screen(lines, &[124 << 8, 15, 0, 0]);
    assert!(text.starts_with("Failed   timeout 5"), "{text}");
}

/// ctest and meson have tests that are expected to fail. If several tests failed, each of them may be such a test, so
/// none is a certain reason.
#[test]
fn one_of_several_failed_tests_of_ctest_may_be_to_fail() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "ctest -j2")]),
        (Some(0), 10, 300, &[(11, "./test_parse")]),
        (Some(0), 310, 600, &[(311, "./test_reject")]),
    ];
    let text = screen(lines, &[8 << 8, 1 << 8, 1 << 8]);
    assert!(!text.contains("→ the command"), "{text}");
    let text = screen(lines, &[8 << 8, 1 << 8, 0]);
    assert!(text.contains("→ the command"), "{text}");
}

/// If a shell ends with 126 or 127, it could not start a program. A child that failed with another status is not the
/// reason. But an earlier build step that failed is perhaps the reason, because it should have made the program.
#[test]
fn a_program_that_is_not_there_is_a_failure_of_its_own() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "bash -e start.sh")]),
        (Some(0), 10, 890, &[(11, "sh serve.sh ./serve")]),
        (Some(1), 20, 880, &[(21, "./warm-up")]),
    ];
    for code in [126, 127] {
        let text = screen(lines, &[code << 8, code << 8, 3 << 8]);
        assert!(text.starts_with("Failed   serve.sh ./serve"), "{text}");
    }
    let built: &[Line] = &[
        (None, 0, 900, &[(0, "sh check.sh")]),
        (Some(0), 10, 200, &[(11, "make tool")]),
        (Some(0), 210, 300, &[(211, "date +%s")]),
        (Some(0), 810, 890, &[]),
    ];
    let text = screen(built, &[127 << 8, 2 << 8, 0, 127 << 8]);
    let chain = "→ perhaps x (forked) exit 127 (no such program) → perhaps the command exit 127";
    assert!(text.starts_with("Failed   make tool   exit 2"), "{text}");
    assert!(text.lines().any(|line| line.trim() == chain), "{text}");
    // In two cases no earlier step explains the missing program: the step before succeeded, or the program that failed
    // is no build step.
    let mut asked = built.to_vec();
    asked[1].3 = &[(11, "./probe")];
    for (lines, code) in [(built.to_vec(), 0), (asked, 2)] {
        let text = screen(&lines, &[127 << 8, code << 8, 0, 127 << 8]);
        assert!(
            text.starts_with("Failed   x (forked)   exit 127 (no such program)"),
            "{text}"
        );
    }
}

/// The commands of a trap run after the failure that ended a script, and may fail as well.
#[test]
fn a_failure_stands_before_those_of_a_trap() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "bash -e sync.sh")]),
        (Some(0), 10, 100, &[(11, "./fetch")]),
        (Some(0), 110, 150, &[(111, "./send all")]),
        (Some(0), 200, 300, &[(201, "umount /mnt/x")]),
        (Some(0), 400, 890, &[(401, "rm /run/x.pid")]),
    ];
    let text = screen(lines, &[1 << 8, 0, 1 << 8, 1 << 8, 1 << 8]);
    assert!(text.starts_with("Failed   send all   exit 1"), "{text}");
    // All steps of the script had succeeded before the trap.
    let text = screen(lines, &[1 << 8, 1 << 8, 0, 1 << 8, 1 << 8]);
    assert!(text.starts_with("Failed   rm /run/x.pid"), "{text}");
}

/// The server of a `git push` exits with 0 although its hook has refused the pushed commits.
#[test]
fn a_hook_of_the_other_repository_explains_a_push() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "git push -q /srv/x.git main")]),
        (
            Some(0),
            10,
            880,
            &[(11, "sh -c git-receive-pack~'/srv/x.git'")],
        ),
        (Some(1), 20, 870, &[(21, "git-receive-pack /srv/x.git")]),
        (Some(2), 100, 800, &[(101, "/bin/sh hooks/update main")]),
        (Some(3), 110, 790, &[(111, "./policy")]),
    ];
    let text = screen(lines, &[1 << 8, 0, 0, 1 << 8, 9 << 8]);
    assert!(text.starts_with("Failed   policy   exit 9"), "{text}");
    let chain = "→ perhaps update main exit 1 → perhaps the command exit 1";
    assert!(text.contains(chain), "{text}");
}

/// A script can keep a failure until the script ends: `|| failed=1`, `rc=$?`, or a number of failed steps. The
/// recording does not show that, so the failure is "perhaps" the reason. The failure of a download or a query is no
/// reason.
#[test]
fn a_script_may_keep_a_failure_until_its_end() {
    const SECOND: u64 = 1_000_000_000;
    let lines: &[Line] = &[
        (None, 0, 60 * SECOND, &[(0, "bash verify.sh")]),
        (Some(0), 10, SECOND, &[(11, "./links docs")]),
        (
            Some(0),
            2 * SECOND,
            3 * SECOND,
            &[(2 * SECOND + 1, "./sizes dist")],
        ),
        (
            Some(0),
            4 * SECOND,
            59 * SECOND,
            &[(4 * SECOND + 1, "./spell docs")],
        ),
    ];
    for statuses in [[1, 0, 4, 0], [9, 7, 9, 0], [2, 0, 5, 6]] {
        let statuses = statuses.map(|code| code << 8);
        let text = screen(lines, &statuses);
        let name = if statuses[3] == 0 { "sizes" } else { "spell" };
        assert!(text.starts_with(&format!("Failed   {name} d")), "{text}");
        assert!(text.contains("→ perhaps the command"), "{text}");
    }
    let optional: [&[(u64, &str)]; 3] = [
        &[(2 * SECOND + 1, "wget -q u")],
        &[(2 * SECOND + 1, "mkdir dist")],
        &[(2 * SECOND + 1, "grep -q x y")],
    ];
    for program in optional {
        let mut fetched = lines.to_vec();
        fetched[2].3 = program;
        let text = screen(&fetched, &[1 << 8, 0, 4 << 8, 0]);
        assert!(text.starts_with("Failed   verify.sh   exit 1"), "{text}");
    }
    // The failed step before `grep -q` is named, although the script has the status of `grep -q`.
    let mut asked = lines.to_vec();
    asked[3].3 = &[(4 * SECOND + 1, "grep -q done log.txt")];
    let text = screen(&asked, &[1 << 8, 0, 4 << 8, 1 << 8]);
    assert!(text.starts_with("Failed   sizes dist   exit 4"), "{text}");
}

/// make may have ignored a failed test that is a job of `make -k` (`-ruby t/style.rb`).
#[test]
fn a_test_that_make_may_have_ignored_is_perhaps_the_reason() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "make -k verify")]),
        (Some(0), 10, 100, &[(11, "ruby t/style.rb")]),
        (Some(0), 200, 800, &[(201, "ruby t/totals.rb")]),
        (Some(0), 810, 890, &[(811, "ruby t/dates.rb")]),
    ];
    let text = screen(lines, &[2 << 8, 1 << 8, 1 << 8, 0]);
    assert!(text.starts_with("Failed   t/style.rb   exit 1"), "{text}");
    // The consequence of both failures is printed once.
    assert_eq!(text.matches("Failed ").count(), 2, "{text}");
    assert_eq!(text.matches("→ perhaps the command").count(), 1, "{text}");
}

/// In a failed test of bats, the program that failed ran inside the test, which cleaned up afterwards.
#[test]
fn a_failed_test_of_bats_has_the_program_that_failed() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "bash /usr/lib/bats-core/bats a.bats")]),
        (Some(0), 10, 890, &[(11, "bash /l/bats-exec-suite a.bats")]),
        (
            Some(1),
            20,
            880,
            &[(21, "bash /l/bats-exec-file a.bats /tmp/l")],
        ),
        (
            Some(2),
            30,
            800,
            &[(31, "bash /l/bats-exec-test a.bats test_it_packs 1 1 1")],
        ),
        (Some(3), 100, 110, &[(101, "./pack --all")]),
        (Some(3), 120, 130, &[]),
        (Some(3), 700, 790, &[(701, "rm -f /tmp/bats.out")]),
        (Some(1), 30, 870, &[]),
    ];
    let text = screen(lines, &[1 << 8, 1 << 8, 1 << 8, 1 << 8, 3 << 8, 0, 0, 0]);
    assert!(text.starts_with("Failed   pack --all   exit 3"), "{text}");
    assert!(text.contains("→ perhaps "), "{text}");
}

/// A source file includes a header that an earlier step should have written, but the compiler's command line does not
/// name the header.
#[test]
fn a_header_that_was_not_written_explains_a_compiler() {
    let lines: &[Line] = &[
        (None, 0, 900, &[(0, "dash make.sh")]),
        (Some(0), 10, 100, &[(11, "./gen --output tables.inc")]),
        (Some(0), 200, 890, &[(201, "clang -c main.c")]),
    ];
    let statuses = [1 << 8, 3 << 8, 1 << 8];
    let text = screen(lines, &statuses);
    assert!(text.starts_with("Failed   gen --output tables"), "{text}");
    assert!(text.contains("→ perhaps clang main.c"), "{text}");
    let mut other = lines.to_vec();
    other[1].3 = &[(11, "./gen --output tables.txt")];
    let text = screen(&other, &statuses);
    assert!(text.starts_with("Failed   clang main.c"), "{text}");
}

/// A runner continues after one of its scripts failed, and itself fails in the end. The script is perhaps the reason if
/// it is the only failure among many scripts.
#[test]
fn the_only_run_of_many_that_failed_is_perhaps_the_reason() {
    const SECOND: u64 = 1_000_000_000;
    let lines: &[Line] = &[
        (None, 0, 9 * SECOND, &[(0, "python3 deploy.py")]),
        (Some(0), 10, SECOND, &[(11, "sh unit.sh web")]),
        (Some(0), 20, 2 * SECOND, &[(21, "sh unit.sh mail")]),
        (
            Some(0),
            3 * SECOND,
            8 * SECOND,
            &[(3 * SECOND + 1, "sh unit.sh dns")],
        ),
    ];
    let text = screen(lines, &[1 << 8, 0, 6 << 8, 0]);
    assert!(text.starts_with("Failed   unit.sh mail"), "{text}");
    assert!(text.contains("→ perhaps the command exit 1"), "{text}");
    // If two runs failed, the one that ended last is named. In `others`, the three runs are of scripts with different
    // names, but count together as runs of one interpreter, `sh`. So a single failed run among them is named, too.
    let text = screen(lines, &[1 << 8, 6 << 8, 6 << 8, 0]);
    assert!(text.starts_with("Failed   unit.sh mail"), "{text}");
    assert!(text.contains("→ perhaps the command exit 1"), "{text}");
    let mut others = lines.to_vec();
    (others[1].3, others[3].3) = (&[(11, "sh web.sh")], &[(3 * SECOND + 1, "sh dns.sh")]);
    for code in [6, 1] {
        let text = screen(&others, &[1 << 8, 0, code << 8, 0]);
        assert!(text.starts_with("Failed   unit.sh mail"), "{text}");
    }
}
