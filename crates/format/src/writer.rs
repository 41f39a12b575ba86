//! Packs events into frames and writes them, front to back.

use std::collections::BTreeMap;
use std::io::Write;

use crate::event::{CpuId, LifeEvent, LifeKind, SchedEvent, SchedKind, Stream};
use crate::frame::{self, stream_number, FrameType, Header};
use crate::life::LifeEncoder;
use crate::meta::{Metadata, Summary};
use crate::sched::SchedBlock;
use crate::varint::put;
use crate::{metadata, Error};

/// Events of a full block: some 100 ms of a CPU that does nothing but switch.
const BLOCK_EVENTS: usize = 1 << 16;
/// Bytes of a full lifecycle block.
const BLOCK_BYTES: usize = 1 << 20;
/// zstd's level: higher ones save about 2 % and cost twice the time.
const LEVEL: i32 = 3;

/// What has been written so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes.
    pub bytes: u64,
    /// Frames.
    pub frames: u64,
    /// Switches.
    pub switches: u64,
    /// Wakings, those of new tasks included.
    pub wakings: u64,
    /// Forks.
    pub forks: u64,
    /// Execs.
    pub execs: u64,
    /// Exits.
    pub exits: u64,
    /// All other events.
    pub others: u64,
}

impl Written {
    /// All events.
    pub fn events(&self) -> u64 {
        self.switches + self.wakings + self.forks + self.execs + self.exits + self.others
    }
}

/// Writes one trace. Nothing is sought: any [`Write`] will do.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    written: Written,
    index: Vec<(u64, Header)>,
    seq: BTreeMap<u16, u32>,
    cpus: BTreeMap<CpuId, SchedBlock>,
    lifecycle: LifeEncoder,
    recorder: LifeEncoder,
}

impl<W: Write> Writer<W> {
    /// Writes the file's header and the metadata.
    ///
    /// # Errors
    /// When writing fails.
    pub fn new(out: W, meta: &Metadata) -> Result<Writer<W>, Error> {
        let mut writer = Writer {
            out,
            written: Written::default(),
            index: Vec::new(),
            seq: BTreeMap::new(),
            cpus: BTreeMap::new(),
            lifecycle: LifeEncoder::default(),
            recorder: LifeEncoder::default(),
        };
        let mut header = frame::MAGIC.to_vec();
        header.extend(frame::MAJOR.to_le_bytes());
        header.extend(frame::MINOR.to_le_bytes());
        let crc = crc32fast::hash(&header);
        header.extend(crc.to_le_bytes());
        writer.write(&header)?;
        let header = Header {
            kind: FrameType::Meta as u8,
            min: meta.start,
            max: meta.start,
            ..Header::default()
        };
        writer.frame(header, &metadata::encode(meta)?, &[])?;
        Ok(writer)
    }

    /// Adds a scheduling event of a CPU.
    ///
    /// # Errors
    /// When writing fails.
    pub fn sched(&mut self, cpu: CpuId, event: SchedEvent) -> Result<(), Error> {
        match event.kind {
            SchedKind::Switch { .. } => self.written.switches += 1,
            SchedKind::Waking { .. } => self.written.wakings += 1,
        }
        let block = self.cpus.entry(cpu).or_default();
        block.push(event);
        if block.len() < BLOCK_EVENTS {
            return Ok(());
        }
        let mut full = std::mem::take(block);
        self.sched_frame(cpu, &full)?;
        full.clear();
        self.cpus.insert(cpu, full);
        Ok(())
    }

    /// Adds a lifecycle event, or one of the recorder's own.
    ///
    /// # Errors
    /// When writing fails.
    pub fn life(&mut self, stream: Stream, event: LifeEvent) -> Result<(), Error> {
        let count = match event.kind {
            LifeKind::Fork(_) => &mut self.written.forks,
            LifeKind::Exec(_) => &mut self.written.execs,
            LifeKind::Exit(_) => &mut self.written.exits,
            _ => &mut self.written.others,
        };
        *count += 1;
        let block = if stream == Stream::Recorder {
            &mut self.recorder
        } else {
            &mut self.lifecycle
        };
        block.push(&event);
        if block.out.len() >= BLOCK_BYTES {
            let full = std::mem::take(block);
            self.life_frame(stream, full)?;
        }
        Ok(())
    }

