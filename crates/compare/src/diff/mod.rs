//! Compares two recordings of the same build, or several recordings from before a change and several from after it.

mod align;
mod ask;
pub mod benchmarks;
mod causes;
mod commands;
mod conclusion;
mod demands;
pub mod ends;
pub mod explain;
mod flame;
mod functions;
pub mod gate;
pub mod html;
pub mod json;
mod lanes;
pub(crate) mod machine;
pub mod markdown;
mod methods;
mod parts;
mod profile;
pub(crate) mod run;
mod spread;
pub(crate) mod steps;
mod tables;
pub mod text;
mod warnings;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use align::Slot;
pub use ask::Ask;
use causes::Causes;
use functions::FunctionChange;
use machine::CallChange;
pub use run::{Figure, Figures, Run};
use spread::{percent, signed};
pub use spread::{Difference, Verdict};
use steps::StepChange;
use tr_insight::demands::Demand;
use tr_insight::loads::Load;
use tr_insight::step_sums::add;
use tr_text::named;
use tr_text::units;

#[derive(Clone, Debug)]
pub struct Diff {
    pub base: Vec<Run>,
    pub new: Vec<Run>,
    /// Failed runs of the base, which are not compared.
    pub left_out: Vec<Run>,
    /// Warnings about runs that are left out of the parts of the wall time.
    set_aside: Vec<String>,
    ask: Ask,
    whole: Vec<(Figure, Difference)>,
    /// The processes that differ, with the largest difference first.
    changes: Vec<Change>,
    /// The programs that differ, with the largest difference first.
    programs: Vec<ProgramChange>,
    /// The steps that differ, with the largest difference first.
    steps: Vec<StepChange>,
    /// The machine's figures that differ noticeably.
    loads: Vec<(Load, Difference)>,
    /// The build's use of disks, the network and memory, where it differs noticeably.
    demands: Vec<(Demand, Difference)>,
    /// The system calls that differ noticeably, with the largest difference of time first.
    calls: Vec<CallChange>,
    /// The functions whose time on a CPU differs, with the largest difference first; `None` if a run has no stacks.
    functions: Option<Vec<FunctionChange>>,
    /// The parts that the difference of the wall time consists of.
    causes: Causes,
    /// The number of processes that both sides have. The next field is that number without the commands themselves.
    matched: usize,
    shared: usize,
}

named! {
    /// The kind of a process's difference, in the order of the tables.
    pub enum What {
        Slower = "slower", "slower";
        Faster = "faster", "faster";
        New = "new", "new";
        Gone = "gone", "gone";
    }
}

#[derive(Clone, Debug)]
struct Change {
    what: What,
    program: String,
    label: String,
    /// The programs of the process's ancestors in the tree, from the root on.
    above: Vec<String>,
    /// The number of runs of each side that have the process.
    runs: (usize, usize),
    /// The medians of each figure of the process in the base. The next field has those of the new runs.
    base: BTreeMap<Figure, u64>,
    new: BTreeMap<Figure, u64>,
    /// The differences of the figures that are known on both sides.
    judged: BTreeMap<Figure, Difference>,
    /// Whether the process only waits for its children, so that the difference is theirs.
    through: bool,
}

/// The difference of all processes of a program together.
#[derive(Clone, Debug)]
struct ProgramChange {
    name: String,
    /// The median numbers of processes of the program, in the base and in the new runs.
    count: (u64, u64),
    on_cpu: Difference,
    path: Option<Difference>,
}

/// The figures of which the one with the larger difference decides the kind of a change.
const TIMES: [Figure; 2] = [Figure::Wall, Figure::OnCpu];

impl Change {
    /// The difference of a figure that both sides know; a side without the process counts as 0.
    fn known(&self, figure: Figure) -> Option<i128> {
        let of = |side: &BTreeMap<Figure, u64>| {
            if side.is_empty() {
                Some(0)
            } else {
                side.get(&figure).copied().map(i128::from)
            }
        };
        Some(of(&self.new)? - of(&self.base)?)
    }

    fn value(&self, figure: Figure) -> i128 {
        self.known(figure).unwrap_or(0)
    }

    fn size(&self) -> u128 {
        self.value(Figure::Wall).unsigned_abs()
    }
}

