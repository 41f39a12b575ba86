//! Makes a report of a whole recording, for several tests.

use serde_json::Value;
use tr_analyze::model::Analysis;
use tr_insight::Recording;
use tr_report::reports::{Ask, ReportKind, View};
use tr_text::style::Style;

const STYLE: Style = Style {
    width: 100,
    color: false,
    ascii: false,
    markdown: false,
};

/// The report as text, and as JSON.
pub fn report(analysis: &Analysis, kind: ReportKind) -> (String, Value) {
    let chosen: Vec<_> = analysis.process_ids().collect();
    let ask = Ask {
        top: Some(100),
        ..Ask::default()
    };
    let recording = Recording::from(analysis.clone());
    let view = View::new(&recording, &chosen, "x.bin", &ask);
    let report = kind.make(&view);
    (report.text(&STYLE), report.json().unwrap_or_default())
}
