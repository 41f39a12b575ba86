//! Runs the simulation behind a forecast, and estimates how wrong its time may be.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::{self, CriticalPath, NoPath};
use tr_analyze::jobs::Tools;
use tr_analyze::machine::withheld;
use tr_analyze::model::{Analysis, Basis, ProcessIx};
use tr_analyze::schedule::{Changes, Done, Effect, Machine, Schedule, PERIOD};
use tr_format::event::Ktime;

use tr_insight::advice::facts::{Facts, STRAY};
use tr_insight::depends;
use tr_insight::size::{self, HeldMemory};
use tr_insight::Recording;

use tr_text::units;

use crate::forecast::{
    parts, totals, warnings, Forecast, Interval, Knee, NoForecast, Row, Wanted, MOST_CPUS,
};
use crate::load::{self, Load, BESIDE};
use crate::{changes, render, shards};

/// The simulation behind a forecast; it can be run for any machine.
pub struct Predictor {
    pub(crate) schedule: Schedule,
    pub(crate) tools: Tools,
    pub(crate) wanted: Wanted,
    pub(crate) recorded: u64,
    pub(crate) recorded_cpus: u64,
    /// For each machine, the sets of changes that count at best, probably and at worst.
    pub(crate) variants: Vec<[Changes; 3]>,
    /// The number of tests that are split among machines.
    pub(crate) tests: usize,
    pub(crate) load: Load,
    /// The simulated time of the recorded run without tasks outside of it, in ns.
    pub(crate) alone: u64,
    /// Another load that explains the recorded time as well, if the recording does not show how the kernel divides the
    /// CPUs.
    pub(crate) other_load: Option<Load>,
    /// The share of the recorded time that tasks outside of the run took, in thousandths.
    pub(crate) taken: u64,
    /// The recorded mean number of running tasks, in thousandths.
    pub(crate) occupancy: u64,
    /// The time in the recording at which the run begins.
    pub(crate) from: Ktime,
    pub(crate) own: BTreeSet<ProcessIx>,
    /// The tools that start as many jobs as there are CPUs.
    pub(crate) follow: BTreeSet<String>,
    /// The largest number of the run's tasks that were on CPUs at once: the run may have been allowed fewer CPUs than the
    /// machine has.
    pub(crate) used: u64,
    pub(crate) one_cpu: bool,
    /// The time in ns for which a quota throttled the recorded run.
    pub(crate) throttled: u64,
    /// Whether a server of the run also serves other tasks.
    pub(crate) shared: bool,
}

/// The largest factor between the lower and the upper bound of a forecast beside other tasks, for a forecast
/// that counts as narrow. A guess: wider ones are printed with the note that they say little.
const WIDE: u64 = 3;

/// The sentence which says that the load beside a run allows no narrow forecast. `what` names the forecasts.
pub(crate) fn wide_sentence(what: &str) -> String {
    format!(
        "beside this load the recording does not allow {what}: what part of the CPUs the run then gets is not known; --alone leaves the load out"
    )
}

impl Predictor {
    /// Prepares forecasts from a whole recording.
    ///
    /// # Errors
    /// The recording has no scheduling events or no path, or nothing matches what the user requests.
    pub fn new(recording: &Recording, wanted: Wanted) -> Result<Predictor, NoForecast> {
        let analysis = &recording.analysis;
        if analysis.basis() != Basis::Events {
            return Err(totals(analysis, &wanted));
        }
        let path = critical_path::of(analysis).map_err(NoForecast::Path)?;
        let facts = Facts::new(recording, &path);
        Predictor::by(&facts.ok_or(NoForecast::Path(NoPath::NoTimeline))?, wanted)
    }

