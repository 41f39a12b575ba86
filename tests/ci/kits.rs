//! The kits of Buildkite, CircleCI, Azure Pipelines and Jenkins, each with its CI's variables, and the
//! hooks that record every job of a machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

use crate::common::{lacks, trial, why_not, ABSENT, TR};
use crate::runner::{root, said};

pub fn trials() -> Vec<Trial> {
    let bash = || lacks("bash");
    vec![
        trial("kits_record_a_command_and_keep_its_status", bash(), kits),
        trial("circleci_needs_no_bash", None, circleci),
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

/// The indented lines after the one that ends in `begin`, without their indent.
fn block(file: &str, begin: &str) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let mut lines = text
        .lines()
        .skip_while(|line| !line.ends_with(begin))
        .skip(1)
        .peekable();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let least = indent(lines.peek().unwrap());
    let inside = lines.take_while(|line| indent(line) >= least && !line.is_empty());
    inside.map(|line| format!("{}\n", &line[least..])).collect()
}

fn shell(dir: &Path, script: &str, variables: &[(&str, &str)]) -> Output {
    let mut bash = Command::new("bash");
    bash.args(["-e", "-c", script])
        .current_dir(dir)
        .env_remove("TR_JOB");
    bash.envs(variables.iter().copied()).output().unwrap()
}

const COMMAND: &str = "printf '%s\\n' \"a 'b'\" > ran; sh -c 'exit 7'";

fn kits() -> Result<(), Failed> {
    for (file, begin) in [
        ("ci/circleci/orb.yml", "command: |"),
        ("ci/azure/tr.yml", "- bash: |"),
        ("ci/jenkins/vars/trRecord.groovy", "sh '''"),
    ] {
        let dir = tempfile::tempdir()?;
        let variables = [("TR_COMMAND", COMMAND), ("TR_PROGRAM", TR)];
        let out = shell(dir.path(), &block(file, begin), &variables);
        assert_eq!(out.status.code(), Some(7), "{file}: {}", said(&out));
        assert_eq!(fs::read_to_string(dir.path().join("ran"))?, "a 'b'\n");
        let page = fs::read_to_string(dir.path().join("tr-recording/report.html"))?;
        assert!(page.contains("<html"), "{file}");
        if file.contains("azure") {
            let line = format!(
                "##vso[task.uploadsummary]{}/tr-recording/summary.md",
                dir.path().display()
            );
            assert!(said(&out).contains(&line), "{}", said(&out));
        }
        // Where tr is missing, an older recording does not pass for the step's.
        let variables = [("TR_COMMAND", COMMAND), ("TR_PROGRAM", ABSENT)];
        let out = shell(dir.path(), &block(file, begin), &variables);
        assert_eq!(out.status.code(), Some(7), "{file}: {}", said(&out));
        let left = fs::read_dir(dir.path().join("tr-recording"))?;
        assert_eq!(left.count(), 0, "{file}");
    }
    Ok(())
}

/// In images whose only shell is BusyBox's, or dash, which has no pipefail.
fn circleci() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let shells = dir.path().join("bin");
    fs::create_dir(&shells)?;
    let path = std::env::var("PATH")?;
    let found = |name: &str| {
        let mut all = std::env::split_paths(&path).map(|it| it.join(name));
        all.find(|it| it.exists())
    };
    let link = |program: &Path, name: &str| {
        let _ = fs::remove_file(shells.join(name));
        std::os::unix::fs::symlink(program, shells.join(name))
    };
    for tool in ["rm", "mkdir", "printf", "cat"] {
        link(&found(tool).ok_or(tool)?, tool)?;
    }
    for (shell, status) in [("busybox", 3), ("dash", 7)] {
        let Some(program) = found(shell) else {
            continue;
        };
        link(&program, "sh")?;
        for tr in [TR, ABSENT] {
            let mut step = Command::new(shells.join("sh"));
            step.args(["-e", "-c", &block("ci/circleci/orb.yml", "command: |")])
                .current_dir(dir.path())
                .env("PATH", &shells);
            step.env("TR_COMMAND", "(exit 3) | cat; exit 7")
                .env("TR_PROGRAM", tr);
            let out = step.output()?;
            assert_eq!(out.status.code(), Some(status), "{shell}: {}", said(&out));
        }
    }
    Ok(())
}

fn buildkite() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let agent = dir.path().join("buildkite-agent");
    fs::write(
        &agent,
        "#!/bin/sh\necho \"$@\" >>\"$AGENT\"\n[ \"$1\" != annotate ] || cat >>\"$AGENT\"\n",
    )?;
    fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH")?);
    let log = dir.path().join("log").display().to_string();
    let hook = root()
        .join("ci/buildkite/hooks/command")
        .display()
        .to_string();
    let run = |tr: &str| {
        let mut hook = Command::new(&hook);
        hook.current_dir(dir.path())
            .env("PATH", &path)
            .env("AGENT", &log);
        hook.env("BUILDKITE_COMMAND", COMMAND)
            .env("BUILDKITE_JOB_ID", "t")
            .env("BUILDKITE_PLUGIN_TR_PATH", tr);
        hook.env("BUILDKITE_PLUGIN_TR_OPTIONS_0", "--redact=a");
        hook.output().unwrap()
    };
    let out = run(ABSENT);
    assert_eq!(out.status.code(), Some(7), "{}", said(&out));
    assert!(!Path::new(&log).exists());
    let out = run(TR);
    assert_eq!(out.status.code(), Some(7), "{}", said(&out));
    let log = fs::read_to_string(log)?;
    assert!(
        log.contains("annotate --context tr-t") && log.contains("exit 7"),
        "{log}"
    );
    assert!(log.contains("artifact upload tr-recording/*"), "{log}");
    assert!(dir.path().join("tr-recording/report.html").exists());
    Ok(())
}

/// The whole recordings of a directory, once there are as many.
fn recordings(dir: &Path, many: usize) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let files = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|it| it.path());
        let traces = files.filter(|it| it.extension().is_some_and(|it| it == "bin"));
        let intact = |it: &std::path::PathBuf| {
            Command::new(TR)
                .arg("verify")
                .arg(it)
                .output()
                .unwrap()
                .status
                .success()
        };
        let traces: Vec<String> = traces
            .filter(intact)
            .map(|it| it.display().to_string())
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
        // A bash below is part of the same job.
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
        assert!(traces.len() <= 2, "{traces:?}");
        // Names have seconds.
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
        // The two sides of a pipe are traced in any order.
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
    // A lock of the job ends with the job.
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
    // The runner starts the hook, and then the steps.
    let worker = dir.path().join("Runner.Worker");
    fs::write(
        &worker,
        format!(
            "#!/bin/bash\nbash -e {} || exit 99\nbash -c 'sleep 0.41'\nexit 4\n",
            hook()
        ),
    )?;
    fs::set_permissions(&worker, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
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
    // A link, which another user may have made, and a directory that cannot be made.
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
