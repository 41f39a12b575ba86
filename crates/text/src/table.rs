//! Tables: each column is declared once, and makes text with units, Markdown, HTML, CSV and JSON with
//! plain numbers.

use std::fmt::Write;

use serde_json::{json, Map, Value};

use crate::page::Span;
use crate::style::{Paint, Style};
use crate::{escape, units};

/// A cell of a table in text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Empty,
    /// An unknown value, shown as `?`.
    Unknown,
    /// A duration in ns.
    Time(u64),
    /// The recorded part, in ns, of a duration that continues outside the trace: `>1.0 s`.
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
    Bytes(u64),
    /// The known part of a size in bytes: `≥ 12 KiB`.
    BytesAtLeast(u64),
    /// A part and the whole.
    Share(u64, u64),
    /// Words in place of a value that is not known.
    Note(&'static str),
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
    /// The cell of a value, or `Unknown` for `None`.
    pub fn known<T>(value: Option<T>, known: impl Fn(T) -> Cell) -> Cell {
        value.map_or(Cell::Unknown, known)
    }

    /// The length of a wait; a lower bound unless both its ends are known.
    pub fn wait(ns: u64, whole: bool) -> Cell {
        if whole {
            Cell::Time(ns)
        } else {
            Cell::WaitAtLeast(ns)
        }
    }

    /// A size in bytes, which is a lower bound unless it is `whole`. A lower bound of 0 is shown as unknown.
    pub fn bytes(count: u64, whole: bool) -> Cell {
        match (whole, count) {
            (true, _) => Cell::Bytes(count),
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
            // Rounded, as every duration.
            Cell::Seconds(ns) => {
                let ticks = ns.saturating_add(50_000) / 100_000;
                format!("{}.{:04}", ticks / 10_000, ticks % 10_000)
            }
            Cell::At(ns) => units::at(*ns),
            Cell::Count(number) => units::count(*number),
            Cell::Id(id) => id.to_string(),
            Cell::Bytes(count) => units::bytes(*count),
            Cell::BytesAtLeast(count) => format!("≥ {}", units::bytes(*count)),
            Cell::Share(part, whole) => units::share(*part, *whole),
            Cell::Note(text) => (*text).to_owned(),
            Cell::Text(text) => escape::text(text.as_bytes()),
        }
    }

    /// The cell in Markdown: text of a trace as code, and figures without the rules for words.
    fn markdown(&self, right: bool) -> String {
        match self {
            Cell::Empty => String::new(),
            cell if !right => escape::code(&cell.text()),
            Cell::Text(text) => escape::markdown(text),
            cell => escape::figure(&cell.text()),
        }
    }

    /// The value in CSV and JSON, where a lower bound of bytes counts as unknown.
    fn plain(&self) -> Value {
        match self {
            Cell::Empty | Cell::Unknown | Cell::Note(_) => Value::Null,
            Cell::BytesAtLeast(_) | Cell::Share(..) => Value::Null,
            Cell::Time(number)
            | Cell::AtLeast(number)
            | Cell::WaitAtLeast(number)
            | Cell::Seconds(number)
            | Cell::At(number)
            | Cell::Count(number)
            | Cell::Bytes(number) => json!(number),
            Cell::Id(id) => json!(id),
            Cell::Text(text) => json!(text),
        }
    }

    /// The unit in the key of CSV and JSON.
    fn unit(&self) -> &'static str {
        match self {
            Cell::Bytes(_) | Cell::BytesAtLeast(_) => "bytes",
            Cell::Time(_) | Cell::AtLeast(_) | Cell::WaitAtLeast(_) => "ns",
            Cell::Seconds(_) | Cell::At(_) => "ns",
            _ => "",
        }
    }

    fn is_zero(&self) -> bool {
        matches!(
            self,
            Cell::Time(0) | Cell::Count(0) | Cell::Bytes(0) | Cell::Share(0, _)
        )
    }
}

/// A column's content in a row of type `R`.
type Of<'a, R, T> = Box<dyn Fn(&R) -> T + 'a>;

/// The source of a column's cells.
enum Content<'a, R> {
    Cell(Of<'a, R, Cell>),
    /// The row's name, which is in the last column of a text.
    Name,
    /// A value that only CSV and JSON have.
    Data(Of<'a, R, Value>),
}

/// The formats that have a column's key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Media {
    Both,
    Csv,
    Json,
}

struct Column<'a, R> {
    /// The title in tables. A column without a title is left out if it is empty.
    title: String,
    /// The key in CSV and JSON, with its unit; `None` if only tables for people have the column.
    key: Option<String>,
    /// The key in CSV, if it has another one.
    csv_key: Option<&'static str>,
    media: Media,
    right: bool,
    /// Whether tables for people have the column.
    shown: bool,
    /// Whether a narrow table leaves the column out.
    spare: bool,
    /// Whether tables for people leave zeros out.
    few: bool,
    /// The place in tables for people, after the columns without one.
    place: Option<usize>,
    content: Content<'a, R>,
}

