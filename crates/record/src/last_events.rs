//! Writes the end of a trace file: its last events, the functions of its stacks, and its summary.

use tr_format::event::{Ktime, Stream};
use tr_format::meta::Summary;

use crate::collector::LastBatches;
use crate::command::Running;
use crate::config::{Config, Follow};
use crate::output::{Batch, Output, Tally};
use crate::parts::{Cut, Parts, WrittenParts};
use crate::signals::Signals;
use crate::source::{recorder, Source};
use crate::stall::Stall;
use crate::symbols::{self, Request, Search};

/// The objects that pass signals on to COMMAND while the recorder waits for a slow output.
pub(crate) struct Waiting<'a> {
    pub running: Option<&'a Running>,
    pub signals: &'a Signals,
    pub source: &'a dyn Source,
}

impl Waiting<'_> {
    pub fn go_on(&self, stall: &mut Stall) -> bool {
        stall.go_on(self.running, self.signals, Some(self.source))
    }
}

/// The result of writing the end of a trace file.
pub(crate) struct Written {
    pub tally: Tally,
    pub error: Option<tr_format::Error>,
    pub given_up: bool,
    pub symbols: Option<Search>,
    pub parts: Option<WrittenParts>,
    pub cut: Option<Cut>,
}

impl Written {
    /// Adds the counts of the earlier parts of a rotated recording to this result, and notes the first part whose
    /// file lacks its end.
    pub fn with_parts(mut self, parts: Parts, waiting: &Waiting<'_>) -> Written {
        self.parts = Some(parts.written());
        let mut stall = Stall::new(|| {});
        let (before, cut) = parts.finish(|| waiting.go_on(&mut stall));
        self.tally.add(&before);
        self.cut = cut;
        self
    }
}

/// A trace file that the recorder is about to complete: its last events, as far as they were not sent to the writer
/// yet. The summary follows after them.
pub(crate) struct LastEvents {
    output: Output,
    /// The batches of events that were not sent to the writer yet.
    batches: Vec<Batch>,
    symbols: Option<Search>,
}

impl LastEvents {
    /// Writes the last events of a trace file now, because the file's summary is written later.
    pub fn settle(&mut self, waiting: &Waiting<'_>) {
        let mut stall = Stall::new(|| {});
        let batches = std::mem::take(&mut self.batches);
        self.output.settle(batches, || waiting.go_on(&mut stall));
    }

    /// Writes the last events and the summary, and completes the trace file.
    pub fn finish(self, config: &Config, summary: Summary, waiting: &Waiting<'_>) -> Written {
        let mut stall = Stall::new(config.notices.on_wait);
        let go_on = || waiting.go_on(&mut stall);
        let finished = self.output.finish(self.batches, summary, go_on);
        let given_up = finished.is_none();
        let (tally, written) = finished.unwrap_or((Tally::default(), Ok(())));
        Written {
            tally,
            error: written.err(),
            given_up,
            symbols: self.symbols,
            parts: None,
            cut: None,
        }
    }
}

/// Sends the last events of a trace file to the writer, and looks up the functions of the recorded stacks. If no stacks
/// are recorded, the events are not sent but returned with the result. `start` is the time at which the recording, or
/// the part of it in this file, began. `summary` is the summary that the caller writes to the file later.
pub(crate) fn write_events(
    config: &Config,
    last: LastBatches,
    start: Ktime,
    summary: &Summary,
    waiting: &Waiting<'_>,
) -> LastEvents {
    let LastBatches {
        output,
        mut batches,
    } = last;
    let symbols = if config.facts.has_stacks() {
        let real = summary.end_clock.real;
        // JIT compilers write lists of their functions to files (such as `/tmp/perf-PID.map`). Only COMMAND and its
        // descendants cannot have written their lists before the recording. If other processes are followed, lists of
        // any age are accepted.
        let begin = match config.scope.follow {
            Follow::Command => real.saturating_sub(summary.end.since(start)),
            _ => 0,
        };
        let mut stall = Stall::new(|| {});
        let mut go_on = || waiting.go_on(&mut stall);
        let batches = std::mem::take(&mut batches);
        let request = output.unnamed(batches, &mut go_on);
        request.and_then(|unnamed| {
            let request = Request {
                lifetime: tr_symbols::Lifetime { begin, end: real },
                paths_only: !config.facts.symbols,
                ..unnamed
            };
            name_stacks(&output, &request, summary.end, &mut go_on)
        })
    } else {
        None
    };
    LastEvents {
        output,
        batches,
        symbols,
    }
}

/// Searches for the functions of the recorded stacks and stores them, as events at the time `end`. With
/// `--no-symbols` it only stores the paths of the program files, with which `tr symbolize` can find the functions
/// later. Returns the result of the search if there were functions to find.
pub(crate) fn name_stacks(
    output: &Output,
    request: &Request,
    end: Ktime,
    go_on: &mut impl FnMut() -> bool,
) -> Option<Search> {
    let (kinds, search) = symbols::search(request, symbols::LIMIT, go_on);
    let events = kinds.into_iter().map(|kind| recorder(end, kind));
    output.life(Stream::Lifecycle, events.collect());
    (!request.paths_only && search.frames > 0).then_some(search)
}
