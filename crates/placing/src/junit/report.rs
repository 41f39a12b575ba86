//! Reads the suites and tests of a JUnit report.

use std::collections::HashMap;

use crate::lookup::Placed;
pub use tr_analyze::model::TestResult;
use tr_insight::recordings::imports::{TestCount, UnplacedTest};
use tr_programs::words;

/// The smallest error in nanoseconds that is assumed for the length of a test, however many digits the report has. The
/// runner reads its clocks a little before or after the traced events.
pub const LEAST_ERROR: i64 = 100_000;

/// The largest number of slashes in a test's name that are examined to find the name of the test that contains it. A
/// bound of the work.
const SLASHES: usize = 100;

/// The largest number of failed tests of one report that are named although they have no place in the recording. A
/// guess: no page shows so many.
const MOST_NAMED: usize = 100;

/// A parsed JUnit report: its test suites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub suites: Vec<Suite>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    pub attributes: Attributes,
    pub cases: Vec<Case>,
    /// Whether the report lists the tests of the suite in the order in which they ran.
    pub has_order: bool,
    /// The index of the outermost suite around the suite in the report. Equal to the suite's own index if no other
    /// suite is around it.
    pub outermost: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub attributes: Attributes,
    pub result: TestResult,
    /// The number of the test in the whole report. It grows from test to test, also across suites.
    pub number: usize,
}

impl Case {
    pub(super) fn has_failed(&self) -> bool {
        self.result.has_failed()
    }

    /// Whether the report has no length for the test, or the length 0, which some runners write for tests that they did
    /// not measure.
    pub(super) fn is_unmeasured(&self) -> bool {
        self.attributes.length.is_none_or(|length| length <= 0)
    }
}

impl Report {
    /// Counts the tests of the report that are missing in the recording: the importer did not place them, no mark shows
    /// them (an event that the test runner sends to the recorder), and they are not known to lie outside of the
    /// analyzed time. Returns the number of such tests, the number of failed tests among them, and the first failed
    /// tests.
    pub(crate) fn tests_beside(&self, placed: &Placed) -> (TestCount, Vec<UnplacedTest>) {
        let cases = self.suites.iter().flat_map(|suite| &suite.cases);
        let missing = cases.filter(|case| !placed.known_tests.contains(&case.number));
        let count = missing.clone().fold(TestCount::default(), |count, case| {
            count.and(case.has_failed())
        });
        let failed = missing.filter(|case| case.has_failed()).take(MOST_NAMED);
        let unplaced = failed.map(|case| UnplacedTest {
            name: case.attributes.title(),
            result: case.result,
        });
        (count, unplaced.collect())
    }
}

impl Suite {
    /// The name that is shown for the only test of a suite: the name of the suite and the name of the test.
    pub(super) fn title_of(&self, only: &Case) -> String {
        format!("{} {}", self.attributes.name, only.attributes.name)
    }

    /// The sum of the lengths of the suite's tests in nanoseconds. A test that contains other tests counts only once,
    /// because its length includes theirs.
    pub fn sum(&self) -> i64 {
        let outermost = self.cases.iter().zip(self.around());
        let outermost = outermost.filter(|(_, around)| around.is_none());
        let lengths = outermost.filter_map(|(case, _)| case.attributes.length);
        lengths.fold(0, i64::saturating_add)
    }

    /// The largest error in nanoseconds of the difference between a suite's length and the sum of its tests' lengths,
    /// because the report rounds both.
    pub(super) fn rounded(&self) -> i64 {
        let digits = self.cases.iter().map(|case| case.attributes.digit);
        digits.fold(self.attributes.digit, i64::saturating_add)
    }

    /// Whether the report has a measured length for the suite itself. A length that is not larger than the sum of the
    /// tests' lengths may be that sum, so it does not count as measured.
    pub(super) fn is_measured(&self) -> bool {
        let sum = self.sum().saturating_add(self.rounded());
        self.attributes.length.is_some_and(|length| length > sum)
    }

    /// Whether the failed tests of the suite are all before or all after the other tests in the report, so that the
    /// report may be sorted by result.
    pub(super) fn is_by_result(&self) -> bool {
        let results = self.cases.iter().map(Case::has_failed);
        let changes = results.clone().zip(results.skip(1));
        changes.filter(|(a, b)| a != b).count() == 1
    }

    /// For each test of the suite, the index of the test that contains it, as Go's `TestA` contains `TestA/x`. The
    /// containing test is the one with the longest name that stands before a slash in the contained test's name.
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

/// The attributes that a JUnit report gives for a suite or a test, such as its name and length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub name: String,
    pub class: String,
    /// The source file of the test, if the report names it.
    pub file: Option<String>,
    pub at: Option<Date>,
    /// The length of the suite or test in nanoseconds, if the report gives it.
    pub length: Option<i64>,
    /// The value of one unit in the last digit of the reported length, in nanoseconds: 10,000,000 for `0.25` seconds.
    /// The length is known to this precision.
    pub digit: i64,
    /// Whether the length is the sum of the lengths of several parts of the test, without the time between them.
    pub is_sum: bool,
}

