//! Contains the helper processes, such as the loader of the BPF programs. They are started by another process of `tr`.
//! They have no options and no help, and clap does not know them.

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{setrlimit, Resource};
use nix::sys::signal::Signal;
use tr_record::Child;

use crate::{confine, errors};

/// The limit in bytes for the memory of the helper process that finds the functions of stacks. It includes
/// the files that the helper maps.
const MEMORY: u64 = 16 << 30;

/// The function to run if this process is one of the helpers that `tr` starts for itself; `None` for an
/// ordinary command line.
pub fn helper() -> Option<fn() -> ExitCode> {
    let only = only()?;
    match () {
        () if only == tr_record::LOADER => Some(load),
        () if only == tr_symbols::SERVER => Some(search),
        () => child().map(|_| wait as fn() -> ExitCode),
    }
}

fn only() -> Option<OsString> {
    let mut args = std::env::args_os().skip(1);
    args.next().filter(|_| args.next().is_none())
}

fn done(result: Result<(), impl Display>) -> ExitCode {
    result.map_or_else(errors::failed, |()| ExitCode::SUCCESS)
}

/// Runs the loader of the BPF programs, which `tr record --sudo` starts as root.
fn load() -> ExitCode {
    done(tr_record::serve_as_loader(|| confine::to_reading(&[])))
}

/// Runs the search for the functions of sampled stacks, which `tr record --stacks` and `tr symbolize`
/// start as a process.
fn search() -> ExitCode {
    // A file from a stranger can keep the helper busy for long, so the helper ends at the latest when the process that
    // asked it ends.
    let _ = set_pdeathsig(Signal::SIGKILL);
    // The helper reads files that the recorded build has made. It therefore gives up writing files and using the
    // network.
    confine::to_reading(&["/".as_ref()]);
    let _ = setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY);
    let (requests, answers) = (std::io::stdin().lock(), std::io::stdout().lock());
    done(tr_symbols::serve(requests, answers))
}

/// The child process for which this helper waits. If `tr record` panics, this helper takes its place, waits for
/// COMMAND's end and returns COMMAND's status. `None` if the command line is not that of this helper.
fn child() -> Option<Child> {
    Child::parse(only()?.to_str()?)
}

fn wait() -> ExitCode {
    match child().map(tr_record::wait_for) {
        Some(Ok(status)) => ExitCode::from(tr_record::end_like(status)),
        _ => errors::failed(errors::NOT_WAITED),
    }
}
