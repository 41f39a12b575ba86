//! From a trace to the times of every thread, process and program.
#![forbid(unsafe_code)]

pub mod model;
