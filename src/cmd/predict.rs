//! Implements `tr predict`, which forecasts the time that a recorded run takes on another machine, or with changes.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::ValueEnum;
use regex::bytes::Regex;
use tr_insight::Recording;
use tr_placing::{File, ToolFile};
use tr_predict::shards::{self, Plan, Tests};
use tr_predict::{page, NoForecast, Predictor, Wanted};
use tr_report::reports::TimelineUse;
use tr_text::page::Page;
use tr_text::style::Paint;

use crate::budget::Budget;
use crate::errors::{self, Done};
use crate::output::Force;
use crate::style::Layout;
use crate::subcommand::{Hint, Program, Subcommand};
use crate::with::{self, With};
use crate::{analysis, args, open, output, parts};
use tr_mcp::tool::takes::FILE;
use tr_mcp::tool::{AgentTool, Takes, TakesKind};
use tr_output::FileKind;
use tr_text::escape;

/// The test that recognizes a file which `tr predict` may replace by its output: an HTML page or JSON of `tr predict`.
const FORECAST: FileKind = FileKind {
    name: "a forecast of tr predict",
    is: |bytes| {
        (output::PAGE.is)(bytes) || output::is_json(bytes) && output::has(bytes, "\"tr.predict/")
    },
};

/// Forecast the time of a recorded run on another machine, or with changes
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The recorded run is simulated: its own work, its waits, and the order of its jobs, on
other CPUs and with the changes that are asked for. A forecast is an interval: it is wider
where the recording does not tell what a job waited for, where other tasks had the CPUs,
and where more or fewer tasks share them. The recording needs events of the scheduler.

Exit status: 0; 2 when FILE cannot be read, has no such events, or nothing in it matches.

Examples:
  tr predict trace.bin --cpus 16 --jobs 16
  tr predict trace.bin --faster cc1=1.5 --without 'sleep 1'
  tr predict trace.bin --cached '-c .*\\.c$=0.8'
  tr predict trace.bin --shards 4 --cpus 8
  tr predict trace.bin --shards 4 --with junit.xml --plan shards.json
  tr predict trace.bin --table --price 0.004
  tr predict trace.bin -o forecast.html")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    pub file: PathBuf,
    /// Number of CPUs [default: those of the recording]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    cpus: Option<u64>,
    /// Number of jobs that make, ninja, cargo, go, xargs, parallel, ctest and prove run at once [default: as recorded]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65536))]
    jobs: Option<u64>,
    /// Quota of CPU time, in percent of one CPU, e.g. 150%
    #[arg(long, value_name = "PCT", value_parser = quota)]
    quota: Option<f64>,
    /// A program's work is so many times as fast: cc1=2 takes half of its CPU time, below 1 is slower
    #[arg(long, value_name = "NAME=FACTOR", value_parser = faster)]
    faster: Vec<(String, f64)>,
    /// Leave out the processes whose command line matches, and all below them
    #[arg(long, value_name = "RE")]
    without: Vec<Regex>,
    /// Leave out a share of the processes whose command line matches, as a cache does
    #[arg(long, value_name = "RE=SHARE", value_parser = cached)]
    cached: Vec<(Regex, f64)>,
    /// Waits for disks are so many times as fast
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    disk: Option<f64>,
    /// Waits for the network are so many times as fast
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    network: Option<f64>,
    /// Other tasks take no CPU time [default: as much as in the recording]
    #[arg(long)]
    alone: bool,
    /// Start the job that took longest first, of those that can start
    #[arg(long)]
    longest_first: bool,
    /// Split the tests among this number of machines, by their CPU time and their own waits. --with
    /// names the runner's report
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=16))]
    shards: Option<u64>,
    /// Write which test runs on which of the --shards; - is standard output, without a forecast
    #[arg(long, value_name = "FILE", requires = "shards")]
    plan: Option<PathBuf>,
    /// The format of the plan
    #[arg(long, value_name = "FORMAT", requires = "plan", default_value = "json", value_parser = plans())]
    plan_format: shards::Format,
    /// Add a table of 1 to 64 CPUs, and of as many jobs
    #[arg(long)]
    table: bool,
    /// Price of a minute of a CPU, for the cost of each forecast and the cheapest machine
    #[arg(long, value_name = "COST", value_parser = price)]
    price: Option<f64>,
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
    /// Output format [default: by OUT's ending, or text]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    #[command(flatten)]
    with: With,
    #[command(flatten)]
    pub budget: Budget,
    #[command(flatten)]
    layout: Layout,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Text,
    Json,
    Csv,
    Html,
}

