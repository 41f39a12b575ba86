//! Reduces a recording to the figures by which builds are compared.

use std::ops::Range;

use tr_analyze::arena::Arena;
use tr_analyze::critical_path::{self, CriticalPath, Segment};
use tr_analyze::model::{Analysis, Basis, Process, ProcessIx, Times};
use tr_format::event::Ktime;

use super::parts::Parts;
use super::profile::Profile;
use super::spread;
use tr_insight::path::kinds;
use tr_insight::processes::exit::is_unfinished;
use tr_insight::processes::label::Identity;
use tr_insight::processes::normal;
use tr_insight::processes::normal::{pids, Paths};
use tr_insight::processes::{label, who};
use tr_insight::recordings::warnings::is_cut;
use tr_insight::resources::demands;
use tr_insight::resources::demands::Demands;
use tr_insight::resources::loads::Loads;
use tr_insight::resources::size::{DiskNeed, MemoryNeed};
use tr_insight::verdicts::step_sums;
use tr_insight::verdicts::step_sums::StepSums;
use tr_insight::Recording;
use tr_programs::program_name::ProgramName;
use tr_text::escape;
use tr_text::named;
use tr_text::phrase::Phrase;

named! {
    /// A figure by which builds are compared, of a whole recording or of one process in it.
    pub enum Figure {
        Wall = "wall", "wall time";
        OnCpu = "on-cpu", "on a CPU";
        RunQueue = "run-queue", tr_text::words::RUN_QUEUE_WAIT;
        Blocked = "blocked", tr_text::words::BLOCKED;
        Sleep = "sleep", tr_text::words::SLEEP;
        /// The largest resident set in bytes of the process; for a whole recording, that of the process that needs most
        /// memory.
        Rss = "rss", "largest process's memory";
        CriticalPath = "critical-path", "critical path";
        Unknown = "unknown", tr_text::words::UNKNOWN;
    }
}

impl Figure {
    /// The figures of a whole build whose growth the gate can limit: the values of `--fail-on`.
    pub const GATES: [Figure; 4] = [Figure::Wall, Figure::OnCpu, Figure::RunQueue, Figure::Rss];
}

/// The values of all figures (times and memory) of a recording or of one process in it; `None` for a value that is not
/// known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures([Option<u64>; Figure::ALL.len()]);

impl Figures {
    /// The value of one figure of the recording or process, in ns or bytes; `None` if it is not known.
    pub fn get(&self, figure: Figure) -> Option<u64> {
        self.0.get(figure as usize).copied().flatten()
    }

    /// The CPU time in ns of the recording or process, if its unknown time is at most a twentieth of this CPU time.
    /// With more unknown time, the known CPU time says too little.
    pub(super) fn sure_on_cpu(&self) -> Option<u64> {
        let unknown = self.get(Figure::Unknown).unwrap_or(0);
        let on_cpu = self.get(Figure::OnCpu);
        on_cpu.filter(|on_cpu| unknown.saturating_mul(20) <= *on_cpu)
    }

    fn set(&mut self, figure: Figure, value: Option<u64>) {
        if let Some(place) = self.0.get_mut(figure as usize) {
            *place = value;
        }
    }

    /// Makes the value of a figure unknown, because it must not be compared.
    pub(super) fn forget(&mut self, figure: Figure) {
        self.set(figure, None);
    }

    /// Makes the figures of a recording or of a process. `wall` and `path` (the time on the critical path) are in ns,
    /// `times` are the times in the states of threads, and `rss` is the largest resident set in bytes.
    pub(super) fn new(wall: u64, times: &Times, rss: Option<u64>, path: Option<u64>) -> Figures {
        let mut figures = Figures::default();
        figures.set(Figure::Wall, Some(wall));
        figures.set(Figure::OnCpu, times.on_cpu_known());
        figures.set(Figure::RunQueue, times.run_queue_known());
        figures.set(Figure::Blocked, times.blocked_known());
        figures.set(Figure::Sleep, times.sleep_known());
        figures.set(Figure::Rss, rss);
        figures.set(Figure::CriticalPath, path);
        figures.set(Figure::Unknown, Some(times.unknown));
        figures
    }
}

