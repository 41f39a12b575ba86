//! Imports spans of any tool from a file in the Chrome Trace Event format or in OTLP. A span is placed on the process
//! that has the span's pid and lived at the span's times. If there is no such process, the span is placed on a process
//! that lived at the span's times and whose command line contains a word of the span.

mod clock;
mod named;

use std::collections::HashMap;

pub use tr_analyze::model::TestResult;
use tr_analyze::model::{Doubt, Imported, ImportedKind, ProcessIx};
use tr_format::event::Ktime;
use tr_programs::versions::ToolVersion;
use tr_programs::words;

use super::lookup::{base, imported, names, program, Lookup, Placed};
use super::notes::{ImportNote, WithoutProcess};
use clock::Moments;
use tr_insight::recordings::imports::TOLERATED_PART;

pub use clock::Clock;

/// The largest number of processes that are tried for one pid in an imported file. A bound of the work.
const MOST_TRIED: usize = 1_000;

/// The largest number of words of one span that are searched for in command lines. A bound of the work.
pub const WORDS: usize = 8;

/// The longest word of a span that is searched for in command lines, in bytes.
pub const WORD: usize = 512;

/// The spans in a file of another tool (a Chrome trace or OTLP), with what the file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    pub clock: Clock,
    pub spans: Vec<Span>,
    /// Whether the file of spans describes a compilation by clang.
    pub is_compilation: bool,
    /// Whether the file is one of many files that a tool wrote, each with one or two spans.
    pub is_part: bool,
    /// A note that some parts of the imported file are not spans and were left out.
    pub note: Option<String>,
    /// The tool that wrote the file, with its version, if the file has it.
    pub tool: Option<ToolVersion>,
}

/// A span in a file of another tool: a named piece of work with a beginning and an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub name: String,
    /// The last part of the name, if the reader of the file made the name of several facts.
    pub last_part: Option<String>,
    /// The beginning of the span in nanoseconds, by the clock of the file.
    pub from: i64,
    pub to: i64,
    /// The pid of the process that did the work of the span, in the process's own pid namespace.
    pub pid: Option<u32>,
    /// The tid of the thread that did the work of the span, in the process's own pid namespace.
    pub tid: Option<u32>,
    /// The index, in the file's list of spans, of the span that started this one.
    pub parent: Option<usize>,
    pub is_test: bool,
    /// The result of the test, if the span is a test.
    pub result: Option<TestResult>,
    /// The words that the command line of the span's process can contain: files and commands.
    pub words: Vec<String>,
}

/// The process that a span of an imported file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    process: ProcessIx,
    /// Whether the imported span is the whole life of the process.
    is_whole: bool,
}

impl Spans {
    /// Places the spans of the file under recorded processes. The documentation of the module describes the method.
    pub(super) fn place(&self, path: &[u8], lookup: &Lookup<'_>) -> Placed {
        let mut placed = Placed {
            all: self.spans.len() as u64,
            notes: self
                .note
                .clone()
                .map(ImportNote::NotRead)
                .into_iter()
                .collect(),
            tool: self.tool.clone(),
            ..Placed::default()
        };
        let named = named::Candidates::new(self, lookup);
        let Some(moments) = Moments::of(self, &named, lookup) else {
            placed.add_note(ImportNote::UnknownBeginning);
            return placed;
        };
        let mut by_pid: HashMap<u32, Vec<ProcessIx>> = HashMap::new();
        let owners = self.spans.iter().map(|span| {
            let pid = span.pid?;
            let all = by_pid
                .entry(pid)
                .or_insert_with(|| self.with_pid(pid, path, &moments, lookup));
            let (from, to) = moments.of_span(span);
            let mut fitting = all.iter().copied();
            let process = fitting.find(|ix| lookup.inside(*ix, from, to).is_some())?;
            Some(Owner {
                process,
                is_whole: false,
            })
        });
        let mut owners: Vec<Option<Owner>> = owners.collect();
        let without: Vec<usize> = (0..owners.len())
            .filter(|at| owners.get(*at).is_some_and(Option::is_none))
            .collect();
        for (at, process) in named.nearest(self, &without, &moments, lookup) {
            if let Some(slot) = owners.get_mut(at) {
                *slot = Some(Owner {
                    process,
                    is_whole: true,
                });
            }
        }
        if named.is_cut() {
            placed.add_note(ImportNote::TooManySpans);
        }
        self.inherit(&mut owners);
        // If the times are times of the day and none of the spans has a process, all spans are placed under the
        // recorded command, because the command lived during all of them.
        let is_in_command = moments.are_times_of_day && owners.iter().all(Option::is_none);
        if is_in_command {
            let root = lookup.analysis.process_ids().next();
            owners.fill(root.map(|process| Owner {
                process,
                is_whole: false,
            }));
        }
        let without = self.without_process(&owners, &named, &moments, lookup);
        if without != WithoutProcess::default() {
            placed.add_note(ImportNote::WithoutProcess(without));
        }
        placed.spans = self.on(&owners, &moments, lookup, &mut placed);
        if is_in_command {
            for span in &mut placed.spans {
                span.doubt = Some(Doubt::Runner);
            }
        }
        placed
    }

    /// Counts, by reason, the spans of the file that lie in the recorded time and have no process.
    fn without_process(
        &self,
        owners: &[Option<Owner>],
        named: &named::Candidates<'_>,
        moments: &Moments<'_>,
        lookup: &Lookup<'_>,
    ) -> WithoutProcess {
        let mut counts = WithoutProcess::default();
        for (span, _) in self
            .spans
            .iter()
            .zip(owners)
            .filter(|(_, owner)| owner.is_none())
        {
            let (from, to) = moments.of_span(span);
            if lookup.is_outside(from, to) {
                continue;
            }
            if span.words.is_empty() {
                counts.wordless += 1;
            } else if named.knows(span) {
                counts.unclear += 1;
            } else {
                counts.unnamed += 1;
            }
        }
        counts
    }

