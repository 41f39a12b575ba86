//! Unit tests of `pipeline`.

use super::*;
use tr_text::style::Style;

const S: u64 = 1_000_000_000;

/// A recorded job that runs from one second of the pipeline to another; the pipeline starts 1,000 s after 1970.
fn job(name: &str, from: u64, to: u64) -> Job {
    Job {
        name: name.to_owned(),
        start: (1_000 + from) * S,
        end: (1_000 + to) * S,
        recorded: Some(((1_000 + from) * S, (1_000 + to) * S)),
        ..Job::default()
    }
}

fn pipeline(jobs: Vec<Job>, graph: Option<&Graph>, of_ci: &[CiJob]) -> Pipeline {
    Pipeline::new(jobs, graph, of_ci).unwrap()
}

/// Five jobs over time, where `_` is a wait and each column is a second:
/// build ==========
/// lint  ===
/// unit            __========
/// e2e             ____================
/// deploy                              _==
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
        pipeline(jobs(), Some(&needs()), &[]),
        pipeline(jobs(), None, &[]),
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
        // If `e2e` waited for no job, it would end at 20 s instead of 30 s. The job `unit` also ends at 20 s, so the
        // pipeline cannot become shorter by more than 10 s.
        assert_eq!(of("e2e")["saved_without_waiting_ns"], 10 * S);
        assert_eq!(of("e2e")["saved_without_it_ns"], 10 * S);
        // Without a graph, only the times show which jobs a job may have waited for. By the times, `unit` and `e2e` may
        // also have waited for `lint`, which ended at 3 s. So only 7 of the 10 s of `build` would be saved.
        let build = if json["graph"] == "given" { 10 } else { 7 };
        assert_eq!(of("build")["saved_without_it_ns"], build * S);
        assert_eq!(of("e2e")["wait_ns"], 4 * S);
        assert_eq!(of("unit")["on_path"], false);
        let text = pipeline.page().text(&Style::PLAIN);
        assert!(
            text.contains("10.00 s  if e2e waits for no other job"),
            "{text}"
        );
    }
}

#[test]
fn clocks_that_disagree_are_reported() {
    // The job `test` needs the job `build`, but by its own clock `test` began 2 s before the end of `build`.
    let jobs = vec![job("build", 0, 10), job("test", 8, 20)];
    let graph = graph(r#"{"jobs": [{"name": "test", "needs": ["build"]}]}"#).unwrap();
    let json = pipeline(jobs, Some(&graph), &[]).json();
    assert_eq!(json["clock_difference_at_least_ns"], 2 * S);
    assert!(json["clock_uncertainty_ns"].is_null());
    assert_eq!(json["path"], serde_json::json!(["build", "test"]));
}

/// Three jobs by the clocks of their machines. The clock of the machine of `e2e` is behind:
/// e2e   ====
/// build       ===
/// unit             =====
#[test]
fn the_graph_has_the_order_and_not_the_clocks() {
    let jobs = || vec![job("e2e", 0, 4), job("build", 14, 17), job("unit", 18, 23)];
    let text = r#"{"jobs": [{"name": "build"}, {"name": "unit", "needs": ["build"]}, {"name": "e2e", "needs": ["unit"]}]}"#;
    let drawn = pipeline(jobs(), Some(&graph(text).unwrap()), &[]);
    let json = drawn.json();
    assert_eq!(json["path"], serde_json::json!(["build", "unit", "e2e"]));
    assert_eq!(json["clock_difference_at_least_ns"], 23 * S);
    // The pipeline consists of the job `build`, the wait before the job `unit`, and the jobs `unit` and `e2e`.
    assert_eq!(json["duration_ns"], (3 + 1 + 5 + 4) * S);
    assert_eq!(json["jobs"][2]["needs"], serde_json::json!(["unit"]));
    assert_eq!(
        (&json["jobs"][2]["start_ns"], &json["jobs"][2]["wait_ns"]),
        (&(9 * S).into(), &0.into())
    );
    let said = json["warnings"][0].as_str().unwrap();
    assert!(
        said.starts_with("e2e began 23.00 s before the end of unit"),
        "{said}"
    );
    for text in [drawn.page().text(&Style::PLAIN), drawn.html()] {
        assert!(text.contains(said), "{text}");
    }
    // There is no warning about a difference that is usual for clocks set by network time.
    let mut near = jobs();
    near[0].start = 1_022 * S + S - CLOCKS;
    near[0].end = 1_030 * S;
    let json = pipeline(near, Some(&graph(text).unwrap()), &[]).json();
    assert_eq!(json["warnings"], serde_json::json!([]));
    assert_eq!(json["clock_difference_at_least_ns"], CLOCKS);
}

/// A gap of 30 s can be a wait, or come from a clock that is 30 s late. The order of the times does not show which of
/// the two it is.
#[test]
fn what_the_order_has_no_proof_of_is_reported() {
    let jobs = || vec![job("fetch", 0, 4), job("pack", 36, 40)];
    let text = r#"{"jobs": [{"name": "pack", "needs": ["fetch"]}]}"#;
    let by_graph = pipeline(jobs(), Some(&graph(text).unwrap()), &[]);
    let all = [
        ci_job("fetch", 0, 4, &[]),
        ci_job("pack", 6, 41, &["fetch"]),
    ];
    let by_ci = pipeline(jobs(), None, &all);
    for (pipeline, says) in [
        (
            pipeline(jobs(), None, &[]),
            "the order and what waited for what: not proven",
        ),
        (by_graph, "the job graph; how long: not proven"),
        (by_ci, "by the CI system's clock (±"),
    ] {
        let text = pipeline.page().text(&Style::PLAIN);
        assert!(text.contains(says), "{text}");
        let is_proven = says.contains("CI");
        assert_eq!(
            text.contains("if network time keeps them"),
            !is_proven,
            "{text}"
        );
        assert_eq!(
            pipeline.json()["clock_uncertainty_ns"].is_null(),
            !is_proven
        );
    }
}

#[test]
fn a_graph_with_a_cycle_is_refused() {
    let text = r#"{"jobs": [{"name": "e2e", "needs": ["unit"]}, {"name": "unit", "needs": ["build", "lint"]},
        {"name": "build", "needs": ["e2e"]}, {"name": "lint"}]}"#;
    let refused = Pipeline::new(jobs(), Some(&graph(text).unwrap()), &[]).unwrap_err();
    assert_eq!(
        refused,
        "the job graph has a cycle: build needs e2e needs unit needs build"
    );
    let own = graph(r#"{"jobs": [{"name": "a", "needs": ["a"]}]}"#).unwrap();
    let refused = Pipeline::new(vec![job("a", 0, 1)], Some(&own), &[]).unwrap_err();
    assert_eq!(refused, "the job graph has a cycle: a needs a");
}

