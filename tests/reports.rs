//! Tests properties of the reports on recorded traces, and help and errors of the command line. tests/snapshots.rs
//! compares the texts of reports.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;
#[path = "common/rewrite.rs"]
mod rewrite;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{ensure, schema, Failure, TR};
use serde_json::Value;

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces")
}

fn run(args: &[&str]) -> Result<Output, Failure> {
    Ok(Command::new(TR)
        .args(args)
        .current_dir(traces())
        .env_remove("COLUMNS")
        .output()?)
}

fn output(args: &[&str]) -> Result<String, Failure> {
    let out = run(args)?;
    ensure(out.status.success(), || {
        format!("{args:?}: {}", String::from_utf8_lossy(&out.stderr))
    })?;
    Ok(String::from_utf8(out.stdout)?)
}

const TRACES: [&str; 7] = [
    "build",
    "daemon",
    "demo",
    "leader_first",
    "signals",
    "thread_exec",
    "vfork_exec",
];
const REPORTS: [&str; 4] = ["tree", "execs", "series", "cpus"];

/// The paths of all recordings in the repository.
fn recordings() -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for directory in ["fixtures/traces", "fixtures/advice"] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        for entry in std::fs::read_dir(directory)? {
            let file = entry?.path();
            if file.extension().is_some_and(|end| end == "bin") {
                all.push(file);
            }
        }
    }
    all.sort();
    Ok(all)
}

/// No line of any report is wider than the terminal, and shortened names can still be told apart.
#[test]
fn every_line_of_every_report_fits() -> Result<(), Failure> {
    let all = recordings()?;
    assert!(all.len() > 50, "{}", all.len());
    for file in &all {
        for columns in ["60", "80", "100", "160"] {
            let out = Command::new(TR)
                .args(["analyze", "--report", "all", "--top", "15"])
                .arg(file)
                .env("COLUMNS", columns)
                .output()?;
            ensure(out.status.success(), || format!("{file:?} {columns}"))?;
            let text = String::from_utf8(out.stdout)?;
            // The line with the next command is not broken, because users paste it.
            for line in text.lines().filter(|line| !line.starts_with("next: ")) {
                let width = tr_text::units::width(line);
                ensure(width <= columns.parse()?, || {
                    format!("{file:?} at {columns} columns has {width}: {line}")
                })?;
            }
        }
    }
    for by in ["process", "thread", "program", "step", "function"] {
        let args = ["analyze", "../format/3.6.bin", "--by", by, "--width", "80"];
        let reports = match by {
            "function" => "critical-path",
            _ => "flame",
        };
        let text = output(&[&args[..], &["--report", reports]].concat())?;
        for line in text.lines() {
            ensure(tr_text::units::width(line) <= 80, || {
                format!("{by}: {line}")
            })?;
        }
    }
    let narrow = output(&["analyze", "build.bin", "--top", "5"])?;
    for name in ["cc1 kernels_2.c", "cc1 kernels_1.c"] {
        assert!(
            narrow.contains(name),
            "80 columns if nothing says otherwise: {narrow}"
        );
    }
    assert!(narrow.lines().all(|line| tr_text::units::width(line) <= 80));
    Ok(())
}

/// `--color` decides about colours. Without this option, environment variables decide. Output that is no terminal has
/// no colours by default.
#[test]
fn colours_follow_the_option_and_the_variables() -> Result<(), Failure> {
    let colours = |option: &[&str], variables: &[(&str, &str)]| -> Result<bool, Failure> {
        let out = Command::new(TR)
            .args(["analyze", "demo.bin"])
            .args(option)
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("FORCE_COLOR")
            .envs(variables.iter().copied())
            .current_dir(traces())
            .output()?;
        ensure(out.status.success(), || {
            String::from_utf8_lossy(&out.stderr).into()
        })?;
        Ok(out.stdout.contains(&0x1b))
    };
    assert!(!colours(&[], &[])?);
    assert!(colours(&["--color", "always"], &[("NO_COLOR", "1")])?);
    assert!(colours(&[], &[("FORCE_COLOR", "1")])?);
    assert!(colours(&[], &[("CLICOLOR_FORCE", "1")])?);
    assert!(!colours(&[], &[("CLICOLOR_FORCE", "0")])?);
    // The order of precedence is that of https://bixense.com/clicolors.
    assert!(!colours(
        &[],
        &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]
    )?);
    assert!(!colours(&["--color", "never"], &[("FORCE_COLOR", "1")])?);
    Ok(())
}

