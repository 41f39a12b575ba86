//! Writes stacks of processes or functions with their times as folded lines, for flame graphs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_format::stack::Doing;

use super::Weight;
use tr_insight::functions::frames::Names;
use tr_insight::processes::label;
use tr_insight::views::view::View;
use tr_text::{escape, units};

/// The largest number of processes (a process and its ancestors) in an exported stack: without a limit, the stacks of a
/// chain of 50,000 processes would take 30 GB.
const LONGEST_LINEAGE: usize = 256;

/// For each stack, given by the names of its frames, the sum of the times of all equal stacks in ns.
type Sums = BTreeMap<Vec<String>, u64>;

fn stacks(view: &View<'_>, weight: Weight) -> Sums {
    match weight {
        Weight::Cpu => of_processes(view, |process| process.times.on_cpu),
        Weight::Wall => of_processes(view, |process| own_wall(view.analysis, process)),
        Weight::Waiting => of_processes(view, |process| process.times.off_cpu()),
        Weight::Stacks => of_functions(view, Doing::OnCpu),
        Weight::Waits => of_functions(view, Doing::OffCpu),
    }
}

/// For each stack that consists of a process and its ancestors, the sum of `weight` in ns over the chosen processes
/// that have this stack.
fn of_processes(view: &View<'_>, weight: impl Fn(&Process) -> u64) -> Sums {
    let mut sums = Sums::new();
    for ix in view.chosen {
        let ns = weight(view.analysis.process(*ix));
        if ns > 0 {
            let sum = sums.entry(lineage(view.analysis, *ix)).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    sums
}

/// Sums up the sampled times of the chosen processes, in ns, for each stack. The outermost frames of a stack are the
/// process's ancestors and the process, the inner ones are its functions. Only samples with the state `doing` (on a
/// CPU, or off CPU) count.
fn of_functions(view: &View<'_>, doing: Doing) -> Sums {
    let analysis = view.analysis;
    let chosen = view.is_chosen();
    let mut names = Names::new(&analysis.stacks);
    let mut sums = Sums::new();
    let samples = analysis.stacks.samples.iter();
    for sample in samples.filter(|sample| sample.doing == doing) {
        let process = analysis.thread(sample.thread).process;
        if !chosen[process] {
            continue;
        }
        let mut stack = lineage(analysis, process);
        if sample.cut {
            stack.push("[cut]".to_owned());
        }
        let functions = names.of_stack(sample.stack).into_iter().rev();
        let functions = functions.filter_map(|number| names.name(number));
        stack.extend(
            functions.map(|function| escape::text(function.function.replace(';', ",").as_bytes())),
        );
        let sum = sums.entry(stack).or_default();
        *sum = sum.saturating_add(sample.ns);
    }
    sums
}

/// The frames of a stack made of a process and its ancestors, outermost first. If the chain is longer than the limit,
/// only the nearest ancestors are included.
fn lineage(analysis: &Analysis, process: ProcessIx) -> Vec<String> {
    let name = |ix| escape::text(label::label(analysis.process(ix)).as_bytes());
    let label = |ix| units::shorten(&name(ix), 200);
    let line = analysis.lineage(process).take(LONGEST_LINEAGE);
    let mut line: Vec<String> = line.map(|ix| label(ix).replace(';', ",")).collect();
    line.reverse();
    line
}

/// The wall time in nanoseconds of a process without the wall time of its children.
fn own_wall(analysis: &Analysis, process: &Process) -> u64 {
    let mut covered = 0;
    let mut until = process.start;
    // The children are in the order of their start, and `until` is the latest end so far. So a time in which several
    // children lived is counted once.
    for child in &process.children {
        let child = analysis.process(*child);
        let (from, to) = (child.start.max(until), child.end.min(process.end));
        covered += to.since(from);
        until = until.max(to);
    }
    process.wall().saturating_sub(covered)
}

/// Writes a folded line for each stack: the frames separated by semicolons, a blank, and the weight in µs. Stacks of
/// less than 0.5 µs are left out. Hidden characters and commands to a CI system in the line are escaped as in a
/// report, because the first frame can be a name from the trace.
pub fn folded(view: &View<'_>, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
    for (names, ns) in stacks(view, weight) {
        if ns >= 500 {
            let stack = names.join(";");
            let stack = escape::page(&stack);
            writeln!(out, "{stack} {}", ns.saturating_add(500) / 1000)?;
        }
    }
    Ok(())
}
