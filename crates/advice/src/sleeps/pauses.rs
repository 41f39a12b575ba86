//! Finds how the sleeps of a program end, and which change may make the sleeps unnecessary.
//!
//! The recording contains neither the files that a program checks between its sleeps, nor the reasons for the sleeps.
//! So an advised action names the condition under which it helps, unless the condition is proven.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::ProcessIx;
use tr_analyze::status::{ended_by, is_crash, is_for, Purpose};
use tr_analyze::timeline::{Actor, Bucket};
use tr_format::event::{Ktime, Reason};

use crate::facts::BuildFacts;
use crate::sleeps::awaited::waits_for_children;
use crate::sleeps::nap::{long_naps, sum, Nap};
use tr_insight::processes::exit;

/// The longest time in nanoseconds between the last sleep of a program and the end of the program, if the sleep decided
/// when the program ended. A guess: a runtime takes some milliseconds to end, and longer on a busy machine.
const LATEST_END: u64 = 200_000_000;

/// The bounds, in fifths of one sleep's length, between which the next sleep counts as equally long: four to six
/// fifths. A guess: a timer of some milliseconds is late by less than a fifth.
const EQUAL_FIFTHS: (u64, u64) = (4, 6);

/// The largest number of sleeps for each one that is longer than the sleep before it, if a program waits longer after
/// each failed try. A guess: a program that gives up tries a few times more after it has reached its longest sleep.
const AT_LONGEST: usize = 10;

/// The largest number of children, of TCP connections, and of entries in the timeline of a thread that are searched.
/// This bounds the work.
const MOST_SEARCHED: usize = 10_000;

/// The divisor of the sum of all sleeps that a line of advice covers: a process with less than a tenth of this sum does
/// not decide what the line says. A guess: if such a process counted, a fact about this process alone would be stated
/// about all processes.
const SMALL_PART: u64 = 10;

/// The divisor of the sum of a program's sleeps: if other processes together run for less than a hundredth of this sum,
/// they do nothing that the sleeping program waits for. A guess: an idle server looks at its timers from time to time.
const NEXT_TO_NOTHING: u64 = 100;

/// A fact that the recording shows about the sleeps of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pauses {
    /// Before most of the sleeps, a connection or a child of the program failed.
    AfterTries,
    /// The program slept until several of its children had ended, one after the other.
    UntilChildrenEnd,
    /// Each sleep is longer than the one before, up to a longest length. A program sleeps so if it waits longer after
    /// each failed try.
    Longer,
    /// The program failed right after its last sleep, and COMMAND failed, too.
    BeforeFailure,
    /// The program failed right after its last sleep, but COMMAND succeeded. A test may have expected this failure.
    BeforeExpectedFailure,
    /// The program waited for descriptors or a lock until the time-out of the call that waits, and ended right after
    /// this time-out.
    TimeOutsAtEnd,
    /// The program waited for descriptors or a lock until the time-out of the call that waits, and then ended. The
    /// parent had woken the program just before that wait, perhaps by a signal, and then waited for the program's end.
    TimeOutsAfterParent,
    /// The program waited for descriptors or a lock until the time-out of the call that waits, and nothing shows that
    /// the program then ended because of this time-out. Either the timers of an event loop expired, or an answer did
    /// not come.
    TimeOuts,
    /// No other process of the recording did more than next to nothing during the sleeps. So the program waits for no
    /// work of the build.
    NothingRuns,
    /// None of the other facts is known about the sleeps.
    Plain,
}

impl Pauses {
    /// Finds what the recording shows about some sleeps of one program. The sleeps are sorted by time.
    pub fn of(facts: &BuildFacts<'_>, slept: &[Nap]) -> Pauses {
        let mut by_process: BTreeMap<ProcessIx, Vec<Nap>> = BTreeMap::new();
        for nap in slept {
            if let Some(execution) = facts.execution(nap.by) {
                by_process.entry(execution.process).or_default().push(*nap);
            }
        }
        // A process with a small part of the sleeps decides nothing. An example is the process that starts a program
        // and also sleeps until that program ends.
        let all = by_process.into_iter();
        let all = all.filter(|(_, own)| sum(own).saturating_mul(SMALL_PART) >= sum(slept));
        let all = all.map(|(process, own)| Pauses::of_process(facts, process, &own));
        let all: BTreeSet<Pauses> = all.collect();
        let first = all.first().copied();
        let pauses = match first {
            Some(pauses) if all.len() == 1 => pauses,
            _ if has_time_outs(facts, slept) => Pauses::TimeOuts,
            _ => Pauses::Plain,
        };
        if pauses == Pauses::Plain && nothing_runs(facts, slept) {
            return Pauses::NothingRuns;
        }
        pauses
    }

