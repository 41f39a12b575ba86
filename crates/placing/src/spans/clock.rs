//! Converts the times in an imported file to times of the recording.

use std::collections::{HashMap, HashSet};

use super::named::Candidates;
use super::{Span, Spans};
use crate::align::most_frequent;
use crate::lookup::{signed, Lookup, CLOCKS};

/// The largest number of processes that are matched with one span to find the beginning of the file's clock. A bound of
/// the work.
const VOTES: usize = 16;

/// If the life of a process is about as long as its span, the process suggests a time for the zero of the file's clock.
/// The process may live longer than the span by at most this many nanoseconds, or by a tenth of the span if that is
/// more. Two suggested times agree if they differ by at most this constant. A guess: with a larger limit, the times
/// suggested by unrelated spans would agree by chance.
const LARGEST_DIFFERENCE: i64 = 50_000_000;

/// If an imported file does not say when its clock begins: the least number of spans that must agree on a beginning of
/// this clock. A guess: a single span may have been matched with a wrong process of an equal name.
const LEAST_AGREEING: usize = 2;

/// The beginning of the clock by which an imported file has its times, as far as the file contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The times of the file count from this moment, which is in ns since 1970.
    Since(i64),
    /// The imported file does not contain the beginning of its clock.
    #[default]
    Unknown,
}

/// The conversion of an imported file's times to times of the recording.
pub struct Moments<'a> {
    lookup: &'a Lookup<'a>,
    zero: Zero,
    error: u64,
    /// Whether the times in the imported file are times of the day.
    pub are_times_of_day: bool,
}

enum Zero {
    /// The clock of the imported file begins at this moment, in nanoseconds since 1970.
    Unix(i64),
    /// The clock of the imported file begins at this moment of the recording's clock, in nanoseconds.
    Recording(i64),
}

