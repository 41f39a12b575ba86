//! Finds out by which methods `tr` may record on this machine. Each method is tried for a moment.

use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::ForkResult;
use tr_bpf::Settings;
use tr_format::meta::{Method, Missing, RecordingFacts};
use tr_output::cgroups;

use crate::error::Error;
use crate::source::{bpf, bpf::Loader, choose, ptrace};
use crate::{host, memory};

/// The result of attaching the BPF programs for a moment as a test, as text for the user.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// The kinds of facts that the BPF programs cannot record on this kernel.
    pub missing: Vec<String>,
    /// Further notes about the BPF programs, apart from the missing facts.
    pub notes: Vec<String>,
}

/// The methods by which `tr` may record on a machine, and the facts about the machine that they depend on.
#[derive(Debug)]
pub struct Machine {
    /// The result of the test in which `tr` itself attaches the BPF programs, or the reason why it could not.
    pub bpf: Result<Programs, Error>,
    /// The result of the test in which the loader, run by sudo, attaches the BPF programs, or the reason why it could
    /// not; `None` if sudo was not tried.
    pub sudo: Option<Result<Programs, Error>>,
    /// Whether `--method auto` uses sudo on this machine.
    pub asks_sudo: bool,
    /// The result of trying to trace a child by ptrace(2).
    pub ptrace: Result<(), Errno>,
    /// Whether the kernel counts each task's run time and run-queue wait (`CONFIG_SCHED_INFO`).
    pub schedstat: bool,
    /// The value of the setting `kernel.yama.ptrace_scope` of the security module Yama; `None` without Yama.
    pub yama: Option<u32>,
    /// The result of trying to count context switches by perf_event_open(2).
    pub perf: Result<(), Errno>,
    /// The value of the kernel's setting `kernel.perf_event_paranoid`.
    pub perf_paranoid: Option<i32>,
    /// Whether the kernel has BTF, the description of its types that BPF programs need.
    pub btf: bool,
    /// The directory at which the cgroup v2 hierarchy is mounted; `None` if it is not mounted.
    pub cgroup2: Option<PathBuf>,
    pub psi: bool,
    /// The number of CPUs of the machine that are online.
    pub cpus: usize,
    /// The number of CPUs that this process and its descendants may use; `None` if they may use all.
    pub allowed_cpus: Option<usize>,
}

/// The limits of a recording method without BPF: how exactly it records each kind of fact, and further limits as text
/// for the user.
pub fn knows(method: Method) -> (RecordingFacts, &'static [&'static str]) {
    match method {
        Method::Ptrace => (ptrace::FACTS, &ptrace::LIMITS),
        _ => (RecordingFacts::default(), &[]),
    }
}

impl Machine {
    /// Tries each method of recording on this machine. sudo is tried if `ask_sudo` is set, or if `--method auto` would
    /// use it.
    pub fn examine(ask_sudo: bool) -> Machine {
        let bpf = try_bpf(Loader::Own);
        let asks_sudo = bpf.as_ref().is_err_and(choose::asks_sudo);
        let online = host::online_cpus();
        let allowed = host::allowed_cpus([std::process::id()], &online);
        let readable = |path: &str| std::fs::read(path).is_ok_and(|bytes| !bytes.is_empty());
        Machine {
            bpf,
            sudo: (ask_sudo || asks_sudo).then(|| try_bpf(Loader::Sudo)),
            asks_sudo,
            ptrace: try_ptrace(),
            schedstat: readable("/proc/self/schedstat"),
            yama: yama(),
            perf: try_perf(),
            perf_paranoid: host::number("/proc/sys/kernel/perf_event_paranoid"),
            btf: std::path::Path::new("/sys/kernel/btf/vmlinux").exists(),
            cgroup2: cgroups::mount(),
            psi: readable("/proc/pressure/cpu"),
            cpus: online.len(),
            allowed_cpus: allowed.map(|cpus| cpus.len()),
        }
    }
}

/// The value of the setting `kernel.yama.ptrace_scope` of the security module Yama; `None` without Yama.
pub fn yama() -> Option<u32> {
    host::number("/proc/sys/kernel/yama/ptrace_scope")
}

/// Attaches the BPF programs for a moment, with the smallest buffers and without a task to follow, to find out whether
/// that works.
fn try_bpf(loader: Loader) -> Result<Programs, Error> {
    host::check_time_namespace()?;
    memory::check(bpf::OWN_MEMORY)?;
    let page = host::page_size();
    let settings = Settings {
        cpus: host::online_cpus().into_iter().map(|cpu| cpu.0).collect(),
        possible_cpus: host::possible_cpus(),
        sched_slots: page,
        life_ring: page,
        pid_max: host::pid_max(),
        servers: true,
        ..Settings::default()
    };
    let mut attached = bpf::attach(loader, &settings)?;
    attached.tracer.snapshot()?;
    let words = |all: Vec<Missing>| all.into_iter().map(String::from).collect();
    Ok(Programs {
        missing: words(bpf::missing(&attached)),
        notes: words(bpf::notes(&attached)),
    })
}

/// Forks a child that does nothing but wait, and tries to trace the child by ptrace(2). If `tr` has file capabilities,
/// an ordinary user cannot trace the forks of `tr`, although the user could trace COMMAND after COMMAND's exec. So the
/// child makes itself traceable (`PR_SET_DUMPABLE`).
fn try_ptrace() -> Result<(), Errno> {
    // SAFETY: this process has one thread, and the child only waits for its end.
    let child = match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
            let _ = nix::sys::prctl::set_dumpable(true);
            let _ = nix::sys::signal::raise(Signal::SIGSTOP);
            loop {
                nix::unistd::pause();
            }
        }
    };
    // The child stops itself after it has made itself traceable.
    let _ = nix::sys::wait::waitpid(child, Some(nix::sys::wait::WaitPidFlag::WUNTRACED));
    // SAFETY: a plain system call on our own child, whose end has not been waited for.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, child.as_raw(), 0usize, 0usize) };
    let seized = Errno::result(seized).map(drop);
    let _ = nix::sys::signal::kill(child, Signal::SIGKILL);
    let _ = nix::sys::wait::waitpid(child, None);
    seized
}

/// Tries to count the context switches of this process by perf_event_open(2).
fn try_perf() -> Result<(), Errno> {
    const SOFTWARE: u64 = 1;
    const CONTEXT_SWITCHES: u64 = 3;
    /// The size in bytes of the kernel's `struct perf_event_attr` in its first version.
    const SIZE: u64 = 64;
    // The fields of `struct perf_event_attr`: `type` and `size`, then `config`. All other fields are 0.
    let attributes = [SOFTWARE | SIZE << 32, CONTEXT_SWITCHES, 0, 0, 0, 0, 0, 0];
    // SAFETY: the kernel reads the 64 bytes; a result that is not negative is a new descriptor.
    unsafe {
        let (pid, cpu, group, flags) = (0, -1, -1, 0);
        let call = libc::SYS_perf_event_open;
        let fd = libc::syscall(call, attributes.as_ptr(), pid, cpu, group, flags);
        let fd = i32::try_from(Errno::result(fd)?).map_err(|_| Errno::EBADF)?;
        drop(OwnedFd::from_raw_fd(fd));
    }
    Ok(())
}
