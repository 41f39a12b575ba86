//! Compares several recordings (`tr diff` with its gate), or joins them (`tr pipeline`).
#![forbid(unsafe_code)]

pub mod diff;
pub mod pipeline;
