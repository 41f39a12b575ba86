//! Stored events and the trace file: writer, reader, recovery. Independent of BPF, the machine
//! and reports.
#![doc = ""]
#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod block;
pub mod counters;
pub mod device;
pub mod dns;
pub mod error;
pub mod event;
pub mod frame;
mod index;
pub mod limits;
pub mod meta;
pub mod network;
pub mod outline;
pub mod reader;
mod reason;
pub mod sched;
mod section;
pub mod source;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod spec;
pub mod stack;
pub mod tally;
mod varint;
mod walk;
pub mod writer;
mod zip;

pub use error::{Error, Fault};
