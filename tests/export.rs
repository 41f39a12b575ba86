//! Reads the output of `tr export` with other programs: Perfetto's trace_processor, and parsers of JSON.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use tr_sim::config::{Config, Follow};
use tr_sim::scenario;

use common::{ensure, lacks, python, target, trial, Failure, TR};

fn main() {
    let reason = || trace_processor().err();
    let tests = vec![
        test("perfetto_has_the_analysis_of_builds", reason(), || {
            ["demo", "build", "signals"].iter().try_for_each(|trace| {
                perfetto(trace, &[]).map_err(|e| format!("{trace}: {e}").into())
            })
        }),
        test("perfetto_has_the_analysis_of_a_machine", reason(), || {
            perfetto("linux-6.12-all", &[])
        }),
        test("perfetto_has_the_chosen_processes", reason(), || {
            perfetto("build", &["--comm", "^cc1$"])
        }),
        test("perfetto_has_steps_path_and_wakers", reason(), tracks),
        test("perfetto_has_the_span_alone", reason(), span),
        test("perfetto_merges_what_is_short", reason(), merged),
        test("a_large_recording_keeps_its_totals", None, large),
        test("perfetto_has_a_flow_for_each_wakeup", reason(), flows),
        test("otlp_has_processes_and_steps", python().err(), spans),
        test(
            "otlp_is_sent_again_to_a_busy_receiver",
            python().err(),
            sent,
        ),
        test(
            "spans_that_a_receiver_does_not_take_are_an_error",
            python().err().or(lacks("curl")),
            lost,
        ),
        test("a_receiver_that_is_away_is_an_error", lacks("curl"), away),
        test("otlp_follows_the_conventions", python().err(), conventions),
        test(
            "otlp_is_sent_where_variables_say",
            python().err().or(lacks("curl")),
            by_variables,
        ),
        test("otlp_continues_the_trace_around_it", None, continued),
        test("stacks_have_all_of_the_time", None, stacks),
        test("options_without_effect_are_refused", None, refused),
        test("a_removed_format_names_another", None, removed),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn test(name: &str, reason: Option<String>, run: fn() -> Result<(), Failure>) -> Trial {
    trial(name, reason, move || Ok(run()?))
}

fn fixture(trace: &str) -> String {
    format!("{}/fixtures/traces/{trace}.bin", env!("CARGO_MANIFEST_DIR"))
}

/// The directory with trace_processor, or the reason why it cannot be used.
fn trace_processor() -> Result<PathBuf, String> {
    lacks("node").map_or(Ok(()), Err)?;
    let directory = target("trace_processor")?;
    if directory.join("trace_processor.wasm").is_file() {
        Ok(directory)
    } else {
        Err("scripts/trace_processor.sh has not fetched trace_processor".into())
    }
}

fn export(trace: &str, format: &str, more: &[&str]) -> Result<Vec<u8>, Failure> {
    let out = Command::new(TR)
        .args(["export", &fixture(trace), "--format", format, "-o", "-"])
        .args(more)
        .output()?;
    ensure(out.status.success(), || {
        String::from_utf8_lossy(&out.stderr).into_owned()
    })?;
    Ok(out.stdout)
}

fn analysis(trace: &str, more: &[&str]) -> Result<Value, Failure> {
    let out = Command::new(TR)
        .args(["analyze", &fixture(trace), "--format", "json"])
        .args(more)
        .output()?;
    Ok(serde_json::from_slice(&out.stdout)?)
}

/// The rows that trace_processor returns for SQL queries on an exported trace.
fn query(trace: &Path, queries: &[&str]) -> Result<Vec<Value>, Failure> {
    let out = Command::new("node")
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/trace_processor.mjs"
        ))
        .arg(trace_processor()?)
        .arg(trace)
        .args(queries)
        .output()?;
    ensure(out.status.success(), || {
        String::from_utf8_lossy(&out.stderr).into_owned()
    })?;
    let text = String::from_utf8(out.stdout)?;
    text.lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

/// The CPU time and the blocked time of each process in the export equal those of `tr analyze`.
fn perfetto(trace: &str, more: &[&str]) -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("trace.pftrace");
    std::fs::write(&file, export(trace, "perfetto", more)?)?;
    let rows = query(
        &file,
        &["select p.pid, s.state, sum(s.dur) as ns, sum(case when s.io_wait then s.dur else 0 end) as io \
           from thread_state s join thread t using(utid) \
           join process p using(upid) where p.pid > 0 and p.pid < 4194304 group by 1, 2"],
    )?;
    let mut found: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for row in rows {
        let sums = found.entry(row["pid"].as_u64().unwrap()).or_default();
        match row["state"].as_str().unwrap() {
            "Running" => sums[0] += row["ns"].as_u64().unwrap(),
            "D" => sums[1] += row["ns"].as_u64().unwrap(),
            _ => {}
        }
        sums[2] += row["io"].as_u64().unwrap();
    }
    let analysis = analysis(trace, more)?;
    let mut expected: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for process in analysis["processes"].as_array().unwrap() {
        let ns = |name: &str| process[name].as_u64().unwrap();
        let sums = expected.entry(ns("pid")).or_default();
        sums[0] += ns("on_cpu_ns") - ns("on_cpu_by_kernel_ns");
        sums[1] += ns("blocked_ns");
        sums[2] += ns("block_io_ns");
    }
    ensure(expected.len() > 1, || "no processes".into())?;
    for (pid, sums) in &expected {
        let found = found.get(pid).copied().unwrap_or_default();
        ensure(found[0] == sums[0], || {
            format!("pid {pid}: {found:?} ns on CPU and blocked, expected {sums:?}")
        })?;
        // For some waits, no event shows when the wait ended. The export and the analysis may place such an end
        // differently, by 1 ms at most.
        let near = [1, 2].map(|at| found[at].abs_diff(sums[at]) <= 1_000_000);
        ensure(near == [true; 2], || {
            format!("pid {pid}: blocked and in block I/O {found:?}, expected {sums:?}")
        })?;
    }
    ensure(
        found.values().map(|states| states[0]).sum::<u64>() > 0,
        || "no time".into(),
    )
}

