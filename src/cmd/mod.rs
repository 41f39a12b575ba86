//! The subcommands, a file each.

pub mod analyze;
pub mod diff;
#[cfg(feature = "record")]
pub mod doctor;
pub mod dump;
pub mod export;
#[cfg(feature = "record")]
pub mod helpers;
pub mod info;
pub mod manual;
pub mod mark;
pub mod mcp;
pub mod pipeline;
pub mod predict;
#[cfg(feature = "record")]
pub mod record;
#[cfg(not(feature = "record"))]
#[path = "not_built.rs"]
pub mod record;
pub mod recover;
pub mod redact;
pub mod report;
pub mod schema;
pub mod secrets;
pub mod summary;
#[cfg(feature = "record")]
pub mod symbolize;
pub mod verify;

use std::process::ExitCode;

use regex::bytes::Regex;
use tr_redact::Redactor;

/// Masks by these rules, or an exit status after the reason why there are none.
fn redactor(mask: bool, patterns: Vec<Regex>) -> Result<Redactor, ExitCode> {
    Redactor::new(mask, patterns).map_err(|error| {
        eprintln!("tr: {error}");
        ExitCode::FAILURE
    })
}
