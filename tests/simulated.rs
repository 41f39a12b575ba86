//! Compares the reports and `tr diff` with the simulator's own accounts on recordings of a simulated machine, and tests
//! them on recorded fixtures.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;
#[path = "common/rewrite.rs"]
mod rewrite;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{ensure, int, list, schema, Failure, TR};
use serde_json::Value;
use tr_format::event::{CpuId, LossCause, Stream};
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::Config;
use tr_sim::inject::{Loss, Plan};
use tr_sim::program::{ms, Arg, Image, Op, Resident, World};
use tr_sim::recording::Recording;
use tr_sim::truth::Truth;

const MS: u64 = 1_000_000;
const REPORTS: [&str; 4] = ["histogram", "off-cpu", "max-off-cpu", "run-queue"];
/// A text that would act on a terminal, in a spreadsheet or in a Markdown comment.
const HOSTILE: &str = "a\u{1b}[31m|`<img src=x>`@user\u{202e}\r\n[l](http://b.org)";

fn run(length: u64) -> Op {
    Op::Run(ms(length, length))
}

/// A simulated build: three jobs at once on two CPUs, then one step that takes `link` ms, and optionally one more
/// program.
fn build(link: u64, more: Option<&[&str]>) -> World {
    let fork = |program| Op::Fork(program, Arg::Same);
    let mut make = vec![fork(1), fork(1), fork(1), Op::WaitAll, fork(2), Op::Wait];
    let words = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect();
    let image = |path: &str, args: &[&str]| Image {
        path: path.into(),
        args: words(args),
    };
    let job = vec![
        run(10),
        Op::Io(ms(2, 2)),
        run(5),
        Op::Sleep(ms(3, 4)),
        run(5),
    ];
    let mut images = vec![
        image("/bin/make", &["make", "-j3"]),
        image(
            "/bin/cc1",
            &["cc1", "-O2", "-o", "/tmp/ccAb12{}.s", "unit.c"],
        ),
        image("/bin/linkpass", &["linkpass", "a.o", "b.o"]),
    ];
    let mut steps = vec![job, vec![run(link)]];
    if let Some(args) = more {
        make.extend([fork(3), Op::Wait]);
        images.push(image(&format!("/bin/{}", args[0]), args));
        steps.push(vec![run(25)]);
    }
    steps.insert(0, make);
    let programs = steps.into_iter().zip(0..);
    World {
        name: "build".into(),
        programs: programs
            .map(|(ops, at)| [vec![Op::Exec(at)], ops].concat())
            .collect(),
        images,
        cgroups: 1,
        ..World::default()
    }
}

/// Records a simulation. Returns the trace file, and the simulator's own account of the run.
fn record(name: &str, world: World, seed: u64) -> (PathBuf, Truth) {
    record_with(name, world, seed, &Plan::default())
}

/// Like [`record`], but with injected faults.
fn record_with(name: &str, world: World, seed: u64, faults: &Plan) -> (PathBuf, Truth) {
    let mut config = Config::new(world, 2, 2_000 * MS).seed(seed);
    config.linger = Some(100_000);
    let (mut recording, truth) = Recording::record(&config);
    faults.apply(&mut recording);
    (write(name, &recording), truth)
}

fn write(name: &str, recording: &Recording) -> PathBuf {
    // Each file gets another start, because two real recordings never begin at exactly the same time.
    static BEGUN: AtomicU64 = AtomicU64::new(0);
    let mut recording = recording.clone();
    recording.meta.start_clock.real += BEGUN.fetch_add(1, Ordering::Relaxed);
    let cut = Cut {
        largest: 100,
        order: Order::Written,
        seed: 1,
    };
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports");
    std::fs::create_dir_all(&dir).expect("a scratch directory");
    let file = dir.join(format!("{name}.bin"));
    std::fs::write(&file, recording.to_file(&cut).expect("a file")).expect("written");
    file
}

/// Writes a copy of a recording that counts as another recording, which was made later.
fn write_again(name: &str, file: &Path) -> Result<PathBuf, Failure> {
    let again = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.bin"));
    std::fs::write(&again, rewrite::later(&std::fs::read(file)?))?;
    Ok(again)
}

fn tr(args: &[&str]) -> Output {
    Command::new(TR).args(args).output().expect("tr runs")
}

/// The output of a `tr` command that must succeed.
fn good(args: &[&str]) -> Result<Vec<u8>, Failure> {
    let out = tr(args);
    ensure(out.status.success(), || {
        format!("{args:?}: {}", String::from_utf8_lossy(&out.stderr))
    })?;
    Ok(out.stdout)
}

fn valid(rules: &str, document: &[u8]) -> Result<Value, Failure> {
    let document: Value = serde_json::from_slice(document)?;
    let rules: Value = serde_json::from_str(rules)?;
    schema::validate(&rules, &document)?;
    Ok(document)
}

