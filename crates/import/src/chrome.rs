//! Reads the Chrome Trace Event format (JSON, an array or an object): clang's `-ftime-trace`, Bazel's profile, CMake's
//! instrumentation, ninjatracing, rustc's self-profile through crox, Nx, node and many others write it.
//!
//! Complete, begin/end and async events are spans. The other events have no length; they are counted by kind.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use serde_json::Value;
use tr_placing::spans::{Clock, Span, Spans, WORD, WORDS};
use tr_placing::ToolVersion;
use tr_text::units;

use crate::encoding;
use crate::error::Error;
use crate::limits::RECORDS;

const FORMAT: &str = "Chrome Trace Event format";

/// The largest time in ns by which an inner span may end after the span around it because of rounding: clang cuts the
/// beginning and the length of a span to microseconds.
const ROUNDING_ERROR: i64 = 2_000;

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "traceEvents")]
    events: Option<Events>,
    /// The time, in µs since 1970, from which the times in a `-ftime-trace` file of clang are counted.
    #[serde(rename = "beginningOfTime")]
    begin_us: Option<i64>,
    #[serde(rename = "otherData")]
    other: Option<Value>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    ph: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(default)]
    cat: Lenient<String>,
    #[serde(default)]
    pid: Lenient<Id>,
    #[serde(default)]
    tid: Lenient<Id>,
    #[serde(default)]
    ts: Lenient<Nanoseconds>,
    #[serde(default)]
    dur: Lenient<Nanoseconds>,
    #[serde(default)]
    id: Lenient<Key>,
    #[serde(default)]
    id2: Lenient<Id2>,
    #[serde(default)]
    args: Arguments,
    /// The output file of a build action, in the events of Bazel's profile.
    #[serde(default)]
    out: Lenient<String>,
}

/// A field of an event that is `None` if its value cannot be read as `T`. A value of an unexpected type is no error,
/// because tools write numbers as texts and texts as numbers.
#[derive(Clone)]
struct Lenient<T>(Option<T>);

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Lenient(None)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Lenient(serde_json::from_value(value).ok()))
    }
}

/// The id of a process or thread in an event of a Chrome trace file. The file has it as a number or as a text with a
/// number.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "Value")]
struct Id(u32);

impl TryFrom<Value> for Id {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Id, Self::Error> {
        let number = match &value {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        number.map(Id).ok_or("no number of a process")
    }
}

/// A time in nanoseconds. An event of a Chrome trace file has it in microseconds.
#[derive(Clone, Copy)]
struct Nanoseconds(i64);

impl<'de> Deserialize<'de> for Nanoseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = match Value::deserialize(deserializer)? {
            Value::Number(number) => Some(number),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| serde::de::Error::custom("no number"))?;
        let ns = match number.as_i64() {
            Some(us) => us.saturating_mul(1000),
            // The number has a fraction or is out of range. The conversion gives the nearest possible value.
            None => (number.as_f64().unwrap_or(0.0) * 1000.0) as i64,
        };
        Ok(Nanoseconds(ns))
    }
}

/// The id of an asynchronous span as text. The begin event and the end event of the span have the same id.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Key(match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            other => other.to_string(),
        }))
    }
}

#[derive(Clone, Deserialize)]
struct Id2 {
    #[serde(default)]
    local: Lenient<Key>,
    #[serde(default)]
    global: Lenient<Key>,
}

/// The texts among the arguments of an event in a Chrome trace file.
#[derive(Clone, Default)]
struct Arguments {
    /// The argument of an event in clang's `-ftime-trace` file that says what the event is about,
    /// such as a file or a function.
    detail: Option<String>,
    words: Vec<String>,
}

