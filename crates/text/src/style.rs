//! Layout of text: width, colours, lines, bars.

use std::fmt::Write;

use crate::units;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub width: usize,
    pub color: bool,
    pub ascii: bool,
    /// Whether tables are written for Markdown; [`document`] makes code blocks of the lines between them.
    pub markdown: bool,
}

/// The length of the longest sentence, in lines.
const LINES: usize = 3;

/// The first character of a table's row in Markdown. Escaped text has no control characters.
pub(crate) const TABLE_ROW: char = '\u{1}';

/// The Markdown of a report: its tables, and its other lines as blocks of code.
pub fn document(title: &str, text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let mut out = format!("### {title}\n");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let same = |other: &&str| other.starts_with(TABLE_ROW) == line.starts_with(TABLE_ROW);
        let mut block = vec![line];
        while let Some(next) = lines.next_if(same) {
            block.push(next);
        }
        if line.starts_with(TABLE_ROW) {
            let rows = block.iter().map(|row| row.trim_start_matches(TABLE_ROW));
            let _ = write!(out, "\n{}\n", rows.collect::<Vec<_>>().join("\n"));
        } else if block.iter().any(|line| !line.is_empty()) {
            let block = block.join("\n");
            let block = block.trim_matches('\n');
            let _ = write!(out, "\n{fence}text\n{block}\n{fence}\n");
        }
    }
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Bold,
    Dim,
    Bad,
    Bar,
}

impl Paint {
    /// The colour of a failure, or none.
    pub fn bad_if(failed: bool) -> Paint {
        if failed {
            Paint::Bad
        } else {
            Paint::Plain
        }
    }
}

impl Style {
    /// The style without colours and without a limit of the width, for output that is not a terminal.
    pub const PLAIN: Style = Style {
        width: 80,
        color: false,
        ascii: false,
        markdown: false,
    };