fn reports(file: &Path, options: &[&str]) -> Result<Value, Failure> {
    let (file, all) = (file.to_string_lossy(), format!("top,{}", REPORTS.join(",")));
    let mut args = vec!["analyze", &file, "--report", &all, "--format", "json"];
    args.extend(options);
    valid(
        include_str!("../crates/report/schema/analysis.schema.json"),
        &good(&args)?,
    )
}

fn diff(args: &[&str]) -> Result<Value, Failure> {
    let out = good(&[&["diff", "--format", "json"], args].concat())?;
    valid(
        include_str!("../crates/report/schema/diff.schema.json"),
        &out,
    )
}

/// The sum of a value of processes for each pid. If a pid was used twice, the values of both processes are added.
fn by_pid<'a>(
    rows: impl IntoIterator<Item = &'a Value>,
    of: impl Fn(&Value) -> u64,
) -> BTreeMap<u64, u64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry(int(row, "pid")).or_default() += of(row);
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

fn reasons(row: &Value, names: &[&str]) -> u64 {
    let known = list(row, "reasons").iter();
    let known = known.filter(|reason| names.contains(&reason["reason"].as_str().unwrap_or("")));
    known.map(|reason| int(reason, "total_ns")).sum()
}

/// The reasons of all sleeps and of all uninterruptible waits.
const WAITS: [&str; 14] = [
    "child", "vfork", "slot", "pipe", "lock", "socket", "timer", "events", "terminal", "file",
    "block-io", "sleep", "blocked", "stopped",
];

/// The sums of every report equal the times of the processes, less the time that only the kernel's totals show.
fn sums_are_equal(all: &Value) -> Result<(), Failure> {
    let processes = || list(all, "processes").iter();
    let with_cut = |row: &Value| int(row, "total_ns") + int(row, "cut_ns");
    let on_cpu = by_pid(list(&all["histogram"], "groups"), with_cut);
    let seen = |p: &Value, name: &str, of: &str| int(p, name) - int(p, of);
    let seen_on_cpu = |p: &Value| seen(p, "on_cpu_ns", "on_cpu_by_kernel_ns");
    let seen_waiting = |p: &Value| seen(p, "run_queue_ns", "run_queue_by_kernel_ns");
    assert_eq!(on_cpu, by_pid(processes(), seen_on_cpu));
    let total: u64 = on_cpu.values().sum();
    assert_eq!(with_cut(&all["histogram"]["all"]), total);
    let unseen = |p: &Value| int(p, "on_cpu_by_kernel_ns");
    let unseen_total: u64 = processes().map(unseen).sum();
    assert_eq!(int(&all["totals"], "on_cpu_ns"), total + unseen_total);
    for row in list(&all["histogram"], "groups") {
        let slots = list(row, "slots").iter();
        assert_eq!(
            slots.map(|slot| int(slot, "ns")).sum::<u64>(),
            int(row, "total_ns")
        );
    }
    let waited = by_pid(list(&all["run_queue"], "groups"), with_cut);
    assert_eq!(waited, by_pid(processes(), seen_waiting));
    let cpus = list(&all["run_queue"], "cpus").iter();
    assert_eq!(
        cpus.map(|cpu| int(cpu, "total_ns")).sum::<u64>(),
        int(&all["run_queue"]["all"], "total_ns"),
        "a wait that ended did so on a CPU"
    );
    let unseen = |p: &Value| unseen(p) + int(p, "run_queue_by_kernel_ns");
    type Field<'a> = &'a dyn Fn(&Value) -> u64;
    let parts: [(&[&str], Field); 6] = [
        (&["woken", "preempted"], &seen_waiting),
        (&["preempted"], &|p| int(p, "preempted_ns")),
        (&WAITS, &|p| int(p, "sleep_ns") + int(p, "blocked_ns")),
        (&["block-io"], &|p| int(p, "block_io_ns")),
        (&["vfork"], &|p| int(p, "vfork_ns")),
        (&["unknown"], &|p| int(p, "unknown_ns") + unseen(p)),
    ];
    for (names, field) in parts {
        let is = by_pid(list(&all["off_cpu"], "groups"), |row| reasons(row, names));
        assert_eq!(is, by_pid(processes(), field), "{names:?}");
    }
    Ok(())
}

