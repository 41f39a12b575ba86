//! Forecasts: the time that a recorded run takes on another machine, or with changes.
//!
//! The schedule ([`tr_analyze::schedule`]) simulates the run. Here are the changes that a user asks
//! for, and how wrong a forecast may be.

mod depends;
mod render;

use regex::bytes::Regex;
use tr_analyze::critical_path::{self, CriticalPath, NoPath};
use tr_analyze::jobs::Tools;
use tr_analyze::kinds::Kind;
use tr_analyze::model::{Analysis, Basis, ProcessIx};
use tr_analyze::programs::Group;
use tr_analyze::schedule::{Change, Changes, Done, Effect, Machine, Schedule, PERIOD};
use tr_analyze::what_if::Without;

use crate::advice::facts::Facts;
use crate::view::View;
use crate::{label, units};
pub use render::{table, Row};

/// The jobs of a recording that name a file which others make, and those others.
pub(crate) fn needs(view: &View<'_>, path: &CriticalPath) -> Vec<(ProcessIx, Vec<ProcessIx>)> {
    let facts = Facts::new(view, path);
    facts.map_or_else(Vec::new, |facts| depends::certain(&facts))
}

/// What a user asks for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub cpus: Option<u64>,
    pub jobs: Option<u64>,
    /// In thousandths of a CPU.
    pub quota: Option<u64>,
    /// Programs that are so many times as fast.
    pub faster: Vec<(String, f64)>,
    /// Executions that are left out, with all below them.
    pub without: Vec<Regex>,
    /// Executions of which a share is left out.
    pub cached: Vec<(Regex, f64)>,
    /// Waits for disks and for the network that are so many times as fast.
    pub disk: Option<f64>,
    pub network: Option<f64>,
    /// Other tasks take no CPU.
    pub alone: bool,
    pub longest_first: bool,
}

/// A time with its bounds, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub low: u64,
    pub likely: u64,
    pub high: u64,
}

/// A part of the path in the new schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    /// In ns.
    pub ns: u64,
}

/// The number of CPUs from which on more gain nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knee {
    pub cpus: u64,
    /// What runs alone then.
    pub because: Vec<Part>,
}

/// A forecast. Times in ns.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The recorded time of the path.
    pub recorded: u64,
    pub wall: Interval,
    pub cpus: u64,
    pub recorded_cpus: u64,
    pub jobs: Option<u64>,
    /// CPU time of the forecast run.
    pub on_cpu: u64,
    pub path: Vec<Part>,
    pub knee: Option<Knee>,
    /// What it assumes, and what it does not know.
    pub assumed: Vec<String>,
}

/// Why there is no forecast.
#[derive(Clone, Debug)]
pub enum NoForecast {
    Path(NoPath),
    /// The recording has totals only: no less than its CPU time in ns, on so many CPUs.
    Totals {
        at_best: u64,
        cpus: u64,
    },
    /// Nothing matches a name or a regular expression.
    NoMatch(String),
    /// No tool in it has jobs that are known.
    NoJobs,
}

/// A forecast's simulation, for any machine.
pub struct Predictor {
    schedule: Schedule,
    tools: Tools,
    wanted: Wanted,
    recorded: u64,
    recorded_cpus: u64,
    /// The changes at best, probably, at worst.
    changes: [Changes; 3],
    /// In thousandths of a task.
    others: u64,
    /// The simulated time of the recorded run on its own machine.
    replayed: u64,
    /// The part of the recorded time that others took, in thousandths.
    taken: u64,
    /// The recorded mean of running tasks, in thousandths.
    occupancy: u64,
}

impl Predictor {
    /// Of a whole recording.
    ///
    /// # Errors
    /// No events, no path, or nothing matches what is wanted.
    pub fn new(view: &View<'_>, wanted: Wanted) -> Result<Predictor, NoForecast> {
        let analysis = view.analysis;
        if analysis.basis() != Basis::Events {
            return Err(totals(analysis, &wanted));
        }
        let path = critical_path::root(analysis)
            .and_then(|root| critical_path::critical_path(analysis, root))
            .map_err(NoForecast::Path)?;
        let facts = Facts::new(view, &path).ok_or(NoForecast::Path(NoPath::NoTimeline))?;
        let tools = depends::tools(&facts);
        if wanted.jobs.is_some() && tools.jobs.is_empty() {
            return Err(NoForecast::NoJobs);
        }
        let (list, changes) = changes(&facts, &wanted)?;
        let plan = depends::plan(&facts, &tools);
        let schedule = Schedule::planned(analysis, &path, &facts.groups, (&list, plan));
        let schedule = schedule.map_err(NoForecast::Path)?;
        Ok(Predictor::of(
            schedule,
            tools,
            (&facts, &path),
            (wanted, changes),
        ))
    }