    /// The text with the escape codes of a colour, if colours are used.
    pub fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Plain => return text.to_owned(),
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Bad => "31",
            Paint::Bar => "34",
        };
        if self.color && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub fn painted(&self, out: &mut String, paint: Paint, text: &str) {
        let _ = writeln!(out, "{}", self.paint(paint, text));
    }

    /// Writes a text of any length after a lead, in as many lines as it needs.
    pub fn wrapped(&self, out: &mut String, paint: Paint, lead: &str, text: &str) {
        let indent = units::width(lead);
        let lines = units::wrap(text, self.width.saturating_sub(indent).max(20));
        for (at, line) in lines.iter().enumerate() {
            let line = match at {
                0 => format!("{lead}{line}"),
                _ => format!("{}{line}", " ".repeat(indent)),
            };
            self.painted(out, paint, &line);
        }
    }

    /// Writes a sentence, in several lines if need be: a figure in it must not be cut. A long one, as
    /// of a command line, is shortened in the middle.
    pub fn line(&self, out: &mut String, text: &str) {
        let sentence = text.trim();
        let (lead, _) = text.split_at(text.len() - text.trim_start().len());
        let room = self.width.saturating_sub(units::width(lead)).max(20);
        self.wrapped(
            out,
            Paint::Plain,
            lead,
            &units::shorten(sentence, room * LINES),
        );
    }

    /// Writes how many of `all` rows are not shown, if any.
    pub fn more(&self, out: &mut String, all: usize, shown: usize, what: &str) {
        if let Some(more @ 1..) = all.checked_sub(shown) {
            self.line(
                out,
                &format!("and {} more{what}", units::count(more as u64)),
            );
        }
    }

    /// Writes items after a lead, in as many lines as they need; nothing if there are none.
    pub fn items(
        &self,
        out: &mut String,
        lead: &str,
        items: impl IntoIterator<Item = impl AsRef<str>>,
    ) {
        const BETWEEN: &str = " · ";
        let indent = " ".repeat(units::width(lead));
        let mut lead = lead;
        let mut text = String::new();
        for item in items {
            let item = item.as_ref();
            let used = [lead, &text, BETWEEN, item].map(units::width);
            if !text.is_empty() && used.into_iter().sum::<usize>() > self.width {
                self.wrapped(out, Paint::Plain, lead, text.trim_end());
                lead = &indent;
                text.clear();
            }
            if !text.is_empty() {
                text.push_str(BETWEEN);
            }
            text.push_str(item);
        }
        if !text.is_empty() {
            self.wrapped(out, Paint::Plain, lead, text.trim_end());
        }
    }

    /// Writes a bar, the time and the count for each name. `columns`: the widest
    /// name, and the width beside names and bars. Where both have no room there are no bars.
    pub fn bars(
        &self,
        out: &mut String,
        rows: &[(&str, u64, u64)],
        whole: u64,
        columns: (usize, usize),
    ) {
        const LEAST: (usize, usize) = (10, 6);
        let names = rows.iter().map(|(name, ..)| units::width(name)).max();
        let room = self.width.saturating_sub(columns.1);
        let names = names.unwrap_or(0).min(columns.0);
        let names = names.min(room.saturating_sub(LEAST.1).max(LEAST.0));
        let columns = room.saturating_sub(names).min(40);
        let largest = rows.first().map_or(1, |(_, time, _)| *time);
        for (name, time, count) in rows {
            let bar = if columns >= LEAST.1 {
                units::pad(&self.bar(*time, largest, columns), columns, false) + "  "
            } else {
                String::new()
            };
            let _ = writeln!(
                out,
                "  {}  {}{}  {}  {:>6} ×",
                units::pad(&units::shorten(name, names), names, false),
                self.paint(Paint::Bar, &bar),
                units::pad(&units::time(*time), 9, true),
                units::pad(&units::share(*time, whole), 5, true),
                units::count(*count),
            );
        }
    }

    /// A bar in eighths of a column; the whole takes `columns`. A part above 0 is
    /// never empty.
    pub fn bar(&self, part: u64, whole: u64, columns: usize) -> String {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let eighths = if whole == 0 {
            0
        } else {
            (part as u128 * columns as u128 * 8 / whole as u128) as usize
        };
        if self.ascii {
            let least = usize::from(part > 0 && columns > 0);
            return "#".repeat(((eighths + 4) / 8).max(least));
        }
        let mut bar = "█".repeat(eighths / 8);
        bar.push_str(EIGHTHS.get(eighths % 8).copied().unwrap_or_default());
        if bar.is_empty() && part > 0 {
            bar.push('▏');
        }
        bar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Style = Style {
        width: 40,
        color: false,
        ascii: false,
        markdown: false,
    };

    #[test]
    fn bars_have_the_terminals_width() {
        let names = ["sleep or blocked in containerd-shim", "cc1"];
        let rows = names.map(|name| (name, 1_500_000_000, 12_345));
        for width in [40, 48, 50, 60, 80] {
            let style = Style { width, ..NARROW };
            for columns in [(28, 33), (24, 34)] {
                let mut out = String::new();
                style.bars(&mut out, &rows, 3_000_000_000, columns);
                let widest = out.lines().map(units::width).max();
                assert!(widest <= Some(width), "{width}: {out}");
                assert_eq!(out.contains('█'), width >= 50, "{width}: {out}");
            }
        }
    }

    #[test]
    fn a_sentence_keeps_its_figures() {
        let line = |text: &str| {
            let mut out = String::new();
            NARROW.line(&mut out, text);
            out
        };
        let text = "  Waits for block I/O: 1.31 s for vda, 21 ms for a disk that is not known ";
        let want = "  Waits for block I/O: 1.31 s for vda,\n  21 ms for a disk that is not known\n";
        assert_eq!(line(text), want);
        assert_eq!(line("short"), "short\n");
        assert_eq!(line(""), "\n");
        // A command line may have 16 KiB.
        let long = line(&format!("make {}done", "-j 2 ".repeat(3000)));
        let lines: Vec<&str> = long.lines().collect();
        assert!(
            lines.len() <= LINES + 1 && long.ends_with("done\n"),
            "{long}"
        );
        assert!(lines.iter().all(|line| line.len() <= 42), "{long}");
    }
}
