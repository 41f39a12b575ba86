//! Advice on the number of jobs that a build runs at once. Having more jobs than CPUs is no fault: jobs that wait for a
//! CPU while other jobs use it lose nothing, and if they need too much memory, other advice reports the waits for
//! memory.

pub(super) mod checkers;
mod job_limit;
pub(super) mod runners;
pub(super) mod started;

use std::collections::{BTreeMap, BTreeSet};
use tr_programs::{changes, checks};

use tr_analyze::programs::Group;
use tr_analyze::schedule::{Change, Jobs};
use tr_analyze::what_if::Without;
use tr_format::event::Ktime;
use tr_programs::program_name::ProgramName;
use tr_programs::tools::{Family, Role};

use crate::candidate::{AdviceKind, AffectedWork, Candidate, Certainty, CpuDemand};
use crate::directories::names_directory;
use crate::facts::BuildFacts;
use crate::jobs::job_limit::{waits_for_slots, Limit};
use crate::jobs::started::{started_jobs, Job, NamedJob, StartedJobs, LEAST_JOBS};
use crate::machine::starved_within;
use tr_text::phrase::Phrase;
use tr_text::units;

/// The advice for a tool that starts jobs only while the load of the machine is low: leave out the limit on the load.
const OF_LOAD: &str = "leave out its limit of the load (-l), which counts others' tasks";
/// The time in ns by which two jobs may overlap and still count as one after the other. A guess: the exit of one
/// process and the start of the next may overlap for so long.
const OVERLAP: u64 = 1_000_000;

/// The jobs of a build: the child processes of each program that could run as jobs of their own. The rules of advice
/// propose changes to these jobs. If no advice explains the time of jobs that ran one after the other, the verdict
/// lists those jobs.
pub(super) struct BuildJobs<'f> {
    started: Vec<StartedJobs<'f>>,
    pub orders: Vec<Order>,
}

impl<'f> BuildJobs<'f> {
    pub fn of(facts: &'f BuildFacts<'_>) -> BuildJobs<'f> {
        let started = started_jobs(facts);
        let orders = orders(facts, &started);
        BuildJobs { started, orders }
    }

    pub fn candidates(&self, facts: &BuildFacts<'_>) -> Vec<Candidate> {
        let mut all = in_a_row(facts, &self.started);
        let orders = self.orders.iter();
        all.extend(orders.filter_map(|order| order.candidate(facts)));
        all
    }

    /// The jobs of a build tool or of a test runner that ran one after the other, although the tool may run several at
    /// once; of several such tools, the one that could save most. The reason may be the tool's configuration, a lock
    /// that tests share, or that each job needs the result of the previous one.
    pub fn one_by_one(&self, facts: &BuildFacts<'_>) -> Option<OneByOne<'f>> {
        let rows = self.started.iter();
        let rows = rows.filter_map(|started| OneByOne::of(facts, started));
        rows.max_by_key(|row| row.most)
    }
}

/// Advice to run more children of one process at once, if the children run one program, few of them ran at once, and a
/// CPU was idle or the children mostly wait. Rows of different processes that run one program are reported together.
fn in_a_row(facts: &BuildFacts<'_>, started: &[StartedJobs<'_>]) -> Vec<Candidate> {
    // All children of a test runner are tests, whatever their files are called.
    let test = ProgramName::new("test");
    let mut rows: BTreeMap<(Option<&ProgramName>, &ProgramName), Vec<Row>> = BTreeMap::new();
    for started in started {
        let (owner, jobs) = (started.owner, &started.jobs);
        let mut by_program: BTreeMap<&ProgramName, Vec<Job>> = BTreeMap::new();
        let tests = is_runner(facts, owner);
        for (program, job) in jobs {
            let program = if tests { &test } else { *program };
            by_program.entry(program).or_default().push(*job);
        }
        let parent = facts.execution(owner).map(|execution| &execution.program);
        for (program, jobs) in by_program {
            if jobs.len() < LEAST_JOBS
                || is_cheap(facts, owner, program)
                || program.converges()
                || is_one_command(facts, &jobs)
                || is_ordered(facts, owner, program, &jobs)
            {
                continue;
            }
            if let Some(mut row) = row(facts, started, jobs) {
                row.unsure |= !is_independent(facts, owner, program);
                rows.entry((parent, program)).or_default().push(row);
            }
        }
    }
    let rows = rows.into_iter();
    rows.filter_map(|((_, program), rows)| of_rows(facts, program, &rows))
        .collect()
}

