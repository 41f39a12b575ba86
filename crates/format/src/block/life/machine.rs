//! What tasks asked of the machine, to columns and back: counters, disks, memory, system calls.

use std::sync::Arc;

use super::decode::Dec;
use super::encode::Enc;
use super::{tag, Col};
use crate::counters::{CallSum, Counter, Counters, SystemCalls};
use crate::device::{Block, Device, DiskWait, SyncFile};
use crate::event::{Ktime, LifeKind, Pinned, Tgid, Tid};
use crate::limits;
use crate::varint::{fold, unfold};
use crate::Fault;

impl Enc {
    /// In the event's own column: an older reader skips the event, and has not moved the task in
    /// the list of recent ones.
    pub(super) fn memory_task(&mut self, col: Col, tid: Tid, tgid: Tgid) {
        self.diff(col, tid.0, self.known.memory_tid);
        self.diff(col, tgid.0, tid.0);
        self.known.memory_tid = tid.0;
    }

    /// A counter that has the same value as before in the frame is left out.
    pub(super) fn counters(&mut self, counters: &Counters) {
        self.byte(Col::Kind, tag::COUNTERS);
        let before = std::mem::replace(&mut self.known.counters, counters.clone());
        let changed = counters
            .iter()
            .filter(|(it, now)| before.get(*it) != Some(*now));
        let changed: Vec<_> = changed.collect();
        self.int(Col::Counter, changed.len() as u64);
        for (counter, now) in changed {
            self.int(Col::Counter, counter as u64);
            let more = now.wrapping_sub(before.get(counter).unwrap_or(0));
            self.int(Col::CounterValue, fold(more as i64));
        }
    }

    pub(super) fn system_calls(&mut self, calls: &SystemCalls, time: Ktime) {
        self.byte(Col::Kind, tag::SYSTEM_CALLS);
        self.diff(Col::CallProcess, calls.tgid.0, self.known.calls_of);
        self.known.calls_of = calls.tgid.0;
        self.int(Col::CallSince, time.0.wrapping_sub(calls.since.0));
        let most = usize::try_from(limits::CALLS).unwrap_or(usize::MAX);
        let sums = calls.calls.get(..most).unwrap_or(&calls.calls);
        self.int(Col::CallNumber, sums.len() as u64);
        for sum in sums {
            let number = u64::from(sum.number) << 1 | u64::from(sum.compat);
            self.int(Col::CallNumber, number);
            self.int(Col::CallCount, sum.count);
            self.int(Col::CallErrors, sum.errors);
            self.int(Col::CallTime, sum.ns);
            self.int(Col::CallLongest, sum.longest);
        }
    }

    pub(super) fn sync_file(&mut self, file: &SyncFile) {
        self.byte(Col::Kind, tag::SYNC_FILE);
        self.diff(Col::SyncFile, file.tid.0, self.known.sync_tid);
        self.diff(Col::SyncFile, file.tgid.0, file.tid.0);
        self.known.sync_tid = file.tid.0;
        self.name(Col::SyncFile, &file.name);
    }

    pub(super) fn pinned(&mut self, pinned: &Pinned) {
        self.byte(Col::Kind, tag::PINNED);
        self.diff(Col::Pinned, pinned.tid.0, self.known.pinned_tid);
        self.diff(Col::Pinned, pinned.tgid.0, pinned.tid.0);
        self.known.pinned_tid = pinned.tid.0;
        self.int(Col::Pinned, pinned.pinned.into());
    }

    pub(super) fn block(&mut self, block: &Block) {
        self.byte(Col::Kind, tag::BLOCK);
        self.name(Col::BlockName, &block.name);
        let device = block.device;
        for value in [u64::from(device.major), u64::from(device.minor)] {
            self.int(Col::BlockDevice, value);
        }
        self.int(Col::BlockDevice, block.interval);
        self.int(Col::BlockDevice, block.busy);
        for group in &block.groups {
            self.int(Col::Requests, group.count);
            if group.count == 0 {
                continue;
            }
            for value in [group.bytes, group.latency, group.longest] {
                self.int(Col::Requests, value);
            }
            let counted = |count: &u64| *count != 0;
            let first = group.buckets.iter().position(counted).unwrap_or(0);
            let end = group
                .buckets
                .iter()
                .rposition(counted)
                .map_or(first, |last| last + 1);
            self.int(Col::Buckets, first as u64);
            self.int(Col::Buckets, (end - first) as u64);
            for count in group.buckets.iter().take(end).skip(first) {
                self.int(Col::Buckets, *count);
            }
        }
    }

    pub(super) fn disk_wait(&mut self, wait: &DiskWait) {
        self.byte(Col::Kind, tag::DISK_WAIT);
        self.diff(Col::DiskWait, wait.tid.0, self.known.disk_tid);
        self.diff(Col::DiskWait, wait.tgid.0, wait.tid.0);
        self.known.disk_tid = wait.tid.0;
        let Some(device) = wait.device else {
            return self.int(Col::DiskWait, 0);
        };
        let name = wait.name.get(..limits::NAME).unwrap_or(&wait.name);
        let disks = &mut self.known.waited_disks;
        let same = |it: &(_, Arc<[u8]>)| it.0 == device && *it.1 == *name;
        if let Some(at) = disks.iter().position(same) {
            return self.int(Col::DiskWait, at as u64 + 2);
        }
        disks.push((device, name.into()));
        self.int(Col::DiskWait, 1);
        for value in [device.major, device.minor] {
            self.int(Col::DiskWait, value.into());
        }
        self.int(Col::DiskWait, name.len() as u64);
        self.column(Col::DiskWait).extend_from_slice(name);
    }
}

