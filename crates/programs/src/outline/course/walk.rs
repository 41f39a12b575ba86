//! Follows all paths through a shell script that agree with the recorded child processes of its
//! shell.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::super::arguments::{are, WORDS};
use super::super::builtins::Builtin;
use super::super::flow::{self, Graph, Member, NodeIx, What};
use super::super::options::{Options, Setting};
use super::super::tree::{Command, CommandIx, Outline, Tree};
use super::super::words::Word;
use super::search::StateIx;
use super::{Child, Course, ScriptPart};

/// The largest number of states in the comparison of a script with its recorded processes. The
/// number of steps between states is limited to four times as many.
const STATES: usize = 300_000;

/// A state in the comparison of a script with its recorded processes: the shell is at this node of
/// the script's graph and has started the children before the index `child`.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) node: NodeIx,
    pub(super) child: usize,
    /// The last step of the comparison that leads to this state, as an index into `Walk::steps` plus 1; 0 if no step
    /// leads to the state.
    pub(super) step: usize,
}

/// A step in the comparison of a script with its recorded processes. The step leads from the state
/// `from` to another state. All steps to one state form a linked list: `next` is the index of the
/// list's next step plus 1, or 0 at the end of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) from: StateIx,
    pub(super) next: usize,
}

pub(super) struct Walk<'a> {
    pub(super) outline: &'a Outline,
    pub(super) graph: &'a Graph,
    pub(super) children: &'a [Child<'a>],
    /// Whether the comparison of a script with its recorded processes assumes that commands may
    /// fail without starting a process, because a file could not be opened or a variable is not
    /// set.
    pub(super) has_silent_failures: bool,
    pub(super) is_bash: bool,
    /// Whether the shell's first children are left out of the comparison, because the shell has too many children.
    pub(super) is_cut: bool,
    pub(super) states: Vec<State>,
    pub(super) steps: Vec<Step>,
    /// The states reached so far. The outer key is the index of the next child process, and the inner key is the
    /// state's node in the script's graph.
    pub(super) waiting: BTreeMap<usize, HashMap<NodeIx, StateIx>>,
    /// The states in which the shell can have ended after starting all of its recorded children.
    pub(super) ends: Vec<StateIx>,
}

