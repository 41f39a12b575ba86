//! The options of `tr export`, and the checks of these options that all formats need.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use tr_compare::diff::benchmarks::Service;
use tr_export::otlp::ids::IdSource;
use tr_export::{Format, Weight};
use tr_format::reader::Trace;

use crate::budget::Budget;
use crate::errors;
use crate::filters::Filters;
use crate::output::{self, Force};
use crate::span::Span;
use crate::with::With;
use crate::{args, open};

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
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    pub(super) file: PathBuf,
    /// Further parts of the same recording, which --rotate has divided: tr export day/*.bin
    #[arg(value_name = "PART")]
    pub(super) more: Vec<PathBuf>,
    /// The format [default: by OUT's ending: .pftrace, .folded, compile_commands.json]
    #[arg(long, value_parser = formats())]
    pub(super) format: Option<To>,
    /// The export; - is standard output. An existing file is replaced once the export is
    /// complete. With parquet the dataset's directory
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) force: Force,
    /// Send otlp or otlp-metrics to this URL by curl, for at most 30 s; without a path, to its /v1/traces or
    /// /v1/metrics [default without -o: OTEL_EXPORTER_OTLP_ENDPOINT]. Of OpenTelemetry's variables, PROTOCOL, HEADERS,
    /// OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME count, too
    #[arg(long, value_name = "URL", conflicts_with = "output")]
    pub(super) endpoint: Option<String>,
    /// The ids of spans in otlp: those of a receiver of CI events (github, or once a pipeline
    /// has ended gitlab:FINISHED_AT), or TRACE or TRACE-SPAN in hexadecimal digits
    /// [default: TRACEPARENT's, else github in GitHub Actions]
    #[arg(long, value_name = "IDS")]
    pub(super) trace_ids: Option<IdSource>,
    /// The weight of a stack in folded [default: cpu]
    #[arg(long, value_parser = args::words(Weight::ALL.map(|weight| (weight, titled(weight.name(), weight.title())))))]
    pub(super) weight: Option<Weight>,
    /// In perfetto: an arrow from waker to wakee for each wake-up
    #[arg(long)]
    pub(super) flows: bool,
    /// In perfetto: merge stays on a CPU and parts of the critical path that are shorter than this, and
    /// leave out shorter processes; 0s: nothing [default: so that the file has 200 MB at most]
    #[arg(long, value_name = "T", value_parser = args::duration)]
    pub(super) detail: Option<Duration>,
    /// Write the recording's own tables in parquet into this directory: TABLE.parquet, a row for each
    /// process, wait, part of the critical path, step, ...
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "endpoint"])]
    pub(super) tables: Option<PathBuf>,
    /// The repository in parquet, instead of the CI system's
    #[arg(long, value_name = "NAME")]
    pub(super) repo: Option<String>,
    /// The job in parquet, instead of the CI system's: a leg of a matrix
    #[arg(long, value_name = "NAME")]
    pub(super) job: Option<String>,
    /// The waits for a runner in parquet, and the names of a matrix' legs: the answer of GitHub (GET
    /// …/actions/runs/ID/jobs) or GitLab (GET …/pipelines/ID/jobs), as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) jobs: Option<PathBuf>,
    #[command(flatten)]
    pub(super) filters: Filters,
    #[command(flatten)]
    pub(super) span: Span,
    #[command(flatten)]
    pub(super) with: With,
    #[command(flatten)]
    pub budget: Budget,
}

/// A value of `tr export --format`: the format of the export, and with it the kind of tool that reads it.
#[derive(Clone, Copy, Debug)]
pub(super) enum To {
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
pub(super) fn has_date(trace: &Trace, args: &Args) -> Result<(), ExitCode> {
    match trace.meta().start_unix() {
        Some(_) => Ok(()),
        None => Err(errors::refused(format!(
            "{}: no time of day is recorded, which this format needs",
            errors::shown(&args.file)
        ))),
    }
}

/// The error text about an option on the command line that the chosen export format does not have; `None` if it has all
/// of them. `sent` means that the export is sent to a receiver.
pub(super) fn misplaced(args: &Args, to: To, sent: bool) -> Option<&'static str> {
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

/// The export format that the ending of the output file's name stands for, if any.
pub(super) fn by_ending(output: &Path) -> Option<To> {
    let name = output::formats_of(output).next()?;
    if name == COMPILE_COMMANDS {
        return Some(To::CompileCommands);
    }
    let mut formats = Format::ALL.into_iter();
    formats.find(|format| format.name() == name).map(To::File)
}

/// The user's `--min`, the least wall time of an exported process, in ns; `default` if the option is not given.
pub(super) fn min_or(args: &Args, default: Duration) -> u64 {
    args::nanoseconds(args.filters.min.unwrap_or(default))
}

/// Returns an error with the text `why` if `--from` or `--to` requests only a part of the recording.
pub(super) fn refuse_part(args: &Args, why: &str) -> Result<(), ExitCode> {
    match args.span.from.or(args.span.to) {
        None => Ok(()),
        Some(_) => Err(errors::refused(why)),
    }
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
