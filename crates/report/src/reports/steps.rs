//! The report on steps, targets, tests and marks of the build, and on how the time of each was used.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::status;
use serde_json::{json, Value};
use tr_analyze::kinds::{ByKind, TimeKind};
use tr_analyze::model::{Basis, ProcessIx, Times};

use crate::encode::{self, ShownTimes, TimeColumn};
use crate::output::Report;
use tr_failure::Failures;
use tr_insight::path;
use tr_insight::path::kinds;
use tr_insight::processes::exit;
use tr_insight::recordings::imports;
use tr_insight::steps::result::Outcome;
use tr_insight::steps::times::{AllTimes, StepTimes};
use tr_insight::steps::{Step, StepIx, Steps};
use tr_insight::verdicts::parts::WallPart;
use tr_insight::verdicts::{StepVerdict, StepVerdicts};
use tr_insight::views::query::Sort;
use tr_insight::views::view::View;
use tr_programs::steps::Integration;
use tr_text::called::TR;
use tr_text::json::with;
use tr_text::levels::Levels;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table, Title};
use tr_text::units;
use tr_text::words::{OTHER_WAITS, RUN_QUEUE, UNKNOWN};

/// The largest number of steps with a line of their own in the report as text, unless `--top` is given.
const LINES: usize = 30;

/// The largest number of slow tests about which the report on steps has a sentence each.
const SLOWEST_TESTS: usize = 3;

/// The largest number of delayed steps about which the report has a sentence each.
const HELD_STEPS: usize = 5;

/// The integrations into test runners that run all tests in one process, each with the command line by which every test
/// becomes a step of the recording. The paths are those of `make install`, so that a report is the same on every
/// machine.
const EACH_TEST: [(Integration, &str); 2] = [
    (
        Integration::Pytest,
        "PYTHONPATH=/usr/local/share/tr-trace/integrations pytest -p pytest_tr_marks",
    ),
    (
        Integration::Node,
        "node --import /usr/local/share/tr-trace/integrations/node-marks.mjs --test",
    ),
];

pub struct StepsReport<'a> {
    view: View<'a>,
    judged: StepVerdicts<'a>,
    times: AllTimes,
    failures: Failures,
    /// For each step of the recording, whether the user's filters choose it or a step inside it.
    kept: Vec<bool>,
    /// For each step, the chosen steps directly inside it, in the order of the report. The key `None` has the
    /// outermost steps.
    inside: HashMap<Option<StepIx>, Vec<StepIx>>,
}