/// The export has the process tree, steps, the critical path, wakers and counters.
fn tracks() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("trace.pftrace");
    std::fs::write(&file, export("demo", "perfetto", &[])?)?;
    let rows = query(
        &file,
        &[
            "select count(*) as n from process where parent_upid is not null",
            "select count(*) as n, sum(s.dur) as ns from slice s join track t on s.track_id = t.id \
             where t.name = 'Critical path'",
            "select count(*) as n from slice s join track t on s.track_id = t.id \
             where t.name in ('Steps', 'Tests')",
            "select count(*) as n from slice s join thread_track t on s.track_id = t.id",
            "include perfetto module sched.thread_executing_span",
            "select count(*) as n from _wakeup_graph where waker_id is not null",
            "select count(*) as n from ftrace_event where name = 'sched_waking'",
            "select count(*) as n, max(c.value) as top from counter c join track t \
             on c.track_id = t.id where t.name = 'recorded tasks on a CPU'",
            "select count(*) as n from stats where severity in ('error', 'data_loss') and value > 0",
            "select cmdline from process where pid = 10525",
            // If a process is not in the recording, such as make's parent, only its pid is known.
            "select count(*) as n, count(distinct pid) as pids, sum(name is null and pid > 0) as unnamed from process",
            "select max(length(s.name)) as longest from slice s join track t on s.track_id = t.id \
             where t.name = 'Critical path'",
            "select count(distinct s.state) as states, max(s.state) as state, count(distinct t.tid) as tasks \
             from thread_state s join thread t using(utid) where t.name = 'not recorded' and s.state != 'Running'",
        ],
    )?;
    let number = |at: usize, name: &str| rows[at][name].as_u64().unwrap();
    let json = analysis("demo", &["--report", "top,critical-path,steps"])?;
    let processes = json["processes"].as_array().unwrap();
    ensure(number(0, "n") == processes.len() as u64, || {
        format!("{rows:?}")
    })?;
    let path = &json["critical_path"]["path"]["wall_ns"];
    ensure(rows[1]["ns"] == *path, || format!("{} {path}", rows[1]))?;
    let steps = json["steps"]["steps"].as_array().unwrap().len() as u64;
    ensure(number(2, "n") == steps, || format!("{} {steps}", rows[2]))?;
    let execs = processes
        .iter()
        .map(|process| process["execs"].as_array().unwrap().len());
    ensure(number(3, "n") == execs.sum::<usize>() as u64, || {
        format!("{}", rows[3])
    })?;
    ensure(number(4, "n") > 100 && number(5, "n") > 100, || {
        format!("{rows:?}")
    })?;
    let top = rows[6]["top"].as_f64().unwrap();
    // The exported counter has one value for each time at which it changes: at least 100 values, and fewer than 1,200.
    let values = 100..1200;
    ensure(
        values.contains(&number(6, "n")) && top > 1.0 && top <= 2.0,
        || format!("{}", rows[6]),
    )?;
    ensure(number(7, "n") == 0, || {
        format!("errors of the importer: {}", rows[7])
    })?;
    let command = rows[8]["cmdline"].as_str().unwrap();
    ensure(command.contains("cc1 -quiet -I"), || command.to_owned())?;
    let twice = number(9, "n") - number(9, "pids");
    ensure(twice == 0 && number(9, "unnamed") == 1, || {
        format!("{}", rows[9])
    })?;
    ensure(number(10, "longest") <= 80, || format!("{}", rows[10]))?;
    // The recording does not show whether an unrecorded task sleeps, so its state is unknown (X). For each of the two
    // CPUs, one task in the export stands for all unrecorded tasks.
    let unknown = number(11, "states") == 1 && rows[11]["state"] == "X";
    ensure(unknown && number(11, "tasks") == 2, || {
        format!("{}", rows[11])
    })
}

