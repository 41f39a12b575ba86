//! `tr record` of a `tr` that was built without the feature `record`.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use crate::status;

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

pub fn run(_args: Args, _started: Instant) -> ExitCode {
    eprintln!(
        "tr: this tr was built without recording (cargo build --no-default-features)\n    \
         a tr that records: cargo build --release"
    );
    ExitCode::from(status::FAILED)
}