    /// Like [`Predictor::new`], but reuses facts that have already been computed.
    fn by(facts: &Facts<'_>, wanted: Wanted) -> Result<Predictor, NoForecast> {
        let (analysis, path) = (facts.analysis, facts.path);
        let tools = depends::tools(facts);
        if wanted.jobs.is_some() && tools.jobs.is_empty() {
            return Err(NoForecast::NoJobs);
        }
        let changes::ChangeSet {
            list,
            variants,
            tests,
        } = changes::changes(facts, &wanted)?;
        let plan = depends::plan(facts, &tools);
        let schedule = Schedule::planned(analysis, path, &facts.groups, (&list, plan));
        let schedule = schedule.map_err(NoForecast::Path)?;
        let recorded = path.length();
        let own = analysis.process_ids().filter(|ix| facts.own.has(*ix));
        let own: BTreeSet<ProcessIx> = own.collect();
        let same = Machine {
            cold: COLD.1,
            ..Machine::of(facts.cpus)
        };
        let replay = schedule.run(same, 0, Effect::Likely);
        let none = Load {
            replayed: replay.wall,
            ..Load::default()
        };
        let (load, other_load) = if wanted.alone {
            (none, None)
        } else {
            load::loads(facts, &schedule, same, none)
        };
        Ok(Predictor {
            taken: recorded.saturating_sub(replay.wall).saturating_mul(1000) / recorded.max(1),
            occupancy: replay.on_cpu.saturating_mul(1000) / recorded.max(1),
            load,
            alone: replay.wall,
            other_load,
            recorded_cpus: facts.cpus,
            from: path.from,
            follow: depends::follow(facts),
            used: used(facts, path),
            one_cpu: is_on_one_cpu(facts),
            throttled: withheld(analysis).throttled_ns.unwrap_or(0),
            shared: own.iter().any(|ix| analysis.process(*ix).role.shared),
            own,
            schedule,
            tools,
            wanted,
            recorded,
            variants,
            tests,
        })
    }

    /// Whether the simulation can leave out each test of a plan, because all have a process of their own.
    pub fn leaves_out(&self, plan: &shards::Plan) -> bool {
        self.tests == plan.tests.list.len()
    }

    /// Whether the jobs of the recording's build tools are known.
    pub fn has_jobs(&self) -> bool {
        !self.tools.jobs.is_empty()
    }

    /// The number of CPUs that the user requests, or else the recorded one.
    pub(crate) fn cpus(&self) -> u64 {
        self.wanted.cpus.unwrap_or(self.recorded_cpus)
    }

    fn machine(&self, cpus: u64, jobs: Option<u64>) -> Machine {
        self.machine_beside(self.load, cpus, jobs)
    }

    fn machine_beside(&self, load: Load, cpus: u64, jobs: Option<u64>) -> Machine {
        Machine {
            quota: self
                .wanted
                .quota
                .map(|thousandths| thousandths.saturating_mul(PERIOD / 1000)),
            others: load.others,
            grouped: load.grouped,
            planned: self.wanted.longest_first || self.starts_more(cpus),
            jobs,
            longest_first: self.wanted.longest_first,
            cold: COLD.1,
            ..Machine::of(cpus)
        }
    }

    /// Whether a tool whose jobs are known starts more of them on `cpus` CPUs than in the recording.
    pub(crate) fn starts_more(&self, cpus: u64) -> bool {
        let mut limits = self.tools.limits.values();
        limits.any(|limit| limit.follows && cpus > limit.jobs)
    }

    /// The forecast time on this number of CPUs with this number of jobs at once, and the simulated run.
    pub fn interval(&self, cpus: u64, jobs: Option<u64>) -> (Interval, Done) {
        let (interval, done) = self.interval_beside(self.load, cpus, jobs);
        let is_changed = self.is_changed(self.machine(cpus, jobs));
        let Some(load) = self.other_load.filter(|_| is_changed) else {
            return (interval, done);
        };
        let (other, _) = self.interval_beside(load, cpus, jobs);
        let both = interval.or(other);
        (both, done.fitted((both.likely, interval.likely.max(1))))
    }

    /// Like [`Predictor::interval`], beside one load.
    pub(crate) fn interval_beside(
        &self,
        load: Load,
        cpus: u64,
        jobs: Option<u64>,
    ) -> (Interval, Done) {
        let machine = self.machine_beside(load, cpus, jobs);
        let done = self.traced(machine);
        let (low, high) = self.bounds(machine, &done);
        let kept = self.kept_waits(machine);
        let high = kept.map_or(high, |kept| high.max(kept));
        let low = kept.map_or(low, |kept| low.min(kept));
        let least = self.without_others(machine).map_or(low, |ns| ns.min(low));
        let least = self.followed(least, cpus, jobs, &done);
        let error = self.error(load, cpus, &done);
        let fit = self.fit(load, machine, &done);
        // One CPU may take less than two: nothing moves.
        let least_fit = if cpus > 1 { fit } else { (1, 1) };
        let part = |ns, fit, thousandths| Done::times(Done::times(ns, fit), (thousandths, 1000));
        let high = part(high.max(done.wall), fit, 1000 + error.1);
        let low = part(
            least.min(done.wall),
            least_fit,
            1000u64.saturating_sub(error.0),
        );
        let all = self.unexplained(load, machine, &done);
        let interval = Interval {
            low: all.map_or(low, |all| low.min(all)),
            likely: Done::times(done.wall, fit),
            high: all.map_or(high, |all| high.max(all)),
        };
        (interval, done.fitted(fit))
    }

