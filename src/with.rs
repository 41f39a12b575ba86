//! Implements `--with`, which adds the spans in files of other tools (test reports, build logs) to a
//! recording as steps.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tr_format::reader::Trace;
use tr_import::Error;
use tr_insight::recordings::imports;
use tr_insight::Recording;
use tr_placing::ToolFile;
use tr_report::reports::TimelineUse;
use tr_text::escape;

use crate::budget::Budget;
use crate::{analysis, errors};

/// The largest number of damaged files, in directories that `--with` names, whose names are printed.
const MOST_NAMED: u64 = 10;

/// The option `--with`, which names files of other tools whose spans become steps of the recording.
#[derive(clap::Args, Debug)]
pub struct With {
    /// Add the spans of another tool's file as steps of the recorded processes: JUnit XML, .ninja_log,
    /// cargo --timings, the Chrome Trace Event format (clang, CMake, Bazel), OTLP. A directory stands
    /// for the files with such names in it and below it. Can be given several times
    #[arg(long, value_name = "PATH")]
    with: Vec<PathBuf>,
}

impl With {
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.with.iter().map(PathBuf::as_path)
    }

    /// Analyzes a whole recording with its timeline, and adds the spans of the files that `--with` names.
    pub fn recording(&self, trace: &Trace, budget: Budget) -> Result<Recording, ExitCode> {
        let mut recording = analysis::analyze_whole(
            trace,
            analysis::Allowance::new(budget, TimelineUse::Simulation),
        );
        self.add(&mut recording)?;
        Ok(recording)
    }

    /// Reads the files that `--with` names, like [`With::files`], and adds their spans to a recording as
    /// steps.
    pub fn add(&self, recording: &mut Recording) -> Result<(), ExitCode> {
        place(&self.files()?, recording);
        Ok(())
    }

    /// Reads the files that `--with` names, and prints on standard error which files of a named directory
    /// are damaged.
    pub fn files(&self) -> Result<Vec<ToolFile>, ExitCode> {
        let mut files = Vec::new();
        let mut seen = HashSet::new();
        let mut room = tr_import::ALL_FILES;
        let mut damaged = 0;
        for path in &self.with {
            let said = |path: &Path, error: Error| {
                let error = escape::text(error.to_string().as_bytes());
                errors::refused(format!("--with {}: {error}", errors::shown(path)))
            };
            let files_of = tr_import::find(path).map_err(|error| said(path, error))?;
            let found = files_of.found;
            if let Some(skipped) = files_of.skipped.words() {
                message!("--with {}: {skipped}", errors::shown(path));
            }
            let new = |found: &&tr_import::ImportFile| seen.insert(found.path.canonicalize().ok());
            for it in found.iter().filter(new) {
                match tr_import::open(it, &mut room) {
                    Ok(Some(file)) => tr_import::add(&mut files, file),
                    Ok(None) => {}
                    Err(error) if it.named => return Err(said(&it.path, error)),
                    Err(error) => {
                        damaged += 1;
                        if damaged <= MOST_NAMED {
                            said(&it.path, error);
                        }
                    }
                }
            }
            if found.is_empty() {
                let path = errors::shown(path);
                message!("--with {path}: no file with the name of a known tool's file");
            }
        }
        if damaged > MOST_NAMED {
            message!("--with: {} more files are damaged", damaged - MOST_NAMED);
        }
        Ok(files)
    }
}

/// Adds the spans in other tools' files to a recording as steps, and prints on standard error how many of
/// them fit nowhere in it.
pub fn place(files: &[ToolFile], recording: &mut Recording) {
    recording.imports = tr_placing::place(files, &recording.analysis);
    for import in &recording.imports.files {
        if let Some(words) = imports::incomplete(import) {
            message!("--with {}", escape::text(words.as_bytes()));
        }
    }
}
