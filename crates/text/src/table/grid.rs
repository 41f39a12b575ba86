//! The columns and rows of a table for people, and their layout on a terminal, in Markdown and in HTML.

use std::fmt::Write;

use super::cell::Cell;
use crate::page::Span;
use crate::style::{Paint, Style};
use crate::{escape, units};

/// The title of a table for people, which stands above the names of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Title {
    pub noun: String,
    /// Figures that follow the title of the table in brackets, such as a number of rows.
    pub figures: Option<String>,
}

impl Title {
    /// The title of a table that shows only some of its rows: the noun, the number of shown rows and the number of all
    /// rows.
    pub fn top(noun: &str, shown: usize, all: usize) -> Title {
        let figures = format!("top {} of {}", shown.min(all), units::count(all as u64));
        Title {
            noun: noun.to_owned(),
            figures: Some(figures),
        }
    }
}

impl From<String> for Title {
    fn from(noun: String) -> Title {
        Title {
            noun,
            figures: None,
        }
    }
}

impl From<&str> for Title {
    fn from(noun: &str) -> Title {
        Title::from(noun.to_owned())
    }
}

impl std::fmt::Display for Title {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.figures {
            Some(figures) => write!(f, "{} ({figures})", self.noun),
            None => f.write_str(&self.noun),
        }
    }
}

/// A column's title, and how a table for people lays the column out.
#[derive(Clone, Debug)]
pub(super) struct Heading {
    pub title: String,
    pub right: bool,
    pub spare: bool,
}

/// A row of a table for people: its cells, its name, its colour.
#[derive(Clone, Debug)]
pub(super) struct GridRow {
    pub cells: Vec<Cell>,
    pub name: String,
    pub paint: Paint,
}

/// The columns and rows of a table for people, before a renderer escapes and aligns them.
#[derive(Clone, Debug)]
pub struct Grid {
    pub(super) headings: Vec<Heading>,
    pub(super) title: Title,
    /// Whether the names of the rows are words of this program. Names from the trace are shown as code in Markdown.
    pub(super) plain: bool,
    pub(super) rows: Vec<GridRow>,
}

/// The width in columns that is kept free for the names of a table's rows, unless all names are shorter. A narrow
/// terminal may leave less for the names, but at least `LEAST_WIDTH`.
const NAMES_WIDTH: usize = 26;
const LEAST_WIDTH: usize = 12;

/// The width in columns that remains for the names of a table's rows beside columns of the given widths.
pub(super) fn left(widths: &[usize], style: &Style, indent: usize) -> usize {
    let used = indent + used_by(widths);
    style.width.saturating_sub(used).max(LEAST_WIDTH)
}

/// The width of all columns of a table together, including the two spaces after each column. Columns of the width 0 are
/// left out.
fn used_by(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0);
    shown.map(|width| width + 2).sum()
}

impl Grid {
    /// For each row of the table, the texts of its cells and the text of its name.
    pub(super) fn texts(&self) -> Vec<(Vec<String>, String)> {
        let text = |row: &GridRow| {
            let cells = row.cells.iter().map(Cell::text);
            (cells.collect(), escape::text(row.name.as_bytes()))
        };
        self.rows.iter().map(text).collect()
    }

