//! Computes the memory that processes used, and their waits for memory.

use std::cmp::Reverse;
use std::collections::HashMap;

use tr_analyze::memory::{killed, waits, MemoryKind};
use tr_analyze::model::{Analysis, Process, ThreadIx};
use tr_format::counters::{Counter, Counters};
use tr_format::event::Ktime;
use tr_format::meta::{Extra, Hardware, Metadata};

use crate::recordings::known::{major_faults, processes_of};

/// A build counts as short of memory if its threads entered direct reclaim at least this often. Pages of files were
/// then evicted and read again. A guess: a build with enough memory reclaims some pages, too.
const MANY_RECLAIMS: u64 = 100;

pub(crate) fn evicts(reclaims: u64) -> bool {
    reclaims >= MANY_RECLAIMS
}

/// Whether the build was so short of memory that pages of files were evicted. If so, a later page fault on such a page
/// reads the page from the file again.
pub fn reads_again(analysis: &Analysis) -> bool {
    let reclaims = waits(analysis).filter_map(|wait| wait.reclaims);
    evicts(reclaims.fold(0, u64::saturating_add))
}

/// The figures about memory of some threads and their processes, such as the largest resident set.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemorySum {
    /// The largest resident set of one of the processes in bytes; `None` if none of them has exited.
    pub peak: Option<u64>,
    pub major_faults: Option<u64>,
    /// The number of times that the threads entered direct reclaim of memory; `None` if the recording lacks this
    /// number.
    pub reclaims: Option<u64>,
    pub reclaimed: Option<u64>,
    pub swapped: Option<u64>,
    pub killed: Option<u64>,
}

impl MemorySum {
    pub fn is_empty(&self) -> bool {
        let figures = [
            self.peak,
            self.major_faults,
            self.reclaims,
            self.swapped,
            self.killed,
        ];
        figures.iter().all(|figure| figure.unwrap_or(0) == 0)
    }

    /// The time for which the threads waited for memory, in whole milliseconds.
    pub fn waited_ms(&self) -> u64 {
        let waits = [self.reclaimed, self.swapped];
        let waits = waits.into_iter().flatten();
        waits.fold(0, u64::saturating_add) / 1_000_000
    }

    /// The sum of memory figures for no processes: 0 for each figure that the recording has, and `None` for a figure
    /// that it lacks.
    fn of(analysis: &Analysis) -> MemorySum {
        let reclaim = analysis.meta.has(Extra::Memory).then_some(0);
        MemorySum {
            reclaims: reclaim,
            reclaimed: reclaim,
            killed: reclaim,
            swapped: analysis.memory.counts_swap.then_some(0),
            ..MemorySum::default()
        }
    }

    fn add(&mut self, kind: MemoryKind) {
        let add = |to: &mut Option<u64>, more| {
            *to = Some(to.unwrap_or(0).saturating_add(more));
        };
        match kind {
            MemoryKind::Reclaimed(count, ns) => {
                add(&mut self.reclaims, count);
                add(&mut self.reclaimed, ns);
            }
            MemoryKind::Swapped(ns) => add(&mut self.swapped, ns),
            MemoryKind::Killed(_) => add(&mut self.killed, 1),
        }
    }
}

pub fn facts(analysis: &Analysis) -> HashMap<ThreadIx, Vec<MemoryKind>> {
    let mut facts: HashMap<ThreadIx, Vec<MemoryKind>> = HashMap::new();
    for event in &analysis.memory.events {
        facts.entry(event.thread).or_default().push(event.kind);
    }
    facts
}

/// The resident memory of all recorded processes together in the analyzed span, in bytes, found from sampled readings
/// and from the largest resident set of each process.
pub struct Resident {
    /// The largest sampled resident memory in bytes of all processes together, between the first and the last sample of
    /// the span; `None` if there is no sample.
    read: Option<u64>,
    /// The largest resident set in bytes that one of the recorded processes had; 0 if none is known.
    peak: u64,
    /// The largest resident set in bytes of those processes that began in the analyzed span or were killed in it for
    /// lack of memory.
    inside: u64,
}

