//! Replays a recording with a virtual clock for every thread in every scenario. The clock shows how many ns have passed
//! up to a moment of the recording, without the time that the scenario leaves out.

use tr_format::event::{Ktime, Reason};

use super::{Stay, Without};
use crate::arena::Arena;
use crate::kinds::TimeKind;
use crate::model::ThreadIx;
use crate::questions::awaited::WaitReason;
use crate::questions::graph::{Graph, StretchCause};
use crate::questions::programs::{Group, Groups};

/// The position in a thread's timeline up to which the thread has been replayed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    number: u32,
    /// The time in the recording up to which the thread has been replayed, that is, its virtual clocks (replayed times)
    /// have advanced.
    now: Ktime,
    begun: bool,
    /// Whether the thread is waiting for the virtual clock (replayed time) of another thread at present. If a chain of
    /// such threads leads back to this thread, the threads wait for each other.
    busy: bool,
}

/// The virtual clocks of one thread in one scenario of the replay: how many ns have passed without the time that the
/// scenario leaves out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// The virtual clock (replayed time) that counts every wait, and unknown time, with its recorded length, in ns.
    pub same_waits: u64,
    /// The virtual clock (replayed time) that counts work, waits for disks and other uninterruptible waits of no other
    /// kind ([`TimeKind::Blocked`]), but no other time, in ns.
    pub no_waits: u64,
    /// The chain of work and waits that determines `same_waits` goes from thread to thread. A stay is the time for
    /// which the chain remains in one thread. These are the present stay, and the longest earlier one.
    stays: [Option<Stay>; 2],
}

impl Clock {
    /// Adds `ns` of the thread's time, which end at the recorded time `until`, to the thread's virtual clocks (replayed
    /// times). `waits` is whether this time is a wait that could have been shorter, or unknown time.
    fn add(&mut self, thread: ThreadIx, ns: u64, until: Ktime, waits: bool) {
        let at = Ktime(until.0.saturating_sub(1));
        self.same_waits = self.same_waits.saturating_add(ns);
        self.no_waits = self.no_waits.saturating_add(if waits { 0 } else { ns });
        let before = self.stays[0].map_or(0, |stay| stay.ns);
        let ns = before.saturating_add(ns);
        self.stays[0] = Some(Stay { thread, at, ns });
    }

    /// Sets each of these virtual clocks (replayed times) to the corresponding clock of `other` if that one is later.
    fn follow(&mut self, other: &Clock) {
        if other.same_waits > self.same_waits {
            self.same_waits = other.same_waits;
            self.stays = [None, other.longest_stay()];
        }
        self.no_waits = self.no_waits.max(other.no_waits);
    }

    pub fn longest_stay(&self) -> Option<Stay> {
        let stays = self.stays.iter().rev().flatten();
        stays.max_by_key(|stay| stay.ns).copied()
    }
}

/// A scenario of the replay: which parts of the time are left out, and the virtual clocks (replayed times) of all
/// threads.
pub(super) struct Scenario<'a> {
    pub without: &'a Without,
    pub clocks: Arena<ThreadIx, Clock>,
}

/// A moment at which a thread's virtual clocks (replayed times) are set to those of another thread, if those are later.
struct Follow {
    other: ThreadIx,
    at: Ktime,
    /// The reason for waiting and the class of the system call, if the other thread ended a wait; otherwise `None`, for
    /// example for a fork.
    awaited: Option<(WaitReason, Reason)>,
    /// The group of programs that the waiting thread belonged to.
    group: Option<Group>,
}

pub(super) struct Replay<'a> {
    pub graph: Graph<'a>,
    pub groups: &'a Groups,
    pub from: Ktime,
    pub to: Ktime,
    pub cursors: Arena<ThreadIx, Cursor>,
    /// The virtual clocks (replayed times) of all threads if no time is left out.
    pub recorded: Arena<ThreadIx, Clock>,
    pub scenarios: Vec<Scenario<'a>>,
    pub waited_for_slot: bool,
}

/// The number of stretches between two wakings or forks of a thread that the replay looks up one by one. For more
/// stretches it uses an iterator, which costs more to begin and less for each stretch. The number is a guess that
/// changes only the speed.
const SHORT_WAY: u32 = 4;

/// The largest number of threads in a chain in which each thread's virtual clock (replayed time) depends, at one
/// moment, on that of the next thread. This limit bounds the work.
const AT_ONCE: u32 = 64;

