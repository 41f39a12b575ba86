//! Failures that a pipeline hides.

use std::collections::BTreeMap;

use tr_analyze::model::{Process, ProcessIx};
use tr_format::event::Ktime;

use super::chain::Finder;
use super::passes::{decides, fails, passes, Passes, AT_ONCE};
use crate::label;

pub(super) const HIDDEN: usize = 4;

/// The most subshells around a tool in a pipeline, and the most commands after it.
pub(super) const SUBSHELLS: usize = 8;

impl Finder<'_> {
    /// The failures that a pipeline hid (`make | tee log`) from COMMAND, which succeeded: each from what explains it up to
    /// COMMAND.
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
        // The start of the last run that succeeded.
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
        let chains = last.take(HIDDEN).map(|ix| {
            let mut chain = self.chain(Some(ix));
            chain.reverse();
            // What the kernel killed, or what crashed, has a line of its own.
            let told = chain.iter().any(|ix| self.rank(*ix).is_some());
            (!told).then(|| [chain, vec![root]].concat())
        });
        chains.flatten().collect()
    }

    /// Whether a process is a build tool or a test runner whose output another process read to its end, in a shell
    /// that succeeded, or below script(1).
    pub(super) fn is_hidden(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        if !decides(process) || !self.sure.own.has(ix) || self.tests.is_asked.contains(&ix) {
            return false;
        }
        // `(cd sub && make) | tee log`
        let (mut top, mut above) = (process, process.parent);
        for _ in 0..SUBSHELLS {
            let parent = above.map(|ix| self.analysis.process(ix));
            let Some(parent) = parent.filter(|it| fails(it) && it.execs.is_empty()) else {
                break;
            };
            (top, above) = (parent, parent.parent);
        }
        let Some(parent) = above.map(|ix| self.analysis.process(ix)) else {
            return false;
        };
        let is_read = match passes(parent) {
            Passes::Status => self.has_reader(top, parent),
            _ => label::program(parent) == "script",
        };
        parent.status == Some(0) && is_read
    }

    /// Whether a shell started another process beside this one, right after it, which ended right after it.
    pub(super) fn has_reader(&self, process: &Process, shell: &Process) -> bool {
        let children = &shell.children;
        let own = children.partition_point(|ix| self.analysis.process(*ix).start <= process.start);
        let next = children
            .get(own..)
            .unwrap_or_default()
            .iter()
            .take(SUBSHELLS);
        let mut next = next.map(|ix| self.analysis.process(*ix));
        next.any(|it| {
            let begins = it.start < process.end && it.start.since(process.start) <= AT_ONCE;
            let ends = it.end >= process.end && it.end.since(process.end) <= AT_ONCE;
            begins && ends && !fails(it)
        })
    }
}
