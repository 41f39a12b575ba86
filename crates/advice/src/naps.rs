//! Gives advice on programs that sleep on the critical path of a build.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::{Segment, TimeKind};
use tr_analyze::killed;
use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::programs::{sleeper, Group};
use tr_analyze::schedule::MOST;
use tr_analyze::share;
use tr_analyze::status::{is_for, Purpose};
use tr_analyze::timeline::{Actor, Bucket, Stretch, Wait};
use tr_analyze::what_if::Without;
use tr_format::event::{Ktime, Reason};
use tr_programs::program_name::ProgramName;
use tr_programs::tools::Role;

use super::awaited::{asked_work, is_beside_work, starting, superfluous};
use super::candidate::{AdviceKind, Candidate, Certainty};
use super::facts::BuildFacts;
use super::limits::{ended_by_limit, given_up_at_once, killed_after_grace};
use super::nap::{sum, Nap, Superfluous, LOOP};
use super::pauses::{ends_by_signal, Pauses};
use super::polls;
use super::rhythm::{is_long, is_paced};
use super::timers::queued_before;
use tr_insight::processes::timeout::timed_out;
use tr_insight::processes::{exit, label};
use tr_text::phrase::Phrase;
use tr_text::units;

/// The least number of unequal sleeps that count as tries to get what another process has, such as a database's lock.
/// A guess: sqlite's busy handler sleeps seven times within the first 80 ms.
const TRIES: usize = 8;
/// The longest sleep in ns that may belong to a language's runtime, which sleeps between checks of its own threads.
/// Nobody can change such sleeps (Go's `sysmon` doubles its sleeps up to 10 ms, runtime/proc.go).
const RUNTIMES: u64 = 12_000_000;

/// The longest time in nanoseconds from the last segment of a process on the critical path to the end of the process,
/// or from this end to the moment when its parent is woken. A guess: the kernel ends a small process within two
/// milliseconds.
const EXITS: u64 = 2_000_000;

