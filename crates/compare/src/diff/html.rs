//! Writes `tr diff` as a page: the verdict, the runs, the parts of the difference, the timelines of both
//! sides over one time axis, then the tables. The page has no script.

use super::{commands, conclusion, flame, gate, run, tables, warnings};
use std::fmt::Write;

use super::commands::command;
use super::functions::NO_DIFFERENCE;
use super::lanes::Axis;
use super::tables::{Frame, Medium};
use super::{Diff, Figure, Run};
use tr_report::html::verdict_page;
use tr_text::escape::html;
use tr_text::pictures::{card, ticks};
use tr_text::table::Table;
use tr_text::units;
use tr_text::words::STATES;

struct Page<'a>(&'a mut String);

impl Medium for Page<'_> {
    fn show<R>(&mut self, frame: Frame, table: Table<'_, R>, rows: Vec<R>) {
        let title = units::sentence(&frame.counted().to_string());
        let table = table
            .titled(frame.noun.unwrap_or("figure"))
            .grid(rows)
            .html();
        let note = frame.note.map_or(String::new(), |note| {
            format!("<p class=\"dim\">{}</p>", html(note))
        });
        card(self.0, &title, &(table + &note));
    }
}

/// The comparison of builds as one HTML page that loads nothing else.
pub fn render(diff: &Diff) -> String {
    let mut body = String::new();
    page_head(diff, &mut body);
    let unchanged = diff.unchanged();
    match &unchanged {
        Some(text) => body += &format!("<p>{text}</p>\n"),
        None => tables::show_parts(diff, &mut Page(&mut body)),
    }
    page_timelines(diff, &mut body);
    if unchanged.is_none() {
        tables::show_rest(diff, &mut Page(&mut body));
    }
    tables::show_machine(diff, &mut Page(&mut body));
    flame::flame_card(diff, &mut body);
    if diff.functions.as_ref().is_some_and(Vec::is_empty) {
        let _ = writeln!(body, "<p class=\"dim\">{NO_DIFFERENCE}</p>");
    }
    tables::show_functions(diff, &mut Page(&mut body));
    let title = html(&commands::title(diff, usize::MAX));
    let verdict = html(conclusion::sentence(diff).short());
    verdict_page(&title, &verdict, &body)
}

fn page_head(diff: &Diff, out: &mut String) {
    if let Some(text) = conclusion::explanation(diff) {
        let _ = writeln!(out, "<p><b>{}</b></p>", html(&text));
    }
    if let Some((text, failed)) = gate::gate_words(diff) {
        let class = if failed { "bad" } else { "dim" };
        let _ = writeln!(out, "<p class=\"{class}\">{}</p>", html(&text));
    }
    for text in warnings::warnings(diff) {
        let _ = writeln!(out, "<p class=\"bad\">{}</p>", html(&text));
    }
    // If both sides have the same command, it is printed once.
    let (base, new) = (command(&diff.base), command(&diff.new));
    let base = if base == new {
        String::new()
    } else {
        format!("<br>{}", html(&base))
    };
    let middle = run::middle(&diff.base, &diff.new);
    let _ = writeln!(
        out,
        "<p class=\"dim runs\">base {}{}<br>new {}<br>{}<br>{}</p>",
        runs(&diff.base, middle.map(|(base, _)| base)),
        base,
        runs(&diff.new, middle.map(|(_, new)| new)),
        html(&new),
        html(&warnings::statistic(diff))
    );
}

/// HTML that lists the compared runs of one side (base or new) with their wall times. If the side has several runs,
/// `middle`, the run that represents the side in the pictures, is bold.
fn runs(runs: &[Run], middle: Option<&Run>) -> String {
    let middle = middle.filter(|_| runs.len() > 1);
    let shown = runs.iter().map(|run| {
        let wall = run.figures.get(Figure::Wall);
        let wall = wall.map_or(String::new(), |wall| format!(" {}", units::time(wall)));
        let shown = linked(run) + &wall;
        if middle.is_some_and(|middle| std::ptr::eq(middle, run)) {
            format!("<b>{shown}</b>")
        } else {
            shown
        }
    });
    shown.collect::<Vec<_>>().join(" · ")
}

/// The name of a run's recording in HTML, as a link to the run's report or recording if the address is known.
fn linked(run: &Run) -> String {
    let name = html(&run.file);
    match &run.link {
        Some(link) => format!("<a href=\"{}\">{name}</a>", html(link)),
        None => name,
    }
}

/// Adds two timelines with one time axis to the page. Each timeline shows one run of a side: the run whose wall time is
/// nearest to the side's median.
fn page_timelines(diff: &Diff, out: &mut String) {
    let Some((base, new)) = run::middle(&diff.base, &diff.new) else {
        return;
    };
    let axis = Axis::new([base, new]);
    if axis.whole == 0 {
        return;
    }
    let whose = if diff.base.len() + diff.new.len() > 2 {
        "of the run of each side that is nearest to its median, "
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "<section class=\"card\"><h2>Timelines <small>{whose}over one time axis: the critical path, then all \
         processes that did not only wait for others</small></h2>"
    );
    out.push_str("<p class=\"legend programs\">");
    axis.legend(out);
    out.push_str("</p>\n<p class=\"legend\">shares along the lower edge:");
    for (state, name) in STATES.iter().enumerate() {
        let _ = write!(
            out,
            "<span class=\"key\"><i class=\"swatch s{state}\"></i>{name}</span>"
        );
    }
    out.push_str("</p>\n");
    for (name, run) in [("base", base), ("new", new)] {
        let wall = run.figures.get(Figure::Wall).unwrap_or(0);
        let _ = writeln!(
            out,
            "<p><b>{name}</b> {} · {} · {}</p>",
            linked(run),
            units::time(wall),
            units::plural(run.processes.len() as u64, "process", "processes")
        );
        axis.path(out, name, run);
        let left_out = axis.timeline(out, name, run);
        ticks(out, axis.whole);
        if left_out > 0 {
            let left_out = units::plural(left_out as u64, "process", "processes");
            let _ = writeln!(
                out,
                "<p class=\"dim\">{left_out} more at once than there are lanes</p>"
            );
        }
    }
    out.push_str("</section>\n");
}

#[cfg(test)]
#[path = "tests/html.rs"]
mod tests;
