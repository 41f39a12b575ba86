//! Compares recorded system calls with strace's counts in another run of the same programs.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::network::ROLE;
use crate::support::{
    compiled, ensure, info, int, list, record, recording, report, scratch, text, tr, Test,
};

pub const TESTS: &[Test] = &[
    (STRACE, as_strace),
    ("a_call_lasts_from_its_entry_to_its_return", sleeps),
    ("system_calls_of_a_window_are_those_of_its_seconds", window),
    (SMALL, small),
    ("calls_without_room_are_counted", overflow),
    ("the_search_of_path_is_not_the_commands", search),
    ("without_the_option_no_system_calls_are_recorded", none),
];

pub const STRACE: &str = "system_calls_are_those_that_strace_counts";
pub const SMALL: &str = "system_calls_of_32_bits_are_told_apart";

/// The numbers of calls and of errors in a report, by the name of the system call.
fn counts(report: &Value) -> BTreeMap<String, (u64, u64)> {
    let mut counts = BTreeMap::new();
    for row in list(report, "rows") {
        let name = row["syscall"].as_str().unwrap_or("?").to_owned();
        let sum: &mut (u64, u64) = counts.entry(name).or_default();
        sum.0 += int(row, "calls");
        sum.1 += int(row, "errors");
    }
    counts
}

/// The numbers of calls and of errors in the table of `strace -c`, whose column of errors is empty if there are none.
fn strace(table: &str) -> BTreeMap<String, (u64, u64)> {
    let rows = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (calls, rest) = words.get(3..)?.split_first()?;
        let calls = calls.parse().ok()?;
        match rest {
            [name] => Some(((*name).to_owned(), (calls, 0))),
            [errors, name] => Some(((*name).to_owned(), (calls, errors.parse().ok()?))),
            _ => None,
        }
    });
    rows.filter(|(name, _)| name != "total").collect()
}

/// A script with forks, execs, errors and 2,000 short calls.
const SCRIPT: &str = "for i in 1 2 3 4; do /bin/true; done; /bin/cat absent/file; \
     /bin/dd if=/dev/zero of=/dev/null bs=1 count=1000; /bin/ls /";

fn as_strace() -> Result<(), Failed> {
    let (trace, log) = (scratch("strace.bin"), scratch("strace.txt"));
    let command = ["/bin/sh", "-c", SCRIPT];
    let name = log.to_string_lossy();
    let traced = Command::new("strace")
        .args(["-c", "-f", "-o", &name])
        .args(command)
        .output()?;
    ensure(traced.status.success(), || text(&traced.stderr))?;
    let theirs = strace(&std::fs::read_to_string(&log)?);
    let out = record(&trace, &["--syscalls"], &command)?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let whole = report(&trace, "syscalls", &[])?;
    let mut ours = counts(&whole);
    let what = || format!("{theirs:?}\n{whole}");
    // COMMAND's process resets its signals before the exec, which strace does not see.
    for name in ["rt_sigaction", "rt_sigprocmask"] {
        let own = ours.get_mut(name).ok_or("no signals")?;
        let known = theirs.get(name).copied().unwrap_or_default();
        ensure((0..8).contains(&(own.0.wrapping_sub(known.0))), what)?;
        *own = known;
    }
    // Some calls are repeated if a signal interrupts them. Whether that happens depends on chance, so these calls are
    // not compared.
    let interrupted = ["rt_sigreturn", "wait4", "restart_syscall"];
    ours.retain(|name, sum| sum.0 > 0 && !interrupted.contains(&name.as_str()));
    let mut theirs_kept = theirs.clone();
    theirs_kept.retain(|name, _| !interrupted.contains(&name.as_str()));
    ensure(ours == theirs_kept, what)?;
    ensure(ours["write"].0 >= 1000 && ours["execve"] == (8, 0), what)?;
    // Each grouping of the rows contains all calls.
    for by in ["process", "program", "step"] {
        let grouped = report(&trace, "syscalls", &["--by", by])?;
        let sum = |name| {
            list(&grouped, "rows")
                .iter()
                .map(|row| int(row, name))
                .sum::<u64>()
        };
        ensure(sum("calls") == int(&whole, "calls"), || grouped.to_string())?;
        ensure(sum("ns") == int(&whole, "ns"), || grouped.to_string())?;
    }
    let dd = report(
        &trace,
        "syscalls",
        &["--argv", "^/bin/dd", "--by", "program"],
    )?;
    let writes = list(&dd, "rows")
        .iter()
        .find(|row| row["syscall"] == "write");
    let writes = writes.ok_or("dd does not write")?;
    ensure(int(writes, "calls") >= 1000 && writes["name"] == "dd", what)?;
    let said = text(&tr(
        &["analyze", "--report", "syscalls", "--top", "3"],
        &trace,
    )?);
    let head = [
        "% time",
        "seconds",
        "usecs/call",
        "calls",
        "errors",
        "syscall",
    ];
    let line = said.lines().nth(1).unwrap_or_default();
    let mut rest = line;
    for title in head {
        let at = rest.find(title).ok_or_else(|| said.clone())?;
        rest = &rest[at + title.len()..];
    }
    Ok(())
}

