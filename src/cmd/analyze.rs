//! `tr analyze`: where the time went.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use regex::bytes::Regex;
use tr_analyze::Options;
use tr_format::event::{CpuId, Tgid};
use tr_format::reader::End;
use tr_report::query::{self, By, Filter, Sort};
use tr_report::{audit, csv, json, text};

use crate::{args, open};

/// Say where the time of a recording went
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status: 0; 2 when FILE cannot be read at all. Damage and loss are warned of
and stand in the report.

Examples:
  tr analyze trace.bin --top 20
  tr analyze trace.bin --by program --sort run-queue
  tr analyze trace.bin --argv '\\.c$' --format csv")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How many rows of text to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// What to sort by
    #[arg(long, value_enum, default_value_t = SortArg::OnCpu)]
    sort: SortArg,
    /// What a row of text or CSV stands for
    #[arg(long, value_enum, default_value_t = ByArg::Process)]
    by: ByArg,
    /// Only processes whose comm matches
    #[arg(long, value_name = "RE")]
    comm: Option<Regex>,
    /// Only processes whose command line matches
    #[arg(long, value_name = "RE")]
    argv: Option<Regex>,
    /// Only processes whose cgroup's path matches
    #[arg(long, value_name = "RE")]
    cgroup: Option<Regex>,
    /// Only this process and its descendants
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
    /// Count only what runs on this CPU; time on others is unknown
    #[arg(long, value_name = "N")]
    cpu: Option<u16>,
    /// From this time of the recording on, e.g. 1.5s
    #[arg(long, value_name = "T", value_parser = args::duration)]
    from: Option<Duration>,
    /// Up to this time of the recording
    #[arg(long, value_name = "T", value_parser = args::duration)]
    to: Option<Duration>,
    /// Which report
    #[arg(long, value_enum, value_delimiter = ',', default_value = "top")]
    report: Vec<ReportArg>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// How many threads may work; the result is the same for any number
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Columns of the text; by default those of the terminal, or 100
    #[arg(long, value_name = "N")]
    width: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SortArg {
    OnCpu,
    OffCpu,
    Wall,
    RunQueue,
    Sleep,
    Blocked,
    Unknown,
    Rss,
    TreeCpu,
    Start,
    Pid,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ByArg {
    Process,
    Thread,
    Program,
    Comm,
    Cgroup,
    Depth,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReportArg {
    /// Where the time went.
    Top,
    /// Our figures beside the kernel's own.
    Audit,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Text,
    Json,
    Csv,
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let name = args.file.to_string_lossy();
    if let End::Truncated { frame, offset, why } = trace.end() {
        eprintln!(
            "tr: {}: ends at frame {frame}, byte {}: {why} (recorder killed or disk full?)",
            tr_report::escape::text(name.as_bytes()),
            tr_report::units::count(*offset)
        );
    }
    for damage in trace.damage() {
        eprintln!(
            "tr: {}: frame {} at byte {}: {}",
            tr_report::escape::text(name.as_bytes()),
            damage.frame,
            tr_report::units::count(damage.offset),
            damage.what
        );
    }
    if let Some(why) = senseless(args, trace.meta()) {
        eprintln!("tr: {why}");
        return ExitCode::from(2);
    }
    let nanoseconds = |t: Duration| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX);
    let options = Options {
        from: args.from.map(nanoseconds),
        to: args.to.map(nanoseconds),
        cpu: args.cpu.map(CpuId),
        timeline: false,
    };
    let analysis = tr_analyze::analyze(&trace, &options);
    let filter = Filter {
        comm: args.comm.clone(),
        argv: args.argv.clone(),
        cgroup: args.cgroup.clone(),
        pid: args.pid.map(Tgid),
    };
    let chosen = filter.apply(&analysis);
    if chosen.is_empty() && !analysis.processes.is_empty() {
        eprintln!(
            "tr: none of the {} processes matches",
            analysis.processes.len()
        );
    }
    let (sort, by) = (sort(args.sort), by(args.by));
    match args.format {
        FormatArg::Text => {
            let style = text::Style {
                width: width(args.width),
                color: color(),
                top: args.top,
                sort,
                by,
            };
            let reports = args.report.iter().map(|report| match report {
                ReportArg::Top => text::render(&analysis, &chosen, &name, &style),
                ReportArg::Audit => audit::render(&analysis, &style),
            });
            open::print(reports.collect::<Vec<_>>().join("\n").as_bytes())
        }
        FormatArg::Json => match json::render(&analysis, &chosen) {
            Ok(document) => open::print(document.as_bytes()),
            Err(error) => failed(&error),
        },
        FormatArg::Csv => match csv::render(&query::rows(&analysis, &chosen, by, sort)) {
            Ok(table) => open::print(&table),
            Err(error) => failed(&error),
        },
    }
}

/// Options that this trace cannot have an answer to.
fn senseless(args: &Args, meta: &tr_format::meta::Metadata) -> Option<String> {
    if let Some(cpu) = args.cpu.filter(|cpu| !meta.cpus.contains(&CpuId(*cpu))) {
        let last = meta.cpus.iter().max().map_or(0, |cpu| cpu.0);
        return Some(format!(
            "--cpu {cpu}: the trace has {} CPUs, up to CPU {last}",
            meta.cpus.len()
        ));
    }
    match (args.from, args.to) {
        (Some(from), Some(to)) if from >= to => {
            Some(format!("--from {from:?} is not before --to {to:?}"))
        }
        _ => None,
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("tr: cannot write the report: {error}");
    ExitCode::FAILURE
}

fn sort(arg: SortArg) -> Sort {
    match arg {
        SortArg::OnCpu => Sort::OnCpu,
        SortArg::OffCpu => Sort::OffCpu,
        SortArg::Wall => Sort::Wall,
        SortArg::RunQueue => Sort::RunQueue,
        SortArg::Sleep => Sort::Sleep,
        SortArg::Blocked => Sort::Blocked,
        SortArg::Unknown => Sort::Unknown,
        SortArg::Rss => Sort::Rss,
        SortArg::TreeCpu => Sort::TreeCpu,
        SortArg::Start => Sort::Start,
        SortArg::Pid => Sort::Pid,
    }
}

fn by(arg: ByArg) -> By {
    match arg {
        ByArg::Process => By::Process,
        ByArg::Thread => By::Thread,
        ByArg::Program => By::Program,
        ByArg::Comm => By::Comm,
        ByArg::Cgroup => By::Cgroup,
        ByArg::Depth => By::Depth,
    }
}

fn width(asked: Option<usize>) -> usize {
    asked
        .or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
        .unwrap_or(100)
        .max(40)
}

/// On a terminal, unless NO_COLOR or CLICOLOR=0 say otherwise; CLICOLOR_FORCE
/// always.
fn color() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    let dumb = set("TERM").is_some_and(|term| term == "dumb");
    let off = set("NO_COLOR").is_some() || set("CLICOLOR").is_some_and(|value| value == "0");
    std::io::stdout().is_terminal() && !dumb && !off
}
