//! Implements `tr info`, which describes a trace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{json, Map, Value};
use tr_analyze::model::Quality;
use tr_format::event::Ktime;
use tr_format::meta::{CommandLimit, Hardware, Known, Metadata};
use tr_format::reader::{End, Unknown};
use tr_format::scripts::RecordedScript;
use tr_insight::processes::{exit, who};
use tr_insight::recordings::warnings;
use tr_insight::recordings::warnings::CUT_REASONS;
use tr_report::status::Exit;
use tr_report::untraced::{usage_json, usage_lines};
use tr_text::called::TR;
use tr_text::{escape, units};

use crate::budget::Budget;
use crate::cmd::secrets;
use crate::contents::{self, Contents};
use crate::errors::Done;
use crate::open;
use crate::subcommand::{Program, Subcommand};
use std::path::Path;

/// Describe a recording
///
/// Above 100,000 events, tr reads only the summary of the recording. Anomalies, the
/// agreement of the clocks and unknown time need a pass over all events, which --full
/// makes. Without it, JSON has null for them, and "analyzed": false.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    pub file: PathBuf,
    /// text or json
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    format: String,
    /// Read all events, even of a large recording
    #[arg(long)]
    full: bool,
    /// List the command lines and other texts in which tr redact would mask secrets: process,
    /// time, argument (0 is the program) or text, and bytes in it, not the secret
    #[arg(long, conflicts_with = "full")]
    secrets: bool,
    #[command(flatten)]
    pub budget: Budget,
}

impl Subcommand for Args {
    const IS_LONG: bool = true;

    fn only_reads(&self) -> Option<Vec<&Path>> {
        Some(vec![&self.file])
    }

    fn run(self, _: &Program) -> Done {
        print_info(&self)
    }
}

fn print_info(args: &Args) -> Done {
    if args.secrets {
        return secrets::list(&args.file, args.format == "json");
    }
    let contents = contents::of(&args.file, args.full, args.budget);
    let contents = contents.map_err(|error| open::unreadable(&args.file, &error))?;
    Ok(if args.format == "json" {
        open::print_json(&document(&contents))
    } else {
        open::print_text(&text(&contents))
    })
}

fn command(contents: &Contents) -> Vec<String> {
    let args = contents.meta.command.iter();
    args.map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect()
}

fn bytes_per_event(contents: &Contents) -> f64 {
    match contents.tally.events.total() {
        0 => 0.0,
        events => contents.bytes as f64 / events as f64,
    }
}

/// A JSON object made of pairs of a name and a number, such as the counts of events.
fn object<'a>(numbers: impl IntoIterator<Item = &'a (&'static str, u64)>) -> Value {
    let numbers = numbers.into_iter();
    Value::Object(
        numbers
            .map(|(name, n)| ((*name).to_owned(), json!(n)))
            .collect(),
    )
}

/// The kinds of facts that the recorder stopped recording before the end, with the times, in JSON; null for a run
/// without tracing, or if only a pass over all events (`tr info --full`) can find them.
fn degraded(contents: &Contents) -> Value {
    let meta = &contents.meta;
    if meta.not_traced.is_some() {
        return Value::Null;
    }
    match &contents.analysis {
        Some(analysis) => {
            let all = analysis.quality.degraded.iter();
            all.map(|(time, what)| {
                json!({
                    "time_ns": time.since(meta.start),
                    "what": String::from_utf8_lossy(what),
                })
            })
            .collect()
        }
        None if contents.tally.events.of_kind("degraded") > 0 => Value::Null,
        None => json!([]),
    }
}

