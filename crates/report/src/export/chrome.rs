//! Trace events in JSON, as Chrome's tracing reads them: a complete event for each program of a
//! process.

use std::io::{self, Write};

use serde_json::{json, Value};
use tr_analyze::model::{Analysis, ProcessIx};
use tr_analyze::programs::Programs;
use tr_format::event::Ktime;

use crate::exit::Exit;
use crate::label;
use crate::view::View;
use tr_text::escape;

pub fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"[\n")?;
    let mut first = true;
    let programs = Programs::new(view.analysis);
    for process in view.chosen {
        for event in events(view, *process, &programs) {
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
fn events(view: &View<'_>, ix: ProcessIx, programs: &Programs) -> Vec<Value> {
    let process = view.analysis.process(ix);
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
        let name = match process.execs.is_empty() {
            true => label::label(process),
            false => inherited(view.analysis, ix, programs),
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

/// The program with which a process began: its parent's.
fn inherited(analysis: &Analysis, ix: ProcessIx, programs: &Programs) -> String {
    let program = programs.at(analysis, ix, analysis.process(ix).start);
    let exec = program.and_then(|(of, at)| analysis.process(of).execs.get(at as usize));
    match exec {
        Some(exec) => label::label_of(&exec.argv, &exec.comm, true),
        None => "before the first exec".to_owned(),
    }
}
