//! Implements `tr pipeline`, which shows in which of several jobs the time of a CI run was spent.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use tr_compare::pipeline::{graph as graph_of, Job, Pipeline};
use tr_insight::recordings::ci_jobs::MOST_JOBS;
use tr_insight::recordings::identity;
use tr_report::reports::TimelineUse;
use tr_text::escape;
use tr_text::style::Style;

use crate::budget::Budget;
use crate::errors::{self, Done};
use crate::subcommand::{Program, Subcommand};
use crate::{analysis, open, output};
use tr_output::FileKind;

/// The test that recognizes a file which `tr pipeline` may replace by its output: an HTML page or JSON of `tr
/// pipeline`.
const PIPELINE: FileKind = FileKind {
    name: "a pipeline of tr pipeline",
    is: |bytes| {
        (output::PAGE.is)(bytes) || output::is_json(bytes) && output::has(bytes, "\"tr.pipeline/")
    },
};

/// Tell which jobs of a CI run, recorded on several machines, set its time
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each FILE is the recording of a job. The jobs lie on one line by the clocks of their
machines; the uncertainty of these clocks is told. What a job waited for is told by the job
graph, a JSON file: {\"jobs\": [{\"name\": \"test\", \"needs\": [\"build\"]}]}. Without it each
job is taken to have waited for all that had ended when it began. --jobs reads what the CI
system itself tells of the run's jobs: their times by one clock, those that were not recorded,
the waits for a runner, and in GitLab the graph.

Exit status: 0; 2 when a file cannot be read, has no time of the day or is given twice, or the
graph has a cycle.

Examples:
  tr pipeline build.bin test-*.bin
  tr pipeline *.bin --graph graph.json -o pipeline.html
  gh api repos/OWNER/REPO/actions/runs/ID/jobs > jobs.json
  tr pipeline *.bin --jobs jobs.json")]
pub struct Args {
    /// The recordings of the jobs
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The job graph: which job needs which
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// The answer of GitHub (GET …/actions/runs/ID/jobs) or GitLab (GET …/pipelines/ID/jobs), as
    /// JSON
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// Output format [default: by OUT's ending, or text]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    force: output::Force,
    #[command(flatten)]
    pub budget: Budget,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Text,
    Json,
    /// A page
    Html,
}

impl Args {
    fn format(&self) -> FormatArg {
        output::format_for(self.format, &self.output, FormatArg::Text)
    }

    /// The paths of the files that `tr pipeline` reads: recordings, the graph of jobs and the CI system's
    /// list of jobs.
    fn files(&self) -> Vec<&Path> {
        let json = self.graph.iter().chain(&self.jobs);
        self.files
            .iter()
            .chain(json)
            .map(PathBuf::as_path)
            .collect()
    }
}

/// The size in bytes of the largest file with a graph or list of jobs that `tr pipeline` reads.
const LARGEST_FILE: u64 = 16 << 20;

/// Reads a small text file, such as the job graph, and returns the result of `parse`. A file larger than `LARGEST_FILE`
/// is an error, which is found during reading, because the size of a pipe is not known before.
pub(super) fn read<T>(
    file: &Path,
    what: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, ExitCode> {
    let text = || {
        let mut text = String::new();
        let opened = std::fs::File::open(file);
        let read = opened.and_then(|file| file.take(LARGEST_FILE + 1).read_to_string(&mut text));
        match read {
            Ok(length) if length as u64 > LARGEST_FILE => Err("larger than 16 MiB".to_owned()),
            Ok(_) => Ok(text),
            Err(error) => Err(error.to_string()),
        }
    };
    text().and_then(|text| parse(&text)).map_err(|why| {
        let why = escape::text(why.as_bytes());
        errors::refused(format!("{}: no {what}: {why}", errors::shown(file)))
    })
}

impl Subcommand for Args {
    const IS_LONG: bool = true;

    fn only_reads(&self) -> Option<Vec<&Path>> {
        output::is_stdout(&self.output).then(|| self.files())
    }

    fn is_paged(&self) -> bool {
        output::is_stdout(&self.output)
    }

    fn run(self, _: &Program) -> Done {
        write_pipeline(&self)
    }
}

fn write_pipeline(args: &Args) -> Done {
    let pipeline = pipeline(args)?;
    let text = match args.format() {
        FormatArg::Text => escape::page(&pipeline.page().text(&Style::PLAIN)).into_owned(),
        FormatArg::Html => pipeline.html(),
        FormatArg::Json => tr_text::json::document(&pipeline.json(), true)
            .map_err(|error| open::printed(Err(error)))?,
    };
    let to = (args.output.as_path(), args.force);
    Ok(output::text(to, &args.files(), PIPELINE, &text))
}

/// Reads the recordings, the job graph and the CI system's list of jobs, and joins them into one pipeline.
fn pipeline(args: &Args) -> Result<Pipeline, ExitCode> {
    if args.files.len() > MOST_JOBS {
        let why = format!("a pipeline has at most {MOST_JOBS} recordings");
        return Err(errors::refused(why));
    }
    let graph = args.graph.as_deref();
    let graph = graph.map(|file| read(file, "job graph", graph_of));
    let graph = graph.transpose()?;
    let of_ci = args.jobs.as_deref();
    let of_ci = of_ci.map(|file| read(file, "jobs of a CI run", tr_import::jobs::read));
    let of_ci = of_ci.transpose()?.unwrap_or_default();
    let mut traces = Vec::new();
    let mut runs = identity::Runs::default();
    for file in &args.files {
        let trace = open::warned(file)?;
        let added = runs.add(trace.meta(), errors::shown(file));
        added.map_err(errors::refused)?;
        traces.push(trace);
    }
    let allowance = analysis::Allowance::new(args.budget, TimelineUse::StepTimes);
    let options = analysis::with_timeline();
    let found = analysis::analyze_several(&traces, &options, allowance, |at, recording| {
        let file = args.files.get(at).map(PathBuf::as_path);
        let name = file.and_then(Path::file_stem).unwrap_or_default();
        Job::of(&recording, &name.to_string_lossy())
    });
    let mut jobs = Vec::new();
    for (job, file) in found.into_iter().zip(&args.files) {
        jobs.push(job.ok_or_else(|| {
            let file = errors::shown(file);
            errors::refused(format!(
                "{file}: has no time of the day, so it has no place beside others"
            ))
        })?);
    }
    Pipeline::new(jobs, graph.as_ref(), &of_ci).map_err(errors::refused)
}
