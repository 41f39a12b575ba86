//! The facts about a build tool, which are the columns of the table in [`crate::table`].

use crate::job_tools::JobTool;
use crate::steps::Read;

/// The tools for which other crates have rules of their own, beside the facts of their rows: how make shares
/// its slots, how to read cargo's file of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    Archiver,
    BuildScript,
    Cargo,
    Configure,
    Container,
    Make,
    Ninja,
    Pytest,
    Rspec,
    Rustc,
    Rustdoc,
    /// A tool that needs no rule beyond its row.
    Other,
}

/// The role of a program in a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The program translates a source file.
    Compiler,
    Linker,
    /// The program finds out about the machine before the build does anything else.
    Configure,
    /// The program fetches and unpacks packages.
    Packages,
    /// The program starts jobs, and can run several at once.
    Jobs,
    Tests,
    Shell,
}

/// The arguments of a tool that its label shows. Lists of options in it are separated by spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The label shows all arguments.
    All,
    /// The label shows the source file, or else the output. If an option requests less than compiling (`-E`,
    /// `-MM`), that option comes first.
    Compiler,
    /// The label shows the output, unless it is a temporary file.
    Assembler,
    /// The label shows the value of this option.
    Named(&'static str),
    /// The first argument that is no option belongs to the program's name (`git clone`). The listed options
    /// have their value in the next argument.
    Verbs(&'static str),
    /// The first argument belongs to the program's name if it is one of the listed ones. Otherwise the second
    /// text does.
    Commands(&'static str, &'static str),
    /// The program is named after a script, a module, or a text among the arguments.
    Interpreter(Script),
    /// The label is that of the tool that the first argument names.
    Wrapper,
    /// The label shows the directory of the program, which has the name of a crate.
    Crate,
}

/// The options of an interpreter, which decide what it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// The options with the program's text in the next argument.
    pub text: &'static str,
    /// The options with the name of a module or a jar in the next argument.
    pub named: &'static str,
    /// The other options with a value in the next argument.
    pub valued: &'static str,
    /// The options that belong to the program's name.
    pub mode: &'static str,
    /// Whether one-letter options may stand together: `sh -ec TEXT`.
    pub clustered: bool,
    /// Whether the letter for a text may stand before others: `sh -ce TEXT`.
    pub text_anywhere: bool,
    /// Whether the interpreter runs a class and not a file.
    pub class: bool,
    /// Whether a text may call Perl's `test_harness`, which runs tests.
    pub harness: bool,
}

/// An interpreter without known options. Rows add the options that it has.
pub const SCRIPT: Script = Script {
    text: "",
    named: "",
    valued: "",
    mode: "",
    clustered: false,
    text_anywhere: false,
    class: false,
    harness: false,
};

/// The consequence of a child's failure for the tool that started the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// The consequence of the child's failure is not known. If the tool ends right after the child, the tool is taken to
    /// fail because of it.
    Unknown,
    /// A shell, which ends with the status of one of its commands.
    Script,
    /// The tool fails if the child fails.
    Fail,
    /// The tool fails if the child fails, and also if a step fails that runs inside its own process.
    FailOrOwn,
    /// The tool lets its other children end, and then fails.
    FailLate,
    /// The tool fails, unless the child was optional.
    FailUnlessOptional,
    /// The tool fails after its other children if its command line names the child; it runs programs of its
    /// own as well.
    FailIfNamed,
    /// The tool exits with the status of its child.
    Status,
}

/// The words for a change to a tool's number of jobs, or to the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Words(&'static str),
    /// The number of jobs follows the words.
    Numbered(&'static str),
}

/// The places in which a path or an argument contains a tool's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The name of the tool that has the version.
    pub called: &'static str,
    /// The directories that stand for the tool in a path before the version, separated by spaces.
    pub homes: &'static str,
    /// The argument whose value is the version; empty if there is none.
    pub argument: &'static str,
}

/// The places of a tool's version in paths, for a tool whose arguments do not have it.
pub(crate) const fn version(called: &'static str, homes: &'static str) -> Version {
    Version {
        called,
        homes,
        argument: "",
    }
}

