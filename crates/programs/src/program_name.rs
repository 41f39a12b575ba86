//! The name by which reports call a program, and what the table of known programs says about a program with this name.

use std::fmt;

use crate::table;
use crate::table::utilities::{self, UtilityUse};
use crate::tools::{KnownProgram, Role};
use crate::words::has;
use tr_format::event::Argv;

/// The verb in the names of a test runner's worker processes: `jest worker`.
pub(crate) const WORKER: &str = "worker";

/// The verbs of git that change files of the work tree, separated by spaces.
const EDITS_OF_GIT: &str =
    "am apply checkout cherry-pick merge mv pull rebase reset restore revert rm stash switch";

/// The verbs of git that change only the repository and no file of the work tree, separated by
/// spaces.
const CHANGES_OF_GIT: &str = "add commit fetch push tag";

/// The name by which reports call a program: the name of its file, or of the script that an interpreter runs. If the
/// command line shows what the program does, the name has a verb (`git clone`). The name of a test program has the
/// tested package or file in place of the verb (`test http`).
///
/// Names without a verb may contain spaces, for example the comm `Web Content`. So a name and its verb are separate
/// facts, and only [`fmt::Display`] makes one text of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramName {
    name: Box<str>,
    verb: Option<Box<str>>,
}

impl fmt::Display for ProgramName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.verb {
            Some(verb) => write!(f, " {verb}"),
            None => Ok(()),
        }
    }
}

impl ProgramName {
    /// The name of a program without a verb.
    pub fn new(name: impl Into<Box<str>>) -> ProgramName {
        ProgramName {
            name: name.into(),
            verb: None,
        }
    }

    /// The name of a program with a verb, as for `git clone`.
    pub fn with_verb(name: impl Into<Box<str>>, verb: impl Into<Box<str>>) -> ProgramName {
        ProgramName {
            name: name.into(),
            verb: Some(verb.into()),
        }
    }

    /// The name of the program without its verb: `git` for `git clone`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The verb with which the program was called: `clone` for `git clone`.
    pub fn verb(&self) -> Option<&str> {
        self.verb.as_deref()
    }

    /// Whether the program has exactly this name, and no verb.
    pub fn is(&self, name: &str) -> bool {
        &*self.name == name && self.verb.is_none()
    }

    /// Whether the program has exactly this name and this verb.
    pub fn has_verb(&self, name: &str, verb: &str) -> bool {
        self.verb_of(name) == Some(verb)
    }

    /// The verb of the program, if the program has the given name: `clone` for `git clone` and `git`.
    fn verb_of(&self, name: &str) -> Option<&str> {
        self.verb().filter(|_| &*self.name == name)
    }

