//! The page's data as JSON: the trace, the sums, and a column for each property
//! of the processes, threads and executions.
//!
//! Times are in ns since the start of the trace, as in `--format json`; an unknown
//! value is `null`. A text is its number in `strings`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use tr_programs::command_line;

use serde::Serialize;
use tr_analyze::critical_path::{self, CriticalPath, Then};
use tr_analyze::dns::Lookup;
use tr_analyze::kinds::{ByKind, Kind};
use tr_analyze::model::{self, Analysis, ExecSpan, Process, ProcessIx, Thread, ThreadIx};
use tr_analyze::network::Connection;
use tr_format::counters::{self, Counter};
use tr_format::event::{Argv, Ktime, Tgid};
use tr_format::meta::Scope;

use crate::html::columns::differences;
use crate::html::digits::Digits;
use crate::html::segments::{kinds as piece_kinds, KindRow, Segments, MIXED};
use crate::html::stacks::{Function, Stacks};
use crate::html::steps::{Chosen, Steps};
use tr_insight::advice::facts::Facts;
use tr_insight::advice::{advise_by, programs, Advice, Verdict};
use tr_insight::ci::Ci;
use tr_insight::depends::needs;
use tr_insight::failure::{Failure, Failures};
use tr_insight::imports::Imports;
use tr_insight::known::{by_events, by_tr};
use tr_insight::path;
use tr_insight::path::Part;
use tr_insight::path_steps::{PathBySteps, StepShare};
use tr_insight::shares::CpuShares;
use tr_insight::steps::Steps as StepList;
use tr_insight::versions;
use tr_insight::view::{Ask, View};
use tr_insight::Recording;
use tr_insight::{exit, kinds, label, query, warnings, who};
use tr_text::object;
use tr_text::strings::Strings;
use tr_text::words::STATES;
use tr_text::{escape, units};

/// The largest number of bytes of the texts of a page that are longer than a line, before compression.
const TEXTS: usize = 8 << 20;

/// The largest number of processes that a page lists for a change that would save time.
const EVIDENCE: usize = 40;
/// The largest number of failures on a page.
const FAILURES: usize = 20;
/// The largest number of pieces of the critical path on a page.
const PIECES: usize = 20_000;
/// The largest number of connections and DNS queries on a page, and of samples of the machine's counters.
const CONNECTIONS: usize = 5_000;
const SAMPLES: usize = 2_000;

#[derive(Serialize)]
pub struct Document {
    /// The version of the layout of the data. The same file has the page that reads it.
    version: u32,
    trace: Trace,
    totals: Totals,
    /// The time in which exactly n tasks were on a CPU, by n.
    concurrency: Vec<u64>,
    concurrency_unknown: u64,
    /// The shares of the machine's CPU time, as text.
    shares: Vec<String>,
    /// The shares of the machine's CPU time, in nanoseconds.
    cpu_time: Shares,
    warnings: Vec<String>,
    failures: FailureRows,
    /// The verdict on the whole build; `None` if no time is known.
    verdict: Option<VerdictRow>,
    advice: Vec<Change>,
    combined: Option<String>,
    anomalies: Vec<String>,
    clocks: Vec<String>,
    strings: Vec<String>,
    /// Whether times of single processes are rounded to three digits.
    rounded: bool,
    processes: Processes,
    threads: Threads,
    execs: Execs,
    path: Option<Path>,
    path_title: &'static str,
    steps: Steps,
    /// The name of a step that could show its tests but does not, if there is one.
    untold: Option<String>,
    /// The number of failed tests of runners' files that have no place in the recording.
    unplaced_failed: usize,
    /// The names of the columns for the uses of a step's wall time.
    uses: Vec<&'static str>,
    connections: Connections,
    /// The number of all connections, if some are left out.
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

object! {
    Trace(analysis: &Analysis, imports: &Imports, file: &str) {
        file: String = escape::raw(file.as_bytes()),
        command: String = who::headline(&analysis.meta),
        // COMMAND's status in words; `None` without COMMAND.
        result: Option<String> = exit::of_command(analysis),
        failed: bool = analysis.summary.as_ref().is_none_or(|s| exit::failed(s.status)),
        date: String = units::date(analysis.meta.start_unix()),
        host: String = escape::raw(analysis.meta.host.as_bytes()),
        kernel: String = who::kernel(&analysis.meta),
        // Those that the build could use, and all.
        cpus: u64 = analysis.cpus_of_build(),
        online: usize = analysis.meta.cpus.len(),
        machine: String = escape::raw(analysis.meta.machine.as_bytes()),
        // COMMAND's process.
        root: Option<u32> = critical_path::root(analysis).ok().map(|ix| ix.0),
        // The outermost program that was told a number of jobs.
        jobs: Option<String> = programs::jobs_told(analysis),
        // Tools and their versions.
        tools: Vec<String> = versions::told(analysis, imports),
        events: u64 = analysis.events.total(),
        lost: String = warnings::lost(analysis),
        // By which method, and what that does not tell.
        recorded: Vec<String> = warnings::recorded(analysis),
        // Sums are lower bounds.
        least: bool = warnings::is_lower_bound(analysis),
        // Nothing is known.
        blank: bool = warnings::is_blank(analysis),
        // Identifiers of the CI run, in words.
        ci: Vec<String> = Ci::new(&analysis.meta).words(),
        // Every task of the machine was recorded.
        all: bool = analysis.meta.scope == Scope::All,
        // The analyzed span.
        from: u64 = analysis.start.since(analysis.meta.start),
        to: u64 = analysis.end.since(analysis.meta.start),
        // The length of the whole recording.
        whole: u64 = analysis.whole,
        version: String = env!("CARGO_PKG_VERSION").into(),
    }

