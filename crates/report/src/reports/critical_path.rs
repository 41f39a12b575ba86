//! The critical path: what the end had to wait for, step by step; by program;
//! and what would be if a program cost nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use tr_analyze::critical_path::{self, CriticalPath, Kind, Leg, NoPath, Spent, Then};
use tr_analyze::model::{Analysis, ExecSpan, Process, ProcessIx, ThreadIx};
use tr_analyze::programs::{sleeper, Group, Groups, Program};
use tr_analyze::what_if::{self, Limits};

use crate::reports::View;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::{label, units};

/// For how many programs it is said what would be without them.
const FREE: usize = 6;

/// The groups by program.
pub(crate) fn groups(analysis: &Analysis) -> Groups {
    Groups::new(analysis, |process, exec| match exec {
        Some(exec) => label::program_of(&exec.argv, &exec.comm),
        None => label::program(process),
    })
}

/// The path of the process that was asked for, or of COMMAND.
pub(crate) fn path_of(view: &View<'_>) -> Result<CriticalPath, NoPath> {
    let analysis = view.analysis;
    let root = match view.ask.pid {
        None => critical_path::root(analysis)?,
        Some(pid) => {
            let at = analysis.processes.iter().position(|p| p.pid == pid);
            let at = at.and_then(|at| u32::try_from(at).ok());
            ProcessIx(at.ok_or(NoPath::NotThere)?)
        }
    };
    critical_path::critical_path(analysis, root)
}

/// What a part of the path's time went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// On a CPU, as this program.
    Program(Group),
    /// Asleep in it.
    Sleep(Group),
    /// No CPU was free.
    NoCpu,
    Disk,
    Stopped,
    Blocked,
    Outside,
    Unknown,
}

/// A line of what the path's time went to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    part: Part,
    /// What it is, for people.
    pub name: String,
    /// ns.
    pub time: u64,
    /// Legs with such time.
    pub count: u64,
}

/// The path's time by what it went to, the longest first.
pub(crate) fn shares(analysis: &Analysis, groups: &Groups, path: &CriticalPath) -> Vec<Share> {
    let mut sums: BTreeMap<Part, (u64, u64)> = BTreeMap::new();
    let mut last: BTreeMap<Part, ThreadIx> = BTreeMap::new();
    for segment in &path.segments {
        let process = process_ix(analysis, segment.thread);
        let group = process.and_then(|process| groups.at(process, segment.from));
        let part = match (segment.kind, group) {
            (Kind::OnCpu, Some(group)) => Part::Program(group),
            (Kind::Sleep, Some(group)) => {
                let told = process.map(|process| sleeper(analysis, process, segment.from));
                let told = told.and_then(|(process, time)| groups.at(process, time));
                Part::Sleep(told.unwrap_or(group))
            }
            (Kind::RunQueue(_), _) => Part::NoCpu,
            (Kind::Disk, _) => Part::Disk,
            (Kind::Stopped, _) => Part::Stopped,
            (Kind::Blocked, _) => Part::Blocked,
            (Kind::Outside(_), _) => Part::Outside,
            (Kind::Unknown | Kind::OnCpu | Kind::Sleep, _) => Part::Unknown,
        };
        let (time, count) = sums.entry(part).or_default();
        *time += segment.length();
        // Once for each stay with a thread.
        if last.insert(part, segment.thread) != Some(segment.thread) {
            *count += 1;
        }
    }
    let named = |(part, (time, count)): (Part, (u64, u64))| Share {
        part,
        name: match part {
            Part::Program(group) => groups.name(group).to_owned(),
            Part::Sleep(group) => format!("sleep in {}", groups.name(group)),
            Part::NoCpu => "waiting for a CPU".into(),
            Part::Disk => "disk".into(),
            Part::Stopped => "stopped".into(),
            Part::Blocked => "blocked in the kernel".into(),
            Part::Outside => "tasks not recorded".into(),
            Part::Unknown => "unknown".into(),
        },
        time,
        count,
    };
    let mut shares: Vec<Share> = sums.into_iter().map(named).collect();
    shares.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    shares
}

