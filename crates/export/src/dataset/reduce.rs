//! Reduces the analysis of a recording to the rows that the run has in a dataset.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use tr_analyze::critical_path::{self, CriticalPath};
use tr_analyze::kinds::{ByKind, TimeKind};
use tr_analyze::machine::Samples;
use tr_analyze::model::{Analysis, ProcessIx};
use tr_format::ci::QUEUED_AT;
use tr_format::counters::Counter;
use tr_format::meta::{Hardware, Metadata};

use super::rows::{Machine, Path, Process, Program, Run, Step};
use super::{hex, Place, Table};
use tr_insight::path::groups;
use tr_insight::path::kinds::COLUMNS;
use tr_insight::processes::normal;
use tr_insight::processes::normal::Paths;
use tr_insight::processes::{exit, label};
use tr_insight::recordings::ci::Ci;
use tr_insight::recordings::known::by_tr;
use tr_insight::recordings::warnings::lost_events;
use tr_insight::resources::loads::{Load, Loads};
use tr_insight::resources::memory::of_machine;
use tr_insight::resources::size::{self, DiskNeed, MemoryNeed};
use tr_insight::verdicts::parts::{PartTimes, WallPart};
use tr_insight::verdicts::step_sums;
use tr_insight::verdicts::step_sums::add;
use tr_insight::views::query;
use tr_insight::Recording;
use tr_programs::program_name::ProgramName;
use tr_text::{escape, units};

/// The largest number of rows of steps that a run has in a dataset. With this limit and that for processes, a run of
/// 10,000 processes takes less than 100 KiB in the dataset.
const STEPS: usize = 1_000;
/// The largest number of rows of processes that a run has in a dataset.
const PROCESSES: usize = 400;

/// The greatest width in columns of a command line in a dataset.
const COMMAND: usize = 200;

/// The tables with the rows of one run, with [`super::MARKER`] last. The analysis must have a timeline; `chosen` are
/// the processes that may have rows of their own.
pub fn tables(recording: &Recording, chosen: &[ProcessIx], place: &Place) -> Vec<Table> {
    let analysis = &recording.analysis;
    let path = critical_path::of(analysis).ok();
    let (steps, steps_left_out) = steps(recording, path.as_ref(), &place.run);
    let (processes, processes_left_out) = processes(analysis, chosen, path.as_ref(), &place.run);
    let loads = Loads::of(analysis);
    let run = Run {
        work_ns: loads.work,
        steps_left_out,
        processes_left_out,
        ..run(analysis, path.as_ref(), place)
    };
    vec![
        Table::new(steps),
        Table::new(programs(analysis, &place.run)),
        Table::new(processes),
        Table::new(path_rows(analysis, path.as_ref(), &place.run)),
        Table::new([machine(analysis, &loads, &place.run)]),
        Table::new([run]),
    ]
}