    Totals(totals: &model::Totals) {
        processes: u64 = totals.processes,
        threads: u64 = totals.threads,
        execs: u64 = totals.execs,
        forks: u64 = totals.forks,
        exits: u64 = totals.exits,
        on_cpu: Option<u64> = totals.times.on_cpu_known(),
        run_queue: Option<u64> = totals.times.run_queue_known(),
        sleep: Option<u64> = totals.times.sleep_known(),
        blocked: Option<u64> = totals.times.blocked_known(),
        // Only of a recording without scheduling events.
        #[serde(skip_serializing_if = "Option::is_none")]
        asleep_or_blocked: Option<u64> = totals.times.asleep_or_blocked_known(),
        unknown: u64 = totals.times.unknown,
    }

    // The CPUs' time: of the build, others, the hypervisor, nobody.
    Shares(shares: &CpuShares) {
        build: Option<u64> = shares.build,
        others: Option<u64> = shares.others,
        stolen: Option<u64> = shares.stolen,
        idle: Option<u64> = shares.idle,
    }

    // What failed and counts, the gravest first; with those above the cause of COMMAND's failure.
    FailureRows(failures: &Failures) {
        told: Vec<FailureRow> = failures.told.iter().take(FAILURES).map(FailureRow::new).collect(),
        more: usize = failures.told.len().saturating_sub(FAILURES),
        // What failed and led to what is not known: how many, and the first.
        unclear: usize = failures.unclear,
        beside: Vec<String> = failures.beside.iter().map(|failed| format!("{} {}", failed.name(), failed.ended())).collect(),
        command: bool = failures.command.is_some(),
        tolerated: usize = failures.tolerated,
        // Those that do not count, others' too.
        calm: Vec<u32> = failures.calm.iter().map(|ix| ix.0).collect(),
    }

    FailureRow(failed: &Failure) {
        process: Option<u32> = failed.process.map(|ix| ix.0),
        name: String = failed.name(),
        end: String = failed.ended(),
        after: u64 = failed.after,
        above: Vec<FailureRow> = failed.above.iter().map(FailureRow::new).collect(),
        // Among those above: for one of several possible reasons.
        perhaps: bool = failed.perhaps,
        // What held it back meanwhile.
        held: Option<String> = failed.held_by(),
    }

