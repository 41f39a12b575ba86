//! `tr export`: a recording for other tools.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use tr_analyze::Options;
use tr_report::export::{self, Format, Weight};
use tr_report::reports::{Ask, View};

use crate::budget::Budget;
use crate::filters::Filters;
use crate::{args, open, output, progress};

/// Write a recording for another tool: Perfetto, speedscope, flame graphs
#[derive(clap::Args, Debug)]
#[command(after_help = "\
perfetto: scheduling events, the process tree, and as tracks programs, steps, tests, the
critical path and the machine's counters. Tasks that the recording does not have are one
task, \"not recorded\". Perfetto reads gzip, too: -o - | gzip > build.pftrace.gz

Exit status: 0; 1 when OUT cannot be written; 2 when FILE cannot be read at all.

Examples:
  tr export trace.bin --format perfetto -o build.pftrace
  tr export trace.bin --format folded -o - | flamegraph.pl > build.svg
  tr export trace.bin --format speedscope --weight waiting -o waits.speedscope.json")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT)]
    file: PathBuf,
    /// The format
    #[arg(long, value_parser = values(Format::ALL.map(|it| (it, it.name(), it.title()))))]
    format: Format,
    /// The export; - is standard output. An existing file is replaced once the export is
    /// complete
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The weight of a stack in folded and speedscope
    #[arg(long, default_value = "cpu", value_parser = values(Weight::ALL.map(|it| (it, it.name(), it.title()))))]
    weight: Weight,
    #[command(flatten)]
    filters: Filters,
    /// Export from this time of the recording on, e.g. 1.5s
    #[arg(long, value_name = "T", value_parser = args::duration)]
    from: Option<Duration>,
    /// Export up to this time of the recording
    #[arg(long, value_name = "T", value_parser = args::duration)]
    to: Option<Duration>,
    #[command(flatten)]
    budget: Budget,
}

/// Values by their names, with a line of help each.
fn values<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [(T, &'static str, &'static str); N],
) -> impl TypedValueParser<Value = T> {
    args::words(all.map(|(value, name, help)| (value, PossibleValue::new(name).help(help))))
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let name = args.file.to_string_lossy();
    open::warn(&trace, &name);
    let options = Options {
        from: args.from.map(args::nanoseconds),
        to: args.to.map(args::nanoseconds),
        timeline: args.format.needs_timeline(),
        ..Options::default()
    };
    let analysis = progress::analyze(&trace, &options, args.budget);
    if let Some(why) = args::behind(args.from, &analysis) {
        eprintln!("tr: {why}");
        return ExitCode::from(open::UNREADABLE);
    }
    let chosen = args.filters.filter().apply(&analysis);
    if chosen.is_empty() && !analysis.processes.is_empty() {
        let all = analysis.processes.len();
        eprintln!("tr: none of the {all} processes matches");
    }
    let ask = Ask::default();
    let view = View {
        analysis: &analysis,
        chosen: &chosen,
        file: &name,
        ask: &ask,
    };
    let write = |out: &mut dyn Write| export::write(args.format, &view, &trace, args.weight, out);
    if args.output.as_os_str() == "-" {
        let out = open::stdout().map(std::io::BufWriter::new);
        return open::printed(out.and_then(|mut out| {
            write(&mut out)?;
            out.flush()
        }));
    }
    let shown = tr_report::escape::text(args.output.as_os_str().as_encoded_bytes());
    let written = output::whole(&args.output, &args.file, false, |file| {
        let mut file = std::io::BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    match written {
        Ok(()) => {
            let size = std::fs::metadata(&args.output).map_or(0, |file| file.len());
            eprintln!("tr: {shown}: {}", tr_report::units::bytes(size));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tr: cannot write {shown}: {error}");
            ExitCode::FAILURE
        }
    }
}
