//! Finds the versions of build tools in recorded command lines, where the path of a program or an
//! argument contains them.

use std::fmt;

use crate::table;
use crate::tools::Version;

/// The part of a path by which the programs that `go` starts (compiler, linker) are recognized.
/// They lie in this directory of the Go installation.
const GO_TOOLS: &str = "/pkg/tool/";

/// The length in bytes of the longest version that is read from another tool's file.
const LONGEST_VERSION: usize = 32;

/// A build tool and its version, such as gcc 12.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolVersion {
    pub tool: &'static str,
    pub version: String,
}

impl ToolVersion {
    /// Reads the version of `tool` at the beginning of a text that another tool wrote: `1.95.0` in
    /// `1.95.0 (59807616e)`. Returns `None` if the text does not begin with a version.
    pub fn read(tool: &'static str, text: &str) -> Option<ToolVersion> {
        let is_version = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
        let end = text.find(|c| !is_version(c)).unwrap_or(text.len());
        let version = text.get(..end)?.to_owned();
        let is_some = (1..=LONGEST_VERSION).contains(&version.len());
        is_some.then_some(ToolVersion { tool, version })
    }
}

impl fmt::Display for ToolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.tool, self.version)
    }
}

/// Where paths and arguments contain the version of the program with exactly this name; `None` if
/// this is not known.
fn places(program: &str) -> Option<Version> {
    table::exact(program)?.version
}

/// Takes two names from a file name such as `x86_64-linux-gnu-gcc-12`: the program's name without
/// target and version (`gcc`), and the file name without the version (`x86_64-linux-gnu-gcc`).
fn named(file: &str) -> (&str, &str) {
    let short = |name| str::rsplit(name, '-').next().unwrap_or(name);
    // The digit in the name `cc1` is no version.
    if places(short(file)).is_some() {
        return (short(file), file);
    }
    let plain = file.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    (short(plain), plain)
}

/// The name and the version of the build tool, if the path of the executed program or its arguments
/// contain a version.
pub fn of(path: &[u8], args: &[&[u8]]) -> Option<ToolVersion> {
    let path = std::str::from_utf8(path).ok()?;
    let mut parts = path.rsplit('/');
    let file = parts.next()?;
    let (program, plain) = named(file);
    let program = if path.contains(GO_TOOLS) {
        "go"
    } else {
        program
    };
    let places = places(program)?;
    let of_file = || file.strip_prefix(plain).and_then(in_name);
    let version = value(args, places.argument)
        .or_else(|| home(&parts.collect::<Vec<_>>(), places.homes))
        .or_else(of_file)?;
    Some(ToolVersion {
        tool: places.called,
        version,
    })
}

/// The tool's version in the value of this argument, without letters before its first digit.
fn value(args: &[&[u8]], argument: &str) -> Option<String> {
    if argument.is_empty() {
        return None;
    }
    let mut after = args.iter().skip_while(|arg| **arg != argument.as_bytes());
    let value = std::str::from_utf8(after.nth(1)?).ok()?;
    number(value.trim_start_matches(|c: char| c.is_ascii_alphabetic()))
}

/// The version that follows a program's name, such as `-12` or `3.11`. The 3 of `python3` does not
/// count, because it belongs to the name.
fn in_name(rest: &str) -> Option<String> {
    let found = number(rest.trim_start_matches('-'))?;
    (rest.starts_with('-') || rest.contains('.')).then_some(found)
}

