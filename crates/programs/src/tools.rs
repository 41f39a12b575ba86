//! The programs of builds that `tr` knows: one row a program, with its names, its family and
//! its role. Labels, steps, advice, reasons of waits and imports ask here.
//!
//! To add a program of a known family is one row. CONTRIBUTING.md has the places of a new family.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Programs whose command lines are read in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    Ansible,
    Archiver,
    Assembler,
    Autotools,
    AutomakeTest,
    Bats,
    BatsFile,
    BatsTest,
    BazelTest,
    /// `bazel build`, `gradle test`: the step is the program and its first word.
    Builder,
    /// The wrapper of a compiler: its first argument is another program.
    CompilerCache,
    /// A driver that starts the passes of a compiler, or does them itself.
    CompilerDriver,
    /// A pass that a driver starts.
    CompilerPass,
    BuildScript,
    Cargo,
    CargoNextest,
    Cmake,
    Configure,
    Container,
    Ctest,
    Git,
    GitlabRunner,
    Go,
    JavaMachine,
    Jest,
    JestWorker,
    /// Linkers that use few of the CPUs.
    Linker,
    /// Linkers that use all CPUs.
    FastLinker,
    Make,
    Meson,
    Ninja,
    Node,
    Npm,
    Npx,
    /// Known by name alone.
    Other,
    Parallel,
    Perl,
    Pip,
    /// Verbs of system administration: `kubectl apply`.
    Operator,
    Prove,
    Pytest,
    /// Programs that print facts about the machine.
    Query,
    Python,
    Rspec,
    Ruby,
    Rustc,
    Rustdoc,
    /// An interpreter whose first argument is the script.
    Script,
    Shell,
    SystemPackages,
    TestRunner,
    Tr,
    Unittest,
    Vitest,
    Xargs,
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

/// A known program.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Separated by spaces, without version and target. Reports use the first one.
    names: &'static str,
    /// How its command line is read.
    pub family: Family,
    role: Option<Role>,
    /// The first words that are no options, with which it has a role.
    verbs: &'static [(Role, &'static str)],
    /// Whether the tool takes job slots from the pipe of a job server.
    pub client: bool,
    /// A daemon runs its containers: they are no descendants of it.
    pub asks_daemon: bool,
    /// Whether the tool runs all its tests in one process or in a few, and can report them as JUnit XML.
    pub tells_tests: bool,
}

const fn tool(names: &'static str, family: Family) -> Tool {
    Tool {
        names,
        family,
        role: None,
        verbs: &[],
        client: false,
        asks_daemon: false,
        tells_tests: false,
    }
}

impl Tool {
    const fn is(mut self, role: Role) -> Tool {
        self.role = Some(role);
        self
    }

    const fn with(mut self, verbs: &'static [(Role, &'static str)]) -> Tool {
        self.verbs = verbs;
        self
    }

    /// GNU make's protocol ("POSIX Jobserver Interaction" in its manual).
    const fn client(mut self) -> Tool {
        self.client = true;
        self
    }

    const fn asks_daemon(mut self) -> Tool {
        self.asks_daemon = true;
        self
    }

    const fn tells_tests(mut self) -> Tool {
        self.tells_tests = true;
        self
    }

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
}

