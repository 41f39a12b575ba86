//! Opens a trace and reads its frames.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Mutex;

use rayon::prelude::*;

use crate::block::decode::Decoder;
use crate::block::life::{self, Skipped};
use crate::event::{LifeEvent, Stream};
pub use crate::frame::FrameInfo;
use crate::frame::{self, address, kind, Header};
use crate::index::{self, Row};
use crate::limits;
use crate::meta::{Metadata, Summary};
use crate::scan::{self, header_at, payload_at};
use crate::sched::SchedBlock;
use crate::section::{self, CutOff, Section};
use crate::source::Source;
use crate::varint::Cursor;
use crate::zip::Unpacker;
use crate::{Error, Fault};

/// How a trace ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With its trailer: it was finished.
    Complete,
    /// Before its trailer: the recorder was killed, the disk was full, or the
    /// file was cut.
    Truncated {
        /// The number of the frame that is not there any more.
        frame: u64,
        /// Where the trace ends, in bytes.
        offset: u64,
        /// What was found there.
        why: String,
    },
}

/// One damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The number of the frame, as far as it is known: the one found, else the
    /// one that should have been there.
    pub frame: u64,
    /// Where the damage begins, in bytes.
    pub offset: u64,
    /// How many bytes cannot be used for it.
    pub bytes: u64,
    /// What is wrong.
    pub what: Fault,
    /// The stream that the frame belongs to, when its header tells.
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

/// What a later version may have put into a trace, and this one passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Frames of unknown types.
    pub frames: u64,
    /// Fields of metadata and summary with unknown tags, and columns of
    /// lifecycle frames that have been read.
    pub fields: u64,
    /// Events of unknown kinds in the lifecycle frames that have been read.
    pub events: u64,
}

/// A trace that has been opened. Frames can be read by many threads at once.
#[derive(Debug)]
pub struct Trace {
    source: Source,
    id: u32,
    minor: u16,
    meta: Metadata,
    summary: Option<Summary>,
    frames: Vec<FrameInfo>,
    end: End,
    recovered: bool,
    damage: Vec<Damage>,
    gaps: Vec<LifeEvent>,
    unknown: Unknown,
    /// By number of the frame, so that one that is read twice counts once.
    skipped: Mutex<BTreeMap<u64, Skipped>>,
}

/// Bytes of frames that one thread checks as fast as several that have to be woken.
const ALONE: u64 = 1 << 20;
/// Frames that a thread takes at once to check, at least.
const TOGETHER: usize = 64;

thread_local! {
    /// Working memory that is costly to make for every frame.
    static UNPACKER: RefCell<Option<Unpacker>> = const { RefCell::new(None) };
    static DECODER: RefCell<Decoder> = RefCell::default();
}

pub(crate) fn unpacking<T>(
    with: impl FnOnce(&mut Unpacker) -> Result<T, Fault>,
) -> Result<T, Fault> {
    UNPACKER.with_borrow_mut(|unpacker| match unpacker {
        Some(unpacker) => with(unpacker),
        None => {
            let new = Unpacker::new().map_err(|e| Fault::Decompress(e.to_string()))?;
            with(unpacker.insert(new))
        }
    })
}

/// What a payload that is a packed body of fields holds, and how many of its fields are not
/// known to this version.
pub(crate) fn unpacked<T: Section>(payload: &[u8]) -> Result<(T, u64), Fault> {
    unpacking(|unpacker| {
        let mut cursor = Cursor::new(payload);
        let body = unpacker.unpack(&mut cursor, limits::SECTION_BODY)?;
        match cursor.left() {
            0 => section::take_section(body),
            _ => Err(Fault::Content("trailing bytes after the body")),
        }
    })
}

