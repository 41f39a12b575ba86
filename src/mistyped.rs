//! Recognizes mistyped subcommands: `tr recrod make` gets "did you mean", `tr recrod RECROD` goes to the system's
//! `tr`.
//!
//! A build script's `tr` must never break, so a command line that POSIX or GNU `tr` accepts passes through, except:
//!
//! * if an argument is the path of an existing recording;
//! * if the first word resembles a subcommand, and another argument is an option that no `tr` has, or a file name that
//!   ends in `.bin`;
//! * if the first word resembles `record`, and the second one is the name of a program.
//!
//! If standard input is a terminal, no script depends on the answer. Every word that resembles a subcommand, or is
//! another tool's word for it, then counts as mistyped, and the name of a program counts as a COMMAND without
//! `record --`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tr_format::frame;

use crate::inherited;

/// The words with which the first word of a mistyped command line is compared.
pub struct Words {
    pub ours: Vec<&'static str>,
    /// The words that other tools use for a subcommand of `tr`, each with the name of that subcommand.
    pub others: Vec<(&'static str, &'static str)>,
}

/// The long options of GNU `tr`, which accepts every unambiguous beginning of them.
const LONG_OPTIONS: [&str; 6] = [
    "complement",
    "delete",
    "squeeze-repeats",
    "truncate-set1",
    "help",
    "version",
];

/// The name of the subcommand that the user probably meant by these arguments (without the program's name). The first
/// word may be a mistyped name, or the word of another tool for a subcommand. If the first word is neither, but an
/// argument is a recording, the subcommand is `analyze`.
pub fn near_ours(args: &[OsString], words: &Words) -> Option<&'static str> {
    let word = args.iter().find(|arg| !is_option(arg))?;
    let near = word.to_str().and_then(|word| near(word, &words.ours));
    let other = words.others.iter().find(|(theirs, _)| word == theirs);
    let recording = || args.iter().any(|arg| is_recording(arg.as_ref()));
    near.or(other.map(|(_, ours)| *ours))
        .or_else(|| recording().then_some("analyze"))
}

/// The name of the subcommand that the arguments probably mean; `None` if they may be for the system's `tr`.
pub fn meant(args: &[OsString], words: &Words) -> Option<&'static str> {
    let word = args.iter().find(|arg| !is_option(arg))?;
    let near = word.to_str().and_then(|word| near(word, &words.ours));
    let meant = near_ours(args, words);
    if args.iter().any(|arg| is_recording(arg.as_ref())) {
        return meant;
    }
    let mistyped = match accepted(args) {
        Accepted::No => meant,
        _ if near == Some("record") && runs_program(args) => near,
        Accepted::AsSet => meant.filter(|_| args.iter().any(|arg| is_foreign(arg))),
        Accepted::Yes => None,
    };
    // An argument that ends in `.bin` is probably the file name of a recording, and hardly a set of characters for the
    // system's `tr`.
    let names_file = || near.is_some() && args.iter().any(|arg| arg.as_bytes().ends_with(b".bin"));
    mistyped.or_else(|| meant.filter(|_| names_file() || std::io::stdin().is_terminal()))
}

/// Whether the system's `tr`, which translates characters, accepts a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepted {
    No,
    /// The system's `tr` accepts the command line, but a later operand begins with `-`, as in `tr a -b`. The system's
    /// `tr` takes that operand for a set of characters. The user may have meant an option.
    AsSet,
    Yes,
}

