//! Finds the causes of a difference between two builds: the parts of the wall time that differ, each with its share of
//! the difference.
//!
//! If other tasks use the CPUs as well, a build that does more work also loses more time to them, in proportion to its
//! work. So only the lost time beyond this proportion counts as a cause of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tr_analyze::share;

use super::demands;
use super::parts::WallPart;
use super::run::{Figure, Run};
use super::sides::Sides;
use super::spread::{median, Difference, SpreadVerdict, Statistic};
use tr_insight::resources::demands::Demand;
use tr_insight::resources::loads::Load;
use tr_text::named;
use tr_text::units;

named! {
    /// The cause to which a part of the difference between two builds is attributed.
    pub enum DifferenceCause {
        /// The build's own tasks need more CPU time than before, or less.
        Work = "work", "CPU time of its own";
        /// The CPU time of the build's own tasks does not explain the difference, but a larger or a smaller part of
        /// their work runs at the same time.
        Order = "order", "work that runs one after the other";
        Others = "others", "other tasks";
        Quota = "quota", "the CPU quota";
        Hypervisor = "hypervisor", WallPart::Hypervisor.title();
        Disk = "disk", WallPart::Disk.title();
        Memory = "memory", WallPart::Memory.title();
        Network = "network", WallPart::Network.title();
        Sleep = "sleep", WallPart::Sleep.title();
        /// The build waits for tasks that are not recorded, such as servers.
        Outside = "outside", WallPart::Outside.title();
        Other = "other", WallPart::Other.title();
    }
}

/// The party to which a difference between two builds is attributed: the build, the machine, both, or unclear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    Build,
    /// The difference is due to the runner, for example to other tasks on its CPUs, or to its disk or network.
    Machine,
    Both,
    /// The difference cannot be attributed to a party. For example, the CPU time differs for a reason that may not be
    /// the build's own work ([`Doubt`]), or the build waits longer for tasks that may be its own servers.
    Unclear,
}

/// A circumstance, other than the build's own work, that can make the CPU time of two builds differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Other tasks on the machine share cores and caches with the build, which makes its CPU time longer.
    Beside,
    /// The two sides of the comparison ran on different CPU models.
    Model,
    /// The two sides of the comparison ran on different numbers of CPUs: the first value is the number for the base,
    /// the second the number for the new runs.
    Cpus(u64, u64),
}

impl Doubt {
    /// The circumstance as a clause for the end of a sentence about a difference of CPU time.
    pub fn words(self) -> String {
        match self {
            Doubt::Beside => ", as tasks beside it can make it".into(),
            Doubt::Model => ", as another CPU model can make it".into(),
            Doubt::Cpus(base, new) => format!(", on {} instead of {base}", units::cpus(new)),
        }
    }
}

/// A cause of the difference between two builds, with the part of the difference that is attributed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub cause: DifferenceCause,
    /// The part of the wall time's difference that has this cause, in ns; positive if this part is longer in the new
    /// build.
    pub ns: i128,
    /// For waits: whether they are about as many as before and move about as many bytes, so that only their lengths
    /// differ. For waits for memory: whether the processes use about as much memory as before. False for other causes.
    pub as_many: bool,
    /// The party to which this part of the difference is attributed: `Build`, `Machine` or `Unclear`.
    pub whose: Whose,
}

/// The difference of the wall times of two builds, divided into parts, and the causes that are found for it.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    /// For each part of the wall time, its difference between the base and the new runs; empty if too few runs know
    /// their parts.
    pub parts: Vec<(WallPart, Difference)>,
    /// The difference of the simulated time that each build would take with its CPUs for itself; `None` if too few
    /// runs know it.
    pub alone: Option<Difference>,
    /// The difference of the CPU time of all tasks of the builds, without time that a hypervisor took; `None` if too
    /// few runs know it.
    pub work: Option<Difference>,
    /// The causes of the difference of the wall time, the cause with the largest part first.
    pub shares: Vec<Share>,
    /// Causes in the build's own time that changed in the other direction than the wall time, the largest first. For
    /// example, the build itself became slower, but the wall time fell because other tasks used the CPUs less.
    pub against: Vec<Share>,
    /// The names of tasks outside of the build that had a CPU while the build waited for it. With each name: how this
    /// time differs between the base and the new runs, in ns.
    pub names: Vec<(String, i128)>,
    /// A circumstance other than the build's work that can explain the difference of its CPU time, if there is one.
    pub doubt: Option<Doubt>,
    /// The numbers of CPUs of the base and of the new runs, if the two numbers differ: another number of CPUs changes
    /// how much of the work runs at the same time, even if the work is the same.
    pub cpus: Option<Doubt>,
}

