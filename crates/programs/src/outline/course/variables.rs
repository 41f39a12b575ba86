//! Searches for the assignment of a shell variable whose value decided about the end of a script.

use std::collections::HashSet;

use super::super::builtins::{self, Builtin};
use super::super::flow::{self, Choice, NodeIx, What};
use super::super::options::Setting;
use super::super::patterns;
use super::super::tree::CommandIx;
use super::super::words::number;
use super::causes::{Causes, PIPE_STATUS};
use super::search::{EndingCause, Otherwise, Search, StateIx, Usage};

/// The largest number of tested variables that are examined. For each of them, the search looks for failed commands
/// whose success would have changed the value. A guess: a script ends because of few such tests.
const MOST_NOTED: usize = 8;

/// The largest number of nodes of the script's graph that are followed from the success of a command to the next
/// command. A guess: even if the command is the last one of a function and of a condition, fewer nodes lie between the
/// two commands.
const MOST_JOINED: usize = 16;

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
            Usage::Chosen(node) => {
                let node = self.walk.graph.nodes.get(node);
                match node.map(|node| &node.what) {
                    Some(What::Case(Choice { arms, at, .. })) => {
                        patterns::is_chosen(arms, *at, value) != Some(false)
                    }
                    _ => true,
                }
            }
            Usage::Other => true,
        }
    }

    /// Whether a variable that stores the exit status of the command at the state `from` can have been used as `usage`
    /// says. The result is also true if this exit status is not known.
    pub(super) fn is_fit_status(
        &self,
        from: StateIx,
        failed: bool,
        name: &[u8],
        usage: Usage,
    ) -> bool {
        let status = self.exit_status(from, failed);
        status.is_none_or(|status| self.is_fit(usage, name, status.to_string().as_bytes()))
    }

    /// The exit status that the shell has after the command at the state `from` has succeeded or failed; `None` if this
    /// status is not known.
    fn exit_status(&self, from: StateIx, failed: bool) -> Option<u32> {
        let walk = self.walk;
        let state = walk.states.get(from)?;
        let status = |at: usize| walk.children.get(at).and_then(|child| child.status);
        match &walk.graph.nodes.get(state.node)?.what {
            What::Start(_) if failed => status(state.child),
            What::Pipe { members, pipefail } if failed => {
                let last = (state.child + members.len()).checked_sub(1)?;
                let mut all = (state.child..=last).rev();
                match pipefail {
                    Setting::Off => status(last),
                    Setting::On => status(all.find(|at| status(*at) != Some(0))?),
                    Setting::Maybe => None,
                }
            }
            What::Builtin(Builtin::False) => Some(1),
            What::Start(_) | What::Pipe { .. } | What::Builtin(_) if !failed => Some(0),
            What::Status(status) | What::Not(status) => Some(*status),
            _ => None,
        }
    }

    /// Looks for the last setting of a variable.
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
            // The sourced file may have given the variable any value, without starting a child of the shell. In that
            // case the cause is `otherwise`, which is noted here. The search also goes on before the file.
            (What::Wild, _) if self.is_source(node.command) => {
                self.otherwise(otherwise);
                None
            }
            (What::Wild, _) => {
                self.found.insert(EndingCause::Unclear);
                return None;
            }
            (What::Pipe { .. } | What::Start(_), _) if name == PIPE_STATUS => {
                self.blame(from, &node.what);
                return None;
            }
            (What::Assign, Some(command)) => match flow::evaluated(command) {
                // Only the beginning of the variable's name is known, so this may be another variable.
                Some((head, value)) if name.starts_with(head) => {
                    if self.is_fit(usage, &name, value) {
                        self.found.insert(EndingCause::Unclear);
                        return None;
                    }
                    None
                }
                _ => flow::value(command, &name),
            },
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
            // If `$?` is only a part of the value, as in `x=a$?`, the later use of the variable does not show which
            // exit status the command had.
            let is_status = matches!(value.text.as_slice(), b"$?" | b"${?}");
            return Some(Search::Kept {
                name,
                usage: if is_status { usage } else { Usage::Other },
                otherwise,
            });
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
            let is_of_value = matches!(usage, Usage::Status | Usage::Chosen(_));
            return Some(Search::Variable {
                name: source.to_vec(),
                usage: if is_of_value { usage } else { Usage::Other },
                otherwise,
            });
        }
        let is_empty = value.text == builtins::EMPTY_ARRAY;
        let literal = value
            .literal()
            .or(is_empty.then_some(builtins::EMPTY_ARRAY));
        if literal.is_some_and(|value| !self.is_fit(usage, &name, value)) {
            return None;
        }
        if literal.is_none() {
            self.deciding.extend(node.command);
        }
        let is_zero = is_empty || matches!(literal, Some(b"0" | b""));
        match node.guard.filter(|_| !is_zero) {
            Some(after) => {
                // The script may set the variable at several places (`|| failed=1`). Each of these settings may be a
                // reason for the script's end, so the search also goes on before the setting that was found here.
                let before = Search::Variable {
                    name,
                    usage: Usage::Other,
                    otherwise: Otherwise::Nothing,
                };
                self.then(from, before);
                Some(Search::Guard { after, otherwise })
            }
            None if !is_zero && self.follows_a_loop(from) => {
                let before = Search::Variable {
                    name,
                    usage: Usage::Other,
                    otherwise: Otherwise::Nothing,
                };
                self.then(from, before);
                Some(Search::Before(otherwise))
            }
            None => {
                if literal.is_some() {
                    self.note_missed(&name, usage);
                }
                self.otherwise(otherwise);
                None
            }
        }
    }

    /// Whether the shell left a loop of the script right before this state. Between the loop and the state, only nodes
    /// without an effect may lie, and only a few of them are followed.
    fn follows_a_loop(&self, from: StateIx) -> bool {
        let walk = self.walk;
        let mut states = vec![from];
        let mut at = 0;
        while let Some(state) = states.get(at).copied().filter(|_| at < MOST_JOINED) {
            for before in walk.steps_to(state).take(MOST_JOINED) {
                let node = walk.states.get(before).map(|state| state.node);
                match node.and_then(|node| walk.graph.nodes.get(node)) {
                    Some(node) if matches!(node.what, What::Left(_)) => return true,
                    Some(node) if matches!(node.what, What::Join(_)) => states.push(before),
                    _ => {}
                }
            }
            at += 1;
        }
        false
    }

    /// Notes the last failed command whose success would have given the variable a value that contradicts `usage`.
    /// Programs such as `grep -q` are left out, because scripts run them only to get an answer.
    pub(super) fn note_missed(&mut self, name: &[u8], usage: Usage) {
        let walk = self.walk;
        let is_test = !matches!(usage, Usage::Other | Usage::Status);
        let is_new =
            is_test && self.noted.len() < MOST_NOTED && self.noted.insert((name.to_vec(), usage));
        if !is_new {
            return;
        }
        let nodes = &walk.graph.nodes;
        let settings = nodes.iter().filter_map(|node| {
            let command = walk.outline.commands.get(node.command?)?;
            let value = flow::value(command, name)?;
            let is_other = !self.is_fit(usage, name, value.literal()?);
            node.guard
                .filter(|_| is_other && matches!(node.what, What::Assign))
        });
        let settings: HashSet<NodeIx> = settings.collect();
        if settings.is_empty() {
            return;
        }
        let commands = nodes.iter().enumerate().filter(|(_, node)| {
            let is_command = matches!(node.what, What::Start(_) | What::Pipe { .. });
            is_command && self.leads_to(node.ends.ok, &settings)
        });
        let commands: HashSet<NodeIx> = commands.map(|(at, _)| at).collect();
        let states = walk.states.iter().enumerate();
        let tries = states.filter(|(_, state)| commands.contains(&state.node));
        let missed = tries.filter_map(|(at, state)| {
            let node = nodes.get(state.node)?;
            let mut next = walk.next(*state).into_iter();
            let has_failed = next.any(|(next, _)| next == node.ends.failed);
            let failed = self.failed_children(at, &node.what).into_iter().max();
            failed.filter(|child| has_failed && !self.only_asks(*child))
        });
        let last = missed.max();
        self.missed.extend(last);
    }

    /// Whether a path leads from a node to one of the wanted nodes without a command in between. Only a few nodes are
    /// followed.
    fn leads_to(&self, from: NodeIx, wanted: &HashSet<NodeIx>) -> bool {
        let mut nodes = vec![from];
        let mut at = 0;
        while let Some(node) = nodes.get(at).copied().filter(|_| at < MOST_JOINED) {
            if wanted.contains(&node) {
                return true;
            }
            if let Some(What::Join(next)) = self.walk.graph.nodes.get(node).map(|node| &node.what) {
                nodes.extend(next.iter().take(MOST_JOINED));
            }
            at += 1;
        }
        false
    }
}