/// Advice on sleeps on the critical path, as one proposed change for each program that decided to sleep.
pub(super) fn sleeps(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut by_process: BTreeMap<ProcessIx, Vec<Nap>> = BTreeMap::new();
    let mut works = false;
    let failed = exit::command_failed(facts.analysis);
    let until_kill_from = idle_until_kill(facts);
    let mut segments = facts.segments().peekable();
    while let Some((segment, group, reason)) = segments.next() {
        let (TimeKind::Sleep, Some(group)) = (segment.kind, group) else {
            continue;
        };
        let queued = segments
            .peek()
            .map(|(next, ..)| next)
            .filter(|next| next.kind == TimeKind::RunQueue && next.thread == segment.thread);
        let process = facts.analysis.thread(segment.thread).process;
        let (process, at) = sleeper(facts.analysis, process, segment.from);
        // If a program fails right after a sleep, the program gave up, so the sleep was really a wait for something
        // else. This is not so if the program slept before: then the sleep is one of several pauses between tries. If
        // the build did not fail, the wait cost time all the same, so the wait counts as a sleep, too.
        let is_pause = by_process.contains_key(&process) || !failed;
        let gave_up = || killed::gave_up(facts.analysis, segment.thread, segment.from);
        // A thread in a call without a time-out waits for something else than a timer. An alarm signal then only ends
        // that wait, so the wait is no sleep.
        if killed::has_no_timeout(reason) || !is_pause && gave_up() {
            continue;
        }
        let by = facts.groups.at(process, at).unwrap_or(group);
        let slept = Nap {
            thread: segment.thread,
            group,
            by,
            from: segment.from,
            to: segment.to,
            ran: queued.map_or(segment.to, |queued| queued.to),
        };
        let is_idle = until_kill_from
            .get(&process)
            .is_some_and(|from| slept.from >= *from);
        if is_idle || is_beside_work(facts, &slept) || facts.measures_by_clock(by) {
            works = true;
        } else if !is_tools(facts, &slept) {
            by_process.entry(process).or_default().push(slept);
        }
    }
    // All children of a test runner are tests, whatever their files are called.
    let of = |group: Group| -> Option<Sleeper<'_>> {
        let execution = facts.execution(group)?;
        let runner = facts
            .owner(group)
            .filter(|owner| facts.role(*owner) == Some(Role::Tests));
        let runner = runner.and_then(|owner| facts.execution(owner));
        Some(
            runner.map_or(Sleeper::Program(&execution.program), |runner| {
                Sleeper::TestsOf(&runner.program)
            }),
        )
    };
    let mut by_sleeper: BTreeMap<(Sleeper<'_>, bool), Vec<Naps>> = BTreeMap::new();
    let graces = killed_after_grace(facts);
    let (mut gives_up, mut keeps_rate) = (false, false);
    let mut abandoned = Vec::new();
    let mut stopping = Vec::new();
    for (process, slept) in by_process {
        let waits_for_end = graces.waiting.contains(&process);
        if timed_out(facts.analysis.process(process)) || waits_for_end {
            continue;
        }
        if let Some(candidate) = stops(facts, process, &slept) {
            stopping.push(candidate);
            continue;
        }
        if let Some(child) = given_up(facts, process, &slept) {
            gives_up = true;
            // A process that failed gets no advice on its sleeps, because the sleeps are not the cause of the failure.
            if !exit::failed(facts.analysis.process(process).status) {
                abandoned.extend(until_kill(facts, &slept, child));
            }
            continue;
        }
        let mut own: BTreeMap<Sleeper<'_>, Vec<Nap>> = BTreeMap::new();
        let is_paced = is_paced(&slept);
        for nap in slept {
            if let Some(sleeper) = of(nap.by) {
                own.entry(sleeper).or_default().push(nap);
            }
        }
        for (sleeper, slept) in own {
            let naps = Naps::of(facts, slept);
            let polls = naps.checks.is_some();
            // A program that sleeps in a rhythm is probably meant to keep that rate, so it gets no advice. A loop that
            // provably checks for something gets advice even if its sleeps have a rhythm.
            if is_paced && !polls {
                keeps_rate = true;
                continue;
            }
            by_sleeper.entry((sleeper, polls)).or_default().push(naps);
        }
    }
    // Each proposed change needs memory for a set of all executions of programs, so the number of changes is limited: a
    // forged file may have thousands of sleepers.
    let mut all: Vec<Vec<Naps>> = by_sleeper.into_values().collect();
    all.sort_by_key(|naps| std::cmp::Reverse(sum(naps.iter().flat_map(|naps| &naps.slept))));
    all.truncate(MOST);
    let groups = |naps: &[Naps]| -> BTreeSet<Group> {
        let slept = naps.iter().flat_map(|naps| &naps.slept);
        slept.map(|nap| nap.group).collect()
    };
    let on_path: Vec<BTreeSet<Group>> = all.iter().map(|naps| groups(naps)).collect();
    let of_others = |own: usize, group: Group| {
        let mut others = on_path.iter().enumerate().filter(|(at, _)| *at != own);
        others.any(|(_, groups)| groups.contains(&group))
    };
    let mut candidates = Vec::new();
    for (own, naps) in all.into_iter().enumerate() {
        let Some(mut candidate) = of_naps(facts, &naps, |group| of_others(own, group)) else {
            continue;
        };
        // Only the proposed change with the longest sleeps is combined with sleeps of other processes, for example of a
        // server.
        let beside = (own == 0).then(|| with_sleeps_beside(facts, &naps, &mut candidate));
        let beside = beside.flatten();
        // A loop of short sleeps waits for another process that sleeps longer, so removing only the loop's sleeps saves
        // nothing.
        if beside.as_ref().is_none_or(|beside| beside.beside) {
            candidates.push(candidate);
        }
        candidates.extend(beside);
    }
    candidates.extend(stopping);
    if candidates.is_empty() && !gives_up && !keeps_rate && !works {
        candidates.extend(off_path(facts));
    }
    candidates.extend(abandoned);
    candidates.extend(given_up_at_once(facts));
    candidates.extend(ended_by_limit(facts));
    candidates.extend(graces.candidates);
    candidates
}

/// The processes that another process ended by a signal. Each has the time from which the critical path stays in this
/// process until the process's end, if the process wakes no other process from that time on. In this time, an idle
/// server only looks at its timers. The sender of the signal, and not these sleeps, decided when the server ended.
fn idle_until_kill(facts: &BuildFacts<'_>) -> BTreeMap<ProcessIx, Ktime> {
    let process = |segment: &Segment| facts.analysis.thread(segment.thread).process;
    let stays = facts
        .path
        .segments
        .chunk_by(|one, next| process(one) == process(next));
    let stays = stays.filter_map(|stay| Some((stay.first()?, stay.last()?)));
    let until_end = stays.filter_map(|(first, last)| {
        let ix = process(first);
        let process = facts.analysis.process(ix);
        let signal = exit::killed_by(process.status);
        let is_killed = signal.is_some_and(|signal| is_for(signal, Purpose::Outside));
        let is_end = Ktime(last.to.0.saturating_add(EXITS)) >= process.end;
        (is_killed && is_end).then_some((ix, first.from))
    });
    let until_end = until_end.take(BESIDE.0);
    let until_end = until_end.filter(|(ix, from)| {
        let end = facts.analysis.process(*ix).end;
        !wakes_others(facts, *ix, *from, end)
    });
    until_end.collect()
}

