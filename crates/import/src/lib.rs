//! Reads other tools' files and places their spans under the recorded processes that they
//! belong to, by pid and time: clang's `-ftime-trace`, `.ninja_log`, `cargo build --timings`,
//! JUnit XML.
//!
//! A file is foreign: every length and count has a limit, and an error names the place. A
//! span that fits no process is counted, never guessed.
#![forbid(unsafe_code)]

mod align;
pub mod cargo;
pub mod clang;
mod date;
mod error;
mod files;
pub mod jobs;
pub mod junit;
pub mod ninja;
mod recording;

use tr_analyze::model::{Analysis, Import, Imported};

pub use error::Error;
pub use files::{bytes, find, open, Files, Found, Skipped};
use recording::Recording;

/// The most bytes of a file.
pub const FILE: u64 = 64 << 20;

/// The most bytes of all files together.
pub const ALL: u64 = 512 << 20;

/// The most spans of all files together. Each is a step of the reports.
pub const SPANS: usize = 100_000;

/// The most records of a file, before any is placed.
const RECORDS: usize = 1_000_000;

/// A file of a known tool.
#[derive(Clone, Debug, PartialEq)]
pub enum File {
    /// clang's `-ftime-trace`.
    Clang(clang::TimeTrace),
    /// `.ninja_log`.
    Ninja(ninja::Log),
    /// The page of `cargo build --timings`.
    Cargo(cargo::Timings),
    Junit(junit::Report),
}

/// Reads a file's bytes. `Ok(None)`: it is of no known tool.
///
/// # Errors
/// It looks like a known tool's file and is damaged, or larger than a limit.
pub fn read(bytes: &[u8]) -> Result<Option<File>, Error> {
    let start = bytes.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    if start.starts_with(ninja::MAGIC) {
        return ninja::Log::read(start).map(File::Ninja).map(Some);
    }
    match start.first() {
        Some(b'{') => Ok(clang::TimeTrace::read(start)?.map(File::Clang)),
        Some(b'<') => match cargo::Timings::read(start)? {
            Some(timings) => Ok(Some(File::Cargo(timings))),
            None => Ok(junit::Report::read(start)?.map(File::Junit)),
        },
        _ => Ok(None),
    }
}

/// The spans of one file that have a place.
#[derive(Debug, Default)]
struct Placed {
    spans: Vec<Imported>,
    /// The number of spans that the file's own number does not count: parts of a unit, suites.
    parts: u64,
    /// The number of spans in the file.
    all: u64,
    /// The number of spans outside of the analyzed span.
    outside: u64,
    note: Option<String>,
    /// A tool with its version.
    tool: Option<String>,
}

/// Adds the spans of files to an analysis, and to its quality a count for each file.
pub fn place(files: &[(Vec<u8>, File)], analysis: &mut Analysis) {
    let mut all = Vec::new();
    let mut imports = Vec::new();
    let recording = Recording::new(analysis);
    for (path, file) in files {
        let mut placed = match file {
            File::Clang(trace) => trace.place(path, &recording),
            File::Ninja(log) => log.place(&recording),
            File::Cargo(timings) => timings.place(&recording),
            File::Junit(report) => report.place(path, &recording),
        };
        let room = SPANS.saturating_sub(all.len());
        let count = placed.spans.len();
        if count > room {
            let length = |span: &Imported| std::cmp::Reverse(span.to.since(span.from));
            placed.spans.sort_by_key(length);
            placed.spans.truncate(room);
        }
        imports.push(Import {
            file: path.clone().into(),
            spans: placed.all,
            placed: (placed.spans.len() as u64).saturating_sub(placed.parts),
            outside: placed.outside,
            left_out: count.saturating_sub(room) as u64,
            note: placed.note,
            tool: placed.tool,
        });
        all.append(&mut placed.spans);
    }
    analysis.imported.append(&mut all);
    analysis.quality.imports.append(&mut imports);
}
