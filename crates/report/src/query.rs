//! What was asked for: which processes, in which order, grouped how.

use std::collections::BTreeMap;

use regex::bytes::Regex;
use tr_analyze::model::{Analysis, Process, Times};
use tr_format::event::Tgid;

use crate::{escape, label};

/// Keeps the processes that match all of what is given.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// On the comm.
    pub comm: Option<Regex>,
    /// On the command line, arguments with a space between.
    pub argv: Option<Regex>,
    /// On the cgroup's path.
    pub cgroup: Option<Regex>,
    /// This process and its descendants.
    pub pid: Option<Tgid>,
}

/// What a table is sorted by; the largest first, but for start and pid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names are those of the columns
pub enum Sort {
    #[default]
    OnCpu,
    OffCpu,
    Wall,
    RunQueue,
    Sleep,
    Blocked,
    Unknown,
    Rss,
    TreeCpu,
    Start,
    Pid,
}

/// What one row of a table stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum By {
    #[default]
    Process,
    Thread,
    Program,
    Comm,
    Cgroup,
    Depth,
}

impl Sort {
    /// Each with its name on the command line and its title.
    pub const ALL: [(Sort, &'static str, &'static str); 11] = [
        (Sort::OnCpu, "on-cpu", "CPU time"),
        (Sort::OffCpu, "off-cpu", "time off CPU"),
        (Sort::Wall, "wall", "wall time"),
        (Sort::RunQueue, "run-queue", "waiting for a CPU"),
        (Sort::Sleep, "sleep", "sleep"),
        (Sort::Blocked, "blocked", "blocked time"),
        (Sort::Unknown, "unknown", "unknown time"),
        (Sort::Rss, "rss", "memory"),
        (Sort::TreeCpu, "tree-cpu", "CPU time with descendants"),
        (Sort::Start, "start", "start"),
        (Sort::Pid, "pid", "pid"),
    ];

    /// As a table's title says it.
    pub fn title(self) -> &'static str {
        let all = Sort::ALL.iter();
        all.filter(|(sort, ..)| *sort == self)
            .map(|(.., title)| *title)
            .next()
            .unwrap_or_default()
    }
}

impl By {
    /// Each with its name on the command line and its title.
    pub const ALL: [(By, &'static str, &'static str); 6] = [
        (By::Process, "process", "process"),
        (By::Thread, "thread", "thread"),
        (By::Program, "program", "program"),
        (By::Comm, "comm", "comm"),
        (By::Cgroup, "cgroup", "cgroup"),
        (By::Depth, "depth", "depth in the tree"),
    ];

    /// As a table's title says it.
    pub fn title(self) -> &'static str {
        let all = By::ALL.iter();
        all.filter(|(by, ..)| *by == self)
            .map(|(.., title)| *title)
            .next()
            .unwrap_or_default()
    }
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What it stands for.
    pub name: String,
    /// How many processes (threads) it stands for.
    pub count: u64,
    /// Their pid (tid), when it is one.
    pub pid: Option<u32>,
    /// Where their time went.
    pub times: Times,
    /// From first start to last end for one; the sum for several.
    pub wall: u64,
    /// Largest resident set of any.
    pub max_rss: Option<u64>,
    /// With descendants.
    pub tree_cpu: u64,
    /// When the first began, ns since the analysis's start.
    pub start: u64,
    /// The raw status, when it is one that has exited.
    pub status: Option<u32>,
    /// It was alive at the end.
    pub alive: bool,
}

impl Filter {
    /// The processes that match, by their places.
    pub fn apply(&self, analysis: &Analysis) -> Vec<usize> {
        // Parents may stand behind their children; so from each process upwards.
        let below = |at: usize| {
            let Some(pid) = self.pid else { return true };
            let mut at = Some(at);
            for _ in 0..analysis.processes.len() {
                let Some(process) = at.and_then(|at| analysis.processes.get(at)) else {
                    return false;
                };
                if process.pid == pid {
                    return true;
                }
                at = process.parent.map(|parent| parent.0 as usize);
            }
            false
        };
        let matches = |process: &Process| {
            let argv = || process.argv.args().collect::<Vec<_>>().join(&b' ');
            let cgroup = || {
                cgroup_path(analysis, process)
                    .map(<[u8]>::to_vec)
                    .unwrap_or_default()
            };
            self.comm
                .as_ref()
                .is_none_or(|re| re.is_match(process.comm.bytes()))
                && self.argv.as_ref().is_none_or(|re| re.is_match(&argv()))
                && self.cgroup.as_ref().is_none_or(|re| re.is_match(&cgroup()))
        };
        let all = analysis.processes.iter().enumerate();
        all.filter(|(at, process)| matches(process) && below(*at))
            .map(|(at, _)| at)
            .collect()
    }
}

