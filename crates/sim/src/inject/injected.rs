//! The changes that fault injectors have made to a simulated recording.

use tr_format::event::{CpuId, Ktime, LossCause, Stream, Tid};

/// A change that a fault injector has made to a simulated recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injected {
    /// The time stamps of one simulated CPU's events were made wrong.
    Skewed {
        /// The simulated CPU whose time stamps are wrong.
        cpu: CpuId,
        /// The errors of the CPU's time stamps at the start and at the end of the recorded span, in
        /// ns.
        offset: (i64, i64),
    },
    /// Some events of the simulated recording were written into their ring some time after their time stamp was taken.
    Late {
        /// The number of simulated events that were written into their ring some time after their time stamp was taken.
        events: u64,
        /// The longest time in ns from the time stamp of an event to the moment at which it was written into its ring.
        longest: u64,
    },
    /// Neighbouring events in a ring of the simulated recording were swapped.
    Inverted {
        /// The number of pairs of neighbouring events that were swapped.
        pairs: u64,
        /// The largest difference in ns by which an event's time stamp is earlier than that of the event before it in
        /// the ring.
        largest: u64,
    },
    /// Events of the simulated recording were removed, and a loss record says so.
    Lost {
        /// The stream of the simulated recording from which the events were removed.
        stream: Stream,
        /// The time stamps of the first and the last of the events that were removed from the
        /// simulated recording.
        span: (Ktime, Ktime),
        /// The number of events that were removed from the simulated recording.
        count: u64,
        /// The cause of the loss of events that the injected loss record gives.
        cause: LossCause,
    },
    /// The trace file was made to end before the simulated recording does.
    CutOff {
        /// The time of the last watermark in the shortened trace file. All events before a watermark's time are earlier
        /// in the file, so the span that can be analyzed ends there.
        end: Ktime,
        /// The number of events that are missing because the trace file ends early.
        events: u64,
    },
    /// Switches of the simulated recording were removed without a loss record.
    Hidden {
        /// The number of switches that were removed from the simulated recording.
        switches: u64,
    },
    /// An event of this task was recorded twice in the simulated recording.
    Duplicated(Tid),
    /// An event of this task was removed from the simulated recording, without a loss record.
    Missing(Tid),
}
