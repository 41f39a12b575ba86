//! Tests `--best-effort` if tracing cannot start: COMMAND runs, and a file with the reason replaces an older trace. The
//! tests use `--cpu` with a CPU that does not exist, which fails on every machine, whatever the kernel and the rights.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // a JSON value indexes to null

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tr_format::reader::Trace;
use tr_format::source::Source;

#[path = "common/schema.rs"]
mod schema;

const TR: &str = env!("CARGO_BIN_EXE_tr");

fn run(dir: &Path, args: &[&str]) -> Output {
    Command::new(TR)
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap()
}

/// The standard output of a `tr` command that must succeed.
fn tr(dir: &Path, args: &[&str]) -> String {
    let out = run(dir, args);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{args:?}: {said}");
    String::from_utf8(out.stdout).unwrap()
}

const RECORD: [&str; 4] = ["record", "--best-effort", "--cpu", "60000"];

/// A directory in which a run that could not be traced has replaced an older trace, and the output of that run.
fn untraced(script: &str) -> (tempfile::TempDir, Output) {
    let dir = tempfile::tempdir().unwrap();
    let older = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    std::fs::copy(older, dir.path().join("trace.bin")).unwrap();
    let out = run(
        dir.path(),
        &[&RECORD[..], &["--", "sh", "-c", script]].concat(),
    );
    (dir, out)
}

/// A shell script that takes some CPU time and then fails.
const WORK: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; echo done; exit 3";

#[test]
fn the_trace_says_that_nothing_was_traced() {
    let (dir, out) = untraced(WORK);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert_eq!(out.stdout, b"done\n");
    assert!(said.contains("trace.bin: not traced; it holds"), "{said}");

    let summary = tr(dir.path(), &["summary"]);
    assert!(summary.contains("! not traced: "), "{summary}");
    let text = tr(dir.path(), &["analyze"]);
    assert!(text.starts_with("sh -c '"), "{text}");
    assert!(
        text.contains("exit 3 · ") && text.contains(" of CPU"),
        "{text}"
    );
    assert!(text.contains("Not traced   "), "{text}");
    assert!(
        !text.contains("0 processes") && !text.contains("events"),
        "{text}"
    );
    let tree = tr(dir.path(), &["analyze", "--report", "tree"]);
    assert_eq!(tree, text, "there is nothing else to show");

    let verified = tr(dir.path(), &["verify"]);
    assert!(verified.contains("trace.bin: intact"), "{verified}");
    assert!(verified.contains("trace.bin: not traced: "), "{verified}");
    let info = tr(dir.path(), &["info"]);
    for name in [
        "not traced ",
        "exit status         exit 3\n",
        "CPU  ",
        "memory ",
    ] {
        assert!(info.contains(name), "{name}: {info}");
    }
    assert!(!info.contains("events") && !info.contains("none"), "{info}");

    // Tables and the page explain why they are empty, and diff exits with 2.
    let page = run(dir.path(), &["report"]);
    assert!(page.status.success(), "{page:?}");
    let html = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(html.contains("<h2>Not traced</h2>") && html.contains("exit 3 · "));
    assert!(!html.contains("<script") && html.contains("<p>CPU: "));
    let csv = run(dir.path(), &["analyze", "--format", "csv"]);
    assert_eq!(String::from_utf8(csv.stdout).unwrap().lines().count(), 1);
    let diff = run(
        dir.path(),
        &["diff", "trace.bin", "trace.bin", "--fail-over", "5%"],
    );
    assert_eq!(diff.status.code(), Some(2));
    for stderr in [csv.stderr, page.stderr, diff.stderr] {
        let said = String::from_utf8(stderr).unwrap();
        assert!(said.starts_with("tr: trace.bin: not traced: "), "{said}");
    }
}

/// With `--allow-undecided`, a build that could not be traced passes a gate, unless the build failed.
#[test]
fn an_allowed_gate_passes_what_was_not_traced() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    for (name, script) in [("base", "exit 0"), ("good", "exit 0"), ("bad", WORK)] {
        let (untraced, _) = untraced(script);
        std::fs::copy(untraced.path().join("trace.bin"), place(name)).unwrap();
    }
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let demo = demo.display().to_string();
    for (sides, without, allowed) in [
        (["base", "good"], 2, 0),
        ([demo.as_str(), "good"], 2, 0),
        (["base", "bad"], 2, 2),
        (["bad", "good"], 2, 0),
        (["base", "absent"], 2, 2),
        (["base", "base"], 2, 2),
    ] {
        let gate = [&["diff"][..], &sides, &["--fail-over=5%"]].concat();
        let out = run(dir.path(), &gate);
        assert_eq!(out.status.code(), Some(without), "{sides:?}: {out:?}");
        let out = run(dir.path(), &[&gate[..], &["--allow-undecided"]].concat());
        assert_eq!(out.status.code(), Some(allowed), "{sides:?}: {out:?}");
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(said.contains("lets it pass"), allowed == 0, "{said}");
    }
    let alone = run(dir.path(), &["diff", "base", "good", "--allow-undecided"]);
    assert_eq!(alone.status.code(), Some(2), "{alone:?}");
}

