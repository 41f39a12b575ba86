//! `tr dump`: every event of a trace, in order.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{json, Map, Value};
use tr_analyze::order::{self, Event};
use tr_format::counters::SystemCalls;
use tr_format::device::{Block, DiskWait, GROUPS};
use tr_format::dns::{DnsAnswer, DnsQuery};
use tr_format::event::{
    Account, Argv, Exec, Exit, Final, Fork, LifeKind, Lost, Mark, Point, SchedKind, Snapshot,
    Stream, TaskEnd, Tgid, Tid,
};
use tr_format::frame::stream_number;
use tr_format::network::{Accepted, Closed, Connect, Connected, ConnectionId};
use tr_format::stack::{Doing, Function, Module, Place, Sample, Symbol};

use crate::budget::Budget;
use crate::open;

/// Print the events of a recording, in the order of their times
///
/// Times are as recorded, in seconds since the start of the recording.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT)]
    file: PathBuf,
    /// text, or one JSON object a line
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    #[command(flatten)]
    budget: Budget,
}

/// The number of events between two looks at the budget.
const LOOK_EVERY: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Text,
    #[value(alias = "json")]
    Ndjson,
}

impl Args {
    /// The limits of its memory and time.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The trace.
    pub fn file(&self) -> &std::path::Path {
        &self.file
    }
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let zero = trace.meta().start.0;
    let mut out = match open::stdout() {
        Ok(out) => std::io::BufWriter::new(out),
        Err(error) => return open::printed(Err(error)),
    };
    let mut merge = order::merge(&trace);
    let watch = args.budget.begin(1);
    let mut count = 0_u64;
    while let Some(event) = merge.next_event() {
        count += 1;
        if count.is_multiple_of(LOOK_EVERY) {
            if let Some(why) = watch.exceeded() {
                eprintln!("tr: {why}; the events end there");
                break;
            }
        }
        let time = i128::from(event.time().0) - i128::from(zero);
        let (cpu, kind, fields) = parts(&event);
        let written = match args.format {
            FormatArg::Text => text(&mut out, time, cpu, kind, &fields),
            FormatArg::Ndjson => {
                let mut object = Map::new();
                object.insert(
                    "t".into(),
                    i64::try_from(time).map_or(Value::Null, Value::from),
                );
                object.insert("cpu".into(), json!(cpu));
                object.insert("kind".into(), json!(kind));
                object.extend(fields);
                tr_report::json::document(&Value::Object(object), false)
                    .and_then(|line| out.write_all(line.as_bytes()))
            }
        };
        if written.is_err() {
            return open::printed(written);
        }
    }
    for error in merge.batches().unreadable() {
        eprintln!("tr: {error}");
    }
    open::printed(out.flush())
}

