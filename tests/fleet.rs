//! Tests datasets of many runs: `tr export --format parquet` writes them, and fleet/report.py queries them with DuckDB
//! and Spark.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use libtest_mimic::{Arguments, Trial};
use serde_json::{json, Map, Value};
use tr_sim::fleet::{FleetRun, Plant, BROKEN_RUNS};

use common::{ensure, lacks, list, long, python, trial, Failure, TR};

fn main() {
    let python = python().err();
    let spark = python.clone().or_else(no_spark);
    let tests = vec![
        test("the_runner_knows_every_column", None, columns),
        test("a_run_is_added_once", None, once),
        test("the_ci_system_tells_waits_and_legs", python.clone(), told),
        test("spans_of_other_tools_are_steps", None, imported),
        test("names_stay_inside_the_dataset", None, hostile),
        test("a_large_run_is_small", None, small),
        without_limit(
            "planted_changes_are_found_and_named",
            python.clone(),
            planted,
        ),
        without_limit("spark_gives_the_rows_of_duckdb", spark, spark_equals),
        test("texts_are_no_markup", python.clone(), page),
        test(
            "files_that_do_not_belong_are_named",
            python.clone(),
            damaged,
        ),
        test("forged_runs_are_left_out", python.clone(), forged),
        test(
            "a_compacted_dataset_gives_the_same_answers",
            python.clone(),
            compacted,
        ),
        without_limit("the_package_passes_its_tests", python.clone(), || {
            script("-m", &["unittest", "discover", "-s", "fleet/tests"]).map(drop)
        }),
        test("noise_is_no_change", python.clone(), noise),
        test("pages_alerts_and_the_gate_say_the_same", python, published),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

/// The reason why the datasets are not queried with Spark, if any.
fn no_spark() -> Option<String> {
    if !long() {
        return Some("make test-long installs Java and Spark, and runs it".into());
    }
    let has = python().and_then(|program| {
        let mut python = Command::new(program);
        let status = python.args(["-c", "import pyspark"]).status();
        status.map_err(|error| error.to_string())
    });
    let lacks_spark =
        || (!has.is_ok_and(|has| has.success())).then(|| "pyspark is not installed".to_owned());
    lacks("java").or_else(lacks_spark)
}

/// Makes a test without a time limit, because it takes minutes on a busy machine.
fn without_limit(name: &str, reason: Option<String>, run: fn() -> Result<(), Failure>) -> Trial {
    let test = move || Ok(run()?);
    match reason {
        None => Trial::test(name, test),
        Some(why) => Trial::test(format!("{name} (skipped: {why})"), test).with_ignored_flag(true),
    }
}

fn test(name: &str, reason: Option<String>, run: fn() -> Result<(), Failure>) -> Trial {
    trial(name, reason, move || Ok(run()?))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn output(command: &mut Command) -> Result<Output, Failure> {
    let out = command.output()?;
    ensure(out.status.success(), || {
        format!("{command:?}: {}", String::from_utf8_lossy(&out.stderr))
    })?;
    Ok(out)
}

fn export(trace: &Path, dataset: &Path, more: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new(TR);
    command
        .arg("export")
        .arg(trace)
        .args(["--format", "parquet", "-o"]);
    let out = output(command.arg(dataset).args(more))?;
    Ok(String::from_utf8(out.stderr)?)
}

fn fixture(name: &str) -> PathBuf {
    root().join(format!("fixtures/traces/{name}.bin"))
}

/// The contents of all files below a directory, by path.
fn files(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, Failure> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

/// Compares fleet/tr_fleet/columns.json with the columns that the export writes. With TR_UPDATE the file is written
/// instead.
fn columns() -> Result<(), Failure> {
    let mut tables = String::from("{\n");
    let all = tr_export::dataset::columns();
    for (place, (name, columns)) in all.iter().enumerate() {
        tables += &format!(" \"{name}\": {{\n");
        let lines = columns
            .iter()
            .map(|(name, kind)| format!("  \"{name}\": \"{}\"", kind.name()));
        tables += &lines.collect::<Vec<_>>().join(",\n");
        tables += if place + 1 < all.len() {
            "\n },\n"
        } else {
            "\n }\n}\n"
        };
    }
    let path = root().join("fleet/tr_fleet/columns.json");
    if std::env::var_os("TR_UPDATE").is_some() {
        std::fs::write(&path, &tables)?;
    }
    ensure(std::fs::read_to_string(&path)? == tables, || {
        "fleet/tr_fleet/columns.json differs: run this test with TR_UPDATE=1".into()
    })
}

/// The tests in a JUnit file become rows in the table of a run's steps.
fn imported() -> Result<(), Failure> {
    let imports = root().join("fixtures/imports");
    let (trace, tests) = (imports.join("all.bin"), imports.join("tests.xml"));
    let tests = tests.to_str().ok_or("a path")?;
    let place = tempfile::tempdir()?;
    let steps = |name: &str, more: &[&str]| -> Result<usize, Failure> {
        let dataset = place.path().join(name);
        export(&trace, &dataset, more)?;
        let all = files(&dataset)?;
        let mut steps = all
            .iter()
            .filter(|(path, _)| path.starts_with(dataset.join("steps")));
        let (_, bytes) = steps.next().ok_or("no steps")?;
        Ok(bytes.len())
    };
    let (without, with) = (steps("without", &[])?, steps("with", &["--with", tests])?);
    ensure(with > without, || {
        format!("{with} bytes, {without} without")
    })
}

/// The export takes two facts from GitHub's description of a running job: its wait for a runner, and its name with the
/// value of the matrix.
fn told() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let (trace, jobs) = (place.path().join("a.bin"), place.path().join("jobs.json"));
    let run = FleetRun {
        series: 0,
        number: 0,
        plant: Plant::Quiet,
        since: 0,
    };
    std::fs::write(&trace, run.trace()?)?;
    let text = r#"{"jobs": [
        {"name": "check (gcc)", "created_at": "2026-06-01T00:00:00Z", "started_at": "2026-06-01T00:00:42Z",
         "completed_at": null},
        {"name": "deploy", "created_at": "2026-06-01T00:00:00Z", "started_at": null, "completed_at": null}]}"#;
    std::fs::write(&jobs, text)?;
    let dataset = place.path().join("runs");
    let file = jobs.to_string_lossy();
    export(&trace, &dataset, &["--jobs", &file])?;
    let files = dataset.join("runs/*/*/*.parquet");
    let query = format!(
        "import duckdb; print(duckdb.sql(\"SELECT job, queued_ns FROM '{}'\").fetchall())",
        files.display()
    );
    let out = output(Command::new(python()?).args(["-c", &query]))?;
    let rows = String::from_utf8(out.stdout)?;
    ensure(rows == "[('check (gcc)', 42000000000)]\n", || rows)?;
    std::fs::write(
        &jobs,
        r#"{"jobs": [{"name": "other", "started_at": "2026-01-01T00:00:42Z",
        "completed_at": "2026-01-01T00:00:43Z"}]}"#,
    )?;
    let said = export(&trace, &place.path().join("again"), &["--jobs", &file])?;
    ensure(
        said.contains("none of these jobs is the recording's"),
        || said,
    )
}

