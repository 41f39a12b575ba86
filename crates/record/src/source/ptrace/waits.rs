//! Waits for the next stop or end of a tracee.
//!
//! A wait for any tracee makes the kernel examine all of them, twice: with 20,000 threads that takes 2 ms for each
//! event. So from [`MANY_TRACEES`] tracees on, the tracer waits for the SIGCHLD that the kernel sends with the id of a
//! tracee, and asks the kernel about that tracee alone.
//!
//! The kernel keeps only one SIGCHLD at a time, so some events come without a signal. Mostly they are the first stop of
//! a new task, the next fork of a task that has just forked, or the end of the thread that was made right after one
//! that has ended. The tracer asks about these tasks first.
//!
//! All other events are found by examining all tracees. While no signal comes, this is done after 20 times the time
//! that an examination takes; while signals come, after 100 times. Shorter intervals take CPU time from other programs
//! on a busy machine: compared with 4 and 20 times, these intervals save 9 % of the CPU time of 20,000 threads and a
//! third of their wall time, beside a load of 20 to 60 (medians of five pairs).
//!
//! If examining all tracees is slow although it finds an event, the tracer asks about every tracee by its id, because
//! after a burst of ends thousands of events have no signal.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::sys::{self, Next};
use crate::proc::Id;
use crate::urgency;

/// The number of tracees from which on the tracer waits for the signals of its tracees (SIGCHLD). With fewer than
/// [`FEW_TRACEES`] it waits again for any of them by waitid(2).
const MANY_TRACEES: usize = 256;
const FEW_TRACEES: usize = 128;
/// The tracer first asks the kernel whether new tasks, and the tasks that forked last, have stopped or ended: at most
/// this many of each.
const FIRST_TASKS: usize = 4;
/// After a task has ended, the tracer also asks the kernel whether the tasks with the next ids have ended: this many of
/// them, because threads often end in the order of their ids.
const NEIGHBOURS: Id = 4;
/// The shortest time without a signal from a tracee after which all tracees are examined.
const QUIET_TIME: Duration = Duration::from_micros(200);
/// The shortest time between two examinations of all tracees while signals from tracees come.
const EXAMINATION_INTERVAL: Duration = Duration::from_millis(2);
/// The longest time that an examination of all tracees may take if it finds one event. If it takes longer, the tracer
/// asks the kernel about the tracees one by one, by their ids.
const SLOW_EXAMINATION: Duration = Duration::from_micros(50);
/// The number of tracees for which the tracer asks the kernel, one by one, whether they have stopped or ended, before
/// it looks for signals again.
const AT_ONCE: usize = 64;
/// The longest wait for a signal from a tracee when every tracee was found running.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Waits {
    by_signals: bool,
    /// The ids of the traced tasks that forked last, the newest one first.
    parents: Vec<Id>,
    /// The ids of new traced tasks whose first stop has not been found, the oldest one first.
    newborn: VecDeque<Id>,
    /// The id of the traced task whose end was found last. Threads that were made one after the other mostly end in the
    /// same order.
    ended: Option<Id>,
    /// Whether the last examination of all tracees has found an event, so that there may be more events.
    has_found: bool,
    /// Whether the last examination of all tracees was slow, so that the kernel has to be asked about the tracees one
    /// by one, whether each has stopped or ended.
    is_slow: bool,
    /// The ids of the tracees for each of which the tracer still has to ask the kernel whether it has stopped or ended.
    open: Vec<Id>,
    /// Whether a tracee's event was found since the last examination of all tracees, so that the signal of another
    /// event may be missing.
    is_unsure: bool,
    last_look: Instant,
    /// The duration of the last examination of all tracees that found no event.
    cost: Duration,
}