/// In Markdown a table has the same rows as in CSV, and all other lines are code.
#[test]
fn markdown_has_the_tables() -> Result<(), Failure> {
    let args = ["analyze", "demo.bin", "--top", "6", "--format"];
    let text = output(&[&args[..], &["markdown"]].concat())?;
    assert!(
        text.starts_with("### Where the time went\n\n```text\n"),
        "{text}"
    );
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    let pid = |row: &&str| row.split(" | ").nth(7).unwrap_or_default().to_owned();
    let pids: Vec<String> = rows.iter().skip(2).map(pid).collect();
    let table = output(&[&args[..], &["csv"]].concat())?;
    let of_csv = table.lines().skip(1);
    let of_csv: Vec<String> = of_csv
        .map(|row| row.split(',').nth(2).unwrap_or_default().to_owned())
        .collect();
    assert_eq!(pids, of_csv, "{text}");
    assert_eq!(text.matches("```").count() % 2, 0, "{text}");
    assert!(!text.contains('\u{1}'));
    Ok(())
}

/// A part that begins after the recording's end is an error, and so is a file that is no recording. The message has the
/// reason.
#[test]
fn errors_name_the_reason() -> Result<(), Failure> {
    for command in ["analyze", "report"] {
        let out = run(&[command, "demo.bin", "--from", "50s"])?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.contains("--from 50s is after the end of the recording"),
            "{said}"
        );
    }
    let out = run(&["analyze", "build.strace"])?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        said.contains("not a tr recording (it looks like text)"),
        "{said}"
    );
    Ok(())
}

