//! `tr`: where did the time go? Records a build or test run with eBPF and reads
//! it back.
// What only the subcommands that are left out use.
#![cfg_attr(feature = "record-only", allow(dead_code))]

/// `std`'s `eprintln`, without its panic when standard error cannot be written: `tr record`
/// would not pass on COMMAND's status then. What a message holds of a trace is escaped. Its first
/// word `tr:` becomes the name by which the program was called. It precedes the modules, which use it.
macro_rules! eprintln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let message = format!($($arg)*);
        let message = tr_text::escape::page(&message);
        let mut stderr = std::io::stderr().lock();
        let _ = match message.strip_prefix("tr:") {
            Some(said) => writeln!(stderr, "{}:{said}", tr_text::called::TR),
            None => writeln!(stderr, "{message}"),
        };
    }};
}

mod args;
mod budget;
mod called;
mod cmd;
mod config;
mod confine;
mod contents;
mod copy;
mod errors;
mod filters;
mod inherited;
mod layout;
mod limits;
mod mapping;
mod mistyped;
mod open;
mod output;
mod pager;
mod passthrough;
mod progress;
mod send;
mod span;
mod stack;
// From the crate `record`, which is absent without the feature `record`.
#[path = "../crates/record/src/status.rs"]
mod status;
mod suspend;
mod version;
mod with;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{FromArgMatches, Parser, Subcommand};

use budget::Budget;

#[global_allocator]
static ALLOCATOR: limits::Allocator = limits::Allocator;

#[cfg(not(feature = "record-only"))]
const EXAMPLES: &str = "Examples:\n  \
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
    tr mcp                             answer an agent's questions\n  \
    tr schema summary                  the schema of a document in JSON\n  \
    tr --version --verbose             features, methods, formats\n  \
    tr completions bash > /etc/bash_completion.d/tr\n  \
    tr man /usr/local/share/man/man1\n\n\
    Without a file, analyze, report, summary, predict, export, symbolize, info, dump and verify read trace.bin.\n\
    Long text on a terminal goes through $PAGER; --no-pager prints it.\n\
    tr help COMMAND says more.";
#[cfg(feature = "record-only")]
const EXAMPLES: &str = "Examples:\n  \
    tr record -- make -j8              record a build into trace.bin\n  \
    tr verify                          check the recording for damage\n  \
    tr redact trace.bin -o trace.bin   mask the secrets in an old recording\n  \
    tr doctor                          what recording this machine allows\n  \
    tr mark tests -- make check        name a part of a recording\n\n\
    This tr records alone. Recordings are read by a whole one, on any machine.\n\
    tr help COMMAND says more.";

/// Where did the time go? Records a build or test run and reads it back.
#[derive(Parser)]
#[command(
    name = "tr",
    version,
    after_help = EXAMPLES
)]
struct Cli {
    /// Print long text to the terminal itself
    #[arg(long, global = true, hide = true)]
    no_pager: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Record(cmd::record::Args),
    #[cfg(not(feature = "record-only"))]
    #[command(flatten)]
    Read(cmd::reading::Reading),
    Verify(cmd::verify::Args),
    Recover(cmd::recover::Args),
    Redact(cmd::redact::Args),
    #[cfg(feature = "record")]
    Symbolize(cmd::symbolize::Args),
    #[cfg(feature = "record")]
    Doctor(cmd::doctor::Args),
    Mark(cmd::mark::Args),
    #[cfg(not(feature = "record-only"))]
    Mcp(cmd::mcp::Args),
    #[cfg(not(feature = "record-only"))]
    Schema(cmd::schema::Args),
    Completions(cmd::manual::CompletionsArgs),
    Man(cmd::manual::ManArgs),
    #[cfg(feature = "record-only")]
    #[command(external_subcommand)]
    Absent(Vec<OsString>),
}

impl Command {
    /// The files that a subcommand reads which writes none.
    fn only_reads(&self) -> Option<Vec<&std::path::Path>> {
        match self {
            #[cfg(not(feature = "record-only"))]
            Command::Read(args) => args.only_reads(),
            Command::Verify(args) => Some(vec![&args.file]),
            _ => None,
        }
    }

    /// Holds a subcommand that reads a trace to its limits of memory and time.
    fn hold(&self) {
        let (budget, streams) = match self {
            #[cfg(not(feature = "record-only"))]
            Command::Read(args) => args.budget(),
            Command::Verify(args) => (args.budget, false),
            Command::Recover(_) | Command::Redact(_) => (Budget::default(), true),
            #[cfg(feature = "record")]
            Command::Symbolize(_) => (Budget::default(), true),
            _ => return,
        };
        budget.hold(streams);
    }

    /// Prints text that can be longer than a terminal.
    fn is_long(&self) -> bool {
        match self {
            #[cfg(not(feature = "record-only"))]
            Command::Read(args) => args.is_long(),
            #[cfg(not(feature = "record-only"))]
            Command::Schema(_) => true,
            _ => false,
        }
    }
}

