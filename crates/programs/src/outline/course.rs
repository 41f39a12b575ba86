//! The ways through a script that fit the processes which its shell started, and what ended the shell on them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::builtins::{self, Builtin};
use super::flow::{self, number, sets, Graph, Member, NodeIx, What};
use super::{Command, CommandIx, Expansion, Options, Outline, Setting, Tree, Word};

/// The largest number of children of a shell that are compared with its script. Of more, the last ones are.
const CHILDREN: usize = 2_048;

/// The largest number of states of the comparison, and of steps from one to another.
const STATES: usize = 300_000;

/// The largest number of steps back from the end of a script to what caused it.
const BACK: usize = 20_000;

/// The largest number of arguments of a process, and of words of a command, that are compared.
const WORDS: usize = 256;

/// The status of a process that SIGPIPE killed.
const PIPE: u32 = 128 + 13;

/// A process that a shell started.
#[derive(Clone, Debug, Default)]
pub struct Child<'a> {
    /// The arguments of the first program that the process executed; `None` if it executed none.
    pub args: Option<Vec<&'a [u8]>>,
    /// Whether the last argument was cut off, or arguments are missing at the end.
    pub is_cut: bool,
    /// The exit status as the shell has it in `$?`; `None` if it is not known.
    pub status: Option<u32>,
}

/// A script, or commands of a script that run in a process of their own.
#[derive(Clone, Debug)]
pub struct Part {
    outline: Rc<Outline>,
    tree: Rc<Tree>,
    options: Options,
}

/// What ended a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A child of this number failed, and the script ended because of it.
    Child(usize),
    /// The script ended because of one of these children.
    OneOf(Vec<usize>),
    /// A builtin, or a statement such as `exit 4`, ended the script, and no child's failure did.
    Statement(CommandIx),
    Unknown,
}

/// What a script did, as far as it is proven.
#[derive(Clone, Debug)]
pub struct Course {
    pub ending: Ending,
    /// If a statement ended the script, the children whose failures may have led to it: background jobs, and commands that
    /// name a file which the statement, or the test that decided about it, names as well.
    pub linked: Vec<usize>,
    /// For each child, the command that it was started for.
    pub commands: Vec<Option<CommandIx>>,
    /// For each child, the commands of the script that it executed without a program of their own.
    pub parts: Vec<Option<Part>>,
}

impl Part {
    /// A script that a shell with these options runs.
    pub fn new(outline: Rc<Outline>, options: Options) -> Part {
        Part {
            tree: outline.body.clone(),
            outline,
            options,
        }
    }

    /// The name of the program that a command starts, if it is written out.
    pub fn program(&self, command: CommandIx) -> Option<&[u8]> {
        let command = self.outline.commands.get(command)?;
        command.words.first().and_then(Word::literal)
    }

    /// The line and the text of a command.
    pub fn text(&self, command: CommandIx) -> Option<(u32, &[u8])> {
        let command = self.outline.commands.get(command)?;
        let (from, to) = command.span;
        Some((command.line, self.outline.text.get(from..to)?))
    }

