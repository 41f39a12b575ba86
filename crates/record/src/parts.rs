//! The parts of a recording (`--rotate`): files that follow each other, each readable alone.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tr_format::meta::Summary;
use tr_output::Target;

use crate::config::Rotation;
use crate::output::{Batch, Outcome, Output, Tally};

/// The shortest part: names have the second of their beginning.
const LEAST: Duration = Duration::from_millis(1500);
/// Between two looks at an output that has not taken the end of its part.
const LOOK: Duration = Duration::from_millis(10);

/// The parts so far.
#[derive(Debug)]
pub struct Parts {
    rotation: Rotation,
    begun: Instant,
    /// Writes the end of the part before.
    closing: Option<JoinHandle<Outcome>>,
    /// Of the parts that are complete.
    sum: Tally,
    /// The first error of a part that was closed.
    error: Option<tr_format::Error>,
    /// The number of parts.
    pub count: u64,
    /// The file of the present part.
    pub file: Target,
}

impl Parts {
    /// The first part begins.
    pub fn new(rotation: Rotation, file: Target) -> Parts {
        Parts {
            rotation,
            begun: Instant::now(),
            closing: None,
            sum: Tally::default(),
            error: None,
            count: 1,
            file,
        }
    }

    /// The present part, of so many bytes, ends. One whose end the output has not taken keeps the next
    /// from ending: the recording then has no more than two open.
    pub fn is_due(&self, written: u64) -> bool {
        let age = self.begun.elapsed();
        let Rotation { every, size, .. } = self.rotation;
        let full = every.is_some_and(|every| age >= every) || size.is_some_and(|it| written >= it);
        let closed = self.closing.as_ref().is_none_or(JoinHandle::is_finished);
        full && age >= LEAST && closed
    }

    /// Waits for another such part before it is due again.
    pub fn postpone(&mut self) {
        self.begun = Instant::now();
    }

    /// The file of the next part.
    pub fn next(&self, output: &Target, real: u64) -> Target {
        self.rotation.target(output, real)
    }

    /// The next part begins; the writer completes the one before beside it.
    pub fn change(&mut self, file: Target, (old, last): (Output, Vec<Batch>), summary: Summary) {
        self.join();
        (self.begun, self.file) = (Instant::now(), file);
        self.count += 1;
        let close = move || {
            let wait = || {
                std::thread::sleep(LOOK);
                true
            };
            let done = old.finish(last, summary, wait);
            done.unwrap_or((Tally::default(), Ok(())))
        };
        let thread = std::thread::Builder::new().name("tr-part".into());
        // Without the thread the part lacks its end, and is read like that of a killed recorder.
        self.closing = thread.spawn(close).ok();
    }

    fn join(&mut self) {
        if let Some(closing) = self.closing.take() {
            if let Ok((tally, written)) = closing.join() {
                self.sum.add(&tally);
                self.error = self.error.take().or(written.err());
            }
        }
    }

    /// Waits for the part before the last one, while `go_on`; the counts of all but the last, and the
    /// first error.
    pub fn finish(mut self, mut go_on: impl FnMut() -> bool) -> (Tally, Option<tr_format::Error>) {
        while self.closing.as_ref().is_some_and(|it| !it.is_finished()) {
            if !go_on() {
                return (self.sum, self.error);
            }
        }
        self.join();
        (self.sum, self.error)
    }
}
