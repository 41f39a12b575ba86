//! The changes that would save time.

use serde_json::{json, Value};
use tr_analyze::model::ProcessIx;

use crate::advice::{self, Advice};
use crate::facts::path;
use crate::style::{Paint, Style};
use crate::table::Table;
use crate::units;
use crate::view::{Report, View};

/// The processes of a change that text names.
const NAMED: usize = 3;

pub struct AdviceReport<'a> {
    view: View<'a>,
    all: Vec<Advice>,
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

/// Writes the first changes, a line each.
pub(super) fn lines(out: &mut String, all: &[Advice], most: usize, style: &Style) {
    let shown = all.iter().take(most);
    let gains: Vec<String> = shown.clone().map(|it| units::time(it.gain)).collect();
    let room = gains
        .iter()
        .map(|gain| units::width(gain))
        .max()
        .unwrap_or(0);
    for (advice, gain) in shown.zip(gains) {
        let gain = units::pad(&gain, room, true);
        let text = format!("{}: {}", advice.finding, advice.action);
        style.wrapped(out, Paint::Plain, &format!("  {gain}  "), &text);
    }
}

/// The title above the lines.
pub(super) const TITLE: &str = "What to change   (the most that it saves)";

impl Report for AdviceReport<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        if self.all.is_empty() {
            style.line(
                &mut out,
                "What to change: nothing that would save 2 % of the time",
            );
            return out;
        }
        style.painted(&mut out, Paint::Bold, TITLE);
        for advice in &self.all {
            lines(&mut out, std::slice::from_ref(advice), 1, style);
            let evidence = format!("      {}", self.evidence(advice));
            style.painted(
                &mut out,
                Paint::Dim,
                &units::shorten(&evidence, style.width),
            );
        }
        out
    }

    fn json(&self) -> Option<Value> {
        Some(json!({ "advice": self.table().rows(&self.all) }))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        self.table().csv(&self.all)
    }
}
