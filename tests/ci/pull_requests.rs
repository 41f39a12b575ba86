//! Tests the action on pull requests: the one comment, the comparison with the base branch, the gate that fails a
//! slower job, and recordings of strangers.

use std::fs;
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use serde_json::{json, Value};

use crate::common::{trial, why_not, TR};
use crate::runner::{lacks_node, said, Job};

pub fn trials() -> Vec<Trial> {
    let node = lacks_node;
    vec![
        trial(
            "a_pull_request_has_one_comment",
            node().or_else(why_not),
            one_comment,
        ),
        trial(
            "the_gate_compares_with_the_base",
            node().or_else(why_not),
            gate,
        ),
        trial("a_gate_that_cannot_judge_fails", node(), undecided),
        trial("a_fork_is_no_base", node(), fork_is_no_base),
        trial(
            "hostile_strings_stay_text",
            node().or_else(why_not),
            hostile,
        ),
        trial(
            "a_run_of_a_fork_is_compared_afterwards",
            node().or_else(why_not),
            of_run,
        ),
    ]
}

fn pull_request(base: &str) -> Value {
    json!({ "pull_request": { "number": 5, "title": "@everyone `x`", "base": { "ref": base } } })
}

/// The bytes of a recording of this command.
fn recording(job: &Job, command: &[&str]) -> Vec<u8> {
    let file = job.place("base.bin");
    let mut record = Command::new(TR);
    record.args(["record", "-q", "-o"]).arg(&file).arg("--");
    let done = record.args(command).status().unwrap();
    assert!(done.success());
    fs::read(file).unwrap()
}

fn keep_five(job: &Job, branch: &str) {
    for id in 1..=5 {
        let bytes = recording(job, &["bash", "-c", "/bin/true"]);
        job.forge.keep(id, "tr-test-0.bin", branch, false, bytes);
    }
}

fn bodies(job: &Job) -> Vec<String> {
    let state = job.forge.state();
    let text = |comment: &Value| comment["body"].as_str().unwrap().to_owned();
    state.comments.iter().map(text).collect()
}

fn one_comment() -> Result<(), Failed> {
    let mut job = Job::new().input("run", "true").input("comment", "true");
    job.event(&pull_request("main"));
    // A stranger has written a comment with our marker. It must be left alone, because its author can change it later.
    let marker = "<!-- tr: tr-test-0 -->";
    let stranger = json!({ "id": 1, "body": format!("{marker} x"), "user": { "login": "eve", "type": "User" } });
    job.forge.state().comments.push(stranger);
    let out = job.step();
    assert!(out.status.success(), "{}", said(&out));
    let first = bodies(&job);
    assert_eq!(first.len(), 2, "{first:?}");
    assert!(first[1].starts_with(marker), "{}", first[1]);
    assert!(!first[1].contains("→"), "no base: {}", first[1]);

    keep_five(&job, "main");
    let out = job.step();
    assert!(out.status.success(), "{}", said(&out));
    let second = bodies(&job);
    assert_eq!(second.len(), 2, "updated: {second:?}");
    assert_eq!(second[0], first[0], "the stranger's is left alone");
    assert!(
        second[1].contains("→") && second[1].len() < 65_536,
        "{}",
        second[1]
    );
    let summary = job.read("GITHUB_STEP_SUMMARY");
    assert!(summary.contains("→"), "{summary}");

    // If the token may not write comments, the step still succeeds.
    job.event(&json!({ "pull_request": { "number": 6, "base": { "ref": "main" } } }));
    let out = job.step();
    let text = said(&out);
    assert!(
        out.status.success() && text.contains("GitHub answers 404"),
        "{text}"
    );
    Ok(())
}

fn gate() -> Result<(), Failed> {
    let run = |script: &str, bases: u64, strict: &str| {
        let mut job = Job::new()
            .input("run", script)
            .input("fail-over", "300%")
            .input("strict", strict);
        job.event(&pull_request("main"));
        for id in 1..=bases {
            let bytes = recording(&job, &["sleep", "0.3"]);
            job.forge.keep(id, "tr-test-0.bin", "main", false, bytes);
        }
        let out = job.step();
        (out.status.code(), said(&out))
    };
    let (status, text) = run("sleep 3", 5, "false");
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("::error title=tr::the limit of fail-over (300%25)"),
        "{text}"
    );
    let (status, text) = run("sleep 0.3", 5, "true");
    assert_eq!(status, Some(0), "{text}");
    // A command that fails early must not count as a faster one.
    let (status, text) = run("exit 3", 5, "false");
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("fail-over: the command failed"), "{text}");
    // With fewer than four recordings nothing can be compared; only `strict` fails the job.
    let (status, text) = run("sleep 3", 2, "false");
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("fail-over needs 4 recordings"), "{text}");
    let (status, _) = run("sleep 3", 2, "true");
    assert_eq!(status, Some(1));
    Ok(())
}

