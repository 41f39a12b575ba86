//! Builds traces by hand, for the fuzz targets and for tests that need traces that the writer cannot write.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
#![allow(dead_code)] // Each user needs some of it.

use tr_format::frame::{kind, Header};
use tr_format::mask::Masked;
use tr_format::meta::Metadata;
use tr_format::writer::Writer;

pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The body of a frame as it is stored if it is not compressed: its length, twice, and its bytes.
pub fn stored(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, body.len() as u64);
    varint(&mut out, body.len() as u64);
    out.extend_from_slice(body);
    out
}

/// The beginning of a trace (the file header and empty metadata), and the id of the trace.
pub fn begin() -> (Vec<u8>, u32) {
    let mut out = Vec::new();
    Writer::new(&mut out, &Masked::trusted(Metadata::default())).unwrap();
    let id = id(&out);
    (out, id)
}

/// The id of a trace, which is the checksum of its metadata.
pub fn id(bytes: &[u8]) -> u32 {
    let (header, len) = Header::decode(&bytes[16..], 0).unwrap();
    crc32fast::hash(&bytes[16 + len..][..header.payload as usize])
}

/// Appends a frame, and sets the length and the checksum of its payload in the header.
pub fn add(out: &mut Vec<u8>, id: u32, header: Header, payload: &[u8]) {
    let header = Header {
        payload: payload.len() as u64,
        crc: crc32fast::hash(payload),
        ..header
    };
    header.encode(id, out);
    out.extend_from_slice(payload);
}

/// The body of a lifecycle frame with these columns, given by number. All other columns are empty.
pub fn columns(columns: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let count = columns.iter().map(|(at, _)| at + 1).max().unwrap_or(0);
    let column = |at: usize| {
        columns
            .iter()
            .find(|(known, _)| *known == at)
            .map(|(_, bytes)| bytes)
    };
    let mut out = Vec::new();
    varint(&mut out, count as u64);
    for at in 0..count {
        varint(&mut out, column(at).map_or(0, Vec::len) as u64);
    }
    (0..count)
        .filter_map(column)
        .for_each(|bytes| out.extend_from_slice(bytes));
    out
}

/// A header for a frame of this kind with this number.
fn numbered(kind: u8, number: u64) -> Header {
    Header {
        kind,
        number,
        ..Header::default()
    }
}

/// Appends a field of the metadata or of the summary.
fn field(out: &mut Vec<u8>, tag: u64, value: &[u8]) {
    varint(out, tag);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends a summary without losses as the frame with this number.
pub fn summary(out: &mut Vec<u8>, id: u32, number: u64) {
    let mut body = Vec::new();
    field(&mut body, 1, &[251, 0xe8, 0x03]);
    field(&mut body, 8, &[&[15], &[0; 15][..]].concat());
    add(out, id, numbered(kind::SUMMARY, number), &stored(&body));
}

/// Completes a trace of these frames with a summary without losses, an index and a trailer.
pub fn end(mut out: Vec<u8>, id: u32) -> Vec<u8> {
    let mut rows: Vec<(Header, usize)> = Vec::new();
    let mut at = 16;
    while let Ok((header, len)) =
        Header::decode(&out[at..], id).or_else(|_| Header::decode(&out[at..], 0))
    {
        rows.push((header, len));
        at += len + header.payload as usize;
    }
    let before = out.len();
    summary(&mut out, id, rows.len() as u64);
    let (header, len) = Header::decode(&out[before..], id).unwrap();
    rows.push((header, len));

    let mut index = Vec::new();
    varint(&mut index, rows.len() as u64);
    varint(&mut index, 16);
    let mut last = 0;
    for (header, len) in &rows {
        index.push(header.kind);
        varint(&mut index, u64::from(header.stream));
        varint(&mut index, *len as u64 + header.payload);
        varint(&mut index, *len as u64);
        varint(&mut index, header.events);
        if header.events > 0 {
            let step = header.min.wrapping_sub(last) as i64;
            varint(&mut index, ((step << 1) ^ (step >> 63)) as u64);
            varint(&mut index, header.max - header.min);
            last = header.min;
        }
        varint(&mut index, header.seq);
    }
    let start = out.len() as u64;
    let header = Header {
        events: rows.len() as u64,
        ..numbered(kind::INDEX, rows.len() as u64)
    };
    add(&mut out, id, header, &stored(&index));
    trailer(&mut out, id, start);
    out
}

/// Appends the trailer of a trace whose index begins at the byte `index`.
pub fn trailer(out: &mut Vec<u8>, id: u32, index: u64) {
    let at = index.to_le_bytes();
    let mut sum = crc32fast::Hasher::new();
    sum.update(&id.to_le_bytes());
    sum.update(&at);
    out.extend_from_slice(&at);
    out.extend_from_slice(&sum.finalize().to_le_bytes());
    out.extend_from_slice(b"ecrt");
}

/// A trace of minor version 9 with one addition of every kind: a field of the metadata and of the summary, a type of
/// frame, a column, a kind of event, and a field of a frame's header. A reader does not know one frame, one event and
/// three fields; it knows one event and the end time, 1000.
pub fn later() -> Vec<u8> {
    let mut out = begin().0[..16].to_vec();
    out[10] = 9;
    let sum = crc32fast::hash(&out[..12]);
    out[12..16].copy_from_slice(&sum.to_le_bytes());
    let mut body = Vec::new();
    field(&mut body, 200, b"of the metadata");
    let payload = stored(&body);
    let id = crc32fast::hash(&payload);
    add(&mut out, 0, numbered(kind::METADATA, 0), &payload);
    add(&mut out, id, numbered(77, 1), b"a frame");

    // The event kinds are a watermark (11) and the unknown kind 99, both at the frame's smallest time and on no CPU.
    let body = columns(&[
        (0, vec![11, 99]),
        (1, vec![0, 0]),
        (2, vec![0, 0]),
        (900, b"a column".to_vec()),
    ]);
    let payload = stored(&body);
    let header = Header {
        events: 2,
        min: 500,
        max: 500,
        payload: payload.len() as u64,
        crc: crc32fast::hash(&payload),
        ..numbered(kind::LIFE, 2)
    };
    let mut bytes = Vec::new();
    header.encode(id, &mut bytes);
    // The byte after the magic number is the header's length, and the last four bytes are its checksum, so both change.
    bytes.truncate(bytes.len() - 4);
    bytes[4] += 3;
    bytes.extend_from_slice(b"new");
    let mut sum = crc32fast::Hasher::new();
    sum.update(&id.to_le_bytes());
    sum.update(&bytes);
    bytes.extend_from_slice(&sum.finalize().to_le_bytes());
    out.extend_from_slice(&bytes);
    out.extend_from_slice(&payload);

    let mut body = Vec::new();
    // The bytes are an integer below 2^16 as bincode encodes it.
    field(&mut body, 1, &[251, 0xe8, 0x03]);
    field(&mut body, 201, b"of the summary");
    let header = Header {
        min: 1000,
        max: 1000,
        ..numbered(kind::SUMMARY, 3)
    };
    add(&mut out, id, header, &stored(&body));
    out
}
