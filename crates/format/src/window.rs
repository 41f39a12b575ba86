//! A part of a trace, found by the index: the frames of a span of time and of what was
//! before it back to the last [`Checkpoint`]. What else there is in the trace is not
//! looked at, damage included.

use rayon::prelude::*;

use crate::checkpoint::Checkpoint;
use crate::event::{Ktime, Stream};
use crate::frame::{kind, Header};
use crate::index::{self, Row};
use crate::outline::Ends;
use crate::reader::{unpacked, unpacking, FrameInfo, Trace};
use crate::scan::{header_at, payload_at};
use crate::source::Source;
use crate::tally::Tally;
use crate::{section, Error, Fault};

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
    let counts = ends.index.iter().map(|(header, _)| header.events);
    let firsts = counts.scan(0u64, |next, rows| {
        let first = *next;
        *next = next.saturating_add(rows);
        Some(first)
    });
    let firsts: Vec<u64> = firsts.collect();
    let indexes = || ends.index.par_iter().zip(&firsts).with_max_len(1);
    // Most of the time goes to the index of a long trace, so all threads look at it.
    let looks: Vec<Look> = indexes()
        .map(|(index, first)| Look::new(source, ends, index, *first))
        .collect::<Result<_, _>>()?;
    let mut expected = crate::frame::FILE_HEADER;
    let mut checkpoints: Vec<Row> = Vec::new();
    for look in &looks {
        if look.begins.is_some_and(|begins| begins != expected) {
            return Err(Fault::Index);
        }
        expected = look.ends;
        too_late(&mut checkpoints, look.least);
        checkpoints.extend(&look.checkpoints);
    }
    if expected != ends.start {
        return Err(Fault::Index);
    }
    let last = checkpoints.iter().rfind(|row| row.header.min <= from);
    let checkpoint = last.map(|row| read(source, ends.id, row)).transpose()?;
    let since = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.at.0);
    let needed = |row: &Row| {
        let later = match row.header.kind {
            kind::SCHED => 0,
            _ => PATHS_LATER,
        };
        row.header.max >= since && row.header.min <= to.saturating_add(later)
    };
    let frames: Vec<Vec<FrameInfo>> = indexes()
        .zip(&looks)
        .filter(|(_, look)| look.most >= since && look.earliest <= to.saturating_add(PATHS_LATER))
        .map(|((index, first), _)| {
            let mut frames = Vec::new();
            each_row(source, ends, index, *first, |row| {
                frames.extend(row.frame().filter(|_| needed(&row)));
            })?;
            Ok(frames)
        })
        .collect::<Result<_, Fault>>()?;
    Ok((checkpoint, frames.concat()))
}

/// What one frame of the index says, in short.
struct Look {
    /// Where its first row's frame begins, and where the last one's ends.
    begins: Option<u64>,
    ends: u64,
    /// Its checkpoints, but those that came too late for an event in it.
    checkpoints: Vec<Row>,
    /// The smallest time of an event that a checkpoint has to do with.
    least: u64,
    /// The smallest and the largest time of all.
    earliest: u64,
    most: u64,
}

impl Look {
    fn new(source: &Source, ends: &Ends, index: &(Header, u64), first: u64) -> Result<Look, Fault> {
        let mut look = Look {
            begins: None,
            ends: 0,
            checkpoints: Vec::new(),
            least: u64::MAX,
            earliest: u64::MAX,
            most: 0,
        };
        let mut rows = 0;
        look.ends = each_row(source, ends, index, first, |row| {
            let header = &row.header;
            rows += 1;
            look.begins = look.begins.or(Some(row.offset));
            if header.kind == kind::CHECKPOINT {
                look.checkpoints.push(row);
            } else if header.events > 0 {
                look.earliest = look.earliest.min(header.min);
                look.most = look.most.max(header.max);
                // The recorder's own words are of the past by nature.
                if header.stream() != Some(Stream::Recorder) {
                    look.least = look.least.min(header.min);
                    too_late(&mut look.checkpoints, header.min);
                }
            }
        })?;
        match rows == index.0.events {
            true => Ok(look),
            false => Err(Fault::Index),
        }
    }
}

/// Takes away the checkpoints that came too late for an event with that time.
fn too_late(checkpoints: &mut Vec<Row>, event: u64) {
    while checkpoints.pop_if(|row| row.header.min > event).is_some() {}
}

/// Goes through one frame of the index, whose first row has that number.
fn each_row(
    source: &Source,
    ends: &Ends,
    (header, at): &(Header, u64),
    first: u64,
    each: impl FnMut(Row),
) -> Result<u64, Fault> {
    let payload = payload_at(source, *at, header)?;
    unpacking(|unpacker| index::go_through(&payload, first, (None, ends.start), unpacker, each))
}

fn read(source: &Source, id: u32, row: &Row) -> Result<Checkpoint, Fault> {
    let (header, len) = header_at(source, row.offset, id)?;
    if header.kind != kind::CHECKPOINT {
        return Err(Fault::Index);
    }
    let payload = payload_at(source, row.offset + len, &header)?;
    let (checkpoint, _) = unpacked(&payload, section::take_section::<Checkpoint>)?;
    match checkpoint.at == Ktime(row.header.min) && checkpoint.is_sound() {
        true => Ok(checkpoint),
        false => Err(Fault::Content("the checkpoint contradicts itself")),
    }
}
