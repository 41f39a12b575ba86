//! Turns lifecycle events into the columns of a frame.

use std::collections::HashMap;

use super::super::bits::BitWriter;
use super::{wide, write};
use crate::codec::{Bytes, Codec, Col, FrameState, Step, Text, TextColumns, COLUMNS, TEXTS};
use crate::event::LifeEvent;
use crate::varint::put;
use crate::zip::{Packer, LEVEL};

/// The different texts of one kind that were written into the frame so far, numbered in the order of their first
/// use.
#[derive(Default)]
struct Interned {
    at: HashMap<Box<[u8]>, usize>,
    count: usize,
}

/// A column of lifecycle events with at least this length in bytes is compressed with Huffman tables of its own. These
/// tables shorten the lifecycle blocks of three builds by 2 to 4 %. If every column had tables of its own, the blocks
/// would be as long as with one table for all columns.
const LONG_COLUMN: usize = 1024;

struct Enc {
    columns: [Vec<u8>; COLUMNS],
    low: BitWriter,
    known: FrameState,
    texts: [Interned; TEXTS],
}

impl Enc {
    #[allow(clippy::indexing_slicing)] // The array has a place for every `Col`.
    fn column(&mut self, col: Col) -> &mut Vec<u8> {
        &mut self.columns[col as usize]
    }

    fn put(&mut self, col: Col, value: u64) {
        put(self.column(col), value);
    }

    fn string(&mut self, of: Text, text: &[u8]) {
        let [col, len, bytes] = of.columns();
        #[allow(clippy::indexing_slicing)] // The array has a place for every `Text`.
        let known = &mut self.texts[of as usize];
        if let Some(at) = known.at.get(text) {
            let back = known.count - at;
            return self.put(col, back as u64);
        }
        // An empty text is not remembered, so each empty text is stored in full, in two bytes. A reference would be the
        // distance to the earlier empty text, which differs each time and so compresses worse.
        if !text.is_empty() {
            known.at.insert(text.into(), known.count);
        }
        known.count += 1;
        self.put(col, 0);
        self.put(len, text.len() as u64);
        self.column(bytes).extend_from_slice(text);
    }
}

impl Codec for Enc {
    const WRITES: bool = true;

    fn known(&mut self) -> &mut FrameState {
        &mut self.known
    }

    fn byte(&mut self, col: Col, value: &mut u8) -> Step {
        self.column(col).push(*value);
        Ok(())
    }

    fn int(&mut self, col: Col, value: &mut u64) -> Step {
        self.put(col, *value);
        Ok(())
    }

    fn wide(&mut self, col: Col, value: &mut u64) -> Step {
        let (class, bits, width) = wide::split(*value as i64);
        self.column(col).push(class);
        self.low.put(bits, width);
        Ok(())
    }

    fn bytes<T: Bytes>(&mut self, cols: TextColumns, most: usize, value: &mut T) -> Step {
        let whole = value.bytes();
        let stored = whole.get(..most).unwrap_or(whole);
        self.put(cols.lengths, stored.len() as u64);
        self.column(cols.bytes).extend_from_slice(stored);
        Ok(())
    }

    fn text<T: Bytes>(&mut self, of: Text, value: &mut T) -> Step {
        let value = value.bytes();
        self.string(of, value.get(..of.limit()).unwrap_or(value));
        Ok(())
    }
}

/// The approximate number of bytes of memory that an event takes.
pub(crate) fn weight(event: &LifeEvent) -> usize {
    std::mem::size_of::<LifeEvent>() + event.kind.weight()
}

/// Appends the encoded payload of a frame with these lifecycle events to `out`. The times are stored as
/// differences, the first one from `min`.
pub(crate) fn encode(
    events: &mut [LifeEvent],
    min: u64,
    packer: &mut Packer,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let mut enc = Enc {
        columns: std::array::from_fn(|_| Vec::new()),
        low: BitWriter::default(),
        known: FrameState::new(min),
        texts: Default::default(),
    };
    for event in events {
        write(&mut enc, event).map_err(std::io::Error::other)?;
    }
    let last_used = enc.columns.iter().rposition(|column| !column.is_empty());
    let used = last_used.map_or(0, |last| last + 1);
    let mut body = Vec::new();
    put(&mut body, used as u64);
    for column in enc.columns.iter().take(used) {
        put(&mut body, column.len() as u64);
    }
    // Each part is compressed with Huffman tables of its own. A long column is a part by itself. All short columns
    // between two long ones are one part together.
    let mut parts = vec![body];
    let mut before_long = false;
    for column in enc.columns.iter().filter(|column| !column.is_empty()) {
        let long = column.len() >= LONG_COLUMN;
        match parts.last_mut() {
            Some(part) if !long && !before_long => part.extend_from_slice(column),
            _ => parts.push(column.clone()),
        }
        before_long = long;
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    packer.pack(&parts, LEVEL, out)?;
    enc.low.finish(out);
    Ok(())
}
