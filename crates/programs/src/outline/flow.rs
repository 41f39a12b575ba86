//! Builds a graph of the paths that a shell can take through a script.
//!
//! The graph has more paths than a real shell can take, because the values of variables are not
//! known. A fact that is true on all paths of the graph is true for the shell.

mod branches;
mod calls;

use std::collections::HashSet;
use std::rc::Rc;

use super::builtins::{self, Builtin};
use super::options::{Options, Setting};
use super::tree::{Command, CommandIx, Link, Outline, Tree};
use super::words::{number, Expansion, Word};
use crate::words::{is_assignment, is_name_byte};

/// The largest number of nodes in the graph of a shell script.
pub(super) const MOST_NODES: usize = 30_000;

/// The largest number of bytes that are written in total when `$1` and similar words in a script's
/// functions are replaced by the arguments of each call.
const REPLACED_BYTES: usize = 1 << 20;

/// The largest depth to which calls of functions and sourced files in a shell script are followed.
const CALLS: usize = 8;

/// The largest number of commands in one pipe of a shell script. The effect of a longer pipe counts
/// as unknown.
pub(super) const MEMBERS: usize = 16;

pub(super) type NodeIx = usize;

/// A point of a path through a shell script, with the command that the shell executes there, if
/// there is one.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) what: What,
    pub(super) command: Option<CommandIx>,
    /// The nodes of the graph that follow if the command of this node succeeds and if it fails.
    pub(super) ends: Ends,
    /// The node at which the paths continue after the test of the condition under which this node's command runs:
    /// after the test's success (`if`, `&&`) or after its failure (`else`, `||`). All paths to the command pass this
    /// node. `None` if the command runs under no condition, or if only the call of the function that contains it does.
    pub(super) guard: Option<NodeIx>,
    /// Whether the command of this node belongs to a trap of the shell.
    pub(super) is_of_trap: bool,
}

/// The two nodes of a script's graph at which the paths continue after a command succeeded and
/// after it failed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ends {
    pub(super) ok: NodeIx,
    pub(super) failed: NodeIx,
}

/// The effect that a node in the graph of a shell script has.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// The node has no effect of its own; the paths of the script continue at any of these nodes.
    Join(Vec<NodeIx>),
    /// At this node the shell starts one process and waits for it.
    Start(Member),
    /// At this node the shell starts a process that it does not wait for, as for `&` and `<(…)`.
    Beside(Member),
    Pipe {
        members: Vec<Member>,
        pipefail: Setting,
    },
    /// At this node the shell executes a builtin, which succeeds or fails.
    Builtin(Builtin),
    /// At this node the script's command could not be started, or a file of its redirections could
    /// not be opened.
    NotStarted,
    /// At this node the shell ends because an expansion names a variable that is not set.
    Unset,
    /// At this node the shell sets variables. The exit status `$?` stays as it is.
    Assign,
    /// At this node the shell's exit status becomes this number, as after `exit 4` or `return 4`, or 0 as after a
    /// builtin that cannot fail.
    Status(u32),
    /// At this node `!` negates the shell's exit status: the status becomes 0 because the last command failed, or 1
    /// because the last command succeeded.
    Not(u32),
    /// At this node the shell's exit status becomes the value of this variable, or an unknown
    /// value.
    Value(Option<Vec<u8>>),
    /// At this node a loop that contains `break` or `return` has ended without them. The value is
    /// the first node of the loop.
    Left(NodeIx),
    /// At this node a `case` of the script has chosen commands by the value of a variable.
    Case(Choice),
    /// At this node the shell executes something unknown, after which anything may happen.
    Wild,
    /// At this node the script ends with the last exit status. The shell's traps still follow.
    End,
    /// At this node the shell has ended. Its exit status is the one that the shell had at [`What::End`], before it ran
    /// its traps.
    Ended,
    /// At this node a trap has ended the shell, with the status of the trap's last command.
    EndedByTrap,
}

