//! Sums up what local servers did for the recorded processes that sent them requests.

use std::collections::{BTreeMap, HashSet};

use tr_analyze::arena::Arena;
use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::{Analysis, ProcessIx};
use tr_analyze::servers::Server;

use crate::processes::ancestors::down;
use crate::processes::{label, who};
use tr_programs::program_name::ProgramName;
use tr_text::units;

/// The sums (such as CPU time) over all servers of one name and their descendants.
#[derive(Clone, Debug, Default)]
struct Sum {
    count: u64,
    /// The CPU time in nanoseconds of the servers of this name and of their descendants.
    cpu: u64,
    /// The time in nanoseconds that the servers of this name and their descendants have on the critical path.
    path: u64,
    /// The name of a process that is not recorded and for which a server of this name also worked.
    other: Option<String>,
}

/// A sentence for each name of local servers, such as `server sccache (shared): 12.3 s of CPU for this build, 4 s of
/// the path`. The server with the longest time on the critical path comes first.
pub fn words(analysis: &Analysis, path: Option<&CriticalPath>) -> Vec<String> {
    let mut sums: BTreeMap<ProgramName, Sum> = BTreeMap::new();
    for server in &analysis.others.servers {
        let process = analysis.process(server.process);
        let sum = sums.entry(label::server_name(process)).or_default();
        sum.count += 1;
        sum.cpu = sum.cpu.saturating_add(process.tree.times.on_cpu);
        sum.other = sum.other.take().or_else(|| other(analysis, server));
    }
    let of = owners(analysis);
    for segment in path.iter().flat_map(|path| &path.segments) {
        let process = analysis.thread(segment.thread).process;
        let name = of[process].map(|ix| label::server_name(analysis.process(ix)));
        if let Some(sum) = name.and_then(|name| sums.get_mut(&name)) {
            sum.path = sum.path.saturating_add(segment.length());
        }
    }
    let mut sums: Vec<(ProgramName, Sum)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.path, sum.cpu)));
    sums.iter()
        .map(|(name, sum)| said(name, sum, path.is_some()))
        .collect()
}

fn said(name: &ProgramName, sum: &Sum, with_path: bool) -> String {
    let mut out = label::server(name);
    if sum.count > 1 {
        out += &format!(" × {}", units::count(sum.count));
    }
    let cpu = units::time(sum.cpu);
    match &sum.other {
        None => out += &format!(": {cpu} of CPU for this build"),
        Some(other) => out += &format!(": {cpu} of CPU, for this build and for {other}"),
    }
    if with_path {
        out += &format!(", {} of the path", units::time(sum.path));
    }
    out
}

/// The name of a process that is not recorded and for which the server also worked.
pub(crate) fn other(analysis: &Analysis, server: &Server) -> Option<String> {
    let pid = server.other?;
    Some(match analysis.others.outside.of_process(pid) {
        Some(task) => format!("{} (pid {})", who::comm(&task.comm), pid.0),
        None => format!("pid {}", pid.0),
    })
}

/// For each process, the server to which it belongs: the process itself if it is a server, or else its nearest ancestor
/// that is a server.
fn owners(analysis: &Analysis) -> Arena<ProcessIx, Option<ProcessIx>> {
    let servers: HashSet<ProcessIx> = analysis
        .others
        .servers
        .iter()
        .map(|server| server.process)
        .collect();
    down(analysis, |ix, above: Option<&Option<ProcessIx>>| {
        let own = Some(ix).filter(|ix| servers.contains(ix));
        own.or(above.copied().flatten())
    })
}
