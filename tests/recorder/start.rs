//! A system call of the recorder fails: COMMAND runs once with its own status, or, without
//! `--best-effort`, never and with a message. A tracer (ptrace(2)) replaces the result of one
//! call in each run, or of all calls of one number, as a filter (seccomp(2)) does.

use std::collections::BTreeSet;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use crate::support::{ensure, recording, scratch, text, Test};

pub const TESTS: &[Test] = &[
    (
        "the_command_runs_once_whatever_system_call_fails",
        best_effort,
    ),
    ("a_system_call_that_fails_is_told", told),
    ("the_command_runs_once_whatever_a_filter_refuses", refused),
    ("the_command_runs_once_whatever_the_limits_are", limits),
    ("a_cgroup_without_memory_does_not_kill_the_command", cgroup),
];

/// COMMAND's status, unlike any other here.
const STATUS: i32 = 37;
/// The longest run; a longer one hangs.
const LIMIT: Duration = Duration::from_secs(10);

/// The refusals: by a filter, for want of memory, of descriptors, of the call itself.
const ERRORS: [i32; 4] = [libc::EPERM, libc::ENOMEM, libc::EMFILE, libc::ENOSYS];

/// A finished run of `tr record`.
struct Run {
    status: ExitStatus,
    /// COMMAND's runs.
    times: usize,
    said: String,
    /// The number of the call that failed.
    failed: Option<u64>,
    /// There was no such call any more.
    over: bool,
    /// The numbers of the calls.
    seen: BTreeSet<u64>,
}

/// The calls that fail.
#[derive(Clone, Copy, Debug)]
enum Which {
    Nth(usize),
    Number(u64),
}

/// `tr record` of a command that notes its run and ends with [`STATUS`].
fn noting(dir: &Path, options: &[&str]) -> Command {
    let script = format!("echo x >>{}/runs; exit {STATUS}", dir.display());
    recording(&dir.join("trace.bin"), options, &["sh", "-c", &script])
}

fn runs(dir: &Path) -> usize {
    std::fs::read(dir.join("runs")).map_or(0, |runs| runs.len() / 2)
}

/// Once with COMMAND's status. If tracing is required: or never, with a message.
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
            failed,
            ..
        } = run;
        format!("system call {failed:?}: {status}, COMMAND ran {times} times\n{said}")
    })
}

/// Runs it, and fails calls of its main thread, not those of Rust's runtime before `main`.
#[cfg(target_arch = "x86_64")]
fn injected(mut tr: Command, dir: &Path, which: Which, errno: i32) -> Result<Run, Failed> {
    let _ = std::fs::remove_file(dir.join("runs"));
    // A file: a pipe that nobody reads meanwhile could fill.
    let said = dir.join("stderr");
    tr.stdout(Stdio::null())
        .stderr(std::fs::File::create(&said)?);
    // SAFETY: a system call only.
    unsafe {
        tr.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        });
    }
    let tracee = tr.spawn()?;
    let (status, calls) = tracer::run(tracee.id().cast_signed(), which, errno, LIMIT)?;
    Ok(Run {
        status: ExitStatus::from_raw(status),
        times: runs(dir),
        said: text(&std::fs::read(said)?),
        failed: calls.failed,
        over: matches!(which, Which::Nth(nth) if calls.count < nth),
        seen: calls.seen,
    })
}

#[cfg(target_arch = "x86_64")]
mod tracer {
    use super::{BTreeSet, Duration, Failed, Instant, Which};

    /// brk(2) reports no errno, exit_group(2) does not return, close(2) closes even when it
    /// fails, and without futex(2) no program with threads runs.
    const SPARED: [libc::c_long; 4] = [
        libc::SYS_brk,
        libc::SYS_exit_group,
        libc::SYS_close,
        libc::SYS_futex,
    ];

    /// The calls of the tracee's main thread.
    #[derive(Default)]
    pub struct Calls {
        /// Rust's runtime gives the main thread its signal stack last.
        signal_stacks: u32,
        pub count: usize,
        pub seen: BTreeSet<u64>,
        inside: bool,
        failing: bool,
        pub failed: Option<u64>,
    }

