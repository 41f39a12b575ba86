//! Makes the HTML report's table with the samples of the machine's counters (pressure, memory,
//! frequency).

use tr_analyze::model::Analysis;
use tr_format::counters::{self, Counter};
use tr_format::event::Ktime;

/// The largest number of samples of the machine's counters in the HTML report.
const SAMPLES: usize = 2_000;

columns!(Counters(zero: Ktime, time: Ktime, values: &counters::Counters) {
    at: u64 = time.since(zero),
    busy: Option<u64> = values.get(Counter::Busy),
    stolen: Option<u64> = values.get(Counter::Stolen),
    throttled: Option<u64> = values.get(Counter::Throttled),
    cpu: Option<u64> = values.get(Counter::CpuSome),
    io: Option<u64> = values.get(Counter::IoSome),
    memory: Option<u64> = values.get(Counter::MemorySome),
    available: Option<u64> = values.get(Counter::AvailableMemory),
});

/// The samples of the machine's counters (pressure, memory, frequency) for the HTML report. If there are too many
/// samples, only every second one is kept, or every third one, and so on.
pub fn counters(analysis: &Analysis) -> Counters {
    let mut columns = Counters::default();
    let step = analysis.machine.counters.len() / SAMPLES + 1;
    for (time, values) in analysis.machine.counters.iter().step_by(step) {
        columns.push(analysis.meta.start, *time, values);
    }
    columns
}
