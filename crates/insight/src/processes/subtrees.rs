//! Arranges the chosen processes and their ancestors as a tree, with sums over each process and its descendants.
//!
//! No function here is recursive, because a tree may be a chain of 100,000 processes.

use std::collections::HashMap;

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_programs::program_name::ProgramName;

use crate::processes::{exit, label};
use crate::views::view::View;

/// The tree of the chosen processes and their ancestors, with sums over each process and its descendants.
pub struct Subtrees<'a> {
    analysis: &'a Analysis,
    /// For each process, its node in the tree; `None` for a process that is neither chosen nor an ancestor of a
    /// chosen process.
    nodes: Arena<ProcessIx, Option<Node>>,
    /// The processes of the tree in depth-first order: parents come before children, and siblings are in the order of
    /// their starts.
    pub order: Vec<ProcessIx>,
    pub roots: Vec<ProcessIx>,
}

/// The figures of one process in the process tree. The process was chosen by the user, or is an ancestor of a chosen
/// process.
#[derive(Default)]
pub struct Node {
    /// Whether the process is only in the tree as an ancestor of a chosen process.
    pub context: bool,
    pub depth: usize,
    /// The number of the shape of the process's subtree. Two processes have the same shape if their programs are equal
    /// and their children have the same set of shapes, in any order and number.
    pub shape: u32,
    pub sum: SubtreeSum,
}

/// Sums over a process and its descendants, or over several processes with their descendants.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubtreeSum {
    pub processes: u64,
    /// The CPU time in ns of the processes themselves, without their descendants' time.
    pub own: u64,
    /// The CPU time in nanoseconds of the processes and their descendants.
    pub cpu: u64,
    /// The time in nanoseconds in which the state of threads of these processes and their descendants is unknown.
    pub unknown: u64,
    /// The CPU time plus the wall time of these processes in nanoseconds, both with their descendants, so that a
    /// sleeping test is as visible as a working compiler.
    pub weight: u64,
    /// The number of failed processes among these processes and their descendants.
    pub failed: u64,
    /// The longest wall time in ns of one of the processes themselves. Their descendants do not count.
    pub longest: u64,
}

impl<'a> Subtrees<'a> {
    pub fn new(view: &View<'a>) -> Subtrees<'a> {
        let all = view.analysis.process_ids();
        let mut tree = Subtrees {
            analysis: view.analysis,
            nodes: all.map(|_| None).collect(),
            order: Vec::new(),
            roots: Vec::new(),
        };
        for ix in view.chosen {
            tree.nodes[*ix] = Some(Node::default());
        }
        for ix in view.chosen {
            for above in view.analysis.ancestors(*ix) {
                if tree.nodes[above].is_some() {
                    break; // its ancestors are known, too
                }
                tree.nodes[above] = Some(Node {
                    context: true,
                    ..Node::default()
                });
            }
        }
        tree.arrange();
        tree.sum();
        tree
    }

    pub fn process(&self, ix: ProcessIx) -> &'a Process {
        self.analysis.process(ix)
    }

    /// The processes of the tree with their nodes, in depth-first order: a parent comes before its children.
    pub fn ordered(&self) -> impl Iterator<Item = TreeRow<'_>> {
        let nodes = self.order.iter();
        nodes.filter_map(|ix| Some((*ix, self.nodes[*ix].as_ref()?)))
    }

    /// The children of a process that are in the tree, in the order of their starts.
    pub fn children(&self, ix: ProcessIx) -> impl DoubleEndedIterator<Item = ProcessIx> + '_ {
        let children = self.process(ix).children.iter().copied();
        children.filter(|ix| self.nodes[*ix].is_some())
    }

    /// The figures of a process in the process tree; `None` if it is not in the tree.
    pub fn node(&self, ix: ProcessIx) -> Option<&Node> {
        self.nodes[ix].as_ref()
    }

    /// The sums over a process of the tree and its descendants; zeros if the process is not in the tree.
    pub fn sum_of(&self, ix: ProcessIx) -> SubtreeSum {
        let node = self.nodes[ix].as_ref();
        node.map_or_else(SubtreeSum::default, |node| node.sum)
    }

    fn arrange(&mut self) {
        let roots = self.nodes.ids().filter(|ix| self.nodes[*ix].is_some());
        let roots = roots.filter(|ix| self.process(*ix).parent.is_none());
        self.roots = roots.collect();
        let roots = self.roots.iter().rev();
        let mut open: Vec<(ProcessIx, usize)> = roots.map(|ix| (*ix, 0)).collect();
        while let Some((ix, depth)) = open.pop() {
            self.order.push(ix);
            open.extend(self.children(ix).rev().map(|child| (child, depth + 1)));
            if let Some(node) = &mut self.nodes[ix] {
                node.depth = depth;
            }
        }
    }

    /// Computes the sums and the shapes of all nodes of the process tree. Children are visited before their parents,
    /// because the parents' values depend on them.
    fn sum(&mut self) {
        let mut programs: HashMap<ProgramName, u32> = HashMap::new();
        let mut shapes: HashMap<(u32, Vec<u32>), u32> = HashMap::new();
        let next = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        for ix in self.order.clone().into_iter().rev() {
            let process = self.process(ix);
            let own = process.times.on_cpu;
            let mut sum = SubtreeSum {
                processes: 1,
                own,
                cpu: own,
                unknown: process.times.unknown,
                weight: 0,
                failed: exit::failed(process.status).into(),
                longest: process.wall(),
            };
            let mut below = Vec::new();
            let mut last = process.end;
            for child in &process.children {
                let Some(node) = &self.nodes[*child] else {
                    continue;
                };
                sum.processes += node.sum.processes;
                sum.cpu = sum.cpu.saturating_add(node.sum.cpu);
                sum.unknown = sum.unknown.saturating_add(node.sum.unknown);
                sum.failed += node.sum.failed;
                last = last.max(self.process(*child).tree.end);
                below.push(node.shape);
            }
            // The number of equal children does not matter for the shape.
            below.sort_unstable();
            below.dedup();
            sum.weight = sum.cpu.saturating_add(last.since(process.start));
            let new = next(programs.len());
            let program = *programs.entry(label::program(process)).or_insert(new);
            let new = next(shapes.len());
            if let Some(node) = &mut self.nodes[ix] {
                node.shape = *shapes.entry((program, below)).or_insert(new);
                node.sum = sum;
            }
        }
    }

    /// The sums (such as CPU time and failed processes) over several subtrees of the process tree together.
    pub fn over(&self, nodes: &[ProcessIx]) -> SubtreeSum {
        let mut sum = SubtreeSum::default();
        nodes.iter().for_each(|ix| sum.add(&self.sum_of(*ix)));
        sum
    }
}

impl SubtreeSum {
    /// Adds the sums of another subtree of processes to these sums. The result has the longer one of the two longest
    /// wall times.
    pub fn add(&mut self, other: &SubtreeSum) {
        self.processes += other.processes;
        self.own = self.own.saturating_add(other.own);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.unknown = self.unknown.saturating_add(other.unknown);
        self.weight = self.weight.saturating_add(other.weight);
        self.failed += other.failed;
        self.longest = self.longest.max(other.longest);
    }
}

/// A row of the process tree: a process, and its node with the sums over the process and its descendants.
pub type TreeRow<'t> = (ProcessIx, &'t Node);
