//! Renders an analysis as text, JSON, CSV, Markdown and HTML.
#![forbid(unsafe_code)]

pub mod advice;
mod ancestors;
pub mod ci;
pub mod dataset;
pub mod diff;
mod encode;
pub mod exit;
pub mod export;
pub mod facts;
mod frames;
mod functions;
pub mod hist;
pub mod html;
pub mod identity;
pub mod imports;
pub mod json;
mod kinds;
mod known;
pub mod label;
pub mod members;
pub mod now;
mod output;
mod packed;
pub mod pipeline;
pub mod predict;
pub mod query;
pub mod reports;
pub mod schemas;
pub mod steps;
pub mod summary;
pub mod untraced;
mod view;
pub mod warnings;
pub mod who;
