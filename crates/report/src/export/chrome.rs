//! Trace events in JSON, as Chrome's tracing reads them: a complete event for each program of a
//! process.

use std::io::{self, Write};

use serde_json::{json, Value};
use tr_analyze::model::Process;
use tr_format::event::Ktime;

use crate::exit::Exit;
use crate::view::View;
use crate::{escape, label};

pub fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"[\n")?;
    let mut first = true;
    for process in view.processes() {
        for event in events(view, process) {
            if !std::mem::take(&mut first) {
                out.write_all(b",\n")?;
            }
            let text = crate::json::document(&event, false)?;
            out.write_all(text.trim_end().as_bytes())?;
        }
    }
    out.write_all(b"\n]\n")
}

/// The process's name, and its programs; the time before its first exec is its parent's
/// program.
fn events(view: &View<'_>, process: &Process) -> Vec<Value> {
    let pid = process.pid.0;
    let us = |time: Ktime| view.since(time) as f64 / 1000.0;
    let span = |from: Ktime, to: Ktime, name: String, args: Value| {
        json!({
            "ph": "X", "cat": "process", "name": name, "pid": pid, "tid": pid,
            "ts": us(from), "dur": to.since(from) as f64 / 1000.0, "args": args,
        })
    };
    let mut all = vec![json!({
        "ph": "M", "name": "process_name", "pid": pid, "tid": pid,
        "args": { "name": label::label(process) },
    })];
    let first = process.execs.first().map_or(process.end, |exec| exec.start);
    if first > process.start {
        let name = escape::text(process.comm.bytes());
        let name = if process.execs.is_empty() {
            label::label(process)
        } else {
            name
        };
        all.push(span(process.start, first, name, json!({})));
    }
    let last = process.execs.len().saturating_sub(1);
    for (at, exec) in process.execs.iter().enumerate() {
        let status = process.status.filter(|_| at == last).map(Exit::from);
        let args = json!({
            "argv": escape::command(exec.argv.args()),
            "exit": status,
        });
        let name = label::label_of(&exec.argv, &exec.comm, false);
        all.push(span(exec.start, exec.end, name, args));
    }
    all
}