/// The likely and the largest forecast in ns for two jobs at once, of a `ctest -j1` whose tests take 100 ms each.
fn two_of(name: &str, tests: &[&[&str]]) -> (u64, u64) {
    let mut world = build(0, None);
    let image = |words: &[&str]| Image {
        path: format!("/bin/{}", words[0]),
        args: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let fork = |at| Op::Fork(at, Arg::Same);
    let ctest = (0..)
        .zip(tests)
        .flat_map(|(at, _)| [fork(at + 1), Op::Wait]);
    world.programs = vec![[Op::Exec(0)].into_iter().chain(ctest).collect()];
    world.images = vec![image(&["ctest", "-j1"])];
    for (at, words) in (0..).zip(tests) {
        world.programs.push(vec![Op::Exec(at + 1), run(100)]);
        world.images.push(image(words));
    }
    let (file, _) = record(name, world, 1);
    let file = file.to_str().unwrap();
    let args = ["predict", file, "--jobs", "2", "--format", "json"];
    let out = Command::new(TR).args(args).output().unwrap();
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    let wall = |key: &str| json["wall"][key].as_u64().unwrap();
    (wall("likely_ns"), wall("high_ns"))
}

/// Tests that remove and write a file of the same name do not need each other. Two at once take half of the time.
#[test]
fn tests_of_one_file_name_are_independent() {
    let (likely, high) = two_of(
        "tests-of-one-file",
        &[&["rm", "-f", "tests/out.log"][..]; 6],
    );
    assert!(likely.abs_diff(300 * MS) < 15 * MS, "{likely}");
    assert!(high < 400 * MS, "{high}");
}

/// If a test makes a file that other tests use, the other tests may have to wait for that test (a setting of ctest).
/// The recording does not show this setting, so the forecast's interval contains both cases.
#[test]
fn a_test_may_need_another_one() {
    let [first, other] = [&["touch", "tests/data.db"][..], &["cat", "tests/data.db"]];
    let tests = [first, other, other, other, other, other];
    let (likely, high) = two_of("tests-after-one", &tests);
    assert!(likely.abs_diff(300 * MS) < 15 * MS, "{likely}");
    assert!((400 * MS..500 * MS).contains(&high), "{high}");
}

/// A line of advice about the sleeps of 131 processes lists only 100 pids, but the line contains the number 131.
#[test]
fn advice_lists_a_hundred_pids() -> Result<(), Failure> {
    let mut world = build(10, Some(&["sleep", "0.01"]));
    world.programs[0].extend([Op::Fork(3, Arg::Same), Op::Wait].repeat(130));
    world.programs[3] = vec![Op::Exec(3), Op::Sleep(ms(10, 10))];
    let (file, _) = record("hundred-pids", world, 11);
    let file = file.to_string_lossy();
    let out = good(&["analyze", &file, "--report", "advice", "--format", "json"])?;
    let json: Value = serde_json::from_slice(&out)?;
    let lines = list(&json["advice"], "advice");
    let all = || format!("{lines:#?}");
    let line = lines
        .iter()
        .find(|line| line["kind"] == "sleep")
        .ok_or_else(all)?;
    ensure(int(line, "processes") == 131, all)?;
    let pids: std::collections::BTreeSet<String> =
        list(line, "pids").iter().map(Value::to_string).collect();
    ensure(pids.len() == 100 && list(line, "pids").len() == 100, all)
}

/// A forecast of a run that failed, or of a part of a run, has a warning, because it is no forecast of the whole build.
#[test]
fn a_forecast_tells_how_the_run_ended() -> Result<(), Failure> {
    let ended = |name: &str, most: u64, status: Option<u32>| {
        let config = Config::new(build(20, None), 2, most);
        let (mut recording, _) = Recording::record(&config);
        if let Some(status) = status {
            recording.summary.as_mut().expect("an end").status = Some(status);
        }
        write(name, &recording).to_string_lossy().into_owned()
    };
    let whole = 10_000 * MS;
    let of_part = "the recording ended before its command did: the forecast is of that part";
    for (file, words) in [
        (ended("well", whole, Some(0)), None),
        (
            ended("badly", whole, Some(3 << 8)),
            Some("failed (exit 3): "),
        ),
        (
            ended("by-signal", whole, Some(9)),
            Some("failed (killed by SIGKILL): "),
        ),
        (ended("in-part", 50 * MS, None), Some(of_part)),
    ] {
        for format in ["text", "json", "html"] {
            let out = good(&["predict", &file, "--cpus", "4", "--format", format])?;
            let out = String::from_utf8(out)?.replace("\n  ", " ");
            let is_told = words.map_or_else(
                || !out.contains("failed (") && !out.contains("ended before"),
                |words| out.contains(words),
            );
            ensure(is_told, || format!("{file}, {format}: {out}"))?;
        }
    }
    Ok(())
}

#[test]
fn sums_of_the_recorded_traces_are_equal() -> Result<(), Failure> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    for name in ["demo", "build", "signals", "thread_exec"] {
        let file = traces.join(format!("{name}.bin"));
        sums_are_equal(&reports(&file, &["--by", "process"])?)?;
        sums_are_equal(&reports(
            &file,
            &["--by", "process", "--to", "1s", "--from", "1ms"],
        )?)?;
    }
    Ok(())
}

