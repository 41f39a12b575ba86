//! The step that a command line is, by the table `RULES`.

mod build;
mod jobs;
mod tests;

use crate::command_line;
use crate::tools;
use crate::tools::Family;

use crate::command_line::has;
use tr_text::{called, escape, named};

named! {
    /// The kind of a step.
    #[derive(Hash)]
    pub enum StepKind {
        Job = "job", "step of a CI job";
        Target = "target", "target of a build";
        Unit = "unit", "unit of a compiler";
        Test = "test", "test";
        Mark = "mark", "mark";
    }
}

/// A command line that is a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub kind: StepKind,
    pub name: String,
    /// The tests that it runs, apart from those that rules find.
    pub tests: Tests,
    /// One inside another one of the same name is a step of its own. Otherwise it is the same
    /// step: `gcc -o lua` starts `ld -o lua`.
    pub nests: bool,
    /// A runner's script with a random name: the first program that it starts tells more.
    pub script: bool,
    /// The argument at which a wrapped program begins, if the command ends with 0 whatever that program does.
    pub wraps: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tests {
    #[default]
    None,
    /// The programs that it starts.
    Children,
    /// The threads that it starts, named after the tests (libtest).
    Threads,
}

/// A command line, and the program in it that a rule reads.
struct Line<'a> {
    /// The whole command line, with the interpreter's.
    all: &'a [&'a [u8]],
    path: &'a str,
    /// The name of the program. [`command_line`] names the programs of reports in more detail.
    name: &'a str,
    /// The first of the tool's names.
    tool: &'a str,
    family: Option<Family>,
    args: &'a [&'a [u8]],
}

type Read = fn(&Line) -> Option<Found>;

/// The families; the rule; the command lines that the rule was made for, each with its kind
/// and name, or `-` if it is no step. A test reads them (`~`: a space in an argument).
type Rule = (&'static [Family], Read, &'static str);

