//! Says in which directory a program works, as far as the recording or the command lines show it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tr_analyze::model::ExecSpan;
use tr_analyze::programs::Group;
use tr_programs::tools::Role;
use tr_programs::words;

use crate::facts::{BuildFacts, Execution};

/// The working directory in which an execution of a program starts: the recorded one (`Recorded`), or, if none is
/// recorded, a number for what the command lines of its ancestors say about this directory (`Said`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Directory {
    Recorded(Arc<[u8]>),
    Said(Option<usize>),
}

pub(super) struct Directories {
    /// For each execution of a program, the number that [`said`] finds for the directory of its children.
    said: Vec<Option<usize>>,
}

impl Directories {
    pub fn new(facts: &BuildFacts<'_>) -> Directories {
        Directories { said: said(facts) }
    }

    /// The working directory of an execution of a program.
    pub fn of(&self, execution: &Execution, exec: &ExecSpan) -> Directory {
        if exec.directory.is_empty() {
            let said = execution
                .owner
                .and_then(|owner| *self.said.get(owner as usize)?);
            Directory::Said(said)
        } else {
            Directory::Recorded(Arc::clone(&exec.directory))
        }
    }
}

/// Whether an argument of a build tool names the directory in which the tool works, as `-C DIR` does.
pub(super) fn names_directory(arg: &[u8]) -> bool {
    arg.starts_with(b"-C") || arg.starts_with(b"--directory")
}

/// For each execution of a program, a number that identifies the directory in which its children start, as far as the
/// command lines of the execution and its ancestors show it (`make -C` or a shell's `cd`). The number is used where the
/// directory itself is not recorded.
fn said(facts: &BuildFacts<'_>) -> Vec<Option<usize>> {
    let words = |group: Group| -> Option<Vec<&[u8]>> {
        let role = facts.execution(group)?.program.role()?;
        let tells = |arg: &&[u8]| match role {
            Role::Jobs => names_directory(arg),
            Role::Shell => words::contains(arg, b"cd "),
            _ => false,
        };
        Some(facts.args(group)).filter(|args| args.iter().any(tells))
    };
    let mut numbers: BTreeMap<(Option<usize>, Vec<&[u8]>), usize> = BTreeMap::new();
    facts.down(|group, above: Option<&Option<usize>>| {
        let above = above.copied().flatten();
        let Some(words) = words(group) else {
            return above;
        };
        let next = numbers.len();
        Some(*numbers.entry((above, words)).or_insert(next))
    })
}
