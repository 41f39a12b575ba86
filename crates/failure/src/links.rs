//! Explains the failure of a process that needed a file or a port by the failure of another process that should have
//! written this file or served this port. Exit statuses do not show such a connection.

use std::collections::BTreeSet;

use tr_analyze::model::ProcessIx;
use tr_programs::tools::Role;

use super::files::{by_redirection, is_same, needs, outputs, Output};
use super::finder::Finder;
use super::passes::{builds, is_unstarted, passes, program_start, Passes};
use super::passes::{LONGEST_CHAIN, MOST_EXAMINED};
use tr_insight::processes::label;
use tr_insight::processes::roles::{is_probe, role};

/// The largest number of failed processes whose output files are compared with the files that a chain of failures
/// needs.
const WRITERS: usize = 1_000;

/// A chain of failed processes, from the first failure up to COMMAND. The failure of each process led to the failure of
/// the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    pub(super) processes: Vec<ProcessIx>,
    /// The indexes of those processes in the chain of failures that perhaps failed because a file or a service was
    /// missing. The previous process in the chain should have written this file or provided this service.
    pub(super) missed: BTreeSet<usize>,
}

impl Chain {
    /// Makes a chain in which each process is a child of the next one, so that no process in the chain failed because
    /// of a missing file or service.
    pub(super) fn new(processes: Vec<ProcessIx>) -> Chain {
        Chain {
            processes,
            missed: BTreeSet::new(),
        }
    }

    /// Replaces the processes of the chain before the index `at` by the processes `first`, whose failures perhaps made
    /// the process at that index fail.
    fn put_before(&mut self, at: usize, mut first: Vec<ProcessIx>) {
        let count = first.len();
        let kept = self.missed.iter().filter(|place| **place > at);
        let mut missed: BTreeSet<usize> = kept.map(|place| place - at + count).collect();
        missed.insert(count);
        first.extend(self.processes.iter().skip(at));
        *self = Chain {
            processes: first,
            missed,
        };
    }
}

/// The largest number of times that an earlier failure is put before a chain of failures, because a process of the
/// chain lacked a file. A guess: two missing files in a row are common. For example, a compilation fails, so the linker
/// lacks an object file, and then a script lacks the linked program.
const MISSING_FILES: usize = 4;

