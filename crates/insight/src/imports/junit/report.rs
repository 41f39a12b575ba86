//! The suites and tests of a JUnit report, as the file has them.

use std::collections::HashMap;

use crate::imports::lookup::Placed;
use crate::imports::TestCount;

/// The largest number of slashes in a test's name before which the name of a surrounding test is searched.
const SLASHES: usize = 100;

/// The suites of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub suites: Vec<Suite>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    pub attributes: Attributes,
    pub cases: Vec<Case>,
    /// Whether the file lists the tests in the order in which they ran.
    pub has_order: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub attributes: Attributes,
    pub result: &'static str,
}

impl Case {
    pub(super) fn has_failed(&self) -> bool {
        has_failed(self.result)
    }
}

fn has_failed(result: &str) -> bool {
    matches!(result, "failed" | "error")
}

impl Report {
    /// The tests of the report that have no place in the recording and are counted nowhere else.
    pub(crate) fn tests_beside(&self, placed: &Placed) -> TestCount {
        let cases = self.suites.iter().flat_map(|suite| &suite.cases);
        let all = cases.fold(TestCount::default(), |count, case| {
            count.and(case.has_failed())
        });
        let results = placed.spans.iter().filter_map(|span| span.result);
        let placed = results.fold(placed.elsewhere, |count, result| {
            count.and(has_failed(result))
        });
        TestCount {
            all: all.all.saturating_sub(placed.all),
            failed: all.failed.saturating_sub(placed.failed),
        }
    }
}

impl Suite {
    /// The sum of the lengths of the tests in nanoseconds.
    pub fn sum(&self) -> i64 {
        let lengths = self.cases.iter().filter_map(|case| case.attributes.length);
        lengths.fold(0, i64::saturating_add)
    }

    /// The largest rounding error of the difference between the suite's length and the sum of its tests' lengths, in
    /// nanoseconds.
    pub(super) fn rounded(&self) -> i64 {
        let digits = self.cases.iter().map(|case| case.attributes.digit);
        digits.fold(self.attributes.digit, i64::saturating_add)
    }

    /// Whether the suite's own length was measured. A length that is not larger than the sum of the tests' lengths does
    /// not bound the time between tests.
    pub(super) fn is_measured(&self) -> bool {
        let sum = self.sum().saturating_add(self.rounded());
        self.attributes.length.is_some_and(|length| length > sum)
    }

    /// Whether the failed tests are all before or all after the other tests, so that the file may be sorted by result.
    pub(super) fn is_by_result(&self) -> bool {
        let results = self.cases.iter().map(Case::has_failed);
        let changes = results.clone().zip(results.skip(1));
        changes.filter(|(a, b)| a != b).count() == 1
    }

    /// For each test, the test around it, as Go's `TestA` is around `TestA/x`. It is the test with the longest name
    /// that is followed by a slash in the test's name.
    pub fn around(&self) -> Vec<Option<usize>> {
        let name = |case: &Case| (case.attributes.class.clone(), case.attributes.name.clone());
        let places = self.cases.iter().enumerate();
        let places: HashMap<(String, String), usize> =
            places.map(|(at, case)| (name(case), at)).collect();
        let around = self.cases.iter().map(|case| {
            let (class, name) = (&case.attributes.class, &case.attributes.name);
            let slashes = name.rmatch_indices('/').take(SLASHES);
            let mut around = slashes.filter_map(|(at, _)| name.get(..at));
            around.find_map(|around| places.get(&(class.clone(), around.to_owned())).copied())
        });
        around.collect()
    }
}

/// The attributes of a suite or a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub name: String,
    pub class: String,
    /// The source file of the test that the report names.
    pub file: Option<String>,
    pub at: Option<Date>,
    /// The length of the suite or test in nanoseconds.
    pub length: Option<i64>,
    /// The value of the last digit of `length`, in nanoseconds.
    pub digit: i64,
}

impl Attributes {
    /// The name of a test with its class. jest-junit and others write the whole name as the class, too; the title then
    /// has it once.
    pub(super) fn title(&self) -> String {
        let (class, name) = (self.class.trim(), self.name.trim());
        if class.is_empty() || name == class || name.starts_with(&format!("{class} ")) {
            name.to_owned()
        } else {
            format!("{class} {name}")
        }
    }
}

/// A time of the day with its precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The time in nanoseconds since 1970, in its own time zone.
    pub local: i64,
    /// The difference of the date's zone from UTC, in ns, if it has a zone; zones east of UTC are positive.
    pub ahead: Option<i64>,
    /// The value of the last digit of the time, in nanoseconds.
    pub digit: i64,
}

#[cfg(test)]
mod tests {
    use tr_analyze::model::{Imported, ImportedKind, ProcessIx};
    use tr_format::event::Ktime;

    use super::*;

    #[test]
    fn a_class_that_repeats_the_name_stands_once() {
        let title = |class: &str, name: &str| {
            let attributes = Attributes {
                class: class.to_owned(),
                name: name.to_owned(),
                ..Attributes::default()
            };
            attributes.title()
        };
        let both = "api returns the list of products";
        assert_eq!(title(both, both), both);
        assert_eq!(title("api", both), both);
        assert_eq!(title(" hooks failed", " hooks failed"), "hooks failed");
        assert_eq!(title("tests.test_io", "test_a"), "tests.test_io test_a");
        assert_eq!(title("", "test_a"), "test_a");
        // It is the beginning of another word.
        assert_eq!(title("api", "apis work"), "api apis work");
    }

    #[test]
    fn tests_without_a_place_count() {
        let case = |result| Case {
            attributes: Attributes::default(),
            result,
        };
        let report = Report {
            suites: vec![Suite {
                attributes: Attributes::default(),
                cases: vec![
                    case("passed"),
                    case("failed"),
                    case("error"),
                    case("failed"),
                ],
                has_order: true,
            }],
        };
        let none = report.tests_beside(&Placed::default());
        assert_eq!((none.all, none.failed), (4, 3));
        let placed = |result| Imported {
            from: Ktime(1),
            to: Ktime(2),
            kind: ImportedKind::Test,
            name: b"x"[..].into(),
            result,
            process: ProcessIx(0),
            thread: None,
            whole: false,
            error: 0,
            doubt: None,
        };
        // A suite has no result.
        let spans = vec![placed(None), placed(Some("passed")), placed(Some("error"))];
        let mut placed = Placed {
            spans,
            ..Placed::default()
        };
        let rest = report.tests_beside(&placed);
        assert_eq!((rest.all, rest.failed), (2, 2));
        // A mark of the recording is the test already.
        placed.elsewhere = TestCount { all: 1, failed: 1 };
        let rest = report.tests_beside(&placed);
        assert_eq!((rest.all, rest.failed), (1, 1));
    }
}
