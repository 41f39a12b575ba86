//! Tests that unrecorded tasks on the same CPUs cause only a bounded number of events.

use std::process::{Command, Stdio};

use libtest_mimic::Failed;

use crate::storm::program;
use crate::support::{ensure, info, int, record, report, scratch, Test};

pub const TESTS: &[Test] = &[("a_storm_beside_the_command_is_no_events", beside)];

/// Records a shell that works and sleeps by turns on the first CPU. Returns the number of events.
fn events(name: &str) -> Result<u64, Failed> {
    let trace = scratch(name);
    let work = "n=0; while [ $n -lt 150 ]; do n=$((n+1)); i=0; \
                while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.005; done";
    record(&trace, &[], &["taskset", "-c", "0", "sh", "-c", work])?;
    Ok(int(&info(&trace)?, "events"))
}

/// A program on the same CPU switches hundreds of thousands of times through a pipe. An earlier version recorded an
/// event for each of these switches.
fn beside() -> Result<(), Failed> {
    let alone = events("alone.bin")?;
    let mut storm = Command::new("taskset")
        .args(["-c", "0", program()?, "pipe", "100000000"])
        .stdout(Stdio::null())
        .spawn()?;
    let beside = events("beside.bin");
    storm.kill()?;
    storm.wait()?;
    let beside = beside?;
    ensure(beside <= alone + alone / 2 + 2_000, || {
        format!("{alone} events alone, {beside} beside a storm")
    })?;
    // The report has the CPU time of the switching program from recorded sums, not from events.
    let cpus = report(&scratch("beside.bin"), "cpus", &[])?;
    let waits = &cpus["run_queue_wait"];
    let others = waits["others"].as_array().cloned().unwrap_or_default();
    let named = others.iter().filter(|other| other["comm"] == "storm");
    let storm: u64 = named.map(|other| int(other, "ns")).sum();
    ensure(storm > 0 && storm <= int(waits, "others_ns"), || {
        format!("{waits}")
    })
}
