//! Builds the command line and its help under the name by which the user has called the program.

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, ArgAction};
use tr_text::called::{SECOND_NAME, TR};

use crate::open;
use crate::subcommand::{Row, Task};

/// The identifier of the option `--no-pager` for clap.
pub const NO_PAGER: &str = "no_pager";

/// The sentence of the help that is only true for a program that is called `tr`, and not by its second name
/// `tr-trace`: other uses of `tr` go to the system's program of this name.
const PASSES_ON: &str = "\
Any other use of tr goes to the system's tr (translate characters), unless it is called
tr-trace, its second name.";

/// The example command lines of `tr --help`. The lines of subcommands that the program was built without are left
/// out. Further examples of a subcommand stand in its own help.
const EXAMPLES: &str = "\
Examples:
  tr record -- make -j8              record a build into trace.bin
  tr analyze --top 20                where the time went
  tr analyze --by program --sort run-queue
  tr analyze --report tree           the process tree
  tr analyze --report execs --failed
  tr open                            the page in a browser
  tr summary                         a dozen lines for the page of a CI job
  tr diff main.bin pr.bin            changes between two builds
  tr --version --verbose             features, methods, formats
";

/// The last lines of `tr --help`.
#[cfg(feature = "report")]
const END: &str = "Long text on a terminal goes through $PAGER; --no-pager prints it.\n\
    tr help COMMAND says more.";
#[cfg(not(feature = "report"))]
const END: &str = "This tr records alone. Recordings are read by a whole one, on any machine.\n\
    tr help COMMAND says more.";

/// The template by which clap lays out `tr --help`. Before the options it has a list of the subcommands, grouped by
/// task.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}{after-help}";

/// The width in terminal columns of the subcommands' names in `tr --help`.
const NAME: usize = 12;

/// The clap definition of the command line, with a subcommand for each row of the table of subcommands. The help
/// calls the program `tr`, or `tr-trace` if the user started it by this second name.
pub fn command(rows: &[Row]) -> clap::Command {
    let commands: Vec<clap::Command> = rows.iter().filter_map(|row| row.command(rows)).collect();
    let help = help(&commands);
    let tasks = tasks(rows, &commands);
    let no_pager = Arg::new(NO_PAGER)
        .long("no-pager")
        .global(true)
        .hide(true)
        .action(ArgAction::SetTrue)
        .help("Print long text to the terminal itself");
    let command = clap::Command::new("tr")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Where did the time go? Records a build or test run and reads it back")
        .arg(no_pager)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .before_help(tasks)
        .help_template(TEMPLATE)
        .subcommands(commands);
    if TR.is_second() {
        return renamed(
            command
                .after_help(help)
                .name(SECOND_NAME)
                .bin_name(SECOND_NAME),
        );
    }
    command.after_help(format!("{PASSES_ON}\n\n{help}"))
}

/// The list of subcommands in `tr --help`, ordered by the task that they are for.
fn tasks(rows: &[Row], commands: &[clap::Command]) -> String {
    let mut text = String::new();
    for task in Task::ALL {
        let names: Vec<&str> = rows
            .iter()
            .filter(|row| row.task == task)
            .map(Row::name)
            .collect();
        let of_task = commands.iter();
        let of_task = of_task.filter(|command| names.contains(&command.get_name()));
        let lines: Vec<String> = of_task
            .map(|command| {
                let about = command.get_about().map(ToString::to_string);
                let (name, about) = (command.get_name(), about.unwrap_or_default());
                format!("  {name:NAME$} {about}\n")
            })
            .collect();
        if !lines.is_empty() {
            text += &format!("{}:\n{}\n", task.title(), lines.concat());
        }
    }
    text
}

