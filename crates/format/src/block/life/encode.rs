//! Lifecycle events to columns.

use std::collections::HashMap;

use super::super::bits::BitWriter;
use super::{wide, write};
use crate::codec::{Bytes, Codec, Col, Known, Step, Text, COLUMNS, TEXTS};
use crate::event::LifeEvent;
use crate::varint::put;
use crate::zip::{Packer, LEVEL};

/// The new strings so far, numbered in order.
#[derive(Default)]
struct Interned {
    at: HashMap<Box<[u8]>, usize>,
    count: usize,
}

/// Bytes from which on a column has Huffman tables of its own in the packed body: the lifecycle
/// blocks of three builds are 2 to 4 % shorter so. With tables for every column they are as long as with
/// one for all.
const LONG: usize = 1024;

struct Enc {
    columns: [Vec<u8>; COLUMNS],
    low: BitWriter,
    known: Known,
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
        // The distance to an empty one would grow with each new text.
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

    fn known(&mut self) -> &mut Known {
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

    fn bytes<T: Bytes>(&mut self, (len, col): (Col, Col), most: usize, value: &mut T) -> Step {
        let value = value.bytes();
        let value = value.get(..most).unwrap_or(value);
        self.put(len, value.len() as u64);
        self.column(col).extend_from_slice(value);
        Ok(())
    }

    fn text<T: Bytes>(&mut self, of: Text, value: &mut T) -> Step {
        let value = value.bytes();
        self.string(of, value.get(..of.limit()).unwrap_or(value));
        Ok(())
    }
}

/// The approximate memory of an event in bytes.
pub(crate) fn weight(event: &LifeEvent) -> usize {
    std::mem::size_of::<LifeEvent>() + event.kind.weight()
}

/// Appends the payload of a block. The first time is counted from `min`.
pub(crate) fn encode(
    events: &mut [LifeEvent],
    min: u64,
    packer: &mut Packer,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let mut enc = Enc {
        columns: std::array::from_fn(|_| Vec::new()),
        low: BitWriter::default(),
        known: Known::new(min),
        texts: Default::default(),
    };
    for it in events {
        write(&mut enc, it).map_err(std::io::Error::other)?;
    }
    let used = enc.columns.iter().rposition(|column| !column.is_empty());
    let used = used.map_or(0, |last| last + 1);
    let mut body = Vec::new();
    put(&mut body, used as u64);
    for column in enc.columns.iter().take(used) {
        put(&mut body, column.len() as u64);
    }
    // Long columns are parts, and so are those between them.
    let mut parts = vec![body];
    let mut before_long = false;
    for column in enc.columns.iter().filter(|column| !column.is_empty()) {
        let long = column.len() >= LONG;
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
