//! For people.

use std::fmt::Write;

use super::{percent, signed, Change, Diff, Figure, Judged, Run, Verdict, What};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::units;

/// A value of a figure.
pub(super) fn value(figure: Figure, value: u64) -> String {
    match figure {
        Figure::Rss => units::bytes(value),
        _ => units::time(value),
    }
}

/// A difference of a figure.
pub(super) fn difference(figure: Figure, judged: &Judged) -> String {
    match figure {
        Figure::Rss => signed(judged.difference(), units::bytes),
        _ => signed(judged.difference(), units::time),
    }
}

/// What is known of the spread, in words.
pub(super) fn verdict(figure: Figure, judged: &Judged) -> String {
    let spread = judged.spread.filter(|spread| *spread > 0);
    let spread = spread.map(|spread| value(figure, spread));
    match (judged.verdict, judged.p, spread) {
        _ if judged.difference() == 0 => String::new(),
        (Verdict::Unknown, ..) => String::new(),
        (Verdict::Outside, None, None) => "outside the spread".into(),
        (Verdict::Inside, None, None) => "inside the spread".into(),
        (Verdict::Outside, Some(p), _) => format!("outside the spread, p = {p:.3}"),
        (Verdict::Inside, Some(p), _) => format!("inside the spread, p = {p:.2}"),
        (Verdict::Outside, None, Some(spread)) => format!("outside the spread ({spread})"),
        (Verdict::Inside, None, Some(spread)) => format!("inside the spread ({spread})"),
    }
}

/// One name for the commands of a side.
pub(super) fn command(runs: &[Run]) -> String {
    let mut all: Vec<&str> = runs.iter().map(|run| run.command.as_str()).collect();
    all.dedup();
    match all.as_slice() {
        [""] => "the recording".into(),
        [one] => (*one).to_owned(),
        _ => all.join("; "),
    }
}

impl Diff {
    /// For people.
    pub fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        self.header(&mut out, style);
        for text in self.warnings() {
            let text = units::shorten(&format!("! {text}"), style.width);
            let _ = writeln!(out, "{}", style.paint(Paint::Bad, &text));
        }
        if self.same() {
            let _ = writeln!(out, "\nNo difference in any of {} processes.", self.matched);
        } else {
            self.figures(&mut out, style);
            for (what, _) in What::ALL {
                self.table(&mut out, what, style);
            }
            self.by_program(&mut out, style);
        }
        match self.gate() {
            None => {}
            Some(Ok(gate)) => {
                let paint = if gate.failed() {
                    Paint::Bad
                } else {
                    Paint::Plain
                };
                let _ = writeln!(out, "\n{}", style.paint(paint, &gate.text()));
            }
            Some(Err(why)) => {
                let _ = writeln!(out, "\n{}", style.paint(Paint::Bad, &why));
            }
        }
        out
    }

    fn header(&self, out: &mut String, style: &Style) {
        let (base, new) = (command(&self.base), command(&self.new));
        let title = match base == new {
            true => base,
            false => format!("{base} → {new}"),
        };
        let short = units::shorten(&title, style.width);
        let _ = writeln!(out, "{}", style.paint(Paint::Bold, &short));
        for (lead, runs) in [("base  ", &self.base), ("new   ", &self.new)] {
            let files: Vec<String> = runs.iter().map(|run| run.file.clone()).collect();
            style.items(out, lead, &files, " · ");
        }
        let _ = writeln!(out, "{}", style.paint(Paint::Dim, &self.statistic()));
    }

    /// The whole recordings.
    fn figures(&self, out: &mut String, style: &Style) {
        let mut table = Table::new()
            .column("base", "")
            .column("new", "")
            .column("difference", "")
            .column("", "")
            .name("the whole", "");
        for (figure, judged) in &self.whole {
            if judged.difference() == 0 {
                continue;
            }
            let said = verdict(*figure, judged);
            let name = match said.is_empty() {
                true => figure.title().to_owned(),
                false => format!("{}: {said}", figure.title()),
            };
            let cells = vec![
                Cell::Text(value(*figure, judged.base)),
                Cell::Text(value(*figure, judged.new)),
                Cell::Text(difference(*figure, judged)),
                Cell::Text(percent(judged)),
            ];
            table.row(cells, name, Paint::Plain);
        }
        let _ = write!(out, "\n{}", table.text(style, 0));
    }

    fn table(&self, out: &mut String, what: What, style: &Style) {
        let all: Vec<&Change> = self.told(what).collect();
        if all.is_empty() {
            return;
        }
        let shown = all.len().min(self.ask.top);
        let title = match all.len() == shown {
            true => format!("{} ({shown})", what.name()),
            false => format!(
                "{} (top {shown} of {})",
                what.name(),
                units::count(all.len() as u64)
            ),
        };
        let both = matches!(what, What::Slower | What::Faster);
        let several = self.base.len() + self.new.len() > 2;
        let mut table = Table::new();
        if both {
            table = table.column("base", "").column("new", "");
        }
        table = table.column("wall", "").column("CPU", "");
        if both {
            table = table.column("wait cpu", "").column("path", "");
        }
        if several && !both {
            table = table.column("runs", "");
        }
        let mut table = table.name(title, "");
        for change in all.into_iter().take(shown) {
            let time = |figure| Cell::Text(signed(change.value(figure), units::time));
            let side = |side: &std::collections::BTreeMap<Figure, u64>| {
                Cell::known(side.get(&Figure::Wall).copied(), Cell::Time)
            };
            let mut cells = Vec::new();
            if both {
                cells.extend([side(&change.base), side(&change.new)]);
            }
            cells.extend([time(Figure::Wall), time(Figure::OnCpu)]);
            if both {
                cells.extend([time(Figure::RunQueue), time(Figure::CriticalPath)]);
            }
            if several && !both {
                let (n, of) = match what {
                    What::New => (change.runs.1, self.new.len()),
                    _ => (change.runs.0, self.base.len()),
                };
                cells.push(Cell::Text(format!("{n} of {of}")));
            }
            table.row(cells, change.label.clone(), Paint::Plain);
        }
        let _ = write!(out, "\n{}", table.text(style, 0));
    }

    fn by_program(&self, out: &mut String, style: &Style) {
        if self.programs.is_empty() {
            return;
        }
        let mut table = Table::new()
            .column("CPU base", "")
            .column("new", "")
            .column("CPU", "")
            .column("path", "")
            .column("count", "")
            .name("by program", "");
        for program in self.programs.iter().take(self.ask.top) {
            let path = program.path.as_ref().map_or(0, Judged::difference);
            let (base, new) = program.count;
            let count = match base == new {
                true => units::count(new),
                false => format!("{} → {}", units::count(base), units::count(new)),
            };
            let cells = vec![
                Cell::Time(program.on_cpu.base),
                Cell::Time(program.on_cpu.new),
                Cell::Text(signed(program.on_cpu.difference(), units::time)),
                Cell::Text(signed(path, units::time)),
                Cell::Text(count),
            ];
            table.row(cells, program.name.clone(), Paint::Plain);
        }
        let _ = write!(out, "\n{}", table.text(style, 0));
    }
}
