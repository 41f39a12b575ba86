//! Collects the warnings about a recording: the reasons why the recording's numbers are incomplete, and how the
//! recording was made. Text, Markdown, the HTML page and JSON show this list before the numbers.

use std::collections::BTreeSet;

use tr_analyze::model::{Analysis, Basis, Process, Quality};
use tr_format::event::{Ktime, LossCause, Lost, Stream};
use tr_format::meta::{Known, RecordingFacts};
use tr_programs::program_name::ProgramName;
use tr_programs::tools::ContainerVerb;

use crate::processes::{exit, label, now};
use crate::recordings::audit;
use crate::recordings::audit::Doubt;
use crate::recordings::untraced;
use crate::Recording;
use tr_text::called::TR;
use tr_text::{escape, units};

/// The largest number of pairs of a stream of events (such as the events of one CPU) and a cause of loss that get a
/// line of warning of their own.
const STREAMS: usize = 5;

/// The warnings for the reader of a report: the reasons why the report's numbers are incomplete, the gravest reason
/// first.
pub fn warnings(recording: &Recording) -> Vec<String> {
    let analysis = &recording.analysis;
    let mut said = Vec::new();
    if let Some(reason) = untraced::reason(analysis) {
        said.push(format!("not traced: {reason}"));
    }
    said.extend(cut(analysis));
    said.extend(missing(analysis));
    let quality = &analysis.quality;
    said.extend(recording.budget.left_out.clone());
    said.extend(clocks(quality).map(|clocks| format!("the CPUs' clocks disagree: {clocks}")));
    said.extend(audit::doubts(analysis).iter().map(Doubt::text));
    let facts = analysis.meta.facts();
    if facts.switches == Known::Sampled {
        said.extend(inexact(&facts).map(|what| format!("samples: {what}")));
    }
    let degraded = quality.degraded.iter();
    said.extend(degraded.map(|(_, what)| escape::raw(what)));
    said.extend(not_recorded(analysis));
    let times = &analysis.totals.times;
    // If less than 1 % is unknown, there is no warning; the unknown time is shown with the other sums.
    if is_much(times.unknown, times.sum()) {
        said.push(format!(
            "{} of the processes' time ({}) is unknown",
            units::share(times.unknown, times.sum()),
            units::time(times.unknown)
        ));
    }
    said
}

/// The line of warning about processes in containers that were not recorded, because it is not known which client
/// started them; `None` if there are no such processes.
fn not_recorded(analysis: &Analysis) -> Option<String> {
    let count = analysis.containers.not_recorded;
    (count > 0).then(|| {
        format!(
            "{} not recorded: recorded clients and others had \
             connections to the daemon, so it is not known for whom they are (--containers=all records them)",
            units::plural(
                count,
                "process of container runtimes, which a daemon started, is",
                "processes of container runtimes, which a daemon started, are"
            )
        )
    })
}

fn seconds(start: Ktime, time: Ktime) -> String {
    format!("{:.3} s", time.since(start) as f64 / 1e9)
}

/// The possible reasons why a trace file ends before its recording did. The file does not show which one applies.
pub const CUT_REASONS: &str = "the disk was full, or the recorder was killed";

/// The line of warning that a recording, or its analysis, ended early, or that the recording is under way; otherwise
/// `None`.
fn cut(analysis: &Analysis) -> Option<String> {
    let quality = &analysis.quality;
    if let Some(why) = &quality.stopped {
        return Some(format!("{why}; the rest of the recording is unknown"));
    }
    if quality.under_way {
        let until = seconds(analysis.meta.start, analysis.end);
        return Some(format!(
            "the recording is under way: its events up to {until} are shown; {}",
            now::of(analysis).unwrap_or_else(|| "nothing is known yet".into())
        ));
    }
    if let Some(full) = analysis.summary.as_ref().and_then(|summary| {
        let end = Ktime(analysis.meta.start.0.saturating_add(analysis.whole));
        exit::full(&analysis.meta, summary, end)
    }) {
        return Some(full);
    }
    let why = match &quality.truncated {
        Some(truncated) => escape::raw(truncated.as_bytes()),
        None if is_cut(analysis) => "it has no end".into(),
        None => return None,
    };
    Some(if is_blank(analysis) {
        format!("the trace is truncated ({why}) before its first moment: {CUT_REASONS}; nothing is known")
    } else {
        format!(
            "the trace is truncated ({why}): {CUT_REASONS}; the events up to {} are shown",
            seconds(analysis.meta.start, analysis.end)
        )
    })
}

