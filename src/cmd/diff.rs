//! Implements `tr diff`, which prints changes between two builds.

mod links;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use links::Pages;
use tr_analyze::Options;
use tr_compare::diff::benchmarks::{self, Service};
use tr_compare::diff::{self, Ask, Figure, Run};
use tr_compare::diff::{ends, explain, gate, html, json, markdown, text};
use tr_format::reader::Trace;
use tr_insight::recordings::identity;
use tr_insight::Recording;
use tr_report::reports::TimelineUse;
use tr_text::escape;

use crate::budget::Budget;
use crate::errors::{self, Done};
use crate::style::Layout;
use crate::subcommand::{Program, Subcommand};
use crate::{analysis, args, open, output};
use tr_mcp::tool::takes::TOP;
use tr_mcp::tool::{AgentTool, Takes, TakesKind};
use tr_output::FileKind;
use tr_text::called::TR;

/// The test that recognizes a file which `tr diff` may replace by its output: an HTML page or JSON of `tr diff`.
const COMPARISON: FileKind = FileKind {
    name: "a comparison of tr diff",
    is: |bytes| {
        (output::PAGE.is)(bytes) || output::is_json(bytes) && output::has(bytes, "\"tr.diff/")
    },
};

/// Compare two recordings of a build
#[derive(clap::Args, Debug)]
#[command(override_usage = "\
tr diff [OPTIONS] BASE NEW
       tr diff [OPTIONS] --base FILE... --new FILE...")]
#[command(after_help = "\
Processes are matched by program, arguments (without temporary names, pids, hashes
and the build's directory) and place in the tree. With several runs per side their
medians are compared, and a difference counts if it is outside the spread: by the
rank test of Mann and Whitney (p <= 0.05) with four runs or more per side, otherwise
if it exceeds the differences within each side. With only one run each, normal
variation is unknown, and every difference counts.

If all recordings have stacks (tr record --stacks), the functions on a CPU are
compared, by program. Their times come from samples: a difference counts if it is
also more than three standard deviations of the samples of both sides.

The wall time is divided along the critical path: the build's own work, its waits for
disks, the network and timers, and what other tasks, a quota or the hypervisor took.
The first line says whose a difference is: the build's, or the runner's.

--fail-over compares the median of the new runs with the base's (the wall time, or
the figure of --fail-on); a difference inside the spread does not fail, nor does one
that the first line calls the runner's (with --strict, it does). One run a side has no
spread: use several, since equal builds on a busy machine differ.

Exit status: 0; 1 when --fail-over is exceeded; 2 when a file cannot be read, a build
failed or one side's recording has a part of its build alone, a recording is given twice,
or --fail-over cannot be decided: the methods differ, the commands have nothing in common,
too much time is unknown, the growth is one of CPU time that tasks beside the build can
cause, or its limit is in another user's file. --allow-undecided passes recordings that
were not traced or cannot be decided, with a warning, and no build that failed. Failed runs of the base are left out if
others ended well.

Examples:
  tr diff main.bin pr.bin
  tr diff main.bin pr.bin --fail-over 10%
  tr diff --base main-*.bin --new pr-*.bin --format markdown
  tr diff main.bin pr.bin -o diff.html --pages runs
  tr diff main.bin pr.bin --format folded | flamegraph.pl > diff.svg")]
pub struct Args {
    /// The recording before, and the one after
    #[arg(value_name = "BASE NEW", required_unless_present = "base", conflicts_with_all = ["base", "new"])]
    files: Vec<PathBuf>,
    /// Recordings before; with --new in place of BASE and NEW
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "new")]
    base: Vec<PathBuf>,
    /// Recordings after
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "base")]
    new: Vec<PathBuf>,
    /// Fail if the new runs exceed the base by more than this, e.g. 10%
    #[arg(long, value_name = "PERCENT", value_parser = args::percent)]
    fail_over: Option<f64>,
    /// The figure of --fail-over
    #[arg(long, value_name = "FIGURE", value_parser = args::words(Figure::GATES.map(|figure| (figure, figure.name()))), default_value = "wall", requires = "fail_over")]
    fail_on: Figure,
    /// Pass with a warning if the gate cannot judge the recordings; a build that failed never passes
    #[arg(long, requires = "fail_over")]
    allow_undecided: bool,
    /// Fail by the figure alone, even if the growth is the runner's
    #[arg(long, requires = "fail_over")]
    strict: bool,
    /// Leave out processes with a smaller difference
    #[arg(long, value_name = "T", value_parser = args::duration_with_unit, default_value = "10ms")]
    min: Duration,
    /// Number of rows of each table, or all [default: 10; of a page 1000]
    #[arg(long, value_name = "N", value_parser = args::rows)]
    top: Option<usize>,
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    force: output::Force,
    /// With a page as OUT: write the page of each run into this directory, and link to it. Without
    /// it each run is a link to the page beside its recording, or to the recording
    #[arg(long, value_name = "DIR")]
    pages: Option<PathBuf>,
    /// Output format [default: by OUT's ending, or text]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    #[command(flatten)]
    pub budget: Budget,
    #[command(flatten)]
    layout: Layout,
    /// The reason why the gate of `tr diff` decides nothing: a configuration file (`tr.toml`) with the gate's
    /// threshold is not trusted; `None` if the gate can decide.
    #[arg(skip)]
    pub undecided: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Text,
    Json,
    Markdown,
    /// A page: both critical paths over one time axis, and the differences
    Html,
    /// The new runs for github-action-benchmark: customSmallerIsBetter
    BenchmarkAction,
    /// The new runs for Bencher: Bencher Metric Format
    Bencher,
    /// Stacks on a CPU with the µs of both sides, as difffolded.pl writes them
    Folded,
}

