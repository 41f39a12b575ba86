//! Implements `tr redact`, which masks the secrets in the texts of an archived trace.

use std::path::PathBuf;
use std::process::ExitCode;

use tr_format::reader::Trace;
use tr_format::Error;
use tr_redact::addresses::Addresses;
use tr_redact::Redactor;
use tr_text::units;

use crate::copy::{self, Copied, Copying};
use crate::errors::{self, Done};
use crate::subcommand::{Program, Subcommand};
use crate::{open, output};

/// Mask secrets in the texts of a recording, by the rules of this tr
///
/// The rules are those of this tr record; an older one may have had fewer. Nothing else changes.
/// tr info --secrets lists the places.
#[derive(clap::Args, Debug)]
#[command(override_usage = "tr redact FILE -o OUT")]
#[command(after_help = "\
Exit status: 0; 1 when OUT cannot be written; 2 when FILE cannot be read at all.

Example:
  tr redact trace.bin -o trace.bin
  tr redact trace.bin --mask-addresses -o public.bin")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The masked recording; - is standard output. An existing file, FILE too, is replaced
    /// once it is complete
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    force: output::Force,
    /// Mask matches in command lines, names and paths, too: the first group, or the whole match
    #[arg(long, value_name = "REGEX", value_parser = tr_redact::pattern)]
    redact: Vec<regex::bytes::Regex>,
    /// Mask the addresses of connections and the names of DNS queries: host-1, name-1, …
    #[arg(long)]
    mask_addresses: bool,
}

impl Subcommand for Args {
    const IS_STREAM: bool = true;

    fn run(self, _: &Program) -> Done {
        mask_secrets(&self)
    }
}

fn mask_secrets(args: &Args) -> Done {
    let redactor = Redactor::new(true, args.redact.clone());
    let trace = open::to_copy(&args.file)?;
    let out = errors::shown(&args.output);
    let written = write(&trace, redactor, args);
    let (copied, masked) = written.map_err(|error| errors::unwritten(&out, error))?;
    message!(
        "{out}: {} masked, {} events",
        units::plural(masked, "secret", "secrets"),
        units::count(copied.events)
    );
    Ok(ExitCode::SUCCESS)
}

fn write(trace: &Trace, mut redactor: Redactor, args: &Args) -> Result<(Copied, u64), Error> {
    let in_command = redactor.find_in_command(&trace.meta().command).len();
    let mut addresses = args.mask_addresses.then(Addresses::default);
    let files = (args.output.as_path(), args.file.as_path(), args.force);
    let copying = Copying::Masked(&mut redactor, addresses.as_mut());
    let copied = copy::whole(trace, files, copying, [])?;
    let addresses = addresses.map_or(0, |addresses| addresses.masked());
    Ok((copied, redactor.masked() + (in_command + addresses) as u64))
}
