//! Finds the role that a process has in a build by the program that it runs: whether it runs jobs or tests, or whether
//! it is a check of a configuration.

use tr_analyze::model::Process;
use tr_programs::tools::{KnownProgram, Role};
use tr_programs::words;

use crate::processes::label;

/// The texts in the names of targets and directories by which configuration checks of cmake are recognized.
const PROBED_NAMES: [&str; 4] = ["cmTC_", "CMakeScratch", "CMakeTmp", "TryCompile"];

/// The role of the program that a process runs, such as a compiler or a test runner. `None` for a worker of a test
/// runner, because the exit status of a worker does not show the results of its tests.
pub fn role(process: &Process) -> Option<Role> {
    let program = label::program(process);
    let role = program.role_with(&process.argv);
    role.filter(|_| !program.is_test_worker())
}

/// The entry for the program of a process in the table of known programs.
pub fn tool(process: &Process) -> Option<&'static KnownProgram> {
    label::program(process).tool()
}

/// Whether a process is a tool that fails if one of its jobs or tests fails. Scripts do not run such a tool only to
/// check something.
pub fn runs_jobs(process: &Process) -> bool {
    matches!(role(process), Some(Role::Jobs | Role::Tests))
}

/// Whether a child is a probe: a check that its parent, a configure step, runs. A probe mostly fails because a feature
/// or program is missing, and the configure step then goes on without that feature or program.
pub fn is_probe(child: &Process, parent: &Process) -> bool {
    let probes = tool(parent).is_some_and(|tool| tool.probes);
    if !probes || role(parent) != Some(Role::Configure) {
        return false;
    }
    // A build that a configure step starts is a probe only if one of the build's targets belongs to a check.
    let is_check = |arg: &[u8]| {
        PROBED_NAMES
            .iter()
            .any(|name| words::contains(arg, name.as_bytes()))
    };
    !runs_jobs(child) || child.argv.args().any(is_check)
}
