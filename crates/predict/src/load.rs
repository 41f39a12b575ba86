//! The tasks outside of a run that use CPUs at the same time, and how the kernel divides the CPUs between them and the
//! run.
//!
//! Tasks of one session (`sched_autogroup`) or of one cgroup have equal shares of the CPUs. Several sessions or cgroups
//! also have equal shares, however many tasks each of them has. A recording does not show these groups. But it shows
//! which processes had the CPUs while the run's tasks waited, and how many of the run's tasks ran while a certain
//! number of them wanted to. Four tasks beside two others get two thirds of the CPUs if the CPUs are divided among
//! tasks, and half of them if they are divided between two groups. Two tasks beside two others have half of the CPUs
//! either way.

use std::collections::BTreeMap;

use tr_analyze::machine::withheld;
use tr_analyze::model::Analysis;
use tr_analyze::outside::Outside;
use tr_analyze::schedule::{Effect, Machine, Schedule};
use tr_analyze::share;
use tr_format::event::{Ktime, Tgid};

use tr_advice::facts::BuildFacts;
use tr_insight::cpus::shares::CpuShares;

/// The tasks outside of the recorded run that use CPUs beside it, as the simulation assumes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// The number of tasks outside of the run that use CPUs all the time, in thousandths of a task. If `grouped` is
    /// set, the number is instead the CPU share of these tasks, in thousandths of the run's share.
    pub others: u64,
    /// Whether the kernel gives the run as a whole one share of the CPUs, however many of its tasks run at once.
    pub grouped: bool,
    /// The time in ns that the recorded run takes in a simulation on the recorded machine, beside the other tasks of
    /// this load.
    pub replayed: u64,
}

/// Finds a load of other tasks with which the simulated run takes as long as the recorded one. Returns a second such
/// load if the recording does not show how the kernel divides the CPUs. `same` is the recorded machine, and `none` is
/// the load without other tasks.
pub(crate) fn loads(
    facts: &BuildFacts<'_>,
    schedule: &Schedule,
    same: Machine,
    none: Load,
) -> (Load, Option<Load>) {
    let recorded = facts.path.length();
    let most = most_others(facts.analysis, recorded).unwrap_or(u64::MAX);
    let fitted = |grouped| {
        let same = Machine { grouped, ..same };
        fitted(schedule, same, most, recorded, none.replayed)
    };
    let load = |others, grouped| {
        let machine = Machine {
            others,
            grouped,
            ..same
        };
        Load {
            others,
            grouped,
            replayed: schedule.simulate(machine, 0, Effect::Likely).wall,
        }
    };
    let others = fitted(false);
    if others == 0 {
        return (none, None);
    }
    let counted = busy_processes(&facts.analysis.others.outside);
    let near = counted.filter(|counted| is_near(*counted, others));
    let tasks = load(near.unwrap_or(others), false);
    if others < LEAST_BESIDE {
        return (tasks, None);
    }
    let groups = load(fitted(true), true);
    match counted.and_then(|counted| division(facts, counted)) {
        Some(Division::Tasks) => (tasks, None),
        Some(Division::Groups) => (groups, None),
        None => (tasks, Some(groups)),
    }
}

/// How the kernel divides the CPUs between the recorded run and the tasks outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Division {
    /// Each task of the run or outside of it has the same share of the CPUs.
    Tasks,
    /// The run as a whole and all other tasks together have the same share of the CPUs.
    Groups,
}

/// The smallest load of other tasks (in thousandths of a task that never sleeps) for which forecasts take into account
/// how the kernel divides the CPUs. A guess: less than a quarter of a task hardly matters.
pub(crate) const LEAST_BESIDE: u64 = 250;
/// A recording shows how the kernel divides the CPUs only if it shows the division for at least a fifth
/// (1/`SHOWN_PART`) of the recorded time. A guess: a shorter time consists of only a few time slices.
const SHOWN_PART: u64 = 5;
/// The kernel may divide the CPUs in two ways: among tasks, or among groups of tasks. A recording shows the way only
/// if one way gives the run less CPU time than the other way by more than an eighth (1/`DIFFERENT_PART`). Measured for
/// four tasks beside two loops on two CPUs: the four tasks got 1.28 to 1.36 CPUs if the kernel divided the CPUs among
/// tasks, and from 1.0 to 1.08 CPUs if it divided them among groups.
const DIFFERENT_PART: u64 = 8;
/// If a process outside of the run was seen in the first and in the last quarter (1/`END_PART`) of the time in which
/// such processes were seen, it counts as present all the time. A guess: a short process, such as a compiler of another
/// build, ends before the last quarter.
const END_PART: u64 = 4;
/// A process outside of the run counts as busy if it has at least a quarter (1/`BUSY_PART`) of the CPU time of the
/// busiest such process. A guess: two programs that never sleep can get unequal CPU times, because one of them may stay
/// on a CPU that no task of the run wants.
const BUSY_PART: u64 = 4;

