//! The command line under the name by which the user has called the program.

use clap::builder::{Resettable, StyledStr};
use clap::CommandFactory;
use tr_text::called::{SECOND, TR};

/// The paragraph of the help that holds only if the program is called `tr`.
const PASSES_ON: &str = "\
Any other use of tr goes to the system's tr (translate characters), unless it is called
tr-trace, its second name.";

/// The command line's definition. Its texts call the program `tr`; under the second name they have that.
pub fn command() -> clap::Command {
    let command = crate::Cli::command();
    if TR.is_second() {
        return renamed(command.name(SECOND).bin_name(SECOND));
    }
    let examples = command.get_after_help().map(ToString::to_string);
    command.after_help(format!("{PASSES_ON}\n\n{}", examples.unwrap_or_default()))
}

fn renamed(command: clap::Command) -> clap::Command {
    let new = |text: Option<&StyledStr>| -> Resettable<StyledStr> {
        text.map(|text| named(&text.to_string()).into()).into()
    };
    let (about, long) = (new(command.get_about()), new(command.get_long_about()));
    let (after, usage) = (
        new(command.get_after_help()),
        new(command.get_overridden_usage()),
    );
    let command = command.about(about).long_about(long);
    let command = command.after_help(after).override_usage(usage);
    let command = command.mut_args(|arg| {
        let (help, long) = (new(arg.get_help()), new(arg.get_long_help()));
        arg.help(help).long_help(long)
    });
    command.mut_subcommands(renamed)
}

/// A text of ours with the second name where it says `tr`.
fn named(text: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let word = rest.strip_prefix("tr").filter(|after| {
            let ends = !after.starts_with(|c: char| c.is_alphanumeric());
            ends && !before.is_alphanumeric() && before != '-' && !rest.starts_with(SECOND)
        });
        let after = word.unwrap_or(&rest[next.len_utf8()..]);
        match word {
            Some(_) => out.push_str(SECOND),
            None => out.push(next),
        }
        (before, rest) = (if word.is_some() { 'r' } else { next }, after);
    }
    out
}

/// This program by its whole path, as a shell takes it: sudo looks for a `tr` where the system's is.
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
