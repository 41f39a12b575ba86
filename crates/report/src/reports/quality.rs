//! The report on the quality of the trace: how far its numbers can be trusted.

use serde_json::{json, Value};

use crate::output::Report;
use tr_insight::processes::who;
use tr_insight::recordings::audit;
use tr_insight::recordings::imports::{self, Import};
use tr_insight::recordings::warnings::{anomalies, clocks, lost, warnings};
use tr_insight::views::view::View;
use tr_text::json::text;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Sheet, Table};
use tr_text::units;
use tr_text::words::STALLED_MEMORY;

pub struct QualityReport<'a> {
    view: View<'a>,
}

impl<'a> QualityReport<'a> {
    pub fn new(view: &View<'a>) -> QualityReport<'a> {
        QualityReport { view: *view }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let analysis = self.view.analysis;
        let quality = &analysis.quality;
        let times = &analysis.totals.times;
        let share = units::share(times.unknown, times.sum());
        let mut facts = vec![
            ("events", units::count(analysis.events.total())),
            ("lost events", lost(analysis)),
            ("lost spans", units::count(quality.lost.len() as u64)),
            (
                "unknown time",
                match times.unknown {
                    0 => "none".into(),
                    ns => format!("{} of the processes' time ({share})", units::time(ns)),
                },
            ),
            (
                "largest step back in a ring",
                known(quality.largest_inversion),
            ),
            ("commit delay, at least", known(quality.commit_delay)),
            (
                "CPUs' clocks",
                clocks(quality).unwrap_or_else(|| "no disagreement found".into()),
            ),
        ];
        if let Some(allowed) = who::allowed(&analysis.meta) {
            let left = match analysis.machine.limited_to {
                Some(_) => "",
                None => "; recorded tasks ran on others, too",
            };
            facts.push(("allowed CPUs", format!("{allowed}{left}")));
        }
        if let Some(impossible) = audit::impossible(analysis) {
            facts.push(("the kernel's run_delay", impossible.text()));
        }
        let summary = analysis.summary.as_ref();
        // A recording that another program made does not show how much CPU time the recording itself has cost.
        let ours = summary.filter(|_| analysis.meta.recorder.is_none());
        if let Some(summary) = ours {
            let cost = &summary.cost;
            let wall = analysis.wall();
            let machine = wall.saturating_mul(analysis.meta.cpus.len() as u64);
            let share = cost.recorder_ns as f64 * 100.0 / machine.max(1) as f64;
            let recorder = units::time(cost.recorder_ns);
            facts.push((
                "recorder overhead",
                format!("{share:.2} % CPU ({recorder})"),
            ));
            if let Some(ns) = cost.bpf_ns {
                facts.push(("BPF programs' CPU time", units::time(ns)));
            }
        }
        let machine = summary
            .and_then(|summary| summary.machine)
            .unwrap_or_default();
        for (what, value) in [
            ("throttled by a cgroup's quota", machine.throttled_ns),
            ("stolen by the hypervisor", machine.stolen_ns),
            (STALLED_MEMORY, machine.memory_stalled_ns),
        ] {
            facts.push((what, value.map_or("unknown".into(), known)));
        }
        facts
    }
}

impl QualityReport<'_> {
    fn imports(&self) -> Value {
        let imports = self.view.recording.imports.files.iter();
        let row = |import: &Import| {
            json!({
                "file": text(&import.file),
                "spans": import.spans,
                "placed": import.placed,
                "outside": import.outside,
                "left_out": import.left_out,
                "note": import.note,
            })
        };
        imports.map(row).collect()
    }
}

fn known(ns: u64) -> String {
    match ns {
        0 => "none".into(),
        ns => units::time(ns),
    }
}

impl Report for QualityReport<'_> {
    fn page(&self, _style: &Style) -> Page {
        let mut out = Page::new();
        out.painted(Paint::Bold, "Quality of the trace");
        let facts = self.facts();
        let room = facts.iter().map(|(what, _)| units::width(what)).max();
        for (what, value) in facts {
            let what = units::pad(what, room.unwrap_or(0), false);
            out.wrapped(Paint::Plain, &format!("  {what}  "), &value);
        }
        for import in &self.view.recording.imports.files {
            out.wrapped(Paint::Plain, "  with ", &imports::sentence(import));
        }
        let found = anomalies(&self.view.analysis.quality);
        out.items("Anomalies   ", found);
        out
    }

    fn json(&self) -> Option<Value> {
        let machine = self.view.analysis.summary.as_ref();
        let machine = machine
            .and_then(|summary| summary.machine)
            .unwrap_or_default();
        Some(json!({
            "throttled_ns": machine.throttled_ns,
            "stolen_ns": machine.stolen_ns,
            "memory_stalled_ns": machine.memory_stalled_ns,
            "impossible_run_delay": audit::impossible(self.view.analysis),
            "warnings": warnings(self.view.recording),
            "imports": self.imports(),
        }))
    }

    fn sheet(&self) -> Sheet {
        type Fact = (&'static str, String);
        let table = Table::<Fact>::unnamed()
            .data("fact", |(what, _)| *what)
            .data("value", |(_, value)| value.clone());
        table.sheet(self.facts())
    }
}
