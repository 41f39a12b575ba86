//! Collects the spans from which steps are made (spans that programs marked, and spans of other tools' files), and
//! finds overlapping spans.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::ops::Bound;

use tr_analyze::model::{Analysis, Doubt, Imported, ImportedKind, ProcessIx, Thread, ThreadIx};
use tr_format::event::{self, Ktime, Point, Tid};

use super::result::StepResult;
use tr_programs::steps::Mark;
use tr_programs::steps::StepKind;
use tr_programs::words;

/// A named span of time in a recording: between two marks (events by which a program begins and ends it), from another
/// tool's file, or a moment without a length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub from: Ktime,
    pub to: Ktime,
    /// Whether the end of the span was recorded. A moment (a point in time that a program marked) has no length and
    /// counts as ended.
    pub ended: bool,
    pub name: Vec<u8>,
    /// The brief form of the name ([`Step::brief`](super::Step::brief)), not escaped yet.
    pub brief: Option<String>,
    /// The path of the file that contains the test, if the span is a test. The path comes from another tool's file, or
    /// from the beginning of the name that the test program gave the span.
    pub file: Option<String>,
    pub kind: StepKind,
    /// The result (such as of a test) that a program gave in the event that marks the span, or that another
    /// tool's file has.
    pub result: Option<StepResult>,
    /// The process in which the span was marked, or, for a span from another tool's file, the process that executed the
    /// span. `None` if this process is not known.
    pub process: Option<ProcessIx>,
    /// The thread in which the span was marked, if it belongs to a single thread.
    pub thread: Option<ThreadIx>,
    /// Whether the span overlaps with another span of its process, and neither is inside the other.
    pub overlaps: bool,
    /// Whether the span comes from another tool's file.
    pub is_of_file: bool,
    /// Whether the span is the whole life of the process, according to another tool's file.
    pub whole: bool,
    /// The largest error of the beginning or the end of the span, in nanoseconds.
    pub error: u64,
    /// For a span from another tool's file whose time or process is not proven, the reason for this doubt; otherwise
    /// `None`.
    pub doubt: Option<Doubt>,
}

/// The search for the common ancestor of the two processes that set the begin mark and the end mark of a span (the
/// events that begin and end it) goes up at most this many generations. A bound on the work of this search.
const GENERATIONS: usize = 256;

/// The time at which a span ends (of a program's marks or of another tool's file), and whether the span really ended at
/// that time.
#[derive(Clone, Copy)]
struct SpanEnd {
    time: Ktime,
    /// Whether the span ended at this time, by an end mark (the event that ends a span) or with its process. Otherwise,
    /// the recording ended before the span.
    is_known: bool,
}

impl SpanEnd {
    /// The end of a span whose end mark (the event that ends a span) was recorded at the given time.
    fn at(time: Ktime) -> SpanEnd {
        SpanEnd {
            time,
            is_known: true,
        }
    }
}

impl Span {
    /// Whether the span can contain work: the span has a length, the span's time and process are proven, and no other
    /// span overlaps with the span.
    pub fn holds_work(&self) -> bool {
        !self.overlaps && self.doubt.is_none() && self.from < self.to
    }

    /// Whether the span is a test from another tool's file and lasts exactly as long as the given thread lived.
    pub fn is_whole_test(&self, thread: &Thread) -> bool {
        let life = (thread.start, thread.end);
        self.is_of_file && self.kind == StepKind::Test && (self.from, self.to) == life
    }

    /// Whether the beginning and the end of the span are known, apart from an error of at most `error` nanoseconds.
    pub fn has_place(&self) -> bool {
        self.doubt.is_none_or(Doubt::has_place)
    }

    /// Makes the span between two marks (events by which a program begins and ends a span) that begins at `from`.
    /// `process` is the process in which the begin mark was set.
    fn of_mark(name: &[u8], from: Ktime, end: SpanEnd, process: Option<ProcessIx>) -> Span {
        Span {
            from,
            to: end.time.max(from),
            ended: end.is_known,
            name: name.to_vec(),
            brief: words::brief_of_text(&String::from_utf8_lossy(name)).map(str::to_owned),
            file: words::file_of_test(&String::from_utf8_lossy(name)).map(str::to_owned),
            kind: StepKind::Mark,
            result: None,
            process,
            thread: None,
            overlaps: false,
            is_of_file: false,
            whole: false,
            error: 0,
            doubt: None,
        }
    }
}

