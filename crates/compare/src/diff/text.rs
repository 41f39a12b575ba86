//! `tr diff` as text.

use super::functions::NONE;
use super::tables::{Frame, Medium};
use super::Diff;
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

impl Diff {
    pub fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let paint = match self.no_build() {
            Some(_) => Paint::Bad,
            None => Paint::Bold,
        };
        style.wrapped(&mut out, paint, "", &self.conclusion());
        if let Some(text) = self.explanation() {
            style.wrapped(&mut out, Paint::Bold, "", &text);
        }
        self.header(&mut out, style);
        for text in self.warnings() {
            style.wrapped(&mut out, Paint::Bad, "! ", &text);
        }
        match self.unchanged() {
            Some(text) => out += &format!("\n{text}\n"),
            None => self.show_changes(&mut Terminal {
                out: &mut out,
                style,
            }),
        }
        let mut terminal = Terminal {
            out: &mut out,
            style,
        };
        self.show_machine(&mut terminal);
        self.show_functions(&mut terminal);
        if self.functions.as_ref().is_some_and(Vec::is_empty) {
            out.push('\n');
            style.wrapped(&mut out, Paint::Dim, "", NONE);
        }
        if let Some((text, failed)) = self.gate_words() {
            out.push('\n');
            style.wrapped(&mut out, Paint::bad_if(failed), "", &text);
        }
        out
    }

    fn header(&self, out: &mut String, style: &Style) {
        style.line(out, &self.title(style.width));
        for (lead, runs) in [("base  ", &self.base), ("new   ", &self.new)] {
            let files: Vec<String> = runs.iter().map(|run| run.file.clone()).collect();
            style.items(out, lead, &files);
        }
        style.wrapped(out, Paint::Dim, "", &self.statistic());
    }
}
