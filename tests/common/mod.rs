//! Helpers of the tests of the binary: analyses as JSON, checked against the schema and by their sums, and a parser of
//! strace's log, with which recorded execs and exit statuses are compared.
#![allow(dead_code)] // each test uses its part

pub mod bound;
pub mod schema;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{channel, RecvTimeoutError};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use bound::{limit, standing};

/// The path of the tested program. If `TR_PROGRAM` is set while the tests are compiled, that variable names another
/// program, such as that of a release.
pub const TR: &str = match option_env!("TR_PROGRAM") {
    Some(program) => program,
    None => env!("CARGO_BIN_EXE_tr"),
};

/// A path below the target directory at which no file exists.
pub const ABSENT: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/absent");

/// The error of a test: a failed expectation, or any other error.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

pub fn ensure(good: bool, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if good {
        Ok(())
    } else {
        Err(what().into())
    }
}

/// The lines in which two texts differ, as `diff -u` prints them.
pub fn unified_diff(stored: &str, now: &str) -> Result<String, Failure> {
    let (mut old, mut new) = (
        tempfile::NamedTempFile::new()?,
        tempfile::NamedTempFile::new()?,
    );
    old.write_all(stored.as_bytes())?;
    new.write_all(now.as_bytes())?;
    let labels = ["-u", "--label", "stored", "--label", "now"];
    let out = Command::new("diff")
        .args(labels)
        .args([old.path(), new.path()])
        .output()?;
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The reason why tracing is impossible here, if any. A program that the kernel's verifier refuses is a failure of the
/// test, not a reason to skip it.
#[cfg(feature = "record")]
pub fn why_not() -> Option<String> {
    let refusal = tr_bpf::Refusal::find().map(|refusal| refusal.to_string());
    refusal.or_else(|| Some(tr_bpf::Kernel::detect().err()?.to_string()))
}

/// The reason to skip a test because a program that it needs is not installed.
pub fn lacks(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    (!found).then(|| format!("{program} is not installed"))
}

/// The reason to skip a test because a Python module that it needs is not installed.
pub fn lacks_module(name: &str) -> Option<String> {
    let import = format!("import {name}");
    let found = Command::new("python3").args(["-c", &import]).output();
    let found = found.is_ok_and(|found| found.status.success());
    (!found).then(|| format!("python3 has no {name}"))
}

/// The reason to skip a test that has a mount namespace of its own. In a chroot the root directory is no mount point,
/// so its propagation cannot be changed.
pub fn no_mount_namespace() -> Option<String> {
    no_namespace("--mount")
}

/// The reason to skip a test that has a user namespace of its own. In a chroot, the kernel refuses to make a user
/// namespace.
pub fn no_user_namespace() -> Option<String> {
    no_namespace("--map-root-user")
}

fn no_namespace(option: &str) -> Option<String> {
    let out = match Command::new("unshare").args([option, "true"]).output() {
        Ok(out) => out,
        Err(_) => return lacks("unshare"),
    };
    // Only the first line of the message, because it becomes a part of a test's name.
    let why = String::from_utf8_lossy(&out.stderr);
    let why = why.lines().next().unwrap_or("it fails");
    (!out.status.success()).then(|| format!("unshare {option}: {why}"))
}

/// The output of a program on both streams.
pub fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

/// Whether `make test-long` runs the tests, with all rounds and cases. `make test` runs one case of each kind.
pub fn long() -> bool {
    std::env::var_os("TR_LONG").is_some()
}

/// Copies a program by another process (cp). If this process itself wrote the copy, a child that another test starts
/// meanwhile would inherit the descriptor for writing, and the copy could not be executed (ETXTBSY).
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), Failure> {
    let mut cp = Command::new("cp");
    let done = cp.arg(from.as_ref()).arg(to.as_ref()).status()?;
    ensure(done.success(), || format!("{cp:?}"))
}

/// Writes an executable file by another process (install), for the same reason as in [`copy_program`].
pub fn write_program(to: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(to.as_ref());
    let mut child = install.stdin(Stdio::piped()).spawn()?;
    child
        .stdin
        .take()
        .ok_or("no pipe")?
        .write_all(text.as_ref())?;
    ensure(child.wait()?.success(), || format!("{install:?}"))
}

