//! The first screen of a recording: the command, its duration and parallelism, the use of its time, failures,
//! and the quality of the trace.

use std::collections::HashMap;

use crate::status;
use serde_json::Value;
use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::Analysis;

use crate::ci;
use crate::encode::{self, ShownTimes, TimeColumn, AFTER_TIMES};
use crate::output::Report;
use crate::reports::{advice, critical_path, failed, path_shares};
use crate::size;
use crate::warnings;
use tr_advice::{advise, BuildAdvice};
use tr_insight::cpus::shares::CpuShares;
use tr_insight::path;
use tr_insight::processes::exit;
use tr_insight::processes::{label, who};
use tr_insight::recordings::ci::Ci;
use tr_insight::recordings::warnings::{is_blank, lost, recorded};
use tr_insight::resources::course;
use tr_insight::resources::memory;
use tr_insight::resources::servers;
use tr_insight::resources::size::RunnerSize;
use tr_insight::steps::Steps;
use tr_insight::verdicts::StepVerdicts;
use tr_insight::views::query;
use tr_insight::views::query::{By, GroupRow, Sort};
use tr_insight::views::view::View;
use tr_text::called::TR;
use tr_text::page::{BarRow, Bars, Page, Span};
use tr_text::phrase::Phrase;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table, Title};
use tr_text::words::{BLOCKED, ON_CPU, RUN_QUEUE, SLEEP, SLEEP_OR_BLOCKED, UNKNOWN};
use tr_text::{escape, units};

/// The number of lines that the first screen of `tr analyze` should not exceed, so that it fits on a small terminal.
const SCREEN: usize = 30;
/// The usual number of rows of the first screen's table. The table has more rows if the bars leave room, and never
/// fewer than `LEAST_ROWS`.
const ROWS: usize = 3;
const LEAST_ROWS: usize = 2;
/// The largest number of bars by which the first screen shows the critical path's time.
const BARS: usize = 5;
/// The largest number of changes to the build that the first screen suggests.
const FIRST_CHANGES: usize = 3;

pub struct Top<'a> {
    view: View<'a>,
    by: By,
    sort: Sort,
}

impl<'a> Top<'a> {
    pub fn new(view: &View<'a>) -> Top<'a> {
        Top {
            view: *view,
            by: view.ask.by.unwrap_or_default(),
            sort: view.ask.sort.unwrap_or_default(),
        }
    }

    /// The critical path for the first screen; `None` if the user's filters leave out processes, or if there
    /// is no path.
    fn path(&self) -> Option<CriticalPath> {
        let has_all = self.view.has_all();
        has_all.then(|| path::path_of(&self.view).ok())?
    }

    /// The first `most` rows of the first screen's table of processes or groups, and the number of all rows.
    fn rows(&self, most: usize) -> (Vec<GroupRow>, usize) {
        let View {
            recording,
            chosen,
            ask,
            ..
        } = self.view;
        let order = query::RowOrder {
            by: self.by,
            sort: self.sort,
            groups: &ask.groups,
        };
        query::first_rows(recording, chosen, order, most)
    }
}

impl Report for Top<'_> {
    fn page(&self, style: &Style) -> Page {
        // The warnings are printed above the first screen and take some of its lines.
        let warnings = warnings::page(self.view.recording);
        let screen = SCREEN.saturating_sub(warnings.height(style));
        let path = self.path();
        let advice = path.as_ref().map(|path| advise(&self.view, path, None));
        let advice = advice.unwrap_or_default();
        let mut above = Page::new();
        header(&mut above, &self.view);
        if self.is_empty(&mut above) {
            return above;
        }
        let judged = StepVerdicts::new(self.view.recording);
        let facts = ScreenFacts {
            path: path.as_ref(),
            advice: &advice,
            steps: &judged.steps,
            programs: self.programs(),
            size: RunnerSize::new(&self.view, advice.cpus),
        };
        failed::failed(&mut above, &self.view, &judged, style);
        advice::lines(&mut above, &advice, FIRST_CHANGES);
        above.blank();
        let middle = self.machine(&facts, style);
        let below = self.trace(&facts);
        let room = screen.saturating_sub(middle.height(style) + below.height(style));
        self.bars(&mut above, &facts, room, style);
        above.add(middle);
        above.blank();
        let lines = above.height(style) + below.height(style);
        self.table(&mut above, screen.saturating_sub(lines + 2), facts.steps);
        above.add(below);
        above
    }

