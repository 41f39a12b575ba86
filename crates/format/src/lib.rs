//! Stored events and the file that holds them.
#![forbid(unsafe_code)]

pub mod event;
pub mod meta;
