//! Implements `tr analyze`, which prints times and waits of a recording.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::ValueEnum;
use tr_analyze::Options;
use tr_format::event::CpuId;
use tr_format::meta::Extra;
use tr_format::reader::Trace;
use tr_insight::recordings::ci::Ci;
use tr_insight::recordings::untraced;
use tr_insight::views::query::{By, Group, Sort};
use tr_insight::Recording;
use tr_report::reports::{ci_tracer, Ask, ReportKind, TimelineUse, View};
use tr_report::{ci, json, warnings};
use tr_text::escape;

use crate::budget::Budget;
use crate::errors::{self, Done};
use crate::filters::Filters;
use crate::span::Span;
use crate::style::Layout;
use crate::subcommand::{Hint, Program, Subcommand};
use crate::with::With;
use crate::{analysis, args, open, output, parts};
use std::path::Path;
use tr_mcp::tool::takes::{FILE, TOP};
use tr_mcp::tool::{AgentTool, Takes, TakesKind};

/// Analyze a recording: times of processes, waits, critical path
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status: 0; 2 when FILE cannot be read at all. Damage and loss cause a warning
and stand in the report.

Examples:
  tr analyze trace.bin --top 20
  tr analyze trace.bin --by program --sort run-queue
  tr analyze trace.bin --argv '\\.c$' --format csv
  tr analyze trace.bin --report tree
  tr analyze trace.bin --report steps --sort run-queue
  tr analyze trace.bin --report execs --failed
  tr analyze trace.bin --group 'compile=program:^cc1' --group 'link=argv:\\bld\\b'
  tr analyze trace.bin --report series --interval 100ms --format csv
  tr analyze trace.bin --format ci-tracer > ci-tracer.json

Units: CSV and JSON have times in ns. --format ci-tracer is a JSON array with an
object per line, for the viewers of ci-tracer: t, ts and end in seconds since the
start of the recording, start in seconds since 1970, interval and v of a cpu
object in milliseconds, exact to the ns; a ts comes before the values of the
interval that begins there.")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    file: PathBuf,
    /// Further parts of the same recording, which --rotate has divided: tr analyze day/*.bin
    #[arg(value_name = "PART")]
    more: Vec<PathBuf>,
    /// Reports to print, separated by commas [default: top]
    #[arg(long, value_parser = reports(), value_delimiter = ',')]
    report: Vec<Asked>,
    /// Number of rows, or all [default: 10, fewer where the first screen has more than 30 lines; tree:
    /// 40 lines; execs, CSV and JSON: all]. In
    /// CSV and JSON, reports that add up (tree, critical-path, parallelism, cpus)
    /// always have all rows
    #[arg(long, value_name = "N", value_parser = args::rows)]
    top: Option<usize>,
    /// Sort by this figure [default: on-cpu; execs: start]
    #[arg(long, value_parser = sorts())]
    sort: Option<Sort>,
    /// Sum up into one row each [default: process]. JSON has these rows beside the
    /// processes. function is for critical-path; flame always has a row per function
    #[arg(long, value_parser = groupings())]
    by: Option<Grouping>,
    /// A group of your own: NAME=WHAT:REGEX, WHAT being argv, comm, program or
    /// cgroup; the first match counts. Rows are groups then, unless --by says
    /// otherwise
    #[arg(long, value_name = "GROUP", value_parser = Group::parse)]
    group: Vec<Group>,
    #[command(flatten)]
    filters: Filters,
    /// Length of an interval of a report over time, e.g. 100ms [default: 1s]
    #[arg(long, value_name = "T", value_parser = interval)]
    interval: Option<Duration>,
    /// Count only time on this CPU; time on others is unknown. In max-off-cpu: only
    /// threads that left this CPU; in run-queue: only waits that ended on it
    #[arg(long, value_name = "N")]
    cpu: Option<u16>,
    #[command(flatten)]
    span: Span,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Number of threads; it does not change the result
    #[arg(long, value_name = "N", value_parser = args::number::<usize>)]
    threads: Option<usize>,
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
    Markdown,
    Json,
    /// A JSON object a line for each process, as in json (its schema is process)
    Ndjson,
    Csv,
    /// The stream of on-CPU times that the viewers of ci-tracer read
    CiTracer,
}

impl Args {
    fn is_for_people(&self) -> bool {
        let word = self.format.to_possible_value();
        word.is_some_and(|word| output::is_for_people(word.get_name().as_ref()))
    }

