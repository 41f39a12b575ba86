//! `tr recover`: an intact trace of all that can be read.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tr_format::event::Stream;
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_format::writer::Writer;
use tr_format::Error;

use crate::{open, replace};

/// Write an intact recording of all that can be read of a damaged one
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The damaged trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to write; what is there is replaced once all is written
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let name = tr_report::escape::text(args.output.as_os_str().as_encoded_bytes());
    match write(&trace, &args.output) {
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

/// FILE can be OUT.
fn write(trace: &Trace, output: &Path) -> Result<(u64, usize), Error> {
    replace::whole(output, |file| {
        let (mut out, counts) = recover(trace, BufWriter::new(file))?;
        out.flush()?;
        Ok(counts)
    })
}

/// Copies what can be read, frame by frame, and writes each gap as a loss.
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
        // Frames stay as they were: a reader can go through them in time.
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
