//! The subcommands, a file each, and the table of them.

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
pub mod left_out;
pub mod manual;
pub mod mark;
#[cfg(not(feature = "record-only"))]
pub mod mcp;
#[cfg(not(feature = "record-only"))]
pub mod pipeline;
#[cfg(not(feature = "record-only"))]
pub mod predict;
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

use crate::subcommand::KeyKind::{Display, Mask, MaskAll, Steps, Threshold};
use crate::subcommand::{Built, Key, Row};
use tr_programs::steps::StepKind;

/// The arguments of a subcommand that analyzes or shows recordings. A `tr` that records alone lacks it.
#[cfg(not(feature = "record-only"))]
macro_rules! reading {
    ($args:ty) => {
        Some(Built::of::<$args>())
    };
}
#[cfg(feature = "record-only")]
macro_rules! reading {
    ($args:ty) => {
        None
    };
}

/// The arguments of a subcommand that needs the recorder.
#[cfg(feature = "record")]
macro_rules! recording {
    ($args:ty) => {
        Some(Built::of::<$args>())
    };
}
#[cfg(not(feature = "record"))]
macro_rules! recording {
    ($args:ty) => {
        None
    };
}

const COLOR: Key = Key::new("display", "color", Display);
const WIDTH: Key = Key::new("display", "width", Display);
const REDACT: Key = Key::new("mask", "redact", Mask);
const ADDRESSES: Key = Key::new("mask", "addresses", MaskAll).option("mask-addresses");

/// The rules that name steps, by the kind of the steps.
pub const STEPS: [Key; 4] = [
    Key::new("steps", "job", Steps(StepKind::Job)),
    Key::new("steps", "target", Steps(StepKind::Target)),
    Key::new("steps", "unit", Steps(StepKind::Unit)),
    Key::new("steps", "test", Steps(StepKind::Test)),
];

/// A row without keys and other words.
const PLAIN: Row = Row {
    names: &[],
    other_words: &[],
    keys: &[],
    built: None,
};

/// All subcommands, in the order of the help.
pub static ROWS: &[Row] = &[
    Row {
        names: &["record"],
        other_words: &["rec", "run", "trace"],
        keys: &[REDACT, ADDRESSES],
        built: Some(Built::of::<record::Args>()),
    },
    Row {
        names: &["analyze", "analyse"],
        other_words: &["show", "stat", "stats"],
        keys: &[
            COLOR,
            WIDTH,
            Key::new("analyze", "report", Display),
            Key::new("analyze", "top", Display),
            Key::new("analyze", "sort", Display),
            Key::new("analyze", "by", Display),
            Key::new("analyze", "group", Display),
        ],
        built: reading!(analyze::Args),
    },
    Row {
        names: &["report"],
        keys: &STEPS,
        other_words: &["view", "open"],
        built: reading!(report::Args),
    },
    Row {
        names: &["summary"],
        keys: &[COLOR, WIDTH],
        built: reading!(summary::Args),
        ..PLAIN
    },
    Row {
        names: &["diff"],
        other_words: &["compare"],
        keys: &[
            COLOR,
            WIDTH,
            Key::new("diff", "top", Display),
            Key::new("diff", "min", Threshold),
            Key::new("diff", "fail-over", Threshold).required_by(&["fail_on", "strict"]),
            Key::new("diff", "fail-on", Threshold),
        ],
        built: reading!(diff::Args),
    },
    Row {
        names: &["predict"],
        keys: &[COLOR, WIDTH, Key::new("predict", "price", Display)],
        built: reading!(predict::Args),
        ..PLAIN
    },
    Row {
        names: &["pipeline"],
        built: reading!(pipeline::Args),
        ..PLAIN
    },
    Row {
        names: &["export"],
        keys: &STEPS,
        built: reading!(export::Args),
        ..PLAIN
    },
    Row {
        names: &["info"],
        built: reading!(info::Args),
        ..PLAIN
    },
    Row {
        names: &["dump"],
        other_words: &["print"],
        built: reading!(dump::Args),
        ..PLAIN
    },
    Row {
        names: &["verify"],
        other_words: &["check"],
        built: Some(Built::of::<verify::Args>()),
        ..PLAIN
    },
    Row {
        names: &["recover"],
        other_words: &["repair"],
        built: Some(Built::of::<recover::Args>()),
        ..PLAIN
    },
    Row {
        names: &["redact"],
        keys: &[REDACT, ADDRESSES],
        built: Some(Built::of::<redact::Args>()),
        ..PLAIN
    },
    Row {
        names: &["symbolize"],
        built: recording!(symbolize::Args),
        ..PLAIN
    },
    Row {
        names: &["doctor"],
        built: recording!(doctor::Args),
        ..PLAIN
    },
    Row {
        names: &["mark"],
        built: Some(Built::of::<mark::Args>()),
        ..PLAIN
    },
    Row {
        names: &["mcp"],
        built: reading!(mcp::Args),
        ..PLAIN
    },
    Row {
        names: &["schema"],
        built: reading!(schema::Args),
        ..PLAIN
    },
    Row {
        names: &["completions"],
        built: Some(Built::of::<manual::CompletionsArgs>()),
        ..PLAIN
    },
    Row {
        names: &["man"],
        built: Some(Built::of::<manual::ManArgs>()),
        ..PLAIN
    },
];
