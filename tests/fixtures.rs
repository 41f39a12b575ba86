//! Analyzes recorded traces again and compares the results with strace's logs of the same runs, and with stored
//! reports.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{analyze, ensure, int, list, schema, Failure, TR};
use serde_json::Value;
use tr_format::reader::Trace;
use tr_format::source::Source;

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces")
}

/// The paths of all recorded traces, sorted by name.
fn all() -> Vec<PathBuf> {
    recordings(&traces())
}

fn recordings(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("recordings");
    let mut files: Vec<PathBuf> = files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "bin"))
        .collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    files
}

fn output(args: &[&str]) -> Result<Vec<u8>, Failure> {
    let out = Command::new(TR)
        .args(args)
        .current_dir(traces())
        .env_remove("COLUMNS")
        .output()?;
    ensure(out.status.success(), || {
        format!("{args:?}: {}", String::from_utf8_lossy(&out.stderr))
    })?;
    Ok(out.stdout)
}

#[test]
fn times_add_up_and_strace_agrees() -> Result<(), Failure> {
    for trace in all() {
        let analysis = analyze(&trace).map_err(|e| format!("{}: {e}", trace.display()))?;
        let log = trace.with_extension("strace");
        if log.exists() {
            let lives = common::strace(&std::fs::read_to_string(&log)?)?;
            common::agree(&analysis, &lives).map_err(|e| format!("{}: {e}", trace.display()))?;
        }
    }
    Ok(())
}

#[test]
fn they_are_intact() -> Result<(), Failure> {
    for trace in all() {
        output(&["verify", &trace.to_string_lossy()])?;
    }
    Ok(())
}

/// A recording contains command lines and their working directories, and the fixtures are published. So no recording,
/// report or fuzz seed may contain the path of a developer's checkout.
#[test]
fn none_holds_the_path_of_a_checkout() -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = root.to_string_lossy();
    // Directories inside of a checkout. An absolute path that ends with one of these names reveals where the checkout
    // lies.
    let places = ["/fixtures/traces", "/fixtures/demo", "/target/"];
    let end = |c: char| !c.is_ascii_alphanumeric() && !"_.-+/".contains(c);
    let word_before = |text: &str, at: usize| text[..at].rsplit(end).next().map(str::to_owned);
    let foreign = |text: &str, place: &str| {
        let words = text.match_indices(place);
        let mut words = words.filter_map(|(at, _)| word_before(text, at));
        words.any(|word| {
            let neutral = word == "/tmp/tr-fixtures" || word.starts_with("/dev/shm/advice-");
            word.starts_with('/') && !neutral
        })
    };
    let here = |text: &str| {
        let mut rest = text
            .match_indices(&*own)
            .map(|(at, _)| &text[at + own.len()..]);
        rest.any(|rest| rest.starts_with('/') || rest.chars().next().is_none_or(end))
    };
    let neutral = |text: &str, name: &Path| {
        ensure(!here(text), || format!("{own} is in {}", name.display()))?;
        let place = places.iter().find(|place| foreign(text, place));
        ensure(place.is_none(), || {
            format!("{place:?} is in {}", name.display())
        })
    };
    let advice = recordings(&traces().with_file_name("advice"));
    for path in all().into_iter().chain(advice) {
        let dump = output(&["dump", &path.to_string_lossy(), "--format", "json"])?;
        neutral(&String::from_utf8(dump)?, &path)?;
        let trace = Trace::open(Source::file(std::fs::File::open(&path)?)?)?;
        let cwd = String::from_utf8_lossy(&trace.meta().cwd).into_owned();
        let command = trace.meta().command.join(&b' ');
        neutral(&cwd, &path)?;
        neutral(&String::from_utf8_lossy(&command), &path)?;
    }
    let mut left = vec![traces(), root.join("fuzz/corpus")];
    let mut files = 0;
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else {
                neutral(&String::from_utf8_lossy(&std::fs::read(&path)?), &path)?;
                files += 1;
            }
        }
    }
    assert!(files > 100, "{files} files");
    Ok(())
}

/// The number of threads must not change a report. Reading a large recording by several threads is tested in
/// tests/simulated.rs; here forecasts use threads as well.
#[test]
fn every_report_is_the_same_for_any_number_of_threads() -> Result<(), Failure> {
    for trace in all() {
        let name = trace.to_string_lossy();
        let all = ["analyze", &name, "--report", "all", "--format", "json"];
        let by = |threads| output(&[&all[..], &["--threads", threads]].concat());
        ensure(by("1")? == by("3")?, || name.to_string())?;
    }
    Ok(())
}

