//! Looks for evidence that equal sleeps belong to a loop which checks whether the work of a child process is done.
//!
//! A child that merely lives during the sleeps, such as a server or a watchdog, is no evidence: the loop must end
//! because of the child. This is assumed in three cases: the child ends during the loop's last sleep, the child does
//! nothing after its start except during that sleep, or the child works until that sleep and is idle afterwards. A loop
//! that checks several children in turn then continues with the next child.

use std::collections::BTreeSet;

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::{Process, ProcessIx, ThreadIx};
use tr_analyze::timeline::Bucket;
use tr_format::event::Ktime;

use crate::facts::BuildFacts;
use crate::sleeps::nap::{Nap, LOOP_SLEEPS};

/// The largest number of entries in a child thread's timeline that are searched for work which a loop of the parent
/// waits for. This bounds the work.
const MOST_ENTRIES: usize = 10_000;
/// The longest time in ns for which a loop that sleeps and checks may work between two of its sleeps. A guess: with a
/// smaller limit, a loop on a busy machine, where caches are cold, would be taken for single sleeps. The script
/// `waits.py` tests the rule that uses this limit, also beside two busy loops.
const LONGEST_WORK: u64 = 10_000_000;
/// The divisor of the length of a loop that sleeps until another process has started up. If a wait of that process
/// takes more than a hundredth of the loop's length, the wait is a long one, and the first long wait ends the start-up.
/// A guess: a server that reads its own files at its start waits for a shorter time. The script `waits.py` tests the
/// rule that uses this limit.
pub(crate) const LONG_WAIT: u64 = 100;

/// The number of loops in which a process sleeps and checks for the work of a child, if most of the sleeps in `slept`
/// are in such loops. Otherwise the number is 1 if the process waits for the work of another process
/// ([`awaited_work`]), and `None` if not. `longest` is the length of the longest sleep in ns.
pub(crate) fn loops(facts: &BuildFacts<'_>, slept: &[Nap], longest: u64) -> Option<u64> {
    let evidence = Evidence::new(facts, slept);
    let worked = Worked::new(facts);
    let most = longest.max(LONGEST_WORK);
    let series = slept.chunk_by(|one, next| worked.between(one.to, next.from) <= most);
    let (mut sleeps, mut loops) = (0, 0u64);
    for series in series {
        for range in evidence.checked(series) {
            sleeps += range;
            loops += 1;
        }
    }
    if sleeps * 2 <= slept.len() && awaited_work(facts, slept, longest).is_some() {
        return Some(1);
    }
    (sleeps * 2 > slept.len()).then_some(loops)
}

/// The largest number of other processes that are searched for the work that a loop of sleeps waits for. A bound of the
/// work.
const MOST_PROCESSES: usize = 200;
/// The divisor of the length of a loop that sleeps until another process has ended: that process may end a tenth of the
/// loop's length after the loop. A guess: on a busy machine, an exiting program waits for a CPU.
const LATE_END: u64 = 10;

