//! clang's `-ftime-trace`: a file for each compilation, with its pid and the time of its
//! beginning.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::Deserialize;
use tr_analyze::model::{Imported, ImportedKind, ProcessIx};

use crate::recording::{base, imported, names, program, Recording};
use crate::{Error, Placed, RECORDS};

const FORMAT: &str = "-ftime-trace";

/// The most by which an inner span may end after its outer one, in ns: the file has both times cut to
/// microseconds.
const CUT: i64 = 2_000;

/// The spans of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeTrace {
    pid: u32,
    /// In ns since 1970.
    begin: i64,
    spans: Vec<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    tid: u32,
    /// In ns since the beginning.
    from: i64,
    to: i64,
    name: String,
}

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

impl TimeTrace {
    /// `None` for other JSON.
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

    /// Places the spans under the compiler's process: the one with the pid, or else one that
    /// then ran and whose command line names the file.
    pub(crate) fn place(&self, path: &[u8], recording: &Recording<'_>) -> Placed {
        let begin = recording.time(self.begin);
        let longest = self.spans.iter().map(|span| span.to).max().unwrap_or(0);
        let mut placed = Placed {
            all: self.spans.len() as u64,
            ..Placed::default()
        };
        let end = begin.saturating_add(longest);
        let Some(process) = self.process(path, recording, begin, end) else {
            if recording.is_outside(begin, end) {
                placed.outside = placed.all;
            }
            return placed;
        };
        for span in &self.spans {
            let at = |time| begin.saturating_add(time);
            let (from, to) = (at(span.from), at(span.to));
            if recording.is_outside(from, to) {
                placed.outside += 1;
            } else if let Some((from, to)) = recording.inside(process, from, to) {
                let other = Some(span.tid).filter(|tid| *tid != self.pid);
                placed.spans.push(Imported {
                    thread: other.and_then(|tid| recording.thread(process, tid)),
                    ..imported(
                        ImportedKind::Unit,
                        span.name.as_bytes(),
                        (process, (from, to)),
                    )
                });
            }
        }
        placed
    }

    fn process(
        &self,
        path: &[u8],
        recording: &Recording<'_>,
        from: i64,
        to: i64,
    ) -> Option<ProcessIx> {
        let analysis = recording.analysis;
        let lived = |ix: &ProcessIx| recording.inside(*ix, from, to).is_some();
        let stem = base(path);
        let stem = stem.rsplitn(2, |byte| *byte == b'.').last().unwrap_or(stem);
        let named = |ix: &ProcessIx| {
            let process = analysis.process(*ix);
            let ends: [&[u8]; 5] = [b".o", b".obj", b"", b".c", b".cpp"];
            ends.iter().any(|end| names(process, &[stem, end].concat()))
        };
        let with_pid = recording.with_pid(self.pid).iter().copied().filter(lived);
        let with_pid: Vec<ProcessIx> = with_pid.collect();
        match with_pid.as_slice() {
            [only] => Some(*only),
            // Containers have equal pids.
            [_, ..] => with_pid.into_iter().find(named),
            // A pid of a container that the recording does not know.
            [] => {
                let compiler = |ix: &ProcessIx| {
                    let program = program(analysis.process(*ix));
                    program.windows(5).any(|part| part == b"clang")
                };
                let all = analysis.process_ids().filter(compiler);
                let mut all = all.filter(lived).filter(named);
                // Of a driver and its compiler, the compiler began later.
                all.next_back()
            }
        }
    }
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