/// The number of keys by which a process is matched with processes of other runs. They are hashes of the arguments
/// with whole paths, of the arguments with two parts of each path, of the arguments with file names only, and of the
/// facts that the label shows. This order is the layout of [`Proc::keys`].
pub const MATCH_KEYS: usize = 4;

/// A process in one of the compared runs, with its keys for matching and its figures.
#[derive(Clone, Debug)]
pub struct Proc {
    /// The index of this process's parent in the list of the run's processes. A parent comes before its children.
    pub parent: Option<usize>,
    /// The hashes by which this process is matched with processes of other runs, the most specific one first. Two
    /// processes can match if their hashes with the same index are equal.
    pub keys: [u64; MATCH_KEYS],
    pub program: ProgramName,
    pub label: Phrase,
    pub figures: Figures,
}

/// The figures of one recorded build that comparisons need. They take little memory, and the events are not kept.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The file name of the run's recording.
    pub file: String,
    /// The URL of the run's HTML report, or of its recording, relative to the page of the comparison; `None` if the
    /// address of neither is known.
    pub link: Option<String>,
    /// The command line of the recorded COMMAND; empty without a COMMAND.
    pub command: String,
    pub status: Option<u32>,
    pub cpus: usize,
    /// The number of CPUs that the build was allowed to use, if it is less than that of the machine (`cpus`).
    pub allowed: Option<u64>,
    pub kernel: String,
    /// The model of the machine's CPUs; empty if the recording does not have it.
    pub cpu: String,
    pub method: String,
    /// The source of the run's times: scheduling events, or the kernel's totals of each task.
    pub basis: Basis,
    /// The reason why the run has no critical path; `None` if it has one.
    pub no_path: Option<String>,
    pub cut: bool,
    /// Whether the recording ended while COMMAND was still running.
    pub unfinished: bool,
    pub lost: bool,
    pub figures: Figures,
    pub processes: Vec<Proc>,
    /// The index, in the list of the run's processes, of the process that ran COMMAND; `None` if no process ran it.
    pub root: Option<usize>,
    pub steps: StepSums,
    pub path: Vec<Bar>,
    /// The demands of the run on disks, the network and memory, such as bytes read.
    pub demands: Demands,
    /// The size of a CI runner (memory, CPUs, disk) that would suffice for the run.
    pub size: RunSize,
    /// The run's wall time divided into parts along the critical path; `None` without scheduling events or a critical
    /// path.
    pub parts: Option<Parts>,
    /// The load of the machine during the run, such as the CPU time of other tasks.
    pub machine: Loads,
    /// The tree of functions from stacks that were sampled on a CPU; `None` if they were not recorded.
    pub profile: Option<Profile>,
    /// The run's processes as bars over time, in the order of their beginning. Processes that mostly waited for their
    /// children are left out.
    pub timeline: Vec<Bar>,
}

/// The size of a CI runner that would suffice for a run. What is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSize {
    /// An upper bound in bytes of the memory that all processes of the run used at once.
    pub memory: Option<u64>,
    /// The smallest number of CPUs that the run would not have exceeded for 90 % of its time if it had run without
    /// other tasks.
    pub cpus: Option<u64>,
    /// The disk space in bytes that the run used at most: the free space at its start minus the least free space during
    /// it.
    pub disk: Option<u64>,
}

impl RunSize {
    fn of(analysis: &Analysis, parts: Option<&Parts>) -> RunSize {
        RunSize {
            memory: MemoryNeed::of(analysis).and_then(|memory| memory.at_most),
            cpus: parts.and_then(|parts| parts.cpus),
            disk: DiskNeed::of(analysis).map(|disk| disk.used_peak),
        }
    }
}

/// A bar on the timeline of a run: a process, or a part of the critical path that lies in one process. Times are in ns
/// since the start of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    pub from: u64,
    pub to: u64,
    pub program: ProgramName,
    /// The parts of the label of the process that this bar of the timeline is about ([`label::parts`]).
    pub label: Vec<String>,
    /// The time in ns in each of the states [`tr_text::words::STATES`]. For a process, this is the sum over all its
    /// threads; for a part of the critical path, the time of this part.
    pub states: [u64; 5],
}