    fn json(&self) -> Option<Value> {
        None
    }

    fn sheet(&self) -> Sheet {
        let (rows, _) = self.rows(self.view.ask.most());
        let table = self.columns(&rows);
        table.sheet(&rows)
    }
}

/// The facts that several parts of the first screen need.
struct ScreenFacts<'a> {
    path: Option<&'a CriticalPath>,
    advice: &'a BuildAdvice,
    steps: &'a Steps,
    /// The sums of the chosen processes by program, the longest CPU time first.
    programs: Vec<GroupRow>,
    size: Option<RunnerSize>,
}

impl Top<'_> {
    /// Whether the first screen ends after the header, because nothing is known about the recorded processes or none of
    /// them is chosen. The page then says so.
    fn is_empty(&self, out: &mut Page) -> bool {
        let View {
            analysis, chosen, ..
        } = self.view;
        if is_blank(analysis) {
            trace(out, &self.view);
            return true;
        }
        let matches_none = chosen.is_empty() && !analysis.processes.is_empty();
        if matches_none {
            let all = units::plural(analysis.totals.processes, "process", "processes");
            out.line(&format!("None of the {all} matches."));
        }
        matches_none
    }

    fn programs(&self) -> Vec<GroupRow> {
        let (recording, chosen) = (self.view.recording, self.view.chosen);
        query::rows(recording, chosen, By::Program, Sort::OnCpu, &[])
    }

    /// Prints how the build used the machine: the times of all processes, the CPUs, the memory and the servers.
    fn machine(&self, facts: &ScreenFacts<'_>, style: &Style) -> Page {
        let View {
            analysis, chosen, ..
        } = self.view;
        let mut out = Page::new();
        if !self.view.has_all() {
            let all = units::plural(analysis.totals.processes, "process", "processes");
            let chosen = units::count(chosen.len() as u64);
            let text = format!(
                "{chosen} of {all} match. The header and the next lines are of all processes:"
            );
            out.wrapped(Paint::Plain, "", &text);
        }
        all_processes(&mut out, analysis);
        let shares = CpuShares::of(analysis).words(analysis);
        let cpus = analysis.cpus_of_build().saturating_mul(100);
        let course = style.sparkline(&facts.advice.in_use, cpus);
        out.items(with_course("CPUs", course), shares);
        let memory = course::memory(analysis);
        let most = memory.iter().copied().max().unwrap_or(0);
        let course = style.sparkline(&memory, most);
        let lead = size::lead(facts.size.as_ref());
        out.items(with_course(lead, course), self.size_words(facts));
        out.items("Servers   ", servers::words(analysis, facts.path));
        out
    }

    fn size_words(&self, facts: &ScreenFacts<'_>) -> Vec<String> {
        let size = facts.size.as_ref();
        size.map_or_else(Vec::new, |size| size::words(&self.view, size))
    }

    /// Prints the lines below the table: facts that the screen does not have yet, the trace, and the next command.
    fn trace(&self, facts: &ScreenFacts<'_>) -> Page {
        let mut out = Page::new();
        // If the critical path is shown, its bars already name the programs. So the programs are not listed again.
        if self.by != By::Program && facts.path.is_none() {
            by_program(&mut out, &facts.programs);
        }
        if self.size_words(facts).is_empty() {
            peak(&mut out, &self.view);
        }
        trace(&mut out, &self.view);
        let has_advice = facts.advice.to_change().next().is_some();
        next(&mut out, &self.view, has_advice);
        out
    }

    /// Prints the bars of the critical path or, if there is no path, of the programs' CPU times. `room` is the number
    /// of the screen's lines for the page `out` and the table.
    fn bars(&self, out: &mut Page, facts: &ScreenFacts<'_>, room: usize, style: &Style) {
        let Some(path) = facts.path else {
            return bars(out, &facts.programs);
        };
        let analysis = self.view.analysis;
        let whole = path.length();
        let found = path_shares::PathShares::new(&self.view, facts.steps, path);
        let title = path::title(analysis);
        let title = format!("{title}: what set the build time");
        let columns = style.width.saturating_sub(units::width(&title) + 5);
        let length = format!("({})", found.length(whole, columns));
        let length = Span::new(Paint::Dim, length);
        out.spans([Span::new(Paint::Bold, title), "   ".into(), length]);
        let around = critical_path::around(analysis, path);
        // The bars get the lines of the screen that are left. All other lines are counted first: the texts above and
        // below, a blank line, the note on the time before and after the critical path (`around`), and a table with its
        // two titles.
        let others = out.height(style) + 4 + ROWS + usize::from(around.is_some());
        found.bars(out, whole, room.saturating_sub(others).clamp(2, BARS));
        if let Some(around) = around {
            out.wrapped(Paint::Dim, "  ", &around);
        }
    }
}

