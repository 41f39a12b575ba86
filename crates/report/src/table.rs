//! Tables: aligned text with units, and CSV with plain numbers.

use serde_json::Value;

use crate::style::{Paint, Style, TABLE_ROW};
use crate::{escape, units};

/// A cell of a table in text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Empty,
    /// `?`.
    Unknown,
    /// A duration in ns.
    Time(u64),
    /// The part of a duration that lies in the trace, in ns: `>1.0 s`.
    AtLeast(u64),
    /// The known part of a wait, in ns: `≥ 1.0 s`.
    WaitAtLeast(u64),
    /// A duration in ns, shown in seconds.
    Seconds(u64),
    /// A timestamp in ns since the start of the trace.
    At(u64),
    Count(u64),
    /// A pid, tid, CPU or exit code.
    Id(u32),
    /// A size in bytes.
    Bytes(u64),
    /// The known part of a size in bytes: `≥ 12 KiB`.
    BytesAtLeast(u64),
    /// A part and the whole.
    Share(u64, u64),
    Text(String),
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl Cell {
    /// `Unknown` for `None`.
    pub fn known<T>(value: Option<T>, known: impl Fn(T) -> Cell) -> Cell {
        value.map_or(Cell::Unknown, known)
    }

    /// `Empty` for 0.
    pub fn few(number: u64, cell: impl Fn(u64) -> Cell) -> Cell {
        if number > 0 {
            cell(number)
        } else {
            Cell::Empty
        }
    }

    /// The length of a wait; a lower bound unless both its ends are known.
    pub fn wait(ns: u64, whole: bool) -> Cell {
        if whole {
            Cell::Time(ns)
        } else {
            Cell::WaitAtLeast(ns)
        }
    }

    /// A size; a lower bound unless it is `whole`. A lower bound of 0 tells nothing.
    pub fn bytes(count: u64, whole: bool) -> Cell {
        match (whole, count) {
            (true, _) => Cell::few(count, Cell::Bytes),
            (false, 0) => Cell::Unknown,
            (false, _) => Cell::BytesAtLeast(count),
        }
    }

    fn text(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Unknown => "?".into(),
            Cell::Time(ns) => units::time(*ns),
            Cell::AtLeast(ns) => format!(">{}", units::time(*ns)),
            Cell::WaitAtLeast(ns) => format!("≥ {}", units::time(*ns)),
            Cell::Seconds(ns) => format!("{}.{:04}", ns / 1_000_000_000, ns / 100_000 % 10_000),
            Cell::At(ns) => units::at(*ns),
            Cell::Count(number) => units::count(*number),
            Cell::Id(id) => id.to_string(),
            Cell::Bytes(count) => units::bytes(*count),
            Cell::BytesAtLeast(count) => format!("≥ {}", units::bytes(*count)),
            Cell::Share(part, whole) => units::share(*part, *whole),
            Cell::Text(text) => text.clone(),
        }
    }
}

/// A column's content in a row of type `R`.
type Of<'a, R, T> = Box<dyn Fn(&R) -> T + 'a>;

struct Column<'a, R> {
    title: String,
    right: bool,
    /// A narrow table leaves it out.
    spare: bool,
    cell: Of<'a, R, Cell>,
}

/// A row: its cells, its name, its colour.
type Line = (Vec<String>, String, Paint);

/// The least width of the names, unless all are shorter.
const NAMES: usize = 26;

/// The columns of a table whose rows are made from values of type `R`.
pub struct Table<'a, R> {
    columns: Vec<Column<'a, R>>,
    title: String,
    name: Of<'a, R, String>,
    paint: Of<'a, R, Paint>,
}