/// The choice of one branch of a `case` statement in a script.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// The name of the variable by whose value the `case` statement chooses a branch.
    pub(super) variable: Vec<u8>,
    /// The patterns of all branches of the `case` statement.
    pub(super) arms: Rc<Vec<Vec<Word>>>,
    /// The index of the chosen branch among all branches of the `case` statement.
    pub(super) at: usize,
}

/// A process that the shell of a script starts.
#[derive(Clone, Debug)]
pub(super) enum Member {
    /// The process executes a program. The first value is the script's command. The second value has the command's
    /// words after `$1` and the like were replaced by the arguments of the called function; `None` if nothing was
    /// replaced and no word such as `command` was removed from the beginning.
    Program(CommandIx, Option<Rc<Vec<Word>>>),
    /// The process that the script's shell starts is a subshell. It executes these commands of the
    /// script, with the given shell options.
    Forked(Rc<Tree>, Options),
}

#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
}

/// Builds the graph of the paths through commands of a script that is executed with these shell options. Returns
/// `None` if the graph would have too many nodes, or too many bytes of replaced words.
pub(super) fn graph(outline: &Outline, tree: &Tree, options: Options) -> Option<Graph> {
    let mut builder = Builder {
        outline,
        set: variables_set(outline),
        nodes: Vec::new(),
        options,
        guard: None,
        loops: Vec::new(),
        calls: Vec::new(),
        returns: Vec::new(),
        is_of_trap: false,
        may_end_at_failures: options.errexit != Setting::Off || sets_errexit(outline),
        replaced: 0,
        end: 0,
        ended: 0,
        ended_by_trap: 0,
    };
    // A trap for errors (`ERR`) may end the shell after any failure, as `set -e` does.
    if outline.traps.iter().any(|trap| trap.is_of_errors) {
        builder.options.errexit.doubt();
    }
    let start = builder.label();
    builder.end = builder.node(What::End, None);
    builder.ended = builder.node(What::Ended, None);
    builder.ended_by_trap = builder.node(What::EndedByTrap, None);
    let ends = builder.build(tree, start);
    builder.edge(ends.ok, builder.end);
    builder.edge(ends.failed, builder.end);
    let after = builder.label();
    builder.leads(builder.end, after);
    builder.edge(after, builder.ended);
    builder.traps(after);
    (builder.nodes.len() < MOST_NODES && builder.replaced < REPLACED_BYTES).then_some(Graph {
        nodes: builder.nodes,
    })
}

fn variables_set(outline: &Outline) -> HashSet<&[u8]> {
    let loops = outline.loops.iter();
    let mut set: HashSet<&[u8]> = loops.map(|known| known.variable.as_slice()).collect();
    for command in &outline.commands {
        set.extend(command.assignments.iter().map(|set| set.name.as_slice()));
        let first = command.words.first().and_then(Word::literal);
        if first.is_some_and(builtins::sets_variables) {
            let names = command.words.iter().skip(1);
            set.extend(names.filter_map(|word| word.text.split(|byte| *byte == b'=').next()));
        }
    }
    set
}

/// A call of a shell function, while the body of the function is added to the script's graph.
struct Call<'a> {
    name: &'a [u8],
    command: CommandIx,
    /// The guard ([`Node::guard`]) of the command that calls the function.
    guard: Option<NodeIx>,
    arguments: Option<Vec<Word>>,
}

struct Builder<'a> {
    outline: &'a Outline,
    /// The shell variables that the script sets somewhere or has already expanded. The analysis
    /// assumes that they are set, so that the shell does not end because of them.
    set: HashSet<&'a [u8]>,
    nodes: Vec<Node>,
    options: Options,
    guard: Option<NodeIx>,
    /// The nodes at which the paths continue after `break` and after `continue`, for each enclosing
    /// loop of the script.
    loops: Vec<(NodeIx, NodeIx)>,
    calls: Vec<Call<'a>>,
    /// The nodes at which the paths continue after `return`, for each function and sourced file
    /// that is being added to the script's graph.
    returns: Vec<Ends>,
    is_of_trap: bool,
    /// Whether the shell may have the option `set -e` when a trap runs.
    may_end_at_failures: bool,
    replaced: usize,
    end: NodeIx,
    ended: NodeIx,
    ended_by_trap: NodeIx,
}

