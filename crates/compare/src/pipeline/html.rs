//! Writes `tr pipeline` as a page: the jobs over the wall time, what each waited for, and the chain of jobs
//! that set the pipeline's time. The page has no script.

use std::fmt::Write;

use super::{Gain, Job, Pipeline, SHOWN_STEPS};
use tr_report::html::verdict_page;
use tr_text::escape::html;
use tr_text::pictures::{card, ticks};
use tr_text::table::{Cell, Table};
use tr_text::units;

/// The height of a job's row on the page of a pipeline, in CSS pixels.
const ROW: usize = 26;
/// The height of a job's bar on the page of a pipeline, in CSS pixels.
const BAR: usize = 18;
/// The number of different colours for the jobs on the chain that sets the pipeline's time.
const COLORS: usize = 8;
/// A width in percent of the time axis: a job's name is written into its bar only if the bar is wider.
const NAMED_WIDTH: f64 = 18.0;

/// A job of the pipeline, and the number of the row in which the page draws it.
#[derive(Clone, Copy)]
struct JobRow<'a> {
    row: usize,
    job: &'a Job,
}

impl Pipeline {
    /// The pipeline of CI jobs as one HTML page that loads nothing else.
    pub fn html(&self) -> String {
        let mut body = String::new();
        let _ = writeln!(
            body,
            "<p class=\"dim\">{}<br>{}</p>",
            html(&self.sum()),
            html(self.basis())
        );
        for text in &self.warnings {
            let _ = writeln!(body, "<p class=\"bad\">{}</p>", html(text));
        }
        self.picture(&mut body);
        self.path_table(&mut body);
        self.gains_table(&mut body);
        self.jobs_table(&mut body);
        let verdict = html(&self.verdict());
        verdict_page("pipeline", &verdict, &body)
    }

    fn verdict(&self) -> String {
        let names: Vec<&str> = self.path().map(|job| job.name.as_str()).collect();
        let waits = self.path().map(|job| self.wait(job));
        let waits = waits.fold(0, u64::saturating_add);
        let waited = if waits > self.uncertain {
            format!("; {} of it between and before them", units::time(waits))
        } else {
            String::new()
        };
        format!(
            "{} set by {}{waited}",
            units::time(self.length),
            names.join(" → ")
        )
    }

    fn percent(&self, ns: u64) -> f64 {
        ns as f64 * 100.0 / self.length.max(1) as f64
    }

    fn picture(&self, out: &mut String) {
        out.push_str("<section class=\"card\"><h2>Jobs over wall time <small>coloured: on the path; hollow: waits from the end of the last job that it needs</small></h2>\n<p class=\"legend\">");
        // The legend explains only those signs that the picture has.
        let is_beside = self.jobs.iter().any(|job| job.saved.is_none());
        let waits = self.jobs.iter().any(|job| self.wait(job) > 0);
        // The entry of the legend for jobs on the path shows up to three of their colours.
        let on_path = self.jobs.iter().filter(|job| job.saved.is_some()).count();
        out.push_str("<span class=\"key\">");
        for color in 0..on_path.min(3) {
            let _ = write!(out, "<i class=\"swatch path-job p{color}\"></i>");
        }
        out.push_str("on the path</span>");
        for (class, name, is_shown) in [
            ("job-beside", "beside it", is_beside),
            ("hollow", "waits", waits),
            ("doubt", "uncertain by the clocks", self.uncertain > 0),
        ] {
            if is_shown {
                let _ = write!(
                    out,
                    "<span class=\"key\"><i class=\"swatch {class}\"></i>{name}</span>"
                );
            }
        }
        let _ = write!(
            out,
            "</p>\n<svg class=\"path-bar jobs\" height=\"{}\" role=\"img\" aria-label=\"Jobs over wall time\">",
            self.jobs.len() * ROW
        );
        let jobs = || self.jobs.iter().enumerate();
        let path = || jobs().filter(|(_, job)| job.saved.is_some());
        let rows = || path().map(|(row, job)| JobRow { row, job });
        for (before, after) in rows().zip(rows().skip(1)) {
            self.arrow(out, before, after);
        }
        for (at, job) in jobs() {
            let rank = path().position(|(on_path, _)| on_path == at);
            self.row(out, at * ROW, job, rank);
        }
        out.push_str("</svg>\n");
        ticks(out, self.length);
        out.push_str("</section>\n");
    }