    fn request(request: libc::c_uint, pid: i32, data: usize) -> libc::c_long {
        // SAFETY: the kernel reads and writes no memory of ours for these requests.
        unsafe { libc::ptrace(request, pid, 0usize, data) }
    }

    fn registers(pid: i32) -> libc::user_regs_struct {
        // SAFETY: the kernel fills the registers, which all zeros are, too.
        unsafe {
            let mut registers = std::mem::zeroed();
            libc::ptrace(libc::PTRACE_GETREGS, pid, 0usize, &mut registers);
            registers
        }
    }

    fn set_registers(pid: i32, registers: &libc::user_regs_struct) {
        // SAFETY: the kernel reads the registers.
        unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0usize, registers) };
    }

    impl Calls {
        /// A stop before or after a call.
        fn stop(&mut self, pid: i32, which: Which, errno: i32) {
            let mut now = registers(pid);
            self.inside = !self.inside;
            if self.signal_stacks < 2 {
                if !self.inside && now.orig_rax == libc::SYS_sigaltstack as u64 {
                    self.signal_stacks += 1;
                }
                return;
            }
            if self.inside {
                self.count += 1;
                self.seen.insert(now.orig_rax);
                let chosen = match which {
                    Which::Nth(nth) => nth == self.count,
                    Which::Number(number) => number == now.orig_rax,
                };
                self.failing = chosen && !SPARED.iter().any(|call| *call as u64 == now.orig_rax);
            }
            if !self.failing {
                return;
            }
            if self.inside {
                self.failed = Some(now.orig_rax);
                now.orig_rax = u64::MAX;
            } else {
                now.rax = i64::from(-errno).cast_unsigned();
            }
            set_registers(pid, &now);
        }
    }

    /// Runs the tracee to its end. Returns its raw status.
    pub fn run(
        main: i32,
        which: Which,
        errno: i32,
        limit: Duration,
    ) -> Result<(i32, Calls), Failed> {
        let options = libc::PTRACE_O_TRACESYSGOOD
            | libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEEXEC
            | libc::PTRACE_O_EXITKILL;
        let (mut calls, mut status) = (Calls::default(), 0);
        let latest = Instant::now() + limit;
        loop {
            // SAFETY: the place for the status is ours.
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::WNOHANG) };
            if pid == 0 {
                if Instant::now() > latest {
                    // SAFETY: our own child, which has not been waited for.
                    unsafe { libc::kill(main, libc::SIGKILL) };
                    let call = calls.failed;
                    return Err(format!("{which:?}, call {call:?}: tr hangs").into());
                }
                std::thread::sleep(Duration::from_micros(20));
                continue;
            }
            if pid < 0 {
                return Err(std::io::Error::last_os_error().into());
            }
            if !libc::WIFSTOPPED(status) {
                if pid == main {
                    return Ok((status, calls));
                }
                continue;
            }
            if status >> 8 == libc::SIGTRAP | libc::PTRACE_EVENT_EXEC << 8 {
                // tr has become COMMAND.
                request(libc::PTRACE_DETACH, pid, 0);
                continue;
            }
            let mut signal = 0;
            match libc::WSTOPSIG(status) {
                libc::SIGTRAP if calls.count == 0 && calls.signal_stacks == 0 && pid == main => {
                    request(libc::PTRACE_SETOPTIONS, pid, options as usize);
                }
                stop if stop == libc::SIGTRAP | 0x80 => {
                    if pid == main {
                        calls.stop(pid, which, errno);
                    }
                }
                // Events, and the stop of a new thread.
                libc::SIGTRAP | libc::SIGSTOP => {}
                other => signal = other,
            }
            // Other threads' calls are not looked at.
            let go_on = if pid == main {
                libc::PTRACE_SYSCALL
            } else {
                libc::PTRACE_CONT
            };
            request(go_on, pid, signal as usize);
        }
    }
}

/// The runs of one test.
#[cfg(target_arch = "x86_64")]
struct Runs<'a> {
    dir: std::path::PathBuf,
    options: &'a [&'a str],
    wrong: Vec<String>,
    done: usize,
}

#[cfg(target_arch = "x86_64")]
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
        })
    }

    /// One more run; `None` if it hangs.
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

