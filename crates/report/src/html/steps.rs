//! Makes the HTML report's table of steps, tests and marks (`tr mark`), which shows the same facts as
//! `tr analyze --report steps`.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::contention::Contention;
use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::{Analysis, ProcessIx};
use tr_programs::steps::StepKind;

use crate::html::digits::Digits;
use tr_failure::Failures;
use tr_insight::path::kinds;
use tr_insight::processes::{exit, label};
use tr_insight::recordings::imports;
use tr_insight::steps::result::StepResult;
use tr_insight::steps::times::{CoursePart, Fineness, StepTimes};
use tr_insight::steps::{Step, StepTitle};
use tr_insight::verdicts::{StepVerdict, StepVerdicts};
use tr_insight::Recording;
use tr_text::strings::Strings;
use tr_text::units;

/// The largest number of steps in an HTML report.
const STEPS: usize = 20_000;
/// The largest number of time slices in which the HTML report shows how a step's wall time was used: for one step and,
/// approximately, for all steps together.
const FINENESS: Fineness = Fineness {
    of_step: 64,
    of_all: 4_000,
};
/// The HTML report shows how a step's wall time was used in thousandths of the whole time.
const WHOLE_TIME: u64 = 1000;

/// A row about a build's step in the HTML report: the step and the facts about it that other analyses have found.
struct StepRow<'a> {
    step: &'a Step,
    /// The title of the step in the HTML report, if it differs from the step's name.
    title: Option<&'a StepTitle<'a>>,
    /// The row, in the table of steps, of the step that contains this step; `None` if no step in the table contains it.
    parent: Option<u32>,
    times: &'a StepTimes,
    /// How the step's wall time was used, from its start to its end: on a CPU, waiting for the disk, and so on.
    course: &'a [CoursePart],
    /// The part of the step's wall time in ns in which none of the steps inside it was running; `None` if it
    /// contains no steps.
    unexplained: Option<u64>,
    /// The verdict on the step: the part of its wall time that stands out; `None` if nothing does.
    verdict: Option<&'a StepVerdict>,
    /// The rows of the steps that make a file which occurs in this step's command line.
    after: Vec<u32>,
}

columns!(Steps(analysis: &Analysis, row: &StepRow<'_>, strings: &mut Strings) {
    name: u32 = strings.add(row.step.name.short().to_owned()),
    // The part of the name that is shown after the name of the step around it; `None` if the whole name is shown.
    title: Option<u32> = row.title.map(|title| strings.add(title.phrase().short().to_owned())),
    // The brief name, for places where the name has no room.
    brief: Option<u32> = row.step.brief.clone().map(|brief| strings.add(brief)),
    kind: u32 = strings.add(row.step.kind.title().to_owned()),
    parent: Option<u32> = row.parent,
    process: Option<u32> = row.step.process.map(|ix| ix.0),
    from: u64 = Digits::of(analysis).place(row.step.from.since(analysis.meta.start)),
    to: u64 = Digits::of(analysis).place(row.step.to.since(analysis.meta.start)),
    // The largest possible error of the step's start and end, if another tool reported them; `None` if the error is
    // negligible or not known.
    error: Option<u64> = place_error_of(row.step),
    // Whether the step began before or ended after the recording, so that its wall time is a lower bound.
    open: u8 = (row.step.started_before || !row.step.ended).into(),
    failed: u8 = row.step.failed().into(),
    // The reported result of the step, or its exit status if that is a failure.
    end: Option<u32> = end(row.step).map(|text| strings.add(text)),
    processes: u64 = row.times.processes,
    on_cpu: Option<u64> = row.times.times.and_then(|times| times.on_cpu_known()).map(|ns| Digits::of(analysis).amount(ns)),
    on_path: u64 = row.times.on_path,
    // How the step's wall time was used: the time for each column of `kinds`; `None` for a time that is not known.
    uses: Vec<Option<u64>> = uses(analysis, row),
    // How the step's wall time was used from its start to its end: a column of `kinds`, its share in thousandths, the
    // next column, its share, and so on; empty if there is only one column.
    course: Vec<u32> = course(row.course),
    // The part of the step's wall time in which none of the steps inside it was running; `None` if it contains no
    // steps.
    unexplained: Option<u64> = row.unexplained,
    verdict: Option<u32> = row.verdict.map(|verdict| strings.add(verdict.part.title().to_owned())),
    // The verdict on a step that failed or was slow while something delayed it.
    held: Option<u32> = row.verdict.filter(|verdict| verdict.is_reported).map(|verdict| strings.add(verdict.text())),
    spent: u32 = strings.add(spent(row)),
    after: Vec<u32> = row.after.clone(),
});

