//! Defines the trait of reports, with the output formats that each report has.

use serde_json::Value;
use tr_text::page::Page;
use tr_text::style::Style;
use tr_text::table::Sheet;

/// A report of `tr analyze`, which can be written as text, Markdown, JSON and CSV.
pub trait Report {
    /// The report's content for people, as text or Markdown. On a narrow terminal, tables have fewer columns.
    fn page(&self, style: &Style) -> Page;

    /// The report of `tr analyze` as text for a terminal or a log.
    fn text(&self, style: &Style) -> String {
        self.page(style).text(style)
    }

    /// The value of this report in the JSON document of `tr analyze`; `None` for a report that only repeats facts which
    /// every such document has.
    fn json(&self) -> Option<Value>;

    /// The rows of the report of `tr analyze` for CSV, with all its tables in one sheet.
    fn sheet(&self) -> Sheet;

    /// A warning that a limit changed what the user requested, for example the largest number of values. `_text` is
    /// whether the output is text: a report whose text mentions the change by itself then returns `None`.
    fn warning(&self, _text: bool) -> Option<String> {
        None
    }
}
