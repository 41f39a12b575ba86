//! Writes the figures of runs as the JSON of services that follow figures over time: github-action-benchmark
//! and Bencher.

use super::ends;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{json, Value};

use super::run::{Figure, Run};
use super::spread::median;
use super::Diff;
use tr_programs::steps::StepKind;
use tr_text::named;

named! {
    pub enum Service {
        /// The format `customSmallerIsBetter` of github-action-benchmark.
        Action = "benchmark-action", "for github-action-benchmark: customSmallerIsBetter";
        Bencher = "bencher", "for Bencher: Bencher Metric Format";
    }
}

/// The largest number of steps that are written: each step is a line of a chart.
const STEPS: usize = 100;
/// The least length in ns of a step that is written. A shorter step is noise. A guess.
const LEAST: u64 = 100_000_000;

/// The longest name that Bencher takes, in characters.
const NAME: usize = 1024;

/// The unit of a measure's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// The values are in ns; github-action-benchmark shows them in ms.
    Time,
    Bytes,
    Cpus,
}

/// A measure of a service: its name, and the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measure {
    name: &'static str,
    unit: Unit,
}

/// The measure of a name's length in time, which Bencher knows already.
const LATENCY: Measure = Measure {
    name: "latency",
    unit: Unit::Time,
};

const fn time(name: &'static str) -> Measure {
    let unit = Unit::Time;
    Measure { name, unit }
}

/// The figure of one name, in the unit of its measure: the median of all runs, and their interval.
struct Measured {
    median: u64,
    /// The smallest and the largest value; `None` for a single run, which says nothing about its error.
    interval: Option<RangeInclusive<u64>>,
}

impl Measured {
    fn of(values: &[u64]) -> Option<Measured> {
        let (least, most) = (*values.iter().min()?, *values.iter().max()?);
        Some(Measured {
            median: median(values)?,
            interval: (values.len() > 1).then_some(least..=most),
        })
    }
}

/// The runs of one build as JSON for a service: the medians of their figures, with the smallest and the largest values.
pub fn json(runs: &[Run], service: Service) -> String {
    let mut figures: Vec<(String, Measure, Measured)> = Vec::new();
    type Value = fn(&Run) -> Option<u64>;
    let bytes = |name| Measure {
        name,
        unit: Unit::Bytes,
    };
    let cpus = Measure {
        name: "cpus",
        unit: Unit::Cpus,
    };
    let whole: [(Measure, Value); 6] = [
        (LATENCY, |run| run.figures.get(Figure::Wall)),
        (time("cpu-time"), |run| run.figures.get(Figure::OnCpu)),
        (time("run-queue-wait"), |run| {
            run.figures.get(Figure::RunQueue)
        }),
        (bytes("memory"), |run| run.size.memory),
        (cpus, |run| run.size.cpus),
        (bytes("disk"), |run| run.size.disk),
    ];
    let command = runs.first().map_or("", |run| &run.command);
    for (measure, value) in whole {
        let values: Vec<u64> = runs.iter().filter_map(value).collect();
        // A median of some runs alone would be another figure.
        let all = Measured::of(&values).filter(|_| values.len() == runs.len());
        figures.extend(all.map(|median| (command.to_owned(), measure, median)));
    }
    let mut walls: BTreeMap<&(StepKind, String), Vec<u64>> = BTreeMap::new();
    for (key, sum) in runs.iter().flat_map(|run| &run.steps) {
        walls.entry(key).or_default().push(sum.wall);
    }
    walls.retain(|_, walls| walls.len() == runs.len());
    let steps = walls.into_iter().filter_map(|(key, walls)| {
        let name = format!("{} {}", key.0.name(), key.1);
        Some((name, LATENCY, Measured::of(&walls)?))
    });
    let mut steps: Vec<_> = steps
        .filter(|(.., figure)| figure.median >= LEAST)
        .collect();
    steps.sort_by(|a, b| (Reverse(a.2.median), &a.0).cmp(&(Reverse(b.2.median), &b.0)));
    steps.truncate(STEPS);
    figures.extend(steps);
    let document = match service {
        Service::Action => action(&figures),
        Service::Bencher => bencher(&figures),
    };
    // Memory takes all that is written.
    tr_text::json::document(&document, true).unwrap_or_default()
}

/// The figures of the new runs as JSON for a service. There are none if the new runs or the base do not
/// measure a whole build: a service that stored such a figure would compare later builds with it.
pub fn render(diff: &Diff, service: Service) -> String {
    let runs = match ends::no_build(diff) {
        Some(_) => &[],
        None => diff.new.as_slice(),
    };
    json(runs, service)
}

/// A row of the format customSmallerIsBetter.
#[derive(Serialize)]
struct ActionRow {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
}

/// A measure of the Bencher Metric Format.
#[derive(Serialize)]
struct BencherMeasure {
    value: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<u64>,
}

fn action(figures: &[(String, Measure, Measured)]) -> Value {
    let rows = figures.iter().map(|(name, measure, figure)| {
        let (unit, parts) = match measure.unit {
            Unit::Time => ("ms", 1e6),
            Unit::Bytes => ("bytes", 1.0),
            Unit::Cpus => ("CPUs", 1.0),
        };
        let shown = |value: u64| value as f64 / parts;
        let range = figure.interval.as_ref();
        ActionRow {
            name: if *measure == LATENCY {
                name.clone()
            } else {
                format!("{name}: {}", measure.name)
            },
            unit,
            value: shown(figure.median),
            range: range
                .map(|range| format!("{} to {}", shown(*range.start()), shown(*range.end()))),
        }
    });
    json!(rows.collect::<Vec<_>>())
}

fn bencher(figures: &[(String, Measure, Measured)]) -> Value {
    let mut all: BTreeMap<String, BTreeMap<&str, BencherMeasure>> = BTreeMap::new();
    for (name, measure, figure) in figures {
        let name = match name.chars().nth(NAME) {
            None => name.clone(),
            // Two may begin alike: the number is that of the first figure with this name.
            Some(_) => {
                let first = figures.iter().position(|figure| figure.0 == *name);
                let number = format!("#{}", first.unwrap_or(0));
                let begin = name.chars().take(NAME - number.len());
                begin.chain(number.chars()).collect()
            }
        };
        let interval = figure.interval.as_ref();
        let value = BencherMeasure {
            value: figure.median,
            lower_value: interval.map(|interval| *interval.start()),
            upper_value: interval.map(|interval| *interval.end()),
        };
        all.entry(name).or_default().insert(measure.name, value);
    }
    json!(all)
}

#[cfg(test)]
#[path = "tests/benchmarks.rs"]
mod tests;
