//! What failed: first what explains COMMAND's own failure.

use std::fmt::Write;

use crate::called::TR;
use crate::facts::failure::{Failed, Failures};
use crate::style::{Paint, Style};
use crate::units;
use crate::view::View;

/// The most failures that get a line of their own beside the one that explains COMMAND's.
const FEW: usize = 3;
/// The parents of the first failure that are named.
const PARENTS: usize = 4;
const LEAD: &str = "Failed   ";

/// Writes the failures that count, and the number of the others if COMMAND failed.
pub(super) fn failed(out: &mut String, view: &View<'_>, style: &Style) {
    let failures = Failures::new(view.analysis, view.chosen);
    if let Some(cause) = failures.chain.first() {
        line(out, cause, style);
        let above: Vec<_> = failures.above().collect();
        if !above.is_empty() {
            let _ = writeln!(out, "{}{}", indent(), to_the_root(&above, style));
        }
    }
    for failure in failures.others.iter().take(FEW) {
        line(out, failure, style);
    }
    let tolerated = match failures.chain.is_empty() {
        true => 0,
        false => failures.tolerated,
    };
    let hidden = failures.others.len().saturating_sub(FEW);
    let parts = [
        (hidden, "more failed"),
        (tolerated, "failed without consequence"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts = parts.map(|(count, what)| format!("{} {what}", units::count(count as u64)));
    let parts: Vec<String> = parts.collect();
    if !parts.is_empty() {
        let text = format!("{}: {TR} analyze --report execs --failed", parts.join(", "));
        style.wrapped(out, Paint::Dim, &indent(), &text);
    }
}

fn indent() -> String {
    " ".repeat(LEAD.len())
}

fn line(out: &mut String, failure: &Failed, style: &Style) {
    let pid = failure.pid.map(|pid| format!(" (pid {pid})"));
    let fact = failure.fact() + &pid.unwrap_or_default();
    let room = style
        .width
        .saturating_sub(units::width(&fact) + LEAD.len() + 3);
    let what = units::shorten(&failure.name, room.max(20));
    let lead = style.paint(Paint::Bad, LEAD.trim_end());
    let fact = style.paint(Paint::Bad, &fact);
    let _ = writeln!(out, "{lead}   {what}   {fact}");
}

/// The parents of the first failure, from it up to the command.
fn to_the_root(above: &[(&str, &str)], style: &Style) -> String {
    let Some(((root, end), between)) = above.split_last() else {
        return String::new();
    };
    let shown = between.iter().take(PARENTS);
    let mut names: Vec<String> = shown
        .map(|(name, end)| format!("{} {end}", units::shorten(name, 30)))
        .collect();
    if between.len() > PARENTS {
        names.push("…".to_owned());
    }
    names.push(format!("{root} {end}"));
    let text = format!("→ {}", names.join(" → "));
    units::shorten(&text, style.width.saturating_sub(LEAD.len()))
}
