//! Unit tests of `pipeline`.

use super::*;

const S: u64 = 1_000_000_000;

/// A job from and to a second of the pipeline.
fn job(name: &str, from: u64, to: u64) -> Job {
    Job {
        name: name.to_owned(),
        start: (1_000 + from) * S,
        end: (1_000 + to) * S,
        ..Job::default()
    }
}

/// build ==========
/// lint  ===
/// unit            __========
/// e2e             ____==================
/// deploy                                _==
fn jobs() -> Vec<Job> {
    vec![
        job("deploy", 31, 33),
        job("build", 0, 10),
        job("e2e", 14, 30),
        job("lint", 0, 3),
        job("unit", 12, 20),
    ]
}

fn needs() -> Graph {
    let text = r#"{"jobs": [{"name": "build"}, {"name": "lint"}, {"name": "unit", "needs": ["build"]},
        {"name": "e2e", "needs": ["build"]}, {"name": "deploy", "needs": ["unit", "e2e", "lint"]}]}"#;
    graph(text).unwrap()
}

#[test]
fn the_path_goes_through_the_job_that_ended_last() {
    for pipeline in [
        Pipeline::new(jobs(), Some(&needs())),
        Pipeline::new(jobs(), None),
    ] {
        let json = pipeline.json();
        assert_eq!(json["path"], serde_json::json!(["build", "e2e", "deploy"]));
        assert_eq!(json["duration_ns"], 33 * S);
        let of = |name: &str| {
            json["jobs"]
                .as_array()
                .unwrap()
                .iter()
                .find(|it| it["name"] == name)
                .unwrap()
                .clone()
        };
        // Beside build, e2e would end at 20 s, 10 s earlier; then unit's 20 s are on the path, too.
        assert_eq!(of("e2e")["saved_without_waiting_ns"], 10 * S);
        assert_eq!(of("e2e")["saved_without_it_ns"], 10 * S);
        // By the times alone lint, which ended at 3 s, may have been waited for, too.
        let build = if json["graph"] == "given" { 10 } else { 7 };
        assert_eq!(of("build")["saved_without_it_ns"], build * S);
        assert_eq!(of("e2e")["wait_ns"], 4 * S);
        assert_eq!(of("unit")["on_path"], false);
        let text = pipeline.text();
        assert!(
            text.contains("10.00 s  if e2e waits for no other job"),
            "{text}"
        );
    }
}

#[test]
fn clocks_that_disagree_are_told() {
    // test needs build, but began 2 s before build's end by its own clock.
    let jobs = vec![job("build", 0, 10), job("test", 8, 20)];
    let graph = graph(r#"{"jobs": [{"name": "test", "needs": ["build"]}]}"#).unwrap();
    let json = Pipeline::new(jobs, Some(&graph)).json();
    assert_eq!(json["clock_uncertainty_ns"], 2 * S);
    assert_eq!(json["path"], serde_json::json!(["build", "test"]));
}

#[test]
fn names_are_told_apart_and_bad_graphs_refused() {
    let json = Pipeline::new(vec![job("t", 0, 1), job("t", 2, 3)], None).json();
    assert_eq!(json["path"], serde_json::json!(["t", "t #2"]));
    for bad in ["", "[]", "{}", r#"{"jobs": [{}]}"#] {
        assert!(graph(bad).is_err(), "{bad}");
    }
}
