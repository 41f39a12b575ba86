//! Passes command lines on to the system's `tr`, because `tr` is also the name of a POSIX tool: a command line without
//! our subcommands goes to the next `tr` on PATH, arguments unchanged. If this program is called by its second name,
//! `tr-trace`, such a command line is an error.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tr_text::called;
use tr_text::called::TR;

use crate::cmd::{self, mark};
use crate::mistyped::Words;
use crate::{errors, inherited, mistyped};
use tr_output::status;

/// A command line is for this program, not for the system's `tr`, if its first argument is one of these words or the
/// name of a subcommand. A test compares the list with clap's options. Deriving the list from them here would take
/// longer than the exec of the system's `tr`.
const OUR_WORDS: [&str; 6] = ["help", "--help", "-h", "--version", "-V", "--no-pager"];

/// The name of the environment variable that lists, separated by colons, the programs already tried. These programs are
/// skipped: a second copy of this program on PATH, or a script that calls us, would otherwise cause an endless loop.
const TRIED_VARIABLE: &str = "TR_PASSED_ON_TO";

/// The exit status of a command line with a mistyped subcommand.
const MISTYPED_STATUS: u8 = 2;

/// Whether the first argument shows that the command line is for this program, and not for the system's `tr`.
pub fn is_ours(first: Option<&OsStr>) -> bool {
    first.is_some_and(|first| ours().any(|ours| first == ours))
}

/// All words that, as the first argument, show that a command line is for this program and not for the system's `tr`.
fn ours() -> impl Iterator<Item = &'static str> {
    let names = cmd::ROWS.iter().flat_map(|row| row.names);
    names.chain(&OUR_WORDS).copied()
}

/// The words with which a mistyped first argument is compared: the names of the subcommands, and the names that other
/// tools have for them.
fn words() -> Words {
    let others = |row: &'static crate::subcommand::Row| {
        let words = row.other_words.iter();
        words.map(|word| (*word, row.name()))
    };
    Words {
        ours: ours().filter(|ours| !ours.starts_with('-')).collect(),
        others: cmd::ROWS.iter().flat_map(others).collect(),
    }
}

/// Stores the inherited state ([`inherited::look`]). Then handles `tr mark`, and command lines for the system's `tr`.
/// Both have to be fast, so they are handled before Rust's runtime starts. The setup of the runtime (memory map, stack
/// guard, signals) would be a sixth of the total time. Some C libraries pass no arguments to initialization functions.
/// With those, `main` handles these command lines.
extern "C" fn before_main() {
    inherited::look();
    // Test programs keep their arguments for the test harness.
    if !cfg!(test) && std::env::args_os().next().is_some() {
        if let Some(status) = before_clap() {
            std::process::exit(status.into());
        }
    }
}

#[used]
// SAFETY: the loader calls each pointer of this section once, before `main`,
// as a C function; `before_main` takes no arguments and needs nothing that the runtime sets up:
// no thread, no stack guard, no panic that would be caught.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

/// Handles the command lines that must be fast and need no parser: those for the system's `tr`, and `tr mark`. Returns
/// the exit status; `None` if clap has to parse the command line.
pub fn before_clap() -> Option<u8> {
    let mut args = std::env::args_os();
    called::set(args.next().as_deref());
    let first = args.next();
    match first.as_deref() {
        Some(first) if first == "mark" => mark::quickly(&args.collect::<Vec<_>>()),
        first if is_ours(first) => None,
        #[cfg(feature = "record")]
        Some(_) if crate::cmd::helpers::helper().is_some() => None,
        _ if TR.is_second() => unknown(),
        _ => Some(pass_on()),
    }
}

/// Handles a mistyped subcommand of `tr-trace`: prints which subcommand was probably meant. Under this name the program
/// passes nothing on to the system's `tr`. Returns the exit status; `None` if clap has to report the error.
fn unknown() -> Option<u8> {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    Some(ask(mistyped::near_ours(&args, &words())?, ""))
}