/// The export of a part of a recording has nothing outside of that part: no sample of a counter and no event.
fn span() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("trace.pftrace");
    let counts = "select max(ts) - min(ts) as ns from counter";
    let bounds = "select end_ts - start_ts as ns from trace_bounds";
    let mut spans = Vec::new();
    for more in [&[][..], &["--from", "1s", "--to", "2s"]] {
        std::fs::write(&file, export("../format/3.6", "perfetto", more)?)?;
        let rows = query(&file, &[counts, bounds])?;
        let lengths = rows.iter().map(|row| row["ns"].as_f64().unwrap_or(0.0));
        spans.push(lengths.collect::<Vec<_>>());
    }
    let [whole, part] = &spans[..] else {
        return Err("two".into());
    };
    let is_cut = |value: &f64| *value > 0.0 && *value <= 1e9;
    ensure(
        part.iter().all(is_cut) && whole.iter().all(|value| *value > 3e9),
        || format!("{spans:?}"),
    )
}

/// Writes a recording with more events than the memory limit [`LITTLE`] allows in a timeline.
fn large_recording(directory: &Path) -> Result<String, Failure> {
    let mut config = Config::new(scenario::build(12, u32::MAX, 400), 8, u64::MAX >> 12);
    config.follow = Follow::All;
    config.max_events = 600_000;
    config.kernel.pid_max = 1 << 22;
    config.progress = 1_000_000_000;
    let file = directory.join("large.bin");
    let out = std::io::BufWriter::new(std::fs::File::create(&file)?);
    tr_sim::file::record_to(&config, out)?;
    Ok(file.to_string_lossy().into_owned())
}

/// A small memory limit. Half of this memory (12 MiB) is for reading the recording, which takes less if no timeline is
/// kept.
const LITTLE: [&str; 2] = ["--max-memory", "24M"];

fn output(args: &[&str]) -> Result<std::process::Output, Failure> {
    Ok(Command::new(TR).args(args).output()?)
}

/// A recording that is too large for a timeline is read to its end. Figures that need no order of events, such as
/// totals, are the same as without a memory limit. Reports that need the order are null, and a message names them.
fn large() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = large_recording(directory.path())?;
    let reports = "top,critical-path,off-cpu,series,steps,advice";
    let ask = ["analyze", &file, "--report", reports, "--format", "json"];
    let json = |more: &[&str]| -> Result<(Value, String), Failure> {
        let out = output(&[&ask[..], more].concat())?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        ensure(out.status.success(), || said.clone())?;
        Ok((serde_json::from_slice(&out.stdout)?, said))
    };
    let (whole, quiet) = json(&["--max-memory", "2G"])?;
    let (part, said) = json(&LITTLE)?;
    ensure(quiet.is_empty(), || quiet.clone())?;
    ensure(said.contains("--max-memory 1G shows it"), || said.clone())?;
    for member in ["totals", "processes"] {
        ensure(whole[member] == part[member], || format!("{member} differ"))?;
    }
    for report in ["critical_path", "off_cpu", "series", "advice"] {
        ensure(part[report].is_null() && !whole[report].is_null(), || {
            format!("{report}: {}", part[report])
        })?;
    }
    for command in ["summary", "report", "analyze"] {
        let page = directory
            .path()
            .join("page.html")
            .to_string_lossy()
            .into_owned();
        let to = ["-o", &page];
        let to = if command == "report" { &to[..] } else { &[] };
        let out = output(&[&[command, &file], &LITTLE[..], to].concat())?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        ensure(out.status.success(), || format!("{command}: {said}"))?;
        // `tr analyze` prints a table of totals, which needs no order of events; the other commands must say what they
        // left out.
        ensure(
            (command == "analyze") == said.is_empty() || said.contains("left out"),
            || said,
        )?;
    }
    // The first 100 ms of the recording fit into the limit.
    let out = output(&[
        "analyze",
        &file,
        "--report",
        "off-cpu",
        "--to",
        "100ms",
        "--max-memory",
        "40M",
    ])?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    ensure(!text.contains("left out"), || text)
}

