//! Walks over the frames of a trace. The walk verifies both checksums of each frame. Where a frame is damaged, the walk
//! searches for the next intact frame and derives which events are lost.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow::{self, Break, Continue};

use memchr::memmem;

use crate::error::within;
use crate::event::{CpuId, Ktime, LifeEvent, LifeKind, LossCause, Lost, Stream};
use crate::frame::{self, address, frame_at, header_at, kind, payload_at, Header, SYNC};
use crate::index::{self, Row};
use crate::limits;
use crate::meta::Metadata;
use crate::section;
use crate::source::Source;
use crate::varint::Cursor;
use crate::zip::unpacking;
use crate::{Error, Fault};

/// The way in which a trace file ends: completely, or truncated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The trailer at the end of the trace is intact: the recording was finished.
    Complete,
    /// The trailer at the end of the trace is missing: the recorder was killed, the disk was full, or the file was
    /// truncated.
    Truncated {
        /// The number of the first frame that is missing in the truncated trace.
        frame: u64,
        /// The offset in bytes at which the last whole frame of the trace ends.
        offset: u64,
        /// The reason why no whole frame follows the byte `offset`, as text.
        why: String,
    },
}

/// A damaged part of a trace file: where it is, and how it is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The number of the damaged frame: the number in its header or, if the header is damaged, the expected number.
    pub frame: u64,
    /// The offset in the file at which the damaged frame begins or, if frames are missing, the frame after them.
    pub offset: u64,
    /// The number of bytes of the trace that cannot be used because of the damage.
    pub bytes: u64,
    /// The way in which the frame of the trace is damaged.
    pub what: Fault,
    /// The stream of events that the damaged frame belongs to, if the frame's header is intact.
    pub stream: Option<Stream>,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "frame {} at byte {}: {}",
            self.frame, self.offset, self.what
        )
    }
}

/// The start of a trace file: the file header and the metadata.
#[derive(Debug)]
pub struct Start {
    /// The minor version of the format in which the trace was written.
    pub minor: u16,
    /// The id of the trace, which goes into the checksums of its frames.
    pub id: u32,
    /// The metadata of the trace, from its first copy, or from the second if the first is damaged.
    pub meta: Metadata,
    /// The number of fields of the metadata that this version does not know.
    pub unknown_fields: u64,
    /// The damage of the trace's file header. Damage of the metadata is found later, by the walk over the frames.
    pub damage: Option<Damage>,
    /// Whether both the file header and the first copy of the metadata are undamaged.
    pub intact: bool,
}

impl Start {
    pub fn read(source: &Source) -> Result<Start, Error> {
        let (minor, damage) = file_header(source)?;
        let first = metadata_at(source, frame::FILE_HEADER);
        let intact = first.is_ok() && damage.is_none();
        let payload = match first {
            Ok(payload) => payload,
            Err(_) if damage.is_some() => return Err(not_a_trace(source)?),
            Err(fault) => find_metadata(source)?.ok_or(fault.at(0, frame::FILE_HEADER))?,
        };
        let (meta, unknown_fields) =
            section::unpack(&payload).map_err(|fault| fault.at(0, frame::FILE_HEADER))?;
        Ok(Start {
            minor,
            id: crc32fast::hash(&payload),
            meta,
            unknown_fields,
            damage,
            intact,
        })
    }
}

/// Verifies the file header of a trace. Returns the minor version of the format, and the damage of the header, if
/// there is any.
fn file_header(source: &Source) -> Result<(u16, Option<Damage>), Error> {
    let head = source.at(0, frame::FILE_HEADER)?;
    let good = frame::file_header();
    if (head.len() as u64) < frame::FILE_HEADER {
        if head.is_empty() || !good.starts_with(&head) {
            return Err(not_a_trace(source)?);
        }
        let fault = Fault::Short {
            needed: frame::FILE_HEADER,
            left: head.len() as u64,
        };
        return Err(fault.at(0, 0));
    }
    let mut cursor = Cursor::new(&head);
    let broken = |fault: Fault| fault.at(0, 0);
    let magic = cursor.take(8).map_err(broken)?;
    let version = cursor.word().map_err(broken)?;
    let expected = cursor.word().map_err(broken)?;
    let found = crc32fast::hash(head.get(..12).unwrap_or_default());
    let (major, minor) = (version as u16, (version >> 16) as u16);
    if magic != frame::MAGIC || found != expected {
        let damage = Damage {
            frame: 0,
            offset: 0,
            bytes: frame::FILE_HEADER,
            what: Fault::Checksum {
                part: "file header",
                found,
                expected,
            },
            stream: None,
        };
        return Ok((frame::MINOR, Some(damage)));
    }
    if major != frame::MAJOR {
        return Err(Error::Version {
            found: major,
            supported: frame::MAJOR,
        });
    }
    Ok((minor, None))
}

