//! Other tools' files of an analysis, in words.

use tr_analyze::model::{Doubt, Import};

use tr_text::{escape, units};

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
