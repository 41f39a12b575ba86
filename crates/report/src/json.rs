//! `tr analyze --format json`, schema `tr.analysis/1`
//! (`schema/analysis.schema.json`). Times are in ns since the start of the
//! trace; what is not known is `null`, never 0. Fields are added, never
//! renamed. Bytes that are not UTF-8 become U+FFFD.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::Value;
use tr_analyze::model;
use tr_format::event::{Argv, Ktime};

use crate::query::By;
use crate::reports::audit::{audit, Audit};
use crate::reports::{Report, View};
use crate::{escape, query};

/// The whole document.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    trace: Trace,
    totals: Totals,
    audit: Audit,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Row>>,
    processes: Vec<Process>,
    #[serde(flatten)]
    reports: BTreeMap<String, Value>,
}

#[derive(Serialize)]
struct Trace {
    command: Vec<String>,
    exit: Option<Exit>,
    start_unix_ns: u64,
    duration_ns: u64,
    cpus: u64,
    kernel: String,
    events: u64,
    lost_events: Option<u64>,
    truncated: bool,
    quality: Quality,
    concurrency_ns: Vec<u64>,
    concurrency_unknown_ns: u64,
}

#[derive(Serialize)]
struct Quality {
    lost: Vec<Lost>,
    largest_inversion_ns: u64,
    latest_write_ns: u64,
    violations: BTreeMap<&'static str, u64>,
    clocks: Option<Clocks>,
}

/// The pair of CPUs whose clocks disagree by most.
#[derive(Serialize)]
pub struct Clocks {
    cpus: [u16; 2],
    by_ns: u64,
    impossible_orders: u64,
}

/// The disagreement of the clocks, as it stands in every document.
pub fn clocks(quality: &model::Quality) -> Option<Clocks> {
    quality.clocks.map(|clocks| Clocks {
        cpus: [clocks.cpus.0 .0, clocks.cpus.1 .0],
        by_ns: clocks.by,
        impossible_orders: clocks.impossible_orders,
    })
}

#[derive(Serialize)]
struct Lost {
    stream: String,
    since_ns: u64,
    until_ns: u64,
    count: Option<u64>,
}

/// How a process ended.
#[derive(Serialize)]
pub(crate) struct Exit {
    code: Option<u32>,
    signal: Option<u32>,
}

#[derive(Serialize)]
struct Totals {
    processes: u64,
    threads: u64,
    execs: u64,
    forks: u64,
    exits: u64,
    #[serde(flatten)]
    times: Times,
}

/// Where time went.
#[derive(Serialize)]
pub(crate) struct Times {
    on_cpu_ns: u64,
    run_queue_ns: u64,
    sleep_ns: u64,
    blocked_ns: u64,
    unknown_ns: u64,
}

#[derive(Serialize)]
struct Process {
    pid: u32,
    ppid: Option<u32>,
    comm: String,
    argv: Option<Vec<String>>,
    cgroup: Option<String>,
    start_ns: u64,
    end_ns: Option<u64>,
    wall_ns: u64,
    exit: Option<Exit>,
    threads: u64,
    lifetime_ns: u64,
    #[serde(flatten)]
    times: Times,
    preempted_ns: u64,
    block_io_ns: u64,
    vfork_ns: u64,
    switches: Switches,
    migrations: u64,
    max_off_cpu_ns: Option<u64>,
    max_rss_bytes: Option<u64>,
    tree: Tree,
    execs: Vec<Exec>,
}

/// What `--by` puts together: the rows of the text's table.
#[derive(Serialize)]
struct Row {
    name: String,
    count: u64,
    pid: Option<u32>,
    start_ns: u64,
    wall_ns: u64,
    exit: Option<Exit>,
    #[serde(flatten)]
    times: Times,
    max_rss_bytes: Option<u64>,
    tree_on_cpu_ns: u64,
}

#[derive(Serialize)]
struct Switches {
    voluntary: u64,
    involuntary: u64,
}

#[derive(Serialize)]
struct Tree {
    processes: u64,
    on_cpu_ns: u64,
}

