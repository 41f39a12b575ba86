//! Tests files whose checksums are right but whose contents are wrong, or would take much memory and time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tr_format::event::{
    Argv, CgroupId, Clock, Comm, CpuId, Exec, Fork, Ktime, LifeEvent, LifeKind, Mark, Point,
    SchedEvent, SchedKind, Switch,
};
use tr_format::event::{Reason, Stream, Tgid, Tid, Timeout};
use tr_format::frame::{self, kind, Header};
use tr_format::mask::Masked;
use tr_format::meta::{Metadata, Scope, Summary};
use tr_format::writer::Writer;
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::{Config, Follow};
use tr_sim::recording::Recording;
use tr_sim::scenario;

const TR: &str = env!("CARGO_BIN_EXE_tr");

fn demo() -> Vec<u8> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    std::fs::read(demo).unwrap()
}

/// The frames of a file (header and payload of each), and the file's id, which is in the checksums of the frames.
fn frames(file: &[u8]) -> (u32, Vec<(Header, Vec<u8>)>) {
    let (mut at, mut id, mut frames) =
        (usize::try_from(frame::FILE_HEADER).unwrap(), 0, Vec::new());
    let end = file.len() - usize::try_from(frame::TRAILER).unwrap();
    while at < end {
        let (header, length) = Header::decode(&file[at..], id).unwrap();
        let payload = at + length..at + length + usize::try_from(header.payload).unwrap();
        at = payload.end;
        if id == 0 {
            id = header.crc;
        }
        frames.push((header, file[payload].to_vec()));
    }
    (id, frames)
}

/// Makes a file of frames, with a trailer that names the offset of the index.
fn file(original: &[u8], id: u32, frames: &[(Header, Vec<u8>)]) -> Vec<u8> {
    let mut out = original[..usize::try_from(frame::FILE_HEADER).unwrap()].to_vec();
    let mut index = 0;
    for (at, (header, payload)) in frames.iter().enumerate() {
        if header.kind == kind::INDEX {
            index = out.len() as u64;
        }
        header.encode(if at == 0 { 0 } else { id }, &mut out);
        out.extend_from_slice(payload);
    }
    // The trailer consists of the index's offset, a checksum of that offset and of the file's id, and a magic number.
    let at = index.to_le_bytes();
    let mut sum = crc32fast::Hasher::new();
    sum.update(&id.to_le_bytes());
    sum.update(&at);
    out.extend_from_slice(&at);
    out.extend_from_slice(&sum.finalize().to_le_bytes());
    out.extend_from_slice(&frame::TRAILER_MAGIC);
    out
}

fn run(args: &[&str], input: &[u8]) -> Output {
    let mut tr = Command::new(TR)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _bound = common::bound::bound(&tr);
    let _ = tr.stdin.take().unwrap().write_all(input);
    tr.wait_with_output().unwrap()
}

#[test]
fn verify_holds_summary_and_index_against_the_frames() {
    let original = demo();
    let (id, frames) = frames(&original);
    assert_eq!(file(&original, id, &frames), original);
    assert_eq!(run(&["verify", "-"], &original).status.code(), Some(0));
    // One frame is removed, and all later frames are renumbered, so that only the summary and the index show that a
    // frame is missing.
    let of_cpu = |(header, _): &(Header, Vec<u8>)| header.kind == kind::SCHED;
    let removed = frames.iter().position(of_cpu).unwrap();
    let mut fewer = frames.clone();
    let (gone, _) = fewer.remove(removed);
    for (header, _) in &mut fewer[removed..] {
        header.number -= 1;
        if (header.kind, header.stream) == (gone.kind, gone.stream) {
            header.seq -= 1;
        }
    }
    let out = run(&["verify", "-"], &file(&original, id, &fewer));
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("the summary counts "), "{said}");
    assert!(said.contains(", the frames hold "), "{said}");
    assert!(
        said.contains("the index disagrees with the frames from frame "),
        "{said}"
    );
}