/// Options of other tools by subcommand, and ours for the same task.
const OTHER_OPTIONS: [(&str, &str, &str); 14] = [
    (
        "record",
        "-g",
        "--stacks samples the functions that run, --off-cpu-stacks those that wait",
    ),
    (
        "record",
        "--call-graph",
        "--stacks samples the functions that run, --off-cpu-stacks those that wait",
    ),
    (
        "record",
        "-F",
        "--stacks=HZ samples the functions that run, HZ times a second",
    ),
    (
        "record",
        "--freq",
        "--stacks=HZ samples the functions that run, HZ times a second",
    ),
    (
        "record",
        "-t",
        "--pid N records a process, and --duration T ends the recording after a time",
    ),
    (
        "record",
        "--tid",
        "--pid N records a process with all of its threads",
    ),
    (
        "record",
        "--timeout",
        "--duration T ends the recording after a time; timeout T COMMAND ends COMMAND",
    ),
    (
        "record",
        "--runs",
        "record one run a file; tr diff --base FILE... --new FILE... compares several",
    ),
    (
        "analyze",
        "-g",
        "--report flame has the functions of sampled stacks",
    ),
    (
        "analyze",
        "--stdio",
        "the reports are text, and on standard output",
    ),
    (
        "analyze",
        "-o",
        "the reports go to standard output; tr report -o FILE writes a page",
    ),
    (
        "analyze",
        "--timeout",
        "--max-time DUR ends the analysis after a time",
    ),
    ("report", "--stdio", "tr analyze prints text"),
    ("predict", "-j", "--jobs N is the number of jobs"),
];

/// Formats that `tr export` no longer writes, and the format that serves instead.
const REMOVED_FORMATS: [(&str, &str); 2] = [("chrome", "perfetto"), ("speedscope", "folded")];

/// The replacement of a removed format that `tr export` was asked for.
fn removed_format(said: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let ContextValue::String(value) = said.get(ContextKind::InvalidValue)? else {
        return None;
    };
    let (removed, instead) = REMOVED_FORMATS
        .iter()
        .find(|(removed, _)| removed == value)?;
    Some(format!("{removed} was removed: use --format {instead}"))
}

/// Our words for an option of other tools, the subcommand that takes a second recording, or the format that
/// replaces a removed one.
fn hint(said: &clap::Error, subcommand: Option<&OsStr>) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let ContextValue::String(wrong) = said.get(ContextKind::InvalidArg)? else {
        return None;
    };
    let subcommand = subcommand?.to_str()?;
    if said.kind() == ErrorKind::InvalidValue && subcommand == "export" {
        return removed_format(said);
    }
    if said.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let json = [
        "analyze", "analyse", "info", "diff", "doctor", "summary", "predict", "pipeline",
    ];
    let option = wrong
        .split_once('=')
        .map_or(wrong.as_str(), |(name, _)| name);
    let known = OTHER_OPTIONS.iter().find(|(of, theirs, _)| {
        *of == subcommand.replace("analyse", "analyze") && *theirs == option
    });
    if let Some((_, _, ours)) = known {
        return Some((*ours).to_owned());
    }
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

/// The exit status of a wrong command line.
fn wrong(first: Option<&OsStr>, code: u8) -> ExitCode {
    ExitCode::from(match first {
        Some(first) if first == "record" => status::FAILED,
        _ => code,
    })
}

/// The command line, and whether a pager may show its text.
///
/// # Errors
/// The exit status, after help, the version, or what is wrong.
fn parse() -> Result<(Command, bool), ExitCode> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let before = words.get(1).is_some_and(|word| word == "--no-pager");
    if before {
        words.remove(1);
    }
    let first = words.get(1).cloned();
    let first = first.as_deref();
    let files = if config::is_for(first) {
        config::files()
    } else {
        Vec::new()
    };
    let settings = config::used(&files).map_err(|why| {
        eprintln!("tr: {why}");
        run_untraced(&words).unwrap_or_else(|| wrong(first, errors::UNREADABLE))
    })?;
    let pages = !before && config::pager(&settings);
    if let Some(first) = first {
        let masks = config::masks(&settings, first);
        words.splice(2..2, masks.into_iter().map(OsString::from));
    }
    let parse = |display: bool| {
        let command = config::defaults(called::command(), &settings, display);
        let matches = command.try_get_matches_from(&words)?;
        Ok((Cli::from_arg_matches(&matches)?, matches))
    };
    let parsed = match parse(true) {
        Ok((_, it)) if !settings.is_empty() && writes_for_machines(&it) => parse(false),
        other => other,
    };
    match parsed {
        #[cfg_attr(feature = "record-only", allow(unused_mut, unused_variables))]
        Ok((mut cli, matches)) => {
            // Also with --quiet: a mask that is missing keeps a secret.
            if matches!(cli.command, Command::Record(_) | Command::Redact(_)) {
                config::warn_of_unused(&files);
            }
            #[cfg(not(feature = "record-only"))]
            if let Command::Read(cmd::reading::Reading::Diff(args)) = &mut cli.command {
                let given = |option: &str| is_given(&matches, option);
                args.undecided = config::without_thresholds(&files, given);
            }
            Ok((cli.command, pages && !cli.no_pager))
        }
        Err(said) => Err(answer(said, first, (&files, pages))),
    }
}