/// Compiles a C program of fixtures/programs, or one at an absolute path.
pub fn compiled(source: &Path, to: &Path, flags: &[&str]) -> Result<String, Failure> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-w", "-o"]).arg(to).args(flags);
    let out = gcc.arg(programs.join(source)).output()?;
    ensure(out.status.success(), || {
        String::from_utf8_lossy(&out.stderr).into_owned()
    })?;
    Ok(to.to_string_lossy().into_owned())
}

/// The argument for `make` that chooses the compiled files of the demo project. The six files take 2.5 s each and
/// compile in the same way, so a short test run compiles one.
pub fn kernels() -> &'static str {
    if long() {
        "KERNELS=0 1 2 3 4 5"
    } else {
        "KERNELS=0"
    }
}

/// The path of a directory in the target directory.
pub fn target(name: &str) -> Result<PathBuf, String> {
    // The running test program lies in target/PROFILE/deps.
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let target = own.ancestors().nth(3).ok_or("no target directory")?;
    Ok(target.join(name))
}

/// The Python that has the packages of tests/requirements.txt, or the reason why it cannot be used.
pub fn python() -> Result<PathBuf, String> {
    let environment = target("python")?;
    if !environment.join("wanted").is_file() {
        return Err("scripts/python.sh has not made target/python".into());
    }
    let python = environment.join("bin/python");
    // The file is a symbolic link to a Python that may lie in another user's directory. So this Python is run to see
    // whether it works.
    match Command::new(&python).args(["-c", ""]).status() {
        Ok(status) if status.success() => Ok(python),
        _ => Err("this user cannot run target/python".into()),
    }
}

/// A command that sends signals by the shell's builtin `kill`, because procps may not be installed.
pub fn kill() -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill \"$@\"", "kill"]);
    shell
}

/// Makes a test with a time limit. If there is a reason to skip the test, the test is ignored and its name contains the
/// reason. When the limit is reached, the test fails, but its thread remains until the process ends.
pub fn trial(
    name: &str,
    reason: Option<String>,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let (name, ignored) = match reason {
        Some(reason) => (format!("{name} (skipped: {reason})"), true),
        None => (name.to_owned(), false),
    };
    let own = name.clone();
    let limited = move || {
        let begun = std::time::Instant::now();
        let (sender, ended) = channel();
        let thread = std::thread::Builder::new().name(own.clone());
        let running = thread.spawn(move || {
            let result = test();
            let _ = sender.send(());
            result
        })?;
        let result = ended.recv_timeout(limit());
        if std::env::var_os("TR_TIMES").is_some() {
            println!("{:.1}\t{own}", begun.elapsed().as_secs_f64());
        }
        match result {
            Err(RecvTimeoutError::Timeout) => {
                let lines = standing();
                Err(format!(
                    "no end in {:?}; this executable's processes:{lines}",
                    limit()
                )
                .into())
            }
            _ => running
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        }
    };
    Trial::test(name, limited).with_ignored_flag(ignored)
}

pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

pub fn int(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(u64::MAX)
}

/// The JSON document that `tr analyze` writes with these options, checked against its schema.
pub fn document(trace: &Path, options: &[&str]) -> Result<Value, Failure> {
    let out = Command::new(TR)
        .arg("analyze")
        .arg(trace)
        .args(["--format", "json"])
        .args(options)
        .output()?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned().into());
    }
    let analysis: Value = serde_json::from_slice(&out.stdout)?;
    let rules: Value = serde_json::from_str(include_str!(
        "../../crates/report/schema/analysis.schema.json"
    ))?;
    schema::validate(&rules, &analysis)?;
    Ok(analysis)
}

/// The JSON document of `tr analyze` for a trace. It must match the schema, and each process's times must add up to the
/// lifetimes of its threads.
pub fn analyze(trace: &Path) -> Result<Value, Failure> {
    let analysis = document(trace, &[])?;
    const TIMES: [&str; 6] = [
        "on_cpu_ns",
        "run_queue_ns",
        "sleep_ns",
        "blocked_ns",
        "asleep_or_blocked_ns",
        "unknown_ns",
    ];
    for process in list(&analysis, "processes") {
        // Times that the recording does not have are null. A recording with scheduling events lacks
        // `asleep_or_blocked_ns`. A recording without them lacks some of the times before it in the list.
        let known = TIMES.iter().filter_map(|name| process[*name].as_u64());
        let sum: u64 = known.sum();
        ensure(sum == int(process, "lifetime_ns"), || {
            format!("times do not add up: {process}")
        })?;
    }
    Ok(analysis)
}

