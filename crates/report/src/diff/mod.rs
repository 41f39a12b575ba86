//! What changed between two recordings of the same build, or between several of
//! it before and several after.

mod align;
mod ask;
mod demands;
mod ends;
mod explain;
mod flame;
mod functions;
mod html;
mod json;
mod lanes;
pub(crate) mod machine;
mod markdown;
mod profile;
pub(crate) mod run;
mod spread;
pub(crate) mod steps;
mod tables;
mod text;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::facts::demands::Demand;
use crate::facts::loads::Load;
use crate::names::named;
use crate::sort::Rows;
use align::Slot;
pub use ask::Ask;
use functions::FunctionChange;
use machine::CallChange;
pub use run::{Figure, Figures, Run};
use spread::{percent, signed};
pub use spread::{Judged, Verdict};
use steps::StepChange;

/// A comparison of two sides.
#[derive(Clone, Debug)]
pub struct Diff {
    /// The runs before.
    pub base: Vec<Run>,
    /// The runs after.
    pub new: Vec<Run>,
    /// Failed runs of the base, which are not compared.
    pub left_out: Vec<Run>,
    ask: Ask,
    /// The figures of the whole recordings.
    whole: Vec<(Figure, Judged)>,
    /// Processes with a difference, the largest first.
    changes: Vec<Change>,
    /// Programs with a difference, the largest first.
    programs: Vec<ProgramChange>,
    /// Steps with a difference, the largest first.
    steps: Vec<StepChange>,
    /// The machine's figures that differ noticeably.
    loads: Vec<(Load, Judged)>,
    /// What the builds asked of disks, the network and memory, where it differs noticeably.
    demands: Vec<(Demand, Judged)>,
    /// System calls that differ noticeably, the largest difference of time first.
    calls: Vec<CallChange>,
    /// Functions whose time on a CPU differs, the largest difference first; `None`: a run has
    /// no stacks.
    functions: Option<Vec<FunctionChange>>,
    /// The number of processes on both sides.
    matched: usize,
}

named! {
    /// The kind of a process's difference, in the order of the tables.
    pub enum What {
        /// More wall or CPU time.
        Slower = "slower", "slower";
        /// Less wall or CPU time.
        Faster = "faster", "faster";
        /// In no run of the base.
        New = "new", "new";
        /// In no new run.
        Gone = "gone", "gone";
    }
}

/// A process with a difference.
#[derive(Clone, Debug)]
struct Change {
    what: What,
    program: String,
    label: String,
    /// The programs above it, from the root on.
    above: Vec<String>,
    /// The number of runs of each side with it.
    runs: (usize, usize),
    /// The medians of each side.
    base: BTreeMap<Figure, u64>,
    new: BTreeMap<Figure, u64>,
    /// The figures known on both sides.
    judged: BTreeMap<Figure, Judged>,
    /// It waits for its children, which have the difference.
    through: bool,
}

/// All processes of a program.
#[derive(Clone, Debug)]
struct ProgramChange {
    name: String,
    /// The medians of the number of processes.
    count: (u64, u64),
    /// Sums over its processes.
    on_cpu: Judged,
    path: Option<Judged>,
}

/// The larger difference of these decides the kind of a change.
const TIMES: [Figure; 2] = [Figure::Wall, Figure::OnCpu];

impl Change {
    fn value(&self, figure: Figure) -> i128 {
        let of = |side: &BTreeMap<Figure, u64>| side.get(&figure).copied().map_or(0, i128::from);
        of(&self.new) - of(&self.base)
    }

    fn size(&self) -> u128 {
        self.value(Figure::Wall).unsigned_abs()
    }
}

/// The known values of a figure in some runs.
fn known(runs: &[Option<Figures>], figure: Figure) -> Vec<u64> {
    let runs = runs.iter().flatten();
    runs.filter_map(|figures| figures.get(figure)).collect()
}

fn medians(runs: &[Option<Figures>]) -> BTreeMap<Figure, u64> {
    let all = Figure::ALL.into_iter();
    all.filter_map(|figure| Some((figure, spread::median(&known(runs, figure))?)))
        .collect()
}

