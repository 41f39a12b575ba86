//! Reads OTLP traces: JSON (an object, a list of them or one in each line, as a collector writes it) and protobuf.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::Deserialize;
use serde_json::Value;
use tr_placing::spans::{Clock, Span, Spans, TestResult, WORD, WORDS};

use crate::chrome::own_words;
use crate::encoding;
use crate::error::Error;
use crate::limits::RECORDS;

pub mod messages;
mod protobuf;

pub(crate) use protobuf::read as read_protobuf;

const FORMAT: &str = "OTLP";

/// The largest number of attributes that are read of one OTLP span.
const ATTRIBUTES: usize = 128;

/// The status code of an OTLP span that has failed.
const ERROR: i64 = 2;

#[derive(Deserialize)]
struct Document {
    #[serde(
        alias = "resourceSpans",
        alias = "resource_spans",
        alias = "batches",
        default
    )]
    resources: Flat<ResourceSpans>,
}

#[derive(Deserialize)]
struct ResourceSpans {
    #[serde(default)]
    resource: Attributed,
    #[serde(
        alias = "scopeSpans",
        alias = "scope_spans",
        alias = "instrumentationLibrarySpans",
        default
    )]
    scopes: Flat<ScopeSpans>,
}

#[derive(Default, Deserialize)]
struct Attributed {
    #[serde(default)]
    attributes: Attributes,
}

#[derive(Deserialize)]
struct ScopeSpans {
    #[serde(default)]
    spans: Flat<JsonSpan>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonSpan {
    #[serde(default)]
    name: String,
    #[serde(default)]
    span_id: String,
    #[serde(default)]
    parent_span_id: String,
    #[serde(default)]
    start_time_unix_nano: Number,
    #[serde(default)]
    end_time_unix_nano: Number,
    #[serde(default)]
    attributes: Attributes,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    code: Number,
}

/// A number in OTLP's JSON, or a text that stands for one: 64-bit integers are written as texts,
/// and some writers use the names of enum values.
#[derive(Clone, Copy, Default)]
struct Number(i64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Number(match Value::deserialize(deserializer)? {
            Value::String(text) if text == "STATUS_CODE_ERROR" => ERROR,
            Value::String(text) => text.parse().unwrap_or(0),
            Value::Number(number) => number.as_i64().unwrap_or(0),
            _ => 0,
        }))
    }
}

/// The process of an OTLP span and what kind of span it is, as the attributes of the span or of its
/// resource say.
#[derive(Clone, Debug, Default)]
struct Attributes {
    pid: Option<u32>,
    is_test: bool,
    has_passed: Option<bool>,
    words: Vec<String>,
}

impl Attributes {
    /// Reads a text attribute of an OTLP span or resource. Some attributes of OpenTelemetry's semantic conventions say
    /// which process ran the span, or how a test ended. The values of most other attributes are kept as words of the
    /// span.
    fn add_text(&mut self, key: &str, text: String) {
        match key {
            "test.case.name" | "test.suite.name" => self.is_test |= key == "test.case.name",
            "test.case.result.status" => self.has_passed = Some(text == "pass"),
            "process.pid" => self.pid = self.pid.or(text.parse().ok()),
            // All processes of a program have equal attributes with these keys, so they do not tell processes apart.
            _ if key.starts_with("telemetry.") || key.starts_with("process.runtime.") => {}
            _ if key.starts_with("service.") => {}
            _ => {
                if (1..=WORD).contains(&text.len()) && self.words.len() < WORDS {
                    self.words.push(text);
                }
            }
        }
    }

    fn add_number(&mut self, key: &str, number: i64) {
        if key == "process.pid" {
            self.pid = u32::try_from(number).ok();
        }
    }
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct KeyValue {
            #[serde(default)]
            key: String,
            #[serde(default)]
            value: Value,
        }
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Attributes;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of attributes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Attributes, A::Error> {
                let (mut all, mut count) = (Attributes::default(), 0);
                while let Some(attribute) = list.next_element::<KeyValue>()? {
                    count += 1;
                    if count > ATTRIBUTES {
                        continue;
                    }
                    let value = &attribute.value;
                    if let Some(text) = value.get("stringValue").and_then(Value::as_str) {
                        all.add_text(&attribute.key, text.to_owned());
                    }
                    let number = value.get("intValue").map(|number| match number.as_str() {
                        Some(text) => text.parse().ok(),
                        None => number.as_i64(),
                    });
                    if let Some(Some(number)) = number {
                        all.add_number(&attribute.key, number);
                    }
                    let list = value.get("arrayValue").and_then(|list| list.get("values"));
                    for value in list.and_then(Value::as_array).into_iter().flatten() {
                        if let Some(text) = value.get("stringValue").and_then(Value::as_str) {
                            all.add_text(&attribute.key, text.to_owned());
                        }
                    }
                }
                Ok(all)
            }

            fn visit_unit<E>(self) -> Result<Attributes, E> {
                Ok(Attributes::default())
            }
        }
        deserializer.deserialize_any(All)
    }
}

/// An OTLP span with the ids of itself and its parent, before the parent is found.
#[derive(Debug)]
struct Raw {
    span: Span,
    id: String,
    parent: String,
}