/// Whether the jobs of one program do not need each other, so that they can run at once. The answer is yes for
/// compilers, which write other files than they read, for tests, and for the jobs of a tool other than make that has an
/// option for their number, such as xargs. For other programs the answer is no, because the recording contains neither
/// the files that they read nor which jobs are lines of one recipe.
fn is_independent(facts: &BuildFacts<'_>, owner: Group, program: &ProgramName) -> bool {
    let known = facts
        .execution(owner)
        .and_then(|execution| changes::known(&execution.program));
    let takes = known.is_some_and(|known| known.takes_jobs() && known.family != Family::Make);
    takes || is_runner(facts, owner) || program.role() == Some(Role::Compiler)
}

/// Whether the children of a script only handle files, as `cp` does. A single call for all files could do the work of
/// these children, so running them at once gains little.
fn is_cheap(facts: &BuildFacts<'_>, owner: Group, program: &ProgramName) -> bool {
    facts.is_shell(owner) && program.handles_files()
}

/// The working directory of a job and its command line; `None` if one of the two is not completely known.
fn command<'f>(facts: &'f BuildFacts<'_>, job: &Job) -> Option<(&'f [u8], Vec<&'f [u8]>)> {
    let exec = facts.exec(job.group)?;
    let known = !exec.directory.is_empty() && !exec.argv.truncated();
    known.then(|| (&*exec.directory, exec.argv.args().collect()))
}

/// Whether the jobs have at most half as many different commands, each with its directory, as there are jobs. If equal
/// commands ran at once, they would repeat each other's work or write to the same files. If the directory of a command
/// is not recorded, the answer is no, because the commands may run in different directories.
fn is_one_command(facts: &BuildFacts<'_>, jobs: &[Job]) -> bool {
    let commands: Option<BTreeSet<_>> = jobs.iter().map(|job| command(facts, job)).collect();
    commands.is_some_and(|commands| commands.len() * 2 <= jobs.len())
}

/// Whether the commands of a script have to stay in order, because each command changes what the next one reads. This
/// is so in two cases. Either all commands change a repository, or all commands are build tools in one directory and at
/// least one of these tools runs without a target. A tool without a target makes everything, also the files that the
/// other tools need.
fn is_ordered(facts: &BuildFacts<'_>, owner: Group, program: &ProgramName, jobs: &[Job]) -> bool {
    if !facts.is_shell(owner) {
        return false;
    }
    let builds_in = |job: &Job| -> Option<&[u8]> {
        let exec = facts.exec(job.group)?;
        let is_here =
            facts.role(job.group) == Some(Role::Jobs) && !exec.argv.args().any(names_directory);
        (is_here && !exec.directory.is_empty()).then_some(&*exec.directory)
    };
    let directories: Option<BTreeSet<&[u8]>> = jobs.iter().map(builds_in).collect();
    let is_one_place = directories.is_some_and(|directories| directories.len() == 1);
    let makes_all = |job: &Job| {
        let args = facts.args(job.group);
        let known = facts.execution(job.group);
        let tool = known.and_then(|execution| execution.program.tool()?.jobs);
        let args = args.get(1..).unwrap_or_default();
        tool.is_some_and(|tool| tool.operands(args).next().is_none())
    };
    let is_one_build = is_one_place && jobs.iter().any(makes_all);
    let edits = |job: &Job| {
        let program = facts
            .execution(job.group)
            .map_or(program, |execution| &execution.program);
        program.changes_repository()
    };
    is_one_build || jobs.iter().all(edits)
}

/// Commands that ran one after the other, although nothing in the recording says that they need each other.
pub(super) struct Order {
    pub row: Row,
    /// Whether the tool that starts these commands has an option for the number of jobs.
    takes_jobs: bool,
}