/// Ten events of one CPU. The last one has a timestamp that is `back` ns too early.
fn ten(back: u64) -> Vec<u8> {
    let meta = Metadata {
        start: Ktime(1_000_000),
        cpus: vec![CpuId(0)],
        ..Metadata::default()
    };
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta.clone())).unwrap();
    for at in 1..=10 {
        let kind = SchedKind::Switch(Switch {
            prev: Tid(10),
            next: Tid(11),
            prev_state: 0,
            preempt: true,
            iowait: false,
            reason: Reason::Unknown,
            timeout: Timeout::UNKNOWN,
        });
        let back = if at == 10 { back } else { 0 };
        let time = Ktime(1_000_000 + at * 1_000 - back);
        writer.sched(CpuId(0), SchedEvent { time, kind }).unwrap();
    }
    let summary = Summary {
        end: Ktime(2_000_000),
        ..Summary::default()
    };
    writer.finish(&Masked::trusted(summary)).unwrap().0
}

#[test]
fn verify_holds_the_other_counts_against_the_frames() {
    let (honest, back) = (ten(0), ten(5_000));
    for trace in [&honest, &back] {
        assert_eq!(run(&["verify", "-"], trace).status.code(), Some(0));
    }
    let (id, mut mixed) = frames(&honest);
    let (_, others) = frames(&back);
    let summary = |(header, _): &(Header, Vec<u8>)| header.kind == kind::SUMMARY;
    let of = others.into_iter().find(summary).unwrap();
    *mixed.iter_mut().find(|frame| summary(frame)).unwrap() = of;
    let out = run(&["verify", "-"], &file(&honest, id, &mixed));
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{said}");
    let words = "the summary counts 4,000 ns of the largest step back, the frames hold 0";
    assert!(said.contains(words), "{said}");
}

#[test]
fn an_endless_pipe_that_is_no_trace_is_refused_at_once() {
    let begun = Instant::now();
    for command in ["info", "analyze", "verify", "dump"] {
        let zero = std::fs::File::open("/dev/zero").unwrap();
        let out = Command::new(TR)
            .args([command, "-"])
            .stdin(zero)
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2), "{command}");
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(said.contains("not a tr recording"), "{command}: {said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// A recording of two tasks that take turns on a CPU for 1 µs each, and of `forks` more tasks that only begin.
fn long(switches: u64, forks: u32) -> Vec<u8> {
    lasting(switches, forks, 0)
}

/// Like [`long`], but the summary claims that the recording ended `more` ns after the last event.
fn lasting(switches: u64, forks: u32, more: u64) -> Vec<u8> {
    let start = Ktime(1_000_000);
    let meta = Metadata {
        start,
        cpus: vec![CpuId(0)],
        scope: Scope::Command,
        root: Some(Tgid(10)),
        page_size: 4096,
        ..Metadata::default()
    };
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta.clone())).unwrap();
    let fork = |at: u64, parent: u32, tid: u32| LifeEvent {
        time: Ktime(start.0 + at),
        cpu: Some(CpuId(0)),
        kind: LifeKind::Fork(Fork {
            parent_tid: Tid(parent),
            parent_tgid: Tgid(parent),
            tid: Tid(tid),
            tgid: Tgid(tid),
            start_time: Ktime(start.0 + at),
            ns_tid: Tid(tid),
            cgroup: CgroupId(1),
            comm: Comm::new(b"x"),
        }),
    };
    writer
        .life(Stream::Lifecycle, Masked::trusted(fork(0, 1, 10)))
        .unwrap();
    writer
        .life(Stream::Lifecycle, Masked::trusted(fork(1, 10, 11)))
        .unwrap();
    for at in 0..switches {
        let (prev, next) = if at % 2 == 0 { (10, 11) } else { (11, 10) };
        let kind = SchedKind::Switch(Switch {
            prev: Tid(prev),
            next: Tid(next),
            prev_state: 0,
            preempt: true,
            iowait: false,
            reason: Reason::Unknown,
            timeout: Timeout::UNKNOWN,
        });
        let time = Ktime(start.0 + 1_000 * (at + 1));
        writer.sched(CpuId(0), SchedEvent { time, kind }).unwrap();
    }
    for number in 0..forks {
        let at = 1_000 * switches + u64::from(number);
        writer
            .life(
                Stream::Lifecycle,
                Masked::trusted(fork(at, 10, 100 + number)),
            )
            .unwrap();
    }
    let summary = Summary {
        end: Ktime(start.0 + 1_000 * (switches + 2) + u64::from(forks) + more),
        ..Summary::default()
    };
    writer.finish(&Masked::trusted(summary)).unwrap().0
}

