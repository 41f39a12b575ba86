//! Computes how much a recorded build used of disks, the network and memory.

use std::collections::BTreeMap;

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_format::meta::Extra;

use crate::resources::memory::{self, Resident};
use crate::resources::{disk, network};
use tr_text::named;
use tr_text::units;

named! {
    /// A resource, such as data read from disks, of which all processes of a recording together used some amount.
    pub enum Demand {
        /// The sum of the waits of all threads for disks and files, in nanoseconds.
        DiskWait = "disk-wait", "waits for disks and files";
        /// The sum of the waits of all threads in fsync, in nanoseconds. These waits are also counted in `DiskWait`.
        Sync = "fsync", "waits in fsync";
        /// The sum of the waits for disks on the critical path, in nanoseconds.
        DiskPath = "disk-path", "waits for disks on the critical path";
        /// The number of bytes that were read from disks.
        Read = "disk-read", "read from disks";
        /// The number of bytes that were written to disks.
        Written = "disk-written", "written to disks";
        /// The number of TCP connections that were begun or accepted.
        Connections = "connections", "TCP connections";
        Failed = "failed-connections", "failed TCP connections";
        /// The sum of the time until TCP connections were established, in nanoseconds.
        Connecting = "connecting", "connecting";
        /// The sum of the waits for the network on the critical path, in nanoseconds.
        NetworkPath = "network-path", "waits for the network on the critical path";
        /// The number of bytes that were received by TCP.
        Received = "received", "received by TCP";
        /// The number of bytes that were sent by TCP.
        Sent = "sent", "sent by TCP";
        /// The largest resident memory of all processes together, in bytes.
        Resident = "resident", "resident memory of all processes";
        /// The number of major page faults of all processes. In a major fault, the kernel has to read the page from a
        /// disk.
        MajorFaults = "major-faults", "major faults";
        /// The time that threads spent in direct reclaim of memory, in nanoseconds.
        Reclaim = "reclaim", "direct reclaim";
        /// The sum of the waits of all threads for pages from swap, in nanoseconds.
        Swap = "swap", "waits for pages from swap";
        OomKills = "oom-kills", "killed for lack of memory";
    }
}

/// The known amounts of each resource (such as data read from disks) that the processes of a run used.
pub type Demands = BTreeMap<Demand, u64>;

impl Demand {
    /// The value of a resource that a build used, as text with the unit of that resource.
    pub fn show(self, value: u64) -> String {
        match self {
            Demand::Read | Demand::Written | Demand::Received | Demand::Sent => units::bytes(value),
            Demand::Resident => units::bytes(value),
            Demand::Connections | Demand::Failed | Demand::MajorFaults | Demand::OomKills => {
                units::count(value)
            }
            _ => units::time(value),
        }
    }
}

/// Computes the amounts of each resource that the processes of a whole recording used.
pub fn of(analysis: &Analysis, path: Option<&CriticalPath>) -> Demands {
    let threads: Vec<ThreadIx> = analysis.thread_ids().collect();
    let disk = disk::totals(analysis, &threads, path);
    let memory = memory::totals(analysis, &threads);
    let network = analysis.meta.has(Extra::Network);
    let network = network.then(|| network::totals(analysis, path));
    let resident = Resident::of(analysis).whole();
    let value = |demand| match demand {
        Demand::DiskWait => analysis.timeline.as_ref().map(|_| disk.waited),
        Demand::Sync => analysis.timeline.as_ref().map(|_| disk.sync),
        Demand::DiskPath => disk.path,
        Demand::Read => disk.io().map(|(read, _)| read),
        Demand::Written => disk.io().map(|(_, written)| written),
        Demand::Connections => network.map(|sum| sum.connections),
        Demand::Failed => network.map(|sum| sum.failed),
        Demand::Connecting => network.map(|sum| sum.connecting),
        Demand::NetworkPath => network.and_then(|sum| path.map(|_| sum.path_wait)),
        Demand::Received => network.and_then(|sum| sum.received()),
        Demand::Sent => network.and_then(|sum| sum.sent()),
        Demand::Resident => resident,
        Demand::MajorFaults => memory.major_faults,
        Demand::Reclaim => memory.reclaimed,
        Demand::Swap => memory.swapped,
        Demand::OomKills => memory.killed,
    };
    let all = Demand::ALL.into_iter();
    all.filter_map(|demand| Some((demand, value(demand)?)))
        .collect()
}
