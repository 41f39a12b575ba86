//! `tr import`: a recording of another program as a trace.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tr_format::writer::Written;
use tr_import::perf::Perf;
use tr_import::Error;
use tr_redact::Redactor;
use tr_report::{escape, units};

use crate::mapping::Mapping;
use crate::{open, output};

/// Make a recording of a file of `perf sched record`
///
/// All reports read it then. perf records neither exit statuses nor the arguments of programs,
/// other than those of COMMAND, nor the reasons of waits.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status: 0; 1 when OUT cannot be written; 2 when FILE cannot be read.

Example:
  perf sched record -k CLOCK_MONOTONIC -- make -j8
  tr import perf.data
  tr analyze")]
pub struct Args {
    /// The file that perf has written
    #[arg(value_name = "FILE", default_value = "perf.data")]
    file: PathBuf,
    /// The recording; - is standard output. An existing file is replaced once it is complete
    #[arg(short, long, value_name = "OUT", default_value = open::DEFAULT)]
    output: PathBuf,
    /// Keep passwords and tokens in COMMAND's arguments; without it they are masked
    #[arg(long)]
    no_redact: bool,
    /// Mask matches in COMMAND's arguments: the first group, or the whole match
    #[arg(long, value_name = "REGEX", value_parser = tr_redact::pattern)]
    redact: Vec<regex::bytes::Regex>,
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let redactor = match super::redactor(!args.no_redact, args.redact.clone()) {
        Ok(redactor) => redactor,
        Err(status) => return status,
    };
    let bytes = match bytes(&args.file) {
        Ok(bytes) => bytes,
        Err(error) => return unreadable(&args.file, &error),
    };
    let perf = match Perf::read((*bytes).as_ref(), env!("CARGO_PKG_VERSION")) {
        Ok(perf) => perf,
        Err(error) => return unreadable(&args.file, &error),
    };
    let out = escape::text(args.output.as_os_str().as_encoded_bytes());
    match write(perf, redactor, args) {
        Ok(written) => {
            eprintln!(
                "tr: {out}: {} events, {}",
                units::count(written.events()),
                units::bytes(written.bytes)
            );
            eprintln!(
                "    next: tr analyze {}",
                escape::command([args.output.as_os_str().as_encoded_bytes()])
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!(
                "tr: cannot write {out}: {}",
                escape::text(error.to_string().as_bytes())
            );
            ExitCode::FAILURE
        }
    }
}

fn unreadable(file: &Path, error: &Error) -> ExitCode {
    let name = escape::text(file.as_os_str().as_encoded_bytes());
    eprintln!("tr: {name}: {}", escape::text(error.to_string().as_bytes()));
    ExitCode::from(open::UNREADABLE)
}

/// The bytes of a regular file: of a large one a mapping.
fn bytes(path: &Path) -> Result<Box<dyn AsRef<[u8]>>, Error> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Error::NoFile);
    }
    match Mapping::new(&file, path) {
        Ok(mapping) => Ok(Box::new(mapping)),
        Err(_) if meta.len() <= tr_import::FILE => Ok(Box::new(std::fs::read(path)?)),
        Err(error) => Err(error.into()),
    }
}

/// FILE can be OUT.
fn write(mut perf: Perf<'_>, mut redactor: Redactor, args: &Args) -> Result<Written, Error> {
    perf.meta.command = redactor.command(&perf.meta.command);
    output::whole(&args.output, &args.file, true, |file| {
        let (mut out, written) = perf.write(BufWriter::new(file))?;
        out.flush()?;
        Ok(written)
    })
}
