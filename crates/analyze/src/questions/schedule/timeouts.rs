//! Waits for another thread with a timeout, begun again after each timeout, as a queue's reader
//! does. The other thread ends them, not the timeouts: on faster CPUs fewer of them pass.

use tr_format::event::{Ktime, Reason};

use crate::awaited::Awaited;
use crate::timeline::{Bucket, Stretch};

/// Work, and other waits, up to this part of a timeout come between it and the next wait: the loop
/// around the call, and the interpreter's lock.
const BETWEEN: u64 = 100;

/// The timeouts of a thread that have passed, and after which it has done nothing but wait again.
#[derive(Default)]
pub(super) struct Timeouts {
    /// The beginnings of those that another thread's waking has ended, in order.
    ended: Vec<Ktime>,
    /// Those that may still become ones, of a reason and a length.
    open: Vec<Ktime>,
    reason: Reason,
    longest: u64,
    /// Since the last of them, in ns.
    between: u64,
}

impl Timeouts {
    /// Takes a thread's next stretch; `by_own`: a thread of the run ended this wait; `starts`: the
    /// thread has started others since the last wait.
    pub fn add(
        &mut self,
        stretch: &Stretch,
        awaited: Option<Awaited>,
        by_own: bool,
        starts: bool,
    ) {
        if starts || stretch.doing == Bucket::Unknown {
            self.forget();
        }
        if matches!(stretch.doing, Bucket::RunQueue { .. }) {
            return;
        }
        let timeout = awaited == Some(Awaited::Timer) && stretch.reason != Reason::Timer;
        let same = stretch.reason == self.reason && !self.open.is_empty();
        let short = stretch.length() <= self.longest / BETWEEN;
        if timeout {
            if !same {
                self.forget();
            }
            self.reason = stretch.reason;
            self.longest = self.longest.max(stretch.length());
            self.open.push(stretch.from);
            self.between = 0;
        } else if same && by_own && !short {
            self.ended.append(&mut self.open);
            self.forget();
        } else {
            self.between = self.between.saturating_add(stretch.length());
            if self.between > self.longest / BETWEEN {
                self.forget();
            }
        }
    }

    fn forget(&mut self) {
        self.open.clear();
        self.longest = 0;
        self.between = 0;
    }

    /// The beginnings of the timeouts that cost the run nothing, in order.
    pub fn ended(self) -> Vec<Ktime> {
        self.ended
    }
}
