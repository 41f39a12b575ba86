//! Evaluates the samples of the machine's counters over a span of time.

use tr_format::counters::{Counter, Counters};
use tr_format::event::Ktime;
use tr_format::meta::Machine;

use crate::containers::Container;
use crate::model::Analysis;
use crate::share;

/// The CPU time of all CPUs that was used in a span, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The CPU time of all CPUs that all tasks and the hypervisor used, in ns.
    pub all: u64,
    /// The CPU time that neither the build nor the recorder used, in ns. The time of the hypervisor is part of
    /// it.
    pub others: u64,
}

/// The unit in which the kernel reports CPU time to all programs, in ns (`USER_HZ`, time(7)).
const TICK: u64 = 10_000_000;

/// A divisor: a span is covered by samples of counters if the nearest samples are at most one twentieth of the
/// span's length away from its ends. A guess: with a larger distance, reports would print figures of the machine
/// for spans that the samples do not cover.
const RESOLVED_PART: u64 = 20;

/// The samples of the machine's counters, such as CPU time and free memory, in the order of time.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a>(pub &'a [(Ktime, Counters)]);

/// The smallest, the mean and the largest value of one of the machine's counters in a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest value of the machine's counter in the span, in the counter's unit.
    pub least: u64,
    /// The mean of the values of the machine's counter in the span, in the counter's unit.
    pub mean: u64,
    /// The largest value of the machine's counter in the span, in the counter's unit.
    pub most: u64,
}

