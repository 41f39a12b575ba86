//! `tr export`: a recording for other tools, or as a run of a dataset.

mod benchmarks;
mod dataset;
mod junit;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use tr_analyze::{Analysis, Options};
use tr_format::meta::Extra;
use tr_format::reader::Trace;
use tr_report::diff::benchmarks::Service;
use tr_report::export::perfetto::{detail, Shown};
use tr_report::export::{self, otlp, Format, Settings, Weight};
use tr_report::reports::{Ask, View};

use crate::budget::{Budget, Use};
use crate::filters::Filters;
use crate::output::Force;
use crate::with::With;
use crate::{args, open, output, progress, send};
use tr_report::called::TR;
use tr_report::units;

/// Write a recording for another tool: Perfetto, OpenTelemetry, speedscope, flame graphs, DuckDB and Spark
#[derive(clap::Args, Debug)]
#[command(after_help = "\
perfetto: scheduling events, the process tree, and as tracks programs, steps, tests, the
critical path and the machine's counters. Tasks that the recording does not have are one
task, \"not recorded\". Perfetto reads gzip, too: -o - | gzip > build.pftrace.gz

otlp: a span for the recording, and for each step and process of at least --min (100ms).
The span around the recording is that of TRACEPARENT, or the GitHub job's.

junit: --with names one JUnit file; it is written to OUT as it is, with properties for each
test that the recording has: tr.cpu_s, tr.starved_s, tr.verdict, ...

parquet: OUT is a directory, a dataset of runs. The recording is added to it as
TABLE/repo=PROJECT/date=DAY/RUN.parquet; a run that is there already stays as it is. Filters
choose rows of the table of processes alone, of at least --min (100ms).

Exit status: 0; 1 when OUT cannot be written or URL does not take it; 2 when FILE cannot be
read at all.

Examples:
  tr export trace.bin --format perfetto -o build.pftrace
  tr export trace.bin --format folded -o - | flamegraph.pl > build.svg
  tr export trace.bin --format speedscope --weight waiting -o waits.speedscope.json
  tr export trace.bin --format otlp --endpoint http://localhost:4318
  tr export trace.bin --format junit --with junit.xml -o junit.xml
  tr export trace.bin --format parquet -o runs")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT)]
    file: PathBuf,
    /// The format [default: by OUT's suffix: .pftrace, .folded, .speedscope.json]
    #[arg(long, value_parser = formats())]
    format: Option<To>,
    /// The export; - is standard output. An existing file is replaced once the export is
    /// complete. With parquet the dataset's directory
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Send otlp to this URL by curl, for at most 30 s; without a path, to its /v1/traces
    /// [default without -o: OTEL_EXPORTER_OTLP_ENDPOINT]. Of OpenTelemetry's variables, PROTOCOL,
    /// HEADERS, OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME count, too
    #[arg(long, value_name = "URL", conflicts_with = "output")]
    endpoint: Option<String>,
    /// The weight of a stack in folded and speedscope [default: cpu]
    #[arg(long, value_parser = values(Weight::ALL.map(|it| (it, it.name(), it.title()))))]
    weight: Option<Weight>,
    /// In perfetto: an arrow from waker to wakee for each wake-up
    #[arg(long)]
    flows: bool,
    /// In perfetto: merge stays on a CPU and parts of the critical path that are shorter than this, and
    /// leave out shorter processes; 0s: nothing [default: so that the file has 200 MB at most]
    #[arg(long, value_name = "T", value_parser = args::duration)]
    detail: Option<Duration>,
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
    /// Export from this time of the recording on, e.g. 1.5s
    #[arg(long, value_name = "T", value_parser = args::duration)]
    from: Option<Duration>,
    /// Export up to this time of the recording
    #[arg(long, value_name = "T", value_parser = args::duration)]
    to: Option<Duration>,
    #[command(flatten)]
    with: With,
    #[command(flatten)]
    budget: Budget,
}

/// The export's destination.
#[derive(Clone, Copy, Debug)]
enum To {
    /// A file of this format.
    File(Format),
    /// A dataset of many runs.
    Dataset,
    /// The JUnit report of `--with`.
    Junit,
    /// Figures for a service that follows them over time.
    Benchmarks(Service),
}