impl Walk<'_> {
    pub(super) fn forward(&mut self, starts: Vec<NodeIx>) -> Option<()> {
        let mut queue: Vec<StateIx> = Vec::new();
        let mut later: BTreeMap<usize, Vec<StateIx>> = BTreeMap::new();
        for node in starts {
            queue.extend(self.reach(node, 0, None)?);
        }
        loop {
            while let Some(at) = queue.pop() {
                let state = *self.states.get(at)?;
                for (node, child) in self.next(state) {
                    if let Some(new) = self.reach(node, child, Some(at))? {
                        if child == state.child {
                            queue.push(new);
                        } else {
                            later.entry(child).or_default().push(new);
                        }
                    }
                }
            }
            let Some((child, states)) = later.pop_first() else {
                return Some(());
            };
            self.waiting = self.waiting.split_off(&child);
            queue = states;
        }
    }

    /// Notes that the comparison of a script with its processes has reached a node of the script's
    /// graph. Returns the state if it is new, `Some(None)` if it was known, and `None` if there are
    /// too many states.
    pub(super) fn reach(
        &mut self,
        node: NodeIx,
        child: usize,
        from: Option<StateIx>,
    ) -> Option<Option<StateIx>> {
        let known = self.waiting.entry(child).or_default();
        let new = self.states.len();
        let at = *known.entry(node).or_insert(new);
        if at == new {
            self.states.push(State {
                node,
                child,
                step: 0,
            });
            let what = self.graph.nodes.get(node).map(|node| &node.what);
            let is_end = matches!(what, Some(What::Ended | What::EndedByTrap));
            if is_end && child == self.children.len() {
                self.ends.push(at);
            }
        }
        if let Some(from) = from {
            let state = self.states.get_mut(at)?;
            self.steps.push(Step {
                from,
                next: state.step,
            });
            state.step = self.steps.len();
        }
        let has_room = self.states.len() < STATES && self.steps.len() < 4 * STATES;
        has_room.then_some((at == new).then_some(at))
    }

    /// The nodes and child indices that can follow a state of the script, according to the script's
    /// graph and the recorded processes.
    pub(super) fn next(&self, state: State) -> Vec<(NodeIx, usize)> {
        let Some(node) = self.graph.nodes.get(state.node) else {
            return Vec::new();
        };
        let ends = node.ends;
        let at = state.child;
        match &node.what {
            What::Join(next) => next.iter().map(|next| (*next, at)).collect(),
            What::Beside(member) => {
                let fits = self
                    .children
                    .get(at)
                    .is_some_and(|child| self.fits(member, child));
                fits.then_some((ends.ok, at + 1)).into_iter().collect()
            }
            What::Start(member) => match self.children.get(at) {
                Some(child) if self.fits(member, child) => {
                    let mut next = Vec::new();
                    if child.status.is_none_or(|status| status == 0) {
                        next.push((ends.ok, at + 1));
                    }
                    if child.status != Some(0) {
                        next.push((ends.failed, at + 1));
                    }
                    next
                }
                _ => Vec::new(),
            },
            What::Pipe { members, pipefail } => self.after_a_pipe(members, *pipefail, at, ends),
            What::Builtin(builtin) => {
                let mut next = Vec::new();
                if *builtin != Builtin::False {
                    next.push((ends.ok, at));
                }
                next.push((ends.failed, at));
                next
            }
            What::NotStarted | What::Unset if self.has_silent_failures => vec![(ends.failed, at)],
            What::NotStarted | What::Unset => Vec::new(),
            What::Assign | What::Case(_) => vec![(ends.ok, at)],
            What::Status(0) | What::Not(0) => vec![(ends.ok, at)],
            What::Status(_) | What::Not(_) => vec![(ends.failed, at)],
            What::Value(_) => vec![(ends.ok, at), (ends.failed, at)],
            // Both results of the loop, success and failure, are tried at this node. In the script's graph, the paths
            // go on after this node for only one of the two results; for the other result, they end right after it.
            What::Left(_) => vec![(ends.ok, at), (ends.failed, at)],
            What::Wild => {
                let mut next = vec![(ends.ok, at), (ends.failed, at)];
                if at < self.children.len() {
                    next.push((state.node, at + 1));
                }
                next
            }
            What::End => vec![(ends.ok, at)],
            What::Ended | What::EndedByTrap => Vec::new(),
        }
    }

    pub(super) fn after_a_pipe(
        &self,
        members: &[Member],
        pipefail: Setting,
        at: usize,
        ends: flow::Ends,
    ) -> Vec<(NodeIx, usize)> {
        let after = at + members.len();
        let Some(children) = self.children.get(at..after) else {
            return Vec::new();
        };
        let mut pairs = members.iter().zip(children);
        if !pairs.all(|(member, child)| self.fits(member, child)) {
            return Vec::new();
        }
        let may_fail = |child: &Child<'_>| child.status != Some(0);
        let may_succeed = |child: &Child<'_>| child.status.is_none_or(|status| status == 0);
        let last = children.last();
        let any_fails = pipefail != Setting::Off && children.iter().any(may_fail);
        let all_succeed = pipefail != Setting::On || children.iter().all(may_succeed);
        let mut next = Vec::new();
        if last.is_some_and(may_succeed) && all_succeed {
            next.push((ends.ok, after));
        }
        if last.is_some_and(may_fail) || any_fails {
            next.push((ends.failed, after));
        }
        next
    }

    /// Whether a recorded child process can be the one that the shell starts at a certain place of
    /// its script.
    pub(super) fn fits(&self, member: &Member, child: &Child<'_>) -> bool {
        match member {
            Member::Program(ix, words) => {
                let command = self.outline.commands.get(*ix);
                let words = words.as_ref().map(|words| words.as_slice());
                let words = words.or(command.map(|command| command.words.as_slice()));
                let opens = command.is_some_and(|command| command.opens);
                match &child.args {
                    // The child executed nothing: its program could not be started, or bash ran a script without `#!`
                    // in the fork itself.
                    None => {
                        let first = words.and_then(<[Word]>::first);
                        let may_be_script = self.is_bash && first.is_some_and(Word::is_path);
                        may_be_script
                            || child.status.is_none_or(|status| {
                                status > 125 || opens && matches!(status, 1 | 2)
                            })
                    }
                    Some(args) => words.is_some_and(|words| are(words, args, child.is_cut)),
                }
            }
            Member::Forked(tree, _) => match &child.args {
                None => true,
                Some(args) => self.runs(tree, args, child.is_cut),
            },
        }
    }

    /// Whether a command in this part of a script can be the program with these arguments. A subshell executes its
    /// last command in its own process, so a recorded subshell can show that program's arguments. The answer is also
    /// yes if there are too many commands to compare.
    pub(super) fn runs(&self, tree: &Tree, args: &[&[u8]], is_cut: bool) -> bool {
        let mut places = Vec::new();
        self.outline.collect(tree, &mut places);
        places.len() > WORDS
            || places.iter().any(|ix| {
                let command = self.outline.commands.get(*ix);
                let words = command.map(|command| command.words.as_slice());
                words.is_some_and(|words| self.may_run(words, args, is_cut))
            })
    }

    pub(super) fn may_run(&self, words: &[Word], args: &[&[u8]], is_cut: bool) -> bool {
        let Some((first, rest)) = words.split_first() else {
            return false;
        };
        match first.literal() {
            Some(b"exec" | b"command") => are(rest, args, is_cut),
            Some(name) => self.outline.may_exec(name) || are(words, args, is_cut),
            None => true,
        }
    }

    pub(super) fn steps_to(&self, at: StateIx) -> impl Iterator<Item = StateIx> + '_ {
        let mut next = self.states.get(at).map_or(0, |state| state.step);
        std::iter::from_fn(move || {
            let step = self.steps.get(next.checked_sub(1)?)?;
            next = step.next;
            Some(step.from)
        })
    }

    /// For each state that the comparison of the script has reached, whether a path leads from it to one of the states
    /// in `ends`.
    pub(super) fn live(&self, ends: &[StateIx]) -> Vec<bool> {
        let mut live = vec![false; self.states.len()];
        let mut queue = ends.to_vec();
        while let Some(at) = queue.pop() {
            match live.get_mut(at) {
                Some(is_live) if !*is_live => *is_live = true,
                _ => continue,
            }
            queue.extend(self.steps_to(at));
        }
        live
    }

    /// Whether a command of the script started the last child process, on a path to one of the states `ends`. The
    /// command counts if the script contains its program's name, and if no command of unknown effect follows it on
    /// this path.
    pub(super) fn starts_the_last(&self, ends: &[StateIx]) -> bool {
        let is_named = |member: &Member| match member {
            Member::Program(ix, _) => {
                let command = self.outline.commands.get(*ix);
                let first = command.and_then(|command| command.words.first());
                first.is_some_and(|word| word.literal().is_some())
            }
            Member::Forked(..) => false,
        };
        let all = self.children.len();
        let mut seen = vec![false; self.states.len()];
        let mut queue = ends.to_vec();
        while let Some(at) = queue.pop() {
            match seen.get_mut(at) {
                Some(is_seen) if !*is_seen => *is_seen = true,
                _ => continue,
            }
            for from in self.steps_to(at) {
                let state = self.states.get(from);
                let what = state.and_then(|state| Some(&self.graph.nodes.get(state.node)?.what));
                let is_last = state.is_some_and(|state| state.child < all);
                match what {
                    Some(What::Start(member)) if is_last && is_named(member) => return true,
                    Some(What::Pipe { members, .. }) if is_last && members.iter().all(is_named) => {
                        return true;
                    }
                    None | Some(What::Wild) => {}
                    Some(_) if is_last => {}
                    Some(_) => queue.push(from),
                }
            }
        }
        false
    }

    /// For each child process, finds the command that started it, if that command is the same on
    /// all remaining paths through the script.
    pub(super) fn places(
        &self,
        live: &[bool],
        first: usize,
        part: &ScriptPart,
        course: &mut Course,
    ) {
        let mut found: Vec<Option<Place<'_>>> = vec![None; course.commands.len()];
        for (state, _) in self.states.iter().zip(live).filter(|(_, live)| **live) {
            let Some(node) = self.graph.nodes.get(state.node) else {
                continue;
            };
            let members = match &node.what {
                What::Start(member) | What::Beside(member) => std::slice::from_ref(member),
                What::Pipe { members, .. } => members.as_slice(),
                What::Wild => {
                    if let Some(place) = found.get_mut(first + state.child) {
                        *place = Some(Place::default());
                    }
                    continue;
                }
                _ => continue,
            };
            for (at, member) in members.iter().enumerate() {
                let Some(place) = found.get_mut(first + state.child + at) else {
                    continue;
                };
                let here = self.place(member, node.command);
                *place = Some(match place.take() {
                    None => here,
                    Some(before) => before.with(here),
                });
            }
        }
        for (at, place) in found.into_iter().enumerate() {
            let Some(place) = place else {
                continue;
            };
            if let Some(command) = course.commands.get_mut(at) {
                *command = place.command;
            }
            if let (Some(inside), Some((tree, options))) = (course.parts.get_mut(at), place.tree) {
                *inside = Some(ScriptPart {
                    outline: part.outline.clone(),
                    tree: tree.clone(),
                    options,
                });
            }
        }
    }

    pub(super) fn place<'t>(&self, member: &'t Member, command: Option<CommandIx>) -> Place<'t> {
        match member {
            // If a function runs `"$@"`, the words of the command that is run are in the call of the function. So the
            // process's place in the script is this call.
            Member::Program(ix, words) => Place {
                command: command.filter(|_| words.is_some()).or(Some(*ix)),
                tree: None,
            },
            Member::Forked(tree, options) => Place {
                command: flow::command_of(tree).or(command),
                tree: Some((tree, *options)),
            },
        }
    }

    /// The indices of the failed children that may be the reason for the statement which ended the script. `deciding`
    /// has the tests that decided that this statement was executed. The failed children are background jobs, children
    /// whose commands name the same file as a command in `deciding`, and children that a command in `deciding` started
    /// inside its `$(…)`.
    pub(super) fn linked(&self, live: &[bool], deciding: &BTreeSet<CommandIx>) -> BTreeSet<usize> {
        let mut files: HashSet<&[u8]> = HashSet::new();
        for ix in deciding {
            let command = self.outline.commands.get(*ix);
            files.extend(command.into_iter().flat_map(files_of));
        }
        // Whether the child's command is written inside the `$(…)` of a test in `deciding` (a test that decided that
        // the statement was executed).
        let is_inside = |member: &Member| {
            let inner = member_command(member);
            inner.is_some_and(|inner| {
                let mut outer = deciding.iter();
                outer.any(|outer| self.outline.contains(*outer, inner))
            })
        };
        let mut linked = BTreeSet::new();
        for (state, _) in self.states.iter().zip(live).filter(|(_, live)| **live) {
            let what = self.graph.nodes.get(state.node).map(|node| &node.what);
            let (members, is_beside) = match what {
                Some(What::Start(member)) => (std::slice::from_ref(member), false),
                Some(What::Beside(member)) => (std::slice::from_ref(member), true),
                Some(What::Pipe { members, .. }) => (members.as_slice(), false),
                _ => continue,
            };
            let is_linked = |member: &Member| self.names(member, &files) || is_inside(member);
            if is_beside || members.iter().any(is_linked) {
                linked.extend(state.child..state.child + members.len());
            }
        }
        linked.retain(|at| {
            let child = self.children.get(*at);
            child.is_some_and(|child| child.status != Some(0))
        });
        linked
    }

    /// Whether the commands of a process that the script starts name one of these files.
    pub(super) fn names(&self, member: &Member, files: &HashSet<&[u8]>) -> bool {
        let mut places = Vec::new();
        match member {
            Member::Program(ix, _) => places.push(*ix),
            Member::Forked(tree, _) => self.outline.collect(tree, &mut places),
        }
        let commands = places
            .iter()
            .filter_map(|ix| self.outline.commands.get(*ix));
        let mut named = commands.flat_map(files_of);
        named.any(|file| files.contains(file) || is_directory_of(file, files))
    }
}