/// The possible error in ns of a step's start and end, if it is worth mentioning: at least a hundredth of the step's
/// wall time.
fn place_error_of(step: &Step) -> Option<u64> {
    let error = step.place_error.filter(|error| *error > 0)?;
    (error.saturating_mul(100) >= step.wall()).then_some(error)
}

fn end(step: &Step) -> Option<String> {
    let status = step.status.filter(|status| exit::failed(Some(*status)));
    let result = step.result.clone().map(StepResult::into_word);
    result.or_else(|| status.map(exit::words))
}

fn uses(analysis: &Analysis, row: &StepRow<'_>) -> Vec<Option<u64>> {
    let (basis, digits) = (analysis.basis(), Digits::of(analysis));
    let spent = row.times.spent.filter(|_| !row.step.is_moment());
    let known = |spent| {
        kinds::COLUMNS
            .iter()
            .map(move |column| column.known(&spent, basis).map(|ns| digits.amount(ns)))
    };
    spent.map_or_else(Vec::new, |spent| known(spent).collect())
}

/// How a step's wall time was used from its start to its end, as pairs of numbers: the index of a column that stands
/// for a use (such as on a CPU), and the share of this use in thousandths. A share that rounds to 0 is added to the
/// share after it. The result is empty if there is only one pair.
fn course(parts: &[CoursePart]) -> Vec<u32> {
    let whole = parts.iter().map(|part| u128::from(part.ns)).sum::<u128>();
    let (mut out, mut end, mut drawn) = (Vec::new(), 0u128, 0u32);
    for part in parts {
        end += u128::from(part.ns);
        let until = u32::try_from(end * u128::from(WHOLE_TIME) / whole.max(1)).unwrap_or_default();
        let column = kinds::column_of(part.kind) as u32;
        let share = until.saturating_sub(drawn);
        drawn = drawn.max(until);
        let last = out.len().checked_sub(2);
        match last.and_then(|last| out.get_mut(last..)) {
            Some([before, length]) if *before == column => *length += share,
            _ if share > 0 => out.extend([column, share]),
            _ => {}
        }
    }
    if out.len() == 2 {
        out.clear();
    }
    out
}

/// A text about a step for the HTML report: its result, how its wall time was used, and how exactly its start and end
/// are known.
fn spent(row: &StepRow<'_>) -> String {
    let result = row.step.result.clone().map(StepResult::into_word);
    let spent = row.times.spent.filter(|_| !row.step.is_moment());
    let spent = spent.map(|spent| kinds::sentence(&spent));
    let error =
        place_error_of(row.step).map(|error| format!("placed within ± {}", units::time(error)));
    let doubt = row.step.doubt.map(imports::no_figures);
    let doubt = doubt.map(|doubt| format!("no figures: {doubt}"));
    let held = row.verdict.filter(|verdict| verdict.is_reported);
    let held = held.map(StepVerdict::text);
    let parts: Vec<String> = result
        .into_iter()
        .chain(error)
        .chain(spent)
        .chain(doubt)
        .chain(held)
        .collect();
    parts.join(" · ")
}

/// The longest steps of a recording, which get a row in the HTML report. A step comes before the steps inside it.
pub struct Chosen<'a> {
    pub judged: StepVerdicts<'a>,
    rows: Vec<usize>,
    /// For each step of the recording, its row on the page. A step that the page does not show has the row of the
    /// innermost shown step around it.
    row_of: Vec<Option<u32>>,
}