    /// Finds what the recording shows about the sleeps that one process decided on.
    fn of_process(facts: &BuildFacts<'_>, process: ProcessIx, slept: &[Nap]) -> Pauses {
        // The short sleeps of a runtime are no pauses between tries.
        let long = long_naps(slept);
        if follow_failures(facts, process, &long) {
            return Pauses::AfterTries;
        }
        if waits_for_children(facts, &long) {
            return Pauses::UntilChildrenEnd;
        }
        let lengths: Vec<u64> = long.iter().map(Nap::length).collect();
        if get_longer(&lengths) {
            return Pauses::Longer;
        }
        let by_signal = ends_by_signal(facts, process);
        let process = facts.analysis.process(process);
        let ends_after = |time: Ktime| {
            !process.alive && process.end >= time && process.end.since(time) <= LATEST_END
        };
        let failed = exit::failed(process.status) && !by_signal;
        if failed && slept.last().is_some_and(|nap| ends_after(nap.ran)) {
            return if exit::command_failed(facts.analysis) {
                Pauses::BeforeFailure
            } else {
                Pauses::BeforeExpectedFailure
            };
        }
        if !has_time_outs(facts, slept) {
            return Pauses::Plain;
        }
        // After the longest sleep, the remaining timers of an event loop may expire one after the other, so the sleeps
        // until these timers may lie between the longest sleep and the end of the program.
        let longest = slept.iter().max_by_key(|nap| nap.length());
        let after = longest.map_or(0, |longest| {
            sum(slept.iter().filter(|nap| nap.from > longest.from))
        });
        let at_end = longest.is_some_and(|longest| {
            let ran = Ktime(longest.ran.0.saturating_add(after));
            let is_most = longest.length().saturating_mul(2) > sum(slept);
            is_most && ends_after(ran) && !is_helped_after(facts, longest)
        });
        if at_end && longest.is_some_and(|longest| is_woken_by_parent(facts, longest)) {
            Pauses::TimeOutsAfterParent
        } else if at_end {
            Pauses::TimeOutsAtEnd
        } else {
            Pauses::TimeOuts
        }
    }

    /// Whether the sleeps may be what the program is for, such as the waits of a test of a rate. If so, the advised
    /// action names this as a condition.
    pub fn may_be_meant(self) -> bool {
        !matches!(
            self,
            Pauses::AfterTries | Pauses::UntilChildrenEnd | Pauses::BeforeFailure
        )
    }

    /// Whether the recording shows why the program slept, or what ended the sleeps.
    pub fn have_reason(self) -> bool {
        !matches!(self, Pauses::TimeOuts | Pauses::NothingRuns | Pauses::Plain)
    }

    /// Whether the program ended right after these sleeps, so that they were the last thing it waited for.
    pub fn is_last(self) -> bool {
        matches!(self, Pauses::TimeOutsAtEnd | Pauses::TimeOutsAfterParent)
    }

    /// The finding of a line of advice. `name` is the name of the program, and `s` the ending of its verb. `time` is
    /// the text for how long the program slept, and `times` the text for how often, which begins with a comma.
    pub fn finding(self, name: &str, s: &str, time: &str, times: &str) -> String {
        match self {
            Pauses::AfterTries => format!("{name} sleep{s} {time}{times}, after tries that fail"),
            Pauses::UntilChildrenEnd => {
                format!("{name} sleep{s} {time}{times}, until children of it have ended")
            }
            Pauses::Longer => format!("{name} sleep{s} {time}{times}, longer each time"),
            Pauses::BeforeFailure | Pauses::BeforeExpectedFailure => {
                format!("{name} sleep{s} {time}{times}, and then fail{s}")
            }
            Pauses::TimeOutsAtEnd => {
                format!("{name} wait{s} {time} for timers or time-outs{times}, and then end{s}")
            }
            Pauses::TimeOutsAfterParent => format!(
                "{name} wait{s} {time} for timers or time-outs{times} after its parent woke it, and then end{s}"
            ),
            Pauses::TimeOuts => format!("{name} wait{s} {time} for timers or time-outs{times}"),
            Pauses::NothingRuns => format!("{name} sleep{s} {time}{times}, and nothing else runs"),
            Pauses::Plain => format!("{name} sleep{s} {time}{times}"),
        }
    }