fn not_a_trace(source: &Source) -> Result<Error, Error> {
    Ok(Error::NotATrace {
        found: source.at(0, 8)?.into_owned(),
        expected: frame::MAGIC,
    })
}

/// Reads the payload of the frame with the metadata, which begins at the byte `offset`.
fn metadata_at(source: &Source, offset: u64) -> Result<Vec<u8>, Fault> {
    let (header, payload) = frame_at(source, offset, 0)?;
    if header.kind != kind::METADATA {
        return Err(Fault::Content("the first frame is not the metadata"));
    }
    Ok(payload.into_owned())
}

/// The number of bytes that one step of a search for an intact frame reads.
const PIECE: u64 = 1 << 20;

/// The result of walking over all frames of a trace.
#[derive(Debug)]
pub struct WalkResult {
    /// The intact frames of the trace, without the frames of its index, in file order.
    pub rows: Vec<Row>,
    /// The damaged parts of the trace, in file order.
    pub damage: Vec<Damage>,
    /// The losses of events that the damaged parts of the trace have caused, in the order of time.
    pub gaps: Vec<LifeEvent>,
    /// How the trace file ends: completely, or truncated.
    pub end: End,
    /// The number of the first row of the trace's index that is wrong; `None` if all rows are right, or if the file
    /// is damaged or incomplete.
    pub index_lies: Option<u64>,
}

