//! Implements `tr export`, which writes a recording for other tools, or as a run of a dataset.

mod benchmarks;
mod compile_commands;
mod dataset;
mod file;
mod junit;
mod options;

use std::io::Write;
use std::process::ExitCode;

use tr_analyze::{Analysis, Options};
use tr_export::otlp::ids::Ids;
use tr_export::otlp::Signal;
use tr_export::perfetto::{detail, TrackOptions};
use tr_export::{otlp, Format, Settings, Weight};
use tr_format::meta::Extra;
use tr_format::reader::Trace;
use tr_report::reports::{Ask, TimelineUse, View};

use crate::errors::{self, Done};
use crate::filters::Filters;
use crate::subcommand::{Hint, Program, Subcommand};
use crate::{analysis, args, output, parts, send};
use file::to_file;
use options::{by_ending, has_date, min_or, misplaced, refuse_part, To};
pub use options::{names, Args};
use tr_text::called::TR;
use tr_text::units;

/// The error text if a trace has no stacks of the kind that the weight counts (samples on a CPU, or waits); `None` if
/// the trace has them.
fn no_stacks(trace: &Trace, weight: Weight) -> Option<String> {
    match weight {
        Weight::Stacks if !trace.meta().has(Extra::Stacks) => Some(format!(
            "no stacks on a CPU are recorded: {TR} record --stacks does"
        )),
        Weight::Waits if !trace.meta().has(Extra::OffCpuStacks) => Some(format!(
            "no stacks of waits are recorded: {TR} record --off-cpu-stacks does"
        )),
        _ => None,
    }
}

impl Subcommand for Args {
    const HINTS: &'static [Hint] = &[
        Hint {
            wrong: "chrome",
            advice: "chrome was removed: use --format perfetto",
        },
        Hint {
            wrong: "speedscope",
            advice: "speedscope was removed: use --format folded",
        },
    ];

    fn run(self, _: &Program) -> Done {
        export(&self)
    }
}

fn export(args: &Args) -> Done {
    let endpoint = args.endpoint.clone();
    let is_file = args.output.is_some() || args.tables.is_some();
    let signal = match args.format {
        Some(To::File(format)) => format.signal(),
        _ => None,
    };
    let signal = signal.unwrap_or(Signal::Traces);
    let endpoint = endpoint.or_else(|| send::endpoint(signal).filter(|_| !is_file));
    let named = args.format.or_else(|| by_ending(args.output.as_deref()?));
    let to = match (named, &endpoint) {
        (None, Some(_)) => Some(To::File(send::protocol().map_err(errors::refused)?)),
        (named, _) => named,
    };
    if args.output.is_none() && args.tables.is_none() && endpoint.is_none() {
        let why = "export: name the output: -o OUT, or a receiver of otlp: --endpoint URL";
        return Err(errors::refused(why));
    }
    let Some(to) = to else {
        let mut names = names();
        let last = names.pop().unwrap_or_default();
        let names = names.join(", ");
        let why = format!("export: name the format: --format {names} or {last}");
        return Err(errors::refused(why));
    };
    if let Some(why) = misplaced(args, to, endpoint.is_some()) {
        return Err(errors::refused(why));
    }
    let format = match to {
        To::File(format) => format,
        To::Dataset => {
            return match &args.tables {
                Some(directory) => dataset::write_tables(args, directory),
                None => dataset::write(args),
            };
        }
        To::Junit => return junit::write(args),
        To::CompileCommands => return compile_commands::write(args),
        To::Benchmarks(service) => return benchmarks::write(args, service),
    };
    convert(args, format, endpoint.as_deref())
}

