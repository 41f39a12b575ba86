//! Selects, sorts and groups the processes of a recording, as the user requests.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use regex::bytes::Regex;
use tr_analyze::arena::Arena;
use tr_analyze::containers::Called;
use tr_analyze::model::{Analysis, Process, ProcessIx, Thread, Times};
use tr_format::event::Tgid;

use crate::processes::ancestors::down;
use crate::processes::{exit, label};
use crate::steps::Steps;
use crate::Recording;
use tr_text::escape;
use tr_text::named;
use tr_text::phrase::Phrase;

/// The user's conditions that select processes. A process is kept if it matches all of them.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub comm: Option<Regex>,
    /// The pattern that the arguments of a kept process, joined by spaces, must match.
    pub argv: Option<Regex>,
    /// The pattern that the path of a kept process's cgroup must match.
    pub cgroup: Option<Regex>,
    /// The pattern that the name, the image or the id of a kept process's container must match.
    pub container: Option<Regex>,
    /// Keeps only the process with this pid and its descendants.
    pub pid: Option<Tgid>,
    /// Keeps only processes that ended with another status than 0.
    pub failed: bool,
    /// The least wall time of a kept process in nanoseconds.
    pub min: u64,
    /// Keeps only processes that had a thread in a step of this name or in a step inside it.
    pub step: Option<String>,
}

/// A user-defined group of processes, such as `compile=argv:(cc1|cc1plus|rustc)`.
#[derive(Clone, Debug)]
pub struct Group {
    /// The name that the user gave to the group of processes.
    pub name: String,
    on: On,
    pattern: Regex,
}

/// The property of a process that the pattern of a user-defined group is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Argv,
    Comm,
    Program,
    Cgroup,
}

/// The name of the group for processes that match no pattern of the user's groups.
pub const OTHER_GROUP: &str = "other";

/// The name of the table row for processes whose main thread ended in no step.
const NO_STEP: &str = "no step";

/// The name of the table row for processes that are in no container.
const NO_CONTAINER: &str = "no container";

impl Group {
    /// Parses a user-defined group of processes from `NAME=WHAT:REGEX`, where WHAT is argv, comm, program or cgroup.
    ///
    /// # Errors
    ///
    /// The text says what is wrong, and shows the syntax.
    pub fn parse(text: &str) -> Result<Group, String> {
        const HOW: &str = "write NAME=WHAT:REGEX, e.g. compile=argv:(cc1|rustc)";
        let (name, rest) = text
            .split_once('=')
            .ok_or_else(|| format!("no = in {text:?}: {HOW}"))?;
        if name.is_empty() {
            return Err(format!("the group has no name: {HOW}"));
        }
        let (what, pattern) = rest
            .split_once(':')
            .ok_or_else(|| format!("no property to match {rest:?} with: {HOW}"))?;
        let on = match what {
            "argv" => On::Argv,
            "comm" => On::Comm,
            "program" => On::Program,
            "cgroup" => On::Cgroup,
            _ => {
                return Err(format!(
                    "{what:?} is none of argv, comm, program, cgroup: {HOW}"
                ))
            }
        };
        if pattern.is_empty() {
            return Err(format!("the pattern is empty and would match all: {HOW}"));
        }
        let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
        Ok(Group {
            name: escape::raw(name.as_bytes()),
            on,
            pattern,
        })
    }

    fn has(&self, analysis: &Analysis, process: &Process) -> bool {
        match self.on {
            On::Argv => self.pattern.is_match(&joined(process)),
            On::Comm => self.pattern.is_match(process.comm.bytes()),
            On::Program => {
                let program = label::program(process).to_string();
                self.pattern.is_match(program.as_bytes())
            }
            On::Cgroup => cgroup_path(analysis, process).is_some_and(|p| self.pattern.is_match(p)),
        }
    }
}

fn joined(process: &Process) -> Vec<u8> {
    process.argv.args().collect::<Vec<_>>().join(&b' ')
}