    fn kinds(&self) -> Vec<ReportKind> {
        match (kinds(&self.report), self.format) {
            (kinds, _) if !kinds.is_empty() => kinds,
            (_, FormatArg::CiTracer) => vec![ReportKind::Series],
            _ => vec![ReportKind::Top],
        }
    }

    fn ask(&self) -> Ask {
        let by_group = || (!self.group.is_empty()).then_some(By::Group);
        Ask {
            top: self.top,
            sort: self.sort,
            by: match self.by {
                Some(Grouping::By(by)) => Some(by),
                Some(Grouping::Function) => None,
                None => by_group(),
            },
            functions: self.by == Some(Grouping::Function),
            groups: self.group.clone(),
            interval: self.interval.map(args::nanoseconds),
            cpu: self.cpu.map(CpuId),
            failed: self.filters.failed,
            min: self.filters.min(),
            pid: self.filters.pid(),
            step: self.filters.step.clone(),
        }
    }
}

const ARGV: Takes = Takes("argv", TakesKind::Text, "regex on the command line");
const PID: Takes = Takes("pid", TakesKind::Number, "this process and its descendants");
const FAILED: Takes = Takes("failed", TakesKind::Switch, "failed ones alone");
const SORT: Takes = Takes("sort", TakesKind::Word(&Sort::NAMES), "order of the rows");

impl Subcommand for Args {
    const HINTS: &'static [Hint] = &[
        Hint {
            wrong: "-g",
            advice: "--report flame has the functions of sampled stacks",
        },
        Hint {
            wrong: "--stdio",
            advice: "the reports are text, and on standard output",
        },
        Hint {
            wrong: "-o",
            advice: "the reports go to standard output; tr report -o FILE writes a page",
        },
        Hint {
            wrong: "--timeout",
            advice: "--max-time DUR ends the analysis after a time",
        },
        Hint {
            wrong: "-n",
            advice: "--top N is the number of rows",
        },
    ];
    const TOOLS: &'static [AgentTool] = &[
        AgentTool {
            name: "report",
            about: "One report",
            words: &["analyze"],
            takes: &[
                FILE,
                Takes("report", TakesKind::Report, "its name [top]"),
                Takes("by", TakesKind::Word(&By::NAMES), "sum up"),
                Takes(
                    "group",
                    TakesKind::Texts,
                    "NAME=argv:REGEX: a row of by=group",
                ),
                SORT,
                TOP,
                ARGV,
                PID,
                FAILED,
                Takes("step", TakesKind::Text, "a step's processes alone"),
                Takes("from", TakesKind::Text, "from this time on, e.g. 1.5s"),
                Takes("to", TakesKind::Text, "up to this time"),
            ],
        },
        AgentTool {
            name: "steps",
            about: "Steps, targets and tests with their times, the longest first",
            words: &["analyze", "--report=steps"],
            takes: &[
                FILE,
                SORT,
                TOP,
                Takes("step", TakesKind::Text, "one of them alone"),
            ],
        },
        AgentTool {
            name: "process",
            about: "Executions of processes: command line, start, time, memory, exit status",
            words: &["analyze", "--report=execs"],
            takes: &[
                FILE,
                PID,
                ARGV,
                FAILED,
                SORT,
                TOP,
                Takes("min", TakesKind::Text, "at least this long, e.g. 1s"),
            ],
        },
    ];
    const IS_LONG: bool = true;

    fn only_reads(&self) -> Option<Vec<&Path>> {
        let parts = parts::paths(&self.file, &self.more);
        Some(parts.chain(self.with.paths()).collect())
    }

    fn run(self, _: &Program) -> Done {
        analyze(&self)
    }
}

fn analyze(args: &Args) -> Done {
    if let Some(threads) = args.threads {
        // An error means that rayon's pool of threads exists already.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let _ = pool.build_global();
    }
    let trace = parts::opened(&args.file, &args.more)?;
    let name = parts::name(&args.file, &args.more);
    if let Some(why) = senseless(args, trace.meta()) {
        return Err(errors::refused(why));
    }
    args.span.check()?;
    let kinds = args.kinds();
    let uses = kinds
        .iter()
        .map(|kind| kind.timeline_use(args.is_for_people()));
    let wanted = uses.flatten().max();
    let options = options(args, &kinds, &trace, wanted.is_some());
    let allowance = analysis::Allowance::new(args.budget, wanted.unwrap_or(TimelineUse::Path));
    let recording = analysis::analyze(&trace, &options, allowance);
    // The recording is not freed: the process ends with it, and to free a million processes one by one takes
    // longer than to leave that to the system.
    let mut recording = std::mem::ManuallyDrop::new(recording);
    args.span.check_in(&recording.analysis)?;
    if let Some(done) = untraced(args, &recording, &name) {
        return Ok(done);
    }
    args.with.add(&mut recording)?;
    write(args, &kinds, &recording, &name)
}

