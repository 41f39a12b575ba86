//! Steps, targets, tests and marks: for each the use of its time.

use std::cmp::Reverse;

use serde_json::{json, Value};
use tr_analyze::kinds::{ByKind, Kind as Time};

use crate::called::TR;
use crate::encode::{self, with};
use crate::exit::{self, Exit};
use crate::facts::path;
use crate::query::Sort;
use crate::reports::tree::Levels;
use crate::sort::Rows;
use crate::steps::times::{AllTimes, StepTimes};
use crate::steps::{Kind, Step, StepIx, Steps};
use crate::style::{Paint, Style};
use crate::table::{csv, Cell, Table};
use crate::view::{Report, View};
use crate::words::{OTHER_WAITS, RUN_QUEUE};
use crate::{kinds, units};

/// The default number of lines.
const LINES: usize = 30;

/// The number of tests that have a sentence of their own.
const SLOWEST: usize = 3;

pub struct StepsReport<'a> {
    view: View<'a>,
    steps: Steps,
    times: AllTimes,
    /// The steps that the filters leave, and those around them.
    kept: Vec<bool>,
    /// The kept steps inside each step, in order; the last list has the outermost.
    inside: Vec<Vec<StepIx>>,
}

impl<'a> StepsReport<'a> {
    /// The steps of the chosen processes.
    pub fn new(view: &View<'a>) -> StepsReport<'a> {
        let analysis = view.analysis;
        let steps = Steps::new(analysis);
        let path = path::path_of(view);
        let segments = path.map_or(Vec::new(), |path| path.segments);
        let times = AllTimes::new(analysis, &steps, &segments);
        let mut report = StepsReport {
            view: *view,
            kept: Vec::new(),
            inside: vec![Vec::new(); steps.list().len() + 1],
            steps,
            times,
        };
        report.keep();
        report.arrange();
        report
    }

    fn all(&self) -> impl Iterator<Item = (StepIx, &Step, &StepTimes)> {
        let all = self.steps.list().iter().zip(&self.times.steps).enumerate();
        all.map(|(at, (step, times))| (at, step, times))
    }

    fn is_kept(&self, at: StepIx) -> bool {
        self.kept.get(at) == Some(&true)
    }

    fn keep(&mut self) {
        let View {
            analysis,
            chosen,
            ask,
            ..
        } = self.view;
        // A step without a process has no part in a choice of processes.
        let everything = chosen.len() == analysis.processes.len() || ask.step.is_some();
        let mut is_chosen = vec![everything; analysis.processes.len()];
        for at in chosen {
            is_chosen.get_mut(*at).into_iter().for_each(|it| *it = true);
        }
        let list = self.steps.list();
        let is_named = |at: StepIx, name: &str| {
            let mut around = self.steps.around(Some(at)).filter_map(|at| list.get(at));
            around.any(|step| step.name == name)
        };
        let wanted = |at: StepIx, step: &Step| {
            let process = step
                .process
                .map(|ix| is_chosen.get(ix.0 as usize) == Some(&true));
            process.unwrap_or(everything)
                && ask.step.as_ref().is_none_or(|name| is_named(at, name))
                && step.wall() >= ask.min
                && (!ask.failed || step.failed())
        };
        let mut kept = vec![false; self.steps.list().len()];
        for (at, ..) in self.all().filter(|(at, step, _)| wanted(*at, step)) {
            for around in self.steps.around(Some(at)) {
                match kept.get_mut(around) {
                    Some(kept) if !*kept => *kept = true,
                    _ => break,
                }
            }
        }
        self.kept = kept;
    }

    /// The figure of `--sort`; by default the wall time.
    fn key(&self, at: StepIx) -> u64 {
        let Some((step, times)) = self.steps.list().get(at).zip(self.times.steps.get(at)) else {
            return 0;
        };
        let of = times.times.unwrap_or_default();
        let spent = times.spent.unwrap_or_default();
        match self.view.ask.sort.unwrap_or(Sort::Wall) {
            Sort::OnCpu | Sort::TreeCpu => of.on_cpu,
            Sort::OffCpu => kinds::waited(&spent).0,
            Sort::RunQueue => spent.of(Time::RunQueue),
            Sort::Sleep => spent.of(Time::Sleep),
            Sort::Blocked => spent.of(Time::Blocked),
            Sort::Unknown => spent.of(Time::Unknown),
            Sort::Wall | Sort::Rss | Sort::Start | Sort::Pid => step.wall(),
        }
    }

    /// Puts the kept steps into the lists of those around them: by start, or by `--sort`.
    fn arrange(&mut self) {
        let by_start = matches!(self.view.ask.sort, None | Some(Sort::Start | Sort::Pid));
        let kept = self.all().filter(|(at, ..)| self.is_kept(*at));
        let mut order: Vec<(Reverse<u64>, _, StepIx, usize)> = kept
            .map(|(at, step, _)| {
                let key = if by_start { 0 } else { self.key(at) };
                let last = self.inside.len() - 1;
                (Reverse(key), step.from, at, step.parent.unwrap_or(last))
            })
            .collect();
        order.sort_unstable();
        for (.., at, parent) in order {
            self.inside
                .get_mut(parent)
                .into_iter()
                .for_each(|list| list.push(at));
        }
    }

    fn inside(&self, at: Option<StepIx>) -> &[StepIx] {
        let outermost = self.inside.len() - 1;
        let list = self.inside.get(at.unwrap_or(outermost));
        list.map(Vec::as_slice).unwrap_or_default()
    }

    /// All kept steps, depth first.
    fn ordered(&self) -> Vec<(StepIx, &Step, &StepTimes)> {
        let mut out = Vec::new();
        let mut open: Vec<StepIx> = self.inside(None).iter().rev().copied().collect();
        while let Some(at) = open.pop() {
            let found = self.steps.list().get(at).zip(self.times.steps.get(at));
            out.extend(found.map(|(step, times)| (at, step, times)));
            open.extend(self.inside(Some(at)).iter().rev());
        }
        out
    }

    /// The steps that have a line: the `most` first ones by `--sort`, and those around them.
    fn shown(&self, most: usize) -> Vec<bool> {
        let mut order: Vec<StepIx> = (0..self.kept.len())
            .filter(|at| self.is_kept(*at))
            .collect();
        order.order_by_key(|at| (Reverse(self.key(*at)), *at));
        let mut shown = vec![false; self.kept.len()];
        let mut count = 0;
        for at in order {
            let new = self.steps.around(Some(at));
            let new = new.take_while(|at| shown.get(*at) == Some(&false));
            let new: Vec<StepIx> = new.collect();
            if count + new.len() > most {
                break;
            }
            count += new.len();
            for at in new {
                shown.get_mut(at).into_iter().for_each(|it| *it = true);
            }
        }
        shown
    }

    /// The lines of the text, depth first.
    fn lines(&self, most: usize, room: usize, style: &Style) -> Vec<Line> {
        let shown = self.shown(most);
        let is_shown = |at: &&StepIx| shown.get(**at) == Some(&true);
        let mut out = Vec::new();
        let mut open = vec![Item::Inside(None, Levels::default())];
        while let Some(item) = open.pop() {
            let (at, levels) = match item {
                Item::Rest(line) => {
                    out.push(line);
                    continue;
                }
                Item::Inside(at, levels) => (at, levels),
            };
            let found = at.and_then(|at| self.steps.list().get(at).zip(self.times.steps.get(at)));
            out.extend(found.map(|(step, times)| {
                let joints = levels.joints(room, style);
                Line::of((step, times), joints, self.view.since(step.from))
            }));
            let (shown, hidden): (Vec<StepIx>, Vec<StepIx>) =
                self.inside(at).iter().partition(|at| is_shown(at));
            if !hidden.is_empty() {
                let joints = levels.below(false).joints(room, style);
                open.push(Item::Rest(self.rest(&hidden, joints)));
            }
            let last = shown.len();
            let below = shown.into_iter().enumerate().map(|(n, at)| {
                let more = n + 1 < last || !hidden.is_empty();
                Item::Inside(Some(at), levels.below(more))
            });
            let below: Vec<Item> = below.collect();
            open.extend(below.into_iter().rev());
        }
        out
    }

    /// One line for steps without a line of their own.
    fn rest(&self, hidden: &[StepIx], joints: String) -> Line {
        let times = hidden.iter().filter_map(|at| self.times.steps.get(*at));
        let times: Vec<&StepTimes> = times.collect();
        let on_cpu = times.iter().filter_map(|times| Some(times.times?.on_cpu));
        let on_path = times.iter().map(|times| times.on_path);
        let count = units::count(hidden.len() as u64);
        Line {
            wall: Cell::Empty,
            cpu: Cell::Time(on_cpu.fold(0, u64::saturating_add)),
            busy: Cell::Empty,
            starved: Cell::Empty,
            waited: Cell::Empty,
            unknown: Cell::Empty,
            path: on_path.fold(0, u64::saturating_add),
            exit: Cell::Empty,
            name: format!("{joints}{count} more"),
            paint: Paint::Dim,
        }
    }

    /// The wall time of the analyzed span.
    fn wall(&self) -> u64 {
        let analysis = self.view.analysis;
        analysis.end.since(analysis.start)
    }

    fn outside(&self, out: &mut String, style: &Style) {
        let outside = &self.times.outside;
        let on_cpu = outside.times.unwrap_or_default().on_cpu;
        let parts = [
            (self.times.outside_wall, " with no step under way"),
            (on_cpu, " of CPU"),
            (outside.on_path, " of the critical path"),
        ];
        let parts = parts.into_iter().filter(|(ns, _)| *ns > 0);
        let parts: Vec<String> = parts
            .map(|(ns, what)| format!("{}{what}", units::time(ns)))
            .collect();
        if !parts.is_empty() {
            style.items(out, "Outside any step   ", &parts, " · ");
        }
    }

    /// A sentence for each of the slowest tests that hold no others.
    fn slowest(&self, out: &mut String, style: &Style) {
        let has_tests = |at: StepIx| {
            let mut inside = self.inside(Some(at)).iter();
            let test = |at: &StepIx| self.steps.list().get(*at).map(|step| step.kind);
            inside.any(|at| test(at) == Some(Kind::Test))
        };
        let tests = self.all().filter(|(at, step, times)| {
            step.kind == Kind::Test && self.is_kept(*at) && !has_tests(*at) && times.spent.is_some()
        });
        let mut tests: Vec<_> = tests.collect();
        tests.order_by_key(|(at, step, _)| (Reverse(step.wall()), *at));
        if tests.is_empty() {
            return;
        }
        out.push('\n');
        let title = units::top("Slowest tests", SLOWEST, tests.len());
        style.painted(out, Paint::Bold, &title);
        for (_, step, times) in tests.into_iter().take(SLOWEST) {
            let spent = kinds::sentence(&times.spent.unwrap_or_default());
            let wall = units::pad(&units::time(step.wall()), 9, true);
            let room = style
                .width
                .saturating_sub(units::width(&spent) + 14)
                .max(12);
            let name = units::shorten(&step.name, room);
            style.line(out, &format!("{wall}  {name}: {spent}"));
        }
    }

    fn row(&self, (at, step, times): (StepIx, &Step, &StepTimes)) -> Value {
        let pid = step.process.map(|ix| self.view.analysis.process(ix).pid.0);
        let start = self.view.since(step.from);
        let spent = times.spent.map(|spent| {
            let uses = kinds::OF_STEPS.into_iter();
            let uses = uses.map(|kind| (format!("{}_ns", kind.name()), spent.of(kind).into()));
            Value::Object(uses.collect())
        });
        let row = json!({
            "name": step.name,
            "kind": step.kind.name(),
            "id": at,
            "parent": step.parent,
            "depth": step.depth,
            "pid": pid,
            "start_ns": start,
            "started_before": step.started_before,
            "end_ns": step.ended.then(|| start + step.wall()),
            "wall_ns": step.wall(),
            "moment": step.is_moment(),
            "exit": step.status.map(Exit::from),
            "result": step.result,
            "processes": step.has_work.then_some(times.processes),
            "spent": spent,
            "critical_path_ns": step.has_work.then_some(times.on_path),
        });
        with(row, summed(times))
    }
}

/// The sums over a step's threads; `null` if they are not known.
fn summed(times: &StepTimes) -> Value {
    match &times.times {
        Some(times) => json!(encode::Times::new(times)),
        None => json!({
            "on_cpu_ns": null, "run_queue_ns": null, "sleep_ns": null, "blocked_ns": null,
            "unknown_ns": null,
        }),
    }
}

/// A line to come.
enum Item {
    /// A step's line, and those of the steps inside it; of no step: the outermost.
    Inside(Option<StepIx>, Levels),
    Rest(Line),
}

/// A line's columns.
struct Line {
    wall: Cell,
    cpu: Cell,
    busy: Cell,
    starved: Cell,
    waited: Cell,
    unknown: Cell,
    path: u64,
    exit: Cell,
    name: String,
    paint: Paint,
}

impl Line {
    fn of((step, times): (&Step, &StepTimes), joints: String, at: u64) -> Line {
        let wall = step.wall();
        let moment = step.is_moment();
        let whole = step.ended && !step.started_before;
        let on_cpu = times.times.map(|times| times.on_cpu);
        let busy = on_cpu
            .filter(|_| wall > 0)
            .map(|cpu| cpu as f64 / wall as f64);
        let spent = |cell: &dyn Fn(ByKind) -> Cell| match moment {
            true => Cell::Empty,
            false => Cell::known(times.spent, cell),
        };
        Line {
            wall: match (moment, whole) {
                (true, _) => Cell::from("mark"),
                (_, true) => Cell::Time(wall),
                (_, false) => Cell::AtLeast(wall),
            },
            cpu: match moment {
                true => Cell::Empty,
                false => Cell::known(on_cpu, Cell::Time),
            },
            busy: busy.map_or(Cell::Empty, |busy| Cell::from(format!("{busy:.2}"))),
            starved: spent(&|spent| Cell::Time(spent.of(Time::RunQueue))),
            waited: spent(&|spent| match kinds::waited(&spent) {
                (0, _) => Cell::Time(0),
                (ns, what) => Cell::from(format!("{} {}", units::time(ns), short(what))),
            }),
            unknown: spent(&|spent| Cell::Time(spent.of(Time::Unknown))),
            path: times.on_path,
            exit: match step.status {
                Some(status) if exit::failed(Some(status)) => exit::cell(Some(status), false),
                _ => Cell::Empty,
            },
            name: match moment {
                true => format!("{joints}{} at {} s", step.name, units::at(at)),
                false => match step.result.as_deref() {
                    None | Some("passed" | "ok") => joints + &step.name,
                    Some(result) => format!("{joints}{} ({result})", step.name),
                },
            },
            paint: Paint::bad_if(step.failed()),
        }
    }
}

/// A kind in a column.
fn short(kind: Time) -> &'static str {
    match kind {
        Time::Others => "others",
        Time::Outside => "outside",
        _ => kinds::title(kind),
    }
}

