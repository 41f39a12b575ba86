//! Finds the frames of a trace, by its index or by looking for them, and reads
//! them. Nothing in the file is trusted.

use std::collections::BTreeMap;

use crate::event::{Ktime, LifeEvent, LifeKind, LossCause, Lost, Stream};
use crate::frame::{self, FrameType, Header, FILE_HEADER, FRAME_HEADER};
use crate::meta::{Metadata, Summary};
use crate::sched::SchedBlock;
use crate::source::Source;
use crate::varint::Input;
use crate::{life, metadata, Error};

/// A frame that holds events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameInfo {
    /// Its number in the file.
    pub number: u64,
    /// The stream.
    pub stream: Stream,
    /// Its number in the stream.
    pub seq: u32,
    /// Where its header begins.
    pub offset: u64,
    /// Bytes, header included.
    pub bytes: u64,
    /// How many events.
    pub events: u32,
    /// The smallest time.
    pub min: Ktime,
    /// The largest time.
    pub max: Ktime,
    header: Header,
}

impl FrameInfo {
    fn new(number: u64, stream: Stream, offset: u64, header: Header) -> FrameInfo {
        let bytes = FRAME_HEADER as u64 + u64::from(header.payload);
        let Header {
            seq,
            events,
            min,
            max,
            ..
        } = header;
        FrameInfo {
            number,
            stream,
            seq,
            offset,
            bytes,
            events,
            min,
            max,
            header,
        }
    }
}

/// How a file ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With a summary, an index and a trailer.
    Complete,
    /// Before its time.
    Truncated {
        /// The number of the first frame that is missing.
        frame: u64,
        /// Where the good part ends.
        offset: u64,
        /// How that shows.
        why: String,
    },
}

/// Something that is wrong in the middle of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The number of the frame, counting those that were found.
    pub frame: u64,
    /// Where.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

/// A trace, ready to be read.
#[derive(Debug)]
pub struct Trace {
    source: Source,
    meta: Metadata,
    summary: Option<Summary>,
    frames: Vec<FrameInfo>,
    end: End,
    damage: Vec<Damage>,
    gaps: Vec<LifeEvent>,
    skipped: u64,
}

/// What a scan has found.
struct Found {
    frames: Vec<(u64, Header)>,
    end: End,
    damage: Vec<Damage>,
}

impl Trace {
    /// Opens a trace: by its index when that is intact, else by looking for
    /// its frames.
    ///
    /// # Errors
    /// [`Error::NotATrace`], [`Error::Version`]; [`Error::Frame`] when the
    /// metadata cannot be read, without which nothing can be interpreted.
    pub fn open(source: Source) -> Result<Trace, Error> {
        let mut header = [0; FILE_HEADER];
        let len = source.read_at(0, &mut header)?;
        if len < FILE_HEADER || !header.starts_with(&frame::MAGIC) {
            return Err(Error::NotATrace);
        }
        let major = u16::try_from(frame::u32(&header, 8) & 0xffff).unwrap_or(0);
        if crc32fast::hash(header.get(..12).unwrap_or_default()) != frame::u32(&header, 12) {
            return Err(Error::Frame {
                frame: 0,
                offset: 0,
                what: "the file's header is damaged".into(),
            });
        }
        if major != frame::MAJOR {
            return Err(Error::Version { major });
        }
        let found = match by_index(&source)? {
            Some(frames) => Found {
                frames,
                end: End::Complete,
                damage: Vec::new(),
            },
            None => scan(&source)?,
        };
        let mut trace = Trace {
            source,
            meta: Metadata::default(),
            summary: None,
            frames: Vec::new(),
            end: found.end,
            damage: found.damage,
            gaps: Vec::new(),
            skipped: 0,
        };
        let mut meta = None;
        for (number, (offset, header)) in found.frames.into_iter().enumerate() {
            let number = number as u64;
            let stream = frame::stream_of(header.stream);
            if header.kind == FrameType::Meta as u8 && meta.is_none() {
                meta = Some(trace.value(number, offset, &header)?);
            } else if header.kind == FrameType::Summary as u8 {
                match trace.value(number, offset, &header) {
                    Ok(summary) => trace.summary = Some(summary),
                    Err(error) => trace.damage.push(Damage {
                        frame: number,
                        offset,
                        what: error.to_string(),
                    }),
                }
            } else if let (2 | 3, Some(stream)) = (header.kind, stream) {
                trace
                    .frames
                    .push(FrameInfo::new(number, stream, offset, header));
            } else if header.kind != FrameType::Index as u8 {
                trace.skipped += 1;
            }
        }
        trace.meta = meta.ok_or(Error::Frame {
            frame: 0,
            offset: FILE_HEADER as u64,
            what: "the metadata is missing; without it nothing can be interpreted".into(),
        })?;
        trace.find_gaps();
        Ok(trace)
    }

    /// What the trace says about itself.
    pub fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// How the recording ended; `None` when the file ends before that.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The frames that hold events, in the file's order.
    pub fn frames(&self) -> &[FrameInfo] {
        &self.frames
    }

