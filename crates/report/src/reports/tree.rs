//! The report with the tree of processes in a limited number of lines: the heaviest processes have a line, and small
//! siblings of one kind share one (`gcc × 33`).
//!
//! A subtree's weight is its CPU time plus its wall time, so that a test that sleeps is as visible as a compiler. A
//! parent weighs at least as much as each child. So the lines can be found by always opening the heaviest node next. No
//! function here is recursive, because a chain of 100,000 processes is a tree as well.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::status;
use crate::status::Exit;
use serde_json::{json, Value};
use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, Process, ProcessIx};

use crate::output::Report;
use tr_insight::processes::exit;
use tr_insight::processes::label;
use tr_insight::processes::subtrees::{SubtreeSum, Subtrees, TreeRow};
use tr_insight::views::view::View;
use tr_text::levels::Levels;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;
use tr_text::words::UNKNOWN;

/// The largest number of lines of the tree of processes as text, unless `--top` is given.
const LINES: usize = 40;
/// The divisor that decides which of several small siblings in the tree of processes get a line of their own: those
/// with at least a twentieth of the whole tree's weight.
const ALONE_PART: u64 = 20;

pub struct Tree<'a> {
    view: View<'a>,
    nodes: Subtrees<'a>,
}

impl<'a> Tree<'a> {
    /// Makes the report with the tree of the chosen processes and their ancestors.
    pub fn new(view: &View<'a>) -> Tree<'a> {
        Tree {
            view: *view,
            nodes: Subtrees::new(view),
        }
    }
}

#[derive(Clone, Debug)]
enum TreeItem {
    /// A line of the tree for a single process, and whether its children have lines of their own below it.
    One {
        ix: ProcessIx,
        open: bool,
    },
    Folded {
        sum: SubtreeSum,
        name: String,
    },
}

impl Tree<'_> {
    /// The lines for the children of a process (or for the roots of the tree), at most `room` of them. Single
    /// processes come first, by wall time, then groups of small processes of one kind, then the rest.
    fn items(
        &self,
        children: impl IntoIterator<Item = ProcessIx>,
        least: u64,
        room: usize,
    ) -> Vec<TreeItem> {
        let mut kinds: HashMap<u32, Vec<ProcessIx>> = HashMap::new();
        for child in children {
            if let Some(node) = self.nodes.node(child) {
                kinds.entry(node.shape).or_default().push(child);
            }
        }
        let weight = |ix: &ProcessIx| self.nodes.sum_of(*ix).weight;
        // Each line comes with the weight (CPU time plus wall time) and the first of its processes. The lines are
        // sorted by these two.
        let mut items: Vec<(u64, ProcessIx, TreeItem)> = Vec::new();
        let one = |ix: ProcessIx| (weight(&ix), ix, TreeItem::One { ix, open: false });
        for mut kind in kinds.into_values() {
            // The process with the greatest weight (CPU time plus wall time) comes first. Processes with equal weights
            // are in the order of their start.
            kind.sort_unstable_by_key(|ix| (Reverse(weight(ix)), *ix));
            let small = kind.partition_point(|ix| weight(ix) >= least.max(1));
            // Two or more small processes of one kind share a line. If there are four or more small processes, the
            // heaviest process of the kind has a line of its own.
            let alone = match kind.len() - small {
                0 | 1 => kind.len(),
                2 | 3 => small,
                _ => small.max(1),
            };
            let (single, folded) = kind.split_at(alone);
            items.extend(single.iter().copied().map(one));
            if let Some(first) = folded.first() {
                let sum = self.nodes.over(folded);
                let program = label::program(self.nodes.process(*first));
                let count = units::count(folded.len() as u64);
                let longest = units::time(sum.longest);
                let name = format!("× {count} {program}, longest {longest}");
                items.push((sum.weight, *first, TreeItem::Folded { sum, name }));
            }
        }
        items.sort_unstable_by_key(|(weight, at, _)| (Reverse(*weight), *at));
        let rest = if items.len() > room {
            items.split_off(room.saturating_sub(1))
        } else {
            Vec::new()
        };
        let wall = |item: &TreeItem| match item {
            TreeItem::One { ix, .. } => self.nodes.sum_of(*ix).longest,
            TreeItem::Folded { .. } => 0,
        };
        items.sort_by_key(|(_, at, item)| {
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
                    TreeItem::One { ix, .. } => sum.add(&self.nodes.sum_of(*ix)),
                    TreeItem::Folded { sum: folded, .. } => sum.add(folded),
                }
            }
            let name = units::plural(sum.processes, "more process", "more processes");
            items.push(TreeItem::Folded { sum, name });
        }
        items
    }

    /// The lines of the tree of processes, each with its depth. At first, only the roots have lines. Then the children
    /// of the process with the greatest weight (CPU time plus wall time) get lines, again and again, until `room` lines
    /// are used.
    fn lines(&self, room: usize) -> Vec<(TreeItem, Levels)> {
        let room = room.max(1);
        let all = self.nodes.over(&self.nodes.roots);
        let least = all.weight / ALONE_PART;
        let mut below: HashMap<Option<ProcessIx>, Vec<TreeItem>> = HashMap::new();
        let top = self.items(self.nodes.roots.iter().copied(), least, room);
        let mut used = top.len();
        let mut open = BinaryHeap::new();
        let push = |open: &mut BinaryHeap<(u64, Reverse<ProcessIx>)>, items: &[TreeItem]| {
            for item in items {
                let TreeItem::One { ix, .. } = item else {
                    continue;
                };
                let sum = self.nodes.sum_of(*ix);
                if sum.processes > 1 {
                    open.push((sum.weight, Reverse(*ix)));
                }
            }
        };
        push(&mut open, &top);
        below.insert(None, top);
        while let Some((_, Reverse(ix))) = open.pop() {
            if used >= room {
                break;
            }
            let items = self.items(self.nodes.children(ix), least, room - used);
            used += items.len();
            push(&mut open, &items);
            below.insert(Some(ix), items);
        }
        // The lines are put in depth-first order.
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
            if let TreeItem::One { ix, open } = &mut item {
                more = below.remove(&Some(*ix));
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

/// The wall time of a process for the tree. If the process lived before or after the recording, the time is a lower
/// bound. COMMAND's process is an exception: before the recording, it only waited for the recording to begin.
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
        let (ix, open) = match item {
            TreeItem::Folded { sum, name } => return Some(TreeLine::folded(sum, name)),
            TreeItem::One { ix, open } => (*ix, *open),
        };
        let (node, process) = (self.nodes.node(ix)?, self.nodes.process(ix));
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
            // For a process without descendants, this column would repeat the column before it.
            below: match hidden {
                0 => Cell::Empty,
                _ => Cell::Time(node.sum.cpu),
            },
            unknown: node.sum.unknown,
            threads: Cell::Count(process.threads.len() as u64),
            exit: status::cell(process.status, process.alive),
            pid: Cell::Id(process.pid.0),
        })
    }

    /// The table of the tree's processes with the columns of JSON and CSV.
    fn rows(&self) -> Table<'_, TreeRow<'_>> {
        // For each process, the index of its row in the JSON document.
        let mut places: Arena<ProcessIx, usize> =
            self.view.analysis.process_ids().map(|_| 0).collect();
        for (place, ix) in self.nodes.order.iter().enumerate() {
            places[*ix] = place;
        }
        let since = |time| self.view.since(time);
        let process = |(ix, _): &TreeRow<'_>| self.nodes.process(*ix);
        Table::new("", move |row| label::label(process(row)))
            .data("depth", |(_, node)| node.depth)
            .data("pid", move |row| process(row).pid.0)
            .data("ppid", move |row| process(row).ppid.map(|ppid| ppid.0))
            .json_data("parent", move |row| {
                process(row).parent.map(|parent| places[parent])
            })
            .json_data("context", |(_, node)| node.context)
            .json_data("start_ns", move |row| since(process(row).start))
            .json_data("started_before", move |row| process(row).started_before)
            .csv_data("start_ns", move |row| {
                (!process(row).started_before).then(|| since(process(row).start))
            })
            .json_data("end_ns", move |row| {
                (!process(row).alive).then(|| since(process(row).end))
            })
            .data("wall_ns", move |row| process(row).wall())
            .data("on_cpu_ns", move |row| process(row).times.on_cpu)
            .data("tree_on_cpu_ns", |(_, node)| node.sum.cpu)
            .data("tree_unknown_ns", |(_, node)| node.sum.unknown)
            .data("tree_processes", |(_, node)| node.sum.processes)
            .data("threads", move |row| process(row).threads.len())
            .csv_data("exit", move |row| {
                let alive = process(row).alive.then(|| "alive".to_owned());
                process(row).status.map(exit::words).or(alive)
            })
            .json_data("exit", move |row| {
                json!(process(row).status.map(Exit::from))
            })
            .data("program", move |row| {
                label::program(process(row)).to_string()
            })
            .named("label")
            .csv_only()
            .json_data("label", move |row| label::whole(process(row)))
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
    fn page(&self, style: &Style) -> Page {
        let threads = self
            .nodes
            .order
            .iter()
            .any(|ix| self.nodes.process(*ix).threads.len() > 1);
        let unknown = self.nodes.ordered().any(|(_, node)| node.sum.unknown > 0);
        let unknown = style.width >= 100 && unknown;
        let room = style.width.saturating_sub(50) / 2;
        let lines = self.lines(self.view.ask.top.unwrap_or(LINES)).into_iter();
        let lines = lines.filter_map(|(item, levels)| {
            let line = self.line(&item)?;
            let name = levels.joints(room, style) + &line.name;
            Some(TreeLine { name, ..line })
        });
        let title = units::plural(self.nodes.order.len() as u64, "process", "processes");
        let table = Table::new(title, |line: &TreeLine| line.name.clone())
            .column("wall", |line| line.wall.clone())
            .column("CPU", |line| Cell::Time(line.own))
            .column("with below", |line| line.below.clone())
            .column(UNKNOWN, |line| Cell::Time(line.unknown))
            .shown(unknown)
            .column("threads", |line| line.threads.clone())
            .shown(threads)
            .column("exit", |line| line.exit.clone())
            .column("pid", |line| line.pid.clone())
            .paint(|line| line.paint);
        let mut out = Page::new();
        out.table(&table, lines);
        out
    }

    fn json(&self) -> Option<Value> {
        Some(self.rows().rows(self.nodes.ordered()))
    }

    fn sheet(&self) -> Sheet {
        self.rows().sheet(self.nodes.ordered())
    }
}
