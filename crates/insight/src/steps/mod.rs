//! Finds the steps of a recording, which are its named parts. A step is an execution of a program with all processes
//! that it starts (a make target, a compilation, a test), a thread that runs a test, or a span between two marks. A
//! step can contain other steps. The rules that name executions are in `rules`.
//!
//! Steps come from the trace, and from the files of other tools whose spans an importer has added to the analysis.

mod build;
mod names;
mod recipe;
pub mod result;
mod spans;
pub mod times;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, Doubt, Imported, ProcessIx, ThreadIx};
use tr_format::event::Ktime;
use tr_programs::steps::{Integration, StepKind};

use self::result::{Outcome, StepResult};
use crate::processes::exit;
use crate::recordings::imports::TOLERATED_PART;
use tr_text::phrase::Phrase;
use tr_text::units;

/// The index of a step in the list of the recording's steps ([`Steps::list`]).
pub type StepIx = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub name: Phrase,
    /// The brief name of the step, for places where its name has no room: the part of the name that distinguishes the
    /// step from its neighbours, without directories, such as `mod5.o` for `build/mod5.o`. `None` if the whole name has
    /// no such part.
    pub brief: Option<String>,
    /// The part of the name that is equal in all runs of a CI job, if it is not the whole name
    /// ([`FoundStep::stable_name`](tr_programs::steps::FoundStep::stable_name)).
    pub stable_name: Option<&'static str>,
    /// The path of the file that the test is in, as the test runner or the command line has it, if the step is a test
    /// whose file is known.
    pub file: Option<String>,
    pub kind: StepKind,
    /// The step that directly contains this step; `None` for an outermost step. The list of steps has the containing
    /// step before this step.
    pub parent: Option<StepIx>,
    /// The number of steps that contain this step.
    pub depth: usize,
    pub from: Ktime,
    /// The end of the step, or the end of the analyzed time if the step had not ended by then. For a step that is a
    /// moment without length, `to` equals `from`.
    pub to: Ktime,
    pub started_before: bool,
    /// Whether the step ended inside the analyzed span.
    pub ended: bool,
    /// The process that executed the step, or in which the step's marks (its begin and end events) were set.
    pub process: Option<ProcessIx>,
    /// The thread at which the step's own critical path ends: the thread that ran the step if it belongs to one thread,
    /// the last thread to end of an executed program, or the main thread of the process in which the step was marked.
    pub thread: Option<ThreadIx>,
    /// Whether it is known what the step's threads did. This is not known in four cases: the step overlaps with another
    /// span of its process and neither is inside the other, its process is not known, its place in time is not proven,
    /// or it is inside [`DEEPEST_STEP`] or more other steps.
    pub has_work: bool,
    /// The largest error of the step's beginning or end in nanoseconds; `None` if its place in time is not known. A
    /// step with a large error is shown at its place, but without figures.
    pub place_error: Option<u64>,
    /// For a step that comes from another tool's file and has no figures, the reason for the lack of figures; otherwise
    /// `None`.
    pub doubt: Option<Doubt>,
    /// The raw `wait` status of the step's process, if the step ended together with the process.
    pub status: Option<u32>,
    /// The result that a program gave for the step in its mark (an event that the program sent to the recorder), or
    /// that another tool's file has.
    pub result: Option<StepResult>,
    /// Whether the step's process is a worker of a test runner. A worker runs tests and is not a test itself.
    pub is_worker: bool,
    /// The integration that would make each test of the step's process a step, if the process is a test runner that has
    /// one.
    pub integration: Option<Integration>,
}

impl Step {
    /// The name under which the step is compared with steps of other runs.
    pub fn stable_name(&self) -> Phrase {
        self.stable_name
            .map_or_else(|| self.name.clone(), Phrase::from)
    }

    pub fn wall(&self) -> u64 {
        self.to.since(self.from)
    }

    /// Whether the step's part of the critical path is known: there is no doubt about its process and time, and the
    /// error of its place in time is at most a tenth of its length.
    pub fn has_path(&self) -> bool {
        let is_near = |error: u64| error == 0 || error <= self.wall() / TOLERATED_PART;
        self.doubt.is_none() && self.place_error.is_some_and(is_near)
    }

    /// Whether the step is a moment: a point in time that a program marked, without a length.
    pub fn is_moment(&self) -> bool {
        self.kind == StepKind::Mark && self.ended && self.from == self.to
    }

    /// Whether the status or the result of the step shows that it failed.
    pub fn failed(&self) -> bool {
        let outcome = self.result.as_ref().map(StepResult::outcome);
        let is_bad = matches!(outcome, Some(Outcome::Failed | Outcome::TimedOut));
        is_bad || exit::failed(self.status) && !self.skipped()
    }