/// All formats, with a line of help each.
fn formats() -> impl TypedValueParser<Value = To> {
    let files = Format::ALL.map(|it| (To::File(it), it.name(), it.title()));
    let dataset = (
        To::Dataset,
        "parquet",
        "a run of a dataset, for DuckDB and Spark",
    );
    let junit = (
        To::Junit,
        "junit",
        "the JUnit XML of --with, each test with its CPU time and verdict",
    );
    let services = Service::ALL.map(|it| (To::Benchmarks(it), it.name(), it.title()));
    let all = files.into_iter().chain([dataset, junit]).chain(services);
    args::words(all.map(|(value, name, help)| (value, PossibleValue::new(name).help(help))))
}

/// Values by their names, with a line of help each.
fn values<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [(T, &'static str, &'static str); N],
) -> impl TypedValueParser<Value = T> {
    args::words(all.map(|(value, name, help)| (value, PossibleValue::new(name).help(help))))
}

/// The recording has the time of the day, without which a format makes no sense; else says so.
fn has_date(trace: &Trace, args: &Args) -> bool {
    let has = trace.meta().start_unix().is_some();
    if !has {
        let name = tr_report::escape::text(args.file.as_os_str().as_encoded_bytes());
        eprintln!("tr: {name}: no time of day is recorded, which this format needs");
    }
    has
}

