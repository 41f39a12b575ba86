//! clang's `-ftime-trace`: a file for each compilation, with its pid and the time of its
//! beginning.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::Deserialize;
use tr_insight::imports::clang::{Span, TimeTrace};

use crate::{Error, RECORDS};

const FORMAT: &str = "-ftime-trace";

/// The most by which an inner span may end after its outer one, in ns: the file has both times cut to
/// microseconds.
const CUT: i64 = 2_000;

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, rename = "traceEvents")]
    events: Option<Events<'a>>,
    #[serde(rename = "beginningOfTime")]
    begin_us: Option<i64>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    ph: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    tid: i64,
    #[serde(default)]
    ts: i64,
    #[serde(default)]
    dur: i64,
    #[serde(borrow)]
    args: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    detail: Option<Cow<'a, str>>,
}

/// The spans among the events, with the pid that they have.
#[derive(Default)]
struct Events<'a> {
    spans: Vec<Span>,
    pid: Option<u32>,
    too_many: bool,
    /// Files that a source includes begin (`b`) and end (`e`) in two events, one after the
    /// other.
    open: Option<Event<'a>>,
}

impl<'a> Events<'a> {
    fn add(&mut self, event: Event<'a>) {
        let (begin, length) = match (&*event.ph, self.open.take()) {
            ("X", _) => {
                let length = event.dur;
                (event, length)
            }
            ("b", _) => {
                self.open = Some(event);
                return;
            }
            ("e", Some(begin)) if begin.name == event.name && begin.tid == event.tid => {
                let length = event.ts.saturating_sub(begin.ts);
                (begin, length)
            }
            _ => return,
        };
        self.pid = self.pid.or(Some(begin.pid));
        // Sums over the whole compilation, on threads of their own.
        if begin.name.starts_with("Total ") {
            return;
        }
        let from = begin.ts.saturating_mul(1000);
        let detail = begin.args.and_then(|args| args.detail);
        self.spans.push(Span {
            tid: u32::try_from(begin.tid).unwrap_or(0),
            from,
            to: from.saturating_add(length.max(0).saturating_mul(1000)),
            name: match detail.filter(|detail| !detail.is_empty()) {
                Some(detail) => format!("{} {}", begin.name, resolved(&detail)),
                None => begin.name.into_owned(),
            },
        });
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Events<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for All<'a> {
            type Value = Events<'a>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of events")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Events<'a>, A::Error> {
                let mut events = Events::default();
                while let Some(event) = list.next_element()? {
                    events.add(event);
                    // Not an error yet: the rest shows whether the file is clang's.
                    if events.spans.len() > RECORDS {
                        events.spans.clear();
                        events.too_many = true;
                    }
                }
                Ok(events)
            }
        }
        deserializer.deserialize_seq(All(std::marker::PhantomData))
    }
}

/// A path without `x/..`; anything else as it is.
fn resolved(detail: &str) -> String {
    if !detail.starts_with('/') || !detail.contains("/..") {
        return detail.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in detail.split('/').skip(1) {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Reads a file; `None` for other JSON.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<TimeTrace>, Error> {
    let contains = |word: &str| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    if !contains("\"traceEvents\"") || !contains("\"beginningOfTime\"") {
        return Ok(None);
    }
    let document: Document = serde_json::from_slice(bytes).map_err(|error| Error::Damaged {
        format: FORMAT,
        what: error.to_string(),
    })?;
    let (Some(events), Some(begin)) = (document.events, document.begin_us) else {
        return Ok(None);
    };
    if events.too_many {
        return Err(Error::Count {
            format: FORMAT,
            what: "spans",
            limit: RECORDS,
        });
    }
    let mut spans = events.spans;
    nest(&mut spans);
    Ok(events.pid.map(|pid| TimeTrace {
        pid,
        begin: begin.saturating_mul(1000),
        spans,
    }))
}

/// Ends each span at the end of the one around it, if it is later by rounding alone.
fn nest(spans: &mut [Span]) {
    spans.sort_by(|a, b| (a.tid, a.from, b.to).cmp(&(b.tid, b.from, a.to)));
    let mut around: Vec<(u32, i64)> = Vec::new();
    for span in spans {
        while around
            .last()
            .is_some_and(|(tid, end)| *tid != span.tid || *end <= span.from)
        {
            around.pop();
        }
        if let Some((_, end)) = around.last() {
            if span.to > *end && span.to.saturating_sub(*end) <= CUT {
                span.to = *end;
            }
        }
        around.push((span.tid, span.to));
    }
}
