//! Waits for COMMAND in place of a `tr record` that has panicked, which executes it. It has no options, and no help:
//! clap does not know it.

use std::process::ExitCode;

use tr_record::{status, Child};

/// COMMAND, by the only argument.
fn child() -> Option<Child> {
    let mut args = std::env::args_os().skip(1);
    let child = Child::parse(args.next()?.to_str()?)?;
    args.next().is_none().then_some(child)
}

/// Whether this is its command line.
pub fn is_meant() -> bool {
    child().is_some()
}

/// Runs it.
pub fn run() -> ExitCode {
    match child().map(tr_record::wait_for) {
        Some(Ok(status)) => ExitCode::from(tr_record::end_like(status)),
        _ => {
            eprintln!("tr: cannot wait for the command: its exit status is not known");
            ExitCode::from(status::FAILED)
        }
    }
}
