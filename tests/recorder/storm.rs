//! Tests that no event is lost while the ring buffers have room, and that losses are reported.

use std::collections::HashMap;
use std::process::Command;
use std::sync::OnceLock;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::{
    analyze, compiled, dump, ensure, eventually, info, int, kill, record, recording, scratch, text,
    Test,
};

pub const TESTS: &[Test] = &[
    ("a_storm_on_one_cpu_loses_nothing", || {
        storm(&["pipe", "300000"])
    }),
    ("four_hundred_tasks_lose_nothing", || {
        storm(&["chat", "100"])
    }),
    ("a_storm_of_stress_ng_loses_nothing", stress_ng),
    ("twenty_thousand_processes_lose_nothing", short),
    ("two_thousand_threads_lose_nothing", || {
        storm(&["threads", "2000"])
    }),
    ("a_recorder_starved_by_nice_hogs_loses_nothing", || {
        storm(&["hog", "n", "2", "60000"])
    }),
    ("a_recorder_starved_by_real_time_hogs_loses_nothing", || {
        storm(&["hog", "f", "1", "150000"])
    }),
    (
        "what_the_most_urgent_hogs_keep_from_the_recorder_is_counted",
        most_urgent,
    ),
    ("an_output_that_stalls_for_5_s_loses_nothing", stall),
    ("the_kernel_agrees_on_every_switch", switches),
];

/// The test that must lose events.
pub const TINY: &[Test] = &[("what_a_tiny_ring_loses_is_said_and_never_wrong", tiny)];

/// The compiled program fixtures/programs/storm.c, which causes very many events.
pub fn program() -> Result<&'static str, Failed> {
    static BINARY: OnceLock<Option<String>> = OnceLock::new();
    let binary = BINARY.get_or_init(|| compiled("storm.c", "storm", &["-pthread"]).ok());
    binary.as_deref().ok_or_else(|| "gcc storm.c".into())
}

/// The reason why real-time priorities cannot be tested here, if any.
pub fn no_real_time() -> Option<String> {
    let tried = Command::new("chrt").args(["-r", "20", "true"]).status();
    let done = tried.is_ok_and(|status| status.success());
    (!done).then(|| "no real-time priorities here".into())
}

/// Pairs of processes on every CPU do nothing but switch between the two.
fn stress_ng() -> Result<(), Failed> {
    let command = [
        "stress-ng",
        "-q",
        "--switch",
        "0",
        "--switch-ops",
        "400000",
        "-t",
        "60",
    ];
    lossless(&command)?;
    let info = info(&scratch("storm.bin"))?;
    ensure(int(&info["events_by_kind"], "switch") > 400_000, || {
        info.to_string()
    })
}

fn run(args: &[&str]) -> Result<(), Failed> {
    lossless(&[&[program()?], args].concat())
}

/// Records a command with default settings; no event may be lost.
fn lossless(command: &[&str]) -> Result<(), Failed> {
    let out = record(&scratch("storm.bin"), &[], command)?;
    let said = text(&out.stderr);
    ensure(out.status.success(), || format!("{:?} {said}", out.status))?;
    ensure(said.contains("none lost"), || said.clone())
}

fn storm(args: &[&str]) -> Result<(), Failed> {
    run(args)?;
    let info = info(&scratch("storm.bin"))?;
    ensure(int(&info, "events") > 1000, || info.to_string())
}

/// Tasks with the same priority as the recorder keep the recorder from a CPU for as long as they like. The events that
/// are lost meanwhile must be counted.
fn most_urgent() -> Result<(), Failed> {
    let (trace, count) = (scratch("storm.bin"), 150_000);
    let out = record(
        &trace,
        &[],
        &[program()?, "hog", "F", "1", &count.to_string()],
    )?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let info = info(&trace)?;
    let lost = info["lost_events"].as_object();
    let lost = lost.iter().flat_map(|losses| losses.values());
    let lost: u64 = lost.filter_map(Value::as_u64).sum();
    // Two tasks wake each other `count` times, and each waking comes with a switch.
    let all = int(&info, "events") + lost;
    ensure(all > 4 * count, || format!("{all}: {info}"))
}

