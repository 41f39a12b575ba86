//! Writes one recording as tables with a row for each fact, for SQL over a single build.

use std::io::{self, Write};

use tr_analyze::contention::Contention;
use tr_analyze::critical_path::{self, CriticalPath};
use tr_analyze::ending::WaitEnd;
use tr_analyze::model::{Analysis, ProcessIx, ThreadIx};
use tr_analyze::timeline::{Actor, Bucket, Stretch, Wait as WaitState};
use tr_format::event::{Ktime, Point, Reason};
use tr_insight::processes::{label, who};
use tr_insight::steps::result::StepResult;
use tr_insight::steps::times::AllTimes;
use tr_insight::verdicts::StepVerdicts;
use tr_insight::views::query::containers;
use tr_insight::Recording;
use tr_programs::steps::StepKind;
use tr_text::escape;

use super::parquet::Writer;
use super::reduce::{ended, is_incomplete};
use super::table::{Column, Row};
use super::trace_rows::{
    Exec, Mark, OnCpu, Other, PathPart, Process, Recording as RecordingRow, Step, Thread, Wait,
};

/// The number of rows that are written to a Parquet file as one group.
const GROUP: usize = 50_000;

/// The names of the tables that a recording is exported to. Each is also the name of a file.
pub fn names() -> impl Iterator<Item = &'static str> {
    columns().into_iter().map(|(name, _)| name)
}

/// The names and the columns of all tables that a recording is exported to.
pub fn columns() -> Vec<(&'static str, &'static [Column])> {
    fn of<R: Row>(name: &'static str) -> (&'static str, &'static [Column]) {
        (name, R::COLUMNS)
    }
    vec![
        of::<RecordingRow>(RecordingRow::NAME),
        of::<Process>(Process::NAME),
        of::<Exec>(Exec::NAME),
        of::<Thread>(Thread::NAME),
        of::<OnCpu>(OnCpu::NAME),
        of::<Wait>(Wait::NAME),
        of::<PathPart>(PathPart::NAME),
        of::<Step>(Step::NAME),
        of::<Step>(TESTS),
        of::<Mark>(Mark::NAME),
        of::<Other>(Other::NAME),
    ]
}

/// The name of the table that has the steps which are tests.
const TESTS: &str = "tests";

/// A recording, with the analyses by which its facts are written as tables.
pub struct Tables<'a> {
    recording: &'a Recording,
    analysis: &'a Analysis,
    path: Option<CriticalPath>,
    steps: StepVerdicts<'a>,
}

impl<'a> Tables<'a> {
    /// Prepares a recording for export as tables. The analysis must have a timeline.
    pub fn new(recording: &'a Recording) -> Tables<'a> {
        Tables {
            recording,
            analysis: &recording.analysis,
            path: critical_path::of(&recording.analysis).ok(),
            steps: StepVerdicts::new(recording),
        }
    }

    /// Writes the recording's table with this name to a Parquet file.
    ///
    /// # Errors
    /// The file cannot be written, or there is no table of this name.
    pub fn write(&self, name: &str, to: &mut dyn Write) -> io::Result<()> {
        match name {
            RecordingRow::NAME => write(name, [self.recording()], to),
            Process::NAME => write(name, self.processes(), to),
            Exec::NAME => write(name, self.execs(), to),
            Thread::NAME => write(name, self.threads(), to),
            OnCpu::NAME => write(name, self.on_cpu(), to),
            Wait::NAME => write(name, self.waits(), to),
            PathPart::NAME => write(name, self.path_parts(), to),
            Step::NAME => write(name, self.steps(|_| true), to),
            TESTS => write(name, self.steps(|kind| kind == StepKind::Test), to),
            Mark::NAME => write(name, self.marks(), to),
            Other::NAME => write(name, self.others(), to),
            _ => Err(io::Error::other(format!("no table {name}"))),
        }
    }

    /// Converts a time of the recording to ns since its beginning.
    fn since(&self, time: Ktime) -> u64 {
        time.since(self.analysis.start)
    }

    fn recording(&self) -> RecordingRow {
        let (analysis, meta) = (self.analysis, &self.analysis.meta);
        let summary = analysis.summary.as_ref();
        let (exit_code, exit_signal) = ended(summary.and_then(|summary| summary.status));
        RecordingRow {
            command: who::recorded(meta),
            host: escape::raw(meta.host.as_bytes()),
            kernel: escape::raw(meta.kernel.as_bytes()),
            method: escape::raw(meta.recorded_by().as_bytes()),
            cpus: analysis.cpus_of_build(),
            start_unix_ns: meta.start_unix(),
            wall_ns: analysis.wall(),
            exit_code,
            exit_signal,
            incomplete: is_incomplete(analysis),
        }
    }

    fn processes(&self) -> impl Iterator<Item = Process> + '_ {
        let analysis = self.analysis;
        let on_path = self.path.as_ref().map(|path| path.by_process(analysis));
        let containers = containers(analysis);
        analysis.process_ids().map(move |ix| {
            let process = analysis.process(ix);
            let (exit_code, exit_signal) = ended(process.status);
            let times = &process.times;
            let leader = process.threads.first();
            Process {
                process: number(ix),
                parent: process.parent.map(number),
                pid: process.pid.0.into(),
                ns_pid: process.ns_pid.0.into(),
                program: label::program(process).to_string(),
                label: label::whole(process),
                command: escape::quoted(process.argv.args()),
                from_ns: self.since(process.start),
                to_ns: self.since(process.end),
                started_before: process.started_before,
                alive: process.alive,
                exit_code,
                exit_signal,
                on_cpu_ns: times.on_cpu_known(),
                run_queue_ns: times.run_queue_known(),
                sleep_ns: times.sleep_known(),
                blocked_ns: times.blocked_known(),
                unknown_ns: times.unknown,
                path_ns: on_path.as_ref().map(|sums| sums[ix]),
                max_rss_bytes: process.resources.max_rss,
                container: containers[ix].map(label::container),
                step: leader.and_then(|leader| self.step_at(*leader, process.start)),
            }
        })
    }

