//! Names the parts of a build that no rule of advice has judged. If the verdict did not name these parts, "no change is
//! known" and "nothing stands out" would be statements without a proof.

use std::collections::BTreeMap;

use tr_analyze::critical_path::{by_kind, Segment, TimeKind};
use tr_analyze::programs::{sleeper, Group};
use tr_analyze::share;
use tr_analyze::Analysis;
use tr_format::event::{Comm, Outsider};

use crate::clocks::Measurement;
use crate::facts::{on_cpu_before_exec, BuildFacts, ExecutionName};
use crate::jobs::{OneByOne, Order};
use crate::machine::WithheldTime;
use crate::quartiles::Quartiles;
use crate::rating::Silenced;
use crate::sleeps;
use crate::sleeps::awaited::is_beside_work;
use crate::verdict::{OpenKind, OpenPoint};
use tr_insight::processes::who;
use tr_programs::program_name::ProgramName;
use tr_text::units;

/// The divisor that decides when waits that no rule of advice has judged are named as an open point: if they take a
/// tenth or more of the critical path's time without waits for a CPU. The other open points use this divisor, too. A
/// guess, and a promise to readers: "no change is known" leaves less than a tenth unexplained.
pub(crate) const OPEN_PART: u64 = 10;
/// The divisor that decides which kinds of waits are named as open points, among the waits that no rule of advice has
/// judged: a kind is named if its waits take a fifth or more of the time of all these waits. A guess that keeps the
/// list of open points short.
const KIND_PART: u64 = 5;

impl OpenKind {
    /// The kind of open point (a part of the build that no rule has judged) for a kind of time on the critical path;
    /// `None` if that time needs no judgement.
    pub(crate) fn of(kind: TimeKind) -> Option<OpenKind> {
        match kind {
            TimeKind::Sleep => Some(OpenKind::Sleep),
            TimeKind::Network => Some(OpenKind::Network),
            TimeKind::Outside => Some(OpenKind::Outside),
            TimeKind::Unknown => Some(OpenKind::Unknown),
            TimeKind::Terminal => Some(OpenKind::Terminal),
            _ => None,
        }
    }

    pub(crate) fn is_wait(self) -> bool {
        matches!(
            self,
            OpenKind::Sleep
                | OpenKind::Network
                | OpenKind::Outside
                | OpenKind::Unknown
                | OpenKind::Terminal
        )
    }
}

/// The work of a build on its CPUs, if the CPUs need at least half of the build's own time (`own`, in nanoseconds) for
/// this work. The recording shows how the work is divided among the CPUs and whether calls of programs repeat it, but
/// not whether a program needs all of its work.
pub(crate) fn work(facts: &BuildFacts<'_>, own: u64) -> Option<OpenPoint> {
    let least = facts.limits().ok()?.on(facts.cpus);
    if least.saturating_mul(2) < own {
        return None;
    }
    let mut by_program: BTreeMap<&ProgramName, u64> = BTreeMap::new();
    let analysis = facts.analysis;
    // A process that has executed no program yet is a copy of its parent.
    let copies = analysis.process_ids().filter(|ix| facts.own.has(*ix));
    let copies = copies.filter_map(|ix| {
        let process = analysis.process(ix);
        let copied = facts.execution(facts.groups.at(ix, process.start)?)?;
        (copied.process != ix).then(|| (&copied.program, on_cpu_before_exec(process)))
    });
    let executions = facts.all();
    let executions = executions.map(|(_, execution)| (&execution.program, execution.on_cpu));
    for (program, ns) in executions.chain(copies) {
        let sum = by_program.entry(program).or_default();
        *sum = sum.saturating_add(ns);
    }
    let all = by_program.values().copied().fold(0, u64::saturating_add);
    let programs = by_program.into_iter();
    let (program, ns) = programs.max_by_key(|(program, ns)| (*ns, std::cmp::Reverse(*program)))?;
    let time = units::time(ns);
    Some(OpenPoint {
        kind: OpenKind::Work,
        ns: all,
        text: format!("the work itself: not judged ({program} {time} of CPU)"),
    })
}

