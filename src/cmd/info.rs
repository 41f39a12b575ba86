//! `tr info`: what a trace holds.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use tr_analyze::Options;
use tr_format::reader::{End, Unknown};
use tr_report::{escape, units, who};

use crate::{open, progress, suspend};

/// Say what a recording holds
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// text or json
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let analysis = progress::analyze(&trace, &Options::default());
    // After all frames have been read.
    let unknown = trace.unknown();
    let meta = trace.meta();
    let events: u64 = analysis.events.iter().map(|(_, n)| n).sum();
    let bytes = trace.bytes();
    let cost = analysis.summary.as_ref().map(|summary| summary.cost);
    let mut lost = std::collections::BTreeMap::<String, u64>::new();
    for span in &analysis.quality.lost {
        let stream = match span.stream {
            tr_format::event::Stream::Cpu(cpu) => format!("cpu{}", cpu.0),
            _ => "lifecycle".into(),
        };
        *lost.entry(stream).or_default() += span.count.unwrap_or(0);
    }
    let command: Vec<String> = meta
        .command
        .iter()
        .map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect();
    let suspends = suspend::suspends(&trace);
    let per_event = if events > 0 {
        bytes as f64 / events as f64
    } else {
        0.0
    };
    if args.format == "json" {
        let by_kind: serde_json::Map<String, serde_json::Value> = analysis
            .events
            .iter()
            .map(|(name, n)| ((*name).to_owned(), json!(n)))
            .collect();
        let document = json!({
            "schema": "tr.info/1",
            "format_version": format!("{}.{}", tr_format::frame::MAJOR, trace.minor_version()),
            "tool_version": meta.tool_version,
            "host": meta.host,
            "kernel": meta.kernel,
            "machine": meta.machine,
            "command": command,
            "start_unix_ns": meta.start_clock.real,
            "duration_ns": analysis.end.since(analysis.start),
            "cpus": meta.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
            "events": events,
            "events_by_kind": by_kind,
            "bytes": bytes,
            "bytes_per_event": per_event,
            "frames": trace.frames().len(),
            "lost_events": lost,
            "largest_inversion_ns": analysis.quality.largest_inversion,
            "latest_write_ns": analysis.quality.latest_write,
            "unknown_ns": analysis.totals.times.unknown,
            "violations": analysis.quality.violations.iter().map(|(name, n)| ((*name).to_owned(), json!(n))).collect::<serde_json::Map<_, _>>(),
            "time_uncertainty_ns": analysis.quality.time_uncertainty(),
            "clocks": tr_report::json::clocks(&analysis.quality),
            "suspends": suspends.iter().map(|suspend| json!({
                "since_ns": suspend.since.since(meta.start),
                "until_ns": suspend.until.since(meta.start),
                "asleep_ns": suspend.asleep,
            })).collect::<Vec<_>>(),
            "truncated": *trace.end() != End::Complete,
            "cost": cost.map(|cost| json!({
                "recorder_ns": cost.recorder_ns, "bpf_ns": cost.bpf_ns, "setup_ns": cost.setup_ns,
            })),
            "options": {
                "buffer": meta.options.buffer,
                "argv_limit": meta.options.argv_limit,
                "cpus": meta.options.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
            },
            "unknown": {"frames": unknown.frames, "events": unknown.events, "fields": unknown.fields},
            "missing": meta.missing,
            "ci": meta.ci.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        });
        return open::print(format!("{document:#}\n").as_bytes());
    }
    let safe = |text: &str| escape::text(text.as_bytes());
    let mut out = String::new();
    let mut say = |name: &str, value: String| out.push_str(&format!("{name:<20}{value}\n"));
    say(
        "format",
        format!(
            "{}.{}, written by tr {}",
            tr_format::frame::MAJOR,
            trace.minor_version(),
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
        match command.is_empty() {
            true => format!("none ({})", who::recorded(meta)),
            false => who::recorded(meta),
        },
    );
    say("recorded", units::date(meta.start_clock.real));
    say("duration", units::time(analysis.end.since(analysis.start)));
    say("CPUs", meta.cpus.len().to_string());
    say("events", units::count(events));
    for (name, count) in analysis.events.iter().filter(|(_, n)| *n > 0) {
        say("", format!("{name:<12}{:>14}", units::count(*count)));
    }
    say(
        "size",
        format!(
            "{} bytes, {per_event:.2} an event, {} frames",
            units::count(bytes),
            trace.frames().len()
        ),
    );
    say(
        "end",
        match trace.end() {
            End::Complete => "complete".into(),
            End::Truncated { frame, offset, why } => {
                format!("cut short at frame {frame}, byte {offset}: {why}")
            }
        },
    );
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
        match lost.is_empty() {
            true => "none".into(),
            false => lost
                .iter()
                .map(|(stream, n)| format!("{} on {stream}", units::count(*n)))
                .collect::<Vec<_>>()
                .join(", "),
        },
    );
    say(
        "largest inversion",
        match analysis.quality.largest_inversion {
            0 => "none".into(),
            back => units::time(back),
        },
    );
    // A lower bound: the file proves no more.
    say(
        "latest write",
        match analysis.quality.latest_write {
            0 => "none known to be late".into(),
            late => format!("at least {} after its stamp", units::time(late)),
        },
    );
    let violations: Vec<String> = analysis
        .quality
        .violations
        .iter()
        .map(|(what, n)| format!("{n} × {what}"))
        .collect();
    say(
        "contradictions",
        if violations.is_empty() {
            "none".into()
        } else {
            violations.join(", ")
        },
    );
    let clocks = tr_report::reports::top::clocks(&analysis.quality);
    say(
        "clocks",
        match analysis.quality.clocks_unclear {
            true => "disagree, it is not clear by how much".into(),
            false if clocks.is_empty() => "nothing says that they disagree".into(),
            false => clocks.join(", "),
        },
    );
    for suspend in &suspends {
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
        match analysis.totals.times.unknown {
            0 => "none".into(),
            unknown => units::time(unknown),
        },
    );
    if let Some(cost) = cost {
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
    open::print(out.as_bytes())
}
