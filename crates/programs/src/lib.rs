//! Interprets command lines of recorded processes: the role of the program in a build, the label
//! for reports, the build step that it is, its number of jobs, its version. The crate reads
//! arguments alone and knows nothing of recordings. [`table`] has a row for each known program.
#![forbid(unsafe_code)]

pub mod changes;
pub mod checks;
pub mod clocks;
pub mod command_line;
pub mod compilation;
pub mod job_tools;
pub mod outline;
pub mod own;
pub mod program_name;
pub mod recipes;
pub mod rules;
pub mod script_words;
pub mod steps;
pub mod table;
pub mod time_names;
pub mod tools;
pub mod versions;
pub mod words;
