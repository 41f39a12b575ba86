//! Names the build steps that no other rule names: recipes, which are the commands that make or ninja runs for a
//! target.
//!
//! The name comes from the command line alone, without the paths of this machine, so that two builds of one source tree
//! have equal names.

use crate::command_line;
use crate::outline::{Outline, Word};
use crate::rules;
use crate::steps::StepName;
use crate::words::{has, is_assignment, relative};
use tr_text::phrase::Phrase;
use tr_text::{escape, phrase, units};

/// The largest number of commands that are read to name a recipe of make or ninja.
const MOST_COMMANDS: usize = 256;

/// The longest name, in columns, that is given to a recipe of make or ninja for people.
const WIDTH: usize = 60;

/// The names of commands that only prepare something or print, separated by spaces. A recipe of make is named after
/// such a command only if the recipe has no other command and writes no file.
const PREPARING_COMMANDS: &str =
    ". : [ [[ break case cd continue done echo esac exit export false fi for function local mkdir printf \
     read return rm select set shift source test trap true ulimit umask unset wait";

/// The words that can stand before the actual command in a recipe of make, because they belong to
/// the shell's language or run the command (`env`); separated by spaces.
const WORDS_BEFORE: &str = "! command do elif else env exec if then time until while {";

/// A command in the shell script of a recipe that make or ninja runs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Command {
    words: Vec<Vec<u8>>,
    /// The file to which a redirection sends the output of the recipe's command.
    output: Option<Vec<u8>>,
}

/// The name that reports give to a recipe. `args` are the arguments of the process that make or ninja started. The
/// recipe is named after the first of these that exists: a command that is no build step and does not just prepare
/// something; a build step; the file that the recipe writes; any command.
pub fn name(args: &[&[u8]]) -> Option<StepName> {
    let commands = match command_line::shell_text(args) {
        Some(script) => commands(script),
        None => vec![Command {
            words: without_env(args).iter().map(|arg| arg.to_vec()).collect(),
            output: None,
        }],
    };
    let prepares = |command: &Command| {
        command
            .words
            .first()
            .is_none_or(|word| has(PREPARING_COMMANDS, word))
    };
    let step = |command: &Command| rules::step(&slices(&command.words));
    let mut work = commands.iter().filter(|command| !prepares(command));
    if let Some(command) = work.clone().find(|command| step(command).is_none()) {
        return Some(of_command(command));
    }
    // All commands that do real work are build steps, as in `cc -o app $(./sources)`. So the recipe has the name of
    // the first one.
    if let Some(found) = work.find_map(step) {
        return Some(found.name);
    }
    let mut outputs = commands
        .iter()
        .filter_map(|command| command.output.as_deref());
    if let Some(output) = outputs.find(|output| !output.starts_with(b"/dev/")) {
        return Some(
            escape::raw(relative(output))
                .trim_start_matches("./")
                .into(),
        );
    }
    commands
        .iter()
        .find(|command| !command.words.is_empty())
        .map(of_command)
}

/// A command line without a leading `env` and the options of `env`. A script that begins with `#!/usr/bin/env bash` has
/// such an `env` in its command line.
fn without_env<'a, 'w>(args: &'a [&'w [u8]]) -> &'a [&'w [u8]] {
    match args.split_first() {
        Some((first, rest)) if matches!(*first, b"env" | b"/usr/bin/env") => {
            let is_option = |word: &&&[u8]| word.starts_with(b"-") || is_assignment(word);
            let options = rest.iter().take_while(is_option).count();
            rest.get(options..).unwrap_or_default()
        }
        _ => args,
    }
}

fn slices(words: &[Vec<u8>]) -> Vec<&[u8]> {
    words.iter().map(Vec::as_slice).collect()
}

fn of_command(command: &Command) -> StepName {
    let StepName { phrase, brief } = command_line::portable_name(&slices(&command.words));
    let short = units::shorten(phrase.short(), WIDTH);
    StepName {
        phrase: Phrase::new(phrase::bounded(phrase.whole()), short),
        brief,
    }
}

