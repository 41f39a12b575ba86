//! What runs for another process of `tr`'s that started this one. It has no options and no help: clap does not know
//! it.

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{setrlimit, Resource};
use nix::sys::signal::Signal;
use tr_record::Child;

use crate::{confine, errors};

/// The most memory of the search for functions in bytes, mapped files included.
const MEMORY: u64 = 16 << 30;

/// The helper of this command line.
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

/// The loader of the BPF programs, which `tr record --sudo` runs as root.
fn load() -> ExitCode {
    done(tr_record::serve_as_loader(|| confine::to_reading(&[])))
}

/// The search for functions, which `tr record --stacks` and `tr symbolize` run.
fn search() -> ExitCode {
    // A file of a stranger can keep it busy for long: it ends with who asked it, if not before.
    let _ = set_pdeathsig(Signal::SIGKILL);
    // It reads files that a build has made: it can write none, and reach no network.
    confine::to_reading(&["/".as_ref()]);
    let _ = setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY);
    let (requests, answers) = (std::io::stdin().lock(), std::io::stdout().lock());
    done(tr_symbols::serve(requests, answers))
}

/// COMMAND of a `tr record` that has panicked, which waits for it by this process.
fn child() -> Option<Child> {
    Child::parse(only()?.to_str()?)
}

fn wait() -> ExitCode {
    match child().map(tr_record::wait_for) {
        Some(Ok(status)) => ExitCode::from(tr_record::end_like(status)),
        _ => errors::failed(errors::NOT_WAITED),
    }
}
