//! The events about requests to block devices.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::codec::{Codec, Col, Step, Stored, Text, TextColumns};
use crate::ids::{Ktime, Tgid, Tid};
use crate::{limits, show, Fault};

/// The number of a block device: its major and its minor number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// The major number of the block device, which identifies the device's driver.
    pub major: u32,
    /// The minor number of the block device, which distinguishes the devices of one driver.
    pub minor: u32,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl Serialize for Device {
    fn serialize<S: Serializer>(&self, to: S) -> show::Shown<S> {
        to.collect_str(self)
    }
}

/// The number of buckets of a histogram of the latencies of requests to a disk. Bucket n has the latencies
/// from 2^(n + 10) ns to below 2^(n + 11) ns. The first bucket also has all shorter latencies, and the last
/// one all longer ones.
pub const BUCKETS: usize = 32;

/// The exclusive upper bound in ns of a bucket of a histogram of latencies. The last bucket has no bound.
pub fn bucket_end(bucket: usize) -> u64 {
    if bucket + 1 < BUCKETS {
        1 << (bucket + 11)
    } else {
        u64::MAX
    }
}

/// The names of the groups into which requests to block devices are divided, as in `/proc/diskstats`.
pub const GROUPS: [&str; 4] = ["read", "write", "discard", "flush"];

/// The sums of the requests to a whole disk that were completed in an interval. Requests of all tasks of the
/// machine are included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The disk that the requests were sent to.
    pub device: Device,
    /// The name of the disk that the requests were sent to; empty if it is not known.
    #[serde(serialize_with = "show::text")]
    pub name: Arc<[u8]>,
    /// The length of the interval in ns that the sums of the disk's requests cover. The interval ends at the
    /// event.
    pub interval: u64,
    /// The time in which at least one request to the disk was in flight, in ns. If a request is in flight at
    /// the event, its time is counted up to the device's last issue or completion of a request.
    pub busy: u64,
    /// The sums of the disk's requests for each group of requests (such as reads), in the order of
    /// [`GROUPS`].
    #[serde(flatten, serialize_with = "groups")]
    pub groups: [Requests; 4],
}

/// From the event's time on, the task's waits for block I/O are waits for this disk, until the task's next event of
/// this kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiskWait {
    /// The task whose waits for block I/O are waits for the disk.
    pub tid: Tid,
    /// The process of the task that waits for the disk.
    pub tgid: Tgid,
    /// The disk to which the task has sent a request since its previous wait for block I/O. `None` if it has
    /// sent none, so that the disk is not known.
    pub device: Option<Device>,
    /// The name of the disk that the task waits for; empty if it is not known.
    #[serde(serialize_with = "show::text")]
    pub name: Arc<[u8]>,
}

/// From the event's time on, the task's waits in `fsync` and related system calls are waits for this file, until the
/// task's next event of this kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncFile {
    /// The task that waits for the file in `fsync` or a related system call.
    pub tid: Tid,
    /// The process of the task that waits in `fsync` or a related system call.
    pub tgid: Tgid,
    /// The last component of the path of the file that is synchronized; empty if the system call names no
    /// file (`sync`, `msync`).
    #[serde(serialize_with = "show::text")]
    pub name: Arc<[u8]>,
}

/// The sums of the completed requests of one group to a disk, for example of all reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// The number of completed requests to the disk in this group.
    pub count: u64,
    /// The number of bytes of all requests to the disk in this group together.
    pub bytes: u64,
    /// The sum of the latencies of the requests to the disk in this group, in ns. A latency lasts from the
    /// issue of a request to the driver until its completion.
    pub latency: u64,
    /// The longest latency of a request to the disk in this group, in ns.
    pub longest: u64,
    /// The number of latencies of the group's requests to the disk in each bucket of the histogram
    /// ([`BUCKETS`]).
    pub buckets: [u64; BUCKETS],
}

