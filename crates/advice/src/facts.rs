//! Collects the facts about a recorded build that all rules of advice use.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tr_programs::{command_line, table};

use tr_analyze::contention::Slices;
use tr_analyze::critical_path::{CriticalPath, NoPath, Segment, TimeKind};
use tr_analyze::model::{Analysis, ExecSpan, Process, ProcessIx};
use tr_analyze::own::Own;
use tr_analyze::parallelism::{self, Parallelism};
use tr_analyze::programs::{Group, Groups};
use tr_analyze::timeline::Bucket;
use tr_analyze::what_if::{self, Limits, Without};
use tr_format::event::{CpuId, Ktime, Reason};
use tr_programs::clocks;
use tr_programs::program_name::ProgramName;
use tr_programs::tools::{Family, Role};

use crate::candidate::{Advice, Candidate, Certainty, Gain};
use tr_insight::processes::ancestors::from_parents_to_children;
use tr_insight::processes::label::Identity;
use tr_insight::processes::{exit, label};
use tr_insight::resources::course;
use tr_insight::Recording;
use tr_text::phrase::Phrase;
use tr_text::units;

/// The largest width in columns of the label of an execution in the evidence for a line of advice. If the label is
/// wider, the name of the program stands in its place.
const NAME: usize = 24;

/// A CPU counts as one that a restricted build (`taskset -c 0,1 make`) was allowed to use if it has at least a fiftieth
/// of the build's CPU time. Other CPUs may have a little of that time, because `taskset` itself starts on any CPU. A
/// guess.
pub const STRAY_PART: u64 = 50;

/// One execution of a program: the time from its exec to the next exec or the end of the process. The time of a process
/// before its first exec belongs to the execution that forked it. It is an execution of its own only if the program of
/// the parent is not known.
pub struct Execution {
    pub process: ProcessIx,
    pub exec: Option<usize>,
    pub start: Ktime,
    pub end: Ktime,
    pub program: ProgramName,
    /// The CPU time that the process had during this execution of a program, in nanoseconds.
    pub on_cpu: u64,
    /// The execution during which the parent process forked the process of this execution.
    pub owner: Option<Group>,
}

/// The facts by which an execution of a program is named in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExecutionName {
    /// The execution has no name.
    Nothing,
    Label {
        /// The facts from which the label of the execution is made.
        of: Identity,
        /// Whether the label says that the process was only forked.
        is_forked: bool,
    },
    /// Only the program, because the label is long.
    Program(ProgramName),
}

/// The facts about a build that the rules of advice use. Times are summed up for each execution of a program; a `Group`
/// is here the number of an execution.
pub struct BuildFacts<'a> {
    pub recording: &'a Recording,
    pub analysis: &'a Analysis,
    pub path: &'a CriticalPath,
    pub groups: Groups,
    /// The processes that belong to the build. The rules consider no other processes.
    pub own: Own,
    pub executions: Vec<Execution>,
    of: Vec<Vec<Group>>,
    segments: Vec<(Option<Group>, Reason)>,
    pub parallelism: Parallelism,
    /// The length of the critical path in nanoseconds.
    pub wall: u64,
    /// The length of the critical path in nanoseconds without its waits for a CPU. Other tasks on the CPUs hardly make
    /// this time longer.
    pub worked: u64,
    pub cpus: u64,
    tried_again: OnceCell<BTreeSet<ProcessIx>>,
    limits: OnceCell<Result<Limits, NoPath>>,
}

/// Gives each execution of a program a group of its own, so that times are summed up by execution.
fn groups(analysis: &Analysis) -> Groups {
    let mut number = 0u32;
    Groups::new(analysis, |_, _| {
        number += 1;
        ProgramName::new(number.to_string())
    })
}

/// The CPU time in nanoseconds that a process had before its first exec; all of it if the process executed nothing.
pub(super) fn on_cpu_before_exec(process: &Process) -> u64 {
    let execs = process.execs.iter().map(|exec| exec.times.on_cpu);
    let in_execs = execs.fold(0, u64::saturating_add);
    process.times.on_cpu.saturating_sub(in_execs)
}

