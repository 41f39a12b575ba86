//! Defines the output formats that each report has.

use serde_json::Value;
use tr_text::page::Page;
use tr_text::style::Style;

/// A report that can be printed in every output format.
pub trait Report {
    /// The report for people. A narrow terminal may get fewer columns.
    fn page(&self, style: &Style) -> Page;

    /// The report for a terminal or a log.
    fn text(&self, style: &Style) -> String {
        self.page(style).text(style)
    }

    /// The report's value in the JSON document; `None` for a report that every
    /// document has.
    fn json(&self) -> Option<Value>;

    /// The report as one CSV table.
    fn csv(&self) -> Result<Vec<u8>, csv::Error>;

    /// The warning that a limit changed what the user requested. With `text`, there is no warning if the text of the
    /// report already says it.
    fn warning(&self, _text: bool) -> Option<String> {
        None
    }
}
