//! Spans between marks, and those that cannot be told apart.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use tr_analyze::model::{Analysis, ProcessIx};
use tr_format::event::Ktime;

use super::rules::Mark;

/// A span that marks begin and end, or a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub from: Ktime,
    pub to: Ktime,
    /// It has an end; or it is a moment.
    pub ended: bool,
    pub name: Vec<u8>,
    /// The process in which it was set.
    pub process: Option<ProcessIx>,
    /// It overlaps with another one of its process, neither being inside the other.
    pub overlaps: bool,
}

/// The spans of an analysis, in order: one that is inside another comes after it.
pub(super) fn spans(analysis: &Analysis) -> Vec<Span> {
    let mut spans = of_commands(analysis);
    spans.sort_by(|a, b| {
        let key = |span: &Span| (span.process, span.from, std::cmp::Reverse(span.to));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    for same in spans.chunk_by_mut(|a, b| a.process == b.process) {
        find_overlaps(same);
    }
    spans
}

/// The spans that `tr mark` set: its own exec is the mark.
fn of_commands(analysis: &Analysis) -> Vec<Span> {
    let mut marks = Vec::new();
    for ix in analysis.process_ids() {
        for exec in &analysis.process(ix).execs {
            let args: Vec<&[u8]> = exec.argv.args().collect();
            match Mark::of(&args) {
                None | Some(Mark::Command(_)) => {}
                Some(mark) => marks.push((exec.start, ix, mark_of(mark))),
            }
        }
    }
    marks.sort_by_key(|(time, ix, _)| (*time, *ix));
    let mut spans = Vec::new();
    // The open spans of each name.
    let mut open: HashMap<Vec<u8>, Vec<(Ktime, ProcessIx)>> = HashMap::new();
    for (time, ix, (event, name)) in marks {
        let parent = analysis.process(ix).parent;
        let mut add = |from, to, process, name| {
            spans.push(Span {
                from,
                to,
                ended: true,
                name,
                process,
                overlaps: false,
            });
        };
        match event {
            Event::Moment => add(time, time, parent, name),
            Event::Begin => open.entry(name).or_default().push((time, ix)),
            Event::End => {
                let Some(begun) = open.get_mut(&name) else {
                    continue;
                };
                // The last one that the same process began, or else the last one.
                let same = |(_, begin): &(Ktime, ProcessIx)| {
                    let of = analysis.process(*begin).parent;
                    of.is_some() && (of == parent || of == Some(ix))
                };
                let Some(at) = begun.iter().rposition(same).or(begun.len().checked_sub(1)) else {
                    continue; // an end without a beginning
                };
                let (from, begin) = begun.remove(at);
                let around = analysis.process(begin).parent;
                let process = around.and_then(|around| common(analysis, around, ix));
                add(from, time, process, name);
            }
        }
    }
    let left = open.into_iter().flat_map(|(name, begun)| {
        begun
            .into_iter()
            .map(move |(from, begin)| (name.clone(), from, begin))
    });
    spans.extend(left.map(|(name, from, begin)| {
        let process = analysis.process(begin).parent;
        // It lasts as long as the process that began it.
        let end = process.map(|process| analysis.process(process));
        Span {
            from,
            to: end.map_or(analysis.end, |process| process.end).max(from),
            ended: end.is_some_and(|process| !process.alive),
            name,
            process,
            overlaps: false,
        }
    }));
    spans
}

enum Event {
    Moment,
    Begin,
    End,
}

fn mark_of(mark: Mark<'_>) -> (Event, Vec<u8>) {
    match mark {
        Mark::Moment(name) | Mark::Command(name) => (Event::Moment, name.to_vec()),
        Mark::Begin(name) => (Event::Begin, name.to_vec()),
        Mark::End(name) => (Event::End, name.to_vec()),
    }
}

/// The nearest process that is `a` or an ancestor of it, and `b` or an ancestor of it.
fn common(analysis: &Analysis, a: ProcessIx, b: ProcessIx) -> Option<ProcessIx> {
    let up = |from: ProcessIx| {
        // A cycle, which only a damaged trace has, ends.
        let most = analysis.processes.len();
        let parents = std::iter::successors(Some(from), |ix| analysis.process(*ix).parent);
        parents.take(most)
    };
    let all: BTreeSet<ProcessIx> = up(a).collect();
    up(b).find(|ix| all.contains(ix))
}

/// Marks the spans of one process that begin inside another one and end outside of it, and
/// those others.
fn find_overlaps(spans: &mut [Span]) {
    let inside = |set: &BTreeMap<Ktime, u32>, from: Ktime, to: Ktime| {
        let between = (Bound::Excluded(from), Bound::Excluded(to));
        from < to && set.range(between).next().is_some()
    };
    let mut ends = BTreeMap::new();
    let mut crossed = vec![false; spans.len()];
    // One that began before ends inside this one. Spans that begin together are nested.
    let mut at = 0;
    for same in spans.chunk_by(|a, b| a.from == b.from) {
        for span in same {
            if inside(&ends, span.from, span.to) {
                crossed.get_mut(at).into_iter().for_each(|it| *it = true);
            }
            at += 1;
        }
        for span in same {
            *ends.entry(span.to).or_default() += 1;
        }
    }
    // One that ends later begins inside this one.
    let mut order: Vec<usize> = (0..spans.len()).collect();
    let end = |at: &usize| spans.get(*at).map(|span| span.to);
    order.sort_by_key(|at| std::cmp::Reverse(end(at)));
    let mut begins = BTreeMap::new();
    for same in order.chunk_by(|a, b| end(a) == end(b)) {
        for (at, span) in same.iter().filter_map(|at| Some((*at, spans.get(*at)?))) {
            if inside(&begins, span.from, span.to) {
                crossed.get_mut(at).into_iter().for_each(|it| *it = true);
            }
        }
        for span in same.iter().filter_map(|at| spans.get(*at)) {
            *begins.entry(span.from).or_default() += 1;
        }
    }
    for (span, crossed) in spans.iter_mut().zip(crossed) {
        span.overlaps = crossed;
    }
}
