//! The subcommands, a file each.

#[cfg(feature = "record-only")]
pub mod absent;
#[cfg(not(feature = "record-only"))]
pub mod analyze;
#[cfg(not(feature = "record-only"))]
pub mod diff;
#[cfg(feature = "record")]
pub mod doctor;
#[cfg(not(feature = "record-only"))]
pub mod dump;
#[cfg(not(feature = "record-only"))]
pub mod export;
#[cfg(feature = "record")]
pub mod helpers;
#[cfg(not(feature = "record-only"))]
pub mod info;
pub mod manual;
pub mod mark;
#[cfg(not(feature = "record-only"))]
pub mod mcp;
#[cfg(not(feature = "record-only"))]
pub mod pipeline;
#[cfg(not(feature = "record-only"))]
pub mod predict;
#[cfg(not(feature = "record-only"))]
pub mod reading;
#[cfg(feature = "record")]
pub mod record;
#[cfg(not(feature = "record"))]
#[path = "not_built.rs"]
pub mod record;
pub mod recover;
pub mod redact;
#[cfg(not(feature = "record-only"))]
pub mod report;
#[cfg(not(feature = "record-only"))]
pub mod schema;
pub mod secrets;
#[cfg(not(feature = "record-only"))]
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
