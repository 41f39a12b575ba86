//! Compares the cost of tracing that `tr` reports with the kernel's figures.

use std::collections::HashMap;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libtest_mimic::Failed;

use crate::storm::program;
use crate::support::{self, ensure, info, int, scratch, text, Test, TR};

pub const TESTS: &[Test] = &[
    (
        "the_cost_that_is_printed_is_the_cost_that_the_kernel_counts",
        cost,
    ),
    (
        "the_cost_is_whole_where_the_kernel_does_not_count",
        uncounted,
    ),
];

/// If the kernel does not measure the run time of BPF programs, the programs measure a sample of their runs themselves.
fn uncounted() -> Result<(), Failed> {
    let trace = scratch("uncounted.bin");
    let storm = program()?;
    let out = support::record(&trace, &[], &[storm, "pipe", "50000"])?;
    let said = text(&out.stderr);
    let bpf = int(&info(&trace)?["cost"], "bpf_ns");
    // The pipe makes some 200,000 events, which cost 50 ns or more each.
    ensure(
        bpf > 5_000_000 && said.contains("tr: tracing took "),
        || format!("{bpf} ns: {said}"),
    )?;
    ensure(!said.contains("not counting"), || said.clone())
}

/// While this descriptor is open, the kernel measures the run time of BPF programs.
fn statistics() -> Option<OwnedFd> {
    const BPF_ENABLE_STATS: i32 = 32;
    let kind = 0u32; // BPF_STATS_RUN_TIME
                     // SAFETY: the kernel reads the 4 bytes given; a result that is not negative
                     // is a new descriptor.
    unsafe {
        let fd = libc::syscall(libc::SYS_bpf, BPF_ENABLE_STATS, &kind, 4);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

/// The reason why the kernel cannot measure BPF programs here, if any.
pub fn no_statistics() -> Option<String> {
    statistics()
        .is_none()
        .then(|| "the kernel counts no time of BPF programs".into())
}

/// The run time in ns of each BPF program that a process holds, by the program's id, from /proc/PID/fdinfo.
fn in_programs(pid: u32) -> HashMap<u64, u64> {
    let mut times = HashMap::new();
    let fds = std::fs::read_dir(format!("/proc/{pid}/fdinfo"));
    for fd in fds.into_iter().flatten().flatten() {
        let said = std::fs::read_to_string(fd.path()).unwrap_or_default();
        let number = |name: &str| -> Option<u64> {
            let line = said.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        // A BPF link has a prog_id, too, but no run time.
        if let (Some(id), Some(time)) = (number("prog_id:"), number("run_time_ns:")) {
            times.insert(id, time);
        }
    }
    times
}

/// The CPU time in ns that the recorder and its BPF programs have used so far, and the points in time before and after
/// this reading.
struct Reading {
    before: SystemTime,
    recorder: u64,
    programs: u64,
    after: SystemTime,
}

/// Records the whole machine for three seconds, and meanwhile reads the recorder's CPU time again and again. Returns
/// the recorder's whole CPU time in ns by wait4, the readings, and the recorder's output.
fn record(trace: &Path) -> Result<(u64, Vec<Reading>, String), Failed> {
    let mut tr = Command::new(TR)
        .args(["record", "-a", "--duration", "3s", "-o"])
        .arg(trace)
        .stderr(Stdio::piped())
        .spawn()?;
    let mut readings = Vec::new();
    let mut programs = HashMap::new();
    let pid = tr.id();
    let clock = nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(pid.cast_signed()))?;
    let usage = loop {
        let mut status = 0;
        // SAFETY: a plain struct, for which zeros are valid; the call fills it.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both places are valid for the call.
        let done = unsafe { libc::wait4(pid as i32, &mut status, libc::WNOHANG, &mut usage) };
        ensure(done >= 0, || "wait4".into())?;
        if done > 0 {
            break usage;
        }
        let before = SystemTime::now();
        programs.extend(in_programs(pid));
        readings.push(Reading {
            before,
            recorder: Duration::from(nix::time::clock_gettime(clock)?).as_nanos() as u64,
            programs: programs.values().sum(),
            after: SystemTime::now(),
        });
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut said = String::new();
    if let Some(mut stderr) = tr.stderr.take() {
        std::io::Read::read_to_string(&mut stderr, &mut said)?;
    }
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Ok((ns(usage.ru_utime) + ns(usage.ru_stime), readings, said))
}

fn cost() -> Result<(), Failed> {
    let _statistics = statistics().ok_or("no statistics")?;
    let trace = scratch("cost.bin");
    let mut storm = Command::new(program()?)
        .args(["pipe", "100000000"])
        .stdout(Stdio::null())
        .spawn()?;
    let recorded = record(&trace);
    storm.kill()?;
    storm.wait()?;
    let (usage, readings, said) = recorded?;
    let about = info(&trace)?;
    let cost = &about["cost"];
    let (recorder, bpf) = (int(cost, "recorder_ns"), int(cost, "bpf_ns"));
    let start = UNIX_EPOCH + Duration::from_nanos(int(&about, "start_unix_ns"));
    let end = start + Duration::from_nanos(int(&about, "duration_ns"));
    // The recorder begins to measure its own CPU time some time after the start of the recording, so readings in the
    // first second are not used.
    let mut within = readings
        .iter()
        .filter(|reading| reading.before >= start + Duration::from_secs(1) && reading.after <= end);
    let (first, last) = (within.next(), within.next_back());
    let (first, last) = (first.ok_or("no reading")?, last.ok_or("no second reading")?);
    let inner = last.recorder - first.recorder;
    let words = || {
        format!(
            "{cost}; wait4 {usage} ns, {inner} ns of it between two readings; {} ns in programs; \
             {said}",
            last.programs
        )
    };
    // wait4 counts all CPU time of the recorder. The reported time excludes the recorder's start and end, so the
    // reported time must be less. The reported time must not be less than the CPU time between the two readings, apart
    // from this tolerance.
    const GRAIN: u64 = 20_000_000;
    ensure(recorder <= usage && recorder + GRAIN >= inner, words)?;
    // After the last reading the programs can have used at most the time of all CPUs.
    let cpus = std::thread::available_parallelism()?.get() as u64;
    let rest = end.duration_since(last.before)?.as_nanos() as u64 * cpus;
    // The lower bound is small, because on a busy machine the program that causes the events gets little CPU time.
    ensure(
        bpf > 5_000_000 && last.programs <= bpf + bpf / 20 && bpf <= last.programs + rest + GRAIN,
        words,
    )?;
    // The recorder prints the same cost that it stores.
    let printed: f64 = said
        .lines()
        .find_map(|line| {
            line.split_once("tracing took ")?
                .1
                .split(' ')
                .next()?
                .parse()
                .ok()
        })
        .ok_or_else(|| text(said.as_bytes()))?;
    let total = (recorder + bpf) as f64 / 1e6;
    ensure((printed - total).abs() <= 0.06, || {
        format!("printed {printed} ms, it was {total} ms")
    })
}
