//! Finds what held back the failed steps of a recording, such as other tasks on the CPUs or waits for a disk.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tr_programs::steps::StepKind;

use tr_analyze::model::{Analysis, ProcessIx};

use super::ends::ProcessEnds;
use super::{Failure, Held};
use tr_insight::steps::result::{Outcome, StepResult};
use tr_insight::steps::{Step, StepIx};
use tr_insight::verdicts::StepVerdicts;

/// Adds to each failure the cause that delayed the failed step or process. A failed process that executed a step gets
/// the cause that was found for this step, unless the step contains tests.
pub(super) fn add(
    found: &mut [&mut Failure],
    analysis: &Analysis,
    sure: &ProcessEnds<'_>,
    judged: &StepVerdicts<'_>,
) {
    if found.is_empty() {
        return;
    }
    let list = judged.steps.list();
    let mut of: BTreeMap<ProcessIx, StepIx> = BTreeMap::new();
    for (at, step) in list.iter().enumerate() {
        if let Some(ix) = step.process.filter(|_| step.result.is_none()) {
            of.entry(ix).or_insert(at);
        }
    }
    let tests = list.iter().filter(|step| step.kind == StepKind::Test);
    let runners = tests.filter_map(|step| list.get(step.parent?)?.process);
    let runners: BTreeSet<ProcessIx> = runners.collect();
    of.retain(|ix, _| !runners.contains(ix));
    let verdicts = judged.verdicts();
    let shown: BTreeSet<StepIx> = found.iter().filter_map(|failed| failed.step).collect();
    let silent = silent_tests(judged);
    let around = judged_around(judged, &shown);
    for failed in found {
        let step = failed.step.or_else(|| of.get(&failed.process?).copied());
        let verdict = step.and_then(|step| verdicts.reported(step));
        failed.held = verdict.map(|verdict| Held {
            step: None,
            verdict: verdict.clone(),
        });
        failed.was_late = failed
            .process
            .is_some_and(|ix| sure.was_late(ix, analysis.process(ix)))
            || step.is_some_and(|step| is_reported_late(judged, step))
            || verdict.is_some_and(|verdict| verdict.is_late);
        let no_memory = failed
            .process
            .is_some_and(|ix| sure.out_of_memory.contains_key(&ix));
        if failed.held.is_none() && failed.step.is_none() && !no_memory {
            // If a test runner failed and did not report which test failed, the longest of the runner's delayed tests
            // is reported.
            let longest = failed.process.and_then(|ix| silent.get(&ix).copied());
            // If the recording does not show the tests of a suite, the suite itself is reported.
            let suite = failed.process.and_then(|ix| {
                let step = judged.steps.of_process(analysis, ix)?;
                around.get(step).copied().flatten()
            });
            let named = longest.or(suite);
            let named = named.and_then(|at| list.get(at).zip(verdicts.reported(at)));
            failed.was_late |= named.is_some_and(|(_, held)| held.is_late);
            failed.held = named.map(|(step, held)| Held {
                step: Some(step.name.clone()),
                verdict: held.clone(),
            });
        }
    }
}

/// For each process, the longest test in this process that was delayed, for example by other tasks or by a disk. Tests
/// with a known result are left out.
fn silent_tests(judged: &StepVerdicts<'_>) -> HashMap<ProcessIx, StepIx> {
    let verdicts = judged.verdicts();
    let list = judged.steps.list();
    let key = |step: &Step| (step.wall(), Reverse(step.from));
    let mut longest: HashMap<ProcessIx, StepIx> = HashMap::new();
    for (at, step) in list.iter().enumerate() {
        let is_silent = step.status.is_none() && step.result.is_none();
        let process = step
            .process
            .filter(|_| is_silent && step.kind == StepKind::Test);
        let Some(process) = process.filter(|_| verdicts.reported(at).is_some()) else {
            continue;
        };
        let other = longest.get(&process).and_then(|other| list.get(*other));
        if other.is_none_or(|other| key(other) <= key(step)) {
            longest.insert(process, at);
        }
    }
    longest
}

/// For each step of the recording, the innermost delayed step around it. This is the step itself if something delayed
/// it, and otherwise the nearest delayed step that contains it. Steps in `shown` do not count, because the report
/// already has separate lines for these steps.
fn judged_around(judged: &StepVerdicts<'_>, shown: &BTreeSet<StepIx>) -> Vec<Option<StepIx>> {
    let verdicts = judged.verdicts();
    let list = judged.steps.list();
    let mut around: Vec<Option<StepIx>> = Vec::with_capacity(list.len());
    // Outer steps come before inner steps in the list, so the result for the outer step is already known.
    for (at, step) in list.iter().enumerate() {
        let counts = verdicts.reported(at).is_some() && !shown.contains(&at);
        let outer = || around.get(step.parent?).copied().flatten();
        around.push(if counts { Some(at) } else { outer() });
    }
    around
}

/// Whether a test runner or another program reported that the time limit of a step was exceeded.
fn is_reported_late(judged: &StepVerdicts<'_>, step: StepIx) -> bool {
    let step = judged.steps.list().get(step);
    let result = step.and_then(|step| step.result.as_ref());
    result.map(StepResult::outcome) == Some(Outcome::TimedOut)
}
