//! Provides the parts of all outputs of `tr` that know nothing of recordings: tables, units, escaping,
//! layout, JSON that is safe on a terminal, and the words that all outputs share.
#![forbid(unsafe_code)]

pub mod called;
pub mod escape;
pub mod json;
pub mod levels;
pub mod names;
pub mod page;
pub mod phrase;
pub mod pictures;
pub mod strings;
pub mod strips;
pub mod style;
pub mod table;
pub mod units;
pub mod words;