/// JSON and CSV have all rows, ordered by start, unless options choose certain rows. With such options, JSON and CSV
/// have the same rows as the text.
#[test]
fn json_and_csv_have_the_chosen_rows() -> Result<(), Failure> {
    let rules: Value =
        serde_json::from_str(include_str!("../crates/report/schema/analysis.schema.json"))?;
    let ask = |options: &[&str]| -> Result<Value, Failure> {
        let args = [&["analyze", "demo.bin", "--format", "json"][..], options].concat();
        let document: Value = serde_json::from_str(&output(&args)?)?;
        schema::validate(&rules, &document).map_err(|e| format!("{options:?}: {e}"))?;
        Ok(document)
    };
    let csv = |options: &[&str], column: &str| -> Result<Vec<String>, Failure> {
        let args = [&["analyze", "demo.bin", "--format", "csv"][..], options].concat();
        let text = output(&args)?;
        let mut lines = text.lines();
        let names = lines.next().unwrap_or_default().split(',');
        let at = names.enumerate().find(|(_, name)| *name == column);
        let at = at.ok_or("no such column")?.0;
        let cell = |line: &str| line.split(',').nth(at).unwrap_or_default().to_owned();
        Ok(lines.map(cell).collect())
    };
    let each = |list: &Value, name: &str| -> Vec<String> {
        let list = list.as_array().expect("an array").iter();
        list.map(|one| one[name].to_string().trim_matches('"').to_owned())
            .collect()
    };
    let all = ask(&[])?;
    assert!(all.get("rows").is_none() && all.get("by").is_none());
    assert_eq!(all["processes"].as_array().map(Vec::len), Some(127));
    let starts = all["processes"].as_array().expect("an array").iter();
    assert!(starts.is_sorted_by_key(|process| process["start_ns"].as_u64()));

    // The five rows with the most CPU time, and the five with the longest wall time.
    for (sort, key) in [(None, "on_cpu_ns"), (Some("wall"), "wall_ns")] {
        let sort = sort.map_or(vec![], |sort| vec!["--sort", sort]);
        let options = [&["--top", "5"][..], &sort].concat();
        let five = ask(&options)?;
        let mut most: Vec<u64> = each(&all["processes"], key)
            .iter()
            .map(|ns| ns.parse().expect("ns"))
            .collect();
        most.sort_unstable_by(|a, b| b.cmp(a));
        let most: Vec<String> = most[..5].iter().map(u64::to_string).collect();
        assert_eq!(each(&five["processes"], key), most, "{key}");
        assert_eq!(each(&five["processes"], "pid"), csv(&options, "pid")?);
        assert_eq!(five["totals"], all["totals"]);
        assert_eq!(
            ask(&sort)?["processes"].as_array().map(Vec::len),
            Some(127),
            "{sort:?}"
        );
    }

    // The document has the rows of a grouping in addition to the processes. Both have the same sum.
    for by in ["thread", "program", "comm", "cgroup", "depth"] {
        let rows = ask(&["--by", by])?;
        assert_eq!(rows["by"], by);
        assert_eq!(rows["processes"], all["processes"], "{by}");
        let sum: u64 = each(&rows["rows"], "on_cpu_ns")
            .iter()
            .map(|ns| ns.parse::<u64>().expect("ns"))
            .sum();
        assert_eq!(all["totals"]["on_cpu_ns"], sum, "{by}");
    }
    let options = ["--by", "program", "--top", "3", "--sort", "rss"];
    let three = ask(&options)?;
    assert_eq!(each(&three["rows"], "name").len(), 3);
    for name in ["name", "count", "on_cpu_ns", "max_rss_bytes"] {
        assert_eq!(each(&three["rows"], name), csv(&options, name)?, "{name}");
    }
    let grouped = ask(&["--group", "compile=program:^cc1$"])?;
    assert_eq!(grouped["by"], "group");
    assert_eq!(each(&grouped["rows"], "name"), ["compile", "other"]);

    // `--top` cuts lists whose rows do not add up to a total.
    let reports = "execs,off-cpu,run-queue,histogram,max-off-cpu,series,tree";
    let two = ask(&["--report", reports, "--top", "2", "--by", "process"])?;
    for list in [
        &two["execs"],
        &two["off_cpu"]["groups"],
        &two["off_cpu"]["longest"],
        &two["run_queue"]["groups"],
        &two["histogram"]["groups"],
        &two["max_off_cpu"]["rows"],
        &two["series"]["processes"],
    ] {
        assert_eq!(list.as_array().map(Vec::len), Some(2), "{list}");
    }
    assert_eq!(two["tree"].as_array().map(Vec::len), Some(127));
    let longest = csv(&["--report", "max-off-cpu", "--top", "2"], "max_off_cpu_ns")?;
    assert_eq!(each(&two["max_off_cpu"]["rows"], "max_off_cpu_ns"), longest);
    Ok(())
}

