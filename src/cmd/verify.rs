//! `tr verify`: checks a trace.

use std::path::PathBuf;
use std::process::ExitCode;

use tr_format::event::Stream;
use tr_format::reader::{End, Trace, Unknown};
use tr_format::sched::SchedBlock;
use tr_format::tally::Events;
use tr_report::{escape, units};

use crate::open;

/// Check a recording: exit status 0 intact, 1 damaged but readable, 2 unreadable
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT)]
    file: PathBuf,
}

impl Args {
    /// The trace.
    pub fn file(&self) -> &std::path::Path {
        &self.file
    }
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
        out.push_str(&format!("{name}: {}\n", escape::text(problem.as_bytes())));
    }
    if problems.is_empty() {
        out.push_str(&format!(
            "{name}: intact, {} frames, {} bytes\n",
            trace.frames().len(),
            units::count(trace.bytes())
        ));
        if let (true, End::Truncated { frame, offset, why }) = (trace.recovered(), trace.end()) {
            out.push_str(&format!(
                "{name}: recovered from a recording that ended at frame {frame}, byte {offset}: {}\n",
                escape::text(why.as_bytes())
            ));
        }
    }
    if let Some(reason) = &trace.meta().not_traced {
        let reason = escape::text(reason.as_bytes());
        out.push_str(&format!("{name}: not traced: {reason}\n"));
    }
    let unknown = trace.unknown();
    if unknown != Unknown::default() {
        out.push_str(&format!(
            "{name}: of a later version, not read: {} frames, {} events, {} fields\n",
            unknown.frames, unknown.events, unknown.fields
        ));
    }
    let printed = open::print_text(&out);
    if problems.is_empty() {
        printed
    } else {
        ExitCode::from(1)
    }
}

/// Every problem and its byte, in the file's order.
fn problems(trace: &Trace) -> Vec<String> {
    let mut problems: Vec<(u64, String)> = Vec::new();
    for damage in trace.damage() {
        problems.push((damage.offset, damage.to_string()));
    }
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    let mut found = Events::default();
    for frame in trace.frames() {
        let result = match frame.stream {
            Stream::Cpu(_) => trace.read_sched(frame, &mut block),
            _ => trace.read_life(frame, &mut events),
        };
        match (result, frame.stream) {
            (Err(error), _) => problems.push((frame.offset, error.to_string())),
            (Ok(()), Stream::Cpu(_)) => block.iter().for_each(|event| found.sched(&event)),
            (Ok(()), _) => events.iter().for_each(|event| found.life(event)),
        }
    }
    // A damaged trace lacks events that its summary counts.
    if problems.is_empty() {
        problems.extend(miscounted(trace, &found).map(|what| (trace.bytes(), what)));
    }
    if let Some(number) = trace.index_lies() {
        let what = format!("the index disagrees with the frames from frame {number} on");
        problems.push((trace.bytes(), what));
    }
    if let End::Truncated { frame, offset, why } = trace.file_end() {
        let what = format!("ends at frame {frame}, byte {offset}: {why}");
        problems.push((*offset, what));
    }
    problems.sort();
    problems.dedup();
    problems.into_iter().map(|(_, what)| what).collect()
}

/// A count of the summary that the frames do not hold.
fn miscounted(trace: &Trace, found: &Events) -> Option<String> {
    let summary = trace.summary()?;
    let tally = summary.tally.as_ref()?;
    let frames = trace.frames().len() as u64;
    if tally.frames != frames {
        return Some(differ("frames", tally.frames, frames));
    }
    // Events of a later version are not counted by kind.
    if trace.unknown().events > 0 {
        return None;
    }
    let pairs = tally.events.by_kind().into_iter().zip(found.by_kind());
    let mut wrong = pairs.filter(|((_, says), (_, is))| says != is);
    let ((kind, says), (_, is)) = wrong.next()?;
    Some(differ(&format!("{kind} events"), says, is))
}

fn differ(what: &str, says: u64, is: u64) -> String {
    let [says, is] = [says, is].map(units::count);
    format!("the summary counts {says} {what}, the frames hold {is}")
}