    /// Closes every open block and passes everything on.
    ///
    /// # Errors
    /// When writing fails.
    pub fn flush(&mut self) -> Result<(), Error> {
        let mut cpus = std::mem::take(&mut self.cpus);
        for (cpu, block) in &mut cpus {
            self.sched_frame(*cpu, block)?;
            block.clear();
        }
        self.cpus = cpus;
        let lifecycle = std::mem::take(&mut self.lifecycle);
        self.life_frame(Stream::Lifecycle, lifecycle)?;
        // Last, because it says that the others are complete.
        let recorder = std::mem::take(&mut self.recorder);
        self.life_frame(Stream::Recorder, recorder)?;
        self.out.flush()?;
        Ok(())
    }

    /// What has been written so far.
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Writes the summary, the index and the trailer.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(mut self, summary: &Summary) -> Result<(W, Written), Error> {
        self.flush()?;
        let header = Header {
            kind: FrameType::Summary as u8,
            min: summary.end,
            max: summary.end,
            ..Header::default()
        };
        self.frame(header, &metadata::encode(summary)?, &[])?;
        let mut index = Vec::new();
        let mut end = 0;
        for (offset, header) in &self.index {
            put(&mut index, offset - end);
            end = *offset;
            index.push(header.kind);
            for field in [
                u32::from(header.stream),
                header.seq,
                header.payload,
                header.packed,
                header.raw,
                header.events,
            ] {
                put(&mut index, u64::from(field));
            }
            put(&mut index, header.min.0);
            put(&mut index, header.max.0 - header.min.0);
            index.extend(header.crc.to_le_bytes());
        }
        let at = self.written.bytes;
        self.frame(
            Header {
                kind: FrameType::Index as u8,
                ..Header::default()
            },
            &index,
            &[],
        )?;
        let mut trailer = at.to_le_bytes().to_vec();
        let crc = crc32fast::hash(&trailer);
        trailer.extend(crc.to_le_bytes());
        trailer.extend(frame::END_MAGIC);
        self.write(&trailer)?;
        self.out.flush()?;
        Ok((self.out, self.written))
    }

    fn sched_frame(&mut self, cpu: CpuId, block: &SchedBlock) -> Result<(), Error> {
        let Some((min, max)) = block.span() else {
            return Ok(());
        };
        let (mut columns, mut bits) = (Vec::new(), Vec::new());
        block.encode(&mut columns, &mut bits);
        let stream = stream_number(Stream::Cpu(cpu));
        let events = u32::try_from(block.len()).unwrap_or(u32::MAX);
        self.frame(
            Header {
                kind: FrameType::Sched as u8,
                stream,
                events,
                min,
                max,
                ..Header::default()
            },
            &columns,
            &bits,
        )
    }

    fn life_frame(&mut self, stream: Stream, block: LifeEncoder) -> Result<(), Error> {
        let (min, max) = match block.span {
            Some(span) => span,
            None => return Ok(()),
        };
        let (stream, events) = (stream_number(stream), block.events);
        self.frame(
            Header {
                kind: FrameType::Life as u8,
                stream,
                events,
                min,
                max,
                ..Header::default()
            },
            &block.out,
            &[],
        )
    }

    /// Writes a frame: `raw` compressed, `bits` as they are.
    fn frame(&mut self, mut header: Header, raw: &[u8], bits: &[u8]) -> Result<(), Error> {
        let mut payload = zstd::bulk::compress(raw, LEVEL)?;
        let size = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        (header.packed, header.raw) = (size(payload.len()), size(raw.len()));
        payload.extend_from_slice(bits);
        header.payload = size(payload.len());
        header.crc = crc32fast::hash(&payload);
        // The index is not an event frame: it must not number one.
        let seq = self.seq.entry(header.stream).or_default();
        if header.events > 0 {
            header.seq = *seq;
            *seq = seq.wrapping_add(1);
        }
        self.index.push((self.written.bytes, header));
        self.written.frames += 1;
        self.write(&header.encode())?;
        self.write(&payload)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes)?;
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }
}
