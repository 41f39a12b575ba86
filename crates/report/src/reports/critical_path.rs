//! The report on the critical path from COMMAND's exec to its exit: its steps, its time by program, and lower
//! bounds of the wall time without a program or with other CPUs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{json, Value};
use tr_analyze::critical_path::{CriticalPath, Leg, NoPath, Then};
use tr_analyze::kinds::{ByKind, TimeKind};
use tr_analyze::model::{Analysis, Basis, ThreadIx};
use tr_analyze::programs::{Group, Groups, Program, Programs};
use tr_analyze::timeline::Bucket;
use tr_analyze::what_if::{self, Free, Limits};
use tr_format::event::Ktime;

use super::path_functions::PathFunctions;
use super::path_shares::{all_by_steps, is_by_step, PathShares};
use crate::functions::{self, FunctionGroups};
use crate::output::Report;
use tr_insight::cpus::cpu_demand;
use tr_insight::functions::Functions;
use tr_insight::path;
use tr_insight::path::kinds::COLUMNS;
use tr_insight::path::path_steps::{PathBySteps, StepShare};
use tr_insight::path::{shares, title, PathUse, Share};
use tr_insight::processes::{label, who};
use tr_insight::resources::network::Host;
use tr_insight::views::view::View;
use tr_text::called::TR;
use tr_text::page::Page;
use tr_text::phrase::Phrase;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;

/// The largest number of programs of which the report prints how much faster the build would be without the program's
/// work.
const FREE_PROGRAMS: usize = 6;

/// The longest time in nanoseconds before or after the critical path that the report does not mention, because a
/// recording takes that long to begin and to end.
const LONGEST_AROUND: u64 = 20_000_000;

/// The note on a critical path that was found without scheduling events, from the starts and ends of processes alone.
pub(crate) const BY_LIVES: &str =
    "at least this chain, without wake-ups: it follows forks and ends of processes only";

/// A sentence about the parts of the recording that lie before and after the critical path: the time until
/// COMMAND's exec, including waits in the run queue, and the time after its exit. `None` if they are short.
pub(crate) fn around(analysis: &Analysis, path: &CriticalPath) -> Option<String> {
    let process = analysis.process(path.process);
    let timeline = analysis.timeline.as_ref();
    let first = timeline.zip(process.threads.first());
    let stretches = first
        .into_iter()
        .flat_map(|(timeline, ix)| timeline.of(*ix));
    let waits = stretches.take_while(|stretch| stretch.from < path.from);
    let waits = waits.filter(|stretch| matches!(stretch.doing, Bucket::RunQueue { .. }));
    let waited = waits.fold(0u64, |sum, stretch| sum.saturating_add(stretch.length()));
    let before = BeforeExec {
        length: path.from.since(analysis.start),
        waited,
    };
    let whole = analysis.end.since(analysis.start);
    outside(whole, before, analysis.end.since(path.to))
}

/// The time in nanoseconds from the start of the recording to COMMAND's exec, where the critical path begins.
#[derive(Clone, Copy)]
struct BeforeExec {
    length: u64,
    /// The part of the time before COMMAND's exec, in nanoseconds, in which its process waited in the run queue.
    waited: u64,
}

/// A sentence about the times before and after the critical path, in nanoseconds. A time that is shorter than
/// [`LONGEST_AROUND`] or than 2 % of the recording is left out. `None` if both times are left out.
fn outside(whole: u64, before: BeforeExec, after: u64) -> Option<String> {
    let much = |ns: u64| ns >= LONGEST_AROUND && ns.saturating_mul(50) >= whole;
    let of_it = if much(before.waited) {
        format!(", {} of it in the run queue", units::time(before.waited))
    } else {
        String::new()
    };
    let parts = [
        ("before the command started", before.length, of_it),
        ("after it ended", after, String::new()),
    ];
    let shown = parts.into_iter().filter(|(_, ns, _)| much(*ns));
    let shown = shown.map(|(when, ns, of_it)| format!("{when} {}{of_it}", units::time(ns)));
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| shown.join(" · "))
}

pub struct PathReport<'a> {
    view: View<'a>,
    groups: Groups,
    programs: Programs,
    found: Result<FoundPath, NoPath>,
    /// The functions on the critical path, from sampled stacks; `None` unless `--by function` requests them and
    /// stacks were recorded.
    functions: Option<PathFunctions>,
}

