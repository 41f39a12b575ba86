//! The critical path that a report is about, and the groups of its time.

use tr_analyze::critical_path::{self, CriticalPath, NoPath};
use tr_analyze::model::{Analysis, Basis, ProcessIx};
use tr_analyze::programs::Groups;

use crate::label;
use crate::view::View;

/// The most events of a trace whose critical path the first screen shows. The path
/// needs the timeline, which takes some 60 bytes an event at the peak, while all
/// else grows with the tasks: the analysis of a million events takes 16 MB without
/// it and 60 MB with it.
pub const PATH_UP_TO: u64 = 1_000_000;

/// The groups by program.
pub(crate) fn groups(analysis: &Analysis) -> Groups {
    Groups::new(analysis, |process, exec| match exec {
        Some(exec) => label::program_of(&exec.argv, &exec.comm),
        None => label::program(process),
    })
}

/// The path's name: without scheduling events it has no wake-ups.
pub(crate) fn title(analysis: &Analysis) -> &'static str {
    match analysis.basis() {
        Basis::Events => "Critical path",
        _ => "Chain of forks and exits",
    }
}

/// The path of the process of `--pid`, or of COMMAND.
pub(crate) fn path_of(view: &View<'_>) -> Result<CriticalPath, NoPath> {
    let analysis = view.analysis;
    let root = match view.ask.pid {
        None => critical_path::root(analysis)?,
        Some(pid) => {
            let at = analysis.processes.iter().position(|p| p.pid == pid);
            let at = at.and_then(|at| u32::try_from(at).ok());
            ProcessIx(at.ok_or(NoPath::NotThere)?)
        }
    };
    critical_path::critical_path(analysis, root)
}