#[test]
fn the_simulated_machine_agrees() -> Result<(), Failure> {
    let (file, truth) = record("truth", build(20, None), 1);
    let all = reports(&file, &["--by", "process", "--interval", "10s"])?;
    sums_are_equal(&all)?;
    let of = |value: fn(&tr_sim::truth::ProcessTruth) -> u64| -> BTreeMap<u64, u64> {
        let processes = truth.processes.iter();
        let values = processes.map(|p| (u64::from(p.pid.0), value(p)));
        values.filter(|(_, value)| *value > 0).collect()
    };
    let rows = |report: &str| list(&all[report], "groups");
    let with_cut = |row: &Value| int(row, "total_ns") + int(row, "cut_ns");
    assert_eq!(by_pid(rows("histogram"), with_cut), of(|p| p.times.on_cpu));
    assert_eq!(
        by_pid(rows("run_queue"), with_cut),
        of(|p| p.times.run_queue)
    );
    let reason = |names: &'static [&str]| by_pid(rows("off_cpu"), move |row| reasons(row, names));
    let asleep = ["child", "pipe", "timer", "sleep"];
    let sums = by_pid(rows("off_cpu"), |row| reasons(row, &asleep));
    assert_eq!(sums, of(|p| p.times.sleep));
    assert_eq!(reason(&["block-io"]), of(|p| p.causes.io));
    assert_eq!(reason(&["preempted"]), of(|p| p.causes.preempted));
    // The whole recording is one interval of the report, so the longest waits in this interval are those of the whole
    // recording.
    let mut longest = BTreeMap::<u64, u64>::new();
    for task in &truth.tasks {
        let pid = u64::from(truth.processes[task.process].pid.0);
        let of = longest.entry(pid).or_default();
        *of = (*of).max(task.max_off_cpu);
    }
    longest.retain(|_, ns| *ns > 0);
    let rows = list(&all["max_off_cpu"], "rows");
    assert_eq!(by_pid(rows, |row| int(row, "max_off_cpu_ns")), longest);
    Ok(())
}

/// Each wait names the task that woke the waiting task, or the task that took the waiting task's CPU.
#[test]
fn waits_name_their_wakers() -> Result<(), Failure> {
    let (file, _) = record("waits", build(40, None), 1);
    let all = reports(&file, &[])?;
    let longest = list(&all["off_cpu"], "longest");
    let make = |wait: &&Value| wait["process"] == "make -j3" && wait["reason"] == "child";
    let link = longest.iter().find(make).expect("make waits for linkpass");
    assert_eq!(link["ended_by"]["label"], "linkpass a.o b.o");
    assert!(int(link, "length_ns").abs_diff(40 * MS) < MS, "{link}");
    let slept = |wait: &&Value| {
        wait["process"]
            .as_str()
            .is_some_and(|name| name.starts_with("cc1"))
            && wait["reason"] == "timer"
    };
    let timer = longest.iter().find(slept).expect("cc1 sleeps");
    assert_eq!(timer["ended_by"]["kind"], "timeout");
    let preempted = longest.iter().find(|wait| wait["reason"] == "preempted");
    let preempted = preempted.expect("three jobs on two CPUs");
    assert_eq!(preempted["taken_by"]["kind"], "thread");
    assert_ne!(preempted["taken_by"]["tid"], preempted["tid"]);
    let wanted = &all["run_queue"]["wanted"];
    assert!(int(wanted, "starved_ns") > 0, "three on two: {wanted}");
    Ok(())
}

/// The figures of the single CPUs add up to those of all CPUs.
#[test]
fn one_cpu_after_the_other() -> Result<(), Failure> {
    let (file, _) = record("cpus", build(20, None), 3);
    let all = reports(&file, &[])?;
    let (mut slices, mut waits, mut rows) = (0, 0, 0);
    let count = |all: &Value| {
        let rows = list(&all["max_off_cpu"], "rows").iter();
        rows.map(|row| int(row, "count")).sum::<u64>()
    };
    for cpu in ["0", "1"] {
        let one = reports(&file, &["--cpu", cpu])?;
        slices += int(&one["histogram"]["all"], "count");
        waits += int(&one["run_queue"]["all"], "count");
        rows += count(&one);
        for row in list(&one["max_off_cpu"], "rows") {
            assert_eq!(row["cpu"].to_string(), cpu);
        }
        assert!(one["run_queue"]["wanted"].is_null());
    }
    assert_eq!(slices, int(&all["histogram"]["all"], "count"));
    assert_eq!(waits, int(&all["run_queue"]["all"], "count"));
    // The rows of the CPUs lack the first wait of each thread, because the thread had not run on any CPU before.
    assert_eq!(rows + int(&all["totals"], "threads"), count(&all));
    Ok(())
}

