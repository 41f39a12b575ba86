//! Draws the differential flame graph on the page of `tr diff`: the programs above, and under each function
//! those that it called.

use std::fmt::Write;

use super::functions::{period, SampledDifference};
use super::profile::{NodeName, ProfilePair};
use super::spread::{signed, Difference};
use super::Diff;
use tr_insight::functions::frames::Name;
use tr_text::escape::html;
use tr_text::pictures;
use tr_text::units;

/// The largest depth, in frames, to which the differential flame graph is drawn.
const LEVELS: usize = 60;
/// The divisor of the flame graph's width that gives the least width of a frame: a frame narrower than one
/// thousandth is not drawn.
const NARROWEST_FRAME: u64 = 1000;
/// The divisor of the flame graph's width that gives the least width of a frame with a name: one fortieth.
const NAMED_PART: u64 = 40;
/// The height of a level of the flame graph in CSS pixels.
const LEVEL: usize = 17;
/// The height of a frame of the flame graph in CSS pixels: one less than a level's, which leaves a gap between levels.
const FRAME: usize = 16;

/// The data from which each frame of the differential flame graph is drawn.
struct Graph<'a> {
    both: &'a ProfilePair,
    /// For each node of the tree of functions, its time including its callees in ns: in the base, and in
    /// the new runs.
    totals: [Vec<u64>; 2],
    /// For each node of the tree of functions, the width of its frame in the flame graph, in ns of sampled
    /// time.
    widths: Vec<u64>,
    whole: u64,
    periods: [u64; 2],
}

/// Adds the differential flame graph to the page of `tr diff`, if all runs of both sides have stacks.
pub(super) fn flame_card(diff: &Diff, out: &mut String) {
    let sides = [&diff.base, &diff.new];
    let Some(both) = ProfilePair::new(sides.map(Vec::as_slice)) else {
        return;
    };
    let periods = sides.map(|runs| period(runs.iter().filter_map(|run| run.profile.as_ref())));
    let totals = both.own.each_ref().map(|own| both.tree.totals(own));
    let (children, programs) = both.tree.children();
    // In the tree of functions, callees have higher node numbers than their callers. So the loop goes backwards, and
    // the widths of the callees are known first.
    let mut widths = vec![0u64; children.len()];
    for node in (0..children.len()).rev() {
        let callees = children.get(node).into_iter().flatten();
        let callees = callees.filter_map(|callee| widths.get(*callee as usize));
        let callees = callees.fold(0u64, |sum, ns| sum.saturating_add(*ns));
        let [base, new] = ProfilePair::at(&totals, u32::try_from(node).unwrap_or(u32::MAX));
        if let Some(width) = widths.get_mut(node) {
            *width = base.max(new).max(callees);
        }
    }
    let width = |node: &u32| widths.get(*node as usize).copied().unwrap_or(0);
    let whole = programs.iter().map(width).fold(0u64, u64::saturating_add);
    if whole == 0 {
        return;
    }
    let graph = Graph {
        both: &both,
        totals,
        whole,
        periods,
        widths,
    };
    graph.draw(out, &children, &programs);
}

impl Graph<'_> {
    fn width(&self, node: u32) -> u64 {
        self.widths.get(node as usize).copied().unwrap_or(0)
    }

    fn percent(&self, ns: u64) -> f64 {
        ns as f64 * 100.0 / self.whole as f64
    }

    fn draw(&self, out: &mut String, children: &[Vec<u32>], programs: &[u32]) {
        let mut frames = String::new();
        let mut levels = 0;
        let mut open = Vec::new();
        self.place(&mut open, programs, 0, 0);
        while let Some((node, from, level)) = open.pop() {
            levels = levels.max(level + 1);
            self.frame(&mut frames, node, from, level);
            if let Some(callees) = children.get(node as usize).filter(|_| level + 1 < LEVELS) {
                self.place(&mut open, callees, from, level + 1);
            }
        }
        let _ = writeln!(
            out,
            "<section class=\"card\"><h2>Functions on a CPU <small>under the functions that called them; a frame is \
             as wide as the longer of its two times: red longer now, blue shorter, grey within the noise of the \
             samples</small></h2>\n<svg id=\"flame\" width=\"100%\" height=\"{}\" role=\"img\" \
             aria-label=\"Differential flame graph; the table of functions has its figures\">{frames}</svg></section>",
            levels * LEVEL
        );
    }

    fn place(&self, open: &mut Vec<(u32, u64, usize)>, functions: &[u32], from: u64, level: usize) {
        let mut at = from;
        for function in functions {
            let width = self.width(*function);
            if width.saturating_mul(NARROWEST_FRAME) >= self.whole {
                open.push((*function, at, level));
            }
            at = at.saturating_add(width);
        }
    }

    fn frame(&self, out: &mut String, node: u32, from: u64, level: usize) {
        let name = self.both.tree.name(node);
        let drawn = name.map(NodeName::text).unwrap_or_default();
        let function = html(&drawn);
        let binary = match name {
            Some(NodeName::Function(Name { binary, .. })) if !binary.is_empty() => {
                format!(" in {}", html(binary))
            }
            _ => String::new(),
        };
        let [base, new] = ProfilePair::at(&self.totals, node);
        let width = self.width(node);
        let time = Difference::new(&[base], &[new]);
        let noisy = time.map(|time| SampledDifference::new(time, self.periods));
        let (mut paint, mut opacity, mut why) = ("currentColor", 0.12, "");
        let change = i128::from(new) - i128::from(base);
        if noisy.is_some_and(|noisy| noisy.differs(1)) {
            paint = if change > 0 { "#d62728" } else { "#1f77b4" };
            opacity = 0.25 + 0.6 * change.unsigned_abs() as f64 / width.max(1) as f64;
        } else if change != 0 {
            why = ", within the noise of the samples";
        }
        let text = if width.saturating_mul(NAMED_PART) < self.whole {
            String::new()
        } else {
            pictures::name(&drawn, FRAME)
        };
        let _ = write!(
            out,
            "<svg x=\"{:.3}%\" y=\"{}\" width=\"{:.3}%\" height=\"{FRAME}\"><title>{function}{binary}: {} → {} ({}){why}</title>\
             <rect width=\"100%\" height=\"100%\" fill=\"{paint}\" fill-opacity=\"{opacity:.2}\" \
             stroke=\"currentColor\" stroke-opacity=\"0.25\"/>{text}</svg>",
            self.percent(from),
            level * LEVEL,
            self.percent(width),
            units::time(base),
            units::time(new),
            signed(change, units::time),
        );
    }
}