fn header(out: &mut Page, view: &View) {
    let analysis = view.analysis;
    let meta = &analysis.meta;
    let what = who::headline(meta);
    let (end, wall) = if is_blank(analysis) {
        (Some(exit::NO_END.into()), "?".into())
    } else {
        (exit::of_command(analysis), exit::wall(analysis))
    };
    let status = analysis.summary.as_ref().and_then(|summary| summary.status);
    let facts = end.into_iter().chain([wall]).map(Span::from);
    let mut facts: Vec<Span> = facts.collect();
    if let Some(status) = facts.first_mut().filter(|_| exit::failed(status)) {
        status.paint = Paint::Bad;
    }
    facts.extend(CpuShares::of(analysis).used(analysis).map(Span::from));
    out.head(Span::new(Paint::Bold, what), facts);
    if analysis.is_part() {
        let text = format!(
            "only from {} s to {} s of {}; the events are counted in the whole trace",
            units::at(view.since(analysis.start)),
            units::at(view.since(analysis.end)),
            units::time(analysis.whole)
        );
        out.painted(Paint::Dim, &text);
    }
}

/// The beginning of a line on the first screen: its name, such as `CPU`, and a strip that shows how the value
/// changed over time, if there is one.
fn with_course(name: &str, course: String) -> String {
    if course.is_empty() {
        format!("{name}   ")
    } else {
        format!("{name:<7}{course}   ")
    }
}

/// Prints the facts about the trace on the first screen: its file, date, kernel and size, and how it was recorded.
fn trace(out: &mut Page, view: &View) {
    let analysis = view.analysis;
    let meta = &analysis.meta;
    let events = units::count(analysis.events.total());
    let facts = [
        escape::raw(view.file.as_bytes()),
        units::date(meta.start_unix()),
        who::kernel(&analysis.meta),
        if is_blank(analysis) {
            "? processes".into()
        } else {
            units::plural(analysis.totals.processes, "process", "processes")
        },
        format!("{events} events, {}", lost(analysis)),
    ];
    let dim = |text: &str| Span::new(Paint::Dim, text);
    out.items(dim("Trace   "), facts.iter().map(|fact| dim(fact)));
    // A recording without `origin` was made by BPF programs in the kernel. Its times are the kernel's own, so the
    // screen need not say anything about the method.
    if analysis.meta.origin.is_some() {
        out.items("Recorded   ", recorded(analysis));
    }
    out.items("CI   ", ci::words(&Ci::new(meta)));
}