impl<R> Column<'_, R> {
    /// The cell that people see.
    fn cell(&self, row: &R) -> Cell {
        match &self.content {
            Content::Cell(cell) => match cell(row) {
                cell if self.few && cell.is_zero() => Cell::Empty,
                cell => cell,
            },
            Content::Name | Content::Data(_) => Cell::Empty,
        }
    }
}

/// The title of a table's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Title {
    pub noun: String,
    /// The figures that follow in brackets.
    pub figures: Option<String>,
}

impl Title {
    /// The title of a table that shows some of its rows, with their number and that of all.
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
struct Heading {
    title: String,
    right: bool,
    spare: bool,
}

/// A row of a grid: its cells, its name, its colour.
#[derive(Clone, Debug)]
struct GridRow {
    cells: Vec<Cell>,
    name: String,
    paint: Paint,
}

/// A table's columns and rows for people, before a renderer escapes and aligns them.
#[derive(Clone, Debug)]
pub struct Grid {
    headings: Vec<Heading>,
    title: Title,
    /// Whether the names are words of this program instead of code.
    plain: bool,
    rows: Vec<GridRow>,
}

/// The least width of the names, unless all are shorter; and on a narrow terminal.
const NAMES: usize = 26;
const LEAST: usize = 12;

/// The width that remains for the names beside columns of the given widths.
fn left(widths: &[usize], style: &Style, indent: usize) -> usize {
    let used = indent + used_by(widths);
    style.width.saturating_sub(used).max(LEAST)
}

/// The width of all columns, with the space behind each.
fn used_by(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0);
    shown.map(|width| width + 2).sum()
}

/// The columns of a table whose rows are made from values of type `R`.
pub struct Table<'a, R> {
    columns: Vec<Column<'a, R>>,
    title: Title,
    name: Of<'a, R, String>,
    paint: Of<'a, R, Paint>,
    /// Whether the names are words of this program instead of code.
    plain: bool,
}

impl<'a, R> Table<'a, R> {
    /// Makes a table with its last column: the names, which take the remaining width.
    pub fn new(title: impl Into<Title>, name: impl Fn(&R) -> String + 'a) -> Table<'a, R> {
        Table {
            columns: Vec::new(),
            title: title.into(),
            name: Box::new(name),
            paint: Box::new(|_| Paint::Plain),
            plain: false,
        }
    }

    /// Makes a table without names, for CSV and JSON.
    pub fn unnamed() -> Table<'a, R> {
        Table::new("", |_| String::new())
    }

