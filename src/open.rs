//! Opens the trace that a command names.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use tr_format::reader::{End, Trace};
use tr_format::source::Source;
use tr_format::Error;

use crate::mapping::Mapping;

/// The exit status for a file that cannot be read at all.
pub const UNREADABLE: u8 = 2;

/// Opens FILE. A regular file is mapped ([`Mapping`] says what that means for one
/// that shrinks), or read by `pread` where it cannot be; `-` is standard input, which
/// as anything that is no regular file is read front to back.
///
/// # Errors
/// As [`Trace::open`].
pub fn trace(path: &Path) -> Result<Trace, Error> {
    Trace::open(source(path)?)
}

/// The bytes of FILE, as [`trace()`] opens it.
///
/// # Errors
/// When it cannot be opened, or not be read where it cannot be mapped.
pub fn source(path: &Path) -> Result<Source, Error> {
    if path.as_os_str() == "-" {
        Source::read(std::io::stdin().lock())
    } else {
        let file = File::open(path)?;
        if file.metadata()?.is_file() {
            match Mapping::new(&file, path) {
                Ok(mapping) => Ok(Source::bytes(mapping)),
                Err(_) => Source::file(file),
            }
        } else {
            Source::read(file)
        }
    }
}

/// Says why FILE cannot be read.
pub fn unreadable(path: &Path, error: &Error) -> ExitCode {
    eprintln!(
        "tr: {}: {error}",
        tr_report::escape::text(path.as_os_str().as_encoded_bytes())
    );
    ExitCode::from(UNREADABLE)
}

/// Warns of what is damaged or missing.
pub fn warn(trace: &Trace, name: &str) {
    let name = tr_report::escape::text(name.as_bytes());
    if let End::Truncated { frame, offset, why } = trace.end() {
        eprintln!(
            "tr: {name}: ends at frame {frame}, byte {}: {why} (recorder killed or disk full?)",
            tr_report::units::count(*offset)
        );
    }
    for damage in trace.damage() {
        eprintln!(
            "tr: {name}: frame {} at byte {}: {}",
            damage.frame,
            tr_report::units::count(damage.offset),
            damage.what
        );
    }
}

/// Writes to standard output. A reader that has had enough ends us by SIGPIPE;
/// where that is ignored, it is no error.
pub fn print(bytes: &[u8]) -> ExitCode {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    printed(out.write_all(bytes).and_then(|()| out.flush()))
}

/// What has become of writing to standard output, as [`print()`] takes it.
pub fn printed(done: std::io::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tr: cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
    }
}
