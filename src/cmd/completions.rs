//! Implements `tr completions`, which prints the completion scripts for shells. The scripts come from clap_complete.
//! Additions for bash, zsh and fish complete what these scripts do not complete: COMMAND of `tr record`, and the second
//! word of a list such as `--report top,tree`.

use clap_complete::Shell;

use tr_text::called::TR;

use crate::errors::Done;
use crate::subcommand::{Program, Subcommand};
use crate::{called, open};

/// Print a shell's completions for tr
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  tr completions bash > /etc/bash_completion.d/tr
  tr completions zsh > /usr/local/share/zsh/site-functions/_tr
  tr completions fish > ~/.config/fish/completions/tr.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

impl Subcommand for CompletionsArgs {
    fn run(self, program: &Program) -> Done {
        let mut command = called::command(program.rows);
        let mut script = Vec::new();
        // If the program's name contains a dash, clap_complete's script for bash is broken: it spells the labels of
        // subcommands in two ways. The script is therefore made with a name without dashes.
        let name = match self.shell {
            Shell::Bash => function(TR.name()),
            _ => TR.name().to_owned(),
        };
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        let script = match self.shell {
            Shell::Bash => bash(&script, TR.name()),
            Shell::Zsh => zsh(&script, TR.name(), &lists(&command)),
            Shell::Fish => fish(&script, TR.name(), &lists(&command)),
            _ => script,
        };
        Ok(open::print(script.as_bytes()))
    }
}

/// An option of a subcommand whose value is a comma-separated list of known words, such as `--report`.
struct List {
    /// The name of the option that takes a list of words, without its dashes.
    option: String,
    /// The placeholder for the option's value in the help, such as `REPORTS`.
    value: String,
    /// The words that the option accepts, each with its line of help.
    words: Vec<(String, String)>,
}

/// The options of all subcommands whose value is a comma-separated list of known words. An option that
/// several subcommands have is listed once.
fn lists(command: &clap::Command) -> Vec<List> {
    let options = command.get_subcommands().flat_map(clap::Command::get_opts);
    let mut lists: Vec<List> = Vec::new();
    for option in options.filter(|option| option.get_value_delimiter().is_some()) {
        let words = option.get_possible_values();
        let Some(name) = option.get_long().filter(|_| !words.is_empty()) else {
            continue;
        };
        let help = |word: &clap::builder::PossibleValue| {
            word.get_help().map(ToString::to_string).unwrap_or_default()
        };
        let value = option.get_value_names().and_then(<[_]>::first);
        let list = List {
            option: name.to_owned(),
            value: value.map(ToString::to_string).unwrap_or_default(),
            words: words
                .iter()
                .map(|word| (word.get_name().to_owned(), help(word)))
                .collect(),
        };
        if lists.iter().all(|known| known.option != list.option) {
            lists.push(list);
        }
    }
    lists
}

/// A name with `_` in place of `-`, so that it can be part of the name of a shell function.
fn function(name: &str) -> String {
    name.replace('-', "_")
}

fn bash(script: &str, called: &str) -> String {
    let name = function(called);
    let words = include_str!("completions/words.bash").replace("_NAME", &format!("_{name}"));
    let Some((before, registers)) = script.rsplit_once("\nif [[ \"${BASH_VERSINFO[0]}\"") else {
        return script.to_owned();
    };
    let registers = registers
        .replace(&format!("-F _{name} "), &format!("-F _{name}_words "))
        .replace(&format!(" {name}\n"), &format!(" {called}\n"));
    format!("{before}\n{words}if [[ \"${{BASH_VERSINFO[0]}}\"{registers}")
}

fn zsh(script: &str, name: &str, lists: &[List]) -> String {
    // Makes zsh complete COMMAND and its arguments like a command line of their own.
    let mut lines = Vec::new();
    for line in script.lines() {
        let is_command = line.starts_with("'*::command --");
        match line.strip_suffix(":_default' \\").filter(|_| is_command) {
            Some(before) => lines.push(format!("{before}:_normal' \\")),
            None => lines.push(line.to_owned()),
        }
    }
    let mut script = lines.join("\n") + "\n";
    let mut functions = String::new();
    for list in lists {
        let called = format!("_{}_{}", function(name), function(&list.option));
        script = replaced(&script, list, &called);
        functions.push_str(&format!("{called}() {{\n    _values -s , {}", list.option));
        for (word, help) in &list.words {
            let help = help
                .replace('\\', "\\\\")
                .replace('[', "\\[")
                .replace(']', "\\]");
            let help = help.replace('\'', "'\\''");
            functions.push_str(&format!(" \\\n        '{word}[{help}]'"));
        }
        functions.push_str("\n}\n\n");
    }
    let Some((before, registers)) = script.rsplit_once("\nif [ \"$funcstack[1]\"") else {
        return script;
    };
    format!("{before}\n{functions}if [ \"$funcstack[1]\"{registers}")
}

/// The completion script for zsh, in which a shell function with the given name completes each word of the
/// option's comma-separated list.
fn replaced(script: &str, list: &List, function: &str) -> String {
    let begin = format!("--{}=", list.option);
    let words = format!(":{}:((", list.value);
    let mut out = String::new();
    let mut rest = script;
    while let Some((before, after)) = rest.split_once(&words) {
        let option = before.rsplit('\n').next().unwrap_or_default();
        match after.split_once("))'").filter(|_| option.contains(&begin)) {
            Some((_, tail)) => {
                out.push_str(&format!("{before}:{}:{function}'", list.value));
                rest = tail;
            }
            None => {
                out.push_str(&format!("{before}{words}"));
                rest = after;
            }
        }
    }
    out + rest
}

fn fish(script: &str, name: &str, lists: &[List]) -> String {
    let mut script = script.to_owned();
    let mut functions = String::new();
    for list in lists {
        let called = format!("__fish_{}_{}", function(name), function(&list.option));
        let begin = format!(" -l {} ", list.option);
        let mut lines = script.split(&begin);
        let mut out = lines.next().unwrap_or_default().to_owned();
        for line in lines {
            out.push_str(&begin);
            // fish takes the words in one quoted argument, each on a line of its own.
            match line.split_once(" -a \"") {
                Some((before, after)) if !before.contains('\n') => {
                    let tail = after.split_once('"').map_or("", |(_, tail)| tail);
                    out.push_str(&format!(
                        "{before} -a \"(__fish_complete_list , {called})\"{tail}"
                    ));
                }
                _ => out.push_str(line),
            }
        }
        script = out;
        functions.push_str(&format!("\nfunction {called}\n    printf '%s\\n'"));
        for (word, help) in &list.words {
            let help = help.replace('\\', "\\\\").replace('\'', "\\'");
            functions.push_str(&format!(" {word}\\t'{help}'"));
        }
        functions.push_str("\nend\n");
    }
    let words = include_str!("completions/words.fish")
        .replace("NAME", &function(name))
        .replace("CALLED", name);
    format!("{script}{functions}{words}")
}