    VerdictRow(verdict: &Verdict) {
        sentence: String = verdict.sentence(),
        // The actors that held the build back, and the parts that no rule has judged.
        more: Vec<String> = verdict.more(),
        // The parts of the path's time, the build's own first.
        parts: Vec<(&'static str, u64)> = verdict.parts().into(),
    }

    // A change that would save time.
    Change(analysis: &Analysis, advice: &Advice) {
        text: String = format!("{}: {}", advice.finding, advice.action),
        gain: u64 = advice.gain,
        from: u64 = advice.from.since(analysis.meta.start),
        to: u64 = advice.to.since(analysis.meta.start),
        // The processes that are the evidence, the first of many.
        processes: Vec<u32> = advice.processes.iter().take(EVIDENCE).map(|ix| ix.0).collect(),
    }

    Sizes(segments: &Segments) {
        grain: u64 = segments.grain,
        unit: u64 = segments.unit,
        pieces: usize = segments.kinds.len(),
        mixed: usize = segments.shares.len(),
        mixed_kind: u8 = MIXED,
    }

    // Functions have a column for each property.
    StackSizes(stacks: &Stacks, strings: &mut Strings) {
        functions: Vec<u32> = names(stacks, strings, |function| &function.name.function),
        binaries: Vec<u32> = names(stacks, strings, |function| &function.name.binary),
        kernel: Vec<u8> = stacks.functions.iter().map(|function| function.kernel.into()).collect(),
        stacks: usize = stacks.callers.len(),
        samples: usize = stacks.samples.len(),
        unit: u64 = stacks.unit,
        // So many samples on a CPU are shown as one.
        together: usize = stacks.together,
        // The samples whose stacks are left out, and their time; the shortest waits, which are.
        cut: [u64; 2] = [stacks.cut.samples, stacks.cut.ns],
        short: [u64; 2] = [stacks.short.samples, stacks.short.ns],
    }
}

/// The facts about a process that its own row on the page needs from elsewhere.
#[derive(Clone, Copy)]
struct Around<'a> {
    /// The row of the innermost step at the end of the process.
    step: Option<u32>,
    container: Option<&'a str>,
    digits: Digits,
}

impl Around<'_> {
    /// Rounds a sum of times or of bytes to the precision of the page.
    fn amount(&self, amount: Option<u64>) -> Option<u64> {
        amount.map(|amount| self.digits.amount(amount))
    }
}

columns!(Processes(analysis: &Analysis, process: &Process, around: Around<'_>, strings: &mut Strings) {
    // Since the process before, as are the label, the arguments and the start.
    pid: i64 = process.pid.0.into(),
    // None: the parent's, or unknown without one.
    ppid: Option<u32> = process.ppid.filter(|ppid| parent_pid(analysis, process) != Some(*ppid)).map(|pid| pid.0),
    parent: Option<u32> = process.parent.map(|ProcessIx(ix)| ix),
    label: i64 = strings.add(label::label(process)).into(),
    program: u32 = strings.add(label::program(process)),
    comm: u32 = strings.add(escape::raw(process.comm.bytes())),
    argv: Option<i64> = argv(&process.argv, strings),
    cgroup: Option<u32> = query::cgroup_path(analysis, process)
        .map(|path| strings.add(escape::raw(path))),
    start: i64 = around.digits.place(process.start.since(analysis.meta.start)).cast_signed(),
    wall: u64 = around.digits.length(process.wall()),
    alive: u8 = process.alive.into(),
    started_before: u8 = process.started_before.into(),
    kthread: u8 = process.role.kthread.into(),
    status: Option<u32> = process.status,
    exit: Option<u32> = process.status.map(|status| strings.add(exit::words(status))),
    on_cpu: Option<u64> = around.amount(process.times.on_cpu_known()),
    run_queue: Option<u64> = around.amount(process.times.run_queue_known()),
    sleep: Option<u64> = around.amount(process.times.sleep_known()),
    blocked: Option<u64> = around.amount(process.times.blocked_known()),
    unknown: u64 = around.digits.amount(process.times.unknown),
    preempted: Option<u64> = around.amount(by_events(analysis, process.causes.preempted)),
    block_io: Option<u64> = around.amount(by_tr(analysis, process.causes.io)),
    vfork: Option<u64> = around.amount(by_tr(analysis, process.causes.vfork)),
    voluntary: Option<u64> = by_events(analysis, process.resources.switches.voluntary),
    involuntary: Option<u64> = by_events(analysis, process.resources.switches.involuntary),
    max_off_cpu: Option<u64> = around.amount(process.resources.max_off_cpu),
    max_rss: Option<u64> = around.amount(process.resources.max_rss),
    tree_processes: u64 = process.tree.processes,
    // Of its descendants, without itself: most have none.
    below_on_cpu: Option<u64> = around.amount(process.tree.times.on_cpu_known()
        .map(|all| all.saturating_sub(process.times.on_cpu_known().unwrap_or(0)))),
    // Their numbers: they follow each other in the order of the processes.
    threads: usize = process.threads.len(),
    execs: usize = process.execs.len(),
    step: Option<u32> = around.step,
    container: Option<u32> = around.container.map(|name| strings.add(name.to_owned())),
    // Its one thread has the same figures, and no row of its own.
    alone: u8 = alone(analysis, process).into(),
});

