//! Writes the annotations and metrics of a summary, which CI systems show beside it.

use std::fmt::Write;

use tr_analyze::model::Analysis;

use super::Summary;
use tr_insight::resources::job_figures::{job_figures, FigureName, FigureUnit, JobFigure};
use tr_text::escape;

/// The largest number of warnings about delayed steps. GitHub shows ten warnings for each step of a job.
const ANNOTATIONS: usize = 10;
/// The largest number of a summary's metrics about single tests.
const TESTS: usize = 50;
/// The greatest length in bytes of the path of a test's file in an annotation.
const FILE: usize = 200;

/// A step or test that something delayed, as annotations show it.
struct HeldStep<'a> {
    name: String,
    /// The path of the file that the test is in, if it is known.
    file: Option<&'a str>,
    /// How the step ended, and what delayed it.
    reason: String,
}

impl Summary {
    /// The steps and tests that something delayed. Those that failed come first.
    fn held(&self) -> impl Iterator<Item = HeldStep<'_>> + '_ {
        let failed = self.failures.reported.iter();
        let failed = failed.filter_map(|failed| {
            let held = failed.held_whenever()?;
            let file = failed.step.and_then(|step| self.files.get(&step));
            Some(HeldStep {
                name: failed.name().short().to_owned(),
                file: file.map(String::as_str),
                reason: format!("{}; {}", failed.fact().short(), held.short()),
            })
        });
        let slow = self.slow.iter().map(|test| HeldStep {
            name: test.name.short().to_owned(),
            file: test.file.as_deref(),
            reason: format!("slow; {}", test.held),
        });
        failed.chain(slow)
    }

    /// The warnings of the summary about delayed tests and steps, as workflow commands of GitHub Actions.
    pub fn github(&self) -> String {
        let mut out = String::new();
        for held in self.held().take(ANNOTATIONS) {
            let file = held.file.and_then(file);
            let file = file.map(|file| format!("file={},", property(file)));
            let file = file.unwrap_or_default();
            let text = format!("{}: {}", held.name, held.reason);
            let _ = writeln!(out, "::warning {file}title=Held back::{}", data(&text));
        }
        out
    }

    /// The figures of the summary in the OpenMetrics format. An unknown figure is left out.
    pub fn metrics(&self, analysis: &Analysis) -> String {
        let mut out = String::new();
        let limit = self.limit.map(|ns| JobFigure {
            name: FigureName::single("limit"),
            unit: FigureUnit::Seconds,
            value: ns,
            about: "Limit of the job's time",
        });
        for figure in job_figures(analysis, self.size.as_ref())
            .into_iter()
            .chain(limit)
        {
            let (suffix, value) = match figure.unit {
                FigureUnit::Seconds => ("_seconds", format!("{:.3}", figure.value as f64 / 1e9)),
                FigureUnit::Bytes => ("_bytes", figure.value.to_string()),
                FigureUnit::Cpus => ("", figure.value.to_string()),
            };
            let name = format!("tr_{}{suffix}", figure.name.joined("_"));
            let _ = writeln!(out, "# TYPE {name} gauge\n{name} {value}");
        }
        let _ = writeln!(out, "# TYPE tr_held_back gauge");
        let _ = writeln!(out, "tr_held_back {}", self.held().count());
        let _ = writeln!(out, "# TYPE tr_test_held_back gauge");
        for held in self.held().take(TESTS) {
            let name = escape::text(held.name.as_bytes())
                .replace('\\', "\\\\")
                .replace('"', "\\\"");
            // GitLab takes the text after `#` for a comment, and then reads no line of the file.
            let name = name.replace('#', "%23");
            let _ = writeln!(out, "tr_test_held_back{{test=\"{name}\"}} 1");
        }
        out + "# EOF\n"
    }
}

/// The path of a test's file as GitHub shows it beside the source: relative to the directory of the project. The
/// directory in which the test ran is taken for this directory. `None` for any other path, and for a program without a
/// source.
fn file(path: &str) -> Option<&str> {
    let path = path.trim_start_matches("./");
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let (_, suffix) = path.rsplit_once('.')?;
    let is_relative = !path.starts_with('/') && path.split('/').all(|part| part != "..");
    let is_known = !suffix.is_empty() && !suffix.contains('/') && path.len() <= FILE;
    (is_known && is_relative && path.chars().all(is_safe)).then_some(path)
}

/// Escapes the text of a workflow command of GitHub Actions, so that no text of a recording can end the command
/// or begin another one.
fn data(text: &str) -> String {
    escape::text(text.as_bytes()).replace('%', "%25")
}

/// Escapes the value of a property in a workflow command of GitHub Actions.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::SlowTest;
    use super::*;

    fn summary(name: &str) -> Summary {
        Summary {
            slow: vec![SlowTest {
                name: name.into(),
                file: Some("t/a.py".into()),
                held: "50 %\n::error::x".into(),
            }],
            ..Summary::default()
        }
    }

    #[test]
    fn a_name_cannot_end_a_workflow_command() {
        let text = summary("t/a.py::b\r\n::stop-commands::x").github();
        assert_eq!(
            text,
            "::warning file=t/a.py,title=Held back::t/a.py::b\\r\\n::stop-commands::x: slow; 50 %25\\n::error::x\n"
        );
    }

    #[test]
    fn only_relative_files_are_files() {
        let files = [
            "t/a.t",
            "./sub/x.bats",
            "a.py::b",
            "/etc/passwd.x",
            "../a.b",
            "pytest",
            "v1.2/x",
            "a,b.c",
        ];
        let found = files.map(file);
        let wanted = [
            Some("t/a.t"),
            Some("sub/x.bats"),
            None,
            None,
            None,
            None,
            None,
            None,
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn metrics_escape_names() {
        let text = summary("A#a\"b\\c").metrics(&Analysis::default());
        assert!(
            text.contains("tr_test_held_back{test=\"A%23a\\\"b\\\\c\"} 1\n"),
            "{text}"
        );
        assert!(
            text.ends_with("# EOF\n") && text.contains("tr_held_back 1\n"),
            "{text}"
        );
    }
}
