//! The index at the end of a trace. It has one row for each frame before it, in file order. A long index
//! consists of several frames in sequence.

use std::ops::Range;

use crate::error::within;
use crate::event::Ktime;
use crate::frame::{self, header_at, kind, payload_at, FrameInfo, Header, FILE_HEADER};
use crate::limits;
use crate::source::Source;
use crate::varint::{fold, put, unfold, Cursor};
use crate::zip::{unpacking, Packer, Unpacker, LEVEL};
use crate::Fault;

/// One row of a trace's index. It describes one frame of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The header of the frame that the row describes. The index does not contain the payload's checksum, so it is 0
    /// in a row that was read from the index.
    pub header: Header,
    pub offset: u64,
    /// The length of the described frame in bytes, including its header.
    pub bytes: u64,
}

impl Row {
    /// The position of the frame that the row describes, and what the frame holds; `None` if the frame
    /// holds no events.
    pub fn frame(&self) -> Option<FrameInfo> {
        let header = &self.header;
        Some(FrameInfo {
            number: header.number,
            stream: header.stream()?,
            seq: header.seq,
            offset: self.offset,
            bytes: self.bytes,
            events: header.events,
            min: Ktime(header.min),
            max: Ktime(header.max),
        })
    }
}

/// The number of rows that the writer of a trace puts into one frame of the index.
const ROWS: u64 = 1 << 12;

/// Collects the rows of a trace's index while the trace is written. It needs about ten bytes of memory for
/// each frame.
#[derive(Debug, Default)]
pub struct Index(Vec<Piece>);

/// The rows of one frame of a trace's index, as they are collected for writing.
#[derive(Debug, Default)]
struct Piece {
    rows: u64,
    first: u64,
    bytes: Vec<u8>,
    min: u64,
    /// The smallest and the largest time of an event in the frames that these rows of the index describe,
    /// in ns.
    span: Option<(u64, u64)>,
}

impl Index {
    /// Appends the row for a frame to the index. Rows have to be added in file order.
    pub fn add(&mut self, row: &Row) {
        let open = self.0.pop_if(|piece| piece.rows < ROWS);
        let mut piece = open.unwrap_or_else(|| Piece {
            first: row.offset,
            ..Piece::default()
        });
        let header = &row.header;
        piece.rows += 1;
        let out = &mut piece.bytes;
        out.push(header.kind);
        put(out, u64::from(header.stream));
        put(out, row.bytes);
        put(out, row.bytes - header.payload);
        put(out, header.events);
        if header.events > 0 {
            put(out, fold(header.min.wrapping_sub(piece.min) as i64));
            put(out, header.max.wrapping_sub(header.min));
            piece.min = header.min;
            let (min, max) = piece.span.unwrap_or((header.min, header.max));
            piece.span = Some((min.min(header.min), max.max(header.max)));
        }
        put(out, header.seq);
        self.0.push(piece);
    }

    /// Encodes the collected index. Returns the headers and payloads of its frames.
    pub fn frames(&self, packer: &mut Packer) -> std::io::Result<Vec<(Header, Vec<u8>)>> {
        let pack = |piece: &Piece| {
            let mut body = Vec::new();
            put(&mut body, piece.rows);
            put(&mut body, piece.first);
            body.extend_from_slice(&piece.bytes);
            let mut out = Vec::new();
            packer.pack(&[&body], LEVEL, &mut out)?;
            let (min, max) = piece.span.unwrap_or_default();
            let header = Header {
                kind: kind::INDEX,
                events: piece.rows,
                min,
                max,
                ..Header::default()
            };
            Ok((header, out))
        };
        self.0.iter().map(pack).collect()
    }
}

/// The frames of a complete trace that hold the trace's index, found by the trailer at the end of the
/// file.
#[derive(Debug)]
pub struct Frames {
    /// The offset of the first index frame in the file, in bytes.
    pub start: u64,
    /// The headers of the index frames, and the offsets of their payloads in bytes.
    pub frames: Vec<(Header, u64)>,
}

impl Frames {
    /// Reads the trailer of a trace and the headers of the frames that hold its index.
    pub fn read(source: &Source, id: u32) -> Result<Frames, Fault> {
        let none = Fault::Content("there is no index");
        let end = source
            .len()
            .checked_sub(frame::TRAILER)
            .ok_or(none.clone())?;
        let trailer = source
            .at(end, frame::TRAILER)
            .map_err(|error| Fault::Read(error.to_string()))?;
        let start = frame::read_trailer(&trailer, id).ok_or(none)?;
        // Each row describes a frame before the index. So there can be at most as many rows as frames of the smallest
        // size fit before the index.
        let most = limits::FRAMES.min(start / limits::LEAST_FRAME);
        let (mut at, mut frames, mut rows) = (start, Vec::new(), 0u64);
        while at < end {
            let (header, len) = header_at(source, at, id)?;
            let seq = frames.len() as u64;
            if header.kind != kind::INDEX || header.seq != seq || header.events == 0 {
                return Err(Fault::Index);
            }
            rows = rows.saturating_add(header.events);
            within("the number of frames", rows, most)?;
            frames.push((header, at + len));
            at = at.saturating_add(len).saturating_add(header.payload);
        }
        if at != end {
            return Err(Fault::Index);
        }
        Ok(Frames { start, frames })
    }

