//! Test runners and the tests that they start.

use super::{found, in_directory, test_runner, Found, Line, Tests};
use crate::command_line;
use crate::steps::StepKind;
use tr_text::escape;

pub(super) fn ctest(line: &Line) -> Option<Found> {
    if line.has(&["-N", "--show-only", "--version"]) {
        return None;
    }
    test_runner("ctest")
}

pub(super) fn prove(_: &Line) -> Option<Found> {
    test_runner("prove")
}

pub(super) fn meson(line: &Line) -> Option<Found> {
    // Without a verb it sets a build up.
    let args = [&[&b"meson"[..]][..], line.args].concat();
    let program = command_line::program_of_args(&args);
    match program.as_str() {
        "meson test" => test_runner(program),
        "meson setup" | "meson compile" | "meson install" => found(StepKind::Target, program),
        _ => None,
    }
}

pub(super) fn bats(_: &Line) -> Option<Found> {
    found(StepKind::Test, "bats")
}

/// The file among the arguments of a part of bats.
fn bats_place(line: &Line) -> Option<usize> {
    line.args.iter().position(|arg| arg.ends_with(b".bats"))
}

pub(super) fn bats_file(line: &Line) -> Option<Found> {
    found(
        StepKind::Test,
        escape::text(line.args.get(bats_place(line)?)?),
    )
}

pub(super) fn bats_test(line: &Line) -> Option<Found> {
    let at = bats_place(line)?;
    let (file, test) = (line.args.get(at)?, line.args.get(at + 1)?);
    let name = format!("{} {}", escape::text(file), escape::text(test));
    found(StepKind::Test, name)
}

pub(super) fn pytest(_: &Line) -> Option<Found> {
    found(StepKind::Test, "pytest")
}

pub(super) fn unittest(line: &Line) -> Option<Found> {
    let tests = line.words("-k -s -p -t");
    found(StepKind::Test, in_directory("unittest", None, tests))
}

pub(super) fn automake_test(line: &Line) -> Option<Found> {
    let test = found(StepKind::Test, escape::text(line.value("--test-name")?))?;
    let all = line.all.iter().position(|arg| *arg == b"--");
    // An expected failure is none.
    let expected = line.value("--expect-failure") == Some(b"yes");
    Some(Found {
        wraps: all.map(|at| at + 1).filter(|_| !expected),
        ..test
    })
}

pub(super) fn bazel_test(line: &Line) -> Option<Found> {
    found(StepKind::Test, escape::text(line.args.first()?))
}

pub(super) fn runner(line: &Line) -> Option<Found> {
    let name = line.name.split('.').next()?;
    found(StepKind::Test, name)
}

pub(super) fn jest_worker(line: &Line) -> Option<Found> {
    let is = line.path.contains("/jest-worker/");
    is.then(|| found(StepKind::Test, "jest worker"))?
}

pub(super) fn cargo_test(line: &Line) -> Option<Found> {
    let name = command_line::test_of_cargo(line.path)?;
    if line.has(&["--list"]) {
        return None;
    }
    let name = escape::text(name.as_bytes());
    match line.words("--test-threads --skip --format --color").next() {
        Some(test) if line.has(&["--exact"]) => {
            found(StepKind::Test, format!("{name} {}", escape::text(test)))
        }
        _ => Some(Found {
            tests: Tests::Threads,
            ..Found::new(StepKind::Test, name)
        }),
    }
}

pub(super) fn go_test(line: &Line) -> Option<Found> {
    if line.path.contains("/pkg/tool/") {
        return match line.name {
            "compile" => found(StepKind::Unit, escape::text(line.value("-p")?)),
            "link" => {
                let output = escape::text(line.value("-o")?);
                found(
                    StepKind::Unit,
                    format!("link {}", command_line::base(&output)),
                )
            }
            _ => None,
        };
    }
    let package = command_line::test_of_go(line.path)?;
    found(StepKind::Test, escape::text(package.as_bytes()))
}

pub(super) fn perl_test(line: &Line) -> Option<Found> {
    let perl = line.all.first()?.ends_with(b"perl");
    let is = perl && line.name.ends_with(".t") && line.all.len() > 1;
    is.then(|| found(StepKind::Test, escape::text(line.path.as_bytes())))?
}

pub(super) fn node_test(line: &Line) -> Option<Found> {
    let is = line.name == "node" && line.has(&["--test"]);
    is.then(|| test_runner("node --test"))?
}

pub(super) fn xdist(line: &Line) -> Option<Found> {
    let is = line
        .args
        .iter()
        .any(|arg| arg.starts_with(command_line::XDIST));
    is.then(|| found(StepKind::Test, "pytest worker"))?
}

pub(super) fn gradle_worker(line: &Line) -> Option<Found> {
    let is = line.path.ends_with("GradleWorkerMain");
    is.then(|| found(StepKind::Test, escape::text(line.args.first()?)))?
}

/// JUnit and TestNG, by their main classes and the names of their archives.
pub(super) fn java_test(line: &Line) -> Option<Found> {
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

/// A program in a directory of tests, or with the name of a test; not the system's.
pub(super) fn named_test(line: &Line) -> Option<Found> {
    // A script that an interpreter runs needs no directory.
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
    let directory = command_line::base(directories);
    let text = |text: &str| escape::text(text.as_bytes());
    if ["t", "test", "tests"].contains(&directory) {
        let name = format!("{directory}/{name}");
        return found(StepKind::Test, text(&name));
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
    let is = starts || ends.any(|end| name.ends_with(end));
    is.then(|| found(StepKind::Test, text(name)))?
}
