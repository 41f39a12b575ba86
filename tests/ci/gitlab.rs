//! Tests the GitLab template. As in a GitLab job, before_script and script run in one shell, and after_script in
//! another.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};
use serde_json::json;
use tempfile::TempDir;

use crate::common::{lacks, trial, why_not, ABSENT, TR};
use crate::forge::Forge;
use crate::runner::{root, said, slept_once};

pub fn trials() -> Vec<Trial> {
    let note = lacks("curl").or_else(|| lacks("jq")).or_else(why_not);
    vec![
        trial("gitlab_records_a_command", lacks("bash"), command),
        trial(
            "gitlab_records_the_whole_job",
            lacks("bash").or_else(why_not),
            whole_job,
        ),
        trial("gitlab_has_a_gate", lacks("curl").or_else(why_not), gate),
        trial("gitlab_without_tr_runs_the_script", lacks("curl"), untraced),
        trial(
            "gitlab_notes_once_on_a_merge_request",
            note.clone(),
            note_once,
        ),
        trial("gitlab_tells_the_token_nobody_else", note, token),
    ]
}

struct Job {
    forge: Forge,
    directory: TempDir,
    environment: BTreeMap<String, String>,
}

/// The text of a script block (`before_script: - |`) in the template.
pub fn block(name: &str) -> String {
    let text = fs::read_to_string(root().join("ci/gitlab/tr.yml")).unwrap();
    let lines = text
        .lines()
        .skip_while(|line| *line != format!("  {name}:"));
    let mut lines = lines.skip(1);
    assert_eq!(lines.next(), Some("    - |"));
    let inside = lines.take_while(|line| line.starts_with("      "));
    inside.map(|line| format!("{}\n", &line[6..])).collect()
}

pub fn variables() -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("ci/gitlab/tr.yml")).unwrap();
    let inside = text.split("  variables:\n").nth(1).unwrap();
    let inside = inside.lines().take_while(|line| line.starts_with("    "));
    let pairs = inside.filter_map(|line| line.trim().split_once(": "));
    let pairs = pairs.filter(|(name, _)| name.starts_with("TR_"));
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()));
    let all: BTreeMap<_, _> = pairs.collect();
    assert!(all.len() >= 6, "{all:?}");
    all
}

impl Job {
    fn new() -> Job {
        let directory = tempfile::tempdir().unwrap();
        let forge = Forge::start();
        let mut environment = variables();
        let place = directory.path().display().to_string();
        for (name, value) in [
            ("PATH", std::env::var("PATH").unwrap().as_str()),
            ("HOME", &place),
            ("CI_PROJECT_DIR", &place),
            ("CI_JOB_NAME", "test @everyone: [1/2]"),
            ("CI_JOB_URL", "https://gitlab.example/o/p/-/jobs/9"),
            ("CI_JOB_TIMEOUT", "3600"),
            ("CI_PROJECT_ID", "3"),
            ("CI_API_V4_URL", &format!("{}/api/v4", forge.url)),
            ("TR_PATH", TR),
        ] {
            environment.insert(name.into(), value.into());
        }
        Job {
            forge,
            directory,
            environment,
        }
    }

