//! Gives advice on waits for disks and memory on the critical path of a build, and on all waits for file locks.

use std::collections::BTreeMap;

use tr_analyze::awaited::WaitReason;
use tr_analyze::critical_path::{Segment, TimeKind};
use tr_analyze::model::ThreadIx;
use tr_analyze::programs::Group;
use tr_analyze::timeline::Actor;
use tr_analyze::what_if::Without;
use tr_format::event::Reason;

use crate::candidate::{AdviceKind, Candidate, Certainty};
use crate::facts::{add, BuildFacts};
use tr_insight::resources::memory;
use tr_text::phrase::Phrase;
use tr_text::units;

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut all = disk(facts);
    all.extend(locks(facts));
    all
}

/// The least number of waits in fsync on the critical path for which fewer calls of fsync are advised. A guess: a
/// program with so many calls is a database that commits transactions.
const SYNCS: u64 = 100;

/// Advice on waits for disks and files: for missing memory, for `fsync`, and for other reasons.
fn disk(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    type Own = fn(TimeKind, Reason) -> bool;
    let faults: Own = |kind, reason| kind == TimeKind::Disk && reason == Reason::PageFault;
    // A page fault that waits for a disk means missing memory only if files were read again. Otherwise the missing page
    // belongs to a file that is read for the first time.
    let (memory, faults): (Own, Own) = if memory::reads_again(facts.analysis) {
        (
            |kind, reason| {
                kind == TimeKind::Memory || kind == TimeKind::Disk && reason == Reason::PageFault
            },
            |_, _| false,
        )
    } else {
        (|kind, _| kind == TimeKind::Memory, faults)
    };
    let sync: Own = |kind, reason| kind == TimeKind::Disk && reason == Reason::Sync;
    let others: Own = |kind, reason| {
        kind == TimeKind::Disk && !matches!(reason, Reason::PageFault | Reason::Sync)
    };
    let kinds = [
        (
            AdviceKind::Memory,
            memory,
            "for memory",
            "give it more memory, or run fewer jobs",
        ),
        (
            AdviceKind::Disk,
            faults,
            "for pages of files",
            "keep the files in the page cache, or on a faster disk",
        ),
        (
            AdviceKind::Disk,
            sync,
            "in fsync",
            "build in memory (tmpfs), or without fsync (eatmydata)",
        ),
        (
            AdviceKind::Disk,
            others,
            "for disks and files",
            "keep the files in the page cache, or on a faster disk",
        ),
    ];
    let requests = requests(facts);
    // The page cache avoids only reads, so it is not advised for programs that only write.
    let reads = |group: Group| {
        let process = facts.process(group);
        process.is_none_or(|process| process.resources.io.is_none_or(|(read, _)| read > 0))
    };
    let candidate = |(kind, own, what, action): (AdviceKind, Own, &str, &str)| {
        let mut by_group: BTreeMap<Group, u64> = BTreeMap::new();
        let (mut syncs, mut unproven) = (0u64, 0u64);
        for (segment, group, reason) in facts.segments() {
            if let Some(group) = group.filter(|_| own(segment.kind, reason)) {
                add(&mut by_group, group, segment.length());
                syncs += u64::from(reason == Reason::Sync);
                if !reads(group) && is_ended_by_task(facts, segment) {
                    unproven = unproven.saturating_add(segment.length());
                }
            }
        }
        let (sum, longest) = facts.longest(&by_group)?;
        // A worker of the kernel that ends the waits may itself have waited for a CPU, so such waits are not proven to
        // be waits for a disk. No advice is given if most of the waiting time is of this kind and all requests to disks
        // together took less than half of the waiting time.
        if unproven.saturating_mul(2) > sum && sum > requests.saturating_mul(2) {
            return None;
        }
        let (name, s) = facts.names(longest, by_group.keys().copied());
        let finding = Phrase::with([&name], |[name]| {
            format!("{name} wait{s} {} {what}", units::time(sum))
        });
        if syncs >= SYNCS {
            return Some(transactions(facts, finding, action, by_group));
        }
        let action = if kind == AdviceKind::Disk && !by_group.keys().copied().any(reads) {
            "build in memory (tmpfs), or on a faster disk"
        } else {
            action
        };
        Some(Candidate {
            finding,
            action: action.into(),
            without: Without::own(own, None),
            cap: sum,
            evidence: by_group.into_keys().collect(),
            ..Candidate::of(kind)
        })
    };
    kinds.into_iter().filter_map(candidate).collect()
}