/// The events that are missing from one stream (such as the events of one CPU) for one cause.
#[derive(Debug)]
pub struct Loss {
    stream: Stream,
    pub cause: LossCause,
    since: Ktime,
    until: Ktime,
    spans: u64,
    /// The number of events that are known to be missing from the stream.
    count: u64,
    /// The number of spans of time in which an unknown number of the stream's events is missing.
    uncounted: u64,
}

impl Loss {
    /// The sentence about the missing events of a stream, without the full stop. The times in the sentence count from
    /// `start`, the start of the recording.
    pub fn text(&self, start: Ktime) -> String {
        let count = match (self.count, self.uncounted) {
            (0, _) => "some".to_owned(),
            (count, 0) => units::count(count),
            (count, _) => format!("more than {}", units::count(count)),
        };
        let one = self.count == 1 && self.uncounted == 0;
        let stream = match self.stream {
            Stream::Cpu(cpu) if one => format!("event of CPU {}", cpu.0),
            Stream::Cpu(cpu) => format!("events of CPU {}", cpu.0),
            _ if self.cause == LossCause::FollowSet && one => "task that was not followed".into(),
            _ if self.cause == LossCause::FollowSet => "tasks that were not followed".into(),
            _ if one => "fork, exec or exit".into(),
            _ => "forks, execs or exits".into(),
        };
        let verb = if one { "is" } else { "are" };
        let [since, until] = [self.since, self.until].map(|time| seconds(start, time));
        let spans = match self.spans {
            1 => String::new(),
            spans => format!(", in {} spans", units::count(spans)),
        };
        format!("{count} {stream} {verb} missing between {since} and {until}{spans}")
    }
}

/// Sums up the missing events of a recording. The result has one entry for each pair of a stream and a cause, in the
/// order in which the pairs first occur in `lost`.
pub fn losses(lost: impl Iterator<Item = (Ktime, Lost)>) -> Vec<Loss> {
    let mut losses: Vec<Loss> = Vec::new();
    for (since, lost) in lost {
        let known = losses
            .iter_mut()
            .find(|known| known.stream == lost.stream && known.cause == lost.cause);
        let (count, uncounted) = (lost.count.unwrap_or(0), u64::from(lost.count.is_none()));
        match known {
            Some(known) => {
                known.since = known.since.min(since);
                known.until = known.until.max(lost.until);
                known.spans += 1;
                known.count = known.count.saturating_add(count);
                known.uncounted += uncounted;
            }
            None => losses.push(Loss {
                stream: lost.stream,
                cause: lost.cause,
                since,
                until: lost.until,
                spans: 1,
                count,
                uncounted,
            }),
        }
    }
    losses
}

/// Returns the first `STREAMS` losses of events, which get a warning line each, and one line that counts the spans of
/// all other losses together with `more` further spans. This line is `None` if there are no other spans.
pub fn lines(mut losses: Vec<Loss>, more: u64) -> (Vec<Loss>, Option<String>) {
    let left_out = losses.split_off(losses.len().min(STREAMS));
    let more = left_out.iter().map(|loss| loss.spans).sum::<u64>() + more;
    let others = (more > 0).then(|| {
        let spans = units::plural(more, "more span", "more spans");
        format!("and {spans} with missing events")
    });
    (losses, others)
}

/// The lines of warning about missing events: one for each of the first `STREAMS` pairs of a stream and a cause, and
/// one for the rest.
fn missing(analysis: &Analysis) -> Vec<String> {
    let spans = analysis.quality.lost.iter().map(|span| {
        let lost = Lost {
            stream: span.stream,
            count: span.count,
            until: span.until,
            cause: span.cause,
        };
        (span.since, lost)
    });
    let (losses, others) = lines(losses(spans), 0);
    let losses = losses.iter().map(|loss| loss.text(analysis.meta.start));
    losses.chain(others).collect()
}

