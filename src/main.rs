//! `tr`: where did the time go? Records a build or test run with eBPF and reads
//! it back.

mod args;
mod cmd;
mod open;
mod passthrough;
mod sigpipe;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Where did the time go? Records a build or test run and reads it back.
#[derive(Parser)]
#[command(
    name = "tr",
    version,
    after_help = "Any other use of tr goes to the system's tr (translate characters).\n\n\
        Examples:\n  tr record -- make -j8\n  tr analyze trace.bin --top 20"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Record(cmd::record::Args),
    Analyze(cmd::analyze::Args),
    Info(cmd::info::Args),
    Dump(cmd::dump::Args),
    Verify(cmd::verify::Args),
    Recover(cmd::recover::Args),
}

fn main() -> ExitCode {
    let started = std::time::Instant::now();
    if !passthrough::is_ours(std::env::args_os().nth(1).as_deref()) {
        return passthrough::exec();
    }
    match Cli::parse().command {
        Command::Record(args) => cmd::record::run(args, started),
        Command::Analyze(args) => cmd::analyze::run(&args),
        Command::Info(args) => cmd::info::run(&args),
        Command::Dump(args) => cmd::dump::run(&args),
        Command::Verify(args) => cmd::verify::run(&args),
        Command::Recover(args) => cmd::recover::run(&args),
    }
}