/// The CPU time in ns of a process outside of the run, with the first and the last time at which it had a CPU.
#[derive(Clone, Copy, Debug)]
struct Busy {
    ns: u64,
    first: Ktime,
    last: Ktime,
}

/// The number of processes outside of the run that used CPUs during all of the run, in thousandths: two such processes
/// are 2,000. The number is increased in proportion to the CPU time of the other known processes outside of the run.
/// `None` if these others had more than a quarter of the CPU time of all known ones, or if the counted processes had
/// less than half of all CPU time outside of the run.
fn busy_processes(outside: &Outside) -> Option<u64> {
    let mut busy: BTreeMap<Tgid, Busy> = BTreeMap::new();
    let mut all = 0u64;
    let mut add = |process: Tgid, ns: u64, from: Ktime, to: Ktime| {
        if ns == 0 {
            return;
        }
        all = all.saturating_add(ns);
        let of = busy.entry(process).or_insert(Busy {
            ns: 0,
            first: from,
            last: to,
        });
        of.ns = of.ns.saturating_add(ns);
        of.first = of.first.min(from);
        of.last = of.last.max(to);
    };
    for (cpu, slices) in &outside.slices {
        let sums = outside.sums.get(cpu).map_or(&[][..], Vec::as_slice);
        for slice in slices.iter().filter(|slice| !slice.is_open) {
            // Each item of `sums` is a time in which several tasks outside of the run had this CPU; a slice is the time
            // of one such task. The last item that begins before this slice ends may cover the beginning of the slice,
            // so only the rest of the slice is added.
            let before = sums.partition_point(|sum| sum.from < slice.to);
            let last = before.checked_sub(1).and_then(|last| sums.get(last));
            let from = last.map_or(slice.from, |sum| sum.to.max(slice.from));
            let task = outside.at(slice.tid, slice.to);
            let process = task.map_or(Tgid(slice.tid.0), |task| task.tgid);
            add(process, slice.to.since(from.min(slice.to)), from, slice.to);
        }
    }
    for sum in outside.sums.values().flatten() {
        let rest = sum.others.rest_us.saturating_mul(1000);
        add(SEVERAL_PROCESSES, rest, sum.from, sum.to);
        for share in &sum.others.shares {
            let ns = share.us.saturating_mul(1000);
            add(share.tgid, ns, sum.from, sum.to);
        }
    }
    let several = busy.remove(&SEVERAL_PROCESSES).map_or(0, |of| of.ns);
    let from = busy.values().map(|of| of.first).min()?;
    let to = busy.values().map(|of| of.last).max()?;
    let end = to.since(from) / END_PART;
    busy.retain(|_, of| of.first.since(from) <= end && to.since(of.last) <= end);
    let most = busy.values().map(|of| of.ns).max()?;
    busy.retain(|_, of| of.ns >= most / BUSY_PART);
    let sum = busy.values().map(|of| of.ns);
    let sum = sum.fold(0, u64::saturating_add);
    let named = all.saturating_sub(several);
    let is_most = sum >= named / 4 * 3 && sum >= all / 2;
    is_most.then(|| share((busy.len() as u64).saturating_mul(1000), named, sum))
}

/// The pid that stands for several processes outside of the run whose CPU time the recording has only as a sum.
const SEVERAL_PROCESSES: Tgid = Tgid(0);

/// Whether the counted number of busy processes outside of the run agrees with the load that explains the recorded
/// time. They agree if they differ by at most half of the smaller one. A guess: the two differ by more if the processes
/// often sleep or have several tasks each.
fn is_near(counted: u64, fitted: u64) -> bool {
    let (less, more) = (counted.min(fitted), counted.max(fitted));
    more <= less.saturating_add(less / 2)
}

