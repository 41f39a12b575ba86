//! Reads scheduling events from slots in mapped memory, which has a region for each CPU. `events.h` describes the
//! protocol: an empty slot is 0, and the BPF programs fill it. The reader sets the slots that it has read to 0 again,
//! and publishes how far it has read (the tail).

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use nix::time::{clock_gettime, ClockId};

use crate::settings::Settings;
use crate::shared::{self, Shared};
use crate::wire::{Lost, SchedKind, Slot};

/// The number of slots of scheduling events that the reader reads before it publishes its position (the tail) again.
/// The number is small, so that a CPU whose slots are full soon gets free ones. But the number is large enough to
/// rarely disturb the CPU's cache line with the tail.
const STEP: u64 = 256;

/// A record that the BPF programs have written: a scheduling event, a loss of such events, a lifecycle record or a
/// stack sample.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A scheduling event of the CPU with this number.
    Sched(u16, Slot),
    /// A loss of scheduling events of the CPU with this number.
    Lost(u16, Lost),
    /// A lifecycle record or a stack sample, which begins with a [`Head`](crate::wire::Head).
    Life(&'a [u8]),
}

/// The slots of scheduling events of all CPUs, in mapped memory. The mapping keeps the memory after the BPF programs
/// are unloaded.
#[derive(Debug)]
pub struct Slots {
    slots: MmapRaw,
    /// The number of slots (places for one scheduling event) that each CPU has, a power of two.
    count: u64,
    /// The CPUs that have slots for scheduling events, in the order of their regions in memory.
    cpus: Vec<Cpu>,
    /// The largest number of CPUs that can have slots for scheduling events.
    regions: usize,
    possible_cpus: usize,
    newcomers: Vec<u16>,
    /// The time of the last [`Slots::read`] in ns. A slot has only the low bits of its event's time, and
    /// [`Slot::time`] completes them with this time.
    near: u64,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    number: u16,
    tail: u64,
}

impl Slots {
    /// Maps the slots of scheduling events. The mapped memory has one region for each CPU. The first regions belong to
    /// the CPUs of the settings, in the same order, and the others are for CPUs that come online later.
    pub(crate) fn map(fd: BorrowedFd<'_>, settings: &Settings) -> std::io::Result<Slots> {
        let (count, regions) = (settings.slots(), settings.regions() as usize);
        // The length is computed exactly, because the kernel refuses a mapping that is larger than the map.
        let bytes = size_of::<Slot>() * count as usize * regions;
        let cpus = settings.cpus.iter().take(regions);
        Ok(Slots {
            slots: MmapOptions::new().len(bytes).map_raw(fd.as_raw_fd())?,
            count: u64::from(count),
            cpus: cpus.map(|&number| Cpu { number, tail: 0 }).collect(),
            regions,
            possible_cpus: settings.possible_cpus,
            newcomers: Vec::new(),
            near: now(),
        })
    }

    /// Gives slots for scheduling events to the CPUs that have lost events because they came online later. The loss
    /// is reported before the first event of such a CPU.
    fn welcome(&mut self, shared: &Shared) {
        let accounts = shared
            .output()
            .sched_account
            .iter()
            .take(self.possible_cpus);
        for (number, account) in (0u16..).zip(accounts) {
            if self.cpus.len() >= self.regions {
                return;
            }
            let [_, first] = shared.progress(number);
            if first.load(Ordering::Relaxed) == 0 && shared::now(&account.lost_total) > 0 {
                let slot = self.cpus.len() as u64 * self.count + 1;
                first.store(slot, Ordering::Release);
                self.cpus.push(Cpu { number, tail: 0 });
                self.newcomers.push(number);
            }
        }
    }

    /// Returns the numbers of the CPUs that have got slots for scheduling events since the last call of this
    /// function.
    pub fn newcomers(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.newcomers)
    }

    /// Passes the scheduling events in the slots, and their losses, to `sink`, CPU by CPU.
    pub(crate) fn read(&mut self, shared: &Shared, mut sink: impl FnMut(Record<'_>)) {
        self.welcome(shared);
        self.near = now();
        let mut cpus = std::mem::take(&mut self.cpus);
        for (region, cpu) in cpus.iter_mut().enumerate() {
            // One call reads at most as many slots as a CPU has. Without this limit, the loop would never end on a
            // busy CPU, which writes new events during the call.
            let end = cpu.tail + self.count;
            while cpu.tail < end {
                let step = (cpu.tail + STEP).min(end);
                let full = self.step(region, cpu, step, &mut sink);
                // The slots that were read are set to 0 (empty), so the CPU may write to them again.
                let [tail, _] = shared.progress(cpu.number);
                tail.store(cpu.tail, Ordering::Release);
                if !full {
                    break;
                }
            }
        }
        self.cpus = cpus;
    }

    /// Reads the scheduling events in the slots of a CPU up to the position `end`. Returns `false` if there is an
    /// empty slot before `end`.
    fn step(
        &self,
        region: usize,
        cpu: &mut Cpu,
        end: u64,
        sink: &mut impl FnMut(Record<'_>),
    ) -> bool {
        while cpu.tail < end {
            let slot = self.load(region, cpu.tail);
            if slot.is_empty() {
                return false;
            }
            let mut used = 1;
            if slot.kind() == SchedKind::SCHED_LOST {
                let last = self.load(region, cpu.tail + 1);
                if last.is_empty() {
                    return false;
                }
                used = 2;
                let lost = Lost {
                    since: slot.time(self.near),
                    until: last.time(self.near),
                    count: slot.what,
                };
                sink(Record::Lost(cpu.number, lost));
            } else {
                sink(Record::Sched(cpu.number, slot));
            }
            for at in cpu.tail..cpu.tail + used {
                self.clear(region, at);
            }
            cpu.tail += used;
        }
        true
    }

    fn words(&self, region: usize, at: u64) -> [&AtomicU64; 2] {
        let slot = region as u64 * self.count + (at & (self.count - 1));
        // SAFETY: `region` is a place in `cpus`, which has at most `regions` entries, and the mapping has `count`
        // slots for each region. `self` keeps the writable mapping, which is aligned to a page. The programs write
        // whole words only, and this process uses the words as atomics everywhere.
        unsafe {
            let first = self.slots.as_mut_ptr().cast::<u64>().add(slot as usize * 2);
            [
                AtomicU64::from_ptr(first),
                AtomicU64::from_ptr(first.add(1)),
            ]
        }
    }

    fn load(&self, region: usize, at: u64) -> Slot {
        let [when, what] = self.words(region, at);
        Slot {
            when: when.load(Ordering::Relaxed),
            what: what.load(Ordering::Relaxed),
        }
    }

    fn clear(&self, region: usize, at: u64) {
        let [when, what] = self.words(region, at);
        when.store(0, Ordering::Relaxed);
        what.store(0, Ordering::Relaxed);
    }
}

/// The present time by `CLOCK_MONOTONIC` in ns.
fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
