//! Tests the integrations in `ci/` (kits), each in an imitation of its CI system: the runner's environment, files and
//! order of steps, and a local server in place of GitHub or GitLab.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)] // in tests

mod ansible;
#[path = "../common/mod.rs"]
mod common;
mod documents;
mod forge;
mod function;
mod github;
mod gitlab;
mod kits;
mod pull_requests;
mod runner;
mod table;

use libtest_mimic::Arguments;

fn main() {
    let args = Arguments::from_args();
    let mut trials = github::trials();
    trials.extend(documents::trials());
    trials.extend(pull_requests::trials());
    trials.extend(gitlab::trials());
    trials.extend(ansible::trials());
    trials.extend(kits::trials());
    trials.extend(function::trials());
    trials.extend(table::trials());
    libtest_mimic::run(&args, trials).exit();
}