    /// The row for the program in the table of known programs.
    pub fn tool(&self) -> Option<&'static KnownProgram> {
        table::by_name(&self.name)
    }

    /// The role in a build of the program with this name and this verb, such as compiler or linker.
    pub fn role(&self) -> Option<Role> {
        self.tool()?.role(self.verb())
    }

    /// The role in a build of the program if it is executed with these arguments. CMake, for example, counts as
    /// configuring unless an option makes it build or do something else.
    pub fn role_with(&self, argv: &Argv) -> Option<Role> {
        let others = self.tool()?.configures_unless;
        let configures = || !others.is_empty() && !argv.args().any(|arg| has(others, arg));
        self.role()
            .or_else(|| configures().then_some(Role::Configure))
    }

    /// The purposes for which scripts use the program, if it is a small utility program such as `grep`; empty for all
    /// other programs. A name with a verb (`git clone`) has no uses, even if the name without the verb has some.
    pub fn uses(&self) -> &'static [UtilityUse] {
        if self.verb.is_none() {
            utilities::uses(&self.name)
        } else {
            &[]
        }
    }

    /// Whether the program is a worker process of a test runner, such as `jest worker`. Its exit status is 0 even if
    /// tests failed.
    pub fn is_test_worker(&self) -> bool {
        self.tool().is_some() && self.verb() == Some(WORKER)
    }

    /// Whether scripts call the program with this verb to check something, or to read its output.
    pub fn answers_by_verb(&self) -> bool {
        let has_answer = |tool: &KnownProgram| {
            let mut verb = self.verb().into_iter();
            verb.any(|verb| has(tool.answer_verbs, verb.as_bytes()))
        };
        self.tool().is_some_and(has_answer)
    }

    /// Whether one call of the program can process many files, so that several calls can be merged into one.
    pub fn handles_files(&self) -> bool {
        self.tool().is_some_and(|tool| tool.handles_files)
    }

    /// Whether a call of the program for a small file spends most of its time on the start of its runtime, and one call
    /// can process many files.
    pub fn warms_up(&self) -> bool {
        self.tool().is_some_and(|tool| tool.warms_up)
    }

    /// Whether scripts run the program again and again until its output no longer changes, as they do with LaTeX.
    pub fn converges(&self) -> bool {
        self.tool().is_some_and(|tool| tool.converges)
    }

    /// Whether the program compresses data by a slow level if it is executed with these arguments.
    pub fn compresses_slowly(&self, args: &[&[u8]]) -> bool {
        let Some(how) = self.tool().and_then(|tool| tool.compression) else {
            return false;
        };
        let any = |list: &str| args.iter().any(|arg| has(list, arg));
        let level = args.iter().skip(1).find_map(|arg| compression_level(arg));
        let compresses = (how.with.is_empty() || any(how.with)) && !any(how.without);
        compresses && level.unwrap_or(how.level) >= how.slow
    }

    /// The option with which the program, executed with these arguments, does without the results of earlier runs.
    pub fn no_cache<'a>(&self, args: &[&'a [u8]]) -> Option<&'a [u8]> {
        let options = self.tool()?.no_cache;
        args.iter().copied().find(|arg| has(options, arg))
    }

    /// Divides the arguments of a compiler into those that decide what it makes, and those that only choose its
    /// warnings. For other programs, all arguments are of the first kind.
    pub fn without_lints<'a>(&self, args: &[&'a [u8]]) -> (Vec<&'a [u8]>, Vec<&'a [u8]>) {
        let lints = self.tool().map_or(&[][..], |tool| tool.lints);
        let (mut others, mut chosen) = (Vec::new(), Vec::new());
        let mut is_value = false;
        for arg in args {
            let lint = lints.iter().find(|lint| arg.starts_with(lint.as_bytes()));
            // `-Wl,OPTION` passes an option on to the linker.
            let is_lint = is_value || lint.is_some() && !arg.contains(&b',');
            if is_lint { &mut chosen } else { &mut others }.push(*arg);
            is_value = !is_value && lint.is_some_and(|lint| lint.len() == arg.len());
        }
        (others, chosen)
    }

    /// The advice to do without a program that only finds and starts another program, such as npx. `None` for any other
    /// program.
    pub fn bypass(&self) -> Option<&'static str> {
        self.tool()?.bypass
    }

    /// The change that the advice suggests for calls of `npm run` and similar commands, which start the scripts of a
    /// package; `None` for any other call. Only calls inside another such call should be changed, because the outermost
    /// one may be how the user starts the build.
    pub fn bypass_of_scripts(&self) -> Option<&'static str> {
        let verb = self.verb_of("npm")?;
        matches!(verb, "run" | "run-script" | "exec" | "x" | "test" | "start")
            .then_some("call node or the tools in node_modules/.bin from one script, without npm")
    }

    /// Whether the program runs another program with another priority, less CPU time or fewer CPUs, as `nice` does.
    pub fn limits(&self) -> bool {
        self.tool().is_some_and(|tool| tool.limits)
    }

    /// Whether the program runs another program on a given set of CPUs only, as `taskset` does.
    pub fn pins(&self) -> bool {
        self.tool().is_some_and(|tool| tool.pins)
    }

    /// Whether the program may change existing files: those that its arguments name, or any files as `git checkout`
    /// does.
    pub fn edits(&self, args: &[&[u8]]) -> bool {
        let any = |options: &str| args.iter().any(|arg| has(options, arg));
        let in_place = || {
            args.iter()
                .any(|arg| arg.starts_with(b"-i") || arg.starts_with(b"-pi"))
        };
        match (&*self.name, self.verb()) {
            ("sed" | "perl", None) => in_place() || any("--in-place"),
            ("patch" | "tee" | "dd" | "install" | "ed" | "ex", None) => true,
            _ => {
                let verb = self.verb_of("git").unwrap_or_default();
                self.handles_files() || has(EDITS_OF_GIT, verb.as_bytes())
            }
        }
    }

    /// Whether the program changes a git repository, as `git add` does. The next git command then depends on this
    /// program.
    pub fn changes_repository(&self) -> bool {
        let verb = self.verb_of("git").unwrap_or_default().as_bytes();
        has(EDITS_OF_GIT, verb) || has(CHANGES_OF_GIT, verb)
    }

    /// Whether the program is git's client that sends commits to a server.
    pub fn is_push(&self) -> bool {
        self.has_verb("git", "push")
    }

    /// Whether the program with these arguments is git's server for pushes, which is a program of its own or a verb of
    /// git.
    pub fn takes_pushes(&self, argv: &Argv) -> bool {
        let mut args = argv.args().take(2);
        self.name.starts_with("git") && args.any(|arg| arg.ends_with(b"receive-pack"))
    }
}

