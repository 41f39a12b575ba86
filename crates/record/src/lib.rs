//! A recording session: COMMAND is started stopped, the BPF programs are
//! attached, COMMAND is released, the rings are drained, the trace is written.
//!
//! This crate knows nothing of how a trace is analyzed.

mod command;
mod config;
mod convert;
mod host;
mod identity;
mod output;
mod queue;
pub mod redact;
mod rings;
mod session;
mod signals;
pub mod status;
mod urgency;
mod words;

pub use config::{ring_sizes, Config, Follow};
pub use output::{Tally, Target};
pub use session::{record, run_untraced, Alive, Report, LONG};

/// Why a recording could not start; COMMAND has not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output cannot be created.
    #[error("cannot write the trace: {0}")]
    Output(std::io::Error),
    /// The header cannot be written.
    #[error("cannot write the trace: {0}")]
    Format(tr_format::Error),
    /// Tracing cannot start.
    #[error(transparent)]
    Tracing(#[from] tr_bpf::Error),
    /// COMMAND cannot be started.
    #[error("cannot start the command: {0}")]
    Command(std::io::Error),
    /// `--cpu` names a CPU that is not online.
    #[error("there is no CPU {0} online")]
    NoSuchCpu(u16),
    /// `--pid` names no living process.
    #[error("there is no process {0}")]
    NoSuchProcess(u32),
    /// `--cgroup` names no cgroup.
    #[error("{} is no cgroup v2 directory: {source}", .path.display())]
    Cgroup {
        /// The path given.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// `--user` names nobody, or it is not for us to become another user.
    #[error("cannot run a command as {name}: {}", .source.desc())]
    User {
        /// The name given.
        name: String,
        /// What the system said.
        source: nix::errno::Errno,
    },
    /// A basic system call failed.
    #[error("cannot set up the recording: {0}")]
    System(std::io::Error),
}
