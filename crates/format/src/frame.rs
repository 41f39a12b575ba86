//! The headers of a trace's frames, the header of the trace file, and the trailer at its end.

use std::borrow::Cow;

use crate::error::within;
use crate::event::{CpuId, Ktime, Stream};
use crate::limits;
use crate::source::Source;
use crate::varint::{put, Cursor};
use crate::Fault;

/// The magic number with which every trace begins.
pub const MAGIC: [u8; 8] = *b"\x89tr\xb5\r\n\x1a\n";
/// The major version of the trace format. A reader refuses a trace of another major version.
pub const MAJOR: u16 = 3;
/// The minor version of the trace format that this crate writes. A reader skips unknown parts of a higher minor
/// version.
pub const MINOR: u16 = 10;
/// The length of the header of a trace file in bytes: magic number, major and minor version, CRC-32 of these twelve
/// bytes.
pub const FILE_HEADER: u64 = 16;
/// The bytes with which every frame of a trace begins. After damage, a reader searches for them.
pub const SYNC: [u8; 4] = [0xf7, 0x74, 0x72, 0xb1];
/// The magic number that is the last four bytes of a complete trace.
pub const TRAILER_MAGIC: [u8; 4] = *b"ecrt";
/// The length of the trailer at the end of a trace in bytes: offset of the index (8), CRC-32 of the offset (4),
/// magic number (4).
pub const TRAILER: u64 = 16;

/// The types of frames in a trace. Their numbers never change.
pub mod kind {
    /// The frame type of the metadata, which is written first, and once more before the index.
    pub const METADATA: u8 = 1;
    /// The frame type of scheduling events of one CPU.
    pub const SCHED: u8 = 2;
    /// The frame type of lifecycle events (stream 0) and of the recorder's own events (stream 1).
    pub const LIFE: u8 = 3;
    /// The frame type of the summary of the recording.
    pub const SUMMARY: u8 = 4;
    /// The frame type of the index of the trace. A long index has several frames.
    pub const INDEX: u8 = 5;
    /// The type of the frame that says how the original trace ended. Only a trace made by `tr recover` has such a
    /// frame.
    pub const CUT: u8 = 6;
}

/// The header of a frame of a trace. A frame can be read alone, because its payload refers to no other frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The type of the frame, one of the numbers in [`kind`].
    pub kind: u8,
    /// The number of the frame in the file, counted from 0.
    pub number: u64,
    /// The number of the stream whose events the frame holds: the CPU's number for scheduling events, otherwise 0
    /// for lifecycle events and 1 for the recorder's events.
    pub stream: u16,
    /// The number of the frame among the frames with the same type and the same stream number, counted from 0.
    pub seq: u64,
    /// The length of the frame's payload in bytes.
    pub payload: u64,
    /// The number of events in the frame or, if it belongs to the index, of rows.
    pub events: u64,
    /// The smallest time of the frame's events in ns. In the summary's frame, it is the time of the recording's end;
    /// in a frame of the index, the smallest time of an event of the described frames; otherwise 0.
    pub min: u64,
    /// The largest time of the frame's events in ns; in other frames as for `min`.
    pub max: u64,
    /// The checksum (CRC-32) of the frame's payload.
    pub crc: u32,
}

