//! Implements `tr verify`, which checks whether a trace is intact.

use std::path::PathBuf;
use std::process::ExitCode;

use tr_format::event::Stream;
use tr_format::reader::{End, Trace, Unknown};
use tr_format::sched::SchedBlock;
use tr_format::tally::{Counting, Events, Tally};
use tr_text::{escape, units};

use crate::budget::{Budget, Watch};
use crate::errors::{self, Done};
use crate::open;
use crate::subcommand::{Program, Subcommand};
use std::path::Path;

/// Check a recording: exit status 0 intact, 1 damaged but readable, 2 unreadable
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    pub file: PathBuf,
    #[command(flatten)]
    pub budget: Budget,
}

impl Subcommand for Args {
    fn only_reads(&self) -> Option<Vec<&Path>> {
        Some(vec![&self.file])
    }

    fn run(self, _: &Program) -> Done {
        verify(&self)
    }
}

fn verify(args: &Args) -> Done {
    let trace = open::trace(&args.file)?;
    let name = errors::shown(&args.file);
    let problems = problems(&trace, &args.budget.begin(1));
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
    Ok(if problems.is_empty() {
        printed
    } else {
        ExitCode::from(1)
    })
}

/// The problems that `tr verify` finds in the trace, each as a line of text, in the order of the file.
fn problems(trace: &Trace, watch: &Watch) -> Vec<String> {
    let mut problems: Vec<(u64, String)> = Vec::new();
    for damage in trace.damage() {
        problems.push((damage.offset, damage.to_string()));
    }
    let (found, mut unreadable) = count(trace, watch);
    problems.append(&mut unreadable);
    // The counts are compared only if there are no problems yet, because a damaged trace lacks events that its summary
    // counts.
    if let (true, Some(found)) = (problems.is_empty(), found) {
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
    problems.sort_unstable();
    problems.dedup();
    problems.into_iter().map(|(_, what)| what).collect()
}

/// Reads all frames (blocks of events) of a trace, up to a limit of the command. Returns the counts of their events, to
/// compare them with the summary (`None` if the trace has none), and as problems the frames that cannot be read and the
/// limit that was reached, each with a byte offset in the file.
fn count(trace: &Trace, watch: &Watch) -> (Option<Tally>, Vec<(u64, String)>) {
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    let mut found = Events::default();
    let mut counting = Counting::new(trace.meta().start, trace.meta().start_clock);
    let mut problems = Vec::new();
    for frame in trace.frames() {
        if let Some(why) = watch.exceeded() {
            let what = format!("{why}; from frame {} on, nothing is checked", frame.number);
            problems.push((frame.offset, what));
            break;
        }
        let result = match frame.stream {
            Stream::Cpu(_) => trace.read_sched(frame, &mut block),
            _ => trace.read_life(frame, &mut events),
        };
        match (result, frame.stream) {
            (Err(error), _) => problems.push((frame.offset, error.to_string())),
            (Ok(()), Stream::Cpu(_)) => {
                block.iter().for_each(|event| found.sched(&event));
                counting.sched(frame.stream, &block.time);
            }
            (Ok(()), stream) => {
                events.iter().for_each(|event| found.life(event));
                counting.life(stream, &events, frame.min.0);
            }
        }
    }
    let tally = trace
        .summary()
        .map(|summary| counting.finish(found, summary.end, summary.end_clock));
    (tally, problems)
}

/// A sentence about the first count (of frames, which are blocks of events, or of events) that differs between the
/// trace's summary and its frames; `None` if all agree.
fn miscounted(trace: &Trace, found: &Tally) -> Option<String> {
    let tally = trace.summary()?.tally.as_ref()?;
    if tally.frames != found.frames {
        return Some(differ("frames", tally.frames, found.frames));
    }
    // Events that only a later version understands are not among the events that were counted here, so the counts
    // cannot be compared with the summary.
    if trace.unknown().events > 0 {
        return None;
    }
    let kinds = tally.events.by_kind().zip(found.events.by_kind());
    let kinds = kinds.map(|((kind, says), (_, is))| (format!("{kind} events"), says, is));
    let lost = |of: &Tally| of.lost.values().copied().fold(0, u64::saturating_add);
    let asleep = |of: &Tally| {
        let suspends = of.suspends.iter().map(|suspend| suspend.asleep);
        suspends.fold(0, u64::saturating_add)
    };
    let inversion = (tally.largest_inversion, found.largest_inversion);
    let others = [
        ("lost events", lost(tally), lost(found)),
        ("ns of the largest step back", inversion.0, inversion.1),
        ("ns of commit delay", tally.commit_delay, found.commit_delay),
        ("ns of suspends", asleep(tally), asleep(found)),
    ];
    let others = others.map(|(what, says, is)| (what.to_owned(), says, is));
    let mut wrong = kinds.chain(others).filter(|(_, says, is)| says != is);
    let (what, says, is) = wrong.next()?;
    Some(differ(&what, says, is))
}

fn differ(what: &str, says: u64, is: u64) -> String {
    let [says, is] = [says, is].map(units::count);
    format!("the summary counts {says} {what}, the frames hold {is}")
}