/// Whether a process ends a wait of another process between `from` and its own end at `end`. The wait for its end does
/// not count.
fn wakes_others(facts: &BuildFacts<'_>, ix: ProcessIx, from: Ktime, end: Ktime) -> bool {
    let analysis = facts.analysis;
    let Some(timeline) = &analysis.timeline else {
        return false;
    };
    let is_beside = |other: &ProcessIx| {
        let process = analysis.process(*other);
        *other != ix && process.start < end && process.end > from
    };
    let others = analysis.process_ids().filter(is_beside).take(BESIDE.0);
    let mut threads = others.flat_map(|other| &analysis.process(other).threads);
    threads.any(|thread| {
        let waits = timeline.since(*thread, from).take(BESIDE.1);
        let mut waits = waits.take_while(|wait| wait.to.0.saturating_add(EXITS) < end.0);
        waits.any(|wait| match wait.waker() {
            Actor::Thread(by) => {
                matches!(wait.doing, Bucket::Wait(_)) && analysis.thread(by).process == ix
            }
            _ => false,
        })
    })
}

/// For each segment of the critical path, whether it is a sleep of a build tool itself, between its checks for ended
/// jobs.
pub(super) fn of_tools(facts: &BuildFacts<'_>) -> Vec<bool> {
    let is_of_tool = |(segment, group, _): (&Segment, Option<Group>, Reason)| {
        let process = facts.analysis.thread(segment.thread).process;
        let (process, at) = sleeper(facts.analysis, process, segment.from);
        let by = facts.groups.at(process, at).or(group);
        segment.kind == TimeKind::Sleep
            && by.zip(group).is_some_and(|(by, group)| {
                is_tools(
                    facts,
                    &Nap {
                        thread: segment.thread,
                        group,
                        by,
                        from: segment.from,
                        to: segment.to,
                        ran: segment.to,
                    },
                )
            })
    };
    facts.segments().map(is_of_tool).collect()
}

/// For each segment of the critical path, whether it is one of several sleeps of a process. Such sleeps may be a loop
/// that checks for the end of other work of the build. If that work got more CPU time, the process would sleep less
/// often.
pub(super) fn in_loops(facts: &BuildFacts<'_>) -> Vec<bool> {
    let sleeper = |segment: &Segment| {
        let process = facts.analysis.thread(segment.thread).process;
        let (process, _) = sleeper(facts.analysis, process, segment.from);
        (segment.kind == TimeKind::Sleep).then_some(process)
    };
    let sleepers: Vec<Option<ProcessIx>> = facts.path.segments.iter().map(sleeper).collect();
    let mut counts: BTreeMap<ProcessIx, usize> = BTreeMap::new();
    for process in sleepers.iter().flatten() {
        *counts.entry(*process).or_default() += 1;
    }
    let is_loop = |process| counts.get(&process).is_some_and(|count| *count > 1);
    sleepers
        .into_iter()
        .map(|process| process.is_some_and(is_loop))
        .collect()
}

/// Advice on the sleeps of a process during which it stops a child (SIGSTOP), for example to limit the child's CPU
/// time. The process itself continues the child after each sleep.
fn stops(facts: &BuildFacts<'_>, process: ProcessIx, slept: &[Nap]) -> Option<Candidate> {
    let timeline = facts.analysis.timeline.as_ref()?;
    let of = |actor: Actor| match actor {
        Actor::Thread(thread) => Some(facts.analysis.thread(thread).process),
        _ => None,
    };
    let stopped = |child: &ProcessIx| -> u64 {
        let thread = facts.analysis.process(*child).threads.first();
        let stretches = thread.into_iter().flat_map(|thread| timeline.of(*thread));
        let stops = stretches.filter(|stretch| {
            stretch.doing == Bucket::Wait(Wait::Stopped) && of(stretch.waker()) == Some(process)
        });
        stops.map(|stop| stop.length()).fold(0, u64::saturating_add)
    };
    let children = facts.analysis.process(process).children.iter();
    let children = children
        .take(BESIDE.0)
        .map(|child| (stopped(child), *child));
    let (ns, child) = children.max_by_key(|(ns, child)| (*ns, std::cmp::Reverse(*child)))?;
    // If the child was stopped for less than a tenth of the sleeps, the stops do not explain the sleeps.
    if ns == 0 || ns.saturating_mul(10) < sum(slept) {
        return None;
    }
    let first = slept.first()?;
    let of = facts.analysis.process(child);
    // If other tasks use the CPUs, too, the child needs longer for its work and is stopped for longer. So the stopped
    // time is scaled to the child's CPU time.
    let went = of.wall().saturating_sub(ns).max(1);
    let cap = share(of.times.on_cpu, ns, went).min(ns);
    let groups = facts.groups_of(&BTreeSet::from([child]));
    let (name, label) = (facts.name(first.by), label::phrase(of));
    let all = slept.iter().map(|nap| nap.group).chain(groups);
    let all: BTreeSet<Group> = all.collect();
    Some(Candidate {
        finding: Phrase::with([&name, &label], |[name, label]| {
            let time = units::time(ns);
            format!("{name} stops {label} for {time}, and sleeps meanwhile")
        }),
        action: "let it run, or raise its limit".into(),
        without: Without::own(
            |kind, _| matches!(kind, TimeKind::Sleep | TimeKind::Stopped),
            Some(facts.set(all.iter().copied())),
        ),
        cap,
        certainty: Certainty::Unsure,
        evidence: all.into_iter().collect(),
        ..Candidate::of(AdviceKind::Sleep)
    })
}

