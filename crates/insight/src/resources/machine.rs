//! Computes the figures of the machine over time: the CPU time of the build and of other tasks, and the machine's
//! counters.

use tr_analyze::arena::Arena;
use tr_analyze::machine::{samples_are_of_recorded_cpus, Range, Samples};
use tr_analyze::model::ProcessIx;
use tr_format::counters::{Counter, Unit};
use tr_format::event::Ktime;

use crate::cpus;
use crate::cpus::cpu_time;
use crate::views::view::View;

/// The figures of the machine in the analyzed span, and in each part of it.
pub struct MachineFigures<'a> {
    /// The number of CPUs that the recorded machine has.
    pub cpus: u64,
    /// The words that say which processes the figures mean by "build".
    pub build: &'static str,
    /// The parts of the analyzed span in order, from the first sample of the machine's counters to the last one. Each
    /// part lies between two samples, or between a sample and an end of the span.
    pub intervals: Vec<Interval<'a>>,
    /// The figures of the machine over all of these parts together.
    pub whole: Interval<'a>,
}

impl<'a> MachineFigures<'a> {
    /// Computes the figures of the machine from the samples of its counters in the analyzed span; `None` if there are
    /// no samples.
    pub fn new(view: &View<'a>) -> Option<MachineFigures<'a>> {
        let analysis = view.analysis;
        let samples = Samples::of(analysis);
        let covered = samples.within((analysis.start, analysis.end))?;
        let inside = samples.0.iter().map(|(at, _)| *at);
        let inside = inside.filter(|at| *at > covered.0 && *at < covered.1);
        let mut edges: Vec<Ktime> = [covered.0].into_iter().chain(inside).collect();
        edges.push(covered.1);
        edges.dedup();
        let (own, build) = cpus::own(view);
        let ran = on_cpu(view, &own, &edges);
        let all = view.ask.cpu.is_none() && samples_are_of_recorded_cpus(analysis);
        let cpus = analysis.meta.cpus.len() as u64;
        let known = all.then_some(cpus);
        let spans = edges.iter().zip(edges.iter().skip(1));
        let intervals = spans
            .zip(&ran)
            .map(|((from, to), ran)| Interval::new(samples, (*from, *to), *ran, known));
        let sum = ran.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        Some(MachineFigures {
            cpus,
            build,
            intervals: intervals.collect(),
            whole: Interval::new(samples, covered, sum, known),
        })
    }
}

/// The figures of the machine in a part of the analyzed span. A figure is `None` if it is not known.
pub struct Interval<'a> {
    samples: Samples<'a>,
    span: (Ktime, Ktime),
    /// The CPU time in nanoseconds that the build had in this part of the analyzed span.
    pub build: u64,
    /// The CPU time in nanoseconds that tasks outside of the build (without `tr`) or the hypervisor had in this part of
    /// the analyzed span.
    pub others: Option<u64>,
    /// The sum over all CPUs of the idle time in this part of the analyzed span, in nanoseconds.
    pub idle: Option<u64>,
}

impl<'a> Interval<'a> {
    fn new(samples: Samples<'a>, span: (Ktime, Ktime), build: u64, cpus: Option<u64>) -> Self {
        let mut interval = Interval {
            samples,
            span,
            build,
            others: None,
            idle: None,
        };
        let (Some(cpus), Some(used)) = (cpus, samples.used(span, build)) else {
            return interval;
        };
        let all = interval.length().saturating_mul(cpus);
        interval.others = Some(used.others.min(all.saturating_sub(build)));
        interval.idle = Some(all.saturating_sub(used.all));
        interval
    }

    /// The beginning of this part of the analyzed span.
    pub fn from(&self) -> Ktime {
        self.span.0
    }

    /// The length in nanoseconds of this part of the analyzed span.
    pub fn length(&self) -> u64 {
        self.span.1.since(self.span.0)
    }

    /// The increase of a counter of the machine in this part of the analyzed span.
    pub fn total(&self, counter: Counter) -> Option<u64> {
        self.samples.increase(counter, self.span)
    }

    /// The smallest, the mean and the largest value of a counter of the machine in this part of the analyzed span and
    /// at the samples next to it.
    pub fn range(&self, counter: Counter) -> Option<Range> {
        self.samples.range(counter, self.span)
    }

    /// The value of a counter of the machine in this part of the analyzed span. For a counter of times or events, the
    /// value is the increase during the part. For a size or a frequency, the value is the mean of the samples at the
    /// end of the part.
    pub fn value(&self, counter: Counter) -> Option<u64> {
        let end = (self.span.1, self.span.1);
        match counter.unit() {
            Unit::Time | Unit::Count => self.total(counter),
            Unit::Bytes | Unit::Frequency => {
                let range = self.samples.range(counter, end);
                range.map(|range| range.mean)
            }
        }
    }
}

/// The CPU time in nanoseconds of the build's processes between each two successive times in `edges`.
fn on_cpu(view: &View<'_>, own: &Arena<ProcessIx, bool>, edges: &[Ktime]) -> Vec<u64> {
    let edges: Vec<u64> = edges.iter().map(|edge| view.since(*edge)).collect();
    let mut sums = vec![0u64; edges.len().saturating_sub(1)];
    for ix in own.ids().filter(|ix| own[*ix]) {
        let process = view.analysis.process(ix);
        let by_events = cpu_time::on_cpu(view.analysis, process);
        for ran in by_events.chain(cpu_time::on_cpu_by_kernel(view.analysis, process)) {
            let first = edges.partition_point(|edge| *edge <= ran.from);
            let mut at = first.saturating_sub(1);
            while let (Some(from), Some(to), Some(sum)) =
                (edges.get(at), edges.get(at + 1), sums.get_mut(at))
            {
                if *from >= ran.to {
                    break;
                }
                let (from, to) = (ran.from.max(*from), ran.to.min(*to));
                if from < to {
                    *sum = sum.saturating_add(ran.until(to) - ran.until(from));
                }
                at += 1;
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_format::counters::Counters;

    fn sample(busy: u64, stolen: u64, recorder: u64) -> Counters {
        let mut counters = Counters::default();
        counters.set(Counter::Busy, busy);
        counters.set(Counter::Stolen, stolen);
        counters.set(Counter::Recorder, recorder);
        counters
    }

    /// Checks how the machine's CPU time is divided. In 100 ns, 2 CPUs have 200 ns of time. By the counters, 120 ns
    /// were used by tasks and 30 ns by the hypervisor, so the CPUs were idle for 50 ns. Of the 150 ns that were used,
    /// the build had 90 ns and `tr` had 10 ns, so the other tasks and the hypervisor had 50 ns.
    #[test]
    fn the_rest_of_the_busy_time_is_that_of_others() {
        let samples = [
            (Ktime(1000), sample(0, 0, 0)),
            (Ktime(1100), sample(120, 30, 10)),
        ];
        let samples = Samples(&samples);
        let span = (Ktime(1000), Ktime(1100));
        let whole = Interval::new(samples, span, 90, Some(2));
        assert_eq!((whole.others, whole.idle), (Some(50), Some(50)));
        // Counters have coarser ticks than events, so the build may seem to have used more CPU time than the whole
        // machine. The other parts are then 0 and not negative.
        let whole = Interval::new(samples, span, 199, Some(2));
        assert_eq!((whole.others, whole.idle), (Some(0), Some(0)));
        let whole = Interval::new(samples, span, 90, None);
        assert_eq!((whole.others, whole.idle), (None, None));
    }
}
