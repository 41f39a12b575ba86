//! `tr`: where did the time go? Records a build or test run with eBPF and reads
//! it back.

/// `std`'s `eprintln`, without its panic when standard error cannot be written: `tr record`
/// would not pass on COMMAND's status then. What a message holds of a trace is escaped. Its first
/// word `tr:` becomes the name by which the program was called. It precedes the modules, which use it.
macro_rules! eprintln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let message = format!($($arg)*);
        let message = tr_report::escape::page(&message);
        let mut stderr = std::io::stderr().lock();
        let _ = match message.strip_prefix("tr:") {
            Some(said) => writeln!(stderr, "{}:{said}", tr_report::called::TR),
            None => writeln!(stderr, "{message}"),
        };
    }};
}

mod args;
mod budget;
mod called;
mod cmd;
mod confine;
mod contents;
mod copy;
mod filters;
mod inherited;
mod layout;
mod limits;
mod mapping;
mod mistyped;
mod open;
mod output;
mod passthrough;
mod progress;
mod send;
// From the crate `record`, which is absent without the feature `record`.
#[path = "../crates/record/src/status.rs"]
mod status;
mod suspend;
mod version;
mod with;

use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

use budget::Budget;

#[global_allocator]
static ALLOCATOR: limits::Allocator = limits::Allocator;

/// Where did the time go? Records a build or test run and reads it back.
#[derive(Parser)]
#[command(
    name = "tr",
    version,
    after_help = "Examples:\n  \
        tr record -- make -j8              record a build into trace.bin\n  \
        tr analyze --top 20                where the time went\n  \
        tr analyze --by program --sort run-queue\n  \
        tr analyze --report tree           the process tree\n  \
        tr analyze --report execs --failed\n  \
        tr diff main.bin pr.bin            changes between two builds\n  \
        tr predict --cpus 16 --jobs 16     the time that it takes on another machine\n  \
        tr pipeline build.bin test.bin     which job the pipeline waited for\n  \
        tr report                          the analysis as an HTML page\n  \
        tr export --format perfetto -o build.pftrace\n  \
        tr summary                         ten lines for the page of a CI job\n  \
        tr info                            the contents of the recording\n  \
        tr verify                          check the recording for damage\n  \
        tr redact trace.bin -o trace.bin   mask the secrets in an old recording\n  \
        tr symbolize                       name the functions of stacks later\n  \
        tr doctor                          what recording this machine allows\n  \
        tr mark tests -- make check        name a part of a recording\n  \
        tr schema summary                  the schema of a document in JSON\n  \
        tr --version --verbose             features, methods, formats\n  \
        tr completions bash > /etc/bash_completion.d/tr\n  \
        tr man /usr/local/share/man/man1\n\n\
        Without a file, analyze, report, summary, predict, export, symbolize, info, dump and verify read trace.bin.\n\
        tr help COMMAND says more."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Record(cmd::record::Args),
    #[command(alias = "analyse")]
    Analyze(cmd::analyze::Args),
    Report(cmd::report::Args),
    Summary(cmd::summary::Args),
    Diff(cmd::diff::Args),
    Predict(cmd::predict::Args),
    Pipeline(cmd::pipeline::Args),
    Export(cmd::export::Args),
    Info(cmd::info::Args),
    Dump(cmd::dump::Args),
    Verify(cmd::verify::Args),
    Recover(cmd::recover::Args),
    Redact(cmd::redact::Args),
    #[cfg(feature = "record")]
    Symbolize(cmd::symbolize::Args),
    #[cfg(feature = "record")]
    Doctor(cmd::doctor::Args),
    Mark(cmd::mark::Args),
    Schema(cmd::schema::Args),
    Completions(cmd::manual::CompletionsArgs),
    Man(cmd::manual::ManArgs),
}

impl Command {
    /// The files that a subcommand reads which writes none.
    fn only_reads(&self) -> Option<Vec<&std::path::Path>> {
        match self {
            Command::Analyze(args) => Some(args.files()),
            Command::Info(args) => Some(vec![args.file()]),
            Command::Dump(args) => Some(vec![args.file()]),
            Command::Summary(args) => Some(args.files()),
            Command::Verify(args) => Some(vec![args.file()]),
            Command::Diff(args) => args.only_reads().then(|| args.files()),
            Command::Predict(args) => Some(vec![args.file()]),
            _ => None,
        }
    }