/// The known programs.
#[rustfmt::skip]
const TOOLS: &[Tool] = &[
    tool("cc gcc c++ g++ c99 c89 gfortran icc", Family::CompilerDriver),
    tool("clang clang++ icx nvcc tcc", Family::CompilerDriver).is(Role::Compiler),
    tool("cpp", Family::CompilerPass),
    tool("cc1 cc1plus cc1obj f951 gnat1 lto1", Family::CompilerPass).is(Role::Compiler),
    tool("lto-wrapper", Family::Other).client(),
    tool("cicc ghc javac kotlinc scalac swiftc tsc", Family::Other).is(Role::Compiler),
    tool("as gas", Family::Assembler).is(Role::Compiler),
    tool("ld ld.bfd ld.gold gold ld64", Family::Linker).is(Role::Linker),
    tool("collect2", Family::Linker),
    tool("mold ld.mold lld ld.lld wild", Family::FastLinker).is(Role::Linker),
    tool("ar gcc-ar llvm-ar", Family::Archiver),
    tool("ccache sccache distcc icecc", Family::CompilerCache),
    tool("rustc clippy-driver", Family::Rustc).is(Role::Compiler).client(),
    tool("rustdoc", Family::Rustdoc).client(),
    tool("build-script-build build-script-main", Family::BuildScript),
    tool("make gmake", Family::Make).is(Role::Jobs).client(),
    tool("ninja ninja-build", Family::Ninja).is(Role::Jobs).client(),
    tool("samu", Family::Ninja).is(Role::Jobs).client(),
    tool("n2", Family::Ninja).is(Role::Jobs),
    tool("cargo", Family::Cargo).client()
        .with(&[(Role::Jobs, "build test check"), (Role::Packages, "fetch install")]),
    tool("cargo-nextest", Family::CargoNextest),
    tool("go", Family::Go).with(&[
        (Role::Tests, "test"), (Role::Packages, "mod"), (Role::Compiler, "compile"),
    ]),
    tool("cmake", Family::Cmake),
    tool("configure", Family::Configure).is(Role::Configure),
    tool("config.status autoreconf autoconf automake", Family::Autotools).is(Role::Configure),
    tool("meson", Family::Meson).with(&[(Role::Tests, "test"), (Role::Configure, "setup")]),
    tool("bazel bazelisk buck2 just nox rake sbt scons task tox waf", Family::Builder),
    tool("gradle gradlew mvn mvnw", Family::Builder).tells_tests(),
    tool("xargs", Family::Xargs).is(Role::Jobs),
    tool("parallel", Family::Parallel).is(Role::Jobs),
    tool("ctest", Family::Ctest).is(Role::Tests),
    tool("prove", Family::Prove).is(Role::Tests),
    tool("bats bats-exec-suite", Family::Bats).is(Role::Tests),
    tool("bats-exec-file", Family::BatsFile).is(Role::Tests),
    tool("bats-exec-test", Family::BatsTest),
    tool("pytest py.test", Family::Pytest).is(Role::Tests).tells_tests(),
    tool("unittest", Family::Unittest),
    tool("test-driver", Family::AutomakeTest),
    tool("test-setup.sh", Family::BazelTest),
    tool("jest", Family::Jest).is(Role::Tests).tells_tests(),
    tool("vitest", Family::Vitest).is(Role::Tests).tells_tests(),
    tool("rspec", Family::Rspec).is(Role::Tests).tells_tests(),
    tool("phpunit", Family::TestRunner).tells_tests(),
    tool("ava cypress karma mocha playwright", Family::TestRunner),
    tool("processChild", Family::JestWorker),
    tool("npm npm-cli pnpm yarn bun", Family::Npm).with(&[(Role::Packages, "ci install")]),
    tool("npx corepack", Family::Npx),
    tool("pip uv poetry conda gem bundle composer brew snap rustup", Family::Pip)
        .with(&[(Role::Packages, "install download sync pip")]),
    tool("apt apt-get aptitude dnf yum zypper apk", Family::SystemPackages)
        .with(&[(Role::Packages, "install update add")]),
    tool("dpkg ensurepip venv virtualenv", Family::Other).is(Role::Packages),
    tool("dotnet", Family::Operator).with(&[(Role::Packages, "restore")]),
    tool("helm kubectl nix systemctl terraform", Family::Operator),
    tool("git", Family::Git),
    tool("docker docker-compose docker-buildx nerdctl ctr crictl buildctl podman-remote", Family::Container)
        .asks_daemon(),
    tool("podman buildah buildah-oci-runtime", Family::Container),
    tool("ansible-playbook", Family::Ansible),
    tool("gitlab-runner-helper gitlab-runner", Family::GitlabRunner),
    tool("tr tr-trace", Family::Tr),
    tool("sh bash dash zsh ksh mksh ash", Family::Shell).is(Role::Shell),
    tool("busybox", Family::Other).is(Role::Shell),
    tool("python pypy", Family::Python),
    // The verb is the label's, of the call by which `make test` runs the tests of a module.
    tool("perl", Family::Perl).with(&[(Role::Tests, "Test::Harness")]),
    tool("ruby jruby", Family::Ruby),
    tool("node nodejs", Family::Node).with(&[(Role::Tests, "--test")]),
    tool("dpkg-architecture dpkg-query pkg-config pkgconf uname which readlink getconf", Family::Query),
    tool("java", Family::JavaMachine),
    tool("Rscript gjs guile lua php tclsh", Family::Script),
];

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

