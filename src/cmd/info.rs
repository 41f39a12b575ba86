//! `tr info`: what a trace holds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{json, Value};
use tr_analyze::model::Quality;
use tr_format::reader::{End, Unknown};
use tr_report::{escape, units, who};

use crate::contents::{self, Contents};
use crate::open;

/// Say what a recording holds
///
/// Of a recording with more than 100,000 events, what its summary says. Contradictions,
/// clocks that disagree and time that is unknown show only when all events are gone
/// through: --full does that. (JSON has null for them, and "analyzed": false.)
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// text or json
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    format: String,
    /// Go through all events of a large recording too
    #[arg(long)]
    full: bool,
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    match contents::of(&args.file, args.full) {
        Ok(contents) if args.format == "json" => {
            open::print(format!("{:#}\n", document(&contents)).as_bytes())
        }
        Ok(contents) => open::print(text(&contents).as_bytes()),
        Err(error) => open::unreadable(&args.file, &error),
    }
}

fn command(contents: &Contents) -> Vec<String> {
    let args = contents.meta.command.iter();
    args.map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect()
}

fn bytes_per_event(contents: &Contents) -> f64 {
    match contents.events.total() {
        0 => 0.0,
        events => contents.bytes as f64 / events as f64,
    }
}

/// An object with these numbers.
fn object<'a>(numbers: impl IntoIterator<Item = &'a (&'static str, u64)>) -> Value {
    let numbers = numbers.into_iter();
    Value::Object(
        numbers
            .map(|(name, n)| ((*name).to_owned(), json!(n)))
            .collect(),
    )
}

fn document(contents: &Contents) -> Value {
    let meta = &contents.meta;
    let analysis = contents.analysis.as_ref();
    let quality = analysis.map(|analysis| &analysis.quality);
    json!({
        "schema": "tr.info/1",
        "format_version": format!("{}.{}", tr_format::frame::MAJOR, contents.minor),
        "tool_version": meta.tool_version,
        "host": meta.host,
        "kernel": meta.kernel,
        "machine": meta.machine,
        "command": command(contents),
        "start_unix_ns": meta.start_clock.real,
        "duration_ns": contents.duration,
        "cpus": meta.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
        "events": contents.events.total(),
        "events_by_kind": object(&contents.by_kind()),
        "bytes": contents.bytes,
        "bytes_per_event": bytes_per_event(contents),
        "frames": contents.frames,
        "lost_events": contents.lost,
        "largest_inversion_ns": contents.largest_inversion,
        "latest_write_ns": contents.latest_write,
        "analyzed": analysis.is_some(),
        "unknown_ns": analysis.map(|analysis| analysis.totals.times.unknown),
        "violations": quality.map(|quality| object(&quality.anomalies)),
        "clocks": quality.map(tr_report::json::clocks),
        "suspends": contents.suspends.iter().map(|suspend| json!({
            "since_ns": suspend.since.since(meta.start),
            "until_ns": suspend.until.since(meta.start),
            "asleep_ns": suspend.asleep,
        })).collect::<Vec<_>>(),
        "truncated": contents.end != End::Complete,
        "cost": contents.cost.map(|cost| json!({
            "recorder_ns": cost.recorder_ns, "bpf_ns": cost.bpf_ns, "setup_ns": cost.setup_ns,
        })),
        "options": {
            "buffer": meta.options.buffer,
            "argv_limit": meta.options.argv_limit,
            "cpus": meta.options.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
        },
        "unknown": {
            "frames": contents.unknown.frames,
            "events": contents.unknown.events,
            "fields": contents.unknown.fields,
        },
        "missing": meta.missing,
        "ci": meta.ci.iter().cloned().collect::<BTreeMap<_, _>>(),
    })
}

