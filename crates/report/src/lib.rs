//! Renderers of an analysis. They know nothing of events.
#![forbid(unsafe_code)]

pub mod diff;
pub mod escape;
pub mod hist;
pub mod html;
pub mod json;
pub mod label;
pub mod members;
pub mod query;
pub mod reports;
pub mod style;
pub mod table;
pub mod units;
pub mod who;