impl Args {
    fn format(&self) -> FormatArg {
        output::format_for(self.format, &self.output, FormatArg::Text)
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            cpus: self.cpus,
            jobs: self.jobs,
            quota: self.quota.map(|percent| (percent * 10.0).round() as u64),
            faster: self.faster.clone(),
            without: self.without.clone(),
            cached: self.cached.clone(),
            disk: self.disk,
            network: self.network,
            alone: self.alone,
            longest_first: self.longest_first,
            shards: self.shards,
            table: self.table,
            price: self.price,
        }
    }
}

/// A clap parser for the formats of a plan that divides tests among machines. The names of the runners jest,
/// playwright and vitest stand for the format that lists files.
fn plans() -> impl TypedValueParser<Value = shards::Format> {
    let formats = shards::Format::ALL.map(|format| {
        let value = PossibleValue::new(format.name()).help(format.title());
        let aliases: &[&str] = match format {
            shards::Format::Files => &["jest", "playwright", "vitest"],
            _ => &[],
        };
        (format, value.aliases(aliases.iter().copied()))
    });
    args::words(formats)
}

const PLAN: FileKind = FileKind {
    name: "a plan of shards",
    is: |bytes| {
        let is_costs = output::has(bytes, "\"tr.shards/1\"") || output::has(bytes, "::");
        output::is_json(bytes) && is_costs || is_list_of_shards(bytes)
    },
};

/// Whether each whole line at the beginning of a file has the number of a shard, a blank and a test.
fn is_list_of_shards(beginning: &[u8]) -> bool {
    let is_line = |line: &[u8]| {
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && line.get(digits) == Some(&b' ') && line.len() > digits + 1
    };
    let mut lines: Vec<&[u8]> = beginning.split(|byte| *byte == b'\n').collect();
    // The last line may be cut; after the last newline there is none.
    lines.pop();
    !lines.is_empty() && lines.into_iter().all(is_line)
}

fn number(text: &str, limits: (f64, f64)) -> Result<f64, String> {
    within(text.parse().map_err(|_| "not a number".to_owned())?, limits)
}

fn within(number: f64, (least, most): (f64, f64)) -> Result<f64, String> {
    if number >= least && number <= most {
        Ok(number)
    } else {
        Err(format!("not between {least} and {most}"))
    }
}

fn factor(text: &str) -> Result<f64, String> {
    number(text, (0.01, 1000.0))
}

fn price(text: &str) -> Result<f64, String> {
    number(text, (0.0, 1e9))
}

fn quota(text: &str) -> Result<f64, String> {
    within(args::percent(text)?, (1.0, 1e6))
}

fn faster(text: &str) -> Result<(String, f64), String> {
    let (name, by) = text.rsplit_once('=').ok_or("not NAME=FACTOR")?;
    Ok((name.to_owned(), factor(by)?))
}

fn cached(text: &str) -> Result<(Regex, f64), String> {
    let (regex, share) = text.rsplit_once('=').ok_or("not RE=SHARE")?;
    let regex = Regex::new(regex).map_err(|why| why.to_string())?;
    Ok((regex, number(share, (0.0, 1.0))?))
}

impl Subcommand for Args {
    const HINTS: &'static [Hint] = &[Hint {
        wrong: "-j",
        advice: "--jobs N is the number of jobs",
    }];
    const TOOLS: &'static [AgentTool] = &[AgentTool {
        name: "predict",
        about: "The time that the recorded run would take with changes, as an interval",
        words: &["predict"],
        takes: &[
            FILE,
            Takes("cpus", TakesKind::Number, "number of CPUs"),
            Takes(
                "jobs",
                TakesKind::Number,
                "jobs of make, ninja, cargo and the like at once",
            ),
            Takes(
                "faster",
                TakesKind::Texts,
                "NAME=FACTOR: cc1=2 takes half its time",
            ),
            Takes(
                "without",
                TakesKind::Texts,
                "regex: leave out these command lines",
            ),
            Takes(
                "cached",
                TakesKind::Texts,
                "REGEX=SHARE: leave out a share of these",
            ),
            Takes("table", TakesKind::Switch, "add 1 to 64 CPUs"),
        ],
    }];
    const IS_LONG: bool = true;

    fn only_reads(&self) -> Option<Vec<&Path>> {
        let prints = self.plan.is_none() && output::is_stdout(&self.output);
        let files = parts::paths(&self.file, &[]).chain(self.with.paths());
        prints.then(|| files.collect())
    }

    fn run(self, _: &Program) -> Done {
        forecast(&self)
    }
}

