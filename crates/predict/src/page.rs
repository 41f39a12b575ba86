//! Writes a forecast as an HTML page that shows the recorded schedule of processes beside simulated ones, for many
//! numbers of CPUs and jobs.

use std::collections::{BTreeMap, BTreeSet};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::Serialize;
use tr_analyze::model::{Analysis, ProcessIx};
use tr_analyze::schedule::Done;
use tr_analyze::share;

use super::predictor::wide_sentence;
use super::render::{longest_parts, powers};
use crate::{Forecast, Predictor};
use tr_insight::processes::{label, who};
use tr_report::html;
use tr_text::{escape, json, units};

/// The largest number of processes that the forecast's page draws, so that 64 schedules fit into it.
const DRAWN_PROCESSES: usize = 120;
/// The unit of the times of bars in the forecast's page, in ns. It is part of the layout of the page's data.
const UNIT: u64 = 1000;
/// The forecast's page draws a process that starts other processes only if the process does much work itself: it was on
/// a CPU for at least a tenth (1/`WORKING_PART`) of its wall time, or has at least a tenth of the run's CPU time. A
/// guess: a process with less CPU time mostly waits for the processes that it starts.
const WORKING_PART: u64 = 10;

/// The interactive page of a forecast as HTML. It draws the longest processes as bars.
pub fn page(
    predictor: &Predictor,
    analysis: &Analysis,
    forecast: &Forecast,
) -> std::io::Result<String> {
    let start = (forecast.cpus, forecast.jobs);
    let data = Schedules::new(predictor, analysis, start);
    // The data must not contain the end of the HTML element that holds it.
    let data = String::from_utf8(json::visible(&data)?).map_err(std::io::Error::other)?;
    let data = data.replace('<', "\\u003c");
    let title = format!("Forecast: {}", escape::html(&who::headline(&analysis.meta)));
    let warnings = forecast.warnings.iter();
    let warnings = warnings.map(|text| format!("<li><span>{}</span></li>", escape::html(text)));
    let mut warnings: String = warnings.collect();
    if !warnings.is_empty() {
        warnings = format!("<ul class=\"warned\" role=\"alert\">{warnings}</ul>\n");
    }
    Ok(html::forecast_page(
        &title,
        &[("warnings", warnings.as_str()), ("data", data.as_str())],
    ))
}

