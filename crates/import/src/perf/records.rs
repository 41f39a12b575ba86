//! The records of a perf.data file (include/uapi/linux/perf_event.h, tools/perf/util/event.h).

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::bytes::Bytes;
use super::file::{damaged, sample, Attr, File};
use crate::Error;

/// Types of records.
mod kind {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    /// perf's own types begin here: they have no time.
    pub const OWN: u32 = 64;
    pub const AUXTRACE: u32 = 71;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// `PERF_RECORD_MISC_COMM_EXEC`; `PERF_RECORD_MISC_MMAP_DATA` has the same bit.
const MISC_EXEC: u16 = 1 << 13;
/// `PROT_EXEC`.
const EXECUTABLE: u32 = 4;
/// Bytes of a record's header.
const HEADER: usize = 8;
/// The times of its size that a compressed record may grow by, beyond the first bytes.
const EXPANSION: u64 = 256;
const EXPANSION_FREE: u64 = 1 << 24;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// A tracepoint's: its id, and its fields.
    Sample {
        tracepoint: u64,
        raw: &'a [u8],
    },
    /// `pid` and `ppid` are processes, `tid` and `ptid` tasks.
    Fork {
        pid: u32,
        tid: u32,
        ppid: u32,
        ptid: u32,
    },
    Exit {
        pid: u32,
        tid: u32,
    },
    /// A new name; with `exec` that of a program.
    Comm {
        pid: u32,
        tid: u32,
        comm: &'a [u8],
        exec: bool,
    },
    /// A file is mapped to be executed.
    Map {
        pid: u32,
        file: &'a [u8],
    },
    Lost {
        count: u64,
    },
}

/// A record that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// In ns of the file's clock; 0 for what perf read of /proc before it began.
    pub time: u64,
    /// The CPU on which it was written.
    pub cpu: Option<u16>,
    /// What it says.
    pub what: What<'a>,
}

impl File<'_> {
    /// Calls `each` with every record that is read, in the order of the file.
    ///
    /// # Errors
    /// A record is damaged; those of `each`.
    pub fn records<E: From<Error>>(
        &self,
        mut each: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut unpacked = Unpacked::default();
        let mut rest = Bytes(self.data);
        while !rest.0.is_empty() {
            let at = self.data_at + (self.data.len() - rest.0.len()) as u64;
            let broken = || damaged(format!("the record at byte {at} is cut off"));
            let (kind, misc, body) = next(&mut rest).ok_or_else(broken)?;
            match kind {
                kind::AUXTRACE => {
                    // Its data follow it.
                    let size = Bytes(body)
                        .u64()
                        .and_then(|size| usize::try_from(size).ok());
                    size.and_then(|size| rest.take(size)).ok_or_else(broken)?;
                }
                kind::COMPRESSED | kind::COMPRESSED2 => {
                    let packed = packed(kind, body).ok_or_else(broken)?;
                    unpacked.add(packed, at, |kind, misc, body| {
                        self.give(kind, misc, body, at, &mut each)
                    })?;
                }
                kind => self.give(kind, misc, body, at, &mut each)?,
            }
        }
        if unpacked.rest.is_empty() {
            return Ok(());
        }
        Err(damaged("its compressed data are cut off").into())
    }

    fn give<E: From<Error>>(
        &self,
        kind: u32,
        misc: u16,
        body: &[u8],
        at: u64,
        each: &mut impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if kind >= kind::OWN {
            return Ok(());
        }
        let broken = || {
            damaged(format!(
                "the record at byte {at}, of type {kind}, is too short"
            ))
        };
        match self.record(kind, misc, body).ok_or_else(broken)? {
            Some(record) => each(record),
            None => Ok(()),
        }
    }

    /// A record; `Some(None)` for one that is not read.
    fn record<'b>(&self, kind: u32, misc: u16, body: &'b [u8]) -> Option<Option<Record<'b>>> {
        if kind == kind::SAMPLE {
            return self.sample(body);
        }
        if !matches!(
            kind,
            kind::MMAP
                | kind::LOST
                | kind::COMM
                | kind::EXIT
                | kind::FORK
                | kind::MMAP2
                | kind::LOST_SAMPLES
        ) {
            return Some(None);
        }
        let attr = self.attrs.first()?;
        let (mut body, time, cpu) = trailer(attr, body)?;
        let what = match kind {
            kind::FORK | kind::EXIT => {
                let (pid, ppid) = (body.u32()?, body.u32()?);
                let (tid, ptid) = (body.u32()?, body.u32()?);
                match kind {
                    kind::FORK => What::Fork {
                        pid,
                        tid,
                        ppid,
                        ptid,
                    },
                    _ => What::Exit { pid, tid },
                }
            }
            kind::COMM => What::Comm {
                pid: body.u32()?,
                tid: body.u32()?,
                comm: body.text()?,
                exec: misc & MISC_EXEC != 0,
            },
            kind::LOST => {
                body.u64()?; // the id
                What::Lost { count: body.u64()? }
            }
            kind::LOST_SAMPLES => What::Lost { count: body.u64()? },
            kind => {
                let pid = body.u32()?;
                // The tid, the place, and in MMAP2 the inode.
                body.take(if kind == kind::MMAP { 28 } else { 52 })?;
                let executable = match kind {
                    kind::MMAP => misc & MISC_EXEC == 0,
                    _ => {
                        let prot = body.u32()?;
                        body.u32()?; // flags
                        prot & EXECUTABLE != 0
                    }
                };
                let file = body.text()?;
                if !executable {
                    return Some(None);
                }
                What::Map { pid, file }
            }
        };
        Some(Some(Record { time, cpu, what }))
    }

    /// A sample; `Some(None)` for one that is not a tracepoint's.
    fn sample<'b>(&self, body: &'b [u8]) -> Option<Option<Record<'b>>> {
        let mut bytes = Bytes(body);
        let first = self.attrs.first()?;
        let attr = if first.sample_type & sample::IDENTIFIER != 0 {
            let id = Bytes(body).u64()?;
            let by_id = self.by_id.get(&id).and_then(|at| self.attrs.get(*at));
            match by_id {
                Some(attr) => attr,
                None => return Some(None),
            }
        } else {
            first
        };
        let has = |bit: u64| attr.sample_type & bit != 0;
        let mut number = |bit: u64| if has(bit) { bytes.u64() } else { Some(0) };
        number(sample::IDENTIFIER)?;
        number(sample::IP)?;
        number(sample::TID)?;
        let time = number(sample::TIME)?;
        number(sample::ADDR)?;
        number(sample::ID)?;
        number(sample::STREAM_ID)?;
        let cpu = number(sample::CPU)? as u32;
        number(sample::PERIOD)?;
        let (Some(tracepoint), true) = (attr.tracepoint, has(sample::RAW)) else {
            return Some(None);
        };
        if has(sample::CALLCHAIN) {
            let frames = usize::try_from(bytes.u64()?).ok()?;
            bytes.take(frames.checked_mul(8)?)?;
        }
        let size = bytes.u32()? as usize;
        let raw = bytes.take(size)?;
        let cpu = Some(u16::try_from(cpu).ok()?);
        let what = What::Sample { tracepoint, raw };
        Some(Some(Record { time, cpu, what }))
    }
}