fn process_ix(analysis: &Analysis, thread: ThreadIx) -> Option<ProcessIx> {
    Some(analysis.threads.get(thread.0 as usize)?.process)
}

/// The shares as bars; `most` of them.
pub(crate) fn bars(out: &mut String, shares: &[Share], whole: u64, most: usize, style: &Style) {
    let shown = shares.len().min(most);
    let (shown, hidden) = shares.split_at(shown);
    let rest: u64 = hidden.iter().map(|share| share.time).sum();
    let name = |share: &Share| units::width(&share.name);
    let names = shown.iter().map(name).max().unwrap_or(0).min(28);
    let columns = style.width.saturating_sub(names + 33).clamp(8, 40);
    let largest = shown.first().map_or(1, |share| share.time);
    for share in shown {
        let bar = style.bar(share.time, largest, columns);
        let text = format!(
            "  {}  {}  {}  {}  {:>6} ×",
            units::pad(&units::shorten(&share.name, names), names, false),
            style.paint(Paint::Bar, &units::pad(&bar, columns, false)),
            units::pad(&units::time(share.time), 9, true),
            units::pad(&units::share(share.time, whole), 5, true),
            units::count(share.count),
        );
        let _ = writeln!(out, "{text}");
    }
    if rest > 0 {
        let hidden = hidden.iter().find(|share| share.part == Part::Unknown);
        let unknown = hidden.map_or(String::new(), |share| {
            format!(", {} of it unknown", units::time(share.time))
        });
        let text = format!("  and {} in other ways{unknown}", units::time(rest));
        let _ = writeln!(out, "{}", style.paint(Paint::Dim, &text));
    }
}

/// A program of a leg, for people.
fn label_of(analysis: &Analysis, thread: ThreadIx, program: Option<Program>) -> String {
    let Some(own) = process_ix(analysis, thread) else {
        return String::new();
    };
    let exec = |(process, at): Program| -> Option<(ProcessIx, &ExecSpan)> {
        let executed: &Process = analysis.processes.get(process.0 as usize)?;
        Some((process, executed.execs.get(at as usize)?))
    };
    match (
        program.and_then(exec),
        analysis.processes.get(own.0 as usize),
    ) {
        (Some((executed, exec)), _) => label::label_of(&exec.argv, &exec.comm, executed != own),
        (None, Some(process)) => label::label(process),
        (None, None) => String::new(),
    }
}

/// The report.
pub struct Report<'a> {
    view: View<'a>,
    groups: Groups,
    found: Result<Found, NoPath>,
}

struct Found {
    path: CriticalPath,
    legs: Vec<Leg>,
    shares: Vec<Share>,
    limits: Limits,
}

