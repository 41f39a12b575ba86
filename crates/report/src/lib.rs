//! Renderers of an analysis. They know nothing of events.
#![forbid(unsafe_code)]

pub mod escape;
pub mod html;
pub mod json;
pub mod label;
pub mod query;
pub mod reports;
pub mod style;
pub mod table;
pub mod units;