impl<'a> StepsReport<'a> {
    pub fn new(view: &View<'a>) -> StepsReport<'a> {
        let analysis = view.analysis;
        let judged = StepVerdicts::new(view.recording);
        let path = path::path_of(view);
        let segments = path.map_or(Vec::new(), |path| path.segments);
        // The steps are computed before the failures, because the failures need the verdicts on the steps, which are
        // found together with the steps' times.
        let times = judged.times(&segments, None);
        // Whether a failure matters is decided by all processes, not by the chosen ones alone.
        let everything: Vec<ProcessIx> = analysis.process_ids().collect();
        let failures = Failures::new(view.recording, &everything, Some(&judged));
        let mut report = StepsReport {
            view: *view,
            kept: Vec::new(),
            inside: HashMap::new(),
            judged,
            times,
            failures,
        };
        report.keep();
        report.arrange();
        report
    }

    fn all(&self) -> impl Iterator<Item = (StepIx, &Step, &StepTimes)> {
        let all = self
            .steps()
            .list()
            .iter()
            .zip(&self.times.steps)
            .enumerate();
        all.map(|(at, (step, times))| (at, step, times))
    }

    fn steps(&self) -> &Steps {
        &self.judged.steps
    }

    /// Whether the step failed in a way that matters for the build, and not, for example, as an expected probe.
    fn failed(&self, step: &Step) -> bool {
        self.failures.counts(step)
    }

    fn is_kept(&self, at: StepIx) -> bool {
        self.kept.get(at) == Some(&true)
    }

    fn keep(&mut self) {
        let ask = self.view.ask;
        // If only some processes are chosen, a step without a process is left out unless `--step` names it.
        let everything = self.view.has_all() || ask.step.is_some();
        let is_chosen = self.view.is_chosen();
        let named = ask.step.as_ref().map(|name| self.steps().are_named(name));
        let is_named = |at: StepIx, named: &[bool]| {
            let mut around = self.steps().around(Some(at));
            around.any(|at| named.get(at) == Some(&true))
        };
        let wanted = |at: StepIx, step: &Step| {
            (everything || step.process.is_some_and(|ix| is_chosen[ix]))
                && named.as_ref().is_none_or(|named| is_named(at, named))
                && step.wall() >= ask.min
                && (!ask.failed || self.failed(step))
        };
        let mut kept = vec![false; self.steps().list().len()];
        for (at, ..) in self.all().filter(|(at, step, _)| wanted(*at, step)) {
            for around in self.steps().around(Some(at)) {
                match kept.get_mut(around) {
                    Some(kept) if !*kept => *kept = true,
                    _ => break,
                }
            }
        }
        self.kept = kept;
    }

    /// The figure of a step, such as its wall time in ns, by which `--sort` orders the report on steps. The default
    /// is the wall time.
    fn key(&self, at: StepIx) -> u64 {
        let Some((step, times)) = self.steps().list().get(at).zip(self.times.steps.get(at)) else {
            return 0;
        };
        let of = times.times.unwrap_or_default();
        let spent = times.spent.unwrap_or_default();
        match self.view.ask.sort.unwrap_or(Sort::Wall) {
            Sort::OnCpu | Sort::TreeCpu => of.on_cpu,
            Sort::OffCpu => kinds::waited(&spent).0,
            Sort::RunQueue => spent.of(TimeKind::RunQueue),
            Sort::Sleep => spent.of(TimeKind::Sleep),
            Sort::Blocked => spent.of(TimeKind::Blocked),
            Sort::Unknown => spent.of(TimeKind::Unknown),
            Sort::Wall | Sort::Rss | Sort::Start | Sort::Pid => step.wall(),
        }
    }

    /// Puts the chosen steps into the lists of the steps that contain them, ordered by start or by `--sort`.
    fn arrange(&mut self) {
        let by_start = matches!(self.view.ask.sort, None | Some(Sort::Start | Sort::Pid));
        let kept = self.all().filter(|(at, ..)| self.is_kept(*at));
        let mut order: Vec<(Reverse<u64>, _, StepIx, _)> = kept
            .map(|(at, step, _)| {
                let key = if by_start { 0 } else { self.key(at) };
                (Reverse(key), step.from, at, step.parent)
            })
            .collect();
        order.sort_unstable();
        for (.., at, parent) in order {
            self.inside.entry(parent).or_default().push(at);
        }
    }

    fn inside(&self, at: Option<StepIx>) -> &[StepIx] {
        self.inside.get(&at).map_or(&[], Vec::as_slice)
    }

    /// All chosen steps with their times, each followed by the steps inside it (depth first).
    fn ordered(&self) -> Vec<(StepIx, &Step, &StepTimes)> {
        let mut out = Vec::new();
        let mut open: Vec<StepIx> = self.inside(None).iter().rev().copied().collect();
        while let Some(at) = open.pop() {
            let found = self.steps().list().get(at).zip(self.times.steps.get(at));
            out.extend(found.map(|(step, times)| (at, step, times)));
            open.extend(self.inside(Some(at)).iter().rev());
        }
        out
    }

    fn asked(&self) -> impl Iterator<Item = StepLine<'_>> {
        let rows = self.ordered().into_iter().take(self.view.ask.most());
        rows.map(|row| StepLine::of(row, String::new()))
    }

