//! Reads `.ninja_log`: for each output of a build, the times of the latest command that made the output, in ms since
//! the beginning of the run of ninja that ran this command.

use std::collections::HashMap;

use tr_placing::align::Span;
use tr_placing::ninja::{Edge, Log};

use crate::error::Error;
use crate::limits::RECORDS;

const FORMAT: &str = ".ninja_log";

/// The bytes with which a `.ninja_log` begins.
pub(crate) const MAGIC: &[u8] = b"# ninja log v";

/// The number below which a file's time in `.ninja_log` is read as seconds since 1970, and not as nanoseconds. A
/// decision: as nanoseconds these times would be at most 17 minutes after 1970, as seconds they reach 31,000 years.
const SECONDS: i64 = 1_000_000_000_000;

/// The fields of one line of a `.ninja_log`.
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
            // Before ninja 1.9, the log has the times of files in seconds.
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

pub(crate) fn read(bytes: &[u8]) -> Result<Log, Error> {
    let damaged = |line: usize, what: &str| Error::Damaged {
        format: FORMAT,
        what: format!("line {line}: {what}"),
    };
    // A last line without a line feed is left out, because ninja may still be writing it.
    let ends = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = bytes.get(..ends.unwrap_or(0)).unwrap_or_default();
    let mut lines = whole.split(|byte| *byte == b'\n').enumerate();
    let first = lines.next().map_or(&b""[..], |(_, line)| line);
    let version = first.strip_prefix(MAGIC).unwrap_or_default();
    if !matches!(version, b"5" | b"6" | b"7") {
        return Err(damaged(1, "neither version 5, 6 nor 7"));
    }
    let mut last: HashMap<&[u8], (usize, Line)> = HashMap::new();
    // ninja appends a line when a command ends, and its times count from the beginning of the run of ninja. Within
    // one run, the ends never decrease. So a line whose end is before that of the previous line begins a new run.
    let (mut of_last_run, mut latest) = (0, 0);
    for (at, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let wrong = || damaged(at + 1, "not start, end, time, output and hash");
        let line = Line::read(line).ok_or_else(wrong)?;
        if line.end < latest {
            of_last_run = at;
        }
        latest = line.end;
        last.insert(line.output, (at, line));
        Error::at_most(RECORDS, last.len(), FORMAT, "outputs")?;
    }
    let mut last: Vec<(usize, Line)> = last.into_values().collect();
    last.sort_unstable_by_key(|(at, _)| *at);
    let same = |a: &Line, b: &Line| (a.start, a.end, a.hash) == (b.start, b.end, b.hash);
    let edges = last.chunk_by(|(_, a), (_, b)| same(a, b));
    let ns = |ms: i64| ms * 1_000_000;
    let edge = |lines: &[(usize, Line)]| {
        let (at, first) = lines.first()?;
        Some(Edge {
            span: Span {
                from: ns(first.start),
                to: ns(first.end),
                needs_name: *at < of_last_run,
            },
            made: lines.iter().map(|(_, line)| line.made).max()?,
            outputs: lines.iter().map(|(_, line)| line.output.into()).collect(),
        })
    };
    Ok(Log {
        edges: edges.filter_map(edge).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_an_output_counts() {
        let log = "# ninja log v7\n0\t209\t17\tgen.h\tee\n0\t209\t17\tgen2.h\tee\n\
                   5\t220\t17\ta b.o\taa\n1\t55\t17\ta b.o\taa\n99\t100\t1";
        let log = read(log.as_bytes()).expect("a log");
        let edges = log.edges.iter();
        let edges: Vec<(i64, usize)> = edges
            .map(|edge| (edge.span.to, edge.outputs.len()))
            .collect();
        assert_eq!(edges, [(209_000_000, 2), (55_000_000, 1)]);
        let of_last_run = log.edges.iter().map(|edge| !edge.span.needs_name);
        assert_eq!(of_last_run.collect::<Vec<_>>(), [false, true]);
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
            let error = read(log.as_bytes()).expect_err("damage");
            assert_eq!(error.to_string(), want);
        }
    }
}
