//! Tests the functions that all kits have in common (`ci/tr-run.sh`), and the copies of them in the kits.

use std::fs;
use std::process::Stdio;

use libtest_mimic::{Failed, Trial};

use crate::common::{lacks, trial, Failure, TR};
use crate::runner::{root, said, Job};
use crate::table::{harness, outcome, variables, Kit, Situation};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("kits_have_the_same_functions", None, same_functions),
        trial("no_failing_step_ends_the_job", lacks("dash"), failing_steps),
        trial("a_function_of_the_shell_runs", None, function),
    ]
}

/// The functions in a file with their names and lines, without comments. A function may be defined inside of another
/// one.
fn functions(file: &str) -> Result<Vec<(String, Vec<String>)>, Failure> {
    let text = fs::read_to_string(root().join(file))?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let named = lines.iter().enumerate();
    let named = named.filter_map(|(at, line)| Some((at, line.strip_suffix("() {")?)));
    let body = |at: usize| {
        let body = lines[at + 1..].iter().take_while(|line| **line != "}");
        let body = body.filter(|line| !line.starts_with('#'));
        body.map(|line| (*line).to_owned()).collect()
    };
    Ok(named
        .map(|(at, name)| (name.to_owned(), body(at)))
        .collect())
}

fn same_functions() -> Result<(), Failed> {
    let shared = functions("ci/tr-run.sh")?;
    assert!(shared.len() == 4, "{shared:?}");
    for (file, count) in [
        ("ci/gitlab/tr.yml", 4),
        ("ci/buildkite/hooks/command", 4),
        ("ci/ansible/roles/tr_record/vars/main.yml", 1),
        ("ci/hook/tr-job.sh", 1),
    ] {
        let text = functions(file)?;
        let mut found = 0;
        for (name, body) in &shared {
            if let Some((_, copy)) = text.iter().find(|(copy, _)| copy == name) {
                assert_eq!(copy, body, "{file}: {name}");
                found += 1;
            }
        }
        assert_eq!(found, count, "{file}");
    }
    Ok(())
}

/// The programs that the kits call before they run the job's command.
const TOOLS: [&str; 11] = [
    "rm",
    "mkdir",
    "mktemp",
    "cat",
    "uname",
    "curl",
    "awk",
    "tar",
    "sha256sum",
    "sleep",
    "chmod",
];

/// The ways in which a recorder fails. The first three end, without output, before the command has run.
const RECORDERS: [&str; 5] = [
    "exit 125",
    "exit 0",
    "kill -9 $$",
    "echo ran; exit 134",
    "echo; exit 0",
];

/// Makes each step that a kit does before the command fail, one step in each job. The command still runs once, and its
/// exit status is the job's.
fn failing_steps() -> Result<(), Failed> {
    let tools = TOOLS.map(|name| (format!("bin/{name}"), "exit 1".to_owned(), TR));
    let recorders = RECORDERS.map(|record| {
        let text = format!(
            "case $1 in --version) echo tr-trace 1 ;; record) {record} ;; *) exit 1 ;; esac"
        );
        ("bin/tr-trace".to_owned(), text, "tr-trace")
    });
    for (step, text, program) in tools.into_iter().chain(recorders) {
        let job = Job::new();
        fs::create_dir(job.place("bin"))?;
        fs::create_dir(job.place("tmp"))?;
        job.executable(&step, &format!("#!/bin/sh\n{text}\n"));
        job.executable("job.sh", "echo the job; exit 7");
        let shared = |shell: &str| {
            let file = root().join("ci/tr-run.sh").display().to_string();
            format!("exec {shell} -eu '{file}' tr_run tr-recording/trace.bin \"$TR_PATH\" '' bash -e $JOB")
        };
        for (name, text) in [
            ("bash", shared("bash")),
            ("dash", shared("dash")),
            ("closed", shared("dash") + " 2>&-"),
            (
                "gitlab bash",
                harness(Kit::GitLab("bash"), true, Situation::Usual, root()),
            ),
            (
                "gitlab dash",
                harness(Kit::GitLab("dash"), true, Situation::Usual, root()),
            ),
            (
                "gitlab job",
                harness(Kit::GitLabJob, true, Situation::Usual, root()),
            ),
            (
                "buildkite",
                harness(Kit::Buildkite, true, Situation::Usual, root()),
            ),
            ("hook", harness(Kit::Hook, true, Situation::Usual, root())),
        ] {
            let mut command = job.command("bash");
            command.args(["-c", &text]).stdin(Stdio::null());
            command.envs(variables(&job, "echo the job; exit 7", program, ""));
            command.env("TR_WHOLE_JOB", (name == "gitlab job").to_string());
            let out = command.output()?;
            let expected = (Some(7), "the job".to_owned());
            assert_eq!(outcome(&out), expected, "{name}, {step}: {}", said(&out));
        }
    }
    Ok(())
}

/// COMMAND is a shell function that uses the shell's variables. No recorder could run it, so the kit runs it
/// unrecorded.
fn function() -> Result<(), Failed> {
    for shell in ["bash", "sh"] {
        let job = Job::new();
        let file = root().join("ci/tr-run.sh").display().to_string();
        let script = "tests() { echo \"$1 $own\"; return 3; }; own=mine; set -- tr_run trace.bin \"$0\" '' tests of; . \"$KIT\"";
        let mut command = job.command(shell);
        let out = command.args(["-c", script, TR]).env("KIT", file).output()?;
        assert_eq!(
            (out.status.code(), said(&out).as_str()),
            (Some(3), "of mine\n"),
            "{shell}"
        );
    }
    Ok(())
}
