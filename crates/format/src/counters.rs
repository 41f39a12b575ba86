//! Counters of the machine and of COMMAND's cgroup, which the recorder samples, and the system calls
//! of a process.

use serde::{Serialize, Serializer};

use crate::codec::{fitting, Codec, Col, Step, Stored};
use crate::error::within;
use crate::ids::{Ktime, Tgid};
use crate::limits;

/// Defines the enum [`Counter`] from lines `Variant = number, "name", unit;`. The number of a counter is its position,
/// and no other counter ever gets this number.
macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal, $unit:ident;)*) => {
        named! {
            /// A counter of the machine or of COMMAND's cgroup. The counters with the units [`Unit::Time`] and
            /// [`Unit::Count`] are totals since the start of the recording.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[repr(u8)]
            pub enum Counter {
                $($(#[$doc])* $variant = $name,)*
            }
        }
        $(const _: () = assert!(Counter::$variant as u8 == $number);)*

        impl Counter {
            /// The unit of the values of this counter of the machine.
            pub fn unit(self) -> Unit {
                match self {
                    $(Counter::$variant => Unit::$unit,)*
                }
            }
        }
    };
}

/// The unit of a [`Counter`]'s values, which also tells whether the values are totals or current amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The values of the counter are totals of time in ns.
    Time,
    /// The counter's values are total numbers (of periods, for example) and have no unit.
    Count,
    /// The counter's values are current amounts in bytes.
    Bytes,
    /// The counter's values are current frequencies in kHz.
    Frequency,
}

impl Unit {
    /// Whether the values of a counter with this unit never decrease.
    pub fn is_total(self) -> bool {
        matches!(self, Unit::Time | Unit::Count)
    }
}

counters! {
    /// The time in which some task of the machine waited for a CPU (`/proc/pressure/cpu`).
    CpuSome = 0, "cpu_some", Time;
    /// The time in which some task of the machine waited for memory (`/proc/pressure/memory`).
    MemorySome = 1, "memory_some", Time;
    /// The time in which all tasks of the machine that were not idle waited for memory.
    MemoryFull = 2, "memory_full", Time;
    /// The time in which some task of the machine waited for block I/O (`/proc/pressure/io`).
    IoSome = 3, "io_some", Time;
    /// The time in which all tasks of the machine that were not idle waited for block I/O.
    IoFull = 4, "io_full", Time;
    /// The time in which some task of COMMAND's cgroup waited for a CPU (`cpu.pressure`).
    CgroupCpuSome = 5, "cgroup_cpu_some", Time;
    /// The time in which some task of COMMAND's cgroup waited for memory (`memory.pressure`).
    CgroupMemorySome = 6, "cgroup_memory_some", Time;
    /// The time in which all tasks of COMMAND's cgroup that were not idle waited for memory.
    CgroupMemoryFull = 7, "cgroup_memory_full", Time;
    /// The time in which some task of COMMAND's cgroup waited for block I/O (`io.pressure`).
    CgroupIoSome = 8, "cgroup_io_some", Time;
    /// The time in which all tasks of COMMAND's cgroup that were not idle waited for block I/O.
    CgroupIoFull = 9, "cgroup_io_full", Time;
    /// The CPU time of all tasks and interrupts of the machine, summed over all CPUs (`/proc/stat`).
    Busy = 10, "busy", Time;
    /// The idle time of CPUs while a task of theirs waited for block I/O (`iowait` in `/proc/stat`).
    Iowait = 11, "iowait", Time;
    /// The CPU time that the hypervisor gave to other virtual machines (`steal` in `/proc/stat`).
    Stolen = 12, "stolen", Time;
    /// The time for which a CPU quota throttled COMMAND's cgroup or an ancestor of it, summed over all CPUs
    /// (`cpu.stat`).
    Throttled = 13, "throttled", Time;
    /// The number of periods of the CPU quota in which it throttled COMMAND's cgroup or an ancestor of it.
    ThrottledPeriods = 14, "throttled_periods", Count;
    /// The CPU time of the recorder.
    Recorder = 15, "recorder", Time;
    /// The memory that COMMAND's cgroup uses (`memory.current`).
    CgroupMemory = 16, "cgroup_memory", Bytes;
    /// The memory of the machine that programs can still get without swapping (`MemAvailable`).
    AvailableMemory = 17, "available_memory", Bytes;
    /// The mean frequency of the CPUs (`scaling_cur_freq`).
    Frequency = 18, "frequency", Frequency;
    /// The sum of the resident memory of all recorded processes, in bytes (`rss_stat`). Shared pages count for each
    /// process.
    Resident = 19, "resident", Bytes;
    /// The limit for the memory of COMMAND's cgroup, in bytes (`memory.max`).
    CgroupMemoryLimit = 20, "cgroup_memory_limit", Bytes;
    /// The largest memory that COMMAND's cgroup has used since the cgroup was created (`memory.peak`).
    CgroupMemoryPeak = 21, "cgroup_memory_peak", Bytes;
    /// The largest value of [`Counter::Resident`], the resident memory of all recorded processes, that the recorder has
    /// read since the previous sample.
    ResidentPeak = 22, "resident_peak", Bytes;
    /// The smallest free space in bytes (`statfs`) that the recorder has read since the previous sample, on the file
    /// system with COMMAND's working directory.
    DiskFree = 23, "disk_free", Bytes;
}

