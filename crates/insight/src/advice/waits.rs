//! Waits on the critical path.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::awaited::WaitReason;
use tr_analyze::critical_path::{Kind as Time, Segment};
use tr_analyze::dns::Lookup;
use tr_analyze::killed;
use tr_analyze::model::{Process, ProcessIx, ThreadIx};
use tr_analyze::network::{self, Waited};
use tr_analyze::programs::{sleeper, Group};
use tr_analyze::schedule::MOST;
use tr_analyze::timeline::{Actor, Bucket, Wait};
use tr_analyze::what_if::Without;
use tr_format::event::{Ktime, Reason};
use tr_format::network::Address;
use tr_programs::tools::Role;

use super::facts::{add, Facts};
use super::polls;
use super::{Candidate, Kind};
use crate::memory;
use crate::network::{Host, Remotes};
use crate::timeout::timed_out;
use crate::{exit, label};
use tr_text::units;

/// The least number of sleeps of a loop.
pub(super) const LOOP: usize = 3;
/// The longest sleep in ns of a runtime between looks at its own threads (Go's `sysmon` doubles
/// its sleeps up to 10 ms, runtime/proc.go), which nobody can change.
const RUNTIMES: u64 = 12_000_000;
/// The most queries before a wait that are searched for one without an answer.
const QUERIES: usize = 1000;

pub(super) fn candidates(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut all = sleeps(facts);
    all.extend(fetches(facts));
    all.extend(disk(facts));
    all.extend(locks(facts));
    all
}

/// A sleep on the critical path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nap {
    pub group: Group,
    /// The execution that decided about it.
    pub by: Group,
    pub from: Ktime,
    pub to: Ktime,
    /// The time at which the task ran again. Beside load that is long after the end of the sleep.
    pub ran: Ktime,
}