fn bars(out: &mut Page, programs: &[GroupRow]) {
    let whole: u64 = programs
        .iter()
        .map(|row| row.times.on_cpu)
        .fold(0, u64::saturating_add);
    if whole == 0 {
        return;
    }
    out.painted(Paint::Bold, "Where the CPU time went");
    let rows = programs.iter().take(6);
    let shown = rows.filter(|row| row.times.on_cpu.saturating_mul(200) >= whole);
    let row = |row: &GroupRow| BarRow::counted(row.name.clone(), row.times.on_cpu, row.count);
    out.bars(Bars {
        rows: shown.map(row).collect(),
        whole,
        name: 24,
        beside: 34,
    });
}

fn all_processes(out: &mut Page, analysis: &Analysis) {
    let times = &analysis.totals.times;
    if times.on_cpu == 0 {
        return;
    }
    let lead = if analysis.totals.threads > analysis.totals.processes {
        format!("All {} threads   ", units::count(analysis.totals.threads))
    } else {
        "All processes   ".to_owned()
    };
    let mut parts = vec![format!("{ON_CPU} {}", units::time(times.on_cpu))];
    for (what, ns) in [
        (RUN_QUEUE, times.run_queue),
        (BLOCKED, times.blocked),
        (SLEEP, times.sleep),
        (SLEEP_OR_BLOCKED, times.asleep_or_blocked),
        (UNKNOWN, times.unknown),
    ] {
        if ns > 0 {
            parts.push(format!("{what} {}", units::time(ns)));
        }
    }
    out.items(lead, &parts);
}

