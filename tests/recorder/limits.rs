//! Tests `--best-effort` with limits of memory, descriptors and file sizes: COMMAND must run exactly once.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Failed;
use tr_sim::config::{Config, Follow};
use tr_sim::scenario;

use crate::support::{ensure, recording, scratch, text, Test, TR};

pub const TESTS: &[Test] = &[
    ("the_command_runs_once_whatever_the_limits_are", limits),
    ("a_cgroup_without_memory_does_not_kill_the_command", cgroup),
    (HALF, half),
];

pub const HALF: &str = "a_report_takes_half_of_what_the_cgroup_has";

/// The exit status of COMMAND, which nothing else here returns.
const STATUS: i32 = 37;

/// A command that records a script, which notes each run in a file and exits with [`STATUS`].
fn noting(dir: &Path) -> Command {
    let script = format!("echo x >>{}/runs; exit {STATUS}", dir.display());
    let trace = dir.join("trace.bin");
    recording(&trace, &["--best-effort"], &["sh", "-c", &script])
}

fn runs(dir: &Path) -> usize {
    std::fs::read(dir.join("runs")).map_or(0, |runs| runs.len() / 2)
}

/// The least address space in MiB in which tr starts. A build for tests needs more than a release.
fn least() -> Result<u64, Failed> {
    for mib in 8..128 {
        let mut version = Command::new("prlimit");
        let limit = format!("--as={}", mib << 20);
        let version = version.arg(limit).args([TR, "--version"]).output()?;
        if version.status.success() {
            return Ok(mib);
        }
    }
    Err("tr needs more than 128 MiB to start".into())
}

/// COMMAND must run under each of these limits: of the address space, of the number of descriptors, and of file sizes.
/// The limits of the address space begin 3 MiB above the least in which tr starts. Reading an option that masks secrets
/// takes more than one of these MiB.
fn limits() -> Result<(), Failed> {
    let dir = scratch("limits");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let least = least()?;
    let space = (least + 3..least + 36).map(|mib| format!("--as={}", mib << 20));
    let files = (16..48)
        .step_by(4)
        .map(|number| format!("--nofile={number}"));
    let sizes = [2, 512, 4096].map(|bytes| format!("--fsize={bytes}"));
    for limit in space.chain(files).chain(sizes) {
        let _ = std::fs::remove_file(dir.join("runs"));
        let tr = noting(&dir);
        let mut limited = Command::new("prlimit");
        limited
            .arg(&limit)
            .arg(tr.get_program())
            .args(tr.get_args());
        let out = limited.output()?;
        ensure(out.status.code() == Some(STATUS) && runs(&dir) == 1, || {
            format!("{limit}: {out:?}")
        })?;
    }
    Ok(())
}

/// A cgroup (v1 or v2) below this test's own one. It is removed when this value is dropped.
struct Cgroup(std::path::PathBuf);

impl Cgroup {
    fn new(name: &str) -> Option<Cgroup> {
        let name = format!("tr-{name}-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory").join(&name);
        let v2 = Path::new("/sys/fs/cgroup").join(name);
        let found = [v1, v2].into_iter().find(|dir| {
            let made = std::fs::create_dir(dir).is_ok();
            made && Cgroup::limit_file(dir).is_some()
        });
        found.map(Cgroup)
    }

    /// Makes a command enter the cgroup when it starts.
    fn enter<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let procs = self.0.join("cgroup.procs");
        // SAFETY: the closure only opens and writes a file, and no other code of this process runs in the child before
        // its exec.
        unsafe { command.pre_exec(move || std::fs::write(&procs, "0")) }
    }

    fn limit_file(dir: &Path) -> Option<std::path::PathBuf> {
        let names = ["memory.limit_in_bytes", "memory.max"].map(|name| dir.join(name));
        names.into_iter().find(|file| file.exists())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The reason why no cgroup with a limit of memory can be made here, if any.
pub fn no_memory_cgroup() -> Option<String> {
    let none = Cgroup::new("test").is_none();
    none.then(|| "no cgroup's memory can be limited here".to_owned())
}

fn cgroup() -> Result<(), Failed> {
    let dir = scratch("cgroup");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let group = Cgroup::new("little").ok_or("no cgroup")?;
    let limit = Cgroup::limit_file(&group.0).ok_or("no limit")?;
    for mib in [8, 12, 16, 24, 32, 40] {
        std::fs::write(&limit, (mib << 20).to_string())?;
        let _ = std::fs::remove_file(dir.join("runs"));
        let out = group.enter(&mut noting(&dir)).output()?;
        ensure(out.status.code() == Some(STATUS) && runs(&dir) == 1, || {
            format!("{mib} MiB: {out:?}")
        })?;
    }
    Ok(())
}

/// In a cgroup with little memory, `tr summary` makes no timeline, although the machine has much more memory. If
/// `--max-memory` allows more memory, the command makes a timeline.
fn half() -> Result<(), Failed> {
    let trace = scratch("half.bin");
    let mut config = Config::new(scenario::build(12, u32::MAX, 400), 8, u64::MAX >> 12);
    config.follow = Follow::All;
    config.max_events = 1_300_000;
    let out = std::io::BufWriter::new(std::fs::File::create(&trace)?);
    tr_sim::file::record_to(&config, out).map_err(|error| error.to_string())?;
    let group = Cgroup::new("half").ok_or("no cgroup")?;
    let limit = Cgroup::limit_file(&group.0).ok_or("no limit")?;
    std::fs::write(&limit, (96 << 20).to_string())?;
    let summary = |options: &[&str]| -> Result<String, Failed> {
        let mut tr = Command::new(TR);
        tr.arg("summary").arg(&trace).args(options);
        let out = group.enter(&mut tr).output()?;
        ensure(out.status.success(), || format!("{out:?}"))?;
        Ok(text(&out.stderr))
    };
    let said = summary(&[])?;
    let left_out = said.contains(
        "is left out, because it takes more memory; --max-memory 1G shows it on a larger machine",
    );
    ensure(left_out, || said)?;
    let said = summary(&["--max-memory", "150M"])?;
    ensure(said.is_empty(), || said.clone())
}
