//! Implements `tr export --format junit`, which adds facts of the recording to the tests of a JUnit report.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use tr_export::junit;
use tr_import::ImportFile;
use tr_text::{escape, units};

use super::file::to_file;
use super::options::{refuse_part, Args};
use crate::errors::{self, Done};
use crate::{output, parts};
use tr_output::FileKind;

const JUNIT: FileKind = FileKind {
    name: "JUnit XML",
    is: |bytes| {
        let xml = matches!(bytes.trim_ascii_start().first(), Some(b'<' | b'\xef'));
        xml && output::has(bytes, "<testsuite")
    },
};

/// Writes a JUnit report back, with what the recording knows about each test.
pub fn write(args: &Args) -> Done {
    let (Some(output), Some(report)) = (args.output.as_deref(), only(args)) else {
        let why = "--format junit takes one --with FILE, the JUnit XML to write back, and -o";
        return Err(errors::refused(why));
    };
    refuse_part(
        args,
        "a JUnit report has whole tests: --from and --to are not for --format junit",
    )?;
    let trace = parts::opened(&args.file, &args.more)?;
    let recording = args.with.recording(&trace, args.budget)?;
    let found = ImportFile {
        path: report.to_owned(),
        named: true,
    };
    let bytes = tr_import::bytes(&found, tr_import::FILE);
    let written = bytes.and_then(|bytes| junit::write(&bytes, &recording));
    let wrong = |error: tr_import::Error| {
        let error = escape::text(error.to_string().as_bytes());
        errors::refused(format!("--with {}: {error}", errors::shown(report)))
    };
    let (mut bytes, tests) = written.map_err(wrong)?;
    if output::is_stdout(output) {
        let text = String::from_utf8_lossy(&bytes);
        bytes = junit::for_log(&text)
            .map_err(wrong)?
            .into_owned()
            .into_bytes();
    }
    let code = to_file(
        (output, args.force),
        &args.file,
        (JUNIT, false),
        |out: &mut dyn Write| out.write_all(&bytes),
    )?;
    if code == ExitCode::SUCCESS {
        let tests = units::plural(tests, "test has", "tests have");
        message!("{tests} figures");
    }
    Ok(code)
}

/// The only path that the options `--with` name; `None` if they name no path or several.
fn only(args: &Args) -> Option<&Path> {
    let mut paths = args.with.paths();
    let first = paths.next();
    first.filter(|_| paths.next().is_none())
}
