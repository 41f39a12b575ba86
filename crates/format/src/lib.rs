//! Stored events and the file that holds them.
#![forbid(unsafe_code)]

mod block;
pub mod error;
pub mod event;
pub mod frame;
mod index;
pub mod limits;
pub mod meta;
pub mod reader;
mod scan;
pub mod sched;
mod section;
pub mod source;
mod varint;
pub mod writer;
mod zip;

pub use error::{Error, Fault};