/// With `--detail` the export keeps all long stays of a thread on a CPU. The sum of all stays changes by less than a
/// twentieth, although short ones are merged. The export has the same stays with and without a timeline.
fn merged() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = large_recording(directory.path())?;
    let stays = |name: &str, more: &[&str]| -> Result<(Vec<Value>, Vec<Value>, u64), Failure> {
        let to = directory.path().join(name);
        let shown = to.to_string_lossy().into_owned();
        let out = output(&[&["export", &file, "-o", &shown], more].concat())?;
        ensure(out.status.success(), || format!("{out:?}"))?;
        let from = "from sched s join thread t using(utid) where t.tid > 0 and t.tid < 4194304";
        // The query returns sums, because trace_processor returns only some ten thousand rows for an answer.
        let sums = format!(
            "select s.ucpu as cpu, t.tid as tid, count(*) as n, sum(s.dur) as ns, \
             sum((s.ts % 1000003) * (s.dur % 1009)) as mix {from} group by 1, 2 order by 1, 2"
        );
        let long = format!(
            "select s.ts, s.dur, t.tid {from} and s.dur >= 20000000 and s.ucpu = 3 order by 1"
        );
        // Reading the file takes most of the time, so both queries run after one reading.
        let rows = query(&to, &[&sums, &long])?;
        let (sums, long) = rows.into_iter().partition(|row| row.get("mix").is_some());
        Ok((sums, long, std::fs::metadata(&to)?.len()))
    };
    let whole = ["--detail", "0s", "--max-memory", "2G"];
    let (exact, long, large) = stays("a.pftrace", &whole)?;
    let (by_events, _, _) = stays("b.pftrace", &["--detail", "0s", LITTLE[0], LITTLE[1]])?;
    let sum = |rows: &[Value], name: &str| -> u64 {
        rows.iter().filter_map(|row| row[name].as_u64()).sum()
    };
    ensure(sum(&exact, "n") > 400_000 && long.len() > 100, || {
        format!("{} stays, {} long", sum(&exact, "n"), long.len())
    })?;
    ensure(exact == by_events, || {
        let other = exact.iter().zip(&by_events).find(|(a, b)| a != b);
        format!("{} and {} rows: {other:?}", exact.len(), by_events.len())
    })?;
    let detail = ["--detail", "20ms", "--max-memory", "2G"];
    let (coarse, coarse_long, small) = stays("c.pftrace", &detail)?;
    ensure(small < large / 2, || format!("{small} of {large} bytes"))?;
    let (all, kept) = (sum(&exact, "ns"), sum(&coarse, "ns"));
    ensure(all.abs_diff(kept) < all / 20, || {
        format!("{kept} of {all} ns")
    })?;
    // The coarse export may have further stays of at least 20 ms, which were merged from short ones. So the test only
    // looks for long stays that are missing.
    let missing: Vec<&Value> = long
        .iter()
        .filter(|piece| !coarse_long.contains(piece))
        .collect();
    ensure(missing.is_empty(), || {
        format!("{} of {}: {:?}", missing.len(), long.len(), missing.first())
    })
}

fn flows() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("trace.pftrace");
    let from_to = "select a.ts as ts, ta.tid as waker, tb.tid as wakee from flow f \
        join slice a on f.slice_out = a.id join thread_track xa on a.track_id = xa.id \
        join thread ta on xa.utid = ta.utid join slice b on f.slice_in = b.id \
        join thread_track xb on b.track_id = xb.id join thread tb on xb.utid = tb.utid";
    let wakings = "select r.ts as ts, w.tid as waker, t.tid as wakee from thread_state s \
        join thread t using(utid) join thread w on w.utid = s.waker_utid \
        join ftrace_event r on r.ts = s.ts and r.name = 'sched_waking' \
        where s.irq_context = 0 and w.tid > 0 and w.tid < 4194304";
    for (more, least) in [(&[][..], 0), (&["--flows"][..], 100)] {
        std::fs::write(&file, export("demo", "perfetto", more)?)?;
        let rows = query(
            &file,
            &[&format!("select * from ({from_to}) order by 1, 3")],
        )?;
        ensure(
            rows.len() >= least && (least > 0 || rows.is_empty()),
            || format!("{} flows", rows.len()),
        )?;
        let known = query(&file, &[wakings])?;
        let missing = known.iter().filter(|row| least > 0 && !rows.contains(row));
        let missing: Vec<&Value> = missing.collect();
        ensure(missing.is_empty() && known.len() > 100, || {
            format!(
                "{} of {}: {:?}",
                missing.len(),
                known.len(),
                missing.first()
            )
        })?;
    }
    Ok(())
}

