//! Writes `tr diff` as Markdown, for a comment on a pull request.

use super::{conclusion, ends, gate, tables, warnings};
use std::fmt::Write;

use super::commands::command;
use super::run::Figure;
use super::spread::percent;
use super::tables::{difference, Frame, Medium};
use super::Diff;
use tr_text::escape::{code, markdown};
use tr_text::table::Table;
use tr_text::units;

/// The largest number of rows of a table that a reader of the Markdown sees without a click. A longer table is folded.
const OPEN_ROWS: usize = 10;

struct Comment<'a>(&'a mut String);

impl Medium for Comment<'_> {
    fn show<R>(&mut self, frame: Frame, table: Table<'_, R>, rows: Vec<R>) {
        let fold = frame.folded || frame.shown > OPEN_ROWS;
        let note = frame
            .note
            .map_or(String::new(), |note| format!("\n{note}\n"));
        let Some(noun) = frame.noun else {
            let table = table.titled(frame.title).grid(rows).comment();
            let _ = writeln!(self.0, "{table}{note}");
            return;
        };
        let title = if frame.shown == frame.all {
            format!("({})", frame.shown)
        } else {
            format!("({} of {})", frame.shown, units::count(frame.all as u64))
        };
        let table = table.titled(noun).grid(rows).comment();
        let name = frame.title;
        let _ = if fold {
            writeln!(
                self.0,
                "<details><summary>{name} {title}</summary>\n\n{table}{note}\n</details>\n"
            )
        } else {
            writeln!(self.0, "**{name}** {title}\n\n{table}{note}")
        };
    }
}

/// The comparison of builds as Markdown for a comment on GitHub or GitLab.
pub fn render(diff: &Diff) -> String {
    let mut out = String::new();
    // If a build failed or a recording is partial, the wall times are left out here, and the conclusion gives the
    // reason.
    let wall = diff.whole(Figure::Wall);
    let wall = wall.filter(|_| ends::defect(diff).is_none());
    let change = wall.map_or(String::new(), |wall| {
        format!(
            ": {} → {}{}",
            units::time(wall.base),
            units::time(wall.new),
            match wall.difference() {
                0 => String::new(),
                _ => format!(
                    " (**{}, {}**)",
                    difference(Figure::Wall, wall),
                    percent(wall)
                ),
            }
        )
    });
    let (base, new) = (command(&diff.base), command(&diff.new));
    let base = if base == new {
        String::new()
    } else {
        format!("{} → ", code(&base))
    };
    let _ = writeln!(out, "### {base}{}{change}\n", code(&new));
    let sign = if ends::failure(diff).is_some() {
        "❌ "
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "{sign}**{}**\n",
        markdown(conclusion::sentence(diff).short())
    );
    if let Some(text) = conclusion::explanation(diff) {
        let _ = writeln!(out, "**{}**\n", markdown(&text));
    }
    if let Some((text, failed)) = gate::gate_words(diff) {
        let sign = if failed { "❌" } else { "✅" };
        let _ = writeln!(out, "{sign} {}\n", markdown(&text));
    }
    for text in warnings::warnings(diff) {
        let _ = writeln!(out, "⚠️ {}\n", markdown(&text));
    }
    match diff.unchanged() {
        Some(text) => out += &format!("{text}\n\n"),
        None => tables::show_changes(diff, &mut Comment(&mut out)),
    }
    tables::show_machine(diff, &mut Comment(&mut out));
    tables::show_functions(diff, &mut Comment(&mut out));
    let _ = writeln!(out, "<sub>{}</sub>", warnings::statistic(diff));
    out
}
