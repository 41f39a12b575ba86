//! Computes the times of a recording's steps.

use std::collections::HashMap;

use tr_analyze::critical_path::{Paths, Segment};
use tr_analyze::kinds::{ByKind, TimeKind};
use tr_analyze::model::{Analysis, ThreadIx, Times};
use tr_format::event::Ktime;

use super::{StepIx, Steps};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTimes {
    /// The times of all threads by state (such as run queue or sleep) while the threads were in the step or in a step
    /// inside it; `None` if these times are not known.
    pub times: Option<Times>,
    /// The number of processes that began in the step, including the steps inside it.
    pub processes: u64,
    /// The wall time of the step, divided by kind of time (such as time on a CPU or waits for a disk); `None` if it is
    /// not known.
    pub spent: Option<ByKind>,
    /// The time in nanoseconds that the step, including the steps inside it, has on the recording's critical path.
    pub on_path: u64,
}

/// A part of a step's wall time with one kind of time, and its length in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoursePart {
    pub kind: TimeKind,
    pub ns: u64,
}

/// Limits the number of parts into which the wall time of steps is divided. The parts of a step in the order of time
/// are called its course.
#[derive(Clone, Copy, Debug)]
pub struct Fineness {
    /// The largest number of equal stretches of time into which the course of one step (the parts of its wall time in
    /// order) is divided.
    pub of_step: u64,
    /// The approximate largest number of stretches of time into which the courses of all steps (the parts of their wall
    /// times in order) are divided together.
    pub of_all: u64,
}

/// The times of all steps of a recording, and the times outside of any step.
#[derive(Clone, Debug, Default)]
pub struct AllTimes {
    /// The times of each step, by the step's index in the list of steps.
    pub steps: Vec<StepTimes>,
    /// For each step, by its index in the list of steps, the course of its wall time: the parts by kind (as in `spent`)
    /// in the order of time. Empty if no courses were requested by a [`Fineness`].
    pub courses: Vec<Vec<CoursePart>>,
    /// The times of all threads of the recording while they were in no step.
    pub outside: StepTimes,
    /// The wall time of the recording in nanoseconds in which no step was running.
    pub outside_wall: u64,
}

impl AllTimes {
    /// Sums up the times of the recording's steps; `path` is the recording's critical path. The wall times of steps are
    /// not divided into parts, because this would need each step's own critical path.
    pub fn without_parts(analysis: &Analysis, steps: &Steps, path: &[Segment]) -> AllTimes {
        let list = steps.list();
        let mut own = vec![StepTimes::default(); list.len()];
        let mut outside = StepTimes::default();
        let mut slot = |step: Option<StepIx>, add: &mut dyn FnMut(&mut StepTimes)| match step {
            None => add(&mut outside),
            Some(step) => own.get_mut(step).into_iter().for_each(add),
        };
        for thread in analysis.thread_ids() {
            each_part(analysis, steps, thread, |step, times| {
                slot(step, &mut |sum| {
                    sum.times.get_or_insert_default().add(&times)
                });
            });
        }
        for process in &analysis.processes {
            if let Some(leader) = process.threads.first() {
                let step = steps.at(*leader, process.start);
                slot(step, &mut |sum| sum.processes += 1);
            }
        }
        for segment in path {
            each_of(analysis, steps, segment, |step, ns| {
                slot(step, &mut |sum| {
                    sum.on_path = sum.on_path.saturating_add(ns)
                });
            });
        }
        // Inner steps come after outer steps in the list, so the reverse order adds each step's times to the step
        // around it.
        for at in (0..list.len()).rev() {
            let Some((step, times)) = list.get(at).zip(own.get(at).copied()) else {
                continue;
            };
            if let Some(parent) = step.parent.and_then(|parent| own.get_mut(parent)) {
                if let Some(times) = &times.times {
                    parent.times.get_or_insert_default().add(times);
                }
                parent.processes += times.processes;
                parent.on_path = parent.on_path.saturating_add(times.on_path);
            }
        }
        for (step, times) in list.iter().zip(&mut own) {
            if !step.has_work {
                *times = StepTimes::default();
            }
        }
        AllTimes {
            courses: Vec::new(),
            outside_wall: outside_wall(analysis, steps),
            steps: own,
            outside,
        }
    }

