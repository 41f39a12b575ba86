//! Finds the number of jobs that the arguments of a recording's programs set.

use tr_analyze::critical_path;
use tr_analyze::model::Analysis;
use tr_programs::changes::known;
use tr_programs::command_line;

/// The number of jobs that a program's arguments set, in words, such as `make: 4 jobs`. The program is the outermost
/// one of the recorded command that sets a number, and the first of several such programs. If the recorded command is
/// known, only this command and its descendants count, because a recording of the whole machine may contain other
/// builds.
pub fn jobs_of_arguments(analysis: &Analysis) -> Option<String> {
    let root = critical_path::root(analysis).ok();
    let mut is_inside = vec![false; analysis.processes.len()];
    // Parents come before their children in the list of processes, so one pass finds all descendants.
    let inside = analysis.process_ids().filter(|ix| {
        let parent = analysis.process(*ix).parent;
        let of_parent = parent.and_then(|parent| is_inside.get(parent.0 as usize));
        let inside = root.is_none_or(|root| root == *ix) || of_parent == Some(&true);
        if let Some(own) = is_inside.get_mut(ix.0 as usize) {
            *own = inside;
        }
        inside
    });
    let execs = inside.flat_map(|ix| &analysis.process(ix).execs);
    let mut limits = execs.filter_map(|exec| {
        let program = command_line::program_of(&exec.argv, &exec.comm);
        let args: Vec<&[u8]> = exec.argv.args().collect();
        let jobs = known(&program)?.jobs(&args)?;
        let jobs = jobs.map_or("any number of jobs".into(), |jobs| format!("{jobs} jobs"));
        Some(format!("{program}: {jobs}"))
    });
    limits.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_analyze::model::{ExecSpan, Process, ProcessIx};
    use tr_format::event::{Argv, Tgid};

    fn process(pid: u32, parent: Option<u32>, argv: &[&str]) -> Process {
        Process {
            pid: Tgid(pid),
            parent: parent.map(ProcessIx),
            execs: vec![ExecSpan {
                argv: Argv::from_args(argv.iter().copied()),
                ..ExecSpan::default()
            }],
            ..Process::default()
        }
    }

    #[test]
    fn the_jobs_of_another_build_on_the_machine_are_not_the_commands() {
        let mut analysis = Analysis {
            processes: vec![
                process(5, None, &["cargo", "build", "-j4"]),
                process(7, None, &["sh", "build.sh"]),
                process(8, Some(1), &["make", "-j2"]),
            ],
            ..Analysis::default()
        };
        assert_eq!(
            jobs_of_arguments(&analysis).as_deref(),
            Some("cargo build: 4 jobs")
        );
        analysis.meta.root = Some(Tgid(7));
        assert_eq!(
            jobs_of_arguments(&analysis).as_deref(),
            Some("make: 2 jobs")
        );
    }
}