impl Trace {
    /// Opens a trace: by its index when that and all frames are intact, else by
    /// following its frames from the start, around whatever is damaged.
    ///
    /// # Errors
    /// [`Error::NotATrace`], [`Error::Version`]; [`Error::Frame`] when both
    /// copies of the metadata are damaged or missing; [`Error::Io`].
    pub fn open(source: Source) -> Result<Trace, Error> {
        let (minor, mut damage) = file_header(&source)?;
        let (payload, fault) = match metadata_at_start(&source) {
            Ok(payload) => (payload, None),
            // Neither a trace's first bytes nor its first frame.
            Err(_) if !damage.is_empty() => return Err(not_a_trace(&source)?),
            Err(fault) => match scan::find_metadata(&source)? {
                Some(payload) => (payload, Some(fault)),
                None => return Err(fault.at(0, frame::FILE_HEADER)),
            },
        };
        let id = crc32fast::hash(&payload);
        let taken = unpacked(&payload);
        let (meta, fields) = taken.map_err(|fault| fault.at(0, frame::FILE_HEADER))?;
        let mut trace = Trace::with(source, id, minor, meta);
        trace.unknown.fields = fields;
        let rows = match (fault, trace.by_index()) {
            (None, Some(rows)) if trace.are_sound(&rows) => rows,
            // The scan comes upon the damaged metadata by itself.
            _ => {
                let scan = scan::scan(&trace.source, id, &trace.meta)?;
                damage.extend(scan.damage);
                trace.gaps = scan.gaps;
                trace.end = scan.end;
                scan.rows
            }
        };
        trace.damage = damage;
        trace.take_rows(&rows)?;
        Ok(trace)
    }

    /// One of which nothing but that is known yet.
    fn with(source: Source, id: u32, minor: u16, meta: Metadata) -> Trace {
        Trace {
            source,
            id,
            minor,
            meta,
            summary: None,
            frames: Vec::new(),
            end: End::Complete,
            recovered: false,
            damage: Vec::new(),
            gaps: Vec::new(),
            unknown: Unknown::default(),
            skipped: Mutex::default(),
        }
    }

    /// The index's rows, when it is intact and agrees with the file.
    fn by_index(&self) -> Option<Vec<Row>> {
        let end = self.source.len().checked_sub(frame::TRAILER)?;
        let trailer = self.source.at(end, frame::TRAILER).ok()?;
        let start = frame::read_trailer(&trailer, self.id)?;
        let (mut at, mut rows, mut seq) = (start, Vec::new(), 0);
        while at < end {
            let (header, len) = header_at(&self.source, at, self.id).ok()?;
            if header.kind != kind::INDEX || header.seq != seq {
                return None;
            }
            let payload = payload_at(&self.source, at + len, &header).ok()?;
            unpacking(|unpacker| index::read(&payload, start, unpacker, &mut rows)).ok()?;
            if rows.len() as u64 > limits::FRAMES {
                return None;
            }
            at += len + header.payload;
            seq += 1;
        }
        let last = rows.last()?;
        let whole = last.offset.checked_add(last.bytes)? == start && at == end;
        (whole && scan::index_fits(&rows)).then_some(rows)
    }

    /// Whether all frames are there, and their checksums fit. A loss has to be known
    /// before the events around it are looked at, and this costs little: some
    /// 0.1 ns a byte, a hundredth of what decoding costs. All threads share the work
    /// when it is worth waking them.
    fn are_sound(&self, rows: &[Row]) -> bool {
        let bytes: u64 = rows
            .iter()
            .map(|row| row.bytes)
            .fold(0, u64::saturating_add);
        match bytes < ALONE {
            true => rows.iter().all(|row| self.is_sound(row)),
            false => rows
                .par_iter()
                .with_min_len(TOGETHER)
                .all(|row| self.is_sound(row)),
        }
    }

    /// Whether the frame is there, and its checksums fit.
    fn is_sound(&self, row: &Row) -> bool {
        header_at(&self.source, row.offset, self.id).is_ok_and(|(header, len)| {
            let named = Header {
                crc: 0,
                min: row.header.min,
                max: row.header.max,
                ..header
            };
            named == row.header
                && (header.events == 0 || (header.min, header.max) == (named.min, named.max))
                && payload_at(&self.source, row.offset + len, &header).is_ok()
        })
    }