/// In every format, the sums of each fixture equal those of its processes, and each document matches the schema.
#[test]
fn sums_are_equal_and_documents_fit_the_schema() -> Result<(), Failure> {
    let rules: Value =
        serde_json::from_str(include_str!("../crates/report/schema/analysis.schema.json"))?;
    for trace in TRACES {
        let file = format!("{trace}.bin");
        let all = ["analyze", &file, "--report", "all", "--format", "json"];
        let all = [&all[..], &["--interval", "30ms"]].concat();
        let document: Value = serde_json::from_str(&output(&all)?)?;
        schema::validate(&rules, &document).map_err(|e| format!("{trace}: {e}"))?;
        let number = |value: &Value| value.as_u64().expect("a number");
        let on_cpu = number(&document["totals"]["on_cpu_ns"]);
        let array = |value: &Value| value.as_array().expect("an array").clone();
        let processes = array(&document["processes"]);
        // The reports on time series and on CPUs are computed from events. Some CPU time is not in the events, but only
        // in the kernel's totals. So these two reports lack this time.
        let by_kernel = |process: &Value| number(&process["on_cpu_by_kernel_ns"]);
        let unseen: u64 = processes.iter().map(by_kernel).sum();
        assert!(unseen * 100 <= on_cpu, "{trace}: {unseen} of {on_cpu} ns");
        for (process, line) in processes
            .iter()
            .zip(array(&document["series"]["processes"]))
        {
            let values = array(&line["values"]);
            let sum: u64 = values.iter().map(|value| number(&value[1])).sum();
            assert_eq!(
                sum + by_kernel(process),
                number(&process["on_cpu_ns"]),
                "{trace} {}",
                process["pid"]
            );
        }
        let tree: u64 = array(&document["tree"])
            .iter()
            .map(|row| number(&row["on_cpu_ns"]))
            .sum();
        let cpus: u64 = array(&document["cpus"]["cpus"])
            .iter()
            .map(|cpu| number(&cpu["build_ns"]) + cpu["others_ns"].as_u64().unwrap_or(0))
            .sum();
        assert_eq!([tree, cpus + unseen], [on_cpu, on_cpu], "{trace}");
        let stream = output(&["analyze", &file, "--format", "ci-tracer"])?;
        let stream: Value = serde_json::from_str(&stream)?;
        let ms = |event: &Value| event["v"].as_f64().filter(|_| !event["cpu"].is_null());
        let sum: f64 = array(&stream).iter().filter_map(ms).sum();
        let seen = (on_cpu - unseen) as f64;
        assert!((sum * 1e6 - seen).abs() < 1.0, "{trace}: {sum} ms");
    }
    Ok(())
}

/// The samples on the critical path are exactly the samples in the events within the times of its steps, and stand for
/// no more than the path's time on a CPU.
#[test]
fn the_path_by_function_has_the_samples_of_its_steps() -> Result<(), Failure> {
    let rules: Value =
        serde_json::from_str(include_str!("../crates/report/schema/analysis.schema.json"))?;
    let file = "../format/3.6.bin";
    let args = ["analyze", file, "--report", "critical-path,flame"];
    let args = [&args[..], &["--by", "function", "--format", "json"]].concat();
    let document: Value = serde_json::from_str(&output(&args)?)?;
    schema::validate(&rules, &document)?;
    let path = &document["critical_path"]["path"];
    let functions = &path["functions"];
    let number = |value: &Value| value.as_u64().expect("a number");
    let steps = path["steps"].as_array().expect("steps");
    let on_path = |event: &Value| {
        steps.iter().any(|step| {
            let span = number(&step["from_ns"])..number(&step["to_ns"]);
            step["tid"] == event["tid"] && span.contains(&number(&event["t"]))
        })
    };
    let events = output(&["dump", file, "--format", "ndjson"])?;
    let mut periods = Vec::new();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line)?;
        if event["kind"] == "sample" && event["off_cpu"] == false && on_path(&event) {
            periods.push(number(&event["ns"]));
        }
    }
    let ns: u64 = periods.iter().sum();
    assert!(periods.len() > 50, "{functions}");
    assert_eq!(number(&functions["samples"]), periods.len() as u64);
    assert_eq!(number(&functions["ns"]), ns);
    let rows = functions["rows"].as_array().expect("rows").iter();
    let own = rows.filter(|row| row["off_cpu"] == false);
    assert_eq!(own.map(|row| number(&row["self_ns"])).sum::<u64>(), ns);
    // The number n of samples varies by chance, by less than three times √n. So the samples may stand for more than the
    // time on a CPU, by at most 3 √n sampling periods.
    let on_cpu: u64 = steps.iter().map(|step| number(&step["on_cpu_ns"])).sum();
    let told = ["sampled_on_cpu_ns", "other_on_cpu_ns"].map(|name| number(&functions[name]));
    assert_eq!(told[0] + told[1], on_cpu);
    let error = (periods.len() as f64).sqrt() * 3.0 * periods[0] as f64;
    assert!(ns as f64 <= on_cpu as f64 + error, "{functions}");
    assert!(number(&functions["off_cpu_ns"]) <= number(&functions["waited_ns"]));
    // The times of all reasons add up to the time of all waits.
    let sum = |of: &Value| -> u64 {
        let reasons = of["off_cpu_reasons"].as_array().expect("reasons").iter();
        reasons.map(|reason| number(&reason["ns"])).sum()
    };
    assert_eq!(sum(functions), number(&functions["off_cpu_ns"]));
    let flame = &document["flame"];
    assert_eq!(sum(flame), number(&flame["off_cpu_ns"]));
    assert!(number(&flame["samples"]) >= number(&functions["samples"]));
    // Without recorded stacks, a message says so.
    let out = run(&[
        "analyze",
        "demo.bin",
        "--report",
        "critical-path",
        "--by",
        "function",
    ])?;
    let said = String::from_utf8(out.stderr)?;
    assert!(
        out.status.success() && said.contains("tr record --stacks"),
        "{said}"
    );
    Ok(())
}

