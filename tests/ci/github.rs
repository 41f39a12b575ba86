//! Tests the GitHub action inside of an imitated job.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};

use crate::common::{analyze, copy_program, ensure, int, lacks, list, trial, why_not, Failure, TR};
use crate::runner::{lacks_node, no_other_user, program, root, said, Job};

pub fn trials() -> Vec<Trial> {
    let node = lacks_node;
    vec![
        trial("a_script_is_recorded", node().or_else(why_not), script),
        trial(
            "the_job_is_recorded_by_steps",
            node().or_else(why_not),
            whole_job,
        ),
        trial(
            "a_hosted_job_is_recorded_by_sudo",
            node()
                .or_else(no_other_user)
                .or_else(|| lacks("sudo"))
                .or_else(why_not),
            whole_job_by_sudo,
        ),
        trial("without_tr_the_script_runs", node(), untraced),
        trial(
            "an_option_has_its_value_on_its_line",
            node().or_else(why_not),
            options,
        ),
        trial("a_wrong_option_costs_no_job", node(), wrong_option),
        trial("a_missing_directory_is_named", node(), no_directory),
        trial("a_job_that_cannot_be_recorded_goes_on", node(), no_worker),
        trial(
            "a_release_is_checked_before_it_runs",
            node().or_else(why_not),
            release,
        ),
        trial("a_cancelled_job_is_reported", node(), cancelled),
        trial("a_long_summary_is_cut", node(), long_summary),
    ]
}

/// A script that stores tokens in `env.txt`, if it gets any. The script must not get the token in the action's inputs,
/// nor the tokens of the runner.
const SECRETS: &str = "env | grep -E '^(INPUT|STATE|ACTIONS)_|the-token' >env.txt || :";

fn script() -> Result<(), Failed> {
    let job = Job::new().input("run", &format!("{SECRETS}\necho hello\nexit 7"));
    let out = job.step();
    let text = said(&out);
    assert_eq!(out.status.code(), Some(7), "{text}");
    assert!(
        text.contains("hello") && !text.contains("::warning"),
        "{text}"
    );
    assert_eq!(job.read("workspace/env.txt"), "");
    let outputs = job.values("GITHUB_OUTPUT");
    assert_eq!(outputs["status"], "7");
    assert!(outputs["wall"].parse::<u64>()? < 60_000, "{outputs:?}");
    assert_ne!(outputs["method"], "none");

    let state = job.forge.state();
    let trace = fs::read(&outputs["trace"])?;
    let page = fs::read(&outputs["page"])?;
    for (name, bytes, kind) in [
        ("tr-test-0.bin", &trace, "application/octet-stream"),
        ("tr-test-0.html", &page, "text/html"),
    ] {
        let (sent, created, finalized) = &state.uploads[name];
        assert_eq!(sent, bytes, "{name}");
        assert_eq!(created["mime_type"], kind);
        assert_eq!(finalized["size"], bytes.len().to_string());
        assert_eq!(finalized["hash"], format!("sha256:{}", sha256(bytes)));
    }
    let summary = job.read("GITHUB_STEP_SUMMARY");
    let url = format!(
        "{}/owner/project/actions/runs/77/artifacts/900",
        job.forge.url
    );
    let links = summary.matches(&url).count();
    assert_eq!(links, 2, "{summary}");
    Ok(())
}

fn sha256(bytes: &[u8]) -> String {
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let out = child.wait_with_output().unwrap();
    String::from_utf8(out.stdout).unwrap()[..64].to_owned()
}

/// Records a job with three steps, of which one fails and the next is skipped; the action's post step runs
/// nevertheless.
fn whole_job() -> Result<(), Failed> {
    let job = Job::new();
    let worker = worker(&job)?;
    recorded_by_steps(&job, &mut job.command(&worker.to_string_lossy()), "bpf")
}

/// Records a whole job on a hosted machine, where the runner is an ordinary user who may use sudo without a password.
fn whole_job_by_sudo() -> Result<(), Failed> {
    let job = Job::new();
    let tr = job.place("tr");
    copy_program(TR, &tr)?;
    let job = job.input("path", &tr.to_string_lossy());
    let worker = worker(&job)?;
    job.belongs_to_nobody()?;
    // The action runs no program by sudo that the caller of sudo could change, so root has to own this one.
    std::os::unix::fs::chown(&tr, Some(0), None)?;
    let mut command = job.by_nobody(None, &[&worker.to_string_lossy()])?;
    command.env("RUNNER_ENVIRONMENT", "github-hosted");
    recorded_by_steps(&job, &mut command, "sudo")
}