/// The rules by the program's family.
const RULES: &[Rule] = &[
    (
        &[Family::Make],
        build::make,
        "make -s -j2 => target | make
         make -j 4 -C src all BUILD=/x => target | make -C src all
         gmake --directory=lib check => target | make -C lib check
         make -f CMakeFiles/Makefile2 all => target | make all
         make -s -f CMakeFiles/lua.dir/build.make CMakeFiles/lua.dir/build => target | make CMakeFiles/lua.dir/build
         make --version => -",
    ),
    (
        &[Family::Ninja],
        build::ninja,
        "ninja => target | ninja
         ninja -C out -j 4 all => target | ninja -C out all
         /usr/bin/ninja-build all => target | ninja all
         n2 all => target | n2 all
         ninja --version => -
         /usr/bin/ninja -t restat build.ninja => -",
    ),
    (
        &[Family::Cmake],
        build::cmake,
        "cmake --build build --target install -j4 => target | cmake --build build
         cmake -S . -B build => target | cmake
         cmake -G Ninja .. => target | cmake
         cmake --install build => target | cmake --install build
         cmake -E echo x => -
         cmake -P x.cmake => -",
    ),
    (
        &[Family::CompilerDriver],
        build::compiler,
        "gcc -O2 -c -o src/lapi.o src/lapi.c => target | src/lapi.o
         x86_64-linux-gnu-gcc-12 -c x.c => target | x.o
         cc -o lua lua.o liblua.a => target | lua
         clang++-15 main.cpp => target | a.out
         gcc -o/w/x/lua lua.o => target | lua
         gcc -MM -o x.d x.c => -
         gcc -E x.c -o x.i => -
         gcc -c -o /dev/null x.c => -
         gcc -o conftest conftest.c => -
         gcc --version => -",
    ),
    (
        &[Family::Assembler, Family::Linker, Family::FastLinker],
        build::output,
        "as --64 -o lapi.o /tmp/ccAbCdEf.s => target | lapi.o
         as --64 -o /tmp/ccAbCdEf.o /tmp/ccAbCdEf.s => -
         /usr/bin/ld -o ./lua crt1.o lua.o => target | lua
         ld.mold -o lua crt1.o lua.o => target | lua
         ld --version => -",
    ),
    (
        &[Family::Archiver],
        build::archive,
        "ar rcs liblua.a lapi.o lcode.o => target | liblua.a
         x86_64-linux-gnu-ar cr ./liblua.a lapi.o => target | liblua.a
         ar t liblua.a => -",
    ),
    (
        &[Family::CompilerCache],
        build::wrapped,
        "ccache gcc -c -o x.o x.c => target | x.o
         sccache rustc --crate-name serde --edition=2021 => unit | serde
         ccache --show-stats => -",
    ),
    (
        &[Family::Rustc],
        build::rustc,
        "rustc --crate-name serde --edition=2021 src/lib.rs --crate-type lib => unit | serde
         rustc --crate-name tr src/main.rs --crate-type bin => unit | tr (bin)
         rustc --crate-name laws tests/laws.rs --test => unit | laws (test)
         clippy-driver rustc --crate-name x src/lib.rs => unit | x
         rustc --crate-name build_script_build /r/src/libc-0.2.1/build.rs => unit | libc-0.2.1 (build script)
         rustc --crate-name ___ --print=file-names - => -
         rustc -vV => -",
    ),
    (
        &[Family::Rustdoc],
        build::rustdoc,
        "rustdoc --edition=2021 --crate-name x src/lib.rs => unit | x (doc)
         rustdoc --crate-name x src/lib.rs --test => test | x (doctests)",
    ),
    (
        &[Family::BuildScript],
        build::build_script,
        "/w/target/debug/build/serde-0123456789abcdef/build-script-build => unit | serde (run build script)",
    ),
    (
        &[Family::Cargo],
        build::cargo,
        "cargo build --release => target | cargo build
         cargo +nightly -q test -p x => target | cargo test
         cargo --manifest-path x/Cargo.toml build => target | cargo build
         cargo nextest run => target | cargo nextest run
         cargo --version => -
         cargo metadata --format-version 1 => -",
    ),
    (
        &[Family::CargoNextest],
        build::cargo_tool,
        "/root/.cargo/bin/cargo-nextest nextest run => target | cargo nextest run",
    ),
    (
        &[Family::Go],
        build::go,
        "go test ./... => target | go test ./...
         go build -o x . => target | go build
         go env GOROOT => -",
    ),
    (
        &[Family::Ctest],
        tests::ctest,
        "ctest -j4 => test | ctest
         /usr/bin/ctest --output-on-failure => test | ctest
         ctest -N => -",
    ),
    (
        &[Family::Prove],
        tests::prove,
        "prove -l t => test | prove",
    ),
    (
        &[Family::Meson],
        tests::meson,
        "meson setup build => target | meson setup
         meson build => target | meson setup
         python3 /src/meson.py setup build => target | meson setup
         meson --version => -
         meson compile -C build => target | meson compile
         meson test -C build => test | meson test",
    ),
    (
        &[Family::Bats],
        tests::bats,
        "bash /usr/lib/bats-core/bats test => test | bats",
    ),
    (
        &[Family::BatsFile],
        tests::bats_file,
        "bash /usr/lib/bats-core/bats-exec-file -x 0 --dummy-flag test/a.bats /tmp/l => test | test/a.bats",
    ),
    (
        &[Family::BatsTest],
        tests::bats_test,
        "bash /usr/lib/bats-core/bats-exec-test -x test/a.bats test_it_works 1 1 1 => test | test/a.bats test_it_works",
    ),
    (
        &[Family::Pytest],
        tests::pytest,
        "/usr/bin/python3 /usr/bin/pytest -x => test | pytest
         python -m pytest tests => test | pytest",
    ),
    (
        &[Family::Unittest],
        tests::unittest,
        "python3 -m unittest tests.test_a => test | unittest tests.test_a
         python3 -m unittest => test | unittest",
    ),
    (
        &[Family::AutomakeTest],
        tests::automake_test,
        "sh ./build-aux/test-driver --test-name t/a.sh --log-file t/a.log --trs-file t/a.trs -- ./t/a.sh => test | t/a.sh",
    ),
    (
        &[Family::BazelTest],
        tests::bazel_test,
        "/bin/bash external/bazel_tools/tools/test/test-setup.sh pkg/x_test --v => test | pkg/x_test",
    ),
    (
        &[Family::Builder],
        build::verb,
        "bazel test //... => target | bazel test
         ./gradlew --no-daemon build => target | gradlew build
         mvn -q -B package => target | mvn package
         tox => target | tox",
    ),
    (
        &[Family::Npm],
        jobs::npm,
        "npm ci => job | npm ci
         node /usr/bin/npm run build => job | npm run build
         node /usr/lib/node_modules/npm/bin/npm-cli.js test => job | npm test
         npm config get x => -",
    ),
    (
        &[Family::Pip, Family::SystemPackages],
        jobs::install,
        "/usr/bin/python3 /usr/bin/pip install -r x => job | pip install
         python3 -m pip install x => job | pip install
         apt-get -y install gcc => job | apt-get install
         apk add gcc => job | apk add
         uv sync => job | uv sync
         pip --version => -",
    ),
    (
        &[Family::Git],
        jobs::git,
        "git -c x=y clone --depth 1 u => job | git clone
         git submodule update --init => job | git submodule update
         git rev-parse HEAD => -",
    ),
    (
        &[Family::Container],
        jobs::docker,
        "docker build -t x . => job | docker build
         docker buildx build . => job | docker buildx build
         docker --host tcp://d build . => job | docker build
         podman pull x => job | podman pull
         docker exec x make => -
         docker ps => -",
    ),
    (
        &[
            Family::Jest,
            Family::Rspec,
            Family::TestRunner,
            Family::Vitest,
        ],
        tests::runner,
        "node /w/node_modules/.bin/jest --ci => test | jest
         node /w/node_modules/vitest/vitest.mjs run => test | vitest
         ruby /usr/bin/rspec => test | rspec",
    ),
    (
        &[Family::JestWorker],
        tests::jest_worker,
        "node /w/node_modules/jest-worker/build/workers/processChild.js => test | jest worker
         node /w/processChild.js => -",
    ),
    (
        &[Family::Configure],
        build::configure,
        "/bin/sh ./configure --prefix=/x => target | configure
         ./configure => target | configure",
    ),
    (
        &[Family::Ansible],
        jobs::playbook,
        "/usr/bin/python3 /usr/bin/ansible-playbook -i hosts site.yml => job | ansible-playbook site.yml
         ansible-playbook --version => -",
    ),
    (
        &[Family::GitlabRunner],
        jobs::gitlab,
        "gitlab-runner-helper artifacts-uploader --url u => job | artifacts-uploader
         gitlab-runner-helper cache-extractor --file x => job | cache-extractor
         gitlab-runner run => -",
    ),
    (
        &[Family::Tr],
        jobs::mark,
        "tr mark build => -
         tr mark build -- make -j2 => mark | build
         /usr/local/bin/tr mark unit~tests -- make check => mark | unit tests
         /usr/bin/tr-trace mark build -- make => mark | build
         tr mark -- x => -
         tr a-z A-Z => -",
    ),
];

