//! Stored events and the trace file: writer, reader, recovery. Independent of BPF, the machine
//! and reports.
#![doc = ""]
#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]
// All other crates are parts of `tr` alone: there a doc comment says what a name does not.
#![warn(missing_docs)]

// The tests of the files in here share events with those in tests/.
#[cfg(test)]
extern crate self as tr_format;

#[macro_use]
mod named;

mod block;
pub mod ci;
mod codec;
pub mod container;
pub mod counters;
pub mod device;
pub mod dns;
pub mod error;
pub mod event;
pub mod frame;
mod ids;
mod index;
pub mod limits;
pub mod mask;
pub mod meta;
pub mod network;
pub mod outline;
pub mod reader;
mod reason;
mod recorder;
pub mod sched;
mod section;
mod show;
pub mod source;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod spec;
pub mod stack;
pub mod tally;
mod task;
pub mod trace_context;
mod varint;
pub mod wait_status;
mod walk;
pub mod writer;
mod zip;

pub use error::{Error, Fault};
