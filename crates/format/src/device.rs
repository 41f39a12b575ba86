//! Requests to block devices.

use std::fmt;
use std::sync::Arc;

use crate::event::{Tgid, Tid};

/// A block device's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// Its driver's number.
    pub major: u32,
    /// Its number among the driver's devices.
    pub minor: u32,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Buckets of a histogram of latencies. Bucket n has those of 2^(n + 10) ns and more, below
/// 2^(n + 11) ns; the first and the last have no other bound.
pub const BUCKETS: usize = 32;

/// The latency in ns that no request of this bucket reaches; the last bucket has none.
pub fn bucket_end(bucket: usize) -> u64 {
    if bucket + 1 < BUCKETS {
        1 << (bucket + 11)
    } else {
        u64::MAX
    }
}

/// Groups of requests, as in `/proc/diskstats`.
pub const GROUPS: [&str; 4] = ["read", "write", "discard", "flush"];

/// The requests of a whole disk that were completed in an interval. They are those of all
/// tasks of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The disk.
    pub device: Device,
    /// Its name; empty if it is not known.
    pub name: Arc<[u8]>,
    /// The length of the interval, which ends at the event, in ns.
    pub interval: u64,
    /// Time in which a request was in flight, in ns. A request in flight at the event counts
    /// up to the device's last issue or completion.
    pub busy: u64,
    /// By [`GROUPS`].
    pub groups: [Requests; 4],
}

/// The disk of a task's waits for block I/O from the event's time on, until its next event of
/// this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskWait {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The disk to which the task had sent a request since its wait before; `None`: to none, so
    /// the disk is not known.
    pub device: Option<Device>,
    /// The disk's name; empty if it is not known.
    pub name: Arc<[u8]>,
}

/// The file of a task's waits in `fsync` and its relatives from the event's time on, until its
/// next event of this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncFile {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// The last component of the file's path; empty if the call names no file (`sync`, `msync`).
    pub name: Arc<[u8]>,
}

/// Sums over the completed requests of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Their number.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their latencies, from the issue to the driver to its completion, in ns.
    pub latency: u64,
    /// The longest latency.
    pub longest: u64,
    /// The numbers of latencies in each bucket.
    pub buckets: [u64; BUCKETS],
}