/// The settings of the analysis that the requested reports of `tr analyze` need. They decide how much memory
/// the analysis takes. `timeline` means that one of the reports uses the timeline of the threads' states.
fn options(args: &Args, kinds: &[ReportKind], trace: &Trace, timeline: bool) -> Options {
    let has = |kind| kinds.contains(&kind);
    // A sampled stack of a wait does not have the reason of the wait. The report `flame` takes the reason from the
    // timeline.
    let reasons = has(ReportKind::Flame) && trace.meta().has(Extra::OffCpuStacks);
    let by_function = has(ReportKind::CriticalPath) && args.by == Some(Grouping::Function);
    let (from, to) = args.span.ns();
    Options {
        from,
        to,
        cpu: args.cpu.map(CpuId),
        timeline: reasons || timeline,
        samples: reasons || by_function,
        ..Options::default()
    }
}

/// Writes the requested reports of `tr analyze` about the processes that the filters choose.
fn write(args: &Args, kinds: &[ReportKind], recording: &Recording, name: &str) -> Done {
    let filter = args.filters.filter_in(recording)?;
    let chosen = if args.is_for_people() && kinds.contains(&ReportKind::Top) {
        // If the filters choose no process, the report `top` says so by itself, so no line on standard error is
        // necessary.
        filter.apply(recording)
    } else {
        Filters::chosen(&filter, recording)
    };
    let mut ask = args.ask();
    ask.step.clone_from(&filter.step);
    let view = View::new(recording, &chosen, name, &ask);
    if matches!(args.format, FormatArg::CiTracer) {
        let lines = ci_tracer::render(&view);
        return Ok(open::print_report(lines));
    }
    let reports = kinds.iter().map(|kind| (kind.key(), kind.make(&view)));
    let reports: Vec<_> = reports.collect();
    let text = matches!(args.format, FormatArg::Text);
    for warning in reports.iter().filter_map(|(_, it)| it.warning(text)) {
        message!("{}", escape::text(warning.as_bytes()));
    }
    Ok(match args.format {
        FormatArg::Text => {
            let style = args.layout.style();
            let mut page = warnings::page(recording);
            for (at, (_, report)) in reports.iter().enumerate() {
                if at > 0 {
                    page.blank();
                }
                page.add(report.page(&style));
            }
            open::print_text(&page.text(&style))
        }
        FormatArg::Markdown => {
            let style = args.layout.markdown();
            let titled = kinds.iter().zip(&reports);
            let texts = titled
                .map(|(kind, (_, report))| report.page(&style).markdown(kind.title(), &style));
            let texts = texts.collect::<Vec<_>>().join("\n");
            let warnings =
                warnings::markdown(&tr_insight::recordings::warnings::warnings(recording));
            open::print_text(&(warnings + &texts))
        }
        FormatArg::Json => {
            let all = kinds.contains(&ReportKind::Top);
            open::print_by(|out| json::render(&view, &reports, all, out))
        }
        FormatArg::Ndjson => open::print_by(|out| json::lines(&view, out)),
        FormatArg::Csv => match reports.first() {
            Some((_, report)) => {
                let mut sheet = report.sheet();
                ci::add_columns(&Ci::new(&recording.analysis.meta), &mut sheet);
                open::print_report(sheet.csv())
            }
            None => ExitCode::SUCCESS,
        },
        FormatArg::CiTracer => ExitCode::SUCCESS, // written above
    })
}

/// For a run that was not traced: prints the reason and the resource usage in place of tables, and returns the exit
/// status. CSV, NDJSON and the format of ci-tracer have no place for the reason. For these, the function prints a
/// warning and returns `None`, so that the caller prints tables without rows. Also returns `None` for a traced run.
fn untraced(args: &Args, recording: &Recording, name: &str) -> Option<ExitCode> {
    let analysis = &recording.analysis;
    let reason = untraced::reason(analysis)?;
    match args.format {
        FormatArg::Text => {
            let page = tr_report::untraced::page(analysis, name);
            Some(open::print_text(&page.text(&args.layout.style())))
        }
        FormatArg::Markdown => {
            let page = tr_report::untraced::page(analysis, name);
            let style = args.layout.markdown();
            Some(open::print_text(&page.markdown("Not traced", &style)))
        }
        FormatArg::Json => Some(open::print_by(|out| json::untraced(recording, out))),
        FormatArg::Csv | FormatArg::Ndjson | FormatArg::CiTracer => {
            let [name, reason] = [name, &reason].map(|text| escape::text(text.as_bytes()));
            message!("{name}: not traced: {reason}");
            None
        }
    }
}

