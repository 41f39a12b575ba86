//! Runs the simulation behind a forecast, and estimates how wrong its time may be.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::{self, CriticalPath, NoPath};
use tr_analyze::jobs::Tools;
use tr_analyze::machine::withheld;
use tr_analyze::model::{Analysis, Basis, ProcessIx};
use tr_analyze::schedule::{Changes, Done, Effect, Machine, Schedule, PERIOD};
use tr_format::event::Ktime;

use tr_advice::depends;
use tr_advice::facts::{BuildFacts, STRAY_PART};
use tr_insight::resources::size::{self, HeldMemory};
use tr_insight::Recording;

use tr_text::units;

use crate::forecast::{
    parts, totals, warnings, Forecast, Interval, Knee, NoForecast, Row, Wanted, MOST_CPUS,
};
use crate::load::{self, Load, LEAST_BESIDE};
use crate::{changes, render, shards};

/// The simulation of a recorded run with the changes that the user requests. It can be run for any
/// machine, to forecast the run's time.
pub struct Predictor {
    pub(crate) schedule: Schedule,
    pub(crate) tools: Tools,
    pub(crate) wanted: Wanted,
    pub(crate) recorded: u64,
    pub(crate) recorded_cpus: u64,
    /// For each machine among which tests are divided, three sets of changes: for the best case, the likely case and
    /// the worst case. Without such a division there is one machine.
    pub(crate) variants: Vec<[Changes; 3]>,
    /// The number of recorded tests that the forecast divides among machines.
    pub(crate) tests: usize,
    pub(crate) load: Load,
    /// The length in ns that the simulation of the recorded run has without tasks outside of the run.
    pub(crate) alone: u64,
    /// Another load of tasks outside of the run that explains the recorded time equally well. It is
    /// set if the recording does not show how the kernel divides the CPUs.
    pub(crate) other_load: Option<Load>,
    /// The time lost to tasks outside of the run (recorded time minus `alone`), in thousandths of the recorded time.
    pub(crate) taken: u64,
    /// The mean number of the run's tasks that were on CPUs at once in the recording, in thousandths.
    pub(crate) occupancy: u64,
    /// The time in the recording at which the run, and so its critical path, begins.
    pub(crate) from: Ktime,
    pub(crate) own: BTreeSet<ProcessIx>,
    /// The names of build tools that start as many jobs as there are CPUs, and whose jobs the recording does not show.
    pub(crate) follow: BTreeSet<String>,
    /// The largest number of the run's tasks that were on CPUs at once in the recording. It can be
    /// lower than the number of CPUs, because the run may have been allowed fewer.
    pub(crate) used: u64,
    pub(crate) one_cpu: bool,
    /// The time in ns for which a CPU quota throttled the recorded run.
    pub(crate) throttled: u64,
    /// Whether a server process, such as that of a compiler cache, works for the run and also for other tasks.
    pub(crate) shared: bool,
}

/// A forecast of a run beside other tasks is too wide to be useful if its upper bound is more than this many times its
/// lower bound. A guess: such forecasts are printed with the note that they say little.
const WIDE_FACTOR: u64 = 3;

/// The sentence which says that the recording does not allow a narrow forecast, because other tasks used the CPUs
/// beside the recorded run. `what` names the forecasts that the sentence is about.
pub(crate) fn wide_sentence(what: &str) -> String {
    format!(
        "beside this load the recording does not allow {what}: what part of the CPUs the run then gets is not known; --alone leaves the load out"
    )
}

impl Predictor {
    /// Prepares forecasts of a recorded run from its whole recording.
    ///
    /// # Errors
    /// The recording has no scheduling events or no critical path, or nothing in it matches what the user requests.
    pub fn new(recording: &Recording, wanted: Wanted) -> Result<Predictor, NoForecast> {
        let analysis = &recording.analysis;
        if analysis.basis() != Basis::Events {
            return Err(totals(analysis, &wanted));
        }
        let path = critical_path::of(analysis).map_err(NoForecast::Path)?;
        let facts = BuildFacts::new(recording, &path, None);
        Predictor::by(&facts.ok_or(NoForecast::Path(NoPath::NoTimeline))?, wanted)
    }

