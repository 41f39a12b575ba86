//! Writes `tr summary --format json`, schema `tr.summary/1` (`schema/summary.schema.json`): at most [`BYTES`]
//! bytes, whatever the recording contains.

use serde_json::{json, Value};
use tr_analyze::model::Analysis;

use super::{Summary, TimedPart};
use crate::size;
use tr_insight::exit::Exit;
use tr_insight::failure::{Failure, ScriptLine};
use tr_insight::imports::TestCount;
use tr_insight::warnings;
use tr_text::json::document;
use tr_text::units;

/// The largest size in bytes of the JSON document that `tr summary` writes.
const BYTES: usize = 8 << 10;
/// The largest number of members in each list of the summary's JSON. It is reduced if the document gets too
/// large.
const MEMBERS: usize = 10;
/// The greatest width in columns of a text in the summary's JSON document.
const TEXT: usize = 200;

impl Summary {
    /// The summary as a JSON document. If the document would be too long, its lists are shortened.
    pub fn json(&self, analysis: &Analysis) -> std::io::Result<String> {
        let mut members = MEMBERS;
        loop {
            let text = document(&self.document(analysis, members), false)?;
            if text.len() <= BYTES || members == 0 {
                return Ok(text);
            }
            members -= 1;
        }
    }

    fn document(&self, analysis: &Analysis, members: usize) -> Value {
        let blank = warnings::is_blank(analysis);
        let known = |value: Option<u64>| value.filter(|_| !blank);
        let times = &analysis.totals.times;
        let texts = |all: &[String]| -> Vec<String> {
            let all = all.iter().take(members);
            all.map(|line| text(line)).collect()
        };
        let timed = |all: &[TimedPart]| -> Vec<Value> {
            let all = all.iter().take(members);
            all.map(|timed| json!({ "name": text(&timed.name), "ns": timed.ns, "failed": timed.failed }))
                .collect()
        };
        let failures = self.failures.told.iter().take(members);
        let failures = failures.map(|failed| failure(failed, members));
        let advice = self.advice.iter().take(members).map(|advice| {
            json!({
                "kind": advice.kind.name(),
                "finding": text(advice.finding.whole()),
                "action": text(&advice.action),
                "gain_at_least_ns": advice.at_least,
                "gain_ns": advice.gain,
            })
        });
        let machine = self.machine.iter().take(members);
        let machine = machine.map(
            |advice| json!({ "kind": advice.kind.name(), "finding": text(advice.finding.whole()), "ns": advice.gain }),
        );
        let slow = self.slow.iter().take(members);
        let slow =
            slow.map(|(name, held)| json!({ "name": text(name.whole()), "verdict": text(held) }));
        let path = self
            .path
            .as_ref()
            .map(|path| json!({ "wall_ns": path.whole, "parts": timed(&path.parts) }));
        let status = analysis.summary.as_ref().and_then(|summary| summary.status);
        let TestCount { all: tests, failed } = self.tests;
        let mut document = json!({
            "schema": "tr.summary/1",
            "command": text(&self.command),
            "outcome": text(&self.outcome),
            "exit": status.map(Exit::from),
            "wall_ns": known(Some(analysis.wall())),
            "on_cpu_ns": known(times.on_cpu_known()),
            "run_queue_ns": known(times.run_queue_known()),
            "cpus": analysis.meta.cpus.len(),
            "processes": known(Some(analysis.totals.processes)),
            "warnings": texts(&self.warnings),
            "failures": failures.collect::<Vec<_>>(),
            "failures_in_all": self.failures.told.len(),
            "verdict": self.verdict.as_deref().map(text),
            "blame": self.blame,
            "machine": machine.collect::<Vec<_>>(),
            "advice": advice.collect::<Vec<_>>(),
            "path": path,
            "steps": timed(&self.steps),
            "limit_ns": self.limit,
            "size": self.size.as_ref().map(size::json),
            "tests": { "in_all": tests, "failed": failed, "held_back": slow.collect::<Vec<_>>() },
        });
        if let (Some(cpus), Some(document)) =
            (analysis.machine.limited_to, document.as_object_mut())
        {
            document.insert("cpus_of_build".to_owned(), cpus.into());
        }
        document
    }
}

fn failure(failed: &Failure, members: usize) -> Value {
    let above = failed.above.iter().take(members);
    json!({
        "name": text(failed.name().whole()),
        "end": text(failed.ended().whole()),
        "after_ns": failed.after,
        "pid": failed.pid,
        "above": above.map(|failed| text(failed.name().whole())).collect::<Vec<_>>(),
        "perhaps": failed.above.iter().any(|failed| failed.perhaps),
        "held_back": failed.held_by().map(|held| text(held.whole())),
        "at": failed.place.as_ref().map(place),
        "statement": failed.statement.as_ref().map(|statement| {
            json!({ "at": place(&statement.place), "text": text(&statement.text) })
        }),
    })
}

fn place(place: &ScriptLine) -> Value {
    json!({ "script": place.script.as_deref().map(text), "line": place.line })
}

fn text(text: &str) -> String {
    units::shorten(text, TEXT)
}