    /// How the file ends.
    pub fn end(&self) -> &End {
        &self.end
    }

    /// What was found to be damaged when the frames were looked for.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// The spans of time that the damage costs, as losses.
    pub fn gaps(&self) -> &[LifeEvent] {
        &self.gaps
    }

    /// Frames of types that this version does not know.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Bytes of the whole file.
    pub fn bytes(&self) -> u64 {
        self.source.len()
    }

    /// Reads a frame of a CPU's stream.
    ///
    /// # Errors
    /// [`Error::Frame`] when it is damaged; [`Error::Io`].
    pub fn read_sched(&self, frame: &FrameInfo, into: &mut SchedBlock) -> Result<(), Error> {
        let (raw, bits) = payload(&self.source, frame.number, frame.offset, &frame.header)?;
        into.decode(&raw, &bits, frame.events as usize)
            .map_err(|e| damaged(frame, e.0))?;
        match into.span() {
            Some((min, max)) if (min, max) == (frame.min, frame.max) => Ok(()),
            _ => {
                into.clear();
                Err(damaged(
                    frame,
                    "its times are not those that its header gives",
                ))
            }
        }
    }

    /// Appends the events of a frame of another stream.
    ///
    /// # Errors
    /// As [`Trace::read_sched`]; `into` is as before then.
    pub fn read_life(&self, frame: &FrameInfo, into: &mut Vec<LifeEvent>) -> Result<(), Error> {
        let (raw, _) = payload(&self.source, frame.number, frame.offset, &frame.header)?;
        let before = into.len();
        life::decode(&raw, frame.events, into).map_err(|e| {
            into.truncate(before);
            damaged(frame, e.0)
        })
    }

    /// The loss that stands for a frame that could not be read.
    pub fn gap_of(&self, frame: &FrameInfo) -> LifeEvent {
        gap(
            frame.stream,
            frame.min,
            frame.max,
            Some(u64::from(frame.events)),
        )
    }

    fn value<T: serde::de::DeserializeOwned>(
        &self,
        number: u64,
        offset: u64,
        header: &Header,
    ) -> Result<T, Error> {
        let (raw, _) = payload(&self.source, number, offset, header)?;
        metadata::decode(&raw).map_err(|what| Error::Frame {
            frame: number,
            offset,
            what,
        })
    }

    /// A number left out of a stream's sequence is a frame that is gone.
    fn find_gaps(&mut self) {
        let mut next: BTreeMap<u16, (u32, Ktime)> = BTreeMap::new();
        for frame in &self.frames {
            let (expected, since) = next
                .get(&frame.header.stream)
                .copied()
                .unwrap_or((0, self.meta.start));
            if frame.seq != expected {
                self.gaps
                    .push(gap(frame.stream, since.min(frame.min), frame.min, None));
            }
            next.insert(
                frame.header.stream,
                (frame.seq.wrapping_add(1), frame.max.max(since)),
            );
        }
    }
}

fn gap(stream: Stream, since: Ktime, until: Ktime, count: Option<u64>) -> LifeEvent {
    let lost = Lost {
        stream,
        count,
        until,
        cause: LossCause::Damage,
    };
    LifeEvent {
        time: since,
        cpu: None,
        kind: LifeKind::Lost(lost),
    }
}

fn damaged(frame: &FrameInfo, what: &str) -> Error {
    Error::Frame {
        frame: frame.number,
        offset: frame.offset,
        what: what.into(),
    }
}

/// A frame's payload: the expanded part, and the part that is not compressed.
fn payload(
    source: &Source,
    number: u64,
    offset: u64,
    header: &Header,
) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let wrong = |what: String| Error::Frame {
        frame: number,
        offset,
        what,
    };
    // The header in the file may have changed since, or differ from the index.
    match header_at(source, offset)? {
        Ok(found) if found == *header => {}
        Ok(_) => return Err(wrong("its header differs from the index".into())),
        Err(what) => return Err(wrong(what)),
    }
    let mut packed = vec![0; header.payload as usize];
    if source.read_at(offset + FRAME_HEADER as u64, &mut packed)? < packed.len() {
        return Err(wrong("the file ends inside it".into()));
    }
    let crc = crc32fast::hash(&packed);
    if crc != header.crc {
        return Err(wrong(format!(
            "checksum {crc:#010x}, expected {:#010x}",
            header.crc
        )));
    }
    let bits = packed.split_off(header.packed as usize);
    let raw = zstd::bulk::decompress(&packed, header.raw as usize)
        .map_err(|e| wrong(format!("zstd: {e}")))?;
    if raw.len() != header.raw as usize {
        return Err(wrong(format!(
            "{} bytes, expected {}",
            raw.len(),
            header.raw
        )));
    }
    Ok((raw, bits))
}

