//! Finds the processes that a tool started for the records of its log. The times in the log count from the start of the
//! tool, which the log does not contain.

use std::collections::{HashMap, HashSet};

use tr_analyze::model::{Analysis, ProcessIx};

use super::lookup::{signed, LATE};

/// The times of a record in a tool's log, in nanoseconds since the start of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: i64,
    pub to: i64,
    /// Whether the record may come from another run of the tool. Then its times prove nothing, so only a process with a
    /// matching name can belong to it.
    pub needs_name: bool,
}

/// If the name of a record in a tool's log matches no process, the record can belong to a process whose times differ
/// from its times by at most this much, in nanoseconds. A guess; it is smaller than `LATE` because only the times show
/// that the two belong together.
const LATE_UNNAMED: u64 = 50_000_000;

/// The largest number of processes that are tried for a record of a tool's log without a name. A bound of the work: if
/// more processes begin at once, none of them is the only possible one.
const NEAR: usize = 256;

/// Each record of a tool's log suggests a time at which the tool started. Suggested times count as one start if they
/// differ by at most this much, in nanoseconds. A guess: with a larger limit, the log of a second run of the tool would
/// be mistaken for that of the first run.
const SAME: u64 = 50_000_000;

/// The longest time in nanoseconds from the start of a tool to the moment from which the times in its log count. A tool
/// that first reads its files reads the clock for that moment late. A guess: with a larger limit, the times of an
/// earlier run would fit, too.
const SOON: u64 = 150_000_000;

/// Finds the process of each record in a tool's log among the children of the tool. If the record's name fits some
/// children (`named`), the process is the one of these children that lived at the record's time; otherwise it is the
/// only child that lived at that time.
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
            if life.abs_diff(length) <= LATE {
                zeros.push(start.saturating_sub(span.from));
            }
        }
    }
    let tool = analysis.process(tool);
    let mut execs = tool.execs.iter().filter(|exec| !exec.started_before);
    let began = execs.next_back().map(|exec| signed(exec.start));
    let soon = |zero: &&i64| began.is_some_and(|began| zero.abs_diff(began) <= SOON);
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
    let mut pairs: Vec<_> = pairs.filter(|(distance, ..)| *distance <= LATE).collect();
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
    // Without a matching name, a record and a process belong together if the record fits only this process and the
    // process fits only this record.
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
        let around = around.take(NEAR);
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
/// each other by at most `SAME` nanoseconds. If several such groups are equally large, the first one counts.
pub fn most_frequent(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    let mut best: &[i64] = &[];
    let mut first = 0;
    for last in 0..values.len() {
        let value = values.get(last)?;
        while values
            .get(first)
            .is_some_and(|first| value.abs_diff(*first) > SAME)
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