impl<'a> Builder<'a> {
    fn node(&mut self, what: What, command: Option<CommandIx>) -> NodeIx {
        self.nodes.push(Node {
            what,
            command,
            ends: Ends::default(),
            guard: self.guard,
            is_of_trap: self.is_of_trap,
        });
        self.nodes.len() - 1
    }

    fn label(&mut self) -> NodeIx {
        self.node(What::Join(Vec::new()), None)
    }

    fn edge(&mut self, from: NodeIx, to: NodeIx) {
        if let Some(Node {
            what: What::Join(next),
            ..
        }) = self.nodes.get_mut(from)
        {
            next.push(to);
        }
    }

    /// Makes the node `to` follow the node `from` in the script's graph, whether the command of the node `from`
    /// succeeds or fails.
    fn leads(&mut self, from: NodeIx, to: NodeIx) {
        if let Some(node) = self.nodes.get_mut(from) {
            node.ends = Ends { ok: to, failed: to };
        }
    }

    fn join(&mut self, ends: Ends) -> NodeIx {
        let label = self.label();
        self.edge(ends.ok, label);
        self.edge(ends.failed, label);
        label
    }

    /// Adds a node with this effect to the script's graph after the node `from`. Returns the nodes that follow the
    /// success and the failure of the added node.
    fn action(&mut self, from: NodeIx, what: What, command: Option<CommandIx>) -> Ends {
        let node = self.node(what, command);
        self.edge(from, node);
        let ends = Ends {
            ok: self.label(),
            failed: self.label(),
        };
        if let Some(node) = self.nodes.get_mut(node) {
            node.ends = ends;
        }
        ends
    }

    fn status(&mut self, from: NodeIx, status: u32) -> Ends {
        self.action(from, What::Status(status), None)
    }

    /// If `set -e` may be in effect, adds the end of the shell after a failed command to the
    /// script's graph. Returns the nodes at which the paths continue if the shell does not end.
    fn fatal(&mut self, mut ends: Ends) -> Ends {
        if self.options.tested || self.options.errexit == Setting::Off {
            return ends;
        }
        let end = if self.is_of_trap {
            self.ended_by_trap
        } else {
            self.end
        };
        self.edge(ends.failed, end);
        if self.options.errexit == Setting::On && !self.is_of_trap {
            ends.failed = self.label();
        }
        ends
    }