fn sleeps() -> Result<(), Failed> {
    let trace = scratch("sleeps.bin");
    let command = ["/bin/sh", "-c", "/bin/sleep 0.3; /bin/sleep 1.4"];
    let begun = Instant::now();
    let out = record(&trace, &["--syscalls"], &command)?;
    let wall = begun.elapsed().as_nanos() as u64;
    ensure(out.status.success(), || text(&out.stderr))?;
    let all = report(&trace, "syscalls", &[])?;
    let rows = list(&all, "rows");
    let sleep = rows.iter().find(|row| row["syscall"] == "clock_nanosleep");
    let sleep = sleep.ok_or_else(|| all.to_string())?;
    let what = || sleep.to_string();
    ensure(int(sleep, "calls") == 2 && int(sleep, "errors") == 0, what)?;
    let (ns, longest) = (int(sleep, "ns"), int(sleep, "longest_ns"));
    // The two sleeps follow each other. At the end of each sleep there may also be a wait for a CPU.
    ensure(longest >= 1_400_000_000, what)?;
    ensure(longest + 300_000_000 <= ns && ns < wall, what)
}

fn window() -> Result<(), Failed> {
    let trace = scratch("window.bin");
    let script = "/bin/dd if=/dev/zero of=/dev/null bs=1 count=5000; /bin/sleep 2.6; \
                  /bin/dd if=/dev/zero of=/dev/null bs=1 count=300";
    let out = record(&trace, &["--syscalls"], &["/bin/sh", "-c", script])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let writes = |options: &[&str]| {
        let counts = counts(&report(&trace, "syscalls", options)?);
        Ok::<u64, Failed>(counts.get("write").map_or(0, |sum| sum.0))
    };
    let (all, first, last) = (
        writes(&[])?,
        writes(&["--to", "1700ms"])?,
        writes(&["--from", "1700ms"])?,
    );
    let what = || format!("{all} {first} {last}");
    ensure((5000..5100).contains(&first), what)?;
    ensure((300..400).contains(&last), what)?;
    ensure(first + last == all, what)?;
    // The first dd ended before the analyzed window, but its calls were counted in an interval that reaches into the
    // window. These calls must not be in the report.
    let later = writes(&["--from", "500ms"])?;
    ensure((300..400).contains(&later), || format!("{later}"))?;
    // No process begins or ends while `sleep` sleeps, so there are no counts for this short window.
    let short = report(&trace, "syscalls", &["--from", "1500ms", "--to", "1520ms"])?;
    ensure(short["calls"].is_null(), || short.to_string())
}

const SOURCE: &str = r#"
static long call(long nr, long a)
{
	long ret;
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(nr), "b"(a) : "memory");
	return ret;
}
void _start(void)
{
	for (int i = 0; i < 10; i++)
		call(64, 0); /* getppid */
	call(6, 99); /* close */
	call(1, 0); /* exit */
}
"#;