impl Nap {
    fn length(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// The sleeps, by the program that decided about them.
fn sleeps(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut by_process: BTreeMap<ProcessIx, Vec<Nap>> = BTreeMap::new();
    let mut segments = facts.segments().peekable();
    while let Some((segment, group, reason)) = segments.next() {
        let (Time::Sleep, Some(group)) = (segment.kind, group) else {
            continue;
        };
        let queued = segments
            .peek()
            .map(|(next, ..)| next)
            .filter(|next| next.kind == Time::RunQueue && next.thread == segment.thread);
        // It waits for something else, and an alarm ends that.
        if killed::has_no_timeout(reason)
            || killed::gave_up(facts.analysis, segment.thread, segment.from)
        {
            continue;
        }
        let process = facts.analysis.thread(segment.thread).process;
        let (process, at) = sleeper(facts.analysis, process, segment.from);
        let by = facts.groups.at(process, at).unwrap_or(group);
        let slept = Nap {
            group,
            by,
            from: segment.from,
            to: segment.to,
            ran: queued.map_or(segment.to, |queued| queued.to),
        };
        if !is_tools(facts, &slept) {
            by_process.entry(process).or_default().push(slept);
        }
    }
    // A test is a test, whatever its file is called.
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
    for (process, slept) in by_process {
        if timed_out(facts.analysis.process(process)) || gives_up(facts, process, &slept) {
            continue;
        }
        let mut own: BTreeMap<Sleeper<'_>, Vec<Nap>> = BTreeMap::new();
        for nap in slept {
            if let Some(sleeper) = of(nap.by) {
                own.entry(sleeper).or_default().push(nap);
            }
        }
        for (sleeper, slept) in own {
            let naps = Naps::of(facts, slept);
            let polls = naps.checks.is_some();
            by_sleeper.entry((sleeper, polls)).or_default().push(naps);
        }
    }
    // Each has a set of all groups: a forged file has thousands of sleepers.
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
        let Some(candidate) = of_naps(facts, &naps, |group| of_others(own, group)) else {
            continue;
        };
        // The longest sleeps alone: beside a server that sleeps, short ones of others change nothing.
        let beside = (own == 0).then(|| with_sleeps_beside(facts, &naps, &candidate));
        candidates.push(candidate);
        candidates.extend(beside.flatten());
    }
    candidates
}

/// The sleeps of one process beside the path.
struct Beside {
    /// The execution that decided about the longest of them.
    by: Group,
    /// The executions that sleep.
    groups: BTreeSet<Group>,
    ns: u64,
}

/// The largest number of processes that are searched for sleeps beside the path, and of stretches of each of their
/// threads.
const BESIDE: (usize, usize) = (200, 10_000);

/// Advice on sleeps together with those of another process at the same time: a client that tries again and again while
/// its server still sleeps saves nothing without its own sleeps alone.
fn with_sleeps_beside(facts: &Facts<'_>, naps: &[Naps], alone: &Candidate) -> Option<Candidate> {
    if alone.kind != Kind::Sleep {
        return None;
    }
    let slept: Vec<&Nap> = naps.iter().flat_map(|naps| &naps.slept).collect();
    let (from, to) = (
        slept.iter().map(|nap| nap.from).min()?,
        slept.iter().map(|nap| nap.to).max()?,
    );
    let own: BTreeSet<Group> = slept.iter().flat_map(|nap| [nap.group, nap.by]).collect();
    let all = facts.all().filter(|(group, execution)| {
        execution.start < to && execution.end > from && !own.contains(group)
    });
    let mut by_sleeper: BTreeMap<ProcessIx, Beside> = BTreeMap::new();
    let groups: Vec<Group> = all.take(BESIDE.0).map(|(group, _)| group).collect();
    for group in groups {
        add_sleeps(facts, group, from, to, &mut by_sleeper);
    }
    let longest = by_sleeper
        .into_values()
        .filter(|beside| !own.contains(&beside.by))
        .max_by_key(|beside| (beside.ns, std::cmp::Reverse(beside.by)))?;
    // Less than half of the time decides nothing.
    if longest.ns.saturating_mul(2) < to.since(from) {
        return None;
    }
    let (name, time) = (facts.name(longest.by), units::time(longest.ns));
    let of = alone.without.of.as_deref().unwrap_or_default();
    let of = (0..).zip(of).filter(|(_, is_in)| **is_in);
    let of = facts.set(
        of.map(|(group, _)| group)
            .chain(longest.groups.iter().copied()),
    );
    Some(Candidate {
        finding: format!("{}, while {name} sleeps {time}", alone.finding),
        action: "wait for the events, not for a time".into(),
        without: Without::own(|kind, _| kind == Time::Sleep, Some(of)),
        cap: alone.cap,
        evidence: alone
            .evidence
            .iter()
            .copied()
            .chain(longest.groups)
            .collect(),
        beside: true,
        ..Candidate::of(Kind::Sleep)
    })
}

/// Adds the sleeps of an execution in a time that a timer ended, to those of the process that decided about them.
fn add_sleeps(
    facts: &Facts<'_>,
    group: Group,
    from: Ktime,
    to: Ktime,
    by_sleeper: &mut BTreeMap<ProcessIx, Beside>,
) {
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
        let ns = sleeps
            .map(|stretch| stretch.to.min(end).since(stretch.from.max(begin)))
            .fold(0, u64::saturating_add);
        let (process, at) = sleeper(facts.analysis, execution.process, begin);
        let by = facts.groups.at(process, at).unwrap_or(group);
        if ns == 0 {
            continue;
        }
        let beside = by_sleeper.entry(process).or_insert_with(|| Beside {
            by,
            groups: BTreeSet::new(),
            ns: 0,
        });
        beside.groups.insert(group);
        beside.ns = beside.ns.saturating_add(ns);
    }
}

