//! Does a program read the same input several times, once for each of its outputs? Advises to make all outputs in one
//! run.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_programs::program_name::ProgramName;
use tr_programs::tools::Role;
use tr_text::phrase::Phrase;
use tr_text::units;

use crate::candidate::{largest, AdviceKind, Candidate, Certainty};
use crate::facts::{BuildFacts, Execution};
use crate::sleeps::nap::is_equal;

/// The least number of executions of a program with the same input, and the least CPU time of each in ns. A guess: two
/// executions may be a first and a second pass, and a shorter execution is hardly longer than the program's start.
const PASSES: (usize, u64) = (3, 100_000_000);

/// The facts that executions of a program with the same input have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SameInput<'f> {
    owner: Group,
    program: &'f ProgramName,
    inputs: Vec<&'f [u8]>,
}

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut by_input: BTreeMap<SameInput<'_>, BTreeMap<ProcessIx, Group>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        let (Some(owner), Some(_)) = (execution.owner, execution.exec) else {
            continue;
        };
        let is_tool = facts.role(group).is_some() || execution.program.converges();
        let starts = facts.is_shell(owner) || facts.role(owner) == Some(Role::Jobs);
        if execution.on_cpu < PASSES.1 || is_tool || !starts {
            continue;
        }
        let inputs = inputs(&facts.args(group));
        if inputs.is_empty() {
            continue;
        }
        let key = SameInput {
            owner,
            program: &execution.program,
            inputs,
        };
        let all = by_input.entry(key).or_default();
        all.insert(execution.process, group);
    }
    let all = largest(by_input, |(_, groups)| facts.on_cpu(groups.values()));
    all.into_iter()
        .filter_map(|(same, groups)| candidate(facts, &same, groups.into_values().collect()))
        .collect()
}

fn candidate(
    facts: &BuildFacts<'_>,
    same: &SameInput<'_>,
    groups: Vec<Group>,
) -> Option<Candidate> {
    // If only numbers differ, the executions are different work, such as tests with different seeds. Executions with
    // equal command lines are repeated work, which other advice covers.
    let lines = groups
        .iter()
        .map(|group| without_digits(&facts.args(*group)));
    let lines: BTreeSet<Vec<Vec<u8>>> = lines.collect();
    let executions = groups.iter().filter_map(|group| facts.execution(*group));
    let executions: Vec<&Execution> = executions.collect();
    let times = || executions.iter().map(|execution| execution.on_cpu);
    let (shortest, longest) = (times().min()?, times().max()?);
    let count = groups.len();
    // If the outputs took most of the time, the CPU times would differ.
    if count < PASSES.0 || lines.len() < count || !is_equal(shortest, longest) {
        return None;
    }
    let set = facts.set(groups.iter().copied());
    let time = facts.on_path(&set, |_, _| true);
    let each = times().fold(0, u64::saturating_add) / count as u64;
    let input = String::from_utf8_lossy(same.inputs.first()?).into_owned();
    let (owner, program) = (facts.name(same.owner), same.program);
    Some(Candidate {
        finding: Phrase::with([&owner, &Phrase::from(input)], |[owner, input]| {
            format!(
                "{owner} starts {program} {} times for {input}, {} of CPU time each whatever its options are",
                units::count(count as u64),
                units::time(each)
            )
        }),
        action: "do it in one run, if it can make all outputs at once".into(),
        without: Without::work(set),
        cap: time.saturating_sub(time / count as u64),
        certainty: Certainty::Unsure,
        evidence: groups,
        ..Candidate::of(AdviceKind::Short)
    })
}

/// The arguments of a program that look like the names of its input files. The first argument after the program may be
/// its script, and the file after an option such as `-o` is its output.
fn inputs<'a>(args: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let is_option = |arg: &[u8]| arg.starts_with(b"-");
    let is_output = |arg: &[u8]| arg.starts_with(b"-o") || arg.starts_with(b"--out");
    let pairs = args.iter().skip(1).zip(args.iter().skip(2));
    let files = pairs.filter(|(before, arg)| {
        let is_file = arg.contains(&b'.') || arg.contains(&b'/');
        is_file && !is_option(arg) && !is_output(before)
    });
    files.map(|(_, arg)| *arg).collect()
}

fn without_digits(args: &[&[u8]]) -> Vec<Vec<u8>> {
    let without = |arg: &&[u8]| {
        let bytes = arg.iter().copied();
        bytes.filter(|byte| !byte.is_ascii_digit()).collect()
    };
    args.iter().map(without).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_neither_options_nor_outputs() {
        let of = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let inputs = inputs(&args);
            let inputs = inputs.into_iter().map(String::from_utf8_lossy);
            inputs.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            of("perl tools/reg.pl --emit=doc hw/soc.regs"),
            "hw/soc.regs"
        );
        assert_eq!(of("jq .name data.json"), "data.json");
        assert_eq!(of("gen -t c -o out.c in.idl"), "in.idl");
        assert_eq!(of("gen --out=a.c --seed 5"), "");
        assert_eq!(of("make"), "");
    }
}