columns!(Threads(zero: Ktime, thread: &Thread, digits: Digits, strings: &mut Strings) {
    tid: u32 = thread.tid.0,
    comm: u32 = strings.add(escape::raw(thread.comm.bytes())),
    start: u64 = digits.place(thread.start.since(zero)),
    end: u64 = digits.place(thread.start.since(zero)).saturating_add(digits.length(thread.wall())),
    on_cpu: Option<u64> = thread.times.on_cpu_known().map(|ns| digits.amount(ns)),
    run_queue: Option<u64> = thread.times.run_queue_known().map(|ns| digits.amount(ns)),
    sleep: Option<u64> = thread.times.sleep_known().map(|ns| digits.amount(ns)),
    blocked: Option<u64> = thread.times.blocked_known().map(|ns| digits.amount(ns)),
    unknown: u64 = digits.amount(thread.times.unknown),
});

columns!(Execs(process: &Process, exec: &ExecSpan, digits: Digits, strings: &mut Strings) {
    // Since the start of the process.
    start: i64 = rounded(difference(exec.start.0, process.start.0), digits),
    // Before the end of the process: the last one ends with it.
    end: i64 = rounded(difference(process.end.0, exec.end.0), digits),
    // Since those of the process, which are the last one's.
    label: i64 = exec_label(exec, strings),
    argv: Option<i64> = argv(&exec.argv, strings),
    on_cpu: Option<u64> = exec.times.on_cpu_known().map(|ns| digits.amount(ns)),
});

columns!(Connections(analysis: &Analysis, bar: &Bar, strings: &mut Strings) {
    process: Option<u32> = bar.thread.map(|ix| analysis.thread(ix).process.0),
    remote: u32 = strings.add(bar.name.clone()),
    accepted: u8 = bar.accepted.into(),
    dns: u8 = bar.dns.into(),
    from: u64 = bar.from.since(analysis.meta.start),
    // A query is established by its answer.
    established: Option<u64> = bar.established.map(|at| at.since(analysis.meta.start)),
    to: u64 = bar.to.since(analysis.meta.start),
    failed: u8 = bar.failed.into(),
    sent: Option<u64> = bar.bytes.map(|(sent, _)| sent),
    received: Option<u64> = bar.bytes.map(|(_, received)| received),
});

/// A connection or a DNS query, drawn as a bar over time.
struct Bar {
    thread: Option<ThreadIx>,
    name: String,
    accepted: bool,
    dns: bool,
    from: Ktime,
    established: Option<Ktime>,
    to: Ktime,
    failed: bool,
    bytes: Option<(u64, u64)>,
}

impl Bar {
    fn connection(analysis: &Analysis, connection: &Connection) -> Bar {
        Bar {
            thread: connection.thread,
            name: connection.remote.to_string(),
            accepted: connection.accepted,
            dns: false,
            from: connection.begun,
            established: connection.established,
            to: connection.closed.unwrap_or(analysis.end),
            failed: connection.failed(),
            bytes: connection.bytes,
        }
    }

    fn lookup(analysis: &Analysis, lookup: &Lookup) -> Bar {
        Bar {
            thread: lookup.thread,
            name: who::asked_name(lookup),
            accepted: false,
            dns: true,
            from: lookup.asked,
            established: lookup.answered,
            to: lookup.answered.unwrap_or(analysis.end),
            failed: lookup.failed(),
            bytes: None,
        }
    }
}

columns!(Counters(zero: Ktime, time: Ktime, values: &counters::Counters) {
    at: u64 = time.since(zero),
    busy: Option<u64> = values.get(Counter::Busy),
    stolen: Option<u64> = values.get(Counter::Stolen),
    throttled: Option<u64> = values.get(Counter::Throttled),
    cpu: Option<u64> = values.get(Counter::CpuSome),
    io: Option<u64> = values.get(Counter::IoSome),
    memory: Option<u64> = values.get(Counter::MemorySome),
    available: Option<u64> = values.get(Counter::AvailableMemory),
});