/// The text of `tr --help` after the list of subcommands: examples, and which file is read by default.
fn help(commands: &[clap::Command]) -> String {
    let is_built = |line: &&str| match line.split_whitespace().nth(1) {
        Some(word) if !word.starts_with('-') => {
            commands.iter().any(|command| command.get_name() == word)
        }
        _ => true,
    };
    let examples = EXAMPLES.split_inclusive('\n').filter(is_built);
    let mut help: String = examples.collect();
    let readers = commands.iter().filter(|command| reads_default(command));
    let readers: Vec<&str> = readers.map(clap::Command::get_name).collect();
    if let Some((last, others)) = readers.split_last() {
        let others = others.join(", ");
        help.push_str(&format!(
            "\nWithout a file, {others} and {last} read {}.\n",
            open::DEFAULT_FILE
        ));
    }
    help + END
}

/// Whether the subcommand reads `trace.bin`, the default name of a recording, if the user gives no file.
fn reads_default(command: &clap::Command) -> bool {
    let mut files = command.get_arguments().filter(|arg| arg.get_id() == "file");
    files.any(|file| {
        file.get_default_values()
            .iter()
            .any(|value| value == open::DEFAULT_FILE)
    })
}

fn renamed(command: clap::Command) -> clap::Command {
    let new = |text: Option<&StyledStr>| -> Resettable<StyledStr> {
        text.map(|text| named(&text.to_string()).into()).into()
    };
    let (about, long) = (new(command.get_about()), new(command.get_long_about()));
    let before = new(command.get_before_help());
    let (after, usage) = (
        new(command.get_after_help()),
        new(command.get_overridden_usage()),
    );
    let command = command.about(about).long_about(long);
    let command = command.before_help(before);
    let command = command.after_help(after).override_usage(usage);
    let command = command.mut_args(|arg| {
        let (help, long) = (new(arg.get_help()), new(arg.get_long_help()));
        arg.help(help).long_help(long)
    });
    command.mut_subcommands(renamed)
}

/// Replaces the program name `tr` in a text of the help by the second name `tr-trace`.
fn named(text: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let word = rest.strip_prefix("tr").filter(|after| {
            let ends = !after.starts_with(|c: char| c.is_alphanumeric());
            ends && !before.is_alphanumeric() && before != '-' && !rest.starts_with(SECOND_NAME)
        });
        let after = word.unwrap_or(&rest[next.len_utf8()..]);
        match word {
            Some(_) => out.push_str(SECOND_NAME),
            None => out.push(next),
        }
        (before, rest) = (if word.is_some() { 'r' } else { next }, after);
    }
    out
}

/// The word by which the user can call this program again: the name by which it was called or, if the shell would run
/// another program of this name, the path by which it was called.
#[cfg(feature = "record")]
pub fn word() -> String {
    let typed = std::env::args_os().next().unwrap_or_default();
    if !typed.as_encoded_bytes().contains(&b'/') || is_on_path() {
        return TR.to_string();
    }
    tr_text::escape::command([typed.as_encoded_bytes()])
}

/// Whether a shell that looks for this program's name in the directories of `PATH` finds this program.
#[cfg(feature = "record")]
fn is_on_path() -> bool {
    use std::os::unix::fs::MetadataExt;

    let file = |path: &std::path::Path| {
        let file = std::fs::metadata(path).ok().filter(|file| file.is_file());
        file.map(|file| (file.dev(), file.ino()))
    };
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&directories).find_map(|directory| file(&directory.join(TR.name())));
    let own = std::env::current_exe().ok().and_then(|path| file(&path));
    own.is_some() && own == found
}

/// The absolute path of this program, quoted for a shell, for command lines that the user can copy. A bare `tr`
/// would not do: sudo would run the system's `tr`.
#[cfg(feature = "record")]
pub fn program() -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| TR.name().into());
    tr_text::escape::command([program.as_os_str().as_encoded_bytes()])
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_word_tr_alone_is_the_name() {
        for (text, want) in [
            (
                "tr record --\n  tr analyze",
                "tr-trace record --\n  tr-trace analyze",
            ),
            (
                "125 when tr failed, trace.bin, str, tr-trace.1",
                "125 when tr-trace failed, trace.bin, str, tr-trace.1",
            ),
            (
                "completions/_tr tr.fish tr-record.1 é",
                "completions/_tr-trace tr-trace.fish tr-trace-record.1 é",
            ),
        ] {
            assert_eq!(super::named(text), want);
        }
    }
}
