//! Serves the analysis to agents, by the Model Context Protocol.
//!
//! Of the protocol (<https://modelcontextprotocol.io/specification/2025-06-18>) a server of tools needs one
//! message in each line and four methods. Each call of a tool is a `tr` of its own: it has that command's
//! limits, and lowers its priority before it examines a recording.
#![forbid(unsafe_code)]

#[cfg(feature = "server")]
mod answer;
#[cfg(feature = "server")]
pub mod server;
pub mod tool;
#[cfg(feature = "server")]
mod tools;
