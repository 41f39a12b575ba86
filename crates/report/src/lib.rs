//! Renders an analysis as text, JSON, CSV, Markdown and HTML.
#![forbid(unsafe_code)]

pub mod dataset;
pub mod diff;
mod encode;
pub mod export;
mod functions;
pub mod hist;
pub mod html;
pub mod json;
pub mod members;
mod output;
mod packed;
pub mod pipeline;
pub mod predict;
pub mod reports;
pub mod schemas;
pub mod summary;
