//! Opens a trace file and reads its frames of events.

mod join;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::block::decode::Decoder;
use crate::block::life;
pub use crate::block::life::Unknown;
use crate::event::{LifeEvent, Stream};
pub use crate::frame::FrameInfo;
use crate::frame::{address, frame_at, kind, Header};
use crate::index::Row;
use crate::meta::{Metadata, Summary};
use crate::sched::SchedBlock;
use crate::section::{self, CutOff, Section};
use crate::source::Source;
use crate::walk::{self, Start};
pub use crate::walk::{Damage, End};
use crate::zip::unpacking;
use crate::{Error, Fault};
pub use join::{Joint, NotNext};

/// An open trace file. Several threads can read its frames in parallel.
#[derive(Debug)]
pub struct Trace {
    source: Source,
    id: u32,
    /// The later files of a rotated recording that were joined to this trace; empty if there are none.
    parts: Vec<join::JoinedPart>,
    minor: u16,
    meta: Metadata,
    summary: Option<Summary>,
    frames: Vec<FrameInfo>,
    end: End,
    under_way: bool,
    /// How the original trace ended, if `tr recover` made this trace from a truncated one.
    recovered_from: Option<End>,
    damage: Vec<Damage>,
    gaps: Vec<LifeEvent>,
    index_lies: Option<u64>,
    unknown: Unknown,
    /// For each frame, the counts of its parts that were skipped because only a later version of the format knows them.
    /// The key is the frame's offset, so a frame that is read twice counts once.
    skipped: Mutex<BTreeMap<u64, Unknown>>,
}

thread_local! {
    /// The decoder of scheduling frames that each thread keeps, because its buffers are costly to allocate.
    static DECODER: RefCell<Decoder> = RefCell::default();
}

impl Trace {
    /// Opens a trace and verifies the checksums of every frame.
    ///
    /// # Errors
    /// [`Error::NotATrace`], [`Error::Version`]; [`Error::Frame`] if both copies of the metadata are damaged or
    /// missing, or a limit is exceeded; [`Error::Io`].
    pub fn open(source: Source) -> Result<Trace, Error> {
        let start = Start::read(&source)?;
        let walked = walk::walk(&source, start.id, &start.meta)?;
        let mut trace = Trace {
            source,
            id: start.id,
            parts: Vec::new(),
            minor: start.minor,
            meta: start.meta,
            summary: None,
            frames: Vec::new(),
            end: walked.end,
            under_way: false,
            recovered_from: None,
            damage: start.damage.into_iter().chain(walked.damage).collect(),
            gaps: walked.gaps,
            index_lies: walked.index_lies,
            unknown: Unknown {
                fields: start.unknown_fields,
                ..Unknown::default()
            },
            skipped: Mutex::default(),
        };
        trace.take(&walked.rows);
        Ok(trace)
    }

    /// Continues to read a file that is still being written. `source` is the same file with its present length.
    /// Afterwards [`Trace::frames`] and [`Trace::damage`] have only the frames and the damage of the new part. If the
    /// new part is damaged, the lost events ([`Trace::gaps`]) are not determined.
    ///
    /// # Errors
    /// The errors of [`Trace::open`].
    pub fn grow(&mut self, source: Source) -> Result<(), Error> {
        (self.frames, self.damage) = (Vec::new(), Vec::new());
        let End::Truncated { frame, offset, .. } = self.end else {
            return Ok(());
        };
        let grown = walk::on(&source, self.id, offset, frame)?;
        (self.source, self.end, self.damage) = (source, grown.end, grown.damage);
        self.take(&grown.rows);
        Ok(())
    }

    /// Adds the frames that these rows describe to the trace. A row has the header, the offset and the length of a
    /// frame. A frame whose content does not fit its type is recorded as damaged.
    fn take(&mut self, rows: &[Row]) {
        for row in rows {
            if let Err(what) = self.take_one(row) {
                self.damage.push(Damage {
                    frame: row.header.number,
                    offset: row.offset,
                    bytes: row.bytes,
                    what,
                    stream: None,
                });
            }
        }
    }

    /// Adds one frame to the trace. A frame of events is added to the list of frames; any other frame is read.
    fn take_one(&mut self, row: &Row) -> Result<(), Fault> {
        match row.header.kind {
            kind::METADATA => {}
            kind::SUMMARY => self.summary = Some(self.read_section(row)?),
            kind::CUT => {
                let cut: CutOff = self.read_section(row)?;
                self.recovered_from = Some(End::Truncated {
                    frame: cut.frame,
                    offset: cut.offset,
                    why: cut.why,
                });
            }
            _ => match row.frame() {
                Some(frame) => self.frames.push(frame),
                None => self.unknown.frames += 1,
            },
        }
        Ok(())
    }

    fn read_section<T: Section>(&mut self, row: &Row) -> Result<T, Fault> {
        let (_, payload) = frame_at(&self.source, row.offset, self.id)?;
        let (value, unknown) = section::unpack(&payload)?;
        self.unknown.fields += unknown;
        Ok(value)
    }

