//! Validates JSON documents against the schemas in `crates/report/schema`. Only the keywords that these schemas use are
//! implemented, since a complete crate has 60 dependencies. Any other keyword is an error, so that no keyword remains
//! unchecked.

use serde_json::{Map, Value};

/// Validates a document. The error names the first violation of the schema, and the path to it.
pub fn validate(schema: &Value, document: &Value) -> Result<(), String> {
    check(schema, schema, document).map_err(|why| format!("the document{why}"))
}

/// Validates a value. The error begins with the path to the value that violates the schema.
fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else {
        return match schema {
            Value::Bool(true) => Ok(()),
            _ => Err(": nothing is allowed here".into()),
        };
    };
    for (keyword, want) in keywords {
        let good = match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => {
                check(root, definition(root, want)?, value)?;
                true
            }
            "type" => match want {
                Value::Array(types) => types.iter().any(|name| is(value, name)),
                name => is(value, name),
            },
            "const" => value == want,
            "enum" => want.as_array().is_some_and(|all| all.contains(value)),
            "anyOf" => {
                let mut choices = want.as_array().into_iter().flatten();
                choices.any(|choice| check(root, choice, value).is_ok())
            }
            "minimum" => number(value).is_none_or(|n| Some(n) >= number(want)),
            "maximum" => number(value).is_none_or(|n| Some(n) <= number(want)),
            "minItems" => length(value).is_none_or(|n| Some(n) >= want.as_u64()),
            "maxItems" => length(value).is_none_or(|n| Some(n) <= want.as_u64()),
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, want, item).map_err(|why| format!("[{at}]{why}"))?;
                }
                true
            }
            "required"
            | "dependentRequired"
            | "properties"
            | "additionalProperties"
            | "propertyNames" => {
                if let Some(object) = value.as_object() {
                    members(root, keywords, keyword, object)?;
                }
                true
            }
            other => return Err(format!(": the schema's keyword {other} is not known")),
        };
        if !good {
            return Err(format!(": {value} is not of {keyword} {want}"));
        }
    }
    Ok(())
}

/// Checks the keywords of a schema that are about the members of objects.
fn members(
    root: &Value,
    keywords: &Map<String, Value>,
    keyword: &str,
    object: &Map<String, Value>,
) -> Result<(), String> {
    let want = &keywords[keyword];
    let all_of = |names: &Value| -> Result<(), String> {
        let names = names.as_array().ok_or(": a list of names is expected")?;
        match names
            .iter()
            .find(|n| !n.as_str().is_some_and(|n| object.contains_key(n)))
        {
            Some(name) => Err(format!(": {name} is missing")),
            None => Ok(()),
        }
    };
    let listed = keywords.get("properties").and_then(Value::as_object);
    match keyword {
        "required" => all_of(want)?,
        "dependentRequired" => {
            let rules = want.as_object().into_iter().flatten();
            for (_, names) in rules.filter(|(name, _)| object.contains_key(*name)) {
                all_of(names)?;
            }
        }
        "propertyNames" => {
            for name in object.keys() {
                check(root, want, &Value::from(name.as_str()))?;
            }
        }
        _ => {
            for (name, member) in object {
                let rule = match listed.and_then(|listed| listed.get(name)) {
                    Some(rule) if keyword == "properties" => rule,
                    None if keyword == "additionalProperties" => want,
                    _ => continue,
                };
                check(root, rule, member).map_err(|why| format!(".{name}{why}"))?;
            }
        }
    }
    Ok(())
}

/// The schema that a reference `#/$defs/NAME` names.
fn definition<'a>(root: &'a Value, reference: &Value) -> Result<&'a Value, String> {
    let name = reference.as_str().and_then(|r| r.strip_prefix("#/$defs/"));
    name.and_then(|name| root["$defs"].get(name))
        .ok_or_else(|| format!(": the schema has no {reference}"))
}

fn is(value: &Value, name: &Value) -> bool {
    match name.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}
