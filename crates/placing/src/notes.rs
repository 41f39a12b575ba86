//! Notes on an imported file: why a part of it has no place in the recording, and what was assumed about its times.

use std::fmt;

use tr_text::units;

/// A note on an imported file. Its words are made when the note is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportNote {
    /// Some parts of the file are not spans and were left out, as the reader of the file says.
    NotRead(String),
    /// The file has only times that count from its own beginning, and it is not known when this beginning was.
    UnknownBeginning,
    /// The file has more spans than the search for their processes may try.
    TooManySpans,
    /// Some spans that lie in the recorded time have no process.
    WithoutProcess(WithoutProcess),
    /// The times of the file have no time zone. A zone is assumed whose clocks are ahead of UTC by this number of
    /// quarters of an hour (negative if they are behind).
    AssumedZone { quarters: i64 },
    /// The report has more suites than the search for their runners may try.
    TooManySuites,
    /// The recording already has the tests of the report as marks (events that the test program sent to the recorder).
    TestsAreMarks,
    /// Tests of the report contain other tests, and have no times of their own.
    NestedTests,
    /// Tests of the report overlap and have no times of their own.
    OverlappingTests,
    /// Tests of the report have no time of the day.
    NoTimeOfDay,
    /// The times of the report are whole seconds.
    WholeSeconds,
    /// Tests may have begun earlier than shown, by up to this number of nanoseconds.
    MaybeEarlier(u64),
    /// This number of tests have no figures (such as CPU time), because it is not proven when they ran.
    NotProven(u64),
}

/// The counts of the spans in the recorded time that have no process, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithoutProcess {
    /// The number of spans that have no file or command among their words, so that no command line can be searched for
    /// them.
    pub wordless: u64,
    /// The number of spans whose words are in no command line.
    pub unnamed: u64,
    /// The number of spans whose words are in the command lines of no process or of several ones at that time.
    pub unclear: u64,
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImportNote::NotRead(what) => what,
            ImportNote::UnknownBeginning => "the beginning of its times is not known",
            ImportNote::TooManySpans => {
                "it has more spans than the search for their processes may try"
            }
            ImportNote::WithoutProcess(counts) => return counts.fmt(f),
            ImportNote::AssumedZone { quarters } => {
                let sign = if *quarters < 0 { '-' } else { '+' };
                let minutes = quarters.unsigned_abs().saturating_mul(15);
                let (hours, minutes) = (minutes / 60, minutes % 60);
                return write!(
                    f,
                    "its times have no zone: UTC{sign}{hours:02}:{minutes:02} assumed"
                );
            }
            ImportNote::TooManySuites => {
                "it has more suites than the search for their runners may try"
            }
            ImportNote::TestsAreMarks => "the recording has its tests as marks",
            ImportNote::NestedTests => "tests that hold other tests have no times of their own",
            ImportNote::OverlappingTests => "tests that overlap have no times of their own",
            ImportNote::NoTimeOfDay => "tests without a time of the day",
            ImportNote::WholeSeconds => "its times are whole seconds: tests are up to 1 s later",
            ImportNote::MaybeEarlier(early) => {
                let early = units::time(*early);
                return write!(f, "tests may have begun up to {early} earlier than shown");
            }
            ImportNote::NotProven(count) => {
                let tests = units::plural(*count, "test has", "tests have");
                return write!(
                    f,
                    "{tests} no figures, because their place in time is not proven"
                );
            }
        })
    }
}

impl fmt::Display for WithoutProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.wordless, "without a word for a command line"),
            (self.unnamed, "with words that no command line has"),
            (
                self.unclear,
                "with words of no process or of several ones at that time",
            ),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        let reasons = reasons.map(|(count, reason)| format!("{} {reason}", units::count(count)));
        f.write_str(&reasons.collect::<Vec<String>>().join(", "))
    }
}

/// The text of the notes on a file; `None` if there are none.
pub fn text(notes: &[ImportNote]) -> Option<String> {
    let words: Vec<String> = notes.iter().map(ImportNote::to_string).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::Placed;

    /// A note is not lost because the words of another note contain its words.
    #[test]
    fn each_note_is_kept_once() {
        let mut placed = Placed::default();
        let words = format!("{}, 3 counter events", ImportNote::NoTimeOfDay);
        for note in [
            ImportNote::NotRead(words.clone()),
            ImportNote::NoTimeOfDay,
            ImportNote::NoTimeOfDay,
        ] {
            placed.add_note(note);
        }
        let want = format!("{words}; tests without a time of the day");
        assert_eq!(text(&placed.notes), Some(want));
        assert_eq!(text(&[]), None);
    }

    #[test]
    fn notes_have_their_numbers() {
        for (note, want) in [
            (
                ImportNote::AssumedZone { quarters: -14 },
                "its times have no zone: UTC-03:30 assumed",
            ),
            (
                ImportNote::WithoutProcess(WithoutProcess {
                    wordless: 2,
                    unclear: 1,
                    ..WithoutProcess::default()
                }),
                "2 without a word for a command line, 1 with words of no process or of several ones at that time",
            ),
        ] {
            assert_eq!(note.to_string(), want);
        }
    }
}