/// The waits on the critical path that no advice covers. `covered` has for each segment of the path whether some advice
/// covers it. `polled` has for each segment whether the segment is a sleep of a loop that checks whether other tasks
/// have done their work. A change to such a loop may gain too little for a line of advice, although no rule has judged
/// the work that the loop checks for.
pub(crate) fn waits(facts: &BuildFacts<'_>, covered: &[bool], polled: &[bool]) -> Vec<OpenPoint> {
    let mut kinds: BTreeMap<OpenKind, BTreeMap<Option<WaitTask>, Wait>> = BTreeMap::new();
    let judged = covered.iter().zip(polled);
    for ((segment, group, _), (covered, polled)) in facts.segments().zip(judged) {
        let Some(kind) = OpenKind::of(segment.kind).filter(|_| !covered) else {
            continue;
        };
        if is_release(facts.analysis, segment) {
            continue;
        }
        // A thread that looks from time to time after the working threads of its process, or waits for its slice of an
        // interpreter's lock, is no sleep of the process.
        let works = || is_beside_work(facts, segment.thread, segment.from, segment.to);
        if kind == OpenKind::Sleep && works() {
            continue;
        }
        let task = match kind {
            OpenKind::Sleep => sleeping(facts, segment, group),
            OpenKind::Outside => segment.ended_by(facts.analysis).map(outsider),
            _ => None,
        };
        let (task, name) = task.unzip();
        let waits = kinds.entry(kind).or_default();
        let wait = waits.entry(task).or_insert(Wait {
            name,
            ns: 0,
            polled: 0,
        });
        wait.ns = wait.ns.saturating_add(segment.length());
        if kind == OpenKind::Sleep && *polled {
            wait.polled = wait.polled.saturating_add(segment.length());
        }
    }
    let sum = |waits: &BTreeMap<Option<WaitTask>, Wait>| {
        let lengths = waits.values().map(|wait| wait.ns);
        lengths.fold(0u64, u64::saturating_add)
    };
    let all = kinds.values().map(sum).fold(0u64, u64::saturating_add);
    if all.saturating_mul(OPEN_PART) < facts.worked {
        return Vec::new();
    }
    let named = kinds
        .iter()
        .map(|(kind, waits)| (*kind, sum(waits), waits))
        .filter(|(_, ns, _)| ns.saturating_mul(KIND_PART) >= all);
    named
        .map(|(kind, ns, waits)| of_kind(kind, ns, waits))
        .collect()
}

/// The task that an unjudged wait (a wait that no rule of advice has judged) belongs to.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum WaitTask {
    /// The program that slept.
    Sleeper(ExecutionName),
    /// A task that is not recorded and that ended the wait.
    Outsider(Comm),
}

/// The program that decided to sleep, with its name for people. `group` is the execution that slept.
fn sleeping(
    facts: &BuildFacts<'_>,
    segment: &Segment,
    group: Option<Group>,
) -> Option<(WaitTask, String)> {
    let process = facts.analysis.thread(segment.thread).process;
    let (by, at) = sleeper(facts.analysis, process, segment.from);
    let group = facts.groups.at(by, at).or(group)?;
    let name = facts.name(group).short().to_owned();
    Some((WaitTask::Sleeper(facts.execution_name(group)), name))
}

fn outsider(outsider: &Outsider) -> (WaitTask, String) {
    let comm = outsider.comm;
    (WaitTask::Outsider(comm), who::comm(&comm))
}

/// The waits of one kind that belong to one task and that no rule of advice has judged.
struct Wait {
    name: Option<String>,
    /// The length in nanoseconds of all waits of this kind and task together.
    ns: u64,
    /// The part of `ns` that the task slept in loops which sleep and check whether other tasks have done their work, in
    /// nanoseconds.
    polled: u64,
}

/// Whether a segment of the critical path is the wait at the start of the recorded command: the command's process waits
/// for the recorder, which lets the command begin once the recording has begun.
fn is_release(analysis: &Analysis, segment: &Segment) -> bool {
    let thread = analysis.thread(segment.thread);
    let is_command = Some(analysis.process(thread.process).pid) == analysis.meta.root;
    is_command && segment.from == thread.start && segment.kind == TimeKind::Outside
}