/// Becomes COMMAND, which is not recorded, if the command line is that of `record --best-effort`;
/// the exit status, if that fails. Without its masks a recording would keep secrets.
fn run_untraced(words: &[OsString]) -> Option<ExitCode> {
    let mut parts = words.splitn(2, |word| word == "--");
    let (options, command) = (parts.next()?, parts.next()?);
    let asked = |word: &str| options.iter().any(|option| option == word);
    if !(asked("record") && asked("--best-effort")) {
        return None;
    }
    eprintln!("tr: the command runs untraced; no recording is written");
    Some(ExitCode::from(inherited::become_command(command)))
}

/// A format other than text for people.
fn writes_for_machines(matches: &clap::ArgMatches) -> bool {
    let subcommand = matches.subcommand().map(|(_, matches)| matches);
    let format = subcommand.and_then(|matches| matches.try_get_raw("format").ok()?);
    let people = ["text", "markdown", "html"];
    format.is_some_and(|mut formats| {
        formats.any(|format| !people.iter().any(|known| format == *known))
    })
}

/// An option is on the command line.
fn is_given(matches: &clap::ArgMatches, option: &str) -> bool {
    let id = option.replace('-', "_");
    let subcommand = matches.subcommand().map(|(_, matches)| matches);
    let known = subcommand.filter(|matches| matches.try_contains_id(&id).is_ok());
    known.is_some_and(|matches| matches.value_source(&id) == Some(ValueSource::CommandLine))
}

/// Prints help, the version, or what is wrong; the exit status.
fn answer(
    mut said: clap::Error,
    first: Option<&OsStr>,
    (files, pages): (&[config::Settings], bool),
) -> ExitCode {
    use clap::error::{ContextKind, ContextValue};
    use std::io::IsTerminal;
    // The parser's own tip is to pass the option as an operand.
    if said.kind() == clap::error::ErrorKind::UnknownArgument {
        said.remove(ContextKind::Suggested);
    }
    if let Some(hint) = hint(&said, first) {
        said.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![hint.into()]),
        );
    }
    let text = said.render();
    if said.exit_code() == 0 {
        // Help, and the version.
        inherited::restore_sigpipe();
        let _pager = if pages { pager::start() } else { None };
        let text = if layout::color() {
            text.ansi().to_string()
        } else {
            text.to_string()
        };
        return open::print(text.as_bytes());
    }
    let text = if std::io::stderr().is_terminal() {
        text.ansi().to_string()
    } else {
        text.to_string()
    };
    eprintln!("{}", text.trim_end());
    let option = match said.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.as_str(),
        _ => "",
    };
    if let Some(file) = config::origin(files, option) {
        let file = errors::shown(file);
        eprintln!("    {file} sets {option}, too");
    }
    wrong(first, u8::try_from(said.exit_code()).unwrap_or(u8::MAX))
}

fn main() -> ExitCode {
    stack::with_room(run)
}

fn run() -> ExitCode {
    let started = std::time::Instant::now();
    if let Some(status) = passthrough::before_clap() {
        return ExitCode::from(status);
    }
    #[cfg(feature = "record")]
    if let Some(run) = cmd::helpers::helper() {
        return run();
    }
    if version::is_asked() {
        return version::run();
    }
    let (command, pages) = match parse() {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    if !matches!(command, Command::Record(_)) {
        // A closed pipe ends tr, like any other tool.
        inherited::restore_sigpipe();
    }
    // It waits for its user after everything else.
    let _pager = if pages && command.is_long() {
        pager::start()
    } else {
        None
    };
    command.hold();
    if let Some(files) = command.only_reads() {
        confine::to_reading(&files);
    }
    let done = |done: errors::Done| done.unwrap_or_else(|code| code);
    match command {
        Command::Record(args) => cmd::record::run(args, started),
        #[cfg(not(feature = "record-only"))]
        Command::Read(args) => args.run(),
        Command::Verify(args) => done(cmd::verify::run(&args)),
        Command::Recover(args) => done(cmd::recover::run(&args)),
        Command::Redact(args) => done(cmd::redact::run(&args)),
        #[cfg(feature = "record")]
        Command::Symbolize(args) => done(cmd::symbolize::run(&args)),
        #[cfg(feature = "record")]
        Command::Doctor(args) => cmd::doctor::run(&args),
        Command::Mark(args) => cmd::mark::run(&args),
        #[cfg(not(feature = "record-only"))]
        Command::Mcp(args) => cmd::mcp::run(&args),
        #[cfg(not(feature = "record-only"))]
        Command::Schema(args) => cmd::schema::run(&args),
        #[cfg(feature = "record-only")]
        Command::Absent(words) => cmd::absent::run(&words),
        Command::Completions(args) => cmd::manual::completions(&args),
        Command::Man(args) => cmd::manual::man(&args),
    }
}
