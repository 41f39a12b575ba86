//! Helpers for regular expressions that are constants of this crate.

use std::ops::Range;

use regex::bytes::{Captures, Match, Regex};

/// Compiles a constant expression, when a command line first needs it: most builds never
/// do, and all of them take a ms. Tests compile each.
#[allow(clippy::expect_used)] // of a constant
pub fn compiled(text: &str) -> Regex {
    Regex::new(text).expect("a constant expression is a valid one")
}

/// The first of these groups that takes part in a match.
pub fn first_group<'t>(found: &Captures<'t>, groups: Range<usize>) -> Option<Match<'t>> {
    groups.into_iter().find_map(|n| found.get(n))
}