impl<'a> Samples<'a> {
    /// The samples of the machine's counters that an analysis has.
    pub fn of(analysis: &'a Analysis) -> Samples<'a> {
        Samples(&analysis.machine.counters)
    }

    /// The part of a span of time that lies between the first and the last sample of the machine's counters; `None` if
    /// no part of the span lies there.
    pub fn within(&self, (from, to): (Ktime, Ktime)) -> Option<(Ktime, Ktime)> {
        let (first, last) = (self.0.first()?.0, self.0.last()?.0);
        let covered = (from.max(first), to.min(last));
        (covered.0 < covered.1).then_some(covered)
    }

    /// The growth of one of the machine's counters in a span, if the counter is a total. The counter is assumed to grow
    /// evenly between two samples.
    pub fn increase(&self, counter: Counter, (from, to): (Ktime, Ktime)) -> Option<u64> {
        let (from, to) = (self.at(counter, from)?, self.at(counter, to)?);
        Some(to.saturating_sub(from))
    }

    /// The value of one of the machine's counters at a time, if the counter is a total. The counter is assumed to grow
    /// evenly between two samples, and not before the first and after the last one.
    fn at(&self, counter: Counter, time: Ktime) -> Option<u64> {
        let after = self.0.partition_point(|(at, _)| *at <= time);
        let get = |place: usize| {
            let (at, counters) = self.0.get(place)?;
            Some((*at, counters.get(counter)?))
        };
        let before = after.checked_sub(1).and_then(get);
        let (Some((since, low)), Some((until, high))) = (before, get(after)) else {
            return before.or_else(|| get(after)).map(|(_, value)| value);
        };
        let more = high.saturating_sub(low);
        let more = share(more, time.since(since), until.since(since));
        Some(low.saturating_add(more))
    }

    /// Whether the samples of the machine's counters are dense enough for statements about a span of time: there are
    /// samples near the ends of the span, and the span has at least `RESOLVED_PART` of the kernel's ticks of CPU time.
    pub fn resolve(&self, span: (Ktime, Ktime)) -> bool {
        let (from, to) = span;
        let length = to.since(from);
        let tolerated = length / RESOLVED_PART;
        let is_near = |time: Ktime| {
            let after = self.0.partition_point(|(at, _)| *at < time);
            let before = after.checked_sub(1).and_then(|at| self.0.get(at));
            let around = before.into_iter().chain(self.0.get(after));
            let mut distances = around.map(|(at, _)| at.0.abs_diff(time.0));
            distances.any(|distance| distance <= tolerated)
        };
        tolerated >= TICK && is_near(from) && is_near(to)
    }

    /// The CPU time of all CPUs that was used in a span. `build` is the CPU time of the build's tasks in ns. A task
    /// counts as having a CPU even while the hypervisor has stopped that CPU, so stolen time is part of the used
    /// time.
    pub fn used(&self, span: (Ktime, Ktime), build: u64) -> Option<Used> {
        let counted = |counter| self.increase(counter, span).unwrap_or(0);
        let busy = self.increase(Counter::Busy, span)?;
        let taken = busy.saturating_add(counted(Counter::Stolen));
        let own = build.saturating_add(counted(Counter::Recorder));
        Some(Used {
            all: taken.max(own),
            others: taken.saturating_sub(own),
        })
    }

    /// The smallest, the mean and the largest value of one of the machine's counters in a span of time and at
    /// the samples next to it.
    pub fn range(&self, counter: Counter, (from, to): (Ktime, Ktime)) -> Option<Range> {
        let first = self.0.partition_point(|(at, _)| *at <= from);
        let last = self.0.partition_point(|(at, _)| *at < to);
        let around = self.0.get(first.saturating_sub(1)..=last);
        let around = around.or_else(|| self.0.get(first.saturating_sub(1)..))?;
        let values = around
            .iter()
            .filter_map(|(_, counters)| counters.get(counter));
        let mut range = None;
        let (mut sum, mut count) = (0u128, 0u128);
        for value in values {
            let (least, most) = range.unwrap_or((value, value));
            range = Some((least.min(value), most.max(value)));
            sum += u128::from(value);
            count += 1;
        }
        let (least, most) = range?;
        let mean = u64::try_from(sum / count.max(1)).unwrap_or(u64::MAX);
        Some(Range { least, mean, most })
    }
}

/// Whether the recording is about all CPUs, like the samples of the machine's counters. If an option limited the
/// recording to some CPUs, the recorded events cannot be compared with the samples.
pub fn samples_are_of_recorded_cpus(analysis: &Analysis) -> bool {
    analysis.meta.options.cpus.is_empty()
}

/// The time for which the machine withheld CPUs and memory in the analyzed span. A trace of a version before
/// 3.3 has only the times of the whole recording.
pub fn withheld(analysis: &Analysis) -> Machine {
    let mut machine = by_counters(analysis);
    for (_, ns) in throttled_containers(analysis) {
        machine.throttled_ns = Some(machine.throttled_ns.unwrap_or(0).saturating_add(ns));
    }
    machine
}

/// The containers that began in the analyzed span and that quotas of their own throttled, with the throttled times of
/// their whole lives in ns.
pub fn throttled_containers(analysis: &Analysis) -> impl Iterator<Item = (&Container, u64)> {
    let span = analysis.start..=analysis.end;
    let all = analysis.containers.list.iter();
    let within =
        move |container: &&Container| span.contains(&analysis.process(container.process).start);
    let times = all
        .filter(within)
        .map(|container| (container, container.throttled.unwrap_or(0)));
    times.filter(|(_, ns)| *ns > 0)
}

fn by_counters(analysis: &Analysis) -> Machine {
    let span = (analysis.start, analysis.end);
    let samples = Samples::of(analysis);
    if samples.0.is_empty() {
        let summary = analysis.summary.as_ref();
        return summary
            .and_then(|summary| summary.machine)
            .unwrap_or_default();
    }
    Machine {
        throttled_ns: samples.increase(Counter::Throttled, span),
        stolen_ns: samples.increase(Counter::Stolen, span),
        memory_stalled_ns: samples.increase(Counter::MemorySome, span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[(u64, u64)]) -> Vec<(Ktime, Counters)> {
        let sample = |(time, value): &(u64, u64)| {
            let mut counters = Counters::default();
            counters.set(Counter::Busy, *value);
            counters.set(Counter::AvailableMemory, *value);
            (Ktime(*time), counters)
        };
        values.iter().map(sample).collect()
    }

    #[test]
    fn totals_grow_evenly_between_samples() {
        let all = samples(&[(100, 0), (200, 50), (300, 50), (400, 450)]);
        let all = Samples(&all);
        let busy = |from, to| all.increase(Counter::Busy, (Ktime(from), Ktime(to)));
        assert_eq!(busy(0, 1000), Some(450));
        assert_eq!(busy(150, 250), Some(25));
        assert_eq!(busy(350, 375), Some(100));
        assert_eq!(all.increase(Counter::Stolen, (Ktime(0), Ktime(1000))), None);
        let within = |from, to| all.within((Ktime(from), Ktime(to)));
        assert_eq!(within(0, 350), Some((Ktime(100), Ktime(350))));
        assert_eq!(within(500, 600), None);
    }

    #[test]
    fn a_span_between_samples_or_of_few_ticks_is_not_resolved() {
        const MS: u64 = 1_000_000;
        let all = samples(&[(0, 0), (1000 * MS, 50), (2010 * MS, 50)]);
        let resolve = |from, to| Samples(&all).resolve((Ktime(from * MS), Ktime(to * MS)));
        assert!(resolve(0, 2010));
        assert!(resolve(20, 1000));
        assert!(!resolve(0, 1900), "the end is 110 ms before a sample");
        assert!(!resolve(100, 200), "both ends are between samples");
        let short = samples(&[(0, 0), (150 * MS, 10)]);
        assert!(!Samples(&short).resolve((Ktime(0), Ktime(150 * MS))));
        assert!(!Samples(&[]).resolve((Ktime(0), Ktime(1000 * MS))));
    }

    #[test]
    fn current_values_are_those_in_and_around_the_span() {
        let all = samples(&[(100, 10), (200, 50), (300, 60), (400, 450)]);
        let range = |from, to| {
            let range = Samples(&all).range(Counter::AvailableMemory, (Ktime(from), Ktime(to)));
            range.map(|range| (range.least, range.mean, range.most))
        };
        assert_eq!(range(210, 290), Some((50, 55, 60)));
        assert_eq!(range(0, 1000), Some((10, 142, 450)));
        assert_eq!(range(500, 600), Some((450, 450, 450)));
        assert_eq!(
            Samples(&[]).range(Counter::Busy, (Ktime(0), Ktime(1))),
            None
        );
    }
}