    /// The recorded processes that had the given pid of the imported file and lived at the times of its spans. Several
    /// processes can have this pid, because each container counts pids anew. The pid can also be unknown, because the
    /// recording may lack the pids inside a container. In both cases, the process of a compilation by clang is found by
    /// the name of the imported file, and the result for any other file is empty.
    fn with_pid(
        &self,
        pid: u32,
        path: &[u8],
        moments: &Moments<'_>,
        lookup: &Lookup<'_>,
    ) -> Vec<ProcessIx> {
        let analysis = lookup.analysis;
        let of_pid = self.spans.iter().filter(|span| span.pid == Some(pid));
        let times = of_pid.map(|span| moments.of_span(span));
        let Some((from, to)) = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
            return Vec::new();
        };
        let lived = |ix: &ProcessIx| lookup.inside(*ix, from, to).is_some();
        let stem = base(path);
        let stem = stem.rsplitn(2, |byte| *byte == b'.').last().unwrap_or(stem);
        let named = |ix: &ProcessIx| {
            let process = analysis.process(*ix);
            let ends: [&[u8]; 5] = [b".o", b".obj", b"", b".c", b".cpp"];
            ends.iter().any(|end| names(process, &[stem, end].concat()))
        };
        let with_pid = lookup.with_pid(pid).iter().copied();
        let mut with_pid: Vec<ProcessIx> = with_pid.filter(lived).take(MOST_TRIED).collect();
        if with_pid.len() > 1 && self.is_compilation {
            with_pid.retain(named);
        }
        if with_pid.is_empty() && self.is_compilation {
            let compiler = |ix: &ProcessIx| {
                let program = program(analysis.process(*ix));
                words::contains(program, b"clang")
            };
            let all = analysis.process_ids().filter(compiler);
            // The driver and the compiler both name the file. The compiler begins later, so the last process is taken.
            with_pid.extend(all.filter(lived).rfind(named));
        }
        // Two processes with this pid at these times are in different containers, so it is not known which of the two
        // processes the file means.
        if with_pid.len() > 1 && !self.is_compilation {
            with_pid.clear();
        }
        with_pid
    }

    /// Gives each span that has no pid and no process the process of its parent span.
    fn inherit(&self, owners: &mut [Option<Owner>]) {
        // The file can list a parent span after its child spans, so several rounds are needed. In each round, the
        // process of a span reaches descendants of this span that are at least one level further down.
        for _ in 0..MOST_TRIED {
            let mut has_changed = false;
            for (at, span) in self.spans.iter().enumerate() {
                let parent = span.parent.and_then(|parent| owners.get(parent).copied());
                let (Some(Some(parent)), Some(slot)) = (parent, owners.get_mut(at)) else {
                    continue;
                };
                if slot.is_none() && span.pid.is_none() {
                    *slot = Some(Owner {
                        is_whole: false,
                        ..parent
                    });
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
    }

    /// Makes the imported spans: each span of the file that lies in the life of its process (`owners`).
    fn on(
        &self,
        owners: &[Option<Owner>],
        moments: &Moments<'_>,
        lookup: &Lookup<'_>,
        placed: &mut Placed,
    ) -> Vec<Imported> {
        let mut all = Vec::new();
        for (span, owner) in self.spans.iter().zip(owners) {
            let (from, to) = moments.of_span(span);
            if lookup.is_outside(from, to) {
                placed.outside += 1;
                continue;
            }
            let Some(owner) = owner else {
                continue;
            };
            let life = lookup.analysis.process(owner.process);
            if owner.is_whole {
                let at = (owner.process, (life.start, life.end));
                all.push(Imported {
                    whole: true,
                    file: span.file(),
                    result: span.result,
                    ..span.imported(self, at)
                });
                continue;
            }
            let Some((from, to)) = lookup.inside(owner.process, from, to) else {
                continue;
            };
            let error = moments.error();
            let is_off = error > to.since(from) / TOLERATED_PART;
            let other = span.tid.filter(|tid| Some(*tid) != span.pid);
            all.push(Imported {
                thread: other.and_then(|tid| lookup.thread(owner.process, tid)),
                file: span.file(),
                result: span.result,
                error,
                doubt: is_off.then_some(Doubt::Off(error)),
                ..span.imported(self, (owner.process, (from, to)))
            });
        }
        all
    }
}

impl Span {
    /// The part of a process's life that the span covers.
    fn imported(&self, file: &Spans, at: (ProcessIx, (Ktime, Ktime))) -> Imported {
        let imported = imported(self.kind(file), self.name.as_bytes(), at);
        match &self.last_part {
            Some(part) => Imported {
                brief: words::brief(part).map(Box::from),
                ..imported
            },
            None => imported,
        }
    }

    /// The file that the test is in, if the span is a test whose name begins with a file.
    fn file(&self) -> Option<Box<str>> {
        let file = words::file_of_test(&self.name).filter(|_| self.is_test);
        file.map(Box::from)
    }

    fn kind(&self, file: &Spans) -> ImportedKind {
        if self.is_test {
            ImportedKind::Test
        } else if file.is_compilation {
            ImportedKind::Unit
        } else {
            ImportedKind::Span
        }
    }
}
