//! `.ninja_log`: for each output of a build the times of the command that made it last, in ms
//! since the beginning of that run of ninja.

use std::collections::HashMap;

use tr_analyze::model::{Imported, ImportedKind, ProcessIx};
use tr_programs::tools::Family;

use crate::align::{align, Span};
use crate::recording::{imported, signed, Recording};
use crate::{Error, Placed, RECORDS};

const FORMAT: &str = ".ninja_log";

/// The first bytes of a log.
pub(crate) const MAGIC: &[u8] = b"# ninja log v";

/// Numbers below this are seconds since 1970, not nanoseconds.
const SECONDS: i64 = 1_000_000_000_000;

/// The most by which an output's time is before that of a command that made it, in ns: file
/// systems have coarse clocks.
const COARSE: i64 = 2_000_000_000;

/// The commands of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    edges: Vec<Edge>,
}

/// A command: its outputs have a line each.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    span: Span,
    /// The time of an output in ns since 1970; 0 if none was made.
    made: i64,
    outputs: Vec<Box<[u8]>>,
}

/// The fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line<'a> {
    start: i64,
    end: i64,
    made: i64,
    output: &'a [u8],
    hash: &'a [u8],
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8]) -> Option<Line<'a>> {
        let mut fields = line.split(|byte| *byte == b'\t');
        let mut next = || fields.next();
        let number = |field: &[u8]| -> Option<i64> {
            let number: u32 = std::str::from_utf8(field).ok()?.parse().ok()?;
            Some(i64::from(number))
        };
        let (start, end) = (number(next()?)?, number(next()?)?);
        let made: i64 = std::str::from_utf8(next()?).ok()?.parse().ok()?;
        let (output, hash) = (next()?, next()?);
        let line = Line {
            start,
            end,
            // Before ninja 1.9 these are seconds.
            made: if made < SECONDS {
                made.saturating_mul(1_000_000_000)
            } else {
                made
            },
            output,
            hash,
        };
        (start <= end && next().is_none()).then_some(line)
    }
}

impl Log {
    pub(crate) fn read(bytes: &[u8]) -> Result<Log, Error> {
        let damaged = |line: usize, what: &str| Error::Damaged {
            format: FORMAT,
            what: format!("line {line}: {what}"),
        };
        // ninja may be writing the last line.
        let ends = bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = bytes.get(..ends.unwrap_or(0)).unwrap_or_default();
        let mut lines = whole.split(|byte| *byte == b'\n').enumerate();
        let first = lines.next().map_or(&b""[..], |(_, line)| line);
        let version = first.strip_prefix(MAGIC).unwrap_or_default();
        if !matches!(version, b"5" | b"6" | b"7") {
            return Err(damaged(1, "neither version 5, 6 nor 7"));
        }
        let mut last: HashMap<&[u8], (usize, Line)> = HashMap::new();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let wrong = || damaged(at + 1, "not start, end, time, output and hash");
            let line = Line::read(line).ok_or_else(wrong)?;
            last.insert(line.output, (at, line));
            Error::at_most(RECORDS, last.len(), FORMAT, "outputs")?;
        }
        let mut last: Vec<(usize, Line)> = last.into_values().collect();
        last.sort_unstable_by_key(|(at, _)| *at);
        let same = |a: &Line, b: &Line| (a.start, a.end, a.hash) == (b.start, b.end, b.hash);
        let edges = last.chunk_by(|(_, a), (_, b)| same(a, b));
        let ns = |ms: i64| ms * 1_000_000;
        let edge = |lines: &[(usize, Line)]| {
            let (_, first) = lines.first()?;
            Some(Edge {
                span: Span {
                    from: ns(first.start),
                    to: ns(first.end),
                    needs_name: false,
                },
                made: lines.iter().map(|(_, line)| line.made).max()?,
                outputs: lines.iter().map(|(_, line)| line.output.into()).collect(),
            })
        };
        Ok(Log {
            edges: edges.filter_map(edge).collect(),
        })
    }

    /// Places each command on the process that ninja started for it.
    pub(crate) fn place(&self, recording: &Recording<'_>) -> Placed {
        let analysis = recording.analysis;
        let mut found: Vec<(&Edge, ProcessIx)> = Vec::new();
        // The log has the last command of each output: the last run has all of its own there.
        let mut left: Vec<&Edge> = self.edges.iter().collect();
        for ninja in recording.of_family(Family::Ninja).rev() {
            let children = &analysis.process(ninja).children;
            let words = words(recording, children);
            let named = |edge: &&Edge| edge.named(&words);
            let named: Vec<Vec<ProcessIx>> = left.iter().map(named).collect();
            let begin = signed(analysis.process(ninja).start).saturating_sub(COARSE);
            let span = |edge: &&Edge| Span {
                // The log has commands of earlier builds, too.
                needs_name: edge.made > 0 && recording.time(edge.made) < begin,
                ..edge.span
            };
            let spans: Vec<Span> = left.iter().map(span).collect();
            let aligned = align(analysis, ninja, &spans, &named, children);
            let mut processes = aligned.into_iter();
            left.retain(|edge| match processes.next().flatten() {
                Some(process) => {
                    found.push((edge, process));
                    false
                }
                None => true,
            });
        }
        let found = found.into_iter();
        Placed {
            all: self.edges.len() as u64,
            spans: found.map(|(edge, ix)| edge.on(recording, ix)).collect(),
            ..Placed::default()
        }
    }
}

