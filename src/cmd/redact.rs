//! `tr redact`: masks the secrets in the command lines of an archived trace.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use tr_format::event::LifeEvent;
use tr_format::reader::Trace;
use tr_format::Error;
use tr_redact::addresses::Addresses;
use tr_redact::Redactor;
use tr_report::{escape, units};

use crate::copy::{copy, Copied};
use crate::{open, output};

/// Mask secrets in the command lines of a recording, by the rules of this tr
///
/// The rules are those of tr record, which may have been older. All else stays as it is.
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
    /// Replace addresses of connections and names asked of DNS by host-1, name-1, …
    #[arg(long)]
    mask_addresses: bool,
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let redactor = match super::redactor(true, args.redact.clone()) {
        Ok(redactor) => redactor,
        Err(status) => return status,
    };
    let trace = match open::to_copy(&args.file) {
        Ok(trace) => trace,
        Err(status) => return status,
    };
    let out = escape::text(args.output.as_os_str().as_encoded_bytes());
    match write(&trace, redactor, args) {
        Ok((copied, masked)) => {
            let s = if masked == 1 { "" } else { "s" };
            eprintln!(
                "tr: {out}: {} secret{s} masked, {} events",
                units::count(masked),
                units::count(copied.events)
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tr: cannot write {out}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// FILE can be OUT.
fn write(trace: &Trace, mut redactor: Redactor, args: &Args) -> Result<(Copied, u64), Error> {
    let in_command = redactor.find_in_command(&trace.meta().command).len();
    let mut meta = trace.meta().clone();
    meta.command = redactor.command(&meta.command);
    redactor.name(&mut meta.cwd);
    let mut addresses = args.mask_addresses.then(Addresses::default);
    let copied = output::whole(
        &args.output,
        &args.file,
        (output::RECORDING, true),
        args.force,
        |file| {
            let edit = |event: &mut LifeEvent| {
                redactor.event(&mut event.kind);
                if let Some(addresses) = &mut addresses {
                    addresses.mask(&mut event.kind);
                }
            };
            let (mut out, copied) = copy(trace, &meta, BufWriter::new(file), edit, [])?;
            out.flush()?;
            Ok::<_, Error>(copied)
        },
    )?;
    let addresses = addresses.map_or(0, |it| it.masked());
    Ok((copied, redactor.masked() + (in_command + addresses) as u64))
}
