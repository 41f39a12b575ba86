//! Defines the trait `Subcommand` for the arguments of a subcommand of `tr`, and the type of the rows of the table in
//! `cmd/mod.rs`. Everything that must know all subcommands uses this table: the command line, its help, configuration
//! files, the tools of `tr mcp`, and the code that passes foreign command lines on to the system's `tr`.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::{ArgMatches, FromArgMatches};
use tr_mcp::tool::AgentTool;
use tr_programs::steps::StepKind;

use crate::budget::Budget;
use crate::errors::Done;
#[cfg(feature = "report")]
use crate::errors::UNREADABLE_STATUS;
#[cfg(feature = "report")]
use crate::scratch;
use crate::{confine, inherited, pager};

/// A subcommand of `tr`: the type of its arguments, which clap parses, and the other facts that the program needs about
/// the subcommand.
pub trait Subcommand: clap::Args {
    /// Hints for options and values that users try although the subcommand does not have them, for example those of
    /// other tools.
    const HINTS: &'static [Hint] = &[];
    /// The tools that `tr mcp` offers to agents and that run this subcommand.
    const TOOLS: &'static [AgentTool] = &[];
    /// Whether the subcommand's text may be longer than the screen, so that a pager is used. Configuration files are
    /// read as well then, because they can turn the pager off.
    const IS_LONG: bool = false;
    /// Whether the subcommand streams a recording to its output. By default, such a subcommand has a limit of memory,
    /// but no limit of time.
    const IS_STREAM: bool = false;
    /// Whether the subcommand sets the action of SIGPIPE itself. For any other subcommand, writing to a closed pipe
    /// ends the process.
    const KEEPS_SIGPIPE: bool = false;
    /// The exit status of this subcommand for a wrong command line or configuration file; `None` for the usual status.
    const FAILED: Option<u8> = None;

    /// Adds to the subcommand's clap definition whatever depends on the other subcommands in the table.
    fn complete(command: clap::Command, _rows: &[Row]) -> clap::Command {
        command
    }

    /// Runs the subcommand although a configuration file has an error. The words are those of the command line. `None`,
    /// the default, means that the error ends the program.
    fn run_without_defaults(_words: &[OsString]) -> Option<ExitCode> {
        None
    }

    /// Stores in the arguments why a threshold from an untrusted configuration file does not apply.
    fn set_undecided(&mut self, _why: Option<String>) {}

    /// The files that the subcommand reads, if it reads nothing else and writes no file, so that the process can give
    /// up all other access; otherwise `None`.
    fn only_reads(&self) -> Option<Vec<&Path>> {
        None
    }

    /// Whether the subcommand's text goes through a pager if standard output is a terminal.
    fn is_paged(&self) -> bool {
        Self::IS_LONG
    }

    /// Runs the subcommand.
    ///
    /// # Errors
    /// The exit status after the reason was printed.
    fn run(self, program: &Program) -> Done;
}

/// The kind of task that a subcommand is for, such as recording or analyzing, by which the help groups subcommands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Daily,
    Record,
    Read,
    Plan,
    Export,
    Manage,
}

impl Task {
    /// All kinds of tasks, in the order in which the help groups subcommands.
    pub const ALL: [Task; 6] = [
        Task::Daily,
        Task::Record,
        Task::Read,
        Task::Plan,
        Task::Export,
        Task::Manage,
    ];

    /// The heading of this kind of task in the list of subcommands in the help.
    pub fn title(self) -> &'static str {
        match self {
            Task::Daily => "Every day",
            Task::Record => "Recording",
            Task::Read => "Reading",
            Task::Plan => "Comparing and planning",
            Task::Export => "Other tools",
            Task::Manage => "Files and the program",
        }
    }
}

/// A row of the table of subcommands. A program can be built without a subcommand, but still has its row. Such a
/// program refuses the subcommand's name with an explanation, and accepts its keys in configuration files.
pub struct Row {
    /// The name of the subcommand, followed by other spellings that are accepted.
    pub names: &'static [&'static str],
    pub task: Task,
    /// The words that other tools use for this subcommand, for hints about mistyped command lines.
    pub other_words: &'static [&'static str],
    /// The keys of the configuration files (`tr.toml`) that set options of this subcommand.
    pub keys: &'static [Key],
    /// The implementation of the subcommand; `None` in a program that was built without it.
    pub built: Option<Built>,
}

impl Row {
    /// The canonical name of the subcommand, which is the first of its spellings.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Whether the subcommand takes defaults from configuration files (`tr.toml`).
    pub fn has_defaults(&self) -> bool {
        !self.keys.is_empty() || self.built.as_ref().is_some_and(|built| built.is_long)
    }

    /// The subcommand's clap definition; `None` if the program was built without the subcommand.
    pub fn command(&self, rows: &[Row]) -> Option<clap::Command> {
        let built = self.built.as_ref()?;
        let aliases = self.names.iter().skip(1).copied();
        let command = clap::Command::new(self.name()).aliases(aliases);
        Some((built.complete)(command, rows))
    }
}

/// The row of the subcommand with this name in the table of subcommands; `None` if there is no such subcommand.
pub fn find<'a>(rows: &'a [Row], name: &OsStr) -> Option<&'a Row> {
    let has = |row: &&Row| row.names.iter().any(|known| name == *known);
    rows.iter().find(has)
}

