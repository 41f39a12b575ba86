//! Tests writes of the trace that fail or are short: the message has the cause, COMMAND keeps its exit status, and what
//! is on the disk can be read.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use libtest_mimic::Failed;

use crate::inject::{self, Calls, Fault, Which};
use crate::support::{analyze, ensure, list, record, recording, scratch, text, Test, TR};

pub const TESTS: &[Test] = &[
    ("a_write_that_fails_leaves_a_readable_trace", failing),
    ("a_short_write_loses_nothing", short),
    ("a_name_that_is_refused_is_told", unnamed),
    ("a_trace_cut_by_a_power_loss_is_readable", cut),
    (FULL, full),
];

/// The name of a test that mounts a small file system.
pub const FULL: &str = "a_full_disk_is_told_on_top_of_every_report";

const STATUS: i32 = 37;
const LIMIT: Duration = Duration::from_secs(30);

/// The errors that a disk can cause, with the words in the message for each.
const ERRORS: [(i32, &str); 3] = [
    (libc::ENOSPC, "No space left on device"),
    (libc::EIO, "Input/output error"),
    (libc::EDQUOT, "quota exceeded"),
];

struct Run {
    status: ExitStatus,
    said: String,
    calls: Calls,
    trace: PathBuf,
}

/// Makes a recording with several flushes, in which a write has this fault.
fn run(which: Which, fault: Fault) -> Result<Run, Failed> {
    let trace = scratch("writes.bin");
    let said = scratch("writes.stderr");
    let _ = std::fs::remove_file(&trace);
    // The command causes more flushes than the tests need, because on a busy machine several flushes may become one
    // write.
    let script = format!("for i in 1 2 3 4 5 6 7; do /bin/true; sleep 0.5; done; exit {STATUS}");
    let mut tr = recording(&trace, &[], &["sh", "-c", &script]);
    tr.stdout(Stdio::null())
        .stderr(std::fs::File::create(&said)?);
    let tracee = inject::spawn(&mut tr)?;
    let (status, calls) = inject::run(&tracee, which, fault, LIMIT)?;
    Ok(Run {
        status: ExitStatus::from_raw(status),
        said: text(&std::fs::read(said)?),
        calls,
        trace,
    })
}

/// The exit status of `tr verify`: 0 for an intact trace, 1 for one that is cut.
fn verified(trace: &Path) -> Result<Option<i32>, Failed> {
    let out = Command::new(TR).arg("verify").arg(trace).output()?;
    Ok(out.status.code())
}

fn failing() -> Result<(), Failed> {
    for nth in 1.. {
        let (errno, words) = ERRORS[nth % ERRORS.len()];
        let error = Fault::Error(errno);
        for which in [Which::Write(nth), Which::AfterShort(nth)] {
            let run = run(which, error)?;
            if run.calls.failed.is_none() {
                // The recording has fewer writes than `nth`, so all its writes have been tested.
                return ensure(nth > 4, || format!("only {nth} writes: {}", run.said));
            }
            let all = || format!("{which:?}: {}\n{}", run.status, run.said);
            ensure(run.said.contains(words), all)?;
            ensure(run.status.code() == Some(STATUS), all)?;
            if run.said.contains("the command runs untraced") {
                // The header could not be written, so COMMAND ran unrecorded. Then a file with a new header and without
                // events was written.
                ensure(nth == 1, all)?;
                continue;
            }
            ensure(run.said.contains("the trace ends there"), all)?;
            let analysis = analyze(&run.trace)?;
            ensure(analysis["trace"]["truncated"] == true, all)?;
            ensure(verified(&run.trace)? == Some(1), all)?;
        }
    }
    Ok(())
}

