//! `tr pipeline` as a page: the jobs over the wall time, what each waited for, the path through them.
//! It has no script.

use std::fmt::Write;

use super::{Job, Link, Pipeline, SHOWN};
use crate::escape::html;
use crate::html::pictures::ticks;
use crate::html::static_page;
use crate::table::{Cell, Table};
use crate::units;

const PAGE: &str = include_str!("../../web/src/diff.html");
/// The height of a job's row and of its bar, in CSS pixels.
const ROW: usize = 26;
const BAR: usize = 18;
/// The colours of jobs on the path.
const COLORS: usize = 8;
/// A bar above this share of the axis has its name in it, in percent.
const NAMED: f64 = 18.0;

impl Pipeline {
    /// One HTML file that needs nothing else.
    pub fn html(&self) -> String {
        let path = self.path();
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
        self.picture(&mut body, &path);
        self.path_table(&mut body, &path);
        self.gains_table(&mut body, &path);
        self.jobs_table(&mut body, &path);
        let verdict = self.verdict(&path);
        let (title, verdict) = (html("pipeline"), html(&verdict));
        static_page(&title, PAGE, &[("verdict", &verdict), ("body", &body)])
    }

    fn verdict(&self, path: &[Link]) -> String {
        let names = path.iter().filter_map(|link| self.jobs.get(link.job));
        let names: Vec<&str> = names.map(|job| job.name.as_str()).collect();
        let waits = path.iter().map(|link| link.wait);
        let waits = waits.fold(0, u64::saturating_add);
        let waited = match waits > self.uncertain {
            true => format!("; {} of it between and before them", units::time(waits)),
            false => String::new(),
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

    fn picture(&self, out: &mut String, path: &[Link]) {
        out.push_str("<section class=\"card\"><h2>Jobs over wall time <small>coloured: on the path; hollow: waits from the end of the last job that it needs</small></h2>\n<p class=\"legend\">");
        for (class, name) in [
            ("p0", "on the path"),
            ("p8", "beside it"),
            ("hollow", "waits"),
            ("doubt", "uncertain by the clocks"),
        ] {
            let _ = write!(
                out,
                "<span class=\"key\"><i class=\"swatch {class}\"></i>{name}</span>"
            );
        }
        let _ = write!(
            out,
            "</p>\n<svg class=\"path-bar jobs\" height=\"{}\" role=\"img\" aria-label=\"Jobs over wall time\">",
            self.jobs.len() * ROW
        );
        for (link, next) in path.iter().zip(path.iter().skip(1)) {
            self.arrow(out, link.job, next.job);
        }
        for at in 0..self.jobs.len() {
            self.row(out, at, path);
        }
        out.push_str("</svg>\n");
        ticks(out, self.length);
        out.push_str("</section>\n");
    }

    /// A job: its wait, its bar, what its clock leaves in doubt, its name.
    fn row(&self, out: &mut String, at: usize, path: &[Link]) {
        let Some(job) = self.jobs.get(at) else { return };
        let top = at * ROW + (ROW - BAR) / 2;
        let from = job.start.saturating_sub(self.start());
        let wait = self.wait(at);
        let rank = path.iter().position(|link| link.job == at);
        let class = rank.map_or(COLORS, |rank| rank % COLORS);
        let needs = self.needs.get(at).into_iter().flatten();
        let needs: Vec<&str> = needs
            .filter_map(|need| Some(self.jobs.get(*need)?.name.as_str()))
            .collect();
        let needs = match needs.is_empty() {
            true => String::new(),
            false => format!(", after {}", needs.join(", ")),
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
        name(out, job, (x, width), top + BAR - 5);
        out.push_str("</g>\n");
    }

    /// From the end of a job on the path to the beginning of the next one.
    fn arrow(&self, out: &mut String, from: usize, to: usize) {
        let (Some(before), Some(after)) = (self.jobs.get(from), self.jobs.get(to)) else {
            return;
        };
        let place = |time: u64| self.percent(time.saturating_sub(self.start()));
        let middle = |at: usize| at * ROW + ROW / 2;
        let (x, y) = (place(before.end), middle(from));
        let (x2, y2) = (place(after.start), middle(to));
        let _ = writeln!(
            out,
            "<line x1=\"{x:.3}%\" y1=\"{y}\" x2=\"{x:.3}%\" y2=\"{y2}\"/>\
             <line x1=\"{x:.3}%\" y1=\"{y2}\" x2=\"{x2:.3}%\" y2=\"{y2}\"/>"
        );
    }

    fn path_table(&self, out: &mut String, path: &[Link]) {
        let job = |link: &Link| self.jobs.get(link.job);
        let table = Table::new("job", |link: &Link| {
            job(link).map_or(String::new(), |job| job.name.clone() + &job.notes())
        })
        .column("wait before", |link| Cell::Time(link.wait))
        .column("for a runner", |link| {
            Cell::Time(job(link).map_or(0, |job| job.queued))
        })
        .few()
        .shown(self.jobs.iter().any(|job| job.queued > 0))
        .column("length", |link| {
            job(link).map_or(Cell::Unknown, |job| Cell::Time(job.length()))
        })
        .column("of all", |link| {
            Cell::Share(job(link).map_or(0, Job::length), self.length)
        })
        .words("its longest steps", |link| {
            let steps = job(link).map_or(&[][..], |job| job.steps.as_slice());
            let steps = steps.iter().take(SHOWN);
            let steps = steps.map(|it| format!("{} {}", units::time(it.ns), it.name));
            Cell::from(steps.collect::<Vec<_>>().join(" · "))
        })
        .shown(self.jobs.iter().any(|job| !job.steps.is_empty()));
        section(
            out,
            "The path that set the time",
            &table.html(path.iter().copied()),
        );
    }

    fn gains_table(&self, out: &mut String, path: &[Link]) {
        let gains = self.gains(path);
        if gains.is_empty() {
            return;
        }
        let table = Table::new("if", |(_, what): &(u64, String)| what.clone())
            .column("saves", |(saved, _)| Cell::Time(*saved));
        section(out, "What would save time", &table.html(gains));
    }

    fn jobs_table(&self, out: &mut String, path: &[Link]) {
        let job = |at: &usize| self.jobs.get(*at);
        let table = Table::new("job", |at: &usize| {
            job(at).map_or(String::new(), |job| job.name.clone() + &job.notes())
        })
        .column("from", |at| {
            job(at).map_or(Cell::Unknown, |it| {
                Cell::At(it.start.saturating_sub(self.start()))
            })
        })
        .column("to", |at| {
            job(at).map_or(Cell::Unknown, |it| {
                Cell::At(it.end.saturating_sub(self.start()))
            })
        })
        .column("wait before", |at| Cell::Time(self.wait(*at)))
        .column("length", |at| {
            job(at).map_or(Cell::Unknown, |it| Cell::Time(it.length()))
        })
        .words("on the path", |at| {
            match path.iter().any(|link| link.job == *at) {
                true => Cell::from("yes"),
                false => Cell::Empty,
            }
        })
        .words("after", |at| {
            let needs = self.needs.get(*at).into_iter().flatten();
            let needs = needs.filter_map(|need| Some(job(need)?.name.as_str()));
            Cell::from(needs.collect::<Vec<_>>().join(", "))
        });
        section(out, "All jobs", &table.html(0..self.jobs.len()));
    }
}

/// A job's name: in its bar, or beside it where there is more room.
fn name(out: &mut String, job: &Job, (x, width): (f64, f64), y: usize) {
    let (at, shift, anchor) = match (width > NAMED, x + width < 60.0) {
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

fn section(out: &mut String, title: &str, table: &str) {
    let title = html(title);
    let _ = writeln!(
        out,
        "<section class=\"card diff\"><h2>{title}</h2>{table}</section>"
    );
}
