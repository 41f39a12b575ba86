//! Tests stack samples with a program whose hot functions are known.

use std::path::PathBuf;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::common::document;
use crate::support::{
    analyze, compiled, dump, ensure, info, int, list, record, report, scratch, text, tr, Test,
};

pub const TESTS: &[Test] = &[
    (SHARES, shares),
    (KERNEL, kernel),
    (FORK, fork),
    (GONE, gone),
    (WAITS, waits),
    (DEEP, deep),
    (
        "without_the_option_no_stacks_are_recorded",
        without_the_option,
    ),
    (OTHERS, others),
];

pub const SHARES: &str = "samples_have_the_shares_of_the_hot_functions";
pub const KERNEL: &str = "samples_in_the_kernel_have_both_stacks";
pub const FORK: &str = "samples_of_a_fork_without_an_exec_have_names";
pub const GONE: &str = "a_program_that_is_gone_has_no_names";
pub const WAITS: &str = "waits_have_the_stacks_that_they_began_with";
pub const DEEP: &str = "a_stack_without_its_outermost_frames_is_called_cut";
pub const OTHERS: &str = "methods_without_stacks_name_them";

/// The program is compiled with frame pointers and a build id, and without optimization. With optimization, a function
/// that calls no other has no frame pointer, so that its caller would be missing in the stack.
const FLAGS: &[&str] = &["-O0", "-pthread", "-Wl,--build-id"];

fn hot(name: &str) -> Result<String, Failed> {
    compiled("hot.c", name, FLAGS)
}

fn recorded(program: &str, what: &str) -> Result<PathBuf, Failed> {
    let trace = scratch(&format!("stacks-{what}.bin"));
    let out = record(&trace, &["--stacks=997"], &[program, what])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    Ok(trace)
}

/// The sum of a field over all rows with this function, in ns.
fn ns(rows: &[Value], field: &str, function: &str) -> u64 {
    let mine = rows.iter().filter(|row| row["function"] == function);
    mine.map(|row| int(row, field)).sum()
}

fn in_kernel(rows: &[Value]) -> u64 {
    let mine = rows.iter().filter(|row| row["binary"] == "kernel");
    mine.map(|row| int(row, "self_ns")).sum()
}

/// The tolerance for a share that is measured by this number of samples: five standard deviations, plus 3 percentage
/// points for the start of the program and for interrupts.
pub fn bound(expected: f64, samples: f64) -> f64 {
    0.03 + 5.0 * (expected * (1.0 - expected) / samples.max(1.0)).sqrt()
}

fn near(share: f64, expected: f64, what: &str, of: &Value) -> Result<(), Failed> {
    let bound = bound(expected, int(of, "samples") as f64);
    ensure((share - expected).abs() <= bound, || {
        format!("{what}: {share}, not {expected} ± {bound}: {of}")
    })
}

/// Checks that the samples stand for the CPU time that the switches show. At both ends of each stretch of CPU time, one
/// sampling period may be missing or too much. While a virtual CPU is descheduled, no samples are taken on it.
fn of_cpu_time(samples: u64, on_cpu: u64, of: &Value) -> Result<(), Failed> {
    let (samples, on_cpu) = (samples as f64, on_cpu as f64);
    ensure(
        samples <= 1.1 * on_cpu + 1e7 && samples >= 0.5 * on_cpu - 1e7,
        || format!("{samples} of {on_cpu}: {of}"),
    )
}

fn shares() -> Result<(), Failed> {
    let trace = recorded(&hot("hot-user")?, "user")?;
    let flame = report(&trace, "flame", &[])?;
    let rows = list(&flame, "rows");
    let of = |name, field| ns(rows, field, name) as f64;
    let (three, one) = (of("three", "self_ns"), of("one", "self_ns"));
    near(three / (three + one), 0.75, "three", &flame)?;
    // The callers are found by their frame pointers.
    let all = int(&flame, "ns") as f64;
    near(of("user", "total_ns") / all, 1.0, "user", &flame)?;
    near(of("main", "total_ns") / all, 1.0, "main", &flame)?;
    near(of("main", "self_ns") / all, 0.0, "main", &flame)?;
    // If only a part of the recording is analyzed, the report has exactly the samples in the time of this part.
    for window in [&[][..], &["--from", "0.5s", "--to", "1s"]] {
        let flame = report(&trace, "flame", window)?;
        let process = document(&trace, window)?["processes"][0].take();
        of_cpu_time(int(&flame, "ns"), int(&process, "on_cpu_ns"), &process)?;
    }
    Ok(())
}

