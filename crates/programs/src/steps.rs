//! The parts of a command line that the rules for build steps read, and the step that a rule returns.

use crate::job_tools::JOBS;
use crate::tools::{KnownProgram, Role};
use crate::words;
use crate::words::has;
use tr_text::phrase::Phrase;
use tr_text::{called, escape, named};

named! {
    /// The kind of a build step. The step is found in a command line, a mark (`tr mark`) or an
    /// imported file.
    #[derive(Hash)]
    pub enum StepKind {
        Job = "job", "step of a CI job";
        Target = "target", "target of a build";
        Unit = "unit", "unit of a compiler";
        Test = "test", "test";
        Mark = "mark", "mark";
    }
}

/// An integration of `tr` into a test runner that runs all tests in one process. The integration makes each test a
/// step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integration {
    Pytest,
    /// The integration into `node --test`.
    Node,
}

/// The name of a build step, and its brief form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepName {
    pub phrase: Phrase,
    /// The name for places where the whole name has no room: the part that distinguishes the step from its neighbours,
    /// without directories, such as `mod5.o` for `build/mod5.o`. `None` if the whole name has no such part.
    pub brief: Option<String>,
}

impl StepName {
    /// A name without a brief form.
    pub fn whole(phrase: impl Into<Phrase>) -> StepName {
        StepName {
            phrase: phrase.into(),
            brief: None,
        }
    }

    /// A name whose brief form is made from the given part of it, which may be a path.
    pub fn with_part(phrase: impl Into<Phrase>, part: &str) -> StepName {
        let phrase = phrase.into();
        let brief = words::brief(part).filter(|brief| *brief != phrase.whole());
        StepName {
            brief: brief.map(str::to_owned),
            phrase,
        }
    }

    /// A name of two parts. The second part, such as the verb of a tool, distinguishes the step from its neighbours.
    pub(crate) fn of_parts(first: &str, second: &str) -> StepName {
        StepName::with_part(format!("{first} {second}"), second)
    }

    /// A name that a user or another tool wrote as one text.
    pub fn of_text(phrase: impl Into<Phrase>) -> StepName {
        let phrase = phrase.into();
        StepName {
            brief: words::brief_of_text(phrase.whole()).map(str::to_owned),
            phrase,
        }
    }
}

/// A name that is one word of a command line, such as a path, or the name of a program.
impl<T: AsRef<str>> From<T> for StepName {
    fn from(word: T) -> StepName {
        StepName::with_part(word.as_ref(), word.as_ref())
    }
}

/// A build step that a rule recognized in the command line of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundStep {
    pub kind: StepKind,
    pub name: StepName,
    /// The beginning of the name, if a random number follows and only this beginning is equal in all runs of a CI job.
    /// `None` if the whole name is equal in all runs.
    pub stable_name: Option<&'static str>,
    /// The path of the file that the test is in, as the command line has it, if the build step is a test whose file is
    /// known.
    pub file: Option<String>,
    /// How the tests that this build step's command runs can be recognized, in addition to tests that the rules
    /// recognize by their own command lines.
    pub tests: Tests,
    /// Whether a build step inside another step with the same name counts separately. Otherwise
    /// both are one step: `gcc -o lua` starts `ld -o lua`.
    pub nests: bool,
    /// Whether the build step's command is a CI runner's script with a random name, so that the
    /// first program that it starts gives the step a better name.
    pub script: bool,
    /// Whether the build step's command is a worker process of a test runner, which runs tests and
    /// is no test itself.
    pub worker: bool,
    /// The integration that makes each test of the build step's command a step, if the command is a test runner that
    /// has one.
    pub integration: Option<Integration>,
    /// The index, in the whole command line of the process, of the word at which another program's command line
    /// begins. It is set if the build step's command runs that program and exits with 0 even if the program fails.
    pub wraps: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tests {
    #[default]
    None,
    /// The child processes that the build step's command starts are tests.
    Children,
    /// The threads that the build step's command starts are tests and have the tests' names (Rust's
    /// libtest).
    Threads,
}

