//! What causality says about the differences between the CPUs' clocks.
//!
//! When an event on CPU A comes before one on CPU B, their stamps bound the
//! difference of the two clocks at that time from one side: the effect's clock
//! is ahead of the cause's by at most the difference of the stamps. Bounds from
//! both sides, over any number of CPUs between, enclose it. Two events further
//! apart in time say less, by as much as the clocks may have drifted in between.
//!
//! That bounds of both directions enclose a clock is from Duda, Harrus, Haddad
//! and Bernard, "Estimating global time in distributed systems" (ICDCS 1987);
//! that the tightest ones are the shortest paths in the graph of all bounds, for
//! clocks of bounded drift, from Patt-Shamir and Rajsbaum, "A theory of clock
//! synchronization" (STOC 1994). Unlike a line fitted over a whole trace this
//! needs no clock to run evenly.
//!
//! Memory does not grow with the trace: of each pair of CPUs and each part of
//! the time only the tightest bound is kept. What is left out could only make
//! the result tighter.
#![allow(clippy::indexing_slicing)] // into tables that are sized here, in cubic loops

use std::collections::HashMap;

/// Two clocks of a machine gain at most one ns on each other in this many:
/// 200 in a million. Quartz is good for 50 in a million, either way.
pub const NS_PER_NS_OF_DRIFT: u64 = 5_000;

/// What a clock's reading is rounded to, ns: equal stamps, or such as far apart,
/// do not contradict a clock that is right.
const GRAIN: i64 = 2;

/// Not bounded. Sums of two do not overflow.
pub const FREE: i64 = i64::MAX / 4;

/// When a clock showed what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The clock's place.
    pub clock: usize,
    /// What it showed, ns.
    pub shown: u64,
    /// When that was, as far as is known, ns.
    pub at: u64,
}

/// The time of a trace in equal parts; what is known of the clocks is known for
/// the middle of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Where the first part begins, ns.
    pub start: u64,
    /// The length of a part, ns.
    pub step: u64,
    /// How many parts.
    pub parts: usize,
}

impl Grid {
    /// Of `start..=end`, in as many parts as `clocks` clocks leave room for.
    pub fn new(start: u64, end: u64, clocks: usize) -> Grid {
        let cost = clocks.max(1).saturating_pow(3);
        let parts = (40_000_000 / cost).clamp(4, 512);
        let step = end.saturating_sub(start) / parts as u64 + 1;
        Grid { start, step, parts }
    }

    /// The part that a time is in; the first or the last for one outside.
    pub fn part(&self, time: u64) -> usize {
        let part = time.saturating_sub(self.start) / self.step;
        usize::try_from(part).map_or(self.parts - 1, |part| part.min(self.parts - 1))
    }

    /// The middle of a part.
    pub fn middle(&self, part: usize) -> u64 {
        let begin = (part as u64).saturating_mul(self.step);
        self.start
            .saturating_add(begin)
            .saturating_add(self.step / 2)
    }

    /// What clocks may drift apart from the middle of a part to its end.
    pub fn drift(&self) -> i64 {
        drift(self.step / 2 + 1)
    }
}

/// How far two clocks may drift apart in a time.
fn drift(time: u64) -> i64 {
    i64::try_from(time / NS_PER_NS_OF_DRIFT).map_or(FREE, |drift| drift + 1)
}

/// `a - b`, limited so that sums of a few do not overflow.
pub fn difference(a: u64, b: u64) -> i64 {
    let exact = i128::from(a) - i128::from(b);
    exact.clamp(-i128::from(FREE), i128::from(FREE)) as i64
}

/// The tightest bound of a pair in a part of the time: the clock of the effect
/// is ahead of the cause's by at most `.0`, seen at `.1`.
type Tightest = Option<(i64, u64)>;

/// The bounds seen so far.
pub struct Bounds {
    clocks: usize,
    grid: Grid,
    pairs: HashMap<(usize, usize), Vec<Tightest>>,
}

impl Bounds {
    /// None yet, of this many clocks.
    pub fn new(clocks: usize, grid: Grid) -> Bounds {
        Bounds {
            clocks,
            grid,
            pairs: HashMap::new(),
        }
    }

