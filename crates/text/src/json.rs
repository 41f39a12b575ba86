//! Makes parts of JSON documents, and JSON that is safe on a terminal.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, PrettyFormatter};
use serde_json::Value;

use crate::escape;

/// Defines a JSON object as a struct: its members in order, each with a type and a value, and the function
/// that makes the object.
#[macro_export]
macro_rules! object {
    ($(
        $name:ident($($arg:ident: $type:ty),*) {
            $($(#[$attribute:meta])* $member:ident: $of:ty = $value:expr,)*
        }
    )*) => {$(
        #[derive(serde::Serialize)]
        pub struct $name {
            $($(#[$attribute])* $member: $of,)*
        }

        impl $name {
            pub fn new($($arg: $type),*) -> $name {
                $name {
                    $($member: $value,)*
                }
            }
        }
    )*};
}

/// Converts bytes to text, in which bytes that are not UTF-8 become U+FFFD.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The JSON object `object` with the members of the JSON object `more`, which replace members of the same name.
pub fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// A value as JSON that is safe on a terminal and in a log.
pub fn safe(value: &impl Serialize, formatter: impl Formatter) -> io::Result<String> {
    let mut out = Vec::new();
    write_safe(value, formatter, &mut out)?;
    String::from_utf8(out).map_err(io::Error::other)
}

/// A document as JSON that is safe on a terminal and in a log, with a line feed at its end;
/// on one line, or indented.
pub fn document(value: &Value, indented: bool) -> io::Result<String> {
    let text = if indented {
        safe(value, PrettyFormatter::new())?
    } else {
        safe(value, CompactFormatter)?
    };
    Ok(text + "\n")
}

/// Like [`safe`], but writes the JSON to `out` while it is made, so that the JSON of a large recording is not held in
/// memory.
pub fn write_safe(
    value: &impl Serialize,
    formatter: impl Formatter,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut json = serde_json::Serializer::with_formatter(out, Safe(formatter));
    Ok(value.serialize(&mut json)?)
}

/// A value as JSON for the data of an HTML page. Hidden characters in its texts are made visible, as by
/// [`escape::text`].
pub fn visible(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut json = serde_json::Serializer::with_formatter(&mut out, Visible);
    value.serialize(&mut json)?;
    Ok(out)
}

/// A formatter that writes hidden characters as text that shows them.
struct Visible;

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        out.write_all(
            escape::text(text.as_bytes())
                .replace('\\', "\\\\")
                .as_bytes(),
        )
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        escaped: CharEscape,
    ) -> io::Result<()> {
        let hidden = match escaped {
            CharEscape::Quote => return out.write_all(b"\\\""),
            CharEscape::ReverseSolidus => return out.write_all(b"\\\\"),
            CharEscape::Solidus => return out.write_all(b"/"),
            CharEscape::Backspace => 8,
            CharEscape::FormFeed => 12,
            CharEscape::LineFeed => b'\n',
            CharEscape::CarriageReturn => b'\r',
            CharEscape::Tab => b'\t',
            CharEscape::AsciiControl(byte) => byte,
        };
        write!(out, "\\{}", escape::text(&[hidden]))
    }
}

/// A formatter that writes each character that [`escape::text`] would escape as a JSON escape (`\uXXXX`).
struct Safe<F>(F);

/// Defines methods of a JSON formatter that call the methods of the formatter inside it.
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