#[test]
fn names_without_a_counterpart_are_reported() {
    let text = r#"{"jobs": [{"name": "Unit tests", "needs": ["build"]}, {"name": "build", "needs": ["image"]}]}"#;
    let jobs = vec![
        job("build", 0, 10),
        job("unit", 12, 20),
        job("build", 30, 40),
    ];
    let json = pipeline(jobs, Some(&graph(text).unwrap()), &[]).json();
    let said = serde_json::json!([
        "the graph names no recording: Unit tests, image",
        "1 job is not in the graph: unit"
    ]);
    assert_eq!(json["warnings"], said);
}

/// Jobs over time. The job `test` needs `lint`, which needs `build`:
/// build ===       ===    two attempts
/// lint  (not recorded)
/// test       ===
#[test]
fn a_job_waits_for_what_an_unrecorded_one_needs_and_for_no_later_attempt() {
    let text =
        r#"{"jobs": [{"name": "test", "needs": ["lint"]}, {"name": "lint", "needs": ["build"]}]}"#;
    let jobs = vec![job("build", 0, 3), job("build", 9, 12), job("test", 5, 8)];
    let json = pipeline(jobs, Some(&graph(text).unwrap()), &[]).json();
    let test = &json["jobs"][1];
    assert_eq!(
        (&test["name"], &test["needs"]),
        (&"test".into(), &serde_json::json!(["build"]))
    );
    assert_eq!(json["clock_difference_at_least_ns"], 0);
}

#[test]
fn names_are_distinguished_and_bad_graphs_refused() {
    let json = pipeline(vec![job("t", 0, 1), job("t", 2, 3)], None, &[]).json();
    assert_eq!(json["path"], serde_json::json!(["t", "t #2"]));
    for bad in ["", "[]", "{}", r#"{"jobs": [{}]}"#] {
        assert!(graph(bad).is_err(), "{bad}");
    }
}

/// A job as the CI system reports it.
fn ci_job(name: &str, from: u64, to: u64, needs: &[&str]) -> CiJob {
    CiJob {
        name: name.to_owned(),
        needs: Some(needs.iter().map(|it| (*it).to_owned()).collect()),
        started: (1_000 + from) * S,
        ended: (1_000 + to) * S,
        queued: S,
        ..CiJob::default()
    }
}