/// Finds sequences of commands of which each command started when the previous one had ended. Scripts, build tools
/// without a number of jobs, and test runners start such commands.
fn orders(facts: &BuildFacts<'_>, started: &[StartedJobs<'_>]) -> Vec<Order> {
    let mut orders = Vec::new();
    for started in started {
        let owner = started.owner;
        let starts = matches!(facts.role(owner), Some(Role::Jobs | Role::Tests));
        if !starts && !facts.is_shell(owner) {
            continue;
        }
        let known = facts
            .execution(owner)
            .and_then(|execution| changes::known(&execution.program));
        let takes_jobs = known.is_some_and(|known| known.takes_jobs());
        let children = started.jobs.iter().copied();
        let children = children.filter(|(program, _)| !is_cheap(facts, owner, program));
        for jobs in independent(facts, children.collect()) {
            let row = row(facts, started, jobs).filter(|row| row.at_once == 1);
            orders.extend(row.map(|row| Order { row, takes_jobs }));
        }
    }
    orders
}

/// Divides the children of one process into groups whose members could run at once. A group ends before a child on
/// which the later children depend: a configuration, an installation, a linker, a whole build, or a program that is run
/// until its output no longer changes. If a child overlaps with an earlier child, it is left out, because it already
/// runs beside others.
fn independent(facts: &BuildFacts<'_>, mut children: Vec<NamedJob<'_>>) -> Vec<Vec<Job>> {
    children.sort_by_key(|(_, job)| (job.from, job.group));
    let mut parts: Vec<Vec<Job>> = vec![Vec::new()];
    let mut until = Ktime(0);
    for (program, job) in children {
        let own = facts.role(job.group);
        let main = program.role();
        let rests = |role| {
            matches!(
                role,
                Some(Role::Configure | Role::Packages | Role::Linker | Role::Jobs)
            )
        };
        if rests(own) || rests(main) || program.converges() {
            parts.push(Vec::new());
        } else if job.from.0.saturating_add(OVERLAP) >= until.0 {
            until = job.to;
            if let Some(part) = parts.last_mut() {
                part.push(job);
            }
        }
    }
    // A repeated command may need the result of its earlier run, and then the two cannot run at once. So of several
    // jobs with the same command line only the first one is kept.
    for part in &mut parts {
        let mut seen = BTreeSet::new();
        part.retain(|job| command(facts, job).is_none_or(|command| seen.insert(command)));
    }
    parts.retain(|part| part.len() >= 2);
    parts
}

/// The jobs of a tool that may run several jobs at once but, in this recording, never ran two at once.
pub(super) struct OneByOne<'f> {
    pub owner: Group,
    pub program: &'f ProgramName,
    pub count: usize,
    /// The most time in nanoseconds that the build can save if these jobs run at once.
    pub most: u64,
}

impl<'f> OneByOne<'f> {
    fn of(facts: &BuildFacts<'_>, started: &StartedJobs<'f>) -> Option<OneByOne<'f>> {
        let known = changes::known(&facts.execution(started.owner)?.program)?;
        let may_run_several = matches!(known.role, Role::Jobs | Role::Tests)
            && matches!(
                started.limit,
                Limit::Unknown | Limit::Given(None | Some(2..))
            );
        let (program, _) = *started.jobs.first()?;
        let jobs: Vec<Job> = started.jobs.iter().map(|(_, job)| *job).collect();
        if !may_run_several || jobs.len() < LEAST_JOBS || at_once(&jobs) != 1 {
            return None;
        }
        let lengths = || jobs.iter().map(|job| job.to.since(job.from));
        let (sum, longest) = (lengths().fold(0u64, u64::saturating_add), lengths().max()?);
        Some(OneByOne {
            owner: started.owner,
            program,
            count: jobs.len(),
            most: sum.saturating_sub((sum / facts.cpus).max(longest)),
        })
    }
}

