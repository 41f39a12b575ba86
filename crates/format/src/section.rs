//! Stores the metadata and the summary of a trace as bytes: a sequence of fields, each with a tag (varint), a
//! length (varint) and a bincode value. No other module uses bincode.
//!
//! bincode's configuration is `standard()`: little-endian, integers of variable length. A field keeps its tag
//! and its type forever. A reader skips unknown tags; a missing field has its default.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::error::within;
use crate::event::Stream;
use crate::limits;
use crate::mask::{Mask, Masked, Texts};
use crate::meta::{Metadata, Summary};
use crate::scripts;
use crate::tally::Events;
use crate::varint::{put, Cursor};
use crate::zip::unpacking;
use crate::Fault;

/// The largest number of bytes that bincode may allocate for the value of one field of the metadata or the
/// summary.
const MEMORY: usize = 4 * limits::SECTION_BODY as usize;
type Config = Configuration<LittleEndian, Varint, Limit<MEMORY>>;
const CONFIG: Config = bincode::config::standard().with_limit::<MEMORY>();

/// One way to go through the fields of the metadata or the summary: to write them, to read them, or to pass their texts
/// to a mask, which replaces secrets.
///
/// Masking uses the same list of fields as writing, and the type of every field has to pass its texts to a [`Mask`], so
/// no text can be stored unmasked by mistake.
pub trait Fields {
    /// Processes one field of the metadata or the summary: writes it, reads it if its tag was stored, or passes its
    /// texts to a mask, which replaces secrets.
    fn field<T: Field>(&mut self, of: Tag, value: &mut T) -> Step;

    /// Like [`Fields::field`], for an optional value that few traces have. `None` is not stored.
    fn rare<T: Field>(&mut self, of: Tag, value: &mut Option<T>) -> Step {
        self.field(of, value)
    }

    /// Like [`Fields::field`], for a field with a command and its arguments, which are masked as one command
    /// line.
    fn command(&mut self, of: Tag, value: &mut Vec<Vec<u8>>) -> Step {
        self.field(of, value)
    }

    /// Like [`Fields::rare`], for a field with bytes that are numbers and not text, so they are not passed to the mask
    /// of secrets.
    fn numbers(&mut self, of: Tag, value: &mut Option<Vec<u8>>) -> Step {
        self.rare(of, value)
    }
}

/// The number that identifies a field in a file (its tag), and the field's name, by which a [`Mask`] recognizes fields
/// with secrets.
pub type Tag = (u64, &'static str);

/// The type of a value that can be stored as a field of the metadata or the summary.
pub trait Field: Serialize + DeserializeOwned + Texts {}

impl<T: Serialize + DeserializeOwned + Texts> Field for T {}

pub type Step = Result<(), Fault>;

/// The metadata or the summary of a trace, which is stored as a sequence of fields.
pub trait Section: Default {
    /// The words by which an error names the length of the metadata or of the summary.
    const BODY: &'static str;

    /// Passes all fields of the metadata or the summary to `fields`, in the order in which they are stored.
    /// FORMAT.md lists their tags.
    fn fields(&mut self, fields: &mut impl Fields) -> Step;

    /// Verifies that the values of the metadata or the summary that were read are within the limits of the
    /// format.
    fn check(&self) -> Step {
        Ok(())
    }
}

impl Section for Metadata {
    const BODY: &'static str = "the metadata's length";

    fn fields(&mut self, fields: &mut impl Fields) -> Step {
        fields.field((1, "tool_version"), &mut self.tool_version)?;
        fields.field((2, "host"), &mut self.host)?;
        fields.field((3, "kernel"), &mut self.kernel)?;
        fields.field((4, "machine"), &mut self.machine)?;
        fields.field((5, "cpus"), &mut self.cpus)?;
        fields.field((6, "page_size"), &mut self.page_size)?;
        fields.field((7, "start"), &mut self.start)?;
        fields.field((8, "start_clock"), &mut self.start_clock)?;
        fields.field((9, "scope"), &mut self.scope)?;
        fields.command((10, "command"), &mut self.command)?;
        fields.field((11, "root"), &mut self.root)?;
        fields.field((12, "cwd"), &mut self.cwd)?;
        fields.field((13, "states"), &mut self.states)?;
        fields.field((14, "argv_limit"), &mut self.options.argv_limit)?;
        fields.field((15, "cpus"), &mut self.options.cpus)?;
        fields.field((16, "buffer"), &mut self.options.buffer)?;
        fields.field((17, "irq_known"), &mut self.options.irq_known)?;
        fields.field((18, "missing"), &mut self.missing)?;
        fields.field((19, "ci"), &mut self.ci)?;
        fields.rare((20, "not_traced"), &mut self.not_traced)?;
        fields.rare((21, "origin"), &mut self.origin)?;
        fields.numbers((22, "extras"), &mut self.extras)?;
        fields.rare((23, "recorder"), &mut self.recorder)?;
        fields.rare((24, "hardware"), &mut self.hardware)?;
        fields.rare((25, "allowed"), &mut self.options.allowed)
    }
}

impl Section for Summary {
    const BODY: &'static str = "the summary's length";

    fn fields(&mut self, fields: &mut impl Fields) -> Step {
        fields.field((1, "end"), &mut self.end)?;
        fields.field((2, "end_clock"), &mut self.end_clock)?;
        fields.field((3, "status"), &mut self.status)?;
        fields.field((4, "reason"), &mut self.reason)?;
        fields.field((5, "recorder_ns"), &mut self.cost.recorder_ns)?;
        fields.field((6, "bpf_ns"), &mut self.cost.bpf_ns)?;
        fields.field((7, "setup_ns"), &mut self.cost.setup_ns)?;
        // The numbers are in the order of `Events::by_kind`. An empty list stands for a summary without a tally (the
        // numbers of events).
        let mut events: Vec<u64> = self
            .tally
            .iter()
            .flat_map(|tally| tally.events.by_kind())
            .map(|(_, count)| count)
            .collect();
        let mut tally = self.tally.take().unwrap_or_default();
        let mut lost: Vec<(u32, u64)> = tally
            .lost
            .iter()
            .map(|(stream, count)| (stream.stored(), *count))
            .collect();
        fields.field((8, "events"), &mut events)?;
        fields.field((9, "frames"), &mut tally.frames)?;
        fields.field((10, "largest_inversion"), &mut tally.largest_inversion)?;
        fields.field((11, "commit_delay"), &mut tally.commit_delay)?;
        fields.field((12, "lost"), &mut lost)?;
        fields.field((13, "suspends"), &mut tally.suspends)?;
        tally.events = Events::of(&events);
        tally.lost = lost
            .into_iter()
            .filter_map(|(stored, count)| Some((Stream::of_stored(stored.into())?, count)))
            .collect();
        self.tally = Some(tally).filter(|_| !events.is_empty());
        fields.rare((14, "usage"), &mut self.usage)?;
        fields.rare((15, "machine"), &mut self.machine)?;
        fields.rare((16, "full"), &mut self.full)?;
        self.bound_scripts();
        let scripts = std::mem::take(&mut self.scripts);
        let mut scripts = Some(scripts).filter(|scripts| !scripts.is_empty());
        let mut left_out = Some(self.scripts_left_out).filter(|count| *count > 0);
        fields.rare((17, "scripts"), &mut scripts)?;
        fields.rare((18, "scripts_left_out"), &mut left_out)?;
        fields.rare((19, "ended"), &mut self.ended)?;
        self.scripts = scripts.unwrap_or_default();
        self.scripts_left_out = left_out.unwrap_or(0);
        Ok(())
    }

    fn check(&self) -> Step {
        scripts::check(&self.scripts)
    }
}

impl Section for CutOff {
    const BODY: &'static str = "the cut's length";

    fn fields(&mut self, fields: &mut impl Fields) -> Step {
        fields.field((1, "frame"), &mut self.frame)?;
        fields.field((2, "offset"), &mut self.offset)?;
        fields.field((3, "why"), &mut self.why)
    }
}

/// Where and why the original trace ended, in a trace that `tr recover` made from a truncated one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutOff {
    /// The number of the first frame that is missing in the original trace.
    pub frame: u64,
    /// The offset in bytes at which the original trace ended.
    pub offset: u64,
    /// The reason why the original trace ended at the byte `offset`, as text.
    pub why: String,
}

