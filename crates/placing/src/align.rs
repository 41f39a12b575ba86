//! Matches the records in a tool's log with the processes that the tool started. The times in the log count from the
//! start of the tool, and the log does not say when the tool started.

use std::collections::{HashMap, HashSet};

use tr_analyze::model::{Analysis, ProcessIx};

use super::lookup::{signed, LATEST_END};

/// The times of a record in a tool's log, in nanoseconds since the start of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: i64,
    pub to: i64,
    /// Whether the record of the tool's log may come from another run of the tool. The record's times then prove
    /// nothing, so the record is matched only with a process whose command line contains the record's name.
    pub needs_name: bool,
}

/// The largest difference in nanoseconds between the times of a log record and those of a process, if the record's name
/// matches no process. With a larger difference, the record and the process are not matched. A guess; it is smaller
/// than `LATEST_END`, because here no name confirms the match.
const LATE_UNNAMED: u64 = 50_000_000;

/// The largest number of processes that are compared with a log record whose name matches no process. The number limits
/// the work. A record is only matched if exactly one process fits, which is unlikely if more processes begin at once.
const MOST_COMPARED: usize = 256;

/// Each record of a tool's log suggests a time at which the tool started. Suggested times count as one start if they
/// differ by at most this much, in nanoseconds. A guess: with a larger limit, the log of a second run of the tool would
/// be mistaken for the log of the first run.
const SAME_START: u64 = 50_000_000;

/// A start time that a record suggests for a tool is preferred if it differs from the tool's last exec by at most this
/// many nanoseconds: other start times count only if there is no such one. The difference is large if the tool reads
/// files before it reads the clock for the zero of its log's times. A guess: with a larger limit, the times of an
/// earlier run would fit, too.
const SOON_START: u64 = 150_000_000;

/// Finds the process of each record in a tool's log among the children of the tool. `named` has for each record the
/// children whose command lines contain the record's name. The record's process is the one of these children whose
/// start and end are nearest to the record's times and differ from them by at most `LATEST_END`. If there is none, it
/// is the only child that differs by at most `LATE_UNNAMED`.
pub fn align(
    analysis: &Analysis,
    tool: ProcessIx,
    spans: &[Span],
    named: &[Vec<ProcessIx>],
    children: &[ProcessIx],
) -> Vec<Option<ProcessIx>> {
    let mut found = vec![None; spans.len()];
    let life = |ix: ProcessIx| {
        let process = analysis.process(ix);
        (signed(process.start), signed(process.end))
    };
    let mut zeros = Vec::new();
    for (span, named) in spans.iter().zip(named) {
        for ix in named {
            let (start, end) = life(*ix);
            let (life, length) = (end.abs_diff(start), span.to.abs_diff(span.from));
            if life.abs_diff(length) <= LATEST_END {
                zeros.push(start.saturating_sub(span.from));
            }
        }
    }
    let tool = analysis.process(tool);
    let mut execs = tool.execs.iter().filter(|exec| !exec.started_before);
    let began = execs.next_back().map(|exec| signed(exec.start));
    let soon = |zero: &&i64| began.is_some_and(|began| zero.abs_diff(began) <= SOON_START);
    let at_its_start: Vec<i64> = zeros.iter().filter(soon).copied().collect();
    let Some(zero) = most_frequent(at_its_start).or_else(|| most_frequent(zeros)) else {
        return found;
    };
    let distance = |ix: ProcessIx, span: &Span| {
        let (start, end) = life(ix);
        let at = |time: i64| zero.saturating_add(time);
        start.abs_diff(at(span.from)).max(end.abs_diff(at(span.to)))
    };
    // The pairs with the nearest times are assigned first. A name alone is not enough, because a command line also
    // names input files, such as the objects of a link.
    let pairs = spans.iter().zip(named).enumerate();
    let pairs = pairs.flat_map(|(at, (span, named))| {
        let pair = move |ix: &ProcessIx| (distance(*ix, span), at, *ix);
        named.iter().map(pair)
    });
    let mut pairs: Vec<_> = pairs
        .filter(|(distance, ..)| *distance <= LATEST_END)
        .collect();
    pairs.sort_unstable();
    let mut used = HashSet::new();
    for (_, at, ix) in pairs {
        if let Some(process) = found.get_mut(at) {
            if process.is_none() && used.insert(ix) {
                *process = Some(ix);
            }
        }
    }
    let mut left: Vec<ProcessIx> = children.to_vec();
    left.retain(|ix| !used.contains(ix));
    left.sort_by_key(|ix| life(*ix).0);
    // If no name matches, a record of the tool's log and a process belong together only if the record fits no other
    // process and the process fits no other record.
    let mut of_process: HashMap<ProcessIx, usize> = HashMap::new();
    let mut only: Vec<(usize, ProcessIx)> = Vec::new();
    for (number, (span, process)) in spans.iter().zip(&found).enumerate() {
        if process.is_some() || span.needs_name {
            continue;
        }
        let from = zero.saturating_add(span.from);
        let first =
            left.partition_point(|ix| life(*ix).0 < from.saturating_sub_unsigned(LATE_UNNAMED));
        let around = left.iter().skip(first).copied();
        let around =
            around.take_while(|ix| life(*ix).0 <= from.saturating_add_unsigned(LATE_UNNAMED));
        let around = around.take(MOST_COMPARED);
        let near = around.filter(|ix| distance(*ix, span) <= LATE_UNNAMED);
        let near: Vec<ProcessIx> = near.collect();
        for ix in &near {
            *of_process.entry(*ix).or_default() += 1;
        }
        if let [process] = near[..] {
            only.push((number, process));
        }
    }
    for (number, process) in only {
        if of_process.get(&process) == Some(&1) {
            if let Some(slot) = found.get_mut(number) {
                *slot = Some(process);
            }
        }
    }
    found
}

/// The start time on which most of the given times agree: the middle of the largest group of times that differ from
/// each other by at most `SAME_START` nanoseconds. If several groups are equally large, the group with the earliest
/// times counts.
pub fn most_frequent(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    let mut best: &[i64] = &[];
    let mut first = 0;
    for last in 0..values.len() {
        let value = values.get(last)?;
        while values
            .get(first)
            .is_some_and(|first| value.abs_diff(*first) > SAME_START)
        {
            first += 1;
        }
        let same = values.get(first..=last)?;
        if same.len() > best.len() {
            best = same;
        }
    }
    best.get(best.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::most_frequent;

    #[test]
    fn the_beginning_on_which_most_agree_counts() {
        let ms = |ms: i64| ms * 1_000_000;
        assert_eq!(most_frequent(vec![]), None);
        assert_eq!(most_frequent(vec![7]), Some(7));
        let values = vec![ms(900), ms(10), ms(12), ms(11), ms(500), ms(510)];
        assert_eq!(most_frequent(values), Some(ms(11)));
    }
}
