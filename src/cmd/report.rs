//! Implements `tr report`, which writes the analysis of a recording as one HTML page.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tr_analyze::Options;
use tr_format::reader::Trace;
use tr_insight::recordings::untraced;
use tr_report::reports::TimelineUse;

use crate::budget::Budget;
use crate::errors::{self, Done};
use crate::span::Span;
use crate::subcommand::{Hint, Program, Subcommand};
use crate::with::With;
use crate::{analysis, open, output, parts};

/// Write the analysis as one HTML file
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file needs nothing else: it opens from disk, and from a CI run's artifacts.

Exit status: 0; 1 when OUT cannot be written; 2 when FILE cannot be read at all.
Damage and loss cause a warning and stand in the report.")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    file: PathBuf,
    /// Further parts of the same recording, which --rotate has divided: tr report day/*.bin
    #[arg(value_name = "PART")]
    more: Vec<PathBuf>,
    /// The page; - is standard output. An existing file is replaced once the page
    /// is complete
    #[arg(short, long, value_name = "OUT", default_value = "report.html")]
    output: PathBuf,
    #[command(flatten)]
    force: output::Force,
    #[command(flatten)]
    span: Span,
    #[command(flatten)]
    with: With,
    #[command(flatten)]
    pub budget: Budget,
}

impl Subcommand for Args {
    const HINTS: &'static [Hint] = &[Hint {
        wrong: "--stdio",
        advice: "tr analyze prints text",
    }];

    fn run(self, _: &Program) -> Done {
        write_page(&self)
    }
}

/// The HTML page that `tr report` makes of a recording.
pub struct Page {
    pub html: String,
    /// The page's contents in a few words, which `tr` prints for the user after the page is written.
    pub contents: String,
}

/// Makes the HTML page of a recording. Warnings about the recording go to standard error.
///
/// # Errors
/// The exit status after the reason was printed.
pub fn page(
    trace: &Trace,
    file: &Path,
    span: &Span,
    with: &With,
    budget: Budget,
) -> Result<Page, ExitCode> {
    let (from, to) = span.ns();
    let name = file.to_string_lossy();
    span.check()?;
    let options = Options {
        from,
        to,
        timeline: true,
        samples: true,
        ..Options::default()
    };
    let allowance = analysis::Allowance::new(budget, TimelineUse::StepTimes);
    let mut recording = analysis::analyze(trace, &options, allowance);
    with.add(&mut recording)?;
    span.check_in(&recording.analysis)?;
    let not_traced = untraced::reason(&recording.analysis);
    if let Some(reason) = &not_traced {
        let reason = tr_text::escape::text(reason.as_bytes());
        message!("{}: not traced: {reason}", errors::shown(file));
    }
    // The page names the file without its directory, which may be private, because users pass pages on to others.
    let base = file.file_name().map(|name| name.to_string_lossy());
    let page = tr_report::html::render(&recording, base.as_deref().unwrap_or(&name));
    let html = page.map_err(|error| errors::unwritten("the report", error))?;
    let contents = match not_traced {
        Some(_) => "exit status and resource usage".into(),
        None => {
            let processes = recording.analysis.totals.processes;
            tr_text::units::plural(processes, "process", "processes")
        }
    };
    Ok(Page { html, contents })
}

fn write_page(args: &Args) -> Done {
    let trace = parts::opened(&args.file, &args.more)?;
    let Page { html, contents } = page(&trace, &args.file, &args.span, &args.with, args.budget)?;
    if output::is_stdout(&args.output) {
        return Ok(open::print(html.as_bytes()));
    }
    let out = errors::shown(&args.output);
    let kind = (output::PAGE, false);
    let written = output::whole(&args.output, &args.file, kind, args.force, |file| {
        file.write_all(html.as_bytes())
    });
    written.map_err(|error| errors::unwritten(&out, error))?;
    let size = tr_text::units::bytes(html.len() as u64);
    message!("{out}: {contents}, {size}");
    if let Ok(whole) = std::fs::canonicalize(&args.output) {
        eprintln!("    {}", link(&whole));
    }
    Ok(ExitCode::SUCCESS)
}

/// The `file://` URL of a file.
pub fn link(file: &Path) -> String {
    format!("file://{}", address(file))
}

/// A path with %-escapes, as a part of a URL. Colons are escaped, too, so that the beginning of a relative path is
/// never taken for a URL's scheme, such as `http:`.
pub fn address(path: &Path) -> String {
    let mut out = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
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
