//! Tables whose columns are declared once. A table can be printed as text, Markdown and HTML, with units, and as CSV
//! and JSON, with plain numbers.

mod cell;
mod grid;

use std::rc::Rc;

use csv::StringRecord;
use serde_json::{Map, Value};

use crate::escape;
use crate::phrase::Phrase;
use crate::style::{Paint, Style};
pub use cell::Cell;
use grid::{left, GridRow, Heading};
pub use grid::{Grid, Title};

/// A function that makes the content of a cell from the value of type `R` that a row of the table stands for.
type Of<'a, R, T> = Box<dyn Fn(&R) -> T + 'a>;

/// The source of a table column's content. This is one of three things: a function that makes a cell for each row, the
/// name of the row, or a function that makes a value of each row for CSV and JSON.
enum Content<'a, R> {
    Cell(Of<'a, R, Cell>),
    /// The content of the column is the name of the row. In a table for people, this column comes last.
    Name,
    /// The content of the column is a value that only CSV and JSON show.
    Data(Of<'a, R, Value>),
}

/// Whether a column of a table has a key in CSV, in JSON or in both.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Media {
    Both,
    Csv,
    Json,
}

struct Column<'a, R> {
    /// The title of the column in tables for people. A column without a title is left out if all of its cells are
    /// empty.
    title: String,
    /// The key of the column in CSV and JSON, with its unit; `None` if only tables for people have the column.
    key: Option<String>,
    /// The key of the column in CSV, if the column has another key in CSV than in JSON.
    csv_key: Option<&'static str>,
    media: Media,
    right: bool,
    /// Whether tables for people have the column.
    shown: bool,
    /// Whether the column is left out if the table is too wide for the terminal.
    spare: bool,
    /// Whether zeros in the column are left out of tables for people.
    few: bool,
    /// The order of the column among those that come last in tables for people; `None` for a column in its normal
    /// place.
    place: Option<usize>,
    content: Content<'a, R>,
}

impl<R> Column<'_, R> {
    /// The cell of a row in this column, as people see it.
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

/// The columns of a table whose rows are made from values of type `R`.
pub struct Table<'a, R> {
    columns: Vec<Column<'a, R>>,
    title: Title,
    name: Of<'a, R, String>,
    paint: Of<'a, R, Paint>,
    /// Whether the names of the rows are words of this program. Names from the trace are shown as code in Markdown.
    plain: bool,
}

impl<'a, R> Table<'a, R> {
    /// Makes a table whose last column has the names of the rows and takes the remaining width.
    pub fn new(title: impl Into<Title>, name: impl Fn(&R) -> String + 'a) -> Table<'a, R> {
        Table {
            columns: Vec::new(),
            title: title.into(),
            name: Box::new(name),
            paint: Box::new(|_| Paint::Plain),
            plain: false,
        }
    }

    /// Makes a table whose rows have no names, for CSV and JSON.
    pub fn unnamed() -> Table<'a, R> {
        Table::new("", |_| String::new())
    }

