//! Looks up the records of other tools' files in a recording: converts their times since 1970, and finds processes by
//! pid or by words of their command lines.

use std::collections::{HashMap, HashSet};

use tr_analyze::model::{Analysis, Imported, ImportedKind, Process, ProcessIx, ThreadIx};
use tr_format::event::Ktime;
use tr_programs::table;
use tr_programs::tools::Family;
use tr_programs::versions::ToolVersion;
use tr_programs::words;

use super::notes::ImportNote;

/// The largest difference in nanoseconds between the clock of a tool that wrote a file and the recording's clock. The
/// clock of the time of day is adjusted while a recording runs, and a tool reads its clock after its start. A guess:
/// the kernel slews a clock by 500 ppm at most, which is 20 ms in 40 s (adjtimex(2)).
pub const CLOCKS: i64 = 20_000_000;

/// The largest difference in nanoseconds between the life of a process and the span that a tool's file has for this
/// process. A tool on a busy machine starts a process late, and notices the end of the process late. A guess: with a
/// smaller limit, spans of a busy machine would match no process; with a larger one, two short commands would be
/// mistaken for each other.
pub const LATEST_END: u64 = 250_000_000;

/// Finds the processes and times of a recording that belong to records in files of other tools.
pub struct Lookup<'a> {
    pub analysis: &'a Analysis,
    by_pid: HashMap<u32, Vec<ProcessIx>>,
}

