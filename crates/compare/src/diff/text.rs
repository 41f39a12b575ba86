//! Writes `tr diff` as text for a terminal.

use super::functions::NO_DIFFERENCE;
use super::tables::{Frame, Medium};
use super::Diff;
use super::{commands, conclusion, ends, gate, tables, warnings};
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::Table;

struct Terminal<'a> {
    out: &'a mut Page,
    style: &'a Style,
}

impl Medium for Terminal<'_> {
    /// The largest width of a column with words. Two such columns fit beside the figures and a function's name.
    fn room(&self) -> usize {
        (self.style.width.saturating_sub(60) / 2).clamp(8, 40)
    }

    fn show<R>(&mut self, frame: Frame, table: Table<'_, R>, rows: Vec<R>) {
        self.out.blank();
        self.out.table(&table.titled(frame.counted()), rows);
        if let Some(note) = frame.note {
            self.out.wrapped(Paint::Dim, "", note);
        }
    }
}

/// The whole comparison of two sides of builds as text for a terminal.
pub fn page(diff: &Diff, style: &Style) -> Page {
    let mut out = Page::new();
    let paint = match ends::defect(diff) {
        Some(_) => Paint::Bad,
        None => Paint::Bold,
    };
    out.wrapped(paint, "", conclusion::sentence(diff).short());
    if let Some(text) = conclusion::explanation(diff) {
        out.wrapped(Paint::Bold, "", &text);
    }
    header(diff, &mut out, style);
    for text in warnings::warnings(diff) {
        out.wrapped(Paint::Bad, "! ", &text);
    }
    match diff.unchanged() {
        Some(text) => {
            out.blank();
            out.spans([text]);
        }
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
        out.blank();
        out.wrapped(Paint::Dim, "", NO_DIFFERENCE);
    }
    if let Some((text, failed)) = gate::gate_words(diff) {
        out.blank();
        out.wrapped(Paint::bad_if(failed), "", &text);
    }
    out
}

fn header(diff: &Diff, out: &mut Page, style: &Style) {
    out.line(&commands::title(diff, style.width));
    for (lead, runs) in [("base  ", &diff.base), ("new   ", &diff.new)] {
        let files: Vec<String> = runs.iter().map(|run| run.file.clone()).collect();
        out.items(lead, &files);
    }
    out.wrapped(Paint::Dim, "", &warnings::statistic(diff));
}
