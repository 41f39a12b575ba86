//! Tests the kit of Buildkite, and the hook that records every job of a machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

use crate::common::{lacks, trial, why_not, write_program, ABSENT, TR};
use crate::runner::{root, said};

pub fn trials() -> Vec<Trial> {
    let bash = || lacks("bash");
    vec![
        trial("buildkite_has_files_and_summary", bash(), buildkite),
        trial(
            "bash_env_records_every_job",
            bash().or_else(why_not),
            bash_env,
        ),
        trial(
            "a_runners_hook_records_the_job",
            bash().or_else(why_not),
            runner_hook,
        ),
        trial(
            "bash_env_changes_nothing_that_a_script_sees",
            bash().or_else(|| lacks("flock")).or_else(why_not),
            hook_is_unseen,
        ),
        trial("a_hook_without_tr_changes_nothing", bash(), hook_without_tr),
    ]
}

fn shell(dir: &Path, script: &str, variables: &[(&str, &str)]) -> Output {
    let mut bash = Command::new("bash");
    bash.args(["-e", "-c", script])
        .current_dir(dir)
        .env_remove("TR_JOB");
    bash.envs(variables.iter().copied()).output().unwrap()
}

const COMMAND: &str = "printf '%s\\n' \"a 'b'\" > ran; sh -c 'exit 7'";

fn buildkite() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let place = |name: &str| dir.path().join(name);
    let agent = "#!/bin/sh\necho \"$@\" >>\"$AGENT\"\n[ \"$1\" != annotate ] || cat >>\"$AGENT\"\n";
    write_program(place("buildkite-agent"), agent)?;
    std::os::unix::fs::symlink(TR, place("tr-trace"))?;
    // The command is a file of the repository without the right to be executed, which Buildkite's agent makes
    // executable.
    fs::write(place("test.sh"), "#!/bin/sh\nexit 5\n")?;
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH")?);
    let hook = root().join("ci/buildkite/hooks/command");
    let run = |tr: &str, command: &str, shell: &str| {
        let mut hook = Command::new(&hook);
        hook.current_dir(dir.path()).env("PATH", &path);
        hook.env("AGENT", place("log"))
            .env("BUILDKITE_SHELL", shell);
        hook.env("BUILDKITE_COMMAND", command)
            .env("BUILDKITE_JOB_ID", "t");
        hook.env("BUILDKITE_PLUGIN_TR_PATH", tr);
        hook.env("BUILDKITE_PLUGIN_TR_OPTIONS_0", "--redact=a");
        let out = hook.output().unwrap();
        (out.status.code(), said(&out))
    };
    let (status, text) = run("/proc/none", COMMAND, "/bin/bash -e -c");
    assert_eq!(status, Some(7), "{text}");
    assert!(!place("log").exists());
    // A name without a slash is searched on PATH.
    let (status, text) = run("tr-trace", COMMAND, "/bin/bash -e -c");
    assert_eq!(status, Some(7), "{text}");
    let log = fs::read_to_string(place("log"))?;
    assert!(
        log.contains("annotate --context tr-t") && log.contains("exit 7"),
        "{log}"
    );
    assert!(log.contains("artifact upload tr-recording/*"), "{log}");
    assert!(place("tr-recording/report.html").exists());
    for (command, shell, status) in [
        ("test.sh", "/bin/bash -e -c", 5),
        ("false | true", "/bin/bash -e -o pipefail -c", 1),
        ("false | true\nexit 4", "/bin/sh -c", 4),
    ] {
        let (found, text) = run("", command, shell);
        assert_eq!(found, Some(status), "{command}: {text}");
    }
    Ok(())
}

/// The complete recordings in a directory, once there are as many as expected.
fn recordings(dir: &Path, many: usize) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let files = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let traces =
            files.filter(|file| file.extension().is_some_and(|extension| extension == "bin"));
        let intact = |path: &std::path::PathBuf| {
            Command::new(TR)
                .arg("verify")
                .arg(path)
                .output()
                .unwrap()
                .status
                .success()
        };
        let traces: Vec<String> = traces
            .filter(intact)
            .map(|trace| trace.display().to_string())
            .collect();
        if traces.len() >= many {
            return traces;
        }
        assert!(Instant::now() < deadline, "{many} recordings: {traces:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn programs(trace: &str) -> String {
    let out = Command::new(TR)
        .args(["analyze", trace, "--report", "execs", "--format", "csv"])
        .output()
        .unwrap();
    said(&out)
}

fn hook() -> String {
    root().join("ci/hook/tr-job.sh").display().to_string()
}