impl Resident {
    pub fn of(analysis: &Analysis) -> Resident {
        let values = samples(analysis)
            .enumerate()
            .flat_map(|(at, (_, reading))| {
                // The peak in the first sample may have occurred before the analyzed time, so this peak is left out.
                let peak = reading.get(Counter::ResidentPeak).filter(|_| at > 0);
                [reading.get(Counter::Resident), peak]
            });
        // A process that is older than the analyzed time may have had its peak before that time, so such processes are
        // left out. COMMAND is one of them: before its exec, COMMAND's process was a copy of the recorder, and kernels
        // before 6.16 count the recorder's memory as COMMAND's.
        let processes = || analysis.processes.iter();
        let inside = processes().filter(|process| !process.started_before);
        let inside = inside.filter_map(|process| process.resources.max_rss);
        let killed = killed(analysis).filter_map(|kill| kill.resident);
        Resident {
            read: values.flatten().max(),
            peak: processes()
                .filter_map(|process| process.resources.max_rss)
                .max()
                .unwrap_or(0),
            inside: inside.chain(killed).max().unwrap_or(0),
        }
    }

    /// The largest resident memory in bytes of all processes together, by the recorder's readings once a second. `None`
    /// if a single process had more memory than the largest reading, because then the readings missed a peak.
    pub fn whole(&self) -> Option<u64> {
        let most = self.peak.max(self.inside);
        self.read.filter(|read| *read > 0 && *read >= most)
    }

    /// A lower bound of the largest resident memory of all processes together, in bytes; `None` if the recorder has not
    /// read the memory of all processes.
    pub fn least(&self) -> Option<u64> {
        let least = self.read?.max(self.inside);
        Some(least).filter(|least| *least > 0)
    }
}

/// The process with the largest resident set, and the size of this set in bytes. If several sets are equally large, the
/// first process counts.
pub fn largest<'a>(processes: impl Iterator<Item = &'a Process>) -> Option<(u64, &'a Process)> {
    let known = processes
        .filter_map(|process| Some((process.resources.max_rss.filter(|rss| *rss > 0)?, process)));
    known.max_by_key(|(rss, process)| (*rss, Reverse((process.start, process.pid))))
}

/// Computes the figures about memory, as `sum` does, from the events of the recording.
pub(crate) fn totals(analysis: &Analysis, threads: &[ThreadIx]) -> MemorySum {
    sum(analysis, threads, &facts(analysis))
}

/// Computes the figures about memory for the given threads and their processes.
pub fn sum(
    analysis: &Analysis,
    threads: &[ThreadIx],
    facts: &HashMap<ThreadIx, Vec<MemoryKind>>,
) -> MemorySum {
    let mut sum = MemorySum::of(analysis);
    let processes = processes_of(analysis, threads);
    sum.peak = processes
        .iter()
        .filter_map(|process| process.resources.max_rss)
        .max();
    sum.major_faults = major_faults(&processes);
    let mine = threads.iter().filter_map(|ix| facts.get(ix));
    mine.flatten().for_each(|fact| sum.add(*fact));
    sum
}

/// The memory limit of COMMAND's cgroup in bytes; `None` for an unlimited cgroup. In cgroup v1, an unlimited cgroup has
/// the largest possible number as its limit, so this number does not count as a limit.
pub fn limit(analysis: &Analysis) -> Option<u64> {
    let limits = samples(analysis).filter_map(|(_, sample)| sample.get(Counter::CgroupMemoryLimit));
    limits.max().filter(|bytes| *bytes < 1 << 62)
}

/// The memory that the recorded machine has, in bytes.
pub fn of_machine(meta: &Metadata) -> Option<u64> {
    meta.hardware(Hardware::Memory)?.parse().ok()
}

/// The largest memory in bytes that COMMAND's cgroup had in the analyzed span; `None` if this size is not known. The
/// kernel's counter shows the maximum since the cgroup was made. So the largest memory in the span is known only if the
/// counter has grown in the span.
pub fn cgroup_peak(analysis: &Analysis) -> Option<u64> {
    let values = samples(analysis);
    let mut values = values.filter_map(|(_, sample)| sample.get(Counter::CgroupMemoryPeak));
    let first = values.next()?;
    values.last().filter(|last| *last > first)
}

/// The samples of the machine's counters in the analyzed span.
pub fn samples(analysis: &Analysis) -> impl Iterator<Item = &(Ktime, Counters)> {
    let span = analysis.start..=analysis.end;
    let samples = analysis.machine.counters.iter();
    samples.filter(move |(time, _)| span.contains(time))
}
