//! Parses the command line together with the defaults from configuration files (`tr.toml`), and prints errors
//! about it.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::ArgMatches;
use tr_programs::own;

use crate::subcommand::{self, Call, KeyKind, Program, Row};
use crate::{called, cmd, config, errors, inherited, layout, open, output, pager};

/// The first word of the command line, and the row of the table of subcommands that has this name; `None` if
/// there is no such subcommand.
struct First<'a> {
    word: Option<&'a OsStr>,
    row: Option<&'a Row>,
}

impl First<'_> {
    /// Whether this command line takes defaults from configuration files (`tr.toml`): the subcommand has such
    /// defaults, or the command is `help`.
    fn has_defaults(&self) -> bool {
        self.word.is_some_and(|word| word == "help") || self.row.is_some_and(Row::has_defaults)
    }

    /// Whether a configuration file (`tr.toml`) can set an option of the given kind for this subcommand: for example a
    /// mask for secrets, or a threshold.
    fn has_key(&self, kind: KeyKind) -> bool {
        self.row
            .is_some_and(|row| row.keys.iter().any(|key| key.kind == kind))
    }

    /// The exit status for a command line that is wrong: the one that the subcommand defines, or else the given
    /// `status`.
    fn wrong(&self, status: u8) -> ExitCode {
        let built = self.row.and_then(|row| row.built.as_ref());
        ExitCode::from(built.and_then(|built| built.failed).unwrap_or(status))
    }
}

/// Runs the program: the subcommand of the command line, or the help, the version, or the error about a wrong
/// command line.
pub fn run_command_line(program: &Program) -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let no_pager = words.get(1).is_some_and(|word| word == "--no-pager");
    if no_pager {
        words.remove(1);
    }
    let word = words.get(1).cloned();
    let first = First {
        word: word.as_deref(),
        row: word
            .as_deref()
            .and_then(|word| subcommand::find(program.rows, word)),
    };
    if let Some(row) = first.row.filter(|row| row.built.is_none()) {
        return cmd::left_out::explain(row.name());
    }
    let files = if first.has_defaults() {
        config::files(program.rows)
    } else {
        Vec::new()
    };
    let settings = match config::used(&files) {
        Ok(settings) => settings,
        Err(why) => {
            message!("{why}");
            let built = first.row.and_then(|row| row.built.as_ref());
            return built
                .and_then(|built| (built.run_without_defaults)(&words))
                .unwrap_or_else(|| first.wrong(errors::UNREADABLE_STATUS));
        }
    };
    own::set(config::step_rules(&settings));
    if let Some(row) = first.row {
        let masks = config::masks(&settings, row);
        words.splice(2..2, masks.into_iter().map(OsString::from));
    }
    let defaults = Defaults {
        files,
        pages: !no_pager && config::pager(&settings),
    };
    let parse = |display: bool| {
        let command = called::command(program.rows);
        config::defaults(command, &settings, display).try_get_matches_from(&words)
    };
    let parsed = match parse(true) {
        Ok(matches) if !settings.is_empty() && writes_for_machines(&matches) => parse(false),
        other => other,
    };
    parsed
        .and_then(|matches| carry_out(&matches, program, &first, &defaults))
        .unwrap_or_else(|error| answer(error, program.rows, &first, &defaults))
}

/// The configuration files (`tr.toml`) that give defaults to a command line, and the one decision that is made
/// from them: whether to use a pager.
struct Defaults {
    files: Vec<config::Settings>,
    /// Whether the command's text may go through a pager: no `--no-pager` and no setting in a configuration
    /// file forbids it.
    pages: bool,
}

/// Runs the subcommand of a command line that clap has parsed. An error is clap's error about the arguments.
fn carry_out(
    matches: &ArgMatches,
    program: &Program,
    first: &First,
    defaults: &Defaults,
) -> Result<ExitCode, clap::Error> {
    // The parser refuses a command line without a subcommand of the table, so there always is one here.
    let named = matches.subcommand();
    let row = named.and_then(|(name, _)| subcommand::find(program.rows, name.as_ref()));
    let built = row.and_then(|row| row.built.as_ref());
    let (Some((_, of_subcommand)), Some(built)) = (named, built) else {
        return Err(clap::Error::new(ErrorKind::MissingSubcommand));
    };
    // The user sees this warning even with `--quiet`: without the masks in an unused configuration file, secrets stay
    // in the recording.
    if first.has_key(KeyKind::Mask) {
        config::warn_of_unused(&defaults.files);
    }
    let undecided = if first.has_key(KeyKind::Threshold) {
        let given = |option: &str| is_given(of_subcommand, option);
        config::without_thresholds(&defaults.files, given)
    } else {
        None
    };
    (built.run)(&Call {
        program,
        matches: of_subcommand,
        pages: defaults.pages && !matches.get_flag(called::NO_PAGER),
        undecided,
    })
}

