//! Places the spans from files of other build tools under the recorded processes that did the work. The pids, times and
//! command lines of processes show which process a span belongs to. A span that fits no process is only counted and
//! never assigned by a guess.
#![forbid(unsafe_code)]

pub mod align;
pub mod cargo;
pub mod junit;
mod lookup;
pub mod ninja;
mod notes;
pub mod spans;

use tr_analyze::model::{Analysis, Imported};
use tr_insight::recordings::imports::{Import, Imports};
pub use tr_programs::versions::ToolVersion;

use lookup::Lookup;

/// The largest number of spans that are taken from all imported files together. The limit bounds the work, because each
/// span becomes a step in the reports.
pub const SPANS: usize = 100_000;

/// A parsed file of another tool (such as ninja or cargo) whose format is known.
#[derive(Clone, Debug, PartialEq)]
pub enum File {
    /// A file in the Chrome Trace Event format, which clang's `-ftime-trace` uses, too, or in the OTLP format.
    Spans(spans::Spans),
    /// A log of ninja (`.ninja_log`).
    Ninja(ninja::Log),
    /// The HTML page that `cargo build --timings` writes.
    Cargo(cargo::Timings),
    Junit(junit::Report),
}

/// A parsed file of another tool, with the facts that the file system has about this file.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFile {
    pub path: Vec<u8>,
    /// The time of the last write to the tool's file, in nanoseconds since 1970, if it is known. A copy of the file can
    /// have a later time.
    pub written: Option<i64>,
    pub file: File,
}

/// Places the spans of imported files under the processes of a recording.
pub fn place(files: &[ToolFile], analysis: &Analysis) -> Imports {
    let mut imports = Imports::default();
    let lookup = Lookup::new(analysis);
    for file in files {
        let path = &file.path;
        let mut placed = match &file.file {
            File::Spans(spans) => spans.place(path, &lookup),
            File::Ninja(log) => log.place(&lookup),
            File::Cargo(timings) => timings.place(&lookup),
            File::Junit(report) => report.place(path, file.written, &lookup),
        };
        let (unplaced, unplaced_failed) = match &file.file {
            File::Junit(report) => report.tests_beside(&placed),
            _ => Default::default(),
        };
        let room = SPANS.saturating_sub(imports.spans.len());
        let count = placed.spans.len();
        if count > room {
            let length = |span: &Imported| std::cmp::Reverse(span.to.since(span.from));
            placed.spans.sort_by_key(length);
            placed.spans.truncate(room);
        }
        imports.files.push(Import {
            file: path.as_slice().into(),
            spans: placed.all,
            placed: (placed.spans.len() as u64).saturating_sub(placed.parts),
            outside: placed.outside,
            left_out: count.saturating_sub(room) as u64,
            unplaced,
            unplaced_failed,
            note: notes::text(&placed.notes),
            tool: placed.tool,
        });
        imports.spans.append(&mut placed.spans);
    }
    imports
}
