//! What the page knows, as JSON: the trace, the sums, and a column for every
//! property of the processes, threads and programs.
//!
//! Times are in ns since the start of the trace, as in `--format json`; what is
//! not known is `null`. Texts are numbers in `strings`.

use serde::Serialize;
use tr_analyze::critical_path::{CriticalPath, Kind, Then};
use tr_analyze::model::{Analysis, Process, ProcessIx, Times};
use tr_format::event::{Argv, Ktime};

use crate::html::segments::Segments;
use crate::html::strings::Strings;
use crate::reports::{critical_path, top};
use crate::{escape, label, query, units, who};

/// Bytes of texts longer than a line, uncompressed.
const TEXTS: usize = 8 << 20;

/// The most pieces of the critical path.
const STEPS: usize = 20_000;

/// The whole document.
#[derive(Serialize)]
pub struct Document {
    /// Of this layout; the page that reads it is in the same file.
    version: u32,
    trace: Trace,
    totals: Totals,
    /// How long n tasks were on a CPU at once.
    concurrency: Vec<u64>,
    concurrency_unknown: u64,
    warnings: Vec<String>,
    contradictions: Vec<String>,
    clocks: Vec<String>,
    strings: Vec<String>,
    processes: Processes,
    threads: Threads,
    execs: Execs,
    path: Option<Path>,
    segments: Sizes,
}

#[derive(Serialize)]
struct Trace {
    file: String,
    command: String,
    /// How COMMAND ended, in words; nothing when there was none.
    result: Option<String>,
    failed: bool,
    date: String,
    host: String,
    kernel: String,
    cpus: usize,
    events: u64,
    lost: String,
    /// The analyzed span.
    from: u64,
    to: u64,
    /// Length of the whole recording.
    whole: u64,
    version: String,
}

#[derive(Serialize)]
struct Totals {
    processes: u64,
    threads: u64,
    execs: u64,
    forks: u64,
    exits: u64,
    on_cpu: u64,
    run_queue: u64,
    sleep: u64,
    blocked: u64,
    unknown: u64,
}

/// The five times, a column each.
#[derive(Default, Serialize)]
struct TimeColumns {
    on_cpu: Vec<u64>,
    run_queue: Vec<u64>,
    sleep: Vec<u64>,
    blocked: Vec<u64>,
    unknown: Vec<u64>,
}

impl TimeColumns {
    fn push(&mut self, times: &Times) {
        self.on_cpu.push(times.on_cpu);
        self.run_queue.push(times.run_queue);
        self.sleep.push(times.sleep);
        self.blocked.push(times.blocked);
        self.unknown.push(times.unknown);
    }
}

#[derive(Default, Serialize)]
struct Processes {
    pid: Vec<u32>,
    ppid: Vec<Option<u32>>,
    /// Its place among the processes.
    parent: Vec<Option<u32>>,
    label: Vec<u32>,
    program: Vec<u32>,
    comm: Vec<u32>,
    argv: Vec<Option<u32>>,
    cgroup: Vec<Option<u32>>,
    start: Vec<u64>,
    end: Vec<u64>,
    alive: Vec<u8>,
    started_before: Vec<u8>,
    kthread: Vec<u8>,
    /// The raw `wait` status.
    status: Vec<Option<u32>>,
    /// How it ended, in words.
    exit: Vec<Option<u32>>,
    #[serde(flatten)]
    times: TimeColumns,
    preempted: Vec<u64>,
    block_io: Vec<u64>,
    vfork: Vec<u64>,
    voluntary: Vec<u64>,
    involuntary: Vec<u64>,
    max_off_cpu: Vec<Option<u64>>,
    max_rss: Vec<Option<u64>>,
    tree_processes: Vec<u64>,
    tree_on_cpu: Vec<u64>,
    /// How many threads and programs; theirs follow each other in the order
    /// of the processes.
    threads: Vec<usize>,
    execs: Vec<usize>,
}

#[derive(Default, Serialize)]
struct Threads {
    tid: Vec<u32>,
    comm: Vec<u32>,
    start: Vec<u64>,
    end: Vec<u64>,
    #[serde(flatten)]
    times: TimeColumns,
}

#[derive(Default, Serialize)]
struct Execs {
    start: Vec<u64>,
    end: Vec<u64>,
    label: Vec<u32>,
    argv: Vec<Option<u32>>,
    on_cpu: Vec<u64>,
}