impl Args {
    /// Whether `tr diff` writes to standard output alone, and so creates no file.
    fn prints(&self) -> bool {
        self.page().is_none() && self.pages.is_none()
    }

    fn format(&self) -> FormatArg {
        output::format_for(self.format, &self.output, FormatArg::Text)
    }

    /// The file that `tr diff` writes; `None` for standard output.
    fn page(&self) -> Option<&Path> {
        Some(self.output.as_path()).filter(|output| !output::is_stdout(output))
    }

    /// The target of the link to a run on the page of `tr diff`: the run's own page, which this call writes,
    /// or else the page or recording that already exists.
    fn place(
        &self,
        file: &Path,
        recording: &Recording,
        pages: Option<&mut Pages<'_>>,
    ) -> Result<Option<String>, ExitCode> {
        if !matches!(self.format(), FormatArg::Html) {
            return Ok(None);
        }
        let place = match pages {
            Some(pages) => pages.write(file, recording)?,
            None if self.page().is_some() => links::beside(file),
            None => file.to_owned(),
        };
        Ok(links::to(&place, self.page()))
    }

    /// The paths of all recordings that `tr diff` compares.
    fn files(&self) -> Vec<&Path> {
        let all = self.files.iter().chain(&self.base).chain(&self.new);
        all.map(PathBuf::as_path).collect()
    }
}

impl Subcommand for Args {
    const TOOLS: &'static [AgentTool] = &[
        AgentTool {
            name: "diff",
            about: "What differs between recordings of two states of a build, and whether the code or the machine did it",
            words: &["diff"],
            takes: &[
                Takes("base", TakesKind::Files, "recordings before"),
                Takes("new", TakesKind::Files, "recordings after"),
                TOP,
            ],
        },
    ];
    const IS_LONG: bool = true;

    fn set_undecided(&mut self, why: Option<String>) {
        self.undecided = why;
    }

    fn only_reads(&self) -> Option<Vec<&Path>> {
        self.prints().then(|| self.files())
    }

    fn is_paged(&self) -> bool {
        self.prints()
    }

    fn run(self, _: &Program) -> Done {
        compare(&self)
    }
}

fn compare(args: &Args) -> Done {
    let [base, new] = sides(args).map_err(errors::refused)?;
    let files: Vec<&PathBuf> = base.iter().chain(new).collect();
    let (traces, not_traced) = opened(&files, args.allow_undecided)?;
    let pages = args.pages.as_deref();
    let pages = pages.map(|directory| Pages::new(directory, args.force));
    let mut pages = pages.transpose()?;
    let options = Options {
        samples: pages.is_some(),
        ..analysis::with_timeline()
    };
    let allowance = analysis::Allowance::new(args.budget, TimelineUse::Simulation);
    let runs = analysis::analyze_several(&traces, &options, allowance, |at, recording| {
        let file = files.get(at).map_or(Path::new(""), |file| file.as_path());
        let mut run = Run::new(&file.to_string_lossy(), &recording);
        run.link = args.place(file, &recording, pages.as_mut())?;
        Ok(run)
    });
    let mut base_runs = runs.into_iter().collect::<Result<Vec<Run>, ExitCode>>()?;
    let new = base_runs.split_off(base.len());
    let base = base_runs;
    if let Some(why) = not_traced {
        let failed = new.iter().find(|run| run.failed());
        return match failed.and_then(Run::defect) {
            Some(failure) => Err(errors::refused(failure)),
            None => Ok(passed(&why)),
        };
    }
    let ask = Ask {
        top: args.top.unwrap_or(match args.format() {
            FormatArg::Html => 1000,
            _ => 10,
        }),
        least: args::nanoseconds(args.min),
        gate: args.fail_over.map(|most| (args.fail_on, most)),
        strict: args.strict,
    };
    let diff = diff::compare(base, new, ask);
    let text = match args.format() {
        FormatArg::Text => {
            let style = args.layout.style();
            escape::page(&text::page(&diff, &style).text(&style)).into_owned()
        }
        FormatArg::Markdown => markdown::render(&diff),
        FormatArg::Html => html::render(&diff),
        FormatArg::BenchmarkAction => benchmarks::render(&diff, Service::Action),
        FormatArg::Bencher => benchmarks::render(&diff, Service::Bencher),
        FormatArg::Folded => {
            explain::folded(&diff).map_err(|why| errors::refused(escape::text(why.as_bytes())))?
        }
        FormatArg::Json => json::render(&diff).map_err(errors::refused)?,
    };
    let to = (args.output.as_path(), args.force);
    let printed = output::text(to, &args.files(), COMPARISON, &text);
    match gate::judge(&diff) {
        Some(Ok(gate)) if gate.failed() => Ok(ExitCode::from(1)),
        Some(Err(why)) if args.allow_undecided && ends::failure(&diff).is_none() => {
            passed(&why);
            Ok(printed)
        }
        Some(Err(why)) => Err(errors::refused(why)),
        // The status of an output error must differ from 1, the status of a failed gate.
        _ if printed != ExitCode::SUCCESS => Err(ExitCode::from(errors::UNREADABLE_STATUS)),
        _ => {
            ends::comparable(&diff).map_err(errors::refused)?;
            args.undecided
                .as_ref()
                .map_or(Ok(printed), |why| Err(errors::refused(why)))
        }
    }
}

