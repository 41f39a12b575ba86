//! Writes a recording for other tools (`tr export`).
//!
//! Every text of a recording is escaped as for a terminal. Text that redaction removed is not in the
//! recording any more.
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
use tr_insight::view::View;
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
    /// The time by which a stack of processes or functions is weighted.
    #[derive(Default)]
    pub enum Weight {
        #[default]
        Cpu = "cpu", "CPU time";
        /// The wall time of a process without the wall time of its children.
        Wall = "wall", "wall time, without that of children";
        /// The time of a process in run queues, asleep and blocked.
        Waiting = "waiting", "time off CPU: run queue, sleep, blocked";
        /// The sampled time of a process on a CPU, by the stacks of functions.
        Stacks = "stacks", "sampled time on a CPU, by function";
        /// The time of a process's sampled waits, by the stacks of functions.
        Waits = "waits", "sampled waits, by function";
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    pub format: Format,
    pub weight: Weight,
    pub shown: perfetto::TrackOptions,
    pub resource: &'a [otlp::Given],
    /// The ids of the spans that are written.
    pub ids: &'a otlp::ids::Ids,
}

/// Writes an export of the processes that the view has chosen. `trace` is read once more for the scheduling
/// events. The analysis has a timeline if [`Format::needs_timeline`].
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
    /// Whether the export needs a timeline, because it has the critical path.
    pub fn needs_timeline(self) -> bool {
        self == Format::Perfetto || self.is_otlp()
    }

    /// Whether the export has stacks with a [`Weight`].
    pub fn has_weights(self) -> bool {
        self == Format::Folded
    }

    /// The kind of data that a request of OTLP has; `None` for another format.
    pub fn signal(self) -> Option<Signal> {
        match self {
            Format::Otlp | Format::OtlpJson => Some(Signal::Traces),
            Format::OtlpMetrics | Format::OtlpMetricsJson => Some(Signal::Metrics),
            Format::Perfetto | Format::Folded => None,
        }
    }

    /// Whether the export is a request of OTLP.
    pub fn is_otlp(self) -> bool {
        self.signal().is_some()
    }

    /// Whether the export has spans of OTLP.
    pub fn has_spans(self) -> bool {
        self.signal() == Some(Signal::Traces)
    }

    /// The encoding of the request of OTLP.
    pub fn encoding(self) -> Encoding {
        match self {
            Format::OtlpJson | Format::OtlpMetricsJson => Encoding::Json,
            _ => Encoding::Protobuf,
        }
    }
}