fn run(analysis: &Analysis, path: Option<&CriticalPath>, place: &Place) -> Run {
    let meta = &analysis.meta;
    let ci = Ci::new(meta);
    let known = |name| ci.get(name).map(str::to_owned);
    let job = place.job.clone().or_else(|| known("job"));
    let summary = analysis.summary.as_ref();
    let (exit_code, exit_signal) = ended(summary.and_then(|summary| summary.status));
    let times = &analysis.totals.times;
    let root = meta.root.map_or(0, |root| root.0);
    let arguments = meta.command.iter().map(Vec::as_slice);
    let command = normal_arguments(arguments, &cwd(analysis), &[root]);
    let on_path = path.map(|path| critical_path::by_kind(&path.segments));
    let on_path = |column: &str| known_time(analysis, &on_path?, column);
    let processes = analysis.processes.iter();
    let failed = processes.filter(|process| exit::failed(process.status));
    Run {
        run: place.run.clone(),
        tool: escape::raw(meta.tool_version.as_bytes()),
        method: escape::raw(meta.recorded_by().as_bytes()),
        project: place.project.clone(),
        ci_run: known("run"),
        attempt: known("attempt"),
        job,
        commit: known("commit"),
        branch: known("branch"),
        command: shown(&command),
        command_key: key(&command),
        exit_code,
        exit_signal,
        start_unix_ns: meta.start_clock.real,
        cpus: analysis.cpus_of_build(),
        wall_ns: analysis.wall(),
        processes: analysis.totals.processes,
        threads: analysis.totals.threads,
        execs: analysis.totals.execs,
        failed: failed.count() as u64,
        on_cpu_ns: times.on_cpu_known(),
        run_queue_ns: times.run_queue_known(),
        sleep_ns: times.sleep_known(),
        blocked_ns: times.blocked_known(),
        unknown_ns: times.unknown,
        max_rss_bytes: analysis
            .processes
            .iter()
            .filter_map(|process| process.resources.max_rss)
            .max(),
        resident_peak_bytes: MemoryNeed::of(analysis).and_then(|memory| memory.at_most),
        disk_used_peak_bytes: DiskNeed::of(analysis).map(|disk| disk.used_peak),
        cpus_p90: path.and_then(|path| size::cpus_wanted(analysis, path)),
        path_ns: path.map(CriticalPath::length),
        path_on_cpu_ns: on_path("on_cpu"),
        path_run_queue_ns: on_path("run_queue"),
        path_disk_ns: by_tr(analysis, ()).and_then(|()| on_path("disk")),
        path_network_ns: by_tr(analysis, ()).and_then(|()| on_path("network")),
        path_sleep_ns: on_path("sleep"),
        path_other_ns: on_path("other"),
        path_unknown_ns: on_path("unknown"),
        incomplete: is_incomplete(analysis),
        lost_events: lost_events(analysis),
        page: known("job_page").or_else(|| known("page")),
        runner: known("runner"),
        label: known("label"),
        image: known("image"),
        queued_ns: place.queued.or_else(|| queued(meta)),
        ..Run::default()
    }
}

/// Whether the run's recording is incomplete: events were lost, or the trace is truncated or has no summary.
pub(super) fn is_incomplete(analysis: &Analysis) -> bool {
    let quality = &analysis.quality;
    analysis.summary.is_none() || quality.truncated.is_some() || !quality.lost.is_empty()
}

/// The time in ns from the beginning of the CI job's wait for a runner to the beginning of the recording. `None` if no
/// script of the job has set when the wait began, or if the time that it has set cannot be right.
fn queued(meta: &Metadata) -> Option<u64> {
    let queued = meta.ci.iter().find(|(name, _)| name == QUEUED_AT)?;
    let since: f64 = queued.1.parse().ok()?;
    let ns = meta.start_unix()?.checked_sub((since * 1e9) as u64)?;
    // A wait of a month or more shows that the time was given in a wrong unit.
    (since > 0.0 && ns < 30 * 86_400_000_000_000).then_some(ns)
}

/// The time in ns of one column, such as `disk`, in a list of times by kind; `None` if this recording does not know
/// that column.
fn known_time(analysis: &Analysis, times: &ByKind, column: &str) -> Option<u64> {
    let column = COLUMNS.iter().find(|known| known.name == column)?;
    column.known(times, analysis.basis())
}

fn column_of(kind: TimeKind) -> &'static str {
    let column = COLUMNS.iter().find(|known| known.kinds.contains(&kind));
    column.map_or(TimeKind::Unknown.name(), |column| column.name)
}

/// The exit code and the signal from a process's raw `wait` status; `None` for each that the status does not have.
pub(super) fn ended(status: Option<u32>) -> (Option<u64>, Option<u64>) {
    let code = status.and_then(exit::code);
    (code.map(u64::from), exit::killed_by(status).map(u64::from))
}

fn cwd(analysis: &Analysis) -> String {
    String::from_utf8_lossy(&analysis.meta.cwd).into_owned()
}

/// The arguments of a process without the parts that differ between runs of the same build, such as temporary paths
/// and pids.
fn normal_arguments<'a>(
    arguments: impl Iterator<Item = &'a [u8]>,
    cwd: &str,
    pids: &[u32],
) -> Vec<String> {
    arguments
        .map(|argument| normal::argument(argument, cwd, pids, Paths::Two))
        .collect()
}

