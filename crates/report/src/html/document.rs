//! The page's data as JSON: the trace, the sums, and a column for each property of the processes, threads and
//! executions.
//!
//! Times are in ns since the start of the trace, as in `--format json`; an unknown value is `null`. A text is stored as
//! its index in `strings`. Each part of the document has a file of its own in this module.

use std::collections::BTreeSet;

use serde::Serialize;
use tr_analyze::contention::{Contention, Slices};
use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::ProcessIx;

use crate::html::connections::{connections, Connections};
use crate::html::counters::{counters, Counters};
use crate::html::digits::Digits;
use crate::html::overview::{unplaced, Change, FailureRows, Shares, Totals, Trace, VerdictRow};
use crate::html::path::Path;
use crate::html::processes::{Execs, Processes, Tables, Threads};
use crate::html::segments::{kinds as piece_kinds, KindRow, Segments, Sizes};
use crate::html::stacks::{StackSizes, Stacks};
use crate::html::steps::{Chosen, Steps};
use tr_advice::advise;
use tr_advice::depends::needs;
use tr_advice::facts::BuildFacts;
use tr_failure::Failures;
use tr_insight::cpus::shares::CpuShares;
use tr_insight::path::kinds;
use tr_insight::processes::label;
use tr_insight::recordings::warnings;
use tr_insight::views::view::{Ask, View};
use tr_insight::Recording;
use tr_programs::program_name::ProgramName;
use tr_programs::tools::Role;
use tr_text::strings::Strings;
use tr_text::words::STATES;

/// The largest size in bytes, before compression, that all texts of more than one line on a page may have together.
const TEXTS: usize = 8 << 20;