/// The rules for paths, in this order; they hold for any program.
const PATHS: &[(Read, &str)] = &[
    (
        jobs::github,
        "/usr/bin/bash -e /home/runner/work/_temp/1b2c3d4e-aaaa-bbbb-cccc-0123456789ab.sh => job | run 1b2c3d4e
         /bin/bash --noprofile --norc -eo pipefail /__w/_temp/1b2c3d4e-aaaa-bbbb-cccc-0123456789ab.sh => job | run 1b2c3d4e
         /r/externals/node20/bin/node /home/runner/work/_actions/actions/checkout/v4/dist/index.js => job | actions/checkout@v4
         bash /home/u/_temp/x.sh => -",
    ),
    (
        jobs::ansible_module,
        "/bin/sh -c x => -
         /usr/bin/python3 /root/.ansible/tmp/ansible-tmp-1.2-3-4/AnsiballZ_apt.py => job | ansible apt",
    ),
    (
        jobs::jenkins,
        "sh -xe /j/workspace/a@tmp/durable-1a2b3c4d/script.sh => job | durable-1a2b3c4d",
    ),
    (
        tests::cargo_test,
        "/w/target/debug/deps/laws-0123456789abcdef --nocapture => test | laws
         /w/target/debug/deps/laws-0123456789abcdef --exact a::b --nocapture => test | laws a::b
         /w/target/debug/deps/laws-0123456789abcdef --list --format terse => -
         /w/deps/x => -",
    ),
    (
        tests::go_test,
        "/tmp/go-build12/b001/http.test -test.v => test | http
         /usr/lib/go/pkg/tool/linux_amd64/compile -o $WORK/b1/_pkg_.a -p net/http -std => unit | net/http
         /usr/lib/go/pkg/tool/linux_amd64/link -o /tmp/go-build1/b001/exe/srv -buildmode=exe => unit | link srv
         /usr/lib/go/pkg/tool/linux_amd64/vet -V=full => -",
    ),
    (
        jobs::gitlab_script,
        "bash /tmp/custom-executor1/script1/script. step_script => job | step_script
         cp /tmp/custom-executor1/x => -",
    ),
    (
        tests::perl_test,
        "perl -w -I lib t/a.t => test | t/a.t
         python3 x.t => -",
    ),
    (
        tests::node_test,
        "node --test => test | node --test
         node --test test/a.test.js => test | node --test
         node --test-reporter=spec test/a.test.js => test | test/a.test.js",
    ),
    (
        tests::xdist,
        "python3 -u -c import~sys;exec(eval(sys.stdin.readline())) => test | pytest worker
         python3 -c print(1) => -",
    ),
    (
        tests::gradle_worker,
        "java -cp w.jar worker.org.gradle.process.internal.worker.GradleWorkerMain Gradle~Test~Executor~1 => test | Gradle Test Executor 1
         java -jar x.jar => -",
    ),
    (
        tests::java_test,
        "java -cp junit4.jar:. org.junit.runner.JUnitCore XTest => test | JUnit
         java -jar lib/junit-platform-console-standalone-1.9.3.jar -c X => test | JUnit
         /usr/bin/java -cp . org.testng.TestNG suite.xml => test | TestNG
         java -jar /w/target/surefire/surefirebooter123.jar /w/target/surefire x => test | Surefire
         java -jar x.jar => -",
    ),
    (
        tests::named_test,
        "./tests/sleep.sh 1 => test | tests/sleep.sh
         sh -e t/run.sh => test | t/run.sh
         /w/src/test/x.sh => test | test/x.sh
         sh test_y.sh => test | test_y.sh
         python3 -u test_io.py => test | test_io.py
         sh test.sh => -
         test_x => -
         ./build/url_test --gtest_color=no => test | url_test
         /w/out/test-malloc => test | test-malloc
         /usr/bin/test -f x => -
         /usr/lib/x/test-x => -
         test -f x => -",
    ),
];

