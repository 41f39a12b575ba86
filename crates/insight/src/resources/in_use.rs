//! Computes the CPUs and the memory in use over the time of a recording.

use tr_analyze::machine::Samples;
use tr_analyze::model::Analysis;
use tr_analyze::timeline::Bucket;
use tr_format::counters::Counter;
use tr_format::event::Ktime;

/// The beginning and the end of one of `parts` equal parts of the recording.
fn part(analysis: &Analysis, number: u64, parts: u32) -> (Ktime, Ktime) {
    let at = |number: u64| {
        let ns = u128::from(analysis.wall()) * u128::from(number) / u128::from(parts.max(1));
        Ktime(analysis.start.0.saturating_add(ns as u64))
    };
    (at(number), at(number + 1))
}

/// The mean number of CPUs that the recorded tasks used in each of `parts` equal parts of the recording, in hundredths
/// of a CPU. The list is empty if the recording has no timeline.
pub fn cpus(analysis: &Analysis, parts: u32) -> Vec<u64> {
    let (Some(timeline), 1..) = (&analysis.timeline, analysis.wall()) else {
        return Vec::new();
    };
    let spans = (0..parts).map(|number| part(analysis, number.into(), parts));
    let parts: Vec<(Ktime, Ktime)> = spans.collect();
    let mut sums = vec![0_u64; parts.len()];
    for stretch in analysis.thread_ids().flat_map(|thread| timeline.of(thread)) {
        if !matches!(stretch.doing, Bucket::OnCpu(_)) {
            continue;
        }
        let first = parts.partition_point(|(_, to)| *to <= stretch.from);
        let touched = parts.iter().zip(&mut sums).skip(first);
        for ((from, to), sum) in touched.take_while(|((from, _), _)| *from < stretch.to) {
            let ns = stretch.to.min(*to).since(stretch.from.max(*from));
            *sum = sum.saturating_add(ns);
        }
    }
    let means = parts.iter().zip(sums);
    let means = means.map(|((from, to), ns)| ns.saturating_mul(100) / to.since(*from).max(1));
    means.collect()
}

/// The largest memory in use in each of `parts` equal parts of the recording, in MiB, according to the samples in the
/// part and next to it. The list is empty if a part has no samples. `whole` is the memory of the machine in bytes.
pub fn memory(analysis: &Analysis, parts: u32, whole: u64) -> Vec<u64> {
    let samples = Samples::of(analysis);
    let used = (0..parts).map(|number| {
        let range = samples.range(
            Counter::AvailableMemory,
            part(analysis, number.into(), parts),
        )?;
        Some(whole.checked_sub(range.least)? >> 20)
    });
    used.collect::<Option<Vec<u64>>>().unwrap_or_default()
}