impl Dec<'_> {
    pub(super) fn memory_task(&mut self, col: Col) -> Result<(Tid, Tgid), Fault> {
        let tid = self.diff(col, self.known.memory_tid)?;
        self.known.memory_tid = tid;
        Ok((Tid(tid), Tgid(self.diff(col, tid)?)))
    }

    pub(super) fn disk_wait(&mut self) -> Result<DiskWait, Fault> {
        let tid = self.diff(Col::DiskWait, self.known.disk_tid)?;
        self.known.disk_tid = tid;
        let tgid = self.diff(Col::DiskWait, tid)?;
        let (device, name) = match self.int(Col::DiskWait)? {
            0 => (None, Arc::default()),
            1 => {
                let (device, name) = self.waited_disk()?;
                let disk = (device, Arc::clone(&name));
                self.known.waited_disks.push(disk);
                (Some(device), name)
            }
            at => {
                let at = usize::try_from(at - 2).ok();
                let known = at.and_then(|at| self.known.waited_disks.get(at));
                let (device, name) = known.ok_or(Fault::Content("disk index out of range"))?;
                (Some(*device), Arc::clone(name))
            }
        };
        self.spend(name.len())?;
        Ok(DiskWait {
            tid: Tid(tid),
            tgid: Tgid(tgid),
            device,
            name,
        })
    }

    pub(super) fn pinned(&mut self) -> Result<Pinned, Fault> {
        let tid = self.diff(Col::Pinned, self.known.pinned_tid)?;
        self.known.pinned_tid = tid;
        let tgid = self.diff(Col::Pinned, tid)?;
        let pinned = match self.int(Col::Pinned)? {
            0 => false,
            1 => true,
            _ => return Err(Fault::Content("a bool is neither 0 nor 1")),
        };
        Ok(Pinned {
            tid: Tid(tid),
            tgid: Tgid(tgid),
            pinned,
        })
    }

    pub(super) fn sync_file(&mut self) -> Result<SyncFile, Fault> {
        let tid = self.diff(Col::SyncFile, self.known.sync_tid)?;
        self.known.sync_tid = tid;
        Ok(SyncFile {
            tid: Tid(tid),
            tgid: Tgid(self.diff(Col::SyncFile, tid)?),
            name: self.name(Col::SyncFile)?,
        })
    }

    fn waited_disk(&mut self) -> Result<(Device, Arc<[u8]>), Fault> {
        let device = Device {
            major: self.int32(Col::DiskWait)?,
            minor: self.int32(Col::DiskWait)?,
        };
        let len = self.int(Col::DiskWait)?;
        crate::error::within("a string's length", len, limits::NAME as u64)?;
        Ok((device, self.column(Col::DiskWait).take(len)?.into()))
    }

    /// The changed counters; those of a later version are left out.
    pub(super) fn counters(&mut self) -> Result<Counters, Fault> {
        for _ in 0..self.int(Col::Counter)? {
            let number = self.int(Col::Counter)?;
            let more = unfold(self.int(Col::CounterValue)?) as u64;
            let counter = usize::try_from(number).ok();
            let counter = counter.and_then(|number| Counter::ALL.get(number));
            if let Some(counter) = counter {
                let before = self.known.counters.get(*counter).unwrap_or(0);
                self.known.counters.set(*counter, before.wrapping_add(more));
            }
        }
        Ok(self.known.counters.clone())
    }

    pub(super) fn system_calls(&mut self, time: Ktime) -> Result<LifeKind, Fault> {
        let tgid = self.diff(Col::CallProcess, self.known.calls_of)?;
        self.known.calls_of = tgid;
        let since = Ktime(time.0.wrapping_sub(self.int(Col::CallSince)?));
        let count = self.int(Col::CallNumber)?;
        self.calls = self.calls.saturating_add(count);
        crate::error::within("the number of system calls", self.calls, limits::CALLS)?;
        let mut calls = Vec::new();
        for _ in 0..count {
            let number = self.int(Col::CallNumber)?;
            calls.push(CallSum {
                number: u32::try_from(number >> 1)
                    .map_err(|_| Fault::Content("no such system call"))?,
                compat: number & 1 == 1,
                count: self.int(Col::CallCount)?,
                errors: self.int(Col::CallErrors)?,
                ns: self.int(Col::CallTime)?,
                longest: self.int(Col::CallLongest)?,
            });
        }
        Ok(LifeKind::SystemCalls(SystemCalls {
            tgid: Tgid(tgid),
            since,
            calls,
        }))
    }

    pub(super) fn block(&mut self) -> Result<Block, Fault> {
        let mut block = Block {
            name: self.name(Col::BlockName)?,
            device: Device {
                major: self.int32(Col::BlockDevice)?,
                minor: self.int32(Col::BlockDevice)?,
            },
            interval: self.int(Col::BlockDevice)?,
            busy: self.int(Col::BlockDevice)?,
            groups: Default::default(),
        };
        for group in &mut block.groups {
            group.count = self.int(Col::Requests)?;
            if group.count == 0 {
                continue;
            }
            group.bytes = self.int(Col::Requests)?;
            group.latency = self.int(Col::Requests)?;
            group.longest = self.int(Col::Requests)?;
            let (first, number) = (self.int(Col::Buckets)?, self.int(Col::Buckets)?);
            let buckets = usize::try_from(first)
                .ok()
                .zip(usize::try_from(number).ok());
            let buckets = buckets.and_then(|(first, number)| {
                group.buckets.get_mut(first..first.checked_add(number)?)
            });
            for count in buckets.ok_or(Fault::Content("no such bucket of latencies"))? {
                *count = self.int(Col::Buckets)?;
            }
        }
        Ok(block)
    }
}
