//! Implements `tr export --format compile-commands`, which writes the compilations of a build, for clangd and
//! other tools that read C.

use std::io::Write;
use std::process::ExitCode;

use tr_analyze::Options;
use tr_export::compile_commands;
use tr_insight::processes::compile_commands::{CompileCommand, CompileCommands};
use tr_output::FileKind;
use tr_report::reports::TimelineUse;
use tr_text::{escape, units};

use super::file::to_file;
use super::options::Args;
use crate::analysis;
use crate::errors::{self, Done};
use crate::filters::Filters;
use crate::{output, parts};

const COMPILE_COMMANDS: FileKind = FileKind {
    name: "compile commands",
    is: |bytes| {
        let is_empty = bytes.trim_ascii() == b"[]";
        is_empty || output::is_json(bytes) && output::has(bytes, "\"directory\"")
    },
};

/// The largest number of sources whose names are printed in the warning about compilations with masked arguments.
const MOST_NAMED: usize = 5;

/// Writes the compilations of the recorded build as a `compile_commands.json`.
pub fn write(args: &Args) -> Done {
    let Some(output) = args.output.as_deref() else {
        return Err(ExitCode::from(errors::UNREADABLE_STATUS));
    };
    let trace = parts::opened(&args.file, &args.more)?;
    args.span.check()?;
    let (from, to) = args.span.ns();
    let options = Options {
        from,
        to,
        ..Options::default()
    };
    let allowance = analysis::Allowance::new(args.budget, TimelineUse::Path);
    let recording = analysis::analyze(&trace, &options, allowance);
    args.span.check_in(&recording.analysis)?;
    let chosen = Filters::chosen(&args.filters.filter(), &recording);
    let found = CompileCommands::of(&recording.analysis, &chosen);
    let code = to_file(
        (output, args.force),
        &args.file,
        (COMPILE_COMMANDS, false),
        |out: &mut dyn Write| compile_commands::write(&found.entries, out),
    )?;
    if code == ExitCode::SUCCESS {
        say(&found);
    }
    Ok(code)
}

/// Prints on standard error how many compilations were written, how many sources were left out and why, and which
/// compilations have masked secrets in their arguments.
fn say(found: &CompileCommands) {
    let entries = units::plural(found.entries.len() as u64, "entry", "entries");
    let left_out: u64 = found.left_out.values().sum();
    if left_out == 0 {
        message!("{entries}");
    } else {
        let sources = units::plural(left_out, "source is", "sources are");
        message!("{entries}; {sources} left out, of which");
        for (why, count) in &found.left_out {
            eprintln!("    {} {}", units::count(*count), why.title());
        }
    }
    let masked = found.entries.iter().filter(|entry| entry.is_masked());
    let masked: Vec<&CompileCommand> = masked.collect();
    if !masked.is_empty() {
        let count = units::plural(masked.len() as u64, "entry has", "entries have");
        let names = masked.iter().take(MOST_NAMED);
        let names: Vec<String> = names
            .map(|entry| escape::text(entry.file.as_bytes()))
            .collect();
        let more = if masked.len() > MOST_NAMED {
            ", …"
        } else {
            ""
        };
        message!(
            "{count} masked arguments (***), which compile something else: {}{more}\n    \
             record --no-redact keeps them",
            names.join(", ")
        );
    }
}
