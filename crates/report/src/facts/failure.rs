//! The chain of failures that ends with the command's own.

use tr_analyze::critical_path;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::tools::{self, Role};

use crate::{escape, exit, label, units};

/// A failure and the failures above that it explains.
pub(crate) struct Failure {
    /// The process, with what became of it.
    first: (String, String),
    /// Those above, the command last.
    above: Vec<(String, String)>,
}

impl Failure {
    /// For a terminal, with this between them.
    pub(crate) fn words(&self, between: &str) -> String {
        self.join(between, |name| name.to_owned(), |word| word.to_owned())
    }

    pub(crate) fn markdown(&self) -> String {
        self.join(" → ", escape::code, escape::markdown)
    }

    fn join(
        &self,
        between: &str,
        name: impl Fn(&str) -> String,
        word: impl Fn(&str) -> String,
    ) -> String {
        let all = std::iter::once(&self.first).chain(&self.above);
        let all = all.map(|(of, became)| format!("{} {}", name(of), word(became)));
        all.collect::<Vec<_>>().join(between)
    }
}

/// The chain of failures that ends with the command's own. None of a command that succeeded.
pub(crate) fn explained(analysis: &Analysis) -> Vec<Failure> {
    let root = critical_path::root(analysis).ok();
    let chain = root.map(|root| chain(analysis, root)).unwrap_or_default();
    let Some((first, parents)) = chain.split_last() else {
        return Vec::new();
    };
    let name = |it: &Process| units::shorten(&label::label(it), 60);
    let word = |it: &Process| exit::words(it.status.unwrap_or(0));
    let after = units::time(first.end.since(first.start));
    let above = parents.iter().enumerate().rev();
    let above = above.map(|(at, it)| {
        let name = if at == 0 {
            "the command".to_owned()
        } else {
            name(it)
        };
        (name, word(it))
    });
    vec![Failure {
        first: (name(first), format!("{} after {after}", word(first))),
        above: above.collect(),
    }]
}

pub(crate) fn fails(process: &Process) -> bool {
    exit::failed(process.status)
}

pub(crate) fn parent_fails(analysis: &Analysis, process: &Process) -> bool {
    process.parent.is_some_and(|ix| fails(analysis.process(ix)))
}

/// From the root down: of the children that may explain a failure the one that ended last.
/// Empty if the root did not fail.
pub(crate) fn chain(analysis: &Analysis, root: ProcessIx) -> Vec<&Process> {
    let mut chain = Vec::new();
    let mut at = Some(root);
    while let Some(process) = at.map(|ix| analysis.process(ix)).filter(|it| fails(it)) {
        chain.push(process);
        let children = process.children.iter().copied();
        let explain = children.filter(|ix| explains(analysis.process(*ix), process));
        at = explain.max_by_key(|ix| (analysis.process(*ix).end, *ix));
    }
    chain
}

/// A child's failure may be the reason for its parent's. A shell ends with the status of its
/// last command; it tolerates other failures, as a test that is false.
fn explains(child: &Process, parent: &Process) -> bool {
    let shell = tools::of(parent).is_some_and(|tool| tool.role(None) == Some(Role::Shell));
    // A command that a signal has killed counts as 128 and the signal's number.
    let code = |status: u32| match status & 0x7f {
        0 => status >> 8 & 0xff,
        signal => 128 + signal,
    };
    fails(child) && (!shell || child.status.map(code) == parent.status.map(code))
}