/// A level of the run's demand for CPUs: the time in which a certain number of the run's tasks wanted a CPU, and the
/// CPU time that these tasks got in this time, both in ns. The highest level also includes all larger numbers of tasks.
#[derive(Clone, Debug, Default)]
struct Level {
    /// The number of the run's tasks that wanted a CPU at this level. The highest level also includes larger numbers,
    /// so there it is the smallest number.
    least: usize,
    /// The times in ns for which exactly `least` of the run's tasks wanted a CPU, then `least` + 1 tasks, and so on, up
    /// to the largest number of tasks that this level includes.
    wanted: Vec<u64>,
    /// The CPU time in ns that the run's tasks got while the number of tasks that wanted a CPU belonged to this level.
    /// `ns` is the total time during which the number belonged to this level.
    on_cpu: u64,
    ns: u64,
}

/// How the kernel divided the CPUs between the recorded run and a load of `others` thousandths of a task that never
/// sleeps. Returns `None` if the recording does not show it, for example because too few tasks of the run wanted a CPU
/// at once, or because a quota or a CPU mask limited the run.
fn division(facts: &BuildFacts<'_>, others: u64) -> Option<Division> {
    let throttled = withheld(facts.analysis).throttled_ns.unwrap_or(0);
    if throttled > 0 || facts.analysis.machine.limited_to.is_some() {
        return None;
    }
    let cpus = usize::try_from(facts.cpus).ok()?;
    let mut used = 0;
    let demand = &facts.parallelism.demand;
    let mut levels = vec![Level::default(); cpus.saturating_add(1).min(demand.len())];
    for (at, level) in levels.iter_mut().enumerate() {
        // The last level, for as many of the run's tasks as there are CPUs, also has the times in which more of the
        // run's tasks wanted a CPU.
        let more = if at == cpus { demand.len() } else { at + 1 };
        level.least = at;
        level.wanted = demand.get(at..more)?.to_vec();
    }
    for (ns, running, demand) in facts.load(facts.path.from, facts.path.to) {
        let Some(level) = levels.get_mut(demand) else {
            continue;
        };
        used = used.max(running);
        level.ns = level.ns.saturating_add(ns);
        let on_cpu = ns.saturating_mul(running as u64);
        level.on_cpu = level.on_cpu.saturating_add(on_cpu);
    }
    let divided = divided(&levels, facts.cpus, others, facts.path.length());
    divided.filter(|_| used >= cpus)
}

/// Like [`division`], but from the levels of the run's demand for CPUs. `wall` is the recorded time in ns.
fn divided(levels: &[Level], cpus: u64, others: u64, wall: u64) -> Option<Division> {
    let cpus = cpus.saturating_mul(1000);
    let (mut for_tasks, mut for_groups) = (0u64, 0u64);
    for level in levels {
        // The CPUs that the run would get if every task had an equal share (`among_tasks`), and if the run as a whole
        // had one share (`one_share`): first as a sum of CPU time in ns, then in thousandths of a CPU.
        let (mut among_tasks, mut one_share, mut all) = (0u64, 0u64, 0u64);
        for (tasks, ns) in (level.least..).zip(&level.wanted) {
            let wanted = (tasks as u64).saturating_mul(1000);
            let tasks = share(cpus, wanted, wanted.saturating_add(others)).min(wanted);
            let group = wanted.min((cpus / 2).max(cpus.saturating_sub(others)));
            among_tasks = among_tasks.saturating_add(share(tasks, *ns, 1000));
            one_share = one_share.saturating_add(share(group, *ns, 1000));
            all = all.saturating_add(*ns);
        }
        let [among_tasks, one_share] = [among_tasks, one_share].map(|ns| share(ns, 1000, all));
        let got = share(level.on_cpu, 1000, level.ns);
        let (less, more) = (among_tasks.min(one_share), among_tasks.max(one_share));
        if more - less <= more / DIFFERENT_PART {
            continue;
        }
        // The variable `got` has the CPUs that the run got in the recording; `less` and `more` are the CPUs that it
        // would get by the two ways to divide the CPUs (among tasks, among groups). The way whose value is nearer to
        // `got` was in use. The border between the two values is their geometric mean.
        let is_more = u128::from(got) * u128::from(got) > u128::from(less) * u128::from(more);
        if is_more == (one_share > among_tasks) {
            for_groups = for_groups.saturating_add(level.ns);
        } else if among_tasks > one_share {
            for_tasks = for_tasks.saturating_add(level.ns);
        }
        // In the remaining case, the run would get more CPU time by a division among groups than by one among tasks,
        // and it got the smaller amount. This does not prove a division among tasks: a single task beside a group gets
        // a CPU for itself only after the kernel has moved the other tasks away, and may get less until then.
    }
    let shown = for_groups.max(for_tasks);
    (shown > 0 && shown.saturating_mul(SHOWN_PART) >= wall).then_some(if for_groups > for_tasks {
        Division::Groups
    } else {
        Division::Tasks
    })
}

