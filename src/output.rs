//! The outputs of the subcommands that read a trace.

use std::io;
use std::path::Path;

use tr_output::{Destination, Settings, Target};

use crate::inherited;

/// Writes a whole output, which then replaces a file of its name. Its mode is like the
/// trace's.
///
/// # Errors
/// Those of `write`, and of opening or naming the output.
pub fn whole<T, E: From<io::Error>>(
    output: &Path,
    trace: &Path,
    binary: bool,
    write: impl FnOnce(&mut Destination) -> Result<T, E>,
) -> Result<T, E> {
    let settings = Settings {
        mode: tr_output::mode_like(trace),
        binary,
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
        closed_streams: inherited::closed_streams(),
    };
    let target = Target::File(output.to_owned());
    tr_output::whole(&target, &settings, |out| out.write_all(text))
}
