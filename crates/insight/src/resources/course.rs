//! Computes the use of CPUs and memory over the time of a recording, for a picture of one line.

use tr_analyze::machine::Samples;
use tr_analyze::model::Analysis;
use tr_format::counters::Counter;
use tr_format::event::Ktime;

/// The number of columns of the picture of CPU and memory use over a recording. Each column is an equal part of the
/// time.
pub const CHART_COLUMNS: usize = 10;
/// The length in nanoseconds of the shortest recording for which a chart over its time is drawn. The counters are read
/// once a second, so a shorter recording has too few samples for the ten columns of the chart.
const SHORTEST_RECORDING: u64 = 2_000_000_000;

/// Divides a recording into equal parts, one for each column of a chart over its time. Returns the beginning and the
/// end of each part. The list is empty if the recording is too short.
pub fn parts(analysis: &Analysis) -> Vec<(Ktime, Ktime)> {
    let wall = analysis.wall();
    if wall < SHORTEST_RECORDING {
        return Vec::new();
    }
    let at = |number: usize| {
        let ns = tr_analyze::share(wall, number as u64, CHART_COLUMNS as u64);
        Ktime(analysis.start.0.saturating_add(ns))
    };
    (0..CHART_COLUMNS)
        .map(|number| (at(number), at(number + 1)))
        .collect()
}

/// For each of the equal parts of a recording, the largest memory in bytes of all processes together, by the samples in
/// the part and next to it. The list is empty if a part has no samples, or if all values are 0, because no memory was
/// sampled.
pub fn memory(analysis: &Analysis) -> Vec<u64> {
    let samples = Samples::of(analysis);
    let parts = parts(analysis).into_iter();
    let most = parts.map(|part| Some(samples.range(Counter::Resident, part)?.most));
    let most: Vec<u64> = most.collect::<Option<_>>().unwrap_or_default();
    if most.iter().all(|bytes| *bytes == 0) {
        return Vec::new();
    }
    most
}
