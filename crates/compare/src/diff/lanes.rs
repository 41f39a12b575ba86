//! Draws the timelines on the page of `tr diff`: lanes of processes over the time axis of both runs.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::run::Bar;
use super::Run;
use tr_programs::program_name::ProgramName;
use tr_text::escape::html;
use tr_text::pictures;
use tr_text::units;

/// The number of colours for single programs in the timelines of `tr diff`. All other programs share one further
/// colour.
const COLORS: usize = 8;
/// A divisor of the time axis: a bar shorter than one five-hundredth of the axis (two pixels of a page) is merged with
/// its short neighbours in a lane, and left out of the row of the critical path.
const SHORTEST_BAR: u64 = 500;
/// A divisor of the time axis: a bar has a name only if it is at least one fortieth as long as the axis, because a
/// shorter bar of the page has too little room for a name.
const NAMED_PART: u64 = 40;
/// The largest number of lanes, which are rows of bars, in the timeline of one run.
const LANES: usize = 40;
/// The height in CSS pixels of a lane in a timeline.
const LANE: usize = 18;
/// The height in CSS pixels of a bar in a lane of a timeline.
const BAR: usize = 16;
/// The height, in CSS pixels, of the strip at the bottom of a timeline's bar that shows the states of its
/// process.
const STATES: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Drawn<'a> {
    from: u64,
    to: u64,
    first: &'a Bar,
    /// The number of processes that this bar of the timeline stands for; more than 1 if short bars were
    /// merged.
    count: usize,
    /// Whether all processes that were merged into this bar run the same program.
    alike: bool,
    /// The time in ns that the bar's processes together spent in each state, in the order of
    /// [`Bar::states`].
    states: [u64; 5],
}

impl Drawn<'_> {
    /// The parts of the bar's name; the picture has a space between two parts.
    fn name(&self) -> Vec<String> {
        let count = units::count(self.count as u64);
        match (self.count, self.alike) {
            (1, _) => self.first.label.clone(),
            (_, true) => vec![format!("{count} ×"), self.first.program.to_string()],
            (_, false) => vec![format!("{count} processes")],
        }
    }
}

/// The time axis that the timelines of both runs share on the page of `tr diff`, and the colours of programs
/// in them.
pub(super) struct Axis<'a> {
    /// The length of the timelines' axis in ns. If it is 0, nothing is drawn.
    pub whole: u64,
    ranks: BTreeMap<&'a ProgramName, usize>,
    /// Whether there are programs without a colour of their own.
    others: bool,
}

impl<'a> Axis<'a> {
    /// Makes the axis of both runs' timelines, which ends with the last bar of both runs. The programs whose bars have
    /// the longest time in sum get colours of their own.
    pub fn new(runs: [&'a Run; 2]) -> Axis<'a> {
        let bars = || {
            let runs = runs.into_iter();
            runs.flat_map(|run| run.path.iter().chain(&run.timeline))
        };
        let mut sums = BTreeMap::<&ProgramName, u64>::new();
        for bar in bars() {
            let sum = sums.entry(&bar.program).or_default();
            *sum = sum.saturating_add(bar.to.saturating_sub(bar.from));
        }
        let mut ranked: Vec<(&ProgramName, u64)> = sums.into_iter().collect();
        ranked.sort_unstable_by_key(|(name, ns)| (std::cmp::Reverse(*ns), *name));
        let others = ranked.len() > COLORS;
        let ranked = ranked.into_iter().take(COLORS).enumerate();
        Axis {
            whole: bars().map(|bar| bar.to).max().unwrap_or(0),
            others,
            ranks: ranked.map(|(rank, (name, _))| (name, rank)).collect(),
        }
    }

    /// Writes the legend of the programs' colours, with one entry at its end for all other programs.
    pub fn legend(&self, out: &mut String) {
        let mut programs: Vec<(usize, &ProgramName)> = self
            .ranks
            .iter()
            .map(|(name, rank)| (*rank, *name))
            .collect();
        programs.sort_unstable();
        let programs = programs.into_iter();
        let programs = programs.map(|(rank, name)| (format!("path-job p{rank}"), name.to_string()));
        let others = self
            .others
            .then(|| ("job-beside".to_owned(), "others".to_owned()));
        for (class, name) in programs.chain(others) {
            let _ = write!(
                out,
                "<span class=\"key\"><i class=\"swatch {class}\"></i>{}</span>",
                html(&name)
            );
        }
    }

    fn percent(&self, ns: u64) -> f64 {
        ns as f64 * 100.0 / self.whole as f64
    }

    fn is_short(&self, ns: u64) -> bool {
        ns.saturating_mul(SHORTEST_BAR) < self.whole
    }

    /// Draws a bar of a timeline with its process's name, which is cut at the end of the bar. A short bar has no name.
    fn bar(&self, out: &mut String, bar: &Drawn<'_>, top: usize, height: usize) {
        let length = bar.to.saturating_sub(bar.from);
        let rank = self.ranks.get(&bar.first.program);
        let name = bar.name();
        let text = if length.saturating_mul(NAMED_PART) < self.whole {
            String::new()
        } else {
            name_beside_bar(&name, height)
        };
        let name = html(&name.join(" "));
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

    /// Draws the critical path of a compared run as a single row of bars, without the short ones.
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

    /// Draws the processes of a run, except those that mostly waited for their children, as bars in lanes.
    /// Returns the number of processes for which there was no lane.
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

    /// Distributes bars, which are in the order of their beginning, among lanes in which they do not overlap, and
    /// merges short neighbours. Returns the lanes, and the number of bars for which there was none.
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

/// The SVG of the strip at the lower edge of a timeline's bar. It divides the bar's width by the time in each state.
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

/// The markup of a process's name in its bar. In a bar that is too narrow, the last part of the name stays visible:
/// `cc1 mod10.c`, cut at its end, would be `cc1 mod1…`.
fn name_beside_bar(parts: &[String], height: usize) -> String {
    let Some((last, head @ [_, ..])) = parts.split_last() else {
        return pictures::name(&parts.concat(), height);
    };
    let (head, last) = (html(&head.join(" ")), html(last));
    format!(
        "<foreignObject width=\"100%\" height=\"{height}\"><p class=\"cut-name\"><span>{head} </span>\
         <span><span>{last}</span></span></p></foreignObject>"
    )
}

#[cfg(test)]
#[path = "tests/lanes.rs"]
mod tests;
