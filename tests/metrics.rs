//! Reads the output of `tr export --format otlp-metrics` with OpenTelemetry's own classes, and checks the Grafana
//! dashboard for these metrics.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;

use common::{ensure, lacks, python, said, trial, Failure, TR};

const OTLP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otlp.py");

fn main() {
    let sending = || python().err().or(lacks("curl"));
    let tests = vec![
        test("metrics_are_the_analysis", python().err(), figures),
        test(
            "metrics_follow_the_conventions",
            python().err(),
            conventions,
        ),
        test("metrics_are_sent_to_their_own_path", sending(), sent),
        test("points_that_are_not_taken_are_an_error", sending(), lost),
        test("metrics_are_of_whole_recordings", None, refused),
        test(
            "the_dashboard_queries_what_is_written",
            python().err(),
            queries,
        ),
        test("the_dashboard_has_grafanas_schema", None, schema),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn test(name: &str, reason: Option<String>, run: fn() -> Result<(), Failure>) -> Trial {
    trial(name, reason, move || Ok(run()?))
}

fn fixture(trace: &str) -> String {
    format!("{}/fixtures/{trace}.bin", env!("CARGO_MANIFEST_DIR"))
}

fn tr(args: &[&str]) -> Result<Output, Failure> {
    Ok(Command::new(TR)
        .args(args)
        .env_remove("http_proxy")
        .output()?)
}

fn rows(text: &[u8]) -> Result<Vec<Value>, Failure> {
    let text = String::from_utf8(text.to_vec())?;
    let lines = text.lines().map(|line| Ok(serde_json::from_str(line)?));
    lines.collect()
}

/// The metric points in the export of a fixture, and the names of those metrics in it that OpenTelemetry's conventions
/// do not contain.
fn points(trace: &str, format: &str, encoding: &str) -> Result<(Vec<Value>, Value), Failure> {
    points_of(&fixture(trace), format, encoding)
}

fn points_of(trace: &str, format: &str, encoding: &str) -> Result<(Vec<Value>, Value), Failure> {
    let file = tempfile::NamedTempFile::new()?;
    let out = tr(&["export", trace, "--format", format, "-o", "-"])?;
    ensure(out.status.success(), || said(&out))?;
    std::fs::write(file.path(), &out.stdout)?;
    let read = Command::new(python()?)
        .args([OTLP, "points"])
        .arg(file.path())
        .arg(encoding)
        .output()?;
    ensure(read.status.success(), || said(&read))?;
    let mut all = rows(&read.stdout)?;
    let unknown = all.pop().ok_or("no names")?;
    Ok((all, unknown))
}

/// The point of this metric, which must have exactly one point.
fn value<'a>(points: &'a [Value], name: &str) -> Option<&'a Value> {
    points.iter().find(|point| point["name"] == name)
}

