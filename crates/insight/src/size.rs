//! The size of a runner that a recorded job needs: how much memory and how many CPUs it used, and the smallest
//! size that would do.
//!
//! The recorder reads the memory of all processes together once a second, so a reading may miss a short peak.
//! The kernel keeps the largest resident set of each program exactly. The sum of the largest resident sets of the
//! programs that were alive at once is therefore a bound that no peak exceeds, and only this bound leads to a
//! proposal.

use tr_analyze::memory::killed;
use tr_analyze::model::Analysis;
use tr_format::event::Ktime;
use tr_format::meta::Scope;

use crate::advice::BuildAdvice;
use crate::cpu_need::CpuNeed;
use crate::exit;
use crate::memory::{cgroup_peak, limit, of_machine, Resident};
use crate::view::View;

/// The share of the largest need that a proposed size has beside it, in percent: pages of files, the kernel's own
/// memory and other inputs need some, too.
pub const MARGIN_PERCENT: u64 = 25;
/// The smallest size of memory that is proposed, in bytes. The others are its powers of two, as runners are sold.
const SMALLEST: u64 = 512 << 20;

/// The memory and the CPUs that a job used, and what would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunnerSize {
    pub memory: Option<MemoryNeed>,
    pub cpus: Option<CpuNeed>,
}

/// The memory of all processes together, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// The largest reading, or the largest resident set of one process if that is larger.
    pub at_least: u64,
    /// A bound that no peak exceeded; `None` if the largest resident set of a process is not known.
    pub at_most: Option<u64>,
    /// The memory that the job could use: the limit of its cgroup, or else that of the machine.
    pub available: Option<u64>,
    /// The largest memory of COMMAND's cgroup in the span, in which the pages of files count, too.
    pub with_files: Option<u64>,
    /// The smallest size that would do; `None` without a bound, or if the job was killed or failed.
    pub enough: Option<u64>,
}

impl RunnerSize {
    /// The size of a job's runner; `None` for a part of a recording, for the whole machine, or if nothing is known.
    pub fn new(view: &View<'_>, advice: &BuildAdvice) -> Option<RunnerSize> {
        let analysis = view.analysis;
        if !view.has_all() || !is_of_command(analysis) {
            return None;
        }
        let size = RunnerSize {
            memory: MemoryNeed::of(analysis),
            cpus: advice.cpus.filter(|_| is_done(analysis)),
        };
        (size.memory.is_some() || size.cpus.is_some()).then_some(size)
    }
}

impl MemoryNeed {
    /// The memory of a recorded command; `None` for a part of a recording, for the whole machine, or if nothing is
    /// known.
    pub fn of(analysis: &Analysis) -> Option<MemoryNeed> {
        if !is_of_command(analysis) {
            return None;
        }
        let at_most = bound(analysis);
        let with_files = cgroup_peak(analysis);
        // Containers have cgroups of their own.
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

/// Whether the recording is one of a command alone, from its beginning.
pub fn is_of_command(analysis: &Analysis) -> bool {
    !analysis.is_part() && analysis.meta.scope == Scope::Command
}

/// Whether COMMAND succeeded, so that the recording has all of the job.
fn is_done(analysis: &Analysis) -> bool {
    let status = analysis.summary.as_ref().and_then(|summary| summary.status);
    status.is_some_and(|status| !exit::failed(Some(status)))
}

/// The smallest size with the margin beside a need, in bytes.
fn enough(need: u64) -> Option<u64> {
    let wanted = need.checked_add(need / 100 * MARGIN_PERCENT)?;
    let sizes =
        (0..u64::BITS).map_while(|power| SMALLEST.checked_shl(power).filter(|size| *size > 0));
    sizes.into_iter().find(|size| *size >= wanted)
}

/// The largest sum, in bytes, of the largest resident sets of the programs that were alive at once.
///
/// The largest resident set of a program may be unknown, because kernels before 6.16 tell only growth; the bound of
/// its process stands for it. A copy of its parent that goes on to execute a program shares its parent's pages and is
/// not counted.
fn bound(analysis: &Analysis) -> Option<u64> {
    let mut changes: Vec<(Ktime, i128)> = Vec::new();
    for process in analysis.processes.iter() {
        if process.alive || process.status.is_none() {
            return None;
        }
        let of_process = process.resources.rss_bound;
        let mut add = |from: Ktime, to: Ktime, bytes: u64| {
            changes.push((from, i128::from(bytes)));
            changes.push((to, -i128::from(bytes)));
        };
        if process.execs.is_empty() {
            add(process.start, process.end, of_process?);
        }
        for exec in &process.execs {
            add(exec.start, exec.end, exec.max_rss.or(of_process)?);
        }
    }
    // An end sorts before a beginning of the same moment: an exec replaces a program.
    changes.sort_unstable();
    let mut sum = 0_i128;
    let mut most = 0_i128;
    for (_, change) in changes {
        sum += change;
        most = most.max(sum);
    }
    u64::try_from(most).ok().filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_analyze::model::{ExecSpan, Process, Resources};

    /// A process with programs from one second to another, each with its largest resident set.
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
        // The bound of its process stands for a program whose largest resident set is unknown.
        assert_eq!(bound_of([first(), process(&[(0, 9, None)])]), Some(107));
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
