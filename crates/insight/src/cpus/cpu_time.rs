//! Computes the CPU time of processes: for each stretch of time in which a thread ran, and for each interval of the
//! recording.

use tr_analyze::model::{Analysis, Process, ThreadIx};
use tr_analyze::share;
use tr_analyze::timeline::Bucket;

/// A stretch of time of a thread, and the thread's CPU time in it. The times are in ns since the start of the
/// recording.
pub struct RunSlice {
    pub from: u64,
    pub to: u64,
    on_cpu: u64,
}

impl RunSlice {
    /// The CPU time in nanoseconds that the thread had from the beginning of this stretch until the time `at`. The CPU
    /// time is assumed to be spread evenly over the stretch.
    pub fn until(&self, at: u64) -> u64 {
        share(self.on_cpu, at - self.from, self.to - self.from)
    }
}

/// The stretches of time in which threads of a process were on a CPU, thread by thread. The stretches come from the
/// timeline or, without a timeline, from samples.
pub fn on_cpu<'a>(
    analysis: &'a Analysis,
    process: &'a Process,
) -> impl Iterator<Item = RunSlice> + 'a {
    let zero = analysis.meta.start;
    let threads = process.threads.iter();
    let timeline = analysis.timeline.iter();
    let stretches = timeline
        .flat_map(move |timeline| {
            let threads = threads.clone();
            threads.flat_map(|thread: &ThreadIx| timeline.of(*thread))
        })
        .filter(|stretch| matches!(stretch.doing, Bucket::OnCpu(_)))
        .map(move |stretch| RunSlice {
            from: stretch.from.since(zero),
            to: stretch.to.since(zero),
            on_cpu: stretch.length(),
        });
    let threads = process.threads.iter();
    let samples = threads.flat_map(|thread: &ThreadIx| analysis.samples_of(*thread));
    let samples = samples.map(move |sample| RunSlice {
        from: sample.from.since(zero),
        to: sample.to.since(zero),
        on_cpu: sample.on_cpu,
    });
    stretches.chain(samples.filter(|ran| ran.on_cpu > 0))
}

/// The CPU time of a process's threads that only the kernel's totals show, and neither events nor samples. This time is
/// spread evenly over the time in which the events do not show the thread's state.
pub fn on_cpu_by_kernel<'a>(
    analysis: &'a Analysis,
    process: &'a Process,
) -> impl Iterator<Item = RunSlice> + 'a {
    let zero = analysis.meta.start;
    let threads = process.threads.iter();
    threads.flat_map(move |ix| {
        let samples = analysis.samples_of(*ix).iter();
        let sampled = samples
            .map(|sample| sample.on_cpu)
            .fold(0, u64::saturating_add);
        let ns = analysis.thread(*ix).by_kernel.on_cpu;
        let ns = ns.saturating_sub(sampled);
        let unknown = move || {
            let timeline = analysis.timeline.iter().filter(move |_| ns > 0);
            let all = timeline.flat_map(|timeline| timeline.of(*ix));
            all.filter(|stretch| stretch.doing == Bucket::Unknown)
        };
        let whole: u64 = unknown().map(|stretch| stretch.length()).sum();
        unknown().map(move |stretch| RunSlice {
            from: stretch.from.since(zero),
            to: stretch.to.since(zero),
            on_cpu: share(ns, stretch.length(), whole),
        })
    })
}

/// The CPU time of a process in each interval of the recording: the number of the interval, counted from the
/// start of the recording, and the time in nanoseconds. Intervals without CPU time are left out.
pub fn on_cpu_in_intervals(
    analysis: &Analysis,
    process: &Process,
    interval: u64,
) -> Vec<(u64, u64)> {
    let mut values: Vec<(u64, u64)> = Vec::new();
    for ran in on_cpu(analysis, process) {
        let mut from = ran.from;
        while from < ran.to {
            let number = from / interval;
            let end = number
                .saturating_add(1)
                .saturating_mul(interval)
                .min(ran.to);
            let part = ran.until(end) - ran.until(from);
            match values.last_mut() {
                Some((last, ns)) if *last == number => {
                    *ns = ns.saturating_add(part);
                }
                _ if part > 0 => values.push((number, part)),
                _ => {}
            }
            from = end;
        }
    }
    // So far the values are sorted by thread. Values of one interval are added up.
    values.sort_unstable();
    values.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
    values
}