/// A run has six files in a dataset. Exporting the run again, under another repository's name, or from a redacted copy
/// changes nothing.
fn once() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let dataset = place.path().join("runs");
    let said = export(&fixture("demo"), &dataset, &[])?;
    ensure(said.contains("in repo=local/date=2026-11-22"), || said)?;
    let before = files(&dataset)?;
    ensure(before.len() == 6, || format!("{:?}", before.keys()))?;
    let redacted = place.path().join("redacted.bin");
    output(
        Command::new(TR)
            .arg("redact")
            .arg(fixture("demo"))
            .arg("-o")
            .arg(&redacted),
    )?;
    for (trace, more) in [
        (fixture("demo"), &[][..]),
        (fixture("demo"), &["--repo", "other"]),
        (redacted, &[]),
    ] {
        let said = export(&trace, &dataset, more)?;
        ensure(said.contains("has this run already"), || said)?;
        ensure(files(&dataset)? == before, || "the dataset changed".into())?;
    }
    // An export that was killed has not yet written its row in `runs`, which marks a run as complete. The next export
    // writes this run again.
    let marker = before
        .keys()
        .find(|path| path.starts_with(dataset.join("runs")));
    std::fs::remove_file(marker.ok_or("no row in runs")?)?;
    export(&fixture("demo"), &dataset, &[])?;
    ensure(files(&dataset)? == before, || {
        "the second attempt differs".into()
    })?;
    export(&fixture("build"), &dataset, &[])?;
    ensure(files(&dataset)?.len() == 12, || "no second run".into())?;
    let mut part = Command::new(TR);
    part.arg("export")
        .arg(fixture("demo"))
        .arg("-o")
        .arg(&dataset);
    let refused = part
        .args(["--format", "parquet", "--from", "1s"])
        .output()?;
    ensure(refused.status.code() == Some(2), || format!("{refused:?}"))
}