/// The offset in the file of the first intact frame header, at or after `offset`, that the function `wanted`
/// accepts.
fn search(
    source: &Source,
    mut offset: u64,
    id: u32,
    wanted: impl Fn(&Header) -> bool,
) -> Result<Option<u64>, Error> {
    let finder = memmem::Finder::new(&SYNC);
    while offset < source.len() {
        // The searched pieces of the file overlap, so that no frame header is cut in two.
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

/// Searches a trace for an intact copy of the metadata, and returns the payload of that frame.
fn find_metadata(source: &Source) -> Result<Option<Vec<u8>>, Error> {
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

/// Walks over all frames of a trace, from the first to the end of the file.
///
/// The index is not used for this. Both checksums of every frame must be verified before the analysis, because a loss
/// has to be known before the events around it are read. Verifying a byte takes about 0.1 ns, one hundredth of the
/// time for decoding it. An index would not make the verification faster.
pub fn walk(source: &Source, id: u32, meta: &Metadata) -> Result<WalkResult, Error> {
    let mut walk = Walk::new(source, id, 0);
    let end = walk.run(frame::FILE_HEADER)?;
    Ok(WalkResult {
        gaps: walk.gaps(meta),
        index_lies: walk.index_lies(&end),
        rows: walk.rows,
        damage: walk.damage,
        end,
    })
}

/// Continues a walk over a growing trace at the byte `from`, where the file ended before. `next` is the expected number
/// of the next frame. The result covers only the new part of the file. Its list of losses is empty, because losses
/// cannot be derived from a part.
pub fn on(source: &Source, id: u32, from: u64, next: u64) -> Result<WalkResult, Error> {
    let mut walk = Walk::new(source, id, next);
    let end = walk.run(from)?;
    Ok(WalkResult {
        rows: walk.rows,
        damage: walk.damage,
        gaps: Vec::new(),
        end,
        index_lies: None,
    })
}

struct Walk<'a> {
    source: &'a Source,
    id: u32,
    rows: Vec<Row>,
    damage: Vec<Damage>,
    /// The headers of the trace's frames that have an intact header and a damaged payload.
    torn: Vec<Header>,
    /// The rows that were read from the intact frames of the index.
    index: Vec<Row>,
    /// The number that the next frame in the file is expected to have.
    next: u64,
    /// The number of frames of the trace's index whose rows are in `index`.
    indexes: u64,
    /// The number of frames of the trace before its index, computed from the number of an index frame.
    before_index: Option<u64>,
    /// The number of bytes of damaged payloads that were searched for intact frames so far.
    in_vain: u64,
}

impl Walk<'_> {
    fn new(source: &Source, id: u32, next: u64) -> Walk<'_> {
        Walk {
            source,
            id,
            rows: Vec::new(),
            damage: Vec::new(),
            torn: Vec::new(),
            index: Vec::new(),
            next,
            indexes: 0,
            before_index: None,
            in_vain: 0,
        }
    }

    fn run(&mut self, mut at: u64) -> Result<End, Error> {
        loop {
            match self.step(at)? {
                Continue(next) => at = next,
                Break(end) => return Ok(end),
            }
            let (frames, damages) = (self.rows.len() as u64, self.damage.len() as u64);
            within("the number of frames", frames, limits::FRAMES)
                .and_then(|()| within("the number of damaged frames", damages, limits::DAMAGES))
                .map_err(|fault| fault.at(self.next, at))?;
        }
    }

    /// Reads the frame at the offset `at`. Returns the offset of the next frame, or how the file ends if there is
    /// no more frame.
    fn step(&mut self, at: u64) -> Result<ControlFlow<End, u64>, Error> {
        let left = self.source.len().saturating_sub(at);
        if left == frame::TRAILER {
            let bytes = self.source.at(at, left)?;
            if frame::read_trailer(&bytes, self.id).is_some() {
                return Ok(Break(End::Complete));
            }
        }
        if left == 0 {
            return Ok(Break(self.cut(at, "there is no index".into())));
        }
        let (header, len) = match header_at(self.source, at, self.id) {
            Ok(found) => found,
            Err(Fault::Read(why)) => return Err(Fault::Read(why).at(self.next, at)),
            Err(fault) => return self.recover(at, at + 1, fault, None),
        };
        if header.number < self.next {
            let fault = Fault::Order {
                found: header.number,
                after: self.next.saturating_sub(1),
            };
            return self.recover(at, at + len, fault, None);
        }
        if header.number > self.next && !self.last_damage_ends(at) {
            let fault = Fault::Missing(header.number - self.next);
            self.damaged(at, 0, fault, None);
        }
        let end = at + len + header.payload;
        match payload_at(self.source, at + len, &header) {
            Ok(payload) => {
                self.intact(at, header, len, &payload);
                Ok(Continue(end))
            }
            Err(Fault::Read(why)) => Err(Fault::Read(why).at(header.number, at)),
            Err(fault @ Fault::Short { .. }) => self.recover(at, at + len, fault, Some(header)),
            Err(fault) => {
                // If bytes are missing inside this payload, the next frame begins before the payload's expected end. So
                // the payload is searched for the header of that frame. IN_VAIN bounds the cost of such searches in a
                // hostile file.
                if self.in_vain <= self.source.len() + limits::IN_VAIN && !self.fits(end) {
                    self.in_vain += header.payload;
                    return self.recover(at, at + len, fault, Some(header));
                }
                self.torn(at, len + header.payload, fault, header);
                Ok(Continue(end))
            }
        }
    }

    /// Whether an intact frame header, the trailer or the end of the file is at the offset `at`.
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
            // The index has the offsets that the frames had in the original file. If bytes before the index are missing
            // now, these offsets can be larger than `at`. So up to four times `at` is accepted.
            let end = at.saturating_mul(4);
            match unpacking(|unpacker| index::read(payload, end, unpacker, &mut rows)) {
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

    /// Records that the frame at the offset `at` is damaged, and searches for the next intact frame from the offset
    /// `from` on.
    fn recover(
        &mut self,
        at: u64,
        from: u64,
        fault: Fault,
        header: Option<Header>,
    ) -> Result<ControlFlow<End, u64>, Error> {
        let least = header.map_or(self.next, |header| header.number + 1);
        let next_frame = search(self.source, from, self.id, |found| found.number >= least)?;
        let is_trailer = |at: u64| {
            self.source
                .at(at, frame::TRAILER)
                .is_ok_and(|bytes| frame::read_trailer(&bytes, self.id).is_some())
        };
        let end = self.source.len().checked_sub(frame::TRAILER);
        let trailer = end.filter(|trailer| *trailer >= from && is_trailer(*trailer));
        let Some(next) = next_frame.or(trailer) else {
            self.next = header.map_or(self.next, |header| header.number);
            return Ok(Break(self.cut(at, fault.to_string())));
        };
        match header {
            Some(header) => self.torn(at, next - at, fault, header),
            None => self.damaged(at, next - at, fault, None),
        }
        Ok(Continue(next))
    }

    fn cut(&self, offset: u64, why: String) -> End {
        End::Truncated {
            frame: self.next,
            offset,
            why,
        }
    }

    /// The number of the first row of the trace's index that disagrees with the frame it describes. A damaged file
    /// is not checked, because its damage is reported instead.
    fn index_lies(&self, end: &End) -> Option<u64> {
        if *end != End::Complete || !self.damage.is_empty() {
            return None;
        }
        // The index stores neither checksums nor the times of frames without events, so these are not compared.
        let bare = |row: &Row| {
            let mut row = *row;
            row.header.crc = 0;
            if row.header.events == 0 {
                (row.header.min, row.header.max) = (0, 0);
            }
            row
        };
        let mut pairs = self.rows.iter().zip(&self.index);
        let differ = pairs.position(|(frame, row)| bare(frame) != bare(row));
        let shorter = self.rows.len().min(self.index.len());
        let at = differ.or((self.rows.len() != self.index.len()).then_some(shorter));
        at.map(|at| at as u64)
    }

    /// The losses of events that the damaged parts of the trace have caused, in the order of time.
    fn gaps(&self, meta: &Metadata) -> Vec<LifeEvent> {
        let mut gaps = Vec::new();
        // A damaged index may lack rows. Losses are derived from the index only if it has a row for each frame before
        // it, because an incomplete index does not show all losses.
        let whole = self.before_index == Some(self.index.len() as u64);
        if whole && index_fits(&self.index) {
            self.gaps_by_index(&mut gaps);
        } else {
            self.gaps_by_sequence(meta, &mut gaps);
        }
        gaps.sort_by_key(|gap: &LifeEvent| gap.time);
        gaps
    }

    /// Derives the losses of events in a damaged trace from its index, which has the number of events and the times
    /// of every missing frame.
    fn gaps_by_index(&self, gaps: &mut Vec<LifeEvent>) {
        let there: HashSet<u64> = self.rows.iter().map(|row| row.header.number).collect();
        let missing = |row: &&Row| !there.contains(&row.header.number);
        let headers = self.index.iter().filter(missing).map(|row| &row.header);
        gaps.extend(headers.filter_map(gap_of));
    }

    /// Derives the losses of events in a damaged trace without an intact index. Each frame has a number in the file,
    /// and a number among the frames of its stream (of a CPU, for example). Lost frames show as gaps in both sequences
    /// of numbers.
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
        // The streams of the missing frames are unknown. Any stream may have lost its last events, so a loss at the end
        // of every stream is reported.
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

/// Whether the rows of the trace's index cover the file from the first frame on. The numbers of the frames of each
/// stream (of each CPU, for example) must have no gap.
fn index_fits(rows: &[Row]) -> bool {
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

/// Makes the event for the loss of all events of a missing or damaged frame, from the frame's header; `None` if the
/// frame holds no events.
fn gap_of(header: &Header) -> Option<LifeEvent> {
    let stream = header.stream()?;
    Some(gap(stream, header.min, header.max, Some(header.events)))
}

/// Makes the event for a loss of events that damage of the trace has caused. The lost events were between the times
/// `since` and `until`, in ns.
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