    /// The largest sum, in bytes, of the largest resident sets of the processes that live at the same time in
    /// a simulated run.
    pub(crate) fn memory(&self, analysis: &Analysis, done: &Done) -> Option<u64> {
        let mut lives: BTreeMap<ProcessIx, (u64, u64)> = BTreeMap::new();
        for life in &done.lives {
            let process = analysis.thread(life.thread).process;
            if self.own.contains(&process) {
                let (from, to) = lives.entry(process).or_insert((life.from, life.to));
                (*from, *to) = ((*from).min(life.from), (*to).max(life.to));
            }
        }
        let held = lives.into_iter().map(|(process, (from, to))| {
            let sets = size::resident_sets(analysis.process(process))?;
            let bytes = sets.iter().map(|set| set.bytes).max()?;
            Some(HeldMemory { from, to, bytes })
        });
        size::most_at_once(held.collect::<Option<Vec<HeldMemory>>>()?)
    }

    /// The simulated time in ns without other tasks, if the run may have it beside them: with a quota, because the run then
    /// has a cgroup, and if it is so short that its tasks are done within their first time slices.
    fn without_others(&self, machine: Machine) -> Option<u64> {
        if machine.others == 0 {
            return None;
        }
        let without = Machine {
            others: 0,
            ..machine
        };
        let least = self.slowest(without, Effect::Best).0.wall;
        let is_short = self.is_changed(machine) && least < SHORT;
        (machine.quota.is_some() || is_short).then_some(least)
    }

    /// The simulated time in ns if tasks with other work wait in run queues beside others for as long as they did: a short
    /// task that is woken waits until a time slice of another one ends, however little it has to do then.
    fn kept_waits(&self, machine: Machine) -> Option<u64> {
        let same = machine.cpus == self.recorded_cpus && machine.jobs.is_none();
        let is_kept = self.is_beside() && same && machine.quota.is_none() && self.has_other_work();
        is_kept.then(|| {
            let without = Machine {
                others: 0,
                ..machine
            };
            let waits = self.recorded.saturating_sub(self.alone);
            let least = self.slowest(without, Effect::Likely).0.wall;
            least.saturating_add(waits)
        })
    }

    /// Whether tasks outside of the run take so much of the CPUs that it matters how the kernel divides them.
    pub(crate) fn is_beside(&self) -> bool {
        self.load.others >= BESIDE
    }

    /// Whether the forecast is about a run that differs from the recorded one.
    fn is_changed(&self, machine: Machine) -> bool {
        let wanted = &self.wanted;
        let other_order = wanted.longest_first || wanted.shards.is_some() || machine.jobs.is_some();
        let other_cpus = machine.cpus != self.recorded_cpus;
        self.has_other_work() || other_order || other_cpus
    }

    /// Whether the forecast is about a run whose tasks have other work or other waits of their own.
    fn has_other_work(&self) -> bool {
        let wanted = &self.wanted;
        let other_work =
            !(wanted.faster.is_empty() && wanted.without.is_empty() && wanted.cached.is_empty());
        other_work || wanted.disk.is_some() || wanted.network.is_some()
    }

    /// The fraction by which a simulated time is multiplied to get the time of the run. It is the recorded
    /// run's ratio, because a run on other machines has the same additional waits, for example for a CPU
    /// while another one is idle. On one CPU none is idle, but the run takes no less time than on two.
    fn fit(&self, load: Load, machine: Machine, done: &Done) -> (u64, u64) {
        if !self.is_fitted(load, machine) {
            return (1, 1);
        }
        let (is, of) = (
            bounded(self.without_quota(load), load.replayed),
            load.replayed,
        );
        if machine.cpus > 1 {
            return (is, of);
        }
        let two = self.machine_beside(load, 2, machine.jobs);
        let two = self.slowest(two, Effect::Likely).0.wall;
        (Done::times(two, (is, of)).max(done.wall), done.wall)
    }

    /// Whether the excess of the recorded run over its simulation applies to a machine. With a quota it does
    /// not, because the waits for a quota are already simulated.
    fn is_fitted(&self, load: Load, machine: Machine) -> bool {
        let changed = self.wanted.alone || machine.quota.is_some();
        !changed && self.recorded_cpus > 1 && load.replayed > 0
    }

