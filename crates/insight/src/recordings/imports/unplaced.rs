//! The tests of a runner's file that have no place in the recording.

use tr_analyze::model::TestResult;

/// A number of tests, and how many of these tests failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestCount {
    pub all: usize,
    pub failed: usize,
}

impl TestCount {
    /// Adds one more test to the counts; `failed` says whether this test failed.
    #[must_use]
    pub fn and(self, failed: bool) -> TestCount {
        TestCount {
            all: self.all + 1,
            failed: self.failed + usize::from(failed),
        }
    }
}

/// A failed test of a runner's file that has no place in the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnplacedTest {
    pub name: String,
    pub result: TestResult,
}