/// A hint below clap's error, if the wrong word is an option of another tool, a value that no longer exists, or a
/// second recording for a subcommand that reads one.
fn hint(error: &clap::Error, row: &Row, rows: &[Row]) -> Option<String> {
    let built = row.built.as_ref()?;
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let advice = |wrong: &str| {
        let hint = built.hints.iter().find(|hint| hint.wrong == wrong)?;
        Some(hint.advice.to_owned())
    };
    if error.kind() == ErrorKind::InvalidValue {
        return advice(text(ContextKind::InvalidValue)?);
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let wrong = text(ContextKind::InvalidArg)?;
    let option = wrong.split_once('=').map_or(wrong, |(name, _)| name);
    let command = row.command(rows)?;
    let argument = |name: &str| command.get_arguments().find(|arg| arg.get_id() == name);
    if option == "--json" {
        let formats = argument("format")?.get_possible_values();
        let mut json = ["json", "ndjson"].into_iter();
        let json = json.find(|json| formats.iter().any(|format| format.get_name() == *json));
        return json.map(|json| format!("--format {json}"));
    }
    advice(option).or_else(|| {
        let is_second = !option.starts_with('-') && argument("file").is_some();
        is_second.then(|| errors::COMPARED_BY.to_owned())
    })
}

/// Whether the command's output is for machines (for example JSON), by the `--format` on the command line.
fn writes_for_machines(matches: &ArgMatches) -> bool {
    let subcommand = matches.subcommand().map(|(_, matches)| matches);
    let values = |option: &str| subcommand.and_then(|matches| matches.try_get_raw(option).ok()?);
    match values("format") {
        Some(mut formats) => formats.any(|format| !output::is_for_people(format)),
        None => values("output").is_some_and(|mut files| {
            let has_formats =
                subcommand.is_some_and(|matches| matches.try_contains_id("format").is_ok());
            let by_ending = files.find_map(|file| output::formats_of(Path::new(file)).next());
            has_formats && by_ending.is_some_and(|format| !output::is_for_people(format.as_ref()))
        }),
    }
}

/// Whether an option of a subcommand is given on the command line itself, and not by a configuration file.
fn is_given(matches: &ArgMatches, option: &str) -> bool {
    let id = option.replace('-', "_");
    matches.try_contains_id(&id).is_ok()
        && matches.value_source(&id) == Some(ValueSource::CommandLine)
}

/// Prints clap's answer to a command line that runs nothing: help, version, or what is wrong. Returns the exit
/// status.
fn answer(mut error: clap::Error, rows: &[Row], first: &First, defaults: &Defaults) -> ExitCode {
    // clap suggests to pass the unknown option as an operand, which does not help.
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    if let Some(hint) = first.row.and_then(|row| hint(&error, row, rows)) {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![hint.into()]),
        );
    }
    let is_help = error.exit_code() == 0;
    let has_color = if is_help {
        layout::color()
    } else {
        std::io::stderr().is_terminal()
    };
    let text = if has_color {
        error.render().ansi().to_string()
    } else {
        error.render().to_string()
    };
    if is_help {
        // Exit code 0 means that clap's text is the help or the version. This text is printed like normal output:
        // through the pager, and a closed pipe ends the process.
        inherited::restore_sigpipe();
        let _pager = if defaults.pages { pager::start() } else { None };
        return open::print(text.as_bytes());
    }
    eprintln!("{}", text.trim_end());
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.as_str(),
        _ => "",
    };
    if let Some(file) = config::origin(&defaults.files, option) {
        let file = errors::shown(file);
        eprintln!("    {file} sets {option}, too");
    }
    first.wrong(u8::try_from(error.exit_code()).unwrap_or(u8::MAX))
}
