//! Estimates the time that a test runner itself takes for each test and for each file, from the gaps in its JUnit
//! report.

use tr_placing::junit::{Attributes, Report, Suite};

/// The mean time in ns that a test runner takes for each test of a suite in addition to the reported length of the
/// test; 0 if the suite has no length.
pub fn between_tests(suite: &Suite) -> u64 {
    let own = suite
        .attributes
        .length
        .unwrap_or(0)
        .saturating_sub(suite.sum());
    mean(own, suite.cases.len())
}

/// The mean time in ns between consecutive suites of a JUnit report; 0 if a suite has no time or no length.
pub fn between_suites(report: &Report) -> u64 {
    let span = |attributes: &Attributes| {
        let from = attributes.at?.local;
        Some((from, from.saturating_add(attributes.length?)))
    };
    let spans = report.suites.iter().map(|suite| span(&suite.attributes));
    let Some(spans) = spans.collect::<Option<Vec<(i64, i64)>>>() else {
        return 0;
    };
    let from = spans.iter().map(|(from, _)| *from).min().unwrap_or(0);
    let to = spans.iter().map(|(_, to)| *to).max().unwrap_or(0);
    let lengths = spans.iter().map(|(from, to)| to.saturating_sub(*from));
    let own = to
        .saturating_sub(from)
        .saturating_sub(lengths.fold(0, i64::saturating_add));
    mean(own, spans.len().saturating_sub(1))
}

/// A time in ns divided by the number `parts`; 0 for a negative time. The time between suites is negative if the suites
/// ran at once.
fn mean(ns: i64, parts: usize) -> u64 {
    let ns = u64::try_from(ns).unwrap_or(0);
    ns.checked_div(parts as u64).unwrap_or(0)
}
