//! Implements `tr info --secrets`, which lists the places in a trace's texts that `tr redact` would mask by its current
//! rules.

use std::ops::Range;
use std::path::Path;

use serde_json::{json, Value};
use tr_format::event::{Argv, Exec, Ktime, LifeEvent, LifeKind, Snapshot, Stream};
use tr_format::mask::{Mask, Masked};
use tr_format::reader::{End, Trace};
use tr_format::Error;
use tr_redact::Redactor;
use tr_text::called::TR;
use tr_text::{escape, units};

use crate::errors::Done;
use crate::open;

/// A command line in the trace that contains secrets, and where they are.
struct CommandLine {
    /// The pid of the process with this command line; `None` for the command line of COMMAND that is in the trace's
    /// metadata.
    pid: Option<u32>,
    /// The time of the exec with this command line, in ns since the start of the recording; `None` if the exec was
    /// before the recording, or for the command line in the metadata.
    time: Option<u64>,
    comm: String,
    /// The places of the secrets in the command line, each as the index of the argument and the range of bytes in it.
    places: Vec<(usize, Range<usize>)>,
}

/// A text in the trace, other than a command line, that contains secrets, and where they are.
struct Text {
    /// The origin of the text: the name of the kind of event that contains it, or `metadata`, or `end` for the end of
    /// the trace.
    of: &'static str,
    /// The time of the event that contains the text, in ns since the start of the recording; `None` for texts outside
    /// of events.
    time: Option<u64>,
    /// The name of the metadata's field, or of the CI system's variable, that contains the text.
    field: Option<String>,
    /// The position of the text, from 1, among the texts of its event or of its field of the metadata.
    number: usize,
    /// The ranges of bytes of the listed text that are secrets.
    places: Vec<Range<usize>>,
}

/// Examines every text of a trace that `tr redact` would mask, and records where secrets are. No text is changed.
struct Finder {
    redactor: Redactor,
    start: Ktime,
    /// The origin of the text under examination: the name of a kind of event, or a part of the trace such as
    /// `metadata`.
    of: &'static str,
    time: Option<u64>,
    pid: Option<u32>,
    comm: String,
    field: Option<String>,
    number: usize,
    command_lines: Vec<CommandLine>,
    texts: Vec<Text>,
}

impl Mask for Finder {
    fn field(&mut self, name: &str) {
        let masked = self.redactor.text(name.as_bytes());
        let name = masked.as_deref().unwrap_or(name.as_bytes());
        self.field = Some(escape::raw(name));
        self.number = 0;
    }

    fn text(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        self.number += 1;
        let places = self.redactor.find_in_text(text);
        self.add_text(places);
        None
    }

    fn script(&mut self, script: &mut Vec<u8>) {
        self.number += 1;
        let places = self.redactor.find_in_script(script);
        self.add_text(places);
    }

    fn argv(&mut self, argv: &mut Argv) {
        let places = self.redactor.find(argv);
        self.add_command_line(places);
    }

    fn command(&mut self, command: &mut Vec<Vec<u8>>) {
        let places = self.redactor.find_in_command(command);
        self.add_command_line(places);
    }
}

impl Finder {
    fn new(redactor: Redactor, start: Ktime) -> Finder {
        Finder {
            redactor,
            start,
            of: "metadata",
            time: None,
            pid: None,
            comm: String::new(),
            field: None,
            number: 0,
            command_lines: Vec::new(),
            texts: Vec::new(),
        }
    }

    fn add_text(&mut self, places: Vec<Range<usize>>) {
        if !places.is_empty() {
            self.texts.push(Text {
                of: self.of,
                time: self.time,
                field: self.field.clone(),
                number: self.number,
                places,
            });
        }
    }

    fn add_command_line(&mut self, places: Vec<(usize, Range<usize>)>) {
        if !places.is_empty() {
            self.command_lines.push(CommandLine {
                pid: self.pid,
                time: self.time,
                comm: self.comm.clone(),
                places,
            });
        }
    }

    /// Notes that the texts examined from now on come from this event, so that the secrets in them are attributed to
    /// it.
    fn begin(&mut self, event: &LifeEvent) {
        (self.field, self.number) = (None, 0);
        self.of = event.kind.name();
        self.time = Some(event.time.since(self.start));
        match &event.kind {
            LifeKind::Exec(Exec { tgid, comm, .. }) => {
                self.pid = Some(tgid.0);
                self.comm = escape::raw(comm.bytes());
            }
            LifeKind::Snapshot(Snapshot { tgid, comm, .. }) => {
                self.pid = Some(tgid.0);
                self.comm = escape::raw(comm.bytes());
                self.time = None;
            }
            _ => {}
        }
    }

