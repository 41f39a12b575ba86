//! The parts of a recording (`--rotate`): files that follow each other, each readable alone.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tr_format::meta::Summary;
use tr_output::Target;

use crate::config::Rotation;
use crate::output::{Batch, Outcome, Output, Tally};

/// The shortest part: names have the second of their beginning.
const LEAST: Duration = Duration::from_millis(1500);
/// The longest wait for a file that cannot be opened.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between two looks at an output that has not taken the end of its part.
const LOOK: Duration = Duration::from_millis(10);

/// A part that lacks its end, and is read like that of a killed recorder.
#[derive(Debug)]
pub struct Cut {
    pub file: Target,
    /// `None`: given up, as its output blocked.
    pub error: Option<tr_format::Error>,
}

#[derive(Debug)]
pub struct Parts {
    rotation: Rotation,
    begun: Instant,
    /// No part ends before.
    not_before: Instant,
    /// The next file could not be opened; how long until it is tried again.
    refused: Option<Duration>,
    /// Writes the end of the part before.
    closing: Option<JoinHandle<Outcome>>,
    /// Of the parts that are complete.
    sum: Tally,
    /// The part before.
    before: Target,
    /// The first of those before that lacks its end.
    cut: Option<Cut>,
    /// The number of parts.
    pub count: u64,
    /// The file of the present part.
    pub file: Target,
}

impl Parts {
    /// The first part begins.
    pub fn new(rotation: Rotation, file: Target) -> Parts {
        let begun = Instant::now();
        Parts {
            rotation,
            begun,
            not_before: begun + LEAST,
            refused: None,
            closing: None,
            sum: Tally::default(),
            before: file.clone(),
            cut: None,
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
        full && Instant::now() >= self.not_before && closed
    }

    /// The source cannot divide the recording now.
    pub fn postpone(&mut self) {
        self.not_before = Instant::now() + LEAST;
    }

    /// The next file cannot be opened: each try waits twice as long as the one before. Whether this is
    /// the first one, which is worth an event.
    pub fn refuse(&mut self) -> bool {
        let wait = self.refused.map_or(LEAST, |it| (it * 2).min(PATIENCE));
        self.not_before = Instant::now() + wait;
        self.refused.replace(wait).is_none()
    }

    /// The file of the next part.
    pub fn next(&self, output: &Target, real: u64) -> Target {
        self.rotation.target(output, real)
    }

    /// The next part begins; the writer completes the one before beside it.
    pub fn change(&mut self, file: Target, (old, last): (Output, Vec<Batch>), summary: Summary) {
        self.join();
        self.begun = Instant::now();
        self.before = std::mem::replace(&mut self.file, file);
        (self.not_before, self.refused) = (self.begun + LEAST, None);
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
        match thread.spawn(close) {
            Ok(closing) => self.closing = Some(closing),
            Err(error) => self.lacks_end(Some(error.into())),
        }
    }

    fn lacks_end(&mut self, error: Option<tr_format::Error>) {
        let file = self.before.clone();
        self.cut.get_or_insert(Cut { file, error });
    }

    fn join(&mut self) {
        if let Some(closing) = self.closing.take() {
            match closing.join() {
                Ok((tally, written)) => {
                    self.sum.add(&tally);
                    if let Err(error) = written {
                        self.lacks_end(Some(error));
                    }
                }
                Err(_) => {
                    let panicked = std::io::Error::other("its thread has failed");
                    self.lacks_end(Some(panicked.into()));
                }
            }
        }
    }

    /// Waits for the part before the last one, while `go_on`; the counts of all but the last, and the
    /// first that lacks its end.
    pub fn finish(mut self, mut go_on: impl FnMut() -> bool) -> (Tally, Option<Cut>) {
        while self.closing.as_ref().is_some_and(|it| !it.is_finished()) {
            if !go_on() {
                self.lacks_end(None);
                return (self.sum, self.cut);
            }
        }
        self.join();
        (self.sum, self.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Parts {
        let rotation = Rotation {
            every: None,
            size: Some(1),
            name: |path, _, _| path.to_owned(),
        };
        Parts::new(rotation, Target::File("1".into()))
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_tried_less_and_less() {
        let mut parts = parts();
        parts.not_before = Instant::now();
        assert!(parts.is_due(2));
        assert!(parts.refuse(), "the first one is told");
        let waits: Vec<_> = std::iter::repeat_with(|| {
            assert!(!parts.refuse() && !parts.is_due(2));
            parts.refused.unwrap()
        })
        .take(12)
        .collect();
        assert_eq!(waits[0], 2 * LEAST);
        assert!(waits.is_sorted());
        assert_eq!(waits[11], PATIENCE);
    }

    #[test]
    fn a_part_without_its_end_is_told() {
        let ended = |outcome: fn() -> Outcome| {
            let mut parts = parts();
            parts.before = std::mem::replace(&mut parts.file, Target::File("2".into()));
            parts.closing = Some(std::thread::spawn(outcome));
            let (_, cut) = parts.finish(|| true);
            cut.map(|cut| (cut.file, cut.error.map(|it| it.to_string())))
        };
        let first = || Target::File("1".into());
        assert_eq!(ended(|| (Tally::default(), Ok(()))), None);
        let full = || {
            let full = std::io::Error::other("disk full");
            (Tally::default(), Err(full.into()))
        };
        let cut = Some((first(), Some("disk full".to_owned())));
        assert_eq!(ended(full), cut);
        let (file, why) = ended(|| panic!("on purpose")).unwrap();
        assert_eq!(
            (file, why),
            (first(), Some("its thread has failed".to_owned()))
        );

        let mut parts = parts();
        parts.closing = Some(std::thread::spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            (Tally::default(), Ok(()))
        }));
        let (_, cut) = parts.finish(|| false);
        assert!(cut.is_some_and(|it| it.error.is_none()));
    }
}