    /// What the first stamp is of came before what the second one is of.
    pub fn add(&mut self, before: Stamp, after: Stamp) {
        let (from, to) = (before.clock, after.clock);
        if from == to || from.max(to) >= self.clocks {
            return;
        }
        let most = difference(after.shown, before.shown).saturating_add(GRAIN);
        // Of a loose one it does not matter when it was.
        let at = before.at / 2 + after.at / 2;
        let parts = self.grid.parts;
        let pair = self
            .pairs
            .entry((from, to))
            .or_insert_with(|| vec![None; parts]);
        let tightest = &mut pair[self.grid.part(at)];
        // Of equal ones the earliest, in whatever order they come.
        if tightest.is_none_or(|least| (most, at) < least) {
            *tightest = Some((most, at));
        }
    }

    /// Two clocks that are equal cannot have shown this, when the first stamp is of
    /// what came before.
    pub fn contradicts(before: Stamp, after: Stamp) -> bool {
        let most = difference(after.shown, before.shown).saturating_add(GRAIN);
        before.clock != after.clock && most < 0
    }

    /// All clocks may be equal: every bound lets them.
    pub fn allow_equal(&self) -> bool {
        let mut all = self.pairs.values().flatten().flatten();
        all.all(|(most, _)| *most >= 0)
    }

    /// The bounds of a pair at each part's middle.
    fn spread(&self, pair: &[Tightest]) -> Vec<i64> {
        let mut least = vec![FREE; self.grid.parts];
        let slope = drift(self.grid.step);
        let mut pass = |parts: &mut dyn Iterator<Item = usize>| {
            let mut carried = FREE;
            for part in parts {
                carried = (carried + slope).min(FREE);
                if let Some((most, at)) = pair[part] {
                    let away = at.abs_diff(self.grid.middle(part));
                    carried = carried.min(most + drift(away));
                }
                least[part] = least[part].min(carried);
            }
        };
        pass(&mut (0..self.grid.parts));
        pass(&mut (0..self.grid.parts).rev());
        least
    }

    /// How far each clock can be ahead of each other one, with every bound
    /// loosened by `slack`; `None` when the bounds contradict each other.
    pub fn solve(&self, slack: i64) -> Option<Leads> {
        let n = self.clocks;
        let mut most = vec![FREE; n * n * self.grid.parts];
        for ((before, after), pair) in &self.pairs {
            for (part, bound) in self.spread(pair).into_iter().enumerate() {
                if bound < FREE {
                    most[(part * n + before) * n + after] = bound.saturating_add(slack);
                }
            }
        }
        for table in most.chunks_exact_mut(n * n) {
            for at in 0..n {
                table[at * n + at] = 0;
            }
            for via in 0..n {
                let row: Vec<i64> = table[via * n..(via + 1) * n].to_vec();
                for from in 0..n {
                    let first = table[from * n + via];
                    if first >= FREE {
                        continue;
                    }
                    for (to, second) in row.iter().enumerate() {
                        if *second < FREE {
                            let sum = first.saturating_add(*second);
                            let slot = &mut table[from * n + to];
                            *slot = (*slot).min(sum);
                        }
                    }
                }
            }
            if (0..n).any(|at| table[at * n + at] < 0) {
                return None;
            }
        }
        Some(Leads {
            clocks: n,
            grid: self.grid,
            most,
        })
    }

    /// By how much clocks that are off by `errors` break a bound at the most.
    pub fn broken(&self, error: impl Fn(usize, u64) -> i64) -> i64 {
        let pairs = self.pairs.iter();
        let breach = pairs.flat_map(|((before, after), pair)| {
            let error = &error;
            pair.iter().flatten().map(move |(most, at)| {
                error(*after, *at)
                    .saturating_sub(error(*before, *at))
                    .saturating_sub(*most)
            })
        });
        breach.max().unwrap_or(0).max(0)
    }
}

/// How far each clock can be ahead of each other one, over the time.
pub struct Leads {
    clocks: usize,
    grid: Grid,
    most: Vec<i64>,
}

impl Leads {
    /// How far clock `of` can be ahead of clock `before`, at a part's middle;
    /// [`FREE`]: any length.
    pub fn most(&self, part: usize, of: usize, before: usize) -> i64 {
        self.most[(part * self.clocks + before) * self.clocks + of]
    }

