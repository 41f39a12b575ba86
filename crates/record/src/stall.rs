//! Waits for an output (such as a pipe or a busy disk) that does not accept the end of the trace.

use std::time::{Duration, Instant};

use crate::command::Running;
use crate::signals::Signals;
use crate::source::Source;

/// The time after which a wait for the output is long, so that `Notices::on_wait` is called.
pub const LONG_WAIT: Duration = Duration::from_secs(2);

/// The longest wait for the output after COMMAND's end. The wait needs a limit because in CI no one sends a signal that
/// would end it.
pub const LIMIT: Duration = Duration::from_secs(10);

/// One wait for the output to accept data. The wait consists of sleeps of 200 µs to 20 ms, because most outputs finish
/// within a few ms.
#[derive(Debug)]
pub struct Stall {
    since: Instant,
    over_since: Option<Instant>,
    /// Whether a signal to `tr` has come since COMMAND ended.
    signalled: bool,
    pause: Duration,
    /// The function that is called once, when COMMAND has ended and the wait for the output has lasted for
    /// [`LONG_WAIT`].
    on_long: Option<fn()>,
}

impl Stall {
    /// Begins a wait for the output. The time of the wait counts from now on.
    pub fn new(on_long: fn()) -> Stall {
        Stall {
            since: Instant::now(),
            over_since: None,
            signalled: false,
            pause: Duration::from_micros(200),
            on_long: Some(on_long),
        }
    }

    /// Sleeps once, and returns whether to continue the wait for the output. While COMMAND runs, the wait goes on, and
    /// signals are passed on to COMMAND. After COMMAND's end, the wait ends after [`LIMIT`], or at a signal if the
    /// wait is already long. A signal does not end a short wait: CI systems cancel a job by a signal, and a busy disk
    /// soon accepts data again.
    pub fn go_on(
        &mut self,
        running: Option<&Running>,
        signals: &Signals,
        source: Option<&dyn Source>,
    ) -> bool {
        let over = running.is_none_or(Running::has_ended);
        let signal = signals.forward(running, source);
        if over && self.is_long() {
            if let Some(on_long) = self.on_long.take() {
                on_long();
            }
        }
        self.sleep();
        if !over {
            return true;
        }
        let since = *self.over_since.get_or_insert_with(Instant::now);
        self.signalled |= signal;
        !(self.signalled && self.is_long()) && since.elapsed() < LIMIT
    }

    /// Whether the wait for the output has lasted for at least the time [`LONG_WAIT`].
    pub fn is_long(&self) -> bool {
        self.since.elapsed() >= LONG_WAIT
    }

    /// Sleeps once while waiting for the output, each time twice as long, up to 20 ms.
    pub fn sleep(&mut self) {
        crate::host::pause(self.pause);
        self.pause = (self.pause * 2).min(Duration::from_millis(20));
    }
}