/// Both encodings have the same points, and their values equal those of `tr analyze` and of the OpenMetrics summary.
fn figures() -> Result<(), Failure> {
    let (all, _) = points("traces/demo", "otlp-metrics", "protobuf")?;
    let (json, _) = points("traces/demo", "otlp-metrics-json", "json")?;
    ensure(all == json, || "the encodings differ".into())?;
    let out = tr(&["analyze", &fixture("traces/demo"), "--format", "json"])?;
    let analysis: Value = serde_json::from_slice(&out.stdout)?;
    let totals = &analysis["totals"];
    for (name, field) in [
        ("process.cpu.time", "on_cpu_ns"),
        ("tr.run_queue", "run_queue_ns"),
        ("tr.wall", "duration_ns"),
    ] {
        let point = value(&all, name).ok_or(name)?;
        let ns = totals[field].as_u64().or(analysis["trace"][field].as_u64());
        let ns = ns.ok_or_else(|| format!("{field}: {totals}"))?;
        ensure(point["value"] == ns as f64 / 1e9, || {
            format!("{name}: {point} {ns}")
        })?;
        ensure(point["unit"] == "s", || format!("{point}"))?;
    }
    let start = analysis["trace"]["start_unix_ns"].as_u64();
    ensure(
        all.iter().all(|point| point["start"].as_u64() == start),
        || format!("{:?}", all[0]),
    )?;
    // The OpenMetrics summary has the same values under the names that Prometheus would give to the exported metrics.
    let out = tr(&["summary", &fixture("traces/demo"), "--format", "metrics"])?;
    let text = String::from_utf8(out.stdout)?;
    let written: BTreeMap<String, &Value> = all
        .iter()
        .filter(|point| {
            point["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("tr."))
        })
        .map(|point| (prometheus(point), &point["value"]))
        .collect();
    let mut compared = 0;
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("held_back"))
    {
        let (name, number) = line.split_once(' ').ok_or("a line")?;
        let Some(value) = written.get(name) else {
            let other = [
                "tr_cpu_seconds",
                "tr_disk_read_bytes",
                "tr_disk_written_bytes",
            ];
            ensure(other.contains(&name), || format!("{name} is not exported"))?;
            continue;
        };
        let (value, number) = (value.as_f64().unwrap_or(-1.0), number.parse::<f64>()?);
        ensure((value - number).abs() < 0.001, || {
            format!("{name}: {value} {number}")
        })?;
        compared += 1;
    }
    ensure(compared >= 3, || format!("{compared} figures: {text}"))?;
    let failed = value(&all, "tr.failed").ok_or("tr.failed")?;
    ensure(failed["value"] == 0, || format!("{failed}"))?;
    let (beside, _) = points("advice/busy-loop", "otlp-metrics", "protobuf")?;
    let others = value(&beside, "tr.run_queue.others").ok_or("no others")?;
    let all = value(&beside, "tr.run_queue").ok_or("tr.run_queue")?;
    let seconds = |point: &Value| point["value"].as_f64().unwrap_or(-1.0);
    ensure(
        seconds(others) > 0.0 && seconds(others) <= seconds(all),
        || format!("{others} {all}"),
    )
}

/// Each metric's name is in OpenTelemetry's conventions or begins with `tr.`. Only metrics of the conventions are sums;
/// ours are gauges.
fn conventions() -> Result<(), Failure> {
    for trace in [
        "traces/demo",
        "traces/build",
        "traces/signals",
        "format/3.10",
    ] {
        let (all, unknown) = points(trace, "otlp-metrics", "protobuf")?;
        ensure(unknown == serde_json::json!([]), || {
            format!("{trace}: {unknown}")
        })?;
        for point in &all {
            let name = point["name"].as_str().unwrap_or_default();
            let ours = name.starts_with("tr.");
            ensure(ours == (point["kind"] == "gauge"), || format!("{point}"))?;
            ensure(ours || point["temporality"] == 2, || format!("{point}"))?;
            let counts = name.starts_with("process.");
            ensure(ours || point["monotonic"] == counts, || format!("{point}"))?;
            ensure(
                point["about"]
                    .as_str()
                    .is_some_and(|about| about.len() > 10),
                || format!("{point}"),
            )?;
            ensure(
                point["facts"]["process.executable.name"].is_string(),
                || format!("{point}"),
            )?;
            ensure(point["facts"].get("cicd.pipeline.run.id").is_none(), || {
                format!("a series a run: {point}")
            })?;
        }
    }
    Ok(())
}

/// Starts a receiver on the loopback interface that answers requests with these replies in turn, and returns its port.
fn receiver(replies: &[&str]) -> Result<(std::process::Child, impl BufRead, String), Failure> {
    let mut child = Command::new(python()?)
        .args([OTLP, "receive"])
        .args(replies)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut port = String::new();
    lines.read_line(&mut port)?;
    Ok((child, lines, port.trim().to_owned()))
}

/// The export is sent again if the receiver is busy (503). The environment variables for all signals and the variables
/// for metrics are used, but not those for traces.
fn sent() -> Result<(), Failure> {
    let (mut child, lines, port) = receiver(&["503", "200"])?;
    let out = Command::new(TR)
        .args([
            "export",
            &fixture("traces/demo"),
            "--format",
            "otlp-metrics",
        ])
        .env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://127.0.0.1:{port}/in"),
        )
        .env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
        .env("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-key=a%20b")
        .env("OTEL_SERVICE_NAME", "mine")
        .env_remove("http_proxy")
        .output()?;
    if !out.status.success() {
        child.kill()?;
    }
    child.wait()?;
    ensure(out.status.success(), || said(&out))?;
    let lines: Vec<String> = lines.lines().collect::<Result<_, _>>()?;
    let request: Value = serde_json::from_str(&lines[0])?;
    let expected = serde_json::json!({
        "path": "/in/v1/metrics", "type": "application/x-protobuf", "key": "a b",
    });
    ensure(request == expected, || format!("{request}"))?;
    let point: Value = serde_json::from_str(&lines[1])?;
    ensure(point["resource"]["service.name"] == "mine", || {
        format!("{point}")
    })
}