    /// Replaces the title of the rows in tables for people.
    #[must_use]
    pub fn titled(mut self, title: impl Into<Title>) -> Table<'a, R> {
        self.title = title.into();
        self
    }

    /// Marks the names as words of this program, which Markdown does not show as code.
    #[must_use]
    pub fn plain(mut self) -> Table<'a, R> {
        self.plain = true;
        self
    }

    /// Adds a column of numbers, aligned on the right, which only tables for people have.
    #[must_use]
    pub fn column(self, title: &str, cell: impl Fn(&R) -> Cell + 'a) -> Table<'a, R> {
        self.add(title, None, Content::Cell(Box::new(cell)))
    }

    /// Adds a column of text, aligned on the left, which only tables for people have.
    #[must_use]
    pub fn words(self, title: &str, cell: impl Fn(&R) -> Cell + 'a) -> Table<'a, R> {
        self.column(title, cell).left()
    }

    /// Adds a column of numbers with its key in CSV and JSON: `waited_ns`.
    #[must_use]
    pub fn fact(
        self,
        title: &str,
        key: impl Into<String>,
        cell: impl Fn(&R) -> Cell + 'a,
    ) -> Table<'a, R> {
        self.add(title, Some(key.into()), Content::Cell(Box::new(cell)))
    }

    /// Sets the key of the names in CSV and JSON.
    #[must_use]
    pub fn named(self, key: &str) -> Table<'a, R> {
        self.add("", Some(key.to_owned()), Content::Name)
    }

    /// Adds a value that only CSV and JSON have.
    #[must_use]
    pub fn data<T: Into<Value>>(
        self,
        key: impl Into<String>,
        value: impl Fn(&R) -> T + 'a,
    ) -> Table<'a, R> {
        let value = move |row: &R| value(row).into();
        self.add("", Some(key.into()), Content::Data(Box::new(value)))
    }

    /// Adds a value that only JSON has.
    #[must_use]
    pub fn json_data<T: Into<Value>>(
        self,
        key: impl Into<String>,
        value: impl Fn(&R) -> T + 'a,
    ) -> Table<'a, R> {
        self.data(key, value)
            .with(|column| column.media = Media::Json)
    }

    /// Adds a value that only CSV has.
    #[must_use]
    pub fn csv_data<T: Into<Value>>(
        self,
        key: impl Into<String>,
        value: impl Fn(&R) -> T + 'a,
    ) -> Table<'a, R> {
        self.data(key, value)
            .with(|column| column.media = Media::Csv)
    }

    fn add(mut self, title: &str, key: Option<String>, content: Content<'a, R>) -> Table<'a, R> {
        self.columns.push(Column {
            title: title.to_owned(),
            key,
            csv_key: None,
            media: Media::Both,
            right: true,
            shown: matches!(content, Content::Cell(_)),
            spare: false,
            few: false,
            place: None,
            content,
        });
        self
    }

    fn with(mut self, set: impl FnOnce(&mut Column<'a, R>)) -> Table<'a, R> {
        if let Some(column) = self.columns.last_mut() {
            set(column);
        }
        self
    }

    /// Restricts the key of the last column to CSV.
    #[must_use]
    pub fn csv_only(self) -> Table<'a, R> {
        self.with(|column| column.media = Media::Csv)
    }

    /// Restricts the key of the last column to JSON.
    #[must_use]
    pub fn json_only(self) -> Table<'a, R> {
        self.with(|column| column.media = Media::Json)
    }

    /// Shows the last column in tables for people only if `shown` is true.
    #[must_use]
    pub fn shown(self, shown: bool) -> Table<'a, R> {
        self.with(|column| column.shown = shown)
    }

    /// Lets a narrow table leave the last column out. Of several such columns, the last one is left out first.
    #[must_use]
    pub fn spare(self) -> Table<'a, R> {
        self.with(|column| column.spare = true)
    }

    /// Hides zeros of the last column in tables for people.
    #[must_use]
    pub fn few(self) -> Table<'a, R> {
        self.with(|column| column.few = true)
    }

    /// Aligns the last column on the left, as text.
    #[must_use]
    pub fn left(self) -> Table<'a, R> {
        self.with(|column| column.right = false)
    }

    /// Shows the last column in tables for people after all columns without a place, in the order of places.
    #[must_use]
    pub fn place(self, place: usize) -> Table<'a, R> {
        self.with(|column| column.place = Some(place))
    }

    /// Sets another key of the last column in CSV.
    #[must_use]
    pub fn csv_key(self, key: &'static str) -> Table<'a, R> {
        self.with(|column| column.csv_key = Some(key))
    }

    #[must_use]
    pub fn paint(mut self, paint: impl Fn(&R) -> Paint + 'a) -> Table<'a, R> {
        self.paint = Box::new(paint);
        self
    }

    /// The columns and rows that tables for people show.
    pub fn grid(&self, rows: impl IntoIterator<Item = R>) -> Grid {
        let mut seen: Vec<&Column<'a, R>> =
            self.columns.iter().filter(|column| column.shown).collect();
        seen.sort_by_key(|column| column.place);
        let row = |row: R| GridRow {
            cells: seen.iter().map(|column| column.cell(&row)).collect(),
            name: (self.name)(&row),
            paint: (self.paint)(&row),
        };
        let rows = rows.into_iter().map(row).collect();
        let heading = |column: &&Column<'a, R>| Heading {
            title: column.title.clone(),
            right: column.right,
            spare: column.spare,
        };
        Grid {
            headings: seen.iter().map(heading).collect(),
            title: self.title.clone(),
            plain: self.plain,
            rows,
        }
    }

    /// The width that a terminal leaves for the names of the given rows.
    pub fn room(&self, rows: impl IntoIterator<Item = R>, style: &Style, indent: usize) -> usize {
        let grid = self.grid(rows);
        left(&grid.widths(&grid.texts(), style, indent), style, indent)
    }

    /// The columns with a key in one format, CSV or JSON: their keys and the columns.
    fn keyed<'t>(
        &'t self,
        not: Media,
    ) -> impl Iterator<Item = ((&'t str, &'t str), &'t Column<'a, R>)> {
        let keyed = self
            .columns
            .iter()
            .filter(move |column| column.media != not);
        keyed.filter_map(|column| {
            let key = column.key.as_deref()?;
            Some(((column.csv_key.unwrap_or(key), key), column))
        })
    }

    fn value(&self, column: &Column<'a, R>, row: &R) -> Value {
        match &column.content {
            Content::Name => (self.name)(row).into(),
            Content::Data(value) => value(row),
            Content::Cell(cell) => {
                let cell = cell(row);
                debug_assert!(column
                    .key
                    .as_ref()
                    .is_some_and(|key| key.ends_with(cell.unit())));
                cell.plain()
            }
        }
    }

    pub fn json(&self, row: &R) -> Value {
        let keyed = self.keyed(Media::Csv);
        let values = keyed.map(|((_, key), it)| (key.to_owned(), self.value(it, row)));
        Value::Object(values.collect::<Map<_, _>>())
    }

    pub fn rows(&self, rows: impl IntoIterator<Item = R>) -> Value {
        rows.into_iter().map(|row| self.json(&row)).collect()
    }

    /// The rows as CSV. An unknown value is an empty cell.
    pub fn csv(&self, rows: impl IntoIterator<Item = R>) -> Result<Vec<u8>, csv::Error> {
        let mut sheet = Sheet::new([self.keys()])?;
        for row in rows {
            sheet.add(self, &row)?;
        }
        sheet.end()
    }

    pub fn keys(&self) -> Vec<String> {
        let keyed = self.keyed(Media::Json);
        keyed.map(|((key, _), _)| key.to_owned()).collect()
    }
}