/// The command of the script that a started process executes. For a subshell, the result is the first of the commands
/// that the subshell executes.
fn member_command(member: &Member) -> Option<CommandIx> {
    match member {
        Member::Program(ix, _) => Some(*ix),
        Member::Forked(tree, _) => flow::command_of(tree),
    }
}

/// Whether a word names a directory by a slash at its end, and one of the files is directly in this directory.
fn is_directory_of(word: &[u8], files: &HashSet<&[u8]>) -> bool {
    let is_inside = |file: &&[u8]| {
        let name = file.strip_prefix(word);
        name.is_some_and(|name| !name.is_empty() && !name.contains(&b'/'))
    };
    word.ends_with(b"/") && files.iter().any(is_inside)
}

/// The words of a command in a script that may be names of files, including the file of its
/// redirected output.
fn files_of(command: &Command) -> impl Iterator<Item = &[u8]> {
    let words = command
        .words
        .iter()
        .skip(1)
        .map(|word| word.text.as_slice());
    let words = words.chain(command.output.iter().map(|word| word.text.as_slice()));
    words.filter(|word| {
        let is_number = word.iter().all(u8::is_ascii_digit);
        word.len() > 1 && !is_number && !word.starts_with(b"-") && *word != b"]]" && *word != b"$?"
    })
}

/// The command of the script that started a child process and, for a subshell, the commands that it
/// executes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place<'a> {
    pub(super) command: Option<CommandIx>,
    pub(super) tree: Option<(&'a Rc<Tree>, Options)>,
}

impl<'a> Place<'a> {
    pub(super) fn with(self, other: Place<'a>) -> Place<'a> {
        let is_same = |tree: &(&Rc<Tree>, Options)| {
            other
                .tree
                .is_some_and(|other| Rc::ptr_eq(tree.0, other.0) && tree.1 == other.1)
        };
        Place {
            command: self.command.filter(|ix| other.command == Some(*ix)),
            tree: self.tree.filter(is_same),
        }
    }
}