    /// Computes the parts of each step's wall time and, if a fineness is given, the courses of the steps without steps
    /// inside them. A course has the parts in the order of time. Within one stretch of time (see [`Fineness`]), parts
    /// of the same kind are joined. A course with only one part is left out. `each` is called with every step's own
    /// critical path.
    pub(crate) fn divide(
        &mut self,
        steps: &Steps,
        paths: Option<&Paths<'_>>,
        fineness: Option<Fineness>,
        mut each: impl FnMut(StepIx, &[OwnSegment]),
    ) {
        let list = steps.list();
        let holds = steps.holders();
        let walls = list.iter().zip(&holds).filter(|(_, holds)| !**holds);
        let whole = walls.fold(0u64, |sum, (step, _)| sum.saturating_add(step.wall()));
        self.courses = vec![Vec::new(); fineness.map_or(0, |_| list.len())];
        for (at, (step, times)) in list.iter().zip(&mut self.steps).enumerate() {
            let Some(path) = paths.and_then(|paths| own_path(paths, steps, at)) else {
                continue;
            };
            times.spent = Some(spent(&path));
            let slot = self.courses.get_mut(at).zip(fineness);
            if let Some((slot, fineness)) = slot.filter(|_| holds.get(at) == Some(&false)) {
                *slot = course(&path, fineness.stretch(step.wall(), whole));
            }
            each(at, &path);
        }
    }
}

/// A segment of the own critical path of a step, and whether the segment's thread was in the step.
pub(crate) type OwnSegment = (Segment, bool);

/// The own critical path of a step, which explains the step's wall time; `None` if the step has no work of its own, or
/// if [`Steps::walk_only`] excludes the step.
pub(crate) fn own_path(paths: &Paths<'_>, steps: &Steps, of: StepIx) -> Option<Vec<OwnSegment>> {
    let step = steps.list().get(of);
    let step = step.filter(|step| step.has_work && steps.is_walked(of))?;
    let inside = |thread, time| steps.was_within(thread, time, of);
    let path = paths.between(step.from, step.thread?, step.to, &inside);
    let with = |segment: Segment| (segment, inside(segment.thread, segment.to));
    Some(path.into_iter().map(with).collect())
}

/// The kind of time that a segment of a step's own critical path counts as. Time in which a thread outside of the step
/// ran or wanted a CPU (`inside` is false) counts as work of other steps.
fn kind_of(segment: &Segment, inside: bool) -> TimeKind {
    match segment.kind {
        TimeKind::OnCpu | TimeKind::RunQueue if !inside => TimeKind::Others,
        // The thread's exact state in this time is not known.
        TimeKind::SleepOrBlocked | TimeKind::Lived => TimeKind::Unknown,
        kind => kind,
    }
}

/// The length of a step's own critical path in nanoseconds, divided by kind of time (such as time on a CPU or waits for
/// a disk).
fn spent(path: &[OwnSegment]) -> ByKind {
    let mut spent = ByKind::default();
    for (segment, inside) in path {
        spent.add(kind_of(segment, *inside), segment.length());
    }
    spent
}

impl Fineness {
    /// The length in nanoseconds of the stretches into which a step's course is divided. The course is the step's wall
    /// time in the order of time. `wall` is the wall time of the step, and `whole` that of all steps without steps
    /// inside them.
    fn stretch(self, wall: u64, whole: u64) -> u64 {
        (wall / self.of_step.max(1)).max(whole / self.of_all.max(1))
    }
}

/// The course of a step: the parts of its own critical path by kind, in the order of time. Within a stretch of the
/// given length in nanoseconds, each kind occurs once, at the place of its first part.
fn course(path: &[OwnSegment], stretch: u64) -> Vec<CoursePart> {
    let mut parts: Vec<CoursePart> = Vec::new();
    // The index of the first part in the current stretch of time, and the length of that stretch so far.
    let (mut open, mut length) = (0, 0u64);
    for (segment, inside) in path {
        let (kind, ns) = (kind_of(segment, *inside), segment.length());
        if ns >= stretch {
            (open, length) = (parts.len(), 0);
        }
        let of_kind = |part: &&mut CoursePart| part.kind == kind;
        let goes_on = parts.last().is_some_and(|part| part.kind == kind);
        let known = if goes_on {
            parts.last_mut()
        } else {
            parts.iter_mut().skip(open).find(of_kind)
        };
        match known {
            Some(part) => part.ns = part.ns.saturating_add(ns),
            None => parts.push(CoursePart { kind, ns }),
        }
        length = length.saturating_add(ns);
        if length >= stretch {
            (open, length) = (parts.len(), 0);
        }
    }
    if parts.len() < 2 {
        parts.clear();
    }
    parts
}