/// The time in nanoseconds that all requests to disks of the machine took, summed over the requests; `u64::MAX` if no
/// requests were recorded.
fn requests(facts: &BuildFacts<'_>) -> u64 {
    let blocks = &facts.analysis.disks.blocks;
    if blocks.is_empty() {
        return u64::MAX;
    }
    let groups = blocks.iter().flat_map(|(_, block)| &block.groups);
    let took = groups.map(|group| group.latency);
    took.fold(0, u64::saturating_add)
}

/// Whether another task, such as a worker of the kernel, ended a wait of the critical path, and the recording does not
/// show which disk the thread waited for.
fn is_ended_by_task(facts: &BuildFacts<'_>, wait: &Segment) -> bool {
    let analysis = facts.analysis;
    let timeline = analysis.timeline.as_ref();
    let stretch = timeline.and_then(|timeline| timeline.around(wait.thread, wait.from));
    let by_task = stretch
        .is_some_and(|stretch| matches!(stretch.waker(), Actor::Outside(_) | Actor::Thread(_)));
    let disk = analysis.disks.waited.of(wait.thread, wait.from);
    by_task && disk.is_none()
}

/// Advice on programs with many calls of fsync, one for each transaction: they should do more in each transaction. The
/// work between the calls also becomes less, so that work counts for the largest possible gain, too.
fn transactions(
    facts: &BuildFacts<'_>,
    finding: Phrase,
    action: &str,
    by_group: BTreeMap<Group, u64>,
) -> Candidate {
    let all = facts.set(by_group.keys().copied());
    Candidate {
        finding,
        action: format!("do more in each transaction, or {action}"),
        cap: facts.on_path(&all, |kind, _| kind != TimeKind::RunQueue),
        without: Without::own(|kind, _| kind != TimeKind::RunQueue, Some(all)),
        certainty: Certainty::Unsure,
        evidence: by_group.into_keys().collect(),
        ..Candidate::of(AdviceKind::Disk)
    }
}

fn is_file_lock(awaited: WaitReason, reason: Reason) -> bool {
    awaited == WaitReason::Lock && reason == Reason::FileLock
}

/// Advice on waits for a file's lock that another process held, on the critical path or not.
fn locks(facts: &BuildFacts<'_>) -> Option<Candidate> {
    let analysis = facts.analysis;
    let timeline = analysis.timeline.as_ref()?;
    let mut waited: BTreeMap<Group, u64> = BTreeMap::new();
    let mut holders: BTreeMap<Group, u64> = BTreeMap::new();
    let mut until_timeout = 0u64;
    let may_lock = |ix: &ThreadIx| timeline.may_wait(*ix, Reason::FileLock);
    for thread in analysis.thread_ids().filter(may_lock) {
        let process = analysis.thread(thread).process;
        if !facts.own.has(process) {
            continue;
        }
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
            if stretch.waker().is_timer() {
                until_timeout = until_timeout.saturating_add(stretch.length());
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
        .map_or(Phrase::default(), |(_, holder)| {
            Phrase::with([&facts.name(holder)], |[holder]| format!(" of {holder}"))
        });
    let gives_up = until_timeout > sum / 2;
    let (held, action) = if gives_up {
        (
            ", until its time-out".into(),
            "find out who holds it, or give up sooner, unless the time is meant",
        )
    } else {
        (
            held,
            "hold it for less time, or give each its own file or directory, if they need not share it",
        )
    };
    Some(Candidate {
        finding: Phrase::with([&waiter, &held], |[waiter, held]| {
            format!("{waiter} wait{s} {} for a lock{held}", units::time(sum))
        }),
        action: action.into(),
        certainty: Certainty::unless_meant_if(gives_up),
        without: Without {
            own: |kind, reason| kind != TimeKind::OnCpu && reason == Reason::FileLock,
            waits: is_file_lock,
            of: None,
        },
        cap: sum,
        evidence: waited.into_keys().collect(),
        ..Candidate::of(AdviceKind::Lock)
    })
}
