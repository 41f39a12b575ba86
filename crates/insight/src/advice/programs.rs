//! Finds the number of jobs that the arguments of a recording's programs set.

use tr_analyze::model::Analysis;
use tr_programs::changes::known;
use tr_programs::command_line;

/// The number of jobs that a program's arguments set, in words, such as `make: 4 jobs`. It is the outermost program
/// of the recording that sets one, and the first of several such programs.
pub fn jobs_told(analysis: &Analysis) -> Option<String> {
    // Parents come before their children.
    let execs = analysis.processes.iter().flat_map(|process| &process.execs);
    let mut told = execs.filter_map(|exec| {
        let program = command_line::program_of(&exec.argv, &exec.comm);
        let args: Vec<&[u8]> = exec.argv.args().collect();
        let jobs = known(&program)?.jobs(&args)?;
        let jobs = jobs.map_or("any number of jobs".into(), |jobs| format!("{jobs} jobs"));
        Some(format!("{program}: {jobs}"))
    });
    told.next()
}
