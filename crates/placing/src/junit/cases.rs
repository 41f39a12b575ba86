//! Finds the steps of a recording that are also tests in a report, by the names of the tests.

use std::collections::{HashMap, VecDeque};

use tr_programs::steps::StepKind;

use super::report::Suite;
use tr_insight::steps::{Step, StepIx, Steps};

/// The steps of a recording that are tests, by the names that a report gives them.
pub struct CaseSteps<'s> {
    steps: &'s Steps,
    by_name: HashMap<String, VecDeque<StepIx>>,
}

impl<'s> CaseSteps<'s> {
    /// Finds the steps of the recording for the tests of a report. A test name that the report has several times counts
    /// only if one process has exactly as many steps with this name: they are successive runs of the test.
    pub fn new<'r>(steps: &'s Steps, suites: impl IntoIterator<Item = &'r Suite>) -> CaseSteps<'s> {
        let mut by_name: HashMap<String, VecDeque<StepIx>> = HashMap::new();
        for (at, step) in steps.list().iter().enumerate() {
            if step.kind == StepKind::Test {
                by_name
                    .entry(dotted(step.name.whole()))
                    .or_default()
                    .push_back(at);
            }
        }
        let cases = suites.into_iter().flat_map(|suite| &suite.cases);
        let mut counts: HashMap<String, usize> = HashMap::new();
        for case in cases {
            let mut names = names(&case.attributes.class, &case.attributes.name).into_iter();
            if let Some(name) = names.find(|name| by_name.contains_key(name)) {
                *counts.entry(name).or_default() += 1;
            }
        }
        let process = |at: &StepIx| steps.list().get(*at).map(|step| step.process);
        by_name.retain(|name, found| {
            let count = counts.get(name).copied().unwrap_or(0);
            let first = found.front().and_then(process);
            count <= 1 || count == found.len() && found.iter().all(|at| process(at) == first)
        });
        CaseSteps { steps, by_name }
    }

    /// The recording's next step for a test of this class and name. If a report has several runs of a test, each call
    /// returns the next run.
    pub fn find(&mut self, class: &str, name: &str) -> Option<StepIx> {
        names(class, name).iter().find_map(|name| {
            let steps = self.by_name.get_mut(name)?;
            steps.pop_front()
        })
    }

    /// The recorded step of a test, if it is known what the threads of the step did.
    pub fn with_work(&self, at: StepIx) -> Option<&'s Step> {
        self.steps.list().get(at).filter(|step| step.has_work)
    }
}

/// The three names under which the step of a test may be recorded.
fn names(class: &str, name: &str) -> [String; 3] {
    [
        dotted(&format!("{class} {name}")),
        dotted(&format!("{class}.{name}")),
        dotted(name.trim()),
    ]
}

/// The name of a test in JUnit's way of writing: pytest's `tests/test_a.py::Test::test_x[1/2]` becomes
/// `tests.test_a.Test.test_x[1/2]`.
pub fn dotted(name: &str) -> String {
    let name = name.to_owned();
    let (path, rest) = name.split_at(name.find('[').unwrap_or(name.len()));
    if !path.contains("::") {
        return name;
    }
    path.replace(".py::", ".")
        .replace("::", ".")
        .replace('/', ".")
        + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_marks_are_those_of_reports() {
        let names = [
            (
                "tests/test_a.py::TestX::test_b[a/b::c]",
                "tests.test_a.TestX.test_b[a/b::c]",
            ),
            ("test_a.py::test_b", "test_a.test_b"),
            ("a/b", "a/b"),
        ];
        for (mark, junit) in names {
            assert_eq!(dotted(mark), junit);
        }
    }
}
