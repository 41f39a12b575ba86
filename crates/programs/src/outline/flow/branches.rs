//! Adds conditions and loops of a shell script to the graph of the paths through it.

use std::rc::Rc;

use super::super::options::{Options, Setting};
use super::super::tree::{Arm, CaseArm, CommandIx, Tree};
use super::super::words::Word;
use super::{number_of, Builder, Choice, Ends, NodeIx, What};

impl<'a> Builder<'a> {
    pub(super) fn cases(
        &mut self,
        word: CommandIx,
        arms: &'a [CaseArm],
        has_default: bool,
        from: NodeIx,
    ) -> Ends {
        let options = self.options;
        let mut all = self.options;
        let ends = Ends {
            ok: self.label(),
            failed: self.label(),
        };
        let word = self.command(word).and_then(|command| command.words.first());
        let variable = word.and_then(Word::variable);
        let patterns = arms.iter().map(|arm| arm.patterns.clone());
        let patterns: Rc<Vec<Vec<Word>>> = Rc::new(patterns.collect());
        for (at, arm) in arms.iter().enumerate() {
            self.options = options;
            let arm = match variable {
                Some(name) => {
                    let what = What::Case(Choice {
                        variable: name.to_vec(),
                        arms: patterns.clone(),
                        at,
                    });
                    let at = self.action(from, what, None).ok;
                    self.guarded(at, &arm.body)
                }
                None => self.build(&arm.body, from),
            };
            self.edge(arm.ok, ends.ok);
            self.edge(arm.failed, ends.failed);
            all.merge(self.options);
        }
        self.options = all;
        if !has_default {
            let none = self.status(from, 0);
            self.edge(none.ok, ends.ok);
        }
        ends
    }

    /// Adds a statement `case $? in 0) … ;; *) … ;; esac` to the script's graph. After a success of the command before
    /// it, the paths lead to the branch for 0 and to the branches before that one; after a failure, to all branches
    /// but the one for 0. Returns `None` if `tree` is another kind of statement.
    pub(super) fn cases_of_status(&mut self, tree: &'a Tree, from: Ends) -> Option<Ends> {
        let Tree::Case {
            word,
            arms,
            has_default,
        } = tree
        else {
            return None;
        };
        let word = self.command(*word)?.words.first()?;
        if word.text != b"$?" || !word.has_status() || !arms.iter().any(|arm| arm.is_zero()) {
            return None;
        }
        let ends = Ends {
            ok: self.label(),
            failed: self.label(),
        };
        let options = self.options;
        let mut all = self.options;
        let mut has_zero = false;
        for arm in arms {
            self.options = options;
            let arms = if arm.is_zero() {
                vec![self.build(&arm.body, from.ok)]
            } else if has_zero {
                vec![self.guarded(from.failed, &arm.body)]
            } else {
                // The pattern may match both the status 0 and a failure.
                vec![
                    self.build(&arm.body, from.ok),
                    self.guarded(from.failed, &arm.body),
                ]
            };
            has_zero |= arm.is_zero();
            for arm in arms {
                self.edge(arm.ok, ends.ok);
                self.edge(arm.failed, ends.failed);
            }
            all.merge(self.options);
        }
        self.options = all;
        if !has_default {
            let none = self.status(from.failed, 0);
            self.edge(none.ok, ends.ok);
        }
        Some(ends)
    }

    pub(super) fn conditions(
        &mut self,
        arms: &'a [Arm],
        otherwise: Option<&'a Tree>,
        from: NodeIx,
    ) -> Ends {
        let ends = Ends {
            ok: self.label(),
            failed: self.label(),
        };
        let mut from = from;
        let mut guard = self.guard;
        let mut merged: Option<Options> = None;
        let before = self.guard;
        for arm in arms {
            self.guard = guard;
            let condition = self.tested(|builder| builder.build(&arm.condition, from));
            let options = self.options;
            let body = self.guarded(condition.ok, &arm.body);
            self.edge(body.ok, ends.ok);
            self.edge(body.failed, ends.failed);
            merge(&mut merged, self.options);
            self.options = options;
            from = condition.failed;
            guard = Some(condition.failed);
        }
        self.guard = guard;
        let rest = match otherwise {
            Some(otherwise) => self.build(otherwise, from),
            None => self.status(from, 0),
        };
        self.guard = before;
        self.edge(rest.ok, ends.ok);
        self.edge(rest.failed, ends.failed);
        merge(&mut merged, self.options);
        self.options = merged.unwrap_or(self.options);
        ends
    }

