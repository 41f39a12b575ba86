//! Reads OTLP's protobuf. An empty message takes two bytes in a file and many in memory. So a file is not decoded as a
//! whole: the lists are walked, and each span is decoded alone.

use prost::bytes::Buf;
use prost::encoding::{decode_key, decode_varint, skip_field, DecodeContext, WireType};
use prost::{DecodeError, Message};
use tr_placing::spans::Spans;
use tr_text::units;

use super::messages::{Any, Resource, Span};
use super::{Attributes, Parts, Raw, ATTRIBUTES, ERROR, FORMAT};
use crate::error::Error;
use crate::limits::RECORDS;

/// The number of the protobuf field with the list of resources in an OTLP request.
const RESOURCE_SPANS: u32 = 1;
/// The number of the protobuf field with the resource of a group of spans.
const RESOURCE: u32 = 1;
/// The number of the protobuf field with the scopes of a resource.
const SCOPE_SPANS: u32 = 2;
/// The number of the protobuf field with the spans of a scope.
const SPANS: u32 = 2;

/// The size in bytes of the largest OTLP span or resource that is read from protobuf.
const MESSAGE: usize = 1 << 20;

/// Reads an OTLP file in protobuf. Returns `None` if the file is no list of resources with spans.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<Spans>, Error> {
    let mut all = Vec::new();
    match resources(bytes, &mut all) {
        Ok(()) if !all.is_empty() => Ok(Some(super::spans(all))),
        Ok(()) | Err(Stop::NoMessage) => Ok(None),
        Err(Stop::TooMany) => Err(Error::Count {
            format: FORMAT,
            what: "spans",
            limit: RECORDS,
        }),
    }
}

/// The reason why an OTLP file in protobuf is not read to its end.
enum Stop {
    NoMessage,
    TooMany,
}

impl From<DecodeError> for Stop {
    fn from(_: DecodeError) -> Stop {
        Stop::NoMessage
    }
}

fn resources(bytes: &[u8], all: &mut Vec<Raw>) -> Result<(), Stop> {
    each_field(bytes, |field, bytes| {
        if field != RESOURCE_SPANS {
            return Ok(());
        }
        let first = all.len();
        let mut pid = None;
        each_field(bytes, |field, bytes| {
            match field {
                RESOURCE if bytes.len() <= MESSAGE => {
                    pid = attributes(&Resource::decode(bytes)?.attributes).pid;
                }
                SCOPE_SPANS => each_field(bytes, |field, bytes| {
                    if field == SPANS && bytes.len() <= MESSAGE {
                        all.push(parts(Span::decode(bytes)?).raw());
                    }
                    if all.len() > RECORDS {
                        return Err(Stop::TooMany);
                    }
                    Ok(())
                })?,
                _ => {}
            }
            Ok(())
        })?;
        for raw in all.iter_mut().skip(first) {
            raw.span.pid = raw.span.pid.or(pid);
        }
        Ok(())
    })
}

/// Calls `with` for each field of a protobuf message, if the field's value consists of bytes. The arguments are the
/// field's number and its bytes. Other fields are skipped.
fn each_field(
    mut bytes: &[u8],
    mut with: impl FnMut(u32, &[u8]) -> Result<(), Stop>,
) -> Result<(), Stop> {
    while bytes.has_remaining() {
        let (field, wire) = decode_key(&mut bytes)?;
        if wire != WireType::LengthDelimited {
            skip_field(wire, field, &mut bytes, DecodeContext::default())?;
            continue;
        }
        let length = usize::try_from(decode_varint(&mut bytes)?).unwrap_or(usize::MAX);
        let Some((part, rest)) = bytes.split_at_checked(length) else {
            return Err(Stop::NoMessage);
        };
        with(field, part)?;
        bytes = rest;
    }
    Ok(())
}

fn parts(span: Span) -> Parts {
    let time = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let code = span.status.as_ref().map_or(0, |status| status.code);
    Parts {
        attributes: attributes(&span.attributes),
        id: units::hex(&span.span_id),
        parent: units::hex(&span.parent_span_id),
        from: time(span.start_time_unix_nano),
        to: time(span.end_time_unix_nano),
        has_failed: i64::from(code) == ERROR,
        name: span.name,
    }
}

fn attributes(list: &[super::messages::KeyValue]) -> Attributes {
    let mut all = Attributes::default();
    for attribute in list.iter().take(ATTRIBUTES) {
        let value = attribute
            .value
            .as_ref()
            .and_then(|value| value.value.as_ref());
        match value {
            Some(Any::String(text)) => all.add_text(&attribute.key, text.clone()),
            Some(Any::Int(number)) => all.add_number(&attribute.key, *number),
            Some(Any::Array(list)) => {
                for value in &list.values {
                    if let Some(Any::String(text)) = &value.value {
                        all.add_text(&attribute.key, text.clone());
                    }
                }
            }
            None => {}
        }
    }
    all
}
