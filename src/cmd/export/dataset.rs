//! Implements `tr export --format parquet`, which writes a recording as a run of a dataset.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tr_analyze::model::Analysis;
use tr_analyze::Options;
use tr_export::dataset;
use tr_export::dataset::{trace, Place, Table};
use tr_insight::recordings::ci_jobs;
use tr_insight::views::query::Filter;
use tr_report::reports::TimelineUse;
use tr_text::units;

use super::options::{has_date, min_or, refuse_part, Args};
use crate::analysis;
use crate::cmd::pipeline;
use crate::errors::{self, Done};
use crate::output::{is_stdout, whole, Force};
use crate::parts;
use tr_output::FileKind;

/// The test that recognizes a Parquet file, which a new export to Parquet may replace.
const PARQUET: FileKind = FileKind {
    name: "a Parquet file",
    is: |bytes| bytes.starts_with(b"PAR1"),
};

/// The least wall time of a process for which the dataset has a row, unless the user gives `--min`.
const SHORTEST_PROCESS: Duration = Duration::from_millis(100);

/// Writes the rows of the recording as Parquet files of a dataset of many runs.
pub fn write(args: &Args) -> Done {
    refuse_part(
        args,
        "a dataset has whole runs: --from and --to are not for --format parquet",
    )?;
    let output = args.output.as_deref();
    let Some(output) = output.filter(|path| !is_stdout(path)) else {
        return Err(errors::refused("a dataset is a directory: -o DIRECTORY"));
    };
    let shown = errors::shown(output);
    let refused = |error| errors::unwritten(&shown, error);
    let trace = parts::opened(&args.file, &args.more)?;
    has_date(&trace, args)?;
    let mut place = Place::of(trace.meta(), args.repo.as_deref(), args.job.as_deref());
    if let Some(file) = present(output, &place).map_err(refused)? {
        let file = errors::shown(&file);
        message!("{shown}: has this run already: {file}");
        return Ok(ExitCode::SUCCESS);
    }
    let recording = args.with.recording(&trace, args.budget)?;
    if let Some(file) = &args.jobs {
        waited(file, &recording.analysis, &mut place)?;
    }
    let filter = Filter {
        min: min_or(args, SHORTEST_PROCESS),
        ..args.filters.filter()
    };
    let tables = dataset::tables(&recording, &filter.apply(&recording), &place);
    let added = add((output, &args.file), args.force, &place, &tables);
    let size = units::bytes(added.map_err(refused)?);
    message!(
        "{shown}: run {} in {}/{}, {size}",
        place.run,
        place.repo,
        place.date
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes the processes, waits, steps and other facts of a single recording as tables, each in a Parquet
/// file (`--tables`). A file gets its name only when it is complete.
pub fn write_tables(args: &Args, directory: &Path) -> Done {
    let others = [args.repo.is_some(), args.job.is_some(), args.jobs.is_some()];
    if others.contains(&true) {
        let why = "--repo, --job and --jobs are for a dataset: -o DIRECTORY in place of --tables";
        return Err(errors::refused(why));
    }
    if !args.filters.filter().is_empty() {
        let why = "the tables have all processes: filter them in SQL";
        return Err(errors::refused(why));
    }
    let shown = errors::shown(directory);
    let refused = |error| errors::unwritten(&shown, error);
    let trace = parts::opened(&args.file, &args.more)?;
    args.span.check()?;
    let (from, to) = args.span.ns();
    let options = Options {
        from,
        to,
        timeline: true,
        ..Options::default()
    };
    let allowance = analysis::Allowance::new(args.budget, TimelineUse::Path);
    let mut recording = analysis::analyze(&trace, &options, allowance);
    args.with.add(&mut recording)?;
    args.span.check_in(&recording.analysis)?;
    tr_output::directories(directory).map_err(refused)?;
    let tables = trace::Tables::new(&recording);
    for name in trace::names() {
        let file = directory.join(format!("{name}.parquet"));
        let kind = (PARQUET, true);
        let written = whole(&file, &args.file, kind, args.force, |out| {
            let mut out = io::BufWriter::new(out);
            tables.write(name, &mut out)?;
            out.flush()
        });
        written.map_err(refused)?;
    }
    let count = units::count(trace::names().count() as u64);
    message!("{shown}: {count} tables");
    Ok(ExitCode::SUCCESS)
}

/// Reads how long the CI job of this run waited for a runner, and stores the wait in `place`, the description of the
/// run in the dataset. The file has the answer of GitHub's or GitLab's API to a request for the jobs.
fn waited(file: &Path, analysis: &Analysis, place: &mut Place) -> Result<(), ExitCode> {
    let jobs = pipeline::read(file, "jobs of a CI run", tr_import::jobs::started)?;
    match ci_jobs::of(&jobs, analysis) {
        Some((job, leg)) => place.waited(job.queued, leg),
        None => {
            let file = errors::shown(file);
            message!("{file}: none of these jobs is the recording's, so its wait for a runner is not known");
        }
    }
    Ok(())
}

/// The path of a run's file in the dataset if the run was already added; `None` if the run is new. All repositories in
/// the dataset are searched, because the run may have been added under another name of its repository (`--repo`).
fn present(directory: &Path, place: &Place) -> io::Result<Option<PathBuf>> {
    let repositories = match std::fs::read_dir(directory.join(dataset::MARKER)) {
        Ok(repositories) => repositories,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for repository in repositories {
        let file = repository?.path().join(&place.date).join(name(place));
        if file.try_exists().unwrap_or(false) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn name(place: &Place) -> String {
    format!("{}.parquet", place.run)
}

/// Writes the Parquet files of one run of a dataset, and returns their size in bytes. A file gets its name
/// only when it is complete, and the file that makes the run part of the dataset comes last.
fn add(
    (output, trace): (&Path, &Path),
    force: Force,
    place: &Place,
    tables: &[Table],
) -> io::Result<u64> {
    let mut size = 0;
    for table in tables {
        let directory = output.join(table.name);
        let directory = directory.join(&place.repo).join(&place.date);
        tr_output::directories(&directory)?;
        let bytes = dataset::file(table)?;
        whole(
            &directory.join(name(place)),
            trace,
            (PARQUET, true),
            force,
            |file| file.write_all(&bytes),
        )?;
        size += bytes.len() as u64;
    }
    Ok(size)
}