    /// Replaces the title that tables for people show above the names of their rows.
    #[must_use]
    pub fn titled(mut self, title: impl Into<Title>) -> Table<'a, R> {
        self.title = title.into();
        self
    }

    /// Marks the names of the table's rows as words of this program, so that Markdown does not show them as
    /// code.
    #[must_use]
    pub fn plain(mut self) -> Table<'a, R> {
        self.plain = true;
        self
    }

    /// Adds a column of numbers, aligned on the right, that only tables for people have.
    #[must_use]
    pub fn column(self, title: &str, cell: impl Fn(&R) -> Cell + 'a) -> Table<'a, R> {
        self.add(title, None, Content::Cell(Box::new(cell)))
    }

    /// Adds a column of text, aligned on the left, that only tables for people have.
    #[must_use]
    pub fn words(self, title: &str, cell: impl Fn(&R) -> Cell + 'a) -> Table<'a, R> {
        self.column(title, cell).left()
    }

    /// Adds a column of numbers to the table, with its key in CSV and JSON, such as `waited_ns`.
    #[must_use]
    pub fn fact(
        self,
        title: &str,
        key: impl Into<String>,
        cell: impl Fn(&R) -> Cell + 'a,
    ) -> Table<'a, R> {
        self.add(title, Some(key.into()), Content::Cell(Box::new(cell)))
    }

    /// Sets the key that the names of the rows have in CSV and JSON.
    #[must_use]
    pub fn named(self, key: &str) -> Table<'a, R> {
        self.add("", Some(key.to_owned()), Content::Name)
    }

    /// Adds a column that only CSV and JSON show, with a value for each row.
    #[must_use]
    pub fn data<T: Into<Value>>(
        self,
        key: impl Into<String>,
        value: impl Fn(&R) -> T + 'a,
    ) -> Table<'a, R> {
        let value = move |row: &R| value(row).into();
        self.add("", Some(key.into()), Content::Data(Box::new(value)))
    }

    /// Adds a column that only JSON shows, with a value for each row.
    #[must_use]
    pub fn json_data<T: Into<Value>>(
        self,
        key: impl Into<String>,
        value: impl Fn(&R) -> T + 'a,
    ) -> Table<'a, R> {
        self.data(key, value)
            .with(|column| column.media = Media::Json)
    }

    /// Adds a column that only CSV shows, with a value for each row.
    #[must_use]
    pub fn csv_data<T: Into<Value>>(
        self,
        key: impl Into<String>,
        value: impl Fn(&R) -> T + 'a,
    ) -> Table<'a, R> {
        self.data(key, value)
            .with(|column| column.media = Media::Csv)
    }

    /// Adds a column with a text for each row. JSON has the whole text. CSV has the short text, as tables for people
    /// do.
    #[must_use]
    pub fn phrase_data(
        self,
        key: &str,
        phrase: impl Fn(&R) -> Option<Phrase> + 'a,
    ) -> Table<'a, R> {
        let phrase = Rc::new(phrase);
        let whole = Rc::clone(&phrase);
        self.csv_data(key, move |row| {
            phrase(row).map(|text| text.short().to_owned())
        })
        .json_data(key, move |row| {
            whole(row).map(|text| text.whole().to_owned())
        })
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

    /// Leaves the column that was added last out of JSON. CSV still has its key.
    #[must_use]
    pub fn csv_only(self) -> Table<'a, R> {
        self.with(|column| column.media = Media::Csv)
    }

    /// Leaves the column that was added last out of CSV. JSON still has its key.
    #[must_use]
    pub fn json_only(self) -> Table<'a, R> {
        self.with(|column| column.media = Media::Json)
    }

    /// Sets whether tables for people show the column that was added last. CSV and JSON have this column in any case.
    #[must_use]
    pub fn shown(self, shown: bool) -> Table<'a, R> {
        self.with(|column| column.shown = shown)
    }

    /// Lets a narrow table leave out the column that was added last. Of several such columns, the rightmost is
    /// left out first.
    #[must_use]
    pub fn spare(self) -> Table<'a, R> {
        self.with(|column| column.spare = true)
    }

    /// In tables for people, shows no zeros in the column that was added last.
    #[must_use]
    pub fn few(self) -> Table<'a, R> {
        self.with(|column| column.few = true)
    }

    /// Aligns on the left, as text, the column that was added last.
    #[must_use]
    pub fn left(self) -> Table<'a, R> {
        self.with(|column| column.right = false)
    }

    /// Moves the column that was added last to the end of tables for people. If several columns are moved, those with a
    /// smaller `place` come first.
    #[must_use]
    pub fn place(self, place: usize) -> Table<'a, R> {
        self.with(|column| column.place = Some(place))
    }

    /// Sets the key of the column that was added last in CSV, for a column that has another key in CSV than in JSON.
    #[must_use]
    pub fn csv_key(self, key: &'static str) -> Table<'a, R> {
        self.with(|column| column.csv_key = Some(key))
    }

    #[must_use]
    pub fn paint(mut self, paint: impl Fn(&R) -> Paint + 'a) -> Table<'a, R> {
        self.paint = Box::new(paint);
        self
    }

    /// The table for people, without the columns that only CSV and JSON have.
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

    /// The width in columns that a table on a terminal leaves for the names of the given rows.
    pub fn room(&self, rows: impl IntoIterator<Item = R>, style: &Style, indent: usize) -> usize {
        let grid = self.grid(rows);
        left(&grid.widths(&grid.texts(), style, indent), style, indent)
    }

    /// The columns that have a key in CSV or in JSON, without the columns whose only format is `not`. For each column,
    /// the result has the key in CSV, the key in JSON and the column.
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

    /// The rows of the table for CSV. An unknown value is an empty cell.
    pub fn sheet(&self, rows: impl IntoIterator<Item = R>) -> Sheet {
        let mut sheet = Sheet::new([self.keys()]);
        for row in rows {
            sheet.add(self, &row);
        }
        sheet
    }

    pub fn keys(&self) -> Vec<String> {
        let keyed = self.keyed(Media::Json);
        keyed.map(|((key, _), _)| key.to_owned()).collect()
    }
}

/// The rows of one or several tables for CSV. A sheet has the columns of all its tables.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    columns: Vec<String>,
    rows: Vec<StringRecord>,
    /// The columns that follow those of the tables and have one value in all rows, each with its key and this value.
    constants: Vec<(String, String)>,
}

