//! The output formats of a report.

use serde_json::Value;
use tr_text::page::Page;
use tr_text::style::Style;

/// A report in every output format.
pub trait Report {
    /// The report for people; a narrow terminal may have fewer columns.
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

    /// A limit that changed what was asked for; `text`: unless the text says it.
    fn warning(&self, _text: bool) -> Option<String> {
        None
    }
}