/// The spans of a recording from which steps are made. A span that is inside another span comes after the span around
/// it.
pub(super) fn spans(analysis: &Analysis, imported: &[Imported]) -> Vec<Span> {
    let mut spans = of_commands(analysis);
    spans.extend(of_programs(analysis));
    spans.extend(of_files(analysis, imported));
    spans.retain(|span| span.from <= analysis.end && span.to >= analysis.start);
    for span in &mut spans {
        span.ended &= span.to <= analysis.end;
        span.to = span.to.min(analysis.end);
    }
    spans.sort_by(|a, b| {
        let place = |span: &Span| (span.process, span.thread, span.from);
        // A span without a length comes first among spans that begin at the same time, so it is not inside the others.
        let has_length = |span: &Span| span.from < span.to;
        let key = |span: &Span| (place(span), has_length(span), std::cmp::Reverse(span.to));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    let place = |span: &Span| (span.process, span.thread);
    for same in spans.chunk_by_mut(|a, b| place(a) == place(b)) {
        // Spans whose time or process is not proven are left out, because such spans do not prove an overlap.
        let placed = same.iter_mut().filter(|span| span.doubt.is_none());
        find_overlaps(&mut placed.collect::<Vec<_>>());
    }
    for span in spans
        .iter_mut()
        .filter(|span| span.is_of_file && span.overlaps)
    {
        span.doubt = Some(Doubt::Crossed);
    }
    spans
}

/// The spans that were set by the command `tr mark`. The recorded exec of `tr mark` serves as the mark.
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
    marks.sort_by_key(|(time, ix, _)| (*time, *ix));
    let mut spans = Vec::new();
    let mut open: HashMap<&[u8], OpenMarks> = HashMap::new();
    for (time, ix, mark) in marks {
        let parent = analysis.process(ix).parent;
        match mark {
            Mark::Moment(name) | Mark::Command(name) => {
                spans.push(Span::of_mark(name, time, SpanEnd::at(time), parent));
            }
            Mark::Begin(name) => open.entry(name).or_default().begin(time, ix, parent),
            Mark::End(name) => {
                let begun = open
                    .get_mut(name)
                    .and_then(|all| all.end([parent, Some(ix)]));
                let Some((from, begin)) = begun else {
                    continue; // an end without a beginning
                };
                let around = analysis.process(begin).parent;
                let process = around.and_then(|around| common(analysis, around, ix));
                spans.push(Span::of_mark(name, from, SpanEnd::at(time), process));
            }
        }
    }
    for (name, begun) in open {
        spans.extend(begun.all.into_values().map(|(from, begin)| {
            let process = analysis.process(begin).parent;
            Span::of_mark(name, from, open_until(analysis, process), process)
        }));
    }
    spans
}

/// The marks (events) that began a span of one name and whose end marks have not been read yet.
#[derive(Default)]
struct OpenMarks {
    /// The begin marks (events that begin a span) without an end mark, by a running number. Each entry has the time of
    /// the mark, and the process that set the mark.
    all: BTreeMap<usize, (Ktime, ProcessIx)>,
    /// For each process, the numbers of the begin marks that its child processes (`tr mark`) set, in order. The list
    /// may still have begin marks whose end mark has already been read.
    by_process: HashMap<ProcessIx, Vec<usize>>,
    next: usize,
}

impl OpenMarks {
    fn begin(&mut self, time: Ktime, mark: ProcessIx, parent: Option<ProcessIx>) {
        self.all.insert(self.next, (time, mark));
        if let Some(parent) = parent {
            self.by_process.entry(parent).or_default().push(self.next);
        }
        self.next += 1;
    }

    /// Removes and returns the last begin mark (the event that begins a span) that has no end mark yet and that a child
    /// of one of the given processes set. If there is none, the last one of any process is taken.
    fn end(&mut self, processes: [Option<ProcessIx>; 2]) -> Option<(Ktime, ProcessIx)> {
        let last_of = |process: ProcessIx| {
            let numbers = self.by_process.get_mut(&process)?;
            let has_end = |number: &mut usize| !self.all.contains_key(number);
            while numbers.pop_if(has_end).is_some() {}
            numbers.last().copied()
        };
        let own = processes.into_iter().flatten().filter_map(last_of).max();
        let last = || self.all.last_key_value().map(|(number, _)| *number);
        let number = own.or_else(last)?;
        self.all.remove(&number)
    }
}

/// The common ancestor of two processes that is nearest to `b`; it may be one of them.
fn common(analysis: &Analysis, a: ProcessIx, b: ProcessIx) -> Option<ProcessIx> {
    let above: HashSet<ProcessIx> = analysis.lineage(a).take(GENERATIONS).collect();
    let mut lineage = analysis.lineage(b).take(GENERATIONS);
    lineage.find(|ix| above.contains(ix))
}

/// The end of a span for which no end mark (the event that ends a span) was recorded: the end of the process that began
/// the span.
fn open_until(analysis: &Analysis, process: Option<ProcessIx>) -> SpanEnd {
    let process = process.map(|process| analysis.process(process));
    SpanEnd {
        time: process.map_or(analysis.end, |process| process.end),
        is_known: process.is_some_and(|process| !process.alive),
    }
}

/// The key that connects the begin mark and the end mark of a program's span (the events that begin and end it).
#[derive(PartialEq, Eq, Hash)]
struct OpenKey<'m> {
    pid: Option<Tid>,
    tid: Option<Tid>,
    name: &'m [u8],
    id: &'m [u8],
}

