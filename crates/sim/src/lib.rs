//! A simulated multi-CPU scheduler for tests, benchmarks and fuzzing. It emits the events
//! that the recorder would store **and the truth** about them.
//!
//! # How it works
//! A [`program::World`] has the programs and the initial processes. A [`config::Config`] adds
//! the machine, the span and a seed. A [`machine::Machine`] runs it, one action at a time in
//! the order of true time, and passes every event to a [`sink::Sink`]. Its accounts follow
//! its own state changes, never the events; after the run
//! [`machine::Machine::into_truth`] turns them into a [`truth::Truth`].
//!
//! The rules of the events are the kernel's: `kernel/sched/core.c` (`__schedule`,
//! `try_to_wake_up`, `wake_up_new_task`), `kernel/fork.c` (`kernel_clone`), `fs/exec.c`
//! (`de_thread`, `begin_new_exec`) and `kernel/exit.c` (`do_exit`, `exit_notify`).
//!
//! # From events to a trace
//! A [`recording::Recording`] keeps the events by ring. The injectors in [`inject`] put faults into it
//! (events that are written late into their ring, wrong clocks, lost spans, …) and return their changes.
//! [`recording::Recording::blocks`] cuts it into blocks in file order, [`mod@file`] writes a
//! trace file, [`timeline`] draws it.
// The machine makes all indices into its tables itself, and never takes them from input, so they are always valid.
#![allow(clippy::indexing_slicing)]
#![forbid(unsafe_code)]

mod accounts;
mod agenda;
mod burial;
mod cpu;
mod draw;
mod exec;
mod exit;
mod fork;
mod observer;
mod pids;
mod process;
mod progress;
mod run;
mod sched;
mod steps;
mod sums;
mod table;
mod task;

pub mod blocks;
pub mod config;
pub mod cpu_time;
pub mod examples;
pub mod file;
pub mod fleet;
pub mod inject;
pub mod machine;
pub mod network;
pub mod program;
pub mod recording;
pub mod scenario;
pub mod sink;
pub mod strategy;
pub mod timeline;
pub mod truth;