fn document(contents: &Contents) -> Value {
    let meta = &contents.meta;
    let analysis = contents.analysis.as_ref();
    let quality = analysis.map(|analysis| &analysis.quality);
    let allowed = meta.options.allowed.as_ref();
    // The fields that come from events are null for a run without tracing.
    let traced = meta.not_traced.is_none();
    json!({
        "schema": "tr.info/1",
        "format_version": format!("{}.{}", tr_format::frame::MAJOR, contents.minor),
        "tool_version": meta.tool_version,
        "host": meta.host,
        "kernel": meta.kernel,
        "machine": meta.machine,
        "hardware": meta.hardware.as_ref().map(|all| {
            all.iter().map(|(name, value)| (safe(name), json!(safe(value)))).collect::<Map<_, _>>()
        }),
        "command": command(contents),
        "not_traced": meta.not_traced,
        "method": traced.then(|| meta.recorded_by()),
        "facts": traced.then(|| facts(meta).into_iter().map(|fact| {
            (fact.key.to_owned(), json!(fact.known.name()))
        }).collect::<Map<_, _>>()),
        "degraded": degraded(contents),
        "usage": usage_json(contents.usage()),
        "start_unix_ns": meta.start_unix(),
        "duration_ns": contents.known_duration(),
        "cpus": meta.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
        "events": traced.then(|| contents.tally.events.total()),
        "events_by_kind": traced.then(|| object(&contents.by_kind())),
        "bytes": contents.bytes,
        "bytes_per_event": traced.then(|| bytes_per_event(contents)),
        "frames": contents.tally.frames,
        "lost_events": traced.then(|| contents.lost()),
        "largest_inversion_ns": traced.then_some(contents.tally.largest_inversion),
        "commit_delay_ns": traced.then_some(contents.tally.commit_delay),
        "analyzed": analysis.is_some(),
        "unknown_ns": analysis.filter(|_| traced).map(|analysis| analysis.totals.times.unknown),
        "anomalies": quality.filter(|_| traced).map(|quality| object(&quality.anomalies)),
        "clocks": quality.map(tr_report::json::clocks),
        "suspends": contents.tally.suspends.iter().map(|suspend| json!({
            "since_ns": suspend.since.since(meta.start),
            "until_ns": suspend.until.since(meta.start),
            "asleep_ns": suspend.asleep,
        })).collect::<Vec<_>>(),
        "truncated": contents.end != End::Complete,
        "max_size": full_json(contents),
        "ended_by_limit": contents.summary.as_ref().and_then(|summary| summary.ended).map(|ended| json!({
            "option": match ended.limit {
                CommandLimit::Timeout => "timeout",
                CommandLimit::Stall => "stall",
            },
            "ns": ended.ns,
        })),
        "cost": contents.cost().map(|cost| json!({
            "recorder_ns": cost.recorder_ns, "bpf_ns": cost.bpf_ns, "setup_ns": cost.setup_ns,
        })),
        "options": {
            "buffer": meta.options.buffer,
            "argv_limit": meta.options.argv_limit,
            "cpus": meta.options.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
        },
        "allowed_cpus": allowed.map(|all| all.iter().map(|cpu| cpu.0).collect::<Vec<_>>()),
        "unknown": {
            "frames": contents.unknown.frames,
            "events": contents.unknown.events,
            "fields": contents.unknown.fields,
        },
        "scripts": scripts_json(contents),
        "scripts_left_out": contents.summary.as_ref().map(|summary| summary.scripts_left_out),
        "missing": meta.missing,
        "ci": meta.ci.iter().cloned().collect::<BTreeMap<_, _>>(),
    })
}

/// The text of `tr info`: lines with a name, such as `command`, and a value.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn say(&mut self, name: &str, value: impl AsRef<str>) {
        let value = safe(value.as_ref());
        self.0.push_str(&format!("{name:<20}{value}\n"));
    }
}

fn safe(text: &str) -> String {
    escape::text(text.as_bytes())
}

fn text(contents: &Contents) -> String {
    let mut lines = Lines::default();
    recording(&mut lines, contents);
    match &contents.meta.not_traced {
        None => events(&mut lines, contents),
        Some(reason) => not_traced(&mut lines, contents, reason),
    }
    file(&mut lines, contents);
    if contents.meta.not_traced.is_none() {
        method(&mut lines, contents);
        scripts(&mut lines, contents);
        completeness(&mut lines, contents);
        trust(&mut lines, contents);
        cost(&mut lines, contents);
    }
    for missing in &contents.meta.missing {
        lines.say("not recorded", safe(&missing.to_string()));
    }
    for (name, value) in &contents.meta.ci {
        lines.say(&safe(name), safe(value));
    }
    lines.0
}