const OTLP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otlp.py");

fn rows(text: &[u8]) -> Result<Vec<Value>, Failure> {
    let text = String::from_utf8(text.to_vec())?;
    let lines = text.lines().map(|line| Ok(serde_json::from_str(line)?));
    lines.collect()
}

/// OpenTelemetry's own classes read both encodings: both have the same spans, in one tree, with the times of `tr
/// analyze`.
fn spans() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let read = |format: &str, encoding: &str| -> Result<Vec<Value>, Failure> {
        let file = directory.path().join(format);
        std::fs::write(&file, export("demo", format, &[])?)?;
        let out = Command::new(python()?)
            .args([OTLP, "read"])
            .arg(&file)
            .arg(encoding)
            .output()?;
        ensure(out.status.success(), || {
            String::from_utf8_lossy(&out.stderr).into_owned()
        })?;
        rows(&out.stdout)
    };
    let all = read("otlp", "protobuf")?;
    ensure(all == read("otlp-json", "json")?, || "not equal".into())?;
    let json = analysis("demo", &["--report", "top,steps"])?;
    let text = |span: &Value, name: &str| span[name].as_str().unwrap().to_owned();
    let ids: BTreeMap<String, &Value> = all.iter().map(|span| (text(span, "id"), span)).collect();
    ensure(ids.len() == all.len(), || "ids are not unique".into())?;
    let roots = all.iter().filter(|span| text(span, "parent").is_empty());
    ensure(roots.count() == 1, || "roots".into())?;
    ensure(
        all.iter().all(|value| value["trace"] == all[0]["trace"]),
        || "one trace".into(),
    )?;
    let start = json["trace"]["start_unix_ns"].as_u64().unwrap();
    let mut long = 0;
    for process in json["processes"].as_array().unwrap() {
        let found = all
            .iter()
            .find(|value| value["facts"]["process.pid"] == process["pid"]);
        if process["wall_ns"].as_u64().unwrap() < 100_000_000 {
            ensure(found.is_none(), || format!("short: {process}"))?;
            continue;
        }
        let span = found.ok_or_else(|| format!("missing: {process}"))?;
        long += 1;
        ensure(
            span["facts"]["tr.on_cpu_ns"] == process["on_cpu_ns"],
            || format!("{span} {process}"),
        )?;
        ensure(span["facts"]["process.exit.code"] == 0, || {
            format!("{span}")
        })?;
        let args = span["facts"]["process.command_args"].as_array().unwrap();
        ensure(args == process["argv"].as_array().unwrap(), || {
            format!("{span} {process}")
        })?;
        // A step's span begins at the exec, later than its process, so only the ends are compared. The recording's own
        // span, which has no parent, ends after COMMAND. So it is skipped.
        if text(span, "parent").is_empty() {
            continue;
        }
        let end = start + process["end_ns"].as_u64().unwrap();
        ensure(span["end"] == end, || format!("{span} {end}"))?;
        // The span that contains this one belongs to the nearest recorded ancestor process that has a span.
        let mut parent = *ids.get(&text(span, "parent")).ok_or("no parent")?;
        // The execution of COMMAND is a step whose span has no pid, because the span of the whole recording has
        // COMMAND's pid. If this step is the parent, the pid of the next outer span is compared.
        if parent["facts"]["process.pid"].is_null() {
            parent = ids.get(&text(parent, "parent")).ok_or("no parent")?;
        }
        let pids: Vec<&Value> = lineage(&json, process);
        ensure(pids.contains(&&parent["facts"]["process.pid"]), || {
            format!("{span} in {parent}")
        })?;
    }
    ensure(long > 10, || format!("{long} processes"))?;
    let test = all.iter().find(|value| value["name"] == "tests/sleep.sh");
    let test = &test.ok_or("no test")?["facts"];
    ensure(
        test["test.case.name"] == "tests/sleep.sh" && test["test.case.result.status"] == "pass",
        || format!("{test}"),
    )
}