/// The name of the first of the user's groups that a process matches, or [`OTHER_GROUP`].
pub fn group_of<'a>(analysis: &Analysis, process: &Process, groups: &'a [Group]) -> &'a str {
    let mut groups = groups.iter();
    let found = groups.find(|group| group.has(analysis, process));
    found.map_or(OTHER_GROUP, |group| &group.name)
}

named! {
    /// The sort order of a table. A table is sorted in descending order, except by start and by pid.
    #[derive(Default)]
    pub enum Sort {
        #[default]
        OnCpu = "on-cpu", "CPU time";
        OffCpu = "off-cpu", "time off CPU";
        Wall = "wall", "wall time";
        RunQueue = "run-queue", tr_text::words::RUN_QUEUE_WAIT;
        Sleep = "sleep", tr_text::words::SLEEP;
        Blocked = "blocked", "blocked time";
        Unknown = "unknown", "unknown time";
        Rss = "rss", "memory";
        TreeCpu = "tree-cpu", "CPU time with descendants";
        Start = "start", "start";
        Pid = "pid", "pid";
    }
}

named! {
    #[derive(Default)]
    pub enum By {
        #[default]
        Process = "process", "process";
        Thread = "thread", "thread";
        Program = "program", "program";
        Comm = "comm", "comm";
        Cgroup = "cgroup", "cgroup";
        Container = "container", "container";
        Depth = "depth", "depth in the tree";
        Group = "group", "group";
        Step = "step", "step";
    }
}

impl Sort {
    /// The figure of a process or row by which a table is sorted in descending order; 0 if the table is sorted by start
    /// or pid.
    pub fn figure(self, times: &Times, wall: u64, rss: Option<u64>, tree_cpu: u64) -> u64 {
        match self {
            Sort::OnCpu => times.on_cpu,
            Sort::OffCpu => times.off_cpu(),
            Sort::Wall => wall,
            Sort::RunQueue => times.run_queue,
            Sort::Sleep => times.sleep,
            Sort::Blocked => times.blocked,
            Sort::Unknown => times.unknown,
            Sort::Rss => rss.unwrap_or(0),
            Sort::TreeCpu => tree_cpu,
            Sort::Start | Sort::Pid => 0,
        }
    }
}