/// Replaces this process by the system's `tr`, or prints the answer to a mistyped subcommand. Returns an exit status
/// if this process goes on.
pub fn pass_on() -> u8 {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match mistyped::meant(&args, &words()) {
        Some(meant) => ask(meant, &systems()),
        None if mistyped::is_command(&args) => {
            let command = tr_text::escape::command(args.iter().map(|arg| arg.as_bytes()));
            ask(&format!("record -- {command}"), &systems())
        }
        None => exec(args),
    }
}

/// The path of the system's `tr` to which command lines are passed on, as text for a message.
fn systems() -> String {
    let path = inherited::path();
    let system = candidates(&path, OsStr::new(""), own()).into_iter().next();
    system.map_or(String::new(), |file| {
        format!(" (the system's tr: {})", errors::shown(&file))
    })
}

fn ask(meant: &str, system: &str) -> u8 {
    message!("did you mean `{TR} {meant}`?{system}");
    MISTYPED_STATUS
}

/// The device and the inode of this program's file, by which it is recognized on PATH.
fn own() -> Option<(u64, u64)> {
    let meta = std::fs::metadata("/proc/self/exe").ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Executes the next `tr` on PATH in place of this process. `Command::exec` of `std` cannot be used: it empties the
/// signal mask and resets SIGPIPE's action, which the other `tr` must inherit unchanged.
fn exec(args: Vec<OsString>) -> u8 {
    let path = inherited::path();
    let mut tried = std::env::var_os(TRIED_VARIABLE).unwrap_or_default();
    // The arguments and PATH came from the kernel as C strings, so none contains a NUL byte.
    let string = |text: &OsStr| CString::new(text.as_bytes()).unwrap_or_default();
    let args: Vec<CString> = std::iter::once(OsString::from("tr"))
        .chain(args)
        .map(|arg| string(&arg))
        .collect();
    let mut refused = None;
    for candidate in candidates(&path, &tried, own()) {
        tried = added(tried, &candidate);
        let file = string(candidate.as_os_str());
        let environment = inherited::original_environment();
        inherited::restore_sigpipe();
        inherited::restore_streams();
        let failed = match environment {
            None => {
                std::env::set_var(TRIED_VARIABLE, &tried);
                nix::unistd::execv(&file, &args)
            }
            Some(mut environment) => {
                let ours = [TRIED_VARIABLE.as_bytes(), b"="].concat();
                environment.retain(|variable| !variable.as_bytes().starts_with(&ours));
                let ours = [&ours, tried.as_bytes()].concat();
                environment.push(CString::new(ours).unwrap_or_default());
                nix::unistd::execve(&file, &args, &environment)
            }
        };
        let Err(errno) = failed;
        // A file that cannot be executed is skipped, as a shell does. The first one is remembered for the error
        // message.
        refused.get_or_insert((candidate, errno));
    }
    match refused {
        Some((file, errno)) => errors::not_executed(file.as_os_str().as_bytes(), errno),
        None => {
            message!("no subcommand given, and there is no other tr on PATH (try: tr help)");
            status::NOT_FOUND
        }
    }
}

/// The executable files named `tr` in the directories of PATH, in its order, to which a command line can be passed on.
/// Files that were already tried are left out, and so is this program's own file. `own` has its device and inode, by
/// which links to the file are recognized as well.
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

    #[test]
    fn only_subcommands_are_ours() {
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
        let mut cli = crate::called::command(cmd::ROWS);
        cli.build();
        let mut known: Vec<&str> = cli
            .get_subcommands()
            .flat_map(|command| {
                std::iter::once(command.get_name()).chain(command.get_all_aliases())
            })
            .collect();
        known.extend(["--help", "-h", "--version", "-V", "--no-pager"]);
        known.sort_unstable();
        let mut ours: Vec<&str> = ours().collect();
        // The names of subcommands that this program was built without are refused, so clap does not know them.
        let left_out = cmd::ROWS.iter().filter(|row| row.built.is_none());
        let left_out: Vec<&str> = left_out.flat_map(|row| row.names).copied().collect();
        ours.retain(|name| !left_out.contains(name));
        ours.sort_unstable();
        assert_eq!(ours, known);
    }

    #[test]
    fn tried_programs_are_listed() {
        let tried = added(OsString::new(), Path::new("/a/tr"));
        assert_eq!(added(tried, Path::new("/b/tr")), "/a/tr:/b/tr");
    }
}
