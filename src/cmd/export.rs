//! Implements `tr export`, which writes a recording for other tools, or as a run of a dataset.

mod benchmarks;
mod compile_commands;
mod dataset;
mod junit;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use tr_analyze::{Analysis, Options};
use tr_compare::diff::benchmarks::Service;
use tr_export::otlp::ids::{IdSource, Ids};
use tr_export::otlp::Signal;
use tr_export::perfetto::{detail, TrackOptions};
use tr_export::{otlp, Format, Settings, Weight};
use tr_format::meta::Extra;
use tr_format::reader::Trace;
use tr_report::reports::{Ask, View};

use crate::budget::Budget;
use crate::errors::{self, Done};
use crate::filters::Filters;
use crate::output::Force;
use crate::progress::Use;
use crate::span::Span;
use crate::subcommand::{Hint, Program, Subcommand};
use crate::with::With;
use crate::{args, open, output, parts, progress, send};
use tr_text::called::TR;
use tr_text::units;

/// Write a recording for other tools: Perfetto, OpenTelemetry, SQL, flame graphs
#[derive(clap::Args, Debug)]
#[command(after_help = "\
perfetto: scheduling events, the process tree, and as tracks programs, steps, tests, the
critical path and the machine's counters. Tasks that the recording does not have are one
task, \"not recorded\". Perfetto reads gzip, too: -o - | gzip > build.pftrace.gz

otlp: a span for the recording, and for each step and process of at least --min (100ms).
The span around the recording is that of TRACEPARENT, or the GitHub job's; see --trace-ids.

otlp-metrics: the job's time, CPU time, waits for CPUs, memory and disk I/O, a point each.

junit: --with names one JUnit file; it is written to OUT as it is, with properties for each
test that the recording has: tr.cpu_s, tr.starved_s, tr.verdict, ...

compile-commands: the calls of compilers of C and its relatives that ended well, a source
each. What has no entry is counted on standard error.

parquet: with --tables DIR the facts of this recording, a file for each table: processes, waits,
path, steps, ... With -o, OUT is a directory, a dataset of runs. The recording is added to it as
TABLE/repo=PROJECT/date=DAY/RUN.parquet; a run that is there already stays as it is. Filters
choose rows of the table of processes alone, of at least --min (100ms).

Exit status: 0; 1 when OUT cannot be written or URL does not take it; 2 when FILE cannot be
read at all, or, for benchmark-action and bencher, is of a build that failed or of a part of one.

Examples:
  tr export trace.bin --format perfetto -o build.pftrace
  tr export trace.bin --format folded -o - | flamegraph.pl > build.svg
  tr export trace.bin --format folded --weight waiting -o waits.folded
  tr export trace.bin --format otlp --endpoint http://localhost:4318
  tr export trace.bin --format otlp-metrics --endpoint http://localhost:4318
  tr export trace.bin --format junit --with junit.xml -o junit.xml
  tr export trace.bin --format compile-commands -o compile_commands.json
  tr export trace.bin --format parquet --tables tables
  tr export trace.bin --format parquet -o runs")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT)]
    file: PathBuf,
    /// Further parts of the same recording, which --rotate has divided: tr export day/*.bin
    #[arg(value_name = "PART")]
    more: Vec<PathBuf>,
    /// The format [default: by OUT's ending: .pftrace, .folded, compile_commands.json]
    #[arg(long, value_parser = formats())]
    format: Option<To>,
    /// The export; - is standard output. An existing file is replaced once the export is
    /// complete. With parquet the dataset's directory
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Send otlp or otlp-metrics to this URL by curl, for at most 30 s; without a path, to its
    /// /v1/traces or /v1/metrics [default without -o: OTEL_EXPORTER_OTLP_ENDPOINT]. Of OpenTelemetry's variables, PROTOCOL,
    /// HEADERS, OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME count, too
    #[arg(long, value_name = "URL", conflicts_with = "output")]
    endpoint: Option<String>,
    /// The ids of spans in otlp: those of a receiver of CI events (github, or once a pipeline
    /// has ended gitlab:FINISHED_AT), or TRACE or TRACE-SPAN in hexadecimal digits
    /// [default: TRACEPARENT's, else github in GitHub Actions]
    #[arg(long, value_name = "IDS")]
    trace_ids: Option<IdSource>,
    /// The weight of a stack in folded [default: cpu]
    #[arg(long, value_parser = args::words(Weight::ALL.map(|weight| (weight, titled(weight.name(), weight.title())))))]
    weight: Option<Weight>,
    /// In perfetto: an arrow from waker to wakee for each wake-up
    #[arg(long)]
    flows: bool,
    /// In perfetto: merge stays on a CPU and parts of the critical path that are shorter than this, and
    /// leave out shorter processes; 0s: nothing [default: so that the file has 200 MB at most]
    #[arg(long, value_name = "T", value_parser = args::duration)]
    detail: Option<Duration>,
    /// Write the recording's own tables in parquet into this directory: TABLE.parquet, a row for each
    /// process, wait, part of the critical path, step, ...
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "endpoint"])]
    tables: Option<PathBuf>,
    /// The repository in parquet, instead of the CI system's
    #[arg(long, value_name = "NAME")]
    repo: Option<String>,
    /// The job in parquet, instead of the CI system's: a leg of a matrix
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// The waits for a runner in parquet, and the names of a matrix' legs: the answer of GitHub (GET
    /// …/actions/runs/ID/jobs) or GitLab (GET …/pipelines/ID/jobs), as JSON
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    span: Span,
    #[command(flatten)]
    with: With,
    #[command(flatten)]
    pub budget: Budget,
}