    /// Sorts frames by their use.
    fn take_rows(&mut self, rows: &[Row]) -> Result<(), Error> {
        for row in rows {
            let header = &row.header;
            if let Some(frame) = row.frame() {
                self.frames.push(frame);
                continue;
            }
            match header.kind {
                kind::METADATA => {}
                kind::SUMMARY => match self.read_last(row) {
                    Ok((summary, fields)) => {
                        self.summary = Some(summary);
                        self.unknown.fields += fields;
                    }
                    Err(fault) => self.damaged(row, fault),
                },
                kind::CUT => match self.read_last::<CutOff>(row) {
                    Ok((cut, fields)) => {
                        self.end = End::Truncated {
                            frame: cut.frame,
                            offset: cut.offset,
                            why: cut.why,
                        };
                        self.recovered = true;
                        self.unknown.fields += fields;
                    }
                    Err(fault) => self.damaged(row, fault),
                },
                _ => self.unknown.frames += 1,
            }
        }
        Ok(())
    }

    fn damaged(&mut self, row: &Row, what: Fault) {
        self.damage.push(Damage {
            frame: row.header.number,
            offset: row.offset,
            bytes: row.bytes,
            what,
            stream: None,
        });
    }

    fn read_last<T: Section>(&self, row: &Row) -> Result<(T, u64), Fault> {
        let (header, len) = header_at(&self.source, row.offset, self.id)?;
        unpacked(&payload_at(&self.source, row.offset + len, &header)?)
    }

    /// What the trace says about itself.
    pub fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// How the recording ended; `None` when the trace does not get that far.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The frames that hold events, in file order.
    pub fn frames(&self) -> &[FrameInfo] {
        &self.frames
    }

    /// How the trace ends. Of a recovered trace: how the one ended that it was
    /// made from.
    pub fn end(&self) -> &End {
        &self.end
    }

    /// Whether the trace was made from one that ended too early.
    pub fn recovered(&self) -> bool {
        self.recovered
    }

    /// The damaged places that were found in opening. What a frame's checksums
    /// do not tell shows when it is read.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Losses ([`crate::event::LossCause::Damage`]) for the events that
    /// [`Trace::damage`] has cost, by time.
    pub fn gaps(&self) -> &[LifeEvent] {
        &self.gaps
    }

    /// Looks through the whole file, the index put aside: every checksum, every
    /// frame's place. What is damaged, and how the trace ends.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Frame`] when a limit is exceeded.
    pub fn examine(&self) -> Result<(Vec<Damage>, End), Error> {
        let (_, mut damage) = file_header(&self.source)?;
        let scan = scan::scan(&self.source, self.id, &self.meta)?;
        damage.extend(scan.damage);
        Ok((damage, scan.end))
    }

    /// What was passed over so far because only a later version knows it.
    pub fn unknown(&self) -> Unknown {
        let mut unknown = self.unknown;
        let skipped = self.skipped.lock();
        let skipped = skipped.unwrap_or_else(std::sync::PoisonError::into_inner);
        for frame in skipped.values() {
            unknown.events += frame.events;
            unknown.fields += frame.columns;
        }
        unknown
    }

    /// The minor version of the format that the trace was written in; the
    /// major one is [`frame::MAJOR`].
    pub fn minor_version(&self) -> u16 {
        self.minor
    }

    /// Bytes of the whole file.
    pub fn bytes(&self) -> u64 {
        self.source.len()
    }

    /// Where the bytes come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Reads a frame of a CPU's stream into `into`, which is emptied first.
    ///
    /// # Errors
    /// [`Error::Frame`] when the frame is damaged or not one of a CPU's stream;
    /// [`Trace::gap_of`] then gives the loss. `into` holds no events then.
    pub fn read_sched(&self, frame: &FrameInfo, into: &mut SchedBlock) -> Result<(), Error> {
        let Stream::Cpu(cpu) = frame.stream else {
            into.clear();
            return Err(
                Fault::Content("it holds no scheduling events").at(frame.number, frame.offset)
            );
        };
        into.cpu = cpu;
        let read = self.checked(frame, |payload| {
            DECODER.with_borrow_mut(|decoder| {
                let span = (frame.min.0, frame.max.0);
                unpacking(|unpacker| decoder.decode(payload, frame.events, span, unpacker, into))
            })
        });
        if read.is_err() {
            into.clear();
        }
        read
    }