    fn tested<T>(&mut self, build: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.options.tested, true);
        let built = build(self);
        self.options.tested = before;
        built
    }

    /// Adds commands to the script's graph that run only under a condition. The node `guard` is the one at which the
    /// paths continue after the condition's test ([`Node::guard`]).
    fn guarded(&mut self, guard: NodeIx, tree: &'a Tree) -> Ends {
        let before = self.guard.replace(guard);
        let ends = self.build(tree, guard);
        self.guard = before;
        ends
    }

    fn is_full(&self) -> bool {
        self.nodes.len() >= MOST_NODES || self.replaced >= REPLACED_BYTES
    }

    fn build(&mut self, tree: &'a Tree, from: NodeIx) -> Ends {
        if self.is_full() {
            return Ends {
                ok: from,
                failed: from,
            };
        }
        match tree {
            Tree::Simple(ix) => self.simple(*ix, from),
            Tree::List(all) => self.list(all, from),
            Tree::Chain(all) => self.chain(all, from),
            Tree::Pipe { members, negated } => self.pipe(members, *negated, from),
            Tree::Background(body) => {
                let member = self.member(body);
                let ends = self.action(from, What::Beside(member), command_of(body));
                self.status(ends.ok, 0)
            }
            Tree::If { arms, otherwise } => self.conditions(arms, otherwise.as_deref(), from),
            Tree::Loop { until, arm } => self.repeated(*until, arm, from),
            Tree::For { words, body } => self.each(*words, body, from),
            Tree::Case {
                word,
                arms,
                has_default,
            } => {
                let at = self.substitutions(*word, from).0;
                self.cases(*word, arms, *has_default, at)
            }
            Tree::Subshell(body) => {
                let member = self.member(body);
                let ends = self.action(from, What::Start(member), command_of(body));
                self.fatal(ends)
            }
            Tree::Redirected { words, body } => {
                let at = self.substitutions(*words, from).0;
                let opens = self.command(*words).is_some_and(|command| command.opens);
                if !opens {
                    return self.build(body, at);
                }
                let not = self.action(at, What::NotStarted, Some(*words));
                let not = self.fatal(not);
                let ends = self.build(body, at);
                self.edge(not.failed, ends.failed);
                ends
            }
            Tree::Function(_) => self.status(from, 0),
        }
    }

    fn list(&mut self, all: &'a [Tree], from: NodeIx) -> Ends {
        let mut ends: Option<Ends> = None;
        for tree in all {
            let by_status = ends.and_then(|before| self.cases_of_status(tree, before));
            ends = by_status.or_else(|| {
                let at = match ends {
                    Some(before) => self.join(before),
                    None => from,
                };
                Some(self.build(tree, at))
            });
        }
        match ends {
            Some(ends) => ends,
            None => self.status(from, 0),
        }
    }

    fn chain(&mut self, all: &'a [(Link, Tree)], from: NodeIx) -> Ends {
        let mut ends: Option<Ends> = None;
        for (at, (link, tree)) in all.iter().enumerate() {
            let is_last = at + 1 == all.len();
            let before = ends;
            let build = |builder: &mut Self| match before {
                None => builder.build(tree, from),
                Some(before) => {
                    let guard = match link {
                        Link::And => before.ok,
                        Link::Or => before.failed,
                    };
                    builder.guarded(guard, tree)
                }
            };
            let options = self.options;
            let now = if is_last {
                build(self)
            } else {
                self.tested(build)
            };
            if before.is_some() {
                self.options.merge(options);
            }
            let Some(before) = before else {
                ends = Some(now);
                continue;
            };
            ends = Some(match link {
                Link::And => Ends {
                    ok: now.ok,
                    failed: self.join(Ends {
                        ok: before.failed,
                        failed: now.failed,
                    }),
                },
                Link::Or => Ends {
                    ok: self.join(Ends {
                        ok: before.ok,
                        failed: now.ok,
                    }),
                    failed: now.failed,
                },
            });
        }
        ends.unwrap_or(Ends {
            ok: from,
            failed: from,
        })
    }

    fn pipe(&mut self, members: &'a [Rc<Tree>], negated: bool, from: NodeIx) -> Ends {
        let ends = match members {
            [only] if negated => self.tested(|builder| builder.build(only, from)),
            _ if members.len() > MEMBERS => {
                let ends = self.action(from, What::Wild, None);
                self.edge(ends.ok, self.end);
                ends
            }
            _ => {
                let options = Options {
                    tested: self.options.tested || negated,
                    ..self.options
                };
                let command = members.last().and_then(|last| command_of(last));
                let members = members.iter();
                let members = members
                    .map(|tree| self.member_with(tree, options))
                    .collect();
                let pipefail = self.options.pipefail;
                let ends = self.action(from, What::Pipe { members, pipefail }, command);
                if negated {
                    ends
                } else {
                    self.fatal(ends)
                }
            }
        };
        if !negated {
            return ends;
        }
        let (failed, ok) = (
            self.action(ends.ok, What::Not(1), None),
            self.action(ends.failed, What::Not(0), None),
        );
        Ends {
            ok: ok.ok,
            failed: failed.failed,
        }
    }

    /// Adds the commands of the shell's traps to the script's graph, after the node `from`.
    fn traps(&mut self, from: NodeIx) {
        let (outline, ended) = (self.outline, self.ended);
        self.is_of_trap = true;
        self.guard = None;
        self.options.tested = false;
        self.options.errexit = if self.may_end_at_failures {
            Setting::Maybe
        } else {
            Setting::Off
        };
        let after_errors = self.label();
        self.edge(from, after_errors);
        for is_of_errors in [true, false] {
            for trap in outline
                .traps
                .iter()
                .filter(|trap| trap.is_of_errors == is_of_errors)
            {
                let from = if is_of_errors { from } else { after_errors };
                let options = self.options;
                let ends = self.build(&trap.body, from);
                self.options = options;
                let to = if is_of_errors { after_errors } else { ended };
                self.edge(ends.ok, to);
                self.edge(ends.failed, to);
            }
        }
        self.edge(after_errors, ended);
    }
}

