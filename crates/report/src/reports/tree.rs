//! The tree of processes, in as many lines as asked for: what weighs most stands
//! alone, small siblings of one kind are one line (`gcc × 33`).
//!
//! A subtree's weight is its CPU time and its wall time together, so that a test
//! that sleeps is found as well as a compiler. A parent weighs at least as much
//! as its child; so opening the heaviest node first needs no look ahead. Nothing
//! here recurses: a chain of 100,000 processes is a tree too.

use std::collections::{BinaryHeap, HashMap};

use serde::Serialize;
use serde_json::Value;
use tr_analyze::model::{Analysis, Process};

use crate::json;
use crate::reports::top::{exit_cell, status};
use crate::reports::{Report, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::{label, units};

/// Lines of text unless `--top` says how many.
const LINES: usize = 40;
/// A sibling of one kind stands alone when it has at least one part in so many
/// of all weight.
const ALONE: u64 = 20;

/// The report.
pub struct Tree<'a> {
    view: View<'a>,
    nodes: Vec<Node<'a>>,
    /// Names of programs, each once.
    programs: Vec<String>,
    /// The order of the whole tree: parents first, siblings by start.
    order: Vec<usize>,
    roots: Vec<usize>,
}

/// A process that was chosen, or an ancestor of one.
struct Node<'a> {
    process: &'a Process,
    /// It was not chosen itself.
    context: bool,
    parent: Option<usize>,
    children: Vec<usize>,
    depth: usize,
    /// Among the tree's programs.
    program: u32,
    /// Nodes with equal numbers look alike: the program, and what it started.
    shape: u32,
    /// Of it and its descendants among the nodes.
    sum: Sum,
}

/// Sums over nodes.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    processes: u64,
    own: u64,
    cpu: u64,
    unknown: u64,
    weight: u64,
    failed: u64,
    /// Longest wall time of any.
    longest: u64,
}

impl<'a> Tree<'a> {
    /// Of the processes that were chosen and their ancestors.
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

