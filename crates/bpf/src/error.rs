//! The errors that keep tracing from starting.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::messages::keep;
use crate::refusal::Refusal;
use crate::wire;

/// An error that keeps tracing from starting.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel does not let this process trace. The [`Refusal`] names the missing right, file system or feature.
    #[error("{0}")]
    Refused(Refusal),
    /// The kernel lacks a feature that the BPF programs need.
    #[error("this kernel lacks {what} (Linux {since} and later have it)")]
    Missing {
        /// The missing feature of the kernel, in words.
        what: String,
        /// The first version of Linux that has the missing feature.
        since: &'static str,
    },
    /// The machine has more CPUs than the BPF programs support.
    #[error(
        "this machine has {found} CPUs, more than the {} that this version can record",
        wire::MAX_CPUS
    )]
    TooManyCpus {
        /// The number of CPUs that can exist on this machine, as the kernel reports it.
        found: usize,
    },
    /// An action of libbpf or the kernel failed, and no [`Refusal`] was found; [`crate::log`] has more.
    #[error("cannot {action}: {source}")]
    Bpf {
        action: &'static str,
        source: libbpf_rs::Error,
    },
}

/// Turns an error of libbpf into an [`Error`] that says why tracing cannot start. The error number does not show
/// whether rights were missing, because the verifier returns EACCES as well. So [`Refusal::of`] examines the process
/// and the kernel.
pub(crate) fn failed(action: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
    move |source| match Refusal::of(&source) {
        Some(refusal) => {
            keep(&format!("cannot {action}: {source}\n"));
            Error::Refused(refusal)
        }
        None => Error::Bpf { action, source },
    }
}

/// Duplicates a file descriptor, so that the caller owns the copy.
pub(crate) fn own(fd: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    let copy = fd.try_clone_to_owned();
    copy.map_err(|error| failed("copy the descriptors of the BPF programs")(error.into()))
}

/// Returns the error that a program is missing in the compiled object of the BPF programs.
pub(crate) fn missing() -> libbpf_rs::Error {
    io::Error::from(io::ErrorKind::NotFound).into()
}