/// The critical path: segments that follow each other.
#[derive(Default, Serialize)]
struct Path {
    from: u64,
    thread: Vec<u32>,
    length: Vec<u64>,
    /// As the kinds of pieces; 11: a task that is not recorded.
    kind: Vec<u8>,
    /// How the next one came to be: 0 the same thread, 1 fork, 2 exit, 3 the
    /// end of a vfork, 4 a wake-up.
    then: Vec<u8>,
    shares: Vec<(String, u64, u64)>,
}

#[derive(Serialize)]
struct Sizes {
    grain: u64,
    unit: u64,
    pieces: usize,
    mixed: usize,
}

/// Makes it.
pub fn document(
    analysis: &Analysis,
    file: &str,
    path: Option<&CriticalPath>,
    segments: &Segments,
) -> Document {
    let mut strings = Strings::new(TEXTS);
    let zero = analysis.meta.start;
    let since = |t: Ktime| t.since(zero);
    let mut processes = Processes::default();
    let mut threads = Threads::default();
    let mut execs = Execs::default();
    for process in &analysis.processes {
        add(analysis, process, &mut processes, &mut strings);
        let of = process.threads.iter();
        for thread in of.filter_map(|ix| analysis.threads.get(ix.0 as usize)) {
            threads.tid.push(thread.tid.0);
            let comm = escape::text(thread.comm.bytes());
            threads.comm.push(strings.add(comm));
            threads.start.push(since(thread.start));
            threads.end.push(since(thread.end));
            threads.times.push(&thread.times);
        }
        for exec in &process.execs {
            execs.start.push(since(exec.start));
            execs.end.push(since(exec.end));
            let label = label::label_of(&exec.argv, &exec.comm, false);
            execs.label.push(strings.add(label));
            execs.argv.push(argv(&exec.argv, &mut strings));
            execs.on_cpu.push(exec.times.on_cpu);
        }
    }
    let totals = &analysis.totals;
    Document {
        version: 1,
        trace: trace(analysis, file),
        totals: Totals {
            processes: totals.processes,
            threads: totals.threads,
            execs: totals.execs,
            forks: totals.forks,
            exits: totals.exits,
            on_cpu: totals.times.on_cpu,
            run_queue: totals.times.run_queue,
            sleep: totals.times.sleep,
            blocked: totals.times.blocked,
            unknown: totals.times.unknown,
        },
        concurrency: analysis.concurrency.clone(),
        concurrency_unknown: analysis.concurrency_unknown,
        warnings: top::warnings(analysis),
        contradictions: top::contradictions(analysis),
        clocks: top::clocks(&analysis.quality).into_iter().collect(),
        processes,
        threads,
        execs,
        path: path.map(|path| columns_of(analysis, path)),
        segments: Sizes {
            grain: segments.grain,
            unit: segments.unit,
            pieces: segments.kinds.len(),
            mixed: segments.shares.len(),
        },
        strings: strings.list(),
    }
}

fn argv(argv: &Argv, strings: &mut Strings) -> Option<u32> {
    argv.full_len?;
    let mut text = escape::command(argv.args());
    if argv.truncated() {
        text.push('…');
    }
    Some(strings.add(text))
}

fn add(analysis: &Analysis, process: &Process, to: &mut Processes, strings: &mut Strings) {
    let since = |t: Ktime| t.since(analysis.meta.start);
    to.pid.push(process.pid.0);
    to.ppid.push(process.ppid.map(|pid| pid.0));
    to.parent.push(process.parent.map(|ProcessIx(ix)| ix));
    to.label.push(strings.add(label::label(process)));
    to.program.push(strings.add(label::program(process)));
    let comm = escape::text(process.comm.bytes());
    to.comm.push(strings.add(comm));
    to.argv.push(argv(&process.argv, strings));
    let cgroup = query::cgroup_path(analysis, process).map(escape::text);
    to.cgroup.push(cgroup.map(|path| strings.add(path)));
    to.start.push(since(process.start));
    to.end.push(since(process.end));
    to.alive.push(process.alive.into());
    to.started_before.push(process.started_before.into());
    to.kthread.push(process.kthread.into());
    to.status.push(process.status);
    let exit = process.status.map(top::status);
    to.exit.push(exit.map(|exit| strings.add(exit)));
    to.times.push(&process.times);
    to.preempted.push(process.causes.preempted);
    to.block_io.push(process.causes.io);
    to.vfork.push(process.causes.vfork);
    to.voluntary.push(process.switches.voluntary);
    to.involuntary.push(process.switches.involuntary);
    let longest = process.max_off_cpu.map(|stretch| stretch.length);
    to.max_off_cpu.push(longest);
    to.max_rss.push(process.max_rss);
    to.tree_processes.push(process.tree.processes);
    to.tree_on_cpu.push(process.tree.times.on_cpu);
    to.threads.push(process.threads.len());
    to.execs.push(process.execs.len());
}

