//! `tr info --secrets`: the places in a trace's command lines that today's rules would mask.

use std::ops::Range;
use std::path::Path;

use serde_json::{json, Value};
use tr_format::event::{Exec, Ktime, LifeKind, Snapshot, Stream};
use tr_format::reader::Trace;
use tr_redact::Redactor;
use tr_report::{escape, units};

use crate::errors::Done;
use crate::open;
use tr_report::called::TR;

/// A command line with secrets.
struct Found {
    /// The process; `None` for COMMAND in the trace's metadata.
    pid: Option<u32>,
    /// Time of its exec, ns since the start; `None` if it ran before.
    time: Option<u64>,
    comm: String,
    /// Argument, bytes in it.
    places: Vec<(usize, Range<usize>)>,
}

/// Runs it. The secrets themselves are never printed.
pub fn run(file: &Path, as_json: bool) -> Done {
    let redactor = Redactor::new(true, Vec::new());
    let trace = open::warned(file)?;
    let found = secrets(&trace, &redactor);
    Ok(match as_json {
        true => open::print_json(&document(&found)),
        false => open::print_text(&text(&found, file)),
    })
}

fn secrets(trace: &Trace, redactor: &Redactor) -> Vec<Found> {
    let (mut found, mut events) = (Vec::new(), Vec::new());
    let command = redactor.find_in_command(&trace.meta().command);
    if !command.is_empty() {
        found.push(Found {
            pid: None,
            time: None,
            comm: String::new(),
            places: command,
        });
    }
    let since = |time: Ktime| time.since(trace.meta().start);
    for frame in trace.frames() {
        // `open::warn` and `tr verify` report a frame that cannot be read.
        if matches!(frame.stream, Stream::Cpu(_)) || trace.read_life(frame, &mut events).is_err() {
            continue;
        }
        for event in &events {
            let (pid, time, comm, argv) = match &event.kind {
                LifeKind::Exec(Exec {
                    tgid, comm, argv, ..
                }) => (tgid, Some(since(event.time)), comm, argv),
                LifeKind::Snapshot(Snapshot {
                    tgid, comm, argv, ..
                }) => (tgid, None, comm, argv),
                _ => continue,
            };
            let places = redactor.find(argv);
            if !places.is_empty() {
                found.push(Found {
                    pid: Some(pid.0),
                    time,
                    comm: escape::text(comm.bytes()),
                    places,
                });
            }
        }
    }
    found
}

fn document(found: &[Found]) -> Value {
    let one = |found: &Found| {
        let place = |(arg, part): &(usize, Range<usize>)| json!({ "argument": arg, "from": part.start, "to": part.end });
        json!({
            "pid": found.pid,
            "exec_ns": found.time,
            "comm": found.pid.map(|_| &found.comm),
            "places": found.places.iter().map(place).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": "tr.secrets/1",
        "command_lines": found.iter().map(one).collect::<Vec<_>>(),
    })
}

fn text(found: &[Found], file: &Path) -> String {
    let mut out = String::new();
    for found in found {
        let at = found.time.map_or("at the start".into(), units::time);
        let places = found.places.iter();
        let places = places
            .map(|(arg, part)| format!("argument {arg} from byte {} to {}", part.start, part.end));
        let places = places.collect::<Vec<_>>().join(", ");
        let pid = found.pid.map_or("command".into(), |pid| pid.to_string());
        let comm = &found.comm;
        out.push_str(&format!("{pid:>8}  {at:>12}  {comm:<16} {places}\n"));
    }
    let name = escape::command([file.as_os_str().as_encoded_bytes()]);
    match found.len() {
        0 => out.push_str("no secrets found in the command lines\n"),
        n => {
            let (s, hold) = if n == 1 { ("", "holds") } else { ("s", "hold") };
            out.push_str(&format!(
                "{n} command line{s} {hold} secrets; to mask them: {TR} redact {name} -o {name}\n"
            ));
        }
    }
    out
}