impl By {
    /// The grouping of a table's rows that fits the sort order. Some figures are known only for whole processes. If a
    /// table is sorted by such a figure, the table has rows of processes in place of rows of threads.
    pub fn of_processes(self) -> By {
        match self {
            By::Thread => By::Process,
            by => by,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupRow {
    /// The name of the process, thread or group that the table row stands for, for people.
    pub name: String,
    /// The name of the row in machine formats, if the name for people is shortened.
    uncut_name: Option<String>,
    /// The process that a row of the table stands for; `None` if the row sums up several processes or is one thread.
    pub process: Option<ProcessIx>,
    /// The number of processes that a row of the table covers, or of threads if rows are made of threads.
    pub count: u64,
    /// The pid of the row's process if the row is one process, or the tid if the row is one thread.
    pub pid: Option<u32>,
    /// The number of threads of all processes in the table row.
    pub threads: u64,
    pub times: Times,
    pub wall: u64,
    /// The largest resident set of a process in the table row, in bytes.
    pub max_rss: Option<u64>,
    pub tree_cpu: u64,
    /// The earliest start of a process or thread in the table row, in nanoseconds since the start of the recording.
    pub start: u64,
    /// The raw `wait` status of the process or thread that the table row stands for; `None` if the row stands for
    /// several processes, or if the process or thread has not exited.
    pub status: Option<u32>,
    /// Whether a process or thread in the table row was alive at the end of the recording.
    pub alive: bool,
}

impl GroupRow {
    /// The name of the process, thread or group that the table row stands for, in machine formats.
    pub fn whole_name(&self) -> &str {
        self.uncut_name.as_deref().unwrap_or(&self.name)
    }
}

impl Filter {
    /// Whether the filter has no condition, so that it keeps all processes.
    pub fn is_empty(&self) -> bool {
        let Filter {
            comm,
            argv,
            cgroup,
            container,
            pid,
            failed,
            min,
            step,
        } = self;
        let texts = [comm, argv, cgroup, container];
        let has_text = texts.into_iter().any(Option::is_some);
        !(has_text || pid.is_some() || *failed || *min > 0 || step.is_some())
    }

    /// The processes of a recording that match all conditions of the filter.
    pub fn apply(&self, recording: &Recording) -> Vec<ProcessIx> {
        let Recording {
            analysis, imports, ..
        } = recording;
        let pid = self.pid;
        let below = pid.map(|pid| with_descendants(analysis, analysis.has_pid(pid)));
        let step = self.step.as_ref();
        let inside = step.map(|name| {
            let steps = Steps::new(analysis, &imports.spans);
            steps.processes_in(analysis, name)
        });
        let pattern = self.container.as_ref();
        let contained = pattern.map(|pattern| {
            let is = |container: &Called| {
                let mut texts = [&container.name, &container.image, &container.id].into_iter();
                texts.any(|text| pattern.is_match(text))
            };
            containers(analysis).map(|container| container.is_some_and(is))
        });
        let tables = [below, inside, contained];
        let in_tables = |ix| tables.iter().flatten().all(|table| table[ix]);
        let is = |pattern: &Option<Regex>, text: &[u8]| {
            let pattern = pattern.as_ref();
            pattern.is_none_or(|pattern| pattern.is_match(text))
        };
        let matches = |process: &Process| {
            is(&self.comm, process.comm.bytes())
                && (self.argv.is_none() || is(&self.argv, &joined(process)))
                && is(
                    &self.cgroup,
                    cgroup_path(analysis, process).unwrap_or_default(),
                )
                && (!self.failed || exit::failed(process.status))
                && process.wall() >= self.min
        };
        let all = analysis.process_ids();
        all.filter(|ix| matches(analysis.process(*ix)) && in_tables(*ix))
            .collect()
    }
}

pub fn cgroup_path<'a>(analysis: &'a Analysis, process: &Process) -> Option<&'a [u8]> {
    let at = analysis
        .cgroups
        .binary_search_by_key(&process.cgroup, |(id, _)| *id)
        .ok()?;
    analysis.cgroups.get(at).map(|(_, path)| &**path)
}

/// For each process, whether `is_root` selects the process or one of its ancestors.
pub(crate) fn with_descendants(
    analysis: &Analysis,
    is_root: impl Fn(&Process) -> bool,
) -> Arena<ProcessIx, bool> {
    down(analysis, |ix, above: Option<&bool>| {
        above == Some(&true) || is_root(analysis.process(ix))
    })
}

/// For each process, the container that it is in: its own container, or the container of the nearest ancestor that has
/// one.
pub fn containers(analysis: &Analysis) -> Arena<ProcessIx, Option<&Called>> {
    down(analysis, |ix, above: Option<&Option<_>>| {
        let own = analysis.process(ix).role.container.as_deref();
        own.or(above.copied().flatten())
    })
}

/// For each process, the number of its ancestors that are recorded.
fn depths(analysis: &Analysis) -> Arena<ProcessIx, usize> {
    down(analysis, |_, above| above.map_or(0, |depth| depth + 1))
}

/// For each process, the name of the container that it is in.
pub fn container_names(analysis: &Analysis) -> Arena<ProcessIx, Option<String>> {
    containers(analysis).map(|called| called.map(label::container))
}

/// Returns the function that gives the name of the table row to which a process belongs. `groups` has the user's groups
/// for [`By::Group`].
pub fn names<'a>(
    recording: &'a Recording,
    by: By,
    groups: &'a [Group],
) -> Box<dyn Fn(ProcessIx) -> Phrase + 'a> {
    let Recording {
        analysis, imports, ..
    } = recording;
    let process = |ix| analysis.process(ix);
    match by {
        By::Process | By::Thread => Box::new(move |ix| label::phrase(process(ix))),
        By::Program => Box::new(move |ix| label::program(process(ix)).to_string().into()),
        By::Comm => Box::new(move |ix| escape::raw(process(ix).comm.bytes()).into()),
        By::Cgroup => Box::new(move |ix| {
            let path = cgroup_path(analysis, process(ix));
            path.map_or("unknown".into(), |path| escape::raw(path).into())
        }),
        By::Group => Box::new(move |ix| group_of(analysis, process(ix), groups).into()),
        By::Step => {
            let steps = Steps::new(analysis, &imports.spans);
            Box::new(move |ix| {
                let step = steps.of_process(analysis, ix);
                let step = step.and_then(|step| steps.list().get(step));
                step.map_or(NO_STEP.into(), |step| step.name.clone())
            })
        }
        By::Container => {
            let names = container_names(analysis);
            Box::new(move |ix| {
                let name = names[ix].as_deref();
                name.unwrap_or(NO_CONTAINER).into()
            })
        }
        By::Depth => {
            let depths = depths(analysis);
            Box::new(move |ix| format!("depth {}", depths[ix]).into())
        }
    }
}

