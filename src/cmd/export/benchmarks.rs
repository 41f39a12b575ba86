//! Implements `tr export --format bencher` and `benchmark-action`: figures for a service that follows them over time.

use std::io::Write;
use std::process::ExitCode;

use tr_compare::diff::benchmarks;
use tr_compare::diff::benchmarks::Service;
use tr_compare::diff::Run;

use super::file::to_file;
use super::options::{refuse_part, Args};
use crate::errors::{self, Done};
use crate::{output, parts};
use tr_output::FileKind;

/// The test that recognizes an existing file of figures for Bencher or github-action-benchmark, which a new
/// export may replace.
const BENCHMARKS: FileKind = FileKind {
    name: "figures of benchmarks",
    is: |bytes| {
        output::is_json(bytes)
            && (output::has(bytes, "\"lower_value\"") || output::has(bytes, "\"range\""))
    },
};

/// Writes the figures of the recorded run in the format of a service that keeps benchmarks' figures over time.
pub fn write(args: &Args, service: Service) -> Done {
    let Some(output) = args.output.as_deref() else {
        return Err(ExitCode::from(errors::UNREADABLE_STATUS));
    };
    refuse_part(
        args,
        "figures over time are of whole runs: without --from and --to",
    )?;
    let trace = parts::opened(&args.file, &args.more)?;
    let name = args.file.to_string_lossy();
    let recording = args.with.recording(&trace, args.budget)?;
    let run = Run::new(&name, &recording);
    if let Some(why) = run.defect() {
        let why = format!("{why}: its times measure no whole build");
        return Err(errors::refused(why));
    }
    let json = benchmarks::json(&[run], service);
    let kind = (BENCHMARKS, false);
    to_file(
        (output, args.force),
        &args.file,
        kind,
        |out: &mut dyn Write| out.write_all(json.as_bytes()),
    )
}
