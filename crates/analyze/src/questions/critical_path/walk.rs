//! Walks backwards from the end of a critical path.
//!
//! At each moment the path is in one thread. The thread's time on a CPU, its waits for a CPU, and its waits that an
//! interrupt ended are steps of the path. Where another thread ended a wait, the walk goes on in that thread. Where no
//! event shows the next step, the walk takes the most likely step ([`Evidence`]) and marks it as inferred.

use tr_format::event::Ktime;

use super::enders::Ender;
use super::entries::{Entries, Entry, Waiter};
use super::evidence::Evidence;
use super::{Segment, Then};
use crate::arena::Arena;
use crate::kinds::TimeKind;
use crate::model::{Basis, ProcessIx, ThreadIx};
use crate::questions::awaited::WaitReason;
use crate::questions::graph::{Graph, StretchCause};
use crate::questions::programs::{exec_of, Programs};
use crate::timeline::{Actor, Bucket, Stretch};

/// A function that returns whether a thread is in the group whose path is computed, right before a time. An example of
/// such a group is the threads of a build step.
pub(super) type Inside<'a> = &'a dyn Fn(ThreadIx, Ktime) -> bool;

/// For each process, its leader, if the leader ended the process while other threads lived.
type Enders = Arena<ProcessIx, Option<Ender>>;

/// Returns the segments of the critical path from `from` to `to`, in the order of time. The path ends in `thread`.
/// `inside` is true for the threads in the group whose path is computed, for example the threads of a build step. If a
/// thread in the group waits for a thread outside of the group, the path follows that other thread only for the length
/// of this wait.
pub(super) fn segments<'a>(
    graph: Graph<'a>,
    programs: &'a Programs,
    evidence: Evidence<'a>,
    (inside, enders): (Inside<'a>, &'a Enders),
    (from, thread, to): (Ktime, ThreadIx, Ktime),
) -> Vec<Segment> {
    let mut walk = Walk {
        inside,
        enders,
        graph,
        programs,
        evidence,
        from,
        to,
        waiters: Vec::new(),
        client: None,
        entries: Entries::default(),
        steps: 0,
        away: None,
        segments: Vec::new(),
        then: Then::Same,
        then_inferred: false,
    };
    walk.back(thread, to);
    walk.segments.reverse();
    walk.segments
}

/// The largest number of threads that a critical path may pass at one moment. A longer chain of threads, or a cycle, is
/// not followed, which bounds the work.
const AT_ONCE: usize = 64;

/// The largest number of stretches from a moment of a thread to its end that [`Walk::is_done`] checks. A thread
/// with more stretches left is taken to go on.
const LAST_STRETCHES: usize = 8;

/// A step of the walk, which goes backwards over the critical path.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The walk over the critical path goes to another thread at the same moment.
    To {
        thread: ThreadIx,
        then: Then,
        inferred: bool,
    },
    /// The walk over the critical path goes to another thread at an earlier moment, `at`. From then on, a worker of the
    /// kernel carried what this thread had written; this is time of the present thread.
    Carried {
        thread: ThreadIx,
        at: Ktime,
        kind: TimeKind,
    },
    /// The walk over the critical path goes through time of the present thread itself, back to the beginning of that
    /// time.
    Own {
        begin: Ktime,
        kind: TimeKind,
        inferred: bool,
    },
    /// At `begin`, another thread began to wait for the present thread, which was already waiting itself. Only the part
    /// of the present thread's wait after `begin` is on the critical path. Before `begin`, the path is in the other
    /// thread.
    Waiter { begin: Ktime, kind: TimeKind },
    /// The walk over the critical path returns to a waiting thread, at the moment at which this thread began to wait.
    /// The walk takes back its steps before that moment.
    Up(Entry),
}

impl Step {
    /// Makes a step of the critical path to another thread that an event proves.
    fn shown(thread: ThreadIx, then: Then) -> Step {
        Step::To {
            thread,
            then,
            inferred: false,
        }
    }

    /// Makes a step of the critical path to another thread that no event proves, but that is the most likely one.
    fn likely(thread: ThreadIx, then: Then) -> Step {
        Step::To {
            thread,
            then,
            inferred: true,
        }
    }

