//! Renders the analysis of a recording as text, JSON, CSV, Markdown and HTML.
#![forbid(unsafe_code)]

pub mod ci;
mod encode;
mod functions;
pub mod hist;
pub mod html;
pub mod json;
pub mod members;
mod output;
mod packed;
pub mod reports;
pub mod schemas;
mod size;
pub mod status;
pub mod summary;
pub mod untraced;
pub mod warnings;