struct FoundPath {
    path: CriticalPath,
    legs: Vec<Leg>,
    by_step: PathBySteps,
    shares: Vec<Share>,
    /// The lower bounds of the wall time, for example with more CPUs. `None` for a recording without scheduling events,
    /// because the bounds cannot be computed from such a recording.
    limits: Option<Limits>,
}

/// The step or program to which a leg (a consecutive part) of the critical path belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LegOwner {
    /// The leg belongs to the share of the critical path with this index in [`PathBySteps::shares`]. A share has the
    /// time of all steps with one name or, outside of all steps, the time of one program or of another group.
    Share(usize),
    /// The leg belongs to this group of programs; `None` if it is not known to which.
    Program(Option<Group>),
}

/// A leg of the critical path, which is a consecutive part in one step or program, with its names in text.
struct NamedLeg {
    leg: Leg,
    owner: LegOwner,
    /// The full name of the step or the task to which this leg (a consecutive part) of the critical path belongs.
    name: String,
    /// The short name of the step or the program to which this leg (a consecutive part) of the critical path belongs.
    short: String,
}

impl NamedLeg {
    /// Whether the critical path is divided by steps, and not by programs alone.
    fn is_by_step(&self) -> bool {
        matches!(self.owner, LegOwner::Share(_))
    }
}

/// A row of the table of the critical path's legs (parts in one step or program each). The row is about one long leg,
/// or about several consecutive short legs.
struct LegRow {
    from: Cell,
    to: Cell,
    length: u64,
    spent: ByKind,
    name: String,
    paint: Paint,
}

