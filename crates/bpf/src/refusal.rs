//! Finds the reason why the kernel does not let this process trace, from facts about the process and the kernel,
//! and commands that remove this reason.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use libbpf_rs::libbpf_sys::{
    bpf_insn, bpf_prog_load, bpf_prog_type, BPF_FUNC_ktime_get_coarse_ns,
    BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_PROG_TYPE_SOCKET_FILTER,
};
use nix::sys::resource::{getrlimit, Resource};

use crate::load::opened;

/// The path of the file with the kernel's type information (BTF).
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";
/// The inode number of the initial user namespace (`PROC_USER_INIT_INO`).
const INITIAL_USER_NAMESPACE: u64 = 0xefff_fffd;
/// The first version of Linux that has BPF ring buffers and task iterators.
const OLDEST_LINUX: (u32, u32) = (5, 8);

/// A reason why the kernel does not let this process trace. Each reason is about rights or the kernel's
/// configuration, and none is a fault of the BPF programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Tracing is not possible because /proc is not mounted.
    NoProc,
    /// Tracing is not possible because /sys is not mounted.
    NoSysfs,
    /// The kernel is older than Linux 5.8, the first version on which tracing is possible.
    OldKernel {
        /// The kernel's release, as uname(2) returns it.
        release: String,
    },
    /// The kernel was built without type information (BTF).
    NoBtf,
    /// The kernel was built without the system call bpf(2).
    NoBpf,
    /// bpf(2) fails with this error number, and the process has a seccomp filter, which is taken for the reason.
    Seccomp(i32),
    /// The process is in a user namespace, in which capabilities do not count for BPF.
    UserNamespace,
    /// The process lacks capabilities for tracing, and no_new_privs prevents the process from getting them by executing
    /// a file.
    NoNewPrivs(Missing),
    /// The process lacks capabilities for tracing, and its bounding set lacks at least one of CAP_BPF and
    /// CAP_PERFMON, as in a container.
    Container(Missing),
    /// The process lacks capabilities for tracing, but may get them.
    Capabilities {
        /// The capabilities for tracing that the process lacks.
        missing: Missing,
        /// Whether the user is root, so that running `tr` with `sudo` does not help.
        root: bool,
    },
    /// Before Linux 5.11 BPF maps count as locked memory, and this process may not raise its limit of locked memory.
    LockedMemory {
        /// The process's limit of locked memory in bytes (RLIMIT_MEMLOCK).
        limit: u64,
        /// Whether the process cannot raise its limit of locked memory even by executing a file with capabilities.
        confined: bool,
    },
    /// bpf(2) fails with this error number, and none of the other reasons explains it, so a security module
    /// probably refuses it.
    SecurityModule(i32),
}

/// The capabilities that a process lacks for tracing; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    bpf: bool,
    perfmon: bool,
}

impl Missing {
    /// The capabilities for tracing that a process's set of capabilities lacks; `None` if it lacks none.
    fn of(set: u64) -> Option<Missing> {
        // CAP_SYS_ADMIN implies both CAP_BPF and CAP_PERFMON.
        const ADMIN: u64 = 1 << 21;
        const PERFMON: u64 = 1 << 38;
        const BPF: u64 = 1 << 39;
        let lacks = |capability| set & (capability | ADMIN) == 0;
        let (bpf, perfmon) = (lacks(BPF), lacks(PERFMON));
        (bpf || perfmon).then_some(Missing { bpf, perfmon })
    }
}

impl Display for Missing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.bpf, self.perfmon) {
            (true, false) => "CAP_BPF (it has CAP_PERFMON)",
            (false, true) => "CAP_PERFMON (it has CAP_BPF)",
            _ => "the capabilities CAP_BPF and CAP_PERFMON",
        })
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoProc => f.write_str("/proc is not mounted"),
            Refusal::NoSysfs => f.write_str("/sys is not mounted"),
            Refusal::OldKernel { release } => {
                let (major, minor) = OLDEST_LINUX;
                write!(f, "Linux {release} is older than {major}.{minor}")
            }
            Refusal::NoBtf => write!(f, "this kernel has no BTF ({BTF} is missing)"),
            Refusal::NoBpf => f.write_str("this kernel has no bpf system call"),
            Refusal::Seccomp(errno) => {
                write!(
                    f,
                    "a seccomp filter refuses the bpf system call ({})",
                    name(*errno)
                )
            }
            Refusal::UserNamespace => f.write_str(
                "this process is in a user namespace, whose capabilities do not count for BPF",
            ),
            Refusal::NoNewPrivs(missing) => write!(
                f,
                "this process lacks {missing}, and no_new_privs rules out sudo and setcap"
            ),
            Refusal::Container(missing) => write!(
                f,
                "this process lacks {missing}, and its bounding set does not allow them"
            ),
            Refusal::Capabilities { missing, .. } => write!(f, "this process lacks {missing}"),
            Refusal::LockedMemory { limit, .. } => write!(
                f,
                "the BPF maps exceed the limit of locked memory ({} KiB), which before Linux 5.11 they \
                 count towards, and this process lacks CAP_SYS_RESOURCE to raise it",
                limit / 1024
            ),
            Refusal::SecurityModule(errno) => write!(
                f,
                "the kernel refuses the bpf system call ({}) although this process has \
                 CAP_BPF and CAP_PERFMON: see the policy of SELinux or AppArmor",
                name(*errno)
            ),
        }
    }
}