fn small() -> Result<(), Failed> {
    let source = scratch("small.c");
    std::fs::write(&source, SOURCE)?;
    let flags = ["-m32", "-static", "-nostdlib", "-fno-pie", "-no-pie"];
    let Ok(program) = compiled(&source, "small", &flags) else {
        return Ok(()); // gcc has no -m32
    };
    if Command::new(&program).output().is_err() {
        return Ok(()); // the kernel has no 32-bit system calls
    }
    let trace = scratch("small.bin");
    let out = record(&trace, &["--syscalls"], &[&program])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let all = report(&trace, "syscalls", &[])?;
    let counts = counts(&all);
    let of = |name: &str| counts.get(name).copied();
    let what = || all.to_string();
    ensure(of("getppid (32-bit)") == Some((10, 0)), what)?;
    ensure(of("close (32-bit)") == Some((1, 1)), what)?;
    ensure(
        of("execve") == Some((1, 0)) && of("getppid").is_none(),
        what,
    )
}

/// A shell that becomes `true` calls execve(2) twice: once to become the shell, and once for `true`. The recorder's
/// search on PATH must not count.
fn search() -> Result<(), Failed> {
    let trace = scratch("search.bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut recorder = recording(&trace, &["--syscalls"], &["sh", "-c", "exec /bin/true"]);
    let out = recorder
        .env("PATH", format!("/nowhere:/else:{path}"))
        .output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let counts = counts(&report(&trace, "syscalls", &[])?);
    ensure(counts.get("execve") == Some(&(2, 0)), || {
        format!("{counts:?}")
    })
}

fn none() -> Result<(), Failed> {
    let trace = scratch("none.bin");
    let out = record(&trace, &[], &["true"])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    ensure(report(&trace, "syscalls", &[])?.is_null(), || {
        "there are some".into()
    })?;
    // ptrace(2) records no system calls, and the report gives the reason.
    let out = record(&trace, &["--syscalls", "--method", "ptrace"], &["true"])?;
    let said = text(&out.stderr);
    let told = said.contains("tr: not recorded: system calls: only BPF programs");
    ensure(out.status.success() && told, || said)?;
    let said = text(&tr(&["analyze", "--report", "syscalls"], &trace)?);
    ensure(said.contains("only BPF programs record them"), || said)
}

/// Numbers of system calls that no kernel has. Each number needs an entry of its own in the BPF programs' table, which
/// has fewer entries than there are numbers here.
const NUMBERS: std::ops::Range<i64> = 100_000..180_000;

/// Does the work of a recorded program, which is this test program in a role.
pub fn play() {
    for number in NUMBERS {
        // SAFETY: there is no system call with this number, so the kernel only returns an error.
        unsafe { nix::libc::syscall(number) };
    }
}

fn overflow() -> Result<(), Failed> {
    let trace = scratch("overflow.bin");
    let this = std::env::current_exe()?;
    let mut tr = recording(&trace, &["--syscalls"], &[&this.to_string_lossy()]);
    let out = tr.env(ROLE, "calls").output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let all = report(&trace, "syscalls", &[])?;
    let rows = list(&all, "rows").iter();
    let strange = rows.filter(|row| NUMBERS.contains(&(int(row, "number") as i64)));
    let counted: u64 = strange.map(|row| int(row, "calls")).sum();
    let degraded = info(&trace)?["degraded"].to_string();
    let words = degraded.split(['"', ' ']);
    let missed: u64 = words
        .filter_map(|word| word.parse::<u64>().ok())
        .next_back()
        .unwrap_or(0);
    let what = || format!("{counted} counted, {missed} missed: {degraded}");
    ensure(
        degraded.contains("system calls, for which the programs had no room"),
        what,
    )?;
    let all = (NUMBERS.end - NUMBERS.start) as u64;
    // Besides these calls, other system calls may be among those that were not counted.
    ensure((all..all + 500).contains(&(counted + missed)), what)?;
    ensure(counted > 0, what)?;
    let verified = Command::new(env!("CARGO_BIN_EXE_tr"))
        .arg("verify")
        .arg(&trace)
        .output()?;
    ensure(verified.status.success(), || text(&verified.stdout))
}