impl Diff {
    /// Compares the runs of two sides.
    pub fn new(base: Vec<Run>, new: Vec<Run>, ask: Ask) -> Diff {
        let (base, left_out) = ends::sorted_out(base);
        let runs: Vec<&Run> = base.iter().chain(&new).collect();
        let slots = align::align(&runs);
        let of = |runs: &[Run], figure| -> Vec<u64> {
            let values = runs.iter().map(|run| run.figures.get(figure));
            values.flatten().collect()
        };
        let whole = Figure::ALL.into_iter().filter_map(|figure| {
            let judged = Judged::new(&of(&base, figure), &of(&new, figure))?;
            Some((figure, judged))
        });
        let whole: Vec<(Figure, Judged)> = whole.collect();
        let mut walls = whole.iter().filter(|(figure, _)| *figure == Figure::Wall);
        let loads = machine::loads_of(&base, &new, walls.next().map(|(_, wall)| wall));
        let demands = demands::changes(&base, &new, ask.least);
        let calls = machine::calls_of(&base, &new, ask.least);
        let functions = functions::changes(&base, &new, &ask);
        let changes = changes(&slots, base.len(), &ask);
        let programs = programs(&slots, base.len(), &ask);
        let both = |slot: &&Slot| {
            let (base, new) = slot.runs.split_at(base.len().min(slot.runs.len()));
            base.iter().any(Option::is_some) && new.iter().any(Option::is_some)
        };
        Diff {
            matched: slots.iter().filter(both).count(),
            whole,
            loads,
            demands,
            calls,
            functions,
            changes,
            programs,
            steps: steps::changes(&base, &new, &ask),
            base,
            new,
            left_out,
            ask,
        }
    }

    fn whole(&self, figure: Figure) -> Option<&Judged> {
        let mut all = self.whole.iter();
        all.find(|(known, _)| *known == figure)
            .map(|(_, judged)| judged)
    }

    /// The changes of one kind, without those of processes that wait for their
    /// children.
    fn of_kind(&self, what: What) -> impl Iterator<Item = &Change> {
        let all = self.changes.iter();
        all.filter(move |change| change.what == what && !change.through)
    }

    fn same(&self) -> bool {
        let differs = |(_, judged): &(Figure, Judged)| judged.difference() != 0;
        self.changes.is_empty() && !self.whole.iter().any(differs)
    }

    /// The reasons that make the comparison unfair.
    fn warnings(&self) -> Vec<String> {
        let mut said = Vec::new();
        let runs = || self.base.iter().chain(&self.new);
        for (file, why) in runs().filter_map(Run::partial) {
            said.push(format!("{file} {why}: its times are lower bounds"));
        }
        for run in runs().filter(|run| run.lost) {
            said.push(format!("{}: events were lost", run.file));
        }
        let all = |of: fn(&Run) -> String| -> Vec<String> {
            let mut all: Vec<String> = runs().map(of).collect();
            all.sort();
            all.dedup();
            all
        };
        let kernels = all(|run| run.kernel.clone());
        if kernels.len() > 1 {
            said.push(format!("not the same kernel: {}", kernels.join("; ")));
        }
        let cpus = all(|run| run.cpus.to_string());
        if cpus.len() > 1 {
            said.push(format!(
                "not the same number of CPUs: {}",
                cpus.join(" and ")
            ));
        }
        for run in &self.left_out {
            let end = run.status.map_or("?".into(), crate::exit::words);
            said.push(format!(
                "{} is left out: its build failed ({end})",
                run.file
            ));
        }
        let (base, new) = (ends::ends(&self.base), ends::ends(&self.new));
        if base != new {
            let words = |all: &[String]| match all.is_empty() {
                true => "no end".into(),
                false => all.join(", "),
            };
            said.push(format!(
                "not the same end: {} before, {} now",
                words(&base),
                words(&new)
            ));
        }
        said.extend(self.stack_warnings());
        said
    }

    /// The failure of a build, a recording of a part of one, or the verdict on the wall time and
    /// the largest change of a process.
    fn conclusion(&self) -> String {
        let Some(wall) = self.whole(Figure::Wall) else {
            return "The wall times cannot be compared".into();
        };
        if let Some(failure) = self.no_build() {
            let [base, new] = [wall.base, wall.new].map(crate::units::time);
            let failure = crate::units::sentence(&failure);
            return format!("{failure}; the wall times, {base} and {new}, measure no whole build");
        }
        let change = match wall.difference() {
            0 => return format!("Equally fast: {}", crate::units::time(wall.base)),
            more @ 1.. => (What::Slower, "Slower", more),
            less => (What::Faster, "Faster", less),
        };
        let (what, word, difference) = change;
        let figures = format!(
            "{} → {} ({}, {})",
            crate::units::time(wall.base),
            crate::units::time(wall.new),
            signed(difference, crate::units::time),
            percent(wall)
        );
        if wall.verdict == Verdict::Inside {
            return format!("No difference beyond normal variation: {figures}");
        }
        let most = self.of_kind(what).next().filter(|most| most.size() > 0);
        let most = most.map_or(String::new(), |most| {
            let by = signed(most.value(Figure::Wall), crate::units::time);
            format!("; most of all {} {by}", most.label)
        });
        format!("{word}: {figures}{most}")
    }

