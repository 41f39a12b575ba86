//! Counts how often a process ran its scripts, and how many of these runs failed.

use std::collections::HashMap;

use tr_analyze::model::Process;
use tr_programs::program_name::ProgramName;

use super::passes::fails;

/// The least number of runs of a program among which a single failed run is an exception. A guess: among two runs,
/// neither is the exception.
const LEAST_RUNS: usize = 3;

/// The number of times that a process ran one script, or scripts of one interpreter, and how many of these runs failed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    pub(super) all: usize,
    pub(super) failed: usize,
}

impl Runs {
    pub(super) fn count(&mut self, run: &Process) {
        self.all += 1;
        self.failed += usize::from(fails(run));
    }

    /// Whether a process ran a script many times, and exactly one of these runs failed.
    pub(super) fn has_one_failed(&self) -> bool {
        self.all >= LEAST_RUNS && self.failed == 1
    }
}

/// How often a process ran scripts and how many runs failed, by program and by interpreter.
#[derive(Clone, Debug, Default)]
pub(super) struct Scripts {
    pub(super) by_program: HashMap<ProgramName, Runs>,
    pub(super) by_interpreter: HashMap<Vec<u8>, Runs>,
    /// The number of scripts that the process ran with its own interpreter.
    pub(super) of_own_kind: usize,
}
