//! The tables of `tr diff`. Each is declared once for text, Markdown and the page.

use super::explain;
use std::collections::BTreeMap;

use super::demands;
use super::functions::{FunctionChange, SampledDifference, RULE};
use super::machine::CallChange;
use super::processes::{Change, ChangeKind};
use super::programs::ProgramChange;
use super::run::Figure;
use super::spread::{percent, signed, Difference, PerSide, SpreadVerdict, Statistic};
use super::steps::StepChange;
use super::Diff;
use tr_insight::resources::demands::Demand;
use tr_insight::resources::loads::Load;
use tr_programs::program_name::ProgramName;
use tr_text::table::{Cell, Table, Title};
use tr_text::units;
use tr_text::words::RUN_QUEUE;

/// The title, the note and the row counts that are printed around a table of the comparison.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub title: &'static str,
    /// The title of the column with the rows' names, for example `process`; `None` for a table of figures, in
    /// which the table's own title takes this place.
    pub noun: Option<&'static str>,
    /// The number of rows of the table that are shown, after the limit that the user chose.
    pub shown: usize,
    /// The number of rows that the table would have without a limit.
    pub all: usize,
    /// Whether the table is always folded in a comment on a pull request, however few rows it has.
    pub folded: bool,
    pub note: Option<&'static str>,
}

impl Frame {
    /// The title of a table, with the numbers of shown and of all rows. A table of figures has no such numbers.
    pub fn counted(&self) -> Title {
        match self.noun {
            None => self.title.into(),
            Some(_) if self.shown == self.all => Title {
                noun: self.title.to_owned(),
                figures: Some(self.shown.to_string()),
            },
            Some(_) => Title::top(self.title, self.shown, self.all),
        }
    }
}

/// An output to which the tables of a comparison are written: text, Markdown or an HTML page.
pub(super) trait Medium {
    /// The largest width, in columns of text, to which words in the table of functions are shortened.
    fn room(&self) -> usize {
        usize::MAX
    }