impl<'a> PathReport<'a> {
    pub fn new(view: &View<'a>) -> PathReport<'a> {
        let analysis = view.analysis;
        let groups = path::groups(analysis);
        let found = path::path_of(view).and_then(|path| {
            let shares = shares(analysis, &groups, &path);
            // A program with less than 1 % of the path is left out, because the lower bound of the wall time without
            // this program would hardly be smaller.
            let large = |share: &&Share| share.time.saturating_mul(100) >= path.length();
            let programs = shares.iter().filter(large);
            let programs = programs.filter_map(|share| match share.part {
                PathUse {
                    kind: TimeKind::OnCpu,
                    program,
                    ..
                } => program,
                _ => None,
            });
            let free: Vec<Group> = programs.take(FREE_PROGRAMS).collect();
            let limits = match analysis.basis() {
                Basis::Events => Some(what_if::limits(analysis, &path, &groups, &free)?),
                _ => None,
            };
            Ok(FoundPath {
                legs: path.legs().collect(),
                by_step: all_by_steps(view, &groups, &path),
                path,
                shares,
                limits,
            })
        });
        let path = found.as_ref().ok().filter(|_| view.ask.functions);
        let functions = path.and_then(|found| PathFunctions::new(analysis, &found.path));
        PathReport {
            view: *view,
            groups,
            programs: Programs::new(analysis),
            found,
            functions,
        }
    }

    fn who(&self, leg: &Leg) -> Phrase {
        self.label(leg.thread, leg.program)
    }

    /// The label of the program that the process of a thread was running at the time `at`.
    fn label_at(&self, thread: ThreadIx, at: Ktime) -> Phrase {
        let analysis = self.view.analysis;
        let process = analysis.thread(thread).process;
        let program = self.programs.at(analysis, process, at);
        self.label(thread, program)
    }

    fn label(&self, thread: ThreadIx, program: Option<Program>) -> Phrase {
        let analysis = self.view.analysis;
        let (thread, process) = who::thread(analysis, thread);
        // In a process with several threads, the label has the thread's name, unless this name is equal to the
        // process's.
        let comm = if process.threads.len() > 1 && thread.comm != process.comm {
            label::comm(thread)
        } else {
            String::new()
        };
        let exec = program.and_then(|(executed, at)| {
            let executed = analysis.process(executed);
            let forked = !std::ptr::eq(executed, process);
            Some((executed.execs.get(at as usize)?, forked))
        });
        let label = match exec {
            Some((exec, forked)) => label::of_program(&exec.argv, &exec.comm, forked),
            None => label::phrase(process),
        };
        Phrase::with([&label], |[label]| format!("{comm}{label}"))
    }

    fn group_at(&self, thread: ThreadIx, at: Ktime) -> Option<Group> {
        let process = self.view.analysis.thread(thread).process;
        self.groups.at(process, at)
    }

    /// The legs of the critical path (its parts that lie in one step or program each), with the names of the steps or
    /// of the programs.
    fn named(&self, found: &FoundPath) -> Vec<NamedLeg> {
        if is_by_step(&self.view, &found.by_step) {
            let legs = found.by_step.legs();
            let named = legs.filter_map(|(leg, at)| {
                let name = found.by_step.shares.get(at)?.name.short();
                Some(NamedLeg {
                    leg,
                    owner: LegOwner::Share(at),
                    name: name.to_owned(),
                    short: name.to_owned(),
                })
            });
            return named.collect();
        }
        let named = |leg: &Leg| {
            let group = self.group_at(leg.thread, leg.from);
            NamedLeg {
                leg: *leg,
                owner: LegOwner::Program(group),
                name: self.who(leg).short().to_owned(),
                short: group.map_or(String::new(), |group| self.groups.name(group)),
            }
        };
        found.legs.iter().map(named).collect()
    }

    /// The text that says how the critical path goes on after a leg (a part in one step or program), for example that
    /// the program of this leg started the program of the next one; empty after the last leg.
    fn then(&self, row: &NamedLeg, next: Option<&NamedLeg>) -> String {
        let Some(next) = next else {
            return String::new();
        };
        let (leg, name) = (&row.leg, &next.short);
        let then = match leg.then {
            Then::Same if row.is_by_step() => format!(", then {name}"),
            Then::Same => format!(", became {name}"),
            Then::Forked => ", forked".into(),
            Then::Exited => format!(", its exit woke {name}"),
            Then::Returned => format!(", ended {name}'s vfork"),
            Then::Woke => format!(", woke {name}"),
            Then::Slot => format!(", gave its job slot to {name}"),
            Then::Waited => format!(", waited for {name}"),
            Then::Awaited => format!(", awaited by {name}"),
        };
        if leg.then_inferred {
            then + " (inferred)"
        } else {
            then
        }
    }

    /// The rows for the longest legs of the critical path (its parts in one step or program each). The short legs
    /// between two of these longest legs share one row. `room` is the largest width in columns of a row's text.
    fn rows(&self, legs: &[NamedLeg], room: usize) -> Vec<LegRow> {
        let mut order: Vec<usize> = (0..legs.len()).collect();
        let length = |at: &usize| legs.get(*at).map(|row| row.leg.length());
        order.sort_unstable_by_key(|at| (Reverse(length(at)), *at));
        let order = order.into_iter().take(self.view.ask.rows().max(1));
        let shown: BTreeSet<usize> = order.collect();
        let mut rows = Vec::new();
        let mut rest = legs;
        while let Some((row, behind)) = rest.split_first() {
            let at = legs.len() - rest.len();
            let one = shown.contains(&at);
            let next = shown.range(at..).next().copied().unwrap_or(legs.len());
            let (run, more) = rest.split_at(if one { 1 } else { next - at });
            rest = more;
            let mut spent = ByKind::default();
            run.iter().for_each(|row| spent.add_all(&row.leg.spent));
            let to = run.last().map_or(row.leg.to, |last| last.leg.to);
            let (from, to) = (self.view.since(row.leg.from), self.view.since(to));
            let (name, paint) = if one {
                (self.task(row, behind.first(), room), Paint::Plain)
            } else {
                (self.between(run, room), Paint::Dim)
            };
            rows.push(LegRow {
                from: Cell::At(from),
                to: Cell::At(to),
                length: to - from,
                spent,
                name,
                paint,
            });
        }
        rows
    }

    fn table(&self, out: &mut Page, found: &FoundPath, style: &Style) {
        let length = found.path.length();
        let mut spent = ByKind::default();
        found.legs.iter().for_each(|leg| spent.add_all(&leg.spent));
        let wide = style.width >= 100;
        let named = self.named(found);
        let by_step = named.first().is_some_and(NamedLeg::is_by_step);
        let title = if by_step { "step" } else { "task" };
        let mut table = Table::new(title, |row: &LegRow| row.name.clone())
            .column("from", |row| row.from.clone())
            .column("to", |row| row.to.clone())
            .shown(wide)
            .column("length", |row| Cell::Time(row.length))
            .paint(|row| row.paint);
        // A column is shown if its time is at least 0.5 % of the path. A terminal of less than 80 columns shows only
        // the columns with the longest times.
        let mut columns: Vec<_> = COLUMNS.iter().enumerate().collect();
        columns.retain(|(_, column)| {
            let ns = column.of(&spent);
            ns > 0 && ns.saturating_mul(200) >= length
        });
        columns.sort_by_key(|(_, column)| Reverse(column.of(&spent)));
        if style.width < 80 {
            columns.truncate((style.width.saturating_sub(32) / 10).max(2));
        }
        columns.sort_unstable_by_key(|(at, _)| *at);
        for (_, column) in columns {
            let time = |row: &LegRow| Cell::Time(column.of(&row.spent));
            table = table.column(column.title, time).few();
        }
        let sum = || LegRow {
            from: Cell::from("sum"),
            to: Cell::Empty,
            length,
            spent,
            name: "= wall time".into(),
            paint: Paint::Bold,
        };
        let rows = |room| self.rows(&named, room).into_iter().chain([sum()]);
        let room = table.room(rows(usize::MAX), style, 2);
        out.grid(table.grid(rows(room)), 2);
    }

    /// The text for a row of the table of the critical path's parts: the task's name, and if there is room the way in
    /// which the critical path goes on.
    fn task(&self, row: &NamedLeg, next: Option<&NamedLeg>, room: usize) -> String {
        let (who, then) = (row.name.clone(), self.then(row, next));
        match room.saturating_sub(units::width(&then)) {
            0..16 if units::width(&who) + units::width(&then) > room => who,
            room => units::shorten(&who, room) + &then,
        }
    }

    /// The text for the short parts of the critical path that share one row: the name of a single one, or else their
    /// number and up to four names of steps or programs, as many as fit into `room` columns.
    fn between(&self, legs: &[NamedLeg], room: usize) -> String {
        if let [row] = legs {
            return row.name.clone();
        }
        let mut programs: BTreeMap<LegOwner, (&str, u64)> = BTreeMap::new();
        for row in legs.iter().filter(|row| !row.short.is_empty()) {
            let (_, sum) = programs.entry(row.owner).or_insert((&row.short, 0));
            *sum = sum.saturating_add(row.leg.length());
        }
        let mut programs: Vec<(&str, u64)> = programs.into_values().collect();
        programs.sort_unstable_by_key(|(name, time)| (Reverse(*time), *name));
        let names = programs.iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.take(4).collect();
        let text = |some: &[&str]| {
            let more = if some.len() < programs.len() {
                ", …"
            } else {
                ""
            };
            let count = units::count(legs.len() as u64);
            format!("{count} shorter steps: {}{more}", some.join(", "))
        };
        let fit = (1..=names.len())
            .rev()
            .filter_map(|count| names.get(..count));
        let mut fit = fit.map(text).filter(|text| units::width(text) <= room);
        // If not even one name fits, only the number of short legs (parts of the critical path) is printed.
        fit.next()
            .unwrap_or_else(|| format!("{} shorter steps", units::count(legs.len() as u64)))
    }

    /// Prints for each of some programs how much faster the build would be if this program alone took no time, and the
    /// lower bounds of the wall time with more job slots or other numbers of CPUs.
    fn limits(&self, out: &mut Page, limits: &Limits, style: &Style) {
        let widest = |free: &Free| units::width(&self.groups.name(free.group));
        let room = limits.free.iter().map(widest).max().unwrap_or(0).min(24);
        if !limits.free.is_empty() {
            let what = "If this took no time, with the same waits:";
            out.line(what);
        }
        for free in &limits.free {
            let gain = limits.recorded.saturating_sub(free.same_waits);
            let name = units::pad(&self.groups.name(free.group), room, false);
            let decides = free.decides.filter(|_| free.same_waits > 0);
            let decides = decides.map_or(String::new(), |stay| {
                if self.group_at(stay.thread, stay.at) == Some(free.group) {
                    return "; then its waits decide".to_owned();
                }
                let label = self.label_at(stay.thread, stay.at);
                let room = style.width.saturating_sub(room + 40).max(16);
                format!("; then {} decides", units::shorten(label.short(), room))
            });
            let line = format!("{name}  {} faster{decides}", least_time(gain));
            out.sentence("  ", &line);
        }
        if let Some(least) = limits.more_slots {
            let gain = limits.recorded.saturating_sub(least);
            let line = format!("With more job slots: {} faster", least_time(gain));
            out.line(&line);
        }
        let mut machines = Vec::new();
        for cpus in cpu_demand::machines(limits.cpus) {
            machines.push(format!(
                "{} {}",
                units::cpus(cpus),
                least_time(limits.on(cpus))
            ));
            if limits.on(cpus) == limits.span {
                break;
            }
        }
        machines.push(format!("any number {}", least_time(limits.span)));
        let what = "With CPUs to itself it would take at least (no timed waits counted):";
        out.line(what);
        out.items("  ", &machines);
    }

    /// The table of the critical path's legs (its parts in one step or program each) with the columns of JSON and CSV.
    fn legs(&self) -> Table<'_, &Leg> {
        let basis = self.view.analysis.basis();
        let found = |leg: &&Leg| who::thread(self.view.analysis, leg.thread);
        let mut table = Table::new("", |leg: &&Leg| self.who(leg).short().to_owned())
            .data("from_ns", |leg| self.view.since(leg.from))
            .data("to_ns", |leg| self.view.since(leg.to))
            .csv_data("length_ns", |leg| leg.length());
        for column in &COLUMNS {
            let key = format!("{}_ns", column.name);
            table = table.data(key, move |leg| column.known(&leg.spent, basis));
        }
        table
            .data("inferred_ns", |leg| leg.inferred)
            .data("pid", move |leg| found(leg).1.pid.0)
            .data("tid", move |leg| found(leg).0.tid.0)
            .data("then", |leg| match leg.then {
                Then::Same => "same",
                Then::Forked => "forked",
                Then::Exited => "exited",
                Then::Returned => "returned",
                Then::Woke => "woke",
                Then::Slot => "slot",
                Then::Waited => "waited",
                Then::Awaited => "awaited",
            })
            .csv_data("name", |leg| self.who(leg).short().to_owned())
            .json_data("label", |leg| self.who(leg).whole().to_owned())
    }

