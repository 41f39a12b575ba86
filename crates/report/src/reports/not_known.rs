//! In place of a report of events that the recording lacks.

use serde_json::Value;
use tr_format::meta::{Extra, Metadata};

use super::ReportKind;
use crate::called::TR;
use crate::escape;
use crate::style::{Paint, Style};
use crate::view::{Report, View};

/// The title of the report, and the method of the recording.
pub struct NotKnown {
    title: &'static str,
    why: String,
}

impl NotKnown {
    /// In place of a report of this kind.
    pub fn new(kind: ReportKind, view: &View<'_>) -> NotKnown {
        let meta = &view.analysis.meta;
        let why = match meta.is_light() {
            true => format!("not known with --light: {TR} record without it records the switches"),
            false => format!(
                "not known with --method {}: it records no scheduling events ({TR} doctor tells \
                 what this machine allows)",
                escape::text(meta.recorded_by().as_bytes())
            ),
        };
        let title = kind.title();
        NotKnown { title, why }
    }

    /// In place of a report of facts that the recording lacks: asked for in vain, or not asked for
    /// with this option of `tr record`.
    pub fn of(
        kind: ReportKind,
        view: &View<'_>,
        (fact, option): (Extra, Option<&str>),
    ) -> NotKnown {
        let title = kind.title();
        let why = why(&view.analysis.meta, fact).unwrap_or_else(|| match option {
            Some(option) => format!("not recorded: {TR} record {option} does"),
            None => format!("not known: the trace has no {}' events", fact.name()),
        });
        NotKnown { title, why }
    }

    /// In place of a report of the events' order, which was left out.
    pub fn left_out(kind: ReportKind, why: &str) -> NotKnown {
        NotKnown {
            title: kind.title(),
            why: why.to_owned(),
        }
    }

    /// In place of the report of the machine: an older trace, or one of a single moment.
    pub fn of_machine() -> NotKnown {
        NotKnown {
            title: ReportKind::Machine.title(),
            why: "not known: the trace has no samples of the machine's counters".into(),
        }
    }
}

/// The recorder's words on a fact that it could not record.
pub(super) fn why(meta: &Metadata, fact: Extra) -> Option<String> {
    let missing = meta.missing(fact)?.to_string();
    Some(escape::text(missing.as_bytes()))
}

impl Report for NotKnown {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        style.painted(&mut out, Paint::Bold, self.title);
        style.line(&mut out, &self.why);
        out
    }

    fn json(&self) -> Option<Value> {
        Some(Value::Null)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        Ok(Vec::new())
    }

    fn warning(&self) -> Option<String> {
        Some(format!("{}: {}", self.title, self.why))
    }

    fn text_warns(&self) -> bool {
        true
    }
}