/// The longest connections and DNS queries, in order of their beginning.
fn connections(analysis: &Analysis, strings: &mut Strings) -> Connections {
    let connections = analysis.network.connections.iter();
    let connections = connections.map(|connection| Bar::connection(analysis, connection));
    let lookups = analysis.network.lookups.iter();
    let lookups = lookups.map(|lookup| Bar::lookup(analysis, lookup));
    let mut chosen: Vec<Bar> = connections.chain(lookups).collect();
    if chosen.len() > CONNECTIONS {
        chosen.sort_by_key(|bar| std::cmp::Reverse(bar.to.since(bar.from)));
        chosen.truncate(CONNECTIONS);
    }
    chosen.sort_by_key(|bar| bar.from);
    let mut columns = Connections::default();
    for bar in &chosen {
        columns.push(analysis, bar, strings);
    }
    columns
}

/// The samples of the machine's counters. If there are too many, every second one, or fewer.
fn counters(analysis: &Analysis) -> Counters {
    let mut columns = Counters::default();
    let step = analysis.machine.counters.len() / SAMPLES + 1;
    for (time, values) in analysis.machine.counters.iter().step_by(step) {
        columns.push(analysis.meta.start, *time, values);
    }
    columns
}

/// The times of a step or a program on the critical path, by the state of the thread.
pub type StateTimes = [u64; 5];

object! {
    // The path's time in the steps of one name, or in one use outside of steps.
    Owner(share: &StepShare) {
        name: String = share.name.clone(),
        step: bool = share.is_step,
        // The number of steps, or of stays.
        count: u64 = share.count,
        times: StateTimes = states(&share.spent),
        // The longest wait in words.
        waited: Option<String> = share.waited(),
    }