impl Bar {
    fn new(process: &Process, span: Range<u64>, states: [u64; 5]) -> Bar {
        Bar {
            from: span.start,
            to: span.end,
            program: label::program(process),
            label: label::parts(process),
            states,
        }
    }
}

impl Run {
    /// Reduces a recording to the figures by which builds are compared. The analysis must have its timeline if the
    /// critical path is to be known.
    pub fn new(file: &str, recording: &Recording) -> Run {
        let analysis = &recording.analysis;
        let meta = &analysis.meta;
        let path = critical_path::of(analysis).ok();
        let on_path = path.as_ref().map(|path| path.by_process(analysis));
        let cwd = String::from_utf8_lossy(&meta.cwd).into_owned();
        let order = parents_first(analysis);
        let mut place: Arena<ProcessIx, _> = analysis.process_ids().map(|_| None).collect();
        let mut processes: Vec<Proc> = Vec::new();
        for ix in order {
            let process = analysis.process(ix);
            let path = on_path.as_ref().map(|path| path[ix]);
            place[ix] = Some(processes.len());
            processes.push(Proc {
                parent: process.parent.and_then(|parent| place[parent]),
                keys: keys(process, &cwd, &pids(analysis, process)),
                program: label::program(process),
                label: label::phrase(process),
                figures: Figures::new(
                    process.wall(),
                    &process.times,
                    process.resources.max_rss,
                    path,
                ),
            });
        }
        let root = critical_path::root(analysis).ok();
        let rss = analysis
            .processes
            .iter()
            .filter_map(|p| p.resources.max_rss)
            .max();
        let wall = analysis.wall();
        let parts = Parts::of(analysis, path.as_ref());
        Run {
            file: escape::raw(file.as_bytes()),
            link: None,
            command: escape::quoted(meta.command.iter().map(Vec::as_slice)),
            status: analysis.summary.as_ref().and_then(|s| s.status),
            cpus: meta.cpus.len(),
            allowed: analysis.machine.limited_to,
            kernel: escape::raw(meta.kernel.as_bytes()),
            cpu: who::cpu(meta).unwrap_or_default(),
            method: escape::raw(meta.recorded_by().as_bytes()),
            basis: analysis.basis(),
            no_path: path.is_none().then(|| {
                let left_out = recording.budget.left_out.clone();
                left_out.unwrap_or_else(|| "no critical path is known".into())
            }),
            cut: is_cut(analysis) || analysis.quality.truncated.is_some(),
            unfinished: is_unfinished(analysis),
            lost: !analysis.quality.lost.is_empty(),
            figures: Figures::new(wall, &analysis.totals.times, rss, None),
            processes,
            root: root.and_then(|root| place[root]),
            steps: step_sums::sums(recording, path.as_ref().map_or(&[], |path| &path.segments)),
            path: path
                .as_ref()
                .map_or(Vec::new(), |path| bars(analysis, path)),
            demands: demands::of(analysis, path.as_ref()),
            size: RunSize::of(analysis, parts.as_ref()),
            parts,
            machine: Loads::of(analysis),
            profile: Profile::of(analysis),
            timeline: timeline(analysis),
        }
    }
}

