//! Writes `tr analyze --format json`, schema `tr.analysis/1` (`schema/analysis.schema.json`). Times are in ns
//! since the start of the trace; an unknown value is `null`, never 0. Fields are added, never renamed. Bytes
//! that are not UTF-8 become U+FFFD.

use std::collections::BTreeMap;
use std::io;

use crate::ci;
use crate::status::Exit;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{json, Value};
use tr_analyze::model::{self, Analysis, ExecSpan, LostSpan, ProcessIx, Thread};
use tr_analyze::servers;
use tr_format::event::{Ktime, Stream};

use crate::encode::{argv, Times};
use crate::output::Report;
use crate::reports::top::Top;
use crate::untraced::usage_json;
use tr_insight::recordings::audit::{audit, Audit};
use tr_insight::recordings::ci::Ci;
use tr_insight::recordings::known::{by_events, by_tr};
use tr_insight::recordings::untraced;
use tr_insight::recordings::untraced::usage;
use tr_insight::recordings::warnings::{is_blank, lost_events, warnings};
use tr_insight::views::query;
use tr_insight::views::query::By;
use tr_insight::views::view::{Ask, View};
use tr_insight::Recording;
use tr_text::json;
use tr_text::json::text;
use tr_text::object;

/// The key of the audit in the JSON document. Both the report `audit` and the part [`All`] of the document use this
/// key. If the document has that part, the value of the report is dropped, so that the key occurs only once.
const AUDIT: &str = "audit";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    trace: Trace,
    #[serde(flatten)]
    all: Option<All<'a>>,
    #[serde(flatten)]
    reports: BTreeMap<String, Value>,
}

/// The members of the JSON document of `tr analyze` that the report `top` adds: totals, rows of groups, and the
/// processes.
#[derive(Serialize)]
struct All<'a> {
    totals: AllTotals,
    audit: Option<Audit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Value>,
    processes: Processes<'a>,
}

/// The chosen processes as a list in the JSON document. Each process is converted when it is written, so that not
/// all are in memory at once.
struct Processes<'a> {
    analysis: &'a Analysis,
    chosen: Vec<ProcessIx>,
}

impl Processes<'_> {
    fn all(&self) -> impl Iterator<Item = Process> + '_ {
        let processes = self.chosen.iter().map(|ix| self.analysis.process(*ix));
        processes.map(|process| Process::new(self.analysis, process))
    }
}

impl Serialize for Processes<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.all())
    }
}

/// The sums over all recorded processes in the JSON document of `tr analyze`; all null if no process is known.
#[derive(Serialize)]
#[serde(untagged)]
enum AllTotals {
    Known(Totals),
    Unknown(Value),
}

/// The object `totals` of the JSON document for a recording without any known process: every member is null.
fn no_totals() -> Value {
    json!({
        "processes": null,
        "threads": null,
        "execs": null,
        "forks": null,
        "exits": null,
        "on_cpu_ns": null,
        "run_queue_ns": null,
        "sleep_ns": null,
        "blocked_ns": null,
        "unknown_ns": null,
    })
}

/// Returns the given value for a recording that was traced, and `None` for a run without tracing.
fn traced<T>(analysis: &Analysis, value: T) -> Option<T> {
    analysis.meta.not_traced.is_none().then_some(value)
}

/// Whether anything is known about the processes of a recording: it was traced, and not everything in it was lost.
fn is_known(analysis: &Analysis) -> bool {
    analysis.meta.not_traced.is_none() && !is_blank(analysis)
}

object! {
    Trace(analysis: &Analysis, warnings: Vec<String>) {
        command: Vec<String> = analysis.meta.command.iter().map(|arg| text(arg)).collect(),
        exit: Option<Exit> = analysis.summary.as_ref().and_then(|s| s.status).map(Exit::from),
        start_unix_ns: Option<u64> = analysis.meta.start_unix(),
        duration_ns: Option<u64> = match analysis.meta.not_traced {
            Some(_) => untraced::wall(analysis),
            None => (!is_blank(analysis)).then(|| analysis.wall()),
        },
        cpus: usize = analysis.meta.cpus.len(),
        // The number of CPUs that the build could use, if it is smaller than the number of the machine's CPUs.
        #[serde(skip_serializing_if = "Option::is_none")]
        cpus_of_build: Option<u64> = analysis.machine.limited_to,
        kernel: String = analysis.meta.kernel.clone(),
        events: Option<u64> = traced(analysis, analysis.events.total()),
        lost_events: Option<u64> = lost_events(analysis).and_then(|lost| traced(analysis, lost)),
        warnings: Vec<String> = warnings,
        truncated: bool = analysis.quality.truncated.is_some(),
        // The method of the recording. It is left out for recordings by BPF, because their times are all the kernel's
        // own.
        #[serde(skip_serializing_if = "Option::is_none")]
        method: Option<String> =
            analysis.meta.origin.map(|_| analysis.meta.recorded_by().to_owned()),
        #[serde(skip_serializing_if = "Option::is_none")]
        ci: Option<Value> = ci::json(&Ci::new(&analysis.meta)),
        not_traced: Option<String> = analysis.meta.not_traced.clone(),
        // The resource usage of COMMAND from `wait4`, for a run without tracing.
        usage: Option<Value> = analysis.meta.not_traced.as_ref().map(|_| usage_json(usage(analysis))),
        quality: Option<Quality> =
            traced(analysis, Quality::new(&analysis.quality, analysis.meta.start)),
        concurrency_ns: Option<Vec<u64>> =
            by_events(analysis, analysis.concurrency.times.clone()).filter(|_| is_known(analysis)),
        concurrency_unknown_ns: Option<u64> =
            is_known(analysis).then_some(analysis.concurrency.unknown),
    }

