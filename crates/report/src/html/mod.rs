//! Writes the page of `tr report`: one HTML file that needs nothing else.
//!
//! `web/dist` has the page's script and style, built from `web/`, so that this crate builds without Node. This module
//! adds the data. No part of a trace becomes markup: the title is escaped, and all else is in a compressed blob that
//! the script shows as text. The page's Content-Security-Policy allows this script, a small one that unpacks it, and no
//! others. The page can load nothing.

#[macro_use]
mod columns;
mod blob;
mod connections;
mod counters;
mod digits;
mod document;
mod overview;
mod path;
mod processes;
mod segments;
mod stacks;
mod steps;

use base64::Engine;
use sha2::{Digest, Sha256};
use tr_analyze::critical_path;
use tr_analyze::model::Analysis;

use crate::ci;
use crate::packed::text;
use crate::untraced::{origin, usage_lines};
use tr_insight::processes::who;
use tr_insight::recordings::ci::Ci;
use tr_insight::recordings::untraced;
use tr_insight::Recording;
use tr_text::escape;

/// The template of the `<head>` of every HTML page that `tr` writes.
const HEAD: &str = include_str!("../../web/src/head.html");
/// The template of the HTML report, into which the data of a recording is put.
const PAGE: &str = include_str!("../../web/src/page.html");
/// The template of the HTML report about a run that was not traced. It has no script.
const UNTRACED_PAGE: &str = include_str!("../../web/src/untraced.html");
/// The template of an HTML page with a verdict, for `tr diff` and others. It has no script.
const VERDICT: &str = include_str!("../../web/src/diff.html");
/// The template of the HTML page for a forecast by `tr predict`.
const FORECAST: &str = include_str!("../../web/src/predict.html");
const FORECAST_SCRIPT: &str = include_str!("../../web/dist/predict.js");
/// The small script in the HTML report that unpacks the main script. The main script is compressed, because otherwise
/// it would be half of a small report.
const LOADER: &str = include_str!("../../web/src/loader.js");

fn script() -> &'static str {
    text!("report.js")
}

fn style() -> &'static str {
    text!("report.css")
}

/// The HTML report of a recording. If the analysis was made without
/// [`Options::timeline`](tr_analyze::Options::timeline), the report has sums but no pictures over time. Stacks need
/// [`Options::samples`](tr_analyze::Options::samples).
pub fn render(recording: &Recording, file: &str) -> std::io::Result<String> {
    let analysis = &recording.analysis;
    if let Some(reason) = untraced::reason(analysis) {
        return Ok(untraced_page(analysis, file, &reason));
    }
    let segments = segments::segments(analysis, segments::ROOM);
    let path = critical_path::of(analysis).ok();
    let stacks = stacks::stacks(analysis, &stacks::Room::default());
    let (found, sampled) = (path.as_ref(), stacks.as_ref());
    let document = document::document(recording, file, found, &segments, sampled);
    let document = tr_text::json::visible(&document)?;
    let mut columns = blob::Columns::default();
    columns.varints(segments.counts.iter().copied());
    columns.bytes(&segments.kinds);
    columns.varints(segments.inner_lengths());
    columns.bytes(segments.shares.as_flattened());
    columns.varints(segments.by);
    if let Some(stacks) = stacks {
        stacks.write(&mut columns);
    }
    let data = blob::pack(&document, &columns)?;
    let command = analysis.meta.command.iter().map(Vec::as_slice);
    let title = if analysis.meta.command.is_empty() {
        escape::raw(file.as_bytes())
    } else {
        escape::quoted(command)
    };
    let policy = format!("script-src {} {}; ", hash(LOADER), hash(script()));
    let code = blob::zip(&[script().as_bytes()])?;
    let parts = [("data", data.as_str()), ("code", &code), ("script", LOADER)];
    Ok(page(&policy, &escape::html(&title), PAGE, &parts))
}

/// An HTML page with a verdict at the top and sections (cards) below it, without a script. All arguments are HTML, and
/// their texts are escaped already.
pub fn verdict_page(title: &str, verdict: &str, cards: &str) -> String {
    page("", title, VERDICT, &[("verdict", verdict), ("body", cards)])
}