    /// The recorded time in ns without the time for which a quota throttled the run, because the simulation
    /// of the recorded run has no quota.
    fn without_quota(&self, load: Load) -> u64 {
        unthrottled(self.recorded, self.throttled, load.replayed)
    }

    /// The forecast time in ns if the whole difference between the recorded run and its simulation remains.
    fn unexplained(&self, load: Load, machine: Machine, done: &Done) -> Option<u64> {
        let on_one = self.recorded_cpus == 1 && machine.cpus == 1 && self.off().is_some();
        let all = self.is_fitted(load, machine) && machine.cpus > 1 || on_one;
        all.then(|| Done::times(done.wall, (self.without_quota(load), load.replayed)))
    }

    /// If the forecast of the recorded run itself is wrong by more than [`MOST_OFF`], the recorded time
    /// without a quota's waits, and that forecast, in ns. The effects missing from the simulation are unknown
    /// then, and they are missing from forecasts of changes as well.
    fn off(&self) -> Option<(u64, u64)> {
        let replayed = self.load.replayed;
        let recorded = self.without_quota(self.load);
        let nearest = bounded(recorded, replayed);
        // Forecasts of these are without what the simulation lacks.
        let is_without = self.wanted.alone || self.wanted.quota.is_some();
        let forecast = match self.recorded_cpus {
            1 => replayed,
            _ => nearest,
        };
        let is_off = nearest != recorded && replayed > 0 && !is_without;
        is_off.then_some((recorded, forecast))
    }

    /// A sentence which says that the load beside the run allows no narrow forecast, or not for all rows of the table.
    fn wide_words(&self, wall: &Interval, table: &[Row]) -> Option<String> {
        let wide = table.iter().filter(|row| self.is_wide(&row.wall)).count();
        let what = match (self.is_wide(wall), wide) {
            (true, 0) => "the forecast".to_owned(),
            (true, _) => format!("the forecast, nor {wide} rows of the table"),
            (false, 0) => return None,
            (false, _) => format!("{wide} rows of the table"),
        };
        Some(wide_sentence(&what))
    }

    /// Whether the load beside the run allows no narrow forecast.
    pub(crate) fn is_wide(&self, wall: &Interval) -> bool {
        self.is_beside() && wall.low.saturating_mul(WIDE) < wall.high
    }

    /// A sentence which says by how much the simulation is off, if it is too far off.
    fn off_words(&self) -> Option<String> {
        let (recorded, forecast) = self.off()?;
        let [recorded, forecast] = [recorded, forecast].map(units::time);
        Some(format!(
            "with nothing changed, the simulation takes {forecast} and not {recorded}: compare changes with {forecast}"
        ))
    }

    /// The lower and the upper bound of the time in ns. They allow for jobs that need others, for the cost of other tasks'
    /// use of the caches, and for chance in the order of jobs and in the shares of CPUs.
    fn bounds(&self, machine: Machine, done: &Done) -> (u64, u64) {
        let (mut low, mut high) = (u64::MAX, 0);
        let (least, _, most) = COLD;
        let costs = if self.schedule.has_large() {
            vec![least, most]
        } else {
            vec![least]
        };
        for cold in costs {
            let machine = Machine { cold, ..machine };
            low = low.min(self.slowest(machine, Effect::Best).0.wall);
            high = high.max(self.slowest(machine, Effect::Worst).0.wall);
        }
        let chance = done.crowded || machine.planned || machine.jobs.is_some();
        for shaken in (1..=SHAKEN).filter(|_| chance) {
            let machine = Machine { shaken, ..machine };
            let (shaken, _) = self.slowest(machine, Effect::Likely);
            // The work may be more or less altogether, which is no matter of chance.
            let wall = Done::times(shaken.wall, (done.on_cpu.max(1), shaken.on_cpu));
            (low, high) = (low.min(wall), high.max(wall));
        }
        (low, high)
    }

    /// The simulated run of the slowest of the machines, and the changes that apply to that machine.
    fn slowest(&self, machine: Machine, effect: Effect) -> (Done, Changes) {
        let of = |[best, likely, worst]: &[Changes; 3]| {
            let changes = match effect {
                Effect::Best => *best,
                Effect::Likely => *likely,
                Effect::Worst => *worst,
            };
            (self.schedule.run(machine, changes, effect), changes)
        };
        let all = self.variants.iter().map(of);
        let slowest = all.max_by_key(|(done, changes)| (done.wall, *changes));
        slowest.unwrap_or_default()
    }