impl<'a> BuildFacts<'a> {
    /// Collects the facts about a recorded build that the rules of advice use. Returns `None` if there is no critical
    /// path. If `slices` is given, it also collects which tasks had the CPUs.
    pub fn new(
        recording: &'a Recording,
        path: &'a CriticalPath,
        slices: Option<&mut Slices>,
    ) -> Option<BuildFacts<'a>> {
        let analysis = &recording.analysis;
        let groups = groups(analysis);
        let found = parallelism::parallelism(analysis, &groups, Some(path), 1, slices);
        let parallelism = found.ok()?;
        let own = Own::of(analysis);
        let works = path
            .segments
            .iter()
            .filter(|segment| segment.kind != TimeKind::RunQueue);
        let mut facts = BuildFacts {
            recording,
            analysis,
            executions: Vec::new(),
            of: Vec::new(),
            segments: Vec::new(),
            parallelism,
            own,
            wall: path.length(),
            worked: works.map(Segment::length).fold(0, u64::saturating_add),
            cpus: analysis.cpus_of_build().max(1),
            path,
            groups,
            tried_again: OnceCell::new(),
            limits: OnceCell::new(),
        };
        facts.executions = facts.all_executions();
        facts.of = vec![Vec::new(); analysis.processes.len()];
        for (group, execution) in (0..).zip(&facts.executions) {
            if let Some(of) = facts.of.get_mut(execution.process.0 as usize) {
                of.push(group);
            }
        }
        facts.segments = facts
            .path
            .segments
            .iter()
            .map(|segment| facts.at(segment))
            .collect();
        Some(facts)
    }

    /// The executions of programs in a recording. The number of an execution (its group) is its place in this list.
    /// First come all execs, then the processes that count as executions without an exec, because their parent's
    /// program is not known.
    fn all_executions(&self) -> Vec<Execution> {
        let execution = |ix: ProcessIx, exec: Option<usize>| {
            let process = self.analysis.process(ix);
            let span = exec.and_then(|at| process.execs.get(at));
            let owner = process
                .parent
                .and_then(|parent| self.groups.at(parent, process.start));
            Execution {
                process: ix,
                exec,
                start: span.map_or(process.start, |exec| exec.start),
                // An execution without an exec lasts until the first exec of the process.
                end: span.map_or_else(
                    || {
                        process
                            .execs
                            .first()
                            .map_or(process.end, |first| first.start)
                    },
                    |exec| exec.end,
                ),
                program: program(process, exec),
                on_cpu: span.map_or_else(|| on_cpu_before_exec(process), |exec| exec.times.on_cpu),
                owner,
            }
        };
        let execs = |ix| 0..self.analysis.process(ix).execs.len();
        let ids = || self.analysis.process_ids();
        let mut all: Vec<Execution> = ids()
            .flat_map(|ix| execs(ix).map(move |at| (ix, Some(at))))
            .map(|(ix, at)| execution(ix, at))
            .collect();
        for ix in ids() {
            let group = self.groups.at(ix, self.analysis.process(ix).start);
            if group.is_some_and(|group| group as usize == all.len()) {
                all.push(execution(ix, None));
            }
        }
        all
    }

    fn at(&self, segment: &Segment) -> (Option<Group>, Reason) {
        let process = self.analysis.thread(segment.thread).process;
        let timeline = self.analysis.timeline.as_ref();
        let stretch = timeline.and_then(|stretches| stretches.around(segment.thread, segment.from));
        let reason = stretch.map_or(Reason::Unknown, |stretch| stretch.reason);
        (self.groups.at(process, segment.from), reason)
    }

    pub fn execution(&self, group: Group) -> Option<&Execution> {
        self.executions.get(group as usize)
    }

    pub fn all(&self) -> impl Iterator<Item = (Group, &Execution)> {
        let all = (0..).zip(&self.executions);
        all.filter(|(_, execution)| self.own.has(execution.process))
    }

    pub fn process(&self, group: Group) -> Option<&'a Process> {
        let execution = self.execution(group)?;
        Some(self.analysis.process(execution.process))
    }

    pub fn exec(&self, group: Group) -> Option<&'a ExecSpan> {
        self.process(group)?.execs.get(self.execution(group)?.exec?)
    }

    /// The name of the file that an execution of a program runs, without its directory. For a script, this is the name
    /// of the interpreter's file.
    pub fn file(&self, group: Group) -> &'a [u8] {
        let file = self.exec(group).map_or(&b""[..], |exec| &exec.filename);
        file.rsplit(|byte| *byte == b'/').next().unwrap_or(file)
    }

    pub fn args(&self, group: Group) -> Vec<&'a [u8]> {
        let exec = self.exec(group);
        exec.map_or(Vec::new(), |exec| exec.argv.args().collect())
    }

    /// Whether an execution of a program measures for a set time, as a benchmark does. Such an execution takes as long
    /// on free CPUs as on busy ones.
    pub fn measures_by_clock(&self, group: Group) -> bool {
        clocks::measures_by_clock(&self.args(group))
    }

    /// The role of an execution's program, such as a compiler, a linker or a test runner.
    pub fn role(&self, group: Group) -> Option<Role> {
        let argv = match self.exec(group) {
            Some(exec) => &exec.argv,
            None => &self.process(group)?.argv,
        };
        self.execution(group)?.program.role_with(argv)
    }

    /// Whether an execution of a program runs a shell. A shell that is called by the name of its script counts, too.
    pub fn is_shell(&self, group: Group) -> bool {
        let file = self.exec(group).map_or(&b""[..], |exec| &exec.filename);
        let file = table::by_path(file).and_then(|tool| tool.role(None));
        [self.role(group), file].contains(&Some(Role::Shell))
    }

    /// Whether an execution runs the client of a container runtime (`docker`, `podman`). Such a program decides itself
    /// which programs it starts, and when.
    pub fn runs_containers(&self, group: Group) -> bool {
        let tool = self.process(group).and_then(Process::tool);
        tool.is_some_and(|tool| tool.family == Family::Container)
    }

    pub fn label(&self, group: Group) -> String {
        match (self.exec(group), self.process(group)) {
            (Some(exec), _) => command_line::label_of(&exec.argv, &exec.comm, false),
            (None, Some(process)) => label::label(process),
            (None, None) => String::new(),
        }
    }

    /// The name of an execution of a program in a sentence: its label, such as `cc1 main.c`, or only the program's name
    /// if the label is long.
    pub fn name(&self, group: Group) -> Phrase {
        let label = self.label(group);
        match self.execution(group) {
            Some(it) if units::width(&label) > NAME => Phrase::name(&it.program.to_string(), NAME),
            _ => label.into(),
        }
    }

    /// The facts from which [`BuildFacts::name`] makes the name of an execution of a program.
    pub fn execution_name(&self, group: Group) -> ExecutionName {
        let execution = self.execution(group);
        match execution.filter(|_| units::width(&self.label(group)) > NAME) {
            Some(execution) => ExecutionName::Program(execution.program.clone()),
            None => self.label_facts(group),
        }
    }

    fn label_facts(&self, group: Group) -> ExecutionName {
        match (self.exec(group), self.process(group)) {
            (Some(exec), _) => ExecutionName::Label {
                of: Identity::of_program(&exec.argv, &exec.comm),
                is_forked: false,
            },
            (None, Some(process)) => ExecutionName::Label {
                of: Identity::of(process),
                is_forked: process.execs.is_empty(),
            },
            (None, None) => ExecutionName::Nothing,
        }
    }

    /// The number of processes in which the given executions ran. Several programs that one process executed count as
    /// one run.
    pub fn runs(&self, groups: impl IntoIterator<Item = Group>) -> usize {
        let executions = groups.into_iter().filter_map(|group| self.execution(group));
        let processes: BTreeSet<ProcessIx> =
            executions.map(|execution| execution.process).collect();
        processes.len()
    }

    /// Words that name several executions, such as `cc1 main.c and 3 more`, and the ending of the verb that follows
    /// (`s` for one process, nothing for several).
    pub fn names(
        &self,
        first: Group,
        all: impl IntoIterator<Item = Group>,
    ) -> (Phrase, &'static str) {
        match self.runs(all) {
            0 | 1 => (self.name(first), "s"),
            n => {
                let more = n - 1;
                let names = Phrase::with([&self.name(first)], |[name]| {
                    format!("{name} and {more} more")
                });
                (names, "")
            }
        }
    }

    /// The sum in nanoseconds of the times in `times`, and the execution with the longest time.
    pub fn longest(&self, times: &BTreeMap<Group, u64>) -> Option<(u64, Group)> {
        let sum = times.values().copied().fold(0, u64::saturating_add);
        let longest = times
            .iter()
            .max_by_key(|(group, ns)| (**ns, Reverse(**group)));
        Some((sum, *longest?.0))
    }

    /// The CPU time in ns that executions of programs need themselves.
    pub(crate) fn on_cpu<'g>(&self, groups: impl IntoIterator<Item = &'g Group>) -> u64 {
        let executions = groups
            .into_iter()
            .filter_map(|group| self.execution(*group));
        let times = executions.map(|execution| execution.on_cpu);
        times.fold(0, u64::saturating_add)
    }

    pub fn set(&self, groups: impl IntoIterator<Item = Group>) -> Box<[bool]> {
        let mut set = vec![false; self.groups.count()];
        for group in groups {
            if let Some(is_in) = set.get_mut(group as usize) {
                *is_in = true;
            }
        }
        set.into_boxed_slice()
    }

    /// Computes a value for each execution of a program from the value of the execution that forked its process. `of`
    /// is called exactly once for each execution, so the cost does not grow with the depth of the process tree.
    pub fn down<T: Clone + Default>(&self, mut of: impl FnMut(Group, Option<&T>) -> T) -> Vec<T> {
        let mut values = vec![T::default(); self.executions.len()];
        let processes = from_parents_to_children(self.analysis).into_iter();
        let groups = processes.filter_map(|ix| self.of.get(ix.0 as usize));
        for group in groups.flatten() {
            let owner = self.owner(*group);
            let value = of(*group, owner.and_then(|owner| values.get(owner as usize)));
            if let Some(known) = values.get_mut(*group as usize) {
                *known = value;
            }
        }
        values
    }

    /// For each execution of a program, the CPU time in nanoseconds of the execution and of all executions that descend
    /// from it.
    pub fn up(&self) -> Vec<u64> {
        let mut sums: Vec<u64> = self
            .executions
            .iter()
            .map(|execution| execution.on_cpu)
            .collect();
        let processes = from_parents_to_children(self.analysis).into_iter().rev();
        let groups = processes.filter_map(|ix| self.of.get(ix.0 as usize));
        for group in groups.flatten() {
            let own = sums.get(*group as usize).copied().unwrap_or(0);
            let owner = self.owner(*group);
            if let Some(sum) = owner.and_then(|owner| sums.get_mut(owner as usize)) {
                *sum = sum.saturating_add(own);
            }
        }
        sums
    }

    pub fn owner(&self, group: Group) -> Option<Group> {
        self.execution(group)?.owner
    }

    /// For each execution of a program, whether it is one of the executions `roots` or a descendant of one.
    pub fn below(&self, roots: &[Group]) -> Box<[bool]> {
        let own = self.set(roots.iter().copied());
        let is_own = |group: Group| own.get(group as usize) == Some(&true);
        self.down(|group, above| is_own(group) || above == Some(&true))
            .into()
    }

    /// Whether the process of an execution, or one of its ancestors, is among the processes `some`.
    pub fn is_below(&self, group: Group, some: &BTreeSet<ProcessIx>) -> bool {
        let own = self.execution(group);
        let all = own.map(|execution| self.analysis.lineage(execution.process));
        all.is_some_and(|mut all| all.any(|process| some.contains(&process)))
    }

    /// The failed processes whose parent started the same command line again later. The later try depends on the
    /// earlier failure, so the two could not run at once.
    pub fn tried_again(&self) -> &BTreeSet<ProcessIx> {
        let analysis = self.analysis;
        self.tried_again.get_or_init(|| tried_again(analysis))
    }

    /// The shortest times in which the recorded work can be done, for example on a given number of CPUs. One replay of
    /// the recording finds all of these times.
    pub fn limits(&self) -> Result<&Limits, NoPath> {
        let limits = || what_if::limits(self.analysis, self.path, &self.groups, &[]);
        let limits = self.limits.get_or_init(limits);
        limits.as_ref().map_err(|none| *none)
    }

    pub fn groups_of(&self, processes: &BTreeSet<ProcessIx>) -> Vec<Group> {
        let of = |ix: &ProcessIx| self.of.get(ix.0 as usize);
        processes.iter().filter_map(of).flatten().copied().collect()
    }

    /// The time in nanoseconds that the executions in `set` have on the critical path. `time` selects which segments
    /// count, by their kind and reason.
    pub fn on_path(&self, set: &[bool], time: impl Fn(TimeKind, Reason) -> bool) -> u64 {
        let segments = self.path.segments.iter().zip(&self.segments);
        let counts = segments.filter(|(segment, (group, reason))| {
            let is_in = group.and_then(|group| set.get(group as usize));
            is_in.copied().unwrap_or(false) && time(segment.kind, *reason)
        });
        counts
            .map(|(segment, _)| segment.length())
            .fold(0, u64::saturating_add)
    }

    /// The segments of the critical path. Each comes with the number (group) of the execution to which the segment
    /// belongs, and with the reason for the wait if the segment is a wait.
    pub fn segments(&self) -> impl Iterator<Item = (&Segment, Option<Group>, Reason)> {
        let segments = self.path.segments.iter().zip(&self.segments);
        segments.map(|(segment, (group, reason))| (segment, *group, *reason))
    }

    /// For each segment of the critical path, whether the simulated change `without` leaves the segment out.
    pub fn covers(&self, without: &Without) -> Vec<bool> {
        let counts = |group: Option<Group>| match (&without.of, group) {
            (None, _) => true,
            (Some(of), Some(group)) => of.get(group as usize).copied().unwrap_or(false),
            (Some(_), None) => false,
        };
        self.segments()
            .map(|(segment, group, reason)| (without.own)(segment.kind, reason) && counts(group))
            .collect()
    }

    /// The sum in nanoseconds of the lengths of the segments of the critical path that `covers` selects.
    pub fn length(&self, covers: &[bool]) -> u64 {
        let segments = self.path.segments.iter().zip(covers);
        segments
            .filter(|(_, is_in)| **is_in)
            .map(|(segment, _)| segment.length())
            .fold(0, u64::saturating_add)
    }

    /// The time in nanoseconds in which an execution of a program ran while no other task of the build was able to run.
    pub fn alone(&self, group: Group) -> u64 {
        let sums = self.parallelism.alone_by_group.get(&group);
        sums.map_or(0, |sums| sums.serial)
    }

    /// For each stretch of time between `from` and `to` in which the load does not change: its length in nanoseconds,
    /// the number of the build's tasks that ran, and the number of its tasks that either ran or waited for a CPU.
    pub fn load(&self, from: Ktime, to: Ktime) -> impl Iterator<Item = (u64, usize, usize)> + '_ {
        let first = self
            .parallelism
            .load
            .partition_point(|load| load.from <= from);
        let loads = self
            .parallelism
            .load
            .get(first.saturating_sub(1)..)
            .unwrap_or_default();
        let ends = loads.iter().skip(1).map(|next| next.from).chain([to]);
        loads
            .iter()
            .zip(ends)
            .take_while(move |(load, _)| load.from < to)
            .map(move |(load, end)| {
                let ns = end.min(to).since(load.from.max(from));
                (ns, load.running, load.demand)
            })
    }

    /// Divides the recording into equal parts. Returns for each part the mean number of CPUs that the build used in it,
    /// in hundredths of a CPU.
    pub(super) fn in_use(&self) -> Vec<u64> {
        let parts = course::parts(self.analysis).into_iter();
        let means = parts.map(|(from, to)| {
            let load = self.load(from, to);
            let sums = load.map(|(ns, running, _)| ns.saturating_mul(running as u64));
            let sum = sums.fold(0, u64::saturating_add);
            sum.saturating_mul(100) / to.since(from).max(1)
        });
        means.collect()
    }

    /// For each CPU, the CPU time in nanoseconds of the build's processes that `is_in` selects. Only CPU time between
    /// the beginning and the end of the critical path counts.
    pub fn on_cpus(&self, is_in: impl Fn(ProcessIx) -> bool) -> BTreeMap<CpuId, u64> {
        let mut by_cpu: BTreeMap<CpuId, u64> = BTreeMap::new();
        let Some(timeline) = &self.analysis.timeline else {
            return by_cpu;
        };
        let threads = self.analysis.thread_ids().filter(|thread| {
            let process = self.analysis.thread(*thread).process;
            self.own.has(process) && is_in(process)
        });
        for stretch in threads.flat_map(|thread| timeline.of(thread)) {
            if let Bucket::OnCpu(Some(cpu)) = stretch.doing {
                let (from, to) = (
                    stretch.from.max(self.path.from),
                    stretch.to.min(self.path.to),
                );
                let sum = by_cpu.entry(cpu).or_default();
                *sum = sum.saturating_add(to.since(from));
            }
        }
        by_cpu
    }

    /// The time in nanoseconds between `from` and `to` in which fewer tasks of the build ran than there are CPUs.
    pub fn idle(&self, from: Ktime, to: Ktime) -> u64 {
        let load = self.load(from, to);
        let idle = load.filter(|(_, running, _)| (*running as u64) < self.cpus);
        idle.map(|(ns, ..)| ns).fold(0, u64::saturating_add)
    }

    /// The time in nanoseconds between `from` and `to` in which at least as many tasks of the build ran or waited for a
    /// CPU as the build has CPUs.
    pub fn demands_all_cpus(&self, from: Ktime, to: Ktime) -> u64 {
        let load = self.load(from, to);
        let full = load.filter(|(_, _, demand)| *demand as u64 >= self.cpus);
        full.map(|(ns, ..)| ns).fold(0, u64::saturating_add)
    }

    /// The CPU time in nanoseconds that waiting tasks of the build could have used between `from` and `to` on CPUs
    /// where no task of the build ran.
    pub fn wanted(&self, from: Ktime, to: Ktime) -> u64 {
        let cpus = usize::try_from(self.cpus).unwrap_or(usize::MAX);
        let wanted = self.load(from, to).map(|(ns, running, demand)| {
            let more = demand.min(cpus).saturating_sub(running);
            ns.saturating_mul(more as u64)
        });
        wanted.fold(0, u64::saturating_add)
    }

    pub(crate) fn advice(&self, candidate: Candidate, gain: Gain) -> Advice {
        let executions = candidate
            .evidence
            .iter()
            .filter_map(|group| self.execution(*group));
        let mut processes: Vec<_> = executions
            .clone()
            .map(|execution| execution.process)
            .collect();
        processes.sort_unstable();
        processes.dedup();
        let from = executions.clone().map(|execution| execution.start).min();
        let to = executions.map(|execution| execution.end).max();
        Advice {
            kind: candidate.kind,
            finding: candidate.finding,
            action: candidate.action,
            at_least: gain.at_least,
            gain: gain.at_most,
            unless_meant: candidate.certainty == Certainty::UnlessMeant,
            from: from.unwrap_or(self.path.from).max(self.path.from),
            to: to.unwrap_or(self.path.to).min(self.path.to),
            processes,
        }
    }
}

