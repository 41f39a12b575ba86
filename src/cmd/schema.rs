//! Implements `tr schema`, which prints the JSON Schema of a document.

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tr_report::schemas;

use crate::errors::Done;
use crate::open;
use crate::subcommand::{Program, Subcommand};

/// Print the JSON Schema of the document that a subcommand writes
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  tr schema summary
  tr schema analyze > analysis.schema.json")]
pub struct Args {
    /// The subcommand; process: a line of tr analyze --format ndjson
    #[arg(value_name = "NAME", value_parser = named())]
    schema: String,
}

fn named() -> impl TypedValueParser<Value = String> {
    let names = schemas::COMMAND_NAMES.into_iter();
    PossibleValuesParser::new(names.chain([schemas::PROCESS])).map(|given| {
        let found = schemas::of(&given).map(str::to_owned);
        found.or_else(schemas::process).unwrap_or_default()
    })
}

impl Subcommand for Args {
    const IS_LONG: bool = true;

    fn run(self, _: &Program) -> Done {
        Ok(print_schema(&self))
    }
}

fn print_schema(args: &Args) -> ExitCode {
    open::print(args.schema.as_bytes())
}