fn forecast(args: &Args) -> Done {
    let trace = open::warned(&args.file)?;
    let files = args.with.files()?;
    let allowance = analysis::Allowance::new(args.budget, TimelineUse::Simulation);
    let mut recording = analysis::analyze_whole(&trace, allowance);
    with::place(&files, &mut recording);
    let plan = plan(args, &recording, &files)?;
    if args.plan.as_deref().is_some_and(output::is_stdout) {
        return Ok(ExitCode::SUCCESS);
    }
    // If several tests share a process, their time cannot be forecast, but a plan can still divide them among machines.
    // Text output then consists of the plan alone. The other formats cannot express a plan without a forecast.
    let alone = plan
        .as_ref()
        .filter(|_| matches!(args.format(), FormatArg::Text));
    let forecast = match Predictor::new(&recording, args.wanted()) {
        Err(NoForecast::NoTests) if alone.is_some() => None,
        Err(error) => return Err(errors::refused(error)),
        Ok(predictor) => {
            let is_whole = alone.is_none_or(|plan| predictor.leaves_out(plan));
            is_whole.then(|| (predictor.forecast(&recording), predictor))
        }
    };
    let text = |page: Page| {
        let text = page.text(&args.layout.style());
        escape::page(&text).into_owned().into_bytes()
    };
    let unwritten = |error: &dyn Display| errors::unwritten("the forecast", error);
    let bytes = match forecast {
        None => {
            let mut page = plan.map(|plan| plan.page()).unwrap_or_default();
            page.wrapped(Paint::Dim, "  ", NO_FORECAST);
            text(page)
        }
        Some((forecast, predictor)) => match args.format() {
            FormatArg::Text => {
                let mut page = forecast.page();
                if let Some(plan) = plan {
                    page.blank();
                    page.add(plan.page());
                }
                text(page)
            }
            FormatArg::Json => tr_text::json::document(&forecast.json(), true)
                .map_err(|error| unwritten(&error))?
                .into_bytes(),
            FormatArg::Html => self::page(&predictor, &recording.analysis, &forecast)
                .map_err(|error| unwritten(&error))?
                .into_bytes(),
            FormatArg::Csv => forecast.csv().map_err(|error| unwritten(&error))?,
        },
    };
    let to = (args.output.as_path(), args.force);
    Ok(output::text(to, &[&args.file], FORECAST, bytes))
}

/// The remark after a plan of tests when `tr predict` gives no forecast of the time.
const NO_FORECAST: &str = "no forecast of the time: a test without a process of its own cannot be left out of the simulation";

/// Makes, writes and returns the plan that divides tests among machines, if the user gives `--plan` (with `--shards`).
fn plan(args: &Args, recording: &Recording, files: &[ToolFile]) -> Result<Option<Plan>, ExitCode> {
    let (Some(shards), Some(output)) = (args.shards, args.plan.as_deref()) else {
        return Ok(None);
    };
    let reports = files.iter().filter_map(|file| match &file.file {
        File::Junit(report) => Some(report),
        _ => None,
    });
    let tests = Tests::new(recording, &reports.collect::<Vec<_>>());
    let wrong = |error| errors::refused(format!("--plan: {error}"));
    let plan = Plan::new(tests, shards, args.plan_format).map_err(wrong)?;
    let text = plan.text().map_err(wrong)?;
    let code = output::text((output, args.force), &[&args.file], PLAN, &text);
    if code == ExitCode::SUCCESS {
        Ok(Some(plan))
    } else {
        Err(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_replaces_no_other_file() {
        for (beginning, is_plan) in [
            (
                &b"1 tests/test_a.py::test_x\n2 tests/test_b.py::test_y\n"[..],
                true,
            ),
            (b"1 -run '^(TestA|TestB)$' ./pkg\n12 -run", true),
            (b"{\"schema\": \"tr.shards/1\"}", true),
            (b"2026-11-30,ok,12\n2026-12-01,ok,13\n", false),
            (b"1\n2\n3\n", false),
            (b"1 apple\nand more\n", false),
            (b"12345", false),
            (b"", false),
        ] {
            assert_eq!(
                (PLAN.is)(beginning),
                is_plan,
                "{}",
                beginning.escape_ascii()
            );
        }
    }
}
