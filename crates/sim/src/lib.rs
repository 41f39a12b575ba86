//! A simulated multi-CPU scheduler, for tests, benchmarks and fuzzing. It emits
//! the events that the recorder would store **and the truth** about them.
//!
//! # How it works
//! A [`program::World`] says which programs there are and who is alive at the
//! beginning; a [`config::Config`] adds the machine, the span and a seed. A
//! [`machine::Machine`] runs it, one action at a time, in the order of true
//! time, and hands every event to a [`sink::Sink`]. Its accounts are kept from
//! its own state changes and never read back from the events; when the run is
//! over [`machine::Machine::into_truth`] gives them as a [`truth::Truth`].
//!
//! The rules of what is emitted when are the kernel's: `kernel/sched/core.c`
//! (`__schedule`, `try_to_wake_up`, `wake_up_new_task`), `kernel/fork.c`
//! (`kernel_clone`), `fs/exec.c` (`de_thread`, `begin_new_exec`) and
//! `kernel/exit.c` (`do_exit`, `exit_notify`).
//!
//! # From events to a trace
//! [`recording::Recording`] keeps the events per ring; the injectors in
//! [`inject`] change it (late writes, clocks that are off, lost spans, …) and
//! say what they did; [`recording::Recording::blocks`] cuts it into blocks in
//! file order; [`mod@file`] writes it as a trace file. [`timeline`] draws it.
// Indices into the machine's own tables are made by the machine itself, in its
// hot loop; nothing here is read from a file or a user.
#![allow(clippy::indexing_slicing)]
#![forbid(unsafe_code)]

mod accounts;
mod agenda;
mod cpu;
mod draw;
mod exec;
mod exit;
mod fork;
mod observer;
mod pids;
mod process;
mod sched;
mod steps;
mod table;
mod task;

pub mod blocks;
pub mod config;
pub mod file;
pub mod inject;
pub mod machine;
pub mod program;
pub mod recording;
pub mod scenario;
pub mod sink;
pub mod strategy;
pub mod timeline;
pub mod truth;