impl<'a> Moments<'a> {
    /// Finds out how to convert the times of an imported file to the recording's times, by finding the zero of the
    /// file's clock. The following zeros are tried in this order. First, the zero that the file itself states. Then the
    /// zero of the time of the day. Then the zero on which most spans agree, if each span is matched with a process by
    /// its words, or else the zero that fits the lives of the processes with the spans' pids. The zero of one of the
    /// machine's own clocks is preferred if it is nearly equal to this zero, or if no zero was found and a recorded
    /// process had the pid of a span. `None` if no zero fits.
    pub fn of(file: &Spans, named: &Candidates<'_>, lookup: &'a Lookup<'a>) -> Option<Moments<'a>> {
        let new = |zero, error, are_times_of_day| Moments {
            lookup,
            zero,
            error,
            are_times_of_day,
        };
        let by_day = lookup.clock_error();
        let by_day = u64::try_from(by_day).unwrap_or(u64::MAX);
        if let Clock::Since(zero) = file.clock {
            return Some(new(Zero::Unix(zero), by_day, true));
        }
        let from = file.spans.iter().map(|span| span.from).min()?;
        let to = file.spans.iter().map(|span| span.to).max()?;
        let start = signed(lookup.analysis.meta.start);
        let boot = i64::try_from(lookup.analysis.meta.start_clock.boot).unwrap_or(i64::MAX);
        let is_inside =
            |zero: &i64| !lookup.is_outside(from.saturating_add(*zero), to.saturating_add(*zero));
        if !lookup.is_outside(lookup.time(from), lookup.time(to)) {
            return Some(new(Zero::Unix(0), by_day, true));
        }
        let found = by_words(file, named, lookup).or_else(|| by_pids(file, lookup));
        // The machine itself has two clocks: one counts the time in which the machine was suspended, and the other does
        // not.
        let clocks = [0, start.saturating_sub(boot)];
        let own = clocks.into_iter().find(is_inside);
        match (found, own) {
            (Some((zero, error)), Some(own))
                if own.abs_diff(zero) <= error.max(LARGEST_DIFFERENCE.unsigned_abs()) =>
            {
                Some(new(Zero::Recording(own), 0, false))
            }
            (Some((zero, error)), _) => Some(new(Zero::Recording(zero), error, false)),
            (None, Some(own)) if has_pids(file, lookup) => {
                Some(new(Zero::Recording(own), 0, false))
            }
            (None, _) => None,
        }
    }

    /// The beginning and the end of an imported span, in nanoseconds of the recording's time.
    pub fn of_span(&self, span: &Span) -> (i64, i64) {
        let at = |time: i64| match self.zero {
            Zero::Unix(zero) => self.lookup.time(zero.saturating_add(time)),
            Zero::Recording(zero) => zero.saturating_add(time),
        };
        (at(span.from), at(span.to))
    }

    /// The largest error in nanoseconds of a time of the file after its conversion to a time of the recording.
    pub fn error(&self) -> u64 {
        self.error
    }
}

/// Whether any span of the file has a pid that a recorded process had.
fn has_pids(file: &Spans, lookup: &Lookup<'_>) -> bool {
    let mut pids = file.spans.iter().filter_map(|span| span.pid);
    pids.any(|pid| !lookup.with_pid(pid).is_empty())
}

/// The beginning of the imported file's clock on which most spans agree, and the error of this beginning, both in
/// nanoseconds. Each span is matched with processes whose command lines have its words. A process begins or ends at
/// about the same time as its span. Only one of the two times need fit, because a tool can wait for a free slot before
/// it starts a process. `None` unless at least `LEAST_AGREEING` spans agree, and more than half of those with such a
/// process.
fn by_words(file: &Spans, named: &Candidates<'_>, lookup: &Lookup<'_>) -> Option<(i64, u64)> {
    let analysis = lookup.analysis;
    let mut zeros: Vec<(i64, usize)> = Vec::new();
    let mut voters = 0;
    for (at, span) in file.spans.iter().enumerate() {
        let length = span.to.saturating_sub(span.from);
        let longest = length.saturating_add(LARGEST_DIFFERENCE.max(length / 10));
        let mut all = named.of_span(span, i64::MIN..=i64::MAX, analysis);
        let most = all.iter().map(|(words, _)| *words).max();
        all.retain(|(words, _)| Some(*words) == most);
        let lives = all.into_iter().map(|(_, ix)| {
            let process = analysis.process(ix);
            (signed(process.start), signed(process.end))
        });
        let fitting = lives.filter(|(start, end)| end.saturating_sub(*start) <= longest);
        let before = zeros.len();
        for (start, end) in fitting.take(VOTES) {
            zeros.push((start.saturating_sub(span.from), at));
            zeros.push((end.saturating_sub(span.to), at));
        }
        voters += usize::from(zeros.len() > before);
    }
    let zero = most_frequent(zeros.iter().map(|(zero, _)| *zero).collect())?;
    let near = zeros
        .iter()
        .filter(|(other, _)| other.abs_diff(zero) <= LARGEST_DIFFERENCE.unsigned_abs());
    let agree: HashSet<usize> = near.clone().map(|(_, at)| *at).collect();
    let error = near.map(|(other, _)| other.abs_diff(zero)).max()?;
    let is_certain = agree.len() >= LEAST_AGREEING && 2 * agree.len() > voters;
    is_certain.then_some((zero, error))
}

/// The beginning of the imported file's clock and its error, both in nanoseconds, found by the lives of the processes
/// with the spans' pids: with the right beginning, no span lies outside of the life of its process.
fn by_pids(file: &Spans, lookup: &Lookup<'_>) -> Option<(i64, u64)> {
    let analysis = lookup.analysis;
    let mut extents: HashMap<u32, (i64, i64)> = HashMap::new();
    for span in &file.spans {
        if let Some(pid) = span.pid {
            let (from, to) = extents.entry(pid).or_insert((span.from, span.to));
            (*from, *to) = (span.from.min(*from), span.to.max(*to));
        }
    }
    let mut bounds: Option<(i64, i64)> = None;
    for (pid, (from, to)) in extents {
        let [only] = lookup.with_pid(pid) else {
            continue;
        };
        let process = analysis.process(*only);
        let low = signed(process.start).saturating_sub(from);
        let high = signed(process.end).saturating_sub(to);
        bounds = Some(match bounds {
            None => (low, high),
            Some((before, after)) => (low.max(before), high.min(after)),
        });
    }
    let (low, high) = bounds?;
    // The two clocks may differ by a little, so spans that agree with their processes may exclude each other by as
    // much.
    let is_possible = high >= low.saturating_sub(CLOCKS);
    is_possible.then_some((low.midpoint(high), low.abs_diff(high).div_ceil(2)))
}
