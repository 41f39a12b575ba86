//! The spans of other tools' files: placed under the recorded processes that they belong to, by pid, time and
//! command line, and in words. A span that fits no process is counted, never guessed.

pub mod align;
pub mod cargo;
pub mod clang;
pub mod junit;
mod lookup;
pub mod ninja;

use tr_analyze::model::{Analysis, Doubt, Import, Imported};
use tr_text::{escape, units};

use lookup::Lookup;

/// The most spans of all files together. Each is a step of the reports.
pub const SPANS: usize = 100_000;

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

/// Adds the spans of files to an analysis, and to its quality a count for each file.
pub fn place(files: &[(Vec<u8>, File)], analysis: &mut Analysis) {
    let mut all = Vec::new();
    let mut imports = Vec::new();
    let lookup = Lookup::new(analysis);
    for (path, file) in files {
        let mut placed = match file {
            File::Clang(trace) => trace.place(path, &lookup),
            File::Ninja(log) => log.place(&lookup),
            File::Cargo(timings) => timings.place(&lookup),
            File::Junit(report) => report.place(path, &lookup),
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

/// The file and the numbers of its spans.
pub fn sentence(import: &Import) -> String {
    let file = escape::text(&import.file);
    let (placed, all) = (units::count(import.placed), units::count(import.spans));
    let mut words = format!("{file}: {placed} of {all} spans placed");
    let other = import.placed + import.outside + import.left_out;
    let parts = [
        (import.outside, "outside of the analyzed span"),
        (import.left_out, "left out: too many"),
        (import.spans.saturating_sub(other), "of no recorded process"),
    ];
    for (count, what) in parts {
        if count > 0 {
            words += &format!("; {} {what}", units::count(count));
        }
    }
    if let Some(note) = &import.note {
        words += &format!("; {}", escape::text(note.as_bytes()));
    }
    words
}

/// The sentence of a file that has spans without a place, or times with an assumption.
pub fn incomplete(import: &Import) -> Option<String> {
    (import.placed < import.spans || import.note.is_some()).then(|| sentence(import))
}

/// The reason why a step of another tool's file has no figures.
pub fn no_figures(doubt: Doubt) -> String {
    match doubt {
        Doubt::Off(ns) => format!("its place in time is known to {} only", units::time(ns)),
        Doubt::Boundary(ns) => format!(
            "a process began within {} of its beginning or end, the error of its place in time",
            units::time(ns)
        ),
        Doubt::Stamp => "the file's times may be those of its beginning or of its end".to_owned(),
        Doubt::Zone => "the zone of the file's times is not known".to_owned(),
        Doubt::Suite => "the length of its suite does not prove its place in time".to_owned(),
        Doubt::Runner => "other processes or threads may have run it".to_owned(),
    }
}