/// A known program: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// The names, separated by spaces, without version and target. Reports use the first one.
    pub(crate) names: &'static str,
    pub family: Family,
    pub(crate) role: Option<Role>,
    /// For each role, the first words (verbs) with which the tool has that role.
    pub(crate) verbs: &'static [(Role, &'static str)],
    /// For a tool that configures by default: the options with which it does not.
    pub(crate) configures_unless: &'static str,
    pub(crate) label: Label,
    /// The function that finds the step that a call of the tool is.
    pub(crate) step: Option<Read>,
    /// The worker of a test runner that the program is.
    pub(crate) worker: Option<Worker>,
    /// How the tool runs jobs: the option for their number, and their order.
    pub jobs: Option<JobTool>,
    pub(crate) change: Option<Change>,
    pub(crate) version: Option<Version>,
    pub children: Children,
    /// Whether the programs that the tool starts while it configures are checks. Most of these fail because
    /// something is not there, and the tool goes on.
    pub probes: bool,
    /// Whether the tool prints facts about the machine, so that scripts run it for its answer.
    pub answers: bool,
    /// Whether the tool takes job slots from the pipe of a job server (GNU make's protocol, "POSIX Jobserver
    /// Interaction" in its manual).
    pub client: bool,
    /// Whether a daemon runs the tool's containers, so that they are no descendants of the tool.
    pub asks_daemon: bool,
    /// Whether the tool runs all its tests in one process or in a few, and can report them as JUnit XML.
    pub tells_tests: bool,
    /// The change that saves the tool's own time, for a tool that only finds and starts another program.
    pub(crate) bypass: Option<&'static str>,
    /// Whether the tool runs another program with a lower priority, or on fewer CPUs.
    pub(crate) limits: bool,
    /// Whether the tool runs another program on given CPUs alone.
    pub(crate) pins: bool,
    /// Whether one call of the tool can do for many files what it does for one, so that a script needs to call it once.
    pub(crate) handles_files: bool,
    /// Whether the tool is run until its output no longer changes: each run reads what the previous run has written.
    pub(crate) converges: bool,
    /// Whether the tool is the driver of a compiler for C, C++, Fortran, CUDA or a related language, so that
    /// its calls are entries of a `compile_commands.json`.
    pub(crate) drives: bool,
    /// Examples of command lines, each with the program and the rest of its label. A test verifies them (`~`
    /// stands for a space in an argument).
    #[cfg_attr(not(test), expect(dead_code, reason = "tests read the examples"))]
    pub(crate) labels: &'static str,
    /// Examples of command lines, each with the kind and the name of its step, or `-` if it is none. A test
    /// verifies them.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests read the examples"))]
    pub(crate) steps: &'static str,
}

/// A process in which a test runner of Node.js runs its tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worker {
    /// The directory of the package that the program's file lies in.
    pub(crate) package: &'static str,
    /// The name of the process in reports, and of its step.
    pub(crate) name: &'static str,
}

/// A program of which only the name is known. Rows add what else is known.
pub(crate) const TOOL: Tool = Tool {
    names: "",
    family: Family::Other,
    role: None,
    verbs: &[],
    configures_unless: "",
    label: Label::All,
    step: None,
    worker: None,
    jobs: None,
    change: None,
    version: None,
    children: Children::Unknown,
    probes: false,
    answers: false,
    client: false,
    asks_daemon: false,
    tells_tests: false,
    bypass: None,
    limits: false,
    pins: false,
    handles_files: false,
    converges: false,
    drives: false,
    labels: "",
    steps: "",
};

impl Tool {
    /// The name of the worker that the program in this file is.
    pub(crate) fn worker_in(&self, path: &str) -> Option<&'static str> {
        let worker = self.worker?;
        let is = path.split('/').any(|part| part == worker.package);
        is.then_some(worker.name)
    }

    /// The name of the program in reports, which is the first of its names.
    pub fn name(&self) -> &'static str {
        self.names.split(' ').next().unwrap_or(self.names)
    }

    /// The role of the tool with this verb, if a verb is given.
    pub fn role(&self, verb: Option<&str>) -> Option<Role> {
        let has = |(_, verbs): &&(Role, &str)| verbs.split(' ').any(|word| Some(word) == verb);
        let by_verb = self.verbs.iter().find(has).map(|(role, _)| *role);
        by_verb.or(self.role)
    }

    /// The options before a verb of the tool that have their value in the next argument, separated by spaces.
    pub(crate) fn valued(&self) -> &'static str {
        match self.label {
            Label::Verbs(valued) => valued,
            _ => "",
        }
    }
}

/// The effect of a verb of a program for containers; `docker ps` has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerVerb {
    /// The verb runs containers to their end. The call is a step of a build.
    Run,
    /// The verb does a part of running a container, or runs a program in an existing container.
    Part,
    /// The verb transfers images. The call is a step.
    Image,
}

impl ContainerVerb {
    /// The effect of this verb.
    pub fn of(verb: &str) -> Option<ContainerVerb> {
        match verb {
            "bud" | "build" | "buildx" | "compose" | "run" => Some(ContainerVerb::Run),
            "create" | "exec" | "start" => Some(ContainerVerb::Part),
            "pull" | "push" => Some(ContainerVerb::Image),
            _ => None,
        }
    }
}
