//! `tr report`: one HTML file that needs nothing else.
//!
//! `web/dist` has the page's script and style, built from `web/`, so that this
//! crate builds without Node. This module adds the data. No part of a trace
//! becomes markup: the title is escaped, and all else is in a compressed blob that
//! the script shows as text. The page's Content-Security-Policy allows that one
//! script, and no loading.

mod blob;
mod document;
mod segments;
mod strings;

use base64::Engine;
use sha2::{Digest, Sha256};
use tr_analyze::critical_path;
use tr_analyze::model::Analysis;

use crate::escape;

/// The page around the data.
const PAGE: &str = include_str!("../../web/src/page.html");
/// Its program, bundled.
const SCRIPT: &str = include_str!("../../web/dist/report.js");
/// Its style, bundled.
const STYLE: &str = include_str!("../../web/dist/report.css");

/// The page of an analysis made with
/// [`Options::timeline`](tr_analyze::Options::timeline); without it there are
/// sums, but no pictures over time.
///
/// # Errors
/// None in practice: it writes to memory.
pub fn render(analysis: &Analysis, file: &str) -> std::io::Result<String> {
    let segments = segments::segments(analysis, segments::ROOM);
    let path = critical_path::root(analysis)
        .and_then(|root| critical_path::critical_path(analysis, root))
        .ok();
    let document = document::document(analysis, file, path.as_ref(), &segments);
    let document = serde_json::to_vec(&document)?;
    let mut columns = blob::Columns::default();
    columns.varints(segments.counts);
    columns.bytes(&segments.kinds);
    columns.varints(segments.lengths);
    columns.bytes(segments.shares.as_flattened());
    columns.varints(segments.by);
    let data = blob::pack(&document, &columns)?;
    let command = analysis.meta.command.iter().map(Vec::as_slice);
    let title = if analysis.meta.command.is_empty() {
        escape::text(file.as_bytes())
    } else {
        escape::command(command)
    };
    Ok(fill(&[
        ("csp", &policy()),
        ("title", &markup(&title)),
        ("style", STYLE),
        ("data", &data),
        ("script", SCRIPT),
    ]))
}

/// The Content-Security-Policy: only the script and the style with these hashes.
fn policy() -> String {
    let hash = |text: &str| {
        let hash = Sha256::digest(text.as_bytes());
        base64::engine::general_purpose::STANDARD.encode(hash)
    };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; \
         base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

/// Puts the parts into their `{{places}}`, which are in the same order.
fn fill(parts: &[(&str, &str)]) -> String {
    let length = parts.iter().map(|(_, part)| part.len()).sum::<usize>();
    let mut out = String::with_capacity(PAGE.len() + length);
    let mut rest = PAGE;
    for (name, part) in parts {
        if let Some((before, after)) = rest.split_once(&format!("{{{{{name}}}}}")) {
            out.push_str(before);
            out.push_str(part);
            rest = after;
        }
    }
    out + rest
}

/// A text as HTML.
fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_ends_the_element_it_is_in() {
        let holds = |text: &str, what: &str| text.to_ascii_lowercase().contains(what);
        assert!(!holds(SCRIPT, "</script") && !holds(SCRIPT, "<!--"));
        assert!(!holds(STYLE, "</style"));
        assert!(!SCRIPT.contains('\r') && !STYLE.contains('\r'), "the hash");
    }

    #[test]
    fn every_place_is_filled_once() {
        let page = render(&Analysis::default(), "a<b>{{script}}").unwrap();
        assert!(page.contains("<title>a&lt;b&gt;{{script}} · tr</title>"));
        assert_eq!(page.matches("{{").count(), 1, "the title's");
        assert_eq!(page.matches(SCRIPT).count(), 1);
        assert!(page.contains(&policy()));
    }
}
