//! Describes where in time a test is placed if it can have run anywhere within its suite.

use super::report::{Case, LEAST_ERROR};

/// The place in time of a test that can have run anywhere within its suite, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anywhere {
    /// The assumed beginning of the test in nanoseconds: the test is placed in the middle of the possible time.
    pub from: i64,
    pub to: i64,
    /// The largest error in nanoseconds of the assumed beginning or end of the test.
    pub error: i64,
}

impl Anywhere {
    /// The place of a test that ran somewhere between the times `first` and `last` (in nanoseconds); `None` if the test
    /// is longer than the time between them.
    pub fn new(case: &Case, first: i64, last: i64) -> Option<Anywhere> {
        let length = case.attributes.length?;
        let digit = case.attributes.digit.max(LEAST_ERROR);
        let left = last.saturating_sub(first).saturating_sub(length);
        if left < -digit {
            return None;
        }
        let left = left.max(0);
        let from = first.saturating_add(left / 2);
        Some(Anywhere {
            from,
            to: from.saturating_add(length),
            error: (left - left / 2).saturating_add(digit),
        })
    }
}
