//! What a trace says about itself: its metadata and its summary, found by the index
//! and read without a look at any other frame.

use crate::frame::{self, kind};
use crate::index;
use crate::limits;
use crate::meta::{Metadata, Summary};
use crate::reader::{file_header, metadata_at_start, take_metadata, unpacking};
use crate::scan::{header_at, payload_at};
use crate::section;
use crate::source::Source;
use crate::tally::Tally;
use crate::varint::Cursor;
use crate::{Error, Fault};

/// The two ends of a trace that was finished.
///
/// It takes as long for a trace of any size. The other frames are not looked at: what is
/// damaged in them shows only when they are read ([`crate::reader::Trace`]).
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
        match damage.is_empty() {
            true => Ok(at_the_ends(source, minor).ok()),
            false => Ok(None),
        }
    }
}

fn at_the_ends(source: &Source, minor: u16) -> Result<Outline, Fault> {
    let payload = metadata_at_start(source)?;
    let id = crc32fast::hash(&payload);
    let (meta, unknown) = take_metadata(&payload)?;
    let (summary, fields) = summary(source, id)?;
    let tally = summary.tally.clone();
    Ok(Outline {
        minor,
        meta,
        tally: tally.ok_or(Fault::Content("the summary does not say what there is"))?,
        summary,
        bytes: source.len(),
        unknown_fields: unknown + fields,
    })
}

/// The summary, whose place the last rows of the index tell.
fn summary(source: &Source, id: u32) -> Result<(Summary, u64), Fault> {
    let none = Fault::Content("there is no summary");
    let end = source
        .len()
        .checked_sub(frame::TRAILER)
        .ok_or(none.clone())?;
    let trailer = source.at(end, frame::TRAILER);
    let trailer = trailer.map_err(|error| Fault::Read(error.to_string()))?;
    let start = frame::read_trailer(&trailer, id).ok_or(none.clone())?;
    let (mut at, mut seq, mut last) = (start, 0, [None, None]);
    while at < end {
        let (header, len) = header_at(source, at, id)?;
        if header.kind != kind::INDEX || header.seq != seq {
            return Err(Fault::Index);
        }
        let [_, before] = last;
        last = [before, Some((header, at + len))];
        at = at.saturating_add(len).saturating_add(header.payload);
        seq += 1;
    }
    if at != end {
        return Err(Fault::Index);
    }
    // Of a long index the last frame may have one row only.
    for (header, at) in last.into_iter().rev().flatten() {
        let payload = payload_at(source, at, &header)?;
        let rows = unpacking(|unpacker| index::read_one(&payload, start, unpacker))?;
        let Some(row) = rows.iter().rfind(|row| row.header.kind == kind::SUMMARY) else {
            continue;
        };
        let (header, len) = header_at(source, row.offset, id)?;
        if header.kind != kind::SUMMARY {
            return Err(Fault::Index);
        }
        let payload = payload_at(source, row.offset + len, &header)?;
        return unpacking(|unpacker| {
            let mut cursor = Cursor::new(&payload);
            let body = unpacker.unpack(&mut cursor, limits::SECTION_BODY)?;
            match cursor.left() {
                0 => section::take_summary(body),
                _ => Err(Fault::Content("there is more than the body")),
            }
        });
    }
    Err(none)
}