/// Whether GNU `tr` accepts these arguments. GNU `tr` takes everything after the first argument that is no option for
/// operands.
fn accepted(args: &[OsString]) -> Accepted {
    let (mut delete, mut squeeze) = (false, false);
    let mut rest = args.iter();
    let mut operands: Vec<&OsString> = Vec::new();
    for arg in rest.by_ref() {
        match arg.as_bytes() {
            b"--" => break,
            [b'-', b'-', name @ ..] => {
                match LONG_OPTIONS.iter().find(|l| l.as_bytes().starts_with(name)) {
                    Some(&"delete") => delete = true,
                    Some(&"squeeze-repeats") => squeeze = true,
                    Some(&"help" | &"version") => return Accepted::Yes,
                    Some(_) => {}
                    None => return Accepted::No,
                }
            }
            [b'-', letters @ ..] if !letters.is_empty() => {
                if !letters.iter().all(|letter| is_letter(*letter)) {
                    return Accepted::No;
                }
                delete |= letters.contains(&b'd');
                squeeze |= letters.contains(&b's');
            }
            _ => {
                operands.push(arg);
                break;
            }
        }
    }
    operands.extend(rest);
    let right = match (delete, squeeze) {
        (true, false) => operands.len() == 1,
        (false, true) => matches!(operands.len(), 1 | 2),
        _ => operands.len() == 2,
    };
    if !right {
        Accepted::No
    } else if operands.iter().skip(1).any(|set| is_option(set)) {
        Accepted::AsSet
    } else {
        Accepted::Yes
    }
}

/// Whether a letter is an option of GNU's or BSD's `tr`. The option `A` is one of AIX's `tr`, and GNU's `tr` accepts
/// and ignores it.
fn is_letter(letter: u8) -> bool {
    b"cCdstAu".contains(&letter)
}

fn is_option(arg: &OsStr) -> bool {
    matches!(arg.as_bytes(), [b'-', _, ..])
}

/// Whether an argument is an option of neither this program nor the system's `tr`.
fn is_foreign(arg: &OsStr) -> bool {
    match arg.as_bytes() {
        [b'-', b'-', name @ ..] => !LONG_OPTIONS
            .iter()
            .any(|long| long.as_bytes().starts_with(name)),
        [b'-', letter, ..] => letter.is_ascii_alphabetic() && !is_letter(*letter),
        _ => false,
    }
}

/// Whether the arguments of a command line are two words, the second of which is the name of a program.
fn runs_program(args: &[OsString]) -> bool {
    let [_, program] = args else { return false };
    is_program(program)
}

/// Whether a name is that of a program on PATH or, with a slash in it, the path of an executable file. Names of one
/// character (`[`, `w`) are taken for sets of characters.
fn is_program(name: &OsStr) -> bool {
    let executable = |file: PathBuf| {
        let meta = std::fs::metadata(file);
        meta.is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
    };
    let mut directories = std::env::split_paths(&inherited::path()).collect();
    if name.as_bytes().contains(&b'/') {
        directories = vec![PathBuf::new()];
    }
    name.len() > 1
        && directories
            .into_iter()
            .any(|dir| executable(dir.join(name)))
}

/// Whether the arguments are a program with its arguments, so that the user has probably left out `record --`. This is
/// only assumed if standard input is a terminal, where the system's `tr` would wait for input or fail.
pub fn is_command(args: &[OsString]) -> bool {
    args.first()
        .is_some_and(|program| !is_option(program) && is_program(program))
        && std::io::stdin().is_terminal()
}

/// Whether a path is that of a regular file whose first bytes are those of a recording. Other files are not opened:
/// opening a pipe would unblock its writer.
fn is_recording(path: &Path) -> bool {
    let mut magic = [0; frame::MAGIC.len()];
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file())
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && magic == frame::MAGIC
}

/// The name of the subcommand that is nearest to a mistyped word: at most one typing error away, or two for long names.
fn near(word: &str, ours: &[&'static str]) -> Option<&'static str> {
    // A set of characters for the system's `tr` may have any length, but a mistyped subcommand is at most two
    // characters longer than the subcommand.
    if word.len() < 3 || word.len() > 16 {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let far = |ours: &str| strsim::osa_distance(&word, ours);
    let most = |ours: &str| if ours.len() > 4 { 2 } else { 1 };
    let candidates = ours.iter().filter(|ours| far(ours) <= most(ours));
    candidates.min_by_key(|ours| far(ours)).copied()
}

#[cfg(test)]
#[path = "tests/mistyped.rs"]
mod tests;