    /// The table of the critical path's time by step with the columns of JSON.
    fn steps(&self) -> Table<'_, &StepShare> {
        let basis = self.view.analysis.basis();
        let mut table = Table::new("", |share: &&StepShare| share.name.short().to_owned())
            .data("is_step", |share| share.is_step)
            .data("count", |share| share.count)
            .data("time_ns", |share| share.time());
        for column in &COLUMNS {
            let key = format!("{}_ns", column.name);
            table = table.data(key, move |share| column.known(&share.spent, basis));
        }
        table.phrase_data("name", |share| Some(share.name.clone()))
    }

    fn path(&self, found: &FoundPath) -> Value {
        let FoundPath {
            path,
            legs,
            by_step,
            shares,
            limits,
        } = found;
        let name = |group| self.groups.name(group);
        let share = |share: &Share| {
            json!({
                "what": share.part.kind.name(),
                "program": share.part.program.map(name),
                "remote": share.part.remote.map(Host::text),
                "by": share.by,
                "time_ns": share.time,
                "steps": share.count,
            })
        };
        let limits = limits.as_ref();
        let free = limits.map_or(&[][..], |limits| &limits.free);
        let free = free.iter().map(|free| {
            json!({
                "program": name(free.group),
                "at_least_ns": free.at_least,
                "same_waits_ns": free.same_waits,
                "decides": free.decides.map(|stay| self.label_at(stay.thread, stay.at)),
            })
        });
        let (_, process) = who::thread(self.view.analysis, path.thread);
        json!({
            "pid": process.pid.0,
            "from_ns": self.view.since(path.from),
            "to_ns": self.view.since(path.to),
            "wall_ns": path.length(),
            "inferred_ns": inferred(legs),
            "steps": self.legs().rows(legs),
            "shares": shares.iter().map(share).collect::<Value>(),
            "by_step": self.steps().rows(&by_step.shares),
            "work_ns": limits.map(|limits| limits.work),
            "least_ns": limits.map(|limits| limits.on(limits.cpus)),
            "least_any_cpus_ns": limits.map(|limits| limits.span),
            "more_slots_ns": limits.and_then(|limits| limits.more_slots),
            "free": free.collect::<Value>(),
            "functions": self.functions.as_ref().map(|functions| functions.json(self.view.ask.most())),
        })
    }
}