/// Advice on the sleeps of a process that checked, between its sleeps, whether a child had ended, and that finally
/// killed the child. Such sleeps are a time-out, unless the process also checked for something else.
fn until_kill(facts: &BuildFacts<'_>, slept: &[Nap], child: &Process) -> Option<Candidate> {
    let (first, sum) = (slept.first()?, sum(slept));
    let (name, child) = (facts.name(first.by), label::phrase(child));
    Some(Candidate {
        finding: Phrase::with([&name, &child], |[name, child]| {
            format!(
                "{name} sleeps {}, {} times, and then kills {child}",
                units::time(sum),
                units::count(slept.len() as u64),
            )
        }),
        action: "use a shorter time-out, or find out why it does not end".into(),
        without: Without::own(
            |kind, _| kind == TimeKind::Sleep,
            Some(facts.set(slept.iter().map(|nap| nap.group))),
        ),
        cap: sum,
        certainty: Certainty::Unsure,
        evidence: slept.iter().map(|nap| nap.group).collect(),
        ..Candidate::of(AdviceKind::Sleep)
    })
}

/// Sleeps that are not on the critical path, namely those of the program with the longest of such sleeps. Processes
/// that run the same program sleep at the same time, so the sleeps of all of them are taken together.
pub(super) struct SleepsBeside {
    /// The name of the process that slept longest, with the number of other processes that run the program, and the
    /// ending of the verb that follows (`s` or nothing).
    pub names: (Phrase, &'static str),
    /// The sum in nanoseconds of the sleeps of the process that slept longest, and the length of the longest of these
    /// sleeps.
    ns: u64,
    longest: u64,
    groups: BTreeSet<Group>,
}

/// The longest sleeps of one program that are not on the critical path.
pub(super) fn sleeps_beside(facts: &BuildFacts<'_>) -> Option<SleepsBeside> {
    let mut found = FoundSleeps::default();
    let (from, to) = (facts.path.from, facts.path.to);
    let groups: Vec<Group> = facts.all().take(BESIDE.0).map(|(group, _)| group).collect();
    for group in groups {
        let process = facts.execution(group).map(|execution| execution.process);
        // Servers, watchdogs and abandoned processes are ended by other processes, so the end of the build does not
        // wait for their sleeps.
        let ends_itself = |ix: ProcessIx| {
            let process = facts.analysis.process(ix);
            !process.alive && process.status == Some(0) && !facts.analysis.ends_after_signal(ix)
        };
        let is_tools = facts.role(group).is_some() || facts.runs_containers(group);
        if process.is_some_and(ends_itself) && !is_tools {
            found.add(facts, group, from, to);
        }
    }
    let all = || found.by_sleeper.values();
    let longest = all().max_by_key(|beside| (beside.ns, std::cmp::Reverse(beside.by)))?;
    let program = |beside: &Beside| facts.execution(beside.by).map(|own| &own.program);
    let same: Vec<&Beside> = all()
        .filter(|beside| program(beside) == program(longest))
        .collect();
    let groups = same.iter().flat_map(|beside| &beside.groups);
    Some(SleepsBeside {
        names: facts.names(longest.by, same.iter().map(|beside| beside.by)),
        ns: longest.ns,
        longest: longest.longest,
        groups: groups.copied().collect(),
    })
}

/// Advice on the longest sleeps of one program if no sleep is on the critical path. With other tasks on the machine,
/// the work on the path may take longer than these sleeps; on CPUs that the build has for itself the work takes less
/// time, and then the sleeps decide how long the build takes.
fn off_path(facts: &BuildFacts<'_>) -> Option<Candidate> {
    let beside = sleeps_beside(facts)?;
    // A loop of sleeps may check for the end of work that takes less time on free CPUs. Such loops are not judged here,
    // so they get no advice.
    let is_loop = beside.longest.saturating_mul(LOOPS) <= beside.ns;
    if beside.longest <= RUNTIMES || is_loop {
        return None;
    }
    let (name, s) = &beside.names;
    let time = units::time(beside.ns);
    Some(Candidate {
        finding: Phrase::with([name], |[name]| Pauses::Plain.finding(name, s, &time, "")),
        action: Pauses::Plain.action().into(),
        without: Without::own(
            |kind, _| kind == TimeKind::Sleep,
            Some(facts.set(beside.groups.iter().copied())),
        ),
        cap: beside.ns,
        certainty: Certainty::unless_meant_if(Pauses::Plain.may_be_meant()),
        evidence: beside.groups.into_iter().collect(),
        ..Candidate::of(AdviceKind::Sleep)
    })
}

/// The sleeps of a process count as a loop if their sum is at least this many times as long as the longest of them. A
/// guess: fewer sleeps are steps of a script.
const LOOPS: u64 = 10;

/// Sleeps of one process that are not on the build's critical path, and the executions that slept.
struct Beside {
    /// The execution of a program that decided on the longest of the process's sleeps.
    by: Group,
    /// The executions that slept: those of the process itself, and those of sleep(1) that it started.
    groups: BTreeSet<Group>,
    ns: u64,
    /// The length in nanoseconds of the longest of the process's sleeps.
    longest: u64,
}

/// How many times longer the sleeps of a process must be than the sleeps of a loop that waits for this process. A
/// guess: if the sleeps are about equally long, they do not show which process waits for the other.
const LONGER: u64 = 4;

/// The largest number of processes that are searched for sleeps that are not on the critical path, and the largest
/// number of stretches of each thread's time that are searched. A bound of the work.
const BESIDE: (usize, usize) = (200, 10_000);

/// Advice on the sleeps of one process together with the sleeps of another process at the same time. For example,
/// removing only the sleeps of a client that tries again and again saves nothing while its server still sleeps. `alone`
/// is the advice on the sleeps of the first process only. This function extends the change that `alone` proposes: the
/// change then also removes the sleeps of threads that, during the same time, only look from time to time after the
/// working threads of their processes.
fn with_sleeps_beside(
    facts: &BuildFacts<'_>,
    naps: &[Naps],
    alone: &mut Candidate,
) -> Option<Candidate> {
    if alone.kind != AdviceKind::Sleep {
        return None;
    }
    let slept: Vec<&Nap> = naps.iter().flat_map(|naps| &naps.slept).collect();
    let (from, to) = (
        slept.iter().map(|nap| nap.from).min()?,
        slept.iter().map(|nap| nap.to).max()?,
    );
    // If the program ended right after its last sleep, it only waited for its last timer and for no other process.
    let own_naps: Vec<Nap> = slept.iter().map(|nap| **nap).collect();
    if Pauses::of(facts, &own_naps).is_last() {
        return None;
    }
    let own: BTreeSet<Group> = slept.iter().flat_map(|nap| [nap.group, nap.by]).collect();
    // The sleeps of the ancestors are not considered: the ancestors of a process wait for the process, but the process
    // does not wait for its ancestors.
    let processes = own.iter().filter_map(|group| facts.execution(*group));
    let above: BTreeSet<ProcessIx> = processes
        .flat_map(|execution| facts.analysis.lineage(execution.process))
        .collect();
    let all = facts.all().filter(|(group, execution)| {
        execution.start < to
            && execution.end > from
            && !own.contains(group)
            && !above.contains(&execution.process)
    });
    let mut found = FoundSleeps::default();
    let groups: Vec<Group> = all.take(BESIDE.0).map(|(group, _)| group).collect();
    for group in groups {
        found.add(facts, group, from, to);
    }
    // In some processes, a thread only sleeps and looks from time to time after the working threads (`ticks`). The
    // sleeper goes on earlier only if such threads do not hold back the work of their processes, so their sleeps are
    // removed, too.
    let removed = alone.without.of.as_deref().unwrap_or_default();
    let removed = (0..).zip(removed).filter(|(_, is_in)| **is_in);
    let removed: BTreeSet<Group> = removed.map(|(group, _)| group).collect();
    let ticks = found.ticks.iter().copied();
    let without_ticks = facts.set(removed.iter().copied().chain(ticks));
    alone.without.of = Some(without_ticks);
    let longest = found
        .by_sleeper
        .into_values()
        .filter(|beside| !own.contains(&beside.by))
        .max_by_key(|beside| (beside.ns, std::cmp::Reverse(beside.by)))?;
    // Between naps that are far apart, other processes sleep for reasons of their own.
    if sum(slept.iter().copied()).saturating_mul(2) < to.since(from) {
        return None;
    }
    // Sleeps of another process count only if they take at least half of the time from the first to the last nap,
    // because shorter sleeps do not decide how long the napping process sleeps.
    if longest.ns.saturating_mul(2) < to.since(from) {
        return None;
    }
    let is_loop = || {
        let mut lengths: Vec<u64> = slept.iter().map(|nap| nap.length()).collect();
        lengths.sort_unstable();
        let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        lengths.len() >= LOOP && median.saturating_mul(LONGER) <= longest.longest
    };
    let is_loop = is_loop();
    let (name, time) = (facts.name(longest.by), units::time(longest.ns));
    let of = facts.set(removed.into_iter().chain(longest.groups.iter().copied()));
    Some(Candidate {
        finding: Phrase::with([&alone.finding, &name], |[alone, name]| {
            format!("{alone}, while {name} sleeps {time}")
        }),
        action: "wait for events, unless the times are meant".into(),
        without: Without::own(|kind, _| kind == TimeKind::Sleep, Some(of)),
        cap: alone.cap,
        superfluous: alone.superfluous,
        evidence: alone
            .evidence
            .iter()
            .copied()
            .chain(longest.groups)
            .collect(),
        certainty: Certainty::UnlessMeant,
        beside: !is_loop,
        ..Candidate::of(AdviceKind::Sleep)
    })
}

/// Sleeps that were ended by a timer, for each process that decided to sleep.
#[derive(Default)]
struct FoundSleeps {
    by_sleeper: BTreeMap<ProcessIx, Beside>,
    /// The executions in which a thread sleeps again and again while other threads of its process work, as threads of a
    /// runtime do.
    ticks: BTreeSet<Group>,
}

impl FoundSleeps {
    /// Adds the sleeps of an execution between the times `from` and `to` to the sums of the process that decided to
    /// sleep.
    fn add(&mut self, facts: &BuildFacts<'_>, group: Group, from: Ktime, to: Ktime) {
        let (Some(execution), Some(timeline)) = (facts.execution(group), &facts.analysis.timeline)
        else {
            return;
        };
        let begin = from.max(execution.start);
        let end = to.min(execution.end);
        for thread in &facts.analysis.process(execution.process).threads {
            let sleeps = timeline.since(*thread, begin).take(BESIDE.1);
            let sleeps = sleeps.take_while(|stretch| stretch.from < end);
            let sleeps = sleeps.filter(|stretch| {
                stretch.doing == Bucket::Wait(Wait::Sleep)
                    && facts.analysis.wait_end(*thread, stretch).is_timer()
            });
            let is_tick = |stretch: &Stretch| {
                let nap = Nap {
                    thread: *thread,
                    group,
                    by: group,
                    from: stretch.from,
                    to: stretch.to,
                    ran: stretch.to,
                };
                is_beside_work(facts, &nap)
            };
            let (ticks, sleeps): (Vec<Stretch>, Vec<Stretch>) = sleeps.partition(is_tick);
            if !ticks.is_empty() {
                self.ticks.insert(group);
            }
            let lengths = sleeps
                .iter()
                .map(|stretch| stretch.to.min(end).since(stretch.from.max(begin)));
            let ns = lengths.clone().fold(0, u64::saturating_add);
            let longest = lengths.max().unwrap_or(0);
            let (process, at) = sleeper(facts.analysis, execution.process, begin);
            let by = facts.groups.at(process, at).unwrap_or(group);
            if ns == 0 {
                continue;
            }
            let beside = self.by_sleeper.entry(process).or_insert_with(|| Beside {
                by,
                groups: BTreeSet::new(),
                ns: 0,
                longest: 0,
            });
            beside.longest = beside.longest.max(longest);
            beside.groups.insert(group);
            beside.ns = beside.ns.saturating_add(ns);
        }
    }
}

/// The advice on the sleeps of some processes, if these sleeps are long enough for a line. Either all of the sleeps are
/// in loops that sleep and check, or none of them is. `of_others` returns whether another line of advice already
/// reports the sleeps of an execution.
fn of_naps(
    facts: &BuildFacts<'_>,
    naps: &[Naps],
    of_others: impl Fn(Group) -> bool,
) -> Option<Candidate> {
    // Processes that slept for less than a twentieth of the longest sleeper's time are left out of the line of advice.
    let longest = naps.iter().map(|naps| sum(&naps.slept)).max().unwrap_or(0);
    let counts = |naps: &&Naps| sum(&naps.slept).saturating_mul(SMALL) >= longest;
    let naps: Vec<&Naps> = naps.iter().filter(counts).collect();
    let mut slept: Vec<Nap> = naps.iter().flat_map(|naps| &naps.slept).copied().collect();
    slept.sort_by_key(|nap| nap.from);
    let sum = sum(&slept);
    let longest = slept.iter().map(Nap::length).max()?;
    let sleepers: BTreeSet<Group> = slept.iter().map(|nap| nap.by).collect();
    // Sleeps as short as those of a language's runtime matter only if, together, they take a tenth of the build's time.
    // A server that a signal ends may have a runtime that sleeps until its threads have stopped, as the Java VM does.
    let is_ended = |group: &Group| {
        let execution = facts.execution(*group);
        execution.is_some_and(|execution| ends_by_signal(facts, execution.process))
    };
    let are_few = sum.saturating_mul(10) < facts.wall;
    if longest <= RUNTIMES && (are_few || sleepers.iter().all(is_ended)) {
        return None;
    }
    let (name, s) = facts.names(*sleepers.first()?, sleepers.iter().copied());
    let times = |count: usize| match count {
        1 => String::new(),
        count => format!(", {} times", units::count(count as u64)),
    };
    let intervals = || naps.iter().filter_map(|naps| Some(naps.checks?.0));
    let caps = naps.iter().filter_map(|naps| {
        let (interval, loops) = naps.checks?;
        Some(interval.saturating_mul(loops))
    });
    let mut certainty = Certainty::Sure;
    let (kind, finding, action, cap) = match (intervals().min(), intervals().max()) {
        (Some(least), Some(most)) => (
            AdviceKind::Poll,
            {
                let interval = if is_equal(least, most) {
                    units::time(most)
                } else {
                    units::range(least, most)
                };
                // Sleeps that are much shorter than the longest one do not belong to the loop, so `count` leaves such
                // sleeps out.
                let count = naps.iter().map(|naps| naps.count).sum();
                Phrase::with([&name], |[name]| {
                    format!("{name} check{s} every {interval}{}", times(count))
                })
            },
            "check more often, or wait for the event",
            caps.fold(0, u64::saturating_add).min(sum),
        ),
        _ => {
            let tries = slept.len() >= TRIES && sleepers.len() == 1;
            let awaited = tries.then(|| polls::awaited_work(facts, &slept, longest));
            let awaited = awaited.flatten().map(|ix| facts.analysis.process(ix));
            // An early wake-up may cut a sleep into several parts, so `count` leaves out the short parts.
            let count = naps.iter().map(|naps| naps.count).sum();
            let (time, times) = (units::time(sum), times(count));
            let needed = asked_work(facts, &slept).saturating_add(starting(facts, &slept));
            let cap = sum.saturating_sub(needed);
            let cap = cap.saturating_add(queued_before(facts, &slept));
            match awaited.filter(|process| process.status == Some(0)) {
                Some(process) => (
                    AdviceKind::Sleep,
                    Phrase::with([&name, &label::phrase(process)], |[name, awaited]| {
                        format!("{name} sleep{s} {time}{times}, until {awaited} ends")
                    }),
                    "let it end earlier, or hold its lock or file for less time",
                    cap,
                ),
                None => {
                    let pauses = Pauses::of(facts, &slept);
                    certainty = Certainty::unless_meant_if(pauses.may_be_meant());
                    let finding =
                        Phrase::with([&name], |[name]| pauses.finding(name, s, &time, &times));
                    (AdviceKind::Sleep, finding, pauses.action(), cap)
                }
            }
        }
    };
    let of = sleeping(facts, &slept, of_others);
    Some(Candidate {
        finding,
        action: action.into(),
        without: Without::own(|kind, _| kind == TimeKind::Sleep, Some(of)),
        cap,
        superfluous: naps
            .iter()
            .map(|naps| naps.superfluous)
            .fold(Superfluous::default(), Superfluous::plus),
        certainty,
        evidence: slept.iter().map(|nap| nap.group).collect(),
        ..Candidate::of(kind)
    })
}

/// The sleeps of another process are reported in the same line of advice as those of the process that slept longest, if
/// the sum of the other process's sleeps is at least the sum of the longest sleeper's divided by this number. A guess:
/// with smaller sums, the line would name a process whose sleeps do not matter.
const SMALL: u64 = 20;

/// The sleeps that one process decided on while it ran one program.
struct Naps {
    slept: Vec<Nap>,
    /// The number of the program's sleeps that are long enough to be reported one by one.
    count: usize,
    /// For loops that sleep and check for something: the length of one sleep in nanoseconds, and the number of loops.
    /// `None` for other sleeps.
    checks: Option<(u64, u64)>,
    superfluous: Superfluous,
}

impl Naps {
    fn of(facts: &BuildFacts<'_>, slept: Vec<Nap>) -> Naps {
        let longest = slept.iter().map(Nap::length).max().unwrap_or(0);
        // A sleep that is shorter than a tenth of the longest one does not belong to the loop.
        let long = slept.iter().filter(|nap| is_long(nap, longest));
        let long: Vec<Nap> = long.copied().collect();
        let checks = interval(facts, &long);
        Naps {
            count: long.len(),
            // For loops that check for the end of some work, the time for which that work waited for a CPU is added
            // later (`WithheldTime::add_polled`).
            superfluous: if checks.is_some() {
                Superfluous::default()
            } else {
                superfluous(facts, &long)
            },
            checks,
            slept,
        }
    }
}

/// The subject of a line of advice on sleeps: a program, or a test runner with its tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sleeper<'f> {
    Program(&'f ProgramName),
    /// A test runner. The line of advice is about the tests of all processes that run it.
    TestsOf(&'f ProgramName),
}

/// Whether a build tool itself slept, which nobody can change. A sleep(1) that make or xargs starts does not count,
/// because it belongs to whoever wrote the recipe.
fn is_tools(facts: &BuildFacts<'_>, slept: &Nap) -> bool {
    let role = facts.role(slept.by);
    let has_role = !matches!(
        role,
        None | Some(Role::Shell | Role::Tests | Role::Packages)
    );
    slept.group == slept.by && (has_role || facts.runs_containers(slept.by))
}

/// The child of `process` for which it is proven that `process` repeatedly checked whether the child had ended, and
/// finally killed the child; `None` if there is no such child. The proof fails if `process` started other children
/// between the sleeps. If `process` succeeded, the proof also fails in two other cases: all sleeps are equally long, or
/// another child started or ended between the last sleep and the kill. In the last case `process` waited for that other
/// child, and only stopped a server at the end. `slept` has the sleeps of the process in order.
fn given_up<'a>(facts: &BuildFacts<'a>, process: ProcessIx, slept: &[Nap]) -> Option<&'a Process> {
    let longest = slept.iter().map(Nap::length).max().unwrap_or(0);
    let shortest = slept.iter().map(Nap::length).min().unwrap_or(0);
    let last = slept.last().map_or(Ktime(0), |nap| nap.to);
    if slept.len() < LOOP || polls::works_between(facts, process, slept) {
        return None;
    }
    let analysis = facts.analysis;
    let process = analysis.process(process);
    let children = || {
        let children = process.children.iter();
        let children = children.map(|ix| analysis.process(*ix));
        children.filter(|child| child.end >= last)
    };
    let by_signal = |child: &Process| exit::killed_by(child.status).is_some();
    // The first start or end of another child after the last sleep. Children that a signal ended do not count, because
    // the process may kill several children at once.
    let others = children().filter(|child| !by_signal(child) && !label::program(child).is("sleep"));
    let other = others.map(|child| {
        if child.start >= last {
            child.start
        } else {
            child.end
        }
    });
    let other = other.min();
    let failed = exit::failed(process.status);
    if !failed && is_equal(shortest, longest) {
        return None;
    }
    let mut killed =
        children().filter(|child| by_signal(child) && child.end.since(last) <= longest);
    killed.find(|child| {
        let alone = other.is_none_or(|other| other > child.end);
        (failed || alone) && lives(slept, child.start, child.end)
    })
}