/// The data of an OTLP span that the JSON and the protobuf encoding have in common.
struct Parts {
    name: String,
    id: String,
    parent: String,
    /// The beginning of the OTLP span in ns since 1970.
    from: i64,
    to: i64,
    attributes: Attributes,
    has_failed: bool,
}

impl Parts {
    fn raw(self) -> Raw {
        let mut words = self.attributes.words;
        words.extend(own_words(&self.name));
        words.truncate(WORDS);
        let has_failed = self
            .attributes
            .has_passed
            .map_or(self.has_failed, |passed| !passed);
        let result = if has_failed {
            TestResult::Failed
        } else {
            TestResult::Passed
        };
        Raw {
            id: self.id,
            parent: self.parent,
            span: Span {
                name: self.name,
                last_part: None,
                from: self.from,
                to: self.to.max(self.from),
                pid: self.attributes.pid,
                tid: None,
                parent: None,
                is_test: self.attributes.is_test,
                result: (self.attributes.is_test || has_failed).then_some(result),
                words,
            },
        }
    }
}

/// Collects the spans of an OTLP list in JSON, also those in nested elements, while the list is read. The list itself
/// is not kept in memory.
struct Flat<T> {
    spans: Vec<Raw>,
    of_list: PhantomData<T>,
}

impl<T> Default for Flat<T> {
    fn default() -> Self {
        Flat {
            spans: Vec::new(),
            of_list: PhantomData,
        }
    }
}

/// An element of an OTLP list that contains spans or is one.
trait HasSpans {
    fn add_to(self, spans: &mut Vec<Raw>);
}

impl HasSpans for JsonSpan {
    fn add_to(self, spans: &mut Vec<Raw>) {
        let parts = Parts {
            name: self.name,
            id: self.span_id,
            parent: self.parent_span_id,
            from: self.start_time_unix_nano.0,
            to: self.end_time_unix_nano.0,
            attributes: self.attributes,
            has_failed: self.status.code.0 == ERROR,
        };
        spans.push(parts.raw());
    }
}

impl HasSpans for ScopeSpans {
    fn add_to(mut self, spans: &mut Vec<Raw>) {
        spans.append(&mut self.spans.spans);
    }
}

impl HasSpans for ResourceSpans {
    fn add_to(mut self, spans: &mut Vec<Raw>) {
        let pid = self.resource.attributes.pid;
        for raw in &mut self.scopes.spans {
            raw.span.pid = raw.span.pid.or(pid);
        }
        spans.append(&mut self.scopes.spans);
    }
}

impl HasSpans for Document {
    fn add_to(mut self, spans: &mut Vec<Raw>) {
        spans.append(&mut self.resources.spans);
    }
}

impl<'de, T: Deserialize<'de> + HasSpans> Deserialize<'de> for Flat<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + HasSpans> Visitor<'de> for All<T> {
            type Value = Flat<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Flat<T>, A::Error> {
                let mut flat = Flat::default();
                while let Some(element) = list.next_element::<T>()? {
                    element.add_to(&mut flat.spans);
                    if flat.spans.len() > RECORDS {
                        return Err(serde::de::Error::custom(format_args!(
                            "more than {RECORDS} spans"
                        )));
                    }
                }
                Ok(flat)
            }

            fn visit_unit<E>(self) -> Result<Flat<T>, E> {
                Ok(Flat::default())
            }
        }
        deserializer.deserialize_any(All(PhantomData))
    }
}

/// Reads an OTLP file in JSON. Returns `None` for any other JSON file.
pub(crate) fn read_json(bytes: &[u8]) -> Result<Option<Spans>, Error> {
    let words = ["\"resourceSpans\"", "\"resource_spans\"", "\"batches\""];
    let has_spans =
        encoding::contains(bytes, "SpanId\"") || encoding::contains(bytes, "\"spanId\"");
    if !has_spans || !words.iter().any(|word| encoding::contains(bytes, word)) {
        return Ok(None);
    }
    let damaged = |error: serde_json::Error| Error::Damaged {
        format: FORMAT,
        what: error.to_string(),
    };
    let mut all = Vec::new();
    if bytes.starts_with(b"[") {
        let list: Flat<Document> = serde_json::from_slice(bytes).map_err(damaged)?;
        all = list.spans;
    } else {
        for document in serde_json::Deserializer::from_slice(bytes).into_iter::<Document>() {
            document.map_err(damaged)?.add_to(&mut all);
            Error::at_most(RECORDS, all.len(), FORMAT, "spans")?;
        }
    }
    Ok(Some(spans(all)))
}

/// Makes spans of the OTLP spans of a file, and finds each span's parent by its id.
fn spans(all: Vec<Raw>) -> Spans {
    let ids: HashMap<String, usize> = all
        .iter()
        .enumerate()
        .filter(|(_, raw)| !raw.id.is_empty())
        .map(|(at, raw)| (raw.id.clone(), at))
        .collect();
    let spans = all.into_iter().map(|raw| Span {
        parent: ids.get(&raw.parent).copied(),
        ..raw.span
    });
    Spans {
        clock: Clock::Since(0),
        spans: spans.collect(),
        ..Spans::default()
    }
}