impl Header {
    /// Appends the encoded header of a frame to `out`. `id` is the id of the trace to which the frame belongs.
    pub fn encode(&self, id: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&SYNC);
        out.push(0);
        let body = out.len();
        out.push(self.kind);
        put(out, self.number);
        put(out, u64::from(self.stream));
        put(out, self.seq);
        put(out, self.payload);
        put(out, self.events);
        put(out, self.min);
        put(out, self.max.wrapping_sub(self.min));
        out.extend_from_slice(&self.crc.to_le_bytes());
        let len = out.len() - body + 4;
        if let Some(place) = out.get_mut(body - 1) {
            *place = len as u8;
        }
        let sum = salted(self.salt(id), out.get(start..).unwrap_or_default());
        out.extend_from_slice(&sum.to_le_bytes());
    }

    /// Decodes the header of a frame of the trace with the id `id` from the start of `bytes`. Also returns the
    /// length of the header in bytes.
    ///
    /// # Errors
    /// There is no intact header, or the header exceeds a limit.
    pub fn decode(bytes: &[u8], id: u32) -> Result<(Header, usize), Fault> {
        let mut cursor = Cursor::new(bytes);
        let short = |needed: usize| Fault::Short {
            needed: needed as u64,
            left: bytes.len() as u64,
        };
        let is_prefix = SYNC.starts_with(bytes);
        let missing = if is_prefix { short(5) } else { Fault::Sync };
        let sync = cursor.take(4).map_err(|_| missing)?;
        if sync != SYNC {
            return Err(Fault::Sync);
        }
        let len = usize::from(cursor.byte().map_err(|_| short(5))?);
        let whole = 5 + len;
        let content = cursor.take(len as u64).map_err(|_| short(whole))?;
        let (fields, stored) = content
            .split_last_chunk::<4>()
            .ok_or(Fault::Content("the header is too short"))?;
        let expected = u32::from_le_bytes(*stored);
        let kind = *fields
            .first()
            .ok_or(Fault::Content("the header is too short"))?;
        let mut header = Header {
            kind,
            ..Header::default()
        };
        let summed = bytes.get(..whole - 4).unwrap_or_default();
        let found = salted(header.salt(id), summed);
        if found != expected {
            return Err(Fault::Checksum {
                part: "header",
                found,
                expected,
            });
        }
        let mut fields = Cursor::new(fields);
        fields.byte()?;
        header.number = fields.int()?;
        header.stream = fields.int16()?;
        header.seq = fields.int()?;
        header.payload = fields.int()?;
        header.events = fields.int()?;
        header.min = fields.int()?;
        header.max = header
            .min
            .checked_add(fields.int()?)
            .ok_or(Fault::Content("the largest time does not fit in 64 bits"))?;
        header.crc = fields.word()?;
        within("the frame's number", header.number, limits::FRAMES)?;
        within("the frame's sequence", header.seq, limits::FRAMES)?;
        within("the payload's length", header.payload, limits::PAYLOAD)?;
        match kind {
            kind::SCHED => within("the number of events", header.events, limits::SCHED_EVENTS)?,
            kind::LIFE => within("the number of events", header.events, limits::LIFE_EVENTS)?,
            _ => {}
        }
        Ok((header, whole))
    }

    /// The stream of events that the frame holds; `None` if the frame holds no events.
    pub fn stream(&self) -> Option<Stream> {
        match (self.kind, self.stream) {
            (kind::SCHED, cpu) => Some(Stream::Cpu(CpuId(cpu))),
            (kind::LIFE, 0) => Some(Stream::Lifecycle),
            (kind::LIFE, 1) => Some(Stream::Recorder),
            _ => None,
        }
    }

    /// Verifies that the payload of a frame has the checksum that is stored in this header.
    ///
    /// # Errors
    /// [`Fault::Checksum`] if the checksum differs.
    pub fn check(&self, payload: &[u8]) -> Result<(), Fault> {
        let found = crc32fast::hash(payload);
        if found != self.crc {
            return Err(Fault::Checksum {
                part: "payload",
                found,
                expected: self.crc,
            });
        }
        Ok(())
    }

    /// The trace id that goes into the checksum of this frame header. It is 0 for the frame of the metadata,
    /// because the id of a trace is derived from its metadata.
    fn salt(&self, id: u32) -> u32 {
        match self.kind {
            kind::METADATA => 0,
            _ => id,
        }
    }
}

/// Reads the header of the frame at the byte `offset` of the trace with the id `id`. Also returns the length of the
/// header in bytes.
pub(crate) fn header_at(source: &Source, offset: u64, id: u32) -> Result<(Header, u64), Fault> {
    let head = source.at(offset, 5 + limits::HEADER).map_err(read_fault)?;
    let (header, len) = Header::decode(&head, id)?;
    Ok((header, len as u64))
}

/// Reads the frame at the byte `offset` of the trace with the id `id`, and verifies the checksums of header and
/// payload. Returns both.
pub(crate) fn frame_at(
    source: &Source,
    offset: u64,
    id: u32,
) -> Result<(Header, Cow<'_, [u8]>), Fault> {
    let (header, len) = header_at(source, offset, id)?;
    let payload = payload_at(source, offset + len, &header)?;
    Ok((header, payload))
}