    fn set(mut self, name: &str, value: &str) -> Job {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Runs a script as GitLab's runner does with the feature flag FF_USE_NEW_BASH_EVAL_STRATEGY: evaluated in a
    /// subshell that has no input. Without this flag, bash turns every failure into status 1.
    fn shell(&self, shell: &str, script: &str) -> Output {
        let mut command = Command::new(shell);
        let environment = self.environment.iter();
        command.env_clear().envs(environment).env("SCRIPT", script);
        command.current_dir(self.directory.path());
        let text = "if set -o | grep -q pipefail; then set -o pipefail; fi\nset -e\n: | (eval \"$SCRIPT\")\n";
        command.args(["-c", text]).output().unwrap()
    }

    /// Runs a job and returns its exit status and its log.
    fn run(&self, shell: &str, script: &str) -> (Option<i32>, String) {
        let out = self.shell(shell, &format!("{}{script}", block("before_script")));
        // A container ends together with the script's shell, so the recorder must have ended before that shell.
        let pid = self.directory.path().join("tr-recording/pid");
        assert!(!pid.exists(), "{}", said(&out));
        let after = self.shell(shell, &block("after_script"));
        assert!(after.status.success(), "{}", said(&after));
        (out.status.code(), said(&out) + &said(&after))
    }

    fn read(&self, name: &str) -> String {
        let file = self.directory.path().join("tr-recording").join(name);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }
}

fn command() -> Result<(), Failed> {
    for shell in ["bash", "sh"] {
        let job = Job::new();
        let (status, text) = job.run(shell, "tr_record sh -c 'sleep 0.1; exit 7'");
        assert_eq!(status, Some(7), "{text}");
        let page = "https://gitlab.example/o/p/-/jobs/9/artifacts/file/tr-recording/report.html";
        let summary = job.read("summary.md");
        let limit = "of the limit of";
        assert!(summary.contains(page) && summary.contains(limit), "{text}");
        assert!(job.read("report.html").contains("<html"), "{text}");
        // The log has the address that a reader can open, and none of a file on the runner.
        let address = format!("the report is at {page}");
        assert!(
            text.contains(&address) && !text.contains("file://"),
            "{text}"
        );
    }
    Ok(())
}

fn whole_job() -> Result<(), Failed> {
    for shell in ["bash", "sh"] {
        let job = Job::new().set("TR_WHOLE_JOB", "true");
        let (status, text) = job.run(shell, "sleep 0.31\nsh -c 'exit 3'\ntouch never");
        assert_eq!(status, Some(3), "{text}");
        assert!(!job.directory.path().join("never").exists());
        let trace = job.directory.path().join("tr-recording/trace.bin");
        slept_once(&trace, "0.31").map_err(|e| format!("{e}: {text}"))?;
    }
    Ok(())
}

/// The shell line in docs/ci.md that compares two recordings and fails the job if it became slower.
pub fn gate_line() -> String {
    let text = fs::read_to_string(root().join("docs/ci.md")).unwrap();
    let line = text.lines().find(|line| line.contains("diff base.bin"));
    line.unwrap().trim().to_owned()
}

/// The gate in docs/ci.md compares recordings. A job without a recording passes the gate.
fn gate() -> Result<(), Failed> {
    let line = gate_line();
    for (tr, limit, passes) in [
        (TR, "100000%", true),
        (TR, "10%", false),
        ("/proc/none", "10%", true),
    ] {
        let job = Job::new().set("TR_PATH", tr);
        let releases = format!("{}/releases", job.forge.url);
        let job = job.set("TR_RELEASES", &releases);
        let script = "run() { echo $1 >length; tr_record sh -c 'sleep $(cat length)'; }
            run 0.1; cp tr-recording/trace.bin base.bin || :; run 1";
        let line = line.replace("10%", limit);
        let (status, text) = job.run("sh", &format!("{script}\n{line}"));
        assert_eq!(status == Some(0), passes, "{tr}, {limit}: {text}");
    }
    Ok(())
}

fn untraced() -> Result<(), Failed> {
    let job = Job::new().set("TR_PATH", ABSENT);
    let releases = format!("{}/releases", job.forge.url);
    let job = job.set("TR_RELEASES", &releases).set("TR_VERSION", "9.9.9");
    let (status, text) = job.run("sh", "tr_record sh -c 'exit 4'");
    assert_eq!(status, Some(4), "{text}");
    assert!(text.contains("the job is not recorded. TR_PATH"), "{text}");
    // A download whose checksum differs is not executed.
    let name = format!("tr-9.9.9-{}-linux.tar.gz", std::env::consts::ARCH);
    let list = format!("{}  {name}\n", "0".repeat(64));
    let mut state = job.forge.state();
    let place = "/releases/v9.9.9";
    state
        .files
        .insert(format!("{place}/{name}"), b"hostile".to_vec());
    state
        .files
        .insert(format!("{place}/SHA256SUMS"), list.into());
    drop(state);
    let (status, text) = job.run("sh", "tr_record sh -c 'exit 4'");
    assert_eq!(status, Some(4), "{text}");
    assert!(
        text.contains("FAILED") && text.contains("not recorded"),
        "{text}"
    );
    Ok(())
}

fn note_once() -> Result<(), Failed> {
    let job = Job::new()
        .set("TR_TOKEN", "the-token")
        .set("CI_MERGE_REQUEST_IID", "5")
        .set(
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
            "main&x=$(touch pwned)",
        );
    let script = "tr_record sh -c 'sleep 0.1' '@everyone' '[a](http://evil.example)'";
    let marker = "<!-- tr: test%20%40everyone%3A%20%5B1%2F2%5D -->";
    let other = json!({ "id": 1, "body": format!("{marker} x"), "author": { "id": 8 } });
    job.forge.state().comments.push(other);
    let (_, text) = job.run("bash", script);
    assert_eq!(job.forge.state().comments.len(), 2, "{text}");
    let trace = fs::read(job.directory.path().join("tr-recording/trace.bin"))?;
    job.forge.state().files.insert("base".into(), trace);
    let (status, text) = job.run("bash", script);
    assert_eq!(status, Some(0), "{text}");
    assert!(!text.contains("the-token"), "{text}");
    let state = job.forge.state();
    assert_eq!(state.comments.len(), 2, "updated: {text}");
    let body = state.comments[1]["body"].as_str().unwrap();
    assert!(body.starts_with(marker) && body.contains("→"), "{body}");
    assert!(
        !body.contains("@everyone") && !body.contains("](http://evil"),
        "{body}"
    );
    let asked = state.requests.join("\n");
    let encoded = "/jobs/artifacts/main%26x%3D%24(touch%20pwned)/raw/tr-recording/trace.bin?job=test%20%40everyone";
    assert!(asked.contains(encoded), "{asked}");
    assert!(!job.directory.path().join("pwned").exists());
    Ok(())
}

/// The token is sent to GitLab only: neither to the target of a redirection nor to the command.
fn token() -> Result<(), Failed> {
    let job = Job::new()
        .set("TR_TOKEN", "the-token")
        .set("CI_MERGE_REQUEST_IID", "5")
        .set("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main");
    let script = "tr_record sh -c 'env; echo \"told=$TR_TOKEN=\"'; env";
    let (status, text) = job.run("bash", script);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("told=="), "{text}");
    assert!(!text.contains("the-token"), "{text}");
    // GitLab redirects requests for artifacts to another server.
    let storage = Forge::start();
    let trace = fs::read(job.directory.path().join("tr-recording/trace.bin"))?;
    storage.state().files.insert("/signed".into(), trace);
    job.forge.state().storage = Some(storage.url.clone());
    let (_, text) = job.run("bash", script);
    let (here, there) = (job.forge.state(), storage.state());
    let body = here.comments[0]["body"].as_str().unwrap();
    assert!(body.contains("→"), "not compared: {body} {text}");
    assert_eq!(there.requests, ["GET /signed"]);
    assert!(there.trusted.is_empty(), "{:?}", there.trusted);
    assert_eq!(here.trusted.len(), here.requests.len());
    Ok(())
}
