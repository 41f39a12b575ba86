//! A forecast as a page: the recorded schedule beside simulated ones, for a grid of machines.

use std::collections::{BTreeMap, BTreeSet};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde_json::{json, Value};
use tr_analyze::model::{Analysis, ProcessIx};
use tr_analyze::schedule::Done;

use super::render::told;
use super::{Forecast, Predictor, MOST_CPUS};
use crate::{escape, html, label, units, who};

const BODY: &str = include_str!("../../web/src/predict.html");
const SCRIPT: &str = include_str!("../../web/src/predict.js");
/// The processes that are drawn: 64 schedules have to fit into a page.
const DRAWN: usize = 120;

/// The page. What it draws are the longest processes that start no others.
///
/// # Errors
/// None in practice: it writes to memory.
pub fn page(
    predictor: &Predictor,
    analysis: &Analysis,
    forecast: &Forecast,
) -> Result<String, serde_json::Error> {
    let drawn = drawn(predictor, analysis);
    let grid = grid(predictor, forecast);
    let runs = grid.into_par_iter();
    let runs = runs.map(|at| run(predictor, analysis, &drawn, at));
    let runs: Vec<Value> = runs.collect();
    let names = drawn.iter().map(|ix| label::label(analysis.process(*ix)));
    let names: Vec<String> = names.map(|it| units::shorten(&it, 60)).collect();
    let programs = drawn.iter().map(|ix| label::program(analysis.process(*ix)));
    let recorded = drawn.iter().flat_map(|ix| {
        let process = analysis.process(*ix);
        [process.start, process.end].map(|at| micros(at.since(predictor.from)))
    });
    let data = json!({
        "command": who::recorded(&analysis.meta),
        "recorded": {
            "wall": forecast.recorded,
            "cpus": forecast.recorded_cpus,
            "bars": recorded.collect::<Vec<_>>(),
        },
        "start": [forecast.cpus, forecast.jobs],
        "names": names,
        "programs": programs.collect::<Vec<_>>(),
        "processes": analysis.totals.processes,
        "assumed": predictor.assumed_of_all(),
        "runs": runs,
    });
    // Nothing in the data ends its element.
    let data = serde_json::to_string(&data)?.replace('<', "\\u003c");
    let title = escape::html(&who::recorded(&analysis.meta));
    Ok(html::scripted_page(
        &title,
        (BODY, SCRIPT),
        &[("data", data.as_str())],
    ))
}

fn micros(ns: u64) -> u64 {
    ns / 1000
}

/// The longest processes that start no others, in order of their start.
fn drawn(predictor: &Predictor, analysis: &Analysis) -> Vec<ProcessIx> {
    let mut all: Vec<ProcessIx> = analysis
        .process_ids()
        .filter(|ix| predictor.own.contains(ix) && analysis.process(*ix).children.is_empty())
        .collect();
    let length = |ix: &ProcessIx| {
        let process = analysis.process(*ix);
        process.end.since(process.start)
    };
    all.sort_by_key(|ix| (std::cmp::Reverse(length(ix)), *ix));
    all.truncate(DRAWN);
    all.sort_by_key(|ix| (analysis.process(*ix).start, *ix));
    all
}

/// The CPUs and the jobs of the schedules.
fn grid(predictor: &Predictor, forecast: &Forecast) -> Vec<(u64, Option<u64>)> {
    let powers = || (0..).map(|it| 1u64 << it).take_while(|it| *it <= MOST_CPUS);
    let more = [forecast.cpus, forecast.recorded_cpus];
    let cpus: BTreeSet<u64> = powers().chain(more).collect();
    let mut jobs = BTreeSet::from([None]);
    if predictor.has_jobs() {
        jobs.extend(powers().map(Some));
        jobs.insert(forecast.jobs);
    }
    let all = cpus.into_iter();
    all.flat_map(|cpus| jobs.iter().map(move |jobs| (cpus, *jobs)))
        .collect()
}

/// A schedule: its time, what decides, and the beginning and the end of each bar in µs, which are
/// equal if the process is left out.
fn run(
    predictor: &Predictor,
    analysis: &Analysis,
    drawn: &[ProcessIx],
    (cpus, jobs): (u64, Option<u64>),
) -> Value {
    let (wall, done) = predictor.interval(cpus, jobs);
    let lives = lives(analysis, &done);
    let bars = drawn.iter().flat_map(|ix| {
        let (from, to) = lives.get(ix).copied().unwrap_or_default();
        [micros(from), micros(to)]
    });
    let on_path: BTreeSet<ProcessIx> = done
        .legs
        .iter()
        .map(|leg| analysis.thread(leg.thread).process)
        .collect();
    let path = drawn.iter().zip(0..).filter(|(ix, _)| on_path.contains(ix));
    let all = u128::from(done.wall.max(1)) * u128::from(cpus);
    json!({
        "cpus": cpus,
        "jobs": jobs,
        "wall": [wall.low, wall.likely, wall.high],
        "used": u64::try_from(u128::from(done.on_cpu) * 100 / all).unwrap_or(100),
        "decides": told(&super::parts(analysis, &done), 3),
        "bars": bars.collect::<Vec<u64>>(),
        "path": path.map(|(_, at)| at).collect::<Vec<u32>>(),
    })
}

/// The simulated life of each process, in ns.
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