#[derive(Serialize)]
struct Exec {
    start_ns: u64,
    end_ns: Option<u64>,
    filename: Option<String>,
    argv: Option<Vec<String>>,
    argv_truncated: bool,
    on_cpu_ns: u64,
}

/// Bytes as text; what is not UTF-8 becomes U+FFFD.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The arguments, if they are known.
pub(crate) fn argv(argv: &Argv) -> Option<Vec<String>> {
    argv.full_len.map(|_| argv.args().map(text).collect())
}

/// From a raw `wait` status.
pub(crate) fn exit(status: u32) -> Exit {
    match status & 0x7f {
        0 => Exit {
            code: Some(status >> 8 & 0xff),
            signal: None,
        },
        signal => Exit {
            code: None,
            signal: Some(signal),
        },
    }
}

/// From the model's.
pub(crate) fn times(times: &model::Times) -> Times {
    Times {
        on_cpu_ns: times.on_cpu,
        run_queue_ns: times.run_queue,
        sleep_ns: times.sleep,
        blocked_ns: times.blocked,
        unknown_ns: times.unknown,
    }
}

/// The rows that `--by` asks for, each for several processes or for a thread.
fn rows(view: &View<'_>) -> Option<(By, Vec<Row>)> {
    let View {
        analysis,
        chosen,
        ask,
        ..
    } = *view;
    let by = ask.by.filter(|by| *by != By::Process)?;
    let sort = ask.sort.unwrap_or_default();
    let kind = (by, sort, ask.groups.as_slice());
    let (rows, _) = query::first_rows(analysis, chosen, kind, ask.most());
    let rows = rows.into_iter().map(|row| Row {
        name: row.name,
        count: row.count,
        pid: row.pid,
        start_ns: row.start,
        wall_ns: row.wall,
        exit: row.status.map(exit),
        times: times(&row.times),
        max_rss_bytes: row.max_rss,
        tree_on_cpu_ns: row.tree_cpu,
    });
    Some((by, rows.collect()))
}

/// The processes as they were asked for: in the order of their start unless
/// `--sort` says otherwise, and as many of the first as `--top` says, which
/// counts rows where there are some.
fn processes(view: &View<'_>, has_rows: bool) -> Vec<usize> {
    let ask = view.ask;
    let most = match has_rows {
        true => usize::MAX,
        false => ask.most(),
    };
    match (ask.sort, ask.limit) {
        (None, limit) if has_rows || limit.is_none() => view.chosen.to_vec(),
        (sort, _) => query::sorted(view.analysis, view.chosen, sort.unwrap_or_default(), most),
    }
}

