//! `tr diff`: what changed between two builds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::ValueEnum;
use tr_analyze::Options;
use tr_report::diff::{Ask, Diff, Figure, Run};

use crate::cmd::analyze;
use crate::{args, open, progress};

/// Say what changed between two recordings of a build
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Processes are matched by program, arguments (without temporary names, pids, hashes
and the build's directory) and place in the tree. With several runs a side their
medians are compared, and a difference counts when it is outside the spread: by
the rank test of Mann and Whitney (p <= 0.05) with four runs or more a side,
otherwise when it is more than the runs of a side differ among themselves. With
one run a side the spread is not known, and every difference is told.

--fail-over measures the median of the new runs against the base's (the wall time,
or what --fail-on names); a difference inside the spread does not fail.

Exit status: 0; 1 when --fail-over is exceeded; 2 when a file cannot be read, or
--fail-over cannot be judged: a recording has no proper end, or too much of its
time is unknown.

Examples:
  tr diff main.bin pr.bin
  tr diff main.bin pr.bin --fail-over 10%
  tr diff --base main-*.bin --new pr-*.bin --format markdown")]
pub struct Args {
    /// The recording before
    #[arg(value_name = "BASE", required_unless_present = "base", conflicts_with_all = ["base", "new"], requires = "after")]
    before: Option<PathBuf>,
    /// The recording after
    #[arg(value_name = "NEW")]
    after: Option<PathBuf>,
    /// Recordings before; with --new in place of BASE and NEW
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "new")]
    base: Vec<PathBuf>,
    /// Recordings after
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "base")]
    new: Vec<PathBuf>,
    /// Fail when the new runs need so much more, e.g. 10%
    #[arg(long, value_name = "PERCENT", value_parser = args::percent)]
    fail_over: Option<f64>,
    /// What --fail-over measures
    #[arg(long, value_name = "FIGURE", value_parser = figures(), default_value = "wall", requires = "fail_over")]
    fail_on: Figure,
    /// Leave out processes whose time differs by less
    #[arg(long, value_name = "T", value_parser = args::duration, default_value = "10ms")]
    min: Duration,
    /// How many rows of each table to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// How to write it
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Columns of the text; by default those of the terminal, or 100
    #[arg(long, value_name = "N")]
    width: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Text,
    Json,
    Markdown,
}

fn figures() -> impl TypedValueParser<Value = Figure> {
    PossibleValuesParser::new(Figure::GATES.map(Figure::name)).try_map(|given| {
        let meant = Figure::GATES.into_iter().find(|gate| gate.name() == given);
        meant.ok_or("no such word")
    })
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let side = |one: &Option<PathBuf>, several: &[PathBuf]| -> Vec<PathBuf> {
        one.iter().chain(several).cloned().collect()
    };
    let sides = [side(&args.before, &args.base), side(&args.after, &args.new)];
    let mut read = Vec::new();
    for files in &sides {
        match files.iter().map(|file| load(file)).collect() {
            Ok(runs) => read.push(runs),
            Err(code) => return code,
        }
    }
    let (Some(new), Some(base)) = (read.pop(), read.pop()) else {
        return ExitCode::from(open::UNREADABLE);
    };
    let ask = Ask {
        top: args.top,
        least: args::nanoseconds(args.min),
        gate: args.fail_over.map(|most| (args.fail_on, most)),
    };
    let diff = Diff::new(base, new, ask);
    let printed = match args.format {
        FormatArg::Text => open::print(diff.text(&analyze::style(args.width)).as_bytes()),
        FormatArg::Markdown => open::print(diff.markdown().as_bytes()),
        FormatArg::Json => match diff.json() {
            Ok(document) => open::print(document.as_bytes()),
            Err(error) => {
                eprintln!("tr: cannot write the report: {error}");
                return ExitCode::from(open::UNREADABLE);
            }
        },
    };
    match diff.gate() {
        Some(Ok(gate)) if gate.failed() => ExitCode::from(1),
        Some(Err(why)) => {
            eprintln!("tr: {why}");
            ExitCode::from(open::UNREADABLE)
        }
        // A gate that holds must not read as one that does not.
        _ if printed != ExitCode::SUCCESS => ExitCode::from(open::UNREADABLE),
        _ => printed,
    }
}

/// Reads a recording down to what is compared.
fn load(file: &Path) -> Result<Run, ExitCode> {
    let trace = open::trace(file).map_err(|error| open::unreadable(file, &error))?;
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let analysis = progress::analyze(&trace, &options);
    Ok(Run::new(&file.to_string_lossy(), &analysis))
}
