//! Writes `tr diff --format json`, schema `tr.diff/1` (`schema/diff.schema.json`). Times are in ns, memory in
//! bytes; an unknown value is `null`. Fields are added, never renamed.

use super::gate::Gate;
use super::{conclusion, ends, gate, warnings};
use std::collections::BTreeMap;

use super::causes::{Share, Whose};
use super::functions::FunctionChange;
use super::machine::CallChange;
use super::parts::WallPart;
use super::processes::Change;
use super::programs::ProgramChange;
use super::run::{Figure, Run};
use super::spread::{Difference, Statistic};
use super::steps::StepChange;
use super::Diff;
use serde_json::ser::PrettyFormatter;
use tr_insight::resources::demands::Demand;
use tr_insight::resources::loads::Load;
use tr_programs::program_name::ProgramName;
use tr_report::status::Exit;
use tr_text::phrase::Phrase;
use tr_text::{json, object};

object! {
    Document(diff: &Diff) {
        schema: &'static str = "tr.diff/1",
        base: Vec<OneRun> = diff.base.iter().map(OneRun::new).collect(),
        new: Vec<OneRun> = diff.new.iter().map(OneRun::new).collect(),
        left_out: Vec<OneRun> = diff.left_out.iter().map(OneRun::new).collect(),
        conclusion: Phrase = conclusion::sentence(diff),
        failure: Option<String> = ends::failure(diff).map(|failure| failure.to_string()),
        statistic: Statistic = Statistic::of(diff.base.len(), diff.new.len()),
        warnings: Vec<String> = warnings::warnings(diff),
        figures: Values = values(&diff.whole, Figure::key),
        matched: usize = diff.matched,
        changes: Vec<OneChange> = diff.changes.iter().map(OneChange::new).collect(),
        programs: Vec<OneProgram> = diff.programs.iter().map(OneProgram::new).collect(),
        steps: Vec<OneStep> = diff.steps.iter().map(OneStep::new).collect(),
        explanation: Option<String> = conclusion::explanation(diff),
        runner: Option<String> = conclusion::explanation(diff)
            .filter(|_| conclusion::whose(diff) == Some(Whose::Machine)),
        whose: Option<Whose> = conclusion::whose(diff),
        causes: Vec<OneCause> = diff.causes.shares.iter().map(OneCause::new).collect(),
        against: Vec<OneCause> = diff.causes.against.iter().map(OneCause::new).collect(),
        parts: Values = values(&diff.causes.parts, WallPart::key),
        alone: Option<Value> = diff.causes.alone.as_ref().map(value),
        machine: Values = values(&diff.loads, Load::key),
        demands: Values = values(&diff.demands, Demand::key),
        syscalls: Vec<OneCall> = diff.calls.iter().map(OneCall::new).collect(),
        functions: Option<Vec<OneFunction>> = diff
            .functions
            .as_ref()
            .map(|all| all.iter().map(OneFunction::new).collect()),
        gate: Option<OneGate> = diff
            .ask
            .gate
            .zip(gate::judge(diff))
            .map(|((figure, most), gate)| OneGate::new(figure, most, gate)),
    }

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
            .collect(),
    }

    Value(base: Option<u64>, new: Option<u64>, judged: Option<&Difference>) {
        base: Option<u64> = base,
        new: Option<u64> = new,
        difference: Option<i64> = judged.map(|judged| small(judged.difference())),
        spread: Option<u64> = judged.and_then(|judged| judged.spread),
        limit: Option<u64> = judged.and_then(|judged| judged.limit),
        p: Option<f64> = judged.and_then(|judged| judged.p),
        verdict: Option<&'static str> = judged.and_then(|judged| judged.verdict.word()),
    }

    OneChange(change: &Change) {
        what: &'static str = change.kind.name(),
        program: String = change.program.to_string(),
        label: Phrase = change.label.clone(),
        above: Vec<String> = change.above.iter().map(ProgramName::to_string).collect(),
        base_runs: usize = change.runs.base,
        new_runs: usize = change.runs.new,
        through_children: bool = change.through,
        figures: BTreeMap<String, Value> = Figure::ALL
            .into_iter()
            .map(|figure| {
                let (base, new) = (change.base.get(&figure), change.new.get(&figure));
                let judged = change.judged.get(&figure);
                (figure.key(), Value::new(base.copied(), new.copied(), judged))
            })
            .collect(),
    }

    OneProgram(program: &ProgramChange) {
        program: String = program.name.to_string(),
        base_processes: u64 = program.count.base,
        new_processes: u64 = program.count.new,
        on_cpu: Value = value(&program.on_cpu),
        critical_path: Option<Value> = program.path.as_ref().map(value),
    }

    OneStep(step: &StepChange) {
        kind: &'static str = step.kind.name(),
        name: Phrase = step.name.clone(),
        base_steps: u64 = step.count.base,
        new_steps: u64 = step.count.new,
        wall: Value = value(&step.wall),
        on_cpu: Option<Value> = step.on_cpu.as_ref().map(value),
        starved: Option<Value> = step.starved.as_ref().map(value),
        critical_path: Option<Value> = step.path.as_ref().map(value),
        base_failed: u64 = step.failed.base,
        new_failed: u64 = step.failed.new,
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
        program: String = change.program.to_string(),
        function: String = change.name.function.clone(),
        binary: String = change.name.binary.clone(),
        self_time: Value = value(&change.own.time),
        self_noise_ns: u64 = change.own.noise,
        total_time: Value = value(&change.total.time),
        total_noise_ns: u64 = change.total.noise,
    }

    OneCause(share: &Share) {
        cause: &'static str = share.cause.name(),
        ns: i64 = small(share.ns),
        machine: bool = share.whose == Whose::Machine,
        whose: Whose = share.whose,
    }

    OneGate(figure: Figure, most: f64, gate: Result<Gate, String>) {
        figure: String = figure.key(),
        most_percent: f64 = most,
        percent: Option<f64> = gate.as_ref().ok().map(|gate| gate.percent),
        wall_percent: Option<f64> = gate
            .as_ref()
            .ok()
            .and_then(|gate| Some(gate.wall?.percent)),
        passed: bool = gate.as_ref().is_ok_and(|gate| !gate.failed()),
        runner: bool = gate.as_ref().is_ok_and(Gate::excused),
        why: Option<String> = gate.err(),
    }
}

fn small(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn value(judged: &Difference) -> Value {
    Value::new(Some(judged.base), Some(judged.new), Some(judged))
}

type Values = BTreeMap<String, Value>;

fn values<T: Copy>(all: &[(T, Difference)], key: fn(T) -> String) -> Values {
    let all = all.iter();
    all.map(|(it, judged)| (key(*it), value(judged))).collect()
}

/// The comparison of builds as the JSON document of `tr diff`.
pub fn render(diff: &Diff) -> std::io::Result<String> {
    json::safe(&Document::new(diff), PrettyFormatter::new()).map(|json| json + "\n")
}
