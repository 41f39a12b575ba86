//! Stored events and the trace file: writer, reader, recovery. Independent of BPF, the machine
//! and reports.
//!
//! [`Trace::open`](reader::Trace::open) finds the frames of a file. A frame is read when it is needed, on its own:
//!
//! ```
//! use std::fs::File;
//!
//! use tr_format::event::{LifeKind, Stream};
//! use tr_format::reader::Trace;
//! use tr_format::sched::SchedBlock;
//! use tr_format::source::Source;
//!
//! let trace = Trace::open(Source::file(File::open("../../fixtures/traces/demo.bin")?)?)?;
//!
//! // The buffers are used for one frame after another.
//! let (mut switches_and_wakings, mut events) = (SchedBlock::default(), Vec::new());
//! let (mut scheduled, mut programs) = (0, Vec::new());
//! for frame in trace.frames() {
//!     if let Stream::Cpu(_) = frame.stream {
//!         trace.read_sched(frame, &mut switches_and_wakings)?;
//!         scheduled += switches_and_wakings.len();
//!     } else {
//!         trace.read_life(frame, &mut events)?;
//!         for event in &events {
//!             if let LifeKind::Exec(exec) = &event.kind {
//!                 programs.push(String::from_utf8_lossy(&exec.filename).into_owned());
//!             }
//!         }
//!     }
//! }
//! assert!(scheduled > 0);
//! assert!(programs.iter().any(|program| program.ends_with("/make")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The events of a stream are in the order in which they were committed, which is nearly that of their times.
//! `tr-analyze` merges the streams.
#![doc = ""]
#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]
// Every public item of this crate has a doc comment. The other crates are used only by `tr`, so they need a doc comment
// only where a name does not explain itself.
#![warn(missing_docs)]

// The unit tests and the tests in tests/ share functions that make events. In these functions, the name of this crate
// is `tr_format`.
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
mod others;
pub mod outline;
pub mod reader;
mod reason;
mod recorder;
pub mod sched;
pub mod scripts;
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