    /// For each step, whether it has a line in the report's text. At most `most` steps have one: the first steps by
    /// `--sort`, each with the steps that contain it.
    fn shown(&self, most: usize) -> Vec<bool> {
        let mut order: Vec<StepIx> = (0..self.kept.len())
            .filter(|at| self.is_kept(*at))
            .collect();
        order.sort_unstable_by_key(|at| (Reverse(self.key(*at)), *at));
        let mut shown = vec![false; self.kept.len()];
        let mut count = 0;
        for at in order {
            let new = self.steps().around(Some(at));
            let new = new.take_while(|at| shown.get(*at) == Some(&false));
            let new: Vec<StepIx> = new.collect();
            if count + new.len() > most {
                break;
            }
            count += new.len();
            for at in new {
                shown
                    .get_mut(at)
                    .into_iter()
                    .for_each(|is_shown| *is_shown = true);
            }
        }
        shown
    }

    /// The lines of the report's text on steps, each step followed by the steps inside it. At most `most` steps have a
    /// line. The tree's lines before a name take at most `room` columns.
    fn lines(&self, most: usize, room: usize, style: &Style) -> Vec<StepLine<'_>> {
        let shown = self.shown(most);
        let is_shown = |at: &&StepIx| shown.get(**at) == Some(&true);
        let mut out = Vec::new();
        let mut open = vec![StepItem::Inside(None, Levels::default())];
        while let Some(item) = open.pop() {
            let (at, levels) = match item {
                StepItem::Rest(line) => {
                    out.push(line);
                    continue;
                }
                StepItem::Inside(at, levels) => (at, levels),
            };
            let found = at.and_then(|at| self.steps().list().get(at).zip(self.times.steps.get(at)));
            out.extend(at.zip(found).map(|(at, (step, times))| {
                let joints = levels.joints(room, style);
                StepLine::of((at, step, times), joints)
            }));
            let (shown, hidden): (Vec<StepIx>, Vec<StepIx>) =
                self.inside(at).iter().partition(|at| is_shown(at));
            if !hidden.is_empty() {
                let joints = levels.below(false).joints(room, style);
                open.push(StepItem::Rest(self.rest(&hidden, joints)));
            }
            let last = shown.len();
            let below = shown.into_iter().enumerate().map(|(n, at)| {
                let more = n + 1 < last || !hidden.is_empty();
                StepItem::Inside(Some(at), levels.below(more))
            });
            let below: Vec<StepItem<'_>> = below.collect();
            open.extend(below.into_iter().rev());
        }
        out
    }

    /// The line of the report on steps that stands for several steps without a line of their own, with the sums of
    /// their times.
    fn rest(&self, hidden: &[StepIx], joints: String) -> StepLine<'_> {
        let times = hidden.iter().filter_map(|at| self.times.steps.get(*at));
        let on_cpu = times.clone().filter_map(|times| Some(times.times?.on_cpu));
        let is_known = on_cpu.clone().next().is_some();
        let on_path = times.map(|times| times.on_path);
        StepLine {
            step: None,
            hidden: hidden.len(),
            joints,
            on_cpu: is_known.then(|| on_cpu.fold(0, u64::saturating_add)),
            on_path: on_path.fold(0, u64::saturating_add),
        }
    }

    fn outside(&self, out: &mut Page) {
        let outside = &self.times.outside;
        let on_cpu = outside.times.unwrap_or_default().on_cpu;
        let parts = [
            (self.times.outside_wall, " with no step under way"),
            (on_cpu, " of CPU"),
            (outside.on_path, " of the critical path"),
        ];
        let parts = parts.into_iter().filter(|(ns, _)| *ns > 0);
        let parts = parts.map(|(ns, what)| format!("{}{what}", units::time(ns)));
        out.items("In no step   ", parts);
    }

    /// Prints a sentence for each of the slowest tests, leaving out tests that contain others.
    fn slowest(&self, out: &mut Page, style: &Style) {
        let tests = self.steps().tests().filter_map(|(at, step)| {
            let times = self.times.steps.get(at)?;
            let is_known = times.spent.is_some() || step.doubt.is_some();
            (self.is_kept(at) && is_known).then_some((at, step, times))
        });
        let mut tests: Vec<_> = tests.collect();
        tests.sort_unstable_by_key(|(at, step, _)| (Reverse(step.wall()), *at));
        if tests.is_empty() {
            return;
        }
        out.blank();
        let title = Title::top("Slowest tests", SLOWEST_TESTS, tests.len());
        out.painted(Paint::Bold, &title.to_string());
        for (_, step, times) in tests.into_iter().take(SLOWEST_TESTS) {
            let spent = match (times.spent, step.doubt) {
                (None, Some(doubt)) => format!("no figures: {}", imports::no_figures(doubt)),
                (spent, _) => kinds::sentence(&spent.unwrap_or_default()),
            };
            let wall = units::time(step.wall());
            let lead = " ".repeat(9_usize.saturating_sub(units::width(&wall)));
            let room = style.width.saturating_sub(units::width(&spent) + 14);
            let failed = if self.failed(step) { " failed" } else { "" };
            let room = room.saturating_sub(failed.len()).max(20);
            let name = units::shorten(step.name.short(), room) + failed;
            let text = format!("{wall}  {name}: {spent}");
            out.painted_sentence(Paint::bad_if(self.failed(step)), &lead, &text);
        }
    }

    /// Writes a sentence for each of the first [`HELD_STEPS`] steps that failed or were slow while something delayed
    /// them: the failed ones before the slow ones, and long ones before short ones.
    fn held(&self, out: &mut Page, style: &Style) {
        let reported = self.all().filter(|(at, ..)| self.is_kept(*at));
        let reported = reported
            .filter_map(|(at, step, _)| Some((at, step, self.judged.verdicts().reported(at)?)));
        let mut reported: Vec<_> = reported.collect();
        reported.sort_unstable_by_key(|(at, step, _)| {
            (Reverse(self.failed(step)), Reverse(step.wall()), *at)
        });
        if reported.is_empty() {
            return;
        }
        out.blank();
        let title = Title::top("Failed or slow while held back", HELD_STEPS, reported.len());
        out.painted(Paint::Bold, &title.to_string());
        for (_, step, verdict) in reported.into_iter().take(HELD_STEPS) {
            let name = units::shorten(step.name.short(), style.width.max(40) / 2);
            let failed = if self.failed(step) { " failed" } else { "" };
            let text = format!("{name}{failed}: {}", verdict.text());
            out.wrapped(Paint::bad_if(self.failed(step)), "    ", &text);
        }
    }

    /// Prints a note for each result file of another tool (`--with`) in which some tests have no known time, or only an
    /// approximate one.
    fn without_figures(&self, out: &mut Page) {
        let imports = &self.view.recording.imports.files;
        for words in imports.iter().filter_map(imports::incomplete) {
            out.wrapped(Paint::Plain, "    ", &format!("With {words}"));
        }
    }

    /// If the build used a test runner that runs all tests in one process, and no step has the result of a test yet,
    /// prints how this runner can make each test a step of the recording.
    fn each_test(&self, out: &mut Page) {
        let all = || self.all().map(|(_, step, _)| step);
        if all().any(|step| step.result.is_some()) {
            return;
        }
        for (integration, how) in EACH_TEST {
            if all().any(|step| step.integration == Some(integration)) {
                out.line("For each test (docs/steps.md#marks-from-inside-a-program):");
                out.line(&format!("    {how}"));
            }
        }
    }

    /// The table of the report on steps. A `wide` table has more columns.
    fn table(&self, wide: bool) -> Table<'_, StepLine<'_>> {
        let known =
            |(.., times): (_, _, &StepTimes)| times.spent.map(|spent| spent.of(TimeKind::Unknown));
        let unknown = self.all().any(|row| known(row).is_some_and(|ns| ns > 0));
        let analysis = self.view.analysis;
        let (whole, basis) = (analysis.wall(), analysis.basis());
        let table = self.data(Table::new("", |line: &StepLine<'_>| self.name(line)));
        let spent = |kind: TimeKind, of: fn(ByKind) -> Cell| {
            move |line: &StepLine<'_>| match line.step {
                Some((_, step, times)) if !step.is_moment() => {
                    let known = times.spent.filter(|_| kinds::is_known(kind, basis));
                    Cell::known(known, of)
                }
                _ => Cell::Empty,
            }
        };
        table
            .column("wall", |line| match line.step {
                None => Cell::Empty,
                Some((_, step, _)) if step.is_moment() => Cell::Note("mark"),
                Some((_, step, _)) if step.ended && !step.started_before => Cell::Time(step.wall()),
                Some((_, step, _)) => Cell::AtLeast(step.wall()),
            })
            .column("CPU", |line| match line.step {
                Some((_, step, _)) if step.is_moment() => Cell::Empty,
                _ => Cell::known(line.on_cpu, Cell::Time),
            })
            .column("CPUs", |line| {
                let wall = line.step.map_or(0, |(_, step, _)| step.wall());
                let cpu = line.on_cpu.filter(|_| wall > 0);
                let busy = cpu.map(|cpu| cpu as f64 / wall as f64);
                busy.map_or(Cell::Empty, |busy| Cell::from(format!("{busy:.2}")))
            })
            .shown(wide)
            .column(
                RUN_QUEUE,
                spent(TimeKind::RunQueue, |spent| {
                    Cell::Time(spent.of(TimeKind::RunQueue))
                }),
            )
            .column(
                OTHER_WAITS,
                spent(TimeKind::Sleep, |spent| match kinds::waited(&spent) {
                    (0, _) => Cell::Time(0),
                    (ns, what) => Cell::from(format!("{} {}", units::time(ns), short(what))),
                }),
            )
            .column(
                UNKNOWN,
                spent(TimeKind::Unknown, |spent| {
                    Cell::Time(spent.of(TimeKind::Unknown))
                }),
            )
            .shown(wide && unknown)
            .column("path", move |line| match line.step {
                Some((_, step, _)) if !step.has_path() => Cell::Unknown,
                _ => Cell::Share(line.on_path, whole),
            })
            .few()
            .column("exit", |line| {
                let status = line.step.and_then(|(_, step, _)| step.status);
                match status {
                    Some(status) if exit::failed(Some(status)) => status::cell(Some(status), false),
                    _ => Cell::Empty,
                }
            })
            .paint(|line| match line.step {
                Some((_, step, _)) => Paint::bad_if(self.failed(step)),
                None => Paint::Dim,
            })
    }

    /// Adds the columns of JSON and CSV to the table of the report on steps.
    fn data<'t>(&'t self, table: Table<'t, StepLine<'t>>) -> Table<'t, StepLine<'t>> {
        let basis = self.view.analysis.basis();
        let table = table
            .data("id", |line| line.step.map(|(at, ..)| at))
            .data("parent", step(|step| json!(step.parent)))
            .data("depth", step(|step| json!(step.depth)))
            .data("kind", step(|step| json!(step.kind.name())))
            .phrase_data("name", |line| {
                line.step.map(|(_, step, _)| step.name.clone())
            })
            .data("pid", |line| {
                let process = line.step.and_then(|(_, step, _)| step.process);
                process.map(|ix| self.view.analysis.process(ix).pid.0)
            })
            .data("start_ns", |line| {
                line.step.map(|(_, step, _)| self.view.since(step.from))
            })
            .data("wall_ns", step(|step| json!(step.wall())))
            .data("end_ns", |line| {
                let ended = line.step.filter(|(_, step, _)| step.ended);
                ended.map(|(_, step, _)| self.view.since(step.from) + step.wall())
            })
            .json_data("started_before", step(|step| json!(step.started_before)))
            .json_data("moment", step(|step| json!(step.is_moment())));
        let status = |line: &StepLine<'_>| (line.step.and_then(|(_, step, _)| step.status), false);
        let table = status::add_columns(table, "", status)
            .shown(false)
            .data("result", step(|step| json!(step.result)))
            .json_data("place_error_ns", step(|step| json!(step.place_error)))
            .json_data(
                "no_figures",
                step(|step| json!(step.doubt.map(imports::no_figures))),
            )
            .data("processes", work(|times| times.processes));
        let table = summed(
            table,
            |line| line.step.and_then(|(.., times)| times.times.as_ref()),
            basis,
        );
        let on_path = work(|times| times.on_path);
        let table = table.data("critical_path_ns", move |line| {
            let is_known = line.step.is_some_and(|(_, step, _)| step.has_path());
            on_path(line).filter(|_| is_known)
        });
        let table = self.judged(table);
        let spent = |line: &StepLine<'_>| line.step.and_then(|(.., times)| times.spent);
        let table = table.json_data("spent", move |line| {
            let uses = |spent: ByKind| {
                let uses = kinds::of_steps().map(|column| {
                    let ns = kinds::is_known(column, basis).then(|| spent.of(column));
                    (format!("{}_ns", column.name()), ns.into())
                });
                Value::Object(uses.collect())
            };
            json!(spent(line).map(uses))
        });
        kinds::of_steps().fold(table, |table, what| {
            let key = format!("path_{}_ns", what.name());
            table.csv_data(key, move |line| {
                let known = spent(line).filter(|_| kinds::is_known(what, basis));
                known.map(|column| column.of(what))
            })
        })
    }

    /// Adds the columns of JSON and CSV with the verdicts on steps (why they were slow or failed) to the table of
    /// steps.
    fn judged<'t>(&'t self, table: Table<'t, StepLine<'t>>) -> Table<'t, StepLine<'t>> {
        let of = |line: &StepLine<'_>| line.step.and_then(|(at, ..)| self.judged.verdicts().of(at));
        table
            .json_data("verdict", move |line| of(line).map(verdict_json))
            .csv_data("verdict", move |line| of(line).map(StepVerdict::name))
            .csv_data("verdict_ns", move |line| of(line).map(|verdict| verdict.ns))
            .csv_data("had_cpu_ns", move |line| {
                of(line).map(|figures| figures.parts.get(WallPart::Work))
            })
            .csv_data("wanted_cpu_ns", move |line| {
                of(line).map(|figures| figures.parts.wanted())
            })
            .csv_data("held_back", move |line| {
                of(line).map(|verdict| verdict.is_reported)
            })
    }

    fn name(&self, line: &StepLine<'_>) -> String {
        let joints = &line.joints;
        let Some((_, step, _)) = line.step else {
            return format!("{joints}{} more", units::count(line.hidden as u64));
        };
        if step.is_moment() {
            let at = units::at(self.view.since(step.from));
            return format!("{joints}{} at {at} s", step.name.short());
        }
        let name = step.name.short();
        let result = step.result.as_ref();
        match result.filter(|result| result.outcome() != Outcome::Passed) {
            None => format!("{joints}{name}"),
            Some(result) => format!("{joints}{name} ({})", result.word()),
        }
    }
}

