//! The reader of the scheduling events' slots: mapped memory, a region for each CPU.
//! `events.h` has the protocol: a written slot is not 0, the reader clears the slots that it
//! has read and publishes its position as the tail.

use std::mem::offset_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use nix::time::{clock_gettime, ClockId};
use nix::unistd::{sysconf, SysconfVar};

use crate::wire::{Account, Lost, Progress, Slot, MAX_CPUS, SCHED_LOST};

/// The number of slots between two updates of the tail: often enough for a CPU whose slots
/// are full, seldom enough to leave its cache line alone.
const STEP: u64 = 256;

/// The slots of all CPUs. The mappings keep the memory after the programs are unloaded.
#[derive(Debug)]
pub struct Slots {
    slots: MmapRaw,
    /// What the programs tell, to read.
    told: MmapRaw,
    /// What they are asked for.
    asked: MmapRaw,
    shared: Shared,
    /// Slots of each CPU, a power of two.
    count: u64,
    cpus: Vec<Cpu>,
    /// The number of CPUs for which there are slots.
    regions: usize,
    /// CPUs that have got slots since the last [`Slots::newcomers`].
    newcomers: Vec<u16>,
    /// A time of the recording, see [`Slot::time`].
    near: u64,
}

/// The layout of the memory shared with the programs.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// The offset of the array of [`Account`] in what the programs tell, in bytes.
    pub accounts: usize,
    /// The offset of the array of [`Progress`] in what they are asked for, in bytes.
    pub progress: usize,
    /// The length of both in bytes.
    pub len: [usize; 2],
    /// The number of CPU numbers that the kernel may use.
    pub possible_cpus: usize,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    number: u16,
    tail: u64,
}

/// The contents of a CPU's slots, in order.
#[derive(Clone, Copy, Debug)]
pub enum Sched {
    Event(Slot),
    /// A loss at this place.
    Lost(Lost),
}

impl Slots {
    /// Maps the slots, `count` for each of `cpus` in this order and then, up to `regions` in
    /// all, for CPUs that come later; and the memory shared with the programs.
    pub(crate) fn map(
        [slots, told, asked]: [BorrowedFd<'_>; 3],
        shared: Shared,
        (count, regions): (u32, u32),
        cpus: &[u16],
    ) -> std::io::Result<Slots> {
        // The kernel refuses more than the map has.
        let part = |len: usize| {
            let mut part = MmapOptions::new();
            part.len(len.next_multiple_of(page_size()));
            part
        };
        let [told_len, asked_len] = shared.len;
        let bytes = size_of::<Slot>() * count as usize * regions as usize;
        let slots = Slots {
            slots: part(bytes).map_raw(slots.as_raw_fd())?,
            told: part(told_len).map_raw_read_only(told.as_raw_fd())?,
            asked: part(asked_len).map_raw(asked.as_raw_fd())?,
            shared,
            count: u64::from(count),
            cpus: cpus.iter().map(|&number| Cpu { number, tail: 0 }).collect(),
            regions: regions as usize,
            newcomers: Vec::new(),
            near: now(),
        };
        let fits = |map: &MmapRaw, offset: usize, size: usize, align: usize| {
            map.len() >= offset + MAX_CPUS * size && offset.is_multiple_of(align)
        };
        let room = slots.slots.len() / size_of::<Slot>() >= count as usize * slots.regions
            && slots.regions >= cpus.len()
            && fits(
                &slots.asked,
                shared.progress,
                size_of::<Progress>(),
                align_of::<Progress>(),
            )
            && fits(
                &slots.told,
                shared.accounts,
                size_of::<Account>(),
                align_of::<Account>(),
            )
            && shared.possible_cpus <= MAX_CPUS
            && cpus.iter().all(|cpu| usize::from(*cpu) < MAX_CPUS);
        if room {
            Ok(slots)
        } else {
            let error = "unexpected layout of the event slots";
            Err(std::io::Error::other(error))
        }
    }

    /// Gives slots to CPUs that have lost events for want of them: those that came online
    /// later. Each has the loss before its first event.
    fn welcome(&mut self) {
        let possible = (0..self.shared.possible_cpus).filter_map(|cpu| u16::try_from(cpu).ok());
        for number in possible {
            if self.cpus.len() >= self.regions {
                return;
            }
            let [_, first] = self.progress(number);
            if first.load(Ordering::Relaxed) == 0 && self.lost(number) > 0 {
                let slot = self.cpus.len() as u64 * self.count + 1;
                first.store(slot, Ordering::Release);
                self.cpus.push(Cpu { number, tail: 0 });
                self.newcomers.push(number);
            }
        }
    }

    /// The CPUs that have got slots since the last call.
    pub fn newcomers(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.newcomers)
    }

