//! Reduces command lines to the parts that are equal in all runs of one build, by removing names of temporary files,
//! pids, hashes and the build's directory.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use tr_analyze::model::{Analysis, Process};

use crate::processes::label::Identity;
use tr_programs::program_name::ProgramName;

/// How much of a path in an argument is kept when arguments are compared. The variants go from the largest part to the
/// smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// Keeps whole paths, but removes COMMAND's working directory from them.
    Whole,
    /// Keeps the last directory and the file name of an absolute path that is not in one of the directories
    /// `SYSTEM_DIRECTORIES`.
    Two,
    /// Keeps only the file name of an absolute path that is not in one of the directories `SYSTEM_DIRECTORIES`.
    Name,
}

/// The pattern that recognizes names of temporary files: `/tmp/ccniXNmC.s`, `tmp.Xq3k1PzR9a`, `rustcAb12Cd`,
/// `GMfifo1234`.
static TEMPORARY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\b(?:",
        r"cc[A-Za-z0-9]{6}(\.(?:s|o|c|i|ii|d|ld|le|lto|res|args|cdtor\.[co]|ltrans\w*))\b",
        r"|(?i:te?mp)[._-]?[A-Za-z0-9_]{6,}",
        r"|rustc[A-Za-z0-9]{6}\b",
        r"|GMfifo\d+",
        r")"
    ))
    .ok()
});

/// The pattern that divides an argument into runs of letters and digits, which are compared with the names of temporary
/// files and with hashes.
static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[0-9A-Za-z]+").ok());

