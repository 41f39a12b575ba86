//! Decides how the failure of a child explains the failure of a test runner, whose tests may start programs that are
//! expected to fail.

use tr_analyze::model::{Process, ProcessIx};
use tr_programs::tools::Role;

use crate::finder::{Explains, Finder};
use crate::passes::MOST_EXAMINED;
use tr_insight::processes::exit;
use tr_insight::processes::roles::{role, tool};

impl Finder<'_> {
    pub(super) fn to_a_test_runner(&self, ix: ProcessIx, runner: ProcessIx) -> Option<Explains> {
        let child = self.analysis.process(ix);
        if self.tests.is_failed.contains(&ix) {
            return Some(if self.may_be_a_wanted_failure(ix, runner) {
                Explains::Maybe
            } else {
                Explains::One
            });
        }
        match role(child) {
            Some(Role::Tests) if self.tests.has_failed.contains(&ix) => Some(Explains::One),
            Some(Role::Compiler | Role::Linker) => Some(Explains::One),
            Some(Role::Jobs) if self.gave_up(child, runner) => Some(Explains::Last),
            _ => {
                let counts = self.is_only_failed_run(child, runner)
                    || self.stands_out(ix, runner)
                    || self.broke_a_pool(ix, runner);
                counts.then_some(Explains::Maybe)
            }
        }
    }

    /// Whether the failure of a test may be declared as expected, as in ctest and meson, so that the test is only a
    /// possible reason for the failure of the runner.
    fn may_be_a_wanted_failure(&self, test: ProcessIx, runner: ProcessIx) -> bool {
        exit::killed_by(self.analysis.process(test).status).is_none()
            && may_want_failures(self.analysis.process(runner))
            && !self.is_the_only_failure(test, runner)
    }

    /// Whether the process `ix` is the only failed child of a test runner.
    fn is_the_only_failure(&self, ix: ProcessIx, runner: ProcessIx) -> bool {
        let children = self
            .analysis
            .process(runner)
            .children
            .iter()
            .take(MOST_EXAMINED);
        let mut others = children.filter(|other| **other != ix);
        !others.any(|other| self.fails(*other))
    }
}

/// Whether a test runner has a way to declare that a test is expected to fail, so that a failed process may be a
/// success.
fn may_want_failures(runner: &Process) -> bool {
    tool(runner).is_some_and(|tool| tool.wants_failures)
}
