//! Processes as stacks: folded lines, and the file of speedscope.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;
use tr_analyze::model::{Analysis, Process};
use tr_format::stack::Doing;

use super::{lineage, Weight};
use crate::frames::Names;
use crate::label;
use crate::units;
use crate::view::View;

/// The sums of equal stacks of names, in ns.
fn stacks(view: &View<'_>, weight: Weight) -> BTreeMap<Vec<String>, u64> {
    let analysis = view.analysis;
    let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    let doing = match weight {
        Weight::Stacks => Some(Doing::OnCpu),
        Weight::Waits => Some(Doing::OffCpu),
        Weight::Cpu | Weight::Wall | Weight::Waiting => None,
    };
    if let Some(doing) = doing {
        return of_functions(view, doing);
    }
    for ix in view.chosen {
        let ns = of(analysis, analysis.process(*ix), weight);
        if ns > 0 {
            let line = lineage(analysis, *ix);
            let names = line.iter().map(|ix| name(analysis.process(*ix)));
            let sum = sums.entry(names.collect()).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    sums
}

/// The sums of equal stacks of processes and, under them, of functions, in ns.
fn of_functions(view: &View<'_>, doing: Doing) -> BTreeMap<Vec<String>, u64> {
    let analysis = view.analysis;
    let chosen = view.is_chosen();
    let mut names = Names::new(&analysis.stacks);
    let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for it in analysis
        .stacks
        .samples
        .iter()
        .filter(|it| it.doing == doing)
    {
        let process = analysis.thread(it.thread).process;
        if !chosen[process] {
            continue;
        }
        let line = lineage(analysis, process).into_iter();
        let mut stack: Vec<String> = line.map(|ix| name(analysis.process(ix))).collect();
        if it.cut {
            stack.push("[cut]".to_owned());
        }
        let functions = names.of_stack(it.stack).into_iter().rev();
        let functions = functions.filter_map(|number| names.name(number));
        stack.extend(functions.map(|it| it.function.replace(';', ",")));
        let sum = sums.entry(stack).or_default();
        *sum = sum.saturating_add(it.ns);
    }
    sums
}

/// A process's name as a frame. Semicolons separate frames.
fn name(process: &Process) -> String {
    units::shorten(&label::label(process), 200).replace(';', ",")
}

fn of(analysis: &Analysis, process: &Process, weight: Weight) -> u64 {
    let times = &process.times;
    match weight {
        Weight::Cpu => times.on_cpu,
        Weight::Waiting => times.off_cpu(),
        Weight::Wall => {
            let mut covered = 0;
            let mut until = process.start;
            // In order of start.
            for child in &process.children {
                let child = analysis.process(*child);
                let (from, to) = (child.start.max(until), child.end.min(process.end));
                covered += to.since(from);
                until = until.max(to);
            }
            process.wall().saturating_sub(covered)
        }
        Weight::Stacks | Weight::Waits => 0,
    }
}

/// A line for each stack: frames with semicolons between, a blank, the weight in µs.
pub fn folded(view: &View<'_>, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
    for (names, ns) in stacks(view, weight) {
        if ns >= 500 {
            writeln!(out, "{} {}", names.join(";"), ns.saturating_add(500) / 1000)?;
        }
    }
    Ok(())
}

/// A sampled profile with a sample for each stack.
pub fn speedscope(view: &View<'_>, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
    let stacks = stacks(view, weight);
    let mut frames: BTreeMap<&str, usize> = BTreeMap::new();
    for name in stacks.keys().flatten() {
        let next = frames.len();
        frames.entry(name).or_insert(next);
    }
    let mut names = vec![""; frames.len()];
    for (name, at) in &frames {
        if let Some(place) = names.get_mut(*at) {
            *place = name;
        }
    }
    let place = |name: &String| frames.get(name.as_str()).copied();
    let samples = stacks
        .keys()
        .map(|names| names.iter().filter_map(place).collect::<Vec<_>>());
    let all = stacks
        .values()
        .fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    let file = crate::escape::text(view.file.as_bytes());
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": file,
        "exporter": format!("tr {}", env!("CARGO_PKG_VERSION")),
        "shared": {
            "frames": names.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        },
        "profiles": [{
            "type": "sampled",
            "name": weight.title(),
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": all,
            "samples": samples.collect::<Vec<_>>(),
            "weights": stacks.values().collect::<Vec<_>>(),
        }],
    });
    out.write_all(crate::json::document(&document, false)?.as_bytes())
}