/// Adds the lines about the recorded command, the machine and the time of the recording to the output of `tr
/// info`.
fn recording(lines: &mut Lines, contents: &Contents) {
    let meta = &contents.meta;
    let major = tr_format::frame::MAJOR;
    let writer = safe(&meta.tool_version);
    lines.say(
        "format",
        format!("{major}.{}, written by tr {writer}", contents.minor),
    );
    let names = [&meta.host, &meta.kernel, &meta.machine].map(|name| safe(name));
    let [host, kernel, machine] = names;
    lines.say("host", format!("{host}, {kernel} {machine}"));
    let recorded = who::recorded(meta);
    if meta.command.is_empty() {
        lines.say("command", format!("none ({recorded})"));
    } else {
        lines.say("command", recorded);
    }
    lines.say("recorded", units::date(meta.start_unix()));
    let duration = contents.known_duration();
    lines.say("duration", duration.map_or("unknown".into(), units::time));
    let cpus = meta.cpus.len().to_string();
    let model = who::cpu(meta);
    lines.say(
        "CPUs",
        model.map_or_else(|| cpus.clone(), |model| format!("{cpus} × {model}")),
    );
    if let Some(allowed) = who::allowed(meta) {
        lines.say("allowed CPUs", allowed);
    }
    let hardware = |fact| meta.hardware(fact).map(safe);
    let memory = tr_insight::resources::memory::of_machine(meta);
    let machine = hardware(Hardware::Virtualization).map(|name| match name.as_str() {
        "none" => "no hypervisor".into(),
        _ => name,
    });
    let machine: Vec<String> = memory
        .map(units::bytes)
        .into_iter()
        .chain(machine)
        .collect();
    if !machine.is_empty() {
        lines.say("machine", machine.join(", "));
    }
}

fn events(lines: &mut Lines, contents: &Contents) {
    lines.say("events", units::count(contents.tally.events.total()));
    for (name, count) in contents.by_kind().into_iter().filter(|(_, n)| *n > 0) {
        lines.say("", format!("{name:<12}{:>14}", units::count(count)));
    }
}

/// Adds the lines about a run without tracing to the output of `tr info`: the reason, and COMMAND's exit
/// status and resource usage.
fn not_traced(lines: &mut Lines, contents: &Contents, reason: &str) {
    lines.say("not traced", safe(reason));
    if let Some(status) = contents.summary.as_ref().and_then(|summary| summary.status) {
        lines.say("exit status", exit::words(status));
    }
    for (name, value) in usage_lines(contents.usage()) {
        lines.say(name, value);
    }
}

/// The sentence of `tr info` for a recording that ended because its file reached a size limit.
fn full(contents: &Contents) -> Option<String> {
    let summary = contents.summary.as_ref()?;
    exit::full(&contents.meta, summary, summary.end)
}

/// The sentence of `tr info` for a COMMAND that the recorder ended, because it had reached a limit.
fn ended(contents: &Contents) -> Option<String> {
    let ended = contents.summary.as_ref()?.ended?;
    Some(format!("ended by {TR} at {}", exit::limit(ended)))
}

/// The JSON about a recording that ended at its size limit: the limit, and how COMMAND ended after that (exit status,
/// times); null if no limit was reached.
fn full_json(contents: &Contents) -> Value {
    let summary = contents.summary.as_ref();
    let Some((summary, full)) = summary.and_then(|summary| Some((summary, summary.full?))) else {
        return Value::Null;
    };
    json!({
        "limit": full.limit,
        "command": full.command.map(|command| json!({
            "exit": summary.status.map(Exit::from),
            "duration_ns": command.time.since(contents.meta.start),
            "usage": usage_json(Some(command.usage)),
        })),
    })
}

