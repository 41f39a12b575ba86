//! Serializes fields of events for `tr dump` where the form that serde derives would not suit a reader.

use std::fmt::Display;

use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde::Serialize;

use crate::ids::{Address, Argv, Comm, Stream, Tgid, Tid};

/// The result of serializing a field of an event.
pub type Shown<S> = Result<<S as Serializer>::Ok, <S as Serializer>::Error>;

/// Serializes the bytes of an event's field as text.
pub fn text<S: Serializer>(bytes: &impl AsRef<[u8]>, to: S) -> Shown<S> {
    to.serialize_str(&String::from_utf8_lossy(bytes.as_ref()))
}

/// Serializes the bytes of an event's field as text, or as null if they are empty.
pub fn given<S: Serializer>(bytes: &impl AsRef<[u8]>, to: S) -> Shown<S> {
    match bytes.as_ref() {
        [] => to.serialize_none(),
        bytes => text(&bytes, to),
    }
}

/// Serializes the bytes of an event's field as hexadecimal digits.
pub fn hex<S: Serializer>(bytes: &impl AsRef<[u8]>, to: S) -> Shown<S> {
    let digits = bytes.as_ref().iter().map(|byte| format!("{byte:02x}"));
    to.serialize_str(&digits.collect::<String>())
}

/// Serializes a value as the text that users see, by its `Display` implementation.
pub fn shown<S: Serializer>(value: &impl Display, to: S) -> Shown<S> {
    to.collect_str(value)
}

/// Serializes an argument vector: its arguments, and whether a part of it is missing.
pub fn argv<S: Serializer>(argv: &Argv, to: S) -> Shown<S> {
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("argv", argv)?;
    map.serialize_entry("argv_truncated", &argv.truncated())?;
    map.end()
}

/// Serializes the stream of an event as a number: the CPU's number, 0xfffe for lifecycle events, or 0xffff for the
/// recorder's events.
pub fn stream<S: Serializer>(stream: &Stream, to: S) -> Shown<S> {
    to.serialize_u16(match stream {
        Stream::Cpu(cpu) => cpu.0,
        Stream::Lifecycle => 0xfffe,
        Stream::Recorder => 0xffff,
    })
}

/// Serializes a task and its process as the entries `tid` and `tgid`. Both are null if the event names no task.
pub fn task<S: Serializer>(task: &Option<(Tid, Tgid)>, to: S) -> Shown<S> {
    let mut map = to.serialize_map(Some(2))?;
    map.serialize_entry("tid", &task.map(|task| task.0))?;
    map.serialize_entry("tgid", &task.map(|task| task.1))?;
    map.end()
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, to: S) -> Shown<S> {
        to.collect_str(self)
    }
}

impl Serialize for Comm {
    fn serialize<S: Serializer>(&self, to: S) -> Shown<S> {
        text(&self.bytes(), to)
    }
}

impl Serialize for Argv {
    fn serialize<S: Serializer>(&self, to: S) -> Shown<S> {
        if self.full_len.is_none() {
            return to.serialize_none();
        }
        let mut list = to.serialize_seq(None)?;
        for arg in self.args() {
            list.serialize_element(&String::from_utf8_lossy(arg))?;
        }
        list.end()
    }
}