fn kernel() -> Result<(), Failed> {
    let trace = recorded(&hot("hot-kernel")?, "kernel")?;
    let flame = report(&trace, "flame", &[])?;
    let rows = list(&flame, "rows");
    let all = int(&flame, "ns") as f64;
    // libc's read(2) keeps no frame pointer, so its caller, the function `reads`, is missing in the stacks.
    let main = ns(rows, "total_ns", "main") as f64;
    let kernel = in_kernel(rows) as f64;
    ensure(main > 0.9 * all && kernel > 0.8 * all, || {
        format!("{main} and {kernel} of {all}: {flame}")
    })
}

fn fork() -> Result<(), Failed> {
    let trace = recorded(&hot("hot-fork")?, "fork")?;
    let flame = report(&trace, "flame", &["--by", "process"])?;
    let rows = list(&flame, "rows");
    let pid = |name: &str| {
        let mine = rows.iter().filter(|row| row["function"] == name);
        let row = mine.max_by_key(|row| int(row, "self_ns"));
        row.map(|row| (int(row, "pid"), int(row, "self_ns")))
    };
    let (three, one) = (pid("three"), pid("one"));
    let (Some(three), Some(one)) = (three, one) else {
        return Err(format!("{flame}").into());
    };
    ensure(three.0 != one.0, || format!("{three:?} {one:?}: {flame}"))?;
    let analysis = analyze(&trace)?;
    for (pid, ns) in [three, one] {
        let mut all = list(&analysis, "processes").iter();
        let process = all
            .find(|value| int(value, "pid") == pid)
            .ok_or("no process")?;
        let on_cpu = int(process, "on_cpu_ns");
        // Where the kernel skipped a BPF program, a part of the CPU time is unknown.
        let known_or_not = on_cpu + int(process, "unknown_ns");
        ensure(known_or_not >= 500_000_000, || process.to_string())?;
        of_cpu_time(ns, on_cpu, process)?;
    }
    Ok(())
}

/// The program sleeps twenty times for 20 ms, and waits 300 ms for data of a pipe. Both kinds of waits must have
/// stacks.
fn waits() -> Result<(), Failed> {
    let (program, trace) = (hot("hot-wait")?, scratch("stacks-wait.bin"));
    let out = record(&trace, &["--off-cpu-stacks=5ms"], &[&program, "wait"])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let flame = report(&trace, "flame", &["--by", "process"])?;
    let rows = list(&flame, "rows");
    ensure(int(&flame, "samples") == 0, || flame.to_string())?;
    let process = analyze(&trace)?["processes"][0].take();
    let root = int(&process, "pid");
    // A function has one row for each reason of its waits. All its rows are added, because the reason is missing if
    // the task was preempted on its way to sleep.
    let mine = |name: &str| {
        let all = rows.iter().filter(|row| int(row, "pid") == root);
        let all = all.filter(|row| {
            let function = row["function"].as_str().unwrap_or_default();
            function.ends_with(name)
        });
        all.fold((0, 0), |(samples, ns), row| {
            (
                samples + int(row, "total_samples"),
                ns + int(row, "total_ns"),
            )
        })
    };
    let ((sleeps, slept), (reads, read)) = (mine("hrtimer_nanosleep"), mine("pipe_read"));
    // The timer of a sleep may start while the thread still runs or waits for a CPU. The recorded wait begins only when
    // the thread leaves its CPU, so this wait can be shorter than the sleep. All waits together are never longer than
    // the time off the CPU.
    let [on_cpu, run_queue, unknown, lifetime] =
        ["on_cpu_ns", "run_queue_ns", "unknown_ns", "lifetime_ns"].map(|key| int(&process, key));
    let least = 700_000_000u64.saturating_sub(on_cpu + run_queue + unknown);
    let all = || format!("{process}: {flame}");
    ensure((least..=lifetime - on_cpu).contains(&(slept + read)), all)?;
    // The kernel skips a BPF program if this program would interrupt another one. A wait that was skipped in this way
    // is unknown time.
    let missed = unknown.div_ceil(20_000_000);
    ensure(
        sleeps <= 20 && reads <= 1 && sleeps + reads + missed >= 21,
        all,
    )?;
    // The stacks contain the functions in user mode, too.
    let main = rows
        .iter()
        .filter(|row| int(row, "pid") == root && row["function"] == "main");
    let main: u64 = main.map(|row| int(row, "total_samples")).sum();
    ensure(main >= sleeps + reads, all)
}

