//! A trace for Perfetto: scheduling events in compact form, the process tree, track events.
//!
//! The export follows these rules of Perfetto's importer (trace_processor):
//! - The first switch of a CPU only shows which task runs, so each CPU begins with a switch to swapper.
//! - The importer takes the next task of one switch as the previous task of the following switch on the CPU. So after a
//!   recorded task has left the CPU, a made-up task "not recorded" runs, or the idle task where that is known.
//! - A waking belongs to the bundle of the waker's CPU. Bits 0x08 and 0x10 of its flags stand for interrupts and
//!   softirqs.
//! - task_newtask begins a new thread, even if its tid was used before.
//!
//! All times are those of the recording, as times since boot.

mod bundle;
pub mod detail;
mod lives;
mod packets;
mod switches;

use std::io::{self, Write};

use tr_analyze::kinds::TimeKind;
use tr_analyze::model::{Analysis, Basis, ProcessIx, ThreadIx};
use tr_format::counters::{Counter, Unit};
use tr_format::event::{Ktime, Tid};
use tr_format::reader::Trace;
use tr_programs::command_line;
use tr_programs::steps::StepKind;

use crate::messages::*;
use detail::{Merger, Piece};
use lives::Lives;
pub use packets::TrackOptions;
use packets::{number, text, words, Packets};
use tr_insight::path;
use tr_insight::path::kinds;
use tr_insight::processes::exit;
use tr_insight::processes::label;
use tr_insight::steps;
use tr_insight::steps::result::StepResult;
use tr_insight::steps::Steps;
use tr_insight::views::view::View;
use tr_text::{escape, units};

/// The largest width in columns of a process's name on the critical path's track. The name is short, because the path
/// has many pieces in one process, and the process's own track has its full arguments.
const LEG_NAME: usize = 80;
pub fn write(
    view: &View<'_>,
    trace: &Trace,
    shown: TrackOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut packets = Packets::new(out);
    let analysis = view.analysis;
    let long = |ix: &&ProcessIx| analysis.process(**ix).wall() >= shown.detail;
    let long: Vec<ProcessIx> = view.chosen.iter().filter(long).copied().collect();
    let long = View {
        chosen: &long,
        ..*view
    };
    head(analysis, &mut packets)?;
    tracks(&long, shown.detail, &mut packets)?;
    if analysis.basis() == Basis::Events {
        let comms = analysis.threads.iter();
        let comms = comms.map(|thread| (thread.tid, thread.comm)).collect();
        if analysis.timeline.is_some() {
            switches::write(view, shown.detail, &comms, &mut packets)?;
        } else {
            switches::by_events(view, trace, shown.detail, &comms, &mut packets)?;
        }
        Lives::new(&long, shown).write(trace, &mut packets)?;
    }
    Ok(())
}

/// Writes what the clocks (time of day, time since boot) showed at the recording's start to the Perfetto trace, and the
/// kernel's release, which the importer needs to read the states of tasks.
fn head(analysis: &Analysis, packets: &mut Packets<'_>) -> io::Result<()> {
    // The numbers of BUILTIN_CLOCK_REALTIME and BUILTIN_CLOCK_BOOTTIME in Perfetto.
    const REALTIME: u32 = 1;
    const BOOTTIME: u32 = 6;
    let meta = &analysis.meta;
    let clocks = [
        (BOOTTIME, Some(meta.start.0)),
        (REALTIME, meta.start_unix()),
    ];
    let known = clocks.into_iter().filter_map(|(clock_id, time)| {
        let timestamp = time?;
        Some(Clock {
            clock_id,
            timestamp,
        })
    });
    let snapshot = ClockSnapshot {
        clocks: known.collect(),
    };
    packets.put(None, Data::ClockSnapshot(snapshot))?;
    let kernel = meta.kernel_name();
    let utsname = Utsname {
        sysname: text(kernel.system.as_bytes()),
        release: text(kernel.release.as_bytes()),
        machine: text(meta.machine.as_bytes()),
    };
    let info = SystemInfo {
        utsname: Some(utsname),
    };
    packets.put(None, Data::SystemInfo(info))
}

