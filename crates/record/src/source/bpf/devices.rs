//! Block devices: the increase of the programs' sums, once a second.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tr_bpf::wire;
use tr_format::device::{Block, Device, Requests};
use tr_format::event::{Ktime, LifeEvent, LifeKind};

use crate::source::recorder;

/// The interval between two readings.
const EVERY: Duration = Duration::from_secs(1);
/// The bits of a minor number in the kernel's `dev_t`.
const MINOR_BITS: u32 = 20;

/// The sums at the last reading, by the devices' numbers.
pub struct Devices {
    before: HashMap<u32, wire::BlockDevice>,
    names: HashMap<u32, Arc<[u8]>>,
    last: Ktime,
    next: Instant,
}

impl Devices {
    /// For a recording that begins at `start`.
    pub fn new(start: Ktime) -> Devices {
        Devices {
            before: HashMap::new(),
            names: HashMap::new(),
            last: start,
            next: Instant::now() + EVERY,
        }
    }

    /// A second has passed since the last reading.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// An event for each device that has completed requests since the last reading.
    pub fn read(&mut self, devices: Vec<(u32, wire::BlockDevice)>, now: Ktime) -> Vec<LifeEvent> {
        let mut events = Vec::new();
        for (number, sums) in devices {
            let before = self.before.insert(number, sums);
            let mut block = increase(&sums, before.as_ref());
            if block.groups.iter().all(|group| group.count == 0) && block.busy == 0 {
                continue;
            }
            block.device = Device {
                major: number >> MINOR_BITS,
                minor: number & ((1 << MINOR_BITS) - 1),
            };
            block.interval = now.since(self.last);
            let name = self.names.entry(number);
            block.name = Arc::clone(name.or_insert_with(|| name_of(block.device)));
            events.push(recorder(now, LifeKind::Block(Box::new(block))));
        }
        self.last = now;
        self.next = Instant::now() + EVERY;
        events
    }
}

/// The name of a device now; empty if it is gone.
fn name_of(device: Device) -> Arc<[u8]> {
    let target = std::fs::read_link(format!("/sys/dev/block/{device}")).unwrap_or_default();
    let name = target.file_name().map_or(&[][..], OsStrExt::as_bytes);
    name.into()
}

/// The sums since `before`.
fn increase(sums: &wire::BlockDevice, before: Option<&wire::BlockDevice>) -> Block {
    let mut block = Block {
        busy: sums.busy.wrapping_sub(before.map_or(0, |it| it.busy)),
        ..Block::default()
    };
    for (at, (group, sums)) in block.groups.iter_mut().zip(&sums.sums).enumerate() {
        let before = before.and_then(|it| it.sums.get(at));
        let since = |of: fn(&wire::BlockSums) -> u64| of(sums).wrapping_sub(before.map_or(0, of));
        *group = Requests {
            count: since(|it| it.count),
            bytes: since(|it| it.bytes),
            latency: since(|it| it.latency),
            longest: sums.longest,
            ..Requests::default()
        };
        for (at, (bucket, count)) in group.buckets.iter_mut().zip(&sums.buckets).enumerate() {
            let before = before.and_then(|it| it.buckets.get(at)).copied();
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
        let number = 4000 << MINOR_BITS | 5;
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
        assert_eq!(&*first[0].name, b"");
        assert!(read(sums(3, u32::MAX), 250).is_empty());
        let second = &read(sums(5, 1), 360)[0];
        assert_eq!((second.interval, second.busy), (110, 20));
        let group = &second.groups[1];
        let figures = (group.count, group.bytes, group.latency, group.longest);
        assert_eq!(figures, (2, 8192, 14, 9));
        // The programs count in 32 bits.
        assert_eq!(group.buckets[3], 2);
        assert_eq!(second.groups[0], Requests::default());
    }
}
