//! Finds the steps of a recording that are failed tests.

use std::collections::HashSet;

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, ProcessIx};
use tr_programs::tools::Role;

use super::passes::{fails, LONGEST_CHAIN};
use tr_insight::processes::ancestors::down;
use tr_insight::processes::roles::role;
use tr_insight::steps::{Step, StepIx, Steps};
use tr_programs::steps::StepKind;

/// The failed tests of a recording, and the processes that belong to tests.
pub(super) struct Tests {
    /// The failed tests that do not contain another failed test, as indexes into the list of the recording's
    /// steps.
    pub(super) failed: Vec<StepIx>,
    /// The processes that are failed tests, or in which a test ran that a program reported as failed.
    pub(super) is_failed: HashSet<ProcessIx>,
    /// The processes that have a descendant in `is_failed`.
    pub(super) has_failed: HashSet<ProcessIx>,
    /// The processes that belong to a test that did not fail, or that descend from a successful configure step.
    /// Failures of these processes were expected.
    pub(super) is_asked: HashSet<ProcessIx>,
    /// The processes that belong to a test, whether the test failed or not.
    pub(super) is_within: HashSet<ProcessIx>,
}

impl Tests {
    pub(super) fn new(analysis: &Analysis, steps: &Steps) -> Tests {
        let list = steps.list();
        let is_test = |step: &Step| step.kind == StepKind::Test;
        let passed = |step: &Step| is_test(step) && step.ended && !step.failed();
        let (mut asked, mut within) = (HashSet::new(), HashSet::new());
        let mut failed: Vec<StepIx> = Vec::new();
        let expected = expected(analysis);
        for (at, step) in list.iter().enumerate() {
            // Outer steps come before inner steps in the list. So it is already known whether the outer step around
            // this step is in the sets `asked` and `within`.
            let above =
                |of: &HashSet<StepIx>| step.parent.is_some_and(|parent| of.contains(&parent));
            let around = above(&asked);
            asked.extend(Some(at).filter(|_| around || passed(step)));
            let inside = above(&within) || is_test(step);
            within.extend(Some(at).filter(|_| inside));
            // Failures inside a test that passed do not count. But if a program reported the result of the step, this
            // result always counts.
            let tolerated = around || step.process.is_some_and(|ix| expected[ix]);
            let counts = step.failed() && (!tolerated || step.result.is_some());
            if counts && (is_test(step) || step.result.is_some()) {
                failed.push(at);
            }
        }
        let is_failed = failed.iter().filter_map(|at| list.get(*at)?.process);
        let is_failed: HashSet<ProcessIx> = is_failed.collect();
        let has_failed = is_failed
            .iter()
            .flat_map(|ix| analysis.ancestors(*ix).take(LONGEST_CHAIN));
        let has_failed = has_failed.collect();
        let below = down(analysis, |ix, above: Option<&bool>| {
            let process = analysis.process(ix);
            let configures = role(process) == Some(Role::Configure);
            above == Some(&true) || configures && !fails(process)
        });
        let is_in = |ix: &ProcessIx, of: &HashSet<StepIx>| {
            let step = steps.of_process(analysis, *ix);
            step.is_some_and(|step| of.contains(&step))
        };
        let all = || analysis.process_ids();
        let listed: HashSet<StepIx> = failed.iter().copied().collect();
        let has_inner = steps.with_any_inside(|at, _| listed.contains(&at));
        failed.retain(|at| has_inner.get(*at) != Some(&true));
        Tests {
            failed,
            is_failed,
            has_failed,
            is_asked: all().filter(|ix| is_in(ix, &asked) || below[*ix]).collect(),
            is_within: all().filter(|ix| is_in(ix, &within)).collect(),
        }
    }
}

/// For each process, whether the test runner around it passed. A test that failed inside such a runner was
/// expected to fail (`WILL_FAIL` of ctest, `should_fail` of meson), or has passed in a later run.
pub(super) fn expected(analysis: &Analysis) -> Arena<ProcessIx, bool> {
    let passes = down(analysis, |ix, above: Option<&bool>| {
        let process = analysis.process(ix);
        match role(process) {
            Some(Role::Tests) => process.status == Some(0),
            _ => above == Some(&true),
        }
    });
    let parents = analysis.processes.iter().map(|process| process.parent);
    parents.map(|ix| ix.is_some_and(|ix| passes[ix])).collect()
}
