//! The tree of processes in a limited number of lines: the heaviest have a line,
//! small siblings of one kind share one (`gcc × 33`).
//!
//! A subtree's weight is its CPU time plus its wall time, so that a test that
//! sleeps is as visible as a compiler. A parent weighs at least as much as its
//! child; so opening the heaviest node first needs no look-ahead. Nothing here
//! recurses: a chain of 100,000 processes is a tree too.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use serde_json::{json, Value};
use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::sort::Rows;

use crate::exit::{self, Exit};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::view::{Report, View};
use crate::{label, units};

/// The default number of lines.
const LINES: usize = 40;
/// A sibling of a kind has a line of its own from this part of the whole weight
/// on: 1/20.
const ALONE: u64 = 20;

pub struct Tree<'a> {
    view: View<'a>,
    nodes: Vec<Node<'a>>,
    /// The programs' names, each once.
    programs: Vec<String>,
    /// Depth first: parents before children, siblings by start.
    order: Vec<usize>,
    roots: Vec<usize>,
}

/// A chosen process, or an ancestor of one.
struct Node<'a> {
    process: &'a Process,
    /// An ancestor that was not chosen.
    context: bool,
    parent: Option<usize>,
    children: Vec<usize>,
    depth: usize,
    program: u32,
    /// Equal for nodes with the same program and children of the same shapes.
    shape: u32,
    /// The sum over it and its descendants.
    sum: SubtreeSum,
}

#[derive(Clone, Copy, Debug, Default)]
struct SubtreeSum {
    processes: u64,
    own: u64,
    cpu: u64,
    unknown: u64,
    weight: u64,
    failed: u64,
    longest: u64,
}

impl<'a> Tree<'a> {
    /// The tree of the chosen processes and their ancestors.
    pub fn new(view: &View<'a>) -> Tree<'a> {
        let (nodes, programs) = nodes(view.analysis, view.chosen);
        let mut tree = Tree {
            view: *view,
            nodes,
            programs,
            order: Vec::new(),
            roots: Vec::new(),
        };
        tree.arrange();
        tree.sum();
        tree
    }

    fn node(&self, at: usize) -> Option<&Node<'a>> {
        self.nodes.get(at)
    }

    fn program(&self, node: &Node) -> &str {
        let program = self.programs.get(node.program as usize);
        program.map_or("", String::as_str)
    }

    fn arrange(&mut self) {
        let roots = 0..self.nodes.len();
        let roots = roots.filter(|at| self.node(*at).is_some_and(|node| node.parent.is_none()));
        self.roots = roots.collect();
        for start in self.roots.clone() {
            let mut open = vec![(start, 0)];
            while let Some((at, depth)) = open.pop() {
                self.order.push(at);
                let Some(node) = self.nodes.get_mut(at) else {
                    continue;
                };
                node.depth = depth;
                open.extend(node.children.iter().rev().map(|child| (*child, depth + 1)));
            }
        }
    }

    /// Sums and shapes, children first.
    fn sum(&mut self) {
        let mut shapes: HashMap<(u32, Vec<u32>), u32> = HashMap::new();
        for at in self.order.clone().into_iter().rev() {
            let Some(node) = self.node(at) else { continue };
            let process = node.process;
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
            for child in node.children.iter().filter_map(|child| self.node(*child)) {
                sum.processes += child.sum.processes;
                sum.cpu = sum.cpu.saturating_add(child.sum.cpu);
                sum.unknown = sum.unknown.saturating_add(child.sum.unknown);
                sum.failed += child.sum.failed;
                last = last.max(child.process.tree.end);
                below.push(child.shape);
            }
            // The number of equal children does not matter.
            below.sort_unstable();
            below.dedup();
            sum.weight = sum.cpu.saturating_add(last.since(process.start));
            let key = (node.program, below);
            let next = u32::try_from(shapes.len()).unwrap_or(u32::MAX);
            let shape = *shapes.entry(key).or_insert(next);
            if let Some(node) = self.nodes.get_mut(at) {
                (node.sum, node.shape) = (sum, shape);
            }
        }
    }
}

