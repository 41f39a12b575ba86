//! The BPF programs (`src/bpf/`), their wire structs ([`wire`]), the kernel's
//! features ([`Kernel`]), the loader of the programs ([`Programs`]) and their reader ([`Tracer`]). Other crates
//! write files and make reports.

mod btf;
mod calls;
mod kernel;
mod life;
mod living;
mod load;
mod messages;
mod names;
mod programs;
mod refusal;
mod samplers;
mod shared;
mod skel;
mod slots;
mod syscalls;
mod tracer;
pub mod wire;

pub use kernel::{Extras, Kernel};
pub use living::Living;
pub use messages::log;
pub use programs::{Containers, Parts, Programs, Sampling, Settings};
pub use refusal::{Missing, Refusal};
pub use shared::MEMORY;
pub use slots::Record;
pub use tracer::{CpuAccount, Helper, Tracer, Usage};

/// Why tracing cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel does not let this process trace.
    #[error("{0}")]
    Refused(Refusal),
    /// The kernel lacks something that the programs need.
    #[error("this kernel lacks {what} (Linux {since} and later have it)")]
    Missing {
        /// The missing feature, in words.
        what: String,
        /// The first version of Linux that has the feature.
        since: &'static str,
    },
    /// The machine has more CPUs than the programs support.
    #[error(
        "this machine has {found} CPUs, more than the {} that this version can record",
        wire::MAX_CPUS
    )]
    TooManyCpus {
        /// The kernel's number of possible CPUs.
        found: usize,
    },
    /// libbpf or the kernel refused for another reason; [`log`] has more.
    #[error("cannot {action}: {source}")]
    Bpf {
        action: &'static str,
        source: libbpf_rs::Error,
    },
}