/// Whether most of the given sleeps lie between the times `start` and `end`. The sleeps are sorted by time.
fn lives(slept: &[Nap], start: Ktime, end: Ktime) -> bool {
    let until = slept.partition_point(|nap| nap.from <= end);
    let inside = until.saturating_sub(slept.partition_point(|nap| nap.from < start));
    inside * 2 > slept.len()
}

/// For each execution of a program, whether the proposed change removes the sleeps of this execution. The change
/// removes the sleeps of each execution that slept on the critical path. The change also removes the sleeps of other
/// executions of the same program, if the program that decided on the sleeps is also the same as on the critical path.
/// Executions that `of_others` selects are reported by another line of advice and are left out.
fn sleeping(
    facts: &BuildFacts<'_>,
    slept: &[Nap],
    of_others: impl Fn(Group) -> bool,
) -> Box<[bool]> {
    let program = |group: Group| facts.execution(group).map(|execution| &execution.program);
    let on_path = || slept.iter().map(|nap| nap.group);
    let programs: BTreeSet<_> = on_path().map(program).collect();
    let by: BTreeSet<_> = slept.iter().map(|nap| program(nap.by)).collect();
    let all = facts.all().filter(|(group, execution)| {
        let owner = execution.owner.and_then(program);
        programs.contains(&program(*group))
            && (by.contains(&program(*group)) || by.contains(&owner))
            && !of_others(*group)
    });
    let all = all.map(|(group, _)| group);
    facts.set(all.chain(on_path()))
}