fn lost() -> Result<(), Failure> {
    for format in ["otlp-metrics", "otlp-metrics-json"] {
        for (reply, status, says) in [
            ("307", 1, "it redirects to http://127.0.0.1:"),
            (
                "200-5",
                1,
                "rejected 5 data points of the export: older than a day",
            ),
            (
                "200-0",
                0,
                "took all data points and says: older than a day",
            ),
            ("200-html", 0, "whether it has the data points is not known"),
            ("200", 0, ""),
        ] {
            let (mut child, lines, port) = receiver(&[reply])?;
            let url = format!("http://127.0.0.1:{port}");
            let out = tr(&[
                "export",
                &fixture("traces/demo"),
                "--format",
                format,
                "--endpoint",
                &url,
            ])?;
            // The receiver is killed, because it may still wait for a request or print points.
            let _ended = child.kill();
            child.wait()?;
            drop(lines);
            let text = String::from_utf8(out.stderr)?;
            let good = out.status.code() == Some(status) && text.contains(says);
            ensure(good && says.is_empty() == text.is_empty(), || {
                format!("{format} {reply}: {text}")
            })?;
        }
    }
    Ok(())
}

fn refused() -> Result<(), Failure> {
    let demo = fixture("traces/demo");
    for (options, why) in [
        (&["--from", "1s"][..], "metrics are of whole recordings"),
        (
            &["--trace-ids", "github"],
            "--trace-ids takes --format otlp",
        ),
    ] {
        let mut args = vec!["export", &demo, "--format", "otlp-metrics", "-o", "-"];
        args.extend(options);
        let out = tr(&args)?;
        let refused = out.status.code() == Some(2) && out.stdout.is_empty();
        ensure(refused && said(&out).contains(why), || said(&out))?;
    }
    Ok(())
}

/// The name that Prometheus gives to an OTLP metric by default: dots become underscores, the unit is appended unless
/// the unit is in braces, and `_total` follows a sum that only grows.
fn prometheus(point: &Value) -> String {
    let mut name = point["name"].as_str().unwrap_or_default().replace('.', "_");
    name += match point["unit"].as_str() {
        Some("s") => "_seconds",
        Some("By") => "_bytes",
        _ => "",
    };
    if point["monotonic"] == true {
        name += "_total";
    }
    name
}

fn dashboard() -> Result<Value, Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/grafana.json");
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

/// The names in a query that stand before `mark`: metrics before a brace, labels before `=~`.
fn names_before<'a>(query: &'a str, mark: &str) -> Vec<&'a str> {
    let pieces: Vec<&str> = query.split(mark).collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (_, before) = pieces.split_last().unwrap_or((&"", &[]));
    let names = before.iter().map(|piece| {
        let begin = piece.rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
        &piece[begin..]
    });
    names.collect()
}

