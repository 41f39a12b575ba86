//! `tr schema`: the JSON Schema of a document.

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tr_report::schemas;

use crate::open;

/// Print the JSON Schema of the document that a subcommand writes
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  tr schema summary
  tr schema analyze > analysis.schema.json")]
pub struct Args {
    /// The subcommand
    #[arg(value_name = "NAME", value_parser = named())]
    schema: &'static str,
}

fn named() -> impl TypedValueParser<Value = &'static str> {
    PossibleValuesParser::new(schemas::ALL.map(|(name, _)| name)).map(|given| {
        let found = schemas::ALL.iter().find(|(name, _)| *name == given);
        found.map_or("", |(_, schema)| *schema)
    })
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    open::print(args.schema.as_bytes())
}
