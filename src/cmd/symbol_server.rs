//! The search for functions, which `tr record --stacks` and `tr symbolize` run. It has no options, and no help: clap
//! does not know it.

use std::process::ExitCode;

use nix::sys::resource::{setrlimit, Resource};

use crate::{confine, status};

/// The most memory in bytes, mapped files included.
const MEMORY: u64 = 16 << 30;

/// Whether this is its command line.
pub fn is_meant() -> bool {
    let mut args = std::env::args_os().skip(1);
    args.next().is_some_and(|first| first == tr_symbols::SERVER) && args.next().is_none()
}

pub fn run() -> ExitCode {
    // A file of a stranger can keep it busy for long: it ends with who asked it, if not before.
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    // It reads files that a build has made: it can write none, and reach no network.
    confine::to_reading(&["/".as_ref()]);
    let _ = setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY);
    match tr_symbols::serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tr: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}