impl Arguments {
    fn add(&mut self, value: Value) {
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(list) => {
                for value in list {
                    if let Value::String(text) = value {
                        self.add_text(text);
                    }
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: String) {
        let is_short = (1..=WORD).contains(&text.len());
        if is_short && self.words.len() < WORDS {
            self.words.push(text);
        }
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Arguments;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the arguments of an event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments, A::Error> {
                let mut arguments = Arguments::default();
                while let Some(key) = map.next_key::<Cow<'_, str>>()? {
                    if key == "detail" {
                        arguments.detail = map.next_value::<Lenient<String>>()?.0;
                    } else {
                        arguments.add(map.next_value()?);
                    }
                }
                Ok(arguments)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Arguments, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Arguments::default())
            }

            fn visit_str<E>(self, _: &str) -> Result<Arguments, E> {
                Ok(Arguments::default())
            }

            fn visit_unit<E>(self) -> Result<Arguments, E> {
                Ok(Arguments::default())
            }

            fn visit_bool<E>(self, _: bool) -> Result<Arguments, E> {
                Ok(Arguments::default())
            }

            fn visit_f64<E>(self, _: f64) -> Result<Arguments, E> {
                Ok(Arguments::default())
            }

            fn visit_i64<E>(self, _: i64) -> Result<Arguments, E> {
                Ok(Arguments::default())
            }

            fn visit_u64<E>(self, _: u64) -> Result<Arguments, E> {
                Ok(Arguments::default())
            }
        }
        deserializer.deserialize_any(All)
    }
}

/// A span that was read from a trace file. `detail` is the argument that completes the span's name in a `-ftime-trace`
/// file of clang.
struct Read {
    span: Span,
    detail: Option<String>,
}

/// A begin event of a trace file whose end event was not read yet.
struct Begun {
    name: String,
    from: i64,
    pid: Option<u32>,
    tid: Option<u32>,
    arguments: Arguments,
}

/// The group of trace events in which the end event for a begin event is searched: the events of one thread, or the
/// events with one asynchronous id.
#[derive(PartialEq, Eq, Hash)]
enum Track {
    Thread(Option<u32>, Option<u32>),
    Identity(Option<u32>, Option<String>, String),
}

/// The spans that were read from a file's trace events, the begin events whose end events were not read yet, and the
/// numbers of ignored events by kind.
#[derive(Default)]
struct Events {
    spans: Vec<Read>,
    too_many: bool,
    open: HashMap<Track, Vec<Begun>>,
    ignored: BTreeMap<&'static str, u64>,
}

impl Events {
    fn add(&mut self, mut event: Event<'_>) {
        if let Some(out) = event.out.0.take() {
            event.args.add_text(out);
        }
        match &*event.ph {
            // An event without a time has no place in the recording, so it is only counted.
            "X" | "B" | "b" | "S" | "E" | "e" | "F" if event.ts.0.is_none() => {
                self.ignore("events without a time");
            }
            "X" => {
                let length = event.dur.0.map_or(0, |length| length.0);
                let begun = event.begun();
                let to = begun.from.saturating_add(length.max(0));
                self.push(begun, to);
            }
            "B" | "b" | "S" => {
                let track = event.track();
                self.open.entry(track).or_default().push(event.begun());
            }
            "E" | "e" | "F" => {
                let to = event.ts.0.map_or(0, |time| time.0);
                let open = self.open.get_mut(&event.track());
                if let Some(mut begun) = open.and_then(Vec::pop) {
                    begun.arguments.words.append(&mut event.args.words);
                    begun.arguments.words.truncate(WORDS);
                    let to = to.max(begun.from);
                    self.push(begun, to);
                } else {
                    self.ignore("ends without a beginning");
                }
            }
            "M" => {} // names of processes and threads
            "s" | "t" | "f" => self.ignore("flow events"),
            "C" => self.ignore("counter events"),
            "i" | "I" | "R" | "n" => self.ignore("moments"),
            "P" => self.ignore("samples"),
            "T" | "p" => self.ignore("steps of async events"),
            "N" | "O" | "D" => self.ignore("object events"),
            _ => self.ignore("events of other kinds"),
        }
    }

