//! Prints hints for a COMMAND that is not found: the command line that was probably meant.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use tr_text::called::TR;

use super::options::Args;
use crate::{args, errors};

/// Prints why COMMAND of `tr record` could not be executed. If no program of this name exists, also suggests
/// the command line that the user probably meant.
pub fn say_not_executed(args: &Args, errno: Option<Errno>) {
    if let (Some(errno), Some(command)) = (errno, args.command.first()) {
        errors::not_executed(command.as_bytes(), errno);
        if let Some(line) = meant(args).filter(|_| errno == Errno::ENOENT) {
            eprintln!("    did you mean: {line}");
        }
    }
}

/// The builtin commands of shells, such as `cd`, that users take for programs.
const BUILTINS: [&str; 8] = [
    "cd", "source", ".", "export", "ulimit", "umask", "set", "eval",
];

/// The command line that the user probably meant when COMMAND of `tr record` is not a program: it is a line
/// for a shell, an assignment or builtin of a shell, or the value of an option that needs `=` before it.
/// `None` if there is no guess.
fn meant(args: &Args) -> Option<String> {
    let [first, rest @ ..] = args.command.as_slice() else {
        return None;
    };
    let word = first.to_str()?;
    let all = || args.command.iter().map(|arg| arg.as_bytes());
    if args.stacks.is_some() && word.parse::<u32>().is_ok() {
        Some(with_value("--stacks", word, rest))
    } else if args.off_cpu_stacks.is_some() && args::length(word).is_ok() {
        Some(with_value("--off-cpu-stacks", word, rest))
    } else if is_assignment(word) {
        Some(record(&[b"--", b"env"], all()))
    } else if BUILTINS.contains(&word) {
        let line = format!("{} && make", tr_text::escape::command(all()));
        Some(by_shell(line.as_bytes()))
    } else if rest.is_empty() && is_shell_line(word) {
        Some(by_shell(first.as_bytes()))
    } else {
        None
    }
}

/// The command line of `tr record` with the given options and COMMAND, quoted for a shell.
fn record<'a>(options: &[&'a [u8]], command: impl Iterator<Item = &'a [u8]>) -> String {
    let begin: [&[u8]; 2] = [TR.name().as_bytes(), b"record"];
    let words = begin.into_iter().chain(options.iter().copied());
    tr_text::escape::command(words.chain(command))
}

/// The command line of `tr record` in which an option has its value after `=`, as in `--stacks=99 -- make`.
/// Without the `=`, the value was taken for COMMAND.
fn with_value(option: &str, value: &str, command: &[OsString]) -> String {
    let option = format!("{option}={value}");
    let command = command.iter().skip_while(|arg| *arg == "--");
    let options: [&[u8]; 2] = [option.as_bytes(), b"--"];
    record(&options, command.map(|arg| arg.as_bytes()))
}

/// The command line of `tr record` that runs a line of shell code, by `sh -c`.
fn by_shell(line: &[u8]) -> String {
    record(&[b"--", b"sh", b"-c"], std::iter::once(line))
}

/// Whether a word is an assignment as a shell reads it: `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let mut bytes = name.bytes();
    let begins = bytes
        .next()
        .is_some_and(|byte| byte == b'_' || byte.is_ascii_alphabetic());
    begins && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// Whether a word contains characters, such as blanks or `|`, by which a shell would divide it. Such a word is a whole
/// line for a shell.
fn is_shell_line(word: &str) -> bool {
    word.contains(|letter: char| letter.is_whitespace() || "|&;<>$".contains(letter))
}
