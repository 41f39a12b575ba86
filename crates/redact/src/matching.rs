//! Helpers for the regular expressions that this crate contains as constants.

use std::ops::Range;

use regex::bytes::{Captures, Match, Regex};

/// Compiles a constant regular expression when a command line first needs the expression. Most builds never need it,
/// and compiling all expressions takes a millisecond. A test compiles each of them.
#[allow(clippy::expect_used)] // of a constant
pub fn compiled(text: &str) -> Regex {
    Regex::new(text).expect("a constant expression is a valid one")
}

/// The first of these groups of a regular expression that is part of the match.
pub fn first_group<'t>(found: &Captures<'t>, groups: Range<usize>) -> Option<Match<'t>> {
    groups.into_iter().find_map(|n| found.get(n))
}