/// Whatever the name of a repository is, it becomes one directory inside of the dataset.
fn hostile() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let dataset = place.path().join("runs");
    let long = "x/".repeat(2000);
    let names = [
        "../../../outside",
        "/etc",
        "..",
        "a\nb\u{1b}[31m",
        "",
        "date=1",
        long.as_str(),
    ];
    for name in names {
        // Each name gets a dataset of its own, because a dataset contains a run only once.
        let dataset = dataset.join(format!("{}", name.len()));
        export(&fixture("demo"), &dataset, &["--repo", name])?;
        for path in files(place.path())?.keys() {
            let inside = path.strip_prefix(&dataset).ok();
            let depth = inside.map(|path| path.components().count());
            ensure(depth == Some(4), || format!("{name:?}: {}", path.display()))?;
        }
        std::fs::remove_dir_all(&dataset)?;
    }
    Ok(())
}

/// A run of 10,000 processes takes at most 100 KB in a dataset.
fn small() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let trace = place.path().join("trace.bin");
    let world = tr_sim::scenario::make(16, 2_500);
    let mut config = tr_sim::config::Config::new(world, 16, u64::MAX >> 12);
    config.linger = Some(1_000_000);
    config.kernel.pid_max = 1 << 22;
    config.kernel.max_tasks = 1 << 20;
    let (_, _, truth) = tr_sim::file::record_to(&config, std::fs::File::create(&trace)?)?;
    let count = truth.processes.len();
    ensure(count >= 10_000, || format!("only {count} processes"))?;
    let dataset = place.path().join("runs");
    export(&trace, &dataset, &["--min", "0"])?;
    let sizes = files(&dataset)?;
    let sizes: Vec<(PathBuf, usize)> = sizes
        .into_iter()
        .map(|(path, it)| (path, it.len()))
        .collect();
    let size: usize = sizes.iter().map(|(_, size)| size).sum();
    println!("{count} processes: {size} bytes");
    ensure(size <= 100_000, || {
        format!("{count} processes: {size} bytes: {sizes:?}")
    })
}

/// The number of series of runs. Each of the eight kinds of planted change is in two series. The other 14 series (with
/// `make test-long`, 34) have no change.
fn all_series() -> u32 {
    if long() {
        50
    } else {
        30
    }
}

/// The number of runs in each series.
const RUNS: u32 = 40;
/// The number of the first run that has the planted change.
const SINCE: u32 = 20;

fn plant_of(series: u32) -> Plant {
    let planted = usize::try_from(series).unwrap();
    if planted < 16 {
        Plant::ALL[1 + planted % (Plant::ALL.len() - 1)]
    } else {
        Plant::Quiet
    }
}

/// The dataset of all simulated runs, written once by two exports that run at the same time.
fn fleet() -> Result<&'static Path, Failure> {
    static FLEET: OnceLock<Result<tempfile::TempDir, String>> = OnceLock::new();
    let made = FLEET.get_or_init(|| {
        let place = tempfile::tempdir().map_err(|e| e.to_string())?;
        let next = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let exporter = || {
                let trace = tempfile::NamedTempFile::new()?;
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= all_series() * RUNS {
                        return Ok::<_, Failure>(());
                    }
                    let (series, number) = (at / RUNS, at % RUNS);
                    let plant = plant_of(series);
                    let run = FleetRun {
                        series,
                        number,
                        plant,
                        since: SINCE,
                    };
                    std::fs::write(trace.path(), run.trace()?)?;
                    export(trace.path(), place.path(), &[])?;
                }
            };
            let threads = [scope.spawn(exporter), scope.spawn(exporter)];
            let ends = threads.map(|thread| thread.join().map_err(|_| "panic".to_owned()));
            ends.into_iter()
                .try_for_each(|end| end?.map_err(|e| e.to_string()))
        })?;
        Ok(place)
    });
    Ok(made.as_ref().map_err(Clone::clone)?.path())
}