/// The tool's version, if a directory in the path of its program contains one: `gcc/TARGET/12`,
/// `llvm-14`, `toolchains/1.88.0-TARGET`, `versions/node/v20.1.0`. The innermost directory is
/// examined first.
fn home(directories: &[&str], homes: &str) -> Option<String> {
    let is_home = |name: &str| homes.split(' ').any(|home| home == name);
    directories.iter().enumerate().find_map(|(at, name)| {
        let (stem, rest) = name
            .find(|c: char| c.is_ascii_digit())
            .map(|at| name.split_at(at))?;
        let own = stem.trim_end_matches(['-', 'v']);
        if is_home(own) {
            return number(rest);
        }
        // In a path such as `gcc/TARGET/12`, the name of a target stands between the tool's directory and the directory
        // that is named after the version.
        let above = directories.get(at + 1..).unwrap_or_default();
        let mut above = above.iter().take(2);
        let below_home = match above.next() {
            Some(next) if is_home(next) => true,
            Some(next) => {
                next.matches('-').count() >= 2
                    && above.next().is_some_and(|directory| is_home(directory))
            }
            None => false,
        };
        (below_home && matches!(stem, "" | "v"))
            .then(|| number(rest))
            .flatten()
    })
}

/// The version number with which a text begins: `1.88.0` of `1.88.0-x86_64-unknown-linux-gnu`.
fn number(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let found = text.get(..end.unwrap_or(text.len()))?.trim_end_matches('.');
    let first = found.starts_with(|c: char| c.is_ascii_digit());
    (first && found.len() <= 16).then(|| found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_or_an_argument_tells_the_version() {
        let said = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            of(args.first()?, &args).map(|found| found.to_string())
        };
        for (line, want) in [
            (
                "/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -quiet a.c",
                Some("gcc 12"),
            ),
            (
                "/usr/libexec/gcc/x86_64-linux-gnu/13/cc1plus a.c",
                Some("gcc 13"),
            ),
            ("x86_64-linux-gnu-gcc-12 -c a.c", Some("gcc 12")),
            ("/usr/lib/llvm-14/bin/clang -cc1 a.c", Some("clang 14")),
            ("clang++-15 a.cc", Some("clang 15")),
            ("python3.11 -m pytest", Some("python 3.11")),
            (
                "/root/.pyenv/versions/3.11.7/bin/python3 x.py",
                Some("python 3.11.7"),
            ),
            (
                "/opt/hostedtoolcache/Python/3.12.1/x64/bin/python3.12",
                Some("python 3.12.1"),
            ),
            (
                "/root/.rustup/toolchains/1.88.0-x86_64-unknown-linux-gnu/bin/rustc -vV",
                Some("rustc 1.88.0"),
            ),
            (
                "/home/u/.nvm/versions/node/v20.11.1/bin/node a.js",
                Some("node 20.11.1"),
            ),
            (
                "/usr/lib/jvm/java-17-openjdk-amd64/bin/java -jar a.jar",
                Some("java 17"),
            ),
            (
                "/usr/lib/go-1.19/pkg/tool/linux_amd64/compile -o x",
                Some("go 1.19"),
            ),
            (
                "/usr/lib/go/pkg/tool/linux_amd64/compile -p a -goversion go1.22.1",
                Some("go 1.22.1"),
            ),
            ("/usr/lib/go-1.19/bin/go build", Some("go 1.19")),
            // The path contains no version, or only numbers that are not the version of the program.
            (
                "/root/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/rustc -vV",
                None,
            ),
            ("/builds/2024/app/1.2.3/bin/python3 a.py", None),
            ("/srv/gcc/app/7/bin/gcc a.c", None),
            ("python3 a.py", None),
            ("cc -c a.c", None),
            ("/opt/unknown-1.2/bin/frobnicate", None),
        ] {
            assert_eq!(said(line).as_deref(), want, "{line}");
        }
    }

    #[test]
    fn a_text_begins_with_the_version() {
        let read = |text: &str| ToolVersion::read("x", text).map(|found| found.version);
        assert_eq!(read("1.95.0 (59807616e)").as_deref(), Some("1.95.0"));
        assert_eq!(
            read("1.96.0-nightly<td>").as_deref(),
            Some("1.96.0-nightly")
        );
        for text in ["", "\u{1b}[1m8", &"1".repeat(LONGEST_VERSION + 1)] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