/// The path of a process's cgroup, when it is known.
pub fn cgroup_path<'a>(analysis: &'a Analysis, process: &Process) -> Option<&'a [u8]> {
    let at = analysis
        .cgroups
        .binary_search_by_key(&process.cgroup, |(id, _)| *id)
        .ok()?;
    analysis.cgroups.get(at).map(|(_, path)| &**path)
}

fn depth(analysis: &Analysis, process: &Process) -> usize {
    let mut depth = 0;
    let mut parent = process.parent;
    while let Some(process) = parent.and_then(|at| analysis.processes.get(at.0 as usize)) {
        depth += 1;
        parent = process.parent;
        if depth > analysis.processes.len() {
            break;
        }
    }
    depth
}

/// What the row is called that a process belongs to.
pub fn name(analysis: &Analysis, process: &Process, by: By) -> String {
    match by {
        By::Process | By::Thread => label::label(process),
        By::Program => label::program(process),
        By::Comm => escape::text(process.comm.bytes()),
        By::Cgroup => cgroup_path(analysis, process).map_or("unknown".into(), escape::text),
        By::Depth => format!("depth {}", depth(analysis, process)),
    }
}

/// The rows of a table over `processes`, sorted.
pub fn rows(analysis: &Analysis, processes: &[usize], by: By, sort: Sort) -> Vec<Row> {
    let chosen = processes
        .iter()
        .filter_map(|at| analysis.processes.get(*at));
    let mut rows: Vec<Row> = match by {
        By::Process => chosen
            .map(|process| of_process(analysis, process, label::label(process)))
            .collect(),
        By::Thread => chosen
            .flat_map(|process| of_threads(analysis, process))
            .collect(),
        _ => {
            let mut groups = BTreeMap::<String, Row>::new();
            for process in chosen {
                let name = name(analysis, process, by);
                let row = of_process(analysis, process, name.clone());
                match groups.get_mut(&name) {
                    None => {
                        groups.insert(name, row);
                    }
                    Some(group) => {
                        group.count += 1;
                        (group.pid, group.status) = (None, None);
                        group.times.add(&row.times);
                        group.wall += row.wall;
                        group.max_rss = group.max_rss.max(row.max_rss);
                        group.tree_cpu += row.tree_cpu;
                        group.start = group.start.min(row.start);
                        group.alive |= row.alive;
                    }
                }
            }
            groups.into_values().collect()
        }
    };
    let key = |row: &Row| match sort {
        Sort::OnCpu => row.times.on_cpu,
        Sort::OffCpu => row.times.sum() - row.times.on_cpu - row.times.unknown,
        Sort::Wall => row.wall,
        Sort::RunQueue => row.times.run_queue,
        Sort::Sleep => row.times.sleep,
        Sort::Blocked => row.times.blocked,
        Sort::Unknown => row.times.unknown,
        Sort::Rss => row.max_rss.unwrap_or(0),
        Sort::TreeCpu => row.tree_cpu,
        Sort::Start | Sort::Pid => 0,
    };
    // Equal ones by start, then pid, then name: the same order always.
    rows.sort_by(|a, b| {
        let first = key(b).cmp(&key(a));
        let pids = || a.pid.cmp(&b.pid);
        let rest = || {
            a.start
                .cmp(&b.start)
                .then_with(pids)
                .then_with(|| a.name.cmp(&b.name))
        };
        if sort == Sort::Pid {
            pids().then_with(rest)
        } else {
            first.then_with(rest)
        }
    });
    rows
}

fn of_process(analysis: &Analysis, process: &Process, name: String) -> Row {
    Row {
        name,
        count: 1,
        pid: Some(process.pid.0),
        times: process.times,
        wall: process.end.since(process.start),
        max_rss: process.max_rss,
        tree_cpu: process.tree.times.on_cpu,
        start: process.start.since(analysis.start),
        status: process.status,
        alive: process.alive,
    }
}

fn of_threads(analysis: &Analysis, process: &Process) -> Vec<Row> {
    let threads = process
        .threads
        .iter()
        .filter_map(|ix| analysis.threads.get(ix.0 as usize));
    let row = |thread: &tr_analyze::model::Thread| Row {
        name: format!(
            "{} · {}",
            escape::text(thread.comm.bytes()),
            label::label(process)
        ),
        count: 1,
        pid: Some(thread.tid.0),
        times: thread.times,
        wall: thread.end.since(thread.start),
        max_rss: None,
        tree_cpu: thread.times.on_cpu,
        start: thread.start.since(analysis.start),
        status: thread.status,
        alive: thread.alive,
    };
    threads.map(row).collect()
}
