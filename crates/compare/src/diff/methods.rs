//! Handles comparisons of runs that were recorded by different methods: facts that one method does not record are
//! not compared.

use tr_analyze::model::Basis;

use super::run::{Figure, Figures, Run};
use super::Diff;
use tr_insight::resources::demands::Demand;

/// The name of the method by which a run was recorded. Methods that record the same facts have one name: `sudo`
/// attaches the same BPF programs as `bpf`. Runs that only have totals of each task (`--light`, some imports) have a
/// name of their own.
fn source(run: &Run) -> String {
    match (run.method.as_str(), run.basis) {
        ("bpf" | "sudo", Basis::Events) => "bpf".into(),
        ("bpf" | "sudo", _) => "bpf --light".into(),
        (method @ ("ptrace" | "poll"), _) | (method, Basis::Events) => method.into(),
        (method, _) => format!("{method} (totals)"),
    }
}

fn sources<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<String> {
    let mut names: Vec<String> = runs.map(source).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Sets figures to unknown in all runs if some runs lack them, so that these figures are not compared. If the methods
/// of recording differ, these are the figures from scheduling events and the times on the critical path. If only the
/// critical path of a run is missing, these are the times on the path.
pub(super) fn keep_common(base: &mut [Run], new: &mut [Run]) {
    let methods = sources(base.iter().chain(&*new)).len();
    let pathless = base.iter().chain(&*new).any(|run| run.no_path.is_some());
    for run in base.iter_mut().chain(new) {
        if methods > 1 {
            run.forget_events();
        }
        if methods > 1 || pathless {
            run.forget_path();
        }
    }
}

fn forget(figures: &mut Figures) {
    figures.forget(Figure::RunQueue);
    figures.forget(Figure::Blocked);
    figures.forget(Figure::Sleep);
    if figures.sure_on_cpu().is_none() {
        figures.forget(Figure::OnCpu);
    }
    figures.forget(Figure::Unknown);
}

impl Run {
    fn forget_events(&mut self) {
        forget(&mut self.figures);
        for process in &mut self.processes {
            forget(&mut process.figures);
        }
        let unknown = self.figures.get(Figure::OnCpu).is_none();
        for step in self.steps.values_mut() {
            step.starved = None;
            if unknown {
                step.on_cpu = None;
            }
        }
        self.demands
            .retain(|demand, _| !matches!(demand, Demand::DiskWait | Demand::Sync));
    }

    fn forget_path(&mut self) {
        self.figures.forget(Figure::CriticalPath);
        for process in &mut self.processes {
            process.figures.forget(Figure::CriticalPath);
        }
        for step in self.steps.values_mut() {
            step.path = None;
        }
        self.demands
            .retain(|demand, _| !matches!(demand, Demand::DiskPath | Demand::NetworkPath));
        self.parts = None;
        self.path.clear();
    }
}

/// A warning that the compared recordings were made by different methods; `None` if they were not.
pub(super) fn mixed(diff: &Diff) -> Option<String> {
    let names = sources(diff.runs());
    (names.len() > 1).then(|| format!("not the same method: {}", names.join(" and ")))
}

/// Warnings about the runs that have no critical path although other runs have one.
pub(super) fn pathless(diff: &Diff) -> Vec<String> {
    let runs = || diff.runs();
    if mixed(diff).is_some() || runs().all(|run| run.no_path.is_some()) {
        return Vec::new();
    }
    let none = runs().filter_map(|run| run.no_path.as_ref().map(|why| (run, why)));
    none.map(|(run, why)| {
        let file = &run.file;
        format!("{file}: {why}; the critical path and causes are not compared")
    })
    .collect()
}

#[cfg(test)]
#[path = "tests/methods.rs"]
mod tests;
