//! The errors that keep a recording from starting.

use std::time::Duration;

/// The longest wait for the answer of the loader, which sudo runs to attach the BPF programs.
pub const LOADER_LIMIT: Duration = Duration::from_secs(10);

/// An error that keeps a recording from starting. Unless it is [`Error::Lost`], COMMAND has not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The trace file cannot be created.
    #[error("cannot write the trace: {0}")]
    Output(std::io::Error),
    /// The header of the trace cannot be written to the output.
    #[error("cannot write the trace: {0}")]
    Format(tr_format::Error),
    #[error(transparent)]
    Tracing(#[from] tr_bpf::Error),
    #[error("cannot load the BPF programs by sudo: {0}")]
    Sudo(#[from] SudoRefusal),
    #[error("cannot trace with ptrace: {0}")]
    Ptrace(nix::errno::Errno),
    /// The directory `/proc` is missing, or has no totals of the run times of tasks (`/proc/PID/schedstat`).
    #[error("cannot record by ptrace: /proc/PID/schedstat cannot be read")]
    NoTotals,
    #[error("--all, --pid, --cgroup and --cpu need --method bpf or sudo")]
    NeedsBpf,
    #[error("cannot start the command: {0}")]
    Command(std::io::Error),
    /// COMMAND ran, but the kernel refuses to return COMMAND's exit status.
    #[error("cannot wait for the command: {0}")]
    Lost(std::io::Error),
    #[error("CPU {0} is not online")]
    NoSuchCpu(u16),
    #[error("no such process: {0}")]
    NoSuchProcess(u32),
    /// BPF programs cannot see this process. The kernel of a virtual machine can hide processes from them.
    #[error("the kernel does not list process {0} to BPF programs: it cannot be recorded")]
    Hidden(u32),
    /// `tr` is in another time namespace than the processes that it starts, and the kernel does not show by how much
    /// the clocks of the two namespaces differ. So the times of events cannot be compared with the clocks that `tr`
    /// reads.
    #[error("the recorder's time namespace is not that of its children, and the kernel does not show the offsets of its clocks")]
    TimeNamespace,
    #[error("{} is not a cgroup v2 directory: {source}", .path.display())]
    Cgroup {
        path: std::path::PathBuf,
        source: std::io::Error,
    },
    /// `--user` names a user that does not exist, or `tr` may not run COMMAND as that user.
    #[error("cannot run a command as {name}: {source}")]
    User {
        name: String,
        source: std::io::Error,
    },
    /// The machine or a limit leaves too little memory, so that the recorder would be killed or would end at its
    /// next allocation.
    #[error("the recorder needs {} MiB of memory, and {limit} limit is lower", .needed >> 20)]
    Memory {
        /// The memory that the recorder needs, in bytes.
        needed: u64,
        /// The name of what limits the memory, as text for the user.
        limit: &'static str,
    },
    #[error("cannot set up the recording: {0}")]
    System(std::io::Error),
}

impl Error {
    /// Whether the error is a mistake in the command line, such as the name of a process that does not exist. After
    /// such an error COMMAND runs only with `--best-effort`: the user has to correct the command line first.
    pub fn is_mistake(&self) -> bool {
        match self {
            Error::Output(error) => tr_output::is_mistake(error),
            Error::NoSuchCpu(_)
            | Error::NoSuchProcess(_)
            | Error::Cgroup { .. }
            | Error::User { .. } => true,
            _ => false,
        }
    }
}

/// The reason why the loader that sudo runs has not attached the BPF programs.
#[derive(Debug, thiserror::Error)]
pub enum SudoRefusal {
    /// There is no program sudo on PATH.
    #[error("sudo is not installed")]
    Absent,
    /// The program sudo would ask for a password, which `sudo -n` does not allow.
    #[error("sudo asks for a password")]
    Password,
    #[error("{0}")]
    Failed(String),
    #[error("sudo has not answered in {} s", LOADER_LIMIT.as_secs())]
    Silent,
}
