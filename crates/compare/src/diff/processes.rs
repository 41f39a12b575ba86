//! Finds the processes whose times differ between the two sides of a comparison of builds.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::align::Slot;
use super::ask::Ask;
use super::run::{Figure, Figures};
use super::spread::{self, Difference, PerSide, SpreadVerdict};
use tr_programs::program_name::ProgramName;
use tr_text::named;
use tr_text::phrase::Phrase;

named! {
    /// The kind of the difference of a process between two builds: slower, faster, new or gone. The tables are in this
    /// order.
    pub enum ChangeKind {
        Slower = "slower", "slower";
        Faster = "faster", "faster";
        New = "new", "new";
        Gone = "gone", "gone";
    }
}

/// The difference of one process between the base and the new runs.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub kind: ChangeKind,
    pub program: ProgramName,
    pub label: Phrase,
    /// The names of the programs of the process's nearest ancestors, the outermost first.
    pub above: Vec<ProgramName>,
    /// For each side of the comparison, the number of its runs in which the process exists.
    pub runs: PerSide<usize>,
    /// The median of each figure of the process over the runs of the base; empty if the base does not have the process.
    pub base: BTreeMap<Figure, u64>,
    /// The median of each figure of the process over the new runs; empty if they do not have the process.
    pub new: BTreeMap<Figure, u64>,
    /// For each figure of the process that both sides know, the difference between its values on the two sides.
    pub judged: BTreeMap<Figure, Difference>,
    /// Whether the process mostly waits for its children, so that the difference of its wall time comes from them.
    pub through: bool,
}

/// The figures that decide whether a process is called slower or faster: the one with the larger difference counts.
const TIMES: [Figure; 2] = [Figure::Wall, Figure::OnCpu];

impl Change {
    /// The difference in one of the process's figures, in ns or bytes: the new runs minus the base. A side without the
    /// process counts as 0; `None` if a side that has the process does not know the figure.
    pub fn known(&self, figure: Figure) -> Option<i128> {
        let of = |side: &BTreeMap<Figure, u64>| {
            if side.is_empty() {
                Some(0)
            } else {
                side.get(&figure).copied().map(i128::from)
            }
        };
        Some(of(&self.new)? - of(&self.base)?)
    }

    /// Like [`Change::known`], but returns 0 if the difference of the figure is not known.
    pub fn value(&self, figure: Figure) -> i128 {
        self.known(figure).unwrap_or(0)
    }

    /// Whether the comparison shows this process: its wall time or CPU time differs by at least `least` ns, and the
    /// difference is not known to be within the spread of the runs. For a process that only one side has, the spread
    /// does not matter.
    fn is_shown(&self, least: u64) -> bool {
        let large =
            |figure: &Figure| self.value(*figure).unsigned_abs() >= u128::from(least.max(1));
        let beyond = |figure: &Figure| {
            let judged = self.judged.get(figure);
            judged.is_none_or(|judged| judged.verdict != SpreadVerdict::Inside)
        };
        match self.kind {
            ChangeKind::New | ChangeKind::Gone => large(&Figure::Wall) || large(&Figure::OnCpu),
            _ => TIMES.iter().any(|figure| large(figure) && beyond(figure)),
        }
    }

    /// The absolute difference in the process's wall time between the base and the new runs, in ns.
    pub fn size(&self) -> u128 {
        self.value(Figure::Wall).unsigned_abs()
    }
}

/// The values that a figure of a process has in those runs that know it.
fn known(runs: &[Option<Figures>], figure: Figure) -> Vec<u64> {
    let runs = runs.iter().flatten();
    runs.filter_map(|figures| figures.get(figure)).collect()
}

/// For each figure of a process, its median over the runs that know it.
fn medians(runs: &[Option<Figures>]) -> BTreeMap<Figure, u64> {
    let all = Figure::ALL.into_iter();
    all.filter_map(|figure| Some((figure, spread::median(&known(runs, figure))?)))
        .collect()
}

/// The processes that differ between the sides, with the largest difference of wall time first. In each slot (a process
/// matched across all runs), the first `base` runs are those of the base.
pub(super) fn changes(slots: &[Slot], base: usize, ask: &Ask) -> Vec<Change> {
    let slot = |(at, slot): (usize, &Slot)| change(slot, above(slots, at), base);
    let mut all: Vec<Change> = slots.iter().enumerate().map(slot).collect();
    mark_waiting(slots, &mut all);
    all.retain(|change| change.is_shown(ask.least));
    all.sort_by(|a, b| (Reverse(a.size()), &a.label).cmp(&(Reverse(b.size()), &b.label)));
    all
}

/// Compares the figures of one process (a slot, matched across all runs) in the base and in the new runs, whatever the
/// size of the difference. `above` has the names of its ancestors' programs.
fn change(slot: &Slot, above: Vec<ProgramName>, base: usize) -> Change {
    let (base, new) = slot.sides(base);
    let judged = Figure::ALL.into_iter().filter_map(|figure| {
        let judged = Difference::new(&known(base, figure), &known(new, figure))?;
        Some((figure, judged))
    });
    let count = |runs: &[Option<Figures>]| runs.iter().flatten().count();
    let mut change = Change {
        kind: ChangeKind::Slower,
        program: slot.program.clone(),
        label: slot.label.clone(),
        above,
        runs: PerSide {
            base: count(base),
            new: count(new),
        },
        base: medians(base),
        new: medians(new),
        judged: judged.collect(),
        through: false,
    };
    let times = TIMES.into_iter().map(|figure| change.value(figure));
    let larger = times.max_by_key(|value| value.unsigned_abs());
    change.kind = match (change.runs.base, change.runs.new) {
        (0, _) => ChangeKind::New,
        (_, 0) => ChangeKind::Gone,
        _ if larger.is_some_and(|value| value < 0) => ChangeKind::Faster,
        _ => ChangeKind::Slower,
    };
    change
}

/// Marks the differences of processes that mostly wait for their children. Two conditions must be true of the
/// difference of such a process's wall time: its children's wall times differ in the same direction by at least four
/// fifths of it, and the process's own CPU time differs by less than a fifth of it.
fn mark_waiting(slots: &[Slot], all: &mut [Change]) {
    let mut below = vec![0i128; slots.len()];
    for (slot, change) in slots.iter().zip(&*all) {
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
}

/// The CPU time in ns that the new build has more because of processes that only one side has: that of new processes
/// minus that of vanished ones. Each process counts with the median of its runs.
pub(super) fn unmatched(slots: &[Slot], base: usize) -> i128 {
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

/// The names of the programs of the nearest ancestors of a process, the outermost first. `at` is the index of the
/// process's slot (one process matched across all runs).
fn above(slots: &[Slot], at: usize) -> Vec<ProgramName> {
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
