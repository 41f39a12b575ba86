//! Lets a watcher see the events on their way to the file (`tr record --status`).

use tr_format::event::{Ktime, LifeEvent, SchedEvent};

/// A receiver of the events that the writer writes, in the order of their drains, with secrets masked. It runs in the
/// writing thread and must not block.
pub trait Watcher: Send {
    fn sched(&mut self, event: &SchedEvent);
    fn life(&mut self, event: &LifeEvent);
    /// Notes that all events before this time have been received. It is called about every 0.7 s.
    fn until(&mut self, time: Ktime);
}

/// The functions by which a recording is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watching {
    /// The function that makes the watcher of a recording that begins at this time.
    pub start: fn(Ktime) -> Box<dyn Watcher>,
    /// The function that is called before the terminal stops `tr` (Ctrl-Z).
    pub pause: fn(),
}
