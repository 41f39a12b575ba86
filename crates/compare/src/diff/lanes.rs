//! Draws the timelines on the page of `tr diff`: lanes of processes over the time axis of both runs.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::run::Bar;
use super::Run;
use tr_text::escape::html;
use tr_text::pictures;
use tr_text::units;

/// The number of colours of programs; the last colour is for all other programs.
const COLORS: usize = 8;
/// The divisor of the axis: a bar shorter than one five-hundredth of it is merged with its short neighbours
/// in the lane. So narrow a bar is two pixels of a page.
const SHORT: u64 = 500;
/// The divisor of the axis: a bar shorter than one fortieth of the axis of the page has no name, because the
/// part of a name that fits says nothing.
const NAMED: u64 = 40;
/// The largest number of lanes of a run.
const LANES: usize = 40;
/// The height of a lane and of its bar, in CSS pixels.
const LANE: usize = 18;
const BAR: usize = 16;
/// The height of the strip of states at the bottom of a bar, in CSS pixels.
const STATES: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Drawn<'a> {
    from: u64,
    to: u64,
    first: &'a Bar,
    /// The number of processes that the bar stands for.
    count: usize,
    /// Whether all processes of the bar run the program of the first one.
    alike: bool,
    /// The times of the bar's processes in each state, as in [`Bar::states`].
    states: [u64; 5],
}

impl Drawn<'_> {
    fn name(&self) -> String {
        match (self.count, self.alike) {
            (1, _) => self.first.label.clone(),
            (count, true) => format!("{} × {}", units::count(count as u64), self.first.program),
            (count, false) => format!("{} processes", units::count(count as u64)),
        }
    }
}

/// The time axis that both runs share, and the colours of programs.
pub(super) struct Axis<'a> {
    /// The length of the axis in ns; nothing is drawn on an axis without length.
    pub whole: u64,
    ranks: BTreeMap<&'a str, usize>,
}