/// A command line of a process, with the program in it that a rule for build steps examines.
pub struct Line<'a> {
    /// The whole command line, including an interpreter and its arguments before the program.
    pub(crate) all: &'a [&'a [u8]],
    pub(crate) path: &'a str,
    /// The name of the program that the rule for build steps examines. Reports use the more
    /// detailed names of [`crate::command_line`].
    pub(crate) name: &'a str,
    /// The row of the command line's program in [`crate::table`]; a row of default values if it has none.
    pub(crate) tool: &'static KnownProgram,
    pub(crate) args: &'a [&'a [u8]],
}

/// A rule that recognizes build steps: a function that returns the step of a command line, or
/// `None`.
pub type Read = fn(&Line) -> Option<FoundStep>;

impl<'a> Line<'a> {
    pub(crate) fn has(&self, options: &[&str]) -> bool {
        let mut args = self.args.iter();
        args.any(|arg| options.iter().any(|option| option.as_bytes() == *arg))
    }

    pub(crate) fn after(&self, option: &str) -> Option<&'a [u8]> {
        let at = self.args.iter().position(|arg| *arg == option.as_bytes())?;
        self.args.get(at + 1).copied()
    }

    /// The value of an option on the command line: `-o FILE`, `-oFILE`, `--option FILE` or
    /// `--option=FILE`.
    pub(crate) fn value(&self, option: &str) -> Option<&'a [u8]> {
        let joined = |arg: &&'a [u8]| {
            let value = arg.strip_prefix(option.as_bytes())?;
            if option.starts_with("--") {
                value.strip_prefix(b"=")
            } else {
                Some(value).filter(|value| !value.is_empty())
            }
        };
        self.after(option)
            .or_else(|| self.args.iter().find_map(joined))
    }

    /// The arguments of the command line before `--` that are neither options nor values of
    /// options. `valued` lists further options, separated by spaces, that have their value in the
    /// next argument.
    pub(crate) fn words(&self, valued: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let of_tool = self.tool.valued();
        let is_valued = move |arg: &[u8]| has(valued, arg) || has(of_tool, arg);
        let mut skip = false;
        let args = self.args.iter().copied();
        let own = args.take_while(|arg| *arg != b"--");
        own.filter(move |arg| {
            let value = std::mem::replace(&mut skip, is_valued(arg));
            !value && !arg.starts_with(b"-") && !arg.starts_with(b"+")
        })
    }

    pub(crate) fn operands(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.tool.jobs.unwrap_or(JOBS).operands(self.args)
    }
}

impl FoundStep {
    /// A build step with this kind and name, and with the default for every other field.
    pub fn new(kind: StepKind, name: impl Into<StepName>) -> FoundStep {
        FoundStep {
            kind,
            name: name.into(),
            stable_name: None,
            file: None,
            tests: Tests::None,
            nests: false,
            script: false,
            worker: false,
            integration: None,
            wraps: None,
        }
    }
}

pub(crate) fn found(kind: StepKind, name: impl Into<StepName>) -> Option<FoundStep> {
    Some(FoundStep::new(kind, name))
}

/// The build step for a test with this name, which is in the file at this path.
pub(crate) fn test_in(file: &[u8], name: impl Into<StepName>) -> Option<FoundStep> {
    Some(FoundStep {
        file: Some(escape::raw(file)),
        ..FoundStep::new(StepKind::Test, name)
    })
}

pub(crate) fn test_runner(name: impl Into<StepName>) -> Option<FoundStep> {
    Some(FoundStep {
        tests: Tests::Children,
        ..FoundStep::new(StepKind::Test, name)
    })
}

pub(crate) fn worker(name: impl Into<StepName>) -> Option<FoundStep> {
    Some(FoundStep {
        worker: true,
        ..FoundStep::new(StepKind::Test, name)
    })
}