#[test]
fn a_budget_ends_the_analysis_with_what_is_known() {
    let trace = long(600_000, 0);
    let whole = run(&["analyze", "-", "--format", "json"], &trace);
    let whole: Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(whole["trace"]["truncated"], false);
    for (budget, most) in [("--max-time", "0s"), ("--max-memory", "1M")] {
        let out = run(&["analyze", "-", "--format", "json", budget, most], &trace);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(0), "{said}");
        assert!(
            said.contains(budget) && said.contains("is unknown"),
            "{said}"
        );
        let part: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(part["trace"]["truncated"], true);
        let [whole, part] = [&whole["totals"], &part["totals"]];
        let ns = |totals: &Value, name: &str| totals[name].as_u64().unwrap();
        assert!(ns(part, "unknown_ns") > 0, "{part}");
        assert!(ns(part, "on_cpu_ns") > 0 && ns(part, "on_cpu_ns") < ns(whole, "on_cpu_ns"));
        let names = [
            "on_cpu_ns",
            "run_queue_ns",
            "sleep_ns",
            "blocked_ns",
            "unknown_ns",
        ];
        let sum = |totals| names.iter().map(|name| ns(totals, name)).sum::<u64>();
        assert_eq!(sum(whole), sum(part));
        // The first screen names the limit, too.
        let text = run(&["analyze", "-", budget, most], &trace);
        assert!(String::from_utf8(text.stdout).unwrap().contains(budget));
    }
}

#[test]
fn a_budget_ends_the_reading_of_all_events() {
    let trace = long(600_000, 0);
    let out = run(&["dump", "-", "--max-time", "0s"], &trace);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("the events end there"), "{said}");
    let lines = out.stdout.iter().filter(|b| **b == b'\n').count();
    assert!((1..600_000).contains(&lines), "{lines}");
    let out = run(&["verify", "-", "--max-time", "0s"], &trace);
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing is checked"), "{said}");
}

#[test]
fn a_small_file_of_many_processes_stays_in_its_budget() {
    let trace = long(10, 600_000);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("forks.bin");
    std::fs::write(&path, &trace).unwrap();
    let script = format!(
        "ulimit -v 3000000; {TR} analyze {} --max-memory 200M",
        path.display()
    );
    let out = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("--max-memory"), "{said}");
}

#[test]
fn a_series_has_a_limit_that_names_the_interval() {
    let trace = long(600_000, 0);
    // One row for each µs would take a minute, so there must be a limit for the number of rows. The rows themselves are
    // tested elsewhere (`fit`).
    let args = ["analyze", "-", "--report", "series", "--interval", "1us"];
    let out = run(&args, &trace);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(
        said.contains("--interval 1.0 µs would make more than "),
        "{said}"
    );
    let printed = String::from_utf8(out.stdout).unwrap();
    let words = Vec::from_iter(printed.split_whitespace()).join(" ");
    assert!(words.contains("(1.0 µs is too fine)"), "{printed}");
    let trace = long(20_000, 0);
    for width in ["0", "1", "18446744073709551615"] {
        let out = run(
            &["analyze", "-", "--report", "all", "--width", width],
            &trace,
        );
        assert_eq!(out.status.code(), Some(0), "{width}");
    }
}

