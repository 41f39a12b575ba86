//! The width, the colours and the characters of a terminal.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub width: usize,
    pub color: bool,
    pub ascii: bool,
    /// Whether the page is written as Markdown, in which a table may have any width.
    pub markdown: bool,
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
    /// The colour of a failure if `failed` is set, otherwise no colour.
    pub fn bad_if(failed: bool) -> Paint {
        if failed {
            Paint::Bad
        } else {
            Paint::Plain
        }
    }
}

impl Style {
    /// The style without colours, 80 columns wide, for output that is not a terminal.
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

    /// A row of characters that draws each value as a column with eight possible heights. `whole` is the
    /// largest possible value. The row is empty if the terminal has ASCII alone. A value above 0 is never
    /// drawn as empty.
    pub fn sparkline(&self, values: &[u64], whole: u64) -> String {
        const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        if self.ascii {
            return String::new();
        }
        let column = |value: &u64| {
            let eighths = u128::from(*value) * 8 / u128::from(whole.max(1));
            let least = usize::from(*value > 0);
            let eighths = usize::try_from(eighths).unwrap_or(8).clamp(least, 8);
            EIGHTHS.get(eighths).copied().unwrap_or('█')
        };
        values.iter().map(column).collect()
    }

    /// A bar that shows `part` of `whole` and is drawn in eighths of a column. A full bar takes `columns` columns. A
    /// part above 0 is never drawn as empty.
    pub fn bar(&self, part: u64, whole: u64, columns: usize) -> String {
        self.bar_of('#', part, whole, columns)
    }

    /// Like [`Style::bar`], but consists of the character `ascii` where the terminal has ASCII alone.
    pub fn bar_of(&self, ascii: char, part: u64, whole: u64, columns: usize) -> String {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let eighths = if whole == 0 {
            0
        } else {
            (part as u128 * columns as u128 * 8 / whole as u128) as usize
        };
        if self.ascii {
            let least = usize::from(part > 0 && columns > 0);
            return ascii.to_string().repeat(((eighths + 4) / 8).max(least));
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
    fn a_row_of_columns_shows_each_value() {
        let values = [0, 1, 50, 100, 900];
        assert_eq!(Style::PLAIN.sparkline(&values, 100), " ▁▄██");
        assert_eq!(Style::PLAIN.sparkline(&[0, 5], 0), " █");
        let ascii = Style {
            ascii: true,
            ..Style::PLAIN
        };
        assert_eq!(ascii.sparkline(&values, 100), "");
    }
}
