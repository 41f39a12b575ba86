//! `tr export --format bencher`: figures for a service that follows them over time.

use std::io::Write;
use std::process::ExitCode;

use tr_report::diff::benchmarks::{self, Service};
use tr_report::diff::Run;

use super::Args;
use crate::{open, output};

pub fn run(args: &Args, service: Service) -> ExitCode {
    let Some(output) = args.output.as_deref() else {
        return ExitCode::from(open::UNREADABLE);
    };
    if args.from.is_some() || args.to.is_some() {
        eprintln!("tr: figures over time are of whole runs: without --from and --to");
        return ExitCode::from(open::UNREADABLE);
    }
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let name = args.file.to_string_lossy();
    open::warn(&trace, &name);
    let analysis = match args.with.analyze(&trace, args.budget) {
        Ok(analysis) => analysis,
        Err(status) => return status,
    };
    let json = benchmarks::json(&[Run::new(&name, &analysis)], service);
    let kind = (output::BENCHMARKS, false);
    super::to_file(
        (output, args.force),
        &args.file,
        kind,
        |out: &mut dyn Write| out.write_all(json.as_bytes()),
    )
}