/// A way to remove the reason why the kernel refuses tracing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The kind of change that the command of the remedy makes.
    pub kind: RemedyKind,
    /// A phrase that says what the remedy does.
    pub purpose: &'static str,
    /// The command to paste into a shell.
    pub command: String,
}

/// The kind of a remedy: what its command changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemedyKind {
    /// The command makes this recording with more rights. It changes nothing outside of the shell in which it runs.
    Record,
    /// The command gives the file of this program capabilities for good.
    Grant,
    /// The command starts a new container with more rights, in place of the container in which this process runs.
    Container,
    /// The command mounts a file system.
    Mount,
    /// The command changes nothing. It shows facts by which the user finds the reason.
    Find,
}

impl Remedy {
    fn new(kind: RemedyKind, purpose: &'static str, command: impl Into<String>) -> Remedy {
        Remedy {
            kind,
            purpose,
            command: command.into(),
        }
    }
}

/// The symbolic name of an error number, such as EPERM.
fn name(errno: i32) -> String {
    format!("{:?}", nix::errno::Errno::from_raw(errno))
}

impl Refusal {
    /// Finds the reason why this process cannot trace; `None` if none is known.
    pub fn find() -> Option<Refusal> {
        Refusal::gather(false)
    }

    /// Finds the reason why the kernel has refused a BPF map or program with the given error; `None` if none is known.
    pub(crate) fn of(error: &libbpf_rs::Error) -> Option<Refusal> {
        Refusal::gather(error.kind() == libbpf_rs::ErrorKind::PermissionDenied)
    }

    /// Examines the process and the kernel to find the reason why this process cannot trace; `None` if none is known.
    /// `denied` is whether the kernel has refused a map or a program of the tracer with EPERM or EACCES.
    fn gather(denied: bool) -> Option<Refusal> {
        // A process that has used up its limit of descriptors cannot read /proc, so /proc seems not to be mounted. If
        // /proc/self exists, the reason `NoProc` is wrong and is dropped.
        let unread =
            |refusal: &Refusal| *refusal == Refusal::NoProc && Path::new("/proc/self").exists();
        RefusalFacts::gather(denied)
            .refusal()
            .filter(|refusal| !unread(refusal))
    }

