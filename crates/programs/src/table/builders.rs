//! The rows of the table of known programs for build tools, which start compilers, tests and other
//! jobs.

use crate::job_tools::{DefaultJobs, JobTool, Starts, JOBS};
use crate::steps::{call, found, in_directory, test_runner, FoundStep, Line, StepKind, StepName};
use crate::tools::{
    version, Change, Children, Family, KnownProgram, Label, Role, Version, PROGRAM,
};
use crate::words::{command, has, is_of_machine, relative};
use tr_text::escape;

/// The common part of the table rows for tools that build what a build.ninja lists, such as ninja
/// and samurai.
const NINJA: KnownProgram = KnownProgram {
    family: Family::Ninja,
    role: Some(Role::Jobs),
    jobs: Some(JobTool {
        options: "-j",
        flags: "hnv",
        valued: "-C -f -k -d -w",
        keep_going: "k",
        asks: "npqt",
        starts: Some(Starts::Needs),
        by_default: DefaultJobs::CpusAndMore,
        ..JOBS
    }),
    change: Some(Change::Words("let it run more jobs (-j)")),
    step: Some(ninja),
    ..PROGRAM
};

/// The common part of the table rows for build tools whose first word says what they do:
/// `bazel build`, `gradle test`.
const BUILDER: KnownProgram = KnownProgram {
    children: Children::Fail,
    step: Some(verb),
    ..PROGRAM
};

/// The common part of the table rows for build tools like [`BUILDER`] that also run build steps
/// inside their own process.
const SCRIPTED_BUILDER: KnownProgram = KnownProgram {
    children: Children::FailOrOwn,
    ..BUILDER
};

/// The common part of the table rows for build tools whose build step is named after the verb and
/// its arguments.
const CALLED_BUILDER: KnownProgram = KnownProgram {
    children: Children::Fail,
    step: Some(call),
    ..PROGRAM
};

/// The options of make that have their value in the next argument, separated by spaces (GNU make's
/// manual, "Summary of Options").
const MAKE_VALUED: &str = "-C -f -I -o -W --directory --file --makefile";

/// The verbs of meson, separated by spaces. A call without one of them sets up a build directory.
const MESON: &str =
    "setup configure dist install introspect init test wrap subprojects rewrite compile \
                     devenv env2mfile format fmt help";