/// Whether a command line's program has a rule of its own, or answers questions: without a step it is
/// no test that a runner starts (`ninja --version`).
pub fn knows(all: &[&[u8]]) -> bool {
    let first = command_line::without_interpreter(all).first();
    let path = first.and_then(|first| std::str::from_utf8(first).ok());
    let family =
        path.and_then(|path| tools::by_name(command_line::base(path)).map(|tool| tool.family));
    let has_rule = |family| {
        RULES
            .iter()
            .any(|(families, ..)| families.contains(&family))
    };
    family.is_some_and(|family| family == Family::Query || has_rule(family))
}

/// The step that a command line is.
pub fn of(all: &[&[u8]]) -> Option<Found> {
    let (first, args) = command_line::without_interpreter(all).split_first()?;
    let path = std::str::from_utf8(first).ok()?;
    let name = command_line::base(path);
    let scripts = [".py", ".rb", ".js", ".mjs", ".cjs"];
    let stem = scripts.iter().find_map(|end| name.strip_suffix(end));
    let tool = tools::by_name(stem.unwrap_or(name));
    let line = Line {
        all,
        path,
        name,
        tool: match tool {
            Some(tool) => tool.name(),
            None => name,
        },
        family: tool.map(|tool| tool.family),
        args,
    };
    let family = line.family;
    let is = |(families, ..): &&Rule| family.is_some_and(|family| families.contains(&family));
    if let Some((_, read, _)) = RULES.iter().find(is) {
        return read(&line);
    }
    PATHS.iter().find_map(|(read, _)| read(&line))
}