    /// Compares the script with the children of its shell, in the order of their starts, and with the exit status of
    /// the shell. `budget` is the number of steps that the comparison may still take, and is reduced. `None` if no way
    /// through the script fits, or if there are too many.
    pub fn course(
        &self,
        children: &[Child<'_>],
        status: u32,
        budget: &mut usize,
    ) -> Option<Course> {
        if *budget == 0 {
            return None;
        }
        let graph = flow::graph(&self.outline, &self.tree, self.options);
        let nodes = graph.as_ref().map_or(flow::MOST, |graph| graph.nodes.len());
        *budget = budget.saturating_sub(nodes + children.len().min(CHILDREN));
        let graph = graph?;
        // The simplest explanation counts: a file that could not be opened leaves no trace.
        let simple = self.explained(&graph, children, status, false, budget);
        simple.or_else(|| self.explained(&graph, children, status, true, budget))
    }

    fn explained(
        &self,
        graph: &Graph,
        children: &[Child<'_>],
        status: u32,
        has_silent_failures: bool,
        budget: &mut usize,
    ) -> Option<Course> {
        let first = children.len().saturating_sub(CHILDREN);
        let mut walk = Walk {
            outline: &self.outline,
            graph,
            children: children.get(first..).unwrap_or_default(),
            has_silent_failures,
            is_cut: first > 0,
            states: Vec::new(),
            steps: Vec::new(),
            waiting: BTreeMap::new(),
            ends: Vec::new(),
        };
        let starts = if first == 0 {
            vec![0]
        } else {
            (0..graph.nodes.len()).collect()
        };
        let is_done = walk.forward(starts);
        *budget = budget.saturating_sub(walk.steps.len());
        is_done?;
        let mut causes = Causes {
            walk: &walk,
            status,
            found: BTreeSet::new(),
            seen: HashSet::new(),
            feasible: Vec::new(),
            deciding: BTreeSet::new(),
            queue: Vec::new(),
            budget: BACK,
        };
        for end in &walk.ends {
            causes.of_end(*end);
        }
        let is_known = causes.budget > 0;
        let (found, feasible, mut deciding) = (causes.found, causes.feasible, causes.deciding);
        if found.is_empty() && is_known {
            return None;
        }
        let ending = if is_known {
            ending(&found, first)
        } else {
            Ending::Unknown
        };
        let live = walk.live(&feasible);
        let mut course = Course {
            ending,
            linked: Vec::new(),
            commands: vec![None; children.len()],
            parts: vec![None; children.len()],
        };
        walk.places(&live, first, self, &mut course);
        if let Ending::Statement(statement) = course.ending {
            deciding.insert(statement);
            let linked = walk.linked(&live, &deciding);
            course.linked = linked.into_iter().map(|at| first + at).collect();
        }
        Some(course)
    }
}

fn ending(found: &BTreeSet<Cause>, first: usize) -> Ending {
    let mut children = Vec::new();
    let mut others = Vec::new();
    for cause in found {
        match cause {
            Cause::Child(at) => children.push(first + at),
            other => others.push(*other),
        }
    }
    match (children.as_slice(), others.as_slice()) {
        ([only], []) => Ending::Child(*only),
        ([], [Cause::Statement(command)]) => Ending::Statement(*command),
        ([_, _, ..], []) => Ending::OneOf(children),
        _ => Ending::Unknown,
    }
}

/// A cause of the end of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Child(usize),
    Statement(CommandIx),
    Unclear,
}

type StateIx = usize;

/// A node of the graph before the child of this number was started.
#[derive(Clone, Copy, Debug)]
struct State {
    node: NodeIx,
    child: usize,
    /// The last step to this state, as a place in `Walk::steps` plus 1.
    step: usize,
}

/// A step from another state, and the step before it to the same state.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: StateIx,
    next: usize,
}

struct Walk<'a> {
    outline: &'a Outline,
    graph: &'a Graph,
    children: &'a [Child<'a>],
    /// Whether commands may fail that start no process, because a file could not be opened or a variable is not set.
    has_silent_failures: bool,
    /// Whether the first children are not compared.
    is_cut: bool,
    states: Vec<State>,
    steps: Vec<Step>,
    /// The states that have been reached, by the number of their child.
    waiting: BTreeMap<usize, HashMap<NodeIx, StateIx>>,
    /// The states at which the shell can have ended.
    ends: Vec<StateIx>,
}