impl<'a, R> Table<'a, R> {
    /// A table with its last column: names, escaped, which take the remaining
    /// width.
    pub fn new(title: impl Into<String>, name: impl Fn(&R) -> String + 'a) -> Table<'a, R> {
        Table {
            columns: Vec::new(),
            title: title.into(),
            name: Box::new(name),
            paint: Box::new(|_| Paint::Plain),
        }
    }

    /// Adds a column of numbers, aligned on the right.
    #[must_use]
    pub fn column(self, title: &str, cell: impl Fn(&R) -> Cell + 'a) -> Table<'a, R> {
        self.add(title, true, Box::new(cell))
    }

    /// Adds a column of numbers if it is `shown`.
    #[must_use]
    pub fn column_if(
        self,
        shown: bool,
        title: &str,
        cell: impl Fn(&R) -> Cell + 'a,
    ) -> Table<'a, R> {
        if shown {
            self.column(title, cell)
        } else {
            self
        }
    }

    /// Adds a column of text, aligned on the left.
    #[must_use]
    pub fn words(self, title: &str, cell: impl Fn(&R) -> Cell + 'a) -> Table<'a, R> {
        self.add(title, false, Box::new(cell))
    }

    fn add(mut self, title: &str, right: bool, cell: Of<'a, R, Cell>) -> Table<'a, R> {
        let title = title.to_owned();
        self.columns.push(Column {
            title,
            right,
            spare: false,
            cell,
        });
        self
    }

    /// Adds a column of numbers if it is `shown`, which a narrow table leaves out. The last
    /// such column leaves first.
    #[must_use]
    pub fn spare_if(
        self,
        shown: bool,
        title: &str,
        cell: impl Fn(&R) -> Cell + 'a,
    ) -> Table<'a, R> {
        let mut table = self.column_if(shown, title, cell);
        if let Some(column) = table.columns.last_mut().filter(|_| shown) {
            column.spare = true;
        }
        table
    }

    #[must_use]
    pub fn paint(mut self, paint: impl Fn(&R) -> Paint + 'a) -> Table<'a, R> {
        self.paint = Box::new(paint);
        self
    }

    /// The table as text, `indent` columns from the left. A column without title
    /// and content is left out, and a narrow table has no spare columns.
    pub fn text(&self, rows: impl IntoIterator<Item = R>, style: &Style, indent: usize) -> String {
        let texts = |row: &R| -> Vec<String> {
            let columns = self.columns.iter();
            columns.map(|column| (column.cell)(row).text()).collect()
        };
        let rows = rows.into_iter();
        let rows = rows.map(|row| (texts(&row), (self.name)(&row), (self.paint)(&row)));
        let rows: Vec<Line> = rows.collect();
        if style.markdown {
            return self.markdown(&rows);
        }
        let widths = self.widths(&rows, style, indent);
        let shown = widths.iter().filter(|width| **width > 0);
        let used = indent + shown.map(|width| width + 2).sum::<usize>();
        let room = style.width.saturating_sub(used).max(12);
        let mut out = String::new();
        let title = self.heading(&mut out, room, style);
        let titles = self.columns.iter().map(|column| column.title.clone());
        let titles = (titles.collect(), title.to_owned(), Paint::Bold);
        for (cells, name, paint) in std::iter::once(&titles).chain(&rows) {
            let mut text = " ".repeat(indent);
            let columns = self.columns.iter().zip(&widths).zip(cells);
            for ((column, width), cell) in columns.filter(|((_, width), _)| **width > 0) {
                text.push_str(&units::pad(cell, *width, column.right));
                text.push_str("  ");
            }
            text.push_str(&units::shorten(name, room));
            style.painted(&mut out, *paint, text.trim_end());
        }
        out
    }

    /// The width of each column; 0 if it is left out.
    fn widths(&self, rows: &[Line], style: &Style, indent: usize) -> Vec<usize> {
        let titles = self
            .columns
            .iter()
            .map(|column| units::width(&column.title));
        let mut widths: Vec<usize> = titles.collect();
        for (cells, ..) in rows {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = units::width(cell).max(*width);
            }
        }
        let names = rows.iter().map(|(_, name, _)| units::width(name)).max();
        let names = names.unwrap_or(0).max(units::width(noun(&self.title)));
        let names = names.min(NAMES);
        let spare = self.columns.iter().enumerate().rev();
        for (at, _) in spare.filter(|(_, column)| column.spare) {
            let shown = widths.iter().filter(|width| **width > 0);
            let used = indent + shown.map(|width| width + 2).sum::<usize>();
            if used + names <= style.width {
                break;
            }
            if let Some(width) = widths.get_mut(at) {
                *width = 0;
            }
        }
        widths
    }

    /// The title of the names. If the whole title has no room there, the figures in its brackets
    /// have a line of their own.
    fn heading(&self, out: &mut String, room: usize, style: &Style) -> &str {
        let noun = noun(&self.title);
        if units::width(&self.title) <= room || noun.len() == self.title.len() {
            return &self.title;
        }
        let figures = self.title.get(noun.len()..).unwrap_or_default();
        let figures = units::sentence(figures.trim_start_matches(" (").trim_end_matches(')'));
        for line in units::wrap(&figures, style.width) {
            style.painted(out, Paint::Bold, &line);
        }
        noun
    }

    /// The rows of a table in Markdown, each marked as such.
    fn markdown(&self, rows: &[Line]) -> String {
        let used = self.columns.iter().enumerate().filter(|(at, column)| {
            let filled = |(cells, ..): &Line| cells.get(*at).is_some_and(|cell| !cell.is_empty());
            !column.title.is_empty() || rows.iter().any(filled)
        });
        let used: Vec<(usize, &Column<'a, R>)> = used.collect();
        let mut out = String::new();
        let mut row = |cells: Vec<String>| {
            out.push(TABLE_ROW);
            out.push_str("| ");
            out.push_str(&cells.join(" | "));
            out.push_str(" |\n");
        };
        let titles = used
            .iter()
            .map(|(_, column)| escape::markdown(&column.title));
        row(titles.chain([escape::markdown(&self.title)]).collect());
        let rule = |right: bool| if right { "---:" } else { "---" }.to_owned();
        let rules = used.iter().map(|(_, column)| rule(column.right));
        row(rules.chain([rule(false)]).collect());
        for (cells, name, _) in rows {
            let cells = used.iter().map(|(at, column)| {
                let cell = cells.get(*at).map(String::as_str).unwrap_or_default();
                match column.right {
                    true if is_figure(cell) => cell.to_owned(),
                    true => escape::markdown(cell),
                    false => escape::code(cell),
                }
            });
            row(cells.chain([escape::code(name)]).collect());
        }
        out
    }
}

/// A number with its unit has no Markdown.
fn is_figure(cell: &str) -> bool {
    let number = |word: &str| {
        word.chars()
            .all(|c| c.is_ascii_digit() || ".,%–−+".contains(c))
    };
    let unit = |word: &str| word.len() <= 3 && word.chars().all(char::is_alphabetic);
    cell.split(' ').all(|word| number(word) || unit(word))
}

/// A title without the figures in brackets after it.
fn noun(title: &str) -> &str {
    title.split(" (").next().unwrap_or(title)
}

/// Rows of JSON as CSV. `columns` are the names of members of the rows, or of a
/// column and the path of its member: `exit_code=exit/code`. What is not known
/// is empty.
///
/// # Errors
/// None in practice: it writes to memory.
pub fn csv(rows: impl IntoIterator<Item = Value>, columns: &str) -> Result<Vec<u8>, csv::Error> {
    let columns: Vec<(&str, String)> = columns
        .split_whitespace()
        .map(|column| column.split_once('=').unwrap_or((column, column)))
        .map(|(name, path)| (name, format!("/{path}")))
        .collect();
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(columns.iter().map(|(name, _)| name))?;
    for row in rows {
        out.write_record(columns.iter().map(|(_, path)| plain(row.pointer(path))))?;
    }
    out.into_inner().map_err(|e| e.into_error().into())
}

fn plain(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => escape::cell(text),
        Some(Value::Bool(is)) => u8::from(*is).to_string(),
        Some(value) => value.to_string(),
    }
}
