//! `tr diff` as a page: the verdict, the timelines of both sides over one time axis, the
//! differences. It has no script.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::functions::{Noisy, NONE};
use super::lanes::Axis;
use super::text::{command, difference, value, verdict};
use super::{percent, signed, Change, Diff, Figure, Gate, Judged, Run, What};
use crate::escape::html;
use crate::html::static_page;
use crate::units;

/// The page around the comparison.
const PAGE: &str = include_str!("../../web/src/diff.html");

impl Diff {
    /// One HTML file that needs nothing else.
    pub fn html(&self) -> String {
        let mut body = String::new();
        self.page_head(&mut body);
        self.page_timelines(&mut body);
        if self.same() {
            let _ = writeln!(
                body,
                "<p>No difference in any of {} processes.</p>",
                units::count(self.matched as u64)
            );
        } else {
            self.page_figures(&mut body);
            self.page_steps(&mut body);
            self.page_programs(&mut body);
            for what in What::ALL {
                self.page_changes(&mut body, what);
            }
        }
        self.page_machine(&mut body);
        self.page_flame(&mut body);
        self.page_functions(&mut body);
        let title = html(&command(&self.new));
        let verdict = html(&self.conclusion());
        static_page(&title, PAGE, &[("verdict", &verdict), ("body", &body)])
    }

    fn page_head(&self, out: &mut String) {
        if let Some(text) = self.explanation() {
            let _ = writeln!(out, "<p><b>{}</b></p>", html(&text));
        }
        if let Some(gate) = self.gate() {
            let failed = gate.as_ref().map_or(true, Gate::failed);
            let text = gate.map_or_else(|why| why, |gate| gate.text());
            let class = if failed { "bad" } else { "dim" };
            let _ = writeln!(out, "<p class=\"{class}\">{}</p>", html(&text));
        }
        for text in self.warnings() {
            let _ = writeln!(out, "<p class=\"bad\">{}</p>", html(&text));
        }
        let files = |runs: &[Run]| {
            let files: Vec<&str> = runs.iter().map(|run| run.file.as_str()).collect();
            html(&files.join(" · "))
        };
        let _ = writeln!(
            out,
            "<p class=\"dim\">{}<br>base {} · new {}<br>{}</p>",
            html(&command(&self.new)),
            files(&self.base),
            files(&self.new),
            html(&self.statistic())
        );
    }

    /// The timelines of the first run of each side, over the same time axis.
    fn page_timelines(&self, out: &mut String) {
        let (Some(base), Some(new)) = (self.base.first(), self.new.first()) else {
            return;
        };
        let axis = Axis::new([base, new]);
        if axis.is_empty() {
            return;
        }
        out.push_str("<section class=\"card\"><h2>Timelines <small>of the first run of each side, over one time axis: the critical path, then all processes that did not only wait for others</small></h2>\n");
        for (name, run) in [("base", base), ("new", new)] {
            let wall = run.figures.get(Figure::Wall).unwrap_or(0);
            let _ = writeln!(
                out,
                "<p><b>{name}</b> {} · {} processes</p>",
                units::time(wall),
                units::count(run.processes.len() as u64)
            );
            axis.path(out, name, run);
            let left_out = axis.timeline(out, name, run);
            axis.ticks(out);
            if left_out > 0 {
                let left_out = units::count(left_out as u64);
                let _ = writeln!(
                    out,
                    "<p class=\"dim\">{left_out} processes more at once than there are lanes</p>"
                );
            }
        }
        out.push_str("</section>\n");
    }

    fn page_figures(&self, out: &mut String) {
        let rows = self.whole.iter();
        let rows = rows.filter(|(_, judged)| judged.difference() != 0);
        let rows = rows.map(|(figure, judged)| {
            vec![
                figure.title().to_owned(),
                value(*figure, judged.base),
                value(*figure, judged.new),
                difference(*figure, judged),
                percent(judged),
                verdict(*figure, judged),
            ]
        });
        let titles = ["figure", "base", "new", "difference", "", ""];
        table(out, "The whole", &titles, rows);
    }

