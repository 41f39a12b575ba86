//! Implements `tr summary`, which prints a dozen lines for the page of a CI job.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use tr_insight::views::query::Filter;
use tr_report::reports::{Ask, View};
use tr_report::summary::{Links, Summary};

use crate::args;
use crate::budget::Budget;
use crate::errors::{self, Done};
use crate::open;
use crate::parts;
use crate::style::Layout;
use crate::subcommand::{Program, Subcommand};
use crate::with::With;
use std::path::Path;
use tr_mcp::tool::takes::FILE;
use tr_mcp::tool::AgentTool;

/// Summarize a recording in a dozen lines, for the page of a CI job
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Names the dominant loss, the failures, the changes that save most, the critical path and
the longest steps. In Markdown nothing that a recording holds can mention people, link
or end an element.

Exit status: 0; 2 when FILE cannot be read at all. Damage and loss cause a warning
and stand in the summary.

Examples:
  tr summary trace.bin
  tr summary trace.bin --format metrics > metrics.txt
  tr summary trace.bin --format json
  tr summary trace.bin --limit 45m
  tr summary trace.bin --format markdown >> \"$GITHUB_STEP_SUMMARY\"")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    file: PathBuf,
    /// Further parts of the same recording, which --rotate has divided: tr summary day/*.bin
    #[arg(value_name = "PART")]
    more: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Add pictures in mermaid to markdown, which GitHub and GitLab draw: the steps over time, CPUs, memory
    #[arg(long)]
    chart: bool,
    /// Limit of the job's time, which the summary compares with the recorded time
    #[arg(long, value_name = "TIME", value_parser = args::duration_with_unit)]
    limit: Option<Duration>,
    /// Link to the page of tr report
    #[arg(long, value_name = "URL")]
    page: Option<String>,
    /// Link to the recording
    #[arg(long, value_name = "URL")]
    artifact: Option<String>,
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
    /// For scripts and agents: at most 8 KiB (tr.summary/1)
    Json,
    /// Workflow commands of GitHub Actions: a warning for each test that was held back
    Github,
    /// OpenMetrics, for a metrics report of GitLab
    Metrics,
}

impl Subcommand for Args {
    const TOOLS: &'static [AgentTool] = &[
        AgentTool {
            name: "summary",
            about: "What to do about a build: outcome, failures, verdict, changes that save time, critical path, longest steps (JSON, tr.summary/1)",
            words: &["summary", "--format=json"],
            takes: &[FILE],
        },
    ];

    fn only_reads(&self) -> Option<Vec<&Path>> {
        let parts = parts::paths(&self.file, &self.more);
        Some(parts.chain(self.with.paths()).collect())
    }

    fn run(self, _: &Program) -> Done {
        summarize(&self)
    }
}

fn summarize(args: &Args) -> Done {
    let trace = parts::opened(&args.file, &args.more)?;
    let name = args.file.to_string_lossy();
    let recording = args.with.recording(&trace, args.budget)?;
    let chosen = Filter::default().apply(&recording);
    let ask = Ask::default();
    let view = View::new(&recording, &chosen, &name, &ask);
    if args.chart && !matches!(args.format, FormatArg::Markdown) {
        return Err(errors::refused("--chart takes --format markdown"));
    }
    let mut summary = Summary::new(&view);
    if args.chart {
        summary = summary.with_chart(&view);
    }
    if let Some(limit) = args.limit {
        let ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        summary = summary.within(ns, &recording.analysis);
    }
    let links = Links {
        page: args.page.as_deref(),
        artifact: args.artifact.as_deref(),
    };
    Ok(match args.format {
        FormatArg::Text => {
            let style = args.layout.style();
            open::print_text(&summary.page(&style, links).text(&style))
        }
        FormatArg::Markdown => open::print(summary.markdown(links).as_bytes()),
        FormatArg::Json => open::print_report(summary.json(&recording.analysis)),
        FormatArg::Github => open::print(summary.github().as_bytes()),
        FormatArg::Metrics => open::print(summary.metrics(&recording.analysis).as_bytes()),
    })
}
