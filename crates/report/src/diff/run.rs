//! One recording, reduced to what is compared.

use std::collections::BTreeMap;

use tr_analyze::critical_path;
use tr_analyze::model::{Analysis, Process};

use super::normal::{self, Paths};
use crate::{escape, label};

/// What is compared: of a recording, or of one process in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// From start to end.
    Wall,
    /// On a CPU.
    OnCpu,
    /// Waiting for a CPU.
    RunQueue,
    /// In an uninterruptible wait.
    Blocked,
    /// Asleep.
    Sleep,
    /// Largest resident set (of any process), in bytes.
    Rss,
    /// Time on the critical path.
    CriticalPath,
    /// Time of which it is not known what it was.
    Unknown,
}

impl Figure {
    /// Each with its name on the command line and for people.
    pub const ALL: [(Figure, &'static str, &'static str); 8] = [
        (Figure::Wall, "wall", "wall time"),
        (Figure::OnCpu, "on-cpu", "on a CPU"),
        (Figure::RunQueue, "run-queue", "waiting for a CPU"),
        (Figure::Blocked, "blocked", "blocked"),
        (Figure::Sleep, "sleep", "asleep"),
        (Figure::Rss, "rss", "largest process's memory"),
        (Figure::CriticalPath, "critical-path", "critical path"),
        (Figure::Unknown, "unknown", "unknown"),
    ];

    /// What `--fail-on` can name: what a whole recording has and a gate can
    /// sensibly hold down.
    pub const GATES: [Figure; 4] = [Figure::Wall, Figure::OnCpu, Figure::RunQueue, Figure::Rss];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        let mut all = Figure::ALL.iter();
        all.find(|(figure, ..)| *figure == self)
            .map_or("", |(_, name, _)| name)
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        let mut all = Figure::ALL.iter();
        all.find(|(figure, ..)| *figure == self)
            .map_or("", |(.., title)| title)
    }
}

/// The values of a recording, or of a process in it; `None` when not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures([Option<u64>; Figure::ALL.len()]);

impl Figures {
    /// One of them.
    pub fn get(&self, figure: Figure) -> Option<u64> {
        self.0.get(figure as usize).copied().flatten()
    }

    fn of(values: [(Figure, Option<u64>); Figure::ALL.len()]) -> Figures {
        let mut figures = Figures::default();
        for (figure, value) in values {
            if let Some(slot) = figures.0.get_mut(figure as usize) {
                *slot = value;
            }
        }
        figures
    }
}

/// How many ways there are to tell two processes to be the same, the surest
/// first: by arguments with whole paths, with two parts of each path, with the
/// names only; by the label.
pub const WAYS: usize = 4;

/// A process of a run.
#[derive(Clone, Debug)]
pub struct Proc {
    /// Its parent, by place; parents stand in front of their children.
    pub parent: Option<usize>,
    /// What it is in any run.
    pub keys: [u64; WAYS],
    /// Its program, escaped.
    pub program: String,
    /// Its label, escaped.
    pub label: String,
    /// Its values.
    pub figures: Figures,
}

/// What one recording says.
#[derive(Clone, Debug)]
pub struct Run {
    /// The file, escaped.
    pub file: String,
    /// COMMAND, escaped; empty when there was none.
    pub command: String,
    /// COMMAND's raw status.
    pub status: Option<u32>,
    /// How many CPUs the machine had.
    pub cpus: usize,
    /// The kernel, escaped.
    pub kernel: String,
    /// The recording has no proper end.
    pub cut: bool,
    /// Events were lost.
    pub lost: bool,
    /// The values of the whole.
    pub figures: Figures,
    /// Its processes.
    pub processes: Vec<Proc>,
}

