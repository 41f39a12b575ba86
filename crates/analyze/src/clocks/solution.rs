//! From what is possible to one answer: which clocks are right, and what the
//! others' errors are.
#![allow(clippy::indexing_slicing)] // into tables that are sized here

use std::collections::{BTreeMap, BTreeSet};

use tr_format::event::CpuId;

use super::bounds::{Bounds, Grid, Leads, FREE};
use super::Clocks;
use crate::model::{self, ClockCorrection};

/// Steps of rounding that may be left between two corrected times, ns.
const ROUNDING: u64 = 4;

/// The clocks as they may be, with all that can be said for them.
pub struct Solution {
    pub clocks: Clocks,
    pub report: model::Clocks,
    spread: u64,
}

struct Maker<'a> {
    leads: &'a Leads,
    /// How many clocks, the recorder's included, which is the last.
    count: usize,
    /// By place and part, ns.
    errors: Vec<Vec<i64>>,
    settled: Vec<bool>,
}

impl Solution {
    /// The answer to these leads. `seen`: the CPUs that have events.
    pub fn new(
        leads: &Leads,
        bounds: &Bounds,
        grid: Grid,
        places: &BTreeMap<CpuId, usize>,
        seen: &BTreeSet<CpuId>,
    ) -> Solution {
        let recorder = places.len();
        let count = recorder + 1;
        let mut maker = Maker {
            leads,
            count,
            errors: vec![vec![0; grid.parts]; count],
            settled: vec![false; count],
        };
        let group = maker.group();
        for at in &group {
            maker.settled[*at] = true;
        }
        maker.settle_middle();
        maker.settle_rest();
        let errors = maker.errors;

        let mut clocks = Clocks::right(grid);
        for (cpu, place) in places {
            if errors[*place].iter().any(|error| *error != 0) {
                clocks.errors.insert(*cpu, errors[*place].clone());
            }
        }
        let broken = bounds.broken(|clock, at| errors[clock][grid.part(at)]);
        let drift = grid.drift().unsigned_abs();
        let rounding = broken.unsigned_abs() + ROUNDING + drift;

        // How far an estimate of one clock against another can be wrong.
        let off = |one: usize, other: usize| {
            let parts = leads.parts();
            let worst = parts.map(|part| {
                let most = leads.most(part, one, other);
                most.saturating_sub(errors[one][part].saturating_sub(errors[other][part]))
            });
            let worst = worst.max().unwrap_or(0).max(0);
            worst.unsigned_abs() + rounding + drift
        };
        let with_events = || places.iter().filter(|(cpu, _)| seen.contains(cpu));
        let ties = |place: usize| {
            let tied = with_events().filter(|(_, other)| leads.are_tied(place, **other));
            tied.count()
        };
        // The one that most others are tied to stands for the right ones.
        let right = group.iter().copied().filter(|at| *at != recorder);
        let reference = right.max_by_key(|at| (ties(*at), std::cmp::Reverse(*at)));
        let reference = reference.unwrap_or(0);
        let tied = |place: usize| place == reference || leads.are_tied(place, reference);
        let all_tied = with_events().all(|(_, place)| tied(*place));
        let mut spread = 0;
        let among = || with_events().map(|(_, at)| *at).filter(|at| tied(*at));
        for one in among() {
            for other in among().filter(|other| *other != one) {
                spread = spread.max(off(one, other));
            }
        }
        // One that must have come after the other is told no earlier than that: at
        // the time of the latest that may have come before, at worst.
        clocks.uncertainty = spread.saturating_mul(2);

        // The recorder reads the clock of some CPU.
        let furthest = |sign: i64| {
            let of = |place: usize| {
                let worst = leads.parts().map(|part| match sign > 0 {
                    true => leads.most(part, place, reference),
                    false => leads.most(part, reference, place),
                });
                worst.max().unwrap_or(0)
            };
            among().map(of).max().unwrap_or(0).min(of(recorder)).max(0)
        };
        let margin = furthest(1).max(furthest(-1)).unsigned_abs() + rounding;
        let corrections = with_events().map(|(cpu, place)| ClockCorrection {
            cpu: *cpu,
            at_start: errors[*place].first().copied().unwrap_or(0),
            at_end: errors[*place].last().copied().unwrap_or(0),
            uncertainty: match *place == reference {
                true => Some(0),
                false => tied(*place).then(|| off(*place, reference).max(off(reference, *place))),
            },
        });
        let report = model::Clocks {
            corrections: corrections.collect(),
            uncertainty: all_tied.then_some(clocks.uncertainty),
            margin: all_tied.then_some(margin.saturating_add(spread)),
            violations_before: 0,
        };
        Solution {
            clocks,
            report,
            spread,
        }
    }