    /// Holds a subcommand that reads a trace to its limits of memory and time.
    fn hold(&self) {
        let (budget, streams) = match self {
            Command::Analyze(args) => (args.budget(), false),
            Command::Report(args) => (args.budget(), false),
            Command::Summary(args) => (args.budget(), false),
            Command::Diff(args) => (args.budget(), false),
            Command::Predict(args) => (args.budget(), false),
            Command::Pipeline(args) => (args.budget(), false),
            Command::Export(args) => (args.budget(), false),
            Command::Info(args) => (args.budget(), false),
            Command::Verify(args) => (args.budget(), false),
            Command::Dump(args) => (args.budget(), true),
            Command::Recover(_) | Command::Redact(_) => (Budget::default(), true),
            #[cfg(feature = "record")]
            Command::Symbolize(_) => (Budget::default(), true),
            _ => return,
        };
        budget.hold(streams);
    }
}

/// Our words for an option of other tools, or the subcommand that takes a second recording.
fn hint(said: &clap::Error, subcommand: Option<&std::ffi::OsStr>) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let ContextValue::String(wrong) = said.get(ContextKind::InvalidArg)? else {
        return None;
    };
    if said.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let subcommand = subcommand?.to_str()?;
    let json = [
        "analyze", "analyse", "info", "diff", "doctor", "summary", "predict", "pipeline",
    ];
    let option = wrong
        .split_once('=')
        .map_or(wrong.as_str(), |(name, _)| name);
    match option {
        "--json" if json.contains(&subcommand) => Some("--format json".to_owned()),
        "--json" if subcommand == "dump" => Some("--format ndjson".to_owned()),
        "-n" if subcommand.starts_with("analy") => Some("--top N is the number of rows".to_owned()),
        file if !file.starts_with('-') && subcommand != "record" => {
            Some("two recordings are compared by: tr diff BASE NEW".to_owned())
        }
        _ => None,
    }
}

fn main() -> ExitCode {
    let started = std::time::Instant::now();
    let first = std::env::args_os().nth(1);
    if let Some(status) = passthrough::before_clap() {
        return ExitCode::from(status);
    }
    #[cfg(feature = "record")]
    if cmd::loader::is_meant() {
        return cmd::loader::run();
    }
    #[cfg(feature = "record")]
    if cmd::symbol_server::is_meant() {
        return cmd::symbol_server::run();
    }
    if version::is_asked() {
        return version::run();
    }
    let parsed = called::command().try_get_matches();
    let command = match parsed.and_then(|it| Cli::from_arg_matches(&it)) {
        Ok(cli) => cli.command,
        Err(mut said) => {
            if let Some(hint) = hint(&said, first.as_deref()) {
                use clap::error::{ContextKind, ContextValue};
                said.insert(
                    ContextKind::Suggested,
                    ContextValue::StyledStrs(vec![hint.into()]),
                );
            }
            if said.exit_code() != 0 {
                use std::io::IsTerminal;
                let colours = std::io::stderr().is_terminal();
                let text = said.render();
                let text = if colours {
                    text.ansi().to_string()
                } else {
                    text.to_string()
                };
                eprintln!("{}", text.trim_end());
            }
            return match said.exit_code() {
                // Help, and the version.
                0 => open::printed(open::stdout().and_then(|_| said.print())),
                _ if first.is_some_and(|word| word == "record") => ExitCode::from(status::FAILED),
                code => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
            };
        }
    };
    if !matches!(command, Command::Record(_)) {
        // A closed pipe ends tr, like any other tool.
        inherited::restore_sigpipe();
    }
    command.hold();
    if let Some(files) = command.only_reads() {
        confine::to_reading(&files);
    }
    match command {
        Command::Record(args) => cmd::record::run(args, started),
        Command::Analyze(args) => cmd::analyze::run(&args),
        Command::Report(args) => cmd::report::run(&args),
        Command::Summary(args) => cmd::summary::run(&args),
        Command::Diff(args) => cmd::diff::run(&args),
        Command::Predict(args) => cmd::predict::run(&args),
        Command::Pipeline(args) => cmd::pipeline::run(&args),
        Command::Export(args) => cmd::export::run(&args),
        Command::Info(args) => cmd::info::run(&args),
        Command::Dump(args) => cmd::dump::run(&args),
        Command::Verify(args) => cmd::verify::run(&args),
        Command::Recover(args) => cmd::recover::run(&args),
        Command::Redact(args) => cmd::redact::run(&args),
        #[cfg(feature = "record")]
        Command::Symbolize(args) => cmd::symbolize::run(&args),
        #[cfg(feature = "record")]
        Command::Doctor(args) => cmd::doctor::run(&args),
        Command::Mark(args) => cmd::mark::run(&args),
        Command::Schema(args) => cmd::schema::run(&args),
        Command::Completions(args) => cmd::manual::completions(&args),
        Command::Man(args) => cmd::manual::man(&args),
    }
}