impl Order {
    /// Advice to run the commands of a sequence at once, if none of them changes a file that another one may read. An
    /// example is the linters of one script.
    fn of_checks(&self, facts: &BuildFacts<'_>) -> Option<Candidate> {
        let row = &self.row;
        let only_check = |group: &Group| {
            let args = facts.args(*group);
            // Without recorded arguments, the work of an execution is not known.
            !args.is_empty() && checks::only_checks(&args)
        };
        if !facts.is_shell(row.owner) || !row.groups.iter().all(only_check) {
            return None;
        }
        let name = facts.name(row.owner);
        let (count, length) = (
            units::count(row.groups.len() as u64),
            units::time(row.length),
        );
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!("{name} runs {count} checks one after the other, {length}")
            }),
            action: "run them at once, as none writes what another one reads".into(),
            without: Without::own(|_, _| true, Some(facts.below(&row.others))),
            cap: row.cap,
            jobs: vec![row.jobs],
            evidence: row.groups.clone(),
            demand: CpuDemand::More,
            work: AffectedWork::Remains,
            certainty: Certainty::unsure_if(row.unsure),
            ..Candidate::of(AdviceKind::FewJobs)
        })
    }

    /// The advice to run several commands of this sequence at once. If the tool that started the commands has an option
    /// for the number of jobs, the advice is to use that option, although the steps of the tool may need each other.
    fn candidate(&self, facts: &BuildFacts<'_>) -> Option<Candidate> {
        if !self.takes_jobs {
            return self.of_checks(facts);
        }
        let (row, program) = (&self.row, "steps");
        let known = changes::known(&facts.execution(row.owner)?.program)?;
        let action = if row.by_load {
            OF_LOAD.to_owned()
        } else {
            known.change(facts.cpus)
        };
        let name = facts.name(row.owner);
        let count = units::count(row.groups.len() as u64);
        let length = units::time(row.length);
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!("{name} runs {count} {program} one after the other, {length}")
            }),
            action: format!("{action}, if they are targets of their own"),
            without: Without::own(|_, _| true, Some(facts.below(&row.others))),
            cap: row.cap,
            jobs: vec![row.jobs],
            demand: CpuDemand::of_jobs(row.mostly_wait, !row.by_load),
            work: AffectedWork::Remains,
            certainty: Certainty::Unsure,
            evidence: row.groups.clone(),
            ..Candidate::of(AdviceKind::FewJobs)
        })
        .filter(|_| !action.is_empty() && facts.role(row.owner) == Some(Role::Jobs))
    }

    /// The words for commands that ran one after the other, such as `4 commands of lint.sh`.
    pub fn text(&self, facts: &BuildFacts<'_>) -> String {
        let count = units::count(self.row.groups.len() as u64);
        format!("{count} commands of {}", facts.name(self.row.owner).short())
    }
}

/// The change that runs the commands of all given sequences at once. The simulation computes how much this saves.
pub(super) fn order_of_all(facts: &BuildFacts<'_>, orders: &[Order]) -> Option<Change> {
    let others = orders.iter().flat_map(|order| &order.row.others);
    let others: Vec<Group> = others.copied().collect();
    (!orders.is_empty()).then(|| Change {
        time: Without::work(facts.below(&others)),
        remains: (1000, 1200),
        jobs: orders.iter().map(|order| order.row.jobs).collect(),
    })
}

fn is_runner(facts: &BuildFacts<'_>, group: Group) -> bool {
    facts.role(group) == Some(Role::Tests)
}

/// Jobs that one process started, of which few ran at the same time.
pub(super) struct Row {
    pub owner: Group,
    at_once: u64,
    /// Whether the make that started the jobs shares the job slots of another make.
    inherits: bool,
    /// Whether the tool that started the jobs starts them only while the load of the machine is low.
    by_load: bool,
    /// Whether the advice names a number of jobs for the tool that started these jobs.
    number: bool,
    /// Whether running more of these jobs at once may save nothing.
    unsure: bool,
    /// The time in nanoseconds in which at least one of the jobs ran. The field `cap` has the part of this time that
    /// running more jobs at once may save.
    length: u64,
    pub cap: u64,
    /// Whether the jobs used CPUs for less than half of their time. Time in which other tasks kept the jobs from the
    /// CPUs does not count.
    mostly_wait: bool,
    groups: Vec<Group>,
    /// The executions of all these jobs, except the longest one.
    others: Vec<Group>,
    /// The jobs, of which the proposed change runs more at once.
    jobs: Jobs,
}

