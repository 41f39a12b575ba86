//! The cost that `tr` reports equals the kernel's figures.

use std::collections::HashMap;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::Failed;

use crate::storm::program;
use crate::support::{ensure, info, int, scratch, text, Test, TR};

pub const TESTS: &[Test] = &[(
    "the_cost_that_is_printed_is_the_cost_that_the_kernel_counts",
    cost,
)];

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

/// The reason why the kernel's measurement is unavailable.
pub fn no_statistics() -> Option<String> {
    statistics()
        .is_none()
        .then(|| "the kernel counts no time of BPF programs".into())
}

/// Run time of the BPF programs that a process holds, in ns, from /proc/PID/fdinfo.
fn in_programs(pid: u32) -> HashMap<u64, u64> {
    let mut times = HashMap::new();
    let fds = std::fs::read_dir(format!("/proc/{pid}/fdinfo"));
    for fd in fds.into_iter().flatten().flatten() {
        let said = std::fs::read_to_string(fd.path()).unwrap_or_default();
        let number = |name: &str| -> Option<u64> {
            let line = said.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        // A link has a prog_id too, but no run time.
        if let (Some(id), Some(time)) = (number("prog_id:"), number("run_time_ns:")) {
            times.insert(id, time);
        }
    }
    times
}

/// Records the whole machine for this long. Returns the process's CPU time in ns from wait4,
/// the last run time of its programs, and its output.
fn record(trace: &Path, duration: &str) -> Result<(u64, u64, String), Failed> {
    let mut tr = Command::new(TR)
        .args(["record", "-a", "--duration", duration, "-o"])
        .arg(trace)
        .stderr(Stdio::piped())
        .spawn()?;
    let mut programs = HashMap::new();
    let pid = tr.id();
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
        programs.extend(in_programs(pid));
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut said = String::new();
    if let Some(mut stderr) = tr.stderr.take() {
        std::io::Read::read_to_string(&mut stderr, &mut said)?;
    }
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Ok((
        ns(usage.ru_utime) + ns(usage.ru_stime),
        programs.values().sum(),
        said,
    ))
}

fn cost() -> Result<(), Failed> {
    let _statistics = statistics().ok_or("no statistics")?;
    let trace = scratch("cost.bin");
    // The cost of start and end, which the figure excludes.
    let (around, _, _) = record(&trace, "1ms")?;
    let mut storm = Command::new(program()?)
        .args(["pipe", "100000000"])
        .stdout(Stdio::null())
        .spawn()?;
    let recorded = record(&trace, "3s");
    storm.kill()?;
    storm.wait()?;
    let (usage, programs, said) = recorded?;
    let cost = info(&trace)?["cost"].clone();
    let (recorder, bpf) = (int(&cost, "recorder_ns"), int(&cost, "bpf_ns"));
    let words = || {
        format!(
            "{cost}; wait4 {usage} ns, {around} ns of it around; {programs} ns in programs; {said}"
        )
    };
    // wait4's figure has all of the recorder's CPU time; ours excludes the start and the end,
    // which vary.
    let slack = usage / 20 + 30_000_000;
    ensure(
        recorder <= usage && recorder + around + slack >= usage,
        words,
    )?;
    // Programs run between the two readings: those that record until they are detached, the
    // one for signals after that.
    ensure(
        bpf > 50_000_000 && programs.abs_diff(bpf) <= bpf / 20,
        words,
    )?;
    // The printed figure is the same.
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
