//! Finds the critical path that a report is about, and divides its time by use (such as sleeps in one program).

pub mod kinds;
pub mod path_steps;

use std::collections::BTreeMap;
use tr_programs::command_line;

use tr_analyze::critical_path::{self, CriticalPath, NoPath, Segment};
use tr_analyze::kinds::TimeKind;
use tr_analyze::model::{Analysis, Basis, ProcessIx, ThreadIx};
use tr_analyze::network;
use tr_analyze::programs::{sleeper, Group, Groups};
use tr_format::event::Comm;
use tr_programs::program_name::ProgramName;

use crate::processes::label;
use crate::processes::who;
use crate::resources::network::{Host, Remotes};
use crate::views::view::View;
use tr_text::words::{RUN_QUEUE_WAIT, SLEEP_OR_BLOCKED};

/// Groups the executions of programs in a recording by the name of the program. The critical path's time in programs is
/// summed up by these groups.
pub fn groups(analysis: &Analysis) -> Groups {
    Groups::new(analysis, |process, exec| match exec {
        Some(exec) => command_line::program_of(&exec.argv, &exec.comm),
        None => label::program(process),
    })
}

/// The title of the critical path. A recording without scheduling events has another title, because its path is found
/// by forks and exits and not by wake-ups.
pub fn title(analysis: &Analysis) -> &'static str {
    match analysis.basis() {
        Basis::Events => "Critical path",
        _ => "Critical path by forks and exits",
    }
}

/// The critical path of the process that the user selects with `--pid`, or otherwise of COMMAND.
pub fn path_of(view: &View<'_>) -> Result<CriticalPath, NoPath> {
    let analysis = view.analysis;
    let Some(pid) = view.ask.pid else {
        return critical_path::of(analysis);
    };
    let at = analysis.processes.iter().position(analysis.has_pid(pid));
    let at = at.and_then(|at| u32::try_from(at).ok());
    critical_path::critical_path(analysis, ProcessIx(at.ok_or(NoPath::NotThere)?))
}

/// A use of the critical path's time: a kind of time, with the program or the remote end if one of these is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathUse {
    pub kind: TimeKind,
    pub program: Option<Group>,
    /// The name of the task that ended the wait, if that task is not recorded.
    pub outside: Option<Comm>,
    /// The remote end of the connection for which the critical path waited, if the kind of time is a wait for the
    /// network.
    pub remote: Option<Host>,
}

impl PathUse {
    /// Returns the use of a segment's time on the critical path, such as a sleep in one program. The caller adds the
    /// remote end of a wait for the network.
    fn of(analysis: &Analysis, groups: &Groups, segment: &Segment) -> PathUse {
        let process = analysis.thread(segment.thread).process;
        let group = groups.at(process, segment.from);
        let program = match segment.kind {
            TimeKind::OnCpu | TimeKind::SleepOrBlocked | TimeKind::Lived => group,
            TimeKind::Sleep => {
                let (sleeper, at) = sleeper(analysis, process, segment.from);
                groups.at(sleeper, at).filter(|_| group.is_some()).or(group)
            }
            kind => {
                let outside = (kind == TimeKind::Outside).then(|| segment.ended_by(analysis));
                return PathUse {
                    kind,
                    program: None,
                    outside: outside.flatten().map(|outsider| outsider.comm),
                    remote: None,
                };
            }
        };
        // If the program is not known, the time counts as unknown.
        let kind = program.map_or(TimeKind::Unknown, |_| segment.kind);
        PathUse {
            kind,
            program,
            outside: None,
            remote: None,
        }
    }

    fn title(self, groups: &Groups, remotes: &Remotes) -> String {
        let known = self.program.and_then(|group| groups.program(group));
        let program = known.map_or_else(String::new, ProgramName::to_string);
        match self.kind {
            TimeKind::OnCpu => program,
            TimeKind::Lived => format!("{program}, on or off CPU"),
            TimeKind::SleepOrBlocked => match known.and_then(daemons_client) {
                Some(name) => format!("wait for {name}'s daemon"),
                None => format!("{SLEEP_OR_BLOCKED} in {program}"),
            },
            TimeKind::Sleep => format!("sleep in {program}"),
            TimeKind::RunQueue => RUN_QUEUE_WAIT.into(),
            TimeKind::Blocked => "blocked in the kernel".into(),
            TimeKind::Memory => "wait for memory".into(),
            TimeKind::Outside if self.outside.is_some() => {
                let task = self.outside.unwrap_or_default();
                format!("wait for {}, not recorded", who::comm(&task))
            }
            kind => match self.remote {
                Some(Host::From(_, port)) => format!("wait for clients of port {port}"),
                Some(host) => format!("wait for {}", remotes.text(host)),
                None => kinds::title(kind).into(),
            },
        }
    }
}

/// The name of a program without its verb, if a daemon does the program's work (as for `docker build`); otherwise
/// `None`. While the daemon works, the program itself only sleeps.
fn daemons_client(program: &ProgramName) -> Option<&str> {
    program.tool()?.asks_daemon.then_some(program.name())
}

/// The time of the critical path that goes to one use, such as sleeps in one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub part: PathUse,
    /// The words for this use of the critical path's time, such as `sleep in make`.
    pub name: String,
    /// The time in nanoseconds that the critical path has for this use, such as sleeps in one program.
    pub time: u64,
    /// The number of times that the critical path has this use, such as a sleep in one program. Each segment that is a
    /// sleep counts. A segment of another kind counts only if the path's previous segment with the same use was in
    /// another thread, or if there is none.
    pub count: u64,
    /// The name of the program for which the path waited, if this use is waits for a task that is not recorded, or for
    /// a remote end whose server is known; otherwise `None`.
    pub by: Option<String>,
}

/// The time of the critical path by use (such as sleeps in one program), the longest first.
pub fn shares(analysis: &Analysis, groups: &Groups, path: &CriticalPath) -> Vec<Share> {
    with_parts(analysis, groups, path).0
}

/// The time of the critical path by use (such as sleeps in one program), and, for each segment of the path, the use of
/// the segment's time.
pub fn with_parts(
    analysis: &Analysis,
    groups: &Groups,
    path: &CriticalPath,
) -> (Vec<Share>, Vec<PathUse>) {
    let mut parts = Vec::with_capacity(path.segments.len());
    let mut sums: BTreeMap<PathUse, (u64, u64)> = BTreeMap::new();
    let mut last: BTreeMap<PathUse, ThreadIx> = BTreeMap::new();
    let waited = network::waited(analysis, path);
    let remotes = Remotes::new(analysis, &waited);
    let mut waited = waited.iter();
    for segment in &path.segments {
        let mut part = PathUse::of(analysis, groups, segment);
        if segment.kind == TimeKind::Network {
            let waited = waited.next();
            part.remote = waited.and_then(|wait| Host::waited(analysis, wait));
        }
        parts.push(part);
        let (time, count) = sums.entry(part).or_default();
        *time += segment.length();
        let stays = last.insert(part, segment.thread) != Some(segment.thread);
        if stays || segment.kind == TimeKind::Sleep {
            *count += 1;
        }
    }
    let named = |(part, (time, count)): (PathUse, (u64, u64))| Share {
        part,
        name: part.title(groups, &remotes),
        time,
        count,
        by: match part.remote {
            Some(host) => remotes.server(host),
            None => part.outside.map(|task| who::comm(&task)),
        },
    };
    let mut shares: Vec<Share> = sums.into_iter().map(named).collect();
    shares.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    (shares, parts)
}
