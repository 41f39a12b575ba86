//! Searches backward from the end of a shell script to the failed command that caused it.

use std::collections::{BTreeSet, HashSet};

use super::super::builtins::{self, Builtin};
use super::super::flow::{value, NodeIx, What};
use super::super::options::Setting;
use super::super::tree::{Command, CommandIx};
use super::super::words::{Expansion, Word};
use super::search::{EndingCause, Otherwise, Search, StateIx, Usage};
use super::walk::Walk;
use crate::table::utilities::{self, UtilityUse};

/// The exit status that a shell has for a process which SIGPIPE killed (128 + 13).
const PIPE: u32 = 128 + 13;

/// The exit statuses that a shell has not only after a statement such as `exit 2`: 0 after a success, 1 and 2 also
/// after a builtin or an expansion that failed, and 126 and 127 after a program that could not be started.
const OF_BUILTINS: [u32; 5] = [0, 1, 2, 126, 127];

/// The name of the bash variable that holds the exit statuses of all commands of the last pipe.
pub(super) const PIPE_STATUS: &[u8] = b"PIPESTATUS";

pub(super) struct Causes<'a> {
    pub(super) walk: &'a Walk<'a>,
    pub(super) status: u32,
    pub(super) found: BTreeSet<EndingCause>,
    pub(super) seen: HashSet<(StateIx, Search)>,
    /// The possible ends of the script for which a cause was found, or for which the search was stopped at its limit.
    /// Each is a state of the comparison with the recording.
    pub(super) feasible: Vec<StateIx>,
    /// The tests in the script whose success decided that a statement such as `exit 1` was executed, and the
    /// assignments (`n=$(count x)`) of unknown values that such tests use.
    pub(super) deciding: BTreeSet<CommandIx>,
    /// The states of the script from which the backward search still has to continue, each with the fact to search for.
    pub(super) queue: Vec<(StateIx, Search)>,
    pub(super) budget: usize,
    /// Failed child processes whose success would have changed a variable, so that the script would not have ended:
    /// `get` in `if get; then done=1; fi; [ -n "$done" ] || exit 1`.
    pub(super) missed: BTreeSet<usize>,
    /// The tested variables that the search has handled, each with how the script used the variable's value. For these
    /// variables, the search has already looked for commands whose success would have changed the value.
    pub(super) noted: HashSet<(Vec<u8>, Usage)>,
    /// Whether the script, between the failure and its end, also tested something other than the success of the failed
    /// command. A script with such a test may tolerate other failures, too.
    pub(super) selects: bool,
    /// The possible causes of the script's end that are in sourced files whose text is not known. These causes are only
    /// used if the known text does not clearly show another cause.
    pub(super) in_unknown_files: BTreeSet<EndingCause>,
    /// The possible ends of the script for which the search found a cause in the script itself or in a sourced file
    /// whose text is known.
    pub(super) known_ends: Vec<StateIx>,
    /// Whether the script has a statement such as `exit 64` that gives the exit status with which the shell ended, and
    /// no shell builtin fails with this status.
    pub(super) is_written: bool,
}