/// Writes the scripts of the job's steps, and an imitation of the runner's worker that runs them.
fn worker(job: &Job) -> Result<PathBuf, Failed> {
    let steps = [
        ("1b2c3d4e-0000-4000-8000-000000000001", "sleep 0.3"),
        ("2b2c3d4e-0000-4000-8000-000000000002", "sleep 0.2; exit 3"),
        ("3b2c3d4e-0000-4000-8000-000000000003", "touch never"),
    ];
    for (id, text) in steps {
        fs::write(job.place(&format!("work/_temp/{id}.sh")), text)?;
    }
    let files: Vec<String> = steps.iter().map(|(id, _)| format!("{id}.sh")).collect();
    let worker = format!(
        r#"#!/bin/bash
node '{main}' || exit 90
for script in {files}; do
    env -u ACTIONS_RUNTIME_TOKEN bash -e "$RUNNER_TEMP/$script" || {{ failed=$?; break; }}
done
while IFS= read -r line; do
    name=${{line%%<<*}}; IFS= read -r value; IFS= read -r _
    export "STATE_$name=$value"
done <"$GITHUB_STATE"
: >"$GITHUB_STEP_SUMMARY"
node '{post}' || exit 91
exit $failed
"#,
        main = program("main").display(),
        post = program("post").display(),
        files = files.join(" "),
    );
    Ok(job.executable("Runner.Worker", &worker))
}

fn recorded_by_steps(job: &Job, worker: &mut Command, method: &str) -> Result<(), Failed> {
    let out = worker.output()?;
    let text = said(&out);
    assert_eq!(out.status.code(), Some(3), "{text}");
    assert!(!text.contains("::warning"), "{text}");
    assert!(!job.place("workspace/never").exists());

    let outputs = job.values("GITHUB_OUTPUT");
    assert_eq!(outputs["method"], method, "{text}");
    let trace = &outputs["trace"];
    let mut analyze = Command::new(TR);
    analyze.args(["analyze", trace, "--report", "steps", "--format", "json"]);
    let document: Value = serde_json::from_slice(&analyze.output()?.stdout)?;
    let found = list(&document["steps"], "steps").iter();
    let found = found.map(|step| (step["name"].as_str().unwrap_or(""), int(step, "wall_ns")));
    let found: Vec<(&str, u64)> = found.collect();
    for (name, ms) in [("run sleep 0.3", 300), ("run sleep 0.2", 200)] {
        let (_, wall) = found.iter().find(|step| step.0 == name).ok_or(name)?;
        assert!((ms..ms + 5000).contains(&(wall / 1_000_000)), "{found:?}");
    }
    assert!(job.forge.state().uploads.contains_key("tr-test-0.bin"));
    let summary = job.read("GITHUB_STEP_SUMMARY");
    assert!(summary.contains("/artifacts/900"), "{summary}");
    Ok(())
}

fn untraced() -> Result<(), Failed> {
    let run = "echo hello; exit 4";
    let job = Job::new().input("run", run).input("path", "/bin/cat");
    let out = job.step();
    let text = said(&out);
    assert_eq!(out.status.code(), Some(4), "{text}");
    assert!(text.contains("hello"), "{text}");
    assert!(
        text.contains("::warning title=tr::/bin/cat (input path)"),
        "{text}"
    );
    // The program is found but cannot record, because there is no CPU 4095.
    let job = Job::new()
        .input("run", run)
        .input("options", "--quiet\n  --cpu=4095\n");
    let out = job.step();
    let text = said(&out);
    assert_eq!(out.status.code(), Some(4), "{text}");
    assert!(text.contains("::warning title=tr::not traced: "), "{text}");
    assert_eq!(job.values("GITHUB_OUTPUT")["method"], "none");
    // A job that could not be recorded fails only with the input `strict`.
    for (strict, status) in [("false", 0), ("true", 1)] {
        let job = Job::new().input("run", "true").input("path", "/bin/cat");
        let out = job.input("strict", strict).step();
        assert_eq!(out.status.code(), Some(status), "{}", said(&out));
    }
    Ok(())
}

