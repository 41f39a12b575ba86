//! Computes the figures of requests to disks by all tasks of the machine.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tr_format::device::{bucket_end, Block, Device, Requests, BUCKETS};

use crate::views::view::View;
use tr_text::escape;

/// The requests to one disk by all tasks of the machine.
pub struct DiskRequests<'a> {
    pub device: Device,
    /// The name of the disk.
    pub name: String,
    /// The time in nanoseconds in which at least one request to this disk was in flight.
    pub busy: u64,
    /// The figures of the requests to this disk for each kind of request, in the order of
    /// [`GROUPS`](tr_format::device::GROUPS).
    pub groups: [Requests; 4],
    pub all: Requests,
    /// The samples of this disk's figures, each with its time in nanoseconds since the start of the recording.
    pub samples: Vec<(u64, &'a Block)>,
}

/// The disks of the machine that had requests, the disk with the longest busy time first.
pub fn disks<'a>(view: &View<'a>) -> Vec<DiskRequests<'a>> {
    let mut disks: BTreeMap<Device, DiskRequests<'a>> = BTreeMap::new();
    for (time, block) in &view.analysis.disks.blocks {
        let disk = disks.entry(block.device).or_insert_with(|| DiskRequests {
            device: block.device,
            name: escape::raw(&block.name),
            busy: 0,
            groups: Default::default(),
            all: Requests::default(),
            samples: Vec::new(),
        });
        disk.busy = disk.busy.saturating_add(block.busy);
        for (sum, group) in disk.groups.iter_mut().zip(&block.groups) {
            add(sum, group);
            add(&mut disk.all, group);
        }
        disk.samples.push((view.since(*time), block));
    }
    let mut disks: Vec<DiskRequests<'a>> = disks.into_values().collect();
    disks.sort_by_key(|disk| Reverse((disk.busy, disk.all.count)));
    disks
}

impl DiskRequests<'_> {
    /// The number of bytes in the requests to this disk of one kind (such as reads), given as an index into the list
    /// of kinds.
    pub fn bytes(&self, group: usize) -> u64 {
        self.groups.get(group).map_or(0, |group| group.bytes)
    }

    /// The mean number of requests in flight to this disk, over the time in which at least one request was in flight.
    pub fn depth(&self) -> f64 {
        self.all.latency as f64 / self.busy.max(1) as f64
    }
}

/// Adds the figures `more` of disk requests to the figures `sum`. The result has the longer one of the two longest
/// latencies.
pub fn add(sum: &mut Requests, more: &Requests) {
    let sums = [
        (&mut sum.count, more.count),
        (&mut sum.bytes, more.bytes),
        (&mut sum.latency, more.latency),
    ];
    let buckets = sum.buckets.iter_mut().zip(more.buckets);
    for (sum, more) in sums.into_iter().chain(buckets) {
        *sum = sum.saturating_add(more);
    }
    sum.longest = sum.longest.max(more.longest);
}

/// The latency in nanoseconds that at least `part` percent of the disk requests do not exceed. The result is the end of
/// a bucket of the latency histogram, or the longest latency if that is shorter.
pub fn percentile(of: &Requests, part: u64) -> Option<u64> {
    let add = |sum: u128, count: &u64| sum + u128::from(*count);
    let all = of.buckets.iter().fold(0, add);
    let mut sum = 0;
    let bucket = (0..BUCKETS).zip(&of.buckets).find(|(_, count)| {
        sum = add(sum, count);
        all > 0 && sum * 100 >= all * u128::from(part)
    });
    bucket.map(|(bucket, _)| bucket_end(bucket).min(of.longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_end_of_its_bucket() {
        let mut sums = Requests {
            longest: 5_000_000,
            ..Requests::default()
        };
        assert_eq!(percentile(&sums, 50), None);
        sums.buckets[0] = 50;
        sums.buckets[2] = 49;
        sums.buckets[12] = 1;
        assert_eq!(percentile(&sums, 50), Some(2048));
        assert_eq!(percentile(&sums, 51), Some(8192));
        assert_eq!(percentile(&sums, 99), Some(8192));
        // The result is the longest latency, not the end of its bucket (2^23).
        assert_eq!(percentile(&sums, 100), Some(5_000_000));
        sums.buckets = [u64::MAX; BUCKETS];
        assert_eq!(percentile(&sums, 100), Some(5_000_000));
    }
}