    /// The words of a line of advice that say what to do about the sleeps.
    pub fn action(self) -> &'static str {
        match self {
            Pauses::AfterTries => "find out why they fail, or sleep for less",
            Pauses::UntilChildrenEnd => "wait for their ends, not for a time",
            Pauses::Longer => "find out why its tries fail, or sleep for less, unless the time is meant",
            Pauses::BeforeFailure => {
                "find out why what it waits for does not come, or give up sooner"
            }
            Pauses::BeforeExpectedFailure => {
                "find out why what it waits for does not come, or give up sooner, unless the time is meant"
            }
            Pauses::TimeOutsAtEnd => {
                "cancel the timers, if nothing needs them any more, or find out why an answer does not come"
            }
            Pauses::TimeOutsAfterParent => "end at once, if that was the signal to end",
            Pauses::TimeOuts => {
                "find out what does not come, or wait for less, unless the time is meant"
            }
            Pauses::NothingRuns => "find out why, or sleep for less, unless the time is meant",
            Pauses::Plain => "wait for an event, unless the time is meant",
        }
    }
}

/// Whether a signal ended a process, or the process handled a signal and then exited, perhaps with the status by which
/// shells and the Java VM report the signal, such as 143.
pub(crate) fn ends_by_signal(facts: &BuildFacts<'_>, process: ProcessIx) -> bool {
    let status = facts.analysis.process(process).status;
    let signal = status.and_then(ended_by);
    signal.is_some_and(|signal| is_for(signal, Purpose::Outside))
        || exit::killed_by(status).is_some()
        || status == Some(0) && facts.analysis.ends_after_signal(process)
}

/// Whether most of the time of the given sleeps was spent in calls that waited for a descriptor or a lock until a
/// time-out. Calls that only sleep, such as nanosleep, do not count.
fn has_time_outs(facts: &BuildFacts<'_>, slept: &[Nap]) -> bool {
    let Some(timeline) = &facts.analysis.timeline else {
        return false;
    };
    let waits = slept.iter().filter(|nap| {
        let wait = timeline.around(nap.thread, nap.from);
        wait.is_some_and(|wait| !matches!(wait.reason, Reason::Timer | Reason::Unknown))
    });
    sum(waits).saturating_mul(2) > sum(slept)
}

/// Whether, during the given sleeps, which are sorted by time, the other processes of the recording run, wait for a CPU
/// or sleep for next to no time ([`NEXT_TO_NOTHING`]). If more threads live during the sleeps than the search may
/// examine, the answer is no.
fn nothing_runs(facts: &BuildFacts<'_>, slept: &[Nap]) -> bool {
    let analysis = facts.analysis;
    let (Some(first), Some(last), Some(timeline)) =
        (slept.first(), slept.last(), &analysis.timeline)
    else {
        return false;
    };
    let groups = slept.iter().flat_map(|nap| [nap.by, nap.group]);
    let own = groups.filter_map(|group| facts.execution(group));
    let own: BTreeSet<ProcessIx> = own.map(|execution| execution.process).collect();
    let is_beside = |ix: &ProcessIx| {
        let process = analysis.process(*ix);
        process.start < last.to && process.end > first.from && !own.contains(ix)
    };
    let beside = analysis.process_ids().filter(is_beside);
    let mut beside = beside.flat_map(|ix| &analysis.process(ix).threads);
    let mut rest = sum(slept) / NEXT_TO_NOTHING;
    for thread in beside.by_ref().take(MOST_SEARCHED) {
        let parts = timeline.since(*thread, first.from).take(MOST_SEARCHED);
        for part in parts.take_while(|part| part.from < last.to) {
            let first = slept.partition_point(|nap| nap.to <= part.from);
            let during = slept.iter().skip(first);
            let during = during.take_while(|nap| nap.from < part.to);
            let within = during.map(|nap| part.to.min(nap.to).since(part.from.max(nap.from)));
            let within = within.fold(0, u64::saturating_add);
            // A process that sleeps until a timer ends the sleep is not idle, because the program may wait for that
            // process.
            let is_idle = matches!(part.doing, Bucket::Wait(_))
                && !analysis.wait_end(*thread, &part).is_timer();
            if !is_idle {
                let Some(left) = rest.checked_sub(within) else {
                    return false;
                };
                rest = left;
            }
        }
    }
    beside.next().is_none()
}

/// Whether the parent of the sleeping process ended a wait of this process shortly before the given sleep, and then
/// waited for the end of a child during the sleep. A script does so if it sends a signal to a process and waits until
/// the process has ended.
fn is_woken_by_parent(facts: &BuildFacts<'_>, nap: &Nap) -> bool {
    let analysis = facts.analysis;
    let process = analysis.process(analysis.thread(nap.thread).process);
    let (Some(timeline), Some(parent)) = (&analysis.timeline, process.parent) else {
        return false;
    };
    let before = Ktime(nap.from.0.saturating_sub(LATEST_END));
    let waits = timeline.since(nap.thread, before).take(MOST_SEARCHED);
    let waits = waits.take_while(|wait| wait.to <= nap.from);
    let waits = waits.filter(|wait| matches!(wait.doing, Bucket::Wait(_)));
    let by_parent = waits.last().is_some_and(|wait| match wait.waker() {
        Actor::Thread(waker) => analysis.thread(waker).process == parent,
        _ => false,
    });
    let parent = analysis.process(parent).threads.first();
    let waiting = parent.and_then(|parent| timeline.around(*parent, nap.to));
    by_parent && waiting.is_some_and(|wait| wait.reason == Reason::Child)
}