    /// The likely simulated run of the slowest of the machines, with its critical path.
    fn traced(&self, machine: Machine) -> Done {
        let changes = match self.variants.as_slice() {
            [[_, likely, _]] => *likely,
            _ => self.slowest(machine, Effect::Likely).1,
        };
        self.schedule.trace(machine, changes, Effect::Likely)
    }

    /// The lower bound of the time in ns where tools start as many jobs as there are CPUs: more jobs are not
    /// simulated, and at best they divide all of the work.
    fn followed(&self, ns: u64, cpus: u64, jobs: Option<u64>, done: &Done) -> u64 {
        if jobs.is_some() || !self.follows(cpus) {
            return ns;
        }
        let divided = Done::times(ns, (self.used, cpus));
        divided.max(done.on_cpu / cpus.max(1)).min(ns)
    }

    /// Whether tools would start more jobs on `cpus` CPUs than in the recording.
    pub(crate) fn follows(&self, cpus: u64) -> bool {
        !self.follow.is_empty() && cpus > self.used
    }

    /// The largest parts by which the time may be shorter and longer than the forecast, in thousandths.
    fn error(&self, load: Load, cpus: u64, done: &Done) -> (u64, u64) {
        let off = load.replayed.abs_diff(self.recorded).saturating_mul(1000);
        let off = (off / self.recorded.max(1)).min(MOST_OFF);
        let own = if self.wanted.alone {
            // What others took is not in it.
            BASE
        } else {
            BASE + off / 2
        };
        // What others had is taken to be the same.
        let others = (load.others / 20).min(150);
        // Beside others work took more CPU time than alone, by an unknown part.
        let (beside_less, beside_more) = (self.taken / 4, self.taken / 3);
        // Caches and cores are shared by the tasks that run at once.
        let occupancy = done.on_cpu.saturating_mul(1000) / done.wall.max(1);
        let change = occupancy.abs_diff(self.occupancy).saturating_mul(1000);
        let shared = (change / occupancy.max(self.occupancy).max(1) * SHARED / 1000).min(SHARED);
        let (less, more) = if occupancy > self.occupancy {
            (0, shared)
        } else {
            (shared, 0)
        };
        // A cgroup with a quota has its own part of the CPUs beside others.
        let held = match self.wanted.quota {
            Some(_) => (load.others / 4).min(500),
            None => 0,
        };
        // Recorded on one CPU no process moved to another one's caches.
        let moved = if self.one_cpu && cpus > 1 {
            let starts = (self.own.len() as u64).saturating_mul(MOVED);
            starts.saturating_mul(1000) / self.recorded.max(1)
        } else {
            0
        };
        let shared = if self.shared { SERVER } else { 0 };
        let least = own + others + less + beside_less + shared;
        let most = own + others + more + held + beside_more + shared + moved.min(MOST_MOVED);
        (least.min(900), most)
    }

    pub fn forecast(&self, recording: &Recording) -> Forecast {
        let analysis = &recording.analysis;
        let cpus = self.cpus();
        let (wall, done) = self.interval(cpus, self.wanted.jobs);
        let mut said = warnings(recording);
        said.extend(self.off_words());
        let wanted = &self.wanted;
        let mut table = if wanted.table || wanted.price.is_some() {
            render::table(self, analysis)
        } else {
            Vec::new()
        };
        said.extend(self.wide_words(&wall, &table));
        let cheapest = render::cheapest(&table);
        if !wanted.table {
            table.clear();
        }
        Forecast {
            recorded: self.recorded,
            unchanged: self.off().map(|(_, forecast)| forecast),
            wall,
            cpus,
            recorded_cpus: self.recorded_cpus,
            jobs: wanted.jobs,
            shards: wanted.shards,
            cost: self.cost(wall.likely, cpus),
            cheapest,
            table,
            on_cpu: done.on_cpu,
            memory: self.memory(analysis, &done),
            path: parts(analysis, &done),
            knee: self.knee(analysis),
            assumed: self.assumed(),
            warnings: said,
        }
    }

    /// The price of a run that takes `ns` on `cpus` CPUs, for all machines together.
    pub(crate) fn cost(&self, ns: u64, cpus: u64) -> Option<f64> {
        let one = ns as f64 / 60e9 * cpus as f64 * self.wanted.price?;
        Some(self.wanted.shards.unwrap_or(1) as f64 * one)
    }

