//! Stored events and the file that holds them: the writer, the reader, and
//! what it does with damage. Knows nothing of BPF, the machine or reports.
#![doc = ""]
#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod error;
pub mod event;
pub mod frame;
mod life;
pub mod meta;
mod metadata;
pub mod reader;
pub mod sched;
pub mod source;
mod varint;
pub mod writer;

pub use error::Error;