/// The chosen processes and their ancestors, linked to their children; the names
/// of their programs.
fn nodes<'a>(analysis: &'a Analysis, chosen: &[ProcessIx]) -> (Vec<Node<'a>>, Vec<String>) {
    // Those chosen, and their ancestors: these are context.
    let all = analysis.process_ids();
    let mut wanted: Arena<_, _> = all.map(|_| None).collect();
    chosen.iter().for_each(|ix| wanted[*ix] = Some(false));
    for ix in chosen {
        for above in analysis.ancestors(*ix) {
            if wanted[above].is_some() {
                break; // its ancestors are known, too
            }
            wanted[above] = Some(true);
        }
    }
    let mut place: Arena<ProcessIx, _> = wanted.map(|_| None);
    let mut nodes = Vec::with_capacity(wanted.iter().flatten().count());
    let mut programs = Vec::new();
    let mut known = HashMap::new();
    let mut program_of = |process: &Process| {
        let next = u32::try_from(programs.len()).unwrap_or(u32::MAX);
        *known
            .entry(label::program(process))
            .or_insert_with_key(|name: &String| {
                programs.push(name.clone());
                next
            })
    };
    for ix in wanted.ids() {
        let Some(context) = wanted[ix] else {
            continue;
        };
        let process = analysis.process(ix);
        place[ix] = Some(nodes.len());
        nodes.push(Node {
            process,
            context,
            parent: None,
            children: Vec::new(),
            depth: 0,
            program: program_of(process),
            shape: 0,
            sum: SubtreeSum::default(),
        });
    }
    for at in 0..nodes.len() {
        let parent = nodes.get(at).and_then(|node| node.process.parent);
        let parent = parent.and_then(|ix| place[ix]);
        if let Some(node) = nodes.get_mut(at) {
            node.parent = parent;
        }
        if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent)) {
            parent.children.push(at);
        }
    }
    (nodes, programs)
}

#[derive(Clone, Debug)]
enum TreeItem {
    /// One process; whether its children have lines of their own.
    One {
        node: usize,
        open: bool,
    },
    Folded {
        sum: SubtreeSum,
        name: String,
    },
}

impl Tree<'_> {
    /// The lines below a node (or of the roots), at most `room`: single processes
    /// by wall time, then kinds of small ones, then the rest.
    fn items(&self, children: &[usize], least: u64, room: usize) -> Vec<TreeItem> {
        let mut kinds: HashMap<u32, Vec<usize>> = HashMap::new();
        for child in children {
            if let Some(node) = self.node(*child) {
                kinds.entry(node.shape).or_default().push(*child);
            }
        }
        let weight = |at: &usize| self.node(*at).map_or(0, |node| node.sum.weight);
        // With its weight and its index among the siblings.
        let mut items: Vec<(u64, usize, TreeItem)> = Vec::new();
        let one = |node: usize| (weight(&node), node, TreeItem::One { node, open: false });
        for mut kind in kinds.into_values() {
            // The heaviest first; equal ones by start.
            kind.order_by_key(|at| (Reverse(weight(at)), *at));
            let small = kind.partition_point(|at| weight(at) >= least.max(1));
            // The slowest of a kind stands for the others.
            let alone = match kind.len() - small {
                0 | 1 => kind.len(),
                2 | 3 => small,
                _ => small.max(1),
            };
            let (single, folded) = kind.split_at(alone);
            items.extend(single.iter().copied().map(one));
            if let Some(first) = folded.first() {
                let sum = self.over(folded);
                let program = self.node(*first).map_or("", |node| self.program(node));
                let count = units::count(folded.len() as u64);
                let longest = units::time(sum.longest);
                let name = format!("× {count} {program}, longest {longest}");
                items.push((sum.weight, *first, TreeItem::Folded { sum, name }));
            }
        }
        items.order_by_key(|(weight, at, _)| (Reverse(*weight), *at));
        let rest = if items.len() > room {
            items.split_off(room.saturating_sub(1))
        } else {
            Vec::new()
        };
        let wall = |item: &TreeItem| match item {
            TreeItem::One { node, .. } => self.node(*node).map_or(0, |node| node.sum.longest),
            TreeItem::Folded { .. } => 0,
        };
        items.order_by_key(|(_, at, item)| {
            (
                matches!(item, TreeItem::Folded { .. }),
                Reverse(wall(item)),
                *at,
            )
        });
        let mut items: Vec<TreeItem> = items.into_iter().map(|(.., item)| item).collect();
        if !rest.is_empty() {
            let mut sum = SubtreeSum::default();
            for (.., item) in &rest {
                match item {
                    TreeItem::One { node, .. } => sum.add(&self.over(&[*node])),
                    TreeItem::Folded { sum: folded, .. } => sum.add(folded),
                }
            }
            let name = units::plural(sum.processes, "more process", "more processes");
            items.push(TreeItem::Folded { sum, name });
        }
        items
    }

    fn over(&self, nodes: &[usize]) -> SubtreeSum {
        let mut sum = SubtreeSum::default();
        for node in nodes.iter().filter_map(|at| self.node(*at)) {
            sum.add(&node.sum);
        }
        sum
    }

    /// The lines with their depths: the heaviest nodes are opened first, until
    /// there is no room.
    fn lines(&self, room: usize) -> Vec<(TreeItem, Levels)> {
        let room = room.max(1);
        let all = self.over(&self.roots);
        let least = all.weight / ALONE;
        let mut below: HashMap<Option<usize>, Vec<TreeItem>> = HashMap::new();
        let top = self.items(&self.roots, least, room);
        let mut used = top.len();
        let mut open = BinaryHeap::new();
        let push = |open: &mut BinaryHeap<(u64, Reverse<usize>)>, items: &[TreeItem]| {
            for item in items {
                let TreeItem::One { node: at, .. } = item else {
                    continue;
                };
                if let Some(node) = self.node(*at).filter(|node| !node.children.is_empty()) {
                    open.push((node.sum.weight, Reverse(*at)));
                }
            }
        };
        push(&mut open, &top);
        below.insert(None, top);
        while let Some((_, Reverse(at))) = open.pop() {
            if used >= room {
                break;
            }
            let Some(node) = self.node(at) else { continue };
            let items = self.items(&node.children, least, room - used);
            used += items.len();
            push(&mut open, &items);
            below.insert(Some(at), items);
        }
        // Depth first.
        let mut out = Vec::new();
        let mut stack: Vec<(std::vec::IntoIter<TreeItem>, Levels)> = Vec::new();
        let first = below.remove(&None).unwrap_or_default();
        stack.push((first.into_iter(), Levels::default()));
        while let Some((items, above)) = stack.last_mut() {
            let Some(mut item) = items.next() else {
                stack.pop();
                continue;
            };
            let levels = above.below(items.len() > 0);
            let mut more = None;
            if let TreeItem::One { node, open } = &mut item {
                more = below.remove(&Some(*node));
                *open = more.is_some();
            }
            out.push((item, levels.clone()));
            if let Some(more) = more {
                stack.push((more.into_iter(), levels));
            }
        }
        out
    }
}