impl Walk<'_> {
    fn forward(&mut self, starts: Vec<NodeIx>) -> Option<()> {
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

    /// Notes a step to a state. Returns `None` if there are too many states, and the state if it is new.
    fn reach(
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

    /// The states after a state.
    fn next(&self, state: State) -> Vec<(NodeIx, usize)> {
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
            // One of its ends has no way further.
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

    fn after_a_pipe(
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

    /// Whether a child can be a process that the shell starts at a place of its script.
    fn fits(&self, member: &Member, child: &Child<'_>) -> bool {
        match member {
            Member::Program(ix, words) => {
                let command = self.outline.commands.get(*ix);
                let words = words.as_ref().map(|words| words.as_slice());
                let words = words.or(command.map(|command| command.words.as_slice()));
                let opens = command.is_some_and(|command| command.opens);
                match &child.args {
                    // A fork that could not execute its program
                    None => child
                        .status
                        .is_none_or(|status| status > 125 || opens && matches!(status, 1 | 2)),
                    Some(args) => words.is_some_and(|words| are(words, args, child.is_cut)),
                }
            }
            Member::Forked(tree, _) => match &child.args {
                None => true,
                Some(args) => self.runs(tree, args, child.is_cut),
            },
        }
    }

    /// Whether one of the commands of a tree can be a program with these arguments. The last command of a process needs
    /// no process of its own.
    fn runs(&self, tree: &Tree, args: &[&[u8]], is_cut: bool) -> bool {
        let mut places = Vec::new();
        self.outline.collect(tree, &mut places);
        places.len() > WORDS
            || places.iter().any(|ix| {
                let command = self.outline.commands.get(*ix);
                let words = command.map(|command| command.words.as_slice());
                words.is_some_and(|words| self.may_run(words, args, is_cut))
            })
    }

    fn may_run(&self, words: &[Word], args: &[&[u8]], is_cut: bool) -> bool {
        let Some((first, rest)) = words.split_first() else {
            return false;
        };
        match first.literal() {
            Some(b"exec" | b"command") => are(rest, args, is_cut),
            Some(name) => {
                let mut functions = self.outline.functions.iter();
                functions.any(|function| function.name == name)
                    || matches!(name, b"eval" | b"." | b"source")
                    || are(words, args, is_cut)
            }
            None => true,
        }
    }

    fn steps_to(&self, at: StateIx) -> impl Iterator<Item = StateIx> + '_ {
        let mut next = self.states.get(at).map_or(0, |state| state.step);
        std::iter::from_fn(move || {
            let step = self.steps.get(next.checked_sub(1)?)?;
            next = step.next;
            Some(step.from)
        })
    }

    /// For each state, whether the shell can have come through it to one of these states.
    fn live(&self, ends: &[StateIx]) -> Vec<bool> {
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

    /// Finds the line and the commands of each child that has only one on all live ways.
    fn places(&self, live: &[bool], first: usize, part: &Part, course: &mut Course) {
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
                *inside = Some(Part {
                    outline: part.outline.clone(),
                    tree: tree.clone(),
                    options,
                });
            }
        }
    }

    fn place<'t>(&self, member: &'t Member, command: Option<CommandIx>) -> Place<'t> {
        match member {
            Member::Program(ix, _) => Place {
                command: Some(*ix),
                tree: None,
            },
            Member::Forked(tree, options) => Place {
                command: flow::command_of(tree).or(command),
                tree: Some((tree, *options)),
            },
        }
    }

    /// The failed children that may have led to a statement which ended the script.
    fn linked(&self, live: &[bool], deciding: &BTreeSet<CommandIx>) -> BTreeSet<usize> {
        let mut files: HashSet<&[u8]> = HashSet::new();
        for ix in deciding {
            let command = self.outline.commands.get(*ix);
            files.extend(command.into_iter().flat_map(files_of));
        }
        let mut linked = BTreeSet::new();
        for (state, _) in self.states.iter().zip(live).filter(|(_, live)| **live) {
            let what = self.graph.nodes.get(state.node).map(|node| &node.what);
            let (members, is_beside) = match what {
                Some(What::Start(member)) => (std::slice::from_ref(member), false),
                Some(What::Beside(member)) => (std::slice::from_ref(member), true),
                Some(What::Pipe { members, .. }) => (members.as_slice(), false),
                _ => continue,
            };
            if is_beside || members.iter().any(|member| self.names(member, &files)) {
                linked.extend(state.child..state.child + members.len());
            }
        }
        linked.retain(|at| {
            let child = self.children.get(*at);
            child.is_some_and(|child| child.status != Some(0))
        });
        linked
    }

    /// Whether commands of a process name one of these files.
    fn names(&self, member: &Member, files: &HashSet<&[u8]>) -> bool {
        let mut places = Vec::new();
        match member {
            Member::Program(ix, _) => places.push(*ix),
            Member::Forked(tree, _) => self.outline.collect(tree, &mut places),
        }
        let commands = places
            .iter()
            .filter_map(|ix| self.outline.commands.get(*ix));
        commands.flat_map(files_of).any(|file| files.contains(file))
    }
}

/// The words of a command that may be files.
fn files_of(command: &Command) -> impl Iterator<Item = &[u8]> {
    let words = command
        .words
        .iter()
        .skip(1)
        .map(|word| word.text.as_slice());
    let words = words.chain(command.output.as_deref());
    words.filter(|word| {
        let is_number = word.iter().all(u8::is_ascii_digit);
        word.len() > 1 && !is_number && !word.starts_with(b"-") && *word != b"]]" && *word != b"$?"
    })
}