/// A subcommand that was compiled into the program: its Cargo feature is on, or it needs none. The struct does not
/// depend on the type of the subcommand's arguments, so that one table can hold all subcommands.
pub struct Built {
    pub hints: &'static [Hint],
    #[cfg_attr(
        not(feature = "mcp"),
        expect(dead_code, reason = "only the server of the feature reads it")
    )]
    pub tools: &'static [AgentTool],
    pub failed: Option<u8>,
    pub run_without_defaults: fn(&[OsString]) -> Option<ExitCode>,
    /// The function that runs the subcommand with the arguments that clap has parsed.
    pub run: fn(&Call<'_>) -> Result<ExitCode, clap::Error>,
    is_long: bool,
    complete: fn(clap::Command, &[Row]) -> clap::Command,
}

impl Built {
    /// The subcommand whose arguments have the type `A`, with the facts that this type declares.
    pub const fn of<A: Subcommand>() -> Built {
        Built {
            hints: A::HINTS,
            tools: A::TOOLS,
            failed: A::FAILED,
            run_without_defaults: A::run_without_defaults,
            run: prepare_and_run::<A>,
            is_long: A::IS_LONG,
            complete: |command, rows| A::complete(A::augment_args(command), rows),
        }
    }
}

/// The table of subcommands and the facts about the program's start that subcommands need.
pub struct Program {
    pub rows: &'static [Row],
    /// The time at which the process of `tr` was started.
    #[cfg_attr(
        not(feature = "record"),
        expect(dead_code, reason = "the recorder alone reads it")
    )]
    pub started: Instant,
}

/// The arguments of the function that runs a subcommand: its parsed command line, and facts from the configuration
/// files.
pub struct Call<'a> {
    pub program: &'a Program,
    pub matches: &'a ArgMatches,
    /// Whether the subcommand may send its output through a pager.
    pub pages: bool,
    /// The reason why the gate's threshold, from an untrusted configuration file, does not apply; `None` if there is no
    /// such problem.
    pub undecided: Option<String>,
}

/// Runs the subcommand whose arguments have the type `A`: reads the arguments, prepares the process, runs the
/// subcommand, and waits for the pager. An error is clap's error about the arguments.
fn prepare_and_run<A: Subcommand>(call: &Call<'_>) -> Result<ExitCode, clap::Error> {
    let mut args = A::from_arg_matches(call.matches)?;
    args.set_undecided(call.undecided.clone());
    let budget = match call.matches.try_contains_id("max_memory") {
        Ok(_) => Some(Budget::from_arg_matches(call.matches)?),
        Err(_) => A::IS_STREAM.then(Budget::default),
    };
    let preparation = Preparation {
        keeps_sigpipe: A::KEEPS_SIGPIPE,
        is_paged: call.pages && args.is_paged(),
        is_stream: A::IS_STREAM,
        budget,
        only_reads: args.only_reads(),
    };
    // `_pager` is dropped last, because it waits until the user has closed the pager.
    let _pager = preparation.prepare();
    let status = args.run(call.program).unwrap_or_else(|status| status);
    #[cfg(feature = "report")]
    if scratch::has_failed() {
        message!("the output is wrong: the temporary file could not be read back");
        return Ok(UNREADABLE_STATUS.into());
    }
    Ok(status)
}

/// The facts about a subcommand with its arguments that decide what happens to the process before the subcommand runs.
struct Preparation<'a> {
    keeps_sigpipe: bool,
    is_paged: bool,
    is_stream: bool,
    budget: Option<Budget>,
    only_reads: Option<Vec<&'a Path>>,
}

impl Preparation<'_> {
    /// Prepares the process for the subcommand: its signals, its limits, its access to files. Returns the pager, if
    /// there is one.
    fn prepare(self) -> Option<pager::Pager> {
        if !self.keeps_sigpipe {
            inherited::restore_sigpipe();
        }
        let pager = if self.is_paged { pager::start() } else { None };
        if let Some(budget) = self.budget {
            budget.hold(self.is_stream);
        }
        if let Some(files) = self.only_reads {
            #[cfg(feature = "report")]
            scratch::open_for(&files);
            confine::to_reading(&files);
        }
        pager
    }
}

/// A hint for a user who types an option of another tool, or a value that `tr` no longer has.
pub struct Hint {
    /// The option (`-g`) or the option's value (`chrome`) that `tr` does not have and that a hint is about.
    pub wrong: &'static str,
    pub advice: &'static str,
}

/// A key of the configuration files (`tr.toml`), which sets the default of a subcommand's option.
#[derive(Debug)]
pub struct Key {
    pub table: &'static str,
    pub name: &'static str,
    pub kind: KeyKind,
    /// The name of the option that the key sets, if it differs from the name of the key.
    pub option: Option<&'static str>,
    /// The names of options that clap only accepts together with this key's option. These options are also accepted if
    /// a configuration file sets this key.
    pub required_by: &'static [&'static str],
}

impl Key {
    pub const fn new(table: &'static str, name: &'static str, kind: KeyKind) -> Key {
        Key {
            table,
            name,
            kind,
            option: None,
            required_by: &[],
        }
    }

    pub const fn option(self, option: &'static str) -> Key {
        Key {
            option: Some(option),
            ..self
        }
    }

    pub const fn required_by(self, required_by: &'static [&'static str]) -> Key {
        Key {
            required_by,
            ..self
        }
    }
}

/// The way in which `tr` uses the values that a configuration file gives to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// The key sets an option about the display of text for people. If the output is for machines, the key is ignored.
    Display,
    /// The key decides whether `tr` uses a pager. It sets no option of a subcommand.
    Pager,
    Threshold,
    /// The key is a list of masks for secrets. Its values are added to those on the command line.
    Mask,
    /// The key turns on the masking of one kind of text, such as addresses. One configuration file is enough to turn it
    /// on, and no other file can turn it off.
    MaskAll,
    /// The key has the user's rules for naming steps of one kind. It sets no option, and the output for machines
    /// follows the rules, too.
    Steps(StepKind),
}