/// The next record: its type, flags and body.
fn next<'a>(bytes: &mut Bytes<'a>) -> Option<(u32, u16, &'a [u8])> {
    let mut rest = *bytes;
    let (kind, misc, size) = (rest.u32()?, rest.u16()?, rest.u16()?);
    let body = rest.take(usize::from(size).checked_sub(HEADER)?)?;
    *bytes = rest;
    Some((kind, misc, body))
}

/// A body without what `sample_id_all` puts behind it, of which it returns time and CPU.
fn trailer<'a>(attr: &Attr, body: &'a [u8]) -> Option<(Bytes<'a>, u64, Option<u16>)> {
    if !attr.sample_id_all {
        return Some((Bytes(body), 0, None));
    }
    let has = |bit: u64| attr.sample_type & bit != 0;
    let order = [
        sample::TID,
        sample::TIME,
        sample::ID,
        sample::STREAM_ID,
        sample::CPU,
        sample::IDENTIFIER,
    ];
    let parts = order.into_iter().filter(|bit| has(*bit));
    let len = parts.clone().count() * 8;
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(len)?)?;
    let (mut trailer, mut time, mut cpu) = (Bytes(trailer), 0, None);
    for bit in parts {
        let value = trailer.u64()?;
        match bit {
            sample::TIME => time = value,
            sample::CPU => cpu = u16::try_from(value as u32).ok(),
            _ => {}
        }
    }
    Some((Bytes(body), time, cpu))
}

/// The bytes of a compressed record: since Linux 6.16 its length stands before them.
fn packed(kind: u32, body: &[u8]) -> Option<&[u8]> {
    if kind == kind::COMPRESSED {
        return Some(body);
    }
    let mut body = Bytes(body);
    let len = usize::try_from(body.u64()?).ok()?;
    body.take(len)
}

/// The records of a stream that zstd has compressed. A record may reach from one compressed
/// record into the next.
#[derive(Default)]
struct Unpacked {
    decoder: Option<Decoder<'static>>,
    /// What is not a whole record yet.
    rest: Vec<u8>,
    taken: u64,
    given: u64,
}

impl Unpacked {
    fn add<E: From<Error>>(
        &mut self,
        packed: &[u8],
        at: u64,
        mut each: impl FnMut(u32, u16, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let broken = |_| damaged(format!("the record at byte {at} is no zstd"));
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert(Decoder::new().map_err(broken)?),
        };
        self.taken += packed.len() as u64;
        let mut input = InBuffer::around(packed);
        let mut buffer = vec![0; 1 << 17];
        loop {
            let mut output = OutBuffer::around(buffer.as_mut_slice());
            decoder.run(&mut input, &mut output).map_err(broken)?;
            let filled = output.pos();
            self.given += filled as u64;
            if self.given > EXPANSION_FREE.saturating_add(self.taken.saturating_mul(EXPANSION)) {
                let what = format!("the record at byte {at} expands beyond {EXPANSION} times");
                return Err(damaged(what).into());
            }
            self.rest
                .extend_from_slice(buffer.get(..filled).unwrap_or_default());
            let mut whole = Bytes(&self.rest);
            while let Some((kind, misc, body)) = next(&mut whole) {
                each(kind, misc, body)?;
            }
            let used = self.rest.len() - whole.0.len();
            // No record has more bytes than its size can say.
            if whole.0.len() > usize::from(u16::MAX) {
                return Err(damaged(format!("the record at byte {at} holds a broken one")).into());
            }
            self.rest.drain(..used);
            if filled < buffer.len() && input.pos() == packed.len() {
                return Ok(());
            }
        }
    }
}