impl Causes<'_> {
    pub(super) fn of_end(&mut self, end: StateIx) {
        let what = self.what(end);
        let search = match what {
            Some(What::EndedByTrap) => Search::TrapStatus,
            _ => Search::BeforeTraps,
        };
        let (found, in_files) = (self.found.len(), self.in_unknown_files.len());
        self.back(end, search);
        let is_known = self.found.len() > found;
        if is_known {
            self.known_ends.push(end);
        }
        if is_known || self.in_unknown_files.len() > in_files || self.budget == 0 {
            self.feasible.push(end);
        }
    }

    fn what(&self, at: StateIx) -> Option<&What> {
        let state = self.walk.states.get(at)?;
        Some(&self.walk.graph.nodes.get(state.node)?.what)
    }

    /// Searches backward for causes along all paths through the script that lead to this state (a node of the script's
    /// graph and the next child).
    fn back(&mut self, from: StateIx, search: Search) {
        self.queue.push((from, search));
        while let Some((at, search)) = self.queue.pop() {
            if self.budget == 0 {
                return;
            }
            let steps: Vec<StateIx> = self.walk.steps_to(at).collect();
            if steps.is_empty() {
                self.at_the_start(&search);
            }
            for from in steps {
                self.budget = self.budget.saturating_sub(1);
                if let Some(next) = self.step(from, at, search.clone()) {
                    self.then(from, next);
                }
            }
        }
    }

    pub(super) fn then(&mut self, from: StateIx, search: Search) {
        if self.seen.insert((from, search.clone())) {
            self.queue.push((from, search));
        }
    }

    fn at_the_start(&mut self, search: &Search) {
        match search {
            _ if self.walk.is_cut => {
                self.found.insert(EndingCause::Unclear);
            }
            Search::Jobs | Search::LastJob => {}
            // The search has reached the beginning of the script without finding a failure, so this path shows no
            // cause.
            Search::Status | Search::TrapStatus | Search::BeforeTraps => {}
            Search::Earlier(child) => self.by_a_trap(*child),
            Search::Guard { otherwise, .. }
            | Search::Tested(otherwise)
            | Search::Before(otherwise)
            | Search::Try(_, _, otherwise) => self.otherwise(*otherwise),
            Search::Variable {
                name,
                usage,
                otherwise,
            } => {
                // A variable that the script sets somewhere is assumed to be empty before the script first sets it. Any
                // other variable may have any value from the environment.
                let mut commands = self.walk.outline.commands.iter();
                let is_own = commands.any(|command| value(command, name).is_some());
                if !is_own || self.is_fit(*usage, name, b"") {
                    self.note_missed(name, *usage);
                    self.otherwise(*otherwise);
                }
            }
            Search::Kept {
                name,
                usage,
                otherwise,
            } => {
                if self.is_fit(*usage, name, b"0") {
                    self.otherwise(*otherwise);
                }
            }
        }
    }

    fn by_a_trap(&mut self, child: Option<usize>) {
        self.found
            .insert(child.map_or(EndingCause::Unclear, EndingCause::Child));
    }

    pub(super) fn otherwise(&mut self, otherwise: Otherwise) {
        let cause = match otherwise {
            Otherwise::Nothing => return,
            Otherwise::Unclear => EndingCause::Unclear,
            Otherwise::Statement(command) | Otherwise::Test(command) | Otherwise::File(command) => {
                EndingCause::Statement(command)
            }
            Otherwise::Question(child) => EndingCause::Child(child),
            Otherwise::Condition { test, at, after } => {
                self.selects = true;
                let otherwise = if matches!(self.what(at), Some(What::Value(_))) {
                    Otherwise::Statement(test)
                } else {
                    Otherwise::Test(test)
                };
                return self.then(at, Search::Guard { after, otherwise });
            }
        };
        self.found.insert(cause);
    }

    /// Examines one step of the backward search, from the state `to` of the script back to the state `from` before it.
    /// Returns what to search for in the steps before `from`, or `None` if the search ends here.
    fn step(&mut self, from: StateIx, to: StateIx, search: Search) -> Option<Search> {
        let state = self.walk.states.get(from)?;
        let target = self.walk.states.get(to)?;
        let node = self.walk.graph.nodes.get(state.node)?;
        let failed = target.node == node.ends.failed && node.ends.failed != node.ends.ok;
        match search {
            Search::BeforeTraps => {
                if matches!(node.what, What::End) {
                    Some(Search::Status)
                } else {
                    Some(Search::BeforeTraps)
                }
            }
            Search::Earlier(child) => match &node.what {
                What::End => Some(Search::Earlier(child)),
                _ if node.is_of_trap => Some(Search::Earlier(child)),
                _ => self.status_before_traps(from, failed, child),
            },
            Search::TrapStatus => match &node.what {
                What::Join(_) | What::Assign | What::Left(_) => Some(Search::TrapStatus),
                What::End => Some(Search::Status),
                What::Start(_) | What::Pipe { .. } if failed => {
                    let child = self.failed_children(from, &node.what);
                    let child = child.into_iter().find(|at| self.has_status(*at));
                    Some(Search::Earlier(Some(child?)))
                }
                What::Status(status) => (*status == self.status).then_some(Search::Earlier(None)),
                _ => Some(Search::Earlier(None)),
            },
            Search::Status => self.status(from, failed, node.command, node.guard),
            Search::Guard { after, otherwise } => {
                if target.node == after {
                    self.tested(from, to, otherwise)
                } else if state.node == after {
                    Some(Search::Tested(otherwise))
                } else {
                    Some(Search::Guard { after, otherwise })
                }
            }
            Search::LastJob => match node.what {
                What::Beside(_) => {
                    self.blame(from, &node.what);
                    None
                }
                What::Wild => {
                    self.found.insert(EndingCause::Unclear);
                    None
                }
                _ => Some(Search::LastJob),
            },
            Search::Jobs => {
                match node.what {
                    What::Beside(_) => self.blame(from, &node.what),
                    What::Wild => {
                        self.found.insert(EndingCause::Unclear);
                        return None;
                    }
                    _ => {}
                }
                Some(Search::Jobs)
            }
            Search::Tested(otherwise) => self.tested(from, to, otherwise),
            Search::Kept {
                name,
                usage,
                otherwise,
            } => match node.what {
                What::Join(_) | What::Assign | What::End | What::Left(_) => Some(Search::Kept {
                    name,
                    usage,
                    otherwise,
                }),
                _ if !self.is_fit_status(from, failed, &name, usage) => None,
                _ => self.tested(from, to, otherwise),
            },
            Search::Variable {
                name,
                usage,
                otherwise,
            } => self.variable(from, name, usage, otherwise),
            Search::Before(otherwise) => match node.what {
                What::Join(_) | What::Assign | What::Case(_) => Some(Search::Before(otherwise)),
                What::Status(_) if node.command.is_none() => Some(Search::Before(otherwise)),
                What::Left(start) => Some(Search::Try(start, state.node, otherwise)),
                _ => {
                    self.otherwise(otherwise);
                    None
                }
            },
            Search::Try(start, left, otherwise) => {
                let is_inside = (start..=left).contains(&state.node);
                match &node.what {
                    _ if !is_inside => self.otherwise(otherwise),
                    What::Start(_) | What::Pipe { .. } if failed => self.blame(from, &node.what),
                    _ => return Some(Search::Try(start, left, otherwise)),
                }
                None
            }
        }
    }

    fn has_status(&self, child: usize) -> bool {
        let child = self.walk.children.get(child);
        let status = child.map(|child| child.status);
        status.is_some_and(|status| status.is_none_or(|status| status == self.status))
    }

    /// The children that a command or pipe started, and that may have failed.
    pub(super) fn failed_children(&self, at: StateIx, what: &What) -> Vec<usize> {
        let Some(state) = self.walk.states.get(at) else {
            return Vec::new();
        };
        let count = match what {
            What::Pipe { members, .. } => members.len(),
            _ => 1,
        };
        let all = state.child..state.child + count;
        let failed: Vec<usize> = all
            .filter(|at| {
                let child = self.walk.children.get(*at);
                child.is_some_and(|child| child.status != Some(0))
            })
            .collect();
        let is_closed = |at: &usize| {
            let child = self.walk.children.get(*at);
            child.is_some_and(|child| child.status == Some(PIPE))
        };
        // SIGPIPE ends a command whose reader has read enough. Such a command only counts if nothing else failed.
        let others: Vec<usize> = failed.iter().copied().filter(|at| !is_closed(at)).collect();
        if others.is_empty() {
            failed
        } else {
            others
        }
    }

    /// Notes the failed children of the command or pipe in this state as possible causes of the
    /// script's end.
    pub(super) fn blame(&mut self, at: StateIx, what: &What) {
        for child in self.failed_children(at, what) {
            self.found.insert(EndingCause::Child(child));
        }
    }

    /// Whether the exit status of this command or pipe in the script can be the status with which
    /// the shell ended.
    fn passes(&self, at: StateIx, what: &What) -> bool {
        let Some(state) = self.walk.states.get(at) else {
            return false;
        };
        match what {
            What::Pipe { members, pipefail } => {
                let last = state.child + members.len() - 1;
                let mut all = state.child..=last;
                self.has_status(last)
                    || *pipefail != Setting::Off && all.any(|at| self.has_status(at))
            }
            _ => self.has_status(state.child),
        }
    }

    fn status(
        &mut self,
        from: StateIx,
        failed: bool,
        command: Option<CommandIx>,
        guard: Option<NodeIx>,
    ) -> Option<Search> {
        let walk = self.walk;
        let state = walk.states.get(from)?;
        let what = &walk.graph.nodes.get(state.node)?.what;
        match what {
            What::Join(_) | What::Assign | What::End | What::Left(_) | What::Case(_) => {
                return Some(Search::Status);
            }
            What::Start(_) | What::Pipe { .. } => {
                if failed && self.passes(from, what) {
                    self.blame(from, what);
                }
            }
            What::Builtin(builtin) => {
                if failed && builtin.fails_with(self.status) {
                    return self.by_a_builtin(from, *builtin, failed, Otherwise::Unclear);
                }
            }
            What::NotStarted => {
                let opens = self.command(command).is_some_and(|command| command.opens);
                let is_fit = match self.status {
                    126 | 127 => true,
                    1 | 2 => opens,
                    _ => false,
                };
                if is_fit {
                    self.found.extend(command.map(EndingCause::Statement));
                }
            }
            What::Unset => {
                if matches!(self.status, 1 | 2 | 127) {
                    self.found.extend(command.map(EndingCause::Statement));
                }
            }
            What::Status(status) => {
                if *status == self.status {
                    self.is_written |= command.is_some() && !OF_BUILTINS.contains(status);
                    return self.by_a_statement(command, guard, Otherwise::Unclear);
                }
            }
            What::Not(status) => {
                if *status == self.status {
                    self.found.insert(EndingCause::Unclear);
                }
            }
            What::Value(Some(name)) => {
                // In `die() { exit "$1"; }`, the script does not show why the exit status has this value. But the
                // condition under which the script called `die` may show why the script ended.
                let condition = command.zip(guard);
                let otherwise = condition.map(|(test, after)| Otherwise::Condition {
                    test,
                    at: from,
                    after,
                });
                return Some(Search::Variable {
                    name: name.clone(),
                    usage: Usage::Status,
                    otherwise: otherwise.unwrap_or(Otherwise::Unclear),
                });
            }
            What::Wild => self.by_the_unknown(from, command),
            What::Value(None) => {
                self.found.insert(EndingCause::Unclear);
            }
            What::Beside(_) | What::Ended | What::EndedByTrap => {}
        }
        None
    }

    fn command(&self, ix: Option<CommandIx>) -> Option<&Command> {
        self.walk.outline.commands.get(ix?)
    }

    pub(super) fn is_source(&self, command: Option<CommandIx>) -> bool {
        let command = self.command(command);
        let first = command.and_then(|command| command.words.first()?.literal());
        first.is_some_and(builtins::is_source)
    }

    /// Notes that a command whose effect is not known, such as `eval`, ended the script. The
    /// command is named only if it started no process; otherwise the cause is unclear.
    fn by_the_unknown(&mut self, at: StateIx, command: Option<CommandIx>) {
        let walk = self.walk;
        let node = walk.states.get(at).map(|state| state.node);
        let is_same = |from: StateIx| walk.states.get(from).map(|state| state.node) == node;
        let cause = match command {
            Some(command) if !walk.steps_to(at).any(is_same) => EndingCause::Statement(command),
            _ => EndingCause::Unclear,
        };
        if self.is_source(command) {
            self.in_unknown_files.insert(cause);
        } else {
            self.found.insert(cause);
        }
    }

    /// Continues the backward search at the condition of a statement such as `exit 1`, after it was
    /// found that the statement set the script's exit status.
    fn by_a_statement(
        &mut self,
        statement: Option<CommandIx>,
        guard: Option<NodeIx>,
        otherwise: Otherwise,
    ) -> Option<Search> {
        let otherwise = statement.map_or(otherwise, Otherwise::Statement);
        Some(match guard {
            Some(after) => Search::Guard { after, otherwise },
            None => Search::Before(otherwise),
        })
    }

    /// Continues the backward search after a shell builtin failed and ended the script, or decided
    /// that a statement was executed.
    fn by_a_builtin(
        &mut self,
        at: StateIx,
        builtin: Builtin,
        failed: bool,
        otherwise: Otherwise,
    ) -> Option<Search> {
        let walk = self.walk;
        let state = walk.states.get(at)?;
        let node = walk.graph.nodes.get(state.node)?;
        let (command, guard) = (node.command, node.guard);
        let test = command.and_then(|ix| Some((ix, walk.outline.commands.get(ix)?)));
        let waits = |command: &Command| {
            let first = command.words.first().and_then(Word::literal);
            first == Some(b"wait")
        };
        if let Some((_, command)) = test.filter(|(_, command)| waits(command)) {
            return Some(self.by_wait(command));
        }
        let Some((ix, test)) = test.filter(|_| builtin != Builtin::Any) else {
            self.found.insert(EndingCause::Unclear);
            return None;
        };
        let named = match otherwise {
            Otherwise::Test(_)
            | Otherwise::File(_)
            | Otherwise::Condition { .. }
            | Otherwise::Nothing => otherwise,
            _ => Otherwise::Test(ix),
        };
        let first = test.words.first().and_then(Word::literal);
        if !first.is_some_and(builtins::is_test) {
            self.otherwise(named);
            return None;
        }
        if test.words.iter().any(Word::has_status) {
            return Some(Search::Tested(named));
        }
        let is_expanded = |word: &&Word| word.expansion != Expansion::None;
        let mut expanded = test.words.iter().filter(is_expanded);
        let variable = expanded
            .next()
            .and_then(|word| word.variable().or(word.counted()));
        if let (Some(name), None) = (variable, expanded.next()) {
            return Some(Search::Variable {
                name: name.to_vec(),
                usage: if failed {
                    Usage::Failure(ix)
                } else {
                    Usage::Success(ix)
                },
                otherwise: match (named, guard) {
                    (Otherwise::Test(test), Some(after)) => {
                        Otherwise::Condition { test, at, after }
                    }
                    _ => named,
                },
            });
        }
        let Some(after) = guard else {
            self.otherwise(named);
            return None;
        };
        self.selects = true;
        let otherwise = match named {
            // In `if ! diff a b; then [ -e a.allowed ] || exit 1; fi`, the test of a file decides whether the failure
            // of `diff` counts.
            Otherwise::Test(test_of_file) if !is_comparison(test) => Otherwise::File(test_of_file),
            named => named,
        };
        Some(Search::Guard { after, otherwise })
    }

    /// Whether a child of the shell runs a program, such as `grep -q`, that scripts run to get an
    /// answer from its exit status.
    fn is_question(&self, child: usize) -> bool {
        self.has_use(child, UtilityUse::Question)
    }

    /// Whether the child runs a program that scripts only run to get an answer from its exit status (`grep -q`), and
    /// not one that compares files.
    pub(super) fn only_asks(&self, child: usize) -> bool {
        self.is_question(child) && !self.has_use(child, UtilityUse::Compare)
    }

    fn has_use(&self, child: usize, which: UtilityUse) -> bool {
        let args = self
            .walk
            .children
            .get(child)
            .and_then(|child| child.args.as_ref());
        let program = args.and_then(|args| args.first());
        let name = program.and_then(|program| program.rsplit(|byte| *byte == b'/').next());
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        name.is_some_and(|name| utilities::uses(name).contains(&which))
    }

    /// Searches for the command whose success or failure the script tested, on the way from the state `from` to the
    /// next state `to` of the script. Returns what to search for next, or `None` if the search ends here.
    fn tested(&mut self, from: StateIx, to: StateIx, otherwise: Otherwise) -> Option<Search> {
        let walk = self.walk;
        let state = walk.states.get(from)?;
        let target = walk.states.get(to)?;
        let node = walk.graph.nodes.get(state.node)?;
        let failed = target.node == node.ends.failed && node.ends.failed != node.ends.ok;
        let (command, guard) = (node.command, node.guard);
        match &node.what {
            What::Join(_) | What::Assign | What::Not(_) | What::End | What::Left(_) => {
                return Some(Search::Tested(otherwise));
            }
            // In `if a; …; elif grep -q x known; …`, `grep` only answers a question about the failure of `a`. So the
            // search goes on with the failure of `a`.
            What::Start(_) if failed && self.is_question(state.child) && guard.is_some() => {
                self.selects = true;
                let otherwise = Otherwise::Question(state.child);
                return guard.map(|after| Search::Guard { after, otherwise });
            }
            What::Start(_) | What::Pipe { .. } if failed => {
                let of_file = matches!(otherwise, Otherwise::File(_));
                let failed = self.failed_children(from, &node.what);
                if of_file && failed.iter().all(|at| self.only_asks(*at)) {
                    self.otherwise(otherwise);
                } else {
                    self.blame(from, &node.what);
                }
            }
            What::Start(_) => {
                self.deciding.extend(command);
                self.otherwise(otherwise);
            }
            What::Builtin(builtin) => {
                return self.by_a_builtin(from, *builtin, failed, otherwise);
            }
            What::NotStarted | What::Unset => {
                self.otherwise(command.map_or(otherwise, Otherwise::Statement));
            }
            What::Status(status) if *status != 0 && command.is_some() => {
                return self.by_a_statement(command, guard, otherwise);
            }
            What::Value(Some(name)) => {
                return Some(Search::Variable {
                    name: name.clone(),
                    usage: Usage::Other,
                    otherwise,
                });
            }
            What::Case(choice) => {
                return Some(Search::Variable {
                    name: choice.variable.clone(),
                    usage: Usage::Chosen(state.node),
                    otherwise,
                });
            }
            What::Value(None) | What::Wild => {
                self.found.insert(EndingCause::Unclear);
            }
            _ => self.otherwise(otherwise),
        }
        None
    }

    /// Continues the backward search after the builtin `wait` failed, with the background job for which the shell
    /// waited.
    fn by_wait(&self, command: &Command) -> Search {
        let [_, job] = command.words.as_slice() else {
            return Search::Jobs;
        };
        if job.text == b"$!" {
            return Search::LastJob;
        }
        let is_job = |name: &[u8]| {
            let mut commands = self.walk.outline.commands.iter();
            commands.any(|command| value(command, name).is_some_and(|value| value.text == b"$!"))
        };
        // An element of an array may be the pid of any background job, so all jobs are searched.
        let is_element = job.text.contains(&b'[');
        match job.variable().filter(|name| !is_element && is_job(name)) {
            Some(name) => Search::Variable {
                name: name.to_vec(),
                usage: Usage::Other,
                otherwise: Otherwise::Unclear,
            },
            None => Search::Jobs,
        }
    }

    /// Searches for a failure that occurred before the traps of the shell ran, and continues at its
    /// cause.
    fn status_before_traps(
        &mut self,
        from: StateIx,
        failed: bool,
        child: Option<usize>,
    ) -> Option<Search> {
        let walk = self.walk;
        let state = walk.states.get(from)?;
        let node = walk.graph.nodes.get(state.node)?;
        let what = &node.what;
        match what {
            What::Join(_) | What::Assign | What::Left(_) | What::Case(_) => {
                return Some(Search::Earlier(child));
            }
            What::Start(_) | What::Pipe { .. } if failed => self.blame(from, what),
            What::Start(_) | What::Pipe { .. } | What::Status(0) | What::Not(0) => {
                self.by_a_trap(child);
            }
            What::Builtin(_) if !failed => self.by_a_trap(child),
            What::Builtin(builtin) => {
                let otherwise = Otherwise::Unclear;
                return self.by_a_builtin(from, *builtin, failed, otherwise);
            }
            What::Status(_) => {
                return self.by_a_statement(node.command, node.guard, Otherwise::Unclear);
            }
            _ => {
                self.found.insert(EndingCause::Unclear);
            }
        }
        None
    }
}

/// Whether a test command in a script compares numbers or texts, and not properties of files.
fn is_comparison(test: &Command) -> bool {
    let is_operator = |word: &Word| {
        matches!(
            word.text.as_slice(),
            b"-lt"
                | b"-le"
                | b"-gt"
                | b"-ge"
                | b"-eq"
                | b"-ne"
                | b"="
                | b"=="
                | b"!="
                | b"-n"
                | b"-z"
                | b"(("
        )
    };
    test.words.iter().any(is_operator)
}
