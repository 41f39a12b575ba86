//! The lengths of the slices on a CPU: from switch-in to switch-out.

use serde_json::{json, Value};
use tr_analyze::waits;

use crate::hist::{self, Groups, Hist};
use crate::members::{members, Members};
use crate::output::Report;
use tr_insight::query::By;
use tr_insight::view::View;
use tr_text::style::Style;

/// The report. With `--by` it draws each group; otherwise all slices together, and
/// lists the programs.
pub struct Histogram<'a> {
    all: Hist,
    /// The groups with the most time first.
    groups: Groups<'a>,
}

impl<'a> Histogram<'a> {
    pub fn new(view: &View<'a>) -> Histogram<'a> {
        let by = view.ask.by.unwrap_or(By::Program);
        let slices = |group: &Members| {
            let threads = group.threads.clone().into_iter();
            let pieces = threads.flat_map(|ix| waits::slices(view.analysis, ix));
            pieces.map(|piece| (piece.length(), piece.whole_slice()))
        };
        let time = |hist: &Hist| hist.total().saturating_add(hist.cut().1);
        let groups = members(view, by);
        let all = Hist::new(groups.iter().flat_map(slices));
        let groups = groups.into_iter().map(|group| {
            let hist = Hist::new(slices(&group));
            (group, hist)
        });
        let mut groups: Vec<_> = groups.filter(|(_, hist)| time(hist) > 0).collect();
        groups.sort_by_key(|(_, hist)| std::cmp::Reverse(time(hist)));
        let groups = Groups {
            view: *view,
            by,
            what: "slices",
            groups,
        };
        Histogram { all, groups }
    }
}

impl Report for Histogram<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let lead = "Slices on a CPU   ";
        style.items(&mut out, lead, self.all.summary("slices"));
        let ask = self.groups.view.ask;
        if ask.by.is_none() {
            out.push_str(&self.all.draw(style));
            out.push('\n');
            return out + &self.groups.table(style);
        }
        self.groups.draw(&mut out, style);
        let all = self.groups.groups.len();
        if all > ask.top {
            out.push('\n');
            style.more(&mut out, all, ask.top, ": --top shows them");
        }
        out
    }

    fn json(&self) -> Option<Value> {
        let groups = self.groups.json();
        let all = hist::table("slices").json(&("", String::new(), None, &self.all));
        Some(json!({"all": all, "groups": groups}))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        hist::csv(self.groups.asked(), false)
    }
}