fn sets_errexit(outline: &Outline) -> bool {
    outline.commands.iter().any(|command| {
        let Some((first, rest)) = command.words.split_first() else {
            return false;
        };
        let mut options = Options::default();
        options.set(rest);
        first.literal() == Some(b"set") && options.errexit != Setting::Off
    })
}

/// The simple command that a part of a script consists of, or with which it begins. For `for` and `case`, it is the
/// command that holds their words.
pub(super) fn command_of(tree: &Tree) -> Option<CommandIx> {
    match tree {
        Tree::Simple(ix) => Some(*ix),
        Tree::List(all) => command_of(all.first()?),
        Tree::Chain(all) => command_of(&all.first()?.1),
        Tree::Pipe { members, .. } => command_of(members.first()?),
        Tree::Background(body) | Tree::Subshell(body) => command_of(body),
        Tree::If { arms, .. } => command_of(&arms.first()?.condition),
        Tree::Loop { arm, .. } => command_of(&arm.condition),
        Tree::For { words, .. } | Tree::Case { word: words, .. } => Some(*words),
        Tree::Redirected { body, .. } => command_of(body),
        Tree::Function(_) => None,
    }
}

/// The number that a word of a script consists of; `None` if it is no number or has an expansion.
fn number_of(word: &Word) -> Option<u32> {
    number(word.literal()?)
}

/// Whether a word after `local` or `export` in a script sets the variable with this name.
fn sets(word: &Word, name: &[u8]) -> bool {
    let set = word.text.strip_prefix(name);
    is_assignment(&word.text) && set.is_some_and(|rest| rest.starts_with(b"="))
}

/// The beginning of the name of the variable that an `eval` sets, and its value, if the command does nothing else:
/// `eval "have_$name=1"`
pub(super) fn evaluated(command: &Command) -> Option<(&[u8], &[u8])> {
    let [first, word] = command.words.as_slice() else {
        return None;
    };
    let head = word.text.get(..word.head)?;
    let tail = word.text.get(word.text.len().checked_sub(word.tail)?..)?;
    let sign = tail.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (tail.get(..sign)?, tail.get(sign + 1..)?);
    let is_setting = word.expansion == Expansion::One
        && head.first().is_some_and(|byte| !byte.is_ascii_digit())
        && [head, name, value]
            .iter()
            .all(|text| text.iter().all(is_name_byte));
    (first.literal() == Some(b"eval") && is_setting).then_some((head, value))
}

/// The value that a command gives to the variable with this name; `None` if the command does not set the variable.
pub(super) fn value(command: &Command, name: &[u8]) -> Option<Word> {
    let mut assignments = command.assignments.iter().rev();
    if let Some(set) = assignments.find(|set| set.name == name) {
        return Some(set.value.clone());
    }
    let word = command.words.iter().find(|word| sets(word, name))?;
    let text = word.text.get(name.len() + 1..)?.to_vec();
    Some(Word {
        text,
        ..word.clone()
    })
}