/// Describes waits of one kind that no rule of advice has judged, as an open point of the verdict. `waits` has the
/// waits by task (the task that slept, or else the task that ended the waits), and `ns` is the length of all waits.
fn of_kind(kind: OpenKind, ns: u64, waits: &BTreeMap<Option<WaitTask>, Wait>) -> OpenPoint {
    let longest = waits.values().max_by_key(|wait| wait.ns);
    let longest = longest.and_then(|wait| Some((wait.name.as_deref()?, wait)));
    let longest = longest.filter(|(name, _)| !name.is_empty());
    let checks = |wait: &Wait| wait.polled > wait.ns.saturating_sub(wait.polled);
    let time = units::time(ns);
    let more = if waits.len() > 1 { " and others" } else { "" };
    let what = match (kind, longest) {
        (OpenKind::Sleep, Some((name, wait))) if checks(wait) => {
            let words = if more.is_empty() {
                "checks and sleeps"
            } else {
                "check and sleep"
            };
            format!("work for which {name}{more} {words}")
        }
        (OpenKind::Sleep, Some((name, _))) => format!("sleep in {name}{more}"),
        (OpenKind::Outside, Some((name, _))) => format!("waits for {name}{more}, not recorded"),
        _ => kind.title().to_owned(),
    };
    OpenPoint {
        kind,
        ns,
        text: format!("{what} ({time}): not judged"),
    }
}

/// The open point (a part of the build that no rule has judged) for a program by which the build gives itself a lower
/// priority or fewer CPUs. Only the first such program is named, and only if the waits for a CPU take at least a tenth
/// of the critical path.
pub(crate) fn limit(facts: &BuildFacts<'_>) -> Option<OpenPoint> {
    let waits = facts.wall.saturating_sub(facts.worked);
    let mut all = facts.all();
    let (group, _) = all.find(|(_, execution)| execution.program.limits())?;
    let (name, time) = (facts.name(group), units::time(waits));
    let name = name.short();
    (waits.saturating_mul(OPEN_PART) >= facts.wall).then(|| OpenPoint {
        kind: OpenKind::Limit,
        ns: waits,
        text: format!("the command's own limit, {name}: not judged ({time} of run-queue wait)"),
    })
}

/// The open point of the verdict about the number of jobs. With another number of jobs the build would take less time
/// on free CPUs, but no number is advised, because other tasks or a quota take much of the CPUs.
pub(crate) fn jobs(silenced: &Silenced, withheld: &WithheldTime) -> OpenPoint {
    let place = if withheld.throttled > 0 {
        "under this quota"
    } else {
        "beside this load"
    };
    let (action, most) = (&silenced.action, units::time(silenced.gain));
    OpenPoint {
        kind: OpenKind::Jobs,
        ns: silenced.gain,
        text: format!(
            "number of jobs: not judged {place} (up to {most} less on free CPUs: {action})"
        ),
    }
}

/// The open point (a part of the build that no rule has judged) for jobs that a tool ran one after the other, although
/// it may run several at once.
pub(crate) fn one_by_one(
    facts: &BuildFacts<'_>,
    jobs: &OneByOne<'_>,
    own: u64,
) -> Option<OpenPoint> {
    // If other tasks use the CPUs, too, or if there is a CPU quota, the jobs take longer than on CPUs of their own. So
    // the recorded gain is scaled to the build's time on CPUs of its own (`own`).
    let most = share(jobs.most, own.min(facts.wall), facts.wall);
    if most.saturating_mul(OPEN_PART) < own {
        return None;
    }
    let (name, program, count) = (facts.name(jobs.owner), jobs.program, jobs.count);
    let name = name.short();
    let time = units::time(most);
    Some(OpenPoint {
        kind: OpenKind::Jobs,
        ns: most,
        text: format!(
            "number of jobs: not judged ({name} runs {count} × {program} one after the other, at once up to {time} less)"
        ),
    })
}

/// The factor by which the jobs that want a CPU must exceed the number of CPUs to be called a crowd. A guess: with so
/// many jobs, those that wait for each other by spinning may use much of the CPU time, so it is open whether fewer jobs
/// would need less CPU time.
const CROWD: usize = 4;
/// The factor by which the CPU times of one program's executions must differ between their first and third quartile to
/// count as unlike. A guess: the CPU times of compilers also differ because their sources differ.
const UNLIKE_FACTOR: u64 = 2;
/// The divisor for two conditions: many more jobs than CPUs were runnable during half of the build's time, and one
/// program used half of all CPU time. A guess: otherwise the number of jobs matters only for a smaller part of the
/// build.
const HALF: u64 = 2;
/// The least number of executions of one program whose CPU times are compared with each other. A guess: among fewer
/// executions, one may differ by chance.
const LEAST_EXECUTIONS: usize = 8;