/// The place of a child in the script.
#[derive(Clone, Copy, Debug, Default)]
struct Place<'a> {
    command: Option<CommandIx>,
    tree: Option<(&'a Rc<Tree>, Options)>,
}

impl<'a> Place<'a> {
    fn with(self, other: Place<'a>) -> Place<'a> {
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

/// The search for what a way back from the end of a script depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Search {
    /// The exit status with which the shell ended.
    Status,
    /// The exit status of a trap, which ended the shell.
    TrapStatus,
    /// The end before the traps, with whose status the shell ended.
    BeforeTraps,
    /// The end before the traps, whose status is not that of the shell. If it was no failure, this child of the trap is the
    /// cause.
    Earlier(Option<usize>),
    /// The test of the condition under which a statement ran.
    Guard { after: NodeIx, otherwise: Otherwise },
    /// The result of that test.
    Tested(Otherwise),
    /// The setting of a variable.
    Variable {
        name: Vec<u8>,
        usage: Usage,
        otherwise: Otherwise,
    },
    /// What came right before a statement.
    Before(Otherwise),
    /// The background jobs that failed, for which the shell waited.
    Jobs,
    /// The last failure in a loop, which began and ended with these nodes.
    Try(NodeIx, NodeIx, Otherwise),
}

/// What is known about the value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Usage {
    /// It is the exit status of the shell.
    Status,
    /// A test of it succeeded.
    Success(CommandIx),
    /// A test of it failed.
    Failure(CommandIx),
    Other,
}

/// What caused the end if the search finds no child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Otherwise {
    /// Another way is enough.
    Nothing,
    Unclear,
    Statement(CommandIx),
    /// A test that decided about a statement.
    Test(CommandIx),
}

struct Causes<'a> {
    walk: &'a Walk<'a>,
    status: u32,
    found: BTreeSet<Cause>,
    seen: HashSet<(StateIx, Search)>,
    /// The ends with a cause.
    feasible: Vec<StateIx>,
    /// The commands whose success decided that a statement ended the script.
    deciding: BTreeSet<CommandIx>,
    /// The states that remain to be searched from.
    queue: Vec<(StateIx, Search)>,
    budget: usize,
}