/// The level of a compression that an argument sets: 9 for `-9`, `-9n`, `-z9`, `-mx=9` and `--best`.
fn compression_level(arg: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(arg).ok()?;
    let option = match text {
        "--best" => return Some(9),
        "--fast" => return Some(1),
        _ => text.strip_prefix('-')?,
    };
    let level = ["z", "mx="]
        .iter()
        .find_map(|prefix| option.strip_prefix(prefix))
        .unwrap_or(option);
    let digits = level.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_levels_of_compression_are_known() {
        for (line, want) in [
            ("xz -9 a.tar", true),
            ("xz a.tar", true),
            ("xz -1 -T1", false),
            ("xz -dc a.tar.xz", false),
            ("gzip -9n", true),
            ("gzip", false),
            ("zstd -19 a", true),
            ("zstd a", false),
            ("7z a -mx=9 a.7z b", true),
            ("7z x a.7z", false),
            ("dpkg-deb -Zxz --build root a.deb", true),
            ("dpkg-deb -z1 --build root a.deb", false),
            ("dpkg-deb -x a.deb root", false),
            ("gcc -9 a.c", false),
        ] {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let program = ProgramName::new(line.split(' ').next().unwrap());
            assert_eq!(program.compresses_slowly(&args), want, "{line}");
        }
    }

    #[test]
    fn options_for_warnings_do_not_decide_what_a_compiler_makes() {
        let without = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let program = ProgramName::new(line.split(' ').next().unwrap());
            let text = |args: Vec<&[u8]>| String::from_utf8(args.join(&b' ')).unwrap();
            let (others, lints) = program.without_lints(&args);
            (text(others), text(lints))
        };
        let both = |others: &str, lints: &str| (others.to_owned(), lints.to_owned());
        assert_eq!(
            without("rustc --crate-name a -D warnings a.rs -Wunused"),
            both("rustc --crate-name a a.rs", "-D warnings -Wunused")
        );
        assert_eq!(
            without("rustc --cap-lints allow a.rs"),
            both("rustc a.rs", "--cap-lints allow")
        );
        assert_eq!(
            without("clang -Wall -Wl,-z -DX a.c"),
            both("clang -Wl,-z -DX a.c", "-Wall")
        );
        assert_eq!(without("make -Wall"), both("make -Wall", ""));
    }
    use crate::command_line::{program_of, program_of_args};
    use tr_format::event::Comm;

    #[test]
    fn a_name_with_a_space_has_no_verb() {
        let comm = program_of(&Argv::default(), &Comm::new(b"make install"));
        assert_eq!(comm, ProgramName::new("make install"));
        let file = program_of_args(&[b"/w/git push", b"origin"]);
        assert_eq!((file.name(), file.verb()), ("git push", None));
        let push = program_of_args(&[b"git", b"push", b"origin"]);
        assert_eq!((push.name(), push.verb()), ("git", Some("push")));
        assert_eq!(file.to_string(), push.to_string());
        assert!(push.is_push() && push.tool().is_some());
        assert!(!file.is_push() && file.tool().is_none() && comm.tool().is_none());
    }

    #[test]
    fn names_are_sorted_like_their_texts() {
        let mut names = [
            ProgramName::new("git-lfs"),
            ProgramName::with_verb("git", "push"),
            ProgramName::with_verb("git", "clone"),
            ProgramName::new("git"),
            ProgramName::new("gita"),
        ];
        names.sort();
        let names = names.map(|name| name.to_string());
        assert_eq!(names, ["git", "git clone", "git push", "git-lfs", "gita"]);
    }

    #[test]
    fn a_worker_is_none_of_the_runner_itself() {
        for (program, want) in [
            (ProgramName::with_verb("jest", "worker"), true),
            (ProgramName::with_verb("pytest", "worker"), true),
            (ProgramName::new("jest"), false),
            (ProgramName::new("worker"), false),
            (ProgramName::new("jest worker"), false),
        ] {
            assert_eq!(program.is_test_worker(), want, "{program}");
        }
    }

    #[test]
    fn only_a_program_that_starts_others_is_bypassed() {
        let npm = |verb| ProgramName::with_verb("npm", verb);
        assert!(ProgramName::new("npx").bypass().is_some() && npm("ci").bypass().is_none());
        assert!(npm("run").bypass_of_scripts().is_some());
        assert!(npm("ci").bypass_of_scripts().is_none());
    }

    #[test]
    fn a_utility_has_no_verb() {
        assert_eq!(ProgramName::new("test").uses(), [UtilityUse::Question]);
        // A test that cargo runs is no utility, whatever its name is.
        assert!(ProgramName::with_verb("test", "laws").uses().is_empty());
    }

    #[test]
    fn some_verbs_of_git_change_the_repository() {
        for verb in ["commit", "tag", "checkout", "rm"] {
            let git = ProgramName::with_verb("git", verb);
            assert!(git.changes_repository(), "{git}");
        }
        for other in [
            ProgramName::with_verb("git", "log"),
            ProgramName::new("git"),
            ProgramName::new("commit"),
        ] {
            assert!(!other.changes_repository(), "{other}");
        }
    }

    #[test]
    fn some_programs_change_files() {
        for (line, want) in [
            ("sed -i s/a/b/ x.c", true),
            ("sed s/a/b/ x.c", false),
            ("perl -pi -e s/a/b/ x.c", true),
            ("perl x.pl", false),
            ("git checkout main", true),
            ("git commit -q -m x", false),
            ("git log", false),
            ("cp a b", true),
            ("cc1 x.c", false),
        ] {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let own = args.get(1..).unwrap_or_default();
            assert_eq!(program_of_args(&args).edits(own), want, "{line}");
        }
    }
}
