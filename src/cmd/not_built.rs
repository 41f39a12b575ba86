//! Implements `tr record` in a program that was built without the feature `record`: it prints that it cannot record.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::errors::Done;
use crate::subcommand::{Program, Subcommand};
use tr_output::status;

/// Record a command (not built into this tr)
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  cargo build --release                  build a tr that records")]
pub struct Args {
    /// Options and COMMAND of a tr that can record
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

impl Subcommand for Args {
    const FAILED: Option<u8> = Some(status::FAILED);

    fn run(self, _: &Program) -> Done {
        message!(
            "this tr was built without recording (cargo build --no-default-features --features reading)\n    \
             a tr that records: cargo build --release"
        );
        Err(ExitCode::from(status::FAILED))
    }
}
