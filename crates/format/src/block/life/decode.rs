//! Turns the columns of a frame into lifecycle events.

use std::sync::Arc;

use super::super::bits::BitReader;
use super::{read, wide};
use crate::codec::{ago, Bytes, Codec, Col, FrameState, Step, Text, TextColumns, COLUMNS, TEXTS};
use crate::error::within;
use crate::event::LifeEvent;
use crate::frame::Span;
use crate::limits;
use crate::varint::Cursor;
use crate::zip::Unpacker;
use crate::Fault;

struct Dec<'a> {
    columns: [Cursor<'a>; COLUMNS],
    low: BitReader<'a>,
    known: FrameState,
    /// The texts that were read so far from the columns of the frame, by kind of text.
    texts: [Vec<Arc<[u8]>>; TEXTS],
}

impl<'a> Dec<'a> {
    #[allow(clippy::indexing_slicing)] // The array has a place for every `Col`.
    #[inline(always)]
    fn column(&mut self, col: Col) -> &mut Cursor<'a> {
        &mut self.columns[col as usize]
    }

    #[allow(clippy::indexing_slicing)] // The array has a place for every `Text`.
    fn texts(&mut self, of: Text) -> &mut Vec<Arc<[u8]>> {
        &mut self.texts[of as usize]
    }

    /// Reads the bytes of a string that is stored in full: its length from the column `len`, and its bytes
    /// from the column `bytes`.
    fn string(&mut self, len: Col, bytes: Col, most: usize) -> Result<&'a [u8], Fault> {
        let length = self.column(len).int()?;
        within("a string's length", length, most as u64)?;
        self.column(bytes).take(length)
    }
}

impl Codec for Dec<'_> {
    const WRITES: bool = false;

    #[inline(always)]
    fn known(&mut self) -> &mut FrameState {
        &mut self.known
    }

    #[inline(always)]
    fn byte(&mut self, col: Col, value: &mut u8) -> Step {
        *value = self.column(col).byte()?;
        Ok(())
    }

    #[inline(always)]
    fn int(&mut self, col: Col, value: &mut u64) -> Step {
        *value = self.column(col).int()?;
        Ok(())
    }

    #[inline(always)]
    fn wide(&mut self, col: Col, value: &mut u64) -> Step {
        let class = self.column(col).byte()?;
        *value = wide::get(class, &mut self.low)? as u64;
        Ok(())
    }

    fn is_over(&mut self, col: Col) -> bool {
        self.column(col).left() == 0
    }

    fn bytes<T: Bytes>(&mut self, cols: TextColumns, most: usize, value: &mut T) -> Step {
        let bytes = self.string(cols.lengths, cols.bytes, most)?;
        self.known.spend(bytes.len())?;
        // The value is empty before it is read, so nothing has to be copied for an empty string.
        if !bytes.is_empty() {
            *value = T::copy(bytes);
        }
        Ok(())
    }

    /// Reads a text of an event. Events with equal texts share one allocation.
    fn text<T: Bytes>(&mut self, of: Text, value: &mut T) -> Step {
        let [col, len, bytes] = of.columns();
        let mut back = self.column(col).int()?;
        if back == 0 {
            let new = self.string(len, bytes, of.limit())?;
            self.texts(of).push(new.into());
            back = 1;
        }
        let text = ago(self.texts(of), back)?;
        *value = T::of(text);
        let length = text.len();
        self.known.spend(length)
    }
}

/// Counts of the parts of a trace that a reader skipped because only a later version of the format knows
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// The number of skipped frames whose type is unknown.
    pub frames: u64,
    /// The number of unknown fields of the trace's metadata and summary, and of unknown columns of the
    /// lifecycle frames that were read so far.
    pub fields: u64,
    /// The number of events of unknown kinds in the lifecycle frames that were read so far.
    pub events: u64,
}

/// Decodes the payload of a lifecycle frame with `events` events. If `times` is not the smallest and the largest time
/// of these events, an error is returned. After an error `into` has the events before the error.
pub fn decode(
    payload: &[u8],
    events: u64,
    times: Span,
    unpacker: &mut Unpacker,
    into: &mut Vec<LifeEvent>,
) -> Result<Unknown, Fault> {
    let mut cursor = Cursor::new(payload);
    let body = unpacker.unpack(&mut cursor, limits::BODY)?;
    let low = BitReader::new(cursor.rest());
    let mut body = Cursor::new(body);
    let count = body.int()?;
    within("the number of columns", count, limits::LIFE_COLUMNS)?;
    let mut lengths = Vec::with_capacity(count as usize);
    for _ in 0..count {
        lengths.push(body.int()?);
    }
    let mut unknown = Unknown::default();
    let mut columns: [Cursor; COLUMNS] = std::array::from_fn(|_| Cursor::new(&[]));
    for (at, len) in lengths.into_iter().enumerate() {
        let bytes = body.take(len)?;
        match columns.get_mut(at) {
            Some(column) => *column = Cursor::new(bytes),
            // A column that this version does not know is counted as an unknown field only if the column has content.
            None => unknown.fields += u64::from(!bytes.is_empty()),
        }
    }
    if body.left() > 0 {
        return Err(Fault::Content("trailing bytes after the columns"));
    }
    let mut dec = Dec {
        columns,
        low,
        known: FrameState::new(times.min),
        texts: Default::default(),
    };
    let mut found = Span::EMPTY;
    for _ in 0..events {
        match read(&mut dec)? {
            Some(event) => into.push(event),
            None => unknown.events += 1,
        }
        found.extend(dec.known.time);
    }
    dec.low.finish()?;
    if dec.columns.iter().any(|column| column.left() > 0) {
        return Err(Fault::Content("trailing bytes after the events"));
    }
    if found != times {
        return Err(Fault::Content("event times differ from the frame header's"));
    }
    Ok(unknown)
}
