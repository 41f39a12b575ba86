//! Lets a watcher see the recorded events on their way to the trace file (`tr record --status`).

use tr_format::event::{Ktime, LifeEvent, SchedEvent};

/// A receiver of the recorded events, in the order in which they were drained from the BPF programs' buffers (slots and
/// rings). Secrets in the events are already masked. The thread that writes the trace calls the watcher, so the watcher
/// must not block.
pub trait Watcher: Send {
    fn sched(&mut self, event: &SchedEvent);
    fn life(&mut self, event: &LifeEvent);
    /// Notes that the watcher has received all events before this time. The writing thread calls this function about
    /// every 0.7 s, or every 30 s in a light recording.
    fn until(&mut self, time: Ktime);
}

/// The functions by which a watcher sees the events of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Watching {
    /// The function that creates the watcher of a recording that begins at this time.
    pub start: fn(Ktime) -> Box<dyn Watcher>,
    /// The function that is called before the terminal stops `tr` (Ctrl-Z), so that a watcher can restore the
    /// terminal.
    pub pause: fn(),
}
