//! The facts that `tr` knows about a build tool: the columns of [`crate::table`].

use crate::job_tools::JobTool;
use crate::steps::Read;

/// The families of build tools for which parts of `tr` have special rules, for example how make
/// shares its job slots or how to read cargo's timing file.
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
    /// The tool needs no special rule beyond its row in the table of known programs.
    Other,
}

/// The role that a program has in a build, such as compiling, linking or running tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The program compiles source files in a build.
    Compiler,
    Linker,
    /// The program examines the machine before the actual build begins, as a configure script does.
    Configure,
    /// The program downloads and unpacks packages in a build.
    Packages,
    /// The program starts the jobs of a build, and can run several of them at once, as make does.
    Jobs,
    Tests,
    Shell,
}

/// The arguments of a program that the label of its process shows in reports. Lists of options in
/// the variants are separated by spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// In reports, the label of the program's process shows all arguments.
    All,
    /// In reports, the label of the program's process shows the source file, or else the output. If
    /// an option requests something less than compiling (`-E`, `-MM`), that option comes first.
    Compiler,
    /// In reports, the label of the program's process shows the output file or, if that is temporary, the source file.
    Assembler,
    /// In reports, the label of the program's process shows the value of this option, and `--test` if that is given.
    Named(&'static str),
    /// The first argument that is no option is a verb and belongs to the program's name in reports
    /// (`git clone`). The listed options have their value in the next argument.
    Verbs(&'static str),
    /// The first text lists commands of the program. If the first argument is one of them, it
    /// belongs to the program's name in reports (`meson setup`). Otherwise, the second text is
    /// appended to the name, as the default command.
    Commands(&'static str, &'static str),
    /// In reports, the process is named after the script, the module or the text that it gets as a
    /// program among its arguments.
    Interpreter(Script),
    /// In reports, the label of the program's process is the program's name and the label of the compiler that its
    /// first argument names: `ccache gcc x.c`.
    Wrapper,
    /// In reports, the label of the program's process shows the directory of the program's file,
    /// which is named after a crate (cargo's build scripts).
    Crate,
}

/// The options of an interpreter such as a shell or Python that decide which program it runs. Lists
/// of options are separated by spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// The interpreter's options that have the program's text in the next argument (`sh -c TEXT`).
    pub text: &'static str,
    /// The interpreter's options that have the name of a module or a jar in the next argument
    /// (`python -m MODULE`).
    pub named: &'static str,
    /// The interpreter's other options that have a value in the next argument.
    pub valued: &'static str,
    /// The interpreter's options that select what the interpreter does, such as `-c` of ruby. Reports show such an
    /// option together with the name of the interpreter.
    pub mode: &'static str,
    /// Whether the interpreter's one-letter options may be written together: `sh -ec TEXT`.
    pub clustered: bool,
    /// Whether the interpreter's option for a program's text may stand before other letters:
    /// `sh -ce TEXT`.
    pub text_anywhere: bool,
    /// Whether the interpreter's argument names a class and not a file, as for `java`.
    pub class: bool,
    /// Whether a text that the interpreter runs may call Perl's function `test_harness`, which runs
    /// tests.
    pub harness: bool,
}

/// An interpreter without known options, as the base for the interpreters in the table of known
/// programs.
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

/// The consequence for a build tool if a child process that it started fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// The effect of the child's failure on the build tool is not known. If the tool ends right
    /// after the child, the child's failure is assumed to be the reason.
    Unknown,
    /// The program is a shell, which ends with the status of one of its commands.
    Script,
    /// The build tool fails as soon as one of its children has failed.
    Fail,
    /// The build tool fails if the child fails, or if a build step fails that runs inside the
    /// tool's own process.
    FailOrOwn,
    /// The build tool waits until its other children have ended, and then fails.
    FailLate,
    /// The build tool fails if the child fails, unless the child was optional.
    FailUnlessOptional,
    /// If the build tool's own command line names the failed child, the tool waits for its other
    /// children and then fails. The tool also runs helper programs that its command line does not
    /// name.
    FailIfNamed,
    /// The program runs another program as its child and exits with the child's status.
    Status,
}

