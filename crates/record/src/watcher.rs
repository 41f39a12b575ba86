//! Whoever sees the events on their way to the file (`tr record --status`).

use tr_format::event::{Ktime, LifeEvent, SchedEvent};

/// Sees the events that the writer writes, in the order of their drains, secrets masked. It runs
/// in the writing thread, so nothing in it may wait.
pub trait Watcher: Send {
    fn sched(&mut self, event: &SchedEvent);
    fn life(&mut self, event: &LifeEvent);
    /// All events before this time have come. Called every 0.7 s or so.
    fn until(&mut self, time: Ktime);
}

/// How a recording is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watching {
    /// Makes the watcher of a recording that begins at this time.
    pub start: fn(Ktime) -> Box<dyn Watcher>,
    /// Called before the terminal stops `tr` (Ctrl-Z).
    pub pause: fn(),
}