/// The parts of a wait in consecutive windows add up to the whole wait. `--cpu` does not matter, because a wait is on
/// no CPU.
#[test]
fn a_sampled_wait_has_its_part_in_each_window() -> Result<(), Failure> {
    let off_cpu = |more: &[&str]| -> Result<u64, Failure> {
        let args = ["analyze", "../format/3.6.bin", "--report", "flame"];
        let args = [&args[..], &["--format", "json"], more].concat();
        let document: Value = serde_json::from_str(&output(&args)?)?;
        Ok(document["flame"]["off_cpu_ns"].as_u64().expect("a number"))
    };
    let whole = off_cpu(&[])?;
    let ends = ["0s", "0.4s", "1.23s", "2s", "3.5s", "100s"];
    let mut parts = Vec::new();
    for window in ends.windows(2) {
        parts.push(off_cpu(&["--from", window[0], "--to", window[1]])?);
    }
    assert!(parts.iter().filter(|ns| **ns > 0).count() > 3, "{parts:?}");
    assert_eq!(parts.iter().sum::<u64>(), whole, "{parts:?}");
    for cpu in ["0", "1"] {
        assert_eq!(off_cpu(&["--cpu", cpu])?, whole);
    }
    Ok(())
}

/// Two equal recordings have no difference in functions. If one of two recordings has no stacks, a message names that
/// recording.
#[test]
fn functions_are_compared_if_both_sides_have_stacks() -> Result<(), Failure> {
    let rules: Value =
        serde_json::from_str(include_str!("../crates/report/schema/diff.schema.json"))?;
    let stacks = "../format/3.6.bin";
    let diff =
        |files: [&str; 2], format: &str| output(&["diff", files[0], files[1], "--format", format]);
    let again = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stacks-again.bin");
    std::fs::write(
        &again,
        rewrite::later(&std::fs::read(traces().join(stacks))?),
    )?;
    let again = again.to_string_lossy();
    let equal = [stacks, &*again];
    let json: Value = serde_json::from_str(&diff(equal, "json")?)?;
    schema::validate(&rules, &json)?;
    assert_eq!(json["functions"], serde_json::json!([]));
    assert!(diff(equal, "text")?.contains("No function's time differs"));
    let folded = diff(equal, "folded")?;
    for line in folded.lines() {
        let mut words = line.rsplitn(3, ' ');
        let (new, base) = (words.next(), words.next());
        assert!(new == base && new.is_some(), "{line}");
    }
    let mut lines: Vec<&str> = folded.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), folded.lines().count(), "each stack once");
    let page = diff(equal, "html")?;
    assert!(page.contains("<svg id=\"flame\"") && !page.contains("<script"));
    assert!(page.contains("No function's time differs"), "{page}");
    let json: Value = serde_json::from_str(&diff([stacks, "demo.bin"], "json")?)?;
    schema::validate(&rules, &json)?;
    assert!(json["functions"].is_null());
    let said = json["warnings"].to_string();
    assert!(said.contains("demo.bin has no stacks"), "{said}");
    let out = run(&["diff", stacks, "demo.bin", "--format", "folded"])?;
    let said = String::from_utf8(out.stderr)?;
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("demo.bin: no stacks were recorded"), "{said}");
    Ok(())
}

