//! Finds failures that a pipeline hides, because its last command succeeds (`make | tee log`).

use std::collections::BTreeMap;

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::timeline::Actor;
use tr_format::event::{Ktime, Reason};
use tr_programs::table::utilities::UtilityUse;

use super::finder::{Finder, PipeReads};
use super::passes::{decides, fails, has_use, passes, program_start, Passes, AT_ONCE};

/// The largest number of failures hidden by pipelines that a report shows.
const MOST_HIDDEN: usize = 4;

/// The largest number of subshells around one program of a pipeline that are examined. Also the largest number of other
/// programs of the same pipeline that are examined.
pub(super) const SUBSHELLS: usize = 8;

impl Finder<'_> {
    /// The failures that a pipeline (`make | tee log`) hid, so that COMMAND succeeded in spite of them. Each failure is
    /// a chain of processes that begins with the process that explains the failure and ends with COMMAND.
    pub(super) fn hidden(&self, failed: &[ProcessIx]) -> Vec<Vec<ProcessIx>> {
        let root = self
            .root
            .filter(|ix| self.analysis.process(*ix).status == Some(0));
        let Some(root) = root else {
            return Vec::new();
        };
        let hidden = failed.iter().copied().filter(|ix| self.is_hidden(*ix));
        let hidden: Vec<ProcessIx> = hidden.collect();
        if hidden.is_empty() {
            return Vec::new();
        }
        // A hidden failure does not count if the same command line succeeded later. The map has the last start of a
        // successful run for each command line.
        let mut good: BTreeMap<&[u8], Ktime> = BTreeMap::new();
        for process in &self.analysis.processes {
            if process.status == Some(0) {
                let last = good.entry(&process.argv.bytes).or_default();
                *last = process.start.max(*last);
            }
        }
        let is_good_again = |ix: &ProcessIx| {
            let process = self.analysis.process(*ix);
            let last = good.get(&*process.argv.bytes);
            last.is_some_and(|start| *start >= process.end)
        };
        let last = hidden.into_iter().filter(|ix| !is_good_again(ix));
        let chains = last.filter_map(|ix| {
            let mut chain = self.chain(Some(ix));
            chain.reverse();
            // A chain of failures with a process that crashed or was killed by the kernel is left out, because the
            // report already has a line for such a process.
            let is_reported = chain.iter().any(|ix| self.has_rank(*ix));
            (!is_reported).then(|| [chain, vec![root]].concat())
        });
        chains.take(MOST_HIDDEN).collect()
    }

    /// Whether a process is a failed build tool or test runner whose failure did not make COMMAND fail. One of two
    /// facts must explain this. Either a successful shell ran the process in a pipe, and another process read all of
    /// its output. Or script(1) ran the process and succeeded.
    pub(super) fn is_hidden(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        if !decides(process) || !self.sure.own.has(ix) || self.tests.is_asked.contains(&ix) {
            return false;
        }
        let top = self.analysis.process(self.top_of_subshells(ix));
        let Some(parent) = top.parent.map(|ix| self.analysis.process(ix)) else {
            return false;
        };
        let is_read = match passes(parent) {
            Passes::Status => self.reader(top, parent).is_some(),
            _ => has_use(parent, UtilityUse::Terminal),
        };
        parent.status == Some(0) && is_read
    }

    /// The outermost failed subshell around a process, as in `(cd sub && make) | tee log`; the process itself if no
    /// failed subshell is around it.
    pub(super) fn top_of_subshells(&self, ix: ProcessIx) -> ProcessIx {
        self.top_of(ix, |above| fails(self.analysis.process(above)))
    }

    /// The outermost subshell (a fork without an exec) that is a descendant of the process `script` and an ancestor of
    /// the given process; the given process itself if there is no such subshell.
    pub(super) fn top_of_forks(&self, ix: ProcessIx, script: ProcessIx) -> ProcessIx {
        self.top_of(ix, |above| above != script)
    }

    /// The outermost subshell around a process. The search goes up through the ancestors of the process as long as the
    /// next ancestor is a subshell for which `is_one` returns true. If the parent is no such subshell, the result is
    /// the process itself.
    fn top_of(&self, ix: ProcessIx, is_one: impl Fn(ProcessIx) -> bool) -> ProcessIx {
        let above = self.analysis.ancestors(ix).take(SUBSHELLS);
        let forks =
            above.take_while(|ix| is_one(*ix) && self.analysis.process(*ix).execs.is_empty());
        forks.last().unwrap_or(ix)
    }

    /// The process that probably read the output of another process in a pipe. The shell started the reader right
    /// after the writer without waiting in between, and the reader ended right after the writer and did not fail.
    pub(super) fn reader(&self, process: &Process, shell: &Process) -> Option<ProcessIx> {
        let children = &shell.children;
        let own = children.partition_point(|ix| self.analysis.process(*ix).start <= process.start);
        let mut next = children
            .get(own..)
            .unwrap_or_default()
            .iter()
            .take(SUBSHELLS);
        let reader = next.find(|ix| {
            let next = self.analysis.process(**ix);
            let at_once = next.start.since(process.start) <= AT_ONCE;
            let begins = at_once && self.is_beside(process, next);
            let (read, written) = (self.exit(next), self.exit(process));
            let ends = read >= written && read.since(written) <= AT_ONCE;
            begins && ends && !fails(next)
        });
        reader.copied()
    }

    /// Whether a process waited for data in a pipe that another process, or one of its descendants, wrote or closed.
    /// The pipe by which a parent learns whether the exec of its child failed does not count, because it is closed
    /// before the executed program begins.
    pub(super) fn reads(&self, reader: ProcessIx, writer: ProcessIx) -> bool {
        let process = self.analysis.process(writer);
        let mut kept = self.caches.reads.borrow_mut();
        let reads = kept
            .entry(reader)
            .or_insert_with(|| self.pipe_reads(reader));
        let by_writer = reads.get(&writer).map_or(&[][..], Vec::as_slice);
        by_writer
            .iter()
            .any(|(from, to)| *from < process.end && *to > program_start(process))
    }

    /// The waits of a process for data in pipes. Each wait is listed under the process that ended it (by writing to
    /// the pipe or closing it), and under the nearest ancestors of that process.
    fn pipe_reads(&self, reader: ProcessIx) -> PipeReads {
        let mut reads = PipeReads::new();
        let Some(timeline) = &self.analysis.timeline else {
            return reads;
        };
        let threads = self.analysis.process(reader).threads.iter();
        for stretch in threads.flat_map(|thread| timeline.of(*thread)) {
            let Actor::Thread(by) = stretch.waker() else {
                continue;
            };
            if stretch.reason == Reason::PipeRead {
                let by = self.analysis.thread(by).process;
                for writer in self.analysis.lineage(by).take(SUBSHELLS) {
                    let waits = reads.entry(writer).or_default();
                    waits.push((stretch.from, stretch.to));
                }
            }
        }
        reads
    }
}