/// Three limits, each as the divisor of a time. A part of the difference below both `OF_DIFFERENCE` and `OF_OWN` is no
/// cause, because no reader would act on it: a fifth of the wall time's difference, and a twentieth of the time that
/// the build takes on CPUs of its own (for CPU time without a known spread, a fifth). `OF_WALL`: lost CPU time below a
/// twentieth of the wall time raises no doubt. The divisors are guesses; `diff.py` plants differences and judges the
/// rule that uses them.
const OF_DIFFERENCE: u128 = 5;
const OF_OWN: u128 = 20;
const OF_WALL: u128 = 20;
/// The most CPU time of equal work when other tasks share cores and caches with it, as a multiple of its CPU time
/// alone: 7/5. Measured by `diff.py`: with this limit, no growth by two spinning tasks is attributed to the build.
const SHARED_RATIO: Ratio = Ratio {
    factor: 7,
    divisor: 5,
};
/// The largest ratio by which CPU models of one fleet change the CPU time: two.
const MODEL_RATIO: Ratio = Ratio {
    factor: 2,
    divisor: 1,
};
/// The least difference between the sides in the CPU time of tasks outside of the build, in thousandths of the time of
/// all CPUs, that can change the build's CPU time: a tenth. A guess; `diff.py` judges it on planted differences.
const LEAST_OUTSIDE: i128 = 100;

/// A fraction of two integers, as a limit for the ratio of the larger to the smaller side of a comparison.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    factor: u128,
    divisor: u128,
}

/// Whether the larger of two compared values is at most `most` times the smaller one.
fn within(judged: &Difference, most: Ratio) -> bool {
    let (few, many) = (judged.base.min(judged.new), judged.most());
    u128::from(many) * most.divisor <= u128::from(few) * most.factor
}

/// The CPU time of a run's tasks in ns, without time that a hypervisor took; `None` if it is not known or if too much
/// of the tasks' time is unknown.
pub fn work(run: &Run) -> Option<u64> {
    let on_cpu = run.figures.sure_on_cpu()?;
    Some(run.machine.work.unwrap_or(on_cpu))
}

/// Removes the division of the wall time from runs with much unknown time: more than a twentieth of the wall time or of
/// the CPU time. Unknown time may belong to any part of the wall time. If too few other runs would remain to know the
/// spread, nothing is removed. Returns a sentence for each run whose division was removed.
pub fn set_aside(base: &mut [Run], new: &mut [Run]) -> Vec<String> {
    let unknown = |run: &Run| {
        let times = &run.parts.as_ref()?.times;
        let unknown = times.get(WallPart::Unknown);
        let much = unknown.saturating_mul(20) > times.sum(|_| true);
        let unknown = unknown.max(run.figures.get(Figure::Unknown).unwrap_or(0));
        // With so much unknown time, another path may be the true critical path, and the parts of the wall time may be
        // wrong, too.
        (much || work(run).is_none()).then_some(unknown)
    };
    let sure = |runs: &[Run]| runs.iter().filter(|run| unknown(run).is_none()).count();
    if Statistic::of(sure(base), sure(new)) == Statistic::None {
        return Vec::new();
    }
    let mut said = Vec::new();
    for run in base.iter_mut().chain(new) {
        if let Some(unknown) = unknown(run) {
            let (file, unknown) = (&run.file, units::time(unknown));
            said.push(format!(
                "{file}: {unknown} of its time is unknown: it is left out of the causes"
            ));
            run.parts = None;
        }
    }
    said
}

/// The CPU time of tasks outside of the build, in thousandths of the time of all CPUs of the machine.
fn others(run: &Run) -> Option<u64> {
    let others = run.machine.load(Load::Others)?;
    let all = run
        .figures
        .get(Figure::Wall)?
        .saturating_mul(run.cpus as u64);
    Some(others.saturating_mul(1000) / all.max(1))
}