impl<'a> Line<'a> {
    fn has(&self, options: &[&str]) -> bool {
        let mut args = self.args.iter();
        args.any(|arg| options.iter().any(|option| option.as_bytes() == *arg))
    }

    /// The argument after an option.
    fn after(&self, option: &str) -> Option<&'a [u8]> {
        let at = self.args.iter().position(|arg| *arg == option.as_bytes())?;
        self.args.get(at + 1).copied()
    }

    /// The value of an option: `-o FILE`, `-oFILE`, `--option FILE`, `--option=FILE`.
    fn value(&self, option: &str) -> Option<&'a [u8]> {
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

    /// The arguments that are no options; `valued` ones, separated by spaces, and those of the family have
    /// their value in the next one.
    fn words(&self, valued: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let of_family = self.family.map_or("", command_line::valued);
        let is_valued = move |arg: &[u8]| has(valued, arg) || has(of_family, arg);
        let mut skip = false;
        let args = self.args.iter().copied();
        args.filter(move |arg| {
            let value = std::mem::replace(&mut skip, is_valued(arg));
            !value && !arg.starts_with(b"-") && !arg.starts_with(b"+")
        })
    }
}

impl Found {
    /// A step without more to say of it.
    pub fn new(kind: StepKind, name: impl Into<String>) -> Found {
        Found {
            kind,
            name: name.into(),
            tests: Tests::None,
            nests: false,
            script: false,
            wraps: None,
        }
    }
}

fn found(kind: StepKind, name: impl Into<String>) -> Option<Found> {
    Some(Found::new(kind, name))
}

fn test_runner(name: impl Into<String>) -> Option<Found> {
    Some(Found {
        tests: Tests::Children,
        ..Found::new(StepKind::Test, name)
    })
}

/// A file that a command makes; `None` for one that no build asks for.
fn file(path: &[u8]) -> Option<Found> {
    let name = escape::text(path);
    let base = command_line::base(&name);
    let scratch = command_line::is_temporary(base) || base.starts_with("conftest");
    if scratch || name == "-" || name.starts_with("/dev/") || name.starts_with("/proc/") {
        return None;
    }
    // An absolute path tells less than its end.
    let name = if name.starts_with('/') {
        command_line::unhashed(base)
    } else {
        name.trim_start_matches("./")
    };
    found(StepKind::Target, name)
}

fn in_directory<'a>(
    program: &str,
    directory: Option<&[u8]>,
    words: impl Iterator<Item = &'a [u8]>,
) -> String {
    let mut name = program.to_owned();
    if let Some(directory) = directory {
        name.push_str(" -C ");
        name.push_str(&escape::text(directory));
    }
    for word in words {
        name.push(' ');
        name.push_str(&escape::text(word));
    }
    name
}

/// A command line of `tr mark`.
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
        if name != Some(b"tr") && name != Some(called::SECOND.as_bytes()) {
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
mod examples {
    use super::*;

    #[test]
    fn every_rule_reads_the_command_lines_it_was_made_for() {
        let examples = RULES.iter().map(|(.., examples)| *examples);
        let examples = examples.chain(PATHS.iter().map(|(_, examples)| *examples));
        let mut count = 0;
        for line in examples.flat_map(str::lines) {
            let (args, want) = line.trim().split_once(" => ").expect(line);
            let args: Vec<String> = args.split(' ').map(|arg| arg.replace('~', " ")).collect();
            let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
            let got = of(&args).map_or("-".to_owned(), |found| {
                format!("{} | {}", found.kind.name(), found.name)
            });
            assert_eq!(got, want.replace('~', " "), "{line}");
            count += 1;
        }
        assert!(count > 100, "{count} command lines");
    }

    #[test]
    fn marks_are_told_from_other_uses_of_tr() {
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