fn differences(diff: &Value) -> Vec<(&str, &str)> {
    let changes = list(diff, "changes").iter();
    let told = changes.filter(|change| change["through_children"] == false);
    told.map(|change| {
        let text = |name: &str| change[name].as_str().unwrap_or("?");
        (text("what"), text("program"))
    })
    .collect()
}

#[test]
fn an_equal_recording_does_not_differ() -> Result<(), Failure> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let again = write_again("demo-again", &demo)?;
    let (demo, again) = (demo.to_string_lossy(), again.to_string_lossy());
    let text = String::from_utf8(good(&["diff", &demo, &again, "--fail-over", "0%"])?)?;
    assert!(
        text.contains("No difference in any of 127 processes."),
        "{text}"
    );
    let json = diff(&[&demo, &again])?;
    assert_eq!(
        (differences(&json), int(&json, "matched")),
        (Vec::new(), 127)
    );
    for (name, figure) in json["figures"].as_object().expect("figures") {
        assert_eq!(figure["difference"], 0, "{name}");
    }
    let markdown = String::from_utf8(good(&["diff", &demo, &again, "--format", "markdown"])?)?;
    assert!(!markdown.contains('|'), "{markdown}");
    Ok(())
}

/// A recording that is given twice is refused, because the same run counted twice would make chance look like a
/// difference.
#[test]
fn a_recording_is_one_run() -> Result<(), Failure> {
    let names = ["one", "two", "three"];
    let all = names.map(|name| record(name, build(20, None), 1).0);
    let copy = all[0].with_file_name("copy.bin");
    std::fs::copy(&all[0], &copy)?;
    let copy = copy.to_string_lossy().into_owned();
    let [one, two, three] = all.map(|file| file.to_string_lossy().into_owned());
    let refused = |args: &[&str], why: &str| {
        let out = tr(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let good = out.status.code() == Some(2) && said.contains(why) && out.stdout.is_empty();
        ensure(good, || format!("{args:?}: {said}"))
    };
    let twice = format!("{one} is given twice");
    let same = format!("{one} and {copy} are the same recording");
    refused(&["diff", &one, &one], &twice)?;
    refused(
        &["diff", "--base", &one, &two, &one, "--new", &three],
        &twice,
    )?;
    refused(&["diff", "--base", &one, &copy, "--new", &three], &same)?;
    refused(
        &["diff", "--base", &one, &two, "--new", &three, &copy],
        &same,
    )?;
    refused(&["pipeline", &one, &two, &copy], &same)?;
    good(&["diff", "--base", &one, &two, "--new", &three])?;
    good(&["pipeline", &one, &two])?;
    Ok(())
}

#[test]
fn a_planted_slowdown_is_named() -> Result<(), Failure> {
    let (base, _) = record("plain", build(20, None), 1);
    let (slow, _) = record("slow", build(60, None), 1);
    let (base, slow) = (base.to_string_lossy(), slow.to_string_lossy());
    let json = diff(&[&base, &slow])?;
    assert_eq!(differences(&json), [("slower", "linkpass")]);
    let figures = &list(&json, "changes")
        .iter()
        .find(|change| change["program"] == "linkpass")
        .expect("it is told")["figures"];
    for figure in ["wall", "on_cpu", "critical_path"] {
        let difference = figures[figure]["difference"].as_i64().unwrap_or(0);
        assert!(
            difference.abs_diff(40 * MS as i64) < MS,
            "{figure}: {figures}"
        );
    }
    assert_eq!(
        differences(&diff(&[&slow, &base])?),
        [("faster", "linkpass")]
    );
    let status = |args: &[&str]| tr(args).status.code();
    assert_eq!(status(&["diff", &base, &slow]), Some(0));
    assert_eq!(
        status(&["diff", &base, &slow, "--fail-over", "10%"]),
        Some(1)
    );
    assert_eq!(
        status(&["diff", &base, &slow, "--fail-over", "900%"]),
        Some(0)
    );
    assert_eq!(
        status(&["diff", &slow, &base, "--fail-over", "10%"]),
        Some(0)
    );
    let on_cpu = [
        "diff",
        &base,
        &slow,
        "--fail-over",
        "10%",
        "--fail-on",
        "on-cpu",
    ];
    assert_eq!(status(&on_cpu), Some(1));
    Ok(())
}

#[test]
fn new_and_gone_processes_are_named() -> Result<(), Failure> {
    let (base, _) = record("without", build(20, None), 1);
    let (more, _) = record("with", build(20, Some(&["gen", "tables"])), 1);
    let (base, more) = (base.to_string_lossy(), more.to_string_lossy());
    assert_eq!(differences(&diff(&[&base, &more])?), [("new", "gen")]);
    assert_eq!(differences(&diff(&[&more, &base])?), [("gone", "gen")]);
    Ok(())
}

/// With four runs on each side, `tr diff` uses a rank test (Mann-Whitney). It must find four slower builds different,
/// and four more runs of the same build equal.
#[test]
fn several_runs_are_held_to_their_spread() -> Result<(), Failure> {
    let files = |name: &str, link: u64, seeds: std::ops::Range<u64>| -> Vec<String> {
        let one = |seed| record(&format!("{name}{seed}"), build(link, None), seed).0;
        let all = seeds.map(|seed| one(seed).to_string_lossy().into_owned());
        all.collect()
    };
    let base = files("base", 20, 1..5);
    let again = files("again", 20, 5..9);
    let slow = files("slow", 60, 5..9);
    let args = |new: &[String]| -> Vec<String> {
        let sides = [
            vec!["--base".into()],
            base.clone(),
            vec!["--new".into()],
            new.to_vec(),
        ];
        sides.concat()
    };
    let words = |args: &'_ [String]| -> Vec<String> {
        let options = ["diff", "--fail-over", "10%"].map(str::to_owned);
        [options.to_vec(), args.to_vec()].concat()
    };
    let run = |new: &[String]| -> Result<(Value, Option<i32>), Failure> {
        let args = args(new);
        let json = diff(&args.iter().map(String::as_str).collect::<Vec<_>>())?;
        let words = words(&args);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok((json, tr(&words).status.code()))
    };
    let (json, status) = run(&slow)?;
    assert_eq!(json["statistic"], "mann-whitney");
    assert_eq!(json["figures"]["wall"]["verdict"], "outside");
    assert_eq!(differences(&json), [("slower", "linkpass")]);
    assert_eq!(status, Some(1));
    let (json, status) = run(&again)?;
    assert_eq!(json["figures"]["wall"]["verdict"], "inside");
    assert_eq!((differences(&json), status), (Vec::new(), Some(0)));
    let (json, status) = run(&slow[..1])?;
    assert_eq!(
        (json["statistic"].as_str(), status),
        (Some("range"), Some(1))
    );
    Ok(())
}

