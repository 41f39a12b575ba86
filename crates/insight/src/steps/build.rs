//! Finds the steps of a recording. The search goes through the processes from parents to children, because a process
//! begins in the step of the thread that forked it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tr_programs::command_line;

use tr_analyze::containers::Container;
use tr_analyze::model::{Analysis, ExecSpan, Imported, Process, ProcessIx, Thread, ThreadIx};
use tr_format::container::Evidence;
use tr_format::event::Ktime;

use super::recipe;
use super::spans::{self, Span};
use super::{at, Since, Step, StepIx, Steps, ThreadSteps, DEEPEST_STEP};
use crate::processes::ancestors::from_parents_to_children;
use crate::processes::label;
use tr_programs::rules;
use tr_programs::steps::StepKind;
use tr_programs::steps::{FoundStep, StepName, Tests};
use tr_programs::words;
use tr_text::escape;
use tr_text::phrase::Phrase;

pub(super) fn steps(analysis: &Analysis, imported: &[Imported]) -> Steps {
    let spans = spans::spans(analysis, imported);
    let mut build = Build {
        analysis,
        spans: HashMap::new(),
        of_threads: HashMap::new(),
        tests: vec![Vec::new(); analysis.processes.len()],
        whole: HashSet::new(),
        list: Vec::new(),
        first: 0,
        threads: vec![ThreadSteps::default(); analysis.threads.len()],
        containers: analysis
            .containers
            .list
            .iter()
            .filter_map(|process| Some((process.main?, process)))
            .collect(),
    };
    for span in &spans {
        match (span.process, span.thread) {
            (_, Some(thread)) => build.of_threads.entry(thread).or_default().push(span),
            (Some(process), None) => build.spans.entry(process).or_default().push(span),
            (None, None) => {
                build.add_span(span, None);
            }
        }
    }
    for process in from_parents_to_children(analysis) {
        build.process(process);
    }
    Steps {
        places: places(&build.list),
        too_deep: build.list.iter().filter(|step| is_too_deep(step)).count(),
        list: build.list,
        threads: build.threads,
        walked: None,
    }
}

/// Whether a step is inside [`DEEPEST_STEP`] or more other steps.
fn is_too_deep(step: &Step) -> bool {
    step.depth >= DEEPEST_STEP
}

/// For each step, its position in a depth-first order of the steps, and the position after the last step inside it. A
/// step lies inside another step if its position is between the two positions of the other step. In `list`, a step
/// comes before the steps inside it.
fn places(list: &[Step]) -> Vec<(usize, usize)> {
    // For each step, the number of steps in its tree: the step itself and all steps inside it.
    let mut sizes = vec![1; list.len()];
    for (at, step) in list.iter().enumerate().rev() {
        let size = sizes.get(at).copied().unwrap_or(0);
        let around = step.parent.and_then(|parent| sizes.get_mut(parent));
        around
            .into_iter()
            .for_each(|around_size| *around_size += size);
    }
    let mut places: Vec<(usize, usize)> = Vec::with_capacity(list.len());
    // For each step, the next free position inside its tree; `behind` is the next free position after all outermost
    // steps.
    let mut free: Vec<usize> = Vec::with_capacity(list.len());
    let mut behind = 0;
    for (step, size) in list.iter().zip(sizes) {
        let around = step.parent.and_then(|parent| free.get_mut(parent));
        let next = around.unwrap_or(&mut behind);
        let place = *next;
        *next += size;
        places.push((place, place + size));
        free.push(place + 1);
    }
    places
}

struct Build<'a> {
    analysis: &'a Analysis,
    spans: HashMap<ProcessIx, Vec<&'a Span>>,
    of_threads: HashMap<ThreadIx, Vec<&'a Span>>,
    /// For each process, the times of its execs, each with the way in which the executed program runs tests from then
    /// on (such as in threads).
    tests: Vec<Vec<(Ktime, Tests)>>,
    /// The steps from other tools' files that stand for the whole life of a process.
    whole: HashSet<StepIx>,
    list: Vec<Step>,
    /// The first step of the process that is being divided into steps, as an index. Steps before it belong to other
    /// processes.
    first: StepIx,
    threads: Vec<ThreadSteps>,
    /// The containers, by the first process of each container.
    containers: HashMap<ProcessIx, &'a Container>,
}

