//! How long the slices on a CPU were: from switch-in to switch-out.

use serde::Serialize;
use serde_json::Value;
use tr_analyze::waits;

use crate::hist::{self, Facts, Hist, SLOT_KEYS};
use crate::members::{members, Members};
use crate::query::By;
use crate::reports::{Report, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::units;

/// The report. With `--by` each group is drawn, otherwise all slices together
/// and a line for each program.
pub struct Histogram<'a> {
    view: View<'a>,
    by: By,
    all: Hist,
    /// Those with the most time first.
    groups: Vec<(Members, Hist)>,
}

impl<'a> Histogram<'a> {
    /// Of the processes that were chosen.
    pub fn new(view: &View<'a>) -> Histogram<'a> {
        let by = view.ask.by.unwrap_or(By::Program);
        let slices = |group: &Members| {
            let threads = group.threads.clone().into_iter();
            let pieces = threads.flat_map(|ix| waits::slices(view.analysis, ix));
            pieces.map(|piece| (piece.length(), piece.whole_slice()))
        };
        let groups = members(view, by);
        let all = Hist::new(groups.iter().flat_map(slices));
        let mut groups: Vec<(Members, Hist)> = groups
            .into_iter()
            .map(|group| {
                let hist = Hist::new(slices(&group));
                (group, hist)
            })
            .filter(|(_, hist)| time(hist) > 0)
            .collect();
        groups.sort_by_key(|(_, hist)| std::cmp::Reverse(time(hist)));
        Histogram {
            view: *view,
            by,
            all,
            groups,
        }
    }
}

fn time(hist: &Hist) -> u64 {
    hist.total() + hist.cut().1
}

impl Report for Histogram<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let lead = "Slices on a CPU   ";
        style.items(&mut out, lead, &self.all.summary("slices"), " · ");
        let top = self.view.ask.top;
        if self.view.ask.by.is_none() {
            out.push_str(&self.all.draw(style));
            let title = units::top(self.by.title(), top, self.groups.len());
            let groups = self.groups.iter().take(top);
            let rows = groups.map(|(group, hist)| (group.name.clone(), hist));
            out.push('\n');
            out.push_str(&hist::table("slices", title, rows).text(style, 0));
            return out;
        }
        for (group, hist) in self.groups.iter().take(top) {
            let pid = group.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
            let room = style.width.saturating_sub(units::width(&pid));
            let name = units::shorten(&group.name, room) + &pid;
            out.push_str(&format!("\n{}\n", style.paint(Paint::Bold, &name)));
            style.items(&mut out, "", &hist.summary("slices"), " · ");
            out.push_str(&hist.draw(style));
        }
        if self.groups.len() > top {
            let more = units::count((self.groups.len() - top) as u64);
            out.push('\n');
            style.line(&mut out, &format!("and {more} more: --top shows them"));
        }
        out
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        #[derive(Serialize)]
        struct Document {
            all: Facts,
            groups: Vec<OfGroup>,
        }
        #[derive(Serialize)]
        struct OfGroup {
            name: String,
            pid: Option<u32>,
            #[serde(flatten)]
            facts: Facts,
        }
        let groups = self.groups.iter().take(self.view.ask.most());
        let groups = groups.map(|(group, hist)| OfGroup {
            name: group.name.clone(),
            pid: group.pid,
            facts: hist.facts(),
        });
        let document = Document {
            all: self.all.facts(),
            groups: groups.collect(),
        };
        serde_json::to_value(document).map(Some)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed(["name", "pid"].into_iter().chain(SLOT_KEYS));
        for (group, hist) in self.groups.iter().take(self.view.ask.most()) {
            let pid = Cell::known(group.pid, Cell::Id);
            hist.records(&[group.name.clone().into(), pid], &mut table);
        }
        table.csv()
    }
}
