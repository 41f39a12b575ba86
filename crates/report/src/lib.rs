//! Renderers of an analysis. They know nothing of events.
#![forbid(unsafe_code)]

pub mod audit;
pub mod csv;
pub mod escape;
pub mod json;
pub mod label;
pub mod query;
pub mod text;
pub mod units;