/// Another process of the build that works during most of the given sleeps and ends when the sleeps end. The sleeping
/// processes then wait for a lock or a file of that process, which is neither an ancestor nor a descendant of theirs.
/// `longest` is the length of the longest sleep in ns.
pub(crate) fn awaited_work(
    facts: &BuildFacts<'_>,
    slept: &[Nap],
    longest: u64,
) -> Option<ProcessIx> {
    let (first, last) = (slept.first()?, slept.last()?);
    let timeline = facts.analysis.timeline.as_ref()?;
    let process = |group| facts.execution(group).map(|execution| execution.process);
    let own: BTreeSet<ProcessIx> = slept
        .iter()
        .flat_map(|nap| [process(nap.by), process(nap.group)])
        .flatten()
        .collect();
    let whole = last.ran.since(first.from);
    let soonest = Ktime(last.from.0.saturating_sub(longest));
    let latest = Ktime(last.ran.0.saturating_add(whole / LATE_END));
    let lineages = own.iter().map(|sleeper| facts.analysis.lineage(*sleeper));
    let above: BTreeSet<ProcessIx> = lineages.flatten().collect();
    let is_related = |ix: ProcessIx| {
        above.contains(&ix) || facts.analysis.lineage(ix).any(|other| own.contains(&other))
    };
    let ends = |ix: &ProcessIx| {
        let process = facts.analysis.process(*ix);
        let is_beside = process.start < last.from && !process.alive;
        is_beside && (soonest..=latest).contains(&process.end)
    };
    let all = facts.all().map(|(_, execution)| execution.process);
    let all: BTreeSet<ProcessIx> = all.filter(ends).collect();
    let mut others = all
        .into_iter()
        .filter(|ix| !is_related(*ix))
        .take(MOST_PROCESSES);
    others.find(|ix| {
        let process = facts.analysis.process(*ix);
        let lived = process
            .end
            .min(last.ran)
            .since(process.start.max(first.from));
        let (mut worked, mut waited) = (0u64, 0u64);
        for thread in process.threads.iter().take(MOST_PROCESSES) {
            let parts = timeline.since(*thread, first.from).take(MOST_ENTRIES);
            for part in parts.take_while(|part| part.from < last.ran) {
                let sum = match part.doing {
                    Bucket::OnCpu(_) => &mut worked,
                    Bucket::Wait(_) => &mut waited,
                    _ => continue,
                };
                *sum = sum.saturating_add(part.length());
            }
        }
        worked > waited && lived.saturating_mul(2) > whole
    })
}

/// For the end of each segment of the critical path, the time in ns on the path up to that end. Waits for a CPU and
/// unknown time do not count. Waits for a CPU are left out because on a busy machine a loop waits for a CPU after each
/// sleep, and this wait takes longer than the sleep.
struct Worked(Vec<(Ktime, u64)>);

impl Worked {
    fn new(facts: &BuildFacts<'_>) -> Worked {
        let mut sum = 0u64;
        let segments = facts.path.segments.iter();
        let ends = segments.map(|segment| {
            if !matches!(segment.kind, TimeKind::RunQueue | TimeKind::Unknown) {
                sum = sum.saturating_add(segment.length());
            }
            (segment.to, sum)
        });
        Worked(ends.collect())
    }

    /// The time in ns on the critical path between `from` and `to`. Waits for a CPU and unknown time do not count. Each
    /// segment that ends between `from` and `to` counts as a whole.
    fn between(&self, from: Ktime, to: Ktime) -> u64 {
        let until = |time| {
            let ended = self.0.partition_point(|(end, _)| *end <= time);
            ended.checked_sub(1).and_then(|last| self.0.get(last))
        };
        let sum = |time| until(time).map_or(0, |(_, sum)| *sum);
        sum(to).saturating_sub(sum(from))
    }
}

/// Whether a process starts children during at least half as many of the gaps between its sleeps as there are sleeps.
/// Children that only sleep (sleep(1)) do not count.
pub(crate) fn works_between(facts: &BuildFacts<'_>, process: ProcessIx, slept: &[Nap]) -> bool {
    let sleeps = slept.iter().filter_map(|nap| facts.execution(nap.group));
    let sleeps: BTreeSet<ProcessIx> = sleeps.map(|execution| execution.process).collect();
    let children = facts.analysis.process(process).children.iter();
    let starts = children
        .filter(|child| !sleeps.contains(child))
        .map(|child| facts.analysis.process(*child).start);
    let between = starts.map(|start| slept.partition_point(|nap| nap.to <= start));
    let between: BTreeSet<usize> = between.filter(|at| (1..slept.len()).contains(at)).collect();
    between.len() * 2 >= slept.len()
}

struct Evidence<'f> {
    facts: &'f BuildFacts<'f>,
    /// The children of the sleeping processes in the order of their starts, without the children that are only sleeps
    /// (sleep(1)).
    children: Vec<ProcessIx>,
}

