//! Computes the times of every thread, process and program from a trace.
//!
//! - [`order`] merges the events of all streams in the order of time.
//! - `tracker` follows every task through these events. `state` has the states of a task, and `gaps` the times in which
//!   events are missing.
//! - `collect` keeps everything else that events show, for example about disks and connections.
//! - `build` makes the [`model`] from the results of the tracker and the collectors.
//! - `questions` evaluates the [`timeline`] of the model, in [`critical_path`], [`what_if`], [`parallelism`], [`waits`]
//!   and others.
//!
//! This crate does not depend on BPF, and it neither records nor renders.
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
pub mod kinds;
pub mod model;
pub mod order;
mod questions;
mod reading;
pub mod scratch;
pub mod servers;
mod share;
mod state;
pub mod status;
mod tid_map;
pub mod timeline;
mod times;
mod tracker;

use tr_format::event::CpuId;
use tr_format::reader::Trace;

pub use crate::collect::{disks, dns, outside, stacks, syscalls, workers};
pub use crate::model::Analysis;
pub use crate::questions::{
    awaited, contention, critical_path, ending, jobs, killed, load, machine, own, parallelism,
    programs, schedule, stopped, timers, waits, what_if,
};
pub use crate::reading::{analyze_watched, Watch};
use crate::scratch::Scratch;
pub use crate::share::share;

/// The waits of tasks for memory, and the tasks that the kernel killed because memory was missing.
pub mod memory {
    pub use crate::collect::memory::{MemoryEvent, MemoryKind};
    pub use crate::questions::shortage::{killed, waits, Killed, MemoryWaits};
}

/// TCP connections: which thread connected to which address, when, and how many bytes went each way.
pub mod network {
    pub use crate::collect::network::{Connection, Online};
    pub use crate::questions::network::{among_themselves, is_local, waited, Ends, Waited};
}

/// The part of a trace to analyze, and the facts to keep of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The beginning of the analyzed part, in ns since the start of the trace; `None` for the start.
    pub from: Option<u64>,
    /// The end of the analyzed part, in ns since the start of the trace; `None` for the end of the trace.
    pub to: Option<u64>,
    /// If set, only a thread's time on this CPU counts as on-CPU, and its time on other CPUs counts as
    /// unknown.
    pub cpu: Option<CpuId>,
    /// Whether to keep each thread's changes of state. Each change takes four to eight bytes.
    pub timeline: bool,
    /// The file to which the threads' changes of state are moved when they take more than some MiB. Without such a
    /// file, all changes of state stay in memory.
    pub scratch: Option<&'static Scratch>,
    /// Whether to keep the time of each sample of a stack ([`stacks::Stacks::timed`]). Each sample takes 32
    /// bytes.
    pub samples: bool,
    /// Whether the general code, which is slower than the tracker's fast path, has to process every event. The result
    /// of the analysis is the same; the option is for tests.
    pub without_fast_path: bool,
}

/// Analyzes a trace. Damage of the file and losses of events are not errors: [`model::Quality`] lists them,
/// and the affected time counts as unknown.
pub fn analyze(trace: &Trace, options: &Options) -> Analysis {
    analyze_watched(trace, options, &mut |_, _| None)
}