impl<'a> Lookup<'a> {
    pub fn new(analysis: &'a Analysis) -> Lookup<'a> {
        let mut by_pid: HashMap<u32, Vec<ProcessIx>> = HashMap::new();
        for ix in analysis.process_ids() {
            // Inside a container, a tool writes its own pid as the container's pid namespace numbers it. So a process
            // is looked up by this number.
            let pid = analysis.process(ix).ns_pid.0;
            by_pid.entry(pid).or_default().push(ix);
        }
        Lookup { analysis, by_pid }
    }

    /// The recorded processes that had the given pid in their own pid namespaces.
    pub fn with_pid(&self, pid: u32) -> &[ProcessIx] {
        self.by_pid.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// The recorded processes whose program belongs to a family of build tools, such as make or cargo.
    pub fn of_family(&self, family: Family) -> impl DoubleEndedIterator<Item = ProcessIx> + '_ {
        let is = move |ix: &ProcessIx| is_of(program(self.analysis.process(*ix)), family);
        self.analysis.process_ids().filter(is)
    }

    /// The length of the recording in ns by its own clock and by the time of the day; `None` if the two clocks were not
    /// read at the end of the recording.
    fn lengths(&self) -> Option<(i64, i64)> {
        let meta = &self.analysis.meta;
        let summary = self.analysis.summary.as_ref()?;
        let real = as_signed(meta.start_clock.real);
        Some((
            signed(summary.end).saturating_sub(signed(meta.start)),
            as_signed(summary.end_clock.real).saturating_sub(real),
        ))
    }

    /// The largest error in nanoseconds of a time of the day that [`Lookup::time`] converts. The error comes from the
    /// drift of the clocks. If somebody set the clock during the recording and later set it back, the real error can be
    /// larger.
    pub fn clock_error(&self) -> i64 {
        match self.lengths() {
            Some((length, by_real)) => length.saturating_sub(by_real).saturating_abs(),
            None => CLOCKS,
        }
    }

    /// Converts a time of the day, in nanoseconds since 1970, to the recording's time in nanoseconds. Both clocks are
    /// read at the start and at the end of the recording.
    pub fn time(&self, unix: i64) -> i64 {
        let meta = &self.analysis.meta;
        let (start, real) = (signed(meta.start), as_signed(meta.start_clock.real));
        let since = unix.saturating_sub(real);
        let since = match self.lengths() {
            // The length of the recording is measured by two clocks: the recording's own clock, and the time of the
            // day. If the two lengths differ by less than one per cent, the time of the day was only adjusted, so the
            // times are scaled. With a larger difference, somebody set the time of the day, so the times are not
            // scaled.
            Some((length, by_real))
                if by_real > 0 && length.abs_diff(by_real) < by_real as u64 / 100 =>
            {
                let scaled = i128::from(since) * i128::from(length) / i128::from(by_real);
                i64::try_from(scaled).unwrap_or(since)
            }
            _ => since,
        };
        start.saturating_add(since)
    }

    /// The thread of a process that had the given tid in its own pid namespace; `None` if there is none.
    pub fn thread(&self, process: ProcessIx, tid: u32) -> Option<ThreadIx> {
        let threads = self.analysis.process(process).threads.iter().copied();
        let mut threads = threads.filter(|ix| self.analysis.thread(*ix).ns_tid.0 == tid);
        threads.next()
    }

    /// A span between two times, cut to the life of a process; `None` if the span exceeds that life by more than the
    /// clocks can differ.
    pub fn inside(&self, process: ProcessIx, from: i64, to: i64) -> Option<(Ktime, Ktime)> {
        let process = self.analysis.process(process);
        let (start, end) = (signed(process.start), signed(process.end));
        // The start of a process that is older than the analyzed time is not known, so the span may begin earlier.
        let early = !process.started_before && from < start.saturating_sub(CLOCKS);
        let late = !process.alive && to > end.saturating_add(CLOCKS);
        if early || late || from > end || to < start {
            return None;
        }
        Some((ktime(from.max(start)), ktime(to.min(end).max(start))))
    }

    /// Whether a span of another tool's file lies outside of the analyzed time.
    pub fn is_outside(&self, from: i64, to: i64) -> bool {
        from > signed(self.analysis.end) || to < signed(self.analysis.start)
    }
}

/// Converts a time of the recording to a signed number of nanoseconds, because times of other tools can be before the
/// start of the recording's clock.
pub fn signed(time: Ktime) -> i64 {
    as_signed(time.0)
}

fn as_signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

/// Converts a signed number of nanoseconds to a time of the recording. A negative number becomes 0.
pub fn ktime(time: i64) -> Ktime {
    Ktime(u64::try_from(time).unwrap_or(0))
}

/// Whether one of the process's command lines has an argument that is this word or ends with it (see `is_path`).
pub fn names(process: &Process, word: &[u8]) -> bool {
    let mut execs = process.execs.iter();
    !word.is_empty()
        && execs.any(|exec| {
            let mut args = exec.argv.args();
            args.any(|arg| is_path(arg, word))
        })
}

/// Whether the argument `arg` ends with the path `word`. The text before the path must be empty, must end with `/`, `=`
/// or `:`, or must be the option `-o`.
fn is_path(arg: &[u8], word: &[u8]) -> bool {
    let Some(before) = arg.strip_suffix(word) else {
        return false;
    };
    before.last().is_none_or(|last| b"/=:".contains(last)) || before == b"-o"
}

/// Whether a program belongs to a family of build tools, such as make or cargo.
pub fn is_of(program: &[u8], family: Family) -> bool {
    table::by_path(program).is_some_and(|tool| tool.family == family)
}

/// The spans of one imported file that have a place in the recording, with counts of the file's spans and notes on it.
#[derive(Debug, Default)]
pub struct Placed {
    pub spans: Vec<Imported>,
    /// The number of placed spans that are not counted as spans of the file: parts of cargo's units, and test suites.
    pub parts: u64,
    /// The number of spans that the imported file has.
    pub all: u64,
    /// The number of spans of the imported file that lie outside of the analyzed time.
    pub outside: u64,
    /// The numbers of the tests in a JUnit report that do not count as unplaced. Such a test has a place in the
    /// recording, is already in the recording as a mark (an event that the test program sent to the recorder), or lies
    /// outside of the analyzed time.
    pub known_tests: HashSet<usize>,
    /// The notes on the imported file, each of them once.
    pub notes: Vec<ImportNote>,
    /// The tool that the imported file is about, with its version.
    pub tool: Option<ToolVersion>,
}

impl Placed {
    /// Adds the place of a test that has this number in a JUnit report.
    pub fn add_test(&mut self, number: usize, span: Imported) {
        self.known_tests.insert(number);
        self.spans.push(span);
    }

    /// Adds a note on the imported file, unless the file has it already.
    pub fn add_note(&mut self, note: ImportNote) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Makes an imported span (a span from another tool's file) that covers a part of a process's life. The name is the
/// text that the tool wrote; for a name of several facts, the caller sets the brief form. A unit of a compiler has no
/// brief form, because its last word says of what kind the unit is: `zstd-sys (run build script)`.
pub fn imported(
    kind: ImportedKind,
    name: &[u8],
    (process, (from, to)): (ProcessIx, (Ktime, Ktime)),
) -> Imported {
    let is_text = kind != ImportedKind::Unit;
    let text = String::from_utf8_lossy(name);
    Imported {
        from,
        to,
        kind,
        name: name.into(),
        brief: words::brief_of_text(&text)
            .filter(|_| is_text)
            .map(Box::from),
        file: None,
        result: None,
        process,
        thread: None,
        whole: false,
        error: 0,
        doubt: None,
    }
}

/// The name of the program that a process executed last, without its directory.
pub fn program(process: &Process) -> &[u8] {
    let path = process.argv.args().next().unwrap_or_default();
    base(path)
}

/// The last component of a path.
pub fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