/// Calls `each` with the times of a thread, divided by the innermost step that the thread was in (`None` for no step).
fn each_part(
    analysis: &Analysis,
    steps: &Steps,
    thread: ThreadIx,
    mut each: impl FnMut(Option<StepIx>, Times),
) {
    let is = analysis.thread(thread);
    let mut parts = steps.parts(analysis, thread).peekable();
    let Some(first) = parts.next() else {
        return each(None, is.times);
    };
    if parts.peek().is_none() {
        // If the thread was in one step for its whole life, all times of the thread are times of that step. The
        // thread's totals are then taken, because they include the kernel's own figures.
        return each(first.2, is.times);
    }
    let Some(timeline) = &analysis.timeline else {
        for (from, to, step) in std::iter::once(first).chain(parts) {
            let times = Times {
                unknown: to.since(from),
                ..Times::default()
            };
            each(step, times);
        }
        return;
    };
    let mut part = first;
    let mut sums: HashMap<Option<StepIx>, Times> = HashMap::new();
    for stretch in timeline.of(thread) {
        let mut from = stretch.from;
        while from < stretch.to {
            while part.1 <= from {
                let Some(next) = parts.next() else { break };
                part = next;
            }
            // The last part of the thread's life (the time in its last step) also gets the rest of the timeline.
            let to = if part.1 > from {
                stretch.to.min(part.1)
            } else {
                stretch.to
            };
            let times = sums.entry(part.2).or_default();
            let sum = stretch.doing.sum_in(times);
            *sum = sum.saturating_add(to.since(from));
            from = to;
        }
    }
    // Time that only the kernel's totals show counts for the step in which the thread ended.
    let known = is.times_by_events();
    let last = sums.entry(part.2).or_default();
    let more = is.times.on_cpu.saturating_sub(known.on_cpu);
    last.on_cpu = last.on_cpu.saturating_add(more);
    let more = is.times.run_queue.saturating_sub(known.run_queue);
    last.run_queue = last.run_queue.saturating_add(more);
    last.asleep_or_blocked = last
        .asleep_or_blocked
        .saturating_add(is.times.asleep_or_blocked);
    last.basis = is.times.basis;
    last.unknown = last
        .unknown
        .saturating_sub(known.unknown.saturating_sub(is.times.unknown));
    for (step, times) in sums {
        each(step, times);
    }
}

/// Calls `each` with the lengths of a path segment in nanoseconds, divided by the innermost step that the segment's
/// thread was in (`None` for no step).
fn each_of(
    analysis: &Analysis,
    steps: &Steps,
    segment: &Segment,
    mut each: impl FnMut(Option<StepIx>, u64),
) {
    let mut now = segment.from;
    for (to, step) in steps.between(analysis, segment.thread, segment.from, segment.to) {
        each(step, to.since(now));
        now = to;
    }
}

fn outside_wall(analysis: &Analysis, steps: &Steps) -> u64 {
    let outermost = steps.list().iter().filter(|step| step.depth == 0);
    let mut spans: Vec<(Ktime, Ktime)> = outermost.map(|step| (step.from, step.to)).collect();
    spans.sort_unstable();
    let mut outside = 0u64;
    let mut now = analysis.start;
    for (from, to) in spans {
        outside = outside.saturating_add(from.since(now));
        now = now.max(to);
    }
    outside + analysis.end.since(now)
}

#[cfg(test)]
mod tests {
    use tr_analyze::critical_path::Then;

    use super::*;

    fn segment(from: u64, to: u64, kind: TimeKind) -> OwnSegment {
        let segment = Segment {
            from: Ktime(from),
            to: Ktime(to),
            thread: ThreadIx(0),
            program: None,
            kind,
            then: Then::Same,
            then_inferred: false,
            inferred: false,
        };
        (segment, true)
    }

    #[test]
    fn a_course_has_its_parts_in_their_order() {
        let path = [
            segment(0, 400, TimeKind::OnCpu),
            segment(400, 500, TimeKind::RunQueue),
            // Three short successive segments. All of them lie in one stretch of time, in which the step's course (the
            // parts of its wall time in order) joins the parts of the same kind.
            segment(500, 520, TimeKind::OnCpu),
            segment(520, 530, TimeKind::Disk),
            segment(530, 550, TimeKind::OnCpu),
            segment(550, 1000, TimeKind::RunQueue),
        ];
        let parts = |stretch| {
            let course = course(&path, stretch);
            let parts = course.iter().map(|part| (part.kind, part.ns));
            parts.collect::<Vec<_>>()
        };
        let expected = [
            (TimeKind::OnCpu, 400),
            (TimeKind::RunQueue, 100),
            (TimeKind::OnCpu, 40),
            (TimeKind::Disk, 10),
            (TimeKind::RunQueue, 450),
        ];
        assert_eq!(parts(100), expected);
        assert_eq!(parts(1).len(), 6, "each by itself");
        // If the whole course (the step's wall time) is one stretch, the course has one part for each kind of time.
        assert_eq!(
            parts(2000),
            [
                (TimeKind::OnCpu, 440),
                (TimeKind::RunQueue, 550),
                (TimeKind::Disk, 10)
            ]
        );
        assert_eq!(course(&path[..1], 1), [], "a single part");
    }
}