/// The execs and the end of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// The arguments (argv) of each successful exec.
    pub execs: Vec<Vec<String>>,
    /// The exit code, or the negated number of the signal that killed the process.
    pub end: Option<i64>,
}

/// The execs and ends of processes by pid, parsed from the log of `strace -f -q -xx -s 65536 --seccomp-bpf -e
/// trace=execve -o LOG`.
pub fn strace(log: &str) -> Result<BTreeMap<u64, Life>, Failure> {
    let mut lives = BTreeMap::<u64, Life>::new();
    let mut waiting = BTreeMap::<u64, Vec<String>>::new();
    for line in log.lines() {
        let (pid, text) = line.split_once(' ').ok_or("no pid")?;
        let pid: u64 = pid.parse()?;
        let text = text.trim_start();
        if let Some(call) = text.strip_prefix("execve(") {
            let argv = strings(call)?.into_iter().skip(1).collect();
            if let Some((_, leader)) = text.rsplit_once("<pid changed to ") {
                // A thread that is not the leader has called execve: from now on, this thread has the leader's pid.
                let leader = leader.trim_end_matches(" ...>").parse()?;
                lives.entry(leader).or_default().execs.push(argv);
            } else if text.ends_with("<unfinished ...>") {
                waiting.insert(pid, argv);
            } else if text.ends_with("= 0") {
                lives.entry(pid).or_default().execs.push(argv);
            }
        } else if text.starts_with("<... execve resumed>") {
            if let Some(argv) = waiting.remove(&pid).filter(|_| text.ends_with("= 0")) {
                lives.entry(pid).or_default().execs.push(argv);
            }
        } else if let Some(rest) = text.strip_prefix("+++ exited with ") {
            let code = rest.trim_end_matches(" +++").parse()?;
            lives.entry(pid).or_default().end = Some(code);
        } else if let Some(rest) = text.strip_prefix("+++ killed by SIG") {
            let name = rest.split([' ', '+']).next().unwrap_or_default();
            let signal = match name {
                "HUP" => 1,
                "INT" => 2,
                "ABRT" => 6,
                "KILL" => 9,
                "SEGV" => 11,
                "PIPE" => 13,
                "TERM" => 15,
                other => return Err(format!("signal {other}").into()),
            };
            lives.entry(pid).or_default().end = Some(-signal);
        }
    }
    Ok(lives)
}

/// The quoted strings in a line of strace's log, in which every byte is hexadecimal.
fn strings(line: &str) -> Result<Vec<String>, Failure> {
    let mut out = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        if at % 2 == 1 {
            let bytes: Result<Vec<u8>, _> = part
                .split("\\x")
                .skip(1)
                .map(|hex| u8::from_str_radix(hex, 16))
                .collect();
            out.push(String::from_utf8(bytes?)?);
        }
    }
    Ok(out)
}

/// Checks that the analysis has the same processes as strace's log, apart from strace itself, with the same execs,
/// arguments and exit statuses.
pub fn agree(analysis: &Value, lives: &BTreeMap<u64, Life>) -> Result<(), Failure> {
    let processes = list(analysis, "processes");
    let mut found = 0;
    for process in processes {
        let pid = int(process, "pid");
        let Some(life) = lives.get(&pid) else {
            continue;
        };
        found += 1;
        let mut execs = Vec::new();
        for exec in list(process, "execs") {
            let argv = exec["argv"].as_array().ok_or("no argv")?.iter();
            execs.push(argv.map(|a| a.as_str().unwrap_or("?").to_owned()).collect());
            ensure(exec["argv_truncated"] == false, || exec.to_string())?;
        }
        let exit = &process["exit"];
        let end = exit["code"]
            .as_i64()
            .or(exit["signal"].as_i64().map(|signal| -signal));
        let is = Life { execs, end };
        ensure(is == *life, || {
            format!("pid {pid}: {is:?}\nstrace: {life:?}")
        })?;
    }
    // The entries of the log without a process are threads, which strace lists like processes.
    let threads: u64 = processes.iter().map(|p| int(p, "threads") - 1).sum();
    let missing = lives.len() - found;
    ensure(missing as u64 <= threads, || {
        format!("{found} processes of {}", lives.len())
    })?;
    let own = |process: &&Value| process["comm"] == "strace";
    let others = processes.len() - processes.iter().filter(own).count();
    ensure(others <= found, || {
        format!("{others} processes, {found} of them known to strace")
    })
}
