//! `tr pipeline`: which job of several the time of a CI run was spent in.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use tr_analyze::Options;
use tr_report::pipeline::{graph, Graph, Job, Pipeline, MOST};

use crate::budget::{Budget, Use};
use crate::{open, progress};

/// Tell which jobs of a CI run, recorded on several machines, set its time
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each FILE is the recording of a job. The jobs lie on one line by the clocks of their
machines; the uncertainty of these clocks is told. What a job waited for is told by the job
graph, a JSON file: {\"jobs\": [{\"name\": \"test\", \"needs\": [\"build\"]}]}. Without it each
job is taken to have waited for all that had ended when it began.

Exit status: 0; 2 when a file cannot be read, or has no time of the day.

Examples:
  tr pipeline build.bin test-*.bin
  tr pipeline *.bin --graph jobs.json --format json")]
pub struct Args {
    /// The recordings of the jobs
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The job graph: which job needs which
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    #[command(flatten)]
    budget: Budget,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Text,
    Json,
}

impl Args {
    /// The limits of its memory and time.
    pub fn budget(&self) -> Budget {
        self.budget
    }
}

/// The largest job graph in bytes.
const LARGEST: u64 = 16 << 20;

fn read(file: &std::path::Path) -> Result<Graph, String> {
    let size = std::fs::metadata(file)
        .map_err(|error| error.to_string())?
        .len();
    if size > LARGEST {
        return Err("larger than 16 MiB".to_owned());
    }
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    graph(&text)
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let shown =
        |file: &std::path::Path| tr_report::escape::text(file.as_os_str().as_encoded_bytes());
    if args.files.len() > MOST {
        eprintln!("tr: a pipeline has at most {MOST} recordings");
        return ExitCode::from(open::UNREADABLE);
    }
    let graph = match args.graph.as_deref().map(|file| (file, read(file))) {
        None => None,
        Some((_, Ok(graph))) => Some(graph),
        Some((file, Err(why))) => {
            eprintln!("tr: {}: no job graph: {why}", shown(file));
            return ExitCode::from(open::UNREADABLE);
        }
    };
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let mut jobs = Vec::new();
    for file in &args.files {
        let trace = match open::trace(file) {
            Ok(trace) => trace,
            Err(error) => return open::unreadable(file, &error),
        };
        open::warn(&trace, &file.to_string_lossy());
        let analysis = progress::analyze(&trace, &options, (args.budget, Use::Times));
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        match Job::of(&analysis, &name) {
            Some(job) => jobs.push(job),
            None => {
                eprintln!(
                    "tr: {}: has no time of the day, so it has no place beside others",
                    shown(file)
                );
                return ExitCode::from(open::UNREADABLE);
            }
        }
    }
    let pipeline = Pipeline::new(jobs, graph.as_ref());
    match args.format {
        FormatArg::Text => open::print_text(&pipeline.text()),
        FormatArg::Json => open::print_json(&pipeline.json()),
    }
}
