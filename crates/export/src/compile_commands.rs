//! Writes a `compile_commands.json`: clang's format of a compilation database.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use tr_insight::processes::compile_commands::CompileCommand;
use tr_text::json;

/// A compilation in `compile_commands.json`, with the field names of that format.
#[derive(Serialize)]
struct Entry<'a> {
    directory: &'a str,
    arguments: &'a [String],
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
}

/// Writes the compilations as a JSON compilation database. Its texts are exactly the recorded ones; JSON's
/// escapes make them safe on a terminal.
pub fn write(commands: &[CompileCommand], out: &mut dyn Write) -> io::Result<()> {
    let entries = commands.iter().map(|command| Entry {
        directory: &command.directory,
        arguments: &command.arguments,
        file: &command.file,
        output: command.output.as_deref(),
    });
    let entries: Vec<Entry<'_>> = entries.collect();
    json::write_safe(&entries, PrettyFormatter::with_indent(b" "), out)?;
    writeln!(out)
}