/// Whether the first job used more than twice the CPU time of each later job, and each later job at least half of the
/// CPU time of the longest of them. The later jobs may use results that the first one left, as compilers with a cache
/// do. If all jobs ran at once, each could take as long as the first.
fn first_is_long(jobs: &[Job]) -> bool {
    let Some((first, others)) = jobs.split_first() else {
        return false;
    };
    let works = || others.iter().map(|job| job.on_cpu.saturating_mul(2));
    let most = works().max().unwrap_or(0);
    most < first.on_cpu && works().all(|work| work.saturating_mul(2) >= most)
}

/// The row that `jobs` make, which are some of the jobs of one loop or one program; `None` if the limit of the tool did
/// not hold these jobs back, or if no CPU was free for more of them.
fn row(facts: &BuildFacts<'_>, started: &StartedJobs<'_>, mut jobs: Vec<Job>) -> Option<Row> {
    let (owner, limit) = (started.owner, started.limit);
    if facts.cpus < 2 {
        return None;
    }
    jobs.sort_by_key(|job| (job.from, job.group));
    let from = jobs.first()?.from;
    let slowest = jobs.iter().max_by_key(|job| job.to.since(job.from))?;
    let at_once = at_once(&jobs);
    let inherits = matches!(limit, Limit::Inherited(jobs) if jobs != Some(1)) && at_once == 1;
    // A make that waits for a job slot was already called as $(MAKE), so advice to call it so is not needed.
    if !limit.holds(at_once, facts.cpus) || inherits && waits_for_slots(facts, started.process) {
        return None;
    }
    // Only time in which a job ran counts, because another phase of the build may lie between two jobs.
    let mut until = from;
    let (mut length, mut idle) = (0u64, 0u64);
    for job in &jobs {
        let from = until.max(job.from);
        length = length.saturating_add(job.to.since(from));
        idle = idle.saturating_add(facts.idle(from, job.to));
        until = until.max(job.to);
    }
    let work: u64 = jobs
        .iter()
        .map(|job| job.on_cpu)
        .fold(0, u64::saturating_add);
    // If no other tasks used the CPUs, tasks of the build would not have to wait without a CPU. So the time in which
    // tasks of the build wanted a CPU and none of them had one is subtracted.
    let starved = starved_within(facts, from, until).min(length);
    let own = length - starved;
    let groups: Vec<Group> = jobs.iter().map(|job| job.group).collect();
    let others = groups
        .iter()
        .copied()
        .filter(|group| *group != slowest.group);
    let mostly_wait = work.saturating_mul(2) < own;
    let longest = slowest.to.since(slowest.from);
    // While a job waits, other tasks of the build may be the ones that want a CPU. So if the jobs mostly wait, the time
    // in which tasks of the build got no CPU is not subtracted from the length of the jobs.
    let (own, longest) = if mostly_wait {
        (length, longest)
    } else {
        let starved = starved_within(facts, slowest.from, slowest.to);
        (own, longest.saturating_sub(starved))
    };
    // Jobs that mostly wait need no idle CPU to run at once.
    if !mostly_wait && idle.saturating_mul(2) < length {
        return None;
    }
    let by_load = limit == Limit::Load;
    let known = changes::known(&facts.execution(owner)?.program);
    let number = known.is_some_and(|known| known.takes_jobs()) && !by_load;
    Some(Row {
        jobs: Jobs {
            owner: started.process,
            from,
            to: jobs.last()?.from,
            // Jobs that mostly wait need no CPU of their own. The advice names a number of jobs only for a tool that
            // has an option for this number.
            at_once: if mostly_wait && !number {
                jobs.len() as u64
            } else {
                facts.cpus
            },
        },
        owner,
        at_once,
        inherits,
        by_load,
        number,
        // Jobs of a make that shares slots may also need each other, or other jobs may have had the slots.
        unsure: inherits || first_is_long(&jobs),
        length,
        cap: own.saturating_sub((work / facts.cpus).max(longest)),
        mostly_wait,
        others: others.collect(),
        groups,
    })
}