/// The program with this name, or with that name without its version and its target (`gcc` for
/// `x86_64-linux-gnu-gcc-12`).
pub fn by_name(name: &str) -> Option<&'static Tool> {
    // Looked up for every execution, of which there may be a million.
    static KNOWN: LazyLock<HashMap<&str, &Tool>> = LazyLock::new(|| {
        let named = |tool: &'static Tool| tool.names.split(' ').map(move |name| (name, tool));
        TOOLS.iter().flat_map(named).collect()
    });
    let known = |name: &str| KNOWN.get(name).copied();
    if let Some(found) = known(name) {
        return Some(found);
    }
    let plain = name
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
        .trim_end_matches('-');
    // A cross compiler's name starts with the target.
    let short = || {
        let parts = plain.bytes().filter(|byte| *byte == b'-').count();
        plain.rsplit('-').next().filter(|_| parts >= 2)
    };
    let versioned = (plain.len() < name.len()).then_some(plain);
    versioned.and_then(known).or_else(|| known(short()?))
}

/// The tool by the path of its file.
pub fn by_path(path: &[u8]) -> Option<&'static Tool> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    by_name(std::str::from_utf8(name).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_one_row() {
        let names = TOOLS.iter().flat_map(|tool| tool.names.split(' '));
        let mut names: Vec<&str> = names.collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn programs_are_found_with_a_target_and_a_version() {
        let role = |name: &str| by_name(name).and_then(|tool| tool.role(None));
        for (name, want) in [
            ("ld", Some(Role::Linker)),
            ("x86_64-linux-gnu-ld", Some(Role::Linker)),
            ("x86_64-linux-gnu-ld-2.40", Some(Role::Linker)),
            ("ld.mold", Some(Role::Linker)),
            ("wild", Some(Role::Linker)),
            ("clang-15", Some(Role::Compiler)),
            ("lto1", Some(Role::Compiler)),
            ("x86_64-linux-gnu-gcc-12", None),
            ("old", None),
            ("bold", None),
            ("sh", Some(Role::Shell)),
            ("ash-3", Some(Role::Shell)),
            ("go", None),
        ] {
            assert_eq!(role(name), want, "{name}");
        }
        let name = |name: &str| by_name(name).map(Tool::name);
        assert_eq!(name("gmake"), Some("make"));
        assert_eq!(name("n2"), Some("n2"));
        assert_eq!(name("x86_64-linux-gnu-gcc-12"), Some("cc"));
    }

    #[test]
    fn a_verb_decides_the_role() {
        let role = |name, verb| by_name(name).and_then(|tool| tool.role(Some(verb)));
        assert_eq!(role("go", "test"), Some(Role::Tests));
        assert_eq!(role("go", "build"), None);
        assert_eq!(role("apt-get", "install"), Some(Role::Packages));
        assert_eq!(role("pytest", "worker"), Some(Role::Tests));
        assert_eq!(role("perl", "Test::Harness"), Some(Role::Tests));
        assert!(by_name("test_harness").is_none()); // a common name of programs in C
    }
}
