//! Describes the spans from files of other build tools that have a place in a recording, and the imported files, in
//! words.

mod unplaced;

use tr_analyze::model::{Doubt, Imported};
use tr_programs::versions::ToolVersion;
use tr_text::{escape, units};

pub use unplaced::{TestCount, UnplacedTest};

/// The largest tolerated error of the place of a test or span is its length divided by this number: a tenth of the
/// length. A decision: with a larger error, no figures (such as CPU time) are shown for the test or span.
pub const TOLERATED_PART: u64 = 10;

/// The result of importing a file of another tool: the number of its spans, and how many of them have a place in the
/// recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Import {
    pub file: Box<[u8]>,
    pub spans: u64,
    /// The number of spans of the file that belong to a recorded process.
    pub placed: u64,
    /// The number of spans of the file that lie outside of the analyzed time.
    pub outside: u64,
    /// The number of spans of the file that are left out because all files together have too many spans.
    pub left_out: u64,
    /// The number of the file's tests for which the recording shows no process and time, and how many of these tests
    /// failed.
    pub unplaced: TestCount,
    /// The first failed tests of the file that have no place in the recording.
    pub unplaced_failed: Vec<UnplacedTest>,
    /// The reason why the imported file, or a part of it, has no place in the recording, or an assumption that was
    /// made about the times in the file.
    pub note: Option<String>,
    /// The tool that the file is about, with its version, if the file has it.
    pub tool: Option<ToolVersion>,
}

/// The imported spans: the spans from files of other tools that were matched with a process and time of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imports {
    pub spans: Vec<Imported>,
    /// The imported files, each with the counts of its spans (such as those with a place in the recording).
    pub files: Vec<Import>,
}

impl Imports {
    /// The number of tests that have no place in the recording, and how many of these tests failed, summed up over all
    /// imported files.
    pub fn unplaced(&self) -> TestCount {
        let counts = self.files.iter().map(|file| file.unplaced);
        counts.fold(TestCount::default(), |sum, count| TestCount {
            all: sum.all.saturating_add(count.all),
            failed: sum.failed.saturating_add(count.failed),
        })
    }

    /// The first failed tests of each imported file that have no place in the recording.
    pub fn unplaced_failed(&self) -> impl Iterator<Item = &UnplacedTest> {
        self.files.iter().flat_map(|file| &file.unplaced_failed)
    }
}

/// The sentence about an imported file, with its name and how many of its spans have a place in the recording.
pub fn sentence(import: &Import) -> String {
    let file = escape::raw(&import.file);
    let (placed, all) = (units::count(import.placed), units::count(import.spans));
    let mut words = format!("{file}: {placed} of {all} spans found in the recording");
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
        words += &format!("; {}", escape::raw(note.as_bytes()));
    }
    words
}

/// The sentence about an imported file that has spans without a place in the recording, or whose times rest on an
/// assumption; `None` for other files.
pub fn incomplete(import: &Import) -> Option<String> {
    (import.placed < import.spans || import.note.is_some()).then(|| sentence(import))
}

/// The reason, in words, why no figures (such as CPU time) are shown for a step that comes from another tool's file.
pub fn no_figures(doubt: Doubt) -> String {
    match doubt {
        Doubt::Off(ns) => format!("its place in time is known to {} only", units::time(ns)),
        Doubt::Boundary(ns) => format!(
            "a process or thread began within {} of its beginning or end, the error of its place in time",
            units::time(ns)
        ),
        Doubt::Stamp => "the file's times may be those of its beginning or of its end".to_owned(),
        Doubt::Zone => "the zone of the file's times is not known".to_owned(),
        Doubt::Suite => "the length of its suite does not prove its place in time".to_owned(),
        Doubt::Runner => "other processes or threads may have run it".to_owned(),
        Doubt::Process(ns) => format!(
            "other processes or threads may have run it, and its place in time is known to {} only",
            units::time(ns)
        ),
        Doubt::Crossed => "it overlaps with another one of its process".to_owned(),
        Doubt::Unseen(ns) => format!(
            "what its process did in {} of it was not recorded",
            units::time(ns)
        ),
    }
}