    fn of(
        schedule: Schedule,
        tools: Tools,
        (facts, path): (&Facts<'_>, &CriticalPath),
        (wanted, changes): (Wanted, [Changes; 3]),
    ) -> Predictor {
        let recorded = path.length();
        let same = Machine::of(facts.cpus);
        let replay = schedule.run(same, 0, Effect::Likely);
        let others = match wanted.alone {
            true => 0,
            false => others(&schedule, same, (recorded, replay.wall)),
        };
        Predictor {
            taken: recorded.saturating_sub(replay.wall).saturating_mul(1000) / recorded.max(1),
            occupancy: replay.on_cpu.saturating_mul(1000) / recorded.max(1),
            replayed: match others {
                0 => replay.wall,
                others => {
                    schedule
                        .run(Machine { others, ..same }, 0, Effect::Likely)
                        .wall
                }
            },
            recorded_cpus: facts.cpus,
            schedule,
            tools,
            wanted,
            recorded,
            changes,
            others,
        }
    }

    /// Whether the jobs of its tools are known.
    pub fn has_jobs(&self) -> bool {
        !self.tools.jobs.is_empty()
    }

    fn machine(&self, cpus: u64, jobs: Option<u64>) -> Machine {
        Machine {
            quota: self.wanted.quota.map(|it| it.saturating_mul(PERIOD / 1000)),
            others: self.others,
            jobs: jobs.or_else(|| self.kept_jobs()),
            longest_first: self.wanted.longest_first,
            ..Machine::of(cpus)
        }
    }

    /// With another order the jobs are planned anew, with the limit of before.
    fn kept_jobs(&self) -> Option<u64> {
        let limits = self.tools.limits.values().max().copied();
        limits.filter(|_| self.wanted.longest_first)
    }

    /// The time on so many CPUs, with so many jobs at once.
    pub fn interval(&self, cpus: u64, jobs: Option<u64>) -> (Interval, Done) {
        let machine = self.machine(cpus, jobs);
        let [best, likely, worst] = self.changes;
        let low = self.schedule.run(machine, best, Effect::Best);
        let done = self.schedule.trace(machine, likely, Effect::Likely);
        let high = self.schedule.run(machine, worst, Effect::Worst);
        // A cgroup with a quota may have its own part of the CPUs, beside any others.
        let alone = machine.quota.filter(|_| machine.others > 0).map(|_| {
            let machine = Machine {
                others: 0,
                ..machine
            };
            self.schedule.run(machine, best, Effect::Best).wall
        });
        let least = alone.map_or(low.wall, |ns| ns.min(low.wall));
        let error = self.error(&done);
        let part = |ns: u64, thousandths: u64| {
            u64::try_from(u128::from(ns) * u128::from(thousandths) / 1000).unwrap_or(u64::MAX)
        };
        let interval = Interval {
            low: part(least.min(done.wall), 1000u64.saturating_sub(error.0)),
            likely: done.wall,
            high: part(high.wall.max(done.wall), 1000 + error.1),
        };
        (interval, done)
    }

    /// How much less and how much more it may be, in thousandths.
    fn error(&self, done: &Done) -> (u64, u64) {
        let off = self.replayed.abs_diff(self.recorded).saturating_mul(1000);
        let off = (off / self.recorded.max(1)).min(300);
        let own = match self.wanted.alone {
            // What others took is not in it.
            true => BASE,
            false => BASE + off,
        };
        // What others had is taken to be the same.
        let others = (self.others / 20).min(150);
        // Beside others work took more CPU time than alone, by an unknown part.
        let (beside_less, beside_more) = (self.taken / 6, self.taken / 10);
        // Caches and cores are shared by the tasks that run at once.
        let occupancy = done.on_cpu.saturating_mul(1000) / done.wall.max(1);
        let change = occupancy.abs_diff(self.occupancy).saturating_mul(1000);
        let shared = (change / occupancy.max(self.occupancy).max(1) * SHARED / 1000).min(SHARED);
        let (less, more) = match occupancy > self.occupancy {
            true => (0, shared),
            false => (shared, 0),
        };
        // A cgroup with a quota has its own part of the CPUs beside others.
        let held = match self.wanted.quota {
            Some(_) => (self.others / 4).min(500),
            None => 0,
        };
        let least = own + others + less + beside_less;
        let most = own + others + more + held + beside_more;
        (least.min(900), most)
    }

    /// The forecast.
    pub fn forecast(&self, analysis: &Analysis) -> Forecast {
        let cpus = self.wanted.cpus.unwrap_or(self.recorded_cpus);
        let (wall, done) = self.interval(cpus, self.wanted.jobs);
        Forecast {
            recorded: self.recorded,
            wall,
            cpus,
            recorded_cpus: self.recorded_cpus,
            jobs: self.wanted.jobs,
            on_cpu: done.on_cpu,
            path: parts(analysis, &done),
            knee: self.knee(analysis),
            assumed: self.assumed(),
        }
    }

    /// More CPUs than these gain less than a fiftieth.
    fn knee(&self, analysis: &Analysis) -> Option<Knee> {
        let done = |cpus| {
            let machine = self.machine(cpus, self.wanted.jobs);
            self.schedule
                .run(machine, self.changes[1], Effect::Likely)
                .wall
        };
        let most = done(MOST_CPUS);
        let enough = |cpus: u64| done(cpus) <= most.saturating_add(most / 50);
        let (mut low, mut high) = (0, MOST_CPUS);
        while high - low > 1 {
            let middle = (low + high) / 2;
            match enough(middle) {
                true => high = middle,
                false => low = middle,
            }
        }
        let machine = self.machine(high, self.wanted.jobs);
        let traced = self
            .schedule
            .trace(machine, self.changes[1], Effect::Likely);
        (high < MOST_CPUS).then(|| Knee {
            cpus: high,
            because: parts(analysis, &traced),
        })
    }

    fn assumed(&self) -> Vec<String> {
        let mut assumed = Vec::new();
        assumed.push(match (self.others, self.wanted.alone) {
            (_, true) => "no other task takes CPU time".to_owned(),
            (0, _) => "other tasks take no CPU time, as in the recording".to_owned(),
            (others, _) => format!(
                "other tasks take as much of the CPUs as {}.{} tasks that never sleep",
                others / 1000,
                others % 1000 / 100
            ),
        });
        if let Some(jobs) = self.wanted.jobs {
            let unknown = self.tools.jobs.iter().filter(|it| it.released.is_some());
            assumed.push(match unknown.count() {
                0 => format!("of each build tool's jobs at most {jobs} run at once, in the recorded order"),
                n => format!(
                    "of each build tool's jobs at most {jobs} run at once; for {n} of {} the recording does not tell whether they waited for another job or for a slot",
                    self.tools.jobs.len()
                ),
            });
        } else if !self.tools.jobs.is_empty() {
            assumed.push("the jobs at once are those of the recording".to_owned());
        }
        assumed.push(
            "waits for disks, the network and timers last as long, work takes the same CPU time"
                .to_owned(),
        );
        assumed
    }
}

/// The least error of a forecast, in thousandths.
const BASE: u64 = 30;
/// The most that sharing caches and cores changes, in thousandths.
const SHARED: u64 = 100;
/// The most CPUs that are tried.
pub const MOST_CPUS: u64 = 64;
/// The parts of a path that are told.
const PARTS: usize = 6;

/// A bound that totals allow: the CPU time, if it were divided evenly.
fn totals(analysis: &Analysis, wanted: &Wanted) -> NoForecast {
    let cpus = wanted
        .cpus
        .unwrap_or(analysis.meta.cpus.len() as u64)
        .max(1);
    let all = analysis.processes.iter().map(|it| it.times.on_cpu);
    let all = all.fold(0, u64::saturating_add);
    let at_best = all / cpus;
    NoForecast::Totals { at_best, cpus }
}

/// The tasks of others with which the run takes as long as recorded, in thousandths of a task.
fn others(schedule: &Schedule, same: Machine, (recorded, alone): (u64, u64)) -> u64 {
    // Less may be slices, and the choice of a CPU.
    if alone.saturating_add(alone / 50) >= recorded {
        return 0;
    }
    let wall = |others| {
        schedule
            .run(Machine { others, ..same }, 0, Effect::Likely)
            .wall
    };
    let (mut low, mut high) = (0, 64_000);
    while high - low > 50 {
        let middle = (low + high) / 2;
        match wall(middle) < recorded {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

fn factor(by: f64) -> u64 {
    // A thousandth of a time is the unit of a change.
    (1000.0 / by.max(0.001)).round().clamp(0.0, 1_000_000.0) as u64
}

/// The changes, and which of them count at best, probably, at worst.
fn changes(facts: &Facts<'_>, wanted: &Wanted) -> Result<(Vec<Change>, [Changes; 3]), NoForecast> {
    let mut list: Vec<Change> = Vec::new();
    let mut sets = [0; 3];
    let mut add = |time: Without, remains: u64, of: &[usize]| {
        let bit: Changes = 1u32.checked_shl(list.len() as u32).unwrap_or(0);
        list.push(Change {
            time,
            remains: (remains, remains),
            jobs: Vec::new(),
        });
        for at in of {
            if let Some(set) = sets.get_mut(*at) {
                *set |= bit;
            }
        }
    };
    const ALL: &[usize] = &[0, 1, 2];
    for (name, by) in &wanted.faster {
        let of = facts
            .all()
            .filter(|(_, it)| it.program == *name)
            .map(|(group, _)| group);
        let of: Vec<Group> = of.collect();
        if of.is_empty() {
            return Err(NoForecast::NoMatch(format!("--faster {name}")));
        }
        add(Without::work(facts.set(of)), factor(*by), ALL);
    }
    for regex in &wanted.without {
        let of = matching(facts, regex);
        if of.is_empty() {
            return Err(NoForecast::NoMatch(format!("--without {regex}")));
        }
        add(whole(facts.below(&of)), 0, ALL);
    }
    for (regex, share) in &wanted.cached {
        let mut of = matching(facts, regex);
        if of.is_empty() {
            return Err(NoForecast::NoMatch(format!("--cached {regex}")));
        }
        let count = (of.len() as f64 * share).round() as usize;
        let every = spread(&of, count);
        // The longest ones at best, the shortest at worst.
        of.sort_by_key(|group| std::cmp::Reverse(length(facts, *group)));
        let longest = of.get(..count).unwrap_or(&of);
        let shortest = of.get(of.len().saturating_sub(count)..).unwrap_or(&of);
        add(whole(facts.below(longest)), 0, &[0]);
        add(whole(facts.below(&every)), 0, &[1]);
        add(whole(facts.below(shortest)), 0, &[2]);
    }
    for (by, kind) in [(wanted.disk, Kind::Disk), (wanted.network, Kind::Network)] {
        let Some(by) = by else { continue };
        let own = match kind {
            Kind::Disk => |kind, _| kind == Kind::Disk,
            _ => |kind, _| kind == Kind::Network,
        };
        let waits = |_, _| false;
        add(
            Without {
                own,
                waits,
                of: None,
            },
            factor(by),
            ALL,
        );
    }
    Ok((list, sets))
}

/// All time of some executions.
fn whole(of: Box<[bool]>) -> Without {
    Without {
        own: |_, _| true,
        waits: |_, _| true,
        of: Some(of),
    }
}

fn length(facts: &Facts<'_>, group: Group) -> u64 {
    facts.process(group).map_or(0, |it| it.end.since(it.start))
}

/// The executions whose command line matches, but for those below others of them.
fn matching(facts: &Facts<'_>, regex: &Regex) -> Vec<Group> {
    let matches = |group: Group| {
        let line = facts.args(group).join(&b' ');
        regex.is_match(&line)
    };
    let all = facts.all().filter(|(group, _)| matches(*group));
    let all: Vec<(Group, _)> = all.map(|(group, it)| (group, it.process)).collect();
    let processes: std::collections::BTreeSet<_> =
        all.iter().map(|(_, process)| *process).collect();
    let mut seen = std::collections::BTreeSet::new();
    let outer = |process| {
        let parent = |ix: &_| facts.analysis.process(*ix).parent;
        let mut above = std::iter::successors(parent(&process), parent);
        !above.any(|ix| processes.contains(&ix))
    };
    all.into_iter()
        .filter(|(_, process)| outer(*process) && seen.insert(*process))
        .map(|(group, _)| group)
        .collect()
}

/// So many of some, evenly spread.
fn spread(of: &[Group], count: usize) -> Vec<Group> {
    let all = of.iter().enumerate();
    let chosen = all.filter(|(at, _)| (at + 1) * count / of.len() > at * count / of.len());
    chosen.map(|(_, group)| *group).collect()
}

/// The parts of a path by process, the longest first.
fn parts(analysis: &Analysis, done: &Done) -> Vec<Part> {
    let mut by_name: std::collections::BTreeMap<String, u64> = Default::default();
    for leg in &done.legs {
        let process = analysis.thread(leg.thread).process;
        let name = label::label(analysis.process(process));
        let sum = by_name.entry(name).or_default();
        *sum = sum.saturating_add(leg.ns);
    }
    let parts = by_name.into_iter().map(|(name, ns)| Part { name, ns });
    let mut parts: Vec<Part> = parts.collect();
    parts.sort_by(|a, b| (b.ns, &a.name).cmp(&(a.ns, &b.name)));
    parts.truncate(PARTS);
    parts
}

impl std::fmt::Display for NoForecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoForecast::Path(why) => write!(f, "no forecast: {why}"),
            NoForecast::Totals { at_best, cpus } => {
                write!(f, "no forecast: the recording has totals, no switches of tasks; at best its CPU time takes {} on {}", units::time(*at_best), units::cpus(*cpus))
            }
            NoForecast::NoMatch(what) => write!(f, "{what}: no program of the recording matches"),
            NoForecast::NoJobs => {
                f.write_str("--jobs: the recording has no make, ninja, xargs or parallel with jobs")
            }
        }
    }
}
