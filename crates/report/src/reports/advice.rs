//! The changes that would save time.

use serde_json::{json, Value};
use tr_analyze::model::ProcessIx;

use crate::advice::{self, Advice, Advised};
use crate::facts::path;
use crate::style::{Paint, Style};
use crate::table::Table;
use crate::units;
use crate::view::{Report, View};

/// The processes of a change that text names.
const NAMED: usize = 3;

pub struct AdviceReport<'a> {
    view: View<'a>,
    all: Advised,
}

impl<'a> AdviceReport<'a> {
    pub fn new(view: &View<'a>) -> AdviceReport<'a> {
        AdviceReport {
            view: *view,
            all: path::path_of(view)
                .map(|path| advice::advise(view, &path))
                .unwrap_or_default(),
        }
    }

    fn table(&self) -> Table<'_, &Advice> {
        let pid = |ix: &ProcessIx| self.view.analysis.process(*ix).pid.0;
        Table::new("", |_| String::new())
            .data("kind", |advice: &&Advice| advice.kind.name())
            .data("gain_at_least_ns", |advice| advice.at_least)
            .data("gain_at_most_ns", |advice| advice.gain)
            .data("from_ns", |advice| self.view.since(advice.from))
            .data("to_ns", |advice| self.view.since(advice.to))
            .data("processes", |advice| advice.processes.len())
            .json_data("pids", move |advice| {
                advice.processes.iter().map(pid).collect::<Vec<u32>>()
            })
            .data("finding", |advice| advice.finding.clone())
            .data("action", |advice| advice.action.clone())
    }

    /// The evidence: the processes and the time.
    fn evidence(&self, advice: &Advice) -> String {
        let analysis = self.view.analysis;
        let processes = advice.processes.iter().take(NAMED);
        let names = processes.map(|ix| {
            let process = analysis.process(*ix);
            format!("{} ({})", crate::label::label(process), process.pid.0)
        });
        let names: Vec<String> = names.map(|name| units::shorten(&name, 40)).collect();
        let more = match advice.processes.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {} more", units::count(n as u64)),
        };
        format!(
            "{} s to {} s: {}{more}",
            units::at(self.view.since(advice.from)),
            units::at(self.view.since(advice.to)),
            names.join(", ")
        )
    }
}

/// Writes the first changes, a line each, and what they have in common; of a build that is well
/// as it is, how near it is to its bound.
pub(super) fn lines(out: &mut String, advised: &Advised, most: usize, style: &Style) {
    if let Some(nothing) = nothing(advised) {
        style.line(out, &nothing);
    }
    if advised.changes.is_empty() {
        return;
    }
    style.painted(out, Paint::Bold, TITLE);
    let shown = || advised.changes.iter().take(most);
    let gains: Vec<String> = shown().map(Advice::saves).collect();
    let room = gains.iter().map(|gain| units::width(gain)).max();
    for (advice, gain) in shown().zip(gains) {
        line(
            out,
            advice,
            &units::pad(&gain, room.unwrap_or(0), true),
            style,
        );
    }
    if let Some(together) = together(advised) {
        style.painted(out, Paint::Dim, &format!("  {together}"));
    }
}

fn line(out: &mut String, advice: &Advice, gain: &str, style: &Style) {
    let text = format!("{}: {}", advice.finding, advice.action);
    style.wrapped(out, Paint::Plain, &format!("  {gain}  "), &text);
}

/// The words for changes of which one takes from another's gain.
fn together(advised: &Advised) -> Option<String> {
    let together = units::time(advised.together?);
    Some(format!(
        "up to {together} together: they have a part in common"
    ))
}

/// The words for a build without any change.
fn nothing(advised: &Advised) -> Option<String> {
    let (wall, bound) = advised.nothing?;
    let share = bound.saturating_mul(100) / wall.max(1);
    Some(format!(
        "What to change: nothing; it takes {} and needs at least {} ({share} %)",
        units::time(wall),
        units::time(bound)
    ))
}

/// The title above the lines.
const TITLE: &str = "What to change   (what it saves)";

impl Report for AdviceReport<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        if self.all.changes.is_empty() {
            let text = nothing(&self.all);
            let short = || "What to change: nothing is known of this part".to_owned();
            style.line(&mut out, &text.unwrap_or_else(short));
            return out;
        }
        style.painted(&mut out, Paint::Bold, TITLE);
        for advice in &self.all.changes {
            line(&mut out, advice, &advice.saves(), style);
            if advice.processes.is_empty() {
                continue;
            }
            let evidence = format!("      {}", self.evidence(advice));
            style.painted(
                &mut out,
                Paint::Dim,
                &units::shorten(&evidence, style.width),
            );
        }
        if let Some(together) = together(&self.all) {
            style.line(&mut out, &format!("  {together}"));
        }
        out
    }

    fn json(&self) -> Option<Value> {
        Some(json!({
            "advice": self.table().rows(&self.all.changes),
            "together_at_most_ns": self.all.together,
            "nothing": self.all.nothing.map(|(wall, bound)| json!({
                "wall_ns": wall,
                "at_least_ns": bound,
            })),
        }))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        self.table().csv(&self.all.changes)
    }
}