#[test]
fn filters_choose() -> Result<(), Failure> {
    let execs = |more: &[&str]| -> Result<Vec<String>, Failure> {
        let args = [&["analyze", "demo.bin", "--report", "execs"][..], more].concat();
        let text = output(&args)?;
        Ok(text.lines().skip(1).map(str::to_owned).collect())
    };
    let all = execs(&[])?;
    assert!(all.len() > 100, "all, unless --top is given: {}", all.len());
    let failed = execs(&["--failed"])?;
    assert!(
        !failed.is_empty() && failed.iter().all(|line| line.contains("fails")),
        "{failed:?}"
    );
    let long = execs(&["--min", "2s", "--sort", "time"])?;
    let times: Vec<f64> = long
        .iter()
        .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
        .collect();
    assert!(
        times.len() >= 10 && times.iter().all(|time| *time >= 2.0),
        "{times:?}"
    );
    assert!(times.windows(2).all(|pair| pair[0] >= pair[1]), "{times:?}");
    let some = execs(&["--top", "3", "--argv", "cc1"])?;
    assert!(some.len() == 4 && some[3].starts_with("and "), "{some:?}");
    Ok(())
}

/// A step that a time-out stopped has not failed: `--failed` and the summary follow the same rule as the page.
#[test]
fn a_stopped_step_is_not_among_the_failed_ones() -> Result<(), Failure> {
    let stopped = traces().with_file_name("advice").join("killed-sleep.bin");
    let stopped = stopped.to_string_lossy();
    for (trace, all, expected) in [
        ("demo.bin", "tests/fails.sh", &["tests/fails.sh"][..]),
        (&stopped, "sleep 60", &[]),
    ] {
        let steps = |options: &[&str]| -> Result<Vec<String>, Failure> {
            let args = ["analyze", trace, "--report", "steps", "--format", "json"];
            let document: Value = serde_json::from_str(&output(&[&args, options].concat())?)?;
            let steps = document["steps"]["steps"].as_array().ok_or("steps")?.iter();
            let names = steps.filter_map(|step| step["name"].as_str());
            Ok(names.map(str::to_owned).collect())
        };
        assert!(steps(&[])?.iter().any(|name| name == all));
        let failed = steps(&["--failed"])?;
        assert!(
            expected
                .iter()
                .all(|name| failed.iter().any(|other| other == name)),
            "{failed:?}"
        );
        assert_eq!(failed.is_empty(), expected.is_empty(), "{failed:?}");
        let summary: Value =
            serde_json::from_str(&output(&["summary", trace, "--format", "json"])?)?;
        let named = summary["steps"].as_array().ok_or("steps")?.iter();
        let named = named.filter(|step| step["failed"] == true);
        let named: Vec<&str> = named.filter_map(|step| step["name"].as_str()).collect();
        assert_eq!(named, expected);
    }
    Ok(())
}

#[test]
fn errors_name_the_nearest_word() -> Result<(), Failure> {
    for (args, says) in [
        (&["--report", "crticial-path"][..], "'critical-path'"),
        (&["--report", "tree,exec"], "'execs'"),
        (&["--sort", "run-queu"], "'run-queue'"),
        (&["--by", "programm"], "'program'"),
        (&["--format", "ci-trace"], "'ci-tracer'"),
        (&["--faild"], "'--failed'"),
        (&["--group", "a"], "NAME=WHAT:REGEX"),
        (
            &["--group", "a=foo:x"],
            "none of argv, comm, program, cgroup",
        ),
        (&["--by", "group"], "no group is defined"),
        (&["--by", "function"], "critical-path and of flame"),
        (&["--interval", "5ns"], "shorter than 1us"),
        (
            &["--format", "ci-tracer", "--report", "top"],
            "--report series alone",
        ),
        (&["--format", "csv", "--report", "all"], "one table"),
    ] {
        let out = run(&[&["analyze", "demo.bin"][..], args].concat())?;
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(
            said.contains(says) && out.stdout.is_empty(),
            "{args:?}: {said}"
        );
    }
    Ok(())
}