impl Causes {
    /// Finds the causes of the difference between the builds of two sides. `changed` is the part of the CPU time's
    /// difference in ns that comes from processes which only one side has.
    pub fn new(sides: Sides<'_>, changed: i128) -> Causes {
        let wall = sides.judge(|run| run.figures.get(Figure::Wall));
        let all = || sides.runs();
        // If the CPU time of some runs is not known, it is compared only if enough runs remain on each side to
        // determine the spread.
        let of_all = all().all(|run| work(run).is_some());
        let work = sides
            .judge(work)
            .filter(|work| of_all || work.verdict != SpreadVerdict::Unknown);
        let mut causes = Causes {
            work,
            ..Causes::default()
        };
        let of_all = all().all(|run| run.parts.is_some());
        let alone = sides.judge(|run| Some(run.parts.as_ref()?.alone));
        let alone = alone.filter(|alone| of_all || alone.verdict != SpreadVerdict::Unknown);
        let (Some(wall), Some(alone)) = (wall, alone) else {
            return causes;
        };
        causes.alone = Some(alone);
        let part = |part| {
            Some((
                part,
                sides.judge(|run| Some(run.parts.as_ref()?.times.get(part)))?,
            ))
        };
        causes.parts = WallPart::of_runs().filter_map(part).collect();
        causes.names = names(sides);
        causes.cpus = cpus(sides);
        let beside = causes.beside(sides, changed).then_some(Doubt::Beside);
        let model = || causes.model(sides, changed).then_some(Doubt::Model);
        let cpus = || {
            causes
                .cpus
                .filter(|_| causes.is_alike(SHARED_RATIO, changed))
        };
        causes.doubt = beside.or_else(model).or_else(cpus);
        (causes.shares, causes.against) = causes.shares(sides, &wall);
        causes
    }

    /// The difference between the base and the new runs in one part of the wall time; `None` if it is not known.
    pub fn part(&self, part: WallPart) -> Option<&Difference> {
        let mut parts = self.parts.iter();
        parts.find(|(it, _)| *it == part).map(|(_, judged)| judged)
    }

    /// Finds the causes of the difference. A cause is a part of the wall time whose difference is large enough and not
    /// known to be within the spread of the runs. If the wall time differs, the first list has the causes that changed
    /// in its direction, and the second list has causes in the build's own time that changed in the opposite
    /// direction. Otherwise the first list has all causes.
    fn shares(&self, sides: Sides<'_>, wall: &Difference) -> (Vec<Share>, Vec<Share>) {
        let differs = wall.verdict != SpreadVerdict::Inside;
        let known = wall.verdict != SpreadVerdict::Unknown;
        let least = wall.difference().unsigned_abs().div_ceil(OF_DIFFERENCE);
        let alone = self.alone.as_ref().map_or(0, Difference::most);
        let is_with = |share: &Share| !differs || share.ns.signum() == wall.difference().signum();
        let counts = |share: &Share| {
            let size = share.ns.unsigned_abs();
            // A part that changed in the other direction than the wall time does not explain the wall time's
            // difference.
            let of_wall = differs && size >= least && is_with(share);
            let of_own = match share.cause {
                // Other tasks, a quota or a hypervisor lengthen only the wall time, and not the build's own time. So
                // they are causes only by `of_wall`.
                DifferenceCause::Others | DifferenceCause::Quota | DifferenceCause::Hypervisor => {
                    false
                }
                // If there is a doubt, something other than the build's work may explain the CPU time. Then a CPU time
                // of any size counts if the wall times do not differ; if they differ, it counts only by `of_wall`.
                DifferenceCause::Work if self.doubt.is_some() => !differs,
                _ if known => size * OF_OWN >= u128::from(alone),
                // The spread of the runs is not known, so a small difference of CPU time may be due to shared caches.
                // So only a difference of at least a fifth of the build's own time counts.
                DifferenceCause::Work => size * OF_DIFFERENCE >= u128::from(alone),
                _ => false,
            };
            size > 0 && (of_wall || of_own)
        };
        let waits = WAITS.into_iter();
        let waits = waits.filter_map(|(part, cause)| self.waits(sides, part, cause));
        let mut all: Vec<Share> = waits.collect();
        let waited = all.iter().map(|share| share.ns).sum::<i128>();
        // Neither the time before and after COMMAND nor unknown time is work of the build. So the differences of these
        // times are subtracted, like the differences of the waits.
        let beside = [WallPart::Around, WallPart::Unknown].into_iter();
        let beside = beside.filter_map(|part| Some(self.part(part)?.difference()));
        all.extend(self.run(sides, waited + beside.sum::<i128>()));
        all.extend(withheld(sides));
        all.retain(counts);
        all.sort_by_key(|share| (Reverse(share.ns.unsigned_abs()), share.cause));
        all.into_iter().partition(is_with)
    }