/// Exports the recording in a format such as Perfetto or OTLP, to a file or to an endpoint of OpenTelemetry.
fn convert(args: &Args, format: Format, endpoint: Option<&str>) -> Done {
    let trace = parts::opened(&args.file, &args.more)?;
    let weight = args.weight.unwrap_or(Weight::Cpu);
    if let Some(why) = no_stacks(&trace, weight) {
        let name = errors::shown(&args.file);
        return Err(errors::refused(format!("{name}: {why}")));
    }
    if format.is_otlp() {
        has_date(&trace, args)?;
    }
    if format.signal() == Some(Signal::Metrics) {
        let why = "metrics are of whole recordings: without --from and --to";
        refuse_part(args, why)?;
    }
    let source = args.trace_ids.clone().unwrap_or_default();
    let ids = Ids::new(trace.meta(), &source).map_err(|why| {
        let name = errors::shown(&args.file);
        errors::refused(format!("{name}: --trace-ids: {why}"))
    })?;
    let name = args.file.to_string_lossy();
    args.span.check()?;
    let (from, to) = args.span.ns();
    let options = Options {
        from,
        to,
        timeline: format.needs_timeline(),
        ..Options::default()
    };
    let mut recording = analysis::analyze(
        &trace,
        &options,
        analysis::Allowance::new(args.budget, TimelineUse::Path),
    );
    if args.with.paths().next().is_some() && !(format.has_spans() || format == Format::Perfetto) {
        message!("{} has no steps: --with adds nothing to it", format.name());
    }
    args.with.add(&mut recording)?;
    args.span.check_in(&recording.analysis)?;
    let mut filter = args.filters.filter_in(&recording)?;
    if format.has_spans() {
        filter.min = min_or(args, otlp::SHORTEST_SPAN);
    }
    let ask = Ask {
        min: filter.min,
        ..Ask::default()
    };
    let chosen = Filters::chosen(&filter, &recording);
    let view = View::new(&recording, &chosen, &name, &ask);
    let resource = send::resource();
    let settings = Settings {
        resource: &resource,
        ids: &ids,
        format,
        weight,
        shown: TrackOptions {
            flows: args.flows,
            detail: detail(args, format, &trace, &recording.analysis),
        },
    };
    let write = |out: &mut dyn Write| tr_export::write(settings, &view, &trace, out);
    let signal = format.signal().unwrap_or(Signal::Traces);
    match (&args.output, endpoint) {
        (Some(output), _) => {
            let kind = kind(format);
            to_file((output, args.force), &args.file, kind, write)
        }
        (None, Some(url)) => Ok(send::otlp(url, signal, format.encoding(), write)),
        // `export` has already refused a command line with neither an output file nor a URL.
        (None, None) => Err(ExitCode::from(errors::UNREADABLE_STATUS)),
    }
}

/// The length in ns below which the Perfetto export merges neighbouring slices. If this is the default for a large
/// recording, a line on standard error says so.
fn detail(args: &Args, format: Format, trace: &Trace, analysis: &Analysis) -> u64 {
    if format != Format::Perfetto {
        return 0;
    }
    if let Some(given) = args.detail {
        return args::nanoseconds(given);
    }
    let events = analysis::events_in(trace, args.span.ns());
    let detail = detail::of(analysis, events);
    if detail > 0 {
        message!(
            "{} events would make up to {}, which no browser opens: what is shorter than {} is merged\n    \
             --detail 0s leaves nothing out, --from and --to show a part",
            units::count(events),
            units::bytes(detail::whole(analysis, events)),
            units::time(detail)
        );
    }
    detail
}

/// The test that recognizes existing exports of a format, which a new export may replace, and whether the format is
/// binary. Source and configuration files never pass the test.
fn kind(format: Format) -> (tr_output::FileKind, bool) {
    let binary = matches!(
        format,
        Format::Perfetto | Format::Otlp | Format::OtlpMetrics
    );
    let (name, is): (_, fn(&[u8]) -> bool) = match format {
        // Files in both formats (Protobuf) begin with the tag byte of field 1, which is 10 and looks like a line feed.
        // A text file may begin so, too, but has no bytes below the tab (9).
        Format::Perfetto | Format::Otlp | Format::OtlpMetrics => ("such an export", |bytes| {
            bytes.starts_with(b"\n") && bytes.iter().any(|b| *b < b'\t')
        }),
        Format::OtlpJson => ("OTLP in JSON", |bytes| {
            output::is_json(bytes) && output::has(bytes, "\"resourceSpans\"")
        }),
        Format::OtlpMetricsJson => ("OTLP in JSON", |bytes| {
            output::is_json(bytes) && output::has(bytes, "\"resourceMetrics\"")
        }),
        Format::Folded => ("folded stacks", is_folded),
    };
    (tr_output::FileKind { name, is }, binary)
}

/// Whether a file's bytes look like folded stacks: every line has a stack, a blank and a number. The last line may be
/// incomplete.
fn is_folded(bytes: &[u8]) -> bool {
    let whole = bytes.iter().rposition(|b| *b == b'\n');
    let Some(lines) = whole.and_then(|end| bytes.get(..end)) else {
        return false;
    };
    lines.split(|b| *b == b'\n').all(|line| {
        let number = line.rsplit(|b| *b == b' ').next().unwrap_or_default();
        number.len() + 1 < line.len() && !number.is_empty() && number.iter().all(u8::is_ascii_digit)
    })
}
