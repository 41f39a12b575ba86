//! What a recording means, as typed values: what failed and why, the verdict on each step, the critical path, what to
//! change, and whose time it was. Reports, exports and forecasts print these values.
#![forbid(unsafe_code)]

pub mod advice;
pub mod ancestors;
pub mod audit;
pub mod calls;
pub mod ci;
pub mod ci_jobs;
pub mod compile_commands;
pub mod course;
pub mod cpu_need;
pub mod cpu_time;
pub mod demands;
pub mod depends;
pub mod disk;
pub mod exit;
pub mod failure;
pub mod frames;
pub mod identity;
pub mod imports;
pub mod job_figures;
pub mod kinds;
pub mod known;
pub mod label;
pub mod loads;
pub mod memory;
pub mod network;
pub mod normal;
pub mod now;
pub mod parts;
pub mod path;
pub mod path_steps;
pub mod query;
pub mod recording;
pub mod servers;
pub mod shares;
pub mod size;
pub mod step_sums;
pub mod steps;
pub mod timeout;
pub mod untraced;
pub mod verdicts;
pub mod versions;
pub mod view;
pub mod warnings;
pub mod who;

pub use recording::Recording;
