//! `tr diff --format json`, schema `tr.diff/1` (`schema/diff.schema.json`). Times
//! are in ns, memory in bytes; what is not known is `null`. Fields are added,
//! never renamed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Change, Diff, Figure, Judged, Run, Verdict};

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    base: Vec<OneRun>,
    new: Vec<OneRun>,
    statistic: &'static str,
    warnings: Vec<String>,
    figures: BTreeMap<String, Value>,
    matched: usize,
    changes: Vec<OneChange>,
    programs: Vec<OneProgram>,
    gate: Option<OneGate>,
}

#[derive(Serialize)]
struct OneRun {
    file: String,
    command: String,
    complete: bool,
    processes: usize,
    figures: BTreeMap<String, Option<u64>>,
}

#[derive(Serialize)]
struct Value {
    base: Option<u64>,
    new: Option<u64>,
    difference: Option<i64>,
    spread: Option<u64>,
    p: Option<f64>,
    verdict: Option<&'static str>,
}

#[derive(Serialize)]
struct OneChange {
    what: &'static str,
    program: String,
    label: String,
    above: Vec<String>,
    base_runs: usize,
    new_runs: usize,
    through_children: bool,
    figures: BTreeMap<String, Value>,
}

#[derive(Serialize)]
struct OneProgram {
    program: String,
    base_processes: u64,
    new_processes: u64,
    on_cpu: Value,
    critical_path: Option<Value>,
}

#[derive(Serialize)]
struct OneGate {
    figure: String,
    most_percent: f64,
    percent: Option<f64>,
    passed: bool,
    why: Option<String>,
}

fn key(figure: Figure) -> String {
    figure.name().replace('-', "_")
}

fn small(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn value(judged: &Judged) -> Value {
    Value {
        base: Some(judged.base),
        new: Some(judged.new),
        difference: Some(small(judged.difference())),
        spread: judged.spread,
        p: judged.p,
        verdict: match judged.verdict {
            Verdict::Unknown => None,
            Verdict::Inside => Some("inside"),
            Verdict::Outside => Some("outside"),
        },
    }
}

fn run(run: &Run) -> OneRun {
    let all = Figure::ALL.iter();
    let all = all.filter(|(figure, ..)| *figure != Figure::CriticalPath);
    OneRun {
        file: run.file.clone(),
        command: run.command.clone(),
        complete: !run.cut,
        processes: run.processes.len(),
        figures: all
            .map(|(figure, ..)| (key(*figure), run.figures.get(*figure)))
            .collect(),
    }
}

fn change(change: &Change) -> OneChange {
    let of = |figure: Figure| {
        change.judged.get(&figure).map(value).unwrap_or(Value {
            base: change.base.get(&figure).copied(),
            new: change.new.get(&figure).copied(),
            difference: None,
            spread: None,
            p: None,
            verdict: None,
        })
    };
    OneChange {
        what: change.what.name(),
        program: change.program.clone(),
        label: change.label.clone(),
        above: change.above.clone(),
        base_runs: change.runs.0,
        new_runs: change.runs.1,
        through_children: change.through,
        figures: Figure::ALL
            .iter()
            .map(|(figure, ..)| (key(*figure), of(*figure)))
            .collect(),
    }
}

impl Diff {
    /// As one document.
    ///
    /// # Errors
    /// None in practice: it writes to memory.
    pub fn json(&self) -> serde_json::Result<String> {
        let gate = self.gate().map(|gate| {
            let (figure, most) = self.ask.gate.unwrap_or((Figure::Wall, 0.0));
            OneGate {
                figure: key(figure),
                most_percent: most,
                percent: gate.as_ref().ok().map(|gate| gate.percent),
                passed: gate.as_ref().is_ok_and(|gate| !gate.failed()),
                why: gate.err(),
            }
        });
        let document = Document {
            schema: "tr.diff/1",
            base: self.base.iter().map(run).collect(),
            new: self.new.iter().map(run).collect(),
            statistic: match (
                self.base.len().min(self.new.len()),
                self.base.len().max(self.new.len()),
            ) {
                (4.., _) => "mann-whitney",
                (_, 1) => "none",
                _ => "range",
            },
            warnings: self.warnings(),
            figures: self
                .whole
                .iter()
                .map(|(figure, judged)| (key(*figure), value(judged)))
                .collect(),
            matched: self.matched,
            changes: self.changes.iter().map(change).collect(),
            programs: self
                .programs
                .iter()
                .map(|program| OneProgram {
                    program: program.name.clone(),
                    base_processes: program.count.0,
                    new_processes: program.count.1,
                    on_cpu: value(&program.on_cpu),
                    critical_path: program.path.as_ref().map(value),
                })
                .collect(),
            gate,
        };
        serde_json::to_string_pretty(&document).map(|json| json + "\n")
    }
}