    fn read(&mut self, trace: &Trace) -> Result<(), Error> {
        Masked::new(trace.meta().clone(), self)?;
        let mut events = Vec::new();
        for frame in trace.frames() {
            // A frame (a block of events in the trace's file) that cannot be read is skipped here, because `open::warn`
            // and `tr verify` report it.
            if matches!(frame.stream, Stream::Cpu(_))
                || trace.read_life(frame, &mut events).is_err()
            {
                continue;
            }
            for event in events.drain(..) {
                self.begin(&event);
                Masked::new(event, self)?;
            }
        }
        if let Some(summary) = trace.summary() {
            (self.of, self.time, self.field, self.number) = ("end", None, None, 0);
            Masked::new(summary.clone(), self)?;
        }
        if let End::Truncated { why, .. } = trace.end() {
            (self.of, self.time, self.field, self.number) = ("end", None, None, 0);
            Masked::new(why.clone(), self)?;
        }
        Ok(())
    }

    fn document(&self) -> Value {
        let line = |line: &CommandLine| {
            let place = |(arg, part): &(usize, Range<usize>)| json!({ "argument": arg, "from": part.start, "to": part.end });
            json!({
                "pid": line.pid,
                "exec_ns": line.time,
                "comm": line.pid.map(|_| &line.comm),
                "places": line.places.iter().map(place).collect::<Vec<_>>(),
            })
        };
        let text = |text: &Text| {
            let place = |part: &Range<usize>| json!({ "from": part.start, "to": part.end });
            json!({
                "of": text.of,
                "time_ns": text.time,
                "field": text.field,
                "number": text.number,
                "places": text.places.iter().map(place).collect::<Vec<_>>(),
            })
        };
        json!({
            "schema": "tr.secrets/1",
            "command_lines": self.command_lines.iter().map(line).collect::<Vec<_>>(),
            "texts": self.texts.iter().map(text).collect::<Vec<_>>(),
        })
    }

    fn listing(&self, file: &Path) -> String {
        let mut out = String::new();
        for found in &self.command_lines {
            let at = found.time.map_or("at the start".into(), units::time);
            let places = found.places.iter();
            let places = places.map(|(arg, part)| {
                format!("argument {arg} from byte {} to {}", part.start, part.end)
            });
            let places = places.collect::<Vec<_>>().join(", ");
            let pid = found.pid.map_or("command".into(), |pid| pid.to_string());
            let comm = escape::text(found.comm.as_bytes());
            out.push_str(&format!("{pid:>8}  {at:>12}  {comm:<16} {places}\n"));
        }
        for found in &self.texts {
            let at = found.time.map_or(String::new(), units::time);
            let places = found.places.iter();
            let places = places.map(|part| format!("from byte {} to {}", part.start, part.end));
            let places = places.collect::<Vec<_>>().join(", ");
            let field = found.field.as_deref().unwrap_or_default();
            let field = escape::text(field.as_bytes());
            let (of, number) = (found.of, found.number);
            out.push_str(&format!(
                "{of:>8}  {at:>12}  {field:<16} text {number} {places}\n"
            ));
        }
        let name = escape::command([file.as_os_str().as_encoded_bytes()]);
        let lines = units::plural(
            self.command_lines.len() as u64,
            "command line",
            "command lines",
        );
        let texts = units::plural(self.texts.len() as u64, "other text", "other texts");
        let (what, count) = match (self.command_lines.len(), self.texts.len()) {
            (0, 0) => return out + "no secrets found\n",
            (count, 0) => (lines, count),
            (0, count) => (texts, count),
            (some, more) => (format!("{lines} and {texts}"), some + more),
        };
        let hold = if count == 1 { "holds" } else { "hold" };
        out + &format!("{what} {hold} secrets; to mask them: {TR} redact {name} -o {name}\n")
    }
}

/// Prints a list of the places of secrets in a trace. The secrets themselves are never printed.
pub fn list(file: &Path, as_json: bool) -> Done {
    let trace = open::warned(file)?;
    let mut finder = Finder::new(Redactor::new(true, Vec::new()), trace.meta().start);
    let read = finder.read(&trace);
    read.map_err(|error| open::unreadable(file, &error))?;
    Ok(if as_json {
        open::print_json(&finder.document())
    } else {
        open::print_text(&finder.listing(file))
    })
}