#[test]
fn sums_beyond_the_clock_are_said_to_be_damaged() {
    let trace = lasting(10, 50, u64::MAX / 4);
    for report in [
        "top",
        "tree",
        "execs",
        "cpus",
        "parallelism",
        "critical-path",
        "series",
        "advice",
        "steps",
        "quality",
    ] {
        let out = run(&["analyze", "-", "--report", report], &trace);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(0), "{report}: {said}");
    }
    let out = run(&["analyze", "-", "--format", "json"], &trace);
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    let times = &json["totals"];
    let largest =
        ["run_queue_ns", "unknown_ns", "sleep_ns"].map(|name| times[name].as_u64().unwrap());
    assert!(largest.contains(&u64::MAX), "{times}");
    let out = run(&["info", "-"], &trace);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("the trace is damaged"), "{text}");
}

/// A recording of `length` processes, which all run `make`. Each is a child of the process before.
fn chain(length: u32) -> Vec<u8> {
    let start = Ktime(1_000_000);
    let meta = Metadata {
        start,
        cpus: vec![CpuId(0)],
        scope: Scope::Command,
        root: Some(Tgid(10)),
        start_clock: Clock {
            real: 1_700_000_000_000_000_000,
            ..Clock::default()
        },
        page_size: 4096,
        ..Metadata::default()
    };
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta.clone())).unwrap();
    let mut prev = 0;
    for number in 0..length {
        let at = Ktime(start.0 + 1_000_000 * u64::from(number));
        let (parent, own) = (if number == 0 { 1 } else { 9 + number }, 10 + number);
        let life = |at: u64, kind| LifeEvent {
            time: Ktime(at),
            cpu: Some(CpuId(0)),
            kind,
        };
        let fork = LifeKind::Fork(Fork {
            parent_tid: Tid(parent),
            parent_tgid: Tgid(parent),
            tid: Tid(own),
            tgid: Tgid(own),
            start_time: at,
            ns_tid: Tid(own),
            cgroup: CgroupId(1),
            comm: Comm::new(b"make"),
        });
        let exec = LifeKind::Exec(Exec {
            tid: Tid(own),
            tgid: Tgid(own),
            old_tid: Tid(own),
            comm: Comm::new(b"make"),
            filename: b"/usr/bin/make"[..].into(),
            argv: Argv::from_args([&b"make"[..], b"-C", format!("d{number}").as_bytes()]),
            cgroup: CgroupId(1),
            ..Exec::default()
        });
        for event in [life(at.0, fork), life(at.0 + 2_000, exec)] {
            writer
                .life(Stream::Lifecycle, Masked::trusted(event))
                .unwrap();
        }
        let kind = SchedKind::Switch(Switch {
            prev: Tid(prev),
            next: Tid(own),
            prev_state: 1,
            preempt: false,
            iowait: false,
            reason: Reason::Unknown,
            timeout: Timeout::UNKNOWN,
        });
        let time = Ktime(at.0 + 1_000);
        writer.sched(CpuId(0), SchedEvent { time, kind }).unwrap();
        prev = own;
    }
    let summary = Summary {
        end: Ktime(start.0 + 1_000_000 * u64::from(length)),
        ..Summary::default()
    };
    writer.finish(&Masked::trusted(summary)).unwrap().0
}

/// The CPU time in seconds of a command that must succeed in this directory. It is killed if it takes more than `most`
/// seconds of CPU time.
fn cpu_time(dir: &Path, most: u32, args: &[&str]) -> f64 {
    // The limit is for each process; bash's `time` prints the CPU time of all its children.
    let out = Command::new("bash")
        .arg("-c")
        .arg("TIMEFORMAT='cpu %U %S'; time prlimit --cpu=$1 -- \"${@:2}\"")
        .args(["bash", &most.to_string(), TR])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {said}");
    let (_, times) = said.rsplit_once("cpu ").unwrap();
    times
        .split_whitespace()
        .map(|time| time.parse::<f64>().unwrap())
        .sum()
}

