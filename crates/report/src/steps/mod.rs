//! Steps: named parts of a recording. A step is an execution of a program with all that it
//! starts (a make target, a compilation, a test), a thread that runs a test, or a span
//! between two marks. Steps nest. The rules that name executions are in `rules`.
//!
//! They come from the trace, and from the other tools' files whose spans an importer has added
//! to the analysis.

mod build;
mod recipe;
mod rules;
mod spans;
pub mod times;

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, Doubt, ProcessIx, ThreadIx};
use tr_format::event::Ktime;

use crate::exit;
use crate::names::named;

named! {
    #[derive(Hash)]
    pub enum StepKind {
        Job = "job", "step of a CI job";
        Target = "target", "target of a build";
        Unit = "unit", "unit of a compiler";
        Test = "test", "test";
        Mark = "mark", "mark";
    }
}

/// The number of a step in [`Steps::list`].
pub type StepIx = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub name: String,
    pub kind: StepKind,
    /// The step around it, which comes before it in the list.
    pub parent: Option<StepIx>,
    /// The number of steps around it.
    pub depth: usize,
    pub from: Ktime,
    /// Its end; the span's end if it did not end before. A moment has no length.
    pub to: Ktime,
    pub started_before: bool,
    /// It ended inside the analyzed span.
    pub ended: bool,
    /// Its process: the one that executed it, or in which its marks were set.
    pub process: Option<ProcessIx>,
    /// The thread with which it ended.
    pub thread: Option<ThreadIx>,
    /// Its work is known. It is not if it overlaps with another span of its process without
    /// being inside it, if its process is not known, or if its place in time is not proven.
    pub has_work: bool,
    /// The reason why another tool's span has no proven place in time.
    pub doubt: Option<Doubt>,
    /// The raw `wait` status of its process, if that ended with it.
    pub status: Option<u32>,
    /// The result that a program gave its mark, escaped.
    pub result: Option<String>,
}

impl Step {
    pub fn wall(&self) -> u64 {
        self.to.since(self.from)
    }

    /// It is a moment: the mark of a point in time.
    pub fn is_moment(&self) -> bool {
        self.kind == StepKind::Mark && self.ended && self.from == self.to
    }

    /// Its status or its result says that it failed.
    pub fn failed(&self) -> bool {
        const BAD: [&str; 5] = ["failed", "failure", "error", "unreachable", "timeout"];
        let result = self.result.as_deref();
        let failed = exit::failed(self.status) && !self.skipped();
        failed || result.is_some_and(|result| BAD.contains(&result))
    }

    /// A test exits with 77 where it cannot run (automake, "Scripts-based Testsuites"; meson).
    fn skipped(&self) -> bool {
        self.kind == StepKind::Test && self.status.and_then(exit::code) == Some(77)
    }
}

/// The step of a thread from a time on.
type Since = (Ktime, Option<StepIx>);

/// The steps of a recording, and the step of every thread at every time.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    list: Vec<Step>,
    /// For each step its place in an order in which it comes before those inside it, and the place
    /// after them.
    places: Vec<(usize, usize)>,
    /// For each thread its steps in order of time.
    threads: Vec<Vec<Since>>,
}

impl Steps {
    pub fn new(analysis: &Analysis) -> Steps {
        build::steps(analysis)
    }

    /// The steps; parents come before their children, siblings in order of their beginning.
    pub fn list(&self) -> &[Step] {
        &self.list
    }

    /// The innermost step of a thread right after `time`.
    pub fn at(&self, thread: ThreadIx, time: Ktime) -> Option<StepIx> {
        at(self.threads.get(thread.0 as usize)?, time)
    }

    /// The innermost step of a process at its end.
    pub fn of_process(&self, analysis: &Analysis, ix: ProcessIx) -> Option<StepIx> {
        let leader = analysis.process(ix).threads.first()?;
        self.threads.get(leader.0 as usize)?.last()?.1
    }

    /// The parts of a thread's life with their innermost steps.
    pub fn parts(
        &self,
        analysis: &Analysis,
        thread: ThreadIx,
    ) -> impl Iterator<Item = (Ktime, Ktime, Option<StepIx>)> + '_ {
        let since = self.threads.get(thread.0 as usize);
        let since = since.map(Vec::as_slice).unwrap_or_default();
        let end = analysis.thread(thread).end;
        let ends = since.iter().skip(1).map(|(from, _)| *from).chain([end]);
        let parts = since.iter().zip(ends);
        parts.map(move |((from, step), to)| (*from, to.min(end), *step))
    }

    /// The step, and the steps around it, from the inside.
    pub fn around(&self, step: Option<StepIx>) -> impl Iterator<Item = StepIx> + '_ {
        std::iter::successors(step, |at| self.list.get(*at)?.parent)
    }

    /// Whether `inner` is `outer` or inside it, in steps of any depth.
    pub fn is_within(&self, inner: Option<StepIx>, outer: StepIx) -> bool {
        let place = |at: StepIx| self.places.get(at).copied();
        let Some(((at, _), (from, to))) = inner.and_then(place).zip(place(outer)) else {
            return false;
        };
        (from..to).contains(&at)
    }

    /// Whether a thread was in a step right before a time.
    pub fn was_within(&self, thread: ThreadIx, time: Ktime, step: StepIx) -> bool {
        let before = Ktime(time.0.saturating_sub(1));
        self.is_within(self.at(thread, before), step)
    }

    /// For each process, whether one of its threads was in a step of this name.
    pub fn processes_in(&self, analysis: &Analysis, name: &str) -> Arena<ProcessIx, bool> {
        // Parents come first.
        let mut inside = vec![false; self.list.len()];
        for (at, step) in self.list.iter().enumerate() {
            let parent = step.parent.and_then(|parent| inside.get(parent).copied());
            if let Some(inside) = inside.get_mut(at) {
                *inside = step.name == name || parent == Some(true);
            }
        }
        let is = |since: &Since| since.1.is_some_and(|step| inside.get(step) == Some(&true));
        let in_step = |thread: &ThreadIx| {
            let since = self.threads.get(thread.0 as usize);
            since.is_some_and(|since| since.iter().any(is))
        };
        let processes = analysis.processes.iter();
        processes
            .map(|process| process.threads.iter().any(in_step))
            .collect()
    }
}

/// The last one at or before a time.
fn at(since: &[Since], time: Ktime) -> Option<StepIx> {
    let after = since.partition_point(|(from, _)| *from <= time);
    since.get(after.checked_sub(1)?)?.1
}