    /// Whether the step is a test that was skipped. A test that cannot run exits with the status 77 by convention
    /// (automake, "Scripts-based Testsuites"; meson).
    fn skipped(&self) -> bool {
        self.kind == StepKind::Test && self.status.and_then(exit::code) == Some(77)
    }
}

/// The names by which people distinguish a step from other steps. Steps with equal titles are shown as one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepTitle<'a> {
    /// The name of the step around this step, if another step with the same name is inside a different step.
    pub around: Option<&'a Phrase>,
    pub name: &'a Phrase,
}

impl StepTitle<'_> {
    /// The title in words: the name of the step around this step comes first.
    pub fn phrase(&self) -> Phrase {
        match self.around {
            Some(around) => Phrase::with([around, self.name], |[around, name]| {
                format!("{around} › {name}")
            }),
            None => self.name.clone(),
        }
    }
}

/// The largest number of levels of steps inside each other. A step that is inside this many steps or more is listed
/// without figures. The time of a step is also added to each step around it, and a program can mark a hundred thousand
/// spans inside each other, so without a limit the sums would take too long.
pub const DEEPEST_STEP: usize = 64;

/// A time, and the innermost step that a thread is in from this time on (`None` for no step).
type Since = (Ktime, Option<StepIx>);

/// The steps that a thread is in, in the order of time. The threads of one process share the list of the process's
/// steps.
#[derive(Clone, Debug, Default)]
struct ThreadSteps {
    first: Option<Since>,
    /// The list of steps that the threads of the process share. The first `skipped` entries of the list are before the
    /// beginning of this thread.
    shared: Arc<[Since]>,
    skipped: usize,
}

impl ThreadSteps {
    fn one(from: Ktime, step: Option<StepIx>) -> ThreadSteps {
        ThreadSteps {
            first: Some((from, step)),
            ..ThreadSteps::default()
        }
    }

    fn all(shared: Arc<[Since]>) -> ThreadSteps {
        ThreadSteps {
            first: None,
            shared,
            skipped: 0,
        }
    }

    /// The steps of a thread that begins at a time. The thread's steps are the entries of the process's list from that
    /// time on.
    fn from(time: Ktime, shared: Arc<[Since]>) -> ThreadSteps {
        ThreadSteps {
            first: Some((time, at(&shared, time))),
            skipped: shared.partition_point(|(from, _)| *from <= time),
            shared,
        }
    }

    fn rest(&self) -> &[Since] {
        self.shared.get(self.skipped..).unwrap_or_default()
    }

    fn all_since(&self) -> impl Iterator<Item = Since> + '_ {
        self.first.into_iter().chain(self.rest().iter().copied())
    }

    /// The innermost step that the thread was in at a time; `None` if the thread was in no step.
    fn at(&self, time: Ktime) -> Option<StepIx> {
        let rest = self.rest();
        if rest.first().is_some_and(|(from, _)| *from <= time) {
            return at(rest, time);
        }
        self.first.filter(|(from, _)| *from <= time)?.1
    }
}

/// The steps of a recording, and the innermost step of every thread at every time.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    list: Vec<Step>,
    /// For each step, two positions in a depth-first order of the steps: the position of the step itself, and the
    /// position after the last step inside it. In this order, the steps inside a step directly follow that step.
    places: Vec<(usize, usize)>,
    threads: Vec<ThreadSteps>,
    /// The number of steps that are inside [`DEEPEST_STEP`] or more other steps, and whose work is therefore not
    /// listed.
    too_deep: usize,
    /// The steps whose own critical paths are computed; `None` means all steps.
    walked: Option<HashSet<StepIx>>,
}

impl Steps {
    /// Finds the steps of a recording, including the spans of other tools' files.
    pub fn new(analysis: &Analysis, imported: &[Imported]) -> Steps {
        build::steps(analysis, imported)
    }

    /// The list of all steps of the recording. Parents come before their children, and siblings are in the order of
    /// their beginnings.
    pub fn list(&self) -> &[Step] {
        &self.list
    }

    /// Restricts the computation of steps' own critical paths to the given steps. Other steps get no verdict and no
    /// division of their time. This saves time if there are hundreds of thousands of steps.
    pub fn walk_only(&mut self, steps: impl Iterator<Item = StepIx>) {
        self.walked = Some(steps.collect());
    }

    /// Whether the own critical path of a step is computed.
    pub(crate) fn is_walked(&self, step: StepIx) -> bool {
        let walked = self.walked.as_ref();
        walked.is_none_or(|walked| walked.contains(&step))
    }

    /// The sentence that says how many steps have no figures because they are inside too many other steps; `None` if
    /// there are no such steps.
    pub fn warning(&self) -> Option<String> {
        (self.too_deep > 0).then(|| {
            format!(
                "{} inside {DEEPEST_STEP} others: what they did is not told apart from the step around them",
                units::plural(self.too_deep as u64, "step lies", "steps lie"),
            )
        })
    }