/// A moment at which the step around a process or thread changes. The number in a variant is the index of a span (from
/// a program's marks or another tool's file), or that of an executed program.
enum Change<'a> {
    End(usize),
    /// The process or thread enters or leaves a step that its parent began, so the step around the process or thread
    /// changes.
    Around,
    Exec(usize, &'a ExecSpan),
    Begin(usize, &'a Span),
}

/// The steps that a process or thread has begun and not ended, each inside the one before it.
#[derive(Default)]
struct Open {
    /// The innermost step is the last one. A step that was made from a span also has the number of the span.
    steps: Vec<(StepIx, Option<usize>)>,
    /// The indexes of the spans that ended before a span inside them had ended.
    ended: HashSet<usize>,
}

impl Open {
    fn innermost(&self) -> Option<StepIx> {
        self.steps.last().map(|(step, _)| *step)
    }

    fn end(&mut self, span: usize) {
        self.ended.insert(span);
        let mut ended = |(_, span): &mut (StepIx, Option<usize>)| {
            span.is_some_and(|span| self.ended.remove(&span))
        };
        while self.steps.pop_if(&mut ended).is_some() {}
    }
}

impl Build<'_> {
    fn process(&mut self, ix: ProcessIx) {
        let process = self.analysis.process(ix);
        self.first = self.list.len();
        // A shared server also works for steps other than the one that started it, so it belongs to no step.
        let around = self.forked_in(process).filter(|_| !process.role.shared);
        let spans = self.spans.remove(&ix).unwrap_or_default();
        let changes = self.changes(vec![(process.start, around)], spans, Some((ix, process)));
        let Some((leader, others)) = process.threads.split_first() else {
            return;
        };
        let changes: Arc<[Since]> = changes.into();
        let since = self.spans_of(*leader, ThreadSteps::all(changes.clone()));
        self.set(*leader, since);
        for thread in others {
            let since = self.thread(ix, *leader, *thread, &changes);
            let since = self.spans_of(*thread, since);
            self.set(*thread, since);
        }
    }

    fn set(&mut self, thread: ThreadIx, since: ThreadSteps) {
        if let Some(threads) = self.threads.get_mut(thread.0 as usize) {
            *threads = since;
        }
    }

    fn of_thread(&self, thread: ThreadIx, time: Ktime) -> Option<StepIx> {
        self.threads.get(thread.0 as usize)?.at(time)
    }

    /// The innermost step that the forking thread was in when this thread forked the given process.
    fn forked_in(&self, process: &Process) -> Option<StepIx> {
        let leader = process.threads.first()?;
        let parent = self.analysis.thread(*leader).parent;
        let parent = parent.or_else(|| {
            let parent = self.analysis.process(process.parent?);
            parent.threads.first().copied()
        });
        self.of_thread(parent?, process.start)
    }

    /// The way in which the parent's program ran tests (such as in threads) when the parent forked the given process.
    fn tests_of_parent(&self, process: &Process) -> Tests {
        let parent = process.parent;
        parent.map_or(Tests::None, |parent| self.tests_at(parent, process.start))
    }

    fn tests_at(&self, process: ProcessIx, time: Ktime) -> Tests {
        let tests = self.tests.get(process.0 as usize);
        let tests = tests.map(Vec::as_slice).unwrap_or_default();
        let after = tests.partition_point(|(from, _)| *from <= time);
        let last = after.checked_sub(1).and_then(|at| tests.get(at));
        last.map_or(Tests::None, |(_, tests)| *tests)
    }

    /// Computes the times at which a process or thread enters and leaves steps. These changes come from its spans, from
    /// the programs that it executes, and from the steps around it (`around`). The function also adds the new steps to
    /// the recording's list.
    fn changes(
        &mut self,
        around: Vec<Since>,
        spans: Vec<&Span>,
        process: Option<(ProcessIx, &Process)>,
    ) -> Vec<Since> {
        let begin = around.first().map_or(Ktime(0), |(time, _)| *time);
        let mut changes: Vec<(Ktime, u8, Change)> = Vec::new();
        changes.extend(around.iter().map(|(time, _)| (*time, 1, Change::Around)));
        let execs = process
            .iter()
            .flat_map(|(_, entry)| entry.execs.iter().enumerate());
        changes.extend(execs.map(|(n, exec)| (exec.start, 2, Change::Exec(n, exec))));
        for (n, span) in spans.into_iter().enumerate() {
            let begin = if span.whole { 1 } else { 3 };
            changes.push((span.from, begin, Change::Begin(n, span)));
            changes.push((span.to, 0, Change::End(n)));
        }
        changes.sort_by_key(|(time, order, _)| (*time, *order));
        // The steps that this process or thread itself has begun and not ended. The steps around them, which the parent
        // has begun, are in `around`.
        let mut inside = Open::default();
        let mut since: Vec<Since> = Vec::new();
        for (time, _, change) in changes {
            // The times in another tool's file may be a little before the process's start.
            let around = at(&around, time.max(begin));
            let now = inside.innermost().or(around);
            let (step, span) = match (change, process) {
                (Change::End(n), _) => {
                    inside.end(n);
                    (None, None)
                }
                (Change::Exec(n, exec), Some((ix, _))) => (self.exec(ix, n, exec, now), None),
                (Change::Begin(n, span), _) => {
                    let step = self.add_span(span, now);
                    (span.holds_work().then_some(step), Some(n))
                }
                (Change::Around | Change::Exec(..), _) => (None, None),
            };
            let step = step.filter(|step| !self.is_too_deep(*step));
            inside.steps.extend(step.map(|step| (step, span)));
            let next = inside.innermost().or(around);
            if since.last().is_none_or(|(_, last)| *last != next) {
                since.push((time, next));
            }
        }
        since
    }

    /// Places the spans that belong to a single thread inside the steps that the thread is already in.
    fn spans_of(&mut self, thread: ThreadIx, since: ThreadSteps) -> ThreadSteps {
        match self.of_threads.remove(&thread) {
            Some(spans) => {
                let changes = self.changes(since.all_since().collect(), spans, None);
                ThreadSteps::all(changes.into())
            }
            None => since,
        }
    }

    fn exec(
        &mut self,
        ix: ProcessIx,
        n: usize,
        exec: &ExecSpan,
        around: Option<StepIx>,
    ) -> Option<StepIx> {
        let process = self.analysis.process(ix);
        let args: Vec<&[u8]> = exec.argv.args().collect();
        // A program with a known role is not a test just because its parent starts tests.
        let is_test =
            || n == 0 && self.tests_of_parent(process) == Tests::Children && !rules::knows(&args);
        let found = rules::step(&args).or_else(|| {
            let name = || command_line::portable_name(&args);
            let path = command_line::without_interpreter(&args).first();
            is_test().then(|| FoundStep {
                file: path.map(|path| escape::raw(path)),
                ..FoundStep::new(StepKind::Test, name())
            })
        });
        let found = found.or_else(|| {
            let recipe = (n == 0).then(|| recipe::name(self.analysis, process))?;
            recipe.map(|name| FoundStep::new(StepKind::Target, name))
        });
        let found = found.or_else(|| self.container(ix, n));
        let tests = found.as_ref().map_or(Tests::None, |found| found.tests);
        if let Some(all) = self.tests.get_mut(ix.0 as usize) {
            all.push((exec.start, tests));
        }
        let found = found?;
        let same = around.and_then(|around| self.list.get(around));
        let same =
            same.is_some_and(|step| (step.kind, &step.name) == (found.kind, &found.name.phrase));
        // If a file of another tool already names the process as a step of this kind, that name is kept, because it is
        // better than a name that is made from the command line.
        let outer = std::iter::successors(around, |at| self.list.get(*at)?.parent);
        let mut outer = outer.take_while(|at| *at >= self.first);
        let named = !self.whole.is_empty()
            && outer.any(|at| {
                let step = self.whole.get(&at).and_then(|at| self.list.get(*at));
                step.is_some_and(|step| step.process == Some(ix) && step.kind == found.kind)
            });
        if named || same && !found.nests {
            return None;
        }
        let end_of = |ix: &ThreadIx| self.analysis.thread(*ix).end;
        let last = process.threads.iter().rev().copied().max_by_key(end_of);
        let program = found.script.then(|| self.first_program(process));
        let name = program
            .flatten()
            .map(|StepName { phrase, brief }| StepName {
                phrase: Phrase::with([&phrase], |[program]| format!("run {program}")),
                brief: brief.or_else(|| Some(phrase.whole().to_owned())),
            });
        let is_own = name.is_none();
        let name = name.unwrap_or(found.name);
        Some(self.add(Step {
            stable_name: found.stable_name.filter(|_| is_own),
            name: name.phrase,
            brief: name.brief,
            file: found.file,
            kind: found.kind,
            parent: around,
            depth: 0,
            from: exec.start,
            to: process.end,
            started_before: exec.started_before,
            ended: !process.alive,
            process: Some(ix),
            thread: last,
            has_work: true,
            place_error: Some(0),
            doubt: None,
            status: found.wraps.map_or(process.status, |at| {
                self.wrapped(process, args.get(at..).unwrap_or_default())
            }),
            result: None,
            is_worker: found.worker,
            integration: found.integration,
        }))
    }

    /// The exit status of a command that a wrapper process runs: the status of the wrapper's last child with this
    /// command line, or of the wrapper itself if there is no such child.
    fn wrapped(&self, process: &Process, program: &[&[u8]]) -> Option<u32> {
        let mut children = process.children.iter().map(|ix| self.analysis.process(*ix));
        let ran = |child: &&Process| {
            let args: Vec<&[u8]> = child.argv.args().collect();
            !program.is_empty() && args.ends_with(program)
        };
        children
            .rfind(ran)
            .map_or(process.status, |child| child.status)
    }

    /// The step for the first program of a container. If the build of an image started the container, the step is named
    /// after a line of the Dockerfile (`RUN …`), and otherwise after the container.
    fn container(&self, ix: ProcessIx, n: usize) -> Option<FoundStep> {
        let container = self.containers.get(&ix)?;
        let mut execs = self.analysis.process(ix).execs.iter();
        // The container runtime's own program (`init`) runs first in the container and does not count.
        let is_own = |exec: &ExecSpan| exec.argv.args().nth(1) != Some(b"init");
        let (first, exec) = execs.by_ref().enumerate().find(|(_, exec)| is_own(exec))?;
        let args: Vec<&[u8]> = exec.argv.args().collect();
        let built = container.evidence != Evidence::Descendant
            || container.called.id.starts_with(b"buildah-");
        let name = match args.as_slice() {
            [_, b"-c", line] if built && container.called.name.is_empty() => {
                let line = escape::raw(line);
                let brief = words::brief_of_text(&line).unwrap_or(&line).to_owned();
                StepName::with_part(format!("RUN {line}"), &brief)
            }
            _ => {
                let called = &container.called;
                let name = label::name_of_container(called);
                StepName::with_part(label::container(called), &name.unwrap_or_default())
            }
        };
        (first == n).then_some(FoundStep {
            nests: true,
            ..FoundStep::new(StepKind::Job, name)
        })
    }

    /// The first program that a script starts. The step of the script is named after this program, because a CI runner
    /// gives its script files random names that differ between runs.
    fn first_program(&self, script: &Process) -> Option<StepName> {
        let children = script.children.iter().map(|ix| self.analysis.process(*ix));
        let exec = children
            .filter(|child| child.start >= script.start)
            .find_map(|child| child.execs.first())?;
        let args: Vec<&[u8]> = exec.argv.args().collect();
        Some(command_line::portable_name(&args))
    }

    fn add_span(&mut self, span: &Span, around: Option<StepIx>) -> StepIx {
        let process = span.process.map(|ix| self.analysis.process(ix));
        let whole = process.filter(|_| span.whole);
        let step = self.add(Step {
            name: escape::raw(&span.name).into(),
            brief: span
                .brief
                .as_deref()
                .map(|brief| escape::raw(brief.as_bytes())),
            stable_name: None,
            file: span.file.clone(),
            kind: span.kind,
            parent: around,
            depth: 0,
            from: span.from.max(self.analysis.start),
            to: span.to,
            started_before: span.from < self.analysis.start,
            ended: span.ended,
            process: span.process,
            thread: span
                .thread
                .or_else(|| process.and_then(|process| process.threads.first().copied())),
            has_work: !span.overlaps && span.doubt.is_none() && process.is_some(),
            place_error: span.has_place().then_some(span.error),
            doubt: span.doubt,
            status: whole.and_then(|process| process.status),
            result: span.result.clone(),
            is_worker: false,
            integration: None,
        });
        if whole.is_some() {
            self.whole.insert(step);
        }
        step
    }

    /// Adds a step to the recording's list. A step inside too many other steps gets no figures of its own (`has_work`
    /// is false), because the figures of a step are also added to each step around it, which takes time.
    fn add(&mut self, step: Step) -> StepIx {
        let parent = step.parent.and_then(|parent| self.list.get(parent));
        let depth = parent.map_or(0, |parent| parent.depth + 1);
        let has_work = step.has_work && depth < DEEPEST_STEP;
        self.list.push(Step {
            depth,
            has_work,
            ..step
        });
        self.list.len() - 1
    }

    fn is_too_deep(&self, step: StepIx) -> bool {
        self.list.get(step).is_some_and(is_too_deep)
    }

    /// Finds the steps of a thread that is not the leader (main thread) of its process.
    fn thread(
        &mut self,
        ix: ProcessIx,
        leader: ThreadIx,
        thread: ThreadIx,
        of_process: &Arc<[Since]>,
    ) -> ThreadSteps {
        let analysis = self.analysis;
        let is = analysis.thread(thread);
        let around = at(of_process, is.start);
        let parent = is
            .parent
            .filter(|parent| analysis.thread(*parent).process == ix);
        // A thread that was started by the thread of a test belongs to that test.
        let of_parent = parent.and_then(|parent| self.of_thread(parent, is.start));
        if of_parent.is_some() && of_parent != around {
            return ThreadSteps::one(is.start, of_parent);
        }
        let spans = self.of_threads.get(&thread);
        let is_imported =
            spans.is_some_and(|spans| spans.iter().any(|span| span.is_whole_test(is)));
        let threads = self.tests_at(ix, is.start) == Tests::Threads && !is_imported;
        if threads && parent.is_none_or(|parent| parent == leader) {
            if let Some(name) = named_test(analysis.thread(leader), is) {
                let step = self.add(Step {
                    brief: words::brief_of_text(&name).map(str::to_owned),
                    name: name.into(),
                    stable_name: None,
                    file: None,
                    kind: StepKind::Test,
                    parent: around,
                    depth: 0,
                    from: is.start,
                    to: is.end,
                    started_before: is.started_before,
                    ended: !is.alive,
                    process: Some(ix),
                    thread: Some(thread),
                    has_work: true,
                    place_error: Some(0),
                    doubt: None,
                    status: None,
                    result: None,
                    is_worker: false,
                    integration: None,
                });
                let own = if self.is_too_deep(step) {
                    around
                } else {
                    Some(step)
                };
                return ThreadSteps::one(is.start, own);
            }
        }
        ThreadSteps::from(is.start, of_process.clone())
    }
}

/// The name of the test that a thread runs. `None` if the thread has the name of the process's main thread, because
/// then it was not named after a test. The kernel keeps only 15 bytes of a name, so a longer name is cut.
fn named_test(leader: &Thread, thread: &Thread) -> Option<String> {
    let name = thread.comm.bytes();
    if thread.comm == leader.comm || name.is_empty() {
        return None;
    }
    let cut = if name.len() == 15 { "…" } else { "" };
    Some(escape::raw(name) + cut)
}