/// The reported resource usage of COMMAND must not contain the usage of an earlier child of the same process.
#[test]
fn usage_is_of_the_command_alone() {
    let dir = tempfile::tempdir().unwrap();
    let script = "dd if=/dev/zero of=/dev/null bs=256M count=1; exec \"$@\"";
    let out = Command::new("sh")
        .args(["-c", script, "sh", TR])
        .args(RECORD)
        .args(["--", "true"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    let analysis = tr(dir.path(), &["analyze", "--format", "json"]);
    let analysis: Value = serde_json::from_str(&analysis).unwrap();
    let memory = analysis["trace"]["usage"]["max_rss_bytes"].as_u64();
    assert!(memory.unwrap() < 128 << 20, "{analysis}");
}

#[test]
fn unknown_fields_are_null() {
    let (dir, _) = untraced(WORK);
    let json = |args: &[&str]| -> Value { serde_json::from_str(&tr(dir.path(), args)).unwrap() };
    let analysis = json(&["analyze", "--format", "json"]);
    let schema = include_str!("../crates/report/schema/analysis.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    schema::validate(&schema, &analysis).unwrap();
    let trace = &analysis["trace"];
    assert!(trace["not_traced"].is_string());
    assert_eq!(trace["exit"]["code"], 3);
    assert!(trace["duration_ns"].as_u64().unwrap() > 1_000_000);
    let usage = &trace["usage"];
    let cpu = usage["user_ns"].as_u64().unwrap() + usage["system_ns"].as_u64().unwrap();
    assert!(
        cpu > 1_000_000 && cpu <= trace["duration_ns"].as_u64().unwrap(),
        "{usage}"
    );
    assert!(
        usage["max_rss_bytes"].as_u64().unwrap() > 100_000,
        "{usage}"
    );
    for name in ["events", "lost_events", "quality", "concurrency_ns"] {
        assert!(trace[name].is_null(), "{name}: {trace}");
    }
    assert!(analysis["totals"]
        .as_object()
        .unwrap()
        .values()
        .all(Value::is_null));
    assert!(analysis["audit"].is_null());

    let info = json(&["info", "--format", "json"]);
    assert_eq!(info["not_traced"], trace["not_traced"]);
    assert_eq!(info["usage"], *usage);
    assert_eq!(info["duration_ns"], trace["duration_ns"]);
    for name in [
        "events",
        "events_by_kind",
        "lost_events",
        "cost",
        "unknown_ns",
        "commit_delay_ns",
    ] {
        assert!(info[name].is_null(), "{name}: {info}");
    }

    // A document about a traced run has the same fields. In such a document, the fields about untraced runs are null.
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    let traced: Value =
        serde_json::from_str(&tr(&demo, &["analyze", "demo.bin", "--format", "json"])).unwrap();
    assert!(traced["trace"]["not_traced"].is_null() && traced["trace"]["usage"].is_null());
    let mut mixed = traced;
    mixed["trace"]["not_traced"] = "no rights".into();
    assert!(
        schema::validate(&schema, &mixed).is_err(),
        "figures of what was not traced"
    );
}

#[test]
fn the_older_trace_is_gone_while_the_command_runs() {
    let (dir, out) = untraced("cp trace.bin during.bin");
    assert!(out.status.success(), "{out:?}");
    // The file looks as if `tr` had been killed.
    let text = tr(dir.path(), &["analyze", "during.bin"]);
    assert!(
        text.contains("no end") && text.contains("Not traced"),
        "{text}"
    );
    let info: Value =
        serde_json::from_str(&tr(dir.path(), &["info", "during.bin", "--format", "json"])).unwrap();
    assert!(
        info["not_traced"].is_string() && info["duration_ns"].is_null(),
        "{info}"
    );
    let verify = run(dir.path(), &["verify", "during.bin"]);
    assert_eq!(verify.status.code(), Some(1));
}

#[test]
fn the_working_directory_is_masked() {
    let dir = tempfile::tempdir().unwrap();
    let within = dir.path().join("hush-client");
    std::fs::create_dir(&within).unwrap();
    let mask = ["--redact", "hush-[a-z]+", "--", "true"];
    let out = run(&within, &[&RECORD[..], &mask].concat());
    assert!(out.status.success(), "{out:?}");
    let file = std::fs::read(within.join("trace.bin")).unwrap();
    let trace = Trace::open(Source::bytes(file)).unwrap();
    let cwd = String::from_utf8_lossy(&trace.meta().cwd);
    assert!(cwd.ends_with("/***"), "{cwd}");
}

#[test]
fn the_command_runs_whatever_the_output_does() {
    let dir = tempfile::tempdir().unwrap();
    let record = |more: &[&str], script: &str| {
        run(
            dir.path(),
            &[&RECORD[..], more, &["--", "sh", "-c", script]].concat(),
        )
    };
    let done = record(&["-q", "-o", "absent/trace.bin"], "echo out; exit 4");
    assert_eq!(
        (done.status.code(), done.stdout.as_slice()),
        (Some(4), &b"out\n"[..])
    );
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        said.contains("absent/trace.bin: cannot write the trace"),
        "{said}"
    );
    // With `-o -` the trace is written to standard output.
    let done = record(&["-o", "-"], "exit 5");
    assert_eq!(done.status.code(), Some(5));
    std::fs::write(dir.path().join("out.bin"), &done.stdout).unwrap();
    let text = tr(dir.path(), &["analyze", "out.bin"]);
    assert!(text.contains("exit 5"), "{text}");
    // Without `--best-effort` an older trace is kept.
    std::fs::write(dir.path().join("trace.bin"), "the last recording").unwrap();
    let done = run(dir.path(), &["record", "--cpu", "60000", "--", "true"]);
    assert_eq!(done.status.code(), Some(125));
    assert_eq!(
        std::fs::read(dir.path().join("trace.bin")).unwrap(),
        b"the last recording"
    );
}
