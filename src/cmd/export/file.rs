//! Writes an export to a file or to standard output.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use tr_text::units;

use crate::errors::{self, Done};
use crate::open;
use crate::output::{self, Force};

/// Writes an export to a file, or to standard output for `-`. `kind` recognizes existing files that the export may
/// replace, and says whether the bytes of the export are binary.
pub(super) fn to_file(
    (output, force): (&Path, Force),
    trace: &Path,
    kind: (tr_output::FileKind, bool),
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> Done {
    if output::is_stdout(output) && !(kind.1 && io::stdout().is_terminal()) {
        return Ok(open::print_by(write));
    }
    let shown = errors::shown(output);
    let written = output::whole(output, trace, kind, force, |file| {
        let mut file = std::io::BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    written.map_err(|error| errors::unwritten(&shown, error))?;
    let size = std::fs::metadata(output).map_or(0, |file| file.len());
    message!("{shown}: {}", units::bytes(size));
    Ok(ExitCode::SUCCESS)
}
