//! The messages of OTLP traces that are read and written. Names and numbers are those of
//! opentelemetry/proto/{collector/trace,trace,common,resource}/v1. In OTLP's JSON ids are hexadecimal digits,
//! and 64-bit integers are strings.

use std::fmt::Display;

use prost::Message;
use serde::{Serialize, Serializer};

use tr_text::units;

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
    #[prost(string, tag = "3")]
    pub schema_url: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
    #[prost(string, tag = "3")]
    pub schema_url: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Scope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "hex")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "hex")]
    pub span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(serialize_with = "hex")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(serialize_with = "decimal")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(serialize_with = "decimal")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    // A missing status is not written, as in protobuf, because an empty object would be a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Status {
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(int32, tag = "3")]
    pub code: i32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(transparent)]
pub struct AnyValue {
    #[prost(oneof = "Any", tags = "1, 3, 5")]
    pub value: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
pub enum Any {
    #[prost(string, tag = "1")]
    #[serde(rename = "stringValue")]
    String(String),
    #[prost(int64, tag = "3")]
    #[serde(rename = "intValue", serialize_with = "decimal")]
    Int(i64),
    #[prost(message, tag = "5")]
    #[serde(rename = "arrayValue")]
    Array(ArrayValue),
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<AnyValue>,
}

fn hex<S: Serializer>(id: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&units::hex(id))
}

/// Serializes a 64-bit integer as a string, as OTLP's JSON demands.
///
/// # Errors
/// The errors of the serializer.
pub fn decimal<S: Serializer>(number: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}

/// Appends the spans or metrics of one resource to an OTLP request as a protobuf field. The field
/// may be repeated, so that several such requests in a row are one request.
pub fn field(of_resource: &impl Message, to: &mut Vec<u8>) {
    const OF_RESOURCE: u32 = 1;
    prost::encoding::message::encode(OF_RESOURCE, of_resource, to);
}