/// A value of `tr export --format`: the format of the export, and with it the kind of tool that reads it.
#[derive(Clone, Copy, Debug)]
enum To {
    File(Format),
    /// The export adds the recording to a dataset in Parquet that has many runs.
    Dataset,
    /// The export is a copy of the JUnit report that `--with` names, with facts of the recording added as properties of
    /// its tests.
    Junit,
    /// The export is a file `compile_commands.json` with the recorded compilations.
    CompileCommands,
    /// The export has the build's figures for a service that follows them from run to run, such as Bencher.
    Benchmarks(Service),
}

/// The word for the format [`To::CompileCommands`] on the command line.
const COMPILE_COMMANDS: &str = "compile-commands";

/// A clap parser for the option `--format` of `tr export`. Each format has a line of help.
fn formats() -> impl TypedValueParser<Value = To> {
    let files = Format::ALL.map(|format| (To::File(format), titled(format.name(), format.title())));
    let dataset = titled("parquet", "a run of a dataset, for DuckDB and Spark");
    let junit = "the JUnit XML of --with, each test with its CPU time and verdict";
    let commands = titled(
        COMPILE_COMMANDS,
        "compile_commands.json, for clangd and other tools that read C",
    );
    let other = [
        (To::Dataset, dataset),
        (To::Junit, titled("junit", junit)),
        (To::CompileCommands, commands),
    ];
    let services = Service::ALL.map(|service| {
        (
            To::Benchmarks(service),
            titled(service.name(), service.title()),
        )
    });
    args::words(files.into_iter().chain(other).chain(services))
}

/// A possible value of a command line option, with a line of help for it.
fn titled(name: &'static str, title: &'static str) -> PossibleValue {
    PossibleValue::new(name).help(title)
}

/// Returns an error if the recording does not have the time of day at which it began, which the requested export format
/// needs.
fn has_date(trace: &Trace, args: &Args) -> Result<(), ExitCode> {
    match trace.meta().start_unix() {
        Some(_) => Ok(()),
        None => Err(errors::refused(format!(
            "{}: no time of day is recorded, which this format needs",
            errors::shown(&args.file)
        ))),
    }
}

/// The name of an option on the command line that has no effect with the chosen export format; `None` if all options
/// have one.
fn misplaced(args: &Args, to: To, sent: bool) -> Option<&'static str> {
    let format = match to {
        To::File(format) => Some(format),
        To::Dataset | To::Junit | To::CompileCommands | To::Benchmarks(_) => None,
    };
    let is_otlp = format.is_some_and(Format::is_otlp);
    if sent && !is_otlp {
        Some("without -o OUT: --endpoint takes --format otlp or otlp-metrics")
    } else if args.trace_ids.is_some() && !format.is_some_and(Format::has_spans) {
        Some("--trace-ids takes --format otlp or otlp-json")
    } else if args.weight.is_some() && !format.is_some_and(Format::has_weights) {
        Some("--weight takes --format folded")
    } else if args.flows && format != Some(Format::Perfetto) {
        Some("--flows takes --format perfetto")
    } else if args.detail.is_some() && format != Some(Format::Perfetto) {
        Some("--detail takes --format perfetto")
    } else if args.tables.is_some() && !matches!(to, To::Dataset) {
        Some("--tables takes --format parquet")
    } else if args.repo.is_some() && !matches!(to, To::Dataset) {
        Some("--repo takes --format parquet")
    } else if args.job.is_some() && !matches!(to, To::Dataset) {
        Some("--job takes --format parquet")
    } else if args.jobs.is_some() && !matches!(to, To::Dataset) {
        Some("--jobs takes --format parquet")
    } else {
        None
    }
}

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
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("tr export --format perfetto -o build.pftrace", "")];
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

    fn budget(&self) -> Option<Budget> {
        Some(self.budget)
    }

    fn run(self, _: &Program) -> Done {
        run(&self)
    }
}

