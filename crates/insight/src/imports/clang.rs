//! The spans of clang's `-ftime-trace`: a file for each compilation, with its pid and the time of its beginning.

use tr_analyze::model::{Imported, ImportedKind, ProcessIx};
use tr_programs::words;

use super::lookup::{base, imported, names, program, Lookup, Placed};

/// The spans of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeTrace {
    pub pid: u32,
    /// In ns since 1970.
    pub begin: i64,
    pub spans: Vec<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub tid: u32,
    /// In ns since the beginning.
    pub from: i64,
    pub to: i64,
    pub name: String,
}

impl TimeTrace {
    /// Places the spans under the compiler's process: the one with the pid, or else one that
    /// then ran and whose command line names the file.
    pub(super) fn place(&self, path: &[u8], lookup: &Lookup<'_>) -> Placed {
        let begin = lookup.time(self.begin);
        let longest = self.spans.iter().map(|span| span.to).max().unwrap_or(0);
        let mut placed = Placed {
            all: self.spans.len() as u64,
            ..Placed::default()
        };
        let end = begin.saturating_add(longest);
        let Some(process) = self.process(path, lookup, begin, end) else {
            if lookup.is_outside(begin, end) {
                placed.outside = placed.all;
            }
            return placed;
        };
        for span in &self.spans {
            let at = |time| begin.saturating_add(time);
            let (from, to) = (at(span.from), at(span.to));
            if lookup.is_outside(from, to) {
                placed.outside += 1;
            } else if let Some((from, to)) = lookup.inside(process, from, to) {
                let other = Some(span.tid).filter(|tid| *tid != self.pid);
                placed.spans.push(Imported {
                    thread: other.and_then(|tid| lookup.thread(process, tid)),
                    ..imported(
                        ImportedKind::Unit,
                        span.name.as_bytes(),
                        (process, (from, to)),
                    )
                });
            }
        }
        placed
    }

    fn process(&self, path: &[u8], lookup: &Lookup<'_>, from: i64, to: i64) -> Option<ProcessIx> {
        let analysis = lookup.analysis;
        let lived = |ix: &ProcessIx| lookup.inside(*ix, from, to).is_some();
        let stem = base(path);
        let stem = stem.rsplitn(2, |byte| *byte == b'.').last().unwrap_or(stem);
        let named = |ix: &ProcessIx| {
            let process = analysis.process(*ix);
            let ends: [&[u8]; 5] = [b".o", b".obj", b"", b".c", b".cpp"];
            ends.iter().any(|end| names(process, &[stem, end].concat()))
        };
        let with_pid = lookup.with_pid(self.pid).iter().copied().filter(lived);
        let with_pid: Vec<ProcessIx> = with_pid.collect();
        match with_pid.as_slice() {
            [only] => Some(*only),
            // Containers have equal pids.
            [_, ..] => with_pid.into_iter().find(named),
            // A pid of a container that the recording does not know.
            [] => {
                let compiler = |ix: &ProcessIx| {
                    let program = program(analysis.process(*ix));
                    words::contains(program, b"clang")
                };
                let all = analysis.process_ids().filter(compiler);
                let mut all = all.filter(lived).filter(named);
                // A compiler begins later than its driver.
                all.next_back()
            }
        }
    }
}