fn shown(arguments: &[String]) -> String {
    let text = escape::quoted(arguments.iter().map(String::as_bytes));
    units::shorten(&text, COMMAND)
}

/// A hash of a process's arguments in hexadecimal digits, by which datasets compare processes. Every version of `tr`
/// and of Rust computes the same hash.
fn key(arguments: &[String]) -> String {
    let mut hash = Sha256::new();
    for argument in arguments {
        hash.update((argument.len() as u64).to_le_bytes());
        hash.update(argument);
    }
    hex(hash.finalize().iter().take(8))
}

/// The run's rows about steps, one for each kind and name, and the number of rows that the limit leaves out. Rows with
/// failed steps are kept before others, and rows with much wall time before rows with less.
fn steps(recording: &Recording, path: Option<&CriticalPath>, run: &str) -> (Vec<Step>, u64) {
    let analysis = &recording.analysis;
    let sums = step_sums::sums(recording, path.map_or(&[][..], |path| &path.segments));
    let rows = sums.into_iter().map(|((kind, name), sum)| {
        let spent = |column: &str| known_time(analysis, &sum.spent?, column);
        let (verdict, verdict_ns) = sum.verdict.unzip();
        Step {
            run: run.to_owned(),
            kind: kind.name().to_owned(),
            name: name.whole().to_owned(),
            count: sum.count,
            failed: sum.failed,
            wall_ns: sum.wall,
            longest_ns: sum.longest,
            path_ns: sum.path.unwrap_or(0),
            on_cpu_ns: sum.on_cpu,
            run_queue_ns: sum.run_queue,
            spent_on_cpu_ns: spent("on_cpu"),
            spent_run_queue_ns: spent("run_queue"),
            spent_disk_ns: spent("disk"),
            spent_network_ns: spent("network"),
            spent_sleep_ns: spent("sleep"),
            spent_other_ns: spent("other"),
            spent_unknown_ns: spent("unknown"),
            held_back: sum.held_back,
            had_cpu_ns: sum.parts.as_ref().map(|parts| parts.get(WallPart::Work)),
            wanted_cpu_ns: sum.parts.as_ref().map(PartTimes::wanted),
            verdict,
            verdict_ns,
        }
    });
    let mut rows: Vec<Step> = rows.collect();
    rows.sort_by_key(|step| (step.failed == 0, Reverse(step.wall_ns)));
    let left_out = rows.len().saturating_sub(STEPS);
    rows.truncate(STEPS);
    rows.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    (rows, left_out as u64)
}

fn programs(analysis: &Analysis, run: &str) -> Vec<Program> {
    let mut sums: BTreeMap<ProgramName, Program> = BTreeMap::new();
    for process in &analysis.processes {
        let sum = sums.entry(label::program(process));
        let sum = sum.or_insert_with_key(|program| Program {
            run: run.to_owned(),
            program: program.to_string(),
            on_cpu_ns: Some(0),
            run_queue_ns: Some(0),
            sleep_ns: Some(0),
            blocked_ns: Some(0),
            ..Program::default()
        });
        let times = &process.times;
        sum.processes += 1;
        sum.failed += u64::from(exit::failed(process.status));
        let wall = process.wall();
        sum.wall_ns = sum.wall_ns.saturating_add(wall);
        sum.unknown_ns = sum.unknown_ns.saturating_add(times.unknown);
        add(&mut sum.on_cpu_ns, times.on_cpu_known());
        add(&mut sum.run_queue_ns, times.run_queue_known());
        add(&mut sum.sleep_ns, times.sleep_known());
        add(&mut sum.blocked_ns, times.blocked_known());
        sum.max_rss_bytes = sum.max_rss_bytes.max(process.resources.max_rss);
    }
    sums.into_values().collect()
}

