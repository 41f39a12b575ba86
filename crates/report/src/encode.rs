//! Parts of JSON documents.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::Value;
use tr_analyze::model::{self, Basis};
use tr_format::event::Argv;

use crate::escape;
use crate::table::{Cell, Table};
use crate::words::{BLOCKED, RUN_QUEUE, SLEEP, SLEEP_OR_BLOCKED, UNKNOWN};

/// Defines an object: its members in their order, each with its type and its value,
/// and the function that makes it.
macro_rules! object {
    ($(
        $name:ident($($arg:ident: $type:ty),*) {
            $($(#[$attribute:meta])* $member:ident: $of:ty = $value:expr,)*
        }
    )*) => {$(
        #[derive(serde::Serialize)]
        pub(crate) struct $name {
            $($(#[$attribute])* $member: $of,)*
        }

        impl $name {
            pub(crate) fn new($($arg: $type),*) -> $name {
                $name {
                    $($member: $value,)*
                }
            }
        }
    )*};
}
pub(crate) use object;

object! {
    Times(times: &model::Times) {
        on_cpu_ns: Option<u64> = times.on_cpu_known(),
        run_queue_ns: Option<u64> = times.run_queue_known(),
        sleep_ns: Option<u64> = times.sleep_known(),
        blocked_ns: Option<u64> = times.blocked_known(),
        // Only of a recording without scheduling events.
        #[serde(skip_serializing_if = "Option::is_none")]
        asleep_or_blocked_ns: Option<u64> = times.asleep_or_blocked_known(),
        unknown_ns: u64 = times.unknown,
    }
}

/// The times that people see.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub basis: Basis,
    pub on_cpu: bool,
    /// Each kind of wait has a column.
    pub waits: bool,
    pub unknown: bool,
    /// A narrow table leaves some out.
    pub spare: bool,
}

/// Adds the columns of times, in the order of `keys`.
pub(crate) fn times<'a, R: 'a>(
    table: Table<'a, R>,
    of: fn(&R) -> Option<&model::Times>,
    seen: Seen,
    keys: &str,
) -> Table<'a, R> {
    let events = seen.basis == Basis::Events;
    let known = |time: fn(&model::Times) -> Option<u64>| {
        move |row: &R| Cell::known(of(row).and_then(time), Cell::Time)
    };
    let spare = |table: Table<'a, R>| if seen.spare { table.spare() } else { table };
    keys.split_whitespace().fold(table, |table, key| match key {
        "on_cpu" => table
            .fact("CPU", "on_cpu_ns", known(|it| it.on_cpu_known()))
            .shown(seen.on_cpu),
        "run_queue" => table
            .fact(RUN_QUEUE, "run_queue_ns", known(|it| it.run_queue_known()))
            .shown(seen.waits),
        "sleep" => spare(table.fact(SLEEP, "sleep_ns", known(|it| it.sleep_known())))
            .shown(seen.waits && events),
        "blocked" => table
            .fact(BLOCKED, "blocked_ns", known(|it| it.blocked_known()))
            .shown(seen.waits && events),
        "unknown" => spare(table.fact(UNKNOWN, "unknown_ns", known(|it| Some(it.unknown))))
            .shown(seen.unknown),
        _ if events => table,
        _ => {
            let asleep = known(|it| it.asleep_or_blocked_known());
            let table = table.fact(SLEEP_OR_BLOCKED, "asleep_or_blocked_ns", asleep);
            let table = table.shown(seen.waits);
            match seen.basis {
                Basis::Totals => table,
                _ => table.csv_only(),
            }
        }
    })
}

/// Bytes as text; bytes that are not UTF-8 become U+FFFD.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn hex<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> String {
    let bytes = bytes.into_iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn argv(argv: &Argv) -> Option<Vec<String>> {
    argv.full_len.map(|_| argv.args().map(text).collect())
}

/// An object with the members of another one added.
pub(crate) fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// A value as JSON that is safe on a terminal and in a log.
pub(crate) fn safe(value: &impl Serialize, formatter: impl Formatter) -> io::Result<String> {
    let mut out = Vec::new();
    write_safe(value, formatter, &mut out)?;
    String::from_utf8(out).map_err(io::Error::other)
}

/// [`safe`], written as it comes: a document of a large recording takes no memory.
pub(crate) fn write_safe(
    value: &impl Serialize,
    formatter: impl Formatter,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut json = serde_json::Serializer::with_formatter(out, Safe(formatter));
    Ok(value.serialize(&mut json)?)
}

/// Writes each character that [`escape::text`] would escape as `\uXXXX`.
struct Safe<F>(F);

/// Methods that the inner formatter provides.
macro_rules! delegate {
    ($($name:ident($($arg:ident: $kind:ty),*)),* $(,)?) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $arg: $kind)*) -> io::Result<()> {
            self.0.$name(out $(, $arg)*)
        })*
    };
}

impl<F: Formatter> Formatter for Safe<F> {
    delegate!(
        begin_array(),
        end_array(),
        begin_array_value(first: bool),
        end_array_value(),
        begin_object(),
        end_object(),
        begin_object_key(first: bool),
        begin_object_value(),
        end_object_value(),
    );

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut rest = text;
        while let Some((at, c)) = rest
            .char_indices()
            .find(|(at, c)| escape::is_hidden(*c) || escape::is_command(rest, *at))
        {
            let (plain, more) = rest.split_at(at);
            self.0.write_string_fragment(out, plain)?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = more.get(c.len_utf8()..).unwrap_or_default();
        }
        self.0.write_string_fragment(out, rest)
    }
}