    fn page_steps(&self, out: &mut String) {
        let change = |judged: Option<&Judged>| {
            judged.map_or("?".into(), |judged| {
                signed(judged.difference(), units::time)
            })
        };
        let rows = self.steps.iter().take(self.ask.top).map(|step| {
            vec![
                step.name.clone(),
                units::time(step.wall.base),
                units::time(step.wall.new),
                change(Some(&step.wall)),
                change(step.on_cpu.as_ref()),
                change(step.path.as_ref()),
            ]
        });
        let titles = ["step", "base", "new", "wall", "CPU", "critical path"];
        table(out, "By step", &titles, rows);
    }

    fn page_programs(&self, out: &mut String) {
        let rows = self.programs.iter().take(self.ask.top).map(|program| {
            let path = program.path.as_ref().map_or(0, Judged::difference);
            let (before, now) = program.count;
            vec![
                program.name.clone(),
                units::time(program.on_cpu.base),
                units::time(program.on_cpu.new),
                signed(program.on_cpu.difference(), units::time),
                signed(path, units::time),
                format!("{} → {}", units::count(before), units::count(now)),
            ]
        });
        let titles = [
            "program",
            "CPU base",
            "new",
            "CPU",
            "critical path",
            "count",
        ];
        table(out, "By program", &titles, rows);
    }

    /// The machine, what the builds asked of it, and the system calls.
    fn page_machine(&self, out: &mut String) {
        let rows = self.loads.iter().map(|(load, judged)| {
            vec![
                load.title().to_owned(),
                units::time(judged.base),
                units::time(judged.new),
                signed(judged.difference(), units::time),
            ]
        });
        let titles = |what| [what, "base", "new", "difference"];
        table(out, "The machine", &titles("figure"), rows);
        let rows = self.demands.iter().map(|(demand, judged)| {
            vec![
                demand.title().to_owned(),
                demand.show(judged.base),
                demand.show(judged.new),
                demand.change(judged),
            ]
        });
        table(out, "Disks, network, memory", &titles("figure"), rows);
        let rows = self.calls.iter().take(self.ask.top).map(|call| {
            vec![
                call.name.clone(),
                units::time(call.time.base),
                units::time(call.time.new),
                signed(call.time.difference(), units::time),
            ]
        });
        table(out, "System calls", &titles("system call"), rows);
    }

    fn page_functions(&self, out: &mut String) {
        if self.functions.as_ref().is_some_and(Vec::is_empty) {
            let _ = writeln!(out, "<p class=\"dim\">{NONE}</p>");
        }
        let change = |it: &Noisy| match it.differs(self.ask.least) {
            true => signed(it.time.difference(), units::time),
            false => String::new(),
        };
        let rows = self
            .functions
            .iter()
            .flatten()
            .take(self.ask.top)
            .map(|it| {
                vec![
                    it.name.function.clone(),
                    it.program.clone(),
                    units::time(it.own.time.base),
                    units::time(it.own.time.new),
                    change(&it.own),
                    change(&it.total),
                ]
            });
        let titles = ["function", "program", "self base", "new", "self", "total"];
        table(
            out,
            "Functions that differ by more than the noise of their samples",
            &titles,
            rows,
        );
    }

    fn page_changes(&self, out: &mut String, what: What) {
        let all: Vec<&Change> = self.of_kind(what).collect();
        let wall = |side: &BTreeMap<Figure, u64>| {
            let wall = side.get(&Figure::Wall);
            wall.map(|ns| units::time(*ns)).unwrap_or_default()
        };
        let rows = all.iter().take(self.ask.top).map(|change| {
            let time = |figure| signed(change.value(figure), units::time);
            vec![
                change.label.clone(),
                wall(&change.base),
                wall(&change.new),
                time(Figure::Wall),
                time(Figure::OnCpu),
                time(Figure::CriticalPath),
            ]
        });
        let titles = ["process", "base", "new", "wall", "CPU", "critical path"];
        let title = units::top(what.name(), all.len().min(self.ask.top), all.len());
        table(out, &title, &titles, rows);
    }
}

/// A table, unless it has no rows.
fn table(out: &mut String, title: &str, titles: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let class = |column: usize| if column == 0 { "text" } else { "num" };
    let _ = write!(
        out,
        "<section class=\"card diff\"><h2>{}</h2><table><thead><tr>",
        html(title)
    );
    for (column, title) in titles.iter().enumerate() {
        let class = class(column);
        let _ = write!(out, "<th class=\"{class}\">{}</th>", html(title));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let (class, cell) = (class(column), html(cell));
            let _ = write!(out, "<td class=\"{class}\" title=\"{cell}\">{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></section>\n");
}