    /// Like [`Predictor::new`], but reuses facts about the recording that have already been computed.
    fn by(facts: &BuildFacts<'_>, wanted: Wanted) -> Result<Predictor, NoForecast> {
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
            cold: COLD_CACHES.1,
            ..Machine::of(facts.cpus)
        };
        let replay = schedule.simulate(same, 0, Effect::Likely);
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

    /// Whether the simulation divides all tests of a plan among machines: as many tests as the plan has are processes
    /// of their own.
    pub fn leaves_out(&self, plan: &shards::Plan) -> bool {
        self.tests == plan.tests.list.len()
    }

    /// Whether the recording has build tools whose jobs are known, so that a forecast can change the number of jobs.
    pub fn has_jobs(&self) -> bool {
        !self.tools.jobs.is_empty()
    }

    /// The number of CPUs for which the user requests the forecast, or else the recorded one.
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
            cold: COLD_CACHES.1,
            ..Machine::of(cpus)
        }
    }

    /// Whether a build tool whose number of jobs is known would start more jobs on `cpus` CPUs than it did in the
    /// recording.
    pub(crate) fn starts_more(&self, cpus: u64) -> bool {
        let mut limits = self.tools.limits.values();
        limits.any(|limit| limit.follows && cpus > limit.jobs)
    }

    /// The forecast time of the run on this number of CPUs with this number of jobs at once (`None`: as in the
    /// recording), and the simulated run from which it results.
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

    /// Like [`Predictor::interval`], but for only one of the possible loads of other tasks.
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
        // On one CPU a run can take less time than on two, because no process moves to another CPU.
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

    /// The largest memory in bytes that the run's processes can occupy at the same time in a
    /// simulated run: the sum of the largest resident sets of the processes that live then. `None`
    /// if a process's resident set was not recorded.
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

    /// The simulated time in ns without tasks outside of the run, as a lower bound for cases in which such tasks may
    /// take no time from the run. There are two such cases: with a quota, the run's cgroup has a CPU share of its own;
    /// in a short run, the run's tasks may end within their first time slices. `None` in other cases.
    fn without_others(&self, machine: Machine) -> Option<u64> {
        if machine.others == 0 {
            return None;
        }
        let without = Machine {
            others: 0,
            ..machine
        };
        let least = self.slowest(without, Effect::Best).0.wall;
        let is_short = self.is_changed(machine) && least < SHORT_RUN;
        (machine.quota.is_some() || is_short).then_some(least)
    }

    /// The simulated time in ns of a changed run whose tasks wait as long for tasks outside of the run as in the
    /// recording. Such equal waits are likely, because a woken task has to wait for the end of another task's time
    /// slice, however little work the woken task has. `None` if the tasks outside use little of the CPUs, or if not
    /// only the work changes.
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

    /// Whether tasks outside of the run use so much of the CPUs that it matters how the kernel divides them.
    pub(crate) fn is_beside(&self) -> bool {
        self.load.others >= LEAST_BESIDE
    }

    /// Whether the user requests a forecast for a run that differs from the recorded one in its work, its order or its
    /// CPUs. A quota alone does not count.
    fn is_changed(&self, machine: Machine) -> bool {
        let wanted = &self.wanted;
        let other_order = wanted.longest_first || wanted.shards.is_some() || machine.jobs.is_some();
        let other_cpus = machine.cpus != self.recorded_cpus;
        self.has_other_work() || other_order || other_cpus
    }

    /// Whether the user requests a forecast for a run whose work, or whose waits for disks or the network, differ from
    /// the recorded ones.
    fn has_other_work(&self) -> bool {
        let wanted = &self.wanted;
        let other_work =
            !(wanted.faster.is_empty() && wanted.without.is_empty() && wanted.cached.is_empty());
        other_work || wanted.disk.is_some() || wanted.network.is_some()
    }

    /// The fraction by which a simulated time is multiplied to get the forecast time: the recorded time divided by the
    /// simulated time of the same run, within the limits of [`MOST_OFF`]. The simulation lacks some waits that also
    /// occur on other machines, for example waits for a CPU while another CPU is idle. On one CPU there are no such
    /// waits, but there the run is assumed to take at least as long as on two CPUs.
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

    /// Whether a simulated time on this machine is multiplied by the ratio of the recorded time to the time of its
    /// simulation. Times with a quota are not, because the waits for a quota are already simulated, and neither are
    /// times without other tasks or from a recording on one CPU.
    fn is_fitted(&self, load: Load, machine: Machine) -> bool {
        let changed = self.wanted.alone || machine.quota.is_some();
        !changed && self.recorded_cpus > 1 && load.replayed > 0
    }

    /// The recorded time in ns without the time for which a CPU quota throttled the run, because the recorded run is
    /// simulated without a quota.
    fn without_quota(&self, load: Load) -> u64 {
        unthrottled(self.recorded, self.throttled, load.replayed)
    }

    /// The forecast time in ns if the whole difference between the recorded run and its simulation also occurs in the
    /// forecast run; `None` if the forecast takes no such difference into account.
    fn unexplained(&self, load: Load, machine: Machine, done: &Done) -> Option<u64> {
        let on_one = self.recorded_cpus == 1 && machine.cpus == 1 && self.off().is_some();
        let all = self.is_fitted(load, machine) && machine.cpus > 1 || on_one;
        all.then(|| Done::times(done.wall, (self.without_quota(load), load.replayed)))
    }

    /// Two times in ns, if the recorded and the simulated time of the run differ by more than [`MOST_OFF`]: the
    /// recorded time without waits for a quota, and the forecast for the same run. Such a difference shows that the
    /// simulation lacks some unknown effect. Forecasts of changes then lack this effect as well.
    fn off(&self) -> Option<(u64, u64)> {
        let replayed = self.load.replayed;
        let recorded = self.without_quota(self.load);
        let nearest = bounded(recorded, replayed);
        // A forecast without other tasks, or with a quota, is not multiplied by the ratio of the recorded time to the
        // simulated time.
        let is_without = self.wanted.alone || self.wanted.quota.is_some();
        let forecast = match self.recorded_cpus {
            1 => replayed,
            _ => nearest,
        };
        let is_off = nearest != recorded && replayed > 0 && !is_without;
        is_off.then_some((recorded, forecast))
    }

    /// A sentence which says that the interval of the forecast, or of some rows of its table, is too wide to be useful
    /// because of other tasks beside the run; `None` if all intervals are narrow.
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

    /// Whether a forecast's interval is too wide to be useful because of other tasks beside the run.
    pub(crate) fn is_wide(&self, wall: &Interval) -> bool {
        self.is_beside() && wall.low.saturating_mul(WIDE_FACTOR) < wall.high
    }

    /// A sentence which says by how much the simulation of the recorded run differs from the recording; `None` if the
    /// difference is small.
    fn off_words(&self) -> Option<String> {
        let (recorded, forecast) = self.off()?;
        let [recorded, forecast] = [recorded, forecast].map(units::time);
        Some(format!(
            "with nothing changed, the simulation takes {forecast} and not {recorded}: compare changes with {forecast}"
        ))
    }

    /// The lower and the upper bound of the simulated time in ns. The bounds allow for three unknowns: how jobs depend
    /// on others, how much CPU time shared caches cost, and chance in the order of jobs and in the shares of the CPUs.
    fn bounds(&self, machine: Machine, done: &Done) -> (u64, u64) {
        let (mut low, mut high) = (u64::MAX, 0);
        let (least, _, most) = COLD_CACHES;
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
        for shaken in (1..=SHAKEN_RUNS).filter(|_| chance) {
            let machine = Machine { shaken, ..machine };
            let (shaken, _) = self.slowest(machine, Effect::Likely);
            // In this simulated run, the lengths of all work are changed at random, which also changes their sum. In a
            // real run, chance does not change the sum, so the simulated time is scaled to the original sum.
            let wall = Done::times(shaken.wall, (done.on_cpu.max(1), shaken.on_cpu));
            (low, high) = (low.min(wall), high.max(wall));
        }
        (low, high)
    }

    /// The simulated run of the slowest of the machines among which the tests are divided, and the changes that apply
    /// to this machine.
    fn slowest(&self, machine: Machine, effect: Effect) -> (Done, Changes) {
        let of = |[best, likely, worst]: &[Changes; 3]| {
            let changes = match effect {
                Effect::Best => *best,
                Effect::Likely => *likely,
                Effect::Worst => *worst,
            };
            (self.schedule.simulate(machine, changes, effect), changes)
        };
        let all = self.variants.iter().map(of);
        let slowest = all.max_by_key(|(done, changes)| (done.wall, *changes));
        slowest.unwrap_or_default()
    }

    /// The simulated run, for the likely case (not the best or the worst), of the slowest of the machines among which
    /// the tests are divided, with its critical path.
    fn traced(&self, machine: Machine) -> Done {
        let changes = match self.variants.as_slice() {
            [[_, likely, _]] => *likely,
            _ => self.slowest(machine, Effect::Likely).1,
        };
        self.schedule.trace(machine, changes, Effect::Likely)
    }

    /// A lower bound of the run's time in ns. The additional jobs of build tools that start as many jobs as there are
    /// CPUs are not simulated. The lower bound assumes that these jobs divide all of the work evenly; without such
    /// tools, it is `ns`.
    fn followed(&self, ns: u64, cpus: u64, jobs: Option<u64>, done: &Done) -> u64 {
        if jobs.is_some() || !self.follows(cpus) {
            return ns;
        }
        let divided = Done::times(ns, (self.used, cpus));
        divided.max(done.on_cpu / cpus.max(1)).min(ns)
    }

    /// Whether build tools would start more jobs on `cpus` CPUs than in the recording, because they start as many as
    /// there are CPUs.
    pub(crate) fn follows(&self, cpus: u64) -> bool {
        !self.follow.is_empty() && cpus > self.used
    }

    /// The error of a forecast, in thousandths of the forecast time: by how much the real time may be shorter, and by
    /// how much it may be longer.
    fn error(&self, load: Load, cpus: u64, done: &Done) -> (u64, u64) {
        let off = load.replayed.abs_diff(self.recorded).saturating_mul(1000);
        let off = (off / self.recorded.max(1)).min(MOST_OFF);
        let own = if self.wanted.alone {
            // This forecast, and so its simulated time, is for a run without other tasks. The recorded time may be
            // beside other tasks, so `off` does not show an error of the simulation and is not added.
            BASE_ERROR
        } else {
            BASE_ERROR + off / 2
        };
        // The forecast assumes that tasks outside of the run use the CPUs as much as in the recording. This may be
        // wrong, so the error grows with their load.
        let others = (load.others / 20).min(150);
        // Beside other tasks, the run's work took more CPU time than it would take alone. It is not known exactly how
        // much more.
        let (beside_less, beside_more) = (self.taken / 4, self.taken / 3);
        // The tasks that run at once share caches and cores. If their number changes, so does the CPU time.
        let occupancy = done.on_cpu.saturating_mul(1000) / done.wall.max(1);
        let change = occupancy.abs_diff(self.occupancy).saturating_mul(1000);
        let shared = (change / occupancy.max(self.occupancy).max(1) * SHARED_EFFECT / 1000)
            .min(SHARED_EFFECT);
        let (less, more) = if occupancy > self.occupancy {
            (0, shared)
        } else {
            (shared, 0)
        };
        // A cgroup with a quota has its own share of the CPUs. The recording does not show how large this share is.
        let held = match self.wanted.quota {
            Some(_) => (load.others / 4).min(500),
            None => 0,
        };
        // In a recording on one CPU, no process had to move to the caches of another CPU.
        let moved = if self.one_cpu && cpus > 1 {
            let starts = (self.own.len() as u64).saturating_mul(MOVED_TIME);
            starts.saturating_mul(1000) / self.recorded.max(1)
        } else {
            0
        };
        let shared = if self.shared { SERVER_ERROR } else { 0 };
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

    /// The price of a run that takes `ns` on `cpus` CPUs, summed over all machines among which the tests are divided;
    /// `None` if the user gives no price.
    pub(crate) fn cost(&self, ns: u64, cpus: u64) -> Option<f64> {
        let one = ns as f64 / 60e9 * cpus as f64 * self.wanted.price?;
        Some(self.wanted.shards.unwrap_or(1) as f64 * one)
    }

    /// Finds the smallest number of CPUs on which the run takes at most a fiftieth longer than on [`MOST_CPUS`] CPUs;
    /// `None` if no smaller number is enough.
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

/// The limit in ns for a short run: if a run takes less time without other tasks, it may get the CPUs at once although
/// other tasks use them. A guess: the limit is some dozens of time slices. One recorded build took only 60 ms, because
/// a cache answered most of its compilations, and this build got the CPUs at once.
const SHORT_RUN: u64 = 100_000_000;
/// The smallest error that every forecast is assumed to have, in thousandths of its time. A guess; `predict.py`
/// compares the intervals with real runs.
const BASE_ERROR: u64 = 50;
/// The largest difference between a recorded run and its simulation that likely times take into account, in
/// thousandths. A guess: a run that differs by more is forecast as if it differed by this much.
const MOST_OFF: u64 = 300;
/// The extra CPU time of large processes, in thousandths of their work, if other tasks use the CPU's caches while they
/// wait: least, likely and most. In 118 real runs, compilations that shared a CPU took 5 to 25 % more CPU time, and
/// loops that use no memory took no more.
pub(crate) const COLD_CACHES: (u64, u64, u64) = (0, 90, 250);
/// The number of simulated runs with randomly changed lengths of work, which show how much of a forecast depends on
/// chance. A guess: each further run makes the forecast slower.
const SHAKEN_RUNS: u64 = 6;
/// The largest effect on a run's time, in thousandths, of tasks that share caches and cores. A guess.
const SHARED_EFFECT: u64 = 100;
/// The largest additional CPU time in ns of a process that starts on another CPU than its parent's. `MOST_MOVED`
/// limits the sum in a run, in thousandths. Measured: hello-configure has 4,280 processes and took 13 % longer on two
/// CPUs than on one: 0.25 ms for each process; zlib-configure with 121 processes took 18 % longer.
const MOVED_TIME: u64 = 250_000;
const MOST_MOVED: u64 = 250;
/// The error of a forecast, in thousandths of its time, that is assumed if a server process (such as sccache's) works
/// for the run and for other tasks, because the server may answer requests in another order. With this value, the
/// intervals of sccache's builds (pkgconf-ninja) contain their real times.
const SERVER_ERROR: u64 = 200;

/// The recorded time in ns without the time for which a CPU quota throttled the run. The result is at least the
/// simulated time `replayed`, or the recorded time if that is less.
fn unthrottled(recorded: u64, throttled: u64, replayed: u64) -> u64 {
    let less = recorded.saturating_sub(throttled);
    less.max(replayed.min(recorded))
}

/// The recorded time in ns, limited to the simulated time multiplied or divided by 1.3 ([`MOST_OFF`]).
fn bounded(recorded: u64, replayed: u64) -> u64 {
    let longer = (1000 + MOST_OFF, 1000);
    let least = Done::times(replayed, (longer.1, longer.0));
    recorded.clamp(least, Done::times(replayed, longer).max(least))
}

/// The largest number of the recorded run's tasks that were on CPUs at once.
fn used(facts: &BuildFacts<'_>, path: &CriticalPath) -> u64 {
    let load = facts.load(path.from, path.to);
    let running = load
        .filter(|(ns, ..)| *ns > 0)
        .map(|(_, running, _)| running);
    running.max().unwrap_or(1) as u64
}

/// Whether all CPU time of the recorded run was on one CPU, apart from the small part that [`STRAY_PART`] allows.
fn is_on_one_cpu(facts: &BuildFacts<'_>) -> bool {
    let by_cpu = facts.on_cpus(|_| true);
    let all = by_cpu.values().copied().fold(0, u64::saturating_add);
    let most = by_cpu.values().max().copied().unwrap_or(0);
    all > 0 && all.saturating_sub(most) <= all / STRAY_PART
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
        // Throttled times are sums over several CPUs and can be longer than the recorded time.
        assert_eq!(unthrottled(500, 900, 100), 100);
        assert_eq!(unthrottled(90, 900, 100), 90);
    }
}
