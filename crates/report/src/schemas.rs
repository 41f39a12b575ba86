//! The JSON Schemas of the documents that subcommands write, by the names of the subcommands.

use serde_json::Value;

use crate::packed::text;

/// The names of the subcommands that write a JSON document with a schema.
pub const COMMAND_NAMES: [&str; 7] = [
    "analyze", "diff", "pipeline", "dump", "predict", "shards", "summary",
];

/// The JSON Schema of the document that the subcommand with this name writes; `None` if the subcommand writes no such
/// document.
pub fn of(name: &str) -> Option<&'static str> {
    Some(match name {
        "analyze" => text!("analysis.schema.json"),
        "diff" => text!("diff.schema.json"),
        "pipeline" => text!("pipeline.schema.json"),
        "dump" => text!("event.schema.json"),
        "predict" => text!("predict.schema.json"),
        "shards" => text!("shards.schema.json"),
        "summary" => text!("summary.schema.json"),
        _ => return None,
    })
}

/// The name by which `tr schema` prints the schema of a single process ([`process`]).
pub const PROCESS: &str = "process";

/// The JSON Schema of a line of `tr analyze --format ndjson`. A line has the schema of a member of the list `processes`
/// in the JSON document.
pub fn process() -> Option<String> {
    let mut document: Value = serde_json::from_str(of("analyze")?).ok()?;
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