    fn show<R>(&mut self, frame: Frame, table: Table<'_, R>, rows: Vec<R>);
}

/// The value of a figure of a build as text with its unit: bytes for memory, otherwise a time.
pub(super) fn value(figure: Figure, value: u64) -> String {
    match figure {
        Figure::Rss => units::bytes(value),
        _ => units::time(value),
    }
}

/// The difference between the base and the new runs in a figure of builds, as text with sign and unit.
pub(super) fn difference(figure: Figure, judged: &Difference) -> String {
    signed(judged.difference(), |size| value(figure, size))
}

/// The cell of a table with the verdict on a difference, such as `outside, p = 0.029`. `show` returns the text
/// of a value in the figure's unit.
fn verdict(judged: &Difference, show: impl Fn(u64) -> String) -> Cell {
    let Some(word) = judged.verdict.word() else {
        return Cell::Empty;
    };
    let limit = judged.limit.filter(|limit| *limit > 0);
    let text = match (judged.verdict, judged.p, limit) {
        (SpreadVerdict::Outside, Some(p), _) => format!("{word}, p = {p:.3}"),
        (_, Some(p), _) => format!("{word}, p = {p:.2}"),
        (_, None, Some(limit)) => format!("{word} ({})", show(limit)),
        (_, None, None) => word.to_owned(),
    };
    text.into()
}

fn count(both: PerSide<u64>) -> Cell {
    if both.base == both.new {
        Cell::Count(both.new)
    } else {
        let [base, new] = [both.base, both.new].map(units::count);
        format!("{base} → {new}").into()
    }
}

/// The text for a step in the table of failed or slower steps: whether it fails now or was delayed, and which part of
/// its wall time grew most.
fn verdict_of(step: &StepChange) -> String {
    let more = step.more.as_ref().map(|(part, it)| {
        let more = signed(it.difference(), units::time);
        format!("{} {more}", part.title())
    });
    let held = match (step.fails_now(), step.held.is_some()) {
        (true, true) => Some("failed, held back"),
        (true, false) => Some("failed"),
        (false, true) => Some("held back"),
        (false, false) => None,
    };
    let words: Vec<String> = held.map(str::to_owned).into_iter().chain(more).collect();
    words.join("; ")
}

fn time(judged: Option<&Difference>) -> Cell {
    Cell::known(judged, |judged| {
        signed(judged.difference(), units::time).into()
    })
}

/// Writes a table of the comparison to the output, unless the table has no rows. A table with a column of names has at
/// most as many rows as the user chose; a table of figures has all its rows.
fn show<R>(
    diff: &Diff,
    to: &mut impl Medium,
    frame: Frame,
    table: Table<'_, R>,
    rows: impl IntoIterator<Item = R>,
) {
    let mut rows: Vec<R> = rows.into_iter().collect();
    let all = rows.len();
    let table = match frame.noun {
        Some(_) => {
            rows.truncate(diff.ask.top);
            table
        }
        None => table.plain(),
    };
    if !rows.is_empty() {
        let frame = Frame {
            shown: rows.len(),
            all,
            ..frame
        };
        to.show(frame, table, rows);
    }
}

/// Writes all tables of differences between the builds to the output, beginning with the parts of the wall time.
pub(super) fn show_changes(diff: &Diff, to: &mut impl Medium) {
    show_parts(diff, to);
    show_rest(diff, to);
}

/// Writes the tables with the differences of whole recordings, processes, steps and programs to the output.
pub(super) fn show_rest(diff: &Diff, to: &mut impl Medium) {
    show_figures(diff, to);
    for kind in ChangeKind::ALL {
        show_processes(diff, to, kind);
    }
    show_steps(diff, to);
    show_verdicts(diff, to);
    show_programs(diff, to);
}

/// Writes the tables with the machine's load, the builds' use of disks, network and memory, and the system calls.
pub(super) fn show_machine(diff: &Diff, to: &mut impl Medium) {
    type LoadRow<'a> = &'a (Load, Difference);
    let table = Table::new("", |(load, _): &LoadRow<'_>| load.title().to_owned())
        .column("base", |(_, it)| Cell::Time(it.base))
        .column("new", |(_, it)| Cell::Time(it.new))
        .column("difference", |(_, it)| time(Some(it)));
    show(diff, to, frame("the machine", None), table, &diff.loads);
    type DemandRow<'a> = &'a (Demand, Difference);
    let table = Table::new("", |(demand, _): &DemandRow<'_>| demand.title().to_owned())
        .column("base", |(demand, it)| demand.show(it.base).into())
        .column("new", |(demand, it)| demand.show(it.new).into())
        .column("difference", |(demand, it)| {
            demands::change(*demand, it).into()
        });
    let title = frame("disks, network, memory", None);
    show(diff, to, title, table, &diff.demands);
    let table = Table::new("", |call: &&CallChange| call.name.clone())
        .column("base", |call| Cell::Time(call.time.base))
        .column("new", |call| Cell::Time(call.time.new))
        .column("time", |call| time(Some(&call.time)))
        .column("calls", |call| count(call.count.medians()));
    let title = frame("system calls", Some("system call"));
    show(diff, to, title, table, &diff.calls);
}

fn show_figures(diff: &Diff, to: &mut impl Medium) {
    type FigureRow<'a> = &'a (Figure, Difference);
    let table = Table::new("", |(figure, _): &FigureRow<'_>| figure.title().to_owned())
        .column("base", |(f, it)| value(*f, it.base).into())
        .column("new", |(f, it)| value(*f, it.new).into())
        .column("difference", |(f, it)| difference(*f, it).into())
        .column("", |(_, it)| percent(it).into())
        .words("spread", |(f, it)| verdict(it, |limit| value(*f, limit)))
        .shown(has_spread(diff));
    let rows = diff.whole.iter();
    let rows = rows.filter(|(_, judged)| judged.difference() != 0);
    show(
        diff,
        to,
        frame("wall time and sums of all threads", None),
        table,
        rows,
    );
}

/// Writes the table of the parts of the wall time that differ between the builds. The row `the rest` makes the rows up
/// to it add up to the difference of the wall time. Below it is the build's own time.
pub(super) fn show_parts(diff: &Diff, to: &mut impl Medium) {
    type PartRow = (&'static str, Option<Difference>, i128);
    let Some(wall) = diff.whole(Figure::Wall) else {
        return;
    };
    let parts = diff.causes.parts.iter();
    let parts = parts.map(|(part, it)| (part.title(), Some(*it), it.difference()));
    let all: u128 = parts.clone().map(|(.., by)| by.unsigned_abs()).sum();
    // A part with less than a hundredth of the sum of all differences is not worth a row.
    let parts: Vec<PartRow> = parts
        .filter(|(.., by)| by.unsigned_abs() * 100 >= all)
        .collect();
    if parts.is_empty() {
        return;
    }
    let shown: i128 = parts.iter().map(|(.., by)| by).sum();
    let rest = ("the rest", None, wall.difference() - shown);
    let parts = parts.into_iter();
    let alone = diff.causes.alone;
    let alone = alone.map(|alone| {
        (
            "wall time with the CPUs to itself",
            Some(alone),
            alone.difference(),
        )
    });
    let rows = parts.chain([rest]).chain(alone);
    let rows = rows.filter(|(.., difference)| *difference != 0);
    let side = |of: fn(&Difference) -> u64| {
        move |(_, part, _): &PartRow| part.map_or(Cell::Empty, |judged| Cell::Time(of(&judged)))
    };
    let table = Table::new("", |(name, ..): &PartRow| (*name).to_owned())
        .column("base", side(|judged| judged.base))
        .column("new", side(|judged| judged.new))
        .column("difference", |(_, _, by)| signed(*by, units::time).into())
        .words("spread", |(_, part, _)| {
            part.map_or(Cell::Empty, |judged| verdict(&judged, units::time))
        })
        .shown(has_spread(diff));
    show(
        diff,
        to,
        frame("wall time, by its critical path", None),
        table,
        rows,
    );
}

fn several(diff: &Diff) -> bool {
    diff.base.len() + diff.new.len() > 2
}

/// Whether the comparison has enough runs to know how much runs of one and the same build differ.
fn has_spread(diff: &Diff) -> bool {
    Statistic::of(diff.base.len(), diff.new.len()) != Statistic::None
}

fn show_processes(diff: &Diff, to: &mut impl Medium, kind: ChangeKind) {
    let both = matches!(kind, ChangeKind::Slower | ChangeKind::Faster);
    let time = |figure| {
        move |change: &&Change| {
            Cell::known(change.known(figure), |ns| signed(ns, units::time).into())
        }
    };
    let wall =
        |side: &BTreeMap<Figure, u64>| Cell::known(side.get(&Figure::Wall).copied(), Cell::Time);
    let table = Table::new("", |change: &&Change| change.label.short().to_owned())
        .column("base", |change| wall(&change.base))
        .shown(both)
        .column("new", |change| wall(&change.new))
        .shown(both)
        .column("wall", time(Figure::Wall))
        .column("CPU", time(Figure::OnCpu))
        .column(RUN_QUEUE, time(Figure::RunQueue))
        .shown(both)
        .column("path", time(Figure::CriticalPath))
        .shown(both)
        .column("runs", |change| {
            let (n, of) = match kind {
                ChangeKind::New => (change.runs.new, diff.new.len()),
                _ => (change.runs.base, diff.base.len()),
            };
            Cell::Text(format!("{n} of {of}"))
        })
        .shown(several(diff) && !both)
        .column("memory", |change| {
            let memory = change.judged.get(&Figure::Rss);
            memory.map_or(Cell::Empty, |bytes| difference(Figure::Rss, bytes).into())
        })
        .spare()
        .shown(both)
        .words("below", |change| {
            let above: Vec<String> = change.above.iter().map(ProgramName::to_string).collect();
            units::shorten(&above.join(" › "), 60).into()
        })
        .spare()
        .shown(diff.of_kind(kind).any(|change| !change.above.is_empty()));
    let title = Frame {
        folded: !both,
        ..frame(kind.name(), Some("process"))
    };
    show(diff, to, title, table, diff.of_kind(kind));
}

fn show_steps(diff: &Diff, to: &mut impl Medium) {
    let table = Table::new("", |step: &&StepChange| step.name.short().to_owned())
        .column("base", |step| Cell::Time(step.wall.base))
        .column("new", |step| Cell::Time(step.wall.new))
        .column("wall", |step| time(Some(&step.wall)))
        .column("CPU", |step| time(step.on_cpu.as_ref()))
        .column(RUN_QUEUE, |step| time(step.starved.as_ref()))
        .column("path", |step| time(step.path.as_ref()))
        .column("count", |step| count(step.count));
    show(diff, to, frame("by step", Some("step")), table, &diff.steps);
}

/// Writes the table of the steps that fail now or are slower, with the reasons, to the output.
fn show_verdicts(diff: &Diff, to: &mut impl Medium) {
    let is_shown = |step: &&StepChange| step.fails_now() || step.more.is_some();
    let rows = diff.steps.iter().filter(is_shown);
    let name = |step: &&StepChange| format!("{}: {}", step.name.short(), verdict_of(step));
    let table = Table::new("", name).column("wall", |step| time(Some(&step.wall)));
    let title = frame("failed or slower now", Some("step"));
    show(diff, to, title, table, rows);
}

fn show_programs(diff: &Diff, to: &mut impl Medium) {
    let name = |program: &&ProgramChange| match explain::grown(diff, program) {
        None => program.name.to_string(),
        Some(it) => {
            let more = signed(it.own.time.difference(), units::time);
            format!("{}; {more} in {}", program.name, it.name.function)
        }
    };
    let table = Table::new("", name)
        .column("CPU base", |program| Cell::Time(program.on_cpu.base))
        .column("new", |program| Cell::Time(program.on_cpu.new))
        .column("CPU", |program| time(Some(&program.on_cpu)))
        .column("path", |program| time(program.path.as_ref()))
        .column("count", |program| count(program.count));
    let title = frame("by program", Some("program"));
    show(diff, to, title, table, &diff.programs);
}

/// Writes to the output the table of the functions whose sampled CPU time differs between the base and the new runs.
pub(super) fn show_functions(diff: &Diff, to: &mut impl Medium) {
    let least = diff.ask.least;
    let change = move |noisy: &SampledDifference| {
        if noisy.differs(least) {
            time(Some(&noisy.time))
        } else {
            Cell::Empty
        }
    };
    let room = to.room();
    let table = Table::new("", |function: &&FunctionChange| {
        function.name.function.clone()
    })
    .column("diff base", |function| Cell::Time(function.own.time.base))
    .few()
    .column("new", |function| Cell::Time(function.own.time.new))
    .few()
    .column("diff", move |function| change(&function.own))
    .column("total", move |function| change(&function.total))
    .words("program", move |function| {
        units::shorten(&function.program.to_string(), room).into()
    })
    .words("in", move |function| {
        units::shorten(&function.name.binary, room).into()
    });
    let title = Frame {
        note: Some(RULE),
        ..frame("functions on a CPU", Some("function"))
    };
    show(diff, to, title, table, diff.functions.iter().flatten());
}

fn frame(title: &'static str, noun: Option<&'static str>) -> Frame {
    Frame {
        title,
        noun,
        shown: 0,
        all: 0,
        folded: noun.is_some_and(|noun| noun != "process"),
        note: None,
    }
}
