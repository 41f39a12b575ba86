//! The questions that reports put to the model and its timeline, such as the critical path.

pub mod awaited;
pub mod contention;
pub mod critical_path;
pub mod ending;
mod graph;
pub mod jobs;
pub mod killed;
pub mod load;
pub mod machine;
pub mod network;
pub mod own;
pub mod parallelism;
pub mod programs;
pub mod schedule;
pub(crate) mod shortage;
pub mod stopped;
pub(crate) mod ticks;
pub mod timers;
pub mod waits;
pub mod what_if;
