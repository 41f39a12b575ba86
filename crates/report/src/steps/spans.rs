//! Spans between marks, spans of other tools' files, and overlaps of spans.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use tr_analyze::model::{Analysis, Doubt, Imported, ImportedKind, ProcessIx, ThreadIx};
use tr_analyze::sort::Rows;
use tr_format::event::{self, Ktime, Point};

use super::rules::Mark;
use super::StepKind;

/// A span that marks begin and end, or a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub from: Ktime,
    pub to: Ktime,
    /// It has an end; or it is a moment.
    pub ended: bool,
    pub name: Vec<u8>,
    pub kind: StepKind,
    /// Of a program's mark; empty if it gave none.
    pub result: Vec<u8>,
    /// The process in which it was set.
    pub process: Option<ProcessIx>,
    /// The thread in which it was set, if it is a span of one thread.
    pub thread: Option<ThreadIx>,
    /// It overlaps with another one of its process, neither being inside the other.
    pub overlaps: bool,
    /// It is the whole life of the process, as another tool names it.
    pub whole: bool,
    /// The reason why the place in time is not proven, of another tool's span.
    pub doubt: Option<Doubt>,
}

/// The most generations in which the process of a mark's beginning and that of its end are sought in each other's
/// ancestors.
const GENERATIONS: usize = 256;

impl Span {
    /// It can hold work: it has a length, a proven place and no other span that crosses it.
    pub fn holds_work(&self) -> bool {
        !self.overlaps && self.doubt.is_none() && self.from < self.to
    }

    /// That of a mark; `to`: its end, and whether it has one.
    fn of_mark(
        name: &[u8],
        from: Ktime,
        (to, ended): (Ktime, bool),
        process: Option<ProcessIx>,
    ) -> Span {
        Span {
            from,
            to: to.max(from),
            ended,
            name: name.to_vec(),
            kind: StepKind::Mark,
            result: Vec::new(),
            process,
            thread: None,
            overlaps: false,
            whole: false,
            doubt: None,
        }
    }
}

/// The spans of an analysis, in order: one that is inside another comes after it.
pub(super) fn spans(analysis: &Analysis) -> Vec<Span> {
    let mut spans = of_commands(analysis);
    spans.extend(of_programs(analysis));
    spans.extend(of_files(analysis));
    spans.retain(|span| span.from <= analysis.end && span.to >= analysis.start);
    for span in &mut spans {
        span.ended &= span.to <= analysis.end;
        span.to = span.to.min(analysis.end);
    }
    spans.order_by(|a, b| {
        let place = |span: &Span| (span.process, span.thread, span.from);
        // A span without a length is not inside one that begins with it.
        let has_length = |span: &Span| span.from < span.to;
        let key = |span: &Span| (place(span), has_length(span), std::cmp::Reverse(span.to));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    let place = |span: &Span| (span.process, span.thread);
    for same in spans.chunk_by_mut(|a, b| place(a) == place(b)) {
        // A span without a proven place does not prove an overlap.
        let placed = same.iter_mut().filter(|span| span.doubt.is_none());
        find_overlaps(&mut placed.collect::<Vec<_>>());
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
                Some(mark) => marks.push((exec.start, ix, mark)),
            }
        }
    }
    marks.order_by_key(|(time, ix, _)| (*time, *ix));
    let mut spans = Vec::new();
    // The open spans of each name.
    let mut open: HashMap<&[u8], Vec<(Ktime, ProcessIx)>> = HashMap::new();
    for (time, ix, mark) in marks {
        let parent = analysis.process(ix).parent;
        match mark {
            Mark::Moment(name) | Mark::Command(name) => {
                spans.push(Span::of_mark(name, time, (time, true), parent));
            }
            Mark::Begin(name) => open.entry(name).or_default().push((time, ix)),
            Mark::End(name) => {
                let Some(begun) = open.get_mut(name) else {
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
                spans.push(Span::of_mark(name, from, (time, true), process));
            }
        }
    }
    for (name, begun) in open {
        spans.extend(begun.into_iter().map(|(from, begin)| {
            let process = analysis.process(begin).parent;
            Span::of_mark(name, from, open_until(analysis, process), process)
        }));
    }
    spans
}

/// The nearest process that is `a` or an ancestor of it, and `b` or an ancestor of it.
fn common(analysis: &Analysis, a: ProcessIx, b: ProcessIx) -> Option<ProcessIx> {
    let above: HashSet<ProcessIx> = analysis.lineage(a).take(GENERATIONS).collect();
    let mut lineage = analysis.lineage(b).take(GENERATIONS);
    lineage.find(|ix| above.contains(ix))
}

/// A span without an end lasts as long as the process that began it: its end, and whether it
/// is known.
fn open_until(analysis: &Analysis, process: Option<ProcessIx>) -> (Ktime, bool) {
    let process = process.map(|process| analysis.process(process));
    let end = process.map_or(analysis.end, |process| process.end);
    (end, process.is_some_and(|process| !process.alive))
}

/// The spans that programs wrote to the recorder.
fn of_programs(analysis: &Analysis) -> Vec<Span> {
    let mut processes: HashMap<u32, Vec<ProcessIx>> = HashMap::new();
    if !analysis.marks.is_empty() {
        for ix in analysis.process_ids() {
            let pid = analysis.process(ix).ns_pid.0;
            processes.entry(pid).or_default().push(ix);
        }
    }
    let place = |time: Ktime, mark: &event::Mark| {
        let process = processes.get(&mark.pid?.0)?;
        let process = living(analysis, process, time)?;
        let threads = analysis.process(process).threads.iter().copied();
        let mut threads = threads.filter(|ix| {
            let thread = analysis.thread(*ix);
            thread.start <= time && time <= thread.end
        });
        let tid = mark.tid;
        let thread = tid.and_then(|tid| threads.find(|ix| analysis.thread(*ix).ns_tid == tid));
        Some((process, thread))
    };
    let span = |from: Ktime, end: (Ktime, bool), mark: &event::Mark, result: &[u8]| {
        let place = place(from, mark);
        Span {
            kind: kind(&mark.kind),
            result: result.to_vec(),
            thread: place.and_then(|(_, thread)| thread),
            ..Span::of_mark(&mark.name, from, end, place.map(|(process, _)| process))
        }
    };
    let mut marks: Vec<&(Ktime, event::Mark)> = analysis.marks.iter().collect();
    marks.order_by_key(|(time, _)| *time);
    let mut spans = Vec::new();
    let key = |mark: &event::Mark| (mark.pid, mark.tid, mark.name.clone(), mark.id.clone());
    let mut open: HashMap<_, Vec<(Ktime, &event::Mark)>> = HashMap::new();
    for (time, mark) in marks {
        match mark.point {
            Point::Moment => spans.push(span(*time, (*time, true), mark, &mark.result)),
            Point::Begin => open.entry(key(mark)).or_default().push((*time, mark)),
            Point::End => {
                if let Some((from, begin)) = open.get_mut(&key(mark)).and_then(Vec::pop) {
                    spans.push(span(from, (*time, true), begin, &mark.result));
                }
            }
        }
    }
    for (from, mark) in open.into_values().flatten() {
        let process = place(from, mark).map(|(process, _)| process);
        spans.push(span(
            from,
            open_until(analysis, process),
            mark,
            &mark.result,
        ));
    }
    spans
}

fn of_files(analysis: &Analysis) -> impl Iterator<Item = Span> + '_ {
    let end = |it: &Imported| {
        let ended = !it.whole || !analysis.process(it.process).alive;
        (it.to, ended)
    };
    analysis.imported.iter().map(move |it| Span {
        kind: match it.kind {
            ImportedKind::Target => StepKind::Target,
            ImportedKind::Unit => StepKind::Unit,
            ImportedKind::Test => StepKind::Test,
        },
        result: it.result.unwrap_or_default().as_bytes().to_vec(),
        thread: it.thread,
        whole: it.whole,
        doubt: it.doubt,
        ..Span::of_mark(&it.name, it.from, end(it), Some(it.process))
    })
}

