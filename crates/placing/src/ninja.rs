//! Reads the commands of a `.ninja_log`. For each output of a build, the log has the times of the last command that
//! made this output. The times are in milliseconds since the start of the ninja that ran the command.

use std::collections::HashMap;

use tr_analyze::model::{Imported, ImportedKind, ProcessIx};
use tr_programs::script_words;
use tr_programs::tools::Family;
use tr_programs::words;

use super::align::{align, Span};
use super::lookup::{imported, signed, Lookup, Placed};

/// The largest time in nanoseconds by which an output's modification time can be too early, because file systems have
/// coarse clocks. FAT's resolution of 2 s is the coarsest; for network file systems this is a guess.
const COARSE_CLOCK: i64 = 2_000_000_000;

/// The commands in a log of ninja, each with its outputs and times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub edges: Vec<Edge>,
}

/// A command in a log of ninja. The log has one line for each output of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub span: Span,
    /// The time in nanoseconds since 1970 at which the command's output was written; 0 if no output was made.
    pub made: i64,
    pub outputs: Vec<Box<[u8]>>,
}

impl Log {
    /// Places each command of ninja's log on the process that ninja started for it.
    pub(super) fn place(&self, lookup: &Lookup<'_>) -> Placed {
        let analysis = lookup.analysis;
        let mut found: Vec<(&Edge, ProcessIx)> = Vec::new();
        // The log keeps only the last command of each output, so the log is complete only for the last run of ninja.
        // This run is therefore tried first.
        let mut left: Vec<&Edge> = self.edges.iter().collect();
        for ninja in lookup.of_family(Family::Ninja).rev() {
            let children = &analysis.process(ninja).children;
            let words = words(lookup, children);
            let named = |edge: &&Edge| edge.named(&words);
            let named: Vec<Vec<ProcessIx>> = left.iter().map(named).collect();
            let begin = signed(analysis.process(ninja).start).saturating_sub(COARSE_CLOCK);
            let span = |edge: &&Edge| Span {
                // The log also contains commands of earlier builds. If a command's output is older than this run of
                // ninja, the command is only matched with a process whose command line names the output.
                needs_name: edge.span.needs_name || edge.made > 0 && lookup.time(edge.made) < begin,
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
            spans: found.map(|(edge, ix)| edge.on(lookup, ix)).collect(),
            ..Placed::default()
        }
    }
}

impl Edge {
    /// The processes whose command lines name an output of ninja's command.
    fn named(&self, words: &HashMap<&[u8], Vec<ProcessIx>>) -> Vec<ProcessIx> {
        let outputs = self.outputs.iter();
        let named = outputs.filter_map(|output| words.get(&**output));
        let mut named: Vec<ProcessIx> = named.flatten().copied().collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    fn on(&self, lookup: &Lookup<'_>, process: ProcessIx) -> Imported {
        let life = lookup.analysis.process(process);
        let (name, brief) = name(&self.outputs);
        Imported {
            whole: true,
            brief,
            ..imported(
                ImportedKind::Target,
                &name,
                (process, (life.start, life.end)),
            )
        }
    }
}

/// For each word that occurs in a command line of the given processes, the processes whose command lines have this
/// word. The words of a shell's script are included.
fn words<'a>(lookup: &Lookup<'a>, processes: &[ProcessIx]) -> HashMap<&'a [u8], Vec<ProcessIx>> {
    let mut words: HashMap<&[u8], Vec<ProcessIx>> = HashMap::new();
    for ix in processes {
        let mut execs = lookup.analysis.process(*ix).execs.iter();
        // Only the first exec counts: this exec starts ninja's shell with the whole command, or the command itself.
        let args = execs.next().map(|exec| exec.argv.args());
        for word in args.into_iter().flatten().flat_map(script_words::names) {
            words.entry(word).or_default().push(*ix);
        }
    }
    words
}

/// The name of a target, which is that of its first output, and the brief form of the name.
fn name(outputs: &[Box<[u8]>]) -> (Vec<u8>, Option<Box<str>>) {
    let first = outputs.first().map_or(&[][..], |output| output);
    let mut name = first.to_vec();
    if outputs.len() > 1 {
        name.extend_from_slice(format!(" and {} more", outputs.len() - 1).as_bytes());
    }
    let text = String::from_utf8_lossy(first);
    let brief = words::brief(&text).filter(|brief| brief.as_bytes() != name);
    (name, brief.map(Box::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brief_name_is_that_of_the_first_output() {
        let of = |outputs: &[&str]| {
            let outputs: Vec<Box<[u8]>> =
                outputs.iter().map(|path| path.as_bytes().into()).collect();
            let (name, brief) = name(&outputs);
            (String::from_utf8_lossy(&name).into_owned(), brief)
        };
        assert_eq!(
            of(&["gen/a.h", "gen/a.c"]),
            ("gen/a.h and 1 more".to_owned(), Some("a.h".into()))
        );
        assert_eq!(of(&["all"]), ("all".to_owned(), None));
        assert_eq!(of(&[]), (String::new(), None));
    }
}