/// The words with which the report's advice suggests to change a tool or its number of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Words(&'static str),
    /// The suggested number of jobs is appended to the words that the advice prints.
    Numbered(&'static str),
}

/// How a program compresses data. The lists of arguments are separated by spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The arguments of which the program needs one to compress; empty if it needs none.
    pub with: &'static str,
    /// The arguments with which the program does not compress.
    pub without: &'static str,
    /// The level of the compression if no argument sets one.
    pub level: u8,
    /// The lowest level that takes several times as long as the program's fastest one.
    pub slow: u8,
}

/// Where a tool's version is found: the directories of a path, or an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The name of the build tool under which its version is reported.
    pub called: &'static str,
    /// The names of directories after which a path contains the tool's version, separated by spaces
    /// (`gcc` for `/usr/lib/gcc/TARGET/12`).
    pub homes: &'static str,
    /// The argument whose value is the tool's version; empty if there is none.
    pub argument: &'static str,
}

/// Describes where a tool's version is found, for a tool whose version is only in paths and not in
/// its arguments.
pub(crate) const fn version(called: &'static str, homes: &'static str) -> Version {
    Version {
        called,
        homes,
        argument: "",
    }
}

/// The facts that `tr` knows about one program: a row of the table of known programs.
#[derive(Clone, Copy, Debug)]
pub struct KnownProgram {
    /// The names under which the program is known, separated by spaces, without a version and a
    /// target. Reports use the first one.
    pub(crate) names: &'static str,
    pub family: Family,
    pub(crate) role: Option<Role>,
    /// For each role in a build, the verbs (first words) with which the program has that role.
    pub(crate) verbs: &'static [(Role, &'static str)],
    /// For a program that configures a build by default: the options with which it does something
    /// else.
    pub(crate) configures_unless: &'static str,
    pub(crate) label: Label,
    /// The rule that returns the build step for a command line of the program.
    pub(crate) step: Option<Read>,
    /// The test runner whose worker this program is, and the package that contains the program's file; `None` if the
    /// program is no worker.
    pub(crate) worker: Option<Worker>,
    /// The way in which the program runs several jobs: the option for their number, and their order; `None` if these
    /// are not known.
    pub jobs: Option<JobTool>,
    pub(crate) change: Option<Change>,
    pub(crate) version: Option<Version>,
    pub children: Children,
    /// Whether the programs that this tool starts while it configures a build are checks. Most of
    /// their failures only mean that something is not installed, and the tool continues.
    pub probes: bool,
    /// Whether the program prints facts about the machine, so that scripts run it to read its
    /// output.
    pub answers: bool,
    /// The verbs with which the program prints facts, separated by spaces. Scripts run the program with these verbs to
    /// check something, or to read the program's output.
    pub answer_verbs: &'static str,
    /// Whether the test runner has a way to declare that a test is expected to fail, so that a
    /// failed process may be a success.
    pub wants_failures: bool,
    /// Whether the build tool takes job slots from the pipe of a job server (GNU make's protocol,
    /// "POSIX Jobserver Interaction" in its manual).
    pub client: bool,
    /// Whether a daemon runs the tool's containers, so that the processes in them are no
    /// descendants of the tool.
    pub asks_daemon: bool,
    /// Whether the test runner runs all its tests in one process or a few, and can report them as
    /// JUnit XML.
    pub tells_tests: bool,
    /// The change that the advice suggests to save the time of this program, if it only finds and
    /// starts another program.
    pub(crate) bypass: Option<&'static str>,
    /// Whether the program runs another program with another priority, less CPU time or fewer CPUs, as `nice` does.
    pub(crate) limits: bool,
    /// Whether the program runs another program on a given set of CPUs only, as `taskset` does.
    pub(crate) pins: bool,
    /// Whether one call of the program can process many files, so that a script needs to call it
    /// only once.
    pub(crate) handles_files: bool,
    /// Whether a call of the program for a small file spends most of its time on the start of a runtime that compiles
    /// itself (a Java virtual machine), and one call can process many files.
    pub(crate) warms_up: bool,
    /// Whether scripts run the program repeatedly until its output no longer changes, because each
    /// run reads what the previous one wrote (LaTeX).
    pub(crate) converges: bool,
    /// How the program compresses data, if it does.
    pub(crate) compression: Option<Compression>,
    /// The beginnings of a compiler's options that only choose its warnings, so that they do not change what it makes.
    /// An option that is only the beginning has its value in the next argument (`-D warnings`).
    pub(crate) lints: &'static [&'static str],
    /// The options with which the program does without the results that it kept from earlier runs, separated by spaces.
    pub(crate) no_cache: &'static str,
    /// Whether the program is a compiler driver for C, C++, Fortran, CUDA or a related language, so
    /// that its calls are entries of a `compile_commands.json`.
    pub(crate) drives: bool,
    /// Examples of the program's command lines, each with the program's name and the rest of the
    /// expected label. A test verifies them (`~` stands for a space in an argument).
    #[cfg_attr(not(test), expect(dead_code, reason = "tests read the examples"))]
    pub(crate) labels: &'static str,
    /// Examples of the program's command lines, each with the kind and the name of the expected
    /// build step, or `-` if it is no step. A test verifies them.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests read the examples"))]
    pub(crate) steps: &'static str,
}