impl OpenKey<'_> {
    fn of(mark: &event::Mark) -> OpenKey<'_> {
        OpenKey {
            pid: mark.pid,
            tid: mark.tid,
            name: &mark.name,
            id: &mark.id,
        }
    }
}

/// The spans that programs marked by writing to the recorder.
fn of_programs(analysis: &Analysis) -> Vec<Span> {
    let mut living = Living::new(analysis);
    let mut marks: Vec<&(Ktime, event::Mark)> = analysis.marks.iter().collect();
    marks.sort_by_key(|(time, _)| *time);
    let mut spans = Vec::new();
    let mut open: HashMap<OpenKey, Vec<Span>> = HashMap::new();
    for (time, mark) in marks {
        let begins = |living: &mut Living| {
            let place = living.place(*time, mark);
            Span {
                kind: kind(&mark.kind),
                result: StepResult::of_mark(&mark.result),
                thread: place.and_then(|(_, thread)| thread),
                ..Span::of_mark(
                    &mark.name,
                    *time,
                    SpanEnd::at(*time),
                    place.map(|(process, _)| process),
                )
            }
        };
        match mark.point {
            Point::Moment => spans.push(begins(&mut living)),
            Point::Begin => {
                let span = begins(&mut living);
                open.entry(OpenKey::of(mark)).or_default().push(span);
            }
            Point::End => {
                let Entry::Occupied(mut begun) = open.entry(OpenKey::of(mark)) else {
                    continue;
                };
                if let Some(span) = begun.get_mut().pop() {
                    spans.push(Span {
                        to: span.from.max(*time),
                        result: StepResult::of_mark(&mark.result),
                        ..span
                    });
                }
                // If a name has no open begin mark left, its entry is removed, because a program may mark a million
                // tests with a million names.
                if begun.get().is_empty() {
                    begun.remove();
                }
            }
        }
    }
    spans.extend(open.into_values().flatten().map(|span| {
        let end = open_until(analysis, span.process);
        Span {
            to: span.from.max(end.time),
            ended: end.is_known,
            ..span
        }
    }));
    spans
}