/// The advice on the sleeps of some processes, all of which are in loops, or none. `of_others`: the
/// executions on the path whose sleeps another line reports.
fn of_naps(
    facts: &Facts<'_>,
    naps: &[Naps],
    of_others: impl Fn(Group) -> bool,
) -> Option<Candidate> {
    // Of a process that slept for a twentieth of another one's time nothing is told.
    let longest = naps.iter().map(|naps| sum(&naps.slept)).max().unwrap_or(0);
    let counts = |naps: &&Naps| sum(&naps.slept).saturating_mul(SMALL) >= longest;
    let naps: Vec<&Naps> = naps.iter().filter(counts).collect();
    let mut slept: Vec<Nap> = naps.iter().flat_map(|naps| &naps.slept).copied().collect();
    slept.sort_by_key(|nap| nap.from);
    let sum = sum(&slept);
    let longest = slept.iter().map(Nap::length).max()?;
    // A program's own sleeps of this length matter if there are many.
    if longest <= RUNTIMES && sum.saturating_mul(10) < facts.wall {
        return None;
    }
    let sleepers: BTreeSet<Group> = slept.iter().map(|nap| nap.by).collect();
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
    let (kind, finding, action, cap) = match (intervals().min(), intervals().max()) {
        (Some(least), Some(most)) => (
            Kind::Poll,
            {
                let interval = if is_equal(least, most) {
                    units::time(most)
                } else {
                    units::range(least, most)
                };
                // Shorter sleeps are none of the loop's.
                let count = naps.iter().map(|naps| naps.count).sum();
                format!("{name} check{s} every {interval}{}", times(count))
            },
            "check more often, or wait for the event",
            caps.fold(0, u64::saturating_add).min(sum),
        ),
        _ => (
            Kind::Sleep,
            format!("{name} sleep{s} {}{}", units::time(sum), times(slept.len())),
            "wait for the event, not for a time",
            sum,
        ),
    };
    let of = sleeping(facts, &slept, of_others);
    Some(Candidate {
        finding,
        action: action.into(),
        without: Without::own(|kind, _| kind == Time::Sleep, Some(of)),
        cap,
        evidence: slept.iter().map(|nap| nap.group).collect(),
        ..Candidate::of(kind)
    })
}

/// The divisor of the longest sleeps from which on other sleeps are reported beside them.
const SMALL: u64 = 20;

/// The sum of some sleeps, in ns.
fn sum<'s>(slept: impl IntoIterator<Item = &'s Nap>) -> u64 {
    let lengths = slept.into_iter().map(Nap::length);
    lengths.fold(0, u64::saturating_add)
}

/// The sleeps of one process by one program.
struct Naps {
    slept: Vec<Nap>,
    /// The number of the long ones.
    count: usize,
    /// For loops that sleep and check: the length of a sleep in nanoseconds, and the number of loops.
    checks: Option<(u64, u64)>,
}

impl Naps {
    fn of(facts: &Facts<'_>, slept: Vec<Nap>) -> Naps {
        let longest = slept.iter().map(Nap::length).max().unwrap_or(0);
        // A sleep of a tenth of the longest one is none of the loop's.
        let long = |nap: &&Nap| nap.length().saturating_mul(10) >= longest;
        let long: Vec<Nap> = slept.iter().filter(long).copied().collect();
        Naps {
            count: long.len(),
            checks: interval(facts, &long),
            slept,
        }
    }
}

/// The program or the test runner whose sleeps one line of advice covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sleeper<'f> {
    Program(&'f str),
    /// The tests of all runners of this program.
    TestsOf(&'f str),
}

/// Whether a build tool itself slept, which nobody can change. A sleep(1) that make or xargs starts belongs
/// to whoever wrote the recipe.
fn is_tools(facts: &Facts<'_>, slept: &Nap) -> bool {
    let has_role = !matches!(facts.role(slept.by), None | Some(Role::Shell | Role::Tests));
    slept.group == slept.by && (has_role || facts.runs_containers(slept.by))
}

/// Whether a process checks repeatedly whether a child has ended, and finally kills it. A process that starts other
/// children between its sleeps does not wait for that child, and a process that ends well after equal sleeps is not
/// proven to. If it gives up: without its sleeps it
/// would only give up earlier. A process that has other children between its last sleep and the kill waited
/// for what those need, and ends a server. `slept`: the sleeps of the process, in order.
fn gives_up(facts: &Facts<'_>, process: ProcessIx, slept: &[Nap]) -> bool {
    let longest = slept.iter().map(Nap::length).max().unwrap_or(0);
    let shortest = slept.iter().map(Nap::length).min().unwrap_or(0);
    let last = slept.last().map_or(Ktime(0), |nap| nap.to);
    if slept.len() < LOOP || polls::works_between(facts, process, slept) {
        return false;
    }
    let process = facts.analysis.process(process);
    let children = || {
        let children = process.children.iter();
        let children = children.map(|ix| facts.analysis.process(*ix));
        children.filter(|child| child.end >= last)
    };
    let by_signal = |child: &Process| exit::killed_by(child.status).is_some();
    // The first start or end after the last sleep. All that end by a signal may be given up at once.
    let others = children().filter(|child| !by_signal(child) && label::program(child) != "sleep");
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
        return false;
    }
    let mut killed =
        children().filter(|child| by_signal(child) && child.end.since(last) <= longest);
    killed.any(|child| {
        let alone = other.is_none_or(|other| other > child.end);
        (failed || alone) && lives(slept, child.start, child.end)
    })
}