/// Turns a function that returns a value of a step into one for the lines of the report on steps. Lines that stand
/// for several steps have no value.
fn step(of: fn(&Step) -> Value) -> impl Fn(&StepLine<'_>) -> Option<Value> {
    move |line| line.step.map(|(_, step, _)| of(step))
}

/// Turns a function that returns a sum over a step's processes or threads into one for the lines of the report on
/// steps. A line has no value if it stands for several steps, or if it is not known what the step's threads did.
fn work(of: fn(&StepTimes) -> u64) -> impl Fn(&StepLine<'_>) -> Option<u64> {
    move |line| {
        let own = line.step.filter(|(_, step, _)| step.has_work);
        own.map(|(.., times)| of(times))
    }
}

/// Adds the columns with times of all threads, such as CPU time, to a table in the report on steps. Unknown times
/// are `null`.
fn summed<'a, R: 'a>(
    table: Table<'a, R>,
    of: fn(&R) -> Option<&Times>,
    basis: Basis,
) -> Table<'a, R> {
    let seen = ShownTimes {
        basis,
        on_cpu: false,
        waits: false,
        unknown: false,
        spare: false,
    };
    let columns = [
        TimeColumn::OnCpu,
        TimeColumn::RunQueue,
        TimeColumn::Sleep,
        TimeColumn::Blocked,
        TimeColumn::Unknown,
    ];
    let table = encode::times(table, of, seen, &columns);
    match basis {
        Basis::Events => table,
        _ => table
            .data("asleep_or_blocked_ns", move |row| {
                of(row).and_then(Times::asleep_or_blocked_known)
            })
            .json_only(),
    }
}