fn short() -> Result<(), Failed> {
    run(&["short", "20000"])?;
    let totals = &analyze(&scratch("storm.bin"))?["totals"];
    ensure(int(totals, "exits") == 20_001, || totals.to_string())
}

fn stall() -> Result<(), Failed> {
    let (fifo, copy) = (scratch("stall.fifo"), scratch("stall.bin"));
    let _ = std::fs::remove_file(&fifo);
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU)?;
    let mut reader = Command::new("sh")
        .args(["-c", "exec <\"$FIFO\"; head -c 20000; sleep 5; exec cat"])
        .env("FIFO", &fifo)
        .stdout(std::fs::File::create(&copy)?)
        .spawn()?;
    let out = recording(&fifo, &[], &[program()?, "pipe", "1100000"]).output()?;
    reader.wait()?;
    let said = text(&out.stderr);
    ensure(out.status.success() && said.contains("none lost"), || {
        said.clone()
    })?;
    let info = info(&copy)?;
    ensure(
        info["truncated"] == false && int(&info, "events") > 1_000_000,
        || info.to_string(),
    )
}

/// The number of switches away from each task equals the kernel's count.
fn switches() -> Result<(), Failed> {
    run(&["chat", "20"])?;
    let (mut alive, mut checked) = (HashMap::<u64, u64>::new(), 0);
    for event in dump(&scratch("storm.bin"))? {
        match event["kind"].as_str() {
            Some("fork") => {
                alive.insert(int(&event, "tid"), 0);
            }
            Some("switch") => {
                if let Some(count) = alive.get_mut(&int(&event, "prev")) {
                    *count += 1;
                }
            }
            Some("final") => {
                let Some(ours) = alive.remove(&int(&event, "tid")) else {
                    continue;
                };
                let kernel = int(&event, "nvcsw") + int(&event, "nivcsw");
                ensure(ours == kernel, || {
                    format!("{ours} switches, the kernel says {kernel}: {event}")
                })?;
                checked += 1;
            }
            _ => {}
        }
    }
    ensure(checked == 400, || format!("{checked} tasks"))
}

fn tiny() -> Result<(), Failed> {
    let trace = scratch("tiny.bin");
    let _ = std::fs::remove_file(&trace);
    // A recorder that runs would keep up with the events, so the recorder is stopped for a while.
    let tr = recording(&trace, &["--buffer", "4K"], &[program()?, "pipe", "200000"])
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    eventually("the header", || trace.exists())?;
    for (signal, pause) in [("-STOP", 200), ("-CONT", 0)] {
        std::thread::sleep(std::time::Duration::from_millis(100));
        kill().args([signal, &tr.id().to_string()]).status()?;
        std::thread::sleep(std::time::Duration::from_millis(pause));
    }
    let out = tr.wait_with_output()?;
    let said = text(&out.stderr);
    ensure(out.status.success(), || said.clone())?;
    ensure(said.contains(" are missing between "), || said.clone())?;
    let lost = info(&trace)?["lost_events"].clone();
    ensure(
        lost["cpu0"].as_u64().is_some_and(|lost| lost > 1000),
        || lost.to_string(),
    )?;
    // The known CPU time is a lower bound of the kernel's figure, because lost events make unknown time.
    let kernel: u64 = dump(&trace)?
        .iter()
        .filter(|event| event["kind"] == "final")
        .map(|event| int(event, "sum_exec_runtime"))
        .sum();
    let totals = analyze(&trace)?["totals"].clone();
    let (known, unknown) = (int(&totals, "on_cpu_ns"), int(&totals, "unknown_ns"));
    ensure(unknown > 0 && known <= kernel + kernel / 50, || {
        format!("{known} ns on CPU, {unknown} ns unknown; the kernel says {kernel} ns")
    })
}
