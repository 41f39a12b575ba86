//! The subcommands that a `tr` which records alone lacks.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::errors;

pub fn run(words: &[OsString]) -> ExitCode {
    let name = words.first().map(|word| word.to_string_lossy());
    let name = tr_text::escape::text(name.unwrap_or_default().as_bytes());
    eprintln!(
        "tr: no subcommand {name}: this tr records alone (scripts/build.sh --record-only)\n    \
         a tr that reads recordings, on any machine: cargo build --release"
    );
    ExitCode::from(errors::UNREADABLE)
}