fn tried_again(analysis: &Analysis) -> BTreeSet<ProcessIx> {
    let mut again = BTreeSet::new();
    for process in &analysis.processes {
        let mut failed: BTreeMap<Vec<&[u8]>, ProcessIx> = BTreeMap::new();
        for ix in &process.children {
            let child = analysis.process(*ix);
            if child.execs.is_empty() || child.argv.truncated() {
                continue;
            }
            let args: Vec<&[u8]> = child.argv.args().collect();
            let before = failed.get(&args);
            let ended = |earlier: &&ProcessIx| analysis.process(**earlier).end <= child.start;
            again.extend(before.filter(ended));
            if exit::failed(child.status) {
                failed.insert(args, *ix)
            } else {
                failed.remove(&args)
            };
        }
    }
    again
}

pub(super) fn on_cpu(kind: TimeKind, _: Reason) -> bool {
    kind == TimeKind::OnCpu
}

/// Adds a time in nanoseconds to the sum of one execution in a map of sums.
pub(crate) fn add(sums: &mut BTreeMap<Group, u64>, group: Group, ns: u64) {
    let sum = sums.entry(group).or_default();
    *sum = sum.saturating_add(ns);
}

fn program(process: &Process, exec: Option<usize>) -> ProgramName {
    match exec.and_then(|at| process.execs.get(at)) {
        Some(exec) => command_line::program_of(&exec.argv, &exec.comm),
        None => label::program(process),
    }
}
