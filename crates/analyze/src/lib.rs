//! From a trace to the times of every thread, process and program.
//!
//! [`order`] merges the events of all streams, `tracker` follows every task through them
//! with the states of `state` and the gaps of `gaps`, the collectors of `collect` take what
//! is no state, and `build` makes the [`model`]. The questions of `questions`,
//! [`critical_path`], [`what_if`], [`parallelism`], [`waits`] and others, evaluate its
//! [`timeline`]. Knows nothing of BPF, of recording, of rendering.
#![forbid(unsafe_code)]

mod allowed;
pub mod arena;
mod build;
mod clock_check;
mod collect;
mod concurrency;
pub mod containers;
mod gaps;
mod ids;
pub mod job_tools;
pub mod kinds;
pub mod model;
pub mod order;
mod questions;
mod reading;
pub mod servers;
mod share;
mod state;
pub mod status;
mod tid_map;
pub mod timeline;
mod times;
pub mod tools;
mod tracker;

use tr_format::event::CpuId;
use tr_format::reader::Trace;

pub use crate::collect::{disks, dns, outside, stacks, syscalls, workers};
pub use crate::model::Analysis;
pub use crate::questions::{
    awaited, contention, critical_path, jobs, killed, load, machine, own, parallelism, programs,
    schedule, stopped, waits, what_if,
};
pub use crate::reading::{analyze_watched, Watch};
pub use crate::share::share;

/// Waits for memory, and kills for lack of it.
pub mod memory {
    pub use crate::collect::memory::{MemoryEvent, MemoryKind};
    pub use crate::questions::shortage::{killed, waits, Killed, MemoryWaits};
}

/// TCP connections: who connected to whom, when, how many bytes went each way.
pub mod network {
    pub use crate::collect::network::{Connection, Online};
    pub use crate::questions::network::{among_themselves, waited, Ends, Waited};
}

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