/// The part, in nanoseconds, of the time of these legs (parts of the critical path) that no event shows. For this time,
/// the course of the path is only the most likely one.
fn inferred(legs: &[Leg]) -> u64 {
    legs.iter().map(|leg| leg.inferred).sum()
}

/// A saved time, or a lower bound of the wall time, as text. The text is `0` only if the time is exactly 0.
fn least_time(ns: u64) -> String {
    match ns {
        0 => "0".into(),
        ns => units::time(ns),
    }
}

/// The sentence that the critical path by function is not known because no stacks were recorded.
fn no_stacks() -> String {
    format!("The path by function is not known: {TR} record --stacks records stacks")
}

impl Report for PathReport<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        let found = match &self.found {
            Ok(found) => found,
            Err(why) => {
                let title = title(self.view.analysis);
                out.line(&format!("{title}: {why}"));
                return out;
            }
        };
        let path = &found.path;
        let analysis = self.view.analysis;
        let root = analysis.process(path.process);
        let name = label::label(root);
        let before = root.started_before && path.from == analysis.start;
        let at_exec = root
            .execs
            .first()
            .is_some_and(|exec| exec.start == path.from);
        let begin = match (before, analysis.is_part()) {
            (true, true) => "the span's begin",
            (true, false) => "the recording's begin",
            (false, _) if at_exec => "the exec",
            (false, _) => "the beginning",
        };
        let end = match (root.alive, analysis.is_part()) {
            (true, true) => "the span's end",
            (true, false) => "the recording's end",
            (false, _) => "the exit",
        };
        let title = format!(
            "{}: {} from {begin} at {} s to {end} at {} s",
            title(self.view.analysis),
            units::time(path.length()),
            units::at(self.view.since(path.from)),
            units::at(self.view.since(path.to)),
        );
        let room = style.width.saturating_sub(units::width(&title) + 3);
        let title = match room {
            16.. => format!("{title} · {}", units::shorten(&name, room)),
            _ => title,
        };
        out.wrapped(Paint::Bold, "", &title);
        let shares = if is_by_step(&self.view, &found.by_step) {
            PathShares::Step(found.by_step.clone())
        } else {
            PathShares::Program(found.shares.clone())
        };
        shares.bars(&mut out, path.length(), 8);
        let inferred = inferred(&found.legs);
        if self.view.analysis.basis() != Basis::Events {
            let text = format!("  {BY_LIVES}");
            out.painted(Paint::Dim, &text);
        } else if inferred > 0 {
            let share = units::share(inferred, path.length());
            let text = format!(
                "{} ({share}) of the path is inferred: no event shows these steps.",
                units::time(inferred)
            );
            out.wrapped(Paint::Dim, "  ", &text);
        }
        out.blank();
        if self.view.ask.functions {
            match &self.functions {
                Some(functions) => out.add(functions.page(style, self.view.ask.top)),
                None => out.line(&no_stacks()),
            }
            return out;
        }
        self.table(&mut out, found, style);
        out.blank();
        if let Some(limits) = &found.limits {
            self.limits(&mut out, limits, style);
        }
        out
    }

    fn json(&self) -> Option<Value> {
        let found = self.found.as_ref();
        Some(json!({
            "reason": found.err().map(NoPath::to_string),
            "path": found.ok().map(|found| self.path(found)),
        }))
    }

    fn warning(&self, _text: bool) -> Option<String> {
        let asked = self.view.ask.functions && self.found.is_ok();
        (asked && self.functions.is_none()).then(no_stacks)
    }

    fn sheet(&self) -> Sheet {
        if self.view.ask.functions {
            let most = self.view.ask.most();
            return match &self.functions {
                Some(functions) => functions.sheet(most),
                None => functions::sheet(&Functions::default(), FunctionGroups::default(), most),
            };
        }
        let legs = self.found.iter().flat_map(|found| &found.legs);
        self.legs().sheet(legs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_around_the_path_is_shown() {
        const MS: u64 = 1_000_000;
        let outside = |length, waited, after| {
            outside(2370 * MS, BeforeExec { length, waited }, after).unwrap_or_default()
        };
        assert_eq!(outside(7 * MS, 0, 12 * MS), "");
        let words = "before the command started 380 ms, 371 ms of it in the run queue";
        assert_eq!(outside(380 * MS, 371 * MS, 0), words);
        let words = "before the command started 380 ms · after it ended 60 ms";
        assert_eq!(outside(380 * MS, 8 * MS, 60 * MS), words);
    }
}
