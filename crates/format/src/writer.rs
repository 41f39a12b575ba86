//! Writes a trace from front to back, without seeking.

use std::collections::HashMap;
use std::io::Write;

use crate::block::encode::Encoder;
use crate::block::life;
use crate::event::{CpuId, LifeEvent, LifeKind, SchedEvent, Stream};
use crate::frame::{self, address, kind, Header};
use crate::index::{Index, Row};
use crate::mask::Masked;
use crate::meta::{Metadata, Summary};
use crate::sched::Open;
use crate::tally::Counting;
pub use crate::tally::Events;
use crate::zip::{Packer, LEVEL};
use crate::{error, limits, section, Error, Fault};

/// The numbers of bytes, frames and events of a trace that have been written so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The number of bytes of the trace that were written so far.
    pub bytes: u64,
    /// The number of frames of the trace that were written so far.
    pub frames: u64,
    /// The numbers of events of each kind that were added so far, including the events in blocks that are not yet
    /// written.
    pub by_kind: Events,
}

impl Written {
    /// The number of events of all kinds that were added so far, including the events in blocks that are not yet
    /// written.
    pub fn events(&self) -> u64 {
        self.by_kind.total()
    }
}

/// The lifecycle events, or the recorder's own events, that are not yet written because their block is not full.
#[derive(Debug, Default)]
struct OpenLife {
    events: Vec<LifeEvent>,
    bytes: usize,
}

/// Writes one trace to `W`.
///
/// Events stay in memory until their block is full or [`Writer::flush`] writes it. The memory is bounded: 20 bytes
/// for each of [`limits::BLOCK_EVENTS`] events of each CPU, [`limits::BLOCK_BYTES`] and one event for each of the
/// two other streams, about ten bytes for each frame for the index, and less than 8 MiB to encode. After an error
/// the trace ends with the last whole frame.
#[derive(Debug)]
pub struct Writer<W> {
    out: Output<W>,
    metadata: Vec<u8>,
    /// The block of scheduling events of each CPU that is still being filled.
    cpus: Vec<(CpuId, Open)>,
    /// The index in `cpus` of the block that got the last scheduling event. The next event is probably of the same
    /// CPU.
    last: usize,
    lifecycle: OpenLife,
    recorder: OpenLife,
    encoder: Encoder,
    packer: Packer,
    payload: Vec<u8>,
    counting: Counting,
}

/// Writes frames to the trace file, and remembers them for the index.
#[derive(Debug)]
struct Output<W> {
    file: W,
    id: u32,
    written: Written,
    seqs: HashMap<(u8, u16), u64>,
    index: Index,
    buffer: Vec<u8>,
}

impl<W: Write> Output<W> {
    /// Writes one frame of the trace. `header` has the frame's type, stream number, number of events and times; this
    /// function fills in the other fields of the header.
    fn frame(&mut self, mut header: Header, payload: &[u8]) -> Result<(), Error> {
        let number = self.written.frames;
        error::within(
            "the payload's length",
            payload.len() as u64,
            limits::PAYLOAD,
        )
        .map_err(|fault| fault.at(number, self.written.bytes))?;
        let seq = self.seqs.entry((header.kind, header.stream)).or_default();
        header.number = number;
        header.seq = *seq;
        header.payload = payload.len() as u64;
        header.crc = crc32fast::hash(payload);
        self.buffer.clear();
        header.encode(self.id, &mut self.buffer);
        self.buffer.extend_from_slice(payload);
        self.file.write_all(&self.buffer)?;
        *seq += 1;
        let bytes = self.buffer.len() as u64;
        if header.kind != kind::INDEX {
            self.index.add(&Row {
                header,
                offset: self.written.bytes,
                bytes,
            });
        }
        self.written.bytes += bytes;
        self.written.frames += 1;
        Ok(())
    }
}

