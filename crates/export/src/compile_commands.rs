//! Writes a `compile_commands.json`: clang's format of a compilation database.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use tr_insight::compile_commands::CompileCommand;
use tr_text::json;

/// An entry of the database, with the names that the format has.
#[derive(Serialize)]
struct Entry<'a> {
    directory: &'a str,
    arguments: &'a [String],
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
}

/// Writes the compilations as JSON. Its texts are the recorded ones, character by character: JSON's escapes
/// keep them safe on a terminal.
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