type StepRow<'t> = (StepIx, &'t Step, &'t StepTimes);

enum StepItem<'t> {
    /// A step whose inner steps still have to get their lines; `None` stands for the outermost steps.
    Inside(Option<StepIx>, Levels),
    Rest(StepLine<'t>),
}

/// A line of the report on steps, which is about one step, or about several steps that have no line of their own.
struct StepLine<'t> {
    step: Option<StepRow<'t>>,
    /// The number of steps that this line stands for because they have no line of their own; 0 for the line of a
    /// single step.
    hidden: usize,
    joints: String,
    /// The CPU time in nanoseconds of the step or steps that this line is about; `None` if it is not known.
    on_cpu: Option<u64>,
    /// The time in nanoseconds that the step or steps of this line have on the critical path.
    on_path: u64,
}

impl<'t> StepLine<'t> {
    fn of(row: StepRow<'t>, joints: String) -> StepLine<'t> {
        let (.., times) = row;
        StepLine {
            step: Some(row),
            hidden: 0,
            joints,
            on_cpu: times.times.map(|times| times.on_cpu),
            on_path: times.on_path,
        }
    }
}

fn short(kind: TimeKind) -> &'static str {
    match kind {
        TimeKind::Others => "others",
        TimeKind::Outside => "outside",
        _ => kinds::title(kind),
    }
}

