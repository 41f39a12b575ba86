//! A cell of a table: a value with its unit, its text for people, and its plain value in CSV and JSON.

use serde_json::{json, Value};

use crate::{escape, units};

/// A cell of a table, as a typed value that is shown in text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Empty,
    /// The value of the cell is unknown. The cell shows `?`.
    Unknown,
    /// A duration in ns, shown with a unit that fits.
    Time(u64),
    /// The recorded part, in ns, of a duration that continues outside the trace, shown as `>1.00 s`.
    AtLeast(u64),
    /// The known part of a wait, in ns, shown as `≥ 1.00 s`.
    WaitAtLeast(u64),
    /// A duration in ns, shown as a number of seconds with four digits after the point.
    Seconds(u64),
    /// A timestamp in ns since the start of the trace.
    At(u64),
    Count(u64),
    /// A number that identifies something: a pid, a tid, a CPU or an exit code.
    Id(u32),
    Bytes(u64),
    /// The known part of a size in bytes, shown as `≥ 12 KiB`.
    BytesAtLeast(u64),
    /// A part and the whole, shown as a share in percent.
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
    /// The cell that the function `known` makes of a value, or a cell that shows `?` for `None`.
    pub fn known<T>(value: Option<T>, known: impl Fn(T) -> Cell) -> Cell {
        value.map_or(Cell::Unknown, known)
    }

    /// The cell for the length of a wait in ns. If `whole` is false, only a part of the wait is known, so the length is
    /// a lower bound.
    pub fn wait(ns: u64, whole: bool) -> Cell {
        if whole {
            Cell::Time(ns)
        } else {
            Cell::WaitAtLeast(ns)
        }
    }

    /// The cell for a size in bytes. If `whole` is false, the size is a lower bound, and a lower bound of 0 is shown as
    /// unknown.
    pub fn bytes(count: u64, whole: bool) -> Cell {
        match (whole, count) {
            (true, _) => Cell::Bytes(count),
            (false, 0) => Cell::Unknown,
            (false, _) => Cell::BytesAtLeast(count),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Unknown => "?".into(),
            Cell::Time(ns) => units::time(*ns),
            Cell::AtLeast(ns) => format!(">{}", units::time(*ns)),
            Cell::WaitAtLeast(ns) => format!("≥ {}", units::time(*ns)),
            // A number of seconds is rounded, here to 100 µs, as all durations are. The digits after that are not
            // simply cut off.
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

    /// The text of the cell in Markdown. A cell that is aligned on the left is shown as code. Of the other cells, a
    /// text is escaped by [`escape::markdown`], and a figure by [`escape::figure`].
    pub(super) fn markdown(&self, right: bool) -> String {
        match self {
            Cell::Empty => String::new(),
            cell if !right => escape::code(&cell.text()),
            Cell::Text(text) => escape::markdown(text),
            cell => escape::figure(&cell.text()),
        }
    }

    /// The plain value of the cell in CSV and JSON. They show a share, a note and the lower bound of a size as
    /// unknown, but the lower bound of a duration as if it were the duration.
    pub(super) fn plain(&self) -> Value {
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

    /// The unit at the end of the key that CSV and JSON use for the column of this cell, such as `ns` in `waited_ns`.
    /// Empty for a cell without a unit.
    pub(super) fn unit(&self) -> &'static str {
        match self {
            Cell::Bytes(_) | Cell::BytesAtLeast(_) => "bytes",
            Cell::Time(_) | Cell::AtLeast(_) | Cell::WaitAtLeast(_) => "ns",
            Cell::Seconds(_) | Cell::At(_) => "ns",
            _ => "",
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        matches!(
            self,
            Cell::Time(0) | Cell::Count(0) | Cell::Bytes(0) | Cell::Share(0, _)
        )
    }
}