impl Sheet {
    /// Makes an empty sheet whose columns are those of several tables. Each table is given by the keys of its
    /// columns.
    pub fn new(tables: impl IntoIterator<Item = Vec<String>>) -> Sheet {
        let mut columns = Vec::new();
        for key in tables.into_iter().flatten() {
            if !columns.contains(&key) {
                columns.push(key);
            }
        }
        Sheet {
            columns,
            ..Sheet::default()
        }
    }

    /// Adds a row of one of the tables to the sheet. Columns that the table does not have stay empty.
    pub fn add<R>(&mut self, table: &Table<'_, R>, row: &R) {
        let mut cells = vec![String::new(); self.columns.len()];
        for ((key, _), column) in table.keyed(Media::Json) {
            let at = self.columns.iter().position(|known| *known == key);
            if let Some(cell) = at.and_then(|at| cells.get_mut(at)) {
                *cell = plain(&table.value(column, row));
            }
        }
        self.rows.push(cells.into());
    }

    /// Adds a column with the same value in all rows to the sheet. This column follows the columns of the tables.
    pub fn add_constant(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.constants.push((key.into(), plain(&value.into())));
    }

    /// The sheet as CSV. A sheet without columns gives no bytes.
    pub fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let keys = self.constants.iter().map(|(key, _)| key);
        let titles: Vec<&String> = self.columns.iter().chain(keys).collect();
        if !titles.is_empty() {
            out.write_record(titles)?;
        }
        for row in &self.rows {
            let values = self.constants.iter().map(|(_, value)| value.as_str());
            out.write_record(row.iter().chain(values))?;
        }
        out.into_inner().map_err(|error| error.into_error().into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_whole_in_json_and_short_in_csv() {
        let table = Table::unnamed().phrase_data("task", |name: &Option<&str>| {
            name.map(|name| Phrase::name(name, 9))
        });
        let rows = [Some("a-generator-of-code"), Some("ld"), None];
        let csv = String::from_utf8(table.sheet(rows).csv().unwrap()).unwrap();
        assert_eq!(
            csv.lines().collect::<Vec<_>>(),
            ["task", "a-ge…code", "ld", "\"\""]
        );
        let whole = serde_json::json!([{"task": rows[0]}, {"task": "ld"}, {"task": null}]);
        assert_eq!(table.rows(rows), whole);
    }
}
