//! Several recordings compared or joined: `tr diff` with its gate, and `tr pipeline`.
#![forbid(unsafe_code)]

pub mod diff;
pub mod pipeline;