/// Whether the end of the trace, or of its analysis, is missing, for example because the recorder was killed or the
/// disk was full. A file that lacks only its index has all events and does not count.
pub fn is_cut(analysis: &Analysis) -> bool {
    analysis.summary.is_none() || analysis.quality.stopped.is_some()
}

/// Whether the trace was cut off so early that there is no moment up to which all events were recorded. No time and no
/// process of such a trace is known.
pub fn is_blank(analysis: &Analysis) -> bool {
    is_cut(analysis) && analysis.end == analysis.start && analysis.processes.is_empty()
}

/// The number of events that a recording has lost; `None` if this number is not known.
pub fn lost_events(analysis: &Analysis) -> Option<u64> {
    let known = !analysis.quality.lost_unknown && !is_cut(analysis);
    known.then_some(analysis.quality.lost_events)
}

/// The words for the events that a recording has lost, as far as they are known.
pub fn lost(analysis: &Analysis) -> String {
    let quality = &analysis.quality;
    let lost = match (quality.lost.is_empty(), quality.lost_unknown) {
        (true, _) => None,
        (false, false) => Some(format!("{} lost", units::count(quality.lost_events))),
        (false, true) => Some("some lost".into()),
    };
    match (lost, is_cut(analysis)) {
        (None, false) => "none lost".into(),
        (Some(lost), false) => lost,
        (None, true) => "the rest is missing".into(),
        (Some(lost), true) => format!("{lost}, the rest is missing"),
    }
}

/// Whether the unknown part of a time is a hundredth of the whole or more, so that a warning is due.
pub fn is_much(unknown: u64, whole: u64) -> bool {
    unknown.saturating_mul(100) >= whole.max(1)
}

/// Whether the computed CPU time of a recording is only a lower bound. There are two reasons: the trace was cut off, so
/// that the rest is unknown, or the state of tasks is unknown for a noticeable time. The second reason does not apply
/// to a recording that has only the kernel's totals, because these totals include all CPU time.
pub fn is_lower_bound(analysis: &Analysis) -> bool {
    let times = &analysis.totals.times;
    let hidden = analysis.basis() == Basis::Events && is_much(times.unknown, times.sum());
    hidden || is_cut(analysis)
}

