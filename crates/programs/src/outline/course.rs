//! Finds the paths through a shell script that agree with the recorded processes which its shell
//! started, and the command that made the script end.

mod causes;
mod search;
mod variables;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use self::causes::Causes;
use self::search::EndingCause;
use self::walk::Walk;

use super::flow::{self, Graph};
use super::options::Options;
use super::tree::{CommandIx, Outline, StatusUsage, Tree};
use super::words::Word;

/// The largest number of child processes of a shell that are compared with its script. If there are
/// more, only the last ones are compared.
const CHILDREN: usize = 2_048;

/// The largest number of steps in the search back from the end of a script to the command that
/// caused the end.
const BACK: usize = 20_000;

/// The largest number of commands in braces after `||` that are compared with the failed command before them. A guess: scripts
/// print a message first.
const SUBSTITUTES: usize = 8;

/// A process that the shell of a script started.
#[derive(Clone, Debug, Default)]
pub struct Child<'a> {
    /// The arguments of the first program that the child process executed; `None` if it executed
    /// none.
    pub args: Option<Vec<&'a [u8]>>,
    /// Whether the recorded arguments of the child process are incomplete: the last one was cut
    /// off, or further ones are missing.
    pub is_cut: bool,
    /// The exit status of the child process, as the shell has it in `$?`; `None` if it is not
    /// known.
    pub status: Option<u32>,
}

/// A shell script, or the commands of a script that a subshell process runs.
#[derive(Clone, Debug)]
pub struct ScriptPart {
    outline: Rc<Outline>,
    tree: Rc<Tree>,
    options: Options,
}

/// A command of a shell script as it is written there, with its file and its line.
#[derive(Clone, Copy, Debug)]
pub struct CommandText<'a> {
    /// The path of the sourced file (`. FILE`) that contains the command; `None` if the script
    /// itself contains it.
    pub file: Option<&'a [u8]>,
    /// The number of the line on which the script's command begins, from 1.
    pub line: u32,
    pub text: &'a [u8],
}

/// The reason why the shell of a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The script ended because this child of its shell failed. The value is the index of the
    /// child.
    Child(usize),
    /// The script ended because of one of these children, or because of a statement.
    OneOf(Vec<usize>),
    /// The script ended because of these children of its shell. Each of their failures was enough
    /// alone: they were started for one command of a loop.
    Each(Vec<usize>),
    /// The script was ended by a builtin or a statement such as `exit 4`, and not by the failure of
    /// a child process.
    Statement(CommandIx),
    /// One of these statements ended the script, and no child's failure did.
    Statements(Vec<CommandIx>),
    Unknown,
}

/// The proven facts about one run of a shell script: why it ended, and which command started each
/// child process.
#[derive(Clone, Debug)]
pub struct Course {
    pub ending: Ending,
    /// If a statement ended the script, the children whose failures may have led to it: background jobs, and commands that
    /// name a file which the statement, or the test that decided about it, names as well. Without such children, the last
    /// command after whose success a variable would have got another value.
    pub linked: Vec<usize>,
    /// For each child process of the script's shell, the command that it was started for, if this
    /// is certain.
    pub commands: Vec<Option<CommandIx>>,
    /// For each child process of the script's shell, the commands of the script that it executed
    /// itself, as a subshell does.
    pub parts: Vec<Option<ScriptPart>>,
}

impl ScriptPart {
    /// A whole shell script, which a shell with these options runs.
    pub fn new(outline: Rc<Outline>, options: Options) -> ScriptPart {
        ScriptPart {
            tree: outline.body.clone(),
            outline,
            options,
        }
    }

    /// The name of the program that a command of the script starts, if it is written out; or the
    /// path after an expansion, such as `tools/x` of `"$top/tools/x"`.
    pub fn program(&self, command: CommandIx) -> Option<&[u8]> {
        let command = self.outline.commands.get(command)?;
        let word = command.words.first()?;
        let name = word.literal().or_else(|| word.path_after_expansion())?;
        let mut functions = self.outline.functions.iter();
        functions
            .all(|function| function.name != name)
            .then_some(name)
    }

    /// Whether the script runs another command if a command fails (`get -o x || echo > x`), and redirects its output to a
    /// file that the failed command names.
    pub fn has_substitute(&self, command: CommandIx) -> bool {
        let commands = &self.outline.commands;
        let Some(failed) = commands.get(command) else {
            return false;
        };
        let is_named = |word: &Word| {
            let mut names = failed.words.iter().chain(&failed.output);
            names.any(|name| name.text == word.text)
        };
        let file = self.outline.file_of(command);
        let text = file.map_or(&self.outline.text, |file| &file.text);
        let mut end = failed.span.1;
        let mut is_in_braces = false;
        // The commands are in the order of the text.
        for other in commands.iter().skip(command + 1).take(SUBSTITUTES) {
            let between = text.get(end..other.span.0).unwrap_or_default();
            let between: Vec<u8> = between
                .iter()
                .copied()
                .filter(|byte| !byte.is_ascii_whitespace())
                .collect();
            match between.as_slice() {
                _ if is_in_braces && !between.contains(&b'}') => {}
                b"||{" if !is_in_braces => is_in_braces = true,
                b"||" if !is_in_braces => {}
                _ => return false,
            }
            if other.output.as_ref().is_some_and(is_named) {
                return true;
            }
            if !is_in_braces {
                return false;
            }
            end = other.span.1;
        }
        false
    }

