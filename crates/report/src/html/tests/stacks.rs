//! Unit tests of `stacks`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;
use crate::output::Report;
use crate::reports::flame::Flame;
use tr_insight::views::view::{Ask, View};
use tr_insight::Recording;

fn analysis() -> Analysis {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/format/3.6.bin");
    let file = std::fs::read(trace).unwrap();
    let trace = tr_format::reader::Trace::open(tr_format::source::Source::bytes(file));
    let options = tr_analyze::Options {
        timeline: true,
        samples: true,
        ..Default::default()
    };
    tr_analyze::analyze(&trace.unwrap(), &options)
}

/// The functions of a stack, innermost first.
fn functions(all: &Stacks, mut stack: u32) -> Vec<&Function> {
    let mut out = Vec::new();
    while stack > 0 {
        let (caller, function) = all.callers[stack as usize - 1];
        assert!(caller < stack);
        out.push(&all.functions[function as usize]);
        stack = caller;
    }
    out
}

/// Rows by function, file and whether the samples are waits. The values are the number and the ns of the samples in the
/// function itself, then the number and the ns of those in the function or its callees.
type Rows = BTreeMap<(String, String, bool), [u64; 4]>;

fn rows_of(all: &Stacks) -> Rows {
    let mut rows = Rows::new();
    for sample in &all.samples {
        let functions = functions(all, sample.stack);
        let waited = sample.kind != 1;
        let user = functions.iter().find(|function| waited && !function.kernel);
        let own = user.or(functions.first()).map(|function| &function.name);
        for name in functions
            .iter()
            .map(|function| &function.name)
            .collect::<BTreeSet<_>>()
        {
            let key = (name.function.clone(), name.binary.clone(), waited);
            let row = rows.entry(key).or_default();
            let itself = u64::from(Some(name) == own);
            row[0] += itself * sample.sum.samples;
            row[1] += itself * sample.sum.ns;
            row[2] += sample.sum.samples;
            row[3] += sample.sum.ns;
        }
    }
    rows
}

fn sum(all: &Stacks, waited: bool) -> SampleSum {
    let mut sum = SampleSum::default();
    let samples = all
        .samples
        .iter()
        .filter(|sample| (sample.kind != 1) == waited);
    samples.for_each(|sample| sum.add(sample.sum));
    sum
}

#[test]
fn functions_have_the_times_of_the_report() {
    let analysis = analysis();
    let all = stacks(&analysis, &Room::default()).unwrap();
    let chosen: Vec<_> = analysis.process_ids().collect();
    let recording = Recording::from(analysis.clone());
    let ask = Ask::default();
    let view = View::new(&recording, &chosen, "", &ask);
    let report = Flame::new(&view).json().unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    // The report has a row for each reason of a wait; this test adds them up.
    let mut rows = Rows::new();
    for row in report["rows"].as_array().unwrap() {
        let names = ["self_samples", "self_ns", "total_samples", "total_ns"];
        let key = (
            text(row, "function"),
            text(row, "binary"),
            row["off_cpu"].as_bool().unwrap(),
        );
        let sums = rows.entry(key).or_default();
        for (sum, name) in sums.iter_mut().zip(names) {
            *sum += row[name].as_u64().unwrap();
        }
    }
    assert!(rows.len() > 20);
    assert_eq!(rows_of(&all), rows);
    for (waited, names) in [
        (false, ["samples", "ns"]),
        (true, ["off_cpu_samples", "off_cpu_ns"]),
    ] {
        let is = sum(&all, waited);
        let is = [is.samples, is.ns].map(Some);
        assert_eq!(is, names.map(|name| report[name].as_u64()));
    }
    assert_eq!(
        (all.together, all.cut, all.short),
        (1, SampleSum::default(), SampleSum::default())
    );
    assert_eq!(all, stacks(&analysis, &Room::default()).unwrap());
}

#[test]
fn waits_have_the_reasons_of_the_timeline() {
    let analysis = analysis();
    let all = stacks(&analysis, &Room::default()).unwrap();
    let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for sample in all.samples.iter().filter(|sample| sample.kind != 1) {
        for function in functions(&all, sample.stack) {
            kinds
                .entry(&function.name.function)
                .or_default()
                .insert(crate::html::segments::kinds()[usize::from(sample.kind)].0);
        }
    }
    assert_eq!(kinds["wait4"], BTreeSet::from(["child"]));
    assert_eq!(kinds["clock_nanosleep"], BTreeSet::from(["timer"]));
}

#[test]
fn times_are_those_of_the_samples_to_a_unit() {
    let analysis = analysis();
    let all = stacks(&analysis, &Room::default()).unwrap();
    assert_eq!(all.counts.iter().sum::<u64>(), all.samples.len() as u64);
    assert!(all.unit * 60_000 <= analysis.end.since(analysis.start));
    let (mut at, mut before) = (0, None);
    for (sample, since) in all.samples.iter().zip(&all.since) {
        at = if before == Some(sample.thread) {
            at + since
        } else {
            *since
        };
        before = Some(sample.thread);
        let off = sample.at.since(analysis.meta.start) - at * all.unit;
        assert!(off < all.unit, "{off}");
    }
}

#[test]
fn the_room_holds_and_the_sums_stay() {
    let analysis = analysis();
    let whole = stacks(&analysis, &Room::default()).unwrap();
    let room = Room {
        samples: 40,
        waits: 9,
        stacks: 30,
    };
    let some = stacks(&analysis, &room).unwrap();
    let threads = analysis.threads.len();
    let on = some
        .samples
        .iter()
        .filter(|sample| sample.kind == 1)
        .count();
    assert!(on <= room.samples + threads, "{on}");
    assert!(some.together > 1);
    assert_eq!(sum(&some, false), sum(&whole, false));
    let mut waits = sum(&some, true);
    assert_eq!(waits.samples, 9);
    waits.add(some.short);
    assert_eq!(waits, sum(&whole, true));
    assert!(some.short.ns * 2 < waits.ns, "the longest stay");
    assert!(some.callers.len() <= 30);
    let without = some.samples.iter().filter(|sample| sample.stack == 0);
    let mut cut = SampleSum::default();
    without.for_each(|sample| cut.add(sample.sum));
    assert!(cut.samples > 0 && cut.samples < sum(&some, false).samples);
    assert_eq!(some.cut, cut);
}

#[test]
fn without_samples_there_is_nothing() {
    assert!(stacks(&Analysis::default(), &Room::default()).is_none());
}
