//! What a command line is: the family and the role of a program, its label, the step that it is, its number of jobs, its
//! version. It reads arguments alone and knows nothing of recordings.
#![forbid(unsafe_code)]

pub mod changes;
pub mod command_line;
pub mod job_tools;
pub mod steps;
pub mod tools;
pub mod versions;