/// One run for each call, until none is left.
#[cfg(target_arch = "x86_64")]
fn each(options: &[&str], step: usize) -> Result<(), Failed> {
    let mut runs = Runs::new(options)?;
    for nth in (1..).step_by(step) {
        let errno = ERRORS[(nth / step) % ERRORS.len()];
        let run = runs.run(Which::Nth(nth), errno);
        if run.is_some_and(|run| run.over) {
            break;
        }
    }
    ensure(runs.done * step > 200, || format!("{} calls", runs.done))?;
    runs.judge()
}

/// Calls of every number that the recorder uses. Without mmap(2) no program has memory. Of a
/// COMMAND that cannot be waited for, nobody has the status.
#[cfg(target_arch = "x86_64")]
fn refused() -> Result<(), Failed> {
    let mut runs = Runs::new(&["--best-effort"])?;
    let all = runs.run(Which::Nth(usize::MAX), 0).ok_or("no run")?;
    let spared = [libc::SYS_mmap, libc::SYS_wait4, libc::SYS_waitid];
    for number in all.seen {
        if !spared.iter().any(|call| *call as u64 == number) {
            runs.run(Which::Number(number), libc::EPERM);
        }
    }
    ensure(runs.done > 20, || format!("{} calls", runs.done))?;
    runs.judge()
}

#[cfg(not(target_arch = "x86_64"))]
fn refused() -> Result<(), Failed> {
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
fn each(_: &[&str], _: usize) -> Result<(), Failed> {
    Ok(())
}

fn best_effort() -> Result<(), Failed> {
    each(&["--best-effort"], 1)
}

fn told() -> Result<(), Failed> {
    each(&[], 3)
}

/// Address space (from the least in which this program starts), descriptors, file sizes.
fn limits() -> Result<(), Failed> {
    let dir = scratch("limits");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let space = (16..48).map(|mib| format!("--as={}", mib << 20));
    let files = (16..48)
        .step_by(4)
        .map(|number| format!("--nofile={number}"));
    let sizes = [2, 512, 4096].map(|bytes| format!("--fsize={bytes}"));
    for limit in space.chain(files).chain(sizes) {
        let _ = std::fs::remove_file(dir.join("runs"));
        let tr = noting(&dir, &["--best-effort"]);
        let mut limited = Command::new("prlimit");
        limited
            .arg(&limit)
            .arg(tr.get_program())
            .args(tr.get_args());
        let out = limited.output()?;
        judge(
            &Run {
                status: out.status,
                times: runs(&dir),
                said: format!("{limit}: {}", text(&out.stderr)),
                failed: None,
                over: false,
                seen: BTreeSet::new(),
            },
            true,
        )?;
    }
    Ok(())
}

/// A cgroup (v1 or v2) below this test's own, removed at the end.
struct Cgroup(std::path::PathBuf);

impl Cgroup {
    fn new() -> Option<Cgroup> {
        let name = format!("tr-test-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory").join(&name);
        let v2 = Path::new("/sys/fs/cgroup").join(name);
        let found = [v1, v2].into_iter().find(|dir| {
            let made = std::fs::create_dir(dir).is_ok();
            made && Cgroup::limit_file(dir).is_some()
        });
        found.map(Cgroup)
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

/// The reason why no cgroup can be limited here.
pub fn no_memory_cgroup() -> Option<String> {
    let none = Cgroup::new().is_none();
    none.then(|| "no cgroup's memory can be limited here".to_owned())
}

fn cgroup() -> Result<(), Failed> {
    let dir = scratch("cgroup");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let group = Cgroup::new().ok_or("no cgroup")?;
    let limit = Cgroup::limit_file(&group.0).ok_or("no limit")?;
    for mib in [8, 12, 16, 24, 32, 40] {
        std::fs::write(&limit, (mib << 20).to_string())?;
        let _ = std::fs::remove_file(dir.join("runs"));
        let mut tr = noting(&dir, &["--best-effort"]);
        let procs = group.0.join("cgroup.procs");
        // SAFETY: opens and writes a file; nothing else of this process runs meanwhile.
        unsafe {
            tr.pre_exec(move || std::fs::write(&procs, "0"));
        }
        let out = tr.output()?;
        ensure(out.status.code() == Some(STATUS) && runs(&dir) == 1, || {
            format!("{mib} MiB: {out:?}")
        })?;
    }
    Ok(())
}