/// The largest possible number of tasks outside of the run that never sleep, in thousandths of a task, judged by their
/// CPU time: twice the number that gets this CPU time beside as many tasks of the run as there are CPUs. If the run
/// waited for CPUs although others had little CPU time, a limit or a delay of the scheduler was the reason.
fn most_others(analysis: &Analysis, recorded: u64) -> Option<u64> {
    // If the run was limited to some of the CPUs, the tasks outside of the run may have been on the other CPUs.
    if analysis.machine.limited_to.is_some() {
        return None;
    }
    let shares = CpuShares::of(analysis);
    let had = shares.others?.saturating_add(shares.stolen.unwrap_or(0));
    let had = had.saturating_mul(1000) / recorded.max(1);
    let cpus = (analysis.meta.cpus.len() as u64).saturating_mul(1000);
    let left = cpus.checked_sub(had).filter(|left| *left > 0)?;
    Some(had.saturating_mul(2).saturating_mul(cpus) / left)
}

/// The number of tasks outside of the run, in thousandths of a task, with which the simulation of the recorded run
/// takes as long as the recorded run did.
fn fitted(schedule: &Schedule, same: Machine, most: u64, recorded: u64, alone: u64) -> u64 {
    // If the recorded time is longer than the simulated one by at most a fiftieth, no other tasks are assumed. Such a
    // difference may come from time slices and from the choice of a CPU, which are not simulated.
    if alone.saturating_add(alone / 50) >= recorded || most < 100 {
        return 0;
    }
    let wall = |others| {
        schedule
            .simulate(Machine { others, ..same }, 0, Effect::Likely)
            .wall
    };
    let (mut low, mut high) = (0, most.min(64_000));
    while high - low > 50 {
        let middle = (low + high) / 2;
        if wall(middle) < recorded {
            low = middle
        } else {
            high = middle
        }
    }
    if wall(high) < recorded {
        // Even beside this number of tasks, the simulated run is faster than the recorded one. So other tasks do not
        // explain the recorded time, and the forecast assumes only half of this number.
        high / 2
    } else {
        high
    }
}

#[cfg(test)]
mod tests {
    use tr_analyze::outside::{Slice, Sum};
    use tr_format::event::{CpuId, Others, Share, Tid};
    use tr_sim::config::Config;
    use tr_sim::program::{ms, Op, Resident};

    use super::*;
    use crate::{Predictor, Wanted};

    const MS: u64 = 1_000_000;

    /// How the kernel divided the CPUs between a run and two other tasks on two CPUs, for tests. Each level has the
    /// number of the run's tasks that wanted a CPU, the time in ms, and the number of CPUs that these tasks got, in
    /// hundredths.
    fn shown(levels: &[(usize, u64, u64)]) -> Option<Division> {
        let wall = levels.iter().map(|(_, ms, _)| ms * MS).sum();
        let level = |(demand, ms, percent): &(usize, u64, u64)| Level {
            least: *demand,
            wanted: vec![ms * MS],
            on_cpu: ms * MS * percent / 100,
            ns: ms * MS,
        };
        let levels: Vec<Level> = levels.iter().map(level).collect();
        divided(&levels, 2, 2000, wall)
    }

    #[test]
    fn many_tasks_show_how_the_cpus_are_divided() {
        assert_eq!(shown(&[(1, 100, 60), (4, 900, 132)]), Some(Division::Tasks));
        assert_eq!(
            shown(&[(1, 100, 60), (4, 900, 104)]),
            Some(Division::Groups)
        );
        assert_eq!(shown(&[(1, 900, 92), (2, 100, 97)]), Some(Division::Groups));
    }