impl Grid {
    /// The texts of each row's cells, and then its name.
    fn texts(&self) -> Vec<(Vec<String>, String)> {
        let text = |row: &GridRow| {
            let cells = row.cells.iter().map(Cell::text);
            (cells.collect(), escape::text(row.name.as_bytes()))
        };
        self.rows.iter().map(text).collect()
    }

    /// The width of each column; 0 if it is left out: a column without title and content, and on a narrow terminal
    /// what has no room.
    fn widths(&self, texts: &[(Vec<String>, String)], style: &Style, indent: usize) -> Vec<usize> {
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
        // First what can be spared; then whatever has no room on a narrow terminal, but the first two.
        let last = || self.headings.iter().enumerate().rev();
        let spare = last().filter(|(_, heading)| heading.spare);
        let spare = spare.map(|(at, _)| (at, NAMES));
        let others = last().filter(|(at, _)| *at > 1).map(|(at, _)| (at, LEAST));
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

    /// The title of the names. If the whole title has no room there, its figures have lines of their own.
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

    /// The lines of the table on a terminal, `indent` columns from the left. A narrow table has no spare columns.
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

    /// The columns with a title or a content, and their places.
    fn used(&self) -> Vec<(usize, &Heading)> {
        let filled = |at: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.cells.get(at));
            cells.any(|cell| !cell.text().is_empty())
        };
        let all = self.headings.iter().enumerate();
        all.filter(|(at, heading)| !heading.title.is_empty() || filled(*at))
            .collect()
    }

    /// The rows as a table in Markdown, names last.
    pub fn markdown(&self) -> String {
        self.rows_of_markdown(|mut cells, name| {
            cells.push(name);
            cells
        })
    }

    /// The rows as a table in Markdown, names first.
    pub fn comment(&self) -> String {
        self.rows_of_markdown(|cells, name| std::iter::once(name).chain(cells).collect())
    }

    /// A table in Markdown; `put` adds the name to a row's cells.
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

    /// The rows as a table in HTML, names first.
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
            // On a narrow screen it ends in an ellipsis; shorter ones are wrapped.
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

/// Rows of several tables as one CSV, which has the columns of all of them.
pub struct Sheet {
    columns: Vec<String>,
    out: csv::Writer<Vec<u8>>,
}

impl Sheet {
    /// Makes a sheet without rows from the keys of each table.
    pub fn new(tables: impl IntoIterator<Item = Vec<String>>) -> Result<Sheet, csv::Error> {
        let mut columns = Vec::new();
        for key in tables.into_iter().flatten() {
            if !columns.contains(&key) {
                columns.push(key);
            }
        }
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record(&columns)?;
        Ok(Sheet { columns, out })
    }

    /// Adds a row of one of the tables.
    pub fn add<R>(&mut self, table: &Table<'_, R>, row: &R) -> Result<(), csv::Error> {
        let mut cells = vec![String::new(); self.columns.len()];
        for ((key, _), column) in table.keyed(Media::Json) {
            let at = self.columns.iter().position(|known| *known == key);
            if let Some(cell) = at.and_then(|at| cells.get_mut(at)) {
                *cell = plain(&table.value(column, row));
            }
        }
        self.out.write_record(cells)
    }

    /// The bytes of the finished file.
    pub fn end(self) -> Result<Vec<u8>, csv::Error> {
        self.out.into_inner().map_err(|e| e.into_error().into())
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escape::cell(text),
        Value::Bool(is) => u8::from(*is).to_string(),
        value => value.to_string(),
    }
}