/// The document for the chosen processes, with these reports by their keys.
///
/// # Errors
/// None in practice: it writes to memory.
pub fn render<'a>(
    view: &View<'a>,
    reports: &[(String, Box<dyn Report + 'a>)],
) -> serde_json::Result<String> {
    let analysis = view.analysis;
    let mut more = BTreeMap::new();
    for (key, report) in reports {
        if let Some(value) = report.json()? {
            more.insert(key.clone(), value);
        }
    }
    let zero = analysis.meta.start;
    let since = |t: Ktime| t.since(zero);
    let process = |process: &model::Process| {
        let threads = || {
            process
                .threads
                .iter()
                .filter_map(|ix| analysis.threads.get(ix.0 as usize))
        };
        Process {
            pid: process.pid.0,
            ppid: process.ppid.map(|p| p.0),
            comm: text(process.comm.bytes()),
            argv: argv(&process.argv),
            cgroup: query::cgroup_path(analysis, process).map(text),
            start_ns: since(process.start),
            end_ns: (!process.alive).then(|| since(process.end)),
            wall_ns: process.end.since(process.start),
            exit: process.status.map(exit),
            threads: process.threads.len() as u64,
            lifetime_ns: threads().map(|t| t.end.since(t.start)).sum(),
            times: times(&process.times),
            preempted_ns: process.causes.preempted,
            block_io_ns: process.causes.io,
            vfork_ns: process.causes.vfork,
            switches: Switches {
                voluntary: process.switches.voluntary,
                involuntary: process.switches.involuntary,
            },
            migrations: threads().map(|t| t.migrations).sum(),
            max_off_cpu_ns: process.max_off_cpu.map(|stretch| stretch.length),
            max_rss_bytes: process.max_rss,
            tree: Tree {
                processes: process.tree.processes,
                on_cpu_ns: process.tree.times.on_cpu,
            },
            execs: process
                .execs
                .iter()
                .map(|exec| Exec {
                    start_ns: since(exec.start),
                    end_ns: exec.ended.then(|| since(exec.end)),
                    filename: (!exec.started_before).then(|| text(&exec.filename)),
                    argv: argv(&exec.argv),
                    argv_truncated: exec.argv.truncated(),
                    on_cpu_ns: exec.times.on_cpu,
                })
                .collect(),
        }
    };
    let rows = rows(view);
    let quality = &analysis.quality;
    let document = Document {
        schema: "tr.analysis/1",
        trace: Trace {
            command: analysis.meta.command.iter().map(|arg| text(arg)).collect(),
            exit: analysis.summary.as_ref().and_then(|s| s.status).map(exit),
            start_unix_ns: analysis.meta.start_clock.real,
            duration_ns: analysis.end.since(analysis.start),
            cpus: analysis.meta.cpus.len() as u64,
            kernel: analysis.meta.kernel.clone(),
            events: analysis.events.total(),
            lost_events: (!quality.lost_unknown).then_some(quality.lost_events),
            truncated: quality.truncated.is_some(),
            quality: Quality {
                lost: quality
                    .lost
                    .iter()
                    .map(|span| Lost {
                        stream: match span.stream {
                            tr_format::event::Stream::Cpu(cpu) => format!("cpu{}", cpu.0),
                            tr_format::event::Stream::Lifecycle => "lifecycle".into(),
                            tr_format::event::Stream::Recorder => "recorder".into(),
                        },
                        since_ns: since(span.since),
                        until_ns: since(span.until),
                        count: span.count,
                    })
                    .collect(),
                largest_inversion_ns: quality.largest_inversion,
                latest_write_ns: quality.latest_write,
                violations: quality.anomalies.iter().copied().collect(),
                clocks: clocks(quality),
            },
            concurrency_ns: analysis.concurrency.clone(),
            concurrency_unknown_ns: analysis.concurrency_unknown,
        },
        totals: Totals {
            processes: analysis.totals.processes,
            threads: analysis.totals.threads,
            execs: analysis.totals.execs,
            forks: analysis.totals.forks,
            exits: analysis.totals.exits,
            times: times(&analysis.totals.times),
        },
        audit: audit(analysis),
        processes: processes(view, rows.is_some())
            .iter()
            .filter_map(|at| analysis.processes.get(*at))
            .map(process)
            .collect(),
        by: rows.as_ref().map(|(by, _)| by.name()),
        rows: rows.map(|(_, rows)| rows),
        reports: more,
    };
    let mut out = Vec::new();
    let safe = Safe(serde_json::ser::PrettyFormatter::new());
    document.serialize(&mut serde_json::Serializer::with_formatter(&mut out, safe))?;
    out.push(b'\n');
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// A formatter whose strings are safe on a terminal too: what [`escape::text`]
/// would not show as it is stands there as `\\uXXXX`.
pub(crate) struct Safe<F>(pub F);

/// Hands these on as they are.
macro_rules! as_it_is {
    ($($name:ident($($arg:ident: $kind:ty),*)),* $(,)?) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $arg: $kind)*) -> io::Result<()> {
            self.0.$name(out $(, $arg)*)
        })*
    };
}

impl<F: Formatter> Formatter for Safe<F> {
    as_it_is!(
        begin_array(),
        end_array(),
        begin_array_value(first: bool),
        end_array_value(),
        begin_object(),
        end_object(),
        begin_object_key(first: bool),
        end_object_key(),
        begin_object_value(),
        end_object_value(),
    );

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| escape::is_hidden(*c)) {
            let (plain, more) = rest.split_at(at);
            self.0.write_string_fragment(out, plain)?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = more.get(c.len_utf8()..).unwrap_or_default();
        }
        self.0.write_string_fragment(out, rest)
    }
}