impl<'a> Report<'a> {
    /// Finds the path.
    pub fn new(view: &View<'a>) -> Report<'a> {
        let analysis = view.analysis;
        let groups = groups(analysis);
        let found = path_of(view).and_then(|path| {
            let shares = shares(analysis, &groups, &path);
            // Without what is nowhere much it takes as long as with it.
            let much = |share: &&Share| share.time.saturating_mul(100) >= path.length();
            let programs = shares
                .iter()
                .filter(much)
                .filter_map(|share| match share.part {
                    Part::Program(group) => Some(group),
                    _ => None,
                });
            let free: Vec<Group> = programs.take(FREE).collect();
            let limits = what_if::limits(analysis, &path, &groups, &free)?;
            Ok(Found {
                legs: path.legs().collect(),
                path,
                shares,
                limits,
            })
        });
        Report {
            view: *view,
            groups,
            found,
        }
    }

    fn since(&self, time: tr_format::event::Ktime) -> u64 {
        time.since(self.view.analysis.meta.start)
    }

    fn who(&self, leg: &Leg) -> String {
        label_of(self.view.analysis, leg.thread, leg.program)
    }

    /// What became of a leg: the next one's program.
    fn then(&self, leg: &Leg, next: Option<&Leg>) -> String {
        let Some(next) = next else {
            return String::new();
        };
        let process = process_ix(self.view.analysis, next.thread);
        let group = process.and_then(|process| self.groups.at(process, next.from));
        let name = group.map_or("", |group| self.groups.name(group));
        match leg.then {
            Then::Same => format!(", became {name}"),
            Then::Forked => ", forked".into(),
            Then::Exited => format!(", its end woke {name}"),
            Then::Returned => format!(", let {name} go on"),
            Then::Woke => format!(", woke {name}"),
        }
    }

    /// The longest legs, and what is between them in one row each.
    fn table(&self, found: &Found, style: &Style) -> String {
        let mut order: Vec<usize> = (0..found.legs.len()).collect();
        let length = |at: &usize| found.legs.get(*at).map_or(0, Leg::length);
        order.sort_by_key(|at| (std::cmp::Reverse(length(at)), *at));
        let mut shown = vec![false; found.legs.len()];
        for at in order.iter().take(self.view.ask.top.max(1)) {
            if let Some(shown) = shown.get_mut(*at) {
                *shown = true;
            }
        }
        let whole = found.path.length();
        let mut sum = Spent::default();
        found.legs.iter().for_each(|leg| sum.add_all(&leg.spent));
        // What is nowhere much takes no column.
        let wanted = spent_cells(&sum).map(|ns| ns > 0 && ns.saturating_mul(200) >= whole);
        let wide = style.width >= 100;
        let mut table = Table::new().column("from", "");
        if wide {
            table = table.column("to", "");
        }
        table = table.column("length", "");
        for (title, _) in SPENT.iter().zip(wanted).filter(|(_, wanted)| *wanted) {
            table = table.column(title.0, "");
        }
        let mut table = table.name("who", "");
        let cells = |first: Cell, to: Cell, length: u64, spent: &Spent| {
            let mut cells = vec![first];
            cells.extend(wide.then_some(to));
            cells.push(Cell::Time(length));
            let times = spent_cells(spent).into_iter().zip(wanted);
            cells.extend(times.filter(|(_, wanted)| *wanted).map(|(ns, _)| match ns {
                0 => Cell::Empty,
                ns => Cell::Time(ns),
            }));
            cells
        };
        let mut add = |from: u64, to: u64, spent: &Spent, name: String, paint| {
            let cells = cells(Cell::At(from), Cell::At(to), to - from, spent);
            table.row(cells, name, paint);
        };
        let mut at = 0;
        while let Some(leg) = found.legs.get(at) {
            if shown.get(at) == Some(&true) {
                let name = self.who(leg) + &self.then(leg, found.legs.get(at + 1));
                let (from, to) = (self.since(leg.from), self.since(leg.to));
                add(from, to, &leg.spent, name, Paint::Plain);
                at += 1;
                continue;
            }
            let more = shown.get(at..).unwrap_or_default();
            let run = more.iter().take_while(|shown| !**shown).count();
            let legs = found.legs.get(at..at + run).unwrap_or_default();
            let mut spent = Spent::default();
            legs.iter().for_each(|leg| spent.add_all(&leg.spent));
            let to = legs.last().map_or(leg.to, |last| last.to);
            let name = self.between(legs);
            let (from, to) = (self.since(leg.from), self.since(to));
            add(from, to, &spent, name, Paint::Dim);
            at += run.max(1);
        }
        let cells = cells(Cell::from("sum"), Cell::Empty, whole, &sum);
        table.row(cells, "= wall time", Paint::Bold);
        table.text(style, 2)
    }

    /// Legs that are not shown, by their programs.
    fn between(&self, legs: &[Leg]) -> String {
        let mut programs: BTreeMap<Group, u64> = BTreeMap::new();
        for leg in legs {
            let process = process_ix(self.view.analysis, leg.thread);
            if let Some(group) = process.and_then(|process| self.groups.at(process, leg.from)) {
                *programs.entry(group).or_default() += leg.length();
            }
        }
        if let [leg] = legs {
            return self.who(leg);
        }
        let mut programs: Vec<(Group, u64)> = programs.into_iter().collect();
        programs.sort_by_key(|(group, time)| (std::cmp::Reverse(*time), *group));
        let names = programs.iter().map(|(group, _)| self.groups.name(*group));
        let names: Vec<&str> = names.take(4).collect();
        let more = if programs.len() > 4 { ", …" } else { "" };
        format!(
            "{} shorter steps: {}{more}",
            units::count(legs.len() as u64),
            names.join(", ")
        )
    }

    /// What the end would have been, had it been otherwise.
    fn limits(&self, out: &mut String, limits: &Limits, style: &Style) {
        let free: Vec<String> = limits
            .free
            .iter()
            .map(|free| {
                format!(
                    "{} {} ({})",
                    self.groups.name(free.group),
                    least(free.at_least),
                    least(free.same_waits)
                )
            })
            .collect();
        if !free.is_empty() {
            let what = "If this were free, it would still take at least \
                        (with the same waits for a CPU):";
            style.line(out, what);
            style.items(out, "  ", &free, " · ");
        }
        let mut machines = Vec::new();
        let more = [2, 4, 8, 16, 32, 64, 128, 256];
        let more = more.into_iter().filter(|n| *n > limits.cpus);
        for cpus in std::iter::once(limits.cpus).chain(more) {
            let of = if cpus == 1 { "CPU" } else { "CPUs" };
            machines.push(format!("{cpus} {of} {}", least(limits.on(cpus))));
            if limits.on(cpus) == limits.span {
                break;
            }
        }
        machines.push(format!("any number {}", least(limits.span)));
        style.line(out, "With CPUs to itself it would take at least:");
        style.items(out, "  ", &machines, " · ");
    }
}

/// A limit; nothing is a limit, too.
fn least(ns: u64) -> String {
    match ns {
        0 => "0".into(),
        ns => units::time(ns),
    }
}

/// The parts of a leg's time: for people, and in CSV.
const SPENT: [(&str, &str); 6] = [
    ("CPU", "on_cpu_ns"),
    ("wait cpu", "run_queue_ns"),
    ("disk", "disk_ns"),
    ("sleep", "sleep_ns"),
    ("other", "other_ns"),
    ("unknown", "unknown_ns"),
];

fn spent_cells(spent: &Spent) -> [u64; 6] {
    [
        spent.on_cpu,
        spent.run_queue,
        spent.disk,
        spent.sleep,
        spent.other,
        spent.unknown,
    ]
}

fn then_word(then: Then) -> &'static str {
    match then {
        Then::Same => "same",
        Then::Forked => "forked",
        Then::Exited => "exited",
        Then::Returned => "returned",
        Then::Woke => "woke",
    }
}

