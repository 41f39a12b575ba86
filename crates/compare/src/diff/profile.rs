//! Makes a tree of the functions in stacks that were sampled on a CPU: programs at the top, then the functions that
//! they call, and so on.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use tr_analyze::model::{Analysis, ProcessIx};
use tr_format::meta::Extra;
use tr_format::stack::Doing;

use super::run::Run;
use tr_insight::functions::frames::{Name, Names};
use tr_insight::functions::SampleSum;
use tr_insight::processes::label;
use tr_programs::program_name::ProgramName;
use tr_text::escape;

/// The largest number of nodes in the tree of functions of one run; a node takes some 60 bytes. When a tree has this
/// many nodes, samples with new stacks are left out.
const NODES: usize = 1 << 20;

/// The tree of functions from the sampled stacks: the roots are programs, and below each function are those that it
/// called. A caller has a lower number than its callees.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    names: Vec<NodeName>,
    numbers: HashMap<NodeName, u32>,
    nodes: Vec<Node>,
    /// The number of each node of the tree, which is its index in `nodes`.
    places: HashMap<Node, u32>,
}

/// A node in the tree of functions: a function, when called through a certain chain of callers, or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    /// The number of the node of the calling function; `None` for the node of a program.
    caller: Option<u32>,
    /// The index of the function's or program's name in the tree's list of names.
    name: u32,
}

/// The name of a node in the tree of functions: a program, or a function with the binary that contains it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeName {
    Program(ProgramName),
    Function(Name),
}

impl NodeName {
    /// The text that stands for this node of the tree of functions in pictures and in folded stacks.
    pub fn text(&self) -> String {
        match self {
            NodeName::Program(program) => program.to_string(),
            NodeName::Function(name) => name.function.clone(),
        }
    }
}

impl Tree {
    fn number(&mut self, name: &NodeName) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        number
    }

    /// The number of a node in the tree of functions, which is added if it is new; `None` if there are already
    /// `most` nodes.
    fn node(&mut self, node: Node, most: usize) -> Option<u32> {
        if let Some(number) = self.places.get(&node) {
            return Some(*number);
        }
        let number = Some(self.nodes.len()).filter(|nodes| *nodes < most);
        let number = u32::try_from(number?).ok()?;
        self.nodes.push(node);
        self.places.insert(node, number);
        Some(number)
    }

    /// The name of a node of the tree of functions.
    pub fn name(&self, node: u32) -> Option<&NodeName> {
        let node = self.nodes.get(node as usize)?;
        self.names.get(node.name as usize)
    }

    /// For each node of the tree of functions, the nodes of its callees ordered by name; and the nodes of the
    /// programs ordered by name.
    pub fn children(&self) -> (Vec<Vec<u32>>, Vec<u32>) {
        let mut children = vec![Vec::new(); self.nodes.len()];
        let mut programs = Vec::new();
        for (number, node) in (0..).zip(&self.nodes) {
            match node.caller.map(|caller| children.get_mut(caller as usize)) {
                Some(Some(list)) => list.push(number),
                _ => programs.push(number),
            }
        }
        let lists = children.iter_mut().chain([&mut programs]);
        for list in lists {
            list.sort_by_key(|node| self.name(*node));
        }
        (children, programs)
    }

    /// For each node of the tree of functions, its own value plus the values of all nodes below it.
    pub fn totals(&self, own: &[u64]) -> Vec<u64> {
        let mut totals = own.to_vec();
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let total = totals.get(at).copied().unwrap_or(0);
            if let Some(sum) = node
                .caller
                .and_then(|caller| totals.get_mut(caller as usize))
            {
                *sum = sum.saturating_add(total);
            }
        }
        totals
    }
}

/// The sampled CPU times of one function in one program, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionTimes {
    /// The time in which the function itself ran, from the samples in which this function was the innermost one of the
    /// stack.
    pub own: u64,
    /// The time in which the function or its callees ran, from the samples with the function anywhere in the stack.
    pub total: u64,
}

