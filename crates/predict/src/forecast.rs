//! The changes that a user can request from a forecast, and the result of a forecast.

use std::collections::HashMap;

use regex::bytes::Regex;
use tr_analyze::containers::Called;
use tr_analyze::critical_path::NoPath;
use tr_analyze::model::{Analysis, Process};
use tr_analyze::schedule::Done;
use tr_analyze::share;

use tr_insight::processes::label::Identity;
use tr_insight::processes::{exit, label, who};
use tr_insight::recordings::warnings;
use tr_insight::Recording;
use tr_text::phrase::Phrase;
use tr_text::units;

#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub cpus: Option<u64>,
    pub jobs: Option<u64>,
    /// The quota of CPU time (cgroup) for the forecast run, in thousandths of a CPU.
    pub quota: Option<u64>,
    /// The programs that the forecast assumes to be faster, each with the factor by which its CPU time becomes
    /// shorter.
    pub faster: Vec<(String, f64)>,
    /// Regular expressions for command lines. Executions that match one are left out of the forecast, together with
    /// their descendants.
    pub without: Vec<Regex>,
    /// Regular expressions of command lines, each with the share of the matching executions that a cache answers in
    /// the forecast, so that they are left out.
    pub cached: Vec<(Regex, f64)>,
    /// The factor by which waits for disks become shorter in the forecast.
    pub disk: Option<f64>,
    pub network: Option<f64>,
    /// Whether the forecast assumes that other tasks take no CPU time from the run.
    pub alone: bool,
    pub longest_first: bool,
    /// The number of machines among which the forecast divides the tests.
    pub shards: Option<u64>,
    /// Whether the user requests a table of forecasts for several machines.
    pub table: bool,
    /// The price of one CPU for one minute, in the user's currency.
    pub price: Option<f64>,
}

/// The time that a forecast gives for a run: the likely time with its lower and its upper bound, all in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub low: u64,
    pub likely: u64,
    pub high: u64,
}

impl Interval {
    /// Combines two forecasts of one time if it is not known which of the two is right. The likely time is the
    /// geometric mean of both: whichever forecast is right, the mean is then wrong by the same factor.
    pub(crate) fn or(self, other: Interval) -> Interval {
        let product = u128::from(self.likely) * u128::from(other.likely);
        Interval {
            low: self.low.min(other.low),
            likely: u64::try_from(product.isqrt()).unwrap_or(u64::MAX),
            high: self.high.max(other.high),
        }
    }
}

/// The time that all processes with one name have on the critical path of a forecast's simulated run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProgramOnPath {
    pub name: Phrase,
    /// The time in ns that the processes with this name have on the critical path together.
    pub ns: u64,
}

/// The number of CPUs beyond which further CPUs save next to no time, according to a forecast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knee {
    pub cpus: u64,
    /// The parts of the critical path with this number of CPUs. They show why more CPUs do not help.
    pub because: Vec<ProgramOnPath>,
}

/// A row in the table of a forecast: the time on a machine with a certain number of CPUs.
#[derive(Clone, Debug)]
pub struct Row {
    pub cpus: u64,
    pub jobs: Option<u64>,
    pub wall: Interval,
    /// An upper bound in bytes of the memory of all processes together on the row's machine; `None` if a process's
    /// memory was not recorded.
    pub memory: Option<u64>,
    /// The price of all machines together for the forecast time, if the user gives the price of a CPU.
    pub cost: Option<f64>,
    pub decides: String,
}

/// A forecast of how long a recorded run takes on another machine or with changes. Times are in ns.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The length of the recorded run's critical path in ns.
    pub recorded: u64,
    /// The forecast time in ns for the run without any change. This field is set only if this time differs so much from
    /// the recorded time that forecasts with changes should be compared with it.
    pub unchanged: Option<u64>,
    pub wall: Interval,
    pub cpus: u64,
    pub recorded_cpus: u64,
    pub jobs: Option<u64>,
    /// The number of machines among which the forecast divides the tests.
    pub shards: Option<u64>,
    /// The CPU time of the forecast run in ns; if the tests are divided among machines, that of the slowest one.
    pub on_cpu: u64,
    /// An upper bound in bytes of the memory of all processes of the forecast run together, on the slowest machine of
    /// a division of the tests; `None` if a process's memory was not recorded.
    pub memory: Option<u64>,
    pub path: Vec<ProgramOnPath>,
    pub knee: Option<Knee>,
    /// The price of the forecast run, if the user gives the price of a CPU.
    pub cost: Option<f64>,
    pub cheapest: Option<Row>,
    pub table: Vec<Row>,
    /// The assumptions of the forecast, and the effects that it does not include, as sentences.
    pub assumed: Vec<String>,
    /// The reasons why the forecast is doubtful, as sentences: for example, the recorded run failed or is incomplete.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum NoForecast {
    Path(NoPath),
    /// The recording has only the total times of tasks, which cannot be simulated. `at_best` is the run's CPU time in
    /// ns, divided by the number of CPUs (or by a lower quota); `None` if a change shortens the work.
    Totals {
        at_best: Option<u64>,
        cpus: u64,
    },
    /// A program name or a regular expression of the user matches nothing in the recording. The text names the option
    /// and its value.
    NoMatch(String),
    /// A regular expression of the user matches the recorded command itself, so that nothing would be left to
    /// forecast. The text names the option and its value.
    Nothing(String),
    /// The user requests a number of jobs, but the recording has no build tool whose jobs are known.
    NoJobs,
    /// The user wants to divide the tests among machines, but the recording does not have two tests with a process
    /// each.
    NoTests,
}

/// The largest number of CPUs in a forecast's table and in the search for the number of CPUs that suffices. It bounds
/// the work.
pub const MOST_CPUS: u64 = 64;
/// The largest number of parts of the critical path that a forecast prints.
const MOST_PARTS: usize = 6;
/// The largest width of the recorded command in a forecast's warning, in columns.
const COMMAND: usize = 60;

/// The error for a recording with only totals. It has the lower bound that the totals allow, the CPU time divided
/// evenly among the CPUs, unless requested changes could reduce it.
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

/// Warnings that a forecast may be wrong, because the recorded run failed, was recorded only in part, or lacks some
/// numbers.
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

/// The longest parts of a simulated critical path, the longest first. Processes that get the same name are one part.
pub(crate) fn parts(analysis: &Analysis, done: &Done) -> Vec<ProgramOnPath> {
    type Key<'a> = (Identity, bool, Option<&'a Called>);
    let mut sums: HashMap<Key<'_>, (&Process, u64)> = HashMap::new();
    for leg in &done.legs {
        let process = analysis.process(analysis.thread(leg.thread).process);
        let is_forked = process.execs.is_empty();
        let container = process.role.container.as_deref();
        let key = (Identity::of(process), is_forked, container);
        let (_, sum) = sums.entry(key).or_insert((process, 0));
        *sum = sum.saturating_add(leg.ns);
    }
    let parts = sums.into_values().map(|(process, ns)| ProgramOnPath {
        name: label::phrase(process),
        ns,
    });
    let mut parts: Vec<ProgramOnPath> = parts.collect();
    parts.sort_by(|a, b| (b.ns, &a.name).cmp(&(a.ns, &b.name)));
    parts.truncate(MOST_PARTS);
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
