//! Makes system calls of the recorder fail. COMMAND must run once, with its own exit status. Without `--best-effort`,
//! COMMAND may also not run at all, if there is a message.
//!
//! A tracer (ptrace(2)) replaces the result of one call in each run. In other runs it replaces the results of all calls
//! of one number, as a filter (seccomp(2)) does. One call of each kind fails; with `make test-long`, every call does.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use crate::common::long;
use crate::inject::{self, Calls, Fault, Which};
use crate::support::{ensure, recording, scratch, text, Test};

pub const TESTS: &[Test] = &[
    (
        "the_command_runs_once_whatever_system_call_fails",
        best_effort,
    ),
    ("a_system_call_that_fails_is_told", told),
    ("the_command_runs_once_whatever_a_filter_refuses", refused),
];

/// The exit status of COMMAND, which nothing else here returns.
const STATUS: i32 = 37;
/// The time limit of a run; a run that takes longer is reported as hanging. The limit is long, because the kernel's
/// verifier is slow if the BPF programs are loaded without BTF of their functions.
const LIMIT: Duration = Duration::from_secs(30);

/// The time limit for all runs of one test. If the limit is reached on a busy machine, the last calls are not tested.
const PATIENCE: Duration = Duration::from_secs(200);

/// The errors with which calls fail: the error of a filter, and the errors for a lack of memory, of descriptors, and of
/// the system call itself.
const ERRORS: [i32; 4] = [libc::EPERM, libc::ENOMEM, libc::EMFILE, libc::ENOSYS];

/// A finished run of `tr record`.
struct Run {
    status: ExitStatus,
    /// How often COMMAND has run.
    times: usize,
    said: String,
    calls: Calls,
    /// Whether the recorder made fewer calls than the number of the call that should fail, so that no call failed.
    over: bool,
}

/// A command that records a script, which notes each run in a file and exits with [`STATUS`].
fn noting(dir: &Path, options: &[&str]) -> Command {
    let script = format!("echo x >>{}/runs; exit {STATUS}", dir.display());
    recording(&dir.join("trace.bin"), options, &["sh", "-c", &script])
}

fn runs(dir: &Path) -> usize {
    std::fs::read(dir.join("runs")).map_or(0, |runs| runs.len() / 2)
}

/// Checks that COMMAND ran once and its status was returned. If tracing is required, COMMAND may also not have run, if
/// there is a message.
fn judge(run: &Run, best_effort: bool) -> Result<(), Failed> {
    let ran = run.times == 1 && run.status.code() == Some(STATUS);
    let refused = !best_effort
        && run.times == 0
        && run.status.code() == Some(125)
        && run.said.contains("tr: ");
    ensure(ran || refused, || {
        let Run {
            status,
            times,
            said,
            calls: Calls { failed, .. },
            ..
        } = run;
        format!("system call {failed:?}: {status}, COMMAND ran {times} times\n{said}")
    })
}

/// Runs the recorder, and makes calls of its main thread fail, except those of Rust's runtime before `main`.
fn injected(mut tr: Command, dir: &Path, which: Which, errno: i32) -> Result<Run, Failed> {
    let _ = std::fs::remove_file(dir.join("runs"));
    // The messages go into a file, because a pipe could fill up while nobody reads it.
    let said = dir.join("stderr");
    tr.stdout(Stdio::null())
        .stderr(std::fs::File::create(&said)?);
    let tracee = inject::spawn(&mut tr)?;
    let (status, calls) = inject::run(&tracee, which, Fault::Error(errno), LIMIT)?;
    Ok(Run {
        status: ExitStatus::from_raw(status),
        times: runs(dir),
        said: text(&std::fs::read(said)?),
        over: matches!(which, Which::Nth(nth) if calls.count < nth),
        calls,
    })
}

/// The runs of one test, and the failures that they have found.
struct Runs<'a> {
    dir: std::path::PathBuf,
    options: &'a [&'a str],
    wrong: Vec<String>,
    done: usize,
    begun: Instant,
}

impl<'a> Runs<'a> {
    fn new(options: &'a [&'a str]) -> Result<Runs<'a>, Failed> {
        let dir = scratch("start");
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)?;
        Ok(Runs {
            dir,
            options,
            wrong: Vec::new(),
            done: 0,
            begun: Instant::now(),
        })
    }

    /// Whether there is no time for further runs.
    fn is_late(&self) -> bool {
        let late = !long() && self.begun.elapsed() > PATIENCE;
        if late {
            eprintln!("a busy machine: only {} runs", self.done);
        }
        late
    }

    /// Makes one more run, and judges it; `None` if the run hangs or is wrong.
    fn run(&mut self, which: Which, errno: i32) -> Option<Run> {
        let tr = noting(&self.dir, self.options);
        let run = injected(tr, &self.dir, which, errno);
        self.done += 1;
        let judged = run.and_then(|run| {
            if !run.over {
                judge(&run, self.options.contains(&"--best-effort"))?;
            }
            Ok(run)
        });
        judged
            .map_err(|failed| {
                let why = failed.message().unwrap_or_default();
                self.wrong.push(format!("{which:?} errno {errno}: {why}"));
            })
            .ok()
    }

    fn judge(self) -> Result<(), Failed> {
        let Runs { wrong, done, .. } = self;
        ensure(wrong.is_empty(), || {
            format!("{} of {done}:\n{}", wrong.len(), wrong.join("\n"))
        })
    }
}

/// Runs the recorder again and again, and makes another call fail in each run: the first call of each kind or, with
/// `make test-long`, every call. With a `step` above 1, only every `step`-th of these calls fails.
fn each(options: &[&str], step: usize) -> Result<(), Failed> {
    let mut runs = Runs::new(options)?;
    let all = runs.run(Which::None, 0).ok_or("no run")?.calls;
    ensure(all.count > 200 && all.kinds.len() > 100, || {
        format!("{} calls of {} kinds", all.count, all.kinds.len())
    })?;
    let last = if long() { usize::MAX } else { all.count };
    let calls = (1..=last).filter(|nth| long() || all.kinds.contains(nth));
    for (at, nth) in calls.step_by(step).enumerate() {
        if runs.is_late() {
            break;
        }
        let run = runs.run(Which::Nth(nth), ERRORS[at % ERRORS.len()]);
        if run.is_some_and(|run| run.over) {
            break;
        }
    }
    runs.judge()
}

/// For each system call that the recorder uses, makes all calls of this system call fail. There are two exceptions:
/// without mmap(2) no program has memory, and without the waits for a child nobody gets COMMAND's status.
fn refused() -> Result<(), Failed> {
    let mut runs = Runs::new(&["--best-effort"])?;
    let all = runs.run(Which::None, 0).ok_or("no run")?.calls;
    let spared = [libc::SYS_mmap, libc::SYS_wait4, libc::SYS_waitid];
    for number in all.seen {
        if runs.is_late() {
            break;
        }
        if !spared.iter().any(|call| *call as u64 == number) {
            runs.run(Which::Number(number), libc::EPERM);
        }
    }
    ensure(runs.done > 20, || format!("{} calls", runs.done))?;
    runs.judge()
}

fn best_effort() -> Result<(), Failed> {
    each(&["--best-effort"], 1)
}

fn told() -> Result<(), Failed> {
    each(&[], 3)
}