    /// The ways to remove the reason why tracing is refused. One of them is enough. `tr` is the path of this program
    /// and `record` the rest of its command line, both quoted for a shell.
    pub fn remedies(&self, tr: &str, record: &str) -> Vec<Remedy> {
        use RemedyKind::{Container, Find, Grant, Mount, Record};
        let setcap = format!("setcap cap_bpf,cap_perfmon+p {tr}");
        let docker = "docker run --cap-add BPF --cap-add PERFMON";
        match self {
            Refusal::NoProc => vec![Remedy::new(
                Mount,
                "mount /proc, where processes are listed",
                "mount -t proc proc /proc",
            )],
            Refusal::NoSysfs => vec![Remedy::new(
                Mount,
                "mount /sys, where the kernel's BTF is",
                "mount -t sysfs sysfs /sys",
            )],
            Refusal::OldKernel { .. } => vec![Remedy::new(
                Find,
                "see the kernel's version (BPF is used from Linux 5.8 on)",
                "uname -r",
            )],
            Refusal::NoBtf => vec![Remedy::new(
                Find,
                "see whether the kernel was built with CONFIG_DEBUG_INFO_BTF=y, which makes BTF",
                "grep BTF /boot/config-$(uname -r)",
            )],
            Refusal::NoBpf => vec![Remedy::new(
                Find,
                "see whether the kernel was built with CONFIG_BPF_SYSCALL=y, which makes bpf(2)",
                "grep BPF /boot/config-$(uname -r)",
            )],
            Refusal::Seccomp(_) => vec![Remedy::new(
                Container,
                "start the container without the filter",
                format!("{docker} --security-opt seccomp=unconfined …"),
            )],
            Refusal::UserNamespace => vec![
                Remedy::new(
                    Record,
                    "record outside of it",
                    format!("sudo {tr} {record}"),
                ),
                Remedy::new(
                    Container,
                    "start the container with the host's capabilities",
                    format!("sudo {docker} …"),
                ),
            ],
            Refusal::NoNewPrivs(_) => vec![
                Remedy::new(
                    Record,
                    "record from a shell without no_new_privs",
                    format!("sudo {tr} {record}"),
                ),
                Remedy::new(
                    Container,
                    "start the container with both capabilities",
                    format!("{docker} …"),
                ),
            ],
            Refusal::Container(_) => vec![
                Remedy::new(
                    Container,
                    "start the container with both capabilities",
                    format!("{docker} …"),
                ),
                Remedy::new(
                    Container,
                    "if Docker knows neither (20.10 of Debian 12)",
                    "docker run --cap-add SYS_ADMIN …",
                ),
            ],
            Refusal::Capabilities { root: true, .. } => vec![Remedy::new(
                Grant,
                "give the program CAP_BPF and CAP_PERFMON",
                setcap,
            )],
            Refusal::Capabilities { root: false, .. } => vec![
                Remedy::new(
                    Grant,
                    "give the program CAP_BPF and CAP_PERFMON, for good",
                    format!("sudo {setcap}"),
                ),
                Remedy::new(Record, "record as root", format!("sudo {tr} {record}")),
            ],
            Refusal::LockedMemory { confined: true, .. } => vec![Remedy::new(
                Container,
                "start the container without the limit",
                format!("{docker} --ulimit memlock=-1 …"),
            )],
            Refusal::LockedMemory { .. } => vec![
                Remedy::new(
                    Grant,
                    "give the program CAP_SYS_RESOURCE, too, for good",
                    format!("sudo setcap cap_bpf,cap_perfmon,cap_sys_resource+p {tr}"),
                ),
                Remedy::new(
                    Record,
                    "record without the limit, in this shell",
                    format!("sudo prlimit --memlock=unlimited --pid $$ && {tr} {record}"),
                ),
            ],
            Refusal::SecurityModule(_) => vec![Remedy::new(
                Find,
                "look for the denial",
                "dmesg | grep -iE 'denied|lockdown'",
            )],
        }
    }
}

/// The facts about the process and the kernel that decide whether tracing can start.
#[derive(Clone, Debug)]
struct RefusalFacts {
    /// The parsed content of /proc/self/status; `None` if it cannot be read, as without /proc.
    status: Option<Status>,
    /// Whether the process is in the initial user namespace, so that its capabilities are valid for the whole
    /// machine.
    initial_user_namespace: bool,
    sysfs: bool,
    btf: bool,
    release: String,
    /// The error number with which bpf(2) fails to load a minimal tracing program; 0 if it succeeds.
    bpf: i32,
    /// The process's limit of locked memory in bytes, if the kernel may have refused the maps because of this
    /// limit.
    locked: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Status {
    root: bool,
    effective: u64,
    bounding: u64,
    no_new_privs: bool,
    seccomp: bool,
}

impl Status {
    fn parse(text: &str) -> Status {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map_or("", str::trim)
        };
        let set = |name| u64::from_str_radix(value(name), 16).unwrap_or(0);
        Status {
            // The line has four user ids: the real, the effective, the saved and the one for files. The effective one
            // counts here.
            root: value("Uid:").split_whitespace().nth(1) == Some("0"),
            effective: set("CapEff:"),
            bounding: set("CapBnd:"),
            no_new_privs: value("NoNewPrivs:") == "1",
            seccomp: value("Seccomp:") == "2",
        }
    }
}

impl RefusalFacts {
    fn gather(denied: bool) -> RefusalFacts {
        let bpf = load_least_program();
        let namespace = fs::metadata("/proc/self/ns/user");
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        RefusalFacts {
            status: fs::read_to_string("/proc/self/status")
                .ok()
                .map(|text| Status::parse(&text)),
            // If the file does not exist, the kernel has no user namespaces, so all processes are in the initial one.
            initial_user_namespace: namespace
                .map_or(true, |file| file.ino() == INITIAL_USER_NAMESPACE),
            sysfs: Path::new("/sys/kernel").exists(),
            btf: Path::new(BTF).exists(),
            release: release.trim().to_owned(),
            bpf,
            locked: locked_limit().filter(|_| denied && bpf == 0 && counts_as_locked()),
        }
    }