/// Other tasks take the CPUs during the new builds, but not during the base builds. The first line and the gate must
/// say what made the new builds slower: the build, the machine or both.
#[test]
fn others_on_the_cpus_are_the_runner() -> Result<(), Failure> {
    let side = |name: &str, link: u64, spinners: u16| -> Vec<String> {
        let mut world = build(link, None);
        let spin = u16::try_from(world.programs.len()).unwrap();
        world.programs.push(vec![run(4), Op::Goto(0)]);
        let spinner = Resident {
            program: spin,
            arg: 0,
            kthread: false,
            pin: None,
        };
        world.residents = vec![spinner; spinners.into()];
        let one = |seed| record(&format!("{name}{seed}"), world.clone(), seed).0;
        let all = (1..5).map(one);
        all.map(|file| file.to_string_lossy().into_owned())
            .collect()
    };
    let (quiet, busy) = (side("quiet", 40, 0), side("busy", 40, 6));
    let (more, both) = (side("more", 160, 0), side("both", 160, 6));
    let compare = |new: &[String], options: &[&str]| -> Result<(Option<i32>, Value), Failure> {
        let mut args = vec!["diff", "--format", "json", "--fail-over", "10%"];
        args.extend(options);
        args.push("--base");
        args.extend(quiet.iter().map(String::as_str));
        args.push("--new");
        args.extend(new.iter().map(String::as_str));
        let out = tr(&args);
        let rules = include_str!("../crates/report/schema/diff.schema.json");
        Ok((out.status.code(), valid(rules, &out.stdout)?))
    };
    for (new, whose, code) in [
        (&busy, "machine", 0),
        (&more, "build", 1),
        (&both, "both", 1),
    ] {
        let (status, json) = compare(new, &[])?;
        ensure(json["whose"] == whose && status == Some(code), || {
            format!("{whose}: {status:?} {json}")
        })?;
        ensure(compare(new, &["--strict"])?.0 == Some(1), || whose.into())?;
    }
    let (_, json) = compare(&busy, &[])?;
    let conclusion = json["conclusion"].as_str().unwrap_or("?");
    ensure(
        conclusion.starts_with("Slower: ") && conclusion.ends_with(": the runner, not your change"),
        || conclusion.to_owned(),
    )?;
    ensure(json["gate"]["runner"] == true, || json["gate"].to_string())
}

