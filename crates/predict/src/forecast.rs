//! The changes that a user asks for, and the forecast.

use std::collections::BTreeMap;

use regex::bytes::Regex;
use tr_analyze::critical_path::NoPath;
use tr_analyze::model::Analysis;
use tr_analyze::schedule::Done;
use tr_analyze::share;

use tr_insight::Recording;
use tr_insight::{exit, label, warnings, who};
use tr_text::units;

#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub cpus: Option<u64>,
    pub jobs: Option<u64>,
    /// The CPU quota in thousandths of a CPU.
    pub quota: Option<u64>,
    /// Programs, each with the factor by which it is faster.
    pub faster: Vec<(String, f64)>,
    /// Patterns of executions that are left out together with their descendants.
    pub without: Vec<Regex>,
    /// Patterns of executions, each with the share that is left out.
    pub cached: Vec<(Regex, f64)>,
    /// The factor by which waits for disks are shorter.
    pub disk: Option<f64>,
    pub network: Option<f64>,
    /// Whether the run has the machine for itself: other tasks take no CPU time.
    pub alone: bool,
    pub longest_first: bool,
    /// The number of machines among which the tests are split.
    pub shards: Option<u64>,
    /// Whether a table of machines is wanted.
    pub table: bool,
    /// The price of one CPU for a minute.
    pub price: Option<f64>,
}

/// A forecast time with its lower and its upper bound, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub low: u64,
    pub likely: u64,
    pub high: u64,
}

/// A part of the critical path in the forecast schedule.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Part {
    pub name: String,
    /// The length of the part in ns.
    pub ns: u64,
}

/// The number of CPUs beyond which more CPUs gain nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knee {
    pub cpus: u64,
    /// The parts of the critical path with that number of CPUs.
    pub because: Vec<Part>,
}

/// The forecast for one machine of a table.
#[derive(Clone, Debug)]
pub struct Row {
    pub cpus: u64,
    pub jobs: Option<u64>,
    pub wall: Interval,
    /// A bound in bytes of the memory of all processes together; `None` if a process's memory is not known.
    pub memory: Option<u64>,
    /// The price of the CPUs' time.
    pub cost: Option<f64>,
    pub decides: String,
}

/// A forecast. Times in ns.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The recorded length of the critical path.
    pub recorded: u64,
    /// The forecast without any change, if the simulation is too far off for a comparison with the recorded time.
    pub unchanged: Option<u64>,
    pub wall: Interval,
    pub cpus: u64,
    pub recorded_cpus: u64,
    pub jobs: Option<u64>,
    /// The number of machines among which tests are split.
    pub shards: Option<u64>,
    /// The CPU time of the forecast run.
    pub on_cpu: u64,
    /// A bound in bytes of the memory of all processes together; `None` if a process's memory is not known.
    pub memory: Option<u64>,
    pub path: Vec<Part>,
    pub knee: Option<Knee>,
    /// The cost of the forecast run.
    pub cost: Option<f64>,
    pub cheapest: Option<Row>,
    pub table: Vec<Row>,
    /// The assumptions of the forecast, and the facts that it lacks.
    pub assumed: Vec<String>,
    /// The reasons why the forecast is doubtful: for example, the recorded run failed or is incomplete.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum NoForecast {
    Path(NoPath),
    /// The recording has only totals. If no change shortens the work, the run takes at least its CPU time divided by the
    /// number of CPUs.
    Totals {
        at_best: Option<u64>,
        cpus: u64,
    },
    /// Nothing matches a name or a regular expression.
    NoMatch(String),
    /// A regular expression matches the recorded command itself.
    Nothing(String),
    /// The recording has no tool whose jobs are known.
    NoJobs,
    /// The recording has no two tests with a process each.
    NoTests,
}

/// The most CPUs of a forecast's table and of a search for the knee: a bound of the work.
pub const MOST_CPUS: u64 = 64;
/// The number of parts of a path that are printed.
const PARTS: usize = 6;
/// The width of the command in a warning, in columns.
const COMMAND: usize = 60;

/// The lower bound that totals allow: the CPU time, divided evenly among the CPUs. The effect of a change on it is not
/// known.
pub(crate) fn totals(analysis: &Analysis, wanted: &Wanted) -> NoForecast {
    let cpus = wanted
        .cpus
        .unwrap_or_else(|| analysis.cpus_of_build())
        .max(1);
    let all = analysis
        .processes
        .iter()
        .map(|process| process.times.on_cpu);
    let all = all.fold(0, u64::saturating_add);
    let less = wanted.faster.iter().any(|(_, by)| *by > 1.0)
        || !wanted.without.is_empty()
        || !wanted.cached.is_empty()
        || wanted.shards.is_some();
    let allowed = cpus.saturating_mul(1000);
    let allowed = wanted
        .quota
        .map_or(allowed, |quota| allowed.min(quota.max(1)));
    NoForecast::Totals {
        at_best: (!less).then(|| share(all, 1000, allowed)),
        cpus,
    }
}

/// Sentences which say that the recorded run failed, is recorded only in part, or has incomplete numbers.
pub(crate) fn warnings(recording: &Recording) -> Vec<String> {
    let analysis = &recording.analysis;
    let mut said = Vec::new();
    let status = analysis.summary.as_ref().and_then(|summary| summary.status);
    if let Some(status) = status.filter(|status| exit::failed(Some(*status))) {
        let command = units::shorten(&who::headline(&analysis.meta), COMMAND);
        let end = exit::words(status);
        said.push(format!(
            "{command} failed ({end}): the forecast is of a run that fails"
        ));
    }
    if exit::is_unfinished(analysis) {
        let ended = exit::UNFINISHED;
        said.push(format!(
            "the recording {ended}: the forecast is of that part"
        ));
    }
    said.extend(warnings::warnings(recording));
    said
}

/// The parts of a path by process, the longest first.
pub(crate) fn parts(analysis: &Analysis, done: &Done) -> Vec<Part> {
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for leg in &done.legs {
        let process = analysis.thread(leg.thread).process;
        let name = label::label(analysis.process(process));
        let sum = by_name.entry(name).or_default();
        *sum = sum.saturating_add(leg.ns);
    }
    let parts = by_name.into_iter().map(|(name, ns)| Part { name, ns });
    let mut parts: Vec<Part> = parts.collect();
    parts.sort_by(|a, b| (b.ns, &a.name).cmp(&(a.ns, &b.name)));
    parts.truncate(PARTS);
    parts
}

impl std::fmt::Display for NoForecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoForecast::Path(why) => write!(f, "no forecast: {why}"),
            NoForecast::Totals { at_best, cpus } => {
                f.write_str("no forecast: the recording has totals, no switches of tasks; ")?;
                match at_best {
                    Some(ns) => write!(f, "at best its CPU time takes {} on {}", units::time(*ns), units::cpus(*cpus)),
                    None => f.write_str("how much of its CPU time is left, they do not tell"),
                }
            }
            NoForecast::NoMatch(what) => write!(f, "{what}: no program of the recording matches"),
            NoForecast::Nothing(what) => write!(
                f,
                "{what}: the recorded command itself matches, and nothing would be left"
            ),
            NoForecast::NoTests => {
                f.write_str("--shards: the recording has no two tests with a process each")
            }
            NoForecast::NoJobs => {
                f.write_str("--jobs: the recording has no make, ninja, cargo, go, xargs, parallel, ctest or prove with jobs")
            }
        }
    }
}