    /// The last row of the index that describes a frame of this type; `None` if the index has no such row.
    pub fn last(&self, source: &Source, kind: u8) -> Result<Option<Row>, Fault> {
        // The wanted frame is one of the last frames before the index (after the summary, only the second copy of the
        // metadata follows). So the row of this frame is in the last two frames of the index.
        for (header, at) in self.frames.iter().rev().take(2) {
            let payload = payload_at(source, *at, header)?;
            let mut found = None;
            unpacking(|unpacker| {
                let bounds = Bounds {
                    start: None,
                    end: self.start,
                };
                go_through(&payload, 0, bounds, unpacker, |row| {
                    if row.header.kind == kind {
                        found = Some(row);
                    }
                })
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// Decodes one frame of a trace's index and appends its rows to `rows`. The new rows must continue those in `rows`,
/// and the frames that they describe must end at or before the byte `end`, so the length of the file limits the
/// number of rows.
pub fn read(
    payload: &[u8],
    end: u64,
    unpacker: &mut Unpacker,
    rows: &mut Vec<Row>,
) -> Result<(), Fault> {
    let last = rows.last();
    let start = last.map_or(FILE_HEADER, |row| row.offset + row.bytes);
    let bounds = Bounds {
        start: Some(start),
        end,
    };
    let first = rows.len() as u64;
    go_through(payload, first, bounds, unpacker, |row| rows.push(row)).map(|_| ())
}

/// Limits for some rows of the index: the frames that the rows describe must lie between these offsets in the trace
/// file.
pub struct Bounds {
    /// The first frame that the rows describe must begin at this offset in the trace file; `None` if the offset is not
    /// known.
    pub start: Option<u64>,
    /// All frames that the rows of the index describe must end at or before this offset in the trace file.
    pub end: u64,
}

/// Decodes one frame of a trace's index and calls `each` with every row; the rows are numbered from
/// `first`. The frames that the rows describe must be within `bounds`. Returns the range of bytes that
/// these frames cover.
pub fn go_through(
    payload: &[u8],
    first: u64,
    bounds: Bounds,
    unpacker: &mut Unpacker,
    mut each: impl FnMut(Row),
) -> Result<Range<u64>, Fault> {
    let mut cursor = Cursor::new(payload);
    let body = unpacker.unpack(&mut cursor, limits::BODY)?;
    if cursor.left() > 0 {
        return Err(Fault::Content("trailing bytes after the index"));
    }
    let mut body = Cursor::new(body);
    let count = body.int()?;
    within("the number of rows", count, limits::INDEX_ENTRIES)?;
    let start = body.int()?;
    if bounds.start.is_some_and(|expected| start != expected) {
        return Err(Fault::Content("index rows overlap or leave a gap"));
    }
    let (mut offset, mut min) = (start, 0u64);
    for number in first..first.saturating_add(count) {
        let mut header = Header {
            kind: body.byte()?,
            number,
            stream: body.int16()?,
            ..Header::default()
        };
        let bytes = body.int()?;
        let head = body.int()?;
        header.payload = bytes
            .checked_sub(head)
            .filter(|_| bytes >= limits::LEAST_FRAME)
            .ok_or(Fault::Content("a frame is shorter than its header"))?;
        header.events = body.int()?;
        if header.kind == kind::SCHED || header.kind == kind::LIFE {
            within(
                "the number of events",
                header.events,
                limits::SCHED_EVENTS.max(limits::LIFE_EVENTS),
            )?;
        }
        if header.events > 0 {
            header.min = min.wrapping_add(unfold(body.int()?) as u64);
            min = header.min;
            header.max = header
                .min
                .checked_add(body.int()?)
                .ok_or(Fault::Content("a time does not fit in 64 bits"))?;
        }
        header.seq = body.int()?;
        each(Row {
            header,
            offset,
            bytes,
        });
        offset = offset
            .checked_add(bytes)
            .filter(|offset| *offset <= bounds.end)
            .ok_or(Fault::Content("index rows exceed the index"))?;
    }
    match body.left() {
        0 => Ok(start..offset),
        _ => Err(Fault::Content("trailing bytes after the index rows")),
    }
}
