//! The changes that injectors make to a recording.

use tr_format::event::{CpuId, Ktime, LossCause, Stream, Tid};

/// The change by an injector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injected {
    /// The stamps of a CPU are wrong.
    Skewed {
        /// The CPU.
        cpu: CpuId,
        /// The errors at the start and at the end of the span in ns.
        offset: (i64, i64),
    },
    /// Events were written late.
    Late {
        /// The number of events.
        events: u64,
        /// The longest delay, ns.
        longest: u64,
    },
    /// Neighbours in a ring were swapped.
    Inverted {
        /// The number of pairs.
        pairs: u64,
        /// The largest step back in time, ns.
        largest: u64,
    },
    /// Events are missing, with a loss record.
    Lost {
        /// The stream of the events.
        stream: Stream,
        /// The stamps of the first and the last of the events.
        span: (Ktime, Ktime),
        /// The number of events.
        count: u64,
        /// The recorded cause.
        cause: LossCause,
    },
    /// The file ends early.
    CutOff {
        /// The time of the last progress: the span that can be analyzed ends here.
        end: Ktime,
        /// The number of missing events.
        events: u64,
    },
    /// Switches are missing without a loss record.
    Hidden {
        /// The number of switches.
        switches: u64,
    },
    /// An event of a task is repeated.
    Duplicated(Tid),
    /// An event of a task is missing without a loss record.
    Missing(Tid),
}
