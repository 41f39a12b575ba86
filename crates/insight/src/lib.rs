//! Computes the facts of a recording, as typed values: its steps and the verdict on each step, the critical path, and
//! which tasks used the time. The search for failures, advice, reports, exports and forecasts begin with these values.
#![forbid(unsafe_code)]

/// The times of CPUs: what each CPU ran, who shared the CPUs, and how many CPUs the build wanted and needs.
pub mod cpus;
/// The time of functions from sampled stacks, and the names of the stacks' frames.
pub mod functions;
/// The critical path: its times by use, by step and by kind of time.
pub mod path;
/// The recorded processes: their labels, roles, ends and relatives, and what makes their command lines equal.
pub mod processes;
/// The recording itself: where it was made, what other files belong to it, and what it lacks.
pub mod recordings;
/// The figures of the machine and of the job: memory, disks, the network, servers, system calls, the size of a runner.
pub mod resources;
/// The steps of a build: compiled files, targets, tests, marks.
pub mod steps;
/// The verdict on each step, and the parts of a wall time.
pub mod verdicts;
/// The choice of a user: the processes that a report covers, their order and their groups.
pub mod views;
/// The waits of tasks off CPU, and histograms of durations.
pub mod waits;

pub use recordings::recording::Recording;
