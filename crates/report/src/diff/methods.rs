//! Recordings by different methods: what one of them lacks is not compared.

use super::run::{Figure, Figures, Run};
use super::Diff;
use crate::facts::demands::Demand;

/// BPF programs record the same facts, whoever attaches them.
fn source(run: &Run) -> &str {
    match run.method.as_str() {
        "sudo" => "bpf",
        method => method,
    }
}

fn differ<'a>(mut methods: impl Iterator<Item = &'a str>) -> bool {
    let first = methods.next();
    methods.any(|method| Some(method) != first)
}

/// Of runs by different methods keeps the facts that each method tells.
pub(super) fn keep_common(base: &mut [Run], new: &mut [Run]) {
    if differ(base.iter().chain(&*new).map(source)) {
        for run in base.iter_mut().chain(new) {
            run.forget_events();
        }
    }
}

fn forget(figures: &mut Figures) {
    figures.forget(Figure::CriticalPath);
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
            step.path = None;
            if unknown {
                step.on_cpu = None;
            }
        }
        self.demands.retain(|demand, _| {
            !matches!(
                demand,
                Demand::DiskWait | Demand::Sync | Demand::DiskPath | Demand::NetworkPath
            )
        });
        self.parts = None;
        self.path.clear();
    }
}

impl Diff {
    /// The methods, if they differ: in words.
    pub(super) fn methods(&self) -> Option<String> {
        let runs = || self.base.iter().chain(&self.new);
        differ(runs().map(source)).then(|| {
            let mut names: Vec<&str> = runs().map(source).collect();
            names.sort_unstable();
            names.dedup();
            format!("not the same method: {}", names.join(" and "))
        })
    }
}