#[test]
fn completions_and_pages_know_every_subcommand() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let into = dir.path().join("man1");
    output(&["man", into.to_str().unwrap()])?;
    let words = [
        "record",
        "analyze",
        "report",
        "info",
        "dump",
        "verify",
        "recover",
        "completions",
        "man",
    ];
    for word in words {
        let page = std::fs::read_to_string(into.join(format!("tr-{word}.1")))?;
        assert!(page.contains(&format!("tr\\-{word}")), "{page}");
    }
    assert!(into.join("tr-trace.1").exists(), "tr.1 is the system's tr");
    assert!(!into.join("tr.1").exists());
    for shell in ["bash", "zsh", "fish"] {
        let script = output(&["completions", shell])?;
        for word in words {
            assert!(script.contains(word), "{shell}: {word}");
        }
        for report in REPORTS {
            assert!(script.contains(report), "{shell}: {report}");
        }
    }
    let said = run(&["completions", "bsh"])?;
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("'bash'"), "{said}");
    // bash can parse the completion script.
    let script = dir.path().join("tr.bash");
    std::fs::write(&script, output(&["completions", "bash"])?)?;
    let bash = Command::new("bash").arg("-n").arg(&script).status()?;
    assert!(bash.success());
    for args in [&["help"][..], &["help", "analyze"], &["record", "--help"]] {
        assert!(output(args)?.contains("Examples:"), "{args:?}");
    }
    Ok(())
}

/// Each line of NDJSON is an object that matches the schema that `tr schema` prints. The processes are the same as in
/// the JSON document.
fn lines_follow_their_schemas() -> Result<(), Failure> {
    let rules = |name: &str| -> Result<Value, Failure> {
        Ok(serde_json::from_str(&output(&["schema", name])?)?)
    };
    let (process, event) = (rules("process")?, rules("dump")?);
    // The fixtures of all versions of the format together contain nearly all kinds of events.
    let versions = std::fs::read_dir(traces().with_file_name("format"))?;
    let versions: Vec<_> = versions
        .map(|entry| Ok::<_, Failure>(entry?.path()))
        .collect::<Result<_, _>>()?;
    for version in versions
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "bin"))
    {
        let trace = version.to_string_lossy();
        for line in output(&["dump", &trace, "--format", "ndjson"])?.lines() {
            let line: Value = serde_json::from_str(line)?;
            schema::validate(&event, &line).map_err(|why| format!("{trace}: {line}: {why}"))?;
        }
    }
    for trace in ["demo.bin", "daemon.bin", "signals.bin", "linux-6.1-all.bin"] {
        let lines = |args: &[&str]| -> Result<Vec<Value>, Failure> {
            let text = output(args)?;
            text.lines()
                .map(|line| Ok(serde_json::from_str(line)?))
                .collect()
        };
        let processes = lines(&["analyze", trace, "--format", "ndjson"])?;
        let document: Value =
            serde_json::from_str(&output(&["analyze", trace, "--format", "json"])?)?;
        ensure(
            document["processes"] == Value::Array(processes.clone()),
            || trace.to_owned(),
        )?;
        let events = lines(&["dump", trace, "--format", "ndjson"])?;
        ensure(
            events.len() > processes.len() && !processes.is_empty(),
            || trace.to_owned(),
        )?;
        for (schema, all) in [(&process, processes), (&event, events)] {
            for line in all {
                schema::validate(schema, &line).map_err(|why| format!("{trace}: {line}: {why}"))?;
            }
        }
    }
    Ok(())
}

