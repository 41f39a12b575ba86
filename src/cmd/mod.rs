//! The subcommands of `tr`, each in a file of its own, and the table of all of them.

#[cfg(feature = "report")]
pub mod analyze;
pub mod completions;
#[cfg(feature = "compare")]
pub mod diff;
#[cfg(feature = "record")]
pub mod doctor;
#[cfg(feature = "report")]
pub mod dump;
#[cfg(feature = "export")]
pub mod export;
#[cfg(feature = "record")]
pub mod helpers;
#[cfg(feature = "report")]
pub mod info;
pub mod left_out;
pub mod manual;
pub mod mark;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "report")]
pub mod open;
#[cfg(feature = "compare")]
pub mod pipeline;
#[cfg(feature = "predict")]
pub mod predict;
#[cfg(feature = "record")]
pub mod record;
#[cfg(not(feature = "record"))]
#[path = "not_built.rs"]
pub mod record;
pub mod recover;
pub mod redact;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "report")]
pub mod schema;
#[cfg(feature = "report")]
pub mod secrets;
#[cfg(feature = "report")]
pub mod summary;
#[cfg(feature = "record")]
pub mod symbolize;
pub mod verify;

use crate::subcommand::KeyKind::{Display, Mask, MaskAll, Steps, Threshold};
use crate::subcommand::{Built, Key, Row, Task};
use tr_programs::steps::StepKind;

/// Expands to `Some` of the subcommand whose clap arguments have the given type, or to `None` if
/// the program was built without the subcommand's Cargo feature.
macro_rules! built {
    ($feature:literal, $args:ty) => {{
        #[cfg(feature = $feature)]
        let built = Some(Built::of::<$args>());
        #[cfg(not(feature = $feature))]
        let built = None;
        built
    }};
}

const COLOR: Key = Key::new("display", "color", Display);
const WIDTH: Key = Key::new("display", "width", Display);
const REDACT: Key = Key::new("mask", "redact", Mask);
const ADDRESSES: Key = Key::new("mask", "addresses", MaskAll).option("mask-addresses");

/// The keys in the table `steps` of a configuration file (`tr.toml`), whose values are the user's
/// rules for naming steps. There is one key for each kind of step.
pub const STEPS: [Key; 4] = [
    Key::new("steps", "job", Steps(StepKind::Job)),
    Key::new("steps", "target", Steps(StepKind::Target)),
    Key::new("steps", "unit", Steps(StepKind::Unit)),
    Key::new("steps", "test", Steps(StepKind::Test)),
];

/// A row of the table of subcommands in which all lists are empty. The other rows are made from it.
const PLAIN_ROW: Row = Row {
    names: &[],
    task: Task::Manage,
    other_words: &[],
    keys: &[],
    built: None,
};

/// The table of all subcommands, in the order in which the help lists them.
pub static ROWS: &[Row] = &[
    Row {
        names: &["record"],
        task: Task::Daily,
        other_words: &["rec", "run", "trace"],
        keys: &[REDACT, ADDRESSES],
        built: Some(Built::of::<record::Args>()),
    },
    Row {
        names: &["analyze", "analyse"],
        task: Task::Daily,
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
        built: built!("report", analyze::Args),
    },
    Row {
        names: &["report"],
        task: Task::Read,
        keys: &STEPS,
        other_words: &["view"],
        built: built!("report", report::Args),
    },
    Row {
        names: &["open"],
        task: Task::Daily,
        keys: &STEPS,
        other_words: &["browse"],
        built: built!("report", open::Args),
    },
    Row {
        names: &["summary"],
        task: Task::Daily,
        keys: &[COLOR, WIDTH],
        built: built!("report", summary::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["diff"],
        task: Task::Daily,
        other_words: &["compare"],
        keys: &[
            COLOR,
            WIDTH,
            Key::new("diff", "top", Display),
            Key::new("diff", "min", Threshold),
            Key::new("diff", "fail-over", Threshold).required_by(&["fail_on", "strict"]),
            Key::new("diff", "fail-on", Threshold),
        ],
        built: built!("compare", diff::Args),
    },
    Row {
        names: &["predict"],
        task: Task::Plan,
        keys: &[COLOR, WIDTH, Key::new("predict", "price", Display)],
        built: built!("predict", predict::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["pipeline"],
        task: Task::Plan,
        built: built!("compare", pipeline::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["export"],
        task: Task::Export,
        keys: &STEPS,
        built: built!("export", export::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["info"],
        task: Task::Read,
        built: built!("report", info::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["dump"],
        task: Task::Read,
        other_words: &["print"],
        built: built!("report", dump::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["verify"],
        task: Task::Manage,
        other_words: &["check"],
        built: Some(Built::of::<verify::Args>()),
        ..PLAIN_ROW
    },
    Row {
        names: &["recover"],
        task: Task::Manage,
        other_words: &["repair"],
        built: Some(Built::of::<recover::Args>()),
        ..PLAIN_ROW
    },
    Row {
        names: &["redact"],
        task: Task::Manage,
        keys: &[REDACT, ADDRESSES],
        built: Some(Built::of::<redact::Args>()),
        ..PLAIN_ROW
    },
    Row {
        names: &["symbolize"],
        task: Task::Manage,
        built: built!("record", symbolize::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["doctor"],
        task: Task::Record,
        built: built!("record", doctor::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["mark"],
        task: Task::Record,
        built: Some(Built::of::<mark::Args>()),
        ..PLAIN_ROW
    },
    Row {
        names: &["mcp"],
        task: Task::Export,
        built: built!("mcp", mcp::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["schema"],
        task: Task::Export,
        built: built!("report", schema::Args),
        ..PLAIN_ROW
    },
    Row {
        names: &["completions"],
        task: Task::Manage,
        built: Some(Built::of::<completions::CompletionsArgs>()),
        ..PLAIN_ROW
    },
    Row {
        names: &["man"],
        task: Task::Manage,
        built: Some(Built::of::<manual::ManArgs>()),
        ..PLAIN_ROW
    },
];

/// The names of the Cargo features with which this program was built.
pub fn features() -> impl Iterator<Item = &'static str> {
    let all = [
        ("record", cfg!(feature = "record")),
        ("symbols", cfg!(feature = "symbols")),
        ("report", cfg!(feature = "report")),
        ("import", cfg!(feature = "import")),
        ("compare", cfg!(feature = "compare")),
        ("predict", cfg!(feature = "predict")),
        ("export", cfg!(feature = "export")),
        ("mcp", cfg!(feature = "mcp")),
    ];
    all.into_iter()
        .filter(|(_, is_built)| *is_built)
        .map(|(name, _)| name)
}