impl Edge {
    /// The processes whose command lines name an output.
    fn named(&self, words: &HashMap<&[u8], Vec<ProcessIx>>) -> Vec<ProcessIx> {
        let outputs = self.outputs.iter();
        let named = outputs.filter_map(|output| words.get(&**output));
        let mut named: Vec<ProcessIx> = named.flatten().copied().collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    fn on(&self, recording: &Recording<'_>, process: ProcessIx) -> Imported {
        let life = recording.analysis.process(process);
        let mut name = self.outputs.first().cloned().unwrap_or_default().into_vec();
        if self.outputs.len() > 1 {
            name.extend_from_slice(format!(" and {} more", self.outputs.len() - 1).as_bytes());
        }
        Imported {
            whole: true,
            ..imported(
                ImportedKind::Target,
                &name,
                (process, (life.start, life.end)),
            )
        }
    }
}

/// The processes by the words of their command lines, those of a shell's script included.
fn words<'a>(
    recording: &Recording<'a>,
    processes: &[ProcessIx],
) -> HashMap<&'a [u8], Vec<ProcessIx>> {
    let mut words: HashMap<&[u8], Vec<ProcessIx>> = HashMap::new();
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"'\"=;&|()<>".contains(byte);
    for ix in processes {
        let mut execs = recording.analysis.process(*ix).execs.iter();
        // The shell's, or that of a command without a shell.
        let args = execs.next().map(|exec| exec.argv.args());
        for word in args.into_iter().flatten().flat_map(|arg| arg.split(ends)) {
            if !word.is_empty() {
                words.entry(word).or_default().push(*ix);
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_an_output_counts() {
        let log = "# ninja log v7\n0\t209\t17\tgen.h\tee\n0\t209\t17\tgen2.h\tee\n\
                   5\t9\t17\ta b.o\taa\n1\t55\t17\ta b.o\taa\n99\t100\t1";
        let log = Log::read(log.as_bytes()).expect("a log");
        let edges = log.edges.iter();
        let edges: Vec<(i64, usize)> = edges
            .map(|edge| (edge.span.to, edge.outputs.len()))
            .collect();
        assert_eq!(edges, [(209_000_000, 2), (55_000_000, 1)]);
    }

    #[test]
    fn damage_is_named_with_its_line() {
        for (log, want) in [
            (
                "# ninja log v4\n",
                ".ninja_log: line 1: neither version 5, 6 nor 7",
            ),
            (
                "# ninja log v5\n1\t2\t3\ta\tb\n2\t1\t3\ta\tb\n",
                ".ninja_log: line 3: not start, end, time, output and hash",
            ),
        ] {
            let error = Log::read(log.as_bytes()).expect_err("damage");
            assert_eq!(error.to_string(), want);
        }
    }
}