/// Runs fleet/report.py with these options and returns its output.
fn asked(dataset: &Path, more: &[&str]) -> Result<Output, Failure> {
    let mut command = Command::new(python()?);
    // The queries are short, so the JVM compiles without optimization (`TieredStopAtLevel=1`). With this option, the
    // code cache would be too small, and a warning about it would appear in the standard output. So the code cache is
    // made larger.
    command.env(
        "PYSPARK_SUBMIT_ARGS",
        "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m' \
         --conf 'spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m' pyspark-shell",
    );
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(root().join("fleet/report.py")).arg(dataset);
    Ok(command.args(more).output()?)
}

/// The report of fleet/report.py and its messages on standard error.
fn report(dataset: &Path, more: &[&str]) -> Result<(String, String), Failure> {
    let out = asked(dataset, more)?;
    let said = String::from_utf8(out.stderr)?;
    ensure(out.status.success(), || said.clone())?;
    Ok((String::from_utf8(out.stdout)?, said))
}

fn by_duckdb() -> Result<&'static Map<String, Value>, Failure> {
    static ROWS: OnceLock<Result<Map<String, Value>, String>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let rows = || {
            let (text, _) = report(fleet()?, &["--format", "json"])?;
            Ok::<_, Failure>(serde_json::from_str(&text)?)
        };
        rows().map_err(|error| error.to_string())
    });
    Ok(rows.as_ref().map_err(Clone::clone)?)
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

/// The report names each planted change with its cause, and no other change.
fn planted() -> Result<(), Failure> {
    let rows = Value::Object(by_duckdb()?.clone());
    let coverage = list(&rows, "coverage");
    let runs: u64 = coverage.iter().filter_map(|row| row["runs"].as_u64()).sum();
    ensure(runs == u64::from(all_series() * RUNS), || {
        format!("{runs} runs")
    })?;
    let of = |row: &Value| -> u32 {
        let name = text(row, "series").split(" · ").next().unwrap_or_default();
        name.trim_start_matches("fleet/build-")
            .parse()
            .unwrap_or(u32::MAX)
    };
    let mut found: BTreeMap<u32, Vec<&Value>> = BTreeMap::new();
    for row in list(&rows, "causes") {
        found.entry(of(row)).or_default().push(row);
    }
    for series in 0..all_series() {
        let plant = plant_of(series);
        let changes = found.remove(&series).unwrap_or_default();
        let command: Vec<_> = changes
            .iter()
            .filter(|row| text(row, "kind") == "command")
            .collect();
        let what = || format!("{plant:?}: {changes:#?}");
        let expected = match plant {
            Plant::Quiet | Plant::Flaky | Plant::Broken => {
                ensure(changes.is_empty(), what)?;
                continue;
            }
            Plant::Code => ("cpu", Some("code")),
            Plant::Slower => ("cpu", Some("machine")),
            Plant::Busy => ("starved", Some("others")),
            Plant::Stolen => ("starved", Some("stolen")),
            Plant::Network => ("blocked", Some("network")),
            Plant::Serial => ("shape", None),
        };
        ensure(command.len() == 1, what)?;
        let row = command[0];
        let by = match expected.0 {
            "cpu" => Some(text(row, "who")),
            "starved" => Some(text(row, "starved_by")),
            "blocked" => Some(text(row, "blocked_by")),
            _ => None,
        };
        ensure((text(row, "cause"), by) == expected, what)?;
        let seq = row["seq"].as_u64().unwrap_or(0);
        ensure(seq.abs_diff(u64::from(SINCE) + 1) <= 5, what)?;
        let step = match plant {
            Plant::Code => Some(("code.o", "cpu")),
            Plant::Network => Some(("t/fetch.sh", "blocked")),
            _ => None,
        };
        if let Some((name, cause)) = step {
            let same = |row: &&&Value| text(row, "name") == name && text(row, "cause") == cause;
            ensure(changes.iter().any(|row| same(&row)), what)?;
        }
    }
    let flaky = list(&rows, "flaky_tests").iter();
    let mut flaky: Vec<(u32, &str)> = flaky.map(|row| (of(row), text(row, "name"))).collect();
    flaky.sort_unstable();
    let planted = (0..all_series()).filter(|series| plant_of(*series) == Plant::Flaky);
    let planted: Vec<(u32, &str)> = planted.map(|series| (series, "t/units.sh")).collect();
    ensure(flaky == planted, || format!("{flaky:?}"))?;
    let broken = (0..all_series()).filter(|series| plant_of(*series) == Plant::Broken);
    let failures = list(&rows, "failures").iter();
    let failures = failures.map(|row| {
        (
            of(row),
            row["failed"].as_u64(),
            row["failing_runs"].as_u64(),
        )
    });
    let failures: Vec<_> = failures.collect();
    for series in broken {
        let expected = (series, Some(u64::from(BROKEN_RUNS)), Some(0));
        ensure(failures.contains(&expected), || format!("{failures:?}"))?;
    }
    let (said, _) = report(fleet()?, &[])?;
    let sentences = [
        "CPU work up: the code or its tools, not the runner.",
        "CPU work up: the runner, not your change. The CPUs' frequency is 2.30 GHz, before 3.00 GHz.",
        "CPU unchanged, run-queue wait behind other tasks of the machine up: the runner, not your change.",
        "CPU unchanged, CPU time stolen by the hypervisor up: the runner, not your change.",
        "CPU unchanged, waits for the network up: neither the compiler nor the runner's CPUs.",
        "more of it is on the critical path",
    ];
    for sentence in sentences {
        ensure(said.contains(sentence), || {
            format!("no {sentence:?}: {said}")
        })?;
    }
    Ok(())
}

