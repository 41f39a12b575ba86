//! Metadata and summary as bytes: a sequence of fields, each a tag (varint), a length (varint)
//! and a bincode value. No other module uses bincode.
//!
//! bincode's configuration is `standard()`: little-endian, integers of variable
//! length. A field keeps its tag and its type forever. A reader skips unknown tags; a
//! missing field has its default.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::error::within;
use crate::event::Stream;
use crate::limits;
use crate::meta::{Metadata, Summary};
use crate::tally::Events;
use crate::varint::{put, Cursor};
use crate::zip::unpacking;
use crate::Fault;

/// Bounds the memory that bincode allocates for a value.
const MEMORY: usize = 4 * limits::SECTION_BODY as usize;
type Config = Configuration<LittleEndian, Varint, Limit<MEMORY>>;
const CONFIG: Config = bincode::config::standard().with_limit::<MEMORY>();

/// Both directions of a field list.
pub trait Fields {
    /// Handles one field: writes it, or reads it when its tag comes.
    fn field<T: Serialize + DeserializeOwned>(&mut self, tag: u64, value: &mut T) -> Step;

    /// As [`Fields::field`], for a value that few traces have. `None` is not stored.
    fn rare<T>(&mut self, tag: u64, value: &mut Option<T>) -> Step
    where
        T: Serialize + DeserializeOwned,
    {
        self.field(tag, value)
    }
}

pub type Step = Result<(), Fault>;

/// A sequence of fields.
pub trait Section: Default {
    /// The body's name in errors.
    const BODY: &'static str;

    /// Handles all fields, in order. Their tags stand in FORMAT.md.
    fn fields(&mut self, fields: &mut impl Fields) -> Step;
}

impl Section for Metadata {
    const BODY: &'static str = "the metadata's length";

    fn fields(&mut self, fields: &mut impl Fields) -> Step {
        fields.field(1, &mut self.tool_version)?;
        fields.field(2, &mut self.host)?;
        fields.field(3, &mut self.kernel)?;
        fields.field(4, &mut self.machine)?;
        fields.field(5, &mut self.cpus)?;
        fields.field(6, &mut self.page_size)?;
        fields.field(7, &mut self.start)?;
        fields.field(8, &mut self.start_clock)?;
        fields.field(9, &mut self.scope)?;
        fields.field(10, &mut self.command)?;
        fields.field(11, &mut self.root)?;
        fields.field(12, &mut self.cwd)?;
        fields.field(13, &mut self.states)?;
        fields.field(14, &mut self.options.argv_limit)?;
        fields.field(15, &mut self.options.cpus)?;
        fields.field(16, &mut self.options.buffer)?;
        fields.field(17, &mut self.options.irq_known)?;
        fields.field(18, &mut self.missing)?;
        fields.field(19, &mut self.ci)?;
        fields.rare(20, &mut self.not_traced)?;
        fields.rare(21, &mut self.origin)?;
        fields.rare(22, &mut self.extras)?;
        fields.rare(23, &mut self.recorder)?;
        fields.rare(24, &mut self.hardware)?;
        fields.rare(25, &mut self.options.allowed)
    }
}

impl Section for Summary {
    const BODY: &'static str = "the summary's length";

    fn fields(&mut self, fields: &mut impl Fields) -> Step {
        fields.field(1, &mut self.end)?;
        fields.field(2, &mut self.end_clock)?;
        fields.field(3, &mut self.status)?;
        fields.field(4, &mut self.reason)?;
        fields.field(5, &mut self.cost.recorder_ns)?;
        fields.field(6, &mut self.cost.bpf_ns)?;
        fields.field(7, &mut self.cost.setup_ns)?;
        // As `Events::by_kind`; empty without a tally.
        let events = self.tally.iter().flat_map(|tally| tally.events.by_kind());
        let mut events: Vec<u64> = events.map(|(_, count)| count).collect();
        let mut tally = self.tally.take().unwrap_or_default();
        let lost = tally.lost.iter();
        let mut lost: Vec<(u32, u64)> = lost.map(|(of, count)| (of.stored(), *count)).collect();
        fields.field(8, &mut events)?;
        fields.field(9, &mut tally.frames)?;
        fields.field(10, &mut tally.largest_inversion)?;
        fields.field(11, &mut tally.commit_delay)?;
        fields.field(12, &mut lost)?;
        fields.field(13, &mut tally.suspends)?;
        tally.events = Events::of(&events);
        let lost = lost.into_iter();
        let lost = lost.filter_map(|(of, count)| Some((Stream::of_stored(of.into())?, count)));
        tally.lost = lost.collect();
        self.tally = Some(tally).filter(|_| !events.is_empty());
        fields.rare(14, &mut self.usage)?;
        fields.rare(15, &mut self.machine)
    }
}

