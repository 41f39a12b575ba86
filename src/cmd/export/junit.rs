//! `tr export --format junit`: a JUnit report with what the recording tells of its tests.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use tr_import::junit::write;
use tr_import::Found;
use tr_report::{escape, units};

use super::Args;
use crate::{open, output};

pub fn run(args: &Args) -> ExitCode {
    let (Some(output), Some(report)) = (args.output.as_deref(), only(args)) else {
        eprintln!("tr: --format junit takes one --with FILE, the JUnit XML to write back, and -o");
        return ExitCode::from(open::UNREADABLE);
    };
    if args.from.is_some() || args.to.is_some() {
        eprintln!("tr: a JUnit report has whole tests: --from and --to are not for --format junit");
        return ExitCode::from(open::UNREADABLE);
    }
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    open::warn(&trace, &args.file.to_string_lossy());
    let analysis = match args.with.analyze(&trace, args.budget) {
        Ok(analysis) => analysis,
        Err(status) => return status,
    };
    let found = Found {
        path: report.to_owned(),
        named: true,
    };
    let bytes = tr_import::bytes(&found, tr_import::FILE);
    let written = bytes.and_then(|bytes| write::write(&bytes, &analysis));
    let (bytes, tests) = match written {
        Ok(written) => written,
        Err(error) => {
            let path = escape::text(report.as_os_str().as_encoded_bytes());
            let error = escape::text(error.to_string().as_bytes());
            eprintln!("tr: --with {path}: {error}");
            return ExitCode::from(open::UNREADABLE);
        }
    };
    let code = super::to_file(
        (output, args.force),
        &args.file,
        (output::JUNIT, false),
        |out: &mut dyn Write| out.write_all(&bytes),
    );
    if code == ExitCode::SUCCESS {
        let tests = units::plural(tests, "test has", "tests have");
        eprintln!("tr: {tests} properties");
    }
    code
}

/// The path of `--with`, if there is one.
fn only(args: &Args) -> Option<&Path> {
    let mut paths = args.with.paths();
    let first = paths.next();
    first.filter(|_| paths.next().is_none())
}
