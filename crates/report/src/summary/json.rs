//! Writes `tr summary --format json`, schema `tr.summary/1` (`schema/summary.schema.json`): at most [`BYTES`]
//! bytes, whatever the recording contains.

use crate::status::Exit;
use serde_json::{json, Value};
use tr_analyze::model::Analysis;

use super::{Summary, TimedPart};
use crate::size;
use tr_failure::{Failure, ScriptLine};
use tr_insight::recordings::imports::TestCount;
use tr_insight::recordings::warnings;
use tr_text::json::document;
use tr_text::units;

/// The largest size in bytes of the JSON document that `tr summary` writes.
const BYTES: usize = 8 << 10;
/// The largest number of members in each list of the summary's JSON. If the document gets too large, its lists have
/// fewer members.
const MEMBERS: usize = 10;
/// The greatest width in columns of a text in the summary's JSON document, if the document is too large even with one
/// member in each list.
const TEXT: usize = 200;

/// The limits by which the summary's JSON document is kept small.
#[derive(Clone, Copy)]
struct Limits {
    /// The largest number of members in each list.
    members: usize,
    /// The greatest width of a text in columns; `None` if all texts are whole.
    columns: Option<usize>,
}

impl Limits {
    fn text(self, text: &str) -> String {
        match self.columns {
            Some(columns) => units::shorten(text, columns),
            None => text.to_owned(),
        }
    }
}

impl Summary {
    /// The summary as a JSON document. If the document would be too long, its lists are shortened. Texts are shortened
    /// only if a document with one member in each list is still too long.
    pub fn json(&self, analysis: &Analysis) -> std::io::Result<String> {
        let whole = (1..=MEMBERS).rev().map(|members| Limits {
            members,
            columns: None,
        });
        let short = (1..=MEMBERS).rev().map(|members| Limits {
            members,
            columns: Some(TEXT),
        });
        for limits in whole.chain(short) {
            let text = document(&self.document(analysis, limits), false)?;
            if text.len() <= BYTES {
                return Ok(text);
            }
        }
        let least = Limits {
            members: 0,
            columns: Some(TEXT),
        };
        document(&self.document(analysis, least), false)
    }

    fn document(&self, analysis: &Analysis, limits: Limits) -> Value {
        let members = limits.members;
        let text = |text: &str| limits.text(text);
        let blank = warnings::is_blank(analysis);
        let known = |value: Option<u64>| value.filter(|_| !blank);
        let times = &analysis.totals.times;
        let texts = |all: &[String]| -> Vec<String> {
            let all = all.iter().take(members);
            all.map(|line| text(line)).collect()
        };
        let timed = |all: &[TimedPart]| -> Vec<Value> {
            let all = all.iter().take(members);
            all.map(|timed| json!({ "name": text(timed.name.whole()), "ns": timed.ns, "failed": timed.failed }))
                .collect()
        };
        let failures = self.failures.reported.iter().take(members);
        let failures = failures.map(|failed| failure(failed, limits));
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
        let slow = slow
            .map(|test| json!({ "name": text(test.name.whole()), "verdict": text(&test.held) }));
        let path = self
            .path
            .as_ref()
            .map(|path| json!({ "wall_ns": path.whole, "parts": timed(&path.parts) }));
        let status = analysis.summary.as_ref().and_then(|summary| summary.status);
        let TestCount { all: tests, failed } = self.tests;
        let mut document = json!({
            "schema": "tr.summary/1",
            "command": text(self.command.whole()),
            "outcome": text(&self.outcome),
            "exit": status.map(Exit::from),
            "wall_ns": known(Some(analysis.wall())),
            "on_cpu_ns": known(times.on_cpu_known()),
            "run_queue_ns": known(times.run_queue_known()),
            "cpus": analysis.meta.cpus.len(),
            "processes": known(Some(analysis.totals.processes)),
            "warnings": texts(&self.warnings),
            "failures": failures.collect::<Vec<_>>(),
            "failures_in_all": self.failures.reported.len(),
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

fn failure(failed: &Failure, limits: Limits) -> Value {
    let above = failed.above.iter().take(limits.members);
    let text = |text: &str| limits.text(text);
    let place = |place: &ScriptLine| {
        let script = place.script.as_deref().map(text);
        json!({ "script": script, "line": place.line })
    };
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

#[cfg(test)]
mod tests {
    use super::*;
    use tr_text::phrase::Phrase;

    fn json(command: &str, steps: &[&str]) -> (usize, Value) {
        let part = |name: &&str| TimedPart {
            name: Phrase::name(name, 20),
            ns: 1,
            failed: false,
        };
        let summary = Summary {
            command: Phrase::name(command, 20),
            steps: steps.iter().map(part).collect(),
            ..Summary::default()
        };
        let text = summary.json(&Analysis::default()).unwrap();
        (text.len(), serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn names_are_whole_and_rows_are_left_out() {
        let (command, name) = ("make ".repeat(60), "x".repeat(3000));
        let (_, document) = json(&command, &["a.o", "gather --all --verbose src"]);
        assert_eq!(document["command"], command);
        assert_eq!(document["steps"][1]["name"], "gather --all --verbose src");
        let (size, document) = json(&command, &[name.as_str(); 3]);
        let steps = document["steps"].as_array().unwrap();
        assert!(size <= BYTES && steps.len() == 2, "{size}");
        assert_eq!(steps[0]["name"], name);
    }

    /// JSON writes a quotation mark as two bytes, so a name of the greatest length that consists of quotation marks is
    /// too large for a document.
    #[test]
    fn names_are_cut_where_one_row_is_too_large() {
        let name = "\"".repeat(4096);
        let (size, document) = json("make", &[&name, "a.o"]);
        assert!(size <= BYTES, "{size}");
        assert_eq!(document["steps"][1]["name"], "a.o");
    }
}