/// The facts about the shell scripts in the recording, in JSON; null if the recording has no summary.
fn scripts_json(contents: &Contents) -> Value {
    let Some(summary) = &contents.summary else {
        return Value::Null;
    };
    let script = |script: &RecordedScript| {
        let text = script.text.as_ref();
        json!({
            "path": String::from_utf8_lossy(&script.path),
            "text": text.map(|text| String::from_utf8_lossy(text)),
        })
    };
    summary.scripts.iter().map(script).collect()
}

/// Adds the line about recorded shell scripts to the output of `tr info`, if the recording has any.
fn scripts(lines: &mut Lines, contents: &Contents) {
    let Some(summary) = &contents.summary else {
        return;
    };
    let (kept, changed): (Vec<_>, Vec<_>) = summary
        .scripts
        .iter()
        .partition(|script| script.text.is_some());
    let counts = [
        (kept.len() as u64, "kept"),
        (changed.len() as u64, "changed meanwhile"),
        (summary.scripts_left_out, "left out"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what)| format!("{} {what}", units::count(count)))
        .collect();
    if !counts.is_empty() {
        lines.say("scripts", counts.join(", "));
    }
}

/// Adds the lines about the size of the recording's file, and whether its end is intact, to the output of `tr
/// info`.
fn file(lines: &mut Lines, contents: &Contents) {
    let (bytes, frames) = (units::count(contents.bytes), contents.tally.frames);
    if contents.meta.not_traced.is_some() {
        lines.say("size", format!("{bytes} bytes"));
    } else {
        let each = bytes_per_event(contents);
        lines.say(
            "size",
            format!("{bytes} bytes, {each:.2} an event, {frames} frames"),
        );
    }
    lines.say(
        "end",
        match &contents.end {
            End::Complete => match (full(contents), ended(contents)) {
                (Some(full), _) => format!("complete, but {full}"),
                (None, Some(ended)) => format!("complete; the command was {ended}"),
                (None, None) => "complete".into(),
            },
            _ if contents.under_way => "not yet: the recording is under way".into(),
            End::Truncated { frame, offset, why } => {
                let why = safe(why);
                format!("truncated at frame {frame}, byte {offset} ({why}): {CUT_REASONS}")
            }
        },
    );
    let Unknown {
        frames,
        events,
        fields,
    } = contents.unknown;
    if contents.unknown != Unknown::default() {
        let later =
            format!("of a later version: {frames} frames, {events} events, {fields} fields");
        lines.say("not read", later);
    }
}

/// A kind of facts in a recording, and how facts of this kind were recorded.
struct FactKind {
    /// The key of this kind of facts, such as `run_queue` or `memory`, in the JSON of `tr info`.
    key: &'static str,
    /// The name of this kind of facts in the text of `tr info`.
    title: &'static str,
    known: Known,
}

fn facts(meta: &Metadata) -> [FactKind; 8] {
    let facts = meta.facts();
    [
        ("switches", "switches", facts.switches),
        ("wakings", "wakings", facts.wakings),
        ("run_queue", "run queue", facts.run_queue),
        ("blocked", "blocked", facts.blocked),
        ("life_times", "life times", facts.life_times),
        ("argv", "argv", facts.argv),
        ("codes", "codes", facts.codes),
        ("memory", "memory", facts.memory),
    ]
    .map(|(key, title, known)| FactKind { key, title, known })
}

/// Adds lines to the output of `tr info`: the method of recording, the source of each kind of fact, and the tasks and
/// facts that the recorder stopped recording.
fn method(lines: &mut Lines, contents: &Contents) {
    let meta = &contents.meta;
    lines.say("method", safe(meta.recorded_by()));
    for known in Known::ALL {
        let facts = facts(meta);
        let kinds = facts.iter().filter(|fact| fact.known == known);
        let kinds: Vec<&str> = kinds.map(|fact| fact.title).collect();
        if !kinds.is_empty() {
            lines.say("", format!("{:<12}{}", known.name(), kinds.join(", ")));
        }
    }
    let of_kind = |name| contents.tally.events.of_kind(name);
    let (detached, degraded) = (of_kind("detached"), of_kind("degraded"));
    if detached > 0 {
        let tasks = units::count(detached);
        lines.say(
            "let go",
            format!("{tasks} tasks, which other programs trace"),
        );
    }
    match &contents.analysis {
        Some(analysis) => {
            for (time, what) in &analysis.quality.degraded {
                let at = units::time(time.since(meta.start));
                lines.say("let go", format!("{} (at {at})", escape::text(what)));
            }
        }
        None if degraded > 0 => lines.say("let go", "more: --full says"),
        None => {}
    }
}

