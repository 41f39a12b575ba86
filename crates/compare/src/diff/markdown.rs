//! `tr diff` as Markdown, for a comment on a pull request.

use std::fmt::Write;

use super::commands::command;
use super::tables::{difference, Frame, Medium};
use super::{percent, Diff, Figure};
use tr_text::escape::{code, markdown};
use tr_text::table::Table;
use tr_text::units;

/// The largest number of rows of a table that is not folded.
const OPEN: usize = 10;

struct Comment<'a>(&'a mut String);

impl Medium for Comment<'_> {
    fn show<R>(&mut self, frame: Frame, table: Table<'_, R>, rows: Vec<R>) {
        let fold = frame.folded || frame.rows.0 > OPEN;
        let note = frame
            .note
            .map_or(String::new(), |note| format!("\n{note}\n"));
        let Some(noun) = frame.noun else {
            let table = table.titled(frame.title).comment(rows);
            let _ = writeln!(self.0, "{table}{note}");
            return;
        };
        let title = match frame.rows {
            (shown, all) if shown == all => format!("({shown})"),
            (shown, all) => format!("({shown} of {})", units::count(all as u64)),
        };
        let table = table.titled(noun).comment(rows);
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

impl Diff {
    /// Markdown for GitHub and GitLab.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        // Of a build that failed, the conclusion tells the times.
        let wall = self.whole(Figure::Wall);
        let wall = wall.filter(|_| self.no_build().is_none());
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
        let (base, new) = (command(&self.base), command(&self.new));
        let base = if base == new {
            String::new()
        } else {
            format!("{} → ", code(&base))
        };
        let _ = writeln!(out, "### {base}{}{change}\n", code(&new));
        let sign = if self.failure().is_some() { "❌ " } else { "" };
        let _ = writeln!(out, "{sign}**{}**\n", markdown(&self.conclusion()));
        if let Some(text) = self.explanation() {
            let _ = writeln!(out, "**{}**\n", markdown(&text));
        }
        if let Some((text, failed)) = self.gate_words() {
            let sign = if failed { "❌" } else { "✅" };
            let _ = writeln!(out, "{sign} {}\n", markdown(&text));
        }
        for text in self.warnings() {
            let _ = writeln!(out, "⚠️ {}\n", markdown(&text));
        }
        match self.unchanged() {
            Some(text) => out += &format!("{text}\n\n"),
            None => self.show_changes(&mut Comment(&mut out)),
        }
        self.show_machine(&mut Comment(&mut out));
        self.show_functions(&mut Comment(&mut out));
        let _ = writeln!(out, "<sub>{}</sub>", self.statistic());
        out
    }
}