    fn refusal(&self) -> Option<Refusal> {
        let Some(status) = self.status else {
            return Some(Refusal::NoProc);
        };
        if !self.sysfs {
            return Some(Refusal::NoSysfs);
        }
        if !self.btf {
            let old = version(&self.release).is_some_and(|version| version < OLDEST_LINUX);
            return Some(if old {
                Refusal::OldKernel {
                    release: self.release.clone(),
                }
            } else {
                Refusal::NoBtf
            });
        }
        let errno = self.bpf;
        match errno {
            libc::ENOSYS if status.seccomp => return Some(Refusal::Seccomp(errno)),
            libc::ENOSYS => return Some(Refusal::NoBpf),
            libc::EPERM | libc::EACCES => {}
            _ => return self.locked_memory(status),
        }
        if !self.initial_user_namespace {
            return Some(Refusal::UserNamespace);
        }
        let Some(missing) = Missing::of(status.effective) else {
            return Some(if status.seccomp {
                Refusal::Seccomp(errno)
            } else {
                Refusal::SecurityModule(errno)
            });
        };
        Some(if status.no_new_privs {
            Refusal::NoNewPrivs(missing)
        } else if Missing::of(status.bounding).is_some() {
            Refusal::Container(missing)
        } else {
            Refusal::Capabilities {
                missing,
                root: status.root,
            }
        })
    }

    /// The reason for the refusal if the BPF maps exceed the limit of locked memory; `None` if the process may
    /// raise the limit or the kernel refused no map.
    fn locked_memory(&self, status: Status) -> Option<Refusal> {
        const RESOURCE: u64 = 1 << 24;
        let limit = self.locked.filter(|_| status.effective & RESOURCE == 0)?;
        let confined = status.no_new_privs || status.bounding & RESOURCE == 0;
        Some(Refusal::LockedMemory { limit, confined })
    }
}

/// The major and minor number of a kernel's release such as `6.1.0-42-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The process's soft limit of locked memory in bytes; `None` if there is no limit.
fn locked_limit() -> Option<u64> {
    let (soft, _) = getrlimit(Resource::RLIMIT_MEMLOCK).ok()?;
    (soft != libc::RLIM_INFINITY).then_some(soft)
}

/// Whether BPF maps count as locked memory on this kernel. They do so before Linux 5.11. That version also added a
/// BPF helper function, so the kernel is tested for this function. Unlike a comparison of versions, this is right for
/// kernels with backported patches as well.
fn counts_as_locked() -> bool {
    const CALL: u8 = 0x85;
    let function = BPF_FUNC_ktime_get_coarse_ns.cast_signed();
    // The test program is a socket filter, because tracing programs may not call the function `bpf_ktime_get_coarse_ns`
    // from Linux 5.16 on.
    load(BPF_PROG_TYPE_SOCKET_FILTER, CALL, function) != 0
}

/// Loads the program `return 0` as a raw tracepoint program, which requires CAP_BPF and CAP_PERFMON, and unloads
/// it. Returns the error number of bpf(2), or 0 if it succeeded.
fn load_least_program() -> i32 {
    const MOV64_IMM: u8 = 0xb7;
    load(BPF_PROG_TYPE_RAW_TRACEPOINT, MOV64_IMM, 0)
}

/// Loads a BPF program of the given kind that consists of the given instruction and a return, and unloads it.
/// Returns the error number of bpf(2), or 0 if it succeeded.
fn load(kind: bpf_prog_type, code: u8, imm: i32) -> i32 {
    const EXIT: u8 = 0x95;
    let program = [(code, imm), (EXIT, 0)].map(|(code, imm)| bpf_insn {
        code,
        imm,
        ..bpf_insn::default()
    });
    // SAFETY: the strings end in NUL, the program has the number of instructions that is passed, null options are
    // allowed, and all arguments outlive the call.
    let fd = unsafe {
        bpf_prog_load(
            kind,
            c"tr_probe".as_ptr(),
            c"GPL".as_ptr(),
            program.as_ptr(),
            program.len() as libbpf_rs::libbpf_sys::size_t,
            std::ptr::null_mut(),
        )
    };
    // SAFETY: the call opens the program's descriptor, or fails.
    let refused = unsafe { opened(fd) }.err();
    refused.and_then(|error| error.raw_os_error()).unwrap_or(0)
}

#[cfg(test)]
#[path = "tests/refusal.rs"]
mod tests;
