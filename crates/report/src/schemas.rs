//! The JSON Schemas of the documents, by their names.

/// What `tr schema` prints: the subcommand that writes such a document, and its schema.
pub const ALL: [(&str, &str); 5] = [
    ("analyze", include_str!("../schema/analysis.schema.json")),
    ("diff", include_str!("../schema/diff.schema.json")),
    ("pipeline", include_str!("../schema/pipeline.schema.json")),
    ("predict", include_str!("../schema/predict.schema.json")),
    ("summary", include_str!("../schema/summary.schema.json")),
];
