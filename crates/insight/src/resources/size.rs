//! The size of a runner that a recorded job needs: how much memory and how many CPUs it used, and the smallest size
//! that would be enough.
//!
//! The recorder reads the memory of all processes together once a second, so a reading may miss a short peak. The
//! kernel keeps the largest resident set of each program exactly. The sum of the largest resident sets of the programs
//! that were alive at once is therefore a bound that no peak exceeds, and only this bound leads to a proposal.

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::memory::killed;
use tr_analyze::model::{Analysis, Process};
use tr_analyze::schedule::{Done, Schedule};
use tr_format::counters::Counter;
use tr_format::event::Ktime;
use tr_format::meta::Scope;

use crate::cpus::cpu_need::{self, CpuNeed};
use crate::path::groups;
use crate::processes::exit;
use crate::resources::memory::{self, cgroup_peak, limit, of_machine, Resident};
use crate::views::view::View;

/// The percentage that is added to the largest memory of a job to get a proposed size: pages of files, the kernel
/// itself and larger inputs need memory, too. A guess; seven real jobs ran on the proposed sizes (`size.py`).
pub const MARGIN_PERCENT: u64 = 25;
/// The report on a job has a line about disk space if the job used more than a tenth of the space that was free when
/// the job started. Only the file system in which the job's command began counts. A guess: with a smaller limit, every
/// job would have such a line.
const NOTICEABLE_PART: u64 = 10;
/// The smallest size of memory that is proposed for a job, in bytes. Larger proposed sizes are this size times a power
/// of two, because runners are sold in such sizes.
const SMALLEST_MEMORY: u64 = 512 << 20;

/// The size of CI runner that a job needs: the memory and the CPUs that the job used, and the smallest sizes that would
/// be enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunnerSize {
    pub memory: Option<MemoryNeed>,
    pub cpus: Option<CpuNeed>,
    pub disk: Option<DiskNeed>,
}

/// The disk space that a job needed, by the free space in bytes of the file system in which its command began. Other
/// tasks may use that space, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskNeed {
    /// The least free space that was read in the file system of the recorded command, in bytes.
    pub free_at_least: u64,
    /// The most disk space in bytes that the job used at one time, by the readings: the difference between the free
    /// space at the start and the least free space.
    pub used_peak: u64,
}

/// The memory that all processes of a job used together at one time, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// A lower bound of the largest memory of the job in bytes: the largest reading of the memory of all processes, or
    /// the largest resident set of one process if that is larger.
    pub at_least: u64,
    /// An upper bound of the largest memory of the job in bytes; `None` if the largest resident set of a process is not
    /// known.
    pub at_most: Option<u64>,
    /// The memory in bytes that the job could use: the limit of its cgroup, or the memory of the machine.
    pub available: Option<u64>,
    /// The largest memory in bytes that COMMAND's cgroup had in the recording. The memory of a cgroup includes cached
    /// pages of files.
    pub with_files: Option<u64>,
    /// The size of memory in bytes that is proposed: the upper bound with a margin, rounded up to a size that runners
    /// have. `None` if no upper bound is known, if a process was killed for lack of memory, or if COMMAND did not
    /// succeed.
    pub enough: Option<u64>,
}

impl RunnerSize {
    /// The size of runner that a job needs; `None` for a part of a recording, for the whole machine, or if nothing is
    /// known. `cpus` is the number of CPUs that the simulated run needs, if there is one.
    pub fn new(view: &View<'_>, cpus: Option<CpuNeed>) -> Option<RunnerSize> {
        let analysis = view.analysis;
        if !view.has_all() || !is_of_command(analysis) {
            return None;
        }
        let size = RunnerSize {
            memory: MemoryNeed::of(analysis),
            cpus: cpus.filter(|_| is_done(analysis)),
            disk: DiskNeed::of(analysis),
        };
        let is_known = size.memory.is_some() || size.cpus.is_some() || size.disk.is_some();
        is_known.then_some(size)
    }
}

impl DiskNeed {
    /// Computes the disk space that a recorded command used; `None` for a part of a recording, for the whole machine,
    /// or if the free space was not read.
    pub fn of(analysis: &Analysis) -> Option<DiskNeed> {
        if !is_of_command(analysis) {
            return None;
        }
        let samples = memory::samples(analysis);
        let mut read = samples.filter_map(|(_, sample)| sample.get(Counter::DiskFree));
        let first = read.next()?;
        let least = read.fold(first, u64::min);
        Some(DiskNeed {
            free_at_least: least,
            used_peak: first - least,
        })
    }