    // A kind of the path's waits, with the owner that has most of it.
    Wait(wait: &(&'static str, usize, u64, u32)) {
        name: &'static str = wait.0,
        state: usize = wait.1,
        time: u64 = wait.2,
        owner: u32 = wait.3,
    }
}

columns!(Pieces(step: &PathPiece) {
    thread: u32 = step.thread,
    length: u64 = step.length,
    // The places in `shares`.
    share: u32 = step.share,
    // The places in `owners`.
    owner: u32 = step.owner,
    // The transition to the next segment: 0 same thread, 1 fork, 2 exit, 3 end of
    // a vfork, 4 wake-up, 5 a sleep that the next segment's thread ends, 6 the recording's
    // end, 7 a job slot.
    then: u8 = step.then,
    // 1: no event shows the segment, or its transition to the next one.
    inferred: u8 = step.inferred.into(),
});

/// The critical path as consecutive pieces.
#[derive(Serialize)]
struct Path {
    from: u64,
    #[serde(flatten)]
    pieces: Pieces,
    /// The kinds of use of the path's time, by program: the name, the time in nanoseconds, the number of stays on the
    /// path, and the place in `states` of each.
    shares: Vec<(String, u64, u64, usize)>,
    owners: Vec<Owner>,
    /// Whether the path is shown by step, because that says more than by program.
    by_step: bool,
    /// The kinds of waits on the critical path, the longest first.
    waits: Vec<Wait>,
}

pub fn document(
    recording: &Recording,
    file: &str,
    path: Option<&CriticalPath>,
    segments: &Segments,
    stacks: Option<&Stacks>,
) -> Document {
    let analysis = &recording.analysis;
    let mut strings = Strings::new(TEXTS);
    let zero = analysis.meta.start;
    let mut processes = Processes::default();
    let mut threads = Threads::default();
    let mut execs = Execs::default();
    let steps = Chosen::new(recording);
    let everything: Vec<ProcessIx> = analysis.process_ids().collect();
    let ask = Ask::default();
    let view = View::new(recording, &everything, file, &ask);
    let facts = path.and_then(|path| Facts::new(recording, path));
    let advised = path.map(|path| advise_by(&view, path, facts.as_ref()));
    let advised = advised.unwrap_or_default();
    let needs = facts.as_ref().map(needs).unwrap_or_default();
    let changes = advised.to_change();
    let shown = advised.to_change().count();
    let containers = query::container_names(analysis);
    let digits = Digits::of(analysis);
    texts(analysis, &mut strings);
    for ix in &everything {
        let process = analysis.process(*ix);
        let around = Around {
            step: steps.row_of(analysis, *ix),
            container: containers[*ix].as_deref(),
            digits,
        };
        processes.push(analysis, process, around, &mut strings);
        let of = process.threads.iter().filter(|_| !alone(analysis, process));
        for thread in of.map(|ix| analysis.thread(*ix)) {
            threads.push(zero, thread, digits, &mut strings);
        }
        for exec in &process.execs {
            execs.push(process, exec, digits, &mut strings);
        }
    }
    since_process(&mut execs, &processes);
    differences(&mut processes.pid);
    differences(&mut processes.start);
    differences(&mut processes.label);
    differences(processes.argv.iter_mut().flatten());
    // Before the failures: this finds the verdicts on the steps together with the steps' times.
    let mut step_columns = steps.columns(analysis, path, &needs, &mut strings);
    let failures = Failures::new(recording, &everything, Some(&steps.judged));
    steps.keep_failures_that_count(&mut step_columns, &failures);
    Document {
        version: 1,
        trace: Trace::new(analysis, &recording.imports, file),
        totals: Totals::new(&analysis.totals),
        concurrency: analysis.concurrency.times.clone(),
        concurrency_unknown: analysis.concurrency.unknown,
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
        rounded: digits.rounds(),
        processes,
        threads,
        execs,
        path: path.map(|path| columns_of(analysis, &steps.judged.steps, path)),
        path_title: path::title(analysis),
        steps: step_columns,
        untold: steps.untold(),
        unplaced_failed: recording.imports.unplaced().failed,
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

/// The numbers of the texts of all functions. `of` returns one of a function's names.
fn names(stacks: &Stacks, strings: &mut Strings, of: impl Fn(&Function) -> &String) -> Vec<u32> {
    let texts = stacks.functions.iter().map(of);
    texts.map(|text| strings.add(text.clone())).collect()
}

fn difference(time: u64, before: u64) -> i64 {
    time.cast_signed().wrapping_sub(before.cast_signed())
}

/// Whether a process has only one thread, so that the thread's figures are the process's.
fn alone(analysis: &Analysis, process: &Process) -> bool {
    let [only] = process.threads.as_slice() else {
        return false;
    };
    let same = |thread: &Thread| {
        (thread.tid.0, thread.start, thread.end) == (process.pid.0, process.start, process.end)
            && thread.comm == process.comm
            && thread.times == process.times
    };
    same(analysis.thread(*only))
}

fn argv(argv: &Argv, strings: &mut Strings) -> Option<i64> {
    argv.full_len?;
    let mut text = escape::quoted(argv.args());
    if argv.truncated() {
        text.push('…');
    }
    Some(strings.add(text).into())
}

fn exec_label(exec: &ExecSpan, strings: &mut Strings) -> i64 {
    let label = command_line::label_of(&exec.argv, &exec.comm, false);
    strings.add(label).into()
}

/// Adds the labels, then the arguments of all processes: similar texts beside each other take less room.
fn texts(analysis: &Analysis, strings: &mut Strings) {
    for process in &analysis.processes {
        strings.add(label::label(process));
        for exec in &process.execs {
            exec_label(exec, strings);
        }
    }
    for process in &analysis.processes {
        argv(&process.argv, strings);
        for exec in &process.execs {
            argv(&exec.argv, strings);
        }
    }
}

fn parent_pid(analysis: &Analysis, process: &Process) -> Option<Tgid> {
    process.parent.map(|ix| analysis.process(ix).pid)
}

/// Replaces the numbers of programs' texts by their distances from the numbers of their processes' texts.
fn since_process(execs: &mut Execs, processes: &Processes) {
    let mut rows = execs.label.iter_mut().zip(&mut execs.argv);
    let texts = processes.label.iter().zip(&processes.argv);
    for (count, (label, argv)) in processes.execs.iter().zip(texts) {
        for (exec_label, exec_argv) in rows.by_ref().take(*count) {
            *exec_label -= label;
            if let Some(exec_argv) = exec_argv {
                *exec_argv -= argv.unwrap_or(0);
            }
        }
    }
}

/// A length of time with its sign, rounded to the precision of the page.
fn rounded(length: i64, digits: Digits) -> i64 {
    let ns = digits.length(length.unsigned_abs()).cast_signed();
    if length < 0 {
        ns.wrapping_neg()
    } else {
        ns
    }
}

fn columns_of(analysis: &Analysis, steps: &StepList, path: &CriticalPath) -> Path {
    let groups = path::groups(analysis);
    let (shares, parts) = path::with_parts(analysis, &groups, path);
    let places: BTreeMap<Part, u32> = shares.iter().map(|share| share.part).zip(0..).collect();
    let share = |part: &Part| places.get(part).copied().unwrap_or(0);
    let by_steps = PathBySteps::new(analysis, &groups, steps, path);
    let segments = by_steps.segments.iter().zip(&by_steps.part_of);
    let all = segments.zip(&by_steps.share_of);
    let all = all.map(|((segment, part), owner)| PathPiece {
        thread: segment.thread.0,
        length: segment.length(),
        share: parts.get(*part).map_or(0, share),
        owner: u32::try_from(*owner).unwrap_or(0),
        then: path_then(segment.then),
        inferred: segment.inferred || segment.then_inferred,
    });
    let mut pieces = Pieces::default();
    let all = merged(all, by_steps.segments.len(), path.length());
    all.iter().for_each(|piece| pieces.push(piece));
    let shares = shares.into_iter();
    let shares = shares.map(|share| {
        (
            share.name,
            share.time,
            share.count,
            kinds::state(share.part.kind),
        )
    });
    Path {
        from: path.from.since(analysis.meta.start),
        pieces,
        shares: shares.collect(),
        owners: by_steps.shares.iter().map(Owner::new).collect(),
        by_step: by_steps.says_more(),
        waits: waits(&by_steps.shares),
    }
}

/// Sums up times by kind to times by state.
fn states(spent: &ByKind) -> StateTimes {
    let mut times = [0u64; 5];
    for kind in Kind::ALL {
        if let Some(time) = times.get_mut(kinds::state(kind)) {
            *time = time.saturating_add(spent.of(kind));
        }
    }
    times
}

/// The time off CPU on the critical path by kind. The kind with the longest time is first.
fn waits(owners: &[StepShare]) -> Vec<Wait> {
    let wait = |kind: Kind| {
        let times = owners.iter().map(|owner| owner.spent.of(kind));
        let sum = times.clone().fold(0u64, u64::saturating_add);
        let (owner, _) = (0..)
            .zip(times)
            .max_by_key(|(at, ns)| (*ns, Reverse(*at)))?;
        let wait = (kinds::title(kind), kinds::state(kind), sum, owner);
        (sum > 0).then(|| Wait::new(&wait))
    };
    let off_cpu = Kind::ALL.into_iter().filter(|kind| *kind != Kind::OnCpu);
    let mut waits: Vec<Wait> = off_cpu.filter_map(wait).collect();
    waits.sort_by_key(|wait| Reverse(wait.time));
    waits
}

/// A segment of the path in the page.
#[derive(Clone, Copy, Debug, Default)]
struct PathPiece {
    thread: u32,
    length: u64,
    share: u32,
    owner: u32,
    then: u8,
    inferred: bool,
}

/// The pieces of the critical path for the page. If there are too many, consecutive ones are merged until they are long
/// enough; a merged piece has the thread, the share and the owner of its longest part. The shares' times stay exact.
fn merged(all: impl Iterator<Item = PathPiece>, count: usize, whole: u64) -> Vec<PathPiece> {
    if count <= PIECES {
        return all.collect();
    }
    let grain = whole / (PIECES as u64 / 2);
    let mut pieces: Vec<PathPiece> = Vec::with_capacity(PIECES);
    // The merged segments, and the longest of them.
    let mut held = PathPiece::default();
    let mut longest = 0;
    let flush = |held: &mut PathPiece, longest: &mut u64, pieces: &mut Vec<PathPiece>| {
        pieces.extend((held.length > 0).then_some(*held));
        (*held, *longest) = (PathPiece::default(), 0);
    };
    for piece in all {
        if piece.length >= grain {
            flush(&mut held, &mut longest, &mut pieces);
            pieces.push(piece);
            continue;
        }
        if piece.length > longest {
            longest = piece.length;
            (held.thread, held.share, held.owner) = (piece.thread, piece.share, piece.owner);
        }
        held.then = piece.then;
        held.inferred |= piece.inferred;
        held.length += piece.length;
        if held.length >= grain {
            flush(&mut held, &mut longest, &mut pieces);
        }
    }
    flush(&mut held, &mut longest, &mut pieces);
    pieces
}

fn path_then(then: Then) -> u8 {
    match then {
        Then::Same => 0,
        Then::Forked => 1,
        Then::Exited => 2,
        Then::Returned => 3,
        Then::Woke => 4,
        Then::Waited => 5,
        Then::Awaited => 6,
        Then::Slot => 7,
    }
}