    fn ignore(&mut self, what: &'static str) {
        *self.ignored.entry(what).or_default() += 1;
    }

    fn push(&mut self, begun: Begun, to: i64) {
        // Too many spans are reported after the file was read to its end. Until then, the list is emptied, so that it
        // stays small.
        if self.spans.len() >= RECORDS {
            self.spans.clear();
            self.too_many = true;
        }
        self.spans.push(Read {
            span: Span {
                name: begun.name,
                from: begun.from,
                to,
                pid: begun.pid,
                tid: begun.tid,
                words: begun.arguments.words,
                ..Span::default()
            },
            detail: begun.arguments.detail,
        });
    }

    /// A sentence that says how many trace events of which kinds were not read; `None` if there were none. Events
    /// with the names of processes and threads are not counted.
    fn note(&mut self) -> Option<String> {
        let open = self.open.values().map(Vec::len).sum::<usize>() as u64;
        if open > 0 {
            self.ignored.insert("beginnings without an end", open);
        }
        let ignored = self.ignored.iter();
        let ignored: Vec<String> = ignored
            .map(|(what, count)| format!("{} {what}", units::count(*count)))
            .collect();
        (!ignored.is_empty()).then(|| format!("not read: {}", ignored.join(", ")))
    }
}

impl Event<'_> {
    fn begun(self) -> Begun {
        Begun {
            name: self.name.into_owned(),
            from: self.ts.0.map_or(0, |time| time.0),
            pid: self.pid.0.map(|pid| pid.0),
            tid: self.tid.0.map(|tid| tid.0),
            arguments: self.args,
        }
    }

    fn track(&self) -> Track {
        let local = self.id2.0.as_ref().and_then(|id| id.local.0.clone());
        let global = self.id2.0.as_ref().and_then(|id| id.global.0.clone());
        let id = self.id.0.clone().or(global);
        let pid = self.pid.0.map(|pid| pid.0);
        match (local, id) {
            (Some(Key(id)), _) => Track::Identity(pid, self.cat.0.clone(), id),
            (None, Some(Key(id))) => Track::Identity(None, self.cat.0.clone(), id),
            (None, None) => Track::Thread(pid, self.tid.0.map(|tid| tid.0)),
        }
    }
}

impl<'de> Deserialize<'de> for Events {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Events;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of events")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Events, A::Error> {
                let mut events = Events::default();
                while let Some(event) = list.next_element()? {
                    events.add(event);
                }
                Ok(events)
            }
        }
        deserializer.deserialize_seq(All)
    }
}

/// An absolute path of a file without its `..` parts: `/a/x/../b` becomes `/a/b`. Any other text is returned unchanged.
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

/// Reads a trace file in the Chrome format that contains a JSON object. Returns `None` for the file of another tool,
/// and for a file without spans.
pub(crate) fn read_object(bytes: &[u8]) -> Result<Option<Spans>, Error> {
    if !encoding::contains(bytes, "\"traceEvents\"") {
        return Ok(None);
    }
    let document: Document = serde_json::from_slice(bytes).map_err(damaged)?;
    let Some(events) = document.events else {
        return Ok(None);
    };
    let started = document.other.as_ref();
    let started = started.and_then(|other| other.get("profile_start_ts")?.as_i64());
    let clock = match (document.begin_us, started) {
        (Some(us), _) => Clock::Since(us.saturating_mul(1000)),
        // Bazel's profile has the time, in ms since 1970, at which the profile began.
        (None, Some(ms)) => Clock::Since(ms.saturating_mul(1_000_000)),
        (None, None) => Clock::Unknown,
    };
    let version = document.other.as_ref();
    let version = version.and_then(|other| other.get("bazel_version")?.as_str());
    let tool = version
        .and_then(|version| ToolVersion::read("bazel", version.trim_start_matches("release ")));
    let spans = spans(events, document.begin_us.is_some())?;
    Ok(spans.map(|spans| Spans {
        clock,
        tool,
        ..spans
    }))
}