fn bash_env() -> Result<(), Failed> {
    let dir: TempDir = tempfile::tempdir()?;
    let place = dir.path().join("recordings").display().to_string();
    let hook = hook();
    let variables = [
        ("BASH_ENV", hook.as_str()),
        ("TR_PROGRAM", TR),
        ("TR_RECORDINGS", &place),
        ("TR_KEEP", "2"),
    ];
    for job in 1..=3 {
        // A bash that the job starts runs the hook, too, but belongs to the same job.
        let script = format!("bash -c 'sleep 0.3{job}'; bash -c 'exit {job}'");
        let out = shell(dir.path(), &script, &variables);
        assert_eq!(out.status.code(), Some(job), "{}", said(&out));
        assert_eq!(said(&out), "");
        let traces = recordings(Path::new(&place), usize::try_from(job.min(2))?);
        let newest = traces.iter().max().unwrap();
        assert!(
            programs(newest).contains(&format!("sleep 0.3{job}")),
            "{}",
            programs(newest)
        );
        // The hook itself waits by `sleep 0.01`. The job's recording must not contain this process.
        assert!(!programs(newest).contains("sleep 0.01"));
        assert!(traces.len() <= 2, "{traces:?}");
        // The names of recordings have the time in seconds, so the next job waits until its name differs.
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

fn hook_is_unseen() -> Result<(), Failed> {
    let dir: TempDir = tempfile::tempdir()?;
    let place = dir.path().join("recordings").display().to_string();
    let hook = hook();
    let variables = |hook| {
        [
            ("BASH_ENV", hook),
            ("TR_PROGRAM", TR),
            ("TR_RECORDINGS", place.as_str()),
        ]
    };
    let run = |hook, options: &[&str], script| {
        let mut bash = Command::new("bash");
        bash.args(options)
            .args(["-c", script, "script", "argument"]);
        bash.current_dir(dir.path())
            .env_remove("TR_JOB")
            .envs(variables(hook));
        bash.output().unwrap()
    };
    let script = "echo \"$_ $? $- $* $(declare -F)\"; jobs; wait; bash -c 'echo \"$_\"'; printf 'ab' | tr a-z A-Z; exit 7";
    let all: [&[&str]; 4] = [&[], &["-x"], &["-eu"], &["-f", "-m"]];
    for (many, options) in (1..).zip(all) {
        let [without, with] = ["", hook.as_str()].map(|hook| run(hook, options, script));
        assert_eq!(with.status.code(), Some(7), "{}", said(&with));
        // With -x both sides of a pipe print trace lines, in any order.
        let lines = |out: &Output| {
            let said = said(out);
            let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(lines(&with), lines(&without), "{options:?}");
        recordings(Path::new(&place), many);
        std::thread::sleep(Duration::from_secs(1));
    }
    // The recorder must not inherit the job's descriptors, or it would hold a lock of the job for longer than the job.
    let locked = "(exec 9>lock; flock 9; BASH_ENV=$HOOK bash -c :); flock -n lock echo free";
    let mut sh = Command::new("sh");
    sh.args(["-c", locked])
        .current_dir(dir.path())
        .env_remove("TR_JOB");
    let out = sh.envs(variables("")).env("HOOK", &hook).output()?;
    assert_eq!(said(&out), "free\n");
    Ok(())
}

fn runner_hook() -> Result<(), Failed> {
    let dir: TempDir = tempfile::tempdir()?;
    let place = dir.path().join("recordings").display().to_string();
    // GitHub's runner starts the hook before the steps of the job.
    let worker = dir.path().join("Runner.Worker");
    let text = format!(
        "#!/bin/bash\nbash -e {} || exit 99\nbash -c 'sleep 0.41'\nexit 4\n",
        hook()
    );
    write_program(&worker, text)?;
    let mut job = Command::new(&worker);
    job.env("TR_PROGRAM", TR)
        .env("TR_RECORDINGS", &place)
        .env("RUNNER_TRACKING_ID", "x")
        .env_remove("TR_JOB");
    let out = job.output()?;
    assert_eq!((out.status.code(), said(&out).as_str()), (Some(4), ""));
    let traces = recordings(Path::new(&place), 1);
    assert!(
        programs(&traces[0]).contains("sleep 0.41"),
        "{}",
        programs(&traces[0])
    );
    Ok(())
}

fn hook_without_tr() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let hook = hook();
    let place = dir.path().join("recordings").display().to_string();
    let script = "set -u; echo \"$*\"; [ -z \"$(declare -F)\" ]; exit 5";
    for program in [ABSENT, "/bin/false"] {
        let variables = [
            ("BASH_ENV", hook.as_str()),
            ("TR_PROGRAM", program),
            ("TR_RECORDINGS", &place),
        ];
        let out = shell(dir.path(), script, &variables);
        assert_eq!((out.status.code(), said(&out).as_str()), (Some(5), "\n"));
    }
    // The hook makes no recording if the directory for recordings cannot be created, or is a symbolic link, which
    // another user may have made.
    let target = tempfile::tempdir()?;
    let link = dir.path().join("link").display().to_string();
    std::os::unix::fs::symlink(target.path(), &link)?;
    let variables = [
        ("BASH_ENV", hook.as_str()),
        ("TR_PROGRAM", TR),
        ("TR_RECORDINGS", &link),
    ];
    let out = shell(dir.path(), script, &variables);
    assert_eq!((out.status.code(), said(&out).as_str()), (Some(5), "\n"));
    assert_eq!(fs::read_dir(target.path())?.count(), 0);
    let variables = [
        ("BASH_ENV", hook.as_str()),
        ("TR_PROGRAM", TR),
        ("TR_RECORDINGS", "/proc/none"),
    ];
    let out = shell(dir.path(), script, &variables);
    assert_eq!((out.status.code(), said(&out).as_str()), (Some(5), "\n"));
    Ok(())
}
