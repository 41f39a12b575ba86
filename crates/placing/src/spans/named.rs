//! Finds the processes whose command lines contain words of imported spans.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use tr_analyze::model::{Analysis, ProcessIx};
use tr_programs::script_words;

use super::clock::Moments;
use super::{Span, Spans};
use crate::lookup::{base, names, signed, Lookup, CLOCKS, LATEST_END};

/// The largest number of processes that are tried for one span of a file. A bound of the work.
const MOST_TRIED: usize = 256;

/// A bound of the search for the processes of spans: for one imported file, at most this many arguments are compared
/// with words of spans. One comparison takes about 100 ns, so even a search for very many spans ends within some
/// seconds.
const MOST_COMPARISONS: u64 = 50_000_000;

/// The largest number of arguments of a command line that is compared with a text of a span. A longer command line
/// cannot be equal to such a text, which has at most [`super::WORD`] bytes.
const LINE_WORDS: usize = super::WORD / 2;

/// The least work, in arguments, that is counted for comparing a process's command line with the words of spans. Even a
/// command line with few arguments costs this much. A guess.
const LEAST_WORK: u64 = 16;

/// For each word of a span, the processes whose command lines contain it, in the order of their starts. Words are
/// looked up by the last component of their path.
pub struct Candidates<'a> {
    by_word: HashMap<&'a [u8], Vec<ProcessIx>>,
    /// For each text of a span that may be a whole command line, the processes with this command line. The program is
    /// compared without its directory.
    by_line: HashMap<Vec<u8>, Vec<ProcessIx>>,
    /// The part of the budget [`MOST_COMPARISONS`] that the search for the processes of spans may still use.
    work: Cell<u64>,
}

impl<'a> Candidates<'a> {
    pub fn new(file: &'a Spans, lookup: &Lookup<'_>) -> Candidates<'a> {
        let words = file.spans.iter().flat_map(Span::sought);
        let mut by_word: HashMap<&[u8], Vec<ProcessIx>> =
            words.map(|word| (base(word), Vec::new())).collect();
        if !by_word.is_empty() {
            for ix in lookup.analysis.process_ids() {
                let mut found = HashSet::new();
                let execs = lookup.analysis.process(ix).execs.iter();
                for arg in execs.flat_map(|exec| exec.argv.args()) {
                    for part in parts(arg) {
                        if let Some((word, _)) = by_word.get_key_value(base(part)) {
                            found.insert(*word);
                        }
                    }
                }
                for word in found {
                    by_word.entry(word).or_default().push(ix);
                }
            }
        }
        let lines = file.spans.iter().flat_map(Span::sought).filter_map(line);
        let mut by_line: HashMap<Vec<u8>, Vec<ProcessIx>> =
            lines.map(|line| (line, Vec::new())).collect();
        if !by_line.is_empty() {
            for ix in lookup.analysis.process_ids() {
                for exec in &lookup.analysis.process(ix).execs {
                    let words: Vec<&[u8]> = exec.argv.args().take(LINE_WORDS).collect();
                    let processes =
                        line(&words.join(&b' ')).and_then(|line| by_line.get_mut(&line));
                    if let Some(processes) = processes.filter(|all| all.last() != Some(&ix)) {
                        processes.push(ix);
                    }
                }
            }
        }
        let start = |ix: &ProcessIx| lookup.analysis.process(*ix).start;
        for processes in by_word.values_mut().chain(by_line.values_mut()) {
            processes.sort_by_key(start);
        }
        Candidates {
            by_word,
            by_line,
            work: Cell::new(MOST_COMPARISONS),
        }
    }

    /// Whether the search for the processes of spans ended early because it used up its bounded work.
    pub fn is_cut(&self) -> bool {
        self.work.get() == 0
    }

    /// Whether the command line of a recorded process may match the span: it contains the last component of one of the
    /// span's words, or it is equal to one of the span's texts.
    pub fn knows(&self, span: &Span) -> bool {
        let mut words = span.sought();
        words.any(|word| {
            let by_word = self.by_word.get(base(word));
            let mut found = by_word.into_iter().chain(self.of_line(word));
            found.any(|processes| !processes.is_empty())
        })
    }

    /// The processes whose whole command line is equal to a text of a span. The program is compared without its
    /// directory.
    fn of_line(&self, word: &[u8]) -> Option<&Vec<ProcessIx>> {
        self.by_line.get(&line(word)?)
    }

    /// Subtracts the number of a process's arguments from the work that the search for the processes of spans may still
    /// do; `None` if nothing remains.
    fn spend(&self, analysis: &Analysis, ix: ProcessIx) -> Option<()> {
        let execs = analysis.process(ix).execs.iter();
        let arguments: u64 = execs.map(|exec| exec.argv.args().count() as u64).sum();
        let left = self.work.get().checked_sub(arguments.max(LEAST_WORK));
        self.work.set(left.unwrap_or(0));
        left.map(|_| ())
    }

    /// The processes that began within the times `begin` and whose command lines contain words of the span, each with
    /// the number of these words.
    pub fn of_span(
        &self,
        span: &Span,
        begin: RangeInclusive<i64>,
        analysis: &Analysis,
    ) -> Vec<(usize, ProcessIx)> {
        let mut found: HashMap<ProcessIx, usize> = HashMap::new();
        let start = |ix: ProcessIx| signed(analysis.process(ix).start);
        for word in span.sought() {
            let all = self.by_word.get(base(word)).map_or(&[][..], Vec::as_slice);
            let first = all.partition_point(|ix| start(*ix) < *begin.start());
            let near = all.iter().skip(first).copied().take(MOST_TRIED);
            let near = near.take_while(|ix| start(*ix) <= *begin.end());
            for ix in near {
                if self.spend(analysis, ix).is_none() {
                    return Vec::new();
                }
                if has_word(analysis, ix, word) {
                    *found.entry(ix).or_default() += 1;
                }
            }
            let all = self.of_line(word).map_or(&[][..], Vec::as_slice);
            let first = all.partition_point(|ix| start(*ix) < *begin.start());
            let near = all.iter().skip(first).copied().take(MOST_TRIED);
            for ix in near.take_while(|ix| start(*ix) <= *begin.end()) {
                *found.entry(ix).or_default() += 1;
            }
        }
        let mut found: Vec<(usize, ProcessIx)> =
            found.into_iter().map(|(ix, words)| (words, ix)).collect();
        found.sort_unstable();
        found
    }

    /// For each of the given spans, the process that has the most of the span's words in its command line and lived
    /// within the span's time (`LATEST_END` is tolerated); of several, the nearest. If a process fits several spans,
    /// only the one that fits best gets this process. If two processes fit a span equally well, up to the error of the
    /// clocks, and neither is an ancestor of the other, the span gets no process.
    pub fn nearest(
        &self,
        file: &Spans,
        of_spans: &[usize],
        moments: &Moments<'_>,
        lookup: &Lookup<'_>,
    ) -> HashMap<usize, ProcessIx> {
        let analysis = lookup.analysis;
        let late = LATEST_END
            .cast_signed()
            .saturating_add_unsigned(moments.error());
        let mut pairs = Vec::new();
        for at in of_spans.iter().copied() {
            let Some(span) = file.spans.get(at) else {
                continue;
            };
            let (from, to) = moments.of_span(span);
            let (from_early, to_late) = (from.saturating_sub(late), to.saturating_add(late));
            for (words, ix) in self.of_span(span, from_early..=to_late, analysis) {
                let process = analysis.process(ix);
                let (start, end) = (signed(process.start), signed(process.end));
                if end <= to_late {
                    let distance = start.abs_diff(from).max(end.abs_diff(to));
                    pairs.push(Pair {
                        fewer_words: Reverse(words),
                        distance,
                        span: at,
                        process: ix,
                    });
                }
            }
        }
        pairs.sort_unstable();
        let tie = CLOCKS.unsigned_abs().saturating_add(moments.error());
        let mut best: HashMap<usize, Pair> = HashMap::new();
        let mut rivals: HashSet<usize> = HashSet::new();
        let mut used: HashSet<ProcessIx> = HashSet::new();
        for pair in pairs {
            let Some(taken) = best.get(&pair.span) else {
                if used.insert(pair.process) {
                    best.insert(pair.span, pair);
                }
                continue;
            };
            let is_tie = taken.fewer_words == pair.fewer_words
                && pair.distance.saturating_sub(taken.distance) <= tie;
            if is_tie
                && !used.contains(&pair.process)
                && !are_related(analysis, taken.process, pair.process)
            {
                rivals.insert(pair.span);
            }
        }
        best.retain(|span, _| !rivals.contains(span));
        best.into_iter()
            .map(|(span, pair)| (span, pair.process))
            .collect()
    }
}

