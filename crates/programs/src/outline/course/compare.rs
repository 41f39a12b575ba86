//! Compares a script with the recorded processes that its shell started, and decides what ended the script.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::super::flow::{self, Graph};
use super::causes::Causes;
use super::search::EndingCause;
use super::walk::Walk;
use super::{Child, Course, Ending, ScriptPart};

/// The largest number of child processes of a shell that are compared with its script. If there are
/// more, only the last ones are compared.
const CHILDREN: usize = 2_048;

/// The largest number of steps in the search back from the end of a script to the command that
/// caused the end.
const STEPS_BACK: usize = 20_000;

impl ScriptPart {
    /// Compares the script with the recorded child processes of its shell, in the order of their starts, and with the
    /// shell's exit status. `budget` is the number of steps that the comparison may take, and is reduced. Returns
    /// `None` if no path through the script agrees with the recording, if there are too many paths, if parts of the
    /// script were not understood, or if `budget` is 0.
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
        let nodes = graph
            .as_ref()
            .map_or(flow::MOST_NODES, |graph| graph.nodes.len());
        *budget = budget.saturating_sub(nodes + children.len().min(CHILDREN));
        let graph = graph?;
        // The simplest explanation counts, so the first attempt assumes no failure that leaves no trace, such as a file
        // that could not be opened.
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
            budget: STEPS_BACK,
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
        // If a command in the script's own text started the last recorded child, a sourced file hardly ended the
        // script: the file would have had to start the same program.
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
    /// Decides between several failed children that the same command of the script started. A failure does not count
    /// if the same command with the same arguments succeeded later, unless this is so for all of them. If all had
    /// equal arguments, the last one counts, because it was the last retry. Otherwise each failure counts if all had
    /// the same exit status and the script tested nothing else; if not, one of them is the reason.
    fn of_one_command(&self, children: &[Child<'_>], selects: bool) -> Ending {
        let Ending::OneOf(places) = &self.ending else {
            return self.ending.clone();
        };
        let command = |place: &usize| self.commands.get(*place).copied().flatten();
        let args = |place: &usize| children.get(*place).and_then(|child| child.args.as_ref());
        let status = |place: &usize| children.get(*place).and_then(|child| child.status);
        // A failure was retried with success if the same command with the same arguments succeeded later.
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
                // If all children failed with the same status, each failure alone would have ended the script. With
                // different statuses this is not certain, because the script may treat each status differently.
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
