//! Opens the trace that a command of `tr` names, and writes a command's output to standard output.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use tr_format::reader::{End, Trace, Unknown};
use tr_format::source::Source;
use tr_format::Error;

use crate::errors::{shown, unwritten, UNREADABLE_STATUS};
use crate::inherited;
use crate::mapping::Mapping;
use tr_insight::recordings::warnings::CUT_REASONS;
use tr_text::called::TR;

/// The default name of a recording: `tr record` writes it, and the other subcommands read it.
pub const DEFAULT_FILE: &str = "trace.bin";

/// The function that is called before the first byte is written to standard output. With a pager, the function makes
/// this process ignore Ctrl-C, because the pager handles Ctrl-C from then on. The function is set at most once.
static BEGINS: OnceLock<fn()> = OnceLock::new();

/// Sets the function that is called before the first byte is written to standard output.
pub fn on_begin(begins: fn()) {
    let _ = BEGINS.set(begins);
}

/// Opens the trace in FILE. A regular file is mapped ([`Mapping`] describes truncation), or read by `pread` if
/// mapping fails. Standard input (`-`) and anything else is read front to back.
pub fn trace(path: &Path) -> Result<Trace, ExitCode> {
    let is_written = is_written(path);
    let trace = source(path).and_then(Trace::open);
    let mut trace = trace.map_err(|error| unreadable(path, &error))?;
    if is_written {
        trace.set_under_way();
    }
    Ok(trace)
}

/// Opens a trace like [`trace`], and warns of damage and of a missing end.
pub fn warned(path: &Path) -> Result<Trace, ExitCode> {
    let trace = trace(path)?;
    warn(&trace, path);
    Ok(trace)
}

/// Whether a recorder still writes FILE. Callers must call this before they read the file. After the read would be too
/// late: if the recording ended in between, a file that was read without its end would count as damaged.
pub fn is_written(path: &Path) -> bool {
    path.is_file() && File::open(path).is_ok_and(tr_output::is_written)
}

/// Opens FILE for a copy, and warns about what the copy will lack: damaged parts, a missing end, parts of a
/// later version.
pub fn to_copy(path: &Path) -> Result<Trace, ExitCode> {
    let trace = warned(path)?;
    if trace.unknown() != Unknown::default() {
        let name = shown(path);
        message!("{name}: parts of a later version are left out");
    }
    Ok(trace)
}

/// The bytes of FILE (`-` is standard input), for [`trace()`]. A regular file is mapped if possible; a pipe is read.
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

/// Prints the error that FILE cannot be read as a trace. Returns the exit status.
pub fn unreadable(path: &Path, error: &Error) -> ExitCode {
    let error = tr_text::escape::text(error.to_string().as_bytes());
    message!("{}: {error}", shown(path));
    let absent = || std::fs::symlink_metadata(path).is_err();
    if path.as_os_str() == DEFAULT_FILE && absent() {
        eprintln!("    name a recording, or make one: {TR} record -- COMMAND");
    }
    ExitCode::from(UNREADABLE_STATUS)
}

/// Warns on standard error about damaged parts of the trace and about a missing end.
pub fn warn(trace: &Trace, path: &Path) {
    let name = shown(path);
    if trace.under_way() {
        message!("{name}: the recording is under way");
    } else if let End::Truncated { frame, offset, why } = trace.end() {
        message!(
            "{name}: ends at frame {frame}, byte {}: {} ({CUT_REASONS})",
            tr_text::units::count(*offset),
            tr_text::escape::text(why.as_bytes())
        );
    }
    for damage in trace.damage() {
        message!(
            "{name}: frame {} at byte {}: {}",
            damage.frame,
            tr_text::units::count(damage.offset),
            tr_text::escape::text(damage.what.to_string().as_bytes())
        );
    }
}

/// Writes bytes to standard output. Returns the exit status. A closed pipe ends the process by SIGPIPE; if the process
/// ignores SIGPIPE, a closed pipe is no error.
pub fn print(bytes: &[u8]) -> ExitCode {
    print_by(|out| out.write_all(bytes))
}

/// Calls a function that writes to standard output, and treats errors by the rules of [`print()`]. Returns the
/// exit status.
pub fn print_by(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> ExitCode {
    use std::io::Write;
    let out = stdout().map(std::io::BufWriter::new);
    printed(out.and_then(|mut out| {
        write(&mut out)?;
        out.flush()
    }))
}

/// Writes text for people to standard output, by the rules of [`print()`]. The text may contain parts of a trace, so
/// it is escaped: nothing in it can act as a command to a terminal or a CI system.
pub fn print_text(text: &str) -> ExitCode {
    print(tr_text::escape::page(text).as_bytes())
}

/// Writes a JSON document to standard output, by the rules of [`print()`].
#[cfg(any(feature = "record", feature = "report"))]
pub fn print_json(document: &serde_json::Value) -> ExitCode {
    match tr_text::json::document(document, true) {
        Ok(text) => print(text.as_bytes()),
        Err(error) => printed(Err(error)),
    }
}

/// Writes a report to standard output, by the rules of [`print()`].
#[cfg(feature = "report")]
pub fn print_report<E: std::error::Error>(made: Result<impl AsRef<[u8]>, E>) -> ExitCode {
    match made {
        Ok(bytes) => print(bytes.as_ref()),
        Err(error) => unwritten("the report", error),
    }
}

/// Opens standard output for writing. The result is an error if standard output was closed when `tr` was started,
/// because Rust's runtime has then opened /dev/null in its place.
pub fn stdout() -> std::io::Result<std::io::StdoutLock<'static>> {
    if inherited::closed_streams()[1] {
        return Err(nix::errno::Errno::EBADF.into());
    }
    if let Some(begins) = BEGINS.get() {
        begins();
    }
    Ok(std::io::stdout().lock())
}

/// Turns the result of writing to standard output into the exit status, by the rules of [`print()`]: a closed
/// pipe is no error.
pub fn printed(done: std::io::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => unwritten("to standard output", error),
    }
}
