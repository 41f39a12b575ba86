//! Finds the frames of a trace that has no intact index, and what is missing
//! between them.

use std::collections::HashMap;

use memchr::memmem;

use crate::error::within;
use crate::event::{CpuId, Ktime, LifeEvent, LifeKind, LossCause, Lost, Stream};
use crate::frame::{self, address, kind, Header, SYNC};
use crate::index::{self, Row};
use crate::limits;
use crate::meta::Metadata;
use crate::reader::{Damage, End};
use crate::source::Source;
use crate::zip::Unpacker;
use crate::{Error, Fault};

/// Bytes that are searched at once for a frame's beginning.
const PIECE: u64 = 1 << 20;

/// What a scan has found.
#[derive(Debug)]
pub struct Scan {
    /// The intact frames, index frames excepted, in file order.
    pub rows: Vec<Row>,
    /// What is wrong, in file order.
    pub damage: Vec<Damage>,
    /// The events that are missing for it.
    pub gaps: Vec<LifeEvent>,
    /// How the file ends.
    pub end: End,
}

/// Reads the header at `offset`; gives it with its length.
pub fn header_at(source: &Source, offset: u64, id: u32) -> Result<(Header, u64), Fault> {
    let head = source.at(offset, 5 + limits::HEADER).map_err(read_fault)?;
    let (header, len) = Header::decode(&head, id)?;
    Ok((header, len as u64))
}

/// Reads and checks the payload of the frame whose header ends at `offset`.
pub fn payload_at<'a>(
    source: &'a Source,
    offset: u64,
    header: &Header,
) -> Result<std::borrow::Cow<'a, [u8]>, Fault> {
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

/// The first place from `offset` on where `wanted` accepts the header.
fn search(
    source: &Source,
    mut offset: u64,
    id: u32,
    wanted: impl Fn(&Header) -> bool,
) -> Result<Option<u64>, Error> {
    let finder = memmem::Finder::new(&SYNC);
    while offset < source.len() {
        // Pieces overlap, so that no header is cut in two.
        let piece = source.at(offset, PIECE + 5 + limits::HEADER)?;
        for at in finder.find_iter(&piece) {
            if at as u64 >= PIECE {
                break;
            }
            let header = Header::decode(piece.get(at..).unwrap_or_default(), id);
            if matches!(header, Ok((header, _)) if wanted(&header)) {
                return Ok(Some(offset + at as u64));
            }
        }
        offset += PIECE;
    }
    Ok(None)
}

/// Looks everywhere for an intact copy of the metadata's payload.
pub fn find_metadata(source: &Source) -> Result<Option<Vec<u8>>, Error> {
    let mut from = frame::FILE_HEADER;
    let mut in_vain = 0;
    while let Some(at) = search(source, from, 0, |header| header.kind == kind::METADATA)? {
        if let Ok((header, len)) = header_at(source, at, 0) {
            if let Ok(payload) = payload_at(source, at + len, &header) {
                return Ok(Some(payload.into_owned()));
            }
            in_vain += header.payload;
            if in_vain > source.len().saturating_add(limits::IN_VAIN) {
                return Ok(None);
            }
        }
        from = at + 1;
    }
    Ok(None)
}

/// Follows the frames from the first to the end of the file.
pub fn scan(source: &Source, id: u32, meta: &Metadata) -> Result<Scan, Error> {
    let mut walk = Walk {
        source,
        id,
        rows: Vec::new(),
        damage: Vec::new(),
        torn: Vec::new(),
        index: Vec::new(),
        next: 0,
        indexes: 0,
        before_index: None,
        in_vain: 0,
    };
    let end = walk.run()?;
    let gaps = walk.gaps(meta);
    Ok(Scan {
        rows: walk.rows,
        damage: walk.damage,
        gaps,
        end,
    })
}

struct Walk<'a> {
    source: &'a Source,
    id: u32,
    rows: Vec<Row>,
    damage: Vec<Damage>,
    /// Frames whose header is intact and whose payload is not.
    torn: Vec<Header>,
    /// What the intact index frames say.
    index: Vec<Row>,
    /// The number that the next frame should have.
    next: u64,
    /// Index frames met, intact and in sequence.
    indexes: u64,
    /// How many frames there are before the index, as one of its frames tells.
    before_index: Option<u64>,
    /// Bytes of payloads that were read in vain and will be read again.
    in_vain: u64,
}

/// Where to go on.
enum Go {
    To(u64),
    End(End),
}