    /// Whether the job used more than a tenth of the disk space that was free at the start.
    pub fn is_noticeable(&self) -> bool {
        let before = self.free_at_least.saturating_add(self.used_peak);
        self.used_peak > before / NOTICEABLE_PART
    }
}

impl MemoryNeed {
    /// Computes the memory that a recorded command used; `None` for a part of a recording, for the whole machine, or if
    /// nothing is known.
    pub fn of(analysis: &Analysis) -> Option<MemoryNeed> {
        if !is_of_command(analysis) {
            return None;
        }
        let at_most = bound(analysis);
        let with_files = cgroup_peak(analysis);
        // The memory of containers is not counted in COMMAND's cgroup, because containers have their own cgroups. So
        // the cgroup's peak is used only without containers.
        let has_containers = analysis
            .processes
            .iter()
            .any(|process| process.role.container.is_some());
        let at_most = match with_files.filter(|_| !has_containers) {
            Some(peak) => at_most.map(|bytes| bytes.min(peak)),
            None => at_most,
        };
        let at_least = Resident::of(analysis).least()?;
        let at_least = at_most.map_or(at_least, |most| at_least.min(most));
        let is_killed = killed(analysis).next().is_some();
        let proposed = at_most
            .filter(|_| is_done(analysis) && !is_killed)
            .and_then(enough);
        let available = limit(analysis).or_else(|| of_machine(&analysis.meta));
        Some(MemoryNeed {
            at_least,
            at_most,
            available,
            with_files,
            enough: proposed,
        })
    }
}

/// The number of CPUs that a recorded command would need if no other tasks ran on the machine. During most of its time,
/// the command would use at most this many CPUs at once. `None` if the recording is of the whole machine, or if only a
/// part of the recording is analyzed.
pub fn cpus_wanted(analysis: &Analysis, path: &CriticalPath) -> Option<u64> {
    let schedule =
        is_of_command(analysis).then(|| Schedule::new(analysis, path, &groups(analysis), &[]));
    cpus_wanted_in(analysis, &schedule?.ok()?.alone())
}

/// The number of CPUs that a recorded command needs, by the simulated run `alone`, in which no other tasks run. During
/// most of the simulated time, the command uses at most this many CPUs at once. `None` if the recording is of the whole
/// machine, or if only a part of the recording is analyzed.
pub fn cpus_wanted_in(analysis: &Analysis, alone: &Done) -> Option<u64> {
    let alone = Some(alone).filter(|_| is_of_command(analysis));
    cpu_need::wanted(analysis.cpus_of_build(), alone?)
}

/// Whether the recording covers a single command from its beginning on. A recording of the whole machine, or an
/// analysis of only a part of the recording, does not count.
pub fn is_of_command(analysis: &Analysis) -> bool {
    !analysis.is_part() && analysis.meta.scope == Scope::Command
}

/// Whether COMMAND succeeded, so that the recording contains the whole job.
fn is_done(analysis: &Analysis) -> bool {
    let status = analysis.summary.as_ref().and_then(|summary| summary.status);
    status.is_some_and(|status| !exit::failed(Some(status)))
}

/// The smallest memory size in bytes that is proposed to a job which needs `need` bytes: the need plus a margin,
/// rounded up to a size that runners have.
fn enough(need: u64) -> Option<u64> {
    let wanted = need.checked_add(need / 100 * MARGIN_PERCENT)?;
    let sizes = (0..u64::BITS)
        .map_while(|power| SMALLEST_MEMORY.checked_shl(power).filter(|size| *size > 0));
    sizes.into_iter().find(|size| *size >= wanted)
}

/// An amount of memory that a program used, and the span of time in which the program used this memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldMemory {
    /// The beginning (`from`) and the end (`to`) of the time in which the program used the memory, in nanoseconds.
    pub from: u64,
    pub to: u64,
    pub bytes: u64,
}

/// The largest sum of the memory, in bytes, that several programs used at one time; `None` if this sum is 0.
pub fn most_at_once(all: impl IntoIterator<Item = HeldMemory>) -> Option<u64> {
    let mut changes: Vec<(u64, i128)> = Vec::new();
    for held in all {
        changes.push((held.from, i128::from(held.bytes)));
        changes.push((held.to, -i128::from(held.bytes)));
    }
    // At the same moment, an end sorts before a beginning, because in an exec the new program's memory replaces the old
    // one's.
    changes.sort_unstable();
    let mut sum = 0_i128;
    let mut most = 0_i128;
    for (_, change) in changes {
        sum += change;
        most = most.max(sum);
    }
    u64::try_from(most).ok().filter(|bytes| *bytes > 0)
}