/// Writes the tracks that come from the analysis: programs, steps, the critical path, the machine's counters. Steps
/// shorter than `detail` ns are left out, and pieces of the critical path that are shorter are merged.
fn tracks(view: &View<'_>, detail: u64, packets: &mut Packets<'_>) -> io::Result<()> {
    let analysis = view.analysis;
    for process in view.processes() {
        if process.execs.is_empty() {
            continue;
        }
        let track = packets.thread(process.pid, Tid(process.pid.0))?;
        for (at, exec) in process.execs.iter().enumerate() {
            let mut facts = vec![words("argv", escape::quoted(exec.argv.args()))];
            let last = at + 1 == process.execs.len();
            if let Some(status) = process.status.filter(|_| last) {
                facts.push(words("exit", exit::words(status)));
            }
            let name = command_line::whole_label_of(&exec.argv, &exec.comm, false);
            packets.slice(track, exec.start..exec.end, name, facts)?;
        }
    }
    let steps = Steps::new(analysis, &view.recording.imports.spans);
    let long = |step: &&steps::Step| step.to.since(step.from) >= detail;
    for step in steps.list().iter().filter(long) {
        let kind = if step.kind == StepKind::Test {
            "Tests"
        } else {
            "Steps"
        };
        let track = packets.named(kind)?;
        let mut facts = vec![words("kind", step.kind.name().to_owned())];
        facts.extend(step.status.map(|status| words("exit", exit::words(status))));
        let result = step.result.clone().map(StepResult::into_word);
        facts.extend(result.map(|result| words("result", result)));
        packets.slice(
            track,
            step.from..step.to,
            step.name.whole().to_owned(),
            facts,
        )?;
    }
    critical_path(view, detail, packets)?;
    counters(analysis, packets)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Leg {
    thread: ThreadIx,
    kind: TimeKind,
    inferred: bool,
}

/// Writes the critical path as a track of the Perfetto trace, if there is one.
fn critical_path(view: &View<'_>, detail: u64, packets: &mut Packets<'_>) -> io::Result<()> {
    let Ok(path) = path::path_of(view) else {
        return Ok(());
    };
    let track = packets.named("Critical path")?;
    let mut merger = Merger::new(detail);
    let segments = path.segments.iter().map(|segment| {
        let leg = Leg {
            thread: segment.thread,
            kind: segment.kind,
            inferred: segment.inferred,
        };
        (segment.from, segment.to, leg)
    });
    for segment in segments {
        for piece in merger.add(segment).into_iter().flatten() {
            leg(view.analysis, track, piece, packets)?;
        }
    }
    match merger.take() {
        Some(piece) => leg(view.analysis, track, piece, packets),
        None => Ok(()),
    }
}

fn leg(
    analysis: &Analysis,
    track: u64,
    (from, to, leg): Piece<Leg>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let thread = analysis.thread(leg.thread);
    let process = analysis.process(thread.process);
    let mut facts = vec![
        words("kind", kinds::title(leg.kind).to_owned()),
        number("pid", u64::from(process.pid.0)),
        number("tid", u64::from(thread.tid.0)),
    ];
    if leg.inferred {
        facts.push(words("inferred", "true".to_owned()));
    }
    let name = units::shorten(&label::label(process), LEG_NAME);
    packets.slice(track, from..to, name, facts)
}

/// Writes the machine's counters as tracks of the Perfetto trace: momentary values as they are, and totals of time as
/// a percentage of the time since the previous sample. Numbers of events are left out.
fn counters(analysis: &Analysis, packets: &mut Packets<'_>) -> io::Result<()> {
    for counter in Counter::ALL {
        let unit = match counter.unit() {
            Unit::Time => "%",
            Unit::Bytes => "bytes",
            Unit::Frequency => "kHz",
            Unit::Count => continue,
        };
        let mut track = None;
        let mut before: Option<(Ktime, u64)> = None;
        for (time, counters) in &analysis.machine.counters {
            let Some(value) = counters.get(counter) else {
                continue;
            };
            let last = before.replace((*time, value));
            if !(analysis.start..=analysis.end).contains(time) {
                continue;
            }
            let shown = match (counter.unit(), last) {
                (Unit::Time, None) => continue,
                (Unit::Time, Some((since, total))) => {
                    let span = time.since(since).max(1);
                    value.saturating_sub(total) as f64 * 100.0 / span as f64
                }
                _ => value as f64,
            };
            let track = match track {
                Some(track) => track,
                None => *track.insert(packets.counter(counter.name(), unit)?),
            };
            packets.count(track, *time, shown)?;
        }
    }
    Ok(())
}