/// The values of a figure in the runs that know it.
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
    pub fn new(base: Vec<Run>, new: Vec<Run>, ask: Ask) -> Diff {
        let (mut base, left_out) = ends::sorted_out(base);
        let mut new = new;
        methods::keep_common(&mut base, &mut new);
        let set_aside = causes::set_aside(&mut base, &mut new);
        let runs: Vec<&Run> = base.iter().chain(&new).collect();
        let slots = align::align(&runs);
        let whole = Figure::ALL.into_iter().filter_map(|figure| {
            let judged = machine::judge((&base, &new), |run| run.figures.get(figure))?;
            Some((figure, judged))
        });
        let whole: Vec<(Figure, Difference)> = whole.collect();
        let loads = machine::loads_of(&base, &new);
        let demands = demands::changes(&base, &new, ask.least);
        let calls = machine::calls_of(&base, &new, ask.least);
        let functions = functions::changes(&base, &new, &ask);
        let changes = changes(&slots, base.len(), &ask);
        let programs = programs(&slots, base.len(), &ask);
        let both = |slot: &&Slot| {
            let (base, new) = slot.sides(base.len());
            base.iter().any(Option::is_some) && new.iter().any(Option::is_some)
        };
        let both = slots.iter().filter(both);
        let shared = both.clone().filter(|slot| !slot.is_command()).count();
        let matched = both.count();
        let mut diff = Diff {
            causes: Causes::new((&base, &new), unmatched(&slots, base.len())),
            matched,
            shared,
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
            set_aside,
            ask,
        };
        if commands::strangers(&diff).is_some() {
            diff.causes = Causes::default();
        }
        diff
    }

    fn whole(&self, figure: Figure) -> Option<&Difference> {
        let mut all = self.whole.iter();
        all.find(|(known, _)| *known == figure)
            .map(|(_, judged)| judged)
    }

    /// The changes of one kind, without those of processes that only wait for their children.
    fn of_kind(&self, what: What) -> impl Iterator<Item = &Change> {
        let all = self.changes.iter();
        all.filter(move |change| change.what == what && !change.through)
    }

    /// A sentence which says that nothing differs, if so.
    fn unchanged(&self) -> Option<String> {
        let differs = |(_, judged): &(Figure, Difference)| judged.difference() != 0;
        let same = self.changes.is_empty() && !self.whole.iter().any(differs);
        let processes = units::count(self.matched as u64);
        same.then(|| format!("No difference in any of {processes} processes."))
    }
}

fn changes(slots: &[Slot], base: usize, ask: &Ask) -> Vec<Change> {
    let slot = |(at, slot): (usize, &Slot)| {
        let (base, new) = slot.sides(base);
        let judged = Figure::ALL.into_iter().filter_map(|figure| {
            let judged = Difference::new(&known(base, figure), &known(new, figure))?;
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
    all.sort_by(|a, b| (Reverse(a.size()), &a.label).cmp(&(Reverse(b.size()), &b.label)));
    all
}

/// The change of the CPU time in ns by processes that only one side has: that of new processes minus that of
/// vanished ones.
fn unmatched(slots: &[Slot], base: usize) -> i128 {
    let of = |slot: &Slot| {
        let (base, new) = slot.sides(base);
        let side = |runs| spread::median(&known(runs, Figure::OnCpu)).map(i128::from);
        match (side(base), side(new)) {
            (None, Some(new)) => new,
            (Some(base), None) => -base,
            _ => 0,
        }
    };
    slots.iter().map(of).sum()
}

/// The programs of the nearest ancestors of the process in a slot, from the root on.
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

#[derive(Clone, Copy)]
struct ProgramSum {
    processes: u64,
    /// The CPU time in ns; `None` if that of a process is not known.
    on_cpu: Option<u64>,
    /// The time on the critical path in ns; `None` if the run has no path.
    path: Option<u64>,
}

/// The differences of the programs' sums, where they differ.
fn programs(slots: &[Slot], base: usize, ask: &Ask) -> Vec<ProgramChange> {
    let runs = slots.first().map_or(0, |slot| slot.runs.len());
    let none = (0..runs).map(|run| {
        let path = |slot: &Slot| slot.runs.get(run)?.as_ref()?.get(Figure::CriticalPath);
        ProgramSum {
            processes: 0,
            on_cpu: Some(0),
            // A run has a path if any of its processes has a time on it.
            path: slots.iter().find_map(path).map(|_| 0),
        }
    });
    let none: Vec<ProgramSum> = none.collect();
    let mut sums = BTreeMap::<&str, Vec<ProgramSum>>::new();
    for slot in slots {
        let of = sums.entry(&slot.program).or_insert_with(|| none.clone());
        for (sum, figures) in of.iter_mut().zip(&slot.runs) {
            let Some(figures) = figures else { continue };
            sum.processes += 1;
            add(&mut sum.on_cpu, figures.get(Figure::OnCpu));
            let path = figures.get(Figure::CriticalPath);
            add(&mut sum.path, Some(path.unwrap_or(0)));
        }
    }
    let change = |(name, sums): (&str, Vec<ProgramSum>)| {
        let judge = |of: fn(&ProgramSum) -> Option<u64>| {
            let (base, new) = sums.split_at(base.min(sums.len()));
            let known = |side: &[ProgramSum]| side.iter().filter_map(of).collect::<Vec<_>>();
            Difference::new(&known(base), &known(new))
        };
        let count = judge(|sum| Some(sum.processes))?;
        Some(ProgramChange {
            name: name.to_owned(),
            count: (count.base, count.new),
            on_cpu: judge(|sum| sum.on_cpu)?,
            path: judge(|sum| sum.path),
        })
    };
    let mut programs: Vec<ProgramChange> = sums.into_iter().filter_map(change).collect();
    let size = |judged: &Difference| match judged.verdict {
        Verdict::Inside => 0,
        _ => judged.difference().unsigned_abs(),
    };
    let of =
        |program: &ProgramChange| size(&program.on_cpu).max(program.path.as_ref().map_or(0, size));
    programs.retain(|program| of(program) >= u128::from(ask.least.max(1)));
    programs.sort_by(|a, b| (Reverse(of(a)), &a.name).cmp(&(Reverse(of(b)), &b.name)));
    programs
}
