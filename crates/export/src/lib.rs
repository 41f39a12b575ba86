//! Writes a recording for other tools (`tr export`).
//!
//! Texts of a recording are written as they were recorded, but bytes that are not UTF-8 become `\xNN`. Folded stacks,
//! which are lines of text, are escaped as for a terminal. Text that redaction removed is not in the recording any
//! more.
#![forbid(unsafe_code)]

pub mod compile_commands;
pub mod dataset;
pub mod junit;
mod messages;
pub mod otlp;
pub mod perfetto;
mod stacks;

use std::io::{self, Write};

use tr_format::reader::Trace;

use otlp::{Encoding, Signal};
use tr_insight::views::view::View;
use tr_text::named;

named! {
    pub enum Format {
        Perfetto = "perfetto", "a trace for ui.perfetto.dev and trace_processor";
        Otlp = "otlp", "spans of OpenTelemetry, of steps and processes";
        OtlpJson = "otlp-json", "the same spans as JSON";
        OtlpMetrics = "otlp-metrics", "metrics of OpenTelemetry: the job's figures";
        OtlpMetricsJson = "otlp-metrics-json", "the same metrics as JSON";
        Folded = "folded", "a line for each stack of processes, with its weight";
    }
}

named! {
    /// The time that decides how wide a stack of processes or functions is in a flame graph.
    #[derive(Default)]
    pub enum Weight {
        #[default]
        Cpu = "cpu", "CPU time";
        /// A stack's weight is the wall time of its process, without the wall time of the process's children.
        Wall = "wall", "wall time, without that of children";
        /// A stack's weight is the time in which its process waited: in run queues, asleep and blocked.
        Waiting = "waiting", "time off CPU: run queue, sleep, blocked";
        /// The weight of a stack of functions is the time on a CPU that its samples stand for.
        Stacks = "stacks", "sampled time on a CPU, by function";
        /// The weight of a stack of functions is the time of the sampled waits in which the stack was found.
        Waits = "waits", "sampled waits, by function";
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    pub format: Format,
    pub weight: Weight,
    pub shown: perfetto::TrackOptions,
    pub resource: &'a [otlp::Given],
    /// The ids of the trace and of the spans that an OTLP export writes.
    pub ids: &'a otlp::ids::Ids,
}

/// Writes an export of the chosen processes in a format such as Perfetto. The scheduling events for Perfetto are read
/// from `trace`. The analysis must have a timeline if [`Format::needs_timeline`] says so.
pub fn write(
    settings: Settings<'_>,
    view: &View<'_>,
    trace: &Trace,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (resource, ids) = (settings.resource, settings.ids);
    match settings.format {
        Format::Perfetto => perfetto::write(view, trace, settings.shown, out),
        Format::Otlp => otlp::write(view, Encoding::Protobuf, resource, ids, out),
        Format::OtlpJson => otlp::write(view, Encoding::Json, resource, ids, out),
        Format::OtlpMetrics => otlp::metrics::write(view, Encoding::Protobuf, resource, out),
        Format::OtlpMetricsJson => otlp::metrics::write(view, Encoding::Json, resource, out),
        Format::Folded => stacks::folded(view, settings.weight, out),
    }
}

impl Format {
    /// Whether an export in this format needs the analysis's timeline, because it includes the critical path.
    pub fn needs_timeline(self) -> bool {
        self == Format::Perfetto || self.is_otlp()
    }

    /// Whether an export in this format consists of stacks, for which the user chooses a [`Weight`].
    pub fn has_weights(self) -> bool {
        self == Format::Folded
    }

    /// The kind of OTLP data (traces or metrics) that this format has; `None` if the format is not one of OTLP.
    pub fn signal(self) -> Option<Signal> {
        match self {
            Format::Otlp | Format::OtlpJson => Some(Signal::Traces),
            Format::OtlpMetrics | Format::OtlpMetricsJson => Some(Signal::Metrics),
            Format::Perfetto | Format::Folded => None,
        }
    }

    /// Whether an export in this format is a request of OTLP, which can be sent to a receiver.
    pub fn is_otlp(self) -> bool {
        self.signal().is_some()
    }

    /// Whether an export in this format consists of spans, as OTLP's traces do.
    pub fn has_spans(self) -> bool {
        self.signal() == Some(Signal::Traces)
    }

    /// The encoding of an OTLP request in this format: JSON or Protobuf.
    pub fn encoding(self) -> Encoding {
        match self {
            Format::OtlpJson | Format::OtlpMetricsJson => Encoding::Json,
            _ => Encoding::Protobuf,
        }
    }
}