/// The pattern that recognizes an absolute path at the start of an argument, or after a separator or an option's
/// letters.
static PATH: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(^-{1,2}[A-Za-z]+|^|[=:,;@'"\s(])(/[^=:,;'"\s)]+)"#).ok());

/// The directories of the system and of packages. A path in one of them is kept whole, because it does not depend on
/// the directory in which somebody builds.
const SYSTEM_DIRECTORIES: [&str; 12] = [
    "/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/etc/", "/opt/", "/dev/", "/proc/", "/sys/",
    "/nix/", "/snap/",
];

/// The least number of digits at the end of a word that make it a random name. Go's `os.MkdirTemp` adds up to ten
/// digits (`go-build3159143680`); a date has eight.
const RANDOM_NUMBER: usize = 9;

/// Whether a word looks like a hash, a timestamp or a random name. Either it has at least eight characters, all of them
/// are hexadecimal digits, and at least one of them is a decimal digit, or it ends with many decimal digits.
fn random(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let hex = word.bytes().all(|b| b.is_ascii_hexdigit());
    let last = word.bytes().rev().take_while(u8::is_ascii_digit).count();
    hex && word.len() >= 8 && digits > 0 || last >= RANDOM_NUMBER
}

fn replace(re: &Option<Regex>, text: String, by: impl Fn(&Captures<'_>) -> String) -> String {
    match re {
        Some(re) => re.replace_all(&text, by).into_owned(),
        None => text,
    }
}

/// Reduces an argument to the part that is equal in all runs of one build. `cwd` is COMMAND's working directory. `pids`
/// has the pids of the process and its ancestors, because the argument may contain these pids, which differ between
/// runs.
pub fn argument(arg: &[u8], cwd: &str, pids: &[u32], paths: Paths) -> String {
    let mut text = String::from_utf8_lossy(arg).into_owned();
    if cwd.len() > 1 {
        // The path keeps a leading `/`, so that it still counts as absolute and only its last parts are kept below.
        let root = if paths == Paths::Whole { "" } else { "/" };
        text = text.replace(&format!("{cwd}/"), root);
        if text == cwd {
            text = ".".into();
        }
    }
    let text = replace(&TEMPORARY, text, |found| {
        format!("#{}", found.get(1).map_or("", |ending| ending.as_str()))
    });
    let text = replace(&WORD, text, |found| {
        let word = found.get(0).map_or("", |word| word.as_str());
        let pid = || {
            word.parse()
                .is_ok_and(|number: u32| number > 1 && pids.contains(&number))
        };
        let specific = random(word) || pid();
        if specific { "#" } else { word }.to_owned()
    });
    if paths == Paths::Whole {
        return text;
    }
    replace(&PATH, text, |found| {
        let part = |at| found.get(at).map_or("", |part| part.as_str());
        let (lead, path) = (part(1), part(2));
        if SYSTEM_DIRECTORIES
            .iter()
            .any(|system| path.starts_with(system))
        {
            return format!("{lead}{path}");
        }
        let keep = if paths == Paths::Two { 2 } else { 1 };
        let mut last: Vec<&str> = path.rsplit('/').filter(|p| !p.is_empty()).collect();
        last.truncate(keep);
        last.reverse();
        format!("{lead}/{}", last.join("/"))
    })
}

/// A hash by which processes of two recordings are matched. The hash is made from the command line, without the parts
/// that differ between runs of one build.
pub fn key<'a>(
    args: impl Iterator<Item = &'a [u8]>,
    forked: bool,
    cwd: &str,
    pids: &[u32],
    paths: Paths,
) -> u64 {
    // The hasher's seed is fixed, so equal input has the same hash in every run of `tr`.
    let mut hash = DefaultHasher::new();
    forked.hash(&mut hash);
    for arg in args {
        argument(arg, cwd, pids, paths).hash(&mut hash);
    }
    hash.finish()
}

/// A script is recognized by this many characters at its beginning and as many at its end. A guess: the beginning and
/// the end together are about as long as the label of a process that shows a script. With 30 characters, CMake's
/// messages with random names of directories no longer match each other within one recording (`fixtures/advice`).
const SCRIPT: usize = 29;

/// The beginning and the end of a long text with spaces, such as the script of `sh -c SCRIPT`. So a script that was
/// edited in the middle counts as the same script. A shorter text, or a text without spaces, is kept whole.
fn outline(text: String) -> String {
    let count = text.chars().count();
    if count <= 2 * SCRIPT || !text.contains(char::is_whitespace) {
        return text;
    }
    let (begin, end) = (text.chars().take(SCRIPT), text.chars().skip(count - SCRIPT));
    begin.chain(end).collect()
}

fn words_of(program: &ProgramName) -> impl Iterator<Item = &str> {
    iter::once(program.name()).chain(program.verb())
}

/// A hash of the facts by which people recognize a process, without the parts that differ between runs of one build.
/// Processes of two recordings are matched by this hash only if no more specific key matches.
pub fn identity_key(identity: &Identity, forked: bool, cwd: &str, pids: &[u32]) -> u64 {
    let mut hash = DefaultHasher::new();
    forked.hash(&mut hash);
    std::mem::discriminant(identity).hash(&mut hash);
    let words: Vec<&str> = match identity {
        Identity::KernelThread(name) => vec![name],
        Identity::Server(program) => words_of(program).collect(),
        Identity::Container { name, image } => {
            name.as_deref().into_iter().chain([&**image]).collect()
        }
        Identity::Program(program, arguments) => {
            let arguments = arguments.iter().map(String::as_str);
            words_of(program).chain(arguments).collect()
        }
    };
    for word in words {
        outline(argument(word.as_bytes(), cwd, pids, Paths::Name)).hash(&mut hash);
    }
    hash.finish()
}

/// The pids of a process and of its nearest ancestors on the host and in their pid namespaces, because the arguments of
/// the process may contain these pids.
pub fn pids(analysis: &Analysis, process: &Process) -> Vec<u32> {
    const GENERATIONS: usize = 32;
    let above = process.parent.into_iter();
    let above = above.flat_map(|ix| analysis.lineage(ix));
    let all = iter::once(process).chain(above.map(|ix| analysis.process(ix)));
    let pids = all.flat_map(|process| [process.pid.0, process.ns_pid.0]);
    pids.take(2 * GENERATIONS).collect()
}

#[cfg(test)]
#[path = "tests/normal.rs"]
mod tests;