    /// A predictor for tests, from the simulated recording of a build that runs `jobs` jobs at once beside two tasks
    /// that never sleep.
    fn beside_two(jobs: u32, wanted: Wanted) -> Predictor {
        let mut world = tr_sim::scenario::make(jobs, 16);
        let spin = u16::try_from(world.programs.len()).unwrap();
        world.programs.push(vec![Op::Run(ms(4, 4)), Op::Goto(0)]);
        let resident = Resident {
            program: spin,
            arg: 0,
            kthread: false,
            pin: None,
        };
        world.residents = vec![resident; 2];
        let mut config = Config::new(world, 2, 4_000_000_000);
        config.linger = Some(100_000);
        let (recording, _) = tr_sim::recording::Recording::record(&config);
        let options = tr_analyze::Options {
            timeline: true,
            ..tr_analyze::Options::default()
        };
        let analysis = tr_analyze::analyze(&tr_sim::examples::trace(&recording), &options);
        Predictor::new(&analysis.into(), wanted).unwrap()
    }

    /// The CPU use outside of a run, for tests. Each item has the id of a process that had one CPU, and the time in
    /// ms.
    fn outside(slices: &[(u32, u64)]) -> Outside {
        let mut outside = Outside::default();
        let mut at = 0;
        for (tid, ms) in slices {
            let (from, to) = (Ktime(at * MS), Ktime((at + ms) * MS));
            at += ms;
            let slice = Slice {
                from,
                to,
                tid: Tid(*tid),
                is_open: false,
            };
            outside.slices.entry(CpuId(0)).or_default().push(slice);
        }
        outside
    }

    #[test]
    fn processes_that_never_sleep_are_counted() {
        // Processes 7 and 8 count as busy. Process 8 had less CPU time than process 7, because process 8 was for a long
        // time on a CPU that the run did not want. Process 9 had too little CPU time to count as busy.
        let parts = [(7, 60), (8, 20), (9, 10)].repeat(8);
        assert_eq!(busy_processes(&outside(&parts)), Some(2250));
        // The compilers of another build each run only for a short time.
        let compilers: Vec<(u32, u64)> = (1..40).map(|tid| (tid, 30)).collect();
        assert_eq!(busy_processes(&outside(&compilers)), None);
        assert_eq!(busy_processes(&Outside::default()), None);
    }

    #[test]
    fn a_time_is_in_the_sums_or_in_a_slice() {
        let mut outside = outside(&[(7, 100), (8, 100)].repeat(4));
        let share = |tgid, us| Share {
            tgid: Tgid(tgid),
            us,
            ..Share::default()
        };
        let others = Others {
            shares: vec![share(7, 60_000), share(8, 60_000)],
            ..Others::default()
        };
        let sum = Sum {
            from: Ktime(580 * MS),
            to: Ktime(700 * MS),
            others: Box::new(others),
        };
        outside.sums.insert(CpuId(0), vec![sum]);
        assert_eq!(busy_processes(&outside), Some(2000));
    }

    #[test]
    fn an_unknown_division_is_both() {
        let predictor = beside_two(2, Wanted::default());
        let other = predictor.other_load.unwrap();
        assert!(!predictor.load.grouped && other.grouped);
        let (tasks, groups) = (predictor.load, other);
        let [tasks, groups] =
            [tasks, groups].map(|load| predictor.interval_beside(load, 2, Some(1)).0);
        assert!(tasks.likely > groups.likely, "{tasks:?} {groups:?}");
        let (both, _) = predictor.interval(2, Some(1));
        assert!(both.likely < tasks.likely && both.likely > groups.likely);
        assert_eq!(both.low, tasks.low.min(groups.low));
        assert_eq!(both.high, tasks.high.max(groups.high));
        // For the recorded run the forecast is the recorded time, whichever way the CPUs are divided.
        let (same, _) = predictor.interval(2, None);
        assert_eq!(same, predictor.interval_beside(predictor.load, 2, None).0);
    }

    #[test]
    fn with_other_work_the_waits_for_cpus_may_stay() {
        let wanted = Wanted {
            disk: Some(1000.0),
            ..Wanted::default()
        };
        let predictor = beside_two(2, wanted);
        let waits = predictor.recorded - predictor.alone;
        let (wall, _) = predictor.interval(2, None);
        assert!(waits > predictor.alone / 2, "{waits}");
        assert!(wall.high > waits + predictor.alone / 2, "{wall:?}");
    }

    #[test]
    fn few_tasks_do_not_show_it() {
        // Two tasks beside two others have half of the CPUs, whichever way these are divided.
        assert_eq!(shown(&[(1, 350, 59), (2, 650, 97)]), None);
        assert_eq!(shown(&[(2, 900, 97), (4, 100, 104)]), None);
        assert_eq!(shown(&[]), None);
    }
}