/// A process in which a test runner of Node.js, such as jest, runs its tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worker {
    /// The directory of the Node.js package in which the worker's program file lies.
    pub(crate) package: &'static str,
    /// The name of the test runner, after which reports name the worker process and its build step (`jest worker`).
    pub(crate) runner: &'static str,
}

/// A row of the table of known programs with only default values. Actual rows are based on it.
pub(crate) const PROGRAM: KnownProgram = KnownProgram {
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
    answer_verbs: "",
    wants_failures: false,
    client: false,
    asks_daemon: false,
    tells_tests: false,
    bypass: None,
    limits: false,
    pins: false,
    handles_files: false,
    warms_up: false,
    converges: false,
    compression: None,
    lints: &[],
    no_cache: "",
    drives: false,
    labels: "",
    steps: "",
};

impl KnownProgram {
    /// The name of the test runner whose worker process runs the program file with this path; `None` if the file is no
    /// such worker.
    pub(crate) fn runner_of_worker(&self, path: &str) -> Option<&'static str> {
        let worker = self.worker?;
        let is = path.split('/').any(|part| part == worker.package);
        is.then_some(worker.runner)
    }

    /// The program's name in reports, which is the first of its names.
    pub fn name(&self) -> &'static str {
        self.names.split(' ').next().unwrap_or(self.names)
    }

    /// The role in a build of the program with this verb, if a verb is given.
    pub fn role(&self, verb: Option<&str>) -> Option<Role> {
        let has = |(_, verbs): &&(Role, &str)| verbs.split(' ').any(|word| Some(word) == verb);
        let by_verb = self.verbs.iter().find(has).map(|(role, _)| *role);
        by_verb.or(self.role)
    }

    /// The options that stand before the program's verb and have their value in the next argument,
    /// separated by spaces.
    pub(crate) fn valued(&self) -> &'static str {
        match self.label {
            Label::Verbs(valued) => valued,
            _ => "",
        }
    }
}

/// The effect of a verb of docker or a similar program. Verbs without an effect on containers or
/// images, such as `ps`, are not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerVerb {
    /// The verb of docker or a similar program runs containers until they end, also to build an image. Such a call is
    /// a build step.
    Run,
    /// The verb of docker or a similar program does a part of running a container (`create`,
    /// `start`), or runs a program in an existing container.
    Part,
    /// The verb of docker or a similar program transfers images, as `docker pull` does. Such a call
    /// is a build step.
    Image,
}

impl ContainerVerb {
    /// The effect of this verb of docker or a similar program; `None` for a verb without an effect
    /// on containers or images.
    pub fn of(verb: &str) -> Option<ContainerVerb> {
        match verb {
            "bud" | "build" | "buildx" | "compose" | "run" => Some(ContainerVerb::Run),
            "create" | "exec" | "start" => Some(ContainerVerb::Part),
            "pull" | "push" => Some(ContainerVerb::Image),
            _ => None,
        }
    }
}
