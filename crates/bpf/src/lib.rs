//! The BPF programs (`src/bpf/tracer.bpf.c`), their wire structs ([`wire`]), the kernel's
//! features ([`Kernel`]) and the loader ([`Tracer`]). Files and reports are other crates'.

mod kernel;
mod slots;
mod tracer;
pub mod wire;

pub use kernel::Kernel;
pub use tracer::{CpuAccount, Receive, Record, Rings, Settings, Storage, Tracer, Usage};

/// Why tracing cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel carries no type information.
    #[error("this kernel has no BTF (/sys/kernel/btf/vmlinux is missing)")]
    NoBtf,
    /// The kernel lacks something that the programs need.
    #[error("this kernel lacks {what} (Linux {since} and later have it)")]
    Missing {
        /// What, in words.
        what: String,
        /// The version that brought it.
        since: &'static str,
    },
    /// The kernel refused for lack of privileges.
    #[error("no permission to {action}")]
    Permission {
        /// What was refused.
        action: &'static str,
    },
    /// More CPUs than the programs have accounts for.
    #[error(
        "this machine has {found} CPUs, more than the {} that this version can record",
        wire::MAX_CPUS
    )]
    TooManyCpus {
        /// The kernel's number of possible CPUs.
        found: usize,
    },
    /// libbpf or the kernel refused for another reason.
    #[error("cannot {action}: {source}{}", note(.log))]
    Bpf {
        /// What was tried.
        action: &'static str,
        /// The error.
        source: libbpf_rs::Error,
        /// The last lines that libbpf and the kernel's verifier said.
        log: String,
    },
}

fn note(log: &str) -> String {
    if log.is_empty() {
        String::new()
    } else {
        format!("\n{}", log.trim_end())
    }
}