/// A C program that spends half of its CPU time at a depth of some 300 frames, of which the BPF programs copy 127.
const RECURSION: &str = r#"
#include <time.h>
static volatile unsigned long sum;
static double cpu(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}
static void down(int depth, double until)
{
	if (depth)
		down(depth - 1, until);
	else
		while (cpu() < until)
			for (int i = 0; i < 1000000; i++)
				sum += i;
	sum++;
}
int main(void)
{
	down(60, 0.5);
	down(300, 1);
	return 0;
}
"#;

fn deep() -> Result<(), Failed> {
    let source = scratch("deep.c");
    std::fs::write(&source, RECURSION)?;
    let program = compiled(&source, "deep", FLAGS)?;
    let trace = recorded(&program, "deep")?;
    let flame = report(&trace, "flame", &[])?;
    let all = int(&flame, "ns") as f64;
    near(
        ns(list(&flame, "rows"), "total_ns", "main") as f64 / all,
        0.5,
        "main",
        &flame,
    )?;
    let programs = list(&flame, "programs");
    let samples: u64 = programs.iter().map(|program| int(program, "samples")).sum();
    let cut: u64 = programs.iter().map(|program| int(program, "cut")).sum();
    near(cut as f64 / samples as f64, 0.5, "cut", &flame)?;
    let said = text(&tr(&["analyze", "--report", "flame"], &trace)?);
    let line = " of deep's samples are cut: deeper than 127 frames";
    ensure(said.contains(line), || said.clone())?;
    let folded = ["export", "--format", "folded", "--weight", "stacks", "-o-"];
    let folded = text(&tr(&folded, &trace)?);
    let weight = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
    let cut = folded.lines().filter(|line| line.contains(";[cut];down;"));
    let cut: f64 = cut.filter_map(weight).sum();
    near(cut * 1e3 / all, 0.5, "[cut]", &flame)
}

/// The program's file is deleted after the recording. Another file must not be used to name the program's functions.
fn gone() -> Result<(), Failed> {
    let program = hot("hot-gone")?;
    let trace = recorded(&program, "gone")?;
    let flame = report(&trace, "flame", &[])?;
    let rows = list(&flame, "rows");
    let unknown = rows.iter().filter(|row| {
        let function = row["function"].as_str().unwrap_or_default();
        function.starts_with("[build id ")
    });
    let unknown: u64 = unknown.map(|row| int(row, "self_ns")).sum();
    ensure(ns(rows, "total_ns", "three") == 0 && unknown > 0, || {
        format!("{flame}")
    })
}

fn without_the_option() -> Result<(), Failed> {
    let trace = scratch("no-stacks.bin");
    let out = record(&trace, &[], &["/bin/true"])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let kinds = ["module", "sample", "symbol"];
    let events = dump(&trace)?;
    let mut of_stacks = events.iter().filter(|event| {
        let kind = event["kind"].as_str().unwrap_or_default();
        kinds.contains(&kind)
    });
    ensure(of_stacks.next().is_none(), || format!("{events:?}"))?;
    let flame = report(&trace, "flame", &[])?;
    ensure(flame.is_null(), || flame.to_string())
}

fn others() -> Result<(), Failed> {
    let trace = scratch("other-stacks.bin");
    let out = record(&trace, &["--stacks", "--method", "ptrace"], &["/bin/true"])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let info = info(&trace)?;
    let missing = list(&info, "missing");
    let named = missing.iter().any(|reason| {
        let words = reason.as_str().unwrap_or_default();
        words.starts_with("stacks: ")
    });
    ensure(named, || info.to_string())
}
