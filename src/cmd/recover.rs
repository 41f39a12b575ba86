//! Implements `tr recover`, which writes an intact trace of the readable part of a damaged one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::copy::{self, Copied, Copying};
use crate::errors::{self, Done};
use crate::subcommand::{Program, Subcommand};
use crate::{open, output};
use tr_text::called::TR;
use tr_text::units;

/// Write an intact recording of the readable part of a damaged one
#[derive(clap::Args, Debug)]
#[command(override_usage = "tr recover FILE -o OUT")]
#[command(after_help = "\
Example:
  tr recover trace.bin -o trace.recovered.bin")]
pub struct Args {
    /// The damaged trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The intact recording; - is standard output. An existing file is replaced once it
    /// is complete
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: output::Force,
}

impl Subcommand for Args {
    const IS_STREAM: bool = true;

    fn run(self, _: &Program) -> Done {
        recover(&self)
    }
}

fn recover(args: &Args) -> Done {
    let Some(output) = &args.output else {
        message!("recover: no output is named; for example:");
        eprintln!("    {}", proposal(&args.file));
        return Err(ExitCode::from(errors::UNREADABLE_STATUS));
    };
    let trace = open::trace(&args.file)?;
    let name = errors::shown(output);
    let files = (output.as_path(), args.file.as_path(), args.force);
    let copied = copy::whole(&trace, files, Copying::AsTheyAre, []);
    let Copied { events, gaps } =
        copied.map_err(|error| errors::refused(format!("cannot write {name}: {error}")))?;
    message!(
        "{name}: {} events recovered, {} marked as lost",
        units::count(events),
        units::plural(gaps as u64, "gap", "gaps")
    );
    Ok(ExitCode::SUCCESS)
}

/// A command line of `tr recover` with a name for its output, to be suggested in an error: `trace.bin` is
/// recovered into `trace.recovered.bin`, standard input into a file in the current directory.
fn proposal(file: &Path) -> String {
    let out = if file.as_os_str() == "-" {
        PathBuf::from("recovered.bin")
    } else {
        file.with_extension("recovered.bin")
    };
    let words: [&OsStr; 5] = [
        TR.name().as_ref(),
        "recover".as_ref(),
        file.as_ref(),
        "-o".as_ref(),
        out.as_ref(),
    ];
    tr_text::escape::command(words.map(OsStr::as_encoded_bytes))
}