    /// Makes a step of the critical path through the thread's own time, of one kind, back to `begin`.
    fn own(begin: Ktime, kind: TimeKind) -> Step {
        Step::Own {
            begin,
            kind,
            inferred: false,
        }
    }
}

struct Walk<'a> {
    inside: Inside<'a>,
    enders: &'a Enders,
    graph: Graph<'a>,
    programs: &'a Programs,
    evidence: Evidence<'a>,
    from: Ktime,
    to: Ktime,
    /// The waiting threads from which the walk over the critical path came to its present thread, the outermost thread
    /// first. All of them belong to the process of the present thread.
    waiters: Vec<Waiter>,
    /// Two threads of one process: the thread that waits for the present thread of the walk, and the present thread.
    /// `None` if no thread of the process waits for the present thread.
    client: Option<(ThreadIx, ThreadIx)>,
    /// The waits through which the walk over the critical path came to its present thread from threads of the same
    /// process.
    entries: Entries,
    steps: u64,
    /// While the walk is in threads outside of the group whose path is computed (for example the threads of a build
    /// step): the last thread on the path that is in this group, and the beginning of its wait.
    away: Option<Waiter>,
    /// The segments of the critical path that the walk has found so far, from the last to the first.
    segments: Vec<Segment>,
    /// How the critical path leads from the segment that is added next, which is earlier in time, to the segment that
    /// was added last.
    then: Then,
    /// Whether no event shows how the critical path leads from the segment that is added next to the segment that was
    /// added last.
    then_inferred: bool,
}

