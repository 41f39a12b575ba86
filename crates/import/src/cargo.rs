//! Reads the page of `cargo build --timings`: its script has each unit with its beginning and length in
//! seconds since cargo's start, rounded to 10 ms.

use serde::Deserialize;
use tr_placing::cargo::{Timings, Unit, UnitPart};
use tr_placing::ToolVersion;

use crate::error::Error;

const FORMAT: &str = "cargo --timings";

const UNITS: &[u8] = b"const UNIT_DATA = ";
/// The HTML text that precedes the compiler's version on the page of `cargo build --timings`.
const RUSTC: &[u8] = b"<td>rustc:</td><td>rustc ";

/// The largest number of compiled units that are read from a timing file of cargo. The largest
/// workspaces have some thousands.
pub(crate) const MOST_UNITS: usize = 20_000;

/// A compiled unit as the script in cargo's timing page has it, with times in seconds.
#[derive(Deserialize)]
struct Row {
    name: String,
    version: String,
    target: String,
    start: f64,
    duration: f64,
    /// The time in seconds after the unit's beginning at which its metadata was written, so that the rest is code
    /// generation. Only cargo up to version 1.86 writes this time.
    rmeta_time: Option<f64>,
    sections: Option<Vec<(String, Section)>>,
}

#[derive(Deserialize)]
struct Section {
    start: f64,
    end: f64,
}

impl Row {
    fn unit(self) -> Unit {
        let part = |name: String, from: i64, to: i64| UnitPart { name, from, to };
        let parts = match (self.sections, self.rmeta_time) {
            (Some(sections), _) => sections
                .into_iter()
                .map(|(name, section)| part(name, ns(section.start), ns(section.end)))
                .collect(),
            (None, Some(rmeta)) if rmeta > 0.0 => vec![
                part("frontend".to_owned(), 0, ns(rmeta)),
                part("codegen".to_owned(), ns(rmeta), ns(self.duration)),
            ],
            (None, _) => Vec::new(),
        };
        Unit {
            name: self.name,
            version: self.version,
            target: self.target,
            from: ns(self.start),
            length: ns(self.duration),
            parts,
        }
    }
}

/// Reads an HTML page of `cargo build --timings`. Returns `None` for any other HTML page.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<Timings>, Error> {
    let mut places = bytes.windows(UNITS.len());
    let Some(at) = places.position(|part| part == UNITS) else {
        return Ok(None);
    };
    let data = bytes.get(at + UNITS.len()..).unwrap_or_default();
    let before = bytes.get(..at).unwrap_or_default();
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    let damaged = |what: String| Error::Damaged {
        format: FORMAT,
        what: format!("UNIT_DATA in line {}: {what}", lines + 1),
    };
    let mut values = serde_json::Deserializer::from_slice(data).into_iter::<Vec<Row>>();
    let mut rows = match values.next() {
        Some(Ok(rows)) => rows,
        Some(Err(error)) => return Err(damaged(error.to_string())),
        None => return Err(damaged("nothing follows".to_owned())),
    };
    Error::at_most(MOST_UNITS, rows.len(), FORMAT, "units")?;
    // cargo does not measure doctests and gives them a length of 0.
    rows.retain(|row| row.duration > 0.0 || !row.target.ends_with("(doc test)"));
    Ok(Some(Timings {
        units: rows.into_iter().map(Row::unit).collect(),
        rustc: rustc(before),
    }))
}

fn rustc(page: &[u8]) -> Option<ToolVersion> {
    let at = page.windows(RUSTC.len()).position(|part| part == RUSTC)?;
    let rest = page.get(at + RUSTC.len()..)?;
    let cell = rest.split(|byte| *byte == b'<').next()?;
    ToolVersion::read("rustc", std::str::from_utf8(cell).ok()?)
}

/// The nanoseconds of a time in seconds from a timing file of cargo. A negative time becomes 0, and a time of more
/// than 1e9 seconds becomes 1e9 seconds.
pub(crate) fn ns(seconds: f64) -> i64 {
    // `as` gives the nearest possible number, and 0 for NaN.
    (seconds.clamp(0.0, 1e9) * 1e9) as i64
}
