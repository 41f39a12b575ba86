//! Unit tests of the figures for services.

use super::*;
use crate::diff::benchmarks;
use crate::diff::machine::tests::{diff, run};
use crate::diff::run::RunSize;

#[test]
fn builds_that_failed_or_have_no_end_give_no_figure() {
    let good = || run([10, 5, 0, 0]);
    let failed = Run {
        status: Some(2 << 8),
        ..good()
    };
    let cut = Run {
        cut: true,
        ..good()
    };
    let short = Run {
        unfinished: true,
        ..good()
    };
    let written = |base: &Run, new: &Run| {
        let diff = diff(base.clone(), new.clone());
        [Service::Action, Service::Bencher].map(|it| benchmarks::render(&diff, it))
    };
    let [action, bencher] = written(&good(), &good());
    assert!(action.contains("10000.0") && bencher.contains("10000000000"));
    for bad in [&failed, &cut, &short] {
        assert_eq!(written(&good(), bad), ["[]\n", "{}\n"]);
        assert_eq!(written(bad, &good()), ["[]\n", "{}\n"]);
    }
    let words = [&failed, &cut, &short].map(|it| it.defect().map(|defect| defect.to_string()));
    let expected = [
        ": its build failed (exit 2)",
        " is truncated",
        " ended before its command did",
    ];
    assert_eq!(words, expected.map(|words| Some(words.to_owned())));
    assert_eq!(good().defect(), None);
}

#[test]
fn one_run_has_no_interval() {
    let one = run([10, 5, 0, 0]);
    let two = run([12, 5, 0, 0]);
    for (service, bounds) in [
        (Service::Action, &["range"][..]),
        (Service::Bencher, &["lower_value", "upper_value"]),
    ] {
        let alone = json(std::slice::from_ref(&one), service);
        let both = json(&[one.clone(), two.clone()], service);
        for bound in bounds {
            assert!(!alone.contains(bound), "{alone}");
            assert!(both.contains(bound), "{both}");
        }
    }
}

#[test]
fn the_size_of_a_runner_is_a_measure_where_every_run_has_it() {
    let sized = |memory| {
        let mut run = run([10, 5, 0, 0]);
        run.size = RunSize {
            memory,
            cpus: Some(3),
            disk: None,
        };
        run
    };
    let bencher = json(&[sized(Some(4096)), sized(Some(8192))], Service::Bencher);
    let bencher: Value = serde_json::from_str(&bencher).unwrap_or_default();
    let command = bencher.as_object().and_then(|all| all.values().next());
    let measures = command.cloned().unwrap_or_default();
    assert_eq!(measures["memory"]["upper_value"], 8192);
    assert_eq!(measures["cpus"]["value"], 3);
    assert!(measures["disk"].is_null());
    let action = json(&[sized(Some(4096)), sized(None)], Service::Action);
    let action: Value = serde_json::from_str(&action).unwrap_or_default();
    let units: Vec<&str> = action
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["unit"].as_str())
        .collect();
    assert!(
        units.contains(&"CPUs") && !units.contains(&"bytes"),
        "{action}"
    );
}
