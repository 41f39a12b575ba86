//! The suites and tests of a JUnit report, as the file has them.

use std::collections::HashMap;

/// The most slashes of a name that may end the name of another test.
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
    /// The tests stand in the file as they ran.
    pub has_order: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub attributes: Attributes,
    pub result: &'static str,
}

impl Case {
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.result, "failed" | "error")
    }
}

impl Suite {
    /// The lengths of the tests together, in ns.
    pub fn sum(&self) -> i64 {
        let lengths = self.cases.iter().filter_map(|case| case.attributes.length);
        lengths.fold(0, i64::saturating_add)
    }

    /// The error of the sum of its tests' lengths and of its own length, in ns.
    pub(super) fn rounded(&self) -> i64 {
        let digits = self.cases.iter().map(|case| case.attributes.digit);
        digits.fold(self.attributes.digit, i64::saturating_add)
    }

    /// Whether the suite's own length was measured: one that is no more than the sum of its tests bounds no time
    /// between them.
    pub(super) fn is_measured(&self) -> bool {
        let sum = self.sum().saturating_add(self.rounded());
        self.attributes.length.is_some_and(|length| length > sum)
    }

    /// Whether the tests that failed all stand before or all behind the others: the file can be ordered by result.
    pub(super) fn is_by_result(&self) -> bool {
        let results = self.cases.iter().map(Case::has_failed);
        let changes = results.clone().zip(results.skip(1));
        changes.filter(|(a, b)| a != b).count() == 1
    }

    /// For each test the one around it, as Go's `TestA` is around `TestA/x`: the longest name that a slash ends.
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
    /// The file that the report names, in which the test is.
    pub file: Option<String>,
    pub at: Option<Date>,
    /// The length in ns.
    pub length: Option<i64>,
    /// The length of the last digit of `length`, in ns.
    pub digit: i64,
}

impl Attributes {
    /// The name of a test with its class. jest-junit and others write the whole name as the class, too; it stands once
    /// then.
    pub(super) fn title(&self) -> String {
        let (class, name) = (self.class.trim(), self.name.trim());
        if class.is_empty() || name == class || name.starts_with(&format!("{class} ")) {
            name.to_owned()
        } else {
            format!("{class} {name}")
        }
    }
}

/// A time of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// In ns since 1970, in its zone.
    pub local: i64,
    /// The difference of the date's zone from UTC, in ns, if it has a zone; zones east of UTC are positive.
    pub ahead: Option<i64>,
    /// The length of its last digit, in ns.
    pub digit: i64,
}

#[cfg(test)]
mod tests {
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
}
