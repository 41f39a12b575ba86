//! Puts into words the warnings about a comparison of builds that may be unfair, and the statistical rule of
//! `tr diff`, which judges differences.

use super::{commands, conclusion, explain, methods};
use super::{end_words, spread, Diff, Run};
use tr_text::units;

/// Warnings about whatever makes the comparison of the builds unfair, such as lost events or different machines.
pub(super) fn warnings(diff: &Diff) -> Vec<String> {
    let mut said = Vec::new();
    let runs = || diff.runs();
    for partial in runs().filter_map(Run::partial) {
        said.push(format!("{partial}: its times are lower bounds"));
    }
    for run in runs().filter(|run| run.lost) {
        said.push(format!("{}: events were lost", run.file));
    }
    said.extend(methods::mixed(diff).map(|methods| {
        format!("{methods}: waits for CPUs, disks and the network, the critical path and causes are not compared")
    }));
    said.extend(methods::pathless(diff));
    said.extend(commands::other_commands(diff));
    let mut same = |what: &str, of: fn(&Run) -> String, between: &str| {
        let known = runs().map(of).filter(|known| !known.is_empty());
        let mut all: Vec<String> = known.collect();
        all.sort_unstable();
        all.dedup();
        if all.len() > 1 {
            said.push(format!("not the same {what}: {}", all.join(between)));
        }
    };
    same("kernel", |run| run.kernel.clone(), "; ");
    same("CPU model", |run| run.cpu.clone(), "; ");
    let cpus = |run: &Run| match run.allowed {
        Some(allowed) => format!("{allowed} of {}", run.cpus),
        None => run.cpus.to_string(),
    };
    same("number of CPUs", cpus, " and ");
    for run in &diff.left_out {
        let end = run
            .status
            .map_or("?".into(), tr_insight::processes::exit::words);
        said.push(format!(
            "{} is left out: its build failed ({end})",
            run.file
        ));
    }
    let (base, new) = (end_words::ends(&diff.base), end_words::ends(&diff.new));
    if base != new {
        let words = |all: &[String]| {
            if all.is_empty() {
                "no end".into()
            } else {
                all.join(", ")
            }
        };
        said.push(format!(
            "not the same end: {} before, {} now",
            words(&base),
            words(&new)
        ));
    }
    said.extend(diff.set_aside.iter().cloned());
    said.extend(conclusion::unknown_work(diff));
    said.extend(explain::stack_warnings(diff));
    said
}

/// A sentence with the numbers of runs in the comparison, and the rule by which a difference counts as larger than
/// their spread.
pub(super) fn statistic(diff: &Diff) -> String {
    let runs = |n: usize| units::plural(n as u64, "run", "runs");
    let sides = format!("{} against {}", runs(diff.new.len()), runs(diff.base.len()));
    match spread::Statistic::of(diff.base.len(), diff.new.len()) {
        spread::Statistic::MannWhitney => format!(
            "{sides}: medians; outside the spread where the rank test of Mann and Whitney has p ≤ {}",
            spread::ALPHA
        ),
        spread::Statistic::None if diff.base.len() + diff.new.len() == 2 => {
            "Only one run each, so normal variation is unknown.".into()
        }
        spread::Statistic::None => format!("{sides}: too few, so normal variation is unknown."),
        spread::Statistic::Range => {
            let factor = spread::factor(diff.base.len(), diff.new.len());
            let times = if factor > 1.0 {
                format!("{factor} × what")
            } else {
                "what".into()
            };
            format!("{sides}: medians; outside the spread where they differ by more than {times} the runs of a side differ by")
        }
    }
}
