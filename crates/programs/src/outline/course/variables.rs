//! Searches for the assignment of a shell variable whose value decided about the end of a script.

use super::super::builtins;
use super::super::flow::{self, What};
use super::super::tree::CommandIx;
use super::super::words::number;
use super::causes::{Causes, PIPE_STATUS};
use super::search::{Cause, Otherwise, Search, StateIx, Usage};

impl Causes<'_> {
    /// Whether a variable of the script can have had this value, judging by the fact that is known
    /// about its use.
    pub(super) fn is_fit(&self, usage: Usage, name: &[u8], value: &[u8]) -> bool {
        let result = |ix: CommandIx| {
            let command = self.walk.outline.commands.get(ix)?;
            builtins::result(&command.words, name, value)
        };
        match usage {
            Usage::Status => number(value).is_none_or(|number| number % 256 == self.status),
            Usage::Success(test) => result(test) != Some(false),
            Usage::Failure(test) => result(test) != Some(true),
            Usage::Other => true,
        }
    }

    /// Searches backward from a state of the script for the command that set a variable last.
    pub(super) fn variable(
        &mut self,
        from: StateIx,
        name: Vec<u8>,
        usage: Usage,
        otherwise: Otherwise,
    ) -> Option<Search> {
        let walk = self.walk;
        let state = walk.states.get(from)?;
        let node = walk.graph.nodes.get(state.node)?;
        let command = node.command.and_then(|ix| walk.outline.commands.get(ix));
        let value = match (&node.what, command) {
            (What::Wild, _) => {
                self.found.insert(Cause::Unclear);
                return None;
            }
            (What::Pipe { .. } | What::Start(_), _) if name == PIPE_STATUS => {
                self.blame(from, &node.what);
                return None;
            }
            (What::Assign, Some(command)) => flow::value(command, &name),
            _ => None,
        };
        let Some(value) = value else {
            return Some(Search::Variable {
                name,
                usage,
                otherwise,
            });
        };
        if value.has_status() {
            return Some(Search::Tested(otherwise));
        }
        if value.text == b"$!" {
            return Some(Search::LastJob);
        }
        let is_source = |source: &&[u8]| {
            let mut commands = walk.outline.commands.iter();
            let mut is_set = || commands.any(|command| flow::value(command, source).is_some());
            *source != name && (*source == PIPE_STATUS || is_set())
        };
        if let Some(source) = value.variable().filter(is_source) {
            return Some(Search::Variable {
                name: source.to_vec(),
                usage: Usage::Other,
                otherwise,
            });
        }
        let literal = value.literal();
        if literal.is_some_and(|value| !self.is_fit(usage, &name, value)) {
            return None;
        }
        if literal.is_none() {
            self.deciding.extend(node.command);
        }
        let is_zero = matches!(literal, Some(b"0" | b""));
        match node.guard.filter(|_| !is_zero) {
            Some(after) => {
                // Of several settings (`|| failed=1`), each counts.
                let before = Search::Variable {
                    name,
                    usage: Usage::Other,
                    otherwise: Otherwise::Nothing,
                };
                self.then(from, before);
                Some(Search::Guard { after, otherwise })
            }
            None => {
                self.otherwise(otherwise);
                None
            }
        }
    }
}