impl<'a> Axis<'a> {
    /// An axis with the length of the longer run. The programs with the longest bars get colours.
    pub fn new(runs: [&'a Run; 2]) -> Axis<'a> {
        let bars = || {
            let runs = runs.into_iter();
            runs.flat_map(|run| run.path.iter().chain(&run.timeline))
        };
        let mut sums = BTreeMap::<&str, u64>::new();
        for bar in bars() {
            let sum = sums.entry(&bar.program).or_default();
            *sum = sum.saturating_add(bar.to.saturating_sub(bar.from));
        }
        let mut ranked: Vec<(&str, u64)> = sums.into_iter().collect();
        ranked.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), *name));
        let ranked = ranked.into_iter().take(COLORS).enumerate();
        Axis {
            whole: bars().map(|bar| bar.to).max().unwrap_or(0),
            ranks: ranked.map(|(rank, (name, _))| (name, rank)).collect(),
        }
    }

    fn percent(&self, ns: u64) -> f64 {
        ns as f64 * 100.0 / self.whole as f64
    }

    fn is_short(&self, ns: u64) -> bool {
        ns.saturating_mul(SHORT) < self.whole
    }

    /// Draws a bar with its name. The name is cut if it is longer than the bar.
    fn bar(&self, out: &mut String, bar: &Drawn<'_>, top: usize, height: usize) {
        let length = bar.to.saturating_sub(bar.from);
        let rank = self.ranks.get(bar.first.program.as_str());
        let name = html(&bar.name());
        let text = if length.saturating_mul(NAMED) < self.whole {
            String::new()
        } else {
            pictures::name(&bar.name(), height)
        };
        let states = if self.is_short(length) {
            String::new()
        } else {
            strip(&bar.states, height)
        };
        let _ = write!(
            out,
            "<svg x=\"{:.3}%\" y=\"{top}\" width=\"{:.3}%\" height=\"{height}\"><title>{name}: {} from {} s</title>\
             <rect class=\"p{}\" width=\"100%\" height=\"100%\"/>{states}{text}</svg>",
            self.percent(bar.from),
            self.percent(length.max(self.whole / 2000)),
            units::time(length),
            units::at(bar.from),
            rank.unwrap_or(&COLORS),
        );
    }

    /// Draws the critical path of a run as one lane.
    pub fn path(&self, out: &mut String, name: &str, run: &Run) {
        let _ = write!(
            out,
            "<svg class=\"path-bar\" id=\"path-{name}\" height=\"26\" role=\"img\" aria-label=\"Critical path of {name}\">"
        );
        for bar in &run.path {
            let drawn = one(bar);
            if !self.is_short(bar.to.saturating_sub(bar.from)) {
                self.bar(out, &drawn, 0, 26);
            }
        }
        out.push_str("</svg>\n");
    }

    /// Draws all processes of a run that did more than wait for others. Returns how many got no lane.
    pub fn timeline(&self, out: &mut String, name: &str, run: &Run) -> usize {
        let (lanes, left_out) = self.pack(&run.timeline);
        let _ = write!(
            out,
            "<svg class=\"path-bar\" id=\"lanes-{name}\" height=\"{}\" role=\"img\" aria-label=\"Processes of {name}\">",
            lanes.len() * LANE
        );
        for (lane, bars) in lanes.iter().enumerate() {
            for bar in bars {
                self.bar(out, bar, lane * LANE, BAR);
            }
        }
        out.push_str("</svg>\n");
        left_out
    }

    /// Puts the bars, in order of their beginning, into the first lane with room.
    fn pack<'b>(&self, bars: &'b [Bar]) -> (Vec<Vec<Drawn<'b>>>, usize) {
        let mut lanes: Vec<Vec<Drawn<'b>>> = Vec::new();
        let mut left_out = 0;
        for bar in bars {
            let free = |lane: &Vec<Drawn<'_>>| lane.last().is_none_or(|last| last.to <= bar.from);
            let lane = match lanes.iter().position(free) {
                Some(lane) => lane,
                None if lanes.len() < LANES => {
                    lanes.push(Vec::new());
                    lanes.len() - 1
                }
                None => {
                    left_out += 1;
                    continue;
                }
            };
            let Some(lane) = lanes.get_mut(lane) else {
                continue;
            };
            let short = |from: u64, to: u64| self.is_short(to.saturating_sub(from));
            match lane.last_mut() {
                Some(last)
                    if short(bar.from, bar.to)
                        && short(last.to, bar.from)
                        && (last.count > 1 || short(last.from, last.to)) =>
                {
                    last.to = bar.to;
                    last.count += 1;
                    last.alike &= last.first.program == bar.program;
                    for (sum, ns) in last.states.iter_mut().zip(bar.states) {
                        *sum = sum.saturating_add(ns);
                    }
                }
                _ => lane.push(one(bar)),
            }
        }
        (lanes, left_out)
    }
}

/// Draws the shares of the states along the lower edge of a bar.
fn strip(states: &[u64; 5], height: usize) -> String {
    let whole = states.iter().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    let mut out = String::new();
    let mut from = 0.0;
    for (state, ns) in states.iter().enumerate().filter(|(_, ns)| **ns > 0) {
        let wide = *ns as f64 * 100.0 / whole as f64;
        let y = height.saturating_sub(STATES);
        let _ = write!(
            out,
            "<rect class=\"s{state}\" x=\"{from:.1}%\" y=\"{y}\" width=\"{wide:.1}%\" height=\"{STATES}\"/>"
        );
        from += wide;
    }
    out
}

fn one(bar: &Bar) -> Drawn<'_> {
    Drawn {
        from: bar.from,
        to: bar.to,
        first: bar,
        count: 1,
        alike: true,
        states: bar.states,
    }
}

#[cfg(test)]
#[path = "tests/lanes.rs"]
mod tests;