/// The stacks of one run that were sampled on a CPU, as a tree of functions with times.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    tree: Tree,
    /// For each node of the tree of functions, the time in ns in which its function was the innermost one of the
    /// stack.
    own: Vec<u64>,
    /// The number and the time of all samples on a CPU in the run, including those that are left out.
    pub all: SampleSum,
    /// The part of the sampled time in ns whose stacks are left out because the tree of functions is full.
    pub left_out: u64,
}

impl Profile {
    /// Makes the tree of functions from the stack samples of a recording; `None` if it has no stacks that were
    /// sampled on a CPU.
    pub fn of(analysis: &Analysis) -> Option<Profile> {
        if !analysis.meta.has(Extra::Stacks) {
            return None;
        }
        let mut names = Names::new(&analysis.stacks);
        let mut programs: HashMap<ProcessIx, Option<u32>> = HashMap::new();
        // A cache of nodes in the tree of functions. The key is a sampled stack: the node of the stack's program, and
        // the number of the stack in the recording.
        let mut nodes: HashMap<(Option<u32>, u32), Option<u32>> = HashMap::new();
        let mut profile = Profile::default();
        let samples = analysis.stacks.samples.iter();
        for sample in samples.filter(|sample| sample.doing == Doing::OnCpu) {
            let process = analysis.thread(sample.thread).process;
            let program = *programs.entry(process).or_insert_with(|| {
                let name = NodeName::Program(label::program(analysis.process(process)));
                let name = profile.tree.number(&name);
                profile.tree.node(Node { caller: None, name }, NODES)
            });
            let node = *nodes.entry((program, sample.stack)).or_insert_with(|| {
                let mut node = program;
                for number in names.of_stack(sample.stack).into_iter().rev() {
                    let name = NodeName::Function(names.name(number)?.clone());
                    let name = profile.tree.number(&name);
                    let caller = Some(node?);
                    node = Some(profile.tree.node(Node { caller, name }, NODES)?);
                }
                node
            });
            profile.all.add(SampleSum {
                samples: sample.count,
                ns: sample.ns,
            });
            profile.add(node, sample.ns);
        }
        Some(profile)
    }

    fn add(&mut self, node: Option<u32>, ns: u64) {
        self.own.resize(self.tree.nodes.len(), 0);
        match node.and_then(|node| self.own.get_mut(node as usize)) {
            Some(sum) => *sum = sum.saturating_add(ns),
            None => self.left_out = self.left_out.saturating_add(ns),
        }
    }

    /// The sampled CPU times of each function in each program of the run. A sample counts once in the total of a
    /// function that occurs several times in its stack.
    pub fn functions(&self) -> BTreeMap<(ProgramName, Name), FunctionTimes> {
        let mut sums: BTreeMap<(ProgramName, Name), FunctionTimes> = BTreeMap::new();
        let nodes = &self.tree.nodes;
        let totals = self.tree.totals(&self.own);
        for (number, node) in (0..).zip(nodes) {
            let caller_of = |caller: &u32| nodes.get(*caller as usize)?.caller;
            let mut callers: Vec<u32> = std::iter::successors(node.caller, caller_of).collect();
            // The outermost node of a stack is that of its program.
            let program = callers.pop().and_then(|program| self.tree.name(program));
            let (Some(NodeName::Program(program)), Some(NodeName::Function(function))) =
                (program, self.tree.name(number))
            else {
                continue;
            };
            let is_same = |caller: &u32| {
                let caller = nodes.get(*caller as usize);
                caller.is_some_and(|caller| caller.name == node.name)
            };
            let value = |all: &[u64]| all.get(number as usize).copied().unwrap_or(0);
            let key = (program.clone(), function.clone());
            let sum = sums.entry(key).or_default();
            sum.own = sum.own.saturating_add(value(&self.own));
            if !callers.iter().any(is_same) {
                sum.total = sum.total.saturating_add(value(&totals));
            }
        }
        sums
    }
}