/// The commands in the shell script of a recipe, without the commands inside `$(…)`.
fn commands(script: &[u8]) -> Vec<Command> {
    let outline = Outline::read(script);
    let is_before = |word: &&Word| has(WORDS_BEFORE, &word.text);
    let simple = outline.in_order().into_iter().take(MOST_COMMANDS);
    let simple = simple.map(|command| Command {
        words: command
            .words
            .iter()
            .skip_while(is_before)
            .skip_while(|word| is_assignment(&word.text))
            .map(|word| word.text.clone())
            .collect(),
        output: command.output.as_ref().map(|word| word.text.clone()),
    });
    simple
        .filter(|command| *command != Command::default())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_named_after_what_it_does() {
        for (script, want) in [
            (
                "./run.sh 15 > t15.log 2>&1 || echo FAIL >> t15.log",
                "run.sh 15",
            ),
            ("./t.sh; ./app", "t.sh"),
            ("cd sub && set -e; mkdir -p out; ./app --fast", "app --fast"),
            (
                "export A=1; B=2 python3 gen.py -o out.h /w/in.json",
                "gen.py -o out.h",
            ),
            ("/w/build/run.sh -I/w/include --log=/w/x.log a", "run.sh a"),
            (
                "cd /w/x && ./check /tmp/tmp.Ab12 tmp.Ab13 t/a.c",
                "check t/a.c",
            ),
            ("if test -f x; then ./y z; fi", "y z"),
            ("for t in a b; do sh ./$t; done", "$t"),
            ("gcc -c x.c -o x.o && ./x 1", "x 1"),
            ("gcc -c x.c -o x.o", "x.o"),
            ("cc -o app $(./list /w/a.o /w/b.o)", "app"),
            ("echo '#define A' > config.h", "config.h"),
            ("echo x >> /w/build/config.h", "config.h"),
            (
                "test -z \"$(ls; ls)\" || tool 'a; b' $(cat x; cat y)",
                "tool a; b $(cat x; cat y)",
            ),
            ("rm -f a; echo done", "rm -f a"),
            ("{ time ./x; } 2> log", "x"),
            ("true >/dev/null", "true"),
            ("# nothing\n./x # y", "x"),
            ("curl -O https://x.org/y", "curl -O https://x.org/y"),
            ("", ""),
        ] {
            let named = name(&[b"/bin/sh", b"-c", script.as_bytes()]);
            assert_eq!(
                named.map(|name| name.phrase).unwrap_or_default().whole(),
                want,
                "{script}"
            );
        }
        let direct = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            name(&args).map(|name| name.phrase.whole().to_owned())
        };
        assert_eq!(direct("./run.sh 15").as_deref(), Some("run.sh 15"));
        assert_eq!(direct("mkdir -p /w/a").as_deref(), Some("mkdir -p"));
        // The shim of a version manager begins with `#!/usr/bin/env bash`.
        assert_eq!(
            direct("/usr/bin/env bash /h/shims/python3 smoke/run.py users").as_deref(),
            Some("run.py users")
        );
        assert_eq!(direct("env A=1 ./x 1").as_deref(), Some("x 1"));
        assert_eq!(
            direct("bash -eu tools/gen.sh x").as_deref(),
            Some("gen.sh x")
        );
    }

    #[test]
    fn a_long_recipe_has_a_short_name() {
        for words in [20, 1000] {
            let script = format!("./x{}", " word".repeat(words));
            let named = name(&[b"sh", b"-c", script.as_bytes()]).unwrap().phrase;
            assert!(named.short().starts_with("x word word"), "{named:?}");
            assert!(units::width(named.short()) <= WIDTH, "{named:?}");
            // JSON and other machine formats have the whole name, which is cut only at the length limit of all phrases.
            let whole = script.trim_start_matches("./");
            if words == 20 {
                assert_eq!(named.whole(), whole);
            } else {
                assert_eq!(named.whole(), phrase::bounded(whole));
            }
        }
    }

    #[test]
    fn any_text_has_an_end() {
        for script in ["'", "\"$(", "\\", ">", "2>&", "$((", ")", "`a", "<<<"] {
            commands(script.as_bytes());
        }
    }
}