    /// The part of the wall time's difference that is due to the build's own work: to the amount of its CPU time, or
    /// to how much of the work runs at once. `waited` is the part in ns of waits for anything but a CPU, of the time
    /// around COMMAND, and of unknown time.
    fn run(&self, sides: Sides<'_>, waited: i128) -> Option<Share> {
        let run = sides.judge(|run| Some(run.parts.as_ref()?.times.sum(WallPart::is_run)))?;
        let differs = |judged: &&Difference| judged.is_noticeable();
        let share = |cause, ns| Share {
            cause,
            ns,
            as_many: false,
            whose: self
                .doubt_of(cause, ns)
                .map_or(Whose::Build, |_| Whose::Unclear),
        };
        let alone = self.alone.as_ref().filter(differs);
        let alone = alone.map(|alone| alone.difference() - waited);
        let run = Some(&run).filter(|run| run.verdict != SpreadVerdict::Inside);
        let run = run.map(Difference::difference);
        let with = |ns: &i128, of: i128| ns.signum() == of.signum();
        if let Some(work) = self.work.as_ref().filter(differs) {
            // The part of the wall time's difference that is due to CPU time is measured along the critical path,
            // because work beside the path makes no build longer. It can be measured in two ways; the larger result
            // counts.
            let by = [run, alone].into_iter().flatten();
            let by = by.filter(|ns| with(ns, work.difference()));
            if let Some(most) = by.max_by_key(|ns| ns.abs()) {
                return Some(share(DifferenceCause::Work, most));
            }
            // No time along the path is known to have changed in the direction of the CPU time. So the cause is
            // another order of the work, and not the amount of work.
        }
        let against = |alone: &i128| run.is_some_and(|run| !with(alone, run));
        alone
            .filter(|figure| !against(figure) && self.is_equal_work(*figure))
            .map(|ns| share(DifferenceCause::Order, ns))
    }

    /// Whether two builds do about equal work, so that their CPU time does not explain the difference `alone`: the
    /// difference in ns between the times that the two builds would take with CPUs for themselves. The CPU time must
    /// be known, and its difference must be one of three: smaller than `alone`, smaller than a twentieth of the CPU
    /// time, or in the other direction than `alone`.
    fn is_equal_work(&self, alone: i128) -> bool {
        self.work.as_ref().is_some_and(|work| {
            let more = work.difference();
            let with = more.signum() == alone.signum();
            let noise = more.unsigned_abs() * OF_OWN < u128::from(work.most());
            noise || !with || more.abs() < alone.abs()
        })
    }

    fn waits(&self, sides: Sides<'_>, part: WallPart, cause: DifferenceCause) -> Option<Share> {
        let judged = self.part(part)?;
        let count = sides.judge(|run| Some(run.parts.as_ref()?.waits(part)))?;
        let moved = match part {
            WallPart::Disk => &[Demand::Read, Demand::Written][..],
            WallPart::Network => &[Demand::Received, Demand::Sent],
            _ => &[],
        };
        let more = moved.iter().any(|demand| {
            let bytes = sides.judge(|run| run.demands.get(demand).copied());
            bytes.is_some_and(|judged| demands::differs(*demand, &judged, 0))
        });
        let (few, many) = (count.base.min(count.new), count.most());
        // If one side has over a fifth more waits than the other, or the two sides moved different amounts of bytes,
        // the waits of the two sides are not the same.
        let as_many = match part {
            WallPart::Memory => sides
                .judge(|run| run.demands.get(&Demand::Resident).copied())
                .is_some_and(|judged| !judged.is_noticeable()),
            _ => !more && many.saturating_mul(5) <= few.saturating_mul(6),
        };
        (judged.verdict != SpreadVerdict::Inside).then_some(Share {
            cause,
            ns: judged.difference(),
            as_many,
            whose: match part {
                WallPart::Disk | WallPart::Memory if as_many => Whose::Machine,
                WallPart::Network if as_many && is_elsewhere(sides, judged) => Whose::Machine,
                // The build may have waited for its own servers and daemons, whose versions may differ between the two
                // sides.
                WallPart::Network | WallPart::Outside if as_many => Whose::Unclear,
                _ => Whose::Build,
            },
        })
    }