fn trace(analysis: &Analysis, file: &str) -> Trace {
    let meta = &analysis.meta;
    let quality = &analysis.quality;
    let status = analysis.summary.as_ref().map(|summary| summary.status);
    let kernel: Vec<&str> = meta.kernel.split(' ').take(2).collect();
    Trace {
        file: escape::text(file.as_bytes()),
        command: who::recorded(meta),
        result: match status {
            Some(status) => status.map(top::status),
            None => Some("no end".into()),
        },
        failed: status.is_none_or(|status| status.is_some_and(|raw| raw != 0)),
        date: units::date(meta.start_clock.real),
        host: escape::text(meta.host.as_bytes()),
        kernel: escape::text(kernel.join(" ").as_bytes()),
        cpus: meta.cpus.len(),
        events: analysis.events.total(),
        lost: match (quality.lost.is_empty(), quality.lost_unknown) {
            (true, _) => "none lost".into(),
            (false, false) => format!("{} lost", units::count(quality.lost_events)),
            (false, true) => "some lost".into(),
        },
        from: analysis.start.since(meta.start),
        to: analysis.end.since(meta.start),
        whole: analysis.whole,
        version: env!("CARGO_PKG_VERSION").into(),
    }
}

fn columns_of(analysis: &Analysis, path: &CriticalPath) -> Path {
    let groups = critical_path::groups(analysis);
    let shares = critical_path::shares(analysis, &groups, path);
    let mut columns = Path {
        from: path.from.since(analysis.meta.start),
        shares: shares
            .into_iter()
            .map(|share| (share.name, share.time, share.count))
            .collect(),
        ..Path::default()
    };
    for step in steps(path) {
        columns.thread.push(step.thread);
        columns.length.push(step.length);
        columns.kind.push(step.kind);
        columns.then.push(step.then);
    }
    columns
}

/// A piece of the path as the page has it.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    thread: u32,
    length: u64,
    kind: u8,
    then: u8,
}

/// The path's segments; when there are too many, those that follow each other are
/// put together until they are long enough, and stand for the thread and the kind
/// with the longest one of them. The sums by what the path went to are exact.
fn steps(path: &CriticalPath) -> Vec<Step> {
    let all = path.segments.iter().map(|segment| Step {
        thread: segment.thread.0,
        length: segment.length(),
        kind: path_kind(segment.kind),
        then: path_then(segment.then),
    });
    if path.segments.len() <= STEPS {
        return all.collect();
    }
    let grain = path.length() / (STEPS as u64 / 2);
    let mut steps: Vec<Step> = Vec::with_capacity(STEPS);
    // What is being put together, and the longest of it.
    let mut held = Step::default();
    let mut longest = 0;
    let flush = |held: &mut Step, longest: &mut u64, steps: &mut Vec<Step>| {
        steps.extend((held.length > 0).then_some(*held));
        (*held, *longest) = (Step::default(), 0);
    };
    for step in all {
        if step.length >= grain {
            flush(&mut held, &mut longest, &mut steps);
            steps.push(step);
            continue;
        }
        if step.length > longest {
            longest = step.length;
            (held.thread, held.kind) = (step.thread, step.kind);
        }
        held.then = step.then;
        held.length += step.length;
        if held.length >= grain {
            flush(&mut held, &mut longest, &mut steps);
        }
    }
    flush(&mut held, &mut longest, &mut steps);
    steps
}

/// The kinds of the path's segments, as the kinds of pieces.
fn path_kind(kind: Kind) -> u8 {
    match kind {
        Kind::Unknown => 0,
        Kind::OnCpu => 1,
        Kind::RunQueue(_) => 2,
        Kind::Sleep => 4,
        Kind::Stopped => 5,
        Kind::Disk => 6,
        Kind::Blocked => 8,
        Kind::Outside(_) => 11,
    }
}

fn path_then(then: Then) -> u8 {
    match then {
        Then::Same => 0,
        Then::Forked => 1,
        Then::Exited => 2,
        Then::Returned => 3,
        Then::Woke => 4,
    }
}
