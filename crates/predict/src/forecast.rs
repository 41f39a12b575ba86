//! The changes that a user can request, and the forecast.

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
    /// The quota of CPU time, in thousandths of a CPU.
    pub quota: Option<u64>,
    /// The programs that become faster, each with the factor.
    pub faster: Vec<(String, f64)>,
    /// The patterns of executions that are left out together with their descendants.
    pub without: Vec<Regex>,
    /// The patterns of executions of which a share is left out because a cache answers them, each with the share.
    pub cached: Vec<(Regex, f64)>,
    /// The factor by which waits for disks become shorter.
    pub disk: Option<f64>,
    pub network: Option<f64>,
    /// Whether the run has the machine for itself: other tasks take no CPU time.
    pub alone: bool,
    pub longest_first: bool,
    /// The number of machines among which the tests are divided.
    pub shards: Option<u64>,
    /// Whether the user requests a table of machines.
    pub table: bool,
    /// The price of one CPU for one minute.
    pub price: Option<f64>,
}

/// A forecast time with its lower and its upper bound, all in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub low: u64,
    pub likely: u64,
    pub high: u64,
}

impl Interval {
    /// The interval of a time that is forecast in two ways, of which one is right: the likely time is the geometric middle,
    /// which is wrong by the same factor whichever is right.
    pub(crate) fn or(self, other: Interval) -> Interval {
        let product = u128::from(self.likely) * u128::from(other.likely);
        Interval {
            low: self.low.min(other.low),
            likely: u64::try_from(product.isqrt()).unwrap_or(u64::MAX),
            high: self.high.max(other.high),
        }
    }
}

/// A part of the critical path in the simulated run of a forecast.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Part {
    pub name: String,
    /// The length of the part in ns.
    pub ns: u64,
}

/// The number of CPUs beyond which further CPUs save next to no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knee {
    pub cpus: u64,
    /// The parts of the critical path with that number of CPUs, which are the reason.
    pub because: Vec<Part>,
}

/// The forecast for one machine, as a row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    pub cpus: u64,
    pub jobs: Option<u64>,
    pub wall: Interval,
    /// An upper bound in bytes of the memory of all processes together; `None` if a process's memory is not known.
    pub memory: Option<u64>,
    /// The price of the CPUs for the forecast time.
    pub cost: Option<f64>,
    pub decides: String,
}

/// A forecast of how long a recorded run takes on another machine or with changes. Times are in ns.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The recorded length of the critical path in ns.
    pub recorded: u64,
    /// The forecast time in ns without any change, if the simulation is too far off for a comparison with the
    /// recorded time.
    pub unchanged: Option<u64>,
    pub wall: Interval,
    pub cpus: u64,
    pub recorded_cpus: u64,
    pub jobs: Option<u64>,
    /// The number of machines among which the tests are divided.
    pub shards: Option<u64>,
    /// The CPU time of the forecast run in ns.
    pub on_cpu: u64,
    /// An upper bound in bytes of the memory of all processes together; `None` if a process's memory is not known.
    pub memory: Option<u64>,
    pub path: Vec<Part>,
    pub knee: Option<Knee>,
    /// The price of the forecast run.
    pub cost: Option<f64>,
    pub cheapest: Option<Row>,
    pub table: Vec<Row>,
    /// The assumptions of the forecast, and the facts that it lacks, as text.
    pub assumed: Vec<String>,
    /// The reasons why the forecast is doubtful, as text: for example, the recorded run failed or is incomplete.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum NoForecast {
    Path(NoPath),
    /// The recording has only totals of the tasks, which cannot be simulated. If no change shortens the work,
    /// the run takes at least its CPU time divided by the number of CPUs.
    Totals {
        at_best: Option<u64>,
        cpus: u64,
    },
    /// A name or a regular expression matches nothing in the recording. The text says which.
    NoMatch(String),
    /// A regular expression matches the recorded command itself, so that nothing would be left. The text says which.
    Nothing(String),
    /// The recording has no tool whose jobs are known.
    NoJobs,
    /// The recording does not have two tests with a process each.
    NoTests,
}

/// The largest number of CPUs in a forecast's table and in the search for the number that suffices. A bound
/// of the work.
pub const MOST_CPUS: u64 = 64;
/// The largest number of parts of a path that are printed.
const PARTS: usize = 6;
/// The width of the command in a warning, in columns.
const COMMAND: usize = 60;

/// The lower bound that a recording with only totals allows: the CPU time, divided evenly among the CPUs. The
/// effect of a change on it is not known.
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

/// The parts of a simulated critical path by process, the longest first.
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