    /// Whether tasks outside of the build, a quota or a hypervisor can explain the change of the build's CPU time.
    /// They can if their time and the build's both grew or both fell, and the build's CPU time changed by no more than
    /// shared cores and caches can cause.
    fn beside(&self, sides: Sides<'_>, changed: i128) -> bool {
        let Some(work) = self.work.as_ref() else {
            return false;
        };
        let with = |difference: i128| difference.signum() == work.difference().signum();
        let wall = sides.judge(|run| run.figures.get(Figure::Wall));
        let wall = wall.map_or(0, |wall| u128::from(wall.most()));
        let machine = withheld(sides)
            .any(|share| with(share.ns) && share.ns.unsigned_abs() * OF_WALL >= wall);
        let more = sides.judge(others).is_some_and(|judged| {
            judged.verdict != SpreadVerdict::Inside
                && judged.difference().abs() >= LEAST_OUTSIDE
                && with(judged.difference())
        });
        (machine || more) && self.is_alike(SHARED_RATIO, changed)
    }

    /// Whether two conditions are true. The CPU times of the base and of the new runs differ by no more than the factor
    /// `most`. Less than half of this difference comes from processes that exist on only one side.
    fn is_alike(&self, most: Ratio, changed: i128) -> bool {
        self.work
            .as_ref()
            .is_some_and(|work| within(work, most) && changed.abs() * 2 < work.difference().abs())
    }

    /// A circumstance other than the build's own work that can explain a difference of `ns` which is attributed to this
    /// cause, if there is one.
    pub fn doubt_of(&self, cause: DifferenceCause, ns: i128) -> Option<Doubt> {
        match (cause, self.cpus) {
            (DifferenceCause::Work, _) => self.doubt,
            // With fewer CPUs, less of the work can run at once.
            (DifferenceCause::Order, Some(Doubt::Cpus(base, new))) if (base > new) == (ns > 0) => {
                self.cpus
            }
            _ => None,
        }
    }

    /// Whether the two sides have no CPU model in common, and the models can cause the difference of the CPU time.
    fn model(&self, sides: Sides<'_>, changed: i128) -> bool {
        let known = sides.runs().all(|run| !run.cpu.is_empty());
        let one = |run: &Run| sides.new.iter().any(|other| other.cpu == run.cpu);
        let apart = known && !sides.base.iter().any(one);
        apart && self.is_alike(MODEL_RATIO, changed)
    }

    /// The party to which the whole difference between the builds is attributed; `None` if no cause was found.
    pub fn whose(&self) -> Option<Whose> {
        self.whose_of(&self.shares.iter().collect::<Vec<_>>())
    }

    /// The party to which some parts of a difference between builds are attributed together; `None` if there are no
    /// such parts.
    pub fn whose_of(&self, shares: &[&Share]) -> Option<Whose> {
        let any = |whose| shares.iter().any(|share| share.whose == whose);
        match (any(Whose::Build), any(Whose::Machine), any(Whose::Unclear)) {
            (true, true, _) => Some(Whose::Both),
            (true, false, _) => Some(Whose::Build),
            (false, _, true) => Some(Whose::Unclear),
            // The CPU time is not known, so the build may have done more work as well as waited longer.
            (false, true, false) if self.work.is_none() => Some(Whose::Unclear),
            (false, true, false) => Some(Whose::Machine),
            (false, false, false) => None,
        }
    }

    /// The causes that made the wall time or the build's own time longer. Causes that made it shorter are left out,
    /// because they do not excuse a growth.
    pub fn of_growth(&self) -> Vec<&Share> {
        let all = self.shares.iter().chain(&self.against);
        all.filter(|share| share.ns > 0).collect()
    }

    /// The causes of the difference that are attributed to the given party, the largest first.
    pub fn of(&self, whose: Whose) -> impl Iterator<Item = &Share> {
        self.shares.iter().filter(move |share| share.whose == whose)
    }
}

/// The median numbers of CPUs of the base and of the new runs, if they differ.
fn cpus(sides: Sides<'_>) -> Option<Doubt> {
    let cpus = sides.judge(|run| Some(run.cpus as u64))?;
    (cpus.base != cpus.new).then_some(Doubt::Cpus(cpus.base, cpus.new))
}