/// The open point (a part of the build that no rule has judged) for jobs of one program, if the CPU times of these jobs
/// differ, and for half of the build's time many more jobs wanted a CPU than there are CPUs. Jobs that wait for each
/// other by spinning have such CPU times.
pub(crate) fn crowd(facts: &BuildFacts<'_>) -> Option<OpenPoint> {
    let cpus = usize::try_from(facts.cpus).unwrap_or(usize::MAX);
    let (mut crowded, mut most) = (0u64, 0usize);
    for (demand, ns) in facts.parallelism.demand.iter().enumerate() {
        if demand >= cpus.saturating_mul(CROWD) && *ns > 0 {
            crowded = crowded.saturating_add(*ns);
            most = demand;
        }
    }
    if crowded.saturating_mul(HALF) < facts.wall {
        return None;
    }
    let mut by_program: BTreeMap<&ProgramName, Vec<u64>> = BTreeMap::new();
    let mut all = 0u64;
    for (group, execution) in facts.all() {
        all = all.saturating_add(execution.on_cpu);
        if facts.role(group).is_none() {
            let of = by_program.entry(&execution.program).or_default();
            of.push(execution.on_cpu);
        }
    }
    let is_unlike = |mut works: Vec<u64>| {
        works.sort_unstable();
        let (count, sum) = (
            works.len(),
            works.iter().fold(0u64, |a, b| a.saturating_add(*b)),
        );
        let is_wide = Quartiles::of_sorted(&works)
            .is_some_and(|works| works.upper >= works.lower.saturating_mul(UNLIKE_FACTOR));
        count >= LEAST_EXECUTIONS && sum.saturating_mul(HALF) >= all && is_wide
    };
    let (program, _) = by_program
        .into_iter()
        .find(|(_, works)| is_unlike(works.clone()))?;
    Some(OpenPoint {
        kind: OpenKind::Jobs,
        ns: crowded,
        text: format!(
            "number of jobs: not judged (up to {most} at once on {}, and {program} takes unlike CPU times)",
            units::plural(facts.cpus, "CPU", "CPUs")
        ),
    })
}

/// The open point (a part of the build that no rule has judged) for commands that ran one after the other, if running
/// them at once would save a tenth of the build's time. `most` is the most that this saves for all such commands
/// together, and `own` is the build's time if no other tasks use its CPUs, both in nanoseconds.
pub(crate) fn order(
    facts: &BuildFacts<'_>,
    orders: &[Order],
    most: u64,
    own: u64,
) -> Option<OpenPoint> {
    let longest = orders.iter().max_by_key(|order| order.row.cap)?;
    let most = most.min(
        orders
            .iter()
            .map(|order| order.row.cap)
            .fold(0, u64::saturating_add),
    );
    if most.saturating_mul(OPEN_PART) < own {
        return None;
    }
    let (commands, time) = (longest.text(facts), units::time(most));
    Some(OpenPoint {
        kind: OpenKind::Order,
        ns: most,
        text: format!("order of {commands}: not judged (at once up to {time} less)"),
    })
}

/// The open point (a part of the build that no rule has judged) for a program that measures for a set time.
pub(crate) fn measurement(facts: &BuildFacts<'_>, own: &Measurement) -> OpenPoint {
    let (name, time) = (facts.name(own.group), units::time(own.length));
    OpenPoint {
        kind: OpenKind::Measurement,
        ns: own.length,
        text: format!(
            "{} measures for a set time ({time}): not judged",
            name.short()
        ),
    }
}

/// The open point (a part of the build that no rule has judged) for sleeps that are not on the critical path, if these
/// sleeps would delay the build on free CPUs: there, the work that the build waited for takes less time, but the sleeps
/// do not. `most` is the time that the build would save without any sleep, and `own` is the build's time if no other
/// tasks use its CPUs, both in nanoseconds.
pub(crate) fn sleeps_beside(facts: &BuildFacts<'_>, most: u64, own: u64) -> Option<OpenPoint> {
    // If more than half of `most` may come from sleeps on the critical path itself, these sleeps are an open point of
    // their own, and no other point is needed.
    let on_path = by_kind(&facts.path.segments).of(TimeKind::Sleep);
    if most.saturating_mul(OPEN_PART) < own || most == 0 || on_path.saturating_mul(2) > most {
        return None;
    }
    let beside = sleeps::beside::sleeps_beside(facts);
    let of = beside.map_or(String::new(), |beside| {
        format!(" of {}", beside.names.0.short())
    });
    Some(OpenPoint {
        kind: OpenKind::SleepBeside,
        ns: most,
        text: format!(
            "sleep{of} beside the critical path: not judged (up to {} less on free CPUs)",
            units::time(most)
        ),
    })
}