fn text(contents: &Contents) -> String {
    let meta = &contents.meta;
    let safe = |text: &str| escape::text(text.as_bytes());
    let mut out = String::new();
    let mut say = |name: &str, value: String| out.push_str(&format!("{name:<20}{value}\n"));
    say(
        "format",
        format!(
            "{}.{}, written by tr {}",
            tr_format::frame::MAJOR,
            contents.minor,
            safe(&meta.tool_version)
        ),
    );
    say(
        "host",
        format!(
            "{}, {} {}",
            safe(&meta.host),
            safe(&meta.kernel),
            safe(&meta.machine)
        ),
    );
    say(
        "command",
        match meta.command.is_empty() {
            true => format!("none ({})", who::recorded(meta)),
            false => who::recorded(meta),
        },
    );
    say("recorded", units::date(meta.start_clock.real));
    say("duration", units::time(contents.duration));
    say("CPUs", meta.cpus.len().to_string());
    say("events", units::count(contents.events.total()));
    for (name, count) in contents.by_kind().into_iter().filter(|(_, n)| *n > 0) {
        say("", format!("{name:<12}{:>14}", units::count(count)));
    }
    say(
        "size",
        format!(
            "{} bytes, {:.2} an event, {} frames",
            units::count(contents.bytes),
            bytes_per_event(contents),
            contents.frames
        ),
    );
    say(
        "end",
        match &contents.end {
            End::Complete => "complete".into(),
            End::Truncated { frame, offset, why } => {
                format!("cut short at frame {frame}, byte {offset}: {why}")
            }
        },
    );
    let unknown = contents.unknown;
    if unknown != Unknown::default() {
        say(
            "not read",
            format!(
                "of a later version: {} frames, {} events, {} fields",
                unknown.frames, unknown.events, unknown.fields
            ),
        );
    }
    say(
        "lost",
        match contents.lost.is_empty() {
            true => "none".into(),
            false => contents
                .lost
                .iter()
                .map(|(stream, n)| format!("{} on {stream}", units::count(*n)))
                .collect::<Vec<_>>()
                .join(", "),
        },
    );
    say(
        "largest inversion",
        match contents.largest_inversion {
            0 => "none".into(),
            back => units::time(back),
        },
    );
    // A lower bound: the file proves no more.
    say(
        "latest write",
        match (contents.latest_write, &contents.analysis) {
            (0, _) => "none known to be late".into(),
            (late, Some(_)) => format!("at least {} after its stamp", units::time(late)),
            // A clock that is behind looks like an event that is late.
            (late, None) => format!(
                "at least {} after its stamp, if the clocks agree",
                units::time(late)
            ),
        },
    );
    // What only an analysis tells.
    let quality = contents.analysis.as_ref().map(|analysis| &analysis.quality);
    let unasked = || "not looked for; --full does".to_owned();
    say(
        "contradictions",
        quality.map_or_else(unasked, contradictions),
    );
    say("clocks", quality.map_or_else(unasked, clocks));
    for suspend in &contents.suspends {
        say(
            "suspended",
            format!(
                "for {}, between {} and {}; the times of the trace leave it out",
                units::time(suspend.asleep),
                units::time(suspend.since.since(meta.start)),
                units::time(suspend.until.since(meta.start)),
            ),
        );
    }
    say(
        "unknown time",
        match contents.analysis.as_ref().map(|a| a.totals.times.unknown) {
            None => unasked(),
            Some(0) => "none".into(),
            Some(unknown) => units::time(unknown),
        },
    );
    if let Some(cost) = contents.cost {
        let bpf = cost.bpf_ns.map_or(
            "not counted (kernel.bpf_stats_enabled is off)".into(),
            units::time,
        );
        say(
            "tracing cost",
            format!(
                "recorder {} of CPU, BPF programs {bpf}, start {}",
                units::time(cost.recorder_ns),
                units::time(cost.setup_ns)
            ),
        );
    }
    for missing in &meta.missing {
        say("not recorded", safe(missing));
    }
    for (name, value) in &meta.ci {
        say(&safe(name), safe(value));
    }
    out
}

fn contradictions(quality: &Quality) -> String {
    let found: Vec<String> = quality
        .anomalies
        .iter()
        .map(|(what, n)| format!("{n} × {what}"))
        .collect();
    match found.is_empty() {
        true => "none".into(),
        false => found.join(", "),
    }
}

fn clocks(quality: &Quality) -> String {
    let clocks = tr_report::reports::top::clocks(quality);
    clocks.unwrap_or_else(|| "no event order says that they disagree".into())
}
