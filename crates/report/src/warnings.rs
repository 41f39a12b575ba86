//! Prints the warnings about a recording, which [`tr_insight::recordings::warnings`] collects, before the numbers.

use tr_insight::recordings::warnings::warnings;
use tr_insight::Recording;
use tr_text::escape;
use tr_text::page::Page;
use tr_text::style::Paint;

/// The warnings about a recording as text, with a blank line after them; empty if there are none.
pub fn page(recording: &Recording) -> Page {
    let mut out = Page::new();
    for text in warnings(recording) {
        out.wrapped(Paint::Bad, "! ", &text);
    }
    if !out.is_empty() {
        out.blank();
    }
    out
}

/// The given warnings as Markdown, with a paragraph for each.
pub fn markdown(warnings: &[String]) -> String {
    let lines = warnings.iter();
    let lines = lines.map(|text| format!("⚠️ {}\n\n", escape::markdown(text)));
    lines.collect()
}
