//! Writes the output files of the subcommands that read a trace.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use tr_format::frame;
use tr_output::{Destination, FileKind, Settings, Target};

use crate::inherited;

/// The test that recognizes a recording by its first bytes, for output files that may be replaced.
pub const RECORDING: FileKind = FileKind {
    name: "a recording",
    is: |bytes| bytes.starts_with(&frame::MAGIC),
};

#[cfg(feature = "report")]
pub const PAGE: FileKind = FileKind {
    name: "a page of tr report",
    is: |bytes| {
        let html = b"<!doctype html";
        let begins = |text: &[u8]| {
            text.get(..html.len())
                .is_some_and(|extension| extension.eq_ignore_ascii_case(html))
        };
        begins(bytes) && has(bytes, " \u{b7} tr</title>")
    },
};

#[cfg(feature = "report")]
pub fn has(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

#[cfg(feature = "texts")]
pub fn is_json(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Whether the user gives `-` as an output file, which means standard output.
#[cfg(feature = "report")]
pub fn is_stdout(output: &Path) -> bool {
    output.as_os_str() == "-"
}

/// The endings of output file names, each with the word of `--format` that it stands for. An ending can be listed
/// several times: the first word that is a format of the subcommand counts.
const ENDINGS: [(&str, &str); 9] = [
    ("compile_commands.json", "compile-commands"),
    (".html", "html"),
    (".htm", "html"),
    (".json", "json"),
    (".csv", "csv"),
    (".md", "markdown"),
    (".folded", "folded"),
    (".pftrace", "perfetto"),
    (".perfetto-trace", "perfetto"),
];

/// The words of `--format` that the ending of an output file's name can stand for. Longer endings come first.
pub fn formats_of(output: &Path) -> impl Iterator<Item = &'static str> + '_ {
    let name = output.to_str().unwrap_or_default();
    let known = ENDINGS.iter().filter(|(ending, _)| name.ends_with(ending));
    known.map(|(_, format)| *format)
}

/// Whether a word of `--format` stands for output for people, in contrast to output for programs such as JSON.
pub fn is_for_people(format: &OsStr) -> bool {
    ["text", "markdown", "html"]
        .iter()
        .any(|known| format == *known)
}

/// The format in which a subcommand writes its output: the `--format` that is given, or else the first of the
/// subcommand's formats that fits the ending of the file name, or else `default`.
#[cfg(feature = "texts")]
pub fn format_for<F: clap::ValueEnum>(given: Option<F>, output: &Path, default: F) -> F {
    let by_ending = || formats_of(output).find_map(|format| F::from_str(format, false).ok());
    given.or_else(by_ending).unwrap_or(default)
}

/// The option `--force` of every subcommand that writes a file.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Force {
    /// Replace a file that is there whatever it is
    #[arg(long)]
    pub force: bool,
}

/// Writes an output file as a whole: the file gets its name only when it is complete. An existing file is replaced only
/// if it is of the given kind or the user gives `--force`. The new file gets the mode of the trace.
pub fn whole<T, E: From<io::Error>>(
    output: &Path,
    trace: &Path,
    (kind, binary): (FileKind, bool),
    force: Force,
    write: impl FnOnce(&mut Destination) -> Result<T, E>,
) -> Result<T, E> {
    let settings = Settings {
        mode: tr_output::mode_like(trace),
        binary,
        replaces: (!force.force).then_some(kind),
        keeps: false,
        closed_streams: inherited::closed_streams(),
    };
    tr_output::whole(&Target::of(output), &settings, write)
}

/// Writes a text to a file as a whole, or to standard output. Prints an error if that fails. Returns the exit status.
#[cfg(feature = "texts")]
pub fn text(
    (output, force): (&Path, Force),
    files: &[&Path],
    kind: FileKind,
    text: impl AsRef<[u8]>,
) -> std::process::ExitCode {
    let text = text.as_ref();
    let Some(trace) = files.first().filter(|_| !is_stdout(output)) else {
        return crate::open::print(text);
    };
    let written = whole(output, trace, (kind, false), force, |file| {
        file.write_all(text)
    });
    match written {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => crate::errors::unwritten(&crate::errors::shown(output), error),
    }
}

/// Writes a text that everybody may read, such as a manual page, to a file.
pub fn public(output: &Path, text: &[u8]) -> io::Result<()> {
    let settings = Settings {
        mode: 0o644,
        binary: false,
        replaces: None,
        keeps: false,
        closed_streams: inherited::closed_streams(),
    };
    let target = Target::File(output.to_owned());
    tr_output::whole(&target, &settings, |out| out.write_all(text))
}
