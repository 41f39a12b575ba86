//! Parses other tools' files: the Chrome Trace Event format, OTLP, `.ninja_log`, `cargo build --timings` and
//! `-Zbuild-analysis`, BitBake's buildstats, JUnit XML, and the jobs of a CI run. [`tr_placing`]
//! places their spans in a recording.
//!
//! The files are not trusted: every length and count has a limit, and an error names the place.
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
mod limits;
mod ninja;
pub mod otlp;

use tr_placing::File;

pub use error::Error;
pub use files::{add, bytes, find, open, Files, ImportFile, Skipped};
pub use limits::{ALL_FILES, FILE};

/// A function that reads a file of one or more tools. It returns `None` for a file in another format.
type Reader = fn(&[u8]) -> Result<Option<File>, Error>;

/// The functions that read files to import, each with the bytes with which such files begin. The first function that
/// does not return `None` decides. If a tool's spans have names, times and perhaps a pid, its function returns
/// [`spans::Spans`](tr_placing::spans::Spans), which the crate `placing` places in a recording.
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

/// The first byte of an OTLP file in protobuf: the key of the field with a resource's spans. The same byte is a line
/// feed in text files, so this format is tried last.
const PROTOBUF: u8 = 0x0a;

/// Reads the bytes of a file to import, which may be compressed with gzip. Returns `Ok(None)` for a
/// file in an unknown format.
///
/// # Errors
/// The file looks like that of a known tool and is damaged, or is larger than a limit.
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
