//! `tr report`: the analysis as a page.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tr_analyze::Options;
use tr_report::untraced;

use crate::budget::{Budget, Use};
use crate::with::With;
use crate::{args, open, output, progress};

/// Write the analysis as one HTML file
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file needs nothing else: it opens from disk, and from a CI run's artifacts.

Exit status: 0; 1 when OUT cannot be written; 2 when FILE cannot be read at all.
Damage and loss cause a warning and stand in the report.")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT)]
    file: PathBuf,
    /// The page; - is standard output. An existing file is replaced once the page
    /// is complete
    #[arg(short, long, value_name = "OUT", default_value = "report.html")]
    output: PathBuf,
    #[command(flatten)]
    force: output::Force,
    /// Show from this time of the recording on, e.g. 1.5s
    #[arg(long, value_name = "T", value_parser = args::duration)]
    from: Option<Duration>,
    /// Show up to this time of the recording
    #[arg(long, value_name = "T", value_parser = args::duration)]
    to: Option<Duration>,
    #[command(flatten)]
    with: With,
    #[command(flatten)]
    budget: Budget,
}

impl Args {
    /// The limits of its memory and time.
    pub fn budget(&self) -> Budget {
        self.budget
    }
}

/// Runs it.
pub fn run(args: &Args) -> ExitCode {
    let (from, to) = (
        args.from.map(args::nanoseconds),
        args.to.map(args::nanoseconds),
    );
    let trace = match open::trace(&args.file) {
        Ok(trace) => trace,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let name = args.file.to_string_lossy();
    open::warn(&trace, &name);
    if let (Some(from), Some(to)) = (args.from, args.to) {
        if from >= to {
            eprintln!("tr: --from {from:?} is not before --to {to:?}");
            return ExitCode::from(2);
        }
    }
    let options = Options {
        from,
        to,
        timeline: true,
        samples: true,
        ..Options::default()
    };
    let mut analysis = progress::analyze(&trace, &options, (args.budget, Use::Times));
    if let Err(why) = args.with.add(&mut analysis) {
        eprintln!("tr: {why}");
        return ExitCode::from(open::UNREADABLE);
    }
    if let Some(why) = args::from_after_end(args.from, &analysis) {
        eprintln!("tr: {why}");
        return ExitCode::from(open::UNREADABLE);
    }
    let not_traced = untraced::reason(&analysis);
    if let Some(reason) = &not_traced {
        let name = tr_report::escape::text(name.as_bytes());
        eprintln!("tr: {name}: not traced: {reason}");
    }
    // Without the directory: pages are passed on, and it may be private.
    let base = args.file.file_name().map(|name| name.to_string_lossy());
    let page = match tr_report::html::render(&analysis, base.as_deref().unwrap_or(&name)) {
        Ok(page) => page,
        Err(error) => {
            eprintln!("tr: cannot write the report: {error}");
            return ExitCode::FAILURE;
        }
    };
    if args.output.as_os_str() == "-" {
        return open::print(page.as_bytes());
    }
    let out = tr_report::escape::text(args.output.as_os_str().as_encoded_bytes());
    let kind = (output::PAGE, false);
    let written = output::whole(&args.output, &args.file, kind, args.force, |file| {
        file.write_all(page.as_bytes())
    });
    match written {
        Ok(()) => {
            let contents = match not_traced {
                Some(_) => "exit status and resource usage".into(),
                None => {
                    let processes = analysis.totals.processes;
                    tr_report::units::plural(processes, "process", "processes")
                }
            };
            let size = tr_report::units::bytes(page.len() as u64);
            eprintln!("tr: {out}: {contents}, {size}");
            if let Ok(whole) = std::fs::canonicalize(&args.output) {
                eprintln!("    {}", link(&whole));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tr: cannot write {out}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The address of a file for a browser.
fn link(file: &std::path::Path) -> String {
    let mut out = "file://".to_owned();
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(*byte)),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
