//! Prints, in place of a report, why the recording lacks the facts that the report shows.

use serde_json::Value;
use tr_format::meta::{Extra, Metadata};

use crate::output::Report;
use tr_text::called::TR;
use tr_text::escape;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::Sheet;

pub struct NotKnown {
    /// The title of the report that cannot be made.
    pub title: &'static str,
    pub why: String,
}

/// The text in place of a report that needs scheduling events, for a recording without any.
pub(super) fn without_events(meta: &Metadata) -> String {
    if meta.is_light() {
        format!("not known with --light: {TR} record without it records the switches")
    } else {
        format!(
            "not known with --method {}: it records no scheduling events ({TR} doctor tells what \
             this machine allows)",
            escape::raw(meta.recorded_by().as_bytes())
        )
    }
}

/// The text that explains why a recording lacks a kind of facts: they were requested but could not be recorded, or
/// `option` of `tr record` was not given.
pub(super) fn without(meta: &Metadata, fact: Extra, option: Option<&str>) -> String {
    why(meta, fact).unwrap_or_else(|| match option {
        Some(option) => format!("not recorded: {TR} record {option} does"),
        None => format!("not known: the trace has no {}' events", fact.name()),
    })
}

/// The reason why a kind of facts could not be recorded, if the recorder has noted one in the trace.
pub(super) fn why(meta: &Metadata, fact: Extra) -> Option<String> {
    let missing = meta.missing(fact)?.to_string();
    Some(escape::raw(missing.as_bytes()))
}

impl Report for NotKnown {
    fn page(&self, _style: &Style) -> Page {
        let mut out = Page::new();
        out.painted(Paint::Bold, self.title);
        out.line(&self.why);
        out
    }

    fn json(&self) -> Option<Value> {
        Some(Value::Null)
    }

    fn sheet(&self) -> Sheet {
        Sheet::default()
    }

    fn warning(&self, text: bool) -> Option<String> {
        (!text).then(|| format!("{}: {}", self.title, self.why))
    }
}