    fn step_at(&self, thread: ThreadIx, time: Ktime) -> Option<u64> {
        self.steps.steps.at(thread, time).map(|step| step as u64)
    }

    fn execs(&self) -> impl Iterator<Item = Exec> + '_ {
        self.analysis.process_ids().flat_map(move |ix| {
            let execs = self.analysis.process(ix).execs.iter();
            execs.map(move |exec| Exec {
                process: number(ix),
                from_ns: self.since(exec.start),
                to_ns: self.since(exec.end),
                file: escape::raw(&exec.filename),
                command: escape::quoted(exec.argv.args()),
                directory: (!exec.directory.is_empty()).then(|| escape::raw(&exec.directory)),
                on_cpu_ns: exec.times.on_cpu_known(),
                run_queue_ns: exec.times.run_queue_known(),
            })
        })
    }

    fn threads(&self) -> impl Iterator<Item = Thread> + '_ {
        self.analysis.thread_ids().map(move |ix| {
            let thread = self.analysis.thread(ix);
            let times = &thread.times;
            Thread {
                thread: ix.0.into(),
                process: number(thread.process),
                tid: thread.tid.0.into(),
                name: label::comm(thread),
                from_ns: self.since(thread.start),
                to_ns: self.since(thread.end),
                on_cpu_ns: times.on_cpu_known(),
                run_queue_ns: times.run_queue_known(),
                sleep_ns: times.sleep_known(),
                blocked_ns: times.blocked_known(),
                unknown_ns: times.unknown,
                migrations: thread.migrations,
            }
        })
    }

    /// The stretches (times in one state) of all threads' timelines, each with its thread.
    fn stretches(&self) -> impl Iterator<Item = (ThreadIx, Stretch)> + '_ {
        let timeline = self.analysis.timeline.as_ref();
        self.analysis.thread_ids().flat_map(move |thread| {
            let stretches = timeline.map(|timeline| timeline.of(thread));
            let stretches = stretches.into_iter().flatten();
            stretches
                .filter(|stretch| stretch.from < stretch.to)
                .map(move |stretch| (thread, stretch))
        })
    }

    fn on_cpu(&self) -> impl Iterator<Item = OnCpu> + '_ {
        self.stretches().filter_map(move |(thread, stretch)| {
            let Bucket::OnCpu(cpu) = stretch.doing else {
                return None;
            };
            Some(OnCpu {
                thread: thread.0.into(),
                process: number(self.analysis.thread(thread).process),
                cpu: cpu.map(|cpu| cpu.0.into()),
                from_ns: self.since(stretch.from),
                to_ns: self.since(stretch.to),
            })
        })
    }

    fn waits(&self) -> impl Iterator<Item = Wait> + '_ {
        self.stretches().filter_map(move |(thread, stretch)| {
            let state = match stretch.doing {
                Bucket::OnCpu(_) => return None,
                Bucket::RunQueue { preempted: false } => "run_queue",
                Bucket::RunQueue { preempted: true } => "preempted",
                Bucket::Wait(WaitState::Sleep) => "sleep",
                Bucket::Wait(WaitState::Stopped) => "stopped",
                Bucket::Wait(WaitState::Io) => "disk",
                Bucket::Wait(WaitState::Vfork) => "vfork",
                Bucket::Wait(WaitState::Blocked) => "blocked",
                Bucket::Wait(WaitState::Unknown) | Bucket::Unknown => "unknown",
            };
            let is_wait = matches!(stretch.doing, Bucket::Wait(_));
            let end = is_wait.then(|| self.analysis.wait_end(thread, &stretch));
            let by = stretch.actor;
            let by_thread = match by {
                Actor::Thread(by) => Some(by),
                _ => None,
            };
            let is_task = matches!(by, Actor::Thread(_) | Actor::Outside(_));
            Some(Wait {
                thread: thread.0.into(),
                process: number(self.analysis.thread(thread).process),
                from_ns: self.since(stretch.from),
                to_ns: self.since(stretch.to),
                ns: stretch.length(),
                state: state.to_owned(),
                call: (stretch.reason != Reason::Unknown).then(|| stretch.reason.name().to_owned()),
                ended_by: end.map(|end| ender(end).to_owned()),
                by_thread: by_thread.map(|by| by.0.into()),
                by_process: by_thread.map(|by| number(self.analysis.thread(by).process)),
                by_name: is_task.then(|| who::name(self.analysis, by)),
                cpu: stretch.cpu.filter(|_| !is_wait).map(|cpu| cpu.0.into()),
            })
        })
    }

    fn path_parts(&self) -> impl Iterator<Item = PathPart> + '_ {
        let segments = self.path.iter().flat_map(|path| &path.segments);
        segments.map(move |segment| PathPart {
            thread: segment.thread.0.into(),
            process: number(self.analysis.thread(segment.thread).process),
            step: self.step_at(segment.thread, segment.from),
            kind: segment.kind.name().to_owned(),
            from_ns: self.since(segment.from),
            to_ns: self.since(segment.to),
            ns: segment.length(),
            inferred: segment.inferred,
        })
    }

    fn steps(&self, is_one: fn(StepKind) -> bool) -> impl Iterator<Item = Step> + '_ {
        let segments = self.path.as_ref().map_or(&[][..], |path| &path.segments);
        let steps = &self.steps.steps;
        let times = AllTimes::without_parts(self.analysis, steps, segments);
        let verdicts = self.steps.verdicts();
        let all = steps.list().iter().zip(times.steps).enumerate();
        let all = all.filter(move |(_, (step, _))| is_one(step.kind));
        all.map(move |(at, (step, times))| Step {
            step: at as u64,
            parent: step.parent.map(|parent| parent as u64),
            depth: step.depth as u64,
            kind: step.kind.name().to_owned(),
            name: step.name.whole().to_owned(),
            process: step.process.map(number),
            from_ns: self.since(step.from),
            to_ns: self.since(step.to),
            ns: step.wall(),
            failed: step.failed(),
            result: step.result.clone().map(StepResult::into_word),
            on_cpu_ns: times.times.as_ref().and_then(|times| times.on_cpu_known()),
            run_queue_ns: times
                .times
                .as_ref()
                .and_then(|times| times.run_queue_known()),
            path_ns: times.on_path,
            processes: times.processes,
            place_error_ns: step.place_error,
            verdict: verdicts.of(at).map(|verdict| verdict.name()),
            verdict_ns: verdicts.of(at).map(|verdict| verdict.ns),
        })
    }

    fn marks(&self) -> impl Iterator<Item = Mark> + '_ {
        let given = |text: &[u8]| (!text.is_empty()).then(|| escape::raw(text));
        self.recording
            .analysis
            .marks
            .iter()
            .map(move |(time, mark)| Mark {
                at_ns: self.since(*time),
                name: escape::raw(&mark.name),
                kind: given(&mark.kind),
                point: match mark.point {
                    Point::Moment => "moment",
                    Point::Begin => "begin",
                    Point::End => "end",
                }
                .to_owned(),
                result: given(&mark.result),
                pid: mark.pid.map(|pid| pid.0.into()),
            })
    }

    fn others(&self) -> impl Iterator<Item = Other> {
        let names = Contention::of_all(self.analysis).map(|(_, names)| names);
        names.into_iter().flatten().map(|(occupant, ns)| Other {
            name: who::occupant(occupant),
            ns,
        })
    }
}

/// The number that stands for a process in all tables of the exported recording.
fn number(ix: ProcessIx) -> u64 {
    ix.0.into()
}

/// The word in the exported tables for the event that ended a wait, such as `timer` or `child`.
fn ender(end: WaitEnd) -> &'static str {
    match end {
        WaitEnd::Timer { .. } => "timer",
        WaitEnd::Packet => "packet",
        WaitEnd::Child(_) => "child",
        WaitEnd::Task(_) => "task",
        WaitEnd::BlockIo => "block_io",
        WaitEnd::Signal(_) => "signal",
        WaitEnd::Unknown => "unknown",
    }
}

/// Writes the rows of a table to a Parquet file, in groups, so that only one group of rows is in memory at once.
fn write<R: Row>(
    name: &str,
    rows: impl IntoIterator<Item = R>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut writer = Writer::new(to, R::COLUMNS)?;
    let mut group = Vec::new();
    for row in rows {
        group.push(row.values());
        if group.len() == GROUP {
            writer.group(&group)?;
            group.clear();
        }
    }
    if !group.is_empty() {
        writer.group(&group)?;
    }
    writer.finish(name, &super::facts(name))
}