impl Finder<'_> {
    /// Extends a chain of failures by an earlier failure that perhaps led to the first failure of the chain or to a
    /// later one. For example, a process in `failed` should have written a file that a process of the chain needed, or
    /// should have served as the server of a process of the chain.
    pub(super) fn linked(&self, chain: Vec<ProcessIx>, failed: &BTreeSet<ProcessIx>) -> Chain {
        let first = self.first_try(&chain);
        let first = first.or_else(|| self.writer(&chain, failed));
        let first = first.or_else(|| self.server(&chain, failed));
        let first = first.or_else(|| Some((0, self.failed_build(&chain, failed)?)));
        let first = first.or_else(|| Some((0, self.news(&chain, failed)?)));
        let mut linked = Chain::new(chain);
        let mut next = first;
        for _ in 0..MISSING_FILES {
            let Some((at, first)) = next else {
                break;
            };
            let mut processes = self.chain(Some(first));
            processes.reverse();
            // The process that should have written the file may itself have failed because another file was missing.
            next = self.writer(&processes, failed);
            linked.put_before(at, processes);
        }
        linked
    }

    /// Finds in a chain of failures the uppermost process that needed a missing file. Returns the index of this process
    /// in the chain, and the failed process that should have written the file. If there are several such writers, the
    /// one that ended last is returned.
    fn writer(
        &self,
        chain: &[ProcessIx],
        failed: &BTreeSet<ProcessIx>,
    ) -> Option<(usize, ProcessIx)> {
        let within: BTreeSet<ProcessIx> = chain.iter().copied().collect();
        let counts = |ix: &&ProcessIx| {
            let process = self.analysis.process(**ix);
            let parent = process.parent.map(|parent| self.analysis.process(parent));
            let is_probe = parent.is_some_and(|parent| is_probe(process, parent));
            let is_counted = !within.contains(ix) && !is_probe && self.sure.own.has(**ix);
            is_counted && !self.has_substitute(**ix)
        };
        let writers = failed.iter().rev().filter(counts).take(WRITERS);
        let writers = writers.flat_map(|ix| {
            let outputs = self.outputs(*ix).into_iter();
            let outputs = outputs.chain(self.redirected_outputs(*ix));
            outputs.map(|output| (*ix, output))
        });
        let writers: Vec<(ProcessIx, Output)> = writers.collect();
        if writers.is_empty() {
            return None;
        }
        let places = chain.iter().enumerate().rev().take(LONGEST_CHAIN);
        let mut found = places.filter_map(|(at, ix)| {
            let reader = self.analysis.process(*ix);
            let compiles = role(reader) == Some(Role::Compiler);
            let before = self.before(*ix).filter(|_| at == 0);
            let missed = writers.iter().filter(|(writer, output)| {
                let is_named = || needs(&reader.argv, output) || compiles && output.is_included();
                let is_missed = || is_named() || before == Some(*writer);
                let is_try = self.analysis.process(*writer).argv == reader.argv;
                self.is_before(*writer, *ix) && !is_try && is_missed()
            });
            let (writer, output) =
                missed.max_by_key(|(writer, _)| self.analysis.process(*writer).end)?;
            (!self.was_written(*writer, output, *ix)).then_some((at, *writer))
        });
        found.next()
    }

    /// Finds a script that failed in an earlier run and was run again. In the second run, the script failed in a step
    /// that had succeeded in the first run. Perhaps the first run left something behind, such as a lock. Returns the
    /// index of this step in the chain of failures, and the first run.
    fn first_try(&self, chain: &[ProcessIx]) -> Option<(usize, ProcessIx)> {
        let pairs = chain.iter().zip(chain.iter().skip(1)).enumerate();
        let mut found = pairs
            .take(LONGEST_CHAIN)
            .filter_map(|(at, (step, script))| {
                let (step, again) = (self.analysis.process(*step), self.analysis.process(*script));
                let above = again.parent.filter(|_| passes(again) == Passes::Status)?;
                if step.parent != Some(*script) || step.execs.is_empty() || again.execs.is_empty() {
                    return None;
                }
                let children = self
                    .analysis
                    .process(above)
                    .children
                    .iter()
                    .take(MOST_EXAMINED);
                let mut tries = children.copied().filter(|ix| {
                    let other = self.analysis.process(*ix);
                    other.argv == again.argv && other.end <= again.start && self.fails(*ix)
                });
                let has_succeeded = |ix: &ProcessIx| {
                    let steps = self
                        .analysis
                        .process(*ix)
                        .children
                        .iter()
                        .take(MOST_EXAMINED);
                    let mut steps = steps.map(|ix| self.analysis.process(*ix));
                    steps.any(|other| other.argv == step.argv && other.status == Some(0))
                };
                Some((at, tries.find(has_succeeded)?))
            });
        found.next()
    }

    /// Whether a script wrote the output file of a failed process in another way after the failure, so that the file is
    /// not missing.
    fn has_substitute(&self, ix: ProcessIx) -> bool {
        let above = self.analysis.process(ix).parent;
        let course = above.and_then(|above| self.course(above));
        course.is_some_and(|course| {
            let command = course.command(ix);
            command.is_some_and(|command| course.part.has_substitute(command))
        })
    }

    /// The files that a process writes, as far as its command line names them.
    pub(super) fn outputs(&self, ix: ProcessIx) -> Vec<Output> {
        let process = self.analysis.process(ix);
        if process.execs.is_empty() {
            return Vec::new();
        }
        outputs(&process.argv, &label::program(process))
    }

    /// The files into which the script of the parent shell redirects the output of a process.
    fn redirected_outputs(&self, ix: ProcessIx) -> Vec<Output> {
        let child = self.analysis.process(ix);
        let Some(parent) = child.parent else {
            return Vec::new();
        };
        let names = self.texts.outputs(self.analysis.process(parent), child);
        names
            .iter()
            .filter_map(|name| by_redirection(name))
            .collect()
    }

    /// Whether a process ended before the program of another process began.
    fn is_before(&self, writer: ProcessIx, reader: ProcessIx) -> bool {
        let (writer, reader) = (self.analysis.process(writer), self.analysis.process(reader));
        writer.end <= program_start(reader)
    }

    /// The step of a script that ran right before the script tried in vain to start a program. Perhaps this step should
    /// have made the program. No names are compared, because a recording does not contain the name of a program that
    /// does not exist.
    fn before(&self, unstarted: ProcessIx) -> Option<ProcessIx> {
        let process = self.analysis.process(unstarted);
        let parent = process.parent.filter(|_| is_unstarted(process))?;
        let children = &self.analysis.process(parent).children;
        let at = children.iter().position(|ix| *ix == unstarted)?;
        children.get(at.checked_sub(1)?).copied()
    }

    /// The last build step before a script tried in vain to start a program, if this step failed. Perhaps it should
    /// have made the program. No names are compared, because a recording does not contain the name of a program that
    /// does not exist.
    fn failed_build(&self, chain: &[ProcessIx], failed: &BTreeSet<ProcessIx>) -> Option<ProcessIx> {
        let unstarted = self.analysis.process(*chain.first()?);
        let (script, before) = if unstarted.execs.is_empty() {
            let script = self.analysis.process(unstarted.parent?);
            (script, unstarted.start)
        } else {
            (unstarted, unstarted.end)
        };
        if !is_unstarted(unstarted) || passes(script) != Passes::Status {
            return None;
        }
        let steps = script.children.iter().copied().rev().filter(|ix| {
            let step = self.analysis.process(*ix);
            builds(step) && step.end <= before && step.start >= program_start(script)
        });
        let last = steps.take(WRITERS).next()?;
        failed.contains(&last).then_some(last)
    }

    /// Whether another process than `writer` wrote the file `output` again, after `writer` had ended and before the
    /// program of `reader` began.
    fn was_written(&self, writer: ProcessIx, output: &Output, reader: ProcessIx) -> bool {
        let (after, before) = (
            self.analysis.process(writer).end,
            program_start(self.analysis.process(reader)),
        );
        // The shells above the writer do not count as other processes, because their redirections are the writer's own
        // output.
        let above: BTreeSet<ProcessIx> = self
            .analysis
            .ancestors(writer)
            .take(LONGEST_CHAIN)
            .collect();
        let mut all = self.analysis.process_ids().filter(|ix| {
            let process = self.analysis.process(*ix);
            let is_between = process.end > after && process.end <= before;
            process.status == Some(0) && is_between && !above.contains(ix)
        });
        all.any(|ix| {
            let outputs = self.outputs(ix);
            outputs.iter().any(|other| is_same(output, other))
        })
    }
}