impl Walk<'_> {
    fn run(&mut self) -> Result<End, Error> {
        let mut at = frame::FILE_HEADER;
        loop {
            match self.step(at)? {
                Go::To(next) => at = next,
                Go::End(end) => return Ok(end),
            }
            let (frames, damages) = (self.rows.len() as u64, self.damage.len() as u64);
            within("the number of frames", frames, limits::FRAMES)
                .and_then(|()| within("the number of damaged frames", damages, limits::DAMAGES))
                .map_err(|fault| fault.at(self.next, at))?;
        }
    }

    fn step(&mut self, at: u64) -> Result<Go, Error> {
        let left = self.source.len().saturating_sub(at);
        if left == frame::TRAILER {
            let bytes = self.source.at(at, left)?;
            if frame::read_trailer(&bytes, self.id).is_some() {
                return Ok(Go::End(End::Complete));
            }
        }
        if left == 0 {
            return Ok(Go::End(self.cut(at, "there is no index".into())));
        }
        let (header, len) = match header_at(self.source, at, self.id) {
            Ok(found) => found,
            Err(Fault::Read(why)) => return Err(Fault::Read(why).at(self.next, at)),
            Err(fault) => return self.lost_way(at, at + 1, fault, None),
        };
        if header.number < self.next {
            let fault = Fault::Order {
                found: header.number,
                after: self.next.saturating_sub(1),
            };
            return self.lost_way(at, at + len, fault, None);
        }
        if header.number > self.next && !self.last_damage_ends(at) {
            let fault = Fault::Missing(header.number - self.next);
            self.damaged(at, 0, fault, None);
        }
        let end = at + len + header.payload;
        match payload_at(self.source, at + len, &header) {
            Ok(payload) => {
                self.intact(at, header, len, &payload);
                Ok(Go::To(end))
            }
            Err(Fault::Read(why)) => Err(Fault::Read(why).at(header.number, at)),
            Err(fault @ Fault::Short { .. }) => self.lost_way(at, at + len, fault, Some(header)),
            Err(fault) => {
                // A part of the file may be missing here: then the next frame
                // begins sooner. To look for it each time in a file made for
                // that would take forever.
                if self.in_vain <= self.source.len() + limits::IN_VAIN && !self.fits(end) {
                    self.in_vain += header.payload;
                    return self.lost_way(at, at + len, fault, Some(header));
                }
                self.torn(at, len + header.payload, fault, header);
                Ok(Go::To(end))
            }
        }
    }

    /// Whether a frame, the trailer or the end of the file is at `at`.
    fn fits(&self, at: u64) -> bool {
        let left = self.source.len().saturating_sub(at);
        left == 0 || left == frame::TRAILER || header_at(self.source, at, self.id).is_ok()
    }

    fn intact(&mut self, at: u64, header: Header, len: u64, payload: &[u8]) {
        self.next = header.number + 1;
        if header.kind != kind::INDEX {
            let bytes = len + header.payload;
            self.rows.push(Row {
                header,
                offset: at,
                bytes,
            });
            return;
        }
        self.before_index = header.number.checked_sub(header.seq);
        if header.seq == self.indexes {
            let mut rows = std::mem::take(&mut self.index);
            // Parts of the file may be missing before it, which the index tells.
            let end = at.saturating_mul(4);
            let read = Unpacker::new()
                .map_err(|e| Fault::Decompress(e.to_string()))
                .and_then(|mut unpacker| index::read(payload, end, &mut unpacker, &mut rows));
            match read {
                Ok(()) => {
                    self.index = rows;
                    self.indexes += 1;
                }
                Err(fault) => self.damaged(at, len + header.payload, fault, None),
            }
        }
    }

    fn torn(&mut self, at: u64, bytes: u64, fault: Fault, header: Header) {
        self.damaged(at, bytes, fault, Some(&header));
        self.torn.push(header);
        self.next = header.number + 1;
    }

    fn damaged(&mut self, at: u64, bytes: u64, fault: Fault, header: Option<&Header>) {
        self.damage.push(Damage {
            frame: header.map_or(self.next, |header| header.number),
            offset: at,
            bytes,
            what: fault,
            stream: header.and_then(Header::stream),
        });
    }

    fn last_damage_ends(&self, at: u64) -> bool {
        let last = self.damage.last();
        last.is_some_and(|damage| damage.bytes > 0 && damage.offset + damage.bytes == at)
    }

    /// No whole frame is at `at`: looks for the next one from `from` on.
    fn lost_way(
        &mut self,
        at: u64,
        from: u64,
        fault: Fault,
        header: Option<Header>,
    ) -> Result<Go, Error> {
        let least = header.map_or(self.next, |header| header.number + 1);
        let found = search(self.source, from, self.id, |found| found.number >= least)?;
        let trailer = self.source.len().checked_sub(frame::TRAILER);
        let found = found.or(trailer.filter(|trailer| {
            *trailer >= from
                && self
                    .source
                    .at(*trailer, frame::TRAILER)
                    .is_ok_and(|bytes| frame::read_trailer(&bytes, self.id).is_some())
        }));
        match (found, header) {
            (Some(next), Some(header)) => {
                self.torn(at, next - at, fault, header);
                Ok(Go::To(next))
            }
            (Some(next), None) => {
                self.damaged(at, next - at, fault, None);
                Ok(Go::To(next))
            }
            (None, header) => {
                if let Some(header) = header {
                    self.next = header.number;
                }
                Ok(Go::End(self.cut(at, fault.to_string())))
            }
        }
    }

    fn cut(&self, offset: u64, why: String) -> End {
        End::Truncated {
            frame: self.next,
            offset,
            why,
        }
    }

    /// The events that are missing, by stream.
    fn gaps(&self, meta: &Metadata) -> Vec<LifeEvent> {
        let mut gaps = Vec::new();
        // One that is damaged tells only of some frames.
        let whole = self.before_index == Some(self.index.len() as u64);
        if whole && index_fits(&self.index) {
            self.gaps_by_index(&mut gaps);
        } else {
            self.gaps_by_sequence(meta, &mut gaps);
        }
        gaps.sort_by_key(|gap: &LifeEvent| gap.time);
        gaps
    }

    /// The index tells exactly what should have been there.
    fn gaps_by_index(&self, gaps: &mut Vec<LifeEvent>) {
        let there: std::collections::HashSet<u64> =
            self.rows.iter().map(|row| row.header.number).collect();
        let missing = |row: &&Row| !there.contains(&row.header.number);
        let headers = self.index.iter().filter(missing).map(|row| &row.header);
        gaps.extend(headers.filter_map(gap_of));
    }

    /// Frames are numbered in the file and in their stream: a step of more than
    /// one tells what is missing before a frame.
    fn gaps_by_sequence(&self, meta: &Metadata, gaps: &mut Vec<LifeEvent>) {
        gaps.extend(self.torn.iter().filter_map(gap_of));
        let mut known: Vec<&Header> = self.rows.iter().map(|row| &row.header).collect();
        known.extend(&self.torn);
        known.sort_by_key(|header| header.number);
        let mut missing = 0;
        let mut next = 0;
        let mut streams: HashMap<(u8, u16), &Header> = HashMap::new();
        let end = known.iter().map(|header| header.max).max().unwrap_or(0);
        for header in known {
            missing += header.number.saturating_sub(next);
            next = header.number + 1;
            let before = streams.insert((header.kind, header.stream), header);
            let skipped = header
                .seq
                .saturating_sub(before.map_or(0, |before| before.seq + 1));
            missing = missing.saturating_sub(skipped);
            if let (1.., Some(stream)) = (skipped, header.stream()) {
                let since = before.map_or(meta.start.0, |before| before.max);
                gaps.push(gap(stream, since.min(header.min), header.min, None));
            }
        }
        if missing == 0 {
            return;
        }
        // Frames are missing that no later frame of their stream tells of: any
        // stream may have lost its last ones.
        let cpus = meta.cpus.iter().map(|cpu| Stream::Cpu(*cpu));
        let mut ends: Vec<Stream> = cpus.collect();
        ends.extend([Stream::Lifecycle, Stream::Recorder]);
        let seen = streams.keys().filter(|(kind, _)| *kind == kind::SCHED);
        ends.extend(seen.map(|(_, cpu)| Stream::Cpu(CpuId(*cpu))));
        ends.sort_unstable();
        ends.dedup();
        for stream in ends {
            let since = streams
                .get(&address(stream))
                .map_or(meta.start.0, |last| last.max);
            gaps.push(gap(stream, since.min(end), end, None));
        }
    }
}

/// Whether rows follow each other without a hole from the first frame on, in
/// the file and in each stream.
pub fn index_fits(rows: &[Row]) -> bool {
    let mut offset = frame::FILE_HEADER;
    let mut seqs: HashMap<(u8, u16), u64> = HashMap::new();
    let fits = rows.iter().all(|row| {
        let seq = seqs
            .entry((row.header.kind, row.header.stream))
            .or_default();
        let fits = row.offset == offset && row.header.seq == *seq;
        *seq += 1;
        offset = row.offset.saturating_add(row.bytes);
        fits
    });
    fits && !rows.is_empty()
}

/// The loss that stands for a frame; `None` when it is no event frame.
pub fn gap_of(header: &Header) -> Option<LifeEvent> {
    let stream = header.stream()?;
    Some(gap(stream, header.min, header.max, Some(header.events)))
}

/// A loss by damage.
pub fn gap(stream: Stream, since: u64, until: u64, count: Option<u64>) -> LifeEvent {
    LifeEvent {
        time: Ktime(since),
        cpu: None,
        kind: LifeKind::Lost(Lost {
            stream,
            count,
            until: Ktime(until),
            cause: LossCause::Damage,
        }),
    }
}
