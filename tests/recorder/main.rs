//! The recorder does not harm what it records, keeps its secrets, and says
//! what it lost. Where this machine does not let us trace, these tests are
//! reported as ignored, with the reason.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // a JSON value indexes to null

mod harm;
mod redact;
mod support;
mod terminal;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut args = Arguments::from_args();
    // Their times would disturb each other.
    args.test_threads = Some(1);
    let reason = support::why_not();
    let tests = [redact::TESTS, terminal::TESTS, harm::TESTS];
    let trials = tests.into_iter().flatten().map(|(name, test)| {
        let name = match &reason {
            Some(reason) => format!("{name} (skipped: {reason})"),
            None => (*name).to_owned(),
        };
        Trial::test(name, test).with_ignored_flag(reason.is_some())
    });
    libtest_mimic::run(&args, trials.collect()).exit();
}