/// The build step of a tool whose first word says what it does: `bazel build`, `cabal test all`. The verbs in the
/// tool's row decide the kind of the step. The words after the verb belong to the step's name, unless they are paths
/// of this machine. `None` for a verb such as `help`, which only prints or runs something else.
pub(crate) fn call(line: &Line) -> Option<FoundStep> {
    const SAYS: &str =
        "completion config describe env eval exec help info list log path query repl \
                        search shell show-config version";
    let mut words = line.words("");
    let verb = words.next()?;
    if has(SAYS, verb) || verb.contains(&b'/') {
        return None;
    }
    let kind = match line.tool.role(std::str::from_utf8(verb).ok()) {
        Some(Role::Tests) => StepKind::Test,
        Some(Role::Packages) => StepKind::Job,
        _ => StepKind::Target,
    };
    let words = std::iter::once(verb).chain(words.filter(|word| !words::is_of_machine(word)));
    found(kind, in_directory(line.tool.name(), None, words))
}

/// The build step of a command that makes this file. Returns `None` for temporary files and the
/// like, which no step is named after.
pub(crate) fn file(path: &[u8]) -> Option<FoundStep> {
    let name = escape::raw(path);
    let base = words::base(&name);
    let scratch = words::is_temporary(base) || base.starts_with("conftest");
    if scratch || name == "-" || name.starts_with("/dev/") || name.starts_with("/proc/") {
        return None;
    }
    // Only the file's name of an absolute path is used, because the directories differ between machines.
    let name = if name.starts_with('/') {
        words::unhashed(base)
    } else {
        name.trim_start_matches("./")
    };
    found(StepKind::Target, name)
}

/// The name of a build step: the program, the directory in which it works (`-C DIRECTORY`), and
/// further words. Only the last part of an absolute path belongs to the name.
pub(crate) fn in_directory<'a>(
    program: &str,
    directory: Option<&'a [u8]>,
    words: impl Iterator<Item = &'a [u8]>,
) -> StepName {
    let is_shown = |word: &&[u8]| !words::is_of_machine(word);
    let directory = directory.map(words::relative).filter(is_shown);
    let directory = directory
        .into_iter()
        .flat_map(|directory| [b"-C", directory]);
    let mut name = program.to_owned();
    let mut last = program.to_owned();
    for word in directory.chain(words.map(words::relative)) {
        last = escape::raw(word);
        name.push(' ');
        name.push_str(&last);
    }
    StepName::with_part(name, &last)
}

/// The form of a `tr mark` command line: a moment, a command, or the beginning or the end of a
/// step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    Moment(&'a [u8]),
    Command(&'a [u8]),
    Begin(&'a [u8]),
    End(&'a [u8]),
}

impl<'a> Mark<'a> {
    pub fn of(args: &[&'a [u8]]) -> Option<Mark<'a>> {
        let (program, rest) = args.split_first()?;
        let name = program.rsplit(|byte| *byte == b'/').next();
        if name != Some(b"tr") && name != Some(called::SECOND_NAME.as_bytes()) {
            return None;
        }
        match rest {
            [b"mark", b"--begin", name] => Some(Mark::Begin(name)),
            [b"mark", b"--end", name] => Some(Mark::End(name)),
            [b"mark", name] if !name.starts_with(b"-") => Some(Mark::Moment(name)),
            [b"mark", name, b"--", _, ..] if !name.starts_with(b"-") => Some(Mark::Command(name)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_distinguished_from_other_uses_of_tr() {
        let of = |line: &'static str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            Mark::of(&args)
        };
        assert_eq!(of("/opt/tr mark build"), Some(Mark::Moment(b"build")));
        assert_eq!(of("tr mark build -- make"), Some(Mark::Command(b"build")));
        assert_eq!(of("tr mark --begin build"), Some(Mark::Begin(b"build")));
        assert_eq!(of("tr mark --end build"), Some(Mark::End(b"build")));
        assert_eq!(of("tr-trace mark build"), Some(Mark::Moment(b"build")));
        for other in [
            "tr",
            "tr mark",
            "tr mark a b",
            "tr mark a --",
            "str mark a",
            "tr -d mark",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
