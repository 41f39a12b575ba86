//! The result that a program or another tool's file gives for a step.

use serde::{Serialize, Serializer};
use tr_analyze::model::TestResult;
use tr_text::escape;

/// The meaning of a step's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    /// The step failed because its time limit was exceeded.
    TimedOut,
    /// The step was skipped, or its result is a word with another meaning or an unknown one.
    Other,
}

/// The result that a program gave for a step in its mark (an event that the program sent to the recorder), or that
/// another tool's file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepResult {
    /// The word of the program or the file, for people.
    word: String,
    outcome: Outcome,
}

impl StepResult {
    /// Reads the result in a program's mark; `None` if the mark has none.
    pub fn of_mark(word: &[u8]) -> Option<StepResult> {
        let outcome = match word {
            b"" => return None,
            b"passed" | b"ok" => Outcome::Passed,
            b"failed" | b"failure" | b"error" | b"unreachable" => Outcome::Failed,
            b"timeout" => Outcome::TimedOut,
            _ => Outcome::Other,
        };
        Some(StepResult {
            word: escape::raw(word),
            outcome,
        })
    }

    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    pub fn word(&self) -> &str {
        &self.word
    }

    pub fn into_word(self) -> String {
        self.word
    }
}

impl From<TestResult> for StepResult {
    fn from(result: TestResult) -> StepResult {
        StepResult {
            word: result.word().to_owned(),
            outcome: match result {
                TestResult::Passed => Outcome::Passed,
                TestResult::Failed | TestResult::Error => Outcome::Failed,
                TestResult::Skipped => Outcome::Other,
            },
        }
    }
}

/// JSON has the word alone.
impl Serialize for StepResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_a_file_means_what_its_word_means_in_a_mark() {
        for result in [
            TestResult::Passed,
            TestResult::Failed,
            TestResult::Error,
            TestResult::Skipped,
        ] {
            let of_mark = StepResult::of_mark(result.word().as_bytes());
            assert_eq!(of_mark, Some(StepResult::from(result)));
        }
        assert_eq!(StepResult::of_mark(b""), None);
    }
}