    /// The machine explains the difference of the wall time: in words.
    fn explanation(&self) -> Option<String> {
        if self.no_build().is_some() {
            return None;
        }
        self.runner().or_else(|| self.waited())
    }

    /// The statistic, in words.
    fn statistic(&self) -> String {
        let runs = |n: usize| match n {
            1 => "1 run".to_owned(),
            n => format!("{n} runs"),
        };
        let sides = format!("{} against {}", runs(self.new.len()), runs(self.base.len()));
        match (self.base.len().min(self.new.len()), self.base.len().max(self.new.len())) {
            (4.., _) => format!(
                "{sides}: medians; outside the spread where the rank test of Mann and Whitney has p ≤ {}",
                spread::ALPHA
            ),
            (_, 1) => "Only one run each, so normal variation is unknown.".into(),
            _ => format!(
                "{sides}: medians; outside the spread where they differ by more than the runs of a side do"
            ),
        }
    }

    /// The result of the gate, if there is one.
    ///
    /// It compares the medians. A difference inside a known spread passes. The
    /// error names builds that failed, and a figure that cannot be compared: of a truncated
    /// recording or of one that ended before COMMAND did, unknown, or with more unknown time
    /// than it may grow.
    pub fn gate(&self) -> Option<Result<Gate, String>> {
        let (figure, most) = self.ask.gate?;
        if let Some(failure) = self.failure() {
            return Some(Err(format!("{failure}: --fail-over cannot judge it")));
        }
        let runs = || self.base.iter().chain(&self.new);
        if let Some((file, why)) = runs().find_map(Run::partial) {
            return Some(Err(format!("{file} {why}: --fail-over cannot judge it")));
        }
        let Some(judged) = self.whole(figure).filter(|judged| judged.base > 0) else {
            return Some(Err(format!(
                "{} of the base is unknown or 0: --fail-over cannot judge it",
                figure.title()
            )));
        };
        let unknown = self.base.iter().chain(&self.new);
        let unknown = unknown.filter_map(|run| run.figures.get(Figure::Unknown));
        let unknown = unknown.max().unwrap_or(0) as f64;
        let hides = matches!(figure, Figure::OnCpu | Figure::RunQueue);
        if hides && unknown > 0.0 && unknown > judged.base as f64 * most / 100.0 {
            return Some(Err(format!(
                "--fail-over cannot judge {}: {} of a recording's time is unknown",
                figure.title(),
                crate::units::time(unknown as u64)
            )));
        }
        let percent = judged.difference() as f64 * 100.0 / judged.base as f64;
        Some(Ok(Gate {
            figure,
            most,
            percent,
            inside: judged.verdict == Verdict::Inside,
        }))
    }
}

/// The result of a gate.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    figure: Figure,
    most: f64,
    percent: f64,
    /// The difference is inside the spread.
    inside: bool,
}

impl Gate {
    /// The figure grew too much: exit status 1.
    pub fn failed(&self) -> bool {
        self.percent > self.most && !self.inside
    }

    fn text(&self) -> String {
        let (name, percent, most) = (self.figure.title(), self.percent, self.most);
        match (self.percent > self.most, self.inside) {
            (true, false) => format!("failed: {name} {percent:+.1} %, more than {most} %"),
            (true, true) => format!(
                "passed: {name} {percent:+.1} % is more than {most} %, but inside the spread"
            ),
            (false, _) => format!("passed: {name} {percent:+.1} %, not more than {most} %"),
        }
    }
}