    /// The metadata of the trace.
    pub fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// The summary of the recording, from the end of the trace; `None` if the trace is truncated.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The frames of the trace that hold events, in file order.
    pub fn frames(&self) -> &[FrameInfo] {
        &self.frames
    }

    /// How the recording ended: completely, or truncated. For a trace made by `tr recover`, this is the end of the
    /// original trace.
    pub fn end(&self) -> &End {
        self.recovered_from.as_ref().unwrap_or(&self.end)
    }

    /// How this trace file ends, even if it was made from a truncated one by `tr recover`.
    pub fn file_end(&self) -> &End {
        &self.end
    }

    /// Whether the trace has no end because its recorder is still running. The file itself does not show whether the
    /// recorder runs, so the caller has to say so with [`Trace::set_under_way`].
    pub fn under_way(&self) -> bool {
        self.under_way && matches!(self.end, End::Truncated { .. })
    }

    /// Marks the trace as one whose recorder was still running before the file was read.
    pub fn set_under_way(&mut self) {
        self.under_way = true;
    }

    /// Whether `tr recover` made this trace from a truncated one.
    pub fn recovered(&self) -> bool {
        self.recovered_from.is_some()
    }

    /// The damaged parts of the trace that [`Trace::open`] found. Reading a frame whose checksums are valid can find
    /// more damage.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// The losses of events ([`crate::event::LossCause::Damage`]) that the damaged parts of the trace
    /// ([`Trace::damage`]) have caused, in the order of time.
    pub fn gaps(&self) -> &[LifeEvent] {
        &self.gaps
    }

    /// The number of the first frame of a complete trace whose row in the index is wrong; `None` if all rows are
    /// right.
    pub fn index_lies(&self) -> Option<u64> {
        self.index_lies
    }

    /// The numbers of frames, fields and events that were skipped so far, because only a later version of the format
    /// knows them.
    pub fn unknown(&self) -> Unknown {
        let mut unknown = self.unknown;
        for frame in self.skipped().values() {
            unknown.events += frame.events;
            unknown.fields += frame.fields;
        }
        unknown
    }

    fn skipped(&self) -> MutexGuard<'_, BTreeMap<u64, Unknown>> {
        // The map of skipped parts is usable even if another thread panicked while it held the lock: no entry of the
        // map is ever incomplete.
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The minor version of the trace's format. The major version is [`crate::frame::MAJOR`].
    pub fn minor_version(&self) -> u16 {
        self.minor
    }

    /// The length of the trace file in bytes. For a rotated recording, it is the length of all joined files.
    pub fn bytes(&self) -> u64 {
        self.length()
    }

    /// The bytes from which the trace is read: a file, a mapping or memory.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Reads a frame with the scheduling events of a CPU. The events replace the content of `into`.
    ///
    /// # Errors
    /// [`Error::Frame`] if the frame is damaged or not of a CPU's stream; `into` is empty then, and [`Trace::gap_of`]
    /// returns the loss.
    pub fn read_sched(&self, frame: &FrameInfo, into: &mut SchedBlock) -> Result<(), Error> {
        let Stream::Cpu(cpu) = frame.stream else {
            into.clear();
            return Err(
                Fault::Content("it holds no scheduling events").at(frame.number, frame.offset)
            );
        };
        into.cpu = cpu;
        self.checked(frame, |payload| {
            DECODER.with_borrow_mut(|decoder| {
                let times = frame.times();
                unpacking(|unpacker| decoder.decode(payload, frame.events, times, unpacker, into))
            })
        })
        .inspect_err(|_| into.clear())
    }

    /// Reads a frame with lifecycle events or with the recorder's own events. The events replace the content of
    /// `into`.
    ///
    /// # Errors
    /// The errors of [`Trace::read_sched`].
    pub fn read_life(&self, frame: &FrameInfo, into: &mut Vec<LifeEvent>) -> Result<(), Error> {
        into.clear();
        if let Stream::Cpu(_) = frame.stream {
            return Err(Fault::Content("it holds scheduling events").at(frame.number, frame.offset));
        }
        let read = self.checked(frame, |payload| {
            let times = frame.times();
            unpacking(|unpacker| life::decode(payload, frame.events, times, unpacker, into))
        });
        let unknown = read.inspect_err(|_| into.clear())?;
        if unknown != Unknown::default() {
            self.skipped().insert(frame.offset, unknown);
        }
        Ok(())
    }

    /// Reads a frame of the trace, verifies the checksums of its header and its payload, and decodes the payload by
    /// `decode`.
    fn checked<T>(
        &self,
        frame: &FrameInfo,
        decode: impl FnOnce(&[u8]) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let (source, id, base) = self.part_at(frame.offset);
        let offset = frame.offset.saturating_sub(base);
        let bytes = source.at(offset, frame.bytes)?;
        let read = || {
            let (header, len) = Header::decode(&bytes, id)?;
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
        read().map_err(|fault| fault.at(frame.number, offset))
    }

    /// Makes the event that stands for the loss of all events of a frame, for a frame that cannot be read.
    pub fn gap_of(&self, frame: &FrameInfo) -> LifeEvent {
        walk::gap(frame.stream, frame.min.0, frame.max.0, Some(frame.events))
    }
}
