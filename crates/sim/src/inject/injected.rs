//! The changes that injectors make to a recording.

use tr_format::event::{CpuId, Ktime, LossCause, Stream, Tid};

/// A change that an injector has made to a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injected {
    /// The stamps of a CPU's events are wrong.
    Skewed {
        /// The CPU whose stamps are wrong.
        cpu: CpuId,
        /// The errors of the CPU's stamps at the start and at the end of the span, in ns.
        offset: (i64, i64),
    },
    /// Some events were written late into their ring.
    Late {
        /// The number of events that were written late.
        events: u64,
        /// The longest time in ns from the stamp of an event to its write.
        longest: u64,
    },
    /// Neighbouring events in a ring were swapped.
    Inverted {
        /// The number of pairs of events that were swapped.
        pairs: u64,
        /// The largest step back in time in a ring, in ns.
        largest: u64,
    },
    /// Events are missing, and a loss record says so.
    Lost {
        /// The stream of the missing events.
        stream: Stream,
        /// The stamps of the first and the last of the missing events.
        span: (Ktime, Ktime),
        /// The number of missing events.
        count: u64,
        /// The cause of the loss, as it is recorded.
        cause: LossCause,
    },
    /// The file ends before the recording does.
    CutOff {
        /// The time of the last watermark in the file. The span that can be analyzed ends there.
        end: Ktime,
        /// The number of events that are missing because of it.
        events: u64,
    },
    /// Switches are missing without a loss record.
    Hidden {
        /// The number of switches that are missing.
        switches: u64,
    },
    /// An event of a task is repeated.
    Duplicated(Tid),
    /// An event of a task is missing without a loss record.
    Missing(Tid),
}