pub(super) const ROWS: &[KnownProgram] = &[
    KnownProgram {
        names: "make gmake",
        family: Family::Make,
        role: Some(Role::Jobs),
        client: true,
        jobs: Some(JobTool {
            options: "-j --jobs",
            flags: "bBdehiklLmnpqrRsStvw",
            valued: MAKE_VALUED,
            keep_going: "k",
            asks: "npqt",
            starts: Some(Starts::Needs),
            by_default: DefaultJobs::One,
            ..JOBS
        }),
        change: Some(Change::Numbered("give it -j")),
        step: Some(make),
        steps: "make -s -j2 => target | make
                 make -j 4 -C src all BUILD=/x => target | make -C src all
                 gmake --directory=lib check => target | make -C lib check
                 make -f CMakeFiles/Makefile2 all => target | make all
                 make -C /tmp/tmp.Ab12 /w/x/y.o => target | make y.o
                 make --directory=/home/u/tree/lib check => target | make -C lib check
                 make -s -f CMakeFiles/lua.dir/build.make CMakeFiles/lua.dir/build => target | make CMakeFiles/lua.dir/build
                 make --version => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "bmake pmake",
        family: Family::Make,
        role: Some(Role::Jobs),
        jobs: Some(JobTool {
            options: "-j",
            flags: "BeikNnqrSstWwX",
            valued: MAKE_VALUED,
            keep_going: "k",
            asks: "Nnqt",
            starts: Some(Starts::Needs),
            by_default: DefaultJobs::One,
            ..JOBS
        }),
        change: Some(Change::Numbered("give it -j")),
        step: Some(make),
        steps: "bmake -j2 all => target | bmake all",
        ..PROGRAM
    },
    KnownProgram {
        names: "ninja ninja-build",
        client: true,
        steps: "ninja => target | ninja
                 ninja -C out -j 4 all => target | ninja -C out all
                 /usr/bin/ninja-build all => target | ninja all
                 ninja --version => -
                 /usr/bin/ninja -t restat build.ninja => -",
        ..NINJA
    },
    KnownProgram {
        names: "samu",
        client: true,
        ..NINJA
    },
    KnownProgram {
        names: "n2",
        steps: "n2 all => target | n2 all",
        ..NINJA
    },
    KnownProgram {
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
            by_default: DefaultJobs::Seen,
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
        ..PROGRAM
    },
    KnownProgram {
        names: "cargo-nextest",
        jobs: Some(JobTool {
            options: "-j --test-threads",
            by_default: DefaultJobs::Seen,
            ..JOBS
        }),
        children: Children::Fail,
        step: Some(cargo_tool),
        steps: "/root/.cargo/bin/cargo-nextest nextest run => target | cargo nextest run",
        ..PROGRAM
    },
    KnownProgram {
        names: "go",
        verbs: &[
            (Role::Tests, "test"),
            (Role::Packages, "mod"),
            (Role::Compiler, "compile"),
        ],
        jobs: Some(JobTool {
            options: "-p",
            starts: Some(Starts::Threads),
            by_default: DefaultJobs::Seen,
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
        ..PROGRAM
    },
    KnownProgram {
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
                 cmake --build /w/tree/build => target | cmake --build build
                 cmake -E echo x => -
                 cmake -P x.cmake => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "configure",
        family: Family::Configure,
        role: Some(Role::Configure),
        probes: true,
        step: Some(configure),
        steps: "/bin/sh ./configure --prefix=/x => target | configure
                 ./configure => target | configure",
        ..PROGRAM
    },
    KnownProgram {
        names: "config.status autoreconf autoconf automake",
        role: Some(Role::Configure),
        ..PROGRAM
    },
    KnownProgram {
        names: "meson",
        wants_failures: true,
        verbs: &[(Role::Tests, "test"), (Role::Configure, "setup")],
        probes: true,
        jobs: Some(JobTool {
            options: "--num-processes",
            by_default: DefaultJobs::Seen,
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
        ..PROGRAM
    },
    KnownProgram {
        names: "bazel bazelisk buck2 just task tox",
        steps: "bazel test //... => target | bazel test
                 ./gradlew --no-daemon build => target | gradlew build
                 mvn -q -B package => target | mvn package
                 tox => target | tox",
        ..BUILDER
    },
    KnownProgram {
        names: "nox rake sbt scons waf",
        ..SCRIPTED_BUILDER
    },
    KnownProgram {
        names: "gradle gradlew mvn mvnw",
        no_cache: "--no-build-cache --rerun-tasks",
        tells_tests: true,
        ..SCRIPTED_BUILDER
    },
    KnownProgram {
        names: "turbo",
        label: Label::Verbs("--cwd --filter -F --concurrency --cache-dir"),
        steps: "node /w/node_modules/.bin/turbo run build test --filter=web => target | turbo run build test
                 /w/node_modules/@turbo/linux-64/bin/turbo --skip-infer run build => target | turbo run build
                 turbo --version => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "nx",
        verbs: &[(Role::Tests, "test")],
        label: Label::Verbs("--parallel --projects -p --configuration -c"),
        steps: "node /w/node_modules/.bin/nx run-many -t build test => target | nx run-many build test
                 node /w/node_modules/nx/bin/nx.js run-many --target=build --parallel=3 => target | nx run-many
                 nx run app:build => target | nx run app:build
                 nx test app => test | nx test app
                 nx --version => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "nix",
        label: Label::Verbs("--extra-experimental-features --option -f --file -I -j --max-jobs"),
        labels: "nix build .#hello => nix build | .#hello",
        steps: "nix build .#hello => target | nix build .#hello
                 nix --extra-experimental-features flakes build => target | nix build
                 nix flake check => target | nix flake check
                 nix eval .#x => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "nix-build",
        step: Some(goals),
        children: Children::Fail,
        steps: "nix-build -A hello => target | nix-build hello
                 nix-build /w/release.nix -A tests.x --no-out-link => target | nix-build tests.x
                 nix-build => target | nix-build",
        ..PROGRAM
    },
    KnownProgram {
        names: "bitbake",
        step: Some(bitbake),
        children: Children::Fail,
        steps: "bitbake core-image-minimal => target | bitbake core-image-minimal
                 /usr/bin/python3 /w/poky/bitbake/bin/bitbake -k busybox => target | bitbake busybox
                 bitbake -c compile busybox => target | bitbake -c compile busybox",
        ..PROGRAM
    },
    KnownProgram {
        names: "earthly",
        step: Some(earthly),
        children: Children::Fail,
        steps: "earthly +build => target | earthly +build
                 earthly --ci -P ./app+test => target | earthly ./app+test",
        ..PROGRAM
    },
    KnownProgram {
        names: "dotnet",
        verbs: &[(Role::Tests, "test vstest"), (Role::Packages, "restore")],
        label: Label::Verbs(
            "-c --configuration -f --framework -o --output -r --runtime -v --verbosity --logger",
        ),
        steps: "dotnet build src/App.sln -c Release => target | dotnet build src/App.sln
                 dotnet test => test | dotnet test
                 dotnet restore => job | dotnet restore
                 dotnet --info => -
                 dotnet /usr/share/dotnet/sdk/8.0.100/MSBuild.dll /w/App.sln => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "swift",
        verbs: &[(Role::Tests, "test")],
        label: Label::Verbs(
            "-c --configuration --package-path --build-path --scratch-path -j --jobs",
        ),
        steps: "swift build -c release => target | swift build
                 swift test => test | swift test
                 swift package resolve => target | swift package resolve
                 swift --version => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "swift-build",
        step: Some(swift),
        children: Children::Fail,
        steps: "/usr/bin/swift-build -c release => target | swift build",
        ..PROGRAM
    },
    KnownProgram {
        names: "swift-test",
        step: Some(swift),
        role: Some(Role::Tests),
        steps: "/usr/bin/swift-test --parallel => test | swift test",
        ..PROGRAM
    },
    KnownProgram {
        names: "deno",
        verbs: &[(Role::Tests, "test"), (Role::Packages, "install cache add")],
        label: Label::Verbs("-c --config --cwd -o --output"),
        step: Some(deno),
        labels: "deno test a_test.ts => deno test | a_test.ts",
        steps: "deno test --allow-read => test | deno test
                 deno task build => target | deno task build
                 deno compile -o app main.ts => target | deno compile main.ts
                 deno install => job | deno install
                 deno run -A main.ts => -
                 deno eval x => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "manage.py",
        verbs: &[(Role::Tests, "test")],
        label: Label::Verbs("-v --verbosity --settings --pythonpath -k --tag"),
        labels: "python3 manage.py test shop => manage.py test | shop",
        steps: "python manage.py test shop.tests -v 2 => test | manage.py test shop.tests
                 /usr/bin/python3 /w/manage.py migrate => target | manage.py migrate
                 python3 manage.py shell => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "mix",
        verbs: &[
            (Role::Tests, "test"),
            (Role::Packages, "deps.get local.hex local.rebar"),
        ],
        label: Label::Verbs(""),
        steps: "/bin/sh /usr/bin/elixir /usr/bin/mix test test/a_test.exs => test | mix test test/a_test.exs
                 elixir /usr/bin/mix deps.get => job | mix deps.get
                 mix compile --force => target | mix compile
                 mix help => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "cabal",
        verbs: &[
            (Role::Tests, "test v2-test"),
            (Role::Packages, "update fetch"),
        ],
        label: Label::Verbs("-w --with-compiler -j --project-file --builddir"),
        steps: "cabal build all => target | cabal build all
                 cabal v2-test => test | cabal v2-test
                 cabal update => job | cabal update
                 cabal exec x => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "stack",
        verbs: &[(Role::Tests, "test"), (Role::Packages, "setup update")],
        label: Label::Verbs("--resolver --stack-yaml -j --jobs --work-dir"),
        steps: "stack build --fast => target | stack build
                 stack --resolver lts test => test | stack test
                 stack setup => job | stack setup",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "ant",
        step: Some(goals),
        children: Children::FailOrOwn,
        steps: "/bin/sh /usr/bin/ant -f build.xml compile jar => target | ant compile jar
                 ant => target | ant
                 ant -version => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "siso",
        step: Some(siso),
        children: Children::Fail,
        steps: "siso ninja -C out/Default chrome => target | siso ninja -C out/Default chrome
                 siso version => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "dune jbuilder",
        verbs: &[(Role::Tests, "test runtest")],
        label: Label::Verbs("--root -j --profile -p --build-dir"),
        steps: "dune build @all => target | dune build @all
                 dune runtest => test | dune runtest
                 dune exec ./main.exe => -",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "please plz",
        verbs: &[(Role::Tests, "test cover")],
        label: Label::Verbs("-c --config --profile -n --num_threads"),
        steps: "plz build //src/core:all => target | please build //src/core:all
                 please test //src/... => test | please test //src/...",
        ..CALLED_BUILDER
    },
    KnownProgram {
        names: "xargs",
        role: Some(Role::Jobs),
        jobs: Some(JobTool {
            options: "-P --max-procs",
            flags: "0oprtx",
            starts: Some(Starts::Listed),
            by_default: DefaultJobs::One,
            ..JOBS
        }),
        change: Some(Change::Words("give it -P")),
        children: Children::FailLate,
        ..PROGRAM
    },
    KnownProgram {
        names: "parallel",
        role: Some(Role::Jobs),
        jobs: Some(JobTool {
            options: "-j --jobs",
            valued: "-a -D -d -E -I -j -L -l -M -N -n -P -S -s -U --arg-file --arg-sep --basefile --block --colsep --delay --delimiter --halt \
                     --halt-on-error --header --jobs --joblog --load --max-args --max-chars --max-lines --max-procs --max-replace-args --memfree \
                     --nice --results --retries --return --rpl --sshlogin --sshloginfile --tagstring --tempdir --termseq --timeout --tmpdir \
                     --wd --workdir",
            starts: Some(Starts::Listed),
            by_default: DefaultJobs::Cpus,
            ..JOBS
        }),
        change: Some(Change::Words("let it run more jobs (-j)")),
        children: Children::FailIfNamed,
        ..PROGRAM
    },
];

fn make(line: &Line) -> Option<FoundStep> {
    if line.has(&["--version", "-v", "--help", "-h"]) {
        return None;
    }
    let goals = line.operands().filter(|word| !word.contains(&b'='));
    let directory = line.value("-C").or_else(|| line.value("--directory"));
    Some(FoundStep {
        nests: true,
        ..FoundStep::new(
            StepKind::Target,
            in_directory(line.tool.name(), directory, goals),
        )
    })
}

fn ninja(line: &Line) -> Option<FoundStep> {
    if line.has(&["--version", "-t", "-h", "--help"]) {
        return None;
    }
    let name = in_directory(line.tool.name(), line.value("-C"), line.operands());
    found(StepKind::Target, name)
}

fn cmake(line: &Line) -> Option<FoundStep> {
    if line.has(&["-E", "-P", "--version", "--help", "-L", "-N"]) {
        return None;
    }
    for verb in ["--build", "--install"] {
        if let Some(directory) = line.after(verb) {
            let directory = escape::raw(relative(directory));
            return found(
                StepKind::Target,
                StepName::of_parts(&format!("cmake {verb}"), &directory),
            );
        }
    }
    found(StepKind::Target, "cmake")
}

fn cargo(line: &Line) -> Option<FoundStep> {
    const KNOWN: &str =
        "build b check c test t run r doc d bench clippy install fetch package publish";
    let mut words = line.words("");
    let verb = words.next()?;
    if verb == b"nextest" {
        let second = escape::raw(words.next()?);
        return found(
            StepKind::Target,
            StepName::of_parts("cargo nextest", &second),
        );
    }
    let is = has(KNOWN, verb);
    is.then(|| {
        found(
            StepKind::Target,
            StepName::of_parts("cargo", &escape::raw(verb)),
        )
    })?
}

/// The build step of `cargo-nextest nextest run`, which is how cargo executes `cargo nextest run`.
fn cargo_tool(line: &Line) -> Option<FoundStep> {
    let words: Vec<String> = line.words("").take(2).map(escape::raw).collect();
    let last = words.last().map_or("", String::as_str);
    let name = StepName::with_part(format!("cargo {}", words.join(" ")), last);
    found(StepKind::Target, name)
}

fn go(line: &Line) -> Option<FoundStep> {
    let mut words = line.words("-o -run -tags -count -p -timeout");
    let verb = words.next()?;
    let is = has("build test install vet generate run mod", verb);
    let packages = words.filter(|word| *word != b".");
    let name = in_directory("go", None, std::iter::once(verb).chain(packages));
    is.then(|| found(StepKind::Target, name))?
}

fn configure(_: &Line) -> Option<FoundStep> {
    found(StepKind::Target, "configure")
}

fn meson(line: &Line) -> Option<FoundStep> {
    // A call of meson without a verb sets up a build directory.
    let (verb, _) = command(line.args, MESON, "setup")?;
    let name = StepName::of_parts("meson", &verb);
    match verb.as_str() {
        "test" => test_runner(name),
        "setup" | "compile" | "install" => found(StepKind::Target, name),
        _ => None,
    }
}

/// The build step of a tool such as ant or nix-build, whose arguments are the goals that the tool makes; `None` if the
/// call only prints a version or help.
fn goals(line: &Line) -> Option<FoundStep> {
    if line.has(&["--version", "-version", "--help", "-help", "-projecthelp"]) {
        return None;
    }
    // An attribute (`-A`) names more exactly what is built than the file that defines the attribute does. So the file
    // is left out of the step's name.
    let attribute = line.value("-A").or_else(|| line.value("--attr"));
    let goals = line.words("-f -file -buildfile -lib -l -A --attr -I -o --option -j --max-jobs");
    let goals = goals.filter(|word| attribute.is_none() && !is_of_machine(word));
    let name = in_directory(line.tool.name(), None, attribute.into_iter().chain(goals));
    found(StepKind::Target, name)
}

fn bitbake(line: &Line) -> Option<FoundStep> {
    let mut goals = line
        .words("-c --cmd -b --buildfile -r --read -R --postread -l")
        .peekable();
    goals.peek()?;
    let task = line
        .value("-c")
        .into_iter()
        .flat_map(|task| [&b"-c"[..], task]);
    let name = in_directory("bitbake", None, task.chain(goals));
    found(StepKind::Target, name)
}

/// The build step of the build tool earthly, named after its targets, which contain a plus sign:
/// `+build`, `./app+test`.
fn earthly(line: &Line) -> Option<FoundStep> {
    let mut targets = line
        .args
        .iter()
        .copied()
        .filter(|arg| arg.contains(&b'+'))
        .peekable();
    targets.peek()?;
    found(StepKind::Target, in_directory("earthly", None, targets))
}

/// The build step of the programs that `swift build` and `swift test` execute.
fn swift(line: &Line) -> Option<FoundStep> {
    if line.tool.name() == "swift-test" {
        return found(StepKind::Test, StepName::of_parts("swift", "test"));
    }
    found(StepKind::Target, StepName::of_parts("swift", "build"))
}

/// The build step of the JavaScript runtime deno; `None` for `deno run`, which is treated like any
/// other interpreter.
fn deno(line: &Line) -> Option<FoundStep> {
    if line.words("").next() == Some(b"run") {
        return None;
    }
    call(line)
}

fn siso(line: &Line) -> Option<FoundStep> {
    let mut words = line.words("-C -f -j -k -project -reapi_instance");
    words.next().filter(|verb| *verb == b"ninja")?;
    found(
        StepKind::Target,
        in_directory("siso ninja", line.value("-C"), words),
    )
}

fn verb(line: &Line) -> Option<FoundStep> {
    let verb = line.words("-f -p -e -c -C").next();
    found(
        StepKind::Target,
        in_directory(line.name, None, verb.into_iter()),
    )
}
