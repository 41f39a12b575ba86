//! Finds the timers that a thread set before other work, and whose rest alone it waited for later.
//!
//! An event loop that has set a timer waits for other events meanwhile, and each of its waits has the rest of the
//! timer's time as its time-out. The timer expires at the same moment, no matter how long the other events took.

use std::collections::VecDeque;

use tr_format::event::{Ktime, Reason};

use crate::ids::ThreadIx;
use crate::timeline::{Bucket, Stretch, Timeline, Wait};

/// The largest number of a thread's last waits that are searched for the one at which it set a timer. A bound of the
/// work.
const MOST_WAITS: usize = 64;
/// The largest delay in ns with which a timer ends a wait. A guess: timers of event loops are late by as much as a
/// millisecond.
const LATEST_END: u64 = 1_000_000;
/// The reasons for waiting in which event loops wait for the rest of a timer's time. Calls that only sleep are not
/// among them: no other event ends such a call early, so the call never waits for the rest of a time.
const LOOP_REASONS: [Reason; 2] = [Reason::Poll, Reason::Lock];

/// A timer of a thread that did other work between the moment at which the timer was set and its last wait for the
/// timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTimer {
    /// The beginning of the first wait that had the timer's time as its time-out.
    pub set: Ktime,
    /// The beginning of the wait that the timer ended.
    pub wait: Ktime,
    /// The time in ns from `set` to the end of that wait.
    pub length: u64,
}

impl SetTimer {
    /// The moment at which the timer expired.
    pub fn end(&self) -> Ktime {
        Ktime(self.set.0.saturating_add(self.length))
    }
}

/// A wait of a thread with a time-out, as far as the search for timers needs it.
struct TimedWait {
    from: Ktime,
    reason: Reason,
    /// The shortest time-out in ns of the class in which the time-out of the wait's system call is recorded.
    class: u64,
    /// The shortest and the longest time-out in ns that the system call may have had. The longest time-out of a class
    /// is a quarter longer than the shortest one. If the time-out ended the wait, both are the length of the wait.
    timeout: (u64, u64),
}

impl TimedWait {
    fn of(stretch: &Stretch) -> TimedWait {
        // A wait without a time-out counts as one with a time-out that never comes.
        let class = stretch.timeout.least().unwrap_or(u64::MAX);
        let timeout = if stretch.waker().is_timer() {
            (stretch.length(), stretch.length())
        } else {
            (class, class.saturating_add(class / 4))
        };
        TimedWait {
            from: stretch.from,
            reason: stretch.reason,
            class,
            timeout,
        }
    }

    /// Whether the time-out of the wait may have been the rest of the time until `end`.
    fn may_last_until(&self, end: Ktime) -> bool {
        let (least, most) = self.timeout;
        (least..=most.saturating_add(LATEST_END)).contains(&end.since(self.from))
    }

    /// The wait at which the thread set the timer that ended this wait at `end`. `before` has the thread's earlier
    /// waits in order. A wait in between that had no time-out, or a longer one, shows that the timer was not yet set.
    fn set_at<'w>(
        &self,
        end: Ktime,
        before: impl DoubleEndedIterator<Item = &'w TimedWait>,
    ) -> Option<&'w TimedWait> {
        let mut set = None;
        for wait in before.rev() {
            // A runtime may wait for the same timer by poll(2) and by a lock, but only a loop's own kind of wait shows
            // that no timer was set.
            if wait.may_last_until(end) {
                set = Some(wait);
            } else if wait.reason == self.reason && wait.timeout.0 > end.since(wait.from) {
                break;
            }
        }
        // A loop that waits with the same time-out again and again sets a new timer each time.
        set.filter(|set| set.class > self.class)
    }
}

/// The timers of a thread that it set before other work, in the order of the waits that they ended.
pub fn set_early(timeline: &Timeline, thread: ThreadIx) -> Vec<SetTimer> {
    let mut timers = Vec::new();
    if !LOOP_REASONS
        .iter()
        .any(|reason| timeline.may_wait(thread, *reason))
    {
        return timers;
    }
    let mut waits: VecDeque<TimedWait> = VecDeque::new();
    // Whether a timer ended the thread's last wait.
    let mut after_timer = false;
    for stretch in timeline.of(thread) {
        let is_wait = stretch.doing == Bucket::Wait(Wait::Sleep);
        if !is_wait || !LOOP_REASONS.contains(&stretch.reason) {
            continue;
        }
        let wait = TimedWait::of(&stretch);
        let by_timer = stretch.waker().is_timer();
        if by_timer && after_timer {
            // Several timers expire one after the other. Each wait had the rest of the first one as its time-out, so
            // nothing shows when the thread set the others.
            let last = waits.back().map(|wait| wait.from);
            timers.pop_if(|timer: &mut SetTimer| Some(timer.wait) == last);
        } else if by_timer {
            let timer = wait.set_at(stretch.to, waits.iter()).map(|set| SetTimer {
                set: set.from,
                wait: stretch.from,
                length: stretch.to.since(set.from),
            });
            timers.extend(timer);
        }
        after_timer = by_timer;
        if waits.len() == MOST_WAITS {
            waits.pop_front();
        }
        waits.push_back(wait);
    }
    timers
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A wait of an event loop, with times in ms. Another event ended it before its time-out.
    fn wait(from: u64, least: u64) -> TimedWait {
        TimedWait {
            from: Ktime(from * MS),
            reason: Reason::Poll,
            class: least * MS,
            timeout: (least * MS, least * MS * 5 / 4),
        }
    }

    /// The beginning in ms of the wait at which the timer was set that ended a wait from 900 to 1,000 ms.
    fn set_at(before: &[TimedWait]) -> Option<u64> {
        let last = TimedWait {
            timeout: (100 * MS, 100 * MS),
            ..wait(900, 100)
        };
        let set = last.set_at(Ktime(1_000 * MS), before.iter());
        set.map(|set| set.from.0 / MS)
    }

    #[test]
    fn a_timer_was_set_at_the_first_wait_that_had_its_rest_as_the_timeout() {
        assert_eq!(set_at(&[]), None);
        assert_eq!(set_at(&[wait(0, 900), wait(400, 500)]), Some(0));
        // In between, the thread waited with a shorter time-out of 50 ms. The timer was set before that wait, at 0.
        assert_eq!(set_at(&[wait(0, 900), wait(400, 50)]), Some(0));
        // A wait without a time-out, and one with a longer time-out: the timer was set later.
        assert_eq!(
            set_at(&[wait(0, 900), wait(100, 1 << 30), wait(400, 500)]),
            Some(400)
        );
        assert_eq!(
            set_at(&[wait(0, 900), wait(100, 950), wait(400, 500)]),
            Some(400)
        );
        // A loop waits with equal time-outs of 100 ms, so each wait sets a new timer. An event ended one of these waits
        // just before the last wait.
        assert_eq!(set_at(&[wait(780, 100), wait(890, 100)]), None);
        // A wait for a lock without a time-out says nothing about the timers of an event loop.
        let lock = TimedWait {
            reason: Reason::Lock,
            ..wait(100, 1 << 30)
        };
        assert_eq!(set_at(&[wait(0, 900), lock, wait(400, 500)]), Some(0));
    }

    #[test]
    fn a_timer_that_has_expired_ends_no_later_wait() {
        let expired = TimedWait {
            timeout: (850 * MS, 850 * MS),
            ..wait(0, 850)
        };
        assert_eq!(set_at(&[expired]), None);
    }
}
