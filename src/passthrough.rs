//! `tr` is also the name of a POSIX tool: what is not ours goes to the next
//! `tr` on PATH, arguments untouched.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{inherited, mistyped, status};

/// First arguments that are ours; a test holds them to the command line's own
/// list, which is not asked here because building it takes longer than the exec.
const OURS: [&str; 16] = [
    "record",
    "analyze",
    "analyse",
    "report",
    "diff",
    "info",
    "dump",
    "verify",
    "recover",
    "completions",
    "man",
    "help",
    "--help",
    "-h",
    "--version",
    "-V",
];

/// The variable that holds, with colons between, what was already passed on to.
/// A file of that list is not asked again: a second copy of this program on
/// PATH, or a script that calls us, would otherwise pass on to us for ever.
const TRIED: &str = "TR_PASSED_ON_TO";

/// The exit status after a mistyped subcommand.
const MISTYPED: u8 = 2;

/// Whether a command line is for us.
pub fn is_ours(first: Option<&OsStr>) -> bool {
    first.is_some_and(|first| OURS.iter().any(|ours| first == *ours))
}

/// Passes on what is not ours before Rust's runtime starts, which reads the memory map and
/// sets up a stack guard and signals for nothing: that is a sixth of what passing on costs.
/// A C library that hands initialization functions no arguments leaves it to `main`.
#[cfg_attr(test, allow(dead_code))]
pub fn before_main() {
    let mut args = std::env::args_os();
    if args.next().is_some() && !is_ours(args.next().as_deref()) {
        std::process::exit(run().into());
    }
}

/// Answers a mistyped subcommand, or replaces this process by the system's `tr`; returns
/// an exit status only when there is none.
pub fn run() -> u8 {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match mistyped::meant(&args, &OURS) {
        Some(meant) => ask(meant),
        None => exec(args),
    }
}

fn ask(meant: &str) -> u8 {
    let path = path();
    let system = candidates(&path, OsStr::new(""), own()).into_iter().next();
    let system = system.map_or(String::new(), |file| {
        let file = tr_report::escape::text(file.as_os_str().as_bytes());
        format!(" (the system's tr: {file})")
    });
    eprintln!("tr: did you mean `tr {meant}`?{system}");
    MISTYPED
}

fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into())
}

/// Device and inode of this program.
fn own() -> Option<(u64, u64)> {
    let meta = std::fs::metadata("/proc/self/exe").ok()?;
    Some((meta.dev(), meta.ino()))
}

/// `std`'s `Command::exec` is not used: it empties the signal mask and makes
/// SIGPIPE's action the default one, and both are to be as we found them.
fn exec(args: Vec<OsString>) -> u8 {
    let path = path();
    let mut tried = std::env::var_os(TRIED).unwrap_or_default();
    // Arguments and PATH came from the kernel as C strings: there is no NUL.
    let string = |text: &OsStr| CString::new(text.as_bytes()).unwrap_or_default();
    let args: Vec<CString> = std::iter::once(OsString::from("tr"))
        .chain(args)
        .map(|arg| string(&arg))
        .collect();
    let mut refused = None;
    for candidate in candidates(&path, &tried, own()) {
        tried = added(tried, &candidate);
        std::env::set_var(TRIED, &tried);
        inherited::restore_sigpipe();
        inherited::restore_streams();
        let errno = match nix::unistd::execv(&string(candidate.as_os_str()), &args) {
            Err(errno) => errno,
            Ok(never) => match never {},
        };
        // As a shell does: what cannot be executed is passed over.
        refused.get_or_insert((candidate, errno));
    }
    match refused {
        Some((candidate, errno)) => {
            eprintln!(
                "tr: cannot execute {}: {}",
                tr_report::escape::text(candidate.as_os_str().as_bytes()),
                errno.desc()
            );
            status::not_executed(errno)
        }
        None => {
            eprintln!("tr: no subcommand given, and there is no other tr on PATH (try: tr help)");
            status::NOT_FOUND
        }
    }
}

/// The executable files `tr` on PATH, in its order, but for this very file
/// (`own`: device and inode, so that links to it are known too) and for those
/// that were tried.
fn candidates(path: &OsStr, tried: &OsStr, own: Option<(u64, u64)>) -> Vec<PathBuf> {
    let tried: Vec<&[u8]> = tried.as_bytes().split(|b| *b == b':').collect();
    path.as_bytes()
        .split(|b| *b == b':')
        // An empty entry is the current directory.
        .map(|dir| Path::new(OsStr::from_bytes(if dir.is_empty() { b"." } else { dir })).join("tr"))
        .filter(|file| !tried.contains(&file.as_os_str().as_bytes()))
        .filter(|file| {
            std::fs::metadata(file).is_ok_and(|meta| {
                meta.is_file() && meta.mode() & 0o111 != 0 && Some((meta.dev(), meta.ino())) != own
            })
        })
        .collect()
}

fn added(tried: OsString, file: &Path) -> OsString {
    let mut bytes = tried.into_vec();
    if !bytes.is_empty() {
        bytes.push(b':');
    }
    bytes.extend_from_slice(file.as_os_str().as_bytes());
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn only_our_words_are_ours() {
        for ours in ["record", "analyze", "diff", "--version", "help"] {
            assert!(is_ours(Some(ours.as_ref())), "{ours}");
        }
        for theirs in ["a-z", "-d", "records", "", "-cd"] {
            assert!(!is_ours(Some(theirs.as_ref())), "{theirs}");
        }
        assert!(!is_ours(None));
    }

    #[test]
    fn every_subcommand_is_ours_and_nothing_else() {
        let mut cli = crate::Cli::command();
        cli.build();
        let mut known: Vec<&str> = cli
            .get_subcommands()
            .flat_map(|command| {
                std::iter::once(command.get_name()).chain(command.get_all_aliases())
            })
            .collect();
        known.extend(["--help", "-h", "--version", "-V"]);
        known.sort_unstable();
        let mut ours = OURS.to_vec();
        ours.sort_unstable();
        assert_eq!(ours, known);
    }

    #[test]
    fn what_was_tried_is_remembered() {
        let tried = added(OsString::new(), Path::new("/a/tr"));
        assert_eq!(added(tried, Path::new("/b/tr")), "/a/tr:/b/tr");
    }
}
