//! Divides a recording into parts (`--rotate`), which are written to consecutive files. Each file can be read alone.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tr_format::meta::Summary;
use tr_output::Target;

use crate::collector::LastBatches;
use crate::config::Rotation;
use crate::output::{Outcome, Tally};

/// The shortest time that a part of a rotated recording covers, except the last part. The names of the files contain
/// the second at which the part begins, so two parts must not begin in the same second.
const SHORTEST_PART: Duration = Duration::from_millis(1500);
/// The longest wait between two attempts to open the file of the next part of a rotated recording, if they fail.
const PATIENCE: Duration = Duration::from_secs(300);
/// The interval between two checks whether the output has accepted the end of the previous part of a recording.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A part of a rotated recording whose file lacks its end. The file can be read like that of a recorder that was
/// killed.
#[derive(Debug)]
pub struct Cut {
    pub file: Target,
    /// The error of the write that failed; `None` if no write failed, but the recorder stopped waiting for an output
    /// that blocked.
    pub error: Option<tr_format::Error>,
}

/// The parts into which a recording was divided by `--rotate`.
#[derive(Clone, Debug)]
pub struct WrittenParts {
    pub count: u64,
    pub first: Target,
    pub last: Target,
}

/// The parts of a rotated recording that were written, and the part that is being written.
#[derive(Debug)]
pub struct Parts {
    rotation: Rotation,
    /// The time at which the present part of the rotated recording, which is being written, began.
    begun: Instant,
    /// The earliest time at which the present part of the rotated recording may end.
    not_before: Instant,
    /// The wait until the next attempt to open the file of the next part; `None` if the last attempt succeeded.
    refused: Option<Duration>,
    /// The thread that writes the end of the file of the previous part; `None` if there is none.
    closing: Option<JoinHandle<Outcome>>,
    /// The summed counts of events, losses and bytes of all complete parts of the rotated recording.
    sum: Tally,
    /// The file of the part of the rotated recording before the present one.
    before: Target,
    /// The first of the earlier parts whose file lacks its end; `None` if the files of all of them are complete.
    cut: Option<Cut>,
    /// The number of parts of the rotated recording so far, including the present one.
    pub count: u64,
    first: Target,
    /// The file of the present part of the rotated recording.
    pub file: Target,
}

impl Parts {
    /// Begins the first part of a rotated recording, which is written to `file`.
    pub fn new(rotation: Rotation, file: Target) -> Parts {
        let begun = Instant::now();
        Parts {
            rotation,
            begun,
            not_before: begun + SHORTEST_PART,
            refused: None,
            closing: None,
            sum: Tally::default(),
            before: file.clone(),
            cut: None,
            count: 1,
            first: file.clone(),
            file,
        }
    }

    /// The number of parts of the recording, and the files of the first and the last one.
    pub fn written(&self) -> WrittenParts {
        WrittenParts {
            count: self.count,
            first: self.first.clone(),
            last: self.file.clone(),
        }
    }

    /// Whether the present part of the rotated recording, whose file has `written` bytes, has to end now. It does not
    /// end before the previous part is closed, so that at most two parts are open.
    pub fn is_due(&self, written: u64) -> bool {
        let age = self.begun.elapsed();
        let Rotation { every, size, .. } = self.rotation;
        let full =
            every.is_some_and(|every| age >= every) || size.is_some_and(|size| written >= size);
        let closed = self.closing.as_ref().is_none_or(JoinHandle::is_finished);
        full && Instant::now() >= self.not_before && closed
    }

    /// Continues the present part for at least [`SHORTEST_PART`] more, because the source of events cannot end the part
    /// now.
    pub fn postpone(&mut self) {
        self.not_before = Instant::now() + SHORTEST_PART;
    }

    /// Notes that the file of the next part of the recording cannot be opened. The next attempt follows after 1.5 s,
    /// and then each time after twice the previous wait, up to five minutes. Returns whether this is the first
    /// failure: only the first one is recorded as an event.
    pub fn refuse(&mut self) -> bool {
        let wait = self
            .refused
            .map_or(SHORTEST_PART, |wait| (wait * 2).min(PATIENCE));
        self.not_before = Instant::now() + wait;
        self.refused.replace(wait).is_none()
    }

    /// The file of the next part of the recording, which begins at the time `real` in ns since 1970.
    pub fn next(&self, output: &Target, real: u64) -> Target {
        self.rotation.target(output, real)
    }

    /// Begins the next part of the recording, which is written to this file. A thread completes the previous part
    /// meanwhile.
    pub fn change(&mut self, file: Target, last: LastBatches, summary: Summary) {
        self.join();
        self.begun = Instant::now();
        self.before = std::mem::replace(&mut self.file, file);
        (self.not_before, self.refused) = (self.begun + SHORTEST_PART, None);
        self.count += 1;
        let close = move || {
            let wait = || {
                std::thread::sleep(LOOK_INTERVAL);
                true
            };
            let done = last.output.finish(last.batches, summary, wait);
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

    /// Waits until the previous part of the recording is closed, or until `go_on` returns false. Returns the summed
    /// counts of all parts but the last, and the first part whose file lacks its end.
    pub fn finish(mut self, mut go_on: impl FnMut() -> bool) -> (Tally, Option<Cut>) {
        while self
            .closing
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
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
        assert!(parts.refuse(), "the first one is reported");
        let waits: Vec<_> = std::iter::repeat_with(|| {
            assert!(!parts.refuse() && !parts.is_due(2));
            parts.refused.unwrap()
        })
        .take(12)
        .collect();
        assert_eq!(waits[0], 2 * SHORTEST_PART);
        assert!(waits.is_sorted());
        assert_eq!(waits[11], PATIENCE);
    }

    #[test]
    fn a_part_without_its_end_is_reported() {
        let ended = |outcome: fn() -> Outcome| {
            let mut parts = parts();
            parts.before = std::mem::replace(&mut parts.file, Target::File("2".into()));
            parts.closing = Some(std::thread::spawn(outcome));
            let (_, cut) = parts.finish(|| true);
            cut.map(|cut| (cut.file, cut.error.map(|error| error.to_string())))
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
        assert!(cut.is_some_and(|cut| cut.error.is_none()));
    }
}
