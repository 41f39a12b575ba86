//! Reads the suites and tests of a JUnit report.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::lookup::Placed;
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
const NAMED: usize = 100;

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
    pub result: &'static str,
    /// The number of the test in the whole report. It grows from test to test, also across suites.
    pub number: usize,
}

impl Case {
    pub(super) fn has_failed(&self) -> bool {
        has_failed(self.result)
    }

    /// Whether the report has no length for the test, or the length 0, which some runners write for tests that they did
    /// not measure.
    pub(super) fn is_unmeasured(&self) -> bool {
        self.attributes.length.is_none_or(|length| length <= 0)
    }
}

fn has_failed(result: &str) -> bool {
    matches!(result, "failed" | "error")
}

impl Report {
    /// Counts the tests of the report that are missing in the recording: the importer did not place them, no mark shows
    /// them (an event that the test runner sends to the recorder), and they are not known to lie outside of the
    /// analyzed time. Returns the number of such tests, the number of failed tests among them, and the first failed
    /// tests.
    pub(crate) fn tests_beside(&self, placed: &Placed) -> (TestCount, Vec<UnplacedTest>) {
        let suites = self.suites.iter();
        let cases = suites.flat_map(|suite| suite.cases.iter().map(move |case| (suite, case)));
        let all = cases
            .clone()
            .fold(TestCount::default(), |count, (_, case)| {
                count.and(case.has_failed())
            });
        let results = placed.spans.iter().filter_map(|span| span.result);
        let known = results.fold(placed.elsewhere, |count, result| {
            count.and(has_failed(result))
        });
        let count = TestCount {
            all: all.all.saturating_sub(known.all),
            failed: all.failed.saturating_sub(known.failed),
        };
        let failed = cases.filter(|(_, case)| case.has_failed());
        (count, unplaced(failed, placed, count.failed.min(NAMED)))
    }
}

/// Collects at most `most` failed tests of a report that are missing in the recording: the importer did not place them,
/// no mark shows them (an event that the test runner sends to the recorder), and they are not known to lie outside of
/// the analyzed time. Tests with equal names are counted, because several tests may have the same name.
fn unplaced<'r>(
    tests: impl Iterator<Item = (&'r Suite, &'r Case)>,
    placed: &Placed,
    most: usize,
) -> Vec<UnplacedTest> {
    let mut found = Vec::new();
    if most == 0 {
        return found;
    }
    let spans = placed.spans.iter();
    let spans = spans.filter(|span| span.result.is_some_and(has_failed));
    let spans = spans.map(|span| String::from_utf8_lossy(&span.name));
    let elsewhere = placed.failed_elsewhere.iter().map(Cow::from);
    let mut known: HashMap<Cow<'_, str>, usize> = HashMap::new();
    for name in spans.chain(elsewhere) {
        *known.entry(name).or_default() += 1;
    }
    for (suite, case) in tests {
        let name = case.attributes.title();
        // The only test of a suite may be placed under a title that joins the suite's name and the test's name
        // (`title_of`). So both this title and the test's own title are looked up.
        let is_known = [&name, &suite.title_of(case)].into_iter().any(|name| {
            let count = known.get_mut(name.as_str()).filter(|count| **count > 0);
            count.map(|count| *count -= 1).is_some()
        });
        if !is_known {
            found.push(UnplacedTest {
                name,
                result: case.result,
            });
        }
        if found.len() == most {
            break;
        }
    }
    found
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
    use tr_analyze::model::{Imported, ImportedKind, ProcessIx};
    use tr_format::event::Ktime;

    use super::*;
    use crate::lookup::imported;

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
            result: "passed",
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
        let case = |result| Case {
            attributes: Attributes::default(),
            result,
            number: 0,
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
                outermost: 0,
            }],
        };
        let (none, _) = report.tests_beside(&Placed::default());
        assert_eq!((none.all, none.failed), (4, 3));
        let placed = |result| Imported {
            from: Ktime(1),
            to: Ktime(2),
            kind: ImportedKind::Test,
            name: b"x"[..].into(),
            brief: None,
            file: None,
            result,
            process: ProcessIx(0),
            thread: None,
            whole: false,
            error: 0,
            doubt: None,
        };
        // The span without a result is a suite and does not count as a test.
        let spans = vec![placed(None), placed(Some("passed")), placed(Some("error"))];
        let mut placed = Placed {
            spans,
            ..Placed::default()
        };
        let (rest, _) = report.tests_beside(&placed);
        assert_eq!((rest.all, rest.failed), (2, 2));
        // The failed test `y` is already in the recording, as a mark that the test program sent to the recorder.
        placed.add_elsewhere("y".to_owned(), true);
        let (rest, _) = report.tests_beside(&placed);
        assert_eq!((rest.all, rest.failed), (1, 1));
    }

    #[test]
    fn failed_tests_without_a_place_have_names() {
        let case = |name: &str, result| Case {
            attributes: Attributes {
                class: "api".to_owned(),
                name: name.to_owned(),
                ..Attributes::default()
            },
            result,
            number: 0,
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
                suite("only", vec![case("a", "failed")]),
                suite(
                    "several",
                    vec![
                        case("b", "failed"),
                        case("c", "passed"),
                        // A second run of a test with the same name.
                        case("b", "error"),
                        case("d", "failed"),
                    ],
                ),
            ],
        };
        let names = |placed: &Placed| {
            let (_, failed) = report.tests_beside(placed);
            let words = |test: UnplacedTest| format!("{} {}", test.name, test.result);
            failed.into_iter().map(words).collect::<Vec<String>>()
        };
        let mut placed = Placed::default();
        let all = [
            "api a failed",
            "api b failed",
            "api b error",
            "api d failed",
        ];
        assert_eq!(names(&placed), all);
        let at = (ProcessIx(0), (Ktime(1), Ktime(2)));
        for name in ["only a", "api b"] {
            placed.spans.push(Imported {
                result: Some("failed"),
                ..imported(ImportedKind::Test, name.as_bytes(), at)
            });
        }
        assert_eq!(names(&placed), all[2..]);
        placed.add_elsewhere("api b".to_owned(), true);
        assert_eq!(names(&placed), all[3..]);
    }
}