    Quality(quality: &model::Quality, zero: Ktime) {
        lost: Vec<Lost> = quality.lost.iter().map(|span| Lost::new(span, zero)).collect(),
        largest_inversion_ns: u64 = quality.largest_inversion,
        commit_delay_ns: u64 = quality.commit_delay,
        anomalies: BTreeMap<&'static str, u64> = quality.anomalies.iter().copied().collect(),
        clocks: Option<Clocks> = quality.clocks.as_ref().map(Clocks::new),
    }

    // The two CPUs whose clocks disagree most.
    Clocks(clocks: &model::ClockDisagreement) {
        cpus: [u16; 2] = [clocks.cpus.0.0, clocks.cpus.1.0],
        by_ns: u64 = clocks.by,
        impossible_orders: u64 = clocks.impossible_orders,
    }

    Lost(span: &LostSpan, zero: Ktime) {
        stream: String = match span.stream {
            Stream::Cpu(cpu) => format!("cpu{}", cpu.0),
            Stream::Lifecycle => "lifecycle".into(),
            Stream::Recorder => "recorder".into(),
        },
        since_ns: u64 = span.since.since(zero),
        until_ns: u64 = span.until.since(zero),
        count: Option<u64> = span.count,
    }

    Totals(totals: &model::Totals) {
        processes: u64 = totals.processes,
        threads: u64 = totals.threads,
        execs: u64 = totals.execs,
        forks: u64 = totals.forks,
        exits: u64 = totals.exits,
        #[serde(flatten)]
        times: Times = Times::new(&totals.times),
    }

    Process(analysis: &Analysis, process: &model::Process) {
        pid: u32 = process.pid.0,
        // The pid inside the container, if the process runs in one.
        #[serde(skip_serializing_if = "Option::is_none")]
        ns_pid: Option<u32> = Some(process.ns_pid.0).filter(|pid| *pid != process.pid.0),
        ppid: Option<u32> = process.ppid.map(|p| p.0),
        comm: String = text(process.comm.bytes()),
        argv: Option<Vec<String>> = argv(&process.argv),
        cgroup: Option<String> = query::cgroup_path(analysis, process).map(text),
        start_ns: u64 = process.start.since(analysis.meta.start),
        end_ns: Option<u64> =
            (!process.alive).then(|| process.end.since(analysis.meta.start)),
        wall_ns: u64 = process.wall(),
        exit: Option<Exit> = process.status.map(Exit::from),
        threads: usize = process.threads.len(),
        lifetime_ns: u64 = threads(analysis, process)
            .map(|t| t.wall())
            .fold(0, u64::saturating_add),
        #[serde(flatten)]
        times: Times = Times::new(&process.times),
        on_cpu_by_kernel_ns: u64 = process.by_kernel.on_cpu,
        run_queue_by_kernel_ns: u64 = process.by_kernel.run_queue,
        preempted_ns: Option<u64> = by_events(analysis, process.causes.preempted),
        block_io_ns: Option<u64> = by_tr(analysis, process.causes.io),
        vfork_ns: Option<u64> = by_tr(analysis, process.causes.vfork),
        switches: Option<Switches> = by_events(analysis, Switches::new(&process.resources.switches)),
        migrations: Option<u64> = {
            let threads = threads(analysis, process).map(|t| t.migrations);
            by_events(analysis, threads.fold(0, u64::saturating_add))
        },
        max_off_cpu_ns: Option<u64> = process.resources.max_off_cpu,
        max_rss_bytes: Option<u64> = process.resources.max_rss,
        tree: Tree = Tree::new(&process.tree),
        // Left out for a process that is no server.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<Server> = Server::of(analysis, process),
        execs: Vec<Exec> =
            process.execs.iter().map(|exec| Exec::new(exec, analysis.meta.start)).collect(),
    }

    // The process that got the server's first answer, and the first process outside of the recording that got an
    // answer.
    Server(client: Option<u32>, other: Option<u32>) {
        client_pid: Option<u32> = client,
        also_answered_pid: Option<u32> = other,
    }

    Switches(switches: &model::Switches) {
        voluntary: u64 = switches.voluntary,
        involuntary: u64 = switches.involuntary,
    }

