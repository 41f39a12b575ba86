//! Records scheduler and process events in the kernel: the BPF programs (`src/bpf/`), the structs that they
//! exchange with user space ([`wire`]), the kernel's features ([`Kernel`]), the loader of the programs
//! ([`Programs`]) and their reader ([`Tracer`]). Other crates write trace files and make reports.

mod btf;
mod calls;
mod error;
mod kernel;
mod life;
mod living;
mod load;
mod messages;
mod names;
mod programs;
mod refusal;
mod samplers;
mod settings;
mod shared;
mod skel;
mod slots;
mod syscalls;
mod tracer;
pub mod wire;

pub use error::Error;
pub use kernel::{Extras, Kernel};
pub use living::Living;
pub use messages::log;
pub use programs::{Parts, Programs};
pub use refusal::{Missing, Refusal, Remedy, RemedyKind};
pub use settings::{Containers, Sampling, Settings};
pub use shared::MEMORY;
pub use slots::Record;
pub use tracer::{CpuAccount, Helper, Tracer, Usage};
