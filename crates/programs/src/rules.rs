//! Finds the build step that a command line runs: by the user's rules, by the rule in the table row of its program, or
//! by the path of its program.

use crate::command_line;
use crate::own;
use crate::steps::{
    found, test_in, test_runner, worker, FoundStep, Integration, Line, Read, StepKind, StepName,
    Tests,
};
use crate::table;
use crate::tools::{Label, PROGRAM};
use crate::words;
use tr_text::escape;

/// The rules that name build steps by the path or the arguments of any program whose table row has no rule, in the
/// order in which they are tried. Each rule has examples, which a test verifies.
const PATHS: &[(Read, &str)] = &[
    (
        github,
        "/usr/bin/bash -e /home/runner/work/_temp/1b2c3d4e-aaaa-bbbb-cccc-0123456789ab.sh => job | run 1b2c3d4e
         /bin/bash --noprofile --norc -eo pipefail /__w/_temp/1b2c3d4e-aaaa-bbbb-cccc-0123456789ab.sh => job | run 1b2c3d4e
         /r/externals/node20/bin/node /home/runner/work/_actions/actions/checkout/v4/dist/index.js => job | actions/checkout@v4
         bash /home/u/_temp/x.sh => -",
    ),
    (
        ansible_module,
        "/bin/sh -c x => -
         /usr/bin/python3 /root/.ansible/tmp/ansible-tmp-1.2-3-4/AnsiballZ_apt.py => job | ansible apt",
    ),
    (
        jenkins,
        "sh -xe /j/workspace/a@tmp/durable-1a2b3c4d/script.sh => job | durable-1a2b3c4d",
    ),
    (
        cargo_test,
        "/w/target/debug/deps/laws-0123456789abcdef --nocapture => test | laws
         /w/target/debug/deps/laws-0123456789abcdef --exact a::b --nocapture => test | laws a::b
         /w/target/debug/deps/laws-0123456789abcdef --list --format terse => -
         /w/deps/x => -",
    ),
    (
        go_test,
        "/tmp/go-build12/b001/http.test -test.v => test | http
         /usr/lib/go/pkg/tool/linux_amd64/compile -o $WORK/b1/_pkg_.a -p net/http -std => unit | net/http
         /usr/lib/go/pkg/tool/linux_amd64/compile -p main -pack /tmp/go-build1/b001/_testmain.go => unit | test main
         /usr/lib/go/pkg/tool/linux_amd64/link -o /tmp/go-build1/b001/exe/srv -buildmode=exe => unit | link srv
         /usr/lib/go/pkg/tool/linux_amd64/vet -V=full => -",
    ),
    (
        gitlab_script,
        "bash /tmp/custom-executor1/script1/script. step_script => job | step_script
         cp /tmp/custom-executor1/x => -",
    ),
    (
        perl_test,
        "perl -w -I lib t/a.t => test | t/a.t
         python3 x.t => -",
    ),
    (
        node_test,
        "node --test => test | node --test
         node --test test/a.test.js => test | node --test
         node --test-reporter=spec test/a.test.js => test | test/a.test.js",
    ),
    (
        xdist,
        "python3 -u -c import~sys;exec(eval(sys.stdin.readline())) => test | pytest worker
         python3 -c print(1) => -",
    ),
    (
        gradle_worker,
        "java -cp w.jar worker.org.gradle.process.internal.worker.GradleWorkerMain Gradle~Test~Executor~1 => test | Gradle Test Executor 1
         java -jar x.jar => -",
    ),
    (
        java_test,
        "java -cp junit4.jar:. org.junit.runner.JUnitCore XTest => test | JUnit
         java -jar lib/junit-platform-console-standalone-1.9.3.jar -c X => test | JUnit
         /usr/bin/java -cp . org.testng.TestNG suite.xml => test | TestNG
         java -jar /w/target/surefire/surefirebooter123.jar /w/target/surefire x => test | Surefire
         java -jar x.jar => -",
    ),
    (
        named_test,
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

/// Whether the program of a command line has a rule for build steps in its table row, only prints facts, or runs the
/// compiler that its arguments name, as ccache does. A process of such a program that is no build step does not count
/// as a test, even if a test runner started the process.
pub fn knows(all: &[&[u8]]) -> bool {
    let first = command_line::without_interpreter(all).first();
    let path = first.and_then(|first| std::str::from_utf8(first).ok());
    let tool = path.and_then(|path| table::by_name(words::base(path)));
    tool.is_some_and(|tool| tool.answers || tool.step.is_some() || tool.label == Label::Wrapper)
}

/// The build step that a command line runs, by the user's rules or else by the built-in ones;
/// `None` if it is no step.
pub fn step(all: &[&[u8]]) -> Option<FoundStep> {
    own::step(all).or_else(|| of_tool(all))
}

/// The build step that a command line runs by the built-in rules: the rule in the table row of the command line's
/// program, or a rule for the path of this program.
fn of_tool(all: &[&[u8]]) -> Option<FoundStep> {
    let (first, args) = command_line::without_interpreter(all).split_first()?;
    let path = std::str::from_utf8(first).ok()?;
    let name = words::of_package(path).unwrap_or_else(|| words::base(path));
    let scripts = [".py", ".rb", ".js", ".mjs", ".cjs"];
    let stem = scripts.iter().find_map(|end| name.strip_suffix(end));
    let tool = table::by_name(name).or_else(|| table::by_name(stem?));
    if tool.is_some_and(|tool| tool.label == Label::Wrapper) {
        let inner = args.first()?;
        return (!inner.starts_with(b"-")).then(|| step(args))?;
    }
    let line = Line {
        all,
        path,
        name,
        tool: tool.unwrap_or(&PROGRAM),
        args,
    };
    if let Some(read) = tool.and_then(|tool| tool.step) {
        return read(&line);
    }
    PATHS.iter().find_map(|(read, _)| read(&line))
}

/// The build step of a script that the GitHub or Azure runner wrote for a step of a CI job, or of a
/// JavaScript action.
fn github(line: &Line) -> Option<FoundStep> {
    if let Some((_, action)) = line.path.split_once("/_actions/") {
        let mut parts = action.split('/');
        let (owner, name, version) = (parts.next()?, parts.next()?, parts.next()?);
        let name = format!("{owner}/{name}@{version}");
        return found(StepKind::Job, escape::raw(name.as_bytes()));
    }
    let (_, script) = line.path.split_once("/_temp/")?;
    let id = script.split_once('.').map_or(script, |(id, _)| id);
    let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is = id.len() == 36 && id.split('-').count() == 5 && id.split('-').all(hex);
    let name = is.then(|| id.get(..8))??;
    Some(FoundStep {
        script: true,
        stable_name: Some("run"),
        ..FoundStep::new(StepKind::Job, StepName::of_parts("run", name))
    })
}

fn ansible_module(line: &Line) -> Option<FoundStep> {
    let module = line.name.strip_prefix("AnsiballZ_")?;
    let module = module.strip_suffix(".py").unwrap_or(module);
    found(
        StepKind::Job,
        StepName::of_parts("ansible", &escape::raw(module.as_bytes())),
    )
}

/// The beginning of the names of directories in which Jenkins keeps the scripts of a job's steps. In such a name, a
/// random number follows.
const DURABLE_PREFIX: &str = "durable-";

fn jenkins(line: &Line) -> Option<FoundStep> {
    let mut parts = line.path.rsplit('/');
    let script = parts.next()?.starts_with("script.sh");
    let place = parts.next()?;
    let id = place.strip_prefix(DURABLE_PREFIX)?;
    let is_random = id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    script.then(|| FoundStep {
        stable_name: is_random.then_some(DURABLE_PREFIX),
        ..FoundStep::new(StepKind::Job, escape::raw(place.as_bytes()))
    })
}

fn cargo_test(line: &Line) -> Option<FoundStep> {
    let name = words::test_of_cargo(line.path)?;
    if line.has(&["--list"]) {
        return None;
    }
    let name = escape::raw(name.as_bytes());
    match line.words("--test-threads --skip --format --color").next() {
        Some(test) if line.has(&["--exact"]) => found(
            StepKind::Test,
            StepName::of_parts(&name, &escape::raw(test)),
        ),
        _ => Some(FoundStep {
            tests: Tests::Threads,
            ..FoundStep::new(StepKind::Test, name)
        }),
    }
}

fn go_test(line: &Line) -> Option<FoundStep> {
    if line.path.contains("/pkg/tool/") {
        return match line.name {
            "compile" if words::is_test_main(line.args) => {
                found(StepKind::Unit, StepName::whole(words::TEST_MAIN))
            }
            "compile" => found(StepKind::Unit, escape::raw(line.value("-p")?)),
            "link" => {
                let output = escape::raw(line.value("-o")?);
                let name = format!("link {}", words::base(&output));
                found(StepKind::Unit, StepName::whole(name))
            }
            _ => None,
        };
    }
    let package = words::test_of_go(line.path)?;
    found(StepKind::Test, escape::raw(package.as_bytes()))
}

/// The build step of a script that GitLab's custom executor writes and runs, named after the job
/// stage that the script executes.
fn gitlab_script(line: &Line) -> Option<FoundStep> {
    let stage = line.args.first()?;
    let is = line.path.contains("/custom-executor") && line.path.ends_with("/script.");
    is.then(|| found(StepKind::Job, escape::raw(stage)))?
}

fn perl_test(line: &Line) -> Option<FoundStep> {
    let perl = line.all.first()?.ends_with(b"perl");
    let is = perl && line.name.ends_with(".t") && line.all.len() > 1;
    is.then(|| test_in(line.path.as_bytes(), escape::raw(line.path.as_bytes())))?
}

fn node_test(line: &Line) -> Option<FoundStep> {
    let is = line.name == "node" && line.has(&["--test"]);
    Some(FoundStep {
        integration: Some(Integration::Node),
        ..test_runner(StepName::of_parts("node", "--test")).filter(|_| is)?
    })
}

fn xdist(line: &Line) -> Option<FoundStep> {
    let is = line.args.iter().any(|arg| arg.starts_with(words::XDIST));
    is.then(|| worker(StepName::of_parts("pytest", "worker")))?
}

fn gradle_worker(line: &Line) -> Option<FoundStep> {
    let is = line.path.ends_with("GradleWorkerMain");
    is.then(|| found(StepKind::Test, escape::raw(line.args.first()?)))?
}

/// The build step of a Java process that runs tests by JUnit, TestNG or Maven's Surefire, recognized by its main class
/// or the name of its archive.
fn java_test(line: &Line) -> Option<FoundStep> {
    const RUNNERS: [(&str, &str); 5] = [
        ("org.junit.runner.JUnitCore", "JUnit"),
        ("org.junit.platform.console.ConsoleLauncher", "JUnit"),
        ("junit-platform-console-standalone", "JUnit"),
        ("org.testng.TestNG", "TestNG"),
        ("surefirebooter", "Surefire"),
    ];
    let java = line.all.first()?.ends_with(b"java");
    let runner = RUNNERS.iter().find(|(name, _)| line.name.starts_with(name));
    let (_, name) = runner.filter(|_| java)?;
    found(StepKind::Test, *name)
}

/// The build step of a program that is named like a test or is in a directory of tests, and is not
/// installed with the system.
fn named_test(line: &Line) -> Option<FoundStep> {
    // The path of a script that an interpreter runs may have no directory.
    let script = line
        .all
        .first()
        .is_some_and(|first| *first != line.path.as_bytes());
    let (directories, name) = match line.path.rsplit_once('/') {
        Some(parts) => parts,
        None if script => (".", line.path),
        None => return None,
    };
    let system = ["/usr/", "/bin/", "/lib", "/opt/", "/nix/"];
    if system.iter().any(|place| line.path.starts_with(place)) {
        return None;
    }
    let directory = words::base(directories);
    let text = |text: &str| escape::raw(text.as_bytes());
    if ["t", "test", "tests"].contains(&directory) {
        let name = format!("{directory}/{name}");
        return test_in(line.path.as_bytes(), text(&name));
    }
    let starts = ["test_", "test-"]
        .iter()
        .any(|start| name.starts_with(start));
    let mut ends = [
        "_test",
        "-test",
        "_tests",
        "_unittest",
        "_test.sh",
        "-test.sh",
    ]
    .iter();
    // As in `cart.test.js` and `cart.spec.ts`.
    let inside = [".test.", ".spec."].iter().any(|part| name.contains(part));
    let is = starts || inside || ends.any(|end| name.ends_with(end));
    is.then(|| test_in(line.path.as_bytes(), text(name)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a test step has only the last directory of the test's path; the file of the step has the whole path.
    #[test]
    fn tests_have_the_files_of_their_command_lines() {
        let file = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            step(&args).and_then(|found| found.file)
        };
        for (line, want) in [
            ("sh -e sub/tests/wait.sh 1", Some("sub/tests/wait.sh")),
            ("python3 -u test_net.py", Some("test_net.py")),
            ("perl -w -I lib sub/t/b.t", Some("sub/t/b.t")),
            (
                "bash /usr/lib/bats-core/bats-exec-test -x sub/b.bats test_b 1 1 1",
                Some("sub/b.bats"),
            ),
            ("prove t/a.t", None),
            ("bash sub/build.sh", None),
        ] {
            assert_eq!(file(line).as_deref(), want, "{line}");
        }
    }

    #[test]
    fn a_brief_name_distinguishes_steps() {
        for (line, want) in [
            ("cc -c mod5.c -o build/mod5.o", Some("mod5.o")),
            ("cc a.o -o main", None),
            ("make -C lib all", Some("all")),
            ("go build ./cmd/tool", Some("tool")),
            (
                "/w/target/debug/deps/io-0123456789abcdef --exact io::reads",
                Some("io::reads"),
            ),
            ("rustc --crate-name io --crate-type bin", None),
            ("rustdoc --crate-name io --test", None),
            (
                "/w/target/debug/build/zstd-sys-0123456789abcdef/build-script-build",
                None,
            ),
        ] {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let found = step(&args).unwrap();
            assert_eq!(found.name.brief.as_deref(), want, "{line}");
        }
    }

    #[test]
    fn runners_that_run_all_tests_in_one_process_have_an_integration() {
        let integration = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            step(&args).map(|found| found.integration)
        };
        for (line, want) in [
            ("python3 -m pytest -q", Some(Integration::Pytest)),
            ("node --test a.test.js", Some(Integration::Node)),
            ("node /w/node_modules/.bin/jest", None),
            ("ctest -j4", None),
            ("bash sub/tests/pytest.sh", None),
        ] {
            assert_eq!(integration(line), Some(want), "{line}");
        }
    }

    #[test]
    fn names_with_random_numbers_have_a_stable_part() {
        let stable = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            step(&args).and_then(|found| found.stable_name)
        };
        let github = "bash -e /w/_temp/9f8e7d6c-aaaa-bbbb-cccc-0123456789ab.sh";
        assert_eq!(stable(github), Some("run"));
        let jenkins = |place: &str| stable(&format!("sh -xe /j/a@tmp/{place}/script.sh"));
        assert_eq!(jenkins("durable-9f8e7d6c"), Some("durable-"));
        assert_eq!(jenkins("durable-build"), None);
        // The user has chosen the name `9f8e7d6c` for a script of npm, so this name counts as stable as a whole.
        assert_eq!(stable("npm run 9f8e7d6c"), None);
    }

    #[test]
    fn every_rule_reads_the_command_lines_it_was_made_for() {
        let examples = table::rows().map(|tool| tool.steps);
        let examples = examples.chain(PATHS.iter().map(|(_, examples)| *examples));
        let (mut count, mut wrong) = (0, Vec::new());
        for line in examples.flat_map(str::lines) {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let (args, want) = line.split_once(" => ").expect(line);
            let args: Vec<String> = args.split(' ').map(|arg| arg.replace('~', " ")).collect();
            let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
            let got = step(&args).map_or("-".to_owned(), |found| {
                format!("{} | {}", found.kind.name(), found.name.phrase.whole())
            });
            if got != want.replace('~', " ") {
                wrong.push(format!("{line}, not {got}"));
            }
            count += 1;
        }
        assert_eq!(wrong, Vec::<String>::new());
        assert!(count > 100, "{count} command lines");
    }
}