/// A build that fails early must not count as a faster one: the headline says that the build failed, and the build
/// passes no gate.
#[test]
fn a_failed_build_passes_no_gate() -> Result<(), Failure> {
    let ended = |name: &str, link, status: Option<u32>| -> String {
        let mut config = Config::new(build(link, None), 2, 2_000 * MS);
        config.linger = Some(100_000);
        let (mut recording, _) = Recording::record(&config);
        let summary = recording.summary.as_mut().expect("an end");
        summary.status = status;
        write(name, &recording).to_string_lossy().into_owned()
    };
    let good = ended("good", 60, Some(0));
    let (again, third) = (
        ended("good-again", 60, Some(0)),
        ended("third", 60, Some(0)),
    );
    let better = ended("better", 50, Some(0));
    let failed = ended("failed", 5, Some(2 << 8));
    let killed = ended("killed", 5, Some(9));
    let open = ended("open", 20, None);
    let compare = |base: &[&str], new: &[&str]| -> Result<(Option<i32>, String, String), Failure> {
        let sides = [
            &["--base"][..],
            base,
            &["--new"],
            new,
            &["--fail-over", "10%"],
        ]
        .concat();
        let mut outputs = Vec::new();
        let mut code = None;
        for format in ["text", "markdown", "html", "json"] {
            let out = tr(&[&["diff", "--format", format][..], &sides].concat());
            ensure(code.is_none_or(|code| code == out.status.code()), || {
                format.into()
            })?;
            code = Some(out.status.code());
            outputs.push(String::from_utf8(out.stdout)?);
        }
        let json = valid(
            include_str!("../crates/report/schema/diff.schema.json"),
            outputs[3].as_bytes(),
        )?;
        let conclusion = json["conclusion"].as_str().unwrap_or("?").to_owned();
        let first = outputs[0].lines().next().unwrap_or("");
        ensure(conclusion.starts_with(first.trim_end()), || {
            outputs[0].clone()
        })?;
        // Each format has its own escapes, but the same words.
        let words = conclusion.split(':').next().unwrap_or("?");
        ensure(outputs[1].contains(words), || outputs[1].clone())?;
        ensure(outputs[2].contains(words), || outputs[2].clone())?;
        Ok((code.flatten(), conclusion, json.to_string()))
    };
    for (base, new, words) in [
        (
            &[&good][..],
            &[&failed][..],
            "The new build failed: exit 2;",
        ),
        (
            &[&good],
            &[&killed],
            "The new build failed: killed by SIGKILL;",
        ),
        (&[&failed], &[&good], "The base build failed: exit 2;"),
        (
            &[&killed],
            &[&failed],
            "The new build failed: exit 2; the base build failed: killed by SIGKILL;",
        ),
        (
            &[&good],
            &[&again, &failed, &killed],
            "2 of 3 new builds failed: exit 2, killed by SIGKILL;",
        ),
    ] {
        let [base, new] = [base, new]
            .map(|side| -> Vec<&str> { side.iter().map(|file| file.as_str()).collect() });
        let (code, said, json) = compare(&base, &new)?;
        ensure(said.starts_with(words), || format!("{said} is not {words}"))?;
        ensure(code == Some(2), || format!("{words}: {code:?}"))?;
        // Without a gate the exit status is 2, too.
        let sides = [&["diff", "--base"][..], &base, &["--new"], &new].concat();
        ensure(tr(&sides).status.code() == Some(2), || words.into())?;
        ensure(json.contains("--fail-over cannot judge it"), || {
            json.clone()
        })?;
    }
    // If the base has several builds, only those that succeeded are compared.
    let (code, said, json) = compare(&[&good, &failed, &third], &[&better])?;
    ensure(code == Some(0) && said.starts_with("Faster"), || {
        said.clone()
    })?;
    ensure(
        json.contains("failed.bin is left out: its build failed (exit 2)"),
        || json.clone(),
    )?;
    // If a recording lacks the end of its command, the command does not count as failed. A message names the
    // difference.
    let (code, _, json) = compare(&[&good], &[&open])?;
    ensure(
        code == Some(0) && json.contains("not the same end: exit 0 before, no end now"),
        || json.clone(),
    )
}