impl Stored for Block {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.text(Text::Disk, &mut self.name)?;
        c.narrow(Col::BlockDevice, &mut self.device.major)?;
        c.narrow(Col::BlockDevice, &mut self.device.minor)?;
        c.int(Col::BlockDevice, &mut self.interval)?;
        c.int(Col::BlockDevice, &mut self.busy)?;
        self.groups.iter_mut().try_for_each(|group| group.fields(c))
    }

    fn weight(&self) -> usize {
        size_of_val(self) + self.name.len()
    }
}

impl Requests {
    fn fields<C: Codec>(&mut self, c: &mut C) -> Step {
        c.int(Col::Requests, &mut self.count)?;
        if self.count == 0 {
            return Ok(());
        }
        for sum in [&mut self.bytes, &mut self.latency, &mut self.longest] {
            c.int(Col::Requests, sum)?;
        }
        let some = |count: &u64| *count != 0;
        let first = self.buckets.iter().position(some).unwrap_or(0);
        let end = self
            .buckets
            .iter()
            .rposition(some)
            .map_or(first, |last| last + 1);
        let (mut from, mut number) = (first as u64, (end - first) as u64);
        c.int(Col::Buckets, &mut from)?;
        c.int(Col::Buckets, &mut number)?;
        let range = usize::try_from(from).ok().zip(usize::try_from(number).ok());
        range
            .and_then(|(first, len)| self.buckets.get_mut(first..first.checked_add(len)?))
            .ok_or(Fault::Content("no such bucket of latencies"))?
            .iter_mut()
            .try_for_each(|count| c.int(Col::Buckets, count))
    }
}

impl Stored for DiskWait {
    /// Writes or reads the fields of the event. The disk is stored as 0 if there is none, as 1 if it is new
    /// in the frame, else as 2 plus its place among the frame's disks so far.
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(Col::DiskWait, Col::DiskWait, &mut self.tid, &mut self.tgid)?;
        let cut = self.name.get(..limits::NAME).unwrap_or(&self.name);
        let mut place = 0;
        if let Some(Device { major, minor }) = self.device {
            let mut known = c.known().disks.iter();
            let found =
                known.position(|(numbers, name)| *numbers == (major, minor) && **name == *cut);
            place = found.map_or(1, |at| at as u64 + 2);
        }
        c.int(Col::DiskWait, &mut place)?;
        match place {
            0 => (self.device, self.name) = (None, Arc::default()),
            1 => {
                let Device { major, minor } = self.device.get_or_insert_default();
                c.narrow(Col::DiskWait, major)?;
                c.narrow(Col::DiskWait, minor)?;
                let disk = (*major, *minor);
                let mut new: Arc<[u8]> = cut.into();
                let cols = TextColumns::new(Col::DiskWait, Col::DiskWait);
                c.bytes(cols, limits::NAME, &mut new)?;
                self.name = Arc::clone(&new);
                c.known().disks.push((disk, new));
            }
            at => {
                let ((major, minor), name) = usize::try_from(at - 2)
                    .ok()
                    .and_then(|at| c.known().disks.get(at))
                    .cloned()
                    .ok_or(Fault::Content("disk index out of range"))?;
                c.known().spend(name.len())?;
                (self.device, self.name) = (Some(Device { major, minor }), name);
            }
        }
        Ok(())
    }

    fn weight(&self) -> usize {
        size_of_val(self) + self.name.len()
    }
}

impl Stored for SyncFile {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(Col::SyncFile, Col::SyncFile, &mut self.tid, &mut self.tgid)?;
        c.text(Text::File, &mut self.name)
    }

    fn weight(&self) -> usize {
        size_of_val(self) + self.name.len()
    }
}

/// Serializes the sums of a disk's requests by the names of the groups, with null for a group without
/// requests.
fn groups<S: Serializer>(groups: &[Requests; 4], to: S) -> show::Shown<S> {
    let some = |group: &&Requests| group.count > 0;
    to.collect_map(
        GROUPS
            .iter()
            .zip(groups.iter().map(|group| Some(group).filter(some))),
    )
}