fn of_files<'a>(
    analysis: &'a Analysis,
    imported: &'a [Imported],
) -> impl Iterator<Item = Span> + 'a {
    let end = |imported: &Imported| SpanEnd {
        time: imported.to,
        is_known: !imported.whole || !analysis.process(imported.process).alive,
    };
    imported.iter().map(move |imported| Span {
        kind: match imported.kind {
            ImportedKind::Target => StepKind::Target,
            ImportedKind::Unit => StepKind::Unit,
            ImportedKind::Test => StepKind::Test,
            ImportedKind::Span => StepKind::Mark,
        },
        brief: imported.brief.as_deref().map(str::to_owned),
        file: imported.file.as_deref().map(str::to_owned),
        result: imported.result.map(StepResult::from),
        thread: imported.thread,
        is_of_file: true,
        whole: imported.whole,
        error: imported.error,
        doubt: imported.doubt,
        ..Span::of_mark(
            &imported.name,
            imported.from,
            end(imported),
            Some(imported.process),
        )
    })
}

/// Finds the processes and threads that are alive at the time of a mark, which is an event by which a program begins or
/// ends a span. The marks must be looked up in the order of time.
struct Living {
    /// The living processes by the pid that they have inside their own container.
    processes: HashMap<u32, Alive<ProcessIx>>,
    /// The living processes that are outside of any container, by their pid.
    hosts: HashMap<u32, Alive<ProcessIx>>,
    threads: HashMap<(ProcessIx, Tid), Alive<ThreadIx>>,
}

impl Living {
    fn new(analysis: &Analysis) -> Living {
        let mut all = Living {
            processes: HashMap::new(),
            hosts: HashMap::new(),
            threads: HashMap::new(),
        };
        let with_marks = analysis
            .process_ids()
            .filter(|_| !analysis.marks.is_empty());
        for ix in with_marks {
            let process = analysis.process(ix);
            let pid = process.ns_pid.0;
            let processes = all.processes.entry(pid).or_default();
            processes.add(ix, process.start, process.end);
            if process.pid.0 == pid {
                let hosts = all.hosts.entry(pid).or_default();
                hosts.add(ix, process.start, process.end);
            }
            for thread in &process.threads {
                let is = analysis.thread(*thread);
                let threads = all.threads.entry((ix, is.ns_tid)).or_default();
                threads.add(*thread, is.start, is.end);
            }
        }
        all
    }

    /// The process and the thread in which a program or `tr mark` set the mark (the event that begins or ends a span).
    /// Processes in containers can have equal pids. If several processes have the pid of the mark, the mark belongs to
    /// the process outside of any container, or to none.
    fn place(&mut self, time: Ktime, mark: &event::Mark) -> Option<(ProcessIx, Option<ThreadIx>)> {
        let pid = mark.pid?.0;
        let living = self.processes.get_mut(&pid)?.at(time);
        let process = match living.len() {
            1 => living.first().copied(),
            _ => self.hosts.get_mut(&pid)?.at(time).first().copied(),
        }?;
        let thread = mark.tid.and_then(|tid| {
            let threads = self.threads.get_mut(&(process, tid))?;
            threads.at(time).first().copied()
        });
        Some((process, thread))
    }
}

/// The processes or threads that had one pid or tid at different times. The look-ups must be made in the order of time.
struct Alive<Ix> {
    /// The processes or threads that have not begun yet at the time of the last look-up, the next one to begin first.
    waiting: BinaryHeap<Reverse<(Ktime, Ktime, Ix)>>,
    /// The processes or threads that are alive at the time of the last look-up, the next one to end first.
    ending: BinaryHeap<Reverse<(Ktime, Ix)>>,
    now: BTreeSet<Ix>,
}

impl<Ix: Ord> Default for Alive<Ix> {
    fn default() -> Alive<Ix> {
        Alive {
            waiting: BinaryHeap::new(),
            ending: BinaryHeap::new(),
            now: BTreeSet::new(),
        }
    }
}

impl<Ix: Copy + Ord> Alive<Ix> {
    fn add(&mut self, ix: Ix, start: Ktime, end: Ktime) {
        self.waiting.push(Reverse((start, end, ix)));
    }