/// Runs tests/otlp.py.
fn otlp_py(args: &[&str]) -> Result<std::process::Output, Failure> {
    Ok(Command::new(python()?).arg(OTLP).args(args).output()?)
}

/// Both encodings contain the same message, to the last empty field. All attributes have names from the list of
/// OpenTelemetry's conventions, a failed span has an error type, no process has two spans, and spans have few different
/// names.
fn conventions() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let mut failures = 0;
    for trace in ["demo", "build", "signals", "linux-6.1"] {
        let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        let (protobuf, json) = (path("otlp"), path("json"));
        let min = ["--min", "0ms"];
        std::fs::write(&protobuf, export(trace, "otlp", &min)?)?;
        std::fs::write(&json, export(trace, "otlp-json", &min)?)?;
        let same = otlp_py(&["same", &protobuf, &json])?;
        ensure(same.status.success(), || format!("{trace}: not the same"))?;
        let out = otlp_py(&["names", &protobuf])?;
        let names: Value = serde_json::from_slice(&out.stdout)?;
        ensure(names["unknown"] == serde_json::json!([]), || {
            format!("{names}")
        })?;
        ensure(
            names["schemas"] == serde_json::json!([names["conventions"]]),
            || format!("{names}"),
        )?;
        let all = rows(&otlp_py(&["read", &protobuf, "protobuf"])?.stdout)?;
        let mut pids = BTreeMap::new();
        for span in &all {
            let facts = &span["facts"];
            let failed = span["status"] == 2;
            failures += usize::from(failed);
            ensure(failed == facts["error.type"].is_string(), || {
                format!("{span}")
            })?;
            let task = facts["cicd.pipeline.task.name"].is_string();
            ensure(
                task == facts["cicd.pipeline.task.run.id"].is_string(),
                || format!("{span}"),
            )?;
            if let Some(pid) = facts["process.pid"].as_u64() {
                let start = facts["process.creation.time"].to_string();
                let twice = pids.insert((pid, start), span["name"].clone());
                ensure(twice.is_none(), || format!("{span} and {twice:?}"))?;
                let test = facts["test.case.name"].is_string();
                ensure(
                    test || span["name"] == facts["process.executable.name"],
                    || format!("{span}"),
                )?;
            }
        }
    }
    ensure(failures > 0, || "nothing failed".into())
}

/// The environment variables of OpenTelemetry choose the receiver, the protocol and the resource.
fn by_variables() -> Result<(), Failure> {
    use std::io::{BufRead, BufReader};
    let mut receiver = Command::new(python()?)
        .args([OTLP, "receive", "200"])
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines();
    let port = lines.next().ok_or("no port")??;
    let out = Command::new(TR)
        .args(["export", &fixture("demo")])
        .env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://127.0.0.1:{port}/in/"),
        )
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
        .env(
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=a,deployment.environment.name=b%20c",
        )
        .env("OTEL_SERVICE_NAME", "mine")
        .env_remove("http_proxy")
        .output()?;
    if !out.status.success() {
        receiver.kill()?;
    }
    receiver.wait()?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    let request: Value = serde_json::from_str(&lines[0])?;
    ensure(
        request["path"] == "/in/v1/traces" && request["type"] == "application/json",
        || format!("{request}"),
    )?;
    let span: Value = serde_json::from_str(&lines[1])?;
    let resource = &span["resource"];
    ensure(
        resource["service.name"] == "mine" && resource["deployment.environment.name"] == "b c",
        || format!("{resource}"),
    )?;
    let out = Command::new(TR)
        .args(["export", &fixture("demo")])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .output()?;
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    ensure(
        out.status.code() == Some(2) && text.contains("http/protobuf"),
        || text,
    )
}

/// The pids of all ancestors of a process, its parent first.
fn lineage<'a>(json: &'a Value, process: &'a Value) -> Vec<&'a Value> {
    let all = json["processes"].as_array().unwrap();
    let parent = |value: &&'a Value| all.iter().find(|parent| parent["pid"] == value["ppid"]);
    let line = std::iter::successors(parent(&process), parent);
    line.map(|process| &process["pid"]).collect()
}