impl crate::reports::Report for Report<'_> {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let found = match &self.found {
            Ok(found) => found,
            Err(why) => {
                style.line(&mut out, &format!("Critical path: {why}"));
                return out;
            }
        };
        let path = &found.path;
        let root = self.view.analysis.processes.get(path.process.0 as usize);
        let name = root.map(label::label).unwrap_or_default();
        let end = match root {
            Some(process) if process.alive => "the recording's end",
            _ => "the exit",
        };
        let title = format!(
            "Critical path: {} from the exec at {} s to {end} at {} s",
            units::time(path.length()),
            units::at(self.since(path.from)),
            units::at(self.since(path.to)),
        );
        let room = style.width.saturating_sub(units::width(&title) + 3);
        let title = match room {
            8.. => format!("{title} · {}", units::shorten(&name, room)),
            _ => units::shorten(&title, style.width),
        };
        let _ = writeln!(out, "{}", style.paint(Paint::Bold, &title));
        bars(&mut out, &found.shares, path.length(), 8, style);
        out.push('\n');
        out.push_str(&self.table(found, style));
        out.push('\n');
        self.limits(&mut out, &found.limits, style);
        out
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        serde_json::to_value(self.document()).map(Some)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let times = ["from_ns", "to_ns", "length_ns"].into_iter();
        let spent = SPENT.map(|(_, key)| key);
        let rest = ["pid", "tid", "then", "name"];
        let mut table = Table::keyed(times.chain(spent).chain(rest));
        for leg in self.found.iter().flat_map(|found| &found.legs) {
            let (pid, tid) = self.ids(leg.thread);
            let mut cells = vec![
                Cell::At(self.since(leg.from)),
                Cell::At(self.since(leg.to)),
                Cell::Time(leg.length()),
            ];
            cells.extend(spent_cells(&leg.spent).map(Cell::Time));
            cells.extend([Cell::Id(pid), Cell::Id(tid), then_word(leg.then).into()]);
            cells.push(self.who(leg).into());
            table.record(cells);
        }
        table.csv()
    }
}

