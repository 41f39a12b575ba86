//! Answers for the subcommands that this `tr` was built without.

use std::process::ExitCode;

use crate::errors;

/// Prints that the subcommand of this name is missing. Returns the exit status.
pub fn run(name: &str) -> ExitCode {
    let (why, how) = if !cfg!(feature = "report") {
        (
            "this tr records alone (scripts/build.sh --record-only)",
            "a tr that reads recordings, on any machine",
        )
    } else {
        ("this tr was built without it", "a whole tr")
    };
    errors::refused(format!(
        "no subcommand {name}: {why}\n    {how}: cargo build --release"
    ))
}
