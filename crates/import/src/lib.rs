//! Parses other tools' files: clang's `-ftime-trace`, `.ninja_log`, `cargo build --timings`, JUnit XML, and the
//! jobs of a CI run. [`tr_insight::imports`] places their spans in a recording.
//!
//! A file is foreign: every length and count has a limit, and an error names the place.
#![forbid(unsafe_code)]

mod cargo;
mod clang;
mod date;
mod encoding;
mod error;
mod files;
pub mod jobs;
pub mod junit;
mod ninja;

use tr_insight::imports::File;

pub use error::Error;
pub use files::{bytes, find, open, Files, Found, Skipped};

/// The most bytes of a file.
pub const FILE: u64 = 64 << 20;

/// The most bytes of all files together.
pub const ALL: u64 = 512 << 20;

/// The most records of a file.
const RECORDS: usize = 1_000_000;

/// Reads a file's bytes. `Ok(None)`: it is of no known tool.
///
/// # Errors
/// It looks like a known tool's file and is damaged, or larger than a limit.
pub fn read(bytes: &[u8]) -> Result<Option<File>, Error> {
    let bytes = encoding::as_utf8(bytes);
    let start = bytes.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    if start.starts_with(ninja::MAGIC) {
        return ninja::read(start).map(File::Ninja).map(Some);
    }
    match start.first() {
        Some(b'{') => Ok(clang::read(start)?.map(File::Clang)),
        Some(b'<') => match cargo::read(start)? {
            Some(timings) => Ok(Some(File::Cargo(timings))),
            None => Ok(junit::read(start)?.map(File::Junit)),
        },
        _ => Ok(None),
    }
}