impl<W: Write> Writer<W> {
    /// Starts a trace: writes the file header and the metadata.
    ///
    /// # Errors
    /// If writing fails, or the metadata exceeds a limit.
    pub fn new(out: W, meta: &Masked<Metadata>) -> Result<Writer<W>, Error> {
        let body =
            section::put_section(meta.clone()).map_err(|fault| fault.at(0, frame::FILE_HEADER))?;
        let mut packer = Packer::new()?;
        let mut metadata = Vec::new();
        packer.pack(&[&body], LEVEL, &mut metadata)?;
        let mut writer = Writer {
            out: Output {
                file: out,
                id: crc32fast::hash(&metadata),
                written: Written {
                    bytes: frame::FILE_HEADER,
                    ..Written::default()
                },
                seqs: HashMap::new(),
                index: Index::default(),
                buffer: Vec::new(),
            },
            metadata,
            cpus: Vec::new(),
            last: 0,
            lifecycle: OpenLife::default(),
            recorder: OpenLife::default(),
            encoder: Encoder::default(),
            packer,
            payload: Vec::new(),
            counting: Counting::new(meta.start, meta.start_clock),
        };
        writer.out.file.write_all(&frame::file_header())?;
        writer.put_metadata()?;
        Ok(writer)
    }

    fn put_metadata(&mut self) -> Result<(), Error> {
        let header = Header {
            kind: kind::METADATA,
            ..Header::default()
        };
        self.out.frame(header, &self.metadata)
    }

    /// Adds a scheduling event of one CPU to the trace, and writes the CPU's block if it is full.
    ///
    /// # Errors
    /// If writing fails.
    #[inline]
    pub fn sched(&mut self, cpu: CpuId, event: SchedEvent) -> Result<(), Error> {
        self.out.written.by_kind.sched(&event);
        if self
            .cpus
            .get(self.last)
            .is_none_or(|(last, _)| *last != cpu)
        {
            self.last = match self.cpus.binary_search_by_key(&cpu, |(cpu, _)| *cpu) {
                Ok(at) => at,
                Err(at) => {
                    self.cpus.insert(at, (cpu, Open::default()));
                    at
                }
            };
        }
        #[allow(clippy::indexing_slicing)] // Found or inserted above.
        let (_, block) = &mut self.cpus[self.last];
        if block.push(event) >= limits::BLOCK_EVENTS {
            return self.close_sched(self.last);
        }
        Ok(())
    }

    /// Adds a lifecycle event, or an event of the recorder itself, to the trace.
    ///
    /// # Errors
    /// If writing fails, or `stream` is the stream of a CPU.
    pub fn life(&mut self, stream: Stream, event: Masked<LifeEvent>) -> Result<(), Error> {
        let event = event.into_inner();
        let open = match stream {
            Stream::Lifecycle => &mut self.lifecycle,
            Stream::Recorder => &mut self.recorder,
            Stream::Cpu(_) => {
                return Err(Error::Io(std::io::Error::new(
                    std::io::ErrorKind::InvalidInput,
                    "a CPU's stream holds scheduling events only",
                )))
            }
        };
        let weight = match event.kind {
            // Many events have the same names of functions, and a block stores each name once. So these events count
            // with only a quarter of their bytes, and a block may have four times as many of them. With so many events
            // of other kinds, a reader of the block would need more memory than it may use.
            LifeKind::Symbol(_) => life::weight(&event) / 4,
            _ => life::weight(&event),
        };
        // If the event does not fit into the block, the block is closed. A very long event then gets a block of its
        // own, which is within all limits because every single event is.
        if open.bytes + weight > limits::BLOCK_BYTES && !open.events.is_empty() {
            self.close_life(stream)?;
        }
        self.out.written.by_kind.life(&event);
        let open = match stream {
            Stream::Lifecycle => &mut self.lifecycle,
            _ => &mut self.recorder,
        };
        open.events.push(event);
        open.bytes += weight;
        Ok(())
    }

    fn close_sched(&mut self, at: usize) -> Result<(), Error> {
        let Some((cpu, block)) = self.cpus.get_mut(at).filter(|(_, block)| block.len() > 0) else {
            return Ok(());
        };
        let ends = (u64::MAX, 0);
        let times = block.time.iter();
        let (min, max) = times.fold(ends, |(min, max), time| (min.min(*time), max.max(*time)));
        let (kind, stream) = address(Stream::Cpu(*cpu));
        let header = Header {
            kind,
            stream,
            events: block.len() as u64,
            min,
            max,
            ..Header::default()
        };
        self.counting.sched(Stream::Cpu(*cpu), &block.time);
        self.payload.clear();
        self.encoder
            .encode(block, min, &mut self.packer, &mut self.payload)?;
        block.clear();
        self.out.frame(header, &self.payload)
    }

