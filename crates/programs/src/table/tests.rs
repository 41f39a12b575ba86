//! The rows of the table of known programs for test runners and for the programs with which they
//! run parts of their tests.

use crate::job_tools::{DefaultJobs, JobTool, Starts, JOBS};
use crate::program_name::WORKER;
use crate::steps::{
    call, found, in_directory, test_in, test_runner, worker, FoundStep, Integration, Line,
    StepKind, StepName,
};
use crate::tools::{version, Change, Family, KnownProgram, Label, Role, Worker, PROGRAM};
use tr_text::escape;

/// The common part of the table rows for test runners whose build step is named like the program.
const RUNNER: KnownProgram = KnownProgram {
    step: Some(runner),
    ..PROGRAM
};

pub(super) const ROWS: &[KnownProgram] = &[
    KnownProgram {
        names: "ctest",
        role: Some(Role::Tests),
        wants_failures: true,
        jobs: Some(JobTool {
            options: "-j --parallel",
            starts: Some(Starts::Listed),
            by_default: DefaultJobs::One,
            ..JOBS
        }),
        change: Some(Change::Numbered("give it -j")),
        version: Some(version("cmake", "cmake")),
        step: Some(ctest),
        steps: "ctest -j4 => test | ctest
                 /usr/bin/ctest --output-on-failure => test | ctest
                 ctest -N => -
                 ctest --instrument --command-type compile -- c++ -c a.cc => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "prove",
        role: Some(Role::Tests),
        jobs: Some(JobTool {
            options: "-j --jobs",
            starts: Some(Starts::Listed),
            by_default: DefaultJobs::One,
            ..JOBS
        }),
        change: Some(Change::Numbered("give it -j")),
        step: Some(prove),
        steps: "prove -l t => test | prove",
        ..PROGRAM
    },
    KnownProgram {
        names: "bats bats-exec-suite",
        role: Some(Role::Tests),
        jobs: Some(JobTool {
            options: "-j --jobs",
            ..JOBS
        }),
        change: Some(Change::Words("give it --jobs")),
        step: Some(bats),
        steps: "bash /usr/lib/bats-core/bats test => test | bats",
        ..PROGRAM
    },
    KnownProgram {
        names: "bats-exec-file",
        role: Some(Role::Tests),
        jobs: Some(JobTool {
            options: "-j --jobs",
            ..JOBS
        }),
        change: Some(Change::Words("give it --jobs")),
        step: Some(bats_file),
        steps: "bash /usr/lib/bats-core/bats-exec-file -x 0 --dummy-flag test/a.bats /tmp/l => test | test/a.bats",
        ..PROGRAM
    },
    KnownProgram {
        names: "bats-exec-test",
        step: Some(bats_test),
        steps: "bash /usr/lib/bats-core/bats-exec-test -x test/a.bats test_it_works 1 1 1 => test | test/a.bats test_it_works",
        ..PROGRAM
    },
    KnownProgram {
        names: "pytest py.test",
        family: Family::Pytest,
        role: Some(Role::Tests),
        tells_tests: true,
        jobs: Some(JobTool {
            options: "-n --numprocesses",
            auto: "auto logical",
            ..JOBS
        }),
        change: Some(Change::Words("run them by pytest-xdist (-n auto)")),
        step: Some(pytest),
        steps: "/usr/bin/python3 /usr/bin/pytest -x => test | pytest
                 python -m pytest tests => test | pytest",
        ..PROGRAM
    },
    KnownProgram {
        names: "unittest",
        role: Some(Role::Tests),
        step: Some(unittest),
        steps: "python3 -m unittest tests.test_a => test | unittest tests.test_a
                 python3 -m unittest => test | unittest",
        ..PROGRAM
    },
    KnownProgram {
        names: "test-driver",
        step: Some(automake_test),
        steps: "sh ./build-aux/test-driver --test-name t/a.sh --log-file t/a.log --trs-file t/a.trs -- ./t/a.sh => test | t/a.sh
                 sh ./build-aux/test-driver --test-name t/##[a]\u{200b}.sh -- ./t/a.sh => test | t/##[a]\u{200b}.sh",
        ..PROGRAM
    },
    KnownProgram {
        names: "test-setup.sh",
        step: Some(bazel_test),
        steps: "/bin/bash external/bazel_tools/tools/test/test-setup.sh pkg/x_test --v => test | pkg/x_test",
        ..PROGRAM
    },
    KnownProgram {
        names: "jest",
        no_cache: "--no-cache --cache=false",
        role: Some(Role::Tests),
        tells_tests: true,
        jobs: Some(JobTool {
            options: "--maxWorkers -w",
            one: "--runInBand -i --detectOpenHandles",
            by_default: DefaultJobs::Seen,
            ..JOBS
        }),
        change: Some(Change::Words("let it use more workers")),
        steps: "node /w/node_modules/.bin/jest --ci => test | jest",
        ..RUNNER
    },
    // vitest has some long options of jest, but its `-w` has another meaning.
    KnownProgram {
        names: "vitest",
        role: Some(Role::Tests),
        tells_tests: true,
        jobs: Some(JobTool {
            options: "--maxWorkers",
            one: "--no-file-parallelism",
            by_default: DefaultJobs::Seen,
            ..JOBS
        }),
        change: Some(Change::Words("let it use more workers")),
        steps: "node /w/node_modules/vitest/vitest.mjs run => test | vitest",
        ..RUNNER
    },
    KnownProgram {
        names: "rspec",
        family: Family::Rspec,
        role: Some(Role::Tests),
        tells_tests: true,
        change: Some(Change::Words("run them by parallel_tests")),
        steps: "ruby /usr/bin/rspec => test | rspec",
        ..RUNNER
    },
    KnownProgram {
        names: "phpunit",
        tells_tests: true,
        ..RUNNER
    },
    KnownProgram {
        names: "ava cypress karma mocha",
        ..RUNNER
    },
    KnownProgram {
        names: "playwright",
        verbs: &[(Role::Tests, "test"), (Role::Packages, "install")],
        label: Label::Verbs("-c --config -g --grep --project --reporter -j --workers"),
        step: Some(call),
        labels: "node /w/node_modules/@playwright/test/cli.js test e2e => playwright test | e2e",
        steps: "node /w/node_modules/@playwright/test/cli.js test => test | playwright test
                 node /w/node_modules/.bin/playwright test --project chromium a.spec.ts => test | playwright test a.spec.ts
                 node /w/node_modules/.bin/playwright install => job | playwright install
                 playwright --version => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "workerProcessEntry",
        step: Some(worker_of_package),
        worker: Some(Worker {
            package: "playwright",
            runner: "playwright",
        }),
        labels: "node /w/node_modules/playwright/lib/worker/workerProcessEntry.js => playwright worker |",
        steps: "node /w/node_modules/playwright/lib/worker/workerProcessEntry.js => test | playwright worker
                 node /w/workerProcessEntry.js => -",
        ..PROGRAM
    },
    KnownProgram {
        names: "processChild",
        step: Some(worker_of_package),
        worker: Some(Worker {
            package: "jest-worker",
            runner: "jest",
        }),
        labels: "node /w/node_modules/jest-worker/build/workers/processChild.js => jest worker |",
        steps: "node /w/node_modules/jest-worker/build/workers/processChild.js => test | jest worker
                 node /w/processChild.js => -",
        ..PROGRAM
    },
];