/// Parses the option `--interval`, the length of the intervals of a report over time. It is at least a
/// microsecond.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = args::duration(text)?;
    if interval < Duration::from_micros(1) {
        return Err("shorter than 1us".into());
    }
    Ok(interval)
}

fn sorts() -> impl TypedValueParser<Value = Sort> {
    // The option also accepts the titles of columns in reports: `time` stands for `wall`, because the report `execs`
    // shows the wall time in the column TIME.
    let also = |name: &str| match name {
        "wall" => Some("time"),
        "on-cpu" => Some("cpu"),
        "rss" => Some("mem"),
        _ => None,
    };
    let word = |name| PossibleValue::new(name).aliases(also(name));
    args::words(Sort::ALL.map(|sort| (sort, word(sort.name()))))
}

/// A value of the option `--by` of `tr analyze`: what the rows of a report are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grouping {
    By(By),
    /// The rows are functions of sampled stacks. Functions are no groups of processes, so only some reports can have
    /// them.
    Function,
}

fn groupings() -> impl TypedValueParser<Value = Grouping> {
    let all = By::ALL.map(|by| (Grouping::By(by), by.name()));
    args::words(all.into_iter().chain([(Grouping::Function, "function")]))
}

/// A value of the option `--report`: one report, or `None` for the word `all`, which stands for every
/// report.
#[derive(Clone, Copy, Debug)]
struct Asked(Option<ReportKind>);

fn reports() -> impl TypedValueParser<Value = Asked> {
    let one = ReportKind::by_topic().map(|kind| {
        let help = format!("{}: {}", kind.topic().name(), kind.title());
        let word = PossibleValue::new(kind.name()).help(help);
        (Asked(Some(kind)), word)
    });
    let all = PossibleValue::new("all").help("All of them");
    args::words(one.chain([(Asked(None), all)]))
}

/// The reports that the user requests by `--report`, in the order of the first request. A report that is
/// requested twice is printed once.
fn kinds(asked: &[Asked]) -> Vec<ReportKind> {
    let mut kinds: Vec<ReportKind> = Vec::new();
    for Asked(one) in asked {
        for kind in one.map_or(ReportKind::ALL.to_vec(), |kind| vec![kind]) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    kinds
}

/// The reason why the options of `tr analyze` make no sense for this trace, for example a CPU that the trace
/// does not have; `None` if they make sense.
fn senseless(args: &Args, meta: &tr_format::meta::Metadata) -> Option<String> {
    if let Some(cpu) = args.cpu.filter(|cpu| !meta.cpus.contains(&CpuId(*cpu))) {
        let last = meta.cpus.iter().max().map_or(0, |cpu| cpu.0);
        return Some(format!(
            "--cpu {cpu}: the trace has {} CPUs, up to CPU {last}",
            meta.cpus.len()
        ));
    }
    let kinds = args.kinds();
    match args.format {
        FormatArg::Csv if kinds.len() != 1 => {
            return Some("--format csv writes one table: ask for one report".into());
        }
        FormatArg::Ndjson if kinds != [ReportKind::Top] => {
            return Some(
                "--format ndjson writes the processes: it takes no --report but top".into(),
            );
        }
        FormatArg::CiTracer if kinds != [ReportKind::Series] => {
            return Some("--format ci-tracer is a form of --report series alone".into());
        }
        _ => {}
    }
    let has_functions =
        |kind: &ReportKind| matches!(kind, ReportKind::CriticalPath | ReportKind::Flame);
    if args.by == Some(Grouping::Function) && !kinds.iter().all(has_functions) {
        return Some("--by function is a form of --report critical-path and of flame".into());
    }
    if args.by == Some(Grouping::By(By::Group)) && args.group.is_empty() {
        let how = "--group 'compile=argv:(cc1|rustc)'";
        return Some(format!("--by group: no group is defined; add {how}"));
    }
    None
}