fn of_rows(facts: &BuildFacts<'_>, program: &ProgramName, rows: &[Row]) -> Option<Candidate> {
    let first = rows
        .iter()
        .max_by_key(|row| (row.length, std::cmp::Reverse(row.owner)))?;
    let parent = changes::known(&facts.execution(first.owner)?.program);
    let (name, s) = facts.names(first.owner, rows.iter().map(|row| row.owner));
    let at_once = match first.at_once {
        1 => "one after the other".to_owned(),
        n => format!("{n} at once"),
    };
    let all = || rows.iter().flat_map(|row| &row.groups).copied();
    // If the jobs are builds themselves, the words name the build tool and not the program that used most CPU time.
    let are_builds = all().all(|group| facts.role(group) == Some(Role::Jobs));
    let own = &facts.execution(all().next()?)?.program;
    let program = if are_builds { own } else { program };
    let others: Vec<Group> = rows.iter().flat_map(|row| &row.others).copied().collect();
    let length = rows.iter().map(|row| row.length).max()?;
    let kind = if is_runner(facts, first.owner) {
        AdviceKind::Tests
    } else {
        AdviceKind::FewJobs
    };
    Some(Candidate {
        finding: Phrase::with([&name], |[name]| {
            format!(
                "{name} run{s} {} × {program} {at_once}, {}",
                units::count(all().count() as u64),
                units::time(length)
            )
        }),
        action: parent
            .filter(|_| !first.inherits && !first.by_load)
            .map(|known| known.change(facts.cpus))
            .filter(|action| !action.is_empty())
            .map(|action| {
                if kind == AdviceKind::Tests {
                    format!("{action}, if they are independent")
                } else {
                    action
                }
            })
            .unwrap_or_else(|| {
                if first.by_load {
                    OF_LOAD.into()
                } else if first.inherits {
                    "call it as $(MAKE), if it is not".into()
                } else {
                    "run them at once, if independent".into()
                }
            }),
        without: Without::own(|_, _| true, Some(facts.below(&others))),
        cap: rows.iter().map(|row| row.cap).fold(0, u64::saturating_add),
        jobs: rows.iter().map(|row| row.jobs).collect(),
        demand: CpuDemand::of_jobs(rows.iter().all(|row| row.mostly_wait), first.number),
        work: AffectedWork::Remains,
        // Tests may use the same files or ports, which no recording shows.
        certainty: Certainty::unsure_if(
            kind == AdviceKind::Tests || rows.iter().any(|row| row.unsure),
        ),
        evidence: all().collect(),
        ..Candidate::of(kind)
    })
}

/// The largest number of jobs that ran at once. Jobs that overlap by a millisecond or less count as one after the
/// other.
fn at_once(jobs: &[Job]) -> u64 {
    let mut steps: Vec<(Ktime, i64)> = Vec::new();
    for job in jobs {
        steps.push((job.from, 1));
        steps.push((Ktime(job.to.0.saturating_sub(OVERLAP)), -1));
    }
    steps.sort_unstable();
    let (mut now, mut most) = (0i64, 0i64);
    for (_, step) in steps {
        now += step;
        most = most.max(now);
    }
    most.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_job_may_fill_a_cache() {
        let is_long = |work: &[u64]| {
            let job = |on_cpu: &u64| Job {
                from: Ktime(0),
                to: Ktime(1),
                on_cpu: *on_cpu,
                group: 0,
            };
            let jobs: Vec<Job> = work.iter().map(job).collect();
            first_is_long(&jobs)
        };
        for (work, want) in [
            (&[50, 10, 11, 9][..], true),
            (&[50, 10, 24, 9], false),
            (&[50, 30, 30], false),
            (&[10, 50, 10], false),
            (&[], false),
        ] {
            assert_eq!(is_long(work), want, "{work:?}");
        }
    }
}