/// The process of these that lived then. Containers have equal pids: of several it is none,
/// unless one is outside of any.
fn living(analysis: &Analysis, processes: &[ProcessIx], time: Ktime) -> Option<ProcessIx> {
    let lived = |ix: &ProcessIx| {
        let process = analysis.process(*ix);
        process.start <= time && time <= process.end
    };
    let lived: Vec<ProcessIx> = processes.iter().copied().filter(lived).collect();
    let host = |ix: &ProcessIx| analysis.process(*ix).pid.0 == analysis.process(*ix).ns_pid.0;
    match lived.as_slice() {
        [only] => Some(*only),
        several => several.iter().copied().find(host),
    }
}

/// The kind that a program gave its mark.
fn kind(name: &[u8]) -> StepKind {
    let known = StepKind::ALL.into_iter();
    let mut known = known.filter(|kind| kind.name().as_bytes() == name);
    known.next().unwrap_or(StepKind::Mark)
}

/// Marks the spans of one process that begin inside another one and end outside of it, and
/// those others.
fn find_overlaps(spans: &mut [&mut Span]) {
    let inside = |set: &BTreeSet<Ktime>, from: Ktime, to: Ktime| {
        let between = (Bound::Excluded(from), Bound::Excluded(to));
        from < to && set.range(between).next().is_some()
    };
    let mut ends = BTreeSet::new();
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
        ends.extend(same.iter().map(|span| span.to));
    }
    // One that ends later begins inside this one.
    let mut order: Vec<usize> = (0..spans.len()).collect();
    let end = |at: &usize| spans.get(*at).map(|span| span.to);
    order.order_by_key(|at| std::cmp::Reverse(end(at)));
    let mut begins = BTreeSet::new();
    for same in order.chunk_by(|a, b| end(a) == end(b)) {
        for (at, span) in same.iter().filter_map(|at| Some((*at, spans.get(*at)?))) {
            if inside(&begins, span.from, span.to) {
                crossed.get_mut(at).into_iter().for_each(|it| *it = true);
            }
        }
        let of_same = same.iter().filter_map(|at| spans.get(*at));
        begins.extend(of_same.map(|span| span.from));
    }
    for (span, crossed) in spans.iter_mut().zip(crossed) {
        span.overlaps = crossed;
    }
}