/// Writes fields of the metadata or the summary by appending them to some bytes.
struct Put(Vec<u8>);

impl Fields for Put {
    fn field<T: Field>(&mut self, (tag, _): Tag, value: &mut T) -> Step {
        let bytes = bincode::serde::encode_to_vec(&*value, CONFIG)
            .map_err(|_| Fault::Content("a field cannot be written"))?;
        put(&mut self.0, tag);
        put(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(&bytes);
        Ok(())
    }

    fn rare<T: Field>(&mut self, of: Tag, value: &mut Option<T>) -> Step {
        if value.is_none() {
            return Ok(());
        }
        self.field(of, value)
    }
}

/// Reads fields of the metadata or the summary by their tags from the stored bytes.
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
    fn field<T: Field>(&mut self, (tag, _): Tag, value: &mut T) -> Step {
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

/// Passes each text of a trace's metadata or summary to a mask, which replaces secrets.
struct Pass<'a, M>(&'a mut M);

impl<M: Mask> Fields for Pass<'_, M> {
    fn field<T: Field>(&mut self, (_, name): Tag, value: &mut T) -> Step {
        self.0.field(name);
        value.pass(self.0)
    }

    fn command(&mut self, (_, name): Tag, value: &mut Vec<Vec<u8>>) -> Step {
        self.0.field(name);
        self.0.command(value);
        Ok(())
    }

    fn numbers(&mut self, _: Tag, _: &mut Option<Vec<u8>>) -> Step {
        Ok(())
    }
}

fn pass<T: Section>(value: &mut T, mask: &mut impl Mask) -> Step {
    value.fields(&mut Pass(mask))
}

impl Texts for Metadata {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        pass(self, mask)
    }
}

impl Texts for Summary {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        pass(self, mask)
    }
}

/// Encodes the metadata or the summary of a trace as bytes.
pub fn put_section<T: Section>(value: Masked<T>) -> Result<Vec<u8>, Fault> {
    let mut value = value.into_inner();
    let mut out = Put(Vec::new());
    value.fields(&mut out)?;
    within(T::BODY, out.0.len() as u64, limits::SECTION_BODY)?;
    Ok(out.0)
}

/// Decodes the metadata or the summary of a trace from a compressed payload. Also returns the number of unknown
/// fields.
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

/// Decodes the metadata or the summary of a trace from uncompressed bytes. Also returns the number of unknown
/// fields.
pub(crate) fn take_section<T: Section>(body: &[u8]) -> Result<(T, u64), Fault> {
    let mut fields = Take::new(body)?;
    let mut value = T::default();
    value.fields(&mut fields)?;
    value.check()?;
    Ok((value, fields.0.len() as u64))
}

#[cfg(test)]
#[path = "tests/section.rs"]
mod tests;
