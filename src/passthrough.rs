//! `tr` is also the name of a POSIX tool: what is not ours goes to the next
//! `tr` on PATH, arguments untouched.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::sigpipe;

/// First arguments that are ours.
const OURS: [&str; 12] = [
    "record",
    "analyze",
    "info",
    "dump",
    "verify",
    "recover",
    "help",
    "--help",
    "-h",
    "--version",
    "-V",
    "completions",
];

/// Whether a command line is for us.
pub fn is_ours(first: Option<&OsStr>) -> bool {
    first.is_some_and(|first| OURS.iter().any(|ours| first == *ours))
}

/// Replaces this process by the system's `tr`; returns only when there is none.
pub fn exec() -> ExitCode {
    let Some(program) = next_tr() else {
        eprintln!("tr: no subcommand given, and there is no other tr on PATH (try: tr help)");
        return ExitCode::from(127);
    };
    sigpipe::restore();
    let error = Command::new(&program)
        .arg0("tr")
        .args(std::env::args_os().skip(1))
        .exec();
    eprintln!("tr: cannot execute {}: {error}", program.display());
    ExitCode::from(126)
}

/// The first executable `tr` on PATH that is not this very file.
fn next_tr() -> Option<PathBuf> {
    let own = std::fs::metadata("/proc/self/exe")
        .ok()
        .map(|meta| (meta.dev(), meta.ino()));
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let directories = path.as_bytes().split(|b| *b == b':');
    directories
        .map(|dir| {
            PathBuf::from(OsStr::from_bytes(if dir.is_empty() { b"." } else { dir })).join("tr")
        })
        .find(|candidate| {
            std::fs::metadata(candidate).is_ok_and(|meta| {
                meta.is_file() && meta.mode() & 0o111 != 0 && Some((meta.dev(), meta.ino())) != own
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_words_are_ours() {
        for ours in ["record", "analyze", "--version", "help"] {
            assert!(is_ours(Some(ours.as_ref())), "{ours}");
        }
        for theirs in ["a-z", "-d", "records", "", "-cd"] {
            assert!(!is_ours(Some(theirs.as_ref())), "{theirs}");
        }
        assert!(!is_ours(None));
    }
}