impl Run {
    /// Of an analysis; with its timeline there is a critical path.
    pub fn new(file: &str, analysis: &Analysis) -> Run {
        let meta = &analysis.meta;
        let on_path = on_path(analysis);
        let cwd = String::from_utf8_lossy(&meta.cwd).into_owned();
        let order = parents_first(analysis);
        let mut place = vec![None; analysis.processes.len()];
        let mut processes: Vec<Proc> = Vec::new();
        for at in order {
            let Some(process) = analysis.processes.get(at) else {
                continue;
            };
            let parent = process.parent.map(|parent| parent.0 as usize);
            let figures = Figures::of([
                (Figure::Wall, Some(process.end.since(process.start))),
                (Figure::OnCpu, Some(process.times.on_cpu)),
                (Figure::RunQueue, Some(process.times.run_queue)),
                (Figure::Blocked, Some(process.times.blocked)),
                (Figure::Sleep, Some(process.times.sleep)),
                (Figure::Rss, process.max_rss),
                (
                    Figure::CriticalPath,
                    on_path
                        .as_ref()
                        .map(|path| path.get(&at).copied().unwrap_or(0)),
                ),
                (Figure::Unknown, Some(process.times.unknown)),
            ]);
            if let Some(slot) = place.get_mut(at) {
                *slot = Some(processes.len());
            }
            processes.push(Proc {
                parent: parent.and_then(|at| place.get(at).copied().flatten()),
                keys: keys(process, &cwd, &pids(analysis, process)),
                program: label::program(process),
                label: label::label(process),
                figures,
            });
        }
        let times = &analysis.totals.times;
        let rss = analysis.processes.iter().filter_map(|p| p.max_rss).max();
        let figures = Figures::of([
            (Figure::Wall, Some(analysis.end.since(analysis.start))),
            (Figure::OnCpu, Some(times.on_cpu)),
            (Figure::RunQueue, Some(times.run_queue)),
            (Figure::Blocked, Some(times.blocked)),
            (Figure::Sleep, Some(times.sleep)),
            (Figure::Rss, rss),
            (Figure::CriticalPath, None),
            (Figure::Unknown, Some(times.unknown)),
        ]);
        Run {
            file: escape::text(file.as_bytes()),
            command: escape::command(meta.command.iter().map(Vec::as_slice)),
            status: analysis.summary.as_ref().and_then(|s| s.status),
            cpus: meta.cpus.len(),
            kernel: escape::text(meta.kernel.as_bytes()),
            cut: analysis.summary.is_none() || analysis.quality.truncated.is_some(),
            lost: !analysis.quality.lost.is_empty(),
            figures,
            processes,
        }
    }
}

/// How long each process, by place, was what the end was waiting for.
fn on_path(analysis: &Analysis) -> Option<BTreeMap<usize, u64>> {
    let root = critical_path::root(analysis).ok()?;
    let path = critical_path::critical_path(analysis, root).ok()?;
    let mut sums = BTreeMap::<usize, u64>::new();
    for segment in &path.segments {
        if let Some(thread) = analysis.threads.get(segment.thread.0 as usize) {
            *sums.entry(thread.process.0 as usize).or_default() += segment.length();
        }
    }
    Some(sums)
}

/// The processes' places, each behind its parent; those of a circle, which only
/// a damaged trace can have, at the end.
fn parents_first(analysis: &Analysis) -> Vec<usize> {
    let count = analysis.processes.len();
    let mut order: Vec<usize> = (0..count)
        .filter(|at| {
            analysis
                .processes
                .get(*at)
                .is_some_and(|p| p.parent.is_none())
        })
        .collect();
    let mut met = vec![false; count];
    let mut next = 0;
    while let Some(at) = order.get(next).copied() {
        next += 1;
        if let Some(met) = met.get_mut(at) {
            *met = true;
        }
        let children = analysis.processes.get(at).map(|p| p.children.as_slice());
        order.extend(children.into_iter().flatten().map(|child| child.0 as usize));
    }
    let rest = met.iter().enumerate().filter(|(_, met)| !**met);
    order.extend(rest.map(|(at, _)| at));
    order
}

/// The pids that may stand in a process's arguments: its own and its ancestors'.
fn pids(analysis: &Analysis, process: &Process) -> Vec<u32> {
    const GENERATIONS: usize = 32;
    let mut pids = Vec::new();
    let mut next = Some(process);
    while let Some(process) = next.filter(|_| pids.len() < 2 * GENERATIONS) {
        pids.extend([process.pid.0, process.ns_pid.0]);
        let parent = process.parent;
        next = parent.and_then(|at| analysis.processes.get(at.0 as usize));
    }
    pids
}

fn keys(process: &Process, cwd: &str, pids: &[u32]) -> [u64; WAYS] {
    let forked = process.execs.is_empty();
    let by = |paths| match process.argv.bytes.is_empty() {
        false => normal::key(process.argv.args(), forked, cwd, pids, paths),
        true => normal::text_key(&label::label(process), forked, cwd, pids),
    };
    [
        by(Paths::Whole),
        by(Paths::Two),
        by(Paths::Name),
        normal::text_key(&label::label(process), forked, cwd, pids),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_in_their_order() {
        for (at, (figure, ..)) in Figure::ALL.into_iter().enumerate() {
            assert_eq!(figure as usize, at);
        }
    }
}