    /// Reads a frame of the lifecycle or the recorder's stream into `into`,
    /// which is emptied first.
    ///
    /// # Errors
    /// As [`Trace::read_sched`].
    pub fn read_life(&self, frame: &FrameInfo, into: &mut Vec<LifeEvent>) -> Result<(), Error> {
        into.clear();
        if let Stream::Cpu(_) = frame.stream {
            return Err(Fault::Content("it holds scheduling events").at(frame.number, frame.offset));
        }
        let mut skipped = Skipped::default();
        self.checked(frame, |payload| {
            let span = (frame.min.0, frame.max.0);
            skipped =
                unpacking(|unpacker| life::decode(payload, frame.events, span, unpacker, into))?;
            Ok(())
        })?;
        if skipped != Skipped::default() {
            // Another thread that has panicked leaves no half entry.
            let skipping = self.skipped.lock();
            let mut skipping = skipping.unwrap_or_else(std::sync::PoisonError::into_inner);
            skipping.insert(frame.number, skipped);
        }
        Ok(())
    }

    /// Reads a frame's payload, holds it to the frame's checksums, decodes it.
    fn checked(
        &self,
        frame: &FrameInfo,
        decode: impl FnOnce(&[u8]) -> Result<(), Fault>,
    ) -> Result<(), Error> {
        let bytes = self.source.at(frame.offset, frame.bytes)?;
        let read = || {
            let (header, len) = Header::decode(&bytes, self.id)?;
            let payload = bytes.get(len..).unwrap_or_default();
            let (kind, stream) = address(frame.stream);
            let same = header.kind == kind
                && header.stream == stream
                && header.number == frame.number
                && header.seq == frame.seq
                && header.events == frame.events
                && (header.min, header.max) == (frame.min.0, frame.max.0)
                && header.payload == payload.len() as u64;
            if !same {
                return Err(Fault::Index);
            }
            header.check(payload)?;
            decode(payload)
        };
        read().map_err(|fault| fault.at(frame.number, frame.offset))
    }

    /// The loss that stands for a frame that could not be read.
    pub fn gap_of(&self, frame: &FrameInfo) -> LifeEvent {
        scan::gap(frame.stream, frame.min.0, frame.max.0, Some(frame.events))
    }
}

/// Checks the file header. Gives the minor version and what is damaged.
pub(crate) fn file_header(source: &Source) -> Result<(u16, Vec<Damage>), Error> {
    let head = source.at(0, frame::FILE_HEADER)?;
    let good = frame::file_header();
    if (head.len() as u64) < frame::FILE_HEADER {
        if !head.is_empty() && good.starts_with(&head) {
            let fault = Fault::Short {
                needed: frame::FILE_HEADER,
                left: head.len() as u64,
            };
            return Err(fault.at(0, 0));
        }
        return Err(not_a_trace(source)?);
    }
    let mut cursor = Cursor::new(&head);
    let broken = |fault: Fault| fault.at(0, 0);
    let magic = cursor.take(8).map_err(broken)?;
    let version = cursor.word().map_err(broken)?;
    let expected = cursor.word().map_err(broken)?;
    let found = crc32fast::hash(head.get(..12).unwrap_or_default());
    let (major, minor) = (version as u16, (version >> 16) as u16);
    if magic == frame::MAGIC && found == expected {
        return match major == frame::MAJOR {
            true => Ok((minor, Vec::new())),
            false => Err(Error::Version {
                found: major,
                supported: frame::MAJOR,
            }),
        };
    }
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
    Ok((frame::MINOR, vec![damage]))
}

fn not_a_trace(source: &Source) -> Result<Error, Error> {
    Ok(Error::NotATrace {
        found: source.at(0, 8)?.into_owned(),
        expected: frame::MAGIC,
    })
}

pub(crate) fn metadata_at_start(source: &Source) -> Result<Vec<u8>, Fault> {
    let (header, len) = header_at(source, frame::FILE_HEADER, 0)?;
    if header.kind != kind::METADATA {
        return Err(Fault::Content("the first frame is not the metadata"));
    }
    Ok(payload_at(source, frame::FILE_HEADER + len, &header)?.into_owned())
}