impl Attributes {
    /// The largest time in nanoseconds by which the test can have been longer than the report says. The reported length
    /// may be only the sum of the lengths of the test's parts, without the time between the parts.
    pub(super) fn between(&self) -> i64 {
        if self.is_sum {
            i64::MAX
        } else {
            0
        }
    }

    /// The path of the file that contains the test: the path in the report, or else the beginning of the test's name.
    /// For tests of bats, the path is the class, because bats writes the path there.
    pub(super) fn test_file(&self) -> Option<Box<str>> {
        let bats = Some(&*self.class).filter(|class| class.ends_with(".bats"));
        let named = || words::file_of_test(&self.name).or(bats);
        self.file.as_deref().or_else(named).map(Box::from)
    }

    /// The brief form of the name under which a test or a suite is shown: the last word of its own name.
    pub(super) fn brief(&self, shown: &str) -> Option<Box<str>> {
        let last = self.name.split_whitespace().next_back()?;
        let brief = words::brief(last).filter(|brief| *brief != shown);
        brief.map(Box::from)
    }

    /// The name of a test with its class, as it is shown. jest-junit and other runners write the whole name as the
    /// class, too; then the name is shown only once.
    pub(super) fn title(&self) -> String {
        let (class, name) = (self.class.trim(), self.name.trim());
        if class.is_empty() || name == class || name.starts_with(&format!("{class} ")) {
            name.to_owned()
        } else {
            format!("{class} {name}")
        }
    }
}

/// A time of the day in a report, with its precision and, if it has one, its time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The date and the time of the day as the report writes them, in nanoseconds since the beginning of 1970 in the
    /// same time zone.
    pub local: i64,
    /// The difference of the date's zone from UTC, in ns, if it has a zone; zones east of UTC are positive.
    pub ahead: Option<i64>,
    /// The value of one unit in the last digit of the reported time, in nanoseconds: 10,000,000 for `12:00:03.25`. The
    /// time is known to this precision.
    pub digit: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_the_file_of_its_report() {
        let file = |class: &str, name: &str, file: Option<&str>| {
            let attributes = Attributes {
                name: name.to_owned(),
                class: class.to_owned(),
                file: file.map(str::to_owned),
                ..Attributes::default()
            };
            attributes.test_file().map(String::from)
        };
        let told = file("tests.test_net", "test_a", Some("tests/test_net.py"));
        assert_eq!(told.as_deref(), Some("tests/test_net.py"));
        assert_eq!(file("b.bats", "it waits", None).as_deref(), Some("b.bats"));
        assert_eq!(file("", "t/b.t", None).as_deref(), Some("t/b.t"));
        // The class is a module in Python, and no path.
        assert_eq!(file("tests.test_net", "test_a", None), None);
    }

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
        // The name begins with the class's name only as a part of a longer word, so the class is still shown.
        assert_eq!(title("api", "apis work"), "api apis work");
    }

    #[test]
    fn the_sum_has_the_outermost_tests() {
        let case = |name: &str, length| Case {
            attributes: Attributes {
                name: name.to_owned(),
                length: Some(length),
                ..Attributes::default()
            },
            result: TestResult::Passed,
            number: 0,
        };
        let suite = Suite {
            attributes: Attributes::default(),
            cases: vec![
                case("TestA/x", 100),
                case("TestA/y", 200),
                case("TestA", 301),
                case("TestB", 40),
            ],
            has_order: true,
            outermost: 0,
        };
        assert_eq!(suite.sum(), 341);
    }

    #[test]
    fn tests_without_a_place_count() {
        let case = |name: &str, result, number| Case {
            attributes: Attributes {
                class: "api".to_owned(),
                name: name.to_owned(),
                ..Attributes::default()
            },
            result,
            number,
        };
        let suite = |name: &str, cases| Suite {
            attributes: Attributes {
                name: name.to_owned(),
                ..Attributes::default()
            },
            cases,
            has_order: true,
            outermost: 0,
        };
        let report = Report {
            suites: vec![
                suite("only", vec![case("a", TestResult::Failed, 1)]),
                suite(
                    "several",
                    vec![
                        case("b", TestResult::Failed, 3),
                        case("c", TestResult::Passed, 4),
                        // A second run of a test with the same name.
                        case("b", TestResult::Error, 5),
                        case("d", TestResult::Failed, 6),
                    ],
                ),
            ],
        };
        let beside = |known: &[usize]| {
            let placed = Placed {
                known_tests: known.iter().copied().collect(),
                ..Placed::default()
            };
            let (count, failed) = report.tests_beside(&placed);
            let words = |test: UnplacedTest| format!("{} {}", test.name, test.result.word());
            let words: Vec<String> = failed.into_iter().map(words).collect();
            (count.all, count.failed, words.join(", "))
        };
        let all = "api a failed, api b failed, api b error, api d failed";
        assert_eq!(beside(&[]), (5, 4, all.to_owned()));
        // The first run of `b` failed by itself, and the second one has a place.
        let rest = "api b failed, api d failed";
        assert_eq!(beside(&[1, 4, 5]), (2, 2, rest.to_owned()));
        assert_eq!(beside(&[1, 3, 4, 5, 6]), (0, 0, String::new()));
    }
}