    /// Draws the row of a job on the page of a pipeline: the wait before it, its bar with the uncertainty of both
    /// ends, and its name.
    fn row(&self, out: &mut String, top: usize, job: &Job, rank: Option<usize>) {
        let top = top + (ROW - BAR) / 2;
        let from = job.start.saturating_sub(self.start);
        let wait = self.wait(job);
        let class = rank.map_or(COLORS, |rank| rank % COLORS);
        let needs: Vec<&str> = self.needs(job).collect();
        let needs = if needs.is_empty() {
            String::new()
        } else {
            format!(", after {}", needs.join(", "))
        };
        let title = html(&format!(
            "{}{}: {} from {} s{needs}",
            job.name,
            job.notes(),
            units::time(job.length()),
            units::at(from),
        ));
        let (x, width) = (self.percent(from), self.percent(job.length()).max(0.1));
        let _ = write!(out, "<g><title>{title}</title>");
        if wait > 0 {
            let (x, width) = (self.percent(from - wait.min(from)), self.percent(wait));
            let _ = write!(
                out,
                "<rect class=\"hollow\" x=\"{x:.3}%\" y=\"{}\" width=\"{width:.3}%\" height=\"{}\"/>",
                top + 4,
                BAR - 8
            );
        }
        let _ = write!(
            out,
            "<rect class=\"p{class}\" x=\"{x:.3}%\" y=\"{top}\" width=\"{width:.3}%\" height=\"{BAR}\"/>"
        );
        for edge in [from, from.saturating_add(job.length())] {
            let low = edge.saturating_sub(self.uncertain);
            let high = edge.saturating_add(self.uncertain).min(self.length);
            let _ = write!(
                out,
                "<rect class=\"doubt\" x=\"{:.3}%\" y=\"{}\" width=\"{:.3}%\" height=\"3\"/>",
                self.percent(low),
                top + BAR - 3,
                self.percent(high - low)
            );
        }
        name(out, job, x, width, top + BAR - 5);
        out.push_str("</g>\n");
    }

    /// Draws an angled line from the end of one job to the start of the job that waited for it.
    fn arrow(&self, out: &mut String, before: JobRow<'_>, after: JobRow<'_>) {
        let place = |time: u64| self.percent(time.saturating_sub(self.start));
        let middle = |at: usize| at * ROW + ROW / 2;
        let (x, y) = (place(before.job.end), middle(before.row));
        let (x2, y2) = (place(after.job.start), middle(after.row));
        let _ = writeln!(
            out,
            "<line x1=\"{x:.3}%\" y1=\"{y}\" x2=\"{x:.3}%\" y2=\"{y2}\"/>\
             <line x1=\"{x:.3}%\" y1=\"{y2}\" x2=\"{x2:.3}%\" y2=\"{y2}\"/>"
        );
    }

    fn path_table(&self, out: &mut String) {
        let table = Table::new("job", named)
            .column("wait before", |job| Cell::Time(self.wait(job)))
            .column("for a runner", |job| Cell::Time(job.queued))
            .few()
            .shown(self.jobs.iter().any(|job| job.queued > 0))
            .column("length", |job| Cell::Time(job.length()))
            .column("of all", |job| Cell::Share(job.length(), self.length))
            .words("its longest steps", |job| {
                let steps = job.steps.iter().take(SHOWN_STEPS);
                let steps =
                    steps.map(|step| format!("{} {}", units::time(step.ns), step.name.short()));
                Cell::from(steps.collect::<Vec<_>>().join(" · "))
            })
            .shown(self.jobs.iter().any(|job| !job.steps.is_empty()));
        card(
            out,
            "The path that set the time",
            &table.grid(self.path()).html(),
        );
    }

    fn gains_table(&self, out: &mut String) {
        let gains = self.gains();
        if gains.is_empty() {
            return;
        }
        let table = Table::new("if", |gain: &Gain| gain.change.clone())
            .column("saves", |gain| Cell::Time(gain.saved));
        card(out, "What would save time", &table.grid(gains).html());
    }

    fn jobs_table(&self, out: &mut String) {
        let at = |time: u64| Cell::from(units::time(time.saturating_sub(self.start)));
        let table = Table::new("job", named)
            .column("from", |job| at(job.start))
            .column("to", |job| at(job.end))
            .column("wait before", |job| Cell::Time(self.wait(job)))
            .column("length", |job| Cell::Time(job.length()))
            .words("on the path", |job| match job.saved {
                Some(_) => Cell::from("yes"),
                None => Cell::Empty,
            })
            .words("after", |job| {
                Cell::from(self.needs(job).collect::<Vec<_>>().join(", "))
            });
        card(out, "All jobs", &table.grid(&self.jobs).html());
    }
}

fn named(job: &&Job) -> String {
    job.name.clone() + &job.notes()
}

/// Writes the name of a job into its bar on the page of a pipeline. If the bar is too narrow, the name stands to the
/// right of a bar that ends in the first 60 % of the time axis, and to the left of any other.
fn name(out: &mut String, job: &Job, x: f64, width: f64, y: usize) {
    let (at, shift, anchor) = match (width > NAMED_WIDTH, x + width < 60.0) {
        (true, _) => (x, 4, "start"),
        (false, true) => (x + width, 4, "start"),
        (false, false) => (x, -4, "end"),
    };
    let _ = write!(
        out,
        "<text x=\"{at:.3}%\" dx=\"{shift}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
        html(&job.name)
    );
}