impl Top<'_> {
    /// Prints the first screen's table of processes or groups. Without `--top`, it has as many rows as fit
    /// into `room` lines, but not fewer than a minimum.
    fn table(&self, out: &mut Page, room: usize, steps: &Steps) {
        let most = match self.view.ask.top {
            Some(most) => most,
            // Rows that the user requested with `--by` need not fit on the screen.
            None if self.view.ask.by.is_some() => self.view.ask.rows(),
            None => room.clamp(LEAST_ROWS, self.view.ask.rows()),
        };
        let (mut shown, all) = self.rows(most);
        self.name_by_steps(&mut shown, steps);
        let mut title = Title::top(self.by.title(), shown.len(), all);
        let by = format!(" by {}", self.sort.title());
        title.figures = title.figures.map(|figures| figures + &by);
        out.table(&self.columns(&shown).titled(title), &shown);
    }

    /// Puts the name of a step before the name of a process in the table, if several processes have equal labels and
    /// belong to different steps. The shortened labels for people are compared: processes whose scripts differ only in
    /// a part that these labels leave out also need something that distinguishes them.
    fn name_by_steps(&self, rows: &mut [GroupRow], steps: &Steps) {
        let mut by_label: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            let Some(process) = row.process else { continue };
            let parts = label::parts(self.view.analysis.process(process));
            by_label.entry(parts).or_default().push(at);
        }
        let mut named: Vec<(usize, &Phrase)> = Vec::new();
        for places in by_label.into_values().filter(|places| places.len() > 1) {
            let same: Vec<&GroupRow> = places.iter().filter_map(|at| rows.get(*at)).collect();
            let found = self.distinguishing(&same, steps);
            let found = places.iter().copied().zip(found);
            named.extend(found.filter_map(|(at, step)| Some((at, step?))));
        }
        for (at, step) in named {
            if let Some(row) = rows.get_mut(at) {
                row.name = format!("{} › {}", step.short(), row.name);
            }
        }
    }

    /// For each of several rows with the same label, the name of a step that distinguishes the row from the others.
    /// This step is the innermost step around the row's process whose name is not also that of a step around the
    /// process of every other row. `None` if there is no such step.
    fn distinguishing<'s>(&self, rows: &[&GroupRow], steps: &'s Steps) -> Vec<Option<&'s Phrase>> {
        let around = |row: &&GroupRow| -> Vec<&'s Phrase> {
            let process = row.process;
            let innermost = process.and_then(|ix| steps.of_process(self.view.analysis, ix));
            let around = steps.around(innermost);
            let around = around.filter_map(|step| steps.list().get(step));
            around.map(|step| &step.name).collect()
        };
        let around: Vec<Vec<&Phrase>> = rows.iter().map(around).collect();
        let mut common = around.first().cloned().unwrap_or_default();
        for names in &around {
            common.retain(|name| names.contains(name));
        }
        let distinguishes = |name: &&Phrase| !common.contains(name);
        around
            .into_iter()
            .map(|names| names.into_iter().find(distinguishes))
            .collect()
    }

    /// The rows of the groups that `--by` requests, with their times, as JSON.
    pub(crate) fn json_rows(&self) -> Value {
        let (rows, _) = self.rows(self.view.ask.most());
        let table = self.columns(&rows);
        table.rows(&rows)
    }

    fn columns<'t>(&self, rows: &'t [GroupRow]) -> Table<'t, &'t GroupRow> {
        let Top { view, by, sort } = *self;
        let single = matches!(by, By::Process | By::Thread);
        // If the summed time of several threads exceeds the wall time, the table shows the number of threads.
        let parallel = |row: &GroupRow| row.threads > row.count && row.times.sum() > row.wall;
        let threads = by != By::Thread && rows.iter().any(parallel);
        let seen = ShownTimes {
            basis: view.analysis.basis(),
            on_cpu: true,
            waits: true,
            unknown: view.processes().any(|p| p.times.unknown > 0),
            spare: true,
        };
        let table = Table::new("", |row: &&GroupRow| row.name.clone())
            .named("name")
            .csv_only()
            .json_data("name", |row| row.whole_name())
            .fact("count", "count", |row| Cell::Count(row.count))
            .shown(!single)
            .place(AFTER_TIMES + 5)
            .fact("pid", "pid", |row| Cell::known(row.pid, Cell::Id))
            .shown(single)
            .place(AFTER_TIMES + 4)
            .data("start_ns", |row| row.start)
            .fact("wall", "wall_ns", |row| Cell::Time(row.wall))
            .place(1);
        let columns = [
            TimeColumn::OnCpu,
            TimeColumn::RunQueue,
            TimeColumn::Sleep,
            TimeColumn::Blocked,
            TimeColumn::Unknown,
            TimeColumn::AsleepOrBlocked,
        ];
        let table = encode::times(table, |row| Some(&row.times), seen, &columns)
            .fact("CPU tree", "tree_on_cpu_ns", |row| Cell::Time(row.tree_cpu))
            .shown(sort == Sort::TreeCpu)
            .place(AFTER_TIMES + 2)
            .fact("memory", "max_rss_bytes", |row| {
                Cell::known(row.max_rss, Cell::Bytes)
            })
            .shown(sort == Sort::Rss)
            .place(AFTER_TIMES + 1)
            .column("threads", |row| Cell::Count(row.threads))
            .shown(threads)
            .place(AFTER_TIMES);
        status::add_columns(table, "exit", |row| (row.status, row.alive))
            .shown(single)
            .place(AFTER_TIMES + 3)
            .paint(move |row| Paint::bad_if(single && exit::failed(row.status)))
    }
}

fn by_program(out: &mut Page, programs: &[GroupRow]) {
    let parts = programs.iter().take(8).map(|row| {
        let time = units::time(row.times.on_cpu);
        format!("{} {} × {time}", row.name, units::count(row.count))
    });
    out.items("by program   ", parts);
}

fn peak(out: &mut Page, view: &View) {
    if let Some((rss, process)) = memory::largest(view.processes()) {
        let lead = format!("Peak memory   {} in ", units::bytes(rss));
        out.named::<_, Span>([lead], label::label(process), 20, []);
    }
}

fn next(out: &mut Page, view: &View<'_>, advised: bool) {
    let report = match (advised, view.analysis.meta.root) {
        (true, _) => "advice",
        (false, Some(_)) => "critical-path",
        (false, None) => "tree",
    };
    let file = escape::raw(view.file.as_bytes());
    let text = format!("next: {TR} analyze {file} --report {report}");
    // The command stays on one line, however long it is, so that it can be pasted into a shell.
    out.painted(Paint::Dim, &text);
}
