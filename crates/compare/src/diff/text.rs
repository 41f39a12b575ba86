//! `tr diff` as text.

use super::functions::NONE;
use super::tables::{Frame, Medium};
use super::Diff;
use super::{commands, conclusion, ends, gate, tables, warnings};
use tr_text::style::{Paint, Style};
use tr_text::table::Table;

struct Terminal<'a> {
    out: &'a mut String,
    style: &'a Style,
}

impl Medium for Terminal<'_> {
    /// Two words share the width beside the figures and a function's least.
    fn room(&self) -> usize {
        (self.style.width.saturating_sub(60) / 2).clamp(8, 40)
    }

    fn show<R>(&mut self, frame: Frame, table: Table<'_, R>, rows: Vec<R>) {
        let table = table.titled(frame.counted()).text(rows, self.style, 0);
        self.out.push_str(&format!("\n{table}"));
        if let Some(note) = frame.note {
            self.style.wrapped(self.out, Paint::Dim, "", note);
        }
    }
}

pub fn render(diff: &Diff, style: &Style) -> String {
    let mut out = String::new();
    let paint = match ends::no_build(diff) {
        Some(_) => Paint::Bad,
        None => Paint::Bold,
    };
    style.wrapped(&mut out, paint, "", &conclusion::sentence(diff));
    if let Some(text) = conclusion::explanation(diff) {
        style.wrapped(&mut out, Paint::Bold, "", &text);
    }
    header(diff, &mut out, style);
    for text in warnings::warnings(diff) {
        style.wrapped(&mut out, Paint::Bad, "! ", &text);
    }
    match diff.unchanged() {
        Some(text) => out += &format!("\n{text}\n"),
        None => tables::show_changes(
            diff,
            &mut Terminal {
                out: &mut out,
                style,
            },
        ),
    }
    let mut terminal = Terminal {
        out: &mut out,
        style,
    };
    tables::show_machine(diff, &mut terminal);
    tables::show_functions(diff, &mut terminal);
    if diff.functions.as_ref().is_some_and(Vec::is_empty) {
        out.push('\n');
        style.wrapped(&mut out, Paint::Dim, "", NONE);
    }
    if let Some((text, failed)) = gate::gate_words(diff) {
        out.push('\n');
        style.wrapped(&mut out, Paint::bad_if(failed), "", &text);
    }
    out
}

fn header(diff: &Diff, out: &mut String, style: &Style) {
    style.line(out, &commands::title(diff, style.width));
    for (lead, runs) in [("base  ", &diff.base), ("new   ", &diff.new)] {
        let files: Vec<String> = runs.iter().map(|run| run.file.clone()).collect();
        style.items(out, lead, &files);
    }
    style.wrapped(out, Paint::Dim, "", &warnings::statistic(diff));
}
