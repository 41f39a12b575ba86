//! A part of a trace, found by the index: the frames of a span of time and of what was
//! before it back to the last [`Checkpoint`]. What else there is in the trace is not
//! looked at, damage included.

use std::ops::Range;

use rayon::prelude::*;

use crate::checkpoint::{self, Checkpoint};
use crate::frame::{kind, Header, FILE_HEADER};
use crate::index::{self, Row};
use crate::outline::Ends;
use crate::reader::{unpacking, FrameInfo, Trace};
use crate::scan::payload_at;
use crate::source::Source;
use crate::tally::Tally;
use crate::{Error, Fault};

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
    let firsts = ends.index.iter().scan(0u64, |next, (header, _)| {
        let first = *next;
        *next = next.saturating_add(header.events);
        Some(first)
    });
    let pieces: Vec<Piece> = ends
        .index
        .iter()
        .zip(firsts)
        .enumerate()
        .map(|(nth, ((header, payload), first))| Piece {
            source,
            nth,
            header,
            payload: *payload,
            first,
            end: ends.start,
        })
        .collect();
    let checkpoint = last_checkpoint(&pieces, from)?;
    let checkpoint = checkpoint
        .map(|row| checkpoint::read(source, ends.id, &row))
        .transpose()?;
    let since = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.at.0);
    let needed = |row: &Row| {
        let later = match row.header.kind {
            kind::SCHED => 0,
            _ => PATHS_LATER,
        };
        row.header.max >= since && row.header.min <= to.saturating_add(later)
    };
    let overlaps = |piece: &&Piece| {
        let (min, max) = piece.span();
        max >= since && min <= to.saturating_add(PATHS_LATER)
    };
    let overlapping: Vec<&Piece> = pieces.iter().filter(overlaps).collect();
    let parts: Vec<(Told, Vec<FrameInfo>)> = overlapping
        .par_iter()
        .with_max_len(1)
        .map(|piece| {
            let mut frames = Vec::new();
            let bytes =
                piece.each_row(|row| frames.extend(row.frame().filter(|_| needed(&row))))?;
            Ok(((piece.nth, bytes), frames))
        })
        .collect::<Result<_, Fault>>()?;
    let (told, frames): (Vec<Told>, Vec<Vec<FrameInfo>>) = parts.into_iter().unzip();
    match is_without_holes(&told, (pieces.len(), ends.start)) {
        true => Ok((checkpoint, frames.concat())),
        false => Err(Fault::Index),
    }
}

/// A frame of the index, by its place in that, and the bytes that its rows tell of.
type Told = (usize, Range<u64>);

/// Whether these, in order, tell of all bytes from the file header to the index, as far as
/// they reach. The index has so many frames and begins there.
fn is_without_holes(told: &[Told], (count, index): (usize, u64)) -> bool {
    let follow = |pair: &[Told]| match pair {
        [(one, before), (other, behind)] => one + 1 != *other || before.end == behind.start,
        _ => true,
    };
    let fits = |(nth, bytes): &Told| {
        (*nth != 0 || bytes.start == FILE_HEADER) && (nth + 1 != count || bytes.end == index)
    };
    told.windows(2).all(follow) && told.iter().all(fits)
}

/// The last checkpoint up to a time that did not come too late for an event behind it.
fn last_checkpoint(pieces: &[Piece], from: u64) -> Result<Option<Row>, Fault> {
    // The smallest time of an event in the pieces behind, of those that have any that
    // early: the events of all others are later than any checkpoint that is looked for.
    let mut least = u64::MAX;
    let early = |piece: &&Piece| piece.span().0 <= from;
    for piece in pieces.iter().rev().filter(early) {
        let look = Look::new(piece)?;
        let serves = |row: &&Row| row.header.min <= from.min(least);
        if let Some(row) = look.checkpoints.iter().rfind(serves) {
            return Ok(Some(*row));
        }
        least = least.min(look.least);
    }
    Ok(None)
}

/// A frame of the index.
struct Piece<'a> {
    source: &'a Source,
    /// Its place in the index.
    nth: usize,
    header: &'a Header,
    /// Where its payload is.
    payload: u64,
    /// The number of its first row.
    first: u64,
    /// Where the index begins.
    end: u64,
}

impl Piece<'_> {
    /// No time in it is smaller, and none larger.
    fn span(&self) -> (u64, u64) {
        match (self.header.min, self.header.max) {
            (0, 0) => (0, u64::MAX), // not told
            span => span,
        }
    }

    /// Goes through its rows; which bytes these tell of.
    fn each_row(&self, mut each: impl FnMut(Row)) -> Result<Range<u64>, Fault> {
        let payload = payload_at(self.source, self.payload, self.header)?;
        let (mut rows, mut inside) = (0, true);
        let (min, max) = self.span();
        let bytes = unpacking(|unpacker| {
            index::go_through(&payload, self.first, (None, self.end), unpacker, |row| {
                let header = &row.header;
                rows += 1;
                inside &= header.events == 0 || (min <= header.min && header.max <= max);
                each(row);
            })
        })?;
        match inside && rows == self.header.events {
            true => Ok(bytes),
            false => Err(Fault::Index),
        }
    }
}

/// What one frame of the index says of checkpoints.
struct Look {
    /// Those that did not come too late for an event in it.
    checkpoints: Vec<Row>,
    /// The smallest time of an event that a checkpoint has to do with.
    least: u64,
}

impl Look {
    fn new(piece: &Piece) -> Result<Look, Fault> {
        let mut look = Look {
            checkpoints: Vec::new(),
            least: u64::MAX,
        };
        piece.each_row(|row| {
            let header = &row.header;
            let tells = header.kind != kind::CHECKPOINT && checkpoint::tells(header.stream());
            if header.events > 0 && tells {
                look.least = look.least.min(header.min);
            }
            checkpoint::sift(&mut look.checkpoints, &row);
        })?;
        Ok(look)
    }
}