/// Whether, after the given sleep, the sleeping thread waits again and another process ends that later wait. If so, the
/// sleep was not the last thing that the thread waited for.
fn is_helped_after(facts: &BuildFacts<'_>, nap: &Nap) -> bool {
    let (analysis, process) = (facts.analysis, facts.analysis.thread(nap.thread).process);
    let timeline = analysis.timeline.iter();
    let mut later =
        timeline.flat_map(|timeline| timeline.since(nap.thread, nap.ran).take(MOST_SEARCHED));
    later.any(|stretch| {
        let is_wait = stretch.from >= nap.ran && matches!(stretch.doing, Bucket::Wait(_));
        let by_other = match stretch.waker() {
            Actor::Thread(waker) => analysis.thread(waker).process != process,
            Actor::Outside(_) | Actor::SoftIrq => true,
            _ => false,
        };
        is_wait && by_other
    })
}

/// Whether most of the sleeps came after a failed try: since the previous sleep, a connection that the process had
/// opened, or a child of the process, had failed.
fn follow_failures(facts: &BuildFacts<'_>, process: ProcessIx, slept: &[Nap]) -> bool {
    let analysis = facts.analysis;
    let connections = analysis.network.connections.iter().take(MOST_SEARCHED);
    let connections = connections.filter(|connection| {
        let thread = connection.thread;
        let is_own = thread.is_some_and(|thread| analysis.thread(thread).process == process);
        is_own && !connection.accepted && connection.failed()
    });
    let children = analysis
        .process(process)
        .children
        .iter()
        .take(MOST_SEARCHED);
    let children = children.map(|child| analysis.process(*child));
    // A child that a signal ended was stopped on purpose, as a server of a test is.
    let children = children.filter(|child| {
        let signal = exit::killed_by(child.status);
        exit::failed(child.status) && signal.is_none_or(is_crash)
    });
    let failures = connections
        .filter_map(|connection| connection.closed)
        .chain(children.map(|child| child.end));
    let before = failures.map(|at| slept.partition_point(|nap| nap.from < at));
    // A failure after the start of the process's last sleep is left out, because no sleep follows this failure.
    let before: BTreeSet<usize> = before.filter(|at| *at < slept.len()).collect();
    before.len() > 1 && before.len() * 2 > slept.len()
}

/// Whether sleeps of the given lengths get longer, up to a longest one. The sequence may start again with a short
/// sleep. If two equal sleeps are followed by a longer one, with no shorter one in between, the answer is no: a program
/// that waits longer after each failed try does so from its first try on.
fn get_longer(lengths: &[u64]) -> bool {
    let (mut longer, mut shorter) = (0, 0);
    let mut is_rising = true;
    for pair in lengths.windows(2) {
        let [one, next] = pair else { continue };
        let fifths = next.saturating_mul(5);
        if fifths <= one.saturating_mul(EQUAL_FIFTHS.0) {
            shorter += 1;
            is_rising = true;
        } else if fifths <= one.saturating_mul(EQUAL_FIFTHS.1) {
            is_rising = false;
        } else if is_rising {
            longer += 1;
        } else {
            return false;
        }
    }
    // A single longer sleep may be chance: the first timer of a program may be shorter than the others.
    longer > 1 && longer * AT_LONGEST >= lengths.len() && longer > 2 * shorter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_tries_get_longer() {
        for (lengths, longer) in [
            (&[500, 1000, 2000][..], true),
            (&[100, 200, 400, 401], true),
            (&[200, 1000, 1000, 1000], false),
            (&[1, 2, 4, 1, 2, 4], true),
            (&[1, 2, 4, 8, 1, 2, 4, 8], true),
            (&[100, 200], false),
            (&[100, 101, 100, 102], false),
            (&[300, 500, 400, 600], false),
            (&[500, 500, 500, 1000], false),
            (&[1, 1, 2, 4], false),
            (&[500, 300, 100], false),
            (&[], false),
        ] {
            assert_eq!(get_longer(lengths), longer, "{lengths:?}");
        }
        let once_longer: Vec<u64> = [3].into_iter().chain([10; 100]).collect();
        assert!(!get_longer(&once_longer));
    }
}