/// The largest resident set of each program that a process executed, in bytes; `None` if the process has not ended, or
/// if one of these sizes is not known.
///
/// Kernels before 6.16 show only whether a program has increased the maximum of its process, so the largest resident
/// set of a program may be unknown. The function then returns the maximum of the whole process for this program. A
/// forked process shares its parent's pages until the process executes a program, so the time before the first exec is
/// not counted.
pub fn resident_sets(process: &Process) -> Option<Vec<HeldMemory>> {
    if process.alive || process.status.is_none() {
        return None;
    }
    let of_process = process.resources.rss_bound;
    let held = |from: Ktime, to: Ktime, bytes: Option<u64>| {
        Some(HeldMemory {
            from: from.0,
            to: to.0,
            bytes: bytes?,
        })
    };
    if process.execs.is_empty() {
        return Some(vec![held(process.start, process.end, of_process)?]);
    }
    let execs = process.execs.iter();
    let sets = execs.map(|exec| held(exec.start, exec.end, exec.max_rss.or(of_process)));
    sets.collect()
}

/// The largest sum, in bytes, of the largest resident sets of programs that were alive at the same time. The memory of
/// the job never exceeded this sum. `None` if it is not known for one of the programs.
fn bound(analysis: &Analysis) -> Option<u64> {
    let mut all = Vec::new();
    for process in analysis.processes.iter() {
        all.extend(resident_sets(process)?);
    }
    most_at_once(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_analyze::model::{ExecSpan, Resources};
    use tr_format::counters::Counters;

    /// Makes a process for a test. `programs` has the start, the end and the largest resident set (in bytes) of each
    /// program that the process executes.
    fn process(programs: &[(u64, u64, Option<u64>)]) -> Process {
        let execs = programs.iter().map(|(from, to, bytes)| ExecSpan {
            start: Ktime(*from),
            end: Ktime(*to),
            max_rss: *bytes,
            ..ExecSpan::default()
        });
        Process {
            status: Some(0),
            resources: Resources {
                rss_bound: Some(7),
                ..Resources::default()
            },
            execs: execs.collect(),
            ..Process::default()
        }
    }

    fn bound_of(processes: impl IntoIterator<Item = Process>) -> Option<u64> {
        let mut analysis = Analysis::default();
        for process in processes {
            analysis.processes.push(process);
        }
        bound(&analysis)
    }

    #[test]
    fn programs_that_were_alive_at_once_add_up() {
        let first = || process(&[(0, 4, Some(100)), (4, 9, Some(40))]);
        assert_eq!(bound_of([first()]), Some(100));
        assert_eq!(bound_of([first(), process(&[(3, 5, Some(10))])]), Some(110));
        assert_eq!(bound_of([first(), process(&[(4, 5, Some(10))])]), Some(100));
        // For a program whose largest resident set is unknown, the largest resident set of its process is taken.
        assert_eq!(bound_of([first(), process(&[(0, 9, None)])]), Some(107));
    }

    #[test]
    fn the_least_free_space_is_compared_with_the_first() {
        let samples = |free: &[Option<u64>]| {
            let counters = free.iter().zip(1..).map(|(free, time)| {
                let mut counters = Counters::default();
                if let Some(free) = free {
                    counters.set(Counter::DiskFree, *free);
                }
                (Ktime(time), counters)
            });
            let mut analysis = Analysis {
                end: Ktime(99),
                ..Analysis::default()
            };
            analysis.machine.counters = counters.collect();
            DiskNeed::of(&analysis)
        };
        assert_eq!(samples(&[None, None]), None);
        let need = samples(&[Some(100), Some(30), Some(95)]);
        let expected = DiskNeed {
            free_at_least: 30,
            used_peak: 70,
        };
        assert_eq!(need, Some(expected));
        let grown = samples(&[Some(100), Some(120)]).map(|need| need.used_peak);
        assert_eq!(grown, Some(0));
        assert!(expected.is_noticeable());
    }

    #[test]
    fn a_process_without_an_end_has_no_bound() {
        let alive = Process {
            alive: true,
            ..process(&[(0, 9, Some(1))])
        };
        assert_eq!(bound_of([process(&[(0, 4, Some(9))]), alive]), None);
        assert_eq!(bound_of([]), None);
    }

    #[test]
    fn a_proposed_size_has_a_margin() {
        let mib = |count: u64| count << 20;
        let sizes = [mib(1), mib(409), mib(410), mib(819), mib(820), 12 << 30];
        let proposed = sizes.map(|need| enough(need).map(|size| size >> 20));
        let wanted = [512, 512, 1024, 1024, 2048, 16384];
        assert_eq!(proposed, wanted.map(Some));
        assert_eq!(enough(u64::MAX), None);
    }
}