    Tree(tree: &model::Tree) {
        processes: u64 = tree.processes,
        on_cpu_ns: Option<u64> = tree.times.on_cpu_known(),
    }

    Exec(exec: &ExecSpan, zero: Ktime) {
        start_ns: u64 = exec.start.since(zero),
        end_ns: Option<u64> = exec.ended.then(|| exec.end.since(zero)),
        filename: Option<String> = (!exec.started_before).then(|| text(&exec.filename)),
        argv: Option<Vec<String>> = argv(&exec.argv),
        argv_truncated: bool = exec.argv.truncated(),
        // Left out if it is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        directory: Option<String> = (!exec.directory.is_empty()).then(|| text(&exec.directory)),
        on_cpu_ns: Option<u64> = exec.times.on_cpu_known(),
        max_rss_bytes: Option<u64> = exec.max_rss,
    }
}

impl Server {
    fn of(analysis: &Analysis, process: &model::Process) -> Option<Server> {
        if !process.role.shared {
            return None;
        }
        let is_own =
            |server: &&servers::Server| std::ptr::eq(analysis.process(server.process), process);
        let server = analysis.others.servers.iter().find(is_own)?;
        let client = server.client.map(|ix| analysis.process(ix).pid.0);
        Some(Server::new(client, server.other.map(|pid| pid.0)))
    }
}

fn threads<'a>(
    analysis: &'a Analysis,
    process: &'a model::Process,
) -> impl Iterator<Item = &'a Thread> {
    let threads = process.threads.iter();
    threads.map(|ix| analysis.thread(*ix))
}

/// The JSON value for how much the clocks of the CPUs disagree; `None` if they agree.
pub fn clocks(quality: &model::Quality) -> Option<impl Serialize> {
    quality.clocks.as_ref().map(Clocks::new)
}

/// The rows of groups (such as programs) that `--by` requests, as JSON, with the kind of the groups. `None` without
/// `--by`, and for `--by process`, because the document lists the processes anyway.
fn rows(view: &View<'_>) -> Option<(By, Value)> {
    let by = view.ask.by.filter(|by| *by != By::Process)?;
    Some((by, Top::new(view).json_rows()))
}

/// The processes that the JSON document lists, in the order of their start or of `--sort`. `--top` limits the number of
/// processes. If the document has rows of groups (`has_rows`), `--top` limits the rows instead.
fn processes(view: &View<'_>, has_rows: bool) -> Vec<ProcessIx> {
    let ask = view.ask;
    let most = if has_rows { usize::MAX } else { ask.most() };
    match (ask.sort, ask.top) {
        (None, limit) if has_rows || limit.is_none() => view.chosen.to_vec(),
        (sort, _) => query::sorted(view.analysis, view.chosen, sort.unwrap_or_default(), most),
    }
}

impl<'a> All<'a> {
    fn new(view: &View<'a>) -> All<'a> {
        let analysis = view.analysis;
        let rows = rows(view);
        let chosen = processes(view, rows.is_some());
        All {
            totals: if is_known(analysis) {
                AllTotals::Known(Totals::new(&analysis.totals))
            } else {
                AllTotals::Unknown(no_totals())
            },
            audit: by_events(analysis, audit(analysis)).filter(|_| is_known(analysis)),
            processes: Processes { analysis, chosen },
            by: rows.as_ref().map(|(by, _)| by.name()),
            rows: rows.map(|(_, rows)| rows),
        }
    }
}

/// Writes the JSON document of `tr analyze` with the given reports, each under its key. `all` is whether the
/// document has the totals and the chosen processes, too.
pub fn render<'a>(
    view: &View<'a>,
    reports: &[(String, Box<dyn Report + 'a>)],
    all: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let values = reports.iter();
    let values = values.filter_map(|(key, report)| Some((key.clone(), report.json()?)));
    let mut reports: BTreeMap<String, Value> = values.collect();
    if all {
        // The part with totals and processes already contains the audit.
        reports.remove(AUDIT);
    }
    let document = Document {
        schema: "tr.analysis/1",
        trace: Trace::new(view.analysis, warnings(view.recording)),
        all: all.then(|| All::new(view)),
        reports,
    };
    json::write_safe(&document, PrettyFormatter::new(), out)?;
    out.write_all(b"\n")
}

/// Writes the JSON document of `tr analyze` for a run that was not traced. It has no reports.
pub fn untraced(recording: &Recording, out: &mut dyn io::Write) -> io::Result<()> {
    let ask = Ask::default();
    let view = View::new(recording, &[], "", &ask);
    render(&view, &[], true, out)
}

/// Writes a line of JSON for each chosen process (`--format ndjson`). A line is like a member of the list
/// `processes` in the JSON document.
pub fn lines(view: &View<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let all = Processes {
        analysis: view.analysis,
        chosen: processes(view, false),
    };
    for process in all.all() {
        json::write_safe(&process, serde_json::ser::CompactFormatter, out)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
