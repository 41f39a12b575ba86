//! Serves the analysis of recordings to AI agents by the Model Context Protocol (MCP).
//!
//! A server that only offers tools needs a small part of this protocol
//! (<https://modelcontextprotocol.io/specification/2025-06-18>): one message in each line, and four methods. Each call
//! of a tool runs a `tr` command in a process of its own. The command has its usual limits, and lowers its priority
//! before it examines a recording.
#![forbid(unsafe_code)]

#[cfg(feature = "server")]
mod answer;
#[cfg(feature = "server")]
pub mod server;
pub mod tool;
#[cfg(feature = "server")]
mod tools;