/// The run's rows about the longest of the chosen processes, and the number of processes that the limit leaves out.
fn processes(
    analysis: &Analysis,
    chosen: &[ProcessIx],
    path: Option<&CriticalPath>,
    run: &str,
) -> (Vec<Process>, u64) {
    let on_path = path.map(|path| path.by_process(analysis));
    let mut all = chosen.to_vec();
    all.sort_unstable_by_key(|ix| (Reverse(analysis.process(*ix).wall()), *ix));
    let left_out = all.len().saturating_sub(PROCESSES);
    all.truncate(PROCESSES);
    all.sort_unstable();
    let cwd = cwd(analysis);
    let containers = query::containers(analysis);
    let rows = all.into_iter().map(|ix| {
        let process = analysis.process(ix);
        let (exit_code, exit_signal) = ended(process.status);
        let pids = normal::pids(analysis, process);
        let times = &process.times;
        Process {
            run: run.to_owned(),
            program: label::program(process).to_string(),
            label: label::whole(process),
            argv_key: key(&normal_arguments(process.argv.args(), &cwd, &pids)),
            pid: process.pid.0.into(),
            start_ns: process.start.since(analysis.start),
            wall_ns: process.wall(),
            on_cpu_ns: times.on_cpu_known(),
            run_queue_ns: times.run_queue_known(),
            sleep_ns: times.sleep_known(),
            blocked_ns: times.blocked_known(),
            unknown_ns: times.unknown,
            path_ns: on_path.as_ref().map(|sums| sums[ix]),
            max_rss_bytes: process.resources.max_rss,
            exit_code,
            exit_signal,
            container: containers[ix].map(label::container),
        }
    });
    (rows.collect(), left_out as u64)
}

fn path_rows(analysis: &Analysis, path: Option<&CriticalPath>, run: &str) -> Vec<Path> {
    let groups = groups(analysis);
    let mut sums: BTreeMap<(Option<&ProgramName>, &str), (u64, u64)> = BTreeMap::new();
    for segment in path.into_iter().flat_map(|path| &path.segments) {
        let process = analysis.thread(segment.thread).process;
        let group = groups.at(process, segment.from);
        let program = group.and_then(|group| groups.program(group));
        let (ns, segments) = sums.entry((program, column_of(segment.kind))).or_default();
        *ns = ns.saturating_add(segment.length());
        *segments += 1;
    }
    type Sum<'a> = ((Option<&'a ProgramName>, &'a str), (u64, u64));
    let row = |((program, kind), (ns, segments)): Sum<'_>| Path {
        run: run.to_owned(),
        program: program.map_or_else(String::new, ProgramName::to_string),
        kind: kind.to_owned(),
        ns,
        segments,
    };
    sums.into_iter().map(row).collect()
}

fn machine(analysis: &Analysis, loads: &Loads, run: &str) -> Machine {
    let meta = &analysis.meta;
    let samples = Samples::of(analysis);
    let span = (analysis.start, analysis.end);
    let total = |counter| samples.increase(counter, span);
    let range = |counter| samples.range(counter, span);
    let hardware = |fact| {
        meta.hardware(fact)
            .map(|value| escape::raw(value.as_bytes()))
    };
    let withheld = tr_analyze::machine::withheld(analysis);
    Machine {
        run: run.to_owned(),
        host: escape::raw(meta.host.as_bytes()),
        kernel: escape::raw(meta.kernel.as_bytes()),
        arch: escape::raw(meta.machine.as_bytes()),
        cpus: meta.cpus.len() as u64,
        busy_ns: total(Counter::Busy),
        others_ns: loads.load(Load::Others),
        stolen_ns: withheld.stolen_ns,
        throttled_ns: withheld.throttled_ns,
        iowait_ns: total(Counter::Iowait),
        cpu_some_ns: total(Counter::CpuSome),
        memory_some_ns: total(Counter::MemorySome),
        io_some_ns: total(Counter::IoSome),
        recorder_ns: total(Counter::Recorder),
        available_memory_bytes: range(Counter::AvailableMemory).map(|memory| memory.least),
        frequency_khz: range(Counter::Frequency).map(|frequency| frequency.mean),
        cpu_model: hardware(Hardware::CpuModel),
        cpu_stepping: hardware(Hardware::CpuStepping),
        microcode: hardware(Hardware::Microcode),
        memory_bytes: of_machine(&analysis.meta),
        virtualization: hardware(Hardware::Virtualization),
    }
}
