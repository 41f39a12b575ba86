//! Helpers of the recorder's tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::common;
pub use crate::common::{copy_program, int, kill, list, why_not, write_program, TR};

/// A test: its name and its function.
pub type Test = (&'static str, fn() -> Result<(), Failed>);

/// A path in the directory of this test. The test's thread has the test's name.
pub fn scratch(name: &str) -> PathBuf {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("unnamed");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("recorder")
        .join(test);
    std::fs::create_dir_all(&dir).expect("a scratch directory");
    dir.join(name)
}

/// Compiles a C program of fixtures/programs, or one at an absolute path, into the directory of this test.
pub fn compiled(source: impl AsRef<Path>, name: &str, flags: &[&str]) -> Result<String, Failed> {
    Ok(common::compiled(source.as_ref(), &scratch(name), flags)?)
}

/// The command `tr record -o TRACE OPTIONS -- COMMAND`, not started yet.
pub fn recording(trace: &Path, options: &[&str], command: &[&str]) -> Command {
    let mut tr = Command::new(TR);
    tr.arg("record").arg("-o").arg(trace).args(options);
    tr.arg("--").args(command);
    tr
}

pub fn record(trace: &Path, options: &[&str], command: &[&str]) -> std::io::Result<Output> {
    recording(trace, options, command).output()
}

/// The output of a `tr` command that must succeed.
pub fn tr(args: &[&str], trace: &Path) -> Result<Vec<u8>, Failed> {
    let [subcommand, options @ ..] = args else {
        return Err("no subcommand".into());
    };
    let out = Command::new(TR)
        .arg(subcommand)
        .arg(trace)
        .args(options)
        .output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    Ok(out.stdout)
}

pub fn analyze(trace: &Path) -> Result<Value, Failed> {
    Ok(common::analyze(trace)?)
}

/// The JSON value of one report.
pub fn report(trace: &Path, kind: &str, options: &[&str]) -> Result<Value, Failed> {
    let mut all = common::document(trace, &[&["--report", kind], options].concat())?;
    Ok(all[kind].take())
}

pub fn info(trace: &Path) -> Result<Value, Failed> {
    Ok(serde_json::from_slice(&tr(
        &["info", "--format", "json"],
        trace,
    )?)?)
}

/// The events of a trace, as one JSON object each.
pub fn dump(trace: &Path) -> Result<Vec<Value>, Failed> {
    let lines = tr(&["dump", "--format", "ndjson"], trace)?;
    let lines = lines.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    Ok(lines
        .map(serde_json::from_slice)
        .collect::<Result<_, _>>()?)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn ensure(good: bool, what: impl FnOnce() -> String) -> Result<(), Failed> {
    Ok(common::ensure(good, what)?)
}

/// A shell loop that waits until a file exists, for twenty seconds at most.
pub fn awaits(file: &Path) -> String {
    format!(
        "i=0; until [ -e {} ] || [ $i -ge 400 ]; do sleep 0.05; i=$((i+1)); done",
        file.display()
    )
}

/// Waits until the condition is true, for 20 s at most.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Failed> {
    let limit = Instant::now() + Duration::from_secs(20);
    while !holds() {
        ensure(Instant::now() < limit, || format!("{what}: not in 20 s"))?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