impl SubtreeSum {
    fn add(&mut self, other: &SubtreeSum) {
        self.processes += other.processes;
        self.own = self.own.saturating_add(other.own);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.unknown = self.unknown.saturating_add(other.unknown);
        self.weight = self.weight.saturating_add(other.weight);
        self.failed += other.failed;
        self.longest = self.longest.max(other.longest);
    }
}

/// A line's place in the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    /// A root has depth 1.
    depth: usize,
    /// For each of the last levels, whether more of its lines follow.
    last: Vec<bool>,
}

impl Levels {
    /// No screen draws more levels.
    const KEPT: usize = 64;

    pub(super) fn below(&self, more: bool) -> Levels {
        let kept = self.last.len().saturating_sub(Levels::KEPT - 1);
        let mut last = self.last.get(kept..).unwrap_or_default().to_vec();
        last.push(more);
        Levels {
            depth: self.depth + 1,
            last,
        }
    }

    /// The lines from a process to its parents; only the last levels of a deep
    /// one.
    pub(super) fn joints(&self, room: usize, style: &Style) -> String {
        let [through, none, branch, end, cut] = match style.ascii {
            false => ["│  ", "   ", "├─ ", "└─ ", "⋯  "],
            true => ["|  ", "   ", "|- ", "`- ", ".. "],
        };
        let (Some((own, above)), 2..) = (self.last.split_last(), self.depth) else {
            return String::new();
        };
        // The roots' level has no lines.
        let above_count = self.depth - 2;
        let most = (room / 3).max(2).min(above_count).min(above.len());
        let mut out = String::new();
        if most < above_count {
            out.push_str(cut);
        }
        for more in above.get(above.len() - most..).unwrap_or_default() {
            out.push_str(if *more { through } else { none });
        }
        out.push_str(if *own { branch } else { end });
        out
    }
}

/// A process's wall time; a lower bound if it was alive before or after the
/// recording. COMMAND's process waits for the recording to start.
fn wall(analysis: &Analysis, process: &Process) -> Cell {
    let wall = process.wall();
    let before = process.started_before && analysis.meta.root != Some(process.pid);
    if before || process.alive {
        Cell::AtLeast(wall)
    } else {
        Cell::Time(wall)
    }
}

struct TreeLine {
    name: String,
    paint: Paint,
    wall: Cell,
    own: u64,
    below: Cell,
    unknown: u64,
    threads: Cell,
    exit: Cell,
    pid: Cell,
}

