//! Parses other tools' files: the Chrome Trace Event format, OTLP, `.ninja_log`, `cargo build --timings` and
//! `-Zbuild-analysis`, BitBake's buildstats, JUnit XML, and the jobs of a CI run. [`tr_insight::imports`] places their spans in a recording.
//!
//! A file is foreign: every length and count has a limit, and an error names the place.
#![forbid(unsafe_code)]

mod bitbake;
mod cargo;
mod cargo_log;
mod chrome;
mod date;
mod encoding;
mod error;
mod files;
pub mod jobs;
pub mod junit;
mod ninja;
pub mod otlp;

use tr_insight::imports::File;

pub use error::Error;
pub use files::{add, bytes, find, open, Files, Found, Skipped};

/// The most bytes of a file.
pub const FILE: u64 = 64 << 20;

/// The most bytes of all files together.
pub const ALL: u64 = 512 << 20;

/// The most records of a file.
const RECORDS: usize = 1_000_000;

/// A reader of the files of one or more tools. It returns `None` for a file of another tool.
type Reader = fn(&[u8]) -> Result<Option<File>, Error>;

/// The readers, with the bytes with which their files begin. A reader of a further tool is a row here; one whose spans
/// have names, times and perhaps a pid makes [`spans::Spans`](tr_insight::imports::spans::Spans), which have a place.
const READERS: [(&[u8], Reader); 9] = [
    (ninja::MAGIC, |bytes| {
        ninja::read(bytes).map(File::Ninja).map(Some)
    }),
    (bitbake::MAGIC, |bytes| {
        bitbake::read(bytes).map(File::Spans).map(Some)
    }),
    (cargo_log::MAGIC, |bytes| {
        cargo_log::read(bytes).map(File::Cargo).map(Some)
    }),
    (b"{", |bytes| {
        Ok(chrome::read_object(bytes)?.map(File::Spans))
    }),
    (b"{", |bytes| Ok(otlp::read_json(bytes)?.map(File::Spans))),
    (b"[", |bytes| Ok(otlp::read_json(bytes)?.map(File::Spans))),
    (
        b"[",
        |bytes| Ok(chrome::read_array(bytes)?.map(File::Spans)),
    ),
    (b"<", |bytes| Ok(cargo::read(bytes)?.map(File::Cargo))),
    (b"<", |bytes| Ok(junit::read(bytes)?.map(File::Junit))),
];

/// The first byte of OTLP's protobuf: the field of a resource's spans. A line feed, too, so it comes last.
const PROTOBUF: u8 = 0x0a;

/// Reads a file's bytes, unpacked if gzip packed them. `Ok(None)`: it is of no known tool.
///
/// # Errors
/// It looks like a known tool's file and is damaged, or larger than a limit.
pub fn read(bytes: &[u8]) -> Result<Option<File>, Error> {
    let unpacked = encoding::unpacked(bytes)?;
    let text = encoding::as_utf8(&unpacked);
    let start = text.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    for (begins, reader) in READERS {
        if start.starts_with(begins) {
            if let Some(file) = reader(start)? {
                return Ok(Some(file));
            }
        }
    }
    match unpacked.first() {
        Some(&PROTOBUF) => Ok(otlp::read_protobuf(&unpacked)?.map(File::Spans)),
        _ => Ok(None),
    }
}

/// Whether bytes contain a word.
fn contains(bytes: &[u8], word: &str) -> bool {
    memchr::memmem::find(bytes, word.as_bytes()).is_some()
}
