//! Reads a receiver's answer to a request of OTLP: ExportTraceServiceResponse of
//! opentelemetry/proto/collector/trace/v1, or ExportMetricsServiceResponse of metrics/v1. Both have the same field
//! numbers. A receiver can reject a part of the spans or data points, and nevertheless answer with a success.

use prost::Message;
use serde::Deserialize;

use super::Encoding;

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    #[serde(alias = "rejectedDataPoints", deserialize_with = "integer")]
    rejected_spans: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// The remark in a receiver's answer to an OTLP request: that it rejected spans or data points, or how the
/// next request should differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of spans or data points of the request that the receiver rejected. If it is 0, the
    /// receiver's message is only a warning.
    pub rejected: u64,
    /// The message in the receiver's answer, which is not escaped and can be empty.
    pub message: String,
}

/// Reads the body of a receiver's answer to an OTLP request, whose HTTP status was a success. Returns `None` if the
/// receiver accepted everything and has no message.
///
/// # Errors
/// The body is no answer of OTLP in the encoding of the request.
pub fn read(encoding: Encoding, body: &[u8]) -> Result<Option<Answer>, String> {
    let response = match encoding {
        Encoding::Protobuf => Response::decode(body).map_err(|error| error.to_string())?,
        // Many receivers send no body at all.
        Encoding::Json if body.trim_ascii().is_empty() => return Ok(None),
        Encoding::Json => serde_json::from_slice(body).map_err(|error| error.to_string())?,
    };
    let partial = response.partial_success.unwrap_or_default();
    let answer = Answer {
        rejected: u64::try_from(partial.rejected_spans).unwrap_or(0),
        message: partial.error_message,
    };
    let says_something = answer.rejected > 0 || !answer.message.is_empty();
    Ok(says_something.then_some(answer))
}

/// Reads a 64-bit integer from OTLP's JSON, which has it as a string; some receivers write a number.
fn integer<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Integer {
        Number(i64),
        Text(String),
    }
    match Integer::deserialize(from)? {
        Integer::Number(number) => Ok(number),
        Integer::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_partial_success_is_read_in_both_encodings() {
        let response = Response {
            partial_success: Some(PartialSuccess {
                rejected_spans: 3,
                error_message: "too old".to_owned(),
            }),
        };
        let want = Some(Answer {
            rejected: 3,
            message: "too old".to_owned(),
        });
        let bytes = response.encode_to_vec();
        assert_eq!(read(Encoding::Protobuf, &bytes), Ok(want.clone()));
        for text in [
            r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#,
            r#"{"partialSuccess":{"rejectedSpans":3,"errorMessage":"too old","more":1}}"#,
            r#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}"#,
        ] {
            assert_eq!(
                read(Encoding::Json, text.as_bytes()),
                Ok(want.clone()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_whole_success_says_nothing() {
        for text in [
            "",
            "{}",
            r#"{"partialSuccess":{}}"#,
            "{\"partialSuccess\":null}\n",
        ] {
            assert_eq!(read(Encoding::Json, text.as_bytes()), Ok(None), "{text}");
        }
        assert_eq!(read(Encoding::Protobuf, b""), Ok(None));
        assert!(read(Encoding::Json, b"<html>").is_err());
        assert!(read(Encoding::Protobuf, b"<html>Sign in").is_err());
    }
}
