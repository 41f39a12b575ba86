//! The parts of a perf.data file: header, attributes, feature sections, data
//! (tools/perf/Documentation/perf.data-file-format.txt).

use std::collections::HashMap;

use super::bytes::Bytes;
use crate::Error;

const MAGIC: &[u8] = b"PERFILE2";
/// The magic of a machine with the other byte order.
const SWAPPED: &[u8] = b"2ELIFREP";
/// Bytes of the header of a file that perf wrote to a pipe.
const PIPE: u64 = 16;
/// The most bytes of `struct perf_event_attr` and its ids' section.
const ATTR: u64 = 4096;
/// The most attributes, and the most ids of all of them: one for each attribute and CPU.
const ATTRS: u64 = 4096;
const IDS: usize = 1 << 20;
/// The first bytes of `struct perf_event_attr` that hold what is read of it.
const ATTR_USED: usize = 96;

/// Feature bits (`HEADER_*`, tools/perf/util/header.h).
pub mod feature {
    pub const TRACING_DATA: usize = 1;
    pub const HOSTNAME: usize = 3;
    pub const OSRELEASE: usize = 4;
    pub const VERSION: usize = 5;
    pub const ARCH: usize = 6;
    pub const NRCPUS: usize = 7;
    pub const CMDLINE: usize = 11;
    pub const CLOCK_DATA: usize = 29;
}

/// Bits of `sample_type` (include/uapi/linux/perf_event.h).
pub mod sample {
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;

/// An event that perf recorded (`struct perf_event_attr`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    /// The id of a tracepoint; `None` for another kind of event.
    pub tracepoint: Option<u64>,
    /// The parts of a sample.
    pub sample_type: u64,
    /// Other records end with the time and the CPU, too.
    pub sample_id_all: bool,
    /// The clock of the times, if not perf's own.
    pub clock: Option<u32>,
    /// The number of its ids: one for each CPU.
    pub ids: usize,
}

/// The time of the day at a time of the file's clock, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    pub real: u64,
    pub at: u64,
}

/// A file's parts.
#[derive(Debug)]
pub struct File<'a> {
    pub attrs: Vec<Attr>,
    /// The index in `attrs` of each event's id.
    pub by_id: HashMap<u64, usize>,
    /// The records, and their first byte.
    pub data: &'a [u8],
    pub data_at: u64,
    features: HashMap<usize, &'a [u8]>,
}

/// A damage in words.
pub fn damaged(what: impl Into<String>) -> Error {
    Error::Damaged {
        format: "perf.data",
        what: what.into(),
    }
}

/// Something that is not read, in words.
pub fn refused(what: &str) -> Error {
    damaged(what)
}

impl<'a> File<'a> {
    /// Finds the parts. Nothing is copied but attributes and ids.
    ///
    /// # Errors
    /// It is no perf.data file of a little-endian machine, was written to a pipe or not
    /// completed, or a part lies outside of it.
    pub fn read(all: &'a [u8]) -> Result<File<'a>, Error> {
        let mut header = Bytes(all);
        match header.take(8) {
            Some(MAGIC) => {}
            Some(SWAPPED) => return Err(refused("of a big-endian machine, which is not read")),
            _ => return Err(refused("not a file of perf record")),
        }
        let cut = || damaged("the header is cut off");
        if header.u64().ok_or_else(cut)? == PIPE {
            let what = "perf wrote it to a pipe, which is not read; record with -o FILE";
            return Err(refused(what));
        }
        let attr_size = header.u64().ok_or_else(cut)?;
        let mut section = || Some((header.u64()?, header.u64()?));
        let attrs = section().ok_or_else(cut)?;
        let data = section().ok_or_else(cut)?;
        section().ok_or_else(cut)?; // event types, unused since Linux 3.10
        let bits = header.take(32).ok_or_else(cut)?;
        if data.1 == 0 {
            return Err(refused("has no data: perf record did not end properly"));
        }
        let (attrs, by_id) = attributes(all, attrs, attr_size)?;
        Ok(File {
            attrs,
            by_id,
            data: part(all, data, "the data")?,
            data_at: data.0,
            features: features(all, data, bits)?,
        })
    }

    /// The bytes of a feature's section.
    pub fn feature(&self, bit: usize) -> Option<&'a [u8]> {
        self.features.get(&bit).copied()
    }

