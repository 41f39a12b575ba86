//! The outputs of the subcommands that read a trace.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use tr_compare::diff::benchmarks::Service;
use tr_export::Format;
use tr_format::frame;
use tr_output::{Destination, Kind, Settings, Target};

use crate::{errors, inherited, open};

/// Recordings, by their magic.
pub const RECORDING: Kind = Kind {
    name: "a recording",
    is: |bytes| bytes.starts_with(&frame::MAGIC),
};

pub const PAGE: Kind = Kind {
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

/// The files that `tr diff` writes as a page or as JSON.
pub const COMPARISON: Kind = Kind {
    name: "a comparison of tr diff",
    is: |bytes| (PAGE.is)(bytes) || is_json(bytes) && has(bytes, "\"tr.diff/"),
};

/// The files that `tr pipeline` writes as a page or as JSON.
pub const PIPELINE: Kind = Kind {
    name: "a pipeline of tr pipeline",
    is: |bytes| (PAGE.is)(bytes) || is_json(bytes) && has(bytes, "\"tr.pipeline/"),
};

/// Figures for services that follow them over time.
pub const BENCHMARKS: Kind = Kind {
    name: "figures of benchmarks",
    is: |bytes| is_json(bytes) && (has(bytes, "\"lower_value\"") || has(bytes, "\"range\"")),
};

pub const JUNIT: Kind = Kind {
    name: "JUnit XML",
    is: |bytes| {
        let xml = matches!(bytes.trim_ascii_start().first(), Some(b'<' | b'\xef'));
        xml && has(bytes, "<testsuite")
    },
};

/// A table of a dataset.
pub const PARQUET: Kind = Kind {
    name: "a Parquet file",
    is: |bytes| bytes.starts_with(b"PAR1"),
};

/// The names of all formats of `tr export`.
pub fn exports() -> Vec<&'static str> {
    let files = Format::ALL.map(Format::name).into_iter();
    let services = Service::ALL.map(Service::name);
    files.chain(["parquet", "junit"]).chain(services).collect()
}

/// The files that an export of this format replaces, and whether it is binary. A source or a
/// configuration looks like none of them.
pub fn export(format: Format) -> (Kind, bool) {
    let binary = matches!(format, Format::Perfetto | Format::Otlp);
    let (name, is): (_, fn(&[u8]) -> bool) = match format {
        // Both messages begin with a field 1 of bytes. Text has no control characters but white space.
        Format::Perfetto | Format::Otlp => ("such an export", |bytes| {
            bytes.starts_with(b"\n") && bytes.iter().any(|b| *b < b'\t')
        }),
        Format::OtlpJson => ("OTLP in JSON", |bytes| {
            is_json(bytes) && has(bytes, "\"resourceSpans\"")
        }),
        Format::Folded => ("folded stacks", is_folded),
    };
    (Kind { name, is }, binary)
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

fn is_json(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Lines of a stack and a number each; the last one may lack its end.
fn is_folded(bytes: &[u8]) -> bool {
    let whole = bytes.iter().rposition(|b| *b == b'\n');
    let Some(lines) = whole.and_then(|end| bytes.get(..end)) else {
        return false;
    };
    lines.split(|b| *b == b'\n').all(|line| {
        let number = line.rsplit(|b| *b == b' ').next().unwrap_or_default();
        number.len() + 1 < line.len() && !number.is_empty() && number.iter().all(u8::is_ascii_digit)
    })
}

/// The option of every subcommand that writes a file.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Force {
    /// Replace a file that is there whatever it is
    #[arg(long)]
    pub force: bool,
}

/// Writes a whole output, which then replaces a file of its name, if that is of this kind or with
/// `--force`. Its mode is like the trace's.
pub fn whole<T, E: From<io::Error>>(
    output: &Path,
    trace: &Path,
    (kind, binary): (Kind, bool),
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

/// Writes a whole text to a file, or to standard output; the exit status, after what is wrong.
pub fn text((output, force): (&Path, Force), files: &[&Path], kind: Kind, text: &str) -> ExitCode {
    let Some(trace) = files.first().filter(|_| output.as_os_str() != "-") else {
        return open::print(text.as_bytes());
    };
    let written = whole(output, trace, (kind, false), force, |file| {
        file.write_all(text.as_bytes())
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => errors::unwritten(&errors::shown(output), error),
    }
}

/// Writes a manual page or another text that everybody may read.
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