    /// The innermost step that a thread was in right after a time; `None` for no step.
    pub fn at(&self, thread: ThreadIx, time: Ktime) -> Option<StepIx> {
        self.threads.get(thread.0 as usize)?.at(time)
    }

    /// The innermost step that the main thread of a process was in last.
    pub fn of_process(&self, analysis: &Analysis, ix: ProcessIx) -> Option<StepIx> {
        let leader = analysis.process(ix).threads.first()?;
        let steps = self.threads.get(leader.0 as usize)?;
        steps.rest().last().copied().or(steps.first)?.1
    }

    /// The parts of a thread's life: the beginning and the end of each, with the innermost step that the thread was in.
    pub fn parts(
        &self,
        analysis: &Analysis,
        thread: ThreadIx,
    ) -> impl Iterator<Item = (Ktime, Ktime, Option<StepIx>)> + '_ {
        self.parts_from(analysis, thread, Ktime(0))
    }

    /// Like [`Steps::parts`], but only the parts of a thread's life that end at the given time or after it.
    pub fn parts_from(
        &self,
        analysis: &Analysis,
        thread: ThreadIx,
        time: Ktime,
    ) -> impl Iterator<Item = (Ktime, Ktime, Option<StepIx>)> + '_ {
        let steps = self.threads.get(thread.0 as usize);
        let rest = steps.map(ThreadSteps::rest).unwrap_or_default();
        // A part of the thread's life (the time in one step) that begins before the given time may end after that time.
        // So the last such part is the first one to return.
        let before = rest.partition_point(|(from, _)| *from < time);
        let (first, rest) = match before.checked_sub(1) {
            Some(at) => (None, rest.get(at..)),
            None => (steps.and_then(|steps| steps.first), Some(rest)),
        };
        let rest = rest.unwrap_or_default().iter().copied();
        let since = first.into_iter().chain(rest);
        let end = analysis.thread(thread).end;
        let ends = since.clone().skip(1).map(|(from, _)| from).chain([end]);
        let parts = since.zip(ends);
        parts.map(move |((from, step), to)| (from, to.min(end), step))
    }

    /// The given step and all steps that contain it, from the innermost to the outermost.
    pub fn around(&self, step: Option<StepIx>) -> impl Iterator<Item = StepIx> + '_ {
        std::iter::successors(step, |at| self.list.get(*at)?.parent)
    }

    /// The title of each step: the step's name and, if another step with the same name is inside a different step, also
    /// the name of the step around it.
    pub fn titles(&self) -> Vec<StepTitle<'_>> {
        let mut parents: HashMap<&Phrase, Option<StepIx>> = HashMap::new();
        let mut shared: HashSet<&Phrase> = HashSet::new();
        for step in &self.list {
            let parent = *parents.entry(&step.name).or_insert(step.parent);
            if parent != step.parent {
                shared.insert(&step.name);
            }
        }
        let titles = self.list.iter().map(|step| {
            let around = step.parent.and_then(|parent| self.list.get(parent));
            let around = around.filter(|_| shared.contains(&step.name));
            StepTitle {
                around: around.map(|around| &around.name),
                name: &step.name,
            }
        });
        titles.collect()
    }

    /// For each step, whether it contains another step that has work of its own.
    pub fn holders(&self) -> Vec<bool> {
        self.with_any_inside(|_, step| step.has_work && !step.is_moment())
    }

    /// For each step, the part of its wall time in nanoseconds in which no step inside it was running.
    pub fn unexplained(&self) -> Vec<u64> {
        let mut rest: Vec<u64> = self.list.iter().map(Step::wall).collect();
        // For each step, the time up to which its inner steps have already been subtracted.
        let mut until: Vec<Ktime> = self.list.iter().map(|step| step.from).collect();
        // Siblings are sorted by their beginnings, so overlapping siblings are subtracted only once.
        for step in &self.list {
            let parent = step
                .parent
                .and_then(|at| Some((self.list.get(at)?, until.get_mut(at)?, rest.get_mut(at)?)));
            if let Some((outer, until, rest)) = parent {
                let end = step.to.min(outer.to);
                *rest = rest.saturating_sub(end.since(step.from.max(*until)));
                *until = end.max(*until);
            }
        }
        rest
    }

    /// The parts of a thread's time between two times, each with its end and the innermost step that the thread was in.
    pub fn between(
        &self,
        analysis: &Analysis,
        thread: ThreadIx,
        from: Ktime,
        to: Ktime,
    ) -> Vec<(Ktime, Option<StepIx>)> {
        let mut parts: Vec<(Ktime, Option<StepIx>)> = Vec::new();
        let mut add = |now: &mut Ktime, end: Ktime, step: Option<StepIx>| {
            if end <= *now {
                return;
            }
            *now = end;
            match parts.last_mut() {
                Some(last) if last.1 == step => last.0 = end,
                _ => parts.push((end, step)),
            }
        };
        let mut now = from;
        for (begin, end, step) in self.parts_from(analysis, thread, from) {
            if begin >= to {
                break;
            }
            // The requested time may begin before the thread was forked. In the time before the fork, the thread was in
            // no step.
            add(&mut now, begin, None);
            add(&mut now, end.min(to), step);
        }
        add(&mut now, to, None);
        parts
    }

    /// For each step of the recording, whether another step that `is_one` selects is inside it, at any depth.
    pub fn with_any_inside(&self, is_one: impl Fn(StepIx, &Step) -> bool) -> Vec<bool> {
        let mut inside = vec![false; self.list.len()];
        // Outer steps come before inner steps in the list, so the reverse order passes the result from inner to outer
        // steps.
        for (at, step) in self.list.iter().enumerate().rev() {
            let has = inside.get(at) == Some(&true) || is_one(at, step);
            let around = step.parent.and_then(|parent| inside.get_mut(parent));
            if let Some(around) = around.filter(|_| has) {
                *around = true;
            }
        }
        inside
    }

    /// The single tests, without steps that only run or group tests: suites in a test runner's file, and processes of a
    /// test runner.
    pub fn tests(&self) -> impl Iterator<Item = (StepIx, &Step)> {
        let is_test = |step: &Step| step.kind == StepKind::Test;
        let holds = self.with_any_inside(|_, step| is_test(step));
        let all = || self.list.iter().enumerate();
        let holders = all().filter(|(at, step)| is_test(step) && holds.get(*at) == Some(&true));
        // A call of a test runner may run no test, for example because the runner fails too early. Such a call is
        // recognized by its name if another call with this name ran tests.
        let runners: BTreeSet<Phrase> = holders.map(|(_, step)| step.stable_name()).collect();
        all().filter(move |(at, step)| {
            let is_suite = step.place_error != Some(0);
            let is_runner = holds.get(*at) == Some(&true)
                || step.is_worker
                || runners.contains(&step.stable_name());
            is_test(step) && (step.result.is_some() || !is_suite && !is_runner)
        })
    }

    /// Whether the step `inner` is `outer`, or lies inside `outer` at any depth.
    pub fn is_within(&self, inner: Option<StepIx>, outer: StepIx) -> bool {
        let place = |at: StepIx| self.places.get(at).copied();
        let Some(((at, _), (from, to))) = inner.and_then(place).zip(place(outer)) else {
            return false;
        };
        (from..to).contains(&at)
    }

    /// Whether a thread was in the given step right before a time.
    pub fn was_within(&self, thread: ThreadIx, time: Ktime, step: StepIx) -> bool {
        let before = Ktime(time.0.saturating_sub(1));
        self.is_within(self.at(thread, before), step)
    }

    /// For each process, whether one of its threads was in a step of this name or in a step inside it. A step without
    /// work, such as a point in time that a process marked, has no threads. In this case, the process that marked it
    /// counts as in the step.
    pub fn processes_in(&self, analysis: &Analysis, name: &str) -> Arena<ProcessIx, bool> {
        // Outer steps come before inner steps in the list, so one pass reaches all steps inside the named ones.
        let mut inside = self.are_named(name);
        for (at, step) in self.list.iter().enumerate() {
            let parent = step.parent.and_then(|parent| inside.get(parent).copied());
            if let Some(inside) = inside.get_mut(at) {
                *inside |= parent == Some(true);
            }
        }
        let is = |since: &Since| since.1.is_some_and(|step| inside.get(step) == Some(&true));
        let in_step = |thread: &ThreadIx| {
            let steps = self.threads.get(thread.0 as usize);
            steps.is_some_and(|steps| steps.all_since().any(|since| is(&since)))
        };
        let named = self.list.iter().zip(&inside);
        let without_work = named.filter(|(step, inside)| {
            let is_without = !step.has_work || step.is_moment();
            **inside && is_without
        });
        let own: HashSet<ProcessIx> = without_work.filter_map(|(step, _)| step.process).collect();
        let processes = analysis.process_ids();
        processes
            .map(|ix| own.contains(&ix) || analysis.process(ix).threads.iter().any(in_step))
            .collect()
    }
}

/// The innermost step at the given time. `since` is sorted by time: each entry has a time and the step that the thread
/// was in from then on.
fn at(since: &[Since], time: Ktime) -> Option<StepIx> {
    let after = since.partition_point(|(from, _)| *from <= time);
    since.get(after.checked_sub(1)?)?.1
}