fn options() -> Result<(), Failed> {
    let job = Job::new();
    symlink(TR, job.place("tr-trace"))?;
    let path = format!("{}:{}", job.place("").display(), std::env::var("PATH")?);
    let job = job
        .variable("PATH", &path)
        .input("run", "/bin/true 'a foobar' 'two words'")
        // A name without a slash is searched on PATH.
        .input("path", "tr-trace")
        .input(
            "options",
            "--redact foo(bar)\n--redact=two (words)\n  --argv-limit\t8K\n-q",
        );
    let out = job.step();
    let text = said(&out);
    assert_eq!(out.status.code(), Some(0), "{text}");
    assert!(!text.contains("::warning"), "{text}");
    let trace = PathBuf::from(&job.values("GITHUB_OUTPUT")["trace"]);
    let analysis = analyze(&trace)?;
    let argv = json!(["/bin/true", "a foo***", "two ***"]);
    let processes = list(&analysis, "processes");
    let found = processes
        .iter()
        .filter(|process| process["argv"] == argv)
        .count();
    assert_eq!(found, 1, "{processes:#?}");
    Ok(())
}

/// Even if its exit status is one of the recorder's own, the script runs only once.
fn wrong_option() -> Result<(), Failed> {
    for (options, status, recorded) in [
        ("--no-such-option", 4, false),
        ("--redact (", 125, false),
        ("", 125, true),
    ] {
        let run = format!("echo it runs; exit {status}");
        let job = Job::new().input("run", &run).input("options", options);
        let out = job.step();
        let text = said(&out);
        assert_eq!(out.status.code(), Some(status), "{text}");
        assert_eq!(text.matches("it runs").count(), 1, "{text}");
        let refused = text.contains("::warning title=tr::there is no recording");
        assert_eq!(refused, !recorded, "{text}");
    }
    Ok(())
}

fn no_directory() -> Result<(), Failed> {
    let job = Job::new()
        .input("run", "echo it runs")
        .input("working-directory", "/no/such/place");
    let out = job.step();
    let text = said(&out);
    assert_eq!(out.status.code(), Some(127), "{text}");
    assert!(
        text.contains("::error title=tr::the working-directory /no/such/place is no directory"),
        "{text}"
    );
    assert!(
        !text.contains("it runs") && !text.contains("ENOENT"),
        "{text}"
    );
    Ok(())
}

/// Inside of a job's container, the process of the runner's worker is not visible, so the whole job cannot be recorded.
fn no_worker() -> Result<(), Failed> {
    let job = Job::new();
    let out = job.step();
    let text = said(&out);
    assert_eq!(out.status.code(), Some(0), "{text}");
    assert!(text.contains("the job is not recorded"), "{text}");
    let mut post = job.command("node");
    let out = post.arg(program("post")).output()?;
    assert!(
        out.status.success() && said(&out).is_empty(),
        "{}",
        said(&out)
    );
    Ok(())
}