/// The tree of functions of both sides of a comparison, with the times of the base and of the new runs. A side's
/// time is the mean over its runs.
#[derive(Debug)]
pub struct ProfilePair {
    pub tree: Tree,
    /// For each node of the tree of functions, the mean time in ns in which its function was the innermost one of
    /// the stack: in the base, and in the new runs.
    pub own: [Vec<u64>; 2],
}

impl ProfilePair {
    /// Merges the trees of functions of all runs of both sides of the comparison; `None` if a run has no stacks.
    pub fn new(sides: [&[Run]; 2]) -> Option<ProfilePair> {
        let mut tree = Tree::default();
        let mut own = [Vec::new(), Vec::new()];
        for (runs, own) in sides.into_iter().zip(&mut own) {
            for run in runs {
                add(&mut tree, own, run.profile.as_ref()?);
            }
            let count = u64::try_from(runs.len()).unwrap_or(u64::MAX).max(1);
            own.iter_mut().for_each(|sum| *sum /= count);
        }
        own.iter_mut()
            .for_each(|own| own.resize(tree.nodes.len(), 0));
        Some(ProfilePair { tree, own })
    }

    /// The two values of one node of the tree of functions: for the base, and for the new runs. `all` has the values of
    /// all nodes.
    pub fn at(all: &[Vec<u64>; 2], node: u32) -> [u64; 2] {
        let [base, new] = all;
        [base, new].map(|side| side.get(node as usize).copied().unwrap_or(0))
    }

    /// The stacks of both sides as folded lines: the program and its functions separated by semicolons, then the µs
    /// in the base and the µs in the new runs, each after a blank.
    pub fn folded(&self) -> String {
        let us = |ns: u64| ns.saturating_add(500) / 1000;
        let (children, programs) = self.tree.children();
        let mut out = String::new();
        let mut stack: Vec<String> = Vec::new();
        let mut open: Vec<(u32, usize)> =
            programs.iter().rev().map(|program| (*program, 0)).collect();
        while let Some((node, depth)) = open.pop() {
            stack.truncate(depth);
            let name = self.tree.name(node).map(NodeName::text);
            let name = escape::text(name.unwrap_or_default().as_bytes());
            stack.push(name.replace(';', ","));
            let [base, new] = ProfilePair::at(&self.own, node).map(us);
            if base > 0 || new > 0 {
                let stack = stack.join(";");
                let _ = writeln!(out, "{} {base} {new}", escape::page(&stack));
            }
            let callees = children.get(node as usize).into_iter().flatten();
            open.extend(callees.rev().map(|callee| (*callee, depth + 1)));
        }
        out
    }
}

/// Merges the tree of functions of one run into `tree`, and adds the run's times of the nodes to `own`.
fn add(tree: &mut Tree, own: &mut Vec<u64>, profile: &Profile) {
    // For each node of the run's profile, its number in `tree`.
    let mut nodes: Vec<Option<u32>> = Vec::with_capacity(profile.tree.nodes.len());
    for node in &profile.tree.nodes {
        let caller = node
            .caller
            .map(|caller| nodes.get(caller as usize).copied().flatten());
        let name = profile.tree.names.get(node.name as usize);
        let name = name.map(|name| tree.number(name));
        let node = match (caller, name) {
            (Some(None), _) | (_, None) => None,
            (caller, Some(name)) => {
                let caller = caller.flatten();
                tree.node(Node { caller, name }, usize::MAX)
            }
        };
        nodes.push(node);
    }
    own.resize(tree.nodes.len(), 0);
    for (node, ns) in nodes.into_iter().zip(&profile.own) {
        if let Some(sum) = node.and_then(|node| own.get_mut(node as usize)) {
            *sum = sum.saturating_add(*ns);
        }
    }
}

#[cfg(test)]
#[path = "tests/profile.rs"]
pub(super) mod tests;
