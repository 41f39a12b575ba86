//! Other tools' files of an analysis, in words.

use tr_analyze::model::Import;

use crate::{escape, units};

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