    /// The width of each column of the table on a terminal. The width is 0 for a column that is left out: a column
    /// without title and content, or one for which a narrow terminal has no room.
    pub(super) fn widths(
        &self,
        texts: &[(Vec<String>, String)],
        style: &Style,
        indent: usize,
    ) -> Vec<usize> {
        let titles = self.headings.iter();
        let titles = titles.map(|heading| units::width(&heading.title));
        let mut widths: Vec<usize> = titles.collect();
        for (cells, _) in texts {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = units::width(cell).max(*width);
            }
        }
        let names = texts.iter().map(|(_, name)| units::width(name)).max();
        let names = names.unwrap_or(0).max(units::width(&self.title.noun));
        // If the names have too little room, columns that are marked as spare are left out first, from the right. If
        // that is not enough on a narrow terminal, other columns are left out, except the first two.
        let last = || self.headings.iter().enumerate().rev();
        let spare = last().filter(|(_, heading)| heading.spare);
        let spare = spare.map(|(at, _)| (at, NAMES_WIDTH));
        let others = last()
            .filter(|(at, _)| *at > 1)
            .map(|(at, _)| (at, LEAST_WIDTH));
        for (at, least) in spare.chain(others) {
            let used = indent + used_by(&widths);
            if let Some(width) = widths.get_mut(at) {
                if used + names.min(least) > style.width {
                    *width = 0;
                }
            }
        }
        widths
    }

    /// The title above the names of a table's rows. If the whole title is wider than `room`, its figures get lines of
    /// their own, which are added to `lines`.
    fn heading(&self, lines: &mut Vec<Vec<Span>>, room: usize, style: &Style) -> String {
        let whole = self.title.to_string();
        match &self.title.figures {
            Some(figures) if units::width(&whole) > room => {
                let figures = units::wrap(&units::sentence(figures), style.width);
                lines.extend(
                    figures
                        .into_iter()
                        .map(|line| vec![Span::new(Paint::Bold, line)]),
                );
                self.title.noun.clone()
            }
            _ => whole,
        }
    }

    /// The lines of the table on a terminal. They begin `indent` columns from the left. On a narrow terminal, columns
    /// that are marked as spare are left out.
    pub(crate) fn lines(&self, style: &Style, indent: usize) -> Vec<Vec<Span>> {
        let texts = self.texts();
        let widths = self.widths(&texts, style, indent);
        let room = left(&widths, style, indent);
        let mut lines = Vec::new();
        let title = self.heading(&mut lines, room, style);
        let mut line = |cells: &mut dyn Iterator<Item = &str>, name: &str, paint| {
            let mut text = " ".repeat(indent);
            let columns = self.headings.iter().zip(&widths).zip(cells);
            for ((heading, width), cell) in columns.filter(|((_, width), _)| **width > 0) {
                text.push_str(&units::pad(cell, *width, heading.right));
                text.push_str("  ");
            }
            text.push_str(name);
            lines.push(vec![Span::new(paint, text.trim_end())]);
        };
        let titles = &mut self.headings.iter().map(|heading| heading.title.as_str());
        line(titles, &units::clip(&title, room), Paint::Bold);
        for (row, (cells, name)) in self.rows.iter().zip(&texts) {
            let name = if self.plain {
                units::clip(name, room)
            } else {
                units::shorten(name, room)
            };
            line(&mut cells.iter().map(String::as_str), &name, row.paint);
        }
        lines
    }

    /// The columns of the table that have a title or any content, with their indexes.
    fn used(&self) -> Vec<(usize, &Heading)> {
        let filled = |at: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.cells.get(at));
            cells.any(|cell| !cell.text().is_empty())
        };
        let all = self.headings.iter().enumerate();
        all.filter(|(at, heading)| !heading.title.is_empty() || filled(*at))
            .collect()
    }

    /// The rows of the table as a table in Markdown, in which the names come last.
    pub fn markdown(&self) -> String {
        self.rows_of_markdown(|mut cells, name| {
            cells.push(name);
            cells
        })
    }

    /// The rows of the table as a table in Markdown, in which the names come first.
    pub fn comment(&self) -> String {
        self.rows_of_markdown(|cells, name| std::iter::once(name).chain(cells).collect())
    }

    /// The rows of the table as a table in Markdown. `put` joins the cells of a row and its name.
    fn rows_of_markdown(&self, put: impl Fn(Vec<String>, String) -> Vec<String>) -> String {
        let used = self.used();
        let line = |cells, name| format!("| {} |\n", put(cells, name).join(" | "));
        let titles = used
            .iter()
            .map(|(_, heading)| escape::markdown(&heading.title));
        let rule = |right: bool| if right { "---:" } else { "---" }.to_owned();
        let rules = used.iter().map(|(_, heading)| rule(heading.right));
        let mut out = line(titles.collect(), escape::markdown(&self.title.to_string()));
        out += &line(rules.collect(), rule(false));
        for row in &self.rows {
            let name = if self.plain {
                escape::markdown(&row.name)
            } else {
                escape::code(&row.name)
            };
            let cells = used.iter().map(|(at, heading)| {
                let cell = row.cells.get(*at).unwrap_or(&Cell::Empty);
                cell.markdown(heading.right)
            });
            out += &line(cells.collect(), name);
        }
        out
    }

    /// The rows of the table as a table in HTML, in which the names come first.
    pub fn html(&self) -> String {
        let used = self.used();
        let class = |right| if right { "num" } else { "text" };
        let title = escape::html(&self.title.to_string());
        let mut out = format!("<table><thead><tr><th class=\"text\">{title}</th>");
        for (_, heading) in &used {
            let (class, title) = (class(heading.right), escape::html(&heading.title));
            let _ = write!(out, "<th class=\"{class}\">{title}</th>");
        }
        out.push_str("</tr></thead><tbody>");
        let cell = |out: &mut String, class: &str, cell: &str| {
            let cell = escape::html(cell);
            let _ = write!(out, "<td class=\"{class}\" title=\"{cell}\">{cell}</td>");
        };
        for row in &self.rows {
            out.push_str("<tr>");
            // The class `long` lets a long name end in an ellipsis on a narrow screen. Shorter names are wrapped.
            let long = row.name.chars().nth(60).is_some();
            cell(&mut out, if long { "text long" } else { "text" }, &row.name);
            for (at, heading) in &used {
                let text = row.cells.get(*at).map(Cell::text).unwrap_or_default();
                cell(&mut out, class(heading.right), &text);
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table>");
        out
    }
}
