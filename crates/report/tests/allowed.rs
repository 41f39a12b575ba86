//! Builds that an affinity or a cpuset limits to some of the machine's CPUs.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // of our own tables, in a test

mod common;

use std::path::Path;

use tr_analyze::model::Analysis;
use tr_analyze::{analyze, Options};
use tr_format::counters::{Counter, Counters};
use tr_format::event::CpuId;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_report::reports::ReportKind;

use common::report;

/// The analysis of `make -j1` with jobs that could run at once, recorded on a machine with two CPUs.
fn build() -> Analysis {
    let path = "../../fixtures/advice/make-j1.bin";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let trace = Trace::open(Source::bytes(std::fs::read(path).unwrap())).unwrap();
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    analyze(&trace, &options)
}

/// Changes the analysis of [`build`] as if the machine had 64 CPUs. With `few`, the build is allowed to use only two of
/// them.
fn on_64(few: bool) -> Analysis {
    let mut analysis = build();
    analysis.meta.cpus = (0..64).map(CpuId).collect();
    if few {
        analysis.meta.options.allowed = Some(vec![CpuId(0), CpuId(1)]);
        analysis.machine.limited_to = Some(2);
    }
    analysis
}

/// The changes that the advice suggests, as text.
fn actions(analysis: &Analysis) -> Vec<String> {
    let (_, json) = report(analysis, ReportKind::Advice);
    let advice = json["advice"].as_array().unwrap().iter();
    advice.map(|advice| advice["action"].to_string()).collect()
}

fn advises(analysis: &Analysis, jobs: &str) -> bool {
    actions(analysis).iter().any(|action| action.contains(jobs))
}

#[test]
fn no_more_jobs_are_advised_than_the_build_has_cpus() {
    let few = on_64(true);
    assert_eq!(few.cpus_of_build(), 2);
    assert!(advises(&few, "-j2"), "{:?}", actions(&few));
    let (text, _) = report(&few, ReportKind::Top);
    assert!(text.contains(" of 2 CPUs utilized (64 online)\n"), "{text}");
    assert!(text.contains(" · shares of all 64 CPUs\n"), "{text}");
    let (_, json) = report(&few, ReportKind::RunQueue);
    assert_eq!(json["wanted"]["cpus"], 2, "{json}");
    let (text, _) = report(&few, ReportKind::Parallelism);
    assert!(text.contains("there are CPUs (2 of 64 allowed)"), "{text}");
    let (text, _) = report(&few, ReportKind::Quality);
    assert!(text.contains("0-1 (2 of 64)\n"), "{text}");
    let all = on_64(false);
    assert_eq!(all.cpus_of_build(), 64);
    assert!(advises(&all, "-j64"), "{:?}", actions(&all));
    let (text, _) = report(&all, ReportKind::Top);
    assert!(text.contains(" of 64 CPUs utilized\n"), "{text}");
}

/// A process of the build may have set its own affinity, so that it ran on other CPUs than the allowed ones.
#[test]
fn cpus_that_the_build_did_not_keep_to_are_reported() {
    let mut left = on_64(true);
    left.machine.limited_to = None;
    let (text, _) = report(&left, ReportKind::Quality);
    let line = "0-1 (2 of 64); recorded tasks ran on others, too\n";
    assert!(text.contains(line), "{text}");
}

/// The build may use only some of the CPUs. Tasks that run on the other CPUs take no time from the build.
#[test]
fn what_others_do_on_other_cpus_silences_nothing() {
    let busy = |mut analysis: Analysis| {
        let sample = |share: u64| {
            let mut counters = Counters::default();
            let time = analysis.end.since(analysis.start) * share;
            counters.set(Counter::Busy, time * 64);
            counters
        };
        let (first, last) = (sample(0), sample(1));
        analysis.machine.counters = vec![(analysis.start, first), (analysis.end, last)];
        analysis
    };
    let (few, all) = (busy(on_64(true)), busy(on_64(false)));
    assert!(advises(&few, "-j2"), "{:?}", actions(&few));
    assert!(!advises(&all, "-j64"), "{:?}", actions(&all));
    let (_, json) = report(&few, ReportKind::Advice);
    let least = json["advice"].as_array().unwrap().iter();
    let least = least.map(|least| least["gain_at_least_ns"].as_u64());
    // The recording does not show on which CPUs the other tasks ran. These tasks may have used the build's CPUs, so it
    // is not certain that the advised changes save any time.
    assert!(least.max().flatten() == Some(0), "{json}");
}
