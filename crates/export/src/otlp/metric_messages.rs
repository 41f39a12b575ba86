//! The messages of OTLP metrics that the export writes. Names and numbers are those of opentelemetry/proto/metrics/v1.

use prost::Message;
use serde::Serialize;
use tr_import::otlp::messages::{decimal, KeyValue, Resource, Scope};

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
    #[prost(string, tag = "3")]
    pub schema_url: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
    #[prost(string, tag = "3")]
    pub schema_url: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Metric {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(string, tag = "3")]
    pub unit: String,
    #[prost(oneof = "Data", tags = "5, 7")]
    #[serde(flatten)]
    pub data: Option<Data>,
}

#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gauge {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<Point>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<Point>,
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
    /// The time from which the metric's value counts, in ns since 1970: the start of the recording.
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "decimal")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(serialize_with = "decimal")]
    pub time_unix_nano: u64,
    #[prost(oneof = "Number", tags = "4, 6")]
    #[serde(flatten)]
    pub value: Option<Number>,
}

#[derive(Clone, Copy, PartialEq, prost::Oneof, Serialize)]
pub enum Number {
    #[prost(double, tag = "4")]
    #[serde(rename = "asDouble")]
    Double(f64),
    #[prost(sfixed64, tag = "6")]
    #[serde(rename = "asInt", serialize_with = "decimal")]
    Int(i64),
}
