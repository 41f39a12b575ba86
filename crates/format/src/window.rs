//! A part of a trace, found by the index: the frames of a span of time and of what was
//! before it back to the last [`Checkpoint`]. What else there is in the trace is not
//! looked at, damage included.

use crate::checkpoint::Checkpoint;
use crate::event::{Ktime, Stream};
use crate::frame::kind;
use crate::index::{self, Row};
use crate::outline::Ends;
use crate::reader::{unpacked, unpacking, FrameInfo, Trace};
use crate::scan::{header_at, payload_at};
use crate::source::Source;
use crate::tally::Tally;
use crate::{limits, section, Error, Fault};

/// A cgroup's path may be told as late as the recorder comes to look it up, in ns.
const PATHS_LATER: u64 = 2_000_000_000;

/// Where a part of a trace is.
#[derive(Debug)]
pub struct Place {
    ends: Ends,
    frames: Vec<FrameInfo>,
    tally: Tally,
    checkpoint: Option<Checkpoint>,
}

/// A part of a trace.
#[derive(Debug)]
pub struct Window {
    /// The trace, of the frames of which only those are known that the part needs. All
    /// events of the part are in them, and all between the checkpoint and the part.
    pub trace: Trace,
    /// What the whole trace holds.
    pub tally: Tally,
    /// What was before; `None` when the trace is to be read from its start on.
    pub checkpoint: Option<Checkpoint>,
}

impl Place {
    /// Looks for the part from `from` to `to`, in ns since the trace's start; `None` is
    /// that start, and the end. `None` comes back when only the whole trace can tell:
    /// it was not finished, it is damaged where this looks, or events were lost.
    ///
    /// # Errors
    /// [`Error::NotATrace`], [`Error::Version`]; [`Error::Io`].
    pub fn find(
        source: &Source,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<Option<Place>, Error> {
        let Some(ends) = Ends::read(source)? else {
            return Ok(None);
        };
        let tally = ends.summary.tally.clone();
        let Some(tally) = tally.filter(|tally| tally.lost.is_empty()) else {
            return Ok(None);
        };
        let (start, end) = (ends.meta.start, ends.summary.end);
        let at = |offset: u64| start.0.saturating_add(offset);
        let from = from.map_or(start.0, at).min(end.0);
        let to = to.map_or(u64::MAX, at).max(from);
        // What is damaged tells the reader of the whole.
        let Ok((checkpoint, frames)) = find(source, &ends, (from, to)) else {
            return Ok(None);
        };
        Ok(Some(Place {
            ends,
            frames,
            tally,
            checkpoint,
        }))
    }

    /// Opens the part; `source` is the one that it was looked for in.
    pub fn open(self, source: Source) -> Window {
        Window {
            trace: Trace::part(source, self.ends, self.frames),
            tally: self.tally,
            checkpoint: self.checkpoint,
        }
    }
}

/// The last checkpoint that serves, and the frames of the span and back to it.
fn find(
    source: &Source,
    ends: &Ends,
    (from, to): (u64, u64),
) -> Result<(Option<Checkpoint>, Vec<FrameInfo>), Fault> {
    let mut checkpoints: Vec<Row> = Vec::new();
    each_row(source, ends, |row| {
        let header = &row.header;
        if header.kind == kind::CHECKPOINT {
            checkpoints.push(row);
        } else if header.events > 0 && header.stream() != Some(Stream::Recorder) {
            // An event that came too late for it. The recorder's own words are of the
            // past by nature.
            while checkpoints
                .pop_if(|late| late.header.min > header.min)
                .is_some()
            {}
        }
    })?;
    let last = checkpoints.iter().rfind(|row| row.header.min <= from);
    let checkpoint = last.map(|row| read(source, ends.id, row)).transpose()?;
    let since = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.at.0);
    let mut frames = Vec::new();
    each_row(source, ends, |row| {
        let later = match row.header.kind {
            kind::SCHED => 0,
            _ => PATHS_LATER,
        };
        if row.header.max >= since && row.header.min <= to.saturating_add(later) {
            frames.extend(row.frame());
        }
    })?;
    Ok((checkpoint, frames))
}

/// Goes through the whole index.
fn each_row(source: &Source, ends: &Ends, mut each: impl FnMut(Row)) -> Result<(), Fault> {
    let (mut first, mut expected) = (0, crate::frame::FILE_HEADER);
    for (header, at) in &ends.index {
        let payload = payload_at(source, *at, header)?;
        let mut rows = 0;
        expected = unpacking(|unpacker| {
            let span = (Some(expected), ends.start);
            index::go_through(&payload, first, span, unpacker, |row| {
                rows += 1;
                each(row);
            })
        })?;
        first += rows;
        crate::error::within("the number of frames", first, limits::FRAMES)?;
    }
    match expected == ends.start {
        true => Ok(()),
        false => Err(Fault::Index),
    }
}

fn read(source: &Source, id: u32, row: &Row) -> Result<Checkpoint, Fault> {
    let (header, len) = header_at(source, row.offset, id)?;
    if header.kind != kind::CHECKPOINT {
        return Err(Fault::Index);
    }
    let payload = payload_at(source, row.offset + len, &header)?;
    let (checkpoint, _) = unpacked(&payload, section::take_checkpoint)?;
    match checkpoint.at == Ktime(row.header.min) && checkpoint.is_sound() {
        true => Ok(checkpoint),
        false => Err(Fault::Content("the checkpoint contradicts itself")),
    }
}