/// Spark with two executors returns the same rows as DuckDB.
fn spark_equals() -> Result<(), Failure> {
    let master = "local-cluster[2,1,1024]";
    let options = ["--format", "json", "--engine", "spark", "--master", master];
    let (text, _) = report(fleet()?, &options)?;
    let mut spark: Map<String, Value> = serde_json::from_str(&text)?;
    let mut duckdb = by_duckdb()?.clone();
    let engine = spark.remove("engine").unwrap_or_default();
    ensure(engine["executors"] == json!(2), || format!("{engine}"))?;
    duckdb.remove("engine");
    ensure(spark.len() == duckdb.len() && duckdb.len() > 8, || {
        format!("{:?}", duckdb.keys())
    })?;
    for (name, rows) in &duckdb {
        let other = spark.get(name).unwrap_or(&Value::Null);
        ensure(rows == other, || {
            format!("{name}: {rows:#} in DuckDB, {other:#} in Spark")
        })?;
    }
    Ok(())
}

/// Exports the runs of one simulated series into a dataset.
fn series_of(plant: Plant, dataset: &Path, runs: u32) -> Result<(), Failure> {
    let trace = tempfile::NamedTempFile::new()?;
    for number in 0..runs {
        let run = FleetRun {
            series: 0,
            number,
            plant,
            since: runs / 2,
        };
        std::fs::write(trace.path(), run.trace()?)?;
        export(trace.path(), dataset, &[])?;
    }
    Ok(())
}

/// Runs a Python script of the repository, or a module (`-m`). It must succeed; its standard output is returned.
fn script(name: &str, words: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new(python()?);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.current_dir(root()).arg(name).args(words);
    let out = output(&mut command)?;
    Ok(String::from_utf8(out.stdout)?)
}

/// A report stays the same if the files of several runs are merged, if merged and single files exist at the same time,
/// and if earlier results come from a cache.
fn compacted() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let (dataset, cache) = (place.path().join("runs"), place.path().join("cache"));
    series_of(Plant::Code, &dataset, 24)?;
    let name = dataset.to_string_lossy();
    let json = ["--format", "json"];
    let (before, _) = report(&dataset, &json)?;
    let single = files(&dataset)?;
    let said = script("fleet/compact.py", &[&name])?;
    let few = files(&dataset)?.len();
    // Before the merge, each run had six files, one for each table. Now each table has one file for each day, and a day
    // has up to four runs.
    ensure(few * 2 < single.len(), || said.clone())?;
    let (after, _) = report(&dataset, &json)?;
    ensure(before == after, || format!("{before} {after}"))?;
    for (path, bytes) in &single {
        std::fs::write(path, bytes)?;
    }
    let (twice, _) = report(&dataset, &json)?;
    ensure(before == twice, || format!("{before} {twice}"))?;
    script("fleet/compact.py", &[&name])?;
    ensure(files(&dataset)?.len() == few, || "copies stay".into())?;
    let kept = cache.to_string_lossy();
    for _ in 0..2 {
        let (cached, _) = report(&dataset, &["--format", "json", "--cache", &kept])?;
        ensure(before == cached, || format!("{before} {cached}"))?;
    }
    // A run that was exported after the cache was written appears in the report.
    let trace = place.path().join("trace.bin");
    let run = FleetRun {
        series: 0,
        number: 24,
        plant: Plant::Code,
        since: 12,
    };
    std::fs::write(&trace, run.trace()?)?;
    export(&trace, &dataset, &[])?;
    let (fresh, _) = report(&dataset, &["--format", "json", "--cache", &kept])?;
    let runs: Value = serde_json::from_str(&fresh)?;
    let runs = list(&runs, "coverage")[0]["runs"].as_u64();
    ensure(runs == Some(25), || format!("{runs:?}"))
}