/// The processes with a difference.
fn changes(slots: &[Slot], base: usize, ask: &Ask) -> Vec<Change> {
    let slot = |(at, slot): (usize, &Slot)| {
        let (base, new) = slot.runs.split_at(base.min(slot.runs.len()));
        let judged = Figure::ALL.into_iter().filter_map(|figure| {
            let judged = Judged::new(&known(base, figure), &known(new, figure))?;
            Some((figure, judged))
        });
        let count = |runs: &[Option<Figures>]| runs.iter().flatten().count();
        let mut change = Change {
            what: What::Slower,
            program: slot.program.clone(),
            label: slot.label.clone(),
            above: above(slots, at),
            runs: (count(base), count(new)),
            base: medians(base),
            new: medians(new),
            judged: judged.collect(),
            through: false,
        };
        let times = TIMES.into_iter().map(|figure| change.value(figure));
        let larger = times.max_by_key(|value| value.unsigned_abs());
        change.what = match change.runs {
            (0, _) => What::New,
            (_, 0) => What::Gone,
            _ if larger.is_some_and(|value| value < 0) => What::Faster,
            _ => What::Slower,
        };
        change
    };
    let mut all: Vec<Change> = slots.iter().enumerate().map(slot).collect();
    // The processes that wait for their children take longer with them.
    let mut below = vec![0i128; slots.len()];
    for (slot, change) in slots.iter().zip(&all) {
        if let Some(sum) = slot.parent.and_then(|parent| below.get_mut(parent)) {
            *sum += change.value(Figure::Wall);
        }
    }
    for (change, below) in all.iter_mut().zip(&below) {
        let (wall, cpu) = (change.value(Figure::Wall), change.value(Figure::OnCpu));
        let same_sign = wall.signum() == below.signum();
        change.through = same_sign
            && below.unsigned_abs() * 5 >= wall.unsigned_abs() * 4
            && cpu.unsigned_abs() * 5 < wall.unsigned_abs();
    }
    all.retain(|change| {
        let large =
            |figure: &Figure| change.value(*figure).unsigned_abs() >= u128::from(ask.least.max(1));
        let beyond = |figure: &Figure| {
            let judged = change.judged.get(figure);
            judged.is_none_or(|judged| judged.verdict != Verdict::Inside)
        };
        match change.what {
            What::New | What::Gone => large(&Figure::Wall) || large(&Figure::OnCpu),
            _ => TIMES.iter().any(|figure| large(figure) && beyond(figure)),
        }
    });
    all.order_by(|a, b| (Reverse(a.size()), &a.label).cmp(&(Reverse(b.size()), &b.label)));
    all
}

/// The nearest programs above a slot, from the root on.
fn above(slots: &[Slot], at: usize) -> Vec<String> {
    const NEAREST: usize = 4;
    let mut above = Vec::new();
    let mut next = slots.get(at).and_then(|slot| slot.parent);
    while let Some(slot) = next.and_then(|at| slots.get(at)) {
        if above.len() == NEAREST {
            break;
        }
        above.push(slot.program.clone());
        next = slot.parent;
    }
    above.reverse();
    above
}

/// A program's processes in one run.
#[derive(Clone, Copy, Default)]
struct ProgramSum {
    processes: u64,
    on_cpu: u64,
    /// Time on the critical path.
    path: u64,
}

/// The sums by program, where they differ.
fn programs(slots: &[Slot], base: usize, ask: &Ask) -> Vec<ProgramChange> {
    let mut sums = BTreeMap::<&str, Vec<ProgramSum>>::new();
    let runs = slots.first().map_or(0, |slot| slot.runs.len());
    // A run has a path if any of its processes has a time on it.
    let mut has_path = vec![false; runs];
    for slot in slots {
        let of = sums
            .entry(&slot.program)
            .or_insert_with(|| vec![ProgramSum::default(); runs]);
        for ((sum, figures), path) in of.iter_mut().zip(&slot.runs).zip(&mut has_path) {
            let Some(figures) = figures else { continue };
            sum.processes += 1;
            sum.on_cpu = sum
                .on_cpu
                .saturating_add(figures.get(Figure::OnCpu).unwrap_or(0));
            if let Some(ns) = figures.get(Figure::CriticalPath) {
                *path = true;
                sum.path = sum.path.saturating_add(ns);
            }
        }
    }
    let mut programs: Vec<ProgramChange> = sums
        .into_iter()
        .filter_map(|(name, sums)| {
            let judge = |of: &dyn Fn(usize, &ProgramSum) -> Option<u64>| {
                let all: Vec<Option<u64>> = sums
                    .iter()
                    .enumerate()
                    .map(|(at, sum)| of(at, sum))
                    .collect();
                let (base, new) = all.split_at(base.min(all.len()));
                let known =
                    |side: &[Option<u64>]| side.iter().flatten().copied().collect::<Vec<_>>();
                Judged::new(&known(base), &known(new))
            };
            let count = judge(&|_, sum| Some(sum.processes))?;
            Some(ProgramChange {
                name: name.to_owned(),
                count: (count.base, count.new),
                on_cpu: judge(&|_, sum| Some(sum.on_cpu))?,
                // In a run without the program, its time on the path is 0.
                path: judge(&|at, sum| {
                    has_path.get(at).filter(|has| **has)?;
                    Some(sum.path)
                }),
            })
        })
        .collect();
    let size = |judged: &Judged| match judged.verdict {
        Verdict::Inside => 0,
        _ => judged.difference().unsigned_abs(),
    };
    let of =
        |program: &ProgramChange| size(&program.on_cpu).max(program.path.as_ref().map_or(0, size));
    programs.retain(|program| of(program) >= u128::from(ask.least.max(1)));
    programs.order_by(|a, b| (Reverse(of(a)), &a.name).cmp(&(Reverse(of(b)), &b.name)));
    programs
}
