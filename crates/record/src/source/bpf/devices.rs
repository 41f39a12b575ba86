//! Computes by how much the BPF programs' sums over block devices have grown between two samples.

use std::collections::HashMap;

use tr_bpf::wire;
use tr_format::device::{Block, Requests};
use tr_format::event::{Ktime, LifeEvent, LifeKind};

use crate::disks;
use crate::source::recorder;

/// The BPF programs' sums of the requests to each block device at the last reading, by the numbers of the devices.
pub struct Devices {
    before: HashMap<u32, wire::BlockDevice>,
    last: Ktime,
}

impl Devices {
    /// Creates a `Devices` that has read no sums yet, for a recording that begins at `start`.
    pub fn new(start: Ktime) -> Devices {
        Devices {
            before: HashMap::new(),
            last: start,
        }
    }

    /// The events for all block devices that were busy or have completed requests since the last reading. The events
    /// lack the names of the devices.
    pub fn read(&mut self, devices: Vec<(u32, wire::BlockDevice)>, now: Ktime) -> Vec<LifeEvent> {
        let mut events = Vec::new();
        for (number, sums) in devices {
            let before = self.before.insert(number, sums);
            let mut block = increase(&sums, before.as_ref());
            if block.groups.iter().all(|group| group.count == 0) && block.busy == 0 {
                continue;
            }
            block.device = disks::device(number);
            block.interval = now.since(self.last);
            events.push(recorder(now, LifeKind::Block(Box::new(block))));
        }
        self.last = now;
        events
    }
}

/// Computes by how much the sums of a block device have grown since the reading `before`.
fn increase(sums: &wire::BlockDevice, before: Option<&wire::BlockDevice>) -> Block {
    let mut block = Block {
        busy: sums.busy.wrapping_sub(before.map_or(0, |sums| sums.busy)),
        ..Block::default()
    };
    for (at, (group, sums)) in block.groups.iter_mut().zip(&sums.sums).enumerate() {
        let before = before.and_then(|device| device.sums.get(at));
        let since = |of: fn(&wire::BlockSums) -> u64| of(sums).wrapping_sub(before.map_or(0, of));
        *group = Requests {
            count: since(|sums| sums.count),
            bytes: since(|sums| sums.bytes),
            latency: since(|sums| sums.latency),
            longest: sums.longest,
            ..Requests::default()
        };
        for (at, (bucket, count)) in group.buckets.iter_mut().zip(&sums.buckets).enumerate() {
            let before = before.and_then(|sums| sums.buckets.get(at)).copied();
            *bucket = u64::from(count.wrapping_sub(before.unwrap_or(0)));
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    fn sums(count: u64, bucket: u32) -> wire::BlockDevice {
        let mut device = wire::BlockDevice::new_zeroed();
        device.busy = count * 10;
        device.sums[1].count = count;
        device.sums[1].bytes = count * 4096;
        device.sums[1].latency = count * 7;
        device.sums[1].longest = 9;
        device.sums[1].buckets[3] = bucket;
        device
    }

    #[test]
    fn a_reading_has_the_increase_of_devices_that_were_used() {
        let mut devices = Devices::new(Ktime(100));
        let number = 4000 << 20 | 5;
        let mut read = |sums, now| {
            let events = devices.read(vec![(number, sums)], Ktime(now));
            let blocks = events.into_iter().map(|event| match event.kind {
                LifeKind::Block(block) => *block,
                other => panic!("{other:?}"),
            });
            blocks.collect::<Vec<_>>()
        };
        let first = read(sums(3, u32::MAX), 150);
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].device.to_string(), "4000:5");
        assert_eq!((first[0].interval, first[0].busy), (50, 30));
        assert!(read(sums(3, u32::MAX), 250).is_empty());
        let second = &read(sums(5, 1), 360)[0];
        assert_eq!((second.interval, second.busy), (110, 20));
        let group = &second.groups[1];
        let figures = (group.count, group.bytes, group.latency, group.longest);
        assert_eq!(figures, (2, 8192, 14, 9));
        // The BPF programs count in 32 bits. After `u32::MAX` the second reading is 1, which means two more
        // requests.
        assert_eq!(group.buckets[3], 2);
        assert_eq!(second.groups[0], Requests::default());
    }
}