fn header_at(source: &Source, offset: u64) -> Result<Result<Header, String>, Error> {
    let mut bytes = [0; FRAME_HEADER];
    if source.read_at(offset, &mut bytes)? < FRAME_HEADER {
        return Ok(Err("the file ends inside a frame's header".into()));
    }
    Ok(Header::decode(&bytes))
}

/// The frames by the index; `None` when there is no intact one.
fn by_index(source: &Source) -> Result<Option<Vec<(u64, Header)>>, Error> {
    let mut trailer = [0; frame::TRAILER];
    let len = source.len();
    let Some(at) = len.checked_sub(frame::TRAILER as u64) else {
        return Ok(None);
    };
    source.read_at(at, &mut trailer)?;
    let offset = frame::u64(&trailer, 0);
    let intact = trailer.ends_with(&frame::END_MAGIC)
        && crc32fast::hash(trailer.get(..8).unwrap_or_default()) == frame::u32(&trailer, 8);
    if !intact {
        return Ok(None);
    }
    let Ok(header) = header_at(source, offset)? else {
        return Ok(None);
    };
    if header.kind != FrameType::Index as u8 {
        return Ok(None);
    }
    let Ok((raw, _)) = payload(source, 0, offset, &header) else {
        return Ok(None);
    };
    Ok(index(&raw, len).filter(|frames| {
        frames.last().is_some_and(|(at, header)| {
            // The index must reach to its own frame, or something was put between.
            at.saturating_add(FRAME_HEADER as u64 + u64::from(header.payload)) == offset
        })
    }))
}

fn index(raw: &[u8], len: u64) -> Option<Vec<(u64, Header)>> {
    let mut input = Input(raw);
    let mut frames = Vec::new();
    let mut offset = 0u64;
    while !input.0.is_empty() {
        offset = offset
            .checked_add(input.u64().ok()?)
            .filter(|offset| *offset < len)?;
        let kind = input.u8().ok()?;
        let mut int = || input.u32().ok();
        let stream = u16::try_from(int()?).ok()?;
        let (seq, payload, packed, raw, events) = (int()?, int()?, int()?, int()?, int()?);
        let min = input.u64().ok()?;
        let max = min.checked_add(input.u64().ok()?)?;
        let crc = frame::u32(input.bytes(4).ok()?, 0);
        let (min, max) = (Ktime(min), Ktime(max));
        frames.push((
            offset,
            Header {
                kind,
                stream,
                seq,
                payload,
                packed,
                raw,
                events,
                min,
                max,
                crc,
            },
        ));
    }
    Some(frames)
}

/// Bytes that are looked through at once for the next frame.
const WINDOW: usize = 1 << 16;

/// Looks for frames from the start of the file, each checked as a whole.
fn scan(source: &Source) -> Result<Found, Error> {
    let mut found = Found {
        frames: Vec::new(),
        end: End::Complete,
        damage: Vec::new(),
    };
    let len = source.len();
    let mut at = FILE_HEADER as u64;
    let mut summary = false;
    loop {
        let number = found.frames.len() as u64;
        let truncated = |why: &str| End::Truncated {
            frame: number,
            offset: at,
            why: why.into(),
        };
        if at >= len {
            found.end = if summary {
                End::Complete
            } else {
                truncated("the recording has no end")
            };
            return Ok(found);
        }
        let what = match header_at(source, at)? {
            Ok(header) => match payload(source, number, at, &header) {
                Ok(_) => {
                    summary |= header.kind == FrameType::Summary as u8;
                    found.frames.push((at, header));
                    at += FRAME_HEADER as u64 + u64::from(header.payload);
                    continue;
                }
                Err(Error::Frame { what, .. }) => what,
                Err(error) => return Err(error),
            },
            Err(what) => what,
        };
        match next_frame(source, at + 1)? {
            Some(next) => {
                found.damage.push(Damage {
                    frame: number,
                    offset: at,
                    what,
                });
                at = next;
            }
            None => {
                // After the summary only index and trailer are lost: no events.
                if summary {
                    if len - at != frame::TRAILER as u64 {
                        found.damage.push(Damage {
                            frame: number,
                            offset: at,
                            what,
                        });
                    } else {
                        found.damage.push(Damage {
                            frame: number,
                            offset: at,
                            what: "the index is damaged".into(),
                        });
                    }
                } else {
                    found.end = truncated(&what);
                }
                return Ok(found);
            }
        }
    }
}

/// The next place from which a frame's header is good.
fn next_frame(source: &Source, from: u64) -> Result<Option<u64>, Error> {
    let mut window = vec![0; WINDOW];
    let mut at = from;
    loop {
        let len = source.read_at(at, &mut window)?;
        let bytes = window.get(..len).unwrap_or_default();
        for (place, candidate) in bytes.windows(frame::SYNC.len()).enumerate() {
            if candidate == frame::SYNC {
                let offset = at + place as u64;
                if header_at(source, offset)?.is_ok() {
                    return Ok(Some(offset));
                }
            }
        }
        if len < WINDOW {
            return Ok(None);
        }
        at += (WINDOW - frame::SYNC.len() + 1) as u64;
    }
}