/// Whether at most a fifth of the difference of the waits for the network can come from servers on this machine.
fn is_elsewhere(sides: Sides<'_>, network: &Difference) -> bool {
    let near = sides.judge(|run| Some(run.parts.as_ref()?.near));
    near.is_some_and(|near| {
        let with = near.difference().signum() == network.difference().signum();
        let size = near.difference().unsigned_abs();
        !with || size * OF_DIFFERENCE <= network.difference().unsigned_abs()
    })
}

/// The parts of the wall time in which the build waits for something other than a CPU, each with the cause to which
/// its difference is attributed.
const WAITS: [(WallPart, DifferenceCause); 6] = [
    (WallPart::Disk, DifferenceCause::Disk),
    (WallPart::Memory, DifferenceCause::Memory),
    (WallPart::Network, DifferenceCause::Network),
    (WallPart::Sleep, DifferenceCause::Sleep),
    (WallPart::Outside, DifferenceCause::Outside),
    (WallPart::Other, DifferenceCause::Other),
];

/// The causes by which the machine took CPU time from the build: other tasks, a quota, a hypervisor. Only a part of the
/// lost time counts: the time by which it exceeds the expected loss. Expected is as much lost time for each second of
/// the build's work as in the base.
fn withheld(sides: Sides<'_>) -> impl Iterator<Item = Share> + '_ {
    let all = [
        (WallPart::Others, DifferenceCause::Others),
        (WallPart::Quota, DifferenceCause::Quota),
        (WallPart::Hypervisor, DifferenceCause::Hypervisor),
    ];
    let all = all.into_iter();
    all.filter_map(move |(part, cause)| withheld_by(sides, part, cause))
}

/// Computes how much more time the machine took from the new build than expected, in one part of the wall time.
/// Expected is the base's rate: lost time for each second of the build's work. For example, the base loses 1 s in 10 s
/// of work; the new build loses 5 s in 20 s, so 3 s are unexpected. `None` if the rates do not differ beyond the
/// spread, or if a time is unknown.
fn withheld_by(sides: Sides<'_>, part: WallPart, cause: DifferenceCause) -> Option<Share> {
    const SCALE: u64 = 1_000_000;
    let get = |run: &Run| Some(run.parts.as_ref()?.times.get(part));
    let need = |run: &Run| match part {
        // A quota limits the CPU time of all tasks, also of tasks that are not on the critical path.
        WallPart::Quota => work(run),
        _ => Some(run.parts.as_ref()?.times.sum(WallPart::is_run)),
    };
    let rate = sides.judge(|run| Some(share(get(run)?, SCALE, need(run)?)))?;
    if rate.verdict == SpreadVerdict::Inside {
        return None;
    }
    let (part_of, need) = (sides.judge(get)?, sides.judge(need)?);
    let as_before = share(rate.base, need.new, SCALE);
    let beyond = i128::from(part_of.new) - i128::from(as_before);
    // The variable `beyond` is the lost time in ns that exceeds the base's loss for each second of work. It is limited
    // to the difference of this part of the wall time: it cannot be larger than this difference or have the other sign.
    let whole = part_of.difference();
    let ns = beyond.clamp(whole.min(0), whole.max(0));
    (ns != 0).then_some(Share {
        cause,
        ns,
        as_many: false,
        whose: Whose::Machine,
    })
}

/// Names of tasks outside of the build that had a CPU while the build waited for it. For each name: the median of this
/// time in the new runs minus the median in the base, in ns. The largest difference is first.
fn names(sides: Sides<'_>) -> Vec<(String, i128)> {
    fn all(runs: &[Run]) -> impl Iterator<Item = &BTreeMap<String, u64>> {
        runs.iter()
            .filter_map(|run| Some(&run.parts.as_ref()?.names))
    }
    let known = all(sides.base)
        .chain(all(sides.new))
        .flat_map(BTreeMap::keys);
    let known: BTreeSet<&String> = known.collect();
    let names = known.into_iter().map(|name| {
        let side = |runs| {
            let times = all(runs).map(|names| names.get(name).copied().unwrap_or(0));
            i128::from(median(&times.collect::<Vec<_>>()).unwrap_or(0))
        };
        (name.clone(), side(sides.new) - side(sides.base))
    });
    let mut names: Vec<(String, i128)> = names.collect();
    names.sort_by_key(|(name, ns)| (Reverse(ns.unsigned_abs()), name.clone()));
    names
}

#[cfg(test)]
#[path = "tests/causes.rs"]
mod tests;