/// An option that has no effect with this format.
fn misplaced(args: &Args, to: To, sent: bool) -> Option<&'static str> {
    let format = match to {
        To::File(format) => Some(format),
        To::Dataset | To::Junit | To::Benchmarks(_) => None,
    };
    let is_otlp = format.is_some_and(Format::is_otlp);
    if sent && !is_otlp {
        Some("without -o OUT: --endpoint takes --format otlp or otlp-json")
    } else if args.weight.is_some() && !format.is_some_and(Format::has_weights) {
        Some("--weight takes --format folded or speedscope")
    } else if args.flows && format != Some(Format::Perfetto) {
        Some("--flows takes --format perfetto")
    } else if args.detail.is_some() && format != Some(Format::Perfetto) {
        Some("--detail takes --format perfetto")
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

/// The reason for which a trace has no stacks of this weight.
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

impl Args {
    /// The limits of its memory and time.
    pub fn budget(&self) -> Budget {
        self.budget
    }
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let endpoint = args.endpoint.clone();
    let endpoint = endpoint.or_else(|| args.output.is_none().then(send::endpoint)?);
    let named = args.format.or_else(|| by_suffix(args.output.as_deref()?));
    let to = match (named, &endpoint) {
        (None, Some(_)) => match send::protocol() {
            Ok(format) => Some(To::File(format)),
            Err(why) => {
                eprintln!("tr: {why}");
                return ExitCode::from(open::UNREADABLE);
            }
        },
        (named, _) => named,
    };
    if args.output.is_none() && endpoint.is_none() {
        eprintln!("tr: export: name the output: -o OUT, or a receiver of otlp: --endpoint URL");
        return ExitCode::from(open::UNREADABLE);
    }
    let Some(to) = to else {
        let names = Format::ALL.map(|it| it.name()).join(", ");
        eprintln!("tr: export: name the format: --format {names}, parquet, junit, benchmark-action or bencher");
        return ExitCode::from(open::UNREADABLE);
    };
    if let Some(why) = misplaced(args, to, endpoint.is_some()) {
        eprintln!("tr: {why}");
        return ExitCode::from(open::UNREADABLE);
    }
    let format = match to {
        To::File(format) => format,
        To::Dataset => return dataset::run(args),
        To::Junit => return junit::run(args),
        To::Benchmarks(service) => return benchmarks::run(args, service),
    };
    convert(args, format, endpoint.as_deref())
}

/// Writes the recording in another format.
fn convert(args: &Args, format: Format, endpoint: Option<&str>) -> ExitCode {
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let weight = args.weight.unwrap_or(Weight::Cpu);
    if let Some(why) = no_stacks(&trace, weight) {
        let name = tr_report::escape::text(args.file.as_os_str().as_encoded_bytes());
        eprintln!("tr: {name}: {why}");
        return ExitCode::from(open::UNREADABLE);
    }
    if format.is_otlp() && !has_date(&trace, args) {
        return ExitCode::from(open::UNREADABLE);
    }
    let name = args.file.to_string_lossy();
    open::warn(&trace, &name);
    let options = Options {
        from: args.from.map(args::nanoseconds),
        to: args.to.map(args::nanoseconds),
        timeline: format.needs_timeline(),
        ..Options::default()
    };
    let mut analysis = progress::analyze(&trace, &options, (args.budget, Use::Path));
    if args.with.paths().next().is_some() && !(format.is_otlp() || format == Format::Perfetto) {
        eprintln!(
            "tr: {} has no steps: --with adds nothing to it",
            format.name()
        );
    }
    if let Err(why) = args.with.add(&mut analysis) {
        eprintln!("tr: {why}");
        return ExitCode::from(open::UNREADABLE);
    }
    if let Some(why) = args::from_after_end(args.from, &analysis) {
        eprintln!("tr: {why}");
        return ExitCode::from(open::UNREADABLE);
    }
    let mut filter = args.filters.filter();
    if format.is_otlp() {
        filter.min = args.filters.min_or(otlp::LEAST);
    }
    let ask = Ask {
        min: filter.min,
        ..Ask::default()
    };
    let chosen = filter.apply(&analysis);
    if chosen.is_empty() && !analysis.processes.is_empty() {
        let all = analysis.processes.len();
        eprintln!("tr: none of the {all} processes matches");
    }
    let view = View {
        analysis: &analysis,
        chosen: &chosen,
        file: &name,
        ask: &ask,
    };
    let resource = send::resource();
    let settings = Settings {
        resource: &resource,
        format,
        weight,
        shown: Shown {
            flows: args.flows,
            detail: detail(args, format, &trace, &analysis),
        },
    };
    let write = |out: &mut dyn Write| export::write(settings, &view, &trace, out);
    match (&args.output, endpoint) {
        (Some(output), _) => {
            let kind = output::export(format);
            to_file((output, args.force), &args.file, kind, write)
        }
        (None, Some(url)) => send::otlp(url, format, write),
        // `run` has asked for one of them.
        (None, None) => ExitCode::from(open::UNREADABLE),
    }
}

/// What is merged in Perfetto, in ns; of what is merged unasked standard error has a line.
fn detail(args: &Args, format: Format, trace: &Trace, analysis: &Analysis) -> u64 {
    if format != Format::Perfetto {
        return 0;
    }
    if let Some(given) = args.detail {
        return args::nanoseconds(given);
    }
    let span = [args.from, args.to].map(|it| it.map(args::nanoseconds));
    let events = progress::events_in(trace, (span[0], span[1]));
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

/// The format of a file's name.
fn by_suffix(output: &Path) -> Option<To> {
    let name = output.to_str()?;
    let known = [
        (".pftrace", Format::Perfetto),
        (".perfetto-trace", Format::Perfetto),
        (".folded", Format::Folded),
        (".speedscope.json", Format::Speedscope),
    ];
    let known = known.iter().find(|(suffix, _)| name.ends_with(suffix));
    known.map(|(_, format)| To::File(*format))
}

/// Writes to a file or to standard output.
fn to_file(
    (output, force): (&Path, Force),
    trace: &Path,
    kind: (tr_output::Kind, bool),
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> ExitCode {
    if output.as_os_str() == "-" && !(kind.1 && io::stdout().is_terminal()) {
        let out = open::stdout().map(std::io::BufWriter::new);
        return open::printed(out.and_then(|mut out| {
            write(&mut out)?;
            out.flush()
        }));
    }
    let shown = tr_report::escape::text(output.as_os_str().as_encoded_bytes());
    let written = output::whole(output, trace, kind, force, |file| {
        let mut file = std::io::BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    match written {
        Ok(()) => {
            let size = std::fs::metadata(output).map_or(0, |file| file.len());
            eprintln!("tr: {shown}: {}", tr_report::units::bytes(size));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tr: cannot write {shown}: {error}");
            ExitCode::FAILURE
        }
    }
}
