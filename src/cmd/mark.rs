//! Implements `tr mark NAME`, which puts a name into a recording in progress. The program does nothing for that: its
//! own exec is the mark. The recorder stores every exec with its command line, and the analysis recognizes the command
//! line (`steps::rules::Mark`). So `tr mark` needs no connection to the recorder and works under sudo and in
//! containers.
//!
//! A build may call `tr mark` thousands of times. To be fast, it runs before Rust's runtime starts, as command lines
//! for the system's `tr` do (`passthrough.rs`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use crate::called;
use crate::errors::Done;
use crate::inherited::become_command;
use crate::subcommand::{Program, Subcommand};

/// Name a moment or a span in the recording in progress
///
/// tr analyze --report steps has the marks. Outside of a recording nothing happens.
#[derive(clap::Args, Debug)]
#[command(override_usage = "\
tr mark NAME                    a moment
       tr mark NAME -- COMMAND [ARG]…  the time of COMMAND
       tr mark --begin NAME            the beginning of a span
       tr mark --end NAME              its end")]
#[command(after_help = "\
A span without an end lasts as long as the process that began it, such as the shell. It has
the time of that process and of all that the process starts meanwhile. Spans nest.

Exit status: 0, or COMMAND's (126 not executable, 127 not found); 2 for a wrong command line.

Examples:
  tr mark unit-tests -- make check
  tr mark --begin deploy; ./push.sh; tr mark --end deploy")]
pub struct Args {
    /// The name
    #[arg(value_name = "NAME")]
    name: Option<OsString>,
    /// Begin a span
    #[arg(long)]
    begin: bool,
    /// End the span of this name
    #[arg(long)]
    end: bool,
    /// The span is COMMAND's time
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs `tr mark` before clap is set up, if the arguments are valid: a name, `--begin` or `--end` with a name, or a
/// name and a command. Returns the exit status; `None` for any other arguments.
pub fn quickly(args: &[OsString]) -> Option<u8> {
    let is_name = |name: &OsString| !name.is_empty() && !name.as_bytes().starts_with(b"-");
    match args {
        [name] if is_name(name) => Some(0),
        [end, name] if (end == "--begin" || end == "--end") && is_name(name) => Some(0),
        [name, dashes, command @ ..] if is_name(name) && dashes == "--" && !command.is_empty() => {
            Some(become_command(command))
        }
        _ => None,
    }
}

impl Subcommand for Args {
    fn run(self, program: &Program) -> Done {
        Ok(refuse(program))
    }
}

/// Prints that the arguments of `tr mark` have no valid form ([`quickly`] accepts the valid ones), and the
/// usage. Returns the exit status.
fn refuse(program: &Program) -> ExitCode {
    let mut cli = called::command(program.rows);
    cli.build();
    let usage = cli
        .find_subcommand_mut("mark")
        .map(|mark| mark.render_usage());
    let usage = usage.map_or(String::new(), |usage| usage.to_string());
    message!("mark: a name that begins with no dash, in one of these forms\n{usage}");
    ExitCode::from(2)
}