fn release() -> Result<(), Failed> {
    let run = |checksum: &str, list: &str| {
        let job = Job::new()
            .input("run", "exit 6")
            .input("path", "")
            .input("version", "9.9.9");
        let marker = job.place("executed");
        let top = format!("tr-9.9.9-{}-linux", std::env::consts::ARCH);
        fs::create_dir_all(job.place("release").join(&top).join("bin")).unwrap();
        let tr = format!("#!/bin/sh\n: >'{}'\nexec '{TR}' \"$@\"\n", marker.display());
        job.executable(&format!("release/{top}/bin/tr"), &tr);
        let archive = job.place("release.tar.gz");
        let mut tar = Command::new("tar");
        tar.args(["-czf"]).arg(&archive).arg("-C");
        tar.arg(job.place("release")).arg(&top);
        assert!(tar.status().unwrap().success());
        let bytes = fs::read(&archive).unwrap();
        let sum = sha256(&bytes);
        let architecture = std::env::consts::ARCH;
        let name = format!("tr-9.9.9-{architecture}-linux.tar.gz");
        let place = "/maker/tr/releases/download/v9.9.9";
        let list = list.replace("SUM", &sum).replace("NAME", &name);
        let mut state = job.forge.state();
        if !list.is_empty() || !checksum.is_empty() {
            state.files.insert(format!("{place}/{name}"), bytes);
        }
        state
            .files
            .insert(format!("{place}/SHA256SUMS"), list.into());
        drop(state);
        // `input` returns the job, and dropping the job removes its directory. So the job must live until the directory
        // has been searched for the marker.
        let job = job.input("checksum", &checksum.replace("SUM", &sum));
        let out = job.step();
        assert_eq!(out.status.code(), Some(6), "{}", said(&out));
        exported(&job, marker.exists()).unwrap();
        (marker.exists(), said(&out))
    };
    let wrong = "0".repeat(64);
    let (executed, text) = run("", "SUM  NAME\n");
    assert!(executed && !text.contains("::warning"), "{text}");
    let (executed, text) = run("SUM", "");
    assert!(executed && !text.contains("::warning"), "{text}");
    for (checksum, list) in [
        (wrong.as_str(), "SUM  NAME\n"),
        ("", &format!("{wrong}  NAME\n")),
    ] {
        let (executed, text) = run(checksum, list);
        assert!(!executed && text.contains("it was not executed"), "{text}");
    }
    let (executed, text) = run("", "SUM  other.tar.gz\n");
    assert!(!executed && text.contains("does not name"), "{text}");
    // If there is no release at all, the job runs unrecorded, and the log says what to do.
    let (executed, text) = run("", "");
    assert!(
        !executed && text.contains("the job runs unrecorded"),
        "{text}"
    );
    assert!(text.contains("Install tr-trace in a step before"), "{text}");
    Ok(())
}

/// Runs a later step of the job, as in docs/fleets.md: it finds the program of a downloaded release, and succeeds
/// without one.
fn exported(job: &Job, downloaded: bool) -> Result<(), Failure> {
    let text = fs::read_to_string(root().join("docs/fleets.md"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("    - run: tr-trace export"));
    let trace = job.values("GITHUB_OUTPUT")["trace"].clone();
    let line = line
        .ok_or("no line")?
        .replace("${{ steps.tr.outputs.trace }}", &trace);
    let path = format!(
        "{}:{}",
        job.read("GITHUB_PATH").trim(),
        std::env::var("PATH")?
    );
    let mut step = job.command("bash");
    step.args(["-e", "-c", &format!("tr-trace export{line}")])
        .env("PATH", path);
    let out = step.output()?;
    ensure(out.status.success(), || said(&out))?;
    let exported = job.place("workspace/runs").exists();
    ensure(exported == downloaded, || said(&out))
}

/// If a job is cancelled, the runner sends SIGINT only to the action's process, which must pass it to the script.
fn cancelled() -> Result<(), Failed> {
    let run = "trap 'kill $!; exit 9' INT; : >started; sleep 60 & wait";
    let job = Job::new().input("run", run);
    let mut node = job.command("node");
    let child = node
        .arg(program("main"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = child.spawn()?;
    let limit = Instant::now() + Duration::from_secs(30);
    while !job.place("workspace/started").exists() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(200));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT)?;
    let out = child.wait_with_output()?;
    assert_eq!(out.status.code(), Some(9), "{}", said(&out));
    let summary = job.read("GITHUB_STEP_SUMMARY");
    assert!(summary.contains("/artifacts/900"), "{summary}");
    Ok(())
}

fn long_summary() -> Result<(), Failed> {
    // The step's own summary in the same file leaves little room for the summary that the action adds.
    let own = "head -c 990000 /dev/zero | command tr '\\0' x >\"$GITHUB_STEP_SUMMARY\"";
    let job = Job::new().input("run", own);
    let long = "for i in $(seq 2000); do echo \"line $i\"; done; echo '<details>'; seq 20000";
    let stub =
        format!("#!/bin/bash\nif [ \"$1\" = summary ]; then {long}; else exec '{TR}' \"$@\"; fi\n");
    let stub = job.executable("stub", &stub);
    let job = job.input("path", &stub.to_string_lossy());
    let out = job.step();
    assert!(out.status.success(), "{}", said(&out));
    let summary = job.read("GITHUB_STEP_SUMMARY");
    assert!(
        (995_000..1_000_001).contains(&summary.len()),
        "{}",
        summary.len()
    );
    let end = summary.lines().last().unwrap_or("");
    assert_eq!(end, "(cut off here; the page has all of it)");
    Ok(())
}
