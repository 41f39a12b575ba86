//! Joins the files (parts) of a rotated recording to one trace.

use std::fmt;

use crate::event::{Ktime, Stream};
use crate::meta::{Cost, Machine, Metadata, Summary};
use crate::scripts;
use crate::source::Source;
use crate::walk;

use super::Trace;

/// The difference between the time of day and `CLOCK_BOOTTIME` may change by at most this many ns (one hour) between
/// two parts of one recording, because the time of day can be set. If it changes by more, the machine was restarted:
/// `CLOCK_BOOTTIME` then begins at 0 again.
const LARGEST_CLOCK_STEP: u64 = 3_600_000_000_000;

/// A part of a rotated recording that was appended to the first part.
#[derive(Debug)]
pub(super) struct JoinedPart {
    /// The offset in the joined trace at which this part of the recording begins, in bytes.
    base: u64,
    begin: Ktime,
    source: Source,
    id: u32,
}

/// How a part of a rotated recording follows the part before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// The part of the recording begins where the part before it ends.
    Whole,
    /// Between the two parts, other parts of the recording are missing, or the end of the earlier part is missing. The
    /// number is the time in ns that no part covers.
    Missing(u64),
}

/// The reason why a trace cannot be appended to another trace as a later part of the same recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNext {
    /// The two traces belong to different recordings.
    Other,
    /// The trace begins before the end of the trace that it would be appended to.
    Overlap,
}

impl fmt::Display for NotNext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotNext::Other => "no part of the same recording (--rotate)",
            NotNext::Overlap => "it begins before the part before it ends",
        })
    }
}

impl Trace {
    /// Appends the next part of the same rotated recording. If time between the parts is missing, or the earlier part
    /// is cut off, lifecycle events and the recorder's events are recorded as lost, but no scheduling events.
    ///
    /// # Errors
    /// `next` belongs to another recording, or begins before this trace ends.
    pub fn append(&mut self, next: Trace) -> Result<Joint, NotNext> {
        if !is_one_recording(&self.meta, &next.meta) {
            return Err(NotNext::Other);
        }
        let begin = next.meta.start;
        let end = self.last_time();
        if begin < end || begin < self.meta.start {
            return Err(NotNext::Overlap);
        }
        let is_cut = self.summary.is_none();
        let missing = begin.since(end);
        let base = self.bytes();
        self.damage.extend(next.damage);
        self.gaps.extend(next.gaps);
        if missing > 0 || is_cut {
            for stream in [Stream::Lifecycle, Stream::Recorder] {
                self.gaps.push(walk::gap(stream, end.0, begin.0, None));
            }
        }
        let frames = next.frames.into_iter().map(|mut frame| {
            frame.offset = frame.offset.saturating_add(base);
            frame
        });
        self.frames.extend(frames);
        self.parts.push(JoinedPart {
            base,
            begin,
            source: next.source,
            id: next.id,
        });
        self.minor = self.minor.max(next.minor);
        self.unknown.events += next.unknown.events;
        self.unknown.fields += next.unknown.fields;
        self.unknown.frames += next.unknown.frames;
        self.end = next.end;
        self.recovered_from = next.recovered_from;
        self.under_way = next.under_way;
        self.index_lies = self.index_lies.or(next.index_lies);
        self.summary = match (self.summary.take(), next.summary) {
            (Some(before), Some(last)) => Some(joined(before, last)),
            (_, last) => last,
        };
        Ok(if missing > 0 || is_cut {
            Joint::Missing(missing)
        } else {
            Joint::Whole
        })
    }

    /// The time until which the trace is complete: the recording's end if the trace has a summary, otherwise the last
    /// time in its frames.
    fn last_time(&self) -> Ktime {
        let frames = self.frames.iter().map(|frame| frame.max);
        let cut = || frames.max().unwrap_or(self.meta.start);
        self.summary
            .as_ref()
            .map_or_else(cut, |summary| summary.end)
    }

    /// The times at which the later parts of a rotated recording begin. The totals of the machine's counters begin anew
    /// at these times.
    pub fn later_parts(&self) -> impl Iterator<Item = Ktime> + '_ {
        self.parts.iter().map(|part| part.begin)
    }

    /// The part of a joined trace that contains this offset: the bytes of the part, the part's trace id, and the offset
    /// at which it begins.
    pub(super) fn part_at(&self, offset: u64) -> (&Source, u32, u64) {
        let after = self.parts.partition_point(|part| part.base <= offset);
        let part = after.checked_sub(1).and_then(|at| self.parts.get(at));
        part.map_or((&self.source, self.id, 0), |part| {
            (&part.source, part.id, part.base)
        })
    }

    /// The length of all parts of the joined trace in bytes.
    pub(super) fn length(&self) -> u64 {
        let last = self.parts.last();
        last.map_or(self.source.len(), |part| {
            part.base.saturating_add(part.source.len())
        })
    }
}

/// Whether two traces belong to one recording: to one machine since its last start, with the same command and settings.
fn is_one_recording(one: &Metadata, other: &Metadata) -> bool {
    let since = |meta: &Metadata| meta.start_clock.real.saturating_sub(meta.start_clock.boot);
    let is_one_boot = since(one).abs_diff(since(other)) <= LARGEST_CLOCK_STEP;
    let same = |meta: &Metadata| {
        (
            meta.host.clone(),
            meta.kernel.clone(),
            meta.scope.clone(),
            meta.command.clone(),
            meta.root,
            meta.options.clone(),
            meta.tool_version.clone(),
        )
    };
    is_one_boot && same(one) == same(other)
}

/// Joins the summaries of two parts of a recording: the result has the end of the last part, and adds up the numbers of
/// events, the costs and the withheld times of both parts.
fn joined(before: Summary, last: Summary) -> Summary {
    let tally = before.tally.zip(last.tally).map(|(mut all, tally)| {
        all.add(&tally);
        all
    });
    let (one, other) = (before.machine, last.machine);
    let machine = one.zip(other).map(|(one, other)| Machine {
        throttled_ns: sum(one.throttled_ns, other.throttled_ns),
        stolen_ns: sum(one.stolen_ns, other.stolen_ns),
        memory_stalled_ns: sum(one.memory_stalled_ns, other.memory_stalled_ns),
    });
    let (one, other) = (before.cost, last.cost);
    let cost = Cost {
        recorder_ns: one.recorder_ns.saturating_add(other.recorder_ns),
        bpf_ns: sum(one.bpf_ns, other.bpf_ns),
        setup_ns: one.setup_ns.saturating_add(other.setup_ns),
    };
    let left_out = before.scripts_left_out;
    let mut both = Summary {
        tally,
        cost,
        machine,
        scripts: scripts::joined(before.scripts, last.scripts),
        scripts_left_out: left_out.saturating_add(last.scripts_left_out),
        ..last
    };
    both.bound_scripts();
    both
}

/// The sum of two optional numbers; `None` if one of them is not known.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}