/// Adds the lines about lost events and events out of order to the output of `tr info`.
fn completeness(lines: &mut Lines, contents: &Contents) {
    let lost = contents.lost().into_iter();
    let lost = lost.map(|(stream, n)| format!("{} on {stream}", units::count(n)));
    // The summary is written after all events, so without it later events may be missing.
    let cut = contents.summary.is_none();
    let cut = cut.then(|| "the rest is missing".to_owned());
    let lost: Vec<String> = lost.chain(cut).collect();
    lines.say(
        "lost",
        if lost.is_empty() {
            "none".into()
        } else {
            lost.join(", ")
        },
    );
    lines.say(
        "largest step back",
        match contents.tally.largest_inversion {
            0 => "none".into(),
            back => units::time(back),
        },
    );
    // A commit delay is the time from an event's timestamp until the BPF program has stored the event for the recorder.
    // The delay is noticed only if the event comes too late in the file. Such an event proves only a lower bound of its
    // delay, so the text says "at least".
    lines.say(
        "commit delay",
        match (contents.tally.commit_delay, &contents.analysis) {
            (0, _) => "none found".into(),
            (delay, Some(_)) => format!("at least {}", units::time(delay)),
            // Without an analysis nobody has compared the clocks of the CPUs. If the clock of one CPU is behind, the
            // events of this CPU look delayed.
            (delay, None) => format!("at least {}, if the clocks agree", units::time(delay)),
        },
    );
}

/// Adds the lines about anomalies, clocks, suspends and unknown time to the output of `tr info`.
fn trust(lines: &mut Lines, contents: &Contents) {
    let analysis = contents.analysis.as_ref();
    let quality = analysis.map(|analysis| &analysis.quality);
    let unasked = || "not known without --full".to_owned();
    lines.say("anomalies", quality.map_or_else(unasked, anomalies));
    lines.say("clocks", quality.map_or_else(unasked, clocks));
    for suspend in &contents.tally.suspends {
        let at = |time: Ktime| units::time(time.since(contents.meta.start));
        let (asleep, since) = (units::time(suspend.asleep), at(suspend.since));
        let until = at(suspend.until);
        lines.say(
            "suspended",
            format!("for {asleep}, between {since} and {until}; the trace's times exclude it"),
        );
    }
    lines.say(
        "unknown time",
        match analysis.map(|analysis| analysis.totals.times.unknown) {
            None => unasked(),
            Some(0) => "none".into(),
            Some(unknown) => units::time(unknown),
        },
    );
}

fn cost(lines: &mut Lines, contents: &Contents) {
    let Some(cost) = contents.cost() else {
        return;
    };
    let uncounted = || "not counted (kernel.bpf_stats_enabled is off)".to_owned();
    let bpf = cost.bpf_ns.map_or_else(uncounted, units::time);
    let (recorder, start) = (units::time(cost.recorder_ns), units::time(cost.setup_ns));
    lines.say(
        "tracing cost",
        format!("recorder {recorder} of CPU, BPF programs {bpf}, start {start}"),
    );
}

fn anomalies(quality: &Quality) -> String {
    match warnings::anomalies(quality) {
        none if none.is_empty() => "none".into(),
        found => found.join(", "),
    }
}

fn clocks(quality: &Quality) -> String {
    let clocks = warnings::clocks(quality);
    clocks.unwrap_or_else(|| "no event order contradicts synchronized clocks".into())
}