/// Recordings that cannot be read, or that the gate cannot judge, make `tr diff` exit with 2.
#[test]
fn errors_have_a_status_of_their_own() -> Result<(), Failure> {
    let (file, _) = record("whole", build(20, None), 1);
    let cut = file.with_file_name("cut.bin");
    let bytes = std::fs::read(record("to-cut", build(20, None), 1).0)?;
    std::fs::write(&cut, &bytes[..bytes.len() * 8 / 10])?;
    let (file, cut) = (file.to_string_lossy(), cut.to_string_lossy());
    let status = |args: &[&str]| tr(args).status.code();
    let short = |name| {
        let short = Config::new(build(20, None), 2, 10 * MS);
        let short = write(name, &Recording::record(&short).0);
        short.to_string_lossy().into_owned()
    };
    let (short, also_short) = (short("short"), short("also-short"));
    assert_eq!(status(&["diff", &file, "/nowhere/x.bin"]), Some(2));
    assert_eq!(status(&["diff", &file, "/dev/null"]), Some(2));
    assert_eq!(status(&["diff", &file]), Some(2));
    assert_eq!(status(&["diff", "--base", &file]), Some(2));
    assert_eq!(status(&["diff", &file, &file, "--fail-over", "x"]), Some(2));
    assert_eq!(status(&["diff", &file, &cut]), Some(2));
    assert_eq!(status(&["diff", &short, &file]), Some(2));
    assert_eq!(
        status(&["diff", &file, &cut, "--fail-over", "10%"]),
        Some(2)
    );
    // If a recording ended while its command still ran, the gate cannot judge it. Equal lengths of two recordings prove
    // nothing about the command.
    for sides in [
        [&*short, &*also_short],
        [&*file, &*short],
        [&*short, &*file],
    ] {
        let out = tr(&["diff", sides[0], sides[1], "--fail-over", "900%"]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.contains("short.bin ended before its command"),
            "{said}"
        );
    }
    assert_eq!(status(&["diff", &short, &also_short]), Some(0));
    // Lost events cause unknown time, which is longer than the limit of the gate.
    let loss = Loss {
        stream: Stream::Cpu(CpuId(0)),
        from: 300,
        most: 8,
        cause: LossCause::BufferFull,
        counted: true,
    };
    let faults = Plan {
        loss: vec![loss],
        ..Plan::default()
    };
    let lossy = ["lossy", "also-lossy"].map(|name| {
        let (lossy, _) = record_with(name, build(20, None), 1, &faults);
        lossy.to_string_lossy().into_owned()
    });
    let gate = |most| {
        [
            "diff",
            &lossy[0],
            &lossy[1],
            "--fail-on",
            "on-cpu",
            "--fail-over",
            most,
        ]
        .map(str::to_owned)
    };
    let gated = |most| status(&gate(most).each_ref().map(String::as_str));
    assert_eq!((gated("1%"), gated("1000%")), (Some(2), Some(0)));
    let said = String::from_utf8(tr(&["diff", &file, &cut]).stdout)?;
    assert!(said.contains("is truncated"), "{said}");
    Ok(())
}

#[test]
fn nothing_hostile_comes_through() -> Result<(), Failure> {
    let (base, _) = record("mild", build(20, None), 1);
    let (file, _) = record("hostile", build(60, Some(&[HOSTILE, HOSTILE])), 1);
    let (base, file) = (base.to_string_lossy(), file.to_string_lossy());
    let mut outputs = Vec::new();
    for report in REPORTS {
        for format in ["text", "csv", "json"] {
            for by in ["process", "program", "thread", "comm"] {
                outputs.push(vec![
                    "analyze", &*file, "--report", report, "--format", format, "--by", by, "--top",
                    "99",
                ]);
            }
        }
    }
    for format in ["text", "json", "markdown"] {
        outputs.push(vec!["diff", &*base, &*file, "--format", format]);
        outputs.push(vec!["diff", &*file, &*base, "--format", format]);
    }
    outputs.push(vec!["summary", &*file, "--format", "markdown"]);
    for args in outputs {
        let out = String::from_utf8(good(&args)?)?;
        let json = args.contains(&"json");
        // In JSON argv contains the program's own characters. JSON itself escapes control characters.
        let bad = |c: char| (c.is_control() && c != '\n') || (!json && c == '\u{202e}');
        ensure(!out.contains(bad), || format!("{args:?}: {out:?}"))?;
        if args.contains(&"markdown") {
            for mark in ["<img", "`", "@user", "[l]", "b.org"] {
                ensure(!out.contains(mark), || format!("{mark}: {out}"))?;
            }
        }
        if args[0] == "diff" {
            ensure(out.contains("img"), || format!("it is there: {out}"))?;
        }
    }
    Ok(())
}

/// The events are read in many batches and sorted by several threads. The output must have the same bytes as with one
/// thread.
#[test]
fn the_number_of_threads_does_not_show() {
    let mut config = Config::new(tr_sim::scenario::build(24, 10_000, 20), 16, u64::MAX >> 12);
    config.max_events = 1_200_000;
    config.progress = 200 * MS;
    let (file, written, _) = tr_sim::file::record_to(&config, Vec::new()).expect("a recording");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("threads.bin");
    std::fs::write(&path, file).unwrap();
    assert!(written.by_kind.switches > 300_000);
    let analyze = |threads: &str| {
        let path = path.to_str().unwrap();
        let args = ["analyze", path, "--format", "json", "--threads", threads];
        let output = Command::new(TR).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let one = analyze("1");
    assert!(one.len() > 100_000);
    for threads in ["2", "3", "8"] {
        assert!(analyze(threads) == one, "{threads} threads differ from one");
    }
}