/// Tests series of runs with each kind of noise. At most 5 % of the series (one of 20) may have a reported change that
/// does not exist. Planted changes must be found. benches/fleet.py has the full table, with hundreds of series.
fn noise() -> Result<(), Failure> {
    let few = [
        "noise",
        "20",
        "200",
        "independent",
        "autocorrelated",
        "second_order",
        "heavy_tailed",
        "outliers",
        "skewed",
        "weekday",
        "pools",
        "hidden_pools",
        "sticky_hidden_pools",
        "pools_by_day",
        "growth",
    ];
    let words = if long() { &["noise", "200"] } else { &few[..] };
    let said = script("benches/fleet.py", words)?;
    let share = |line: &str, column: usize| -> f64 {
        let cell = line.split_whitespace().nth(column).unwrap_or_default();
        cell.trim_end_matches('%').parse().unwrap_or(f64::NAN)
    };
    let lines: Vec<&str> = said.lines().skip(2).collect();
    ensure(lines.len() >= 10, || said.clone())?;
    for line in lines {
        let growth = line.starts_with("growth");
        let sudden = share(line, 1);
        ensure(sudden <= 5.0, || said.clone())?;
        ensure(growth == (share(line, 2) >= 50.0), || said.clone())?;
        let found = [
            "independent",
            "heavy_tailed",
            "outliers",
            "skewed",
            "second_order",
            "pools ",
            "hidden_pools",
        ];
        if found.iter().any(|name| line.starts_with(name)) {
            // For the noise named `second`, four of five changes are found on average. With only 20 series the share
            // may be lower, so only half of the changes are required.
            let least = if line.starts_with("second") {
                50.0
            } else {
                70.0
            };
            ensure(share(line, 3) >= least, || said.clone())?;
        }
    }
    Ok(())
}

/// The pages load nothing, an alert is sent only once, and the gate fails a run only if it is slower.
fn published() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let (dataset, pages) = (place.path().join("runs"), place.path().join("pages"));
    series_of(Plant::Code, &dataset, 30)?;
    report(
        &dataset,
        &["--html", &pages.to_string_lossy(), "--price", "0.01"],
    )?;
    let all = files(&pages)?;
    ensure(all.len() == 2, || format!("{:?}", all.keys()))?;
    for page in all.values() {
        let page = String::from_utf8_lossy(page);
        for bad in ["src=", "@import", "url("] {
            ensure(!page.contains(bad), || format!("{bad:?} in {page}"))?;
        }
        ensure(page.contains("script-src 'sha256-"), || page.to_string())?;
        ensure(page.contains("CPU work up"), || page.to_string())?;
    }
    let known = place.path().join("known.json");
    let alerts = ["--alerts", &known.to_string_lossy()];
    let (first, _) = report(&dataset, &alerts)?;
    ensure(first.contains("not the runner"), || first.clone())?;
    let (second, _) = report(&dataset, &alerts)?;
    ensure(second.is_empty(), || second.clone())?;
    let runs = files(&dataset.join("runs"))?;
    let of_day = |day: &str| {
        let path = runs
            .keys()
            .find(|path| path.to_string_lossy().contains(day));
        let name = path.and_then(|path| path.file_stem());
        name.map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    // A day has four runs, so run 15, the first one with the change, is on the fourth or fifth day. The gate must pass
    // on the third day and fail on the sixth.
    let days: std::collections::BTreeSet<&str> = runs
        .keys()
        .filter_map(|path| path.parent()?.file_name()?.to_str())
        .collect();
    let days: Vec<&str> = days.into_iter().collect();
    for (day, status) in [(days[2], 0), (days[5], 1)] {
        let gate = asked(&dataset, &["--gate", &of_day(day)])?;
        let said = String::from_utf8_lossy(&gate.stdout);
        ensure(gate.status.code() == Some(status), || {
            format!("{day}: {said}")
        })?;
    }
    Ok(())
}

