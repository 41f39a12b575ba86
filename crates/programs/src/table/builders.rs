//! Build tools: they start compilers, tests and other jobs.

use crate::job_tools::{JobTool, Starts, Untold, JOBS};
use crate::steps::{found, in_directory, test_runner, Found, Line, StepKind};
use crate::tools::{version, Change, Children, Family, Label, Role, Tool, Version, TOOL};
use crate::words::{command, has};
use tr_text::escape;

/// A tool that builds what a build.ninja lists.
const NINJA: Tool = Tool {
    family: Family::Ninja,
    role: Some(Role::Jobs),
    jobs: Some(JobTool {
        options: "-j",
        flags: "hnv",
        keep_going: "k",
        asks: "npqt",
        starts: Some(Starts::Needs),
        unless_told: Untold::CpusAndMore,
        ..JOBS
    }),
    change: Some(Change::Words("let it run more jobs (-j)")),
    step: Some(ninja),
    ..TOOL
};

/// A build tool whose first word says what it does: `bazel build`, `gradle test`.
const BUILDER: Tool = Tool {
    children: Children::Fail,
    step: Some(verb),
    ..TOOL
};

/// The verbs of meson. Without one it sets a build up.
const MESON: &str =
    "setup configure dist install introspect init test wrap subprojects rewrite compile \
                     devenv env2mfile format fmt help";

pub(super) const ROWS: &[Tool] = &[
    Tool {
        names: "make gmake",
        family: Family::Make,
        role: Some(Role::Jobs),
        client: true,
        jobs: Some(JobTool {
            options: "-j --jobs",
            flags: "bBdehiklLmnpqrRsStvw",
            keep_going: "k",
            asks: "npqt",
            starts: Some(Starts::Needs),
            unless_told: Untold::One,
            ..JOBS
        }),
        change: Some(Change::Numbered("give it -j")),
        step: Some(make),
        steps: "make -s -j2 => target | make
                 make -j 4 -C src all BUILD=/x => target | make -C src all
                 gmake --directory=lib check => target | make -C lib check
                 make -f CMakeFiles/Makefile2 all => target | make all
                 make -s -f CMakeFiles/lua.dir/build.make CMakeFiles/lua.dir/build => target | make CMakeFiles/lua.dir/build
                 make --version => -",
        ..TOOL
    },
    Tool {
        names: "ninja ninja-build",
        client: true,
        steps: "ninja => target | ninja
                 ninja -C out -j 4 all => target | ninja -C out all
                 /usr/bin/ninja-build all => target | ninja all
                 ninja --version => -
                 /usr/bin/ninja -t restat build.ninja => -",
        ..NINJA
    },
    Tool {
        names: "samu",
        client: true,
        ..NINJA
    },
    Tool {
        names: "n2",
        steps: "n2 all => target | n2 all",
        ..NINJA
    },
    Tool {
        names: "cargo",
        family: Family::Cargo,
        client: true,
        verbs: &[
            (Role::Jobs, "build test check"),
            (Role::Packages, "fetch install"),
        ],
        jobs: Some(JobTool {
            options: "-j --jobs",
            starts: Some(Starts::Threads),
            unless_told: Untold::Seen,
            ..JOBS
        }),
        change: Some(Change::Words("let it run more jobs (-j)")),
        version: Some(version("cargo", "toolchains")),
        children: Children::Fail,
        label: Label::Verbs("-C -Z --color --config --manifest-path"),
        step: Some(cargo),
        labels: "cargo test --workspace => cargo test | --workspace
                  cargo +nightly -Z unstable test => cargo test |",
        steps: "cargo build --release => target | cargo build
                 cargo +nightly -q test -p x => target | cargo test
                 cargo --manifest-path x/Cargo.toml build => target | cargo build
                 cargo nextest run => target | cargo nextest run
                 cargo --version => -
                 cargo metadata --format-version 1 => -",
        ..TOOL
    },
    Tool {
        names: "cargo-nextest",
        jobs: Some(JobTool {
            options: "-j --test-threads",
            unless_told: Untold::Seen,
            ..JOBS
        }),
        children: Children::Fail,
        step: Some(cargo_tool),
        steps: "/root/.cargo/bin/cargo-nextest nextest run => target | cargo nextest run",
        ..TOOL
    },
    Tool {
        names: "go",
        verbs: &[
            (Role::Tests, "test"),
            (Role::Packages, "mod"),
            (Role::Compiler, "compile"),
        ],
        jobs: Some(JobTool {
            options: "-p",
            starts: Some(Starts::Threads),
            unless_told: Untold::Seen,
            ..JOBS
        }),
        change: Some(Change::Words("let it run more packages at once (-p)")),
        version: Some(Version {
            called: "go",
            homes: "go",
            argument: "-goversion",
        }),
        children: Children::Fail,
        label: Label::Verbs("-C"),
        step: Some(go),
        labels: "go test ./... => go test | ./...",
        steps: "go test ./... => target | go test ./...
                 go build -o x . => target | go build
                 go env GOROOT => -",
        ..TOOL
    },
    Tool {
        names: "cmake",
        configures_unless: "--build --install --open -E -P --version",
        probes: true,
        version: Some(version("cmake", "cmake")),
        children: Children::Fail,
        step: Some(cmake),
        steps: "cmake --build build --target install -j4 => target | cmake --build build
                 cmake -S . -B build => target | cmake
                 cmake -G Ninja .. => target | cmake
                 cmake --install build => target | cmake --install build
                 cmake -E echo x => -
                 cmake -P x.cmake => -",
        ..TOOL
    },
    Tool {
        names: "configure",
        family: Family::Configure,
        role: Some(Role::Configure),
        probes: true,
        step: Some(configure),
        steps: "/bin/sh ./configure --prefix=/x => target | configure
                 ./configure => target | configure",
        ..TOOL
    },
    Tool {
        names: "config.status autoreconf autoconf automake",
        role: Some(Role::Configure),
        ..TOOL
    },
    Tool {
        names: "meson",
        verbs: &[(Role::Tests, "test"), (Role::Configure, "setup")],
        probes: true,
        jobs: Some(JobTool {
            options: "--num-processes",
            unless_told: Untold::Seen,
            ..JOBS
        }),
        change: Some(Change::Words("let it run more at once")),
        children: Children::Fail,
        label: Label::Commands(MESON, "setup"),
        step: Some(meson),
        labels: "python3 /usr/bin/meson setup b => meson setup | b
                  meson test -C b => meson test | -C b
                  meson b => meson setup | b
                  meson --buildtype=release b => meson setup | --buildtype=release b
                  meson --internal exe x => meson | --internal exe x
                  meson --version => meson | --version",
        steps: "meson setup build => target | meson setup
                 meson build => target | meson setup
                 python3 /src/meson.py setup build => target | meson setup
                 meson --version => -
                 meson compile -C build => target | meson compile
                 meson test -C build => test | meson test",
        ..TOOL
    },
    Tool {
        names: "bazel bazelisk buck2 just nox rake sbt scons task tox waf",
        steps: "bazel test //... => target | bazel test
                 ./gradlew --no-daemon build => target | gradlew build
                 mvn -q -B package => target | mvn package
                 tox => target | tox",
        ..BUILDER
    },
    Tool {
        names: "gradle gradlew mvn mvnw",
        tells_tests: true,
        ..BUILDER
    },
    Tool {
        names: "xargs",
        role: Some(Role::Jobs),
        jobs: Some(JobTool {
            options: "-P --max-procs",
            flags: "0oprtx",
            starts: Some(Starts::Listed),
            unless_told: Untold::One,
            ..JOBS
        }),
        change: Some(Change::Words("give it -P")),
        children: Children::FailLate,
        ..TOOL
    },
    Tool {
        names: "parallel",
        role: Some(Role::Jobs),
        jobs: Some(JobTool {
            options: "-j --jobs",
            starts: Some(Starts::Listed),
            unless_told: Untold::Cpus,
            ..JOBS
        }),
        change: Some(Change::Words("let it run more jobs (-j)")),
        children: Children::FailIfNamed,
        ..TOOL
    },
];