/// The rows of a table that sums up the given processes by `by`, sorted by `sort`. `groups` has the user's groups for
/// [`By::Group`].
pub fn rows(
    recording: &Recording,
    processes: &[ProcessIx],
    by: By,
    sort: Sort,
    groups: &[Group],
) -> Vec<GroupRow> {
    let order = RowOrder { by, sort, groups };
    first_rows(recording, processes, order, usize::MAX).0
}

/// The way in which the rows of a table of processes are grouped and sorted.
#[derive(Clone, Copy, Debug)]
pub struct RowOrder<'a> {
    pub by: By,
    pub sort: Sort,
    /// The user's groups, into which [`By::Group`] divides the processes.
    pub groups: &'a [Group],
}

/// The first `most` rows of a table of processes, sorted, and the number of all rows ([`rows`] returns all of them).
/// With [`By::Process`], almost only the processes of the returned rows get a label, because a recording may have a
/// million processes.
pub fn first_rows(
    recording: &Recording,
    processes: &[ProcessIx],
    order: RowOrder<'_>,
    most: usize,
) -> (Vec<GroupRow>, usize) {
    let RowOrder { by, sort, groups } = order;
    let analysis = &recording.analysis;
    let mut rows: Vec<GroupRow> = match by {
        By::Process => {
            let name = |ix| label::label(analysis.process(ix));
            let named =
                |ix: ProcessIx| of_process(analysis, ix, label::phrase(analysis.process(ix)));
            let by_name = |a, b| name(a).cmp(&name(b));
            let first = first_places(analysis, processes, sort, most, by_name);
            return (first.into_iter().map(named).collect(), processes.len());
        }
        By::Thread => {
            let chosen = processes.iter().map(|ix| analysis.process(*ix));
            chosen
                .flat_map(|process| of_threads(analysis, process))
                .collect()
        }
        _ => grouped(recording, processes, by, groups),
    };
    rows.sort_by(|a, b| (key(sort, a), &a.name).cmp(&(key(sort, b), &b.name)));
    let all = rows.len();
    rows.truncate(most);
    (rows, all)
}

fn grouped(
    recording: &Recording,
    processes: &[ProcessIx],
    by: By,
    groups: &[Group],
) -> Vec<GroupRow> {
    let analysis = &recording.analysis;
    let name = names(recording, by, groups);
    let mut named = BTreeMap::<Phrase, GroupRow>::new();
    for ix in processes {
        let name = name(*ix);
        let row = of_process(analysis, *ix, name.clone());
        let Some(group) = named.get_mut(&name) else {
            named.insert(name, row);
            continue;
        };
        group.count += 1;
        group.threads = group.threads.saturating_add(row.threads);
        (group.process, group.pid, group.status) = (None, None, None);
        group.times.add(&row.times);
        group.wall = group.wall.saturating_add(row.wall);
        group.max_rss = group.max_rss.max(row.max_rss);
        group.tree_cpu = group.tree_cpu.saturating_add(row.tree_cpu);
        group.start = group.start.min(row.start);
        group.alive |= row.alive;
    }
    named.into_values().collect()
}