impl Replay<'_> {
    /// Adds to a thread's virtual clocks a wait that no other thread ended, or unknown time. A wait for a disk or in
    /// the kernel counts as one that cannot be shorter: it is assumed to take the same time on any machine.
    fn add_own(
        &mut self,
        thread: ThreadIx,
        (kind, reason): (TimeKind, Reason),
        from: Ktime,
        to: Ktime,
    ) {
        let ns = to.min(self.to).since(from.max(self.from));
        let waits = !matches!(kind, TimeKind::Disk | TimeKind::Blocked);
        let group = self.group(thread, from);
        self.recorded[thread].add(thread, ns, to, waits);
        for scenario in &mut self.scenarios {
            if !scenario.without.leaves_out((kind, reason), group) {
                scenario.clocks[thread].add(thread, ns, to, waits);
            }
        }
    }

    fn group(&self, thread: ThreadIx, at: Ktime) -> Option<Group> {
        let process = self.graph.analysis.thread(thread).process;
        self.groups.at(process, at)
    }

    fn add_work(&mut self, thread: ThreadIx, from: Ktime, to: Ktime) {
        let (from, to) = (from.max(self.from), to.min(self.to));
        let process = self.graph.analysis.thread(thread).process;
        self.recorded[thread].add(thread, to.since(from), to, false);
        self.groups.split(process, from, to, |group, from, to| {
            for scenario in &mut self.scenarios {
                if !scenario
                    .without
                    .leaves_out((TimeKind::OnCpu, Reason::Unknown), Some(group))
                {
                    scenario.clocks[thread].add(thread, to.since(from), to, false);
                }
            }
        });
    }

    /// Sets the virtual clocks (replayed times) of a thread to the clocks of another thread at a time, if those are
    /// later. Returns `false`, and does nothing, if threads wait for each other in a circle or the chain of threads is
    /// too long.
    fn follow(&mut self, thread: ThreadIx, link: Follow, depth: u32) -> bool {
        let Follow {
            other,
            at,
            awaited,
            group,
        } = link;
        if depth >= AT_ONCE || other == thread || self.cursors[other].busy {
            return false;
        }
        self.cursors[thread].busy = true;
        self.advance(other, at, depth + 1);
        self.cursors[thread].busy = false;
        self.waited_for_slot |= awaited.is_some_and(|(awaited, _)| awaited == WaitReason::Slot);
        let later = self.recorded[other];
        self.recorded[thread].follow(&later);
        for Scenario { without, clocks } in &mut self.scenarios {
            let left_out =
                awaited.is_some_and(|(awaited, reason)| (without.waits)(awaited, reason));
            if left_out && without.counts(group) {
                continue;
            }
            let later = clocks[other];
            clocks[thread].follow(&later);
        }
        true
    }

    /// Advances the virtual clocks (replayed times) of a thread up to the recorded time `until`, including a wait that
    /// ends at `until`. Wakings and forks before `until` have been replayed already. But the thread that ended the wait
    /// may have ended a wait of its own at `until`, too, so its clocks are advanced first. `depth` counts the threads
    /// in this chain.
    pub fn advance(&mut self, thread: ThreadIx, until: Ktime, depth: u32) {
        let start = self.graph.analysis.thread(thread).start;
        let cursor = &mut self.cursors[thread];
        if cursor.busy || until < start {
            return;
        }
        if !std::mem::replace(&mut cursor.begun, true) {
            cursor.now = start;
            let parent = self.graph.forked_by(thread).filter(|_| start > self.from);
            let fork = |other| Follow {
                other,
                at: start,
                awaited: None,
                group: None,
            };
            if !parent.is_some_and(|parent| self.follow(thread, fork(parent), depth)) {
                // No event shows which thread forked this one, so the time from the path's beginning to the thread's
                // start is unknown.
                let unknown = (TimeKind::Unknown, Reason::Unknown);
                self.add_own(thread, unknown, self.from, start);
            }
        }
        let timeline = self.graph.timeline;
        let mut rest = None;
        for passed in 0u32.. {
            let Cursor { number, now, .. } = self.cursors[thread];
            let stretch = if passed < SHORT_WAY {
                timeline.get(thread, number as usize)
            } else {
                let rest =
                    rest.get_or_insert_with(|| timeline.from_number(thread, number as usize));
                rest.next()
            };
            let Some(stretch) = stretch.filter(|s| s.from < until) else {
                break;
            };
            let (from, to) = (now.max(stretch.from), stretch.to.min(until));
            let ends = stretch.to <= until;
            match self.graph.cause(thread, &stretch) {
                // The wait has not ended at `until`. Nothing is added for it yet, because its length follows from the
                // virtual clock (replayed time) of the thread that will end it.
                StretchCause::Thread(_) if !ends => break,
                StretchCause::Thread(other) => {
                    let awaited = self.graph.analysis.awaited(thread, &stretch);
                    let link = Follow {
                        other,
                        at: to,
                        awaited: awaited.map(|awaited| (awaited, stretch.reason)),
                        group: self.group(thread, from),
                    };
                    if to <= self.from || !self.follow(thread, link, depth) {
                        self.add_own(thread, (TimeKind::Unknown, stretch.reason), from, to);
                    }
                }
                StretchCause::Own(TimeKind::OnCpu) => self.add_work(thread, from, to),
                StretchCause::Own(kind) => self.add_own(thread, (kind, stretch.reason), from, to),
            }
            let cursor = &mut self.cursors[thread];
            cursor.now = to;
            if !ends {
                break;
            }
            cursor.number += 1;
        }
    }
}