fn short() -> Result<(), Failed> {
    for nth in 1.. {
        let run = run(Which::Write(nth), Fault::Short)?;
        if run.calls.writes < nth {
            return ensure(nth > 4, || format!("only {nth} writes"));
        }
        let all = || format!("{nth}: {}\n{}", run.status, run.said);
        ensure(run.status.code() == Some(STATUS), all)?;
        ensure(verified(&run.trace)? == Some(0), all)?;
    }
    Ok(())
}

/// The file gets its name (linkat) only after its header is written. If naming the file fails, a message says so.
fn unnamed() -> Result<(), Failed> {
    let (errno, words) = ERRORS[2];
    let run = run(Which::Number(libc::SYS_linkat as u64), Fault::Error(errno))?;
    let all = || format!("{}\n{}", run.status, run.said);
    ensure(run.status.code() == Some(STATUS), all)?;
    ensure(run.said.contains(words), all)
}

/// Records onto a disk that has room for only a part of the recording.
fn full() -> Result<(), Failed> {
    let (disk, trace) = (scratch("full"), scratch("full.bin"));
    std::fs::create_dir_all(&disk)?;
    let script =
        format!("i=0; while [ $i -lt 800 ]; do /bin/true; i=$((i+1)); done; exit {STATUS}");
    let out = Command::new("unshare")
        .args(["--mount", "sh", "-c"])
        .arg(
            "mount -t tmpfs -o size=16k none \"$1\" && { \"$2\" record -o \"$1/t\" -- sh -c \"$4\"; \
             status=$?; cp \"$1/t\" \"$3\"; exit $status; }",
        )
        .arg("sh")
        .args([&disk, Path::new(TR), &trace])
        .arg(&script)
        .output()?;
    let said = text(&out.stderr);
    ensure(
        out.status.code() == Some(STATUS)
            && said.contains("No space left on device")
            && said.contains("the trace ends there"),
        || said.clone(),
    )?;
    const WHY: &str = "the disk was full, or the recorder was killed";
    // The page shows the same warnings as the JSON document.
    let first = &analyze(&trace)?["trace"]["warnings"][0];
    ensure(
        first.as_str().is_some_and(|warning| warning.contains(WHY)),
        || first.to_string(),
    )?;
    for report in ["analyze", "summary", "info"] {
        let mut tr = Command::new(TR);
        tr.arg(report).arg(&trace).env("COLUMNS", "200");
        let shown = text(&tr.output()?.stdout);
        let all = || format!("{report}: {shown}");
        ensure(shown.contains(WHY) && !shown.contains("none lost"), all)?;
        if report == "info" {
            let lost = shown.lines().find(|line| line.starts_with("lost"));
            let missing = lost.is_some_and(|line| line.ends_with("the rest is missing"));
            ensure(missing, all)?;
        } else {
            ensure(shown.starts_with("! the trace is truncated"), all)?;
        }
    }
    std::fs::remove_dir(&disk)?;
    Ok(())
}

/// Cuts a trace at many places. Each copy that has the whole header can be read. A longer copy has at least as many
/// processes as a shorter one.
fn cut() -> Result<(), Failed> {
    let trace = scratch("power.bin");
    let script = "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done; sleep 1; /bin/true";
    record(&trace, &["-q"], &["sh", "-c", script])?;
    let whole = std::fs::read(&trace)?;
    let part = scratch("power-cut.bin");
    let (mut readable, mut most) = (0, 0);
    for cut in (0..48).map(|step| whole.len() * step / 48) {
        std::fs::write(&part, &whole[..cut])?;
        match verified(&part)? {
            Some(1) => {}
            // The copy ends before the end of the metadata.
            Some(2) if readable == 0 => continue,
            other => return Err(format!("{cut} of {}: {other:?}", whole.len()).into()),
        }
        readable += 1;
        let found = list(&analyze(&part)?, "processes").len();
        ensure(found >= most, || format!("{cut}: {found} after {most}"))?;
        most = found;
    }
    ensure(readable > 24 && most > 50, || {
        format!("{readable} cuts readable, {most} processes")
    })
}
