//! Helpers for regular expressions that are constants of this crate.

use std::ops::Range;

use regex::bytes::{Captures, Match, Regex};

/// Compiles a constant expression when a command line first needs it: most builds never do, and compiling all
/// of them takes a millisecond. A test compiles each.
#[allow(clippy::expect_used)] // of a constant
pub fn compiled(text: &str) -> Regex {
    Regex::new(text).expect("a constant expression is a valid one")
}

/// The first of these groups of an expression that takes part in a match.
pub fn first_group<'t>(found: &Captures<'t>, groups: Range<usize>) -> Option<Match<'t>> {
    groups.into_iter().find_map(|n| found.get(n))
}
