//! The loader of the BPF programs, which `tr record --sudo` runs as root. It has no options, and
//! no help: clap does not know it.

use std::process::ExitCode;

use crate::{confine, status};

/// Whether this is the command line of the loader.
pub fn is_meant() -> bool {
    let mut args = std::env::args_os().skip(1);
    args.next().is_some_and(|first| first == tr_record::LOADER) && args.next().is_none()
}

pub fn run() -> ExitCode {
    match tr_record::serve_as_loader(|| confine::to_reading(&[])) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tr: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}
