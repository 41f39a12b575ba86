//! Implements the options for text on standard output: its width, its colours, and whether it is
//! limited to ASCII.

use clap::ValueEnum;
use tr_text::style::Style;

use crate::layout::{color, variable};
use crate::pager;

/// The options for the layout of text on standard output: its width, its colours, and whether it is
/// limited to ASCII.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Layout {
    /// Columns of the text [default: COLUMNS, the terminal's, or 80]
    #[arg(long, value_name = "N")]
    width: Option<usize>,
    /// Colours. auto: on a terminal, and by NO_COLOR, CLICOLOR, CLICOLOR_FORCE and
    /// FORCE_COLOR
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

impl Layout {
    /// The style (width, colours, characters) of text on standard output, from the options and the
    /// terminal.
    pub fn style(self) -> Style {
        Style {
            width: self.columns().clamp(40, 10_000),
            color: match self.color {
                Color::Auto => color(),
                Color::Always => true,
                Color::Never => false,
            },
            ascii: ascii(),
            markdown: false,
        }
    }

    /// The style of a Markdown document, which does not depend on a terminal.
    pub fn markdown(self) -> Style {
        Style {
            width: self.width.unwrap_or(100).clamp(40, 10_000),
            color: false,
            ascii: false,
            markdown: true,
        }
    }

    fn columns(self) -> usize {
        let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
        let variable = || variable().filter(|columns| *columns > 0);
        let known = self.width.or_else(variable).or_else(pager::columns);
        known.unwrap_or(80)
    }
}

/// Whether the locale requires that text on the terminal is limited to ASCII.
fn ascii() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(variable);
    pager::terminal() && locale.is_some_and(|name| name == "C" || name == "POSIX")
}
