//! `tr diff` as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::functions::{Noisy, NONE, RULE};
use super::{
    percent, signed, CallChange, Change, Demand, Diff, Figure, FunctionChange, Gate, Judged, Load,
    Program, Run, StepChange, Verdict, What,
};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::units;
use crate::words::RUN_QUEUE;

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

/// The difference and the spread, in words.
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

/// The commands of a side.
pub(super) fn command(runs: &[Run]) -> String {
    let mut all: Vec<&str> = runs.iter().map(|run| run.command.as_str()).collect();
    all.dedup();
    match all.as_slice() {
        [""] => "the recording".into(),
        [one] => (*one).to_owned(),
        _ => all.join("; "),
    }
}

/// The number before and after.
fn count((base, new): (u64, u64)) -> Cell {
    match base == new {
        true => Cell::Count(new),
        false => format!("{} → {}", units::count(base), units::count(new)).into(),
    }
}

impl Diff {
    /// Text for a terminal.
    pub fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let paint = match self.failure() {
            Some(_) => Paint::Bad,
            None => Paint::Bold,
        };
        style.wrapped(&mut out, paint, "", &self.conclusion());
        if let Some(text) = self.explanation() {
            style.wrapped(&mut out, Paint::Bold, "", &text);
        }
        self.header(&mut out, style);
        for text in self.warnings() {
            style.wrapped(&mut out, Paint::Bad, "! ", &text);
        }
        if self.same() {
            let _ = writeln!(out, "\nNo difference in any of {} processes.", self.matched);
        } else {
            self.figures(&mut out, style);
            for what in What::ALL {
                self.table(&mut out, what, style);
            }
            self.by_step(&mut out, style);
            self.by_program(&mut out, style);
        }
        self.by_load(&mut out, style);
        self.by_demand(&mut out, style);
        self.by_call(&mut out, style);
        self.by_function(&mut out, style);
        if let Some(gate) = self.gate() {
            let paint = Paint::bad_if(gate.as_ref().map_or(true, Gate::failed));
            let text = gate.map_or_else(|why| why, |gate| gate.text());
            out.push('\n');
            style.wrapped(&mut out, paint, "", &text);
        }
        out
    }

    fn header(&self, out: &mut String, style: &Style) {
        let (base, new) = (command(&self.base), command(&self.new));
        let title = if base == new {
            base
        } else {
            format!("{base} → {new}")
        };
        style.line(out, &units::shorten(&title, style.width));
        for (lead, runs) in [("base  ", &self.base), ("new   ", &self.new)] {
            let files: Vec<String> = runs.iter().map(|run| run.file.clone()).collect();
            style.items(out, lead, &files, " · ");
        }
        style.wrapped(out, Paint::Dim, "", &self.statistic());
    }

    fn figures(&self, out: &mut String, style: &Style) {
        type Row = (Figure, Judged);
        let name = |(figure, judged): &&Row| {
            let verdict = verdict(*figure, judged);
            match verdict.is_empty() {
                true => figure.title().to_owned(),
                false => format!("{}: {verdict}", figure.title()),
            }
        };
        let rows = self.whole.iter();
        let table = Table::new("the whole", name)
            .column("base", |(f, judged)| value(*f, judged.base).into())
            .column("new", |(f, judged)| value(*f, judged.new).into())
            .column("difference", |(f, judged)| difference(*f, judged).into())
            .column("", |(_, judged)| percent(judged).into())
            .text(
                rows.filter(|(_, judged)| judged.difference() != 0),
                style,
                0,
            );
        let _ = write!(out, "\n{table}");
    }

    fn table(&self, out: &mut String, what: What, style: &Style) {
        let all: Vec<&Change> = self.of_kind(what).collect();
        if all.is_empty() {
            return;
        }
        let shown = all.len().min(self.ask.top);
        let title = if all.len() == shown {
            format!("{} ({shown})", what.name())
        } else {
            units::top(what.name(), shown, all.len())
        };
        let both = matches!(what, What::Slower | What::Faster);
        let several = self.base.len() + self.new.len() > 2;
        let time =
            |figure| move |change: &&Change| Cell::Text(signed(change.value(figure), units::time));
        let wall = |side: &BTreeMap<Figure, u64>| {
            Cell::known(side.get(&Figure::Wall).copied(), Cell::Time)
        };
        let table = Table::new(title, |change: &&Change| change.label.clone())
            .column_if(both, "base", |change| wall(&change.base))
            .column_if(both, "new", |change| wall(&change.new))
            .column("wall", time(Figure::Wall))
            .column("CPU", time(Figure::OnCpu))
            .column_if(both, RUN_QUEUE, time(Figure::RunQueue))
            .column_if(both, "path", time(Figure::CriticalPath))
            .column_if(several && !both, "runs", |change| {
                let (n, of) = match what {
                    What::New => (change.runs.1, self.new.len()),
                    _ => (change.runs.0, self.base.len()),
                };
                Cell::Text(format!("{n} of {of}"))
            })
            .text(all.into_iter().take(shown), style, 0);
        let _ = write!(out, "\n{table}");
    }

    fn by_load(&self, out: &mut String, style: &Style) {
        if self.loads.is_empty() {
            return;
        }
        let table = Table::new("the machine", |(load, _): &&(Load, Judged)| {
            load.title().to_owned()
        })
        .column("base", |(_, judged)| Cell::Time(judged.base))
        .column("new", |(_, judged)| Cell::Time(judged.new))
        .column("difference", |(_, judged)| {
            signed(judged.difference(), units::time).into()
        })
        .text(&self.loads, style, 0);
        let _ = write!(out, "\n{table}");
    }

    fn by_demand(&self, out: &mut String, style: &Style) {
        if self.demands.is_empty() {
            return;
        }
        let table = Table::new(
            "disks, network, memory",
            |(demand, _): &&(Demand, Judged)| demand.title().to_owned(),
        )
        .column("base", |(demand, it)| demand.show(it.base).into())
        .column("new", |(demand, it)| demand.show(it.new).into())
        .column("difference", |(demand, it)| demand.change(it).into())
        .text(&self.demands, style, 0);
        let _ = write!(out, "\n{table}");
    }

    fn by_call(&self, out: &mut String, style: &Style) {
        if self.calls.is_empty() {
            return;
        }
        let shown = self.calls.len().min(self.ask.top);
        let title = units::top("system call", shown, self.calls.len());
        let table = Table::new(title, |call: &&CallChange| call.name.clone())
            .column("base", |call| Cell::Time(call.time.base))
            .column("new", |call| Cell::Time(call.time.new))
            .column("time", |call| {
                signed(call.time.difference(), units::time).into()
            })
            .column("calls", |call| count((call.count.base, call.count.new)))
            .text(self.calls.iter().take(shown), style, 0);
        let _ = write!(out, "\n{table}");
    }

    fn by_function(&self, out: &mut String, style: &Style) {
        let Some(functions) = &self.functions else {
            return;
        };
        out.push('\n');
        if functions.is_empty() {
            style.wrapped(out, Paint::Dim, "", NONE);
            return;
        }
        let least = self.ask.least;
        let change = move |it: &Noisy| match it.differs(least) {
            true => signed(it.time.difference(), units::time).into(),
            false => Cell::Empty,
        };
        // Both share the width beside the figures and a function's least.
        let room = (style.width.saturating_sub(60) / 2).clamp(8, 40);
        let shown = functions.len().min(self.ask.top);
        let title = units::top("function on a CPU", shown, functions.len());
        let table = Table::new(title, |it: &&FunctionChange| it.name.function.clone())
            .column("self base", |it| Cell::few(it.own.time.base, Cell::Time))
            .column("new", |it| Cell::few(it.own.time.new, Cell::Time))
            .column("self", move |it| change(&it.own))
            .column("total", move |it| change(&it.total))
            .words("program", move |it| {
                units::shorten(&it.program, room).into()
            })
            .words("in", move |it| units::shorten(&it.name.binary, room).into())
            .text(functions.iter().take(shown), style, 0);
        out.push_str(&table);
        style.wrapped(out, Paint::Dim, "", RULE);
    }

    fn by_step(&self, out: &mut String, style: &Style) {
        if self.steps.is_empty() {
            return;
        }
        let shown = self.steps.len().min(self.ask.top);
        let title = if self.steps.len() == shown {
            format!("by step ({shown})")
        } else {
            units::top("by step", shown, self.steps.len())
        };
        let change = |judged: Option<&Judged>| {
            Cell::known(judged, |judged| {
                signed(judged.difference(), units::time).into()
            })
        };
        let table = Table::new(title, |step: &&StepChange| step.name.clone())
            .column("base", |step| Cell::Time(step.wall.base))
            .column("new", |step| Cell::Time(step.wall.new))
            .column("wall", move |step| change(Some(&step.wall)))
            .column("CPU", move |step| change(step.on_cpu.as_ref()))
            .column(RUN_QUEUE, move |step| change(step.starved.as_ref()))
            .column("path", move |step| change(step.path.as_ref()))
            .column("count", |step| count(step.count))
            .text(self.steps.iter().take(shown), style, 0);
        let _ = write!(out, "\n{table}");
    }

    fn by_program(&self, out: &mut String, style: &Style) {
        if self.programs.is_empty() {
            return;
        }
        let name = |program: &&Program| match self.grown(program) {
            None => program.name.clone(),
            Some(it) => {
                let more = signed(it.own.time.difference(), units::time);
                format!("{}; {more} in {}", program.name, it.name.function)
            }
        };
        let table = Table::new("by program", name)
            .column("CPU base", |program| Cell::Time(program.on_cpu.base))
            .column("new", |program| Cell::Time(program.on_cpu.new))
            .column("CPU", |program| {
                signed(program.on_cpu.difference(), units::time).into()
            })
            .column("path", |program| {
                let path = program.path.as_ref().map_or(0, Judged::difference);
                signed(path, units::time).into()
            })
            .column("count", |program| count(program.count))
            .text(self.programs.iter().take(self.ask.top), style, 0);
        let _ = write!(out, "\n{table}");
    }
}