    fn at(&mut self, time: Ktime) -> &BTreeSet<Ix> {
        let begun = |next: &Reverse<(Ktime, Ktime, Ix)>| next.0 .0 <= time;
        while self.waiting.peek().is_some_and(begun) {
            if let Some(Reverse((_, end, ix))) = self.waiting.pop() {
                self.ending.push(Reverse((end, ix)));
                self.now.insert(ix);
            }
        }
        let ended = |next: &Reverse<(Ktime, Ix)>| next.0 .0 < time;
        while self.ending.peek().is_some_and(ended) {
            if let Some(Reverse((_, ix))) = self.ending.pop() {
                self.now.remove(&ix);
            }
        }
        &self.now
    }
}

/// The kind of a step (such as a test) that a program gave in its mark (the event that begins the step), by the name of
/// the kind. An unknown name gives the kind of a plain mark.
fn kind(name: &[u8]) -> StepKind {
    let known = StepKind::ALL.into_iter();
    let mut known = known.filter(|kind| kind.name().as_bytes() == name);
    known.next().unwrap_or(StepKind::Mark)
}

/// Finds the spans of one process that overlap, and sets `overlaps` in them. Two spans overlap if one begins inside the
/// other and ends after it; nested spans do not.
fn find_overlaps(spans: &mut [&mut Span]) {
    let inside = |set: &BTreeSet<Ktime>, from: Ktime, to: Ktime| {
        let between = (Bound::Excluded(from), Bound::Excluded(to));
        from < to && set.range(between).next().is_some()
    };
    let mut ends = BTreeSet::new();
    let mut crossed = vec![false; spans.len()];
    // Finds spans inside of which an earlier span ends. Spans that begin at the same time are nested and do not count.
    let mut at = 0;
    for same in spans.chunk_by(|a, b| a.from == b.from) {
        for span in same {
            if inside(&ends, span.from, span.to) {
                crossed
                    .get_mut(at)
                    .into_iter()
                    .for_each(|is_crossed| *is_crossed = true);
            }
            at += 1;
        }
        ends.extend(same.iter().map(|span| span.to));
    }
    // Finds spans inside of which a span begins that ends later.
    let mut order: Vec<usize> = (0..spans.len()).collect();
    let end = |at: &usize| spans.get(*at).map(|span| span.to);
    order.sort_by_key(|at| std::cmp::Reverse(end(at)));
    let mut begins = BTreeSet::new();
    for same in order.chunk_by(|a, b| end(a) == end(b)) {
        for (at, span) in same.iter().filter_map(|at| Some((*at, spans.get(*at)?))) {
            if inside(&begins, span.from, span.to) {
                crossed
                    .get_mut(at)
                    .into_iter()
                    .for_each(|is_crossed| *is_crossed = true);
            }
        }
        let of_same = same.iter().filter_map(|at| spans.get(*at));
        begins.extend(of_same.map(|span| span.from));
    }
    for (span, crossed) in spans.iter_mut().zip(crossed) {
        span.overlaps = crossed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_analyze::model::TestResult;

    /// Checks that overlapping spans of a file have no figures, and that the overlap is given as the reason. A span
    /// that is nested in another one has figures.
    #[test]
    fn spans_of_a_file_that_overlap_say_so() {
        let analysis = Analysis {
            start: Ktime(0),
            end: Ktime(1_000),
            ..Analysis::default()
        };
        let imported = |from: u64, to: u64| Imported {
            from: Ktime(from),
            to: Ktime(to),
            kind: ImportedKind::Test,
            name: b"x".as_slice().into(),
            brief: None,
            file: None,
            result: Some(TestResult::Passed),
            process: ProcessIx(0),
            thread: None,
            whole: false,
            error: 1,
            doubt: None,
        };
        let all = [(100, 300), (150, 250), (280, 400), (500, 600)];
        let all: Vec<Imported> = all.map(|(from, to)| imported(from, to)).into();
        let found = spans(&analysis, &all);
        let doubts: Vec<(u64, Option<Doubt>)> =
            found.iter().map(|span| (span.from.0, span.doubt)).collect();
        let crossed = Some(Doubt::Crossed);
        let want = [(100, crossed), (150, None), (280, crossed), (500, None)];
        assert_eq!(doubts, want);
    }
}