#[derive(Serialize)]
pub struct Document {
    /// The version of the layout of the data. The script that reads the data is in the same HTML file.
    version: u32,
    trace: Trace,
    totals: Totals,
    /// For each number n, the time in ns in which exactly n tasks were on a CPU.
    concurrency: Vec<u64>,
    concurrency_unknown: u64,
    /// Two times in ns. The first one is the time in which tasks wanted all CPUs that the build could use, or more. The
    /// second one is the time in which the number of tasks that wanted a CPU is known. `None` without a critical path.
    work_for_all: Option<(u64, u64)>,
    /// How the machine's CPU time divides between the build, other tasks and idle time, as text.
    shares: Vec<String>,
    /// How the machine's CPU time divides between the build, other tasks and idle time, in nanoseconds.
    cpu_time: Shares,
    warnings: Vec<String>,
    failures: FailureRows,
    /// The verdict on the whole build: who is responsible for its time. `None` if the recording does not show for how
    /// long the machine delayed the build, for example by other tasks.
    verdict: Option<VerdictRow>,
    advice: Vec<Change>,
    combined: Option<String>,
    anomalies: Vec<String>,
    clocks: Vec<String>,
    strings: Vec<String>,
    /// Whether times of single processes are rounded to three digits.
    rounded: bool,
    processes: Processes,
    /// The names of the programs that are compilers. `linkers` has the names of the programs that are linkers.
    compilers: Vec<String>,
    linkers: Vec<String>,
    threads: Threads,
    execs: Execs,
    path: Option<Path>,
    path_title: &'static str,
    steps: Steps,
    /// The name of a step that runs tests as a whole, although its test runner could report each test as a step; `None`
    /// if there is no such step.
    untold: Option<String>,
    /// The number of failed tests for which it is not known when they ran. Only the result files of test runners have
    /// these tests.
    unplaced_failed: usize,
    /// The names and results of the first failed tests for which it is not known when they ran.
    unplaced_names: Vec<(String, &'static str)>,
    /// The names of the columns that show how a step's wall time was used, such as on a CPU or waiting for the disk.
    uses: Vec<&'static str>,
    connections: Connections,
    /// The number of all connections of the recording, of which `connections` may have only a part.
    connections_of: usize,
    counters: Counters,
    /// The names of the states of a thread.
    states: [&'static str; 5],
    kinds: Vec<KindRow>,
    segments: Sizes,
    /// The sizes of the data about stacks, for a recording with stacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    stacks: Option<StackSizes>,
}

fn work_for_all(demand: &[u64], cpus: u64) -> (u64, u64) {
    let sum = |times: &[u64]| times.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    let first = usize::try_from(cpus).unwrap_or(usize::MAX);
    (sum(demand.get(first..).unwrap_or(&[])), sum(demand))
}

/// The labels of the recorded programs that have a role in the build, such as compiler, sorted.
fn programs_with(programs: &BTreeSet<ProgramName>, role: Role) -> Vec<String> {
    let has_role = |program: &&ProgramName| program.role() == Some(role);
    let programs = programs.iter().filter(has_role);
    programs.map(ProgramName::to_string).collect()
}

/// Collects the data of a page. `path` is the critical path and `stacks` are the sampled stacks, if there are any.
pub fn document(
    recording: &Recording,
    file: &str,
    path: Option<&CriticalPath>,
    segments: &Segments,
    stacks: Option<&Stacks>,
) -> Document {
    let analysis = &recording.analysis;
    let mut strings = Strings::new(TEXTS);
    let steps = Chosen::new(recording);
    let everything: Vec<ProcessIx> = analysis.process_ids().collect();
    let ask = Ask::default();
    let view = View::new(recording, &everything, file, &ask);
    let mut slices = Slices::of_all_times(analysis);
    let facts = path.and_then(|path| BuildFacts::new(recording, path, slices.as_mut()));
    let contention = if facts.is_some() {
        slices.map(|slices| slices.finish(analysis))
    } else {
        Contention::new(analysis)
    };
    let advised = path.map(|path| advise(&view, path, facts.as_ref()));
    let advised = advised.unwrap_or_default();
    let needs = facts.as_ref().map(needs).unwrap_or_default();
    let changes = advised.to_change();
    let shown = advised.to_change().count();
    let tables = Tables::new(analysis, &steps, &mut strings);
    let programs: BTreeSet<ProgramName> = analysis.processes.iter().map(label::program).collect();
    // The steps are computed before the failures, because the failures need the verdicts on the steps, which are found
    // together with the steps' times.
    let mut step_columns = steps.columns(analysis, path, &needs, contention, &mut strings);
    let failures = Failures::new(recording, &everything, Some(&steps.judged));
    steps.keep_failures_that_count(&mut step_columns, &failures);
    Document {
        version: 1,
        trace: Trace::new(analysis, &recording.imports, file),
        totals: Totals::new(&analysis.totals),
        concurrency: analysis.concurrency.times.clone(),
        concurrency_unknown: analysis.concurrency.unknown,
        work_for_all: facts
            .as_ref()
            .map(|facts| work_for_all(&facts.parallelism.demand, facts.cpus)),
        warnings: warnings::warnings(recording),
        shares: CpuShares::of(analysis).words(analysis),
        cpu_time: Shares::new(&CpuShares::of(analysis)),
        failures: FailureRows::new(&failures),
        verdict: advised.verdict.as_ref().map(VerdictRow::new),
        advice: changes
            .map(|advice| Change::new(analysis, advice))
            .collect(),
        combined: advised.combined(shown).map(|combined| combined.text(shown)),
        anomalies: warnings::anomalies(&analysis.quality),
        clocks: warnings::clocks(&analysis.quality).into_iter().collect(),
        rounded: Digits::of(analysis).rounds(),
        processes: tables.processes,
        compilers: programs_with(&programs, Role::Compiler),
        linkers: programs_with(&programs, Role::Linker),
        threads: tables.threads,
        execs: tables.execs,
        path: path.map(|path| Path::new(analysis, &steps.judged.steps, path)),
        path_title: tr_insight::path::title(analysis),
        steps: step_columns,
        untold: steps.hidden_tests(analysis),
        unplaced_failed: recording.imports.unplaced().failed,
        unplaced_names: unplaced(&recording.imports),
        uses: kinds::COLUMNS.iter().map(|column| column.title).collect(),
        connections: connections(analysis, &mut strings),
        connections_of: analysis.network.connections.len() + analysis.network.lookups.len(),
        counters: counters(analysis),
        states: STATES,
        kinds: piece_kinds(),
        segments: Sizes::new(segments),
        stacks: stacks.map(|stacks| StackSizes::new(stacks, &mut strings)),
        strings: strings.list(),
    }
}