    fn close_life(&mut self, stream: Stream) -> Result<(), Error> {
        let (kind, number) = address(stream);
        let open = match stream {
            Stream::Lifecycle => &mut self.lifecycle,
            _ => &mut self.recorder,
        };
        if open.events.is_empty() {
            return Ok(());
        }
        let times = open.events.iter().map(|event| event.time.0);
        let min = times.clone().min().unwrap_or(0);
        let header = Header {
            kind,
            stream: number,
            events: open.events.len() as u64,
            min,
            max: times.max().unwrap_or(0),
            ..Header::default()
        };
        self.counting.life(stream, &open.events, min);
        self.payload.clear();
        life::encode(&mut open.events, min, &mut self.packer, &mut self.payload)?;
        open.events.clear();
        open.bytes = 0;
        self.out.frame(header, &self.payload)
    }

    /// Writes all blocks that are still being filled, the block of the recorder's events last, and flushes the
    /// file.
    ///
    /// # Errors
    /// If writing fails.
    pub fn flush(&mut self) -> Result<(), Error> {
        for at in 0..self.cpus.len() {
            self.close_sched(at)?;
        }
        self.close_life(Stream::Lifecycle)?;
        self.close_life(Stream::Recorder)?;
        self.out.file.flush()?;
        Ok(())
    }

    /// The numbers of bytes, frames and events of the trace that have been written so far.
    pub fn written(&self) -> &Written {
        &self.out.written
    }

    /// Completes the trace: writes the blocks that are still being filled, the summary with the numbers of events,
    /// the index and the trailer.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self, summary: &Masked<Summary>) -> Result<(W, Written), Error> {
        self.flush()?;
        let none = Counting::new(summary.end, summary.end_clock);
        let counting = std::mem::replace(&mut self.counting, none);
        let events = self.out.written.by_kind;
        let tally = counting.finish(events, summary.end, summary.end_clock);
        let stored = Summary {
            tally: Some(tally),
            ..Summary::clone(summary)
        };
        // The summary was masked before, and the added tally (numbers of events) has no texts, so the result needs no
        // mask.
        let body = section::put_section(Masked::trusted(stored));
        self.put_last(kind::SUMMARY, summary.end.0, body)?;
        self.close()
    }

    /// Completes a trace that is made from a truncated one. Instead of a summary it has a record of how the
    /// original trace ended, which [`crate::reader::Trace::end`] returns.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish_cut(
        mut self,
        frame: u64,
        offset: u64,
        why: Masked<String>,
    ) -> Result<(W, Written), Error> {
        self.flush()?;
        let cut = section::CutOff {
            frame,
            offset,
            why: why.into_inner(),
        };
        let body = section::put_section(Masked::trusted(cut));
        self.put_last(kind::CUT, 0, body)?;
        self.close()
    }

    fn put_last(&mut self, kind: u8, time: u64, body: Result<Vec<u8>, Fault>) -> Result<(), Error> {
        let body =
            body.map_err(|fault| fault.at(self.out.written.frames, self.out.written.bytes))?;
        self.payload.clear();
        self.packer.pack(&[&body], LEVEL, &mut self.payload)?;
        // If the last frames of a stream are damaged, a reader takes the time in the header of the summary's frame as
        // the end of the loss.
        let header = Header {
            kind,
            min: time,
            max: time,
            ..Header::default()
        };
        self.out.frame(header, &self.payload)
    }

    /// Completes the trace file: writes the second copy of the metadata, the index and the trailer.
    fn close(mut self) -> Result<(W, Written), Error> {
        self.put_metadata()?;
        let offset = self.out.written.bytes;
        for (header, payload) in self.out.index.frames(&mut self.packer)? {
            self.out.frame(header, &payload)?;
        }
        let trailer = frame::trailer(offset, self.out.id);
        self.out.file.write_all(&trailer)?;
        self.out.written.bytes += trailer.len() as u64;
        self.out.file.flush()?;
        Ok((self.out.file, self.out.written))
    }
}