fn ctest(line: &Line) -> Option<FoundStep> {
    // A build with CMake's instrumentation starts each of its commands with `ctest --instrument`, which runs no tests.
    let instruments = |arg: &&[u8]| arg.starts_with(b"--") && arg.ends_with(b"instrumentation");
    if line.has(&["-N", "--show-only", "--version", "--instrument"])
        || line.args.iter().any(instruments)
    {
        return None;
    }
    test_runner("ctest")
}

fn prove(_: &Line) -> Option<FoundStep> {
    test_runner("prove")
}

fn bats(_: &Line) -> Option<FoundStep> {
    found(StepKind::Test, "bats")
}

/// The index of the `.bats` file among the arguments of a helper program of the shell test runner
/// bats.
fn bats_place(line: &Line) -> Option<usize> {
    line.args.iter().position(|arg| arg.ends_with(b".bats"))
}

fn bats_file(line: &Line) -> Option<FoundStep> {
    let file = line.args.get(bats_place(line)?)?;
    test_in(file, escape::raw(file))
}

fn bats_test(line: &Line) -> Option<FoundStep> {
    let at = bats_place(line)?;
    let (file, test) = (line.args.get(at)?, line.args.get(at + 1)?);
    let name = StepName::of_parts(&escape::raw(file), &escape::raw(test));
    test_in(file, name)
}

fn pytest(_: &Line) -> Option<FoundStep> {
    Some(FoundStep {
        integration: Some(Integration::Pytest),
        ..FoundStep::new(StepKind::Test, "pytest")
    })
}

fn unittest(line: &Line) -> Option<FoundStep> {
    let tests = line.words("-k -s -p -t");
    found(StepKind::Test, in_directory("unittest", None, tests))
}

fn automake_test(line: &Line) -> Option<FoundStep> {
    let name = line.value("--test-name")?;
    let test = test_in(name, escape::raw(name))?;
    let all = line.all.iter().position(|arg| *arg == b"--");
    // If the test is expected to fail, a failure of its program does not mean that the test failed.
    let expected = line.value("--expect-failure") == Some(b"yes");
    Some(FoundStep {
        wraps: all.map(|at| at + 1).filter(|_| !expected),
        ..test
    })
}

fn bazel_test(line: &Line) -> Option<FoundStep> {
    found(StepKind::Test, escape::raw(line.args.first()?))
}

fn runner(line: &Line) -> Option<FoundStep> {
    let name = line.name.split('.').next()?;
    found(StepKind::Test, name)
}

fn worker_of_package(line: &Line) -> Option<FoundStep> {
    let runner = line.tool.runner_of_worker(line.path)?;
    worker(StepName::of_parts(runner, WORKER))
}