    /// Adds the normal end of a loop to the script's graph, if a command in the loop, such as `break`, can also end the
    /// loop.
    pub(super) fn left(&mut self, body: &Tree, start: NodeIx, ends: Ends) -> Ends {
        let mut places = Vec::new();
        self.outline.collect(body, &mut places);
        let leaves = places.iter().any(|ix| {
            let words = self.command(*ix).map(|command| command.words.as_slice());
            let (first, value) = match words {
                Some([first]) => (first, None),
                Some([first, value]) => (first, number_of(value)),
                _ => return false,
            };
            match first.literal() {
                Some(b"break") => true,
                Some(b"continue") => value.is_some_and(|rounds| rounds > 1),
                // `return` without a number also ends the enclosing loop. The exit status is then that of the command
                // before `return`, so it may be 0.
                Some(b"return") if words.is_some_and(|words| words.len() == 1) => true,
                Some(b"return" | b"exit") => value == Some(0),
                _ => false,
            }
        });
        if !leaves {
            return ends;
        }
        Ends {
            ok: self.action(ends.ok, What::Left(start), None).ok,
            failed: self.action(ends.failed, What::Left(start), None).failed,
        }
    }

    /// Marks the shell's options as unknown before a loop is analyzed whose body sets them, because
    /// an earlier round of the loop may have changed them.
    pub(super) fn forget_options(&mut self, body: &Tree) {
        let mut places = Vec::new();
        self.outline.collect(body, &mut places);
        let sets = places.iter().any(|ix| {
            let first = self.command(*ix).and_then(|command| command.words.first());
            first.and_then(Word::literal) == Some(b"set")
        });
        if sets {
            self.options.errexit = Setting::Maybe;
            self.options.nounset = Setting::Maybe;
            self.options.pipefail = Setting::Maybe;
        }
    }

    pub(super) fn repeated(&mut self, until: bool, arm: &'a Arm, from: NodeIx) -> Ends {
        let start = self.label();
        self.edge(from, start);
        let options = self.options;
        self.forget_options(&arm.body);
        let condition = self.tested(|builder| builder.build(&arm.condition, start));
        let (inside, leave) = if until {
            (condition.failed, condition.ok)
        } else {
            (condition.ok, condition.failed)
        };
        let left = self.label();
        self.loops.push((left, start));
        let body = self.guarded(inside, &arm.body);
        self.loops.pop();
        self.edge(body.ok, start);
        self.edge(body.failed, start);
        self.options.merge(options);
        // The status of a loop is that of the last command in its last round, which is not known here.
        let ends = self.action(leave, What::Value(None), None);
        let ends = self.left(&arm.body, start, ends);
        self.edge(left, ends.ok);
        ends
    }

    pub(super) fn each(&mut self, words: CommandIx, body: &'a Tree, from: NodeIx) -> Ends {
        let from = self.substitutions(words, from).0;
        let start = self.label();
        self.edge(from, start);
        let none = self.status(from, 0);
        let next = self.label();
        let options = self.options;
        let left = self.label();
        self.loops.push((left, next));
        let tree = body;
        self.forget_options(tree);
        let body = self.build(tree, start);
        self.loops.pop();
        self.options.merge(options);
        self.edge(next, none.ok);
        self.edge(next, start);
        self.edge(body.ok, start);
        self.edge(body.failed, start);
        let ok = self.join(Ends {
            ok: none.ok,
            failed: body.ok,
        });
        let failed = body.failed;
        let ends = self.left(tree, start, Ends { ok, failed });
        self.edge(left, ends.ok);
        ends
    }
}

pub(super) fn merge(merged: &mut Option<Options>, options: Options) {
    match merged {
        Some(merged) => merged.merge(options),
        None => *merged = Some(options),
    }
}