/// Walking from each process to all its ancestors would cost the square of the depth: eight times the depth would take
/// 64 times as long. The limit is a ratio of two times, because a busy machine makes both longer.
#[test]
fn a_deep_chain_of_processes_costs_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let length = if common::long() { 100_000 } else { 40_000 };
    std::fs::write(dir.path().join("short.bin"), chain(length / 8)).unwrap();
    std::fs::write(dir.path().join("chain.bin"), chain(length)).unwrap();
    for (command, options) in [
        ("analyze", "--report advice,steps,tree"),
        ("summary", ""),
        ("report", "-o page.html"),
        ("export", "--format otlp -o otlp"),
    ] {
        let time = |file: &str| {
            let args: Vec<&str> = [command, file]
                .into_iter()
                .chain(options.split_whitespace())
                .collect();
            cpu_time(dir.path(), 300, &args)
        };
        let (short, deep) = (time("short.bin"), time("chain.bin"));
        eprintln!("{command}: {deep} s, {short} s for an eighth");
        assert!(
            deep < 20.0 * short.max(0.05),
            "{command}: {deep} s, {short} s for an eighth"
        );
    }
}

/// A limit of time or memory that is reached after the reading ends the command, which then leaves no output.
#[test]
fn the_limits_hold_for_reports_and_exports() {
    // A series with one row for each µs has a million rows.
    let trace = long(600_000, 0);
    let args = [
        "analyze",
        "-",
        "--report",
        "all",
        "--format",
        "json",
        "--interval",
        "1us",
    ];
    // The memory in use is compared with the limit only every 20 ms. Between two checks the command may take and free
    // all of its memory, and then it succeeds. So there are nine tries.
    let mut tries = (0..9).map(|_| run(&[&args[..], &["--max-memory", "120M"]].concat(), &trace));
    let out = tries.find(|out| out.status.code() != Some(0)).unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{said}");
    let limit = "--max-memory 120 MiB (128 MiB, the least that a report has) was reached";
    assert!(said.contains(limit), "{said}");
    assert!(out.stdout.is_empty());
    let trace = long(10, 10);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("forks.bin"), &trace).unwrap();
    // Nobody reads from the FIFO, so the command blocks until it reaches the time limit of its options.
    let fifo = dir.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let begun = Instant::now();
    let out = Command::new(TR)
        .args([
            "export",
            "forks.bin",
            "--format",
            "folded",
            "-o",
            "fifo",
            "--max-time",
            "1.5s",
        ])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("--max-time 1.5s was reached"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(15));
}

/// A recording of a process that writes `count` marks for spans, each inside of the one before. With `ends`, each span
/// also has a mark for its end.
fn marks(count: u64, ends: bool) -> Vec<u8> {
    let start = Ktime(1_000_000);
    let meta = Metadata {
        start,
        cpus: vec![CpuId(0)],
        scope: Scope::Command,
        root: Some(Tgid(10)),
        page_size: 4096,
        ..Metadata::default()
    };
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta)).unwrap();
    let mut at = start.0;
    let mut add = |kind: LifeKind| {
        at += 1_000;
        let time = Ktime(at);
        let cpu = Some(CpuId(0));
        writer
            .life(
                Stream::Lifecycle,
                Masked::trusted(LifeEvent { time, cpu, kind }),
            )
            .unwrap();
    };
    add(LifeKind::Fork(Fork {
        parent_tid: Tid(1),
        parent_tgid: Tgid(1),
        tid: Tid(10),
        tgid: Tgid(10),
        start_time: start,
        ns_tid: Tid(10),
        cgroup: CgroupId(1),
        comm: Comm::new(b"x"),
    }));
    let mark = |number: u64, point| {
        LifeKind::Mark(Mark {
            name: number.to_string().into_bytes().into(),
            point,
            pid: Some(Tid(10)),
            ..Mark::default()
        })
    };
    (0..count).for_each(|number| add(mark(number, Point::Begin)));
    let ended = if ends { count } else { 0 };
    (0..ended)
        .rev()
        .for_each(|number| add(mark(number, Point::End)));
    let summary = Summary {
        end: Ktime(at + 1_000),
        ..Summary::default()
    };
    writer.finish(&Masked::trusted(summary)).unwrap().0
}