/// Checks that a schema with a keyword for one type (such as `items` for arrays) also names this type. The type may
/// also be named by the outer schema that lists the checked one as an alternative. Strict readers of schemas require
/// this.
fn names_types(schema: &Value) -> Result<(), String> {
    fn look(schema: &Value, around: Option<&Value>, place: &str) -> Result<(), String> {
        let Some(keywords) = schema.as_object() else {
            return Ok(());
        };
        let types = keywords.get("type").or(around);
        for (keyword, want) in keywords {
            let place = format!("{place}/{keyword}");
            let of = match keyword.as_str() {
                "required"
                | "properties"
                | "additionalProperties"
                | "propertyNames"
                | "dependentRequired" => "object",
                "items" | "minItems" | "maxItems" => "array",
                _ => "",
            };
            let is_named = types.is_some_and(|types| match types {
                Value::Array(types) => types.iter().any(|name| name == of),
                name => name == of,
            });
            if !of.is_empty() && !is_named {
                return Err(format!("{place} is without the type {of}"));
            }
            match (keyword.as_str(), want) {
                ("anyOf", Value::Array(choices)) => {
                    for choice in choices {
                        look(choice, types, &place)?;
                    }
                }
                ("properties" | "$defs", Value::Object(members)) => {
                    for (name, member) in members {
                        look(member, None, &format!("{place}/{name}"))?;
                    }
                }
                ("items" | "additionalProperties", _) => look(want, None, &place)?,
                _ => {}
            }
        }
        Ok(())
    }
    look(schema, None, "#")
}

/// Programs that generate types from a schema read it strictly, so all schemas must name their types.
#[test]
fn schemas_name_their_types() -> Result<(), Failure> {
    let said = String::from_utf8(output(&["--version", "--verbose"])?)?;
    let line = said.lines().find_map(|line| line.strip_prefix("schemas:"));
    for name in line.ok_or("no schemas")?.split_whitespace() {
        let rules = serde_json::from_slice(&output(&["schema", name])?)?;
        names_types(&rules).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

/// For every trace, the reports on the critical path and on parallelism match the schema, and their times add up.
#[test]
fn critical_path_and_parallelism_add_up() -> Result<(), Failure> {
    let rules: Value =
        serde_json::from_str(include_str!("../crates/report/schema/analysis.schema.json"))?;
    for trace in all() {
        let name = trace.to_string_lossy();
        let report = "critical-path,parallelism";
        let json = output(&["analyze", &name, "--report", report, "--format", "json"])?;
        let document: Value = serde_json::from_slice(&json)?;
        schema::validate(&rules, &document).map_err(|e| format!("{name}: {e}"))?;
        let path = &document["critical_path"]["path"];
        let wall = int(path, "wall_ns");
        ensure(wall > 0, || format!("{name}: no path"))?;
        let mut now = int(path, "from_ns");
        for step in list(path, "steps") {
            ensure(int(step, "from_ns") == now, || format!("{name}: {step}"))?;
            now = int(step, "to_ns");
            const PARTS: [&str; 7] = [
                "on_cpu_ns",
                "run_queue_ns",
                "disk_ns",
                "network_ns",
                "sleep_ns",
                "other_ns",
                "unknown_ns",
            ];
            let sum: u64 = PARTS.iter().map(|part| int(step, part)).sum();
            let length = now - int(step, "from_ns");
            ensure(sum == length, || format!("{name}: {step}"))?;
        }
        ensure(now == int(path, "to_ns"), || {
            format!("{name}: ends at {now}")
        })?;
        let times = |of: &Value, list_name: &str, time: &str| -> u64 {
            list(of, list_name).iter().map(|one| int(one, time)).sum()
        };
        assert_eq!(times(path, "shares", "time_ns"), wall, "{name}");
        let at_once = &document["parallelism"];
        let span = int(&document["trace"], "duration_ns");
        for of in ["running_ns", "wanted_ns"] {
            let sum: u64 = list(at_once, of).iter().filter_map(Value::as_u64).sum();
            assert_eq!(sum + int(at_once, "unknown_ns"), span, "{name}: {of}");
        }
    }
    Ok(())
}

/// The critical path of the demo build contains the delays that were planted in the build: the code generator at the
/// start, the serial link (also listed as work that ran alone), and the sleeping test.
#[test]
fn the_critical_path_has_the_planted_delays() -> Result<(), Failure> {
    let report = "critical-path,parallelism";
    let json = output(&[
        "analyze", "demo.bin", "--report", report, "--format", "json",
    ])?;
    let document: Value = serde_json::from_slice(&json)?;
    let path = &document["critical_path"]["path"];
    let share = |what: &str, program: &str| {
        let shares = list(path, "shares").iter();
        let mut shares = shares.filter(|s| s["what"] == what && s["program"] == program);
        shares.next().map_or(0, |share| int(share, "time_ns"))
    };
    const MS: u64 = 1_000_000;
    let link = share("on_cpu", "linkpass");
    assert!(link > 900 * MS, "linkpass: {link} ns");
    let sleep = share("sleep", "sleep.sh");
    assert!(
        (1_200 * MS..1_250 * MS).contains(&sleep),
        "sleep.sh: {sleep} ns"
    );
    assert!(share("on_cpu", "gen") > 0, "gen");
    let at_once = &document["parallelism"];
    let alone = &list(at_once, "alone")[0];
    let label = alone["label"].as_str().unwrap_or_default();
    assert!(label.starts_with("linkpass "), "{alone}");
    // The report on the critical path has forecasts in which one program takes no time. Whichever program that is, the
    // forecast still contains the sleeps.
    for free in list(path, "free") {
        assert!(int(free, "at_least_ns") > sleep, "{free}");
    }
    Ok(())
}