/// Reads a trace file in the Chrome format that contains a JSON array. Returns `None` for the file of another tool,
/// and for a file without spans. The format allows that the `]` at the end is missing, as in the file of a program
/// that was killed.
pub(crate) fn read_array(bytes: &[u8]) -> Result<Option<Spans>, Error> {
    if !encoding::contains(bytes, "\"ph\"") {
        return Ok(None);
    }
    let events = match serde_json::from_slice::<Events>(bytes) {
        Err(error) if error.is_eof() => {
            let end = bytes.trim_ascii_end();
            let end = end.strip_suffix(b",").unwrap_or(end);
            let closed = [end, b"]"].concat();
            let events: Events = serde_json::from_slice(&closed).map_err(damaged)?;
            return spans(events, false);
        }
        events => events.map_err(damaged)?,
    };
    spans(events, false)
}

fn damaged(error: serde_json::Error) -> Error {
    Error::Damaged {
        format: FORMAT,
        what: error.to_string(),
    }
}

/// The spans that the trace events of a file form; `None` if there is no span. In a `-ftime-trace` file of clang, spans
/// named `Total …` are sums over the whole compilation and are dropped. The names of the other spans are completed by
/// their details.
fn spans(mut events: Events, is_compilation: bool) -> Result<Option<Spans>, Error> {
    if events.too_many {
        return Err(Error::Count {
            format: FORMAT,
            what: "spans",
            limit: RECORDS,
        });
    }
    let note = events.note().filter(|_| !is_compilation);
    let mut read = events.spans;
    if is_compilation {
        read.retain(|read| !read.span.name.starts_with("Total "));
    }
    let mut spans: Vec<Span> = read
        .into_iter()
        .map(|Read { mut span, detail }| {
            if is_compilation {
                span.words.clear();
                let detail = detail.filter(|detail| !detail.is_empty());
                if let Some(detail) = detail {
                    span.name = format!("{} {}", span.name, resolved(&detail));
                }
            } else {
                span.words.extend(own_words(&span.name));
                span.words.truncate(WORDS);
            }
            span
        })
        .collect();
    if is_compilation {
        nest(&mut spans);
    }
    Ok((!spans.is_empty()).then(|| Spans {
        spans,
        is_compilation,
        note,
        ..Spans::default()
    }))
}

/// The words in a span's name that the command line of the span's process may contain: the name itself if it has no
/// spaces, and each part of the name with a slash or a dot, such as a path. The span is placed on a recorded process
/// whose command line contains one of these words. Bazel's label `//a/b:c` becomes the path `a/b/c`.
pub(crate) fn own_words(name: &str) -> impl Iterator<Item = String> + '_ {
    let parts = name
        .split_whitespace()
        .filter(|part| part.contains(['/', '.']));
    let whole = std::iter::once(name).filter(|name| !name.contains(' '));
    let words = whole.chain(parts.filter(move |part| *part != name));
    words
        .filter(|word| (1..=WORD).contains(&word.len()))
        .map(|word| match word.strip_prefix("//") {
            Some(label) => label.replace(':', "/").trim_matches('/').to_owned(),
            None => word.to_owned(),
        })
}

/// Sets the end of a span to the end of the span around it, if the inner span ends later only because its times were
/// rounded.
fn nest(spans: &mut [Span]) {
    spans.sort_by(|a, b| (a.tid, a.from, b.to).cmp(&(b.tid, b.from, a.to)));
    let mut around: Vec<(Option<u32>, i64)> = Vec::new();
    for span in spans {
        while around
            .last()
            .is_some_and(|(tid, end)| *tid != span.tid || *end <= span.from)
        {
            around.pop();
        }
        if let Some((_, end)) = around.last() {
            if span.to > *end && span.to.saturating_sub(*end) <= ROUNDING_ERROR {
                span.to = *end;
            }
        }
        around.push((span.tid, span.to));
    }
}