/// Whether two lengths of sleeps differ by no more than the delay with which a timer may end, so that they count as
/// equal.
fn is_equal(shorter: u64, longer: u64) -> bool {
    longer.saturating_mul(4) <= shorter.saturating_mul(5)
}

/// The length in nanoseconds of one sleep, and the number of loops, if the given sleeps belong to loops that sleep and
/// check whether a child's work is done. Such a loop notices the end of the work at most one sleep late.
fn interval(facts: &BuildFacts<'_>, slept: &[Nap]) -> Option<(u64, u64)> {
    let mut lengths: Vec<u64> = slept.iter().map(Nap::length).collect();
    lengths.sort_unstable();
    // The shortest fifth and the longest tenth of the sleeps are ignored: some sleeps end late or are cut short, and
    // some loops begin with shorter sleeps.
    let odd = lengths.len() / 10;
    let shortest = *lengths.get(lengths.len() / 5)?;
    let longest = *lengths.get(lengths.len().checked_sub(odd + 1)?)?;
    if slept.len() < LOOP || !is_equal(shortest, longest) {
        return None;
    }
    Some((longest, polls::loops(facts, slept, longest)?))
}

#[cfg(test)]
mod tests {
    use tr_analyze::model::ThreadIx;

    use super::*;

    #[test]
    fn a_life_has_most_of_the_sleeps() {
        let slept = [10, 20, 30, 40].map(|from| Nap {
            thread: ThreadIx(0),
            group: 0,
            by: 0,
            from: Ktime(from),
            to: Ktime(from + 5),
            ran: Ktime(from + 5),
        });
        for (start, end, most) in [
            (0, 100, true),
            (10, 30, true),
            (11, 40, true),
            (20, 39, false),
            (31, 100, false),
            (50, 100, false),
            (30, 20, false),
        ] {
            let lives = lives(&slept, Ktime(start), Ktime(end));
            assert_eq!(lives, most, "{start} to {end}");
        }
    }
}