/// Eight times as many tests of one suite may take little more than eight times as long, not 64 times.
#[test]
fn tests_that_follow_each_other_cost_what_they_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(scenario::pipe(), 2, u64::MAX >> 12);
    config.follow = Follow::All;
    config.max_events = 20_000;
    let cut = Cut {
        largest: 1 << 16,
        order: Order::Written,
        seed: 1,
    };
    for (name, tests) in [("few.bin", 12_500), ("many.bin", 100_000)] {
        let (mut recording, truth) = Recording::record(&config);
        recording.add_tests(truth.tasks.first().map(|task| task.tid), tests);
        std::fs::write(dir.path().join(name), recording.to_file(&cut).unwrap()).unwrap();
    }
    for line in ["summary FILE", "analyze FILE --report steps"] {
        let time = |file: &str| {
            let line = line.replace("FILE", file);
            cpu_time(dir.path(), 300, &line.split(' ').collect::<Vec<_>>())
        };
        let (few, many) = (time("few.bin"), time("many.bin"));
        // Times below 100 ms are mostly the start of the program, so they count as 100 ms.
        assert!(many < 17.0 * few.max(0.1), "{line}: {few} s, {many} s");
    }
}

/// Four times as many marks may take little more than four times as long, not 16 times.
#[test]
fn spans_inside_one_another_cost_what_they_count() {
    let dir = tempfile::tempdir().unwrap();
    for ends in [false, true] {
        let (few, many) = (marks(3_000, ends), marks(12_000, ends));
        std::fs::write(dir.path().join("few.bin"), few).unwrap();
        std::fs::write(dir.path().join("many.bin"), many).unwrap();
        for line in [
            "summary FILE",
            "analyze FILE --report steps",
            "report FILE -o page.html --force",
            "export FILE --format perfetto -o out.pf --force",
        ] {
            let time = |file: &str| {
                let line = line.replace("FILE", file);
                cpu_time(dir.path(), 300, &line.split(' ').collect::<Vec<_>>())
            };
            let (few, many) = (time("few.bin"), time("many.bin"));
            // Times below 100 ms are mostly the start of the program, so they count as 100 ms.
            assert!(
                many < 9.0 * few.max(0.1),
                "{line}, {ends}: {few} s, {many} s"
            );
        }
        // Steps that lie inside of 64 others are left out, and the report mentions them.
        let out = run(&["analyze", "-", "--report", "steps"], &marks(100, ends));
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(said.contains("36 steps lie inside 64 others"), "{said}");
        let out = run(&["analyze", "-", "--report", "steps"], &marks(64, ends));
        assert!(out.stderr.is_empty());
    }
}

/// A file of a few events that claims the longest possible time costs no more than its events, and makes no large
/// output.
#[test]
fn claimed_time_costs_nothing() {
    const LIMIT: &str = "--max-time 60s";
    let dir = tempfile::tempdir().unwrap();
    for more in [1 << 62, 1 << 63, u64::MAX - 2_000_000_000] {
        std::fs::write(dir.path().join("long.bin"), lasting(10, 3, more)).unwrap();
        for line in [
            "report long.bin -o page.html --force",
            "summary long.bin --format json",
            "predict long.bin --cpus 3 --table",
            "predict long.bin --quota 150% --format html",
            "predict long.bin --quota 1%",
            "analyze long.bin --report all --interval 1us --format json",
            "analyze long.bin --report series --interval 1us --format csv",
            "analyze long.bin --report all --width 200",
            "analyze long.bin --format ci-tracer",
            "export long.bin --format perfetto -o out --force",
            "export long.bin --format otlp-json -o out --force",
            "export long.bin --format folded --weight wall -o out --force",
            "pipeline long.bin --format html",
            "diff long.bin long.bin",
        ] {
            let script = format!("{TR} {line} {LIMIT}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).current_dir(dir.path());
            let out = shell.output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(!said.contains("--max-time"), "{line}: {said}");
            let written = std::fs::metadata(dir.path().join("out")).map_or(0, |file| file.len());
            assert!(written + (out.stdout.len() as u64) < 4 << 20, "{line}");
        }
    }
}
