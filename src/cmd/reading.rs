//! The subcommands that analyze or show recordings, which a `tr` that records alone lacks.

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use super::{analyze, diff, dump, export, info, pipeline, predict, report, summary};
use crate::budget::Budget;

/// One of them.
#[derive(Subcommand)]
pub enum Reading {
    #[command(alias = "analyse")]
    Analyze(analyze::Args),
    Report(report::Args),
    Summary(summary::Args),
    Diff(diff::Args),
    Predict(predict::Args),
    Pipeline(pipeline::Args),
    Export(export::Args),
    Info(info::Args),
    Dump(dump::Args),
}

impl Reading {
    /// The files that a subcommand reads which writes none.
    pub fn only_reads(&self) -> Option<Vec<&Path>> {
        match self {
            Reading::Analyze(args) => Some(args.files()),
            Reading::Info(args) => Some(vec![&args.file]),
            Reading::Dump(args) => Some(vec![&args.file]),
            Reading::Summary(args) => Some(args.files()),
            Reading::Diff(args) => args.only_reads().then(|| args.files()),
            Reading::Predict(args) => Some(vec![&args.file]),
            Reading::Pipeline(args) => args.only_reads().then(|| args.files()),
            Reading::Report(_) | Reading::Export(_) => None,
        }
    }

    /// The limits of memory and time, and whether the events pass through as a stream.
    pub fn budget(&self) -> (Budget, bool) {
        match self {
            Reading::Analyze(args) => (args.budget, false),
            Reading::Report(args) => (args.budget, false),
            Reading::Summary(args) => (args.budget, false),
            Reading::Diff(args) => (args.budget, false),
            Reading::Predict(args) => (args.budget, false),
            Reading::Pipeline(args) => (args.budget, false),
            Reading::Export(args) => (args.budget, false),
            Reading::Info(args) => (args.budget, false),
            Reading::Dump(args) => (args.budget, true),
        }
    }

    /// Prints text that can be longer than a terminal.
    pub fn is_long(&self) -> bool {
        match self {
            Reading::Diff(args) => args.only_reads(),
            Reading::Dump(args) => !args.follows(),
            Reading::Analyze(_) | Reading::Predict(_) | Reading::Pipeline(_) | Reading::Info(_) => {
                true
            }
            Reading::Report(_) | Reading::Summary(_) | Reading::Export(_) => false,
        }
    }

    pub fn run(&self) -> ExitCode {
        let done = match self {
            Reading::Analyze(args) => analyze::run(args),
            Reading::Report(args) => report::run(args),
            Reading::Summary(args) => summary::run(args),
            Reading::Diff(args) => diff::run(args),
            Reading::Predict(args) => predict::run(args),
            Reading::Pipeline(args) => pipeline::run(args),
            Reading::Export(args) => export::run(args),
            Reading::Info(args) => info::run(args),
            Reading::Dump(args) => dump::run(args),
        };
        done.unwrap_or_else(|code| code)
    }
}
