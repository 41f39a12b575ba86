//! Finds the functions, in sampled stacks, that explain a difference of CPU time between builds.

use super::functions::FunctionChange;
use super::profile::ProfilePair;
use super::programs::ProgramChange;
use super::Diff;
use tr_text::called::TR;
use tr_text::units;

/// Warnings about stacks in a comparison: some runs have none while others do, so that functions are not
/// compared, or some samples are left out.
pub(super) fn stack_warnings(diff: &Diff) -> Vec<String> {
    let runs = || diff.runs();
    let mut said = Vec::new();
    if runs().any(|run| run.profile.is_some()) {
        let lacking = runs().filter(|run| run.profile.is_none());
        said.extend(
            lacking.map(|run| format!("{} has no stacks: functions are not compared", run.file)),
        );
    }
    for run in runs() {
        let left_out = run.profile.as_ref().map_or(0, |profile| profile.left_out);
        if left_out > 0 {
            let left_out = units::time(left_out);
            let file = &run.file;
            said.push(format!(
                "{file}: too many stacks: {left_out} of samples are left out"
            ));
        }
    }
    said
}

/// The function whose own CPU time grew most in a program, to explain the growth of the program's CPU time; `None` if
/// the program's CPU time did not grow.
pub(super) fn grown<'a>(diff: &'a Diff, program: &ProgramChange) -> Option<&'a FunctionChange> {
    let mut all = diff.functions.iter().flatten();
    all.find(|function| {
        function.program == program.name
            && program.on_cpu.difference() > 0
            && function.own.time.difference() > 0
            && function.own.differs(diff.ask.least)
    })
}

/// The sampled stacks of both sides of the comparison as folded lines, each with the µs of the base and of the new
/// runs. flamegraph.pl and inferno read this form, and difffolded.pl writes it.
///
/// # Errors
/// A text with the file name of a run that has no stacks.
pub fn folded(diff: &Diff) -> Result<String, String> {
    let mut runs = diff.runs();
    let Some(stacks) = ProfilePair::new([&diff.base, &diff.new]) else {
        let lacking = runs.find(|run| run.profile.is_none());
        let file = lacking.map_or("", |run| run.file.as_str());
        return Err(format!(
            "{file}: no stacks were recorded: {TR} record --stacks records them"
        ));
    };
    Ok(stacks.folded())
}