impl Causes<'_> {
    fn of_end(&mut self, end: StateIx) {
        let what = self.what(end);
        let search = match what {
            Some(What::EndedByTrap) => Search::TrapStatus,
            _ => Search::BeforeTraps,
        };
        let before = self.found.len();
        self.back(end, search);
        if self.found.len() > before || self.budget == 0 {
            self.feasible.push(end);
        }
    }

    fn what(&self, at: StateIx) -> Option<&What> {
        let state = self.walk.states.get(at)?;
        Some(&self.walk.graph.nodes.get(state.node)?.what)
    }

    /// Follows all ways back from a state.
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

    fn then(&mut self, from: StateIx, search: Search) {
        if self.seen.insert((from, search.clone())) {
            self.queue.push((from, search));
        }
    }

    fn at_the_start(&mut self, search: &Search) {
        match search {
            _ if self.walk.is_cut => {
                self.found.insert(Cause::Unclear);
            }
            Search::Jobs => {}
            // The script has done nothing that could fail.
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
                // A variable that the script sets is not set before.
                let mut commands = self.walk.outline.commands.iter();
                let is_own = commands.any(|command| value(command, name).is_some());
                if !is_own || self.is_fit(*usage, name, b"") {
                    self.otherwise(*otherwise);
                }
            }
        }
    }

    fn by_a_trap(&mut self, child: Option<usize>) {
        self.found
            .insert(child.map_or(Cause::Unclear, Cause::Child));
    }

    fn otherwise(&mut self, otherwise: Otherwise) {
        let cause = match otherwise {
            Otherwise::Nothing => return,
            Otherwise::Unclear => Cause::Unclear,
            Otherwise::Statement(command) | Otherwise::Test(command) => Cause::Statement(command),
        };
        self.found.insert(cause);
    }

    /// Looks at the step between two states. Returns what to search before `from`.
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
            Search::Jobs => {
                match node.what {
                    What::Beside(_) => self.blame(from, &node.what),
                    What::Wild => {
                        self.found.insert(Cause::Unclear);
                        return None;
                    }
                    _ => {}
                }
                Some(Search::Jobs)
            }
            Search::Tested(otherwise) => self.tested(from, to, otherwise),
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

    /// The children of a command or pipe that may have failed.
    fn failed_children(&self, at: StateIx, what: &What) -> Vec<usize> {
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
        // A command whose reader had enough has not failed by itself.
        let others: Vec<usize> = failed.iter().copied().filter(|at| !is_closed(at)).collect();
        if others.is_empty() {
            failed
        } else {
            others
        }
    }

    /// The children of a pipe that may be the cause of its failure.
    fn blame(&mut self, at: StateIx, what: &What) {
        for child in self.failed_children(at, what) {
            self.found.insert(Cause::Child(child));
        }
    }

    /// Whether the status of a command or pipe can be that of the shell.
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
                    return self.by_a_builtin(*builtin, failed, command, guard, Otherwise::Unclear);
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
                    self.found.extend(command.map(Cause::Statement));
                }
            }
            What::Unset => {
                if matches!(self.status, 1 | 2 | 127) {
                    self.found.extend(command.map(Cause::Statement));
                }
            }
            What::Status(status) => {
                if *status == self.status {
                    return self.by_a_statement(command, guard, Otherwise::Unclear);
                }
            }
            What::Not(status) => {
                if *status == self.status {
                    self.found.insert(Cause::Unclear);
                }
            }
            What::Value(Some(name)) => {
                return Some(Search::Variable {
                    name: name.clone(),
                    usage: Usage::Status,
                    otherwise: Otherwise::Unclear,
                });
            }
            What::Wild => self.by_the_unknown(from, command),
            What::Value(None) => {
                self.found.insert(Cause::Unclear);
            }
            What::Beside(_) | What::Ended | What::EndedByTrap => {}
        }
        None
    }

    fn command(&self, ix: Option<CommandIx>) -> Option<&Command> {
        self.walk.outline.commands.get(ix?)
    }

    /// Notes that a command whose commands are not known ended the script, or decided about the end. It is named if it
    /// started no process.
    fn by_the_unknown(&mut self, at: StateIx, command: Option<CommandIx>) {
        let walk = self.walk;
        let node = walk.states.get(at).map(|state| state.node);
        let is_same = |from: StateIx| walk.states.get(from).map(|state| state.node) == node;
        let cause = match command {
            Some(command) if !walk.steps_to(at).any(is_same) => Cause::Statement(command),
            _ => Cause::Unclear,
        };
        self.found.insert(cause);
    }

    /// What to search after a statement gave the status.
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

    /// What to search after a builtin failed, or decided about a statement.
    fn by_a_builtin(
        &mut self,
        builtin: Builtin,
        failed: bool,
        command: Option<CommandIx>,
        guard: Option<NodeIx>,
        otherwise: Otherwise,
    ) -> Option<Search> {
        let walk = self.walk;
        let test = command.and_then(|ix| Some((ix, walk.outline.commands.get(ix)?)));
        let waits = |command: &Command| {
            let first = command.words.first().and_then(Word::literal);
            first == Some(b"wait")
        };
        if test.is_some_and(|(_, command)| waits(command)) {
            return Some(Search::Jobs);
        }
        let Some((ix, test)) = test.filter(|_| builtin != Builtin::Any) else {
            self.found.insert(Cause::Unclear);
            return None;
        };
        let named = match otherwise {
            Otherwise::Test(_) | Otherwise::Nothing => otherwise,
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
        let variable = expanded.next().and_then(Word::variable);
        if let (Some(name), None) = (variable, expanded.next()) {
            return Some(Search::Variable {
                name: name.to_vec(),
                usage: if failed {
                    Usage::Failure(ix)
                } else {
                    Usage::Success(ix)
                },
                otherwise: named,
            });
        }
        match guard.filter(|_| is_comparison(test)) {
            Some(after) => Some(Search::Guard {
                after,
                otherwise: named,
            }),
            None => {
                self.otherwise(named);
                None
            }
        }
    }

    /// Looks for the command whose result was tested, at the step between two states.
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
            What::Start(_) | What::Pipe { .. } if failed => self.blame(from, &node.what),
            What::Start(_) => {
                self.deciding.extend(command);
                self.otherwise(otherwise);
            }
            What::Builtin(builtin) => {
                return self.by_a_builtin(*builtin, failed, command, guard, otherwise);
            }
            What::NotStarted | What::Unset => {
                self.otherwise(command.map_or(otherwise, Otherwise::Statement));
            }
            What::Status(status) if *status != 0 && command.is_some() => {
                return self.by_a_statement(command, guard, otherwise);
            }
            What::Value(Some(name)) | What::Case(name) => {
                return Some(Search::Variable {
                    name: name.clone(),
                    usage: Usage::Other,
                    otherwise,
                });
            }
            What::Value(None) | What::Wild => {
                self.found.insert(Cause::Unclear);
            }
            _ => self.otherwise(otherwise),
        }
        None
    }

    /// Whether a variable can have this value, as far as its usage shows it.
    fn is_fit(&self, usage: Usage, name: &[u8], value: &[u8]) -> bool {
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

    /// Looks for the last setting of a variable.
    fn variable(
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
            (What::Assign, Some(command)) => value(command, &name),
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
        let literal = value.literal();
        if literal.is_some_and(|value| !self.is_fit(usage, &name, value)) {
            return None;
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

    /// Whether the shell had failed before its traps.
    fn status_before_traps(
        &mut self,
        from: StateIx,
        failed: bool,
        child: Option<usize>,
    ) -> Option<Search> {
        let walk = self.walk;
        let state = walk.states.get(from)?;
        let what = &walk.graph.nodes.get(state.node)?.what;
        match what {
            What::Join(_) | What::Assign | What::Left(_) | What::Case(_) => {
                return Some(Search::Earlier(child));
            }
            What::Start(_) | What::Pipe { .. } if failed => self.blame(from, what),
            What::Start(_) | What::Pipe { .. } | What::Status(0) | What::Not(0) => {
                self.by_a_trap(child);
            }
            What::Builtin(_) if !failed => self.by_a_trap(child),
            _ => {
                self.found.insert(Cause::Unclear);
            }
        }
        None
    }
}

/// The value that a command gives to a variable.
fn value(command: &Command, name: &[u8]) -> Option<Word> {
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

/// Whether a test compares numbers or texts, and asks nothing about files.
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

/// Whether words can become these arguments of a process. An interpreter's name and its option may stand before them.
fn are(words: &[Word], args: &[&[u8]], is_cut: bool) -> bool {
    if can_be(words, args, is_cut) {
        return true;
    }
    let Some((first, rest)) = words.split_first() else {
        return false;
    };
    let base = |path: &[u8]| {
        let name = path.rsplit(|byte| *byte == b'/').next();
        name.unwrap_or_default().to_vec()
    };
    // `#!/usr/bin/env python3`
    (1..=3).any(|skipped| {
        let Some((script, after)) = args.get(skipped..).and_then(<[&[u8]]>::split_first) else {
            return false;
        };
        let is_script = match first.literal() {
            Some(name) => base(name) == base(script),
            None => first.is_many() || first.fits(script),
        };
        script.contains(&b'/') && is_script && can_be(rest, after, is_cut)
    })
}

/// Whether words can become these arguments.
fn can_be(words: &[Word], args: &[&[u8]], is_cut: bool) -> bool {
    if words.len() > WORDS || args.len() > WORDS {
        let first = words.first();
        return first
            .is_some_and(|word| word.is_many() || args.first().is_some_and(|arg| word.fits(arg)));
    }
    // The place after the last word that may be any number of arguments, and the argument to continue with.
    let mut retry: Option<(usize, usize)> = None;
    let (mut word, mut arg) = (0, 0);
    loop {
        match (words.get(word), args.get(arg)) {
            (Some(many), _) if many.is_many() => {
                word += 1;
                retry = Some((word, arg));
                continue;
            }
            (None, None) => return true,
            (Some(_), None) if is_cut => return true,
            (Some(one), Some(text)) if one.fits(text) || is_cut && arg + 1 == args.len() => {
                word += 1;
                arg += 1;
                continue;
            }
            _ => {}
        }
        match &mut retry {
            Some((after, from)) if *from < args.len() => {
                *from += 1;
                (word, arg) = (*after, *from);
            }
            _ => return false,
        }
    }
}