    /// The use that the script makes of the exit status of each of its commands, apart from `set -e`.
    pub fn status_usage(&self) -> BTreeMap<CommandIx, StatusUsage> {
        let mut found = BTreeMap::new();
        let outline = &self.outline;
        let functions = outline.functions.iter().map(|function| &function.body);
        let files = outline.files.iter().map(|file| &file.body);
        let whole = StatusUsage {
            is_used: true,
            is_condition: false,
        };
        for tree in std::iter::once(&outline.body).chain(functions).chain(files) {
            tree.with_usage(whole, &mut |ix, usage| {
                found.insert(ix, usage);
            });
        }
        found
    }

    /// The text of a command of the script, with its file and its line.
    pub fn text(&self, command: CommandIx) -> Option<CommandText<'_>> {
        Some(CommandText {
            file: self
                .outline
                .file_of(command)
                .map(|file| file.path.as_slice()),
            line: self.outline.commands.get(command)?.line,
            text: self.outline.text_of(command)?,
        })
    }

    /// Compares the script with the recorded child processes of its shell, in the order of their
    /// starts, and with the shell's exit status. `budget` is the number of steps that the
    /// comparison may take, and is reduced. Returns `None` if no path through the script agrees
    /// with the recording, if there are too many paths, or if parts of the script were not
    /// understood.
    pub fn course(
        &self,
        children: &[Child<'_>],
        status: u32,
        budget: &mut usize,
    ) -> Option<Course> {
        if *budget == 0 || !self.outline.is_whole {
            return None;
        }
        let graph = flow::graph(&self.outline, &self.tree, self.options);
        let nodes = graph.as_ref().map_or(flow::MOST, |graph| graph.nodes.len());
        *budget = budget.saturating_sub(nodes + children.len().min(CHILDREN));
        let graph = graph?;
        // The simplest explanation counts: a file that could not be opened leaves no trace.
        let simple = self.explained(&graph, children, status, false, budget);
        let is_known = |course: &Course| !matches!(course.ending, Ending::Unknown);
        if simple.as_ref().is_some_and(is_known) {
            return simple;
        }
        let silent = self.explained(&graph, children, status, true, budget);
        if silent.as_ref().is_some_and(is_known) {
            return silent;
        }
        simple.or(silent)
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
            is_bash: self.options.is_bash,
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
            missed: BTreeSet::new(),
            noted: HashSet::new(),
            budget: BACK,
            selects: false,
            in_unknown_files: BTreeSet::new(),
            known_ends: Vec::new(),
            is_written: false,
        };
        for end in &walk.ends {
            causes.of_end(*end);
        }
        let is_known = causes.budget > 0;
        let selects = causes.selects;
        let missed = causes.missed;
        let (mut found, feasible, mut deciding) = (causes.found, causes.feasible, causes.deciding);
        // A sourced file would have had to start the very command that the script itself starts after it.
        let is_shown = causes.is_written || walk.starts_the_last(&causes.known_ends);
        if found.is_empty() || !is_shown {
            found.extend(causes.in_unknown_files);
        }
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
        course.ending = course.of_one_command(children, selects);
        let statements = match &course.ending {
            Ending::Statement(statement) => std::slice::from_ref(statement),
            Ending::Statements(statements) => statements.as_slice(),
            _ => &[],
        };
        if !statements.is_empty() {
            deciding.extend(statements);
            let mut linked = walk.linked(&live, &deciding);
            if linked.is_empty() {
                linked = missed;
            }
            course.linked = linked.into_iter().map(|at| first + at).collect();
        }
        Some(course)
    }
}

impl Course {
    /// Decides between several failed children that the same command of the script started. If they
    /// had equal arguments, the last one was the decisive retry, and none was if a later one
    /// succeeded. Otherwise each failure counts, unless the script tolerates some of them.
    fn of_one_command(&self, children: &[Child<'_>], selects: bool) -> Ending {
        let Ending::OneOf(places) = &self.ending else {
            return self.ending.clone();
        };
        let command = |place: &usize| self.commands.get(*place).copied().flatten();
        let args = |place: &usize| children.get(*place).and_then(|child| child.args.as_ref());
        let status = |place: &usize| children.get(*place).and_then(|child| child.status);
        // A failure after which the same command succeeded was retried.
        let is_retried = |place: &usize| {
            let mut later = place + 1..children.len();
            let is_known = command(place).is_some() && args(place).is_some();
            is_known
                && later.any(|other| {
                    let is_same = command(&other) == command(place) && args(&other) == args(place);
                    is_same && status(&other) == Some(0)
                })
        };
        let mut places = places.clone();
        if !places.iter().all(is_retried) {
            places.retain(|place| !is_retried(place));
        }
        match places.as_slice() {
            [first, rest @ .., last] if command(first).is_some() => {
                let mut others = rest.iter().chain([last]);
                if !others.clone().all(|place| command(place) == command(first)) {
                    return Ending::OneOf(places.clone());
                }
                if others.clone().all(|place| args(place) == args(first)) {
                    return Ending::Child(*last);
                }
                // The script may treat another status in another way.
                if !selects && others.all(|place| status(place) == status(first)) {
                    Ending::Each(places.clone())
                } else {
                    Ending::OneOf(places.clone())
                }
            }
            _ => Ending::OneOf(places.clone()),
        }
    }
}

fn ending(found: &BTreeSet<EndingCause>, first: usize) -> Ending {
    let mut children = Vec::new();
    let mut statements = Vec::new();
    for cause in found {
        match cause {
            EndingCause::Child(at) => children.push(first + at),
            EndingCause::Statement(command) => statements.push(*command),
            EndingCause::Unclear => return Ending::Unknown,
        }
    }
    match (children.as_slice(), statements.as_slice()) {
        ([only], []) => Ending::Child(*only),
        ([_, ..], _) => Ending::OneOf(children),
        ([], [only]) => Ending::Statement(*only),
        ([], [_, ..]) => Ending::Statements(statements),
        ([], []) => Ending::Unknown,
    }
}