/// Sorts processes as the rows of a table are sorted, and returns the first `most` of them.
pub fn sorted(
    analysis: &Analysis,
    processes: &[ProcessIx],
    sort: Sort,
    most: usize,
) -> Vec<ProcessIx> {
    first_places(analysis, processes, sort, most, |_, _| Ordering::Equal)
}

/// Sorts processes as the rows of a table are sorted, and returns the first `most` of them. `name` compares the names
/// of processes whose rows are equal.
fn first_places(
    analysis: &Analysis,
    processes: &[ProcessIx],
    sort: Sort,
    most: usize,
    name: impl Fn(ProcessIx, ProcessIx) -> Ordering,
) -> Vec<ProcessIx> {
    type Place = (Key, usize, ProcessIx);
    let keyed = |(nth, ix): (usize, &ProcessIx)| {
        let row = of_process(analysis, *ix, Phrase::default());
        (key(sort, &row), nth, *ix)
    };
    let mut places: Vec<Place> = processes.iter().enumerate().map(keyed).collect();
    let order = |(a, nth, at): &Place, (b, other, bt): &Place| {
        let names = || name(*at, *bt);
        a.cmp(b).then_with(names).then_with(|| nth.cmp(other))
    };
    if most < places.len() {
        places.select_nth_unstable_by(most, order);
        places.truncate(most);
    }
    places.sort_unstable_by(order);
    places.into_iter().map(|(.., ix)| ix).collect()
}

/// The key by which the rows of a table of processes are sorted: the figure that the user chose for the order, the
/// start and the pid. If the table is sorted by pid, the key has the pid and the start. Rows with an equal key are
/// sorted by name, so that the order is always the same.
type Key = (u64, u64, Option<u32>);

fn key(sort: Sort, row: &GroupRow) -> Key {
    let first = match sort {
        Sort::Pid => row.pid.map_or(0, |pid| u64::from(pid) + 1),
        _ => u64::MAX - sort.figure(&row.times, row.wall, row.max_rss, row.tree_cpu),
    };
    (first, row.start, row.pid)
}

fn of_process(analysis: &Analysis, ix: ProcessIx, name: Phrase) -> GroupRow {
    let process = analysis.process(ix);
    let (name, uncut_name) = name.into_short();
    GroupRow {
        name,
        uncut_name,
        process: Some(ix),
        count: 1,
        threads: process.threads.len() as u64,
        pid: Some(process.pid.0),
        times: process.times,
        wall: process.wall(),
        max_rss: process.resources.max_rss,
        tree_cpu: process.tree.times.on_cpu,
        start: process.start.since(analysis.meta.start),
        status: process.status,
        alive: process.alive,
    }
}

fn of_threads(analysis: &Analysis, process: &Process) -> Vec<GroupRow> {
    let threads = process.threads.iter().map(|ix| analysis.thread(*ix));
    let row = |thread: &Thread| {
        let (name, uncut_name) = label::thread_phrase(thread, process).into_short();
        GroupRow {
            name,
            uncut_name,
            process: None,
            count: 1,
            threads: 1,
            pid: Some(thread.tid.0),
            times: thread.times,
            wall: thread.wall(),
            max_rss: None,
            tree_cpu: thread.times.on_cpu,
            start: thread.start.since(analysis.meta.start),
            status: thread.status,
            alive: thread.alive,
        }
    };
    threads.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_say_what_is_wrong_with_them() {
        let group = Group::parse("compile=argv:(cc1|x=y:z)").expect("a group");
        assert_eq!(group.name, "compile");
        assert!(group.pattern.is_match(b"x=y:z") && group.on == On::Argv);
        for (text, why) in [
            ("compile", "no = in"),
            ("=argv:x", "no name"),
            ("a=x", "no property to match"),
            ("a=argc:x", "none of argv, comm, program, cgroup"),
            ("a=argv:", "empty"),
            ("a=argv:(", "unclosed group"),
        ] {
            let error = Group::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