/// Picks one run of the base and one new run for the pictures: those whose wall times are nearest to the medians of
/// their sides. Several runs can be equally near, as both of two runs are. Then the pair is taken whose difference has
/// the sign of the difference of the medians and is nearest to that difference.
pub(super) fn middle<'a>(base: &'a [Run], new: &'a [Run]) -> Option<(&'a Run, &'a Run)> {
    let wall = |run: &Run| run.figures.get(Figure::Wall).unwrap_or(0);
    let median = |runs: &[Run]| {
        let walls: Vec<u64> = runs
            .iter()
            .filter_map(|run| run.figures.get(Figure::Wall))
            .collect();
        spread::median(&walls).unwrap_or(0)
    };
    let (base_median, new_median) = (median(base), median(new));
    let nearest = |runs: &'a [Run], median: u64| -> Vec<&'a Run> {
        let distance = |run: &Run| wall(run).abs_diff(median);
        let least = runs.iter().map(distance).min();
        // The median of two runs is rounded down, so one run seems to be 1 ns nearer to it. Both runs count as nearest.
        let is_near = |run: &&Run| least.is_some_and(|least| distance(run) <= least + 1);
        runs.iter().filter(is_near).collect()
    };
    let between = |base: u64, new: u64| i128::from(new) - i128::from(base);
    let wanted = between(base_median, new_median);
    let news = nearest(new, new_median);
    let bases = nearest(base, base_median);
    let pairs = bases
        .iter()
        .flat_map(|base| news.iter().map(move |new| (*base, *new)));
    pairs.min_by_key(|(base, new)| {
        let difference = between(wall(base), wall(new));
        let has_other_sign = difference.signum() != wanted.signum();
        (has_other_sign, (difference - wanted).abs())
    })
}

/// A run's processes as bars over time. A process is left out if it mostly waited for others, for example make or a
/// compiler's driver: it has children, and its CPU time is less than a tenth of its wall time.
fn timeline(analysis: &Analysis) -> Vec<Bar> {
    let since = |time: Ktime| time.since(analysis.start);
    let worked = analysis.processes.iter().filter(|process| {
        let wall = process.wall();
        let on_cpu = process.times.on_cpu_known().unwrap_or(wall);
        process.children.is_empty() || on_cpu.saturating_mul(10) >= wall
    });
    let bars = worked.map(|process| {
        let span = since(process.start)..since(process.end);
        Bar::new(process, span, states(process))
    });
    let mut bars: Vec<Bar> = bars.collect();
    bars.sort_by_key(|bar| (bar.from, bar.to));
    bars
}

fn bars(analysis: &Analysis, path: &CriticalPath) -> Vec<Bar> {
    let process = |segment: &Segment| analysis.thread(segment.thread).process;
    let since = |time: Ktime| time.since(analysis.start);
    let stretches = path.segments.chunk_by(|a, b| process(a) == process(b));
    let bars = stretches.filter_map(|segments| {
        let (first, last) = (segments.first()?, segments.last()?);
        let process = analysis.process(process(first));
        let span = since(first.from)..since(last.to);
        Some(Bar::new(process, span, states_of(segments)))
    });
    bars.collect()
}

fn states(process: &Process) -> [u64; 5] {
    let times = &process.times;
    let known = [
        times.on_cpu_known(),
        times.run_queue_known(),
        times.blocked_known(),
        times.sleep_known(),
        Some(times.unknown),
    ];
    known.map(Option::unwrap_or_default)
}

fn states_of(segments: &[Segment]) -> [u64; 5] {
    let mut times = [0u64; 5];
    for segment in segments {
        if let Some(time) = times.get_mut(kinds::state(segment.kind)) {
            *time = time.saturating_add(segment.length());
        }
    }
    times
}

fn parents_first(analysis: &Analysis) -> Vec<ProcessIx> {
    let roots = analysis.process_ids();
    let roots = roots.filter(|ix| analysis.process(*ix).parent.is_none());
    let mut order: Vec<ProcessIx> = roots.collect();
    let mut next = 0;
    while let Some(ix) = order.get(next) {
        next += 1;
        order.extend(&analysis.process(*ix).children);
    }
    order
}

fn keys(process: &Process, cwd: &str, pids: &[u32]) -> [u64; MATCH_KEYS] {
    let forked = process.execs.is_empty();
    let by_identity = normal::identity_key(&Identity::of(process), forked, cwd, pids);
    let by = |paths| {
        if process.argv.bytes.is_empty() {
            by_identity
        } else {
            normal::key(process.argv.args(), forked, cwd, pids, paths)
        }
    };
    [
        by(Paths::Whole),
        by(Paths::Two),
        by(Paths::Name),
        by_identity,
    ]
}

#[cfg(test)]
#[path = "tests/run.rs"]
pub(crate) mod tests;