    /// The number of CPUs beyond which further CPUs save less than a fiftieth of the time.
    fn knee(&self, analysis: &Analysis) -> Option<Knee> {
        let done = |cpus| {
            let machine = self.machine(cpus, self.wanted.jobs);
            self.slowest(machine, Effect::Likely).0.wall
        };
        let most = done(MOST_CPUS);
        let enough = |cpus: u64| done(cpus) <= most.saturating_add(most / 50);
        let (mut low, mut high) = (0, MOST_CPUS);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if enough(middle) {
                high = middle
            } else {
                low = middle
            }
        }
        let machine = self.machine(high, self.wanted.jobs);
        let traced = self.traced(machine);
        let fit = self.fit(self.load, machine, &traced);
        let traced = traced.fitted(fit);
        (high < MOST_CPUS).then(|| Knee {
            cpus: high,
            because: parts(analysis, &traced),
        })
    }
}

/// A run that takes less time than this in ns without other tasks may have the CPUs at once beside them. A guess: some
/// dozens of time slices; a recorded build whose cached rest took 60 ms had them.
const SHORT: u64 = 100_000_000;
/// The least error of a forecast that is assumed, in thousandths. A guess; `predict.py` compares the
/// intervals with real runs.
const BASE: u64 = 50;
/// The most by which a run may differ from its simulation, in thousandths. A guess: a run that differs by more is
/// forecast as if it differed by so much.
const MOST_OFF: u64 = 300;
/// The extra CPU time of large processes, in thousandths of their work, when other tasks use the caches while
/// they wait for a CPU: least, likely, most. In 118 real runs, compilations that shared a CPU took 5 to 25 %
/// more CPU time, and loops without memory took no more.
pub(crate) const COLD: (u64, u64, u64) = (0, 90, 250);
/// The number of runs with randomly changed lengths of work, which show the effect of chance. A guess: more runs cost
/// their time.
const SHAKEN: u64 = 6;
/// The largest effect of sharing caches and cores, in thousandths. A guess.
const SHARED: u64 = 100;
/// The largest additional CPU time in ns of a process that starts on another CPU than its parent's. The next constant
/// is the largest sum of it in a run, in thousandths. Measured: hello-configure has 4,280 processes and took 13 %
/// longer on two CPUs than on one: 0.25 ms for each process; zlib-configure with 121 processes took 18 % longer.
const MOVED: u64 = 250_000;
const MOST_MOVED: u64 = 250;
/// The extra time of a server that answers in another order, in thousandths. With this value the intervals of
/// sccache's builds (pkgconf-ninja) contain their real times.
const SERVER: u64 = 200;

/// The recorded time minus the time for which a quota throttled it, but at least the simulated time, unless the recorded
/// time itself is less.
fn unthrottled(recorded: u64, throttled: u64, replayed: u64) -> u64 {
    let less = recorded.saturating_sub(throttled);
    less.max(replayed.min(recorded))
}

/// The recorded time in ns, limited to within [`MOST_OFF`] of the simulated time.
fn bounded(recorded: u64, replayed: u64) -> u64 {
    let longer = (1000 + MOST_OFF, 1000);
    let least = Done::times(replayed, (longer.1, longer.0));
    recorded.clamp(least, Done::times(replayed, longer).max(least))
}

/// The largest number of the run's tasks that were on CPUs at once.
fn used(facts: &Facts<'_>, path: &CriticalPath) -> u64 {
    let load = facts.load(path.from, path.to);
    let running = load
        .filter(|(ns, ..)| *ns > 0)
        .map(|(_, running, _)| running);
    running.max().unwrap_or(1) as u64
}

/// Whether all of the run's CPU time was on one CPU, apart from the part that [`STRAY`] allows.
fn is_on_one_cpu(facts: &Facts<'_>) -> bool {
    let by_cpu = facts.on_cpus(|_| true);
    let all = by_cpu.values().copied().fold(0, u64::saturating_add);
    let most = by_cpu.values().max().copied().unwrap_or(0);
    all > 0 && all.saturating_sub(most) <= all / STRAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_simulation_lacks_is_bounded() {
        assert_eq!(bounded(110, 100), 110);
        assert_eq!(bounded(500, 100), 130);
        assert_eq!(bounded(10, 130), 100);
        assert_eq!(bounded(1, 0), 0);
    }

    #[test]
    fn throttled_time_is_a_quotas() {
        assert_eq!(unthrottled(500, 0, 100), 500);
        assert_eq!(unthrottled(500, 300, 100), 200);
        // The time of several CPUs may be more than there is.
        assert_eq!(unthrottled(500, 900, 100), 100);
        assert_eq!(unthrottled(90, 900, 100), 90);
    }
}