impl Walk<'_> {
    fn back(&mut self, mut thread: ThreadIx, mut now: Ktime) {
        // The threads that the walk has passed at the present moment. A second visit of one of them would be a cycle.
        let mut passed = vec![thread];
        while now > self.from {
            while self
                .waiters
                .last()
                .is_some_and(|waiter| waiter.since >= now)
            {
                self.waiters.pop();
            }
            self.steps += 1;
            let mut waiter = None;
            let (begin, kind, inferred) = match self.step(thread, now) {
                Step::To { thread: next, .. }
                    if passed.len() >= AT_ONCE || passed.contains(&next) =>
                {
                    let stretch = self.graph.timeline.before(thread, now);
                    let begin = stretch.map_or(self.from, |stretch| stretch.from);
                    (begin, TimeKind::Unknown, false)
                }
                Step::To {
                    thread: next,
                    then,
                    inferred,
                } => {
                    self.wait_for((thread, now), next, then);
                    self.away = self.away(thread, next, now);
                    (self.then, self.then_inferred) = (then, self.then_inferred | inferred);
                    passed.push(next);
                    thread = next;
                    continue;
                }
                Step::Carried {
                    thread: next,
                    at,
                    kind,
                } => {
                    self.add(thread, (at, now), kind, false);
                    self.wait_for((thread, now), next, Then::Woke);
                    self.away = self.away(thread, next, now);
                    self.then = Then::Woke;
                    (thread, now) = (next, at);
                    passed.clear();
                    passed.push(thread);
                    continue;
                }
                Step::Own {
                    begin,
                    kind,
                    inferred,
                } => (begin, kind, inferred),
                Step::Waiter { begin, kind } => {
                    waiter = self.waiters.pop();
                    (begin, kind, false)
                }
                Step::Up(entry) => {
                    self.cut(entry.waiter.since);
                    (thread, now) = self.return_to(&entry);
                    passed.clear();
                    passed.push(thread);
                    continue;
                }
            };
            // A step to another thread stays at the same moment, and `Step::Up` goes forward in time; the numbers of
            // both are limited. Every other step must go back in time, so that the loop ends.
            debug_assert!(begin < now, "{thread:?} at {now:?}");
            let begin = begin.max(self.killed(thread, now)).max(self.from);
            let begin = begin.min(Ktime(now.0 - 1));
            if let Some(away) = self.away.take_if(|away| begin <= away.since) {
                self.add(thread, (away.since.max(self.from), now), kind, inferred);
                self.entries.truncate(away.since);
                (thread, now) = (away.thread, away.since);
                passed.clear();
                passed.push(thread);
                continue;
            }
            self.add(thread, (begin, now), kind, inferred);
            now = begin;
            if let Some(waiter) = waiter {
                self.entries.truncate(waiter.since);
                (thread, self.then) = (waiter.thread, Then::Waited);
            }
            passed.clear();
            passed.push(thread);
        }
    }

    /// Returns the thread that waits while the critical path is in the thread `next`, and when its wait began. The
    /// waiting thread is in the group whose path is computed (for example the threads of a build step), and `next` is
    /// not. The path stays in `next` only during this wait. Returns `None` if `next` is in the group.
    fn away(&self, thread: ThreadIx, next: ThreadIx, now: Ktime) -> Option<Waiter> {
        if (self.inside)(next, now) {
            return None;
        }
        let wait = self.graph.timeline.before(thread, now);
        let since = wait.map(|wait| wait.from).filter(|from| *from < now);
        self.away.or(since.map(|since| Waiter { thread, since }))
    }

    /// Lets the walk over the critical path go on at the moment at which a thread began to wait. Returns the thread and
    /// the moment.
    fn return_to(&mut self, entry: &Entry) -> (ThreadIx, Ktime) {
        let Waiter { thread, since } = entry.waiter;
        self.entries.truncate(since);
        self.waiters = self.entries.waiters().collect();
        self.away = entry.away;
        (self.then, self.then_inferred) = (Then::Waited, false);
        (thread, since)
    }

    /// Removes the part of the critical path before the time `since`, so that the walk can go on there.
    fn cut(&mut self, since: Ktime) {
        while self
            .segments
            .pop_if(|segment| segment.to <= since)
            .is_some()
        {}
        if let Some(last) = self.segments.last_mut() {
            last.from = last.from.max(since);
        }
    }

    /// The time at which the exit of the process's leader killed a thread, if it is before `now`; otherwise 0. The
    /// critical path does not include the thread's work before that time, because nothing waited for it.
    fn killed(&self, thread: ThreadIx, now: Ktime) -> Ktime {
        let process = self.graph.analysis.thread(thread).process;
        let killed = self.enders[process].filter(|(by, at)| *by != thread && *at < now);
        killed.map_or(Ktime(0), |(_, at)| at)
    }

    fn step(&mut self, thread: ThreadIx, now: Ktime) -> Step {
        let process = self.graph.analysis.thread(thread).process;
        let ender = self.enders[process].filter(|(by, at)| *by != thread && *at == now);
        if let Some((by, _)) = ender.filter(|(by, _)| self.graph.lives(*by, now)) {
            return Step::shown(by, Then::Woke);
        }
        let Some(stretch) = self.graph.timeline.before(thread, now) else {
            return self.beginning(thread);
        };
        match stretch.doing {
            Bucket::Wait(_) if self.is_cut_off(thread, now, &stretch) => {
                self.cut_off(thread, now, &stretch)
            }
            Bucket::Unknown => self.unknown(thread, now, &stretch),
            Bucket::Wait(_) => self.waited(thread, now, &stretch),
            _ => match self.graph.cause(thread, &stretch) {
                StretchCause::Own(kind) => Step::own(stretch.from, kind),
                StretchCause::Thread(_) => Step::own(stretch.from, TimeKind::Unknown),
            },
        }
    }

    /// The step of the walk over the critical path for a wait that ended at the present moment.
    fn waited(&mut self, thread: ThreadIx, now: Ktime, wait: &Stretch) -> Step {
        match self.graph.cut(thread, wait) {
            Some(Some(below)) => return Step::likely(below, Then::Awaited),
            Some(None) => return self.cut_off(thread, now, wait),
            None => {}
        }
        match self.graph.ended(thread, wait) {
            StretchCause::Thread(waker) => Step::shown(waker, self.link(thread, waker, wait)),
            StretchCause::Own(TimeKind::Unknown) => self.evidence_in(thread, now, wait),
            StretchCause::Own(kind) => self
                .carried(thread, now, wait, kind)
                .unwrap_or_else(|| self.sleep(thread, wait, kind)),
        }
    }

    /// The step of the walk over the critical path to the thread whose output a worker of the kernel carried to the
    /// present thread, if it began to wait meanwhile ([`Graph::carried_late`]). The step goes back in time, so a forged
    /// recording cannot keep the walk at one moment.
    fn carried(
        &self,
        thread: ThreadIx,
        now: Ktime,
        wait: &Stretch,
        kind: TimeKind,
    ) -> Option<Step> {
        let (at, writer) = self.graph.carried_late(thread, wait)?;
        let is_back = self.from < at && at < now;
        let is_followed = is_back && self.away.is_none_or(|away| away.since < at);
        is_followed.then_some(Step::Carried {
            thread: writer,
            at,
            kind,
        })
    }

    /// The step of the walk over the critical path from the beginning of a thread, which leads to the thread that
    /// forked it.
    fn beginning(&self, thread: ThreadIx) -> Step {
        if let Some(parent) = self.graph.forked_by(thread) {
            return Step::shown(parent, Then::Forked);
        }
        match self.evidence.parent(thread) {
            Some(parent) => Step::likely(parent, Then::Forked),
            None => Step::own(self.from, TimeKind::Unknown),
        }
    }

    /// Whether a wait of a thread had not ended yet at this moment, so that no event shows what ended it.
    fn is_cut_off(&self, thread: ThreadIx, now: Ktime, wait: &Stretch) -> bool {
        let thread = self.graph.analysis.thread(thread);
        let ends = thread.alive && wait.to == thread.end && wait.waker() == Actor::Unknown;
        wait.to > now || ends
    }

    /// The step of the walk over the critical path for a wait that has not ended at the present moment.
    fn cut_off(&mut self, thread: ThreadIx, now: Ktime, stretch: &Stretch) -> Step {
        let (next, then) = if now == self.to {
            (self.evidence.awaited(thread, now), Then::Awaited)
        } else {
            let ended = self.evidence.ended_child(thread, stretch.from, now);
            let ended = ended.filter(|(_, end)| *end == now);
            (ended.map(|(child, _)| child), Then::Exited)
        };
        if let Some(next) = next {
            return Step::likely(next, then);
        }
        let kind = self.graph.wait(thread, stretch, false);
        self.sleep(thread, stretch, kind)
    }

    /// The step of the walk over the critical path for a wait of `thread` that no other thread ended. Another thread of
    /// the process may have begun to wait for `thread` only during this wait. Then only the part of this wait after
    /// that moment is on the path.
    fn sleep(&mut self, thread: ThreadIx, stretch: &Stretch, kind: TimeKind) -> Step {
        if kind == TimeKind::Sleep {
            let entry = self.entries.timer(thread, stretch.to, self.steps);
            if let Some(entry) = entry {
                return Step::Up(entry);
            }
        }
        match self.waiters.last() {
            Some(waiter) if stretch.from < waiter.since => Step::Waiter {
                begin: waiter.since,
                kind,
            },
            _ => Step::own(stretch.from, kind),
        }
    }

    /// The step of the walk over the critical path for time in which the state of a thread is not known.
    fn unknown(&self, thread: ThreadIx, now: Ktime, stretch: &Stretch) -> Step {
        let waker = match stretch.waker() {
            Actor::Thread(waker) if stretch.to == now && self.graph.lives(waker, now) => waker,
            _ if self.evidence.ran_through(thread, now) => {
                return Step::Own {
                    begin: stretch.from,
                    kind: TimeKind::OnCpu,
                    inferred: true,
                }
            }
            _ => return self.evidence_in(thread, now, stretch),
        };
        Step::likely(waker, self.link(thread, waker, stretch))
    }

    /// The step of the walk over the critical path for a stretch of a thread whose end no event explains. If a child
    /// ended in the stretch, the thread is taken to have waited for the child.
    fn evidence_in(&self, thread: ThreadIx, now: Ktime, stretch: &Stretch) -> Step {
        match self.evidence.ended_child(thread, stretch.from, now) {
            Some((child, end)) if end == now => Step::likely(child, Then::Exited),
            ended => {
                let kind = match self.graph.analysis.basis() {
                    Basis::Events => TimeKind::Unknown,
                    _ => TimeKind::Lived,
                };
                Step::own(ended.map_or(stretch.from, |(_, end)| end), kind)
            }
        }
    }

    /// How the critical path leads from the thread `waker`, which ended a wait, to the thread that waited.
    fn link(&self, thread: ThreadIx, waker: ThreadIx, wait: &Stretch) -> Then {
        let analysis = self.graph.analysis;
        match analysis.awaited(thread, wait) {
            Some(WaitReason::Vfork) => Then::Returned,
            Some(WaitReason::Slot) => Then::Slot,
            _ if analysis.has_exited(waker, wait.to) => Then::Exited,
            _ => Then::Woke,
        }
    }

    /// Remembers that a thread on the critical path waited for the thread `next`, if both belong to one process. The
    /// path may have to return to this wait: if `next` was asleep when the wait began, what `next` did before it was
    /// woken does not explain the wait. A wait for a thread of another process is not remembered, because the path
    /// follows that other thread back to its own beginning.
    fn wait_for(&mut self, (thread, now): (ThreadIx, Ktime), next: ThreadIx, then: Then) {
        let process = |ix| self.graph.analysis.thread(ix).process;
        let same = process(thread) == process(next);
        // If `next` goes on to wait again after the waking, then `next` serves other threads. If `next` comes to its
        // end instead, it was a job for this thread, and all of its time, even its sleeps, belongs to the path.
        let serves = same && then == Then::Woke && !self.is_done(next, now);
        if !serves {
            self.entries.clear();
        }
        // `asked` means that `thread` is a service that waited for a request, and that its client `next` sent the
        // request and then waited for the answer. The service's wait does not depend on the work that it does for its
        // clients, so the wait is not remembered.
        let asked = self.client == Some((next, thread));
        self.client = Some((thread, next)).filter(|_| same && !asked);
        if !same {
            self.waiters.clear();
        }
        if asked {
            self.entries.return_to(next);
        }
        if !same || asked {
            return;
        }
        let wait = self.graph.timeline.before(thread, now);
        let Some(wait) = wait.filter(|wait| matches!(wait.doing, Bucket::Wait(_))) else {
            return;
        };
        let since = wait.from;
        if serves {
            self.entries.push(
                next,
                Entry {
                    waiter: Waiter { thread, since },
                    away: self.away,
                    steps: self.steps,
                },
            );
        }
        let inside = self
            .waiters
            .last()
            .is_some_and(|waiter| waiter.since >= since);
        if !inside {
            self.waiters.push(Waiter { thread, since });
        }
    }

    /// Whether a thread reaches its end without a further wait after a time.
    fn is_done(&self, thread: ThreadIx, now: Ktime) -> bool {
        let alive = self.graph.analysis.thread(thread).alive;
        let mut rest = self.graph.timeline.since(thread, now).enumerate();
        !alive && rest.all(|(n, it)| n < LAST_STRETCHES && !matches!(it.doing, Bucket::Wait(_)))
    }

    /// Adds a time of a thread to the critical path, as several segments if the thread's process executed another
    /// program in that time.
    fn add(
        &mut self,
        thread: ThreadIx,
        (from, mut to): (Ktime, Ktime),
        kind: TimeKind,
        inferred: bool,
    ) {
        let analysis = self.graph.analysis;
        let process = analysis.thread(thread).process;
        while to > from {
            let program = self.programs.at(analysis, process, Ktime(to.0 - 1));
            let own = program.filter(|(executed, _)| *executed == process);
            let exec = own.and_then(|program| exec_of(analysis, program));
            let begin = exec.map_or(from, |exec| exec.start.max(from));
            debug_assert!(begin < to, "{exec:?}");
            let begin = begin.min(Ktime(to.0 - 1));
            let then = std::mem::replace(&mut self.then, Then::Same);
            let then_inferred = std::mem::take(&mut self.then_inferred);
            self.push(Segment {
                from: begin,
                to,
                thread,
                program,
                kind,
                then,
                then_inferred,
                inferred,
            });
            to = begin;
        }
    }

    fn push(&mut self, new: Segment) {
        let of = |s: &Segment| (s.thread, s.program, s.kind, s.inferred);
        match self.segments.last_mut() {
            Some(last) if new.then == Then::Same && of(last) == of(&new) => last.from = new.from,
            _ => self.segments.push(new),
        }
    }
}