#[test]
fn the_ci_system_adds_jobs_times_and_needs() {
    // The machine of the CI job `test`, whose recording is called `x86`, has a clock 2 s ahead of the CI system's.
    let jobs = vec![job("build", 3, 10), job("x86", 25, 32)];
    let all = [
        ci_job("build (ubuntu)", 0, 11, &[]),
        ci_job("image", 12, 20, &["build (ubuntu)"]),
        ci_job("test", 22, 30, &["image"]),
    ];
    let drawn = pipeline(jobs, None, &all);
    let json = drawn.json();
    // One job is found by its name, one because the recording lies in the time of no other job, and one has no
    // recording.
    assert_eq!(json["path"], serde_json::json!(["build", "image", "x86"]));
    assert_eq!(json["clock_uncertainty_ns"], 2 * S);
    assert_eq!(
        (&json["clock"], &json["graph"]),
        (&"ci".into(), &"given".into())
    );
    assert_eq!(json["duration_ns"], 30 * S);
    assert_eq!(json["jobs"][1]["recorded"], false);
    assert_eq!(json["jobs"][2]["needs"], serde_json::json!(["image"]));
    let text = drawn.page().text(&Style::PLAIN);
    let row = "image (not recorded, waited 1.00 s for a runner)";
    assert!(text.contains(row), "{text}");
}

/// Jobs of a CI run over time, with their recordings:
/// build  == ===         two recordings in it
/// lint   ==========     not recorded
/// test (a)     ====     not recorded
/// deploy           ==
#[test]
fn a_second_recording_in_a_job_is_no_other_job() {
    let all = [
        ci_job("build", 0, 10, &[]),
        ci_job("lint", 0, 11, &[]),
        ci_job("test (a)", 11, 15, &[]),
        ci_job("deploy", 16, 20, &[]),
    ];
    let recordings = vec![
        job("build", 1, 3),
        job("build", 4, 9),
        job("deploy", 17, 19),
    ];
    let needs = graph(
        r#"{"jobs": [{"name": "test", "needs": ["build"]}, {"name": "deploy", "needs": ["test"]}]}"#,
    );
    let json = pipeline(recordings, Some(&needs.unwrap()), &all).json();
    let names: Vec<_> = json["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["recorded"] == true))
        .collect();
    let expected = [
        ("build", true),
        ("lint", false),
        ("test (a)", false),
        ("deploy", true),
    ];
    assert_eq!(names, expected);
    assert_eq!(json["clock"], "ci");
    let path = serde_json::json!(["build", "test (a)", "deploy"]);
    assert_eq!(json["path"], path);
}

/// Jobs of a CI run over time:
/// test         ====    two attempts
/// test (slow)  ======
/// test (a)     ===     a job of a matrix, which the graph does not have
/// deploy             =
#[test]
fn a_job_of_the_graph_is_no_leg_of_another_one() {
    let all = || {
        vec![
            job("test", 0, 4),
            job("test", 0, 5),
            job("test (slow)", 0, 6),
            job("test (a)", 0, 3),
            job("deploy", 7, 8),
        ]
    };
    let needed = |text: &str| {
        let json = pipeline(all(), Some(&graph(text).unwrap()), &[]).json();
        json["jobs"][4]["needs"].clone()
    };
    let both = r#"{"jobs": [{"name": "test"}, {"name": "test (slow)"}, {"name": "deploy", "needs": ["test"]}]}"#;
    let expected = serde_json::json!(["test (a)", "test", "test #2"]);
    assert_eq!(needed(both), expected);
    let one = r#"{"jobs": [{"name": "test"}, {"name": "deploy", "needs": ["test"]}]}"#;
    let expected = serde_json::json!(["test (a)", "test", "test #2", "test (slow)"]);
    assert_eq!(needed(one), expected);
}

#[test]
fn names_of_the_ci_system_are_escaped_and_needs_found_by_them() {
    let odd = "a\u{1b}[2J\u{202e}";
    let all = [ci_job(odd, 0, 5, &[]), ci_job("b", 6, 9, &[odd])];
    let drawn = pipeline(Vec::new(), None, &all);
    let json = drawn.json();
    assert_eq!(json["jobs"][1]["needs"], serde_json::json!([odd]));
    let hidden = |it: char| it != '\n' && it.is_control() || it == '\u{202e}';
    for text in [
        tr_text::json::safe(&json, serde_json::ser::CompactFormatter).unwrap(),
        drawn.page().text(&Style::PLAIN),
        drawn.html(),
    ] {
        assert!(!text.contains(hidden) && text.contains("202e"), "{text}");
    }
}

#[test]
fn the_page_has_each_job_once_and_no_markup_of_theirs() {
    let mut all = jobs();
    all.push(job("<b>&", 40, 41));
    let page = pipeline(all, Some(&needs()), &[]).html();
    for name in ["build", "lint", "unit", "e2e", "deploy", "&lt;b&gt;&amp;"] {
        let bar = format!(">{name}</text>");
        assert_eq!(page.matches(&bar).count(), 1, "{name}");
    }
    assert!(!page.contains("<b>") && !page.contains("<script"));
    // The wait of the job `e2e` for the job `build` begins at 10 s and takes 4 s. The page shows 41 s.
    assert!(page.contains("class=\"hollow\" x=\"24.390%\""), "{page}");
}
