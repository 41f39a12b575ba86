//! Tests the tables of one recording, and the SQL queries of docs/sql.md on them with DuckDB.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)] // in a test

mod common;

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Trial};
use tr_export::dataset::trace;

use common::{python, trial, TR};

fn main() {
    let lacks_python = python().err();
    let tests = vec![
        test(
            "each_of_the_fifteen_questions_has_an_answer",
            lacks_python.clone(),
            questions_have_answers,
        ),
        test(
            "the_tables_agree_with_the_reports",
            lacks_python,
            tables_agree,
        ),
        test("the_page_has_all_columns", None, page_has_columns),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn test(name: &str, reason: Option<String>, run: fn()) -> Trial {
    trial(name, reason, move || {
        run();
        Ok(())
    })
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/sql.md")).unwrap()
}

fn tr(args: &[&str]) -> String {
    let out = Command::new(TR).args(args).output().unwrap();
    assert!(
        out.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).unwrap()
}

/// The queries in docs/sql.md: the indented blocks below *Fifteen questions*.
fn questions() -> Vec<String> {
    let page = page();
    let (_, section) = page.split_once("## Fifteen questions\n").unwrap();
    let mut blocks: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in section.lines() {
        match line.strip_prefix("    ") {
            Some(code) if is_inside => {
                let block = blocks.last_mut().unwrap();
                block.push('\n');
                block.push_str(code);
            }
            Some(code) => blocks.push(code.to_owned()),
            None => {}
        }
        is_inside = line.starts_with("    ");
    }
    blocks
}

/// Runs queries on the tables of a recording. Returns the rows of each query as JSON.
fn answers(recording: &str, questions: &[String]) -> Vec<Vec<serde_json::Value>> {
    let directory = tempfile::tempdir().unwrap();
    let tables = directory.path().to_str().unwrap();
    let recording = root().join(recording);
    tr(&[
        "export",
        recording.to_str().unwrap(),
        "--format",
        "parquet",
        "--tables",
        tables,
    ]);
    let script = "import duckdb, json, sys\n\
                  print(json.dumps([duckdb.sql(q).fetchall() for q in json.load(open('questions.json'))], default=str))";
    let text = serde_json::to_string(questions).unwrap();
    std::fs::write(directory.path().join("questions.json"), text).unwrap();
    let out = Command::new(python().unwrap())
        .args(["-c", script])
        .current_dir(&directory)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

fn questions_have_answers() {
    let questions = questions();
    assert_eq!(questions.len(), 15);
    let answers = answers("fixtures/traces/demo.bin", &questions);
    for (question, rows) in questions.iter().zip(answers) {
        assert!(!rows.is_empty(), "{question}");
    }
}

/// The tables have the same sums as the JSON reports. Only time in an unknown state differs: the tables have no rows
/// for such time, but the totals of the reports may contain a part of it.
fn tables_agree() {
    let recording = root().join("fixtures/traces/demo.bin");
    let asked = [
        "SELECT sum(ns), max(to_ns) - min(from_ns) FROM 'path.parquet'",
        "SELECT count(*), sum(on_cpu_ns), sum(run_queue_ns) FROM 'processes.parquet'",
        "SELECT sum(to_ns - from_ns) FROM 'on_cpu.parquet'",
        "SELECT sum(ns) FROM 'waits.parquet' WHERE state IN ('run_queue', 'preempted')",
        "SELECT count(*) FROM 'execs.parquet'",
    ];
    let asked = asked.map(str::to_owned);
    let answers = answers("fixtures/traces/demo.bin", &asked);
    let number = |question: usize, column: usize| {
        let value = &answers[question][0][column];
        value
            .as_u64()
            .or_else(|| value.as_str()?.parse().ok())
            .unwrap()
    };
    let report = tr(&[
        "analyze",
        recording.to_str().unwrap(),
        "--report",
        "top",
        "--format",
        "json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let total = |key: &str| report["totals"][key].as_u64().unwrap();
    assert_eq!(number(0, 0), number(0, 1), "the path has no hole");
    assert_eq!(number(1, 0), total("processes"));
    assert_eq!(number(1, 1), total("on_cpu_ns"));
    assert_eq!(number(1, 2), total("run_queue_ns"));
    let unknown = report["trace"]["concurrency_unknown_ns"].as_u64().unwrap();
    for (question, key) in [(2, "on_cpu_ns"), (3, "run_queue_ns")] {
        let differs = number(question, 0).abs_diff(total(key));
        assert!(
            differs <= unknown,
            "{key}: {differs} ns, {unknown} ns unknown"
        );
    }
    assert_eq!(number(4, 0), total("execs"));
}

/// docs/sql.md names each table with all its columns.
fn page_has_columns() {
    let page = page();
    for (table, columns) in trace::columns() {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{table}` |")));
        let row = row.unwrap_or_else(|| panic!("{table}"));
        if row.contains("as `steps`") {
            continue;
        }
        for (column, _) in columns {
            assert!(row.contains(&format!("`{column}`")), "{table}: {column}");
        }
    }
}
