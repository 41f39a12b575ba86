//! `tr recover`: an intact trace of the readable part of a damaged one.

use std::ffi::OsStr;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tr_format::event::Stream;
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_format::writer::Writer;
use tr_format::Error;

use crate::{open, replace};

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
    /// The intact recording; an existing file is replaced once it is complete
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let Some(output) = &args.output else {
        eprintln!("tr: recover: no output is named; for example:");
        eprintln!("    {}", proposal(&args.file));
        return ExitCode::from(open::UNREADABLE);
    };
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let name = tr_report::escape::text(output.as_os_str().as_encoded_bytes());
    match write(&trace, output) {
        Ok((events, gaps)) => {
            eprintln!(
                "tr: {name}: {} events recovered, {gaps} gap{} marked as lost",
                tr_report::units::count(events),
                if gaps == 1 { "" } else { "s" }
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tr: cannot write {name}: {error}");
            ExitCode::from(open::UNREADABLE)
        }
    }
}

/// The same command line with a name for OUT: `trace.bin` is recovered into
/// `trace.recovered.bin`, standard input into the current directory.
fn proposal(file: &Path) -> String {
    let out = if file.as_os_str() == "-" {
        PathBuf::from("recovered.bin")
    } else {
        file.with_extension("recovered.bin")
    };
    let words: [&OsStr; 5] = [
        "tr".as_ref(),
        "recover".as_ref(),
        file.as_ref(),
        "-o".as_ref(),
        out.as_ref(),
    ];
    tr_report::escape::command(words.map(OsStr::as_encoded_bytes))
}

/// FILE can be OUT.
fn write(trace: &Trace, output: &Path) -> Result<(u64, usize), Error> {
    replace::whole(output, |file| {
        let (mut out, counts) = recover(trace, BufWriter::new(file))?;
        out.flush()?;
        Ok(counts)
    })
}

/// Copies the readable frames, and writes each gap as a loss.
fn recover<W: Write>(trace: &Trace, out: W) -> Result<(W, (u64, usize)), Error> {
    let mut writer = Writer::new(out, trace.meta())?;
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    let mut gaps = trace.gaps().to_vec();
    for frame in trace.frames() {
        match frame.stream {
            Stream::Cpu(cpu) => match trace.read_sched(frame, &mut block) {
                Ok(()) => {
                    for event in block.iter() {
                        writer.sched(cpu, event)?;
                    }
                }
                Err(_) => gaps.push(trace.gap_of(frame)),
            },
            stream => match trace.read_life(frame, &mut events) {
                Ok(()) => {
                    for event in events.drain(..) {
                        writer.life(stream, event)?;
                    }
                }
                Err(_) => gaps.push(trace.gap_of(frame)),
            },
        }
        // The same frames as before, so that a reader can still stream them in time order.
        writer.flush()?;
    }
    let count = gaps.len();
    for gap in gaps {
        writer.life(Stream::Recorder, gap)?;
    }
    let (out, written) = match (trace.summary(), trace.end()) {
        (Some(summary), _) => writer.finish(summary)?,
        (None, End::Truncated { frame, offset, why }) => writer.finish_cut(*frame, *offset, why)?,
        (None, End::Complete) => {
            writer.finish_cut(0, trace.bytes(), "the recording has no summary")?
        }
    };
    Ok((out, (written.events(), count)))
}