impl Report for StepsReport<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        if self.steps.list().is_empty() {
            let none = format!(
                "No steps: no program here is known as one, and no mark was set ({TR} mark)"
            );
            style.line(&mut out, &none);
            return out;
        }
        let room = style.width.saturating_sub(50) / 2;
        let lines = self.lines(self.view.ask.limit.unwrap_or(LINES), room, style);
        let whole = self.wall();
        let wide = style.width >= 90;
        let unknown = self
            .all()
            .any(|(.., times)| times.spent.is_some_and(|spent| spent.of(Time::Unknown) > 0));
        let kept = self.kept.iter().filter(|kept| **kept).count() as u64;
        let title = units::plural(kept, "step", "steps");
        out += &Table::new(title, |line: &Line| line.name.clone())
            .column("wall", |line| line.wall.clone())
            .column("CPU", |line| line.cpu.clone())
            .column_if(wide, "CPUs", |line| line.busy.clone())
            .column(RUN_QUEUE, |line| line.starved.clone())
            .column(OTHER_WAITS, |line| line.waited.clone())
            .column_if(wide && unknown, "unknown", |line| line.unknown.clone())
            .column("path", move |line| match line.path {
                0 => Cell::Empty,
                path => Cell::Share(path, whole),
            })
            .column("exit", |line| line.exit.clone())
            .paint(|line| line.paint)
            .text(lines, style, 0);
        self.outside(&mut out, style);
        self.slowest(&mut out, style);
        out
    }

    fn json(&self) -> Option<Value> {
        let most = self.view.ask.most();
        let steps = self.ordered().into_iter().take(most);
        let outside = &self.times.outside;
        let outside = json!({
            "wall_ns": self.times.outside_wall,
            "processes": outside.processes,
            "critical_path_ns": outside.on_path,
        });
        let of_outside = StepTimes {
            times: Some(self.times.outside.times.unwrap_or_default()),
            ..StepTimes::default()
        };
        Some(json!({
            "steps": steps.map(|step| self.row(step)).collect::<Value>(),
            "outside": with(outside, summed(&of_outside)),
        }))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let rows = self.ordered().into_iter().take(self.view.ask.most());
        let columns = "id parent depth kind name pid start_ns wall_ns end_ns exit_code=exit/code
                       signal=exit/signal result processes on_cpu_ns run_queue_ns sleep_ns blocked_ns
                       unknown_ns critical_path_ns path_on_cpu_ns=spent/on_cpu_ns
                       path_run_queue_ns=spent/run_queue_ns path_disk_ns=spent/disk_ns
                       path_network_ns=spent/network_ns path_terminal_ns=spent/terminal_ns
                       path_sleep_ns=spent/sleep_ns path_stopped_ns=spent/stopped_ns
                       path_blocked_ns=spent/blocked_ns path_outside_ns=spent/outside_ns
                       path_others_ns=spent/others_ns path_unknown_ns=spent/unknown_ns";
        csv(rows.map(|step| self.row(step)), columns)
    }
}
