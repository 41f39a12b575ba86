//! The processes that failed: first the chain of failures that ends with the command's own.

use std::fmt::Write;

use tr_analyze::critical_path;
use tr_analyze::model::Process;

use crate::facts::failure::{chain, fails, parent_fails};
use crate::sort::Rows;
use crate::style::{Paint, Style};
use crate::view::View;
use crate::{exit, label, units};

/// The number of failures that get a line of their own if they explain nothing else.
const FEW: usize = 3;
/// The parents of the first failure that are named.
const PARENTS: usize = 4;

/// Writes the chain, and the number of the other failures.
pub(super) fn failed(out: &mut String, view: &View<'_>, style: &Style) {
    let analysis = view.analysis;
    let failed: Vec<&Process> = view.processes().filter(|it| fails(it)).collect();
    if failed.is_empty() {
        return;
    }
    let root = critical_path::root(analysis).ok();
    let chain = root.map(|root| chain(analysis, root)).unwrap_or_default();
    let Some((first, parents)) = chain.split_last() else {
        for process in failed.iter().take(FEW) {
            line(out, process, style);
        }
        let more = failed.len().saturating_sub(FEW);
        rest(out, more, "more failed", style);
        return;
    };
    line(out, first, style);
    if !parents.is_empty() {
        let _ = writeln!(out, "         {}", to_the_root(parents, style));
    }
    let in_chain = |process: &Process| chain.iter().any(|it| std::ptr::eq(*it, process));
    let others = failed.iter().filter(|process| !in_chain(process));
    // The last of them may be reasons as well: a script may end with a status of its own.
    let below = others.clone().copied();
    let below = below.filter(|process| parent_fails(analysis, process));
    let mut below: Vec<&Process> = below.collect();
    below.order_by_key(|process| std::cmp::Reverse((process.end, process.pid)));
    for process in below.iter().take(FEW) {
        line(out, process, style);
    }
    let hidden = below.len().saturating_sub(FEW);
    let as_well = "more failed below parents that failed as well";
    rest(out, hidden, as_well, style);
    let others = others.count() - below.len();
    rest(
        out,
        others,
        "more failed below parents that succeeded",
        style,
    );
}

fn line(out: &mut String, process: &Process, style: &Style) {
    let after = units::time(process.end.since(process.start));
    let fact = format!(
        "{} after {after} (pid {})",
        exit::words(process.status.unwrap_or(0)),
        process.pid.0
    );
    let room = style.width.saturating_sub(units::width(&fact) + 12).max(20);
    let what = units::shorten(&label::label(process), room);
    let lead = style.paint(Paint::Bad, "Failed");
    let _ = writeln!(out, "{lead}   {what}   {fact}");
}

/// The parents of the first failure, from it up to the command.
fn to_the_root(parents: &[&Process], style: &Style) -> String {
    let (root, between) = match parents.split_first() {
        Some((root, between)) => (*root, between),
        None => return String::new(),
    };
    let word = |process: &Process| exit::words(process.status.unwrap_or(0));
    let shown = between.iter().rev().take(PARENTS);
    let mut names: Vec<String> = shown
        .map(|it| format!("{} {}", units::shorten(&label::label(it), 30), word(it)))
        .collect();
    if between.len() > PARENTS {
        names.push("…".to_owned());
    }
    names.push(format!("the command {}", word(root)));
    let text = format!("→ {}", names.join(" → "));
    units::shorten(&text, style.width.saturating_sub(9))
}

fn rest(out: &mut String, count: usize, what: &str, style: &Style) {
    if count > 0 {
        let text = format!("         {} {what}", units::count(count as u64));
        style.painted(out, Paint::Dim, &text);
    }
}