    /// A feature's text.
    pub fn text(&self, bit: usize) -> Option<String> {
        let text = string(&mut Bytes(self.feature(bit)?))?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// perf's own arguments.
    pub fn cmdline(&self) -> Vec<Vec<u8>> {
        let mut bytes = Bytes(self.feature(feature::CMDLINE).unwrap_or_default());
        let count = bytes.u32().unwrap_or(0);
        let args = (0..count).map_while(|_| string(&mut bytes));
        args.map(<[u8]>::to_vec).collect()
    }

    /// The number of CPUs that were online.
    pub fn online(&self) -> Option<u32> {
        let mut bytes = Bytes(self.feature(feature::NRCPUS)?);
        // Online comes second (write_nrcpus, tools/perf/util/header.c).
        bytes.u32()?;
        bytes.u32()
    }

    /// The clock's relation to the time of the day, if perf recorded it (`-k`).
    pub fn wall(&self) -> Option<Wall> {
        let mut bytes = Bytes(self.feature(feature::CLOCK_DATA)?);
        let (version, clock) = (bytes.u32()?, bytes.u32()?);
        let (real, at) = (bytes.u64()?, bytes.u64()?);
        let same = |attr: &Attr| attr.clock == Some(clock);
        (version == 1 && self.attrs.iter().all(same)).then_some(Wall { real, at })
    }
}

/// A length and a text, padded with NULs.
fn string<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let len = bytes.u32()?;
    let text = bytes.take(len as usize)?;
    text.split(|byte| *byte == 0).next()
}

fn part<'a>(all: &'a [u8], (at, len): (u64, u64), what: &str) -> Result<&'a [u8], Error> {
    let range = usize::try_from(at).ok().zip(usize::try_from(len).ok());
    let end = range.and_then(|(at, len)| Some(at..at.checked_add(len)?));
    end.and_then(|range| all.get(range)).ok_or_else(|| {
        let end = at.saturating_add(len);
        damaged(format!(
            "{what} from byte {at} to {end}, the file has {}",
            all.len()
        ))
    })
}

type Attributes = (Vec<Attr>, HashMap<u64, usize>);

fn attributes(all: &[u8], section: (u64, u64), size: u64) -> Result<Attributes, Error> {
    // The last 16 bytes are the section of the ids.
    let used = size.checked_sub(16).filter(|_| size <= ATTR);
    let used = used.filter(|used| *used >= 64);
    let used = used.ok_or_else(|| damaged(format!("attributes of {size} bytes")))? as usize;
    if section.1 / size > ATTRS {
        return Err(Error::Count {
            format: "perf.data",
            what: "events",
            limit: ATTRS as usize,
        });
    }
    let bytes = part(all, section, "the attributes")?;
    let (mut attrs, mut by_id, mut room) = (Vec::new(), HashMap::new(), IDS);
    for entry in bytes.chunks_exact(size as usize) {
        let (attr, mut rest) = entry.split_at(used);
        // An older, shorter attribute has zeros in the fields that it lacks.
        let mut padded = [0; ATTR_USED];
        for (to, from) in padded.iter_mut().zip(attr) {
            *to = *from;
        }
        let ids = Bytes::sections(&mut rest).ok_or_else(|| damaged("an attribute is cut off"))?;
        let ids = part(all, ids, "an attribute's ids")?;
        room = room.checked_sub(ids.len() / 8).ok_or(Error::Count {
            format: "perf.data",
            what: "ids",
            limit: IDS,
        })?;
        for id in ids.chunks_exact(8) {
            let id = Bytes(id).u64().unwrap_or(0);
            by_id.insert(id, attrs.len());
        }
        attrs.push(attribute(&padded, ids.len() / 8));
    }
    if attrs.is_empty() {
        return Err(damaged("no events"));
    }
    Ok((attrs, by_id))
}

fn attribute(bytes: &[u8; ATTR_USED], ids: usize) -> Attr {
    let at = |at: usize| Bytes(bytes.get(at..).unwrap_or_default());
    let kind = at(0).u32().unwrap_or(0);
    let flags = at(40).u64().unwrap_or(0);
    let clock = at(92).u32().filter(|_| flags & USE_CLOCKID != 0);
    Attr {
        tracepoint: at(8).u64().filter(|_| kind == TRACEPOINT),
        sample_type: at(24).u64().unwrap_or(0),
        sample_id_all: flags & SAMPLE_ID_ALL != 0,
        clock,
        ids,
    }
}

/// The sections of the features follow the data, in the order of their bits.
fn features<'a>(
    all: &'a [u8],
    data: (u64, u64),
    bits: &[u8],
) -> Result<HashMap<usize, &'a [u8]>, Error> {
    let set = bits.iter().enumerate().flat_map(|(at, byte)| {
        let bits = (0..8).filter(move |bit| byte & (1 << bit) != 0);
        bits.map(move |bit| at * 8 + bit)
    });
    let start = data.0.saturating_add(data.1);
    let table = part(all, (start, (all.len() as u64).saturating_sub(start)), "")?;
    let (mut table, mut features) = (table, HashMap::new());
    for bit in set {
        let cut = || damaged("the table of its features is cut off");
        let section = Bytes::sections(&mut table).ok_or_else(cut)?;
        features.insert(bit, part(all, section, "a feature")?);
    }
    Ok(features)
}
