//! How text is laid out: widths, colours, lines, bars.

use std::fmt::Write;

use crate::units;

/// How to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// With colours.
    pub color: bool,
    /// Bars and lines of ASCII characters only.
    pub ascii: bool,
}

/// Colours by meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// None.
    Plain,
    /// A title.
    Bold,
    /// What is less important.
    Dim,
    /// What went wrong.
    Bad,
    /// A bar.
    Bar,
}

impl Style {
    /// The text in a colour, if there are colours.
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

    /// Writes a line, cut to the width.
    pub fn line(&self, out: &mut String, text: &str) {
        let _ = writeln!(out, "{}", units::shorten(text.trim_end(), self.width));
    }

    /// Writes items behind a lead, in as many lines as they need: nothing is
    /// cut out.
    pub fn items(&self, out: &mut String, lead: &str, items: &[String], between: &str) {
        let indent = units::width(lead);
        let mut text = lead.to_owned();
        let mut empty = true;
        for item in items {
            let more = units::width(&text) + units::width(between) + units::width(item);
            if !empty && more > self.width {
                self.line(out, &text);
                text = " ".repeat(indent);
                empty = true;
            }
            if !empty {
                text.push_str(between);
            }
            text.push_str(item);
            empty = false;
        }
        self.line(out, &text);
    }

    /// A bar of eighths, `columns` long for the whole; the smallest part shows.
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

    #[test]
    fn bars_end_at_eighths_or_at_whole_characters() {
        let fine = Style {
            width: 80,
            color: false,
            ascii: false,
        };
        let plain = Style {
            ascii: true,
            ..fine
        };
        let both = |part| (fine.bar(part, 80, 10), plain.bar(part, 80, 10));
        assert_eq!(both(80), ("█".repeat(10), "#".repeat(10)));
        assert_eq!(both(12), ("█▌".into(), "##".into()));
        assert_eq!(both(1), ("▏".into(), "#".into()), "little is not nothing");
        assert_eq!(both(0), (String::new(), String::new()));
        assert_eq!(fine.bar(1, 0, 10), "▏", "a part of nothing");
    }
}