fn sent() -> Result<(), Failure> {
    use std::io::{BufRead, BufReader};
    let mut receiver = Command::new(python()?)
        .args([OTLP, "receive", "503", "200"])
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines();
    let port = lines.next().ok_or("no port")??;
    let out = Command::new(TR)
        .args(["export", &fixture("demo"), "--format", "otlp", "--endpoint"])
        .arg(format!("http://127.0.0.1:{port}"))
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
        .env_remove("http_proxy")
        .output()?;
    if !out.status.success() {
        receiver.kill()?;
    }
    receiver.wait()?;
    ensure(out.status.success(), || {
        String::from_utf8_lossy(&out.stderr).into_owned()
    })?;
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    let request: Value = serde_json::from_str(&lines[0])?;
    let expected = serde_json::json!({
        "path": "/v1/traces", "type": "application/x-protobuf", "key": "a b",
    });
    ensure(request == expected, || format!("{request}"))?;
    ensure(lines.len() > 10, || format!("{} spans", lines.len()))
}

/// The exit status and the messages of an export to a receiver that answers with `reply`.
fn answered(reply: &str, format: &str) -> Result<(Option<i32>, String), Failure> {
    use std::io::{BufRead, BufReader};
    let mut receiver = Command::new(python()?)
        .args([OTLP, "receive", reply])
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines();
    let port = lines.next().ok_or("no port")??;
    let out = Command::new(TR)
        .args(["export", &fixture("demo"), "--format", format, "--endpoint"])
        .arg(format!("http://127.0.0.1:{port}"))
        .env_remove("http_proxy")
        .output()?;
    // The receiver is killed, because it may still wait for a request or print spans.
    let _ended = receiver.kill();
    receiver.wait()?;
    Ok((
        out.status.code(),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    ))
}

/// If the receiver did not take all spans, the export must say so.
fn lost() -> Result<(), Failure> {
    for format in ["otlp", "otlp-json"] {
        for (reply, status, says) in [
            (
                "307",
                1,
                "the status 307\ntr: it redirects to http://127.0.0.1:",
            ),
            (
                "200-5",
                1,
                "rejected 5 spans of the export: older than a day",
            ),
            ("200-0", 0, "took all spans and says: older than a day"),
            ("200-html", 0, "whether it has the spans is not known"),
            ("200", 0, ""),
        ] {
            let (code, said) = answered(reply, format)?;
            ensure(code == Some(status) && said.contains(says), || {
                format!("{format} {reply}: {code:?} {said}")
            })?;
            ensure(says.is_empty() == said.is_empty(), || said.clone())?;
        }
    }
    Ok(())
}

fn away() -> Result<(), Failure> {
    // The port is free again when the socket is closed, so nothing listens on it.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let out = Command::new(TR)
        .args(["export", &fixture("demo"), "--format", "otlp", "--endpoint"])
        .arg(format!("http://127.0.0.1:{port}"))
        .env_remove("http_proxy")
        .output()?;
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    ensure(out.status.code() == Some(1), || text.clone())?;
    ensure(text.contains("did not accept the export"), || text.clone())
}

/// If a recording runs inside of a span, its export belongs to the trace of that span.
fn continued() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("trace.bin");
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let long = "x".repeat(5_000);
    for around in [
        format!("00-{trace}-{span}-01"),
        format!(" 00-{trace}-{span}-01\t"),
        format!("01-{trace}-{span}-01-{long}"),
    ] {
        continued_in(&file, &around, [trace, span])?;
    }
    Ok(())
}

/// COMMAND's environment and the export have the same trace id, and the same id of the span around the recording.
fn continued_in(file: &Path, around: &str, [trace, span]: [&str; 2]) -> Result<(), Failure> {
    let out = Command::new(TR)
        .args(["record", "--method", "ptrace", "--force", "-o"])
        .arg(file)
        .args(["--", "sh", "-c", "printf %s \"$TRACEPARENT\"; exit 1"])
        .env("TRACEPARENT", around)
        .output()?;
    ensure(out.status.code() == Some(1), || format!("{out:?}"))?;
    let passed = String::from_utf8(out.stdout)?;
    let out = Command::new(TR)
        .arg("export")
        .arg(file)
        .args(["--format", "otlp-json", "-o", "-"])
        .output()?;
    let json: Value = serde_json::from_slice(&out.stdout)?;
    let root = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    ensure(
        root["traceId"] == trace && root["parentSpanId"] == span,
        || format!("{root}"),
    )?;
    // COMMAND gets the recording's span as its parent, so spans of its own tracing lie inside of it.
    let own = root["spanId"].as_str().unwrap_or_default();
    ensure(
        passed == format!("00-{trace}-{own}-01") && own != span,
        || format!("{passed} {root}"),
    )?;
    ensure(root["status"]["message"] == "exit 1", || format!("{root}"))
}

