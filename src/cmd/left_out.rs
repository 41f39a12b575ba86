//! Prints an explanation in place of a subcommand that this program was built without.

use std::process::ExitCode;

use crate::errors;

/// Prints that this build of `tr` lacks the subcommand, and how to get a program that has it.
/// Returns the exit status.
pub fn explain(name: &str) -> ExitCode {
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