impl Report for StepsReport<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        if self.steps().list().is_empty() {
            let none = format!(
                "No steps: no program here is known as one, and no mark was set ({TR} mark)"
            );
            out.line(&none);
            return out;
        }
        let room = style.width.saturating_sub(50) / 2;
        let lines = self.lines(self.view.ask.top.unwrap_or(LINES), room, style);
        let kept = self.kept.iter().filter(|kept| **kept).count() as u64;
        let title = units::plural(kept, "step", "steps");
        let table = self.table(style.width >= 90).titled(title);
        out.table(&table, lines);
        self.outside(&mut out);
        self.slowest(&mut out, style);
        self.held(&mut out, style);
        self.without_figures(&mut out);
        self.each_test(&mut out);
        out
    }

    fn warning(&self, _text: bool) -> Option<String> {
        self.steps().warning()
    }

    fn json(&self) -> Option<Value> {
        let outside = &self.times.outside;
        let own = json!({
            "wall_ns": self.times.outside_wall,
            "processes": outside.processes,
            "critical_path_ns": outside.on_path,
        });
        let sums: Table<'_, Times> = Table::unnamed();
        let sums = summed(sums, |times| Some(times), self.view.analysis.basis());
        Some(json!({
            "steps": self.table(true).rows(self.asked()),
            "outside": with(own, sums.json(&outside.times.unwrap_or_default())),
        }))
    }

    fn sheet(&self) -> Sheet {
        self.table(true).sheet(self.asked())
    }
}

/// The verdict on a step as an object in JSON.
fn verdict_json(verdict: &StepVerdict) -> Value {
    let by = verdict.by.iter();
    let by: Vec<Value> = by
        .map(|(name, ns)| json!({ "name": name, "ns": ns }))
        .collect();
    json!({
        "is": verdict.name(),
        "ns": verdict.ns,
        "had_cpu_ns": verdict.parts.get(WallPart::Work),
        "wanted_cpu_ns": verdict.parts.wanted(),
        "suite_percent": verdict.median,
        "by": by,
        "held_back": verdict.is_reported,
    })
}