/// The number of the machine's counters that this version knows.
pub(crate) const COUNTERS: usize = Counter::ALL.len();

/// The values of all counters of the machine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(Box<[Option<u64>; COUNTERS]>);

impl Counters {
    /// The value of a counter at the moment of this sample; `None` if it is not known, for example because the kernel
    /// does not have the counter.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        self.0.get(counter as usize).copied().flatten()
    }

    /// Sets the value of a counter in this sample.
    pub fn set(&mut self, counter: Counter, value: u64) {
        if let Some(place) = self.0.get_mut(counter as usize) {
            *place = Some(value);
        }
    }

    /// The counters that have a value in this sample, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        let all = Counter::ALL.into_iter();
        all.filter_map(|counter| Some((counter, self.get(counter)?)))
    }
}

/// The sums over those system calls of a process that returned between the time `since` and the time of this event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SystemCalls {
    /// The process whose system calls were summed up.
    pub tgid: Tgid,
    /// The time of the previous event with the process's system calls, or the start of the recording.
    pub since: Ktime,
    /// The sums for each kind of system call, in the order of the kinds' numbers.
    pub calls: Vec<CallSum>,
}

/// The sums over one kind of system call of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CallSum {
    /// The number of the system call in the kernel's table.
    pub number: u32,
    /// Whether the system call's number is in the table for 32-bit programs on a 64-bit kernel.
    pub compat: bool,
    /// The number of calls that returned in the interval that the event sums up.
    pub count: u64,
    /// The number of calls of this system call that returned an error.
    pub errors: u64,
    /// The time in ns from the entry into the kernel to the return, summed over all calls of this system call.
    pub ns: u64,
    /// The duration of the longest call of this system call, in ns.
    pub longest: u64,
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(counter, value)| (counter.name(), value)))
    }
}

/// The number that is added to a counter's number if the counter had a value earlier in the frame and has none any
/// more. A reader of format 3.9 or older mistakes the sum for the number of a counter that a later version added.
const GONE_OFFSET: u64 = 1 << 16;

impl Stored for Counters {
    /// Writes or reads a sample of the counters. Only the counters whose values have changed since the previous
    /// sample in the frame are stored.
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.known().counters.resize(COUNTERS, None);
        let mut changed = Vec::new();
        if C::WRITES {
            let known = &c.known().counters;
            let differ = self.0.iter().zip(known).enumerate();
            changed.extend(differ.filter(|(_, (now, before))| now != before).map(
                |(number, (now, _))| match now {
                    Some(value) => (number as u64, *value),
                    None => (number as u64 + GONE_OFFSET, 0),
                },
            ));
        }
        let mut count = changed.len() as u64;
        c.int(Col::Counter, &mut count)?;
        let mut changed = changed.into_iter();
        for _ in 0..count {
            let (mut number, mut value) = changed.next().unwrap_or_default();
            c.int(Col::Counter, &mut number)?;
            let is_gone = number >= GONE_OFFSET;
            let counter = if is_gone {
                number - GONE_OFFSET
            } else {
                number
            };
            let at = usize::try_from(counter).unwrap_or(usize::MAX);
            let known = c.known().counters.get(at).copied().flatten();
            let before = if is_gone { 0 } else { known.unwrap_or(0) };
            c.change(Col::CounterValue, &mut value, before)?;
            // A counter that only a later version knows has no place here and is ignored.
            if let Some(place) = c.known().counters.get_mut(at) {
                *place = Some(value).filter(|_| !is_gone);
            }
        }
        if !C::WRITES {
            self.0.copy_from_slice(&c.known().counters);
        }
        Ok(())
    }
}

impl Stored for SystemCalls {
    fn fields<C: Codec>(&mut self, c: &mut C, time: Ktime) -> Step {
        c.step(Col::CallProcess, Col::CallProcess, &mut self.tgid.0)?;
        let mut span = time.0.wrapping_sub(self.since.0);
        c.int(Col::CallSince, &mut span)?;
        self.since.0 = time.0.wrapping_sub(span);
        let (most, what) = (limits::CALLS as usize, "the number of system calls");
        let count = c.count(Col::CallNumber, self.calls.len(), most, what)?;
        if !C::WRITES {
            c.known().calls += count as u64;
            within(what, c.known().calls, limits::CALLS)?;
        }
        c.elements(count, &mut self.calls, |c, sum| {
            let mut both = u64::from(sum.number) << 1 | u64::from(sum.compat);
            c.int(Col::CallNumber, &mut both)?;
            (sum.number, sum.compat) = (fitting(both >> 1)?, both & 1 == 1);
            c.int(Col::CallCount, &mut sum.count)?;
            c.int(Col::CallErrors, &mut sum.errors)?;
            c.int(Col::CallTime, &mut sum.ns)?;
            c.int(Col::CallLongest, &mut sum.longest)
        })
    }

    fn weight(&self) -> usize {
        size_of_val(&*self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_its_number_as_its_place() {
        for (place, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, place);
        }
    }
}