/// The data of a forecast's page: the recorded schedule and the simulated ones that it can show. The lengths of runs
/// are in ns; the beginning and the end of each bar are in units of `unit` ns since the run's beginning.
#[derive(Serialize)]
struct Schedules {
    command: String,
    recorded: Recorded,
    /// The number of CPUs and the number of jobs for which the forecast's page shows the schedule first.
    start: (u64, Option<u64>),
    unit: u64,
    names: Vec<String>,
    /// For each drawn process, its brief name, for bars in which its name has no room.
    briefs: Vec<Option<String>>,
    programs: Vec<String>,
    processes: usize,
    assumed: Vec<String>,
    /// The sentence that the page shows beside a simulated run whose time interval is too wide to be useful.
    wide: String,
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Recorded {
    wall: u64,
    cpus: u64,
    bars: Vec<u64>,
}

#[derive(Serialize)]
struct Run {
    cpus: u64,
    /// The number of jobs that run at once in this simulated run; `None` for as many as in the recording.
    jobs: Option<u64>,
    /// The length of this simulated run at best, likely and at worst, in ns.
    wall: [u64; 3],
    /// Whether the time interval of this simulated run is too wide to be useful, because of the other tasks beside the
    /// recorded run.
    wide: bool,
    /// The share of the CPUs that this simulated run uses, in percent.
    used: u64,
    decides: String,
    /// The bars of the drawn processes in this simulated run: for each process, its beginning and then its end. Both
    /// are equal if the simulated run leaves the process out.
    bars: Vec<u64>,
    path: Vec<u32>,
}

impl Schedules {
    fn new(predictor: &Predictor, analysis: &Analysis, start: (u64, Option<u64>)) -> Schedules {
        let unit = UNIT;
        let drawn = drawn(predictor, analysis, DRAWN_PROCESSES);
        let grid = grid(predictor, start.0, start.1);
        let runs = grid.into_par_iter();
        let runs = runs.map(|(cpus, jobs)| run(predictor, analysis, &drawn, unit, cpus, jobs));
        let names = drawn.iter().map(|ix| label::label(analysis.process(*ix)));
        let briefs = drawn.iter().map(|ix| label::brief(analysis.process(*ix)));
        let programs = drawn
            .iter()
            .map(|ix| label::program(analysis.process(*ix)).to_string());
        let recorded = drawn.iter().flat_map(|ix| {
            let process = analysis.process(*ix);
            [process.start, process.end].map(|at| at.since(predictor.from) / unit)
        });
        Schedules {
            command: who::headline(&analysis.meta),
            recorded: Recorded {
                wall: predictor.recorded,
                cpus: predictor.recorded_cpus,
                bars: recorded.collect(),
            },
            start,
            unit,
            names: names.map(|name| units::shorten(&name, 60)).collect(),
            briefs: briefs.collect(),
            programs: programs.collect(),
            processes: predictor.own.len(),
            assumed: predictor.assumed_of_all(),
            wide: wide_sentence("this forecast"),
            runs: runs.collect(),
        }
    }
}

/// The processes of the recorded run that the forecast's page draws, in the order of their starts: the `most` longest
/// of those that start no others or do much work themselves ([`WORKING_PART`]).
fn drawn(predictor: &Predictor, analysis: &Analysis, most: usize) -> Vec<ProcessIx> {
    let on_cpu = |ix: &ProcessIx| analysis.process(*ix).times.on_cpu;
    let work = predictor.own.iter().map(on_cpu);
    let work = work.fold(0, u64::saturating_add);
    let shown = |ix: &ProcessIx| {
        let process = analysis.process(*ix);
        let is_large = work > 0 && on_cpu(ix) >= work / WORKING_PART;
        let works = on_cpu(ix) > 0 && on_cpu(ix) >= process.wall() / WORKING_PART;
        is_large || works || process.children.is_empty()
    };
    let own = predictor.own.iter().copied();
    let mut all: Vec<ProcessIx> = own.filter(shown).collect();
    let length = |ix: &ProcessIx| analysis.process(*ix).wall();
    all.sort_unstable_by_key(|ix| (std::cmp::Reverse(length(ix)), *ix));
    all.truncate(most);
    all.sort_unstable_by_key(|ix| (analysis.process(*ix).start, *ix));
    all
}

/// The pairs of a number of CPUs and a number of jobs for which the forecast's page has a simulated schedule.
fn grid(predictor: &Predictor, chosen: u64, wanted: Option<u64>) -> Vec<(u64, Option<u64>)> {
    let more = [chosen, predictor.recorded_cpus];
    let cpus: BTreeSet<u64> = powers().chain(more).collect();
    let mut jobs = BTreeSet::new();
    jobs.insert(None);
    if predictor.has_jobs() {
        jobs.extend(powers().map(Some));
        jobs.insert(wanted);
    }
    let all = cpus.into_iter();
    all.flat_map(|cpus| jobs.iter().map(move |jobs| (cpus, *jobs)))
        .collect()
}

fn run(
    predictor: &Predictor,
    analysis: &Analysis,
    drawn: &[ProcessIx],
    unit: u64,
    cpus: u64,
    jobs: Option<u64>,
) -> Run {
    let (wall, done) = predictor.interval(cpus, jobs);
    let lives = lives(analysis, &done);
    let bars = drawn.iter().flat_map(|ix| {
        let (from, to) = lives.get(ix).copied().unwrap_or_default();
        [from / unit, to / unit]
    });
    let on_path: BTreeSet<ProcessIx> = done
        .legs
        .iter()
        .map(|leg| analysis.thread(leg.thread).process)
        .collect();
    let path = drawn.iter().zip(0..).filter(|(ix, _)| on_path.contains(ix));
    Run {
        cpus,
        jobs,
        wide: predictor.is_wide(&wall),
        wall: [wall.low, wall.likely, wall.high],
        used: share(100, done.on_cpu, done.wall.saturating_mul(cpus)),
        decides: longest_parts(&crate::forecast::parts(analysis, &done), 3),
        bars: bars.collect(),
        path: path.map(|(_, at)| at).collect(),
    }
}

/// The beginning and the end of each process in a simulated run, in ns since the run's beginning.
fn lives(analysis: &Analysis, done: &Done) -> BTreeMap<ProcessIx, (u64, u64)> {
    let mut lives: BTreeMap<ProcessIx, (u64, u64)> = BTreeMap::new();
    for life in &done.lives {
        let process = analysis.thread(life.thread).process;
        let (from, to) = lives.entry(process).or_insert((life.from, life.to));
        *from = (*from).min(life.from);
        *to = (*to).max(life.to);
    }
    lives
}
