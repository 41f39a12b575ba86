//! From a trace to the times of every thread, process and program.
//!
//! [`order`] merges the events of all streams, `tracker` follows every task through them
//! with the states of `state` and the gaps of `gaps`, and `build` makes the [`model`].
//! [`critical_path`], [`what_if`], [`parallelism`] and [`waits`] evaluate the model's
//! [`timeline`]. Knows nothing of BPF, of recording, of rendering.
#![forbid(unsafe_code)]

mod arena;
pub mod awaited;
mod build;
mod clock_check;
mod concurrency;
pub mod critical_path;
pub mod disks;
pub mod dns;
mod gaps;
mod graph;
pub mod machine;
pub mod memory;
pub mod model;
pub mod network;
pub mod order;
pub mod parallelism;
pub mod programs;
mod reading;
pub mod schedule;
pub mod stacks;
mod state;
pub mod syscalls;
mod tid_map;
pub mod timeline;
pub mod tools;
mod tracker;
pub mod waits;
pub mod what_if;

use tr_format::event::CpuId;
use tr_format::reader::Trace;

pub use crate::model::Analysis;
pub use crate::reading::Watch;

/// The part of a trace to analyze.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// From here on, in ns since the trace's start.
    pub from: Option<u64>,
    /// Up to here, in ns since the trace's start.
    pub to: Option<u64>,
    /// Only time on this CPU counts as on-CPU; time on others counts as unknown.
    pub cpu: Option<CpuId>,
    /// Keep each thread's changes of state, 16 bytes for each.
    pub timeline: bool,
    /// Keep the time of each sample of a stack, 32 bytes for each: [`stacks::Stacks::timed`].
    pub samples: bool,
}

/// Analyzes a trace. Damage and loss are no error: they stand in
/// [`model::Quality`], and their time is unknown.
pub fn analyze(trace: &Trace, options: &Options) -> Analysis {
    analyze_watched(trace, options, &mut |_, _| None)
}

/// [`analyze`], which reports progress, and can be stopped.
pub fn analyze_watched(trace: &Trace, options: &Options, watch: Watch<'_>) -> Analysis {
    reading::read(trace, options, watch)
}