    /// Finds the roots and the order. Parents that go round in a circle, which
    /// only a damaged trace has, are cut open at the first of them.
    fn arrange(&mut self) {
        let mut seen = vec![false; self.nodes.len()];
        let all = 0..self.nodes.len();
        let starts: Vec<usize> = all
            .clone()
            .filter(|at| self.node(*at).is_some_and(|node| node.parent.is_none()))
            .chain(all)
            .collect();
        for start in starts {
            if seen.get(start) != Some(&false) {
                continue;
            }
            self.roots.push(start);
            if let Some(node) = self.nodes.get_mut(start) {
                node.parent = None;
            }
            let mut open = vec![(start, 0)];
            while let Some((at, depth)) = open.pop() {
                match seen.get_mut(at) {
                    Some(seen) if !*seen => *seen = true,
                    _ => continue,
                }
                self.order.push(at);
                let Some(node) = self.nodes.get_mut(at) else {
                    continue;
                };
                node.depth = depth;
                node.children
                    .retain(|child| seen.get(*child) == Some(&false));
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
            let mut sum = Sum {
                processes: 1,
                own,
                cpu: own,
                unknown: process.times.unknown,
                weight: 0,
                failed: u64::from(process.status.is_some_and(|raw| raw != 0)),
                longest: process.end.since(process.start),
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
            // How often it started what makes no other kind of it.
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

/// The chosen processes and their ancestors, with their children linked, and their
/// programs.
fn nodes<'a>(analysis: &'a Analysis, chosen: &[usize]) -> (Vec<Node<'a>>, Vec<String>) {
    let processes = &analysis.processes;
    let mut wanted = vec![None; processes.len()];
    for at in chosen {
        if let Some(slot) = wanted.get_mut(*at) {
            *slot = Some(false);
        }
    }
    for at in chosen {
        let parent = |at: usize| processes.get(at)?.parent.map(|ix| ix.0 as usize);
        let mut up = parent(*at);
        // Up to the first that is known already.
        while let Some(at) = up {
            match wanted.get_mut(at) {
                Some(slot @ None) => *slot = Some(true),
                _ => break,
            }
            up = parent(at);
        }
    }
    let mut place = vec![None; processes.len()];
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
    for (at, process) in processes.iter().enumerate() {
        let Some(context) = wanted.get(at).copied().flatten() else {
            continue;
        };
        if let Some(place) = place.get_mut(at) {
            *place = Some(nodes.len());
        }
        nodes.push(Node {
            process,
            context,
            parent: None,
            children: Vec::new(),
            depth: 0,
            program: program_of(process),
            shape: 0,
            sum: Sum::default(),
        });
    }
    for at in 0..nodes.len() {
        let parent = nodes.get(at).and_then(|node| node.process.parent);
        let parent = parent.and_then(|ix| place.get(ix.0 as usize).copied().flatten());
        if let Some(node) = nodes.get_mut(at) {
            node.parent = parent;
        }
        if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent)) {
            parent.children.push(at);
        }
    }
    (nodes, programs)
}

/// A line of text.
#[derive(Clone, Debug)]
enum Item {
    /// One process; whether what it started has lines of its own.
    One { node: usize, open: bool },
    /// Several of one kind.
    Many { first: usize, sum: Sum, count: u64 },
    /// What there was no room for.
    Rest { sum: Sum, count: u64 },
}

impl Tree<'_> {
    /// The lines below a node (or the roots), at most `room` of them: single
    /// processes by start, then kinds of small ones.
    fn items(&self, children: &[usize], least: u64, room: usize) -> Vec<Item> {
        let mut kinds: HashMap<u32, Vec<usize>> = HashMap::new();
        for child in children {
            if let Some(node) = self.node(*child) {
                kinds.entry(node.shape).or_default().push(*child);
            }
        }
        let weight = |at: &usize| self.node(*at).map_or(0, |node| node.sum.weight);
        // Each with its weight and its place among the siblings.
        let mut items: Vec<(u64, usize, Item)> = Vec::new();
        let one = |node: usize| (weight(&node), node, Item::One { node, open: false });
        for mut kind in kinds.into_values() {
            // The heaviest first; equal ones by start.
            kind.sort_by_key(|at| (u64::MAX - weight(at), *at));
            let small = kind.partition_point(|at| weight(at) >= least.max(1));
            // The slowest of a kind shows what the others do.
            let alone = match kind.len() - small {
                0 | 1 => kind.len(),
                2 | 3 => small,
                _ => small.max(1),
            };
            let (single, folded) = kind.split_at(alone);
            items.extend(single.iter().copied().map(one));
            if let Some(first) = folded.first() {
                let sum = self.over(folded);
                let count = folded.len() as u64;
                let many = Item::Many {
                    first: *first,
                    sum,
                    count,
                };
                items.push((sum.weight, *first, many));
            }
        }
        items.sort_by_key(|(weight, at, _)| (u64::MAX - weight, *at));
        let rest = if items.len() > room {
            items.split_off(room.saturating_sub(1))
        } else {
            Vec::new()
        };
        // By start; the kinds behind the single ones.
        items.sort_by_key(|(_, at, item)| (matches!(item, Item::Many { .. }), *at));
        let mut items: Vec<Item> = items.into_iter().map(|(.., item)| item).collect();
        if !rest.is_empty() {
            let mut all = Sum::default();
            for (.., item) in &rest {
                match item {
                    Item::One { node, .. } => all.add(&self.over(&[*node])),
                    Item::Many { sum, .. } | Item::Rest { sum, .. } => all.add(sum),
                }
            }
            let count = all.processes;
            items.push(Item::Rest { sum: all, count });
        }
        items
    }

    fn over(&self, nodes: &[usize]) -> Sum {
        let mut sum = Sum::default();
        for node in nodes.iter().filter_map(|at| self.node(*at)) {
            sum.add(&node.sum);
        }
        sum
    }

    /// The lines, with how deep each stands: the heaviest nodes are opened
    /// first, until there is no room.
    fn lines(&self, room: usize) -> Vec<(Item, Levels)> {
        let room = room.max(1);
        let all = self.over(&self.roots);
        let least = all.weight / ALONE;
        let mut below: HashMap<Option<usize>, Vec<Item>> = HashMap::new();
        let top = self.items(&self.roots, least, room);
        let mut used = top.len();
        let mut open = BinaryHeap::new();
        let push = |open: &mut BinaryHeap<(u64, std::cmp::Reverse<usize>)>, items: &[Item]| {
            for item in items {
                let Item::One { node: at, .. } = item else {
                    continue;
                };
                if let Some(node) = self.node(*at).filter(|node| !node.children.is_empty()) {
                    open.push((node.sum.weight, std::cmp::Reverse(*at)));
                }
            }
        };
        push(&mut open, &top);
        below.insert(None, top);
        while let Some((_, std::cmp::Reverse(at))) = open.pop() {
            if used >= room {
                break;
            }
            let Some(node) = self.node(at) else { continue };
            let items = self.items(&node.children, least, room - used);
            used += items.len();
            push(&mut open, &items);
            below.insert(Some(at), items);
        }
        // In order: what stands below a line comes right after it.
        let mut out = Vec::new();
        let mut stack: Vec<(std::vec::IntoIter<Item>, Levels)> = Vec::new();
        let first = below.remove(&None).unwrap_or_default();
        stack.push((first.into_iter(), Levels::default()));
        while let Some((items, above)) = stack.last_mut() {
            let Some(mut item) = items.next() else {
                stack.pop();
                continue;
            };
            let levels = above.below(items.len() > 0);
            let mut more = None;
            if let Item::One { node, open } = &mut item {
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

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.processes += other.processes;
        self.own = self.own.saturating_add(other.own);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.unknown = self.unknown.saturating_add(other.unknown);
        self.weight = self.weight.saturating_add(other.weight);
        self.failed += other.failed;
        self.longest = self.longest.max(other.longest);
    }
}

/// Where a line stands.
#[derive(Clone, Debug, Default)]
struct Levels {
    /// How many levels there are above it; a root has one.
    depth: usize,
    /// Of the last ones, whether more lines of that level follow.
    last: Vec<bool>,
}

impl Levels {
    /// More levels than that are drawn on no screen.
    const KEPT: usize = 64;

    fn below(&self, more: bool) -> Levels {
        let kept = self.last.len().saturating_sub(Levels::KEPT - 1);
        let mut last = self.last.get(kept..).unwrap_or_default().to_vec();
        last.push(more);
        Levels {
            depth: self.depth + 1,
            last,
        }
    }

    /// The lines that join a process to its parent. Far down only the last
    /// levels are drawn.
    fn joints(&self, room: usize, style: &Style) -> String {
        let [through, none, branch, end, cut] = match style.ascii {
            false => ["│  ", "   ", "├─ ", "└─ ", "⋯  "],
            true => ["|  ", "   ", "|- ", "`- ", ".. "],
        };
        let (Some((own, above)), 2..) = (self.last.split_last(), self.depth) else {
            return String::new();
        };
        // The roots' own level takes no room.
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

/// COMMAND is there before the recording begins, but held until then.
fn wall(analysis: &Analysis, process: &Process) -> Cell {
    let wall = process.end.since(process.start);
    let before = process.started_before && analysis.meta.root != Some(process.pid);
    match before || process.alive {
        true => Cell::AtLeast(wall),
        false => Cell::Time(wall),
    }
}

impl Report for Tree<'_> {
    fn text(&self, style: &Style) -> String {
        let lines = self.lines(self.view.ask.limit.unwrap_or(LINES));
        let threads = self.nodes.iter().any(|node| node.process.threads.len() > 1);
        let unknown = style.width >= 100 && self.nodes.iter().any(|n| n.sum.unknown > 0);
        let mut table = Table::new()
            .column("wall", "")
            .column("CPU", "")
            .column("with below", "");
        if unknown {
            table = table.column("unknown", "");
        }
        if threads {
            table = table.column("threads", "");
        }
        let title = match self.nodes.len() {
            1 => "1 process".to_owned(),
            n => format!("{} processes", units::count(n as u64)),
        };
        let mut table = table.column("exit", "").column("pid", "").name(title, "");
        let room = style.width.saturating_sub(50) / 2;
        for (item, levels) in &lines {
            let joints = levels.joints(room, style);
            let (sum, name, paint, cells) = match item {
                Item::One { node, open } => {
                    let Some(node) = self.node(*node) else {
                        continue;
                    };
                    let process = node.process;
                    let mut name = label::label(process);
                    let hidden = node.sum.processes - 1;
                    if !open && hidden > 0 {
                        name = format!("(+ {}) {name}", units::count(hidden));
                    }
                    let paint = match process.status {
                        Some(raw) if raw != 0 => Paint::Bad,
                        _ if node.context => Paint::Dim,
                        _ => Paint::Plain,
                    };
                    let cells = (
                        wall(self.view.analysis, process),
                        Cell::Count(process.threads.len() as u64),
                        exit_cell(process.status, process.alive),
                        Cell::Id(process.pid.0),
                    );
                    // With none below, that column would say the same again.
                    let below = match node.sum.processes {
                        1 => Cell::Empty,
                        _ => Cell::Time(node.sum.cpu),
                    };
                    let sum = (process.times.on_cpu, below, node.sum.unknown);
                    (sum, name, paint, cells)
                }
                Item::Many { first, sum, count } => {
                    let program = self.node(*first).map_or("", |node| self.program(node));
                    let name = format!(
                        "× {} {program}, longest {}",
                        units::count(*count),
                        units::time(sum.longest)
                    );
                    self.folded(sum, name)
                }
                Item::Rest { sum, count } => {
                    let name = match count {
                        1 => "1 more process".to_owned(),
                        _ => format!("{} more processes", units::count(*count)),
                    };
                    self.folded(sum, name)
                }
            };
            let (wall, count, exit, pid) = cells;
            let (own, below, not_known) = sum;
            let mut row = vec![wall, Cell::Time(own), below];
            if unknown {
                row.push(Cell::Time(not_known));
            }
            if threads {
                row.push(count);
            }
            row.extend([exit, pid]);
            table.row(row, joints + &name, paint);
        }
        table.text(style, 0)
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        #[derive(Serialize)]
        struct Row<'a> {
            pid: u32,
            ppid: Option<u32>,
            parent: Option<usize>,
            depth: usize,
            context: bool,
            program: &'a str,
            label: String,
            start_ns: u64,
            started_before: bool,
            end_ns: Option<u64>,
            wall_ns: u64,
            exit: Option<json::Exit>,
            threads: usize,
            on_cpu_ns: u64,
            tree_on_cpu_ns: u64,
            tree_unknown_ns: u64,
            tree_processes: u64,
        }
        let zero = self.view.analysis.meta.start;
        let mut place = vec![0; self.nodes.len()];
        for (new, old) in self.order.iter().enumerate() {
            if let Some(place) = place.get_mut(*old) {
                *place = new;
            }
        }
        let nodes = self.order.iter().filter_map(|at| self.node(*at));
        let rows = nodes.map(|node| {
            let process = node.process;
            Row {
                pid: process.pid.0,
                ppid: process.ppid.map(|ppid| ppid.0),
                parent: node.parent.and_then(|at| place.get(at).copied()),
                depth: node.depth,
                context: node.context,
                program: self.program(node),
                label: label::label(process),
                start_ns: process.start.since(zero),
                started_before: process.started_before,
                end_ns: (!process.alive).then(|| process.end.since(zero)),
                wall_ns: process.end.since(process.start),
                exit: process.status.map(json::exit),
                threads: process.threads.len(),
                on_cpu_ns: process.times.on_cpu,
                tree_on_cpu_ns: node.sum.cpu,
                tree_unknown_ns: node.sum.unknown,
                tree_processes: node.sum.processes,
            }
        });
        serde_json::to_value(rows.collect::<Vec<_>>()).map(Some)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed([
            "depth",
            "pid",
            "ppid",
            "start_ns",
            "wall_ns",
            "on_cpu_ns",
            "tree_on_cpu_ns",
            "tree_unknown_ns",
            "tree_processes",
            "threads",
            "exit",
            "program",
            "label",
        ]);
        let zero = self.view.analysis.meta.start;
        for node in self.order.iter().filter_map(|at| self.node(*at)) {
            let process = node.process;
            let cells = vec![
                Cell::Count(node.depth as u64),
                Cell::Id(process.pid.0),
                Cell::known(process.ppid, |ppid| Cell::Id(ppid.0)),
                match process.started_before {
                    true => Cell::Unknown,
                    false => Cell::At(process.start.since(zero)),
                },
                Cell::Time(process.end.since(process.start)),
                Cell::Time(process.times.on_cpu),
                Cell::Time(node.sum.cpu),
                Cell::Time(node.sum.unknown),
                Cell::Count(node.sum.processes),
                Cell::Count(process.threads.len() as u64),
                match process.status {
                    Some(raw) => Cell::Text(status(raw)),
                    None if process.alive => Cell::from("alive"),
                    None => Cell::Unknown,
                },
                Cell::from(self.program(node)),
                Cell::Text(label::label(process)),
            ];
            table.record(cells);
        }
        table.csv()
    }
}

/// What a line's columns say: CPU time of its own, with descendants, unknown;
/// the name; the colour; wall time, threads, exit, pid.
type Line = ((u64, Cell, u64), String, Paint, (Cell, Cell, Cell, Cell));

impl Tree<'_> {
    /// A line that stands for several processes.
    fn folded(&self, sum: &Sum, mut name: String) -> Line {
        let paint = match sum.failed {
            0 => Paint::Dim,
            failed => {
                name.push_str(&format!(", {} failed", units::count(failed)));
                Paint::Bad
            }
        };
        let sums = (sum.own, Cell::Time(sum.cpu), sum.unknown);
        let cells = (Cell::Empty, Cell::Empty, Cell::Empty, Cell::Empty);
        (sums, name, paint, cells)
    }
}
