//! Describes the contents of a trace for `tr info`, either from an analysis of all events or from the
//! summary at the trace's end.

use std::collections::BTreeMap;
use std::path::Path;

use tr_analyze::{Analysis, Options};
use tr_format::event::Stream;
use tr_format::meta::{Cost, Metadata, Summary, Usage};
use tr_format::outline::Outline;
use tr_format::reader::{End, Trace, Unknown};
use tr_format::tally::Tally;
use tr_format::{frame, Error};
use tr_report::reports::TimelineUse;

use crate::budget::Budget;
use crate::{analysis, open, suspend};

/// The largest number of events for which `tr info` always analyzes a trace, which takes some ten
/// milliseconds.
pub const ALWAYS_ANALYZED: u64 = 100_000;

/// The names under which `tr info` counts events, in order, each with the kinds of events that it stands
/// for. A kind that is not listed keeps its own name, and comes after the others.
const SHOWN_KINDS: [(&str, &[&str]); 21] = [
    ("switch", &[]),
    ("waking", &[]),
    ("wakeup_new", &[]),
    ("fork", &[]),
    ("exec", &[]),
    ("exit", &[]),
    ("end", &[]),
    ("final", &[]),
    ("rename", &[]),
    ("cgroup", &["cgroup_path", "cgroup_move"]),
    ("snapshot", &[]),
    (
        "connection",
        &["connect", "connected", "accepted", "closed"],
    ),
    ("dns", &["dns_query", "dns_answer"]),
    ("block", &["block", "disk_wait", "sync_file"]),
    ("stack", &["module", "sample", "symbol"]),
    ("memory", &["oom_kill", "reclaim"]),
    ("account", &[]),
    ("detached", &[]),
    ("degraded", &[]),
    ("recorder", &["lost", "clock", "progress", "mark"]),
    ("counters", &["counters", "system_calls"]),
];

pub struct Contents {
    pub meta: Metadata,
    pub summary: Option<Summary>,
    /// The minor version number of the file format in which the trace is written.
    pub minor: u16,
    /// The size in bytes of the trace file that `tr info` describes.
    pub bytes: u64,
    /// The counts of the trace's events and losses. Its commit delay is a lower bound of the longest time from an
    /// event's timestamp until the BPF program has stored the event for the recorder. Without an analysis, the bound
    /// only holds if the clocks of the CPUs agree.
    pub tally: Tally,
    /// The length in ns of the span of time that the trace covers.
    pub duration: u64,
    pub end: End,
    /// Whether the recorder of this trace is still writing it.
    pub under_way: bool,
    /// The numbers of frames (blocks of events in the file), events and fields that only a later version of `tr`
    /// understands, so that this version skips them.
    pub unknown: Unknown,
    /// The analysis of all events of the trace; `None` if only the summary was read.
    pub analysis: Option<Analysis>,
}

impl Contents {
    /// The length in ns of the span of time that the trace covers; `None` if the trace has neither events
    /// nor a summary.
    pub fn known_duration(&self) -> Option<u64> {
        let known = self.meta.not_traced.is_none() || self.end == End::Complete;
        known.then_some(self.duration)
    }

    /// The numbers of the trace's events, by the names that `tr info` uses, in the order of [`SHOWN_KINDS`].
    pub fn by_kind(&self) -> Vec<(&'static str, u64)> {
        let mut all: Vec<_> = SHOWN_KINDS
            .iter()
            .map(|(shown, _)| (*shown, 0_u64))
            .collect();
        for (kind, count) in self.tally.events.by_kind() {
            let of = |(_, kinds): &(&str, &[&str])| kinds.contains(&kind);
            let group = SHOWN_KINDS.iter().position(of);
            let shown = group.map_or(kind, |at| SHOWN_KINDS.get(at).map_or(kind, |shown| shown.0));
            match all.iter_mut().find(|row| row.0 == shown) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => all.push((shown, count)),
            }
        }
        all
    }

    /// The numbers of lost events in the trace, by the name of the stream that lost them.
    pub fn lost(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::<String, u64>::new();
        for (stream, count) in &self.tally.lost {
            let name = match stream {
                Stream::Cpu(cpu) => format!("cpu{}", cpu.0),
                Stream::Lifecycle | Stream::Recorder => "lifecycle".into(),
            };
            let sum = sums.entry(name).or_default();
            *sum = sum.saturating_add(*count);
        }
        sums
    }

    /// The CPU time that the recorder and its BPF programs took. `None` if the run was not traced, if another program
    /// than `tr` recorded it, or if the trace has no summary.
    pub fn cost(&self) -> Option<Cost> {
        let traced = self.meta.not_traced.is_none() && self.meta.recorder.is_none();
        let summary = self.summary.as_ref().filter(|_| traced);
        summary.map(|summary| summary.cost)
    }

    /// The CPU time and the other resource usage (rusage) of COMMAND, if it ran without tracing.
    pub fn usage(&self) -> Option<Usage> {
        self.summary.as_ref()?.usage
    }
}

/// Reads the contents of FILE for `tr info`: its summary, and all events if `full` is set, if they are few
/// ([`ALWAYS_ANALYZED`]), or if there is no summary.
pub fn of(path: &Path, full: bool, budget: Budget) -> Result<Contents, Error> {
    let is_written = open::is_written(path);
    let source = open::source(path)?;
    if !full {
        if let Some(outline) = Outline::read(&source)? {
            let large = outline.tally.events.total() > ALWAYS_ANALYZED;
            // A trace of a later version may have frames (blocks of events in the file) of kinds that this version does
            // not know and has to count.
            let later = outline.minor.saturating_sub(frame::MINOR) > 0;
            if large && !later {
                return Ok(by_summary(outline));
            }
        }
    }
    let mut trace = Trace::open(source)?;
    if is_written {
        trace.set_under_way();
    }
    Ok(by_analysis(&trace, budget))
}

fn by_summary(outline: Outline) -> Contents {
    let Outline {
        minor,
        meta,
        summary,
        mut tally,
        bytes,
        unknown_fields,
    } = outline;
    tally.commit_delay = tally.commit_delay.max(tally.largest_inversion);
    Contents {
        minor,
        bytes,
        tally,
        duration: summary.end.since(meta.start),
        end: End::Complete,
        under_way: false,
        unknown: Unknown {
            fields: unknown_fields,
            ..Unknown::default()
        },
        summary: Some(summary),
        analysis: None,
        meta,
    }
}

fn by_analysis(trace: &Trace, budget: Budget) -> Contents {
    let analysis = analysis::analyze(
        trace,
        &Options::default(),
        analysis::Allowance::new(budget, TimelineUse::Path),
    )
    .analysis;
    let mut lost = BTreeMap::new();
    for span in &analysis.quality.lost {
        let sum: &mut u64 = lost.entry(span.stream).or_default();
        *sum = sum.saturating_add(span.count.unwrap_or(0));
    }
    let tally = Tally {
        events: analysis.events,
        frames: trace.frames().len() as u64,
        largest_inversion: analysis.quality.largest_inversion,
        commit_delay: analysis.quality.commit_delay,
        lost,
        suspends: suspend::suspends(trace),
    };
    Contents {
        meta: trace.meta().clone(),
        summary: trace.summary().cloned(),
        minor: trace.minor_version(),
        bytes: trace.bytes(),
        tally,
        duration: analysis.wall(),
        end: trace.end().clone(),
        under_way: trace.under_way(),
        // Parts of the trace that this version of `tr` does not know are counted only while the events are read, so
        // this count is taken after the analysis.
        unknown: trace.unknown(),
        analysis: Some(analysis),
    }
}