impl<'f> Evidence<'f> {
    fn new(facts: &'f BuildFacts<'_>, slept: &[Nap]) -> Evidence<'f> {
        let process = |group| facts.execution(group).map(|execution| execution.process);
        let sleepers: BTreeSet<ProcessIx> =
            slept.iter().filter_map(|nap| process(nap.by)).collect();
        let sleeps: BTreeSet<ProcessIx> =
            slept.iter().filter_map(|nap| process(nap.group)).collect();
        let children = sleepers
            .iter()
            .flat_map(|ix| &facts.analysis.process(*ix).children);
        let mut children: Vec<ProcessIx> = children
            .copied()
            .filter(|child| !sleeps.contains(child))
            .collect();
        children.sort_by_key(|child| facts.analysis.process(*child).start);
        Evidence { facts, children }
    }

    /// For each child whose work the process waits for by a loop of sleeps, the number of sleeps in the series that
    /// belong to the loop for this child. In a series, each sleep follows the previous one after a short time.
    fn checked(&self, series: &[Nap]) -> Vec<usize> {
        let (Some(first), Some(last)) = (series.first(), series.last()) else {
            return Vec::new();
        };
        let turns = self.turns(series);
        let children = self.children.iter();
        let children = children.map(|child| self.facts.analysis.process(*child));
        let mut checked = Vec::new();
        let mut taken = 0;
        for child in children.filter(|child| child.start < last.to && child.end > first.from) {
            let begin = series
                .partition_point(|nap| nap.to <= child.start)
                .max(taken);
            // The loop notices the end of the child only when the sleeper has a CPU again (`ran`). So the end of the
            // child is compared with `ran`, and not with the end of the sleep (`to`).
            let end = series.partition_point(|nap| nap.ran < child.end);
            let noticed = if end + 1 == series.len() || turns.contains(&end) {
                Some(end)
            } else if end >= series.len() && self.works_until_last(child, series) {
                Some(series.len() - 1)
            } else {
                None
            };
            let Some(noticed) = noticed.filter(|noticed| *noticed >= begin) else {
                continue;
            };
            let sleeps = noticed - begin + 1;
            if sleeps >= LOOP_SLEEPS || sleeps * 2 > series.len() {
                checked.push(sleeps);
                taken = noticed + 1;
            }
        }
        checked
    }

    /// The indexes of the sleeps after which the process starts another child. The set is empty if the process starts
    /// children after more than half of the sleeps.
    fn turns(&self, series: &[Nap]) -> BTreeSet<usize> {
        let starts = self.children.iter();
        let starts = starts.map(|child| self.facts.analysis.process(*child).start);
        let turns: BTreeSet<usize> = starts
            .filter_map(|start| series.partition_point(|nap| nap.to <= start).checked_sub(1))
            .filter(|turn| turn + 1 < series.len())
            .collect();
        if turns.len() * 2 > series.len() {
            return BTreeSet::new();
        }
        turns
    }

    /// Whether a child finished some work during the last sleep of the series. The child was started before the end of
    /// the first sleep and is still alive after the last sleep.
    fn works_until_last(&self, child: &Process, series: &[Nap]) -> bool {
        let ([first, ..], [.., before, last], Some(timeline)) =
            (series, series, &self.facts.analysis.timeline)
        else {
            return false;
        };
        if child.start > first.to {
            return false;
        }
        let parts = |thread, since| timeline.since(thread, since).take(MOST_ENTRIES);
        // A starting server works or waits for a CPU until its first long wait, which is a wait for requests. Waits in
        // reads of its own files are shorter than `long`.
        let long = last.ran.since(first.from) / LONG_WAIT;
        let is_idle = |thread: &ThreadIx| {
            let mut waits = parts(*thread, child.start)
                .filter(|part| matches!(part.doing, Bucket::Wait(_)) && part.length() > long);
            waits
                .next()
                .is_some_and(|wait| wait.from > before.ran && wait.from <= last.ran)
        };
        if child.threads.first().is_some_and(is_idle) {
            return true;
        }
        // The child's main thread did not become idle at the end of the sleeps. So the child must run only during the
        // last sleep and the check before that sleep. The first sleep does not count, because the child may still start
        // during the first sleep.
        let since = if child.start > first.from {
            child.start
        } else {
            first.to
        };
        let mut acts: Vec<Ktime> = Vec::new();
        for thread in &child.threads {
            let parts = parts(*thread, since).take_while(|part| part.from < last.to);
            let runs = parts.filter(|part| matches!(part.doing, Bucket::OnCpu(_)));
            acts.extend(runs.map(|part| part.to));
        }
        acts.iter().any(|at| *at > before.to)
            && acts.iter().all(|at| *at > before.to || *at <= first.to)
    }
}