/// A span of a tool's file and a process that may belong together. A likelier pair compares as smaller, so it comes
/// first when pairs are sorted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    /// The number of the span's words that the process's command line contains, reversed so that more words sort first.
    fewer_words: Reverse<usize>,
    /// The distance of the span from the process's life in nanoseconds: the difference of their beginnings or of their
    /// ends, whichever is larger.
    distance: u64,
    span: usize,
    process: ProcessIx,
}

impl Span {
    /// The words of a span (files and commands) that are searched for in command lines.
    fn sought(&self) -> impl Iterator<Item = &[u8]> {
        let words = self.words.iter().map(String::as_bytes);
        words.filter(|word| !base(word).is_empty())
    }
}

/// Converts a text of a span to a command line in which the program has no directory; `None` for a text of one word.
fn line(text: &[u8]) -> Option<Vec<u8>> {
    let mut words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let program = base(words.next()?);
    let rest: Vec<&[u8]> = words.collect();
    let is_line = !program.is_empty() && !rest.is_empty();
    is_line.then(|| [&[program][..], &rest].concat().join(&b' '))
}

/// The words of an argument that are compared with the words of spans. They include the words of a shell's script, the
/// value of `--name=value`, and a path without the number at its end (a pid, as in BitBake's `run.do_compile.1234`).
fn parts(arg: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = std::iter::once(arg).filter(|arg| !arg.is_empty());
    let at = arg.iter().rposition(|byte| *byte == b'.');
    let (before, number) = arg.split_at_checked(at.unwrap_or(0)).unwrap_or_default();
    let is_number = number.len() > 1 && number.iter().skip(1).all(u8::is_ascii_digit);
    let numbered = Some(before).filter(|before| is_number && !before.is_empty());
    whole.chain(numbered).chain(script_words::names(arg))
}

/// Whether a command line of a process has a word as an argument, as the end of a path, or in a shell's script.
fn has_word(analysis: &Analysis, ix: ProcessIx, word: &[u8]) -> bool {
    let process = analysis.process(ix);
    let is_path_end = |part: &[u8]| {
        part.strip_suffix(word)
            .is_some_and(|before| before.last().is_none_or(|last| *last == b'/'))
    };
    let mut args = process.execs.iter().flat_map(|exec| exec.argv.args());
    names(process, word) || args.any(|arg| parts(arg).any(is_path_end))
}

/// Whether one of two processes is an ancestor of the other.
fn are_related(analysis: &Analysis, a: ProcessIx, b: ProcessIx) -> bool {
    let is_around = |outer: ProcessIx, inner: ProcessIx| {
        analysis
            .lineage(inner)
            .take(MOST_TRIED)
            .any(|ix| ix == outer)
    };
    is_around(a, b) || is_around(b, a)
}