/// Whether a life has most of some sleeps, which are in order.
fn lives(slept: &[Nap], start: Ktime, end: Ktime) -> bool {
    let until = slept.partition_point(|nap| nap.from <= end);
    let inside = until.saturating_sub(slept.partition_point(|nap| nap.from < start));
    inside * 2 > slept.len()
}

/// The executions that sleep: those on the path, and those beside the path that do the same.
fn sleeping(facts: &Facts<'_>, slept: &[Nap], of_others: impl Fn(Group) -> bool) -> Box<[bool]> {
    let program = |group: Group| {
        facts
            .execution(group)
            .map(|execution| execution.program.as_str())
    };
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

/// Whether two lengths differ by no more than what a timer is late.
fn is_equal(shorter: u64, longer: u64) -> bool {
    longer.saturating_mul(4) <= shorter.saturating_mul(5)
}

/// The length of a sleep, and the number of loops, for loops that sleep and check whether a child's work is
/// done. Such a loop notices the end at most one sleep late.
fn interval(facts: &Facts<'_>, slept: &[Nap]) -> Option<(u64, u64)> {
    let mut lengths: Vec<u64> = slept.iter().map(Nap::length).collect();
    lengths.sort_unstable();
    // A few sleeps of many are late, or cut short.
    let odd = lengths.len() / 10;
    let shortest = *lengths.get(odd)?;
    let longest = *lengths.get(lengths.len().checked_sub(odd + 1)?)?;
    if slept.len() < LOOP || !is_equal(shortest, longest) {
        return None;
    }
    Some((longest, polls::loops(facts, slept, longest)?))
}

/// A wait for the network on the path.
struct Fetch<'f> {
    group: Group,
    program: &'f str,
    ns: u64,
    /// The server that did not answer, if a time-out ended the fetch.
    silent: Option<Silent>,
}

/// A server that did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Silent {
    NameServer(Address),
    Host(Host),
    Unknown,
}

/// The waits for the network, the last ones first. A wait that its time-out ended had no answer if the thread
/// waits for no answer afterwards: a program may call poll(2) repeatedly.
fn fetched<'f>(facts: &'f Facts<'_>, waited: &[Waited]) -> Vec<Fetch<'f>> {
    let analysis = facts.analysis;
    let among_themselves = network::among_themselves(analysis);
    let timeline = analysis.timeline.as_ref();
    let mut unanswered: BTreeMap<ProcessIx, Vec<&Lookup>> = BTreeMap::new();
    for lookup in analysis
        .network
        .lookups
        .iter()
        .filter(|lookup| lookup.answered.is_none())
    {
        if let Some(thread) = lookup.thread {
            let process = analysis.thread(thread).process;
            unanswered.entry(process).or_default().push(lookup);
        }
    }
    let mut answered = BTreeSet::new();
    let segments: Vec<_> = facts.segments().collect();
    let segments = segments.iter().rev();
    let segments = segments.filter(|(segment, ..)| segment.kind == Time::Network);
    let fetch = |((segment, group, _), waited): (&(&Segment, Option<Group>, Reason), &Waited)| {
        let wait = timeline?.around(segment.thread, segment.from)?;
        let late = wait.waker().is_timer();
        let query = || {
            let queries = unanswered.get(&waited.process)?;
            let asked = queries.partition_point(|lookup| lookup.asked <= wait.to);
            let mut last = queries.get(..asked)?.iter().rev().take(QUERIES);
            last.find(|lookup| lookup.waited_until() >= wait.from)
        };
        let query = query().filter(|_| waited.connection.is_none());
        let silent = match query {
            _ if !late => None,
            Some(query) => Some(Silent::NameServer(query.query.server)),
            None if answered.contains(&segment.thread) => None,
            None => Some(Host::waited(analysis, waited).map_or(Silent::Unknown, Silent::Host)),
        };
        if !late {
            answered.insert(segment.thread);
        }
        let execution = facts.execution((*group)?)?;
        // The build's own programs talk to one another, and so do it and a server of this machine: nothing is
        // fetched.
        let own = among_themselves.contains(&execution.process);
        let near = silent.is_none() && waited.local;
        (!own && !near).then_some(Fetch {
            group: (*group)?,
            program: &execution.program,
            ns: segment.length(),
            silent,
        })
    };
    segments
        .zip(waited.iter().rev())
        .filter_map(fetch)
        .collect()
}

