//! Writes a recording as rows of a dataset of many runs, in Parquet files.
//!
//! A dataset is a directory: `TABLE/repo=PROJECT/date=DAY/RUN.parquet`. The file of the table [`MARKER`] is
//! written last, so that a run is in the dataset once that file exists.
//!
//! Texts of a recording are written as they were recorded, but bytes that are not UTF-8 become `\xNN`. Text that
//! redaction removed is not in the recording any more.

mod parquet;
mod reduce;
mod rows;
mod table;
mod thrift;
pub mod trace;
mod trace_rows;

use std::io;

use sha2::{Digest, Sha256};
use tr_format::meta::Metadata;

pub use reduce::tables;
use table::Row;
pub use table::{Column, ColumnType, Table, Value};
use tr_insight::recordings::ci::Ci;
use tr_insight::recordings::identity;
use tr_text::units;
use tr_text::units::hex;

/// The table of the dataset with one row for each run. Its file is written last: a run belongs to the dataset only once
/// this file exists.
pub const MARKER: &str = "runs";

/// The version of the dataset's tables, which is stored in the metadata of each Parquet file.
const VERSION: &str = "1";

/// The value of the partition `repo` for runs whose project is named neither by the user nor by a CI system.
const LOCAL_PROJECT: &str = "local";

/// The place of a run in a dataset: the directories and the id from which the paths of its files are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the directory for the run's repository in the dataset: `repo=…`, escaped.
    pub repo: String,
    /// The name of the directory for the day of the run in UTC: `date=2026-11-23`.
    pub date: String,
    /// The id of the run, which is the name of its files. Recordings that `tr redact` or `tr recover` made from one
    /// recording share its id.
    pub run: String,
    project: String,
    /// The name of the run's CI job, if it replaces the name in the recording, because the user gave a name or because
    /// a matrix (one job with several sets of values) ran the job several times; otherwise `None`.
    job: Option<String>,
    /// The time in ns that the job waited for a runner, as the CI system reports it.
    queued: Option<u64>,
}

impl Place {
    /// Determines the place of a recording in a dataset. `project` and `job` replace the names that the CI system has.
    pub fn of(meta: &Metadata, project: Option<&str>, job: Option<&str>) -> Place {
        let ci = Ci::new(meta);
        let project = project
            .or_else(|| ci.get("project"))
            .unwrap_or(LOCAL_PROJECT);
        Place {
            repo: format!("repo={}", directory(project)),
            date: format!("date={}", units::day(meta.start_clock.real)),
            run: identity::id(meta),
            project: project.to_owned(),
            job: job.map(str::to_owned),
            queued: None,
        }
    }

    /// Stores how long the run's CI job waited for a runner, in ns. `leg` is the name of the job with its values from a
    /// matrix (one job with several sets of values). This name becomes the job's name, unless the user gave one.
    pub fn waited(&mut self, queued: u64, leg: Option<&str>) {
        self.queued = Some(queued);
        if self.job.is_none() {
            self.job = leg.map(str::to_owned);
        }
    }
}

/// The greatest length in bytes, with its escapes, of a text after `repo=` that is written whole. A longer text is cut
/// to at most this length, and a hash of 16 digits follows.
const LONGEST_VALUE: usize = 150;

/// The text that stands after `repo=` in the name of a directory. It is escaped as Hive does it: without separators,
/// and without a dot at the beginning, because readers would take the directory for hidden.
fn directory(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => out.push(byte.into()),
            b'.' if !out.is_empty() => out.push('.'),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    match out.len() {
        // Hive, whose names of directories are followed here, uses this name for a missing value.
        0 => "__HIVE_DEFAULT_PARTITION__".into(),
        1..=LONGEST_VALUE => out,
        _ => {
            let mut end = LONGEST_VALUE;
            // The text must not be cut inside of an escape.
            while out.get(end - 2..end).is_some_and(|tail| tail.contains('%')) {
                end -= 1;
            }
            out.truncate(end);
            out + "-" + &hex(Sha256::digest(value).iter().take(8))
        }
    }
}

pub fn columns() -> Vec<(&'static str, &'static [Column])> {
    vec![
        (rows::Step::NAME, rows::Step::COLUMNS),
        (rows::Program::NAME, rows::Program::COLUMNS),
        (rows::Process::NAME, rows::Process::COLUMNS),
        (rows::Path::NAME, rows::Path::COLUMNS),
        (rows::Machine::NAME, rows::Machine::COLUMNS),
        (rows::Run::NAME, rows::Run::COLUMNS),
    ]
}

/// The bytes of a Parquet file with the rows of one table.
///
/// # Errors
/// A column of the table is larger than a page of a Parquet file can be.
pub fn file(table: &Table) -> io::Result<Vec<u8>> {
    parquet::file(table, &facts(table.name))
}

fn facts(table: &str) -> [(&'static str, &str); 2] {
    [("tr.table", table), ("tr.version", VERSION)]
}

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