impl Tree<'_> {
    fn line(&self, item: &TreeItem) -> Option<TreeLine> {
        let (node, open) = match item {
            TreeItem::Folded { sum, name } => return Some(TreeLine::folded(sum, name)),
            TreeItem::One { node, open } => (self.node(*node)?, *open),
        };
        let process = node.process;
        let mut name = label::label(process);
        let hidden = node.sum.processes - 1;
        if !open && hidden > 0 {
            name = format!("(+ {}) {name}", units::count(hidden));
        }
        Some(TreeLine {
            name,
            paint: match exit::failed(process.status) {
                true => Paint::Bad,
                false if node.context => Paint::Dim,
                false => Paint::Plain,
            },
            wall: wall(self.view.analysis, process),
            own: process.times.on_cpu,
            // Without children the column would repeat the last one.
            below: match hidden {
                0 => Cell::Empty,
                _ => Cell::Time(node.sum.cpu),
            },
            unknown: node.sum.unknown,
            threads: Cell::Count(process.threads.len() as u64),
            exit: exit::cell(process.status, process.alive),
            pid: Cell::Id(process.pid.0),
        })
    }

    /// The columns of nodes in JSON and CSV; `places` are the nodes' indexes in the document.
    fn rows<'t>(&'t self, places: &'t [usize]) -> Table<'t, &'t Node<'t>> {
        let since = |time| self.view.since(time);
        Table::new("", |node: &&Node<'_>| label::label(node.process))
            .data("depth", |node| node.depth)
            .data("pid", |node| node.process.pid.0)
            .data("ppid", |node| node.process.ppid.map(|ppid| ppid.0))
            .json_data("parent", |node| {
                node.parent.and_then(|at| places.get(at)).copied()
            })
            .json_data("context", |node| node.context)
            .json_data("start_ns", move |node| since(node.process.start))
            .json_data("started_before", |node| node.process.started_before)
            .csv_data("start_ns", move |node| {
                (!node.process.started_before).then(|| since(node.process.start))
            })
            .json_data("end_ns", move |node| {
                (!node.process.alive).then(|| since(node.process.end))
            })
            .data("wall_ns", |node| node.process.wall())
            .data("on_cpu_ns", |node| node.process.times.on_cpu)
            .data("tree_on_cpu_ns", |node| node.sum.cpu)
            .data("tree_unknown_ns", |node| node.sum.unknown)
            .data("tree_processes", |node| node.sum.processes)
            .data("threads", |node| node.process.threads.len())
            .csv_data("exit", |node| {
                let alive = node.process.alive.then(|| "alive".to_owned());
                node.process.status.map(exit::words).or(alive)
            })
            .json_data("exit", |node| json!(node.process.status.map(Exit::from)))
            .data("program", |node| self.program(node))
            .named("label")
    }

    fn ordered(&self) -> impl Iterator<Item = &Node<'_>> {
        self.order.iter().filter_map(|at| self.node(*at))
    }
}

impl TreeLine {
    fn folded(sum: &SubtreeSum, name: &str) -> TreeLine {
        let failed = match sum.failed {
            0 => String::new(),
            failed => format!(", {} failed", units::count(failed)),
        };
        TreeLine {
            name: format!("{name}{failed}"),
            paint: if sum.failed > 0 {
                Paint::Bad
            } else {
                Paint::Dim
            },
            wall: Cell::Empty,
            own: sum.own,
            below: Cell::Time(sum.cpu),
            unknown: sum.unknown,
            threads: Cell::Empty,
            exit: Cell::Empty,
            pid: Cell::Empty,
        }
    }
}

impl Report for Tree<'_> {
    fn text(&self, style: &Style) -> String {
        let threads = self.nodes.iter().any(|node| node.process.threads.len() > 1);
        let unknown = style.width >= 100 && self.nodes.iter().any(|n| n.sum.unknown > 0);
        let room = style.width.saturating_sub(50) / 2;
        let lines = self.lines(self.view.ask.limit.unwrap_or(LINES)).into_iter();
        let lines = lines.filter_map(|(item, levels)| {
            let line = self.line(&item)?;
            let name = levels.joints(room, style) + &line.name;
            Some(TreeLine { name, ..line })
        });
        let title = units::plural(self.nodes.len() as u64, "process", "processes");
        Table::new(title, |line: &TreeLine| line.name.clone())
            .column("wall", |line| line.wall.clone())
            .column("CPU", |line| Cell::Time(line.own))
            .column("with below", |line| line.below.clone())
            .column("unknown", |line| Cell::Time(line.unknown))
            .shown(unknown)
            .column("threads", |line| line.threads.clone())
            .shown(threads)
            .column("exit", |line| line.exit.clone())
            .column("pid", |line| line.pid.clone())
            .paint(|line| line.paint)
            .text(lines, style, 0)
    }

    fn json(&self) -> Option<Value> {
        let mut places = vec![0; self.nodes.len()];
        for (new, old) in self.order.iter().enumerate() {
            if let Some(place) = places.get_mut(*old) {
                *place = new;
            }
        }
        let table = self.rows(&places);
        Some(table.rows(self.ordered()))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        self.rows(&[]).csv(self.ordered())
    }
}
