//! The outputs of the subcommands that read a trace.

use std::io;
use std::path::Path;

use tr_format::frame;
use tr_output::{Destination, Kind, Settings, Target};

use crate::inherited;

/// Recordings, by their magic.
pub const RECORDING: Kind = Kind {
    name: "a recording",
    is: |bytes| bytes.starts_with(&frame::MAGIC),
};

/// Pages of HTML.
pub const PAGE: Kind = Kind {
    name: "an HTML page",
    is: |bytes| {
        let beginning = b"<!doctype html";
        let bytes = bytes.trim_ascii_start().get(..beginning.len());
        bytes.is_some_and(|bytes| bytes.eq_ignore_ascii_case(beginning))
    },
};

/// Any file but a recording.
pub const NO_RECORDING: Kind = Kind {
    name: "an export, but a recording",
    is: |bytes| !bytes.starts_with(&frame::MAGIC),
};

/// Writes a whole output, which then replaces a file of its name, if that is of this kind. Its
/// mode is like the trace's.
///
/// # Errors
/// Those of `write`, and of opening or naming the output.
pub fn whole<T, E: From<io::Error>>(
    output: &Path,
    trace: &Path,
    (kind, binary): (Kind, bool),
    write: impl FnOnce(&mut Destination) -> Result<T, E>,
) -> Result<T, E> {
    let settings = Settings {
        mode: tr_output::mode_like(trace),
        binary,
        replaces: Some(kind),
        keeps: false,
        closed_streams: inherited::closed_streams(),
    };
    tr_output::whole(&Target::of(output), &settings, write)
}

/// Writes a manual page or another text that everybody may read.
///
/// # Errors
/// Those of opening, writing or naming the output.
pub fn public(output: &Path, text: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let settings = Settings {
        mode: 0o644,
        binary: false,
        replaces: None,
        keeps: false,
        closed_streams: inherited::closed_streams(),
    };
    let target = Target::File(output.to_owned());
    tr_output::whole(&target, &settings, |out| out.write_all(text))
}