/// A summary is short, whatever the recording contains. Each document matches the schema that `tr schema` prints for
/// it.
#[test]
fn documents_keep_to_their_schemas() -> Result<(), Failure> {
    let rules = |name: &str| -> Result<Value, Failure> {
        Ok(serde_json::from_str(&output(&["schema", name])?)?)
    };
    let summaries = rules("summary")?;
    let mut told = 0;
    for directory in [
        traces(),
        traces().join("../format"),
        traces().join("../forged"),
    ] {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "bin") {
                continue;
            }
            let out = run(&["summary", &path.to_string_lossy(), "--format", "json"])?;
            if out.status.code() == Some(2) {
                continue;
            }
            let json: Value = serde_json::from_slice(&out.stdout)?;
            schema::validate(&summaries, &json).map_err(|why| format!("{path:?}: {why}"))?;
            ensure(out.stdout.len() <= 8 << 10, || format!("{path:?}"))?;
            told += 1;
        }
    }
    assert!(told > 20, "{told}");
    lines_follow_their_schemas()?;
    for (name, args) in [
        ("analyze", &["demo.bin", "--report", "advice"][..]),
        ("predict", &["demo.bin", "--table", "--price", "0.01"]),
        ("diff", &["demo.bin", "build.bin"]),
        ("pipeline", &["demo.bin", "build.bin"]),
    ] {
        let args = [&[name][..], args, &["--format", "json"]].concat();
        let json: Value = serde_json::from_str(&output(&args)?)?;
        schema::validate(&rules(name)?, &json).map_err(|why| format!("{name}: {why}"))?;
        assert!(name != "analyze" || json["processes"].is_null());
    }
    Ok(())
}

/// The shares of the CPUs' time are all for the same period, so they add up to 100 % unless one of them is unknown.
#[test]
fn shares_of_the_cpus_add_up() -> Result<(), Failure> {
    let windows: [&[&str]; 4] = [
        &[],
        &["--from", "0.1", "--to", "0.2"],
        &["--from", "0.05"],
        &["--to", "0.9"],
    ];
    let mut known = 0;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/format");
    for entry in std::fs::read_dir(directory)? {
        let file = entry?.path();
        if file.extension().is_none_or(|extension| extension != "bin") {
            continue;
        }
        for window in windows {
            let file = file.to_str().ok_or("UTF-8")?;
            let Ok(text) = output(&[&["analyze", file][..], window].concat()) else {
                continue; // the recording is shorter
            };
            let line = text.lines().find(|line| line.contains(" · idle "));
            let line = line.filter(|line| !line.contains("at least"));
            let shares = line.into_iter().flat_map(|line| line.split(" · "));
            let shares: Vec<Option<u64>> = shares
                .map(|share| {
                    let number = share.trim_end_matches(" %").rsplit(' ').next()?;
                    number.trim_start_matches('<').parse().ok()
                })
                .collect();
            let sum: Option<u64> = shares.iter().copied().sum();
            if let Some(sum) = sum.filter(|_| !shares.is_empty()) {
                known += 1;
                assert!((98..=102).contains(&sum), "{file} {window:?}: {line:?}");
            }
        }
    }
    assert!(known > 0, "no recording tells all shares");
    Ok(())
}

/// No key occurs twice in a document, even if the recording has no scheduling events.
#[cfg(feature = "record")]
#[test]
fn a_document_has_each_key_once() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("ptrace.bin");
    let file = file.to_str().ok_or("UTF-8")?;
    output(&[
        "record", "-q", "--method", "ptrace", "-o", file, "--", "true",
    ])?;
    let text = output(&["analyze", file, "--report", "all", "--format", "json"])?;
    let mut keys: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  \"")?.split('"').next())
        .collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count, "{text}");
    Ok(())
}

/// The summary compares the recorded time with the time limit of the job, and names the size of the runner.
#[test]
fn a_summary_has_the_limit_and_the_size() -> Result<(), Failure> {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/demo/busy.bin");
    let trace = trace.to_str().ok_or("a path")?;
    let text = output(&["summary", trace, "--limit", "46.08s"])?;
    ensure(text.contains("50 % of the limit of 46.08 s"), || {
        text.clone()
    })?;
    ensure(text.contains("Memory: 175 to 187 MiB of 24 GiB"), || {
        text.clone()
    })?;
    let metrics = output(&["summary", trace, "--limit", "1h", "--format", "metrics"])?;
    for line in [
        "tr_limit_seconds 3600.000",
        "tr_memory_enough_bytes 536870912",
        "tr_cpus_enough 2",
    ] {
        ensure(metrics.contains(&format!("{line}\n")), || {
            format!("{line}: {metrics}")
        })?;
    }
    let refused = run(&["summary", trace, "--limit", "45"])?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure(
        refused.status.code() == Some(2) && said.contains("needs a unit"),
        || said.clone(),
    )
}