/// The page loads nothing, and a name in a dataset is never interpreted as markup.
fn page() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let name = "<script>alert(1)</script>\u{202e}\u{7}";
    export(&fixture("demo"), place.path(), &["--repo", name])?;
    let (page, _) = report(place.path(), &["--format", "html"])?;
    ensure(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
        || page.clone(),
    )?;
    for bad in [
        "<script", "src=", "href=", "\u{202e}", "\u{7}", "http:", "https:",
    ] {
        ensure(!page.contains(bad), || format!("{bad:?} in {page}"))?;
    }
    ensure(page.contains("default-src 'none'"), || page.clone())?;
    // The report's file is readable by its owner only, like files that tr writes.
    let file = place.path().join("fleet.html");
    let name = file.to_string_lossy();
    report(place.path(), &["--format", "html", "-o", &name])?;
    let mode = std::fs::metadata(&file)?.permissions().mode() & 0o777;
    ensure(
        mode == 0o600 && std::fs::read_to_string(&file)? == page,
        || format!("{mode:o}"),
    )?;
    let (text, _) = report(place.path(), &[])?;
    ensure(!text.contains(['\u{202e}', '\u{7}']), || text.clone())?;
    let none = asked(place.path(), &["--repo", "no'{such}"])?;
    let said = String::from_utf8_lossy(&none.stderr);
    ensure(
        none.status.code() == Some(2) && said.contains("no run"),
        || said.to_string(),
    )
}