// ---- JSON ----

#[derive(Serialize)]
struct Document {
    /// Why there is none.
    reason: Option<String>,
    path: Option<PathValue>,
}

#[derive(Serialize)]
struct PathValue {
    pid: u32,
    from_ns: u64,
    to_ns: u64,
    wall_ns: u64,
    steps: Vec<Step>,
    shares: Vec<ShareValue>,
    work_ns: u64,
    least_ns: u64,
    least_any_cpus_ns: u64,
    free: Vec<FreeValue>,
}

#[derive(Serialize)]
struct Step {
    pid: u32,
    tid: u32,
    label: String,
    from_ns: u64,
    to_ns: u64,
    on_cpu_ns: u64,
    run_queue_ns: u64,
    disk_ns: u64,
    sleep_ns: u64,
    other_ns: u64,
    unknown_ns: u64,
    then: &'static str,
}

#[derive(Serialize)]
struct ShareValue {
    what: &'static str,
    program: Option<String>,
    time_ns: u64,
    steps: u64,
}

#[derive(Serialize)]
struct FreeValue {
    program: String,
    at_least_ns: u64,
    same_waits_ns: u64,
}

impl Report<'_> {
    /// Pid and tid.
    fn ids(&self, thread: ThreadIx) -> (u32, u32) {
        let analysis = self.view.analysis;
        let thread = analysis.threads.get(thread.0 as usize);
        let process = thread.and_then(|t| analysis.processes.get(t.process.0 as usize));
        (
            process.map_or(0, |process| process.pid.0),
            thread.map_or(0, |thread| thread.tid.0),
        )
    }

    fn document(&self) -> Document {
        match &self.found {
            Ok(found) => Document {
                reason: None,
                path: Some(self.path_value(found)),
            },
            Err(why) => Document {
                reason: Some(why.to_string()),
                path: None,
            },
        }
    }

    fn path_value(&self, found: &Found) -> PathValue {
        let step = |leg: &Leg| {
            let (pid, tid) = self.ids(leg.thread);
            Step {
                pid,
                tid,
                label: self.who(leg),
                from_ns: self.since(leg.from),
                to_ns: self.since(leg.to),
                on_cpu_ns: leg.spent.on_cpu,
                run_queue_ns: leg.spent.run_queue,
                disk_ns: leg.spent.disk,
                sleep_ns: leg.spent.sleep,
                other_ns: leg.spent.other,
                unknown_ns: leg.spent.unknown,
                then: then_word(leg.then),
            }
        };
        let share = |share: &Share| {
            let (what, group) = match share.part {
                Part::Program(group) => ("on_cpu", Some(group)),
                Part::Sleep(group) => ("sleep", Some(group)),
                Part::NoCpu => ("run_queue", None),
                Part::Disk => ("disk", None),
                Part::Stopped => ("stopped", None),
                Part::Blocked => ("blocked", None),
                Part::Outside => ("outside", None),
                Part::Unknown => ("unknown", None),
            };
            ShareValue {
                what,
                program: group.map(|group| self.groups.name(group).to_owned()),
                time_ns: share.time,
                steps: share.count,
            }
        };
        let limits = &found.limits;
        let free = limits.free.iter().map(|free| FreeValue {
            program: self.groups.name(free.group).to_owned(),
            at_least_ns: free.at_least,
            same_waits_ns: free.same_waits,
        });
        PathValue {
            pid: self.ids(found.path.thread).0,
            from_ns: self.since(found.path.from),
            to_ns: self.since(found.path.to),
            wall_ns: found.path.length(),
            steps: found.legs.iter().map(step).collect(),
            shares: found.shares.iter().map(share).collect(),
            work_ns: limits.work,
            least_ns: limits.on(limits.cpus),
            least_any_cpus_ns: limits.span,
            free: free.collect(),
        }
    }
}
