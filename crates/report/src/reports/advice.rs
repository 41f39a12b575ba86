//! The report `advice`: the changes to the build that would save time, each with a forecast.

use serde_json::{json, Value};
use tr_analyze::model::{Basis, ProcessIx};

use crate::output::Report;
use crate::size;
use tr_advice::{Advice, BuildAdvice};
use tr_insight::path;
use tr_insight::resources::size::RunnerSize;
use tr_insight::views::view::View;
use tr_text::called::TR;
use tr_text::page::{Page, Span};
use tr_text::style::{Paint, Style};
use tr_text::table::{Sheet, Table};
use tr_text::units;

/// The largest number of processes that the text of a piece of advice names.
const MOST_NAMED: usize = 3;

/// The largest number of pids that the JSON lists for a piece of advice. The JSON also has the number of all processes.
const PIDS: usize = 100;

pub struct AdviceReport<'a> {
    view: View<'a>,
    all: BuildAdvice,
}

impl<'a> AdviceReport<'a> {
    pub fn new(view: &View<'a>) -> AdviceReport<'a> {
        AdviceReport {
            view: *view,
            all: path::path_of(view)
                .map(|path| tr_advice::advise(view, &path, None))
                .unwrap_or_default(),
        }
    }

    fn table(&self) -> Table<'_, &Advice> {
        let pid = |ix: &ProcessIx| self.view.analysis.process(*ix).pid.0;
        Table::unnamed()
            .data("kind", |advice: &&Advice| advice.kind.name())
            .data("gain_at_least_ns", |advice| advice.at_least)
            .data("gain_at_most_ns", |advice| advice.gain)
            .data("from_ns", |advice| self.view.since(advice.from))
            .data("to_ns", |advice| self.view.since(advice.to))
            .data("processes", |advice| advice.processes.len())
            .json_data("pids", move |advice| {
                let processes = advice.processes.iter().take(PIDS);
                processes.map(pid).collect::<Vec<u32>>()
            })
            .phrase_data("finding", |advice| Some(advice.finding.clone()))
            .data("action", |advice| advice.action.clone())
    }

    /// The evidence for a piece of advice as text: the time that it is about, and as many of the responsible processes
    /// as fit into `room` columns, but at least one.
    fn evidence(&self, advice: &Advice, room: usize) -> String {
        let analysis = self.view.analysis;
        let processes = advice.processes.iter().take(MOST_NAMED);
        let names = processes.map(|ix| {
            let process = analysis.process(*ix);
            format!(
                "{} ({})",
                tr_insight::processes::label::label(process),
                process.pid.0
            )
        });
        let names: Vec<String> = names.map(|name| units::shorten(&name, 40)).collect();
        let text = |names: &[String]| {
            let more = match advice.processes.len().saturating_sub(names.len()) {
                0 => String::new(),
                n => format!(" and {} more", units::count(n as u64)),
            };
            format!(
                "{} s to {} s: {}{more}",
                units::at(self.view.since(advice.from)),
                units::at(self.view.since(advice.to)),
                names.join(", ")
            )
        };
        let fit = (1..=names.len()).rev();
        let fit = fit.filter_map(|count| Some(text(names.get(..count)?)));
        let mut fit = fit.skip_while(|text| units::width(text) > room);
        fit.next()
            .unwrap_or_else(|| text(names.get(..1).unwrap_or_default()))
    }
}

/// Writes the verdict on the build, a line for each of the first `most` changes that would save time, and
/// the forecast for all these changes together.
pub(super) fn lines(out: &mut Page, advised: &BuildAdvice, most: usize) {
    verdict(out, advised);
    let changes: Vec<&Advice> = advised.to_change().take(most).collect();
    if changes.is_empty() {
        return;
    }
    out.blank();
    out.painted(Paint::Bold, TITLE);
    let room = changes
        .iter()
        .map(|advice| units::width(&advice.saves("≤")))
        .max();
    for advice in &changes {
        let gain = units::pad(&advice.saves("≤"), room.unwrap_or(0), true);
        line(out, advice, &gain);
    }
    if let Some(combined) = advised.combined(changes.len()) {
        let text = combined.text(changes.len());
        out.painted(Paint::Dim, &format!("  {text}"));
    }
}

fn verdict(out: &mut Page, advised: &BuildAdvice) {
    if let Some(verdict) = &advised.verdict {
        out.led(Span::new(Paint::Bold, LEAD), verdict.text().into());
    }
}

fn line(out: &mut Page, advice: &Advice, gain: &str) {
    let text = format!("{}: {}", advice.finding.short(), advice.action);
    out.wrapped(Paint::Plain, &format!("  {gain}  "), &text);
}

const LEAD: &str = "Verdict  ";

const TITLE: &str = "What to change   (what it saves)";

impl Report for AdviceReport<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        if self.all.verdict.is_none() {
            let why = match self.view.analysis.basis() {
                Basis::Events => "nothing is known of this part".to_owned(),
                _ => format!("not known without scheduling events ({TR} doctor)"),
            };
            out.line(&format!("What to change: {why}"));
            return out;
        }
        verdict(&mut out, &self.all);
        if self.all.to_change().next().is_some() {
            out.blank();
            out.painted(Paint::Bold, TITLE);
        }
        for advice in self.all.to_change() {
            line(&mut out, advice, &advice.saves("≤"));
            if advice.processes.is_empty() {
                continue;
            }
            let evidence = self.evidence(advice, style.width.saturating_sub(6));
            out.wrapped(Paint::Dim, "      ", &evidence);
        }
        let shown = self.all.to_change().count();
        if let Some(combined) = self.all.combined(shown) {
            out.sentence("  ", &combined.text(shown));
        }
        out
    }

    fn json(&self) -> Option<Value> {
        let verdict = self.all.verdict.as_ref().map(|verdict| {
            let names = verdict.names.iter();
            let names = names.map(|(name, ns)| json!({"comm": name, "ns": ns}));
            let open = verdict.open.iter();
            let open = open.map(|point| json!({"what": point.kind.name(), "ns": point.ns}));
            json!({
                "blame": verdict.blame.name(),
                "wall_ns": verdict.wall,
                "alone_ns": verdict.alone,
                "alone_at_least_ns": verdict.alone_at_least,
                "alone_at_most_ns": verdict.alone_at_most,
                "others_ns": verdict.others,
                "others": names.collect::<Vec<_>>(),
                "nobody_ns": verdict.nobody,
                "quota_ns": verdict.quota,
                "quota_of": verdict.quota_of,
                "stolen_ns": verdict.stolen,
                "changes_at_most_ns": verdict.changes,
                "bound_ns": verdict.bound,
                "not_judged": open.collect::<Vec<_>>(),
            })
        });
        Some(json!({
            "verdict": verdict,
            "advice": self.table().rows(&self.all.changes),
            "together_at_most_ns": self.all.together,
            "combined": self.all.combined(self.all.changes.len()).map(|combined| json!({
                "changes": combined.changes,
                "wall_ns": combined.from,
                "low_ns": combined.to.0,
                "high_ns": combined.to.1,
            })),
            "size": RunnerSize::new(&self.view, self.all.cpus).map(|size| size::json(&size)),
            "nothing": self.all.nothing.map(|(wall, bound)| json!({
                "wall_ns": wall,
                "at_least_ns": bound,
            })),
        }))
    }

    fn sheet(&self) -> Sheet {
        self.table().sheet(&self.all.changes)
    }
}
