//! `tr recover`: an intact trace of all that can be read.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

use tr_format::event::{Ktime, LifeKind, Stream};
use tr_format::meta::Summary;
use tr_format::reader::Trace;
use tr_format::sched::SchedBlock;
use tr_format::writer::Writer;
use tr_format::Error;

use crate::open;

/// Write an intact recording of all that can be read of a damaged one
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The damaged trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to write; must not exist
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
    let out = match File::options()
        .write(true)
        .create_new(true)
        .open(&args.output)
    {
        Ok(out) => out,
        Err(error) => {
            eprintln!("tr: cannot create {name}: {error}");
            return ExitCode::from(open::UNREADABLE);
        }
    };
    match recover(&trace, BufWriter::new(out)) {
        Ok((events, gaps)) => {
            eprintln!(
                "tr: {name}: {} events recovered, {gaps} gap{} marked as lost",
                tr_report::units::count(events),
                if gaps == 1 { "" } else { "s" }
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = std::fs::remove_file(&args.output);
            eprintln!("tr: cannot write {name}: {error}");
            ExitCode::from(open::UNREADABLE)
        }
    }
}

/// Copies what can be read, frame by frame, and writes each gap as a loss.
fn recover(trace: &Trace, out: impl std::io::Write) -> Result<(u64, usize), Error> {
    let mut writer = Writer::new(out, trace.meta())?;
    let mut block = SchedBlock::default();
    let mut gaps = trace.gaps().to_vec();
    let mut progress = None;
    for frame in trace.frames() {
        let mut events = Vec::new();
        let result = match frame.stream {
            Stream::Cpu(_) => trace.read_sched(frame, &mut block),
            _ => trace.read_life(frame, &mut events),
        };
        match (result, frame.stream) {
            (Err(_), _) => gaps.push(trace.gap_of(frame)),
            (Ok(()), Stream::Cpu(cpu)) => {
                for event in block.iter() {
                    writer.sched(cpu, event)?;
                }
            }
            (Ok(()), stream) => {
                for event in events {
                    if event.kind == LifeKind::Progress {
                        progress = progress.max(Some(event.time));
                    }
                    writer.life(stream, event)?;
                }
            }
        }
    }
    let count = gaps.len();
    for gap in gaps {
        writer.life(Stream::Recorder, gap)?;
    }
    // As the analysis does: what has no end, ends where it was last complete.
    let last = || trace.frames().iter().map(|frame| frame.max).max();
    let end: Ktime = progress.or_else(last).unwrap_or(trace.meta().start);
    let missing = Summary {
        end,
        ..Summary::default()
    };
    let (_, written) = writer.finish(trace.summary().unwrap_or(&missing))?;
    Ok((written.events(), count))
}
