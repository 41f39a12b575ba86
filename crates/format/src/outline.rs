//! What a trace says about itself: its metadata and its summary, found by the index
//! and read without a look at any other frame.

use crate::frame::{self, kind, Header};
use crate::meta::{Metadata, Summary};
use crate::reader::{file_header, metadata_at_start, unpacked, unpacking};
use crate::scan::{header_at, payload_at};
use crate::source::Source;
use crate::tally::Tally;
use crate::{index, limits, Error, Fault};

/// The two ends of a trace that was finished.
///
/// Of the index it takes the headers and the end, so that it takes hardly longer for a
/// long trace. The other frames are not looked at: what is damaged in them shows only when
/// they are read ([`crate::reader::Trace`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The minor version of the format that the trace was written in.
    pub minor: u16,
    /// What the trace says about itself.
    pub meta: Metadata,
    /// How the recording ended.
    pub summary: Summary,
    /// What it holds, as it was counted when it was written.
    pub tally: Tally,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Fields of metadata and summary that only a later version knows.
    pub unknown_fields: u64,
}

impl Outline {
    /// Reads it. `None` when the trace has no end, or none that tells what the trace
    /// holds, and when it is damaged where this looks; [`crate::reader::Trace::open`] says
    /// more then.
    ///
    /// # Errors
    /// [`Error::NotATrace`], [`Error::Version`]; [`Error::Io`].
    pub fn read(source: &Source) -> Result<Option<Outline>, Error> {
        let (minor, damage) = file_header(source)?;
        if !damage.is_empty() {
            return Ok(None);
        }
        Ok(at_the_ends(source, minor).unwrap_or_default())
    }
}

fn at_the_ends(source: &Source, minor: u16) -> Result<Option<Outline>, Fault> {
    let payload = metadata_at_start(source)?;
    let id = crc32fast::hash(&payload);
    let (meta, unknown) = unpacked(&payload)?;
    let (start, index) = index_frames(source, id)?;
    let (summary, fields): (Summary, u64) = summary(source, id, (start, &index))?;
    Ok(summary.tally.clone().map(|tally| Outline {
        minor,
        meta,
        summary,
        tally,
        bytes: source.len(),
        unknown_fields: unknown + fields,
    }))
}

/// Where the index begins, and its frames.
fn index_frames(source: &Source, id: u32) -> Result<(u64, Vec<(Header, u64)>), Fault> {
    let none = Fault::Content("there is no index");
    let end = source
        .len()
        .checked_sub(frame::TRAILER)
        .ok_or(none.clone())?;
    let trailer = source.at(end, frame::TRAILER);
    let trailer = trailer.map_err(|error| Fault::Read(error.to_string()))?;
    let start = frame::read_trailer(&trailer, id).ok_or(none)?;
    // Each row's frame stands before the index.
    let most = limits::FRAMES.min(start / limits::LEAST_FRAME);
    let (mut at, mut frames, mut rows) = (start, Vec::new(), 0u64);
    while at < end {
        let (header, len) = header_at(source, at, id)?;
        let seq = frames.len() as u64;
        if header.kind != kind::INDEX || header.seq != seq || header.events == 0 {
            return Err(Fault::Index);
        }
        rows = rows.saturating_add(header.events);
        crate::error::within("the number of frames", rows, most)?;
        frames.push((header, at + len));
        at = at.saturating_add(len).saturating_add(header.payload);
    }
    match at == end {
        true => Ok((start, frames)),
        false => Err(Fault::Index),
    }
}

/// The summary, whose place the last rows of the index tell.
fn summary(
    source: &Source,
    id: u32,
    (start, index): (u64, &[(Header, u64)]),
) -> Result<(Summary, u64), Fault> {
    // Of a long index the last frame may have one row only.
    for (header, at) in index.iter().rev().take(2) {
        let payload = payload_at(source, *at, header)?;
        let mut found = None;
        unpacking(|unpacker| {
            index::go_through(&payload, 0, (None, start), unpacker, |row| {
                if row.header.kind == kind::SUMMARY {
                    found = Some(row);
                }
            })
        })?;
        let Some(row) = found else {
            continue;
        };
        let (header, len) = header_at(source, row.offset, id)?;
        if header.kind != kind::SUMMARY {
            return Err(Fault::Index);
        }
        let payload = payload_at(source, row.offset + len, &header)?;
        return unpacked(&payload);
    }
    Err(Fault::Content("there is no summary"))
}
