//! A table, written once: for people with units and aligned, as CSV with plain
//! numbers.

use crate::style::{Paint, Style};
use crate::units;

/// What stands in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Not known: `?`, and empty in CSV.
    Unknown,
    /// A time in ns.
    Time(u64),
    /// A time of which only a part is in the trace: it is at least this long.
    AtLeast(u64),
    /// A time in ns, shown in seconds.
    Seconds(u64),
    /// A point in time, in ns since the start of the trace.
    At(u64),
    /// A number.
    Count(u64),
    /// A number that names something: a pid.
    Id(u32),
    /// Bytes.
    Bytes(u64),
    /// A part of a whole.
    Share(u64, u64),
    /// A text, escaped already.
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
    /// `Unknown`, or what `known` makes of it.
    pub fn known<T>(value: Option<T>, known: impl Fn(T) -> Cell) -> Cell {
        value.map_or(Cell::Unknown, known)
    }

    /// For people.
    pub fn text(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Unknown => "?".into(),
            Cell::Time(ns) => units::time(*ns),
            Cell::AtLeast(ns) => format!(">{}", units::time(*ns)),
            Cell::Seconds(ns) => format!("{}.{:04}", ns / 1_000_000_000, ns / 100_000 % 10_000),
            Cell::At(ns) => units::at(*ns),
            Cell::Count(number) => units::count(*number),
            Cell::Id(id) => id.to_string(),
            Cell::Bytes(count) => units::bytes(*count),
            Cell::Share(part, whole) => units::share(*part, *whole),
            Cell::Text(text) => text.clone(),
        }
    }

    /// For programs: ns, bytes; a share as a fraction of one.
    fn plain(&self) -> String {
        match self {
            Cell::Empty | Cell::Unknown => String::new(),
            Cell::Time(number)
            | Cell::AtLeast(number)
            | Cell::Seconds(number)
            | Cell::At(number)
            | Cell::Count(number)
            | Cell::Bytes(number) => number.to_string(),
            Cell::Id(id) => id.to_string(),
            Cell::Share(_, 0) => String::new(),
            Cell::Share(part, whole) => format!("{:.6}", *part as f64 / *whole as f64),
            Cell::Text(text) => text.clone(),
        }
    }
}

/// A column but the last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    title: String,
    key: &'static str,
    right: bool,
}

/// Rows of numbers, each with a name behind them.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    name: Option<Column>,
    rows: Vec<(Vec<Cell>, String, Paint)>,
}

impl Table {
    /// An empty table without columns.
    pub fn new() -> Table {
        Table::default()
    }

    /// An empty table for CSV alone: its columns' names.
    pub fn keyed(keys: impl IntoIterator<Item = &'static str>) -> Table {
        let columns = keys.into_iter();
        columns.fold(Table::new(), |table, key| table.column("", key))
    }

    /// One more column of numbers: its title, and its name in CSV (with `_ns`
    /// or `_bytes` when its values have such a unit).
    #[must_use]
    pub fn column(mut self, title: impl Into<String>, key: &'static str) -> Table {
        self.columns.push(Column {
            title: title.into(),
            key,
            right: true,
        });
        self
    }

    /// One more column of texts.
    #[must_use]
    pub fn words(mut self, title: impl Into<String>, key: &'static str) -> Table {
        self.columns.push(Column {
            title: title.into(),
            key,
            right: false,
        });
        self
    }

    /// The last column: whom a row is about. It takes the room that is left.
    #[must_use]
    pub fn name(mut self, title: impl Into<String>, key: &'static str) -> Table {
        self.name = Some(Column {
            title: title.into(),
            key,
            right: false,
        });
        self
    }

    /// One more row; `name` is escaped already.
    pub fn row(&mut self, cells: Vec<Cell>, name: impl Into<String>, paint: Paint) {
        self.rows.push((cells, name.into(), paint));
    }

    /// One more row of a table without a last column.
    pub fn record(&mut self, cells: Vec<Cell>) {
        self.row(cells, "", Paint::Plain);
    }

    /// For people: `indent` columns free on the left, columns without anything
    /// left out, names cut to the room that the numbers leave.
    pub fn text(&self, style: &Style, indent: usize) -> String {
        use std::fmt::Write;
        let texts: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|(cells, ..)| cells.iter().map(Cell::text).collect())
            .collect();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let cells = texts.iter().filter_map(|row| row.get(at));
                let widest = cells.map(|cell| units::width(cell)).max();
                widest.unwrap_or(0).max(units::width(&column.title))
            })
            .collect();
        let join = |cells: &[String]| {
            let columns = self.columns.iter().zip(&widths).zip(cells);
            let mut text = " ".repeat(indent);
            for ((column, width), cell) in columns.filter(|((_, width), _)| **width > 0) {
                text.push_str(&units::pad(cell, *width, column.right));
                text.push_str("  ");
            }
            text
        };
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        let head = join(&titles);
        // Where no room is left beside the numbers, names go on.
        let room = style.width.saturating_sub(units::width(&head)).max(20);
        let mut out = String::new();
        let mut write = |text: String, name: &str, paint| {
            let text = text + &units::shorten(name, room);
            let _ = writeln!(out, "{}", style.paint(paint, text.trim_end()));
        };
        let name = self.name.as_ref().map_or("", |column| &column.title);
        write(head, name, Paint::Bold);
        for (cells, (_, name, paint)) in texts.iter().zip(&self.rows) {
            write(join(cells), name, *paint);
        }
        out
    }

    /// As CSV: plain numbers, what is not known is empty.
    ///
    /// # Errors
    /// None in practice: it writes to memory.
    pub fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let name = |text: &str| self.name.is_some().then(|| text.to_owned());
        let keys = self.columns.iter().chain(&self.name).map(|c| c.key);
        out.write_record(keys)?;
        for (cells, named, _) in &self.rows {
            out.write_record(cells.iter().map(Cell::plain).chain(name(named)))?;
        }
        out.into_inner().map_err(|e| e.into_error().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new()
            .column("CPU", "on_cpu_ns")
            .column("", "nothing")
            .words("why", "why")
            .name("process", "process");
        let cells = |ns, why: &str| vec![Cell::Time(ns), Cell::Empty, why.into()];
        table.row(cells(1_500_000_000, "a"), "make, \"all\"", Paint::Plain);
        table.row(
            vec![Cell::Unknown, Cell::Empty, "long".into()],
            "a name of more than twenty columns",
            Paint::Bad,
        );
        table
    }

    #[test]
    fn people_see_units_and_columns() {
        let style = Style {
            width: 30,
            color: false,
            ascii: false,
        };
        let text = table().text(&style, 1);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "    CPU  why   process",
                " 1.50 s  a     make, \"all\"",
                "      ?  long  a name of …y columns"
            ]
        );
    }

    #[test]
    fn programs_get_plain_numbers() {
        let csv = String::from_utf8(table().csv().expect("memory")).expect("text");
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.first(), Some(&"on_cpu_ns,nothing,why,process"));
        assert_eq!(lines.get(1), Some(&"1500000000,,a,\"make, \"\"all\"\"\""));
        assert_eq!(
            lines.get(2),
            Some(&",,long,a name of more than twenty columns")
        );
    }
}
