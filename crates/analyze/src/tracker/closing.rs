//! Finds the task that ends a wait for a TCP connection by closing the other end of the connection.

use std::collections::HashMap;

use tr_format::event::{Ktime, Tid};

/// The longest time in nanoseconds from the moment at which a task closes a TCP connection to the softirq that tells
/// the other end. A guess: measured were 7 to 40 µs.
const LATEST_CLOSE: u64 = 200_000;

/// The time at which each task last closed a TCP connection to a loopback address, and so to this machine. The packet
/// that says so to the other end follows at once, in a softirq on the task's CPU.
#[derive(Debug, Default)]
pub(super) struct LastClosed(HashMap<Tid, Ktime>);

impl LastClosed {
    pub fn closes(&mut self, task: Tid, time: Ktime) {
        self.0.insert(task, time);
    }

    /// Whether a task closed a TCP connection to this machine so shortly before a time that a softirq on the task's CPU
    /// at that time handles the end of this connection.
    pub fn has_just_closed(&self, task: Tid, time: Ktime) -> bool {
        let closed = self.0.get(&task);
        closed.is_some_and(|closed| *closed <= time && time.since(*closed) <= LATEST_CLOSE)
    }
}
