//! Adds simple commands of a shell script to the graph of the paths through it: programs,
//! functions, builtins.

use std::rc::Rc;

use super::super::builtins::{self, Builtin};
use super::super::options::Setting;
use super::super::tree::{Command, CommandIx, Function, Substitution, Tree};
use super::super::words::{Expansion, Word};
use super::branches::merge;
use super::{
    command_of, evaluated, number_of, Builder, Call, Ends, Member, NodeIx, Options, What, CALLS,
};

impl<'a> Builder<'a> {
    pub(super) fn command(&self, ix: CommandIx) -> Option<&'a Command> {
        self.outline.commands.get(ix)
    }

    pub(super) fn member(&self, tree: &Rc<Tree>) -> Member {
        self.member_with(tree, self.options)
    }

    pub(super) fn member_with(&self, tree: &Rc<Tree>, options: Options) -> Member {
        if let Tree::Simple(ix) = **tree {
            if self
                .command(ix)
                .is_some_and(|command| self.is_program(command))
            {
                return Member::Program(ix, None);
            }
        }
        Member::Forked(tree.clone(), options)
    }

    /// Whether a command of a script certainly starts a program: its name is known and belongs to
    /// no builtin or function of the script.
    pub(super) fn is_program(&self, command: &Command) -> bool {
        let first = command.words.first().and_then(Word::literal);
        first.is_some_and(|name| !builtins::is_builtin(name) && self.function(name).is_none())
    }

    /// Finds the first function of the script with this name. The second value is whether it is the
    /// only one.
    pub(super) fn function(&self, name: &[u8]) -> Option<(&'a Function, bool)> {
        let mut all = self.outline.functions.iter();
        let first = all.find(|function| function.name == name)?;
        Some((first, all.all(|function| function.name != name)))
    }

    /// Adds, to the script's graph, the commands that the shell runs to expand the words of a command, such as `$(…)`.
    /// Returns the node after these commands, and the nodes after the success and the failure of the last of these
    /// commands for which the shell waits; `None` in place of the latter if there is no such command.
    pub(super) fn substitutions(&mut self, ix: CommandIx, from: NodeIx) -> (NodeIx, Option<Ends>) {
        let Some(command) = self.command(ix) else {
            return (from, None);
        };
        let (mut at, mut last) = (from, None);
        for Substitution {
            body,
            is_beside,
            may_be_left_out,
        } in &command.substitutions
        {
            let mut options = self.options;
            if options.is_bash {
                options.errexit = Setting::Off;
            }
            let member = self.member_with(body, options);
            let command = command_of(body);
            let what = if *is_beside {
                What::Beside(member)
            } else {
                What::Start(member)
            };
            let ends = self.action(at, what, command);
            let next = self.join(ends);
            // bash reads the file of `$(< file)` itself, so this substitution may start no process.
            let reads = command.and_then(|ix| self.command(ix));
            let reads = reads.is_some_and(|command| command.words.is_empty());
            if *may_be_left_out || reads {
                let without = self.status(at, 0);
                self.edge(without.ok, ends.ok);
            }
            at = next;
            last = Some(ends).filter(|_| !is_beside).or(last);
        }
        (at, last)
    }

    pub(super) fn simple(&mut self, ix: CommandIx, from: NodeIx) -> Ends {
        let Some(command) = self.command(ix) else {
            return self.status(from, 0);
        };
        let (mut at, last) = self.substitutions(ix, from);
        let values = command.assignments.iter().map(|set| &set.value);
        let mut variables = command.words.iter().chain(values).flat_map(Word::variables);
        let may_be_unset =
            self.options.nounset != Setting::Off && variables.any(|name| !self.set.contains(name));
        // All later paths pass this command. With `set -u`, the shell would have ended here if a variable of the
        // command were not set. So these variables count as set from now on.
        if self.guard.is_none() && self.loops.is_empty() && self.returns.is_empty() {
            let values = command.assignments.iter().map(|set| &set.value);
            let words = command.words.iter().chain(values);
            self.set.extend(words.flat_map(Word::variables));
        }
        if command.insists || may_be_unset {
            let unset = self.action(at, What::Unset, Some(ix));
            self.edge(unset.failed, self.end);
        }
        if command.words.is_empty() {
            return self.assignments(ix, command, at, last);
        }
        if !command.assignments.is_empty() {
            at = self.action(at, What::Assign, Some(ix)).ok;
        }
        let words = self.resolved(&command.words);
        let is_changed = words.is_some();
        let words = words.unwrap_or_else(|| command.words.clone());
        self.replaced += words.len();
        let mut rest = words.as_slice();
        let mut skips_functions = false;
        while let Some((first, after)) = rest.split_first() {
            let asks = after
                .first()
                .is_some_and(|word| word.text.starts_with(b"-"));
            if matches!(first.literal(), Some(b"command" | b"builtin")) && !asks {
                rest = after;
                skips_functions = true;
            } else {
                break;
            }
        }
        let Some((first, arguments)) = rest.split_first() else {
            return self.status(at, 0);
        };
        let name = match first.literal() {
            Some(name) => name,
            // A function or builtin has no directory in its name, so a path such as `$dir/tool` is a program.
            None if first.is_path() => &first.text,
            None => return self.unknown_command(ix, command, at, skips_functions),
        };
        let function = self.function(name).filter(|_| !skips_functions);
        if let Some((function, is_only)) = function {
            let ends = self.call(function, is_only, arguments, ix, at);
            let ends = self.opened(ix, command, at, ends);
            return self.fatal(ends);
        }
        if builtins::is_builtin(name) {
            let ends = self.builtin(name, arguments, ix, at);
            let ends = self.opened(ix, command, at, ends);
            return self.fatal(ends);
        }
        let words = (is_changed || skips_functions).then(|| Rc::new(rest.to_vec()));
        let is_given = command
            .words
            .first()
            .is_some_and(|word| word.literal().is_none());
        let call = self.calls.last().filter(|_| is_given);
        let place = call.map_or(ix, |call| call.command);
        let ends = self.action(at, What::Start(Member::Program(ix, words)), Some(place));
        let not = self.action(at, What::NotStarted, Some(ix));
        self.edge(not.failed, ends.failed);
        self.fatal(ends)
    }

    /// Adds, to the script's graph, the path on which the command fails because a file of the command's redirections
    /// cannot be opened.
    pub(super) fn opened(
        &mut self,
        ix: CommandIx,
        command: &Command,
        at: NodeIx,
        ends: Ends,
    ) -> Ends {
        if command.opens {
            let not = self.action(at, What::NotStarted, Some(ix));
            self.edge(not.failed, ends.failed);
        }
        ends
    }

    pub(super) fn assignments(
        &mut self,
        ix: CommandIx,
        command: &Command,
        at: NodeIx,
        last: Option<Ends>,
    ) -> Ends {
        if command.assignments.is_empty() {
            let ends = self.status(at, 0);
            let ends = self.opened(ix, command, at, ends);
            return self.fatal(ends);
        }
        let Some(last) = last else {
            // The shell expands the assigned values before the status changes, so `$?` is still that of the command
            // before.
            let set = self.action(at, What::Assign, Some(ix));
            return self.status(set.ok, 0);
        };
        let ends = Ends {
            ok: self.action(last.ok, What::Assign, Some(ix)).ok,
            failed: self.action(last.failed, What::Assign, Some(ix)).ok,
        };
        self.fatal(ends)
    }

    /// Adds, to the script's graph, a command whose name results from an expansion (`$CC x.c`). The command may be a
    /// program, a builtin or a function.
    pub(super) fn unknown_command(
        &mut self,
        ix: CommandIx,
        command: &Command,
        at: NodeIx,
        skips_functions: bool,
    ) -> Ends {
        let ends = self.action(at, What::Start(Member::Program(ix, None)), Some(ix));
        let builtin = self.action(at, What::Builtin(Builtin::Any), Some(ix));
        self.edge(builtin.ok, ends.ok);
        self.edge(builtin.failed, ends.failed);
        if !self.outline.functions.is_empty() && !skips_functions {
            let wild = self.action(at, What::Wild, Some(ix));
            self.edge(wild.ok, ends.ok);
            self.edge(wild.failed, ends.failed);
            self.edge(wild.failed, self.end);
        }
        let ends = self.opened(ix, command, at, ends);
        self.fatal(ends)
    }

    /// Replaces `$1`, `$@` and the like in a command's words by the arguments of the shell function
    /// being called. Returns `None` if the arguments are not known or nothing was replaced.
    pub(super) fn resolved(&mut self, words: &[Word]) -> Option<Vec<Word>> {
        let arguments = self.calls.last()?.arguments.as_ref()?;
        let number = |word: &Word| {
            let name = word.variable()?;
            let number = std::str::from_utf8(name).ok()?.parse::<usize>().ok()?;
            (number > 0).then(|| number - 1)
        };
        let is_replaced = |word: &Word| {
            let is_known = |at| arguments.get(at).is_some();
            word.expansion == Expansion::Arguments && word.text.len() <= b"${@}".len()
                || number(word).is_some_and(is_known)
        };
        if !words.iter().any(is_replaced) {
            return None;
        }
        let mut all = Vec::new();
        for word in words {
            let place = number(word);
            match place.and_then(|place| arguments.get(place)) {
                Some(argument) if is_replaced(word) => all.push(argument.clone()),
                _ if is_replaced(word) => all.extend(arguments.iter().cloned()),
                _ => all.push(word.clone()),
            }
        }
        self.replaced += all.iter().map(|word| word.text.len() + 1).sum::<usize>();
        Some(all)
    }

    pub(super) fn call(
        &mut self,
        function: &'a Function,
        is_only: bool,
        arguments: &[Word],
        ix: CommandIx,
        at: NodeIx,
    ) -> Ends {
        let is_recursive = self.calls.iter().any(|call| call.name == function.name);
        if !is_only || is_recursive || self.returns.len() >= CALLS || self.is_full() {
            let ends = self.action(at, What::Wild, Some(ix));
            self.edge(ends.failed, self.end);
            return ends;
        }
        let is_many = |word: &Word| word.is_many();
        let ends = Ends {
            ok: self.label(),
            failed: self.label(),
        };
        let guard = self.guard.take();
        self.calls.push(Call {
            name: &function.name,
            command: ix,
            guard,
            arguments: (!arguments.iter().any(is_many)).then(|| arguments.to_vec()),
        });
        let loops = std::mem::take(&mut self.loops);
        self.until_return(&function.body, at, ends);
        self.loops = loops;
        self.calls.pop();
        self.guard = guard;
        ends
    }

    /// Adds the body of a function or sourced file to the script's graph. After its end and after
    /// `return` the paths continue at `ends`.
    fn until_return(&mut self, tree: &'a Tree, at: NodeIx, ends: Ends) {
        self.returns.push(ends);
        let body = self.build(tree, at);
        self.returns.pop();
        self.edge(body.ok, ends.ok);
        self.edge(body.failed, ends.failed);
    }

    /// A command such as `. "$file"` executes one of several files in the script's own shell. Adds the commands of
    /// each of these files as a possible path; `None` if none of the files is known, or if calls are nested too deep.
    fn sourced(&mut self, ix: CommandIx, at: NodeIx) -> Option<Ends> {
        let mut bodies = self.outline.sourced(ix).peekable();
        bodies.peek()?;
        if self.returns.len() >= CALLS || self.is_full() {
            return None;
        }
        let ends = Ends {
            ok: self.label(),
            failed: self.label(),
        };
        let options = self.options;
        let mut merged: Option<Options> = None;
        for body in bodies {
            self.options = options;
            self.until_return(body, at, ends);
            merge(&mut merged, self.options);
        }
        self.options = merged.unwrap_or(options);
        Some(ends)
    }

    /// Creates new nodes in the script's graph to which no path leads. They stand after a command
    /// that never ends, such as `exit`.
    pub(super) fn nowhere(&mut self) -> Ends {
        Ends {
            ok: self.label(),
            failed: self.label(),
        }
    }

    pub(super) fn builtin(
        &mut self,
        name: &[u8],
        arguments: &[Word],
        ix: CommandIx,
        at: NodeIx,
    ) -> Ends {
        match name {
            b"exit" => {
                // In a trap, `exit 4` changes the shell's exit status. `exit` without a number keeps the status, and
                // so does `exit $x` if the variable holds the status from before the trap.
                let has_number = arguments
                    .first()
                    .is_some_and(|word| number_of(word).is_some());
                let end = match (self.is_of_trap, has_number) {
                    (false, _) => self.end,
                    (true, true) => self.ended_by_trap,
                    (true, false) => self.ended,
                };
                let guard = self.guard;
                let mut calls = self.calls.iter().rev();
                self.guard = guard.or_else(|| calls.find_map(|call| call.guard));
                let ends = Ends {
                    ok: end,
                    failed: end,
                };
                let ends = self.gives(arguments, ix, at, ends);
                self.guard = guard;
                ends
            }
            b"return" => {
                let end = self.end;
                let ends = self.returns.last().copied().unwrap_or(Ends {
                    ok: end,
                    failed: end,
                });
                self.gives(arguments, ix, at, ends)
            }
            b"break" | b"continue" => {
                let number = arguments.first().and_then(number_of).unwrap_or(1).max(1);
                let place = self.loops.len().checked_sub(number as usize);
                let target = place.and_then(|place| self.loops.get(place)).copied();
                let Some((leave, again)) = target else {
                    return self.status(at, 0);
                };
                let from = self.status(at, 0);
                self.edge(from.ok, if name == b"break" { leave } else { again });
                self.nowhere()
            }
            b"exec" => {
                if arguments.is_empty() {
                    return self.status(at, 0);
                }
                let not = self.action(at, What::NotStarted, Some(ix));
                self.edge(not.failed, self.end);
                self.nowhere()
            }
            b"set" => {
                self.options.set(arguments);
                self.status(at, 0)
            }
            b"shift" => {
                let number = arguments.first().map_or(Some(1), number_of);
                let is_in_a_loop = !self.loops.is_empty();
                if let Some(call) = self.calls.last_mut() {
                    let known = number.filter(|_| !is_in_a_loop);
                    let all = call.arguments.take();
                    call.arguments =
                        known.and_then(|number| Some(all?.get(number as usize..)?.to_vec()));
                }
                self.status(at, 0)
            }
            b"eval"
                if self
                    .command(ix)
                    .is_some_and(|command| evaluated(command).is_some()) =>
            {
                let set = self.action(at, What::Assign, Some(ix));
                self.status(set.ok, 0)
            }
            _ if name == b"eval" || builtins::is_source(name) => {
                if let Some(ends) = self.sourced(ix, at) {
                    return ends;
                }
                if name != b"eval" {
                    self.options.errexit.doubt();
                    self.options.pipefail.doubt();
                }
                let ends = self.action(at, What::Wild, Some(ix));
                self.edge(ends.failed, self.end);
                ends
            }
            _ if builtins::assigns(name) => {
                let set = self.action(at, What::Assign, Some(ix));
                self.status(set.ok, 0)
            }
            _ => match builtins::of(name, arguments) {
                Builtin::Succeeds => self.status(at, 0),
                builtin => self.action(at, What::Builtin(builtin), Some(ix)),
            },
        }
    }

    /// Adds the effect of `exit` or `return` on the exit status to the script's graph. The paths
    /// continue at `ends`.
    pub(super) fn gives(
        &mut self,
        arguments: &[Word],
        ix: CommandIx,
        at: NodeIx,
        ends: Ends,
    ) -> Ends {
        let argument = arguments.first();
        let is_same = argument.is_none_or(|word| word.text == b"$?" && word.has_status());
        if is_same {
            self.edge(at, ends.ok);
            self.edge(at, ends.failed);
        } else if let Some(status) = argument.and_then(number_of) {
            let given = self.action(at, What::Status(status % 256), Some(ix));
            if status % 256 == 0 {
                self.edge(given.ok, ends.ok);
            } else {
                self.edge(given.failed, ends.failed);
            }
        } else {
            let name = argument.and_then(Word::variable).map(<[u8]>::to_vec);
            let given = self.action(at, What::Value(name), Some(ix));
            self.edge(given.ok, ends.ok);
            self.edge(given.failed, ends.failed);
        }
        self.nowhere()
    }
}