fn run(args: &Args) -> Done {
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
                None => dataset::run(args),
            };
        }
        To::Junit => return junit::run(args),
        To::CompileCommands => return compile_commands::run(args),
        To::Benchmarks(service) => return benchmarks::run(args, service),
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
    let mut recording = progress::recording(
        &trace,
        &options,
        progress::Allowance::new(args.budget, Use::Path),
    );
    if args.with.paths().next().is_some() && !(format.has_spans() || format == Format::Perfetto) {
        eprintln!(
            "tr: {} has no steps: --with adds nothing to it",
            format.name()
        );
    }
    args.with.add(&mut recording)?;
    args.span.check_in(&recording.analysis)?;
    let mut filter = args.filters.filter_in(&recording)?;
    if format.has_spans() {
        filter.min = min_or(args, otlp::LEAST);
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
        // `run` has asked for one of them.
        (None, None) => Err(ExitCode::from(errors::UNREADABLE)),
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
    let events = progress::events_in(trace, args.span.ns());
    let detail = detail::of(analysis, events);
    if detail > 0 {
        eprintln!(
            "tr: {} events would make up to {}, which no browser opens: what is shorter than {} is merged\n    \
             --detail 0s leaves nothing out, --from and --to show a part",
            units::count(events),
            units::bytes(detail::whole(analysis, events)),
            units::time(detail)
        );
    }
    detail
}

/// The export format that the ending of the output file's name stands for, if any.
fn by_ending(output: &Path) -> Option<To> {
    let name = output::formats_of(output).next()?;
    if name == COMPILE_COMMANDS {
        return Some(To::CompileCommands);
    }
    let mut formats = Format::ALL.into_iter();
    formats.find(|format| format.name() == name).map(To::File)
}

/// The user's `--min`, the least wall time of an exported process, in ns; `default` if the option is not given.
fn min_or(args: &Args, default: Duration) -> u64 {
    args::nanoseconds(args.filters.min.unwrap_or(default))
}

/// Returns an error with the text `why` if `--from` or `--to` requests only a part of the recording.
fn refuse_part(args: &Args, why: &str) -> Result<(), ExitCode> {
    match args.span.from.or(args.span.to) {
        None => Ok(()),
        Some(_) => Err(errors::refused(why)),
    }
}

/// Writes an export to a file, or to standard output for `-`. `kind` recognizes the files that it may replace, and says
/// whether the bytes are binary.
fn to_file(
    (output, force): (&Path, Force),
    trace: &Path,
    kind: (tr_output::Kind, bool),
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> Done {
    if output.as_os_str() == "-" && !(kind.1 && io::stdout().is_terminal()) {
        return Ok(open::print_by(write));
    }
    let shown = errors::shown(output);
    let written = output::whole(output, trace, kind, force, |file| {
        let mut file = std::io::BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    written.map_err(|error| errors::unwritten(&shown, error))?;
    let size = std::fs::metadata(output).map_or(0, |file| file.len());
    eprintln!("tr: {shown}: {}", units::bytes(size));
    Ok(ExitCode::SUCCESS)
}

/// The names of all formats that `tr export --format` accepts.
pub fn names() -> Vec<&'static str> {
    let files = Format::ALL.map(Format::name).into_iter();
    let services = Service::ALL.map(Service::name);
    files
        .chain(["parquet", "junit", COMPILE_COMMANDS])
        .chain(services)
        .collect()
}

/// The test that recognizes existing exports of a format, which a new export may replace, and whether the format is
/// binary. Source and configuration files never pass the test.
fn kind(format: Format) -> (tr_output::Kind, bool) {
    let binary = matches!(
        format,
        Format::Perfetto | Format::Otlp | Format::OtlpMetrics
    );
    let (name, is): (_, fn(&[u8]) -> bool) = match format {
        // Both messages begin with a field 1 of bytes. Text has no control characters but white space.
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
    (tr_output::Kind { name, is }, binary)
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