/// The HTML page of a forecast by `tr predict`, with its own script. `title` and the parts are HTML, and their texts
/// are escaped already.
pub fn forecast_page(title: &str, parts: &[(&str, &str)]) -> String {
    let scripts = format!("script-src {}; ", hash(FORECAST_SCRIPT));
    let script = ("script", FORECAST_SCRIPT);
    let parts: Vec<_> = parts.iter().copied().chain([script]).collect();
    page(&scripts, title, FORECAST, &parts)
}

/// Makes an HTML page: the head with the Content-Security-Policy and the style, and the template `body`, whose places
/// are filled with the `parts`. `scripts` is the policy for scripts.
fn page(scripts: &str, title: &str, body: &str, parts: &[(&str, &str)]) -> String {
    let csp = format!(
        "default-src 'none'; {scripts}style-src {}; base-uri 'none'; form-action 'none'",
        hash(style())
    );
    let head = [("csp", csp.as_str()), ("title", title), ("style", style())];
    fill(HEAD, &head) + &fill(body, parts)
}

fn untraced_page(analysis: &Analysis, file: &str, reason: &str) -> String {
    let command = escape::html(&who::headline(&analysis.meta));
    let usage = usage_lines(untraced::usage(analysis));
    let usage = usage
        .iter()
        .map(|(name, value)| format!("<p>{name}: {}</p>", escape::html(value)));
    let mut facts = crate::untraced::facts(analysis);
    facts.extend(ci::words(&Ci::new(&analysis.meta)));
    let reason = escape::html(reason);
    let parts = [
        ("reason", reason.as_str()),
        ("command", &command),
        ("facts", &escape::html(&facts.join(" · "))),
        ("usage", &usage.collect::<String>()),
        ("origin", &escape::html(&origin(analysis, file).join(" · "))),
    ];
    page("", &command, UNTRACED_PAGE, &parts)
}

/// The hash of a script or style in an HTML page, in the form that the Content-Security-Policy requires.
fn hash(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let hash = base64::engine::general_purpose::STANDARD.encode(hash);
    format!("'sha256-{hash}'")
}

/// Fills the places `{{name}}` of an HTML template with texts. `parts` has a name and a text for each place, in the
/// order of the places.
fn fill(page: &str, parts: &[(&str, &str)]) -> String {
    let length = parts.iter().map(|(_, part)| part.len()).sum::<usize>();
    let mut out = String::with_capacity(page.len() + length);
    let mut rest = page;
    for (name, part) in parts {
        if let Some((before, after)) = rest.split_once(&format!("{{{{{name}}}}}")) {
            out.push_str(before);
            out.push_str(part);
            rest = after;
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_ends_the_element_it_is_in() {
        let holds = |text: &str, what: &str| text.to_ascii_lowercase().contains(what);
        for script in [script(), LOADER] {
            assert!(!holds(script, "</script") && !holds(script, "<!--"));
        }
        assert!(!holds(style(), "</style"));
        assert!(
            !LOADER.contains('\r') && !style().contains('\r'),
            "the hash"
        );
    }

    #[test]
    fn every_place_is_filled_once() {
        let page = render(&Recording::default(), "a<b>{{script}}").unwrap();
        assert!(page.contains("<title>a&lt;b&gt;{{script}} · tr</title>"));
        assert_eq!(page.matches("{{").count(), 1, "the title's");
        assert_eq!(page.matches(LOADER).count(), 1);
        for text in [LOADER, script(), style()] {
            assert!(page.contains(&hash(text)));
        }
    }

    #[test]
    fn an_untraced_run_has_a_page_without_a_script() {
        let mut recording = Recording::default();
        let meta = &mut recording.analysis.meta;
        meta.not_traced = Some("no <right>{{usage}}".into());
        meta.command = vec![b"a<b>".to_vec()];
        let page = render(&recording, "{{origin}}").unwrap();
        assert!(page.contains("<h2>Not traced</h2><p>no &lt;right&gt;{{usage}}</p>"));
        assert!(page.contains("a&lt;b&gt;") && page.contains("no end"));
        assert!(!page.contains("<script") && page.contains(&hash(style())));
        assert_eq!(page.matches("{{").count(), 2, "the reason's and the file's");
    }
}