fn make(line: &Line) -> Option<Found> {
    const VALUED: &str = "-C -f -I -o -W --directory --file --makefile";
    if line.has(&["--version", "-v", "--help", "-h"]) {
        return None;
    }
    let number = |word: &[u8]| word.iter().all(|byte| byte.is_ascii_digit());
    let goals = line
        .words(VALUED)
        .filter(|word| !word.contains(&b'=') && !number(word));
    let directory = line.value("-C").or_else(|| line.value("--directory"));
    Some(Found {
        nests: true,
        ..Found::new(StepKind::Target, in_directory(line.tool, directory, goals))
    })
}

fn ninja(line: &Line) -> Option<Found> {
    if line.has(&["--version", "-t", "-h", "--help"]) {
        return None;
    }
    let goals = line.words("-C -f -j -k -l -d -w");
    let name = in_directory(line.tool, line.value("-C"), goals);
    found(StepKind::Target, name)
}

fn cmake(line: &Line) -> Option<Found> {
    if line.has(&["-E", "-P", "--version", "--help", "-L", "-N"]) {
        return None;
    }
    for verb in ["--build", "--install"] {
        if let Some(directory) = line.after(verb) {
            let directory = escape::text(directory);
            return found(StepKind::Target, format!("cmake {verb} {directory}"));
        }
    }
    found(StepKind::Target, "cmake")
}

fn cargo(line: &Line) -> Option<Found> {
    const KNOWN: &str =
        "build b check c test t run r doc d bench clippy install fetch package publish";
    let mut words = line.words("");
    let verb = words.next()?;
    if verb == b"nextest" {
        let second = escape::text(words.next()?);
        return found(StepKind::Target, format!("cargo nextest {second}"));
    }
    let is = has(KNOWN, verb);
    is.then(|| found(StepKind::Target, format!("cargo {}", escape::text(verb))))?
}

/// `cargo-nextest nextest run`, as cargo executes it.
fn cargo_tool(line: &Line) -> Option<Found> {
    let words: Vec<String> = line.words("").take(2).map(escape::text).collect();
    found(StepKind::Target, format!("cargo {}", words.join(" ")))
}

fn go(line: &Line) -> Option<Found> {
    let mut words = line.words("-o -run -tags -count -p -timeout");
    let verb = words.next()?;
    let is = has("build test install vet generate run mod", verb);
    let packages = words.filter(|word| *word != b".");
    let name = in_directory("go", None, std::iter::once(verb).chain(packages));
    is.then(|| found(StepKind::Target, name))?
}

fn configure(_: &Line) -> Option<Found> {
    found(StepKind::Target, "configure")
}

fn meson(line: &Line) -> Option<Found> {
    // Without a verb it sets a build up.
    let (program, _) = command("meson", line.args, MESON, "setup")?;
    match program.as_str() {
        "meson test" => test_runner(program),
        "meson setup" | "meson compile" | "meson install" => found(StepKind::Target, program),
        _ => None,
    }
}

fn verb(line: &Line) -> Option<Found> {
    let verb = line.words("-f -p -e -c -C").next();
    found(
        StepKind::Target,
        in_directory(line.name, None, verb.into_iter()),
    )
}
