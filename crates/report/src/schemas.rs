//! The JSON Schemas of the documents, by their names.

use serde_json::Value;

/// What `tr schema` prints: the subcommand that writes such a document, and its schema.
pub const ALL: [(&str, &str); 6] = [
    ("analyze", include_str!("../schema/analysis.schema.json")),
    ("diff", include_str!("../schema/diff.schema.json")),
    ("pipeline", include_str!("../schema/pipeline.schema.json")),
    ("dump", include_str!("../schema/event.schema.json")),
    ("predict", include_str!("../schema/predict.schema.json")),
    ("summary", include_str!("../schema/summary.schema.json")),
];

/// The name of [`process`].
pub const PROCESS: &str = "process";

/// The schema of a line of `tr analyze --format ndjson`: that of a member of the document's
/// `processes`.
pub fn process() -> Option<String> {
    let (_, analysis) = ALL.iter().find(|(name, _)| *name == "analyze")?;
    let mut document: Value = serde_json::from_str(analysis).ok()?;
    let mut schema = document.pointer_mut("/properties/processes/items")?.take();
    let members = schema.as_object_mut()?;
    for name in ["$schema", "$defs"] {
        members.insert(name.to_owned(), document.get_mut(name)?.take());
    }
    members.insert("$id".to_owned(), "tr.process/1".into());
    members.insert(
        "title".to_owned(),
        "a line of tr analyze --format ndjson".into(),
    );
    Some(serde_json::to_string_pretty(&schema).ok()? + "\n")
}