/// The sentences about the way in which a recording was made, and about the facts that the recording lacks.
pub fn recorded(analysis: &Analysis) -> Vec<String> {
    let by = escape::raw(analysis.meta.recorded_by().as_bytes());
    let light = if analysis.meta.is_light() {
        " --light"
    } else {
        ""
    };
    let mut parts = vec![format!("by {by}{light}")];
    let Some(origin) = analysis.meta.origin else {
        return parts;
    };
    let facts = origin.facts;
    if facts.switches == Known::Totals {
        parts.extend(inexact(&facts).map(String::from));
    }
    let absent = absent(&facts);
    if !absent.is_empty() {
        parts.push(format!("not known: {}", absent.join(", ")));
    }
    let clients = daemons_clients(analysis);
    if facts.wakings == Known::Absent && !clients.is_empty() {
        parts.push(format!(
            "what daemons do for {} is recorded only with BPF rights ({TR} doctor)",
            clients
                .iter()
                .map(ProgramName::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    parts
}

/// The kinds of facts that a recording lacks, in words.
pub fn absent(facts: &RecordingFacts) -> Vec<&'static str> {
    let all = [
        (facts.switches, "when a task ran"),
        (facts.run_queue, "run-queue waits"),
        (facts.wakings, "wake-ups"),
        (facts.blocked, "blocked apart from sleep"),
        (facts.argv, "arguments"),
        (facts.codes, "exit statuses"),
        (facts.memory, "memory"),
    ];
    let absent = all.iter().filter(|(known, _)| *known == Known::Absent);
    absent.map(|(_, what)| *what).collect()
}

/// The words for a recording whose times are not exact, because it has only totals or samples; `None` for a recording
/// with scheduling events.
pub fn inexact(facts: &RecordingFacts) -> Option<&'static str> {
    match facts.switches {
        Known::Totals => Some("CPU times are totals of each task"),
        Known::Sampled => Some("all times are lower bounds, and short processes are missing"),
        _ => None,
    }
}

/// The recorded programs that let a daemon run containers: calls such as `docker run`, not `docker ps`.
fn daemons_clients(analysis: &Analysis) -> BTreeSet<ProgramName> {
    let processes = analysis.processes.iter();
    let asks = |process: &&Process| process.tool().is_some_and(|tool| tool.asks_daemon);
    let calls = processes.filter(asks).map(label::program);
    let runs = |call: &ProgramName| {
        let verb = call.verb().and_then(ContainerVerb::of);
        matches!(verb, Some(ContainerVerb::Run | ContainerVerb::Part))
    };
    // The returned set is small: it has at most one entry for each pair of a program and a verb.
    calls.filter(runs).collect()
}

/// The warning that the clocks of the machine's CPUs disagree; `None` if they agree.
pub fn clocks(quality: &Quality) -> Option<String> {
    quality.clocks.map(|clocks| {
        format!(
            "CPU {} and CPU {} by at least {} ({} impossible orders of events): all times are \
             doubtful",
            clocks.cpus.0 .0,
            clocks.cpus.1 .0,
            units::time(clocks.by),
            units::count(clocks.impossible_orders)
        )
    })
}

/// The anomalies of the trace in words, each with the number of its occurrences. Because of these anomalies, the state
/// of tasks is unknown for some time.
pub fn anomalies(quality: &Quality) -> Vec<String> {
    let counts = quality.anomalies.iter();
    counts
        .map(|(what, count)| format!("{} × {what}", units::count(*count)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_format::event::CpuId;

    /// Returns the lines of warnings for some losses of events, for a test. Each loss has the stream, the number of
    /// events (`None` if unknown), and the first and the last millisecond.
    fn said(lost: &[(Stream, Option<u64>, u64, u64)], more: u64) -> Vec<String> {
        let spans = lost.iter().map(|(stream, count, since, until)| {
            let lost = Lost {
                stream: *stream,
                count: *count,
                until: Ktime(until * 1_000_000),
                cause: LossCause::BufferFull,
            };
            (Ktime(since * 1_000_000), lost)
        });
        let (losses, others) = lines(losses(spans), more);
        let losses = losses.iter().map(|loss| loss.text(Ktime(0)));
        losses.chain(others).collect()
    }

    /// Checks that a stream has only one line of warnings, even if many of its events are lost at different times.
    #[test]
    fn losses_of_a_stream_have_one_line() {
        let (first, second) = (Stream::Cpu(CpuId(0)), Stream::Cpu(CpuId(1)));
        let many = (0..200).map(|at| (second, Some(1), at, at));
        let lost = [vec![(first, Some(1), 5, 7)], many.collect()].concat();
        assert_eq!(
            said(&lost, 3),
            [
                "1 event of CPU 0 is missing between 0.005 s and 0.007 s",
                "200 events of CPU 1 are missing between 0.000 s and 0.199 s, in 200 spans",
                "and 3 more spans with missing events",
            ]
        );
        let unknown = [
            (first, None, 1, 2),
            (second, Some(4), 1, 2),
            (second, None, 3, 4),
        ];
        assert_eq!(
            said(&unknown, 0),
            [
                "some events of CPU 0 are missing between 0.001 s and 0.002 s",
                "more than 4 events of CPU 1 are missing between 0.001 s and 0.004 s, in 2 spans",
            ]
        );
    }

    #[test]
    fn few_streams_have_a_line() {
        let lost: Vec<_> = (0..9)
            .map(|cpu| (Stream::Cpu(CpuId(cpu)), Some(2), 1, 2))
            .collect();
        let lines = said(&lost, 0);
        assert_eq!(lines.len(), STREAMS + 1);
        assert_eq!(
            lines.last().map(String::as_str),
            Some("and 4 more spans with missing events")
        );
    }
}