fn fetches(facts: &Facts<'_>) -> Vec<Candidate> {
    let waited = network::waited(facts.analysis, facts.path);
    let mut by_program: BTreeMap<&str, Vec<Fetch<'_>>> = BTreeMap::new();
    for fetch in fetched(facts, &waited) {
        by_program.entry(fetch.program).or_default().push(fetch);
    }
    let candidate = |(program, fetches): (&str, Vec<Fetch<'_>>)| {
        let sum = |silent: bool| -> u64 {
            let counts = fetches
                .iter()
                .filter(|fetch| fetch.silent.is_some() || !silent);
            counts.map(|fetch| fetch.ns).fold(0, u64::saturating_add)
        };
        let unsure = sum(true).saturating_mul(2) > sum(false);
        let cap = sum(unsure);
        let told = fetches
            .iter()
            .filter(|fetch| fetch.silent.is_some() || !unsure);
        let groups: BTreeSet<Group> = told.map(|fetch| fetch.group).collect();
        let (name, s) = facts.names(*groups.first()?, groups.iter().copied());
        let time = units::time(cap);
        let (finding, action) = if unsure {
            let who: BTreeSet<Silent> = fetches.iter().filter_map(|fetch| fetch.silent).collect();
            let (who, action) = silence(&who, &Remotes::new(facts.analysis, &waited));
            (
                format!("{name} wait{s} {time} without an answer from {who}"),
                action,
            )
        } else {
            (
                format!("{name} wait{s} {time} for the network"),
                "keep in a cache what it fetches".into(),
            )
        };
        // Those beside the path wait as well.
        let all = facts
            .all()
            .filter(|(_, execution)| execution.program == program);
        Some(Candidate {
            finding,
            action,
            without: Without::own(
                |kind, _| kind == Time::Network,
                Some(facts.set(all.map(|(group, _)| group))),
            ),
            cap,
            unsure,
            evidence: groups.into_iter().collect(),
            ..Candidate::of(Kind::Network)
        })
    };
    by_program.into_iter().filter_map(candidate).collect()
}

/// From whom no answer came, and what to do.
fn silence(who: &BTreeSet<Silent>, remotes: &Remotes) -> (String, String) {
    let servers = who
        .iter()
        .all(|silent| matches!(silent, Silent::NameServer(_)));
    let (who, why) = match who.first() {
        Some(Silent::NameServer(server)) if who.len() == 1 => {
            (format!("the name server {server}"), "it does not")
        }
        Some(Silent::Host(host)) if who.len() == 1 => (remotes.text(*host), "it does not"),
        _ if servers => ("name servers".into(), "those of resolv.conf do not"),
        _ => ("the network".into(), "the other ends do not"),
    };
    (who, format!("find out why {why} answer"))
}