/// Recordings that cannot be judged fail the gate, unless the input `allow-undecided` is true.
fn undecided() -> Result<(), Failed> {
    for (allow, want) in [("false", Some(1)), ("true", Some(0))] {
        let mut job = Job::new()
            .input("run", "sleep 0.3")
            .input("fail-over", "300%")
            .input("allow-undecided", allow);
        job.event(&pull_request("main"));
        let mut bytes = recording(&job, &["sleep", "0.3"]);
        bytes.truncate(bytes.len() * 2 / 3);
        for id in 1..=5 {
            job.forge
                .keep(id, "tr-test-0.bin", "main", false, bytes.clone());
        }
        let out = job.step();
        let text = said(&out);
        assert_eq!(out.status.code(), want, "{text}");
        assert!(text.contains("tr-trace diff: "), "{text}");
        let fails = text.contains("::error title=tr::fail-over cannot judge");
        assert_eq!(fails, want == Some(1), "{text}");
    }
    Ok(())
}

/// A fork's branch may have the name of the base branch: its artifact must not be taken for a recording of the base.
fn fork_is_no_base() -> Result<(), Failed> {
    let mut job = Job::new().input("run", "true").input("comment", "true");
    job.event(&pull_request("main"));
    job.forge
        .keep(1, "tr-test-0.bin", "main", true, b"hostile".to_vec());
    let out = job.step();
    let text = said(&out);
    assert!(text.contains("no recording of the base branch"), "{text}");
    let requests = job.forge.state().requests.join("\n");
    assert!(!requests.contains("/zip"), "{requests}");
    Ok(())
}

/// Hostile command lines, branches and titles must not notify users, make links, run commands, or end a block of the
/// page.
fn hostile() -> Result<(), Failed> {
    let evil = r#"@everyone [a](http://evil.example) <img src=x>"#;
    let lines = r"\n::error::pwned\n```\n</details>\n::set-output name=a::b";
    let script = format!(
        "bash -c \"$(printf ': \\047{lines} `x`\\047; sleep 0.3; exit 5')\" || :\n\
         bash -c ': \"{evil}\"; for ((i = 0; i < 400000; i++)); do :; done; exit 5'"
    );
    let mut job = Job::new().input("run", &script).input("comment", "true");
    let branch = "main$(touch pwned)`touch pwned`&status=failure#";
    job.event(&pull_request(branch));
    keep_five(&job, branch);
    let out = job.step();
    let text = said(&out);
    assert_eq!(out.status.code(), Some(5), "{text}");
    let commands = text
        .lines()
        .filter(|line| line.trim_start().starts_with("::"));
    assert_eq!(commands.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(!job.place("workspace/pwned").exists());
    let encoded =
        "branch=main%24(touch%20pwned)%60touch%20pwned%60%26status%3Dfailure%23&status=success";
    let requests = job.forge.state().requests.join("\n");
    assert!(requests.contains(encoded), "{requests}");
    let summary = job.read("GITHUB_STEP_SUMMARY");
    let comment = bodies(&job).pop().unwrap_or_default();
    assert!(
        summary.contains("everyone") && comment.contains("everyone"),
        "{comment}"
    );
    for text in [summary, comment] {
        for evil in ["@everyone", "](http://evil", "<img", "`x`", "\n::"] {
            assert!(!text.contains(evil), "{evil} in {text}");
        }
        let (opened, closed) = (text.matches("<details>"), text.matches("</details>"));
        assert_eq!(opened.count(), closed.count(), "{text}");
    }
    Ok(())
}

/// The run of a fork has no right to comment. A workflow_run, which has the right, reads the recording of that run.
fn of_run() -> Result<(), Failed> {
    let mut job = Job::new().input("of-run", "1001").input("comment", "true");
    let head = json!({ "id": 1001, "head_sha": "abc", "head_branch": "main",
        "head_repository": { "owner": { "login": "eve" } }, "pull_requests": [] });
    job.event(&json!({ "workflow_run": head }));
    let bytes = recording(&job, &["sleep", "0.1"]);
    job.forge.keep(1, "tr-test-0.bin", "main", true, bytes);
    for id in 2..=5 {
        let bytes = recording(&job, &["sleep", "0.1"]);
        job.forge.keep(id, "tr-test-0.bin", "main", false, bytes);
    }
    // Another pull request has the same branch name, but a different head commit.
    job.forge.state().pulls = vec![
        json!({ "number": 4, "head": { "sha": "other" }, "base": { "ref": "main" } }),
        json!({ "number": 5, "head": { "sha": "abc" }, "base": { "ref": "main" } }),
    ];
    let out = job.step();
    assert!(out.status.success(), "{}", said(&out));
    let all = bodies(&job);
    assert_eq!(all.len(), 1, "{}", said(&out));
    assert!(all[0].contains("→"), "{}", all[0]);
    let requests = job.forge.state().requests.join("\n");
    assert!(requests.contains("head=eve%3Amain"), "{requests}");

    // The stranger's artifact is not a recording at all.
    job.forge
        .state()
        .files
        .insert("1".into(), b"<script>".to_vec());
    let out = job.step();
    let text = said(&out);
    assert!(out.status.success() && text.contains("::warning"), "{text}");
    // The run's id in the input must be the one in the event, so that no other run is read.
    let out = job.input("of-run", "1002").step();
    let text = said(&out);
    assert!(text.contains("of-run must be"), "{text}");
    Ok(())
}