/// The dashboard queries every metric that exports of recordings contain, and no other metrics and labels.
fn queries() -> Result<(), Failure> {
    let mut metrics = BTreeSet::new();
    let mut labels = BTreeSet::new();
    // The fixtures were recorded before there were samples of the disk, so a new recording is added for those metrics.
    let directory = tempfile::tempdir()?;
    let new = directory.path().join("new.bin");
    let out = Command::new(TR)
        .args(["record", "--method", "ptrace", "-o"])
        .arg(&new)
        .args(["--", "true"])
        .current_dir(&directory)
        .output()?;
    ensure(out.status.success(), || said(&out))?;
    let fixtures = ["traces/demo", "traces/build", "format/3.10"].map(fixture);
    for file in fixtures
        .into_iter()
        .chain([new.to_string_lossy().into_owned()])
    {
        let (all, _) = points_of(&file, "otlp-metrics", "protobuf")?;
        metrics.extend(all.iter().map(prometheus));
        let facts = all.iter().filter_map(|point| point["facts"].as_object());
        labels.extend(
            facts
                .flat_map(|facts| facts.keys())
                .map(|key| key.replace('.', "_")),
        );
    }
    // Exports of jobs in a CI system have these labels in addition.
    labels.extend(
        [
            "vcs_repository_name",
            "vcs_ref_head_name",
            "cicd_pipeline_task_name",
        ]
        .map(str::to_owned),
    );
    let dashboard = dashboard()?;
    let mut queried = BTreeSet::new();
    for panel in dashboard["panels"].as_array().ok_or("panels")? {
        for target in panel["targets"].as_array().ok_or("targets")? {
            let query = target["expr"].as_str().ok_or("expr")?;
            for name in names_before(query, "{") {
                ensure(metrics.contains(name), || {
                    format!("{name} is not written: {metrics:?}")
                })?;
                queried.insert(name.to_owned());
            }
            for name in names_before(query, "=~") {
                ensure(labels.contains(name), || format!("{name} is no label"))?;
            }
            let legend = target["legendFormat"].as_str().ok_or("legend")?;
            for name in names_before(legend, "}}") {
                ensure(labels.contains(name), || format!("{name} is no label"))?;
            }
        }
    }
    let missing: Vec<&String> = metrics.difference(&queried).collect();
    ensure(missing.is_empty(), || format!("in no panel: {missing:?}"))
}

/// Checks the dashboard against those rules of Grafana's kinds/dashboard/dashboard_kind.cue that concern it.
fn schema() -> Result<(), Failure> {
    let dashboard = dashboard()?;
    let uid = dashboard["uid"].as_str().ok_or("uid")?;
    ensure((8..=40).contains(&uid.len()), || uid.into())?;
    ensure(
        dashboard["schemaVersion"]
            .as_u64()
            .is_some_and(|version| version >= 36),
        || "schemaVersion".into(),
    )?;
    ensure(
        dashboard["graphTooltip"]
            .as_u64()
            .is_some_and(|mode| mode <= 2),
        || "graphTooltip".into(),
    )?;
    ensure(dashboard.get("id").is_none(), || {
        "an id is one of a single Grafana".into()
    })?;
    let variables = dashboard["templating"]["list"]
        .as_array()
        .ok_or("variables")?;
    let kinds = [
        "query",
        "adhoc",
        "constant",
        "datasource",
        "interval",
        "textbox",
        "custom",
        "system",
    ];
    let mut names = BTreeSet::new();
    for variable in variables {
        let kind = variable["type"].as_str().unwrap_or_default();
        ensure(kinds.contains(&kind), || format!("{variable}"))?;
        names.insert(variable["name"].as_str().ok_or("name")?.to_owned());
    }
    let panels = dashboard["panels"].as_array().ok_or("panels")?;
    let mut ids = BTreeSet::new();
    let mut covered = BTreeSet::new();
    for panel in panels {
        ensure(ids.insert(panel["id"].as_u64().ok_or("id")?), || {
            format!("{panel}")
        })?;
        ensure(
            panel["title"].is_string() && panel["type"] == "timeseries",
            || format!("{panel}"),
        )?;
        let place = |name: &str| panel["gridPos"][name].as_u64().ok_or("gridPos");
        let (x, y, w, h) = (place("x")?, place("y")?, place("w")?, place("h")?);
        ensure(w > 0 && h > 0 && x + w <= 24, || format!("{panel}"))?;
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            ensure(covered.insert(cell), || format!("panels overlap: {panel}"))?;
        }
        let targets = panel["targets"].as_array().ok_or("targets")?;
        let letters: BTreeSet<_> = targets
            .iter()
            .filter_map(|target| target["refId"].as_str())
            .collect();
        ensure(
            letters.len() == targets.len() && !targets.is_empty(),
            || format!("{panel}"),
        )?;
        for target in targets {
            ensure(target["datasource"]["uid"] == "${datasource}", || {
                format!("{target}")
            })?;
            let query = target["expr"].as_str().unwrap_or_default();
            let used = query
                .split("\"$")
                .skip(1)
                .filter_map(|rest| rest.split_once('"'));
            for (name, _) in used {
                ensure(names.contains(name), || format!("{name} is no variable"))?;
            }
        }
    }
    Ok(())
}
