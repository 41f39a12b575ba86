//! Implements `tr dump`, which prints every event of a trace, in order.

mod follow;

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{json, Map, Value};
use tr_analyze::order::{self, Event};
use tr_format::event::{Ktime, LifeEvent, SchedEvent, SchedKind, Waking};
use tr_format::reader::Trace;

use crate::budget::{Budget, Watch};
use crate::errors::Done;
use crate::open;
use crate::subcommand::{Program, Subcommand};
use std::path::Path;

/// Print the events of a recording, in the order of their times
///
/// Times are as recorded, in seconds since the start of the recording.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    pub file: PathBuf,
    /// text, or one JSON object per line
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Print the events of a recording under way as they are written, until it ends
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    pub budget: Budget,
}

/// The number of events that `tr dump` prints between two checks of its limits of time and memory.
const LOOK_EVERY: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Text,
    #[value(alias = "json")]
    Ndjson,
}

impl Subcommand for Args {
    const IS_LONG: bool = true;
    const IS_STREAM: bool = true;

    fn only_reads(&self) -> Option<Vec<&Path>> {
        Some(vec![&self.file])
    }

    fn is_paged(&self) -> bool {
        !self.follow
    }

    fn run(self, _: &Program) -> Done {
        dump(&self)
    }
}

fn dump(args: &Args) -> Done {
    if args.follow {
        return Ok(follow::dump_growing(args));
    }
    let trace = open::trace(&args.file)?;
    Ok(open::printed(print(args, &trace)))
}

fn print(args: &Args, trace: &Trace) -> std::io::Result<()> {
    let mut printer = Printer::new(args, trace.meta().start)?;
    let mut merge = order::merge(trace);
    while let Some(event) = merge.next_event() {
        if !printer.print(&event)? {
            break;
        }
    }
    for error in merge.batches().unreadable() {
        message!("{error}");
    }
    printer.out.flush()
}

struct Printer {
    out: std::io::BufWriter<std::io::StdoutLock<'static>>,
    format: FormatArg,
    zero: Ktime,
    watch: Watch,
    count: u64,
}

impl Printer {
    /// A printer for the events of a recording. `zero` is the start of the recording, from which the
    /// printed times count.
    fn new(args: &Args, zero: Ktime) -> std::io::Result<Printer> {
        Ok(Printer {
            out: std::io::BufWriter::new(open::stdout()?),
            format: args.format,
            zero,
            watch: args.budget.begin(1),
            count: 0,
        })
    }

    /// Prints one event of the trace. Returns false if a limit of the command's memory or time is
    /// reached; a message on standard error says so.
    fn print(&mut self, event: &Event) -> std::io::Result<bool> {
        self.count += 1;
        if self.count.is_multiple_of(LOOK_EVERY) {
            if let Some(why) = self.watch.exceeded() {
                message!("{why}; the events end there");
                return Ok(false);
            }
        }
        let time = i128::from(event.time().0) - i128::from(self.zero.0);
        let (cpu, kind, fields) = parts(event);
        match self.format {
            FormatArg::Text => text(&mut self.out, time, cpu, kind, &fields)?,
            FormatArg::Ndjson => {
                let mut object = Map::new();
                object.insert(
                    "t".into(),
                    i64::try_from(time).map_or(Value::Null, Value::from),
                );
                object.insert("cpu".into(), json!(cpu));
                object.insert("kind".into(), json!(kind));
                object.extend(fields);
                let line = tr_text::json::document(&Value::Object(object), false)?;
                self.out.write_all(line.as_bytes())?;
            }
        }
        Ok(true)
    }
}

fn text(
    out: &mut impl Write,
    time: i128,
    cpu: Option<u16>,
    kind: &str,
    fields: &Map<String, Value>,
) -> std::io::Result<()> {
    let cpu = cpu.map_or("  -".to_owned(), |cpu| format!("{cpu:3}"));
    let sign = if time < 0 { "-" } else { "" };
    let time = time.unsigned_abs();
    let stamp = format!("{sign}{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    write!(out, "{stamp:>16} {cpu} {kind:<11}")?;
    for (name, value) in fields {
        let value = match value {
            Value::String(text) => text,
            value => &value.to_string(),
        };
        write!(out, " {name}={}", tr_text::escape::text(value.as_bytes()))?;
    }
    writeln!(out)
}

/// The fields of an event in JSON, from the serialized value of its kind; empty if the kind of event
/// has no fields.
fn fields(kind: serde_json::Result<Value>) -> Map<String, Value> {
    match kind {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn parts(event: &Event) -> (Option<u16>, &'static str, Map<String, Value>) {
    match event {
        Event::Sched(cpu, SchedEvent { kind, .. }) => {
            let name = match kind {
                SchedKind::Switch(_) => "switch",
                SchedKind::Waking(Waking { new: false, .. }) => "waking",
                SchedKind::Waking(Waking { new: true, .. }) => "wakeup_new",
            };
            (Some(cpu.0), name, fields(serde_json::to_value(kind)))
        }
        Event::Life(LifeEvent { cpu, kind, .. }) => (
            cpu.map(|cpu| cpu.0),
            kind.name(),
            fields(serde_json::to_value(kind)),
        ),
    }
}