/// Options that do not fit the format or the recording are refused, and nothing is written.
fn refused() -> Result<(), Failure> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    for (format, options, why) in [
        (
            "folded",
            &["--weight", "stacks"][..],
            "tr record --stacks does",
        ),
        (
            "folded",
            &["--weight", "waits"],
            "tr record --off-cpu-stacks does",
        ),
        (
            "perfetto",
            &["--weight", "cpu"],
            "--weight takes --format folded",
        ),
        ("folded", &["--flows"], "--flows takes --format perfetto"),
        (
            "otlp",
            &["--detail", "1ms"],
            "--detail takes --format perfetto",
        ),
        ("folded", &["--repo", "x"], "--repo takes --format parquet"),
        (
            "parquet",
            &["--weight", "wall"],
            "--weight takes --format folded",
        ),
    ] {
        let mut tr = Command::new(TR);
        tr.arg("export")
            .arg(&demo)
            .args(["--format", format, "-o", "-"]);
        let out = tr.args(options).output()?;
        let said = String::from_utf8(out.stderr)?;
        let refused = out.status.code() == Some(2) && out.stdout.is_empty();
        ensure(refused && said.contains(why), || {
            format!("{format}: {said}")
        })?;
    }
    Ok(())
}

fn stacks() -> Result<(), Failure> {
    let json = analysis("demo", &[])?;
    let processes = json["processes"].as_array().unwrap();
    let all = |name: &str| {
        processes
            .iter()
            .map(|process| process[name].as_u64().unwrap())
            .sum::<u64>()
    };
    let folded = String::from_utf8(export("demo", "folded", &[])?)?;
    let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1);
    let sum: u64 = weights.map(|weight| weight.parse::<u64>().unwrap()).sum();
    ensure((sum * 1000).abs_diff(all("on_cpu_ns")) < 1_000_000, || {
        format!("{sum} µs")
    })?;
    ensure(folded.contains(";cc kernels_4.c;cc1 kernels_4.c "), || {
        folded.clone()
    })?;
    let waits = all("run_queue_ns") + all("sleep_ns") + all("blocked_ns");
    let waiting = export("demo", "folded", &["--weight", "waiting"])?;
    let waiting = String::from_utf8(waiting)?;
    let weights = waiting.lines().map(|line| line.rsplit_once(' ').unwrap().1);
    let sum: u64 = weights.map(|weight| weight.parse::<u64>().unwrap()).sum();
    ensure((sum * 1000).abs_diff(waits) < 1_000_000, || {
        format!("{sum} µs, {waits} ns")
    })?;
    // Below each process are the functions of its samples, or of its waits.
    for (weight, field, name) in [
        ("stacks", "ns", ";hot fork;"),
        ("waits", "off_cpu_ns", ";hot wait;"),
    ] {
        let folded = export("../format/3.6", "folded", &["--weight", weight])?;
        let folded = String::from_utf8(folded)?;
        let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1);
        let sum: u64 = weights.map(|weight| weight.parse::<u64>().unwrap()).sum();
        let flame = analysis("../format/3.6", &["--report", "flame"])?;
        let expected = flame["flame"][field].as_u64().unwrap() / 1000;
        let good =
            sum.abs_diff(expected) < 100 && folded.contains(name) && folded.contains(";main;");
        ensure(good, || format!("{weight} {sum} {expected}: {folded}"))?;
    }
    // The wall time of the tree is that of its root process, minus the time in which several children ran at the same
    // time.
    let wall = String::from_utf8(export("demo", "folded", &["--weight", "wall"])?)?;
    ensure(wall.lines().any(|line| line.contains("sleep 0.4")), || {
        wall.clone()
    })
}

/// A format that an earlier version had is refused, and the message names its replacement.
fn removed() -> Result<(), Failure> {
    for (format, instead) in [("chrome", "perfetto"), ("speedscope", "folded")] {
        let mut tr = Command::new(TR);
        tr.args(["export", &fixture("demo"), "-o", "-", "--format", format]);
        let out = tr.output()?;
        let text = String::from_utf8(out.stderr)?;
        let refused = out.status.code() == Some(2) && out.stdout.is_empty();
        let tip = format!("{format} was removed: use --format {instead}");
        ensure(refused && text.contains(&tip), || text.clone())?;
    }
    Ok(())
}