fn text(
    out: &mut impl Write,
    time: i128,
    cpu: Option<u16>,
    kind: &str,
    fields: &Map<String, Value>,
) -> std::io::Result<()> {
    let cpu = cpu.map_or("  -".to_owned(), |cpu| format!("{cpu:3}"));
    let sign = if time < 0 { "-" } else { "" };
    let time = time.unsigned_abs();
    let stamp = format!("{sign}{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    write!(out, "{stamp:>16} {cpu} {kind:<11}")?;
    for (name, value) in fields {
        match value {
            Value::String(text) => {
                write!(out, " {name}={}", tr_report::escape::text(text.as_bytes()))?
            }
            value => write!(
                out,
                " {name}={}",
                tr_report::escape::text(value.to_string().as_bytes())
            )?,
        }
    }
    writeln!(out)
}

fn bytes(bytes: &[u8]) -> Value {
    Value::from(String::from_utf8_lossy(bytes).into_owned())
}

fn argv(argv: &Argv) -> Value {
    match argv.full_len {
        None => Value::Null,
        Some(_) => argv.args().map(bytes).collect(),
    }
}

fn fields<const N: usize>(list: [(&str, Value); N]) -> Map<String, Value> {
    list.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn parts(event: &Event) -> (Option<u16>, &'static str, Map<String, Value>) {
    match event {
        Event::Sched(cpu, event) => match event.kind {
            SchedKind::Switch {
                prev,
                next,
                prev_state,
                preempt,
                iowait,
                reason,
            } => {
                let list = [
                    ("prev", json!(prev.0)),
                    ("next", json!(next.0)),
                    ("prev_state", json!(prev_state)),
                    ("preempt", json!(preempt)),
                    ("iowait", json!(iowait)),
                    ("reason", json!(reason.name())),
                ];
                (Some(cpu.0), "switch", fields(list))
            }
            SchedKind::Waking {
                waker,
                wakee,
                context,
                new,
                vfork,
            } => {
                let list = [
                    ("waker", json!(waker.0)),
                    ("wakee", json!(wakee.0)),
                    ("context", json!(context.name())),
                    ("vfork", json!(vfork)),
                ];
                (
                    Some(cpu.0),
                    if new { "wakeup_new" } else { "waking" },
                    fields(list),
                )
            }
        },
        Event::Life(event) => {
            let (kind, fields) = life(&event.kind);
            (event.cpu.map(|cpu| cpu.0), kind, fields)
        }
    }
}

fn life(kind: &LifeKind) -> (&'static str, Map<String, Value>) {
    match kind {
        LifeKind::Fork(e) => ("fork", fork(e)),
        LifeKind::Exec(e) => ("exec", exec(e)),
        LifeKind::Exit(e) => ("exit", exit(e)),
        LifeKind::Final(e) => ("final", last(e)),
        LifeKind::Rename(e) => (
            "rename",
            fields([
                ("tid", json!(e.tid.0)),
                ("tgid", json!(e.tgid.0)),
                ("comm", bytes(e.comm.bytes())),
            ]),
        ),
        LifeKind::CgroupPath(e) => (
            "cgroup_path",
            fields([("id", json!(e.id.0)), ("path", bytes(&e.path))]),
        ),
        LifeKind::CgroupMove(e) => (
            "cgroup_move",
            fields([
                ("tid", json!(e.tid.0)),
                ("tgid", json!(e.tgid.0)),
                ("cgroup", json!(e.cgroup.0)),
            ]),
        ),
        LifeKind::Snapshot(e) => ("snapshot", snapshot(e)),
        LifeKind::Lost(e) => ("lost", lost(e)),
        LifeKind::Clock(e) => (
            "clock",
            fields([("boot", json!(e.boot)), ("real", json!(e.real))]),
        ),
        LifeKind::Watermark => ("progress", Map::new()),
        LifeKind::Mark(e) => ("mark", mark(e)),
        LifeKind::Account(e) => ("account", account(e)),
        LifeKind::Detached(e) => (
            "detached",
            fields([("tid", json!(e.tid.0)), ("tgid", json!(e.tgid.0))]),
        ),
        LifeKind::Degraded(e) => ("degraded", fields([("what", bytes(&e.what))])),
        LifeKind::End(e) => ("end", end(e)),
        LifeKind::Connect(e) => ("connect", connect(e)),
        LifeKind::Connected(e) => ("connected", connected(e)),
        LifeKind::Accepted(e) => ("accepted", accepted(e)),
        LifeKind::Closed(e) => ("closed", closed(e)),
        LifeKind::Counters(e) => {
            let values = e.iter().map(|(it, value)| (it.name().into(), json!(value)));
            ("counters", values.collect())
        }
        LifeKind::SystemCalls(e) => ("system_calls", system_calls(e)),
        LifeKind::Block(e) => ("block", block(e)),
        LifeKind::OomKill(e) => (
            "oom_kill",
            fields([
                ("tid", json!(e.tid.0)),
                ("tgid", json!(e.tgid.0)),
                ("resident", json!(e.resident)),
            ]),
        ),
        LifeKind::Reclaim(e) => (
            "reclaim",
            fields([
                ("tid", json!(e.tid.0)),
                ("tgid", json!(e.tgid.0)),
                ("count", json!(e.count)),
                ("ns", json!(e.ns)),
            ]),
        ),
        LifeKind::DnsQuery(e) => ("dns_query", dns_query(e)),
        LifeKind::DnsAnswer(e) => ("dns_answer", dns_answer(e)),
        LifeKind::DiskWait(e) => ("disk_wait", disk_wait(e)),
        LifeKind::Module(e) => ("module", module(e)),
        LifeKind::Sample(e) => ("sample", sample(e)),
        LifeKind::Symbol(e) => ("symbol", symbol(e)),
        LifeKind::Pinned(e) => (
            "pinned",
            fields([
                ("tid", json!(e.tid.0)),
                ("tgid", json!(e.tgid.0)),
                ("pinned", json!(e.pinned)),
            ]),
        ),
        LifeKind::SyncFile(e) => (
            "sync_file",
            fields([
                ("tid", json!(e.tid.0)),
                ("tgid", json!(e.tgid.0)),
                ("name", bytes(&e.name)),
            ]),
        ),
    }
}

fn disk_wait(e: &DiskWait) -> Map<String, Value> {
    fields([
        ("tid", json!(e.tid.0)),
        ("tgid", json!(e.tgid.0)),
        ("device", json!(e.device.map(|it| it.to_string()))),
        ("name", bytes(&e.name)),
    ])
}

fn block(e: &Block) -> Map<String, Value> {
    let mut all = fields([
        ("name", bytes(&e.name)),
        ("device", json!(e.device.to_string())),
        ("interval", json!(e.interval)),
        ("busy", json!(e.busy)),
    ]);
    for (name, group) in GROUPS.iter().zip(&e.groups) {
        let sums = (group.count > 0).then(|| {
            json!({
                "count": group.count,
                "bytes": group.bytes,
                "latency": group.latency,
                "longest": group.longest,
                "buckets": group.buckets,
            })
        });
        all.insert((*name).to_owned(), json!(sums));
    }
    all
}

fn last(e: &Final) -> Map<String, Value> {
    fields([
        ("tid", json!(e.tid.0)),
        ("sum_exec_runtime", json!(e.sum_exec_runtime)),
        ("nvcsw", json!(e.nvcsw)),
        ("nivcsw", json!(e.nivcsw)),
        ("run_delay", json!(e.delays.run)),
        ("block_delay", json!(e.delays.block)),
        ("swap_delay", json!(e.delays.swap)),
    ])
}

fn account(e: &Account) -> Map<String, Value> {
    fields([
        ("tid", json!(e.tid.0)),
        ("tgid", json!(e.tgid.0)),
        ("sum_exec_runtime", json!(e.sum_exec_runtime)),
        ("run_delay", json!(e.run_delay)),
        ("slices", json!(e.slices)),
    ])
}

fn system_calls(e: &SystemCalls) -> Map<String, Value> {
    let calls = e.calls.iter().map(|call| {
        json!({
            "number": call.number,
            "compat": call.compat,
            "count": call.count,
            "errors": call.errors,
            "ns": call.ns,
            "longest": call.longest,
        })
    });
    fields([
        ("tgid", json!(e.tgid.0)),
        ("since", json!(e.since.0)),
        ("calls", calls.collect()),
    ])
}

fn dns_query(e: &DnsQuery) -> Map<String, Value> {
    fields([
        ("tid", json!(e.tid.0)),
        ("tgid", json!(e.tgid.0)),
        ("server", json!(e.server.to_string())),
        ("port", json!(e.port)),
        ("id", json!(e.id)),
        ("type", json!(e.kind)),
        ("name", bytes(&e.name)),
    ])
}

fn dns_answer(e: &DnsAnswer) -> Map<String, Value> {
    let addresses = e.addresses.iter().map(ToString::to_string);
    fields([
        ("server", json!(e.server.to_string())),
        ("port", json!(e.port)),
        ("id", json!(e.id)),
        ("code", json!(e.code)),
        ("addresses", json!(addresses.collect::<Vec<_>>())),
    ])
}

fn module(e: &Module) -> Map<String, Value> {
    fields([
        ("number", json!(e.number)),
        ("build_id", json!(tr_report::hex(&e.build_id))),
        ("path", bytes(&e.path)),
        (
            "file",
            e.file.map_or(Value::Null, |file| {
                json!({
                    "device": file.device,
                    "inode": file.inode,
                    "size": file.size,
                    "modified": file.modified,
                })
            }),
        ),
    ])
}

fn sample(e: &Sample) -> Map<String, Value> {
    let places = e.places.iter().map(|place| match place {
        Place::Kernel(address) => json!({ "kernel": address }),
        Place::Process(tgid, address) => json!({ "tgid": tgid.0, "address": address }),
        Place::Module(number, offset) => json!({ "module": number, "offset": offset }),
    });
    fields([
        ("tid", json!(e.tid.0)),
        ("tgid", json!(e.tgid.0)),
        ("off_cpu", json!(e.doing == Doing::OffCpu)),
        ("ns", json!(e.ns)),
        ("cut", json!(e.cut)),
        ("base", json!(e.base)),
        ("first", json!(e.first)),
        ("frames", json!(e.frames)),
        ("first_frame", json!(e.first_frame)),
        ("places", json!(places.collect::<Vec<_>>())),
    ])
}

fn symbol(e: &Symbol) -> Map<String, Value> {
    let functions = e.functions.iter().map(|it: &Function| {
        json!({ "name": bytes(&it.name), "file": bytes(&it.file), "line": it.line })
    });
    fields([
        ("frame", json!(e.frame)),
        ("functions", json!(functions.collect::<Vec<_>>())),
    ])
}

fn connect(e: &Connect) -> Map<String, Value> {
    let remote = [("remote", json!(e.remote.to_string()))];
    connection(e.id, Some((e.tid, e.tgid)), remote)
}

fn connected(e: &Connected) -> Map<String, Value> {
    fields([
        ("connection", json!(e.id.0)),
        ("local", json!(e.local.to_string())),
    ])
}

fn accepted(e: &Accepted) -> Map<String, Value> {
    let ends = [
        ("local", json!(e.local.to_string())),
        ("remote", json!(e.remote.to_string())),
    ];
    connection(e.id, e.listener, ends)
}

fn closed(e: &Closed) -> Map<String, Value> {
    let rest = [
        ("ending", json!(e.ending.name())),
        ("sent", json!(e.sent)),
        ("received", json!(e.received)),
    ];
    connection(e.id, e.by, rest)
}

fn connection<const N: usize>(
    id: ConnectionId,
    task: Option<(Tid, Tgid)>,
    rest: [(&str, Value); N],
) -> Map<String, Value> {
    let mut all = fields([
        ("connection", json!(id.0)),
        ("tid", json!(task.map(|(tid, _)| tid.0))),
        ("tgid", json!(task.map(|(_, tgid)| tgid.0))),
    ]);
    all.extend(fields(rest));
    all
}

fn mark(e: &Mark) -> Map<String, Value> {
    let point = match e.point {
        Point::Moment => "moment",
        Point::Begin => "begin",
        Point::End => "end",
    };
    let given = |text: &[u8]| match text {
        [] => Value::Null,
        text => bytes(text),
    };
    fields([
        ("name", bytes(&e.name)),
        ("point", json!(point)),
        ("ago", json!(e.ago)),
        ("kind", given(&e.kind)),
        ("result", given(&e.result)),
        ("id", given(&e.id)),
        ("pid", json!(e.pid.map(|pid| pid.0))),
        ("tid", json!(e.tid.map(|tid| tid.0))),
    ])
}

fn end(e: &TaskEnd) -> Map<String, Value> {
    fields([
        ("tid", json!(e.tid.0)),
        ("tgid", json!(e.tgid.0)),
        ("status", json!(e.status)),
        ("group_dead", json!(e.group_dead)),
        ("max_rss", json!(e.max_rss)),
    ])
}

fn fork(e: &Fork) -> Map<String, Value> {
    fields([
        ("parent_tid", json!(e.parent_tid.0)),
        ("parent_tgid", json!(e.parent_tgid.0)),
        ("tid", json!(e.tid.0)),
        ("tgid", json!(e.tgid.0)),
        ("start_time", json!(e.start_time.0)),
        ("ns_tid", json!(e.ns_tid.0)),
        ("cgroup", json!(e.cgroup.0)),
        ("comm", bytes(e.comm.bytes())),
    ])
}

fn exec(e: &Exec) -> Map<String, Value> {
    fields([
        ("tid", json!(e.tid.0)),
        ("tgid", json!(e.tgid.0)),
        ("old_tid", json!(e.old_tid.0)),
        ("cgroup", json!(e.cgroup.0)),
        ("comm", bytes(e.comm.bytes())),
        ("filename", bytes(&e.filename)),
        ("argv", argv(&e.argv)),
        ("argv_truncated", json!(e.argv.truncated())),
        ("max_rss", json!(e.max_rss)),
    ])
}

fn exit(e: &Exit) -> Map<String, Value> {
    fields([
        ("tid", json!(e.tid.0)),
        ("tgid", json!(e.tgid.0)),
        ("status", json!(e.status)),
        ("group_dead", json!(e.group_dead)),
        ("group_status", json!(e.group_status)),
        ("utime", json!(e.utime)),
        ("stime", json!(e.stime)),
        ("sum_exec_runtime", json!(e.sum_exec_runtime)),
        ("nvcsw", json!(e.nvcsw)),
        ("nivcsw", json!(e.nivcsw)),
        ("min_flt", json!(e.min_flt)),
        ("maj_flt", json!(e.maj_flt)),
        ("max_rss", json!(e.max_rss)),
        ("read_bytes", json!(e.read_bytes)),
        ("write_bytes", json!(e.write_bytes)),
        ("program_rss", json!(e.program_rss)),
        ("run_delay", json!(e.delays.run)),
        ("block_delay", json!(e.delays.block)),
        ("swap_delay", json!(e.delays.swap)),
    ])
}

fn snapshot(e: &Snapshot) -> Map<String, Value> {
    fields([
        ("tid", json!(e.tid.0)),
        ("tgid", json!(e.tgid.0)),
        ("parent_tgid", json!(e.parent_tgid.0)),
        ("start_time", json!(e.start_time.0)),
        ("ns_tid", json!(e.ns_tid.0)),
        ("cgroup", json!(e.cgroup.0)),
        ("comm", bytes(e.comm.bytes())),
        ("argv", argv(&e.argv)),
        ("state", json!(e.state)),
        ("on_cpu", json!(e.on_cpu)),
        ("kthread", json!(e.kthread)),
        ("followed", json!(e.followed)),
        ("sum_exec_runtime", json!(e.sum_exec_runtime)),
    ])
}

fn lost(e: &Lost) -> Map<String, Value> {
    let stream = match e.stream {
        Stream::Cpu(cpu) => json!(cpu.0),
        other => json!(stream_number(other)),
    };
    fields([
        ("stream", stream),
        ("count", json!(e.count)),
        ("until", json!(e.until.0)),
        ("cause", json!(format!("{:?}", e.cause))),
    ])
}