/// Waits for disks and files: for memory that is there, for `fsync`, and others.
fn disk(facts: &Facts<'_>) -> Vec<Candidate> {
    type Own = fn(Time, Reason) -> bool;
    let faults: Own = |kind, reason| kind == Time::Disk && reason == Reason::PageFault;
    // Without evidence of that the pages are those of files that were never read before.
    let (memory, faults): (Own, Own) = if memory::reads_again(facts.analysis) {
        (
            |kind, reason| {
                kind == Time::Memory || kind == Time::Disk && reason == Reason::PageFault
            },
            |_, _| false,
        )
    } else {
        (|kind, _| kind == Time::Memory, faults)
    };
    let sync: Own = |kind, reason| kind == Time::Disk && reason == Reason::Sync;
    let others: Own =
        |kind, reason| kind == Time::Disk && !matches!(reason, Reason::PageFault | Reason::Sync);
    let kinds = [
        (
            Kind::Memory,
            memory,
            "for memory",
            "give it more memory, or run fewer jobs",
        ),
        (
            Kind::Disk,
            faults,
            "for pages of files",
            "keep the files in the page cache, or on a faster disk",
        ),
        (
            Kind::Disk,
            sync,
            "in fsync",
            "build in memory (tmpfs), or without fsync (eatmydata)",
        ),
        (
            Kind::Disk,
            others,
            "for disks and files",
            "keep the files in the page cache, or on a faster disk",
        ),
    ];
    let candidate = |(kind, own, what, action): (Kind, Own, &str, &str)| {
        let mut by_group: BTreeMap<Group, u64> = BTreeMap::new();
        for (segment, group, reason) in facts.segments() {
            if let Some(group) = group.filter(|_| own(segment.kind, reason)) {
                add(&mut by_group, group, segment.length());
            }
        }
        let (sum, longest) = facts.longest(&by_group)?;
        let (name, s) = facts.names(longest, by_group.keys().copied());
        Some(Candidate {
            finding: format!("{name} wait{s} {} {what}", units::time(sum)),
            action: action.into(),
            without: Without::own(own, None),
            cap: sum,
            evidence: by_group.into_keys().collect(),
            ..Candidate::of(kind)
        })
    };
    kinds.into_iter().filter_map(candidate).collect()
}

fn is_file_lock(awaited: WaitReason, reason: Reason) -> bool {
    awaited == WaitReason::Lock && reason == Reason::FileLock
}

/// Waits for a file's lock that another process held.
fn locks(facts: &Facts<'_>) -> Option<Candidate> {
    let analysis = facts.analysis;
    let timeline = analysis.timeline.as_ref()?;
    let mut waited: BTreeMap<Group, u64> = BTreeMap::new();
    let mut holders: BTreeMap<Group, u64> = BTreeMap::new();
    let may_lock = |ix: &ThreadIx| timeline.may_wait(*ix, Reason::FileLock);
    for thread in analysis.thread_ids().filter(may_lock) {
        let process = analysis.thread(thread).process;
        for stretch in timeline.of(thread) {
            let lock = analysis
                .awaited(thread, &stretch)
                .is_some_and(|awaited| is_file_lock(awaited, stretch.reason));
            if !lock {
                continue;
            }
            if let Some(group) = facts.groups.at(process, stretch.from) {
                add(&mut waited, group, stretch.length());
            }
            if let Actor::Thread(holder) = stretch.waker() {
                let holder = analysis.thread(holder).process;
                if let Some(group) = facts.groups.at(holder, stretch.to) {
                    add(&mut holders, group, stretch.length());
                }
            }
        }
    }
    let (sum, longest) = facts.longest(&waited)?;
    let (waiter, s) = facts.names(longest, waited.keys().copied());
    let held = facts
        .longest(&holders)
        .map_or(String::new(), |(_, holder)| {
            format!(" of {}", facts.name(holder))
        });
    Some(Candidate {
        finding: format!("{waiter} wait{s} {} for a lock{held}", units::time(sum)),
        action: "give each its own file or directory".into(),
        without: Without {
            own: |kind, reason| kind != Time::OnCpu && reason == Reason::FileLock,
            waits: is_file_lock,
            of: None,
        },
        cap: sum,
        evidence: waited.into_keys().collect(),
        ..Candidate::of(Kind::Lock)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_has_most_of_the_sleeps() {
        let slept = [10, 20, 30, 40].map(|from| Nap {
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
