//! Reads the metadata and the summary of a complete trace without its other frames.

use crate::frame::{frame_at, kind};
use crate::meta::{Metadata, Summary};
use crate::source::Source;
use crate::tally::Tally;
use crate::walk::Start;
use crate::{index, section, Error, Fault};

/// The metadata and the summary of a complete trace.
///
/// Reading them takes hardly longer for a long trace than for a short one. The other frames are not
/// checked: [`crate::reader::Trace`] reports their damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The minor version of the format that the trace was written in.
    pub minor: u16,
    /// The metadata of the trace.
    pub meta: Metadata,
    /// The summary of the trace.
    pub summary: Summary,
    /// The numbers of the trace's events by kind, and other facts about the events.
    pub tally: Tally,
    /// The length of the whole trace file in bytes.
    pub bytes: u64,
    /// The number of fields of the metadata and the summary that are unknown because only a later
    /// version has them.
    pub unknown_fields: u64,
}

impl Outline {
    /// Reads the metadata and the summary from the two ends of a trace. Returns `None` if the
    /// summary lacks the numbers of events, or if the trace is truncated or damaged in the parts
    /// read; [`crate::reader::Trace::open`] reports the damage.
    ///
    /// # Errors
    /// [`Error::NotATrace`], [`Error::Version`], [`Error::Io`]; [`Error::Frame`] if both copies of
    /// the metadata are damaged or missing.
    pub fn read(source: &Source) -> Result<Option<Outline>, Error> {
        let start = Start::read(source)?;
        if !start.intact {
            return Ok(None);
        }
        let Ok((summary, fields)) = summary(source, start.id) else {
            return Ok(None);
        };
        Ok(summary.tally.clone().map(|tally| Outline {
            minor: start.minor,
            meta: start.meta,
            summary,
            tally,
            bytes: source.len(),
            unknown_fields: start.unknown_fields + fields,
        }))
    }
}

/// Reads the summary of a complete trace. Also returns the number of its fields that this version
/// does not know.
fn summary(source: &Source, id: u32) -> Result<(Summary, u64), Fault> {
    let row = index::Frames::read(source, id)?
        .last(source, kind::SUMMARY)?
        .ok_or(Fault::Content("there is no summary"))?;
    let (header, payload) = frame_at(source, row.offset, id)?;
    if header.kind != kind::SUMMARY {
        return Err(Fault::Index);
    }
    section::unpack(&payload)
}