/// Reads the payload of a frame, which begins at the byte `offset`, and verifies it by the checksum in the frame's
/// header.
pub(crate) fn payload_at<'a>(
    source: &'a Source,
    offset: u64,
    header: &Header,
) -> Result<Cow<'a, [u8]>, Fault> {
    let left = source.len().saturating_sub(offset);
    if header.payload > left {
        return Err(Fault::Short {
            needed: header.payload,
            left,
        });
    }
    let payload = source.at(offset, header.payload).map_err(read_fault)?;
    header.check(&payload)?;
    Ok(payload)
}

fn read_fault(error: std::io::Error) -> Fault {
    Fault::Read(error.to_string())
}

/// The type of frame and the stream number under which a trace stores the events of this stream.
pub(crate) fn address(stream: Stream) -> (u8, u16) {
    match stream {
        Stream::Cpu(CpuId(cpu)) => (kind::SCHED, cpu),
        Stream::Lifecycle => (kind::LIFE, 0),
        Stream::Recorder => (kind::LIFE, 1),
    }
}

/// The CRC-32 of a trace's id (little-endian) followed by some bytes. Because of the id, frames of another trace
/// are detected.
fn salted(id: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&id.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// The encoded header of a trace file.
pub(crate) fn file_header() -> Vec<u8> {
    let mut out = [&MAGIC[..], &MAJOR.to_le_bytes(), &MINOR.to_le_bytes()].concat();
    let sum = crc32fast::hash(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// The encoded trailer of the trace with the id `id`, whose index begins at the byte `offset`.
pub(crate) fn trailer(offset: u64, id: u32) -> Vec<u8> {
    let mut out = offset.to_le_bytes().to_vec();
    out.extend_from_slice(&salted(id, &offset.to_le_bytes()).to_le_bytes());
    out.extend_from_slice(&TRAILER_MAGIC);
    out
}

/// The offset of the index that the trailer of a trace contains; `None` if `bytes` are no intact trailer of the
/// trace with the id `id`.
pub(crate) fn read_trailer(bytes: &[u8], id: u32) -> Option<u64> {
    let mut cursor = Cursor::new(bytes);
    let offset = cursor.take(8).ok()?;
    let sum = cursor.word().ok()?;
    if cursor.rest() != TRAILER_MAGIC || sum != salted(id, offset) {
        return None;
    }
    Some(u64::from_le_bytes(offset.try_into().ok()?))
}

/// The smallest and the largest time of a group of events, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub min: u64,
    pub max: u64,
}

impl Span {
    /// The span of times of a group that has no events.
    pub const EMPTY: Span = Span {
        min: u64::MAX,
        max: 0,
    };

    pub fn of(times: impl Iterator<Item = u64>) -> Span {
        times.fold(Span::EMPTY, |mut span, time| {
            span.extend(time);
            span
        })
    }

    #[inline(always)]
    pub fn extend(&mut self, time: u64) {
        self.min = self.min.min(time);
        self.max = self.max.max(time);
    }
}

impl FrameInfo {
    pub(crate) fn times(&self) -> Span {
        Span {
            min: self.min.0,
            max: self.max.0,
        }
    }
}

/// The position of a frame with events in a trace, and the number and the times of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameInfo {
    /// The number of the frame in the file, counted from 0.
    pub number: u64,
    /// The stream of events (of a CPU, for example) that the frame belongs to.
    pub stream: Stream,
    /// The number of the frame among the frames of its stream (of one CPU, for example), counted from 0.
    pub seq: u64,
    /// The offset of the frame in the file, in bytes.
    pub offset: u64,
    /// The length of the whole frame in bytes, including its header.
    pub bytes: u64,
    /// The number of events that the frame holds.
    pub events: u64,
    /// The smallest time of an event in the frame.
    pub min: Ktime,
    /// The largest time of an event in the frame.
    pub max: Ktime,
}

#[cfg(test)]
#[path = "tests/frame.rs"]
mod tests;