    /// How far two corrected times can be wrong against each other, ns.
    pub fn spread(&self) -> u64 {
        self.spread
    }
}

impl Maker<'_> {
    /// The two may be equal all the time.
    fn agree(&self, one: usize, other: usize) -> bool {
        self.leads.parts().all(|part| {
            self.leads.most(part, one, other) >= 0 && self.leads.most(part, other, one) >= 0
        })
    }

    /// The largest group of clocks that may all be equal; the recorder's is one of
    /// them, unless it agrees with none. All together may be equal when any two
    /// may: what a third one says of two is in their leads already.
    fn group(&self) -> Vec<usize> {
        let recorder = self.count - 1;
        let agree: Vec<Vec<bool>> = (0..self.count)
            .map(|one| {
                (0..self.count)
                    .map(|other| self.agree(one, other))
                    .collect()
            })
            .collect();
        let with = |seed: Vec<usize>| {
            let mut group = seed;
            for (at, with) in agree.iter().enumerate().take(recorder) {
                if !group.contains(&at) && group.iter().all(|in_it| with[*in_it]) {
                    group.push(at);
                }
            }
            group
        };
        let mut groups: Vec<Vec<usize>> = (0..recorder)
            .filter(|at| agree[recorder][*at])
            .map(|at| with(vec![recorder, at]))
            .collect();
        if groups.is_empty() {
            groups = (0..recorder).map(|at| with(vec![at])).collect();
        }
        // Of several, the one by whose clock COMMAND ran soonest after the start,
        // as it does; then the one with the lowest number.
        let after = |group: &Vec<usize>| {
            let leads = group.iter().map(|at| self.leads.most(0, *at, recorder));
            leads.filter(|lead| *lead > 0).min()
        };
        let rank = |group: &Vec<usize>| (group.len(), std::cmp::Reverse(after(group)));
        let best = groups.iter().map(rank).max();
        let first = groups.iter().find(|group| Some(rank(group)) == best);
        first.cloned().unwrap_or_default()
    }

    /// How far a clock may be ahead of the settled ones' time in a part, and how
    /// far it must: [`FREE`] and its opposite where nothing says so.
    fn limits(&self, at: usize, part: usize, settled: &[usize]) -> (i64, i64) {
        let (mut least, mut most) = (-FREE, FREE);
        for other in settled {
            let error = self.errors[*other][part];
            let ahead = self.leads.most(part, at, *other);
            if ahead < FREE {
                most = most.min(error + ahead);
            }
            let behind = self.leads.most(part, *other, at);
            if behind < FREE {
                least = least.max(error - behind);
            }
        }
        (least, most)
    }

    /// Clocks that are bounded from both sides are put into the middle. All of
    /// them together may be so: all at their lower ends may, and all at their
    /// upper ends.
    fn settle_middle(&mut self) {
        let right: Vec<usize> = (0..self.count).filter(|at| self.settled[*at]).collect();
        for at in 0..self.count {
            if self.settled[at] {
                continue;
            }
            let limits = self.leads.parts().map(|part| self.limits(at, part, &right));
            let limits: Vec<(i64, i64)> = limits.collect();
            if limits
                .iter()
                .all(|(least, most)| *least > -FREE && *most < FREE)
            {
                let middle = |(least, most): &(i64, i64)| least + (most - least) / 2;
                self.errors[at] = limits.iter().map(middle).collect();
                self.settled[at] = true;
            }
        }
    }

    /// The others are moved as little as must be.
    fn settle_rest(&mut self) {
        for at in 0..self.count - 1 {
            if self.settled[at] {
                continue;
            }
            let settled: Vec<usize> = (0..self.count).filter(|at| self.settled[*at]).collect();
            for part in self.leads.parts() {
                let (least, most) = self.limits(at, part, &settled);
                self.errors[at][part] = 0.min(most).max(least.min(most));
            }
            self.settled[at] = true;
        }
    }
}