    /// How far clock `of` can be ahead of the clock of a stamp, at that time.
    pub fn lead(&self, of: usize, stamp: Stamp) -> i64 {
        self.most(self.part(stamp.at), of, stamp.clock)
    }

    /// The part that a time is in.
    pub fn part(&self, time: u64) -> usize {
        self.grid.part(time)
    }

    /// A part's beginning, middle and end.
    pub fn corners(&self, part: usize) -> [u64; 3] {
        let middle = self.grid.middle(part);
        let half = self.grid.step / 2 + 1;
        [
            middle.saturating_sub(half),
            middle,
            middle.saturating_add(half),
        ]
    }

    /// The first event came after the second one for certain.
    pub fn is_after(&self, first: Stamp, second: Stamp) -> bool {
        if first.clock == second.clock {
            return first.shown > second.shown;
        }
        let part = self.grid.part(second.at / 2 + first.at / 2);
        let most = self.most(part, first.clock, second.clock);
        most < FREE
            && most.saturating_add(self.grid.drift()) < difference(first.shown, second.shown)
    }

    /// Each clock can be ahead and behind of the other by so much at the most.
    pub fn are_tied(&self, one: usize, other: usize) -> bool {
        // What is bounded at one time is bounded at all.
        self.most(0, one, other) < FREE && self.most(0, other, one) < FREE
    }

    /// The parts of the time.
    pub fn parts(&self) -> std::ops::Range<usize> {
        0..self.grid.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid {
        start: 0,
        step: 1_000,
        parts: 4,
    };

    fn stamp(clock: usize, shown: u64) -> Stamp {
        let at = shown;
        Stamp { clock, shown, at }
    }

    #[test]
    fn bounds_of_both_sides_enclose_a_clock() {
        // Clock 1 is 700 ahead; a message takes 100.
        let mut bounds = Bounds::new(2, GRID);
        bounds.add(stamp(0, 500), stamp(1, 1_300));
        bounds.add(stamp(1, 1_300), stamp(0, 700));
        let leads = bounds.solve(0).unwrap();
        assert!((800..810).contains(&leads.most(0, 1, 0)));
        assert!((-600..-590).contains(&leads.most(0, 0, 1)));
        assert!(leads.is_after(stamp(1, 2_000), stamp(0, 1_100)));
        assert!(!leads.is_after(stamp(1, 2_000), stamp(0, 1_300)));
    }

    #[test]
    fn the_order_of_the_evidence_does_not_matter() {
        let grid = Grid {
            step: 1_000_000,
            ..GRID
        };
        let one = (stamp(0, 100_000), stamp(1, 100_400));
        let other = (stamp(0, 900_000), stamp(1, 900_400));
        let bounds = [[one, other], [other, one]].map(|pairs| {
            let mut bounds = Bounds::new(2, grid);
            pairs
                .iter()
                .for_each(|(before, after)| bounds.add(*before, *after));
            bounds.pairs
        });
        assert_eq!(bounds[0], bounds[1]);
    }

    #[test]
    fn a_third_clock_stands_between() {
        let mut bounds = Bounds::new(3, GRID);
        bounds.add(stamp(0, 500), stamp(1, 600));
        bounds.add(stamp(1, 500), stamp(2, 540));
        let leads = bounds.solve(0).unwrap();
        assert!((140..150).contains(&leads.most(0, 2, 0)));
        assert_eq!(leads.most(0, 0, 2), FREE);
    }

    #[test]
    fn what_cannot_be_is_told() {
        let mut bounds = Bounds::new(2, GRID);
        bounds.add(stamp(0, 900), stamp(1, 500));
        bounds.add(stamp(1, 900), stamp(0, 500));
        assert!(bounds.solve(0).is_none());
        assert!(bounds.solve(1_000).is_some());
    }

    #[test]
    fn a_bound_says_less_about_another_time() {
        let grid = Grid {
            start: 0,
            step: 1_000_000_000,
            parts: 4,
        };
        let mut bounds = Bounds::new(2, grid);
        bounds.add(stamp(0, 500_000_000), stamp(1, 500_000_100));
        let leads = bounds.solve(0).unwrap();
        let (near, far) = (leads.most(0, 1, 0), leads.most(2, 1, 0));
        assert!(near < 110 && far > 390_000 && far < 401_000, "{near} {far}");
    }
}