/// Damaged and foreign files are listed and left out. A file from a version that lacked a column is read.
fn damaged() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let dataset = place.path().join("runs");
    series_of(Plant::Quiet, &dataset, 6)?;
    let all = files(&dataset)?;
    let steps = all
        .iter()
        .filter(|(path, _)| path.starts_with(dataset.join("steps")));
    let steps: Vec<(&PathBuf, &Vec<u8>)> = steps.collect();
    let name = |path: &Path| {
        path.strip_prefix(&dataset)
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    // One file is cut short, and one has changed bytes in its compressed data; a text file lies among the tables'
    // files.
    std::fs::write(steps[0].0, &steps[0].1[..steps[0].1.len() - 9])?;
    let mut flipped = steps[1].1.clone();
    for byte in &mut flipped[30..120] {
        *byte ^= 0x5a;
    }
    std::fs::write(steps[1].0, flipped)?;
    std::fs::write(dataset.join("steps/notes.txt"), "hello")?;
    // One file has no column `spent_network_ns`, as an older version wrote it; another one is from a different program.
    let old = steps[2].0.clone();
    let foreign = steps[3].0.with_file_name("foreign.parquet");
    let script = "import duckdb, sys
source, foreign = sys.argv[1:]
duckdb.sql(f\"create table t as select * exclude (spent_network_ns) from read_parquet('{source}', hive_partitioning = false)\")
duckdb.sql(f\"copy t to '{source}' (format parquet, kv_metadata {{'tr.table': 'steps'}})\")
duckdb.sql(f\"copy (select 1 as run) to '{foreign}' (format parquet)\")";
    output(
        Command::new(python()?)
            .args(["-c", script])
            .arg(&old)
            .arg(&foreign),
    )?;
    let copy = steps[4].0.to_string_lossy().replace("/date=", "z/date=");
    std::fs::create_dir_all(Path::new(&copy).parent().unwrap())?;
    std::fs::copy(steps[4].0, &copy)?;
    let mut expected = vec![
        name(steps[0].0),
        name(steps[1].0),
        "steps/notes.txt".to_owned(),
        name(&foreign),
        name(Path::new(&copy)),
    ];
    expected.sort_unstable();
    let mut engines = vec!["duckdb"];
    engines.extend(no_spark().is_none().then_some("spark"));
    for engine in engines {
        let options = [
            "--format", "json", "--engine", engine, "--master", "local[2]",
        ];
        let (text, said) = report(&dataset, &options)?;
        let rows: Value = serde_json::from_str(&text)?;
        let left_out = list(&rows, "left_out").iter();
        let mut left_out: Vec<&str> = left_out.map(|row| row["file"].as_str().unwrap()).collect();
        left_out.sort_unstable();
        ensure(left_out == expected, || {
            format!("{engine}: {left_out:?}, expected {expected:?}")
        })?;
        ensure(expected.iter().all(|file| said.contains(file)), || {
            said.clone()
        })?;
        let steps = list(&rows, "slowest_steps").iter();
        let counts: Vec<u64> = steps.filter_map(|row| row["runs"].as_u64()).collect();
        // The steps of four of six runs count, including the steps of the run with the older version. The steps of the
        // two damaged runs do not count.
        ensure(
            !counts.is_empty() && counts.iter().all(|count| *count == 4),
            || format!("{engine}: {counts:?}"),
        )?;
    }
    Ok(())
}

/// A run with impossible figures, or with text in place of a number, is left out and listed. All other runs are still
/// reported.
fn forged() -> Result<(), Failure> {
    const FILES: usize = 40;
    let place = tempfile::tempdir()?;
    let dataset = place.path().join("runs");
    series_of(Plant::Quiet, &dataset, 6)?;
    let all = files(&dataset)?;
    let of = |table: &str| -> Vec<PathBuf> {
        let table = dataset.join(table);
        all.keys()
            .filter(|path| path.starts_with(&table))
            .cloned()
            .collect()
    };
    let id = |path: &Path| format!("run {}", path.file_stem().unwrap().to_string_lossy());
    let (runs, steps, machine) = (of("runs"), of("steps"), of("machine"));
    // One run has the largest time that a 64-bit integer can hold; the sum of 40 others exceeds it.
    let script = "import duckdb, sys, pathlib
first, second, third, count = sys.argv[1:]
def rewrite(source, target, what):
    duckdb.sql(f\"create or replace table t as select * replace ({what}) from read_parquet('{source}', hive_partitioning = false)\")
    duckdb.sql(f\"copy t to '{target}' (format parquet)\")
for number in range(int(count)):
    run = f'{number:024x}'
    rewrite(first, pathlib.Path(first).with_name(run + '.parquet'), f\"'{run}' as run, 36028797018963968::bigint as wall_ns, 36028797018963968::bigint as path_ns\")
rewrite(first, first, '9223372036854775807::bigint as wall_ns, 9223372036854775807::bigint as path_ns')
rewrite(second, second, \"'long' as wall_ns\")
rewrite(third, third, '-9223372036854775807::bigint as stolen_ns')";
    output(
        Command::new(python()?)
            .args(["-c", script])
            .args([&runs[0], &steps[1], &machine[2]])
            .arg(FILES.to_string()),
    )?;
    let name = steps[1].strip_prefix(&dataset).unwrap();
    let named = [
        id(&runs[0]),
        name.to_string_lossy().into_owned(),
        id(&machine[2]),
    ];
    let mut engines = vec!["duckdb"];
    engines.extend(no_spark().is_none().then_some("spark"));
    for engine in engines {
        let options = [
            "--format", "json", "--engine", engine, "--master", "local[2]",
        ];
        let (text, said) = report(&dataset, &options)?;
        let rows: Value = serde_json::from_str(&text)?;
        let left_out = list(&rows, "left_out").iter();
        let left_out: Vec<&str> = left_out.map(|row| row["file"].as_str().unwrap()).collect();
        ensure(
            named
                .iter()
                .all(|name| left_out.contains(&name.as_str()) && said.contains(name)),
            || format!("{engine}: {left_out:?}, without one of {named:?}"),
        )?;
        let others = left_out.len() - named.len();
        ensure(others == 0 || others == FILES, || {
            format!("{engine}: {left_out:?}")
        })?;
        let steps = list(&rows, "slowest_steps").iter();
        let counts: Vec<u64> = steps.filter_map(|row| row["runs"].as_u64()).collect();
        ensure(
            !counts.is_empty() && counts.iter().all(|count| *count == 3),
            || format!("{engine}: {counts:?}"),
        )?;
    }
    // The gate reads the same tables, so it must also work with the forged files.
    let out = asked(&dataset, &["--gate", &id(&runs[3])[4..]])?;
    let said = String::from_utf8_lossy(&out.stdout);
    let judged = out.status.success() && said.starts_with("gate: ");
    ensure(judged, || said.to_string())
}