impl<'a> Chosen<'a> {
    pub fn new(recording: &'a Recording) -> Chosen<'a> {
        let mut judged = StepVerdicts::new(recording);
        let list = judged.steps.list();
        let mut rows: Vec<usize> = (0..list.len()).collect();
        let wall = |at: &usize| list.get(*at).map_or(0, Step::wall);
        rows.sort_by_key(|at| (std::cmp::Reverse(wall(at)), *at));
        rows.truncate(STEPS);
        rows.sort_unstable();
        if rows.len() < list.len() {
            // Lists of failures and the medians of test suites also need steps that have no row on the page.
            let needed = |step: &Step| step.kind == StepKind::Test || step.failed();
            let others = (0..).zip(list).filter(|(_, step)| needed(step));
            let walked: Vec<usize> = others.map(|(at, _)| at).chain(rows.clone()).collect();
            judged.steps.walk_only(walked.into_iter());
        }
        let steps = &judged.steps;
        let mut row_of: Vec<Option<u32>> = Vec::with_capacity(steps.list().len());
        // The list has an outer step before the steps inside it, so the row of the outer step is already known.
        for (at, step) in steps.list().iter().enumerate() {
            let own = rows.binary_search(&at).ok();
            let own = own.and_then(|row| u32::try_from(row).ok());
            let around = || *row_of.get(step.parent?)?;
            row_of.push(own.or_else(around));
        }
        Chosen {
            judged,
            rows,
            row_of,
        }
    }

    /// The name of the first step that runs tests without showing each of them as a step, although its test runner
    /// could report them; `None` if there is none.
    pub fn hidden_tests(&self, analysis: &Analysis) -> Option<String> {
        let list = self.judged.steps.list();
        // Only tests from a JUnit report can have inexact times. A user who has imported such a report already knows
        // how to make the runner report its tests, so no step is returned.
        let is_placed = |step: &Step| step.doubt.is_some() || step.place_error != Some(0);
        if list
            .iter()
            .any(|step| step.kind == StepKind::Test && is_placed(step))
        {
            return None;
        }
        let holds: BTreeSet<usize> = list.iter().filter_map(|step| step.parent).collect();
        let chosen = self.rows.iter().filter(|at| !holds.contains(at));
        let chosen = chosen.filter_map(|at| list.get(*at));
        let mut chosen = chosen.filter(|step| step.wall() > 0);
        let hidden = chosen.find(|step| {
            let program = step.process.map(|ix| label::program(analysis.process(ix)));
            let tool = program.and_then(|program| program.tool());
            tool.is_some_and(|tool| tool.tells_tests)
        });
        hidden.map(|step| step.name.short().to_owned())
    }

    /// The row, in the HTML report's table of steps, of the innermost step that a process was in when it ended.
    pub fn row_of(&self, analysis: &Analysis, process: ProcessIx) -> Option<u32> {
        let step = self.judged.steps.of_process(analysis, process)?;
        *self.row_of.get(step)?
    }

    /// The step that has this row in the HTML report's table of steps.
    pub fn of_row(&self, row: u32) -> Option<&Step> {
        let at = self.rows.get(usize::try_from(row).ok()?)?;
        self.judged.steps.list().get(*at)
    }

    /// For each row of the HTML report's table of steps, the rows of the steps on which it depends: they made a file
    /// that the step's command line names. Steps that contain other steps are left out.
    fn after(
        &self,
        analysis: &Analysis,
        needs: &[(ProcessIx, Vec<ProcessIx>)],
    ) -> BTreeMap<u32, BTreeSet<u32>> {
        let row = |process: &ProcessIx| self.row_of(analysis, *process);
        let list = self.judged.steps.list();
        let around = |at: &usize| *self.row_of.get(list.get(*at)?.parent?)?;
        let holds: BTreeSet<u32> = self.rows.iter().filter_map(around).collect();
        let mut after: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (process, needs) in needs {
            let Some(own) = row(process).filter(|own| !holds.contains(own)) else {
                continue;
            };
            let others = needs.iter().filter_map(row);
            let others = others.filter(|other| *other != own && !holds.contains(other));
            after.entry(own).or_default().extend(others);
        }
        after
    }

    pub fn columns(
        &self,
        analysis: &Analysis,
        path: Option<&CriticalPath>,
        needs: &[(ProcessIx, Vec<ProcessIx>)],
        contention: Option<Contention>,
        strings: &mut Strings,
    ) -> Steps {
        let mut after = self.after(analysis, needs);
        let steps = &self.judged.steps;
        let path = path.map_or(&[][..], |path| &path.segments);
        let times_of = self.judged.times_with(path, Some(FINENESS), contention);
        let unexplained = steps.unexplained();
        let inside = steps.list().iter().filter(|step| step.to > step.from);
        let holds: BTreeSet<usize> = inside.filter_map(|step| step.parent).collect();
        let verdicts = self.judged.verdicts();
        let titles = steps.titles();
        let mut columns = Steps::default();
        for (row, at) in (0..).zip(&self.rows) {
            if let Some((step, times)) = steps.list().get(*at).zip(times_of.steps.get(*at)) {
                let parent = step.parent.and_then(|parent| *self.row_of.get(parent)?);
                let row = StepRow {
                    step,
                    title: titles.get(*at).filter(|title| title.around.is_some()),
                    parent,
                    times,
                    course: times_of.courses.get(*at).map_or(&[], Vec::as_slice),
                    unexplained: unexplained.get(*at).copied().filter(|_| holds.contains(at)),
                    verdict: verdicts.of(*at),
                    after: after.remove(&row).unwrap_or_default().into_iter().collect(),
                };
                columns.push(analysis, &row, strings);
            }
        }
        columns
    }

    /// Removes the mark of failure from steps in the page's table whose failures do not matter, for example because
    /// a configure script expects them.
    pub fn keep_failures_that_count(&self, columns: &mut Steps, failures: &Failures) {
        for (at, failed) in self.rows.iter().zip(&mut columns.failed) {
            let step = self.judged.steps.list().get(*at);
            *failed = step.is_some_and(|step| failures.counts(step)).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::processes::says;
    use tr_analyze::kinds::TimeKind;
    use tr_analyze::model::Process;
    use tr_format::event::{Argv, Ktime};

    #[test]
    fn a_course_is_given_in_thousandths() {
        let part = |kind, ns| CoursePart { kind, ns };
        let all = [
            part(TimeKind::OnCpu, 2_000),
            part(TimeKind::Disk, 1),
            // The time kinds "memory" and "others" are shown in one column, so their shares of the step's time are
            // added up.
            part(TimeKind::Memory, 500),
            part(TimeKind::Others, 500),
            part(TimeKind::RunQueue, 999),
        ];
        assert_eq!(course(&all), [0, 500, 5, 250, 1, 250]);
        let sum: u32 = course(&all).iter().skip(1).step_by(2).sum();
        assert_eq!(u64::from(sum), WHOLE_TIME);
        assert!(course(&[part(TimeKind::Memory, 5), part(TimeKind::Others, 5)]).is_empty());
        assert!(course(&[]).is_empty());
    }

    fn step(wall: u64) -> Step {
        Step {
            name: "test".into(),
            brief: None,
            stable_name: None,
            file: None,
            kind: StepKind::Test,
            parent: None,
            depth: 0,
            from: Ktime(1_000),
            to: Ktime(1_000 + wall),
            started_before: false,
            ended: true,
            process: None,
            thread: None,
            has_work: true,
            place_error: None,
            doubt: None,
            status: None,
            result: None,
            is_worker: false,
            integration: None,
        }
    }

    #[test]
    fn a_place_has_an_error_where_that_is_a_part_of_the_step() {
        let error = |place_error: Option<u64>, wall: u64| {
            place_error_of(&Step {
                place_error,
                ..step(wall)
            })
        };
        assert_eq!(error(Some(544), 1_000), Some(544));
        assert_eq!(error(Some(10), 1_000), Some(10));
        assert_eq!(error(Some(9), 1_000), None, "below a hundredth");
        assert_eq!(error(Some(0), 0), None, "by hardly anything");
        assert_eq!(error(None, 1_000), None, "not known");
    }

    #[test]
    fn a_label_says_its_step() {
        for (line, name, want) in [
            ("cc1 -quiet src/lvm.c -o /tmp/a.s", "obj/lvm.o", true),
            ("ld -o lua a.o", "lua", true),
            ("sleep 1", "sleep 1 (forked)", true),
            ("as -o /tmp/a.o /tmp/a.s", "obj/lvm.o", false),
            ("cc1 -quiet src/lvm.c -o /tmp/a.s", "obj/ldo.o", false),
        ] {
            let process = Process {
                argv: Argv::from_args(line.split(' ')),
                ..Process::default()
            };
            let brief = name.rsplit_once('/').map(|(_, brief)| brief.to_owned());
            let step = Step {
                name: name.into(),
                brief,
                ..step(1)
            };
            assert_eq!(says(&process, &step), want, "{line} {name}");
        }
    }
}
