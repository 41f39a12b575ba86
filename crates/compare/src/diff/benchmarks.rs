//! Writes the figures of builds as JSON for services that follow them over time: github-action-benchmark and Bencher.

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
use tr_text::phrase::Phrase;

named! {
    pub enum Service {
        /// The service github-action-benchmark, whose format is `customSmallerIsBetter`.
        Action = "benchmark-action", "for github-action-benchmark: customSmallerIsBetter";
        Bencher = "bencher", "for Bencher: Bencher Metric Format";
    }
}

/// The largest number of steps whose wall times are written for a service. The service draws a line of a chart for each
/// of these steps.
const STEPS: usize = 100;
/// The least wall time in ns of a step that is written for a service. The time of a shorter step varies too much. A
/// guess.
const SHORTEST_STEP: u64 = 100_000_000;

/// The longest name of a benchmark that Bencher accepts, in characters.
const NAME: usize = 1024;

/// The unit in which a figure of a build is written for a service such as Bencher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// The values are times in ns. For github-action-benchmark they are converted to ms.
    Time,
    Bytes,
    Cpus,
}

/// The kind of a figure for a service such as Bencher: the name of the measure there, and the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measure {
    name: &'static str,
    unit: Unit,
}

/// The measure of wall time, under the name that Bencher has built in.
const LATENCY: Measure = Measure {
    name: "latency",
    unit: Unit::Time,
};

const fn time(name: &'static str) -> Measure {
    let unit = Unit::Time;
    Measure { name, unit }
}

/// A figure of a build for a service, in the unit of its measure: the median over all runs, and their range.
struct Measured {
    median: u64,
    /// The smallest and the largest value of the figure over all runs; `None` for a single run, whose spread is
    /// unknown.
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

/// A figure of the whole build or of one of its steps, with the command line or the step as its name.
struct Row {
    name: String,
    measure: Measure,
    figure: Measured,
}

/// The figures of the whole build (such as wall time and memory) as medians over its runs. A figure that some runs lack
/// is left out: the median of the other runs would not be comparable.
fn whole(runs: &[Run]) -> Vec<Row> {
    type Of = fn(&Run) -> Option<u64>;
    let bytes = |name| Measure {
        name,
        unit: Unit::Bytes,
    };
    let cpus = Measure {
        name: "cpus",
        unit: Unit::Cpus,
    };
    let all: [(Measure, Of); 6] = [
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
    let rows = all.into_iter().filter_map(|(measure, of)| {
        let values: Vec<u64> = runs.iter().filter_map(of).collect();
        let figure = Measured::of(&values).filter(|_| values.len() == runs.len())?;
        Some(Row {
            name: command.to_owned(),
            measure,
            figure,
        })
    });
    rows.collect()
}

/// The wall times of the longest steps, as medians over the runs. Only steps that all runs have are included.
fn steps(runs: &[Run]) -> Vec<Row> {
    let mut walls: BTreeMap<&(StepKind, Phrase), Vec<u64>> = BTreeMap::new();
    for (key, sum) in runs.iter().flat_map(|run| &run.steps) {
        walls.entry(key).or_default().push(sum.wall);
    }
    walls.retain(|_, walls| walls.len() == runs.len());
    let steps = walls.into_iter().filter_map(|((kind, name), walls)| {
        Some(Row {
            name: format!("{} {}", kind.name(), name.whole()),
            measure: LATENCY,
            figure: Measured::of(&walls)?,
        })
    });
    let long = steps.filter(|step| step.figure.median >= SHORTEST_STEP);
    let mut steps: Vec<Row> = long.collect();
    let order = |step: &Row| Reverse(step.figure.median);
    steps.sort_by(|a, b| (order(a), &a.name).cmp(&(order(b), &b.name)));
    steps.truncate(STEPS);
    steps
}

/// The figures of several runs of one build as JSON for a service: the median of each figure, with its smallest and
/// largest value.
pub fn json(runs: &[Run], service: Service) -> String {
    let mut rows = whole(runs);
    rows.extend(steps(runs));
    let document = match service {
        Service::Action => action(&rows),
        Service::Bencher => bencher(&rows),
    };
    // Writing to memory cannot fail.
    tr_text::json::document(&document, true).unwrap_or_default()
}

/// The figures of the new runs of a comparison as JSON for a service. The JSON has no figures if a build of the
/// comparison failed or was only partly recorded: the service would compare later builds with the figures of an
/// incomplete build.
pub fn render(diff: &Diff, service: Service) -> String {
    let runs = match ends::defect(diff) {
        Some(_) => &[],
        None => diff.new.as_slice(),
    };
    json(runs, service)
}

/// A row of the JSON that github-action-benchmark reads (`customSmallerIsBetter`): a figure with its name, unit and
/// value.
#[derive(Serialize)]
struct ActionRow {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
}

/// A measure of a benchmark in the Bencher Metric Format: its value with lower and upper values.
#[derive(Serialize)]
struct BencherMeasure {
    value: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<u64>,
}

fn action(rows: &[Row]) -> Value {
    let rows = rows.iter().map(|row| {
        let Row {
            name,
            measure,
            figure,
        } = row;
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

fn bencher(rows: &[Row]) -> Value {
    let mut all: BTreeMap<String, BTreeMap<&str, BencherMeasure>> = BTreeMap::new();
    for row in rows {
        let (name, figure) = (&row.name, &row.figure);
        let name = match name.chars().nth(NAME) {
            None => name.clone(),
            // Two names that are longer than the limit may begin alike. So a cut name ends with the number of the first
            // row that has the whole name.
            Some(_) => {
                let first = rows.iter().position(|other| other.name == *name);
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
        all.entry(name).or_default().insert(row.measure.name, value);
    }
    json!(all)
}

#[cfg(test)]
#[path = "tests/benchmarks.rs"]
mod tests;
