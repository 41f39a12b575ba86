//! `tr diff --format json`, schema `tr.diff/1` (`schema/diff.schema.json`). Times
//! are in ns, memory in bytes; an unknown value is `null`. Fields are added, never
//! renamed.

use std::collections::BTreeMap;

use serde::Serialize;

use tr_analyze::sort::Gather;

use super::causes::{Cause, Share, Whose};
use super::spread::Statistic;
use super::{
    CallChange, Change, Diff, Figure, FunctionChange, Gate, Judged, ProgramChange, Run, StepChange,
    Verdict,
};
use crate::encode::object;
use crate::exit::Exit;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    base: Vec<OneRun>,
    new: Vec<OneRun>,
    left_out: Vec<OneRun>,
    conclusion: String,
    failure: Option<String>,
    statistic: Statistic,
    warnings: Vec<String>,
    figures: BTreeMap<String, Value>,
    matched: usize,
    changes: Vec<OneChange>,
    programs: Vec<OneProgram>,
    steps: Vec<OneStep>,
    explanation: Option<String>,
    runner: Option<String>,
    whose: Option<Whose>,
    causes: Vec<OneCause>,
    parts: BTreeMap<String, Value>,
    alone: Option<Value>,
    machine: BTreeMap<String, Value>,
    demands: BTreeMap<String, Value>,
    syscalls: Vec<OneCall>,
    functions: Option<Vec<OneFunction>>,
    gate: Option<OneGate>,
}

object! {
    OneRun(run: &Run) {
        file: String = run.file.clone(),
        command: String = run.command.clone(),
        method: String = run.method.clone(),
        complete: bool = !run.cut,
        exit: Option<Exit> = run.status.map(Exit::from),
        processes: usize = run.processes.len(),
        figures: BTreeMap<String, Option<u64>> = Figure::ALL
            .into_iter()
            .filter(|figure| *figure != Figure::CriticalPath)
            .map(|figure| (figure.key(), run.figures.get(figure)))
            .gather(),
    }

    Value(base: Option<u64>, new: Option<u64>, judged: Option<&Judged>) {
        base: Option<u64> = base,
        new: Option<u64> = new,
        difference: Option<i64> = judged.map(|judged| small(judged.difference())),
        spread: Option<u64> = judged.and_then(|judged| judged.spread),
        limit: Option<u64> = judged.and_then(|judged| judged.limit),
        p: Option<f64> = judged.and_then(|judged| judged.p),
        verdict: Option<&'static str> = judged.and_then(|judged| match judged.verdict {
            Verdict::Unknown => None,
            Verdict::Inside => Some("inside"),
            Verdict::Outside => Some("outside"),
        }),
    }

    OneChange(change: &Change) {
        what: &'static str = change.what.name(),
        program: String = change.program.clone(),
        label: String = change.label.clone(),
        above: Vec<String> = change.above.clone(),
        base_runs: usize = change.runs.0,
        new_runs: usize = change.runs.1,
        through_children: bool = change.through,
        figures: BTreeMap<String, Value> = Figure::ALL
            .into_iter()
            .map(|figure| {
                let (base, new) = (change.base.get(&figure), change.new.get(&figure));
                let judged = change.judged.get(&figure);
                (figure.key(), Value::new(base.copied(), new.copied(), judged))
            })
            .gather(),
    }

    OneProgram(program: &ProgramChange) {
        program: String = program.name.clone(),
        base_processes: u64 = program.count.0,
        new_processes: u64 = program.count.1,
        on_cpu: Value = value(&program.on_cpu),
        critical_path: Option<Value> = program.path.as_ref().map(value),
    }

    OneStep(step: &StepChange) {
        kind: &'static str = step.kind.name(),
        name: String = step.name.clone(),
        base_steps: u64 = step.count.0,
        new_steps: u64 = step.count.1,
        wall: Value = value(&step.wall),
        on_cpu: Option<Value> = step.on_cpu.as_ref().map(value),
        starved: Option<Value> = step.starved.as_ref().map(value),
        critical_path: Option<Value> = step.path.as_ref().map(value),
        base_failed: u64 = step.failed.0,
        new_failed: u64 = step.failed.1,
        verdict: Option<String> = step.more.as_ref().map(|(part, _)| part.key()),
        verdict_time: Option<Value> = step.more.as_ref().map(|(_, it)| value(it)),
        held_back: Option<String> = step.held.clone(),
    }

    OneCall(call: &CallChange) {
        syscall: String = call.name.clone(),
        calls: Value = value(&call.count),
        ns: Value = value(&call.time),
    }

    OneFunction(change: &FunctionChange) {
        program: String = change.program.clone(),
        function: String = change.name.function.clone(),
        binary: String = change.name.binary.clone(),
        self_time: Value = value(&change.own.time),
        self_noise_ns: u64 = change.own.noise,
        total_time: Value = value(&change.total.time),
        total_noise_ns: u64 = change.total.noise,
    }

    OneCause(share: &Share) {
        cause: Cause = share.cause,
        ns: i64 = small(share.ns),
        machine: bool = share.is_machine(),
        whose: Whose = share.whose,
    }

    OneGate(figure: Figure, most: f64, gate: Result<Gate, String>) {
        figure: String = figure.key(),
        most_percent: f64 = most,
        percent: Option<f64> = gate.as_ref().ok().map(|gate| gate.percent),
        passed: bool = gate.as_ref().is_ok_and(|gate| !gate.failed()),
        runner: bool = gate.as_ref().is_ok_and(Gate::excused),
        why: Option<String> = gate.err(),
    }
}

fn small(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn value(judged: &Judged) -> Value {
    Value::new(Some(judged.base), Some(judged.new), Some(judged))
}

impl Diff {
    /// The JSON document.
    pub fn json(&self) -> serde_json::Result<String> {
        let gate = self.ask.gate.zip(self.gate());
        let whole = self.whole.iter();
        let document = Document {
            schema: "tr.diff/1",
            base: self.base.iter().map(OneRun::new).collect(),
            new: self.new.iter().map(OneRun::new).collect(),
            left_out: self.left_out.iter().map(OneRun::new).collect(),
            conclusion: self.conclusion(),
            failure: self.failure(),
            statistic: Statistic::of(self.base.len(), self.new.len()),
            warnings: self.warnings(),
            figures: whole
                .map(|(figure, judged)| (figure.key(), value(judged)))
                .gather(),
            matched: self.matched,
            changes: self.changes.iter().map(OneChange::new).collect(),
            programs: self.programs.iter().map(OneProgram::new).collect(),
            steps: self.steps.iter().map(OneStep::new).collect(),
            explanation: self.explanation(),
            runner: self
                .explanation()
                .filter(|_| self.whose() == Some(Whose::Machine)),
            whose: self.whose(),
            causes: self.causes.shares.iter().map(OneCause::new).collect(),
            parts: {
                let parts = self.causes.parts.iter();
                parts.map(|(part, it)| (part.key(), value(it))).gather()
            },
            alone: self.causes.alone.as_ref().map(value),
            machine: {
                let loads = self.loads.iter();
                loads.map(|(load, it)| (load.key(), value(it))).gather()
            },
            demands: {
                let demands = self.demands.iter();
                demands.map(|(it, by)| (it.key(), value(by))).gather()
            },
            syscalls: self.calls.iter().map(OneCall::new).collect(),
            functions: self.functions.as_ref().map(|all| {
                let all = all.iter().map(OneFunction::new);
                all.collect()
            }),
            gate: gate.map(|((figure, most), gate)| OneGate::new(figure, most, gate)),
        };
        serde_json::to_string_pretty(&document).map(|json| json + "\n")
    }
}