impl Section for CutOff {
    const BODY: &'static str = "the cut's length";

    fn fields(&mut self, fields: &mut impl Fields) -> Step {
        fields.field(1, &mut self.frame)?;
        fields.field(2, &mut self.offset)?;
        fields.field(3, &mut self.why)
    }
}

/// The end of the original of a recovered trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutOff {
    /// The number of the first missing frame.
    pub frame: u64,
    /// The byte at which the trace ended.
    pub offset: u64,
    /// The reason.
    pub why: String,
}

/// Appends fields to a body.
struct Put(Vec<u8>);

impl Fields for Put {
    fn field<T: Serialize + DeserializeOwned>(&mut self, tag: u64, value: &mut T) -> Step {
        let bytes = bincode::serde::encode_to_vec(&*value, CONFIG)
            .map_err(|_| Fault::Content("a field cannot be written"))?;
        put(&mut self.0, tag);
        put(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(&bytes);
        Ok(())
    }

    fn rare<T>(&mut self, tag: u64, value: &mut Option<T>) -> Step
    where
        T: Serialize + DeserializeOwned,
    {
        if value.is_none() {
            return Ok(());
        }
        self.field(tag, value)
    }
}

/// Takes fields out of a body.
struct Take<'a>(Vec<(u64, &'a [u8])>);

impl<'a> Take<'a> {
    fn new(body: &'a [u8]) -> Result<Take<'a>, Fault> {
        let mut cursor = Cursor::new(body);
        let mut fields: Vec<(u64, &[u8])> = Vec::new();
        while cursor.left() > 0 {
            let tag = cursor.int()?;
            let len = cursor.int()?;
            let value = cursor.take(len)?;
            if fields.iter().any(|(known, _)| *known == tag) {
                return Err(Fault::Content("duplicate field"));
            }
            fields.push((tag, value));
            within(
                "the number of fields",
                fields.len() as u64,
                limits::SECTION_FIELDS,
            )?;
        }
        Ok(Take(fields))
    }
}

impl Fields for Take<'_> {
    fn field<T: Serialize + DeserializeOwned>(&mut self, tag: u64, value: &mut T) -> Step {
        let Some(at) = self.0.iter().position(|(known, _)| *known == tag) else {
            return Ok(());
        };
        let (_, bytes) = self.0.swap_remove(at);
        let (read, used) = bincode::serde::decode_from_slice(bytes, CONFIG)
            .map_err(|_| Fault::Content("undecodable field"))?;
        if used != bytes.len() {
            return Err(Fault::Content("a field is longer than its value"));
        }
        *value = read;
        Ok(())
    }
}

/// Writes a body.
pub fn put_section<T: Section>(mut value: T) -> Result<Vec<u8>, Fault> {
    let mut out = Put(Vec::new());
    value.fields(&mut out)?;
    within(T::BODY, out.0.len() as u64, limits::SECTION_BODY)?;
    Ok(out.0)
}

/// Reads a packed body. Returns also the number of unknown fields.
pub fn unpack<T: Section>(payload: &[u8]) -> Result<(T, u64), Fault> {
    unpacking(|unpacker| {
        let mut cursor = Cursor::new(payload);
        let body = unpacker.unpack(&mut cursor, limits::SECTION_BODY)?;
        if cursor.left() > 0 {
            return Err(Fault::Content("trailing bytes after the body"));
        }
        take_section(body)
    })
}

/// Reads a body. Returns also the number of unknown fields.
fn take_section<T: Section>(body: &[u8]) -> Result<(T, u64), Fault> {
    let mut fields = Take::new(body)?;
    let mut value = T::default();
    value.fields(&mut fields)?;
    Ok((value, fields.0.len() as u64))
}

#[cfg(test)]
#[path = "tests/section.rs"]
mod tests;
