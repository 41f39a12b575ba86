//! The facts about a build tool: the columns of the table in [`crate::table`].

use crate::job_tools::JobTool;
use crate::steps::Read;

/// The tools whose own ways other crates know, beside the facts of their rows: how make shares its slots, what cargo's
/// file of times says.
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

/// The part of a program in a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Translates a source file.
    Compiler,
    Linker,
    /// Finds out about the machine, before all else.
    Configure,
    /// Fetches and unpacks packages.
    Packages,
    /// Starts jobs, and can start several at once.
    Jobs,
    Tests,
    Shell,
}

/// The arguments of a tool that its label shows. Lists of options are separated
/// by spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// All arguments.
    All,
    /// The source file, or else the output; first the option that asks for less than to
    /// compile (`-E`, `-MM`).
    Compiler,
    /// The output, unless it is a temporary file.
    Assembler,
    /// The value of the option.
    Named(&'static str),
    /// The program has the first argument that is no option (`git clone`). These
    /// options have their value in the next argument.
    Verbs(&'static str),
    /// The program has the first argument if it is one of these, and otherwise the other name.
    Commands(&'static str, &'static str),
    /// The program is a script, a module, or a text among the arguments.
    Interpreter(Script),
    /// The first argument is another tool.
    Wrapper,
    /// The program's directory has the name of a crate.
    Crate,
}

/// The options of an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// Options with the program's text in the next argument.
    pub text: &'static str,
    /// Options with the name of a module or a jar in the next argument.
    pub named: &'static str,
    /// Other options with a value in the next argument.
    pub valued: &'static str,
    /// Options that belong to the program's name.
    pub mode: &'static str,
    /// One-letter options may stand together: `sh -ec TEXT`.
    pub clustered: bool,
    /// The letter for a text may stand before others: `sh -ce TEXT`.
    pub text_anywhere: bool,
    /// The program is a class, not a file.
    pub class: bool,
    /// A text may call Perl's `test_harness`, which runs tests.
    pub harness: bool,
}

/// An interpreter without options: rows name those that it has.
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
    /// A shell ends with the status of one of its commands.
    Script,
    /// The tool fails if the child fails.
    Fail,
    /// The tool fails, and it also fails by the steps that run inside its own process.
    FailOrOwn,
    /// The tool lets its other children end, and fails.
    FailLate,
    /// The tool fails, unless the child was optional.
    FailUnlessOptional,
    /// The tool fails late if its command line names the child; it runs programs of its own as well.
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
    /// The name of the tool whose version it is.
    pub called: &'static str,
    /// The directories that stand for the tool before a version, separated by spaces.
    pub homes: &'static str,
    /// The argument whose value is the version, or nothing.
    pub argument: &'static str,
}

/// The places of a version that no argument has.
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
    /// The first words that are no options, with which the tool has a role.
    pub(crate) verbs: &'static [(Role, &'static str)],
    /// The options with which a tool does not configure, for a tool that does so without them.
    pub(crate) configures_unless: &'static str,
    pub(crate) label: Label,
    /// The step that a call of the tool is.
    pub(crate) step: Option<Read>,
    /// The option for the number of jobs, and their order.
    pub jobs: Option<JobTool>,
    pub(crate) change: Option<Change>,
    pub(crate) version: Option<Version>,
    pub children: Children,
    /// Whether what the tool starts are checks while it configures: most fail because something is not there, and
    /// the tool goes on.
    pub probes: bool,
    /// Whether the tool prints facts about the machine: scripts run it for its answer.
    pub answers: bool,
    /// Whether the tool takes job slots from the pipe of a job server (GNU make's protocol, "POSIX Jobserver
    /// Interaction" in its manual).
    pub client: bool,
    /// A daemon runs its containers: they are no descendants of it.
    pub asks_daemon: bool,
    /// Whether the tool runs all its tests in one process or in a few, and can report them as JUnit XML.
    pub tells_tests: bool,
    /// The change that saves the tool's own time, for a tool that only finds and starts another program.
    pub(crate) bypass: Option<&'static str>,
    /// Whether the tool runs another program with a lower priority, or on fewer CPUs.
    pub(crate) limits: bool,
    /// Whether the tool runs another program on given CPUs alone.
    pub(crate) pins: bool,
    /// Whether the tool does for all files that it is given what it does for one: a script needs to call it once.
    pub(crate) handles_files: bool,
    /// Whether the tool is run until its output no longer changes: each run reads what the one before has written.
    pub(crate) converges: bool,
    /// Whether the tool is the driver of a compiler for C, C++, Fortran, CUDA or one of their relatives: its calls are
    /// entries of a `compile_commands.json`.
    pub(crate) drives: bool,
    /// Command lines, each with the program and the rest of its label. A test reads them (`~`: a space in an
    /// argument).
    #[cfg_attr(not(test), expect(dead_code, reason = "tests read the examples"))]
    pub(crate) labels: &'static str,
    /// Command lines, each with the kind and the name of its step, or `-` if it is none. A test reads them.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests read the examples"))]
    pub(crate) steps: &'static str,
}

/// A program that is known by name alone: rows name what they have beside that.
pub(crate) const TOOL: Tool = Tool {
    names: "",
    family: Family::Other,
    role: None,
    verbs: &[],
    configures_unless: "",
    label: Label::All,
    step: None,
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
    /// The name of the program in reports: its first one.
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
    /// The verb runs containers to their end: a step of a build.
    Run,
    /// A part of that, or it runs a program in a container that is there.
    Part,
    /// The verb transfers images: a step.
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
