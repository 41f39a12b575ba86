//! `tr verify`: whether a trace is intact.

use std::path::PathBuf;
use std::process::ExitCode;

use tr_format::event::Stream;
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_report::{escape, units};

use crate::open;

/// Say whether a recording is intact: 0 intact, 1 damaged but readable, 2 unreadable
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let name = escape::text(args.file.as_os_str().as_encoded_bytes());
    let problems = problems(&trace);
    let mut out = String::new();
    for problem in &problems {
        out.push_str(&format!("{name}: {problem}\n"));
    }
    if problems.is_empty() {
        out.push_str(&format!(
            "{name}: intact, {} frames, {} bytes\n",
            trace.frames().len(),
            units::count(trace.bytes())
        ));
    }
    let printed = open::print(out.as_bytes());
    if problems.is_empty() {
        printed
    } else {
        ExitCode::from(1)
    }
}

/// Everything that is wrong, in the file's order: what, and at which byte.
fn problems(trace: &Trace) -> Vec<String> {
    let mut problems: Vec<(u64, String)> = Vec::new();
    for damage in trace.damage() {
        let at = damage.offset;
        problems.push((
            at,
            format!("frame {} at byte {at}: {}", damage.frame, damage.what),
        ));
    }
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    for frame in trace.frames() {
        events.clear();
        let result = match frame.stream {
            Stream::Cpu(_) => trace.read_sched(frame, &mut block),
            _ => trace.read_life(frame, &mut events),
        };
        if let Err(error) = result {
            problems.push((frame.offset, error.to_string()));
        }
    }
    if let End::Truncated { frame, offset, why } = trace.end() {
        problems.push((
            *offset,
            format!("ends at frame {frame}, byte {offset}: {why}"),
        ));
    }
    problems.sort();
    problems.into_iter().map(|(_, what)| what).collect()
}
