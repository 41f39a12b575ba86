//! Splits the time on a critical path into running and waiting where only totals of a thread's times are known.
//!
//! ```text
//! totals     |------ 20 ms: 3 on CPU, 15 in a run queue ------|
//! path        ....cc1....                    ......cc1......    the rest is in a child
//! ```
//!
//! Two totals do not show in which order the thread ran, waited and slept between them. But the path shows something if
//! only a part of this time is on the path: while the path was in another thread, this thread waited. So the run time
//! is attributed to the parts on the path, as far as there is room for it, and marked as inferred.

use std::collections::HashMap;

use tr_format::event::Ktime;

use super::{Segment, Then};
use crate::kinds::TimeKind;
use crate::model::{Analysis, ThreadIx};
use crate::share;
use crate::timeline::Sample;

/// How much of the time between two successive totals of a thread is on the critical path, in ns. The key is the
/// thread and the index of the sample that covers this time.
type Covered = HashMap<(ThreadIx, usize), u64>;

/// Splits the segments of a critical path whose kind is [`TimeKind::Lived`] into CPU time, waits for a CPU and
/// other waits, by the totals of the threads' times.
pub(super) fn divided(analysis: &Analysis, segments: Vec<Segment>) -> Vec<Segment> {
    let mut covered = Covered::new();
    for segment in segments
        .iter()
        .filter(|segment| segment.kind == TimeKind::Lived)
    {
        for (number, _, (from, to)) in samples(analysis, segment) {
            let sum = covered.entry((segment.thread, number)).or_default();
            *sum = sum.saturating_add(to.since(from));
        }
    }
    let mut all = Vec::with_capacity(segments.len());
    for segment in segments {
        match segment.kind {
            TimeKind::Lived => divide(analysis, &covered, segment, &mut all),
            _ => all.push(segment),
        }
    }
    all
}

/// The samples of a thread's total times that overlap a segment of the critical path, in the order of time. Each
/// has its number and the overlapping part of time.
fn samples<'a>(
    analysis: &'a Analysis,
    segment: &Segment,
) -> impl Iterator<Item = (usize, &'a Sample, (Ktime, Ktime))> {
    let all = analysis.samples_of(segment.thread);
    let first = all.partition_point(|sample| sample.to <= segment.from);
    let (from, to) = (segment.from, segment.to);
    let inside = all.iter().enumerate().skip(first);
    let inside = inside.take_while(move |(_, sample)| sample.from < to);
    inside.map(move |(number, sample)| (number, sample, (sample.from.max(from), sample.to.min(to))))
}

fn divide(analysis: &Analysis, covered: &Covered, of: Segment, all: &mut Vec<Segment>) {
    let begin = all.len();
    let mut now = of.from;
    let mut push = |to: Ktime, kind: TimeKind, inferred: bool| {
        let last = all.get_mut(begin..).and_then(<[Segment]>::last_mut);
        match last.filter(|segment| (segment.kind, segment.inferred) == (kind, inferred)) {
            Some(last) => last.to = to,
            None if to > now => all.push(Segment {
                from: now,
                to,
                kind,
                inferred,
                then: Then::Same,
                then_inferred: false,
                ..of
            }),
            None => {}
        }
        now = to;
    };
    for (number, sample, (from, to)) in samples(analysis, &of) {
        push(from, of.kind, of.inferred);
        let on_path = covered.get(&(of.thread, number)).copied().unwrap_or(0);
        let inferred = of.inferred || on_path < sample.length();
        let mut end = from;
        for (kind, ns) in parts(sample, on_path) {
            let part = share(ns, to.since(from), on_path);
            end = Ktime(end.0.saturating_add(part)).min(to);
            push(end, kind, inferred);
        }
        push(to, of.kind, of.inferred);
    }
    push(of.to, of.kind, of.inferred);
    if let Some(last) = all.get_mut(begin..).and_then(<[Segment]>::last_mut) {
        (last.then, last.then_inferred) = (of.then, of.then_inferred);
    }
}

/// The times in ns on a CPU, in a run queue and off CPU that a sample of a thread's totals shows for `length` ns
/// of its time. If they add up to less, the rest keeps the kind [`TimeKind::Lived`].
fn parts(sample: &Sample, length: u64) -> [(TimeKind, u64); 3] {
    let on_cpu = sample.on_cpu.min(length);
    let run_queue = sample.run_queue.min(length - on_cpu);
    let off_cpu = sample.off_cpu.min(length - on_cpu - run_queue);
    [
        (TimeKind::OnCpu, on_cpu),
        (TimeKind::RunQueue, run_queue),
        (TimeKind::SleepOrBlocked, off_cpu),
    ]
}