/// The recordings of the base (before the change) and of the new side (after it), as the command line of `tr
/// diff` gives them. The error is text for the user.
fn sides(args: &Args) -> Result<[&[PathBuf]; 2], String> {
    match args.files.as_slice() {
        [] => Ok([&args.base, &args.new]),
        [before, after] => Ok([std::slice::from_ref(before), std::slice::from_ref(after)]),
        [one] => Err(format!(
            "diff: only one recording, {}: give BASE and NEW",
            errors::shown(one)
        )),
        several => Err(format!(
            "diff: {} recordings: name the base's with --base, the others with --new, for example:\n    {}",
            several.len(),
            proposal(several)
        )),
    }
}

/// A command line of `tr diff` with several recordings per side, to be suggested in an error message. The base is the
/// group of files that are named like the first one but for a number: `main-1.bin main-2.bin` before `pr-1.bin`. If
/// all files are named like the first one, the base is the first half of them.
fn proposal(files: &[PathBuf]) -> String {
    fn names(files: &[PathBuf]) -> impl Iterator<Item = &[u8]> {
        files.iter().map(|file| file.as_os_str().as_encoded_bytes())
    }
    let stem = |file: &PathBuf| {
        let name = file.to_string_lossy().into_owned();
        let name = name.strip_suffix(".bin").unwrap_or(&name);
        let numbered = |c: char| c.is_ascii_digit() || c == '-' || c == '_' || c == '.';
        name.trim_end_matches(numbered).to_owned()
    };
    let first = files.first().map(stem);
    let same = files.iter().take_while(|file| Some(stem(file)) == first);
    let at = Some(same.count()).filter(|at| *at < files.len());
    let (base, new) = files.split_at(at.unwrap_or(files.len() / 2));
    let words = [TR.name(), "diff", "--base"].into_iter().map(str::as_bytes);
    let words = words.chain(names(base)).chain([b"--new".as_slice()]);
    escape::command(words.chain(names(new)))
}

/// Prints the reason why `tr diff` does not apply its gate. Returns the exit status.
fn passed(why: &str) -> ExitCode {
    let why = escape::text(why.as_bytes());
    message!("{why}: nothing is decided, and --allow-undecided lets it pass");
    ExitCode::SUCCESS
}

/// Opens all recordings that `tr diff` compares. A recording that is given twice is an error. Also returns
/// the reason why a run was not traced; without `--allow-undecided`, such a run is an error.
fn opened(
    files: &[&PathBuf],
    allow_undecided: bool,
) -> Result<(Vec<Trace>, Option<String>), ExitCode> {
    let mut runs = identity::Runs::default();
    let mut not_traced = None;
    let mut traces = Vec::new();
    for file in files {
        let trace = open::trace(file)?;
        let added = runs.add(trace.meta(), errors::shown(file));
        added.map_err(errors::refused)?;
        if let Some(why) = why_not_traced(file, &trace) {
            if !allow_undecided {
                return Err(errors::refused(why));
            }
            not_traced.get_or_insert(why);
        }
        traces.push(trace);
    }
    Ok((traces, not_traced))
}

/// The message that a run was not traced, with the recorded reason, so that it has no events to compare;
/// `None` for a traced run.
fn why_not_traced(file: &Path, trace: &Trace) -> Option<String> {
    let reason = trace.meta().not_traced.as_ref()?;
    let reason = escape::text(reason.as_bytes());
    Some(format!("{}: not traced: {reason}", errors::shown(file)))
}