impl Waits {
    pub fn new() -> Waits {
        Waits {
            by_signals: false,
            parents: Vec::new(),
            newborn: VecDeque::new(),
            ended: None,
            has_found: false,
            is_slow: false,
            open: Vec::new(),
            is_unsure: false,
            last_look: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    /// Notes that a traced task has forked. `child` is the new task if its first stop has not been found yet.
    pub fn forked(&mut self, parent: Id, child: Option<Id>) {
        self.parents.retain(|known| *known != parent);
        self.parents.insert(0, parent);
        self.parents.truncate(FIRST_TASKS);
        if self.by_signals {
            self.newborn.extend(child);
        }
    }

    /// Whether the tracer's next step needs the ids of all tracees, which [`Waits::ask`] takes.
    pub fn wants_ids(&self) -> bool {
        self.is_slow && self.open.is_empty()
    }

    /// Makes the tracer ask the kernel whether the tracees with these ids have stopped or ended, one tracee after the
    /// other, the oldest one first.
    pub fn ask(&mut self, mut ids: Vec<Id>) {
        // The list is in descending order, because its last id is asked for next: the oldest tracees tend to end first.
        ids.sort_unstable_by(|one, other| other.cmp(one));
        self.open = ids;
        self.is_slow = false;
    }

    /// Waits for a stop or an end of a tracee. `tracees` is the number of living tracees. [`sys::wake`] ends the wait.
    pub fn next(&mut self, tracees: usize) -> Option<Next> {
        self.choose(tracees);
        if !self.by_signals {
            return sys::next(true);
        }
        let due = EXAMINATION_INTERVAL.max(self.cost * 100);
        if self.is_unsure && self.last_look.elapsed() > due {
            if let Some(next) = self.look_at_all() {
                return Some(next);
            }
        }
        loop {
            if let Some(next) = self.ready() {
                return Some(next);
            }
            if self.open.is_empty() {
                break;
            }
            let rest = self.open.len().saturating_sub(AT_ONCE);
            while self.open.len() > rest {
                let next = self.open.pop().and_then(sys::next_of);
                if let Some(next) = next {
                    return Some(self.found(next));
                }
            }
        }
        if self.has_found {
            return self.look_at_all();
        }
        let longest = if self.is_unsure {
            QUIET_TIME.max(self.cost * 20)
        } else {
            LONGEST_WAIT
        };
        match sys::announced(longest) {
            Some(id) => self.of(id),
            None if self.is_unsure => self.look_at_all(),
            None => None,
        }
    }

    /// A stop or an end of a tracee that has already come; `None` if there is none. The function does not wait.
    pub fn ready(&mut self) -> Option<Next> {
        if !self.by_signals {
            return sys::next(false);
        }
        let first = self.newborn.iter().take(FIRST_TASKS).chain(&self.parents);
        if let Some(next) = first.copied().find_map(sys::next_of) {
            return Some(self.found(next));
        }
        if let Some(ended) = self.ended.take() {
            // Ids next to that of an ended task often belong to tracees that end as well. A wrong id costs little,
            // because the kernel refuses it at once.
            let mut neighbours = (1..=NEIGHBOURS).filter_map(|more| ended.checked_add(more));
            if let Some(next) = neighbours.find_map(sys::next_of) {
                return Some(self.found(next));
            }
        }
        while let Some(id) = sys::announced(Duration::ZERO) {
            if let Some(next) = self.of(id) {
                return Some(next);
            }
        }
        None
    }

    fn choose(&mut self, tracees: usize) {
        let change = if self.by_signals {
            tracees < FEW_TRACEES
        } else {
            tracees >= MANY_TRACEES
        };
        if change {
            self.by_signals = !self.by_signals;
            // Tracees that stopped before the tracer began to wait for signals have sent no signal, so their stops have
            // to be searched for.
            self.is_unsure = self.by_signals;
            self.newborn.clear();
            self.open.clear();
            sys::announce_stops(self.by_signals);
            // With high priority the tracer would preempt the tracees after each event. With normal priority it handles
            // several events in a row.
            if self.by_signals {
                urgency::normal();
            } else {
                urgency::high();
            }
        }
    }

    /// The stop or end of the traced task whose signal has come; `None` if the kernel reports none.
    fn of(&mut self, id: Id) -> Option<Next> {
        self.is_unsure = true;
        sys::next_of(id).map(|next| self.found(next))
    }

    fn found(&mut self, next: Next) -> Next {
        self.is_unsure = true;
        let (Next::Stop(found) | Next::End(found)) = next;
        if let Next::End(end) = next {
            self.ended = Some(end.id);
        }
        if let Some(at) = self.newborn.iter().position(|id| *id == found.id) {
            self.newborn.remove(at);
        }
        next
    }

    fn look_at_all(&mut self) -> Option<Next> {
        let begun = Instant::now();
        let next = sys::next(false);
        self.last_look = Instant::now();
        self.has_found = next.is_some();
        if self.has_found {
            self.is_slow = begun.elapsed() > SLOW_EXAMINATION;
        } else {
            self.cost = begun.elapsed();
        }
        self.is_unsure = self.has_found;
        next.map(|next| self.found(next))
    }
}