    /// The number of a CPU's lost events.
    fn lost(&self, cpu: u16) -> u64 {
        let at = self.shared.accounts
            + usize::from(cpu) * size_of::<Account>()
            + offset_of!(Account, lost_total);
        // `map` has checked that the array lies in the mapping, is aligned in it and has a
        // place for every possible CPU. The programs write whole words only.
        // SAFETY: inside the mapping, which lives as long as `self`, aligned; we only load.
        let lost = unsafe { AtomicU64::from_ptr(self.told.as_mut_ptr().add(at).cast()) };
        lost.load(Ordering::Relaxed)
    }

    /// The read position in a CPU's slots, and its first slot, plus 1.
    fn progress(&self, cpu: u16) -> [&AtomicU64; 2] {
        let at = self.shared.progress + usize::from(cpu) * size_of::<Progress>();
        // `map` has checked that the array lies in the mapping, is aligned in it
        // and has a place for every possible CPU. Only we write both.
        // SAFETY: inside the mapping, which lives as long as `self`, aligned; used here alone.
        unsafe {
            let progress = self.asked.as_mut_ptr().add(at);
            [offset_of!(Progress, tail), offset_of!(Progress, first)]
                .map(|field| AtomicU64::from_ptr(progress.add(field).cast()))
        }
    }

    /// Passes all written slots to `sink`, CPU by CPU.
    pub fn read(&mut self, mut sink: impl FnMut(u16, Sched)) {
        self.welcome();
        let mut cpus = std::mem::take(&mut self.cpus);
        for (region, cpu) in cpus.iter_mut().enumerate() {
            // Later events wait: a CPU in a storm would never let this end.
            let end = cpu.tail + self.count;
            while cpu.tail < end {
                let step = (cpu.tail + STEP).min(end);
                let full = self.step(region, cpu, step, &mut sink);
                self.publish(cpu);
                if !full {
                    break;
                }
            }
        }
        self.cpus = cpus;
    }

    /// Reads up to `end`; false at the first empty slot.
    fn step(
        &self,
        region: usize,
        cpu: &mut Cpu,
        end: u64,
        sink: &mut impl FnMut(u16, Sched),
    ) -> bool {
        while cpu.tail < end {
            let slot = self.load(region, cpu.tail);
            if slot.is_empty() {
                return false;
            }
            let mut used = 1;
            if slot.kind() == SCHED_LOST {
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
                sink(cpu.number, Sched::Lost(lost));
            } else {
                sink(cpu.number, Sched::Event(slot));
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
        // `region` is a place in `cpus`: `map` has checked that the mapping has
        // `count` slots for each. The other side, too, writes whole words only.
        // In this process the words are atomics everywhere.
        // SAFETY: inside a mapping to read and write that `self` keeps; aligned to its page.
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

    /// Gives the read and cleared slots back to the CPU.
    fn publish(&self, cpu: &Cpu) {
        let [tail, _] = self.progress(cpu.number);
        tail.store(cpu.tail, Ordering::Release);
    }
}

/// `CLOCK_MONOTONIC` in ns.
fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn page_size() -> usize {
    let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| usize::try_from(size).ok())
        .unwrap_or(4096)
}
